//! The code of functions that are kernels of the `loop` dialect: one step that runs the kernel, and a return of the tensors that
//! it stores to. It knows nothing of loops.

use super::code::{Action, Code, Context, NO_OP, Operand, Register, Step};
use crate::backends::KernelFunction;
use crate::diag::Result;
use crate::ir::{Graph, LocationId};
use hashbrown::HashMap;

/// The code of a function that is a kernel: it gives the tensors that the kernel stores to.
pub(super) fn code(context: Context<'_>, graph: &Graph, name: &str) -> Result<Code> {
    let kernel = KernelFunction::new(graph, context.backend()?)?;
    let parameters: Vec<Register> = (0..graph.inputs().len() as u32).collect();
    let written: Vec<Register> = kernel.written().map(|n| n as Register).collect();
    let step = |action, operands: &[Register], results: &[Register]| Step {
        action,
        operands: operands.iter().map(|register| Operand::Keep(*register)).collect(),
        results: results.into(),
        location: LocationId::UNKNOWN,
        op: NO_OP,
        nested: false,
        anchored: true,
    };
    let steps =
        vec![step(Action::Kernel(Box::new(kernel)), &parameters, &[]), step(Action::Return, &written, &[])];
    Ok(Code {
        name: name.rsplit('.').next().unwrap_or(name).to_string(),
        graph: None,
        steps,
        constants: Vec::new(),
        registers: parameters.len(),
        parameters,
        sites: HashMap::new(),
        guards: Vec::new(),
    })
}
