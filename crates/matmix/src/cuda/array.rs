//! Samples in the memory of a GPU that belongs to somebody else: an array of CuPy, a tensor of PyTorch.

use std::ops::Range;
use std::sync::Arc;

use cudarc::driver::{CudaSlice, sys};

use super::device::{Device, failed};
use super::held::stored;
use super::kernels::launch;
use crate::data::{Buffer, Chunk, DeviceMemory, Element, Residence, Samples, Source};
use crate::error::{Error, NoGpu, Result};

/// Threads of a block in which each warp has a sample.
const THREADS: usize = 256;

/// Samples in memory of a GPU, one after the other in row-major order, as a [`Source`]. Passes on that GPU use them where they are; whoever else asks
/// for some of them gets a copy.
///
/// ```
/// use matmix::Error;
/// use matmix::cuda::DeviceArray;
/// use matmix::data::Element;
///
/// // Memory that no GPU knows of, or no GPU at all: an error that says so.
/// let numbers = [0.0f32; 12];
/// // SAFETY: nothing is read from memory that is not a GPU's.
/// let array = unsafe { DeviceArray::new(numbers.as_ptr() as u64, &[2, 3], 2, Element::F32) };
/// assert!(matches!(array, Err(Error::Device { .. })));
/// ```
#[derive(Debug)]
pub struct DeviceArray {
    device: Arc<Device>,
    address: u64,
    shape: Vec<usize>,
    len: usize,
    element: Element,
    /// The memory, if it is ours.
    _own: Option<CudaSlice<u8>>,
}

impl DeviceArray {
    /// A copy of samples on a device.
    pub(super) fn of(device: &Arc<Device>, samples: &Samples<'_>) -> Result<Self> {
        samples.check_unchanged()?;
        let own = stored(device, samples)?;
        Ok(Self {
            address: device.address(Some(&own.as_view())),
            device: device.clone(),
            shape: samples.shape().to_vec(),
            len: samples.len(),
            element: samples.element(),
            _own: Some(own),
        })
    }

    /// `len` samples of `shape` from `address` on. On which GPU they are is found out.
    ///
    /// # Errors
    /// No GPU, and an address that is not one of the memory of a GPU, or not one of such elements.
    ///
    /// # Safety
    /// The memory holds as many elements, and nobody frees them or writes to them while this, or any samples made of it, is alive. What is written
    /// to them on another stream must have been begun already.
    #[allow(unsafe_code)]
    pub unsafe fn new(address: u64, shape: &[usize], len: usize, element: Element) -> Result<Self> {
        let first = Device::get(0)?;
        first.context.bind_to_thread().map_err(failed("opening it"))?;
        let number = |of| {
            let mut number = 0u32;
            // SAFETY: both attributes are numbers of 32 bits, and an address of no GPU is an error.
            let result = unsafe { sys::cuPointerGetAttribute((&raw mut number).cast(), of, address) };
            result.result().map(|()| number as usize)
        };
        let memory = number(sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
        let ordinal = number(sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
        let (Ok(memory), Ok(ordinal)) = (memory, ordinal) else {
            return Err(wrong(address, "it is not the memory of a GPU"));
        };
        if memory != sys::CUmemorytype::CU_MEMORYTYPE_DEVICE as usize {
            return Err(wrong(address, "it is memory of the host, not of a GPU"));
        }
        if !address.is_multiple_of(element.size() as u64) {
            return Err(wrong(address, "its elements are not aligned"));
        }
        let device = if ordinal == 0 { first } else { Device::get(ordinal)? };
        Ok(Self { device, address, shape: shape.to_vec(), len, element, _own: None })
    }

    /// Bytes of this memory, from `skipped` on, as the elements of a buffer.
    #[allow(unsafe_code)]
    fn fetch(&self, address: u64, count: usize, buffer: &mut Buffer) -> Result<()> {
        let numbers = count * self.shape.iter().product::<usize>();
        let to: &mut [u8] = match self.element {
            Element::U8 => added(&mut buffer.u8, numbers),
            Element::F32 => bytemuck::cast_slice_mut(added(&mut buffer.f32, numbers)),
            Element::F64 => bytemuck::cast_slice_mut(added(&mut buffer.f64, numbers)),
        };
        let stream = &self.device.stream;
        self.device.context.bind_to_thread().map_err(failed("opening it"))?;
        // SAFETY: whoever made the array has said that the memory is there, and the copy has ended before this returns.
        unsafe { cudarc::driver::result::memcpy_dtoh_async(to, address, stream.cu_stream()) }
            .map_err(failed("fetching samples"))?;
        stream.synchronize().map_err(failed("fetching samples"))
    }

    fn sample_bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * self.element.size()
    }
}

fn wrong(address: u64, why: &str) -> Error {
    Error::Device {
        why: NoGpu::Refused,
        problem: format!("the samples at address {address:#x} cannot be used: {why}"),
    }
}

/// Room for so many more elements.
fn added<T: Clone + Default>(to: &mut Vec<T>, count: usize) -> &mut [T] {
    let before = to.len();
    to.resize(before + count, T::default());
    &mut to[before..]
}

impl Source for DeviceArray {
    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn len(&self) -> usize {
        self.len
    }

    fn element(&self) -> Element {
        self.element
    }

    fn read<'a>(&'a self, range: Range<usize>, buffer: &'a mut Buffer) -> Result<Chunk<'a>> {
        buffer.clear();
        self.load(range, buffer)?;
        Ok(buffer.chunk(self.element))
    }

    fn residence(&self) -> Residence {
        Residence::Elsewhere
    }

    fn load(&self, range: Range<usize>, buffer: &mut Buffer) -> Result<()> {
        self.fetch(self.address + (range.start * self.sample_bytes()) as u64, range.len(), buffer)
    }

    /// Gathered on the device: one copy.
    fn pick(&self, places: &[usize], buffer: &mut Buffer) -> Result<()> {
        let (device, count, bytes) = (&*self.device, places.len(), self.sample_bytes());
        let rows: Vec<i64> = places.iter().map(|&n| n as i64).collect();
        let rows = device.upload(&rows)?;
        let mut picked = device.room::<u8>(count * bytes)?;
        let (n, long) = (count as i32, bytes as i64);
        launch!(
            device,
            device.kernels::<f32>()?.pick_rows,
            ((count * 32).div_ceil(THREADS), 1),
            THREADS,
            &self.address,
            &rows,
            &n,
            &long,
            &mut picked,
        );
        self.fetch(device.address(Some(&picked.as_view())), count, buffer)
    }

    fn check(&self) -> Result<()> {
        // Whoever made them may still be at it, on a stream of its own.
        self.device.context.synchronize().map_err(failed("waiting for the samples"))
    }

    fn device_memory(&self) -> Option<DeviceMemory> {
        Some(DeviceMemory { device: self.device.context.ordinal(), address: self.address })
    }
}
