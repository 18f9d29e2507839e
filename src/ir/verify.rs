//! The verifier: what must hold of every graph, whatever its dialects. All violations are collected, each with
//! its op and place.
//!
//! # Laws
//! 1. **Blocks.** Every block but the root is listed once, by the op that owns it; the root has no owner.
//! 2. **Order.** The ops of a block name it as their parent and form one chain in ascending order.
//! 3. **Definitions.** A value is defined once: the n-th result of an op or the n-th parameter of a block says
//!    so itself.
//! 4. **Operands.** Every operand, and every result of a block, is a value of this graph that is visible there:
//!    defined before it in the same block or in an enclosing one.
//! 5. **Uses.** The uses of a value are exactly the operands that name it, each once.
//! 6. **Terminators.** Every block ends in its own terminator, which is in no chain of ops.
//! 7. **Names.** No two values print under one name.
//! 8. **Subgraphs.** The laws hold of every graph inside an attribute.
//!
//! Dialects add laws of their own through [`DialectLaws`]: which ops exist, what they take, which blocks they
//! have. The structural laws are checked first; dialects are asked only about graphs that obey them.

use super::graph::TERMINATOR;
use super::storage::DEF_IS_BLOCK;
use super::{Attr, BlockId, Graph, Module, OpId, Symbol, ValueId};
use crate::diag::{Diagnostic, Source, Span};
use hashbrown::HashTable;
use std::hash::BuildHasher;
use std::sync::Arc;

/// Maximum number of violations, after which the rest of a graph is not checked.
const MAX_VIOLATIONS: usize = 100;
/// How deep graphs may stand inside attributes.
const MAX_SUBGRAPHS: usize = 64;

/// The laws of dialects.
pub trait DialectLaws {
    /// Checks one op of a graph that obeys the structural laws.
    fn check(&self, graph: &Graph, op: OpId, report: &mut Violations);
}

/// The laws of no dialect: only the structure is checked.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLaws;

impl DialectLaws for NoLaws {
    fn check(&self, _: &Graph, _: OpId, _: &mut Violations) {}
}

/// Where each op of a graph stands in the text it was read from.
#[derive(Clone, Debug)]
pub struct TextPlaces {
    source: Arc<Source>,
    /// Start of the op's line by op index.
    starts: Arc<Vec<u32>>,
}

impl TextPlaces {
    pub(super) fn new(source: Arc<Source>, starts: Vec<u32>) -> TextPlaces {
        TextPlaces { source, starts: Arc::new(starts) }
    }

    /// The op's line, where it was read from text.
    pub fn span(&self, op: OpId) -> Option<Span> {
        let start = self.starts.get(op.index()).copied().filter(|s| *s != u32::MAX)? as usize;
        let rest = self.source.text().get(start..)?;
        let line = rest.find('\n').unwrap_or(rest.len());
        Some(Span::new(&self.source, start, start + line))
    }
}

/// Collects violations.
pub struct Violations<'a> {
    places: Option<&'a TextPlaces>,
    function: Symbol,
    list: Vec<Diagnostic>,
}

impl Violations<'_> {
    /// Reports that an op breaks a law; says which op and where it stands.
    pub fn error(&mut self, graph: &Graph, op: OpId, message: impl Into<String>) {
        self.push(graph, op, Diagnostic::verify(message));
    }

    /// Reports a diagnostic about an op; gives it the op's place, unless it has one.
    pub fn push(&mut self, graph: &Graph, op: OpId, diagnostic: Diagnostic) {
        let (op, of) = match graph.terminated_block(op) {
            Some(block) => (graph.owner(block), "in the results of a block of "),
            None => (Some(op), "in "),
        };
        let mut d = diagnostic;
        match op.filter(|op| graph.is_live(*op)) {
            Some(op) => {
                d = d.at_opt(self.places.and_then(|p| p.span(op)).as_ref());
                d = d.at_opt(graph.location(op).and_then(|l| l.span()));
                if d.report().span.is_none() {
                    let line = graph.op_text(op);
                    d = d.note(format!("{of}`{}`", line.lines().next().unwrap_or("").trim()));
                }
                if let Some((file, line, column)) = graph.location(op).and_then(|l| l.file_line_column()) {
                    d = d.note(format!("the op comes from {file}:{line}:{column}"));
                }
            }
            None => d = d.note("in the results of the graph"),
        }
        if !self.function.as_str().is_empty() {
            d = d.note(format!("in function `{}`", self.function));
        }
        self.list.push(d);
    }

    fn is_full(&self) -> bool {
        self.list.len() >= MAX_VIOLATIONS
    }
}

/// Checks a graph against the structural laws and those of dialects; an empty list means that all hold.
pub fn verify_graph(graph: &Graph, laws: &dyn DialectLaws, places: Option<&TextPlaces>) -> Vec<Diagnostic> {
    verify_named(graph, laws, places, Symbol::new(""))
}

fn verify_named(
    graph: &Graph,
    laws: &dyn DialectLaws,
    places: Option<&TextPlaces>,
    function: Symbol,
) -> Vec<Diagnostic> {
    let mut report = Violations { places, function, list: Vec::new() };
    let mut work = vec![(graph, 0)];
    while let Some((graph, depth)) = work.pop() {
        let before = report.list.len();
        let mut walk = Walk::new(graph);
        walk.run(&mut report);
        walk.uses(&mut report);
        names(graph, &mut report);
        let ops = std::mem::take(&mut walk.program_order);
        if report.list.len() == before {
            for op in &ops {
                laws.check(graph, *op, &mut report);
                if report.is_full() {
                    return report.list;
                }
            }
        }
        for (op, subgraph) in ops.iter().flat_map(|op| graph.attrs(*op).iter().map(move |(_, a)| (*op, a))) {
            let Attr::Graph(subgraph) = subgraph else { continue };
            if depth >= MAX_SUBGRAPHS {
                report.error(graph, op, format!("subgraphs nest deeper than {MAX_SUBGRAPHS} levels"));
            } else {
                work.push((subgraph, depth + 1));
            }
        }
        // Places belong to the outer graph's ops only.
        report.places = None;
    }
    report.list
}

/// Checks every function of a module.
pub fn verify_module(
    module: &Module,
    laws: &dyn DialectLaws,
    places: &dyn Fn(Symbol) -> Option<TextPlaces>,
) -> Vec<Diagnostic> {
    let functions = module.functions.iter();
    functions.flat_map(|(name, f)| verify_named(&f.graph, laws, places(*name).as_ref(), *name)).collect()
}

/// A value's state while the graph is walked in program order.
const UNSEEN: u8 = 0;
const VISIBLE: u8 = 1;
const OUT_OF_SCOPE: u8 = 2;

struct Walk<'g> {
    graph: &'g Graph,
    state: Vec<u8>,
    seen_blocks: Vec<bool>,
    /// Number of operands that name each value.
    counts: Vec<u32>,
    program_order: Vec<OpId>,
}

impl<'g> Walk<'g> {
    fn new(graph: &'g Graph) -> Walk<'g> {
        Walk {
            graph,
            state: vec![UNSEEN; graph.value_capacity()],
            seen_blocks: vec![false; graph.block_capacity()],
            counts: vec![0; graph.value_capacity()],
            program_order: Vec::with_capacity(graph.op_count()),
        }
    }

    /// Laws 1 to 4 and 6, in program order.
    fn run(&mut self, report: &mut Violations) {
        enum Step {
            Enter(BlockId, Option<OpId>),
            From(BlockId, Option<OpId>),
            Define(OpId),
            Leave(BlockId),
        }
        let graph = self.graph;
        let mut work = vec![Step::Enter(graph.root(), None)];
        while let Some(step) = work.pop() {
            if report.is_full() {
                return;
            }
            match step {
                Step::Enter(block, owner) => {
                    if self.enter(block, owner, report) {
                        work.push(Step::Leave(block));
                        work.push(Step::From(block, graph.first_op(block)));
                    }
                }
                Step::From(block, first) => {
                    let mut at = first;
                    while let Some(op) = at {
                        if report.is_full() || !self.op(op, block, report) {
                            break;
                        }
                        at = graph.next(op);
                        let nested = graph.nested_blocks(op);
                        if nested.is_empty() {
                            self.results(op, report);
                        } else {
                            // An op's results do not exist yet where its blocks run.
                            work.extend([Step::From(block, at), Step::Define(op)]);
                            work.extend(nested.iter().rev().map(|b| Step::Enter(*b, Some(op))));
                            break;
                        }
                    }
                }
                Step::Define(op) => self.results(op, report),
                Step::Leave(block) => self.leave(block, report),
            }
        }
    }

    fn enter(&mut self, block: BlockId, owner: Option<OpId>, report: &mut Violations) -> bool {
        let graph = self.graph;
        let at = owner.unwrap_or(graph.terminator(graph.root()));
        if std::mem::replace(&mut self.seen_blocks[block.index()], true) {
            report.error(graph, at, "a block is listed twice");
            return false;
        }
        if graph.owner(block) != owner {
            report.error(graph, at, "a block names another op as its owner");
        }
        for (n, param) in graph.params(block).iter().enumerate() {
            let data = &graph.values[param.index()];
            if data.def != block.0 || data.index != n as u32 | DEF_IS_BLOCK {
                report.error(
                    graph,
                    at,
                    format!("parameter %{} says that it is defined elsewhere", graph.display_name(*param)),
                );
            }
            self.define(*param, at, report);
        }
        true
    }

    /// Checks an op; false if the chain of ops cannot be followed further.
    fn op(&mut self, op: OpId, block: BlockId, report: &mut Violations) -> bool {
        let graph = self.graph;
        if !graph.is_live(op) {
            report.error(graph, graph.terminator(block), "an erased op is in a block");
            return false;
        }
        self.program_order.push(op);
        if self.program_order.len() > graph.op_capacity() {
            report.error(graph, op, "the ops of a block form a ring");
            return false;
        }
        if graph.parent(op) != Some(block) {
            report.error(graph, op, "the op is in a block that is not its parent");
        }
        let previous = graph.prev(op);
        if previous.is_some_and(|p| graph.next(p) != Some(op) || !graph.is_before(p, op))
            || previous.is_none() && graph.first_op(block) != Some(op)
        {
            report.error(graph, op, "the op is not linked with the op before it");
        }
        self.operands(op, report);
        true
    }

    fn results(&mut self, op: OpId, report: &mut Violations) {
        let graph = self.graph;
        for (n, result) in graph.results(op).into_iter().enumerate() {
            let data = graph.values.get(result.index());
            if data.is_none_or(|d| d.def != op.0 || d.index != n as u32) {
                report.error(graph, op, format!("result {n} says that it is defined elsewhere"));
                continue;
            }
            self.define(result, op, report);
        }
    }

    fn operands(&mut self, op: OpId, report: &mut Violations) {
        let graph = self.graph;
        for (n, operand) in graph.operands(op).iter().enumerate() {
            match self.state.get(operand.index()) {
                Some(&VISIBLE) => self.counts[operand.index()] += 1,
                Some(&state) => {
                    self.counts[operand.index()] += 1;
                    let name = graph.display_name(*operand);
                    report.error(
                        graph,
                        op,
                        match state {
                            OUT_OF_SCOPE => {
                                format!("%{name} is defined in a block that does not enclose this use")
                            }
                            _ => format!("%{name} is used before it is defined"),
                        },
                    );
                }
                None => report.error(graph, op, format!("operand {n} is not a value of this graph")),
            }
        }
    }

    fn define(&mut self, value: ValueId, op: OpId, report: &mut Violations) {
        let graph = self.graph;
        match self.state.get_mut(value.index()) {
            Some(state @ &mut UNSEEN) => *state = VISIBLE,
            Some(_) => report.error(graph, op, format!("%{} is defined twice", graph.display_name(value))),
            None => report.error(graph, op, "a result is not a value of this graph"),
        }
    }

    /// The results of a block, and the end of the scope of what it defines.
    fn leave(&mut self, block: BlockId, report: &mut Violations) {
        let graph = self.graph;
        let terminator = graph.terminator(block);
        let data = &graph.ops[terminator.index()];
        if data.attrs != TERMINATOR || data.nested != block.0 {
            report.error(graph, terminator, "a block's terminator belongs to another block");
        } else {
            self.operands(terminator, report);
        }
        let mut close = |value: &ValueId| {
            if let Some(state) = self.state.get_mut(value.index()) {
                *state = OUT_OF_SCOPE;
            }
        };
        if block != graph.root() {
            graph.params(block).iter().for_each(&mut close);
            graph.block_ops(block).for_each(|op| graph.results(op).iter().for_each(&mut close));
        }
    }

    /// Law 5.
    fn uses(&self, report: &mut Violations) {
        let graph = self.graph;
        for (index, count) in self.counts.iter().enumerate() {
            if self.state[index] == UNSEEN {
                continue;
            }
            let value = ValueId(index as u32);
            let mut found = 0u32;
            for u in graph.uses(value) {
                found += 1;
                let names_it = graph.is_live(u.op) && graph.operand(u.op, u.index) == Some(value);
                if !names_it || found > *count {
                    break;
                }
            }
            if found != *count {
                let at = graph.def_op(value).unwrap_or(graph.terminator(graph.root()));
                report.error(
                    graph,
                    at,
                    format!(
                        "%{} has {count} uses, but its list of uses does not say so",
                        graph.display_name(value)
                    ),
                );
            }
            if report.is_full() {
                return;
            }
        }
    }
}

/// Law 7, for the values of ops and parameters that exist.
fn names(graph: &Graph, report: &mut Violations) {
    let hasher = hashbrown::DefaultHashBuilder::default();
    let count = graph.values.iter().filter(|v| v.name_len > 0).count();
    let mut named: HashTable<ValueId> = HashTable::with_capacity(count);
    let mut numbers: Vec<u64> = vec![0; graph.value_capacity() / 16 + 1];
    let mut large: HashTable<u32> = HashTable::new();
    let mut check = |value: ValueId, report: &mut Violations| {
        let taken = match (graph.name(value), graph.number(value)) {
            (Some(name), _) => {
                let hash = hasher.hash_one(name);
                let taken = named.find(hash, |v| graph.name(*v) == Some(name)).is_some();
                if !taken {
                    named.insert_unique(hash, value, |v| hasher.hash_one(graph.name(*v).unwrap_or("")));
                }
                taken
            }
            (None, Some(number)) => match numbers.get_mut(number as usize / 64) {
                Some(word) => {
                    let bit = 1u64 << (number % 64);
                    let taken = *word & bit != 0;
                    *word |= bit;
                    taken
                }
                None => {
                    let hash = hasher.hash_one(number);
                    let taken = large.find(hash, |n| *n == number).is_some();
                    if !taken {
                        large.insert_unique(hash, number, |n| hasher.hash_one(n));
                    }
                    taken
                }
            },
            _ => false,
        };
        if taken {
            let at = graph.def_op(value).unwrap_or(graph.terminator(graph.root()));
            report.error(graph, at, format!("two values have the name %{}", graph.display_name(value)));
        }
    };
    let mut work = vec![graph.root()];
    while let Some(block) = work.pop() {
        for param in graph.params(block) {
            check(*param, report);
        }
        // A ring of ops was reported before; here it must only end.
        for op in graph.block_ops(block).take(graph.op_capacity()) {
            for result in graph.results(op) {
                check(result, report);
            }
            if work.len() <= graph.block_capacity() {
                work.extend(graph.nested_blocks(op));
            }
        }
        if report.is_full() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Type, parse_graph};

    fn messages(graph: &Graph) -> Vec<String> {
        verify_graph(graph, &NoLaws, None).iter().map(|d| d.message().to_string()).collect()
    }

    const NESTED: &str = "graph(%x : Tensor,\n      %c : bool):\n  %r : Tensor = prim::If(%c)\n    block0():\n      \
        %a : Tensor = test::f(%x)\n      -> (%a)\n    block1():\n      -> (%x)\n  return (%r)\n";

    #[test]
    fn a_sound_graph_has_no_violations() {
        assert_eq!(messages(&parse_graph(NESTED).unwrap()), [""; 0]);
    }

    #[test]
    fn values_must_be_visible() {
        let text = NESTED.replace("block1():\n      -> (%x)", "block1():\n      -> (%a)");
        assert_eq!(
            messages(&parse_graph(&text).unwrap()),
            ["%a is defined in a block that does not enclose this use"]
        );
        // Inside of its own blocks an op has no results yet.
        let text = NESTED.replace("block1():\n      -> (%x)", "block1():\n      -> (%r)");
        assert_eq!(messages(&parse_graph(&text).unwrap()), ["%r is used before it is defined"]);
        let mut graph = parse_graph(NESTED).unwrap();
        let op = graph.first_op(graph.root()).unwrap();
        let result = graph.result(op, 0).unwrap();
        graph.set_operand(op, 0, result);
        assert_eq!(messages(&graph), ["%r is used before it is defined"]);
    }

    #[test]
    fn names_must_differ() {
        let mut graph = parse_graph(NESTED).unwrap();
        let (x, c) = (graph.inputs()[0], graph.inputs()[1]);
        graph.set_name(c, "x");
        assert_eq!(messages(&graph), ["two values have the name %x"]);
        graph.set_number(c, 7);
        graph.set_number(x, 7);
        assert_eq!(messages(&graph), ["two values have the name %7"]);
    }

    #[test]
    fn damage_to_the_storage_is_found() {
        let sound = parse_graph(NESTED).unwrap();
        let op = sound.first_op(sound.root()).unwrap();
        let block = sound.nested_blocks(op)[0];
        let check = |damage: &dyn Fn(&mut Graph), message: &str| {
            let mut graph = sound.clone();
            damage(&mut graph);
            let found = messages(&graph);
            assert!(found.iter().any(|m| m == message), "{found:?}");
        };
        check(&|g| g.blocks[block.index()].owner = OpId::NONE, "a block names another op as its owner");
        check(&|g| g.ops[op.index()].parent = block, "the op is in a block that is not its parent");
        check(
            &|g| {
                let x = g.inputs()[0];
                g.values[x.index()].first_use = u32::MAX;
            },
            "%x has 2 uses, but its list of uses does not say so",
        );
        check(
            &|g| {
                let x = g.inputs()[0];
                g.values[x.index()].index = 5;
            },
            "parameter %x says that it is defined elsewhere",
        );
        check(
            &|g| {
                let terminator = g.terminator(block);
                g.ops[terminator.index()].nested = 0;
            },
            "a block's terminator belongs to another block",
        );
        check(&|g| g.nested[0] = [block, block].into_iter().collect(), "a block is listed twice");
    }

    #[test]
    fn dialects_add_laws() {
        struct NoIf;
        impl DialectLaws for NoIf {
            fn check(&self, graph: &Graph, op: OpId, report: &mut Violations) {
                if graph.kind(op) == "prim::If" {
                    report.error(graph, op, "`prim::If` is not allowed at this stage");
                }
            }
        }
        let errors = verify_graph(&parse_graph(NESTED).unwrap(), &NoIf, None);
        assert_eq!(errors.len(), 1);
        assert_eq!(errors[0].report().notes, ["in `%r : Tensor = prim::If(%c)`"]);
    }

    #[test]
    fn subgraphs_are_checked() {
        let mut inner = parse_graph(NESTED).unwrap();
        let c = inner.inputs()[1];
        inner.set_name(c, "x");
        let mut graph = Graph::new();
        let op = graph.emit(graph.root(), Symbol::new("prim::FusionGroup"), &[], &[Type::tensor()]);
        graph.set_attr(op, "Subgraph", Attr::Graph(Arc::new(inner)));
        assert_eq!(messages(&graph), ["two values have the name %x"]);
    }
}
