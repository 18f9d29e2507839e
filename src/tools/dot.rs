//! Modules as pictures for Graphviz: a box an op, an arrow a value, a frame a block.

use crate::ir::{BlockId, Graph, Module, OpId, ValueDef, ValueId};
use std::fmt::Write;

/// All functions of a module in one picture.
pub fn module(module: &Module) -> String {
    let mut out =
        String::from("digraph module {\n  node [shape=box, fontname=\"monospace\", fontsize=10];\n");
    for (n, function) in module.functions.values().enumerate() {
        let _ =
            writeln!(out, "  subgraph cluster_f{n} {{\n    label=\"{}\";", escaped(function.name.as_str()));
        let mut picture = Picture { graph: &function.graph, prefix: format!("f{n}"), out: String::new() };
        picture.block(function.graph.root(), 2);
        out.push_str(&picture.out);
        out.push_str("  }\n");
    }
    out.push_str("}\n");
    out
}

struct Picture<'a> {
    graph: &'a Graph,
    prefix: String,
    out: String,
}

impl Picture<'_> {
    fn block(&mut self, root: BlockId, depth: usize) {
        // Blocks are opened and closed by hand, so that no nesting can exhaust the stack.
        enum Step {
            Open(BlockId, usize),
            Op(OpId, usize),
            Close(BlockId, usize),
        }
        let mut work = vec![Step::Open(root, depth)];
        while let Some(step) = work.pop() {
            match step {
                Step::Open(block, depth) => {
                    self.params(block, depth);
                    work.push(Step::Close(block, depth));
                    let ops: Vec<OpId> = self.graph.block_ops(block).collect();
                    work.extend(ops.into_iter().rev().map(|op| Step::Op(op, depth)));
                }
                Step::Op(op, depth) => {
                    self.op(op, depth);
                    for block in self.graph.nested_blocks(op).iter().rev() {
                        let indent = "  ".repeat(depth);
                        let _ = writeln!(
                            self.out,
                            "{indent}subgraph cluster_{}b{} {{",
                            self.prefix,
                            block.index()
                        );
                        work.push(Step::Open(*block, depth + 1));
                    }
                }
                Step::Close(block, depth) => {
                    self.results(block, depth);
                    if block != root {
                        let _ = writeln!(self.out, "{}}}", "  ".repeat(depth - 1));
                    }
                }
            }
        }
    }

    fn params(&mut self, block: BlockId, depth: usize) {
        for value in self.graph.params(block) {
            let label = format!("%{} : {}", self.graph.display_name(*value), self.graph.ty(*value));
            let node = self.node(*value);
            let _ = writeln!(
                self.out,
                "{}{node} [shape=ellipse, label=\"{}\"];",
                "  ".repeat(depth),
                escaped(&label)
            );
        }
    }

    fn op(&mut self, op: OpId, depth: usize) {
        let indent = "  ".repeat(depth);
        let mut label = self.graph.kind(op).to_string();
        for value in self.graph.results(op) {
            let _ = write!(
                label,
                "\\n%{} : {}",
                self.graph.display_name(value),
                escaped(&self.graph.ty(value).to_string())
            );
        }
        let _ = writeln!(self.out, "{indent}{}o{} [label=\"{label}\"];", self.prefix, op.index());
        for value in self.graph.operands(op) {
            let from = self.node(*value);
            let _ = writeln!(self.out, "{indent}{from} -> {}o{};", self.prefix, op.index());
        }
    }

    fn results(&mut self, block: BlockId, depth: usize) {
        let indent = "  ".repeat(depth);
        let end = format!("{}r{}", self.prefix, block.index());
        let _ = writeln!(self.out, "{indent}{end} [shape=ellipse, label=\"return\"];");
        for value in self.graph.block_results(block) {
            let from = self.node(*value);
            let _ = writeln!(self.out, "{indent}{from} -> {end};");
        }
    }

    /// The node in which a value begins.
    fn node(&self, value: ValueId) -> String {
        match self.graph.def(value) {
            ValueDef::Result(op, _) => format!("{}o{}", self.prefix, op.index()),
            ValueDef::Param(..) => format!("{}v{}", self.prefix, value.index()),
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}
