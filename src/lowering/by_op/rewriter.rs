//! What a lowering writes: host ops in front of the op that it replaces, and kernels that they call.

use super::OpCall;
use crate::diag::{Diagnostic, Result};
use crate::dialects::loops::{self, Ty};
use crate::dialects::shapes::Known;
use crate::dialects::{Registry, resolve};
use crate::ir::{Attr, Dim, Graph, OpId, Symbol, Type, TypeKind, ValueId};
use crate::tensor::DType;

/// Writes in front of one op.
pub struct Rewriter<'a> {
    graph: &'a mut Graph,
    anchor: OpId,
    registry: &'a Registry,
    /// Ops that were written.
    written: Vec<OpId>,
    /// Kernels that were launched: each with the name that was asked for, and the constant that names it.
    kernels: Vec<Launched>,
}

/// A kernel that host code calls.
pub(in crate::lowering) struct Launched {
    /// What its function is to be called.
    pub(in crate::lowering) name: String,
    pub(in crate::lowering) graph: Graph,
    /// The constant that names the function.
    pub(in crate::lowering) constant: OpId,
}

impl<'a> Rewriter<'a> {
    pub(in crate::lowering) fn new(
        graph: &'a mut Graph,
        anchor: OpId,
        registry: &'a Registry,
    ) -> Rewriter<'a> {
        Rewriter { graph, anchor, registry, written: Vec::new(), kernels: Vec::new() }
    }

    /// What was written, and the kernels.
    pub(in crate::lowering) fn finish(self) -> (Vec<OpId>, Vec<Launched>) {
        (self.written, self.kernels)
    }

    /// Takes back what was written.
    pub(in crate::lowering) fn undo(self) {
        for op in self.written.into_iter().rev() {
            self.graph.erase(op);
        }
    }

    fn place(&mut self, kind: &str, operands: &[ValueId], results: &[Type]) -> OpId {
        let op = self.graph.create(Symbol::new(kind), operands, results);
        self.graph.insert_before(op, self.anchor);
        let location = self.graph.location_id(self.anchor);
        self.graph.set_location_id(op, location);
        self.written.push(op);
        op
    }

    fn constant(&mut self, ty: Type, attr: Option<Attr>) -> ValueId {
        let op = self.place("prim::Constant", &[], &[]);
        if let Some(attr) = attr {
            self.graph.set_attr(op, "value", attr);
        }
        self.graph.add_result(op, ty)
    }

    /// A constant int.
    pub fn int(&mut self, value: i64) -> ValueId {
        self.constant(Type::int(), Some(Attr::Int(value)))
    }

    /// A constant float.
    pub fn float(&mut self, value: f64) -> ValueId {
        self.constant(Type::float(), Some(Attr::Float(value)))
    }

    /// A constant bool.
    pub fn bool(&mut self, value: bool) -> ValueId {
        self.constant(Type::bool(), Some(Attr::Bool(value)))
    }

    /// The constant `None`.
    pub fn none(&mut self) -> ValueId {
        self.constant(Type::none(), None)
    }

    /// A list of ints.
    pub fn ints(&mut self, items: &[ValueId]) -> ValueId {
        let op = self.place("prim::ListConstruct", items, &[]);
        self.graph.add_result(op, Type::list(Type::int()))
    }

    /// A list of constant ints.
    pub fn int_list(&mut self, items: &[i64]) -> ValueId {
        self.constant(Type::list(Type::int()), Some(Attr::Ints(items.into())))
    }

    /// An op with all its operands; gives its results. Fails where no overload takes them.
    pub fn op(&mut self, kind: &str, operands: &[ValueId]) -> Result<Vec<ValueId>> {
        let op = self.place(kind, operands, &[]);
        let row = resolve(self.registry, self.graph, op)?;
        let returns: Vec<Type> = row.schema()?.returns.iter().map(|r| r.ty.clone()).collect();
        Ok(returns.into_iter().map(|ty| self.graph.add_result(op, ty)).collect())
    }

    /// The same of an op that gives one value.
    pub fn value(&mut self, kind: &str, operands: &[ValueId]) -> Result<ValueId> {
        match self.op(kind, operands)?[..] {
            [value] => Ok(value),
            ref many => Err(Diagnostic::internal(format!("{kind} gives {} values", many.len()))),
        }
    }

    /// The size of a dimension of a tensor.
    pub fn size(&mut self, tensor: ValueId, dim: usize) -> Result<ValueId> {
        let dim = self.int(dim as i64);
        self.value("aten::size", &[tensor, dim])
    }

    /// The sizes of some dimensions of a tensor.
    pub fn sizes(&mut self, tensor: ValueId, dims: std::ops::Range<usize>) -> Result<Vec<ValueId>> {
        dims.map(|dim| self.size(tensor, dim)).collect()
    }

    /// The product of ints; 1 where there is none.
    pub fn product(&mut self, factors: &[ValueId]) -> Result<ValueId> {
        let Some((first, rest)) = factors.split_first() else { return Ok(self.int(1)) };
        rest.iter().try_fold(*first, |all, factor| self.value("aten::mul", &[all, *factor]))
    }

    /// The number of elements of a tensor.
    pub fn numel(&mut self, tensor: ValueId) -> Result<ValueId> {
        self.value("aten::numel", &[tensor])
    }

    /// A tensor with the same elements in order of rows, as kernels take them.
    pub fn contiguous(&mut self, tensor: ValueId) -> Result<ValueId> {
        let format = self.int(0);
        let result = self.value("aten::contiguous", &[tensor, format])?;
        self.keep_dtype(tensor, result);
        Ok(result)
    }

    /// A copy of a tensor in order of rows, to be stored to.
    pub fn copy(&mut self, tensor: ValueId) -> Result<ValueId> {
        let format = self.int(0);
        let result = self.value("aten::clone", &[tensor, format])?;
        self.keep_dtype(tensor, result);
        Ok(result)
    }

    /// A tensor converted to a dtype.
    pub fn convert(&mut self, tensor: ValueId, dtype: DType) -> Result<ValueId> {
        let (code, no, format) = (self.int(dtype.code()), self.bool(false), self.none());
        let result = self.value("aten::to", &[tensor, code, no, no, format])?;
        self.set_dtype(result, dtype);
        Ok(result)
    }

    /// A new tensor whose elements are not set.
    pub fn empty(&mut self, sizes: &[ValueId], dtype: DType) -> Result<ValueId> {
        self.create("aten::empty", sizes, dtype)
    }

    /// A new tensor of zeros.
    pub fn zeros(&mut self, sizes: &[ValueId], dtype: DType) -> Result<ValueId> {
        self.create("aten::zeros", sizes, dtype)
    }

    fn create(&mut self, kind: &str, sizes: &[ValueId], dtype: DType) -> Result<ValueId> {
        let (sizes, code, none) = (self.ints(sizes), self.int(dtype.code()), self.none());
        let mut operands = vec![sizes, code, none, none, none];
        operands.extend((kind == "aten::empty").then_some(none));
        let result = self.value(kind, &operands)?;
        self.set_dtype(result, dtype);
        Ok(result)
    }

    /// The sizes of a result of the op, as far as they follow from the sizes of its operands.
    pub fn result_sizes(&mut self, call: &OpCall, n: usize) -> Result<Vec<ValueId>> {
        let refused = |why: String| Diagnostic::unsupported(why);
        let Known::Tensor(result) = call.result(n) else {
            return Err(refused(format!("types do not imply that result {n} is a tensor")));
        };
        let Some(dims) = result.sizes.clone() else {
            return Err(refused(format!("the rank of result {n} does not follow from types")));
        };
        let mut sizes = Vec::with_capacity(dims.len());
        for (at, dim) in dims.iter().enumerate() {
            sizes.push(match dim {
                Dim::Known(size) => self.int(*size),
                dim => match source(call, *dim) {
                    Some((operand, dim)) => self.size(operand, dim)?,
                    None => {
                        return Err(refused(format!("size {at} of result {n} does not follow from types")));
                    }
                },
            });
        }
        Ok(sizes)
    }

    /// Calls a kernel with contiguous tensors and numbers, in the order of its parameters; gives the tensors that it stores to.
    /// The name is that of its function; another kernel of that name gets a number after it. Fails where the kernel breaks
    /// the laws of the `loop` dialect or the arguments are not of its parameters' kinds.
    pub fn launch(&mut self, name: &str, kernel: Graph, arguments: &[ValueId]) -> Result<Vec<ValueId>> {
        let decoded = loops::decode(&kernel)?;
        let params = &decoded.params;
        if params.len() != arguments.len() {
            let message =
                format!("the kernel '{name}' takes {} arguments, not {}", params.len(), arguments.len());
            return Err(Diagnostic::verify(message));
        }
        for (param, argument) in params.iter().zip(arguments) {
            let (is_buffer, is_tensor) =
                (matches!(param.ty, Ty::Buffer(_)), self.graph.ty(*argument).is_tensor());
            if is_buffer != is_tensor {
                let given = self.graph.ty(*argument);
                return Err(Diagnostic::verify(format!(
                    "the kernel '{name}' is given {given} where it takes {:?}",
                    param.ty
                )));
            }
        }
        let stored: Vec<ValueId> = params
            .iter()
            .zip(arguments)
            .filter(|(param, _)| param.written)
            .map(|(_, value)| *value)
            .collect();
        let symbol = Symbol::new(name);
        let function = self.place("prim::Constant", &[], &[Type::new(TypeKind::Function(symbol))]);
        self.graph.set_attr(function, "name", Attr::Str(name.into()));
        let operands: Vec<ValueId> =
            self.graph.results(function).into_iter().chain(arguments.iter().copied()).collect();
        let types: Vec<Type> = stored.iter().map(|value| self.graph.ty(*value).clone()).collect();
        let call = self.place("prim::CallFunction", &operands, &types);
        self.kernels.push(Launched { name: name.to_string(), graph: kernel, constant: function });
        Ok(self.graph.results(call).to_vec())
    }

    fn keep_dtype(&mut self, from: ValueId, to: ValueId) {
        if let Some(dtype) = self.graph.ty(from).as_tensor().and_then(|t| t.dtype) {
            self.set_dtype(to, dtype);
        }
    }

    fn set_dtype(&mut self, value: ValueId, dtype: DType) {
        if let TypeKind::Tensor(ty) = self.graph.ty(value).kind() {
            let ty = crate::ir::TensorType { dtype: Some(dtype), ..ty.clone() };
            self.graph.set_type(value, Type::new(TypeKind::Tensor(ty)));
        }
    }
}

/// An operand with a dimension of this size.
fn source(call: &OpCall, dim: Dim) -> Option<(ValueId, usize)> {
    call.known.iter().zip(&call.operands).find_map(|(known, operand)| {
        let Known::Tensor(tensor) = known else { return None };
        let at = tensor.sizes.as_ref()?.iter().position(|other| *other == dim && dim != Dim::Unknown)?;
        Some((*operand, at))
    })
}
