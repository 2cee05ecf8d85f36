//! The suite reports: paths that published reports of regressions are about and that the other
//! suites do not enter (docs/published.md).

use std::sync::{Arc, LazyLock};

use super::{Functions, Texts, workload};
use crate::{GuestConfig, GuestModule, Suite, Workload};

const OPEN_FILE: &str = "open files and their descriptors";

struct Case {
    name: &'static str,
    stresses: &'static str,
    operation: &'static str,
    operations: u64,
    exercises: Functions,
}

const fn case(
    name: &'static str,
    [stresses, operation]: [&'static str; 2],
    operations: u64,
    exercises: Functions,
) -> Case {
    Case {
        name,
        stresses,
        operation,
        operations,
        exercises,
    }
}

const OF_MEMORY: [Case; 12] = [
    case(
        "map-mremap",
        [
            "moving mappings",
            "mremap(2) of 16 pages that are there to another address, and back",
        ],
        400,
        &[&["move_page_tables"]],
    ),
    case(
        "map-mlock",
        [
            "locking memory",
            "mlock(2) of 16 pages that are there, and munlock(2)",
        ],
        400,
        &[&["do_mlock"], &["apply_vma_lock_flags", "mlock_fixup"]],
    ),
    case(
        "map-split",
        [
            "splitting huge pages",
            "madvise(2) DONTNEED of a page of a huge page",
        ],
        12,
        &[&["__split_huge_pmd", "split_huge_pmd_locked"]],
    ),
    case(
        "map-many",
        [
            "a process with 10,000 mappings",
            "munmap(2) of one of a page, and mmap(2) in its place",
        ],
        800,
        &[&["do_mmap"], &["__vm_munmap", "__x64_sys_munmap"]],
    ),
    case(
        "map-many-fork",
        [
            "copying 10,000 mappings",
            "fork of a process with so many mappings, exit of the child, wait",
        ],
        4,
        &[&["kernel_clone"], &["do_exit"]],
    ),
    case(
        "map-zero",
        [
            "shared memory by /dev/zero",
            "mmap(2) of a page, a write to it, munmap(2)",
        ],
        500,
        &[&["shmem_zero_setup"], &["do_mmap"]],
    ),
    case(
        "map-shmget",
        [
            "shared memory of System V",
            "shmget(2) of 64 KiB, shmat(2), a write, shmdt(2), its end",
        ],
        400,
        &[&["newseg", "ksys_shmget"], &["do_shmat"]],
    ),
    case(
        "map-hugetlb",
        [
            "huge pages that were set aside",
            "mmap(2) of one, a write to it, munmap(2)",
        ],
        12,
        &[&["hugetlb_fault"]],
    ),
    case(
        "map-large",
        [
            "memory that is no multiple of huge pages",
            "mmap(2) of 32 MiB and a page, a write to its beginning, munmap(2)",
        ],
        200,
        &[&["do_mmap"], &["__vm_munmap", "__x64_sys_munmap"]],
    ),
    case(
        "map-file-shared",
        [
            "mapping a file's pages shared, and unmapping them",
            "mmap(2) of 64 pages in memory, a write to each, munmap(2)",
        ],
        30,
        &[&["zap_pte_range", "unmap_page_range"], &["do_fault"]],
    ),
    case(
        "map-file-private",
        [
            "copying a file's pages, and unmapping the copies",
            "mmap(2) of 64 pages in memory, a write to each, munmap(2)",
        ],
        30,
        &[&["zap_pte_range", "unmap_page_range"], &["do_fault"]],
    ),
    case(
        "memcg-deep",
        [
            "charging pages to nine control groups",
            "the first write to a page in a group with eight groups above it",
        ],
        2_048,
        &[&["__mem_cgroup_charge", "mem_cgroup_charge"]],
    ),
];

const OF_GROUPS: [Case; 3] = [
    case(
        "memcg-stat",
        [
            "statistics of a control group",
            "64 pages are touched, memory.stat read, and the pages given back",
        ],
        60,
        &[
            &["memory_stat_show"],
            &["cgroup_rstat_flush", "css_rstat_flush"],
        ],
    ),
    case(
        "memcg-stat-few",
        [
            "statistics of a control group of which few changed",
            "a pipe is made and closed, and memory.stat read",
        ],
        60,
        &[&["memory_stat_show"], &["do_pipe2"]],
    ),
    case(
        "memcg-tcp",
        [
            "charging buffers of sockets to a control group",
            "connect(2) and accept(2) in a group, 64 KiB over TCP, close(2)",
        ],
        200,
        &[
            &["mem_cgroup_charge_skmem", "mem_cgroup_sk_charge"],
            &["tcp_sendmsg_locked"],
        ],
    ),
];

const OF_CALLS: [Case; 10] = [
    case(
        "call-lseek",
        [OPEN_FILE, "lseek(2) to the beginning of a file on tmpfs"],
        8_000,
        &[&["ksys_lseek", "__x64_sys_lseek"]],
    ),
    case(
        "call-writeseek",
        [
            "writing a file on tmpfs over",
            "lseek(2) to the beginning and write(2) of 4 KiB",
        ],
        1_500,
        &[&["ksys_write"], &["shmem_write_begin"]],
    ),
    case(
        "call-dup",
        [OPEN_FILE, "dup(2) and close(2)"],
        4_000,
        &[&["__x64_sys_dup"]],
    ),
    case(
        "call-fcntl",
        [OPEN_FILE, "fcntl(2) F_GETFL and F_SETFL"],
        6_000,
        &[&["__x64_sys_fcntl", "do_fcntl"]],
    ),
    case(
        "call-fstat",
        ["attributes of files", "fstat(2) of an open file on tmpfs"],
        5_000,
        &[&["vfs_fstat", "vfs_getattr"]],
    ),
    case(
        "call-statx",
        ["attributes of files", "statx(2) by a path of three names"],
        1_500,
        &[&["do_statx"]],
    ),
    case(
        "call-getrandom",
        ["random numbers", "getrandom(2) of 32 bytes"],
        2_000,
        &[&["__x64_sys_getrandom"]],
    ),
    case(
        "call-clock",
        [
            "the clock of the vDSO",
            "clock_gettime(2), without the kernel",
        ],
        20_000,
        &[],
    ),
    case(
        "call-sendfile",
        [
            "sending files by way of a pipe",
            "sendfile(2) of 64 KiB of a file in memory to /dev/null",
        ],
        500,
        &[&["splice_direct_to_actor"]],
    ),
    case(
        "call-seccomp",
        [
            "filters of system calls",
            "getppid(2) behind a seccomp filter of 63 instructions",
        ],
        6_000,
        &[&["__seccomp_filter"], &["__x64_sys_getppid"]],
    ),
];

const OF_WAITING: [Case; 6] = [
    case(
        "timer-sleep",
        [
            "sleeping, and the idle processor",
            "nanosleep(2) of a microsecond, which counts as well",
        ],
        400,
        &[&["hrtimer_nanosleep"], &["schedule"]],
    ),
    case(
        "timer-signal",
        [
            "timers that send signals",
            "timer_settime(2) to the past, sigwaitinfo(2) for its signal",
        ],
        1_000,
        &[
            &["posix_timer_fn"],
            &["do_timer_settime", "common_timer_set"],
        ],
    ),
    case(
        "mqueue-sysv",
        [
            "message queues of System V",
            "msgsnd(2) and msgrcv(2) of 128 bytes",
        ],
        2_000,
        &[&["do_msgsnd"], &["do_msgrcv"]],
    ),
    case(
        "mqueue-posix",
        [
            "POSIX message queues",
            "mq_send(3) and mq_receive(3) of 128 bytes",
        ],
        2_000,
        &[&["do_mq_timedsend"], &["do_mq_timedreceive"]],
    ),
    case(
        "aio-read",
        [
            "asynchronous IO",
            "io_submit(2) of a read of 4 KiB in memory, io_getevents(2)",
        ],
        1_000,
        &[&["io_submit_one"], &["aio_read"]],
    ),
    case(
        "uring-poll",
        [
            "polls by io_uring",
            "32 polls of an eventfd that is ready, in one io_uring_enter(2)",
        ],
        500,
        &[&["io_submit_sqes"], &["io_poll_add"]],
    ),
];

const OF_WORKERS: [Case; 1] = [case(
    "uring-worker",
    [
        "requests of io_uring that threads of the kernel do",
        "32 reads of 4 KiB from /dev/zero, handed to workers, in one io_uring_enter(2)",
    ],
    200,
    &[&["io_submit_sqes"], &["io_wq_submit_work"]],
)];

/// Rows that need a module where the kernel does not have its code built in.
const OF_MODULES: [(Case, &[GuestModule]); 3] = [
    (
        case(
            "sock-sctp",
            [
                "messages of SCTP",
                "send(2) and recv(2) of a message of 10 KiB over loopback",
            ],
            200,
            &[&["sctp_sendmsg"], &["sctp_recvmsg"]],
        ),
        &[GuestModule::must("sctp", "")],
    ),
    (
        case(
            "alg-hash",
            [
                "the kernel's hashes, by a socket",
                "send(2) of 4 KiB, and recv(2) of its SHA-256",
            ],
            100,
            &[&["hash_sendmsg"], &["hash_recvmsg"]],
        ),
        &[GuestModule::must("algif_hash", "")],
    ),
    (
        case(
            "loop-file",
            [
                "block devices made of files",
                "a loop device is added, gets a file of 1 MiB, loses it, is removed",
            ],
            20,
            &[&["loop_configure", "lo_ioctl"], &["del_gendisk"]],
        ),
        &[GuestModule::must("loop", "")],
    ),
];

const OF_SOCKETS: [Case; 5] = [
    case(
        "sock-fd",
        [
            "descriptors as messages",
            "sendmsg(2) and recvmsg(2) of a descriptor by a unix socket, close(2)",
        ],
        800,
        &[&["scm_detach_fds"], &["unix_stream_sendmsg"]],
    ),
    case(
        "sock-dgram",
        [
            "unix datagrams",
            "send(2) and recv(2) of 512 bytes by the same process",
        ],
        1_200,
        &[&["unix_dgram_sendmsg"], &["__unix_dgram_recvmsg"]],
    ),
    case(
        "sock-connect",
        [
            "connections of unix sockets",
            "socket(2), connect(2), accept(2), and close(2) of both ends",
        ],
        300,
        &[&["unix_stream_connect"], &["unix_accept"]],
    ),
    case(
        "sock-raw",
        [
            "raw sockets",
            "send(2) and recv(2) of a packet of 512 bytes over loopback",
        ],
        600,
        &[&["raw_sendmsg"], &["raw_recvmsg"]],
    ),
    case(
        "sock-ports",
        [
            "a crowded table of ports",
            "connect(2), accept(2), close(2) where 240 of 256 ports are taken",
        ],
        200,
        &[&["__inet_hash_connect"], &["inet_csk_accept"]],
    ),
];

fn declare(case: &Case) -> Workload {
    let texts = Texts {
        stresses: case.stresses,
        operation: case.operation,
        source: "",
    };
    workload(case.name, texts, case.operations, case.exercises)
}

/// Mappings, control groups, descriptors, timers, queues and sockets of published reports.
pub static REPORTS: LazyLock<Arc<Suite>> = LazyLock::new(|| {
    let parts = [
        &OF_MEMORY[..],
        &OF_GROUPS,
        &OF_CALLS,
        &OF_WAITING,
        &OF_SOCKETS,
        &OF_WORKERS,
    ];
    let mut workloads: Vec<Workload> = parts.into_iter().flatten().map(declare).collect();
    for (case, modules) in &OF_MODULES {
        workloads.push(Workload {
            guest_config: GuestConfig {
                modules,
                ..GuestConfig::PLAIN
            },
            ..declare(case)
        });
    }
    Suite::new(
        "reports",
        "paths of published regressions that the other suites do not enter",
        workloads,
    )
});
