//! Printing graphs as PyTorch does, byte for byte.
//!
//! # Laws
//! Printing is a function of the graph alone: no table's order, no address and no intern number shows. Reading
//! the text back gives a graph that prints the same. Subgraphs follow as `with NAME_0 = graph(...)` tails.

use super::attr::write_attr;
use super::number::write_int;
use super::options::PrintOptions;
use crate::ir::{Attr, BlockId, Graph, OpId, Symbol, ValueId};
use std::fmt;

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text(&PrintOptions::default()))
    }
}

impl Graph {
    /// The graph as PyTorch prints it.
    pub fn to_text(&self, options: &PrintOptions) -> String {
        let mut out = String::with_capacity(self.op_count() * 40 + 64);
        self.write_text(&mut out, options);
        out
    }

    /// Appends the graph as PyTorch prints it.
    pub fn write_text(&self, out: &mut String, options: &PrintOptions) {
        write_graph(out, self, "", options, &mut |_| {});
    }

    /// One op with its nested blocks, as it stands at the top of a graph, without its subgraph.
    pub fn op_text(&self, op: OpId) -> String {
        let mut out = String::new();
        let mut printer = Printer::new(self, PrintOptions::default());
        printer.ops(&mut out, op, Some(op), 0);
        out
    }

    /// The attributes of an op, each with its text as the printer writes it; a subgraph reads `<Graph>`.
    pub fn attr_texts(&self, op: OpId) -> Vec<(&'static str, String)> {
        let expected = (self.result_count(op) == 1).then(|| self.result(op, 0)).flatten().map(|v| self.ty(v));
        let text = |(name, attr): &(Symbol, Attr)| {
            let mut out = String::new();
            write_attr(&mut out, attr, expected.filter(|_| *name == "value"));
            (name.as_str(), out)
        };
        self.attrs(op).iter().map(text).collect()
    }

    /// The line of one op alone, for messages.
    pub fn op_line(&self, op: OpId) -> String {
        self.op_text(op).lines().next().unwrap_or("").trim().to_string()
    }
}

/// Appends `graph(...)`, or `graph @name(...)`, with its subgraphs. From time to time `drain` may take away
/// what has been written, so that a large graph needs no large buffer.
pub(super) fn write_graph(
    out: &mut String,
    graph: &Graph,
    name: &str,
    options: &PrintOptions,
    drain: &mut dyn FnMut(&mut String),
) {
    // Tails print depth first: what stands in `work` last prints next.
    let mut work = vec![(graph, None::<(Symbol, usize)>)];
    while let Some((graph, group)) = work.pop() {
        let mut header = "graph".to_string();
        if let Some((kind, number)) = group {
            header = format!("with {kind}_{number} = graph");
        } else if !name.is_empty() {
            header = format!("graph @{name}");
        }
        let mut printer = Printer::new(graph, *options);
        printer.graph(out, &header, drain);
        for (number, op) in printer.groups.iter().enumerate().rev() {
            if let Some(subgraph) = subgraph(graph, *op) {
                work.push((subgraph, Some((graph.kind(*op), number))));
            }
        }
    }
}

/// The subgraph that prints as a tail.
fn subgraph(graph: &Graph, op: OpId) -> Option<&Graph> {
    graph.attr(op, "Subgraph").and_then(Attr::as_graph).map(|g| &**g)
}

const INDENTATION: &str = "                                                                ";

fn indent(out: &mut String, level: usize) {
    let mut spaces = level * 2;
    while spaces > 0 {
        let n = spaces.min(INDENTATION.len());
        out.push_str(&INDENTATION[..n]);
        spaces -= n;
    }
}

/// Text in `drain`'s hands at once, about.
const CHUNK: usize = 1 << 16;

struct Printer<'g> {
    graph: &'g Graph,
    options: PrintOptions,
    /// Text of each type of the graph.
    types: Vec<String>,
    /// Recently printed kinds by intern number.
    kinds: [(u32, &'static str); 64],
    subgraph: Symbol,
    /// Ops whose subgraphs follow.
    groups: Vec<OpId>,
}

impl<'g> Printer<'g> {
    fn new(graph: &'g Graph, options: PrintOptions) -> Printer<'g> {
        let types = graph.types.iter().map(|ty| {
            let mut text = String::new();
            match graph.hides_symbols {
                true => crate::ir::types::unify::without_symbols(ty).write_to(&mut text),
                false => ty.write_to(&mut text),
            }
            text
        });
        Printer {
            graph,
            options,
            types: types.collect(),
            kinds: [(u32::MAX, ""); 64],
            subgraph: Symbol::new("Subgraph"),
            groups: Vec::new(),
        }
    }

    fn graph(&mut self, out: &mut String, header: &str, drain: &mut dyn FnMut(&mut String)) {
        let graph = self.graph;
        out.push_str(header);
        out.push('(');
        for (i, input) in graph.inputs().iter().enumerate() {
            out.push_str(if i == 0 { "" } else { ",\n      " });
            self.typed_value(out, *input);
        }
        out.push_str("):\n");
        let mut next = graph.first_op(graph.root());
        while let Some(op) = next {
            if graph.nested_blocks(op).is_empty() {
                self.op_line(out, op, 1);
            } else {
                self.ops(out, op, Some(op), 1);
            }
            if out.len() >= CHUNK {
                drain(out);
            }
            next = graph.next(op);
        }
        out.push_str("  return (");
        self.values(out, graph.outputs());
        out.push_str(")\n");
    }

    /// Ops of a block from `first` to `last` (or the end), with their nested blocks.
    fn ops(&mut self, out: &mut String, first: OpId, last: Option<OpId>, level: usize) {
        let graph = self.graph;
        /// What comes next in one op or block that is being printed.
        enum Step {
            Op(OpId, Option<OpId>, usize),
            Block(OpId, usize, usize),
            End(BlockId, usize),
        }
        let mut work = vec![Step::Op(first, last, level)];
        while let Some(step) = work.pop() {
            match step {
                Step::Op(op, last, level) => {
                    self.op_line(out, op, level);
                    if Some(op) != last
                        && let Some(next) = graph.next(op)
                    {
                        work.push(Step::Op(next, last, level));
                    }
                    if !graph.nested_blocks(op).is_empty() {
                        work.push(Step::Block(op, 0, level));
                    }
                }
                Step::Block(op, n, level) => {
                    let Some(block) = graph.nested_blocks(op).get(n) else { continue };
                    indent(out, level + 1);
                    out.push_str("block");
                    write_int(out, n as i64);
                    out.push('(');
                    for (i, param) in graph.params(*block).iter().enumerate() {
                        out.push_str(if i == 0 { "" } else { ", " });
                        self.typed_value(out, *param);
                    }
                    out.push_str("):\n");
                    work.push(Step::Block(op, n + 1, level));
                    work.push(Step::End(*block, level));
                    if let Some(first) = graph.first_op(*block) {
                        work.push(Step::Op(first, None, level + 2));
                    }
                }
                Step::End(block, level) => {
                    indent(out, level + 2);
                    out.push_str("-> (");
                    self.values(out, graph.block_results(block));
                    out.push_str(")\n");
                }
            }
        }
    }

    fn op_line(&mut self, out: &mut String, op: OpId, level: usize) {
        let graph = self.graph;
        indent(out, level);
        let results = graph.results(op);
        for (i, result) in results.iter().enumerate() {
            out.push_str(if i == 0 { "" } else { ", " });
            self.typed_value(out, *result);
        }
        out.push_str(" = ");
        let kind = graph.kind(op);
        out.push_str(self.kind_text(kind));
        let attrs = graph.attrs(op);
        if !attrs.is_empty() {
            self.attributes(out, op, attrs, &results);
        }
        out.push('(');
        self.values(out, graph.operands(op));
        out.push(')');
        if !graph.location_id(op).is_unknown() {
            self.trailer(out, op);
        }
        out.push('\n');
    }

    fn attributes(&mut self, out: &mut String, op: OpId, attrs: &[(Symbol, Attr)], results: &[ValueId]) {
        let is_group = attrs.iter().any(|(name, attr)| *name == self.subgraph && attr.as_graph().is_some());
        if is_group {
            out.push('_');
            write_int(out, self.groups.len() as i64);
            self.groups.push(op);
        }
        let expected = match results {
            [only] => Some(self.graph.ty(*only)),
            _ => None,
        };
        let python = attrs.iter().find(|(name, _)| *name == "^");
        let mut opened = false;
        for (name, attr) in attrs {
            if is_group && *name == self.subgraph || *name == "^" {
                continue;
            }
            out.push_str(if opened { ", " } else { "[" });
            opened = true;
            let name = self.kind_text(*name);
            out.push_str(name);
            out.push('=');
            write_attr(out, attr, expected.filter(|_| name == "value"));
        }
        out.push_str(if opened { "]" } else { "" });
        if let Some((_, Attr::Raw(text))) = python {
            out.push_str(text);
        }
    }

    fn trailer(&mut self, out: &mut String, op: OpId) {
        let Some(location) = self.graph.location(op) else { return };
        if let Some(scope) = location.scope.filter(|_| self.options.scopes) {
            out.push_str(", scope: ");
            out.push_str(scope.as_str());
        }
        if !self.options.locations {
            return;
        }
        match &location.place {
            crate::ir::Place::File { file, line, column } => {
                out.push_str(" # ");
                out.push_str(file.as_str());
                out.push(':');
                write_int(out, i64::from(*line));
                out.push(':');
                write_int(out, i64::from(*column));
            }
            crate::ir::Place::Span(span) => {
                let (line, column) = span.line_column();
                out.push_str(" # ");
                out.push_str(span.source().name());
                out.push(':');
                write_int(out, line as i64);
                out.push(':');
                write_int(out, column as i64);
            }
            crate::ir::Place::Unknown => {}
        }
    }

    #[inline]
    fn kind_text(&mut self, kind: Symbol) -> &'static str {
        let slot = &mut self.kinds[kind.index() as usize % 64];
        if slot.0 != kind.index() {
            *slot = (kind.index(), kind.as_str());
        }
        slot.1
    }

    #[inline]
    fn value(&self, out: &mut String, value: ValueId) {
        out.push('%');
        match self.graph.name(value) {
            Some(name) => out.push_str(name),
            None => write_int(out, i64::from(self.graph.values[value.index()].name_start)),
        }
    }

    fn typed_value(&self, out: &mut String, value: ValueId) {
        self.value(out, value);
        out.push_str(" : ");
        let ty = self.graph.values[value.index()].ty as usize;
        out.push_str(self.types.get(ty).map_or("", String::as_str));
    }

    fn values(&self, out: &mut String, values: &[ValueId]) {
        for (i, value) in values.iter().enumerate() {
            out.push_str(if i == 0 { "" } else { ", " });
            self.value(out, *value);
        }
    }
}
