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
    // The next samples are under way while these are worked on: a load takes a microsecond. What threads cannot hold is loaded when it is due.
    float ahead[LOADS];
    auto fetch = [&](int first, int begin) {
        int end = min(together, count - first) * size;
        const float* from = x + (long long)first * size;
#pragma unroll
        for (int i = 0; i < LOADS; ++i) {
            int at = begin + i * 256 + threadIdx.x;
            ahead[i] = at < end ? from[at] : 0.0f;
        }
    };
    int stride = gridDim.x * together;
    if (blockIdx.x * together < count) fetch(blockIdx.x * together, 0);
    for (int first = blockIdx.x * together; first < count; first += stride) {
        int there = min(together, count - first);
        __syncthreads();
        for (int begin = 0; begin < there * size; begin += LOADS * 256) {
            if (begin > 0) fetch(first, begin);
#pragma unroll
            for (int i = 0; i < LOADS; ++i) {
                int at = begin + i * 256 + threadIdx.x;
                if (at < there * size) {
                    // Exact: fewer than 2^20 elements, and half a column of distance to the next row.
                    int row = (int)(((float)at + 0.5f) * by_back_sides), sample = (int)(((float)row + 0.5f) * by_sides);
                    samples[(row + sample * (rows - sides)) * deep_stride + at - row * back_sides] = ahead[i];
                }
            }
        }
        __syncthreads();
        if (first + stride < count) fetch(first + stride, 0);
        for (int task = warp; task < m_tiles * n_groups; task += 8) {
            int m = task / n_groups, n = task % n_groups * ABREAST;
            float c[ABREAST][4];
#pragma unroll
            for (int j = 0; j < ABREAST; ++j) c[j][0] = c[j][1] = c[j][2] = c[j][3] = 0.0f;
            const float* a = samples + (m * TILE_M + group) * deep_stride + within;
            for (int k = 0; k < deep; k += TILE_K) {
                unsigned high[4], low[4], b[ABREAST][2];
                // A sum of its own, added by ordinary additions: those of tensor cores round towards zero, which would add up. Of what they cut off
                // in a step, 4·10⁻⁸ of it on average, a unit in the last place of every fourth makes good: what is left is 5·10⁻⁹.
                float step[ABREAST][4] = {};
                float grown = k / TILE_K % 4 == 1 ? 1.00000012f : 1.0f;
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
                    for (int i = 0; i < 4; ++i) c[j][i] = fmaf(step[j][i], grown, c[j][i]);
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

// [a q]ᵀ [x − M, q, 1] and Σ a [x − M, q, 1] of one segment (blockIdx.y): 128 columns (blockIdx.x) of up to 64 rows (blockIdx.z). Rows are copied to
// shared memory, as they are, a few steps before they are needed. A row that is none has factors of zero: whatever is copied for it counts for nothing.
#define COLUMNS 128
#define RANKS 64
#define DEEP 16
#define STEPS 3
#define LONGEST 512

__device__ __forceinline__ void copy_async(float* to, const float* from, bool four) {
    unsigned address = (unsigned)__cvta_generic_to_shared(to);
    if (four) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from));
    else asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address), "l"(from));
}

extern "C" __global__ void __launch_bounds__(256, 2) segment_sums(const int* __restrict__ shares, const int* __restrict__ owners, int first,
                                                                  int segment, int core, int size, const float* __restrict__ x,
                                                                  const float* __restrict__ offsets, const float* __restrict__ cores,
                                                                  const float* __restrict__ factors, int left_width, int right_width,
                                                                  float* __restrict__ products) {
    __shared__ __align__(16) float left[STEPS][DEEP][COLUMNS + 8];
    __shared__ __align__(16) float right[STEPS][DEEP][RANKS + 8];
    __shared__ int numbers[LONGEST];
    __shared__ float weights[LONGEST];
    int s = blockIdx.y, k = owners[first + s], thread = threadIdx.x;
    int warp = thread / WARP, lane = thread % WARP, group = lane / 4, within = lane % 4;
    int first_column = blockIdx.x * COLUMNS, first_rank = blockIdx.z * RANKS;
    int m_tiles = (min(RANKS, core - first_rank) + TILE_M - 1) / TILE_M;
    long long row = (long long)s * segment;
    for (int i = thread; i < segment; i += 256) {
        numbers[i] = max(shares[(long long)(first + s) * segment + i] - 1, 0);
        weights[i] = factors[(row + i) * right_width + core];
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
    auto fetch = [&](int begin) {
        int to = begin / DEEP % STEPS;
        for (int i = thread / per_row; i < DEEP; i += 256 / per_row) {
            long long from = of_samples ? (long long)numbers[begin + i] : row + begin + i;
            copy_async(&left[to][i][copied], source + from * stride, fours);
        }
        int i = thread / (RANKS / 4);
        copy_async(&right[to][i][rank], factors + (row + begin + i) * right_width + r, true);
    };
    float offset[2];
#pragma unroll
    for (int j = 0; j < 2; ++j) {
        int column = first_column + warp * 16 + j * TILE_N + group;
        offset[j] = column < size ? offsets[(long long)k * size + column] : 0.0f;
    }
    // Σ a (x − M) of one column; threads of the second half have every other row.
    int column = thread % COLUMNS, half = thread / COLUMNS;
    float own_offset = first_column + column < size ? offsets[(long long)k * size + first_column + column] : 0.0f, shift = 0.0f;
    float c_sums[RANKS / TILE_M][2][4] = {};
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
            shift += weights[begin + at] * (left[at_step][at][column] - own_offset);
        }
        // A sum of its own for every step, added by ordinary additions: those of tensor cores round towards zero, which would add up.
        float sums[RANKS / TILE_M][2][4] = {};
#pragma unroll
        for (int deep = 0; deep < DEEP; deep += TILE_K) {
            unsigned b_high[2][2], b_low[2][2], high[RANKS / TILE_M][4], low[RANKS / TILE_M][4];
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                int at = warp * 16 + j * TILE_N + group;
                split(left[at_step][deep + within][at] - offset[j], b_high[j][0], b_low[j][0]);
                split(left[at_step][deep + within + 4][at] - offset[j], b_high[j][1], b_low[j][1]);
            }
#pragma unroll
            for (int m = 0; m < RANKS / TILE_M; ++m) {
                if (m < m_tiles) {
                    int at = m * TILE_M + group;
                    split(right[at_step][deep + within][at], high[m][0], low[m][0]);
                    split(right[at_step][deep + within][at + 8], high[m][1], low[m][1]);
                    split(right[at_step][deep + within + 4][at], high[m][2], low[m][2]);
                    split(right[at_step][deep + within + 4][at + 8], high[m][3], low[m][3]);
#pragma unroll
                    for (int j = 0; j < 2; ++j) multiply(sums[m][j], low[m], b_high[j][0], b_high[j][1]);
                }
            }
#pragma unroll
            for (int m = 0; m < RANKS / TILE_M; ++m)
                if (m < m_tiles)
#pragma unroll
                    for (int j = 0; j < 2; ++j) multiply(sums[m][j], high[m], b_low[j][0], b_low[j][1]);
#pragma unroll
            for (int m = 0; m < RANKS / TILE_M; ++m)
                if (m < m_tiles)
#pragma unroll
                    for (int j = 0; j < 2; ++j) multiply(sums[m][j], high[m], b_high[j][0], b_high[j][1]);
        }
#pragma unroll
        for (int m = 0; m < RANKS / TILE_M; ++m)
#pragma unroll
            for (int j = 0; j < 2; ++j)
#pragma unroll
                for (int i = 0; i < 4; ++i) c_sums[m][j][i] += sums[m][j][i];
    }
    float* to = products + (long long)s * left_width * right_width;
#pragma unroll
    for (int m = 0; m < RANKS / TILE_M; ++m) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                int rank = first_rank + m * TILE_M + group + i / 2 * 8;
                int at = first_column + warp * 16 + j * TILE_N + 2 * within + i % 2;
                if (rank < core && at < left_width) to[(long long)rank * left_width + at] = c_sums[m][j][i];
            }
        }
    }
    // The two halves of the rows, in order.
    asm volatile("cp.async.wait_all;");
    __syncthreads();
    if (half == 1) left[0][0][column] = shift;
    __syncthreads();
    if (half == 0 && first_rank == 0 && first_column + column < left_width)
        to[(long long)core * left_width + first_column + column] = shift + left[0][0][column];
}
