//! Reading ops that combine the elements of rows: what they combine becomes a reduction of the group, its answer a
//! parameter of the group's program.

use super::{BlockSums, Form, Known, Leaf, Leaves, Reader, RowMeaning, RowReduction, Source, Tensor};
use crate::diag::{Diagnostic, Result};
use crate::dialects::{Op, Variant};
use crate::ir::{Attr, OpId, Schema, TypeKind};
use crate::tensor::Scalar;
use smallvec::SmallVec;

impl<'a> Reader<'a> {
    /// The row of an op that combines the elements of rows.
    pub(super) fn row_meaning(&self, op: OpId) -> Option<(&'a Op, RowMeaning)> {
        let mut overloads = self.registry.overloads(self.graph.kind(op)).iter();
        overloads.find_map(|candidate| {
            let fits = candidate.variant() == Variant::Plain
                && candidate
                    .schema()
                    .is_ok_and(|schema| self.fits(op, schema) && self.constants_fit(op, schema));
            if fits { Some((candidate, candidate.def().rows?)) } else { None }
        })
    }

    /// Whether constants are of the types that arguments want, which distinguishes overloads with one dimension.
    fn constants_fit(&self, op: OpId, schema: &Schema) -> bool {
        self.graph.operands(op).iter().zip(&schema.arguments).all(|(value, argument)| {
            let (kind, optional) = match argument.ty.kind() {
                TypeKind::Optional(inner) => (inner.kind(), true),
                kind => (kind, false),
            };
            match &self.known[value.index()] {
                Some(Known::Number(number)) => match kind {
                    TypeKind::Bool => matches!(number, Scalar::Bool(_)),
                    TypeKind::Int | TypeKind::List(_) => matches!(number, Scalar::Int(_)),
                    _ => true,
                },
                Some(Known::Other(Attr::None)) => optional,
                Some(Known::Other(_)) => matches!(kind, TypeKind::List(_)),
                _ => true,
            }
        })
    }

    pub(super) fn along_rows(&mut self, op: OpId) -> Result<()> {
        let Some((row, meaning)) = self.row_meaning(op) else {
            return Err(Diagnostic::internal("an op without a meaning along rows"));
        };
        let call = self.call(op, row)?;
        if !call.has_dims || call.rows.dims.is_empty() || self.has_parts(&call.leaves) {
            return Err(self.refuse(op, "it needs all dimensions, of whole inputs"));
        }
        let first = self.reductions.len();
        let before = self.program.reductions().len();
        self.program.with_statics(call.statics);
        let value = meaning.function()(&mut self.program, &call.values);
        let value = value.ok_or_else(|| self.refuse(op, "of the dtype of its operand"))?;
        super::supported(self.program.dtype(value))?;
        for reduction in &self.program.reductions()[before..] {
            self.reductions.push(RowReduction {
                op: reduction.op,
                value: reduction.value,
                leaves: call.leaves.clone(),
                dims: call.rows.dims.clone(),
            });
        }
        self.name_parameters();
        let leaves = match meaning {
            RowMeaning::Row(_) => call.leaves,
            RowMeaning::Number(_) => SmallVec::from_slice(&[Leaf::Reduced(first, call.rows.keepdim)]),
        };
        if let Some(out) = self.graph.result(op, 0) {
            let form = match leaves[..] {
                [leaf @ Leaf::Reduced(..)] => Form::Leaf(leaf),
                _ => Form::RowMajor(call.forms),
            };
            let form = Some(self.form(form));
            let tensor = Tensor { value, has_dims: true, leaves, form };
            self.known[out.index()] = Some(Known::Tensor(tensor));
        }
        Ok(())
    }

    /// Sums of blocks of rows: only an output of the group can be such sums.
    pub(super) fn block_sums(&mut self, op: OpId) -> Result<()> {
        let number = |reader: &Self, n: usize| match reader.graph.operand(op, n).map(|v| reader.known(op, v))
        {
            Some(Ok(Known::Number(Scalar::Int(number)))) => Some(number),
            _ => None,
        };
        let dims = number(self, 1).and_then(|dims| usize::try_from(dims).ok()).filter(|dims| *dims > 0);
        let (Some(dims), Some(rows)) = (dims, number(self, 2).filter(|rows| *rows > 0)) else {
            return Err(self.refuse(op, "its dimensions and rows are not constants"));
        };
        let operand = self.graph.operand(op, 0).ok_or_else(|| self.refuse(op, "it has no operand"))?;
        let tensor = self.tensor(op, operand)?;
        let dtype = self.program.dtype(tensor.value);
        if !dtype.is_floating() || !tensor.has_dims || self.has_parts(&tensor.leaves) {
            return Err(self.refuse(op, "it needs floats, of whole inputs"));
        }
        if let Some(out) = self.graph.result(op, 0) {
            self.known[out.index()] = Some(Known::Sums(tensor, BlockSums { dims, rows }));
        }
        Ok(())
    }

    /// Whether a leaf is a part of an input, or lacks dimensions.
    fn has_parts(&self, leaves: &Leaves) -> bool {
        leaves.iter().any(|leaf| match leaf {
            Leaf::Load(load) => self.loads[*load].chunk.is_some(),
            Leaf::Reduced(_, keeps) => !keeps,
        })
    }

    /// Says what the parameters are that a meaning has added.
    fn name_parameters(&mut self) {
        for n in self.params.len()..self.program.param_count() {
            let counted = self.program.counted().is_some_and(|count| {
                matches!(self.program.insts()[count.index()].0, super::Inst::Param(p) if p as usize == n)
            });
            self.params.push(if counted { Source::Count } else { Source::Reduction });
        }
    }
}
