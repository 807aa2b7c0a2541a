//! The instruction sets the kernels run on, and the two number types they run in.
//!
//! One source serves all of them: a kernel is generic over `pulp::Simd` and is compiled once per
//! instruction set; which one runs is decided when a pass starts. Passes ([`cpu`](crate::cpu)) and linear algebra
//! ([`linalg`](crate::linalg)) are both made of these.
//!
//! | file | what |
//! |---|---|
//! | [`tiles`] | the sizes of a tile as constants |
//! | [`transpose`] | small square transposes in registers |
//! | [`aligned`] | memory that begins where a cache line does |

mod aligned;
pub(crate) mod tiles;
mod transpose;

use std::ops::{Add, AddAssign, Mul, MulAssign, Sub};

use pulp::{Simd, WithSimd};

pub(crate) use aligned::Aligned;
pub(crate) use transpose::MAX_TILE;
use transpose::Transpose;

/// An instruction set a kernel can run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Instructions {
    /// 512-bit vectors (x86-64).
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// 256-bit vectors with fused multiply-add (x86-64).
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 128-bit vectors (AArch64).
    #[cfg(target_arch = "aarch64")]
    Neon,
    /// Plain code for every machine, in double precision.
    Portable,
}

impl Instructions {
    /// The instruction sets of this machine, best first.
    pub(crate) fn available() -> Vec<Self> {
        let mut sets = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if pulp::x86::V4::try_new().is_some() {
                sets.push(Self::Avx512);
            }
            if pulp::x86::V3::try_new().is_some() {
                sets.push(Self::Avx2);
            }
        }
        #[cfg(target_arch = "aarch64")]
        if pulp::aarch64::Neon::try_new().is_some() {
            sets.push(Self::Neon);
        }
        sets.push(Self::Portable);
        sets
    }

    /// The best instruction set of this machine.
    pub(crate) fn best() -> Self {
        Self::available()[0]
    }

    /// Runs an operation on numbers of type `T` compiled for this instruction set. The sets other than the portable one
    /// come from [`available`](Self::available), so that the machine has them.
    pub(crate) fn run<T: Real, Op: WithSimd>(self, op: Op) -> Op::Output {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => match pulp::x86::V4::try_new() {
                Some(simd) => Simd::vectorize(simd, op),
                None => T::portably(op),
            },
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => match pulp::x86::V3::try_new() {
                Some(simd) => Simd::vectorize(simd, op),
                None => T::portably(op),
            },
            #[cfg(target_arch = "aarch64")]
            Self::Neon => match pulp::aarch64::Neon::try_new() {
                Some(simd) => Simd::vectorize(simd, op),
                None => T::portably(op),
            },
            Self::Portable => T::portably(op),
        }
    }
}

impl std::fmt::Display for Instructions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => "AVX-512",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => "AVX2",
            #[cfg(target_arch = "aarch64")]
            Self::Neon => "NEON",
            Self::Portable => "portable",
        })
    }
}

/// Whether the machine has registers for the larger tiles: 32 of them.
#[inline(always)]
pub(crate) fn has_many_registers<S: Simd>() -> bool {
    S::REGISTER_COUNT >= 32
}

/// A number type the kernels run in: `f32` or `f64`.
pub(crate) trait Real:
    Transpose
    + bytemuck::Pod
    + PartialEq
    + Send
    + Sync
    + Add<Output = Self>
    + Mul<Output = Self>
    + Sub<Output = Self>
    + AddAssign
    + MulAssign
{
    /// As many as fit one 64-byte vector; blocks are a multiple of it on every instruction set, so that
    /// the sums do not depend on the width of the machine's vectors.
    const LANES: usize;

    /// The distance from 1 to the next number.
    const EPSILON: f64;

    /// A vector of these on one instruction set.
    type Vector<S: Simd>: bytemuck::Pod;

    /// Runs an operation without vector instructions. Only double precision is compiled so.
    fn portably<Op: WithSimd>(op: Op) -> Op::Output;

    fn from_f64(x: f64) -> Self;
    fn to_f64(self) -> f64;
    fn is_nan(self) -> bool;
    fn splat<S: Simd>(simd: S, x: Self) -> Self::Vector<S>;
    /// a·b + c, fused where the machine can.
    fn mul_add<S: Simd>(
        simd: S,
        a: Self::Vector<S>,
        b: Self::Vector<S>,
        c: Self::Vector<S>,
    ) -> Self::Vector<S>;
    /// 1/√a.
    fn inverse_root<S: Simd>(simd: S, a: Self::Vector<S>) -> Self::Vector<S>;
    /// The sum of the lanes.
    fn sum<S: Simd>(simd: S, a: Self::Vector<S>) -> Self;
    fn vectors<S: Simd>(x: &[Self]) -> &[Self::Vector<S>];
    fn vectors_mut<S: Simd>(x: &mut [Self]) -> &mut [Self::Vector<S>];
}

macro_rules! portably {
    (yes, $op:ident) => {
        pulp::Scalar128b.vectorize($op)
    };
    (no, $op:ident) => {{
        drop($op);
        unreachable!("without vectors everything is done in double precision")
    }};
}

macro_rules! real {
    ($type:ty, $lanes:literal, $portably:tt, $vector:ident, $splat:ident, $mul_add:ident, $div:ident, $sqrt:ident, $sum:ident, $simd:ident, $simd_mut:ident) => {
        impl Real for $type {
            const LANES: usize = $lanes;
            const EPSILON: f64 = <$type>::EPSILON as f64;
            type Vector<S: Simd> = S::$vector;

            fn portably<Op: WithSimd>(op: Op) -> Op::Output {
                portably!($portably, op)
            }
            #[inline(always)]
            fn from_f64(x: f64) -> Self {
                x as $type
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                <$type>::is_nan(self)
            }
            #[inline(always)]
            fn splat<S: Simd>(simd: S, x: Self) -> S::$vector {
                simd.$splat(x)
            }
            #[inline(always)]
            fn mul_add<S: Simd>(simd: S, a: S::$vector, b: S::$vector, c: S::$vector) -> S::$vector {
                simd.$mul_add(a, b, c)
            }
            #[inline(always)]
            fn inverse_root<S: Simd>(simd: S, a: S::$vector) -> S::$vector {
                simd.$div(simd.$splat(1.0), simd.$sqrt(a))
            }
            #[inline(always)]
            fn sum<S: Simd>(simd: S, a: S::$vector) -> Self {
                simd.$sum(a)
            }
            #[inline(always)]
            fn vectors<S: Simd>(x: &[Self]) -> &[S::$vector] {
                S::$simd(x).0
            }
            #[inline(always)]
            fn vectors_mut<S: Simd>(x: &mut [Self]) -> &mut [S::$vector] {
                S::$simd_mut(x).0
            }
        }
    };
}

real!(
    f32,
    16,
    no,
    f32s,
    splat_f32s,
    mul_add_e_f32s,
    div_f32s,
    sqrt_f32s,
    reduce_sum_f32s,
    as_simd_f32s,
    as_mut_simd_f32s
);
real!(
    f64,
    8,
    yes,
    f64s,
    splat_f64s,
    mul_add_e_f64s,
    div_f64s,
    sqrt_f64s,
    reduce_sum_f64s,
    as_simd_f64s,
    as_mut_simd_f64s
);
