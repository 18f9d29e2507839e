//! From a module to its tables: blocks, ops and values are taken in graph by graph. It knows nothing of pictures.

use super::model::{Block, Function, Model, Op, Part, Value};
use super::scopes;
use super::seen::{Path, Seen, Sizes, Times};
use crate::diag::{Diagnostic, Result};
use crate::dialects::{Effects, Registry, resolve};
use crate::ir::{Attr, BlockId, Function as IrFunction, Graph, Module, OpId, Symbol, TypeKind, ValueId};
use hashbrown::HashMap;

/// Longest constant that is written into the op that uses it.
const SHORT: usize = 24;
/// Functions of calls are shown in their place as long as there are no more ops than this, and calls nest no deeper.
const MAX_OPS: usize = 50_000;
const MAX_CALLS: usize = 60;

/// What a picture shows besides the module.
#[derive(Clone, Copy, Debug, Default)]
pub struct Looks<'a> {
    /// The function to begin with, and below which functions are shown where they are called.
    pub entry: Option<&'a IrFunction>,
    /// Sizes of a run of that function.
    pub sizes: Option<&'a Sizes>,
    /// Times of ops.
    pub times: Option<&'a Times>,
}

/// The tables of a module.
pub fn model(module: &Module, registry: &Registry) -> Model {
    // Without times nothing can be of another graph.
    model_with(module, registry, Looks::default()).unwrap_or_default()
}

/// The tables of a module with what a run showed of it. Fails for times of another graph.
pub fn model_with(module: &Module, registry: &Registry, looks: Looks<'_>) -> Result<Model> {
    let mut model = Model { version: 1, ..Model::default() };
    for (n, function) in module.functions.values().enumerate() {
        let is_entry = looks.entry.is_some_and(|entry| entry.name == function.name);
        if is_entry {
            model.entry = n;
        }
        let block = model.blocks.len();
        let name = function.name.as_str().to_string();
        let first = Pending {
            graph: &function.graph,
            function: name.clone(),
            name: name.clone(),
            owner: None,
            path: is_entry.then(Vec::new),
            calls: vec![function.name],
            module: "self".into(),
        };
        let mut work = vec![first];
        model.functions.push(Function { name, schema: function.schema.to_string(), block });
        while let Some(pending) = work.pop() {
            work.extend(Builder::new(&mut model, registry, module, looks, pending).run()?);
        }
    }
    scopes::frame(&mut model);
    Ok(model)
}

/// A graph that waits, and the op that holds it.
struct Pending<'m> {
    graph: &'m Graph,
    /// The function whose code it is, as profiles name it.
    function: String,
    /// As pictures name it.
    name: String,
    owner: Option<usize>,
    /// The ops that lead to it from the entry; None where it is not below the entry.
    path: Option<Path>,
    /// The functions that it is called through.
    calls: Vec<Symbol>,
    /// What its first input is, where that is a module: `self.layer1`.
    module: String,
}

/// Takes one graph in.
struct Builder<'m, 'g> {
    model: &'m mut Model,
    registry: &'m Registry,
    graph: &'g Graph,
    module: &'g Module,
    looks: Looks<'m>,
    pending: Pending<'g>,
    /// Our index of each value, from the graph's.
    values: Vec<Option<usize>>,
    /// What attributes of the module are called: `self.layer1.conv`.
    attributes: HashMap<ValueId, String>,
    subgraphs: Vec<Pending<'g>>,
}

impl<'m, 'g> Builder<'m, 'g> {
    fn new(
        model: &'m mut Model,
        registry: &'m Registry,
        module: &'g Module,
        looks: Looks<'m>,
        pending: Pending<'g>,
    ) -> Self {
        let graph = pending.graph;
        let values = vec![None; graph.value_capacity()];
        let (attributes, subgraphs) = (HashMap::new(), Vec::new());
        Builder { model, registry, graph, module, looks, pending, values, attributes, subgraphs }
    }

    fn run(mut self) -> Result<Vec<Pending<'g>>> {
        let (name, owner) = (self.pending.name.clone(), self.pending.owner);
        let root = self.open(self.graph.root(), name, owner);
        self.show_inputs(root);
        // Blocks in program order; the ops of one before those of the blocks in it, so that uses know their values.
        let mut work = vec![(self.graph.root(), root)];
        while let Some((block, own)) = work.pop() {
            let mut inner = Vec::new();
            for op in self.graph.block_ops(block) {
                let index = self.op(op, own)?;
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
        Ok(self.subgraphs)
    }

    /// What the inputs of the graph were in the run, and what its module is called.
    fn show_inputs(&mut self, root: usize) {
        let inputs = self.model.blocks[root].inputs.clone();
        if let Some(first) = self.graph.inputs().first()
            && matches!(self.graph.ty(*first).kind(), TypeKind::Class(_))
        {
            self.attributes.insert(*first, self.pending.module.clone());
        }
        let (Some(sizes), Some(path)) = (self.looks.sizes, &self.pending.path) else { return };
        let Some(seen) = sizes.inputs.get(path) else { return };
        for (input, seen) in inputs.into_iter().zip(seen) {
            self.model.values[input].seen = seen.as_ref().map(|seen| seen.text.clone());
        }
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
        self.model.values.push(Value { name, ty, seen: None, op, block });
        if let Some(slot) = self.values.get_mut(value.index()) {
            *slot = Some(index);
        }
        index
    }

    /// Our indices; a value of no known definition, in a graph that breaks the laws, is left out.
    fn indices(&self, values: &[ValueId]) -> Vec<usize> {
        values.iter().filter_map(|v| self.values.get(v.index()).copied().flatten()).collect()
    }

    fn op(&mut self, op: OpId, block: usize) -> Result<usize> {
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
                    let function = format!("{}/{}", self.pending.function, op.index());
                    self.subgraphs.push(self.below(subgraph, function, name, op, index));
                }
                _ => attributes.push((name.as_str().to_string(), text)),
            }
        }
        let called = self.called(op, index);
        let part = if called.is_some() { Part::Call } else { self.part(op) };
        // What a call does besides is said by the ops that it shows.
        let effects = called.is_none() && self.has_effects(op);
        self.subgraphs.extend(called);
        let seen = self.seen(op);
        let own = Op {
            part,
            block,
            operands: self.indices(graph.operands(op)),
            results: Vec::new(),
            constant: self.constant(op, &attributes),
            effects,
            attributes,
            blocks: Vec::new(),
            location: place.map(|(file, line, column)| format!("{file}:{line}:{column}")),
            scope: location.and_then(|l| l.scope).map(|s| s.as_str().to_string()),
            time: self.time(op, &kind)?,
            bytes: (!seen.is_empty()).then(|| seen.iter().flatten().map(|seen| seen.bytes).sum()),
            kind,
        };
        self.document(&own.kind, op);
        self.model.ops.push(own);
        let results = graph.results(op);
        let results: Vec<usize> = results.iter().map(|v| self.value(*v, Some(index), block)).collect();
        for (result, seen) in results.iter().zip(&seen) {
            self.model.values[*result].seen = seen.as_ref().map(|seen| seen.text.clone());
        }
        self.model.ops[index].results = results;
        self.model.blocks[block].ops.push(index);
        Ok(index)
    }

    /// A graph that an op holds or calls.
    fn below(&self, graph: &'g Graph, function: String, name: String, op: OpId, owner: usize) -> Pending<'g> {
        let path = self.pending.path.as_ref().map(|path| {
            let mut path = path.clone();
            path.push(op.index() as u32);
            path
        });
        let (calls, module) = (self.pending.calls.clone(), self.pending.module.clone());
        Pending { graph, function, name, owner: Some(owner), path, calls, module }
    }

    /// The function that an op below the entry calls, to be shown in its place. What calls itself, and what would make the
    /// picture too large, is not.
    fn called(&self, op: OpId, index: usize) -> Option<Pending<'g>> {
        let graph = self.graph;
        self.pending.path.as_ref()?;
        let first = *graph.operands(op).first()?;
        let function = match (graph.kind(op).as_str(), graph.ty(first).kind()) {
            ("prim::CallMethod", TypeKind::Class(class)) => {
                let method = Symbol::new(graph.attr(op, "name").and_then(Attr::as_str)?);
                let name = self.module.class(*class)?.methods.get(&method)?;
                self.module.functions.get(name)?
            }
            ("prim::CallFunction", TypeKind::Function(name)) => self.module.functions.get(name)?,
            _ => return None,
        };
        let known = &self.pending.calls;
        let ops = self.model.ops.len() + function.graph.op_count();
        if known.contains(&function.name) || known.len() > MAX_CALLS || ops > MAX_OPS {
            return None;
        }
        let method = function.name.as_str().rsplit('.').next().unwrap_or_default();
        let module = self.attributes.get(&first).cloned();
        let name = match &module {
            Some(module) if method == "forward" => module.clone(),
            Some(module) => format!("{module}.{method}"),
            None => method.to_string(),
        };
        let mut pending = self.below(&function.graph, function.name.as_str().to_string(), name, op, index);
        pending.calls.push(function.name);
        pending.module = module.unwrap_or_else(|| "self".into());
        Some(pending)
    }

    /// What the results of an op were in the run.
    fn seen(&self, op: OpId) -> Vec<Option<Seen>> {
        let (Some(sizes), Some(path)) = (self.looks.sizes, &self.pending.path) else { return Vec::new() };
        let seen = sizes.results.get(&(path.clone(), op.index() as u32));
        seen.filter(|seen| seen.len() == self.graph.result_count(op)).cloned().unwrap_or_default()
    }

    fn time(&self, op: OpId, kind: &str) -> Result<Option<f64>> {
        let Some(times) = self.looks.times else { return Ok(None) };
        match times.ops.get(&(self.pending.function.clone(), op.index() as u32)) {
            Some((known, time)) if known == kind => Ok(Some(*time)),
            Some((known, _)) => {
                let message = format!("the profile is of another graph: it has {known} in place of {kind}");
                Err(Diagnostic::input(message).hint("give the model and the --passes that were profiled"))
            }
            None => Ok(None),
        }
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

    fn constant(&mut self, op: OpId, attributes: &[(String, String)]) -> Option<String> {
        // An attribute of the module is written where it is used, as in the source.
        if self.graph.kind(op) == "prim::GetAttr"
            && let Some(base) = self.graph.operands(op).first().and_then(|base| self.attributes.get(base))
            && let Some(name) = self.graph.attr(op, "name").and_then(Attr::as_str)
        {
            let text = format!("{base}.{name}");
            if let Some(result) = self.graph.result(op, 0) {
                self.attributes.insert(result, text.clone());
            }
            return Some(text);
        }
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
