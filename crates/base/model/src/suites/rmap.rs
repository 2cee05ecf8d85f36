//! The rmap suite: the cost of many mappings of the same memory, one small cell of `marvin
//! experiment rmap` each.

use std::sync::{Arc, LazyLock};

use super::{Functions, Texts, workload};
use crate::{Suite, Workload};

/// Functions that remove a page's entry; from 6.8 on, for several pages at a time.
const REMOVE: &[&str] = &["page_remove_rmap", "folio_remove_rmap_ptes"];

const SOURCE: &str = "the question of the thread \"Performance of partial object-based rmap\" (2003): what a process with many \
    mappings, among many processes, has to pay for the reverse mapping. Kept: processes that all map the same memory, \
    sparse mappings, deeply inherited memory. Differs: 4 processes instead of 1,000, and a fixed number of \
    mappings; `marvin experiment rmap` has the grid";

const fn map(name: &'static str, stresses: &'static str, operation: &'static str) -> Workload {
    workload(
        name,
        Texts {
            stresses,
            operation,
            source: SOURCE,
        },
        512,
        &[REMOVE],
    )
}

const fn fork(name: &'static str, stresses: &'static str, exercises: Functions) -> Workload {
    let texts = Texts {
        stresses,
        operation: "fork(2) of a process with 64 such mappings, exit at once, wait4(2)",
        source: SOURCE,
    };
    workload(name, texts, 64, exercises)
}

/// Reverse mappings of shared and private pages.
pub static RMAP: LazyLock<Arc<Suite>> = LazyLock::new(|| {
    Suite::new(
        "rmap",
        "reverse mappings: processes that map and fork what others have mapped as well",
        [
            map(
                "rmap-file-map",
                "mappings of a page each of a file, among 4 processes with 256 of them",
                "munmap(2), mmap(2) and a write to the page",
            ),
            map(
                "rmap-shm-map",
                "the same of shared anonymous memory",
                "munmap(2), mmap(2) and a write to the page",
            ),
            map(
                "rmap-sparse-map",
                "mappings of 2 MiB each of the same shared memory, a page of each in use",
                "munmap(2), mmap(2) and a write to a page, with a page table for it",
            ),
            fork(
                "rmap-file-fork",
                "copying mappings of a file",
                &[&["do_exit"]],
            ),
            fork(
                "rmap-anon-fork",
                "copying private mappings whose pages are inherited",
                &[&["anon_vma_fork"]],
            ),
            fork(
                "rmap-chain-fork",
                "the same where each process was forked from the one before",
                &[&["anon_vma_fork"]],
            ),
        ],
    )
});
