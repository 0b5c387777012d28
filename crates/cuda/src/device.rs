//! One GPU: its kernels, and products of matrices.

use std::sync::Arc;

use cudarc::cublas::{CudaBlas, result as blas, sys as blas_sys};
use cudarc::driver::{
    CudaContext, CudaFunction, CudaModule, CudaSlice, CudaStream, CudaView, DevicePtr, DeviceRepr,
    DriverError, LaunchConfig, ValidAsZeroBits,
};
use cudarc::nvrtc::{CompileError, CompileOptions, compile_ptx_with_opts};

const SOURCE: &str = include_str!("kernels.cu");

/// Number of parts in which a sum over rows is computed, so that a narrow product occupies the
/// whole GPU.
pub const PARTS: usize = 32;

/// A reason why a GPU cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum GpuError {
    /// A library of CUDA's cannot be opened; its name.
    #[error(
        "{0} cannot be opened: a GPU needs an NVIDIA driver, and libcublas and libnvrtc of CUDA 12 or 13 where the dynamic linker \
         finds them (LD_LIBRARY_PATH)"
    )]
    Library(&'static str),
    /// The machine has no such device.
    #[error("there is no CUDA device {ordinal}")]
    Missing {
        /// The number of the device, from 0.
        ordinal: usize,
        /// The driver's error.
        source: DriverError,
    },
    /// A call of the driver failed.
    #[error("the GPU failed")]
    Driver(#[from] DriverError),
    /// A product of matrices failed.
    #[error("cuBLAS failed")]
    Blas(#[from] blas::CublasError),
    /// NVRTC refuses the kernels.
    #[error("the kernels do not compile for this GPU")]
    Compile(#[from] CompileError),
    /// The network's sizes are not those that the kernels support; with the rule.
    #[error("the GPU kernels cannot compute this network: {0}")]
    Shape(String),
}

pub struct Device {
    pub stream: Arc<CudaStream>,
    module: Arc<CudaModule>,
    blas: CudaBlas,
}

/// How the right operand of a product lies in memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Turned {
    /// y [rows, out] = x [rows, in] Wᵀ, W being [out, in].
    Right,
    /// x [rows, in] = y [rows, out] W
    Neither,
}

/// An operand of cuBLAS, perhaps transposed; `size` is the distance to the next matrix of a batch.
struct Operand {
    pointer: u64,
    is_turned: bool,
    stride: usize,
    size: usize,
}

impl Device {
    /// The `ordinal`-th GPU, with the kernels compiled for it.
    pub fn open(ordinal: usize, options: Vec<String>) -> Result<Self, GpuError> {
        // cudarc panics where it cannot open a library, so its presence is checked first.
        // SAFETY: the libraries are those of CUDA, whose initialisers may run.
        let libraries = unsafe {
            [
                ("libcuda", cudarc::driver::sys::is_culib_present()),
                ("libnvrtc", cudarc::nvrtc::sys::is_culib_present()),
                ("libcublas", blas_sys::is_culib_present()),
            ]
        };

        if let Some((library, _)) = libraries.into_iter().find(|(_, is_present)| !is_present) {
            return Err(GpuError::Library(library));
        }

        let context =
            CudaContext::new(ordinal).map_err(|source| GpuError::Missing { ordinal, source })?;
        // SAFETY: all work is on one stream, so nothing has to wait for events.
        unsafe { context.disable_event_tracking() };

        let (major, minor) = context.compute_capability()?;
        let arch = format!("--gpu-architecture=compute_{major}{minor}");
        let options = [vec![arch], options].concat();
        let compiled =
            compile_ptx_with_opts(SOURCE, CompileOptions { options, ..CompileOptions::default() })?;
        let module = context.load_module(compiled)?;

        let stream = context.new_stream()?;
        let blas = CudaBlas::new(Arc::clone(&stream))?;
        Ok(Self { stream, module, blas })
    }

    pub fn kernel(&self, name: &str) -> Result<CudaFunction, GpuError> {
        Ok(self.module.load_function(name)?)
    }

    pub fn zeros<T: DeviceRepr + ValidAsZeroBits>(
        &self,
        count: usize,
    ) -> Result<CudaSlice<T>, GpuError> {
        // CUDA allocates no empty buffers.
        Ok(self.stream.alloc_zeros(count.max(1))?)
    }

    pub fn clear<T: DeviceRepr + ValidAsZeroBits>(
        &self,
        values: &mut CudaSlice<T>,
    ) -> Result<(), GpuError> {
        Ok(self.stream.memset_zeros(values)?)
    }

    /// `sum` [rows, columns] = `left` [rows, inner] times the matrix `right`, plus `sum` if `adds`.
    /// `sum` is of f32 or bf16.
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

    /// The product of each of `count` pairs of matrices, plus `keep` times `sum`.
    pub fn products<S: Sum>(
        &self,
        count: usize,
        [rows, columns, inner]: [usize; 3],
        [left, right]: [&CudaView<'_, u16>; 2],
        turned: Turned,
        sum: &CudaView<'_, S>,
        keep: f32,
    ) -> Result<(), GpuError> {
        let [left_size, right_size, sum_size] = [rows * inner, columns * inner, rows * columns];
        assert!(
            left.len() >= count * left_size
                && right.len() >= count * right_size
                && sum.len() >= count * sum_size
        );

        let is_turned = turned == Turned::Right;
        let stride = if is_turned { inner } else { columns };
        let right = Operand { pointer: self.pointer(right), is_turned, stride, size: right_size };
        let left = Operand {
            pointer: self.pointer(left),
            is_turned: false,
            stride: inner,
            size: left_size,
        };

        self.multiply(
            count,
            [columns, rows, inner],
            [right, left],
            keep,
            (self.pointer(sum), S::TYPE),
        )
    }

    /// The transpose of `left` [rows, m] times `right` [rows, n], as [`PARTS`] sums [PARTS, m, n],
    /// each over one part of the rows.
    pub fn outer(
        &self,
        [rows, m, n]: [usize; 3],
        left: &CudaView<'_, u16>,
        right: &CudaView<'_, u16>,
        parts: &CudaView<'_, f32>,
    ) -> Result<(), GpuError> {
        assert!(rows.is_multiple_of(PARTS) && left.len() >= rows * m && right.len() >= rows * n);
        assert!(parts.len() >= PARTS * m * n);

        let part = rows / PARTS;
        let right =
            Operand { pointer: self.pointer(right), is_turned: false, stride: n, size: part * n };
        let left =
            Operand { pointer: self.pointer(left), is_turned: true, stride: m, size: part * m };
        self.multiply(PARTS, [n, m, part], [right, left], 0.0, (self.pointer(parts), f32::TYPE))
    }

    /// Calls cuBLAS, which stores matrices by columns: it sees each one transposed, and the
    /// product's operands in reverse. `m`, `n` and `k` are named as in its documentation. The
    /// callers have checked that the operands are as long as these say.
    fn multiply(
        &self,
        count: usize,
        [m, n, k]: [usize; 3],
        [first, second]: [Operand; 2],
        keep: f32,
        (sum, sum_type): (u64, blas_sys::cudaDataType),
    ) -> Result<(), GpuError> {
        let one = 1.0f32;
        let operation = |operand: &Operand| {
            if operand.is_turned {
                blas_sys::cublasOperation_t::CUBLAS_OP_T
            } else {
                blas_sys::cublasOperation_t::CUBLAS_OP_N
            }
        };

        // SAFETY: the callers have asserted the lengths.
        unsafe {
            blas::gemm_strided_batched_ex(
                *self.blas.handle(),
                operation(&first),
                operation(&second),
                m as i32,
                n as i32,
                k as i32,
                (&raw const one).cast(),
                first.pointer as *const _,
                HALF,
                first.stride as i32,
                first.size as i64,
                second.pointer as *const _,
                HALF,
                second.stride as i32,
                second.size as i64,
                (&raw const keep).cast(),
                sum as *mut _,
                sum_type,
                m as i32,
                (m * n) as i64,
                count as i32,
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

/// A type in which a product's sums are stored.
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
        // SAFETY: the arguments are those of the kernel, in its order, and the buffers are at least
        // as long as the counts say.
        unsafe { launch.launch($config) }.map(drop)
    }};
}

/// A struct of kernels, by their names.
macro_rules! kernels {
    ($($name:ident),* $(,)?) => {
        pub(crate) struct Kernels { $(pub $name: CudaFunction),* }

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
    LaunchConfig {
        grid_dim: (blocks.max(1) as u32, 1, 1),
        block_dim: (threads as u32, 1, 1),
        shared_mem_bytes: 0,
    }
}

/// A thread for each of `count` values, or several values per thread.
pub fn each(count: usize) -> LaunchConfig {
    // The kernels' loops step by the size of the grid, so that fewer threads than values suffice.
    grid(count.div_ceil(256).min(8192), 256)
}
