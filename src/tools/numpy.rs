//! NumPy's files: `.npy` (one array) and `.npz` (a zip of arrays). Headers are parsed as the Python literals that they
//! are, sizes are checked before anything is allocated, and the zip container is read under the archive reader's policy.

use crate::diag::{Diagnostic, Result};
use crate::frontend::archive::{Limits, read_entries, read_entry};
use crate::resources::memory;
use crate::tensor::{DType, Layout, Tensor};

/// The array of a `.npy` file, version 1 to 3. Arrays in column order keep it, as strides; big-endian ones are
/// swapped.
pub fn read_npy(bytes: &[u8]) -> Result<Tensor> {
    let (header, data) = split(bytes)?;
    let header = Header::parse(header)?;
    let dtype = header.dtype;
    let count = header.sizes.iter().try_fold(dtype.size() as i64, |n, size| n.checked_mul(*size));
    let data = match count.and_then(|n| usize::try_from(n).ok()).map(|n| (n, data.get(..n))) {
        Some((n, Some(data))) if n == data.len() => data,
        _ => return Err(bad("it has less data than its shape says")),
    };
    let swapped;
    let data = match header.big_endian {
        false => data,
        true => {
            swapped = swap(data, header.word)?;
            &swapped
        }
    };
    if !header.column_order {
        return Tensor::from_bytes(dtype, &header.sizes, data);
    }
    // What lies in column order is the transpose of what lies in row order.
    let reversed: Vec<i64> = header.sizes.iter().rev().copied().collect();
    let tensor = Tensor::from_bytes(dtype, &reversed, data)?;
    let mut layout: Layout = tensor.layout();
    layout.sizes.reverse();
    layout.strides.reverse();
    tensor.with_layout(layout)
}

/// Header text and data.
fn split(bytes: &[u8]) -> Result<(&str, &[u8])> {
    let short = || bad("it is cut short");
    let rest = bytes.strip_prefix(b"\x93NUMPY").ok_or_else(|| bad("not an .npy file"))?;
    let (&[major, _minor], rest) = rest.split_first_chunk::<2>().ok_or_else(short)?;
    let (length, rest) = match major {
        1 => {
            let (n, rest) = rest.split_first_chunk::<2>().ok_or_else(short)?;
            (u16::from_le_bytes(*n) as usize, rest)
        }
        2 | 3 => {
            let (n, rest) = rest.split_first_chunk::<4>().ok_or_else(short)?;
            (u32::from_le_bytes(*n) as usize, rest)
        }
        other => return Err(bad(&format!("the format has version {other}"))),
    };
    if length > MOST_HEADER {
        return Err(bad(&format!("its header has {length} bytes, and the limit is {MOST_HEADER}")));
    }
    let (header, data) = rest.split_at_checked(length).ok_or_else(short)?;
    Ok((std::str::from_utf8(header).map_err(|_| bad("its header is not text"))?, data))
}

/// Most bytes of a header; NumPy itself reads 10,000 unless it is asked for more.
const MOST_HEADER: usize = 1 << 16;

fn bad(what: &str) -> Diagnostic {
    Diagnostic::input(format!("cannot read the array: {what}"))
}

/// What a header says.
struct Header {
    dtype: DType,
    big_endian: bool,
    /// Bytes that are swapped together.
    word: usize,
    column_order: bool,
    sizes: Vec<i64>,
}

impl Header {
    /// Reads the header, the text of a Python dictionary with exactly three keys. As in Python the last of equal keys
    /// counts.
    fn parse(text: &str) -> Result<Header> {
        let mut literal = Literal { rest: text.trim_ascii() };
        let (mut descr, mut order, mut shape) = (None, None, None);
        literal.expect('{')?;
        while !literal.take('}') {
            let key = literal.text()?;
            literal.expect(':')?;
            match key {
                "descr" => descr = Some(literal.text().map_err(|_| structured())?),
                "fortran_order" => order = Some(literal.truth()?),
                "shape" => shape = Some(literal.sizes()?),
                other => return Err(bad(&format!("its header has the unknown field '{other}'"))),
            }
            if !literal.take(',') && !literal.rest.starts_with('}') {
                return Err(bad("its header is not a Python dictionary"));
            }
        }
        if !literal.rest.is_empty() {
            return Err(bad("its header goes on after the dictionary"));
        }
        let missing = |name| move || bad(&format!("its header has no field '{name}'"));
        let (dtype, big_endian, word) = element(descr.ok_or_else(missing("descr"))?)?;
        let column_order = order.ok_or_else(missing("fortran_order"))?;
        Ok(Header { dtype, big_endian, word, column_order, sizes: shape.ok_or_else(missing("shape"))? })
    }
}

fn structured() -> Diagnostic {
    Diagnostic::unsupported("structured arrays in .npy files").hint("save each field as an array of its own")
}

/// The part of Python's literals that headers are made of.
struct Literal<'a> {
    rest: &'a str,
}

impl<'a> Literal<'a> {
    fn take(&mut self, letter: char) -> bool {
        match self.rest.strip_prefix(letter) {
            Some(rest) => {
                self.rest = rest.trim_ascii_start();
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, letter: char) -> Result<()> {
        if self.take(letter) { Ok(()) } else { Err(bad(&format!("its header lacks a '{letter}'"))) }
    }

    /// Text in either kind of quotes. Names and dtypes have no escapes.
    fn text(&mut self) -> Result<&'a str> {
        let quote = self.rest.chars().next().filter(|c| matches!(c, '\'' | '"'));
        let body = quote.and_then(|quote| self.rest.get(1..)?.split_once(quote));
        let (text, rest) = body.ok_or_else(|| bad("its header lacks a quoted text"))?;
        if text.contains(['\\', '\n']) {
            return Err(bad("its header has an escape in a quoted text"));
        }
        self.rest = rest.trim_ascii_start();
        Ok(text)
    }

    fn word(&mut self) -> &'a str {
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest.trim_ascii_start();
        word
    }

    fn truth(&mut self) -> Result<bool> {
        match self.word() {
            "True" => Ok(true),
            "False" => Ok(false),
            _ => Err(bad("field 'fortran_order' is neither True nor False")),
        }
    }

    fn sizes(&mut self) -> Result<Vec<i64>> {
        let wrong = || bad("field 'shape' is not a tuple of sizes");
        let mut sizes = Vec::new();
        self.expect('(').map_err(|_| wrong())?;
        while !self.take(')') {
            // Python 2 wrote long integers with an L.
            let word = self.word();
            let digits = word.strip_suffix('L').unwrap_or(word);
            let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
            sizes.push(digits.parse().ok().filter(|_| is_number).ok_or_else(wrong)?);
            if sizes.len() > MOST_DIMS {
                return Err(bad(&format!("it has more than {MOST_DIMS} dimensions")));
            }
            // A single number in brackets is not a tuple without its comma.
            if !self.take(',') && (sizes.len() == 1 || !self.rest.starts_with(')')) {
                return Err(wrong());
            }
        }
        Ok(sizes)
    }
}

/// NumPy 2's own limit.
const MOST_DIMS: usize = 64;

/// Dtype, whether big-endian, and how many bytes are swapped together.
fn element(descr: &str) -> Result<(DType, bool, usize)> {
    let unknown = || Diagnostic::unsupported(format!("arrays of dtype '{descr}' in .npy files"));
    let (order, kind) = descr.split_at_checked(1).ok_or_else(unknown)?;
    let (dtype, word) = match kind {
        "b1" => (DType::Bool, 1),
        "u1" => (DType::U8, 1),
        "i1" => (DType::I8, 1),
        "u2" => (DType::U16, 2),
        "i2" => (DType::I16, 2),
        "u4" => (DType::U32, 4),
        "i4" => (DType::I32, 4),
        "u8" => (DType::U64, 8),
        "i8" => (DType::I64, 8),
        "f2" => (DType::F16, 2),
        "f4" => (DType::F32, 4),
        "f8" => (DType::F64, 8),
        "c8" => (DType::C64, 4),
        "c16" => (DType::C128, 8),
        _ => return Err(unknown()),
    };
    match order {
        "<" => Ok((dtype, false, word)),
        ">" => Ok((dtype, word > 1, word)),
        "|" | "=" if word == 1 => Ok((dtype, false, word)),
        _ => Err(unknown()),
    }
}

/// A tensor as a `.npy` file, in row order. Fails for dtypes that NumPy does not have.
pub fn write_npy(tensor: &Tensor) -> Result<Vec<u8>> {
    let descr = match tensor.dtype() {
        DType::Bool => "|b1",
        DType::U8 => "|u1",
        DType::I8 => "|i1",
        DType::U16 => "<u2",
        DType::I16 => "<i2",
        DType::U32 => "<u4",
        DType::I32 => "<i4",
        DType::U64 => "<u8",
        DType::I64 => "<i8",
        DType::F16 => "<f2",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
        DType::C64 => "<c8",
        DType::C128 => "<c16",
        other => {
            let error =
                Diagnostic::unsupported(format!("tensors of dtype {} in NumPy's files", other.name()));
            return Err(error.hint("write the answer to .safetensors or .json"));
        }
    };
    let sizes: Vec<String> = tensor.sizes().iter().map(|n| format!("{n},")).collect();
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({}), }}", sizes.join(" "));
    // The data begins at a multiple of 64 bytes; the header ends with a line break.
    let header = format!("{header:<width$}\n", width = (10 + header.len() + 1).next_multiple_of(64) - 11);
    let data = tensor.to_bytes()?;
    let mut file = memory::vec_reserved(10 + header.len() + data.len())?;
    file.extend(b"\x93NUMPY\x01\x00");
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(data);
    Ok(file)
}

/// The same words with their bytes the other way round.
fn swap(data: &[u8], word: usize) -> Result<Vec<u8>> {
    let mut swapped = Vec::new();
    swapped.try_reserve_exact(data.len()).map_err(|_| bad("there is not enough memory for it"))?;
    for word in data.chunks(word) {
        swapped.extend(word.iter().rev());
    }
    Ok(swapped)
}

/// The arrays of a `.npz` file with their names, in the order of the file. Entries may be stored or deflated.
pub fn read_npz(bytes: &[u8]) -> Result<Vec<(String, Tensor)>> {
    let entries = read_entries(bytes, &limits()).map_err(|error| {
        let text =
            error.message().replace("the archive", "the .npz file").replace("an archive", "a .npz file");
        let error = Diagnostic::new(error.kind(), text);
        error.hint("write the file with numpy.savez; entries that compress very well, with numpy.save")
    })?;
    let mut arrays: Vec<(String, Tensor)> = Vec::new();
    for (name, entry) in &entries {
        let array = read_npy(&read_entry(bytes, entry, name)?);
        let name = name.strip_suffix(".npy").unwrap_or(name).to_string();
        if arrays.iter().any(|(known, _)| *known == name) {
            return Err(bad(&format!("there are two of the name '{name}'")));
        }
        let array = array
            .map_err(|error| Diagnostic::new(error.kind(), format!("entry '{name}': {}", error.message())))?;
        arrays.push((name, array));
    }
    Ok(arrays)
}

/// Deflate itself reaches a ratio of 1032, which arrays of equal elements have; together the arrays may be 20 times as
/// large as the file, and 256 MiB besides.
fn limits() -> Limits {
    Limits {
        ratio: 1100,
        inflated_bytes: 4 << 30,
        budget_factor: 20,
        budget_base: 256 << 20,
        entries: 4096,
        ..Limits::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn npy(header: &str, data: &[u8]) -> Vec<u8> {
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend((header.len() as u16).to_le_bytes());
        file.extend(header.as_bytes());
        file.extend(data);
        file
    }

    fn usual(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        npy(&format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n"), data)
    }

    #[test]
    fn arrays_are_read_and_damage_is_refused() {
        let file = usual("<i4", "(2, 1)", &[1, 0, 0, 0, 2, 0, 0, 0]);
        let tensor = read_npy(&file).expect("an array");
        assert_eq!((tensor.sizes().as_slice(), tensor.to_vec::<i32>().ok()), (&[2, 1][..], Some(vec![1, 2])));
        assert!(read_npy(&usual("<i4", "(3,)", &[1, 0, 0, 0])).is_err());
        assert!(read_npy(&usual("<i4", "(9999999999999, 9999999999999)", &[])).is_err());
        assert!(read_npy(&usual("O", "()", &[])).is_err());
        for cut in 0..file.len() {
            assert!(read_npy(&file[..cut]).is_err());
        }
        assert!(read_npz(&file).is_err());
    }

    #[test]
    fn what_is_written_is_read_again() {
        for sizes in [&[][..], &[3], &[2, 0], &[1, 2, 3]] {
            let count = sizes.iter().product::<i64>() as usize;
            let tensor = Tensor::from_vec(&vec![1.5f32; count], sizes).expect("fits");
            let file = write_npy(&tensor).expect("written");
            let again = read_npy(&file).expect("an array");
            assert_eq!((again.sizes(), again.dtype()), (tensor.sizes(), DType::F32));
            assert_eq!((file.len() - tensor.numel() * 4) % 64, 0);
        }
    }

    #[test]
    fn headers_are_parsed_as_python_does() {
        let data = [1u8, 2, 3, 4, 5, 6];
        let rows = |header: &str| read_npy(&npy(header, &data)).and_then(|t| t.to_vec::<u8>());
        let column = "{'descr': '|u1', 'fortran_order':  True, 'shape': (2, 3)}";
        assert_eq!(rows(column).expect("columns"), [1, 3, 5, 2, 4, 6]);
        let quotes = "{\"shape\":(2,3,),\"fortran_order\":True,\"descr\":\"|u1\"}  \n";
        assert_eq!(rows(quotes).expect("columns"), [1, 3, 5, 2, 4, 6]);
        let twice = "{'descr': '|u1', 'fortran_order': False, 'shape': (1,), 'shape': (6,)}";
        assert_eq!(rows(twice).expect("the last shape"), data);
        for bad in [
            "{'descr': '|u1', 'fortran_order': False}",
            "{'descr': '|u1', 'fortran_order': 1, 'shape': (6,)}",
            "{'descr': '|u1', 'fortran_order': False, 'shape': (6)}",
            "{'descr': '|u1', 'fortran_order': False, 'shape': (6,)} x",
            "{'descr': '|u1', 'fortran_order': False, 'shape': (-6,)}",
            "{'descr': '|u1', 'fortran_order': False, 'shape': (+6,)}",
            "{'descr': [('a', '|u1')], 'fortran_order': False, 'shape': (6,)}",
            "{'descr': '|u1', 'fortran_order': False, 'shape': (6,), 'more': 1}",
        ] {
            assert!(rows(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn big_endian_arrays_are_swapped() {
        let tensor = read_npy(&usual(">i2", "(2,)", &[1, 2, 0, 3])).expect("an array");
        assert_eq!(tensor.to_vec::<i16>().expect("elements"), [0x102, 3]);
        let tensor = read_npy(&usual(">c8", "()", &[0x3f, 0x80, 0, 0, 0x40, 0, 0, 0])).expect("an array");
        assert_eq!(
            tensor.to_vec::<num_complex::Complex32>().expect("one")[0],
            num_complex::Complex32::new(1., 2.)
        );
    }
}
