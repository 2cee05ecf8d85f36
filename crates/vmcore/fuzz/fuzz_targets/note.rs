//! Fuzzes notes and VMCOREINFO. What is done with the bytes is `vmcore::fuzzing::note`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| vmcore::fuzzing::note(bytes));
