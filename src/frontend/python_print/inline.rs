//! Which values need no variable: their expression stands where they are used, if that keeps the order in which
//! everything is evaluated.

use crate::ir::{Attr, BlockId, Graph, OpId, ValueId};
use crate::kinds;

kinds! {
    constant "prim::Constant",
    tuple "prim::TupleConstruct",
    loop_ "prim::Loop",
    fork "prim::fork",
    awaitable "prim::awaitable",
    isinstance "prim::isinstance",
    get_attr "prim::GetAttr",
    uninitialized "prim::Uninitialized",
    enter "prim::Enter",
    exit "prim::Exit",
}

/// Ops whose result stands as an expression in its only use, by op.
pub(super) fn inlined(graph: &Graph) -> Vec<bool> {
    let mut scan = Scan { graph, inlined: vec![false; graph.op_capacity()], at: None };
    scan.blocks();
    scan.inlined
}

struct Scan<'g> {
    graph: &'g Graph,
    inlined: Vec<bool>,
    /// The op before the expression read so far: the only one that may still join it.
    at: Option<OpId>,
}

impl Scan<'_> {
    /// Every block from its end to its start, nested blocks before the op that has them.
    fn blocks(&mut self) {
        let mut work: Vec<(BlockId, Option<OpId>)> = vec![(self.graph.root(), None)];
        while let Some((block, next)) = work.pop() {
            let op = match next {
                // The block begins with what it gives.
                None => {
                    self.scan(self.graph.terminator(block), self.before_end(block));
                    self.graph.last_op(block)
                }
                Some(op) => {
                    if !self.inlined[op.index()] {
                        self.scan(op, self.before(op));
                    }
                    self.graph.prev(op)
                }
            };
            let Some(op) = op else { continue };
            work.push((block, Some(op)));
            for nested in self.graph.nested_blocks(op) {
                work.push((*nested, None));
            }
        }
    }

    fn before_end(&self, block: BlockId) -> Option<OpId> {
        self.graph.last_op(block).and_then(|op| self.not_constant(op))
    }

    fn before(&self, op: OpId) -> Option<OpId> {
        self.graph.prev(op).and_then(|op| self.not_constant(op))
    }

    /// The op itself, or the first before it that is not a constant.
    fn not_constant(&self, op: OpId) -> Option<OpId> {
        let mut at = Some(op);
        while let Some(op) = at {
            if self.graph.kind(op) != constant() && !is_unused_placeholder(self.graph, op) {
                break;
            }
            at = self.graph.prev(op);
        }
        at
    }

    /// Reads the operands of an op from the last to the first; each that is the op right before joins.
    fn scan(&mut self, op: OpId, before: Option<OpId>) {
        self.at = before;
        let mut stack = vec![(op, self.graph.operands(op).len())];
        while let Some((op, left)) = stack.pop() {
            let Some(n) = left.checked_sub(1) else { continue };
            stack.push((op, n));
            let Some(def) = self.graph.operand(op, n).and_then(|v| self.graph.def_op(v)) else { continue };
            if self.graph.kind(def) == constant() {
                self.inlined[def.index()] = true;
            } else if self.at == Some(def) && self.can_join(def) {
                self.inlined[def.index()] = true;
                self.at = self.before(def);
                stack.push((def, self.graph.operands(def).len()));
            }
        }
    }

    fn can_join(&self, op: OpId) -> bool {
        let graph = self.graph;
        let (1, Some(value)) = (graph.result_count(op), graph.result(op, 0)) else { return false };
        let Some(user) = graph.uses(value).next().filter(|_| graph.has_one_use(value)) else { return false };
        let kind = graph.kind(user.op);
        let is_given = graph.terminated_block(user.op).is_some();
        // A variable of the author stays one, unless its block gives it at once.
        if super::names::base(graph.name(value)).is_some() && !is_given {
            return false;
        }
        // So does a submodule that only `getattr` reaches, like those of containers.
        let name = graph.attr(op, "name").and_then(Attr::as_str).filter(|_| graph.kind(op) == get_attr());
        if name.is_some_and(|name| !super::names::is_identifier(name)) && !is_given {
            return false;
        }
        if !graph.nested_blocks(op).is_empty() || is_statement(graph, op) {
            return false;
        }
        // What a loop carries is assigned before its condition is evaluated.
        if kind == loop_() && user.index >= 2 {
            return false;
        }
        // A closure may run it more than once or later; a test of a type would refine its operand again.
        kind != fork() && kind != awaitable() && graph.kind(op) != isinstance()
    }
}

/// Ops that are written as statements of their own kind.
fn is_statement(graph: &Graph, op: OpId) -> bool {
    let kind = graph.kind(op);
    kind == enter()
        || kind == exit()
        || kind == fork()
        || kind == awaitable()
        || matches!(kind.as_str(), "prim::ModuleContainerIndex" | "prim::TupleUnpack" | "prim::ListUnpack")
}

/// A placeholder that nothing reads any more.
pub(super) fn is_unused_placeholder(graph: &Graph, op: OpId) -> bool {
    graph.kind(op) == uninitialized() && graph.results(op).iter().all(|v: &ValueId| !graph.has_uses(*v))
}
