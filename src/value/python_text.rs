//! Values as Python's `print` shows them: text without quotes, containers with the `repr` of what they hold, tensors in rows
//! of numbers of one width, those with more than 1,000 elements by their edges. Must not know ops.

use super::Value;
use super::bytes;
use super::tensor_text::quantized_scalars;
use super::text::MAX_TEXT;
use crate::diag::{Diagnostic, Result};
use crate::tensor::{DType, Quantizer, Scalar, Tensor};
use std::fmt::Write;

/// Tensors with more elements are shown by their edges.
const THRESHOLD: usize = 1000;
/// Number of elements at each edge.
const EDGE: usize = 3;
/// Characters in a line.
const LINE: usize = 80;
/// Digits after the point.
const DIGITS: usize = 4;
/// Columns that tensors are indented by: the length of `tensor(`.
const INDENT: usize = 7;
/// Containers nested deeper than this are cut.
const MAX_DEPTH: usize = 100;

/// The value as Python's `print` shows it, under PyTorch's default print options; with `full` every element of every tensor.
/// Fails where the text would be longer than [`MAX_TEXT`].
pub fn python_text(value: &Value, full: bool) -> Result<String> {
    let mut out = String::new();
    match value {
        Value::Str(text) => out.push_str(&String::from_utf8_lossy(&bytes::bytes(text))),
        value => write_value(&mut out, value, full, 0)?,
    }
    Ok(out)
}

fn write_value(out: &mut String, value: &Value, full: bool, depth: usize) -> Result<()> {
    if out.len() > MAX_TEXT {
        let error = Diagnostic::runtime(format!("the text of a value takes more than {MAX_TEXT} bytes"));
        return Err(error.hint("write it to a file with --output"));
    }
    if depth > MAX_DEPTH {
        out.push_str("...");
        return Ok(());
    }
    match value {
        Value::Tensor(tensor) => write_tensor(out, tensor, full)?,
        Value::List(list) => write_items(out, ["[", "]"], &list.to_vec(), &[], full, depth)?,
        Value::Tuple(tuple) => match tuple.names() {
            Some(names) => {
                let class = names.name.as_str().rsplit('.').next().unwrap_or_default();
                let fields: Vec<&str> = names.fields.iter().map(|name| name.as_str()).collect();
                write_items(out, [&format!("{class}("), ")"], tuple.items(), &fields, full, depth)?;
            }
            None if tuple.items().len() == 1 => {
                write_items(out, ["(", ",)"], tuple.items(), &[], full, depth)?;
            }
            None => write_items(out, ["(", ")"], tuple.items(), &[], full, depth)?,
        },
        Value::Dict(dict) => {
            out.push('{');
            let entries: Vec<_> = dict.entries().iter().map(|(k, v)| (k.to_value(), v.clone())).collect();
            for (n, (key, item)) in entries.iter().enumerate() {
                out.push_str(if n > 0 { ", " } else { "" });
                write_value(out, key, full, depth + 1)?;
                out.push_str(": ");
                write_value(out, item, full, depth + 1)?;
            }
            out.push('}');
        }
        Value::Str(text) => write_str(out, text),
        Value::Int(_) | Value::Float(_) | Value::Complex(_) | Value::Bool(_) => {
            out.push_str(&number_text(value.to_scalar()?));
        }
        Value::None | Value::Uninitialized => out.push_str("None"),
        Value::Device(device) => {
            let _ = write!(out, "device(type='{}'", device.kind_name());
            if let Some(index) = device.index() {
                let _ = write!(out, ", index={index}");
            }
            out.push(')');
        }
        Value::Enum(member) => {
            let class = member.class.as_str();
            let _ = write!(out, "<{}.{}>", class.rsplit('.').next().unwrap_or(class), member.name);
        }
        Value::Object(object) => {
            let _ = write!(out, "<{} object>", object.class());
        }
        Value::Generator(_) => out.push_str("<torch._C.Generator object>"),
        Value::Future(future) => write_value(out, &future.wait()?, full, depth + 1)?,
        Value::Function(name) => out.push_str(name.as_str()),
    }
    Ok(())
}

/// Items between marks, each after its field's name where there are names.
fn write_items(
    out: &mut String,
    marks: [&str; 2],
    items: &[Value],
    fields: &[&str],
    full: bool,
    depth: usize,
) -> Result<()> {
    out.push_str(marks[0]);
    for (n, item) in items.iter().enumerate() {
        out.push_str(if n > 0 { ", " } else { "" });
        if let Some(field) = fields.get(n) {
            let _ = write!(out, "{field}=");
        }
        write_value(out, item, full, depth + 1)?;
    }
    out.push_str(marks[1]);
    Ok(())
}

/// Text as Python's `repr` quotes it.
pub fn write_str(out: &mut String, text: &str) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if (c as u32) < 0x20 || c as u32 == 0x7f => {
                let _ = write!(out, "\\x{:02x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push(quote);
}

/// A number as Python's `repr`: the shortest digits that read back as the same float.
pub fn number_text(number: Scalar) -> String {
    match number {
        Scalar::Int(x) => x.to_string(),
        Scalar::Bool(x) => if x { "True" } else { "False" }.to_string(),
        Scalar::Float(x) => float_text(x),
        Scalar::Complex(z) => {
            let strip = |t: String| t.strip_suffix(".0").map(str::to_string).unwrap_or(t);
            let (re, im) = (strip(float_text(z.re)), strip(float_text(z.im)));
            if z.re == 0.0 && z.re.is_sign_positive() {
                format!("{im}j")
            } else {
                let sign = if im.starts_with('-') { "" } else { "+" };
                format!("({re}{sign}{im}j)")
            }
        }
    }
}

fn float_text(x: f64) -> String {
    if x.is_nan() {
        return "nan".to_string();
    }
    if x.is_infinite() {
        return if x > 0.0 { "inf" } else { "-inf" }.to_string();
    }
    let size = x.abs();
    if size != 0.0 && !(1e-4..1e16).contains(&size) {
        return with_exponent(&format!("{x:e}"));
    }
    let text = format!("{x}");
    if text.contains('.') { text } else { format!("{text}.0") }
}

/// Rust's `1.5e-5` as C and Python write it: `1.5e-05`.
fn with_exponent(text: &str) -> String {
    let (digits, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

// --- tensors ---

fn write_tensor(out: &mut String, tensor: &Tensor, full: bool) -> Result<()> {
    let mut text = String::from("tensor(");
    let summarize = !full && tensor.numel() > THRESHOLD;
    // A digit and a separator for each element.
    if !summarize && tensor.numel() > MAX_TEXT / 2 {
        let error = Diagnostic::runtime(format!("the text of {} elements is too long", tensor.numel()));
        return Err(error.hint("write them to a file with --output"));
    }
    let shown = Shown::of(tensor, summarize)?;
    match tensor.numel() {
        0 => text.push_str("[]"),
        _ => shown.write(&mut text),
    }
    // The last line counts with the letters that PyTorch counts: the break before it, and one more.
    let mut last = text.len() - text.rfind('\n').unwrap_or(0) + 1 + usize::from(!text.contains('\n'));
    for suffix in suffixes(tensor)? {
        if last + suffix.len() + 2 > LINE {
            text.push_str(",\n");
            text.push_str(&" ".repeat(INDENT));
            last = INDENT + suffix.len();
        } else {
            text.push_str(", ");
            last += suffix.len() + 2;
        }
        text.push_str(&suffix);
    }
    text.push(')');
    out.push_str(&text);
    Ok(())
}

/// What follows the numbers.
fn suffixes(tensor: &Tensor) -> Result<Vec<String>> {
    let mut out = Vec::new();
    let (dtype, sizes) = (tensor.dtype(), tensor.sizes());
    let size = || {
        let comma = if sizes.len() == 1 { "," } else { "" };
        let sizes: Vec<String> = sizes.iter().map(i64::to_string).collect();
        format!("size=({}{comma})", sizes.join(", "))
    };
    let device = tensor.device();
    if device.kind_name() != "cpu" {
        out.push(format!("device='{device}'"));
    }
    let plain = matches!(dtype, DType::F32 | DType::C64 | DType::I64 | DType::Bool);
    if let Some(quantizer) = tensor.quantizer() {
        out.push(size());
        out.push(format!("dtype=torch.{}", dtype.name()));
        out.push(format!("quantization_scheme=torch.{}", quantizer.scheme()));
        scales(&quantizer, &mut out)?;
    } else if tensor.numel() == 0 {
        if sizes.len() != 1 {
            out.push(size());
        }
        if dtype != DType::F32 {
            out.push(format!("dtype=torch.{}", dtype.name()));
        }
    } else if !plain {
        out.push(format!("dtype=torch.{}", dtype.name()));
    }
    if tensor.requires_grad() {
        out.push("requires_grad=True".to_string());
    }
    Ok(out)
}

fn scales(quantizer: &Quantizer, out: &mut Vec<String>) -> Result<()> {
    let list = |tensor: Tensor| -> Result<String> {
        let mut text = String::new();
        write_tensor(&mut text, &tensor, false)?;
        Ok(text)
    };
    let (scales, zero_points, axis) = match quantizer {
        Quantizer::PerTensor { scale, zero_point } => {
            out.push(format!("scale={}", float_text(*scale)));
            out.push(format!("zero_point={zero_point}"));
            return Ok(());
        }
        Quantizer::PerChannel { scales, zero_points, axis } => {
            let count = [scales.len() as i64];
            (list(Tensor::from_vec(scales, &count)?)?, list(Tensor::from_vec(zero_points, &count)?)?, axis)
        }
        Quantizer::PerChannelFloat { scales, zero_points, axis } => {
            let count = [scales.len() as i64];
            (list(Tensor::from_vec(scales, &count)?)?, list(Tensor::from_vec(zero_points, &count)?)?, axis)
        }
    };
    out.extend([format!("scale={scales}"), format!("zero_point={zero_points}"), format!("axis={axis}")]);
    Ok(())
}

/// The elements that are shown.
struct Shown {
    /// The sizes of the whole tensor, and how many of each dimension are shown.
    sizes: Vec<(usize, usize)>,
    elements: Vec<Scalar>,
    format: Format,
    imaginary: Option<Format>,
}

impl Shown {
    fn of(tensor: &Tensor, summarize: bool) -> Result<Shown> {
        let whole: Vec<usize> = tensor.sizes().iter().map(|n| *n as usize).collect();
        let short = |n: usize| if summarize && n > 2 * EDGE { 2 * EDGE } else { n };
        let sizes: Vec<(usize, usize)> = whole.iter().map(|n| (*n, short(*n))).collect();
        let elements = match quantized_scalars(tensor) {
            Some(all) => {
                let all = all?;
                positions(&sizes).into_iter().filter_map(|at| all.get(at).copied()).collect()
            }
            None if summarize => {
                let at = positions(&sizes);
                tensor.take_positions(&at, &[at.len() as i64])?.to_scalars()?
            }
            None => tensor.to_scalars()?,
        };
        let dtype = tensor.dtype();
        let part = |pick: fn(Scalar) -> f64| elements.iter().map(|x| pick(*x)).collect::<Vec<f64>>();
        let real = |x: Scalar| x.to_complex().re;
        let format = match dtype.is_floating() || dtype.is_complex() || tensor.is_quantized() {
            true => Format::of_floats(&part(real)),
            false => Format::of_whole(&elements),
        };
        let imaginary = dtype.is_complex().then(|| Format::of_floats(&part(|x| x.to_complex().im)));
        Ok(Shown { sizes, elements, format, imaginary })
    }

    fn write(&self, out: &mut String) {
        let mut next = 0;
        self.dimension(out, 0, &mut next);
    }

    /// One dimension from outside to inside; tensors have at most 64 that this recursion goes through.
    fn dimension(&self, out: &mut String, dim: usize, next: &mut usize) {
        let Some((size, shown)) = self.sizes.get(dim).copied() else {
            out.push_str(&self.element(*next));
            *next += 1;
            return;
        };
        if dim + 1 == self.sizes.len() {
            return self.vector(out, INDENT + dim, size, shown, next);
        }
        let between = format!(",{}{}", "\n".repeat(self.sizes.len() - 1 - dim), " ".repeat(INDENT + dim + 1));
        out.push('[');
        for n in 0..shown {
            if n > 0 {
                out.push_str(&between);
            }
            if shown < size && n == EDGE {
                out.push_str("...");
                out.push_str(&between);
            }
            self.dimension(out, dim + 1, next);
        }
        out.push(']');
    }

    fn vector(&self, out: &mut String, indent: usize, size: usize, shown: usize, next: &mut usize) {
        let mut width = self.format.width + 2;
        width += self.imaginary.as_ref().map_or(0, |imaginary| imaginary.width + 1);
        let in_line = (LINE.saturating_sub(indent) / width).max(1);
        let mut words: Vec<String> = Vec::with_capacity(shown + 1);
        for n in 0..shown {
            if shown < size && n == EDGE {
                words.push(" ...".to_string());
            }
            words.push(self.element(*next));
            *next += 1;
        }
        let lines: Vec<String> = words.chunks(in_line).map(|line| line.join(", ")).collect();
        let _ = write!(out, "[{}]", lines.join(&format!(",\n{}", " ".repeat(indent + 1))));
    }

    fn element(&self, n: usize) -> String {
        let Some(x) = self.elements.get(n).copied() else { return String::new() };
        let Some(imaginary) = &self.imaginary else { return self.format.number(x) };
        let z = x.to_complex();
        let second = imaginary.number(Scalar::Float(z.im));
        let second = second.trim_start();
        let sign = if second.starts_with(['+', '-']) { "" } else { "+" };
        format!("{}{sign}{second}j", self.format.number(Scalar::Float(z.re)))
    }
}

/// Logical positions of what is shown.
fn positions(sizes: &[(usize, usize)]) -> Vec<usize> {
    let mut out = vec![0usize];
    for (size, shown) in sizes {
        let index = |n: usize| if *shown < *size && n >= EDGE { size - shown + n } else { n };
        out = out.iter().flat_map(|at| (0..*shown).map(move |n| at * size + index(n))).collect();
    }
    out
}

/// How the numbers of a tensor are shown.
struct Format {
    floating: bool,
    whole: bool,
    scientific: bool,
    width: usize,
}

impl Format {
    fn of_whole(elements: &[Scalar]) -> Format {
        let width = elements.iter().map(|x| number_text(*x).len()).max().unwrap_or(1).max(1);
        Format { floating: false, whole: true, scientific: false, width }
    }

    fn of_floats(numbers: &[f64]) -> Format {
        let mut format = Format { floating: true, whole: true, scientific: false, width: 1 };
        let finite = || numbers.iter().copied().filter(|x| x.is_finite() && *x != 0.0);
        let (low, high) =
            finite().fold((f64::INFINITY, 0.0f64), |(l, h), x| (l.min(x.abs()), h.max(x.abs())));
        if high == 0.0 {
            return format;
        }
        format.whole = finite().all(|x| x == x.ceil());
        format.scientific = high / low > 1000.0 || high > 1.0e8 || low < 1.0e-4;
        format.width = finite().map(|x| format.bare(x).len()).max().unwrap_or(1).max(1);
        format
    }

    /// A number without the blanks before it.
    fn bare(&self, x: f64) -> String {
        if x.is_nan() {
            return "nan".to_string();
        }
        if x.is_infinite() {
            return if x > 0.0 { "inf" } else { "-inf" }.to_string();
        }
        if self.scientific {
            with_exponent(&format!("{x:.DIGITS$e}"))
        } else if self.whole {
            format!("{x:.0}.")
        } else {
            format!("{x:.DIGITS$}")
        }
    }

    fn number(&self, x: Scalar) -> String {
        let text = if self.floating { self.bare(x.to_complex().re) } else { number_text(x) };
        format!("{text:>width$}", width = self.width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(numbers: &[f32], sizes: &[i64]) -> String {
        python_text(&Value::Tensor(Tensor::from_vec(numbers, sizes).expect("fits")), false).expect("text")
    }

    #[test]
    fn tensors_read_as_in_python() {
        assert_eq!(shown(&[1.0, 2.5], &[2]), "tensor([1.0000, 2.5000])");
        assert_eq!(shown(&[1.0, -2.0, 0.0, 3.0], &[2, 2]), "tensor([[ 1., -2.],\n        [ 0.,  3.]])");
        assert_eq!(shown(&[1e-6, 1.0], &[2]), "tensor([1.0000e-06, 1.0000e+00])");
        assert_eq!(shown(&[f32::NAN, f32::INFINITY, 1.5], &[3]), "tensor([   nan,    inf, 1.5000])");
        assert_eq!(shown(&[2.5], &[]), "tensor(2.5000)");
        assert_eq!(shown(&[], &[0, 3]), "tensor([], size=(0, 3))");
        let long: Vec<f32> = (0..2000).map(|n| n as f32).collect();
        assert_eq!(
            shown(&long, &[2000]),
            "tensor([0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 1.9970e+03, 1.9980e+03,\n        1.9990e+03])"
        );
    }

    #[test]
    fn containers_hold_what_python_shows_of_their_parts() {
        let inner = Value::tuple(vec![Value::Int(1), Value::str("a'b"), Value::Float(2.0)]);
        assert_eq!(python_text(&inner, false).expect("text"), "(1, \"a'b\", 2.0)");
        assert_eq!(python_text(&Value::str("plain"), false).expect("text"), "plain");
    }
}
