//! What a group records of the kernels that `lower-fusion` made of it: their functions in the attribute `kernels`, and what
//! they were made for in `lowered_for`. By these two the runtime of the group finds kernels that fit a call, after passes have
//! changed them too.

use super::{InputSig, Key, Part, RowStore, Stride, Target};
use crate::diag::{Diagnostic, Result};
use crate::ir::{Attr, Graph, Module, OpId, Symbol};
use std::fmt::Write;
use std::sync::Arc;

const KERNELS: &str = "kernels";
const MADE_FOR: &str = "lowered_for";

/// The kernels of a group that stand in its module.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// The machine that their parameters are meant for.
    pub target: Target,
    /// Names and graphs, one a launch.
    pub kernels: Vec<(Symbol, Arc<Graph>)>,
    made_for: Vec<String>,
}

impl Lowered {
    /// What a group records; None where it was not lowered. Fails where the module lacks one of the functions or the
    /// record is incomplete.
    pub fn of(graph: &Graph, op: OpId, module: &Module) -> Result<Option<Lowered>> {
        let texts = |name: &str| match graph.attr(op, name) {
            Some(Attr::Strs(texts)) => texts.to_vec(),
            _ => Vec::new(),
        };
        if graph.attr(op, KERNELS).is_none() {
            return Ok(None);
        }
        let made_for: Vec<String> = texts(MADE_FOR).iter().map(|text| text.to_string()).collect();
        let target = match made_for.first().map(String::as_str) {
            Some("cpu") => Target::Cpu,
            Some("gpu") => Target::Gpu,
            _ => return Err(Diagnostic::verify(format!("a group has `{KERNELS}` without `{MADE_FOR}`"))),
        };
        let mut kernels = Vec::new();
        for name in texts(KERNELS) {
            let function = module.function(&name).ok_or_else(|| {
                Diagnostic::verify(format!(
                    "a group names the kernel '{name}', which the module does not have"
                ))
            })?;
            kernels.push((function.name, Arc::new(function.graph.clone())));
        }
        Ok(Some(Lowered { target, kernels, made_for }))
    }

    /// Whether the kernels are those of a call with such inputs, which is planned as these parts.
    pub fn fits(&self, inputs: &[InputSig], parts: &[Part]) -> bool {
        self.kernels.len() == parts.len() && self.made_for == made_for(self.target, inputs, parts)
    }
}

/// Whether a group was lowered.
pub fn is_lowered(graph: &Graph, op: OpId) -> bool {
    graph.attr(op, KERNELS).is_some()
}

/// Records the names of a group's kernels.
pub(super) fn record(graph: &mut Graph, op: OpId, names: &[Symbol], made_for: &[String]) {
    let texts = |all: &mut dyn Iterator<Item = &str>| Attr::Strs(all.map(Arc::from).collect());
    graph.set_attr(op, KERNELS, texts(&mut names.iter().map(|name| name.as_str())));
    graph.set_attr(op, MADE_FOR, texts(&mut made_for.iter().map(String::as_str)));
}

/// The machine, the inputs, and of each launch what its kernel is specialized for.
pub(super) fn made_for(target: Target, inputs: &[InputSig], parts: &[Part]) -> Vec<String> {
    let machine = if target == Target::Gpu { "gpu" } else { "cpu" };
    let inputs: Vec<String> = inputs.iter().map(input_text).collect();
    let parts = parts.iter().map(|part| key_text(&part.key()));
    [machine.to_string(), inputs.join(" ")].into_iter().chain(parts).collect()
}

/// `float32`, `float32()` for a tensor without dimensions, `int`.
fn input_text(input: &InputSig) -> String {
    match input {
        InputSig::Tensor(dtype, true) => dtype.name().to_string(),
        InputSig::Tensor(dtype, false) => format!("{}()", dtype.name()),
        InputSig::Int => "int".into(),
        InputSig::Float => "float".into(),
        InputSig::Bool => "bool".into(),
    }
}

/// The pieces that are stored, then the strides of each buffer, dimension by dimension: 0, 1 or n for any. Then the stores whose
/// buffers are read too. With rows follow the stores: e for its elements, r for one number a row, s for sums of blocks of rows.
fn key_text(key: &Key) -> String {
    let pieces: Vec<String> = key.pieces.iter().map(usize::to_string).collect();
    let mut out = format!("{}:", pieces.join("+"));
    for access in key.pattern.chunks(key.rank.max(1)) {
        out.push(' ');
        out.extend(access.iter().map(|stride| match stride {
            Stride::Zero => '0',
            Stride::One => '1',
            Stride::Dynamic => 'n',
        }));
    }
    if !key.in_place.is_empty() {
        let stores: Vec<String> = key.in_place.iter().map(usize::to_string).collect();
        let _ = write!(out, " in place {}", stores.join("+"));
    }
    if let Some(rows) = &key.rows {
        let letter = |store: &RowStore| match store {
            RowStore::Elements => 'e',
            RowStore::Number => 'r',
            RowStore::Sums => 's',
        };
        let stores: String = rows.iter().map(letter).collect();
        let _ = write!(out, " rows {stores}");
    }
    out
}
