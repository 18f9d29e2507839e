//! Contractions over named or listed dimensions: einsum and tensordot.

use crate::diag::{Diagnostic, Result};
use crate::dialects::shapes::trial;
use crate::dialects::{Args, OpDef, Outputs, contraction, one};
use crate::kernels::create::range::not_implemented;
use crate::kernels::matrix::product::{contract, permute, sum_dims};
use crate::tensor::{DType, Tensor, numel, promote_types, view, wrap_dim};

/// The rows.
pub static OPS: &[OpDef] = &[
    contraction("aten::einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor", |a| {
        one(einsum(a.str(0)?, &a.tensors(1)?)?)
    })
    .hidden_marks("aten::einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor(*)")
    .infer(trial::stand_ins),
    contraction(
        "aten::tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor",
        tensordot,
    )
    .infer(trial::stand_ins)
    .out("out"),
];

fn fail<T>(text: impl std::fmt::Display) -> Result<T> {
    Err(Diagnostic::runtime(format!("einsum(): {text}")))
}

/// A dimension of a term: a letter, or one of those that `...` stands for (counted from its last).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Label {
    Letter(char),
    Rest(usize),
}

/// A term as written: letters, with the place of `...` among them.
struct Term {
    letters: Vec<char>,
    rest_at: Option<usize>,
}

impl Term {
    fn parse(text: &str, whose: &str) -> Result<Term> {
        let mut term = Term { letters: Vec::new(), rest_at: None };
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            if let Some(after) = rest.strip_prefix("...") {
                if term.rest_at.is_some() {
                    return fail(format!("found '.' for {whose} for which an ellipsis was already found"));
                }
                term.rest_at = Some(term.letters.len());
                rest = after;
                continue;
            }
            rest = &rest[c.len_utf8()..];
            match c {
                ' ' => {}
                '.' => {
                    return fail(format!("found '.' for {whose} that is not part of any ellipsis"));
                }
                c if c.is_ascii_alphabetic() => term.letters.push(c),
                c => {
                    return fail(format!(
                        "invalid subscript given at index {} in the equation string, subscripts must be in [a-zA-Z]",
                        text.find(c).unwrap_or(0)
                    ));
                }
            }
        }
        Ok(term)
    }

    /// The labels of all dimensions, where `...` stands for `rest` of them.
    fn labels(&self, rest: usize) -> Vec<Label> {
        let mut labels: Vec<Label> = self.letters.iter().map(|c| Label::Letter(*c)).collect();
        if let Some(at) = self.rest_at {
            labels.splice(at..at, (0..rest).rev().map(Label::Rest));
        }
        labels
    }
}

/// Multiplies tensors and sums as the equation says.
pub fn einsum(equation: &str, tensors: &[Tensor]) -> Result<Tensor> {
    if tensors.is_empty() {
        return fail("must provide at least one operand");
    }
    let (left, right) = match equation.split_once("->") {
        Some((left, right)) => (left, Some(right)),
        None => (equation, None),
    };
    let texts: Vec<&str> = left.split(',').collect();
    if texts.len() < tensors.len() {
        return fail("more operands were provided than specified in the equation");
    }
    if texts.len() > tensors.len() {
        return fail("fewer operands were provided than specified in the equation");
    }
    let mut operands = Vec::with_capacity(tensors.len());
    let mut rest_count = 0;
    let mut letters: Vec<char> = Vec::new();
    for (at, (text, tensor)) in texts.iter().zip(tensors).enumerate() {
        let term = Term::parse(text, &format!("operand {at}"))?;
        let (rank, named) = (tensor.rank(), term.letters.len());
        if (term.rest_at.is_none() && rank != named) || rank < named {
            return fail(format!(
                "the number of subscripts in the equation ({named}) {} the number of dimensions ({rank}) for operand {at}{}",
                if term.rest_at.is_some() { "is more than" } else { "does not match" },
                if term.rest_at.is_some() { "" } else { " and no ellipsis was given" }
            ));
        }
        if term.rest_at.is_some() {
            rest_count = rest_count.max(rank - named);
        }
        letters.extend(&term.letters);
        operands.push((term.labels(rank - named), tensor.clone()));
    }
    let output = output_labels(right, &letters, rest_count)?;
    let mut space = output.clone();
    letters.sort_unstable();
    letters.dedup();
    let others = (0..rest_count).rev().map(Label::Rest).chain(letters.iter().map(|c| Label::Letter(*c)));
    space.extend(others.filter(|l| !output.contains(l)));
    let mut aligned = Vec::with_capacity(operands.len());
    for (at, (labels, tensor)) in operands.into_iter().enumerate() {
        aligned.push(align(at, tensor, labels, &space)?);
    }
    check_sizes(&space, &aligned)?;
    contract_all(aligned, output.len(), space.len())
}

/// The labels of the result: as written, or all of `...` and the letters that stand once, in order.
fn output_labels(text: Option<&str>, letters: &[char], rest_count: usize) -> Result<Vec<Label>> {
    let Some(text) = text else {
        let mut single: Vec<char> =
            letters.iter().copied().filter(|c| letters.iter().filter(|d| *d == c).count() == 1).collect();
        single.sort_unstable();
        return Ok((0..rest_count)
            .rev()
            .map(Label::Rest)
            .chain(single.into_iter().map(Label::Letter))
            .collect());
    };
    let term = Term::parse(text, "the output")?;
    for (at, c) in term.letters.iter().enumerate() {
        if term.letters[..at].contains(c) {
            return fail(format!("output subscript {c} appears more than once in the output"));
        }
        if !letters.contains(c) {
            return fail(format!(
                "output subscript {c} does not appear in the equation for any input operand"
            ));
        }
    }
    Ok(term.labels(rest_count))
}

/// Brings an operand into the space of all labels: repeated ones become the diagonal, missing ones size 1.
fn align(at: usize, mut tensor: Tensor, mut labels: Vec<Label>, space: &[Label]) -> Result<Tensor> {
    let mut d = 0;
    while d < labels.len() {
        let Some(first) = labels[..d].iter().position(|l| *l == labels[d]) else {
            d += 1;
            continue;
        };
        let sizes = tensor.sizes();
        if sizes[first] != sizes[d] {
            let Label::Letter(c) = labels[d] else { return fail("an ellipsis repeats") };
            return fail(format!(
                "subscript {c} is repeated for operand {at} but the sizes don't match, {} != {}",
                sizes[d], sizes[first]
            ));
        }
        tensor = tensor.look(|l| view::diagonal(l, 0, first as i64, d as i64))?;
        let label = labels[d];
        labels.remove(d);
        labels.remove(first);
        labels.push(label);
        d = 0;
    }
    let mut order = Vec::with_capacity(space.len());
    for label in space {
        order.push(match labels.iter().position(|l| l == label) {
            Some(d) => d,
            None => {
                let end = tensor.rank();
                tensor = tensor.look(|l| view::unsqueeze(l, end as i64))?;
                end
            }
        });
    }
    permute(&tensor, &order)
}

fn check_sizes(space: &[Label], operands: &[Tensor]) -> Result<()> {
    let ellipsis = space.iter().filter(|label| matches!(label, Label::Rest(_))).count();
    for (d, label) in space.iter().enumerate() {
        let mut size = 1;
        for (at, operand) in operands.iter().enumerate() {
            let own = operand.sizes()[d];
            if own != 1 && size != 1 && own != size {
                return fail(match label {
                    Label::Letter(c) => format!(
                        "subscript {c} has size {own} for operand {at} which does not broadcast with previously seen size \
                         {size}"
                    ),
                    // PyTorch leaves out the blank.
                    Label::Rest(from_last) => format!(
                        "dimension {} covered by ellipsis in operand {at}has size {own} which does not broadcast with previously \
                         seen ellipsis with size {size} for the respective dimension",
                        ellipsis - 1 - from_last
                    ),
                });
            }
            if own != 1 {
                size = own;
            }
        }
    }
    Ok(())
}

/// Multiplies from left to right; a dimension is summed where its last operand comes in.
fn contract_all(operands: Vec<Tensor>, kept: usize, rank: usize) -> Result<Tensor> {
    let last: Vec<usize> =
        (0..rank).map(|d| operands.iter().rposition(|t| t.sizes()[d] != 1).unwrap_or(0)).collect();
    let mut operands = operands.into_iter().enumerate();
    let Some((_, mut result)) = operands.next() else { return fail("must provide at least one operand") };
    let due = |at: usize| -> Vec<usize> { (kept..rank).filter(|d| last[*d] == at).collect() };
    let alone = due(0);
    let summed = alone.iter().any(|d| result.sizes()[*d] != 1);
    if summed || (operands.len() == 0 && !alone.is_empty()) {
        if result.dtype().is_integral() {
            // A sum before a product, or alone, widens integers.
            result = result.to_dtype(DType::I64)?;
        }
        result = sum_dims("sum_cpu", &result, &alone)?;
    }
    for (at, operand) in operands {
        let due = due(at);
        if due.is_empty() || result.numel() == 0 || operand.numel() == 0 {
            // Without a sum it is a product by elements, which promotes.
            let dtype = promote_types(result.dtype(), operand.dtype());
            if dtype == DType::Bool && due.is_empty() {
                let both =
                    contract("mul_cpu", &result.to_dtype(DType::U8)?, &operand.to_dtype(DType::U8)?, &due)?;
                result = both.to_dtype(dtype)?;
                continue;
            }
            result = contract("mul_cpu", &result.to_dtype(dtype)?, &operand.to_dtype(dtype)?, &due)?;
            continue;
        }
        if result.dtype() == DType::Bool {
            return Err(not_implemented("bmm", DType::Bool));
        }
        if result.dtype() != operand.dtype() {
            return Err(Diagnostic::runtime(format!(
                "expected scalar type {} but found {}",
                result.dtype().type_name(),
                operand.dtype().type_name()
            )));
        }
        result = contract("bmm", &result, &operand, &due)?;
    }
    let sizes = result.sizes();
    // Only dimensions that were summed are left out by a view, whose strides may be others.
    if kept == rank { Ok(result) } else { result.reshaped(&sizes[..kept]) }
}

fn tensordot(args: &Args<'_>) -> Result<Outputs> {
    let (a, b, dims_a, dims_b) = (args.tensor(0)?, args.tensor(1)?, args.ints(2)?, args.ints(3)?);
    if dims_a.len() != dims_b.len() {
        return Err(Diagnostic::runtime("both dimension lists should have same length"));
    }
    if a.dtype() != b.dtype() {
        return Err(Diagnostic::runtime("both inputs should have same dtype"));
    }
    let (mut x, mut y) = (a.clone(), b.clone());
    let (mut in_a, mut in_b) = (Vec::new(), Vec::new());
    for (p, q) in dims_a.iter().zip(&dims_b) {
        let (d, e) = (wrap_dim(*p, a.rank())?, wrap_dim(*q, b.rank())?);
        let (m, n) = (a.sizes().get(d).copied().unwrap_or(1), b.sizes().get(e).copied().unwrap_or(1));
        // Where one of the two sizes is 1, the other dimension is summed before.
        match (m, n) {
            _ if m == n => {}
            (1, _) => y = sum_dims("sum_cpu", &y, &[e])?,
            (_, 1) => x = sum_dims("sum_cpu", &x, &[d])?,
            _ => {
                return Err(Diagnostic::runtime(format!(
                    "contracted dimensions need to match, but first has size {m} in dim {p} and second has size {n} in dim {q}"
                )));
            }
        }
        if in_a.contains(&d) || in_b.contains(&e) {
            let dim = if in_a.contains(&d) { d } else { e };
            return Err(Diagnostic::runtime(format!("dim {dim} appears multiple times in the list of dims")));
        }
        in_a.push(d);
        in_b.push(e);
    }
    if a.rank() == 0 || b.rank() == 0 {
        let widen =
            |t: &Tensor, rank: usize| if t.rank() == 0 { t.reshaped(&vec![1; rank]) } else { Ok(t.clone()) };
        let z = contract("mul_cpu", &widen(&x, y.rank())?, &widen(&y, x.rank())?, &[])?;
        return one(z);
    }
    let free = |rank: usize, used: &[usize]| (0..rank).filter(|d| !used.contains(d)).collect::<Vec<_>>();
    let (free_a, free_b) = (free(a.rank(), &in_a), free(b.rank(), &in_b));
    let (sx, sy) = (x.sizes(), y.sizes());
    let pick = |sizes: &[i64], dims: &[usize]| dims.iter().map(|d| sizes[*d]).collect::<Vec<i64>>();
    let (left, right) = (pick(&sx, &free_a), pick(&sy, &free_b));
    let terms = numel(&pick(&sx, &in_a)) as i64;
    let rows = permute(&x, &[&free_a[..], &in_a].concat())?.reshaped(&[numel(&left) as i64, terms])?;
    let columns = permute(&y, &[&in_b[..], &free_b].concat())?.reshaped(&[terms, numel(&right) as i64])?;
    let z = crate::kernels::matrix::product::product("addmm_impl_cpu_", &rows, &columns, None)?;
    one(z.reshaped(&[left, right].concat())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(sizes: &[i64]) -> Tensor {
        let n: i64 = sizes.iter().product();
        let elements: Vec<f64> = (0..n).map(|x| x as f64).collect();
        Tensor::from_vec(&elements, sizes).expect("valid")
    }

    #[test]
    fn equations() {
        let (a, b) = (tensor(&[2, 3]), tensor(&[3, 2]));
        let cases: &[(&str, &[&Tensor], &[i64], &[f64])] = &[
            ("ij,jk->ki", &[&a, &b], &[2, 2], &[10.0, 28.0, 13.0, 40.0]),
            ("ij,jk", &[&a, &b], &[2, 2], &[10.0, 13.0, 28.0, 40.0]),
            ("ba", &[&a], &[3, 2], &[0.0, 3.0, 1.0, 4.0, 2.0, 5.0]),
            ("i...->...", &[&a], &[3], &[3.0, 5.0, 7.0]),
            ("ij, ji ->", &[&a, &b], &[], &[50.0]),
        ];
        for (equation, operands, sizes, expected) in cases {
            let operands: Vec<Tensor> = operands.iter().map(|t| (*t).clone()).collect();
            let result = einsum(equation, &operands).expect(equation);
            assert_eq!(result.sizes().as_slice(), *sizes, "{equation}");
            assert_eq!(result.to_vec::<f64>().expect("f64"), *expected, "{equation}");
        }
        for bad in ["ij", "ijk,jk", "ij,jk->iz", "ij,ij", "i..j,jk"] {
            assert!(einsum(bad, &[a.clone(), b.clone()]).is_err(), "{bad}");
        }
    }
}
