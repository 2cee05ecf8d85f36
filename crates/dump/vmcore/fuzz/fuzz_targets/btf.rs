//! Fuzzes BTF with `vmcore::fuzzing::btf`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| vmcore::fuzzing::btf(bytes));
