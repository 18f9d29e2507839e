//! Where rules match in an e-graph, and how right sides are built.

use super::enter::Loaded;
use super::language::{Graphs, Head, Node, OpHead, is_number};
use crate::dialects::Op;
use crate::dialects::shapes::{self, Known, Operands};
use crate::ir::{Attr, Dim, Graph, Stride, Type, TypeKind};
use crate::rewrite::load::compile::result_type;
use crate::rewrite::load::condition;
use crate::rewrite::load::condition::{Kind, Seen, Subjects};
use crate::rewrite::load::rule::{CompiledRule, OpNode, Term};
use crate::tensor::DType;
use egg::Id;
use smallvec::SmallVec;
use std::cell::Cell;
use std::sync::Arc;

/// Alternatives of one match at one class are bounded.
const MAX_MATCHES: usize = 64;
/// Forms of a class that are examined inside of a term: a constant may have as many as the graph has ops.
const MAX_FORMS: usize = 64;

/// What a name stands for.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::rewrite) enum Bound<T: Copy = Id> {
    /// One term.
    One(T),
    /// Any number of operands or elements.
    Many(SmallVec<[T; 4]>),
}

/// What the names of a rule stand for: classes, or values of a graph.
#[derive(Clone, Debug)]
pub(in crate::rewrite) struct Subst<T: Copy = Id>(pub(in crate::rewrite) SmallVec<[(Arc<str>, Bound<T>); 4]>);

impl<T: Copy> Default for Subst<T> {
    fn default() -> Subst<T> {
        Subst(SmallVec::new())
    }
}

impl<T: Copy> Subst<T> {
    pub(in crate::rewrite) fn get(&self, name: &str) -> Option<&Bound<T>> {
        self.0.iter().find(|(n, _)| **n == *name).map(|(_, bound)| bound)
    }

    pub(in crate::rewrite) fn with(&self, name: &Arc<str>, bound: Bound<T>) -> Subst<T> {
        let mut next = self.clone();
        next.0.push((Arc::clone(name), bound));
        next
    }
}

/// What is left of a match, as a chain through the stack: nothing is built before all of it fits.
enum Continuation<'a> {
    /// All fits.
    Done,
    /// A term at a class, among a number of its first forms.
    At(&'a Term, Id, usize, &'a Continuation<'a>),
    /// Terms against operands; a variadic term takes as many as are left over.
    Row(&'a [Term], &'a [Id], &'a Continuation<'a>),
    /// The name of a matched term.
    Name(&'a Arc<str>, Id, &'a Continuation<'a>),
}

/// The ways in which a rule's left side matches a class.
pub(in crate::rewrite) fn matches(loaded: &Loaded, term: &Term, id: Id, subst: &Subst) -> Vec<Subst> {
    let mut walk = Walk { loaded, subst: subst.clone(), found: Vec::new() };
    walk.go(&Continuation::At(term, id, usize::MAX, &Continuation::Done));
    walk.found
}

/// Whether a node takes a list apart into more or fewer values than it has.
fn raises(loaded: &Loaded, results: &Type, node: &Node) -> bool {
    let Head::Op(head) = loaded.head(node) else { return false };
    let Some(list) = node.children.first().filter(|_| head.op.name() == "prim::ListUnpack") else {
        return false;
    };
    let names = Names { loaded, graph: None, subst: &Subst::default(), root: *list };
    names.list(*list).map(|node| node.children.len()) != results.tuple_elements().map(<[Type]>::len)
}

/// The ways in which a node is an op of a pattern.
pub(in crate::rewrite) fn match_op(
    loaded: &Loaded,
    pattern: &OpNode,
    node: &Node,
    subst: &Subst,
) -> Vec<Subst> {
    let mut walk = Walk { loaded, subst: subst.clone(), found: Vec::new() };
    walk.op(pattern, node, &Continuation::Done);
    walk.found
}

/// Matches terms against operands one by one.
pub(in crate::rewrite) fn sequence(
    loaded: &Loaded,
    terms: &[Term],
    children: &[Id],
    subst: &Subst,
) -> Vec<Subst> {
    let mut walk = Walk { loaded, subst: subst.clone(), found: Vec::new() };
    walk.go(&Continuation::Row(terms, children, &Continuation::Done));
    walk.found
}

/// A search for matches; what names stand for grows and shrinks with its depth.
struct Walk<'l> {
    loaded: &'l Loaded,
    subst: Subst,
    found: Vec<Subst>,
}

impl Walk<'_> {
    fn go(&mut self, rest: &Continuation<'_>) {
        if self.found.len() > MAX_MATCHES {
            return;
        }
        match rest {
            Continuation::Done => self.found.push(self.subst.clone()),
            Continuation::At(term, id, forms, next) => {
                self.term(term, self.loaded.egraph.find(*id), *forms, next)
            }
            Continuation::Row(terms, children, next) => self.row(terms, children, next),
            Continuation::Name(name, id, next) => self.bind(name, Bound::One(*id), next),
        }
    }

    fn bind(&mut self, name: &Arc<str>, bound: Bound<Id>, next: &Continuation<'_>) {
        self.subst.0.push((Arc::clone(name), bound));
        self.go(next);
        self.subst.0.pop();
    }

    fn term(&mut self, term: &Term, id: Id, forms: usize, next: &Continuation<'_>) {
        let loaded = self.loaded;
        let class = &loaded.egraph[id];
        let constant = class.data.constant.as_ref();
        match term {
            Term::Variable(name, ty) => match self.subst.get(name) {
                Some(Bound::One(known)) if loaded.egraph.find(*known) == id => self.go(next),
                None if type_fits(ty, &class.data.ty) => self.bind(name, Bound::One(id), next),
                _ => {}
            },
            Term::Constant(ty, attr) => {
                let fits = match (constant, attr) {
                    (Some((t, known)), Some(attr)) => known == attr && same_kind(t, ty),
                    (Some((_, known)), None) => *known == Attr::None,
                    (None, _) => false,
                };
                if fits {
                    self.go(next);
                }
            }
            Term::Compute(expr, _) => {
                let Some((_, known)) = constant else { return };
                let names = Names { loaded, graph: None, subst: &self.subst, root: id };
                if condition::evaluate(expr, &names).as_ref() == Some(known) {
                    self.go(next);
                }
            }
            Term::List(_, items) => {
                let Some(row) = loaded.list_row() else { return };
                for node in class.nodes.iter().take(forms) {
                    if matches!(loaded.head(node), Head::Op(head) if head.op.same(row)) {
                        self.go(&Continuation::Row(items, &node.children, next));
                    }
                }
            }
            Term::Rest(..) => {}
            // A number needs no other form; all terms that have its value would be found here.
            Term::Op(_) if is_number(constant) => {}
            Term::Op(pattern) => {
                for node in class.nodes.iter().take(forms) {
                    self.node(pattern, id, node, next);
                }
            }
        }
    }

    fn node(&mut self, pattern: &OpNode, id: Id, node: &Node, next: &Continuation<'_>) {
        let named;
        let next = match &pattern.bound {
            Some(name) => {
                named = Continuation::Name(name, id, next);
                &named
            }
            None => next,
        };
        match (self.loaded.head(node), pattern.result) {
            (Head::Result(n), Some(wanted)) if *n == wanted => {
                let whole = &self.loaded.egraph[self.loaded.egraph.find(node.children[0])];
                let nodes = whole.nodes.iter().filter(|node| !raises(self.loaded, &whole.data.ty, node));
                nodes.for_each(|node| self.op(pattern, node, next));
            }
            (Head::Op(_), None) => self.op(pattern, node, next),
            _ => {}
        }
    }

    fn op(&mut self, pattern: &OpNode, node: &Node, next: &Continuation<'_>) {
        let Head::Op(head) = self.loaded.head(node) else { return };
        if !head.op.same(&pattern.op) {
            return;
        }
        let attribute_fits = |(name, term): &(crate::ir::Symbol, Term)| {
            let own = head.attributes.iter().find(|(n, _)| n == name).map(|(_, a)| a);
            matches!(term, Term::Constant(_, attr) if own == attr.as_ref())
        };
        if !pattern.attributes.iter().all(attribute_fits) {
            return;
        }
        if pattern.blocks.is_empty() {
            return self.go(&Continuation::Row(&pattern.operands, &node.children, next));
        }
        // A choice: its condition, and the result of each block.
        let terms = pattern.operands.iter().chain(pattern.blocks.iter().flatten());
        let terms: Vec<Term> = terms.cloned().collect();
        self.go(&Continuation::Row(&terms, &node.children, next));
    }

    fn row(&mut self, terms: &[Term], children: &[Id], next: &Continuation<'_>) {
        let Some((first, others)) = terms.split_first() else {
            if children.is_empty() {
                self.go(next);
            }
            return;
        };
        let Term::Rest(name, ..) = first else {
            if let Some((child, children)) = children.split_first() {
                self.go(&Continuation::At(
                    first,
                    *child,
                    MAX_FORMS,
                    &Continuation::Row(others, children, next),
                ));
            }
            return;
        };
        let fixed = others.iter().filter(|t| !matches!(t, Term::Rest(..))).count();
        let Some(most) = children.len().checked_sub(fixed) else { return };
        // With one variadic term its length is known; with several, all ways are tried.
        let several = others.iter().any(|t| matches!(t, Term::Rest(..)));
        for n in if several { 0..=most } else { most..=most } {
            let taken = Bound::Many(SmallVec::from_slice(&children[..n]));
            let rest = Continuation::Row(others, &children[n..], next);
            match self.subst.get(name) {
                Some(known) if *known == taken => self.go(&rest),
                Some(_) => {}
                None => self.bind(name, taken, &rest),
            }
        }
    }
}

/// Whether a constant's type is the one that a literal has; lists of a kind are one.
pub(in crate::rewrite) fn same_kind(a: &Type, b: &Type) -> bool {
    a == b || matches!(a.kind(), TypeKind::Optional(inner) if inner == b)
}

/// Whether a value of a type may be what a variable of a rule means.
pub(in crate::rewrite) fn type_fits(wanted: &Type, actual: &Type) -> bool {
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
pub(in crate::rewrite) struct Names<'a> {
    pub(in crate::rewrite) loaded: &'a Loaded,
    pub(in crate::rewrite) graph: Option<&'a Graph>,
    pub(in crate::rewrite) subst: &'a Subst,
    pub(in crate::rewrite) root: Id,
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
        // Only what may be a list has elements.
        let may_be_list = matches!(seen.kind, Kind::List | Kind::Other);
        if may_be_list && let Some(list) = self.list(id) {
            seen.len = Some(list.children.len());
            if !facts.written && seen.constant.is_none() {
                seen.constant = self.constant_ints(list);
            }
        }
        let maker = |graph: &Graph| graph.def_op(*facts.values.first()?).map(|op| graph.kind(op));
        seen.maker = self.graph.filter(|_| !facts.written).and_then(maker);
        let of_no_op = |graph: &Graph| facts.values.first().is_some_and(|v| graph.def_op(*v).is_none());
        seen.is_input = self.graph.is_some_and(of_no_op);
        Some(seen)
    }
}

/// What a type and a constant, with its type, say of a term.
pub(in crate::rewrite) fn seen_of(ty: &Type, constant: Option<&(Type, Attr)>) -> Seen {
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
        seen.strides = t.strides.as_ref().and_then(|s| s.iter().map(Stride::known).collect());
        seen.device = t.device.clone();
    }
    seen
}

impl Names<'_> {
    /// The op that makes a class as a list.
    fn list(&self, id: Id) -> Option<&Node> {
        let row = self.loaded.list_row()?;
        let egraph = &self.loaded.egraph;
        let mut nodes = egraph[egraph.find(id)].nodes.iter().take(MAX_FORMS);
        nodes.find(|n| matches!(self.loaded.head(n), Head::Op(h) if h.op.same(row)))
    }

    /// The numbers of a list that is made of constants.
    fn constant_ints(&self, list: &Node) -> Option<Attr> {
        let egraph = &self.loaded.egraph;
        let number = |id: &Id| match egraph[egraph.find(*id)].data.constant.as_ref()? {
            (_, Attr::Int(x)) => Some(*x),
            _ => None,
        };
        let all: Option<Vec<i64>> = list.children.iter().map(number).collect();
        all.filter(|all| !all.is_empty()).map(|all| Attr::Ints(all.into()))
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
pub(in crate::rewrite) fn holds(rule: &CompiledRule, names: &Names<'_>) -> Option<usize> {
    rule.conditions.iter().position(|c| condition::holds(c, names) != Some(true))
}

/// The result of a rule's arithmetic as a constant of the type that its place wants.
pub(in crate::rewrite) fn computed(wanted: &Type, attr: Attr) -> (Type, Attr) {
    let attr = match (wanted.kind(), attr) {
        (TypeKind::Float, Attr::Int(x)) => Attr::Float(x as f64),
        (_, attr) => attr,
    };
    let ty = match (&attr, wanted.kind()) {
        (Attr::Float(_), TypeKind::Number) => Type::float(),
        (Attr::Complex(_), TypeKind::Number) => Type::complex(),
        (_, TypeKind::Number) => Type::int(),
        _ => wanted.clone(),
    };
    (ty, attr)
}

/// Adds the right side of a match to the e-graph; None where its arithmetic has no result.
pub(in crate::rewrite) fn build(loaded: &mut Loaded, term: &Term, subst: &Subst, root: Id) -> Option<Id> {
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

/// The type of an op's one result, as far as its row can infer it from those of its operands.
fn inferred(loaded: &Loaded, op: &Op, children: &[Id]) -> Option<Type> {
    let schema = op.schema().ok()?;
    if schema.returns.len() != 1 || !schema.returns[0].ty.is_tensor() {
        return None;
    }
    let values: Vec<Known> = children.iter().map(|id| known(loaded, *id)).collect();
    let symbols = Cell::new(0);
    let mut found = shapes::infer(&Operands::new(op, &values, &symbols))?;
    let Some(Known::Tensor(mut tensor)) = found.pop() else { return None };
    if symbols.get() != 0 {
        // Sizes that are only known by running it.
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
            Term::Rest(name, _, bounds) => {
                let Bound::Many(ids) = subst.get(name)? else { return None };
                let names = Names { loaded, graph: None, subst, root };
                children.extend(condition::part(ids, bounds.as_deref(), &names)?);
            }
            _ => children.push(build(loaded, term, subst, root)?),
        }
    }
    Some(children)
}

fn constant(egraph: &mut Graphs, ty: &Type, attr: Option<&Attr>) -> Id {
    let head = egraph.analysis.heads.constant(ty, attr);
    egraph.add(Node { head, children: SmallVec::new() })
}
