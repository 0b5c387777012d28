//! One GPU: its kernels, and products of matrices.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cudarc::cublas::{CudaBlas, result as blas, sys as blas_sys};
use cudarc::driver::{
    CudaContext, CudaFunction, CudaModule, CudaSlice, CudaStream, CudaView, DevicePtr, DeviceRepr, DriverError,
    LaunchConfig, ValidAsZeroBits,
};
use cudarc::nvrtc::{CompileError, CompileOptions, compile_ptx_with_opts};

const SOURCE: &str = include_str!("kernels.cu");

/// Parts that a sum over rows is computed in, so that a narrow product occupies the whole GPU.
pub const PARTS: usize = 32;

/// What keeps a GPU from being used.
#[derive(Debug, thiserror::Error)]
pub enum GpuError {
    #[error(
        "no CUDA device: {0}. It needs an NVIDIA driver, and libcublas and libnvrtc of CUDA 12 or 13 where the dynamic linker \
         finds them (LD_LIBRARY_PATH)"
    )]
    Missing(String),
    #[error("the GPU failed: {0}")]
    Driver(#[from] DriverError),
    #[error("cuBLAS failed: {0:?}")]
    Blas(#[from] blas::CublasError),
    #[error("the kernels do not compile for this GPU")]
    Compile(#[from] CompileError),
    #[error("the GPU kernels cannot compute this network: {0}")]
    Shape(String),
}

pub struct Device {
    pub stream: Arc<CudaStream>,
    module: Arc<CudaModule>,
    blas: CudaBlas,
}

/// Whether a product's left operand, and its right one, are transposed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Turned {
    /// y [rows, out] = x [rows, in] Wᵀ, W being [out, in].
    Right,
    /// x [rows, in] = y [rows, out] W
    Neither,
}

impl Device {
    /// The `ordinal`-th GPU, with the kernels compiled for it.
    pub fn open(ordinal: usize, options: Vec<String>) -> Result<Self, GpuError> {
        // A library that cannot be opened is a panic of cudarc.
        let open = || -> Result<Self, GpuError> {
            let context = CudaContext::new(ordinal)?;
            // SAFETY: all work is on one stream, so nothing has to wait for events.
            unsafe { context.disable_event_tracking() };
            let (major, minor) = context.compute_capability()?;
            let arch = format!("--gpu-architecture=compute_{major}{minor}");
            let options = [vec![arch], options].concat();
            let compiled = compile_ptx_with_opts(SOURCE, CompileOptions { options, ..CompileOptions::default() })?;
            let module = context.load_module(compiled)?;
            let stream = context.new_stream()?;
            let blas = CudaBlas::new(Arc::clone(&stream))?;
            Ok(Self { stream, module, blas })
        };
        let missing = |panic: Box<dyn std::any::Any + Send>| {
            let text = panic.downcast_ref::<String>().cloned();
            GpuError::Missing(text.unwrap_or_else(|| "a library of CUDA cannot be opened".to_owned()))
        };
        match catch_unwind(AssertUnwindSafe(open)).map_err(missing)? {
            Err(GpuError::Driver(error)) => Err(GpuError::Missing(error.to_string())),
            other => other,
        }
    }

    pub fn kernel(&self, name: &str) -> Result<CudaFunction, GpuError> {
        Ok(self.module.load_function(name)?)
    }

    pub fn zeros<T: DeviceRepr + ValidAsZeroBits>(&self, count: usize) -> Result<CudaSlice<T>, GpuError> {
        Ok(self.stream.alloc_zeros(count.max(1))?)
    }

    pub fn clear<T: DeviceRepr + ValidAsZeroBits>(&self, values: &mut CudaSlice<T>) -> Result<(), GpuError> {
        Ok(self.stream.memset_zeros(values)?)
    }

    /// `sum` [rows, columns] = `left` [rows, inner] times the matrix `right`, plus `sum` if `adds`. `sum` is of f32 or bf16.
    pub fn product<S: Sum>(
        &self,
        shape: [usize; 3],
        left: &CudaView<'_, u16>,
        right: &CudaView<'_, u16>,
        turned: Turned,
        sum: &CudaView<'_, S>,
        adds: bool,
    ) -> Result<(), GpuError> {
        self.products(1, shape, [left, right], turned, sum, f32::from(u8::from(adds)))
    }

    /// Of each of `count` pairs of matrices the product, plus `keep` times `sum`.
    pub fn products<S: Sum>(
        &self,
        count: usize,
        [rows, columns, inner]: [usize; 3],
        [left, right]: [&CudaView<'_, u16>; 2],
        turned: Turned,
        sum: &CudaView<'_, S>,
        keep: f32,
    ) -> Result<(), GpuError> {
        let one = 1.0f32;
        let (operation, stride) = match turned {
            Turned::Right => (blas_sys::cublasOperation_t::CUBLAS_OP_T, inner),
            Turned::Neither => (blas_sys::cublasOperation_t::CUBLAS_OP_N, columns),
        };
        let [left_size, right_size, sum_size] = [rows * inner, columns * inner, rows * columns];
        assert!(left.len() >= count * left_size && right.len() >= count * right_size && sum.len() >= count * sum_size);
        // SAFETY: the operands are as long as their shapes say; cuBLAS counts by columns, so that it sees each matrix transposed
        // and the product in reverse.
        unsafe {
            blas::gemm_strided_batched_ex(
                *self.blas.handle(),
                operation,
                blas_sys::cublasOperation_t::CUBLAS_OP_N,
                columns as i32,
                rows as i32,
                inner as i32,
                (&raw const one).cast(),
                self.pointer(right) as *const _,
                HALF,
                stride as i32,
                right_size as i64,
                self.pointer(left) as *const _,
                HALF,
                inner as i32,
                left_size as i64,
                (&raw const keep).cast(),
                self.pointer(sum) as *mut _,
                S::TYPE,
                columns as i32,
                sum_size as i64,
                count as i32,
                blas_sys::cublasComputeType_t::CUBLAS_COMPUTE_32F,
                blas_sys::cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT,
            )?;
        }
        Ok(())
    }

    /// The transpose of `left` [rows, m] times `right` [rows, n], as [`PARTS`] sums over as many parts of the rows, [PARTS, m, n].
    pub fn outer(
        &self,
        [rows, m, n]: [usize; 3],
        left: &CudaView<'_, u16>,
        right: &CudaView<'_, u16>,
        parts: &CudaView<'_, f32>,
    ) -> Result<(), GpuError> {
        let (one, zero) = (1.0f32, 0.0f32);
        let part = rows / PARTS;
        assert!(rows.is_multiple_of(PARTS) && left.len() >= rows * m && right.len() >= rows * n);
        assert!(parts.len() >= PARTS * m * n);
        // SAFETY: as above.
        unsafe {
            blas::gemm_strided_batched_ex(
                *self.blas.handle(),
                blas_sys::cublasOperation_t::CUBLAS_OP_N,
                blas_sys::cublasOperation_t::CUBLAS_OP_T,
                n as i32,
                m as i32,
                part as i32,
                (&raw const one).cast(),
                self.pointer(right) as *const _,
                HALF,
                n as i32,
                (part * n) as i64,
                self.pointer(left) as *const _,
                HALF,
                m as i32,
                (part * m) as i64,
                (&raw const zero).cast(),
                self.pointer(parts) as *mut _,
                f32::TYPE,
                n as i32,
                (m * n) as i64,
                PARTS as i32,
                blas_sys::cublasComputeType_t::CUBLAS_COMPUTE_32F,
                blas_sys::cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT,
            )?;
        }
        Ok(())
    }

    fn pointer<T>(&self, view: &CudaView<'_, T>) -> u64 {
        view.device_ptr(&self.stream).0
    }
}

const HALF: blas_sys::cudaDataType = blas_sys::cudaDataType::CUDA_R_16BF;

/// What a product's sums are stored as.
pub trait Sum {
    const TYPE: blas_sys::cudaDataType;
}

impl Sum for f32 {
    const TYPE: blas_sys::cudaDataType = blas_sys::cudaDataType::CUDA_R_32F;
}

/// The bits of a bf16 value.
impl Sum for u16 {
    const TYPE: blas_sys::cudaDataType = HALF;
}

/// Launches a kernel: its configuration, then its arguments in order.
macro_rules! launch {
    ($device:expr, $kernel:expr, $config:expr, $($argument:expr),* $(,)?) => {{
        let mut launch = $device.stream.launch_builder(&$kernel);
        $(launch.arg($argument);)*
        // SAFETY: the arguments are those of the kernel, in its order, and its buffers are as long as it counts.
        unsafe { launch.launch($config) }.map(drop)
    }};
}

/// A struct of kernels, by their names.
macro_rules! kernels {
    ($($name:ident),* $(,)?) => {
        struct Kernels { $($name: CudaFunction),* }

        impl Kernels {
            fn load(device: &Device) -> Result<Self, GpuError> {
                Ok(Self { $($name: device.kernel(stringify!($name))?),* })
            }
        }
    };
}

pub(crate) use {kernels, launch};

/// The whole buffer.
pub fn all<T>(slice: &CudaSlice<T>) -> CudaView<'_, T> {
    slice.slice(..)
}

/// `blocks` blocks of `threads`.
pub fn grid(blocks: usize, threads: usize) -> LaunchConfig {
    LaunchConfig { grid_dim: (blocks.max(1) as u32, 1, 1), block_dim: (threads as u32, 1, 1), shared_mem_bytes: 0 }
}

/// A thread for each of `count` values, or several values a thread.
pub fn each(count: usize) -> LaunchConfig {
    grid(count.div_ceil(256).min(8192), 256)
}
