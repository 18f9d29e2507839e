//! The loop nest of a pointwise kernel, as IR of the `loop` dialect; that of a kernel with rows is written elsewhere.
//!
//! Dimensions have been merged before. On a CPU one remaining dimension becomes a single loop that is both
//! parallel and vector; with more, a parallel loop over rows (whose indices come out of the row number by
//! division) contains a vector loop over the innermost dimension. On a GPU every element is one iteration
//! of a single parallel loop.

use super::nest::{Nest, Target, Writer, elem};
use super::row_nest;
use crate::diag::Result;
use crate::dialects::loops::{Mark, Order};
use crate::dialects::scalar::Program;
use crate::ir::{Graph, ValueId};

/// Writes the loop nest. Parameters of the kernel, in order: buffers of the stores, buffers of the loads, the
/// extent of the parallel loop, the size of each dimension but the first (none with one dimension), the number of
/// rows where blocks of them are summed, the dynamic strides of stores and loads (dimension by dimension), scalars.
pub fn lower(nest: &Nest, target: Target) -> Result<Graph> {
    let mut w = Writer::new(nest)?;
    if let Some(rows) = &nest.rows {
        return row_nest::lower(w, nest, rows);
    }
    let (zero, one) = (w.b.index(0), w.b.index(1));
    let extent = w.sizes[0];
    let flat = nest.rank == 1 || target == Target::Gpu;
    let mark = if nest.rank == 1 { Mark::ParallelVector } else { Mark::Parallel };
    let (iv, _) = w.b.begin_loop([zero, extent, one], mark, Order::Sequential, &[]);
    w.b.name(iv, "i");
    if flat {
        let indices = w.split(iv, nest.rank);
        let at: Vec<ValueId> = (0..w.accesses.len()).map(|a| w.offset(a, &indices).unwrap_or(zero)).collect();
        w.element(nest, &at)?;
    } else {
        let inner = nest.rank - 1;
        let indices = w.split(iv, inner);
        let rows: Vec<Option<ValueId>> = (0..w.accesses.len()).map(|a| w.offset(a, &indices)).collect();
        let size = w.sizes[inner];
        let (i, _) = w.b.begin_loop([zero, size, one], Mark::Vector, Order::Sequential, &[]);
        w.b.name(i, "j");
        let at: Vec<ValueId> =
            (0..w.accesses.len()).map(|a| w.add_step(a, inner, i, rows[a]).unwrap_or(zero)).collect();
        w.element(nest, &at)?;
        w.b.end_loop(&[]);
    }
    w.b.end_loop(&[]);
    Ok(w.b.finish())
}

impl Writer {
    /// Loads, computes and stores one element; `at` holds the index of each access.
    fn element(&mut self, nest: &Nest, at: &[ValueId]) -> Result<()> {
        let stores = nest.stores.len();
        let mut params = Vec::new();
        for (n, index) in at.iter().enumerate().skip(stores) {
            params.push(self.b.load(self.accesses[n].0, *index));
        }
        for store in &nest.in_place {
            params.push(self.b.load(self.accesses[*store].0, at[*store]));
        }
        params.extend_from_slice(&self.scalars);
        let values = self.program(&nest.program, &params)?;
        for (n, result) in nest.results.iter().enumerate() {
            let value = self.b.convert(values[result.index()], elem(nest.stores[n].0)?);
            self.b.store(self.accesses[n].0, at[n], value);
        }
        Ok(())
    }

    /// Writes the program's instructions.
    fn program(&mut self, program: &Program, params: &[ValueId]) -> Result<Vec<ValueId>> {
        let mut values: Vec<ValueId> = Vec::with_capacity(program.insts().len());
        for n in 0..program.insts().len() {
            values.push(self.instruction(program, n, params, |v| values[v.index()])?);
        }
        Ok(values)
    }
}
