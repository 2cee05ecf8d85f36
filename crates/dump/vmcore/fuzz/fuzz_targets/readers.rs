//! A target of `tests/fuzz`, by its name in MARVIN_TARGET.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use fuzz::{Target, targets};

static TARGET: LazyLock<(Target, PathBuf)> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("marvin-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a scratch directory");
    let name = std::env::var("MARVIN_TARGET").expect("MARVIN_TARGET names a target");
    let found = targets(&folder).expect("seeds").into_iter().find(|target| target.name == name);
    (found.expect("a target of tests/fuzz/src/targets.rs"), folder.join("scratch"))
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| TARGET.0.run(bytes, &TARGET.1));
