//! Fills the points-to graph from a graph: schemas say what aliases and what is written, `prim` structure ops say
//! what flows where. One walk in program order; the edges stand for all orders of execution.

use super::memory::{Element, Memory};
use super::types::{self, Classes};
use crate::analysis::effects::{FactsTable, facts, is_read_only};
use crate::dialects::{Effects, Fact, Family, Op, Registry};
use crate::ir::{AliasInfo, Argument, Attr, BlockId, Graph, OpId, Schema, Symbol, Type, TypeKind, ValueId};
use hashbrown::{HashMap, HashSet};
use indexmap::IndexMap;
use smallvec::SmallVec;

/// What an op may write.
#[derive(Clone, Copy, Debug)]
pub(super) enum Write {
    /// What the element may be.
    To(Element),
    /// That and all that it may contain.
    Deep(Element),
    /// Every wildcard: code that is not seen here runs.
    Everything,
}

/// The points-to graph of a graph, not solved yet.
pub(super) struct Builder<'a> {
    registry: &'a Registry,
    graph: &'a Graph,
    facts: FactsTable<'a>,
    /// The op that was last asked for as the user of a container, and its row.
    user: Option<(OpId, Option<Op>)>,
    mutable: MutableTypes,
    classes: Classes<'a>,
    pub(super) memory: Memory,
    /// By value.
    pub(super) elements: Vec<Option<Element>>,
    /// By type: what is known of nothing but its type.
    pub(super) wildcards: IndexMap<Type, Element>,
    /// Elements of values that others may hold, each with the wildcard of its type.
    pub(super) wild: Vec<(Element, Element)>,
    /// Wildcards whose contents are not said yet.
    unfilled: Vec<Type>,
    /// Constants that are one object wherever they stand, by address.
    constants: HashMap<usize, Element>,
    /// Lists of views that are only unpacked, each with the tensor that they alias.
    parts: HashMap<ValueId, ValueId>,
    pub(super) writes: Vec<(OpId, Write)>,
    /// Results that their ops make anew.
    pub(super) fresh: HashSet<ValueId>,
    /// Values that are compared with others as objects.
    pub(super) compared: HashSet<ValueId>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(registry: &'a Registry, classes: Classes<'a>, graph: &'a Graph) -> Builder<'a> {
        Builder {
            registry,
            graph,
            facts: FactsTable::new(registry),
            user: None,
            mutable: MutableTypes::new(graph),
            classes,
            memory: Memory::default(),
            elements: vec![None; graph.value_capacity()],
            wildcards: IndexMap::new(),
            wild: Vec::new(),
            unfilled: Vec::new(),
            constants: HashMap::new(),
            parts: HashMap::new(),
            writes: Vec::new(),
            fresh: HashSet::new(),
            compared: HashSet::new(),
        }
    }

    /// Walks the graph.
    pub(super) fn run(&mut self) {
        for input in self.graph.inputs() {
            self.set_wild(*input);
        }
        let mut blocks: Vec<BlockId> = vec![self.graph.root()];
        while let Some(block) = blocks.pop() {
            for op in self.graph.block_ops(block) {
                self.op(op);
                blocks.extend_from_slice(self.graph.nested_blocks(op));
            }
        }
        self.fill_wildcards();
        self.join_any();
    }

    /// The element of a value; None where values of its type are never objects that can be written.
    fn element(&mut self, value: ValueId) -> Option<Element> {
        if let Some(known) = self.elements[value.index()] {
            return Some(known);
        }
        if !self.mutable.is_mutable(self.graph, value) {
            return None;
        }
        let element = self.memory.element();
        self.elements[value.index()] = Some(element);
        Some(element)
    }

    /// `value` may be what `other` is.
    fn point(&mut self, value: ValueId, other: ValueId) {
        if let (Some(a), Some(b)) = (self.element(value), self.element(other)) {
            self.memory.may_be(a, b);
        }
    }

    /// Nothing but the type of the value is known.
    fn set_wild(&mut self, value: ValueId) {
        let Some(element) = self.element(value) else { return };
        for ty in self.classes.bases(self.graph.ty(value)) {
            let wildcard = self.wildcard(&ty);
            self.wild.push((element, wildcard));
        }
    }

    /// The element of everything of a base type that may be held elsewhere.
    fn wildcard(&mut self, ty: &Type) -> Element {
        if let Some(known) = self.wildcards.get(ty) {
            return *known;
        }
        let element = self.memory.element();
        self.wildcards.insert(ty.clone(), element);
        self.unfilled.push(ty.clone());
        element
    }

    /// Says what wildcards contain, and those, and so on.
    fn fill_wildcards(&mut self) {
        while let Some(ty) = self.unfilled.pop() {
            let element = self.wildcard(&ty);
            self.contain_wildcards(element, &ty);
        }
    }

    /// Anything of its content types may be in a container.
    fn contain_wildcards(&mut self, container: Element, ty: &Type) {
        for content in self.classes.contents(ty) {
            let wildcard = self.wildcard(&content);
            self.memory.contains(container, wildcard);
        }
    }

    /// A value without other references; what it contains may be shared.
    fn set_fresh(&mut self, value: ValueId) {
        let Some(element) = self.element(value) else { return };
        self.fresh.insert(value);
        let ty = self.graph.ty(value);
        // Most of what graphs make: tensors and lists of numbers, which hold nothing.
        if ty.is_tensor() || ty.element().is_some_and(|inner| !types::is_mutable(inner)) {
            return;
        }
        for ty in self.classes.bases(self.graph.ty(value)) {
            self.contain_wildcards(element, &ty);
        }
    }

    /// A value of type `Any` may be anything that is wild.
    fn join_any(&mut self) {
        let Some(any) = self.wildcards.get(&Type::any()).copied() else { return };
        self.wild.extend(self.wildcards.values().filter(|w| **w != any).map(|wildcard| (any, *wildcard)));
    }

    fn op(&mut self, op: OpId) {
        let graph = self.graph;
        if self.is_plain(op) {
            return;
        }
        match graph.kind(op).as_str() {
            "prim::If" => self.branches(op),
            "prim::Loop" => self.loop_op(op),
            "prim::Constant" => self.constant(op),
            "prim::TupleConstruct" | "prim::ListConstruct" | "prim::DictConstruct" => self.construct(op),
            "prim::ListUnpack" => self.unpack(op),
            "prim::GetAttr" | "prim::TupleUnpack" | "prim::TupleIndex" | "prim::TupleSlice" => {
                graph.results(op).iter().for_each(|value| self.set_wild(*value));
            }
            "prim::SetAttr" => self.set_attribute(op),
            "prim::CallFunction" | "prim::CallMethod" => self.call(op),
            "prim::unchecked_cast" => {
                if let (Some(result), Some(operand)) = (graph.result(op, 0), graph.operand(op, 0)) {
                    self.point(result, operand);
                }
            }
            "prim::CreateObject" | "prim::Uninitialized" => {
                graph.results(op).iter().for_each(|value| self.set_fresh(*value));
            }
            _ if !graph.nested_blocks(op).is_empty() => self.regions(op),
            _ => self.by_schema(op),
        }
    }

    /// An op with blocks that its row runs: what goes into blocks and comes out of them may be any operand, any result of a
    /// block, or what these hold. What ops in its blocks write is noted of them.
    fn regions(&mut self, op: OpId) {
        let graph = self.graph;
        let blocks = graph.nested_blocks(op).iter();
        let inner = blocks.flat_map(|block| graph.params(*block).iter().chain(graph.block_results(*block)));
        let outer: Vec<ValueId> = graph.operands(op).iter().chain(&graph.results(op)).copied().collect();
        inner.chain(&outer).for_each(|value| self.set_wild(*value));
        let facts = self.facts.get(graph, op);
        if facts.writes || facts.effects.contains(Effects::ALL) {
            self.writes.push((op, Write::Everything));
        }
    }

    /// Whether an op takes and gives no objects, and its row says all that it does: nothing is to be noted of it.
    fn is_plain(&mut self, op: OpId) -> bool {
        let graph = self.graph;
        let is_object = |value: &ValueId| self.mutable.is_mutable(graph, *value);
        if graph.operands(op).iter().any(is_object) || graph.results(op).iter().any(is_object) {
            return false;
        }
        if !graph.nested_blocks(op).is_empty() || graph.attr(op, "Subgraph").is_some() {
            return false;
        }
        let facts = self.facts.get(graph, op);
        !facts.effects.contains(Effects::ALL)
            && facts.op.as_ref().is_some_and(|row| row.marked_schema().is_ok())
    }

    fn branches(&mut self, op: OpId) {
        let graph = self.graph;
        for block in graph.nested_blocks(op) {
            for (result, value) in graph.results(op).iter().zip(graph.block_results(*block)) {
                self.point(*result, *value);
            }
        }
    }

    /// Loop-carried values may come from outside or from the previous iteration; so may results of the loop.
    fn loop_op(&mut self, op: OpId) {
        let graph = self.graph;
        let Some(body) = graph.nested_blocks(op).first().copied() else { return };
        let start: SmallVec<[ValueId; 4]> = graph.operands(op).iter().skip(2).copied().collect();
        let end: SmallVec<[ValueId; 4]> = graph.block_results(body).iter().skip(1).copied().collect();
        let carried =
            graph.params(body).iter().skip(1).chain(&graph.results(op)).copied().collect::<Vec<_>>();
        let count = start.len().max(1);
        for (n, value) in carried.into_iter().enumerate() {
            for source in [start.get(n % count), end.get(n % count)].into_iter().flatten() {
                self.point(value, *source);
            }
        }
    }

    /// A constant is one object in all runs, and wherever the same data stands.
    fn constant(&mut self, op: OpId) {
        let Some(value) = self.graph.result(op, 0) else { return };
        self.set_fresh(value);
        let Some(address) = self.graph.attr(op, "value").and_then(address) else { return };
        let Some(element) = self.element(value) else { return };
        let memory = &mut self.memory;
        let object = *self.constants.entry(address).or_insert_with(|| memory.element());
        self.memory.may_be(element, object);
    }

    /// A container of known elements. Where it is only read, at once and by one op, or only returned, its elements
    /// stay apart; otherwise they may be taken out later.
    fn construct(&mut self, op: OpId) {
        let graph = self.graph;
        let Some(container) = graph.result(op, 0) else { return };
        let Some(element) = self.element(container) else { return };
        if self.is_only_looked_at(container) {
            self.fresh.insert(container);
            for value in graph.operands(op) {
                if let Some(content) = self.element(*value) {
                    self.memory.contains(element, content);
                }
            }
            return;
        }
        graph.operands(op).iter().for_each(|value| self.set_wild(*value));
        self.set_fresh(container);
    }

    fn is_only_looked_at(&mut self, container: ValueId) -> bool {
        let graph = self.graph;
        let mut uses = graph.uses(container);
        let (Some(user), None) = (uses.next(), uses.next()) else { return false };
        // Callers take elements out of what the graph returns after its end.
        if graph.terminated_block(user.op) == Some(graph.root()) {
            return true;
        }
        // Places to take from, as `x[i, :]` has them, may be None.
        let is_list_of_tensors =
            graph.ty(container).element().is_some_and(|ty| ty.without_none().is_tensor());
        if !is_list_of_tensors {
            return false;
        }
        // One op may take many containers; to look for its row takes a step for each of them.
        let row = match self.user.take().filter(|(op, _)| *op == user.op) {
            Some((_, row)) => row,
            None => self.facts.get(graph, user.op).op.clone(),
        };
        self.user = Some((user.op, row.clone()));
        let Some(row) = row else { return false };
        let Ok(schema) = row.marked_schema() else { return false };
        let Some(formal) = schema.arguments.get(user.index) else { return false };
        let looks = !matches!(row.def().family, Family::Control) && !row.def().effects.contains(Effects::ALL);
        let is_plain = |ty: &Type| ty.is_tensor() || !types::is_mutable(ty);
        looks
            && formal.alias.is_none()
            && !formal.ty.has_free_vars()
            && !schema.is_varret
            && schema.returns.iter().all(|r| is_plain(&r.ty) && !is_wild(r.alias.as_ref()))
    }

    /// Parts of a tensor that are unpacked at once are that tensor; what else is taken out of a list may be anything.
    fn unpack(&mut self, op: OpId) {
        let graph = self.graph;
        let whole = graph.operand(op, 0).and_then(|list| self.parts.get(&list).copied());
        for value in graph.results(op) {
            match whole {
                Some(whole) => self.point(value, whole),
                None => self.set_wild(value),
            }
        }
    }

    /// The list that an op makes of views of an operand marked so, if all that happens to it is that it is unpacked.
    fn unpacked_parts(&self, op: OpId, schema: &Schema, operand: &AliasInfo) -> Option<ValueId> {
        let graph = self.graph;
        let ([list], [result]) = (&*graph.results(op), &*schema.returns) else { return None };
        let marks = result.alias.as_ref().filter(|marks| marks.before.is_empty() && !marks.is_write)?;
        let holds_operand = marks.contained.iter().flatten().any(|part| part.before == operand.before);
        let mut uses = graph.uses(*list);
        let user = uses.next().filter(|_| uses.next().is_none())?;
        (holds_operand && graph.kind(user.op) == "prim::ListUnpack").then_some(*list)
    }

    fn set_attribute(&mut self, op: OpId) {
        if let Some(element) = self.graph.operand(op, 0).and_then(|object| self.element(object)) {
            self.writes.push((op, Write::To(element)));
        }
        if let Some(value) = self.graph.operand(op, 1) {
            self.set_wild(value);
        }
    }

    /// What the schema's marks say. An unknown op, or one that runs code not seen here, may do anything.
    fn by_schema(&mut self, op: OpId) {
        let facts = self.facts.get(self.graph, op).clone();
        let has_body = self.graph.attr(op, "Subgraph").is_some();
        match &facts.op {
            Some(row) if !facts.effects.contains(Effects::ALL) && !has_body => match row.marked_schema() {
                Ok(schema) => self.marks(op, row, schema),
                Err(_) => self.conservative(op),
            },
            Some(_) if has_body && !facts.effects.contains(Effects::ALL) && self.makes_all_anew(op) => {
                self.graph.results(op).iter().for_each(|value| self.set_fresh(*value));
            }
            _ => {
                self.conservative(op);
                if has_body && !facts.writes && !facts.effects.contains(Effects::ALL) {
                    self.writes.retain(|(writer, _)| *writer != op);
                }
            }
        }
    }

    /// Whether the subgraph of an op gives only what ops in it made, and no op in it keeps, gives back or writes an operand.
    fn makes_all_anew(&self, op: OpId) -> bool {
        let Some(body) = self.graph.attr(op, "Subgraph").and_then(Attr::as_graph) else { return false };
        let unmarked = |a: &Argument| a.alias.is_none() && !is_open(&a.ty);
        // What an op may write is marked too, and not written where a constant says so: statistics in evaluation.
        let keeps_nothing = |inner: OpId, row: &Op| {
            row.marked_schema().is_ok_and(|schema| {
                !schema.is_varret
                    && schema.returns.iter().all(unmarked)
                    && (schema.arguments.iter().all(unmarked) || is_read_only(body, inner, row))
            })
        };
        let is_plain = |inner: OpId| {
            let facts = facts(self.registry, body, inner);
            body.kind(inner) == "prim::Constant"
                || (body.nested_blocks(inner).is_empty()
                    && facts.op.as_ref().is_some_and(|row| keeps_nothing(inner, row)))
        };
        let made = |value: &ValueId| body.def_op(*value).is_some_and(|op| body.kind(op) != "prim::Constant");
        body.block_ops(body.root()).all(is_plain) && body.outputs().iter().all(made)
    }

    /// An op that may do everything.
    fn conservative(&mut self, op: OpId) {
        self.call(op);
        self.writes.push((op, Write::Everything));
    }

    /// A function of the program may do everything to what can be reached from its operands. It has nothing else,
    /// as there are no global variables.
    fn call(&mut self, op: OpId) {
        let graph = self.graph;
        for value in graph.operands(op) {
            self.set_wild(*value);
            if let Some(element) = self.element(*value) {
                self.writes.push((op, Write::Deep(element)));
            }
        }
        graph.results(op).iter().for_each(|value| self.set_wild(*value));
    }

    fn marks(&mut self, op: OpId, row: &Op, schema: &Schema) {
        let graph = self.graph;
        let is_object = |value: &ValueId| !matches!(graph.ty(*value).kind(), TypeKind::None);
        if row.def().facts.contains(&Fact::Compares) && graph.operands(op).iter().all(is_object) {
            self.compared.extend(graph.operands(op).iter().copied());
        }
        let mut held: SmallVec<[(Symbol, ValueId); 4]> = SmallVec::new();
        let writes = !is_read_only(graph, op, row);
        let may_give = |value: &ValueId| {
            let is_any = |r: &Argument| is_open(&r.ty);
            (schema.is_varret || schema.returns.iter().any(is_any))
                && graph.results(op).iter().any(|r| self.classes.may_hold(graph.ty(*r), graph.ty(*value)))
        };
        let given: SmallVec<[bool; 4]> = graph.operands(op).iter().map(may_give).collect();
        for (n, value) in graph.operands(op).iter().enumerate() {
            let formal = schema.arguments.get(n);
            let Some(alias) = formal.and_then(|f| f.alias.as_ref()) else {
                // What a result of any type may be is not marked: a default of a dictionary's `get`, for instance.
                if given[n] && formal.is_none_or(|f| is_open(&f.ty)) {
                    self.set_wild(*value);
                }
                continue;
            };
            // A mark that an argument before has too says where a result comes from, not that this one is written.
            let bound = alias.before.iter().any(|set| held.iter().any(|(known, _)| known == set));
            held.extend(alias.before.iter().map(|set| (*set, *value)));
            if let Some(element) = self.element(*value).filter(|_| writes && !bound) {
                let inside = alias.contained.iter().flatten().any(|inner| inner.is_write);
                if inside {
                    self.writes.push((op, Write::Deep(element)));
                } else if alias.is_write {
                    self.writes.push((op, Write::To(element)));
                }
            }
            match self.unpacked_parts(op, schema, alias) {
                Some(list) if alias.wildcard_after && !alias.is_write => _ = self.parts.insert(list, *value),
                _ if alias.wildcard_after || alias.wildcard_before => self.set_wild(*value),
                _ => {}
            }
        }
        let results = graph.results(op);
        for (n, value) in results.iter().enumerate() {
            if let Some(whole) = self.parts.get(value).copied() {
                self.fresh.insert(*value);
                if let (Some(list), Some(part)) = (self.element(*value), self.element(whole)) {
                    self.memory.contains(list, part);
                }
                continue;
            }
            let formal = schema.returns.get(n).or(schema.returns.last().filter(|_| results.len() > 1));
            match formal {
                None => self.unmarked(op, row, *value, true),
                Some(formal) => match formal
                    .alias
                    .as_ref()
                    .filter(|a| is_wild(Some(a)) || !a.before.is_empty() || !a.after.is_empty())
                {
                    None => self.unmarked(op, row, *value, is_open(&formal.ty)),
                    Some(alias) if is_wild(Some(alias)) => self.set_wild(*value),
                    Some(alias) => self.marked(*value, alias, &held),
                },
            }
        }
    }

    /// A result without a mark is fresh, unless its type is open: then it may be anything. A view aliases its
    /// operands, whatever its marks say.
    fn unmarked(&mut self, op: OpId, row: &Op, value: ValueId, open: bool) {
        if row.def().family == Family::View && self.graph.ty(value).is_tensor() {
            for operand in self.graph.operands(op).to_vec() {
                if self.graph.ty(operand).is_tensor() {
                    self.point(value, operand);
                }
            }
            return;
        }
        let computes = !matches!(row.def().family, Family::Host | Family::Container | Family::Control);
        if open && !(computes && self.graph.ty(value).is_tensor()) {
            self.set_wild(value);
        } else {
            self.set_fresh(value);
        }
    }

    fn marked(&mut self, value: ValueId, alias: &AliasInfo, held: &[(Symbol, ValueId)]) {
        let sets = if alias.after.is_empty() { &alias.before } else { &alias.after };
        let mut found = false;
        for (_, source) in held.iter().filter(|(set, _)| sets.contains(set)) {
            self.point(value, *source);
            found = true;
        }
        if !found {
            self.set_fresh(value);
        }
    }
}

/// Which types of a graph are of objects that can be written, by the number of the type.
pub(super) struct MutableTypes(Vec<bool>);

impl MutableTypes {
    pub(super) fn new(graph: &Graph) -> MutableTypes {
        MutableTypes((0..).map_while(|n| graph.type_at(n)).map(types::is_mutable).collect())
    }

    pub(super) fn is_mutable(&self, graph: &Graph, value: ValueId) -> bool {
        self.0.get(graph.type_index(value)).copied().unwrap_or(true)
    }
}

/// Whether a mark says that anything may be aliased.
fn is_wild(alias: Option<&AliasInfo>) -> bool {
    alias.is_some_and(|a| {
        a.wildcard_before
            || a.wildcard_after
            || a.contained.iter().flatten().any(|inner| is_wild(Some(inner)))
    })
}

/// Whether a type of a schema stands for any type.
fn is_open(ty: &Type) -> bool {
    match ty.kind() {
        TypeKind::Var(_) | TypeKind::Any | TypeKind::AnyClass | TypeKind::AnyList | TypeKind::AnyTuple => {
            true
        }
        TypeKind::Optional(inner) | TypeKind::Future(inner) | TypeKind::Await(inner) => is_open(inner),
        _ => false,
    }
}

/// Identifies the object that a constant makes.
fn address(attr: &Attr) -> Option<usize> {
    Some(match attr {
        Attr::Tensor(x) => x.storage().id(),
        Attr::Ints(x) => x.as_ptr().addr(),
        Attr::Floats(x) => x.as_ptr().addr(),
        Attr::Complexes(x) => x.as_ptr().addr(),
        Attr::Strs(x) => x.as_ptr().addr(),
        Attr::Tensors(x) => x.as_ptr().addr(),
        Attr::List(x) => x.as_ptr().addr(),
        Attr::Dict(x) => x.as_ptr().addr(),
        _ => return None,
    })
}
