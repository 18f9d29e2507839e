//! Linear code: what the interpreter runs. A graph's tree of blocks becomes a list of steps over registers;
//! conditions and loops become jumps; the last use of a register moves its value out, so that memory is given
//! back as early as possible. Overloads are chosen here, once.

mod bailouts;
mod blocks;
mod guards;
mod listing;
mod sites;

use super::arithmetic::Arithmetic;
use super::checks::{Check, ForcedFrom};
use super::constants::Constants;
use super::derivatives::Derivatives;
use super::device;
use super::loops::CompiledLoop;
use super::packed::Packed;
use super::regions::{self, RegionCode};
use crate::analysis::{AliasDb, facts};
use crate::backends::{self, Backend, FusedGroup, FusionCounters, LibraryOp};
use crate::diag::{Diagnostic, ErrorKind, Result, Span};
use crate::dialects::prim::{constant, profiling};
use crate::dialects::{Fact, GraphId, Node, Op, Outputs, Registry, Variant, fusion, loops, resolve};
use crate::ir::{Attr, BlockId, Graph, LocationId, Module, OpId, Symbol, Type, ValueId};
use crate::lowering::Lowered;
use crate::passes::{self, manager::Limits};
use crate::value::Value;
use hashbrown::{HashMap, HashSet};
pub(super) use sites::{shown_line, span};
use sites::{site, span_of};
use std::sync::Arc;

pub(super) use bailouts::Continuation;

/// Graphs nested deeper are refused: each runs within a call of the one around it.
const MAX_DEPTH: usize = 400;

/// A register of a frame.
pub(super) type Register = u32;

/// The op of a step that was made for none: the return from a function.
pub(super) const NO_OP: u32 = u32::MAX;

/// The destination of unused results.
pub(super) const NOWHERE: Register = u32::MAX;

/// Where a step takes an operand from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Operand {
    /// A register that is used again.
    Keep(Register),
    /// A register whose last use this is.
    Take(Register),
    /// A constant of the code.
    Constant(u32),
}

/// One step.
pub(super) struct Step {
    pub(super) action: Action,
    pub(super) operands: Box<[Operand]>,
    pub(super) results: Box<[Register]>,
    pub(super) location: LocationId,
    /// The op that it was made for, by its index in the graph.
    pub(super) op: u32,
    /// Whether the op stands in a block of another op.
    pub(super) nested: bool,
    /// Whether the op, or the op of the outermost block that contains it, has results.
    pub(super) anchored: bool,
}

/// What a step does with its operands.
pub(super) enum Action {
    /// Calls an op by its row.
    Op(Box<Bound>),
    /// The same where a library of the device may have the op: what that refuses goes to the row.
    Library(Box<Bound>, Arc<dyn LibraryOp>),
    /// Does arithmetic on numbers in registers; what is not plain there goes to the row.
    Number(Arithmetic, Box<Bound>),
    /// Fails: there is no such op.
    Missing(Box<Diagnostic>),
    /// Copies operands to results, all at once.
    Move,
    /// Copies operands to results one after the other: no result is the register of a later operand.
    MoveEach,
    /// Goes to another step.
    Jump(usize),
    /// Goes to another step if the operand is false.
    JumpUnless(usize),
    /// Calls an op that says whether its operands are as its attributes say; its last result is the answer.
    Check(Box<Bound>, Arc<Check>),
    /// Goes to another step if the operand has a type.
    JumpIfOf(Type, usize, Arc<Check>),
    /// Leaves the function: it goes on as other code does with the operands.
    GoOn(Box<Continuation>),
    /// Begins an iteration of a loop: operands are the greatest number of iterations and the condition, the result is the
    /// iteration's number, `counter` counts. Leaves the loop by going to `exit`. A kernel may do all iterations that are left.
    Iteration { counter: Register, exit: usize, compiled: Option<Box<CompiledLoop>> },
    /// Runs other code on the operands.
    Call(Arc<Code>),
    /// Runs an op with blocks by its row; after the op's own operands stand those that the blocks use of what surrounds them.
    Regions { bound: Box<Bound>, blocks: Box<[RegionCode]> },
    /// Runs a fusion group as one kernel; what the kernel cannot take is run op by op, by the code.
    Fused { graph: Arc<Graph>, group: Arc<FusedGroup>, code: Arc<Code>, derivatives: Arc<Derivatives> },
    /// Runs a kernel of the `loop` dialect on all parameters; results are the tensors that it stores to.
    Kernel(Box<backends::KernelFunction>),
    /// Calls the function that the first operand names.
    CallFunction,
    /// Calls a method of the object that is the first operand.
    CallMethod(Symbol),
    /// Calls `__enter__` of the operand and remembers to leave it should anything raise.
    Enter,
    /// Calls `__exit__` of the operand.
    Exit,
    /// Gives a future of the code's result; `eager` lets a pool thread begin it.
    Fork { code: Arc<Code>, element: Type, eager: bool },
    /// Whether the operand's run-time type is one of these.
    IsInstance(Box<[Type]>),
    /// Ends the function; the operands are its results.
    Return,
}

/// An op with what its node adds.
pub(super) struct Bound {
    pub(super) op: Op,
    pub(super) attrs: Vec<(Symbol, Attr)>,
    pub(super) result_types: Vec<Type>,
}

impl Bound {
    /// Attributes and result types as kernels see them.
    pub(super) fn node(&self) -> Node<'_> {
        Node { attrs: &self.attrs, result_types: &self.result_types }
    }
}

/// The code of one function or graph.
pub(super) struct Code {
    /// Name that tracebacks show: the last component of the qualified name. Empty for the work of a fusion group, which they do not show.
    pub(super) name: String,
    /// The graph that it was made from; None for one that was made on the way.
    pub(super) graph: Option<GraphId>,
    pub(super) steps: Vec<Step>,
    pub(super) constants: Vec<Value>,
    pub(super) registers: usize,
    /// Registers of the parameters.
    pub(super) parameters: Vec<Register>,
    /// Where steps come from, by location.
    pub(super) sites: HashMap<LocationId, Site>,
    /// Its guards and those of code inside it, by their numbers.
    pub(super) guards: Vec<Arc<Check>>,
}

/// What code is made for.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) registry: &'a Registry,
    /// Where the functions are that ops name.
    pub(super) module: &'a Module,
    pub(super) constants: &'a Constants,
    /// What runs fusion groups; without one, the CPU does.
    pub(super) backend: Option<&'a Arc<dyn Backend>>,
    /// Where fusion groups count what becomes of them.
    pub(super) fusion: &'a Arc<FusionCounters>,
    /// Where ops that prepare constants for others run now, once for all runs of the code; None: they run when it does.
    pub(super) packs: Option<&'a Packed>,
    /// Whether graphs are asked for work that is not fused, and then whether all of their work counts.
    pub(super) strict_fusion: Option<bool>,
    /// How many changes the passes that make plans may make.
    pub(super) limits: &'a Limits,
    /// The guard that is to miss.
    pub(super) forced: Option<ForcedFrom<'a>>,
}

impl Context<'_> {
    pub(super) fn backend(&self) -> Result<Arc<dyn Backend>> {
        self.backend.map_or_else(backends::default_cpu, |backend| Ok(Arc::clone(backend)))
    }
}

/// A place with the calls it was inlined through, innermost first.
#[derive(Clone, Debug, Default)]
pub(super) struct Site {
    pub(super) span: Option<Span>,
    /// Function that the place lies in and place of the call, for each inlined call.
    pub(super) inlined: Vec<(Symbol, Option<Span>)>,
}

impl Code {
    /// Compiles a graph; `name` is the qualified name of its function.
    pub(super) fn compile(context: Context<'_>, graph: &Graph, name: &str) -> Result<Code> {
        compile_graph(context, graph, name, 0)
    }

    /// Where a step comes from.
    pub(super) fn site(&self, step: usize) -> Option<&Site> {
        self.sites.get(&self.steps.get(step)?.location)
    }
}

fn compile_graph(context: Context<'_>, graph: &Graph, name: &str, depth: usize) -> Result<Code> {
    let mut code = match loops::is_kernel(graph) {
        true => super::kernels::code(context, graph, name)?,
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
                    Ok(bound) if guards::kind(kind).is_some() => self.check(op, bound),
                    Ok(bound) => match Arithmetic::of(bound.op.schema_text()) {
                        Some(number) => Action::Number(number, Box::new(bound)),
                        None => device::action(&self.context, bound),
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
            let outer = regions::captured(self.graph, *block);
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
