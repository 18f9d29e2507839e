//! Inlining: calls of functions and methods become the graphs that they call. Locations keep the call they were
//! inlined through. The language has no recursion, but graph text can write it: a call of a function from within
//! itself stays a call.
//!
//! Functions that call one another double in size with each level, and a chain of functions grows with the square of its
//! length: where all calls of a module together would make more than [`MAX_GROWTH`] ops, each function gets a share of
//! that, and calls that do not fit into it stay calls.

use super::Context;
use crate::diag::Result;
use crate::dialects::loops::is_kernel;
use crate::ir::{Attr, Function, Graph, Module, OpId, Symbol, TypeKind, ValueId};
use hashbrown::{HashMap, HashSet};

/// Maximum number of ops that inlining adds to the functions of a module together, besides [`GROWTH_FACTOR`].
pub const MAX_GROWTH: u64 = 200_000;
/// Factor by which inlining may grow a module, whatever its size.
const GROWTH_FACTOR: u64 = 8;

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let plan = context.once(Plan::of);
    let mut left = plan.growth(context.function);
    let mut changed = false;
    let mut origins = Origins::new(context.function);
    let mut work: Vec<(OpId, usize)> = graph.all_ops().into_iter().rev().map(|op| (op, 0)).collect();
    while let Some((op, within)) = work.pop() {
        let Some((callee, arguments)) = target(graph, context.module, op) else { continue };
        if origins.contains(within, &Some(callee.name)) {
            continue;
        }
        let size = callee.graph.op_count() as u64;
        if size > left {
            context.update(|| {
                format!("leaves the call of {}: no more than {MAX_GROWTH} ops are added", callee.name)
            });
            context.count("calls left", 1);
            continue;
        }
        if !context.step(|| format!("inlines {} at {}", callee.name, graph.op_line(op))) {
            break;
        }
        left -= size;
        context.count("calls inlined", 1);
        let call = origins.enter(within, Some(callee.name));
        work.extend(splice(graph, op, callee, &arguments).into_iter().rev().map(|op| (op, call)));
        changed = true;
    }
    Ok(changed)
}

/// How much each function of a module may grow.
struct Plan {
    /// None where everything fits.
    shares: Option<Shares>,
}

struct Shares {
    /// Functions that another one calls.
    called: HashSet<Symbol>,
    /// Ops that a function without callers may gain, and one with callers.
    entry: u64,
    inner: u64,
}

impl Plan {
    fn of(module: &Module) -> Plan {
        let calls = Calls::of(module);
        let own: u64 = calls.own.values().sum();
        let budget = MAX_GROWTH + GROWTH_FACTOR * own;
        let whole = module.functions.keys().fold(0u64, |sum, f| sum.saturating_add(calls.whole(*f)));
        if whole <= budget {
            return Plan { shares: None };
        }
        let called: HashSet<Symbol> = calls.callees.values().flatten().map(|(callee, _)| *callee).collect();
        let inner = called.len().max(1) as u64;
        let entries = (module.functions.len() - called.len().min(module.functions.len())).max(1) as u64;
        // Functions without callers are entry points: half of the growth is for them.
        Plan { shares: Some(Shares { called, entry: budget / 2 / entries, inner: budget / 2 / inner }) }
    }

    fn growth(&self, function: Option<Symbol>) -> u64 {
        match &self.shares {
            None => u64::MAX,
            Some(shares) => match function {
                Some(name) if shares.called.contains(&name) => shares.inner,
                _ => shares.entry,
            },
        }
    }
}

/// Who calls whom, and how large everybody is.
struct Calls {
    own: HashMap<Symbol, u64>,
    /// Callees with how often they are called.
    callees: HashMap<Symbol, Vec<(Symbol, u64)>>,
    whole: HashMap<Symbol, u64>,
}

impl Calls {
    fn of(module: &Module) -> Calls {
        let mut calls = Calls { own: HashMap::new(), callees: HashMap::new(), whole: HashMap::new() };
        for (name, function) in &module.functions {
            let graph = &function.graph;
            let mut callees: Vec<(Symbol, u64)> = Vec::new();
            let mut places: HashMap<Symbol, usize> = HashMap::new();
            for op in graph.all_ops() {
                let Some((callee, _)) = target(graph, module, op) else { continue };
                let place = *places.entry(callee.name).or_insert_with(|| {
                    callees.push((callee.name, 0));
                    callees.len() - 1
                });
                callees[place].1 += 1;
            }
            calls.own.insert(*name, graph.op_count() as u64);
            calls.callees.insert(*name, callees);
        }
        calls.measure(module);
        calls
    }

    /// The number of ops of a function with all calls inlined; huge where it calls itself.
    fn whole(&self, function: Symbol) -> u64 {
        self.whole.get(&function).copied().unwrap_or(u64::MAX)
    }

    /// Finds all sizes, callees first; without recursion, as chains of calls are as long as a module.
    fn measure(&mut self, module: &Module) {
        for name in module.functions.keys() {
            let mut open: Vec<(Symbol, usize)> = vec![(*name, 0)];
            while let Some((function, next)) = open.pop() {
                if next == 0 {
                    if self.whole.contains_key(&function) {
                        continue;
                    }
                    // Met again before it is known, it calls itself.
                    self.whole.insert(function, u64::MAX);
                }
                let callees = self.callees.get(&function).map_or(&[][..], Vec::as_slice);
                if let Some((callee, _)) = callees.get(next) {
                    open.push((function, next + 1));
                    open.push((*callee, 0));
                    continue;
                }
                let own = self.own.get(&function).copied().unwrap_or(0);
                let size = callees.iter().fold(own, |sum, (callee, times)| {
                    sum.saturating_add(self.whole(*callee).saturating_mul(*times))
                });
                self.whole.insert(function, size);
            }
        }
    }
}

/// What each inlined op came from: callees, each with the call around it. The one at 0 is the graph itself.
pub(super) struct Origins<T> {
    calls: Vec<(T, usize)>,
}

impl<T: PartialEq> Origins<T> {
    pub(super) fn new(graph: T) -> Origins<T> {
        Origins { calls: vec![(graph, 0)] }
    }

    /// A call of `callee` by an op that came from `within`; gives what the ops of its copy come from.
    pub(super) fn enter(&mut self, within: usize, callee: T) -> usize {
        self.calls.push((callee, within));
        self.calls.len() - 1
    }

    /// Whether an op came out of a call of `callee`, which calls itself then.
    pub(super) fn contains(&self, mut within: usize, callee: &T) -> bool {
        while within != 0 && self.calls[within].0 != *callee {
            within = self.calls[within].1;
        }
        self.calls[within].0 == *callee
    }
}

/// The function that a call means, and what it passes.
fn target<'a>(graph: &Graph, module: &'a Module, op: OpId) -> Option<(&'a Function, Vec<ValueId>)> {
    let operands = graph.operands(op);
    match graph.kind(op).as_str() {
        "prim::CallFunction" => {
            let value = *operands.first()?;
            let TypeKind::Function(name) = graph.ty(value).kind() else { return None };
            // In graph text the constant alone says the name.
            let named = || Symbol::existing(graph.attr(graph.def_op(value)?, "name")?.as_str()?);
            let functions = &module.functions;
            let callee = functions.get(name).or_else(|| functions.get(&named()?))?;
            // A kernel stands in no other graph: it is called.
            (!is_kernel(&callee.graph)).then(|| (callee, operands[1..].to_vec()))
        }
        "prim::CallMethod" => {
            let class = graph.ty(*operands.first()?).class_name()?;
            let method = graph.attr(op, "name").and_then(Attr::as_str)?;
            let name = module.class(class)?.methods.get(&Symbol::existing(method)?)?;
            Some((module.functions.get(name)?, operands.to_vec()))
        }
        _ => None,
    }
}

/// Puts a copy of the callee's graph in place of the call; gives the ops of the copy, nested ones included.
pub(super) fn splice(graph: &mut Graph, call: OpId, callee: &Function, arguments: &[ValueId]) -> Vec<OpId> {
    let body = &callee.graph;
    let mut map: HashMap<ValueId, ValueId> = HashMap::new();
    map.extend(body.inputs().iter().copied().zip(arguments.iter().copied()));
    let outer = graph.location_id(call);
    let mut copies = Vec::new();
    for op in body.block_ops(body.root()) {
        let copy = graph.clone_op(Some(body), op, &mut map);
        graph.insert_before(copy, call);
        copies.push(copy);
    }
    let mut all = Vec::new();
    let mut work: Vec<OpId> = copies.into_iter().rev().collect();
    while let Some(op) = work.pop() {
        all.push(op);
        if let Some(mut location) = graph.location(op).cloned()
            && location.inlined_from.is_none()
        {
            location.inlined_from = Some((callee.name, outer));
            graph.set_location(op, location);
        }
        for block in graph.nested_blocks(op).to_vec() {
            let inner: Vec<OpId> = graph.block_ops(block).collect();
            work.extend(inner.into_iter().rev());
        }
    }
    let results: Vec<ValueId> = body.outputs().iter().map(|v| map.get(v).copied().unwrap_or(*v)).collect();
    graph.replace_op(call, &results);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::Registry;
    use crate::ir::{Schema, Type};

    /// f0 adds one op; each other function calls the one before it `times` times.
    fn module(functions: usize, times: usize) -> Module {
        let mut module = Module::default();
        for n in 0..functions {
            let mut graph = Graph::new();
            let root = graph.root();
            let mut value = graph.add_input(Type::int());
            if n == 0 {
                let op = graph.emit(root, Symbol::new("aten::neg"), &[value], &[Type::int()]);
                value = graph.results(op)[0];
            }
            for _ in 0..if n > 0 { times } else { 0 } {
                let ty = Type::new(TypeKind::Function(Symbol::new(&format!("f{}", n - 1))));
                let function = graph.emit(root, Symbol::new("prim::Constant"), &[], &[ty]);
                let operands = [graph.results(function)[0], value];
                let op = graph.emit(root, Symbol::new("prim::CallFunction"), &operands, &[Type::int()]);
                value = graph.results(op)[0];
            }
            graph.add_output(value);
            let name = Symbol::new(&format!("f{n}"));
            let schema = Schema::new(name, Vec::new(), Vec::new());
            module.functions.insert(name, Function { name, schema, graph, span: None });
        }
        module
    }

    fn inlined(mut module: Module) -> Vec<usize> {
        let pipeline = crate::passes::parse("inline").expect("it is built in");
        pipeline.run(&mut module, &Registry::builtin()).expect("nothing fails");
        module.functions.values().map(|f| f.graph.op_count()).collect()
    }

    fn calls(module: &Module, function: usize) -> usize {
        let graph = &module.functions[function].graph;
        graph.all_ops().into_iter().filter(|op| graph.kind(*op) == "prim::CallFunction").count()
    }

    #[test]
    fn few_calls_are_all_inlined() {
        // Constants that name functions stay.
        assert_eq!(inlined(module(6, 2)).last(), Some(&(32 + 62)));
    }

    #[test]
    fn what_doubles_is_inlined_as_far_as_there_is_room() {
        let sizes = inlined(module(60, 2));
        let bound = MAX_GROWTH as usize + 20 * 60 * 4;
        assert!(sizes.iter().sum::<usize>() <= bound && sizes[59] > 10_000, "{sizes:?}");
    }

    #[test]
    fn a_chain_grows_no_more_than_a_share_for_each() {
        let sizes = inlined(module(5_000, 1));
        assert!(sizes.iter().sum::<usize>() <= MAX_GROWTH as usize + 20 * 15_000, "{}", sizes.len());
        // The last one has no callers: it has room for all.
        assert_eq!(sizes[4_999], 5_000);
    }

    #[test]
    fn who_calls_itself_has_no_end() {
        let mut looped = module(3, 1);
        let graph = looped.functions[2].graph.clone();
        looped.functions[0].graph = graph;
        let found = Calls::of(&looped);
        assert_eq!(calls(&looped, 0), 1);
        assert_eq!(found.whole(Symbol::new("f2")), u64::MAX);
        inlined(looped);
    }
}
