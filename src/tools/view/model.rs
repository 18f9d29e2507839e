//! A module as flat tables: functions, blocks, ops, values, each named by its index.
//!
//! Subgraphs are blocks of the op that holds them, so that a fused group opens like a branch. Flat, since nested
//! data would let a deep graph exhaust the stack of whoever reads it.

use crate::dialects::{Effects, Registry, resolve};
use crate::ir::{Attr, BlockId, Graph, Module, OpId, ValueId};
use serde::Serialize;
use std::collections::BTreeMap;

/// Longest constant that is written into the op that uses it.
const SHORT: usize = 24;

/// All tables.
#[derive(Debug, Default, Serialize)]
pub struct Model {
    /// Version of this form.
    pub version: u32,
    /// Functions in their order.
    pub functions: Vec<Function>,
    /// Blocks; the body of a function is one.
    pub blocks: Vec<Block>,
    /// Ops, in program order within their block.
    pub ops: Vec<Op>,
    /// Values.
    pub values: Vec<Value>,
    /// What the registry says of the kinds that occur: schemas, and a sentence where there is one.
    pub docs: BTreeMap<String, Vec<String>>,
}

/// A function.
#[derive(Debug, Serialize)]
pub struct Function {
    /// Its name; empty for a graph without one.
    pub name: String,
    /// Its schema.
    pub schema: String,
    /// Its body.
    pub block: usize,
}

/// A block of ops.
#[derive(Debug, Serialize)]
pub struct Block {
    /// `block0`, `subgraph`, or the function's name.
    pub name: String,
    /// The op that holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<usize>,
    /// Values that it takes.
    pub inputs: Vec<usize>,
    /// Its ops.
    pub ops: Vec<usize>,
    /// Values that it gives.
    pub outputs: Vec<usize>,
}

/// An op.
#[derive(Debug, Serialize)]
pub struct Op {
    /// `aten::add`
    pub kind: String,
    /// What kind of work it is; pictures colour by it.
    pub part: Part,
    /// The block it stands in.
    pub block: usize,
    /// Values that it takes.
    pub operands: Vec<usize>,
    /// Values that it gives.
    pub results: Vec<usize>,
    /// Names and texts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<(String, String)>,
    /// Blocks that it holds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<usize>,
    /// `file:line:column`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// The module that traced code came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// A short constant, to be written where it is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constant: Option<String>,
    /// It does something besides computing its results.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub effects: bool,
}

/// Kinds of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// A constant.
    Constant,
    /// Holds blocks that run or loop.
    Control,
    /// Computes, as its row says.
    Compute,
    /// Lists, tuples, attributes, conversions: the `prim` dialect.
    Data,
    /// Holds a subgraph.
    Fused,
    /// Of a dialect that nobody has declared.
    Foreign,
}

/// A value.
#[derive(Debug, Serialize)]
pub struct Value {
    /// `x.1`, without the percent sign.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub ty: String,
    /// The op that gives it; none for an input of a block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub op: Option<usize>,
    /// The block it belongs to.
    pub block: usize,
}

/// The tables of a module.
pub fn model(module: &Module, registry: &Registry) -> Model {
    let mut model = Model { version: 1, ..Model::default() };
    for function in module.functions.values() {
        let block = model.blocks.len();
        let name = function.name.as_str().to_string();
        let mut work = vec![Pending { graph: &function.graph, name: name.clone(), owner: None }];
        model.functions.push(Function { name, schema: function.schema.to_string(), block });
        while let Some(pending) = work.pop() {
            let subgraphs =
                Builder::new(&mut model, registry, pending.graph).run(pending.name, pending.owner);
            work.extend(subgraphs);
        }
    }
    model
}

/// A graph that waits, and the op that holds it.
struct Pending<'m> {
    graph: &'m Graph,
    name: String,
    owner: Option<usize>,
}

/// Takes one graph in.
struct Builder<'m, 'g> {
    model: &'m mut Model,
    registry: &'m Registry,
    graph: &'g Graph,
    /// Our index of each value, from the graph's.
    values: Vec<Option<usize>>,
    subgraphs: Vec<Pending<'g>>,
}

impl<'m, 'g> Builder<'m, 'g> {
    fn new(model: &'m mut Model, registry: &'m Registry, graph: &'g Graph) -> Self {
        Builder { model, registry, graph, values: vec![None; graph.value_capacity()], subgraphs: Vec::new() }
    }

    fn run(mut self, name: String, owner: Option<usize>) -> Vec<Pending<'g>> {
        let root = self.open(self.graph.root(), name, owner);
        // Blocks in program order; the ops of one before those of the blocks in it, so that uses know their values.
        let mut work = vec![(self.graph.root(), root)];
        while let Some((block, own)) = work.pop() {
            let mut inner = Vec::new();
            for op in self.graph.block_ops(block) {
                let index = self.op(op, own);
                for (n, nested) in self.graph.nested_blocks(op).iter().enumerate() {
                    let opened = self.open(*nested, format!("block{n}"), Some(index));
                    inner.push((*nested, opened));
                }
            }
            let outputs = self.indices(self.graph.block_results(block));
            if let Some(own) = self.model.blocks.get_mut(own) {
                own.outputs = outputs;
            }
            work.extend(inner.into_iter().rev());
        }
        self.subgraphs
    }

    fn open(&mut self, block: BlockId, name: String, owner: Option<usize>) -> usize {
        let index = self.model.blocks.len();
        self.model.blocks.push(Block { name, owner, inputs: vec![], ops: vec![], outputs: vec![] });
        let inputs = self.graph.params(block).iter().map(|v| self.value(*v, None, index)).collect();
        self.model.blocks[index].inputs = inputs;
        if let Some(owner) = owner.and_then(|owner| self.model.ops.get_mut(owner)) {
            owner.blocks.push(index);
        }
        index
    }

    fn value(&mut self, value: ValueId, op: Option<usize>, block: usize) -> usize {
        let index = self.model.values.len();
        let (name, ty) = (self.graph.display_name(value), self.graph.ty(value).to_string());
        self.model.values.push(Value { name, ty, op, block });
        if let Some(slot) = self.values.get_mut(value.index()) {
            *slot = Some(index);
        }
        index
    }

    /// Our indices; a value of no known definition, in a graph that breaks the laws, is left out.
    fn indices(&self, values: &[ValueId]) -> Vec<usize> {
        values.iter().filter_map(|v| self.values.get(v.index()).copied().flatten()).collect()
    }

    fn op(&mut self, op: OpId, block: usize) -> usize {
        let graph = self.graph;
        let index = self.model.ops.len();
        let kind = graph.kind(op).as_str().to_string();
        let location = graph.location(op);
        let place = location.and_then(|l| l.file_line_column());
        let mut attributes: Vec<(String, String)> = Vec::new();
        for ((name, attr), (_, text)) in graph.attrs(op).iter().zip(graph.attr_texts(op)) {
            match attr {
                Attr::Graph(subgraph) => {
                    let name = name.as_str().to_ascii_lowercase();
                    self.subgraphs.push(Pending { graph: subgraph, name, owner: Some(index) });
                }
                _ => attributes.push((name.as_str().to_string(), text)),
            }
        }
        let own = Op {
            part: self.part(op),
            block,
            operands: self.indices(graph.operands(op)),
            results: Vec::new(),
            constant: self.constant(op, &attributes),
            effects: self.has_effects(op),
            attributes,
            blocks: Vec::new(),
            location: place.map(|(file, line, column)| format!("{file}:{line}:{column}")),
            scope: location.and_then(|l| l.scope).map(|s| s.as_str().to_string()),
            kind,
        };
        self.document(&own.kind, op);
        self.model.ops.push(own);
        let results = graph.results(op);
        let results = results.iter().map(|v| self.value(*v, Some(index), block)).collect();
        self.model.ops[index].results = results;
        self.model.blocks[block].ops.push(index);
        index
    }

    fn part(&self, op: OpId) -> Part {
        let (graph, kind) = (self.graph, self.graph.kind(op));
        if kind == "prim::Constant" {
            Part::Constant
        } else if graph.attrs(op).iter().any(|(_, attr)| attr.as_graph().is_some()) {
            Part::Fused
        } else if !graph.nested_blocks(op).is_empty() {
            Part::Control
        } else if self.registry.overloads(kind).is_empty() {
            Part::Foreign
        } else if kind.namespace() == "prim" {
            Part::Data
        } else {
            Part::Compute
        }
    }

    fn constant(&self, op: OpId, attributes: &[(String, String)]) -> Option<String> {
        if self.graph.kind(op) != "prim::Constant" || self.graph.result_count(op) != 1 {
            return None;
        }
        match attributes {
            [] => Some("None".into()),
            [(_, text)] if text.chars().count() <= SHORT && !text.contains('\n') => {
                let is_bool =
                    self.graph.result(op, 0).is_some_and(|v| self.graph.ty(v).to_string() == "bool");
                Some(match (is_bool, text.as_str()) {
                    (true, "1") => "True".into(),
                    (true, "0") => "False".into(),
                    _ => text.clone(),
                })
            }
            _ => None,
        }
    }

    fn has_effects(&self, op: OpId) -> bool {
        const SEEN: Effects = Effects::WRITES_WORLD.union(Effects::RANDOM).union(Effects::NEVER_RETURNS);
        match resolve(self.registry, self.graph, op) {
            Ok(row) => row.def().effects.intersects(SEEN) || row.schema_text().contains("!)"),
            Err(_) => true,
        }
    }

    /// Schemas of the kind, and its sentence.
    fn document(&mut self, kind: &str, op: OpId) {
        if self.model.docs.contains_key(kind) {
            return;
        }
        let rows = self.registry.overloads(self.graph.kind(op));
        let mut lines: Vec<String> = rows.iter().map(|row| row.schema_text().to_string()).collect();
        lines
            .extend(rows.iter().map(|row| row.def().summary).find(|text| !text.is_empty()).map(String::from));
        if !lines.is_empty() {
            self.model.docs.insert(kind.to_string(), lines);
        }
    }
}
