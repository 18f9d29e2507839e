//! Compares what an op really aliases and writes with the alias marks of its schema, and what it gives with what its row
//! infers from the types of its arguments. Passes trust both, so a mark that is missing or a type that is wrong is a bug
//! even where every answer is right. Runs only where a run asks for it.

use crate::diag::{Diagnostic, Result};
use crate::dialects::shapes::{self, Known, Operands, Trials};
use crate::dialects::{Fact, Family, Op, Outputs};
use crate::ir::{AliasInfo, Argument};
use crate::tensor::{Layout, Tensor};
use crate::value::Value;
use std::cell::Cell;
use std::hash::{DefaultHasher, Hash, Hasher};

/// A tensor among the arguments as it was before the call.
struct Before {
    argument: usize,
    tensor: Tensor,
    layout: Layout,
    contents: Option<u64>,
}

/// The arguments of a call before it runs.
pub(super) struct Audit {
    tensors: Vec<Before>,
    /// What types say of the arguments.
    known: Vec<Known>,
}

impl Audit {
    /// Remembers the tensors among the arguments.
    pub(super) fn begin(values: &[Value]) -> Audit {
        let mut seen = Vec::new();
        for (argument, value) in values.iter().enumerate() {
            each_tensor(value, &mut |tensor| {
                seen.push(Before {
                    argument,
                    tensor: tensor.clone(),
                    layout: tensor.layout(),
                    contents: contents(tensor),
                });
            });
        }
        Audit { tensors: seen, known: values.iter().map(Known::of_value).collect() }
    }

    /// Fails, naming op and argument, if the call wrote or aliased what the schema does not mark, or gave what the row says it
    /// does not give.
    pub(super) fn end(self, op: &Op, results: &Outputs) -> Result<()> {
        if matches!(op.def().family, Family::Host | Family::Container | Family::Control) {
            return Ok(());
        }
        let schema = op.marked_schema()?;
        let name = |n: usize| schema.arguments.get(n).map_or("", |a| a.name.as_str());
        let mark = |n: usize| schema.arguments.get(n).and_then(alias);
        let written = |n: usize| mark(n).is_some_and(|m| m.is_write);
        for before in &self.tensors {
            let shared =
                self.tensors.iter().any(|o| written(o.argument) && same_memory(&o.tensor, &before.tensor));
            if shared || written(before.argument) {
                continue;
            }
            if before.tensor.layout() != before.layout || contents(&before.tensor) != before.contents {
                return Err(violation(
                    op,
                    format!("writes to '{}', which has no mark !", name(before.argument)),
                ));
            }
        }
        for (n, result) in results.iter().enumerate() {
            let own = schema.returns.get(n).and_then(alias);
            let mut found = None;
            each_tensor(result, &mut |tensor| {
                for before in self.tensors.iter().filter(|b| same_memory(&b.tensor, tensor)) {
                    let allowed = meets(own, mark(before.argument))
                        || self
                            .tensors
                            .iter()
                            .any(|o| same_memory(&o.tensor, tensor) && meets(own, mark(o.argument)));
                    if !allowed {
                        found = Some(before.argument);
                    }
                }
            });
            if let Some(argument) = found {
                let text = format!("result {n} shares memory with '{}', which no mark says", name(argument));
                return Err(violation(op, text));
            }
            if own.is_some_and(|m| m.is_write) {
                let mut given = false;
                each_tensor(result, &mut |t| given |= self.tensors.iter().any(|b| b.tensor.same(t)));
                if !given && matches!(result, Value::Tensor(_)) {
                    return Err(violation(op, format!("result {n} is not the tensor it wrote")));
                }
            }
        }
        layouts(op, results)?;
        self.types(op, results)
    }

    fn types(&self, op: &Op, results: &Outputs) -> Result<()> {
        // Symbols of sizes that nothing says are new ones each time.
        let symbols = Cell::new(-1);
        for trials in [Trials::Small, Trials::Never] {
            let call = Operands { trials, ..Operands::new(op, &self.known, &symbols) };
            let known = shapes::infer(&call).unwrap_or_default();
            for (n, (known, result)) in known.iter().zip(results.iter()).enumerate() {
                if let Some(how) = known.contradiction(result) {
                    let text = format!(
                        "result {n} {how}, as its row infers (trials: {trials:?}) from {:?}",
                        self.known
                    );
                    return Err(violation(op, text));
                }
            }
        }
        Ok(())
    }
}

/// Fails where the row says in what order results lie, and they do not.
fn layouts(op: &Op, results: &Outputs) -> Result<()> {
    if !op.def().facts.contains(&Fact::RowMajor) {
        return Ok(());
    }
    let mut apart = None;
    for (n, result) in results.iter().enumerate() {
        each_tensor(result, &mut |tensor| {
            if !tensor.layout().is_contiguous() {
                apart = Some(n);
            }
        });
    }
    match apart {
        Some(n) => {
            Err(violation(op, format!("gives result {n} that is not row-major, as a fact of its row says")))
        }
        None => Ok(()),
    }
}

fn violation(op: &Op, what: String) -> Diagnostic {
    let message = format!("{} {what}", op.schema_text());
    if op.def().declared {
        return Diagnostic::verify(message).hint("mark it in the schema of the dialect file");
    }
    Diagnostic::internal(message)
}

/// The mark of an argument or of its elements.
fn alias(argument: &Argument) -> Option<&AliasInfo> {
    let own = argument.alias.as_ref()?;
    own.contained
        .iter()
        .flatten()
        .next()
        .filter(|_| own.before.is_empty() && !own.wildcard_after)
        .or(Some(own))
}

/// Whether a result may be (part of) an argument.
fn meets(result: Option<&AliasInfo>, argument: Option<&AliasInfo>) -> bool {
    let Some(result) = result else { return false };
    // A result that may be anything may be an argument without a mark.
    let Some(argument) = argument else { return result.wildcard_after };
    result.wildcard_after
        || argument.wildcard_after
        || result
            .after
            .iter()
            .chain(&result.before)
            .any(|s| argument.after.contains(s) || argument.before.contains(s))
}

fn each_tensor(value: &Value, visit: &mut dyn FnMut(&Tensor)) {
    match value {
        Value::Tensor(t) => visit(t),
        Value::List(list) => list.items().iter().for_each(|item| each_tensor(item, visit)),
        _ => {}
    }
}

fn same_memory(a: &Tensor, b: &Tensor) -> bool {
    a.storage().same(&b.storage()) && a.numel() > 0 && b.numel() > 0
}

fn contents(tensor: &Tensor) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    tensor.to_bytes().ok()?.hash(&mut hasher);
    Some(hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::{Registry, one};
    use crate::tensor::DType;

    #[test]
    fn writes_and_aliases_without_marks_are_found() {
        let registry = Registry::builtin();
        let add = registry.find("aten::add", "Tensor").expect("a row");
        let t = Tensor::zeros(DType::F32, &[2]).expect("small");
        let values = [Value::Tensor(t.clone()), Value::Tensor(t.copy().expect("small")), Value::Int(1)];
        let aliased = one(t.clone()).expect("one");
        assert!(Audit::begin(&values).end(add, &aliased).is_err());
        let fresh = one(t.copy().expect("small")).expect("one");
        assert!(Audit::begin(&values).end(add, &fresh).is_ok());
        let audit = Audit::begin(&values);
        t.fill(crate::tensor::Scalar::Int(1)).expect("writes");
        assert!(audit.end(add, &fresh).is_err());
    }

    /// What rows say of strides is what kernels give, of images that lie in every way and are known to.
    #[test]
    fn results_lie_as_rows_say() {
        let registry = Registry::builtin();
        let lying = |sizes: &[i64], strides: &[i64]| {
            let whole = Tensor::zeros(DType::F32, &[4096]).expect("small");
            let layout = Layout::strided(sizes, strides, 3).expect("valid");
            Value::Tensor(whole.with_layout(layout).expect("inside"))
        };
        let images = [
            lying(&[2, 4, 3, 5], &[60, 15, 5, 1]),
            lying(&[2, 4, 3, 5], &[60, 1, 20, 4]),
            lying(&[1, 4, 3, 5], &[4, 1, 20, 4]),
            lying(&[1, 4, 3, 5], &[60, 1, 20, 4]),
            lying(&[2, 4, 3, 5], &[120, 1, 40, 8]),
            lying(&[2, 4, 3, 5], &[4, 1, 8, 24]),
            lying(&[2, 4, 3, 5], &[200, 25, 7, 1]),
            lying(&[1, 4, 1, 1], &[4, 1, 4, 4]),
            lying(&[2, 4, 1, 1], &[4, 1, 1, 1]),
        ];
        let weights = [lying(&[4, 4, 1, 1], &[4, 1, 1, 1]), lying(&[4, 4, 1, 1], &[4, 1, 4, 4])];
        let (none, ones, vector) = (Value::None, Value::ints([1, 1]), lying(&[4], &[1]));
        let mut wrong = Vec::new();
        let mut check = |name: &str, overload: &str, values: Vec<Value>| {
            let op = registry.find(name, overload).expect("a row");
            let run = crate::dialects::Run::silent();
            let (known, symbols) = (values.iter().map(Known::of_value).collect::<Vec<_>>(), Cell::new(-1));
            let call = Operands::new(op, &known, &symbols);
            let known = shapes::infer(&call).unwrap_or_default();
            let given = crate::eval::call(op, &values, crate::dialects::Node::default(), &run).expect("runs");
            let (Some(Known::Tensor(known)), Some(Value::Tensor(given))) = (known.first(), given.first())
            else {
                wrong.push(format!("{name}: nothing is known"));
                return;
            };
            if known.strides != Some(shapes::layouts::strides(&given.strides())) {
                wrong.push(format!(
                    "{name} of {:?}: {:?}, not {:?}",
                    call.values[0],
                    known.strides,
                    given.strides()
                ));
            }
        };
        let ints = |n: &[i64]| Value::ints(n.iter().copied());
        for image in &images {
            let image = || image.clone();
            for weight in &weights {
                let zeros = ints(&[0, 0]);
                check(
                    "aten::conv2d",
                    "",
                    vec![
                        image(),
                        weight.clone(),
                        none.clone(),
                        ones.clone(),
                        zeros,
                        ones.clone(),
                        Value::Int(1),
                    ],
                );
            }
            let norm = [
                vec![image()],
                vec![vector.clone(); 4],
                vec![false.into(), 0.1.into(), 1e-5.into(), false.into()],
            ];
            check("aten::batch_norm", "", norm.concat());
            check(
                "aten::group_norm",
                "",
                vec![image(), Value::Int(2), none.clone(), none.clone(), 1e-5.into(), false.into()],
            );
            let window =
                [vec![image(), ones.clone(), ones.clone(), ints(&[0, 0])], vec![ones.clone(), false.into()]];
            check("aten::max_pool2d", "", window.concat());
            check("aten::adaptive_avg_pool2d", "", vec![image(), ones.clone()]);
            check("aten::relu", "", vec![image()]);
            check("aten::add", "Scalar", vec![image(), Value::Int(1), Value::Int(1)]);
            for other in &images {
                if other.to_tensor().expect("a tensor").sizes()
                    == image().to_tensor().expect("a tensor").sizes()
                {
                    check("aten::add", "Tensor", vec![image(), other.clone(), Value::Int(1)]);
                    let list = Value::list(crate::ir::Type::tensor(), vec![image(), other.clone()]);
                    check("aten::cat", "", vec![list, Value::Int(1)]);
                }
            }
            check(
                "aten::slice",
                "Tensor",
                vec![image(), Value::Int(1), Value::Int(1), Value::Int(3), Value::Int(2)],
            );
            check("aten::select", "int", vec![image(), Value::Int(1), Value::Int(1)]);
            check("aten::unsqueeze", "", vec![image(), Value::Int(2)]);
            check("aten::permute", "", vec![image(), ints(&[0, 2, 3, 1])]);
            check("aten::reshape", "", vec![image(), ints(&[-1, 2])]);
            check("aten::expand", "", vec![image(), ints(&[3, -1, -1, -1, -1]), false.into()]);
            for format in [Value::None, Value::Int(0), Value::Int(1), Value::Int(2)] {
                let options = vec![Value::None; 4];
                check(
                    "aten::zeros_like",
                    "",
                    [vec![image()], options.clone(), vec![format.clone()]].concat(),
                );
                check("aten::randn_like", "", [vec![image()], options, vec![format.clone()]].concat());
                for copy in [false, true] {
                    // Of what has gaps a copy is made in an order that no rule determines.
                    let gaps =
                        !crate::tensor::pointwise::is_dense(&image().to_tensor().expect("a tensor").layout());
                    if !(gaps && copy && matches!(format, Value::None | Value::Int(1))) {
                        check(
                            "aten::to",
                            "dtype",
                            vec![image(), Value::Int(6), false.into(), copy.into(), format.clone()],
                        );
                    }
                }
            }
        }
        assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    }
}
