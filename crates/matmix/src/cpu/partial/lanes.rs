//! Components side by side: a unit of them fills 64 bytes, which is one vector, two or four, whatever the machine has.
//!
//! All that a kernel needs of a unit lies together, so that the number of its vectors is known when the kernel is compiled.

use std::marker::PhantomData;

use bytemuck::cast_slice;
use pulp::Simd;

use crate::simd::Real;

/// One number for each component of a unit.
pub(super) type Lanes<T, S, const V: usize> = [<T as Real>::Vector<S>; V];

/// A unit of components on one instruction set.
pub(super) struct Unit<T, S>(PhantomData<(T, S)>);

impl<T: Real, S: Simd> Unit<T, S> {
    /// A constant, so that a kernel is compiled for this number only.
    pub(super) const VECTORS: usize = T::LANES * size_of::<T>() / size_of::<T::Vector<S>>();
}

/// Calls `this.run::<_, VECTORS>(simd)` with the number of vectors of a unit.
macro_rules! by_vectors {
    ($type:ty, $set:ty, $this:ident . $run:ident ($simd:ident)) => {
        match Unit::<$type, $set>::VECTORS {
            1 => $this.$run::<$set, 1>($simd),
            2 => $this.$run::<$set, 2>($simd),
            4 => $this.$run::<$set, 4>($simd),
            _ => unreachable!("vectors of 16, 32 or 64 bytes"),
        }
    };
}

pub(super) use by_vectors;

/// Where the number of component `k` in row `row` of `rows` is.
#[inline(always)]
pub(super) fn place<T: Real>(k: usize, row: usize, rows: usize) -> usize {
    (k / T::LANES * rows + row) * T::LANES + k % T::LANES
}

/// The rows of a unit, of which each has so many.
#[inline(always)]
pub(super) fn rows_of<T: Real>(x: &[T], unit: usize, rows: usize) -> &[T] {
    &x[unit * rows * T::LANES..(unit + 1) * rows * T::LANES]
}

#[inline(always)]
pub(super) fn rows_of_mut<T: Real>(x: &mut [T], unit: usize, rows: usize) -> &mut [T] {
    &mut x[unit * rows * T::LANES..(unit + 1) * rows * T::LANES]
}

/// Rows as vectors.
#[inline(always)]
pub(super) fn lanes<T: Real, S: Simd, const V: usize>(x: &[T]) -> &[Lanes<T, S, V>] {
    T::vectors::<S>(x).as_chunks::<V>().0
}

#[inline(always)]
pub(super) fn lanes_mut<T: Real, S: Simd, const V: usize>(x: &mut [T]) -> &mut [Lanes<T, S, V>] {
    T::vectors_mut::<S>(x).as_chunks_mut::<V>().0
}

#[inline(always)]
pub(super) fn splat<T: Real, S: Simd, const V: usize>(simd: S, x: f64) -> Lanes<T, S, V> {
    [T::splat(simd, T::from_f64(x)); V]
}

/// a·b + c.
#[inline(always)]
pub(super) fn mul_add<T: Real, S: Simd, const V: usize>(
    simd: S,
    a: Lanes<T, S, V>,
    b: Lanes<T, S, V>,
    mut c: Lanes<T, S, V>,
) -> Lanes<T, S, V> {
    for v in 0..V {
        c[v] = T::mul_add(simd, a[v], b[v], c[v]);
    }
    c
}

/// a·b.
#[inline(always)]
pub(super) fn mul<T: Real, S: Simd, const V: usize>(
    simd: S,
    a: Lanes<T, S, V>,
    b: Lanes<T, S, V>,
) -> Lanes<T, S, V> {
    mul_add::<T, S, V>(simd, a, b, splat::<T, S, V>(simd, 0.0))
}

/// The numbers of a row, one per component.
#[inline(always)]
pub(super) fn numbers<T: Real, S: Simd, const V: usize>(x: &Lanes<T, S, V>) -> &[T] {
    cast_slice(&x[..])
}
