//! Random draws first: ops that draw, with what they are made of and what is written to what they draw, move to the front of the
//! graph. What follows depends on drawn tensors as it would on inputs, so that it can be run again and differentiated.
//!
//! The condition that makes it right: draws keep their order, they depend on constants alone, and of tensors that they are made
//! like, only dtype, sizes and strides matter (`Fact::LikeFirst`), which types must determine. Sizes that are open are
//! computed from those of the graph's inputs. Draws from the first one on for which that is not so stay where they are; all do
//! where what is drawn into is read before.

use super::layer_parts::Maker;
use super::open_numbers::OpenNumbers;
use super::propagate_shapes::known_values;
use super::{Context, constants};
use crate::analysis::facts;
use crate::diag::Result;
use crate::dialects::shapes::Known;
use crate::dialects::shapes::open::{OpenSizes, has_open};
use crate::dialects::{Effects, Fact, Op, Registry};
use crate::ir::{Attr, Dim, Graph, OpId, Stride, Type, ValueId};
use hashbrown::{HashMap, HashSet};

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let open = context.extra::<OpenSizes>().unwrap_or(OpenSizes::none());
    let mut front = Front {
        context,
        numbers: OpenNumbers::of(graph, open),
        known: None,
        ops: HashSet::new(),
        alike: HashMap::new(),
        sized: HashMap::new(),
        roots: HashMap::new(),
    };
    let root = graph.root();
    for op in graph.block_ops(root) {
        if !front.takes_draw(graph, op) {
            break;
        }
    }
    let Some(first) = graph.first_op(root).filter(|_| !front.ops.is_empty() && front.is_unseen(graph)) else {
        return Ok(false);
    };
    let order: Vec<OpId> = graph.block_ops(root).filter(|op| front.ops.contains(op)).collect();
    let stands = graph.block_ops(root).take(order.len()).eq(order.iter().copied());
    if stands
        && front.alike.is_empty()
        && front.sized.is_empty()
        && front.roots.keys().all(|name| !graph.has_uses(*name))
    {
        return Ok(false);
    }
    if !context.step(|| format!("moves {} ops of draws to the front", order.len())) {
        return Ok(false);
    }
    front.move_all(graph, &order, first);
    Ok(true)
}

/// The ops that a graph begins with and that depend on each other and on sizes of inputs alone, up to the last one that draws, or that writes to what is
/// drawn. What `hoist-draws` leaves.
pub fn draws(graph: &Graph, registry: &Registry) -> Vec<OpId> {
    let mut made: HashSet<ValueId> = HashSet::new();
    let inputs: HashSet<ValueId> = graph.inputs().iter().copied().collect();
    let (mut ops, mut length) = (Vec::new(), 0);
    for op in graph.block_ops(graph.root()) {
        let facts = facts(registry, graph, op);
        let asks = facts.op.as_ref().is_some_and(|row| row.def().facts.contains(&Fact::Metadata));
        let is_known = |operand| made.contains(operand) || asks && inputs.contains(operand);
        let closed = graph.operands(op).iter().all(is_known);
        if !closed || !graph.nested_blocks(op).is_empty() || !is_calm(facts.effects) {
            break;
        }
        made.extend(graph.results(op));
        ops.push(op);
        if facts.effects.contains(Effects::RANDOM) || facts.writes {
            length = ops.len();
        }
    }
    ops.truncate(length);
    ops
}

/// Whether an op draws random numbers, or may.
pub fn is_random(graph: &Graph, registry: &Registry, op: OpId) -> bool {
    facts(registry, graph, op).effects.contains(Effects::RANDOM)
}

fn is_calm(effects: Effects) -> bool {
    (Effects::RANDOM | Effects::MAY_RAISE | Effects::IDENTITY).contains(effects)
}

/// What goes to the front.
struct Front<'a> {
    context: &'a Context<'a>,
    numbers: OpenNumbers<'a>,
    /// What is known of all values, once it was asked for.
    known: Option<Vec<Known>>,
    ops: HashSet<OpId>,
    /// Ops whose first operand becomes a new tensor of the same form: dtype, sizes and strides.
    alike: HashMap<OpId, Form>,
    /// Operands that are open sizes, or lists of them: computed from the sizes of inputs instead.
    sized: HashMap<(OpId, usize), Asked>,
    /// Results of ops that write in place, with the tensor that they are.
    roots: HashMap<ValueId, ValueId>,
}

/// What is known of a tensor from types.
struct Form {
    dtype: i64,
    sizes: Vec<Dim>,
    strides: Vec<Stride>,
}

/// Sizes of which some are open.
enum Asked {
    Int(Dim),
    Ints(Vec<Dim>),
}

impl Front<'_> {
    /// Takes an op that draws, or that writes to what was drawn, with what it is made of. False: a draw that must stay.
    fn takes_draw(&mut self, graph: &Graph, op: OpId) -> bool {
        let facts = facts(self.context.registry, graph, op);
        let is_draw = facts.effects.contains(Effects::RANDOM);
        let writes_drawn = facts.writes
            && graph.operand(op, 0).and_then(|to| graph.def_op(to)).is_some_and(|op| self.ops.contains(&op));
        if !is_draw && !writes_drawn {
            return true;
        }
        let known = self.ops.clone();
        if self.takes(graph, op) {
            return true;
        }
        self.ops = known;
        self.alike.retain(|op, _| self.ops.contains(op));
        self.sized.retain(|(op, _), _| self.ops.contains(op));
        self.roots.retain(|value, _| graph.def_op(*value).is_some_and(|op| self.ops.contains(&op)));
        !is_draw
    }

    /// Takes an op and what its operands are made by, if all of it depends on constants alone.
    fn takes(&mut self, graph: &Graph, op: OpId) -> bool {
        let mut work = vec![op];
        while let Some(op) = work.pop() {
            if self.ops.contains(&op) {
                continue;
            }
            let Some(row) = self.movable(graph, op) else { return false };
            self.ops.insert(op);
            for (n, operand) in graph.operands(op).iter().enumerate() {
                let maker = graph.def_op(*operand).filter(|maker| graph.parent(*maker) == Some(graph.root()));
                let like =
                    n == 0 && row.as_ref().is_some_and(|row| row.def().facts.contains(&Fact::LikeFirst));
                if like && !maker.is_some_and(|maker| self.ops.contains(&maker)) {
                    let Some(form) = self.form_of(graph.ty(*operand)) else { return false };
                    self.alike.insert(op, form);
                    continue;
                }
                if let Some(sizes) = self.open_sizes(graph, *operand) {
                    self.sized.insert((op, n), sizes);
                    continue;
                }
                let Some(maker) = maker else { return false };
                work.push(maker);
            }
        }
        true
    }

    /// The row of an op that may stand elsewhere (None: a constant), unless what it gives is seen through something else.
    fn movable(&mut self, graph: &Graph, op: OpId) -> Option<Option<Op>> {
        let found = facts(self.context.registry, graph, op);
        if !graph.nested_blocks(op).is_empty() || !is_calm(found.effects) {
            return None;
        }
        if graph.kind(op) == "prim::Constant" {
            return Some(None);
        }
        let row = found.op?;
        let schema = row.marked_schema().ok()?;
        let marked: Vec<usize> =
            schema.arguments.iter().enumerate().filter(|a| a.1.alias.is_some()).map(|a| a.0).collect();
        if found.writes {
            let [same] = *graph.results(op) else { return None };
            let target = graph.operand(op, 0)?;
            let reshapes = row.def().facts.contains(&Fact::Reshapes);
            if marked != [0] || !graph.kind(op).base().ends_with('_') || reshapes {
                return None;
            }
            let root = self.roots.get(&target).copied().unwrap_or(target);
            self.roots.insert(same, root);
        } else if !marked.is_empty() {
            return None;
        }
        Some(Some(row))
    }

    /// Whether a tensor is not read before the last op in the front that writes to it.
    fn is_unseen(&self, graph: &Graph) -> bool {
        let mut last: HashMap<ValueId, OpId> = HashMap::new();
        for op in graph.block_ops(graph.root()).filter(|op| self.ops.contains(op)) {
            for root in graph.results(op).iter().filter_map(|result| self.roots.get(result)) {
                last.insert(*root, op);
            }
        }
        let mut names = self.roots.iter().flat_map(|(name, root)| [(*name, *root), (*root, *root)]);
        names.all(|(name, root)| {
            let users = graph.uses(name).map(|user| user.op).filter(|op| !self.ops.contains(op));
            let mut users = users.filter_map(|user| outermost(graph, user));
            users.all(|user| last.get(&root).is_none_or(|write| graph.is_before(*write, user)))
        })
    }

    /// What is known of a tensor from its type, if all of it is or can be computed.
    fn form_of(&self, ty: &Type) -> Option<Form> {
        let tensor = ty.as_tensor()?;
        let (sizes, strides) = (tensor.sizes.as_deref()?.to_vec(), tensor.strides.as_deref()?.to_vec());
        let has = sizes.iter().all(|size| self.numbers.has(size))
            && strides.iter().all(|stride| self.numbers.has_stride(stride));
        has.then_some(Form { dtype: tensor.dtype?.code(), sizes, strides })
    }

    /// The open sizes that an int or a list of ints is, if they can be computed.
    fn open_sizes(&mut self, graph: &Graph, value: ValueId) -> Option<Asked> {
        if graph.ty(value).is_tensor() {
            return None;
        }
        let known = self.known.get_or_insert_with(|| known_values(graph, self.context));
        let known = known.get(value.index()).filter(|known| has_open(known))?;
        match known {
            Known::Int(size) => self.numbers.has(size).then_some(Asked::Int(*size)),
            Known::Ints(sizes) => {
                sizes.iter().all(|size| self.numbers.has(size)).then(|| Asked::Ints(sizes.clone()))
            }
            _ => None,
        }
    }

    fn move_all(&mut self, graph: &mut Graph, order: &[OpId], first: OpId) {
        // A mark that is taken away again: the first op may be one of those that move.
        let anchor = constants::insert_none(graph, first, Type::none());
        for op in order {
            graph.move_before(*op, anchor);
            for n in 0..graph.operands(*op).len() {
                let mut maker = Maker { graph, at: *op, like: *op };
                let made = match (self.alike.get(op).filter(|_| n == 0), self.sized.get(&(*op, n))) {
                    (Some(form), _) => made(&mut maker, &mut self.numbers, form),
                    (None, Some(Asked::Int(size))) => self.numbers.int(&mut maker, size),
                    (None, Some(Asked::Ints(sizes))) => self.numbers.ints(&mut maker, sizes),
                    (None, None) => continue,
                };
                if let Some(made) = made {
                    graph.set_operand(*op, n, made);
                }
            }
        }
        for (name, root) in &self.roots {
            graph.replace_all_uses(*name, *root);
        }
        graph.erase(anchor);
    }
}

/// The op of the outermost block that an op stands in; None: the end of that block.
fn outermost(graph: &Graph, op: OpId) -> Option<OpId> {
    let mut at = op;
    loop {
        match graph.parent(at).or_else(|| graph.terminated_block(at)) {
            Some(block) if block != graph.root() => at = graph.owner(block)?,
            _ => return Some(at).filter(|op| graph.terminated_block(*op).is_none()),
        }
    }
}

/// A tensor of some form before an op, instead of its first operand.
fn made(maker: &mut Maker<'_>, numbers: &mut OpenNumbers<'_>, form: &Form) -> Option<ValueId> {
    let ty = maker.graph.ty(maker.graph.operand(maker.at, 0)?).clone();
    let sizes = numbers.ints(maker, &form.sizes)?;
    let strides = numbers.strides(maker, &form.strides)?;
    let dtype = maker.constant(Type::int(), Attr::Int(form.dtype));
    let none = maker.none();
    Some(maker.emit("aten::empty_strided", &[sizes, strides, dtype, none, none, none], ty))
}
