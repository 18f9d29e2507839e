//! Nodes of trees in the making, within a budget. It knows nothing of the tables that they are read from.

use crate::diag::{Diagnostic, Result};
use crate::frontend::archive::pickle::{Node, NodeId};

/// Values on their way into trees, within the budget of the file: its tables may share what a tree repeats.
pub(super) struct Nodes {
    pub(super) nodes: Vec<Node>,
    pub(super) left: u64,
}

impl Nodes {
    pub(super) fn add(&mut self, node: Node) -> Result<NodeId> {
        let mut children = 0;
        node.children(|_| children += 1);
        let text = if let Node::Str(text) = &node { text.len() as u64 } else { 0 };
        self.charge(64 + 8 * children + text)?;
        let id = u32::try_from(self.nodes.len()).map_err(|_| too_much())?;
        self.nodes.push(node);
        Ok(NodeId(id))
    }

    pub(super) fn charge(&mut self, bytes: u64) -> Result<()> {
        self.left = self.left.checked_sub(bytes).ok_or_else(too_much)?;
        Ok(())
    }

    pub(super) fn text(&mut self, text: &str) -> Result<NodeId> {
        self.add(Node::Str(text.into()))
    }

    pub(super) fn int(&mut self, value: impl Into<i64>) -> Result<NodeId> {
        self.add(Node::Int(value.into()))
    }

    pub(super) fn tuple(&mut self, items: impl Into<Box<[NodeId]>>) -> Result<NodeId> {
        self.add(Node::Tuple(items.into()))
    }
}

fn too_much() -> Diagnostic {
    Diagnostic::input("its values take far more memory than the file has bytes")
        .hint("Limits::budget_factor is the limit")
}
