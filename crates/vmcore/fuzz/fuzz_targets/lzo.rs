//! Fuzzes LZO streams. What is done with the bytes is `vmcore::fuzzing::lzo`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| vmcore::fuzzing::lzo(bytes));
