//! Sizes found by trying: the row's own kernel runs on tensors of zeros. For ops whose result's sizes follow from sizes
//! and numbers alone; where they follow from elements, a row must not name this rule. Symbols are tried as several
//! numbers, and only what comes out each time is said.

use super::{Known, Operands, Results, Trials, layouts};
use crate::dialects::{Args, Fact, Family, Node, Run};
use crate::ir::{Argument, Dim, TensorType, Type, TypeKind};
use crate::resources::{Budget, Limits, budget};
use crate::tensor::{DType, Layout, Storage, Tensor, contiguous_strides};
use crate::value::{List, Value};
use std::sync::Arc;

/// Larger operands, in elements all together, are not tried where a kernel computes.
const MAX_COMPUTED: i64 = 1 << 16;
/// Nor where it only moves elements or reads them: untouched memory costs nothing.
const MAX_LOOKED_AT: i64 = 1 << 22;
/// Bytes that a trial may take, with its results: a number among the operands may ask for any size.
const MAX_BYTES: u64 = 1 << 28;
/// What symbols are tried as: numbers that sizes seldom are, then 1, which broadcasts.
const PROBES: [i64; 2] = [13, 1];

/// The sizes and dtypes of what the kernel gives.
pub fn kernel(operands: &Operands<'_>) -> Results {
    tried(operands, limit(operands.op.def().family))
}

/// How many elements, in all operands together, an op of a family is tried on.
pub fn limit(family: Family) -> i64 {
    if family == Family::Gather { MAX_LOOKED_AT } else { MAX_COMPUTED }
}

/// The same for a view, which touches no element.
pub fn look(operands: &Operands<'_>) -> Results {
    tried(operands, MAX_LOOKED_AT)
}

/// The same where each size of the results is a size of an operand, or a constant below five, and no argument counts
/// elements: such a kernel is tried on small sizes in place of large ones. Equal ones stay equal, and their order stays.
pub fn stand_ins(operands: &Operands<'_>) -> Results {
    kernel(operands).or_else(|| on_stand_ins(operands))
}

fn tried(operands: &Operands<'_>, limit: i64) -> Results {
    if operands.trials == Trials::Never {
        return None;
    }
    if !operands.values.iter().any(has_symbol) {
        return run(operands, None, limit);
    }
    let [first, second] = PROBES.map(|probe| run(operands, Some(probe), limit));
    let (first, second) = (first?, second?);
    first.iter().zip(&second).map(|(a, b)| same_kind(operands, a, b)).collect()
}

fn has_symbol(known: &Known) -> bool {
    let open = |dims: &[Dim]| dims.iter().any(|d| d.known().is_none());
    match known {
        Known::Tensor(t) => t.sizes.as_deref().is_some_and(open),
        Known::Int(d) => d.known().is_none(),
        Known::Ints(dims) => open(dims),
        Known::Items(items) => items.iter().any(has_symbol),
        _ => false,
    }
}

/// Rank and dtype, where two trials agree; every size may depend on a symbol.
fn same_kind(operands: &Operands<'_>, a: &Known, b: &Known) -> Option<Known> {
    match (a, b) {
        (Known::Tensor(a), Known::Tensor(b)) => {
            let (sizes, others) = (a.sizes.as_ref()?, b.sizes.as_ref()?);
            let sizes =
                (sizes.len() == others.len()).then(|| sizes.iter().map(|_| operands.fresh()).collect());
            let dtype = a.dtype.filter(|d| Some(*d) == b.dtype);
            Some(Known::Tensor(TensorType { strides: None, dtype, sizes, ..a.clone() }))
        }
        (Known::Items(a), Known::Items(b)) if a.len() == b.len() => a
            .iter()
            .zip(b)
            .map(|(a, b)| same_kind(operands, a, b))
            .collect::<Option<Vec<_>>>()
            .map(Known::Items),
        (a, b) if a == b => Some(a.clone()),
        _ => Some(Known::Nothing),
    }
}

fn run(operands: &Operands<'_>, probe: Option<i64>, limit: i64) -> Results {
    let op = operands.op;
    let schema = op.schema().ok()?;
    let kernel = op.def().eval?;
    let mut room = limit;
    let alike = probe.is_none() && operands.values.iter().all(has_layout);
    let how = How { probe, alike };
    let of = |(argument, known): (&Argument, &Known)| value(&argument.ty, known, how, &mut room);
    let values = schema.arguments.iter().zip(operands.values).map(of).collect::<Option<Vec<Value>>>()?;
    let run = Run::silent();
    let limits = Limits { bytes: Some(MAX_BYTES), ..Limits::default() };
    let _installed = Arc::new(Budget::within(limits, budget::current())).install();
    let results = kernel(&Args { op, values: &values, node: Node::default(), run: &run }).ok()?;
    Some(results.iter().map(|v| outcome(operands, v, alike)).collect())
}

/// Whether it is known how all tensors of a value lie.
fn has_layout(known: &Known) -> bool {
    match known {
        Known::Tensor(t) => layouts::of_type(t).is_some(),
        Known::Items(items) => items.iter().all(has_layout),
        Known::Each(_) => false,
        _ => true,
    }
}

/// The results of a rule of views, which lie as the kernel lays them out where the rule does not say it and the operands are
/// known to lie somewhere.
pub(super) fn lying(operands: &Operands<'_>, mut results: Vec<Known>) -> Vec<Known> {
    let copies = operands.op.def().facts.contains(&Fact::MayCopy);
    if copies || !results.iter().any(is_open) || !operands.values.iter().all(has_layout) {
        return results;
    }
    let looked = look(operands).unwrap_or_default();
    results.iter_mut().zip(&looked).for_each(|(result, looked)| take_strides(result, looked));
    results
}

/// Whether some tensor has sizes that are numbers, and unknown strides.
fn is_open(known: &Known) -> bool {
    match known {
        Known::Tensor(t) => t.strides.is_none() && t.sizes.as_deref().and_then(layouts::numbers).is_some(),
        Known::Items(items) => items.iter().any(is_open),
        _ => false,
    }
}

fn take_strides(result: &mut Known, looked: &Known) {
    match (result, looked) {
        (Known::Tensor(result), Known::Tensor(looked))
            if result.strides.is_none() && result.sizes == looked.sizes =>
        {
            result.strides = looked.strides.clone();
        }
        (Known::Items(results), Known::Items(looked)) => {
            results.iter_mut().zip(looked).for_each(|(result, looked)| take_strides(result, looked));
        }
        _ => {}
    }
}

/// Sizes that stand for others: those up to [`KEPT`] for themselves, each larger one for a number of its own.
struct StandIns {
    own: Vec<i64>,
}

/// Sizes that may mean something to a kernel: nothing, one, the parts of a complex number, places in a volume.
const KEPT: i64 = 4;
/// What stands for larger sizes, which are sums and products of each other as seldom as can be.
const NUMBERS: [i64; 8] = [5, 7, 11, 13, 17, 19, 23, 29];

impl StandIns {
    /// None where some size is not a number, or there are too many of them.
    fn of(values: &[Known]) -> Option<StandIns> {
        let mut own = Vec::new();
        let mut work: Vec<&Known> = values.iter().collect();
        while let Some(known) = work.pop() {
            match known {
                Known::Tensor(t) => own.extend(layouts::numbers(t.sizes.as_deref()?)?),
                Known::Items(items) => work.extend(items),
                _ => {}
            }
        }
        own.retain(|size| *size > KEPT);
        own.sort_unstable();
        own.dedup();
        (own.len() <= NUMBERS.len()).then_some(StandIns { own })
    }

    fn small(&self, size: i64) -> i64 {
        self.own.iter().position(|own| *own == size).map_or(size, |at| NUMBERS[at])
    }

    /// None of a size that stands for nothing.
    fn large(&self, size: i64) -> Option<i64> {
        if size <= KEPT {
            return Some(size);
        }
        self.own.get(NUMBERS.iter().position(|number| *number == size)?).copied()
    }

    /// A tensor of other sizes whose dimensions lie in the same order, where there are neither gaps nor overlaps.
    fn moved(&self, ty: &TensorType, change: impl Fn(i64) -> Option<i64>) -> Option<TensorType> {
        let sizes = layouts::numbers(ty.sizes.as_deref()?)?;
        let changed = sizes.iter().map(|size| change(*size)).collect::<Option<Vec<i64>>>()?;
        let strides = layouts::of_type(ty).and_then(|layout| steps(&layout, &changed));
        let strides = strides.map(|strides| layouts::strides(&strides));
        Some(TensorType { strides, sizes: Some(changed.into_iter().map(Dim::Known).collect()), ..ty.clone() })
    }

    fn shrunk(&self, known: &Known) -> Option<Known> {
        Some(match known {
            Known::Tensor(t) => Known::Tensor(self.moved(t, |size| Some(self.small(size)))?),
            Known::Items(items) => {
                Known::Items(items.iter().map(|item| self.shrunk(item)).collect::<Option<Vec<_>>>()?)
            }
            other => other.clone(),
        })
    }

    fn grown(&self, known: &Known) -> Option<Known> {
        Some(match known {
            Known::Tensor(t) => Known::Tensor(self.moved(t, |size| self.large(size))?),
            Known::Items(items) => {
                Known::Items(items.iter().map(|item| self.grown(item)).collect::<Option<Vec<_>>>()?)
            }
            // A number may be made of elements or of sizes.
            Known::Bool(x) => Known::Bool(*x),
            _ => Known::Nothing,
        })
    }
}

/// The strides of a packed layout after its sizes changed: each stride is the product of the sizes within it.
fn steps(layout: &Layout, changed: &[i64]) -> Option<Vec<i64>> {
    let mut dims: Vec<usize> = (0..layout.rank()).filter(|d| layout.sizes[*d] != 1).collect();
    dims.sort_by_key(|d| layout.strides[*d]);
    let mut known = vec![(1i64, 1i64)];
    for d in dims {
        let (before, after) = *known.last()?;
        if layout.strides[d] != before || layout.sizes[d] < 1 {
            return None;
        }
        known.push((before.checked_mul(layout.sizes[d])?, after.checked_mul(changed[d])?));
    }
    let of = |stride: &i64| known.iter().find(|(before, _)| before == stride).map(|(_, after)| *after);
    layout.strides.iter().map(of).collect()
}

fn on_stand_ins(operands: &Operands<'_>) -> Results {
    let stand_ins = StandIns::of(operands.values)?;
    let values = operands.values.iter().map(|known| stand_ins.shrunk(known)).collect::<Option<Vec<_>>>()?;
    let small = Operands { values: &values, trials: Trials::Small, ..*operands };
    let found = run(&small, None, MAX_COMPUTED)?;
    found.iter().map(|known| stand_ins.grown(known)).collect()
}

/// How operands are made up.
#[derive(Clone, Copy)]
struct How {
    /// What symbols are tried as.
    probe: Option<i64>,
    /// Whether they lie as they do in the program; else in order of rows.
    alike: bool,
}

/// A value that stands for what is known; None where too little is.
fn value(ty: &Type, known: &Known, how: How, room: &mut i64) -> Option<Value> {
    let number = |d: &Dim| match d {
        Dim::Known(n) => Some(*n),
        Dim::Symbol(_) | Dim::Open(_) => how.probe,
        Dim::Unknown => None,
    };
    Some(match known {
        Known::None => Value::None,
        Known::Bool(x) => Value::Bool(*x),
        Known::Int(d) if matches!(ty.without_none().kind(), TypeKind::List(_)) => Value::ints([number(d)?]),
        Known::Int(d) => Value::Int(number(d)?),
        Known::Float(x) => Value::Float(*x),
        Known::Ints(dims) => Value::ints(dims.iter().map(number).collect::<Option<Vec<i64>>>()?),
        Known::Str(text) => Value::Str(text.as_str().into()),
        Known::Device(device) => Value::Device(device.clone().into()),
        // What is made here lives on the host.
        Known::Tensor(t) if t.device.as_ref().is_some_and(|device| !device.is_cpu()) => return None,
        Known::Tensor(t) => {
            let sizes = t.sizes.as_deref()?.iter().map(number).collect::<Option<Vec<i64>>>()?;
            let count = sizes.iter().try_fold(1i64, |n, s| n.checked_mul((*s).max(1)))?;
            let layout = layouts::of_type(t).filter(|_| how.alike);
            let span = layout.as_ref().map_or(0, span);
            // Nothing lies in a tensor of 2^40 empty rows, but a kernel may walk them.
            *room = room.checked_sub(count.max(span)).filter(|left| *left >= 0)?;
            Value::Tensor(match layout.filter(|layout| layout.strides != contiguous_strides(&sizes)) {
                Some(layout) => lying_so(t.dtype?, layout, span)?,
                None => Tensor::zeros(t.dtype?, &sizes).ok()?,
            })
        }
        Known::Items(items) => {
            let ty = ty.without_none();
            let TypeKind::List(element) = ty.kind() else { return None };
            let items = items.iter().map(|k| value(element, k, how, room)).collect::<Option<Vec<Value>>>()?;
            Value::List(List::new(element.clone(), items))
        }
        Known::Nothing | Known::Number(_) | Known::Each(_) => return None,
    })
}

/// Elements from the first to after the last one.
fn span(layout: &Layout) -> i64 {
    let reach = |(size, stride): (&i64, &i64)| (size - 1).saturating_mul(*stride);
    let dims = layout.sizes.iter().zip(&layout.strides);
    if layout.numel() == 0 { 0 } else { dims.map(reach).fold(1, i64::saturating_add) }
}

/// A tensor of zeros that lies so. None of a quantized one, whose memory is not made of its dtype alone.
fn lying_so(dtype: DType, layout: Layout, span: i64) -> Option<Tensor> {
    let bytes = usize::try_from(span).ok().filter(|_| !dtype.is_quantized())?.checked_mul(dtype.size())?;
    Tensor::from_storage(Storage::zeroed(bytes).ok()?, dtype, layout).ok()
}

/// What is known of a result; how it lies where the operands lay as they do in the program.
fn outcome(operands: &Operands<'_>, value: &Value, alike: bool) -> Known {
    match value {
        Value::Tensor(t) => {
            let sizes = t.sizes().iter().map(|n| Dim::Known(*n)).collect();
            let typed = operands.result(&operands.common(), Some(t.dtype()), Some(sizes));
            let strides = alike.then(|| layouts::strides(&t.strides()));
            Known::Tensor(TensorType { strides, ..typed })
        }
        Value::List(list) if list.element_type().is_tensor() => {
            Known::Items(list.items().iter().map(|v| outcome(operands, v, alike)).collect())
        }
        Value::Tuple(tuple) => {
            Known::Items(tuple.items().iter().map(|v| outcome(operands, v, alike)).collect())
        }
        Value::Int(x) => Known::Int(Dim::Known(*x)),
        Value::Bool(x) => Known::Bool(*x),
        Value::Device(x) => Known::Device((**x).clone()),
        Value::Str(x) => Known::Str(x.to_string()),
        _ => Known::Nothing,
    }
}
