//! Freezing: attributes of a model that nothing changes become constants of its `forward` and of methods that `preserve`
//! names, and what can be computed from them is computed now.
//!
//! Calls are inlined first, so that every attribute that a method reads is a chain of GetAttr from its object. Frozen
//! are attributes that no op of these methods sets or writes to, in two rounds: numbers and text first, so that what runs
//! in training only is gone when tensors are examined. The model must be in evaluation mode. As in PyTorch, other
//! methods are gone afterwards, and so are the model's attributes that nothing reads any more. A caller who changes a
//! frozen attribute later is not seen: that is what freezing means.

use super::freeze_attributes::{self, Changed, Read};
use super::{
    Context, PassOption, constant_pooling, constant_propagation, dce, fold_frozen, inline, rule_group,
};
use crate::analysis::AliasDb;
use crate::diag::{Diagnostic, Result};
use crate::ir::{Graph, Module, Symbol};
use crate::value::{Object, Value};
use hashbrown::HashSet;

/// What `torch.jit.freeze` takes.
pub(super) const OPTIONS: &[PassOption] = &[
    PassOption::text("preserve", "", "attributes and methods to preserve: \"version,encode,head.scale\""),
    PassOption::bool("numerics", true, "fold batch norm into weights, which changes results by rounding"),
];

pub(super) fn run(module: &mut Module, context: &Context<'_>) -> Result<bool> {
    let Some(instance) = context.extra::<Object>() else {
        return Err(Diagnostic::input("only a model that was loaded from an archive can be frozen")
            .hint("give a .pt file; graph text has no values of attributes"));
    };
    if let Some(Value::Bool(true)) = instance.get(Symbol::new("training")) {
        return Err(
            Diagnostic::input("a model in training mode cannot be frozen").hint("save it after model.eval()")
        );
    }
    let wanted = Wanted::read(context.text("preserve").unwrap_or(""), module, instance)?;
    let mut rest = module.clone();
    let mut set = Changed::default();
    for name in &wanted.functions {
        let Some(function) = module.functions.get_mut(name) else { continue };
        inline::run(&mut function.graph, &context.beside(&rest))?;
        context.changed();
        set.add_set(&function.graph);
        rest.functions.insert(*name, function.clone());
    }
    let numerics = context.flag("numerics").unwrap_or(true);
    let mut freeze = Freeze { instance, wanted: &wanted, changed: set, numerics };
    for name in &wanted.functions {
        let Some(function) = module.functions.get_mut(name) else { continue };
        context.changed();
        freeze.numbers(&mut function.graph, &context.beside(&rest))?;
    }
    // What is written in training only is not written any more.
    for name in &wanted.functions {
        context.changed();
        module.functions.get(name).into_iter().for_each(|f| freeze.changed.add(&f.graph, context));
    }
    for name in &wanted.functions {
        let Some(function) = module.functions.get_mut(name) else { continue };
        context.changed();
        freeze.objects(&mut function.graph, &context.beside(&rest))?;
    }
    wanted.remove_others(module, instance);
    Ok(context.steps() > 0)
}

/// What stays.
struct Wanted {
    /// Qualified names of `forward` and of preserved methods.
    functions: Vec<Symbol>,
    /// Preserved attributes: whose, and their names.
    attributes: HashSet<(usize, Symbol)>,
    /// Attributes of the model itself that are preserved or lead to one that is.
    roots: HashSet<Symbol>,
}

impl Wanted {
    /// Reads a list of names and dotted paths. Fails where the model has no attribute or method of the name.
    fn read(names: &str, module: &Module, instance: &Object) -> Result<Wanted> {
        let Some(forward) = module.method(instance.class(), "forward") else {
            return Err(Diagnostic::input("the model has no method 'forward'"));
        };
        let mut wanted = Wanted {
            functions: vec![forward.name],
            attributes: HashSet::default(),
            roots: HashSet::default(),
        };
        for name in names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match module.method(instance.class(), name) {
                Some(method) if !wanted.functions.contains(&method.name) => {
                    wanted.functions.push(method.name);
                }
                Some(_) => {}
                None => wanted.add_attribute(name, instance)?,
            }
        }
        Ok(wanted)
    }

    fn add_attribute(&mut self, path: &str, instance: &Object) -> Result<()> {
        let unknown = || {
            Diagnostic::input(format!("Unknown name: {path}"))
                .hint("preserve takes attributes and methods of the model, separated by commas")
        };
        let mut object = instance.clone();
        let mut parts = path.split('.').map(Symbol::new).peekable();
        self.roots.extend(parts.peek().copied());
        while let Some(part) = parts.next() {
            let value = object.get(part).ok_or_else(unknown)?;
            match value {
                Value::Object(inner) if parts.peek().is_some() => object = inner,
                _ if parts.peek().is_some() => return Err(unknown()),
                _ => {
                    self.attributes.insert((object.id(), part));
                }
            }
        }
        Ok(())
    }

    /// Removes other methods of the model, and attributes that no method reads.
    fn remove_others(&self, module: &mut Module, instance: &Object) {
        let graphs = self.functions.iter().filter_map(|name| module.functions.get(name)).map(|f| &f.graph);
        let mut read = self.roots.clone();
        let mut calls = false;
        for graph in graphs {
            let this = graph.inputs().first().copied();
            for op in graph.all_ops() {
                match graph.kind(op).as_str() {
                    "prim::GetAttr" | "prim::SetAttr" if graph.operand(op, 0) == this => {
                        read.extend(freeze_attributes::name_of(graph, op));
                    }
                    "prim::CallMethod" | "prim::CallFunction" => calls = true,
                    _ => {}
                }
            }
        }
        // A call that could not be inlined may call any method.
        let Some(class) = module.classes.get_mut(&instance.class()).filter(|_| !calls) else { return };
        let kept = |function: &Symbol| self.functions.contains(function);
        let gone: Vec<Symbol> = class.methods.values().filter(|f| !kept(f)).copied().collect();
        class.methods.retain(|_, function| kept(function));
        class.properties.clear();
        class.attributes.retain(|attribute| read.contains(&attribute.name));
        for function in gone {
            module.functions.shift_remove(&function);
        }
    }
}

/// How methods are frozen.
struct Freeze<'a> {
    instance: &'a Object,
    wanted: &'a Wanted,
    changed: Changed,
    numerics: bool,
}

impl Freeze<'_> {
    /// Freezes numbers and text, and removes what does not run with them.
    fn numbers(&self, graph: &mut Graph, context: &Context<'_>) -> Result<()> {
        self.make_constants(graph, context, false);
        context.changed();
        constant_propagation::immutable_types(graph, context)?;
        context.changed();
        dce::run(graph, context)?;
        Ok(())
    }

    /// Freezes the rest, and computes what can be computed.
    fn objects(&self, graph: &mut Graph, context: &Context<'_>) -> Result<()> {
        self.make_constants(graph, context, true);
        context.changed();
        rule_group::REMOVE_DROPOUT.run(graph, context)?;
        if self.numerics {
            fold_frozen::run(graph, context)?;
        }
        context.changed();
        constant_propagation::run(graph, context)?;
        context.changed();
        dce::run(graph, context)?;
        context.changed();
        constant_pooling::run(graph, context)?;
        Ok(())
    }

    /// Replaces reads of attributes by constants. `objects`: tensors and lists too, where nothing writes to them.
    fn make_constants(&self, graph: &mut Graph, context: &Context<'_>, objects: bool) {
        let takes = |graph: &Graph, read: &Read| {
            let is_object = matches!(read.value, Value::Object(_));
            let in_round = objects || is_object || !AliasDb::is_mutable_type(graph.ty(read.result));
            let wanted = in_round && !self.wanted.attributes.contains(&(read.object.id(), read.name));
            wanted.then(|| detached(&read.value))
        };
        freeze_attributes::freeze(graph, context, self.instance, &self.changed, takes, |_| {});
    }
}

/// A value whose tensors require no gradients: frozen models cannot be trained.
fn detached(value: &Value) -> Value {
    match value {
        Value::Tensor(tensor) => Value::Tensor(tensor.detach()),
        other => other.clone(),
    }
}
