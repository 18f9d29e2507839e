//! Where rules match in an e-graph, and how right sides are built.

use super::compile::{CompiledRule, OpNode, Term};
use super::condition::{self, Kind, Seen, Subjects};
use super::language::{Graphs, Head, Node, OpHead};
use super::load::Loaded;
use crate::dialects::Op;
use crate::dialects::shapes::{self, Known, Operands};
use crate::ir::{Attr, Dim, Graph, Type, TypeKind};
use crate::rewrite::compile::result_type;
use crate::tensor::DType;
use egg::Id;
use smallvec::SmallVec;
use std::cell::Cell;
use std::sync::Arc;

/// Alternatives of one match at one class are bounded.
const MAX_MATCHES: usize = 64;
/// Forms of a class that are looked at inside of a term: a constant may have as many as the graph has ops.
const MAX_FORMS: usize = 64;

/// What a name stands for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Bound<T: Copy = Id> {
    /// One term.
    One(T),
    /// Any number of operands or elements.
    Many(SmallVec<[T; 4]>),
}

/// What the names of a rule stand for: classes, or values of a graph.
#[derive(Clone, Debug)]
pub(super) struct Subst<T: Copy = Id>(pub(super) SmallVec<[(Arc<str>, Bound<T>); 4]>);

impl<T: Copy> Default for Subst<T> {
    fn default() -> Subst<T> {
        Subst(SmallVec::new())
    }
}

impl<T: Copy> Subst<T> {
    pub(super) fn get(&self, name: &str) -> Option<&Bound<T>> {
        self.0.iter().find(|(n, _)| **n == *name).map(|(_, bound)| bound)
    }

    pub(super) fn with(&self, name: &Arc<str>, bound: Bound<T>) -> Subst<T> {
        let mut next = self.clone();
        next.0.push((Arc::clone(name), bound));
        next
    }
}

/// Whether a term may match a class, as far as the ops and constants in it tell. Builds nothing: most candidates
/// end here.
pub(super) fn may_match(loaded: &Loaded, term: &Term, id: Id) -> bool {
    let class = &loaded.egraph[loaded.egraph.find(id)];
    let constant = class.data.constant.as_ref();
    match term {
        Term::Variable(_, ty) => type_fits(ty, &class.data.ty),
        Term::Constant(ty, attr) => match (constant, attr) {
            (Some((t, known)), Some(attr)) => known == attr && same_kind(t, ty),
            (Some((_, known)), None) => *known == Attr::None,
            (None, _) => false,
        },
        Term::Compute(..) => constant.is_some(),
        Term::List(..) | Term::Rest(..) => true,
        Term::Op(_) if is_number(constant) => false,
        Term::Op(pattern) => class.nodes.iter().any(|node| may_match_node(loaded, pattern, node)),
    }
}

fn may_match_node(loaded: &Loaded, pattern: &OpNode, node: &Node) -> bool {
    let head = match (loaded.head(node), pattern.result) {
        (Head::Result(n), Some(wanted)) => return *n == wanted,
        (Head::Op(head), None) => head,
        _ => return false,
    };
    if !head.op.same(&pattern.op) {
        return false;
    }
    let variadic = || pattern.operands.iter().any(|t| matches!(t, Term::Rest(..)));
    if !pattern.blocks.is_empty() || variadic() {
        return true;
    }
    node.children.len() == pattern.operands.len()
        && pattern.operands.iter().zip(&node.children).all(|(term, child)| may_match(loaded, term, *child))
}

/// The ways in which a rule's left side matches a class.
pub(super) fn matches(loaded: &Loaded, term: &Term, id: Id, subst: &Subst) -> Vec<Subst> {
    if !may_match(loaded, term, id) {
        return Vec::new();
    }
    matches_among(loaded, term, id, subst, usize::MAX)
}

/// The ways in which a term matches one of the first forms of a class.
fn matches_among(loaded: &Loaded, term: &Term, id: Id, subst: &Subst, forms: usize) -> Vec<Subst> {
    let egraph = &loaded.egraph;
    let id = egraph.find(id);
    match term {
        Term::Variable(name, ty) => match subst.get(name) {
            Some(Bound::One(known)) if egraph.find(*known) == id => vec![subst.clone()],
            Some(_) => Vec::new(),
            None if type_fits(ty, &egraph[id].data.ty) => vec![subst.with(name, Bound::One(id))],
            None => Vec::new(),
        },
        Term::Constant(ty, attr) => {
            let wanted = attr.clone().unwrap_or(Attr::None);
            let known = egraph[id].data.constant.as_ref();
            let fits = known.is_some_and(|(t, a)| *a == wanted && (attr.is_none() || same_kind(t, ty)));
            if fits { vec![subst.clone()] } else { Vec::new() }
        }
        Term::Compute(expr, _) => {
            let known = egraph[id].data.constant.as_ref().map(|(_, attr)| attr.clone());
            let names = Names { loaded, graph: None, subst, root: id };
            let wanted = condition::evaluate(expr, &names);
            if wanted.is_some() && wanted == known { vec![subst.clone()] } else { Vec::new() }
        }
        Term::List(_, items) => {
            let mut found = Vec::new();
            let Some(row) = loaded.list_row() else { return found };
            for node in egraph[id].nodes.iter().take(forms) {
                if matches!(loaded.head(node), Head::Op(head) if head.op.same(row)) {
                    found.extend(sequence(loaded, items, &node.children, subst));
                }
            }
            found
        }
        Term::Rest(..) => Vec::new(),
        // A number needs no other form; all terms that have its value would be found here.
        Term::Op(_) if is_number(egraph[id].data.constant.as_ref()) => Vec::new(),
        Term::Op(pattern) => {
            let mut found = Vec::new();
            for node in egraph[id].nodes.iter().take(forms) {
                found.extend(match_node(loaded, pattern, id, node, subst));
                if found.len() > MAX_MATCHES {
                    break;
                }
            }
            found
        }
    }
}

fn is_number(constant: Option<&(Type, Attr)>) -> bool {
    matches!(constant, Some((_, Attr::Int(_) | Attr::Float(_) | Attr::Bool(_))))
}

fn match_node(loaded: &Loaded, pattern: &OpNode, id: Id, node: &Node, subst: &Subst) -> Vec<Subst> {
    let bind = |found: Vec<Subst>| match &pattern.bound {
        Some(name) => found.into_iter().map(|s| s.with(name, Bound::One(id))).collect(),
        None => found,
    };
    match (loaded.head(node), pattern.result) {
        (Head::Result(n), Some(wanted)) if *n == wanted => {
            let whole = OpNode { result: None, bound: None, ..pattern.clone() };
            let inner = loaded.egraph.find(node.children[0]);
            let nodes = &loaded.egraph[inner].nodes;
            bind(nodes.iter().flat_map(|n| match_op(loaded, &whole, n, subst)).collect())
        }
        (Head::Op(_), None) => bind(match_op(loaded, pattern, node, subst)),
        _ => Vec::new(),
    }
}

pub(super) fn match_op(loaded: &Loaded, pattern: &OpNode, node: &Node, subst: &Subst) -> Vec<Subst> {
    let Head::Op(head) = loaded.head(node) else { return Vec::new() };
    if !head.op.same(&pattern.op) {
        return Vec::new();
    }
    let attribute_fits = |(name, term): &(crate::ir::Symbol, Term)| {
        let own = head.attributes.iter().find(|(n, _)| n == name).map(|(_, a)| a);
        matches!(term, Term::Constant(_, attr) if own == attr.as_ref())
    };
    if !pattern.attributes.iter().all(attribute_fits) {
        return Vec::new();
    }
    if pattern.blocks.is_empty() {
        return sequence(loaded, &pattern.operands, &node.children, subst);
    }
    // A choice: its condition, and the result of each block.
    let terms = pattern.operands.iter().chain(pattern.blocks.iter().flatten());
    let terms: Vec<Term> = terms.cloned().collect();
    sequence(loaded, &terms, &node.children, subst)
}

/// Matches terms against operands one by one; a variadic term takes as many as are left over.
pub(super) fn sequence(loaded: &Loaded, terms: &[Term], children: &[Id], subst: &Subst) -> Vec<Subst> {
    let Some((first, rest)) = terms.split_first() else {
        return if children.is_empty() { vec![subst.clone()] } else { Vec::new() };
    };
    if let Term::Rest(name, _) = first {
        let fixed = rest.iter().filter(|t| !matches!(t, Term::Rest(..))).count();
        let Some(most) = children.len().checked_sub(fixed) else { return Vec::new() };
        // With one variadic term its length is known; with several, all ways are tried.
        let several = rest.iter().any(|t| matches!(t, Term::Rest(..)));
        let lengths = if several { 0..=most } else { most..=most };
        let mut found = Vec::new();
        for n in lengths {
            let taken = Bound::Many(SmallVec::from_slice(&children[..n]));
            let next = match subst.get(name) {
                Some(known) if *known == taken => subst.clone(),
                Some(_) => continue,
                None => subst.with(name, taken),
            };
            found.extend(sequence(loaded, rest, &children[n..], &next));
        }
        return found;
    }
    let Some((child, others)) = children.split_first() else { return Vec::new() };
    let mut found = Vec::new();
    for next in matches_among(loaded, first, *child, subst, MAX_FORMS) {
        found.extend(sequence(loaded, rest, others, &next));
        if found.len() > MAX_MATCHES {
            break;
        }
    }
    found
}

/// Whether a constant's type is the one that a literal has; lists of a kind are one.
pub(super) fn same_kind(a: &Type, b: &Type) -> bool {
    a == b || matches!(a.kind(), TypeKind::Optional(inner) if inner == b)
}

/// Whether a value of a type may be what a variable of a rule means.
pub(super) fn type_fits(wanted: &Type, actual: &Type) -> bool {
    use TypeKind as K;
    match (wanted.kind(), actual.kind()) {
        (K::Any, _) | (K::Tensor(_), K::Tensor(_)) => true,
        (K::Number, K::Int | K::Float | K::Complex | K::Number) => true,
        (K::ScalarType | K::Layout | K::MemoryFormat, K::Int) => true,
        (K::Optional(inner), _) => {
            matches!(actual.kind(), K::None)
                || type_fits(inner, actual)
                || matches!(actual.kind(), K::Optional(a) if type_fits(inner, a))
        }
        (K::List(w), K::List(a)) => type_fits(w, a),
        _ => wanted == actual,
    }
}

/// What names stand for, as conditions ask.
pub(super) struct Names<'a> {
    pub(super) loaded: &'a Loaded,
    pub(super) graph: Option<&'a Graph>,
    pub(super) subst: &'a Subst,
    pub(super) root: Id,
}

impl Subjects for Names<'_> {
    fn seen(&self, name: &str) -> Option<Seen> {
        let egraph = &self.loaded.egraph;
        let id = match (name, self.subst.get(name)) {
            ("result", _) => self.root,
            (_, Some(Bound::One(id))) => *id,
            (_, Some(Bound::Many(items))) => {
                return Some(Seen { kind: Kind::List, len: Some(items.len()), ..Seen::default() });
            }
            _ => return None,
        };
        let facts = &egraph[egraph.find(id)].data;
        let mut seen = seen_of(&facts.ty, facts.constant.as_ref());
        seen.one_use = match (self.graph, facts.values.as_slice()) {
            (Some(graph), [one]) => graph.has_one_use(*one),
            _ => false,
        };
        seen.len = self.list_length(id);
        Some(seen)
    }
}

/// What a type and a constant, with its type, say of a term.
pub(super) fn seen_of(ty: &Type, constant: Option<&(Type, Attr)>) -> Seen {
    let mut seen = Seen { kind: kind_of(ty), ..Seen::default() };
    seen.constant = constant.map(|(ty, attr)| match (ty.kind(), attr) {
        (TypeKind::Bool, Attr::Int(x)) => Attr::Bool(*x != 0),
        _ => attr.clone(),
    });
    seen.ty = Some(ty.clone());
    seen.may_be_none = matches!(ty.kind(), TypeKind::Optional(_) | TypeKind::Any | TypeKind::Union(_));
    if let TypeKind::Tensor(t) = ty.kind() {
        seen.dtype = t.dtype;
        seen.sizes = t.sizes.as_ref().map(|s| s.iter().map(|d| d.known()).collect());
        seen.strides = t.strides.as_ref().and_then(|s| s.iter().copied().collect());
        seen.device = t.device.clone();
    }
    seen
}

impl Names<'_> {
    fn list_length(&self, id: Id) -> Option<usize> {
        let row = self.loaded.list_row()?;
        let egraph = &self.loaded.egraph;
        let nodes = &egraph[egraph.find(id)].nodes;
        let list = nodes
            .iter()
            .take(MAX_FORMS)
            .find(|n| matches!(self.loaded.head(n), Head::Op(h) if h.op.same(row)))?;
        Some(list.children.len())
    }
}

fn kind_of(ty: &Type) -> Kind {
    match ty.kind() {
        TypeKind::Tensor(_) => Kind::Tensor,
        TypeKind::Int => Kind::Int,
        TypeKind::Float => Kind::Float,
        TypeKind::Complex => Kind::Complex,
        TypeKind::Bool => Kind::Bool,
        TypeKind::List(_) => Kind::List,
        TypeKind::None => Kind::None,
        _ => Kind::Other,
    }
}

/// Whether a rule's conditions hold at a match.
pub(super) fn holds(rule: &CompiledRule, names: &Names<'_>) -> Option<usize> {
    rule.conditions.iter().position(|c| condition::holds(c, names) != Some(true))
}

/// The result of a rule's arithmetic as a constant of the type that its place wants.
pub(super) fn computed(wanted: &Type, attr: Attr) -> (Type, Attr) {
    let attr = match (wanted.kind(), attr) {
        (TypeKind::Float, Attr::Int(x)) => Attr::Float(x as f64),
        (_, attr) => attr,
    };
    let ty = match (&attr, wanted.kind()) {
        (Attr::Float(_), TypeKind::Number) => Type::float(),
        (_, TypeKind::Number) => Type::int(),
        _ => wanted.clone(),
    };
    (ty, attr)
}

/// Adds the right side of a match to the e-graph; None where its arithmetic has no result.
pub(super) fn build(loaded: &mut Loaded, term: &Term, subst: &Subst, root: Id) -> Option<Id> {
    Some(match term {
        Term::Variable(name, _) => match subst.get(name)? {
            Bound::One(id) => *id,
            Bound::Many(_) => return None,
        },
        Term::Rest(..) => return None,
        Term::Constant(ty, attr) => constant(&mut loaded.egraph, ty, attr.as_ref()),
        Term::Compute(expr, ty) => {
            let names = Names { loaded, graph: None, subst, root };
            let (ty, attr) = computed(ty, condition::evaluate(expr, &names)?);
            constant(&mut loaded.egraph, &ty, Some(&attr))
        }
        Term::List(element, items) => {
            let row = loaded.list_row()?.clone();
            let children = operands(loaded, items, subst, root)?;
            let ty = match element.has_free_vars() {
                false => Type::list(element.clone()),
                true => Type::list(loaded.egraph[*children.first()?].data.ty.unshaped()),
            };
            let head = OpHead { op: row, attributes: SmallVec::new(), ty, pin: None };
            let head = loaded.egraph.analysis.heads.op(head);
            loaded.egraph.add(Node { head, children })
        }
        Term::Op(node) if node.blocks.is_empty() => {
            let children = operands(loaded, &node.operands, subst, root)?;
            let attributes = node
                .attributes
                .iter()
                .filter_map(|(name, term)| match term {
                    Term::Constant(_, Some(attr)) => Some((*name, attr.clone())),
                    _ => None,
                })
                .collect();
            let several = node.op.schema().ok()?.returns.len();
            let ty = match (node.result, several) {
                (Some(_), _) => {
                    let returns = node.op.schema().ok()?.returns.iter().map(|r| r.ty.clone());
                    Type::tuple(returns.collect::<Vec<_>>())
                }
                (None, 1) => result_type(term).unshaped(),
                _ => return None,
            };
            let head = OpHead { op: node.op.clone(), attributes, ty, pin: None };
            let head = loaded.egraph.analysis.heads.op(head);
            if node.result.is_none() {
                loaded.egraph.analysis.stated = inferred(loaded, &node.op, &children);
            }
            let built = Node { head, children };
            let id = loaded.egraph.add(built.clone());
            loaded.egraph.analysis.stated = None;
            loaded.last_built = Some(built);
            match node.result {
                None => id,
                Some(n) => {
                    let head = loaded.egraph.analysis.heads.result(n);
                    loaded.egraph.analysis.stated = Some(node.ty.clone());
                    let id = loaded.egraph.add(Node { head, children: SmallVec::from_slice(&[id]) });
                    loaded.egraph.analysis.stated = None;
                    id
                }
            }
        }
        Term::Op(_) => return None,
    })
}

/// The type of an op's one result, as far as its row can tell it from those of its operands.
fn inferred(loaded: &Loaded, op: &Op, children: &[Id]) -> Option<Type> {
    let schema = op.schema().ok()?;
    if schema.returns.len() != 1 || !schema.returns[0].ty.is_tensor() {
        return None;
    }
    let values: Vec<Known> = children.iter().map(|id| known(loaded, *id)).collect();
    let symbols = Cell::new(0);
    let mut found = shapes::infer(&Operands { op, values: &values, symbols: &symbols })?;
    let Some(Known::Tensor(mut tensor)) = found.pop() else { return None };
    if symbols.get() != 0 {
        // Sizes that only running it tells.
        (tensor.sizes, tensor.strides) = (None, None);
    }
    Some(Type::new(TypeKind::Tensor(tensor)))
}

/// What is known of a class before the program runs.
fn known(loaded: &Loaded, id: Id) -> Known {
    let egraph = &loaded.egraph;
    let class = &egraph[egraph.find(id)];
    match class.data.constant.as_ref().map(|(ty, attr)| (ty.kind(), attr)) {
        Some((TypeKind::Bool, Attr::Int(x))) => return Known::Bool(*x != 0),
        Some((_, Attr::Int(x))) => return Known::Int(Dim::Known(*x)),
        Some((_, Attr::Bool(x))) => return Known::Bool(*x),
        Some((_, Attr::Float(_))) => return Known::Number(DType::F64),
        Some((_, Attr::Str(x))) => return Known::Str(x.to_string()),
        Some((_, Attr::Ints(all))) => return Known::Ints(all.iter().map(|x| Dim::Known(*x)).collect()),
        Some((_, Attr::None)) => return Known::None,
        _ => {}
    }
    let list = |node: &&Node| match (loaded.head(node), loaded.list_row()) {
        (Head::Op(head), Some(row)) => head.op.same(row),
        _ => false,
    };
    match class.nodes.iter().take(MAX_FORMS).find(list) {
        Some(node) => {
            let items: Vec<Known> = node.children.iter().map(|c| known(loaded, *c)).collect();
            let ints = items.iter().map(|item| match item {
                Known::Int(dim) => Some(*dim),
                _ => None,
            });
            match ints.collect::<Option<Vec<Dim>>>() {
                Some(ints) if !ints.is_empty() => Known::Ints(ints),
                _ => Known::Items(items),
            }
        }
        None => Known::of_type(&class.data.ty),
    }
}

fn operands(loaded: &mut Loaded, terms: &[Term], subst: &Subst, root: Id) -> Option<SmallVec<[Id; 4]>> {
    let mut children = SmallVec::new();
    for term in terms {
        match term {
            Term::Rest(name, _) => match subst.get(name)? {
                Bound::Many(ids) => children.extend(ids.iter().copied()),
                Bound::One(_) => return None,
            },
            _ => children.push(build(loaded, term, subst, root)?),
        }
    }
    Some(children)
}

fn constant(egraph: &mut Graphs, ty: &Type, attr: Option<&Attr>) -> Id {
    let head = egraph.analysis.heads.constant(ty, attr);
    egraph.add(Node { head, children: SmallVec::new() })
}
