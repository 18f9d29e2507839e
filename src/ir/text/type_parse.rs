//! Parsing types: the text that PyTorch prints in graphs, what its own parser takes, and Python annotations.
//! Printing stands in `type_text.rs`; alias marks belong to schemas and are read in `schema_text.rs`.

use super::lexer::{Cursor, Parsed, TextError};
use crate::diag::{Result, nearest};
use crate::ir::types::{TensorType, TypeParameter};
use crate::ir::{Dim, Stride, Symbol, Type, TypeKind};
use crate::tensor::{DType, Device};
use smallvec::SmallVec;
use std::sync::Arc;

/// Reads one type: graph text (`Dict(str, Tensor)?`) or a Python annotation (`Optional[Dict[str, Tensor]]`).
pub fn parse_type(text: &str) -> Result<Type> {
    let mut cursor = Cursor::new(text);
    let parsed = (|| {
        cursor.skip_space();
        let ty = read_type(&mut cursor)?;
        cursor.skip_space();
        if cursor.at_end() { Ok(ty) } else { Err(cursor.expected("the end of the type")) }
    })();
    parsed.map_err(|error: TextError| error.about("<type>", text))
}

impl std::str::FromStr for Type {
    type Err = crate::diag::Diagnostic;

    fn from_str(text: &str) -> Result<Type> {
        parse_type(text)
    }
}

type Constructor = fn() -> Type;

/// Types by the name that text gives them.
const NAMED: &[(&str, Constructor)] = &[
    ("Any", Type::any),
    ("AnyClassType", Type::any_class),
    ("AnyEnumType", Type::any_enum),
    ("AnyListType", Type::any_list),
    ("AnyTupleType", Type::any_tuple),
    ("Capsule", Type::capsule),
    ("Device", Type::device),
    ("DeviceIndex", Type::int),
    ("Function", function),
    ("Generator", Type::generator),
    ("Layout", Type::layout),
    ("MemoryFormat", Type::memory_format),
    ("None", Type::none),
    ("NoneType", Type::none),
    ("PyObject", Type::py_object),
    ("QScheme", Type::qscheme),
    ("Quantizer", quantizer),
    ("Scalar", Type::number),
    ("ScalarType", Type::scalar_type),
    ("Storage", Type::storage),
    ("Stream", Type::stream),
    ("SymBool", Type::sym_bool),
    ("SymFloat", Type::sym_float),
    ("SymInt", Type::sym_int),
    ("Tensor", Type::tensor),
    ("bool", Type::bool),
    ("complex", Type::complex),
    ("float", Type::float),
    ("int", Type::int),
    ("list", Type::any_list),
    ("str", Type::str),
    ("tuple", Type::any_tuple),
];

/// A type of schemas that no program has a value of.
fn quantizer() -> Type {
    Type::var("Quantizer")
}

fn function() -> Type {
    Type::new(TypeKind::Function(Symbol::new("")))
}

/// Reads a type with its `[]` and `?` suffixes.
pub(in crate::ir) fn read_type(cursor: &mut Cursor) -> Parsed<Type> {
    cursor.enter()?;
    let mut ty = read_any_base(cursor, false)?;
    // Each suffix wraps the type once more, so that they count as nesting.
    let mut suffixes = 0;
    loop {
        let after = cursor.pos();
        cursor.skip_blanks();
        if eat_brackets(cursor) {
            ty = Type::list(ty);
        } else if cursor.eat(b'?') {
            ty = Type::optional(ty);
        } else {
            cursor.set_pos(after);
            break;
        }
        cursor.enter()?;
        suffixes += 1;
    }
    for _ in 0..=suffixes {
        cursor.leave();
    }
    Ok(ty)
}

/// Steps over `[]`, which blanks may stand in.
fn eat_brackets(cursor: &mut Cursor) -> bool {
    let start = cursor.pos();
    if cursor.eat(b'[') {
        cursor.skip_space();
        if cursor.eat(b']') {
            return true;
        }
    }
    cursor.set_pos(start);
    false
}

/// Steps over blanks where a bracket follows them, so that `Float (2, 3)` reads as `Float(2, 3)`.
fn skip_to_bracket(cursor: &mut Cursor) {
    let start = cursor.pos();
    cursor.skip_blanks();
    if cursor.peek() != b'(' {
        cursor.set_pos(start);
    }
}

/// Reads a type of a schema without suffixes and alias marks: `Tensor(*)` is a tensor and a mark.
pub(super) fn read_base(cursor: &mut Cursor) -> Parsed<Type> {
    read_any_base(cursor, true)
}

/// Reads a type without suffixes. Outside of schemas `Tensor(*)` is a tensor with one size.
fn read_any_base(cursor: &mut Cursor, in_schema: bool) -> Parsed<Type> {
    if cursor.eat(b'(') {
        return Ok(Type::tuple(read_types(cursor, b')')?));
    }
    let start = cursor.pos();
    let name = cursor.dotted_name();
    match name {
        "" => return Err(cursor.expected("a type")),
        _ if !matches!(cursor.peek(), b' ' | b'\t' | b'\r') => {}
        "Dict" | "Future" | "RRef" | "Await" | "Union" => skip_to_bracket(cursor),
        _ if DType::from_type_name(name).is_some() => skip_to_bracket(cursor),
        _ => {}
    }
    let opens = cursor.peek();
    match name {
        "int" => return Ok(Type::int()),
        "Tensor" if opens == b'(' && !opens_refinement(cursor, in_schema) => return Ok(Type::tensor()),
        "Tensor" => return read_tensor(cursor, None),
        "Dict" if matches!(opens, b'(' | b'[') => {
            let [key, value] = read_parameters(cursor, name)?;
            return Ok(Type::dict(key, value));
        }
        "List" if opens == b'[' => return read_parameters(cursor, name).map(|[t]| Type::list(t)),
        "Optional" if opens == b'[' => return read_parameters(cursor, name).map(|[t]| Type::optional(t)),
        "Future" if matches!(opens, b'(' | b'[') => {
            return read_parameters(cursor, name).map(|[t]| Type::future(t));
        }
        "RRef" if matches!(opens, b'(' | b'[') => {
            return read_parameters(cursor, name).map(|[t]| Type::new(TypeKind::RRef(t)));
        }
        "Await" if matches!(opens, b'(' | b'[') => {
            return read_parameters(cursor, name).map(|[t]| Type::new(TypeKind::Await(t)));
        }
        "Tuple" if opens == b'[' => return read_tuple_annotation(cursor),
        "Union" if matches!(opens, b'(' | b'[') => return read_union(cursor),
        "NamedTuple" if opens == b'(' => return read_named_tuple(cursor),
        "Enum" if opens == b'<' => return read_enum(cursor),
        // Text gives the last part of an interface's name; the module that declares it knows the rest.
        "InterfaceType" if opens == b'<' => return read_angle_name(cursor, "interface").map(Type::interface),
        _ => {}
    }
    if let Ok(at) = NAMED.binary_search_by_key(&name, |row| row.0) {
        return Ok(NAMED[at].1());
    }
    if let Some(dtype) = DType::from_type_name(name)
        && opens == b'('
    {
        return read_tensor(cursor, Some(dtype));
    }
    if let Some(dtype) = name.strip_suffix("Tensor").and_then(DType::from_type_name) {
        return read_unranked(cursor, dtype);
    }
    named_elsewhere(cursor, name, start)
}

/// A class, a type of a dialect, or a type variable.
fn named_elsewhere(cursor: &mut Cursor, name: &str, start: usize) -> Parsed<Type> {
    if name.starts_with("__torch__.") {
        return Ok(Type::class(name));
    }
    if let Some((dialect, name)) = name.split_once('.') {
        let parameters = read_dialect_parameters(cursor)?;
        let (dialect, name) = (Symbol::new(dialect), Symbol::new(name));
        return Ok(Type::new(TypeKind::Dialect(dialect, name, parameters.into())));
    }
    if name.starts_with(|c: char| c.is_ascii_lowercase()) {
        return Ok(Type::var(name));
    }
    let error = TextError::meaning(start, cursor.pos(), format!("there is no type `{name}`"));
    let composed = ["Dict", "List", "Optional", "Tuple", "Union", "NamedTuple", "Future", "Enum"];
    let names = NAMED.iter().map(|row| row.0).chain(composed);
    Err(match nearest(name, names) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error.hint("classes are written `__torch__.Name`, types of a dialect `dialect.name`"),
    })
}

/// The types up to a closing bracket, the opening one read already.
fn read_types(cursor: &mut Cursor, close: u8) -> Parsed<Vec<Type>> {
    let mut types = Vec::new();
    cursor.skip_space();
    if cursor.eat(close) {
        return Ok(types);
    }
    loop {
        cursor.skip_space();
        types.push(read_type(cursor)?);
        cursor.skip_space();
        if !cursor.eat(b',') {
            cursor.expect(close)?;
            return Ok(types);
        }
    }
}

fn closing(open: u8) -> u8 {
    if open == b'(' { b')' } else { b']' }
}

/// The parameters of a type constructor in round or square brackets; their number must match.
fn read_parameters<const N: usize>(cursor: &mut Cursor, name: &str) -> Parsed<[Type; N]> {
    let start = cursor.pos();
    let close = closing(cursor.peek());
    cursor.advance(1);
    let types = read_types(cursor, close)?;
    let count = types.len();
    types.try_into().map_err(|_| {
        TextError::meaning(start, cursor.pos(), format!("`{name}` takes {N} type(s), {count} given"))
    })
}

fn read_tuple_annotation(cursor: &mut Cursor) -> Parsed<Type> {
    cursor.advance(1);
    if cursor.eat_str("()]") {
        return Ok(Type::tuple([]));
    }
    Ok(Type::tuple(read_types(cursor, b']')?))
}

fn read_union(cursor: &mut Cursor) -> Parsed<Type> {
    let start = cursor.pos();
    let close = closing(cursor.peek());
    cursor.advance(1);
    let members = read_members(cursor, close)?;
    if members.is_empty() {
        return Err(TextError::meaning(start, cursor.pos(), "`Union` takes at least one type"));
    }
    Ok(crate::ir::types::subtype::union(&members))
}

/// The members of a union. PyTorch's printer sets commas wrongly before and after `Scalar`: `Union(, str, Scalar)`,
/// `Union(TensorScalar)`.
fn read_members(cursor: &mut Cursor, close: u8) -> Parsed<Vec<Type>> {
    cursor.skip_space();
    cursor.eat(b',');
    cursor.skip_space();
    if close == b')' && cursor.eat_str("TensorScalar)") {
        return Ok(vec![Type::tensor(), Type::number()]);
    }
    let mut members = Vec::new();
    if cursor.eat(close) {
        return Ok(members);
    }
    loop {
        cursor.skip_space();
        members.push(read_type(cursor)?);
        cursor.skip_space();
        if !cursor.looking_at("Scalar)") && !cursor.eat(b',') {
            cursor.expect(close)?;
            return Ok(members);
        }
    }
}

/// `<Name>` after `Enum` or `InterfaceType`.
fn read_angle_name<'a>(cursor: &mut Cursor<'a>, what: &str) -> Parsed<&'a str> {
    cursor.advance(1);
    let start = cursor.pos();
    let name = cursor.dotted_name();
    if name.is_empty() {
        return Err(cursor.expected(&format!("the name of an {what}")));
    }
    // The last part is printed alone.
    if name.split('.').any(|part| part.is_empty() || part.starts_with(|c: char| c.is_ascii_digit())) {
        return Err(TextError::meaning(
            start,
            cursor.pos(),
            format!("`{name}` is not the name of an {what}"),
        ));
    }
    cursor.expect(b'>')?;
    Ok(name)
}

fn read_enum(cursor: &mut Cursor) -> Parsed<Type> {
    let name = read_angle_name(cursor, "enum class")?;
    // Text does not say what the values are; where the module declares the enum, that type takes its place.
    Ok(Type::new(TypeKind::Enum(Symbol::new(name), Type::any())))
}

/// `NamedTuple(a : int, b : float = 1.5)`; the text does not say the tuple's own name.
fn read_named_tuple(cursor: &mut Cursor) -> Parsed<Type> {
    cursor.advance(1);
    let (mut fields, mut elements, mut defaults) = (Vec::new(), Vec::new(), Vec::new());
    cursor.skip_space();
    while !cursor.eat(b')') {
        if !fields.is_empty() {
            cursor.expect(b',')?;
            cursor.skip_space();
        }
        let field = cursor.name();
        if field.is_empty() {
            return Err(cursor.expected("a field's name"));
        }
        fields.push(Symbol::new(field));
        cursor.expect(b':')?;
        cursor.skip_space();
        elements.push(read_type(cursor)?);
        cursor.skip_space();
        if cursor.eat_str("= ") {
            defaults.push(Symbol::new(read_loose(cursor)?));
        } else if !defaults.is_empty() {
            return Err(cursor.expected("a default, as the field before has one"));
        }
        cursor.skip_space();
    }
    Ok(Type::named_tuple_with_defaults(Symbol::new(""), fields, elements, defaults))
}

/// Text up to a `,` or `)` outside of brackets.
fn read_loose<'a>(cursor: &mut Cursor<'a>) -> Parsed<&'a str> {
    let start = cursor.pos();
    let mut depth = 0;
    loop {
        match cursor.peek() {
            b',' | b')' if depth == 0 => return Ok(cursor.slice(start, cursor.pos())),
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            b'\n' | 0 => return Err(cursor.expected("`)`")),
            _ => {}
        }
        cursor.advance(1);
    }
}

/// What is known of a tensor, in brackets; the name before them has been read.
fn read_tensor(cursor: &mut Cursor, dtype: Option<DType>) -> Parsed<Type> {
    let mut tensor = TensorType { dtype, ..TensorType::default() };
    if cursor.eat(b'(') {
        let mut sizes: SmallVec<[Dim; 6]> = SmallVec::new();
        let properties_only = read_refinement(cursor, &mut tensor, &mut sizes)?;
        // `Tensor(device=cpu)` has unknown rank; `Float(device=cpu)` has rank 0.
        if dtype.is_some() || !sizes.is_empty() || !properties_only {
            tensor.sizes = Some(Arc::from(sizes.as_slice()));
        }
    }
    if cursor.eat_str("[Undefined]") {
        tensor.undefined = Some(true);
    }
    if tensor == TensorType::default() {
        return Ok(Type::tensor());
    }
    Ok(Type::new(TypeKind::Tensor(tensor)))
}

/// Whether the bracket after `Tensor` holds sizes or properties, and not an alias mark of a schema.
fn opens_refinement(cursor: &Cursor, in_schema: bool) -> bool {
    let mut ahead = cursor.clone();
    ahead.advance(1);
    ahead.skip_space();
    match ahead.peek() {
        b'0'..=b'9' | b'-' | b')' => true,
        b'*' => {
            ahead.advance(1);
            ahead.skip_space();
            !in_schema || ahead.peek() == b','
        }
        b's' if ahead.peek_at(1).is_ascii_digit() => true,
        _ => ["SS(", "strides", "requires_grad", "device"].iter().any(|word| ahead.looking_at(word)),
    }
}

/// `FloatTensor(requires_grad=0, device=cpu)`: a dtype without a rank.
fn read_unranked(cursor: &mut Cursor, dtype: DType) -> Parsed<Type> {
    let mut tensor = TensorType { dtype: Some(dtype), ..TensorType::default() };
    let start = cursor.pos();
    if cursor.eat(b'(') {
        let mut sizes = SmallVec::new();
        read_refinement(cursor, &mut tensor, &mut sizes)?;
        if !sizes.is_empty() {
            return Err(TextError::meaning(
                start,
                cursor.pos(),
                "a tensor type of unknown rank has no sizes",
            )
            .hint(format!("write `{}(...)` for a type with sizes", dtype.type_name())));
        }
    }
    if cursor.eat_str("[Undefined]") {
        tensor.undefined = Some(true);
    }
    Ok(Type::new(TypeKind::Tensor(tensor)))
}

/// Sizes and properties up to the closing bracket. Says whether there were properties and no sizes.
fn read_refinement(
    cursor: &mut Cursor,
    tensor: &mut TensorType,
    sizes: &mut SmallVec<[Dim; 6]>,
) -> Parsed<bool> {
    let mut has_properties = false;
    cursor.skip_space();
    if cursor.eat(b')') {
        return Ok(false);
    }
    loop {
        cursor.skip_space();
        if cursor.eat(b'*') {
            sizes.push(Dim::Unknown);
        } else if cursor.eat_str("SS") {
            cursor.expect(b'(')?;
            cursor.skip_space();
            sizes.push(Dim::Symbol(cursor.integer()?));
            cursor.expect(b')')?;
        } else if let Some(open) = read_open(cursor)? {
            sizes.push(Dim::Open(open));
        } else if cursor.peek() == b'-' || cursor.peek().is_ascii_digit() {
            sizes.push(Dim::Known(cursor.integer()?));
        } else {
            read_property(cursor, tensor)?;
            has_properties = true;
        }
        cursor.skip_space();
        if !cursor.eat(b',') {
            cursor.expect(b')')?;
            return Ok(has_properties && sizes.is_empty());
        }
    }
}

fn read_property(cursor: &mut Cursor, tensor: &mut TensorType) -> Parsed<()> {
    let start = cursor.pos();
    let property = cursor.name();
    if !matches!(property, "requires_grad" | "device" | "strides") {
        cursor.set_pos(start);
        return Err(cursor.expected("a size, `*`, `s0`, `strides=`, `requires_grad=` or `device=`"));
    }
    cursor.expect(b'=')?;
    cursor.skip_space();
    match property {
        "requires_grad" => tensor.requires_grad = Some(cursor.integer()? != 0),
        "device" => tensor.device = Some(read_device(cursor)?),
        _ => tensor.strides = Some(read_strides(cursor)?.into()),
    }
    Ok(())
}

/// An open size, `s0`, if one stands here.
fn read_open(cursor: &mut Cursor) -> Parsed<Option<u32>> {
    if cursor.peek() != b's' || !cursor.peek_at(1).is_ascii_digit() {
        return Ok(None);
    }
    cursor.advance(1);
    let start = cursor.pos();
    let number = cursor.integer()?;
    let too_large = || TextError::meaning(start, cursor.pos(), "open sizes have numbers of 32 bits");
    u32::try_from(number).map(Some).map_err(|_| too_large())
}

/// A number, `*`, or a product of a number and open sizes, `768*s0`.
fn read_stride(cursor: &mut Cursor) -> Parsed<Stride> {
    if cursor.eat(b'*') {
        return Ok(Stride::Unknown);
    }
    let start = cursor.pos();
    let mut open = SmallVec::<[u32; 4]>::new();
    let factor = match read_open(cursor)? {
        Some(size) => {
            open.push(size);
            1
        }
        None => cursor.integer()?,
    };
    while cursor.eat(b'*') {
        open.push(read_open(cursor)?.ok_or_else(|| cursor.expected("an open size, as in `768*s0`"))?);
    }
    if open.is_empty() {
        return Ok(Stride::Known(factor));
    }
    if factor < 1 {
        return Err(TextError::meaning(start, cursor.pos(), "the factor of open sizes is positive"));
    }
    open.sort_unstable();
    Ok(Stride::Open(factor, open.as_slice().into()))
}

fn read_strides(cursor: &mut Cursor) -> Parsed<Vec<Stride>> {
    cursor.expect(b'[')?;
    let mut strides = Vec::new();
    cursor.skip_space();
    while !cursor.eat(b']') {
        if !strides.is_empty() {
            cursor.expect(b',')?;
            cursor.skip_space();
        }
        strides.push(read_stride(cursor)?);
        cursor.skip_space();
    }
    Ok(strides)
}

fn read_device(cursor: &mut Cursor) -> Parsed<Device> {
    let start = cursor.pos();
    cursor.name();
    if cursor.peek() == b':' && cursor.peek_at(1).is_ascii_digit() {
        cursor.advance(1);
        cursor.digits();
    }
    let text = cursor.slice(start, cursor.pos());
    cursor.skip_blanks();
    text.parse().map_err(|_| {
        TextError::meaning(start, cursor.pos().max(start + 1), format!("there is no device `{text}`"))
            .hint("devices are written `cpu`, `cuda`, `cuda:0`, `meta`")
    })
}

fn read_dialect_parameters(cursor: &mut Cursor) -> Parsed<Vec<TypeParameter>> {
    let mut parameters = Vec::new();
    if !cursor.eat(b'<') {
        return Ok(parameters);
    }
    loop {
        cursor.skip_space();
        parameters.push(match cursor.peek() {
            b'0'..=b'9' | b'-' => TypeParameter::Int(cursor.integer()?),
            b'"' => TypeParameter::Str(cursor.string()?.unwrap_or_default().into()),
            _ => TypeParameter::Type(read_type(cursor)?),
        });
        cursor.skip_space();
        if !cursor.eat(b',') {
            cursor.expect(b'>')?;
            return Ok(parameters);
        }
    }
}

/// The type a program sees where a schema names a refinement of int.
pub(super) fn program_type(ty: &Type) -> Type {
    match ty.kind() {
        TypeKind::ScalarType | TypeKind::Layout | TypeKind::MemoryFormat | TypeKind::SymInt => Type::int(),
        TypeKind::SymFloat => Type::float(),
        TypeKind::Var(name) if *name == "int64_t" => Type::int(),
        TypeKind::List(t) => rebuilt(ty, t, Type::list),
        TypeKind::Optional(t) => rebuilt(ty, t, Type::optional),
        TypeKind::Future(t) => rebuilt(ty, t, Type::future),
        TypeKind::Await(t) => rebuilt(ty, t, |t| Type::new(TypeKind::Await(t))),
        TypeKind::RRef(t) => rebuilt(ty, t, |t| Type::new(TypeKind::RRef(t))),
        TypeKind::Union(members) => {
            let new: Vec<Type> = members.iter().map(program_type).collect();
            if new[..] == members[..] { ty.clone() } else { crate::ir::types::subtype::union(&new) }
        }
        TypeKind::Dict(k, v) => {
            let (key, value) = (program_type(k), program_type(v));
            if key == *k && value == *v { ty.clone() } else { Type::dict(key, value) }
        }
        TypeKind::Tuple(elements, names) => {
            let new: Vec<Type> = elements.iter().map(program_type).collect();
            if new[..] == elements[..] {
                return ty.clone();
            }
            Type::new(TypeKind::Tuple(new.into(), names.clone()))
        }
        _ => ty.clone(),
    }
}

fn rebuilt(ty: &Type, element: &Type, wrap: impl Fn(Type) -> Type) -> Type {
    match element.kind() {
        TypeKind::Tensor(_) | TypeKind::Int | TypeKind::Float | TypeKind::Bool | TypeKind::Var(_) => {
            ty.clone()
        }
        _ => {
            let new = program_type(element);
            if new == *element { ty.clone() } else { wrap(new) }
        }
    }
}
