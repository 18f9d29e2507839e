//! POSIX extended regular expressions over bytes, with back references.
//!
//! The `regex` crate prefers the first alternative and has no back references; FileCheck's language takes the
//! leftmost match and of those the longest. A search without back references is linear in the text; with
//! them the number of steps is bounded, and a search that runs out finds nothing. Must not know FileCheck.

mod brackets;
mod captures;
mod pieces;
mod program;
mod sets;
mod syntax;

#[cfg(test)]
mod tests;

pub use captures::Spans;
pub use pieces::RegexError;

use program::Program;

/// A compiled expression.
#[derive(Debug)]
pub struct Regex(Program);

impl Regex {
    /// Compiles an expression; see [`syntax::parse`] for the two switches.
    pub fn new(pattern: &[u8], ignore_case: bool, newline: bool) -> Result<Self, RegexError> {
        Ok(Regex(Program::new(syntax::parse(pattern, ignore_case, newline)?)))
    }

    /// Number of groups.
    pub fn groups(&self) -> usize {
        self.0.groups
    }

    /// The leftmost longest match with what each group took; without `groups` only group 0 is filled in.
    pub fn search(&self, text: &[u8], groups: bool) -> Option<Spans> {
        let program = &self.0;
        program.refill(text.len());
        let mut from = 0;
        loop {
            let (start, end) = program.search(text, from)?;
            if !program.backrefs {
                let mut spans: Spans = vec![None; program.groups + 1];
                if groups {
                    captures::divide(program, text, &program.nodes, start, end, &mut spans);
                }
                spans[0] = Some((start, end));
                return Some(spans);
            }
            let mut ends = Vec::new();
            program.ends(text, start, text.len(), 0, program.code.len(), |end| ends.push(end));
            for end in ends.into_iter().rev() {
                if let Some(mut spans) = captures::backtrack(program, text, start, end) {
                    spans[0] = Some((start, end));
                    return Some(spans);
                }
            }
            if !program.pay(1) {
                return None;
            }
            from = start + 1;
        }
    }
}

/// Writes `text` so that as an expression it matches itself.
pub fn escape(text: &[u8], out: &mut Vec<u8>) {
    for byte in text {
        if b"()^$|*+?.[]\\{}".contains(byte) {
            out.push(b'\\');
        }
        out.push(*byte);
    }
}
