//! That sentences name who asks for what takes the time, not only the symptom.

use crate::answer;
use crate::facts::{
    Created, Facts, FaultingCode, Host, Object, Samples, ShortLived, Stack, Started, Thread, Wait,
    Watched, WatchedKind,
};
use crate::tests::{at_word, facts, rule, sampled, stack, thread, wait};

fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn cause(facts: &Facts) -> String {
    answer(facts).cause.unwrap().cause
}

/// A wait in the kernel that no signal ends.
fn uninterruptible(call: &str, function: &str, seconds: f64) -> Wait {
    Wait {
        is_uninterruptible: true,
        stack: strings(&["mmap (libc.so.6)", "map_regions"]),
        ..wait(call, function, seconds)
    }
}

fn blocked_at(waits: Vec<Wait>) -> Facts {
    Facts {
        waits,
        ..facts(vec![thread(1, [0.2, 0.2, 0.0])])
    }
}

fn in_kernel(calls: &[&str], user: &[&str], samples: u64) -> Stack {
    Stack {
        user: strings(user),
        ..stack(calls, samples)
    }
}

fn sampled_in_kernel(stacks: Vec<Stack>) -> Facts {
    Facts {
        samples: sampled(stacks),
        ..facts(vec![thread(1, [1.0, 8.0, 0.0])])
    }
}

#[test]
fn callers_of_locks_of_the_kernel_name_them() {
    let memory = blocked_at(vec![
        uninterruptible("mmap", "vm_mmap_pgoff", 5.0),
        uninterruptible("munmap", "__vm_munmap", 4.0),
    ]);
    assert_eq!(rule(&memory), "kernel-lock");
    assert!(cause(&memory).contains("mmap_lock"), "{}", cause(&memory));
    let directory = blocked_at(vec![uninterruptible("openat", "open_last_lookups", 9.0)]);
    assert!(
        cause(&directory).contains("lock of a directory in openat"),
        "{}",
        cause(&directory)
    );
}

#[test]
fn kernel_function_names_who_is_waited_for() {
    let permission = Wait {
        object: Object::File("/srv/file".into()),
        ..uninterruptible("openat", "fanotify_handle_event", 9.0)
    };
    let facts = blocked_at(vec![permission]);
    assert_eq!(rule(&facts), "one-place");
    assert!(
        cause(&facts).contains("openat (/srv/file) for a listener of fanotify"),
        "{}",
        cause(&facts)
    );
}

#[test]
fn full_pool_is_named() {
    let at_fifo = |id| Wait {
        stack: strings(&["open64 (libc.so.6)", "uv__fs_work", "worker"]),
        threads: vec![id],
        ..wait("openat", "wait_for_partner", 9.0)
    };
    let facts = Facts {
        waits: (1..=4).map(at_fifo).collect(),
        ..facts((1..=4).map(|id| thread(id, [0.1, 0.1, 0.0])).collect())
    };
    let cause = cause(&facts);
    assert!(
        cause.contains("4 of the threads of libuv's thread pool wait"),
        "{cause}"
    );
}

#[test]
fn lock_of_the_allocator_is_named() {
    let lock = Wait {
        stack: strings(&["libc.so.6+0x86100", "malloc (libc.so.6)", "scan_entries"]),
        ..at_word(0x40, 40.0, &[1, 2, 3])
    };
    let facts = Facts {
        waits: vec![lock],
        ..facts((1..=4).map(|id| thread(id, [0.5, 0.5, 0.0])).collect())
    };
    let cause = cause(&facts);
    assert!(
        cause.contains("a lock of glibc's malloc (an arena), in scan_entries"),
        "{cause}"
    );
}

#[test]
fn program_and_its_starter_are_named() {
    let starts = in_kernel(&["copy_process", "__x64_sys_execve"], &[], 90);
    let mut facts = sampled_in_kernel(vec![starts]);
    facts.short_lived = ShortLived {
        created: Some(Created {
            processes: 5000,
            threads: 0,
        }),
        ..ShortLived::default()
    };
    facts.started = vec![Started {
        program: "mkdir".into(),
        command: "mkdir pip.lock".into(),
        by: "sh".into(),
        by_command: "sh -c install".into(),
        count: 5000,
        span: 0.9,
    }];
    assert_eq!(rule(&facts), "new-processes");
    let cause = cause(&facts);
    assert!(
        cause.contains(": mkdir (mkdir pip.lock), started by sh (sh -c install)"),
        "{cause}"
    );
}

#[test]
fn copied_tables_count_with_what_follows() {
    let forks = |copying: u64, resident_pages: u64| {
        let mut facts = sampled_in_kernel(vec![
            in_kernel(
                &["copy_page_range", "dup_mmap", "__x64_sys_clone"],
                &["fork (libc.so.6)", "start_task", "main"],
                copying,
            ),
            in_kernel(&["unmap_vmas", "exit_mmap", "__x64_sys_execve"], &[], 40),
            in_kernel(&["do_wp_page", "asm_exc_page_fault"], &["keep"], 30),
            in_kernel(&["vfs_read", "__x64_sys_read"], &["keep"], 30 - copying),
        ]);
        facts.counters.resident_pages = resident_pages;
        facts
    };
    let many = 256 * 160;
    let found = answer(&forks(20, many)).cause.unwrap();
    assert_eq!(found.rule, "fork-tables");
    assert!(found.share > 0.7 && found.cause.contains("start_task"));
    // Without copying, a large program that ends is no fork, and a small one has few tables.
    assert_ne!(rule(&forks(0, many)), "fork-tables");
    assert_ne!(rule(&forks(20, 256 * 4)), "fork-tables");
}

#[test]
fn listing_descriptors_is_closing_them() {
    let listing = in_kernel(
        &["proc_readfd_common", "iterate_dir", "__x64_sys_getdents64"],
        &["(unknown)"],
        60,
    );
    assert_eq!(
        rule(&sampled_in_kernel(vec![listing.clone()])),
        "closing-all"
    );
    let of_another = in_kernel(&["ext4_readdir", "__x64_sys_getdents64"], &["list"], 60);
    assert_eq!(rule(&sampled_in_kernel(vec![of_another])), "one-call");
}

#[test]
fn handled_faults_are_signals() {
    let fault = in_kernel(
        &[
            "force_sig_fault",
            "bad_area_nosemaphore",
            "asm_exc_page_fault",
        ],
        &["check_null"],
        30,
    );
    let back = in_kernel(
        &["restore_sigcontext", "__x64_sys_rt_sigreturn"],
        &["handle"],
        30,
    );
    let facts = sampled_in_kernel(vec![fault, back]);
    assert_eq!(rule(&facts), "signal-handler");
    assert!(cause(&facts).contains("SIGSEGV"));
}

#[test]
fn calls_of_one_kind_are_one_cause() {
    let call = |name: &str, samples| in_kernel(&["path_lookup", name], &["walk"], samples);
    let facts = sampled_in_kernel(vec![
        call("__x64_sys_newfstatat", 30),
        call("__x64_sys_openat", 30),
        call("__x64_sys_getdents64", 30),
    ]);
    assert_eq!(rule(&facts), "call-group");
    let cause = cause(&facts);
    assert!(
        cause.contains("looks up files and directories") && cause.ends_with("in walk"),
        "{cause}"
    );
    let alone = sampled_in_kernel(vec![call("__x64_sys_newfstatat", 90)]);
    assert_eq!(rule(&alone), "one-call");
}

/// Threads that compute in `add`, with samples right behind atomic instructions.
fn atomics(threads: Vec<Thread>, behind: u64) -> Facts {
    let adding = Stack {
        user: strings(&["add", "work"]),
        ..stack(&[], 100)
    };
    Facts {
        host: Host {
            processors: 2,
            ..Host::default()
        },
        samples: Some(Samples {
            stacks: vec![adding],
            atomics: vec![FaultingCode {
                function: "add".into(),
                samples: behind,
            }],
            ..Samples::default()
        }),
        ..facts(threads)
    }
}

#[test]
fn atomic_instructions_of_threads_share_lines() {
    let busy = |id| thread(id, [9.0, 0.0, 0.0]);
    assert_eq!(rule(&atomics(vec![busy(1), busy(2)], 90)), "shared-line");
    assert_eq!(rule(&atomics(vec![busy(1)], 90)), "one-function");
    assert_eq!(rule(&atomics(vec![busy(1), busy(2)], 10)), "one-function");
}

#[test]
fn too_many_threads_say_what_they_do() {
    let busy = |id| thread(id, [2.5, 0.0, 7.5]);
    let facts = atomics((1..=8).map(busy).collect(), 0);
    let found = answer(&facts).cause.unwrap();
    assert_eq!(found.rule, "oversubscription");
    assert!(
        found.cause.contains("it computes, and most of that in add"),
        "{}",
        found.cause
    );
}

#[test]
fn script_is_named_beside_the_interpreter() {
    let interpreter = Stack {
        user: strings(&[
            "memcpy (libc.so.6)",
            "_copy_characters (libpython3.11.so.1.0)",
        ]),
        ..stack(&[], 100)
    };
    let script = |function: &str, samples| Stack {
        program: "Python".into(),
        user: strings(&[function, "main app.py", "<module> app.py"]),
        samples,
        ..Stack::default()
    };
    let facts = Facts {
        samples: sampled(vec![interpreter]),
        scripts: vec![
            script("Python's json.dumps", 6),
            script("append app.py", 30),
        ],
        ..facts(vec![thread(1, [9.9, 0.0, 0.0])])
    };
    let cause = cause(&facts);
    assert!(
        cause.ends_with("; in Python that is in append app.py (called by main app.py)"),
        "{cause}"
    );
}

#[test]
fn work_comes_before_waiting_for_events() {
    let events = Wait {
        watched: vec![
            Watched {
                kind: WatchedKind::Socket,
                file: "socket, tcp to 10.0.0.1:80".into(),
            };
            2
        ],
        ..wait("epoll_wait", "ep_poll", 5.0)
    };
    let computing = Stack {
        user: strings(&["match_keys", "eval_script"]),
        ..stack(&[], 100)
    };
    let of = |user_s| Facts {
        waits: vec![events.clone()],
        samples: sampled(vec![computing.clone()]),
        ..facts(vec![thread(1, [user_s, 0.0, 0.0])])
    };
    assert_eq!(rule(&of(4.5)), "one-function");
    assert_eq!(rule(&of(1.0)), "poll");
}

#[test]
fn nothing_dominating_lists_the_largest() {
    // What calls all of them says nothing, as main does not.
    let stacks = (0..8).map(|number| Stack {
        user: vec![format!("f{number}"), "run".into(), "main".into()],
        ..stack(&[], if number == 0 { 30 } else { 10 })
    });
    let facts = Facts {
        samples: sampled(stacks.collect()),
        ..facts(vec![thread(1, [9.9, 0.0, 0.0])])
    };
    let sentence = answer(&facts).sentence(&facts);
    assert!(
        sentence.starts_with("Nothing dominates: 99 % user (f0 30 %, f1 10 %"),
        "{sentence}"
    );
}

#[test]
fn silent_peer_of_another_thread_is_named() {
    let reading = |file: &str, id: u32, seconds| Wait {
        object: Object::File(file.into()),
        threads: vec![id],
        stack: vec![
            "recv (libc.so.6)".into(),
            format!("reader{id}"),
            "main".into(),
        ],
        ..wait("recvfrom", "wait_woken", seconds)
    };
    let with = |seconds, voluntary| {
        let reader = Thread {
            voluntary,
            ..thread(2, [0.0, 0.0, 0.0])
        };
        let found = answer(&Facts {
            waits: vec![
                reading("socket, tcp to 10.0.0.1:80", 1, 9.8),
                reading("own socket, tcp to 127.0.0.1:9", 2, seconds),
            ],
            ..facts(vec![thread(1, [0.1, 0.1, 0.0]), reader])
        });
        found.cause.unwrap().cause
    };
    let found = with(9.0, 20);
    assert!(
        found.ends_with(
            "; another thread of it waits for a peer that sends nothing (own socket, tcp to 127.0.0.1:9) in reader2"
        ),
        "{found}"
    );
    for other in [with(2.0, 20), with(9.0, 5000)] {
        assert!(!other.contains("sends nothing"), "{other}");
    }
}
