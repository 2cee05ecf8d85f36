//! The suite subsystems: parts of the kernel that a config adds and the other suites do not enter.

use std::sync::{Arc, LazyLock};

use super::{Functions, Texts, workload};
use crate::{GuestConfig, GuestModule, Steadiness, Suite, Workload};

/// Memory of these guests (MiB).
const MEMORY_MIB: u32 = 256;
const NETFILTER: &[GuestModule] = &[
    GuestModule::must("nf_tables", ""),
    GuestModule::must("nft_ct", ""),
];
/// A disk in memory of 64 MiB: its driver's parameter is in KiB.
const RAM_DISK: &[GuestModule] = &[
    GuestModule::must("brd", "rd_nr=1 rd_size=65536"),
    GuestModule::must("ext4", ""),
];

struct Case {
    name: &'static str,
    stresses: &'static str,
    operation: &'static str,
    operations: u64,
    modules: &'static [GuestModule],
    exercises: Functions,
}

const CASES: [Case; 15] = [
    Case {
        name: "memcg-fault",
        stresses: "charging pages to a control group",
        operation: "the first write to a page in a group with a limit",
        operations: 2_048,
        modules: &[],
        exercises: &[&["__mem_cgroup_charge", "mem_cgroup_charge"]],
    },
    Case {
        name: "memcg-kmem",
        stresses: "charging kernel memory to a control group",
        operation: "a pipe made and closed in a group with a limit",
        operations: 500,
        modules: &[],
        exercises: &[&[
            "obj_cgroup_charge",
            "obj_cgroup_charge_account",
            "__memcg_slab_post_alloc_hook",
            "memcg_slab_post_alloc_hook",
            "__memcg_kmem_charge_page",
        ]],
    },
    Case {
        name: "bpf-map",
        stresses: "BPF maps",
        operation: "an element of a hash is written, read and removed by bpf(2)",
        operations: 1_000,
        modules: &[],
        exercises: &[&["htab_map_update_elem"], &["htab_map_delete_elem"]],
    },
    Case {
        name: "bpf-load",
        stresses: "verifying a BPF program and making it ready",
        operation: "a program of 131 instructions with 64 branches is loaded and closed",
        operations: 4,
        modules: &[],
        exercises: &[&["bpf_check"], &["bpf_prog_load"]],
    },
    Case {
        name: "bpf-run",
        stresses: "running a BPF program",
        operation: "a program that counts in a hash runs 128 times (BPF_PROG_TEST_RUN)",
        operations: 500,
        modules: &[],
        exercises: &[&["bpf_prog_test_run_skb"]],
    },
    Case {
        name: "landlock-open",
        stresses: "a security module that looks at paths",
        operation: "open(2) and close(2) of a file 8 directories deep by a process with landlock",
        operations: 1_000,
        modules: &[],
        exercises: &[&["hook_file_open"]],
    },
    Case {
        name: "key-update",
        stresses: "keys of the kernel's keyrings",
        operation: "add_key(2) that replaces a key's content, and keyctl(2) that reads it",
        operations: 1_000,
        modules: &[],
        exercises: &[
            &["key_create_or_update", "__key_create_or_update"],
            &["user_read"],
        ],
    },
    Case {
        name: "uring-nop",
        stresses: "requests of io_uring",
        operation: "32 requests that do nothing, in one io_uring_enter(2)",
        operations: 1_000,
        modules: &[],
        exercises: &[&["io_submit_sqes"], &["io_nop"]],
    },
    Case {
        name: "uring-read",
        stresses: "reads by io_uring",
        operation: "32 reads of 4 KiB of /dev/zero, in one io_uring_enter(2)",
        operations: 500,
        modules: &[],
        exercises: &[&["io_submit_sqes"], &["io_read"]],
    },
    Case {
        name: "uring-sock",
        stresses: "messages by io_uring",
        operation: "16 messages of 64 bytes into a unix socket and out, in one io_uring_enter(2)",
        operations: 300,
        modules: &[],
        exercises: &[&["io_send"], &["io_recv"]],
    },
    Case {
        name: "netfilter-rules",
        stresses: "rules of nftables",
        operation: "a UDP datagram passes 64 rules about other ports",
        operations: 500,
        modules: NETFILTER,
        exercises: &[&["nf_hook_slow"], &["nft_do_chain"]],
    },
    Case {
        name: "netfilter-ct",
        stresses: "the tracking of connections",
        operation: "a UDP datagram of a known connection",
        operations: 1_000,
        modules: NETFILTER,
        exercises: &[&["nf_conntrack_in"], &["nft_do_chain"]],
    },
    Case {
        name: "ext4-ram-create",
        stresses: "files of ext4, without their way to the disk",
        operation: "a file of 4 KiB is made and removed, on a disk in memory",
        operations: 200,
        modules: RAM_DISK,
        exercises: &[&["ext4_create"], &["ext4_da_write_begin"], &["ext4_unlink"]],
    },
    Case {
        name: "ext4-ram-fsync",
        stresses: "the journal of ext4",
        operation: "a file of 4 KiB is made, written and fsync(2) returns, on a disk in memory",
        operations: 100,
        modules: RAM_DISK,
        exercises: &[&["ext4_sync_file"], &["jbd2_journal_commit_transaction"]],
    },
    Case {
        name: "ext4-ram-read",
        stresses: "reads of ext4",
        operation: "pread(2) of 64 KiB that are not in memory, on a disk in memory",
        operations: 128,
        modules: RAM_DISK,
        exercises: &[&["ext4_mpage_readpages"]],
    },
];

/// Control groups, BPF, security, io_uring, netfilter and ext4.
pub static SUBSYSTEMS: LazyLock<Arc<Suite>> = LazyLock::new(|| {
    let declare = |case: &Case| Workload {
        // The journal's thread or the caller does the writing: which one, a seed decides.
        steadiness: if case.name == "ext4-ram-fsync" {
            Steadiness::Chaotic
        } else {
            Steadiness::Steady
        },
        guest_config: GuestConfig {
            modules: case.modules,
            ..GuestConfig::with_memory(MEMORY_MIB)
        },
        ..workload(
            case.name,
            Texts {
                stresses: case.stresses,
                operation: case.operation,
                source: "",
            },
            case.operations,
            case.exercises,
        )
    };
    Suite::new(
        "subsystems",
        "parts that a config adds: control groups, BPF, security, io_uring, netfilter, ext4",
        CASES.iter().map(declare).collect::<Vec<_>>(),
    )
});
