//! The graphs of a recorded call: the function's own, its forward and backward, the draws before them and what makes results of
//! what the forward gives. All of it follows from one graph and from which inputs want gradients, so that it may be kept on disk.
//! It knows nothing of code, calls or tensors that are lent, and no op by name.

use super::super::making::{Making, Step};
use super::super::results::{self, Parts};
use super::super::{draws, origins};
use crate::analysis::facts;
use crate::autodiff;
use crate::diag::{Diagnostic, Result};
use crate::dialects::Registry;
use crate::ir::{Graph, Module, OpId, Type, TypeKind, ValueDef, ValueId};
use crate::passes::{self, Context, Extras, Pipeline};
use hashbrown::HashSet;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, LazyLock};

static PREPARE: LazyLock<Result<Pipeline>> = LazyLock::new(|| passes::parse("record"));
static FINISH: LazyLock<Result<Pipeline>> = LazyLock::new(|| passes::parse("record-finish"));

/// The graphs of a recorded call.
pub(in super::super) struct Graphs {
    /// The function before it was split: from operands to tensors that it gives.
    pub(super) own: Graph,
    /// From operands to what it gives, what buffers become, bools for outputs that are open, and what is kept.
    pub(super) forward: Graph,
    /// From operands, what is kept and gradients of outputs that follow, to gradients of operands that want one.
    pub(super) backward: Graph,
    /// Makes results of what the forward gives.
    pub(super) results: Graph,
    /// Draws the random numbers of a call: its last operands.
    pub(super) draws: Option<Graph>,
    pub(super) known: Known,
}

/// What is known of a recorded call's values.
#[derive(Serialize, Deserialize)]
pub(in super::super) struct Known {
    /// What results are made of.
    pub(super) parts: Parts,
    /// Of what the forward gives after its outputs, which buffer it is to be copied to.
    pub(super) written: Vec<usize>,
    /// Operands that are drawn: the last ones.
    pub(super) drawn: usize,
    /// Which operands the backward reads, and after these, of each value that is kept, that it does.
    pub(super) reads: Vec<bool>,
    /// Which tensors that the forward gives require grad.
    pub(super) follows: Vec<bool>,
    /// Of these, those of which a bool says whether they do.
    pub(super) open: Vec<usize>,
    /// Whether elements of the forward's values are read, which the tape would have kept.
    pub(super) keeps: bool,
    /// Whether the only output was a tuple, whose parts are given instead.
    pub(super) is_tuple: bool,
    /// Bytes that a call keeps for its backward besides operands.
    pub(super) kept_bytes: u64,
}

/// What of the inputs a graph is recorded for.
pub(in super::super) struct Wish<'a> {
    /// Inputs that want a gradient.
    pub(super) wanted: &'a [bool],
    /// How many of the inputs, the last ones, are buffers: the call may write to them.
    pub(super) buffers: usize,
    /// Bytes that may be kept for the backward.
    pub(super) max_kept: Option<u64>,
}

impl Wish<'_> {
    /// All that the graphs are made by besides a graph and what is built in, as the passes are.
    pub(in super::super) fn text(&self) -> String {
        let Wish { wanted, buffers, max_kept } = self;
        format!("recorded {wanted:?} {buffers} {max_kept:?}")
    }
}

impl Graphs {
    /// Of a graph whose inputs are operands, parameters and buffers. An error says why such calls cannot be recorded at once.
    pub(super) fn of(
        mut graph: Graph,
        wish: &Wish<'_>,
        (registry, extras): (&Registry, &Extras),
        making: &mut Making,
    ) -> Result<Graphs> {
        let shared = Arc::new(registry.clone());
        let module = Module::default();
        let context = Context::new(registry, &module).with_extras(extras);
        let is_tuple = spread_tuple(&mut graph);
        let step = Step::begin("record", &[&graph]);
        PREPARE.as_ref().map_err(Clone::clone)?.run_graph(&mut graph, &context)?;
        let (results, parts) = results::take_apart(&mut graph, registry)?;
        step.end(&[&graph], making);
        check_outputs(&graph, &parts, &context)?;
        let step = Step::begin("record-draws", &[&graph]);
        let first = graph.inputs().len() - wish.buffers;
        let draws = draws::take(&mut graph, (&shared, extras), &context)?;
        let drawn = graph.inputs().len() - first - wish.buffers;
        if let Some(draws) = &draws {
            step.end(&[draws, &graph], making);
        }
        let written = take_written(&mut graph, (first, wish.buffers), &context)?;
        let wanted: Vec<bool> =
            wish.wanted.iter().copied().chain(std::iter::repeat_n(false, drawn)).collect();
        let step = Step::begin("differentiate", &[&graph]);
        let split = autodiff::split(&graph, &wanted, wish.max_kept, (&shared, extras))?;
        step.end(&[&split.forward, &split.backward], making);
        if split.follows[parts.tensors + parts.others..].contains(&true) {
            return Err(Diagnostic::unsupported("a call that records gradients makes a buffer require grad"));
        }
        // Only the tensors: a call that is repeated for other gradients writes nothing.
        let (root, own) = (graph.root(), graph.outputs()[..parts.tensors].to_vec());
        graph.set_block_results(root, &own);
        let (mut forward, mut backward) = (split.forward, split.backward);
        let finish = FINISH.as_ref().map_err(Clone::clone)?;
        let step = Step::begin("record-finish", &[&forward, &backward]);
        finish.run_graph(&mut forward, &context)?;
        finish.run_graph(&mut backward, &context)?;
        step.end(&[&forward, &backward], making);
        let numbers = &graph.inputs()[graph.inputs().len() - drawn..];
        let read = numbers.iter().zip(&split.reads[split.reads.len() - drawn..]);
        let drawn_bytes: u64 =
            read.filter(|(_, reads)| **reads).map(|(v, _)| autodiff::bytes_of(graph.ty(*v))).sum();
        let known = Known {
            written,
            drawn,
            reads: split.reads.into_iter().chain(std::iter::repeat_n(true, split.kept)).collect(),
            follows: split.follows[..parts.tensors].to_vec(),
            open: split.open,
            keeps: split.keeps,
            is_tuple,
            kept_bytes: split.kept_bytes + drawn_bytes,
            parts,
        };
        Ok(Graphs { own: graph, forward, backward, results, draws, known })
    }

    /// In the order in which they are kept.
    pub(in super::super) fn all(&self) -> Vec<&Graph> {
        let Graphs { own, forward, backward, results, draws, .. } = self;
        [own, forward, backward, results].into_iter().chain(draws).collect()
    }

    /// Of those, in that order; None where they do not fit to each other and to a wish.
    pub(in super::super) fn from_all(all: Vec<Graph>, known: Known, wish: &Wish<'_>) -> Option<Graphs> {
        let mut all = all.into_iter();
        let mut next = || all.next();
        let (own, forward, backward, results) = (next()?, next()?, next()?, next()?);
        let graphs = Graphs { own, forward, backward, results, draws: next(), known };
        (next().is_none() && graphs.fit(wish)).then_some(graphs)
    }

    /// Whether all that calls count on is so.
    fn fit(&self, wish: &Wish<'_>) -> bool {
        let Graphs { own, forward, backward, results, draws, known } = self;
        let Parts { tensors, others, given } = &known.parts;
        let operands = wish.wanted.len() + known.drawn;
        let kept = known.reads.len().checked_sub(operands);
        let gives = kept.map(|kept| tensors + others + known.written.len() + known.open.len() + kept);
        let follow = known.follows.iter().filter(|follows| **follows).count();
        let wants = wish.wanted.iter().filter(|wanted| **wanted).count();
        own.inputs().len() == operands
            && own.outputs().len() == *tensors
            && forward.inputs().len() == operands
            && gives == Some(forward.outputs().len())
            && known.follows.len() == *tensors
            && known.open.iter().all(|n| n < tensors)
            && backward.inputs().len() == known.reads.len() + follow
            && backward.outputs().len() == wants
            && results.inputs().len() == tensors + others + given.len()
            && given.iter().all(|n| *n < operands)
            && known.written.iter().all(|n| *n < wish.buffers)
            && draws.as_ref().map_or(0, |draws| draws.outputs().len()) == known.drawn
    }
}

/// Takes the copies to buffers away, which are the inputs from `first` on: which of them each was to.
fn take_written(
    graph: &mut Graph,
    (first, buffers): (usize, usize),
    context: &Context<'_>,
) -> Result<Vec<usize>> {
    let written = take_copies(graph).into_iter().map(|input| {
        let refused = || Diagnostic::unsupported("a call that records gradients writes to an argument");
        input.checked_sub(first).filter(|n| *n < buffers).ok_or_else(refused)
    });
    let written: Vec<usize> = written.collect::<Result<_>>()?;
    let becomes = graph.outputs()[graph.outputs().len() - written.len()..].to_vec();
    for (buffer, value) in written.iter().zip(becomes) {
        check_history(graph, context, graph.inputs()[first + buffer], value)?;
    }
    Ok(written)
}

/// Takes the copies to inputs at the end of a graph away: which inputs; what they become the graph gives after its outputs from
/// now on. A copy of what another one writes stays.
fn take_copies(graph: &mut Graph) -> Vec<usize> {
    let ops: Vec<OpId> = graph.block_ops(graph.root()).collect();
    let mut copies = Vec::new();
    for op in ops.into_iter().rev().filter(|op| graph.kind(*op) != "prim::Constant") {
        let input = graph.operand(op, 0).and_then(|to| graph.inputs().iter().position(|input| *input == to));
        let is_unused = graph.results(op).iter().all(|result| !graph.has_uses(*result));
        let (Some(input), Some(from), true) = (input, passes::copied_back(graph, op), is_unused) else {
            break;
        };
        copies.push((input, from, op));
    }
    copies.reverse();
    let inputs = graph.inputs().to_vec();
    copies.retain(|(_, from, _)| !inputs.contains(from));
    let results: Vec<ValueId> = graph.outputs().iter().copied().chain(copies.iter().map(|c| c.1)).collect();
    let root = graph.root();
    graph.set_block_results(root, &results);
    copies.iter().for_each(|(_, _, op)| graph.erase(*op));
    copies.into_iter().map(|(input, ..)| input).collect()
}

/// Makes the parts of a tuple that is the only output the outputs; says whether there was one.
fn spread_tuple(graph: &mut Graph) -> bool {
    let [only] = *graph.outputs() else { return false };
    let is_plain = matches!(graph.ty(only).kind(), TypeKind::Tuple(_, None));
    let Some(op) = graph.def_op(only).filter(|_| is_plain) else { return false };
    if graph.kind(op) != "prim::TupleConstruct" {
        return false;
    }
    let (root, parts) = (graph.root(), graph.operands(op).to_vec());
    graph.set_block_results(root, &parts);
    true
}

/// Fails where outputs are not tensors of their own: later changes to them would be lost; or hold unknown tensors.
fn check_outputs(graph: &Graph, parts: &Parts, context: &Context<'_>) -> Result<()> {
    let refused = |why: &str| Err(Diagnostic::unsupported(why));
    let (outputs, others) = graph.outputs().split_at(parts.tensors);
    if outputs.is_empty() {
        return refused("a call that records gradients returns no tensor");
    }
    if let Some(other) = others.iter().find(|other| !is_plain(graph.ty(**other))) {
        return refused(&format!(
            "a call that records gradients returns a value of type {}",
            graph.ty(*other)
        ));
    }
    let mut seen = HashSet::new();
    for output in outputs {
        let Some(origins) = origins::origins(graph, context.registry, *output) else {
            return refused(
                "a call that records gradients returns a value not known to be a tensor of its own",
            );
        };
        let is_given =
            |origin: &ValueId| graph.def_op(*origin).is_none_or(|op| graph.kind(op) == "prim::Constant");
        if origins.iter().any(is_given) {
            return refused("a call that records gradients gives what it was given, or a view of it");
        }
        if origins.iter().any(|origin| seen.contains(origin)) {
            return refused("a call that records gradients gives two views of one tensor");
        }
        seen.extend(origins);
    }
    Ok(())
}

/// Whether values of a type hold no tensors and cannot be written.
fn is_plain(ty: &Type) -> bool {
    match ty.kind() {
        TypeKind::Int
        | TypeKind::Float
        | TypeKind::Bool
        | TypeKind::Str
        | TypeKind::Complex
        | TypeKind::None => true,
        TypeKind::Optional(inner) => is_plain(inner),
        _ => false,
    }
}

/// Fails where an op that gradients may follow reads a buffer before it is written to for the last time: the tape knows whether
/// its derivative reads that, which is an error. The ops that write read it too, of course.
fn check_history(graph: &Graph, context: &Context<'_>, buffer: ValueId, becomes: ValueId) -> Result<()> {
    let (mut writers, mut versions) = (Vec::new(), Vec::new());
    let mut at = becomes;
    while at != buffer {
        let former = former(graph, context, at);
        let (Some(op), Some(former)) = (graph.def_op(at), former) else {
            return Err(Diagnostic::unsupported(
                "a call that records gradients puts something else in a buffer's place",
            ));
        };
        writers.push(op);
        versions.push(former);
        at = former;
    }
    let inputs = graph.inputs().iter().copied().filter(|input| *input != buffer);
    let mut followed: HashSet<ValueId> = inputs.collect();
    for op in graph.block_ops(graph.root()).filter(|op| !writers.contains(op)) {
        let operands = graph.operands(op);
        if operands.iter().any(|operand| followed.contains(operand)) {
            followed.extend(graph.results(op));
            if operands.iter().any(|operand| versions.contains(operand)) {
                return Err(Diagnostic::unsupported(
                    "a call that records gradients writes to a buffer that its backward may read",
                ));
            }
        }
    }
    Ok(())
}

/// What a value was before the op that gives it in its place: the first operand, or the argument `a` of a result `a_out`.
fn former(graph: &Graph, context: &Context<'_>, value: ValueId) -> Option<ValueId> {
    let ValueDef::Result(op, n) = graph.def(value) else { return None };
    let facts = facts(context.registry, graph, op);
    let schema = facts.op.as_ref()?.schema().ok()?;
    match schema.returns.get(n)?.name.as_str().strip_suffix("_out") {
        Some(argument) => graph.operand(op, schema.argument_index(argument)?),
        None => graph.operand(op, 0),
    }
}
