//! Graphs that compute a rule's left side, with arguments: what a driver meets where a rule matches. Tests of drivers
//! run them with and without rules. They know how much is known of an operand: all of a tensor's type, or nothing.

use super::instance::{Generator, Instance};
use super::steps::{Bindings, Trace, Values, value_of};
use crate::dialects::{Run, prim};
use crate::ir::{BlockId, Dim, Graph, Stride, Symbol, TensorType, Type, TypeKind, ValueId};
use crate::rewrite::load::condition;
use crate::rewrite::load::rule::{CompiledRule, OpNode, Term};
use crate::value::Value;
use hashbrown::HashMap;
use std::sync::Arc;

/// How much a graph says of the operands that a rule's variables stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// Numbers, text and lists of them are constants; tensors have dtypes, sizes and strides.
    Constants,
    /// Constant tensors too, as weights are.
    Weights,
    /// The first operand is a constant, if it can be one; the others are arguments.
    First,
    /// All operands are arguments; tensors have dtypes, sizes and strides.
    Types,
    /// Constants as above, and of tensors nothing is known.
    Nothing,
}

/// A graph that computes a rule's left side.
#[derive(Debug)]
pub struct Example {
    /// The graph. A tensor that it returns is a copy of the left side's value: no rule makes an alias of an argument.
    pub graph: Graph,
    /// Its arguments.
    pub arguments: Vec<Value>,
}

/// Valid instances of a rule's left side, at most `count` of them and as many as `evaluations` ops find.
pub fn instances(rule: &CompiledRule, seed: u64, count: usize, evaluations: u64, run: &Run) -> Vec<Instance> {
    let mut generator = Generator::new(rule, seed, run);
    let (mut found, mut attempts) = (Vec::new(), 0);
    while found.len() < count && attempts < evaluations {
        attempts += 1;
        // Where one was hard to find, the others are not looked for as long.
        let most = if found.is_empty() { evaluations } else { evaluations / 20 };
        if generator.evaluations >= most {
            break;
        }
        let Some(instance) = generator.attempt() else { continue };
        let named = &instance.trace.named;
        let subjects = Values { variables: &instance.variables, named, result: Some(&instance.left) };
        if rule.conditions.iter().all(|c| condition::holds(c, &subjects) == Some(true)) {
            generator.remember(&instance);
            found.push(instance);
        }
    }
    found
}

/// The graph of an instance; None where a graph cannot say it.
pub fn example(rule: &CompiledRule, instance: &Instance, known: Known) -> Option<Example> {
    let mut builder = Builder {
        graph: Graph::new(),
        arguments: Vec::new(),
        variables: &instance.variables,
        trace: &instance.trace,
        bound: HashMap::new(),
        known,
        is_first: true,
    };
    let value = builder.term(&rule.left)?;
    let root = builder.graph.root();
    let mut out = value;
    if let Value::Tensor(_) = &instance.left {
        let ty = Type::list(Type::int());
        let dims = builder.graph.emit(root, Symbol::new("prim::ListConstruct"), &[], &[ty]);
        let dims = builder.graph.result(dims, 0)?;
        let ty = builder.type_of(&instance.left);
        let copy = builder.graph.emit(root, Symbol::new("aten::flip"), &[value, dims], &[ty]);
        out = builder.graph.result(copy, 0)?;
    }
    if let Value::None = &instance.left {
        // A rule reads values that some op takes.
        let ty = Type::tuple(vec![Type::none()]);
        let tuple = builder.graph.emit(root, Symbol::new("prim::TupleConstruct"), &[value], &[ty]);
        out = builder.graph.result(tuple, 0)?;
    }
    builder.graph.add_output(out);
    Some(Example { graph: builder.graph, arguments: builder.arguments })
}

struct Builder<'a> {
    graph: Graph,
    arguments: Vec<Value>,
    variables: &'a Bindings,
    trace: &'a Trace,
    bound: HashMap<Arc<str>, Vec<ValueId>>,
    known: Known,
    /// No operand was made yet.
    is_first: bool,
}

impl Builder<'_> {
    /// The type of a value, as much of it as is to be known.
    fn type_of(&self, value: &Value) -> Type {
        let Value::Tensor(t) = value else { return value.ty() };
        if self.known == Known::Nothing {
            return Type::tensor();
        }
        Type::new(TypeKind::Tensor(TensorType {
            dtype: Some(t.dtype()),
            device: Some(t.device()),
            sizes: Some(t.sizes().iter().map(|n| Dim::Known(*n)).collect()),
            strides: Some(t.strides().iter().copied().map(Stride::Known).collect()),
            requires_grad: Some(false),
            ..TensorType::default()
        }))
    }

    fn constant(&mut self, value: &Value) -> Option<ValueId> {
        let attr = match value {
            Value::None => None,
            Value::Tensor(_) if self.known != Known::Weights => return None,
            value => Some(prim::constant::attr(value)?),
        };
        let (root, ty) = (self.graph.root(), self.type_of(value));
        let op = self.graph.emit(root, Symbol::new("prim::Constant"), &[], &[ty]);
        if let Some(attr) = attr {
            self.graph.set_attr(op, "value", attr);
        }
        self.graph.result(op, 0)
    }

    fn operand(&mut self, value: &Value) -> ValueId {
        let is_object = matches!(value, Value::List(_) | Value::Dict(_) | Value::Object(_));
        let is_first = std::mem::take(&mut self.is_first);
        let may_be_constant = match self.known {
            Known::Types => false,
            Known::First => is_first,
            Known::Constants | Known::Weights | Known::Nothing => true,
        };
        if may_be_constant
            && !is_object
            && let Some(constant) = self.constant(value)
        {
            return constant;
        }
        if let (Value::List(list), true) = (value, may_be_constant) {
            let items: Vec<ValueId> = list.to_vec().iter().map(|item| self.operand(item)).collect();
            return self.list(list.element_type(), &items);
        }
        self.arguments.push(value.clone());
        let ty = self.type_of(value);
        self.graph.add_input(ty)
    }

    fn list(&mut self, element: &Type, items: &[ValueId]) -> ValueId {
        let (root, ty) = (self.graph.root(), Type::list(element.unshaped()));
        let op = self.graph.emit(root, Symbol::new("prim::ListConstruct"), items, &[ty]);
        self.graph.results(op)[0]
    }

    fn variable(&mut self, name: &Arc<str>, variadic: bool) -> Option<Vec<ValueId>> {
        if let Some(known) = self.bound.get(name) {
            return Some(known.clone());
        }
        let values = match self.variables.get(name)? {
            Value::List(list) if variadic => list.to_vec().iter().map(|item| self.operand(item)).collect(),
            value => vec![self.operand(value)],
        };
        self.bound.insert(Arc::clone(name), values.clone());
        Some(values)
    }

    fn terms(&mut self, terms: &[Term]) -> Option<Vec<ValueId>> {
        let mut values = Vec::new();
        for term in terms {
            match term {
                Term::Rest(name, ..) => values.extend(self.variable(name, true)?),
                _ => values.push(self.term(term)?),
            }
        }
        Some(values)
    }

    fn term(&mut self, term: &Term) -> Option<ValueId> {
        match term {
            Term::Variable(name, _) => self.variable(name, false)?.first().copied(),
            Term::Rest(..) => None,
            Term::Constant(..) | Term::Compute(..) => {
                let value = value_of(term, self.variables, self.trace).ok()?;
                self.constant(&value)
            }
            Term::List(element, items) => {
                let items = self.terms(items)?;
                Some(self.list(element, &items))
            }
            Term::Op(node) => self.op(node),
        }
    }

    fn op(&mut self, node: &OpNode) -> Option<ValueId> {
        let operands = self.terms(&node.operands)?;
        let blocks: Vec<Vec<ValueId>> =
            node.blocks.iter().map(|block| self.terms(block)).collect::<Option<_>>()?;
        let own = self.trace.value(node).map_or_else(|| node.ty.clone(), |value| self.type_of(value));
        let wanted = node.result.unwrap_or(0);
        let types: Vec<Type> = match (node.result, node.op.schema().ok()?) {
            (Some(_), schema) if schema.is_varret => {
                let Some(Value::List(list)) = self.first_list(node) else { return None };
                vec![list.element_type().clone(); list.len()]
            }
            (Some(_), schema) => schema.returns.iter().map(|r| r.ty.clone()).collect(),
            (None, _) => vec![own.clone()],
        };
        let types: Vec<Type> =
            types.into_iter().enumerate().map(|(n, ty)| if n == wanted { own.clone() } else { ty }).collect();
        let root = self.graph.root();
        let op = self.graph.emit(root, node.op.name(), &operands, &types);
        for (name, term) in &node.attributes {
            let value = value_of(term, self.variables, self.trace).ok()?;
            self.graph.set_attr(op, *name, prim::constant::attr(&value)?);
        }
        for values in blocks {
            let block: BlockId = self.graph.add_block(op);
            self.graph.set_block_results(block, &values);
        }
        self.graph.result(op, wanted)
    }

    /// The list that an op takes apart.
    fn first_list(&self, node: &OpNode) -> Option<Value> {
        value_of(node.operands.first()?, self.variables, self.trace).ok()
    }
}
