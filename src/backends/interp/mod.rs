//! The plain interpreter of kernels: one element after the other, in safe Rust. It is the reference that the
//! other backends are tested against, and what runs where no compiler is built in.

mod scalar;

use super::{Arg, Backend, Executable, Launch, Memory};
use crate::diag::{Diagnostic, Result};
use crate::dialects::loops::{Elem, For, Kernel, Order, Prim, Reg, Stmt, Ty, While};
use crate::lowering::Target;
use crate::resources::{Scratch, budget, memory};
use scalar::Num;
use std::sync::Arc;

/// The interpreter.
pub struct Interp;

impl Backend for Interp {
    fn name(&self) -> &'static str {
        "interp"
    }

    fn target(&self) -> Target {
        Target::Cpu
    }

    fn compiles(&self) -> bool {
        false
    }

    fn compile(&self, kernel: &Kernel) -> Result<Arc<dyn Executable>> {
        Ok(Arc::new(Program { kernel: kernel.clone() }))
    }
}

struct Program {
    kernel: Kernel,
}

impl Executable for Program {
    #[allow(unsafe_code, reason = "the trait's signature; this engine checks every access itself")]
    unsafe fn run(&self, launch: &mut Launch<'_>) -> Result<()> {
        let kernel = &self.kernel;
        let arguments = super::check_args(kernel, &launch.memory, &launch.args)?;
        let mut run = Run {
            kernel,
            regs: vec![Num::I(0); kernel.types.len()],
            args: vec![None; kernel.types.len()],
            locals: Vec::new(),
            memory: &mut launch.memory,
            steps: 0,
        };
        for (param, arg) in arguments {
            match (param.ty, arg) {
                (Ty::Scalar(elem), arg) => run.regs[param.reg.index()] = Num::of_arg(arg, elem),
                (_, Arg::Buffer(buffer)) => {
                    run.args[param.reg.index()] = Some((buffer.memory, buffer.first));
                }
                _ => return Err(Diagnostic::internal("a kernel argument of the wrong kind")),
            }
        }
        run.add_locals()?;
        run.block(&kernel.body)?;
        budget::take_all_steps(run.steps)
    }
}

struct Run<'k, 'l, 'm> {
    kernel: &'k Kernel,
    regs: Vec<Num>,
    args: Vec<Option<(usize, usize)>>,
    memory: &'l mut Vec<Memory<'m>>,
    /// The kernel's own memory; it is counted behind that of the caller.
    locals: Vec<Scratch<u8>>,
    /// Steps that were not taken from the run's budget yet.
    steps: u64,
}

impl Run<'_, '_, '_> {
    fn block(&mut self, body: &[Stmt]) -> Result<()> {
        body.iter().try_for_each(|s| self.statement(s))
    }

    /// Makes the kernel's own buffers.
    fn add_locals(&mut self) -> Result<()> {
        for local in &self.kernel.locals {
            let bytes = self.kernel.elem(local.reg).size().saturating_mul(local.size as usize);
            self.args[local.reg.index()] = Some((self.memory.len() + self.locals.len(), 0));
            self.locals.push(memory::filled(bytes, 0)?);
        }
        Ok(())
    }

    /// The bytes of the caller's memory, or of the kernel's own.
    fn bytes(&self, memory: usize) -> &[u8] {
        match memory.checked_sub(self.memory.len()) {
            Some(local) => &self.locals[local],
            None => self.memory[memory].bytes(),
        }
    }

    fn index(&self, reg: Reg) -> i64 {
        self.regs[reg.index()].to_i64()
    }

    fn statement(&mut self, statement: &Stmt) -> Result<()> {
        match statement {
            Stmt::Let(dst, prim) => {
                self.regs[dst.index()] = self.primitive(*dst, prim);
                Ok(())
            }
            Stmt::Load { dst, buffer, index } => {
                let (memory, range) = self.place(*buffer, *index)?;
                let bytes = self.bytes(memory).get(range).ok_or_else(outside)?;
                self.regs[dst.index()] = Num::from_bytes(bytes, self.kernel.elem(*buffer));
                Ok(())
            }
            Stmt::Store { buffer, index, value } => self.store(*buffer, *index, self.regs[value.index()]),
            Stmt::Accumulate { op, buffer, index, value } => {
                let elem = self.kernel.elem(*buffer);
                let (memory, range) = self.place(*buffer, *index)?;
                let old = Num::from_bytes(self.bytes(memory).get(range).ok_or_else(outside)?, elem);
                let new = scalar::binary(*op, elem, old, self.regs[value.index()]);
                self.store(*buffer, *index, new)
            }
            Stmt::For(l) => self.for_loop(l),
            Stmt::While(l) => self.while_loop(l),
            Stmt::If(branch) => {
                let holds = self.regs[branch.condition.index()].to_bool();
                self.block(if holds { &branch.then } else { &branch.otherwise })?;
                for c in &branch.results {
                    let given = if holds { c.then } else { c.otherwise };
                    self.regs[c.result.index()] = self.regs[given.index()];
                }
                Ok(())
            }
            Stmt::Require { condition, message } => match self.regs[condition.index()].to_bool() {
                true => Ok(()),
                false => Err(super::not_met(self.kernel, *message)),
            },
        }
    }

    fn for_loop(&mut self, l: &For) -> Result<()> {
        let lanes = match l.order {
            Order::Lanes(n) if !l.carried.is_empty() => n as usize,
            _ => 1,
        };
        let (begin, end, step) = (self.index(l.begin), self.index(l.end), self.index(l.step));
        if step <= 0 {
            return Err(Diagnostic::internal(format!("a kernel has a loop with step {step}")));
        }
        let inits: Vec<Num> = l.carried.iter().map(|c| self.regs[c.init.index()]).collect();
        let mut partial = vec![inits; lanes];
        let (mut i, mut lane) = (begin, 0);
        while i < end {
            self.regs[l.iv.index()] = Num::I(i);
            for (c, value) in l.carried.iter().zip(&partial[lane]) {
                self.regs[c.param.index()] = *value;
            }
            self.block(&l.body)?;
            self.count_steps(l.steps)?;
            partial[lane] = l.carried.iter().map(|c| self.regs[c.next.index()]).collect();
            lane = (lane + 1) % lanes;
            i = match i.checked_add(step) {
                Some(i) => i,
                None => break,
            };
        }
        for (n, c) in l.carried.iter().enumerate() {
            let mut values: Vec<Num> = partial.iter().map(|lane| lane[n]).collect();
            while let (Some(op), true) = (c.combine, values.len() > 1) {
                let high = values.split_off(values.len() / 2);
                let elem = self.kernel.elem(c.result);
                let pairs = values.into_iter().zip(high);
                values = pairs.map(|(x, y)| scalar::binary(op, elem, x, y)).collect();
            }
            self.regs[c.result.index()] = values[0];
        }
        Ok(())
    }

    fn while_loop(&mut self, l: &While) -> Result<()> {
        let mut goes_on = self.regs[l.enters.index()].to_bool();
        let mut values: Vec<Num> = l.carried.iter().map(|c| self.regs[c.init.index()]).collect();
        while goes_on {
            for (c, value) in l.carried.iter().zip(&values) {
                self.regs[c.param.index()] = *value;
            }
            self.block(&l.body)?;
            self.count_steps(l.steps)?;
            goes_on = self.regs[l.again.index()].to_bool();
            for (c, value) in l.carried.iter().zip(&mut values) {
                *value = self.regs[c.next.index()];
            }
        }
        for (c, value) in l.carried.iter().zip(values) {
            self.regs[c.result.index()] = value;
        }
        Ok(())
    }

    /// Counts an iteration of a loop, and asks the run's budget now and then.
    fn count_steps(&mut self, steps: u32) -> Result<()> {
        self.steps += u64::from(steps);
        if self.steps < budget::STEPS_AT_ONCE {
            return Ok(());
        }
        budget::take_all_steps(std::mem::take(&mut self.steps))
    }

    /// Which memory, and which bytes of it, an element is.
    fn place(&self, buffer: Reg, index: Reg) -> Result<(usize, std::ops::Range<usize>)> {
        let (memory, offset) =
            self.args[buffer.index()].ok_or_else(|| Diagnostic::internal("a number in place of a buffer"))?;
        let size = self.kernel.elem(buffer).size() as i64;
        let at = (offset as i64).checked_add(self.index(index)).and_then(|i| i.checked_mul(size));
        let start = at.and_then(|at| usize::try_from(at).ok()).ok_or_else(outside)?;
        Ok((memory, start..start.saturating_add(size as usize)))
    }

    fn store(&mut self, buffer: Reg, index: Reg, value: Num) -> Result<()> {
        let elem: Elem = self.kernel.elem(buffer);
        let (memory, range) = self.place(buffer, index)?;
        if let Some(local) = memory.checked_sub(self.memory.len()) {
            value.to_bytes(elem, self.locals[local].get_mut(range).ok_or_else(outside)?);
            return Ok(());
        }
        match &mut self.memory[memory] {
            Memory::Write(bytes) => {
                value.to_bytes(elem, bytes.get_mut(range).ok_or_else(outside)?);
                Ok(())
            }
            Memory::Read(_) | Memory::Device(..) => {
                Err(Diagnostic::internal("a kernel stores to memory given for reading"))
            }
        }
    }

    fn primitive(&self, dst: Reg, prim: &Prim) -> Num {
        let at = |r: &Reg| self.regs[r.index()];
        let elem = self.kernel.elem(dst);
        match prim {
            Prim::Const(c) => Num::of_scalar(*c, elem),
            Prim::Unary(op, x) => scalar::unary(*op, elem, at(x)),
            Prim::Binary(op, x, y) => scalar::binary(*op, elem, at(x), at(y)),
            Prim::Fma(x, y, z) => scalar::fma(at(x), at(y), at(z)),
            Prim::Compare(op, x, y) => Num::B(scalar::compare(*op, at(x), at(y))),
            Prim::Select(c, x, y) => {
                if at(c).to_bool() {
                    at(x)
                } else {
                    at(y)
                }
            }
            Prim::Convert(x) => scalar::convert(at(x), elem),
            Prim::Bitcast(x) => scalar::bitcast(at(x), self.kernel.elem(*x), elem),
        }
    }
}

fn outside() -> Diagnostic {
    Diagnostic::internal("a kernel reaches outside of its memory")
}
