//! Products of matrices as nests of loops with indices, which loop passes schedule: `aten::mm`, `bmm`, `matmul`, `addmm` and
//! `linear`.
//!
//! A sum begins with 0, takes its products first to last and rounds each once with what it is added to. The kernels of the rows
//! add in another order, so that results may differ by rounding.

use super::walk::Walk;
use crate::diag::{Diagnostic, Result};
use crate::dialects::loops::{Builder, Elem, Mark};
use crate::dialects::scalar::{Binary, Compare};
use crate::ir::{Dim, Graph, ValueId};
use crate::lowering::Target;
use crate::lowering::by_op::{Lowering, OpCall, Ops, Rewriter};

/// The product of two matrices.
pub(super) struct MmByNest;
/// Products of matrices in a batch.
pub(super) struct BmmByNest;
/// Products of matrices and of batches of them.
pub(super) struct MatmulByNest;
/// A product added to something.
pub(super) struct AddmmByNest;
/// A linear layer.
pub(super) struct LinearByNest;

const SHAPES: &str = "mat1 and mat2 shapes cannot be multiplied";

impl Lowering for MmByNest {
    fn name(&self) -> &str {
        "mm-by-nest"
    }

    fn ops(&self) -> Ops {
        Ops::named("aten::mm")
    }

    fn lower(&self, call: &OpCall, rewriter: &mut Rewriter<'_>) -> Result<Vec<ValueId>> {
        let elem = elem(call, ["self", "mat2"])?;
        ranks(call, ["self", "mat2"], 2)?;
        let factors = Factors::of(call, rewriter, ["self", "mat2"], false)?;
        factors.launch(call, rewriter, "mm.nest", Form::new(elem), None)
    }
}

impl Lowering for BmmByNest {
    fn name(&self) -> &str {
        "bmm-by-nest"
    }

    fn ops(&self) -> Ops {
        Ops::named("aten::bmm")
    }

    fn lower(&self, call: &OpCall, rewriter: &mut Rewriter<'_>) -> Result<Vec<ValueId>> {
        let elem = elem(call, ["self", "mat2"])?;
        ranks(call, ["self", "mat2"], 3)?;
        let factors = Factors::of(call, rewriter, ["self", "mat2"], false)?;
        factors.launch(call, rewriter, "bmm.nest", Form { batches: Batches::Same, ..Form::new(elem) }, None)
    }
}

impl Lowering for MatmulByNest {
    fn name(&self) -> &str {
        "matmul-by-nest"
    }

    fn ops(&self) -> Ops {
        Ops::named("aten::matmul")
    }

    fn lower(&self, call: &OpCall, rewriter: &mut Rewriter<'_>) -> Result<Vec<ValueId>> {
        let elem = elem(call, ["self", "other"])?;
        let batches = match [call.rank("self")?, call.rank("other")?] {
            [own, 2] if own >= 2 => Batches::None,
            [2 | 3, 3] => Batches::Broadcast,
            _ => return Err(Diagnostic::unsupported("multiplies by a matrix, or by a batch of matrices")),
        };
        let factors = Factors::of(call, rewriter, ["self", "other"], false)?;
        factors.launch(call, rewriter, "matmul.nest", Form { batches, ..Form::new(elem) }, None)
    }
}

impl Lowering for LinearByNest {
    fn name(&self) -> &str {
        "linear-by-nest"
    }

    fn ops(&self) -> Ops {
        Ops::named("aten::linear")
    }

    fn lower(&self, call: &OpCall, rewriter: &mut Rewriter<'_>) -> Result<Vec<ValueId>> {
        let elem = elem(call, ["input", "weight"])?;
        if call.rank("input")? < 1 || call.rank("weight")? != 2 {
            return Err(Diagnostic::unsupported("'weight' is a matrix, and 'input' has dimensions"));
        }
        let mut added = None;
        if !call.is_none("bias")? {
            if call.elem("bias")? != elem || call.rank("bias")? != 1 {
                return Err(Diagnostic::unsupported("'bias' is a vector of the dtype of 'input'"));
            }
            added = Some(rewriter.contiguous(call.operand("bias")?)?);
        }
        let factors = Factors::of(call, rewriter, ["input", "weight"], true)?;
        let form = Form { turned: true, added: added.map(|_| Added::Vector), ..Form::new(elem) };
        let added = match added {
            Some(bias) => Some(vec![bias, rewriter.numel(bias)?]),
            None => None,
        };
        factors.launch(call, rewriter, "linear.nest", form, added)
    }
}

impl Lowering for AddmmByNest {
    fn name(&self) -> &str {
        "addmm-by-nest"
    }

    fn ops(&self) -> Ops {
        Ops::named("aten::addmm")
    }

    fn lower(&self, call: &OpCall, rewriter: &mut Rewriter<'_>) -> Result<Vec<ValueId>> {
        let elem = elem(call, ["mat1", "mat2"])?;
        ranks(call, ["mat1", "mat2"], 2)?;
        let rank = call.rank("self")?;
        if call.elem("self")? != elem || rank > 2 {
            return Err(Diagnostic::unsupported(
                "'self' is no more than a matrix of the dtype of the others",
            ));
        }
        let numbers = [call.number("beta")?, call.number("alpha")?];
        if numbers.iter().any(|x| elem == Elem::F32 && x.is_finite() && !(*x as f32).is_finite()) {
            return Err(Diagnostic::unsupported("'beta' and 'alpha' are numbers of the dtype"));
        }
        if numbers == [1.0, 1.0] && !spreads(call) {
            return Err(Diagnostic::unsupported(
                "types must imply that 'self' has the sizes of the product, or size 1",
            ));
        }
        let onto = rewriter.contiguous(call.operand("self")?)?;
        let one = rewriter.int(1);
        let mut sizes: Vec<ValueId> = std::iter::repeat_n(one, 2 - rank).collect();
        sizes.extend(rewriter.sizes(onto, 0..rank)?);
        let mut added = vec![onto];
        added.extend(sizes);
        added.extend([call.operand("beta")?, call.operand("alpha")?]);
        let factors = Factors::of(call, rewriter, ["mat1", "mat2"], false)?;
        let form = Form { added: Some(Added::Matrix), ..Form::new(elem) };
        factors.launch(call, rewriter, "addmm.nest", form, Some(added))
    }
}

/// The element type of both operands.
fn elem(call: &OpCall, [a, b]: [&str; 2]) -> Result<Elem> {
    let elem = call.elem(a)?;
    if call.elem(b)? != elem || !matches!(elem, Elem::F32 | Elem::F64) {
        return Err(Diagnostic::unsupported("multiplies matrices of float32, or of float64"));
    }
    Ok(elem)
}

fn ranks(call: &OpCall, names: [&str; 2], rank: usize) -> Result<()> {
    for name in names {
        if call.rank(name)? != rank {
            return Err(Diagnostic::unsupported(format!("multiplies tensors of rank {rank}")));
        }
    }
    Ok(())
}

/// Whether types imply that what is added has the sizes of the product, or 1 instead. With `beta` and `alpha` 1 the op is a product
/// and a sum, whose result may be larger than the product.
fn spreads(call: &OpCall) -> bool {
    let sizes = |name: &str| call.tensor(name).ok().and_then(|t| t.sizes.clone());
    let (Some(own), Some(a), Some(b)) = (sizes("self"), sizes("mat1"), sizes("mat2")) else { return false };
    let product = [a.first(), b.get(1)];
    own.iter()
        .rev()
        .zip(product.into_iter().rev())
        .all(|(own, size)| *own == Dim::Known(1) || (Some(own) == size && *own != Dim::Unknown))
}

/// Both operands and their sizes.
struct Factors {
    a: ValueId,
    b: ValueId,
    /// Dimensions of the result before its last one.
    leading: Vec<ValueId>,
    /// Matrices of each operand.
    batches: [ValueId; 2],
    /// Whether each is a batch.
    batched: [bool; 2],
    m: ValueId,
    n: ValueId,
    k: ValueId,
    rows: ValueId,
}

impl Factors {
    /// Reads the sizes of two operands; the second is a matrix or a batch of them, and `turned` has what is summed over last.
    fn of(call: &OpCall, rewriter: &mut Rewriter<'_>, names: [&str; 2], turned: bool) -> Result<Factors> {
        let [rank, other] = [call.rank(names[0])?, call.rank(names[1])?];
        let a = rewriter.contiguous(call.operand(names[0])?)?;
        let b = rewriter.contiguous(call.operand(names[1])?)?;
        let mut leading = rewriter.sizes(a, 0..rank - 1)?;
        let batched = [rank == 3 && other == 3, other == 3];
        let one = rewriter.int(1);
        let batches = [
            if batched[0] { leading.remove(0) } else { one },
            if batched[1] { rewriter.size(b, 0)? } else { one },
        ];
        let [row, column] = if turned { [other - 1, other - 2] } else { [other - 2, other - 1] };
        let (m, n) = (rewriter.product(&leading)?, rewriter.size(b, column)?);
        let (k, rows) = (rewriter.size(a, rank - 1)?, rewriter.size(b, row)?);
        Ok(Factors { a, b, leading, batches, batched, m, n, k, rows })
    }

    /// The number of products: that of either operand, where the other has one matrix or is none.
    fn products(&self, rewriter: &mut Rewriter<'_>) -> Result<ValueId> {
        let [own, other] = self.batches;
        if !self.batched[0] {
            return Ok(other);
        }
        // other + (own - other) * (own != 1)
        let one = rewriter.int(1);
        let differs = rewriter.value("aten::ne", &[own, one])?;
        let counts = rewriter.value("aten::Int", &[differs])?;
        let more = rewriter.value("aten::sub", &[own, other])?;
        let more = rewriter.value("aten::mul", &[more, counts])?;
        rewriter.value("aten::add", &[other, more])
    }

    fn launch(
        self,
        call: &OpCall,
        rewriter: &mut Rewriter<'_>,
        name: &str,
        form: Form,
        added: Option<Vec<ValueId>>,
    ) -> Result<Vec<ValueId>> {
        let mut sizes = Vec::new();
        let mut numbers = Vec::new();
        if form.batches != Batches::None {
            let products = match form.batches {
                Batches::Broadcast => self.products(rewriter)?,
                _ => self.batches[0],
            };
            sizes.push(products);
            numbers.extend([products, self.batches[0], self.batches[1]]);
        }
        sizes.extend(self.leading.iter().copied().chain([self.n]));
        numbers.extend([self.m, self.n, self.k, self.rows]);
        let out = rewriter.empty(&sizes, form.elem.dtype())?;
        if call.target() == Target::Gpu {
            numbers.push(rewriter.product(&sizes)?);
        }
        let mut arguments = vec![out, self.a, self.b];
        let mut added = added.unwrap_or_default().into_iter();
        arguments.extend(added.next());
        arguments.extend(numbers.into_iter().chain(added));
        rewriter.launch(name, form.kernel(call.target()), &arguments)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Batches {
    /// Matrices.
    None,
    /// Two batches of one length.
    Same,
    /// Two batches, or one matrix with each of a batch.
    Broadcast,
}

/// What is added to a product.
#[derive(Clone, Copy, PartialEq)]
enum Added {
    /// A vector, to each row.
    Vector,
    /// A matrix times a number, to the product times another.
    Matrix,
}

#[derive(Clone, Copy)]
struct Form {
    elem: Elem,
    batches: Batches,
    /// Whether the second operand has what is summed over last.
    turned: bool,
    added: Option<Added>,
}

/// Parameters of a kernel.
struct Nest {
    form: Form,
    c: ValueId,
    a: ValueId,
    b: ValueId,
    d: Option<ValueId>,
    /// Products, and matrices of each operand.
    batches: Option<[ValueId; 3]>,
    m: ValueId,
    n: ValueId,
    k: ValueId,
    /// How far apart rows and columns of what is added are, and the numbers that it and the product are multiplied by.
    onto: Option<[ValueId; 4]>,
}

impl Form {
    /// A product of matrices.
    fn new(elem: Elem) -> Form {
        Form { elem, batches: Batches::None, turned: false, added: None }
    }

    /// `c[i, j]` is the sum over l of `a[i, l] * b[l, j]`; in batches, for each of them.
    fn kernel(self, target: Target) -> Graph {
        let mut b = Builder::new();
        let [c, x, y] = ["c", "a", "b"].map(|name| b.buffer(self.elem, name));
        let d = self.added.map(|_| b.buffer(self.elem, "d"));
        let batches = (self.batches != Batches::None)
            .then(|| ["batches", "own", "others"].map(|name| b.scalar(Elem::I64, name)));
        let [m, n, k, rows] = ["m", "n", "k", "rows"].map(|name| b.scalar(Elem::I64, name));
        let elements = (target == Target::Gpu).then(|| b.scalar(Elem::I64, "elements"));
        let fits = b.compare(Compare::Eq, k, rows);
        b.require(fits, SHAPES);
        self.require_batches(&mut b, batches);
        let onto = self.onto(&mut b, [m, n]);
        let nest = Nest { form: self, c, a: x, b: y, d, batches, m, n, k, onto };
        match elements {
            Some(elements) => nest.flat(&mut b, elements),
            None => nest.loops(&mut b),
        }
        b.finish()
    }

    fn require_batches(self, b: &mut Builder, batches: Option<[ValueId; 3]>) {
        let Some([_, own, others]) = batches else { return };
        let same = b.compare(Compare::Eq, own, others);
        if self.batches == Batches::Same {
            return b.require(same, "batch1 and batch2 must have the same number of batches");
        }
        let one = b.index(1);
        let [first, second] = [own, others].map(|n| b.compare(Compare::Eq, n, one));
        let either = b.binary(Binary::Or, first, second);
        let fits = b.binary(Binary::Or, same, either);
        b.require(fits, "The sizes of both batches must match, or be 1");
    }

    /// Parameters and checks of what is added.
    fn onto(self, b: &mut Builder, [m, n]: [ValueId; 2]) -> Option<[ValueId; 4]> {
        match self.added? {
            Added::Vector => {
                let length = b.scalar(Elem::I64, "length");
                let one = b.index(1);
                let [same, single] = [n, one].map(|size| b.compare(Compare::Eq, length, size));
                let fits = b.binary(Binary::Or, same, single);
                b.require(fits, "the bias has an element for each column");
                let (zero, one) = (b.index(0), b.number(1, self.elem));
                let step = b.index(1);
                let column = b.select(same, step, zero);
                Some([zero, column, one, one])
            }
            Added::Matrix => {
                let [height, width] = ["height", "width"].map(|name| b.scalar(Elem::I64, name));
                let [beta, alpha] = ["beta", "alpha"].map(|name| b.scalar(self.elem, name));
                let (zero, one) = (b.index(0), b.index(1));
                let mut steps = [zero; 2];
                for (n, (own, size, step)) in [(height, m, width), (width, n, one)].into_iter().enumerate() {
                    let [same, single] = [size, one].map(|size| b.compare(Compare::Eq, own, size));
                    let fits = b.binary(Binary::Or, same, single);
                    b.require(fits, "what is added must have the sizes of the product, or size 1");
                    steps[n] = b.select(single, zero, step);
                }
                Some([steps[0], steps[1], beta, alpha])
            }
        }
    }
}

impl Nest {
    /// A loop for each dimension, to be scheduled.
    fn loops(&self, b: &mut Builder) {
        let Some([batches, ..]) = self.batches else { return self.matrix(b, None) };
        b.for_each(batches, Mark::Serial, "p", |b, p| self.matrix(b, Some(p)));
    }

    fn matrix(&self, b: &mut Builder, p: Option<ValueId>) {
        b.for_each(self.m, Mark::Serial, "i", |b, i| {
            b.for_each(self.n, Mark::Serial, "j", |b, j| self.element(b, p, [i, j]));
        });
    }

    /// A thread for each element.
    fn flat(&self, b: &mut Builder, elements: ValueId) {
        let batches = self.batches.map(|[batches, ..]| batches);
        let sizes: Vec<ValueId> = batches.into_iter().chain([self.m, self.n]).collect();
        let marks = [Mark::Parallel; 2];
        Walk { sizes: &sizes, extent: elements, inner: None, marks }.each(b, |b, at, _| match *at {
            [p, i, j] => self.element(b, Some(p), [i, j]),
            [i, j] => self.element(b, None, [i, j]),
            _ => {}
        });
    }

    /// The matrix of each operand for a product.
    fn matrices(&self, b: &mut Builder, p: ValueId) -> [ValueId; 2] {
        let Some([_, own, others]) = self.batches.filter(|_| self.form.batches == Batches::Broadcast) else {
            return [p, p];
        };
        let (zero, one) = (b.index(0), b.index(1));
        [own, others].map(|count| {
            let single = b.compare(Compare::Eq, count, one);
            b.select(single, zero, p)
        })
    }

    fn element(&self, b: &mut Builder, p: Option<ValueId>, [i, j]: [ValueId; 2]) {
        let (mut row, mut to) = (i, i);
        let mut line = None;
        if let Some(p) = p {
            let [own, other] = self.matrices(b, p);
            row = b.at(own, self.m, i);
            to = b.at(p, self.m, i);
            line = Some(b.product(other, self.k));
        }
        let nought = b.number(0, self.form.elem);
        let sum = b.fold(self.k, nought, "l", |b, l, sum| {
            let from = b.at(row, self.k, l);
            let with = match (self.form.turned, line) {
                (true, _) => b.at(j, self.k, l),
                (false, Some(line)) => {
                    let line = b.sum(line, l);
                    b.at(line, self.n, j)
                }
                (false, None) => b.at(l, self.n, j),
            };
            let (x, y) = (b.load(self.a, from), b.load(self.b, with));
            b.fma(x, y, sum)
        });
        let value = self.with_added(b, sum, [i, j]);
        let to = b.at(to, self.n, j);
        b.store(self.c, to, value);
    }

    /// A product and what is added to it.
    fn with_added(&self, b: &mut Builder, sum: ValueId, [i, j]: [ValueId; 2]) -> ValueId {
        let (Some(d), Some([row, column, beta, alpha])) = (self.d, self.onto) else { return sum };
        let from = b.product(j, column);
        if self.form.added == Some(Added::Vector) {
            let bias = b.load(d, from);
            return b.sum(sum, bias);
        }
        let from = b.product(i, row);
        let shift = b.product(j, column);
        let from = b.sum(from, shift);
        let loaded = b.load(d, from);
        let scaled = b.product(loaded, beta);
        // Of 0 times something nothing is added, NaN or not.
        let zero = b.number(0, self.form.elem);
        let none = b.compare(Compare::Eq, beta, zero);
        let onto = b.select(none, zero, scaled);
        let product = b.product(sum, alpha);
        b.sum(product, onto)
    }
}
