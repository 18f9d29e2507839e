//! Work that is recorded once, as a CUDA graph, and launched again as a whole: what a launch costs the host is paid once.

#![allow(unsafe_code, reason = "says which thread may use a graph")]

use super::driver::{Arena, Buffer, Context, Function, Recording, own};
use crate::backends::Recorded;
use crate::diag::{Diagnostic, Result};
use crate::tensor::DeviceBuffer;
use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
use cudarc::driver::{CudaGraph, CudaSlice};
use std::sync::Arc;

/// Recorded work with all that it uses.
struct Graph {
    context: Arc<Context>,
    graph: CudaGraph,
    /// Where it reads what a call gives.
    inputs: Vec<Buffer>,
    /// Where it leaves its results.
    outputs: Vec<Arc<dyn DeviceBuffer>>,
    _kept: Vec<Arc<dyn DeviceBuffer>>,
    _kernels: Vec<Arc<Function>>,
    _arena: Arc<Arena>,
}

// SAFETY: every use of the graph holds the queue of its context, so that one thread uses it at a time.
unsafe impl Send for Graph {}
// SAFETY: as above.
unsafe impl Sync for Graph {}

/// Records `work`, which is given the buffers that it is to read instead of `inputs` and gives those that it wrote. The inner
/// error says why it cannot be recorded; nothing of it has run then.
pub(super) fn record(
    context: &Arc<Context>,
    inputs: &[usize],
    work: &mut dyn FnMut(&[Arc<dyn DeviceBuffer>]) -> Result<Vec<Arc<dyn DeviceBuffer>>>,
) -> Result<std::result::Result<Arc<dyn Recorded>, String>> {
    let queue = context.queue();
    if queue.borrow().is_some() {
        return Ok(Err("it is part of work that is being recorded".to_string()));
    }
    let arena = Arena::new(context);
    let own_inputs: Vec<Buffer> = inputs.iter().map(|nbytes| arena.buffer(*nbytes)).collect::<Result<_>>()?;
    let given: Vec<Arc<dyn DeviceBuffer>> =
        own_inputs.iter().map(|buffer| Arc::new(buffer.alias()) as Arc<dyn DeviceBuffer>).collect();
    let capture = Capture::begin(context, &arena)?;
    let written = work(&given);
    drop(given);
    let (graph, recording) = capture.end();
    let Recording { kept, kernels, freed, refused, .. } = recording;
    drop::<Vec<CudaSlice<u8>>>(freed);
    let outputs = match (written, refused) {
        (Ok(outputs), false) => outputs,
        (Err(error), _) => return Ok(Err(error.message().to_string())),
        (Ok(_), true) => return Ok(Err("it copies between host and device".to_string())),
    };
    if !outputs.iter().all(|buffer| own(&**buffer).is_ok_and(|buffer| buffer.is_of(&arena))) {
        return Ok(Err("it gives what was there before".to_string()));
    }
    let graph = match graph {
        Ok(Some(graph)) => graph,
        Ok(None) => return Ok(Err("it queued no work".to_string())),
        Err(error) => return Ok(Err(format!("the driver refused: {error}"))),
    };
    Ok(Ok(Arc::new(Graph {
        context: Arc::clone(context),
        graph,
        inputs: own_inputs,
        outputs,
        _kept: kept,
        _kernels: kernels,
        _arena: arena,
    })))
}

/// A stream that records. It ends when this is dropped, whatever happens in between.
struct Capture<'a> {
    context: &'a Arc<Context>,
    open: bool,
}

type Captured = std::result::Result<Option<CudaGraph>, cudarc::driver::DriverError>;

impl<'a> Capture<'a> {
    fn begin(context: &'a Arc<Context>, arena: &Arc<Arena>) -> Result<Capture<'a>> {
        // Other calls of this thread, such as an allocation, are right while the stream records.
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        let begun = context.stream().begin_capture(mode);
        begun.map_err(|error| Diagnostic::device(format!("CUDA: recording work: {error}")))?;
        context.queue().replace(Some(Recording::new(arena)));
        Ok(Capture { context, open: true })
    }

    fn end(mut self) -> (Captured, Recording) {
        let recording = self.close();
        let graph = self.context.stream().end_capture(CUgraphInstantiate_flags(0));
        (graph, recording.unwrap_or_else(|| Recording::new(&Arena::new(self.context))))
    }

    fn close(&mut self) -> Option<Recording> {
        self.open = false;
        self.context.queue().take()
    }
}

impl Drop for Capture<'_> {
    fn drop(&mut self) {
        if self.open {
            drop(self.close());
            let _ = self.context.stream().end_capture(CUgraphInstantiate_flags(0));
        }
    }
}

impl Recorded for Graph {
    fn replay(&self, inputs: &[Arc<dyn DeviceBuffer>]) -> Result<Vec<Arc<dyn DeviceBuffer>>> {
        let queue = self.context.queue();
        if queue.borrow().is_some() {
            return Err(Diagnostic::internal("recorded work inside of work that is being recorded"));
        }
        if inputs.len() != self.inputs.len() {
            return Err(Diagnostic::internal("recorded work is given another number of tensors"));
        }
        for (from, to) in inputs.iter().zip(&self.inputs) {
            self.context.copy(own(&**from)?, to, to.len())?;
        }
        let launched = self.graph.launch();
        launched.map_err(|error| Diagnostic::device(format!("CUDA: launching recorded work: {error}")))?;
        let fresh = |buffer: &Arc<dyn DeviceBuffer>| {
            let out = self.context.allocate(buffer.nbytes())?;
            self.context.copy(own(&**buffer)?, &out, buffer.nbytes())?;
            Ok(Arc::new(out) as Arc<dyn DeviceBuffer>)
        };
        self.outputs.iter().map(fresh).collect()
    }
}
