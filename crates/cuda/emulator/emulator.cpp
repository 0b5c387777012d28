// The calls of CUDA's driver, cuBLAS and NVRTC that prime-cuda makes, computed on the CPU: the kernels of kernels.cu, compiled as
// C++, with a fiber for each thread of a block. For tests where there is no GPU; it knows no streams, no races and no limits.
//
// One source for the three libraries: g++ -shared -fPIC -DHEAD=32 -DWIDTH=64 -DFF=96 emulator.cpp, under each of their names.

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <tuple>
#include <ucontext.h>
#include <utility>
#include <vector>

struct Dimensions {
    unsigned int x, y, z;
};

static Dimensions threadIdx, blockIdx, blockDim, gridDim;

#define __global__
#define __device__
#define __shared__ static

static inline float __uint_as_float(unsigned int bits) {
    float value;
    memcpy(&value, &bits, 4);
    return value;
}
static inline unsigned int __float_as_uint(float value) {
    unsigned int bits;
    memcpy(&bits, &value, 4);
    return bits;
}
#define __expf expf
#define __logf logf
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
template <class T> static T min(T a, T b) { return a < b ? a : b; }
template <class T> static T max(T a, T b) { return a < b ? b : a; }
static inline float atomicAdd(float *sum, float value) { return std::exchange(*sum, *sum + value); }

// The threads of a block take turns: each runs to its next barrier, or to its end.
struct Fiber {
    ucontext_t context;
    std::vector<char> stack = std::vector<char>(64 * 1024);
    bool is_done = false;
};

static ucontext_t scheduler;
static std::vector<Fiber> fibers;
static unsigned int current;
static float exchanged[1024];
static void (*body)(void *);
static void *body_arguments;

static void rest() {
    unsigned int own = current;
    swapcontext(&fibers[own].context, &scheduler);
    threadIdx.x = own;
}

static void __syncthreads() { rest(); }

// All threads of a block that are alive call it equally often.
static float __shfl_xor_sync(unsigned int, float value, int distance) {
    unsigned int own = current;
    exchanged[own] = value;
    rest();
    float other = exchanged[own ^ distance];
    rest();
    return other;
}

static void run_fiber() {
    body(body_arguments);
    fibers[current].is_done = true;
    swapcontext(&fibers[current].context, &scheduler);
}

static void run_block() {
    if (fibers.size() < blockDim.x) fibers.resize(blockDim.x);
    for (unsigned int thread = 0; thread < blockDim.x; thread++) {
        Fiber &fiber = fibers[thread];
        getcontext(&fiber.context);
        fiber.context.uc_stack = {fiber.stack.data(), 0, fiber.stack.size()};
        fiber.context.uc_link = nullptr;
        fiber.is_done = false;
        makecontext(&fiber.context, run_fiber, 0);
    }
    for (bool is_alive = true; is_alive;) {
        is_alive = false;
        for (current = 0; current < blockDim.x; current++) {
            if (fibers[current].is_done) continue;
            threadIdx.x = current;
            swapcontext(&scheduler, &fibers[current].context);
            is_alive |= !fibers[current].is_done;
        }
    }
}

#include "../src/kernels.cu"

// A kernel that takes its arguments as the driver does: an array of pointers to them.
struct Kernel {
    void (*call)(void *);
};

template <auto Function, class... Arguments, size_t... Places>
static void apply(void **arguments, void (*)(Arguments...), std::index_sequence<Places...>) {
    Function(*static_cast<Arguments *>(arguments[Places])...);
}

template <class... Arguments> static constexpr auto places(void (*)(Arguments...)) {
    return std::index_sequence_for<Arguments...>();
}

template <auto Function> static void call(void *arguments) {
    apply<Function>(static_cast<void **>(arguments), Function, places(Function));
}

#define KERNEL(name) {#name, {call<name>}}
static std::map<std::string, Kernel> kernels = {
    KERNEL(narrow_all), KERNEL(add_parts), KERNEL(gather), KERNEL(scatter_add),
    KERNEL(rms_norm), KERNEL(rms_norm_backward), KERNEL(rotate), KERNEL(attend), KERNEL(attend_means),
    KERNEL(attend_by_queries), KERNEL(attend_by_keys), KERNEL(swiglu), KERNEL(swiglu_backward), KERNEL(cross_entropy),
    KERNEL(squares), KERNEL(adamw), KERNEL(look_ahead), KERNEL(normalize), KERNEL(combine), KERNEL(step_along), KERNEL(approach),
};

static char handle;

#define SUCCESS 0
#define API extern "C" int

API cuInit(unsigned int) { return SUCCESS; }
API cuDriverGetVersion(int *version) { return *version = 13000, SUCCESS; }
API cuDeviceGetCount(int *count) { return *count = 1, SUCCESS; }
API cuDeviceGet(int *device, int) { return *device = 0, SUCCESS; }
API cuDeviceGetName(char *name, int size, int) { return strncpy(name, "emulator", size), SUCCESS; }
// Compute capability 9.0; no memory pools.
API cuDeviceGetAttribute(int *value, int attribute, int) { return *value = attribute == 75 ? 9 : 0, SUCCESS; }
API cuDevicePrimaryCtxRetain(void **context, int) { return *context = &handle, SUCCESS; }
API cuDevicePrimaryCtxRelease_v2(int) { return SUCCESS; }
API cuCtxSetCurrent(void *) { return SUCCESS; }
API cuCtxGetCurrent(void **context) { return *context = &handle, SUCCESS; }
API cuCtxSynchronize() { return SUCCESS; }
API cuStreamCreate(void **stream, unsigned int) { return *stream = &handle, SUCCESS; }
API cuStreamDestroy_v2(void *) { return SUCCESS; }
API cuStreamSynchronize(void *) { return SUCCESS; }
API cuStreamWaitEvent(void *, void *, unsigned int) { return SUCCESS; }
API cuEventCreate(void **event, unsigned int) { return *event = &handle, SUCCESS; }
API cuEventRecord(void *, void *) { return SUCCESS; }
API cuEventDestroy_v2(void *) { return SUCCESS; }
API cuEventSynchronize(void *) { return SUCCESS; }
// Fresh memory is not zero, as on a GPU.
API cuMemAlloc_v2(void **memory, size_t bytes) { return *memory = memset(malloc(bytes), 0x3f, bytes), SUCCESS; }
API cuMemFree_v2(void *memory) { return free(memory), SUCCESS; }
API cuMemHostAlloc(void **memory, size_t bytes, unsigned int) { return *memory = malloc(bytes), SUCCESS; }
API cuMemFreeHost(void *memory) { return free(memory), SUCCESS; }
API cuMemcpyHtoDAsync_v2(void *to, const void *from, size_t bytes, void *) { return memcpy(to, from, bytes), SUCCESS; }
API cuMemcpyDtoHAsync_v2(void *to, const void *from, size_t bytes, void *) { return memcpy(to, from, bytes), SUCCESS; }
API cuMemcpyDtoDAsync_v2(void *to, const void *from, size_t bytes, void *) { return memcpy(to, from, bytes), SUCCESS; }
API cuMemsetD8Async(void *to, unsigned char value, size_t bytes, void *) { return memset(to, value, bytes), SUCCESS; }
API cuModuleLoadData(void **module, const void *) { return *module = &handle, SUCCESS; }
API cuModuleUnload(void *) { return SUCCESS; }
API cuGetErrorString(int, const char **text) { return *text = "an error of the emulator", SUCCESS; }
API cuGetErrorName(int, const char **text) { return *text = "EMULATOR", SUCCESS; }
API cuModuleGetFunction(void **function, void *, const char *name) {
    auto found = kernels.find(name);
    if (found == kernels.end()) return 500;
    *function = &found->second;
    return SUCCESS;
}
API cuLaunchKernel(void *function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x,
                   unsigned int, unsigned int, unsigned int, void *, void **arguments, void **) {
    gridDim = {grid_x, grid_y, grid_z};
    blockDim = {block_x, 1, 1};
    body = static_cast<Kernel *>(function)->call;
    body_arguments = arguments;
    for (unsigned int y = 0; y < grid_y; y++)
        for (unsigned int x = 0; x < grid_x; x++) {
            blockIdx = {x, y, 0};
            run_block();
        }
    return SUCCESS;
}

API nvrtcCreateProgram(void **program, const char *, const char *, int, const char **, const char **) {
    return *program = &handle, SUCCESS;
}
API nvrtcCompileProgram(void *, int count, const char **options) {
    for (int place = 0; place < count; place++) {
        std::string option = options[place];
        if (option.rfind("-DHEAD=", 0) == 0 && option != "-DHEAD=" + std::to_string(HEAD)) return 6;
        if (option.rfind("-DWIDTH=", 0) == 0 && option != "-DWIDTH=" + std::to_string(WIDTH)) return 6;
        if (option.rfind("-DFF=", 0) == 0 && option != "-DFF=" + std::to_string(FF)) return 6;
    }
    return SUCCESS;
}
API nvrtcGetProgramLogSize(void *, size_t *size) { return *size = 1, SUCCESS; }
API nvrtcGetProgramLog(void *, char *log) { return *log = 0, SUCCESS; }
API nvrtcGetPTXSize(void *, size_t *size) { return *size = 1, SUCCESS; }
API nvrtcGetPTX(void *, char *ptx) { return *ptx = 0, SUCCESS; }
API nvrtcDestroyProgram(void **) { return SUCCESS; }

API cublasCreate_v2(void **blas) { return *blas = &handle, SUCCESS; }
API cublasDestroy_v2(void *) { return SUCCESS; }
API cublasSetStream_v2(void *, void *) { return SUCCESS; }

// Matrices are stored by columns, operands are bf16; the result is f32 (type 0) or bf16 (14).
API cublasGemmStridedBatchedEx(void *, int turned_a, int turned_b, int m, int n, int k, const float *alpha, const bf16 *a, int,
                               int lda, long long stride_a, const bf16 *b, int, int ldb, long long stride_b,
                               const float *beta, void *c, int type, int ldc, long long stride_c, int count, int, int) {
    for (int part = 0; part < count; part++, a += stride_a, b += stride_b)
        for (int column = 0; column < n; column++)
            for (int row = 0; row < m; row++) {
                float sum = 0.0f;
                for (int inner = 0; inner < k; inner++) {
                    bf16 left = turned_a ? a[row * (long long)lda + inner] : a[inner * (long long)lda + row];
                    bf16 right = turned_b ? b[inner * (long long)ldb + column] : b[column * (long long)ldb + inner];
                    sum += widen(left) * widen(right);
                }
                long long at = part * stride_c + column * (long long)ldc + row;
                if (type == 0) {
                    float *to = static_cast<float *>(c) + at;
                    *to = *alpha * sum + (*beta == 0.0f ? 0.0f : *beta * *to);
                } else {
                    static_cast<bf16 *>(c)[at] = narrow(*alpha * sum);
                }
            }
    return SUCCESS;
}
