//! Models for mobile devices: methods as instructions of a stack machine with registers, and no source code.
//!
//! Whatever file they come from, the instructions are first read into [`code::Code`] (`pickled`), and then turned into graphs
//! (`translate`), so that passes and printing work on them as on any other. This module knows nothing of running them.

mod classes;
mod code;
mod pickled;
mod restored;
mod slots;
mod steps;
mod translate;
mod types;

use super::model::Model;
use super::objects::assembled;
use super::opened::Archive;
use super::upgraders;
use crate::diag::Result;
use crate::dialects::Registry;
use crate::ir::Module;
use code::named;
use std::sync::Arc;

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
    restored::define(&versioned, &mut module, &codes);
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
    assembled(registry, (&archive, &data), upgraders::upgraded(registry, module, &versioned)?)
}
