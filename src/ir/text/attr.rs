//! Attribute values as graph text shows them: reading and writing what stands after `name=` in the brackets
//! of an op. What a value means often depends on the type of the op's result (`annotate(List[int], [])`, truth
//! values, members of enums), which is therefore passed along as `expected`. What no rule covers is kept to
//! the letter as [`Attr::Raw`].

use super::lexer::{Cursor, Number, Parsed, TextError};
use super::number::{write_complex, write_float, write_int, write_quoted};
use super::options::PrintOptions;
use super::tensor;
use super::type_parse::read_type;
use crate::ir::attr::pack;
use crate::ir::{Attr, Dim, Graph, Type, TypeKind};
use crate::tensor::Scalar;
use num_complex::Complex64;
use std::sync::Arc;

// --- writing ---

/// How tensors and graphs are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::ir) enum Detail {
    /// As PyTorch shows them, which may say nothing of their content.
    Shown,
    /// So that nothing is lost: `tensor(Float(2, 3), "base64")`, `graph("...")`.
    Exact,
}

/// Appends an attribute's value. `expected` is the type of the constant, where the attribute is one.
pub(super) fn write_attr(out: &mut String, attr: &Attr, expected: Option<&Type>) {
    match attr {
        Attr::Bool(x) => out.push(if *x { '1' } else { '0' }),
        Attr::Device(device) => write_quoted(out, &device.to_string()),
        _ => write_value(out, attr, expected, Detail::Shown),
    }
}

/// Appends a value as it stands inside containers.
pub(in crate::ir) fn write_value(out: &mut String, attr: &Attr, expected: Option<&Type>, detail: Detail) {
    let element = expected.and_then(|t| match t.kind() {
        TypeKind::List(element) => Some(element),
        _ => None,
    });
    match attr {
        Attr::Int(x) => write_int(out, *x),
        Attr::Float(x) => write_float(out, *x),
        Attr::Complex(z) => write_complex(out, *z),
        Attr::Bool(x) => out.push_str(if *x { "True" } else { "False" }),
        Attr::None => out.push_str("None"),
        Attr::Str(text) => write_quoted(out, text),
        Attr::Tensor(tensor) if detail == Detail::Exact => tensor::write_exact(out, tensor),
        Attr::Tensor(tensor) => tensor::write_tensor(out, tensor),
        Attr::Graph(graph) if detail == Detail::Exact => write_exact_graph(out, graph),
        Attr::Graph(_) => out.push_str("<Graph>"),
        Attr::Graphs(graphs) if detail == Detail::Exact => {
            write_items(out, graphs, |out, g| write_exact_graph(out, g))
        }
        Attr::Graphs(_) => out.push_str("[<Graphs>]"),
        Attr::Tensors(tensors) if detail == Detail::Exact => write_items(out, tensors, tensor::write_exact),
        Attr::Tensors(_) => out.push_str("[<Tensors>]"),
        Attr::Type(ty) => ty.write_to(out),
        Attr::Types(types) => write_items(out, types, |out, t| t.write_to(out)),
        Attr::Device(device) => {
            out.push_str("torch.device(");
            write_quoted(out, &device.to_string());
            out.push(')');
        }
        Attr::Enum(member) => {
            out.push_str(&member.0);
            out.push('.');
            out.push_str(&member.1);
        }
        Attr::Object(held) => {
            out.push_str("object(");
            out.push_str(held.class.as_str());
            out.push(')');
        }
        Attr::Raw(text) => out.push_str(text),
        Attr::Ints(xs) => write_list(out, xs, expected, Some("int"), |out, x| write_int(out, *x)),
        Attr::Floats(xs) => write_list(out, xs, expected, Some("float"), |out, x| write_float(out, *x)),
        Attr::Complexes(xs) => {
            write_list(out, xs, expected, Some("complex"), |out, z| write_complex(out, *z))
        }
        Attr::Strs(xs) => write_list(out, xs, expected, Some("str"), |out, x| write_quoted(out, x)),
        Attr::List(xs) => write_list(out, xs, expected, None, |out, x| write_value(out, x, element, detail)),
        Attr::Tuple(xs) => write_tuple(out, xs, expected, detail),
        Attr::Dict(entries) => write_dict(out, entries, expected, detail),
    }
}

fn write_exact_graph(out: &mut String, graph: &Graph) {
    out.push_str("graph(");
    write_quoted(out, &graph.to_text(&PrintOptions::default()));
    out.push(')');
}

fn write_items<T>(out: &mut String, items: &[T], write: impl Fn(&mut String, &T)) {
    out.push('[');
    for (i, item) in items.iter().enumerate() {
        out.push_str(if i == 0 { "" } else { ", " });
        write(out, item);
    }
    out.push(']');
}

/// A list, within `annotate(...)` where its elements do not determine its type.
fn write_list<T>(
    out: &mut String,
    items: &[T],
    expected: Option<&Type>,
    element: Option<&str>,
    write: impl Fn(&mut String, &T),
) {
    let expected = expected.filter(|t| matches!(t.kind(), TypeKind::List(_)));
    let unclear = expected.and_then(Type::element).is_some_and(is_unclear);
    let annotation = match (expected, element) {
        (Some(ty), _) if items.is_empty() || unclear => Some(ty.annotation()),
        (None, Some(element)) if items.is_empty() => Some(format!("List[{element}]")),
        _ => None,
    };
    match annotation {
        Some(annotation) => {
            out.push_str("annotate(");
            out.push_str(&annotation);
            out.push_str(", ");
            write_items(out, items, write);
            out.push(')');
        }
        None => write_items(out, items, write),
    }
}

/// Whether members of a list or dictionary do not determine this element type.
fn is_unclear(element: &Type) -> bool {
    use TypeKind::{Any, Interface, Number, Optional, Union};
    matches!(element.kind(), Union(_) | Optional(_) | Number | Interface(_) | Any)
}

fn write_tuple(out: &mut String, items: &[Attr], expected: Option<&Type>, detail: Detail) {
    let elements = expected.and_then(Type::tuple_elements).unwrap_or_default();
    out.push('(');
    for (i, item) in items.iter().enumerate() {
        out.push_str(if i == 0 { "" } else { ", " });
        write_value(out, item, elements.get(i), detail);
    }
    out.push_str(if items.len() == 1 { ",)" } else { ")" });
}

fn write_dict(out: &mut String, entries: &[(Attr, Attr)], expected: Option<&Type>, detail: Detail) {
    let types = expected.and_then(|t| match t.kind() {
        TypeKind::Dict(key, value) => Some((t, key, value)),
        _ => None,
    });
    let annotated = types.filter(|(_, _, value)| entries.is_empty() || is_unclear(value));
    if let Some((ty, ..)) = annotated {
        out.push_str("annotate(");
        out.push_str(&ty.annotation());
        out.push(',');
    }
    out.push('{');
    for (i, (key, value)) in entries.iter().enumerate() {
        out.push_str(if i == 0 { "" } else { ", " });
        write_value(out, key, types.map(|t| t.1), detail);
        out.push_str(": ");
        write_value(out, value, types.map(|t| t.2), detail);
    }
    out.push('}');
    out.push_str(if annotated.is_some() { ")" } else { "" });
}

// --- reading ---

/// Reads an attribute's value up to the `,` or `]` after it.
pub(in crate::ir) fn read_attr(cursor: &mut Cursor, expected: Option<&Type>) -> Parsed<Attr> {
    let start = cursor.pos();
    if let Some(attr) = read_value(cursor, expected) {
        cursor.skip_space();
        if matches!(cursor.peek(), b',' | b']') {
            return Ok(match (attr, expected.map(Type::kind)) {
                (Attr::Int(x @ 0..=1), Some(TypeKind::Bool)) => Attr::Bool(x == 1),
                // A constant's truth value is written as a number; the word stays a word.
                (Attr::Bool(x), kind) if !matches!(kind, Some(TypeKind::Bool)) => {
                    Attr::Raw(if x { "True" } else { "False" }.into())
                }
                (attr, _) => attr,
            });
        }
    }
    cursor.set_pos(start);
    read_raw(cursor)
}

/// The text of a value that no rule covers: up to a comma, a closing bracket or the end of the line, brackets
/// and strings inside it whole.
fn read_raw(cursor: &mut Cursor) -> Parsed<Attr> {
    cursor.skip_space();
    let start = cursor.pos();
    let mut open: Vec<u8> = Vec::new();
    loop {
        let b = cursor.peek();
        match b {
            b',' | b'\n' if open.is_empty() => break,
            b'(' => open.push(b')'),
            b'[' => open.push(b']'),
            b'{' => open.push(b'}'),
            b')' | b']' | b'}' if open.is_empty() => break,
            b')' | b']' | b'}' if open.pop() != Some(b) => {
                return Err(cursor.expected("the bracket that closes the value"));
            }
            b'"' | b'\'' => {
                cursor.string()?;
                continue;
            }
            _ if cursor.at_end() => break,
            _ => {}
        }
        cursor.advance(1);
    }
    let text = cursor.slice(start, cursor.pos()).trim_end();
    if text.is_empty() || !open.is_empty() {
        return Err(cursor.expected(if open.is_empty() {
            "a value"
        } else {
            "the bracket that closes the value"
        }));
    }
    Ok(Attr::Raw(text.into()))
}

/// Reads a value; None where no rule covers what stands there.
fn read_value(cursor: &mut Cursor, expected: Option<&Type>) -> Option<Attr> {
    if cursor.peek() == b' '
        && let Some(table) = read_table(cursor)
    {
        return Some(table);
    }
    cursor.skip_space();
    let start = cursor.pos();
    match cursor.peek() {
        b'"' | b'\'' => cursor.string().ok()?.map(|text| Attr::Str(text.into())),
        b'[' if cursor.peek_at(1) == b' ' => {
            let list = read_table(cursor).or_else(|| nested(cursor, |cursor| read_list(cursor, expected)));
            // A list of tensors prints without them; one that shows its tables is kept to the letter.
            list.filter(|attr| !matches!(attr, Attr::Tensors(_)))
        }
        b'[' => nested(cursor, |cursor| read_list(cursor, expected)),
        b'(' if cursor.peek_at(1).is_ascii_digit() => {
            read_table(cursor).or_else(|| nested(cursor, |cursor| read_tuple(cursor, expected)))
        }
        b'(' => nested(cursor, |cursor| read_tuple(cursor, expected)),
        b'{' => nested(cursor, |cursor| read_braces(cursor, expected)),
        b'0'..=b'9' | b'-' | b'+' | b'.' => read_number(cursor),
        b'i' | b'n' => match read_number(cursor) {
            Some(number) => Some(number),
            None => {
                cursor.set_pos(start);
                read_word(cursor, expected)
            }
        },
        b'_' | b'a'..=b'z' | b'A'..=b'Z' => read_word(cursor, expected),
        _ => None,
    }
}

/// Runs a reader one level deeper.
fn nested<'a>(cursor: &mut Cursor<'a>, read: impl FnOnce(&mut Cursor<'a>) -> Option<Attr>) -> Option<Attr> {
    cursor.enter().ok()?;
    let value = read(cursor);
    cursor.leave();
    value
}

/// A tensor as a table. None, and the cursor stays, where no table stands or it does not say everything.
fn read_table(cursor: &mut Cursor) -> Option<Attr> {
    let end = tensor::table_end(cursor)?;
    let text = cursor.slice(cursor.pos(), end);
    cursor.set_pos(end);
    Some(match tensor::read_table(text) {
        Some(tensor) => Attr::Tensor(tensor),
        None => Attr::Raw(text.into()),
    })
}

fn read_number(cursor: &mut Cursor) -> Option<Attr> {
    let start = cursor.pos();
    let number = cursor.number().ok()??;
    match cursor.peek() {
        // `1e-08 *  3.7047 ...`: the first number of a table.
        b' ' => {
            let after = cursor.pos();
            cursor.set_pos(start);
            if let Some(table) = read_table(cursor) {
                return Some(table);
            }
            cursor.set_pos(after);
        }
        b'+' | b'-' => {
            let re = match number {
                Number::Int(x) => x as f64,
                Number::Float(x) => x,
                Number::Imaginary(_) => return None,
            };
            let Number::Imaginary(im) = cursor.number().ok()?? else { return None };
            return Some(Attr::Complex(Complex64::new(re, im)));
        }
        _ => {}
    }
    Some(match number {
        Number::Int(x) => Attr::Int(x),
        Number::Float(x) => Attr::Float(x),
        Number::Imaginary(x) => Attr::Complex(Complex64::new(0.0, x)),
    })
}

/// The values up to a closing bracket; `type_of` gives the expected type of the n-th.
fn read_values<'t>(
    cursor: &mut Cursor,
    close: u8,
    type_of: impl Fn(usize) -> Option<&'t Type>,
) -> Option<Vec<Attr>> {
    let mut values = Vec::new();
    loop {
        if cursor.eat(close) {
            return Some(values);
        }
        if !values.is_empty() {
            if !cursor.eat(b',') {
                return None;
            }
            // One space belongs to the comma; further ones may begin a table.
            cursor.eat(b' ');
            if values.len() == 1 && cursor.eat(close) {
                return Some(values);
            }
        }
        values.push(read_value(cursor, type_of(values.len()))?);
        cursor.skip_space();
    }
}

fn read_list(cursor: &mut Cursor, expected: Option<&Type>) -> Option<Attr> {
    cursor.advance(1);
    if cursor.peek_at(1) == b']' {
        cursor.skip_space();
    }
    let list = expected.filter(|t| matches!(t.kind(), TypeKind::List(_)));
    let element = list.and_then(Type::element);
    let values = read_values(cursor, b']', |_| element)?;
    Some(match element.map(Type::kind) {
        Some(kind) if values.is_empty() => empty_list(kind),
        _ => pack(values),
    })
}

fn empty_list(element: &TypeKind) -> Attr {
    match element {
        TypeKind::Int => Attr::Ints([].into()),
        TypeKind::Float => Attr::Floats([].into()),
        TypeKind::Complex => Attr::Complexes([].into()),
        TypeKind::Str => Attr::Strs([].into()),
        _ => Attr::List([].into()),
    }
}

/// A tuple of values, or a tuple type.
fn read_tuple(cursor: &mut Cursor, expected: Option<&Type>) -> Option<Attr> {
    let start = cursor.pos();
    cursor.advance(1);
    let elements = expected.and_then(Type::tuple_elements).unwrap_or_default();
    let values = read_values(cursor, b')', |n| elements.get(n))?;
    let is_type = !values.is_empty() && values.iter().all(|v| matches!(v, Attr::Type(_)));
    if is_type || matches!(cursor.peek(), b'[' | b'?') {
        cursor.set_pos(start);
        return read_type(cursor).ok().map(Attr::Type);
    }
    Some(Attr::Tuple(values.into()))
}

/// `{0.5}`, the only element of a tensor, or a dictionary.
fn read_braces(cursor: &mut Cursor, expected: Option<&Type>) -> Option<Attr> {
    cursor.advance(1);
    if let Some(x) = tensor::read_braced(cursor) {
        return one_element(x, expected);
    }
    let (key_type, value_type) = match expected.map(Type::kind) {
        Some(TypeKind::Dict(key, value)) => (Some(key), Some(value)),
        _ => (None, None),
    };
    let mut entries = Vec::new();
    while !cursor.eat(b'}') {
        if !entries.is_empty() {
            if !cursor.eat(b',') {
                return None;
            }
            cursor.skip_space();
        }
        let key = read_value(cursor, key_type)?;
        if !cursor.eat(b':') {
            return None;
        }
        cursor.eat(b' ');
        entries.push((key, read_value(cursor, value_type)?));
    }
    Some(Attr::Dict(entries.into()))
}

/// A tensor with the expected dtype and sizes, filled with `x`.
fn one_element(x: Scalar, expected: Option<&Type>) -> Option<Attr> {
    let tensor = expected.and_then(Type::as_tensor);
    let sizes: Option<Vec<i64>> =
        tensor.and_then(|t| t.sizes.as_ref()).and_then(|dims| dims.iter().copied().map(Dim::known).collect());
    let dtype = tensor.and_then(|t| t.dtype);
    tensor::filled(x, dtype, &sizes.unwrap_or_default()).map(Attr::Tensor)
}

/// `True`, `None`, `annotate(...)`, `torch.device("cpu")`, a member of an enum, or a type.
fn read_word(cursor: &mut Cursor, expected: Option<&Type>) -> Option<Attr> {
    let start = cursor.pos();
    let word = cursor.dotted_name();
    match (word, cursor.peek()) {
        ("True", _) => return Some(Attr::Bool(true)),
        ("False", _) => return Some(Attr::Bool(false)),
        ("None", _) => return Some(Attr::None),
        ("tensor", b'(') => {
            cursor.advance(1);
            return tensor::read_exact(cursor).map(Attr::Tensor);
        }
        ("graph", b'(') => return nested(cursor, read_exact_graph),
        ("annotate", b'(') => return nested(cursor, |cursor| read_annotated(cursor, expected)),
        ("torch.device", b'(') => {
            cursor.advance(1);
            let device = cursor.string().ok()??.parse().ok()?;
            return cursor.eat(b')').then_some(Attr::Device(device));
        }
        _ => {}
    }
    if let Some(TypeKind::Enum(class, _)) = expected.map(Type::kind)
        && let Some((owner, member)) = word.rsplit_once('.')
        && *class == owner
    {
        return Some(Attr::Enum(Arc::new((owner.to_string(), member.to_string(), Attr::None))));
    }
    cursor.set_pos(start);
    let ty = read_type(cursor).ok()?;
    // A lower-case word of a foreign dialect is not a type variable.
    if matches!(ty.kind(), TypeKind::Var(_)) { None } else { Some(Attr::Type(ty)) }
}

/// `graph("...")`
fn read_exact_graph(cursor: &mut Cursor) -> Option<Attr> {
    cursor.advance(1);
    let text = cursor.string().ok()??;
    let graph = Graph::of_exact_text(&text)?;
    cursor.eat(b')').then(|| Attr::Graph(Arc::new(graph)))
}

/// Whether the text of an attribute gives the same attribute back, tensors and graphs with all their content.
pub(super) fn is_exact(attr: &Attr, expected: Option<&Type>) -> bool {
    match attr {
        Attr::Int(_) | Attr::Float(_) | Attr::Bool(_) | Attr::Str(_) | Attr::Raw(_) | Attr::None => true,
        Attr::Tensor(tensor) => {
            let mut text = String::new();
            write_attr(&mut text, attr, expected);
            text.push(']');
            match read_attr(&mut Cursor::new(&text), expected) {
                Ok(Attr::Tensor(again)) => tensor::same_content(tensor, &again),
                _ => false,
            }
        }
        Attr::Graph(_) | Attr::Graphs(_) | Attr::Tensors(_) => false,
        _ => !holds_content(attr),
    }
}

/// Whether a tensor or graph stands in an attribute.
fn holds_content(attr: &Attr) -> bool {
    match attr {
        Attr::Tensor(_) | Attr::Tensors(_) | Attr::Graph(_) | Attr::Graphs(_) => true,
        Attr::List(items) | Attr::Tuple(items) => items.iter().any(holds_content),
        Attr::Dict(entries) => entries.iter().any(|(k, v)| holds_content(k) || holds_content(v)),
        _ => false,
    }
}

/// `annotate(List[int], [])`. None where the printer could not know that the annotation must stand here.
fn read_annotated(cursor: &mut Cursor, expected: Option<&Type>) -> Option<Attr> {
    let start = cursor.pos();
    cursor.advance(1);
    let ty = read_type(cursor).ok()?;
    if !cursor.eat(b',') {
        return None;
    }
    cursor.eat(b' ');
    let value = read_value(cursor, Some(&ty))?;
    if !cursor.eat(b')') {
        return None;
    }
    let known = expected.is_some_and(|e| e.annotation() == ty.annotation());
    if known || matches!(value, Attr::Ints(_) | Attr::Floats(_) | Attr::Strs(_) | Attr::Complexes(_)) {
        return Some(value);
    }
    let word = start.checked_sub("annotate".len())?;
    Some(Attr::Raw(cursor.slice(word, cursor.pos()).into()))
}

/// Reads the attributes of an op after their opening bracket; `expected_for` gives the type of a constant.
pub(super) fn read_attrs<'a>(
    cursor: &mut Cursor<'a>,
    expected: Option<&Type>,
    mut add: impl FnMut(&'a str, Attr),
) -> Parsed<()> {
    cursor.skip_space();
    if cursor.eat(b']') {
        return Ok(());
    }
    loop {
        cursor.skip_space();
        let start = cursor.pos();
        let name = cursor.dotted_name();
        if name.is_empty() {
            return Err(cursor.expected("an attribute's name"));
        }
        cursor.skip_space();
        if !cursor.eat(b'=') {
            return Err(TextError::new(
                start,
                cursor.pos(),
                format!("expected `=` after attribute `{name}`"),
            )
            .hint("attributes are written `[name=value, ...]`"));
        }
        let attr = read_attr(cursor, expected.filter(|_| name == "value"))?;
        add(name, attr);
        cursor.skip_space();
        if cursor.eat(b',') {
            continue;
        }
        return cursor.expect(b']');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::parse_type;

    /// Reads a value of a type and writes it again.
    fn round_trip(ty: &str, text: &str) -> (Attr, String) {
        let ty = parse_type(ty).unwrap();
        let whole = format!("{text}]");
        let mut cursor = Cursor::new(&whole);
        let attr = read_attr(&mut cursor, Some(&ty)).unwrap_or_else(|e| panic!("{text}: {e:?}"));
        let mut out = String::new();
        write_attr(&mut out, &attr, Some(&ty));
        (attr, out)
    }

    /// Each row was printed by PyTorch.
    #[test]
    fn values_print_back() {
        for (ty, text) in [
            ("int", "-9223372036854775808"),
            ("float", "0.10000000000000001"),
            ("float", "-nan"),
            ("complex", "1.-2.j"),
            ("bool", "1"),
            ("Device", "\"cpu\""),
            ("str", r#""tab\tnew\nline \'q\' \0)+\/.)""#),
            ("int[]", "[1, 2]"),
            ("int[]", "annotate(List[int], [])"),
            ("Union(float, int)[]", "annotate(List[Union[float, int]], [0, 31, 3735928559.])"),
            ("Dict(str, int)", "annotate(Dict[str, int],{})"),
            ("Dict(str, int?)", "annotate(Dict[str, Optional[int]],{\"a\": None})"),
            ("(int[], Dict(str, float))", "(annotate(List[int], []), annotate(Dict[str, float],{}))"),
            ("Dict(int, int[])", "{1: annotate(List[int], [])}"),
            ("int?[]", "annotate(List[Optional[int]], [None, 1])"),
            ("bool[]", "[True, False]"),
            ("Device[]", "[torch.device(\"cpu\"), torch.device(\"cuda:0\")]"),
            ("(Device, NoneType, str, complex)", "(torch.device(\"cpu\"), None, \"s\", 2.+3.j)"),
            ("Float(requires_grad=0, device=cpu)", "{0.333333}"),
            ("Long(3)", " 1  2  3 [ CPULongType{3} ]"),
            ("Dict(str, Tensor)", "{\"a\":  0  0 [ CPUFloatType{2} ]}"),
            ("(Tensor, int)", "( 0  0 [ CPUFloatType{2} ], 1)"),
            ("Tensor", "<Tensor>"),
            ("Tensor[]", "[<Tensors>]"),
            (
                "Tensor?[]",
                "annotate(List[Optional[Tensor]], [ 0  1 [ CPULongType{2} ],  1  1 [ CPULongType{2} ]])",
            ),
            ("Enum<__torch__.Color>", "__torch__.Color.RED"),
            ("Enum<__torch__.Color>[]", "[__torch__.Color.RED, __torch__.Color.BLUE]"),
            ("t", "int"),
            ("t", "[int, Tensor, int[]]"),
            ("t", "(int, str)[]"),
            ("t", "[[\"TENSOR_CONT\"]]"),
            ("t", "fast"),
            ("t", "#loop<unroll = [1, 2]>"),
            ("t", "loops.buffer<Float(2), 3>"),
            ("()", "()"),
        ] {
            assert_eq!(round_trip(ty, text).1, text);
        }
    }

    #[test]
    fn values_have_their_kind() {
        assert_eq!(round_trip("bool", "1").0, Attr::Bool(true));
        assert_eq!(round_trip("int[]", "annotate(List[int], [])").0, Attr::Ints([].into()));
        assert_eq!(round_trip("(int, int)", "(1, 2)").0, Attr::Tuple([Attr::Int(1), Attr::Int(2)].into()));
        assert!(matches!(round_trip("Tensor", "<Tensor>").0, Attr::Raw(_)));
        assert!(matches!(round_trip("t", "[int, str]").0, Attr::Types(_)));
        let (filled, text) = round_trip("Float(3, strides=[1], requires_grad=0, device=cpu)", "{0.5}");
        assert!(matches!(filled, Attr::Tensor(t) if t.numel() == 3));
        assert_eq!(text, " 0.5000  0.5000  0.5000 [ CPUFloatType{3} ]");
    }

    #[test]
    fn deep_nesting_is_kept_to_the_letter() {
        let text = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
        assert!(matches!(round_trip("t", &text).0, Attr::Raw(_)));
    }
}
