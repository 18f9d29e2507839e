//! From a graph of the `loop` dialect to the closed [`Kernel`]. Everything that backends rely on is checked
//! here, so that a kernel written by hand gets an error and never miscompiled code.

use super::NAMESPACE;
use super::names::{find_binary, find_compare, find_unary};
use super::{
    Carried, Chosen, Elem, For, If, Kernel, Local, Mark, Order, Param, Prim, Reg, Stmt, Ty, While,
    is_loop_kind,
};
use crate::diag::{Diagnostic, Result, nearest};
use crate::dialects::scalar::{Binary, Unary};
use crate::ir::{Attr, BlockId, Graph, OpId, ValueId};
use crate::tensor::Scalar;

/// Loops nest no deeper.
const MAX_DEPTH: usize = 64;
/// Partial results of one reduction.
const MAX_LANES: i64 = 1024;
/// Steps that an iteration takes of the run's budget.
const MAX_STEPS: i64 = 1 << 16;
/// Bytes of the message of a `loop::require`.
const MAX_MESSAGE: usize = 1 << 12;
/// Bytes of a kernel's own buffers, which lie on the stack.
const MAX_LOCAL: usize = 1 << 15;

/// Checks a kernel graph and gives its closed form.
pub fn decode(graph: &Graph) -> Result<Kernel> {
    decode_at(graph).map_err(|(_, error)| error)
}

/// The same; with an error comes the op at which it was found.
pub(super) fn decode_at(graph: &Graph) -> Result<Kernel, (Option<OpId>, Diagnostic)> {
    let kernel = Kernel::default();
    let regs = vec![None; graph.value_capacity()];
    let mut d = Decoder { graph, regs, kernel, at: None, marks: Vec::new(), outside: false };
    match d.whole() {
        Ok(()) => Ok(d.kernel),
        Err(error) => Err((d.at, error)),
    }
}

/// What [`Decoder::carry`] finds.
struct Parts {
    /// The block's own parameters.
    own: Vec<Reg>,
    /// The block's own results.
    gives: Vec<Reg>,
    values: Vec<Carried>,
    body: Vec<Stmt>,
}

struct Decoder<'a> {
    graph: &'a Graph,
    regs: Vec<Option<Reg>>,
    kernel: Kernel,
    /// The op at hand.
    at: Option<OpId>,
    /// Marks of the loops around it.
    marks: Vec<Mark>,
    /// Whether a buffer of the kernel's own stands outside of parallel loops.
    outside: bool,
}

impl Decoder<'_> {
    fn whole(&mut self) -> Result<()> {
        let graph = self.graph;
        for input in graph.inputs() {
            let ty = self.type_of(*input)?;
            let reg = self.define(*input)?;
            self.kernel.params.push(Param { reg, ty, written: false });
        }
        if !graph.outputs().is_empty() {
            return Err(Diagnostic::verify("a loop kernel returns nothing: it stores to its buffers"));
        }
        self.kernel.body = self.block(graph.root(), 0)?;
        self.at = None;
        self.kernel.extent = self.find_extent()?;
        Ok(())
    }

    fn error(&self, op: OpId, message: impl std::fmt::Display) -> Diagnostic {
        let error = Diagnostic::verify(format!("{}: {message}", self.graph.kind(op)));
        error.at_opt(self.graph.location(op).and_then(|l| l.span()))
    }

    fn type_of(&self, value: ValueId) -> Result<Ty> {
        let ty = self.graph.ty(value);
        let scalar = Elem::of_scalar_type(ty).map(Ty::Scalar);
        scalar.or_else(|| Elem::of_buffer_type(ty).map(Ty::Buffer)).ok_or_else(|| {
            let name = self.graph.display_name(value);
            Diagnostic::verify(format!("%{name} is neither a scalar nor a buffer of the loop dialect"))
        })
    }

    fn define(&mut self, value: ValueId) -> Result<Reg> {
        let ty = self.type_of(value)?;
        let reg = Reg(self.kernel.types.len() as u32);
        self.kernel.types.push(ty);
        self.regs[value.index()] = Some(reg);
        Ok(reg)
    }

    /// The register of a value; defined earlier or an error. Scopes nest, so order of decoding is visibility.
    fn reg(&self, op: OpId, value: ValueId) -> Result<Reg> {
        if !self.graph.is_visible(value, op) {
            return Err(self.error(op, "uses a value that is not visible here"));
        }
        self.regs[value.index()].ok_or_else(|| self.error(op, "uses a value before its definition"))
    }

    fn operand(&self, op: OpId, n: usize) -> Result<Reg> {
        let value = self.graph.operand(op, n).ok_or_else(|| self.error(op, "has too few operands"))?;
        self.reg(op, value)
    }

    fn scalar(&self, op: OpId, n: usize) -> Result<(Reg, Elem)> {
        let reg = self.operand(op, n)?;
        match self.kernel.ty(reg) {
            Ty::Scalar(elem) => Ok((reg, elem)),
            _ => Err(self.error(op, format!("operand {n} must be a scalar"))),
        }
    }

    fn scalar_of(&self, op: OpId, n: usize, elem: Elem) -> Result<Reg> {
        match self.scalar(op, n)? {
            (reg, found) if found == elem => Ok(reg),
            (_, found) => {
                Err(self.error(op, format!("operand {n} must be {}, not {}", elem.name(), found.name())))
            }
        }
    }

    fn memory(&self, op: OpId, n: usize) -> Result<(Reg, Elem)> {
        let reg = self.operand(op, n)?;
        match self.kernel.ty(reg) {
            Ty::Buffer(elem) => Ok((reg, elem)),
            Ty::Scalar(_) => Err(self.error(op, format!("operand {n} must be a buffer"))),
        }
    }

    fn count(&self, op: OpId, operands: usize, results: usize) -> Result<()> {
        let (o, r) = (self.graph.operands(op).len(), self.graph.result_count(op));
        if (o, r) != (operands, results) {
            let message = format!("has {o} operands and {r} results, needs {operands} and {results}");
            return Err(self.error(op, message));
        }
        Ok(())
    }

    fn result(&mut self, op: OpId) -> Result<(Reg, Elem)> {
        let value = self.graph.result(op, 0).ok_or_else(|| self.error(op, "has no result"))?;
        let reg = self.define(value)?;
        match self.kernel.ty(reg) {
            Ty::Scalar(elem) => Ok((reg, elem)),
            _ => Err(self.error(op, "gives a scalar")),
        }
    }

    fn block(&mut self, block: BlockId, depth: usize) -> Result<Vec<Stmt>> {
        if depth > MAX_DEPTH {
            return Err(Diagnostic::verify(format!("loops nest deeper than {MAX_DEPTH}")));
        }
        let ops: Vec<OpId> = self.graph.block_ops(block).collect();
        let mut statements = Vec::with_capacity(ops.len());
        for op in ops {
            self.at = Some(op);
            let kind = self.graph.kind(op);
            match is_loop_kind(kind) && kind.base() == "alloc" {
                true => self.alloc(op)?,
                false => statements.push(self.statement(op, depth)?),
            }
        }
        Ok(statements)
    }

    /// Memory of the kernel's own. Iterations that run at once would share one that stands in or around them.
    fn alloc(&mut self, op: OpId) -> Result<()> {
        self.count(op, 0, 1)?;
        if self.marks.iter().any(|mark| mark.is_vector()) {
            return Err(self.error(op, "stands in a vector loop, whose iterations would share it"));
        }
        self.outside |= !self.marks.iter().any(|mark| mark.is_parallel());
        let size = self.graph.attr(op, "size").and_then(Attr::as_int);
        let size = size.and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0);
        let size = size.ok_or_else(|| self.error(op, "needs a `size`, a number of elements"))?;
        let value = self.graph.result(op, 0).ok_or_else(|| self.error(op, "has no result"))?;
        let reg = self.define(value)?;
        if !matches!(self.kernel.ty(reg), Ty::Buffer(_)) {
            return Err(self.error(op, "gives a buffer"));
        }
        self.kernel.locals.push(Local { reg, size });
        let bytes = |local: &Local| self.kernel.elem(local.reg).size().saturating_mul(local.size as usize);
        if self.kernel.locals.iter().map(bytes).fold(0usize, usize::saturating_add) > MAX_LOCAL {
            return Err(self.error(op, format!("takes a kernel's own buffers beyond {MAX_LOCAL} bytes")));
        }
        Ok(())
    }

    fn statement(&mut self, op: OpId, depth: usize) -> Result<Stmt> {
        let kind = self.graph.kind(op);
        if !is_loop_kind(kind) {
            return Err(self.error(op, "does not belong in a loop kernel"));
        }
        match kind.base() {
            "load" => {
                self.count(op, 2, 1)?;
                let ((buffer, elem), index) = (self.memory(op, 0)?, self.scalar_of(op, 1, Elem::I64)?);
                let (dst, found) = self.result(op)?;
                self.expect(op, found, elem)?;
                Ok(Stmt::Load { dst, buffer, index })
            }
            "store" => {
                self.count(op, 3, 0)?;
                let ((buffer, elem), index) = (self.memory(op, 0)?, self.scalar_of(op, 1, Elem::I64)?);
                let value = self.scalar_of(op, 2, elem)?;
                self.mark_written(buffer);
                Ok(Stmt::Store { buffer, index, value })
            }
            "accumulate" => self.accumulate(op),
            "for" => self.for_loop(op, depth).map(|l| Stmt::For(Box::new(l))),
            "while" => self.while_loop(op, depth).map(|l| Stmt::While(Box::new(l))),
            "if" => self.branch(op, depth).map(|b| Stmt::If(Box::new(b))),
            "require" => self.require_condition(op),
            name => self.primitive(op, name),
        }
    }

    fn expect(&self, op: OpId, found: Elem, expected: Elem) -> Result<()> {
        if found == expected {
            return Ok(());
        }
        Err(self.error(op, format!("gives {}, but its result is {}", expected.name(), found.name())))
    }

    fn primitive(&mut self, op: OpId, name: &str) -> Result<Stmt> {
        let prim = match name {
            "const" => {
                self.count(op, 0, 1)?;
                let value = match self.graph.attr(op, "value") {
                    Some(Attr::Int(x)) => Scalar::Int(*x),
                    Some(Attr::Float(x)) => Scalar::Float(*x),
                    Some(Attr::Bool(x)) => Scalar::Bool(*x),
                    _ => return Err(self.error(op, "needs a number as its `value`")),
                };
                let (dst, elem) = self.result(op)?;
                return Ok(Stmt::Let(dst, Prim::Const(as_elem(value, elem))));
            }
            "select" => {
                self.count(op, 3, 1)?;
                let (c, (x, elem)) = (self.scalar_of(op, 0, Elem::Bool)?, self.scalar(op, 1)?);
                let y = self.scalar_of(op, 2, elem)?;
                return self.finish(op, elem, Prim::Select(c, x, y));
            }
            "fma" => {
                self.count(op, 3, 1)?;
                let (x, elem) = self.scalar(op, 0)?;
                self.require(op, elem.is_float(), elem)?;
                let (y, z) = (self.scalar_of(op, 1, elem)?, self.scalar_of(op, 2, elem)?);
                return self.finish(op, elem, Prim::Fma(x, y, z));
            }
            "convert" => {
                self.count(op, 1, 1)?;
                Prim::Convert(self.scalar(op, 0)?.0)
            }
            "bitcast" => {
                self.count(op, 1, 1)?;
                let (x, from) = self.scalar(op, 0)?;
                let (dst, to) = self.result(op)?;
                if from.size() != to.size() || from == Elem::Bool || to == Elem::Bool {
                    return Err(self.error(op, "needs two types of one width"));
                }
                return Ok(Stmt::Let(dst, Prim::Bitcast(x)));
            }
            name => return self.arithmetic(op, name),
        };
        let (dst, _) = self.result(op)?;
        Ok(Stmt::Let(dst, prim))
    }

    fn arithmetic(&mut self, op: OpId, name: &str) -> Result<Stmt> {
        if let Some(unary) = find_unary(name) {
            self.count(op, 1, 1)?;
            let (x, elem) = self.scalar(op, 0)?;
            self.require(op, takes_unary(unary, elem), elem)?;
            return self.finish(op, elem, Prim::Unary(unary, x));
        }
        if let Some(binary) = find_binary(name) {
            self.count(op, 2, 1)?;
            let (x, elem) = self.scalar(op, 0)?;
            let y = self.scalar_of(op, 1, elem)?;
            self.require(op, takes_binary(binary, elem), elem)?;
            return self.finish(op, elem, Prim::Binary(binary, x, y));
        }
        if let Some(compare) = find_compare(name) {
            self.count(op, 2, 1)?;
            let (x, elem) = self.scalar(op, 0)?;
            let y = self.scalar_of(op, 1, elem)?;
            return self.finish(op, Elem::Bool, Prim::Compare(compare, x, y));
        }
        let error = self.error(op, "there is no such op in the loop dialect");
        Err(match nearest(name, super::rows::op_names()) {
            Some(near) => error.hint(format!("did you mean {NAMESPACE}::{near}?")),
            None => error,
        })
    }

    fn require(&self, op: OpId, holds: bool, elem: Elem) -> Result<()> {
        if holds { Ok(()) } else { Err(self.error(op, format!("is not defined for {}", elem.name()))) }
    }

    fn finish(&mut self, op: OpId, elem: Elem, prim: Prim) -> Result<Stmt> {
        let (dst, found) = self.result(op)?;
        self.expect(op, found, elem)?;
        Ok(Stmt::Let(dst, prim))
    }

    fn accumulate(&mut self, op: OpId) -> Result<Stmt> {
        self.count(op, 3, 0)?;
        let how = self.graph.attr(op, "op").and_then(Attr::as_str).and_then(find_binary);
        let combine = match how {
            Some(b) if is_reduction(b) => b,
            _ => return Err(self.error(op, "needs `op` to be add, min, max, and, or or xor")),
        };
        let ((buffer, elem), index) = (self.memory(op, 0)?, self.scalar_of(op, 1, Elem::I64)?);
        let value = self.scalar_of(op, 2, elem)?;
        self.mark_written(buffer);
        Ok(Stmt::Accumulate { op: combine, buffer, index, value })
    }

    fn for_loop(&mut self, op: OpId, depth: usize) -> Result<For> {
        let bounds = [0, 1, 2].map(|n| self.scalar_of(op, n, Elem::I64));
        let [begin, end, step] = bounds;
        let (begin, end, step) = (begin?, end?, step?);
        let mark = match self.graph.attr(op, "mark") {
            None => Mark::Serial,
            Some(attr) => attr
                .as_str()
                .and_then(Mark::from_name)
                .ok_or_else(|| self.error(op, "has a mark that is not known"))?,
        };
        let order = match self.graph.attr(op, "lanes").map(Attr::as_int) {
            None => Order::Sequential,
            Some(Some(n)) if (1..=MAX_LANES).contains(&n) && n.count_ones() == 1 => Order::Lanes(n as u32),
            Some(_) => {
                return Err(self.error(op, format!("needs `lanes`, a power of two from 1 to {MAX_LANES}")));
            }
        };
        let [block] = *self.graph.nested_blocks(op) else {
            return Err(self.error(op, "has one block"));
        };
        self.marks.push(mark);
        let parts = self.carry(op, block, 3, 0, depth)?;
        self.marks.pop();
        if mark.is_parallel() && !parts.values.is_empty() {
            return Err(self.error(op, "carries values and cannot be parallel"));
        }
        let [iv] = parts.own[..] else { return Err(self.error(op, "has an index")) };
        if self.kernel.ty(iv) != Ty::Scalar(Elem::I64) {
            return Err(self.error(op, "has an index that is not i64"));
        }
        let (mut carried, body) = (parts.values, parts.body);
        if let Order::Lanes(_) = order {
            for c in &mut carried {
                c.combine = Some(combination(&body, c.param, c.next).ok_or_else(|| {
                    self.error(op, "carries in lanes only what is added or the least or greatest of its body")
                })?);
            }
        }
        let steps = self.steps(op)?.unwrap_or(0);
        Ok(For { iv, begin, end, step, mark, order, steps, carried, body })
    }

    fn while_loop(&mut self, op: OpId, depth: usize) -> Result<While> {
        let enters = self.scalar_of(op, 0, Elem::Bool)?;
        let [block] = *self.graph.nested_blocks(op) else {
            return Err(self.error(op, "has one block"));
        };
        let parts = self.carry(op, block, 1, 1, depth)?;
        let [again] = parts.gives[..] else { return Err(self.error(op, "gives a condition")) };
        if self.kernel.ty(again) != Ty::Scalar(Elem::Bool) {
            return Err(self.error(op, "goes on by a condition that is not bool"));
        }
        let steps = self.steps(op)?.unwrap_or(1);
        Ok(While { enters, again, steps, carried: parts.values, body: parts.body })
    }

    /// What a loop carries: operands from `first` on, the block's parameters and results after what is its own (the index of a
    /// `for`, the condition that a `while` gives), and the op's results.
    fn carry(&mut self, op: OpId, block: BlockId, first: usize, gives: usize, depth: usize) -> Result<Parts> {
        let graph = self.graph;
        let inits = graph.operands(op).get(first..).unwrap_or_default();
        let (params, nexts) = (graph.params(block).to_vec(), graph.block_results(block).to_vec());
        let (results, takes) = (graph.results(op), 1 - gives);
        let n = inits.len();
        if params.len() != n + takes || nexts.len() != n + gives || results.len() != n {
            return Err(self.error(op, "must carry as many values in, around and out"));
        }
        let inits: Vec<Reg> = (0..n).map(|n| self.operand(op, n + first)).collect::<Result<_>>()?;
        let params: Vec<Reg> = params.iter().map(|p| self.define(*p)).collect::<Result<_>>()?;
        let body = self.block(block, depth + 1)?;
        self.at = Some(op);
        let end = graph.terminator(block);
        let nexts: Vec<Reg> = nexts.iter().map(|next| self.reg(end, *next)).collect::<Result<_>>()?;
        let mut values = Vec::new();
        for (n, init) in inits.into_iter().enumerate() {
            let (param, next, result) = (params[n + takes], nexts[n + gives], self.define(results[n])?);
            self.same_numbers(op, [init, param, next, result])?;
            values.push(Carried { init, param, next, result, combine: None });
        }
        Ok(Parts { own: params[..takes].to_vec(), gives: nexts[..gives].to_vec(), values, body })
    }

    /// Registers that hand a number on are of one type.
    fn same_numbers<const N: usize>(&self, op: OpId, regs: [Reg; N]) -> Result<()> {
        let ty = self.kernel.ty(regs[0]);
        match regs.iter().all(|reg| self.kernel.ty(*reg) == ty) && matches!(ty, Ty::Scalar(_)) {
            true => Ok(()),
            false => Err(self.error(op, "hands on scalars, each of one type")),
        }
    }

    /// What an iteration takes of the run's budget.
    fn steps(&self, op: OpId) -> Result<Option<u32>> {
        match self.graph.attr(op, "steps").map(Attr::as_int) {
            None => Ok(None),
            Some(Some(n)) if (1..=MAX_STEPS).contains(&n) => Ok(Some(n as u32)),
            Some(_) => Err(self.error(op, format!("needs `steps` from 1 to {MAX_STEPS}"))),
        }
    }

    fn branch(&mut self, op: OpId, depth: usize) -> Result<If> {
        let graph = self.graph;
        let results = graph.results(op);
        self.count(op, 1, results.len())?;
        let condition = self.scalar_of(op, 0, Elem::Bool)?;
        let &[then, otherwise] = graph.nested_blocks(op) else {
            return Err(self.error(op, "has two blocks"));
        };
        let mut bodies = Vec::new();
        let mut given = Vec::new();
        for block in [then, otherwise] {
            if !graph.params(block).is_empty() || graph.block_results(block).len() != results.len() {
                return Err(self.error(op, "has blocks without parameters that give its results"));
            }
            bodies.push(self.block(block, depth + 1)?);
            self.at = Some(op);
            let end = graph.terminator(block);
            given.push(
                graph.block_results(block).iter().map(|v| self.reg(end, *v)).collect::<Result<Vec<_>>>()?,
            );
        }
        let mut chosen = Vec::new();
        for (n, result) in results.iter().enumerate() {
            let (result, then, otherwise) = (self.define(*result)?, given[0][n], given[1][n]);
            self.same_numbers(op, [result, then, otherwise])?;
            chosen.push(Chosen { result, then, otherwise });
        }
        let otherwise = bodies.pop().unwrap_or_default();
        Ok(If { condition, then: bodies.pop().unwrap_or_default(), otherwise, results: chosen })
    }

    fn require_condition(&mut self, op: OpId) -> Result<Stmt> {
        self.count(op, 1, 0)?;
        let condition = self.scalar_of(op, 0, Elem::Bool)?;
        let text = self.graph.attr(op, "message").and_then(Attr::as_str);
        let text = text.filter(|text| text.len() <= MAX_MESSAGE);
        let text = text.ok_or_else(|| self.error(op, "needs a `message`, a short text"))?.to_string();
        let messages = &mut self.kernel.messages;
        let message = messages.iter().position(|known| *known == text).unwrap_or(messages.len());
        if message == messages.len() {
            messages.push(text);
        }
        Ok(Stmt::Require { condition, message })
    }

    fn mark_written(&mut self, reg: Reg) {
        for param in &mut self.kernel.params {
            if param.reg == reg {
                param.written = true;
            }
        }
    }

    /// Parallel loops stand outermost, at most one, and run from 0 to a parameter in steps of 1: so the
    /// caller can hand out its iterations.
    fn find_extent(&self) -> Result<Option<usize>> {
        let mut extent = None;
        for statement in &self.kernel.body {
            if statement.blocks().flatten().any(contains_parallel) {
                return Err(Diagnostic::verify("loop::for: only an outermost loop can be parallel"));
            }
            let Stmt::For(outer) = statement else { continue };
            if !outer.mark.is_parallel() {
                continue;
            }
            let is = |reg: Reg, n: i64| {
                let mut lets = self.kernel.body.iter();
                lets.any(|s| matches!(s, Stmt::Let(r, Prim::Const(Scalar::Int(x))) if *r == reg && *x == n))
            };
            let bound = self.kernel.params.iter().position(|p| p.reg == outer.end);
            if !is(outer.begin, 0) || !is(outer.step, 1) || bound.is_none() || extent.is_some() {
                return Err(Diagnostic::verify(
                    "loop::for: a parallel loop is the only one and runs from 0 to a parameter in steps of 1",
                ));
            }
            extent = bound;
        }
        if extent.is_some() && self.outside {
            return Err(Diagnostic::verify(
                "loop::alloc: in a kernel with a parallel loop it stands within that loop",
            ));
        }
        // Every part of the iterations that is run by itself does all that stands around the loop too.
        let acts = |s: &Stmt| !matches!(s, Stmt::For(l) if l.mark.is_parallel()) && writes(s);
        if extent.is_some() && self.kernel.body.iter().any(acts) {
            return Err(Diagnostic::verify(
                "loop::for: a kernel with a parallel loop writes within it alone",
            ));
        }
        Ok(extent)
    }
}

/// Whether a statement writes to memory.
fn writes(statement: &Stmt) -> bool {
    statement.any(&|s| matches!(s, Stmt::Store { .. } | Stmt::Accumulate { .. }))
}

fn contains_parallel(statement: &Stmt) -> bool {
    statement.any(&|s| matches!(s, Stmt::For(l) if l.mark.is_parallel()))
}

/// How a loop's body makes the next value of a carried one: by one operation that combines it with something else.
fn combination(body: &[Stmt], param: Reg, next: Reg) -> Option<Binary> {
    let mut found = None;
    for statement in body {
        let uses = |regs: &[Reg]| regs.contains(&param);
        match statement {
            Stmt::Let(dst, Prim::Binary(op, x, y)) if *dst == next && is_reduction(*op) => {
                // Both operands at once would count it twice.
                if (*x == param) == (*y == param) {
                    return None;
                }
                found = Some(*op);
            }
            Stmt::Let(_, prim) if uses(&prim.operands()) => return None,
            Stmt::Load { index, .. } if uses(&[*index]) => return None,
            Stmt::Store { index, value, .. } if uses(&[*index, *value]) => return None,
            Stmt::Let(..) | Stmt::Load { .. } | Stmt::Store { .. } | Stmt::Require { .. } => {}
            // What is nested might use it.
            _ => return None,
        }
    }
    found
}

/// A number as its register's type holds it.
fn as_elem(value: Scalar, elem: Elem) -> Scalar {
    if elem == Elem::Bool {
        return Scalar::Bool(value.to_bool());
    }
    if elem.is_float() { Scalar::Float(value.to_f64()) } else { Scalar::Int(value.to_i64()) }
}

/// Operations that combine in any order up to rounding.
fn is_reduction(op: Binary) -> bool {
    matches!(op, Binary::Add | Binary::Min | Binary::Max | Binary::And | Binary::Or | Binary::Xor)
}

fn takes_unary(op: Unary, elem: Elem) -> bool {
    match op {
        Unary::Neg | Unary::Abs => elem != Elem::Bool,
        Unary::Not => !elem.is_float(),
        Unary::Floor | Unary::Ceil | Unary::Round | Unary::Trunc => elem.is_float(),
        Unary::Real | Unary::Imag | Unary::Conj => false,
        _ => elem.is_float(),
    }
}

fn takes_binary(op: Binary, elem: Elem) -> bool {
    match op {
        Binary::Add | Binary::Sub | Binary::Mul | Binary::Min | Binary::Max => true,
        Binary::Div | Binary::Rem | Binary::Pow => elem != Elem::Bool,
        Binary::And | Binary::Or | Binary::Xor => !elem.is_float(),
        Binary::Shl | Binary::Shr => elem.is_int(),
        Binary::Atan2 | Binary::CopySign | Binary::Hypot | Binary::NextAfter => elem.is_float(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(text: &str) -> Graph {
        crate::ir::parse_graph(text).expect("parses")
    }

    const SUM: &str = "graph(%out : loop.buffer<loop.f32>, %a : loop.buffer<loop.f32>, %n : loop.i64):
  %zero : loop.i64 = loop::const[value=0]()
  %one : loop.i64 = loop::const[value=1]()
  %start : loop.f32 = loop::const[value=0.]()
  %sum : loop.f32 = loop::for[mark=\"serial\"](%zero, %n, %one, %start)
    block0(%i : loop.i64, %s : loop.f32):
      %x : loop.f32 = loop::load(%a, %i)
      %next : loop.f32 = loop::add(%s, %x)
      -> (%next)
   = loop::store(%out, %zero, %sum)
  return ()
";

    #[test]
    fn a_reduction_decodes() {
        let kernel = decode(&graph(SUM)).expect("is well formed");
        assert_eq!(kernel.params.iter().map(|p| p.written).collect::<Vec<_>>(), [true, false, false]);
        assert_eq!(kernel.extent, None);
        let Some(Stmt::For(l)) = kernel.body.iter().find(|s| matches!(s, Stmt::For(_))) else {
            panic!("no loop in {kernel:?}")
        };
        assert_eq!((l.carried.len(), l.mark, l.order), (1, Mark::Serial, Order::Sequential));
    }

    #[test]
    fn lanes_carry_what_can_be_combined() {
        let lanes = |text: &str| {
            SUM.replace("mark=\"serial\"", "mark=\"serial\", lanes=4").replace("loop::add(%s, %x)", text)
        };
        let kernel = decode(&graph(&lanes("loop::max(%x, %s)"))).expect("is well formed");
        let Some(Stmt::For(l)) = kernel.body.iter().find(|s| matches!(s, Stmt::For(_))) else {
            panic!("no loop in {kernel:?}")
        };
        assert_eq!((l.order, l.carried[0].combine), (Order::Lanes(4), Some(Binary::Max)));
        for text in ["loop::sub(%s, %x)", "loop::add(%s, %s)", "loop::mul(%x, %x)"] {
            let error = decode(&graph(&lanes(text))).expect_err(text);
            assert!(error.message().contains("carries in lanes only"), "{text}: {error}");
        }
        let error = decode(&graph(&lanes("loop::add(%s, %x)").replace("lanes=4", "lanes=6"))).expect_err("6");
        assert!(error.message().contains("a power of two"), "{error}");
    }

    #[test]
    fn what_is_ill_formed_is_refused_by_name() {
        let cases = [
            ("loop::add(%s, %x)", "loop::add(%s, %i)", "operand 1 must be f32, not i64"),
            ("loop::add(%s, %x)", "loop::shl(%s, %x)", "not defined for f32"),
            ("loop::add(%s, %x)", "loop::frob(%s, %x)", "no such op"),
            ("loop::add(%s, %x)", "aten::add(%s, %x)", "does not belong"),
            ("loop::load(%a, %i)", "loop::load(%i, %i)", "must be a buffer"),
            ("mark=\"serial\"", "mark=\"sideways\"", "mark that is not known"),
            ("mark=\"serial\"", "mark=\"parallel\"", "cannot be parallel"),
            ("-> (%next)", "-> ()", "as many values"),
            ("%n : loop.i64)", "%n : Tensor)", "neither a scalar nor a buffer"),
            ("[value=0.]", "[value=\"0\"]", "needs a number"),
        ];
        for (old, new, message) in cases {
            let text = SUM.replacen(old, new, 1);
            let error = decode(&graph(&text)).expect_err(new);
            assert!(error.message().contains(message), "{new}: {error}");
        }
    }
}
