//! The e-graph's language: a node is a head and children. Heads are interned for one saturation; a head is an op
//! by its overload, attributes and result type, a constant, or a value from outside. Which ops there are is open.

use crate::dialects::Op;
use crate::ir::{Attr, OpId, Symbol, Type, TypeKind, ValueId};
use egg::{Analysis, DidMerge, EGraph, Id, Justification, Language};
use hashbrown::HashMap;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The e-graph of one function.
pub(in crate::rewrite) type Graphs = EGraph<Node, Knowledge>;

/// A node of the e-graph.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::rewrite) struct Node {
    /// Index into [`Heads`].
    pub(in crate::rewrite) head: u32,
    /// Operands.
    pub(in crate::rewrite) children: SmallVec<[Id; 4]>,
}

impl Language for Node {
    type Discriminant = u32;

    fn discriminant(&self) -> u32 {
        self.head
    }

    fn matches(&self, other: &Self) -> bool {
        self.head == other.head && self.children.len() == other.children.len()
    }

    fn children(&self) -> &[Id] {
        &self.children
    }

    fn children_mut(&mut self) -> &mut [Id] {
        &mut self.children
    }
}

/// What a head means.
#[derive(Clone, Debug)]
pub(in crate::rewrite) enum Head {
    /// An op.
    Op(OpHead),
    /// A constant of a type; None is the constant `None`.
    Constant(Type, Option<Attr>),
    /// A value that something outside of the language makes.
    Leaf(Type),
    /// One of several results of the op that is the child.
    Result(usize),
}

/// An op as a head.
#[derive(Clone, Debug)]
pub(in crate::rewrite) struct OpHead {
    /// The row.
    pub(in crate::rewrite) op: Op,
    /// Attributes.
    pub(in crate::rewrite) attributes: SmallVec<[(Symbol, Attr); 1]>,
    /// The result's type, without sizes.
    pub(in crate::rewrite) ty: Type,
    /// The one op of the graph that it is, where that is distinguishable from an equal one; with several results
    /// of nested blocks, which.
    pub(in crate::rewrite) pin: Option<(OpId, usize)>,
}

type OpKey = (usize, Option<(OpId, usize)>, Type);

/// All heads of one saturation.
#[derive(Clone, Debug, Default)]
pub(in crate::rewrite) struct Heads {
    all: Vec<Head>,
    ops: HashMap<OpKey, SmallVec<[u32; 1]>>,
    constants: HashMap<(Type, u64), SmallVec<[u32; 1]>>,
    leaves: HashMap<ValueId, u32>,
    results: HashMap<usize, u32>,
}

impl Heads {
    pub(in crate::rewrite) fn get(&self, n: u32) -> &Head {
        &self.all[n as usize]
    }

    pub(in crate::rewrite) fn op(&mut self, head: OpHead) -> u32 {
        let key = (head.op.id(), head.pin, head.ty.clone());
        let known = self.ops.get(&key).into_iter().flatten().copied();
        for n in known {
            if let Head::Op(other) = &self.all[n as usize]
                && other.attributes == head.attributes
            {
                return n;
            }
        }
        let n = self.push(Head::Op(head));
        self.ops.entry(key).or_default().push(n);
        n
    }

    pub(super) fn leaf(&mut self, value: ValueId, ty: &Type) -> u32 {
        if let Some(n) = self.leaves.get(&value) {
            return *n;
        }
        let n = self.push(Head::Leaf(ty.clone()));
        self.leaves.insert(value, n);
        n
    }

    pub(in crate::rewrite) fn result(&mut self, which: usize) -> u32 {
        if let Some(n) = self.results.get(&which) {
            return *n;
        }
        let n = self.push(Head::Result(which));
        self.results.insert(which, n);
        n
    }

    /// Constants are equal if kind, type and bits are: the int 1, the bool true and the float 1.0 differ.
    pub(in crate::rewrite) fn constant(&mut self, ty: &Type, attr: Option<&Attr>) -> u32 {
        let ty = if attr.is_none() { Type::none() } else { ty.clone() };
        // Truth values may be written as 0 and 1.
        let truth = match (ty.kind(), attr) {
            (TypeKind::Bool, Some(Attr::Int(x))) => Some(Attr::Bool(*x != 0)),
            _ => None,
        };
        let attr = truth.as_ref().or(attr);
        let bits = match attr {
            Some(Attr::Int(x)) => *x as u64,
            Some(Attr::Bool(x)) => u64::from(*x),
            Some(Attr::Float(x)) => x.to_bits(),
            Some(Attr::Str(x)) => hash(x),
            Some(Attr::Ints(x)) => hash(x),
            Some(Attr::Strs(x)) => hash(x),
            _ => 0,
        };
        let key = (ty.clone(), bits);
        for n in self.constants.get(&key).into_iter().flatten() {
            if let Head::Constant(_, other) = &self.all[*n as usize]
                && other.as_ref() == attr
            {
                return *n;
            }
        }
        let n = self.push(Head::Constant(ty, attr.cloned()));
        self.constants.entry(key).or_default().push(n);
        n
    }

    /// Values from outside with their heads, in no order.
    pub(in crate::rewrite) fn leaves(&self) -> impl Iterator<Item = (ValueId, u32)> {
        self.leaves.iter().map(|(value, head)| (*value, *head))
    }

    fn push(&mut self, head: Head) -> u32 {
        self.all.push(head);
        self.all.len() as u32 - 1
    }
}

/// Equal for equal things; distinguishes many constants.
fn hash(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

/// What is known of a class.
#[derive(Clone, Debug)]
pub(in crate::rewrite) struct Facts {
    /// Its type, the most exact that is known.
    pub(in crate::rewrite) ty: Type,
    /// Its value, where it is constant; with the type of the constant.
    pub(in crate::rewrite) constant: Option<(Type, Attr)>,
    /// Values of the graph that are in it, in program order.
    pub(in crate::rewrite) values: SmallVec<[ValueId; 2]>,
    /// Whether something writes to it: then all values in it are one object.
    pub(in crate::rewrite) written: bool,
    /// Whether a rule made something equal to it.
    pub(in crate::rewrite) touched: bool,
}

/// Keeps [`Facts`] with every class.
#[derive(Clone, Debug, Default)]
pub(in crate::rewrite) struct Knowledge {
    pub(in crate::rewrite) heads: Heads,
    /// The type that the next node has, where the graph says more than the op's schema.
    pub(in crate::rewrite) stated: Option<Type>,
    /// Classes that are new, or have new facts, since the last request. Numbers are left out: of
    /// them nothing new can be known.
    pub(in crate::rewrite) changed: Vec<Id>,
    /// Nodes that take a class which became a number since then.
    pub(in crate::rewrite) above: RefCell<Vec<Id>>,
}

impl Analysis<Node> for Knowledge {
    type Data = Facts;

    fn make(egraph: &mut Graphs, node: &Node, _: Id) -> Facts {
        let stated = egraph.analysis.stated.take();
        let (ty, constant) = match egraph.analysis.heads.get(node.head) {
            Head::Op(head) => (head.ty.clone(), None),
            Head::Constant(ty, attr) => (ty.clone(), Some((ty.clone(), attr.clone().unwrap_or(Attr::None)))),
            Head::Leaf(ty) => (ty.clone(), None),
            Head::Result(_) => (Type::any(), None),
        };
        Facts { ty: stated.unwrap_or(ty), constant, values: SmallVec::new(), written: false, touched: false }
    }

    fn merge(&mut self, a: &mut Facts, b: Facts) -> DidMerge {
        if exactness(&b.ty) > exactness(&a.ty) {
            a.ty = b.ty;
        }
        if a.constant.is_none() {
            a.constant = b.constant;
        }
        // A value is in one class only.
        a.values.extend(b.values);
        a.written |= b.written;
        a.touched |= b.touched;
        // What is known of a class follows from its own nodes: nothing is new for those above it. To have them examined
        // would take a step for each of them whenever two classes become one.
        DidMerge(false, false)
    }

    fn pre_union(egraph: &Graphs, a: Id, b: Id, _: &Option<Justification>) {
        let (a, b) = (&egraph[egraph.find(a)], &egraph[egraph.find(b)]);
        for (number, other) in [(a, b), (b, a)] {
            if is_number(number.data.constant.as_ref()) {
                egraph.analysis.above.borrow_mut().extend(other.parents());
            }
        }
    }

    fn modify(egraph: &mut Graphs, id: Id) {
        if !is_number(egraph[id].data.constant.as_ref()) {
            egraph.analysis.changed.push(id);
        }
    }
}

/// Whether a class is a number or a truth value: it needs no other form.
pub(super) fn is_number(constant: Option<&(Type, Attr)>) -> bool {
    matches!(constant, Some((_, Attr::Int(_) | Attr::Float(_) | Attr::Bool(_))))
}

/// How much a type says.
fn exactness(ty: &Type) -> usize {
    match ty.kind() {
        TypeKind::Tensor(t) => {
            2 + usize::from(t.dtype.is_some())
                + usize::from(t.sizes.is_some())
                + usize::from(t.strides.is_some())
        }
        TypeKind::Any => 0,
        TypeKind::Optional(_) | TypeKind::Union(_) => 1,
        _ => 6,
    }
}
