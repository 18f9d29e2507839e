//! From an archive to a program: classes and functions compiled, objects built. What an archive of `torch.jit.save` has is
//! put together here; other formats have modules of their own.

use super::model::{Code, Compiled, Model};
use super::objects::{Builder, assembled, to_attr, unfolded_size};
use super::opened::Archive;
use super::pickle::Node;
use super::{exported, legacy, mobile, upgraders};
use crate::diag::{Diagnostic, Result, Source};
use crate::dialects::Registry;
use crate::frontend::script::{ArchiveCode, Library, compile_archive};
use crate::ir::{Attr, Module, Type};
use crate::value::Value;
use indexmap::{IndexMap, IndexSet};
use std::sync::Arc;

/// Builds the model of an archive. Nothing of it runs.
pub fn load(registry: &Arc<Registry>, archive: Archive) -> Result<Model> {
    load_with(registry, archive, None)
}

/// The same; the code of an archive of `torch.jit.save` is compiled where it was not before.
pub fn load_with(
    registry: &Arc<Registry>,
    archive: Archive,
    compiled: Option<&dyn Compiled>,
) -> Result<Model> {
    if mobile::is_bytecode_only(&archive) {
        return mobile::load(registry, archive);
    }
    if exported::is_exported(&archive) {
        return exported::load(registry, archive);
    }
    if legacy::is_legacy(&archive) {
        return legacy::load(registry, archive);
    }
    let archive = Arc::new(archive);
    let constant_values = read_constants(registry, &archive)?;
    let constants = constant_values.iter().map(|(ty, value)| Ok((ty.clone(), to_attr(value)?)));
    let constants = constants.collect::<Result<Vec<_>>>()?;
    let constant_values = constant_values.into_iter().map(|(_, value)| value).collect();
    let data = archive.data_pickle()?;
    let mut classes: IndexSet<String> = IndexSet::new();
    for (_, node) in data.iter() {
        match node {
            Node::Object(object) => classes.insert(object.class.to_string()),
            Node::Enum(member) => classes.insert(member.class.to_string()),
            _ => false,
        };
    }
    let classes: Vec<String> = classes.into_iter().collect();
    let module = module_of(registry, &archive, (constants, classes), compiled)?;
    let debug_tables = archive.debug_tables()?;
    let model = assembled(registry, (&archive, &data), module)?;
    Ok(Model { constants: constant_values, debug_tables, ..model })
}

/// The code of an archive, compiled.
fn module_of(
    registry: &Arc<Registry>,
    archive: &Arc<Archive>,
    (constants, classes): (Vec<(Type, Attr)>, Vec<String>),
    compiled: Option<&dyn Compiled>,
) -> Result<Module> {
    let compile = |sources: &IndexMap<String, Arc<Source>>, constants, classes| {
        let library = Sources { archive: Arc::clone(archive), read: sources.clone() };
        let versioned = upgraders::registry(registry, archive.version());
        let module = compile_archive(&versioned, ArchiveCode { library, constants, classes })?;
        upgraders::upgraded(registry, module, &versioned)
    };
    let Some(compiled) = compiled else { return compile(&IndexMap::new(), constants, classes) };
    let sources = archive.code_files().map(|name| Ok((name.to_string(), archive.source(name)?)));
    let Ok(read) = sources.collect::<Result<IndexMap<_, _>>>() else {
        // It is an error where it is needed, and no reason to compile nothing.
        compiled.unkept("a source file of the archive cannot be read");
        return compile(&IndexMap::new(), constants, classes);
    };
    let sources: Vec<Arc<Source>> = read.values().cloned().collect();
    let code =
        Code { version: archive.version(), sources: &sources, constants: &constants, classes: &classes };
    compiled.module(&code, Box::new(|| compile(&read, constants.clone(), classes.clone())))
}

/// The code of an archive by module.
struct Sources {
    archive: Arc<Archive>,
    /// Those that were read before, by their files.
    read: IndexMap<String, Arc<Source>>,
}

impl Library for Sources {
    fn source(&self, module: &str) -> Option<Result<Arc<Source>>> {
        let name = format!("code/{}.py", module.replace('.', "/"));
        if let Some(source) = self.read.get(&name) {
            return Some(Ok(Arc::clone(source)));
        }
        self.archive.entry(&name)?;
        Some(self.archive.source(&name))
    }
}

/// `CONSTANTS.c0` and so on, with their types. Code holds each constant as a tree, in which nothing is shared, so that
/// the size of these trees is limited.
fn read_constants(registry: &Registry, archive: &Arc<Archive>) -> Result<Vec<(Type, Value)>> {
    let pickle = archive.constants_pickle()?;
    let limit = archive.limits().constant_values;
    if unfolded_size(&pickle) > limit {
        return Err(Diagnostic::input(format!(
            "constants.pkl: the constants have more than {limit} values, where a value that is shared counts each time"
        ))
        .hint("Limits::constant_values is the limit"));
    }
    let empty = Module::default();
    let mut builder = Builder::new(registry, archive, "constants", &empty);
    let built = builder.build(&pickle)?;
    let (Value::Tuple(items), Some(types)) = (&built.root, built.ty.tuple_elements()) else {
        return Err(Diagnostic::input("constants.pkl does not hold a tuple"));
    };
    Ok(types.iter().cloned().zip(items.items().iter().cloned()).collect())
}
