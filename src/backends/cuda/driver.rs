//! The CUDA driver behind safe calls. All unsafe code of the GPU path stands here and in one launch.

#![allow(unsafe_code, reason = "the driver has a C interface")]

use crate::backends::Arg;
use crate::diag::{Diagnostic, Result};
use crate::dialects::loops::Elem;
use crate::tensor::DeviceBuffer;
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr, sys};
use half::{bf16, f16};
use std::ffi::{CString, c_void};
use std::sync::Arc;

/// A device with its stream.
pub(super) struct Context {
    cuda: Arc<CudaContext>,
    stream: Arc<CudaStream>,
}

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
        let stream = cuda.default_stream();
        Ok(Arc::new(Context { cuda, stream }))
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

    /// New memory with whatever is in it. Empty memory is one byte, so that it has an address.
    pub(super) fn allocate(self: &Arc<Context>, nbytes: usize) -> Result<Buffer> {
        // SAFETY: bytes may have any value, and whoever allocates writes them before they are read.
        let slice = unsafe { self.stream.alloc::<u8>(nbytes.max(1)) };
        let slice = slice.map_err(failed("allocating on the device"))?;
        Ok(Buffer { slice, len: nbytes, context: Arc::clone(self) })
    }

    /// Copies bytes to the device.
    pub(super) fn upload(self: &Arc<Context>, bytes: &[u8]) -> Result<Buffer> {
        let mut buffer = self.allocate(bytes.len())?;
        if !bytes.is_empty() {
            let copied = self.stream.memcpy_htod(bytes, &mut buffer.slice);
            copied.map_err(failed("copying to the device"))?;
        }
        Ok(buffer)
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
                // SAFETY: nobody else has the module.
                let _ = unsafe { result::module::unload(module) };
                return Err(failed("finding the kernel in its PTX")(error));
            }
        };
        Ok(Function { context: Arc::clone(self), module, function })
    }
}

/// Memory of the device. It is freed behind the work that was queued before.
pub(super) struct Buffer {
    slice: CudaSlice<u8>,
    len: usize,
    context: Arc<Context>,
}

impl Buffer {
    pub(super) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The device address of a byte.
    pub(super) fn address(&self, start: usize) -> u64 {
        let (base, _guard) = self.slice.device_ptr(&self.context.stream);
        base + start as u64
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
        let stream = &self.context.stream;
        if !bytes.is_empty() {
            stream.memcpy_dtoh(&self.slice, bytes).map_err(failed("copying from the device"))?;
        }
        stream.synchronize().map_err(failed("running a kernel"))
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
    /// stream, behind the launch.
    pub(super) unsafe fn launch(
        &self,
        groups: u32,
        threads: u32,
        parameters: &mut [Parameter],
    ) -> Result<()> {
        self.context.bind()?;
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
        if self.context.bind().is_ok() && self.context.stream.synchronize().is_ok() {
            // SAFETY: the module was loaded by `load`; every launch has been waited for.
            let _ = unsafe { result::module::unload(self.module) };
        }
    }
}
