//! What a call gives that records gradients: tensors, which the tape knows, and what stands around them. Tuples, lists and
//! dictionaries at the end of its graph are taken apart, so that the graph gives what they are made of, and made again when the
//! call has ended. So are views of what the call was given, and views of a tensor that it gives as well: the tape records them by
//! themselves, as it does where a program is run op by op. It does not know how the graph is differentiated.

use super::super::code::{self, Code};
use super::super::inner::Inner;
use super::super::interpreter::execute;
use crate::diag::{Diagnostic, Result};
use crate::dialects::{Family, Registry, Run, resolve};
use crate::ir::{Graph, OpId, ValueId};
use crate::value::Value;
use hashbrown::{HashMap, HashSet};
use indexmap::IndexSet;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How the results of a call are made of what its graph gives.
pub(super) struct Results {
    /// From tensors that the graph gives, other values that it gives, and operands that are given on, to the results.
    code: Arc<Code>,
    _graph: Arc<Graph>,
}

/// What results are made of.
#[derive(Serialize, Deserialize)]
pub(super) struct Parts {
    /// Tensors that the graph gives: its first outputs.
    pub(super) tensors: usize,
    /// Other values that it gives: the outputs after these.
    pub(super) others: usize,
    /// Operands that the call gives on.
    pub(super) given: Vec<usize>,
}

/// Lets a graph give what its outputs are made of. Gives the graph that makes them: of tensors, other values and operands that are
/// given on.
pub(super) fn take_apart(graph: &mut Graph, registry: &Registry) -> Result<(Graph, Parts)> {
    let outputs = graph.outputs().to_vec();
    let mut leaves = IndexSet::new();
    let mut makers = Makers { registry, shown: HashSet::new() };
    outputs.iter().for_each(|output| makers.collect(graph, *output, &mut leaves));
    if makers.find_shown(graph, &leaves) {
        leaves.clear();
        outputs.iter().for_each(|output| makers.collect(graph, *output, &mut leaves));
    }
    let inputs = graph.inputs().to_vec();
    let (given, made): (Vec<ValueId>, Vec<ValueId>) =
        leaves.into_iter().partition(|leaf| inputs.contains(leaf));
    let (tensors, others): (Vec<ValueId>, Vec<ValueId>) =
        made.into_iter().partition(|leaf| graph.ty(*leaf).is_tensor());
    let mut rebuilt = Graph::new();
    let mut map = HashMap::new();
    for leaf in tensors.iter().chain(&others).chain(&given) {
        map.insert(*leaf, rebuilt.add_input(graph.ty(*leaf).clone()));
    }
    for output in &outputs {
        makers.make_again(graph, *output, &mut rebuilt, &mut map);
    }
    let again: Option<Vec<ValueId>> = outputs.iter().map(|output| map.get(output).copied()).collect();
    let again = again.ok_or_else(|| Diagnostic::internal("a result that is made of nothing"))?;
    let root = rebuilt.root();
    rebuilt.set_block_results(root, &again);
    let root = graph.root();
    let front: Vec<ValueId> = tensors.iter().chain(&others).copied().collect();
    graph.set_block_results(root, &front);
    outputs.iter().for_each(|output| drop_made(graph, *output));
    let given = given.iter().filter_map(|leaf| inputs.iter().position(|input| input == leaf)).collect();
    Ok((rebuilt, Parts { tensors: tensors.len(), others: others.len(), given }))
}

impl Results {
    /// Of the graph that makes them.
    pub(super) fn new(graph: Graph, context: code::Context<'_>) -> Result<Results> {
        let graph = Arc::new(graph);
        let code = Arc::new(Code::compile(context, &graph, "results")?);
        Ok(Results { code, _graph: graph })
    }

    /// The results of a call, of what its graph gave and of operands that are given on.
    pub(super) fn make(&self, program: &Arc<Inner>, parts: Vec<Value>, run: &Run) -> Result<Vec<Value>> {
        Ok(execute(program, run, Arc::clone(&self.code), parts)?.into_iter().collect())
    }
}

/// Which ops make results anew.
struct Makers<'a> {
    registry: &'a Registry,
    /// Tensors of which several results are views, or one is and another one is the tensor itself; and inputs with views.
    shown: HashSet<ValueId>,
}

impl Makers<'_> {
    /// The op that makes a result, where it can be made as well when the call has ended: a constant, a tuple, a list or dictionary
    /// that nothing else sees, a view of what is shown in other ways.
    fn maker(&self, graph: &Graph, value: ValueId) -> Option<OpId> {
        let op = graph.def_op(value)?;
        match graph.kind(op).as_str() {
            "prim::Constant" | "prim::TupleConstruct" => Some(op),
            "prim::ListConstruct" | "prim::DictConstruct" => graph.has_one_use(value).then_some(op),
            _ => {
                let base = self.base(graph, value);
                (base != value && self.shown.contains(&base)).then_some(op)
            }
        }
    }

    /// The tensor that a value is a view of, or itself.
    fn base(&self, graph: &Graph, mut value: ValueId) -> ValueId {
        while graph.ty(value).is_tensor()
            && let Some(op) = graph.def_op(value)
            && graph.result_count(op) == 1
            && resolve(self.registry, graph, op).is_ok_and(|row| row.def().family == Family::View)
            && let Some(of) = graph.operand(op, 0).filter(|of| graph.ty(*of).is_tensor())
        {
            value = of;
        }
        value
    }

    /// Finds what results are views of and that is given or shown otherwise, too; says whether there is any.
    fn find_shown(&mut self, graph: &Graph, leaves: &IndexSet<ValueId>) -> bool {
        let mut bases: HashMap<ValueId, usize> = HashMap::new();
        for leaf in leaves.iter().filter(|leaf| graph.ty(**leaf).is_tensor()) {
            *bases.entry(self.base(graph, *leaf)).or_default() += 1;
        }
        let inputs = graph.inputs();
        self.shown = bases
            .into_iter()
            .filter(|(base, count)| *count > 1 || inputs.contains(base) && !leaves.contains(base))
            .map(|(base, _)| base)
            .collect();
        !self.shown.is_empty()
    }

    /// What a result is made of.
    fn collect(&self, graph: &Graph, value: ValueId, leaves: &mut IndexSet<ValueId>) {
        let Some(op) = self.maker(graph, value) else {
            leaves.insert(value);
            return;
        };
        for operand in graph.operands(op) {
            stacker::maybe_grow(64 << 10, 1 << 20, || self.collect(graph, *operand, leaves));
        }
    }

    /// Makes a result of what it is made of.
    fn make_again(
        &self,
        graph: &Graph,
        value: ValueId,
        rebuilt: &mut Graph,
        map: &mut HashMap<ValueId, ValueId>,
    ) {
        if map.contains_key(&value) {
            return;
        }
        let Some(op) = self.maker(graph, value) else { return };
        for operand in graph.operands(op) {
            stacker::maybe_grow(64 << 10, 1 << 20, || self.make_again(graph, *operand, rebuilt, map));
        }
        let copy = rebuilt.clone_op(Some(graph), op, map);
        let root = rebuilt.root();
        rebuilt.append(root, copy);
    }
}

/// Takes away what makes a result that the graph does not give any more, so that nothing seems to hold what it was made of.
fn drop_made(graph: &mut Graph, value: ValueId) {
    let Some(op) = graph.def_op(value).filter(|_| !graph.has_uses(value)) else { return };
    let is_made = matches!(
        graph.kind(op).as_str(),
        "prim::Constant" | "prim::TupleConstruct" | "prim::ListConstruct" | "prim::DictConstruct"
    );
    if is_made {
        let operands = graph.operands(op).to_vec();
        graph.erase(op);
        for operand in operands {
            stacker::maybe_grow(64 << 10, 1 << 20, || drop_made(graph, operand));
        }
    }
}
