// The network's operations on a GPU, except for products of matrices, which are cuBLAS's. Compiled when a training starts, with
// HEAD (width of an attention head), WIDTH (of the stream, d) and FF (of the feed-forward) as macros, multiples of 32.
//
// Rows beyond the last one of a batch are padding: their gradient is zero, so that sums over rows may include them. bf16
// values are held as their bits, which spares CUDA's headers.

typedef unsigned short bf16;

#define WARP 32
#define WARPS 8            // of a block of row-wise kernels
#define PER_LANE (WIDTH / WARP)
#define TILE 64            // queries or keys of a block of attention, one a thread

__device__ inline float widen(bf16 value) { return __uint_as_float((unsigned int)value << 16); }

__device__ inline bf16 narrow(float value) {
    unsigned int bits = __float_as_uint(value);
    return (bf16)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

__device__ inline float sum_of_warp(float value) {
    for (int distance = WARP / 2; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
    return value;
}

__device__ inline float maximum_of_warp(float value) {
    for (int distance = WARP / 2; distance > 0; distance /= 2)
        value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, distance));
    return value;
}

#define EACH(index, count) \
    for (long long index = blockIdx.x * (long long)blockDim.x + threadIdx.x; index < (count); \
         index += gridDim.x * (long long)blockDim.x)

extern "C" __global__ void narrow_all(const float *from, bf16 *to, long long count) {
    EACH(index, count) to[index] = narrow(from[index]);
}

// sum [count] += the parts [parts, count]
extern "C" __global__ void add_parts(const float *from, float *sum, int parts, long long stride, long long count) {
    EACH(index, count) {
        float total = 0.0f;
        for (int part = 0; part < parts; part++) total += from[part * stride + index];
        sum[index] += total;
    }
}

// to [count, d] becomes the rows of from that places name; -1: a row of zeros, for padding.
extern "C" __global__ void gather(const float *from, const int *places, float *to, int count) {
    EACH(index, (long long)count * WIDTH) {
        int place = places[index / WIDTH];
        to[index] = place < 0 ? 0.0f : from[(long long)place * WIDTH + index % WIDTH];
    }
}

// The gradient of gather: the rows of to that places name += those of from.
extern "C" __global__ void scatter_add(const float *from, const int *places, float *to, int count) {
    EACH(index, (long long)count * WIDTH) {
        int place = places[index / WIDTH];
        if (place >= 0) atomicAdd(&to[(long long)place * WIDTH + index % WIDTH], from[index]);
    }
}

// RMS norm of each row, times gain. A warp a row.
extern "C" __global__ void rms_norm(const float *x, const float *gain, bf16 *y, int rows, float epsilon) {
    int lane = threadIdx.x % WARP;
    int row = blockIdx.x * WARPS + threadIdx.x / WARP;
    if (row >= rows) return;
    const float *own = x + (long long)row * WIDTH;
    float values[PER_LANE];
    float squares = 0.0f;
#pragma unroll
    for (int part = 0; part < PER_LANE; part++) {
        values[part] = own[part * WARP + lane];
        squares += values[part] * values[part];
    }
    float scale = rsqrtf(sum_of_warp(squares) / WIDTH + epsilon);
#pragma unroll
    for (int part = 0; part < PER_LANE; part++) {
        int column = part * WARP + lane;
        y[(long long)row * WIDTH + column] = narrow(values[part] * scale * gain[column]);
    }
}

// d_x += the gradient by x. Each block writes what its rows add to the gradient by gain, parts [blocks, d].
extern "C" __global__ void rms_norm_backward(const float *x, const float *gain, const float *slope, float *d_x, float *parts,
                                         int rows, float epsilon) {
    __shared__ float shared[WARPS][WIDTH];
    int lane = threadIdx.x % WARP;
    int warp = threadIdx.x / WARP;
    float d_gain[PER_LANE];
#pragma unroll
    for (int part = 0; part < PER_LANE; part++) d_gain[part] = 0.0f;
    for (int row = blockIdx.x * WARPS + warp; row < rows; row += gridDim.x * WARPS) {
        long long first = (long long)row * WIDTH;
        float values[PER_LANE], slopes[PER_LANE];
        float squares = 0.0f, product = 0.0f;
#pragma unroll
        for (int part = 0; part < PER_LANE; part++) {
            int column = part * WARP + lane;
            values[part] = x[first + column];
            slopes[part] = slope[first + column];
            squares += values[part] * values[part];
            product += values[part] * slopes[part] * gain[column];
        }
        float scale = rsqrtf(sum_of_warp(squares) / WIDTH + epsilon);
        float back = sum_of_warp(product) * scale * scale * scale / WIDTH;
#pragma unroll
        for (int part = 0; part < PER_LANE; part++) {
            int column = part * WARP + lane;
            d_x[first + column] += slopes[part] * gain[column] * scale - values[part] * back;
            d_gain[part] += slopes[part] * values[part] * scale;
        }
    }
#pragma unroll
    for (int part = 0; part < PER_LANE; part++) shared[warp][part * WARP + lane] = d_gain[part];
    __syncthreads();
    for (int column = threadIdx.x; column < WIDTH; column += blockDim.x) {
        float total = 0.0f;
        for (int other = 0; other < WARPS; other++) total += shared[other][column];
        parts[(long long)blockIdx.x * WIDTH + column] = total;
    }
}

// Rows [queries, keys, values] of sums: queries and keys are rotated by their positions, queries scaled too, and all rounded. angles
// [positions, HEAD / 2, 2] are cosines and sines of interleaved pairs.
extern "C" __global__ void rotate(const float *sums, const float *angles, const int *positions, bf16 *qkv, int rows,
                                  float scale) {
    EACH(pair, (long long)rows * (3 * WIDTH / 2)) {
        int row = (int)(pair / (3 * WIDTH / 2));
        int column = (int)(pair % (3 * WIDTH / 2)) * 2;
        long long at = (long long)row * 3 * WIDTH + column;
        float x = sums[at], y = sums[at + 1];
        if (column < 2 * WIDTH) {
            const float *angle = angles + ((long long)positions[row] * (HEAD / 2) + column % HEAD / 2) * 2;
            float factor = column < WIDTH ? scale : 1.0f;
            float turned = x * angle[0] - y * angle[1];
            y = (x * angle[1] + y * angle[0]) * factor;
            x = turned * factor;
        }
        qkv[at] = narrow(x);
        qkv[at + 1] = narrow(y);
    }
}

__device__ inline void load_row(const bf16 *from, float *to) {
#pragma unroll
    for (int index = 0; index < HEAD; index++) to[index] = widen(from[index]);
}

// count rows, stride apart, by all threads of a block.
__device__ inline void load_rows(const bf16 *from, int stride, int count, float (*to)[HEAD]) {
    for (int index = threadIdx.x; index < count * HEAD; index += TILE)
        to[index / HEAD][index % HEAD] = widen(from[(long long)(index / HEAD) * stride + index % HEAD]);
}

__device__ inline void clear(float *values) {
#pragma unroll
    for (int index = 0; index < HEAD; index++) values[index] = 0.0f;
}

__device__ inline float dot(const float *left, const float *right) {
    float sum = 0.0f;
#pragma unroll
    for (int index = 0; index < HEAD; index++) sum += left[index] * right[index];
    return sum;
}

__device__ inline void add_scaled(float *sum, const float *addend, float factor) {
#pragma unroll
    for (int index = 0; index < HEAD; index++) sum[index] += addend[index] * factor;
}

// A tile of attention: the first row and the length of its sample, and the first position of the tile.
struct Span {
    int first, length, start;
};

__device__ inline Span span_of(const int *tiles) {
    Span span;
    span.first = tiles[blockIdx.x * 3];
    span.length = tiles[blockIdx.x * 3 + 1];
    span.start = tiles[blockIdx.x * 3 + 2];
    return span;
}

// Causal attention of a tile of queries of one head (blockIdx.y), one a thread. mixed [rows, d]; logs [rows, heads]: the logarithm of
// the sum of exponentials, from which gradients compute probabilities again.
extern "C" __global__ void attend(const bf16 *qkv, const int *tiles, bf16 *mixed, float *logs) {
    __shared__ float keys[TILE][HEAD];
    __shared__ float values[TILE][HEAD];
    Span span = span_of(tiles);
    int head = blockIdx.y, heads = gridDim.y;
    int position = span.start + threadIdx.x;
    bool is_query = position < span.length;
    long long row = span.first + (is_query ? position : span.start);
    float query[HEAD], sum[HEAD];
    load_row(qkv + row * 3 * WIDTH + head * HEAD, query);
    clear(sum);
    float most = -1e30f, total = 0.0f;
    for (int begin = 0; begin <= span.start; begin += TILE) {
        __syncthreads();
        int count = min(TILE, span.length - begin);
        const bf16 *key = qkv + (long long)(span.first + begin) * 3 * WIDTH + WIDTH + head * HEAD;
        load_rows(key, 3 * WIDTH, count, keys);
        load_rows(key + WIDTH, 3 * WIDTH, count, values);
        __syncthreads();
        int seen = is_query ? min(count, position - begin + 1) : 0;
        for (int key = 0; key < seen; key++) {
            float score = dot(query, keys[key]);
            if (score > most) {
                float factor = __expf(most - score);
                total *= factor;
#pragma unroll
                for (int index = 0; index < HEAD; index++) sum[index] *= factor;
                most = score;
            }
            float weight = __expf(score - most);
            total += weight;
            add_scaled(sum, values[key], weight);
        }
    }
    if (!is_query) return;
#pragma unroll
    for (int index = 0; index < HEAD; index++) mixed[row * WIDTH + head * HEAD + index] = narrow(sum[index] / total);
    logs[row * heads + head] = most + __logf(total);
}

// means [rows, heads]: the product of what a head put out and its gradient.
extern "C" __global__ void attend_means(const bf16 *mixed, const bf16 *slope, float *means, int rows, int heads) {
    EACH(index, (long long)rows * heads) {
        float sum = 0.0f;
        for (int column = 0; column < HEAD; column++) {
            long long at = index * HEAD + column;
            sum += widen(mixed[at]) * widen(slope[at]);
        }
        means[index] = sum;
    }
}

// Rotates a gradient by rotated values back.
__device__ inline void store_rotated(const float *slope, const float *angles, int position, float scale, bf16 *to) {
#pragma unroll
    for (int pair = 0; pair < HEAD / 2; pair++) {
        const float *angle = angles + ((long long)position * (HEAD / 2) + pair) * 2;
        float x = slope[2 * pair] * scale, y = slope[2 * pair + 1] * scale;
        to[2 * pair] = narrow(x * angle[0] + y * angle[1]);
        to[2 * pair + 1] = narrow(y * angle[0] - x * angle[1]);
    }
}

// The gradient by queries, a tile of them.
extern "C" __global__ void attend_by_queries(const bf16 *qkv, const bf16 *slope, const float *logs, const float *means,
                                             const float *angles, const int *tiles, bf16 *d_qkv, float scale) {
    __shared__ float keys[TILE][HEAD];
    __shared__ float values[TILE][HEAD];
    Span span = span_of(tiles);
    int head = blockIdx.y, heads = gridDim.y;
    int position = span.start + threadIdx.x;
    bool is_query = position < span.length;
    long long row = span.first + (is_query ? position : span.start);
    float query[HEAD], slopes[HEAD], sum[HEAD];
    load_row(qkv + row * 3 * WIDTH + head * HEAD, query);
    load_row(slope + row * WIDTH + head * HEAD, slopes);
    clear(sum);
    float log = logs[row * heads + head], mean = means[row * heads + head];
    for (int begin = 0; begin <= span.start; begin += TILE) {
        __syncthreads();
        int count = min(TILE, span.length - begin);
        const bf16 *key = qkv + (long long)(span.first + begin) * 3 * WIDTH + WIDTH + head * HEAD;
        load_rows(key, 3 * WIDTH, count, keys);
        load_rows(key + WIDTH, 3 * WIDTH, count, values);
        __syncthreads();
        int seen = is_query ? min(count, position - begin + 1) : 0;
        for (int key = 0; key < seen; key++) {
            float probability = __expf(dot(query, keys[key]) - log);
            add_scaled(sum, keys[key], probability * (dot(slopes, values[key]) - mean));
        }
    }
    if (is_query) store_rotated(sum, angles, position, scale, d_qkv + row * 3 * WIDTH + head * HEAD);
}

// The gradient by keys and values, a tile of them.
extern "C" __global__ void attend_by_keys(const bf16 *qkv, const bf16 *slope, const float *logs, const float *means,
                                          const float *angles, const int *tiles, bf16 *d_qkv) {
    __shared__ float queries[TILE][HEAD];
    __shared__ float slopes[TILE][HEAD];
    __shared__ float own_logs[TILE];
    __shared__ float own_means[TILE];
    Span span = span_of(tiles);
    int head = blockIdx.y, heads = gridDim.y;
    int position = span.start + threadIdx.x;
    bool is_key = position < span.length;
    long long row = span.first + (is_key ? position : span.start);
    float key[HEAD], value[HEAD], by_key[HEAD], by_value[HEAD];
    const bf16 *at = qkv + row * 3 * WIDTH + WIDTH + head * HEAD;
    load_row(at, key);
    load_row(at + WIDTH, value);
    clear(by_key);
    clear(by_value);
    for (int begin = span.start; begin < span.length; begin += TILE) {
        __syncthreads();
        int count = min(TILE, span.length - begin);
        long long next = span.first + begin;
        load_rows(qkv + next * 3 * WIDTH + head * HEAD, 3 * WIDTH, count, queries);
        load_rows(slope + next * WIDTH + head * HEAD, WIDTH, count, slopes);
        if ((int)threadIdx.x < count) {
            long long other = next + threadIdx.x;
            own_logs[threadIdx.x] = logs[other * heads + head];
            own_means[threadIdx.x] = means[other * heads + head];
        }
        __syncthreads();
        if (!is_key) continue;
        for (int query = max(0, position - begin); query < count; query++) {
            float probability = __expf(dot(key, queries[query]) - own_logs[query]);
            add_scaled(by_value, slopes[query], probability);
            add_scaled(by_key, queries[query], probability * (dot(value, slopes[query]) - own_means[query]));
        }
    }
    if (!is_key) return;
    bf16 *to = d_qkv + row * 3 * WIDTH + WIDTH + head * HEAD;
    store_rotated(by_key, angles, position, 1.0f, to);
#pragma unroll
    for (int index = 0; index < HEAD; index++) to[WIDTH + index] = narrow(by_value[index]);
}

__device__ inline float lower(unsigned int pair) { return __uint_as_float(pair << 16); }
__device__ inline float upper(unsigned int pair) { return __uint_as_float(pair & 0xffff0000u); }
__device__ inline unsigned int paired(float first, float second) {
    return (unsigned int)narrow(first) | (unsigned int)narrow(second) << 16;
}
__device__ inline float sigmoid_of(float value) { return 1.0f / (1.0f + __expf(-value)); }

// Rows [gate, up] of gate_up: hidden = gate sigmoid(gate) up. Two values a thread, as in the gradient.
extern "C" __global__ void swiglu(const unsigned int *gate_up, unsigned int *hidden, int rows) {
    EACH(index, (long long)rows * (FF / 2)) {
        long long at = index / (FF / 2) * FF + index % (FF / 2);
        unsigned int gate = gate_up[at], up = gate_up[at + FF / 2];
        float first = lower(gate), second = upper(gate);
        hidden[index] = paired(first * sigmoid_of(first) * lower(up), second * sigmoid_of(second) * upper(up));
    }
}

__device__ inline float by_gate(float gate, float up, float slope) {
    float sigmoid = sigmoid_of(gate);
    return slope * up * sigmoid * (1.0f + gate * (1.0f - sigmoid));
}

extern "C" __global__ void swiglu_backward(const unsigned int *gate_up, const unsigned int *slope, unsigned int *d_gate_up,
                                           int rows) {
    EACH(index, (long long)rows * (FF / 2)) {
        long long at = index / (FF / 2) * FF + index % (FF / 2);
        unsigned int gate = gate_up[at], up = gate_up[at + FF / 2], own = slope[index];
        float first = lower(gate), second = upper(gate);
        d_gate_up[at] = paired(by_gate(first, lower(up), lower(own)), by_gate(second, upper(up), upper(own)));
        d_gate_up[at + FF / 2] =
            paired(lower(own) * first * sigmoid_of(first), upper(own) * second * sigmoid_of(second));
    }
}

// Of each row of logits [count, stride], of which the first tokens are the vocabulary's: the loss, whether the target is the only
// most likely token, and the gradient of weight times the loss. Targets of padding are -1. A warp a row.
extern "C" __global__ void cross_entropy(const float *logits, const int *targets, bf16 *slopes, float *losses, int *hits,
                                         int count, int tokens, int stride, float weight) {
    int lane = threadIdx.x % WARP;
    int row = blockIdx.x * WARPS + threadIdx.x / WARP;
    if (row >= count) return;
    const float *own = logits + (long long)row * stride;
    bf16 *to = slopes + (long long)row * stride;
    int target = targets[row];
    if (target < 0) {
        for (int token = lane; token < stride; token += WARP) to[token] = 0;
        return;
    }
    float right = own[target];
    float most = -1e30f, rivals = 0.0f;
    for (int token = lane; token < tokens; token += WARP) {
        most = fmaxf(most, own[token]);
        rivals += own[token] >= right ? 1.0f : 0.0f;
    }
    most = maximum_of_warp(most);
    rivals = sum_of_warp(rivals);
    float sum = 0.0f;
    for (int token = lane; token < tokens; token += WARP) sum += expf(own[token] - most);
    sum = sum_of_warp(sum);
    for (int token = lane; token < stride; token += WARP) {
        float probability = token < tokens ? expf(own[token] - most) / sum : 0.0f;
        to[token] = narrow(weight * (probability - (token == target ? 1.0f : 0.0f)));
    }
    if (lane == 0) {
        losses[row] = logf(sum) + most - right;
        hits[row] = rivals == 1.0f;
    }
}

// Of each block, the sum of squares of its share.
extern "C" __global__ void squares(const float *values, float *parts, long long count) {
    __shared__ float shared[WARPS];
    float sum = 0.0f;
    EACH(index, count) sum += values[index] * values[index];
    sum = sum_of_warp(sum);
    if (threadIdx.x % WARP == 0) shared[threadIdx.x / WARP] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        float total = 0.0f;
        for (int warp = 0; warp < WARPS; warp++) total += shared[warp];
        parts[blockIdx.x] = total;
    }
}

// rate and root are corrected for the moments' beginning at zero.
extern "C" __global__ void adamw(float *weights, const float *gradient, float *first, float *second, long long count,
                                 float clip, float beta1, float beta2, float rate, float root, float decay) {
    EACH(index, count) {
        float slope = gradient[index] * clip;
        first[index] = beta1 * first[index] + (1.0f - beta1) * slope;
        second[index] = beta2 * second[index] + (1.0f - beta2) * slope * slope;
        float step = rate * first[index] / (sqrtf(second[index]) / root + 1e-8f);
        weights[index] -= step + decay * weights[index];
    }
}

// Where a value of a matrix of Muon lies: matrices [rows, columns] of a group, which begin at starts, are worked on as
// [matrices, short, long], the tall ones transposed.
__device__ inline long long place_of(const long long *starts, long long index, int rows, int columns) {
    long long size = (long long)rows * columns;
    long long within = index % size;
    if (rows > columns) within = within % rows * columns + within / rows;
    return starts[index / size] + within;
}

// The momentum, and what it will be: the direction of the update.
extern "C" __global__ void look_ahead(const float *gradient, float *momentum, const long long *starts, float *matrices,
                                      int count, int rows, int columns, float clip, float beta) {
    EACH(index, (long long)count * rows * columns) {
        long long place = place_of(starts, index, rows, columns);
        float slope = gradient[place] * clip;
        momentum[place] = slope + beta * momentum[place];
        matrices[index] = slope + beta * momentum[place];
    }
}

// Scales each matrix to norm 1. A block a matrix.
extern "C" __global__ void normalize(float *matrices, bf16 *halves, int size) {
    __shared__ float shared[WARPS];
    float *own = matrices + (long long)blockIdx.x * size;
    bf16 *half = halves + (long long)blockIdx.x * size;
    float sum = 0.0f;
    for (int index = threadIdx.x; index < size; index += blockDim.x) sum += own[index] * own[index];
    sum = sum_of_warp(sum);
    if (threadIdx.x % WARP == 0) shared[threadIdx.x / WARP] = sum;
    __syncthreads();
    float total = 0.0f;
    for (int warp = 0; warp < WARPS; warp++) total += shared[warp];
    float inverse = 1.0f / fmaxf(sqrtf(total), 1e-7f);
    for (int index = threadIdx.x; index < size; index += blockDim.x) {
        own[index] *= inverse;
        half[index] = narrow(own[index]);
    }
}

// to = b square + c fourth
extern "C" __global__ void combine(const float *square, const float *fourth, bf16 *to, long long count, float b, float c) {
    EACH(index, count) to[index] = narrow(b * square[index] + c * fourth[index]);
}

extern "C" __global__ void step_along(float *weights, const long long *starts, const float *matrices, int count, int rows,
                                      int columns, float keep, float step) {
    EACH(index, (long long)count * rows * columns) {
        long long place = place_of(starts, index, rows, columns);
        weights[place] = weights[place] * keep - step * matrices[index];
    }
}

extern "C" __global__ void approach(float *average, const float *weights, long long count, float share) {
    EACH(index, count) average[index] += share * (weights[index] - average[index]);
}
