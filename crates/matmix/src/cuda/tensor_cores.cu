// The two large products of a pass on tensor cores, in single precision: every factor is split into two numbers of TF32, high and low, and three
// products are added (3×TF32). What is left out is low × low, 2⁻²² of a product: as small as the rounding of single precision.
// Compiled after kernels.cu, with `real` as float, for devices that have TF32.

#define TILE_M 16
#define TILE_N 8
#define TILE_K 8
// n-tiles a warp has at a time in `contract`.
#define ABREAST 5
// Elements a thread loads before it stores them.
#define LOADS 16

// The high part is rounded to nearest, so that the low part, of which tensor cores cut off the end, has either sign and no bias.
__device__ __forceinline__ void split(float x, unsigned& high, unsigned& low) {
    high = (__float_as_uint(x) + 0x1000u) & 0xffffe000u;
    low = __float_as_uint(x - __uint_as_float(high));
}

__device__ __forceinline__ void multiply(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// y[n][k] = front_kᵀ x_n back_k − start_k for all samples and the components of one tile (blockIdx.y). A block takes `together` samples at a
// time: x · back for the components of the tile into shared memory, then the front by all threads.
extern "C" __global__ void __launch_bounds__(256) contract(const float* __restrict__ x, const float* __restrict__ back, const float* __restrict__ front,
                                                           const float* __restrict__ starts, int count, int sides, int back_sides,
                                                           int components, int per_tile, int ranks, int padded, int back_ranks, int together,
                                                           float* __restrict__ y) {
    extern __shared__ float shared[];
    int first_k = blockIdx.y * per_tile, own = min(per_tile, components - first_k);
    int columns = own * back_ranks, all_columns = components * back_ranks;
    int rows = (sides + TILE_M - 1) / TILE_M * TILE_M, deep = (back_sides + TILE_K - 1) / TILE_K * TILE_K;
    int wide = (per_tile * back_ranks + TILE_N - 1) / TILE_N * TILE_N;
    // Strides for which a warp's fragments lie in different banks.
    int wide_stride = wide % 16 == 8 ? wide : wide + 8, deep_stride = deep + 4;
    float* back_high = shared;
    float* back_low = back_high + deep * wide_stride;
    float* samples = back_low + deep * wide_stride;
    float* between = samples + together * rows * deep_stride;
    float* fronts = between + together * rows * wide_stride;
    int fours = (ranks + 3) / 4, core = ranks * back_ranks;
    for (int i = threadIdx.x; i < own * sides * fours * 4; i += blockDim.x) {
        int rank = i % (fours * 4), side = i / (fours * 4);
        fronts[i] = front[((long long)first_k * sides + side) * padded + rank];
    }
    for (int i = threadIdx.x; i < deep * wide_stride; i += blockDim.x) {
        int b = i / wide_stride, c = i % wide_stride;
        float value = b < back_sides && c < columns ? back[b * all_columns + first_k * back_ranks + c] : 0.0f;
        unsigned high, low;
        split(value, high, low);
        back_high[i] = __uint_as_float(high);
        back_low[i] = __uint_as_float(low);
    }
    for (int i = threadIdx.x; i < together * rows * deep_stride; i += blockDim.x) samples[i] = 0.0f;
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, group = lane / 4, within = lane % 4;
    int m_tiles = together * rows / TILE_M, n_tiles = (columns + TILE_N - 1) / TILE_N;
    int n_groups = (n_tiles + ABREAST - 1) / ABREAST;
    int size = sides * back_sides;
    float by_back_sides = 1.0f / back_sides, by_sides = 1.0f / sides;
    for (int first = blockIdx.x * together; first < count; first += gridDim.x * together) {
        int there = min(together, count - first);
        __syncthreads();
        const float* from = x + (long long)first * size;
        // Many loads at a time: each waits a microsecond.
        for (int begin = 0; begin < there * size; begin += LOADS * 256) {
            float values[LOADS];
#pragma unroll
            for (int i = 0; i < LOADS; ++i) {
                int at = begin + i * 256 + threadIdx.x;
                values[i] = at < there * size ? from[at] : 0.0f;
            }
#pragma unroll
            for (int i = 0; i < LOADS; ++i) {
                int at = begin + i * 256 + threadIdx.x;
                if (at < there * size) {
                    // Exact: fewer than 2^20 elements, and half a column of distance to the next row.
                    int row = (int)(((float)at + 0.5f) * by_back_sides), sample = (int)(((float)row + 0.5f) * by_sides);
                    samples[(row + sample * (rows - sides)) * deep_stride + at - row * back_sides] = values[i];
                }
            }
        }
        __syncthreads();
        for (int task = warp; task < m_tiles * n_groups; task += 8) {
            int m = task / n_groups, n = task % n_groups * ABREAST;
            float c[ABREAST][4];
#pragma unroll
            for (int j = 0; j < ABREAST; ++j) c[j][0] = c[j][1] = c[j][2] = c[j][3] = 0.0f;
            const float* a = samples + (m * TILE_M + group) * deep_stride + within;
            for (int k = 0; k < deep; k += TILE_K) {
                unsigned high[4], low[4], b[ABREAST][2];
                // A sum of its own, added by ordinary additions: those of tensor cores round towards zero, which would add up.
                float step[ABREAST][4] = {};
                split(a[k], high[0], low[0]);
                split(a[k + 8 * deep_stride], high[1], low[1]);
                split(a[k + 4], high[2], low[2]);
                split(a[k + 8 * deep_stride + 4], high[3], low[3]);
                int at = (k + within) * wide_stride + n * TILE_N + group;
                // Products that wait for each other lie apart. Tiles beyond the last are of zeros, or of nobody.
#pragma unroll
                for (int j = 0; j < ABREAST; ++j) {
                    if (n + j < n_tiles) {
                        b[j][0] = __float_as_uint(back_high[at + j * TILE_N]);
                        b[j][1] = __float_as_uint(back_high[at + j * TILE_N + 4 * wide_stride]);
                        multiply(step[j], low, b[j][0], b[j][1]);
                    }
                }
#pragma unroll
                for (int j = 0; j < ABREAST; ++j) {
                    if (n + j < n_tiles) {
                        unsigned b0 = __float_as_uint(back_low[at + j * TILE_N]);
                        unsigned b1 = __float_as_uint(back_low[at + j * TILE_N + 4 * wide_stride]);
                        multiply(step[j], high, b0, b1);
                    }
                }
#pragma unroll
                for (int j = 0; j < ABREAST; ++j)
                    if (n + j < n_tiles) multiply(step[j], high, b[j][0], b[j][1]);
#pragma unroll
                for (int j = 0; j < ABREAST; ++j)
#pragma unroll
                    for (int i = 0; i < 4; ++i) c[j][i] += step[j][i];
            }
#pragma unroll
            for (int j = 0; j < ABREAST; ++j) {
                if (n + j < n_tiles) {
                    float* to = between + (m * TILE_M + group) * wide_stride + (n + j) * TILE_N + 2 * within;
                    to[0] = c[j][0];
                    to[1] = c[j][1];
                    to[8 * wide_stride] = c[j][2];
                    to[8 * wide_stride + 1] = c[j][3];
                }
            }
        }
        __syncthreads();
        // The front: a thread has a column of one component, and four of its ranks.
        for (int item = threadIdx.x; item < there * fours * columns; item += blockDim.x) {
            int column = item % columns, rest = item / columns, four = rest % fours, sample = rest / fours;
            int k = column / back_ranks, j = column % back_ranks;
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
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                int rank = four * 4 + i;
                if (rank < ranks) {
                    int at = (first_k + k) * core + rank * back_ranks + j;
                    y[(long long)(first + sample) * components * core + at] = values[i] - starts[at];
                }
            }
        }
    }
}

// [a q]ᵀ [x − M, q, 1] and Σ a [x − M, q, 1] of one segment (blockIdx.y): 128 columns (blockIdx.x) of up to 64 rows (blockIdx.z).
#define COLUMNS 128
#define RANKS 64
#define DEEP 16
#define LONGEST 512
extern "C" __global__ void __launch_bounds__(256, 2) segment_sums(const int* __restrict__ shares, const int* __restrict__ owners, int first,
                                                               int segment, int core, int size, const float* __restrict__ x,
                                                               const float* __restrict__ offsets, const float* __restrict__ cores,
                                                               const float* __restrict__ factors, int left_width, int right_width,
                                                               float* __restrict__ products) {
    __shared__ float left[DEEP][COLUMNS + 8];
    __shared__ float right[DEEP][RANKS + 8];
    __shared__ float shifts[COLUMNS];
    __shared__ int numbers[LONGEST];
    __shared__ float weights[LONGEST];
    int s = blockIdx.y, k = owners[first + s];
    int column = threadIdx.x % COLUMNS, c = blockIdx.x * COLUMNS + column, half = threadIdx.x / COLUMNS;
    int rank = threadIdx.x % RANKS, r = blockIdx.z * RANKS + rank, quarter = threadIdx.x / RANKS;
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, group = lane / 4, within = lane % 4;
    int m_tiles = (min(RANKS, core - (int)blockIdx.z * RANKS) + TILE_M - 1) / TILE_M;
    long long row = (long long)s * segment;
    for (int i = threadIdx.x; i < segment; i += blockDim.x) {
        numbers[i] = shares[(long long)(first + s) * segment + i] - 1;
        weights[i] = factors[(row + i) * right_width + core];
    }
    __syncthreads();
    // Where a thread finds its column: in samples or, after their last one, among cores; after those there is nothing.
    bool of_samples = c < size, there = c <= size + core;
    const float* source = of_samples ? x + c : there ? cores + (c - size) : cores;
    long long stride = of_samples ? size : right_width;
    float offset = of_samples ? offsets[(long long)k * size + c] : 0.0f, shift = 0.0f;
    float c_sums[RANKS / TILE_M][2][4];
#pragma unroll
    for (int m = 0; m < RANKS / TILE_M; ++m)
#pragma unroll
        for (int j = 0; j < 2; ++j) c_sums[m][j][0] = c_sums[m][j][1] = c_sums[m][j][2] = c_sums[m][j][3] = 0.0f;
    float next_left[DEEP / 2], next_right[DEEP / 4];
    auto fetch = [&](int begin) {
#pragma unroll
        for (int i = 0; i < DEEP / 2; ++i) {
            // No branch, and nothing done with the value yet: all loads are under way before one is waited for.
            int at = begin + half * (DEEP / 2) + i;
            next_left[i] = source[(of_samples ? (long long)max(numbers[at], 0) : row + at) * stride];
        }
#pragma unroll
        for (int i = 0; i < DEEP / 4; ++i) {
            int at = begin + quarter * (DEEP / 4) + i;
            next_right[i] = factors[(row + at) * right_width + min(r, core)];
        }
    };
    fetch(0);
    for (int begin = 0; begin < segment; begin += DEEP) {
        __syncthreads();
#pragma unroll
        for (int i = 0; i < DEEP / 2; ++i) {
            int at = begin + half * (DEEP / 2) + i;
            float value = there && numbers[at] >= 0 ? next_left[i] - offset : 0.0f;
            left[half * (DEEP / 2) + i][column] = value;
            shift += weights[at] * value;
        }
#pragma unroll
        for (int i = 0; i < DEEP / 4; ++i) right[quarter * (DEEP / 4) + i][rank] = r < core ? next_right[i] : 0.0f;
        __syncthreads();
        if (begin + DEEP < segment) fetch(begin + DEEP);
        // A sum of its own for every step, added by ordinary additions: those of tensor cores round towards zero, which would add up.
        float step[RANKS / TILE_M][2][4] = {};
#pragma unroll
        for (int deep = 0; deep < DEEP; deep += TILE_K) {
            unsigned b_high[2][2], b_low[2][2], high[RANKS / TILE_M][4], low[RANKS / TILE_M][4];
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                int at = warp * 16 + j * TILE_N + group;
                split(left[deep + within][at], b_high[j][0], b_low[j][0]);
                split(left[deep + within + 4][at], b_high[j][1], b_low[j][1]);
            }
#pragma unroll
            for (int m = 0; m < RANKS / TILE_M; ++m) {
                if (m < m_tiles) {
                    int at = m * TILE_M + group;
                    split(right[deep + within][at], high[m][0], low[m][0]);
                    split(right[deep + within][at + 8], high[m][1], low[m][1]);
                    split(right[deep + within + 4][at], high[m][2], low[m][2]);
                    split(right[deep + within + 4][at + 8], high[m][3], low[m][3]);
#pragma unroll
                    for (int j = 0; j < 2; ++j) multiply(step[m][j], low[m], b_high[j][0], b_high[j][1]);
                }
            }
#pragma unroll
            for (int m = 0; m < RANKS / TILE_M; ++m)
                if (m < m_tiles)
#pragma unroll
                    for (int j = 0; j < 2; ++j) multiply(step[m][j], high[m], b_low[j][0], b_low[j][1]);
#pragma unroll
            for (int m = 0; m < RANKS / TILE_M; ++m)
                if (m < m_tiles)
#pragma unroll
                    for (int j = 0; j < 2; ++j) multiply(step[m][j], high[m], b_high[j][0], b_high[j][1]);
        }
#pragma unroll
        for (int m = 0; m < RANKS / TILE_M; ++m)
#pragma unroll
            for (int j = 0; j < 2; ++j)
#pragma unroll
                for (int i = 0; i < 4; ++i) c_sums[m][j][i] += step[m][j][i];
    }
    float* to = products + (long long)s * left_width * right_width;
#pragma unroll
    for (int m = 0; m < RANKS / TILE_M; ++m) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                int rank = blockIdx.z * RANKS + m * TILE_M + group + i / 2 * 8;
                int at = blockIdx.x * COLUMNS + warp * 16 + j * TILE_N + 2 * within + i % 2;
                if (rank < core && at < left_width) to[(long long)rank * left_width + at] = c_sums[m][j][i];
            }
        }
    }
    // The two halves of the rows, in order.
    __syncthreads();
    if (half == 1) shifts[column] = shift;
    __syncthreads();
    if (half == 0 && blockIdx.z == 0 && c < left_width) to[(long long)core * left_width + c] = shift + shifts[column];
}
