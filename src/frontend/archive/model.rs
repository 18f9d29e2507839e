//! A loaded model, and what its code is compiled from. It knows nothing of files and formats.

use crate::diag::{Result, Source};
use crate::ir::{Attr, Module, Type};
use crate::value::Value;
use std::sync::Arc;

/// A loaded model.
#[derive(Debug)]
pub struct Model {
    /// Its code.
    pub module: Module,
    /// The object that was saved.
    pub root: Value,
    /// Objects that restore themselves: `__setstate__` of the first is to be called with the second, in order.
    pub states: Vec<(Value, Value)>,
    /// What the code calls `CONSTANTS.c0` and so on.
    pub constants: Vec<Value>,
    /// Version of the file format.
    pub version: u64,
    /// Tables of original places by code file, still encoded: see
    /// [`Archive::debug_tables`](super::Archive::debug_tables).
    pub debug_tables: Vec<(String, Vec<u8>)>,
}

/// All that the code of an archive, or a source by itself, is compiled from, but the ops.
pub struct Code<'a> {
    /// Of the file format: what ops meant then. 0 of a source by itself.
    pub version: u64,
    /// All source files, in the order of the archive.
    pub sources: &'a [Arc<Source>],
    /// What these call `CONSTANTS.c0` and so on.
    pub constants: &'a [(Type, Attr)],
    /// Classes that objects of the archive have.
    pub classes: &'a [String],
}

impl<'a> Code<'a> {
    /// That of a source by itself.
    pub fn of_source(source: &'a Arc<Source>) -> Code<'a> {
        Code { version: 0, sources: std::slice::from_ref(source), constants: &[], classes: &[] }
    }
}

/// Has modules that were compiled before.
pub trait Compiled {
    /// The module of code: one that was made of the same before, or what `compile` makes.
    fn module(&self, code: &Code<'_>, compile: Box<dyn FnOnce() -> Result<Module> + '_>) -> Result<Module>;

    /// What an archive's code is compiled to is not kept, for a reason.
    fn unkept(&self, reason: &'static str);
}
