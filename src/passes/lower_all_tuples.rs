//! Removes tuples: parts take their place, at the borders of the graph, of branches and of loops too.
//!
//! Inputs and outputs of the graph that are tuples become several, so that callers must follow: this is for graphs
//! that run alone. With `inner` they stay. Constants that are tuples are made of constants. A tuple inside of a list or dictionary, or one
//! that an op other than control flow gives or takes, stays. Pipelines that keep a function's schema use
//! lower-simple-tuples.

use super::{Context, PassOption, constants, dce, tuples, walk};
use crate::diag::{Diagnostic, Result};
use crate::dialects::Registry;
use crate::ir::{BlockId, Graph, OpId, Type, ValueId};
use crate::value::Value;

/// Control flow, and ops that take a tuple as if it were its parts.
const FORWARDING: &[&str] = &["prim::If", "prim::Loop", "aten::format", "aten::__getitem__"];

pub(super) const OPTIONS: &[PassOption] = &[PassOption::bool(
    "inner",
    false,
    "keep inputs and outputs of the graph, and the types of parts, unchanged",
)];

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let is_inner = context.flag("inner")?;
    let mut pass = Lowering { context, depth: 0, is_inner, changed: false };
    let root = graph.root();
    if !is_inner {
        pass.params(graph, root);
    }
    pass.block(graph, root);
    if !is_inner {
        pass.outputs(graph);
    }
    matched(graph, context.registry)?;
    Ok(dce::without_aliases(graph, context) || pass.changed)
}

/// Refuses what cannot be lowered, as PyTorch does: control flow that gives the parts of a tuple in one place and, in
/// another, a whole tuple that is the result of an opaque op.
fn matched(graph: &Graph, registry: &Registry) -> Result<()> {
    for op in graph.all_ops() {
        let row = registry.overloads(graph.kind(op)).first();
        let structure = row.and_then(|row| row.def().structure());
        if structure.is_some_and(|structure| structure.violation(graph, op).is_some()) {
            let error = Diagnostic::unsupported("tuple use not matched to tuple construct");
            return Err(error.note(format!("in `{}`", graph.op_line(op).trim())));
        }
    }
    Ok(())
}

struct Lowering<'a> {
    context: &'a Context<'a>,
    /// How many loops are around the op. What a loop carries and gives must stay alike, so that a loop is one step
    /// with everything in it.
    depth: usize,
    /// Whether inputs and outputs stay.
    is_inner: bool,
    changed: bool,
}

impl Lowering<'_> {
    /// The type of a part that control flow gives or carries: a tensor, as PyTorch's pass says of all parts, but for tuples, which are
    /// split further. Graphs that are to run keep their types.
    fn part_type(&self, ty: &Type) -> Type {
        if self.is_inner || ty.tuple_elements().is_some() { ty.clone() } else { Type::tensor() }
    }

    fn step(&self, what: impl FnOnce() -> String) -> bool {
        self.depth > 0 || self.context.step(what)
    }

    fn block(&mut self, graph: &mut Graph, block: BlockId) {
        walk::block(graph, block, |graph, op| self.op(graph, op));
    }

    fn op(&mut self, graph: &mut Graph, op: OpId) {
        match graph.kind(op).as_str() {
            "prim::Constant" => {
                let is_tuple = graph.result(op, 0).is_some_and(|v| graph.ty(v).tuple_elements().is_some());
                if is_tuple && self.step(|| format!("splits {}", graph.op_line(op))) {
                    self.changed |= split_constant(graph, op);
                }
            }
            "prim::TupleConstruct" => {}
            "prim::TupleUnpack" | "prim::TupleIndex" | "prim::TupleSlice" => {
                let may = |graph: &Graph| self.step(|| format!("takes apart for {}", graph.op_line(op)));
                let changed = tuples::take_apart(graph, op, &may);
                self.changed |= changed;
            }
            "prim::If" => {
                for block in graph.nested_blocks(op).to_vec() {
                    self.block(graph, block);
                }
                self.results(graph, op, 0);
            }
            "prim::Loop" => {
                if !self.step(|| format!("lowers {}", graph.op_line(op))) {
                    return;
                }
                self.depth += 1;
                self.carried(graph, op);
                for block in graph.nested_blocks(op).to_vec() {
                    self.block(graph, block);
                }
                self.results(graph, op, 1);
                self.depth -= 1;
            }
            "prim::Uninitialized" => self.spread(graph, op),
            kind if FORWARDING.contains(&kind) => {
                self.operands(graph, op);
                self.spread(graph, op);
            }
            _ => {}
        }
    }

    /// Operands that are tuples become their parts.
    fn operands(&mut self, graph: &mut Graph, op: OpId) {
        let mut n = 0;
        while let Some(value) = graph.operand(op, n) {
            match tuple_parts(graph, value) {
                Some(parts) => {
                    if !self.step(|| format!("splits operand {n} of {}", graph.op_line(op))) {
                        return;
                    }
                    graph.remove_operand(op, n);
                    for (i, part) in parts.into_iter().enumerate() {
                        graph.insert_operand(op, n + i, part);
                    }
                    self.changed = true;
                }
                None => n += 1,
            }
        }
    }

    /// Inputs that are tuples become several, and a tuple of them at the top of the block. An unused one
    /// stays.
    fn params(&mut self, graph: &mut Graph, block: BlockId) {
        let mut n = 0;
        while let Some(param) = graph.params(block).get(n).copied() {
            let elements = graph.ty(param).tuple_elements().filter(|_| graph.has_uses(param));
            let Some(elements) = elements.map(<[Type]>::to_vec) else {
                n += 1;
                continue;
            };
            if !self.step(|| format!("splits input {n} of type {}", graph.ty(param))) {
                return;
            }
            self.split_param(graph, block, n, param, &elements);
        }
    }

    /// Results that are tuples become several, and a tuple of them after the op. The first unused one ends it.
    fn spread(&mut self, graph: &mut Graph, op: OpId) {
        let mut n = 0;
        while let Some(result) = graph.result(op, n).filter(|result| graph.has_uses(*result)) {
            let Some(elements) = graph.ty(result).tuple_elements().map(<[Type]>::to_vec) else {
                n += 1;
                continue;
            };
            if !self.step(|| format!("splits result {n} of {}", graph.op_line(op))) {
                return;
            }
            self.split_result(graph, op, n, result, &elements);
        }
    }

    fn split_result(&mut self, graph: &mut Graph, op: OpId, n: usize, result: ValueId, elements: &[Type]) {
        let parts: Vec<ValueId> = elements
            .iter()
            .enumerate()
            .map(|(i, ty)| graph.insert_result(op, n + 1 + i, ty.clone()))
            .collect();
        let ty = graph.ty(result).clone();
        let anchor = graph.next(op).or_else(|| graph.parent(op).map(|block| graph.terminator(block)));
        if let Some(anchor) = anchor {
            let tuple = tuples::construct_before(graph, anchor, &parts, ty);
            graph.replace_all_uses(result, tuple);
        }
        graph.remove_result(op, n);
        self.changed = true;
    }

    fn split_param(
        &mut self,
        graph: &mut Graph,
        block: BlockId,
        n: usize,
        param: ValueId,
        elements: &[Type],
    ) {
        let parts: Vec<ValueId> = elements
            .iter()
            .enumerate()
            .map(|(i, ty)| graph.insert_param(block, n + 1 + i, ty.clone()))
            .collect();
        let ty = graph.ty(param).clone();
        let anchor = graph.first_op(block).unwrap_or_else(|| graph.terminator(block));
        let tuple = tuples::construct_before(graph, anchor, &parts, ty);
        graph.replace_all_uses(param, tuple);
        graph.remove_param(block, n);
        self.changed = true;
    }

    /// Tuples that enter a loop are carried part by part.
    fn carried(&mut self, graph: &mut Graph, op: OpId) {
        let Some(body) = graph.nested_blocks(op).first().copied() else { return };
        let mut n = 0;
        while let Some(value) = graph.operand(op, n + 2) {
            let (Some(parts), Some(param)) =
                (tuple_parts(graph, value), graph.params(body).get(n + 1).copied())
            else {
                n += 1;
                continue;
            };
            graph.remove_operand(op, n + 2);
            for (i, part) in parts.iter().enumerate() {
                graph.insert_operand(op, n + 2 + i, *part);
            }
            // What the loop begins with may say more than what it carries.
            let declared = graph.ty(param).tuple_elements().map(<[Type]>::to_vec).unwrap_or_default();
            let type_of = |(n, part): (usize, &ValueId)| match declared.get(n).filter(|_| self.is_inner) {
                Some(declared) => declared.clone(),
                None => self.part_type(graph.ty(*part)),
            };
            let elements: Vec<Type> = parts.iter().enumerate().map(type_of).collect();
            self.split_param(graph, body, n + 1, param, &elements);
        }
    }

    /// What blocks give as a tuple they give part by part, and so does the op.
    fn results(&mut self, graph: &mut Graph, op: OpId, skip: usize) {
        let blocks: Vec<BlockId> = graph.nested_blocks(op).to_vec();
        let mut n = 0;
        while let Some(result) = graph.result(op, n) {
            let elements = graph.ty(result).tuple_elements().map(<[Type]>::to_vec);
            let parts: Option<Vec<Vec<ValueId>>> = elements.as_ref().and_then(|_| {
                blocks.iter().map(|block| tuple_parts(graph, graph.block_results(*block)[n + skip])).collect()
            });
            let (Some(elements), Some(parts)) = (elements, parts) else {
                n += 1;
                continue;
            };
            if !self.step(|| format!("splits result {n} of {}", graph.op_line(op))) {
                return;
            }
            for (block, parts) in blocks.iter().zip(parts) {
                let mut results = graph.block_results(*block).to_vec();
                results.splice(n + skip..=n + skip, parts);
                graph.set_block_results(*block, &results);
            }
            let elements: Vec<Type> = elements.iter().map(|ty| self.part_type(ty)).collect();
            self.split_result(graph, op, n, result, &elements);
        }
    }

    fn outputs(&mut self, graph: &mut Graph) {
        let root = graph.root();
        let mut outputs = graph.outputs().to_vec();
        let mut n = 0;
        while let Some(value) = outputs.get(n).copied() {
            match tuple_parts(graph, value) {
                Some(parts) if self.step(|| format!("splits output {n}")) => {
                    outputs.splice(n..=n, parts);
                    self.changed = true;
                }
                Some(_) | None => n += 1,
            }
        }
        graph.set_block_results(root, &outputs);
    }
}

/// The parts of a value whose type says that it is a tuple.
fn tuple_parts(graph: &Graph, value: ValueId) -> Option<Vec<ValueId>> {
    graph.ty(value).tuple_elements()?;
    tuples::parts(graph, value)
}

/// A constant tuple becomes a tuple of constants.
fn split_constant(graph: &mut Graph, op: OpId) -> bool {
    let Some(result) = graph.result(op, 0) else { return false };
    if graph.ty(result).tuple_elements().is_none() {
        return false;
    }
    let Some(Value::Tuple(tuple)) = constants::value_of(graph, result) else { return false };
    let ty = graph.ty(result).clone();
    let mut parts = Vec::new();
    let mut made = Vec::new();
    for (n, item) in tuple.items().iter().enumerate() {
        let Some(part) = constants::insert_before(graph, op, item) else { return false };
        if let Some(element) = ty.tuple_elements().and_then(|e| e.get(n))
            && !matches!(item, Value::Tensor(_))
        {
            graph.set_type(part, element.clone());
        }
        parts.push(part);
        made.extend(graph.def_op(part));
    }
    let whole = tuples::construct_before(graph, op, &parts, ty);
    graph.replace_all_uses(result, whole);
    for part in made {
        split_constant(graph, part);
    }
    true
}
