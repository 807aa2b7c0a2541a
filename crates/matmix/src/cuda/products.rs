//! Matrix products on a device, by cuBLAS.

use cudarc::cublas::sys::cublasOperation_t::{CUBLAS_OP_N, CUBLAS_OP_T};
use cudarc::cublas::{CudaBlas, Gemm, GemmConfig, StridedBatchedConfig};
use cudarc::driver::{CudaSlice, CudaView};

use super::device::Device;
use super::kernels::Number;
use crate::error::{Error, NoGpu, Result};

impl Device {
    /// out (m × n) = left (m × k) · right (k × n), or · rightᵀ (n × k), plus `keep` × out; all row by row.
    #[allow(unsafe_code)]
    pub(super) fn product<T: Number>(
        &self,
        (m, n, k): (usize, usize, usize),
        left: &CudaView<'_, T>,
        right: (&CudaSlice<T>, bool),
        keep: f64,
        out: &mut CudaSlice<T>,
    ) -> Result<()>
    where
        CudaBlas: Gemm<T>,
    {
        let (right, transposed) = right;
        let needed = [(left.len(), m * k), (right.len(), k * n), (out.len(), m * n)];
        assert!(needed.iter().all(|(there, needed)| there >= needed), "matrices as large as said");
        // What is row by row here is column by column there: outᵀ = rightᵀ · leftᵀ.
        let gemm = GemmConfig {
            transa: if transposed { CUBLAS_OP_T } else { CUBLAS_OP_N },
            transb: CUBLAS_OP_N,
            m: n as i32,
            n: m as i32,
            k: k as i32,
            alpha: T::from_f64(1.0),
            lda: if transposed { k } else { n } as i32,
            ldb: k as i32,
            beta: T::from_f64(keep),
            ldc: n as i32,
        };
        // SAFETY: the matrices have the sizes that were asserted above.
        unsafe { self.blas.gemm(gemm, right, left, out) }.map_err(|error| multiplying(&error))
    }

    /// out (n × n) += leftᵀ · left of a matrix with so many rows of n numbers.
    #[allow(unsafe_code)]
    pub(super) fn add_gram(
        &self,
        rows: usize,
        n: usize,
        left: &CudaView<'_, f64>,
        out: &mut CudaSlice<f64>,
    ) -> Result<()> {
        assert!(left.len() >= rows * n && out.len() >= n * n, "matrices as large as said");
        let gemm = GemmConfig {
            transa: CUBLAS_OP_N,
            transb: CUBLAS_OP_T,
            m: n as i32,
            n: n as i32,
            k: rows as i32,
            alpha: 1.0,
            lda: n as i32,
            ldb: n as i32,
            beta: 1.0,
            ldc: n as i32,
        };
        // SAFETY: the matrices have the sizes that were asserted above.
        unsafe { self.blas.gemm(gemm, left, left, out) }.map_err(|error| multiplying(&error))
    }

    /// out[s] (r × l) = right[s]ᵀ (r × segment) · left[s] (segment × l) for every segment s.
    #[allow(unsafe_code)]
    pub(super) fn segment_products<T: Number>(
        &self,
        segments: usize,
        (segment, l, r): (usize, usize, usize),
        left: &CudaSlice<T>,
        right: &CudaSlice<T>,
        out: &mut CudaSlice<T>,
    ) -> Result<()>
    where
        CudaBlas: Gemm<T>,
    {
        let needed = [(left.len(), segment * l), (right.len(), segment * r), (out.len(), r * l)];
        assert!(needed.iter().all(|(there, one)| *there >= segments * one), "segments as large as said");
        let gemm = GemmConfig {
            transa: CUBLAS_OP_N,
            transb: CUBLAS_OP_T,
            m: l as i32,
            n: r as i32,
            k: segment as i32,
            alpha: T::from_f64(1.0),
            lda: l as i32,
            ldb: r as i32,
            beta: T::from_f64(0.0),
            ldc: l as i32,
        };
        let all = StridedBatchedConfig {
            gemm,
            batch_size: segments as i32,
            stride_a: (segment * l) as i64,
            stride_b: (segment * r) as i64,
            stride_c: (r * l) as i64,
        };
        // SAFETY: the matrices have the sizes that were asserted above.
        unsafe { self.blas.gemm_strided_batched(all, left, right, out) }.map_err(|error| multiplying(&error))
    }
}

fn multiplying(error: &dyn std::fmt::Debug) -> Error {
    Error::Device { why: NoGpu::Failed, problem: format!("the GPU failed (a matrix product): {error:?}") }
}
