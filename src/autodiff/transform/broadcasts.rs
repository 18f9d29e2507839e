//! Broadcasting in backward graphs whose sizes are known. Sums to a size become sums over dimensions, which fuse where these are
//! the last; what repeats elements goes after the elementwise work that is done to it, and goes away where that broadcasts
//! anyway: otherwise each would stand between two kernels.

use super::texts::Texts;
use crate::diag::Result;
use crate::dialects::shapes::pointwise::broadcast;
use crate::dialects::{Fact, Family, Op, Registry, Variant, resolve};
use crate::ir::{Attr, Dim, Graph, OpId, TensorType, Type, TypeKind, ValueId};
use hashbrown::HashMap;
use std::fmt::Write;
use std::sync::Arc;

/// Changes the ops of the outermost block.
pub(super) fn run(graph: &mut Graph, registry: &Arc<Registry>, texts: &Texts) -> Result<()> {
    let mut next = graph.first_op(graph.root());
    while let Some(op) = next {
        next = graph.next(op);
        if graph.kind(op) == "prim::Constant" || !graph.nested_blocks(op).is_empty() {
            continue;
        }
        let Ok(row) = resolve(registry, graph, op) else { continue };
        if row.def().facts.contains(&Fact::SumsToSize) {
            lower_sum(graph, registry, texts, op)?;
        } else if is_elementwise(&row) {
            let operands = Operands::of(graph, registry, op);
            if let Some(operands) = operands
                && !operands.drop_repeats(graph, op)
            {
                operands.sink(graph, op);
            }
        }
    }
    Ok(())
}

fn is_elementwise(row: &Op) -> bool {
    let def = row.def();
    def.family == Family::Elementwise && def.scalar.is_some() && row.variant() == Variant::Plain
}

/// Makes sums over dimensions of a sum to a known size.
fn lower_sum(graph: &mut Graph, registry: &Arc<Registry>, texts: &Texts, op: OpId) -> Result<()> {
    let size =
        graph.operand(op, 1).and_then(|size| graph.def_op(size)).and_then(|op| graph.attr(op, "value"));
    let Some(Attr::Ints(size)) = size.cloned() else { return Ok(()) };
    let Some(own) = graph.operand(op, 0).and_then(|value| sizes_of(graph, value)) else { return Ok(()) };
    let Some(lead) = own.len().checked_sub(size.len()) else { return Ok(()) };
    let mut text = "def sum_to(self: Tensor):\n".to_string();
    if lead > 0 {
        let dims: Vec<usize> = (0..lead).collect();
        let _ = writeln!(text, "    self = self.sum({dims:?})");
    }
    let inner = own.iter().skip(lead).zip(size.iter()).enumerate();
    let dims: Vec<usize> = inner.filter(|(_, (own, wanted))| own != wanted).map(|(n, _)| n).collect();
    if !dims.is_empty() {
        let _ = writeln!(text, "    self = self.sum({dims:?}, keepdim=True)");
    }
    text.push_str("    return self\n");
    let body = texts.graph(registry, "a sum to a size", &text)?;
    let mut map: HashMap<ValueId, ValueId> =
        body.inputs().iter().copied().zip(graph.operands(op).to_vec()).collect();
    for inner in body.block_ops(body.root()) {
        let copy = graph.clone_op(Some(&body), inner, &mut map);
        graph.set_location_id(copy, graph.location_id(op));
        graph.insert_before(copy, op);
    }
    if let Some(sum) = body.outputs().first().and_then(|output| map.get(output)).copied()
        && let Some(result) = graph.result(op, 0)
    {
        graph.set_type(sum, graph.ty(result).clone());
        graph.replace_op(op, &[sum]);
    }
    Ok(())
}

/// The operands of an elementwise op all of whose tensors have one dtype.
struct Operands {
    result: Vec<i64>,
    /// Sizes of each tensor operand.
    sizes: Vec<(usize, Vec<i64>)>,
    /// Operands that repeat elements: which, by what op, of what, of what sizes.
    repeats: Vec<(usize, OpId, ValueId, Vec<i64>)>,
}

impl Operands {
    /// None where no operand repeats elements, or something is not known.
    fn of(graph: &Graph, registry: &Registry, op: OpId) -> Option<Operands> {
        let results = graph.results(op);
        let [result] = results.as_slice() else { return None };
        let (mut sizes, mut repeats, mut dtype) = (Vec::new(), Vec::new(), None);
        for (n, value) in graph.operands(op).iter().enumerate() {
            let Some(tensor) = graph.ty(*value).as_tensor() else { continue };
            if *dtype.get_or_insert(tensor.dtype?) != tensor.dtype? {
                return None;
            }
            sizes.push((n, sizes_of(graph, *value)?));
            let def = graph.def_op(*value);
            let repeats_elements = |def: &OpId| {
                resolve(registry, graph, *def).is_ok_and(|row| row.def().facts.contains(&Fact::Broadcasts))
            };
            if let Some(def) = def.filter(repeats_elements)
                && let Some(source) = graph.operand(def, 0)
                && let Some(own) = sizes_of(graph, source)
            {
                repeats.push((n, def, source, own));
            }
        }
        let result = sizes_of(graph, *result)?;
        (!repeats.is_empty()).then_some(Operands { result, sizes, repeats })
    }

    /// The sizes of the result where some operands are replaced by what they repeat.
    fn broadcast(&self, replaced: impl Fn(usize) -> bool) -> Vec<i64> {
        let mut out: Vec<Dim> = Vec::new();
        for (n, own) in &self.sizes {
            let source =
                self.repeats.iter().find(|(at, ..)| at == n && replaced(*n)).map(|(.., sizes)| sizes);
            let dims: Vec<Dim> = source.unwrap_or(own).iter().map(|n| Dim::Known(*n)).collect();
            out = broadcast(&out, &dims);
        }
        out.into_iter().map(|dim| dim.known().unwrap_or(-1)).collect()
    }

    /// Replaces operands by what they repeat, where the result has the same sizes all the same; whether there were any.
    fn drop_repeats(&self, graph: &mut Graph, op: OpId) -> bool {
        let mut dropped: Vec<usize> = Vec::new();
        for (n, _, source, _) in &self.repeats {
            if self.broadcast(|at| at == *n || dropped.contains(&at)) == self.result {
                graph.set_operand(op, *n, *source);
                dropped.push(*n);
            }
        }
        !dropped.is_empty()
    }

    /// Does the work before the elements are repeated.
    fn sink(&self, graph: &mut Graph, op: OpId) {
        let small = self.broadcast(|_| true);
        let elements = |sizes: &[i64]| sizes.iter().fold(1i64, |n, size| n.saturating_mul(*size));
        let Some((_, repeat, ..)) = self.repeats.first() else { return };
        // What repeats gives the sizes of the result only if they are its own.
        let repeated = graph.result(*repeat, 0).and_then(|value| sizes_of(graph, value));
        if elements(&small) >= elements(&self.result) || repeated.as_ref() != Some(&self.result) {
            return;
        }
        let Some(result) = graph.result(op, 0) else { return };
        let mut map: HashMap<ValueId, ValueId> = HashMap::new();
        for (n, _, source, _) in &self.repeats {
            if let Some(operand) = graph.operand(op, *n) {
                map.insert(operand, *source);
            }
        }
        let work = graph.clone_op(None, op, &mut map);
        graph.insert_before(work, op);
        let Some(value) = graph.result(work, 0) else { return };
        let ty = graph.ty(result).clone();
        graph.set_type(value, with_sizes(&ty, &small));
        let mut map: HashMap<ValueId, ValueId> = HashMap::new();
        if let Some(source) = graph.operand(*repeat, 0) {
            map.insert(source, value);
        }
        let repeat = graph.clone_op(None, *repeat, &mut map);
        graph.insert_before(repeat, op);
        if let Some(wide) = graph.result(repeat, 0) {
            graph.set_type(wide, with_sizes(&ty, &self.result));
            graph.replace_op(op, &[wide]);
        }
    }
}

fn sizes_of(graph: &Graph, value: ValueId) -> Option<Vec<i64>> {
    graph.ty(value).as_tensor()?.sizes.as_ref()?.iter().map(|dim| dim.known()).collect()
}

/// A tensor type of other sizes, of whose strides nothing is known.
fn with_sizes(ty: &Type, sizes: &[i64]) -> Type {
    let sizes: Vec<Dim> = sizes.iter().map(|n| Dim::Known(*n)).collect();
    match ty.as_tensor() {
        Some(tensor) => {
            let tensor = TensorType { sizes: Some(Arc::from(sizes)), strides: None, ..tensor.clone() };
            Type::new(TypeKind::Tensor(tensor))
        }
        None => ty.clone(),
    }
}
