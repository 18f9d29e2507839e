//! Loops over numbers to kernels: a `prim::Loop` that computes with ints, floats, bools and lists of them alone becomes a
//! kernel of the `loop` dialect.
//!
//! [`lower`] writes the kernel and says what it takes ([`Takes`]). Branches and loops within become branches and loops of the
//! kernel. What the kernel cannot go on with (a raise, a division by zero, an index outside of a list) ends it by a
//! `loop::require`; nothing that it did is kept then, and the interpreter runs the loop and raises as the ops say. So a kernel
//! need not know messages. [`pass::PASS`] puts kernels in the module; [`ops`] says what ops on numbers are.
//!
//! Nothing here knows how a kernel runs.

mod blocks;
mod ops;
pub mod pass;

use crate::diag::{Diagnostic, Result};
use crate::dialects::Registry;
use crate::dialects::loops::{Builder, Elem};
use crate::ir::{Graph, OpId, Symbol, Type, TypeKind, ValueId};
use hashbrown::HashMap;

/// The message of the condition that a list has room for another element: with more room the kernel may do its work.
pub const FULL: &str = "a list has grown beyond its room";

/// A loop as a kernel.
#[derive(Clone, Debug)]
pub struct ScalarLoop {
    /// A kernel of the `loop` dialect.
    pub kernel: Graph,
    /// What it takes, parameter by parameter.
    pub takes: Vec<Takes>,
    /// Numbers from around the loop that it reads, with their types.
    pub outer: Vec<(ValueId, Elem)>,
    /// Lists from around the loop that it uses.
    pub lists: Vec<ListUse>,
    /// Types of the numbers that the loop carries.
    pub carried: Vec<Elem>,
}

/// What a parameter of a kernel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// How many iterations there are at most, `i64`.
    Trips,
    /// The number of the iteration with which it begins, `i64`.
    Trip,
    /// Whether there is such an iteration, `bool`.
    GoesOn,
    /// A carried number as that iteration gets it.
    Carried(usize),
    /// A number from around the loop.
    Outer(usize),
    /// Elements of a list, a buffer.
    Elements(usize),
    /// The number of elements of a list that keeps it, `i64`.
    Length(usize),
    /// How many elements a list has room for, `i64`.
    Room(usize),
    /// A buffer of `i64` with one element: how many elements a list has, before and after the loop.
    Grown(usize),
    /// A buffer with one element that gets a carried number after the loop.
    Result(usize),
}

/// A list that a kernel uses.
#[derive(Clone, Copy, Debug)]
pub struct ListUse {
    /// The list, from around the loop.
    pub value: ValueId,
    /// Of its elements.
    pub elem: Elem,
    /// Whether elements are written or added.
    pub written: bool,
    /// Whether its length changes.
    pub grows: bool,
}

/// The element type that holds numbers of a type.
pub fn number_elem(ty: &Type) -> Option<Elem> {
    match ty.kind() {
        TypeKind::Int => Some(Elem::I64),
        TypeKind::Float => Some(Elem::F64),
        TypeKind::Bool => Some(Elem::Bool),
        _ => None,
    }
}

/// The element type of a list of numbers.
fn list_elem(ty: &Type) -> Option<Elem> {
    match ty.kind() {
        TypeKind::List(element) => number_elem(element),
        _ => None,
    }
}

/// The kernel of a `prim::Loop`. `Unsupported` says which op or type keeps the loop from being one.
pub fn lower(registry: &Registry, graph: &Graph, op: OpId) -> Result<ScalarLoop> {
    let &[body] = graph.nested_blocks(op) else { return Err(unlike("has no body")) };
    let (operands, params) = (graph.operands(op), graph.params(body));
    let fits = operands.len() >= 2 && params.len() + 1 == operands.len();
    if !fits
        || graph.block_results(body).len() != params.len()
        || graph.result_count(op) + 2 != operands.len()
    {
        return Err(unlike("does not carry as many values in, around and out"));
    }
    let carried =
        params.iter().skip(1).map(|p| number_elem(graph.ty(*p)).ok_or_else(|| not_a_number(graph, *p)));
    let carried: Vec<Elem> = carried.collect::<Result<_>>()?;
    let mut lowering = Lowering {
        registry,
        graph,
        b: Builder::new(),
        takes: Vec::new(),
        outer: Vec::new(),
        lists: Vec::new(),
        known: HashMap::new(),
        places: Vec::new(),
        around: op,
    };
    lowering.find_lists(op)?;
    lowering.whole(body, &carried)?;
    let Lowering { b, takes, outer, lists, .. } = lowering;
    // A kernel is distinguished from other graphs by its buffers, and one without any would give nothing.
    if !takes.iter().any(|t| matches!(t, Takes::Elements(_) | Takes::Grown(_) | Takes::Result(_))) {
        return Err(unlike("carries no number and uses no elements of a list"));
    }
    Ok(ScalarLoop { kernel: b.finish(), takes, outer, lists, carried })
}

fn unlike(why: &str) -> Diagnostic {
    Diagnostic::unsupported(format!("the loop {why}"))
}

fn not_a_number(graph: &Graph, value: ValueId) -> Diagnostic {
    let (name, ty) = (graph.display_name(value), graph.ty(value));
    Diagnostic::unsupported(format!("%{name} is {ty}, no number"))
}

/// Where a list is in the kernel.
#[derive(Clone, Copy)]
struct Place {
    elements: ValueId,
    /// The number of its elements: a number, or a buffer with one where it grows.
    length: ValueId,
    /// How many elements it has room for, where it grows.
    room: Option<ValueId>,
}

/// A kernel that is being written.
struct Lowering<'a> {
    registry: &'a Registry,
    graph: &'a Graph,
    b: Builder,
    takes: Vec<Takes>,
    outer: Vec<(ValueId, Elem)>,
    lists: Vec<ListUse>,
    /// What numbers of the program are in the kernel.
    known: HashMap<ValueId, ValueId>,
    /// Where lists are in the kernel, by their numbers.
    places: Vec<Place>,
    around: OpId,
}

impl Lowering<'_> {
    fn parameter(&mut self, takes: Takes, elem: Elem, name: &str) -> ValueId {
        self.takes.push(takes);
        match takes {
            Takes::Elements(_) | Takes::Grown(_) | Takes::Result(_) => self.b.buffer(elem, name),
            _ => self.b.scalar(elem, name),
        }
    }

    fn whole(&mut self, body: crate::ir::BlockId, carried: &[Elem]) -> Result<()> {
        let trips = self.parameter(Takes::Trips, Elem::I64, "trips");
        let trip = self.parameter(Takes::Trip, Elem::I64, "trip");
        let goes_on = self.parameter(Takes::GoesOn, Elem::Bool, "goes_on");
        let mut inits = Vec::new();
        for (n, elem) in carried.iter().enumerate() {
            inits.push(self.parameter(Takes::Carried(n), *elem, &format!("carried{n}")));
        }
        let finals = self.trips(body, [trips, trip, goes_on], &inits)?;
        let first = self.b.index(0);
        for (n, (elem, value)) in carried.iter().zip(finals).enumerate() {
            let result = self.parameter(Takes::Result(n), *elem, &format!("result{n}"));
            self.b.store(result, first, value);
        }
        Ok(())
    }

    /// The lists that ops of the loop take, and what is done to them.
    fn find_lists(&mut self, op: OpId) -> Result<()> {
        let graph = self.graph;
        for inner in graph.nested_ops(op) {
            let kind = graph.kind(inner);
            let Some(list) = graph.operand(inner, 0).filter(|v| list_elem(graph.ty(*v)).is_some()) else {
                continue;
            };
            let (written, grows) = match kind.as_str() {
                "aten::append" | "aten::pop" | "aten::clear" => (true, true),
                "aten::_set_item" => (true, false),
                _ => (false, false),
            };
            let n = self.list(list)?;
            self.lists[n].written |= written;
            self.lists[n].grows |= grows;
        }
        for n in 0..self.lists.len() {
            let ListUse { value, elem, grows, .. } = self.lists[n];
            let name = self.graph.display_name(value).to_string();
            let elements = self.parameter(Takes::Elements(n), elem, &name);
            let takes = if grows { Takes::Grown(n) } else { Takes::Length(n) };
            let length = self.parameter(takes, Elem::I64, &format!("{name}_elements"));
            let room = grows.then(|| self.parameter(Takes::Room(n), Elem::I64, &format!("{name}_room")));
            self.places.push(Place { elements, length, room });
        }
        Ok(())
    }

    /// A list from around the loop, by its number. What an op gives that returns its list is that list.
    fn list(&mut self, value: ValueId) -> Result<usize> {
        let graph = self.graph;
        let mut source = value;
        while let Some(op) = graph.def_op(source)
            && returns_its_list(graph.kind(op))
            && let Some(first) = graph.operand(op, 0)
        {
            source = first;
        }
        if let Some(n) = self.lists.iter().position(|known| known.value == source) {
            return Ok(n);
        }
        if !graph.is_visible(source, self.around) {
            return Err(unlike("makes lists"));
        }
        let elem = list_elem(graph.ty(source)).ok_or_else(|| not_a_number(graph, source))?;
        self.lists.push(ListUse { value: source, elem, written: false, grows: false });
        Ok(self.lists.len() - 1)
    }
}

/// Ops that give the list that they changed.
fn returns_its_list(kind: Symbol) -> bool {
    matches!(kind.as_str(), "aten::append" | "aten::_set_item")
}
