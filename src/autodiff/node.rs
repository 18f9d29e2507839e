//! Nodes of the tape: operations that were recorded.

use super::cell::{Cell, Parameter};
use super::saved::Saved;
use crate::diag::Span;
use crate::dialects::{Recorded, Region};
use crate::resources::Charge;
use crate::tensor::{DType, Dims, Layout, Tensor, WeakTensor};
use parking_lot::Mutex;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// What the budget of a run is charged for a node, besides the tensors that it keeps.
const NODE_BYTES: usize = 512;

/// Later operations have greater numbers: an edge points to a smaller one.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// A recorded operation.
pub(super) struct Node {
    /// The op's full name.
    pub(super) name: String,
    pub(super) number: u64,
    pub(super) work: Work,
    /// Where the gradients of the operands go.
    pub(super) operands: Vec<Operand>,
    /// What is known of its outputs.
    pub(super) outputs: Vec<Output>,
    /// Where the operation stands in the program, once that is said.
    pub(super) place: OnceLock<Span>,
    /// Outputs that keep their gradients, with the tensors that hold them.
    retained: Mutex<Vec<(usize, WeakTensor)>>,
    pub(super) _charge: Charge,
}

/// An operand that may want a gradient.
#[derive(Clone)]
pub(super) struct Operand {
    /// Which argument of the op.
    pub(super) argument: usize,
    /// Which tensor of it, where it is a list.
    pub(super) item: Option<usize>,
    pub(super) edge: Edge,
    pub(super) sizes: Dims,
    pub(super) dtype: DType,
}

/// Where the gradient of a value goes.
#[derive(Clone)]
pub(super) enum Edge {
    /// Nowhere: it needs none.
    None,
    /// To an output of a node.
    Node(Arc<Node>, usize),
    /// To a leaf.
    Leaf(Tensor),
}

impl Edge {
    pub(super) fn is_none(&self) -> bool {
        matches!(self, Edge::None)
    }
}

/// An output.
pub(super) struct Output {
    pub(super) sizes: Dims,
    pub(super) dtype: DType,
}

/// How gradients of outputs become gradients of operands.
pub(super) enum Work {
    /// By a cell.
    Cell {
        cell: Arc<Cell>,
        /// What was saved for which parameter; None after it was freed.
        saved: Mutex<Option<Vec<(Parameter, Saved)>>>,
    },
    /// By the node of an op that wrote to a view: the first operand is the base.
    Write(Box<Write>),
    /// By the backward of work that ran as one.
    Region {
        region: Arc<dyn Region>,
        /// Its operands; None after they were freed.
        saved: Mutex<Option<Vec<Saved>>>,
    },
    /// They are zero: the output has no elements.
    Nothing,
    /// It cannot be done, for this reason.
    Refused(String),
}

/// An op that wrote to a view.
pub(super) struct Write {
    /// The op.
    pub(super) inner: Arc<Node>,
    /// Which operand of it the view is, if it was one.
    pub(super) target: Option<usize>,
    pub(super) base: (DType, Layout),
    pub(super) view: (DType, Layout),
}

impl Node {
    pub(super) fn new(name: String, work: Work, operands: Vec<Operand>, outputs: Vec<Output>) -> Arc<Node> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let place = OnceLock::new();
        let retained = Mutex::default();
        let _charge = Charge::taken(NODE_BYTES);
        Arc::new(Node { name, number, work, operands, outputs, place, retained, _charge })
    }

    /// The name as PyTorch's errors show it: `aten::mul.Tensor` → `Mul`.
    pub(super) fn shown(&self) -> String {
        let base = self.name.rsplit("::").next().unwrap_or_default();
        let base = base.split('.').next().unwrap_or_default();
        let capital = |word: &str| {
            let mut letters = word.chars();
            letters.next().map_or(String::new(), |c| c.to_ascii_uppercase().to_string() + letters.as_str())
        };
        base.split('_').map(capital).collect()
    }

    /// Lets an output keep its gradient in a tensor.
    pub(super) fn retain(&self, output: usize, tensor: &Tensor) {
        if !self.retains(tensor) {
            self.retained.lock().push((output, tensor.downgrade()));
        }
    }

    /// Whether an output keeps its gradient in this tensor.
    pub(super) fn retains(&self, tensor: &Tensor) -> bool {
        self.retained().iter().any(|(_, known)| known.same(tensor))
    }

    /// No output keeps its gradient in this tensor any more; gives whether one did.
    pub(super) fn release(&self, tensor: &Tensor) -> bool {
        let mut retained = self.retained.lock();
        let before = retained.len();
        retained.retain(|(_, known)| known.upgrade().is_some_and(|known| !known.same(tensor)));
        retained.len() < before
    }

    /// Outputs that keep their gradients, with the tensors that are still there.
    pub(super) fn retained(&self) -> Vec<(usize, Tensor)> {
        let retained = self.retained.lock();
        retained.iter().filter_map(|(output, tensor)| Some((*output, tensor.upgrade()?))).collect()
    }

    /// Where the operation stands.
    pub(super) fn place(&self) -> Option<Span> {
        self.place.get().cloned()
    }

    /// What is freed when the node is.
    fn take_parts(&mut self) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        match &mut self.work {
            Work::Cell { saved, .. } => {
                let saved = saved.get_mut().take().unwrap_or_default();
                parts.extend(saved.into_iter().map(|(_, saved)| Part::Saved(saved)));
            }
            Work::Region { saved, .. } => {
                parts.extend(saved.get_mut().take().unwrap_or_default().into_iter().map(Part::Saved));
            }
            Work::Write(write) => {
                let stub = Node {
                    name: String::new(),
                    number: 0,
                    work: Work::Refused(String::new()),
                    operands: Vec::new(),
                    outputs: Vec::new(),
                    place: OnceLock::new(),
                    retained: Mutex::default(),
                    _charge: Charge::taken(0),
                };
                parts.push(Part::Node(std::mem::replace(&mut write.inner, Arc::new(stub))));
            }
            Work::Refused(_) | Work::Nothing => {}
        }
        parts.extend(self.operands.drain(..).map(|operand| Part::Edge(operand.edge)));
        parts
    }
}

impl Recorded for Node {
    fn at(&self, span: &Span) {
        let _ = self.place.set(span.clone());
        if let Work::Write(write) = &self.work {
            write.inner.at(span);
        }
    }
}

/// A part of a node that may be the last to hold other nodes.
enum Part {
    Saved(Saved),
    Edge(Edge),
    Node(Arc<Node>),
}

impl Part {
    fn free(self) {
        match self {
            Part::Saved(saved) => drop(saved),
            Part::Edge(edge) => drop(edge),
            Part::Node(node) => drop(node),
        }
    }
}

thread_local! {
    /// Parts of nodes that are being freed, and whether a call further up the stack frees them: a chain of nodes is as long as a program
    /// likes, and must not take the stack.
    static FREED: RefCell<(Vec<Part>, bool)> = const { RefCell::new((Vec::new(), false)) };
}

impl Drop for Node {
    fn drop(&mut self) {
        let parts = self.take_parts();
        if parts.is_empty() {
            return;
        }
        let mut parts = Some(parts);
        let begins = FREED.try_with(|freed| {
            let mut freed = freed.borrow_mut();
            freed.0.extend(parts.take().unwrap_or_default());
            !std::mem::replace(&mut freed.1, true)
        });
        // Where the thread ends there is no queue any more; what is left is freed as it lies.
        if !begins.unwrap_or(false) {
            return;
        }
        while let Ok(Some(part)) = FREED.try_with(|freed| freed.borrow_mut().0.pop()) {
            part.free();
        }
        let _ = FREED.try_with(|freed| freed.borrow_mut().1 = false);
    }
}

/// What is known of a tensor that is an output.
pub(super) fn output_of(tensor: &Tensor) -> Output {
    Output { sizes: tensor.sizes(), dtype: tensor.dtype() }
}
