//! A manifest that is checked without a cluster.
#![no_main]

use fuzz::properties;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| properties::check(input));
