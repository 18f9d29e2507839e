//! From a kernel to an LLVM module.
//!
//! Loops marked vector are emitted as vector code directly, a fixed number of lanes at a time, with a tail
//! that is masked where the machine has masks and scalar elsewhere. Within such a loop a value is uniform (the
//! same in all lanes, computed once), affine (an index that grows by a step from lane to lane) or a vector,
//! so that neighbouring loads become one vector load and broadcast operands one scalar.

use super::ir::{Ir, Opcode, T, V, bug, lane_type, set_alignment, widen};
use super::machine::{Kind, Machine};
use super::scalar::Scalars;
use super::values::{Lanes, Step, Val, Warp};
use crate::diag::{Diagnostic, Result};
use crate::dialects::loops::{Carried, Elem, For, Kernel, Mark, Order, Prim, Reg, Stmt, Ty};

use crate::dialects::scalar::Binary;
use inkwell::AddressSpace;
use inkwell::AtomicOrdering;
use inkwell::AtomicRMWBinOp;
use inkwell::IntPredicate as I;
use inkwell::attributes::AttributeLoc;
use inkwell::context::Context;
use inkwell::module::{Linkage, Module};
use inkwell::values::{BasicValue, FunctionValue, PointerValue};

/// Emits a kernel as function `name` of a new module.
pub(super) fn emit<'c>(
    ctx: &'c Context,
    kernel: &Kernel,
    machine: &Machine,
    name: &str,
) -> Result<Module<'c>> {
    let module = ctx.create_module(name);
    let ir = Ir { ctx: context_ref(&module), module, b: ctx.create_builder() };
    let mut e = Emitter {
        ir,
        kernel,
        machine,
        regs: vec![None; kernel.types.len()],
        function: None,
        range: None,
        steps: None,
        lanes: Lanes { count: 1, mask: None },
        warp: None,
    };
    e.function(name)?;
    e.begin_locals()?;
    e.begin_steps()?;
    e.block(&kernel.body)?;
    e.end_steps()?;
    e.returns(0)?;
    let module = e.ir.module;
    module.verify().map_err(|m| Diagnostic::internal(format!("LLVM's verifier: {m}")))?;
    Ok(module)
}

fn context_ref<'c>(module: &Module<'c>) -> inkwell::context::ContextRef<'c> {
    module.get_context()
}

pub(super) struct Emitter<'c, 'k> {
    pub(super) ir: Ir<'c>,
    pub(super) kernel: &'k Kernel,
    pub(super) machine: &'k Machine,
    pub(super) regs: Vec<Option<Val<'c>>>,
    function: Option<FunctionValue<'c>>,
    /// First and last iteration of the parallel loop, and its step, for this call.
    range: Option<[V<'c>; 3]>,
    /// Where steps are counted that the run's budget was not asked for yet.
    pub(super) steps: Option<PointerValue<'c>>,
    lanes: Lanes<'c>,
    /// The threads that share an iteration, of a GPU.
    pub(super) warp: Option<Warp<'c>>,
}

pub(super) fn unsupported(what: &str) -> Diagnostic {
    Diagnostic::unsupported(format!("the LLVM backend does not compile {what} yet"))
}

impl<'c> Emitter<'c, '_> {
    // --- the function ---

    /// Declares the function and binds its parameters.
    fn function(&mut self, name: &str) -> Result<()> {
        match self.machine.kind {
            Kind::Cpu { .. } => self.cpu_function(name),
            Kind::Ptx => self.gpu_function(name),
        }
    }

    /// Ends the function. On a CPU it gives 0, 1 more than the number of the condition that does not hold, or
    /// [`super::orc::STOPPED`].
    pub(super) fn returns(&self, code: i64) -> Result<()> {
        let code = self.ir.i64().const_int(code as u64, true);
        let is_cpu = self.machine.kind != Kind::Ptx;
        let given: Option<&dyn BasicValue<'c>> = if is_cpu { Some(&code) } else { None };
        self.ir.b.build_return(given).map_err(bug)?;
        Ok(())
    }

    /// `int64_t name(const uint64_t *args, int64_t begin, int64_t end)`: every argument in a slot of 8 bytes.
    fn cpu_function(&mut self, name: &str) -> Result<()> {
        let ir = &self.ir;
        let ptr = ir.ctx.ptr_type(AddressSpace::default());
        let i64 = ir.i64();
        let ty = i64.fn_type(&[ptr.into(), i64.into(), i64.into()], false);
        let function = ir.module.add_function(name, ty, None);
        self.start(function)?;
        let slots = param(function, 0)?.into_pointer_value();
        self.range =
            Some([param(function, 1)?, param(function, 2)?, self.ir.i64().const_int(1, false).into()]);
        for (n, p) in self.kernel.params.iter().enumerate() {
            let index = self.ir.i64().const_int(n as u64, false).into();
            let at = self.ir.element(slots, self.ir.i64().into(), index)?.into_pointer_value();
            let ty = match p.ty {
                Ty::Buffer(_) => ptr.into(),
                Ty::Scalar(elem) => self.memory_type(elem),
            };
            let loaded = self.ir.b.build_load(ty, at, "").map_err(bug)?;
            self.regs[p.reg.index()] = Some(self.bind(p.ty, loaded)?);
        }
        Ok(())
    }

    /// One parameter of the kernel is one of the function; each thread, or each warp, strides through the iterations.
    fn gpu_function(&mut self, name: &str) -> Result<()> {
        let ir = &self.ir;
        let global = ir.ctx.ptr_type(AddressSpace::from(1u16));
        let params: Vec<_> = self
            .kernel
            .params
            .iter()
            .map(|p| match p.ty {
                Ty::Buffer(_) => global.into(),
                Ty::Scalar(elem) => self.memory_type(elem).into(),
            })
            .collect();
        let function = ir.module.add_function(name, ir.ctx.void_type().fn_type(&params, false), None);
        // 71 is LLVM's number of the calling convention `ptx_kernel`.
        function.set_call_conventions(71);
        self.start(function)?;
        for (n, p) in self.kernel.params.iter().enumerate() {
            let given = param(function, n as u32)?;
            self.regs[p.reg.index()] = Some(self.bind(p.ty, given)?);
        }
        let (first, step) = self.share_of_thread()?;
        if let Some(extent) = self.kernel.extent {
            let end = self.uniform(self.kernel.params[extent].reg)?;
            self.range = Some([first, end, step]);
        }
        Ok(())
    }

    /// A special register of the GPU along x, as an index.
    pub(super) fn special(&self, name: &str) -> Result<V<'c>> {
        let value = self.ir.intrinsic(&format!("llvm.nvvm.read.ptx.sreg.{name}.x"), &[], &[])?;
        self.ir.cast(Opcode::ZExt, value, self.ir.i64().into())
    }

    fn start(&mut self, function: FunctionValue<'c>) -> Result<()> {
        for (key, value) in self.machine.attributes() {
            let attribute = self.ir.ctx.create_string_attribute(key, value);
            function.add_attribute(AttributeLoc::Function, attribute);
        }
        let entry = self.ir.ctx.append_basic_block(function, "entry");
        self.ir.b.position_at_end(entry);
        function.set_linkage(Linkage::External);
        self.function = Some(function);
        Ok(())
    }

    fn bind(&self, ty: Ty, loaded: V<'c>) -> Result<Val<'c>> {
        Ok(match ty {
            Ty::Buffer(_) => Val::Buffer(loaded.into_pointer_value()),
            Ty::Scalar(elem) => Val::Uniform(self.from_memory(loaded, elem)?),
        })
    }

    // --- types ---

    /// The type of an element in a register.
    fn lane(&self, elem: Elem) -> T<'c> {
        match elem {
            Elem::Bool => self.ir.i1(),
            Elem::BF16 => self.ir.ctx.bf16_type().into(),
            _ => self.memory_type(elem),
        }
    }

    /// The type of an element in memory. Of bfloat16 the bits are read and written: where a CPU does not know the type, LLVM converts
    /// each number on the way through a mask, by calls.
    pub(super) fn memory_type(&self, elem: Elem) -> T<'c> {
        let ctx = &self.ir.ctx;
        match elem {
            Elem::Bool | Elem::U8 | Elem::I8 => ctx.i8_type().into(),
            Elem::I16 | Elem::BF16 => ctx.i16_type().into(),
            Elem::I32 => ctx.i32_type().into(),
            Elem::I64 => ctx.i64_type().into(),
            Elem::F16 => ctx.f16_type().into(),
            Elem::F32 => ctx.f32_type().into(),
            Elem::F64 => ctx.f64_type().into(),
        }
    }

    fn from_memory(&self, x: V<'c>, elem: Elem) -> Result<V<'c>> {
        match elem {
            Elem::Bool => self.ir.icmp(I::NE, x, self.ir.iconst(x, lane_type(x.get_type()), 0)),
            Elem::BF16 => self.ir.cast(Opcode::BitCast, x, self.lane(elem)),
            _ => Ok(x),
        }
    }

    fn to_memory(&self, x: V<'c>, elem: Elem) -> Result<V<'c>> {
        match elem {
            Elem::Bool => self.ir.cast(Opcode::ZExt, x, self.memory_type(elem)),
            Elem::BF16 => self.ir.cast(Opcode::BitCast, x, self.memory_type(elem)),
            _ => Ok(x),
        }
    }

    // --- registers ---

    fn val(&self, reg: Reg) -> Result<Val<'c>> {
        self.regs[reg.index()].ok_or_else(|| Diagnostic::internal("a kernel register before its definition"))
    }

    pub(super) fn uniform(&self, reg: Reg) -> Result<V<'c>> {
        match self.val(reg)? {
            Val::Uniform(v) => Ok(v),
            _ => Err(Diagnostic::internal("a loop bound that differs between lanes")),
        }
    }

    fn buffer(&self, reg: Reg) -> Result<PointerValue<'c>> {
        match self.val(reg)? {
            Val::Buffer(p) => Ok(p),
            _ => Err(Diagnostic::internal("a number in place of a buffer")),
        }
    }

    /// A value with one number a lane.
    fn vector(&self, val: Val<'c>) -> Result<V<'c>> {
        let count = self.lanes.count;
        match val {
            Val::Vector(v) => Ok(v),
            Val::Uniform(v) => self.ir.splat(v, count),
            Val::Affine(base, step) => {
                let mut offsets = self.ir.iota(count);
                if let Step::Value(step) = step {
                    offsets = self.ir.mul(offsets, self.ir.splat(step.into(), count)?)?;
                }
                self.ir.add(self.ir.splat(base.into(), count)?, offsets)
            }
            Val::Buffer(_) => Err(Diagnostic::internal("a buffer in place of a number")),
        }
    }

    // --- statements ---

    pub(super) fn block(&mut self, body: &[Stmt]) -> Result<()> {
        body.iter().try_for_each(|s| self.statement(s))
    }

    fn statement(&mut self, statement: &Stmt) -> Result<()> {
        match statement {
            Stmt::Let(dst, prim) => {
                let value = self.primitive(*dst, prim)?;
                self.regs[dst.index()] = Some(value);
                Ok(())
            }
            Stmt::Load { dst, buffer, index } => {
                let value = self.load(*buffer, *index)?;
                self.regs[dst.index()] = Some(value);
                Ok(())
            }
            Stmt::Store { buffer, index, value } => self.store(*buffer, *index, *value),
            Stmt::For(l) => self.for_loop(l),
            Stmt::While(l) => self.while_loop(l),
            Stmt::Require { condition, message } => self.require(*condition, *message),
            Stmt::Accumulate { op, buffer, index, value } => self.accumulate(*op, *buffer, *index, *value),
            Stmt::If(branch) => self.branch(branch),
        }
    }

    /// Combines an element with a value: at once for all threads where the kernel has several.
    fn accumulate(&mut self, op: Binary, buffer: Reg, index: Reg, value: Reg) -> Result<()> {
        let elem = self.kernel.elem(buffer);
        let (lane, memory) = (self.lane(elem), self.memory_type(elem));
        let at = self.ir.element(self.buffer(buffer)?, memory, self.uniform(index)?)?.into_pointer_value();
        let given = self.uniform(value)?;
        if self.kernel.extent.is_some() {
            let given = self.to_memory(given, elem)?;
            return self.once(|e| e.accumulate_at_once(op, elem, at, given));
        }
        let old = self.ir.b.build_load(memory, at, "").map_err(bug)?;
        set_alignment(old, elem.size());
        let scalars = Scalars { ir: &self.ir, machine: self.machine };
        let operands = [self.from_memory(old, elem)?, given];
        let new = scalars.primitive(&Prim::Binary(op, value, value), &operands, elem, elem, lane)?;
        let store = self.ir.b.build_store(at, self.to_memory(new, elem)?).map_err(bug)?;
        store.set_alignment(elem.size() as u32).map_err(|_| Diagnostic::internal("store alignment"))
    }

    /// An atomic instruction. The bits must not depend on thread order, so that floats have none.
    fn accumulate_at_once(&self, op: Binary, elem: Elem, at: PointerValue<'c>, value: V<'c>) -> Result<()> {
        let unsigned = matches!(elem, Elem::U8 | Elem::Bool);
        let narrow = self.machine.kind == Kind::Ptx && elem.size() < 4;
        let instruction = match (op, unsigned) {
            _ if elem.is_float() || narrow => None,
            (Binary::Add, _) if elem != Elem::Bool => Some(AtomicRMWBinOp::Add),
            (Binary::Min, false) => Some(AtomicRMWBinOp::Min),
            (Binary::Max, false) => Some(AtomicRMWBinOp::Max),
            (Binary::Min, true) => Some(AtomicRMWBinOp::UMin),
            (Binary::Max, true) => Some(AtomicRMWBinOp::UMax),
            (Binary::And, _) => Some(AtomicRMWBinOp::And),
            (Binary::Or, _) => Some(AtomicRMWBinOp::Or),
            (Binary::Xor, _) => Some(AtomicRMWBinOp::Xor),
            _ => None,
        };
        let Some(instruction) = instruction else {
            let what = format!("a loop::accumulate of {} in a parallel loop", elem.name());
            return Err(unsupported(&what));
        };
        let ordering = AtomicOrdering::Monotonic;
        let done = self.ir.b.build_atomicrmw(instruction, at, value.into_int_value(), ordering);
        done.map(|_| ()).map_err(bug)
    }

    /// Leaves the function where the condition does not hold in some live lane.
    fn require(&mut self, condition: Reg, message: usize) -> Result<()> {
        let holds = match self.val(condition)? {
            Val::Uniform(holds) => holds,
            many => {
                let mut holds = self.vector(many)?;
                if let Some(mask) = self.lanes.mask {
                    let dead = self.ir.op(Opcode::Xor, mask, self.ir.iconst(mask, self.ir.i1(), -1))?;
                    holds = self.ir.op(Opcode::Or, holds, dead)?;
                }
                self.ir.intrinsic("llvm.vector.reduce.and", &[holds.get_type()], &[holds])?
            }
        };
        let (fails, goes_on) = (self.new_block("fails")?, self.new_block("holds")?);
        let holds = holds.into_int_value();
        self.ir.b.build_conditional_branch(holds, goes_on, fails).map_err(bug)?;
        self.ir.b.position_at_end(fails);
        if self.machine.kind == Kind::Ptx {
            self.ir.intrinsic("llvm.trap", &[], &[])?;
        }
        self.returns(message as i64 + 1)?;
        self.ir.b.position_at_end(goes_on);
        Ok(())
    }

    fn primitive(&mut self, dst: Reg, prim: &Prim) -> Result<Val<'c>> {
        let elem = self.kernel.elem(dst);
        let scalars = Scalars { ir: &self.ir, machine: self.machine };
        if let Prim::Const(c) = prim {
            return Ok(Val::Uniform(scalars.constant(*c, elem, self.lane(elem))?));
        }
        let operands: Vec<Val<'c>> =
            prim.operands().into_iter().map(|r| self.val(r)).collect::<Result<_>>()?;
        if let Some(affine) = self.affine(prim, &operands)? {
            return Ok(affine);
        }
        let from = prim.operands().last().map_or(elem, |r| self.kernel.elem(*r));
        let lane = self.lane(elem);
        let all: Option<Vec<V<'c>>> = operands
            .iter()
            .map(|v| match v {
                Val::Uniform(v) => Some(*v),
                _ => None,
            })
            .collect();
        if let Some(values) = all {
            return Ok(Val::Uniform(scalars.primitive(prim, &values, from, elem, lane)?));
        }
        let values: Vec<V<'c>> = operands.into_iter().map(|v| self.vector(v)).collect::<Result<_>>()?;
        Ok(Val::Vector(scalars.primitive(prim, &values, from, elem, lane)?))
    }

    /// Sums and products of an affine index with uniform numbers stay affine.
    fn affine(&self, prim: &Prim, operands: &[Val<'c>]) -> Result<Option<Val<'c>>> {
        let (op, base, step, other) = match (prim, operands) {
            (Prim::Binary(op @ (Binary::Add | Binary::Mul), ..), [Val::Affine(b, s), Val::Uniform(o)])
            | (Prim::Binary(op @ (Binary::Add | Binary::Mul), ..), [Val::Uniform(o), Val::Affine(b, s)]) => {
                (*op, *b, *s, *o)
            }
            _ => return Ok(None),
        };
        if op == Binary::Add {
            let base = self.ir.add(base.into(), other)?.into_int_value();
            return Ok(Some(Val::Affine(base, step)));
        }
        let base = self.ir.mul(base.into(), other)?.into_int_value();
        let step = match step {
            Step::One => other,
            Step::Value(step) => self.ir.mul(step.into(), other)?,
        };
        Ok(Some(Val::Affine(base, Step::Value(step.into_int_value()))))
    }

    fn load(&mut self, buffer: Reg, index: Reg) -> Result<Val<'c>> {
        let elem = self.kernel.elem(buffer);
        let (base, lane, count) = (self.buffer(buffer)?, self.memory_type(elem), self.lanes.count);
        let loaded = match self.val(index)? {
            Val::Uniform(i) => {
                let at = self.ir.element(base, lane, i)?.into_pointer_value();
                let value = self.ir.b.build_load(lane, at, "").map_err(bug)?;
                self.mark_load(buffer, value, elem.size())?;
                return Ok(Val::Uniform(self.from_memory(value, elem)?));
            }
            Val::Affine(i, Step::One) => {
                let at = self.ir.element(base, lane, i.into())?;
                let ty = widen(lane, count);
                match self.lanes.mask {
                    None => {
                        let value = self.ir.b.build_load(ty, at.into_pointer_value(), "").map_err(bug)?;
                        self.mark_load(buffer, value, elem.size())?;
                        value
                    }
                    Some(mask) => {
                        let zero = ty.const_zero();
                        self.ir.intrinsic("llvm.masked.load", &[ty, at.get_type()], &[at, mask, zero])?
                    }
                }
            }
            index => {
                let index = self.vector(index)?;
                let at = self.ir.element(base, lane, index)?;
                let ty = widen(lane, count);
                let mask = self.full_or_tail_mask(count);
                self.ir.intrinsic("llvm.masked.gather", &[ty, at.get_type()], &[at, mask, ty.const_zero()])?
            }
        };
        Ok(Val::Vector(self.from_memory(loaded, elem)?))
    }

    fn full_or_tail_mask(&self, count: u32) -> V<'c> {
        self.lanes.mask.unwrap_or_else(|| {
            let live = vec![self.ir.ctx.bool_type().const_all_ones(); count as usize];
            inkwell::types::VectorType::const_vector(&live).into()
        })
    }

    /// Alignment of a plain load, and that read-only memory is never written.
    fn mark_load(&self, buffer: Reg, value: V<'c>, alignment: usize) -> Result<()> {
        set_alignment(value, alignment);
        let written = self.kernel.params.iter().any(|p| p.reg == buffer && p.written);
        if let (false, Some(load)) = (written, value.as_instruction_value()) {
            let kind = self.ir.ctx.get_kind_id("invariant.load");
            let node = self.ir.ctx.metadata_node(&[]);
            load.set_metadata(node, kind).map_err(|_| Diagnostic::internal("load metadata"))?;
        }
        Ok(())
    }

    fn store(&mut self, buffer: Reg, index: Reg, value: Reg) -> Result<()> {
        let elem = self.kernel.elem(buffer);
        let (base, lane, count) = (self.buffer(buffer)?, self.memory_type(elem), self.lanes.count);
        let value = self.val(value)?;
        match self.val(index)? {
            Val::Uniform(i) if count == 1 => {
                let Val::Uniform(value) = value else {
                    return Err(Diagnostic::internal("a vector in scalar code"));
                };
                let at = self.ir.element(base, lane, i)?.into_pointer_value();
                let value = self.to_memory(value, elem)?;
                self.once(|e| {
                    let store = e.ir.b.build_store(at, value).map_err(bug)?;
                    store
                        .set_alignment(elem.size() as u32)
                        .map_err(|_| Diagnostic::internal("store alignment"))
                })
            }
            Val::Affine(i, Step::One) => {
                let value = self.to_memory(self.vector(value)?, elem)?;
                let at = self.ir.element(base, lane, i.into())?;
                match self.lanes.mask {
                    None => self.vector_store(at.into_pointer_value(), value, elem),
                    Some(mask) => {
                        let types = [value.get_type(), at.get_type()];
                        self.ir.intrinsic("llvm.masked.store", &types, &[value, at, mask]).map(|_| ())
                    }
                }
            }
            index => {
                let value = self.to_memory(self.vector(value)?, elem)?;
                let at = self.ir.element(base, lane, self.vector(index)?)?;
                let mask = self.full_or_tail_mask(count);
                let types = [value.get_type(), at.get_type()];
                self.ir.intrinsic("llvm.masked.scatter", &types, &[value, at, mask]).map(|_| ())
            }
        }
    }

    fn vector_store(&self, at: PointerValue<'c>, value: V<'c>, elem: Elem) -> Result<()> {
        let store = self.ir.b.build_store(at, value).map_err(bug)?;
        // Streams begin at multiples of 64 bytes and of whole vectors.
        let whole = elem.size() * self.lanes.count as usize;
        let alignment = if self.machine.stream { whole.min(64) } else { elem.size() };
        store.set_alignment(alignment as u32).map_err(|_| Diagnostic::internal("store alignment"))?;
        if self.machine.stream {
            let kind = self.ir.ctx.get_kind_id("nontemporal");
            let one = self.ir.ctx.i32_type().const_int(1, false);
            let node = self.ir.ctx.metadata_node(&[one.into()]);
            store.set_metadata(node, kind).map_err(|_| Diagnostic::internal("store metadata"))?;
        }
        Ok(())
    }

    // --- loops ---

    fn for_loop(&mut self, l: &For) -> Result<()> {
        if self.lanes.count != 1 {
            // One after the other, each for all lanes.
            let [begin, end, step] = [self.uniform(l.begin)?, self.uniform(l.end)?, self.uniform(l.step)?];
            return self.serial_loop(l, begin, end, step);
        }
        let [begin, end, step] = match (l.mark.is_parallel(), self.range) {
            (true, Some(range)) => range,
            _ => [self.uniform(l.begin)?, self.uniform(l.end)?, self.uniform(l.step)?],
        };
        if let Some(sharing) = self.sharing(l) {
            return self.shared_loop(l, [begin, end, step], sharing);
        }
        let count = self.machine.lanes(self.kernel, l);
        // Neighbouring lanes are neighbouring indices.
        let by_one = step.into_int_value().get_zero_extended_constant() == Some(1);
        let count = if by_one && l.mark.is_vector() && is_vectorizable(l) { count } else { 1 };
        if count == 1 {
            return self.serial_loop(l, begin, end, step);
        }
        let (first_of_tail, partial) = self.vector_loop(l, begin, end, count)?;
        // Partial results live in lanes to the end; without masks LLVM writes the tail as branches.
        if self.machine.masks() || !l.carried.is_empty() {
            let partial = self.masked_tail(l, first_of_tail, end, count, partial)?;
            for (c, partial) in l.carried.iter().zip(partial) {
                let total = self.combine(c, partial, count)?;
                self.regs[c.result.index()] = Some(Val::Uniform(total));
            }
            Ok(())
        } else {
            self.serial_loop(l, first_of_tail, end, step)
        }
    }

    /// Combines partial results: the second half with the first until one is left.
    fn combine(&self, c: &Carried, partial: V<'c>, count: u32) -> Result<V<'c>> {
        let Some(op) = c.combine else {
            return Err(unsupported("reductions other than sums, minima and maxima"));
        };
        let elem = self.kernel.elem(c.result);
        let scalars = Scalars { ir: &self.ir, machine: self.machine };
        let (mut left, mut n) = (partial, count);
        while n > 1 {
            n /= 2;
            let (low, high) = (self.ir.part(left, 0, n)?, self.ir.part(left, n, n)?);
            let prim = Prim::Binary(op, c.param, c.next);
            left = scalars.primitive(&prim, &[low, high], elem, elem, self.lane(elem))?;
        }
        Ok(left)
    }

    pub(super) fn new_block(&self, name: &str) -> Result<inkwell::basic_block::BasicBlock<'c>> {
        let function = self.function.ok_or_else(|| Diagnostic::internal("code outside of a function"))?;
        Ok(self.ir.ctx.append_basic_block(function, name))
    }

    pub(super) fn here(&self) -> Result<inkwell::basic_block::BasicBlock<'c>> {
        self.ir.b.get_insert_block().ok_or_else(|| Diagnostic::internal("code outside of a block"))
    }

    /// What a loop within a vector loop carries has one number a lane.
    pub(super) fn carried(&self, reg: Reg) -> Result<V<'c>> {
        if self.lanes.count == 1 { self.uniform(reg) } else { self.vector(self.val(reg)?) }
    }

    pub(super) fn carried_value(&self, value: V<'c>) -> Val<'c> {
        if self.lanes.count == 1 { Val::Uniform(value) } else { Val::Vector(value) }
    }

    /// Whole vectors as long as they fit; returns the first iteration that is left, and partial results.
    fn vector_loop(&mut self, l: &For, begin: V<'c>, end: V<'c>, count: u32) -> Result<(V<'c>, Vec<V<'c>>)> {
        let (body, done) = (self.new_block("vector")?, self.new_block("vector.done")?);
        let before = self.here()?;
        let width: V<'c> = self.ir.i64().const_int(count.into(), false).into();
        let last = self.ir.sub(end, width)?;
        let inits = l.carried.iter().map(|c| self.ir.splat(self.uniform(c.init)?, count));
        let inits: Vec<V<'c>> = inits.collect::<Result<_>>()?;
        let enters = self.ir.icmp(I::SLE, begin, last)?.into_int_value();
        self.ir.b.build_conditional_branch(enters, body, done).map_err(bug)?;
        self.ir.b.position_at_end(body);
        let iv = self.ir.b.build_phi(self.ir.i64(), "i").map_err(bug)?;
        iv.add_incoming(&[(&begin, before)]);
        self.regs[l.iv.index()] = Some(Val::Affine(iv.as_basic_value().into_int_value(), Step::One));
        let mut phis = Vec::new();
        for (c, init) in l.carried.iter().zip(&inits) {
            let phi = self.ir.b.build_phi(init.get_type(), "partial").map_err(bug)?;
            phi.add_incoming(&[(init, before)]);
            self.regs[c.param.index()] = Some(Val::Vector(phi.as_basic_value()));
            phis.push(phi);
        }
        self.lanes = Lanes { count, mask: None };
        self.block(&l.body)?;
        let nexts = self.nexts(l)?;
        self.lanes = Lanes { count: 1, mask: None };
        let latch = self.here()?;
        for (phi, next) in phis.iter().zip(&nexts) {
            phi.add_incoming(&[(next, latch)]);
        }
        let next = self.ir.add(iv.as_basic_value(), width)?;
        iv.add_incoming(&[(&next, latch)]);
        let again = self.ir.icmp(I::SLE, next, last)?.into_int_value();
        self.ir.b.build_conditional_branch(again, body, done).map_err(bug)?;
        self.ir.b.position_at_end(done);
        let rest = self.ir.b.build_phi(self.ir.i64(), "rest").map_err(bug)?;
        rest.add_incoming(&[(&begin, before), (&next, latch)]);
        let mut partial = Vec::new();
        for (init, next) in inits.iter().zip(&nexts) {
            let phi = self.ir.b.build_phi(init.get_type(), "partial").map_err(bug)?;
            phi.add_incoming(&[(init, before), (next, latch)]);
            partial.push(phi.as_basic_value());
        }
        Ok((rest.as_basic_value(), partial))
    }

    /// What the body of a vector loop hands to the next iteration, lane by lane.
    fn nexts(&self, l: &For) -> Result<Vec<V<'c>>> {
        l.carried.iter().map(|c| self.vector(self.val(c.next)?)).collect()
    }

    /// What is left, fewer than `count`, with the other lanes masked out; those keep their partial results.
    fn masked_tail(
        &mut self,
        l: &For,
        begin: V<'c>,
        end: V<'c>,
        count: u32,
        partial: Vec<V<'c>>,
    ) -> Result<Vec<V<'c>>> {
        let before = self.here()?;
        let (body, done) = (self.new_block("tail")?, self.new_block("tail.done")?);
        let enters = self.ir.icmp(I::SLT, begin, end)?.into_int_value();
        self.ir.b.build_conditional_branch(enters, body, done).map_err(bug)?;
        self.ir.b.position_at_end(body);
        let left = self.ir.splat(self.ir.sub(end, begin)?, count)?;
        let mask = self.ir.icmp(I::SLT, self.ir.iota(count), left)?;
        self.regs[l.iv.index()] = Some(Val::Affine(begin.into_int_value(), Step::One));
        for (c, partial) in l.carried.iter().zip(&partial) {
            self.regs[c.param.index()] = Some(Val::Vector(*partial));
        }
        self.lanes = Lanes { count, mask: Some(mask) };
        self.block(&l.body)?;
        let mut kept = Vec::new();
        for (next, partial) in self.nexts(l)?.into_iter().zip(&partial) {
            kept.push(self.ir.select(mask, next, *partial)?);
        }
        self.lanes = Lanes { count: 1, mask: None };
        let latch = self.here()?;
        self.ir.b.build_unconditional_branch(done).map_err(bug)?;
        self.ir.b.position_at_end(done);
        let mut after = Vec::new();
        for (partial, kept) in partial.iter().zip(&kept) {
            let phi = self.ir.b.build_phi(partial.get_type(), "partial").map_err(bug)?;
            phi.add_incoming(&[(partial, before), (kept, latch)]);
            after.push(phi.as_basic_value());
        }
        Ok(after)
    }
}

fn param<'c>(function: FunctionValue<'c>, n: u32) -> Result<V<'c>> {
    function.get_nth_param(n).ok_or_else(|| Diagnostic::internal("a function without its parameter"))
}

/// Whether a loop's body can run several iterations in lanes.
fn is_vectorizable(l: &For) -> bool {
    l.carried.iter().all(|c| c.combine.is_some()) && is_straight(&l.body, &mut vec![l.iv])
}

/// Whether statements run alike in all lanes: the bounds of loops among them are the same in all.
fn is_straight(body: &[Stmt], differing: &mut Vec<Reg>) -> bool {
    body.iter().all(|statement| match statement {
        Stmt::Let(dst, prim) => {
            if prim.operands().iter().any(|x| differing.contains(x)) {
                differing.push(*dst);
            }
            true
        }
        Stmt::Load { dst, .. } => {
            differing.push(*dst);
            true
        }
        Stmt::Store { .. } | Stmt::Require { .. } => true,
        Stmt::For(inner) => {
            let uniform = [inner.begin, inner.end, inner.step].iter().all(|bound| !differing.contains(bound));
            differing.extend(inner.carried.iter().flat_map(|c| [c.param, c.result]));
            let plain = inner.order == Order::Sequential && inner.mark == Mark::Serial;
            uniform && plain && is_straight(&inner.body, differing)
        }
        _ => false,
    })
}
