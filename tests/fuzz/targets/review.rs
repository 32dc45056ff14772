//! The body of an admission request.
#![no_main]

use fuzz::{mutator, properties};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

fuzz_target!(|input: &[u8]| properties::review(input));
fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    // Which kind an object is of stands in the request.
    mutator::mutate(None, data, size, max_size, seed)
});
