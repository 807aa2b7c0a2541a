// The kernels of a pass. Compiled twice, with `real` as float and as double; whatever cancels is in double in both.
//
// Nothing is added in an order that depends on which block comes first: sums within a block are trees of a fixed shape, sums over blocks are
// made by one thread in their order. The same samples give the same bits, run after run.

typedef REAL real;
typedef unsigned char byte;

#define WARP 32
#define ALL_LANES 0xffffffffu
// Responsibilities below this add nothing that double precision could hold; a squared distance below this share of the squares it is the
// difference of has lost too many digits. Both as on the processor.
#define NEGLIGIBLE 1e-12
#define CANCELLED 1e-3
// Samples that are counted together, and sums of them that are kept per component.
#define BLOCK 256
#define COMPONENT_SUMS 5

// What a component is to its densities.
struct Constants {
    double mean_norm, noise_precision, log_weight, log_density;
    // Student-t noise: ν (0: Gaussian), (ν + P)/2 and ln((ν+P)/2) − ψ((ν+P)/2).
    double degrees, half, log_less_digamma;
};

__device__ __forceinline__ double warp_sum(double x) {
    for (int step = WARP / 2; step > 0; step /= 2) x += __shfl_xor_sync(ALL_LANES, x, step);
    return x;
}

// A stored element as the kernels see it, x·scale − reference: the one place.
template <typename T> __device__ __forceinline__ T loaded(const void* stored, int element, long long at, T scale, T reference) {
    T x = element == 0 ? (T)((const byte*)stored)[at]
        : element == 1 ? (T)((const float*)stored)[at]
                       : (T)((const double*)stored)[at];
    return x * scale - reference;
}

// ln p of a sample at this squared distance over the noise variance: the one place.
__device__ __forceinline__ double log_density_at(const Constants& c, double delta) {
    return c.degrees > 0 ? c.log_density - c.half * log1p(delta / c.degrees) : c.log_density - 0.5 * delta;
}

// Stored elements as they are loaded, and their squares in double. One warp per sample.
extern "C" __global__ void load(const void* stored, int element, const long long* rows, int count, int size, real scale,
                                const real* reference, real* out, double* norms) {
    int n = (blockIdx.x * blockDim.x + threadIdx.x) / WARP, lane = threadIdx.x % WARP;
    if (n >= count) return;
    long long row = rows ? rows[n] : n;
    double norm = 0;
    for (int i = lane; i < size; i += WARP) {
        real x = loaded<real>(stored, element, row * size + i, scale, reference[i]);
        out[(long long)n * size + i] = x;
        norm += (double)x * (double)x;
    }
    norm = warp_sum(norm);
    if (lane == 0) norms[n] = norm;
}

// y[n][k][i][j] = Σ_a loadings[k][a][i] z[n][a][k][j]: the modes in front of those that a matrix product has contracted.
// A thread has one z per a and eight of the i.
extern "C" __global__ void contract_front(const real* z, const real* loadings, int count, int sides, int components, int ranks,
                                          int padded, int back, real* y) {
    long long t = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    int columns = components * back, groups = padded / 8;
    if (t >= (long long)count * columns * groups) return;
    int column = t % columns, group = (t / columns) % groups;
    long long n = t / ((long long)columns * groups);
    int k = column / back, j = column % back;
    const real* from = z + n * sides * columns + column;
    const real* with = loadings + (long long)k * sides * padded + group * 8;
    real sums[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    for (int a = 0; a < sides; ++a) {
        real x = from[(long long)a * columns];
#pragma unroll
        for (int i = 0; i < 8; ++i) sums[i] += with[(long long)a * padded + i] * x;
    }
    real* to = y + (n * components + k) * ranks * back + j;
#pragma unroll
    for (int i = 0; i < 8; ++i)
        if (group * 8 + i < ranks) to[(group * 8 + i) * back] = sums[i];
}

// The sum over the lanes of a part of a warp, as many as `width`, a power of two.
__device__ __forceinline__ double part_sum(double x, int width) {
    for (int step = width / 2; step > 0; step /= 2) x += __shfl_xor_sync(ALL_LANES, x, step);
    return x;
}

// Densities and responsibilities. One warp per sample, a part of it per component where cores are small. With `starts`, `y` comes without, and
// leaves with, the mean taken off.
extern "C" __global__ void densities(int count, int components, int core, int size, int width, real* __restrict__ y, int y_stride,
                                     const real* __restrict__ inner, int inner_stride, const double* __restrict__ norms,
                                     const real* __restrict__ x, const real* __restrict__ offsets, const real* __restrict__ starts,
                                     const double* __restrict__ precision, const double* __restrict__ explained,
                                     const Constants* __restrict__ constants, double cutoff, double* __restrict__ distances,
                                     double* __restrict__ deltas, double* __restrict__ logs, double* __restrict__ gammas,
                                     double* __restrict__ log_likelihoods, double* __restrict__ entropies, double* __restrict__ errors,
                                     int* __restrict__ bests) {
    long long n = ((long long)blockIdx.x * blockDim.x + threadIdx.x) / WARP;
    int lane = threadIdx.x % WARP;
    if (n >= count) return;
    double *distance = distances + n * components, *delta = deltas + n * components;
    double *log_density = logs + n * components, *gamma = gammas + n * components;
    real* own = y + n * y_stride;
    double norm = norms[n];
    int part = lane / width, within = lane % width, parts = WARP / width;
    // What the next component needs is fetched while this one is worked on.
    bool has_core = within < core;
    real next_value = part < components && has_core ? own[part * core + within] : (real)0;
    real next_inner = part < components ? inner[n * inner_stride + part] : (real)0;
    for (int first = 0; first < components; first += parts) {
        int k = first + part, next = k + parts;
        bool there = k < components;
        real fetched = next_value, product = next_inner;
        if (next < components) {
            if (has_core) next_value = own[next * core + within];
            next_inner = inner[n * inner_stride + next];
        }
        double taken = 0;
        for (int j = within; there && j < core; j += width) {
            int at = k * core + j;
            real value = j == within ? fetched : own[at];
            if (starts) {
                value -= starts[at];
                own[at] = value;
            }
            taken += (double)value * (double)value * precision[at];
        }
        taken = part_sum(taken, width);
        double squares = 0, from_mean = 0;
        if (there) {
            squares = norm + constants[k].mean_norm;
            from_mean = squares - 2.0 * (double)product;
        }
        bool cancelled = there && from_mean < CANCELLED * squares;
        if (__any_sync(ALL_LANES, cancelled)) {
            double directly = 0;
            for (int i = within; cancelled && i < size; i += width) {
                double difference = (double)x[n * size + i] - (double)offsets[(long long)k * size + i];
                directly += difference * difference;
            }
            directly = part_sum(directly, width);
            if (cancelled) from_mean = directly;
        }
        if (there && within == 0) {
            double left = from_mean - taken;
            left = left < 0 ? 0 : left;
            left *= constants[k].noise_precision;
            distance[k] = from_mean;
            delta[k] = left;
            log_density[k] = log_density_at(constants[k], left);
        }
    }
    __syncwarp();
    double largest = __longlong_as_double(0xfff0000000000000ll);  // −∞
    int best = components;
    for (int k = lane; k < components; k += WARP) {
        double joint = constants[k].log_weight + log_density[k];
        gamma[k] = joint;
        // A NaN is never larger: whoever reads the likelihood notices it below.
        if (joint > largest) {
            largest = joint;
            best = k;
        }
    }
    for (int step = WARP / 2; step > 0; step /= 2) {
        double other = __shfl_xor_sync(ALL_LANES, largest, step);
        int which = __shfl_xor_sync(ALL_LANES, best, step);
        if (other > largest || (other == largest && which < best)) {
            largest = other;
            best = which;
        }
    }
    if (best == components) best = 0;
    double sum = 0;
    for (int k = lane; k < components; k += WARP) {
        double difference = gamma[k] - largest;
        double g = difference < cutoff ? 0 : exp(difference);
        gamma[k] = g;
        sum += g;
    }
    sum = warp_sum(sum);
    double entropy = 0;
    for (int k = lane; k < components; k += WARP) {
        double g = gamma[k] / sum;
        gamma[k] = g;
        if (g > 0 && g < 1) entropy -= g * log(g);
    }
    entropy = warp_sum(entropy);
    double off = 0;
    for (int j = lane; j < core; j += WARP) {
        double value = own[best * core + j];
        off += value * value * explained[best * core + j];
    }
    off = warp_sum(off);
    if (lane == 0) {
        double error = distance[best] - off;
        log_likelihoods[n] = largest + log(sum);
        entropies[n] = entropy;
        errors[n] = error < 0 ? 0 : error;
        bests[n] = best;
    }
}

// The weight of a sample at distance δ in the sums of a component: E[u|X], and E[ln u|X].
__device__ __forceinline__ double tail_weight(const Constants& c, double delta) {
    return c.degrees > 0 ? 2.0 * c.half / (c.degrees + delta) : 1.0;
}

// Adds five numbers over a block: a tree of fixed shape.
__device__ void block_sums(double (*shared)[BLOCK], double* to) {
    for (int step = BLOCK / 2; step > 0; step /= 2) {
        __syncthreads();
        if (threadIdx.x < step)
            for (int i = 0; i < COMPONENT_SUMS; ++i) shared[i][threadIdx.x] += shared[i][threadIdx.x + step];
    }
    __syncthreads();
    if (threadIdx.x < COMPONENT_SUMS) to[threadIdx.x] = shared[threadIdx.x][0];
}

// Per block of samples and component: how many samples have a share in it, and Σγ, Σa, Σγ E[ln u], Σa‖X−M‖², how many it is the best of.
extern "C" __global__ void count_shares(int count, int components, const double* weights, const double* gammas, const double* deltas,
                                        const double* distances, const int* bests, const Constants* constants, int blocks, int* counts,
                                        double* sums) {
    __shared__ double shared[COMPONENT_SUMS][BLOCK];
    int k = blockIdx.y;
    long long n = (long long)blockIdx.x * BLOCK + threadIdx.x;
    double values[COMPONENT_SUMS] = {0, 0, 0, 0, 0};
    bool has_share = false;
    if (n < count) {
        double weight = weights ? weights[n] : 1.0, gamma = gammas[n * components + k];
        has_share = weight > 0 && gamma > NEGLIGIBLE;
        if (has_share) {
            const Constants& c = constants[k];
            double delta = deltas[n * components + k], u = tail_weight(c, delta), a = gamma * weight * u;
            values[0] = gamma * weight;
            values[1] = a;
            values[2] = c.degrees > 0 ? gamma * weight * (log(u) - c.log_less_digamma) : 0;
            values[3] = a * distances[n * components + k];
        }
        values[4] = weight > 0 && bests[n] == k ? 1 : 0;
    }
    int found = __syncthreads_count(has_share);
    for (int i = 0; i < COMPONENT_SUMS; ++i) shared[i][threadIdx.x] = values[i];
    block_sums(shared, sums + ((long long)k * blocks + blockIdx.x) * COMPONENT_SUMS);
    if (threadIdx.x == 0) counts[k * blocks + blockIdx.x] = found;
}

// The same of what belongs to a sample as a whole: Σw, Σw ln p, Σw (ln p)², Σw entropy, Σw error.
extern "C" __global__ void count_samples(int count, const double* weights, const double* log_likelihoods, const double* entropies,
                                         const double* errors, double* sums) {
    __shared__ double shared[COMPONENT_SUMS][BLOCK];
    long long n = (long long)blockIdx.x * BLOCK + threadIdx.x;
    double values[COMPONENT_SUMS] = {0, 0, 0, 0, 0};
    if (n < count) {
        double weight = weights ? weights[n] : 1.0, log_likelihood = log_likelihoods[n];
        if (weight > 0) {
            values[0] = weight;
            values[1] = weight * log_likelihood;
            values[2] = weight * log_likelihood * log_likelihood;
            values[3] = weight * entropies[n];
            values[4] = weight * errors[n];
        } else {
            // A sample that counts for nothing may still be none.
            values[1] = log_likelihood - log_likelihood;
        }
    }
    for (int i = 0; i < COMPONENT_SUMS; ++i) shared[i][threadIdx.x] = values[i];
    block_sums(shared, sums + (long long)blockIdx.x * COMPONENT_SUMS);
}

// Where the samples of each block begin among those of a component, and the sums over all blocks. One block per component, and one
// more for what belongs to samples as a whole (which has no counts).
extern "C" __global__ void scan_shares(int components, int blocks, int* counts, double* sums, double* totals, double* all) {
    __shared__ int places[BLOCK];
    __shared__ double shared[COMPONENT_SUMS][BLOCK];
    int k = blockIdx.x, base = 0;
    if (k < components) {
        for (int first = 0; first < blocks; first += BLOCK) {
            int b = first + threadIdx.x, own = b < blocks ? counts[k * blocks + b] : 0;
            places[threadIdx.x] = own;
            __syncthreads();
            for (int step = 1; step < BLOCK; step *= 2) {
                int before = threadIdx.x >= step ? places[threadIdx.x - step] : 0;
                __syncthreads();
                places[threadIdx.x] += before;
                __syncthreads();
            }
            if (b < blocks) counts[k * blocks + b] = base + places[threadIdx.x] - own;
            base += places[BLOCK - 1];
            __syncthreads();
        }
        if (threadIdx.x == 0) totals[k] = base;
    }
    double values[COMPONENT_SUMS] = {0, 0, 0, 0, 0};
    for (int b = threadIdx.x; b < blocks; b += BLOCK)
        for (int i = 0; i < COMPONENT_SUMS; ++i) values[i] += sums[((long long)k * blocks + b) * COMPONENT_SUMS + i];
    for (int i = 0; i < COMPONENT_SUMS; ++i) shared[i][threadIdx.x] = values[i];
    block_sums(shared, all + k * COMPONENT_SUMS);
}

// The numbers, plus one, of the samples that have a share in a component, one after the other from `starts[k]` on.
extern "C" __global__ void place_shares(int count, int components, const double* weights, const double* gammas, int blocks,
                                        const int* counts, const long long* starts, int* shares) {
    __shared__ int places[BLOCK];
    int k = blockIdx.y;
    long long n = (long long)blockIdx.x * BLOCK + threadIdx.x;
    bool has_share = n < count && (!weights || weights[n] > 0) && gammas[n * components + k] > NEGLIGIBLE;
    places[threadIdx.x] = has_share;
    __syncthreads();
    for (int step = 1; step < BLOCK; step *= 2) {
        int before = threadIdx.x >= step ? places[threadIdx.x - step] : 0;
        __syncthreads();
        places[threadIdx.x] += before;
        __syncthreads();
    }
    if (has_share) shares[starts[k] + counts[k * blocks + blockIdx.x] + places[threadIdx.x] - 1] = (int)n + 1;
}

// Rows that one matrix product turns into all sums: left = [x − M, q, 1], right = [a q, a]. One warp per row; a place holds the number of a sample plus one, and 0 is none.
extern "C" __global__ void gather(const int* shares, const int* owners, int first, int rows, int segment, int components, int core,
                                  int size, const real* x, const real* offsets, const real* y, int y_stride, const double* precision,
                                  const double* gammas, const double* deltas, const double* weights, const Constants* constants,
                                  int left_width, int right_width, real* left, real* right) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / WARP, lane = threadIdx.x % WARP;
    if (row >= rows) return;
    int n = shares[(long long)first * segment + row] - 1, k = owners[first + row / segment];
    real* to_left = left + (long long)row * left_width;
    real* to_right = right + (long long)row * right_width;
    if (n < 0) {
        for (int i = lane; i < left_width; i += WARP) to_left[i] = 0;
        for (int i = lane; i < right_width; i += WARP) to_right[i] = 0;
        return;
    }
    double weight = weights ? weights[n] : 1.0;
    double a = gammas[(long long)n * components + k] * weight * tail_weight(constants[k], deltas[(long long)n * components + k]);
    const real* sample = x + (long long)n * size;
    const real* offset = offsets + (long long)k * size;
    for (int i = lane; i < size; i += WARP) to_left[i] = sample[i] - offset[i];
    const real* own = y + (long long)n * y_stride + k * core;
    for (int j = lane; j < core; j += WARP) {
        real q = own[j] * (real)precision[k * core + j];
        to_left[size + j] = q;
        to_right[j] = (real)a * q;
    }
    for (int i = size + core + lane; i < left_width; i += WARP) to_left[i] = i == size + core;
    for (int i = core + lane; i < right_width; i += WARP) to_right[i] = i == core ? (real)a : (real)0;
}

// Adds the products of a batch of segments to the sums of their components, in order and in double.
extern "C" __global__ void fold(const real* products, const int* begins, int length, double* sums) {
    int k = blockIdx.y;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= length) return;
    double sum = sums[(long long)k * length + i];
    for (int s = begins[k]; s < begins[k + 1]; ++s) sum += (double)products[(long long)s * length + i];
    sums[(long long)k * length + i] = sum;
}

// What a product with all loadings, or means, turns into samples: columns of [γ q, γ] from `from` on, of the best component alone or of all.
extern "C" __global__ void weigh_cores(int count, int components, int core, const real* y, int y_stride, const double* precision,
                                       const double* gammas, const int* bests, int best_alone, int from, int width, real* out) {
    long long t = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= (long long)count * width) return;
    long long n = t / width;
    int i = from + t % width, k = i < components * core ? i / core : i - components * core;
    double gamma = best_alone ? (bests[n] == k ? 1.0 : 0.0) : gammas[n * components + k];
    double value = i < components * core ? (double)y[n * y_stride + i] * precision[i] : 1.0;
    out[t] = gamma > 0 ? (real)(gamma * value) : (real)0;
}

// Samples by their numbers, as they are stored, one after the other. One warp per sample.
extern "C" __global__ void pick_rows(const byte* stored, const long long* rows, int count, long long bytes, byte* out) {
    int n = (blockIdx.x * blockDim.x + threadIdx.x) / WARP, lane = threadIdx.x % WARP;
    if (n >= count) return;
    const byte* from = stored + rows[n] * bytes;
    for (long long i = lane; i < bytes; i += WARP) out[n * bytes + i] = from[i];
}

// Σ w d, Σ w d², min and max of x, per element of a sample and stretch of `rows` samples (blockIdx.y), with d = x − origin; all in double.
extern "C" __global__ void moments(const void* stored, int element, long long count, int size, double scale, const double* origin,
                                   const double* weights, long long rows, double* sums) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= size) return;
    long long first = blockIdx.y * rows, end = first + rows < count ? first + rows : count;
    double g = origin[i], sum = 0, squares = 0;
    double least = __longlong_as_double(0x7ff0000000000000ll), largest = -least;
    for (long long n = first; n < end; ++n) {
        double d = loaded(stored, element, n * size + i, scale, g), weight = weights ? weights[n] : 1.0, x = d + g;
        sum += weight * d;
        squares += weight * d * d;
        // A sample that counts for nothing has to be finite, too.
        if (weight == 0) squares += d * d - d * d;
        least = x < least ? x : least;
        largest = x > largest ? x : largest;
    }
    long long all = (long long)gridDim.y * size, at = (long long)blockIdx.y * size + i;
    sums[at] = sum;
    sums[all + at] = squares;
    sums[2 * all + at] = least;
    sums[3 * all + at] = largest;
}

// ‖x − c‖² of samples and points from their inner products, and squares of both.
extern "C" __global__ void point_distances(int count, int points, const real* inner, const double* norms, const double* point_norms,
                                           double* distances) {
    long long t = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= (long long)count * points) return;
    double distance = norms[t / points] - 2.0 * (double)inner[t] + point_norms[t % points];
    distances[t] = distance < 0 ? 0 : distance;
}

// The nearest point of every sample, the first of equal ones, and ‖x − c‖² directly; NaN if a distance is none. One warp per sample.
extern "C" __global__ void nearest(const void* stored, int element, int count, int size, double scale, int points, const double* distances,
                                   const double* centres, int* nearest, double* squares) {
    int n = (blockIdx.x * blockDim.x + threadIdx.x) / WARP, lane = threadIdx.x % WARP;
    if (n >= count) return;
    double least = __longlong_as_double(0x7ff0000000000000ll);
    int best = points;
    bool fine = true;
    for (int k = lane; k < points; k += WARP) {
        double distance = distances[(long long)n * points + k];
        fine = fine && isfinite(distance);
        if (distance < least) {
            least = distance;
            best = k;
        }
    }
    fine = __all_sync(ALL_LANES, fine);
    for (int step = WARP / 2; step > 0; step /= 2) {
        double other = __shfl_xor_sync(ALL_LANES, least, step);
        int which = __shfl_xor_sync(ALL_LANES, best, step);
        if (other < least || (other == least && which < best)) {
            least = other;
            best = which;
        }
    }
    if (best == points) best = 0;
    double square = 0;
    for (int i = lane; i < size; i += WARP) {
        double d = loaded(stored, element, (long long)n * size + i, scale, centres[(long long)best * size + i]);
        square += d * d;
    }
    square = warp_sum(square);
    if (lane == 0) {
        nearest[n] = best;
        squares[n] = fine ? square : __longlong_as_double(0x7ff8000000000000ll);
    }
}

// Σ w (x − c) over the samples nearest to each centre, per stretch of `rows` samples (blockIdx.y). The sums begin with zero; a thread has an element of
// all samples of its stretch.
extern "C" __global__ void group_sums(const void* stored, int element, long long count, int size, double scale, const double* weights,
                                      const int* nearest, const double* centres, int points, long long rows, double* sums) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= size) return;
    long long first = blockIdx.y * rows, end = first + rows < count ? first + rows : count;
    double* own = sums + (long long)blockIdx.y * points * size;
    for (long long n = first; n < end; ++n) {
        long long at = (long long)nearest[n] * size + i;
        double d = loaded(stored, element, n * size + i, scale, centres[at]);
        own[at] += weights ? weights[n] * d : d;
    }
}

// Adds up (kind 0), or finds the least (1) or the largest (2), of what stretches have found, in their order, and of what is there already.
extern "C" __global__ void total(const double* parts, int stretches, long long length, int kind, double* out) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= length) return;
    double found = out[i];
    for (int s = 0; s < stretches; ++s) {
        double part = parts[s * length + i];
        found = kind == 0 ? found + part : kind == 1 ? (part < found ? part : found) : (part > found ? part : found);
    }
    out[i] = found;
}

// Multiplies every sample with the root of its weight: a weight on both sides of Z Zᵀ.
extern "C" __global__ void weigh(long long length, int size, const double* weights, real* x) {
    long long t = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (t < length) x[t] *= (real)sqrt(weights[t / size]);
}

// From [outer][rows][columns] to [outer][columns][rows].
extern "C" __global__ void turn(const real* from, long long length, int rows, int columns, real* to) {
    long long t = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= length) return;
    int row = t % rows;
    long long rest = t / rows;
    int column = rest % columns;
    to[t] = from[(rest / columns * rows + row) * columns + column];
}
