//! Memory that begins where a cache line does: a vector that straddles two lines costs twice.

use std::ops::{Deref, DerefMut};

/// The bytes of a cache line, and of the widest vector.
const LINE: usize = 64;

/// Numbers that begin at a cache line. They cannot grow.
pub(crate) struct Aligned<T> {
    memory: Vec<T>,
    start: usize,
    len: usize,
}

impl<T: Copy> Aligned<T> {
    pub(crate) fn new(value: T, len: usize) -> Self {
        let memory = vec![value; len + LINE / size_of::<T>()];
        let start = memory.as_ptr().align_offset(LINE);
        Self { memory, start, len }
    }
}

impl<T> Deref for Aligned<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        &self.memory[self.start..self.start + self.len]
    }
}

impl<T> DerefMut for Aligned<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.memory[self.start..self.start + self.len]
    }
}
