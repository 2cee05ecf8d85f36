//! Fuzzes dumps with corrupt memory map, page tables or log with `vmcore::fuzzing::image`.
#![no_main]

use std::sync::LazyLock;

use synthetic_dumps::Synthetic;

static IMAGE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let groups = "0x010+40 anon\n 0x080+3 cache 4\n 0x0c0 free 4\n 0x480 huge 5".to_owned();
    let path = std::env::temp_dir().join(format!("vmcore-fuzz-image-{}", std::process::id()));
    let wish = Synthetic { groups, own: 0x100, memory: vec![0..0x50, 0x58..0x4ec], ..Synthetic::default() };
    wish.write(&path).and_then(|_| std::fs::read(&path)).unwrap_or_default()
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let scratch = std::env::temp_dir().join(format!("vmcore-fuzz-{}", std::process::id()));
    vmcore::fuzzing::image(&IMAGE, bytes, &scratch);
});
