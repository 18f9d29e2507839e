//! Graphs and modules as bytes, whole: what [`write()`] was given and what [`read`] gives print the same text, with the same types, names and
//! locations. For programs that keep graphs for themselves; text is for people and other programs.
//!
//! # The form
//! Numbers are LEB128, signed ones zigzag-coded. Names of ops and attributes and types stand where they are first used; after that
//! their number, plus one, stands for them, and 0 says that a new one follows.
//!
//! ```text
//! graph      whether symbolic sizes are hidden; block; the number that the next value without a name gets
//! block      number of parameters; type and name of each; number of ops; ops; number of results; values
//! op         kind; location; number of operands; values; number of attributes; name and attribute of each;
//!            number of results; type and name of each; number of nested blocks; blocks
//! value      how many of the visible values were defined after it
//! name       number of bytes, and these; or 0 and the number that is printed
//! location   as names are: 0 and what is new, or which of those before
//! attribute  its kind and what it is; a list or dictionary that was there before is its number, as it is one object
//! ```
//!
//! Tensors and sources are not in the bytes: an [`Outside`] has them by numbers, one for all graphs that belong together.
//! Objects of custom classes are nowhere, and graphs that hold one have no bytes.
//!
//! Knows no op by name, no file, and nothing of who keeps what.

mod lists;
mod modules;
mod outside;
mod read;
#[cfg(test)]
mod tests;
mod types;
mod write;

pub use lists::{lists_in, lists_of};
pub use modules::{differences, read_module, write_constants, write_module};
pub use outside::Outside;
pub use read::read;
pub use write::write;
