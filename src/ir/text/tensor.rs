//! Tensor constants as graph text shows them: one element in braces (`{0.5}`), up to ten as a table on one
//! line (` 1  2 [ CPULongType{2} ]`), more as `<Tensor>`. The text rounds to about five digits, so that only
//! a resource section carries a tensor exactly.

use super::lexer::{Cursor, Number};
use super::number::{write_general, write_int};
use crate::tensor::{DType, Scalar, Tensor};
use base64::Engine;
use num_complex::Complex64;
use std::fmt::Write;

/// Tensors with more elements print as `<Tensor>`.
const MAX_SHOWN: usize = 10;
/// Width that rows of a table are broken at.
const LINE: usize = 80;
/// A filled tensor read from `{x}` may not be larger than this many elements.
const MAX_FILLED: i64 = 1 << 20;

/// Appends a tensor as an attribute's text.
pub(in crate::ir) fn write_tensor(out: &mut String, tensor: &Tensor) {
    let count = tensor.numel();
    if count > MAX_SHOWN || tensor.to_scalars().is_err() {
        return out.push_str("<Tensor>");
    }
    let Ok(elements) = tensor.to_scalars() else { return };
    match elements[..] {
        [only] => write_braced(out, only),
        _ => write_table(out, tensor, &elements.iter().map(|x| x.to_f64()).collect::<Vec<_>>()),
    }
}

fn write_braced(out: &mut String, x: Scalar) {
    out.push('{');
    match x {
        Scalar::Int(x) => write_int(out, x),
        Scalar::Bool(x) => write_int(out, i64::from(x)),
        Scalar::Float(x) => write_general(out, x, 6),
        Scalar::Complex(z) => {
            out.push('(');
            write_general(out, z.re, 6);
            out.push(',');
            write_general(out, z.im, 6);
            out.push(')');
        }
    }
    out.push('}');
}

fn write_table(out: &mut String, tensor: &Tensor, elements: &[f64]) {
    let sizes: Vec<usize> = tensor.sizes().iter().map(|n| *n as usize).collect();
    let mut text = String::new();
    if !elements.is_empty() {
        match sizes[..] {
            [_] => {
                let format = NumberFormat::of(elements);
                format.write_scale(&mut text);
                for x in elements {
                    format.write(&mut text, *x);
                    text.push('\n');
                }
            }
            [_, columns] => write_matrix(&mut text, elements, columns, 0),
            _ => write_matrices(&mut text, elements, &sizes),
        }
    }
    let device = tensor.device().kind_name().to_ascii_uppercase();
    let _ = write!(text, "[ {device}{}Type{{", tensor.dtype().type_name());
    for (i, n) in sizes.iter().enumerate() {
        let _ = write!(text, "{}{n}", if i == 0 { "" } else { "," });
    }
    text.push_str("} ]");
    out.push_str(&text.replace('\n', " "));
}

/// Tables of the last two dimensions, the first of the outer indices running fastest.
fn write_matrices(out: &mut String, elements: &[f64], sizes: &[usize]) {
    let (outer, inner) = sizes.split_at(sizes.len().saturating_sub(2));
    let matrix: usize = inner.iter().product();
    let total: usize = outer.iter().product();
    for n in 0..total {
        out.push_str(if n == 0 { "" } else { "\n" });
        out.push('(');
        let (mut rest, mut place) = (n, 0);
        let mut stride = total;
        // Indices count up from the left; storage runs fastest on the right.
        let mut strides = Vec::with_capacity(outer.len());
        for size in outer {
            stride /= size.max(&1);
            strides.push(stride);
        }
        for (size, stride) in outer.iter().zip(&strides) {
            let index = rest % size;
            rest /= size;
            place += index * stride;
            let _ = write!(out, "{},", index + 1);
        }
        out.push_str(".,.) =\n");
        let columns = inner.last().copied().unwrap_or(0);
        write_matrix(out, elements.get(place * matrix..(place + 1) * matrix).unwrap_or_default(), columns, 1);
    }
}

fn write_matrix(out: &mut String, elements: &[f64], columns: usize, indent: usize) {
    if columns == 0 {
        return;
    }
    let format = NumberFormat::of(elements);
    let indentation = &"  "[..indent];
    out.push_str(indentation);
    let per_line = (LINE - indent) / (format.width + 1);
    let rows = elements.len() / columns;
    let mut first = 0;
    while first < columns {
        let last = (first + per_line).min(columns) - 1;
        if per_line < columns {
            out.push_str(if first == 0 { "" } else { "\n" });
            let _ = write!(out, "Columns {} to {}", first + 1, last + 1);
            out.push_str(indentation);
        }
        if format.scale != 1.0 {
            format.write_scale(out);
            out.push_str(indentation);
        }
        for (row, cells) in elements.chunks(columns).enumerate() {
            for (column, x) in cells.iter().enumerate().take(last + 1).skip(first) {
                format.write(out, *x);
                out.push(if column == last { '\n' } else { ' ' });
            }
            if row + 1 != rows {
                out.push_str(indentation);
                out.push_str(if format.scale != 1.0 { " " } else { "" });
            }
        }
        first = last + 1;
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Style {
    /// C's `%g`.
    General,
    /// `%.4f`
    Fixed,
    /// `%.4e`
    Scientific,
}

/// How the numbers of one table print.
struct NumberFormat {
    scale: f64,
    width: usize,
    style: Style,
}

impl NumberFormat {
    fn of(elements: &[f64]) -> NumberFormat {
        let whole = elements.iter().filter(|x| x.is_finite()).all(|x| *x == x.ceil());
        let finite = elements.iter().filter(|x| x.is_finite()).map(|x| x.abs());
        let (low, high) = finite.fold((f64::INFINITY, 0f64), |(low, high), x| (low.min(x), high.max(x)));
        let exponent = |x: f64| if x > 0.0 { x.log10().floor() as i32 + 1 } else { 1 };
        let (low, high) = if low.is_finite() { (exponent(low), exponent(high)) } else { (1, 1) };
        let plain = |scale, width, style| NumberFormat { scale, width, style };
        if whole {
            return if high > 9 {
                plain(1.0, 11, Style::Scientific)
            } else {
                plain(1.0, (high + 1) as usize, Style::General)
            };
        }
        if high - low > 4 {
            let wide = high.abs() > 99 || low.abs() > 99;
            return plain(1.0, 11 + usize::from(wide), Style::Scientific);
        }
        if !(0..=5).contains(&high) {
            return plain(10f64.powi(high - 1), 7, Style::Fixed);
        }
        plain(1.0, if high == 0 { 7 } else { (high + 6) as usize }, Style::Fixed)
    }

    fn write_scale(&self, out: &mut String) {
        if self.scale != 1.0 {
            write_general(out, self.scale, 6);
            out.push_str(" *\n");
        }
    }

    fn write(&self, out: &mut String, x: f64) {
        let x = x / self.scale;
        let mut text = String::new();
        if !x.is_finite() || self.style == Style::General {
            write_general(&mut text, x, 6);
        } else if self.style == Style::Fixed {
            let _ = write!(text, "{x:.4}");
        } else {
            let scientific = format!("{x:.4e}");
            let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
            let exponent: i32 = exponent.parse().unwrap_or(0);
            let sign = if exponent < 0 { '-' } else { '+' };
            let _ = write!(text, "{mantissa}e{sign}{:02}", exponent.abs());
        }
        let _ = write!(out, "{text:>0$}", self.width);
    }
}

/// Appends a tensor with all its content: `tensor(Float(2, 3), "base64 of its little-endian bytes")`. Of a tensor
/// whose bytes cannot be read here, its type and no content.
pub(super) fn write_exact(out: &mut String, tensor: &Tensor) {
    let sizes: Vec<String> = tensor.sizes().iter().map(i64::to_string).collect();
    let _ = write!(out, "tensor({}({}), \"", tensor.dtype().type_name(), sizes.join(", "));
    let bytes = tensor.to_bytes().unwrap_or_default();
    base64::engine::general_purpose::STANDARD.encode_string(bytes, out);
    out.push_str("\")");
}

/// Reads what [`write_exact`] wrote, the cursor after the opening bracket.
pub(super) fn read_exact(cursor: &mut Cursor) -> Option<Tensor> {
    let ty = super::type_parse::read_type(cursor).ok()?;
    let known = ty.as_tensor()?;
    let sizes: Option<Vec<i64>> = known.sizes.as_ref()?.iter().map(|d| d.known()).collect();
    if !cursor.eat(b',') {
        return None;
    }
    cursor.skip_space();
    let text = cursor.string().ok()??;
    let bytes = base64::engine::general_purpose::STANDARD.decode(text.as_bytes()).ok()?;
    let tensor = Tensor::from_bytes(known.dtype?, &sizes?, &bytes).ok()?;
    cursor.eat(b')').then_some(tensor)
}

/// Whether two tensors have the same dtype, sizes and bits.
pub(super) fn same_content(a: &Tensor, b: &Tensor) -> bool {
    a.dtype() == b.dtype()
        && a.sizes() == b.sizes()
        && matches!((a.to_bytes(), b.to_bytes()), (Ok(x), Ok(y)) if x == y)
}

/// A tensor of the given shape whose elements are all `x`; None if it would be too large or has a dtype that
/// cannot be computed with.
pub(super) fn filled(x: Scalar, dtype: Option<DType>, sizes: &[i64]) -> Option<Tensor> {
    let default = match x {
        Scalar::Int(_) => DType::I64,
        Scalar::Float(_) => DType::F32,
        Scalar::Complex(_) => DType::C64,
        Scalar::Bool(_) => DType::Bool,
    };
    let dtype = dtype.unwrap_or(default);
    let count = sizes.iter().try_fold(1i64, |n, size| if *size < 0 { None } else { n.checked_mul(*size) })?;
    if count > MAX_FILLED || !dtype.is_computable() {
        return None;
    }
    Tensor::full(dtype, sizes, x).ok()
}

/// Whether a table comes next, and where it ends.
pub(super) fn table_end(cursor: &Cursor) -> Option<usize> {
    let text = cursor.rest();
    let bytes = text.as_bytes();
    let mut in_brackets = false;
    for (i, b) in bytes.iter().enumerate() {
        match b {
            b'(' if !in_brackets => in_brackets = true,
            b')' if in_brackets => in_brackets = false,
            // Commas stand only in the indices `(1,.,.)`; another one ends the value.
            b',' if !in_brackets => return None,
            b'[' if !in_brackets && text[i..].starts_with("[ ") => {
                let end = i + text[i..].find("} ]")? + 3;
                let kind = text.get(i + 2..end - 3)?;
                let (name, sizes) = kind.split_once("Type{")?;
                let plain = name.bytes().all(|b| b.is_ascii_alphanumeric());
                let listed = sizes.bytes().all(|b| b.is_ascii_digit() || b == b',');
                return (plain && listed).then(|| cursor.pos() + end);
            }
            b'0'..=b'9' | b' ' | b'.' | b',' | b'-' | b'+' | b'=' | b'*' => {}
            // Words of a table: inf, nan, an exponent, "Columns 1 to 7".
            b'i' | b'n' | b'f' | b'a' | b'e' | b'C' | b'o' | b'l' | b'u' | b'm' | b's' | b't' => {}
            _ => return None,
        }
    }
    None
}

/// Reads a table. None if it does not say everything (complex numbers, columns in groups), so that the text
/// itself must be kept.
pub(super) fn read_table(text: &str) -> Option<Tensor> {
    let (body, kind) = text.rsplit_once("[ ")?;
    let (name, sizes) = kind.strip_suffix("} ]")?.split_once("Type{")?;
    let dtype = DType::from_type_name(name.strip_prefix("CPU")?)?;
    if dtype.is_complex() || !dtype.is_computable() || body.contains("Columns") {
        return None;
    }
    let sizes: Option<Vec<i64>> = sizes.split(',').map(|n| n.parse().ok()).collect();
    let sizes = sizes?;
    let count =
        sizes.iter().try_fold(1i64, |n, size| n.checked_mul(*size)).filter(|n| *n <= MAX_SHOWN as i64)?;
    let mut elements = place_by_matrix(&read_cells(body)?, &sizes)?;
    if elements.len() != count as usize {
        return None;
    }
    let tensor = if dtype.is_floating() {
        Tensor::from_vec(&elements, &sizes).ok()?.to_dtype(dtype).ok()?
    } else {
        elements.iter_mut().for_each(|x| *x = x.round());
        let whole: Vec<i64> = elements.iter().map(|x| Scalar::Float(*x).to_i64()).collect();
        Tensor::from_vec(&whole, &sizes).ok()?.to_dtype(dtype).ok()?
    };
    let mut again = String::new();
    write_tensor(&mut again, &tensor);
    (again == text).then_some(tensor)
}

/// The matrices of a table in the order in which they stand: their indices (none for a plain table) and cells.
fn read_cells(body: &str) -> Option<Vec<(Vec<usize>, Vec<f64>)>> {
    let mut cursor = Cursor::new(body);
    let mut matrices = vec![(Vec::new(), Vec::new())];
    let mut scale = 1.0;
    loop {
        cursor.skip_space();
        if cursor.at_end() {
            return Some(matrices);
        }
        if cursor.eat(b'(') {
            matrices.push((read_indices(&mut cursor)?, Vec::new()));
            scale = 1.0;
            continue;
        }
        let x = match cursor.number().ok()?? {
            Number::Int(x) => x as f64,
            Number::Float(x) => x,
            Number::Imaginary(_) => return None,
        };
        if cursor.eat_str(" *") {
            scale = x;
        } else {
            matrices.last_mut()?.1.push(x * scale);
        }
    }
}

/// `1,2,.,.) = ` after its opening bracket.
fn read_indices(cursor: &mut Cursor) -> Option<Vec<usize>> {
    let mut indices = Vec::new();
    while !cursor.eat_str(".,.) =") {
        indices.push(cursor.digits().parse::<usize>().ok()?.checked_sub(1)?);
        if !cursor.eat(b',') {
            return None;
        }
    }
    Some(indices)
}

/// Puts the cells of matrices into logical order.
fn place_by_matrix(matrices: &[(Vec<usize>, Vec<f64>)], sizes: &[i64]) -> Option<Vec<f64>> {
    if sizes.len() < 3 {
        return matrices.first().map(|(_, cells)| cells.clone());
    }
    let mut ordered: Vec<_> = matrices.iter().filter(|(indices, _)| !indices.is_empty()).collect();
    ordered.sort_by(|a, b| a.0.cmp(&b.0));
    Some(ordered.into_iter().flat_map(|(_, cells)| cells.iter().copied()).collect())
}

/// The number in `{0.5}` or `{(1,2)}`, the cursor after the opening brace. None (and the cursor where it was)
/// if something else stands there.
pub(super) fn read_braced(cursor: &mut Cursor) -> Option<Scalar> {
    let start = cursor.pos();
    let value = braced_number(cursor);
    if value.is_none() {
        cursor.set_pos(start);
    }
    value
}

fn braced_number(cursor: &mut Cursor) -> Option<Scalar> {
    let mut number = || cursor.number().ok().flatten();
    let value = match number() {
        Some(Number::Int(x)) => Scalar::Int(x),
        Some(Number::Float(x)) => Scalar::Float(x),
        Some(Number::Imaginary(_)) => return None,
        None => {
            if !cursor.eat(b'(') {
                return None;
            }
            let part = |cursor: &mut Cursor| match cursor.number().ok()?? {
                Number::Int(x) => Some(x as f64),
                Number::Float(x) => Some(x),
                Number::Imaginary(_) => None,
            };
            let re = part(cursor)?;
            if !cursor.eat(b',') {
                return None;
            }
            let im = part(cursor)?;
            if !cursor.eat(b')') {
                return None;
            }
            Scalar::Complex(Complex64::new(re, im))
        }
    };
    cursor.eat(b'}').then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown<T: crate::tensor::Element>(elements: &[T], sizes: &[i64]) -> String {
        let mut out = String::new();
        write_tensor(&mut out, &Tensor::from_vec(elements, sizes).unwrap());
        out
    }

    /// Each row was printed by PyTorch.
    #[test]
    fn tensors_as_pytorch_shows_them() {
        assert_eq!(shown(&[1.541f32], &[]), "{1.541}");
        assert_eq!(shown(&[1i64, 2, 3], &[3]), " 1  2  3 [ CPULongType{3} ]");
        assert_eq!(shown::<f32>(&[], &[2, 0, 3]), "[ CPUFloatType{2,0,3} ]");
        assert_eq!(
            shown(&[0.5f32, 0.25, 0.0, 1.0], &[2, 2]),
            " 0.5000  0.2500  0.0000  1.0000 [ CPUFloatType{2,2} ]"
        );
        assert_eq!(
            shown(&[0i64, 1, 2, 3, 4, 5, 6, 7], &[2, 2, 2]),
            "(1,.,.) =   0  1   2  3  (2,.,.) =   4  5   6  7 [ CPULongType{2,2,2} ]"
        );
        assert_eq!(shown(&[1_000_000_000i64, 5], &[2]), " 1.0000e+09  5.0000e+00 [ CPULongType{2} ]");
        assert_eq!(shown(&[1.5f32, f32::INFINITY], &[2]), " 1.5000     inf [ CPUFloatType{2} ]");
        assert_eq!(shown(&[0f32; 11], &[11]), "<Tensor>");
    }

    #[test]
    fn tables_are_read_back() {
        for text in [
            " 1  2  3 [ CPULongType{3} ]",
            "(1,.,.) =   0  1   2  3  (2,.,.) =   4  5   6  7 [ CPULongType{2,2,2} ]",
            "1e-08 *  3.7047  0.0000  0.0000   0.0000  0.0000  0.0000 [ CPUFloatType{2,3} ]",
            "[ CPUFloatType{0} ]",
            " 0  1 [ CPUBoolType{2} ]",
        ] {
            let end = table_end(&Cursor::new(text));
            assert_eq!(end, Some(text.len()), "{text}");
            let tensor = read_table(text).unwrap_or_else(|| panic!("{text}"));
            let mut out = String::new();
            write_tensor(&mut out, &tensor);
            assert_eq!(out, text);
        }
        assert!(read_table(" 0  1 [ CPUComplexFloatType{2} ]").is_none());
        assert!(read_table(" 0  1 [ CPUFloatType{2,9223372036854775807,9} ]").is_none());
        assert_eq!(table_end(&Cursor::new("1, 2]](%x) [ CPULongType{1} ]")), None);
    }
}
