// The two large products of a pass on tensor cores, in single precision: every factor is split into two numbers of TF32, high and low, and three
// products are added (3×TF32). What is left out is low × low, 2⁻²² of a product: as small as the rounding of single precision.
// Compiled after kernels.cu, with `real` as float, for devices that have TF32.
//
// What limits both is how many instructions are issued, so that factors lie in shared memory as the lanes of a warp want them, several numbers in one
// load. The depth of a product may be gone through in any order: a lane's two numbers of it are neighbours.

#define TILE_M 16
#define TILE_N 8
#define TILE_K 8
// n-tiles a warp has at a time in `contract`, at most.
#define ABREAST 5
// Elements a thread loads before it stores them.
#define LOADS 16

// The high part is rounded to nearest, so that the low part, of which tensor cores cut off the end, has either sign and no bias.
__device__ __forceinline__ void split(float x, unsigned& high, unsigned& low) {
    high = (__float_as_uint(x) + 0x1000u) & 0xffffe000u;
    low = __float_as_uint(x - __uint_as_float(high));
}

// c = a b and c += a b.
__device__ __forceinline__ void multiply_first(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};"
        : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(0.0f));
}

__device__ __forceinline__ void multiply(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// A stride of at least so many numbers for which neighbours of eight rows, and of four, lie in different banks.
__device__ __forceinline__ int apart(int numbers) { return numbers % 16 == 8 ? numbers : numbers + 8; }

// n / by for n < 2^20: exact, since half a unit is left to the next quotient.
__device__ __forceinline__ int divided(int n, float one_by) { return (int)(((float)n + 0.5f) * one_by); }

// `N` tiles of a product beside each other: 16 rows of `a`, of which the lane has its first number, and fragments of `b`, high and low.
template <int N>
__device__ __forceinline__ void tiles(const float* a, int stride, const float4* b, int n_tiles, int steps, float* to, int to_stride) {
    float c[N][4] = {};
    for (int k = 0; k < steps; ++k) {
        unsigned high[4], low[4];
        float2 upper = *(const float2*)(a + k * TILE_K), lower = *(const float2*)(a + k * TILE_K + 8 * stride);
        split(upper.x, high[0], low[0]);
        split(lower.x, high[1], low[1]);
        split(upper.y, high[2], low[2]);
        split(lower.y, high[3], low[3]);
        float4 factor[N];
#pragma unroll
        for (int j = 0; j < N; ++j) factor[j] = b[(k * n_tiles + j) * WARP];
        // A sum of its own, added by ordinary additions: those of tensor cores round towards zero, which would add up. Of what they cut off
        // in a step, 4·10⁻⁸ of it on average, a unit in the last place of every fourth makes good: what is left is 5·10⁻⁹.
        float step[N][4];
        float grown = k % 4 == 1 ? 1.00000012f : 1.0f;
        // Products that wait for each other lie apart.
#pragma unroll
        for (int j = 0; j < N; ++j) multiply_first(step[j], low, __float_as_uint(factor[j].x), __float_as_uint(factor[j].y));
#pragma unroll
        for (int j = 0; j < N; ++j) multiply(step[j], high, __float_as_uint(factor[j].z), __float_as_uint(factor[j].w));
#pragma unroll
        for (int j = 0; j < N; ++j) multiply(step[j], high, __float_as_uint(factor[j].x), __float_as_uint(factor[j].y));
#pragma unroll
        for (int j = 0; j < N; ++j)
#pragma unroll
            for (int i = 0; i < 4; ++i) c[j][i] = fmaf(step[j][i], grown, c[j][i]);
    }
#pragma unroll
    for (int j = 0; j < N; ++j) {
        *(float2*)(to + j * TILE_N) = make_float2(c[j][0], c[j][1]);
        *(float2*)(to + j * TILE_N + 8 * to_stride) = make_float2(c[j][2], c[j][3]);
    }
}

// y[n][k] = front_kᵀ x_n back_k − start_k for all samples and the components of one tile (blockIdx.y). A block takes `together` samples at a
// time: x · back for the components of the tile into shared memory, then the front by all threads.
extern "C" __global__ void __launch_bounds__(256, 2) contract(const float* __restrict__ x, const float* __restrict__ back, const float* __restrict__ front,
                                                              const float* __restrict__ starts, int count, int sides, int back_sides,
                                                              int components, int per_tile, int ranks, int padded, int back_ranks, int together,
                                                              float* __restrict__ y) {
    extern __shared__ __align__(16) float shared[];
    int first_k = blockIdx.y * per_tile, own = min(per_tile, components - first_k);
    int columns = own * back_ranks, all_columns = components * back_ranks;
    int rows = (sides + TILE_M - 1) / TILE_M * TILE_M, steps = (back_sides + TILE_K - 1) / TILE_K;
    // As many tiles for every warp: what is beyond the last column is zero.
    int n_tiles = (per_tile * back_ranks + TILE_N - 1) / TILE_N, n_groups = (n_tiles + ABREAST - 1) / ABREAST;
    int abreast = (n_tiles + n_groups - 1) / n_groups;
    n_tiles = n_groups * abreast;
    int wide_stride = apart(n_tiles * TILE_N), deep_stride = apart(steps * TILE_K);
    float4* backs = (float4*)shared;
    float* samples = shared + steps * n_tiles * WARP * 4;
    float* between = samples + together * rows * deep_stride;
    float* fronts = between + together * rows * wide_stride;
    int fours = (ranks + 3) / 4, core = ranks * back_ranks;
    for (int i = threadIdx.x; i < own * sides * fours * 4; i += blockDim.x) {
        int rank = i % (fours * 4), side = i / (fours * 4);
        fronts[i] = front[((long long)first_k * sides + side) * padded + rank];
    }
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, group = lane / 4, within = lane % 4;
    for (int i = warp; i < steps * n_tiles; i += 8) {
        int b = i / n_tiles * TILE_K + 2 * within, c = i % n_tiles * TILE_N + group;
        unsigned high[2], low[2];
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            bool there = b + j < back_sides && c < columns;
            split(there ? back[(b + j) * all_columns + first_k * back_ranks + c] : 0.0f, high[j], low[j]);
        }
        backs[i * WARP + lane] = make_float4(__uint_as_float(high[0]), __uint_as_float(high[1]), __uint_as_float(low[0]), __uint_as_float(low[1]));
    }
    for (int i = threadIdx.x; i < together * rows * deep_stride; i += blockDim.x) samples[i] = 0.0f;
    int tasks = together * rows / TILE_M * n_groups;
    int size = sides * back_sides;
    bool by_four = back_sides % 4 == 0;
    float by_back_sides = 1.0f / back_sides, by_sides = 1.0f / sides, by_columns = 1.0f / columns, by_fours = 1.0f / fours, by_ranks = 1.0f / back_ranks;
    // The next samples are under way while these are worked on: a load takes a microsecond. What threads cannot hold is loaded when it is due.
    float ahead[LOADS];
    auto fetch = [&](int first, int begin) {
        int end = min(together, count - first) * size;
        const float* from = x + (long long)first * size;
        if (by_four) {
#pragma unroll
            for (int i = 0; i < LOADS; i += 4) {
                int at = begin + i * 256 + 4 * threadIdx.x;
                float4 value = at < end ? *(const float4*)(from + at) : make_float4(0, 0, 0, 0);
                ahead[i] = value.x, ahead[i + 1] = value.y, ahead[i + 2] = value.z, ahead[i + 3] = value.w;
            }
        } else {
#pragma unroll
            for (int i = 0; i < LOADS; ++i) {
                int at = begin + i * 256 + threadIdx.x;
                ahead[i] = at < end ? from[at] : 0.0f;
            }
        }
    };
    auto place = [&](int at) {
        int row = divided(at, by_back_sides), sample = divided(row, by_sides);
        return samples + (row + sample * (rows - sides)) * deep_stride + at - row * back_sides;
    };
    auto put = [&](int begin, int end) {
        if (by_four) {
#pragma unroll
            for (int i = 0; i < LOADS; i += 4) {
                int at = begin + i * 256 + 4 * threadIdx.x;
                if (at < end) *(float4*)place(at) = make_float4(ahead[i], ahead[i + 1], ahead[i + 2], ahead[i + 3]);
            }
        } else {
#pragma unroll
            for (int i = 0; i < LOADS; ++i) {
                int at = begin + i * 256 + threadIdx.x;
                if (at < end) *place(at) = ahead[i];
            }
        }
    };
    auto bring = [&](int first) {
        int end = min(together, count - first) * size;
        for (int begin = 0; begin < end; begin += LOADS * 256) {
            if (begin > 0) fetch(first, begin);
            put(begin, end);
        }
    };
    int stride = gridDim.x * together, first = blockIdx.x * together;
    if (first >= count) return;
    fetch(first, 0);
    __syncthreads();
    bring(first);
    for (; first < count; first += stride) {
        int there = min(together, count - first), next = first + stride;
        __syncthreads();
        if (next < count) fetch(next, 0);
        for (int task = warp; task < tasks; task += 8) {
            int m = task / n_groups, n = task % n_groups * abreast;
            const float* a = samples + (m * TILE_M + group) * deep_stride + 2 * within;
            const float4* b = backs + n * WARP + lane;
            float* to = between + (m * TILE_M + group) * wide_stride + n * TILE_N + 2 * within;
            switch (abreast) {
                case 1: tiles<1>(a, deep_stride, b, n_tiles, steps, to, wide_stride); break;
                case 2: tiles<2>(a, deep_stride, b, n_tiles, steps, to, wide_stride); break;
                case 3: tiles<3>(a, deep_stride, b, n_tiles, steps, to, wide_stride); break;
                case 4: tiles<4>(a, deep_stride, b, n_tiles, steps, to, wide_stride); break;
                default: tiles<ABREAST>(a, deep_stride, b, n_tiles, steps, to, wide_stride);
            }
        }
        __syncthreads();
        if (next < count) bring(next);
        // The front: a thread has a column of one component, and four of its ranks.
        for (int item = threadIdx.x; item < there * fours * columns; item += blockDim.x) {
            int rest = divided(item, by_columns), column = item - rest * columns;
            int sample = divided(rest, by_fours), four = rest - sample * fours;
            int k = divided(column, by_ranks), j = column - k * back_ranks;
            const float* z = between + sample * rows * wide_stride + column;
            const float4* u = (const float4*)fronts + (k * sides) * fours + four;
            float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 8
            for (int s = 0; s < sides; ++s) {
                float value = z[s * wide_stride];
                float4 factor = u[s * fours];
                sum.x += factor.x * value;
                sum.y += factor.y * value;
                sum.z += factor.z * value;
                sum.w += factor.w * value;
            }
            const float values[4] = {sum.x, sum.y, sum.z, sum.w};
            int at = (first_k + k) * core + four * 4 * back_ranks + j;
            float* to = y + (long long)(first + sample) * components * core + at;
#pragma unroll
            for (int i = 0; i < 4; ++i)
                if (four * 4 + i < ranks) to[i * back_ranks] = values[i] - starts[at + i * back_ranks];
        }
    }
}

// q, and a q split in two: for `segment_sums`, which fetches samples themselves. Rows of [q 1] have `width` numbers, those of the factors [a q, a] twice as
// many, high parts first. One warp per row.
extern "C" __global__ void gather_cores(const int* shares, const int* owners, int first, int rows, int segment, int components, int core,
                                        const float* y, int y_stride, const double* precision, const double* gammas, const double* deltas,
                                        const double* weights, const Constants* constants, int width, float* cores, float* factors) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / WARP, lane = threadIdx.x % WARP;
    if (row >= rows) return;
    int n = shares[(long long)first * segment + row] - 1, k = owners[first + row / segment];
    float *to_cores = cores + (long long)row * width, *to_factors = factors + (long long)row * 2 * width;
    double weight = n < 0 ? 0.0 : weights ? weights[n] : 1.0;
    double a = n < 0 ? 0.0 : gammas[(long long)n * components + k] * weight * tail_weight(constants[k], deltas[(long long)n * components + k]);
    for (int j = lane; j < width; j += WARP) {
        float q = n < 0 || j > core ? 0.0f : j == core ? 1.0f : y[(long long)n * y_stride + k * core + j] * (float)precision[k * core + j];
        unsigned high, low;
        split(n < 0 ? 0.0f : (float)a * q, high, low);
        to_cores[j] = q;
        to_factors[j] = __uint_as_float(high);
        to_factors[width + j] = __uint_as_float(low);
    }
}

// ⟨x_n, M_k⟩ of up to ten components (blockIdx.y): few columns are a bad shape for a matrix product, which takes twice the time that reading the samples
// does. A warp has four samples, a block stretches of the means in shared memory. Rows begin at multiples of four.
#define INNER_SAMPLES 4
#define INNER_COMPONENTS 10
#define STRETCH 512

extern "C" __global__ void __launch_bounds__(256, 2) inner_products(const float* __restrict__ x, const float* __restrict__ means, int count, int size,
                                                                    int components, float* __restrict__ inner) {
    __shared__ __align__(16) float held[INNER_COMPONENTS][STRETCH];
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    int first = (blockIdx.x * 8 + warp) * INNER_SAMPLES, first_k = blockIdx.y * INNER_COMPONENTS;
    int own = min(INNER_COMPONENTS, components - first_k);
    const float* from[INNER_SAMPLES];
#pragma unroll
    for (int s = 0; s < INNER_SAMPLES; ++s) from[s] = x + (long long)min(first + s, count - 1) * size;
    float sums[INNER_SAMPLES][INNER_COMPONENTS] = {};
    for (int begin = 0; begin < size; begin += STRETCH) {
        __syncthreads();
        for (int i = 4 * threadIdx.x; i < INNER_COMPONENTS * STRETCH; i += 4 * 256) {
            int k = i / STRETCH, at = begin + i % STRETCH;
            bool there = k < own && at < size;
            *(float4*)&held[k][i % STRETCH] = there ? *(const float4*)(means + (long long)(first_k + k) * size + at) : make_float4(0, 0, 0, 0);
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < STRETCH; i += 4 * WARP) {
            int at = i + 4 * lane;
            float4 values[INNER_SAMPLES];
#pragma unroll
            for (int s = 0; s < INNER_SAMPLES; ++s)
                values[s] = begin + at < size ? *(const float4*)(from[s] + begin + at) : make_float4(0, 0, 0, 0);
#pragma unroll
            for (int k = 0; k < INNER_COMPONENTS; ++k) {
                float4 mean = *(const float4*)&held[k][at];
#pragma unroll
                for (int s = 0; s < INNER_SAMPLES; ++s)
                    sums[s][k] += values[s].x * mean.x + values[s].y * mean.y + values[s].z * mean.z + values[s].w * mean.w;
            }
        }
    }
#pragma unroll
    for (int s = 0; s < INNER_SAMPLES; ++s) {
#pragma unroll
        for (int k = 0; k < INNER_COMPONENTS; ++k) {
            float sum = sums[s][k];
#pragma unroll
            for (int step = WARP / 2; step > 0; step /= 2) sum += __shfl_xor_sync(ALL_LANES, sum, step);
            if (lane == 0 && k < own && first + s < count) inner[(long long)(first + s) * components + first_k + k] = sum;
        }
    }
}

// [a q]ᵀ [x − M, q, 1] and Σ a [x − M, q, 1] of one segment (blockIdx.y): 128 columns (blockIdx.x) of up to 64 rows (blockIdx.z). Rows are copied to
// shared memory, as they are, a few steps before they are needed. A row that is none has factors of zero: whatever is copied for it counts for nothing.
#define COLUMNS 128
#define RANKS 64
#define DEEP 16
#define STEPS 3
#define LONGEST 512

struct Segment {
    // Rows are so long that two neighbours of four rows, for eight lanes, lie in different banks.
    float left[STEPS][DEEP][COLUMNS + 8];
    float high[STEPS][DEEP][RANKS + 8];
    float low[STEPS][DEEP][RANKS + 8];
    int numbers[LONGEST];
    float weights[LONGEST];
};

__device__ __forceinline__ void copy_async(float* to, const float* from, bool four) {
    unsigned address = (unsigned)__cvta_generic_to_shared(to);
    if (four) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from));
    else asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address), "l"(from));
}

// With `M` tiles of rows.
template <int M>
__device__ __forceinline__ void segment_tiles(Segment& here, const int* __restrict__ shares, const int* __restrict__ owners, int first, int segment,
                                              int core, int size, const float* __restrict__ x, const float* __restrict__ offsets,
                                              const float* __restrict__ cores, const float* __restrict__ factors, int left_width, int right_width,
                                              float* __restrict__ products) {
    int s = blockIdx.y, k = owners[first + s], thread = threadIdx.x;
    int warp = thread / WARP, lane = thread % WARP, group = lane / 4, within = lane % 4;
    int first_column = blockIdx.x * COLUMNS, first_rank = blockIdx.z * RANKS;
    long long row = (long long)s * segment;
    for (int i = thread; i < segment; i += 256) {
        const float* factor = factors + (row + i) * 2 * right_width + core;
        here.numbers[i] = max(shares[(long long)(first + s) * segment + i] - 1, 0);
        here.weights[i] = factor[0] + factor[right_width];
    }
    __syncthreads();
    // Four columns at a time where rows begin at multiples of four; the columns of cores follow those of samples.
    bool fours = size % 4 == 0;
    int step = fours ? 4 : 1, per_row = COLUMNS / step;
    int copied = thread % per_row * step, c = first_column + copied;
    bool of_samples = c < size;
    const float* source = of_samples ? x + c : c - size < right_width ? cores + (c - size) : cores;
    long long stride = of_samples ? size : right_width;
    int rank = thread % (RANKS / 4) * 4, r = first_rank + rank < right_width ? first_rank + rank : 0;
    const float* own_factors = factors + (row + thread / (RANKS / 4)) * 2 * right_width + r;
    auto fetch = [&](int begin) {
        int to = begin / DEEP % STEPS;
        for (int i = thread / per_row; i < DEEP; i += 256 / per_row) {
            long long from = of_samples ? (long long)here.numbers[begin + i] : row + begin + i;
            copy_async(&here.left[to][i][copied], source + from * stride, fours);
        }
        int i = thread / (RANKS / 4);
        const float* from = own_factors + (long long)begin * 2 * right_width;
        copy_async(&here.high[to][i][rank], from, true);
        copy_async(&here.low[to][i][rank], from + right_width, true);
    };
    // Of a tile of eight columns, and its neighbour's: a lane's two columns, and its two rows, are neighbours.
    float offset[2];
#pragma unroll
    for (int j = 0; j < 2; ++j) {
        int column = first_column + warp * 16 + 2 * group + j;
        offset[j] = column < size ? offsets[(long long)k * size + column] : 0.0f;
    }
    // Σ a (x − M) of one column; threads of the second half have every other row.
    int column = thread % COLUMNS, half = thread / COLUMNS;
    float own_offset = first_column + column < size ? offsets[(long long)k * size + first_column + column] : 0.0f, shift = 0.0f;
    float c_sums[M][2][4] = {};
#pragma unroll
    for (int i = 0; i < STEPS - 1; ++i) {
        if (i * DEEP < segment) fetch(i * DEEP);
        asm volatile("cp.async.commit_group;");
    }
    for (int begin = 0; begin < segment; begin += DEEP) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STEPS - 2));
        __syncthreads();
        if (begin + (STEPS - 1) * DEEP < segment) fetch(begin + (STEPS - 1) * DEEP);
        asm volatile("cp.async.commit_group;");
        int at_step = begin / DEEP % STEPS;
#pragma unroll
        for (int i = 0; i < DEEP / 2; ++i) {
            int at = 2 * i + half;
            shift += here.weights[begin + at] * (here.left[at_step][at][column] - own_offset);
        }
        // A sum of its own for every step, added by ordinary additions: those of tensor cores round towards zero, which would add up.
        float sums[M][2][4];
#pragma unroll
        for (int deep = 0; deep < DEEP; deep += TILE_K) {
            unsigned b_high[2][2], b_low[2][2], high[M][4], low[M][4];
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                float2 values = *(const float2*)&here.left[at_step][deep + within + 4 * i][warp * 16 + 2 * group];
                split(values.x - offset[0], b_high[0][i], b_low[0][i]);
                split(values.y - offset[1], b_high[1][i], b_low[1][i]);
            }
#pragma unroll
            for (int m = 0; m < M; ++m) {
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    uint2 of_high = *(const uint2*)&here.high[at_step][deep + within + 4 * i][m * TILE_M + 2 * group];
                    uint2 of_low = *(const uint2*)&here.low[at_step][deep + within + 4 * i][m * TILE_M + 2 * group];
                    high[m][2 * i] = of_high.x, high[m][2 * i + 1] = of_high.y;
                    low[m][2 * i] = of_low.x, low[m][2 * i + 1] = of_low.y;
                }
#pragma unroll
                for (int j = 0; j < 2; ++j) {
                    if (deep == 0) multiply_first(sums[m][j], low[m], b_high[j][0], b_high[j][1]);
                    else multiply(sums[m][j], low[m], b_high[j][0], b_high[j][1]);
                }
            }
#pragma unroll
            for (int m = 0; m < M; ++m)
#pragma unroll
                for (int j = 0; j < 2; ++j) multiply(sums[m][j], high[m], b_low[j][0], b_low[j][1]);
#pragma unroll
            for (int m = 0; m < M; ++m)
#pragma unroll
                for (int j = 0; j < 2; ++j) multiply(sums[m][j], high[m], b_high[j][0], b_high[j][1]);
        }
#pragma unroll
        for (int m = 0; m < M; ++m)
#pragma unroll
            for (int j = 0; j < 2; ++j)
#pragma unroll
                for (int i = 0; i < 4; ++i) c_sums[m][j][i] += sums[m][j][i];
    }
    float* to = products + (long long)s * left_width * right_width;
    // Four columns of a lane lie beside each other, two of each tile.
    int at = first_column + warp * 16 + 4 * within;
#pragma unroll
    for (int m = 0; m < M; ++m) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            int rank = first_rank + m * TILE_M + 2 * group + i;
            float4 values = make_float4(c_sums[m][0][2 * i], c_sums[m][1][2 * i], c_sums[m][0][2 * i + 1], c_sums[m][1][2 * i + 1]);
            if (rank < core && at < left_width) *(float4*)(to + (long long)rank * left_width + at) = values;
        }
    }
    // The two halves of the rows, in order.
    asm volatile("cp.async.wait_all;");
    __syncthreads();
    if (half == 1) here.left[0][0][column] = shift;
    __syncthreads();
    if (half == 0 && first_rank == 0 && first_column + column < left_width)
        to[(long long)core * left_width + first_column + column] = shift + here.left[0][0][column];
}

extern "C" __global__ void __launch_bounds__(256, 2) segment_sums(const int* __restrict__ shares, const int* __restrict__ owners, int first,
                                                                  int segment, int core, int size, const float* __restrict__ x,
                                                                  const float* __restrict__ offsets, const float* __restrict__ cores,
                                                                  const float* __restrict__ factors, int left_width, int right_width,
                                                                  float* __restrict__ products) {
    extern __shared__ __align__(16) float shared[];
    Segment& here = *(Segment*)shared;
    switch ((min(RANKS, core - (int)blockIdx.z * RANKS) + TILE_M - 1) / TILE_M) {
        case 1: return segment_tiles<1>(here, shares, owners, first, segment, core, size, x, offsets, cores, factors, left_width, right_width, products);
        case 2: return segment_tiles<2>(here, shares, owners, first, segment, core, size, x, offsets, cores, factors, left_width, right_width, products);
        case 3: return segment_tiles<3>(here, shares, owners, first, segment, core, size, x, offsets, cores, factors, left_width, right_width, products);
        default: return segment_tiles<4>(here, shares, owners, first, segment, core, size, x, offsets, cores, factors, left_width, right_width, products);
    }
}
