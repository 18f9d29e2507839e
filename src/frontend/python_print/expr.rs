//! The expression that an op is.

use super::body::Body;
use super::constant::implies_its_type;
use super::inline;
use super::names::is_identifier;
use super::text::Text;
use crate::diag::{Diagnostic, Result};
use crate::dialects::prim::constant;
use crate::dialects::resolve;
use crate::ir::text::number::write_quoted;
use crate::ir::{Argument, Attr, OpId, Type, TypeKind, ValueId};
use crate::value::Value;

impl Body<'_, '_> {
    /// The right-hand side of an op's assignment.
    pub(super) fn expression(&self, op: OpId) -> Result<Text> {
        let graph = self.graph;
        let place = self.place(op);
        let place = place.as_ref();
        let whole = |text: String| Ok(Text::from(text, place));
        let kind = graph.kind(op).as_str();
        let operands = graph.operands(op);
        let around = |open: String, close: &str| {
            let mut out = Text::from(open, place);
            self.list(&mut out, operands, "", "")?;
            out.push(close, place);
            Ok(out)
        };
        let annotated = |call: &str, close: &str| {
            let ty = self.cx.type_text(&self.result_type(op)?)?;
            let mut out = Text::from(format!("{call}({ty}, "), place);
            out.push_text(self.operand(op, 0)?);
            out.push(close, place);
            Ok(out)
        };
        match kind {
            "prim::Constant" => whole(self.constant_text(op)?),
            "prim::Uninitialized" => {
                whole(format!("uninitialized({})", self.cx.type_text(&self.result_type(op)?)?))
            }
            "aten::ScalarImplicit"
            | "aten::FloatImplicit"
            | "aten::IntImplicit"
            | "aten::ComplexImplicit" => annotated("annotate", ")"),
            "prim::tolist" => annotated("annotate", ".tolist())"),
            "prim::unchecked_cast" | "prim::unchecked_unwrap_optional" => annotated("unchecked_cast", ")"),
            "aten::Int" => around("int(".into(), ")"),
            "aten::Float" => around("float(".into(), ")"),
            "aten::Bool" => around("bool(".into(), ")"),
            "aten::str" => around("str(".into(), ")"),
            "aten::sorted" => around("sorted(".into(), ")"),
            "prim::Print" => around("print(".into(), ")"),
            "aten::__getitem__" if operands.len() == 2 => {
                let whole = self.operand(op, 0)?;
                let is_name = is_identifier(whole.as_str());
                let mut out = Text::from(if is_name { "" } else { "(" }, place);
                out.push_text(whole);
                out.push(if is_name { "[" } else { ")[" }, place);
                out.push_text(self.operand(op, 1)?);
                out.push("]", place);
                Ok(out)
            }
            "prim::TupleConstruct" => {
                let ty = self.result_type(op)?;
                let named = self.cx.is_named_tuple(&ty);
                let name = if named { self.cx.type_text(&ty)? } else { String::new() };
                around(format!("{name}("), if operands.len() == 1 { ",)" } else { ")" })
            }
            "prim::TupleIndex" | "prim::TupleSlice" => self.tuple_part(op),
            "prim::ListConstruct" => {
                let ty = self.result_type(op)?;
                let clear = !operands.is_empty() && ty.element().is_some_and(implies_its_type);
                let open =
                    if clear { "[".into() } else { format!("annotate({}, [", self.cx.type_text(&ty)?) };
                around(open, if clear { "]" } else { "])" })
            }
            "prim::DictConstruct" => self.dict(op),
            "prim::CreateObject" => {
                let class = self.cx.type_text(&self.result_type(op)?)?;
                whole(format!("{class}.__new__({class})"))
            }
            "prim::GetAttr" => {
                let name = self.text_attr(op, "name")?;
                let mut out = Text::from("", place);
                if is_identifier(&name) {
                    out.push_text(self.operand(op, 0)?);
                    out.push(&format!(".{name}"), place);
                } else {
                    out.push("getattr(", place);
                    out.push_text(self.operand(op, 0)?);
                    let mut quoted = String::new();
                    write_quoted(&mut quoted, &name);
                    out.push(&format!(", {quoted})"), place);
                }
                Ok(out)
            }
            "prim::CallFunction" | "prim::CallMethod" => self.call(op),
            "prim::isinstance" => self.isinstance(op),
            "prim::EnumValue" | "prim::EnumName" => {
                let mut out = Text::from("(", place);
                out.push_text(self.operand(op, 0)?);
                out.push(if kind == "prim::EnumValue" { ").value" } else { ").name" }, place);
                Ok(out)
            }
            _ => self.operator(op),
        }
    }

    fn result_type(&self, op: OpId) -> Result<Type> {
        let value = self.graph.result(op, 0);
        let value =
            value.ok_or_else(|| Diagnostic::verify(format!("{} has no result", self.graph.kind(op))))?;
        Ok(self.graph.ty(value).clone())
    }

    fn constant_text(&self, op: OpId) -> Result<String> {
        let ty = self.result_type(op)?;
        let value = constant::value(self.graph.attrs(op), Some(&ty))?;
        // A list of another type than that of its items is annotated by the type of the constant.
        self.cx.constant(&value)
    }

    fn tuple_part(&self, op: OpId) -> Result<Text> {
        let graph = self.graph;
        let place = self.place(op);
        let mut out = Text::from("(", place.as_ref());
        out.push_text(self.operand(op, 0)?);
        out.push(")[", place.as_ref());
        if graph.operands(op).len() > 1 {
            out.push_text(self.operand(op, 1)?);
        } else {
            let bound = |name| graph.attr(op, name).and_then(Attr::as_int);
            let (Some(start), Some(end)) = (bound("beg"), bound("end")) else {
                return Err(Diagnostic::verify("a prim::TupleSlice without its bounds"));
            };
            out.push(&format!("{start}:{end}"), place.as_ref());
        }
        out.push("]", place.as_ref());
        Ok(out)
    }

    fn dict(&self, op: OpId) -> Result<Text> {
        let ty = self.result_type(op)?;
        let place = self.place(op);
        let operands = self.graph.operands(op);
        let clear = match ty.kind() {
            TypeKind::Dict(key, value) => {
                !operands.is_empty() && implies_its_type(key) && implies_its_type(value)
            }
            _ => false,
        };
        let open = if clear { "{".into() } else { format!("annotate({}, {{", self.cx.type_text(&ty)?) };
        let mut out = Text::from(open, place.as_ref());
        for (n, pair) in operands.chunks(2).enumerate() {
            out.push(if n == 0 { "" } else { ", " }, place.as_ref());
            for (m, value) in pair.iter().enumerate() {
                out.push(if m == 0 { "" } else { ": " }, place.as_ref());
                out.push_text(self.value(*value)?);
            }
        }
        out.push(if clear { "}" } else { "})" }, place.as_ref());
        Ok(out)
    }

    fn call(&self, op: OpId) -> Result<Text> {
        let place = self.place(op);
        let mut out = Text::from("", place.as_ref());
        if self.graph.kind(op) == "prim::CallMethod" {
            out.push("(", place.as_ref());
            out.push_text(self.operand(op, 0)?);
            out.push(&format!(").{}(", self.text_attr(op, "name")?), place.as_ref());
            if let Some(receiver) = self.graph.operand(op, 0) {
                self.cx.depend_on_type(self.graph.ty(receiver));
            }
        } else {
            out.push_text(self.operand(op, 0)?);
            out.push("(", place.as_ref());
        }
        for n in 1..self.graph.operands(op).len() {
            out.push_text(self.operand(op, n)?);
            out.push(", ", place.as_ref());
        }
        out.push(")", place.as_ref());
        Ok(out)
    }

    fn isinstance(&self, op: OpId) -> Result<Text> {
        let Some(Attr::Types(types)) = self.graph.attr(op, "types") else {
            return Err(Diagnostic::verify("a prim::isinstance without its types"));
        };
        let texts = types.iter().map(|t| self.cx.type_text(t)).collect::<Result<Vec<_>>>()?;
        let place = self.place(op);
        let mut out = Text::from("isinstance(", place.as_ref());
        out.push_text(self.operand(op, 0)?);
        match texts.as_slice() {
            [one] => out.push(&format!(", {one})"), place.as_ref()),
            many => out.push(&format!(", ({}))", many.join(", ")), place.as_ref()),
        }
        Ok(out)
    }

    /// A call of an operator, without the arguments at its end that have their default values.
    fn operator(&self, op: OpId) -> Result<Text> {
        let graph = self.graph;
        let place = self.place(op);
        let place = place.as_ref();
        let kind = graph.kind(op).as_str();
        let (dialect, name) = kind.split_once("::").unwrap_or(("", kind));
        let is_internal = dialect == "prim" && self.cx.registry.overloads(graph.kind(op)).is_empty();
        if is_internal || !graph.nested_blocks(op).is_empty() || graph.attr(op, "Subgraph").is_some() {
            return Err(Diagnostic::unsupported(format!("{kind} as Python"))
                .hint("print the module before passes have changed it"));
        }
        let mut out = Text::default();
        if kind == "aten::_unwrap_optional" && self.is_none(graph.operands(op)) {
            let ty = Type::optional(self.result_type(op)?);
            out.push(&format!("torch._unwrap_optional(annotate({}, None))", self.cx.type_text(&ty)?), place);
            return Ok(out);
        }
        out.push(
            &match (dialect, name) {
                ("aten", "backward" | "grad") => format!("torch.autograd.{name}("),
                ("aten", _) => format!("torch.{name}("),
                _ => format!("ops.{dialect}.{name}("),
            },
            place,
        );
        let schema = resolve(self.cx.registry, graph, op).ok();
        let arguments = schema.as_ref().and_then(|s| s.schema().ok()).map_or(&[][..], |s| &s.arguments);
        let operands = graph.operands(op);
        let outs = arguments.iter().rev().take_while(|a| a.is_out).count();
        let necessary = self.necessary(arguments, operands, outs);
        let shown = operands.iter().enumerate();
        let shown = shown.filter(|(n, _)| *n < necessary || (*n < arguments.len() && arguments[*n].is_out));
        for (count, (n, value)) in shown.enumerate() {
            out.push(if count == 0 { "" } else { ", " }, place);
            if let Some(argument) = arguments.get(n).filter(|a| a.keyword_only || a.is_out) {
                out.push(&format!("{}=", argument.name), place);
            }
            out.push_text(self.value(*value)?);
        }
        out.push(")", place);
        Ok(out)
    }

    /// How many arguments from the front must be written.
    fn necessary(&self, arguments: &[Argument], operands: &[ValueId], outs: usize) -> usize {
        if arguments.is_empty() || operands.len() > arguments.len() {
            return operands.len();
        }
        let mut count = operands.len().min(arguments.len() - outs);
        while let Some(last) = count.checked_sub(1) {
            let is_default = arguments[last].default.as_ref().is_some_and(|default| {
                self.constant_value(operands[last]).is_some_and(|value| same_constant(default, &value))
            });
            if !is_default {
                break;
            }
            count = last;
        }
        count
    }

    /// The value of a constant operand.
    fn constant_value(&self, value: ValueId) -> Option<Value> {
        let def = self.graph.def_op(value).filter(|def| self.graph.kind(*def) == inline::constant())?;
        constant::value(self.graph.attrs(def), Some(self.graph.ty(value))).ok()
    }

    fn is_none(&self, operands: &[ValueId]) -> bool {
        operands.first().is_some_and(|v| {
            *self.graph.ty(*v) == Type::none() || self.constant_value(*v).is_some_and(|c| c.is_none())
        })
    }
}

/// Whether a schema's default is the value that is passed, with the same type.
fn same_constant(default: &Attr, value: &Value) -> bool {
    match (default, value) {
        (Attr::None, Value::None) => true,
        (Attr::Int(a), Value::Int(b)) => a == b,
        (Attr::Bool(a), Value::Bool(b)) => a == b,
        (Attr::Int(a), Value::Bool(b)) => *a == i64::from(*b),
        (Attr::Float(a), Value::Float(b)) => a == b,
        (Attr::Str(a), Value::Str(b)) => **a == **b,
        (Attr::Ints(a), Value::List(b)) => {
            b.len() == a.len()
                && b.items().iter().zip(a.iter()).all(|(x, y)| matches!(x, Value::Int(x) if x == y))
        }
        _ => false,
    }
}
