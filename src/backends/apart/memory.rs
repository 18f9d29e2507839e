//! Memory that the host does not see, what crosses its border, and work over it that is recorded.

use crate::backends::{Recorded, RecordedWork};
use crate::diag::{Diagnostic, Result};
use crate::resources::memory;
use crate::tensor::{DeviceBuffer, DeviceMemory};
use parking_lot::{ReentrantMutex, RwLock};
use std::any::Any;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// One step of recorded work.
type Step = Box<dyn Fn() -> Result<()> + Send + Sync>;

/// Work that is being recorded.
#[derive(Default)]
struct Tape {
    steps: Vec<Step>,
    /// Buffers that were made meanwhile, by their addresses.
    made: Vec<usize>,
    refused: bool,
}

/// The memory.
#[derive(Clone, Default)]
pub(super) struct OwnMemory(Arc<Inner>);

#[derive(Default)]
struct Inner {
    up: AtomicU64,
    down: AtomicU64,
    /// Held by the thread that records.
    tape: ReentrantMutex<RefCell<Option<Tape>>>,
}

/// A piece of it.
pub(super) struct OwnBuffer {
    pub(super) bytes: RwLock<Vec<u8>>,
    nbytes: usize,
    memory: OwnMemory,
}

impl OwnMemory {
    /// How many pieces were copied to the device and back so far.
    pub(super) fn copies(&self) -> [u64; 2] {
        [&self.0.up, &self.0.down].map(|n| n.load(Ordering::Relaxed))
    }

    /// Adds a step to work that is being recorded.
    pub(super) fn step(&self, step: impl Fn() -> Result<()> + Send + Sync + 'static) {
        if let Some(tape) = self.0.tape.lock().borrow_mut().as_mut() {
            tape.steps.push(Box::new(step));
        }
    }

    fn buffer(&self, nbytes: usize) -> Result<Arc<dyn DeviceBuffer>> {
        let bytes = memory::filled(nbytes, 0xcd)?.into_vec();
        let buffer = Arc::new(OwnBuffer { bytes: RwLock::new(bytes), nbytes, memory: self.clone() });
        if let Some(tape) = self.0.tape.lock().borrow_mut().as_mut() {
            tape.made.push(Arc::as_ptr(&buffer) as usize);
        }
        Ok(buffer)
    }

    fn refuse_recording(&self) -> Result<()> {
        match self.0.tape.lock().borrow_mut().as_mut() {
            Some(tape) => {
                tape.refused = true;
                Err(Diagnostic::unsupported("recorded work cannot copy between host and device"))
            }
            None => Ok(()),
        }
    }

    /// Records work; see [`crate::backends::Backend::record`].
    pub(super) fn record(
        &self,
        inputs: &[usize],
        work: &mut RecordedWork<'_>,
    ) -> Result<Result<Arc<dyn Recorded>, String>> {
        let tape = self.0.tape.lock();
        let inputs = inputs.iter().map(|nbytes| self.buffer(*nbytes)).collect::<Result<Vec<_>>>()?;
        if tape.borrow().is_some() {
            return Ok(Err("it is part of work that is being recorded".to_string()));
        }
        tape.replace(Some(Tape::default()));
        let outputs = work(&inputs);
        let Some(done) = tape.take() else {
            return Err(Diagnostic::internal("work that was being recorded is gone"));
        };
        let outputs = match (outputs, done.refused) {
            (Ok(outputs), false) => outputs,
            (Err(error), _) => return Ok(Err(error.message().to_string())),
            (Ok(_), true) => return Ok(Err("it copies between host and device".to_string())),
        };
        let made =
            |buffer: &Arc<dyn DeviceBuffer>| done.made.contains(&(Arc::as_ptr(buffer) as *const u8 as usize));
        if !outputs.iter().all(made) {
            return Ok(Err("it gives what was there before".to_string()));
        }
        Ok(Ok(Arc::new(Replay { memory: self.clone(), steps: done.steps, inputs, outputs })))
    }
}

/// Recorded work.
struct Replay {
    memory: OwnMemory,
    steps: Vec<Step>,
    inputs: Vec<Arc<dyn DeviceBuffer>>,
    outputs: Vec<Arc<dyn DeviceBuffer>>,
}

impl Recorded for Replay {
    fn replay(&self, inputs: &[Arc<dyn DeviceBuffer>]) -> Result<Vec<Arc<dyn DeviceBuffer>>> {
        // One call at a time: the buffers are the same in all of them.
        let _alone = self.memory.0.tape.lock();
        for (from, to) in inputs.iter().zip(&self.inputs) {
            copy(&**from, &**to)?;
        }
        self.steps.iter().try_for_each(|step| step())?;
        let fresh = |buffer: &Arc<dyn DeviceBuffer>| {
            let out = self.memory.buffer(buffer.nbytes())?;
            copy(&**buffer, &*out)?;
            Ok(out)
        };
        self.outputs.iter().map(fresh).collect()
    }
}

fn copy(from: &dyn DeviceBuffer, to: &dyn DeviceBuffer) -> Result<()> {
    let from = own(from)?.bytes.read_recursive();
    own(to)?.bytes.write().copy_from_slice(&from);
    Ok(())
}

impl DeviceMemory for OwnMemory {
    fn allocate(&self, nbytes: usize) -> Result<Arc<dyn DeviceBuffer>> {
        self.buffer(nbytes)
    }

    fn upload(&self, bytes: &[u8]) -> Result<Arc<dyn DeviceBuffer>> {
        self.refuse_recording()?;
        let buffer = self.buffer(bytes.len())?;
        own(&*buffer)?.bytes.write().copy_from_slice(bytes);
        self.0.up.fetch_add(1, Ordering::Relaxed);
        Ok(buffer)
    }

    fn owns(&self, buffer: &dyn DeviceBuffer) -> bool {
        own(buffer).is_ok_and(|buffer| Arc::ptr_eq(&buffer.memory.0, &self.0))
    }
}

impl DeviceBuffer for OwnBuffer {
    fn nbytes(&self) -> usize {
        self.nbytes
    }

    fn download(&self, bytes: &mut [u8]) -> Result<()> {
        self.memory.refuse_recording()?;
        bytes.copy_from_slice(&self.bytes.read());
        self.memory.0.down.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// A buffer as this device made it.
pub(super) fn own(buffer: &dyn DeviceBuffer) -> Result<&OwnBuffer> {
    let found = (buffer as &dyn Any).downcast_ref::<OwnBuffer>();
    found.ok_or_else(|| Diagnostic::internal("a kernel is given memory of another device"))
}
