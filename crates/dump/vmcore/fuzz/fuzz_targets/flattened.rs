//! Fuzzes flattened files, in place and as a stream, with `vmcore::fuzzing::flattened`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let scratch = std::env::temp_dir().join(format!("vmcore-fuzz-{}", std::process::id()));
    vmcore::fuzzing::flattened(bytes, &scratch);
});
