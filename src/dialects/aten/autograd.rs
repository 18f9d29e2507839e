//! Gradients asked for inside programs: `torch.autograd.grad`, `backward`.

use crate::diag::{Diagnostic, Result};
use crate::dialects::{Args, Effects, Fact, Gradients, OpDef, Outputs, host, one};
use crate::ir::Type;
use crate::tensor::Tensor;
use crate::value::Value;
use smallvec::SmallVec;

/// The rows.
pub static OPS: &[OpDef] = &[
    host(
        "aten::grad(Tensor[] outputs, Tensor[] inputs, Tensor?[]? grad_outputs=None, bool? retain_graph=None, \
         bool create_graph=False, bool allow_unused=False) -> Tensor?[]",
        grad,
    )
    .effects(Effects::READS_WORLD)
    .facts(&[Fact::Autograd])
    .doc("the gradients of outputs by inputs"),
    host(
        "aten::backward(Tensor self, Tensor? gradient=None, bool? retain_graph=None, bool create_graph=False) -> ()",
        |a| backward(a, vec![a.tensor(0)?.clone()], vec![a.opt_tensor(1)?.cloned()]),
    )
    .effects(Effects::WRITES_WORLD)
    .facts(&[Fact::Autograd])
    .doc("adds the gradient by every leaf to its `grad`"),
    host(
        "aten::backward.TensorList(Tensor[] tensors, Tensor?[]? grad_tensors=None, bool? retain_graph=None, \
         bool create_graph=False) -> ()",
        |a| backward(a, a.tensors(0)?, given(a, 1)?),
    )
    .effects(Effects::WRITES_WORLD)
    .facts(&[Fact::Autograd])
    .doc("adds the gradients by every leaf to its `grad`"),
    host("aten::output_nr(Tensor self) -> int", |a| {
        let tensor = a.tensor(0)?;
        let number = a.run.autograd().map(|autograd| autograd.output_number(tensor, a.run)).transpose()?;
        one(number.unwrap_or(0) as i64)
    })
    .doc("which output of its operation the tensor is; 0 for a leaf"),
    host("aten::retain_grad(Tensor(a!) self) -> ()", |a| {
        let autograd = a.run.autograd();
        let autograd = autograd.ok_or_else(|| Diagnostic::unsupported("keeping gradients here"))?;
        autograd.retain(a.tensor(0)?, a.run)?;
        Ok(SmallVec::new())
    })
    .effects(Effects::WRITES_WORLD)
    .doc("keeps the gradient of a tensor that is not a leaf in its `grad`"),
    host("aten::retains_grad(Tensor self) -> bool", |a| {
        let tensor = a.tensor(0)?;
        one(a.run.autograd().is_some_and(|autograd| autograd.retains(tensor)))
    })
    .effects(Effects::READS_WORLD)
    .doc("whether a tensor that is not a leaf keeps its gradient"),
];

fn given(args: &Args<'_>, n: usize) -> Result<Vec<Option<Tensor>>> {
    if args.value(n)?.is_none() { Ok(Vec::new()) } else { args.opt_tensors(n) }
}

fn run(args: &Args<'_>, wanted: &Gradients) -> Result<Vec<Option<Tensor>>> {
    match args.run.autograd() {
        Some(autograd) => autograd.gradients(wanted, args.run),
        None => Err(Diagnostic::unsupported("computing gradients here")),
    }
}

fn grad(args: &Args<'_>) -> Result<Outputs> {
    let create = args.bool(4)?;
    let found = run(
        args,
        &Gradients {
            outputs: args.tensors(0)?,
            cotangents: given(args, 2)?,
            inputs: Some(args.tensors(1)?),
            keep: args.opt_bool(3)?.unwrap_or(create),
            create,
            allow_unused: args.bool(5)?,
        },
    )?;
    let found = found.into_iter().map(|gradient| gradient.map_or(Value::None, Value::Tensor)).collect();
    one(Value::list(Type::optional(Type::tensor()), found))
}

fn backward(args: &Args<'_>, outputs: Vec<Tensor>, cotangents: Vec<Option<Tensor>>) -> Result<Outputs> {
    let create = args.bool(3)?;
    let keep = args.opt_bool(2)?.unwrap_or(create);
    run(args, &Gradients { outputs, cotangents, inputs: None, keep, create, allow_unused: true })?;
    Ok(SmallVec::new())
}
