//! Plans of calls that record gradients. The function's graph, with the parameters that require grad as further inputs, is
//! split into a forward and a backward; both are fused and compiled, and the tape has one operation for the whole call.
//!
//! Buffers that the call writes to, as batch norm does its running statistics, are inputs too: the forward reads them as they
//! were when it began, gives what they become, and that is copied to them when it has ended.
//!
//! Random numbers are drawn before the forward begins and are operands too ([`super::draws`]).
//!
//! Where that cannot be, the call runs without a plan, with the reason: control flow that depends on data, other writes, random
//! numbers that do, results that are views of what was given. It knows no op by name.

mod call;
mod graphs;
mod lift;

pub(super) use call::Recording;
pub(super) use graphs::{Graphs, Wish};

use super::kept;
use super::making::Making;
use super::optimize::{compile_groups, optimized};
use super::parts::Parts;
use super::plan::Plan;
use super::replay::Replay;
use super::subject::Subject;
use crate::diag::{ErrorKind, Result};
use crate::ir::Graph;
use crate::passes::{self, Pipeline};
use crate::runtime::code::Code;
use crate::runtime::spec::requires_grad;
use crate::tensor::{Moment, Tensor};
use crate::value::Value;
use call::Given;
use lift::{forget_requires_grad, lift, refused_buffers, written};
use std::sync::{Arc, LazyLock};

static FREEZE: LazyLock<Result<Pipeline>> = LazyLock::new(|| passes::parse("record-freeze"));

/// The plan of a call that is recorded, or why there is none; None where nothing requires grad.
pub(super) fn attempt(subject: &Subject<'_>) -> Result<Option<Result<Plan, String>>> {
    let (mut graph, mut guards, mut making) =
        optimized(subject, (FREEZE.as_ref().map_err(Clone::clone)?, false), None)?;
    if !guards.any_requires_grad() && !subject.arguments.iter().any(requires_grad) {
        return Ok(None);
    }
    let (parts, operands) = Parts::take_apart(&mut graph, subject.context.registry, subject.arguments);
    if operands.iter().any(|value| !matches!(value, Value::Tensor(_)) && requires_grad(value)) {
        return Ok(Some(Err("tensors in a list that is kept or written to require grad".to_string())));
    }
    let is_empty = |value: &Value| matches!(value, Value::Tensor(t) if t.numel() == 0 && t.requires_grad());
    if operands.iter().any(is_empty) {
        return Ok(Some(Err("a tensor without elements requires grad".to_string())));
    }
    forget_requires_grad(&mut graph);
    let Some(written) = written(&graph, subject.context.registry) else {
        let reason = "a call that records gradients writes to what a branch, a loop or a container gives";
        return Ok(Some(Err(reason.to_string())));
    };
    let is_written = |tensor: &Tensor| written.iter().any(|other| other.same(tensor));
    let is_read = |tensor: &Tensor| tensor.requires_grad() || passes::is_lent(tensor) && !is_written(tensor);
    let parameters = lift(&mut graph, is_read);
    let buffers = lift(&mut graph, is_written);
    guards.let_change(&parameters);
    guards.let_change(&buffers);
    if let Some(reason) = refused_buffers(&graph, &buffers, &parameters) {
        return Ok(Some(Err(reason.to_string())));
    }
    let given = operands.iter().map(|v| matches!(v, Value::Tensor(t) if t.requires_grad()));
    let others = parameters.iter().chain(&buffers).map(Tensor::requires_grad);
    let wanted: Vec<bool> = given.chain(others).collect();
    let graphs = match made_or_kept(subject, graph, (&wanted, buffers.len()), &mut making) {
        Err(error) if error.kind() != ErrorKind::Limit => return Ok(Some(Err(error.message().to_string()))),
        graphs => graphs?,
    };
    let given = Given { parts, parameters, buffers, wanted };
    let (recording, forward) = Recording::new(subject, graphs, given)?;
    let context = subject.context_behind(&guards);
    let code = Arc::new(Code::compile(context, &forward, subject.function.name.as_str())?);
    // Whether there will be a backward is not known yet.
    compile_groups(&forward, &code, subject.context.registry);
    let (making, recording) = (Arc::new(making), Some(Arc::new(recording)));
    let replay = Replay::default();
    Ok(Some(Ok(Plan { updates: None, graph: forward, code, guards, making, recording, replay })))
}

/// The graphs of calls that want gradients of some inputs, of which the last ones are buffers: from disk where they are there, and kept
/// there where that is asked for.
fn made_or_kept(
    subject: &Subject<'_>,
    graph: Graph,
    (wanted, buffers): (&[bool], usize),
    making: &mut Making,
) -> Result<Graphs> {
    let wish = Wish { wanted, buffers, max_kept: subject.max_kept };
    let place = kept::place(subject, || wish.text(), &graph);
    let place = place.and_then(|found| found.map_err(|why| subject.counters.unkept(why)).ok());
    let fitting = |all, known| Graphs::from_all(all, known, &wish);
    if let Some((graphs, kept)) = place.as_ref().and_then(|place| kept::read(place, subject, fitting)) {
        making.and(kept);
        subject.counters.from_disk();
        return Ok(graphs);
    }
    let (before, since) = (making.stages.len(), Moment::now());
    let graphs = Graphs::of(graph, &wish, (subject.context.registry, &subject.extras()), making)?;
    if let Some(place) = place {
        let did = (making.stages.get(before..).unwrap_or_default(), &[][..]);
        if let Err(why) = kept::write((&place, subject), (&graphs.all(), &graphs.known), did, since) {
            subject.counters.unkept(why);
        }
    }
    Ok(graphs)
}
