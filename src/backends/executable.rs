//! What a backend makes of a kernel, what one run of it is given, and whether that fits. Knows neither backends nor tensors.

use crate::diag::{Diagnostic, Result};
use crate::dialects::loops::{Elem, Kernel, Param, Ty};
use crate::tensor::DeviceBuffer;
use std::borrow::Cow;
use std::sync::Arc;

/// A compiled kernel.
pub trait Executable: Send + Sync {
    /// Whether its code was not compiled by this process but came from a cache on disk.
    fn is_cached(&self) -> bool {
        false
    }
    /// Runs it. A condition that the kernel requires and that does not hold is a `Runtime` error. Arguments correspond to the kernel's parameters. Their kinds are checked, and that both ends of each
    /// buffer's span lie within its memory; an argument that does not fit is an `Internal` error, with nothing run.
    ///
    /// # Safety
    /// What the kernel does with its buffers is not checked again. The caller promises, for these very arguments:
    /// every element that the kernel loads or stores through a buffer lies in the span that its argument gives;
    /// iterations of a parallel loop store to different elements; and an element that is stored through one argument
    /// is not read or stored through another.
    #[expect(
        unsafe_code,
        reason = "machine code reads and writes where its arguments say, unchecked; safe callers go through `FusedGroup`, which proves it"
    )]
    unsafe fn run(&self, launch: &mut Launch<'_>) -> Result<()>;
}

/// One run of a kernel.
pub struct Launch<'a> {
    /// Memory; several arguments may share one piece of it.
    pub memory: Vec<Memory<'a>>,
    /// One an argument of the kernel.
    pub args: Cow<'a, [Arg]>,
    /// Elements that one iteration of the parallel loop computes, about; decides how work is shared among
    /// threads.
    pub grain: usize,
}

/// Memory of a launch.
pub enum Memory<'a> {
    /// Of the host, to read.
    Read(&'a [u8]),
    /// Of the host, to write.
    Write(&'a mut [u8]),
    /// Of the backend's device, and whether it may be written.
    Device(&'a Arc<dyn DeviceBuffer>, bool),
}

impl Memory<'_> {
    /// Its bytes, to read; none of a device.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Memory::Read(bytes) => bytes,
            Memory::Write(bytes) => bytes,
            Memory::Device(..) => &[],
        }
    }

    /// How many bytes there are.
    pub fn nbytes(&self) -> usize {
        match self {
            Memory::Device(buffer, _) => buffer.nbytes(),
            _ => self.bytes().len(),
        }
    }

    fn is_writable(&self) -> bool {
        matches!(self, Memory::Write(_) | Memory::Device(_, true))
    }

    /// Whether it begins at a multiple of a size. Memory of a device does.
    fn is_aligned(&self, size: usize) -> bool {
        match self {
            Memory::Device(..) => true,
            _ => (self.bytes().as_ptr() as usize).is_multiple_of(size),
        }
    }
}

/// A buffer of a launch, counted in elements of the parameter's type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Buffer {
    /// An index into [`Launch::memory`].
    pub memory: usize,
    /// The element that the kernel calls element 0.
    pub first: usize,
    /// The lowest element that the kernel touches.
    pub low: usize,
    /// One more than the highest element that it touches.
    pub end: usize,
}

impl Buffer {
    /// The first `count` elements of a piece of memory.
    pub fn whole(memory: usize, count: usize) -> Buffer {
        Buffer { memory, first: 0, low: 0, end: count }
    }
}

/// An argument.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arg {
    /// For buffers.
    Buffer(Buffer),
    /// For `i64` and the smaller integers.
    Int(i64),
    /// For `f64` and the smaller floats.
    Float(f64),
    /// For `bool`.
    Bool(bool),
}

/// The error of a kernel that requires what does not hold.
pub(super) fn not_met(kernel: &Kernel, message: usize) -> Diagnostic {
    let text = kernel.messages.get(message).map_or("a kernel requires what does not hold", String::as_str);
    Diagnostic::runtime(text)
}

/// Pairs arguments with parameters after checking that they fit: in kind, and each buffer in its memory, whose start
/// must be aligned for the elements.
pub(super) fn check_args<'k>(
    kernel: &'k Kernel,
    memory: &[Memory<'_>],
    args: &'k [Arg],
) -> Result<impl Iterator<Item = (&'k Param, Arg)> + use<'k>> {
    let fits = |ty: Ty, arg: &Arg| match (ty, arg) {
        (Ty::Buffer(_), Arg::Buffer(..)) => true,
        (Ty::Scalar(Elem::Bool), Arg::Bool(_)) => true,
        (Ty::Scalar(e), Arg::Int(_)) => e.is_int(),
        (Ty::Scalar(e), Arg::Float(_)) => e.is_float(),
        _ => false,
    };
    let paired = kernel.params.len() == args.len();
    if !paired || !kernel.params.iter().zip(args).all(|(p, a)| fits(p.ty, a)) {
        return Err(Diagnostic::internal("kernel arguments that do not fit its parameters"));
    }
    for (param, arg) in kernel.params.iter().zip(args) {
        let Arg::Buffer(buffer) = arg else { continue };
        let Some(memory) = memory.get(buffer.memory) else {
            return Err(Diagnostic::internal("a kernel argument without memory"));
        };
        if param.written && !memory.is_writable() {
            return Err(Diagnostic::internal("a kernel that writes to memory given for reading"));
        }
        let (nbytes, size) = (memory.nbytes(), kernel.elem(param.reg).size());
        let within = |element: usize| element.checked_mul(size).is_some_and(|at| at <= nbytes);
        let inside = buffer.low <= buffer.end && within(buffer.end) && within(buffer.first);
        if !inside || !memory.is_aligned(size) {
            return Err(Diagnostic::internal(format!(
                "a kernel argument that reaches from element {} to {} of {} bytes",
                buffer.low, buffer.end, nbytes
            )));
        }
    }
    Ok(kernel.params.iter().zip(args.iter().copied()))
}
