//! Compiling before the first call: where types determine what groups are called with, their kernels are compiled side by side,
//! on all threads, instead of one after the other when each is reached. What cannot be foreseen is compiled when it is met, and
//! errors are left to the call that meets them.

use super::cache::kernel_bytes;
use super::{Backend, Executable, FusedGroup, ProgramRunner};
use crate::diag::{ErrorKind, Result};
use crate::dialects::Registry;
use crate::dialects::loops::{self, Kernel};
use crate::lowering::{self, InputSig, Key, Plan};
use crate::resources::pool;
use crate::tensor::Layout;
use hashbrown::{HashMap, HashSet};
use std::sync::Arc;

/// A group with what it will be called with.
pub struct Foreseen {
    /// The group.
    pub group: Arc<FusedGroup>,
    /// Kinds and dtypes of its inputs.
    pub inputs: Vec<InputSig>,
    /// Of inputs that are tensors.
    pub layouts: Vec<Option<Layout>>,
}

/// A kernel that some group will need.
struct Wanted<'a> {
    group: &'a FusedGroup,
    runner: Arc<ProgramRunner>,
    key: Key,
    /// Which of the kernels.
    kernel: usize,
}

/// Compiles what the groups need, each kernel once.
pub fn compile_ahead(groups: &[Foreseen], registry: &Registry) {
    let mut kernels: Vec<(Kernel, Arc<dyn Backend>)> = Vec::new();
    let mut known: HashMap<Vec<u8>, usize> = HashMap::new();
    let mut wanted = Vec::new();
    for foreseen in groups.iter().filter(|foreseen| foreseen.group.is_worth_compiling(&foreseen.layouts)) {
        // The call itself finds out what is wrong.
        let Ok(found) = kernels_of(foreseen, registry) else { continue };
        for (runner, key, kernel) in found {
            let n = *known.entry(kernel_bytes(&kernel)).or_insert_with(|| {
                kernels.push((kernel, Arc::clone(foreseen.group.backend())));
                kernels.len() - 1
            });
            wanted.push(Wanted { group: &foreseen.group, runner, key, kernel: n });
        }
    }
    let compile = |n: usize| {
        let (kernel, backend) = &kernels[n];
        backend.compile(kernel)
    };
    // Without room for the results the calls compile by themselves.
    let Ok(compiled) = pool::map(kernels.len(), compile) else { return };
    for Wanted { group, runner, key, kernel } in wanted {
        settle(group, &runner, key, &compiled[kernel]);
    }
}

fn settle(group: &FusedGroup, runner: &ProgramRunner, key: Key, compiled: &Result<Arc<dyn Executable>>) {
    match compiled {
        Err(error) if error.kind() != ErrorKind::Unsupported => {}
        compiled => group.keep(runner, key, compiled.clone()),
    }
}

/// The kernels of a call that the group does not have yet.
fn kernels_of(foreseen: &Foreseen, registry: &Registry) -> Result<Vec<(Arc<ProgramRunner>, Key, Kernel)>> {
    let Foreseen { group, inputs, layouts } = foreseen;
    let runner = group.specialized(inputs.iter().copied().collect(), registry)?;
    let plan = Plan::new(runner.program(), layouts)?;
    let (mut out, mut seen) = (Vec::new(), HashSet::new());
    for part in &plan.parts {
        let key = part.key();
        if runner.has(&key) || !seen.insert(key.clone()) {
            continue;
        }
        let graph = lowering::lower(&part.nest(runner.program()), group.backend().target())?;
        out.push((Arc::clone(&runner), key, loops::decode(&graph)?));
    }
    Ok(out)
}
