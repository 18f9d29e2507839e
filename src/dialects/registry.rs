//! All ops by name, in order of registration. Registration is explicit and in a fixed order.

use super::{Family, OpDef, aten, fusion, prim};
use crate::diag::{Diagnostic, Result, nearest};
use crate::ir::{Schema, Symbol, parse_schema};
use indexmap::{IndexMap, IndexSet};
use std::sync::{Arc, LazyLock, OnceLock};

/// A registered op: its row and its parsed schema.
#[derive(Clone)]
pub struct Op(Arc<OpInner>);

struct OpInner {
    def: OpDef,
    /// The schema text; derived forms have their own.
    text: String,
    variant: Variant,
    name: Symbol,
    schema: OnceLock<Result<Schema>>,
}

/// Which form of its row an op is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// As the row says.
    Plain,
    /// Writes the result to its first argument and returns it.
    InPlace,
    /// Writes the result to its last argument and returns it.
    Out,
}

impl Op {
    fn new(def: OpDef, text: String, variant: Variant) -> Op {
        let end = text.find(['(', '.']).unwrap_or(text.len());
        let name = Symbol::new(&text[..end]);
        Op(Arc::new(OpInner { def, text, variant, name, schema: OnceLock::new() }))
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

/// The table of ops.
#[derive(Clone, Default)]
pub struct Registry {
    ops: IndexMap<Symbol, Vec<Op>>,
    dialects: IndexSet<&'static str>,
}

static BUILTIN: LazyLock<Arc<Registry>> = LazyLock::new(|| Arc::new(Registry::with_builtins()));

impl Registry {
    /// The built-in ops, made once.
    pub fn builtin() -> Arc<Registry> {
        Arc::clone(&BUILTIN)
    }

    /// A new table of the built-in ops, to add to.
    pub fn with_builtins() -> Registry {
        let mut registry = Registry::default();
        // Kernels have no rows: their constructs are a closed set of their own.
        registry.dialects.insert("loop");
        for table in prim::TABLES.iter().chain(fusion::TABLES).chain(aten::TABLES) {
            for def in *table {
                registry.add(*def);
            }
        }
        registry
    }

    /// Adds a row with its derived forms.
    pub fn add(&mut self, def: OpDef) {
        let plain = Op::new(def, def.schema.to_string(), Variant::Plain);
        self.insert(plain);
        if def.inplace {
            self.insert(Op::new(def, inplace_schema(def.schema), Variant::InPlace));
        }
        if let Some(overload) = def.out {
            self.insert(Op::new(def, out_schema(def.schema, overload), Variant::Out));
        }
    }

    /// Overloads that write to `out` stand behind the tensor overloads that do not, as in PyTorch.
    fn insert(&mut self, op: Op) {
        self.dialects.insert(op.name().namespace());
        let overloads = self.ops.entry(op.name()).or_default();
        let is_out = |op: &Op| op.variant() == Variant::Out;
        let at = match overloads.iter().position(is_out) {
            Some(at) if !is_out(&op) && !matches!(op.def().family, Family::Host | Family::Container) => at,
            _ => overloads.len(),
        };
        overloads.insert(at, op);
    }

    /// The overloads of a name in order of registration; empty if there is none.
    pub fn overloads(&self, name: Symbol) -> &[Op] {
        self.ops.get(&name).map_or(&[], Vec::as_slice)
    }

    /// An op by name and overload name.
    pub fn find(&self, name: &str, overload: &str) -> Option<&Op> {
        let overloads = self.overloads(Symbol::existing(name)?);
        overloads.iter().find(|op| op.schema().is_ok_and(|s| s.overload == overload))
    }

    /// All ops in order of registration of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Op> {
        self.ops.values().flatten()
    }

    /// Whether some op of a dialect is registered.
    pub fn has_dialect(&self, name: &str) -> bool {
        self.dialects.contains(name)
    }

    /// All dialects.
    pub fn dialects(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.dialects.iter().copied()
    }

    /// All names.
    pub fn names(&self) -> impl Iterator<Item = Symbol> + '_ {
        self.ops.keys().copied()
    }

    /// The error for a name that does not exist, with the nearest one that does.
    pub fn unknown(&self, name: Symbol) -> Diagnostic {
        let error = Diagnostic::unsupported(format!("operator {name} is not supported"));
        match nearest(name.as_str(), self.names().map(Symbol::as_str)) {
            Some(other) => error.hint(format!("did you mean {other}?")),
            None => error,
        }
    }
}

/// `aten::tanh(Tensor self) -> Tensor` → `aten::tanh_(Tensor(a!) self) -> Tensor(a!)`
fn inplace_schema(schema: &str) -> String {
    let at = schema.find(['(', '.']).unwrap_or(schema.len());
    let (name, rest) = schema.split_at(at);
    let rest = rest.replacen("(Tensor self", "(Tensor(a!) self", 1);
    let arguments = rest.split(" -> ").next().unwrap_or("");
    format!("{name}_{arguments} -> Tensor(a!)")
}

/// `aten::tanh(Tensor self) -> Tensor` → `aten::tanh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)`
fn out_schema(schema: &str, overload: &str) -> String {
    let open = schema.find('(').unwrap_or(schema.len());
    let name = schema[..open].split('.').next().unwrap_or("");
    let arguments = schema[open..].split(" -> ").next().unwrap_or("").trim_end_matches(')');
    let star = if arguments.contains("*, ") { "" } else { " *," };
    format!("{name}.{overload}{arguments},{star} Tensor(a!) out) -> Tensor(a!)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_schemas() {
        assert_eq!(
            inplace_schema("aten::add.Tensor(Tensor self, Tensor other) -> Tensor"),
            "aten::add_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)"
        );
        assert_eq!(
            out_schema("aten::tanh(Tensor self) -> Tensor", "out"),
            "aten::tanh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)"
        );
    }

    #[test]
    fn every_schema_parses() {
        let registry = Registry::builtin();
        let broken: Vec<String> = registry
            .iter()
            .filter_map(|op| op.schema().err().map(|d| format!("{}: {d}", op.schema_text())))
            .collect();
        assert!(broken.is_empty(), "{}", broken.join("\n"));
    }

    #[test]
    fn every_schema_prints_as_it_was_written() {
        let registry = Registry::builtin();
        let printed = |op: &Op| op.schema().map_or_else(|d| d.to_string(), |s| s.to_string());
        let changed: Vec<String> = registry
            .iter()
            .filter(|op| printed(op) != op.schema_text())
            .map(|op| format!("{} prints as {}", op.schema_text(), printed(op)))
            .collect();
        assert!(changed.is_empty(), "{}", changed.join("\n"));
    }

    #[test]
    fn every_overload_has_one_row() {
        let registry = Registry::builtin();
        let mut seen = std::collections::BTreeMap::new();
        let mut twice = Vec::new();
        for op in registry.iter() {
            let overload = op.schema().map_or_else(|d| d.to_string(), |s| s.overload.to_string());
            if let Some(other) = seen.insert((op.name().as_str(), overload), op.schema_text().to_string()) {
                twice.push(format!("{} and {other}", op.schema_text()));
            }
        }
        assert!(twice.is_empty(), "{}", twice.join("\n"));
    }
}
