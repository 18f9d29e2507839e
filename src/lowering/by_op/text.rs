//! A lowering as text: a loop function in a dialect file. What its parameters are given follows from their names.
//!
//! `%out` is the result (`%out0`, `%out1` of several); `%self` is the operand of that name, a contiguous tensor where the
//! parameter is a buffer and a number otherwise; `%self.numel` and `%self.size0` are sizes of it, and `%out.numel` of the result.

use super::{Lowering, OpCall, Ops, Rewriter};
use crate::diag::{Diagnostic, Result, Source, Span, nearest};
use crate::dialects::Op;
use crate::dialects::loops::{self, Elem, Ty};
use crate::ir::{Graph, ParseOptions, Schema, Type, TypeKind, ValueId, parse_graph_source};

/// A loop function of a dialect file, for one op and the element types that it is written for.
pub struct TextLowering {
    name: String,
    op: String,
    graph: Graph,
    /// Where each argument of the kernel comes from.
    given: Vec<Given>,
    results: usize,
    span: Span,
}

/// What a parameter is given.
#[derive(Clone, Debug, PartialEq)]
enum Given {
    Result(usize, Elem),
    Tensor(String, Elem),
    Number(String),
    Numel(Tensor),
    Size(Tensor, usize),
}

/// What a size is asked of.
#[derive(Clone, Debug, PartialEq)]
enum Tensor {
    Result(usize),
    Operand(String),
}

impl TextLowering {
    /// Reads the n-th lowering of an op. The error names the parameter that nothing is given for, or what is wrong with the graph.
    pub fn new(op: &Op, n: usize, text: &str, span: &Span) -> Result<TextLowering> {
        let (line, _) = span.line_column();
        let source = Source::starting_at(span.source().name(), text, line);
        let graph = parse_graph_source(&source, &ParseOptions::default()).map_err(|mut errors| {
            if errors.is_empty() { Diagnostic::internal("no error") } else { errors.remove(0) }
        })?;
        let kernel = loops::decode(&graph).map_err(|error| error.at(span))?;
        let schema = op.schema()?;
        let mut given = Vec::new();
        for (param, value) in kernel.params.iter().zip(graph.inputs()) {
            given.push(meant(schema, &graph.display_name(*value), param.ty).map_err(|error| error.at(span))?);
        }
        let results = schema.returns.len();
        for result in 0..results {
            let stored =
                kernel.params.iter().zip(&given).any(|(param, given)| {
                    param.written && matches!(given, Given::Result(n, _) if *n == result)
                });
            if !stored {
                let message = format!(
                    "the lowering of {} does not store to %{}",
                    op.full_name(),
                    out_name(schema, result)
                );
                return Err(Diagnostic::verify(message).at(span));
            }
        }
        let foreign = kernel
            .params
            .iter()
            .zip(&given)
            .find(|(param, given)| param.written && !matches!(given, Given::Result(..)));
        if foreign.is_some() {
            return Err(Diagnostic::verify(format!(
                "the lowering of {} stores to an operand",
                op.full_name()
            ))
            .at(span));
        }
        let name = format!("{}.lowering{n}", op.full_name().replace("::", "."));
        Ok(TextLowering { name, op: op.full_name().to_string(), graph, given, results, span: span.clone() })
    }

    /// Where it stands.
    pub fn span(&self) -> &Span {
        &self.span
    }
}

fn out_name(schema: &Schema, n: usize) -> String {
    if schema.returns.len() == 1 { "out".to_string() } else { format!("out{n}") }
}

/// What a parameter of this name and type is given.
fn meant(schema: &Schema, name: &str, ty: Ty) -> Result<Given> {
    let results: Vec<String> = (0..schema.returns.len()).map(|n| out_name(schema, n)).collect();
    let operand = |name: &str| schema.arguments.iter().find(|a| a.name == name);
    let tensor = |name: &str| match results.iter().position(|out| out == name) {
        Some(n) => Some(Tensor::Result(n)),
        None => operand(name).filter(|a| is_tensor(&a.ty)).map(|_| Tensor::Operand(name.to_string())),
    };
    let number = |ty: &Type| {
        matches!(
            ty.kind(),
            TypeKind::Int | TypeKind::Float | TypeKind::Bool | TypeKind::Number | TypeKind::SymInt
        )
    };
    let found = match (ty, name.rsplit_once('.')) {
        (Ty::Buffer(elem), _) => match tensor(name) {
            Some(Tensor::Result(n)) => Some(Given::Result(n, elem)),
            Some(Tensor::Operand(name)) => Some(Given::Tensor(name, elem)),
            None => None,
        },
        (Ty::Scalar(Elem::I64), Some((of, "numel"))) => tensor(of).map(Given::Numel),
        (Ty::Scalar(Elem::I64), Some((of, what))) if what.starts_with("size") => {
            what["size".len()..].parse().ok().and_then(|dim| Some(Given::Size(tensor(of)?, dim)))
        }
        (Ty::Scalar(_), _) => {
            operand(name).filter(|a| number(&a.ty)).map(|a| Given::Number(a.name.to_string()))
        }
    };
    found.ok_or_else(|| {
        let error = Diagnostic::verify(format!("nothing is given for the parameter %{name} of a lowering"));
        let known = schema.arguments.iter().map(|a| a.name.as_str()).chain(results.iter().map(String::as_str));
        match nearest(name, known) {
            Some(near) if near != name => error.hint(format!("did you mean %{near}?")),
            _ => error.hint("a buffer is %out or a tensor of the schema; a number is one of the schema, %NAME.numel or %NAME.size0"),
        }
    })
}

fn is_tensor(ty: &Type) -> bool {
    match ty.kind() {
        TypeKind::Optional(inner) => inner.is_tensor(),
        _ => ty.is_tensor(),
    }
}

impl Lowering for TextLowering {
    fn name(&self) -> &str {
        &self.name
    }

    fn ops(&self) -> Ops {
        Ops::named(&self.op)
    }

    fn lower(&self, call: &OpCall, rewriter: &mut Rewriter<'_>) -> Result<Vec<ValueId>> {
        let mut made: Vec<Option<ValueId>> = vec![None; self.results];
        let mut tensors: Vec<(&str, ValueId)> = Vec::new();
        for given in &self.given {
            match given {
                Given::Result(n, elem) => {
                    if let Ok(other) = call.result_elem(*n)
                        && other != *elem
                    {
                        return Err(Diagnostic::unsupported(format!(
                            "gives {}, not {}",
                            elem.name(),
                            other.name()
                        )));
                    }
                    let sizes = rewriter.result_sizes(call, *n)?;
                    made[*n] = Some(rewriter.empty(&sizes, elem.dtype())?);
                }
                Given::Tensor(name, elem) => {
                    let other = call.elem(name)?;
                    if other != *elem {
                        let message = format!("takes '{name}' of {}, not {}", elem.name(), other.name());
                        return Err(Diagnostic::unsupported(message));
                    }
                    tensors.push((name, rewriter.contiguous(call.operand(name)?)?));
                }
                Given::Number(_) | Given::Numel(_) | Given::Size(..) => {}
            }
        }
        let of = |tensor: &Tensor| match tensor {
            Tensor::Result(n) => made
                .get(*n)
                .copied()
                .flatten()
                .ok_or_else(|| Diagnostic::internal("a result that was not made")),
            Tensor::Operand(name) => call.operand(name),
        };
        let mut arguments = Vec::new();
        for given in &self.given {
            arguments.push(match given {
                Given::Result(n, _) => of(&Tensor::Result(*n))?,
                Given::Tensor(name, _) => tensors
                    .iter()
                    .find(|(other, _)| other == name)
                    .map_or_else(|| call.operand(name), |(_, value)| Ok(*value))?,
                Given::Number(name) => call.operand(name)?,
                Given::Numel(tensor) => {
                    let tensor = of(tensor)?;
                    rewriter.numel(tensor)?
                }
                Given::Size(tensor, dim) => {
                    if let Tensor::Operand(name) = tensor
                        && call.rank(name)? <= *dim
                    {
                        return Err(Diagnostic::unsupported(format!("'{name}' has no dimension {dim}")));
                    }
                    let tensor = of(tensor)?;
                    rewriter.size(tensor, *dim)?
                }
            });
        }
        let stored = rewriter.launch(&self.name, self.graph.clone(), &arguments)?;
        // The kernel stores to its results in the order of its parameters.
        let order = self
            .given
            .iter()
            .filter_map(|given| if let Given::Result(n, _) = given { Some(*n) } else { None });
        let mut results: Vec<(usize, ValueId)> = order.zip(stored).collect();
        results.sort_by_key(|(n, _)| *n);
        Ok(results.into_iter().map(|(_, value)| value).collect())
    }
}
