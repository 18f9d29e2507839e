//! What a plan's graph becomes: the function's graph with the types of the arguments, run through a pipeline or read from disk, and
//! its groups compiled. Does not know what becomes of it.

use super::guard::Guards;
use super::kept;
use super::making::{self, Maker, Making};
use super::subject::Subject;
use crate::backends::{Foreseen, compile_ahead};
use crate::diag::{Diagnostic, Result};
use crate::dialects::{Composites, Registry, Strictness};
use crate::ir::{Attr, Graph, Module, OpId, Symbol, Type, ValueId};
use crate::lowering;
use crate::passes::manager::{Runner, Settings};
use crate::passes::{FiredRules, FrozenAttributes, Meanings, Pipeline};
use crate::runtime::code::{Action, Code};
use crate::runtime::kept::Place;
use crate::runtime::spec;
use crate::tensor::{Moment, Tensor};
use hashbrown::HashMap;
use std::sync::Arc;

/// Compiles the kernels of the groups that every call runs and whose inputs have known types, all at once.
pub(super) fn compile_groups(graph: &Graph, code: &Code, registry: &Registry) {
    let ops: HashMap<u32, OpId> = graph.block_ops(graph.root()).map(|op| (op.index() as u32, op)).collect();
    let foreseen = code.steps.iter().filter(|step| !step.nested).filter_map(|step| {
        let Action::Fused { group, .. } = &step.action else { return None };
        let operands = graph.operands(*ops.get(&step.op)?).iter();
        let known = operands.map(|operand| lowering::pass::known(graph.ty(*operand)));
        let (inputs, layouts) = known.collect::<Option<Vec<_>>>()?.into_iter().unzip();
        Some(Foreseen { group: Arc::clone(group), inputs, layouts })
    });
    compile_ahead(&foreseen.collect::<Vec<_>>(), registry);
}

/// The function's graph after a pipeline, guards of what that took for granted, and what passes did; what they made is kept on disk
/// where that is asked for.
pub(super) fn optimized(
    subject: &Subject<'_>,
    (pipeline, keeps): (&Pipeline, bool),
    composites: Option<Arc<dyn Composites>>,
) -> Result<(Graph, Guards, Making)> {
    let frozen = Arc::new(FrozenAttributes::default());
    let mut extras = subject.extras();
    extras.set(Arc::clone(&frozen));
    let fired = Arc::new(FiredRules::default());
    extras.set(Arc::clone(&fired));
    if let Some(instance) = subject.instance {
        extras.set(Arc::new(instance.clone()));
    }
    if let Some(composites) = composites {
        extras.set(Arc::new(Meanings(composites)));
    }
    let verify = cfg!(debug_assertions).then_some(Strictness::Carry);
    let counters = subject.context.fusion;
    let (log, limits) = (counters.log_spec().clone(), subject.context.limits.clone());
    let settings = Settings { threads: 1, verify, extras, log, limits, ..Settings::default() };
    let mut module = typed(subject);
    let before = making::size(&module);
    let (mut maker, mut log) = (Maker::default(), Vec::new());
    let mut runner = Runner::new(subject.context.registry, settings, &mut log);
    runner.observe(&mut maker);
    let done = run_or_read(subject, (pipeline, keeps), &mut module, &mut runner);
    counters.keep_log(&String::from_utf8_lossy(&log));
    let found = done?;
    let guards = Guards::of(frozen.take(), constants(&subject.function.graph));
    let Some((_, function)) = module.functions.pop() else {
        return Err(Diagnostic::internal("the pipeline of plans removed the function"));
    };
    let mut making = maker.done(before, &fired);
    match found {
        Found::Read(kept) => making.and(kept),
        Found::Made(Some((place, before, since))) => {
            let stages = making.stages.get(before..).unwrap_or_default();
            let did = (stages, &making.rules[..]);
            if let Err(why) = kept::write((&place, subject), (&[&function.graph], &()), did, since) {
                subject.counters.unkept(why);
            }
        }
        Found::Made(None) => {}
    }
    Ok((function.graph, guards, making))
}

/// Where the end of a pipeline came from.
enum Found {
    /// From disk, with what passes did.
    Read(Making),
    /// Passes ran, after this number of others, since this moment; what they made is to be put there.
    Made(Option<(Place, usize, Moment)>),
}

/// Runs a pipeline; where a cache has what its end makes of the function, that is read instead, if it is asked for.
fn run_or_read(
    subject: &Subject<'_>,
    (pipeline, keeps): (&Pipeline, bool),
    module: &mut Module,
    runner: &mut Runner<'_>,
) -> Result<Found> {
    let Some((first, rest)) = kept::split(pipeline).filter(|_| keeps && subject.disk.is_some()) else {
        runner.run(pipeline, module)?;
        return Ok(Found::Made(None));
    };
    runner.run(&first, module)?;
    let name = subject.function.name;
    let place = module
        .functions
        .get(&name)
        .and_then(|function| kept::place(subject, || rest.to_text(), &function.graph));
    let place = place.and_then(|found| found.map_err(|why| subject.counters.unkept(why)).ok());
    if let Some((graph, kept)) = place.as_ref().and_then(|place| kept::read(place, subject, only))
        && let Some(function) = module.functions.get_mut(&name)
    {
        function.graph = graph;
        return Ok(Found::Read(kept));
    }
    let (before, since) = (runner.executed(), Moment::now());
    runner.run(&rest, module)?;
    Ok(Found::Made(place.map(|place| (place, before, since))))
}

/// The graph of a plan, where there is one.
fn only(mut graphs: Vec<Graph>, (): ()) -> Option<Graph> {
    graphs.pop().filter(|_| graphs.is_empty())
}

/// The function alone in its module, its parameters typed by the arguments.
fn typed(subject: &Subject<'_>) -> Module {
    let mut function = subject.function.clone();
    let inputs = function.graph.inputs().to_vec();
    let declared: Vec<Type> = inputs.iter().map(|input| function.graph.ty(*input).clone()).collect();
    let types = match subject.open {
        Some(open) => open.types(&declared, subject.arguments),
        None => declared.iter().zip(subject.arguments).map(|(ty, value)| spec::refined(ty, value)).collect(),
    };
    for ((input, value), ty) in inputs.into_iter().zip(subject.arguments).zip(types) {
        function.graph.set_type(input, ty);
        if value.is_none() {
            none_for(&mut function.graph, input);
        }
    }
    let Module { classes, interfaces, enums, named_tuples, .. } = subject.module;
    let functions = [(function.name, function)].into_iter().collect();
    Module {
        functions,
        classes: classes.clone(),
        interfaces: interfaces.clone(),
        enums: enums.clone(),
        named_tuples: named_tuples.clone(),
    }
}

/// Lets a constant stand for an argument that is None in all calls of the plan.
fn none_for(graph: &mut Graph, input: ValueId) {
    if !graph.has_uses(input) {
        return;
    }
    let root = graph.root();
    let first = graph.first_op(root).unwrap_or_else(|| graph.terminator(root));
    let none = graph.create(Symbol::new("prim::Constant"), &[], &[graph.ty(input).clone()]);
    graph.insert_before(none, first);
    let none = graph.results(none)[0];
    graph.replace_all_uses(input, none);
}

/// The tensors that a graph has as constants: other functions may have them as well, and write to them.
pub(super) fn constants(graph: &Graph) -> Vec<Tensor> {
    let ops = graph.all_ops().into_iter().filter(|op| graph.kind(*op) == "prim::Constant");
    ops.filter_map(|op| match graph.attr(op, "value")? {
        Attr::Tensor(tensor) => Some(tensor.clone()),
        _ => None,
    })
    .collect()
}
