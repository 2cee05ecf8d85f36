//! The rmap suite: what many mappings of the same memory cost, a small fixed cell of `marvin experiment rmap` each.

use super::{Functions, Texts, workload};
use crate::{Suite, Workload};

/// Taking the entry of a page away; of 6.8 and later for several pages at a time.
const REMOVE: &[&str] = &["page_remove_rmap", "folio_remove_rmap_ptes"];

const SOURCE: &str = "the question of the thread \"Performance of partial object-based rmap\" (2003): what a process with many \
    mappings, among many processes, has to pay for the reverse mapping. Kept: processes that all map the same memory, \
    sparse and nonlinear mappings, deeply inherited memory. Differs: 4 processes instead of 1,000, and a fixed number of \
    mappings; `marvin experiment rmap` has the grid";

const fn unmap(name: &'static str, stresses: &'static str) -> Workload {
    let texts = Texts { stresses, operation: "munmap(2)'s part for one mapping with one page in use", source: SOURCE };
    workload(name, texts, 2_048, &[REMOVE])
}

const fn fork(name: &'static str, stresses: &'static str, exercises: Functions) -> Workload {
    let texts = Texts {
        stresses,
        operation: "fork(2) of a process with 64 such mappings, exit at once, wait4(2)",
        source: SOURCE,
    };
    workload(name, texts, 64, exercises)
}

/// The rmap suite.
pub const RMAP: Suite = Suite {
    name: "rmap",
    purpose: "reverse mappings: processes that unmap, fork and lose memory that others have mapped as well",
    workloads: &[
        unmap("rmap-file-unmap", "4 processes unmap the pages of one file, each in a mapping of its own"),
        unmap("rmap-shm-unmap", "4 processes unmap shared anonymous memory, each page in a mapping of its own"),
        unmap("rmap-sparse-unmap", "the same with mappings of 2 MiB: a page table for each page"),
        unmap("rmap-remap-unmap", "the same where remap_file_pages(2) has changed the order"),
        unmap("rmap-anon-unmap", "4 processes unmap the private memory that they were forked with"),
        unmap("rmap-chain-unmap", "the same where each process was forked from the one before"),
        fork("rmap-file-fork", "copying mappings of a file", &[&["do_exit"]]),
        fork("rmap-anon-fork", "copying private mappings, whose pages are shared from then on", &[&["anon_vma_fork"]]),
        workload(
            "rmap-shm-punch",
            Texts {
                stresses: "finding all processes that have a page of shared memory mapped",
                operation: "fallocate(2) takes one page out that 4 processes have in use",
                source: SOURCE,
            },
            256,
            &[&["shmem_fallocate"], REMOVE],
        ),
    ],
};
