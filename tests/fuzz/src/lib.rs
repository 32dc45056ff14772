//! Fuzz targets of the admission path, and what they share: what must hold for any input, and how JSON is varied.

pub mod mutator;
pub mod properties;
