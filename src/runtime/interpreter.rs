//! The interpreter: runs linear code. Calls push frames on a stack of its own, so that a program's depth is
//! not the machine's; what raises unwinds that stack, leaves every `with` that was entered, and becomes a
//! diagnostic with the chain of calls.

use super::arithmetic::Arithmetic;
use super::code::{Action, Bound, Code, Continuation, Derivatives, NOWHERE, Operand, Register, Step};
use super::inner::{Inner, Origins};
use super::loops::CompiledLoop;
use super::tasks;
use super::traceback;
use crate::backends::FusedGroup;
use crate::diag::{Diagnostic, ErrorKind, Result, Span};
use crate::dialects::prim::instance::is_instance;
use crate::dialects::prim::profiling;
use crate::dialects::{Outputs, Run, Watcher};
use crate::eval;
use crate::ir::Symbol;
use crate::resources::limits;
use crate::tensor::Tensor;
use crate::value::{Future, Object, Value};
use smallvec::SmallVec;
use std::sync::Arc;
use std::time::Instant;

/// Runs steps that need nothing but the registers of their frame, from step `at` on and at most `steps`; gives the first
/// step that needs more.
fn quick(code: &Code, registers: &mut [Value], mut at: usize, steps: &mut u32) -> usize {
    let constants = code.constants.as_slice();
    while *steps > 0
        && let Some(step) = code.steps.get(at)
    {
        *steps -= 1;
        let done = match &step.action {
            Action::Number(op, _) => number(*op, step, registers, constants),
            Action::Jump(to) => {
                at = *to;
                continue;
            }
            Action::JumpUnless(to) => match step.operands.first().and_then(|o| look(o, registers, constants))
            {
                Some(Value::Bool(true)) => Some(()),
                Some(Value::Bool(false)) => {
                    at = *to;
                    continue;
                }
                _ => None,
            },
            Action::MoveEach => move_each(step, registers, constants),
            Action::Iteration { counter, exit, compiled } => {
                match begin_iteration(step, *counter, registers, constants, compiled.as_deref()) {
                    Some(false) => {
                        at = *exit;
                        continue;
                    }
                    result => result.map(|_| ()),
                }
            }
            _ => None,
        };
        if done.is_none() {
            // It will be counted where it is run.
            *steps += 1;
            break;
        }
        at += 1;
    }
    at
}

/// The value of an operand where it is.
#[inline(always)]
fn look<'a>(operand: &Operand, registers: &'a [Value], constants: &'a [Value]) -> Option<&'a Value> {
    match operand {
        Operand::Keep(register) | Operand::Take(register) => registers.get(*register as usize),
        Operand::Constant(index) => constants.get(*index as usize),
    }
}

/// Arithmetic in registers; None, with nothing done, where the row is to be asked.
#[inline(always)]
fn number(op: Arithmetic, step: &Step, registers: &mut [Value], constants: &[Value]) -> Option<()> {
    let first = look(step.operands.first()?, registers, constants)?;
    let second = match step.operands.get(1) {
        Some(operand) => look(operand, registers, constants)?,
        None => first,
    };
    let value = op.apply(first, second)?;
    if let Some(slot) = registers.get_mut(*step.results.first()? as usize) {
        *slot = value;
    }
    Some(())
}

fn move_each(step: &Step, registers: &mut [Value], constants: &[Value]) -> Option<()> {
    for (operand, result) in step.operands.iter().zip(&step.results) {
        let value = match operand {
            Operand::Take(register) => std::mem::take(registers.get_mut(*register as usize)?),
            operand => look(operand, registers, constants)?.clone(),
        };
        if let Some(slot) = registers.get_mut(*result as usize) {
            *slot = value;
        }
    }
    Some(())
}

/// Begins an iteration of a loop (true) or finds that there is none (false); None where the condition is not a plain truth
/// value, or where a kernel may do the iterations that are left.
#[inline(always)]
fn begin_iteration(
    step: &Step,
    counter: Register,
    registers: &mut [Value],
    constants: &[Value],
    compiled: Option<&CompiledLoop>,
) -> Option<bool> {
    let most = look(step.operands.first()?, registers, constants)?;
    let goes_on = look(step.operands.get(1)?, registers, constants)?;
    let (Value::Int(most), Value::Bool(goes_on)) = (most, goes_on) else { return None };
    let (most, goes_on) = (*most, *goes_on);
    let Some(Value::Int(iteration)) = registers.get_mut(counter as usize) else { return None };
    let now = *iteration;
    if !goes_on || now >= most {
        return Some(false);
    }
    if compiled.is_some_and(|compiled| now >= compiled.enter_at()) {
        return None;
    }
    *iteration = now + 1;
    if let Some(slot) = registers.get_mut(*step.results.first()? as usize) {
        *slot = Value::Int(now);
    }
    Some(true)
}

/// What stands before the message of a call that its plan refuses as wrong.
const RAISES: &str = "the call raises: ";

/// Steps that a machine takes from its run at a time; so often it sees whether the run must end.
const STEPS: u32 = 1024;

pub(super) type Values = SmallVec<[Value; 6]>;

/// A function that is running.
struct Activation {
    code: Arc<Code>,
    /// The step to run next.
    at: usize,
    /// First of its registers.
    base: usize,
    /// Registers of the caller that take the results.
    results: ResultsTo,
}

/// What happens with the results of a call.
#[derive(Clone)]
enum ResultsTo {
    /// They go to the results of the caller's step.
    Caller,
    /// The call was made for its effect.
    Discard,
}

/// One run of a program.
pub(super) struct Machine<'a> {
    pub(super) program: &'a Arc<Inner>,
    pub(super) run: &'a Run,
    registers: Vec<Value>,
    frames: Vec<Activation>,
    /// Objects whose `with` is open.
    entered: Vec<Object>,
    /// Steps that were taken from the run and not used yet.
    steps: u32,
    /// The observer.
    watcher: Option<Arc<dyn Watcher>>,
}

impl Drop for Machine<'_> {
    fn drop(&mut self) {
        self.run.give_back_steps(self.steps);
    }
}

/// Runs code on arguments, one for each parameter.
pub(super) fn execute(
    program: &Arc<Inner>,
    run: &Run,
    code: Arc<Code>,
    arguments: Vec<Value>,
) -> Result<Vec<Value>> {
    let mut machine = Machine {
        program,
        run,
        registers: Vec::new(),
        frames: Vec::new(),
        entered: Vec::new(),
        steps: 0,
        watcher: run.watcher(),
    };
    let _budget = run.install();
    let _running = tasks::Running::enter()?;
    machine.push(code, arguments, ResultsTo::Caller)?;
    machine.run().map_err(|error| machine.unwind(error))
}

impl Machine<'_> {
    fn run(&mut self) -> Result<Vec<Value>> {
        loop {
            let Some(frame) = self.frames.last_mut() else {
                return Err(Diagnostic::internal("the interpreter ran out of frames"));
            };
            let code = Arc::clone(&frame.code);
            let (base, mut at) = (frame.base, frame.at);
            let depth = self.frames.len();
            // Until a step calls or returns, the code stays the same.
            while self.frames.len() == depth {
                if self.watcher.is_none() {
                    at =
                        quick(&code, self.registers.get_mut(base..).unwrap_or_default(), at, &mut self.steps);
                }
                let Some(step) = code.steps.get(at) else {
                    return Err(Diagnostic::internal("the interpreter ran past the end of the code"));
                };
                self.jump(at + 1);
                self.count_step()?;
                let results = match self.watcher.clone() {
                    None => self.step(step)?,
                    Some(watcher) => self.watched(step, &code, &*watcher)?,
                };
                if let Some(results) = results {
                    return Ok(results);
                }
                if matches!(step.action, Action::GoOn(_)) {
                    break;
                }
                at = self.frames.last().map_or(0, |frame| frame.at);
            }
        }
    }

    /// Counts the step that is about to run. Fails where the run must end.
    fn count_step(&mut self) -> Result<()> {
        if self.steps == 0 {
            self.run.pause()?;
            self.steps = self.run.take_steps(STEPS)?;
        }
        self.steps -= 1;
        Ok(())
    }

    /// Runs one step before a watcher's eyes.
    fn watched(&mut self, step: &Step, code: &Code, watcher: &dyn Watcher) -> Result<Option<Vec<Value>>> {
        let (begin, depth) = (Instant::now(), self.frames.len());
        let done = self.step(step)?;
        if self.frames.len() == depth {
            watcher.ran(code.graph, step.op, &self.results_of(step), begin);
        } else if self.frames.len() < depth {
            watcher.leaves();
            // The call that led here has its results now.
            if let Some(caller) = self.frames.last()
                && let code = Arc::clone(&caller.code)
                && let Some(call) = caller.at.checked_sub(1).and_then(|at| code.steps.get(at))
            {
                watcher.ran(code.graph, call.op, &self.results_of(call), Instant::now());
            }
        }
        Ok(done)
    }

    /// The values that a step of the innermost function gave; None for an unused one.
    fn results_of(&self, step: &Step) -> Values {
        step.results.iter().map(|register| self.read(*register).unwrap_or_default()).collect()
    }

    /// Runs one step; gives results when the outermost function returns.
    fn step(&mut self, step: &Step) -> Result<Option<Vec<Value>>> {
        match &step.action {
            Action::Op(bound) | Action::Number(_, bound) => {
                let operands = self.operands(step);
                let results = self.call_op(bound, &operands)?;
                self.run.ask_host()?;
                drop(operands);
                self.store_all(step, results)?;
            }
            Action::Library(bound, library) => {
                let operands = self.operands(step);
                let results = self.call_library(bound, &**library, &operands)?;
                self.run.ask_host()?;
                drop(operands);
                self.store_all(step, results)?;
            }
            Action::Missing(error) => return Err((**error).clone()),
            Action::Move | Action::MoveEach => {
                let values = self.operands(step);
                self.store_all(step, values)?;
            }
            Action::Jump(to) => self.jump(*to),
            Action::JumpUnless(to) => {
                if !self.operand(step, 0)?.to_bool()? {
                    self.jump(*to);
                }
            }
            Action::Iteration { counter, exit, compiled } => {
                self.iterate(step, *counter, *exit, compiled.as_deref())?
            }
            Action::Check(bound, check) => {
                let operands = self.operands(step);
                let mut results = self.call_op(bound, &operands)?;
                if let Some(answer) = results.last_mut() {
                    let (holds, records) = (answer.to_bool()?, self.run.grad_enabled());
                    *answer =
                        Value::Bool(check.answer(|| holds, || profiling::shown_all(&operands, records)));
                }
                drop(operands);
                self.store_all(step, results)?;
            }
            Action::JumpIfOf(ty, to, check) => {
                let (value, records) = (&self.operand(step, 0)?, self.run.grad_enabled());
                let seen = || profiling::shown(value, records).to_string();
                if check.answer(|| profiling::holds(ty, value, records), seen) {
                    self.jump(*to);
                }
            }
            Action::GoOn(rest) => self.go_on(step, rest)?,
            Action::Call(code) => {
                let operands = self.operands(step).into_vec();
                self.push(Arc::clone(code), operands, ResultsTo::Caller)?;
            }
            Action::Regions { bound, blocks } => {
                let operands = self.operands(step).into_vec();
                let results = self.call_with_regions(bound, blocks, operands)?;
                self.store_all(step, results)?;
            }
            Action::Fused { graph, group, code, derivatives } => {
                let operands = self.operands(step);
                self.run.group_runs(graph, &operands);
                if !group.pays(&operands) {
                    self.push(Arc::clone(code), operands.into_vec(), ResultsTo::Caller)?;
                    return Ok(None);
                }
                match self.fused(group, (derivatives, code), &operands)? {
                    Some(outputs) => {
                        // Kernels leave their loops when the run must end.
                        self.run.pause()?;
                        self.store_all(step, outputs.into_iter().map(Value::Tensor))?;
                    }
                    None => self.push(Arc::clone(code), operands.into_vec(), ResultsTo::Caller)?,
                }
            }
            Action::Kernel(kernel) => {
                let operands = self.operands(step);
                kernel.run(&operands)?;
            }
            Action::CallFunction => {
                let mut operands = self.operands(step).into_vec();
                if operands.is_empty() {
                    return Err(Diagnostic::internal("a call without a function"));
                }
                let code = match operands.remove(0) {
                    Value::Function(name) => self.program.function_code(name)?,
                    other => {
                        return Err(Diagnostic::runtime(format!("{} is not a function", other.kind_name())));
                    }
                };
                self.push(code, operands, ResultsTo::Caller)?;
            }
            Action::CallMethod(name) => {
                let operands = self.operands(step).into_vec();
                let code = self.method(operands.first(), *name)?;
                self.push(code, operands, ResultsTo::Caller)?;
            }
            Action::Enter => {
                let operands = self.operands(step).into_vec();
                let code = self.method(operands.first(), Symbol::new("__enter__"))?;
                if let Some(Value::Object(object)) = operands.first() {
                    self.entered.push(object.clone());
                }
                self.push(code, operands, ResultsTo::Caller)?;
            }
            Action::Exit => {
                let mut operands = self.operands(step).into_vec();
                let code = self.method(operands.first(), Symbol::new("__exit__"))?;
                operands.resize(4, Value::None);
                self.entered.pop();
                let wanted = if step.results.is_empty() { ResultsTo::Discard } else { ResultsTo::Caller };
                self.push(code, operands, wanted)?;
            }
            Action::Fork { code, element, eager } => {
                let operands = self.operands(step).into_vec();
                let (program, run) = (Arc::clone(self.program), self.run.fork());
                let code = Arc::clone(code);
                let task = Box::new(move || {
                    let results = execute(&program, &run, code, operands).map_err(traceback::flatten)?;
                    results.into_iter().next().ok_or_else(|| Diagnostic::internal("a task without a result"))
                });
                let future = Future::with_task(element.clone(), task);
                if *eager {
                    self.run.open_task(&future)?;
                    tasks::start(&future);
                }
                self.store_all(step, [Value::Future(future)])?;
            }
            Action::IsInstance(types) => {
                let value = self.operand(step, 0)?;
                let yes = types.iter().any(|ty| is_instance(&value, ty, &self.program.module));
                self.store_all(step, [Value::Bool(yes)])?;
            }
            Action::Return => return self.leave(step),
        }
        Ok(None)
    }

    /// Runs a group fused. None, with nothing computed, where it runs op by op, which is counted with its reason: where the
    /// backward of what requires grad is not compiled, ops are recorded one by one, what cannot be fused is refused, and a call that
    /// is wrong raises PyTorch's error there. Any other error is a failure of the backend, and an error of the run.
    fn fused(
        &self,
        group: &FusedGroup,
        (derivatives, code): (&Arc<Derivatives>, &Arc<Code>),
        operands: &[Value],
    ) -> Result<Option<SmallVec<[Tensor; 2]>>> {
        let requires_grad = |v: &Value| matches!(v, Value::Tensor(t) if t.requires_grad());
        let mut recorded = None;
        if self.run.grad_enabled() && operands.iter().any(requires_grad) {
            if group.writes() {
                group.runs_op_by_op("it writes to a tensor, which is recorded op by op");
                return Ok(None);
            }
            let Some(autograd) = self.run.autograd() else {
                return Err(Diagnostic::internal("an input requires grad and nothing records operations"));
            };
            match derivatives.region(self.program, code, operands, self.run)? {
                Ok(region) => recorded = Some((autograd, region)),
                Err(reason) => {
                    group.runs_op_by_op(&reason);
                    return Ok(None);
                }
            }
        }
        match group.prepare(operands, &self.program.registry) {
            Ok(prepared) => {
                let outputs = prepared.run()?;
                if let Some((autograd, region)) = recorded {
                    autograd.region(region, operands, &outputs, self.run)?;
                    self.run.place_recorded(|| self.place());
                }
                Ok(Some(outputs))
            }
            Err(error) if error.kind() == ErrorKind::Unsupported => {
                group.runs_op_by_op(error.message());
                Ok(None)
            }
            Err(error) if error.kind() == ErrorKind::Raised => {
                group.runs_op_by_op(&format!("{RAISES}{}", error.message()));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn call_op(&self, bound: &Bound, operands: &[Value]) -> Result<Outputs> {
        let away = self.away(operands);
        let results = eval::call(&bound.op, operands, bound.node(), self.run)?;
        self.run.place_recorded(|| self.place());
        self.count_brought_home(bound, operands, away);
        Ok(results)
    }

    /// The place in source of the step that runs; None within meanings of ops, which say nothing to users.
    fn place(&self) -> Option<Span> {
        let frame = self.frames.last()?;
        let span = frame.code.site(frame.at.checked_sub(1)?)?.span.clone()?;
        (!span.source().name().starts_with("<the ")).then_some(span)
    }

    /// Whether there is an observer of ops.
    pub(super) fn is_watched(&self) -> bool {
        self.watcher.is_some()
    }

    /// The value of an operand, which stays where it is.
    pub(super) fn look(&self, operand: &Operand) -> Result<Value> {
        match operand {
            Operand::Keep(register) | Operand::Take(register) => self.read(*register),
            Operand::Constant(index) => {
                let code = self.frames.last().map(|frame| &frame.code);
                let value = code.and_then(|code| code.constants.get(*index as usize));
                value.cloned().ok_or_else(|| Diagnostic::internal("a constant out of range"))
            }
        }
    }

    /// Ends the innermost function and begins what it goes on as, in its place.
    fn go_on(&mut self, step: &Step, rest: &Continuation) -> Result<()> {
        let operands = self.operands(step).into_vec();
        let Some(ended) = self.frames.pop() else {
            return Err(Diagnostic::internal("a bailout without a call"));
        };
        self.registers.truncate(ended.base);
        if let Some(watcher) = &self.watcher {
            watcher.leaves();
        }
        let code = rest.code(self.program.code_context(), &ended.code.name)?;
        self.push(code, operands, ended.results)
    }

    /// Ends the innermost function.
    fn leave(&mut self, step: &Step) -> Result<Option<Vec<Value>>> {
        let results = self.operands(step);
        let Some(ended) = self.frames.pop() else {
            return Err(Diagnostic::internal("a return without a call"));
        };
        self.registers.truncate(ended.base);
        let Some(caller) = self.frames.last() else {
            return Ok(Some(results.into_vec()));
        };
        match ended.results {
            ResultsTo::Discard => {}
            ResultsTo::Caller => {
                let code = Arc::clone(&caller.code);
                if let Some(call) = caller.at.checked_sub(1).and_then(|at| code.steps.get(at)) {
                    self.store_all(call, results)?;
                }
            }
        }
        Ok(None)
    }

    fn method(&self, receiver: Option<&Value>, name: Symbol) -> Result<Arc<Code>> {
        match receiver {
            Some(Value::Object(object)) => self.program.method_code(object.class(), name),
            Some(other) => Err(Diagnostic::runtime(format!("{} has no method '{name}'", other.kind_name()))),
            None => Err(Diagnostic::internal("a method call without an object")),
        }
    }

    fn push(&mut self, code: Arc<Code>, arguments: Vec<Value>, results: ResultsTo) -> Result<()> {
        let depth = self.run.limits().depth;
        if self.frames.len() >= depth {
            return Err(limits::too_deep(depth, &code.name));
        }
        if arguments.len() != code.parameters.len() {
            return Err(Diagnostic::runtime(format!(
                "'{}' takes {} arguments but was called with {}",
                code.name,
                code.parameters.len(),
                arguments.len()
            )));
        }
        if let Some(watcher) = &self.watcher {
            let caller = self.frames.last().and_then(|f| f.code.steps.get(f.at.checked_sub(1)?));
            watcher.enters(code.graph, caller.map(|step| step.op), &arguments);
        }
        let base = self.registers.len();
        self.registers.resize(base + code.registers, Value::None);
        for (register, value) in code.parameters.iter().zip(arguments) {
            if let Some(slot) = self.registers.get_mut(base.saturating_add(*register as usize)) {
                *slot = value;
            }
        }
        self.frames.push(Activation { code, at: 0, base, results });
        Ok(())
    }

    pub(super) fn jump(&mut self, to: usize) {
        if let Some(frame) = self.frames.last_mut() {
            frame.at = to;
        }
    }

    // --- registers ---

    /// All operands of a step; those whose last use this is are moved out.
    fn operands(&mut self, step: &Step) -> Values {
        let Some(frame) = self.frames.last() else { return Values::new() };
        let (base, code) = (frame.base, &frame.code);
        let registers = &mut self.registers;
        let take = |operand: &Operand| match operand {
            Operand::Keep(register) => registers.get(base + *register as usize).cloned().unwrap_or_default(),
            Operand::Take(register) => {
                registers.get_mut(base + *register as usize).map(std::mem::take).unwrap_or_default()
            }
            Operand::Constant(index) => code.constants.get(*index as usize).cloned().unwrap_or_default(),
        };
        step.operands.iter().map(take).collect()
    }

    pub(super) fn operand(&mut self, step: &Step, n: usize) -> Result<Value> {
        self.operands(step).into_iter().nth(n).ok_or_else(|| Diagnostic::internal("a step lacks an operand"))
    }

    pub(super) fn read(&self, register: Register) -> Result<Value> {
        let base = self.frames.last().map_or(0, |f| f.base);
        let value = self.registers.get(base.saturating_add(register as usize)).cloned();
        value.ok_or_else(|| Diagnostic::internal("a register out of range"))
    }

    pub(super) fn write(&mut self, register: Register, value: Value) -> Result<()> {
        if register == NOWHERE {
            return Ok(());
        }
        let base = self.frames.last().map_or(0, |f| f.base);
        match self.registers.get_mut(base + register as usize) {
            Some(slot) => *slot = value,
            None => return Err(Diagnostic::internal("a register out of range")),
        }
        Ok(())
    }

    pub(super) fn store_all(&mut self, step: &Step, values: impl IntoIterator<Item = Value>) -> Result<()> {
        let mut values = values.into_iter();
        for register in &step.results {
            match values.next() {
                Some(value) => self.write(*register, value)?,
                None if *register == NOWHERE => {}
                None => return Err(Diagnostic::internal("an op gave fewer results than its node has")),
            }
        }
        Ok(())
    }

    // --- raising ---

    /// Leaves what was entered and adds the chain of calls to an error.
    fn unwind(&mut self, mut error: Diagnostic) -> Diagnostic {
        self.leave_entered();
        if error.report().frames.is_empty() {
            // A limit may be reached between ops that have places.
            let places = self.places(error.kind() == ErrorKind::Limit);
            if let Some(origins) = self.program.origins.get() {
                error = with_origins(error, &places, origins);
            }
            let mut places = places.into_iter();
            if let Some((function, span)) = places.next() {
                error = error.at_opt(span.as_ref()).frame(function, None);
            }
            for (function, span) in places {
                error = error.frame(function, span);
            }
        }
        self.frames.clear();
        self.registers.clear();
        error
    }

    /// Functions and places of the chain of calls, innermost first, inlined calls included. With `nearby`, where the innermost
    /// step has no place it is that of the nearest step before that has one.
    ///
    /// PyTorch inlines all calls and forgets the call for ops that have no results (`raise`, or an `if` that only
    /// raises) and stand in the callee's outermost block; the place then counts as one of the caller. Users
    /// compare tracebacks, so calls that it forgets are left out here too.
    fn places(&self, nearby: bool) -> Vec<(String, Option<Span>)> {
        let mut out = Vec::new();
        let mut remembered = true;
        // The place of the op, or of the call whose callee's frames have been written.
        let mut place: Option<Option<Span>> = None;
        for (n, frame) in self.frames.iter().rev().enumerate() {
            let at = frame.at.checked_sub(1);
            let site = at.and_then(|at| frame.code.site(at));
            let mut span = match place.take() {
                Some(inner) => inner,
                None => site.and_then(|s| s.span.clone()),
            };
            if nearby && n == 0 && span.is_none() {
                span = nearest_span(&frame.code, frame.at);
            }
            for (function, call) in site.map_or(&[][..], |s| &s.inlined) {
                let name = function.as_str();
                out.push((name.rsplit('.').next().unwrap_or(name).to_string(), span));
                span = call.clone();
            }
            if let Some(step) = at.and_then(|at| frame.code.steps.get(at))
                && (n == 0 || step.nested)
            {
                remembered = step.anchored;
            }
            let is_call = !frame.code.name.is_empty();
            if is_call && (remembered || n + 1 == self.frames.len()) {
                out.push((frame.code.name.clone(), span));
            } else if is_call || span.is_some() {
                place = Some(span);
            }
        }
        out
    }

    /// Calls `__exit__` of whatever is entered, innermost first. What these calls raise is lost, as in PyTorch.
    fn leave_entered(&mut self) {
        while let Some(object) = self.entered.pop() {
            if let Ok(code) = self.program.method_code(object.class(), Symbol::new("__exit__")) {
                let arguments = vec![Value::Object(object), Value::None, Value::None, Value::None];
                let _ = execute(self.program, self.run, code, arguments);
            }
        }
    }
}

/// The place of the last step before `at` that has one, or else of the first step after it.
fn nearest_span(code: &Code, at: usize) -> Option<Span> {
    let span = |step: usize| code.site(step).and_then(|site| site.span.clone());
    (0..at).rev().find_map(span).or_else(|| (at..code.steps.len()).find_map(span))
}

/// Adds a label for each place: where the code there was generated from, or the place itself.
fn with_origins(mut error: Diagnostic, places: &[(String, Option<Span>)], origins: &Origins) -> Diagnostic {
    let found: Vec<Option<Span>> = places.iter().map(|(_, span)| span.as_ref().and_then(origins)).collect();
    if found.iter().all(Option::is_none) {
        return error;
    }
    for ((function, span), origin) in places.iter().zip(found) {
        if let Some(span) = origin.or_else(|| span.clone()) {
            error = error.label(&span, format!("{}{function}", traceback::ORIGINAL));
        }
    }
    error
}

#[cfg(test)]
mod tests {
    use crate::dialects::{Registry, Run};
    use crate::ir::{Attr, Graph, Symbol, Type, ValueId};
    use crate::runtime::run_graph;
    use crate::value::Value;

    fn constant(graph: &mut Graph, ty: Type, attr: Attr) -> ValueId {
        let op = graph.emit(graph.root(), Symbol::new("prim::Constant"), &[], &[ty]);
        graph.set_attr(op, "value", attr);
        graph.result(op, 0).expect("one result")
    }

    /// A loop of `n` iterations that swaps two values and makes tuples of them.
    #[test]
    fn loops_carry_values_and_conditions_choose() {
        let mut g = Graph::new();
        let (n, flag) = (g.add_input(Type::int()), g.add_input(Type::bool()));
        let yes = constant(&mut g, Type::bool(), Attr::Int(1));
        let a = constant(&mut g, Type::str(), Attr::Str("a".into()));
        let b = constant(&mut g, Type::str(), Attr::Str("b".into()));
        let loop_op =
            g.emit(g.root(), Symbol::new("prim::Loop"), &[n, yes, a, b], &[Type::str(), Type::str()]);
        let body = g.add_block(loop_op);
        let _iteration = g.add_param(body, Type::int());
        let (x, y) = (g.add_param(body, Type::str()), g.add_param(body, Type::str()));
        g.set_block_results(body, &[yes, y, x]);
        let (x, y) = (g.result(loop_op, 0).expect("x"), g.result(loop_op, 1).expect("y"));
        let choice = g.emit(g.root(), Symbol::new("prim::If"), &[flag], &[Type::str()]);
        let (on_true, on_false) = (g.add_block(choice), g.add_block(choice));
        g.set_block_results(on_true, &[x]);
        g.set_block_results(on_false, &[y]);
        let chosen = g.result(choice, 0).expect("chosen");
        let ty = Type::tuple([Type::str(), Type::str()]);
        let pair = g.emit(g.root(), Symbol::new("prim::TupleConstruct"), &[chosen, x], &[ty]);
        let out = g.result(pair, 0).expect("pair");
        g.add_output(out);
        let run = Run::default();
        for (n, flag, expected) in [(0, true, "(a, a)"), (3, true, "(b, b)"), (3, false, "(a, b)")] {
            let results = run_graph(&Registry::builtin(), &g, vec![Value::Int(n), Value::Bool(flag)], &run)
                .expect("runs");
            assert_eq!(results[0].to_text(), expected);
        }
    }

    #[test]
    fn what_raises_names_the_operation() {
        let mut g = Graph::new();
        let message = constant(&mut g, Type::str(), Attr::Str("no".into()));
        let class = constant(&mut g, Type::str(), Attr::Str("builtins.ValueError".into()));
        g.emit(g.root(), Symbol::new("prim::RaiseException"), &[message, class], &[]);
        let error = run_graph(&Registry::builtin(), &g, vec![], &Run::default()).expect_err("raises");
        assert_eq!(error.report().class.as_deref(), Some("builtins.ValueError"));
        assert_eq!(error.report().frames.len(), 1);
    }

    #[test]
    fn an_op_that_does_not_exist_is_named() {
        let mut g = Graph::new();
        g.emit(g.root(), Symbol::new("aten::frobnicate"), &[], &[]);
        let error = run_graph(&Registry::builtin(), &g, vec![], &Run::default()).expect_err("unknown");
        assert!(error.message().contains("aten::frobnicate"), "{error}");
    }

    #[test]
    fn forks_are_waited_for() {
        let mut inner = Graph::new();
        let x = inner.add_input(Type::int());
        inner.add_output(x);
        let mut g = Graph::new();
        let n = g.add_input(Type::int());
        let fork = g.emit(g.root(), Symbol::new("prim::fork"), &[n], &[Type::future(Type::int())]);
        g.set_attr(fork, "Subgraph", Attr::Graph(inner.into()));
        let future = g.result(fork, 0).expect("future");
        g.add_output(future);
        let results =
            run_graph(&Registry::builtin(), &g, vec![Value::Int(5)], &Run::default()).expect("runs");
        let Value::Future(future) = &results[0] else { panic!("no future") };
        assert_eq!(future.wait().and_then(|v| v.to_int()).ok(), Some(5));
    }
}
