//! Running a compiled kernel: arguments become slots, large work is shared among threads.

#![allow(
    unsafe_code,
    reason = "calls machine code; what `Executable::run` asks of its caller makes it sound"
)]

use super::orc::{Code, Left, Slots};
use super::shared::{Linked, Shared};
use crate::backends::cache::Key;
use crate::backends::{Arg, Executable, Launch, Memory, check_args, not_met};
use crate::diag::{Diagnostic, Result};
use crate::dialects::loops::{Elem, Kernel, Stmt, Ty};
use crate::resources::{budget, pool};
use half::{bf16, f16};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Elements that one thread takes at least.
const MIN_CHUNK: usize = 32 * 1024;
/// Results of more bytes bypass the caches: about what a core's share of the last-level cache holds.
const STREAM_BYTES: usize = 24 << 20;
/// Alignment that streaming stores need, in bytes; chunks begin at multiples of as many elements.
const STREAM_ALIGNMENT: usize = 64;

/// A compiled kernel.
pub(super) struct Compiled {
    kernel: Kernel,
    shared: Arc<Shared>,
    plain: Linked,
    /// Made when first needed.
    streaming: OnceLock<Result<Linked>>,
}

impl Compiled {
    pub(super) fn new(kernel: Kernel, key: &Key, shared: Arc<Shared>) -> Result<Compiled> {
        let plain = shared.plain(&kernel, key)?;
        Ok(Compiled { kernel, shared, plain, streaming: OnceLock::new() })
    }

    /// The form whose stores bypass the caches. What compiles without them compiles with them, so that an error here
    /// is one of the run.
    fn streaming(&self) -> Result<&Code> {
        let made = self.streaming.get_or_init(|| self.shared.streaming(&self.kernel));
        made.as_ref().map(|linked| &linked.code).map_err(Clone::clone)
    }

    /// Whether stores can bypass the caches: one flat vector loop, results large and aligned.
    fn wants_streaming(&self, slots: &[u64], extent: usize) -> bool {
        let flat = self.kernel.body.iter().any(|s| match s {
            Stmt::For(l) => l.mark.is_parallel() && l.mark.is_vector(),
            _ => false,
        });
        let written = self.kernel.params.iter().enumerate().filter(|(_, p)| p.written);
        let (mut bytes, mut aligned) = (0usize, true);
        for (n, p) in written {
            bytes = bytes.saturating_add(extent.saturating_mul(self.kernel.elem(p.reg).size()));
            aligned &= (slots[n] as usize).is_multiple_of(STREAM_ALIGNMENT);
        }
        flat && aligned && bytes >= STREAM_BYTES
    }
}

/// The bits of an argument in its slot.
fn slot(elem: Elem, arg: Arg) -> u64 {
    match (arg, elem) {
        (Arg::Float(x), Elem::F32) => u64::from((x as f32).to_bits()),
        (Arg::Float(x), Elem::F16) => u64::from(f16::from_f64(x).to_bits()),
        (Arg::Float(x), Elem::BF16) => u64::from(bf16::from_f64(x).to_bits()),
        (Arg::Float(x), _) => x.to_bits(),
        (Arg::Int(x), _) => x as u64,
        (Arg::Bool(x), _) => u64::from(x),
        (Arg::Buffer(..), _) => 0,
    }
}

/// Where a piece of memory begins.
fn address(memory: &mut Memory<'_>) -> usize {
    match memory {
        Memory::Read(bytes) => bytes.as_ptr() as usize,
        Memory::Write(bytes) => bytes.as_mut_ptr() as usize,
        // Was refused before.
        Memory::Device(..) => 0,
    }
}

impl Executable for Compiled {
    fn is_cached(&self) -> bool {
        self.plain.cached
    }

    unsafe fn run(&self, launch: &mut Launch<'_>) -> Result<()> {
        let arguments = check_args(&self.kernel, &launch.memory, &launch.args)?;
        if launch.memory.iter().any(|memory| matches!(memory, Memory::Device(..))) {
            return Err(Diagnostic::internal("machine code of the host is given memory of a device"));
        }
        let bases: SmallVec<[usize; 8]> = launch.memory.iter_mut().map(address).collect();
        let mut slots: SmallVec<[u64; 24]> = SmallVec::new();
        let mut extent = 1i64;
        for (n, (param, arg)) in arguments.enumerate() {
            slots.push(match (param.ty, arg) {
                (Ty::Scalar(elem), arg) => slot(elem, arg),
                (_, Arg::Buffer(buffer)) => {
                    // Inside of the memory, as was checked above.
                    let start = buffer.first * self.kernel.elem(param.reg).size();
                    (bases[buffer.memory] + start) as u64
                }
                _ => return Err(Diagnostic::internal("a kernel argument of the wrong kind")),
            });
            if let (Some(e), Arg::Int(value)) = (self.kernel.extent, arg)
                && e == n
            {
                extent = value;
            }
        }
        let slots = Slots { slots: &slots };
        let streams = self.wants_streaming(slots.slots, extent.max(0) as usize);
        let code = if streams { self.streaming()? } else { &self.plain.code };
        let chunk = chunk_size(extent, launch.grain, pool::threads());
        if chunk >= extent {
            // SAFETY: spans were checked against the memory, which the launch borrows for the whole call, so that no
            // other thread writes to it; the caller of `run` promises that the kernel stays within the spans.
            let done = unsafe { code.call(&slots, 0, extent) };
            return done.or_else(|left| self.left(left));
        }
        let chunks = extent.unsigned_abs().div_ceil(chunk.unsigned_abs());
        let (failed, stopped) = (AtomicUsize::new(usize::MAX), AtomicBool::new(false));
        pool::for_each(chunks as usize, |n| {
            let begin = n as i64 * chunk;
            // SAFETY: as above; the caller promises that iterations of a parallel loop store to different elements.
            match unsafe { code.call(&slots, begin, extent.min(begin + chunk)) } {
                Ok(()) => {}
                Err(Left::Condition(n)) => drop(failed.fetch_min(n, Ordering::Relaxed)),
                Err(Left::Stopped) => stopped.store(true, Ordering::Relaxed),
            }
        });
        match failed.into_inner() {
            usize::MAX if stopped.into_inner() => self.left(Left::Stopped),
            usize::MAX => Ok(()),
            condition => self.left(Left::Condition(condition)),
        }
    }
}

impl Compiled {
    /// The error of a kernel that ended before its work was done.
    fn left(&self, left: Left) -> Result<()> {
        match left {
            Left::Condition(n) => Err(not_met(&self.kernel, n)),
            Left::Stopped => {
                // What has ended it is still so.
                budget::take_all_steps(1)?;
                Err(Diagnostic::internal("a kernel ended as if its run must end"))
            }
        }
    }
}

/// Iterations a thread takes at once: all of them unless there is enough for several threads.
fn chunk_size(extent: i64, grain: usize, threads: usize) -> i64 {
    let total = (extent.max(0) as usize).saturating_mul(grain.max(1));
    if threads < 2 || total < 2 * MIN_CHUNK {
        return extent.max(1);
    }
    let parts = (total / MIN_CHUNK).min(threads * 4).max(1);
    let chunk = (extent as usize).div_ceil(parts);
    let step = STREAM_ALIGNMENT;
    (chunk.div_ceil(step) * step) as i64
}
