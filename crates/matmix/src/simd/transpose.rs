//! Small square transposes: how the elements of several samples come into the lanes of a vector.
//!
//! Packing reads samples, whose elements are contiguous, and writes rows in which the same element of all samples is: a sample
//! per lane. One number at a time that costs as much as the contraction of a component; a tile in registers costs a tenth of it.

use std::any::TypeId;
use std::ops::{Add, Mul};

use pulp::Simd;

/// Elements of a row of the largest tile.
pub(crate) const MAX_TILE: usize = 8;

/// A number type with a tile that is transposed in registers where the machine can.
pub(crate) trait Transpose: Copy {
    /// Rows and columns of a tile: a 32-byte vector of these.
    const TILE: usize;

    /// Writes `values[r][first + c]` to `out[rows[c] · stride + r]` and adds its square to `squares[r]`.
    fn transpose<S: Simd, const N: usize>(
        tile: (&[[Self; N]; MAX_TILE], usize),
        out: &mut [Self],
        stride: usize,
        rows: &[u32],
        squares: &mut [Self; MAX_TILE],
    );
}

/// The AVX instructions, if the kernel that is running was compiled for them.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn avx<S: Simd>() -> Option<pulp::x86::V3> {
    let running = TypeId::of::<S>();
    if running == TypeId::of::<pulp::x86::V3>() || running == TypeId::of::<pulp::x86::V4>() {
        pulp::x86::V3::try_new()
    } else {
        None
    }
}

/// So many numbers of a row. Those who ask do so in plain loops: `array::from_fn` may be compiled apart, without the wide instructions.
#[inline(always)]
fn row<T: Copy + Default, const C: usize>(values: &[T], first: usize) -> [T; C] {
    let mut row = [T::default(); C];
    row.copy_from_slice(&values[first..first + C]);
    row
}

#[inline(always)]
fn store<T: Copy + Add<Output = T> + Mul<Output = T>>(
    row: &[T],
    out: &mut [T],
    at: usize,
    squares: &mut [T; MAX_TILE],
) {
    out[at..at + row.len()].copy_from_slice(row);
    for (square, &x) in squares.iter_mut().zip(row) {
        *square = *square + x * x;
    }
}

impl Transpose for f32 {
    const TILE: usize = 8;

    #[inline(always)]
    fn transpose<S: Simd, const N: usize>(
        (values, first): (&[[f32; N]; MAX_TILE], usize),
        out: &mut [f32],
        stride: usize,
        rows: &[u32],
        squares: &mut [f32; MAX_TILE],
    ) {
        let at = |c: usize| rows[c] as usize * stride;
        #[cfg(target_arch = "x86_64")]
        if let Some(simd) = avx::<S>() {
            use std::arch::x86_64::__m256;
            let mut a: [__m256; 8] = bytemuck::Zeroable::zeroed();
            for r in 0..8 {
                a[r] = bytemuck::cast(row::<_, 8>(&values[r], first));
            }
            // Pairs, then quadruples within the halves of a vector, then the halves.
            let low = |x, y| simd.avx._mm256_unpacklo_ps(x, y);
            let high = |x, y| simd.avx._mm256_unpackhi_ps(x, y);
            let b = [
                low(a[0], a[1]),
                high(a[0], a[1]),
                low(a[2], a[3]),
                high(a[2], a[3]),
                low(a[4], a[5]),
                high(a[4], a[5]),
                low(a[6], a[7]),
                high(a[6], a[7]),
            ];
            let first = |x, y| simd.avx._mm256_shuffle_ps::<0b01_00_01_00>(x, y);
            let second = |x, y| simd.avx._mm256_shuffle_ps::<0b11_10_11_10>(x, y);
            let c = [
                first(b[0], b[2]),
                second(b[0], b[2]),
                first(b[1], b[3]),
                second(b[1], b[3]),
                first(b[4], b[6]),
                second(b[4], b[6]),
                first(b[5], b[7]),
                second(b[5], b[7]),
            ];
            let mut columns = [[0.0; 8]; 8];
            for i in 0..4 {
                columns[i] = bytemuck::cast(simd.avx._mm256_permute2f128_ps::<0x20>(c[i], c[i + 4]));
                columns[i + 4] = bytemuck::cast(simd.avx._mm256_permute2f128_ps::<0x31>(c[i], c[i + 4]));
            }
            for (i, column) in columns.iter().enumerate() {
                store(column, out, at(i), squares);
            }
            return;
        }
        for c in 0..Self::TILE {
            let mut column = [0.0; Self::TILE];
            for r in 0..Self::TILE {
                column[r] = values[r][first + c];
            }
            store(&column, out, at(c), squares);
        }
    }
}

impl Transpose for f64 {
    const TILE: usize = 4;

    #[inline(always)]
    fn transpose<S: Simd, const N: usize>(
        (values, first): (&[[f64; N]; MAX_TILE], usize),
        out: &mut [f64],
        stride: usize,
        rows: &[u32],
        squares: &mut [f64; MAX_TILE],
    ) {
        let at = |c: usize| rows[c] as usize * stride;
        #[cfg(target_arch = "x86_64")]
        if let Some(simd) = avx::<S>() {
            use std::arch::x86_64::__m256d;
            let mut a: [__m256d; 4] = bytemuck::Zeroable::zeroed();
            for r in 0..4 {
                a[r] = bytemuck::cast(row::<_, 4>(&values[r], first));
            }
            let b = [
                simd.avx._mm256_unpacklo_pd(a[0], a[1]),
                simd.avx._mm256_unpackhi_pd(a[0], a[1]),
                simd.avx._mm256_unpacklo_pd(a[2], a[3]),
                simd.avx._mm256_unpackhi_pd(a[2], a[3]),
            ];
            let mut columns = [[0.0; 4]; 4];
            for i in 0..2 {
                columns[i] = bytemuck::cast(simd.avx._mm256_permute2f128_pd::<0x20>(b[i], b[i + 2]));
                columns[i + 2] = bytemuck::cast(simd.avx._mm256_permute2f128_pd::<0x31>(b[i], b[i + 2]));
            }
            for (i, column) in columns.iter().enumerate() {
                store(column, out, at(i), squares);
            }
            return;
        }
        for c in 0..Self::TILE {
            let mut column = [0.0; Self::TILE];
            for r in 0..Self::TILE {
                column[r] = values[r][first + c];
            }
            store(&column, out, at(c), squares);
        }
    }
}
