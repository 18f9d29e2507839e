//! Constants as Python.

use super::Context;
use crate::diag::{Diagnostic, Result};
use crate::ir::text::number::{write_complex, write_float, write_int, write_quoted};
use crate::ir::{Type, TypeKind};
use crate::value::Value;

impl Context<'_> {
    /// A constant's text. Tensors, objects and text beyond ASCII stand in the table of constants.
    pub(super) fn constant(&self, value: &Value) -> Result<String> {
        let mut out = String::new();
        self.write_constant(&mut out, value)?;
        Ok(out)
    }

    fn write_constant(&self, out: &mut String, value: &Value) -> Result<()> {
        if needs_table(value) {
            out.push_str("CONSTANTS.c");
            write_int(out, self.table_index(value)? as i64);
            return Ok(());
        }
        match value {
            Value::None => out.push_str("None"),
            Value::Int(x) => write_int(out, *x),
            Value::Float(x) => write_float(out, *x),
            Value::Complex(x) => write_complex(out, *x),
            Value::Bool(x) => out.push_str(if *x { "True" } else { "False" }),
            Value::Str(x) => write_quoted(out, x),
            Value::Device(x) => {
                out.push_str("torch.device(");
                write_quoted(out, &x.to_string());
                out.push(')');
            }
            Value::Enum(member) => {
                self.depend(member.class);
                out.push_str(&format!("{}.{}", member.class, member.name));
            }
            Value::Function(name) => {
                self.depend(*name);
                out.push_str(&super::qualified(*name));
            }
            Value::List(list) => {
                let items = list.to_vec();
                let unclear = items.is_empty() || !implies_its_type(list.element_type());
                let open = if unclear {
                    format!("annotate({}, [", self.type_text(&value.ty())?)
                } else {
                    "[".into()
                };
                self.write_items(out, &open, &items, if unclear { "])" } else { "]" })?;
            }
            Value::Tuple(tuple) => {
                if let Some(names) = tuple.names().filter(|_| self.is_named_tuple(&value.ty())) {
                    self.depend(names.name);
                    out.push_str(names.name.as_str());
                }
                let close = if tuple.items().len() == 1 { ",)" } else { ")" };
                self.write_items(out, "(", tuple.items(), close)?;
            }
            Value::Dict(dict) => {
                let unclear = dict.is_empty()
                    || !implies_its_type(dict.key_type())
                    || !implies_its_type(dict.value_type());
                if unclear {
                    out.push_str(&format!("annotate({}, ", self.type_text(&value.ty())?));
                }
                out.push('{');
                for (n, (key, value)) in dict.entries().iter().enumerate() {
                    out.push_str(if n == 0 { "" } else { ", " });
                    self.write_constant(out, &key.to_value())?;
                    out.push_str(": ");
                    self.write_constant(out, value)?;
                }
                out.push_str(if unclear { "})" } else { "}" });
            }
            Value::Tensor(_)
            | Value::Object(_)
            | Value::Generator(_)
            | Value::Future(_)
            | Value::Uninitialized => {
                return Err(unsupported(value));
            }
        }
        Ok(())
    }

    fn write_items(&self, out: &mut String, open: &str, items: &[Value], close: &str) -> Result<()> {
        out.push_str(open);
        for (n, item) in items.iter().enumerate() {
            out.push_str(if n == 0 { "" } else { ", " });
            self.write_constant(out, item)?;
        }
        out.push_str(close);
        Ok(())
    }

    /// The place of a constant in the table; equal tensors share one.
    fn table_index(&self, value: &Value) -> Result<usize> {
        if matches!(value, Value::Generator(_) | Value::Future(_) | Value::Uninitialized) {
            return Err(unsupported(value));
        }
        let mut table = self.constants.borrow_mut();
        let known = table.iter().position(|other| match (value, other) {
            (Value::Str(a), Value::Str(b)) => a == b,
            _ => value.is_same(other),
        });
        Ok(known.unwrap_or_else(|| {
            table.push(value.clone());
            table.len() - 1
        }))
    }
}

fn unsupported(value: &Value) -> Diagnostic {
    Diagnostic::unsupported(format!("constants of kind {} in serialized code", value.kind_name()))
}

/// Whether a constant cannot be written as text: it is or holds text beyond ASCII, or is a tensor or object.
fn needs_table(value: &Value) -> bool {
    match value {
        Value::Tensor(_) | Value::Object(_) | Value::Future(_) => true,
        _ => holds_foreign_text(value, 0),
    }
}

fn holds_foreign_text(value: &Value, depth: usize) -> bool {
    // Deeper constants are refused when they are written.
    if depth > 200 {
        return false;
    }
    let any = |items: &[Value]| items.iter().any(|item| holds_foreign_text(item, depth + 1));
    match value {
        Value::Str(text) => !text.is_ascii(),
        Value::List(list) => any(&list.items()),
        Value::Tuple(tuple) => any(tuple.items()),
        Value::Dict(dict) => dict.entries().iter().any(|(key, value)| {
            holds_foreign_text(&key.to_value(), depth + 1) || holds_foreign_text(value, depth + 1)
        }),
        _ => false,
    }
}

/// Whether the members of a list or dict determine their own type, so that no annotation is needed.
pub(super) fn implies_its_type(element: &Type) -> bool {
    use TypeKind::{Any, Interface, Number, Optional, Union};
    !matches!(element.kind(), Optional(_) | Union(_) | Number | Interface(_) | Any)
}
