//! A RayCronJob on its way through admission.
#![no_main]

use fuzz::{mutator, properties};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use shared::validation::Kind;

fuzz_target!(|input: &[u8]| properties::object(Kind::RayCronJob, input));
fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let kind = Some(Kind::RayCronJob);
    mutator::mutate(kind, data, size, max_size, seed)
});
