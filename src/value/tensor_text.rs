//! Tensors as C++ prints them: rows of numbers in columns of one width, then type and sizes.

use crate::diag::Result;
use crate::ir::text::number::write_general;
use crate::tensor::{Quantizer, Scalar, Tensor};
use std::fmt::Write;

/// Characters in a line.
const LINE: i64 = 80;

/// How the numbers of a tensor are shown.
struct Format {
    /// What they are divided by.
    scale: f64,
    /// Columns each takes.
    width: i64,
    style: Style,
}

#[derive(Clone, Copy)]
enum Style {
    General,
    Fixed,
    Scientific,
}

/// Appends a tensor.
pub(super) fn write_tensor(out: &mut String, tensor: &Tensor) {
    let sizes = tensor.sizes();
    let scalars = match quantized_scalars(tensor).unwrap_or_else(|| tensor.to_scalars()) {
        Ok(scalars) => scalars,
        Err(error) => {
            let _ = write!(out, "<{}>", error.message());
            return;
        }
    };
    // Of complex numbers the real part is shown, as upstream converts every tensor to double.
    let numbers: Vec<f64> = scalars.iter().map(|s| s.to_complex().re).collect();
    match &sizes[..] {
        [] => {
            if let Some(x) = numbers.first() {
                write_shortest(out, *x);
                out.push('\n');
            }
        }
        _ if numbers.is_empty() => {}
        [_] => write_vector(out, &numbers),
        [rows, columns] => write_matrix(out, &numbers, *rows as usize, *columns as usize, 0),
        _ => write_slices(out, &numbers, &sizes),
    }
    let shape: Vec<String> = sizes.iter().map(i64::to_string).collect();
    let device = tensor.device().kind_name().to_uppercase();
    let backend = if tensor.is_quantized() { "Quantized" } else { "" };
    let _ = write!(out, "[ {backend}{device}{}Type{{{}}}", tensor.dtype().type_name(), shape.join(","));
    if let Some(quantizer) = tensor.quantizer() {
        write_quantizer(out, &quantizer);
    }
    out.push_str(" ]");
}

/// The real numbers of a quantized tensor of whole elements.
pub(super) fn quantized_scalars(tensor: &Tensor) -> Option<Result<Vec<Scalar>>> {
    let quantizer = tensor.quantizer()?;
    let sizes = tensor.sizes();
    let inner = |axis: usize| sizes.iter().skip(axis + 1).product::<i64>().max(1) as usize;
    let channel = |n: usize| quantizer.axis().map_or(0, |axis| n / inner(axis) % sizes[axis].max(1) as usize);
    let integers = match tensor.integers().to_vec_as::<i64>() {
        Ok(integers) => integers,
        Err(error) => return Some(Err(error)),
    };
    let real = |(n, x): (usize, &i64)| {
        let c = channel(n);
        let real = match &*quantizer {
            Quantizer::PerTensor { scale, zero_point } => (x - zero_point) as f32 * *scale as f32,
            Quantizer::PerChannel { scales, zero_points, .. } => {
                (x - zero_points.get(c).copied().unwrap_or(0)) as f32
                    * scales.get(c).copied().unwrap_or(1.0) as f32
            }
            Quantizer::PerChannelFloat { scales, zero_points, .. } => {
                (*x as f32 - zero_points.get(c).copied().unwrap_or(0.0))
                    * scales.get(c).copied().unwrap_or(1.0)
            }
        };
        Scalar::Float(real.into())
    };
    Some(Ok(integers.iter().enumerate().map(real).collect()))
}

fn write_quantizer(out: &mut String, quantizer: &Quantizer) {
    let _ = write!(out, ", qscheme: {}, ", quantizer.scheme());
    let list = |numbers: Result<Tensor>| {
        let mut text = String::new();
        if let Ok(numbers) = numbers {
            write_tensor(&mut text, &numbers);
        }
        text
    };
    let (scales, zero_points, axis) = match quantizer {
        Quantizer::PerTensor { scale, zero_point } => {
            out.push_str("scale: ");
            write_general(out, *scale, 6);
            let _ = write!(out, ", zero_point: {zero_point}");
            return;
        }
        Quantizer::PerChannel { scales, zero_points, axis } => {
            let count = [scales.len() as i64];
            (list(Tensor::from_vec(scales, &count)), list(Tensor::from_vec(zero_points, &count)), axis)
        }
        Quantizer::PerChannelFloat { scales, zero_points, axis } => {
            let count = [scales.len() as i64];
            (list(Tensor::from_vec(scales, &count)), list(Tensor::from_vec(zero_points, &count)), axis)
        }
    };
    let _ = write!(out, "scales: {scales}, zero_points: {zero_points}, axis: {axis}");
}

/// The fewest digits that read back as the same number.
fn write_shortest(out: &mut String, x: f64) {
    if !x.is_finite() {
        return write_general(out, x, 6);
    }
    let text = format!("{x:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let _ = write!(out, "{x}");
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        let _ = write!(out, "{digits}e{sign}{:02}", exponent.abs());
    }
}

/// Chooses scale, width and style so that all numbers fit one column.
fn format(numbers: &[f64]) -> Format {
    let whole = numbers.iter().all(|x| !x.is_finite() || *x == x.ceil());
    let (mut low, mut high) = (1.0, 1.0);
    let mut finite = numbers.iter().filter(|x| x.is_finite());
    if let Some(first) = finite.next() {
        (low, high) = (first.abs(), first.abs());
        for x in finite {
            low = f64::min(low, x.abs());
            high = f64::max(high, x.abs());
        }
        let exponent = |x: f64| if x == 0.0 { 1.0 } else { x.log10().floor() + 1.0 };
        (low, high) = (exponent(low), exponent(high));
    }
    if whole {
        return if high > 9.0 {
            Format { scale: 1.0, width: 11, style: Style::Scientific }
        } else {
            Format { scale: 1.0, width: high as i64 + 1, style: Style::General }
        };
    }
    if high - low > 4.0 {
        let width = if high.abs() > 99.0 || low.abs() > 99.0 { 12 } else { 11 };
        return Format { scale: 1.0, width, style: Style::Scientific };
    }
    if !(0.0..=5.0).contains(&high) {
        return Format { scale: 10f64.powf(high - 1.0), width: 7, style: Style::Fixed };
    }
    let width = if high == 0.0 { 7 } else { high as i64 + 6 };
    Format { scale: 1.0, width, style: Style::Fixed }
}

impl Format {
    fn number(&self, out: &mut String, x: f64) {
        let x = x / self.scale;
        let mut text = String::new();
        match self.style {
            _ if !x.is_finite() => write_general(&mut text, x, 6),
            Style::General => write_general(&mut text, x, 6),
            Style::Fixed => {
                let _ = write!(text, "{x:.4}");
            }
            Style::Scientific => {
                let plain = format!("{x:.4e}");
                let (digits, exponent) = plain.split_once('e').unwrap_or((&plain, "0"));
                let exponent: i32 = exponent.parse().unwrap_or(0);
                let sign = if exponent < 0 { '-' } else { '+' };
                let _ = write!(text, "{digits}e{sign}{:02}", exponent.abs());
            }
        }
        let width = self.width.max(0) as usize;
        let _ = write!(out, "{text:>width$}");
    }

    fn write_scale(&self, out: &mut String) {
        write_shortest(out, self.scale);
        out.push_str(" *\n");
    }
}

fn write_vector(out: &mut String, numbers: &[f64]) {
    let format = format(numbers);
    if format.scale != 1.0 {
        format.write_scale(out);
    }
    for x in numbers {
        format.number(out, *x);
        out.push('\n');
    }
}

fn write_matrix(out: &mut String, numbers: &[f64], rows: usize, columns: usize, indent: usize) {
    if rows == 0 || columns == 0 {
        return;
    }
    let format = format(numbers);
    let blanks = " ".repeat(indent);
    let fitting = ((LINE - indent as i64) / (format.width + 1)).max(1) as usize;
    let mut first = 0;
    while first < columns {
        let last = (first + fitting).min(columns);
        if fitting < columns {
            if first != 0 {
                out.push('\n');
            }
            let _ = write!(out, "Columns {} to {last}{blanks}", first + 1);
        }
        if format.scale != 1.0 {
            format.write_scale(out);
            out.push_str(&blanks);
        }
        for row in 0..rows {
            for column in first..last {
                if let Some(x) = numbers.get(row * columns + column) {
                    format.number(out, *x);
                }
                out.push_str(if column + 1 == last { "\n" } else { " " });
            }
            if row + 1 != rows {
                out.push_str(&blanks);
                out.push_str(if format.scale != 1.0 { " " } else { "" });
            }
        }
        first = last;
    }
}

/// Tensors of more than two dimensions, one matrix after the other; the first index runs fastest.
fn write_slices(out: &mut String, numbers: &[f64], sizes: &[i64]) {
    let Some((outer, &[rows, columns])) = sizes.split_last_chunk::<2>() else { return };
    let step = (rows * columns) as usize;
    let mut counter = vec![0i64; outer.len()];
    loop {
        out.push('(');
        let mut at = 0;
        for (index, size) in counter.iter().zip(outer) {
            let _ = write!(out, "{},", index + 1);
            at = at * size + index;
        }
        out.push_str(".,.) = \n");
        let start = at as usize * step;
        write_matrix(
            out,
            numbers.get(start..start + step).unwrap_or(&[]),
            rows as usize,
            columns as usize,
            1,
        );
        let mut dim = 0;
        loop {
            let (Some(index), Some(size)) = (counter.get_mut(dim), outer.get(dim)) else { return };
            *index += 1;
            if *index < *size {
                break;
            }
            *index = 0;
            dim += 1;
        }
        out.push('\n');
    }
}
