//! A side of a rule as straight code over values, run by the evaluator, or by who else knows what ops mean.

use crate::diag::{Diagnostic, ErrorKind, Result};
use crate::dialects::{Family, Node, Op, Outputs, Run, prim};
use crate::eval;
use crate::ir::{Attr, Symbol, Type, TypeKind};
use crate::rewrite::load::compile::constant_value;
use crate::rewrite::load::condition;
use crate::rewrite::load::condition::{Kind, Seen, Subjects};
use crate::rewrite::load::rule::{OpNode, Term};
use crate::rewrite::load::syntax::Expr;
use crate::tensor::{DType, Storage, Tensor};
use crate::value::{Dict, Value};
use hashbrown::HashMap;
use indexmap::IndexMap;
use std::sync::Arc;

/// Values of variables by name.
pub type Bindings = IndexMap<Arc<str>, Value>;

/// Values of variables and of matched terms, as conditions ask for them.
pub struct Values<'a> {
    /// Variables.
    pub variables: &'a Bindings,
    /// Terms with a name.
    pub named: &'a Bindings,
    /// The left side's value.
    pub result: Option<&'a Value>,
}

impl Subjects for Values<'_> {
    fn seen(&self, name: &str) -> Option<Seen> {
        if name == "result" {
            return self.result.map(seen);
        }
        self.variables.get(name).or_else(|| self.named.get(name)).map(seen)
    }

    fn are_values(&self) -> bool {
        true
    }
}

/// What conditions may know of a value.
fn seen(value: &Value) -> Seen {
    let kind = match value {
        Value::Tensor(_) => Kind::Tensor,
        Value::Int(_) => Kind::Int,
        Value::Float(_) => Kind::Float,
        Value::Complex(_) => Kind::Complex,
        Value::Bool(_) => Kind::Bool,
        Value::List(_) => Kind::List,
        Value::None => Kind::None,
        _ => Kind::Other,
    };
    let mut seen = Seen { kind, one_use: true, ..Seen::default() };
    match value {
        Value::Tensor(t) => {
            seen.dtype = Some(t.dtype());
            seen.sizes = Some(t.sizes().iter().map(|s| Some(*s)).collect());
            seen.strides = Some(t.strides());
            seen.device = Some(t.device());
            // Any tensor may be a constant.
            seen.constant = Some(Attr::Tensor(t.clone()));
        }
        // All results of an op.
        Value::Tuple(tuple) => {
            seen.len = Some(tuple.items().len());
            seen.constant = prim::constant::attr(value);
        }
        Value::List(list) => {
            seen.len = Some(list.len());
            seen.constant = prim::constant::attr(value);
        }
        _ => seen.constant = prim::constant::attr(value),
    }
    seen
}

/// One op of a side, after those whose results it takes.
pub struct Step<'r> {
    /// The op.
    pub node: &'r OpNode,
    /// Variables that it is the first to take, with the places where it takes them.
    pub fresh: Vec<Variable<'r>>,
}

/// A variable where it first stands.
pub struct Variable<'r> {
    /// Its name.
    pub name: Arc<str>,
    /// Its type.
    pub ty: &'r Type,
    /// Which operand of the op it is, or is in.
    pub operand: usize,
    /// Any number of list elements or operands.
    pub is_rest: bool,
}

/// The ops of a term in the order in which they run.
pub fn steps(term: &Term) -> Vec<Step<'_>> {
    let mut steps = Vec::new();
    let mut known: Vec<Arc<str>> = Vec::new();
    let mut types = Vec::new();
    all_variables(term, &mut types);
    collect(term, &mut steps, &mut known, &types);
    steps
}

/// A variable with its type, and whether it is variadic.
type Typed<'r> = (&'r Arc<str>, &'r Type, bool);

/// All variables of a term.
fn all_variables<'r>(term: &'r Term, found: &mut Vec<Typed<'r>>) {
    match term {
        Term::Variable(name, ty) => found.push((name, ty, false)),
        Term::Rest(name, ty, _) => found.push((name, ty, true)),
        Term::List(_, items) => items.iter().for_each(|item| all_variables(item, found)),
        Term::Op(node) => {
            node.operands.iter().chain(node.blocks.iter().flatten()).for_each(|t| all_variables(t, found));
        }
        Term::Constant(..) | Term::Compute(..) => {}
    }
}

fn collect<'r>(term: &'r Term, steps: &mut Vec<Step<'r>>, known: &mut Vec<Arc<str>>, types: &[Typed<'r>]) {
    let Term::Op(node) = term else {
        if let Term::List(_, items) = term {
            items.iter().for_each(|item| collect(item, steps, known, types));
        }
        return;
    };
    let inner = node.operands.iter().chain(node.blocks.iter().flatten());
    inner.clone().for_each(|operand| collect(operand, steps, known, types));
    let mut fresh = Vec::new();
    for (n, operand) in inner.enumerate() {
        first_uses(operand, n, known, &mut fresh, types);
    }
    for (_, attribute) in &node.attributes {
        first_uses(attribute, usize::MAX, known, &mut fresh, types);
    }
    steps.push(Step { node, fresh });
}

fn first_uses<'r>(
    term: &'r Term,
    operand: usize,
    known: &mut Vec<Arc<str>>,
    found: &mut Vec<Variable<'r>>,
    types: &[Typed<'r>],
) {
    match term {
        Term::Variable(name, ty) | Term::Rest(name, ty, ..) if !known.contains(name) => {
            known.push(Arc::clone(name));
            let is_rest = matches!(term, Term::Rest(..));
            found.push(Variable { name: Arc::clone(name), ty, operand, is_rest });
        }
        Term::List(_, items) => items.iter().for_each(|item| first_uses(item, operand, known, found, types)),
        // Arithmetic asks about variables that an op farther out may be the first to take.
        Term::Compute(expr, _) => expr.names(&mut |wanted, _| {
            let typed = types.iter().find(|(name, ..)| ***name == *wanted);
            if let Some((name, ty, is_rest)) = typed.filter(|(name, ..)| !known.contains(*name)) {
                known.push(Arc::clone(name));
                let (name, is_rest) = (Arc::clone(name), *is_rest);
                found.push(Variable { name, ty, operand: usize::MAX, is_rest });
            }
        }),
        _ => {}
    }
}

/// What evaluating a side left behind.
#[derive(Default)]
pub struct Trace {
    /// Values of ops by the address of their node in the rule.
    done: IndexMap<usize, Value>,
    /// Terms with a name.
    pub named: Bindings,
}

impl Trace {
    /// Whether some value on the way to the result is NaN or infinite.
    pub fn is_finite_but_for(&self, root: &Term) -> bool {
        let root = match root {
            Term::Op(node) => std::ptr::from_ref::<OpNode>(node) as usize,
            _ => 0,
        };
        self.done.iter().filter(|(at, _)| **at != root).all(|(_, value)| is_finite(value))
    }

    /// The value of an op that has run.
    pub fn value(&self, node: &OpNode) -> Option<&Value> {
        self.done.get(&(std::ptr::from_ref(node) as usize))
    }

    /// The least exact floating dtype among the values on the way.
    pub fn coarsest(&self) -> Option<DType> {
        self.done.values().filter_map(coarsest).max_by_key(|d| coarseness(*d))
    }

    /// The largest magnitude among the values on the way.
    pub fn magnitude(&self) -> f64 {
        self.done.values().map(magnitude).fold(0.0, f64::max)
    }
}

/// Whether a value holds neither NaN nor infinity.
pub fn is_finite(value: &Value) -> bool {
    match value {
        Value::Float(x) => x.is_finite(),
        Value::Complex(z) => z.re.is_finite() && z.im.is_finite(),
        Value::Tensor(t) if t.dtype().is_floating() || t.dtype().is_complex() => {
            t.to_scalars().is_ok_and(|all| {
                all.iter().all(|s| s.to_complex().re.is_finite() && s.to_complex().im.is_finite())
            })
        }
        Value::List(list) => list.items().iter().all(is_finite),
        Value::Tuple(tuple) => tuple.items().iter().all(is_finite),
        _ => true,
    }
}

/// The largest finite magnitude in a value.
pub fn magnitude(value: &Value) -> f64 {
    let finite = |x: f64| if x.is_finite() { x.abs() } else { 0.0 };
    match value {
        Value::Float(x) => finite(*x),
        Value::Int(x) => (*x as f64).abs(),
        Value::Complex(z) => finite(z.norm()),
        Value::Tensor(t) => t
            .to_scalars()
            .map_or(0.0, |all| all.iter().map(|s| finite(s.to_complex().norm())).fold(0.0, f64::max)),
        Value::List(list) => list.items().iter().map(magnitude).fold(0.0, f64::max),
        Value::Tuple(tuple) => tuple.items().iter().map(magnitude).fold(0.0, f64::max),
        _ => 0.0,
    }
}

/// The least exact of the floating dtypes in a value.
pub fn coarsest(value: &Value) -> Option<DType> {
    match value {
        Value::Tensor(t) => {
            let dtype = t.dtype().to_real();
            (t.dtype().is_floating() || t.dtype().is_complex()).then_some(dtype)
        }
        Value::List(list) => list.items().iter().filter_map(coarsest).max_by_key(|d| coarseness(*d)),
        Value::Tuple(tuple) => tuple.items().iter().filter_map(coarsest).max_by_key(|d| coarseness(*d)),
        _ => None,
    }
}

/// How coarse a dtype is.
pub fn coarseness(dtype: DType) -> u8 {
    match dtype.to_real() {
        DType::BF16 => 3,
        DType::F16 => 2,
        DType::F32 => 1,
        _ => 0,
    }
}

/// An op of a side with what it is called with.
pub struct Call<'n> {
    /// The op.
    pub op: &'n Op,
    /// Its operands, in schema order.
    pub operands: Vec<Value>,
    /// Its attributes.
    pub attributes: Vec<(Symbol, Attr)>,
    /// The types of its results.
    pub types: Vec<Type>,
}

/// Runs an op of a side and gives its results.
pub type Runner<'r> = dyn FnMut(&Call<'_>) -> Result<Outputs> + 'r;

/// Runs one op whose operands are known and keeps its value.
pub fn run_step(node: &OpNode, variables: &Bindings, trace: &mut Trace, run: &Run) -> Result<()> {
    run_step_by(node, variables, trace, &mut |call| {
        let node = Node { attrs: &call.attributes, result_types: &call.types };
        eval::call(call.op, &call.operands, node, run)
    })
}

/// The same by an oracle that knows what the op means.
pub fn run_step_by(
    node: &OpNode,
    variables: &Bindings,
    trace: &mut Trace,
    runner: &mut Runner<'_>,
) -> Result<()> {
    let value = match node.op.name() == "prim::If" {
        true => run_if(node, variables, trace)?,
        false => {
            let call = called(node, variables, trace)?;
            let outputs = runner(&call)?;
            wanted_of(node, &outputs)?
        }
    };
    if let Some(name) = &node.bound {
        trace.named.insert(Arc::clone(name), value.clone());
    }
    trace.done.insert(std::ptr::from_ref::<OpNode>(node) as usize, value);
    Ok(())
}

/// What an op whose operands are known is called with. Fails where it may ask for too much memory.
pub fn called<'n>(node: &'n OpNode, variables: &Bindings, trace: &Trace) -> Result<Call<'n>> {
    let schema = node.op.schema()?;
    let mut operands = Vec::with_capacity(node.operands.len());
    for (n, operand) in node.operands.iter().enumerate() {
        match operand {
            Term::Rest(name, _, bounds) => {
                operands.extend(rest(name, bounds.as_deref(), variables, trace)?);
            }
            _ => {
                let value = value_of(operand, variables, trace)?;
                let formal = schema.arguments.get(n);
                operands.push(match (formal.map(|f| f.ty.kind()), value) {
                    // What graphs hold is a float where a schema wants one.
                    (Some(TypeKind::Float), Value::Int(x)) => Value::Float(x as f64),
                    (_, value) => value,
                });
            }
        }
    }
    if is_too_large(&node.op, &operands) {
        return Err(Diagnostic::new(ErrorKind::Compile, "the instance asks for too much memory"));
    }
    let mut attributes: Vec<(Symbol, Attr)> = Vec::new();
    for (name, term) in &node.attributes {
        let value = value_of(term, variables, trace)?;
        let attr = prim::constant::attr(&value)
            .ok_or_else(|| Diagnostic::unsupported(format!("attribute {name} of this value")))?;
        attributes.push((*name, attr));
    }
    // What takes a list apart gives as many results as the list has elements.
    let count = match operands.first() {
        Some(Value::List(list)) if schema.is_varret => list.len(),
        Some(Value::Tuple(tuple)) if schema.is_varret => tuple.items().len(),
        _ => 1,
    };
    let types = vec![node.ty.clone(); count];
    Ok(Call { op: &node.op, operands, attributes, types })
}

/// The result that a rule means, or all of them.
fn wanted_of(node: &OpNode, outputs: &[Value]) -> Result<Value> {
    let several = node.op.schema()?.returns.len() != 1;
    match node.result {
        Some(n) => outputs
            .get(n)
            .cloned()
            .ok_or_else(|| Diagnostic::compile(format!("{} has no result {n}", node.op.schema_text()))),
        None if several => Ok(Value::tuple(outputs.to_vec())),
        None => outputs.first().cloned().ok_or_else(|| Diagnostic::internal("an op gave no result")),
    }
}

/// Counts and sizes above this are not tried: what an instance allocates follows from them.
const MAX_COUNT: i64 = 1 << 12;

/// Whether an op may make far more elements than it is given, by numbers that are counts or sizes.
fn is_too_large(op: &Op, operands: &[Value]) -> bool {
    let Ok(schema) = op.schema() else { return false };
    let is_list = |v: &Value| matches!(v, Value::List(_) | Value::Str(_));
    match op.def().family {
        Family::View | Family::Elementwise | Family::Control => return false,
        // Lists and text are repeated.
        Family::Host | Family::Container if !operands.iter().any(is_list) => return false,
        _ => {}
    }
    if !schema
        .returns
        .iter()
        .any(|r| !matches!(r.ty.kind(), TypeKind::Int | TypeKind::Bool | TypeKind::Float))
    {
        return false;
    }
    // A number beside sizes or beside a tensor is an element.
    let has_sizes = operands.iter().any(|v| matches!(v, Value::List(_) | Value::Tensor(_)));
    let large = |x: i64| x != i64::MAX && x.unsigned_abs() > MAX_COUNT as u64;
    operands.iter().zip(&schema.arguments).any(|(value, formal)| {
        let is_element = matches!(without_optional(&formal.ty).kind(), TypeKind::Number) && has_sizes;
        match value {
            Value::Int(x) => {
                !is_element && (large(*x) || *x == i64::MAX && op.def().family == Family::Create)
            }
            Value::Float(x) => !is_element && op.def().family == Family::Create && x.abs() > MAX_COUNT as f64,
            Value::List(list) if matches!(list.element_type().kind(), TypeKind::Int) => {
                let sizes = list.to_vec();
                let product = sizes.iter().filter_map(|v| v.to_int().ok()).map(i64::unsigned_abs);
                product.fold(1u64, |all, n| all.saturating_mul(n.max(1))) > MAX_COUNT as u64 * 16
            }
            _ => false,
        }
    })
}

fn without_optional(ty: &Type) -> &Type {
    match ty.kind() {
        TypeKind::Optional(inner) => inner,
        _ => ty,
    }
}

/// Blocks of a rule are terms over values from outside, so that both may be computed.
fn run_if(node: &OpNode, variables: &Bindings, trace: &Trace) -> Result<Value> {
    let condition = match node.operands.first() {
        Some(term) => value_of(term, variables, trace)?.to_bool()?,
        None => return Err(Diagnostic::compile("prim::If needs a condition")),
    };
    let block = node.blocks.get(usize::from(!condition));
    let term = block.and_then(|b| b.get(node.result.unwrap_or(0)));
    value_of(term.ok_or_else(|| Diagnostic::compile("prim::If needs two blocks"))?, variables, trace)
}

/// The values of a variadic variable, or a part of them.
fn rest(name: &str, bounds: Option<&[Expr; 3]>, variables: &Bindings, trace: &Trace) -> Result<Vec<Value>> {
    let Some(Value::List(list)) = variables.get(name) else { return Err(unbound(name)) };
    let values = Values { variables, named: &trace.named, result: None };
    condition::part(&list.to_vec(), bounds, &values).ok_or_else(no_constant)
}

fn unbound(name: &str) -> Diagnostic {
    Diagnostic::internal(format!("?{name} has no value"))
}

/// The value of a term whose ops have run.
pub fn value_of(term: &Term, variables: &Bindings, trace: &Trace) -> Result<Value> {
    match term {
        Term::Variable(name, _) | Term::Rest(name, ..) => {
            variables.get(name).cloned().ok_or_else(|| unbound(name))
        }
        Term::Constant(ty, attr) => constant_value(ty, attr.as_ref()),
        Term::List(element, items) => {
            let mut values = Vec::with_capacity(items.len());
            for item in items {
                match item {
                    Term::Rest(name, _, bounds) => {
                        values.extend(rest(name, bounds.as_deref(), variables, trace)?);
                    }
                    _ => values.push(value_of(item, variables, trace)?),
                }
            }
            Ok(Value::list(element.clone(), values))
        }
        Term::Compute(expr, ty) => {
            let values = Values { variables, named: &trace.named, result: None };
            let attr = condition::evaluate(expr, &values).ok_or_else(no_constant)?;
            let own = if matches!(ty.kind(), TypeKind::Number) { attr_type(&attr) } else { ty.clone() };
            constant_value(&own, Some(&attr))
        }
        Term::Op(node) => trace
            .done
            .get(&(std::ptr::from_ref::<OpNode>(node) as usize))
            .cloned()
            .ok_or_else(|| Diagnostic::internal("an op of the rule has not run")),
    }
}

/// The arithmetic of a rule has no result on this instance: there the rule does not apply.
fn no_constant() -> Diagnostic {
    Diagnostic::new(ErrorKind::Compile, "the arithmetic of the rule has no result here")
}

fn attr_type(attr: &Attr) -> Type {
    match attr {
        Attr::Float(_) => Type::float(),
        Attr::Bool(_) => Type::bool(),
        _ => Type::int(),
    }
}

/// Runs a whole side.
pub fn run(term: &Term, variables: &Bindings, run: &Run) -> Result<(Value, Trace)> {
    let mut trace = Trace::default();
    for step in steps(term) {
        run_step(step.node, variables, &mut trace, run)?;
    }
    let value = value_of(term, variables, &trace)?;
    Ok((value, trace))
}

/// Copies that share no memory with the values but keep layouts; what shares memory among them does so afterwards.
/// Each is kept with what it is a copy of, whose place in memory another value would take otherwise.
#[derive(Default)]
pub struct Copies(HashMap<usize, [Storage; 2]>);

impl Copies {
    /// A copy of a value.
    pub fn copy(&mut self, value: &Value) -> Result<Value> {
        Ok(match value {
            Value::Tensor(t) => {
                let own = t.storage();
                let known = self.0.get(&own.id()).map(|[_, copy]| copy.clone());
                let storage = match known {
                    Some(storage) => storage,
                    None => Storage::from_bytes(&own.read()?)?,
                };
                self.0.insert(own.id(), [own, storage.clone()]);
                let copy = Tensor::from_storage(storage, t.dtype(), t.layout())?;
                if t.requires_grad() {
                    copy.set_requires_grad(true)?;
                }
                Value::Tensor(copy)
            }
            Value::List(list) => {
                let items = list.to_vec().iter().map(|item| self.copy(item)).collect::<Result<Vec<_>>>()?;
                Value::list(list.element_type().clone(), items)
            }
            Value::Tuple(tuple) => {
                Value::tuple(tuple.items().iter().map(|item| self.copy(item)).collect::<Result<Vec<_>>>()?)
            }
            Value::Dict(dict) => {
                let copy = Dict::new(dict.key_type().clone(), dict.value_type().clone());
                for (key, value) in dict.entries().iter() {
                    copy.insert(&key.to_value(), self.copy(value)?)?;
                }
                Value::Dict(copy)
            }
            other => other.clone(),
        })
    }
}
