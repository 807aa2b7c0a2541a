//! linalg
