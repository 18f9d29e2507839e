//! Loops over numbers that run as kernels: when a loop is worth compiling, and how its registers go in and out.
//!
//! A loop begins interpreted. Once it has done enough work it is compiled, and the kernel does the iterations that are left,
//! from the registers as they are. What a kernel leaves undone the interpreter does, from the same registers.

use super::code::{Compiler, Context, Operand, Register, Step};
use super::interpreter::{Machine, Values};
use crate::backends::{self, Backend, RemainingLoop, ScalarKernel};
use crate::diag::{Diagnostic, ErrorKind, Result};
use crate::ir::{Attr, BlockId, Graph, OpId, ValueId};
use crate::lowering::scalars::pass::KERNEL;
use crate::lowering::{Target, scalars};
use crate::value::{List, Value};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Iterations that a loop runs interpreted before it is examined.
const FIRST_LOOK: i64 = 64;
/// The same for a loop that is compiled: a call of a kernel takes as long as a few steps.
const READY: i64 = 4;
/// Steps from which compiling pays: about as long as it takes.
const WORTH: u64 = 400_000;
/// Elements of lists that are copied in the time of an iteration.
const COPIED: usize = 16;

/// A loop that can run as a kernel.
pub(super) struct CompiledLoop {
    pub(super) kernel: ScalarKernel,
    /// What the loop carries.
    pub(super) carried: Box<[Register]>,
    /// Numbers from around the loop.
    pub(super) outer: Box<[Operand]>,
    /// Lists from around the loop.
    pub(super) lists: Box<[Operand]>,
    /// About how many steps an iteration takes.
    weight: u64,
    /// Whether it is a kernel of the module, which runs whatever there is to do.
    always: bool,
    /// The iteration from which on the kernel is tried.
    enter_at: AtomicI64,
    /// Steps of iterations that were interpreted after the first look.
    work: AtomicU64,
}

impl CompiledLoop {
    pub(super) fn new(
        kernel: ScalarKernel,
        (carried, outer, lists): (Vec<Register>, Vec<Operand>, Vec<Operand>),
        weight: u64,
        always: bool,
    ) -> CompiledLoop {
        let (carried, outer, lists) = (carried.into(), outer.into(), lists.into());
        let enter_at = AtomicI64::new(if always { 0 } else { FIRST_LOOK });
        CompiledLoop { kernel, carried, outer, lists, weight, always, enter_at, work: AtomicU64::new(0) }
    }

    /// The iteration from which on [`CompiledLoop::pays`] is to be asked.
    #[inline(always)]
    pub(super) fn enter_at(&self) -> i64 {
        self.enter_at.load(Ordering::Relaxed)
    }

    /// Whether the kernel is to do what is left: iterations from `iteration` on, of `trips` at most, with `elements` of lists.
    pub(super) fn pays(&self, iteration: i64, trips: i64, elements: usize) -> bool {
        if self.always {
            return true;
        }
        let copies = i64::try_from(elements / COPIED).unwrap_or(i64::MAX);
        let left = trips.saturating_sub(iteration);
        if left < READY.max(copies) || iteration < copies {
            return false;
        }
        if self.kernel.is_ready() {
            return true;
        }
        // The first look counts the iterations before it.
        let count = if iteration == FIRST_LOOK { FIRST_LOOK as u64 } else { 1 };
        let work = self.work.fetch_add(count.saturating_mul(self.weight), Ordering::Relaxed);
        work >= WORTH
    }

    /// Notes that the kernel did the work, or that it left it at an iteration: then it is tried again when a loop goes further.
    pub(super) fn ran(&self, iteration: i64, done: bool) {
        let next = match done {
            _ if self.always && done => 0,
            true => READY,
            false => iteration.saturating_mul(2).saturating_add(1024),
        };
        self.enter_at.store(next, Ordering::Relaxed);
    }
}

impl Machine<'_> {
    /// Begins the next iteration of a loop, or leaves it.
    pub(super) fn iterate(
        &mut self,
        step: &Step,
        counter: Register,
        exit: usize,
        compiled: Option<&CompiledLoop>,
    ) -> Result<()> {
        let most = self.operand(step, 0)?.to_int()?;
        let goes_on = self.operand(step, 1)?.to_bool()?;
        let iteration = self.read(counter)?.to_int()?;
        if !goes_on || iteration >= most {
            self.jump(exit);
            return Ok(());
        }
        if let Some(compiled) = compiled.filter(|_| !self.is_watched())
            && iteration >= compiled.enter_at()
            && self.run_compiled(compiled, iteration, most)?
        {
            self.jump(exit);
            return Ok(());
        }
        self.write(counter, Value::Int(iteration + 1))?;
        self.store_all(step, [Value::Int(iteration)])
    }

    /// Lets a kernel do the iterations that are left; false where it does not.
    fn run_compiled(&mut self, compiled: &CompiledLoop, iteration: i64, trips: i64) -> Result<bool> {
        let mut lists: SmallVec<[List; 2]> = SmallVec::new();
        for operand in &compiled.lists {
            match self.look(operand)? {
                Value::List(list) => lists.push(list),
                // Nothing is known to be there yet.
                _ => return Ok(false),
            }
        }
        if !compiled.pays(iteration, trips, lists.iter().map(List::len).sum()) {
            return Ok(false);
        }
        let carried: Values = compiled.carried.iter().map(|r| self.read(*r)).collect::<Result<_>>()?;
        let outer: Values = compiled.outer.iter().map(|o| self.look(o)).collect::<Result<_>>()?;
        let rest = RemainingLoop {
            trips,
            trip: iteration,
            goes_on: true,
            carried: &carried,
            outer: &outer,
            lists: &lists,
        };
        let done = compiled.kernel.run(&rest)?;
        compiled.ran(iteration, done.is_some());
        let Some(values) = done else { return Ok(false) };
        for (register, value) in compiled.carried.iter().zip(values) {
            self.write(*register, value)?;
        }
        Ok(true)
    }
}

/// The kernel of a loop over numbers: that of the module which the loop names, or else its own, where there is a compiler.
pub(super) fn compiled(
    compiler: &Compiler<'_>,
    op: OpId,
    carried: &[Register],
) -> Result<Option<Box<CompiledLoop>>> {
    let (context, graph) = (compiler.context, compiler.graph);
    let named = graph.attr(op, KERNEL).and_then(Attr::as_str).map(str::to_string);
    let Some(backend) = backend(&context, named.is_some()) else { return Ok(None) };
    let lowered = match scalars::lower(context.registry, graph, op) {
        Ok(lowered) => lowered,
        Err(error) if named.is_some() => return Err(error),
        // What is not a loop over numbers.
        Err(error) if error.kind() == ErrorKind::Unsupported => return Ok(None),
        Err(error) => return Err(error),
    };
    let holders =
        |values: Vec<ValueId>| values.into_iter().map(|v| compiler.holder(op, v)).collect::<Result<Vec<_>>>();
    let outer = holders(lowered.outer.iter().map(|(value, _)| *value).collect())?;
    let lists = holders(lowered.lists.iter().map(|list| list.value).collect())?;
    let weight = weight(graph, op);
    let name = named.clone().unwrap_or_else(|| format!("a loop of {}", compiler.code.name));
    let mut kernel = ScalarKernel::new(name, lowered, backend, Arc::clone(context.fusion));
    if let Some(name) = &named {
        let function = context.module.function(name).ok_or_else(|| {
            Diagnostic::verify(format!("a loop names the kernel '{name}', which the module does not have"))
        })?;
        kernel = kernel.with_kernel(&function.graph)?;
    }
    let parts = (carried.to_vec(), outer, lists);
    Ok(Some(Box::new(CompiledLoop::new(kernel, parts, weight, named.is_some()))))
}

/// Whether loops over numbers run as kernels, and what runs them: None for what runs kernels on this computer. Without a
/// compiler, only loops that were given kernels do.
fn backend(context: &Context<'_>, given: bool) -> Option<Option<Arc<dyn Backend>>> {
    match context.backend {
        Some(backend) if backend.target() != Target::Gpu => {
            (given || backend.compiles()).then(|| Some(Arc::clone(backend)))
        }
        _ => (given || backends::compiles()).then_some(None),
    }
}

/// About how many steps an iteration of a loop takes: those of loops within count eightfold.
fn weight(graph: &Graph, op: OpId) -> u64 {
    let mut weight = 0u64;
    let mut blocks: Vec<(BlockId, u64)> = graph.nested_blocks(op).iter().map(|block| (*block, 1)).collect();
    while let Some((block, times)) = blocks.pop() {
        for inner in graph.block_ops(block) {
            weight = weight.saturating_add(times);
            let within = if graph.kind(inner) == "prim::Loop" { times.saturating_mul(8) } else { times };
            blocks.extend(graph.nested_blocks(inner).iter().map(|block| (*block, within)));
        }
    }
    weight
}
