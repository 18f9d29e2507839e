//! Tables, vectors and text of a flatbuffer, each access checked against the bytes. It knows the encoding and no schema.
//!
//! A reader of its own: the crate `flatbuffers` reads through unsafe accessors that `flatc` generates, and what is needed
//! of the encoding is three offsets and two lengths.
//! The encoding: <https://flatbuffers.dev/internals/>.

use crate::diag::{Diagnostic, Result};

/// The bytes of a flatbuffer.
#[derive(Clone, Copy)]
pub(super) struct Buffer<'a>(pub(super) &'a [u8]);

/// A table: where it starts, and where the offsets of its fields stand.
#[derive(Clone, Copy)]
pub(super) struct Table<'a> {
    buffer: Buffer<'a>,
    at: usize,
    fields: &'a [u8],
}

/// A vector: its elements' bytes and where they start.
#[derive(Clone, Copy)]
pub(super) struct Vector<'a> {
    buffer: Buffer<'a>,
    at: usize,
    len: usize,
}

impl<'a> Buffer<'a> {
    /// The table that the buffer is about.
    pub(super) fn root(self) -> Result<Table<'a>> {
        self.table(self.indirect(0)?)
    }

    fn slice(self, at: usize, len: usize) -> Result<&'a [u8]> {
        let end = at.checked_add(len);
        end.and_then(|end| self.0.get(at..end)).ok_or_else(|| {
            Diagnostic::input(format!("the file is cut off or damaged: byte {at} is outside it"))
        })
    }

    fn bytes<const N: usize>(self, at: usize) -> Result<[u8; N]> {
        let mut out = [0; N];
        out.copy_from_slice(self.slice(at, N)?);
        Ok(out)
    }

    fn u32(self, at: usize) -> Result<u32> {
        self.bytes(at).map(u32::from_le_bytes)
    }

    /// Where the offset at a place leads to.
    fn indirect(self, at: usize) -> Result<usize> {
        Ok(at.saturating_add(self.u32(at)? as usize))
    }

    fn table(self, at: usize) -> Result<Table<'a>> {
        let back = i64::from(self.bytes(at).map(i32::from_le_bytes)?);
        let start = usize::try_from((at as i64).saturating_sub(back)).unwrap_or(usize::MAX);
        let size = usize::from(self.bytes(start).map(u16::from_le_bytes)?);
        let fields = self.slice(start, size)?.get(4..).unwrap_or_default();
        Ok(Table { buffer: self, at, fields })
    }

    /// A vector whose elements have a number of bytes each.
    fn vector(self, at: usize, element: usize) -> Result<Vector<'a>> {
        let len = self.u32(at)? as usize;
        let start = at.saturating_add(4);
        self.slice(start, len.saturating_mul(element))?;
        Ok(Vector { buffer: self, at: start, len })
    }

    fn text(self, at: usize) -> Result<&'a str> {
        let vector = self.vector(at, 1)?;
        let bytes = self.slice(vector.at, vector.len)?;
        std::str::from_utf8(bytes)
            .map_err(|_| Diagnostic::input(format!("the text at byte {at} is not UTF-8")))
    }
}

impl<'a> Table<'a> {
    /// Where a field's value stands; None where the table does not have it.
    fn field(self, number: usize) -> Option<usize> {
        let offset = self.fields.get(2 * number..2 * number + 2)?;
        let offset = usize::from(u16::from_le_bytes([offset[0], offset[1]]));
        (offset != 0).then(|| self.at.saturating_add(offset))
    }

    /// Where the offset in a field leads to.
    fn target(self, number: usize) -> Result<Option<usize>> {
        self.field(number).map(|at| self.buffer.indirect(at)).transpose()
    }

    /// A byte; 0 where the field is missing, as with all numbers here.
    pub(super) fn u8(self, number: usize) -> Result<u8> {
        self.field(number).map_or(Ok(0), |at| self.buffer.bytes(at).map(u8::from_le_bytes))
    }

    pub(super) fn u32(self, number: usize) -> Result<u32> {
        self.field(number).map_or(Ok(0), |at| self.buffer.u32(at))
    }

    /// A number with a default of its own.
    pub(super) fn i32_or(self, number: usize, default: i32) -> Result<i32> {
        self.field(number).map_or(Ok(default), |at| self.buffer.bytes(at).map(i32::from_le_bytes))
    }

    pub(super) fn f64(self, number: usize) -> Result<f64> {
        self.field(number).map_or(Ok(0.0), |at| self.buffer.bytes(at).map(f64::from_le_bytes))
    }

    /// Eight bytes of the struct that a field leads to, `skip` bytes into it.
    pub(super) fn struct_bytes<const N: usize>(self, number: usize, skip: usize) -> Result<[u8; N]> {
        let at = self.target(number)?.ok_or_else(|| missing(number))?;
        self.buffer.bytes(at.saturating_add(skip))
    }

    pub(super) fn table(self, number: usize) -> Result<Option<Table<'a>>> {
        self.target(number)?.map(|at| self.buffer.table(at)).transpose()
    }

    /// Text; none where the field is missing.
    pub(super) fn text(self, number: usize) -> Result<&'a str> {
        self.target(number)?.map_or(Ok(""), |at| self.buffer.text(at))
    }

    /// A vector of elements of that many bytes; an empty one where the field is missing.
    pub(super) fn vector(self, number: usize, element: usize) -> Result<Vector<'a>> {
        let empty = Vector { buffer: self.buffer, at: 0, len: 0 };
        self.target(number)?.map_or(Ok(empty), |at| self.buffer.vector(at, element))
    }
}

impl<'a> Vector<'a> {
    pub(super) fn len(self) -> usize {
        self.len
    }

    /// Where the first element stands in the file.
    pub(super) fn start(self) -> usize {
        self.at
    }

    /// Numbers of four bytes.
    pub(super) fn u32s(self) -> impl Iterator<Item = Result<u32>> {
        (0..self.len).map(move |n| self.buffer.u32(self.at + 4 * n))
    }

    /// The tables that offsets lead to.
    pub(super) fn tables(self) -> impl Iterator<Item = Result<Table<'a>>> {
        (0..self.len).map(move |n| self.buffer.table(self.buffer.indirect(self.at + 4 * n)?))
    }

    /// One of these tables.
    pub(super) fn table_at(self, n: usize) -> Result<Option<Table<'a>>> {
        let at = (n < self.len).then(|| self.buffer.indirect(self.at + 4 * n)).transpose()?;
        at.map(|at| self.buffer.table(at)).transpose()
    }

    /// The texts that offsets lead to.
    pub(super) fn texts(self) -> impl Iterator<Item = Result<&'a str>> {
        (0..self.len).map(move |n| self.buffer.text(self.buffer.indirect(self.at + 4 * n)?))
    }

    /// The bytes of each element.
    pub(super) fn elements<const N: usize>(self) -> impl Iterator<Item = Result<[u8; N]>> {
        (0..self.len).map(move |n| self.buffer.bytes(self.at + N * n))
    }
}

fn missing(number: usize) -> Diagnostic {
    Diagnostic::input(format!("a table of the file has no field {number}"))
}
