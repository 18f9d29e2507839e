//! The code of old archives as modern code. There each module had a text with its methods alone, and the modules were
//! listed apart; here each module becomes a class, with its attributes stated before its methods.

use super::super::{Archive, Limits};
use super::model::{ModelDef, ModuleDef};
use crate::diag::{Diagnostic, Result, Source};
use crate::frontend::script::Library;
use indexmap::IndexMap;
use std::sync::Arc;

/// Module of the source in which the classes stand that are made here.
const HOME: &str = "__torch__.legacy";

/// A module with the class that was made for it.
#[derive(Debug)]
pub(super) struct Row<'a> {
    /// Qualified name of the class.
    pub(super) class: String,
    /// What the file says of it.
    pub(super) def: &'a ModuleDef,
    /// Places of its submodules among the rows, which stand before it.
    pub(super) children: Vec<usize>,
}

/// All modules, those within others first; the last is the root.
pub(super) fn rows(model: &ModelDef) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    add(&model.root, "", &mut rows);
    rows
}

fn add<'a>(def: &'a ModuleDef, path: &str, rows: &mut Vec<Row<'a>>) -> usize {
    let word: String = def.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let path = if path.is_empty() { format!("M_{word}") } else { format!("{path}_{word}") };
    let children = def.submodules.iter().map(|child| add(child, &path, rows)).collect();
    // The number keeps names apart.
    rows.push(Row { class: format!("{HOME}.{path}_{}", rows.len()), def, children });
    rows.len() - 1
}

/// Finds sources by module: the classes that are made, and the classes of the archive, which lie below `libs/`.
pub(super) struct Sources {
    pub(super) archive: Arc<Archive>,
    pub(super) made: Arc<Source>,
}

impl Library for Sources {
    fn source(&self, module: &str) -> Option<Result<Arc<Source>>> {
        if module == HOME {
            return Some(Ok(Arc::clone(&self.made)));
        }
        let name = format!("libs/{}.py", module.replace('.', "/"));
        self.archive.entry(&name)?;
        let read = self.archive.source(&name);
        Some(read.map(|source| Source::new(name, body(source.text()).join("\n") + "\n")))
    }
}

/// The lines of a text without those before its definitions: the version of the operators, and imports.
fn body(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.starts_with("op_version_set") && !line.starts_with("import ")).collect()
}

/// One class a module.
pub(super) fn classes(archive: &Archive, rows: &[Row<'_>]) -> Result<Arc<Source>> {
    let mut out = String::new();
    let limit = archive.limits().code_bytes;
    for row in rows {
        class(archive, row, rows, &mut out)?;
        if out.len() as u64 > limit {
            return Err(Diagnostic::input(format!("the code of the archive has more than {limit} bytes")));
        }
    }
    Ok(Source::new("model.json", out))
}

fn class(archive: &Archive, row: &Row<'_>, rows: &[Row<'_>], out: &mut String) -> Result<()> {
    let def = row.def;
    let name = row.class.rsplit('.').next().unwrap_or_default();
    let listed = |is_buffer: bool| {
        let chosen = def.parameters.iter().filter(|p| p.is_buffer == is_buffer);
        chosen.map(|p| format!("{:?}, ", p.name)).collect::<String>()
    };
    out.push_str(&format!("class {name}(Module):\n"));
    out.push_str(&format!("  __parameters__ = [{}]\n  __buffers__ = [{}]\n", listed(false), listed(true)));
    for (name, ty) in attributes(row, rows)? {
        out.push_str(&format!("  __annotations__[{name:?}] = {ty}\n"));
    }
    let Some(entry) = &def.code else { return Ok(()) };
    let source = archive.source(entry)?;
    for line in body(source.text()) {
        if !line.is_empty() {
            out.push_str("  ");
        }
        out.push_str(line);
        out.push('\n');
    }
    Ok(())
}

/// Names and types of all attributes. A name that stands twice counts as PyTorch counted it: the tensor first.
pub(super) fn attributes(row: &Row<'_>, rows: &[Row<'_>]) -> Result<IndexMap<String, String>> {
    let mut all = IndexMap::new();
    for parameter in &row.def.parameters {
        all.entry(parameter.name.clone()).or_insert_with(|| "Tensor".to_string());
    }
    for attribute in &row.def.attributes {
        // The text becomes a line of a class: nothing but a type may stand in it.
        let plain = |c: char| c.is_ascii_alphanumeric() || "_.[], ".contains(c);
        if attribute.ty.is_empty() || !attribute.ty.chars().all(plain) {
            return Err(Diagnostic::input(format!(
                "the attribute `{}` has the type `{}`",
                attribute.name.escape_debug(),
                attribute.ty.escape_debug()
            )));
        }
        all.entry(attribute.name.clone()).or_insert_with(|| attribute.ty.clone());
    }
    for child in &row.children {
        let Some(child) = rows.get(*child) else { continue };
        all.insert(child.def.name.clone(), child.class.clone());
    }
    // What restores itself sets all that it has.
    if row.def.state.is_none() {
        all.entry("training".to_string()).or_insert_with(|| "bool".to_string());
    }
    if let Some(name) = all.keys().find(|name| !name.chars().all(|c| c.is_alphanumeric() || c == '_')) {
        return Err(Diagnostic::input(format!("an attribute is called `{}`", name.escape_debug())));
    }
    Ok(all)
}

/// The limits of the file's reader hold here too: a model has not more modules than the archive may have entries.
pub(super) fn check_count(rows: &[Row<'_>], limits: &Limits) -> Result<()> {
    match rows.len() as u64 > limits.entries {
        true => Err(Diagnostic::input(format!("model.json has {} modules", rows.len()))),
        false => Ok(()),
    }
}
