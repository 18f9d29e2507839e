//! The dialect `sparse`: matrices that list their non-zero elements, with a run-time value of their own, and ops on them.

use crate::row_counts::{self, RowCounts};
use flambeau::dialects::constraint::{Condition, Declaration, Law, Parameter, ParameterKind};
use flambeau::dialects::region::{Blocks, Region, Slot};
use flambeau::dialects::scalar::{Program, Sv};
use flambeau::dialects::structure::Structure;
use flambeau::dialects::{Fact, Promote, elementwise, host, opaque, regional};
use flambeau::ir::{Attr, Symbol};
use flambeau::prelude::*;
use flambeau::value::Object;
use std::sync::Arc;

pub(crate) struct Sparse;

impl Dialect for Sparse {
    fn name(&self) -> &'static str {
        "sparse"
    }

    fn types(&self) -> Vec<Declaration> {
        vec![Declaration::new("sparse.coo", "A matrix of floats that lists its non-zero elements")]
    }

    fn attributes(&self) -> Vec<Declaration> {
        let orders = ["row", "column"].map(|order| Attr::Str(order.into()));
        let by = Parameter::new("by", ParameterKind::Str).condition(Condition::In(orders.to_vec()));
        vec![Declaration::new("sparse.order", "How elements are listed").parameter(by)]
    }

    fn lowerings(&self) -> Vec<Arc<dyn Lowering>> {
        vec![Arc::new(RowCounts)]
    }

    fn ops(&self) -> Vec<OpDef> {
        let order = Parameter::new("order", ParameterKind::Declared(Symbol::new("sparse.order")))
            .default_value(Attr::Raw("#sparse.order<\"row\">".into()));
        vec![
            opaque("sparse::from_dense(Tensor self) -> sparse.coo", from_dense)
                .doc("Lists the non-zero elements of a matrix")
                .demanding(vec![Law::Attribute(order)]),
            opaque("sparse::to_dense(sparse.coo self) -> Tensor", to_dense)
                .doc("The matrix with all its elements"),
            host("sparse::nnz(sparse.coo self) -> int", |a| one(matrix(a.value(0)?)?.elements.len() as i64))
                .doc("How many elements are listed"),
            elementwise("sparse::shrink(Tensor self, Scalar by) -> Tensor", Promote::First)
                .doc("Moves each element towards 0 by `by`, but not across it")
                .scalar(shrink)
                .accepts("f", "sparse_shrink")
                .check(refuse_negative)
                .grad("self: grad * (self.abs() > by)")
                .facts(&[Fact::Odd]),
            row_counts::row(),
            regional("sparse::until(Tensor self, int at_most) -> Tensor", UNTIL, until)
                .doc("Runs its block on its own result, until it says no or has run `at_most` times"),
        ]
    }
}

// --- a value of one's own ---

/// A matrix by its elements: what a value of type `sparse.coo` is at run time.
struct Coo {
    sizes: [i64; 2],
    /// Row, column, element.
    elements: Vec<(i64, i64, f32)>,
}

impl Coo {
    fn into_value(self) -> Value {
        Value::Object(Object::with_native(Symbol::new("sparse.coo"), Arc::new(self)))
    }
}

fn matrix(value: &Value) -> Result<&Coo> {
    let wrong = || Diagnostic::runtime("this is not a sparse matrix");
    value.to_object()?.native::<Coo>().ok_or_else(wrong)
}

// --- kernels ---

fn from_dense(a: &Args<'_>) -> Result<Outputs> {
    let dense = a.tensor(0)?;
    let &[rows, columns] = dense.sizes().as_slice() else {
        return Err(Diagnostic::runtime("a sparse matrix is made of a matrix"));
    };
    let by_column = matches!(a.attr("order"), Some(Attr::Raw(text)) if text.contains("column"));
    let all: Vec<f32> = dense.to_vec()?;
    // -0 has a bit, and is listed: nothing is lost on the way back.
    let places = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
    let elements = places.zip(all).filter(|(_, x)| x.to_bits() != 0);
    let mut elements: Vec<(i64, i64, f32)> = elements.map(|((row, column), x)| (row, column, x)).collect();
    if by_column {
        elements.sort_by_key(|(row, column, _)| (*column, *row));
    }
    one(Coo { sizes: [rows, columns], elements }.into_value())
}

fn to_dense(a: &Args<'_>) -> Result<Outputs> {
    let matrix = matrix(a.value(0)?)?;
    let [rows, columns] = matrix.sizes;
    let mut all = vec![0.0f32; usize::try_from(rows * columns).unwrap_or(0)];
    for (row, column, x) in &matrix.elements {
        if let Some(place) = usize::try_from(row * columns + column).ok().and_then(|at| all.get_mut(at)) {
            *place = *x;
        }
    }
    one(Tensor::from_vec(&all, &matrix.sizes)?)
}

fn refuse_negative(values: &[Value]) -> Result<()> {
    let by = values.get(1).map_or(Ok(0.0), |by| by.to_scalar().map(|by| by.to_f64()))?;
    // NaN is not at least 0.
    if by >= 0.0 {
        return Ok(());
    }
    Err(Diagnostic::runtime(format!("sparse::shrink moves elements by at least 0, not by {by}")))
}

/// One element of `shrink`. Evaluation, folding, loops, LLVM and PTX all come from this.
fn shrink(p: &mut Program, x: &[Sv]) -> Sv {
    let zero = p.constant_like(x[0], 0.0);
    let magnitude = p.abs(x[0]);
    let less = p.sub(magnitude, x[1]);
    let (far, positive) = (p.gt(magnitude, x[1]), p.gt(x[0], zero));
    let negative = p.neg(less);
    let moved = p.select(positive, less, negative);
    // NaN stays, and zeros keep their sign.
    let inner = p.mul(x[0], zero);
    p.select(far, moved, inner)
}

// --- an op with a block ---

/// Its block takes the number of the iteration and a tensor, and gives whether to go on and the next tensor.
const UNTIL: &[Law] = &[Law::Structure(Structure::Regions(&[Region {
    takes: &[Slot::Int, Slot::Operand(0)],
    gives: &[Slot::Bool, Slot::Result(0)],
}]))];

fn until(a: &Args<'_>, blocks: &dyn Blocks) -> Result<Outputs> {
    let mut now = a.value(0)?.clone();
    for iteration in 0..a.int(1)? {
        let mut given = blocks.run(0, vec![Value::Int(iteration), now])?.into_iter();
        let (Some(goes_on), Some(next)) = (given.next(), given.next()) else {
            return Err(Diagnostic::runtime("the block gives whether to go on and a tensor"));
        };
        now = next;
        if !goes_on.to_bool()? {
            break;
        }
    }
    one(now)
}
