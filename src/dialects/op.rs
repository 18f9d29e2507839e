//! What is asked of a registered op. It knows its own row and schema, no table and no other op.

use super::model::{Function, OpInner};
use super::{Family, Op, OpDef, Variant};
use crate::diag::Result;
use crate::ir::{Schema, Symbol, parse_schema};
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

impl Op {
    pub(super) fn new(def: OpDef, text: Cow<'static, str>, variant: Variant) -> Op {
        let end = text.find(['(', '.']).unwrap_or(text.len());
        let name = Symbol::new(&text[..end]);
        let (schema, marked) = (OnceLock::new(), OnceLock::new());
        Op(Arc::new(OpInner { def, text, variant, name, schema, marked, function: None }))
    }

    /// Its row.
    pub fn def(&self) -> &OpDef {
        &self.0.def
    }

    /// `aten::add`
    pub fn name(&self) -> Symbol {
        self.0.name
    }

    /// Which form of the row.
    pub fn variant(&self) -> Variant {
        self.0.variant
    }

    /// The schema as text.
    pub fn schema_text(&self) -> &str {
        &self.0.text
    }

    /// The schema. Fails only if its text is wrong, which a test excludes for built-in rows.
    pub fn schema(&self) -> Result<&Schema> {
        self.0.schema.get_or_init(|| parse_schema(&self.0.text)).as_ref().map_err(Clone::clone)
    }

    /// Whether it has a row. Others are known by their schema only, so that code that mentions them can be read.
    pub fn is_built(&self) -> bool {
        let def = &self.0.def;
        let has_meaning =
            def.eval.is_some() || def.scalar.is_some() || def.meaning.is_some() || def.region.is_some();
        has_meaning || def.family == Family::Control || def.declared || self.0.function.is_some()
    }

    /// What it does, if it was registered at run time.
    pub fn function(&self) -> Option<&Function> {
        self.0.function.as_deref()
    }

    /// `aten::add.Tensor`
    pub fn full_name(&self) -> &str {
        full_name(&self.0.text)
    }

    /// The schema with all alias marks, those included that PyTorch leaves out.
    pub fn marked_schema(&self) -> Result<&Schema> {
        match self.0.def.hidden {
            Some(hidden) if self.0.variant == Variant::Plain => {
                self.0.marked.get_or_init(|| parse_schema(hidden.schema)).as_ref().map_err(Clone::clone)
            }
            _ => self.schema(),
        }
    }

    /// An address that identifies the op while it lives.
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// Whether two handles are the same op.
    pub fn same(&self, other: &Op) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl std::fmt::Debug for Op {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.schema_text())
    }
}

/// The part of a schema before its arguments.
pub(super) fn full_name(schema: &str) -> &str {
    schema.split('(').next().unwrap_or(schema)
}
