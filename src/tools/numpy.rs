//! NumPy's files: `.npy` (one array) and `.npz` (a zip of arrays). Headers are read as data and sizes are checked
//! before anything is allocated.

use crate::diag::{Diagnostic, Result};
use crate::tensor::{DType, Tensor};
use std::io::Read;

/// The largest `.npz` entry, inflated.
const MAX_ENTRY: u64 = 4 << 30;

/// The array of a `.npy` file: version 1 to 3, little-endian, rows first.
pub fn read_npy(bytes: &[u8]) -> Result<Tensor> {
    let rest = bytes.strip_prefix(b"\x93NUMPY").ok_or_else(|| bad("not a .npy file"))?;
    let (&[major, _minor], rest) = rest.split_first_chunk::<2>().ok_or_else(|| bad("cut short"))?;
    let (length, rest) = match major {
        1 => {
            let (n, rest) = rest.split_first_chunk::<2>().ok_or_else(|| bad("cut short"))?;
            (u16::from_le_bytes(*n) as usize, rest)
        }
        2 | 3 => {
            let (n, rest) = rest.split_first_chunk::<4>().ok_or_else(|| bad("cut short"))?;
            (u32::from_le_bytes(*n) as usize, rest)
        }
        other => return Err(bad(&format!("version {other}"))),
    };
    let (header, data) = rest.split_at_checked(length).ok_or_else(|| bad("cut short"))?;
    let header = std::str::from_utf8(header).map_err(|_| bad("a header that is no text"))?;
    let descr = text_field(header, "descr")?;
    let dtype = dtype(&descr)?;
    let sizes = shape(header)?;
    if header.contains("'fortran_order': True") && sizes.len() > 1 {
        return Err(Diagnostic::unsupported("arrays in column order in .npy files")
            .hint("save numpy.ascontiguousarray(a)"));
    }
    let count = sizes.iter().try_fold(dtype.size() as i64, |n, size| n.checked_mul(*size));
    match count.and_then(|n| usize::try_from(n).ok()).and_then(|n| data.get(..n)) {
        Some(data) => Tensor::from_bytes(dtype, &sizes, data),
        None => Err(bad("less data than its shape says")),
    }
}

fn bad(what: &str) -> Diagnostic {
    Diagnostic::input(format!("cannot read the array: {what}"))
}

/// The quoted value of a field of the header, which is the text of a Python dictionary.
fn text_field(header: &str, name: &str) -> Result<String> {
    let at = header.find(&format!("'{name}':")).ok_or_else(|| bad(&format!("no field '{name}'")))?;
    let mut parts = header.get(at..).unwrap_or("").split('\'');
    parts.nth(3).map(str::to_string).ok_or_else(|| bad(&format!("field '{name}'")))
}

fn shape(header: &str) -> Result<Vec<i64>> {
    let inner = header.split_once("'shape':").and_then(|(_, rest)| rest.split_once('('));
    let inner = inner.and_then(|(_, rest)| rest.split_once(')')).map(|(inner, _)| inner);
    let items = inner.ok_or_else(|| bad("no field 'shape'"))?.split(',').map(str::trim);
    let sizes: Option<Vec<i64>> = items
        .filter(|s| !s.is_empty())
        .map(|s| s.trim_end_matches('L').parse().ok().filter(|n| *n >= 0))
        .collect();
    sizes.ok_or_else(|| bad("field 'shape'"))
}

fn dtype(descr: &str) -> Result<DType> {
    Ok(match descr {
        "|b1" => DType::Bool,
        "|u1" => DType::U8,
        "|i1" => DType::I8,
        "<i2" => DType::I16,
        "<i4" => DType::I32,
        "<i8" => DType::I64,
        "<f2" => DType::F16,
        "<f4" => DType::F32,
        "<f8" => DType::F64,
        "<c8" => DType::C64,
        "<c16" => DType::C128,
        other => return Err(Diagnostic::unsupported(format!("arrays of dtype '{other}' in .npy files"))),
    })
}

/// The arrays of a `.npz` file with their names, in the order of the file. Entries may be stored or deflated.
pub fn read_npz(bytes: &[u8]) -> Result<Vec<(String, Tensor)>> {
    let end = end_record(bytes).ok_or_else(|| bad("not a .npz file"))?;
    let count = u16_at(bytes, end + 10).ok_or_else(|| bad("cut short"))?;
    let mut at = u32_at(bytes, end + 16).ok_or_else(|| bad("cut short"))? as usize;
    let mut arrays = Vec::new();
    for _ in 0..count {
        let short = || bad("a damaged table of contents");
        if bytes.get(at..at + 4) != Some(b"PK\x01\x02") {
            return Err(short());
        }
        let method = u16_at(bytes, at + 10).ok_or_else(short)?;
        let packed = u32_at(bytes, at + 20).ok_or_else(short)? as usize;
        let size = u32_at(bytes, at + 24).ok_or_else(short)? as u64;
        let name_len = u16_at(bytes, at + 28).ok_or_else(short)? as usize;
        let extra = u16_at(bytes, at + 30).ok_or_else(short)? as usize;
        let comment = u16_at(bytes, at + 32).ok_or_else(short)? as usize;
        let local = u32_at(bytes, at + 42).ok_or_else(short)? as usize;
        let name = bytes.get(at + 46..at + 46 + name_len).ok_or_else(short)?;
        let name = String::from_utf8_lossy(name).trim_end_matches(".npy").to_string();
        let local_name = u16_at(bytes, local.saturating_add(26)).ok_or_else(short)? as usize;
        let local_extra = u16_at(bytes, local.saturating_add(28)).ok_or_else(short)? as usize;
        let start = local + 30 + local_name + local_extra;
        let data = bytes.get(start..start.saturating_add(packed)).ok_or_else(short)?;
        arrays.push((name, read_npy(&unpack(data, method, size)?)?));
        at += 46 + name_len + extra + comment;
    }
    Ok(arrays)
}

fn unpack(data: &[u8], method: u16, size: u64) -> Result<Vec<u8>> {
    match method {
        0 => Ok(data.to_vec()),
        8 if size <= MAX_ENTRY => {
            let mut out = Vec::new();
            let read = flate2::read::DeflateDecoder::new(data).take(size).read_to_end(&mut out);
            read.map(|_| out).map_err(|e| bad(&e.to_string()))
        }
        other => Err(bad(&format!("an entry of compression {other} and {size} bytes"))),
    }
}

fn end_record(bytes: &[u8]) -> Option<usize> {
    let first = bytes.len().saturating_sub(65_557);
    (first..=bytes.len().checked_sub(22)?).rev().find(|at| bytes.get(*at..at + 4) == Some(b"PK\x05\x06"))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at.checked_add(2)?)?.try_into().ok().map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at.checked_add(4)?)?.try_into().ok().map(u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend((header.len() as u16).to_le_bytes());
        file.extend(header.as_bytes());
        file.extend(data);
        file
    }

    #[test]
    fn arrays_are_read_and_damage_is_refused() {
        let file = npy("<i4", "(2, 1)", &[1, 0, 0, 0, 2, 0, 0, 0]);
        let tensor = read_npy(&file).expect("an array");
        assert_eq!((tensor.sizes().as_slice(), tensor.to_vec::<i32>().ok()), (&[2, 1][..], Some(vec![1, 2])));
        assert!(read_npy(&npy("<i4", "(3,)", &[1, 0, 0, 0])).is_err());
        assert!(read_npy(&npy("<i4", "(9999999999999, 9999999999999)", &[])).is_err());
        assert!(read_npy(&npy("O", "()", &[])).is_err());
        for cut in 0..file.len() {
            assert!(read_npy(&file[..cut]).is_err());
        }
        assert!(read_npz(&file).is_err());
    }
}
