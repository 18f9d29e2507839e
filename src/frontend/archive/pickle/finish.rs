//! The last step of reading a pickle: proves that the tree is acyclic, shallow and pure data, drops what
//! nothing refers to, and puts children before parents.

use hashbrown::HashSet;

use super::tree::{Node, NodeId, Pickle};
use crate::diag::{Diagnostic, Result};
use crate::frontend::archive::limits::Limits;

/// Turns the machine's nodes into a finished tree with the given root.
pub fn finish(mut nodes: Vec<Node>, root: NodeId, limits: &Limits) -> Result<Pickle> {
    let order = post_order(&nodes, root, limits)?;
    let mut place = vec![0u32; nodes.len()];
    for (index, id) in order.iter().enumerate() {
        if let Some(slot) = place.get_mut(id.index()) {
            *slot = index as u32;
        }
    }
    let mut out = Vec::with_capacity(order.len());
    for id in &order {
        let mut node = nodes.get_mut(id.index()).map_or(Node::None, |n| std::mem::replace(n, Node::None));
        node.map_children(|child| NodeId(place.get(child.index()).copied().unwrap_or(0)));
        out.push(node);
    }
    let pickle = Pickle::of_checked(out);
    check_nodes(&pickle)?;
    Ok(pickle)
}

impl Pickle {
    /// A tree from nodes of the caller's own in any order; it is checked like one that was read.
    pub fn from_nodes(nodes: Vec<Node>, root: NodeId, limits: &Limits) -> Result<Pickle> {
        let count = nodes.len();
        if count > u32::MAX as usize {
            return Err(Diagnostic::input(format!("{count} values are too many for one pickle")));
        }
        finish(nodes, root, limits)
    }
}

const NEW: u32 = 0;
const OPEN: u32 = u32::MAX;

/// All nodes below the root, children first. Walks with a stack of its own.
fn post_order(nodes: &[Node], root: NodeId, limits: &Limits) -> Result<Vec<NodeId>> {
    // For each node: not seen, on the path, or one more than its height.
    let mut state = vec![NEW; nodes.len()];
    let mut order = Vec::new();
    let mut stack = vec![(root, false)];
    while let Some((id, done)) = stack.pop() {
        let (Some(node), Some(mark)) = (nodes.get(id.index()), state.get(id.index()).copied()) else {
            return Err(Diagnostic::input(format!(
                "the tree refers to the value {}, which it does not have",
                id.0
            )));
        };
        if done {
            let mut height = 1;
            node.children(|child| {
                height = height.max(state.get(child.index()).copied().unwrap_or(0).saturating_add(1));
            });
            if height > limits.pickle_depth {
                return Err(Diagnostic::input(format!(
                    "the data is nested more than {} deep",
                    limits.pickle_depth
                )));
            }
            if let Some(slot) = state.get_mut(id.index()) {
                *slot = height;
            }
            order.push(id);
            continue;
        }
        if mark != NEW {
            continue; // finished already; an open one is caught where it is pushed
        }
        if let Some(slot) = state.get_mut(id.index()) {
            *slot = OPEN;
        }
        stack.push((id, true));
        let first = stack.len();
        let mut cyclic = false;
        node.children(|child| match state.get(child.index()).copied() {
            Some(OPEN) => cyclic = true,
            // A child that does not exist is reported when it is visited.
            Some(NEW) | None => stack.push((child, false)),
            Some(_) => {}
        });
        if cyclic {
            return Err(Diagnostic::input(format!("{} contains itself", node.kind())));
        }
        if let Some(children) = stack.get_mut(first..) {
            children.reverse(); // so that they are finished in their own order
        }
    }
    Ok(order)
}

/// Refuses what is not data, and dicts with two values for a key.
fn check_nodes(pickle: &Pickle) -> Result<()> {
    for (_, node) in pickle.iter() {
        match node {
            Node::Global(_) | Node::Storage(_) => {
                return Err(Diagnostic::input(format!("{} where data should be", node.kind())));
            }
            Node::Dict(dict) => check_keys(pickle, &dict.pairs)?,
            _ => {}
        }
    }
    Ok(())
}

/// What makes two keys of a dict equal. A `bool` is not an `int` in TorchScript.
#[derive(PartialEq, Eq, Hash)]
enum Key<'a> {
    Str(&'a str),
    Int(i64),
    Bool(bool),
    Float(u64),
    Complex(u64, u64),
    Tensor(NodeId),
}

fn check_keys(pickle: &Pickle, pairs: &[(NodeId, NodeId)]) -> Result<()> {
    let mut seen = HashSet::with_capacity(pairs.len());
    for (key, _) in pairs {
        let node = pickle.node(*key);
        let fresh = seen.insert(match node {
            Node::Str(text) => Key::Str(text),
            Node::Int(value) => Key::Int(*value),
            Node::Bool(value) => Key::Bool(*value),
            Node::Float(value) => Key::Float(value.to_bits()),
            Node::Complex(re, im) => Key::Complex(re.to_bits(), im.to_bits()),
            Node::Tensor(_) => Key::Tensor(*key),
            _ => return Err(Diagnostic::input(format!("a dict has {} as key", node.kind()))),
        });
        if !fresh {
            let shown = match node {
                Node::Str(text) => format!(" `{}`", text.chars().take(80).collect::<String>().escape_debug()),
                Node::Int(value) => format!(" {value}"),
                _ => String::new(),
            };
            return Err(Diagnostic::input(format!("a dict has two values for the key{shown}")));
        }
    }
    Ok(())
}
