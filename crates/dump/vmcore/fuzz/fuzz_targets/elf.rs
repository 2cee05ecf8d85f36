//! Fuzzes ELF vmcores with `vmcore::fuzzing::elf`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let scratch = std::env::temp_dir().join(format!("vmcore-fuzz-{}", std::process::id()));
    vmcore::fuzzing::elf(bytes, &scratch);
});
