//! The pass `lower-fusion`: the loops of fusion groups become functions of the module, kernels of the `loop` dialect.
//!
//! A kernel is made for what is known of a group's inputs, so that dtype, sizes and strides of all of them must be known:
//! from their types, or from the types of the function's inputs by inference.
//! The group stays, as its work op by op is what sizes that were not foreseen need; its attribute `kernels` names the
//! functions in the order in which they run ([`record`]), and they are what runs. A group that stays without says why in its attribute `not_lowered`.

use super::record::{is_lowered, made_for, record};
use super::{GroupProgram, InputSig, Plan, Target, lower};
use crate::diag::{Diagnostic, Result};
use crate::dialects::shapes::{Known, layouts};
use crate::dialects::{NOT_LOWERED, Registry, fusion};
use crate::ir::{Attr, Function, Graph, Module, OpId, Symbol, Type, TypeKind, derived_schema};
use crate::passes::{Context, Pass, PassOption, inferred_type, known_values};
use crate::tensor::Layout;

/// The pass, for the table of a toolkit.
pub const PASS: Pass = Pass::module(
    "lower-fusion",
    "Adds the loops of fusion groups to the module, as functions, where the sizes of their inputs are known",
    run,
)
.options(&[PassOption::choice("target", &["cpu", "gpu"], "the machine that loops are arranged for")]);

/// The kernels of a group for inputs of these dtypes and layouts, one a launch.
pub fn kernels(
    group: &Graph,
    inputs: &[InputSig],
    layouts: &[Option<Layout>],
    registry: &Registry,
    target: Target,
) -> Result<Vec<Graph>> {
    let group = GroupProgram::new(group, inputs, registry)?;
    let plan = Plan::new(&group, layouts)?;
    plan.parts.iter().map(|part| lower(&part.nest(&group), target)).collect()
}

fn run(module: &mut Module, context: &Context<'_>) -> Result<bool> {
    let target = if context.text("target")? == "gpu" { Target::Gpu } else { Target::Cpu };
    let mut made: Vec<Function> = Vec::new();
    let mut changed = false;
    for (name, function) in &mut module.functions {
        let graph = &mut function.graph;
        let groups: Vec<OpId> =
            graph.all_ops().into_iter().filter(|op| fusion::is_group(graph.kind(*op))).collect();
        if groups.iter().all(|op| is_lowered(graph, *op)) {
            continue;
        }
        let types = known_values(graph, context);
        for (n, op) in groups.into_iter().enumerate() {
            if is_lowered(graph, op) {
                continue;
            }
            if !context.step(|| format!("lowers {}", graph.op_line(op).trim())) {
                break;
            }
            changed = true;
            match loops_of(graph, op, &types, context.registry, target) {
                Ok(done) => made.extend(named(graph, op, &prefix(*name, n), done)),
                Err(error) => {
                    context.count("groups not lowered", 1);
                    graph.set_attr(op, NOT_LOWERED, Attr::Str(error.message().into()));
                }
            }
        }
    }
    for function in made {
        if module.functions.contains_key(&function.name) {
            return Err(Diagnostic::input(format!("there is a function {} already", function.name)));
        }
        module.functions.insert(function.name, function);
    }
    Ok(changed)
}

/// Kernels, and what they were made for.
type Done = (Vec<Graph>, Vec<String>);

fn loops_of(graph: &Graph, op: OpId, types: &[Known], registry: &Registry, target: Target) -> Result<Done> {
    let body = fusion::subgraph(graph, op).ok_or_else(|| Diagnostic::verify("a group without a subgraph"))?;
    let mut inputs = Vec::new();
    let mut layouts = Vec::new();
    for (inner, outer) in body.inputs().iter().zip(graph.operands(op)) {
        // The group's graph may know less than the place where it stands.
        let (input, layout) =
            known(&inferred_type(graph, types, *outer)).or_else(|| known(body.ty(*inner))).ok_or_else(|| {
                let name = graph.display_name(*outer);
                Diagnostic::unsupported(format!(
                    "dtype, sizes and strides of %{name} are not known (--input gives those of arguments, the pass freeze those of weights)"
                ))
            })?;
        inputs.push(input);
        layouts.push(layout);
    }
    let group = GroupProgram::new(body, &inputs, registry)?;
    let plan = Plan::new(&group, &layouts)?;
    let kernels = plan.parts.iter().map(|part| lower(&part.nest(&group), target)).collect::<Result<_>>()?;
    Ok((kernels, made_for(target, &inputs, &plan.parts)))
}

/// What is known of an input from its type, if it is enough.
pub fn known(ty: &Type) -> Option<(InputSig, Option<Layout>)> {
    Some(match ty.kind() {
        TypeKind::Int => (InputSig::Int, None),
        TypeKind::Float => (InputSig::Float, None),
        TypeKind::Bool => (InputSig::Bool, None),
        TypeKind::Tensor(t) => {
            let sizes = t.sizes.as_ref()?.iter().map(|dim| dim.known()).collect::<Option<Vec<i64>>>()?;
            let strides = layouts::known_strides(t)?;
            let layout = Layout::strided(&sizes, &strides, 0).ok()?;
            (InputSig::Tensor(t.dtype?, !sizes.is_empty()), Some(layout))
        }
        _ => return None,
    })
}

/// What names of a group's kernels begin with. Graphs of text may be without a name.
fn prefix(function: Symbol, group: usize) -> String {
    if function.as_str().is_empty() { format!("group{group}") } else { format!("{function}.group{group}") }
}

/// The kernels as functions, named by the group.
fn named(graph: &mut Graph, op: OpId, prefix: &str, (kernels, made_for): Done) -> Vec<Function> {
    let names: Vec<Symbol> =
        (0..kernels.len()).map(|n| Symbol::new(&format!("{prefix}.kernel{n}"))).collect();
    record(graph, op, &names, &made_for);
    graph.remove_attr(op, NOT_LOWERED);
    let function = |(name, graph): (Symbol, Graph)| Function {
        name,
        schema: derived_schema(name, &graph),
        graph,
        span: None,
    };
    names.into_iter().zip(kernels).map(function).collect()
}
