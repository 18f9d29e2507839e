//! Models for mobile devices: methods as instructions of a stack machine with registers, and no source code.
//!
//! Whatever file they come from, the instructions are first read into [`Code`] (`pickled`), and then turned into graphs
//! (`translate`), so that passes and printing work on them as on any other. This module knows nothing of running them.

mod classes;
mod pickled;
mod slots;
mod steps;
mod translate;
mod types;

use super::load::{Model, assembled, upgraded};
use super::{Archive, upgraders};
use crate::diag::{Diagnostic, Result};
use crate::dialects::Registry;
use crate::ir::{Attr, Module, Symbol, Type};
use std::sync::Arc;

/// The versions of bytecode that can be read.
const VERSIONS: std::ops::RangeInclusive<i64> = 3..=9;

/// A method in bytecode.
#[derive(Debug, Default)]
pub(super) struct Code {
    /// Qualified name (`__torch__.M.forward`).
    name: String,
    instructions: Vec<Instruction>,
    operators: Vec<Operator>,
    /// Constants with their types.
    constants: Vec<(Type, Attr)>,
    /// Texts of types.
    types: Vec<String>,
    /// Arguments by name, text of the type and default; the text of each result's type. None before version 5.
    signature: Option<(Vec<Parameter>, Vec<String>)>,
}

/// An instruction: its name, and two numbers whose meaning the name says.
#[derive(Clone, Debug)]
struct Instruction {
    name: Box<str>,
    x: i64,
    n: i64,
}

/// An operator that instructions call by its number.
#[derive(Clone, Debug)]
struct Operator {
    name: Symbol,
    overload: Box<str>,
    /// How many arguments the instructions give; the last ones of the schema may be left out. None before version 6.
    given: Option<usize>,
}

/// An argument of a method.
#[derive(Clone, Debug)]
struct Parameter {
    name: Box<str>,
    ty: String,
    default: Option<Attr>,
}

/// Whether an archive has its methods in bytecode only.
pub(super) fn is_bytecode_only(archive: &Archive) -> bool {
    archive.has_pickle("bytecode.pkl") && archive.code_files().next().is_none()
}

/// Builds the model of an archive from its bytecode. Nothing of it runs.
pub(super) fn load(registry: &Arc<Registry>, archive: Archive) -> Result<Model> {
    let archive = Arc::new(archive);
    let codes = pickled::read(registry, &archive)?;
    let data = archive.data_pickle()?;
    let mut module = Module::default();
    classes::define(registry, &mut module, &data, &codes)?;
    let versioned = upgraders::registry(registry, archive.version());
    slots::define(&versioned, &mut module, &codes);
    // Calls of methods have the types that signatures say.
    for code in &codes {
        if let Some(function) = translate::declared(&versioned, &module, code)? {
            module.functions.insert(function.name, function);
        }
    }
    for code in &codes {
        let function = translate::function(&versioned, &module, code)
            .map_err(|error| named(error, &format!("bytecode of {}", code.name)))?;
        module.functions.insert(function.name, function);
    }
    assembled(registry, (&archive, &data), upgraded(registry, module, &versioned)?)
}

/// Puts what an error is about before its message.
fn named(mut error: Diagnostic, name: &str) -> Diagnostic {
    let report = error.report_mut();
    report.message = format!("{name}: {}", report.message);
    error
}
