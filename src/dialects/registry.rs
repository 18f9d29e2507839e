//! All ops by name, in order of registration. Registration is explicit and in a fixed order.

use super::constraint::Declaration;
use super::forms::{Form, expanded, inplace_schema, out_schema};
use super::grads::Grads;
use super::model::OpInner;
use super::op::full_name;
use super::op_def::declared;
use super::{Args, CustomClass, Effects, Family, Op, OpDef, Outputs, Variant};
use crate::diag::{Diagnostic, Result, Source, nearest};
use crate::ir::{Symbol, parse_schema};
use hashbrown::{HashMap, HashSet};
use indexmap::{IndexMap, IndexSet};
use parking_lot::Mutex;
use std::any::Any;
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

/// The schemas of all operators of PyTorch and torchvision, one a line, overloads in the order in which PyTorch tries them
/// (`scripts/record_schemas.py`). Those without a row can be named and typed but not run: a program that mentions one in
/// a branch it never takes runs all the same.
const SCHEMAS: &str = include_str!("schemas.txt");

/// The table of ops.
#[derive(Clone, Default)]
pub struct Registry {
    ops: IndexMap<Symbol, Vec<Op>, hashbrown::DefaultHashBuilder>,
    dialects: IndexSet<&'static str>,
    types: IndexMap<Symbol, Declaration>,
    attributes: IndexMap<Symbol, Declaration>,
    pub(super) derived: Derived,
    classes: IndexMap<Symbol, CustomClass>,
    pub(super) grads: Grads,
    parts: Vec<Part>,
}

/// What a layer above this one keeps with the table: rule groups, lowerings. One value of each type.
type Part = Arc<dyn Any + Send + Sync>;

/// What was computed from a table, one value of each type. A copy of the table has the same content and shares them;
/// a table that changes starts anew.
#[derive(Clone, Default)]
pub(super) struct Derived(pub(super) Arc<Mutex<Vec<Arc<dyn Any + Send + Sync>>>>);

impl Registry {
    /// Derivatives that stand in files of their own.
    pub fn grads(&self) -> &Grads {
        &self.grads
    }

    /// Adds derivatives from a file; what they say of an op takes the place of what its row says.
    pub fn add_grads(&mut self, source: &Arc<Source>) -> Result<()> {
        self.changed();
        self.grads.add(source)
    }

    /// A value that follows from the ops of this table, computed when first asked for and kept until the table
    /// changes. What is computed must not depend on anything but the table and the type.
    pub fn derived<T: Any + Send + Sync>(&self, compute: impl FnOnce(&Registry) -> T) -> Arc<T> {
        let find = |all: &[Arc<dyn Any + Send + Sync>]| {
            all.iter().find_map(|value| Arc::clone(value).downcast::<T>().ok())
        };
        if let Some(known) = find(&self.derived.0.lock()) {
            return known;
        }
        // Not under the lock: what is computed may ask for other values. The second to arrive takes the first's.
        let new = Arc::new(compute(self));
        let mut all = self.derived.0.lock();
        find(&all).unwrap_or_else(|| {
            all.push(Arc::clone(&new) as Arc<dyn Any + Send + Sync>);
            new
        })
    }

    /// Keeps a value with the table, in the place of the one of its type: what a layer above this one knows besides rows
    /// (rule groups, lowerings), so that users of the table have it too.
    pub fn set_part<T: Any + Send + Sync>(&mut self, part: T) {
        self.changed();
        self.parts.retain(|other| !(**other).is::<T>());
        self.parts.push(Arc::new(part));
    }

    /// The value of a type that is kept with the table.
    pub fn part<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.parts.iter().find_map(|part| (**part).downcast_ref())
    }

    /// Forgets what was computed from the table as it was.
    fn changed(&mut self) {
        self.derived = Derived::default();
    }

    /// Adds the schemas that have no row, and puts overloads in PyTorch's order; those that PyTorch has not follow.
    pub(super) fn declare_all(&mut self) {
        self.changed();
        let places: HashMap<&str, usize> = SCHEMAS.lines().map(full_name).zip(0..).collect();
        let built: HashSet<usize> =
            self.iter().filter_map(|op| places.get(op.full_name()).copied()).collect();
        for (_, text) in SCHEMAS.lines().enumerate().filter(|(place, _)| !built.contains(place)) {
            let op = Op::new(declared(text), Cow::Borrowed(text), Variant::Plain);
            self.ops.entry(op.name()).or_default().push(op);
        }
        for overloads in self.ops.values_mut().filter(|overloads| overloads.len() > 1) {
            overloads.sort_by_key(|op| places.get(op.full_name()).copied().unwrap_or(usize::MAX));
        }
    }

    /// Adds a row with its derived forms.
    pub fn add(&mut self, def: OpDef) {
        for Form { def, schema, out } in expanded(def) {
            let inplace = def.inplace.then(|| inplace_schema(&schema));
            let out = out.map(|overload| out_schema(&schema, &overload, def.outs));
            self.insert(Op::new(def, schema, Variant::Plain));
            if let Some(inplace) = inplace {
                self.insert(Op::new(def, inplace.into(), Variant::InPlace));
            }
            if let Some(out) = out {
                self.insert(Op::new(def, out.into(), Variant::Out));
            }
        }
    }

    /// The same for a row that is not known to be right: fails for a malformed schema, one whose derived forms would be
    /// malformed, and an overload that is there already. Gives the op's name.
    pub fn add_checked(&mut self, def: OpDef) -> Result<Symbol> {
        let mut texts = Vec::new();
        for Form { def, schema, out } in expanded(def) {
            texts.extend(def.inplace.then(|| inplace_schema(&schema).into()));
            texts.extend(out.map(|overload| out_schema(&schema, &overload, def.outs).into()));
            texts.push(schema);
        }
        for text in &texts {
            let schema = parse_schema(text)?;
            let taken = |op: &Op| op.is_built() && op.full_name() == full_name(text);
            if self.overloads(schema.name).iter().any(taken) {
                return Err(Diagnostic::input(format!("operator {} is registered already", full_name(text))));
            }
        }
        self.add(def);
        parse_schema(def.schema).map(|schema| schema.name)
    }

    /// Adds an op of the caller's at run time: a schema and what it does. Source calls it as `torch.ops.mine.op(...)`,
    /// graphs as `mine::op`, archives as `ops.mine.op`. It must not write to arguments that its schema does not mark
    /// (`Tensor(a!)`), nor depend on anything but them; for ops that do, say so with [`Registry::register_with`].
    ///
    /// The schema's text is kept as long as the process lives. A malformed schema is an error, and so is an overload
    /// that is there already.
    ///
    /// ```
    /// # use flambeau_ops as flambeau; // the crate that shows this one
    /// use flambeau::dialects::{Registry, one};
    ///
    /// let mut registry = Registry::with_builtins();
    /// registry.register("mine::twice(int x) -> int", |args| one(2 * args.int(0)?))?;
    /// # Ok::<(), flambeau::diag::Diagnostic>(())
    /// ```
    pub fn register(
        &mut self,
        schema: &str,
        function: impl Fn(&Args<'_>) -> Result<Outputs> + Send + Sync + 'static,
    ) -> Result<Op> {
        self.register_with(schema, Effects::MAY_RAISE, function)
    }

    /// As [`Registry::register`], with the effects that the op has besides its results and the marks of its schema.
    pub fn register_with(
        &mut self,
        schema: &str,
        effects: Effects,
        function: impl Fn(&Args<'_>) -> Result<Outputs> + Send + Sync + 'static,
    ) -> Result<Op> {
        let parsed = parse_schema(schema)?;
        let taken = |op: &Op| op.is_built() && op.full_name() == full_name(schema);
        if self.overloads(parsed.name).iter().any(taken) {
            return Err(Diagnostic::input(format!("operator {} is registered already", full_name(schema)))
                .hint("give the overload a name of its own: mine::op.other(...)"));
        }
        let text: &'static str = String::from(schema).leak();
        let op = Op(Arc::new(OpInner {
            def: declared(text).effects(effects),
            text: Cow::Borrowed(text),
            variant: Variant::Plain,
            name: parsed.name,
            schema: OnceLock::from(Ok(parsed)),
            marked: OnceLock::new(),
            function: Some(Box::new(function)),
        }));
        self.insert(op.clone());
        Ok(op)
    }

    /// Puts a row in the place of the overload with its name, whatever row that came from.
    pub fn replace(&mut self, def: OpDef) {
        self.changed();
        let op = Op::new(def, Cow::Borrowed(def.schema), Variant::Plain);
        let of = |text: &str| text.split('(').next().unwrap_or_default().to_string();
        let wanted = of(op.schema_text());
        let overloads = self.ops.entry(op.name()).or_default();
        match overloads.iter_mut().find(|o| of(o.schema_text()) == wanted) {
            Some(old) => *old = op,
            None => overloads.push(op),
        }
    }

    /// A row takes the place of a mere declaration. Overloads that write to `out` follow the tensor overloads that do not, as in PyTorch.
    fn insert(&mut self, op: Op) {
        self.changed();
        self.dialects.insert(op.name().namespace());
        let overloads = self.ops.entry(op.name()).or_default();
        overloads.retain(|other| other.is_built() || other.full_name() != op.full_name());
        let is_out = |op: &Op| op.variant() == Variant::Out;
        let at = match overloads.iter().position(is_out) {
            Some(at) if !is_out(&op) && !matches!(op.def().family, Family::Host | Family::Container) => at,
            _ => overloads.len(),
        };
        overloads.insert(at, op);
    }

    /// Adds a custom class; a class of the same name is replaced.
    pub fn add_class(&mut self, class: CustomClass) {
        self.changed();
        self.classes.insert(Symbol::new(class.name), class);
    }

    /// A custom class by its qualified name.
    pub fn custom_class(&self, name: Symbol) -> Option<&CustomClass> {
        self.classes.get(&name)
    }

    /// All custom classes, in order of registration.
    pub fn custom_classes(&self) -> impl Iterator<Item = &CustomClass> {
        self.classes.values()
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

    /// All ops that can run, in order of registration of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Op> {
        self.ops.values().flatten().filter(|op| op.is_built())
    }

    /// Adds the types and attributes of a dialect.
    pub fn declare(&mut self, dialect: &str, types: &[Declaration], attributes: &[Declaration]) {
        self.changed();
        self.dialects.insert(Symbol::new(dialect).as_str());
        self.types.extend(types.iter().map(|t| (t.name, t.clone())));
        self.attributes.extend(attributes.iter().map(|a| (a.name, a.clone())));
    }

    /// A declared type by its name, `dialect.name`.
    pub fn declared_type(&self, name: Symbol) -> Option<&Declaration> {
        self.types.get(&name)
    }

    /// All declared types.
    pub fn declared_types(&self) -> impl Iterator<Item = &Declaration> {
        self.types.values()
    }

    /// A declared attribute by its name, `dialect.name`.
    pub fn declared_attribute(&self, name: Symbol) -> Option<&Declaration> {
        self.attributes.get(&name)
    }

    /// All declared attributes.
    pub fn declared_attributes(&self) -> impl Iterator<Item = &Declaration> {
        self.attributes.values()
    }

    /// Whether text files declared something.
    pub fn has_declared(&self) -> bool {
        !self.types.is_empty() || !self.attributes.is_empty() || self.iter().any(|op| op.def().declared)
    }

    /// Whether some op of a dialect is registered.
    pub fn has_dialect(&self, name: &str) -> bool {
        self.dialects.contains(name)
    }

    /// All dialects.
    pub fn dialects(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.dialects.iter().copied()
    }

    /// The names of all ops that can run.
    pub fn names(&self) -> impl Iterator<Item = Symbol> + '_ {
        let built = |overloads: &[Op]| overloads.iter().any(Op::is_built);
        self.ops.iter().filter(move |(_, overloads)| built(overloads)).map(|(name, _)| *name)
    }

    /// The error for a name that does not exist, with the nearest one of its dialect that does. Where the dialect does not
    /// exist either, the nearest dialect that has the op.
    pub fn unknown(&self, name: Symbol) -> Diagnostic {
        let error = Diagnostic::unsupported(format!("operator {name} is not supported"));
        if let Some(origin) = super::classes::origin(name.namespace()) {
            return error.note(format!("it comes from {origin}"));
        }
        let (dialect, base) = (name.namespace(), name.base());
        let near = if self.has_dialect(dialect) {
            let own = self.names().filter(|other| other.namespace() == dialect);
            nearest(base, own.map(|other| other.base())).map(|near| (dialect, near))
        } else {
            let having = self.names().filter(|other| other.base() == base);
            nearest(dialect, having.map(|other| other.namespace())).map(|near| (near, base))
        };
        match near {
            Some((dialect, base)) => error.hint(format!("did you mean {dialect}::{base}?")),
            None => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_parses() {
        let registry = Registry::builtin();
        let broken: Vec<String> = registry
            .iter()
            .filter_map(|op| {
                op.schema().and(op.marked_schema()).err().map(|d| format!("{}: {d}", op.schema_text()))
            })
            .collect();
        assert!(broken.is_empty(), "{}", broken.join("\n"));
    }

    #[test]
    fn every_schema_of_pytorch_parses_and_prints_back() {
        let printed = |text: &str| parse_schema(text).map_or_else(|d| d.to_string(), |s| s.to_string());
        let changed: Vec<String> = SCHEMAS
            .lines()
            .filter(|text| printed(text) != *text)
            .map(|text| format!("{text} prints as {}", printed(text)))
            .collect();
        assert!(changed.is_empty(), "{}", changed.join("\n"));
    }

    #[test]
    fn an_op_without_a_row_is_known_but_not_counted() {
        let registry = Registry::builtin();
        let declared = registry.find("torchvision::qnms", "").expect("declared");
        assert!(!declared.is_built() && registry.iter().all(|op| op.name() != declared.name()));
        let mut mine = Registry::with_builtins();
        mine.add(super::super::composite(
            "torchvision::qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
            "def qnms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:\n    return dets\n",
        ));
        assert!(mine.overloads(declared.name()).iter().all(Op::is_built));
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
