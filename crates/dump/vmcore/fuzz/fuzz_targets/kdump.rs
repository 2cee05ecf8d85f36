//! Fuzzes kdump-compressed files with `vmcore::fuzzing::kdump`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let scratch = std::env::temp_dir().join(format!("vmcore-fuzz-{}", std::process::id()));
    vmcore::fuzzing::kdump(bytes, &scratch);
});
