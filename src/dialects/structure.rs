//! How operands, blocks and results of an op fit together, for the few ops whose parts passes and interpreters take
//! apart by place. Checked of every graph, however strict the verifier is otherwise; it does not know types.

use super::fusion::verify;
use super::region::{self, Region};
use crate::ir::{Attr, Graph, OpId};

/// A shape that an op's row demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Structure {
    /// No operands, no blocks, one result: `prim::Constant`.
    Leaf,
    /// One operand and two blocks without parameters; each gives as many values as the op: `prim::If`.
    Branches,
    /// One block. After the trip count and the condition the op takes as many values as it gives; the block has
    /// the iteration number and these as parameters and gives the next condition and these: `prim::Loop`.
    Loop,
    /// A graph in the attribute `Subgraph` with as many inputs and outputs as the op has operands and results, without
    /// control flow: `fusion::Group`.
    Group,
    /// One block each, which take and give what their shapes say. The op's row runs them.
    Regions(&'static [Region]),
    /// One operand, no blocks, the integer attributes `chunks` and `dim`, and as many results as `chunks` says:
    /// `prim::ConstantChunk`.
    Parts,
    /// It stands in a kernel of the `loop` dialect that decodes.
    Kernel,
}

impl Structure {
    /// The integer attributes that the shape demands, in the order in which a derivative's function takes them.
    pub fn attributes(self) -> &'static [&'static str] {
        match self {
            Structure::Parts => &["chunks", "dim"],
            _ => &[],
        }
    }

    /// What is wrong with an op; None if it has the shape. Kernels are checked as a whole, by their dialect.
    pub fn violation(self, graph: &Graph, op: OpId) -> Option<String> {
        if self == Structure::Group {
            // The dialect says which of its laws is broken.
            return verify(graph, op).err().map(|error| error.message().to_string());
        }
        if let Structure::Regions(regions) = self {
            return region::violation(regions, graph, op);
        }
        let (operands, results) = (graph.operands(op).len(), graph.result_count(op));
        let blocks = graph.nested_blocks(op);
        let sizes = |n: usize| (graph.params(blocks[n]).len(), graph.block_results(blocks[n]).len());
        let fits = match self {
            Structure::Leaf => operands == 0 && results == 1 && blocks.is_empty(),
            Structure::Branches => {
                operands == 1 && blocks.len() == 2 && (0..2).all(|n| sizes(n) == (0, results))
            }
            Structure::Loop => {
                operands == results + 2 && blocks.len() == 1 && sizes(0) == (results + 1, results + 1)
            }
            Structure::Group | Structure::Regions(_) | Structure::Kernel => true,
            Structure::Parts => {
                let int = |name: &str| graph.attr(op, name).and_then(Attr::as_int);
                let complete = self.attributes().iter().all(|name| int(name).is_some());
                operands == 1 && blocks.is_empty() && complete && int("chunks") == Some(results as i64)
            }
        };
        (!fits).then(|| format!("{} {}", graph.kind(op), self.demand()))
    }

    /// The requirement as text, to follow the name of the op.
    pub fn demand(self) -> &'static str {
        match self {
            Structure::Leaf => "takes nothing, has no block and gives one value",
            Structure::Branches => {
                "takes a condition and has two blocks without parameters, which give as many values as it does"
            }
            Structure::Loop => {
                "takes a trip count, a condition and the values that it carries; its one block takes the iteration and \
                 these and gives a condition and these"
            }
            Structure::Group => {
                "has a graph in its attribute `Subgraph`, without control flow, with as many inputs and outputs as the op \
                 has operands and results"
            }
            Structure::Kernel => "must be in a kernel of loops",
            Structure::Regions(_) => "has the blocks that its row declares",
            Structure::Parts => {
                "takes one tensor, has the attributes `chunks` and `dim`, and gives as many values as `chunks` says"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::dialects::{Laws, Registry, Strictness};
    use crate::ir::{parse_graph, verify_graph};

    fn errors(body: &str) -> Vec<String> {
        let text = format!("graph(%c : bool, %n : int, %x : Tensor):\n{body}  return (%x)\n");
        let graph = parse_graph(&text).unwrap_or_else(|e| panic!("{text}\n{e}"));
        let registry = Registry::builtin();
        let found = [Strictness::Carry, Strictness::Dialects, Strictness::Ops].map(|strictness| {
            let found = verify_graph(&graph, &Laws::new(&registry, strictness), None);
            found.iter().map(|d| d.message().to_string()).collect::<Vec<_>>()
        });
        let [carry, dialects, ops] = found;
        assert_eq!(carry, dialects);
        // The strictest may say the same in terms of the schema.
        assert_eq!(carry.is_empty(), ops.is_empty(), "{ops:?}");
        carry
    }

    #[test]
    fn parts_that_passes_take_apart_are_there() {
        assert!(errors("  %k : int = prim::Constant[value=1]()\n").is_empty());
        assert_eq!(errors("  %k : int = prim::Constant[value=1](%n)\n").len(), 1);
        let branch = |yes: &str| {
            format!(
                "  %y : Tensor = prim::If(%c)\n    block0():\n      -> ({yes})\n    block1():\n      -> (%x)\n"
            )
        };
        assert!(errors(&branch("%x")).is_empty());
        assert_eq!(errors(&branch("%x, %x")).len(), 1);
        assert_eq!(errors("  %y : Tensor = prim::If(%c)\n    block0():\n      -> (%x)\n").len(), 1);
        let loop_text = |operands: &str, ends: &str| {
            format!(
                "  %y : Tensor = prim::Loop({operands})\n    block0(%i : int, %v : Tensor):\n      -> ({ends})\n"
            )
        };
        assert!(errors(&loop_text("%n, %c, %x", "%c, %v")).is_empty());
        assert_eq!(errors(&loop_text("%n, %c", "%c, %v")).len(), 1);
        assert_eq!(errors(&loop_text("%n, %c, %x", "%v")).len(), 1);
        let parts = |names: &str| format!("  {names} = prim::ConstantChunk[chunks=2, dim=0](%x)\n");
        assert!(errors(&parts("%a : Tensor, %b : Tensor")).is_empty());
        assert_eq!(errors(&parts("%a : Tensor, %b : Tensor, %d : Tensor")).len(), 1);
    }

    #[test]
    fn groups_fit_their_subgraphs() {
        let found = |results: &str, operands: &str, body: &str| {
            let text = format!(
                "graph(%x : Tensor):\n  {results} = fusion::Group_0({operands})\n  return (%x)\nwith fusion::Group_0 = \
                 graph(%x : Tensor):\n{body}  return (%1)\n"
            );
            let graph = parse_graph(&text).unwrap_or_else(|e| panic!("{text}\n{e}"));
            verify_graph(&graph, &Laws::new(&Registry::builtin(), Strictness::Carry), None).len()
        };
        let body = "  %1 : Tensor = aten::tanh(%x)\n";
        assert_eq!(found("%a : Tensor", "%x", body), 0);
        assert_eq!(found("%a : Tensor, %b : Tensor", "%x", body), 1);
        assert_eq!(found("%a : Tensor", "%x, %x", body), 1);
        let branch = "  %b : bool = prim::Constant[value=1]()\n  %1 : Tensor = prim::If(%b)\n    block0():\n      -> \
                      (%x)\n    block1():\n      -> (%x)\n";
        assert_eq!(found("%a : Tensor", "%x", branch), 1);
    }
}
