//! The scale suite: what an operation costs when so many tasks do it at the same time, each on a
//! processor of its own, in the style of will-it-scale. Declared with one task;
//! `Workload::with_tasks` gives the others.

use std::sync::{Arc, LazyLock};

use super::{Functions, Texts, workload};
use crate::{Suite, Workload};

const ANON_FAULT: &[&str] = &["do_anonymous_page", "handle_mm_fault"];
const UNMAP: &[&str] = &["__vm_munmap", "__x64_sys_munmap"];
const OPEN: &[&str] = &["do_sys_openat2", "do_sys_open"];

fn scaling(
    name: &'static str,
    stresses: &'static str,
    operation: &'static str,
    operations: u64,
    exercises: Functions,
) -> Workload {
    let texts = Texts {
        stresses,
        operation,
        source: "",
    };
    Workload {
        tasks: Some(1),
        ..workload(name, texts, operations, exercises)
    }
}

/// The same operation by more and more tasks.
pub static SCALE: LazyLock<Arc<Suite>> = LazyLock::new(|| {
    let memory = of_memory_and_processes();
    let sockets_and_names = of_sockets_and_names();
    Suite::new(
        "scale",
        "kernel paths that tasks on many processors enter at the same time, in the style of will-it-scale",
        memory.into_iter().chain(sockets_and_names),
    )
});

fn of_memory_and_processes() -> [Workload; 7] {
    let fault = "the first write to a page of a mapping of its own";
    let map = "mmap(2) of 64 KiB and munmap(2), untouched";
    let wait = "futex(2) FUTEX_WAIT for another value than the word has";
    let fault_of = |name, stresses| scaling(name, stresses, fault, 2_048, &[ANON_FAULT]);
    let map_of = |name, stresses| scaling(name, stresses, map, 1_200, &[&["do_mmap"], UNMAP]);
    let wait_of = |name, stresses| scaling(name, stresses, wait, 6_000, &[&["futex_wait"]]);
    [
        fault_of("fault-thr-1", "page faults of threads in one address space"),
        fault_of("fault-proc-1", "page faults of processes"),
        map_of("mmap-thr-1", "mappings of threads in one address space"),
        map_of("mmap-proc-1", "mappings of processes"),
        wait_of(
            "futex-own-1",
            "futexes of threads, each with a word of its own",
        ),
        wait_of("futex-shared-1", "the same with one word for all threads"),
        scaling(
            "switch-pair-1",
            "switching between two processes on each processor",
            "one byte there and back through two pipes",
            500,
            &[&["pipe_write"], &["pipe_read"]],
        ),
    ]
}

fn of_sockets_and_names() -> [Workload; 6] {
    let open = "open(2) by a path of three names and close(2)";
    let open_of =
        |name, stresses| scaling(name, stresses, open, 1_600, &[OPEN, &["do_dentry_open"]]);
    let create = "open(2) that makes a file on tmpfs, close(2), unlink(2)";
    let unlink_of = |name, stresses| {
        scaling(
            name,
            stresses,
            create,
            1_000,
            &[&["shmem_mknod"], &["vfs_unlink"]],
        )
    };
    let through = "write(2) and read(2) of 512 bytes by the same process";
    [
        scaling(
            "pipe-own-1",
            "pipes of processes, each with one of its own",
            through,
            2_000,
            &[&["pipe_write"], &["pipe_read"]],
        ),
        scaling(
            "unix-own-1",
            "unix stream sockets of processes, each with a pair of its own",
            through,
            1_200,
            &[&["unix_stream_sendmsg"], &["unix_stream_recvmsg"]],
        ),
        open_of(
            "open-own-1",
            "opening files, for each process one of its own",
        ),
        open_of("open-shared-1", "the same with one file for all processes"),
        unlink_of(
            "unlink-own-1",
            "making and removing files, for each process in a folder of its own",
        ),
        unlink_of(
            "unlink-shared-1",
            "the same in one folder for all processes",
        ),
    ]
}
