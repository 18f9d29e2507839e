//! Where an int was compared with a constant, it is that constant on the way on which they are equal.
//!
//! `if n == 3` makes `n` the constant 3 in the branch; where the other branch certainly raises, after the `if` too.
//! `not`, `and` and `or` propagate the implications of their operands. Only ints with other uses are considered.

use super::{Context, constants};
use crate::analysis::facts;
use crate::diag::Result;
use crate::dialects::Effects;
use crate::ir::{BlockId, Graph, OpId, ValueId};
use hashbrown::HashMap;
use indexmap::IndexMap;

/// Ints and what they are.
type Known = IndexMap<ValueId, i64>;

/// What holds where a truth value is true, and where it is false.
#[derive(Clone, Default)]
struct Implied {
    yes: Known,
    no: Known,
}

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let mut pass = Refinement { context, implied: HashMap::new(), active: Vec::new(), changed: false };
    let root = graph.root();
    pass.block(graph, root, Known::default());
    Ok(pass.changed)
}

struct Refinement<'a> {
    context: &'a Context<'a>,
    implied: HashMap<ValueId, Implied>,
    /// What is known in the open blocks, outermost first.
    active: Vec<Known>,
    changed: bool,
}

/// What a block found out, and whether it never ends.
struct Found {
    known: Known,
    raises: bool,
}

impl Refinement<'_> {
    fn block(&mut self, graph: &mut Graph, block: BlockId, known: Known) -> Found {
        self.active.push(known);
        let mut raises = false;
        for op in graph.block_ops(block).collect::<Vec<OpId>>() {
            self.operands(graph, op);
            raises |= self.op(graph, op);
        }
        let end = graph.terminator(block);
        self.operands(graph, end);
        Found { known: self.active.pop().unwrap_or_default(), raises }
    }

    /// Whether nothing after the op is reached.
    fn op(&mut self, graph: &mut Graph, op: OpId) -> bool {
        let result = graph.result(op, 0);
        match (graph.kind(op).as_str(), result) {
            ("aten::eq" | "aten::ne", Some(result)) => {
                if let Some((value, n)) = compared(graph, op) {
                    let known = Known::from_iter([(value, n)]);
                    let equal = Implied { yes: known, no: Known::default() };
                    self.implied
                        .insert(result, if graph.kind(op) == "aten::eq" { equal } else { equal.negated() });
                }
            }
            ("aten::__not__", Some(result)) => {
                if let Some(implied) = graph.operand(op, 0).and_then(|v| self.implied.get(&v)).cloned() {
                    self.implied.insert(result, implied.negated());
                }
            }
            ("prim::If", _) => return stacker::maybe_grow(64 << 10, 1 << 20, || self.branch(graph, op)),
            _ => {
                for inner in graph.nested_blocks(op).to_vec() {
                    stacker::maybe_grow(64 << 10, 1 << 20, || self.block(graph, inner, Known::default()));
                }
            }
        }
        graph.nested_blocks(op).is_empty()
            && facts(self.context.registry, graph, op).effects.contains(Effects::NEVER_RETURNS)
    }

    fn branch(&mut self, graph: &mut Graph, op: OpId) -> bool {
        let &[yes, no] = graph.nested_blocks(op) else { return false };
        let found = graph.operand(op, 0).and_then(|v| self.implied.get(&v)).cloned().unwrap_or_default();
        let then = self.block(graph, yes, found.yes);
        let other = self.block(graph, no, found.no);
        let here = match (then.raises, other.raises) {
            (true, true) => return true,
            (true, false) => &other.known,
            (false, true) => &then.known,
            (false, false) => &Known::default(),
        };
        if let Some(known) = self.active.last_mut() {
            known.extend(here.iter().map(|(value, n)| (*value, *n)));
        }
        for (n, result) in graph.results(op).into_iter().enumerate() {
            let given = [yes, no].map(|b| graph.block_results(b).get(n).copied());
            let [Some(a), Some(b)] = given else { continue };
            let also = |value: ValueId| self.implied.get(&value).cloned().unwrap_or_default();
            let mut implied = Implied::default();
            // What is true came from the first branch if the second gives False, and the other way around.
            if constants::bool_of(graph, b) == Some(false) {
                implied.yes = then.known.iter().map(|(v, n)| (*v, *n)).chain(also(a).yes).collect();
            }
            if constants::bool_of(graph, a) == Some(true) {
                implied.no = other.known.iter().map(|(v, n)| (*v, *n)).chain(also(b).no).collect();
            }
            self.implied.insert(result, implied);
        }
        false
    }

    /// Known ints become constants where an op or the end of a block takes them.
    fn operands(&mut self, graph: &mut Graph, op: OpId) {
        for value in graph.operands(op).to_vec() {
            let Some(n) = self.active.iter().find_map(|known| known.get(&value)).copied() else { continue };
            if graph.uses(value).nth(1).is_none()
                || !graph.operands(op).contains(&value)
                || !self.context.step(|| format!("%{} is {n}", graph.display_name(value)))
            {
                continue;
            }
            let constant = constants::insert_int(graph, op, n);
            for place in 0..graph.operands(op).len() {
                if graph.operand(op, place) == Some(value) {
                    graph.set_operand(op, place, constant);
                }
            }
            self.changed = true;
        }
    }
}

impl Implied {
    fn negated(self) -> Implied {
        Implied { yes: self.no, no: self.yes }
    }
}

/// The int that is compared with a constant, where it is used besides.
fn compared(graph: &Graph, op: OpId) -> Option<(ValueId, i64)> {
    let &[a, b] = graph.operands(op) else { return None };
    let is_int = |v: ValueId| *graph.ty(v) == crate::ir::Type::int();
    [(a, b), (b, a)].into_iter().find_map(|(constant, value)| {
        let n = constants::int_of(graph, constant)?;
        let used = graph.uses(value).nth(1).is_some() && constants::constant_op(graph, value).is_none();
        (is_int(value) && used).then_some((value, n))
    })
}
