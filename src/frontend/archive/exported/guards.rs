//! What must hold of arguments: a program was exported for sizes that are numbers or symbols, and is right for no others.
//! PyTorch checks the same at each call, and says so in the same text. Sizes whose expression is more than a symbol are left
//! to the operators.

use super::nodes::Nodes;
use super::schema::{Constant, Float, Graph, Range, SymInt};
use crate::diag::Result;
use crate::ir::{Attr, Type, ValueId};
use hashbrown::HashMap;
use indexmap::IndexMap;

/// The smallest size that a symbol stands for where nothing is said: a program exported for two and more is right for all.
const UNSTATED_MINIMUM: i64 = 2;

/// The checks of a graph, and the sizes that its symbols stand for.
pub(super) struct Guards<'a> {
    graph: &'a Graph,
    ranges: &'a IndexMap<String, Range>,
    symbols: HashMap<&'a str, (ValueId, String)>,
}

impl<'a> Guards<'a> {
    pub(super) fn new(graph: &'a Graph, ranges: &'a IndexMap<String, Range>) -> Guards<'a> {
        Guards { graph, ranges, symbols: HashMap::new() }
    }

    /// Checks the sizes of a tensor.
    pub(super) fn sizes(
        &mut self,
        nodes: &mut Nodes<'_>,
        name: &str,
        tensor: ValueId,
        path: &str,
    ) -> Result<()> {
        let Some(meta) = self.graph.tensor_values.get(name) else { return Ok(()) };
        for (dim, size) in meta.sizes.iter().enumerate() {
            let symbol = match size {
                SymInt::Int(_) => None,
                SymInt::Expr(expression) => match symbol(&expression.expr_str) {
                    Some(symbol) => Some(symbol),
                    None => continue,
                },
            };
            let index = nodes.emitter.constant(Type::int(), Attr::Int(dim as i64))?;
            let actual = nodes.by_types("aten::size", &[tensor, index], Some(&Type::int()))?;
            let shown = format!("{path}.size()[{dim}]");
            match (symbol, size) {
                (Some(symbol), _) => self.symbol(nodes, symbol, actual, shown)?,
                (None, SymInt::Int(size)) => {
                    let wanted = nodes.emitter.constant(Type::int(), Attr::Int(*size))?;
                    self.equal(nodes, (actual, wanted), &format!("{shown} == {size}"))?;
                }
                (None, SymInt::Expr(_)) => {}
            }
        }
        Ok(())
    }

    /// The first place of a symbol says what it is, and is held to its range; all others must agree.
    fn symbol(
        &mut self,
        nodes: &mut Nodes<'_>,
        symbol: &'a str,
        actual: ValueId,
        shown: String,
    ) -> Result<()> {
        if let Some((known, first)) = self.symbols.get(symbol) {
            return self.check(nodes, "aten::eq", (actual, *known), &format!("{shown} == {first}"));
        }
        if let Some(range) = self.ranges.get(symbol) {
            let least = range.min_val.filter(|least| *least > UNSTATED_MINIMUM);
            for (bound, op, sign) in [(least, "aten::ge", ">="), (range.max_val, "aten::le", "<=")] {
                let Some(bound) = bound else { continue };
                let limit = nodes.emitter.constant(Type::int(), Attr::Int(bound))?;
                self.check(nodes, op, (actual, limit), &format!("{shown} {sign} {bound}"))?;
            }
        }
        self.symbols.insert(symbol, (actual, shown));
        Ok(())
    }

    /// Checks an argument that was constant.
    pub(super) fn constant(
        &self,
        nodes: &mut Nodes<'_>,
        constant: &Constant,
        value: ValueId,
        path: &str,
    ) -> Result<()> {
        let (ty, shown) = match constant {
            Constant::None(_) => (Type::none(), "None".to_string()),
            Constant::Int(n) => (Type::int(), n.to_string()),
            Constant::Float(x) => (Type::float(), format!("{:?}", x.0)),
            Constant::String(text) => (Type::str(), format!("'{text}'")),
            Constant::Bool(true) => (Type::bool(), "True".to_string()),
            Constant::Bool(false) => (Type::bool(), "False".to_string()),
        };
        let wanted = nodes.emitter.constant(ty.clone(), attr(constant))?;
        if matches!(constant, Constant::None(_)) {
            return self.check(nodes, "aten::__is__", (value, wanted), &format!("{path} is None"));
        }
        let value = nodes.emitter.cast(value, &ty)?;
        self.equal(nodes, (value, wanted), &format!("{path} == {shown}"))
    }

    /// Checks that two numbers or texts are equal.
    pub(super) fn equal(&self, nodes: &mut Nodes<'_>, pair: (ValueId, ValueId), text: &str) -> Result<()> {
        self.check(nodes, "aten::eq", pair, text)
    }

    /// An exception where something does not hold.
    fn check(
        &self,
        nodes: &mut Nodes<'_>,
        op: &str,
        (left, right): (ValueId, ValueId),
        text: &str,
    ) -> Result<()> {
        let holds = nodes.by_types(op, &[left, right], Some(&Type::bool()))?;
        let check = nodes.emitter.emit("prim::If", &[holds], &[]);
        nodes.emitter.graph.add_block(check);
        let block = nodes.emitter.graph.add_block(check);
        let outer = std::mem::replace(&mut nodes.emitter.block, block);
        let message = format!("Guard failed: {text}");
        let message = nodes.emitter.constant(Type::str(), Attr::Str(message.into()));
        let class = nodes.emitter.constant(Type::str(), Attr::Str("builtins.AssertionError".into()));
        let operands = message.and_then(|message| Ok([message, class?]));
        let raised = operands.map(|operands| nodes.emitter.emit("prim::RaiseException", &operands, &[]));
        nodes.emitter.block = outer;
        raised.map(|_| ())
    }
}

/// The symbol that an expression in sympy's form is, if it is nothing else.
fn symbol(expression: &str) -> Option<&str> {
    let rest = expression.strip_prefix("Symbol('")?;
    let (name, rest) = rest.split_once('\'')?;
    (rest.ends_with(')') && !rest[..rest.len() - 1].contains(['(', ')'])).then_some(name)
}

/// A constant as an attribute.
pub(super) fn attr(constant: &Constant) -> Attr {
    match constant {
        Constant::None(_) => Attr::None,
        Constant::Int(n) => Attr::Int(*n),
        Constant::Float(Float(x)) => Attr::Float(*x),
        Constant::String(text) => Attr::Str(text.as_str().into()),
        Constant::Bool(b) => Attr::Bool(*b),
    }
}
