//! The micro suite: one workload for each path through the kernel.
//!
//! The programs are in the agent (`crates/guest/agent/src/bin/agent/workloads/`) under the same
//! names; a test compares them. Another test checks the functions in `exercises` with kprobes in a
//! real kernel.

use std::sync::{Arc, LazyLock};

use crate::suites::{self, Functions, Texts};
use crate::{Suite, Workload};

const fn workload(
    name: &'static str,
    stresses: &'static str,
    operation: &'static str,
    operations: u64,
    exercises: Functions,
) -> Workload {
    suites::workload(
        name,
        Texts {
            stresses,
            operation,
            source: "",
        },
        operations,
        exercises,
    )
}

/// Single system calls and faults.
pub static MICRO: LazyLock<Arc<Suite>> = LazyLock::new(|| {
    Suite::new(
        "micro",
        "what single paths of the kernel cost: system calls, processes, memory, files, sockets, locks",
        [
            workload(
                "getppid",
                "system call entry and exit",
                "one getppid(2)",
                20_000,
                &[&["__x64_sys_getppid"]],
            ),
            workload(
                "signal",
                "installing and delivering a signal",
                "sigaction(2), kill(2) to itself, the handler, the return from it",
                1_500,
                &[
                    &["do_sigaction"],
                    &["get_signal"],
                    &["__x64_sys_rt_sigreturn"],
                ],
            ),
            workload(
                "switch-yield",
                "switching between two processes that both can run",
                "sched_yield(2) to the other process and back",
                1_200,
                &[&["__x64_sys_sched_yield"], &["yield_task_fair"]],
            ),
            workload(
                "pipe-pingpong",
                "pipes and waking another process",
                "one byte there and back between two processes",
                500,
                &[&["pipe_write"], &["pipe_read"]],
            ),
            workload(
                "futex-pingpong",
                "futexes and waking another thread",
                "two threads wake each other once each",
                600,
                &[&["futex_wait"], &["futex_wake"]],
            ),
            workload(
                "unix-pingpong",
                "unix sockets and waking another process",
                "one byte there and back between two processes, stream socket",
                400,
                &[&["unix_stream_sendmsg"], &["unix_stream_recvmsg"]],
            ),
            workload(
                "event-fd",
                "counters for events",
                "one write to and one read from an eventfd",
                4_000,
                &[&["eventfd_write"], &["eventfd_read"]],
            ),
            workload(
                "event-epoll",
                "waiting for many descriptors by epoll",
                "one epoll_wait(2) on 64 eventfds of which 8 are ready",
                3_000,
                &[&["do_epoll_wait"], &["eventfd_poll"]],
            ),
            workload(
                "event-poll",
                "waiting for many descriptors by poll",
                "one poll(2) on 64 eventfds of which 8 are ready",
                800,
                &[&["do_sys_poll"], &["eventfd_poll"]],
            ),
            workload(
                "fork-exit",
                "making and ending a process",
                "fork, exit of the child, wait; neither touches its memory",
                100,
                &[&["kernel_clone"], &["do_exit"], &["kernel_wait4"]],
            ),
            workload(
                "fork-exec",
                "making a process for another program",
                "fork, exec of a program of 129 bytes that exits, wait",
                60,
                &[
                    &["kernel_clone"],
                    &["begin_new_exec", "flush_old_exec"],
                    &["do_exit"],
                ],
            ),
            workload(
                "fork-vfork-exec",
                "the same without a copy of the address space",
                "vfork, exec of a program of 129 bytes that exits, wait",
                150,
                &[
                    &["kernel_clone"],
                    &["begin_new_exec", "flush_old_exec"],
                    &["do_exit"],
                ],
            ),
            workload(
                "thread-create",
                "making and ending a thread",
                "pthread_create and pthread_join of a thread that does nothing",
                800,
                &[&["kernel_clone"], &["do_exit"]],
            ),
            workload(
                "fault-anon",
                "page faults in anonymous memory",
                "the first write to a page",
                2_048,
                &[
                    &["do_anonymous_page", "handle_mm_fault"],
                    &["folio_add_new_anon_rmap", "page_add_new_anon_rmap"],
                ],
            ),
            workload(
                "fault-file-private",
                "page faults that copy a page of a file",
                "the first write to a page of a private mapping of a tmpfs file",
                1_024,
                &[
                    &["shmem_fault"],
                    &["folio_add_new_anon_rmap", "page_add_new_anon_rmap"],
                ],
            ),
            workload(
                "fault-file-shared",
                "page faults that map a page of a file",
                "the first write to a page of a shared mapping of a tmpfs file in memory",
                2_048,
                &[&["shmem_fault"], &["fault_dirty_shared_page"]],
            ),
            workload(
                "fault-cow",
                "page faults that copy a page after a fork",
                "the first write to a page that a child shares",
                1_024,
                &[
                    &["do_wp_page", "wp_page_copy"],
                    &["folio_add_new_anon_rmap", "page_add_new_anon_rmap"],
                ],
            ),
            workload(
                "fault-huge",
                "page faults in huge pages",
                "the first write to a transparent huge page of 2 MiB",
                12,
                &[
                    &["do_huge_pmd_anonymous_page"],
                    &["clear_huge_page", "folio_zero_user"],
                ],
            ),
            workload(
                "mem-mmap",
                "making and removing mappings",
                "mmap(2) of 64 KiB and munmap(2), untouched",
                1_200,
                &[&["do_mmap"], &["__vm_munmap", "__x64_sys_munmap"]],
            ),
            workload(
                "mem-mprotect",
                "changing the protection of memory",
                "mprotect(2) of the middle 64 KiB of 192 KiB to read-only, and back",
                1_000,
                &[&["mprotect_fixup"], &["change_protection"]],
            ),
            workload(
                "mem-brk",
                "moving the end of the heap",
                "brk(2) up by 64 KiB and down again, untouched",
                2_400,
                &[&["__x64_sys_brk"], &["do_brk_flags"]],
            ),
            workload(
                "mem-dontneed",
                "giving back memory",
                "madvise(2) DONTNEED of 4 pages that are there",
                512,
                &[
                    &["do_madvise"],
                    &["zap_page_range", "zap_page_range_single"],
                ],
            ),
            workload(
                "file-read-4k",
                "reading the page cache in small pieces",
                "pread(2) of 4 KiB of a file of 1 MiB on ramfs, one piece after the other",
                3_000,
                &[&["filemap_read"]],
            ),
            workload(
                "file-read-64k",
                "reading the page cache in large pieces",
                "pread(2) of 64 KiB of a file of 1 MiB on ramfs, one piece after the other",
                450,
                &[&["filemap_read"]],
            ),
            workload(
                "file-write-4k",
                "writing the page cache in small pieces",
                "pwrite(2) of 4 KiB over a file of 1 MiB on ramfs, one piece after the other",
                2_600,
                &[&["generic_perform_write"]],
            ),
            workload(
                "file-write-64k",
                "writing the page cache in large pieces",
                "pwrite(2) of 64 KiB over a file of 1 MiB on ramfs, one piece after the other",
                320,
                &[&["generic_perform_write"]],
            ),
            workload(
                "file-open",
                "opening files",
                "open(2) by a path of three names and close(2)",
                1_600,
                &[&["do_sys_openat2", "do_sys_open"], &["do_dentry_open"]],
            ),
            workload(
                "file-stat",
                "looking up paths",
                "stat(2) by a path of three names",
                1_500,
                &[&["vfs_statx", "vfs_fstatat"], &["filename_lookup"]],
            ),
            workload(
                "file-create",
                "making and removing files",
                "open(2) that makes a file on tmpfs, close(2), unlink(2)",
                1_000,
                &[&["shmem_mknod"], &["vfs_unlink"]],
            ),
            workload(
                "file-readdir",
                "reading folders",
                "getdents64(2) over a folder of 64 files on tmpfs, from its beginning to its end",
                260,
                &[&["iterate_dir"], &["dcache_readdir", "offset_readdir"]],
            ),
            workload(
                "tcp-connect",
                "making and ending TCP connections",
                "connect(2) over loopback, accept(2), close(2) of both ends, one by a reset",
                240,
                &[
                    &["tcp_v4_connect"],
                    &["inet_csk_accept"],
                    &["tcp_conn_request"],
                ],
            ),
            workload(
                "tcp-rr",
                "TCP requests and responses",
                "one byte there and back between two processes over loopback",
                220,
                &[&["tcp_sendmsg"], &["tcp_recvmsg"], &["tcp_v4_rcv"]],
            ),
            workload(
                "tcp-stream",
                "TCP throughput",
                "64 KiB over loopback from one socket to another of the same process",
                128,
                &[&["tcp_sendmsg"], &["tcp_recvmsg"], &["tcp_v4_rcv"]],
            ),
            workload(
                "udp-rr",
                "UDP requests and responses",
                "one byte there and back between two processes over loopback",
                280,
                &[&["udp_sendmsg"], &["udp_recvmsg"]],
            ),
            workload(
                "sem-sysv",
                "System V semaphores",
                "semop(2) up and semop(2) down, without waiters",
                3_000,
                &[&["__do_semtimedop", "do_semtimedop"]],
            ),
            workload(
                "mutex-uncontended",
                "POSIX mutexes without waiters",
                "pthread_mutex_lock and pthread_mutex_unlock, without the kernel",
                100_000,
                &[],
            ),
            workload(
                "mutex-contended",
                "POSIX mutexes that another thread waits for",
                "a thread holds the mutex, yields until another waits for it, and hands it over",
                500,
                &[&["futex_wait"], &["futex_wake"]],
            ),
        ],
    )
});
