//! Reads `bytecode.pkl`: a tuple of the version and, for each method, its name, tables and signature.

use super::code::{Code, Instruction, Operator, Parameter, VERSIONS, named};
use crate::diag::{Diagnostic, Result};
use crate::dialects::Registry;
use crate::dialects::prim::constant;
use crate::frontend::archive::objects::{Builder, Built, unfolded_size};
use crate::frontend::archive::opened::Archive;
use crate::frontend::archive::pickle::{Node, NodeId, Pickle};
use crate::ir::{Attr, Module, Symbol};
use std::sync::Arc;

/// All methods of an archive.
pub(super) fn read(registry: &Registry, archive: &Arc<Archive>) -> Result<Vec<Code>> {
    let pickle = archive.parse("bytecode.pkl")?;
    let limit = archive.limits().constant_values;
    if unfolded_size(&pickle) > limit {
        return Err(Diagnostic::input(format!(
            "bytecode.pkl: it has more than {limit} values, where a value that is shared counts each time"
        )));
    }
    let empty = Module::default();
    // Constants are values of the tree; their storages lie where those of the code's constants lie.
    let mut builder = Builder::new(registry, archive, "constants", &empty);
    let values = builder.build_all(&pickle)?;
    let reader = Reader { pickle: &pickle, values: &values };
    reader.methods().map_err(|error| named(error, "bytecode.pkl"))
}

struct Reader<'a> {
    pickle: &'a Pickle,
    /// The value of each node.
    values: &'a [Built],
}

impl<'a> Reader<'a> {
    fn methods(&self) -> Result<Vec<Code>> {
        let items = self.items(self.pickle.root(), "the table of methods")?;
        let (version, methods) = match items {
            [first, rest @ ..] => match self.pickle.int(*first) {
                Some(version) => (version, rest),
                None => (3, items), // the first versions did not say which they are
            },
            [] => return Err(malformed("it is empty")),
        };
        if !VERSIONS.contains(&version) {
            return Err(Diagnostic::unsupported(format!(
                "bytecode of version {version}; versions {} to {} can be read",
                VERSIONS.start(),
                VERSIONS.end()
            ))
            .hint("save the model again with _save_for_lite_interpreter"));
        }
        methods.iter().map(|method| self.method(*method)).collect()
    }

    fn method(&self, id: NodeId) -> Result<Code> {
        let parts = self.items(id, "a method")?;
        let [name, tables, rest @ ..] = parts else { return Err(malformed("a method has no tables")) };
        let mut code =
            Code { name: self.text(*name, "the name of a method")?.to_string(), ..Code::default() };
        for row in self.items(*tables, "the tables of a method")? {
            let [title, content] = self.items(*row, "a table")? else {
                return Err(malformed("a table is not a pair of title and content"));
            };
            match self.text(*title, "the title of a table")? {
                "register_size" => {}
                title => self.table(&mut code, title, self.items(*content, "a table")?)?,
            }
        }
        if let [signature] = rest {
            code.signature = Some(self.signature(*signature)?);
        }
        Ok(code)
    }

    fn table(&self, code: &mut Code, title: &str, rows: &'a [NodeId]) -> Result<()> {
        match title {
            "instructions" => {
                code.instructions = rows.iter().map(|row| self.instruction(*row)).collect::<Result<_>>()?;
            }
            "operators" => {
                code.operators = rows.iter().map(|row| self.operator(*row)).collect::<Result<_>>()?;
            }
            "constants" => {
                for row in rows {
                    let Some(built) = self.values.get(row.index()) else { continue };
                    code.constants.push((built.ty.clone(), attr(built)?));
                }
            }
            "types" => {
                let text = |row: &NodeId| -> Result<String> { Ok(self.text(*row, "a type")?.to_string()) };
                code.types = rows.iter().map(text).collect::<Result<_>>()?;
            }
            other => return Err(malformed(&format!("there is a table `{}`", other.escape_debug()))),
        }
        Ok(())
    }

    fn instruction(&self, id: NodeId) -> Result<Instruction> {
        let parts = self.items(id, "an instruction")?;
        let (Some(name), Some(x), Some(n)) = (
            parts.first().and_then(|id| self.pickle.str(*id)),
            parts.get(1).and_then(|id| self.pickle.int(*id)),
            parts.get(2).and_then(|id| self.pickle.int(*id)),
        ) else {
            return Err(malformed("an instruction is not a name with two ints"));
        };
        Ok(Instruction { name: name.into(), x, n })
    }

    fn operator(&self, id: NodeId) -> Result<Operator> {
        let parts = self.items(id, "an operator")?;
        let (Some(name), Some(overload)) = (
            parts.first().and_then(|id| self.pickle.str(*id)),
            parts.get(1).and_then(|id| self.pickle.str(*id)),
        ) else {
            return Err(malformed("an operator is not a pair of name and overload"));
        };
        let given = parts.get(2).and_then(|id| self.pickle.int(*id));
        let given = given.map(usize::try_from).transpose();
        let given = given.map_err(|_| malformed("an operator has less than no arguments"))?;
        Ok(Operator { name: Symbol::new(name), overload: overload.into(), given })
    }

    /// `(("arguments", (…)), ("returns", (…)))`.
    fn signature(&self, id: NodeId) -> Result<(Vec<Parameter>, Vec<String>)> {
        let (mut parameters, mut returns) = (Vec::new(), Vec::new());
        for part in self.items(id, "a signature")? {
            let [title, rows] = self.items(*part, "a part of a signature")? else {
                return Err(malformed("a part of a signature is not a pair"));
            };
            for row in self.items(*rows, "a part of a signature")? {
                let parameter = self.parameter(*row)?;
                match self.pickle.str(*title) {
                    Some("arguments") => parameters.push(parameter),
                    Some("returns") => returns.push(parameter.ty),
                    _ => {
                        return Err(malformed(
                            "a signature has a part that is neither arguments nor returns",
                        ));
                    }
                }
            }
        }
        Ok((parameters, returns))
    }

    fn parameter(&self, id: NodeId) -> Result<Parameter> {
        let mut parameter = Parameter { name: "".into(), ty: String::new(), default: None };
        for field in self.items(id, "an argument")? {
            let [title, content] = self.items(*field, "a field of an argument")? else {
                return Err(malformed("a field of an argument is not a pair"));
            };
            match self.text(*title, "the title of a field")? {
                "name" => parameter.name = self.text(*content, "the name of an argument")?.into(),
                "type" => parameter.ty = self.text(*content, "the type of an argument")?.to_string(),
                "default_value" => {
                    let value = self.values.get(content.index());
                    parameter.default = value.filter(|v| !v.root.is_none()).map(attr).transpose()?;
                }
                other => return Err(malformed(&format!("an argument has a `{}`", other.escape_debug()))),
            }
        }
        Ok(parameter)
    }

    fn items(&self, id: NodeId, what: &str) -> Result<&'a [NodeId]> {
        match self.pickle.node(id) {
            Node::Tuple(items) => Ok(items),
            other => Err(malformed(&format!("{what} is {}, not a tuple", other.kind()))),
        }
    }

    fn text(&self, id: NodeId, what: &str) -> Result<&'a str> {
        self.pickle.str(id).ok_or_else(|| malformed(&format!("{what} is not a string")))
    }
}

fn attr(built: &Built) -> Result<Attr> {
    constant::attr(&built.root).ok_or_else(|| {
        Diagnostic::unsupported(format!("constants of kind {} in bytecode", built.root.kind_name()))
    })
}

fn malformed(what: &str) -> Diagnostic {
    Diagnostic::input(format!("the bytecode is malformed: {what}"))
}
