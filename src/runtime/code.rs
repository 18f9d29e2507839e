//! Linear code: what the interpreter runs. A graph's tree of blocks becomes a list of steps over registers;
//! conditions and loops become jumps; the last use of a register moves its value out, so that memory is given
//! back as early as possible. Overloads are chosen here, once.

mod bailouts;
mod blocks;
mod context;
mod guards;
mod listing;
mod number_loops;
mod registers;
mod sites;
mod steps;

use super::arithmetic::Arithmetic;
use super::checks::GuardKind;
use super::kernels;
use crate::analysis::{AliasDb, facts};
use crate::backends::FusedGroup;
use crate::diag::{Diagnostic, ErrorKind, Result, Span};
use crate::dialects::prim::{constant, profiling};
use crate::dialects::{Fact, GraphId, Outputs, Variant, fusion, loops, resolve};
use crate::ir::{Attr, BlockId, Graph, LocationId, Module, OpId, Symbol, Type, ValueId};
use crate::lowering::Lowered;
use crate::passes;
use crate::value::Value;
use hashbrown::{HashMap, HashSet};
use indexmap::IndexSet;
pub(super) use sites::{shown_line, span};
use sites::{site, span_of};
use std::sync::Arc;

pub(super) use context::Context;
pub(super) use registers::{NO_OP, NOWHERE, Operand, Register};
pub(super) use steps::{
    Action, BackwardKind, Bound, BuiltBackward, Code, CompiledBackward, Continuation, Derivatives,
    RegionCode, Step,
};

/// Graphs nested deeper are refused: each runs within a call of the one around it.
const MAX_DEPTH: usize = 400;

impl Code {
    /// Compiles a graph; `name` is the qualified name of its function.
    pub(super) fn compile(context: Context<'_>, graph: &Graph, name: &str) -> Result<Code> {
        compile_graph(context, graph, name, 0)
    }
}

fn compile_graph(context: Context<'_>, graph: &Graph, name: &str, depth: usize) -> Result<Code> {
    let mut code = match loops::is_kernel(graph) {
        true => kernels::code(context, graph, name)?,
        false => compile_block(context, graph, (graph.root(), &[]), name, depth)?,
    };
    code.graph = Some(GraphId::of(graph));
    Ok(code)
}

/// The code of one block: its parameters are `outer`, values around it, and then its own.
fn compile_block(
    context: Context<'_>,
    graph: &Graph,
    (block, outer): (BlockId, &[ValueId]),
    name: &str,
    depth: usize,
) -> Result<Code> {
    let mut compiler = Compiler {
        context,
        graph,
        deaths: deaths(graph),
        places: vec![Holder::Nothing; graph.value_capacity()],
        free: Vec::new(),
        reserved: HashSet::new(),
        op: NO_OP,
        is_part: block != graph.root(),
        nested: false,
        anchored: true,
        level: 0,
        aliases: None,
        code: Code {
            name: name.rsplit('.').next().unwrap_or(name).to_string(),
            graph: None,
            steps: Vec::new(),
            constants: Vec::new(),
            registers: 0,
            parameters: Vec::new(),
            sites: HashMap::new(),
            guards: Vec::new(),
        },
    };
    for parameter in outer.iter().chain(graph.params(block)) {
        let register = compiler.define(*parameter)?;
        compiler.code.parameters.push(register);
    }
    // Values around a block die outside of it.
    compiler.reserved.extend(compiler.code.parameters.iter().take(outer.len()));
    compiler.block(block, depth)?;
    let operands = compiler.block_results(block)?;
    compiler.push(Action::Return, operands, Vec::new(), LocationId::UNKNOWN);
    Ok(compiler.code)
}

/// A value that is dead after some op of its own block.
#[derive(Clone, Copy)]
struct Death {
    value: ValueId,
    /// The last uses lie in blocks nested in the op, so that the op itself must not take it.
    nested: bool,
}

/// For each op (and terminator), the values whose last use it is, judged in the block that defines them.
fn deaths(graph: &Graph) -> HashMap<OpId, Vec<Death>> {
    let mut out: HashMap<OpId, Vec<Death>> = HashMap::new();
    let mut blocks = vec![graph.root()];
    while let Some(block) = blocks.pop() {
        let mut defined: Vec<ValueId> = graph.params(block).to_vec();
        for op in graph.block_ops(block) {
            defined.extend(graph.results(op));
            blocks.extend(graph.nested_blocks(op));
        }
        for value in defined {
            if let Some((op, nested)) = last_use(graph, value, block) {
                out.entry(op).or_default().push(Death { value, nested });
            }
        }
    }
    out
}

/// The last op (or terminator) of `block` that uses `value`, itself or in a nested block.
fn last_use(graph: &Graph, value: ValueId, block: BlockId) -> Option<(OpId, bool)> {
    let end = graph.terminator(block);
    let mut last: Option<(OpId, bool)> = None;
    for used in graph.uses(value) {
        if used.op == end {
            return Some((end, false));
        }
        let Some(at) = ancestor(graph, used.op, block) else { continue };
        let nested = at != used.op;
        last = match last {
            Some((op, was_nested)) if op == at => Some((op, was_nested || nested)),
            Some((op, was_nested)) if graph.is_before(at, op) => Some((op, was_nested)),
            _ => Some((at, nested)),
        };
    }
    last
}

/// The op of `block` that is `op` or contains it; terminators belong to the owner of their block.
fn ancestor(graph: &Graph, op: OpId, block: BlockId) -> Option<OpId> {
    let mut at = op;
    loop {
        let parent = match graph.terminated_block(at) {
            Some(ended) => ended,
            None => {
                let parent = graph.parent(at)?;
                if parent == block {
                    return Some(at);
                }
                parent
            }
        };
        at = graph.owner(parent)?;
    }
}

/// What holds a value while code is made.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Holder {
    Nothing,
    Register(Register),
    Constant(u32),
}

pub(super) struct Compiler<'a> {
    pub(super) context: Context<'a>,
    pub(super) graph: &'a Graph,
    deaths: HashMap<OpId, Vec<Death>>,
    places: Vec<Holder>,
    /// Registers whose values are gone.
    free: Vec<Register>,
    /// Registers that stay occupied though the value in them is gone: those that loops carry.
    reserved: HashSet<Register>,
    /// The op that steps are made for.
    op: u32,
    /// Whether it is the code of a block that its op runs.
    is_part: bool,
    /// See [`Step`].
    nested: bool,
    anchored: bool,
    /// How many blocks stand around.
    level: usize,
    /// What may be the same object, once a group asked; None within where nothing writes.
    aliases: Option<Option<AliasDb>>,
    pub(super) code: Code,
}

impl Compiler<'_> {
    fn block(&mut self, block: BlockId, depth: usize) -> Result<()> {
        let mut next = self.graph.first_op(block);
        let outermost = block == self.graph.root();
        while let Some(op) = next {
            if outermost {
                self.anchored = self.graph.result_count(op) > 0;
            }
            self.nested = !outermost;
            let around = std::mem::replace(&mut self.op, op.index() as u32);
            self.op(op, depth).map_err(|d| d.at_opt(self.span(op).as_ref()))?;
            self.op = around;
            next = self.graph.next(op);
        }
        Ok(())
    }

    fn op(&mut self, op: OpId, depth: usize) -> Result<()> {
        let kind = self.graph.kind(op);
        let action = match kind.as_str() {
            "prim::Constant" => return self.constant(op),
            "prim::Uninitialized" => {
                (0..self.graph.result_count(op)).for_each(|n| self.hold_result(op, n, Value::Uninitialized));
                return Ok(());
            }
            profiling::BAILOUT_TEMPLATE => return self.hold_constant(op, Value::Int(1)),
            profiling::BAILOUT => return self.bailout(op),
            "prim::If" => return self.condition(op, depth),
            "prim::Loop" => return self.loop_op(op, depth),
            "prim::CallFunction" => Action::CallFunction,
            "prim::CallMethod" => Action::CallMethod(self.name_attr(op)?),
            "prim::Enter" => Action::Enter,
            "prim::Exit" => Action::Exit,
            "prim::isinstance" => Action::IsInstance(self.types_attr(op)?),
            "prim::fork" | "prim::awaitable" => self.fork(op, depth, kind == "prim::fork")?,
            _ => match self.graph.attr(op, "Subgraph").and_then(Attr::as_graph) {
                Some(graph) if fusion::is_group(kind) => {
                    let parts = self.without_rows(graph)?;
                    let mut code = compile_graph(self.inner_context(), &parts, "", depth + 1)?;
                    self.take_guards(&mut code);
                    if !Arc::ptr_eq(&parts, graph) {
                        // It is gone when the code runs.
                        code.graph = None;
                    }
                    let code = Arc::new(code);
                    let counters = Arc::clone(self.context.fusion);
                    let group = FusedGroup::new(Arc::clone(graph), self.context.backend()?, counters);
                    let lowered = Lowered::of(self.graph, op, self.context.module)?;
                    let group = Arc::new(group.lowered(lowered));
                    let written = self.is_written(op);
                    let derivatives = Arc::new(Derivatives::new(Arc::clone(graph), written));
                    Action::Fused { graph: Arc::clone(graph), group, code, derivatives }
                }
                Some(graph) => Action::Call(self.nested_code(graph, kind.base(), depth)?),
                None => match self.bind(op) {
                    Ok(bound) if bound.op.def().region.is_some() => return self.regions(op, bound, depth),
                    Ok(bound) if GuardKind::asked_by(kind).is_some() => self.check(op, bound),
                    Ok(bound) => match Arithmetic::of(bound.op.schema_text()) {
                        Some(number) => Action::Number(number, Box::new(bound)),
                        None => op_action(&self.context, bound),
                    },
                    // What is never reached need not exist.
                    Err(error) if error.kind() == ErrorKind::Unsupported => Action::Missing(Box::new(error)),
                    Err(error) => return Err(error),
                },
            },
        };
        self.simple(op, action)
    }

    /// Whether something in the graph may write to operands of an op.
    fn is_written(&mut self, op: OpId) -> bool {
        let (registry, graph) = (self.context.registry, self.graph);
        let aliases = self.aliases.get_or_insert_with(|| {
            let writes = graph.all_ops().into_iter().any(|op| facts(registry, graph, op).writes);
            writes.then(|| AliasDb::new(registry, None, graph))
        });
        let written =
            |aliases: &AliasDb| graph.operands(op).iter().any(|operand| aliases.has_writers(*operand));
        aliases.as_ref().is_some_and(written)
    }

    /// An op without blocks of its own.
    fn simple(&mut self, op: OpId, mut action: Action) -> Result<()> {
        let mut operands = self.operands(op)?;
        if let Action::Op(bound) = &mut action {
            self.number_for_constant(op, bound, &mut operands);
            if let Some(results) = self.packed(bound, &operands) {
                results.into_iter().enumerate().for_each(|(n, value)| self.hold_result(op, n, value));
                return Ok(());
            }
        }
        self.bury(op);
        let mut results = Vec::with_capacity(self.graph.result_count(op));
        for result in self.graph.results(op) {
            results.push(self.define(result)?);
        }
        self.push(action, operands, results, self.graph.location_id(op));
        Ok(())
    }

    /// What an op that prepares constants gives, where it is to run now. One that fails does so when the code runs.
    fn packed(&self, bound: &Bound, operands: &[Operand]) -> Option<Outputs> {
        let packs = self.context.packs.filter(|_| bound.op.def().facts.contains(&Fact::Packs))?;
        let constant = |operand: &Operand| match operand {
            Operand::Constant(index) => self.code.constants.get(*index as usize).cloned(),
            Operand::Keep(_) | Operand::Take(_) => None,
        };
        let values = operands.iter().map(constant).collect::<Option<Vec<Value>>>()?;
        packs.results(bound, &values)
    }

    fn bind(&self, op: OpId) -> Result<Bound> {
        let row = resolve(self.context.registry, self.graph, op)?;
        let schema = row.schema()?;
        let (returned, wanted) = (schema.returns.len(), self.graph.result_count(op));
        if !schema.is_varret && returned != wanted {
            let message = format!("{} has {returned} results, not {wanted}", self.graph.kind(op));
            return Err(Diagnostic::verify(message).note(format!("its schema is {}", row.schema_text())));
        }
        let result_types = self.graph.results(op).iter().map(|v| self.graph.ty(*v).clone()).collect();
        Ok(Bound { op: row, attrs: self.graph.attrs(op).to_vec(), result_types })
    }

    /// A constant tensor of rank 0 as second operand of arithmetic counts as a number: its dtype does not promote.
    /// Traces record the program's numbers as such tensors, and PyTorch's executor takes them back.
    fn number_for_constant(&mut self, op: OpId, bound: &mut Bound, operands: &mut [Operand]) {
        if !bound.op.def().facts.contains(&Fact::ConstantIsNumber) || bound.op.variant() != Variant::Plain {
            return;
        }
        let Some(made) = self.graph.operand(op, 1).and_then(|value| self.graph.def_op(value)) else { return };
        let is_constant = self.graph.kind(made) == "prim::Constant" && operands.len() > 1;
        let number = constant::number(self.graph.attrs(made), None).filter(|_| is_constant);
        let overload = self.context.registry.find(bound.op.name().as_str(), "Scalar");
        if let (Some(number), Some(overload)) = (number, overload) {
            bound.op = overload.clone();
            operands[1] = Operand::Constant(self.code.constants.len() as u32);
            self.code.constants.push(Value::from(number));
        }
    }

    fn constant(&mut self, op: OpId) -> Result<()> {
        let ty = self.graph.result(op, 0).map(|v| self.graph.ty(v).clone());
        let value = self.context.constants.value(self.graph.attrs(op), ty.as_ref())?;
        self.hold_constant(op, value)
    }

    fn hold_constant(&mut self, op: OpId, value: Value) -> Result<()> {
        self.hold_result(op, 0, value);
        Ok(())
    }

    /// Makes a constant of a result.
    fn hold_result(&mut self, op: OpId, n: usize, value: Value) {
        let index = self.code.constants.len() as u32;
        self.code.constants.push(value);
        if let Some(result) = self.graph.result(op, n) {
            self.places[result.index()] = Holder::Constant(index);
        }
    }

    fn name_attr(&self, op: OpId) -> Result<Symbol> {
        let name = self.graph.attr(op, "name").and_then(Attr::as_str);
        name.map(Symbol::new).ok_or_else(|| {
            Diagnostic::verify(format!("{} needs an attribute 'name' that is text", self.graph.kind(op)))
        })
    }

    fn types_attr(&self, op: OpId) -> Result<Box<[Type]>> {
        match self.graph.attr(op, "types") {
            Some(Attr::Types(types)) => Ok(types.iter().cloned().collect()),
            Some(Attr::Type(ty)) => Ok(Box::new([ty.clone()])),
            _ => Err(Diagnostic::verify("prim::isinstance needs an attribute 'types' that lists types")),
        }
    }

    fn fork(&mut self, op: OpId, depth: usize, eager: bool) -> Result<Action> {
        let kind = self.graph.kind(op);
        let graph = self.graph.attr(op, "Subgraph").and_then(Attr::as_graph).ok_or_else(|| {
            Diagnostic::verify(format!("{kind} needs an attribute 'Subgraph' that is a graph"))
        })?;
        let name = if eager { "<forked function>" } else { "<await function>" };
        let result = self.graph.result(op, 0).and_then(|v| self.graph.ty(v).element().cloned());
        let code = self.nested_code(graph, name, depth)?;
        Ok(Action::Fork { code, element: result.unwrap_or_else(Type::any), eager })
    }

    /// The work of a group as it is done where the group cannot run as one: where it combines rows, what is
    /// elementwise in it stays fused.
    fn without_rows(&self, graph: &Arc<Graph>) -> Result<Arc<Graph>> {
        let registry = self.context.registry;
        let along_rows = |op: OpId| {
            graph.kind(op) == *fusion::sums::BLOCK_SUMS
                || registry.overloads(graph.kind(op)).iter().any(|row| row.def().rows.is_some())
        };
        if !graph.block_ops(graph.root()).any(along_rows) {
            return Ok(Arc::clone(graph));
        }
        let mut parts = Graph::clone(graph);
        passes::fuse_elementwise(&mut parts, &passes::Context::new(registry, &Module::default()))?;
        Ok(Arc::new(parts))
    }

    fn nested_code(&mut self, graph: &Graph, name: &str, depth: usize) -> Result<Arc<Code>> {
        if depth >= MAX_DEPTH {
            return Err(Diagnostic::unsupported(format!("graphs nested more than {MAX_DEPTH} deep")));
        }
        let mut code = compile_graph(self.inner_context(), graph, name, depth + 1)?;
        self.take_guards(&mut code);
        Ok(Arc::new(code))
    }

    /// An op whose row runs its blocks. Each block becomes code of its own, whose parameters are the values around it that it uses
    /// and then its own.
    fn regions(&mut self, op: OpId, bound: Bound, depth: usize) -> Result<()> {
        if depth >= MAX_DEPTH {
            return Err(Diagnostic::unsupported(format!("blocks nested more than {MAX_DEPTH} deep")));
        }
        let mut operands = self.operands(op)?;
        let mut blocks = Vec::new();
        for block in self.graph.nested_blocks(op) {
            let outer = captured(self.graph, *block);
            for value in &outer {
                operands.push(self.holder(op, *value)?);
            }
            let (context, part) = (self.inner_context(), (*block, &outer[..]));
            let mut code = compile_block(context, self.graph, part, bound.op.name().base(), depth + 1)?;
            self.take_guards(&mut code);
            blocks.push(RegionCode { code: Arc::new(code), captured: outer.len() });
        }
        self.bury_direct(op);
        let mut results = Vec::with_capacity(self.graph.result_count(op));
        for result in self.graph.results(op) {
            results.push(self.define(result)?);
        }
        let action = Action::Regions { bound: Box::new(bound), blocks: blocks.into() };
        self.push(action, operands, results, self.graph.location_id(op));
        self.drop_nested(op);
        Ok(())
    }

    /// Where a value is, to be kept there.
    pub(super) fn holder(&self, op: OpId, value: ValueId) -> Result<Operand> {
        match self.places[value.index()] {
            Holder::Constant(index) => Ok(Operand::Constant(index)),
            Holder::Register(register) => Ok(Operand::Keep(register)),
            Holder::Nothing => Err(Diagnostic::verify(format!(
                "{} uses %{} before it is defined",
                self.graph.kind(op),
                self.graph.display_name(value)
            ))),
        }
    }

    // --- registers ---

    fn allocate(&mut self) -> Register {
        self.free.pop().unwrap_or_else(|| {
            self.code.registers += 1;
            self.code.registers as Register - 1
        })
    }

    /// Gives a value a register, unless it is unused.
    fn define(&mut self, value: ValueId) -> Result<Register> {
        if !self.graph.has_uses(value) {
            return Ok(NOWHERE);
        }
        let register = self.allocate();
        self.places[value.index()] = Holder::Register(register);
        Ok(register)
    }

    fn release(&mut self, value: ValueId) {
        if let Holder::Register(register) = self.places[value.index()]
            && !self.reserved.contains(&register)
        {
            self.free.push(register);
        }
    }

    /// Operands of an op; the last occurrence of a value that dies here is taken.
    fn operands(&self, op: OpId) -> Result<Vec<Operand>> {
        let values = self.graph.operands(op);
        let dying = self.deaths.get(&op).map_or(&[][..], Vec::as_slice);
        let takes = |n: usize, value: ValueId| {
            dying.iter().any(|d| d.value == value && !d.nested) && !values[n + 1..].contains(&value)
        };
        let operand = |(n, value): (usize, &ValueId)| match self.places[value.index()] {
            Holder::Register(register) if takes(n, *value) => Ok(Operand::Take(register)),
            _ => self.holder(op, *value),
        };
        values.iter().enumerate().map(operand).collect()
    }

    fn block_results(&mut self, block: BlockId) -> Result<Vec<Operand>> {
        let end = self.graph.terminator(block);
        let operands = self.operands(end)?;
        self.bury(end);
        Ok(operands)
    }

    /// Gives back the registers of the values that die at an op.
    fn bury(&mut self, op: OpId) {
        for death in self.deaths.get(&op).cloned().unwrap_or_default() {
            self.release(death.value);
        }
    }

    /// Gives back those that the op takes itself; the others live until its blocks are done.
    fn bury_direct(&mut self, op: OpId) {
        for death in self.deaths.get(&op).cloned().unwrap_or_default() {
            if !death.nested {
                self.release(death.value);
            }
        }
    }

    /// Drops values whose last uses lie in the op's blocks.
    fn drop_nested(&mut self, op: OpId) {
        let nested = self.deaths.get(&op).cloned().unwrap_or_default();
        let mut operands = Vec::new();
        for death in nested.iter().filter(|d| d.nested) {
            if let Holder::Register(register) = self.places[death.value.index()]
                && !self.reserved.contains(&register)
            {
                operands.push(Operand::Take(register));
                self.free.push(register);
            }
        }
        let nowhere = vec![NOWHERE; operands.len()];
        self.push_move(operands, nowhere);
    }

    // --- steps ---

    fn push(&mut self, action: Action, operands: Vec<Operand>, results: Vec<Register>, location: LocationId) {
        if !location.is_unknown() && !self.code.sites.contains_key(&location) {
            self.code.sites.insert(location, site(self.graph, location));
        }
        self.code.steps.push(Step {
            action,
            operands: operands.into(),
            results: results.into(),
            location,
            op: self.op,
            nested: self.nested,
            anchored: self.anchored,
        });
    }

    fn push_move(&mut self, operands: Vec<Operand>, results: Vec<Register>) {
        let overwritten = |n: usize, operand: &Operand| match operand {
            Operand::Keep(register) | Operand::Take(register) => results[..n].contains(register),
            Operand::Constant(_) => false,
        };
        let each = !operands.iter().enumerate().any(|(n, operand)| overwritten(n, operand));
        if !operands.is_empty() {
            let action = if each { Action::MoveEach } else { Action::Move };
            self.push(action, operands, results, LocationId::UNKNOWN);
        }
    }

    fn span(&self, op: OpId) -> Option<Span> {
        span_of(self.graph, self.graph.location_id(op))
    }
}

/// What a step does with an op: by its row, or by a library of the device first.
fn op_action(context: &Context<'_>, bound: Bound) -> Action {
    match context.backend.and_then(|backend| backend.library(&bound.op)) {
        Some(library) => Action::Library(Box::new(bound), library),
        None => Action::Op(Box::new(bound)),
    }
}

/// The values that a block uses, itself or in nested blocks, and that are defined outside of it; in order of their first use.
fn captured(graph: &Graph, block: BlockId) -> Vec<ValueId> {
    let (mut used, mut defined) = (IndexSet::new(), IndexSet::new());
    let mut blocks = vec![block];
    while let Some(block) = blocks.pop() {
        defined.extend(graph.params(block).iter().copied());
        for op in graph.block_ops(block).chain([graph.terminator(block)]) {
            used.extend(graph.operands(op).iter().copied());
            defined.extend(graph.results(op));
            blocks.extend_from_slice(graph.nested_blocks(op));
        }
    }
    used.into_iter().filter(|value: &ValueId| !defined.contains(value)).collect()
}
