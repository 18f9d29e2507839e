//! Which lists and dictionaries of a graph may be the same, and whether something writes to them: what is known of the items of
//! one must hold for all. It does not know what the items are.

use crate::dialects::{Family, Op, Registry, resolve};
use crate::ir::{Argument, BlockId, Graph, OpId, Schema, Type, TypeKind, ValueDef, ValueId};
use petgraph::unionfind::UnionFind;
use smallvec::SmallVec;

/// Maximum number of types within a type that are visited: a larger one is assumed to hold anything.
const MAX_PARTS: usize = 4096;

/// What happens to a list or dictionary under some of its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It is only read.
    Read,
    /// Ops that [`written`] knows write to it; all its names share the number.
    Written(usize),
    /// Something may write to it that is not understood.
    Lost,
}

/// What an op that writes to its first operand, a list or dictionary, may put there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Given {
    /// An operand.
    Item(usize),
    /// The items of an operand.
    Items(usize),
}

/// What an op may put into the list or dictionary that is its first operand, where its row says that it writes to that alone: what
/// has the type of an item by the schema, and items of other containers. None where it does not write, or may put other things there.
pub(super) fn written(graph: &Graph, op: OpId, row: &Op) -> Option<SmallVec<[Given; 2]>> {
    let schema = row.schema().ok()?;
    let is_write = |argument: &Argument| argument.alias.as_ref().is_some_and(|alias| alias.is_write);
    let (first, others) = schema.arguments.split_first()?;
    let writes = is_write(first) && row.def().family == Family::Container && !others.iter().any(is_write);
    if !writes || !graph.operand(op, 0).is_some_and(|v| is_container(graph.ty(v))) {
        return None;
    }
    let item = match first.ty.kind() {
        TypeKind::List(item) | TypeKind::Dict(_, item) => item,
        _ => return None,
    };
    let given = others.iter().enumerate().filter_map(|(n, argument)| match is_container(&argument.ty) {
        true => Some(Given::Items(n + 1)),
        false => (argument.ty == *item).then_some(Given::Item(n + 1)),
    });
    Some(given.collect())
}

/// Whether a value is a list or a dictionary, or None.
pub(super) fn is_container(ty: &Type) -> bool {
    match ty.kind() {
        TypeKind::List(_) | TypeKind::Dict(..) => true,
        TypeKind::Optional(inner) => matches!(inner.kind(), TypeKind::List(_) | TypeKind::Dict(..)),
        _ => false,
    }
}

/// The lists and dictionaries of a graph.
#[derive(Default)]
pub(super) struct Containers {
    /// By value: the number of what it is the same as.
    classes: Vec<usize>,
    /// By that number.
    standings: Vec<Standing>,
}

impl Containers {
    pub(super) fn of(graph: &Graph, registry: &Registry) -> Containers {
        let count = graph.value_capacity();
        let mut finder = Finder {
            graph,
            registry,
            same: UnionFind::new(count + 1),
            seen: std::iter::repeat_n(false, count).collect(),
            work: Vec::new(),
            written: Vec::new(),
            lost: Vec::new(),
        };
        finder.start();
        while let Some(value) = finder.work.pop() {
            finder.visit(value);
        }
        if !finder.seen.contains(&true) {
            return Containers::default();
        }
        finder.end()
    }

    pub(super) fn standing(&self, value: ValueId) -> Standing {
        let class = self.classes.get(value.index());
        class.map_or(Standing::Read, |class| self.standings[*class])
    }

    /// What is written to, by the index of its values.
    pub(super) fn written(&self) -> impl Iterator<Item = (usize, usize)> {
        let standings = self.classes.iter().map(|class| self.standings[*class]).enumerate();
        standings.filter_map(|(n, standing)| match standing {
            Standing::Written(class) => Some((n, class)),
            Standing::Read | Standing::Lost => None,
        })
    }
}

struct Finder<'a> {
    graph: &'a Graph,
    registry: &'a Registry,
    /// By value, and one more for what lies in other values: lists in tuples, in lists, in what is of any type.
    same: UnionFind<usize>,
    seen: Vec<bool>,
    work: Vec<ValueId>,
    written: Vec<ValueId>,
    lost: Vec<ValueId>,
}

impl Finder<'_> {
    fn start(&mut self) {
        let graph = self.graph;
        for input in graph.inputs() {
            if is_container(graph.ty(*input)) {
                self.boxed(*input);
            }
        }
        for op in graph.all_ops() {
            let params = graph.nested_blocks(op).iter().flat_map(|block| graph.params(*block));
            for value in graph.results(op).into_iter().chain(params.copied()) {
                if is_container(graph.ty(value)) {
                    self.reach(value);
                }
            }
        }
    }

    fn reach(&mut self, value: ValueId) {
        if !std::mem::replace(&mut self.seen[value.index()], true) {
            self.work.push(value);
        }
    }

    fn join(&mut self, a: ValueId, b: ValueId) {
        self.same.union(a.index(), b.index());
        self.reach(a);
        self.reach(b);
    }

    fn boxed(&mut self, value: ValueId) {
        self.same.union(value.index(), self.seen.len());
        self.reach(value);
    }

    fn visit(&mut self, value: ValueId) {
        match self.graph.def(value) {
            ValueDef::Result(op, _) => self.made(op, value),
            ValueDef::Param(block, _) => {
                let owner = self.graph.owner(block);
                if owner.is_some_and(|op| self.graph.kind(op) != "prim::Loop") {
                    self.lost.push(value);
                }
            }
        }
        let uses: Vec<_> = self.graph.uses(value).map(|used| (used.op, used.index)).collect();
        for (op, index) in uses {
            match self.graph.terminated_block(op) {
                Some(block) => self.left(block, index, value),
                None => self.used(op, index, value),
            }
        }
    }

    /// Where a list comes from.
    fn made(&mut self, op: OpId, value: ValueId) {
        let graph = self.graph;
        match graph.kind(op).as_str() {
            // Joined from the ends of their blocks.
            "prim::If" | "prim::Loop" => {}
            "prim::Uninitialized" | "prim::Constant" | "prim::ListConstruct" | "prim::DictConstruct" => {}
            _ if graph.operands(op).iter().any(|v| may_hold(graph.ty(*v))) => self.boxed(value),
            _ if resolve(self.registry, graph, op).is_err() => self.lost.push(value),
            _ => {}
        }
    }

    /// A value at the end of a block.
    fn left(&mut self, block: BlockId, index: usize, value: ValueId) {
        let graph = self.graph;
        let Some(owner) = graph.owner(block) else { return };
        match graph.kind(owner).as_str() {
            "prim::If" => {
                if let Some(result) = graph.result(owner, index) {
                    self.join(value, result);
                }
            }
            "prim::Loop" if index > 0 => {
                let carried = [graph.params(block).get(index).copied(), graph.result(owner, index - 1)];
                carried.into_iter().flatten().for_each(|other| self.join(value, other));
            }
            _ => self.lost.push(value),
        }
    }

    fn used(&mut self, op: OpId, index: usize, value: ValueId) {
        let graph = self.graph;
        let kind = graph.kind(op).as_str();
        if kind == "prim::Loop" {
            let body = graph.nested_blocks(op).first();
            let param = body.and_then(|body| graph.params(*body).get(index.checked_sub(1)?).copied());
            return match (param, index.checked_sub(2).and_then(|n| graph.result(op, n))) {
                (Some(param), Some(result)) => {
                    self.join(value, param);
                    self.join(value, result);
                }
                _ => self.lost.push(value),
            };
        }
        let others = graph.operands(op).iter().copied().filter(|v| *v != value);
        if others.chain(graph.results(op)).any(|v| may_hold(graph.ty(v))) {
            self.boxed(value);
        }
        if matches!(
            kind,
            "prim::ListUnpack" | "prim::ListConstruct" | "prim::TupleConstruct" | "prim::DictConstruct"
        ) {
            return;
        }
        let Ok(row) = resolve(self.registry, graph, op) else { return self.lost.push(value) };
        let Ok(schema) = row.schema() else { return self.lost.push(value) };
        if index == 0 && written(graph, op, &row).is_some() {
            self.written.push(value);
            // `aten::add_` of lists gives its first operand, which its schema does not say.
            return self.given_back(op, value);
        }
        match schema.arguments.get(index) {
            Some(argument) if argument.alias.as_ref().is_some_and(|alias| alias.is_write) => {
                self.lost.push(value)
            }
            Some(argument) if argument.alias.is_some() => self.given_back(op, value),
            Some(_) => {}
            // Text is made of any values, and holds none of them.
            None if reads_all(schema) && row.def().family == Family::Host => {}
            None => self.lost.push(value),
        }
    }

    /// An op that may give what it is given.
    fn given_back(&mut self, op: OpId, value: ValueId) {
        for result in self.graph.results(op) {
            if is_container(self.graph.ty(result)) {
                self.join(value, result);
            }
        }
    }

    fn end(self) -> Containers {
        let classes = self.same.into_labeling();
        let mut standings = vec![Standing::Read; classes.len()];
        for value in self.written {
            let class = classes[value.index()];
            standings[class] = Standing::Written(class);
        }
        for value in self.lost {
            standings[classes[value.index()]] = Standing::Lost;
        }
        // Of the lists in other values it is not known what else they hold.
        let boxed = classes[classes.len() - 1];
        if standings[boxed] != Standing::Read {
            standings[boxed] = Standing::Lost;
        }
        Containers { classes, standings }
    }
}

fn reads_all(schema: &Schema) -> bool {
    schema.is_vararg && !schema.is_varret
}

/// Whether a value of a type may hold a list or a dictionary without being only that.
fn may_hold(ty: &Type) -> bool {
    let mut left = MAX_PARTS;
    let mut work = vec![(ty.clone(), true)];
    while let Some((ty, is_outermost)) = work.pop() {
        match left.checked_sub(1) {
            Some(rest) => left = rest,
            None => return true,
        }
        match ty.kind() {
            TypeKind::List(element) if is_outermost => work.push((element.clone(), false)),
            TypeKind::Dict(_, element) if is_outermost => work.push((element.clone(), false)),
            TypeKind::List(_) | TypeKind::Dict(..) => return true,
            TypeKind::Tuple(elements, _) => work.extend(elements.iter().map(|e| (e.clone(), false))),
            TypeKind::Optional(inner) => work.push((inner.clone(), is_outermost)),
            _ if is_plain(&ty) => {}
            _ => return true,
        }
    }
    false
}

/// Types whose values hold no others.
fn is_plain(ty: &Type) -> bool {
    matches!(
        ty.kind(),
        TypeKind::Tensor(_)
            | TypeKind::Int
            | TypeKind::Float
            | TypeKind::Bool
            | TypeKind::Complex
            | TypeKind::Str
            | TypeKind::None
            | TypeKind::Number
            | TypeKind::Device
    )
}
