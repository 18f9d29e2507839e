//! Printing modules in MLIR's generic form. Nesting is unbounded, so that nothing here recurses.

use super::super::location::Place;
use super::super::{Attr, BlockId, Function, Graph, Module, OpId, PrintOptions, Type, ValueId};
use super::attributes::{expected, write_attribute, write_key};
use super::strings::write_string;
use super::types::write_type;
use super::{DECLARATIONS, GRAPH, RETURN, SUBGRAPHS, YIELD};
use crate::diag::{Diagnostic, Result};
use crate::ir::text::module_print::derived_schema;
use hashbrown::HashMap;
use std::fmt::Write as _;
use std::io;

/// Text is handed on in pieces of about this many bytes.
const CHUNK: usize = 1 << 16;

impl Module {
    /// Writes the module in MLIR's generic form; [`super::parse_mlir`] reads it back. Fails where a part has no text that
    /// says all of it, or the writing does.
    pub fn write_mlir(&self, to: &mut dyn io::Write, options: &PrintOptions) -> Result<()> {
        self.check_text()?;
        let failed = |error: io::Error| Diagnostic::input(format!("the text was not written: {error}"));
        let mut out = String::new();
        let declarations = Module {
            classes: self.classes.clone(),
            interfaces: self.interfaces.clone(),
            enums: self.enums.clone(),
            named_tuples: self.named_tuples.clone(),
            ..Module::default()
        };
        let text = declarations.to_text(options);
        if !text.is_empty() {
            let _ = write!(out, "\"{DECLARATIONS}\"() {{text = ");
            write_string(&mut out, &text);
            out.push_str("} : () -> ()\n");
        }
        for function in self.functions.values() {
            let mut printer =
                Printer { options: *options, types: HashMap::new(), level: 0, groups: 0, work: Vec::new() };
            printer
                .function(&mut out, function, &mut |out| {
                    let result = to.write_all(out.as_bytes());
                    out.clear();
                    result
                })
                .map_err(failed)?;
        }
        to.write_all(out.as_bytes()).map_err(failed)
    }
}

/// What comes next. The number of a graph is 0 for a function's own, else that of the subgraph.
enum Step<'g> {
    /// An op and those after it.
    Ops(&'g Graph, usize, OpId),
    /// The region that a block is; whether it is the first of its op.
    Region(&'g Graph, usize, BlockId, bool),
    /// The end of a region.
    End(&'g Graph, usize, BlockId),
    /// What follows the regions of an op.
    Tail(&'g Graph, usize, OpId),
}

struct Printer<'g> {
    options: PrintOptions,
    types: HashMap<Type, String>,
    level: usize,
    /// Subgraphs met so far.
    groups: usize,
    work: Vec<Step<'g>>,
}

impl<'g> Printer<'g> {
    fn function(
        &mut self,
        out: &mut String,
        function: &'g Function,
        drain: &mut dyn FnMut(&mut String) -> io::Result<()>,
    ) -> io::Result<()> {
        let graph = &function.graph;
        let _ = write!(out, "\"{GRAPH}\"() (");
        self.work.push(Step::Region(graph, 0, graph.root(), true));
        while let Some(step) = self.work.pop() {
            self.step(out, step);
            if out.len() >= CHUNK {
                drain(out)?;
            }
        }
        out.push_str(") {arg_names = [");
        for (n, input) in graph.inputs().iter().enumerate() {
            out.push_str(if n == 0 { "" } else { ", " });
            write_string(out, &graph.display_name(*input));
        }
        out.push(']');
        if function.schema != derived_schema(function.name, graph) {
            out.push_str(", schema = ");
            write_string(out, &function.schema.to_string());
        }
        out.push_str(", sym_name = ");
        write_string(out, function.name.as_str());
        out.push_str("} : () -> ()\n");
        Ok(())
    }

    fn step(&mut self, out: &mut String, step: Step<'g>) {
        match step {
            Step::Ops(graph, number, op) => {
                if let Some(next) = graph.next(op) {
                    self.work.push(Step::Ops(graph, number, next));
                }
                self.head(out, graph, number, op);
                let blocks = graph.nested_blocks(op);
                let subgraphs: Vec<&Graph> = subgraphs(graph, op).map(|(_, graph)| graph).collect();
                if blocks.is_empty() && subgraphs.is_empty() {
                    self.tail(out, graph, number, op);
                    return;
                }
                out.push_str(" (");
                self.work.push(Step::Tail(graph, number, op));
                let first = |n: usize| n == 0 && blocks.is_empty();
                let base = self.groups;
                self.groups += subgraphs.len();
                for (n, subgraph) in subgraphs.into_iter().enumerate().rev() {
                    self.work.push(Step::Region(subgraph, base + n + 1, subgraph.root(), first(n)));
                }
                for (n, block) in blocks.iter().enumerate().rev() {
                    self.work.push(Step::Region(graph, number, *block, n == 0));
                }
            }
            Step::Region(graph, number, block, is_first) => {
                out.push_str(if is_first { "{\n" } else { ", {\n" });
                let params = graph.params(block);
                if !params.is_empty() {
                    self.indent(out);
                    out.push_str("^bb0(");
                    for (n, param) in params.iter().enumerate() {
                        out.push_str(if n == 0 { "" } else { ", " });
                        write_name(out, graph, number, *param);
                        out.push_str(": ");
                        self.ty(out, graph, *param);
                    }
                    out.push_str("):\n");
                }
                self.level += 1;
                self.work.push(Step::End(graph, number, block));
                if let Some(first) = graph.first_op(block) {
                    self.work.push(Step::Ops(graph, number, first));
                }
            }
            Step::End(graph, number, block) => {
                self.indent(out);
                let end = if block == graph.root() { RETURN } else { YIELD };
                let results = graph.block_results(block);
                let _ = write!(out, "\"{end}\"");
                write_names(out, graph, number, results);
                out.push_str(" : ");
                self.types(out, graph, results);
                out.push_str(" -> ()\n");
                self.level -= 1;
                self.indent(out);
                out.push('}');
            }
            Step::Tail(graph, number, op) => {
                out.push(')');
                self.tail(out, graph, number, op);
            }
        }
    }

    /// `%a, %b = "aten.op"(%c)`
    fn head(&self, out: &mut String, graph: &Graph, number: usize, op: OpId) {
        self.indent(out);
        let results = graph.results(op);
        for (n, result) in results.iter().enumerate() {
            out.push_str(if n == 0 { "" } else { ", " });
            write_name(out, graph, number, *result);
        }
        out.push_str(if results.is_empty() { "" } else { " = " });
        write_string(out, &graph.kind(op).as_str().replacen("::", ".", 1));
        write_names(out, graph, number, graph.operands(op));
    }

    /// ` {a = 1 : i64} : (i64) -> f64 loc("a.py":1:2)`
    fn tail(&mut self, out: &mut String, graph: &Graph, _number: usize, op: OpId) {
        let results = graph.results(op);
        let names: Vec<&str> = subgraphs(graph, op).map(|(name, _)| name).collect();
        let plain = graph.attrs(op).iter().filter(|(_, attr)| attr.as_graph().is_none());
        let mut separator = " {";
        for (name, attr) in plain {
            out.push_str(separator);
            separator = ", ";
            write_key(out, name.as_str());
            out.push_str(" = ");
            write_attribute(out, attr, expected(graph, &results, name.as_str()));
        }
        if !names.is_empty() {
            let _ = write!(out, "{separator}{SUBGRAPHS} = ");
            separator = ", ";
            write_attribute(out, &Attr::Strs(names.into_iter().map(Into::into).collect()), None);
        }
        out.push_str(if separator == ", " { "} : " } else { " : " });
        self.types(out, graph, graph.operands(op));
        out.push_str(" -> ");
        match results[..] {
            [only] => self.ty(out, graph, only),
            _ => self.types(out, graph, &results),
        }
        self.location(out, graph, op);
        out.push('\n');
    }

    fn location(&self, out: &mut String, graph: &Graph, op: OpId) {
        let Some(location) = graph.location(op) else { return };
        let scope = location.scope.filter(|_| self.options.scopes);
        let place = location
            .file_line_column()
            .filter(|_| self.options.locations && location.place != Place::Unknown);
        if scope.is_none() && place.is_none() {
            return;
        }
        out.push_str(" loc(");
        if let Some(scope) = scope {
            write_string(out, scope.as_str());
            out.push_str(if place.is_some() { "(" } else { "" });
        }
        if let Some((file, line, column)) = place {
            write_string(out, &file);
            let _ = write!(out, ":{line}:{column}");
            out.push_str(if scope.is_some() { ")" } else { "" });
        }
        out.push(')');
    }

    fn types(&mut self, out: &mut String, graph: &Graph, values: &[ValueId]) {
        out.push('(');
        for (n, value) in values.iter().enumerate() {
            out.push_str(if n == 0 { "" } else { ", " });
            self.ty(out, graph, *value);
        }
        out.push(')');
    }

    fn ty(&mut self, out: &mut String, graph: &Graph, value: ValueId) {
        let ty = graph.ty(value);
        if !self.types.contains_key(ty) {
            let mut text = String::new();
            write_type(&mut text, ty);
            self.types.insert(ty.clone(), text);
        }
        out.push_str(self.types.get(ty).map_or("", String::as_str));
    }

    fn indent(&self, out: &mut String) {
        // Deeper lines are no more readable for being further right.
        (0..self.level.min(64)).for_each(|_| out.push_str("  "));
    }
}

/// The attributes of an op that are graphs.
fn subgraphs(graph: &Graph, op: OpId) -> impl Iterator<Item = (&str, &Graph)> {
    graph.attrs(op).iter().filter_map(|(name, attr)| Some((name.as_str(), &**attr.as_graph()?)))
}

fn write_names(out: &mut String, graph: &Graph, number: usize, values: &[ValueId]) {
    out.push('(');
    for (n, value) in values.iter().enumerate() {
        out.push_str(if n == 0 { "" } else { ", " });
        write_name(out, graph, number, *value);
    }
    out.push(')');
}

/// Outer names are seen in every region, so that those of subgraphs carry a number; names that MLIR does not have are left
/// out for the value's own number.
fn write_name(out: &mut String, graph: &Graph, number: usize, value: ValueId) {
    out.push('%');
    if number > 0 {
        let _ = write!(out, "${number}.");
    }
    let name = graph.display_name(value);
    let is_number = name.bytes().all(|b| b.is_ascii_digit());
    let is_start = name.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '-' | '.'));
    let is_name =
        is_start && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'$' | b'.' | b'_' | b'-'));
    if is_number || is_name {
        out.push_str(&name);
    } else {
        let _ = write!(out, "$v{}", value.index());
    }
}
