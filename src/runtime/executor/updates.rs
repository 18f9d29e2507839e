//! Plans of calls that write to their arguments: an optimizer's step, a running mean. The plan computes what the arguments become,
//! and writes it at its end, which fusion makes one of with the computing (`functionalize`, `fuse-copies`). So where such a call raises, it
//! has written nothing.
//!
//! That is what the program does only where no other argument shares the memory of one that is written to: each call asks.

use super::subject::Subject;
use crate::analysis::facts;
use crate::dialects::fusion;
use crate::ir::{Graph, OpId, ValueDef, ValueId};
use crate::tensor::Tensor;
use crate::value::Value;

/// The name of the pipeline of such plans.
pub(super) const PIPELINE: &str = "update-plan";

/// Which arguments a plan writes to, and what else it reads.
pub(super) struct Updates {
    /// By place.
    written: Vec<usize>,
    /// Tensors with dimensions that the graph has as constants.
    constants: Vec<Tensor>,
}

/// Whether a call may be planned so: its arguments determine all that they share, and something may write to one of them.
pub(super) fn may_update(subject: &Subject<'_>) -> bool {
    let plain = |value: &Value| match value {
        Value::Tensor(tensor) => tensor.is_plain(),
        Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Str(_) | Value::None => true,
        _ => false,
    };
    let (registry, graph) = (subject.context.registry, &subject.function.graph);
    subject.instance.is_none()
        && subject.arguments.iter().all(plain)
        && graph.all_ops().into_iter().any(|op| facts(registry, graph, op).writes)
}

/// What an op copies to.
fn copied_to(graph: &Graph, op: OpId) -> Vec<ValueId> {
    if graph.kind(op) == fusion::COPY {
        return graph.operand(op, 0).into_iter().collect();
    }
    let Some(body) = fusion::subgraph(graph, op) else { return Vec::new() };
    let copies = body.block_ops(body.root()).filter(|inner| body.kind(*inner) == fusion::COPY);
    let input = |inner: OpId| {
        let target = body.operand(inner, 0)?;
        let place = body.inputs().iter().position(|input| *input == target)?;
        graph.operand(op, place)
    };
    copies.filter_map(input).collect()
}

impl Updates {
    /// The arguments that a plan's graph copies results to, itself or in a group; `constants` are the tensors that it has besides.
    pub(super) fn of(graph: &Graph, constants: Vec<Tensor>) -> Updates {
        let argument = |value: ValueId| match graph.def(value) {
            ValueDef::Param(block, n) if block == graph.root() => Some(n),
            _ => None,
        };
        let copies = graph.block_ops(graph.root()).flat_map(|op| copied_to(graph, op));
        let mut written: Vec<usize> = copies.filter_map(argument).collect();
        written.sort_unstable();
        written.dedup();
        let constants = constants.into_iter().filter(|tensor| tensor.rank() > 0).collect();
        Updates { written, constants }
    }

    /// Whether what a call writes to shares memory with nothing else that it reads.
    pub(super) fn takes(&self, arguments: &[Value]) -> bool {
        let storage = |value: &Value| match value {
            Value::Tensor(tensor) => Some(tensor.storage()),
            _ => None,
        };
        self.written.iter().all(|n| {
            let Some(own) = arguments.get(*n).and_then(storage) else { return true };
            let others = arguments.iter().enumerate().filter(|(m, _)| m != n);
            let others = others.filter_map(|(_, value)| storage(value));
            !others.chain(self.constants.iter().map(Tensor::storage)).any(|other| other.overlaps(&own))
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::diag::Source;
    use crate::dialects::{Registry, Run};
    use crate::frontend::script::compile_source;
    use crate::runtime::Program;
    use crate::tensor::Tensor;
    use crate::tensor::view::{narrow, transpose};
    use crate::value::Value;

    const SOURCE: &str = "def f(m: Tensor, p: Tensor, g: Tensor, rate: float) -> Tensor:
    m.mul_(0.5).add_(g)
    p.add_(m, alpha=-rate)
    return p + g
";

    fn program() -> Program {
        let module = compile_source(&Registry::builtin(), &Source::new("test.py", SOURCE)).expect("compiles");
        Program::new(module)
    }

    fn numbers(sizes: &[i64], from: i64) -> Tensor {
        let count = sizes.iter().product::<i64>();
        let values: Vec<f32> = (from..from + count).map(|n| n as f32 / 8.0).collect();
        Tensor::from_vec(&values, sizes).expect("small")
    }

    /// What a call gives, and what its arguments are afterwards.
    fn call(program: &Program, tensors: &[Tensor; 3], run: &Run) -> Vec<Vec<f32>> {
        let mut values: Vec<Value> = tensors.iter().cloned().map(Value::Tensor).collect();
        values.push(Value::Float(0.25));
        let answer = program.run("f", values, run).expect("runs");
        let answer = answer.to_tensor().expect("a tensor").clone();
        tensors.iter().chain([&answer]).map(|t| t.to_vec::<f32>().expect("of floats")).collect()
    }

    fn three() -> [Tensor; 3] {
        [numbers(&[3, 4], 1), numbers(&[3, 4], 20), numbers(&[3, 4], 50)]
    }

    #[test]
    fn what_a_call_writes_is_written_by_one_kernel() {
        let (plain, planned, run) = (program(), program().planned(), Run::silent());
        for _ in 0..3 {
            assert_eq!(call(&plain, &three(), &run), call(&planned, &three(), &run));
        }
        let (plans, fusion) = (planned.plan_report(), planned.fusion_report());
        assert_eq!((plans.built, plans.hits, plans.unplanned_calls()), (1, 2, 0));
        assert_eq!((fusion.groups, fusion.fused_calls, fusion.op_by_op_calls()), (1, 3, 0));
    }

    #[test]
    fn tensors_are_counted_as_written() {
        let (planned, run, tensors) = (program().planned(), Run::silent(), three());
        call(&planned, &tensors, &run);
        assert_eq!(tensors.each_ref().map(Tensor::version), [1, 1, 0]);
    }

    /// Where an argument shares the memory of one that is written to, the order of writes and reads shows.
    #[test]
    fn arguments_that_share_memory_run_as_written() {
        let (plain, planned, run) = (program(), program().planned(), Run::silent());
        let sharing: [fn() -> [Tensor; 3]; 3] = [
            || {
                let m = numbers(&[3, 4], 1);
                [m.clone(), numbers(&[3, 4], 20), m]
            },
            // Two rows of one matrix, the one and the next.
            || {
                let rows = numbers(&[4, 4], 1);
                let part = |from| rows.look(|layout| narrow(layout, 0, from, 2)).expect("fits");
                [part(0), numbers(&[2, 4], 20), part(2)]
            },
            || {
                let m = numbers(&[3, 4], 1);
                [m.clone(), m, numbers(&[3, 4], 50)]
            },
        ];
        for tensors in sharing {
            call(&planned, &three(), &run);
            assert_eq!(call(&plain, &tensors(), &run), call(&planned, &tensors(), &run));
        }
        let reason = "an argument shares memory with a tensor that the call writes to";
        assert_eq!(planned.plan_report().unplanned.get(reason), Some(&3));
    }

    /// Tensors of other strides, and parts of larger ones, are written where they lie.
    #[test]
    fn views_are_written_where_they_lie() {
        let (plain, planned, run) = (program(), program().planned(), Run::silent());
        let tensors = || {
            let whole = numbers(&[4, 6], 1);
            let part = whole.look(|layout| narrow(layout, 1, 2, 3)).expect("fits");
            let part = part.look(|layout| transpose(layout, 0, 1)).expect("a matrix");
            (whole, [part, numbers(&[3, 4], 20), numbers(&[3, 4], 50)])
        };
        let ((plain_whole, plain_args), (whole, args)) = (tensors(), tensors());
        assert_eq!(call(&plain, &plain_args, &run), call(&planned, &args, &run));
        assert_eq!(plain_whole.to_vec::<f32>().expect("floats"), whole.to_vec::<f32>().expect("floats"));
        assert_eq!(planned.fusion_report().fused_calls, 1);
    }
}
