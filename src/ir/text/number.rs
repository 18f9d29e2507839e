//! Numbers and strings as PyTorch prints them in graphs, schemas and serialized source.

use num_complex::Complex64;
use std::fmt::Write;

/// Appends an integer.
pub fn write_int(out: &mut String, x: i64) {
    // Twenty digits and a sign hold any 64-bit integer.
    let mut buffer = [0u8; 21];
    let mut at = buffer.len();
    let mut rest = x.unsigned_abs();
    loop {
        at -= 1;
        buffer[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if x < 0 {
        at -= 1;
        buffer[at] = b'-';
    }
    out.push_str(std::str::from_utf8(&buffer[at..]).unwrap_or_default());
}

/// Appends a float: whole numbers below 10^10 as `3.`, others with 17 significant digits (`0.10000000000000001`).
pub fn write_float(out: &mut String, x: f64) {
    if (x.is_normal() || x == 0.0) && x.abs() < 1e10 && x.trunc() == x {
        if x == 0.0 && x.is_sign_negative() {
            out.push('-');
        }
        write_int(out, x as i64);
        out.push('.');
    } else {
        write_general(out, x, 17);
    }
}

/// Appends a complex number: `1.+2.j`.
pub fn write_complex(out: &mut String, z: Complex64) {
    write_float(out, z.re);
    out.push(if z.im >= 0.0 { '+' } else { '-' });
    write_float(out, z.im.abs());
    out.push('j');
}

/// A float as C++ writes it to a stream, with six digits.
pub fn general(x: f64) -> String {
    let mut text = String::new();
    write_general(&mut text, x, 6);
    text
}

/// Appends a float as C's `%.{digits}g` does.
pub fn write_general(out: &mut String, x: f64, digits: usize) {
    if !x.is_finite() {
        out.push_str(match (x.is_nan(), x.is_sign_negative()) {
            (true, false) => "nan",
            (true, true) => "-nan",
            (false, false) => "inf",
            (false, true) => "-inf",
        });
        return;
    }
    let scientific = format!("{x:.*e}", digits.saturating_sub(1));
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let strip = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text.to_string(),
    };
    if exponent < -4 || exponent >= digits as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        let _ = write!(out, "{}e{sign}{:02}", strip(mantissa), exponent.abs());
    } else {
        let places = (digits as i32 - 1 - exponent).max(0) as usize;
        out.push_str(&strip(&format!("{x:.places$}")));
    }
}

/// Appends a string in double quotes with C's escapes; bytes that are not printable ASCII in octal. PyTorch takes a byte
/// from 128 on for a negative number, whose octal digits it adds to `0` all the same: `é` is `\0)+\/.)`. The lexer of
/// graph text reads that back.
pub fn write_quoted(out: &mut String, text: &str) {
    out.push('"');
    for b in text.bytes() {
        match b {
            b'\\' => out.push_str("\\\\"),
            b'\'' => out.push_str("\\'"),
            b'"' => out.push_str("\\\""),
            7 => out.push_str("\\a"),
            8 => out.push_str("\\b"),
            12 => out.push_str("\\f"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            11 => out.push_str("\\v"),
            b' '..=b'~' => out.push(b as char),
            _ => {
                let rest = i32::from(b as i8);
                out.push('\\');
                for digit in [rest / 64, rest / 8 % 8, rest % 8] {
                    out.push((i32::from(b'0') + digit) as u8 as char);
                }
            }
        }
    }
    out.push('"');
}

/// A number that prints as written.
#[inline]
pub(super) fn plain_number(text: &str) -> Option<u32> {
    let bytes = text.as_bytes();
    match bytes.first()? {
        b'0' if bytes.len() > 1 => return None,
        b'0'..=b'9' => {}
        _ => return None,
    }
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_like_pytorch() {
        let show = |x: f64| {
            let mut out = String::new();
            write_float(&mut out, x);
            out
        };
        assert_eq!(show(1.0), "1.");
        assert_eq!(show(-0.0), "-0.");
        assert_eq!(show(0.1), "0.10000000000000001");
        assert_eq!(show(1e-5), "1.0000000000000001e-05");
        assert_eq!(show(1e10), "10000000000");
        assert_eq!(show(3735928559.0), "3735928559.");
        assert_eq!(show(1.5e300), "1.5000000000000001e+300");
        assert_eq!(show(f64::NEG_INFINITY), "-inf");
    }

    #[test]
    fn strings_like_pytorch() {
        let mut out = String::new();
        write_quoted(&mut out, "é\u{1}\u{7f}\n\0");
        assert_eq!(out, r#""\0)+\/.)\001\177\n\000""#);
    }

    #[test]
    fn integers_at_the_limits() {
        let mut out = String::new();
        write_int(&mut out, i64::MIN);
        write_int(&mut out, 0);
        assert_eq!(out, "-92233720368547758080");
    }
}
