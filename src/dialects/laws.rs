//! The laws of dialects, asked of the registry by the verifier: which dialects, ops and types exist, what ops take,
//! and what rows demand of attributes, blocks and types.

use super::constraint::{Law, Parameter, parameter_value};
use super::structure::Structure;
use super::{Op, Registry, loops, resolve};
use crate::diag::{Diagnostic, ErrorKind, nearest};
use crate::ir::{Attr, DialectLaws, Graph, OpId, Symbol, Type, TypeKind, ValueId, Violations};
use hashbrown::HashMap;
use std::cell::RefCell;

/// What a pass may write at an op of any dialect: why it was not lowered.
pub const NOT_LOWERED: &str = "not_lowered";

/// How much the verifier demands of ops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strictness {
    /// Structure only; ops that text files declare obey their rows, all others are carried as they are.
    Carry,
    /// Besides, ops of unregistered dialects are refused.
    #[default]
    Dialects,
    /// Besides, every op must exist and take its operands.
    Ops,
}

/// The laws of the dialects of a registry.
pub struct Laws<'a> {
    registry: &'a Registry,
    strictness: Strictness,
    /// Whether some row or type has laws of its own.
    has_declared: bool,
    /// What is known of kinds whose rows need no check of each op.
    known: RefCell<HashMap<Symbol, Option<Structure>>>,
}

impl<'a> Laws<'a> {
    /// The laws of a registry's dialects.
    pub fn new(registry: &'a Registry, strictness: Strictness) -> Laws<'a> {
        Laws { registry, strictness, has_declared: registry.has_declared(), known: RefCell::default() }
    }
}

impl DialectLaws for Laws<'_> {
    fn check(&self, graph: &Graph, op: OpId, report: &mut Violations) {
        if self.has_declared {
            self.types(graph, op, report);
        }
        let kind = graph.kind(op);
        let known = self.known.borrow().get(&kind).copied();
        if let Some(structure) = known {
            return shape(graph, op, structure, report);
        }
        let overloads = self.registry.overloads(kind);
        let Some(first) = overloads.first() else {
            if self.strictness == Strictness::Carry {
                self.known.borrow_mut().insert(kind, None);
            }
            self.unknown(graph, op, report);
            return;
        };
        if self.strictness != Strictness::Ops && !first.def().declared {
            let structure = first.def().structure();
            self.known.borrow_mut().insert(kind, structure);
            return shape(graph, op, structure, report);
        }
        match resolve(self.registry, graph, op) {
            Err(_) => report.push(graph, op, no_overload(graph, op, overloads)),
            Ok(row) => {
                results(graph, op, &row, report);
                if row.def().declared || !row.def().laws.is_empty() {
                    demands(self.registry, graph, op, &row, report);
                }
            }
        }
    }
}

impl Laws<'_> {
    fn unknown(&self, graph: &Graph, op: OpId, report: &mut Violations) {
        let kind = graph.kind(op);
        let dialect = kind.namespace();
        if self.registry.has_dialect(dialect) {
            // A dialect that a file declares is known whole.
            let declared =
                self.registry.iter().any(|op| op.def().declared && op.name().namespace() == dialect);
            if self.strictness == Strictness::Ops || declared && self.strictness == Strictness::Dialects {
                let mut error = self.registry.unknown(kind);
                error.report_mut().kind = ErrorKind::Verify;
                report.push(graph, op, error);
            }
        } else if self.strictness != Strictness::Carry {
            let error = Diagnostic::verify(format!("{kind}: the dialect '{dialect}' is not registered"));
            let error = match nearest(dialect, self.registry.dialects()) {
                Some(near) => error.hint(format!("did you mean '{near}'?")),
                None => error,
            };
            let advice = "--dialect FILE declares a dialect, --allow-unregistered-dialect allows ops of unregistered dialects";
            report.push(graph, op, error.hint(advice));
        }
    }

    /// Types of results must be declared, with parameters that fit.
    fn types(&self, graph: &Graph, op: OpId, report: &mut Violations) {
        for result in graph.results(op) {
            if let Err(error) = check_type(self.registry, graph.ty(result)) {
                report.push(graph, op, error);
            }
        }
    }
}

fn shape(graph: &Graph, op: OpId, structure: Option<Structure>, report: &mut Violations) {
    if structure == Some(Structure::Kernel) {
        if let Err((at, error)) = loops::verify(graph, op) {
            report.push(graph, at, error);
        }
    } else if let Some(message) = structure.and_then(|structure| structure.violation(graph, op)) {
        report.error(graph, op, message);
    }
}

/// Checks a type of a dialect that a file declares; other types pass.
pub fn check_type(registry: &Registry, ty: &Type) -> Result<(), Diagnostic> {
    let TypeKind::Dialect(dialect, name, parameters) = ty.kind() else { return Ok(()) };
    let full = Symbol::new(&format!("{dialect}.{name}"));
    let Some(declaration) = registry.declared_type(full) else {
        let prefix = format!("{dialect}.");
        let known: Vec<&str> = registry
            .declared_types()
            .map(|t| t.name.as_str())
            .filter(|name| name.starts_with(&prefix))
            .collect();
        if known.is_empty() {
            return Ok(());
        }
        let error = Diagnostic::verify(format!("there is no type {full}"));
        return Err(match nearest(full.as_str(), known.iter().copied()) {
            Some(near) => error.hint(format!("did you mean {near}?")),
            None => error.note(format!("the dialect declares {}", known.join(", "))),
        });
    };
    let values: Vec<Attr> = parameters.iter().map(parameter_value).collect();
    declaration.check(&values).map_err(|why| Diagnostic::verify(format!("type {why}")))
}

fn type_list(graph: &Graph, values: &[ValueId]) -> String {
    values.iter().map(|v| graph.ty(*v).to_string()).collect::<Vec<_>>().join(", ")
}

/// No overload takes the operands: says what was expected and what stands there.
fn no_overload(graph: &Graph, op: OpId, overloads: &[Op]) -> Diagnostic {
    let kind = graph.kind(op);
    let operands = graph.operands(op);
    let got = type_list(graph, operands);
    if let [only] = overloads
        && let Ok(schema) = only.schema()
    {
        let expected = schema.arguments.len();
        if operands.len() != expected && !schema.is_vararg {
            let message = format!("{kind} takes {expected} operands, not {}", operands.len());
            return Diagnostic::verify(message).note(format!("its schema is {}", only.schema_text()));
        }
        for (n, (argument, operand)) in schema.arguments.iter().zip(operands).enumerate() {
            if !super::fit::takes(&argument.ty, graph.ty(*operand)) {
                let message = format!(
                    "{kind}: operand {n} ('{}') must be {}, not {}",
                    argument.name,
                    argument.ty,
                    graph.ty(*operand)
                );
                return Diagnostic::verify(message).note(format!("its schema is {}", only.schema_text()));
            }
        }
    }
    let error = Diagnostic::verify(format!("{kind}: no overload takes operands of types ({got})"));
    overloads.iter().take(8).fold(error, |e, o| e.note(format!("there is {}", o.schema_text())))
}

/// The results must be as many as the schema says, and of its types.
fn results(graph: &Graph, op: OpId, row: &Op, report: &mut Violations) {
    let Ok(schema) = row.schema() else { return };
    if schema.is_varret {
        return;
    }
    let kind = graph.kind(op);
    let (expected, got) = (schema.returns.len(), graph.result_count(op));
    if expected != got {
        let error = Diagnostic::verify(format!("{kind} has {expected} results, not {got}"));
        report.push(graph, op, error.note(format!("its schema is {}", row.schema_text())));
        return;
    }
    if !row.def().declared {
        return;
    }
    for (n, (declared, result)) in schema.returns.iter().zip(graph.results(op)).enumerate() {
        if !super::fit::takes(&declared.ty, graph.ty(result)) {
            let message = format!("{kind}: result {n} must be {}, not {}", declared.ty, graph.ty(result));
            let error = Diagnostic::verify(message);
            report.push(graph, op, error.note(format!("its schema is {}", row.schema_text())));
        }
    }
}

/// What the row demands besides its schema.
fn demands(registry: &Registry, graph: &Graph, op: OpId, row: &Op, report: &mut Violations) {
    let kind = graph.kind(op);
    let def = row.def();
    let mut blocks = 0;
    for law in def.laws {
        match law {
            Law::Structure(structure) => {
                if let Structure::Regions(regions) = structure {
                    blocks = regions.len();
                }
                shape(graph, op, Some(*structure), report);
            }
            Law::Blocks(n) => blocks = *n,
            Law::SameType => same_type(graph, op, report),
            Law::Attribute(parameter) => attribute(registry, graph, op, parameter, report),
        }
    }
    let got = graph.nested_blocks(op).len();
    if def.declared && got != blocks {
        report.error(graph, op, format!("{kind} has {blocks} blocks, not {got}"));
    }
    if !def.declared {
        return;
    }
    let names: Vec<&str> = def
        .laws
        .iter()
        .filter_map(|law| if let Law::Attribute(p) = law { Some(p.name.as_str()) } else { None })
        .collect();
    for (name, _) in graph.attrs(op) {
        if !names.contains(&name.as_str()) && *name != NOT_LOWERED {
            let error = Diagnostic::verify(format!("{kind} has no attribute '{name}'"));
            report.push(
                graph,
                op,
                match nearest(name.as_str(), names.iter().copied()) {
                    Some(near) => error.hint(format!("did you mean '{near}'?")),
                    None if names.is_empty() => error.note("it has no attributes at all"),
                    None => error.note(format!("its attributes are {}", names.join(", "))),
                },
            );
        }
    }
}

fn attribute(registry: &Registry, graph: &Graph, op: OpId, wanted: &Parameter, report: &mut Violations) {
    let kind = graph.kind(op);
    let Some(value) = graph.attr(op, wanted.name.as_str()) else {
        if wanted.default.is_none() {
            report.error(graph, op, format!("{kind} needs the attribute {}", wanted.to_text()));
        }
        return;
    };
    if let Err(why) = wanted.check(value) {
        report.error(graph, op, format!("{kind}: attribute '{}' {why}", wanted.name));
        return;
    }
    if let super::constraint::ParameterKind::Declared(name) = &wanted.kind
        && let Some(declaration) = registry.declared_attribute(*name)
        && let Attr::Raw(text) = value
        && let Err(why) = declaration.check(&raw_parameters(text))
    {
        report.error(graph, op, format!("{kind}: attribute '{}': {why}", wanted.name));
    }
}

/// `#quant.rounding<"even", 3>` → `"even"`, `3`.
fn raw_parameters(text: &str) -> Vec<Attr> {
    let inside =
        text.split_once('<').and_then(|(_, rest)| rest.rsplit_once('>')).map_or("", |(inner, _)| inner);
    let parts = inside.split(',').map(str::trim).filter(|p| !p.is_empty());
    parts
        .map(|part| match (part.strip_prefix('"').and_then(|p| p.strip_suffix('"')), part.parse::<i64>()) {
            (Some(text), _) => Attr::Str(text.into()),
            (_, Ok(n)) => Attr::Int(n),
            _ => match (part, part.parse::<f64>()) {
                ("true" | "false", _) => Attr::Bool(part == "true"),
                (_, Ok(x)) => Attr::Float(x),
                _ => crate::ir::parse_type(part).map_or_else(|_| Attr::Raw(part.into()), Attr::Type),
            },
        })
        .collect()
}

/// Dtypes and sizes that are known must agree.
fn same_type(graph: &Graph, op: OpId, report: &mut Violations) {
    let values: Vec<ValueId> = graph.operands(op).iter().copied().chain(graph.results(op)).collect();
    let tensors = values.iter().filter_map(|v| match graph.ty(*v).kind() {
        TypeKind::Tensor(t) => Some((*v, t)),
        _ => None,
    });
    let tensors: Vec<_> = tensors.collect();
    for pair in tensors.windows(2) {
        let [(first, a), (second, b)] = pair else { continue };
        let dtypes = a.dtype.is_some() && b.dtype.is_some() && a.dtype != b.dtype;
        let sizes = match (&a.sizes, &b.sizes) {
            (Some(a), Some(b)) => {
                a.len() != b.len()
                    || a.iter()
                        .zip(b.iter())
                        .any(|(x, y)| x.known().is_some() && y.known().is_some() && x.known() != y.known())
            }
            _ => false,
        };
        if dtypes || sizes {
            report.error(
                graph,
                op,
                format!(
                    "{}: operands and results must have one type, but %{} is {} and %{} is {}",
                    graph.kind(op),
                    graph.display_name(*first),
                    graph.ty(*first),
                    graph.display_name(*second),
                    graph.ty(*second)
                ),
            );
            return;
        }
    }
}
