//! Fuzzes LZO streams with `vmcore::fuzzing::lzo`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| vmcore::fuzzing::lzo(bytes));
