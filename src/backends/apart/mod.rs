//! An emulated device with memory of its own: kernels are interpreted, and what libraries compute is computed by plain
//! loops. It shows without a GPU what a GPU is asked for, in tests and to authors of backends; slow, and right.

mod loops;
mod memory;

use super::interp::Interp;
use super::library::{self, Machine};
use super::{Backend, Executable, Launch, LibraryOp, Memory, Recorded, RecordedWork};
use crate::diag::{Diagnostic, Result};
use crate::dialects::Op;
use crate::dialects::loops::Kernel;
use crate::lowering::Target;
use crate::tensor::{DeviceBuffer, DeviceMemory};
use loops::Loops;
use memory::{OwnMemory, own};
use std::sync::Arc;

/// The device, which counts what crosses its border.
#[derive(Default)]
pub struct Apart {
    machine: Arc<Loops>,
}

impl Apart {
    /// How many pieces of memory were copied to the device and back so far.
    pub fn copies(&self) -> [u64; 2] {
        self.machine.memory.copies()
    }
}

impl Backend for Apart {
    fn name(&self) -> &'static str {
        "apart"
    }

    fn target(&self) -> Target {
        Target::Gpu
    }

    fn memory(&self) -> Option<Arc<dyn DeviceMemory>> {
        Some(Arc::new(self.machine.memory.clone()))
    }

    fn library(&self, op: &Op) -> Option<Arc<dyn LibraryOp>> {
        let machine = Arc::clone(&self.machine) as Arc<dyn Machine>;
        library::for_op(&machine, op)
    }

    fn record(
        &self,
        inputs: &[usize],
        work: &mut RecordedWork<'_>,
    ) -> Result<Result<Arc<dyn Recorded>, String>> {
        self.machine.memory.record(inputs, work)
    }

    fn compile(&self, kernel: &Kernel) -> Result<Arc<dyn Executable>> {
        interpreted(&self.machine.memory, kernel)
    }
}

fn interpreted(memory: &OwnMemory, kernel: &Kernel) -> Result<Arc<dyn Executable>> {
    Ok(Arc::new(Interpreted { inner: Interp.compile(kernel)?, memory: memory.clone() }))
}

struct Interpreted {
    inner: Arc<dyn Executable>,
    memory: OwnMemory,
}

/// Memory of a launch that is open.
enum Open<'a> {
    Read(parking_lot::RwLockReadGuard<'a, Vec<u8>>),
    Write(parking_lot::RwLockWriteGuard<'a, Vec<u8>>),
}

impl Executable for Interpreted {
    #[allow(unsafe_code, reason = "hands on what it is given")]
    unsafe fn run(&self, launch: &mut Launch<'_>) -> Result<()> {
        if !launch.memory.iter().any(|memory| matches!(memory, Memory::Device(..))) {
            // SAFETY: the caller's promise.
            return unsafe { self.inner.run(launch) };
        }
        let mut buffers = Vec::with_capacity(launch.memory.len());
        for memory in &launch.memory {
            match memory {
                Memory::Device(buffer, written) => buffers.push((Arc::clone(buffer), *written)),
                _ => return Err(Diagnostic::internal("memory of a device beside memory of the host")),
            }
        }
        let (inner, args, grain) = (Arc::clone(&self.inner), launch.args.to_vec(), launch.grain);
        let step = move || {
            let mut open = Vec::with_capacity(buffers.len());
            for (buffer, written) in &buffers {
                let bytes = &own(&**buffer as &dyn DeviceBuffer)?.bytes;
                open.push(match written {
                    true => Open::Write(bytes.write()),
                    false => Open::Read(bytes.read_recursive()),
                });
            }
            let memory = open.iter_mut().map(|open| match open {
                Open::Read(bytes) => Memory::Read(bytes),
                Open::Write(bytes) => Memory::Write(bytes),
            });
            let mut launch = Launch { memory: memory.collect(), args: args.as_slice().into(), grain };
            // SAFETY: the caller's promise, of the same arguments over the memory that they stand for, which is kept.
            unsafe { inner.run(&mut launch) }
        };
        step()?;
        self.memory.step(step);
        Ok(())
    }
}
