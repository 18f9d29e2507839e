//! The loop nest of a kernel that combines along rows.
//!
//! A parallel loop runs over the rows. Within a row stand passes, vector loops over its elements that carry partial
//! results in lanes: a pass combines everything that depends on no later pass. What is the same for all elements of
//! a row is computed once between the passes. A value is computed again in each pass that needs it, as a row lies in
//! the nearest cache; only functions that cost more than a load (an exponential) are kept, in the row of a result
//! that is stored later. On a GPU a warp takes a row, and its threads are the lanes.
//!
//! Where rows are added to each other, the parallel loop runs over blocks of rows, a block's rows one after the other: each
//! adds its elements to the block's sums, which begin as zeros and lie in the nearest cache too.

use super::nest::{Nest, NestRows, RowStore, Stride, Writer, elem};
use crate::diag::{Diagnostic, Result};
use crate::dialects::loops::{Elem, Mark, Order};
use crate::dialects::scalar::{Binary, Inst, Sv, Unary};
use crate::ir::{Graph, ValueId};
use crate::tensor::Scalar;

/// Partial results of a reduction.
const LANES: u32 = 32;

/// What is known of the instructions of a nest.
struct Analysis<'a> {
    nest: &'a Nest,
    stored: &'a [RowStore],
    /// Whether a value differs between the elements of a row.
    full: Vec<bool>,
    /// The first pass in which it can be computed.
    stage: Vec<usize>,
    /// Values that a pass leaves in the row of a store: instruction, store, pass.
    kept: Vec<(usize, usize, usize)>,
}

/// Writes the loop nest into a kernel whose parameters are there.
pub(super) fn lower(mut w: Writer, nest: &Nest, rows: &NestRows) -> Result<Graph> {
    let mut analysis = Analysis::new(nest, &rows.stores);
    analysis.keep_expensive();
    let (zero, one) = (w.b.index(0), w.b.index(1));
    let extent = w.sizes[0];
    let (iv, _) = w.b.begin_loop([zero, extent, one], Mark::Parallel, Order::Sequential, &[]);
    let Some(block) = rows.block else {
        w.b.name(iv, "i");
        let indices = w.split(iv, nest.rank - 1);
        let starts = (0..w.accesses.len()).map(|a| w.offset(a, &indices)).collect();
        let mut w = one_row(w, &analysis, (zero, one), starts)?;
        w.b.end_loop(&[]);
        return Ok(w.b.finish());
    };
    w.b.name(iv, "block");
    let sums: Vec<(usize, Option<ValueId>)> = (0..rows.stores.len())
        .filter(|store| rows.stores[*store] == RowStore::Sums)
        .map(|store| (store, w.offset(store, &[iv])))
        .collect();
    zero_sums(&mut w, nest, (zero, one), &sums)?;
    let row_count = w.row_count.ok_or_else(Row::missing)?;
    let block = w.b.index(block);
    let first = w.b.binary(Binary::Mul, iv, block);
    let end = w.b.binary(Binary::Add, first, block);
    let end = w.b.binary(Binary::Min, end, row_count);
    let (row, _) = w.b.begin_loop([first, end, one], Mark::Serial, Order::Sequential, &[]);
    w.b.name(row, "i");
    let start = |a: usize| match sums.iter().find(|(store, _)| *store == a) {
        Some((_, start)) => *start,
        None => w.offset(a, &[row]),
    };
    let starts = (0..nest.stores.len() + nest.loads.len()).map(start).collect();
    let mut w = one_row(w, &analysis, (zero, one), starts)?;
    w.b.end_loop(&[]);
    w.b.end_loop(&[]);
    Ok(w.b.finish())
}

/// Writes the code of a row that begins at `starts` in each access.
fn one_row(
    w: Writer,
    analysis: &Analysis<'_>,
    (zero, one): (ValueId, ValueId),
    starts: Vec<Option<ValueId>>,
) -> Result<Writer> {
    let values = vec![None; analysis.nest.program.insts().len()];
    let mut row = Row { w, a: analysis, rows: starts, zero, one, values };
    row.parameters()?;
    for pass in 0..analysis.passes() {
        row.uniform(pass)?;
        row.pass(pass)?;
    }
    row.uniform(analysis.passes())?;
    row.store_numbers()?;
    Ok(row.w)
}

/// Sets the sums of a block, which begin at these places of their stores, to zero.
fn zero_sums(
    w: &mut Writer,
    nest: &Nest,
    (zero, one): (ValueId, ValueId),
    sums: &[(usize, Option<ValueId>)],
) -> Result<()> {
    let last = nest.rank - 1;
    let (i, _) = w.b.begin_loop([zero, w.sizes[last], one], Mark::Vector, Order::Sequential, &[]);
    w.b.name(i, "j");
    for (store, start) in sums {
        let nothing = w.b.constant(Scalar::Float(0.0), elem(nest.stores[*store].0)?);
        let index = w.add_step(*store, last, i, *start).unwrap_or(zero);
        w.b.store(w.accesses[*store].0, index, nothing);
    }
    w.b.end_loop(&[]);
    Ok(())
}

impl<'a> Analysis<'a> {
    fn new(nest: &'a Nest, stored: &'a [RowStore]) -> Analysis<'a> {
        let (mut full, mut stage) = (Vec::new(), Vec::new());
        let last = nest.rank - 1;
        let first_total = nest.loads.len() + nest.scalars.len();
        // Parameters stand before the values that reductions combine: their stages are found in the order of the list.
        let mut totals: Vec<usize> = Vec::new();
        loop {
            full.clear();
            stage.clear();
            for (inst, _) in nest.program.insts() {
                let (own_full, own_stage) = match inst {
                    Inst::Param(n) => {
                        let n = *n as usize;
                        let varies = nest.loads.get(n).is_some_and(|(_, s)| s[last] != Stride::Zero);
                        (varies, n.checked_sub(first_total).and_then(|r| totals.get(r)).map_or(0, |s| s + 1))
                    }
                    _ => (false, 0),
                };
                full.push(own_full || inst.operands().any(|x: Sv| full[x.index()]));
                stage.push(inst.operands().map(|x| stage[x.index()]).max().unwrap_or(0).max(own_stage));
            }
            match nest.reductions.get(totals.len()) {
                Some((_, value)) => totals.push(stage[value.index()]),
                None => return Analysis { nest, stored, full, stage, kept: Vec::new() },
            }
        }
    }

    /// The stores of whole rows: store, value, and the pass in which they happen.
    fn stores(&self) -> impl Iterator<Item = (usize, Sv, usize)> + '_ {
        self.stores_of(RowStore::Elements)
    }

    /// The same of those that add to sums.
    fn sums(&self) -> impl Iterator<Item = (usize, Sv, usize)> + '_ {
        self.stores_of(RowStore::Sums)
    }

    fn stores_of(&self, kind: RowStore) -> impl Iterator<Item = (usize, Sv, usize)> + '_ {
        let stores = self.nest.results.iter().enumerate().filter(move |(n, _)| self.stored[*n] == kind);
        stores.map(|(n, value)| (n, *value, self.stage[value.index()]))
    }

    /// The reductions of a pass: which, how, what.
    fn combined(&self, pass: usize) -> Vec<(usize, Binary, Sv)> {
        let all = self.nest.reductions.iter().enumerate().map(|(n, (op, value))| (n, *op, *value));
        all.filter(|(_, _, value)| self.stage[value.index()] == pass).collect()
    }

    fn passes(&self) -> usize {
        let reductions = self.nest.reductions.iter().map(|(_, value)| self.stage[value.index()] + 1);
        let stores = self.stores().chain(self.sums()).map(|(.., pass)| pass + 1);
        reductions.chain(stores).max().unwrap_or(0)
    }

    /// Where an earlier pass has left a value.
    fn kept_before(&self, inst: usize, pass: usize) -> Option<usize> {
        self.kept.iter().find(|(i, _, p)| *i == inst && *p < pass).map(|(_, store, _)| *store)
    }

    /// The instructions that a pass computes for each element, in order.
    fn computed(&self, pass: usize) -> Vec<usize> {
        let mut needs = vec![false; self.full.len()];
        let combined = self.combined(pass).into_iter().map(|(.., value)| value);
        let stores = self.stores().chain(self.sums());
        let stored = stores.filter(|(.., p)| *p == pass).map(|(_, value, _)| value);
        combined.chain(stored).for_each(|v| needs[v.index()] = self.full[v.index()]);
        for at in (0..needs.len()).rev() {
            if needs[at] && self.kept_before(at, pass).is_none() {
                let operands = self.nest.program.insts()[at].0.operands();
                operands.filter(|x| self.full[x.index()]).for_each(|x| needs[x.index()] = true);
            }
        }
        (0..needs.len()).filter(|at| needs[*at]).collect()
    }

    /// Has passes leave what is costly and needed again in rows that are stored later anyway.
    fn keep_expensive(&mut self) {
        let passes = self.passes();
        for pass in 0..passes {
            for inst in self.computed(pass).into_iter().rev() {
                if !is_expensive(self.nest.program.insts()[inst].0) || self.kept_before(inst, pass).is_some()
                {
                    continue;
                }
                let Some(again) = (pass + 1..passes).rev().find(|p| self.computed(*p).contains(&inst)) else {
                    continue;
                };
                let dtype = self.nest.program.insts()[inst].1;
                let last = self.nest.rank - 1;
                let free = self.stores().find(|(store, _, stored)| {
                    let (own, strides) = &self.nest.stores[*store];
                    let unused = self.kept.iter().all(|(_, used, _)| used != store);
                    *own == dtype && strides[last] == Stride::One && *stored >= again && unused
                });
                let free = free.map(|(store, ..)| store);
                self.kept.extend(free.map(|store| (inst, store, pass)));
            }
        }
    }
}

/// Whether computing a value again costs more than loading it.
fn is_expensive(inst: Inst) -> bool {
    use Unary::*;
    match inst {
        Inst::Unary(op, _) => {
            !matches!(op, Neg | Abs | Not | Sqrt | Rsqrt | Floor | Ceil | Round | Trunc | Real | Imag | Conj)
        }
        Inst::Binary(op, ..) => {
            matches!(op, Binary::Pow | Binary::Atan2 | Binary::Rem | Binary::Hypot | Binary::NextAfter)
        }
        _ => false,
    }
}

/// The code of one row under construction.
struct Row<'a> {
    w: Writer,
    a: &'a Analysis<'a>,
    /// Where the row begins in each access; None at 0.
    rows: Vec<Option<ValueId>>,
    zero: ValueId,
    one: ValueId,
    /// What is the same for all elements of the row.
    values: Vec<Option<ValueId>>,
}

impl Row<'_> {
    fn missing() -> Diagnostic {
        Diagnostic::internal("a value of a row before it is computed")
    }

    /// Places the scalars, what is loaded once a row, and the length of rows.
    fn parameters(&mut self) -> Result<()> {
        let nest = self.a.nest;
        let (scalars, totals) = (nest.loads.len(), nest.loads.len() + nest.scalars.len());
        let count = totals + nest.reductions.len();
        for (at, (inst, dtype)) in nest.program.insts().iter().enumerate() {
            let Inst::Param(n) = inst else { continue };
            let n = *n as usize;
            self.values[at] = match n {
                _ if self.a.full[at] => None,
                n if n < scalars => {
                    let access = nest.stores.len() + n;
                    let index = self.rows[access].unwrap_or(self.zero);
                    Some(self.w.b.load(self.w.accesses[access].0, index))
                }
                n if n < totals => Some(self.w.scalars[n - scalars]),
                n if n < count => None,
                _ => Some(self.w.b.convert(self.w.sizes[nest.rank - 1], elem(*dtype)?)),
            };
        }
        Ok(())
    }

    /// Computes what is the same for all elements of the row, as far as the passes before `pass` allow.
    fn uniform(&mut self, pass: usize) -> Result<()> {
        let program = &self.a.nest.program;
        for at in 0..program.insts().len() {
            let (inst, _) = program.insts()[at];
            let wanted = !self.a.full[at] && self.a.stage[at] <= pass && self.values[at].is_none();
            if !wanted || matches!(inst, Inst::Param(_)) {
                continue;
            }
            if inst.operands().any(|x| self.values[x.index()].is_none()) {
                return Err(Row::missing());
            }
            let (values, zero) = (&self.values, self.zero);
            let value = self.w.instruction(program, at, &[], |x| values[x.index()].unwrap_or(zero))?;
            self.values[at] = Some(value);
        }
        Ok(())
    }

    /// One loop over the elements of the row.
    fn pass(&mut self, pass: usize) -> Result<()> {
        let nest = self.a.nest;
        let combined = self.a.combined(pass);
        let mut inits = Vec::new();
        for (_, op, value) in &combined {
            let elem = elem(nest.program.dtype(*value))?;
            let neutral = neutral(*op, elem)?;
            inits.push(self.w.b.constant(neutral, elem));
        }
        let order = if combined.is_empty() { Order::Sequential } else { Order::Lanes(LANES) };
        let bounds = [self.zero, self.w.sizes[nest.rank - 1], self.one];
        let (i, carried) = self.w.b.begin_loop(bounds, Mark::Vector, order, &inits);
        self.w.b.name(i, "j");
        let mut values = self.values.clone();
        for inst in self.a.computed(pass) {
            let value = self.element(inst, pass, i, &values)?;
            values[inst] = Some(value);
        }
        let at = |value: Sv| values[value.index()].ok_or_else(Row::missing);
        for (store, value, stored) in self.a.stores() {
            if stored == pass {
                self.store(store, i, at(value)?)?;
            }
        }
        for (store, value, _) in self.a.sums().filter(|(.., added)| *added == pass) {
            self.add(store, i, at(value)?)?;
        }
        for (inst, store, kept) in &self.a.kept {
            if *kept == pass {
                self.store(*store, i, values[*inst].ok_or_else(Row::missing)?)?;
            }
        }
        let mut next = Vec::new();
        for ((_, op, value), before) in combined.iter().zip(carried) {
            next.push(self.w.b.binary(*op, before, at(*value)?));
        }
        let totals = self.w.b.end_loop(&next);
        let first_total = nest.loads.len() + nest.scalars.len();
        for ((n, ..), total) in combined.iter().zip(totals) {
            let param = nest
                .program
                .insts()
                .iter()
                .position(|(inst, _)| matches!(inst, Inst::Param(p) if *p as usize == first_total + n));
            if let Some(param) = param {
                self.values[param] = Some(total);
            }
        }
        Ok(())
    }

    /// One value of one element.
    fn element(
        &mut self,
        inst: usize,
        pass: usize,
        i: ValueId,
        values: &[Option<ValueId>],
    ) -> Result<ValueId> {
        let nest = self.a.nest;
        let access = match (self.a.kept_before(inst, pass), nest.program.insts()[inst].0) {
            (Some(store), _) => Some(store),
            (None, Inst::Param(n)) => Some(nest.stores.len() + n as usize),
            _ => None,
        };
        if let Some(access) = access {
            let index = self.index(access, i);
            return Ok(self.w.b.load(self.w.accesses[access].0, index));
        }
        if nest.program.insts()[inst].0.operands().any(|x| values[x.index()].is_none()) {
            return Err(Row::missing());
        }
        let zero = self.zero;
        self.w.instruction(&nest.program, inst, &[], |x| values[x.index()].unwrap_or(zero))
    }

    fn index(&mut self, access: usize, i: ValueId) -> ValueId {
        let (last, row) = (self.a.nest.rank - 1, self.rows[access]);
        self.w.add_step(access, last, i, row).unwrap_or(self.zero)
    }

    fn store(&mut self, store: usize, i: ValueId, value: ValueId) -> Result<()> {
        let value = self.w.b.convert(value, elem(self.a.nest.stores[store].0)?);
        let index = self.index(store, i);
        self.w.b.store(self.w.accesses[store].0, index, value);
        Ok(())
    }

    /// Adds to the sums of the block.
    fn add(&mut self, store: usize, i: ValueId, value: ValueId) -> Result<()> {
        let value = self.w.b.convert(value, elem(self.a.nest.stores[store].0)?);
        let (buffer, index) = (self.w.accesses[store].0, self.index(store, i));
        let before = self.w.b.load(buffer, index);
        let sum = self.w.b.binary(Binary::Add, before, value);
        self.w.b.store(buffer, index, sum);
        Ok(())
    }

    /// Stores the results that are one number a row.
    fn store_numbers(&mut self) -> Result<()> {
        for (store, value) in self.a.nest.results.iter().enumerate() {
            if self.a.stored[store] == RowStore::Number {
                let value = self.values[value.index()].ok_or_else(Row::missing)?;
                let value = self.w.b.convert(value, elem(self.a.nest.stores[store].0)?);
                let index = self.rows[store].unwrap_or(self.zero);
                self.w.b.store(self.w.accesses[store].0, index, value);
            }
        }
        Ok(())
    }
}

/// What changes nothing when it is combined.
fn neutral(op: Binary, elem: Elem) -> Result<Scalar> {
    let least = match elem {
        Elem::I32 => i64::from(i32::MIN),
        _ => i64::MIN,
    };
    Ok(match op {
        Binary::Add if elem.is_float() => Scalar::Float(0.0),
        Binary::Add => Scalar::Int(0),
        Binary::Max if elem.is_float() => Scalar::Float(f64::NEG_INFINITY),
        Binary::Max => Scalar::Int(least),
        Binary::Min if elem.is_float() => Scalar::Float(f64::INFINITY),
        Binary::Min => Scalar::Int(!least),
        _ => return Err(Diagnostic::internal("a reduction other than a sum, minimum or maximum")),
    })
}
