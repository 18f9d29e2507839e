//! Types in MLIR's form.

use super::super::{Dim, TensorType, Type, TypeKind, parse_type};
use super::strings::{read_string, write_string};
use crate::ir::text::lexer::{Cursor, Parsed, TextError};
use crate::tensor::DType;
use std::fmt::Write as _;
use std::sync::Arc;

/// Element types of MLIR's tensors and their dtypes.
const ELEMENTS: &[(&str, DType)] = &[
    ("f32", DType::F32),
    ("f64", DType::F64),
    ("f16", DType::F16),
    ("bf16", DType::BF16),
    ("i64", DType::I64),
    ("i32", DType::I32),
    ("i16", DType::I16),
    ("i8", DType::I8),
    ("ui8", DType::U8),
    ("ui16", DType::U16),
    ("ui32", DType::U32),
    ("ui64", DType::U64),
    ("i1", DType::Bool),
    ("complex<f32>", DType::C64),
    ("complex<f64>", DType::C128),
    ("f8E5M2", DType::F8E5m2),
    ("f8E4M3FN", DType::F8E4m3fn),
    ("f8E5M2FNUZ", DType::F8E5m2fnuz),
    ("f8E4M3FNUZ", DType::F8E4m3fnuz),
];

/// Appends a type.
pub(super) fn write_type(out: &mut String, ty: &Type) {
    match ty.kind() {
        TypeKind::Int => out.push_str("i64"),
        TypeKind::Float => out.push_str("f64"),
        TypeKind::Bool => out.push_str("i1"),
        TypeKind::Tensor(tensor) if write_tensor(out, tensor).is_some() => {}
        _ => {
            let mut text = String::new();
            ty.write_to(&mut text);
            out.push_str("!torch.type<");
            write_string(out, &text);
            out.push('>');
        }
    }
}

/// A tensor type of MLIR's own, where it says all that is known.
fn write_tensor(out: &mut String, tensor: &TensorType) -> Option<()> {
    let plain = TensorType { dtype: tensor.dtype, sizes: tensor.sizes.clone(), ..TensorType::default() };
    if plain != *tensor {
        return None;
    }
    let (element, _) = ELEMENTS.iter().find(|(_, dtype)| Some(*dtype) == tensor.dtype)?;
    let sizes = tensor.sizes.as_deref()?;
    if sizes
        .iter()
        .any(|size| matches!(size, Dim::Symbol(_) | Dim::Open(_)) || size.known().is_some_and(|n| n < 0))
    {
        return None;
    }
    out.push_str("tensor<");
    for size in sizes {
        match size.known() {
            Some(n) => {
                let _ = write!(out, "{n}x");
            }
            None => out.push_str("?x"),
        }
    }
    out.push_str(element);
    out.push('>');
    Some(())
}

/// Reads a type.
pub(super) fn read_type(cursor: &mut Cursor<'_>) -> Parsed<Type> {
    let start = cursor.pos();
    if cursor.eat_str("!torch.type<") {
        let text = read_string(cursor)?;
        cursor.expect(b'>')?;
        return parse_type(&text).map_err(|error| TextError::meaning(start, cursor.pos(), error.message()));
    }
    if cursor.eat_str("tensor<") {
        return read_tensor(cursor, start);
    }
    match word(cursor) {
        "i64" | "index" => Ok(Type::int()),
        "f64" => Ok(Type::float()),
        "i1" => Ok(Type::bool()),
        "none" => Ok(Type::none()),
        other => {
            let end = cursor.pos().max(start + 1);
            let message = match other {
                "" => "a type is expected here".to_string(),
                other => format!("no value here has the type `{other}`"),
            };
            let error = TextError::meaning(start, end, message);
            Err(error.hint("types are i64, f64, i1, index, none, tensor<2x?xf32> and !torch.type<\"...\">"))
        }
    }
}

/// A word of letters and digits.
pub(super) fn word<'a>(cursor: &mut Cursor<'a>) -> &'a str {
    let start = cursor.pos();
    while cursor.peek().is_ascii_alphanumeric() || cursor.peek() == b'_' {
        cursor.advance(1);
    }
    cursor.slice(start, cursor.pos())
}

/// What follows `tensor<`.
fn read_tensor(cursor: &mut Cursor<'_>, start: usize) -> Parsed<Type> {
    let mut sizes = Vec::new();
    let ranked = !cursor.eat_str("*x");
    if ranked {
        while let Some(size) = size(cursor) {
            sizes.push(size);
        }
    }
    let element =
        ELEMENTS.iter().filter(|(name, _)| cursor.looking_at(name)).max_by_key(|(name, _)| name.len());
    let Some((name, dtype)) = element else {
        return Err(cursor.expected("an element type such as f32 or i64"));
    };
    cursor.advance(name.len());
    if !cursor.eat(b'>') {
        let error =
            TextError::meaning(start, cursor.pos() + 1, "this tensor type has parts that no tensor here has");
        return Err(error.hint("sizes and an element type are understood, encodings are not"));
    }
    let sizes: Option<Arc<[Dim]>> = ranked.then(|| sizes.into());
    let tensor = TensorType { dtype: Some(*dtype), sizes, ..TensorType::default() };
    Ok(Type::new(TypeKind::Tensor(tensor)))
}

/// A size with its `x`; where none stands here, nothing is read.
fn size(cursor: &mut Cursor<'_>) -> Option<Dim> {
    let before = cursor.pos();
    let size = match cursor.eat(b'?') {
        true => Some(Dim::Unknown),
        false => cursor.digits().parse().ok().map(Dim::Known),
    };
    let size = size.filter(|_| cursor.eat(b'x'));
    if size.is_none() {
        cursor.set_pos(before);
    }
    size
}
