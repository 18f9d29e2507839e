//! What a conversion may leave: ops that are legal, ops that are not, and ops of which nothing is said.

use crate::dialects::Op;
use crate::ir::{Graph, OpId};
use crate::lowering::by_op::Ops;
use crate::lowering::record::is_lowered;
use std::sync::Arc;

/// What a target says of an op.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Legality {
    /// It may stay, and is left unchanged.
    Legal,
    /// It must go. With the selection that says so.
    Illegal(Ops),
    /// Nothing: it goes where a lowering handles it; whether it may stay is a matter of the conversion.
    Unknown,
}

/// Asked of an op of the graph.
type Question = Arc<dyn Fn(&Graph, OpId) -> bool + Send + Sync>;

/// What a conversion may leave. What is said of one op counts more than what is said of its family, and that more than what
/// is said of its dialect; of two such, the one that was said last.
#[derive(Clone, Default)]
pub struct ConversionTarget {
    said: Vec<(Ops, Answer)>,
    full: bool,
    /// Names of the lowerings that are asked, if not all are.
    by: Vec<String>,
}

#[derive(Clone)]
enum Answer {
    Legal,
    Illegal,
    Dynamic(Question),
}

impl ConversionTarget {
    /// A target that says nothing: each op goes that a lowering handles, others stay.
    pub fn new() -> ConversionTarget {
        ConversionTarget::default()
    }

    /// These may stay.
    pub fn legal(mut self, ops: Ops) -> ConversionTarget {
        self.said.push((ops, Answer::Legal));
        self
    }

    /// These must go.
    pub fn illegal(mut self, ops: Ops) -> ConversionTarget {
        self.said.push((ops, Answer::Illegal));
        self
    }

    /// These may stay where the answer is yes, and must go where it is no.
    pub fn dynamic(
        mut self,
        ops: Ops,
        is_legal: impl Fn(&Graph, OpId) -> bool + Send + Sync + 'static,
    ) -> ConversionTarget {
        self.said.push((ops, Answer::Dynamic(Arc::new(is_legal))));
        self
    }

    /// Ops of which nothing is said must go, too.
    pub fn full(mut self) -> ConversionTarget {
        self.full = true;
        self
    }

    /// Only lowerings that are named are asked; this adds one.
    pub fn by(mut self, lowering: &str) -> ConversionTarget {
        self.by.push(lowering.to_string());
        self
    }

    /// Whether a lowering is asked.
    pub fn asks(&self, lowering: &str) -> bool {
        self.by.is_empty() || self.by.iter().any(|name| name == lowering)
    }

    /// The lowerings that are named.
    pub fn named(&self) -> &[String] {
        &self.by
    }

    /// Whether ops of which nothing is said must go.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// What it says of an op; `row` is its row, if it has one. A fusion group that was lowered is legal.
    pub fn legality(&self, graph: &Graph, op: OpId, row: Option<&Op>) -> Legality {
        let holds = |ops: &Ops| match row {
            Some(row) => ops.contains(row),
            None => ops.contains_kind(graph.kind(op)),
        };
        let said = self.said.iter().filter(|(ops, _)| holds(ops)).max_by_key(|(ops, _)| ops.rank());
        match said {
            _ if is_lowered(graph, op) => Legality::Legal,
            Some((_, Answer::Legal)) => Legality::Legal,
            Some((ops, Answer::Illegal)) => Legality::Illegal(ops.clone()),
            Some((_, Answer::Dynamic(is_legal))) if is_legal(graph, op) => Legality::Legal,
            Some((ops, Answer::Dynamic(_))) => Legality::Illegal(ops.clone()),
            None => Legality::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::{Registry, resolve};
    use crate::ir::{Attr, parse_graph};

    #[test]
    fn what_is_said_of_an_op_counts_more_than_of_its_dialect() {
        let text = "graph(%x : Tensor):\n  %y : Tensor = aten::relu(%x)\n  %z : Tensor = aten::t(%y)\n  return (%z)\n";
        let (registry, mut graph) = (Registry::builtin(), parse_graph(text).expect("a graph"));
        let ops = graph.all_ops();
        let ops_of = |text: &str| Ops::parse(text).expect("a selection");
        let ask = |target: &ConversionTarget, graph: &Graph, n: usize| {
            let row = resolve(&registry, graph, ops[n]).expect("a row");
            target.legality(graph, ops[n], Some(&row))
        };
        let target = ConversionTarget::new().illegal(ops_of("aten::relu")).legal(ops_of("aten"));
        assert_eq!(ask(&target, &graph, 0), Legality::Illegal(Ops::named("aten::relu")));
        assert_eq!(ask(&target, &graph, 1), Legality::Legal);
        let last = target.legal(ops_of("aten::relu"));
        assert_eq!(ask(&last, &graph, 0), Legality::Legal);
        let family = ConversionTarget::new().illegal(ops_of("@view"));
        assert_eq!([0, 1].map(|n| ask(&family, &graph, n) == Legality::Unknown), [true, false]);
        let marked = |graph: &Graph, op| graph.attr(op, "mark").is_some();
        let dynamic = ConversionTarget::new().dynamic(ops_of("aten"), marked);
        graph.set_attr(ops[0], "mark", Attr::Int(1));
        assert_eq!(ask(&dynamic, &graph, 0), Legality::Legal);
        assert_eq!(ask(&dynamic, &graph, 1), Legality::Illegal(ops_of("aten")));
    }
}
