//! Kernels over memory that the host does not see: they are interpreted, and are steps of work that is recorded. Knows no library.

use super::memory::{OwnMemory, own};
use crate::backends::interp::Interp;
use crate::backends::{Backend, Executable, Launch, Memory};
use crate::diag::{Diagnostic, Result};
use crate::dialects::loops::Kernel;
use crate::tensor::DeviceBuffer;
use std::sync::Arc;

/// A kernel that is interpreted over this memory.
pub(super) fn interpreted(memory: &OwnMemory, kernel: &Kernel) -> Result<Arc<dyn Executable>> {
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
    #[expect(
        unsafe_code,
        reason = "implements an unsafe method: the caller's promise of spans and apartness is the inner kernel's, over the same spans"
    )]
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
