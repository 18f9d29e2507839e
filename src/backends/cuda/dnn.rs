//! Convolutions, pooling, softmax and strided copies by cuDNN, which is opened at run time. What a layer needs is worked out once
//! for its sizes.

#![allow(unsafe_code, reason = "the library has a C interface")]

use super::driver::{Context, own};
use super::operands::{Precision, address};
use crate::backends::library::{Convolution, Piece, Pool};
use crate::diag::{Diagnostic, Result};
use crate::tensor::{DType, DeviceBuffer};
use cudarc::cudnn::result::{self, CudnnError};
use cudarc::cudnn::sys;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use std::ffi::c_void;
use std::sync::Arc;

/// Scratch memory that an algorithm may take.
const MAX_WORKSPACE: usize = 1 << 30;
/// Algorithms that are asked for.
const ALGORITHMS: usize = 8;

/// cuDNN with its workspace.
pub(super) struct Dnn {
    context: Arc<Context>,
    handle: sys::cudnnHandle_t,
    precision: Precision,
    workspace: Option<Arc<dyn DeviceBuffer>>,
    layers: HashMap<Convolution, Layer>,
}

// SAFETY: the handle and descriptors may be used from any thread that has bound the context, one at a time.
unsafe impl Send for Dnn {}

/// A descriptor with what destroys it.
struct Descriptor<T: std::marker::Copy>(T, unsafe fn(T) -> std::result::Result<(), CudnnError>);

impl<T: std::marker::Copy> Drop for Descriptor<T> {
    fn drop(&mut self) {
        // SAFETY: made with the destructor of its kind, and owned by this alone.
        let _ = unsafe { (self.1)(self.0) };
    }
}

type Tensor = Descriptor<sys::cudnnTensorDescriptor_t>;

/// A convolution as the library takes it.
struct Layer {
    input: Tensor,
    weight: Descriptor<sys::cudnnFilterDescriptor_t>,
    steps: Descriptor<sys::cudnnConvolutionDescriptor_t>,
    bias: Tensor,
    out: Tensor,
    algorithm: sys::cudnnConvolutionFwdAlgo_t,
    workspace: usize,
}

fn failed(error: CudnnError) -> Diagnostic {
    let status = format!("{:?}", error.0);
    if status.contains("NOT_SUPPORTED") {
        return Diagnostic::unsupported("cuDNN has no code for such a layer");
    }
    Diagnostic::device(format!("cuDNN: {status}"))
}

/// 1 and 0 of the type that the library scales with.
struct Scales {
    wide: bool,
}

impl Scales {
    fn of(dtype: DType) -> Scales {
        Scales { wide: dtype == DType::F64 }
    }

    fn pointer(&self, one: bool) -> *const c_void {
        static SINGLE: [f32; 2] = [0.0, 1.0];
        static DOUBLE: [f64; 2] = [0.0, 1.0];
        let n = usize::from(one);
        match self.wide {
            true => std::ptr::from_ref(&DOUBLE[n]).cast(),
            false => std::ptr::from_ref(&SINGLE[n]).cast(),
        }
    }
}

impl Dnn {
    /// Opens the library; None where it is not installed.
    pub(super) fn open(context: &Arc<Context>, precision: Precision) -> Result<Option<Dnn>> {
        // SAFETY: only opens and closes the shared library.
        if !unsafe { sys::is_culib_present() } {
            return Ok(None);
        }
        context.bind()?;
        let handle = result::create_handle().map_err(failed)?;
        let context = Arc::clone(context);
        let dnn = Dnn { context, handle, precision, workspace: None, layers: HashMap::new() };
        // SAFETY: the handle was just made, and the stream lives as long as the context.
        let placed = unsafe { result::set_stream(handle, dnn.context.stream().cu_stream().cast()) };
        placed.map_err(failed)?;
        Ok(Some(dnn))
    }

    /// Queues a convolution whose reach was checked.
    pub(super) fn convolution(
        &mut self,
        layer: &Convolution,
        [input, weight]: [&Piece; 2],
        bias: Option<&Piece>,
        out: &Piece,
    ) -> Result<()> {
        let context = Arc::clone(&self.context);
        let _queue = context.queue();
        self.context.bind()?;
        let found = match self.layers.entry(layer.clone()) {
            Entry::Occupied(found) => found.into_mut(),
            Entry::Vacant(place) => place.insert(Layer::new(self.handle, layer, self.precision)?),
        };
        let enough = self.workspace.as_ref().is_some_and(|own| own.nbytes() >= found.workspace);
        if !enough {
            self.workspace = Some(Arc::new(self.context.allocate(found.workspace)?));
        }
        let workspace = match &self.workspace {
            Some(workspace) => {
                context.keep(workspace);
                own(&**workspace)?.address(0)
            }
            None => 0,
        };
        let scales = Scales::of(layer.dtype);
        // SAFETY: descriptors live and say what the caller checked to lie in the pieces; the workspace is as large as the
        // library asked for, and all work is on one stream, behind which memory is freed.
        unsafe {
            let done = result::convolution_forward(
                self.handle,
                scales.pointer(true),
                found.input.0,
                address(input)? as *const c_void,
                found.weight.0,
                address(weight)? as *const c_void,
                found.steps.0,
                found.algorithm,
                workspace as *mut c_void,
                found.workspace,
                scales.pointer(false),
                found.out.0,
                address(out)? as *mut c_void,
            );
            done.map_err(failed)?;
            if let Some(bias) = bias {
                sys::cudnnAddTensor(
                    self.handle,
                    scales.pointer(true),
                    found.bias.0,
                    address(bias)? as *const c_void,
                    scales.pointer(true),
                    found.out.0,
                    address(out)? as *mut c_void,
                )
                .result()
                .map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Queues pooling whose reach was checked.
    pub(super) fn pool(&mut self, layer: &Pool, input: &Piece, out: &Piece) -> Result<()> {
        use sys::cudnnPoolingMode_t as Mode;
        let context = Arc::clone(&self.context);
        let _queue = context.queue();
        self.context.bind()?;
        let [samples, channels, height, width] = layer.input;
        let from = dense(layer.dtype, &[samples, channels, height, width])?;
        let to = dense(layer.dtype, &[samples, channels, layer.output[0], layer.output[1]])?;
        let mode = match (layer.max, layer.counts_padding) {
            (true, _) => Mode::CUDNN_POOLING_MAX,
            (false, true) => Mode::CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING,
            (false, false) => Mode::CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING,
        };
        let windows = Descriptor(
            result::create_pooling_descriptor().map_err(failed)?,
            destroy_pooling as unsafe fn(_) -> _,
        );
        let nan = sys::cudnnNanPropagation_t::CUDNN_PROPAGATE_NAN;
        let [window, padding, stride] =
            [&layer.window, &layer.padding, &layer.stride].map(|sizes| small(sizes));
        let scales = Scales::of(layer.dtype);
        // SAFETY: descriptors live until the call returns and say what the caller checked to lie in the pieces.
        unsafe {
            result::set_pooling_descriptor(windows.0, mode, nan, 2, &window?, &padding?, &stride?)
                .map_err(failed)?;
            result::pooling_forward(
                self.handle,
                windows.0,
                scales.pointer(true),
                from.0,
                address(input)? as *const c_void,
                scales.pointer(false),
                to.0,
                address(out)? as *mut c_void,
            )
        }
        .map_err(failed)
    }

    /// Queues the softmax of dense rows whose reach was checked.
    pub(super) fn softmax(&mut self, rows: usize, columns: usize, input: &Piece, out: &Piece) -> Result<()> {
        let context = Arc::clone(&self.context);
        let _queue = context.queue();
        self.context.bind()?;
        let sizes = dense(input.dtype, &[rows, columns, 1, 1])?;
        let scales = Scales::of(input.dtype);
        // SAFETY: the descriptor lives until the call returns and says what the caller checked to lie in the pieces.
        unsafe {
            result::softmax_forward(
                self.handle,
                sys::cudnnSoftmaxAlgorithm_t::CUDNN_SOFTMAX_ACCURATE,
                sys::cudnnSoftmaxMode_t::CUDNN_SOFTMAX_MODE_CHANNEL,
                scales.pointer(true),
                sizes.0,
                address(input)? as *const c_void,
                scales.pointer(false),
                sizes.0,
                address(out)? as *mut c_void,
            )
        }
        .map_err(failed)
    }
}

impl Drop for Dnn {
    fn drop(&mut self) {
        self.layers.clear();
        if self.context.bind().is_ok() {
            // SAFETY: made by `create_handle` and owned by this alone.
            let _ = unsafe { result::destroy_handle(self.handle) };
        }
    }
}

unsafe fn destroy_pooling(descriptor: sys::cudnnPoolingDescriptor_t) -> std::result::Result<(), CudnnError> {
    // SAFETY: the caller's promise.
    unsafe { sys::cudnnDestroyPoolingDescriptor(descriptor) }.result()
}

fn data(dtype: DType) -> sys::cudnnDataType_t {
    match dtype {
        DType::F64 => sys::cudnnDataType_t::CUDNN_DATA_DOUBLE,
        DType::F16 => sys::cudnnDataType_t::CUDNN_DATA_HALF,
        DType::BF16 => sys::cudnnDataType_t::CUDNN_DATA_BFLOAT16,
        _ => sys::cudnnDataType_t::CUDNN_DATA_FLOAT,
    }
}

/// Sizes as the library takes them.
fn small(sizes: &[usize]) -> Result<Vec<i32>> {
    let fits = |size: &usize| i32::try_from(*size);
    sizes
        .iter()
        .map(fits)
        .collect::<std::result::Result<_, _>>()
        .map_err(|_| Diagnostic::unsupported("sizes above 2^31 of cuDNN"))
}

fn tensor(dtype: DType, sizes: &[usize], strides: &[usize]) -> Result<Tensor> {
    let (sizes, strides) = (small(sizes)?, small(strides)?);
    let descriptor = result::create_tensor_descriptor().map_err(failed)?;
    let descriptor = Descriptor(descriptor, result::destroy_tensor_descriptor as unsafe fn(_) -> _);
    // SAFETY: the descriptor was just made, and both lists have as many entries as is said.
    unsafe {
        result::set_tensornd_descriptor(
            descriptor.0,
            data(dtype),
            sizes.len() as i32,
            sizes.as_ptr(),
            strides.as_ptr(),
        )
    }
    .map_err(failed)?;
    Ok(descriptor)
}

fn dense(dtype: DType, sizes: &[usize]) -> Result<Tensor> {
    let mut strides = vec![1; sizes.len()];
    for n in (1..sizes.len()).rev() {
        strides[n - 1] = strides[n] * sizes[n];
    }
    tensor(dtype, sizes, &strides)
}

impl Layer {
    fn new(handle: sys::cudnnHandle_t, layer: &Convolution, precision: Precision) -> Result<Layer> {
        let mut channels = vec![1; layer.output.len()];
        channels[1] = layer.output[1];
        let (input, out) = (dense(layer.dtype, &layer.input)?, dense(layer.dtype, &layer.output)?);
        let bias = dense(layer.dtype, &channels)?;
        let (weight, steps) = (filter(layer)?, steps(layer, precision)?);
        let mut found = [std::mem::MaybeUninit::<sys::cudnnConvolutionFwdAlgoPerf_t>::uninit(); ALGORITHMS];
        let mut count = 0;
        // SAFETY: descriptors live, and there is room for as many answers as are asked for.
        unsafe {
            let room = found.as_mut_ptr().cast();
            result::get_convolution_forward_algorithm(
                handle,
                input.0,
                weight.0,
                steps.0,
                out.0,
                ALGORITHMS as i32,
                &mut count,
                room,
            )
            .map_err(failed)?;
        }
        let count = usize::try_from(count).unwrap_or(0).min(ALGORITHMS);
        // SAFETY: the library has written this many answers.
        let found = found[..count].iter().map(|perf| unsafe { perf.assume_init_ref() });
        for perf in found {
            let fits =
                perf.status == sys::cudnnStatus_t::CUDNN_STATUS_SUCCESS && perf.memory <= MAX_WORKSPACE;
            if !fits {
                continue;
            }
            // SAFETY: descriptors live.
            let workspace = unsafe {
                result::get_convolution_forward_workspace_size(
                    handle, input.0, weight.0, steps.0, out.0, perf.algo,
                )
            };
            if let Ok(workspace) = workspace
                && workspace <= MAX_WORKSPACE
            {
                return Ok(Layer { input, weight, steps, bias, out, algorithm: perf.algo, workspace });
            }
        }
        Err(Diagnostic::unsupported("cuDNN has no algorithm for such a convolution"))
    }
}

fn filter(layer: &Convolution) -> Result<Descriptor<sys::cudnnFilterDescriptor_t>> {
    let sizes = small(&layer.weight)?;
    let filter = Descriptor(
        result::create_filter_descriptor().map_err(failed)?,
        result::destroy_filter_descriptor as unsafe fn(_) -> _,
    );
    let format = sys::cudnnTensorFormat_t::CUDNN_TENSOR_NCHW;
    // SAFETY: the descriptor was just made, and there are as many sizes as is said.
    unsafe {
        result::set_filternd_descriptor(
            filter.0,
            data(layer.dtype),
            format,
            sizes.len() as i32,
            sizes.as_ptr(),
        )
    }
    .map_err(failed)?;
    Ok(filter)
}

fn steps(layer: &Convolution, precision: Precision) -> Result<Descriptor<sys::cudnnConvolutionDescriptor_t>> {
    use sys::cudnnMathType_t as Math;
    let [padding, stride, dilation] =
        [&layer.padding, &layer.stride, &layer.dilation].map(|sizes| small(sizes));
    let (padding, stride, dilation) = (padding?, stride?, dilation?);
    let groups = small(&[layer.groups])?[0];
    let steps = Descriptor(
        result::create_convolution_descriptor().map_err(failed)?,
        result::destroy_convolution_descriptor as unsafe fn(_) -> _,
    );
    let compute = match layer.dtype {
        DType::F64 => sys::cudnnDataType_t::CUDNN_DATA_DOUBLE,
        _ => sys::cudnnDataType_t::CUDNN_DATA_FLOAT,
    };
    let math = match (layer.dtype, precision) {
        (DType::F32, Precision::Float32) => Math::CUDNN_FMA_MATH,
        (DType::F16 | DType::BF16, _) => Math::CUDNN_TENSOR_OP_MATH,
        _ => Math::CUDNN_DEFAULT_MATH,
    };
    // SAFETY: the descriptor was just made, and the lists have as many entries as is said.
    unsafe {
        result::set_convolutionnd_descriptor(
            steps.0,
            padding.len() as i32,
            padding.as_ptr(),
            stride.as_ptr(),
            dilation.as_ptr(),
            sys::cudnnConvolutionMode_t::CUDNN_CROSS_CORRELATION,
            compute,
        )
        .map_err(failed)?;
        result::set_convolution_math_type(steps.0, math).map_err(failed)?;
        result::set_convolution_group_count(steps.0, groups).map_err(failed)?;
    }
    Ok(steps)
}
