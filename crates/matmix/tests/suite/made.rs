//! Small files of every format, made in memory: for the unit tests beside the readers and the tests of the whole.
use std::io::{Cursor, Write};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// An IDX file.
pub(crate) fn idx(element: u8, shape: &[u32], body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, element, shape.len() as u8];
    shape.iter().for_each(|axis| bytes.extend(axis.to_be_bytes()));
    bytes.extend(body);
    bytes
}

/// A gzip file.
pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

/// A `.npy` file in memory.
pub(crate) fn npy_bytes(descr: &str, shape: &str, body: &[u8]) -> Vec<u8> {
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.extend(body);
    bytes
}

/// An archive as np.savez_compressed (or np.savez) makes it.
pub(crate) fn npz(method: CompressionMethod, members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut out = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in members {
        let options = SimpleFileOptions::default().compression_method(method);
        out.start_file(*name, options).unwrap();
        out.write_all(bytes).unwrap();
    }
    out.finish().unwrap().into_inner()
}

/// Writes small version 5 files the way MATLAB does.
pub(crate) struct MatFile {
    pub(crate) big: bool,
    pub(crate) packed: bool,
    pub(crate) bytes: Vec<u8>,
}

impl MatFile {
    pub(crate) fn new(big: bool, packed: bool) -> Self {
        let mut bytes = format!("{:<124}", "MATLAB 5.0 MAT-file, Platform: TEST").into_bytes();
        bytes.extend(if big { *b"\x01\x00MI" } else { *b"\x00\x01IM" });
        Self { big, packed, bytes }
    }

    fn u32(&self, x: u32) -> [u8; 4] {
        if self.big { x.to_be_bytes() } else { x.to_le_bytes() }
    }

    fn element(&self, kind: u32, body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        if !body.is_empty() && body.len() <= 4 {
            out.extend(self.u32((body.len() as u32) << 16 | kind));
            out.extend(body);
            out.resize(8, 0);
        } else {
            out.extend(self.u32(kind));
            out.extend(self.u32(body.len() as u32));
            out.extend(body);
            out.resize(out.len().next_multiple_of(8), 0);
        }
        out
    }

    /// A variable of this class whose numbers are stored as `kind`.
    pub(crate) fn variable(mut self, name: &str, class: u32, dims: &[u32], kind: u32, body: &[u8]) -> Self {
        let flags = [self.u32(class), self.u32(0)].concat();
        let dims: Vec<u8> = dims.iter().flat_map(|&d| self.u32(d)).collect();
        let content = [
            self.element(6, &flags),
            self.element(5, &dims),
            self.element(1, name.as_bytes()),
            self.element(kind, body),
        ]
        .concat();
        let matrix = self.element(14, &content);
        if self.packed {
            let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
            zlib.write_all(&matrix).unwrap();
            let body = zlib.finish().unwrap();
            self.bytes.extend(self.u32(15));
            self.bytes.extend(self.u32(body.len() as u32));
            self.bytes.extend(body);
        } else {
            self.bytes.extend(matrix);
        }
        self
    }
}
