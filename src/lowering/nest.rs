//! What is known of a kernel's loop nest before it is written, and the writer of what all nests have: parameters, places of
//! elements and instructions, as IR of the `loop` dialect. Does not know how loops are arranged.

pub use super::pointwise_nest::lower;
use crate::diag::{Diagnostic, Result};
use crate::dialects::loops::{Builder, Elem};
use crate::dialects::scalar::{Binary, Inst, Program, Sv};
use crate::ir::ValueId;
use crate::tensor::{DType, Scalar};

/// For which kind of machine loops are arranged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// Few cores with vector registers.
    Cpu,
    /// One thread an element, one warp a row.
    Gpu,
}

/// What is known of a stride when a kernel is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stride {
    /// Broadcast.
    Zero,
    /// Neighbours.
    One,
    /// Given at run time.
    Dynamic,
}

/// What a store keeps of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowStore {
    /// Its elements.
    Elements,
    /// One number.
    Number,
    /// The sums of its elements with those of the other rows of its block, column by column.
    Sums,
}

/// The rows of a kernel that combines elements.
#[derive(Clone, Debug, PartialEq)]
pub struct NestRows {
    /// What each store keeps.
    pub stores: Vec<RowStore>,
    /// Rows of a block, where sums of blocks are stored.
    pub block: Option<i64>,
}

/// A pointwise kernel before it is loops.
#[derive(Clone, Debug, PartialEq)]
pub struct Nest {
    /// What is computed for each element. Its parameters are the loads, those in place, the scalars, with rows the reductions and
    /// the length of a row.
    pub program: Program,
    /// What is combined along the last dimension: how, and the value of the program.
    pub reductions: Vec<(Binary, Sv)>,
    /// What is stored of rows, if something is combined.
    pub rows: Option<NestRows>,
    /// Values of the program to store, one a store.
    pub results: Vec<Sv>,
    /// Element types of the stores' buffers.
    pub stores: Vec<(DType, Vec<Stride>)>,
    /// Element types of the loads' buffers.
    pub loads: Vec<(DType, Vec<Stride>)>,
    /// Stores through whose buffers is read what they write to; parameters of the program after those of `loads`.
    pub in_place: Vec<usize>,
    /// Dtypes of scalar parameters: int64, float64 or bool.
    pub scalars: Vec<DType>,
    /// Number of dimensions, at least 1.
    pub rank: usize,
}

pub(super) struct Writer {
    pub(super) b: Builder,
    /// The extent, then the sizes of dimensions 1, 2, …
    pub(super) sizes: Vec<ValueId>,
    /// The number of rows, where blocks of them are summed.
    pub(super) row_count: Option<ValueId>,
    /// Stores, then loads: buffer and strides.
    pub(super) accesses: Vec<(ValueId, Vec<StrideValue>)>,
    pub(super) scalars: Vec<ValueId>,
}

#[derive(Clone, Copy)]
pub(super) enum StrideValue {
    Zero,
    One,
    Value(ValueId),
}

pub(super) fn elem(dtype: DType) -> Result<Elem> {
    Elem::of(dtype).ok_or_else(|| {
        Diagnostic::unsupported(format!("fused kernels do not compute with dtype {}", dtype.name()))
    })
}

impl Writer {
    /// A kernel that has the parameters of a nest and nothing else yet.
    pub(super) fn new(nest: &Nest) -> Result<Writer> {
        let mut w = Writer {
            b: Builder::new(),
            sizes: Vec::new(),
            row_count: None,
            accesses: Vec::new(),
            scalars: Vec::new(),
        };
        w.parameters(nest)?;
        Ok(w)
    }

    fn parameters(&mut self, nest: &Nest) -> Result<()> {
        let all: Vec<&(DType, Vec<Stride>)> = nest.stores.iter().chain(&nest.loads).collect();
        let mut buffers = Vec::new();
        for (n, (dtype, _)) in all.iter().enumerate() {
            let name = match n.checked_sub(nest.stores.len()) {
                None => format!("out{n}"),
                Some(load) => format!("in{load}"),
            };
            buffers.push(self.b.buffer(elem(*dtype)?, &name));
        }
        self.sizes.push(self.b.scalar(Elem::I64, "extent"));
        for dim in 1..nest.rank {
            self.sizes.push(self.b.scalar(Elem::I64, &format!("size{dim}")));
        }
        if nest.rows.as_ref().is_some_and(|rows| rows.block.is_some()) {
            self.row_count = Some(self.b.scalar(Elem::I64, "rows"));
        }
        for (n, (_, strides)) in all.iter().enumerate() {
            if strides.len() != nest.rank {
                return Err(Diagnostic::internal("an access whose rank is not its nest's"));
            }
            let mut values = Vec::new();
            for (dim, stride) in strides.iter().enumerate() {
                values.push(match stride {
                    Stride::Zero => StrideValue::Zero,
                    Stride::One => StrideValue::One,
                    Stride::Dynamic => {
                        StrideValue::Value(self.b.scalar(Elem::I64, &format!("stride{n}_{dim}")))
                    }
                });
            }
            self.accesses.push((buffers[n], values));
        }
        for (n, dtype) in nest.scalars.iter().enumerate() {
            let scalar = self.b.scalar(elem(*dtype)?, &format!("s{n}"));
            self.scalars.push(scalar);
        }
        Ok(())
    }

    /// Splits a flat number into indices of the first `rank` dimensions, the last running fastest.
    pub(super) fn split(&mut self, flat: ValueId, rank: usize) -> Vec<ValueId> {
        let mut rest = flat;
        let mut indices = vec![flat; rank];
        for dim in (1..rank).rev() {
            let size = self.sizes[dim];
            indices[dim] = self.b.binary(Binary::Rem, rest, size);
            rest = self.b.binary(Binary::Div, rest, size);
        }
        if let Some(first) = indices.first_mut() {
            *first = rest;
        }
        indices
    }

    /// The sum over leading dimensions of index times stride; None where that is 0.
    pub(super) fn offset(&mut self, access: usize, indices: &[ValueId]) -> Option<ValueId> {
        let mut sum = None;
        for (dim, index) in indices.iter().enumerate() {
            sum = self.add_step(access, dim, *index, sum);
        }
        sum
    }

    /// `sum` plus index times stride of one dimension.
    pub(super) fn add_step(
        &mut self,
        access: usize,
        dim: usize,
        i: ValueId,
        sum: Option<ValueId>,
    ) -> Option<ValueId> {
        let term = match self.accesses[access].1[dim] {
            StrideValue::Zero => return sum,
            StrideValue::One => i,
            StrideValue::Value(stride) => self.b.binary(Binary::Mul, i, stride),
        };
        Some(match sum {
            Some(sum) => self.b.binary(Binary::Add, sum, term),
            None => term,
        })
    }

    /// Writes one instruction; `at` gives the values that it uses.
    pub(super) fn instruction(
        &mut self,
        program: &Program,
        n: usize,
        params: &[ValueId],
        at: impl Fn(&Sv) -> ValueId,
    ) -> Result<ValueId> {
        let (inst, dtype) = &program.insts()[n];
        Ok(match inst {
            Inst::Param(n) => *params
                .get(*n as usize)
                .ok_or_else(|| Diagnostic::internal("a scalar program with too many parameters"))?,
            Inst::Const(Scalar::Complex(_)) => {
                return Err(Diagnostic::unsupported("fused kernels do not compute with complex numbers"));
            }
            Inst::Const(c) => self.b.constant(*c, elem(*dtype)?),
            Inst::Unary(op, x) => self.b.unary(*op, at(x)),
            Inst::Binary(Binary::Mul, x, y) if is_one(program, *y) => at(x),
            Inst::Binary(op, x, y) => self.b.binary(*op, at(x), at(y)),
            Inst::Compare(op, x, y) => self.b.compare(*op, at(x), at(y)),
            Inst::Fma(x, y, z) if is_one(program, *y) => self.b.binary(Binary::Add, at(x), at(z)),
            Inst::Fma(x, y, z) => self.b.fma(at(x), at(y), at(z)),
            Inst::Select(c, x, y) => self.b.select(at(c), at(x), at(y)),
            Inst::Convert(x) => self.b.convert(at(x), elem(*dtype)?),
        })
    }
}

/// x * 1 is x, to the bit: what `alpha=1` leaves of itself.
fn is_one(program: &Program, value: Sv) -> bool {
    match program.insts()[value.index()].0 {
        Inst::Const(c) => c.to_f64() == 1.0,
        _ => false,
    }
}
