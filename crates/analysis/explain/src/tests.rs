//! Each rule on facts that are made for it, the choice among rules, and the documents.

use document::Styles;
use proptest::prelude::*;

use crate::budget::{Budget, View};
use crate::facts::{
    Counters, Created, Facts, FaultingCode, Futex, Gap, Host, Limit, Limited, Object, Pressure,
    Samples, Settings, ShortLived, Stack, Thread, Wait,
};
use crate::{
    Certainty, End, EndState, Explained, RULES, Suspect, Switch, Variable, answer, document, json,
};

/// A thread of ten seconds: running in user mode and in the kernel, and waiting (s).
pub(crate) fn thread(id: u32, [user_s, system_s, waiting_s]: [f64; 3]) -> Thread {
    Thread {
        process: 1,
        id,
        name: "worker".into(),
        total_s: 10.0,
        user_s,
        system_s,
        waiting_s,
        voluntary: 1000,
        allowed: 4,
        ..Thread::default()
    }
}

pub(crate) fn facts(threads: Vec<Thread>) -> Facts {
    Facts {
        subject: "./program".into(),
        seconds: 10.0,
        host: Host {
            processors: 4,
            idle: 0.5,
            kernel: "6.12".into(),
            ..Host::default()
        },
        threads,
        ..Facts::default()
    }
}

pub(crate) fn wait(call: &str, function: &str, seconds: f64) -> Wait {
    Wait {
        call: call.into(),
        function: function.into(),
        seconds,
        threads: vec![1],
        stack: vec!["clock (libc.so.6)".into(), "work".into()],
        ..Wait::default()
    }
}

pub(crate) fn at_word(address: u64, seconds: f64, threads: &[u32]) -> Wait {
    let futex = Futex {
        word: (1, address),
        mapping: format!("[heap]+{address:#x}"),
        ..Futex::default()
    };
    Wait {
        object: Object::Futex(futex),
        threads: threads.to_vec(),
        stack: vec!["pthread_mutex_lock (libc.so.6)".into(), "work".into()],
        ..wait("futex", "futex_do_wait", seconds)
    }
}

/// The same, in other functions.
fn at_word_in(function: &str, seconds: f64, threads: &[u32]) -> Wait {
    Wait {
        stack: vec![format!("{function} (libc.so.6)"), "take_task".into()],
        ..at_word(0x10, seconds, threads)
    }
}

pub(crate) fn stack(kernel: &[&str], samples: u64) -> Stack {
    let kernel = kernel
        .iter()
        .map(|function| (*function).to_owned())
        .collect();
    Stack {
        program: "program".into(),
        kernel,
        user: vec!["work".into(), "main".into()],
        samples,
    }
}

pub(crate) fn sampled(stacks: Vec<Stack>) -> Option<Samples> {
    Some(Samples {
        stacks,
        ..Samples::default()
    })
}

/// Returns the rule that names the cause; empty if nothing dominates.
pub(crate) fn rule(facts: &Facts) -> &'static str {
    answer(facts).cause.map_or("", |cause| cause.rule)
}

/// A thread that is blocked for nine of ten seconds.
fn blocked(wait: Wait) -> Facts {
    Facts {
        waits: vec![Wait {
            seconds: 9.0,
            ..wait
        }],
        ..facts(vec![thread(1, [0.5, 0.5, 0.0])])
    }
}

/// A thread that is in the kernel for nine of ten seconds.
fn in_kernel(kernel: &[&str], counters: Counters) -> Facts {
    let samples = sampled(vec![stack(kernel, 180), stack(&[], 20)]);
    Facts {
        counters,
        samples,
        ..facts(vec![thread(1, [1.0, 9.0, 0.0])])
    }
}

#[test]
fn blocked_threads_name_what_they_wait_for() {
    let disk = |call: &str| Wait {
        is_uninterruptible: true,
        ..wait(call, "folio_wait_bit_common", 9.0)
    };
    let file = |name: &str, call: &str| Wait {
        object: Object::File(name.into()),
        ..wait(call, "", 9.0)
    };
    let cases = [
        (wait("clock_nanosleep", "hrtimer_nanosleep", 9.0), "sleep"),
        (wait("fsync", "jbd2_log_wait_commit", 9.0), "sync"),
        (
            wait("write", "balance_dirty_pages", 9.0),
            "dirty-throttling",
        ),
        (wait("", "shrink_folio_list", 9.0), "reclaim"),
        (wait("rmdir", "synchronize_rcu_normal", 9.0), "rcu"),
        (
            wait("munmap", "rwsem_down_write_slowpath", 9.0),
            "kernel-lock",
        ),
        (disk("pread64"), "storage-reads"),
        (file("pipe:[7]", "write"), "pipe"),
        (file("socket:[7]", "recvfrom"), "network"),
        (wait("epoll_wait", "ep_poll", 9.0), "poll"),
        (at_word(0x10, 9.0, &[1]), "hot-lock"),
        (wait("ioctl", "vfio_wait", 9.0), "one-place"),
        (wait("flock", "locks_lock_inode_wait", 9.0), "file-lock"),
        (at_word_in("pthread_cond_wait", 9.0, &[1]), "signals"),
        (wait("accept", "inet_csk_accept", 9.0), "idle"),
        (
            Wait {
                object: Object::Stop,
                ..wait("", "do_signal_stop", 9.0)
            },
            "stopped",
        ),
        (wait("", "", 9.0), ""),
    ];
    for (wait, expected) in cases {
        assert_eq!(rule(&blocked(wait.clone())), expected, "{wait:?}");
    }
}

#[test]
fn futexes_are_told_apart_by_word() {
    let threads: Vec<Thread> = (1..=6).map(|id| thread(id, [1.0, 0.0, 0.0])).collect();
    let one = Facts {
        waits: vec![at_word(0x10, 40.0, &[1, 2, 3]), at_word(0x20, 5.0, &[4])],
        ..facts(threads.clone())
    };
    assert_eq!(rule(&one), "hot-lock");
    let many: Vec<Wait> = (1..=6)
        .map(|id| at_word(0x10 * u64::from(id), 8.0, &[id]))
        .collect();
    assert_eq!(
        rule(&Facts {
            waits: many,
            ..facts(threads)
        }),
        "many-locks"
    );
}

#[test]
fn herd_is_no_lock() {
    let mut herd = at_word(0x10, 70.0, &[1, 2, 3, 4, 5, 6]);
    herd.stack = vec!["pthread_cond_wait (libc.so.6)".into(), "work".into()];
    let woken = (1..=6).map(|id| Thread {
        voluntary: 20_000,
        ..thread(id, [0.2, 0.8, 0.5])
    });
    let facts = Facts {
        waits: vec![herd],
        ..facts(woken.collect())
    };
    assert_eq!(rule(&facts), "false-wakeups");
}

#[test]
fn kernel_time_is_named_by_entry() {
    let faults = [
        "clear_page_rep",
        "handle_mm_fault",
        "exc_page_fault",
        "asm_exc_page_fault",
    ];
    let touching = Counters {
        minor_faults: 100_000,
        touched_pages: 90_000,
        ..Counters::default()
    };
    let again = Counters {
        touched_pages: 1000,
        ..touching
    };
    let split = Counters {
        huge_pages_split: 5000,
        ..touching
    };
    let tiny = Counters {
        writes: 1_000_000,
        written_bytes: 1_000_000,
        ..Counters::default()
    };
    let failing = Counters {
        reads: 1_000_000,
        ..Counters::default()
    };
    let cases = [
        (in_kernel(&faults, touching), "page-faults"),
        (in_kernel(&faults, again), "refaults"),
        (in_kernel(&faults, split), "huge-pages"),
        (
            in_kernel(&["vfs_write", "ksys_write", "do_syscall_64"], tiny),
            "tiny-calls",
        ),
        (
            in_kernel(&["pipe_read", "vfs_read", "ksys_read"], failing),
            "failing-calls",
        ),
        (
            in_kernel(&["link_path_walk", "__x64_sys_access"], Counters::default()),
            "one-call",
        ),
        (
            in_kernel(
                &["osq_lock", "rwsem_down_write_slowpath", "__x64_sys_munmap"],
                Counters::default(),
            ),
            "lock-spinning",
        ),
        (in_kernel(&["something"], Counters::default()), ""),
    ];
    for (facts, expected) in cases {
        assert_eq!(rule(&facts), expected, "{:?}", facts.samples);
    }
}

#[test]
fn memory_on_swap_is_no_refault() {
    let counters = Counters {
        minor_faults: 90_000,
        major_faults: 10_000,
        touched_pages: 100,
        swapped_pages: 9000,
        swapped_in: 50_000,
        ..Counters::default()
    };
    let fault = Wait {
        is_uninterruptible: true,
        ..wait("", "folio_wait_bit_common", 3.0)
    };
    let facts = |counters| Facts {
        waits: vec![fault.clone()],
        ..in_kernel(&["swap_readpage", "exc_page_fault"], counters)
    };
    assert_eq!(rule(&facts(counters)), "swap");
    // Another program is on swap.
    assert_ne!(
        rule(&facts(Counters {
            swapped_pages: 0,
            ..counters
        })),
        "swap"
    );
}

#[test]
fn new_processes_are_counted() {
    let of = |created| {
        let ended = ShortLived {
            user_s: 1.0,
            system_s: 5.0,
            created,
        };
        let own = sampled(vec![stack(&["copy_process", "__x64_sys_clone"], 100)]);
        Facts {
            short_lived: ended,
            samples: own,
            ..facts(vec![thread(1, [0.2, 2.0, 0.0])])
        }
    };
    let created = |processes, threads| of(Some(Created { processes, threads }));
    assert_eq!(rule(&created(20_000, 0)), "new-processes");
    let threads = answer(&created(10, 20_000)).cause.unwrap().cause;
    assert!(
        threads.starts_with("it creates 2001 threads a second"),
        "{threads}"
    );
    // Others created processes, or it is unknown who did.
    assert!(rule(&created(100, 0)) != "new-processes" && rule(&of(None)) != "new-processes");
}

#[test]
fn each_variable_is_a_suspect_of_its_own() {
    let debugged = story();
    let switches = debugged.answer.cause.unwrap().switches;
    let [
        Switch::Variable(Variable {
            name: "LD_PRELOAD",
            part: Suspect::Library(library),
            ..
        }),
    ] = &switches[..]
    else {
        panic!("{switches:?}");
    };
    assert_eq!(library, "libc_malloc_debug.so.0");
    // Linked or set otherwise, it cannot be switched.
    let mut facts = debugged.facts;
    facts
        .settings
        .environment
        .insert("LD_PRELOAD".into(), "/opt/libfast.so".into());
    assert!(answer(&facts).cause.unwrap().switches.is_empty());
    let mut facts = in_kernel(
        &["exc_page_fault"],
        Counters {
            minor_faults: 100_000,
            touched_pages: 100,
            ..Counters::default()
        },
    );
    let set = [
        ("MALLOC_TOP_PAD_", "0"),
        (
            "GLIBC_TUNABLES",
            "glibc.malloc.check=3:glibc.malloc.trim_threshold=0",
        ),
    ];
    facts.settings.environment = set.map(|(name, value)| (name.into(), value.into())).into();
    let found = answer(&facts).cause.unwrap();
    let names: Vec<String> = found.switches.iter().map(Switch::name).collect();
    assert_eq!(
        names,
        [
            "MALLOC_TOP_PAD_",
            "glibc.malloc.trim_threshold in GLIBC_TUNABLES"
        ]
    );
}

#[test]
fn splits_of_the_host_are_a_hypothesis() {
    let faults = ["clear_page_rep", "handle_mm_fault", "exc_page_fault"];
    let split = Counters {
        huge_pages_split: 5000,
        minor_faults: 100_000,
        touched_pages: 90_000,
        ..Counters::default()
    };
    let cause_and_certainty = |facts: &Facts| {
        let cause = answer(facts).cause.unwrap();
        (cause.rule, cause.certainty)
    };
    let mut facts = in_kernel(&faults, split);
    assert_eq!(
        cause_and_certainty(&facts),
        ("huge-pages", Certainty::Hypothesis)
    );
    let own = stack(&["split_huge_pmd_locked", "__x64_sys_madvise"], 5);
    facts.samples.as_mut().unwrap().stacks.push(own);
    assert_eq!(
        cause_and_certainty(&facts),
        ("huge-pages", Certainty::Likely)
    );
}

#[test]
fn waiting_is_attributed() {
    let waiting = vec![thread(1, [5.0, 0.0, 5.0])];
    let busy = |others_s, steal| Host {
        others_s,
        steal,
        ..facts(Vec::new()).host
    };
    let neighbours = Facts {
        host: busy(30.0, 0.0),
        ..facts(waiting.clone())
    };
    assert_eq!(rule(&neighbours), "neighbours");
    let stolen = Facts {
        host: busy(1.0, 0.3),
        ..facts(waiting)
    };
    assert_eq!(rule(&stolen), "steal");
    let narrow: Vec<Thread> = (1..=3)
        .map(|id| Thread {
            allowed: 1,
            ..thread(id, [3.3, 0.0, 6.7])
        })
        .collect();
    assert_eq!(rule(&facts(narrow)), "affinity");
    assert_eq!(
        rule(&facts(
            (1..=8).map(|id| thread(id, [5.0, 0.0, 5.0])).collect()
        )),
        "oversubscription"
    );
    let settings = Settings {
        throttled: (90, 100),
        quota: Some(300),
        ..Settings::default()
    };
    assert_eq!(
        rule(&Facts {
            settings,
            ..facts(vec![thread(1, [3.0, 0.0, 7.0])])
        }),
        "quota"
    );
}

#[test]
fn reached_limit_is_named_and_can_be_switched() {
    let limit = |of, used| Limit {
        of,
        value: 100 << 20,
        used,
        file: "/limit".into(),
        without: "max",
    };
    let mut facts = blocked(wait("", "shrink_folio_list", 9.0));
    facts.settings.limits = vec![limit(Limited::Memory, 50 << 20)];
    assert!(answer(&facts).cause.unwrap().switches.is_empty());
    facts.settings.limits = vec![limit(Limited::Memory, 99 << 20)];
    let found = answer(&facts).cause.unwrap();
    assert_eq!(
        found.switches,
        [Switch::File {
            path: "/limit".into(),
            without: "max"
        }]
    );
    assert!(
        found.cause.ends_with("; its cgroup may have 100.0 MiB"),
        "{}",
        found.cause
    );
    let mut facts = in_kernel(
        &["alloc_fd", "__x64_sys_accept4", "do_syscall_64"],
        Counters::default(),
    );
    assert_ne!(rule(&facts), "open-files");
    facts.settings.limits = vec![limit(Limited::Files, 100 << 20)];
    assert_eq!(rule(&facts), "open-files");
}

#[test]
fn slow_clock_and_mitigations_are_causes() {
    let busy = |now| Facts {
        host: Host {
            frequency: Some([now, 3_600_000]),
            ..facts(Vec::new()).host
        },
        ..facts(vec![thread(1, [9.0, 0.5, 0.0])])
    };
    assert_eq!(
        (rule(&busy(1_200_000)), rule(&busy(3_500_000))),
        ("frequency", "")
    );
    let thunks = in_kernel(
        &["srso_alias_return_thunk", "vfs_read", "__x64_sys_read"],
        Counters::default(),
    );
    assert_eq!(rule(&thunks), "one-call");
    let spread = ["read", "write", "lseek"].map(|call| {
        let at = format!("__x64_sys_{call}");
        stack(&["srso_alias_return_thunk", &at], 30)
    });
    let spread = Facts {
        samples: sampled(spread.to_vec()),
        ..thunks
    };
    assert_eq!(rule(&spread), "mitigations");
}

#[test]
fn neighbours_do_not_hide_the_own_cause() {
    let samples = sampled(vec![stack(&[], 100)]);
    let host = Host {
        others_s: 30.0,
        ..facts(Vec::new()).host
    };
    let found = answer(&Facts {
        samples,
        host,
        ..facts(vec![thread(1, [5.0, 0.0, 5.0])])
    });
    assert_eq!(found.cause.unwrap().rule, "one-function");
    assert_eq!(found.outside.unwrap().rule, "neighbours");
}

#[test]
fn settings_come_before_what_they_cause() {
    let environment = [("MALLOC_TRIM_THRESHOLD_".to_owned(), "0".to_owned())]
        .into_iter()
        .collect();
    let mut facts = in_kernel(
        &["exc_page_fault"],
        Counters {
            minor_faults: 100_000,
            touched_pages: 100,
            ..Counters::default()
        },
    );
    assert_eq!(rule(&facts), "refaults");
    facts.settings = Settings {
        environment,
        ..Settings::default()
    };
    assert_eq!(rule(&facts), "allocator-trimming");
}

#[test]
fn variable_without_its_library_is_no_cause() {
    // Since glibc 2.34 MALLOC_CHECK_ alone does nothing.
    let environment = [("MALLOC_CHECK_".to_owned(), "3".to_owned())]
        .into_iter()
        .collect();
    let settings = Settings {
        environment,
        libraries: vec!["libc.so.6".into()],
        ..Settings::default()
    };
    let samples = sampled(vec![stack(&[], 100)]);
    assert_eq!(
        rule(&Facts {
            settings,
            samples,
            ..facts(vec![thread(1, [10.0, 0.0, 0.0])])
        }),
        "one-function"
    );
}

#[test]
fn waiting_for_own_threads_takes_no_part() {
    let join = Futex {
        word: (1, 0x10),
        is_join: true,
        ..Futex::default()
    };
    let join = Wait {
        object: Object::Futex(join),
        threads: vec![2],
        ..wait("futex", "", 10.0)
    };
    let idle = Thread {
        voluntary: 1,
        ..thread(2, [0.0, 0.0, 0.0])
    };
    let facts = Facts {
        waits: vec![join],
        ..facts(vec![thread(1, [10.0, 0.0, 0.0]), idle])
    };
    let view = View::new(&facts);
    assert_eq!((view.active.len(), view.budget.user), (1, 1.0));
}

#[test]
fn rules_have_names_and_reasons() {
    let names: std::collections::BTreeSet<&str> = RULES.iter().map(|rule| rule.name).collect();
    assert_eq!(names.len(), RULES.len());
    assert!(RULES.iter().all(|rule| rule.reason.ends_with('.')));
    assert!(RULES.is_sorted_by_key(|rule| rule.branch));
}

/// The story of a benchmark with a debug allocator.
fn story() -> Explained {
    let library = "libc_malloc_debug.so.0";
    let futex = Futex {
        word: (1, 0xb220),
        mapping: format!("{library}+0xb220"),
        ..Futex::default()
    };
    let lock = Wait {
        object: Object::Futex(futex),
        threads: vec![1, 2, 3, 4],
        stack: vec![
            "pthread_mutex_lock (libc.so.6)".into(),
            format!("malloc ({library})"),
            "search_mem".into(),
        ],
        ..wait("futex", "futex_do_wait", 30.0)
    };
    let settings = Settings {
        environment: [("LD_PRELOAD", library), ("MALLOC_CHECK_", "3")]
            .map(|(a, b)| (a.into(), b.into()))
            .into(),
        glibc: Some((2, 36)),
        libraries: vec!["libc.so.6".into(), library.into()],
        ..Settings::default()
    };
    let in_library = Stack {
        user: vec![format!("malloc ({library})"), "search_mem".into()],
        ..stack(&[], 60)
    };
    let samples = Some(Samples {
        faults: vec![FaultingCode {
            function: "search_mem".into(),
            samples: 10,
        }],
        ..sampled(vec![
            in_library,
            stack(&["clear_page_rep", "exc_page_fault"], 40),
        ])
        .unwrap_or_default()
    });
    let host = Host {
        governor: "powersave".into(),
        mitigations: vec!["meltdown: PTI".into(), "retbleed: IBRS".into()],
        pressure: Some(Pressure {
            memory: 0.0,
            io: 0.25,
        }),
        ..facts(Vec::new()).host
    };
    let facts = Facts {
        host,
        settings,
        samples,
        waits: vec![lock],
        gaps: vec![Gap {
            what: "x",
            why: "y".into(),
            remedy: "run it as root",
        }],
        costs: vec![("threads", 0.02), ("names", 0.1)],
        ..facts((1..=4).map(|id| thread(id, [1.0, 0.5, 0.5])).collect())
    };
    let end = End {
        text: "exit status 7".into(),
        state: EndState::Failed,
        exit_code: Some(7),
        signal: None,
    };
    Explained {
        answer: answer(&facts),
        facts,
        end,
        command: "marvin explain -- ./program".into(),
    }
}

#[test]
fn story_as_documents() {
    let text = document(&story()).unwrap().text(&Styles::plain());
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    insta::assert_snapshot!("text", text);
    insta::assert_snapshot!("markdown", document(&story()).unwrap().markdown());
    insta::assert_snapshot!("json", json(&story()).unwrap());
    assert!(
        document(&story())
            .unwrap()
            .html()
            .unwrap()
            .contains("search_mem")
    );
}

proptest! {
    #[test]
    fn budgets_close(
        parts in prop::collection::vec((0.0..5.0_f64, 0.0..5.0_f64, 0.0..5.0_f64), 1..8),
    ) {
        let threads: Vec<Thread> = parts
            .into_iter()
            .zip(1..)
            .map(|((a, b, c), id)| thread(id, [a, b, c]))
            .collect();
        let budget = Budget::sum(&threads);
        let sum = budget.user + budget.system + budget.waiting + budget.blocked;
        prop_assert!((sum - 1.0).abs() < 0.02, "{budget:?}");
    }

    #[test]
    fn nothing_is_shown_without_verification(
        parts in prop::collection::vec((0.0..5.0_f64, 0.0..5.0_f64, 0.0..5.0_f64), 1..8),
        call in prop::sample::select(vec!["futex", "read", "poll", "munmap", "fsync", ""]),
    ) {
        let threads = parts
            .into_iter()
            .zip(1..)
            .map(|((a, b, c), id)| thread(id, [a, b, c]))
            .collect();
        let facts = Facts {
            waits: vec![wait(call, "", 9.0)],
            ..facts(threads)
        };
        let found = answer(&facts);
        for finding in found.cause.iter().chain(&found.others) {
            prop_assert!(finding.certainty < Certainty::Shown);
            prop_assert!((0.0..=1.0001).contains(&finding.share), "{finding:?}");
        }
    }
}
