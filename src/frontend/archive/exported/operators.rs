//! Python's own operators in an exported graph: arithmetic on sizes that are not known before a call.

use super::nodes::{Nodes, type_of};
use super::schema::Node;
use crate::diag::{Diagnostic, Result};
use crate::ir::{Type, ValueId};

/// What operators on numbers are called in an exported graph, and what the operator is called here.
const OPERATORS: &[(&str, &str)] = &[
    ("_operator.add", "aten::add"),
    ("_operator.sub", "aten::sub"),
    ("_operator.mul", "aten::mul"),
    ("_operator.truediv", "aten::div"),
    ("_operator.floordiv", "aten::floordiv"),
    ("_operator.mod", "aten::remainder"),
    ("_operator.pow", "aten::pow"),
    ("_operator.lshift", "aten::__lshift__"),
    ("_operator.rshift", "aten::__rshift__"),
    ("_operator.and_", "aten::__and__"),
    ("_operator.or_", "aten::__or__"),
    ("_operator.eq", "aten::eq"),
    ("_operator.ne", "aten::ne"),
    ("_operator.lt", "aten::lt"),
    ("_operator.le", "aten::le"),
    ("_operator.gt", "aten::gt"),
    ("_operator.ge", "aten::ge"),
    ("_operator.neg", "aten::neg"),
    ("math.trunc", "aten::Int"),
    ("math.floor", "aten::floor"),
    ("math.ceil", "aten::ceil"),
    ("builtins.round", "aten::round"),
    ("torch.sym_not", "aten::__not__"),
    ("torch.sym_int", "aten::Int"),
    ("torch.sym_float", "aten::Float"),
    ("torch.sym_max", "prim::max"),
    ("torch.sym_min", "prim::min"),
    ("torch.sym_sqrt", "aten::sqrt"),
    ("torch._sym_sqrt", "aten::sqrt"),
];

impl Nodes<'_> {
    /// Emits a call of an operator on numbers.
    pub(super) fn on_numbers(&mut self, node: &Node) -> Result<Vec<ValueId>> {
        let operands =
            node.inputs.iter().map(|input| self.free(&input.arg)).collect::<Result<Vec<ValueId>>>()?;
        let wanted = node.outputs.first().and_then(type_of);
        match (node.target.as_str(), operands.as_slice()) {
            ("_operator.pos", [value]) => return Ok(vec![*value]),
            ("torch.sym_ite", [condition, then, otherwise]) => {
                return choose(self, *condition, (*then, *otherwise)).map(|value| vec![value]);
            }
            // What is an int already.
            ("torch.sym_int" | "math.trunc", [value]) if *self.emitter.graph.ty(*value) == Type::int() => {
                return Ok(vec![*value]);
            }
            _ => {}
        }
        let name = OPERATORS.iter().find(|(target, _)| *target == node.target).map(|(_, name)| *name);
        let Some(name) = name else {
            return Err(Diagnostic::unsupported(format!("`{}` in an exported program", node.target)));
        };
        // Powers of ints are ints in Python, but floats in a program: they are exact below 2^53, as all sizes are.
        let are_ints = operands.iter().all(|value| *self.emitter.graph.ty(*value) == Type::int());
        if name == "aten::pow" && are_ints && wanted != Some(Type::float()) {
            let power = self.by_types(name, &operands, Some(&Type::float()))?;
            return self.by_types("aten::Int", &[power], Some(&Type::int())).map(|value| vec![value]);
        }
        self.by_types(name, &operands, wanted.as_ref()).map(|value| vec![value])
    }
}

/// One of two values.
fn choose(
    nodes: &mut Nodes<'_>,
    condition: ValueId,
    (then, otherwise): (ValueId, ValueId),
) -> Result<ValueId> {
    let emitter = &mut nodes.emitter;
    let ty = emitter.graph.ty(then).clone();
    let op = emitter.emit("prim::If", &[condition], &[ty]);
    for value in [then, otherwise] {
        let block = emitter.graph.add_block(op);
        emitter.graph.set_block_results(block, &[value]);
    }
    emitter.graph.result(op, 0).ok_or_else(|| Diagnostic::internal("an if without its result"))
}
