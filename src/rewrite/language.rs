//! The e-graph's language: a node is a head and children. Heads are interned for one saturation; a head is an op
//! by its overload, a constant, or a value from outside. Which ops there are is open.

use crate::dialects::Op;
use crate::ir::{Attr, Graph, Type, TypeKind, ValueId};
use egg::{Analysis, DidMerge, EGraph, Id, Language};
use smallvec::SmallVec;

/// A node of the e-graph.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Node {
    /// Index into [`Heads`].
    pub(super) head: u32,
    /// Operands.
    pub(super) children: SmallVec<[Id; 4]>,
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
pub(super) enum Head {
    /// An op.
    Op(Op),
    /// A constant of a type; None is the constant `None`.
    Constant(Type, Option<Attr>),
    /// A value that the region takes from outside, or that a node outside of the language makes.
    Leaf(ValueId, Type),
}

/// All heads of one saturation.
#[derive(Clone, Debug, Default)]
pub(super) struct Heads(Vec<Head>);

impl Heads {
    pub(super) fn get(&self, n: u32) -> &Head {
        &self.0[n as usize]
    }

    pub(super) fn op(&mut self, op: &Op) -> u32 {
        self.find(|h| matches!(h, Head::Op(other) if other.same(op)), || Head::Op(op.clone()))
    }

    pub(super) fn leaf(&mut self, graph: &Graph, value: ValueId) -> u32 {
        let same = |h: &Head| matches!(h, Head::Leaf(other, _) if *other == value);
        self.find(same, || Head::Leaf(value, graph.ty(value).clone()))
    }

    /// Constants are equal if kind, type and bits are: the int 1, the bool true and the float 1.0 differ.
    pub(super) fn constant(&mut self, ty: &Type, attr: Option<&Attr>) -> u32 {
        let same = |h: &Head| match h {
            Head::Constant(t, a) => t == ty && a.as_ref() == attr,
            _ => false,
        };
        self.find(same, || Head::Constant(ty.clone(), attr.cloned()))
    }

    fn find(&mut self, same: impl Fn(&Head) -> bool, make: impl FnOnce() -> Head) -> u32 {
        if let Some(at) = self.0.iter().position(same) {
            return at as u32;
        }
        self.0.push(make());
        self.0.len() as u32 - 1
    }
}

/// What is known of a class.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Facts {
    /// Its type, the most exact that is known.
    pub(super) ty: Type,
    /// Its value, where it is constant.
    pub(super) constant: Option<Attr>,
}

/// Keeps [`Facts`] with every class.
#[derive(Clone, Debug, Default)]
pub(super) struct Knowledge {
    pub(super) heads: Heads,
    /// The type that the next node has, where the graph says more than the op's schema.
    pub(super) stated: Option<Type>,
}

impl Analysis<Node> for Knowledge {
    type Data = Facts;

    fn make(egraph: &mut EGraph<Node, Self>, node: &Node, _: Id) -> Facts {
        let stated = egraph.analysis.stated.take();
        match egraph.analysis.heads.get(node.head) {
            Head::Op(op) => {
                let declared = op.schema().ok().and_then(|s| s.returns.first()).map(|r| r.ty.clone());
                Facts { ty: stated.or(declared).unwrap_or_else(Type::tensor), constant: None }
            }
            Head::Constant(ty, attr) => {
                Facts { ty: ty.clone(), constant: Some(attr.clone().unwrap_or(Attr::None)) }
            }
            Head::Leaf(_, ty) => Facts { ty: ty.clone(), constant: None },
        }
    }

    fn merge(&mut self, a: &mut Facts, b: Facts) -> DidMerge {
        let mut did = DidMerge(false, false);
        if exactness(&b.ty) > exactness(&a.ty) {
            a.ty = b.ty;
            did.0 = true;
        } else if exactness(&a.ty) > exactness(&b.ty) {
            did.1 = true;
        }
        if a.constant.is_none() && b.constant.is_some() {
            a.constant = b.constant;
            did.0 = true;
        } else if a.constant.is_some() && b.constant.is_none() {
            did.1 = true;
        }
        did
    }
}

/// How much a type says.
fn exactness(ty: &Type) -> usize {
    match ty.kind() {
        TypeKind::Tensor(t) => {
            usize::from(t.dtype.is_some()) + usize::from(t.sizes.is_some()) + usize::from(t.strides.is_some())
        }
        _ => 4,
    }
}
