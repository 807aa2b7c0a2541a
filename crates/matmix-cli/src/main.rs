//! The command line program `matmix`.
fn main() {}
