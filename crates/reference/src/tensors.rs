//! Which definition an op with tensors among its arguments has: arguments are read here, results are made tensors here.

use crate::array::{Array, float, truth};
use crate::contract::{self, Window};
use crate::promote::{Operand, common};
use crate::reduce;
use crate::shape;
use crate::{Answer, Outside, elementwise, refused};
use flambeau_base::tensor::{DType, Scalar};
use flambeau_base::value::Value;
use std::cmp::Ordering::{Greater, Less};

/// Arguments of an op, read as they are asked for.
struct Arguments<'a>(&'a [Value]);

impl Arguments<'_> {
    fn tensor(&self, at: usize) -> Answer<Array> {
        self.optional(at)?.ok_or(Outside::Unknown)
    }

    fn optional(&self, at: usize) -> Answer<Option<Array>> {
        match self.0.get(at) {
            Some(Value::Tensor(t)) => Array::read(t).map(Some),
            Some(Value::None) => Ok(None),
            _ => Err(Outside::Unknown),
        }
    }

    fn tensors(&self, at: usize) -> Answer<Vec<Array>> {
        let Some(Value::List(list)) = self.0.get(at) else { return Err(Outside::Unknown) };
        let read = |item: &Value| match item {
            Value::Tensor(t) => Array::read(t),
            _ => Err(Outside::Unknown),
        };
        list.to_vec().iter().map(read).collect()
    }

    fn operand(&self, at: usize) -> Answer<Operand> {
        Ok(match self.0.get(at) {
            Some(Value::Tensor(t)) => Operand::Tensor(Array::read(t)?),
            Some(other) => Operand::Number(scalar(other)?),
            None => return Err(Outside::Unknown),
        })
    }

    fn number(&self, at: usize) -> Answer<Scalar> {
        self.0.get(at).map_or(Err(Outside::Unknown), scalar)
    }

    fn int(&self, at: usize) -> Answer<i64> {
        match self.0.get(at) {
            Some(Value::Int(x)) => Ok(*x),
            _ => Err(Outside::Unknown),
        }
    }

    fn optional_int(&self, at: usize) -> Answer<Option<i64>> {
        match self.0.get(at) {
            Some(Value::None) | None => Ok(None),
            _ => self.int(at).map(Some),
        }
    }

    fn dtype(&self, at: usize) -> Answer<Option<DType>> {
        let code = self.optional_int(at)?;
        code.map(|code| DType::from_code(code).ok_or(Outside::Unknown)).transpose()
    }

    fn flag(&self, at: usize) -> Answer<bool> {
        match self.0.get(at) {
            Some(Value::Bool(x)) => Ok(*x),
            _ => Err(Outside::Unknown),
        }
    }

    fn ints(&self, at: usize) -> Answer<Vec<i64>> {
        match self.0.get(at) {
            Some(list @ Value::List(_)) => list.to_ints().map_err(|_| Outside::Unknown),
            Some(Value::None) => Ok(Vec::new()),
            Some(Value::Int(x)) => Ok(vec![*x]),
            _ => Err(Outside::Unknown),
        }
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

fn scalar(value: &Value) -> Answer<Scalar> {
    match value {
        Value::Int(x) => Ok(Scalar::Int(*x)),
        Value::Float(x) => Ok(Scalar::Float(*x)),
        Value::Bool(x) => Ok(Scalar::Bool(*x)),
        Value::Complex(x) => Ok(Scalar::Complex(*x)),
        _ => Err(Outside::Unknown),
    }
}

/// A number as a tensor without dimensions.
pub(crate) fn of_number(arguments: &[Value]) -> Answer<Value> {
    let [value] = arguments else { return Err(Outside::Unknown) };
    let x = scalar(value)?;
    Array::of(x.dtype(), &[], |_| Ok(x))?.write().map(Value::Tensor)
}

/// The results of an op; None where there is no definition.
pub(crate) fn call(name: &str, overload: &str, arguments: &[Value]) -> Option<Answer<Vec<Value>>> {
    let a = Arguments(arguments);
    if let Some(found) = question(name, &a) {
        return Some(found.map(|value| vec![value]));
    }
    if let Some(found) = several(name, overload, &a) {
        let value = |array: Array| array.write().map(Value::Tensor);
        return Some(found.and_then(|(arrays, is_list)| {
            let values = arrays.into_iter().map(value).collect::<Answer<Vec<Value>>>()?;
            let list = |values| vec![Value::list(flambeau_base::ir::Type::tensor(), values)];
            Ok(if is_list { list(values) } else { values })
        }));
    }
    let found = one(name, overload, &a)?;
    Some(found.and_then(|array| array.write()).map(|tensor| vec![Value::Tensor(tensor)]))
}

/// What is asked of a tensor.
fn question(name: &str, a: &Arguments<'_>) -> Option<Answer<Value>> {
    let (Some(Value::Tensor(t)), rest) = (a.0.first(), a.0.get(1..)?) else { return None };
    let array = || Array::read(t);
    let item = || match array()?.items.as_slice() {
        [x] => Ok(*x),
        _ => refused("one element is wanted"),
    };
    let sizes = || Ok(array()?.sizes.iter().map(|n| *n as i64).collect::<Vec<i64>>());
    Some(match (name, rest) {
        ("dim", []) => array().map(|a| Value::Int(a.rank() as i64)),
        ("numel", []) => array().map(|a| Value::Int(a.numel() as i64)),
        ("len", []) => array().and_then(|a| match a.sizes.first() {
            Some(n) => Ok(Value::Int(*n as i64)),
            None => refused("a number has no length"),
        }),
        ("size", []) => sizes().map(Value::ints),
        ("size", [Value::Int(dim)]) => {
            sizes().and_then(|sizes| Ok(Value::Int(sizes[crate::array::dimension(*dim, sizes.len())?])))
        }
        ("dtype", []) => Ok(Value::Int(t.dtype().code())),
        ("device", []) => Ok(Value::Device(std::sync::Arc::new(t.device()))),
        ("is_floating_point", []) => Ok(Value::Bool(t.dtype().is_floating())),
        ("is_complex", []) => Ok(Value::Bool(t.dtype().is_complex())),
        ("Bool", []) => item().map(|x| Value::Bool(truth(x))),
        ("Float" | "FloatImplicit", []) => item().map(|x| Value::Float(float(x))),
        ("Int" | "IntImplicit", []) => {
            item().and_then(|x| crate::array::rounded(x, DType::I64)).map(Value::from)
        }
        ("ScalarImplicit", []) => item().map(Value::from),
        _ => return None,
    })
}

/// Ops with several results, or with a list of them (the second of the pair says which).
fn several(name: &str, overload: &str, a: &Arguments<'_>) -> Option<Answer<(Vec<Array>, bool)>> {
    let parts = |run: &dyn Fn() -> Answer<Vec<Array>>| Some(run().map(|parts| (parts, true)));
    match (name, overload) {
        ("max" | "min", "dim") => Some((|| {
            let wanted = if name == "max" { Greater } else { Less };
            let (x, dim, keep) = (a.tensor(0)?, [a.int(1)?], a.flag(2)?);
            let values = reduce::extremes(&x, &dim, keep, wanted)?;
            Ok((vec![values, reduce::places(&x, &dim, keep, wanted)?], false))
        })()),
        ("split", "Tensor") => parts(&|| shape::split_evenly(&a.tensor(0)?, a.int(1)?, a.int(2)?)),
        ("split", "" | "sizes") => parts(&|| shape::split(&a.tensor(0)?, &a.ints(1)?, a.int(2)?)),
        ("chunk", _) => parts(&|| shape::chunk(&a.tensor(0)?, a.int(1)?, a.int(2)?)),
        ("unbind", _) => parts(&|| shape::unbind(&a.tensor(0)?, a.int(1)?)),
        ("ConstantChunk", _) => {
            let run = || shape::chunk(&a.tensor(0)?, a.int(1)?, a.int(2)?);
            Some(run().map(|parts| (parts, false)))
        }
        _ => None,
    }
}

fn one(name: &str, overload: &str, a: &Arguments<'_>) -> Option<Answer<Array>> {
    reduced(name, overload, a)
        .or_else(|| placed(name, a))
        .or_else(|| contracted(name, a))
        .or_else(|| made(name, overload, a))
        .or_else(|| computed(name, overload, a))
}

/// Ops along dimensions.
fn reduced(name: &str, overload: &str, a: &Arguments<'_>) -> Option<Answer<Array>> {
    let run = || -> Answer<Array> {
        let x = a.tensor(0)?;
        match (name, a.len()) {
            ("sum", 2) => reduce::total(&x, &[], false, a.dtype(1)?),
            ("sum", 4) => reduce::total(&x, &a.ints(1)?, a.flag(2)?, a.dtype(3)?),
            ("mean", 2) => reduce::mean(&x, &[], false, a.dtype(1)?),
            ("mean", 4) => reduce::mean(&x, &a.ints(1)?, a.flag(2)?, a.dtype(3)?),
            ("max", 1) => reduce::extremes(&x, &[], false, Greater),
            ("min", 1) => reduce::extremes(&x, &[], false, Less),
            ("amax", 3) => reduce::extremes(&x, &a.ints(1)?, a.flag(2)?, Greater),
            ("amin", 3) => reduce::extremes(&x, &a.ints(1)?, a.flag(2)?, Less),
            ("argmax", 3) => {
                let dims: Vec<i64> = a.optional_int(1)?.into_iter().collect();
                reduce::places(&x, &dims, a.flag(2)?, Greater)
            }
            ("all" | "any", 1) => reduce::truths(&x, &[], false, name == "all"),
            ("all" | "any", 3) if overload == "dim" => {
                reduce::truths(&x, &[a.int(1)?], a.flag(2)?, name == "all")
            }
            ("softmax", 3) => reduce::softmax(&x, a.int(1)?, a.dtype(2)?, false),
            ("log_softmax", 3) => reduce::softmax(&x, a.int(1)?, a.dtype(2)?, true),
            ("layer_norm", 6) => {
                let (weight, bias) = (a.optional(2)?, a.optional(3)?);
                let eps = float(a.number(4)?);
                reduce::layer_norm(&x, &a.ints(1)?, [weight.as_ref(), bias.as_ref()], eps)
            }
            ("batch_norm", 9) => {
                let all = [a.optional(1)?, a.optional(2)?, a.optional(3)?, a.optional(4)?];
                reduce::batch_norm(&x, all.each_ref().map(Option::as_ref), a.flag(5)?, float(a.number(7)?))
            }
            _ => Err(Outside::Unknown),
        }
    };
    let is_elementwise = matches!(name, "max" | "min") && a.len() == 2;
    let names = [
        "sum",
        "mean",
        "max",
        "min",
        "amax",
        "amin",
        "argmax",
        "all",
        "any",
        "softmax",
        "log_softmax",
        "layer_norm",
        "batch_norm",
    ];
    (names.contains(&name) && !is_elementwise).then(run)
}

/// Ops that take elements from other places.
fn placed(name: &str, a: &Arguments<'_>) -> Option<Answer<Array>> {
    let run = |run: &dyn Fn(Array) -> Answer<Array>| Some(a.tensor(0).and_then(run));
    match (name, a.len()) {
        ("t", 1) => run(&|x| match x.rank() {
            0 | 1 => Ok(x),
            2 => shape::transpose(&x, 0, 1),
            _ => refused("a matrix is wanted"),
        }),
        ("transpose", 3) => run(&|x| shape::transpose(&x, a.int(1)?, a.int(2)?)),
        ("permute", 2) => run(&|x| shape::permute(&x, &a.ints(1)?)),
        ("reshape" | "view", 2) => run(&|x| shape::reshape(&x, &a.ints(1)?)),
        ("reshape_as" | "view_as", 2) => run(&|x| x.sized(a.tensor(1)?.sizes)),
        ("flatten", 3) => run(&|x| shape::flatten(&x, a.int(1)?, a.int(2)?)),
        ("unsqueeze", 2) => run(&|x| shape::unsqueeze(&x, a.int(1)?)),
        ("squeeze", 1) => run(&|x| shape::squeeze(&x, &(0..x.rank() as i64).collect::<Vec<_>>())),
        ("squeeze", 2) => run(&|x| shape::squeeze(&x, &a.ints(1)?)),
        ("select", 3) => run(&|x| shape::select(&x, a.int(1)?, a.int(2)?)),
        ("slice", 5) => {
            run(&|x| shape::slice(&x, a.int(1)?, a.optional_int(2)?, a.optional_int(3)?, a.int(4)?))
        }
        ("expand", 3) => run(&|x| shape::expand(&x, &a.ints(1)?)),
        ("expand_as", 2) => run(&|x| {
            let sizes = a.tensor(1)?.sizes;
            shape::expand(&x, &sizes.iter().map(|n| *n as i64).collect::<Vec<_>>())
        }),
        ("repeat", 2) => run(&|x| shape::repeat(&x, &a.ints(1)?)),
        ("flip", 2) => run(&|x| shape::flip(&x, &a.ints(1)?)),
        ("roll", 3) => run(&|x| shape::roll(&x, &a.ints(1)?, &a.ints(2)?)),
        ("tril" | "triu", 2) => run(&|x| shape::triangle(&x, a.int(1)?, name == "tril")),
        ("pad", 4) => run(&|x| match &a.0[2] {
            Value::Str(mode) if &**mode == "constant" => {
                let value = if a.0[3].is_none() { 0.0 } else { float(a.number(3)?) };
                shape::pad(&x, &a.ints(1)?, value)
            }
            _ => Err(Outside::Unknown),
        }),
        ("cat" | "concat", 2) => Some(a.tensors(0).and_then(|parts| shape::cat(&parts, a.int(1)?))),
        ("stack", 2) => Some(a.tensors(0).and_then(|parts| shape::stack(&parts, a.int(1)?))),
        ("masked_fill", 3) => run(&|x| {
            let value = match a.operand(2)? {
                Operand::Number(x) => x,
                Operand::Tensor(t) => match t.items.as_slice() {
                    [x] if t.rank() == 0 => *x,
                    _ => return refused("one value fills"),
                },
            };
            shape::masked_fill(&x, &a.tensor(1)?, value)
        }),
        _ => None,
    }
}

/// Products and convolutions.
fn contracted(name: &str, a: &Arguments<'_>) -> Option<Answer<Array>> {
    let ranks = match name {
        "mm" => Some([2, 2]),
        "bmm" => Some([3, 3]),
        "mv" => Some([2, 1]),
        "dot" => Some([1, 1]),
        _ => None,
    };
    if let Some(ranks) = ranks {
        return Some(a.tensor(0).and_then(|x| contract::of_ranks(&x, &a.tensor(1)?, ranks)));
    }
    let run = || -> Answer<Array> {
        let (x, y) = (a.tensor(0)?, a.tensor(1)?);
        let third = || a.optional(2);
        let added = |ranks| {
            let found = contract::of_ranks(&y, &a.tensor(2)?, ranks)?;
            contract::added(&x, &found, a.number(3)?, a.number(4)?)
        };
        match (name, a.len()) {
            ("matmul", 2) => contract::matmul(&x, &y),
            ("linear", 3) => contract::linear(&x, &y, third()?.as_ref()),
            // In TorchScript this is the sum with a product, which promotes and broadcasts both ways.
            ("addmm", 5) if is_one(&a.number(3)?) && is_one(&a.number(4)?) => {
                let found = Operand::Tensor(contract::of_ranks(&y, &a.tensor(2)?, [2, 2])?);
                let all = [Operand::Tensor(x), found, Operand::Number(Scalar::Int(1))];
                elementwise::call("add", &all).unwrap_or(Err(Outside::Unknown))
            }
            ("addmm", 5) => added([2, 2]),
            ("baddbmm", 5) => added([3, 3]),
            ("addmv", 5) => added([2, 1]),
            ("conv1d" | "conv2d" | "conv3d", 7) => {
                let dims = usize::from(name.as_bytes()[4] - b'0');
                let (stride, padding, dilation) = (a.ints(3)?, a.ints(4)?, a.ints(5)?);
                let groups = a.int(6)?;
                let window = Window { stride: &stride, padding: &padding, dilation: &dilation, groups };
                contract::conv(&x, &y, third()?.as_ref(), &window, dims)
            }
            _ => Err(Outside::Unknown),
        }
    };
    let names = ["matmul", "linear", "addmm", "baddbmm", "addmv", "conv1d", "conv2d", "conv3d"];
    names.contains(&name).then(run)
}

fn is_one(x: &Scalar) -> bool {
    crate::array::complex(*x) == crate::array::complex(Scalar::Int(1))
}

/// Copies, conversions and tensors that are like others.
fn made(name: &str, overload: &str, a: &Arguments<'_>) -> Option<Answer<Array>> {
    let run = || -> Answer<Array> {
        let x = a.tensor(0)?;
        match (name, overload) {
            ("clone" | "contiguous" | "detach", _) => Ok(x),
            ("dropout" | "dropout_" | "feature_dropout" | "feature_dropout_", _) if !a.flag(2)? => {
                let p = float(a.number(1)?);
                if (0.0..=1.0).contains(&p) { Ok(x) } else { refused("no probability") }
            }
            ("type_as", _) | ("to", "other") => x.to(a.tensor(1)?.dtype),
            ("to", "dtype" | "prim_dtype") => x.to(a.dtype(1)?.unwrap_or(x.dtype)),
            ("to", "prim_other") => Ok(x),
            ("zeros_like" | "ones_like", "") => {
                let value = i64::from(name == "ones_like");
                Array::of(a.dtype(1)?.unwrap_or(x.dtype), &x.sizes, |_| Ok(Scalar::Int(value)))
            }
            _ => Err(Outside::Unknown),
        }
    };
    let names = [
        "clone",
        "contiguous",
        "detach",
        "dropout",
        "dropout_",
        "feature_dropout",
        "feature_dropout_",
        "type_as",
        "to",
        "zeros_like",
        "ones_like",
    ];
    names.contains(&name).then(run)
}

/// Elementwise ops; those whose numbers stand in another order than they are computed in are put right.
fn computed(name: &str, overload: &str, a: &Arguments<'_>) -> Option<Answer<Array>> {
    let known = match (name, a.len()) {
        // With one bound alone.
        ("clamp" | "clip", 3) if a.0[1].is_none() != a.0[2].is_none() => {
            let (own, at) = if a.0[2].is_none() { ("clamp_min", 1) } else { ("clamp_max", 2) };
            return Some((|| {
                elementwise::call(own, &[a.operand(0)?, a.operand(at)?]).unwrap_or(Err(Outside::Unknown))
            })());
        }
        // With digits.
        ("round", 2) => return Some(Err(Outside::Unknown)),
        ("div", 3) => {
            let own = match &a.0[2] {
                Value::None => "div",
                Value::Str(mode) if &**mode == "trunc" => "div_trunc",
                Value::Str(mode) if &**mode == "floor" => "div_floor",
                _ => return Some(refused("there is no such rounding")),
            };
            return Some((|| {
                elementwise::call(own, &[a.operand(0)?, a.operand(1)?]).unwrap_or(Err(Outside::Unknown))
            })());
        }
        ("max", 2) => "maximum",
        ("min", 2) => "minimum",
        ("pow", 2) if overload == "Scalar" || overload.starts_with("Tensor") => "pow",
        _ => name,
    };
    let all: Answer<Vec<Operand>> = (0..a.len()).map(|at| a.operand(at)).collect();
    let operands = match all {
        Ok(operands) => operands,
        Err(outside) => return Some(Err(outside)),
    };
    if known == "pow" && has_negative_power(&operands) {
        return Some(refused("an integer to a negative power"));
    }
    elementwise::call(known, &operands)
}

/// Whether integers are to be raised to a negative power that is one number.
fn has_negative_power(operands: &[Operand]) -> bool {
    match (common(operands), operands) {
        (Ok(dtype), [_, Operand::Number(Scalar::Int(n))]) => dtype.is_integral() && *n < 0,
        _ => false,
    }
}
