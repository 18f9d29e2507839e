//! Whether gradients are recorded, as part of a graph: `with torch.no_grad():` as an archive has it becomes ops that ask for the mode
//! and set it, and these fold where the mode is the same all through. It does not know who records.

use super::{Context, PassOption, constants};
use crate::diag::Result;
use crate::ir::{Attr, Graph, OpId, Symbol, Type, TypeKind, ValueId};

const SET: &str = "aten::set_grad_enabled";
const ASK: &str = "aten::is_grad_enabled";
/// The class whose objects `with` enters, as archives name it.
const NO_GRAD: &str = "__torch__.torch.autograd.grad_mode.no_grad";

pub(super) const OPTIONS: &[PassOption] =
    &[PassOption::bool("recording", false, "whether gradients are recorded when the graph begins")];

/// Lowers `Enter` and `Exit` of an object that the graph makes for one block.
pub(super) fn lower(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let mut changed = false;
    for op in graph.all_ops() {
        let Some(block) = NoGrad::of(graph, op) else { continue };
        if !context.step(|| format!("lowers {}", graph.op_line(op).trim())) {
            break;
        }
        block.lower(graph);
        changed = true;
    }
    Ok(changed)
}

/// A block of `torch.no_grad` and the object that it enters.
struct NoGrad {
    made: OpId,
    enter: OpId,
    exit: OpId,
    /// What is stored in the object when it is made.
    stored: Vec<OpId>,
}

impl NoGrad {
    fn of(graph: &Graph, made: OpId) -> Option<NoGrad> {
        let object = graph.result(made, 0).filter(|_| graph.kind(made) == "prim::CreateObject")?;
        if !matches!(graph.ty(object).kind(), TypeKind::Class(name) if *name == NO_GRAD) {
            return None;
        }
        let (mut enter, mut exit, mut stored) = (None, None, Vec::new());
        for user in graph.uses(object) {
            if graph.terminated_block(user.op).is_some() || user.index != 0 {
                return None;
            }
            let place = match graph.kind(user.op).as_str() {
                "prim::Enter" => &mut enter,
                "prim::Exit" => &mut exit,
                "prim::SetAttr" => {
                    stored.push(user.op);
                    continue;
                }
                _ => return None,
            };
            if place.replace(user.op).is_some() {
                return None;
            }
        }
        let (enter, exit) = (enter?, exit?);
        let straight = graph.parent(enter) == graph.parent(exit) && graph.is_before(enter, exit);
        let unused = |op: OpId| graph.results(op).iter().all(|value| !graph.has_uses(*value));
        (straight && unused(enter) && unused(exit)).then_some(NoGrad { made, enter, exit, stored })
    }

    fn lower(self, graph: &mut Graph) {
        let location = graph.location_id(self.enter);
        let ask = graph.create(Symbol::new(ASK), &[], &[Type::bool()]);
        let no = graph.create(Symbol::new("prim::Constant"), &[], &[Type::bool()]);
        graph.set_attr(no, "value", Attr::Int(0));
        let was = graph.results(ask)[0];
        let no_value = graph.results(no)[0];
        let off = graph.create(Symbol::new(SET), &[no_value], &[]);
        for op in [ask, no, off] {
            graph.set_location_id(op, location);
            graph.insert_before(op, self.enter);
        }
        let back = graph.create(Symbol::new(SET), &[was], &[]);
        graph.set_location_id(back, graph.location_id(self.exit));
        graph.insert_before(back, self.exit);
        for op in [self.enter, self.exit].into_iter().chain(self.stored).chain([self.made]) {
            graph.erase(op);
        }
    }
}

/// Folds questions for the mode where the graph leaves it as it is: it sets it to nothing else.
pub(super) fn fold(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let recording = context.flag("recording")?;
    let of_kind = |graph: &Graph, kind: &str| -> Vec<OpId> {
        graph.all_ops().into_iter().filter(|op| graph.kind(*op) == kind).collect()
    };
    let (sets, asks) = (of_kind(graph, SET), of_kind(graph, ASK));
    let keeps = |value: ValueId| {
        let asked = graph.def_op(value).is_some_and(|op| graph.kind(op) == ASK);
        asked || constants::bool_of(graph, value) == Some(recording)
    };
    if !sets.iter().all(|op| graph.operand(*op, 0).is_some_and(keeps)) {
        return Ok(false);
    }
    let mut changed = false;
    for op in sets.into_iter().chain(asks) {
        if !context.step(|| format!("folds {}", graph.op_line(op).trim())) {
            break;
        }
        changed = true;
        if let Some(was) = graph.result(op, 0) {
            let known = graph.create(Symbol::new("prim::Constant"), &[], &[Type::bool()]);
            graph.set_attr(known, "value", Attr::Int(i64::from(recording)));
            graph.set_location_id(known, graph.location_id(op));
            graph.insert_before(known, op);
            let known = graph.results(known)[0];
            graph.replace_all_uses(was, known);
        }
        graph.erase(op);
    }
    Ok(changed)
}
