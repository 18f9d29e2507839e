//! Modules as text: declarations of classes, interfaces, enums and named tuples, graphs by name, and the content
//! of tensors that graph text does not show. Parsing stands in `module_parse.rs`; the form is described in
//! `docs/ir.md`.
//!
//! A module that holds one graph without a name prints as that graph alone, as PyTorch prints it.

use super::attr::{Detail, is_exact, write_value};
use super::number::write_quoted;
use super::printer::write_graph;
use crate::diag::Result;
use crate::ir::{
    Argument, Attr, ClassDef, ClassKind, Function, Graph, Module, PrintOptions, Schema, Symbol, Type,
};
use std::fmt::{self, Write as _};
use std::io;

/// Text is handed on in pieces of about this many bytes.
const CHUNK: usize = 1 << 16;

impl fmt::Display for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text(&PrintOptions::default()))
    }
}

impl Module {
    /// The whole module as text.
    pub fn to_text(&self, options: &PrintOptions) -> String {
        let mut out = String::new();
        self.write(&mut out, options, &mut |_| {});
        out
    }

    /// An error if the text of a type in the module would leave out parts, so that it could not be read back; see
    /// [`Type::check_text`](crate::ir::Type::check_text).
    pub fn check_text(&self) -> Result<()> {
        let mut graphs: Vec<&Graph> = self.functions.values().map(|f| &f.graph).collect();
        while let Some(graph) = graphs.pop() {
            // Few graphs have such types even among those that are no longer used.
            let suspect = (0..).map_while(|n| graph.type_at(n)).any(|ty| ty.check_text().is_err());
            for op in graph.all_ops() {
                let params = graph.nested_blocks(op).iter().flat_map(|b| graph.params(*b));
                if suspect {
                    let mut values = graph.results(op).into_iter().chain(params.copied());
                    values.try_for_each(|v| graph.ty(v).check_text())?;
                }
                if let Some(Attr::Graph(inner)) = graph.attr(op, "Subgraph") {
                    graphs.push(inner);
                }
            }
            graph.inputs().iter().try_for_each(|v| graph.ty(*v).check_text())?;
        }
        let attributes = self.classes.values().flat_map(|class| &class.attributes);
        attributes.map(|a| &a.ty).try_for_each(Type::check_text)
    }

    /// Writes the module's text piece by piece, without a buffer for all of it.
    pub fn write_text(&self, to: &mut dyn io::Write, options: &PrintOptions) -> io::Result<()> {
        let mut out = String::with_capacity(2 * CHUNK);
        let mut result = Ok(());
        self.write(&mut out, options, &mut |out| {
            if result.is_ok() {
                result = to.write_all(out.as_bytes());
            }
            out.clear();
        });
        result?;
        to.write_all(out.as_bytes())
    }

    fn write(&self, out: &mut String, options: &PrintOptions, drain: &mut dyn FnMut(&mut String)) {
        let mut first = true;
        let mut separate = |out: &mut String| {
            out.push_str(if first { "" } else { "\n" });
            first = false;
        };
        for class in self.classes.values() {
            separate(out);
            write_class(out, class);
        }
        for interface in self.interfaces.values() {
            separate(out);
            let base = if interface.is_module { "(Module)" } else { "" };
            let _ = writeln!(out, "interface {}{base}:", interface.name);
            for (name, schema) in &interface.methods {
                let schema = Schema { name: *name, ..schema.clone() };
                let _ = writeln!(out, "  method {schema}");
            }
        }
        for def in self.enums.values() {
            separate(out);
            let _ = writeln!(out, "enum {} : {}:", def.name, def.value_type);
            for (name, value) in &def.members {
                let _ = write!(out, "  {name} = ");
                write_value(out, value, Some(&def.value_type), Detail::Exact);
                out.push('\n');
            }
        }
        for (name, def) in &self.named_tuples {
            separate(out);
            write_named_tuple(out, *name, &def.ty, &def.defaults);
        }
        for function in self.functions.values() {
            separate(out);
            write_function(out, function, options, drain);
            if out.len() >= CHUNK {
                drain(out);
            }
        }
    }
}

/// A member's name: plain, or quoted where it is not a name.
fn write_member(out: &mut String, name: Symbol) {
    let text = name.as_str();
    if !text.is_empty() && text.bytes().all(super::lexer::is_name_byte) {
        out.push_str(text);
    } else {
        write_quoted(out, text);
    }
}

fn write_class(out: &mut String, class: &ClassDef) {
    let base = if class.kind == ClassKind::Module { "(Module)" } else { "" };
    let _ = writeln!(out, "class {}{base}:", class.name);
    let mut line = |word: &str, name: Symbol, rest: &dyn Fn(&mut String)| {
        out.push_str("  ");
        out.push_str(word);
        out.push(' ');
        write_member(out, name);
        rest(out);
        out.push('\n');
    };
    for a in &class.attributes {
        let word = match (a.is_parameter, a.is_buffer) {
            (true, _) => "parameter",
            (_, true) => "buffer",
            _ => "attribute",
        };
        line(word, a.name, &|out| {
            let _ = write!(out, " : {}", a.ty);
        });
    }
    for (name, (ty, value)) in &class.constants {
        line("constant", *name, &|out| {
            let _ = write!(out, " : {ty} = ");
            write_value(out, value, Some(ty), Detail::Exact);
        });
    }
    let equals = |to: &Symbol| {
        let to = *to;
        move |out: &mut String| {
            let _ = write!(out, " = {to}");
        }
    };
    for (name, function) in &class.methods {
        line("method", *name, &equals(function));
    }
    for (name, function) in &class.static_methods {
        line("static_method", *name, &equals(function));
    }
    for (name, property) in &class.properties {
        line("property", *name, &|out| {
            let _ = write!(out, " = {}", property.getter);
            if let Some(setter) = property.setter {
                let _ = write!(out, ", {setter}");
            }
        });
    }
    for hook in &class.forward_pre_hooks {
        line("forward_pre_hook", *hook, &|_| {});
    }
    for hook in &class.forward_hooks {
        line("forward_hook", *hook, &|_| {});
    }
}

fn write_named_tuple(out: &mut String, name: Symbol, ty: &Type, defaults: &[Attr]) {
    let _ = writeln!(out, "named_tuple {name}:");
    let crate::ir::TypeKind::Tuple(elements, Some(names)) = ty.kind() else { return };
    let first_default = elements.len().saturating_sub(defaults.len());
    for (i, (element, field)) in elements.iter().zip(&names.fields).enumerate() {
        let _ = write!(out, "  {field} : {element}");
        if let Some(default) = i.checked_sub(first_default).and_then(|n| defaults.get(n)) {
            out.push_str(" = ");
            write_value(out, default, Some(element), Detail::Exact);
        }
        out.push('\n');
    }
}

fn write_function(
    out: &mut String,
    function: &Function,
    options: &PrintOptions,
    drain: &mut dyn FnMut(&mut String),
) {
    let name = function.name.as_str();
    let is_anonymous = name.is_empty() || name.starts_with('#');
    if !is_anonymous && function.schema != derived_schema(function.name, &function.graph) {
        let _ = writeln!(out, "schema {}", function.schema);
    }
    let shown = if is_anonymous { "" } else { name };
    write_graph(out, &function.graph, shown, options, drain);
    write_resources(out, &function.graph);
}

/// The schema that the text of a graph alone stands for: arguments are named and typed as the inputs (`%x.1` is
/// the argument `x`), results are typed as the outputs.
pub fn derived_schema(name: Symbol, graph: &Graph) -> Schema {
    let arguments = graph.inputs().iter().map(|input| {
        let shown = graph.display_name(*input);
        let base = match shown.rsplit_once('.') {
            Some((base, suffix)) if !base.is_empty() && suffix.bytes().all(|b| b.is_ascii_digit()) => base,
            _ => &shown,
        };
        Argument::new(base, graph.ty(*input).clone())
    });
    let returns = graph.outputs().iter().map(|output| Argument::new("", graph.ty(*output).clone()));
    Schema::new(name, arguments.collect(), returns.collect())
}

/// The content of attributes whose text does not say all of it, one line each: `resource %7 value = tensor(...)`.
/// Subgraphs are counted in the order in which they print; the graph itself is number 0 and not mentioned.
fn write_resources(out: &mut String, graph: &Graph) {
    let mut number = 0;
    let mut work = vec![graph];
    while let Some(graph) = work.pop() {
        let mut subgraphs = Vec::new();
        for (n, op) in graph.all_ops().into_iter().enumerate() {
            if graph.attrs(op).is_empty() {
                continue;
            }
            let results = graph.results(op);
            let expected = if let [only] = results[..] { Some(graph.ty(only)) } else { None };
            for (name, attr) in graph.attrs(op) {
                if let (Attr::Graph(subgraph), "Subgraph") = (attr, name.as_str()) {
                    subgraphs.push(&**subgraph);
                    continue;
                }
                let expected = expected.filter(|_| *name == "value");
                if is_exact(attr, expected) {
                    continue;
                }
                out.push_str("resource ");
                if number > 0 {
                    let _ = write!(out, "{number} ");
                }
                match results.first() {
                    Some(result) => {
                        let _ = write!(out, "%{} ", graph.display_name(*result));
                    }
                    None => {
                        let _ = write!(out, "@{n} ");
                    }
                }
                let _ = write!(out, "{name} = ");
                write_value(out, attr, expected, Detail::Exact);
                out.push('\n');
            }
        }
        work.extend(subgraphs.into_iter().rev());
        number += 1;
    }
}
