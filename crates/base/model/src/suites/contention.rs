//! The contention suite: what processors share when they do the same at the same time. Its unit is
//! lines of memory that move between processors, so it needs the exact machine with several of
//! them.
//!
//! A margin is three times the standard deviation over four to six seeds of Debian's 6.12 (of two
//! seeds for the rows of 2026-11-29), at least 2 %; `crates/lab/lab/tests/vm/contention.rs` measures
//! it again. Those of file systems and of share-map-file are of five seeds; so are those of
//! share-udp and share-exec-proc, of two builds of 6.18, where one seed said better wrongly. Of ten
//! builds of 6.18 that one commit parts from another, five seeds each, are share-poll (one seed of
//! fifty moves half as many lines more), share-condvar (two ways of waking, 10 % apart),
//! share-ext4-create; of Debian's 6.12 and two others share-connect and share-map-private. Where nothing is shared,
//! a handful of transfers is twice as many as another handful: there it is 90 %.

use std::ops::RangeInclusive;
use std::sync::{Arc, LazyLock};

use super::spread::Floor;
use super::{Functions, Texts, workload};
use crate::{Metric, Steadiness, Suite, Workload};

/// Iterations: transfers repeat themselves more than time does.
const ITERATIONS: u32 = 8;

const FAULT: &[&str] = &["handle_mm_fault"];
const OPEN: &[&str] = &["do_sys_openat2", "do_sys_open"];
const CREATE: &[&str] = &["shmem_mknod"];
const UNLINK: &[&str] = &["vfs_unlink"];
const READ: &[&str] = &["vfs_read"];
const PIPE: Functions = &[&["pipe_write"], &["pipe_read"]];

/// Workloads whose transfers depend on what scheduling costs by more than their margin: turns come
/// at other times, and so do lines. What is shared and by whom is the same. `marvin workloads
/// --sensitivity deb:6.12` measures it.
const CHAOTIC: [&str; 19] = [
    "share-condvar",
    "share-poll",
    "share-connect",
    "share-exec-proc",
    "share-fault-vma",
    "share-fault-file",
    "share-mmap",
    "share-mprotect",
    "share-brk",
    "share-open",
    "share-cache",
    "share-pwrite",
    "share-dup",
    "share-pipe",
    "share-eventfd",
    "share-epoll",
    "share-mutex",
    "share-signal",
    "share-udp",
];

/// A workload of the suite.
struct ContentionWorkload {
    workload: Workload,
    /// How many lines move for one of its operations with two processors.
    transfers: RangeInclusive<f64>,
}

/// Up to this many transfers per operation, a workload shares nothing: the beginning and the end of
/// an iteration, and the kernel's own housekeeping, move some lines too.
const NOTHING: f64 = 0.1;

fn share(
    name: &'static str,
    [stresses, operation]: [&'static str; 2],
    operations: u64,
    exercises: Functions,
    transfers: RangeInclusive<f64>,
    margin_percent: f64,
) -> ContentionWorkload {
    let declared = workload(
        name,
        Texts {
            stresses,
            operation,
            source: "",
        },
        operations,
        exercises,
    );
    let metric = Metric {
        margin_percent,
        ..Metric::COST
    };
    let steadiness = if CHAOTIC.contains(&name) {
        Steadiness::Chaotic
    } else {
        Steadiness::Steady
    };
    ContentionWorkload {
        workload: Workload {
            iterations: ITERATIONS,
            metric,
            steadiness,
            ..declared
        }
        .on_all_processors(),
        transfers,
    }
}

/// Processors that write to shared cache lines.
pub static CONTENTION: LazyLock<Arc<Suite>> = LazyLock::new(|| {
    Suite::new(
        "contention",
        "what processors share: lines of memory that move between them, on exact-smp",
        DECLARED.iter().map(|declared| declared.workload.clone()),
    )
});

static DECLARED: LazyLock<Vec<ContentionWorkload>> = LazyLock::new(|| {
    let parts = [
        of_nothing(),
        of_lines(),
        of_memory(),
        of_processes_and_pages(),
        of_files(),
        of_descriptors(),
        of_file_systems(),
        of_channels(),
        of_sockets(),
        of_waiting(),
    ];
    parts.into_iter().flatten().collect()
});

/// Returns how many lines move for an operation of a workload of the contention suite with two
/// processors: on each kernel at least and at most so many. `None` for other workloads.
#[must_use]
pub fn declared_transfers(workload: &str) -> Option<RangeInclusive<f64>> {
    DECLARED
        .iter()
        .find(|declared| declared.workload.name == workload)
        .map(|declared| declared.transfers.clone())
}

/// Returns the floor over seeds that the margin of a workload of the suite was chosen for, see
/// above.
pub(super) fn floor(workload: &str) -> Option<Floor> {
    let found = DECLARED
        .iter()
        .find(|declared| declared.workload.name == workload)?;
    let percent = found.workload.metric.margin_percent / 3.0;
    Some(match found.workload.steadiness {
        Steadiness::Steady => Floor::Range(percent),
        Steadiness::Chaotic => Floor::Deviation(percent),
    })
}

fn of_nothing() -> Vec<ContentionWorkload> {
    let nothing = 0.0..=NOTHING;
    vec![
        share(
            "share-no-syscall",
            [
                "nothing shared: system call entry and exit",
                "one getppid(2)",
            ],
            4_000,
            &[&["__x64_sys_getppid"]],
            nothing.clone(),
            90.0,
        ),
        share(
            "share-no-counter",
            ["nothing shared: counters of threads", "one addition"],
            20_000,
            &[],
            nothing.clone(),
            90.0,
        ),
        share(
            "share-no-clock",
            ["nothing shared: reading the clock", "one clock_gettime(2)"],
            4_000,
            &[],
            nothing.clone(),
            90.0,
        ),
        share(
            "share-no-timer",
            [
                "nothing shared: timers of threads",
                "timerfd_settime(2) and timerfd_gettime(2) of an own timer",
            ],
            1_000,
            &[
                &["__x64_sys_timerfd_settime"],
                &["__x64_sys_timerfd_gettime"],
            ],
            nothing,
            90.0,
        ),
    ]
}

fn of_lines() -> Vec<ContentionWorkload> {
    vec![
        share(
            "share-counter",
            ["one counter of all threads", "one addition with LOCK"],
            4_000,
            &[],
            0.5..=1.1,
            2.0,
        ),
        share(
            "share-false",
            [
                "false sharing: counters of threads on one line",
                "one load and one store",
            ],
            4_000,
            &[],
            0.5..=2.2,
            2.0,
        ),
    ]
}

fn of_memory() -> Vec<ContentionWorkload> {
    let write = "the first write to a page";
    vec![
        share(
            "share-fault",
            ["faults of threads, each in a mapping of its own", write],
            800,
            &[FAULT],
            0.2..=40.0,
            12.0,
        ),
        share(
            "share-fault-vma",
            ["faults of threads in one mapping", write],
            800,
            &[FAULT],
            0.5..=40.0,
            20.0,
        ),
        share(
            "share-fault-proc",
            ["faults of processes", write],
            800,
            &[FAULT],
            0.0..=40.0,
            12.0,
        ),
        share(
            "share-mmap",
            [
                "mappings of threads in one address space",
                "mmap(2) of 64 KiB and munmap(2), untouched",
            ],
            400,
            &[&["do_mmap"], &["__vm_munmap", "__x64_sys_munmap"]],
            5.0..=200.0,
            12.0,
        ),
        share(
            "share-mprotect",
            [
                "protection of mappings in one address space",
                "mprotect(2) of 64 KiB to read-only and back",
            ],
            400,
            &[&["mprotect_fixup"]],
            5.0..=400.0,
            22.0,
        ),
        share(
            "share-brk",
            ["the end of one heap", "brk(2) up by 64 KiB and down again"],
            400,
            &[&["__x64_sys_brk"]],
            5.0..=200.0,
            3.0,
        ),
        share(
            "share-fork",
            [
                "forks of threads in one address space",
                "fork, exit of the child, wait",
            ],
            40,
            &[&["kernel_clone"], &["do_exit"]],
            10.0..=3_000.0,
            4.0,
        ),
    ]
}

fn of_processes_and_pages() -> Vec<ContentionWorkload> {
    vec![
        share(
            "share-tlb",
            [
                "pages that all processors have to forget",
                "the first write to a page of an own mapping, madvise(2) DONTNEED",
            ],
            400,
            &[FAULT, &["flush_tlb_mm_range"]],
            1.0..=400.0,
            4.0,
        ),
        share(
            "share-fault-file",
            [
                "faults of threads in a shared mapping of one file",
                "the first write to a page that is in memory",
            ],
            800,
            &[FAULT, &["fault_dirty_shared_page"]],
            0.5..=100.0,
            90.0,
        ),
        share(
            "share-map-file",
            [
                "processes map the same pages of a file on tmpfs",
                "mmap(2) of 16 pages in memory, a write to each, munmap(2)",
            ],
            60,
            &[FAULT, &["zap_pte_range", "unmap_page_range"]],
            1.0..=3_000.0,
            12.0,
        ),
        share(
            "share-map-private",
            [
                "processes copy the same pages of a file on tmpfs, and free the copies",
                "mmap(2) of 16 private pages, a write to each, munmap(2)",
            ],
            60,
            &[FAULT, &["zap_pte_range", "unmap_page_range"]],
            0.5..=3_000.0,
            15.0,
        ),
        share(
            "share-mmap-proc",
            [
                "mappings of processes",
                "mmap(2) of 64 KiB and munmap(2), untouched",
            ],
            400,
            &[&["do_mmap"], &["__vm_munmap", "__x64_sys_munmap"]],
            0.0..=60.0,
            90.0,
        ),
        share(
            "share-brk-proc",
            [
                "the ends of the heaps of processes",
                "brk(2) up by 64 KiB and down again",
            ],
            400,
            &[&["__x64_sys_brk"]],
            0.0..=60.0,
            90.0,
        ),
        share(
            "share-exec-proc",
            [
                "processes execute a program",
                "vfork, exec of a program of 129 bytes that exits, wait",
            ],
            60,
            &[&["kernel_clone"], &["begin_new_exec"], &["do_exit"]],
            1.0..=3_000.0,
            31.0,
        ),
        share(
            "share-thread",
            [
                "threads make threads",
                "pthread_create and pthread_join of a thread that does nothing",
            ],
            60,
            &[&["kernel_clone"], &["do_exit"]],
            5.0..=3_000.0,
            18.0,
        ),
    ]
}

fn of_files() -> Vec<ContentionWorkload> {
    let open = "open(2) by a path of three names and close(2)";
    let create = "open(2) that makes a file on tmpfs, close(2), unlink(2)";
    vec![
        share(
            "share-open",
            ["processes open one file", open],
            800,
            &[OPEN],
            2.0..=60.0,
            10.0,
        ),
        share(
            "share-open-own",
            ["processes open files of their own in one folder", open],
            800,
            &[OPEN],
            0.0..=40.0,
            2.0,
        ),
        share(
            "share-open-folder",
            ["processes open files in folders of their own", open],
            800,
            &[OPEN],
            0.0..=40.0,
            2.0,
        ),
        share(
            "share-create",
            ["processes make and remove files in one folder", create],
            400,
            &[CREATE, UNLINK],
            5.0..=200.0,
            18.0,
        ),
        share(
            "share-create-own",
            ["the same in folders of their own", create],
            400,
            &[CREATE, UNLINK],
            0.0..=150.0,
            10.0,
        ),
        share(
            "share-rename",
            [
                "processes rename files in one folder",
                "rename(2) to another name and back",
            ],
            400,
            &[&["vfs_rename"]],
            5.0..=200.0,
            45.0,
        ),
        share(
            "share-cache",
            [
                "processes read one page of one file",
                "pread(2) of 512 bytes by an own descriptor",
            ],
            1_000,
            &[READ],
            0.0..=20.0,
            2.0,
        ),
    ]
}

/// Modules of the file systems, and a disk in memory.
fn on_disk(mut declared: ContentionWorkload) -> ContentionWorkload {
    let name = &declared.workload.name;
    let system = name.split('-').nth(1).unwrap_or_default();
    declared.workload.guest_config = super::fs::guest_config(system);
    declared
}

fn of_file_systems() -> Vec<ContentionWorkload> {
    let create = "open(2) that makes a file, close(2), unlink(2)";
    let declared = vec![
        share(
            "share-ext4-create",
            ["processes make files in folders of their own", create],
            100,
            &[&["ext4_create"], UNLINK],
            1.0..=3_000.0,
            27.0,
        ),
        share(
            "share-ext4-falloc",
            [
                "processes reserve blocks for files of their own",
                "fallocate(2) of 128 KiB, and ftruncate(2) to nothing",
            ],
            100,
            &[&["ext4_fallocate"], &["ext4_truncate"]],
            1.0..=3_000.0,
            18.0,
        ),
        share(
            "share-xfs-create",
            ["processes make files in folders of their own", create],
            100,
            &[&["xfs_vn_create", "xfs_create"], UNLINK],
            1.0..=3_000.0,
            27.0,
        ),
        share(
            "share-btrfs-create",
            ["processes make files in folders of their own", create],
            100,
            &[&["btrfs_create"], UNLINK],
            1.0..=3_000.0,
            21.0,
        ),
        share(
            "share-btrfs-write",
            [
                "processes write to files of their own",
                "pwrite(2) of 4 KiB to an empty file, ftruncate(2) to nothing",
            ],
            100,
            &[
                &["btrfs_do_write_iter", "btrfs_buffered_write"],
                &["btrfs_setattr"],
            ],
            1.0..=3_000.0,
            12.0,
        ),
    ];
    declared.into_iter().map(on_disk).collect()
}

fn of_descriptors() -> Vec<ContentionWorkload> {
    let read = "pread(2) of 512 bytes";
    vec![
        share(
            "share-pread",
            ["threads read by one descriptor", read],
            1_000,
            &[READ],
            1.0..=30.0,
            2.0,
        ),
        share(
            "share-pread-own",
            ["threads read, each by a descriptor of its own", read],
            1_000,
            &[READ],
            0.0..=4.0,
            90.0,
        ),
        share(
            "share-pwrite",
            [
                "threads write by one descriptor",
                "pwrite(2) of 512 bytes to an own page",
            ],
            800,
            &[&["vfs_write"]],
            1.0..=60.0,
            3.0,
        ),
        share(
            "share-dup",
            ["one table of descriptors", "dup(2) and close(2)"],
            1_000,
            &[&["__x64_sys_dup"]],
            1.0..=60.0,
            2.0,
        ),
    ]
}

fn of_channels() -> Vec<ContentionWorkload> {
    let through = "write(2) and read(2) of one byte by the same process";
    vec![
        share(
            "share-pipe",
            ["processes use one pipe", through],
            800,
            PIPE,
            2.0..=60.0,
            2.0,
        ),
        share(
            "share-pipe-own",
            ["processes, each with a pipe of its own", through],
            800,
            PIPE,
            0.0..=4.0,
            90.0,
        ),
        share(
            "share-pipe-turn",
            [
                "processes wake each other by pipes",
                "one byte sent, and one received from the neighbour",
            ],
            400,
            PIPE,
            10.0..=200.0,
            2.0,
        ),
        share(
            "share-eventfd",
            [
                "threads use one eventfd",
                "one write to and one read from it",
            ],
            800,
            &[&["eventfd_write"], &["eventfd_read"]],
            2.0..=60.0,
            2.0,
        ),
        share(
            "share-epoll",
            [
                "threads wait for events at one epoll instance",
                "epoll_wait(2) with one event that is there",
            ],
            800,
            &[&["do_epoll_wait"]],
            2.0..=60.0,
            15.0,
        ),
        share(
            "share-poll",
            [
                "threads poll the same descriptors",
                "poll(2) of 16 eventfds of which none is ready",
            ],
            800,
            &[&["do_sys_poll"], &["eventfd_poll"]],
            1.0..=200.0,
            51.0,
        ),
    ]
}

fn of_sockets() -> Vec<ContentionWorkload> {
    vec![
        share(
            "share-unix",
            [
                "processes use one pair of unix sockets",
                "send(2) and recv(2) of one byte, datagrams",
            ],
            400,
            &[&["unix_dgram_sendmsg"]],
            5.0..=200.0,
            18.0,
        ),
        share(
            "share-accept",
            [
                "processes accept from one TCP socket",
                "connect(2), accept(2), both ends closed",
            ],
            100,
            &[&["inet_csk_accept"]],
            20.0..=1_500.0,
            34.0,
        ),
        share(
            "share-connect",
            [
                "processes connect to unix sockets of their own",
                "connect(2), accept(2), both ends closed",
            ],
            200,
            &[&["unix_stream_connect"], &["unix_accept"]],
            0.0..=400.0,
            60.0,
        ),
        share(
            "share-udp",
            [
                "processes receive from one UDP socket",
                "sendto(2) to it and recv(2) from it, one byte",
            ],
            400,
            &[&["udp_sendmsg"], &["udp_recvmsg"]],
            5.0..=200.0,
            20.0,
        ),
        share(
            "share-udp-turn",
            [
                "datagrams from one processor to the other",
                "one byte sent by UDP, and one received from the neighbour",
            ],
            400,
            &[&["udp_sendmsg"], &["udp_recvmsg"]],
            5.0..=400.0,
            2.0,
        ),
    ]
}

fn of_waiting() -> Vec<ContentionWorkload> {
    vec![
        share(
            "share-futex",
            [
                "futexes of threads on one page",
                "FUTEX_WAKE of an own word that has no waiters",
            ],
            1_000,
            &[&["futex_wake"]],
            0.0..=4.0,
            90.0,
        ),
        share(
            "share-mutex",
            ["one lock of all threads", "lock, getppid(2), unlock"],
            800,
            &[&["__x64_sys_getppid"]],
            1.0..=100.0,
            15.0,
        ),
        share(
            "share-condvar",
            [
                "waking all threads at a condition variable",
                "wait until all threads have come",
            ],
            200,
            &[&["futex_wake"], &["futex_wait"]],
            10.0..=300.0,
            15.0,
        ),
        share(
            "share-signal",
            ["signals to one process", "kill(2) and the handler"],
            400,
            &[&["do_send_sig_info", "group_send_sig_info"]],
            5.0..=200.0,
            2.0,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::{CONTENTION, NOTHING, declared_transfers};

    #[test]
    fn controls_declare_that_nothing_moves() {
        for workload in &CONTENTION.workloads {
            let transfers = declared_transfers(&workload.name).unwrap();
            assert_eq!(
                workload.name.starts_with("share-no-"),
                *transfers.end() <= NOTHING,
                "{}",
                workload.name
            );
        }
        assert_eq!(declared_transfers("getppid"), None);
    }
}
