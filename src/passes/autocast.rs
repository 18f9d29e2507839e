//! Casts for `with torch.autocast(...)`: within such a context, products and the like are given inputs of the context's
//! dtype, and what needs range or precision is given float32, as `src/dialects/autocast.rs` records.
//!
//! The context is a place in the text, as it is in PyTorch: this pass follows `inline`, so that a called function is part of
//! the context that it is called in, and constant propagation, so that the context's settings are constants. Work that a
//! fork does is not part of it. What PyTorch refuses when the function is first called becomes a raise at the start of the
//! graph. Ops that are cast already stay unchanged.

use super::{Context, PassOption, constants};
use crate::diag::Result;
use crate::dialects::{AutocastPolicy, Op, autocast_policy, resolve};
use crate::ir::{Attr, BlockId, Graph, OpId, Symbol, Type, TypeKind, ValueId};
use crate::tensor::{DType, Device};
use crate::value::Value;

const REDUCED: &str = "aten::_autocast_to_reduced_precision";
const FULL: &str = "aten::_autocast_to_full_precision";
const REFUSAL: &str = "prim::RefuseCall";

/// Classes whose objects are contexts.
const CONTEXTS: &[&str] = &[
    "__torch__.torch.amp.autocast_mode.autocast",
    "__torch__.torch.cuda.amp.autocast_mode.autocast",
    "__torch__.torch.cpu.amp.autocast_mode.autocast",
    "__torch__.torch.autocast_mode.autocast",
];

/// The option `cpu`: what autocasting does where the graph is called.
pub(super) const OPTIONS: &[PassOption] = &[PassOption::choice(
    "cpu",
    &["off", "bfloat16", "float16"],
    "the dtype of a `torch.autocast` of the CPU around the call",
)];

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let cpu = match context.text("cpu")? {
        "bfloat16" => Some(DType::BF16),
        "float16" => Some(DType::F16),
        _ => None,
    };
    let around = State { cuda: None, cpu };
    if !around.is_on() && !has_autocast(graph) {
        return Ok(false);
    }
    let mut casts = Casts { context, changed: false };
    let root = graph.root();
    if let Err(Refusal(message)) = casts.block(graph, root, around)
        && context.step(|| format!("refuses the call: {message}"))
    {
        raise_at_start(graph, &message);
        casts.changed = true;
    }
    Ok(casts.changed)
}

/// Whether a graph enters a context of autocasting itself; what it calls does not count.
pub fn has_autocast(graph: &Graph) -> bool {
    graph.all_ops().into_iter().any(|op| entered(graph, op).is_some())
}

/// Why PyTorch does not run the function of a graph, where this pass said so.
pub fn refused_call(graph: &Graph) -> Option<String> {
    let mut ops = graph.block_ops(graph.root());
    let refusal =
        ops.find(|op| graph.kind(*op) != "prim::Constant").filter(|op| graph.kind(*op) == REFUSAL)?;
    match constants::value_of(graph, graph.operand(refusal, 0)?)? {
        Value::Str(reason) => Some(reason.to_string()),
        _ => None,
    }
}

/// The context that an op enters.
fn entered(graph: &Graph, op: OpId) -> Option<ValueId> {
    let object = graph.operand(op, 0).filter(|_| graph.kind(op) == "prim::Enter")?;
    is_context(graph, object).then_some(object)
}

fn is_context(graph: &Graph, object: ValueId) -> bool {
    matches!(graph.ty(object).kind(), TypeKind::Class(name) if CONTEXTS.contains(&name.as_str()))
}

/// What autocasting does in a place, by device.
#[derive(Clone, Copy)]
struct State {
    cuda: Option<DType>,
    cpu: Option<DType>,
}

impl State {
    fn is_on(self) -> bool {
        self.cuda.is_some() || self.cpu.is_some()
    }
}

/// Why PyTorch does not run a program.
struct Refusal(String);

fn refuse<T>(message: &str) -> Result<T, Refusal> {
    Err(Refusal(message.to_string()))
}

struct Casts<'a, 'c> {
    context: &'a Context<'c>,
    changed: bool,
}

impl Casts<'_, '_> {
    /// Casts for the ops of a block and of those in it, which begins in a state.
    fn block(&mut self, graph: &mut Graph, block: BlockId, outside: State) -> Result<(), Refusal> {
        let mut open: Vec<(ValueId, State)> = Vec::new();
        let ops: Vec<OpId> = graph.block_ops(block).collect();
        for op in ops {
            let state = open.last().map_or(outside, |(_, state)| *state);
            if let Some(object) = entered(graph, op) {
                if graph.result(op, 0).is_some_and(|result| graph.has_uses(result)) {
                    return refuse("`with autocast() as ...` is not supported");
                }
                open.push((object, settings(graph, object, state)?));
                continue;
            }
            match graph.kind(op).as_str() {
                "prim::Exit" => match graph.operand(op, 0).filter(|object| is_context(graph, *object)) {
                    Some(object) if open.last().is_some_and(|(innermost, _)| *innermost == object) => {
                        open.pop();
                    }
                    Some(_) => return refuse("Unsupported autocast syntax"),
                    None => {}
                },
                // This pass was here, and nothing after it runs.
                REFUSAL if block == graph.root() => return Ok(()),
                kind @ ("prim::CallMethod" | "prim::CallFunction") if state.is_on() => {
                    return refuse(&format!("Unexpected {kind} form with AMP & JIT"));
                }
                _ if state.is_on() => self.op(graph, op, state)?,
                _ => {}
            }
            for inner in graph.nested_blocks(op).to_vec() {
                stacker::maybe_grow(64 << 10, 1 << 20, || self.block(graph, inner, state))?;
            }
        }
        if open.is_empty() { Ok(()) } else { refuse("Unsupported autocast syntax") }
    }

    /// Casts the tensors that an op is given, as its policy says.
    fn op(&mut self, graph: &mut Graph, op: OpId, state: State) -> Result<(), Refusal> {
        let Ok(row) = resolve(self.context.registry, graph, op) else { return Ok(()) };
        let kind = match autocast_policy(&row) {
            None => return Ok(()),
            Some(AutocastPolicy::Refused) => return refuse("Unsafe to autocast"),
            Some(AutocastPolicy::Reduced) => REDUCED,
            Some(AutocastPolicy::Full) => FULL,
            Some(AutocastPolicy::FullUnlessDtype) => {
                if has_dtype(graph, op, &row) {
                    return Ok(());
                }
                FULL
            }
        };
        let mut cast: Vec<(ValueId, ValueId)> = Vec::new();
        for (place, value) in graph.operands(op).to_vec().into_iter().enumerate() {
            let is_cast = graph.def_op(value).is_some_and(|def| graph.kind(def) == kind);
            if !graph.ty(value).is_tensor() || is_cast {
                continue;
            }
            let known = cast.iter().find(|(from, _)| *from == value).map(|(_, to)| *to);
            let to = match known {
                Some(to) => to,
                None => {
                    if !self.context.step(|| format!("casts for {}", graph.op_line(op))) {
                        return Ok(());
                    }
                    let Some(to) = insert_cast(graph, op, value, kind, state) else { return Ok(()) };
                    cast.push((value, to));
                    to
                }
            };
            graph.set_operand(op, place, to);
            self.changed = true;
        }
        Ok(())
    }
}

/// Whether the op is given a dtype.
fn has_dtype(graph: &Graph, op: OpId, row: &Op) -> bool {
    let place =
        row.schema().ok().and_then(|s| s.arguments.iter().position(|argument| argument.name == "dtype"));
    place
        .and_then(|place| graph.operand(op, place))
        .is_some_and(|value| !matches!(graph.ty(value).kind(), TypeKind::None))
}

/// The cast of a value before an op.
fn insert_cast(graph: &mut Graph, op: OpId, value: ValueId, kind: &str, state: State) -> Option<ValueId> {
    let mut operands = vec![value];
    for enabled in [state.cuda.is_some(), state.cpu.is_some()] {
        operands.push(constants::insert_before(graph, op, &Value::Bool(enabled))?);
    }
    if kind == REDUCED {
        let (cuda, cpu) = (state.cuda.unwrap_or(DType::F16), state.cpu.unwrap_or(DType::BF16));
        for dtype in [cuda, cpu] {
            operands.push(constants::insert_before(graph, op, &Value::Int(dtype.code()))?);
        }
    }
    let cast = graph.create(Symbol::new(kind), &operands, &[Type::tensor()]);
    graph.insert_before(cast, op);
    graph.result(cast, 0)
}

/// The state within a context that is entered in a state, from what the context's constructor set.
fn settings(graph: &Graph, object: ValueId, outside: State) -> Result<State, Refusal> {
    let made = graph.def_op(object).filter(|op| graph.kind(*op) == "prim::CreateObject");
    if made.is_none() {
        return refuse("Unsupported autocast syntax");
    }
    let enabled = match attribute(graph, object, "_enabled") {
        Some(Some(Value::Bool(enabled))) => enabled,
        Some(_) => return refuse("Autocast _enabled argument must be a constant"),
        None => return refuse("Autocast missing _enabled attribute"),
    };
    let device = match attribute(graph, object, "device") {
        Some(Some(Value::Str(device))) => device.to_string(),
        Some(_) => return refuse("Autocast device argument must be a constant"),
        None => return refuse("Autocast missing device attribute"),
    };
    let given = match attribute(graph, object, "fast_dtype") {
        Some(Some(Value::Int(code))) => DType::from_code(code),
        _ => None,
    };
    let usual = || device.parse::<Device>().ok().and_then(|device| device.autocast_dtype());
    let dtype = given.or_else(usual).filter(|_| enabled);
    match device.as_str() {
        "cuda" => Ok(State { cuda: dtype, ..outside }),
        "cpu" => Ok(State { cpu: dtype, ..outside }),
        other => refuse(&format!("unrecognized device for autocast pass: {other}")),
    }
}

/// What an attribute of an object is set to in its graph: None where nothing sets it, then None where it is not a constant.
fn attribute(graph: &Graph, object: ValueId, name: &str) -> Option<Option<Value>> {
    let set = graph.uses(object).map(|site| site.op).find(|op| {
        graph.kind(*op) == "prim::SetAttr"
            && graph.operand(*op, 0) == Some(object)
            && graph.attr(*op, "name").and_then(Attr::as_str) == Some(name)
    })?;
    Some(graph.operand(set, 1).and_then(|value| constants::value_of(graph, value)))
}

/// Lets a graph raise before anything else.
fn raise_at_start(graph: &mut Graph, message: &str) {
    let root = graph.root();
    let raise = graph.create(Symbol::new(REFUSAL), &[], &[]);
    graph.prepend(root, raise);
    let reason = constants::insert_before(graph, raise, &Value::str(message));
    graph.set_operands(raise, &Vec::from_iter(reason));
}
