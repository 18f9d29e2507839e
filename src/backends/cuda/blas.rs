//! Matrix products by cuBLASLt, which is opened at run time. How a product is computed is asked once for each shape.

#![allow(unsafe_code, reason = "the library has a C interface")]

use super::driver::{Buffer, Context};
use super::operands::{Precision, address};
use crate::backends::library::{Matrix, Piece, Product};
use crate::diag::{Diagnostic, Result};
use crate::tensor::DType;
use cudarc::cublaslt::result::{self, CublasError};
use cudarc::cublaslt::sys::{self, cublasComputeType_t as Compute, cudaDataType_t as Data};
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use std::ffi::c_void;
use std::sync::Arc;

/// What NVIDIA recommends for its newest devices.
const WORKSPACE: usize = 32 << 20;
/// Largest alignment that is distinguished.
const MAX_ALIGNMENT: u64 = 256;

/// cuBLASLt with a workspace.
pub(super) struct Blas {
    context: Arc<Context>,
    handle: sys::cublasLtHandle_t,
    workspace: Buffer,
    precision: Precision,
    plans: HashMap<Key, Plan>,
}

// SAFETY: the handle and descriptors may be used from any thread that has bound the context, one at a time.
unsafe impl Send for Blas {}

/// All that a plan depends on.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    dtype: DType,
    sizes: [usize; 4],
    factors: [Matrix; 2],
    out_stride: usize,
    biased: bool,
    /// Of both factors and the result, in bytes.
    alignments: [u32; 3],
}

/// How products of a shape are computed.
struct Plan {
    operation: Operation,
    layouts: [Layout; 3],
    algorithm: sys::cublasLtMatmulAlgo_t,
}

struct Operation(sys::cublasLtMatmulDesc_t);

impl Drop for Operation {
    fn drop(&mut self) {
        // SAFETY: made by `create_matmul_desc` and owned by this alone.
        let _ = unsafe { result::destroy_matmul_desc(self.0) };
    }
}

struct Layout(sys::cublasLtMatrixLayout_t);

impl Drop for Layout {
    fn drop(&mut self) {
        // SAFETY: made by `create_matrix_layout` and owned by this alone.
        let _ = unsafe { result::destroy_matrix_layout(self.0) };
    }
}

struct Preference(sys::cublasLtMatmulPreference_t);

impl Drop for Preference {
    fn drop(&mut self) {
        // SAFETY: made by `create_matmul_pref` and owned by this alone.
        let _ = unsafe { result::destroy_matmul_pref(self.0) };
    }
}

fn failed(error: CublasError) -> Diagnostic {
    match error.0 {
        sys::cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED => {
            Diagnostic::unsupported("cuBLASLt has no product of such a shape")
        }
        status => Diagnostic::device(format!("cuBLASLt: {status:?}")),
    }
}

impl Blas {
    /// Opens the library; None where it is not installed.
    pub(super) fn open(context: &Arc<Context>, precision: Precision) -> Result<Option<Blas>> {
        // SAFETY: only opens and closes the shared library.
        if !unsafe { sys::is_culib_present() } {
            return Ok(None);
        }
        context.bind()?;
        let handle = result::create_handle().map_err(failed)?;
        let workspace = context.allocate(WORKSPACE)?;
        let context = Arc::clone(context);
        Ok(Some(Blas { context, handle, workspace, precision, plans: HashMap::new() }))
    }

    /// Queues a product whose reach was checked.
    pub(super) fn product(
        &mut self,
        product: &Product,
        [a, b]: [&Piece; 2],
        bias: Option<&Piece>,
        out: &Piece,
    ) -> Result<()> {
        let context = Arc::clone(&self.context);
        let _queue = context.queue();
        self.context.bind()?;
        let (left, right, result) = (address(a)?, address(b)?, address(out)?);
        let alignment = |address: u64| (address | MAX_ALIGNMENT).trailing_zeros();
        let key = Key {
            dtype: product.dtype,
            sizes: [product.m, product.n, product.k, product.batch],
            factors: [product.a, product.b],
            out_stride: product.out_stride,
            biased: bias.is_some(),
            alignments: [left, right, result].map(alignment).map(|bits| 1 << bits),
        };
        let (handle, precision) = (self.handle, self.precision);
        let plan = match self.plans.entry(key) {
            Entry::Occupied(found) => found.into_mut(),
            Entry::Vacant(place) => place.insert(Plan::new(handle, &key, precision)?),
        };
        if let Some(bias) = bias {
            let bias = address(bias)?;
            set(
                &plan.operation,
                sys::cublasLtMatmulDescAttributes_t::CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                &bias,
            )?;
        }
        let wide = product.dtype == DType::F64;
        let (double, single) = ([product.alpha, 0.0], [product.alpha as f32, 0.0]);
        let pointer = |n: usize| match wide {
            true => std::ptr::from_ref(&double[n]).cast::<c_void>(),
            false => std::ptr::from_ref(&single[n]).cast::<c_void>(),
        };
        let [first, second, third] = &plan.layouts;
        // SAFETY: descriptors live in the plan and say what the caller checked to lie in the pieces; scales are numbers of
        // the operation's scale type; the workspace is as large as is said, and all work is on one stream, so that nothing
        // else uses it meanwhile. Memory is freed on the stream, after this call.
        let done = unsafe {
            result::matmul(
                handle,
                plan.operation.0,
                pointer(0),
                pointer(1),
                right as *const c_void,
                first.0,
                left as *const c_void,
                second.0,
                result as *const c_void,
                third.0,
                result as *mut c_void,
                third.0,
                &plan.algorithm,
                self.workspace.address(0) as *mut c_void,
                WORKSPACE,
                self.context.stream().cu_stream().cast(),
            )
        };
        done.map_err(failed)
    }
}

impl Drop for Blas {
    fn drop(&mut self) {
        self.plans.clear();
        if self.context.bind().is_ok() {
            // SAFETY: made by `create_handle` and owned by this alone.
            let _ = unsafe { result::destroy_handle(self.handle) };
        }
    }
}

fn set<T>(operation: &Operation, name: sys::cublasLtMatmulDescAttributes_t, value: &T) -> Result<()> {
    // SAFETY: the descriptor lives, and the value is copied with its size.
    unsafe {
        result::set_matmul_desc_attribute(operation.0, name, std::ptr::from_ref(value).cast(), size_of::<T>())
    }
    .map_err(failed)
}

impl Plan {
    /// Rows of results are columns to the library, which reads matrices by columns: it computes the transposed result, from
    /// the right factor and the left one in this order.
    fn new(handle: sys::cublasLtHandle_t, key: &Key, precision: Precision) -> Result<Plan> {
        use sys::cublasLtMatmulDescAttributes_t as Attribute;
        let [m, n, k, batch] = key.sizes;
        let data = match key.dtype {
            DType::F64 => Data::CUDA_R_64F,
            DType::F16 => Data::CUDA_R_16F,
            DType::BF16 => Data::CUDA_R_16BF,
            _ => Data::CUDA_R_32F,
        };
        let (compute, scale) = match (key.dtype, precision) {
            (DType::F64, _) => (Compute::CUBLAS_COMPUTE_64F, Data::CUDA_R_64F),
            (DType::F32, Precision::Tf32) => (Compute::CUBLAS_COMPUTE_32F_FAST_TF32, Data::CUDA_R_32F),
            _ => (Compute::CUBLAS_COMPUTE_32F, Data::CUDA_R_32F),
        };
        let operation = Operation(result::create_matmul_desc(compute, scale).map_err(failed)?);
        let [a, b] = key.factors;
        set(&operation, Attribute::CUBLASLT_MATMUL_DESC_TRANSA, &i32::from(b.transposed))?;
        set(&operation, Attribute::CUBLASLT_MATMUL_DESC_TRANSB, &i32::from(a.transposed))?;
        if key.biased {
            let epilogue = sys::cublasLtEpilogue_t::CUBLASLT_EPILOGUE_BIAS;
            set(&operation, Attribute::CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue)?;
        }
        let layout = |(rows, columns): (usize, usize), leading: usize, stride: usize| {
            matrix(data, [rows, columns, leading], batch, stride)
        };
        let layouts = [
            layout(if b.transposed { (k, n) } else { (n, k) }, b.leading, b.stride)?,
            layout(if a.transposed { (m, k) } else { (k, m) }, a.leading, a.stride)?,
            layout((n, m), n, key.out_stride)?,
        ];
        let algorithm = algorithm(handle, &operation, &layouts, key.alignments)?;
        Ok(Plan { operation, layouts, algorithm })
    }
}

/// A batch of matrices, column by column.
fn matrix(data: Data, [rows, columns, leading]: [usize; 3], batch: usize, stride: usize) -> Result<Layout> {
    use sys::cublasLtMatrixLayoutAttribute_t as Attribute;
    let layout = result::create_matrix_layout(data, rows as u64, columns as u64, leading as i64);
    let layout = Layout(layout.map_err(failed)?);
    let count = i32::try_from(batch).map_err(|_| Diagnostic::unsupported("a batch of such a size"))?;
    let stride = stride as i64;
    // SAFETY: the layout lives, and the values are copied with their sizes.
    unsafe {
        let count_at = std::ptr::from_ref(&count).cast();
        let stride_at = std::ptr::from_ref(&stride).cast();
        result::set_matrix_layout_attribute(
            layout.0,
            Attribute::CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
            count_at,
            4,
        )
        .map_err(failed)?;
        let offset = Attribute::CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET;
        result::set_matrix_layout_attribute(layout.0, offset, stride_at, 8).map_err(failed)?;
    }
    Ok(layout)
}

/// What the library takes to be fastest for memory of such alignments.
fn algorithm(
    handle: sys::cublasLtHandle_t,
    operation: &Operation,
    [first, second, third]: &[Layout; 3],
    [left, right, result]: [u32; 3],
) -> Result<sys::cublasLtMatmulAlgo_t> {
    use sys::cublasLtMatmulPreferenceAttributes_t as Attribute;
    let preference = Preference(result::create_matmul_pref().map_err(failed)?);
    let workspace = WORKSPACE as u64;
    let alignments = [
        (Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, right),
        (Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, left),
        (Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, result),
        (Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, result),
    ];
    // SAFETY: the preference lives, and the values are copied with their sizes; descriptors are those of a plan.
    unsafe {
        let bytes = Attribute::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
        let workspace = std::ptr::from_ref(&workspace).cast();
        result::set_matmul_pref_attribute(preference.0, bytes, workspace, 8).map_err(failed)?;
        for (name, alignment) in &alignments {
            let alignment = std::ptr::from_ref(alignment).cast();
            result::set_matmul_pref_attribute(preference.0, *name, alignment, 4).map_err(failed)?;
        }
        let found = result::get_matmul_algo_heuristic(
            handle,
            operation.0,
            first.0,
            second.0,
            third.0,
            third.0,
            preference.0,
        );
        Ok(found.map_err(failed)?.algo)
    }
}
