//! The mm suite: memory management, after AIM9, pft, STREAM, the page allocator microbenchmark and
//! ebizzy.

use std::sync::{Arc, LazyLock};

use super::{Texts, workload};
use crate::{Suite, Workload};

const ANON_FAULT: &[&str] = &["do_anonymous_page", "handle_mm_fault"];
/// Single pages: each operation allocates and frees all but the page that the pipe keeps.
const PAGES: &[&str] = &["__alloc_pages", "__alloc_pages_noprof", "free_unref_page"];
/// Blocks of pages for a large kmalloc; some kernels inline most of these functions.
const BLOCKS: &[&str] = &[
    "__kmalloc_large_node",
    "___kmalloc_large_node",
    "free_large_kmalloc",
    "__alloc_pages",
];

const PFT: &str = "pft 0.12 (MMTests until 2013), faults over processes (-n) and threads (-t). Kept: base pages, each \
    member writes once to each page of its own mapping. Differs: 8 MiB in all instead of a fifth of memory; members \
    take turns on one processor; cost per fault instead of faults/s and faults/cpu/s";

const fn pft(name: &'static str, members: &'static str) -> Workload {
    let texts = Texts {
        stresses: members,
        operation: "the first write to a page",
        source: PFT,
    };
    workload(name, texts, 2_048, &[ANON_FAULT])
}

const STREAM: &str = "vmr-stream of MMTests (STREAM over working sets of 2^17 to 2^31 bytes). Kept: copy, scale, add \
    and triad over three arrays, working set 2^17 to 2^25. Differs: one power in two, no sub-steps, one instance; \
    instructions instead of MB/s. The exact machine has neither caches nor memory bandwidth: all sizes cost the same \
    there, and rows differ only by timer ticks. `marvin profile --model` shows misses";

const fn stream(name: &'static str, stresses: &'static str) -> Workload {
    let texts = Texts {
        stresses,
        operation: "copy, scale, add and triad of 512 doubles, on from where the last one ended",
        source: STREAM,
    };
    workload(name, texts, 3_000, &[])
}

const PIPE_PAGES: &str = "pagealloc-micro (SystemTap module: cycles per page by order and batch). Kept: allocate a \
    batch, then free it. Differs: a proxy from user space: each write(2) of one byte to a pipe in packet mode \
    allocates a page, each read(2) frees it; the system calls are in the cost, and the pipe keeps a page or two of \
    each batch. Order 1 has no proxy: the kernel takes it from slabs";
const PIPE_RINGS: &str = "pagealloc-micro (SystemTap module: cycles per page by order and batch). Kept: allocate a \
    batch, then free it. Differs: a proxy from user space: F_SETPIPE_SZ to 256 (order 2), 512 (order 3) or 1024 \
    (order 4) slots has the kernel allocate and clear a block of that order for the ring, F_SETPIPE_SZ to one slot \
    frees it; clearing and system calls are in the cost";

const fn pages(name: &'static str, operations: u64) -> Workload {
    let texts = Texts {
        stresses: "allocating and freeing single pages",
        operation: "one page allocated and freed, a batch at a time",
        source: PIPE_PAGES,
    };
    workload(
        name,
        texts,
        operations,
        &[&["pipe_write"], &["pipe_read"], PAGES],
    )
}

const fn blocks(name: &'static str, operations: u64) -> Workload {
    let texts = Texts {
        stresses: "allocating and freeing blocks of pages",
        operation: "one block of 2^order pages allocated, cleared and freed, a batch at a time",
        source: PIPE_RINGS,
    };
    workload(name, texts, operations, &[&["pipe_resize_ring"], BLOCKS])
}

/// Memory management under the loads of published benchmarks.
pub static MM: LazyLock<Arc<Suite>> = LazyLock::new(|| {
    Suite::new(
        "mm",
        "memory management, after AIM9, pft, STREAM, the page allocator microbenchmark and ebizzy",
        [
            workload(
                "aim9-page",
                Texts {
                    stresses: "growing the heap and touching it",
                    operation: "brk(2) up by a page and 32 writes to it; down by 16 pages after each 16",
                    source: "AIM9 page_test. Kept: steps, sizes and order. Differs: brk(2) itself instead of sbrk(3); a fixed \
                 number of operations instead of 15 s",
                },
                2_048,
                &[&["__x64_sys_brk"], ANON_FAULT],
            ),
            workload(
                "aim9-brk",
                Texts {
                    stresses: "growing and shrinking the heap",
                    operation: "brk(2) up by a page, untouched; down by 16 pages after each 16",
                    source: "AIM9 brk_test. Kept: steps, sizes and order. Differs: brk(2) itself instead of sbrk(3); a fixed \
                 number of operations instead of 15 s",
                },
                4_096,
                &[&["__x64_sys_brk"], &["do_brk_flags"]],
            ),
            workload(
                "aim9-exec",
                Texts {
                    stresses: "making a process for another program, from one with memory",
                    operation: "fork, exec of a program of 129 bytes that exits, wait; the parent has 1 MiB of heap",
                    source: "AIM9 exec_test. Kept: fork, exec of a program that does nothing, wait. Differs: that program needs no \
                 library; the loop is in a page of its own and touches no memory",
                },
                60,
                &[&["kernel_clone"], &["begin_new_exec", "flush_old_exec"], &["do_exit"]],
            ),
            workload(
                "aim9-fork",
                Texts {
                    stresses: "making and ending a process that has memory",
                    operation: "fork, exit of the child, wait; the parent has 1 MiB of heap",
                    source: "AIM9 fork_test. Kept: fork, exit, wait. Differs: the child ends without running exit handlers; the \
                 loop is in a page of its own and touches no memory",
                },
                80,
                &[&["kernel_clone"], &["do_exit"], &["kernel_wait4"]],
            ),
            pft("pft-proc-1", "page faults of one process"),
            pft("pft-proc-4", "page faults of four processes at a time").on_all_processors(),
            pft("pft-thr-4", "page faults of four threads in one address space").on_all_processors(),
            stream("stream-2-17", "user code over 128 KiB"),
            stream("stream-2-19", "user code over 512 KiB"),
            stream("stream-2-21", "user code over 2 MiB"),
            stream("stream-2-23", "user code over 8 MiB"),
            stream("stream-2-25", "user code over 32 MiB"),
            pages("pagealloc-0-16", 2_048),
            pages("pagealloc-0-64", 2_048),
            pages("pagealloc-0-256", 2_048),
            blocks("pagealloc-2-1", 512),
            blocks("pagealloc-2-16", 512),
            blocks("pagealloc-3-1", 256),
            blocks("pagealloc-3-16", 256),
            blocks("pagealloc-4-1", 256),
            blocks("pagealloc-4-16", 256),
            workload(
                "ebizzy",
                Texts {
                    stresses: "allocating, copying and giving back memory from two threads",
                    operation: "mmap(2) of 512 KiB, a copy of one of 10 chunks into it, a binary search, munmap(2)",
                    source: "ebizzy 0.3 -M (always mmap). Kept: 10 chunks of 512 KiB, two threads for each processor, \
                    copy and search of a chunk chosen at random. Differs: a fixed number of operations instead of \
                    30 s, cost instead of records/s",
                },
                24,
                &[&["do_mmap"], &["__vm_munmap", "__x64_sys_munmap"], ANON_FAULT],
            )
            .on_all_processors(),
        ],
    )
});
