//! Common subexpression elimination: a pure op equal to an earlier one in scope is replaced by that. Ops that
//! read memory are equal only if nothing was written in between; here any write in the graph forbids it for
//! ops on tensors and containers.

use super::Context;
use crate::analysis::facts;
use crate::diag::Result;
use crate::dialects::{Effects, Family};
use crate::ir::{Attr, BlockId, Graph, OpId, Symbol, Type, TypeKind, ValueId};
use hashbrown::HashMap;
use smallvec::SmallVec;

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let writes = graph.all_ops().iter().any(|op| facts(context.registry, graph, *op).writes);
    let before = graph.op_count();
    let mut pass = Cse { context, writes, scopes: Vec::new() };
    let root = graph.root();
    pass.block(graph, root);
    Ok(graph.op_count() != before)
}

/// What makes two ops equal, attributes aside.
type Key = (Symbol, SmallVec<[ValueId; 4]>, SmallVec<[Type; 1]>);

struct Cse<'a> {
    context: &'a Context<'a>,
    writes: bool,
    scopes: Vec<HashMap<Key, Vec<OpId>>>,
}

impl Cse<'_> {
    fn block(&mut self, graph: &mut Graph, block: BlockId) {
        self.scopes.push(HashMap::new());
        let mut at = graph.first_op(block);
        while let Some(op) = at {
            at = graph.next(op);
            for nested in graph.nested_blocks(op).to_vec() {
                self.block(graph, nested);
            }
            if !self.may_merge(graph, op) {
                continue;
            }
            let key = key(graph, op);
            let earlier = self.scopes.iter().rev().filter_map(|scope| scope.get(&key)).flatten();
            match earlier.copied().find(|e| same_attrs(graph.attrs(*e), graph.attrs(op))) {
                Some(earlier) => {
                    let what = || format!("{} is {}", graph.op_line(op), graph.op_line(earlier));
                    if !self.context.step(what) {
                        continue;
                    }
                    self.context.count("ops merged", 1);
                    let results = graph.results(earlier);
                    graph.replace_op(op, &results);
                }
                None => {
                    if let Some(scope) = self.scopes.last_mut() {
                        scope.entry(key).or_default().push(op);
                    }
                }
            }
        }
        self.scopes.pop();
    }

    fn may_merge(&self, graph: &Graph, op: OpId) -> bool {
        if !graph.nested_blocks(op).is_empty() || graph.result_count(op) == 0 {
            return false;
        }
        let facts = facts(self.context.registry, graph, op);
        let Some(row) = &facts.op else { return false };
        if facts.writes || !Effects::MAY_RAISE.contains(facts.effects) {
            return false;
        }
        // A fresh tensor or list may be written to or compared by identity: only where nothing writes at all.
        let fresh = graph.results(op).iter().any(|v| has_identity(graph.ty(*v)));
        let reads = graph.operands(op).iter().any(|v| has_identity(graph.ty(*v)));
        let is_container = row.def().family == Family::Container && fresh;
        !is_container && !((fresh || reads) && self.writes)
    }
}

fn key(graph: &Graph, op: OpId) -> Key {
    let types = graph.results(op).iter().map(|v| graph.ty(*v).clone()).collect();
    (graph.kind(op), SmallVec::from_slice(graph.operands(op)), types)
}

fn same_attrs(a: &[(Symbol, Attr)], b: &[(Symbol, Attr)]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(x, y)| x == y)
}

/// Whether values of the type are shared objects that can be written to.
fn has_identity(ty: &Type) -> bool {
    match ty.kind() {
        TypeKind::Int
        | TypeKind::Float
        | TypeKind::Bool
        | TypeKind::Complex
        | TypeKind::Str
        | TypeKind::None
        | TypeKind::Number
        | TypeKind::Device
        | TypeKind::Enum(..)
        | TypeKind::Function(_) => false,
        TypeKind::Tuple(elements, _) => elements.iter().any(has_identity),
        TypeKind::Optional(inner) => has_identity(inner),
        _ => true,
    }
}
