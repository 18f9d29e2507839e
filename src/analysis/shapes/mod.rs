//! Types and sizes of all values of a graph, from the types of its inputs: each op by its row, control flow by joining
//! what its ways say. Sizes may be symbols; equal symbols are equal sizes. Nothing is run.

mod containers;
mod items;
mod state;

use self::containers::{Containers, Standing, is_container};
use self::state::{Number, State};
use super::AliasDb;
use crate::dialects::prim::constant;
use crate::dialects::shapes::open::{OpenSizes, by_numbers, has_open};
use crate::dialects::shapes::open_truth::compared;
use crate::dialects::shapes::{Known, Operands, infer, of_tensor};
use crate::dialects::{Effects, Fact, Family, Op, Registry, Run, Variant, resolve};
use crate::eval;
use crate::ir::{BlockId, Dim, Graph, OpId, TensorType, Type, ValueId};
use crate::tensor::{DType, Scalar, Tensor};
use crate::value::Value;
use hashbrown::{HashMap, HashSet};
use std::cell::{Cell, RefCell};
use std::sync::Arc;

pub use self::state::Meanings;

/// A loop's carried values are joined so often before everything that still changes counts as unknown.
const MAX_ITERATIONS: usize = 4;
/// Meanings of ops nest no deeper.
const MAX_MEANINGS: usize = 8;
/// Blocks are looked into so often for each that there is, and this often besides; from then on all that loops carry counts as
/// unknown. Loops within loops would else be looked into twice as often at each level, or more.
const VISITS: (usize, usize) = (16, 20_000);

/// Works out what is known of every value, by value. `inputs` has one item an input of the graph; symbols handed out
/// count down from below `symbols`. `open` says what is known of open sizes, and takes those that are made of them.
pub fn propagate(
    registry: &Registry,
    graph: &Graph,
    inputs: &[Known],
    symbols: &Cell<i64>,
    open: Option<&OpenSizes>,
    meanings: Meanings<'_>,
) -> Vec<Known> {
    run((registry, open), graph, inputs, symbols, meanings, 0)
}

fn run(
    (registry, open): (&Registry, Option<&OpenSizes>),
    graph: &Graph,
    inputs: &[Known],
    symbols: &Cell<i64>,
    meanings: Meanings<'_>,
    depth: usize,
) -> Vec<Known> {
    let mut state = State {
        registry,
        open,
        graph,
        symbols,
        meanings,
        depth,
        visits: 0,
        most_visits: graph.block_capacity().saturating_mul(VISITS.0).saturating_add(VISITS.1),
        known: vec![Known::Nothing; graph.value_capacity()],
        never: HashSet::new(),
        numbers: HashMap::new(),
        containers: Containers::of(graph, registry),
        items: HashMap::new(),
        first_symbol: symbols.get(),
    };
    for (n, value) in graph.inputs().iter().enumerate() {
        state.set(*value, inputs.get(n).cloned().unwrap_or_default());
    }
    for round in 1.. {
        state.block(graph.root());
        if !state.begin_again(round) {
            break;
        }
    }
    state.finish()
}

impl State<'_> {
    /// What an op knows of an operand.
    fn of(&mut self, value: ValueId) -> Known {
        match self.containers.standing(value) {
            Standing::Written(class) => self.read(class),
            Standing::Read | Standing::Lost => self.known[value.index()].clone(),
        }
    }

    /// What is known of a value that flows on; nothing of lists that are written to, which are known as a whole.
    fn flowing(&self, value: ValueId) -> &Known {
        &self.known[value.index()]
    }

    fn set(&mut self, value: ValueId, known: Known) {
        self.known[value.index()] = match self.containers.standing(value) {
            Standing::Read => known,
            Standing::Written(_) | Standing::Lost => Known::Nothing,
        };
    }

    fn block(&mut self, block: BlockId) {
        self.visits += 1;
        for op in self.graph.block_ops(block) {
            match self.graph.nested_blocks(op).is_empty() {
                true => self.op(op),
                false => stacker::maybe_grow(64 << 10, 1 << 20, || self.op(op)),
            }
        }
    }

    fn op(&mut self, op: OpId) {
        let graph = self.graph;
        let kind = graph.kind(op).as_str();
        match kind {
            "prim::If" => return self.branch(op),
            "prim::Loop" => return self.iterate(op),
            "prim::Uninitialized" => return self.set_never(op),
            _ => {}
        }
        let results = graph.results(op);
        if self.write(op) {
            return;
        }
        if graph.operands(op).iter().any(|v| self.never.contains(v)) {
            return self.set_never(op);
        }
        results.iter().for_each(|value| _ = self.never.remove(value));
        let found = self.results(op, kind).unwrap_or_default();
        for (n, value) in results.iter().enumerate() {
            let declared = Known::of_type(graph.ty(*value));
            if let Standing::Written(class) = self.containers.standing(*value)
                && is_container(graph.ty(*value))
            {
                let is_given_back = graph
                    .operands(op)
                    .iter()
                    .any(|v| self.containers.standing(*v) == Standing::Written(class));
                if !(is_given_back && CASTS.contains(&kind)) {
                    self.fill(class, found.get(n).unwrap_or(&Known::Nothing));
                }
                continue;
            }
            let known = match (found.get(n), declared) {
                (Some(Known::Nothing) | None, declared) => declared,
                (Some(Known::Tensor(found)), Known::Tensor(declared)) => {
                    Known::Tensor(merge(found, &declared))
                }
                (Some(found), _) => found.clone(),
            };
            self.set(*value, known);
        }
    }

    fn results(&mut self, op: OpId, kind: &str) -> Option<Vec<Known>> {
        let graph = self.graph;
        let operands: Vec<Known> = graph.operands(op).iter().map(|v| self.of(*v)).collect();
        match kind {
            "prim::Constant" => {
                let ty = graph.result(op, 0).map(|v| graph.ty(v));
                let value = constant::value(graph.attrs(op), ty).ok()?;
                self.keep_numbers(op, std::slice::from_ref(&value));
                Some(vec![Known::of_value(&value)])
            }
            "prim::ListConstruct" => {
                let ints = operands.iter().map(|k| if let Known::Int(d) = k { Some(*d) } else { None });
                let is_int = graph
                    .result(op, 0)
                    .and_then(|v| graph.ty(v).element())
                    .is_some_and(|t| *t == Type::int());
                Some(vec![match ints.collect::<Option<Vec<Dim>>>().filter(|_| is_int) {
                    Some(ints) => Known::Ints(ints),
                    None => Known::items(operands),
                }])
            }
            "prim::DictConstruct" => Some(vec![Known::each_of(operands.into_iter().skip(1).step_by(2))]),
            "prim::TupleConstruct" => Some(vec![Known::items(operands)]),
            "prim::TupleUnpack" | "prim::ListUnpack" => match operands.first()? {
                Known::Items(items) if items.len() == graph.result_count(op) => Some(items.clone()),
                Known::Ints(dims) if dims.len() == graph.result_count(op) => {
                    Some(dims.iter().map(|d| Known::Int(*d)).collect())
                }
                Known::Each(each) => Some(graph.results(op).iter().map(|_| (**each).clone()).collect()),
                _ => None,
            },
            "aten::len" => match operands.first()? {
                Known::Ints(dims) => Some(vec![Known::Int(Dim::Known(dims.len() as i64))]),
                Known::Items(items) => Some(vec![Known::Int(Dim::Known(items.len() as i64))]),
                _ => None,
            },
            "prim::TupleIndex" => item(&operands).map(|k| vec![k]),
            "aten::__getitem__" => match item(&operands) {
                Some(item) => Some(vec![item]),
                None => self.any_item(op, operands.first()?),
            },
            _ if CASTS.contains(&kind) => Some(operands),
            _ => self.by_row(op, &operands),
        }
    }

    /// An item of a list or dictionary, it is not known which. What takes one of none is never reached.
    fn any_item(&mut self, op: OpId, of: &Known) -> Option<Vec<Known>> {
        if matches!(of, Known::Items(items) if items.is_empty()) {
            self.never.extend(self.graph.results(op));
        }
        of.each().map(|each| vec![each])
    }

    /// The results of an op that is never reached.
    fn set_never(&mut self, op: OpId) {
        for result in self.graph.results(op) {
            self.never.insert(result);
            self.set(result, Known::of_type(self.graph.ty(result)));
        }
    }

    fn by_row(&mut self, op: OpId, operands: &[Known]) -> Option<Vec<Known>> {
        for result in self.graph.results(op) {
            self.numbers.remove(&result);
        }
        let row = resolve(self.registry, self.graph, op).ok()?;
        if let Some(values) = self.number(op, &row, operands) {
            self.keep_numbers(op, &values);
            return Some(values.iter().map(Known::of_value).collect());
        }
        if let Some(answer) = self.same(op, &row).or_else(|| compared(&row, operands)) {
            return Some(vec![Known::Bool(answer)]);
        }
        if let Some(found) = self.open_number(op, &row, operands) {
            return Some(found);
        }
        let call = Operands { open: self.open, ..Operands::new(&row, operands, self.symbols) };
        if let Some(results) = infer(&call) {
            return Some(results);
        }
        match row.def().family {
            Family::Host | Family::Container => match self.open.filter(|_| operands.iter().any(has_open)) {
                Some(open) => by_numbers(open, operands, &|known| arithmetic(&row, known)),
                None => arithmetic(&row, operands),
            },
            Family::Composite if self.depth < MAX_MEANINGS => {
                let meaning = (self.meanings)(&row)?;
                let known = run(
                    (self.registry, self.open),
                    &meaning,
                    operands,
                    self.symbols,
                    self.meanings,
                    self.depth + 1,
                );
                let results: Vec<Known> =
                    meaning.outputs().iter().map(|v| known[v.index()].clone()).collect();
                match (row.schema().ok()?.returns.len(), results.as_slice()) {
                    (n, [Known::Items(items)]) if n > 1 && items.len() == n => Some(items.clone()),
                    _ => Some(results),
                }
            }
            _ => None,
        }
    }

    /// What an op says that asks whether its operands are the same object, of one that it is given twice.
    fn same(&self, op: OpId, row: &Op) -> Option<bool> {
        let &[first, second] = self.graph.operands(op) else { return None };
        let is_object = AliasDb::is_mutable_type(self.graph.ty(first));
        if first != second || !is_object || !row.def().facts.contains(&Fact::Compares) {
            return None;
        }
        let any_object = [Value::None, Value::None];
        let results = eval::call(row, &any_object, Default::default(), &Run::silent()).ok()?;
        results.first()?.to_bool().ok()
    }

    /// Remembers the results of an op that are tensors of one number, if they keep it.
    fn keep_numbers(&mut self, op: OpId, values: &[Value]) {
        for (result, value) in self.graph.results(op).into_iter().zip(values) {
            if let Value::Tensor(tensor) = value
                && is_number(tensor)
                && self.is_only_read(result)
            {
                self.numbers.insert(result, Number::Known(tensor.clone()));
            }
        }
    }

    /// Whether all that use a value read it, and give nothing that shares its memory.
    fn is_only_read(&self, value: ValueId) -> bool {
        self.graph.uses(value).all(|used| {
            if let Some(block) = self.graph.terminated_block(used.op) {
                return block == self.graph.root();
            }
            let Ok(row) = resolve(self.registry, self.graph, used.op) else { return false };
            let argument = row.schema().ok().and_then(|s| s.arguments.get(used.index));
            argument.is_some_and(|a| a.alias.is_none()) && row.def().hidden.is_none()
        })
    }

    /// What an op gives that computes one number of tensors of one number, by the row's own kernel.
    fn number(&self, op: OpId, row: &Op, operands: &[Known]) -> Option<Vec<Value>> {
        let wraps = row.def().facts.contains(&Fact::WrapsNumber);
        if !computes_numbers(row) {
            return None;
        }
        let given = self.graph.operands(op);
        if !wraps && !given.iter().any(|v| self.numbers.contains_key(v)) {
            return None;
        }
        let value = |(operand, known): (&ValueId, &Known)| match self.numbers.get(operand) {
            Some(Number::Known(tensor)) => Some(Value::Tensor(tensor.clone())),
            Some(Number::Open(_)) => None,
            None => number_of(known),
        };
        let values = given.iter().zip(operands).map(value).collect::<Option<Vec<Value>>>()?;
        let results = eval::call(row, &values, Default::default(), &Run::silent()).ok()?;
        let is_one = |value: &Value| match value {
            Value::Tensor(tensor) => is_number(tensor),
            Value::Int(_) | Value::Float(_) | Value::Bool(_) => true,
            _ => false,
        };
        results.iter().all(is_one).then(|| results.into_iter().collect())
    }

    /// The same where some number is an open size: the kernel is asked for several numbers in its place.
    fn open_number(&mut self, op: OpId, row: &Op, operands: &[Known]) -> Option<Vec<Known>> {
        let open = self.open?;
        if !computes_numbers(row) {
            return None;
        }
        let (given, zero) = (self.graph.operands(op), int_tensor(0)?);
        let number = |(operand, known): (&ValueId, &Known)| match self.numbers.get(operand) {
            Some(Number::Known(tensor)) => (Known::Nothing, Some(tensor.clone())),
            Some(Number::Open(dim)) => (Known::Int(*dim), Some(zero.clone())),
            None => (known.clone(), None),
        };
        let (known, tensors): (Vec<Known>, Vec<Option<Tensor>>) =
            given.iter().zip(operands).map(number).unzip();
        if !known
            .iter()
            .any(|known| matches!(known, Known::Int(Dim::Open(_)) | Known::Ints(_)) && has_open(known))
        {
            return None;
        }
        // Which results are tensors.
        let are_tensors = RefCell::new(Vec::new());
        let rule = |known: &[Known]| {
            let value = |(known, tensor): (&Known, &Option<Tensor>)| match (known, tensor) {
                (Known::Int(Dim::Known(n)), Some(_)) => int_tensor(*n).map(Value::Tensor),
                (_, Some(tensor)) => Some(Value::Tensor(tensor.clone())),
                (known, None) => number_of(known),
            };
            let values = known.iter().zip(&tensors).map(value).collect::<Option<Vec<Value>>>()?;
            let results = eval::call(row, &values, Default::default(), &Run::silent()).ok()?;
            *are_tensors.borrow_mut() = results.iter().map(|v| matches!(v, Value::Tensor(_))).collect();
            let number = |value: &Value| match value {
                Value::Tensor(t) if is_number(t) && t.dtype() == DType::I64 => {
                    Some(Known::Int(Dim::Known(t.item().ok()?.to_i64())))
                }
                Value::Int(_) | Value::Float(_) | Value::Bool(_) => Some(Known::of_value(value)),
                _ => None,
            };
            results.iter().map(number).collect()
        };
        let found = by_numbers(open, &known, &rule)?;
        let results = self.graph.results(op).into_iter().zip(found).zip(are_tensors.into_inner());
        let one = |((result, known), is_tensor): ((ValueId, Known), bool)| {
            if !is_tensor {
                return known;
            }
            if let Known::Int(dim @ (Dim::Open(_) | Dim::Known(_))) = known
                && self.is_only_read(result)
            {
                self.numbers.insert(result, Number::Open(dim));
            }
            Known::Tensor(of_tensor(&zero))
        };
        Some(results.map(one).collect())
    }

    fn branch(&mut self, op: OpId) {
        let graph = self.graph;
        let &[yes, no] = graph.nested_blocks(op) else { return };
        let condition = graph.operand(op, 0).map(|v| self.of(v));
        for block in [yes, no] {
            self.block(block);
        }
        for (n, value) in graph.results(op).iter().enumerate() {
            let of = |block| {
                graph.block_results(block).get(n).map(|v| self.flowing(*v).clone()).unwrap_or_default()
            };
            // A way that is never taken says nothing.
            let is_never = |block| graph.block_results(block).get(n).is_some_and(|v| self.never.contains(v));
            let known = match condition {
                Some(Known::Bool(true)) => of(yes),
                Some(Known::Bool(false)) => of(no),
                _ if is_never(yes) => of(no),
                _ if is_never(no) => of(yes),
                _ => of(yes).join(&of(no)),
            };
            let known = match (known, Known::of_type(graph.ty(*value))) {
                (Known::Tensor(found), Known::Tensor(declared)) => Known::Tensor(merge(&found, &declared)),
                (Known::Nothing, declared @ Known::Tensor(_)) => declared,
                (known, _) => known,
            };
            match is_never(yes) && is_never(no) {
                true => _ = self.never.insert(*value),
                false => _ = self.never.remove(value),
            }
            self.set(*value, known);
        }
    }

    /// Loop-carried values join the initial values and what each iteration leaves, until nothing changes.
    fn iterate(&mut self, op: OpId) {
        let graph = self.graph;
        let Some(&body) = graph.nested_blocks(op).first() else { return };
        let params = graph.params(body);
        let left = graph.block_results(body).iter().skip(1);
        // None: it is never read.
        let start = |v: &ValueId| (!self.never.contains(v)).then(|| self.flowing(*v).clone());
        let mut carried: Vec<Option<Known>> = graph.operands(op).iter().skip(2).map(start).collect();
        if let Some(counter) = params.first() {
            self.set(*counter, Known::Int(Dim::Unknown));
        }
        let changes: Vec<bool> =
            params.iter().skip(1).zip(left.clone()).map(|(param, left)| param != left).collect();
        let forget = |carried: &mut [Option<Known>]| {
            carried
                .iter_mut()
                .zip(&changes)
                .filter(|(_, changes)| **changes)
                .for_each(|(known, _)| *known = Some(Known::Nothing))
        };
        if self.visits > self.most_visits {
            forget(&mut carried);
        }
        for iteration in 1.. {
            for (param, known) in params.iter().skip(1).zip(&carried) {
                self.set_or_never(*param, known.clone());
            }
            self.block(body);
            let join = |(known, left): (&Option<Known>, &ValueId)| match (known, self.never.contains(left)) {
                (known, true) => known.clone(),
                (None, false) => Some(self.flowing(*left).clone()),
                (Some(known), false) => Some(known.join(self.flowing(*left))),
            };
            let mut joined: Vec<Option<Known>> = carried.iter().zip(left.clone()).map(join).collect();
            if joined == carried {
                break;
            }
            if self.visits > self.most_visits {
                forget(&mut joined);
            } else if iteration >= MAX_ITERATIONS {
                // From now on each iteration drops all facts of at least one value, so that this terminates.
                let changed = joined.iter_mut().zip(&carried).filter(|(new, old)| *new != *old);
                changed.for_each(|(new, _)| *new = Some(Known::Nothing));
            }
            carried = joined;
        }
        for (value, known) in graph.results(op).iter().zip(carried) {
            self.set_or_never(*value, known);
        }
    }

    fn set_or_never(&mut self, value: ValueId, known: Option<Known>) {
        match known {
            Some(_) => self.never.remove(&value),
            None => self.never.insert(value),
        };
        self.set(value, known.unwrap_or_else(|| Known::of_type(self.graph.ty(value))));
    }
}

/// Ops that give what they are given.
const CASTS: [&str; 2] = ["prim::unchecked_cast", "prim::unchecked_unwrap_optional"];

/// Both say something of the same tensor; what was found goes before what was declared.
pub fn merge(found: &TensorType, declared: &TensorType) -> TensorType {
    let sizes = match (&found.sizes, &declared.sizes) {
        (Some(f), Some(d)) if f.len() == d.len() => {
            let one = |(f, d): (&Dim, &Dim)| {
                let keeps = matches!(f, Dim::Known(_)) || matches!(d, Dim::Unknown);
                if keeps { *f } else { *d }
            };
            Some(f.iter().zip(d.iter()).map(one).collect())
        }
        (Some(f), _) => Some(Arc::clone(f)),
        (None, d) => d.clone(),
    };
    TensorType {
        dtype: found.dtype.or(declared.dtype),
        device: found.device.clone().or_else(|| declared.device.clone()),
        sizes,
        strides: found.strides.clone().or_else(|| declared.strides.clone()),
        requires_grad: found.requires_grad.or(declared.requires_grad),
        ..TensorType::default()
    }
}

/// An item of a list or tuple by a constant index.
fn item(operands: &[Known]) -> Option<Known> {
    let [whole, Known::Int(Dim::Known(n))] = operands else { return None };
    let at = |len: usize| usize::try_from(if *n < 0 { n + len as i64 } else { *n }).ok();
    match whole {
        Known::Items(items) => items.get(at(items.len())?).cloned(),
        Known::Ints(dims) => dims.get(at(dims.len())?).map(|d| Known::Int(*d)),
        _ => None,
    }
}

/// Whether a tensor is one number that programs compute sizes with.
fn is_number(tensor: &Tensor) -> bool {
    tensor.rank() == 0 && tensor.is_plain() && !tensor.requires_grad()
}

/// Whether an op computes numbers of numbers, and does nothing else.
fn computes_numbers(row: &Op) -> bool {
    let def = row.def();
    let harmless = Effects::MAY_RAISE | Effects::IDENTITY;
    let computes =
        matches!(def.family, Family::Elementwise | Family::Host) || def.facts.contains(&Fact::WrapsNumber);
    computes && row.variant() == Variant::Plain && harmless.contains(def.effects)
}

/// A tensor of one int64.
fn int_tensor(n: i64) -> Option<Tensor> {
    Tensor::full(DType::I64, &[], Scalar::Int(n)).ok()
}

/// The value that a number, a text, a device or a list of ints is known to be.
fn number_of(known: &Known) -> Option<Value> {
    match known {
        Known::Int(Dim::Known(n)) => Some(Value::Int(*n)),
        Known::Bool(x) => Some(Value::Bool(*x)),
        Known::Float(x) => Some(Value::Float(*x)),
        Known::Str(x) => Some(Value::str(x.as_str())),
        Known::None => Some(Value::None),
        Known::Device(device) => Some(Value::Device(device.clone().into())),
        Known::Ints(dims) => dims.iter().map(|d| d.known()).collect::<Option<Vec<i64>>>().map(Value::ints),
        _ => None,
    }
}

/// The list of texts that a value is known to be.
fn texts_of(known: &Known) -> Option<Value> {
    let Known::Items(items) = known else { return None };
    let text = |item: &Known| if let Known::Str(x) = item { Some(Value::str(x.as_str())) } else { None };
    let texts = items.iter().map(text).collect::<Option<Vec<Value>>>()?;
    (!texts.is_empty()).then(|| Value::list(Type::str(), texts))
}

/// What an op gives of numbers, texts and lists of ints or texts that are all known, by the row's own kernel.
fn arithmetic(row: &Op, operands: &[Known]) -> Option<Vec<Known>> {
    let value = |known: &Known| number_of(known).or_else(|| texts_of(known));
    let values = operands.iter().map(value).collect::<Option<Vec<Value>>>()?;
    if values.is_empty() || row.def().effects != Effects::NONE {
        return None;
    }
    let results = eval::call(row, &values, Default::default(), &Run::silent()).ok()?;
    Some(results.iter().map(Known::of_value).collect())
}
