//! Fuzzes notes and VMCOREINFO with `vmcore::fuzzing::note`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| vmcore::fuzzing::note(bytes));
