//! What threads wait for, whom they wait for, and what follows for the answer.

use crate::answer;
use crate::facts::{
    Behind, Connection, Created, Doing, Facts, Futex, Object, Role, Samples, ShortLived, Stack,
    Tcp, Thread, Wait, Watched, WatchedKind,
};
use crate::tests::{at_word, facts, rule, sampled, stack, thread, wait};
use crate::waits::{Kind, kind};

/// A wait at a futex with a stack, innermost first.
fn futex_in(functions: &[&str], seconds: f64, threads: &[u32]) -> Wait {
    Wait {
        stack: functions
            .iter()
            .map(|function| (*function).to_owned())
            .collect(),
        ..at_word(0x40, seconds, threads)
    }
}

fn behind(role: Role, wait: Option<Wait>) -> Behind {
    Behind {
        role,
        process: 7,
        thread: 7,
        name: "holder".into(),
        is_own: role == Role::Holder,
        doing: vec![Doing {
            wait: wait.map(Box::new),
            looks: 50,
            stack: Vec::new(),
        }],
    }
}

#[test]
fn stacks_of_runtimes_have_kinds() {
    let cases: &[(&[&str], Kind)] = &[
        (
            &[
                "pthread_cond_timedwait (libc.so.6)",
                "take_gil (libpython3.11.so.1.0)",
            ],
            Kind::Gil,
        ),
        (
            &["sem_clockwait (libc.so.6)", "PyThread_acquire_lock_timed"],
            Kind::Condition,
        ),
        (
            &[
                "pthread_cond_wait (libc.so.6)",
                "ObjectMonitor::EnterI (libjvm.so)",
                "ObjectMonitor::enter (libjvm.so)",
            ],
            Kind::Lock,
        ),
        (
            &[
                "pthread_cond_wait (libc.so.6)",
                "GangWorker::loop (libjvm.so)",
            ],
            Kind::Idle,
        ),
        (
            &["pthread_cond_wait (libc.so.6)", "Parker::park (libjvm.so)"],
            Kind::Condition,
        ),
        (
            &[
                "runtime.futex",
                "runtime.futexsleep",
                "runtime.mPark",
                "runtime.stopm",
            ],
            Kind::Idle,
        ),
        (
            &["runtime.futex", "runtime.futexsleep", "runtime.lock2"],
            Kind::Lock,
        ),
        (
            &["pthread_cond_wait (libc.so.6)", "uv_cond_wait", "worker"],
            Kind::Idle,
        ),
        (
            &[
                "pthread_cond_wait (libc.so.6)",
                "node::TaskQueue<v8::Task>::BlockingPop",
            ],
            Kind::Idle,
        ),
        (
            &[
                "sem_wait (libc.so.6)",
                "PGSemaphoreLock",
                "LWLockAcquire",
                "XLogFlush",
            ],
            Kind::Lock,
        ),
        (
            &["gomp_team_barrier_wait_end (libgomp.so.1)"],
            Kind::Barrier,
        ),
        (&["pthread_barrier_wait (libc.so.6)", "step"], Kind::Barrier),
        (
            &["std::sys::sync::mutex::futex::Mutex::lock_contended"],
            Kind::Lock,
        ),
        (&["pthread_mutex_lock (libc.so.6)", "work"], Kind::Lock),
        // A thread alone at a word without a holder waits for a signal.
        (&["own_wait"], Kind::Condition),
    ];
    for (stack, expected) in cases {
        let facts = Facts::default();
        assert_eq!(
            kind(&facts, &futex_in(stack, 1.0, &[1])),
            *expected,
            "{stack:?}"
        );
    }
    let beside = futex_in(&["own_wait"], 1.0, &[1, 2]);
    assert_eq!(kind(&Facts::default(), &beside), Kind::Lock);
}

#[test]
fn pool_beside_slow_thread_is_no_lock() {
    let pool: Vec<u32> = (2..=17).collect();
    let waits = vec![
        futex_in(
            &["pthread_cond_wait (libc.so.6)", "take_task"],
            150.0,
            &pool,
        ),
        Wait {
            is_uninterruptible: true,
            stack: vec!["save_all".into()],
            ..wait("fsync", "jbd2_log_wait_commit", 9.0)
        },
    ];
    let threads = std::iter::once(thread(1, [0.2, 0.3, 0.0]))
        .chain(pool.iter().map(|id| thread(*id, [0.01, 0.01, 0.0])));
    let all = Facts {
        waits,
        ..facts(threads.collect())
    };
    assert_eq!(rule(&all), "sync");
    // Without the slow thread they wait for one another.
    let alone = Facts {
        waits: all.waits[..1].to_vec(),
        threads: all.threads[1..].to_vec(),
        ..all
    };
    let found = answer(&alone).cause.unwrap();
    assert_eq!(found.rule, "signals");
    assert!(
        found.cause.contains("no thread of it works"),
        "{}",
        found.cause
    );
}

#[test]
fn lock_that_the_waiter_holds_itself_is_said() {
    let at_lock = || Wait {
        object: Object::File("/data/image".into()),
        ..wait("flock", "flock_lock_inode_wait", 9.5)
    };
    let held_by = |process: u32| {
        let holder = Behind {
            process,
            ..behind(Role::Holder, Some(at_lock()))
        };
        let waiter = Wait {
            behind: vec![holder],
            ..at_lock()
        };
        let facts = Facts {
            waits: vec![waiter],
            ..facts(vec![thread(1, [0.0, 0.0, 0.0])])
        };
        answer(&facts).cause.unwrap().cause
    };
    let itself = held_by(1);
    let said = "it holds that lock itself, by another descriptor";
    assert!(itself.contains(said), "{itself}");
    // Another process may wait for the same lock meanwhile.
    let other = held_by(7);
    assert!(!other.contains(said), "{other}");
}

#[test]
fn lock_names_what_its_holder_waits_for() {
    let sync = Wait {
        is_uninterruptible: true,
        stack: vec!["fdatasync (libc.so.6)".into(), "append_record".into()],
        object: Object::File("/data/wal".into()),
        ..wait("fdatasync", "jbd2_log_wait_commit", 9.0)
    };
    let lock = |wait| Wait {
        behind: vec![behind(Role::Holder, wait)],
        ..futex_in(
            &["pthread_mutex_lock (libc.so.6)", "append_record"],
            40.0,
            &[1, 2, 3],
        )
    };
    let of = |wait: Option<Wait>| {
        answer(&Facts {
            waits: vec![lock(wait)],
            ..facts((1..=4).map(|id| thread(id, [0.5, 0.5, 0.0])).collect())
        })
        .cause
        .unwrap()
    };
    let found = of(Some(sync));
    assert_eq!(found.rule, "hot-lock");
    assert!(
        found.cause.contains("its holder, process 7 holder, waits for storage in fdatasync (/data/wal) in append_record"),
        "{}",
        found.cause
    );
    // What was seen at the holder is not ruled out.
    assert!(
        found
            .evidence
            .iter()
            .all(|evidence| !evidence.rules_out.contains("storage"))
    );
    let found = of(None);
    assert!(
        found
            .cause
            .ends_with("its holder, process 7 holder, computes"),
        "{}",
        found.cause
    );
    assert!(
        found
            .evidence
            .iter()
            .any(|evidence| evidence.rules_out.contains("storage"))
    );
}

#[test]
fn peer_is_named_with_what_it_does() {
    let sleep = wait("clock_nanosleep", "hrtimer_nanosleep", 1.0);
    let recv = Wait {
        object: Object::File("socket, tcp to 127.0.0.1:80 of process 7 server".into()),
        behind: vec![behind(Role::Peer, Some(sleep))],
        ..wait("recvfrom", "wait_woken", 9.0)
    };
    let waiting = |wait: Wait| Facts {
        waits: vec![wait],
        ..facts(vec![thread(1, [0.2, 0.2, 0.0])])
    };
    let found = answer(&waiting(recv.clone())).cause.unwrap();
    assert_eq!(found.rule, "network");
    assert!(
        found
            .cause
            .ends_with("; the process at the other end, 7 holder, sleeps in work"),
        "{}",
        found.cause
    );
    assert!(
        found
            .evidence
            .iter()
            .all(|evidence| evidence.rules_out.is_empty())
    );
    let stopped = Wait {
        object: Object::Stop,
        ..wait("", "do_signal_stop", 1.0)
    };
    let pipe = Wait {
        object: Object::File("pipe:[1] of process 7 reader".into()),
        behind: vec![behind(Role::Peer, Some(stopped))],
        ..wait("write", "pipe_write", 9.0)
    };
    let found = answer(&waiting(pipe)).cause.unwrap();
    assert!(
        found.cause.ends_with("7 holder, is stopped in work"),
        "{}",
        found.cause
    );
    let tcp = Tcp {
        segment: 1460,
        unacknowledged: 1,
        unsent: 80,
        window: 10,
        ..Tcp::default()
    };
    assert!(
        tcp.is_held()
            && !Tcp {
                unsent: 2000,
                ..tcp
            }
            .is_held()
    );
    let held = Wait {
        connection: Some(Connection {
            looks: 50,
            held: [45, 0],
            unread: 0,
            tcp,
        }),
        ..recv
    };
    assert_eq!(rule(&waiting(held)), "nagle");
}

#[test]
fn event_loop_says_for_whom_it_waits() {
    let watching = |kind, file: &str| Wait {
        watched: vec![
            Watched {
                kind,
                file: file.into(),
            },
            Watched {
                kind: WatchedKind::Own,
                file: "anon_inode:[eventfd]".into(),
            },
        ],
        ..wait("epoll_wait", "ep_poll", 9.0)
    };
    let of = |wait| {
        answer(&Facts {
            waits: vec![wait],
            ..facts(vec![thread(1, [0.2, 0.2, 0.0])])
        })
        .cause
        .unwrap()
    };
    assert_eq!(
        of(watching(
            WatchedKind::Listening,
            "socket, tcp at 127.0.0.1:80"
        ))
        .rule,
        "idle"
    );
    let found = of(watching(
        WatchedKind::Socket,
        "socket, tcp to 10.0.0.1:5432",
    ));
    assert_eq!(found.rule, "poll");
    assert!(
        found
            .cause
            .contains("events of socket, tcp to 10.0.0.1:5432"),
        "{}",
        found.cause
    );
}

#[test]
fn work_of_children_is_no_creation() {
    let children = |user_s, system_s| Facts {
        short_lived: ShortLived {
            user_s,
            system_s,
            created: Some(Created {
                processes: 1000,
                threads: 0,
            }),
        },
        ..facts(vec![Thread {
            total_s: 10.0,
            ..thread(1, [0.1, 0.1, 0.0])
        }])
    };
    assert_eq!(rule(&children(1.0, 8.0)), "new-processes");
    assert_ne!(rule(&children(8.0, 1.0)), "new-processes");
}

#[test]
fn condition_variable_is_one_word() {
    let at = |address, threads: &[u32]| Wait {
        object: Object::Futex(Futex {
            word: (1, address),
            ..Futex::default()
        }),
        ..futex_in(
            &[
                "pthread_cond_timedwait (libc.so.6)",
                "take_gil (libpython3.so)",
                "send",
            ],
            20.0,
            threads,
        )
    };
    let facts = Facts {
        waits: vec![at(0x128, &[1, 2]), at(0x12c, &[1, 2])],
        ..facts(vec![
            thread(1, [0.5, 0.0, 0.0]),
            thread(2, [0.5, 0.0, 0.0]),
            thread(3, [9.9, 0.0, 0.0]),
        ])
    };
    let found = answer(&facts).cause.unwrap();
    assert_eq!(found.rule, "gil");
    assert!(
        found.cause.starts_with("2 threads wait for the GIL of CPython, which thread 3 worker holds while it computes, in send"),
        "{}",
        found.cause
    );
}

#[test]
fn own_caller_of_a_library_is_named() {
    let below = |leaf: &str, samples| Stack {
        user: [leaf, "getdate (libc.so.6)", "parse", "main"]
            .map(str::to_owned)
            .into(),
        ..stack(&[], samples)
    };
    let of = |stacks| Facts {
        samples: Some(Samples {
            stacks,
            ..Samples::default()
        }),
        ..facts(vec![thread(1, [10.0, 0.0, 0.0])])
    };
    let found = answer(&of(vec![
        below("libc.so.6+0x164b00", 90),
        below("memchr (libc.so.6)", 10),
    ]));
    let cause = found.cause.unwrap().cause;
    assert_eq!(
        cause,
        "it computes, and most of that in getdate (libc.so.6), there in libc.so.6+0x164b00, called in parse"
    );
    // Where no single function has most of the time, their caller has it.
    let spread = ["a (libx.so)", "b (libx.so)", "c (libx.so)"].map(|leaf| below(leaf, 30));
    let cause = answer(&of(spread.to_vec())).cause.unwrap().cause;
    assert_eq!(
        cause,
        "it computes, and most of that in parse, there in getdate (libc.so.6)"
    );
    // All of a program is below main, which says nothing.
    let apart = ["a", "b", "c", "d"].map(|leaf| Stack {
        user: vec![leaf.into(), "main".into()],
        ..stack(&[], 30)
    });
    assert_eq!(rule(&of(apart.to_vec())), "");
}

#[test]
fn garbage_and_patterns_are_named() {
    let in_function = |function: &str| Facts {
        samples: sampled(vec![Stack {
            user: vec!["scan".into(), function.into(), "main".into()],
            ..stack(&[], 100)
        }]),
        ..facts(vec![thread(1, [10.0, 0.0, 0.0])])
    };
    assert_eq!(
        rule(&in_function("runtime.gcAssistAlloc")),
        "garbage-collection"
    );
    assert_eq!(
        rule(&in_function("Builtins_RegExpExecInternal")),
        "known-function"
    );
    assert_eq!(rule(&in_function("__strcoll_l")), "known-function");
}

#[test]
fn time_of_a_timed_wait_is_said() {
    let with = |timeout_ms| {
        let waiting = Wait {
            timeout_ms,
            ..futex_in(
                &["pthread_cond_timedwait (libc.so.6)", "take_task"],
                9.5,
                &[1],
            )
        };
        let found = answer(&Facts {
            waits: vec![waiting],
            ..facts(vec![thread(1, [0.1, 0.1, 0.0])])
        });
        found.cause.unwrap().cause
    };
    let found = with(Some(50));
    assert!(
        found.contains(", up to 50 ms each time, in take_task"),
        "{found}"
    );
    let found = with(Some(30_000));
    assert!(found.contains(", up to 30 s each time,"), "{found}");
    assert!(!with(None).contains("each time"));
}

#[test]
fn wait_without_a_time_is_for_a_signal() {
    let with = |timeout_ms| {
        let waiting = Wait {
            object: Object::Timer,
            timeout_ms,
            ..wait("ppoll", "poll_schedule_timeout", 9.5)
        };
        let found = answer(&Facts {
            waits: vec![waiting],
            ..facts(vec![thread(1, [0.1, 0.1, 0.0])])
        });
        found.cause.unwrap().cause
    };
    let found = with(None);
    assert!(
        found.starts_with("it waits for a signal to it in ppoll, 100 times a second, in work"),
        "{found}"
    );
    assert!(with(Some(10)).starts_with("it sleeps by its own choice"));
}

#[test]
fn pooled_thread_with_task_is_not_idle() {
    let functions = [
        "clock_nanosleep (libc.so.6)",
        "fetch app.py",
        "Python's thread._worker",
    ];
    let with = |functions: &[&str]| {
        let wait = Wait {
            stack: functions.iter().map(|one| (*one).to_owned()).collect(),
            ..wait("clock_nanosleep", "hrtimer_nanosleep", 9.5)
        };
        kind(&facts(vec![thread(1, [0.0; 3])]), &wait)
    };
    assert_eq!(with(&functions), Kind::Sleep);
    let without: Vec<&str> = functions
        .into_iter()
        .filter(|one| *one != "fetch app.py")
        .collect();
    assert_eq!(with(&without), Kind::Idle);
}

#[test]
fn timer_of_a_loop_is_no_sleep() {
    let waiting = Wait {
        timeout_ms: Some(1),
        watched: vec![Watched {
            kind: WatchedKind::Own,
            file: "own pipe:[7]".into(),
        }],
        ..wait("epoll_wait", "ep_poll", 9.5)
    };
    let found = answer(&Facts {
        waits: vec![waiting],
        ..facts(vec![Thread {
            voluntary: 9000,
            ..thread(1, [0.2, 0.2, 0.0])
        }])
    });
    let cause = found.cause.unwrap().cause;
    assert!(
        cause.starts_with(
            "its loop of events waits for a timer of its own, up to 1 ms each time, 900 times a second,"
        ),
        "{cause}"
    );
}
