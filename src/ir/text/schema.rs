//! Function schemas as text: `aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`.
//!
//! Parsing and printing are inverse for every schema that PyTorch prints. Defaults of lists with a fixed
//! length are stored as the list (`int[2] stride=1` holds `[1, 1]`) and print as one number again.

use super::lexer::{Cursor, Number, Parsed, TextError, is_name_byte};
use super::number::{write_complex, write_float, write_int, write_quoted};
use super::type_parse::{program_type, read_base};
use crate::diag::{Result, nearest};
use crate::ir::{AliasInfo, Argument, Attr, Schema, Symbol, Type, TypeKind};
use num_complex::Complex64;
use std::fmt::{self, Write};

/// Reads one schema.
pub fn parse_schema(text: &str) -> Result<Schema> {
    let mut cursor = Cursor::new(text);
    let parsed = (|| {
        cursor.skip_space();
        let schema = read_schema(&mut cursor)?;
        cursor.skip_space();
        if cursor.at_end() { Ok(schema) } else { Err(cursor.expected("the end of the schema")) }
    })();
    parsed.map_err(|error: TextError| error.about("<schema>", text))
}

impl std::str::FromStr for Schema {
    type Err = crate::diag::Diagnostic;

    fn from_str(text: &str) -> Result<Schema> {
        parse_schema(text)
    }
}

/// The names that stand for numbers in defaults.
const NAMED_DEFAULTS: &[(&str, i64)] = &[
    ("None", 0),
    ("Mean", 1),
    ("Sum", 2),
    ("contiguous_format", 0),
    ("preserve_format", 1),
    ("channels_last", 2),
    ("strided", 0),
    ("long", 4),
];

/// Reads a schema at the cursor.
pub(super) fn read_schema(cursor: &mut Cursor) -> Parsed<Schema> {
    let (name, overload) = read_name(cursor)?;
    let mut schema = Schema {
        name: Symbol::new(name),
        overload: Symbol::new(overload),
        arguments: Vec::new(),
        returns: Vec::new(),
        is_vararg: false,
        is_varret: false,
    };
    cursor.expect(b'(')?;
    read_arguments(cursor, &mut schema)?;
    cursor.skip_space();
    if !cursor.eat_str("->") {
        return Err(cursor
            .expected("`->` and the results")
            .hint("a schema without results ends with `-> ()`"));
    }
    cursor.skip_space();
    read_returns(cursor, &mut schema)?;
    Ok(schema)
}

/// `aten::add`, `Tensor`. A name without `::` may hold dots (`__torch__.M.forward`) and has no overload.
fn read_name<'a>(cursor: &mut Cursor<'a>) -> Parsed<(&'a str, &'a str)> {
    let start = cursor.pos();
    let is_part = |b: u8| is_name_byte(b) || matches!(b, b'.' | b':' | b'<' | b'>');
    while is_part(cursor.peek()) {
        cursor.advance(1);
    }
    let text = cursor.slice(start, cursor.pos());
    let Some(colons) = text.find("::") else {
        return if text.is_empty() { Err(cursor.expected("the name of a schema")) } else { Ok((text, "")) };
    };
    match text[colons..].find('.') {
        Some(dot) => Ok((&text[..colons + dot], &text[colons + dot + 1..])),
        None => Ok((text, "")),
    }
}

fn read_arguments(cursor: &mut Cursor, schema: &mut Schema) -> Parsed<()> {
    let mut keyword_only = false;
    cursor.skip_space();
    if cursor.eat(b')') {
        return Ok(());
    }
    loop {
        cursor.skip_space();
        if cursor.eat_str("...") {
            schema.is_vararg = true;
        } else if cursor.eat(b'*') {
            keyword_only = true;
        } else {
            let mut argument = read_argument(cursor, false)?;
            argument.keyword_only = keyword_only;
            argument.is_out = keyword_only && argument.alias.as_ref().is_some_and(|a| a.is_write);
            schema.arguments.push(argument);
        }
        cursor.skip_space();
        if !cursor.eat(b',') {
            return cursor.expect(b')');
        }
        if schema.is_vararg {
            return Err(cursor.expected("`)`, because `...` comes last"));
        }
    }
}

fn read_returns(cursor: &mut Cursor, schema: &mut Schema) -> Parsed<()> {
    if cursor.eat_str("...") {
        schema.is_varret = true;
        return Ok(());
    }
    if !cursor.eat(b'(') {
        schema.returns.push(read_argument(cursor, true)?);
        return Ok(());
    }
    cursor.skip_space();
    if cursor.eat(b')') {
        return Ok(());
    }
    loop {
        cursor.skip_space();
        if cursor.eat_str("...") {
            schema.is_varret = true;
        } else {
            schema.returns.push(read_argument(cursor, true)?);
        }
        cursor.skip_space();
        if !cursor.eat(b',') {
            return cursor.expect(b')');
        }
    }
}

/// `Tensor(a!)[2]? name=default`; a result needs no name.
fn read_argument(cursor: &mut Cursor, is_result: bool) -> Parsed<Argument> {
    let (real_ty, alias, fixed_length) = read_marked_type(cursor)?;
    let before_name = cursor.pos();
    // A result's name stands on the same line: what follows the line is not a part of the schema.
    if is_result {
        cursor.skip_blanks()
    } else {
        cursor.skip_space()
    }
    let name = cursor.name();
    if name.is_empty() && !is_result {
        return Err(cursor.expected("the argument's name"));
    }
    if name.is_empty() {
        cursor.set_pos(before_name);
    }
    let ty = program_type(&real_ty);
    let default =
        if !is_result && cursor.eat(b'=') { Some(read_default(cursor, &ty, fixed_length)?) } else { None };
    Ok(Argument {
        name: Symbol::new(name),
        ty,
        real_ty,
        fixed_length,
        default,
        keyword_only: false,
        alias,
        is_out: false,
    })
}

/// A type with its alias marks and fixed list length.
fn read_marked_type(cursor: &mut Cursor) -> Parsed<(Type, Option<AliasInfo>, Option<usize>)> {
    let start = cursor.pos();
    let mut alias = None;
    let mut ty =
        if cursor.peek() == b'(' { read_marked_tuple(cursor, &mut alias)? } else { read_base(cursor)? };
    if cursor.peek() == b'(' {
        alias = Some(read_alias(cursor)?);
    } else if cursor.eat(b'!') {
        let sets = vec![Symbol::new("$0")];
        alias = Some(AliasInfo { before: sets, is_write: true, ..AliasInfo::default() });
    }
    let mut fixed_length = None;
    loop {
        if cursor.eat(b'?') {
            ty = Type::optional(ty);
        } else if cursor.eat(b'[') {
            let count = cursor.digits();
            if !count.is_empty() {
                let parsed = count.parse::<u16>();
                fixed_length = Some(usize::from(parsed.map_err(|_| {
                    TextError::meaning(start, cursor.pos(), format!("a list of {count} elements is too long"))
                })?));
            }
            cursor.expect(b']')?;
            ty = Type::list(ty);
            let own = if cursor.peek() == b'(' { Some(read_alias(cursor)?) } else { None };
            alias = list_alias(own, alias);
        } else {
            return Ok((ty, alias, fixed_length));
        }
        if cursor.pos() - start > 4096 {
            return Err(TextError::meaning(start, cursor.pos(), "the type nests too deep"));
        }
    }
}

/// The mark of a list, from its own mark and that of its elements.
fn list_alias(own: Option<AliasInfo>, element: Option<AliasInfo>) -> Option<AliasInfo> {
    let Some(element) = element else { return own };
    let mut list = own.unwrap_or_else(|| AliasInfo { is_write: element.is_write, ..AliasInfo::default() });
    list.contained = vec![Some(element)];
    Some(list)
}

/// `(Tensor(a), int)`: marks of the elements become the contained marks of the tuple.
fn read_marked_tuple(cursor: &mut Cursor, alias: &mut Option<AliasInfo>) -> Parsed<Type> {
    cursor.enter()?;
    cursor.advance(1);
    let (mut types, mut marks) = (Vec::new(), Vec::new());
    cursor.skip_space();
    while !cursor.eat(b')') {
        if !types.is_empty() {
            cursor.expect(b',')?;
            cursor.skip_space();
        }
        let (ty, mark, _) = read_marked_type(cursor)?;
        types.push(ty);
        marks.push(mark);
        cursor.skip_space();
    }
    if marks.iter().any(Option::is_some) {
        *alias = Some(AliasInfo { contained: marks, ..AliasInfo::default() });
    }
    cursor.leave();
    Ok(Type::tuple(types))
}

/// `(a)`, `(a!)`, `(a|b)`, `(a! -> a|*)`
fn read_alias(cursor: &mut Cursor) -> Parsed<AliasInfo> {
    let mut alias = AliasInfo::default();
    cursor.expect(b'(')?;
    // An unnamed alias set (`Tensor!`), as it prints.
    if cursor.eat_str("$0! -> )") {
        return Ok(AliasInfo { before: vec![Symbol::new("$0")], is_write: true, ..AliasInfo::default() });
    }
    alias.wildcard_before = read_alias_sets(cursor, &mut alias.before)?;
    cursor.skip_space();
    alias.is_write = cursor.eat(b'!');
    cursor.skip_space();
    if cursor.eat_str("->") {
        alias.wildcard_after = read_alias_sets(cursor, &mut alias.after)?;
    } else {
        alias.after = alias.before.clone();
        alias.wildcard_after = alias.wildcard_before;
    }
    cursor.expect(b')')?;
    Ok(alias)
}

/// Reads `a|b|*`; says whether the wildcard is among them.
fn read_alias_sets(cursor: &mut Cursor, sets: &mut Vec<Symbol>) -> Parsed<bool> {
    let mut wildcard = false;
    loop {
        cursor.skip_space();
        if cursor.eat(b'*') {
            wildcard = true;
        } else {
            let name = cursor.name();
            if name.is_empty() {
                return Err(cursor.expected("an alias set (a name or `*`)"));
            }
            sets.push(Symbol::new(name));
        }
        cursor.skip_space();
        if !cursor.eat(b'|') {
            return Ok(wildcard);
        }
    }
}

/// The default of an argument. A number given for a list of fixed length stands for each of its elements.
fn read_default(cursor: &mut Cursor, ty: &Type, fixed_length: Option<usize>) -> Parsed<Attr> {
    cursor.skip_space();
    // An int given for an optional float stays one, as PyTorch prints it back.
    let value = read_value(cursor, ty)?;
    let ty = match ty.kind() {
        TypeKind::Optional(inner) => inner,
        _ => ty,
    };
    let Some(count) = fixed_length.filter(|_| matches!(ty.kind(), TypeKind::List(_))) else {
        return Ok(value);
    };
    Ok(match value {
        Attr::Int(x) => Attr::Ints(vec![x; count].into()),
        Attr::Float(x) => Attr::Floats(vec![x; count].into()),
        Attr::Bool(x) => Attr::List(vec![Attr::Bool(x); count].into()),
        other => other,
    })
}

fn read_value(cursor: &mut Cursor, ty: &Type) -> Parsed<Attr> {
    match cursor.peek() {
        b'[' => return read_list(cursor, ty),
        b'(' => return read_tuple(cursor, ty),
        b'"' | b'\'' => {
            let start = cursor.pos();
            let text = cursor.string()?;
            let text =
                text.ok_or_else(|| TextError::meaning(start, cursor.pos(), "the string is not UTF-8"))?;
            return Ok(Attr::Str(text.into()));
        }
        _ => {}
    }
    if let Some(number) = cursor.number()? {
        let wants_float = matches!(element_type(ty).kind(), TypeKind::Float);
        return Ok(match number {
            Number::Int(x) if wants_float => Attr::Float(x as f64),
            Number::Int(x) => Attr::Int(x),
            Number::Float(x) => Attr::Float(x),
            Number::Imaginary(x) => Attr::Complex(Complex64::new(0.0, x)),
        })
        .and_then(|value| read_imaginary_part(cursor, value));
    }
    let start = cursor.pos();
    let word = cursor.name();
    let named = NAMED_DEFAULTS.iter().find(|(name, _)| *name == word);
    match (word, named) {
        ("None", _) => Ok(Attr::None),
        ("True", _) => Ok(Attr::Bool(true)),
        ("False", _) => Ok(Attr::Bool(false)),
        (_, Some((_, value))) => Ok(Attr::Int(*value)),
        ("", None) => Err(cursor.expected("a default value")),
        (word, None) => {
            let error = TextError::meaning(start, cursor.pos(), format!("`{word}` is not a default value"));
            let known = NAMED_DEFAULTS.iter().map(|row| row.0).chain(["True", "False"]);
            Err(match nearest(word, known) {
                Some(near) => error.hint(format!("did you mean `{near}`?")),
                None => error,
            })
        }
    }
}

/// `1.+2.j`: the second number of a complex default.
fn read_imaginary_part(cursor: &mut Cursor, value: Attr) -> Parsed<Attr> {
    if !matches!(cursor.peek(), b'+' | b'-') {
        return Ok(value);
    }
    let re = match value {
        Attr::Int(x) => x as f64,
        Attr::Float(x) => x,
        other => return Ok(other),
    };
    match cursor.number()? {
        Some(Number::Imaginary(im)) => Ok(Attr::Complex(Complex64::new(re, im))),
        _ => Err(cursor.expected("the imaginary part")),
    }
}

/// The element type of a list, or the type itself.
fn element_type(ty: &Type) -> &Type {
    match ty.kind() {
        TypeKind::List(t) => t,
        _ => ty,
    }
}

fn read_list(cursor: &mut Cursor, ty: &Type) -> Parsed<Attr> {
    cursor.enter()?;
    cursor.advance(1);
    let element = element_type(ty);
    let mut values = Vec::new();
    cursor.skip_space();
    while !cursor.eat(b']') {
        if !values.is_empty() {
            cursor.expect(b',')?;
            cursor.skip_space();
        }
        values.push(read_value(cursor, element)?);
        cursor.skip_space();
    }
    cursor.leave();
    Ok(pack_list(values, element))
}

fn read_tuple(cursor: &mut Cursor, ty: &Type) -> Parsed<Attr> {
    cursor.enter()?;
    cursor.advance(1);
    let elements = match ty.without_none().kind() {
        TypeKind::Tuple(elements, _) => elements.clone(),
        _ => [].into(),
    };
    let mut values = Vec::new();
    cursor.skip_space();
    while !cursor.eat(b')') {
        values.push(read_value(cursor, elements.get(values.len()).unwrap_or(ty))?);
        cursor.skip_space();
        // One element has a comma after it.
        if !cursor.eat(b',') && cursor.peek() != b')' {
            return Err(cursor.expected("`,` or `)`"));
        }
        cursor.skip_space();
    }
    cursor.leave();
    Ok(Attr::Tuple(values.into()))
}

/// The flat form of a list, where its elements have one.
fn pack_list(values: Vec<Attr>, element: &Type) -> Attr {
    if values.is_empty() {
        return match element.kind() {
            TypeKind::Int => Attr::Ints([].into()),
            TypeKind::Float => Attr::Floats([].into()),
            TypeKind::Str => Attr::Strs([].into()),
            TypeKind::Tensor(_) => Attr::Tensors([].into()),
            _ => Attr::List([].into()),
        };
    }
    crate::ir::attr::pack(values)
}

// --- printing ---

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::new();
        self.write_to(&mut out);
        f.write_str(&out)
    }
}

impl Schema {
    /// Appends the schema as PyTorch prints it.
    pub fn write_to(&self, out: &mut String) {
        out.push_str(self.name.as_str());
        let overload = self.overload.as_str();
        if !overload.is_empty() {
            out.push('.');
            out.push_str(overload);
        }
        out.push('(');
        self.write_arguments(out);
        out.push_str(") -> ");
        self.write_returns(out);
    }

    fn write_arguments(&self, out: &mut String) {
        let mut keyword_only = false;
        for (i, argument) in self.arguments.iter().enumerate() {
            out.push_str(if i == 0 { "" } else { ", " });
            if argument.keyword_only && !keyword_only {
                keyword_only = true;
                out.push_str("*, ");
            }
            argument.write_to(out);
        }
        if self.is_vararg {
            out.push_str(if self.arguments.is_empty() { "..." } else { ", ..." });
        }
    }

    fn write_returns(&self, out: &mut String) {
        let parenthesized = match &self.returns[..] {
            _ if self.is_varret && self.returns.is_empty() => {
                out.push_str("...");
                return;
            }
            [only] => self.is_varret || begins_with_tuple(&only.real_ty),
            _ => true,
        };
        out.push_str(if parenthesized { "(" } else { "" });
        for (i, result) in self.returns.iter().enumerate() {
            out.push_str(if i == 0 { "" } else { ", " });
            result.write_to(out);
        }
        out.push_str(if self.is_varret { ", ..." } else { "" });
        out.push_str(if parenthesized { ")" } else { "" });
    }
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::new();
        self.write_to(&mut out);
        f.write_str(&out)
    }
}

impl Argument {
    /// The length of an `int[n]` whose default prints as one number when its elements are equal.
    fn shown_once(&self) -> Option<usize> {
        let list = match self.real_ty.kind() {
            TypeKind::Optional(inner) => inner,
            _ => &self.real_ty,
        };
        let of_ints = matches!(list.kind(), TypeKind::List(t) if *t.kind() == TypeKind::Int);
        self.fixed_length.filter(|n| of_ints && *n > 1)
    }

    fn write_to(&self, out: &mut String) {
        write_marked_type(out, &self.real_ty, self.alias.as_ref(), self.fixed_length);
        if self.name != "" {
            out.push(' ');
            out.push_str(self.name.as_str());
        }
        if let Some(default) = &self.default {
            out.push('=');
            write_default(out, default, self.shown_once());
        }
    }
}

/// Whether the type's text begins with a bracket, which has to stand in brackets of its own.
fn begins_with_tuple(ty: &Type) -> bool {
    match ty.kind() {
        TypeKind::Tuple(_, None) => true,
        TypeKind::List(t) | TypeKind::Optional(t) => begins_with_tuple(t),
        _ => false,
    }
}

fn write_marked_type(out: &mut String, ty: &Type, alias: Option<&AliasInfo>, length: Option<usize>) {
    match ty.kind() {
        TypeKind::Optional(element) => {
            write_marked_type(out, element, alias, length);
            out.push('?');
        }
        TypeKind::List(element) => {
            let contained = alias.and_then(|a| a.contained.first()).and_then(Option::as_ref);
            write_marked_type(out, element, contained, None);
            match length {
                Some(n) => {
                    let _ = write!(out, "[{n}]");
                }
                None => out.push_str("[]"),
            }
            write_alias(out, alias);
        }
        TypeKind::Tuple(elements, None) if alias.is_some_and(|a| !a.contained.is_empty()) => {
            out.push('(');
            for (i, element) in elements.iter().enumerate() {
                out.push_str(if i == 0 { "" } else { ", " });
                let contained = alias.and_then(|a| a.contained.get(i)).and_then(Option::as_ref);
                write_marked_type(out, element, contained, None);
            }
            out.push(')');
            write_alias(out, alias);
        }
        _ => {
            // In schemas the parts of containers print in round brackets.
            out.push_str(&ty.unrefined());
            write_alias(out, alias);
        }
    }
}

fn write_alias(out: &mut String, alias: Option<&AliasInfo>) {
    let Some(alias) = alias else { return };
    if alias.before.is_empty() && !alias.wildcard_before && alias.after.is_empty() && !alias.wildcard_after {
        return;
    }
    let sets = |out: &mut String, sets: &[Symbol], wildcard: bool| {
        for (i, set) in sets.iter().enumerate() {
            out.push_str(if i == 0 { "" } else { "|" });
            out.push_str(set.as_str());
        }
        out.push_str(match (wildcard, sets.is_empty()) {
            (false, _) => "",
            (true, true) => "*",
            (true, false) => "|*",
        });
    };
    out.push('(');
    sets(out, &alias.before, alias.wildcard_before);
    out.push_str(if alias.is_write { "!" } else { "" });
    if alias.before != alias.after || alias.wildcard_before != alias.wildcard_after {
        out.push_str(" -> ");
        sets(out, &alias.after, alias.wildcard_after);
    }
    out.push(')');
}

fn write_default(out: &mut String, default: &Attr, shown_once: Option<usize>) {
    match default {
        Attr::Ints(xs) if shown_once == Some(xs.len()) && xs.windows(2).all(|w| w[0] == w[1]) => {
            xs.first().iter().for_each(|x| write_int(out, **x));
        }
        _ => write_value(out, default),
    }
}

fn write_value(out: &mut String, value: &Attr) {
    match value {
        Attr::Int(x) => write_int(out, *x),
        Attr::Float(x) => write_float(out, *x),
        Attr::Complex(z) => write_complex(out, *z),
        Attr::Bool(x) => out.push_str(if *x { "True" } else { "False" }),
        Attr::Str(text) => write_quoted(out, text),
        Attr::Ints(xs) => write_list(out, xs, |out, x| write_int(out, *x)),
        Attr::Floats(xs) => write_list(out, xs, |out, x| write_float(out, *x)),
        Attr::Complexes(xs) => write_list(out, xs, |out, x| write_complex(out, *x)),
        Attr::Strs(xs) => write_list(out, xs, |out, x| write_quoted(out, x)),
        Attr::List(xs) => write_list(out, xs, write_value),
        Attr::Tuple(xs) => {
            let start = out.len();
            write_list(out, xs, write_value);
            out.replace_range(start..=start, "(");
            out.pop();
            out.push_str(if xs.len() == 1 { ",)" } else { ")" });
        }
        Attr::Tensors(_) => out.push_str("[]"),
        Attr::Object(held) => {
            out.push_str("object(");
            out.push_str(held.class.as_str());
            out.push(')');
        }
        Attr::Raw(text) => out.push_str(text),
        Attr::Device(device) => write_quoted(out, &device.to_string()),
        // Schemas have no defaults of other kinds.
        _ => out.push_str("None"),
    }
}

fn write_list<T>(out: &mut String, items: &[T], write: impl Fn(&mut String, &T)) {
    out.push('[');
    for (i, item) in items.iter().enumerate() {
        out.push_str(if i == 0 { "" } else { ", " });
        write(out, item);
    }
    out.push(']');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(text: &str) -> String {
        parse_schema(text).unwrap_or_else(|e| panic!("{text}: {e}")).to_string()
    }

    #[test]
    fn schemas_print_back() {
        for text in [
            "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
            "aten::split(Tensor(a -> *) self, int split_size, int dim=0) -> Tensor(a)[]",
            "aten::max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], bool ceil_mode=False) -> Tensor",
            "aten::_foreach_add_.Scalar(Tensor(a!)[] self, Scalar scalar) -> ()",
            "aten::append.t(t[](a!) self, t(c -> *) el) -> t[](a!)",
            "aten::keys.str(Dict(str, t)(a) self) -> str[](*)",
            "aten::einsum.sublist(Tensor a, ...) -> Tensor",
            "prim::TupleUnpack(Any tup) -> ...",
            "aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
            "aten::to(Tensor(a) self, *, ScalarType? dtype=None, MemoryFormat? memory_format=None) -> Tensor(b|a)",
            "aten::f(int[2]? y=None, bool[2] b=[True, True], float f=1.0000000000000001e-05, str s=\"a\\\"b\") -> ()",
            "aten::g(complex c=0.+2.j, Future(t) z, SymInt[] x) -> Dict(int, int)",
            "__torch__.M.forward(__torch__.M self, Tensor x) -> Tensor",
            "aten::h((int, float) x=(1, 2.), (int[], str)? y=([1], \"a\"), (int) z=(3,), () e=()) -> ()",
        ] {
            assert_eq!(round_trip(text), text);
        }
    }

    #[test]
    fn a_number_stands_for_a_list_of_fixed_length() {
        let schema = parse_schema("aten::f(int[2] x=1) -> ()").unwrap();
        assert_eq!(schema.arguments[0].default, Some(Attr::Ints([1, 1].into())));
        assert_eq!(schema.to_string(), "aten::f(int[2] x=1) -> ()");
    }

    #[test]
    fn refinements_of_int_are_ints_to_programs() {
        let schema = parse_schema("aten::f(ScalarType? d=None, SymInt[] s, Layout l) -> ()").unwrap();
        let types: Vec<_> = schema.arguments.iter().map(|a| a.ty.to_string()).collect();
        assert_eq!(types, ["int?", "int[]", "int"]);
    }

    #[test]
    fn bad_schemas_say_where() {
        for (text, message) in [
            ("aten::f(Tensor) -> ()", "expected the argument's name, found `)`"),
            ("aten::f(Tensr x) -> ()", "there is no type `Tensr`"),
            ("aten::f(int x=Trve) -> ()", "`Trve` is not a default value"),
            ("aten::f(int x)", "expected `->` and the results, found the end of the text"),
        ] {
            assert_eq!(parse_schema(text).unwrap_err().message(), message);
        }
    }
}
