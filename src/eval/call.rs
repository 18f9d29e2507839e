//! Runs one op on values: by its kernel, its scalar program or its meaning, in whatever form of its row.

use super::audit::Audit;
use crate::diag::{Diagnostic, Result};
use crate::dialects::constraint::{Law, Parameter, ParameterKind};
use crate::dialects::{Args, Fact, Family, Node, Op, Outputs, Run, Variant, one};
use crate::ir::{Attr, Type, TypeKind};
use crate::tensor::overlap::{refuse_any_overlap, refuse_partial_overlap};
use crate::tensor::{DType, Tensor};
use crate::value::{List, Value};
use std::sync::Arc;

/// Runs an op on arguments in schema order, defaults filled in. Plain forms give fresh results (views alias
/// their operand); in-place forms write to their first argument and `out` forms to their last.
pub fn call(op: &Op, values: &[Value], node: Node<'_>, run: &Run) -> Result<Outputs> {
    // Containers are not searched: a loop that appends to a list would take quadratic time.
    let searched = op.def().family != Family::Container;
    let followed = searched && run.grad_enabled();
    if followed && let Some(autograd) = run.autograd() {
        if values.iter().any(requires_grad) {
            return autograd.call(op, values, node, run, &|values| computed(op, values, node, run));
        }
        let results = computed(op, values, node, run)?;
        if op.def().family == Family::View {
            autograd.link_views(op, values, &results);
        }
        return Ok(results);
    }
    let recorded = followed && values.iter().any(requires_grad);
    if recorded {
        check_leaves(op, values)?;
    }
    let results = computed(op, values, node, run)?;
    let flows =
        !matches!(op.def().family, Family::Create | Family::Host | Family::Container | Family::Control);
    if recorded && flows && !op.def().facts.contains(&Fact::Detached) {
        for result in &results {
            mark_recorded(result, values);
        }
    }
    Ok(results)
}

/// Runs an op without recording it.
fn computed(op: &Op, values: &[Value], node: Node<'_>, run: &Run) -> Result<Outputs> {
    // Declarations of dialect files are not trusted: builds with debug assertions always check.
    let doubted = cfg!(debug_assertions) && op.def().declared;
    let audit = (doubted || run.audits()).then(|| Audit::begin(values));
    refuse_rare(op, values)?;
    let results = dispatch(op, values, node, run)?;
    // Loops are left when the run must end, and containers that grew are charged afterwards: the results may be nonsense.
    run.check()?;
    if let Some(audit) = audit {
        audit.end(op, &results)?;
    }
    Ok(results)
}

fn requires_grad(value: &Value) -> bool {
    match value {
        Value::Tensor(t) => t.requires_grad(),
        Value::List(list) if holds_tensors(list.element_type()) => list.items().iter().any(requires_grad),
        _ => false,
    }
}

fn holds_tensors(element: &Type) -> bool {
    element.is_tensor() || matches!(element.kind(), TypeKind::Optional(inner) if inner.is_tensor())
}

/// The autograd node of a result whose history is not kept: it only says that the tensor is not a leaf.
struct NoLeaf;

/// Results of recorded work also require gradients and are not leaves.
fn mark_recorded(result: &Value, operands: &[Value]) {
    match result {
        Value::Tensor(t) if t.dtype().is_floating() || t.dtype().is_complex() => {
            let unchanged = t.requires_grad() && operands.iter().any(|v| v.is_same(result));
            if !unchanged && t.set_requires_grad(true).is_ok() && t.grad_node().is_none() {
                t.set_grad_node(Some(Arc::new(NoLeaf)));
            }
        }
        Value::List(list) if list.element_type().is_tensor() => {
            list.items().iter().for_each(|item| mark_recorded(item, operands));
        }
        _ => {}
    }
}

/// Leaves that require gradients must not be written while work is recorded: their history would be wrong.
fn check_leaves(op: &Op, values: &[Value]) -> Result<()> {
    if op.def().family == Family::Host || op.def().facts.contains(&Fact::Detached) {
        return Ok(());
    }
    let schema = op.schema()?;
    for (argument, value) in schema.arguments.iter().zip(values) {
        let written = argument.alias.as_ref().is_some_and(|a| a.is_write);
        if let (true, Value::Tensor(t)) = (written, value)
            && t.requires_grad()
            && t.grad_node().is_none()
        {
            return Err(Diagnostic::runtime(
                "a leaf Variable that requires grad is being used in an in-place operation.",
            ));
        }
    }
    Ok(())
}

/// Fails where an op does not take an operand's dtype, of those that few ops take. Elementwise ops see to it themselves.
fn refuse_rare(op: &Op, values: &[Value]) -> Result<()> {
    // Ops that take all of them are not searched: a loop that appends to a list would take quadratic time.
    if [DType::U16, DType::F8E5m2].into_iter().all(|dtype| op.def().takes_rare(dtype)) {
        return Ok(());
    }
    let is_elementwise = op.def().eval.is_none() && op.def().scalar.is_some();
    let refused = |value: &Value| match value {
        Value::Tensor(t) => Some(t.dtype()).filter(|d| d.is_rare() && !op.def().takes_rare(*d)),
        _ => None,
    };
    let found = values.iter().find_map(|value| match value {
        Value::List(list) if list.element_type().is_tensor() => list.items().iter().find_map(refused),
        other => refused(other),
    });
    match found {
        Some(dtype) if !is_elementwise => {
            let name = op.name().as_str().rsplit("::").next().unwrap_or_default().trim_end_matches('_');
            let message = format!("\"{name}_cpu\" not implemented for '{}'", dtype.type_name());
            Err(Diagnostic::raised("NotImplementedError", message))
        }
        _ => Ok(()),
    }
}

fn dispatch(op: &Op, values: &[Value], node: Node<'_>, run: &Run) -> Result<Outputs> {
    if let Some(results) =
        super::quantized::call(op, values, node, run, &|values| dense(op, values, node, run))?
    {
        return Ok(results);
    }
    dense(op, values, node, run)
}

/// Runs an op on tensors that are not quantized, or that its kernel takes as they are.
fn dense(op: &Op, values: &[Value], node: Node<'_>, run: &Run) -> Result<Outputs> {
    if let Some(results) = super::fills::call(op, values, run, &|values| dense(op, values, node, run))? {
        return Ok(results);
    }
    if op.def().eval.is_none() && op.def().scalar.is_some() {
        // Elementwise ops write their own in-place and `out` forms.
        return one(super::elementwise(op, values)?);
    }
    match op.variant() {
        Variant::Plain => plain(op, values, node, run),
        Variant::InPlace => in_place(op, values, node, run),
        Variant::Out => out(op, values, node, run),
    }
}

/// Computes the row's results without writing to any argument (other than what its own kernel writes).
fn plain(op: &Op, values: &[Value], node: Node<'_>, run: &Run) -> Result<Outputs> {
    let def = op.def();
    if let Some(function) = op.function() {
        return function(&Args { op, values, node, run });
    }
    if let Some(kernel) = def.eval {
        return kernel(&Args { op, values, node, run });
    }
    if let Some(text) = def.meaning {
        if def.laws.is_empty() {
            return run.composites(op)?.run(op, text, values, run);
        }
        let values = with_attributes(op, values, node)?;
        return run.composites(op)?.run(op, text, &values, run);
    }
    Err(Diagnostic::unsupported(format!("operator {} is not supported", op.schema_text())))
}

/// The arguments of a meaning: operands, then the attributes that the row declares.
fn with_attributes(op: &Op, values: &[Value], node: Node<'_>) -> Result<Vec<Value>> {
    let mut all = values.to_vec();
    all.extend(attributes(op, node)?);
    Ok(all)
}

/// The values of the attributes that an op's row declares, in order.
pub fn attributes(op: &Op, node: Node<'_>) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    for law in op.def().laws {
        if let Law::Structure(structure) = law {
            all.extend(
                structure
                    .attributes()
                    .iter()
                    .map(|name| structural(op, name, node))
                    .collect::<Result<Vec<_>>>()?,
            );
        }
        let Law::Attribute(parameter) = law else { continue };
        let given = node.attrs.iter().find(|(name, _)| *name == parameter.name).map(|(_, a)| a);
        let attr = given.or(parameter.default.as_ref()).ok_or_else(|| {
            Diagnostic::runtime(format!("{} needs the attribute '{}'", op.name(), parameter.name))
        })?;
        all.push(attribute_value(op, parameter, attr)?);
    }
    Ok(all)
}

/// An integer attribute that the structure of an op demands.
fn structural(op: &Op, name: &str, node: Node<'_>) -> Result<Value> {
    let given =
        node.attrs.iter().find(|(known, _)| known.as_str() == name).and_then(|(_, attr)| attr.as_int());
    given
        .map(Value::Int)
        .ok_or_else(|| Diagnostic::runtime(format!("{} needs the attribute '{name}'", op.name())))
}

fn attribute_value(op: &Op, parameter: &Parameter, attr: &Attr) -> Result<Value> {
    Ok(match (attr, &parameter.kind) {
        (Attr::Int(x), ParameterKind::Bool) => Value::Bool(*x != 0),
        (Attr::Int(x), ParameterKind::Float) => Value::Float(*x as f64),
        (Attr::Int(x), _) => Value::Int(*x),
        (Attr::Float(x), _) => Value::Float(*x),
        (Attr::Bool(x), _) => Value::Bool(*x),
        (Attr::Str(x), _) => Value::str(x.clone()),
        (Attr::Tensor(x), _) => Value::Tensor(x.clone()),
        (Attr::Ints(x), _) => Value::List(List::new(Type::int(), x.iter().map(|x| Value::Int(*x)).collect())),
        (Attr::Floats(x), _) => {
            Value::List(List::new(Type::float(), x.iter().map(|x| Value::Float(*x)).collect()))
        }
        _ => {
            let name = parameter.name;
            return Err(Diagnostic::unsupported(format!("{}: attribute '{name}' as a value", op.name())));
        }
    })
}

/// `x.op_(…)`: computes, checks that the result fits, writes through `x` and returns it.
fn in_place(op: &Op, values: &[Value], node: Node<'_>, run: &Run) -> Result<Outputs> {
    let target = first_tensor(op, values.first())?.clone();
    check_overlap(&target)?;
    if !op.def().apart_unless.is_some_and(|is_free| is_free(values)) {
        check_apart(op, &target, values.get(1..).unwrap_or_default(), 1)?;
    }
    let result = compute(op, values, node, run)?;
    if target.sizes() != result.sizes() {
        return Err(Diagnostic::runtime(format!(
            "output with shape {:?} doesn't match the broadcast shape {:?}",
            target.sizes().as_slice(),
            result.sizes().as_slice()
        )));
    }
    op.def().inplace_rule.check(op.name().as_str(), result.dtype(), target.dtype())?;
    target.copy_from(&result)?;
    one(target)
}

/// `op(…, out=t)`: computes, gives `t` the result's sizes, writes and returns it; of several results each.
fn out(op: &Op, values: &[Value], node: Node<'_>, run: &Run) -> Result<Outputs> {
    let Some(split) = values.len().checked_sub(op.def().outs.len()) else {
        return Err(Diagnostic::internal(format!("{} was called without arguments", op.name())));
    };
    let (values, targets) = values.split_at(split);
    let results = plain(op, values, node, run)?;
    if results.len() != targets.len() {
        let count = results.len();
        return Err(Diagnostic::internal(format!("{} computes {count} tensors", op.schema_text())));
    }
    for (target, result) in targets.iter().zip(&results) {
        let (target, result) = (first_tensor(op, Some(target))?, first_tensor(op, Some(result))?);
        op.def().out_rule.check(op.name().as_str(), result.dtype(), target.dtype())?;
        resize(target, &result.sizes(), run)?;
        check_overlap(target)?;
        check_apart(op, target, values, 0)?;
        target.copy_from(result)?;
    }
    Ok(targets.iter().cloned().collect())
}

/// Fails where an op may not write memory that it reads; `values` begin with argument `first`.
fn check_apart(op: &Op, target: &Tensor, values: &[Value], first: usize) -> Result<()> {
    let Some(wholly) = op.def().apart else { return Ok(()) };
    let target = target.snapshot();
    for (at, value) in values.iter().enumerate() {
        let refuse = if wholly.contains(&(at + first)) { refuse_any_overlap } else { refuse_partial_overlap };
        match value {
            Value::Tensor(read) => refuse(&target, &read.snapshot())?,
            Value::List(list) => {
                for item in list.items().iter() {
                    let Value::Tensor(read) = item else { continue };
                    refuse(&target, &read.snapshot())?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// The one tensor that the row computes.
fn compute(op: &Op, values: &[Value], node: Node<'_>, run: &Run) -> Result<Tensor> {
    let outputs = plain(op, values, node, run)?;
    match outputs.first() {
        Some(Value::Tensor(t)) if outputs.len() == 1 => Ok(t.clone()),
        _ => Err(Diagnostic::internal(format!("{} does not compute one tensor", op.schema_text()))),
    }
}

fn first_tensor<'a>(op: &Op, value: Option<&'a Value>) -> Result<&'a Tensor> {
    value
        .ok_or_else(|| Diagnostic::internal(format!("{} was called without arguments", op.name())))?
        .to_tensor()
}

/// Fails if writing to the tensor would write one element twice.
pub fn check_overlap(target: &Tensor) -> Result<()> {
    target.layout().refuse_overlap()
}

/// Gives an `out` tensor other sizes as [`Tensor::give_sizes`] does. Warns, as PyTorch does, where it already had elements.
pub fn resize(target: &Tensor, sizes: &[i64], run: &Run) -> Result<()> {
    if target.numel() > 0 && *target.sizes() != *sizes {
        run.warn(format!(
            "An output with one or more elements was resized since it had shape {:?}, which does not match the \
             required output shape {sizes:?}.",
            target.sizes().as_slice()
        ))?;
    }
    target.give_sizes(sizes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::{Fact, OutRule, Registry};
    use crate::ir::{Argument, TypeKind};
    use crate::tensor::{Scalar, view};
    use std::time::{Duration, Instant};

    #[test]
    fn casts_go_up_the_kinds_only() {
        let message = |from, to| OutRule::Cast.check("", from, to).err().map(|d| d.message().to_string());
        assert_eq!(
            message(DType::F32, DType::I64).as_deref(),
            Some("result type Float can't be cast to the desired output type Long")
        );
        assert!(message(DType::I64, DType::Bool).is_some());
        assert!(message(DType::C64, DType::F32).is_some());
        assert!(message(DType::F64, DType::F16).is_none());
        assert!(message(DType::Bool, DType::I32).is_none());
    }

    #[test]
    fn out_tensors_are_resized_with_a_warning() {
        let run = Run::default();
        let t = Tensor::zeros(DType::F32, &[2]).expect("small");
        resize(&t, &[3, 2], &run).expect("grows");
        assert_eq!(t.sizes().as_slice(), [3, 2]);
        assert_eq!(run.take_warnings().len(), 1);
        resize(&t, &[1], &run).expect("shrinks");
        assert_eq!(t.numel(), 1);
    }

    /// An op of containers takes the same time however many tensors there are: none is examined.
    #[test]
    fn containers_are_not_searched() {
        let registry = Registry::builtin();
        let append = registry.find("aten::append", "t").expect("a row");
        let tensor = Value::Tensor(Tensor::zeros(DType::F32, &[1]).expect("small"));
        let list = Value::list(Type::tensor(), vec![tensor.clone(); 200_000]);
        let (run, start) = (Run::silent(), Instant::now());
        for _ in 0..2_000 {
            call(append, &[list.clone(), tensor.clone()], Node::default(), &run).expect("appends");
        }
        assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    }

    /// Something for an argument that has to be given.
    fn some(argument: &Argument) -> Value {
        match argument.ty.kind() {
            _ if argument.default.is_some() || matches!(argument.ty.kind(), TypeKind::Optional(_)) => {
                Value::None
            }
            TypeKind::List(_) if argument.name == "stride" => Value::ints([3, 1]),
            TypeKind::List(_) => Value::ints([2, 3]),
            TypeKind::Float => Value::Float(0.5),
            _ if argument.name == "low" => Value::Int(1),
            _ => Value::Int(4),
        }
    }

    #[test]
    fn ops_that_make_tensors_like_their_first_operand_look_at_its_form_alone() {
        let node = Node { attrs: &[], result_types: &[] };
        let registry = Registry::builtin();
        let rows: Vec<&Op> =
            registry.iter().filter(|row| row.def().facts.contains(&Fact::LikeFirst)).collect();
        assert!(rows.len() >= 15);
        for row in rows {
            let answer = |content: f64| {
                let like = Tensor::full(DType::F32, &[3, 2], Scalar::Float(content)).expect("small");
                let turned = view::transpose(&like.layout(), 0, 1).expect("of two dimensions");
                let like = like.with_layout(turned).expect("the same elements");
                let schema = row.schema().expect("reads");
                let values: Vec<Value> = std::iter::once(Value::Tensor(like))
                    .chain(schema.arguments.iter().skip(1).map(some))
                    .collect();
                let run = Run::silent();
                run.seed(0);
                let made =
                    call(row, &values, node, &run).unwrap_or_else(|e| panic!("{}: {e:?}", row.full_name()));
                let made = made[0].to_tensor().expect("a tensor").clone();
                (made.sizes(), made.strides(), made.to_vec_as::<f64>().expect("real"))
            };
            assert_eq!(answer(1.0), answer(f64::NAN), "{} looks at elements", row.full_name());
        }
    }
}
