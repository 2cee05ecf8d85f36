//! The io suite: files, after tiobench. There is no disk in the guest.

use std::sync::{Arc, LazyLock};

use super::{Texts, workload};
use crate::{Suite, Workload};

const TIOBENCH: &str = "tiobench 0.3.3. Kept: blocks of 4096 bytes, a file for each thread, sequential and random. \
    Differs: the guest has no disk: the files are 8 MiB of page cache (ramfs) instead of twice the memory, and what is \
    written replaces what is there; cost per block instead of MB/s";

const fn read(name: &'static str, stresses: &'static str) -> Workload {
    let texts = Texts {
        stresses,
        operation: "pread(2) of 4096 bytes",
        source: TIOBENCH,
    };
    workload(name, texts, 3_000, &[&["filemap_read"]])
}

const fn write(name: &'static str, stresses: &'static str) -> Workload {
    let texts = Texts {
        stresses,
        operation: "pwrite(2) of 4096 bytes",
        source: TIOBENCH,
    };
    workload(name, texts, 2_400, &[&["generic_perform_write"]])
}

/// Files, mostly in the page cache.
pub static IO: LazyLock<Arc<Suite>> = LazyLock::new(|| {
    Suite::new(
        "io",
        "files, after tiobench; they are in memory, as the guest has no disk",
        [
            read("tio-like-seqrd-1", "reading the page cache in order"),
            read(
                "tio-like-seqrd-4",
                "reading the page cache in order, four threads",
            )
            .on_all_processors(),
            read("tio-like-rndrd-1", "reading the page cache here and there"),
            read(
                "tio-like-rndrd-4",
                "reading the page cache here and there, four threads",
            )
            .on_all_processors(),
            write("tio-like-seqwr-1", "writing the page cache in order"),
            write(
                "tio-like-seqwr-4",
                "writing the page cache in order, four threads",
            )
            .on_all_processors(),
            write("tio-like-rndwr-1", "writing the page cache here and there"),
            write(
                "tio-like-rndwr-4",
                "writing the page cache here and there, four threads",
            )
            .on_all_processors(),
        ],
    )
});
