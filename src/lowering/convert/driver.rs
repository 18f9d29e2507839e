//! Applies lowerings to the ops of a module, and says what is left.

use super::{ConversionTarget, Legality, Lowerings};
use crate::analysis::shapes::merge;
use crate::diag::{Diagnostic, Result, Span};
use crate::dialects::prim::constant;
use crate::dialects::shapes::Known;
use crate::dialects::{NOT_LOWERED, Op, Variant, loops, resolve};
use crate::ir::{
    Attr, Dim, Function, Graph, Module, OpId, PrintOptions, Symbol, TensorType, Type, TypeKind, ValueId,
    derived_schema,
};
use crate::lowering::Target;
use crate::lowering::by_op::{Launched, OpCall, Rewriter};
use crate::passes::{Context, known_by_symbols};
use indexmap::IndexMap;

/// Maximum depth to which the output of lowerings is lowered again.
const MAX_DEPTH: usize = 16;

/// Replaces ops that a target does not call legal by kernels, where a lowering handles them. Kernels become functions of the
/// module; equal ones are one function. An op that each lowering refuses and that may stay says why in its attribute
/// `not_lowered`. Fails, with each op and each refusal, where one is left that must go; says whether anything changed.
pub fn convert(
    module: &mut Module,
    context: &Context<'_>,
    target: &ConversionTarget,
    machine: Target,
) -> Result<bool> {
    for name in target.named() {
        Lowerings::find(context.registry, name)?;
    }
    let mut kernels = Kernels::of(module);
    let (mut changed, mut left) = (false, Vec::new());
    for function in module.functions.values_mut() {
        if loops::is_kernel(&function.graph) {
            continue;
        }
        let graph = &mut function.graph;
        let known = known_by_symbols(graph, context);
        let mut conversion =
            Conversion { graph, context, target, machine, known, kernels: &mut kernels, left: Vec::new() };
        changed |= conversion.run();
        left.append(&mut conversion.left);
    }
    for function in kernels.made {
        module.functions.insert(function.name, function);
    }
    match left.is_empty() {
        true => Ok(changed),
        false => Err(failure(left)),
    }
}

/// An op that must go and is left.
struct Left {
    line: String,
    span: Option<Span>,
    why: String,
}

fn failure(left: Vec<Left>) -> Diagnostic {
    let count = left.len();
    let ops = if count == 1 { "1 op is".to_string() } else { format!("{count} ops are") };
    let mut error = Diagnostic::unsupported(format!("{ops} left that the target does not allow"));
    error = error.at_opt(left.iter().find_map(|op| op.span.as_ref()));
    left.into_iter().fold(error, |error, op| error.note(format!("{}: {}", op.line, op.why)))
}

/// Kernels of the module by what they are called, and those to be added.
struct Kernels {
    /// The text of each function that is a kernel; other functions have none.
    texts: IndexMap<Symbol, Option<String>>,
    made: Vec<Function>,
}

impl Kernels {
    fn of(module: &Module) -> Kernels {
        let text = |f: &Function| loops::is_kernel(&f.graph).then(|| f.graph.to_text(&PrintOptions::bare()));
        Kernels {
            texts: module.functions.iter().map(|(name, function)| (*name, text(function))).collect(),
            made: Vec::new(),
        }
    }

    /// The function of a kernel: one that is there and equal, or a new one.
    fn function(&mut self, launched: Launched) -> Symbol {
        let text = launched.graph.to_text(&PrintOptions::bare());
        let numbered = |n: usize| match n {
            0 => Symbol::new(&launched.name),
            n => Symbol::new(&format!("{}.{n}", launched.name)),
        };
        let mut n = 0;
        let name = loop {
            let name = numbered(n);
            match self.texts.get(&name) {
                Some(Some(other)) if *other == text => return name,
                Some(_) => n += 1,
                None => break name,
            }
        };
        let schema = derived_schema(name, &launched.graph);
        self.texts.insert(name, Some(text));
        self.made.push(Function { name, schema, graph: launched.graph, span: None });
        name
    }
}

struct Conversion<'a, 'c> {
    graph: &'a mut Graph,
    context: &'a Context<'c>,
    target: &'a ConversionTarget,
    machine: Target,
    /// What is known of each value.
    known: Vec<Known>,
    kernels: &'a mut Kernels,
    left: Vec<Left>,
}

impl Conversion<'_, '_> {
    fn run(&mut self) -> bool {
        let mut changed = false;
        let mut work: Vec<(OpId, usize)> = self.graph.all_ops().into_iter().map(|op| (op, 0)).rev().collect();
        while let Some((op, depth)) = work.pop() {
            let row = resolve(self.context.registry, self.graph, op).ok();
            let legality = self.target.legality(self.graph, op, row.as_ref());
            if legality == Legality::Legal {
                continue;
            }
            if self.context.is_spent() {
                break;
            }
            match self.lower(op, row.as_ref(), depth) {
                Ok(written) => {
                    changed = true;
                    self.context.count("ops lowered", 1);
                    work.extend(written.into_iter().rev().map(|op| (op, depth + 1)));
                }
                Err(refusals) => changed |= self.stays(op, &legality, refusals),
            }
        }
        changed
    }

    /// An op that nothing lowers: it is left, or stays and says why.
    fn stays(&mut self, op: OpId, legality: &Legality, refusals: Vec<String>) -> bool {
        let must = match legality {
            Legality::Illegal(said) => Some(format!("'{said}' is illegal")),
            _ if self.target.is_full() => Some("nothing calls it legal".to_string()),
            _ => None,
        };
        let Some(must) = must else {
            if refusals.is_empty() {
                return false;
            }
            self.context.count("ops not lowered", 1);
            let before = self.graph.attr(op, NOT_LOWERED).cloned();
            let why = Attr::Str(refusals.join("; ").into());
            let changed = before.as_ref() != Some(&why);
            self.graph.set_attr(op, NOT_LOWERED, why);
            return changed;
        };
        let why = match refusals.is_empty() {
            true => format!("{must}, and no lowering handles it"),
            false => format!("{must}; {}", refusals.join("; ")),
        };
        let span = self.graph.location(op).and_then(|l| l.span()).cloned();
        self.left.push(Left { line: self.graph.op_line(op).trim().to_string(), span, why });
        false
    }

    /// Asks the lowerings of an op, one after the other; gives what was written instead, or why each refused.
    fn lower(&mut self, op: OpId, row: Option<&Op>, depth: usize) -> Result<Vec<OpId>, Vec<String>> {
        let Some(row) = row else { return Err(Vec::new()) };
        let mut lowerings = Lowerings::of(self.context.registry, row);
        lowerings.retain(|lowering| self.target.asks(lowering.name()));
        if lowerings.is_empty() {
            return Err(Vec::new());
        }
        let call = self.call(op, row);
        if let Some(why) = barred(&call, depth) {
            return Err(vec![why]);
        }
        let line = self.graph.op_line(op);
        let mut refusals = Vec::new();
        for lowering in lowerings {
            let mut rewriter = Rewriter::new(self.graph, op, self.context.registry);
            let results = lowering.lower(&call, &mut rewriter);
            let expected = call.results.len();
            let results = results.and_then(|values| match values.len() == expected {
                true => Ok(values),
                false => {
                    Err(Diagnostic::internal(format!("gives {} values for {expected} results", values.len())))
                }
            });
            match results {
                Ok(values) => {
                    let (written, kernels) = rewriter.finish();
                    self.context.step(|| format!("lowers {} by {}", line.trim(), lowering.name()));
                    self.replace(op, &values, &written, kernels);
                    return Ok(written);
                }
                Err(error) => {
                    rewriter.undo();
                    refusals.push(format!("{}: {}", lowering.name(), error.message()));
                }
            }
        }
        Err(refusals)
    }

    fn call(&self, op: OpId, row: &Op) -> OpCall {
        let known = |values: &[ValueId]| values.iter().map(|v| self.known_of(*v)).collect::<Vec<_>>();
        OpCall {
            row: row.clone(),
            operands: self.graph.operands(op).to_vec(),
            known: known(self.graph.operands(op)),
            results: known(&self.graph.results(op)),
            attributes: self.graph.attrs(op).to_vec(),
            target: self.machine,
        }
    }

    fn known_of(&self, value: ValueId) -> Known {
        self.known.get(value.index()).cloned().unwrap_or_else(|| Known::of_type(self.graph.ty(value)))
    }

    fn replace(&mut self, op: OpId, values: &[ValueId], written: &[OpId], kernels: Vec<Launched>) {
        for launched in kernels {
            let constant = launched.constant;
            let name = self.kernels.function(launched);
            self.graph.set_attr(constant, "name", Attr::Str(name.as_str().into()));
            if let Some(function) = self.graph.result(constant, 0) {
                self.graph.set_type(function, Type::new(TypeKind::Function(name)));
            }
        }
        self.known.resize(self.graph.value_capacity(), Known::Nothing);
        for op in written {
            for value in self.graph.results(*op) {
                self.known[value.index()] = match self.graph.kind(*op) == "prim::Constant" {
                    true => constant::value(self.graph.attrs(*op), Some(self.graph.ty(value)))
                        .map_or(Known::Nothing, |value| Known::of_value(&value)),
                    false => Known::of_type(self.graph.ty(value)),
                };
            }
        }
        for (old, new) in self.graph.results(op).into_iter().zip(values) {
            let is_new = self.graph.def_op(*new).is_some_and(|def| written.contains(&def));
            if is_new
                && let (Known::Tensor(found), TypeKind::Tensor(declared)) =
                    (self.known_of(old), self.graph.ty(*new).kind())
            {
                let ty = merge(&found, declared);
                let shown = self.shown(ty.clone(), old);
                self.known[new.index()] = Known::Tensor(ty);
                self.graph.set_type(*new, Type::new(TypeKind::Tensor(shown)));
            }
        }
        self.graph.replace_op(op, values);
    }
}

impl Conversion<'_, '_> {
    /// A type as it may stand in the graph: symbols of this conversion mean nothing to other passes, those that the value had do.
    fn shown(&self, mut ty: TensorType, old: ValueId) -> TensorType {
        let own = self.graph.ty(old).as_tensor().and_then(|t| t.sizes.as_deref()).unwrap_or_default();
        let known = |dim: &Dim| matches!(dim, Dim::Known(_)) || own.contains(dim);
        ty.sizes = ty
            .sizes
            .map(|sizes| sizes.iter().map(|dim| if known(dim) { *dim } else { Dim::Unknown }).collect());
        ty
    }
}

/// Why no lowering may have an op.
fn barred(call: &OpCall, depth: usize) -> Option<String> {
    let schema = call.op().marked_schema().ok()?;
    let is_written = |a: &crate::ir::Argument| a.alias.as_ref().is_some_and(|alias| alias.is_write);
    if depth >= MAX_DEPTH {
        return Some(format!("lowerings of lowerings nest {MAX_DEPTH} deep"));
    }
    if call.op().variant() != Variant::Plain || schema.arguments.iter().any(is_written) {
        return Some("it writes to an operand".into());
    }
    if call.operands.len() != schema.arguments.len() {
        return Some("it takes operands that its schema does not name".into());
    }
    if call.may_need_gradient() {
        return Some("an operand may require grad, and kernels record nothing".into());
    }
    None
}
