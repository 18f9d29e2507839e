//! The CUDA driver behind safe calls. All unsafe code of the GPU path stands here and in one launch.

#![allow(unsafe_code, reason = "the driver has a C interface")]

use crate::backends::Arg;
use crate::diag::{Diagnostic, Result};
use crate::dialects::loops::Elem;
use crate::tensor::DeviceBuffer;
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr, sys};
use half::{bf16, f16};
use parking_lot::{Mutex, ReentrantMutex, ReentrantMutexGuard};
use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CString, c_void};
use std::sync::Arc;

/// Alignment in bytes of the sizes and addresses of an arena's memory.
const GRAIN: usize = 512;

/// A device with its stream.
pub(super) struct Context {
    cuda: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    /// Held by the thread that queues work, and by the one that records some until it is done: what others queue meanwhile
    /// would be recorded too.
    queue: ReentrantMutex<RefCell<Option<Recording>>>,
}

/// Work that is being recorded.
pub(super) struct Recording {
    /// What it takes its memory from.
    pub(super) arena: Arc<Arena>,
    /// Memory of before that it uses.
    pub(super) kept: Vec<Arc<dyn DeviceBuffer>>,
    /// Kernels that it launches.
    pub(super) kernels: Vec<Arc<Function>>,
    /// Former memory that is no longer needed; freeing it waits until the work is recorded.
    pub(super) freed: Vec<CudaSlice<u8>>,
    /// Whether it asked for something that cannot be recorded.
    pub(super) refused: bool,
}

impl Recording {
    pub(super) fn new(arena: &Arc<Arena>) -> Recording {
        Recording {
            arena: Arc::clone(arena),
            kept: Vec::new(),
            kernels: Vec::new(),
            freed: Vec::new(),
            refused: false,
        }
    }
}

/// Who queues work.
pub(super) type Queue<'a> = ReentrantMutexGuard<'a, RefCell<Option<Recording>>>;

fn failed(what: &str) -> impl Fn(DriverError) -> Diagnostic + '_ {
    move |error| Diagnostic::device(format!("CUDA: {what}: {error}"))
}

fn no_device(why: &str) -> Diagnostic {
    Diagnostic::device(format!("no CUDA device: {why}")).hint("run with --device cpu")
}

impl Context {
    /// Opens a device.
    pub(super) fn open(ordinal: usize) -> Result<Arc<Context>> {
        // The library panics if the driver is missing, so this is asked first.
        // SAFETY: only opens and closes the driver's shared library.
        if !unsafe { sys::is_culib_present() } {
            return Err(no_device("the NVIDIA driver (libcuda) is not installed"));
        }
        result::init().map_err(|e| no_device(&e.to_string()))?;
        let count = CudaContext::device_count().map_err(|e| no_device(&e.to_string()))?;
        if usize::try_from(count).unwrap_or(0) <= ordinal {
            return Err(no_device(&format!("device {ordinal} was asked for, there are {count}")));
        }
        let cuda = CudaContext::new(ordinal).map_err(|e| no_device(&e.to_string()))?;
        // SAFETY: there is one stream, which does all work in order: no event is needed to wait for another one.
        unsafe { cuda.disable_event_tracking() };
        // The default stream cannot be recorded.
        let stream = cuda.new_stream().map_err(|e| no_device(&e.to_string()))?;
        Ok(Arc::new(Context { cuda, stream, queue: ReentrantMutex::default() }))
    }

    pub(super) fn name(&self) -> Result<String> {
        self.cuda.name().map_err(failed("name of the device"))
    }

    /// `sm_90`
    pub(super) fn arch(&self) -> Result<String> {
        let (major, minor) = self.cuda.compute_capability().map_err(failed("compute capability"))?;
        Ok(format!("sm_{major}{minor}"))
    }

    /// The stream on which all work is done, in order.
    pub(super) fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    /// Makes the device the one that this thread's calls are for.
    pub(super) fn bind(&self) -> Result<()> {
        self.cuda.bind_to_thread().map_err(failed("using the device"))
    }

    /// Waits until no other thread queues or records.
    pub(super) fn queue(&self) -> Queue<'_> {
        self.queue.lock()
    }

    /// Fails while this thread records: what crosses the border is not the same in the next call.
    fn refuse_recording(queue: &Queue<'_>) -> Result<()> {
        match queue.borrow_mut().as_mut() {
            Some(recording) => {
                recording.refused = true;
                Err(Diagnostic::unsupported("recorded work cannot copy between host and device"))
            }
            None => Ok(()),
        }
    }

    /// Keeps memory for work that is being recorded and uses it.
    pub(super) fn keep(&self, buffer: &Arc<dyn DeviceBuffer>) {
        let queue = self.queue();
        if let Some(recording) = queue.borrow_mut().as_mut()
            && !matches!(own(&**buffer), Ok(own) if own.is_of(&recording.arena))
        {
            recording.kept.push(Arc::clone(buffer));
        }
    }

    /// New memory with whatever is in it. Empty memory is one byte, so that it has an address.
    pub(super) fn allocate(self: &Arc<Context>, nbytes: usize) -> Result<Buffer> {
        let queue = self.queue();
        let arena = queue.borrow().as_ref().map(|recording| Arc::clone(&recording.arena));
        let memory = match arena {
            Some(arena) => Memory::Lent(arena.lend(self, nbytes)?, arena),
            None => {
                // SAFETY: bytes may have any value, and callers write them before they are read.
                let slice = unsafe { self.stream.alloc::<u8>(nbytes.max(1)) };
                Memory::Own(slice.map_err(failed("allocating on the device"))?)
            }
        };
        Ok(Buffer { memory: Some(memory), len: nbytes, context: Arc::clone(self) })
    }

    /// Copies bytes to the device.
    pub(super) fn upload(self: &Arc<Context>, bytes: &[u8]) -> Result<Buffer> {
        let queue = self.queue();
        Self::refuse_recording(&queue)?;
        let buffer = self.allocate(bytes.len())?;
        self.bind()?;
        if !bytes.is_empty() {
            // SAFETY: the buffer is as long as the bytes, which the driver has read when the call returns: they are not pinned.
            let copied =
                unsafe { result::memcpy_htod_async(buffer.address(0), bytes, self.stream.cu_stream()) };
            copied.map_err(failed("copying to the device"))?;
        }
        Ok(buffer)
    }

    /// Queues a copy of the first bytes of one buffer to another, both as long.
    pub(super) fn copy(&self, from: &Buffer, to: &Buffer, nbytes: usize) -> Result<()> {
        if nbytes > from.len || nbytes > to.len {
            return Err(Diagnostic::internal("a copy that reaches outside of its memory"));
        }
        let _queue = self.queue();
        self.bind()?;
        // SAFETY: both buffers are long enough, and are freed on the stream, after the copy.
        let copied = unsafe {
            result::memcpy_dtod_async(to.address(0), from.address(0), nbytes, self.stream.cu_stream())
        };
        copied.map_err(failed("copying on the device"))
    }

    /// Loads PTX and finds its function.
    pub(super) fn load(self: &Arc<Context>, ptx: &str, entry: &str) -> Result<Function> {
        let text = CString::new(ptx).map_err(|_| Diagnostic::internal("PTX with a zero byte"))?;
        let name = CString::new(entry).map_err(|_| Diagnostic::internal("a symbol with a zero byte"))?;
        self.bind()?;
        // SAFETY: the text ends with a zero byte and is copied by the driver.
        let module =
            unsafe { result::module::load_data(text.as_ptr().cast()) }.map_err(failed("loading PTX"))?;
        // SAFETY: the module was just loaded; its function lives as long as it does.
        let function = unsafe { result::module::get_function(module, name) };
        let function = match function {
            Ok(function) => function,
            Err(error) => {
                // SAFETY: there is no other reference to the module.
                let _ = unsafe { result::module::unload(module) };
                return Err(failed("finding the kernel in its PTX")(error));
            }
        };
        Ok(Function { context: Arc::clone(self), module, function })
    }
}

/// Memory of the device. It is freed after the work that was queued before.
pub(super) struct Buffer {
    /// There until the buffer is dropped.
    memory: Option<Memory>,
    len: usize,
    context: Arc<Context>,
}

enum Memory {
    Own(CudaSlice<u8>),
    /// Of an arena, which gets it back.
    Lent(Block, Arc<Arena>),
    /// Of an arena, and lent to another buffer.
    Alias(Block, Arc<Arena>),
}

impl Buffer {
    pub(super) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The same memory once more, which the arena does not get back from it. For memory of an arena that something else keeps.
    pub(super) fn alias(&self) -> Buffer {
        let memory = match &self.memory {
            Some(Memory::Lent(block, arena) | Memory::Alias(block, arena)) => {
                Some(Memory::Alias(*block, Arc::clone(arena)))
            }
            _ => None,
        };
        Buffer { memory, len: self.len, context: Arc::clone(&self.context) }
    }

    /// Whether it belongs to an arena.
    pub(super) fn is_of(&self, arena: &Arc<Arena>) -> bool {
        matches!(&self.memory, Some(Memory::Lent(_, own)) if Arc::ptr_eq(own, arena))
    }

    /// The device address of a byte.
    pub(super) fn address(&self, start: usize) -> u64 {
        let base = match &self.memory {
            Some(Memory::Own(slice)) => slice.device_ptr(&self.context.stream).0,
            Some(Memory::Lent(block, _) | Memory::Alias(block, _)) => block.address,
            None => 0,
        };
        base + start as u64
    }
}

/// A buffer as a device made it.
pub(super) fn own(buffer: &dyn DeviceBuffer) -> Result<&Buffer> {
    let found = (buffer as &dyn Any).downcast_ref::<Buffer>();
    found.ok_or_else(|| Diagnostic::internal("a kernel is given memory of another device"))
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let queue = self.context.queue();
        match self.memory.take() {
            Some(Memory::Lent(block, arena)) => arena.take_back(block),
            Some(Memory::Own(slice)) => match queue.borrow_mut().as_mut() {
                Some(recording) => recording.freed.push(slice),
                None => drop(slice),
            },
            Some(Memory::Alias(..)) | None => {}
        }
    }
}

impl DeviceBuffer for Buffer {
    fn nbytes(&self) -> usize {
        self.len
    }

    fn download(&self, bytes: &mut [u8]) -> Result<()> {
        if bytes.len() != self.len {
            return Err(Diagnostic::internal("a download of another length than its upload"));
        }
        let queue = self.context.queue();
        Context::refuse_recording(&queue)?;
        let stream = &self.context.stream;
        self.context.bind()?;
        if !bytes.is_empty() {
            // SAFETY: the buffer is as long as the bytes, which stay where they are until the wait below.
            let copied = unsafe { result::memcpy_dtoh_async(bytes, self.address(0), stream.cu_stream()) };
            copied.map_err(failed("copying from the device"))?;
        }
        stream.synchronize().map_err(failed("running a kernel"))
    }
}

/// Memory of recorded work: it stays as long as the work may run again. What is given back while the work is being recorded
/// is lent again: work on one stream is done in order.
pub(super) struct Arena {
    context: Arc<Context>,
    blocks: Mutex<Blocks>,
}

#[derive(Default)]
struct Blocks {
    all: Vec<u64>,
    free: Vec<Block>,
}

#[derive(Clone, Copy)]
struct Block {
    address: u64,
    size: usize,
}

impl Arena {
    pub(super) fn new(context: &Arc<Context>) -> Arc<Arena> {
        Arc::new(Arena { context: Arc::clone(context), blocks: Mutex::default() })
    }

    /// The smallest free block that is large enough and at most twice as large, or a new one.
    fn lend(&self, context: &Context, nbytes: usize) -> Result<Block> {
        let size = nbytes.max(1).next_multiple_of(GRAIN);
        let mut blocks = self.blocks.lock();
        let fits = |block: &Block| (size..=2 * size).contains(&block.size);
        let found = (0..blocks.free.len()).filter(|n| fits(&blocks.free[*n]));
        if let Some(n) = found.min_by_key(|n| blocks.free[*n].size) {
            return Ok(blocks.free.swap_remove(n));
        }
        context.bind()?;
        // SAFETY: plain memory, which the arena frees when it is dropped.
        let address = unsafe { result::malloc_sync(size) }.map_err(failed("allocating on the device"))?;
        blocks.all.push(address);
        Ok(Block { address, size })
    }

    fn take_back(&self, block: Block) {
        self.blocks.lock().free.push(block);
    }

    /// Memory for a buffer outside of a recording.
    pub(super) fn buffer(self: &Arc<Arena>, nbytes: usize) -> Result<Buffer> {
        let block = self.lend(&self.context, nbytes)?;
        let memory = Some(Memory::Lent(block, Arc::clone(self)));
        Ok(Buffer { memory, len: nbytes, context: Arc::clone(&self.context) })
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        let _queue = self.context.queue();
        if self.context.bind().is_ok() && self.context.stream.synchronize().is_ok() {
            for address in self.blocks.lock().all.drain(..) {
                // SAFETY: allocated by `lend`; nothing that was lent is left, and all work that used it is done.
                let _ = unsafe { result::free_sync(address) };
            }
        }
    }
}

/// One kernel parameter in 8 bytes, of which its type takes the first.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub(super) struct Parameter([u8; 8]);

impl Parameter {
    /// A number as its type holds it.
    pub(super) fn of(arg: Arg, elem: Elem) -> Parameter {
        let bits = match (arg, elem) {
            (Arg::Float(x), Elem::F32) => u64::from((x as f32).to_bits()),
            (Arg::Float(x), Elem::F16) => u64::from(f16::from_f64(x).to_bits()),
            (Arg::Float(x), Elem::BF16) => u64::from(bf16::from_f64(x).to_bits()),
            (Arg::Float(x), _) => x.to_bits(),
            (Arg::Int(x), _) => x as u64,
            (Arg::Bool(x), _) => u64::from(x),
            (Arg::Buffer(..), _) => 0,
        };
        Parameter(bits.to_le_bytes())
    }

    /// The device address of a byte of a buffer.
    pub(super) fn address(buffer: &Buffer, start: usize) -> Parameter {
        Parameter(buffer.address(start).to_le_bytes())
    }
}

/// A function of a loaded module.
pub(super) struct Function {
    context: Arc<Context>,
    module: sys::CUmodule,
    function: sys::CUfunction,
}

// SAFETY: driver handles may be used from any thread that has bound the context, which every call does.
unsafe impl Send for Function {}
// SAFETY: as above; loading is done and the function is immutable.
unsafe impl Sync for Function {}

impl Function {
    pub(super) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Queues the kernel on the context's stream.
    ///
    /// # Safety
    /// Parameters must be those that the function takes, and the memory at their addresses must be freed on the
    /// stream, after the launch.
    pub(super) unsafe fn launch(
        self: &Arc<Function>,
        groups: u32,
        threads: u32,
        parameters: &mut [Parameter],
    ) -> Result<()> {
        let queue = self.context.queue();
        self.context.bind()?;
        if let Some(recording) = queue.borrow_mut().as_mut() {
            recording.kernels.push(Arc::clone(self));
        }
        let mut pointers: Vec<*mut c_void> =
            parameters.iter_mut().map(|p| std::ptr::from_mut(p).cast::<c_void>()).collect();
        // SAFETY: the caller's promise; the driver copies the parameters before it returns.
        unsafe {
            result::launch_kernel(
                self.function,
                (groups, 1, 1),
                (threads, 1, 1),
                0,
                self.context.stream.cu_stream(),
                &mut pointers,
            )
        }
        .map_err(failed("launching a kernel"))
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        let _queue = self.context.queue();
        if self.context.bind().is_ok() && self.context.stream.synchronize().is_ok() {
            // SAFETY: the module was loaded by `load`; every launch has been waited for.
            let _ = unsafe { result::module::unload(self.module) };
        }
    }
}
