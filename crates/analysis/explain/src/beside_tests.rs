//! What is said beside a cause.

use crate::answer;
use crate::facts::{
    Called, Counters, Created, Facts, Futex, HotLoop, Object, Samples, ShortLived, Stack, Started,
    Wait, Walk,
};
use crate::tests::{at_word, facts, sampled, thread, wait};

fn sentence(facts: &Facts) -> String {
    answer(facts).cause.unwrap().cause
}

fn in_call(function: &str, samples: u64) -> Stack {
    Stack {
        program: "program".into(),
        kernel: vec![function.into()],
        user: vec!["work".into(), "main".into()],
        samples,
    }
}

/// A program that runs for nine of ten seconds, with its calls.
fn running(calls: &[(&str, u64, &str, [u64; 4])]) -> Facts {
    let mut stacks = vec![in_call("x", 0)];
    for (call, samples, ..) in calls {
        stacks.push(in_call(&format!("__x64_sys_{call}"), *samples));
    }
    let called = calls.iter().map(|(call, samples, file, arguments)| Called {
        call: (*call).into(),
        file: (*file).into(),
        arguments: *arguments,
        result: None,
        samples: *samples,
    });
    Facts {
        samples: Some(Samples {
            calls: called.collect(),
            ..sampled(stacks).unwrap()
        }),
        ..facts(vec![thread(1, [3.0, 6.0, 0.0])])
    }
}

#[test]
fn file_opened_again_is_named() {
    let calls = |path| {
        [
            ("write", 60, "", [3, 0, 90_000, 0]),
            ("openat", 20, path, [0, 0, 0, 1]),
        ]
    };
    let found = sentence(&running(&calls("/srv/app.log")));
    assert!(
        found.ends_with("; it opens /srv/app.log again and again"),
        "{found}"
    );
    for other in ["", "/usr/lib/libz.so.1"] {
        let found = sentence(&running(&calls(other)));
        assert!(!found.contains("again and again"), "{found}");
    }
}

#[test]
fn loop_without_waiting_is_named() {
    let polls = |timeout| {
        [
            ("epoll_wait", 50, "", [3, 0, 64, timeout]),
            ("write", 45, "", [3, 0, 90_000, 0]),
        ]
    };
    let found = sentence(&running(&polls(0)));
    assert!(
        found.contains("with a timeout of 0 at each turn"),
        "{found}"
    );
    let found = sentence(&running(&polls(100)));
    assert!(!found.contains("timeout of 0"), "{found}");
}

#[test]
fn function_that_calls_back_is_named() {
    let with = |samples| Facts {
        samples: sampled(vec![
            Stack {
                user: [
                    "compare",
                    "libc.so.6+0x10",
                    "bsearch (libc.so.6)",
                    "find",
                    "main",
                ]
                .map(str::to_owned)
                .to_vec(),
                samples,
                ..Stack::default()
            },
            Stack {
                user: vec!["find".into(), "main".into()],
                samples: 50,
                ..Stack::default()
            },
        ]),
        ..facts(vec![thread(1, [9.0, 0.0, 0.0])])
    };
    let found = sentence(&with(90));
    assert!(
        found.contains("; 64 % of what runs is called back by bsearch (libc.so.6)"),
        "{found}"
    );
    let found = sentence(&with(30));
    assert!(!found.contains("called back"), "{found}");
}

#[test]
fn monitors_of_java_are_named_with_their_taker() {
    let stack = |names: &[&str]| Stack {
        user: names.iter().map(|name| (*name).to_owned()).collect(),
        ..in_call("", 0)
    };
    let with = |samples: u64| Facts {
        waits: vec![Wait {
            stack: stack(&["ObjectMonitor::enter (libjvm.so)", "Cache.get"]).user,
            ..at_word(0x10, 1.0, &[1])
        }],
        samples: sampled(vec![
            Stack {
                kernel: Vec::new(),
                samples,
                ..stack(&["_complete_monitor_locking_Java", "App.run"])
            },
            Stack {
                kernel: Vec::new(),
                samples: 80,
                ..stack(&["App.run"])
            },
        ]),
        ..facts(vec![thread(1, [8.0, 0.0, 0.0])])
    };
    let found = sentence(&with(20));
    assert!(
        found.ends_with("; 20 % of that for monitors that other threads have, taken in Cache.get"),
        "{found}"
    );
    let found = sentence(&with(2));
    assert!(!found.contains("monitors"), "{found}");
}

#[test]
fn many_small_writes_are_counted() {
    let with = |writes, written_bytes| {
        let computing = Stack {
            kernel: Vec::new(),
            ..in_call("", 90)
        };
        Facts {
            counters: Counters {
                writes,
                written_bytes,
                ..Counters::default()
            },
            samples: sampled(vec![computing, in_call("__x64_sys_write", 10)]),
            ..facts(vec![thread(1, [8.1, 0.9, 0.0])])
        }
    };
    let found = sentence(&with(900_000, 43_200_000));
    assert!(
        found.ends_with("; it makes 90000 write calls a second of 48 bytes each"),
        "{found}"
    );
    let found = sentence(&with(900_000, 0));
    assert!(
        found.contains("calls a second return without data (0 bytes)"),
        "{found}"
    );
    for few in [with(100_000, 4_800_000), with(900_000, 9_000_000_000)] {
        let found = sentence(&few);
        assert!(!found.contains("calls a second"), "{found}");
    }
}

#[test]
fn uneven_shares_before_a_barrier_are_said() {
    let waiting = |id, seconds| Wait {
        stack: vec![
            "gomp_team_barrier_wait (libgomp.so.1)".into(),
            "solve".into(),
        ],
        ..at_word(0x10, seconds, &[id])
    };
    let with = |slow, others| Facts {
        waits: vec![waiting(1, 0.4), waiting(2, 9.0), waiting(3, 9.0)],
        samples: sampled(vec![Stack {
            kernel: Vec::new(),
            ..in_call("", 90)
        }]),
        ..facts(vec![
            thread(1, [slow, 0.0, 0.0]),
            thread(2, [others, 0.0, 0.0]),
            thread(3, [others, 0.0, 0.0]),
        ])
    };
    let found = sentence(&with(9.0, 0.5));
    assert!(
        found.contains(
            "; of 3 threads 1.8 wait at a barrier on average, while one thread runs for 90 % of the time \
             (uneven shares of the work)"
        ),
        "{found}"
    );
    let found = sentence(&with(5.0, 5.0));
    assert!(!found.contains("uneven"), "{found}");
}

#[test]
fn way_of_hot_loop_is_named() {
    let with = |walk, samples| Facts {
        samples: Some(Samples {
            hot_loop: Some(HotLoop {
                instructions: 4,
                walk,
                samples,
            }),
            ..sampled(vec![Stack {
                user: vec!["find".into(), "main".into()],
                samples: 100,
                ..Stack::default()
            }])
            .unwrap()
        }),
        ..facts(vec![thread(1, [9.0, 0.1, 0.0])])
    };
    let found = sentence(&with(Walk::Pointers, 90));
    assert!(
        found.contains("; 90 % of that in a loop of 4 instructions that follows pointers"),
        "{found}"
    );
    let found = sentence(&with(Walk::Steps(8), 90));
    assert!(found.contains("steps of 8 bytes (an array"), "{found}");
    let found = sentence(&with(Walk::Steps(4096), 90));
    assert!(
        found.contains("4096 bytes, each to another cache line"),
        "{found}"
    );
    for none in [with(Walk::Other, 90), with(Walk::Pointers, 40)] {
        let found = sentence(&none);
        assert!(!found.contains("a loop of"), "{found}");
    }
}

#[test]
fn waiting_thread_is_named_beside_sleeping_one() {
    let sleeping = wait("clock_nanosleep", "hrtimer_nanosleep", 9.0);
    let waiting = |seconds| Wait {
        object: Object::Futex(Futex::default()),
        stack: vec![
            "pthread_cond_timedwait (libc.so.6)".into(),
            "Queue::take".into(),
        ],
        ..at_word(0x10, seconds, &[2])
    };
    let with = |seconds| Facts {
        waits: vec![sleeping.clone(), waiting(seconds)],
        ..facts(vec![thread(1, [0.5, 0.5, 0.0]), thread(2, [0.0, 0.0, 0.0])])
    };
    let found = sentence(&with(8.9));
    assert!(
        found.contains(
            "; meanwhile another thread of it waits for a signal of another thread in Queue::take"
        ),
        "{found}"
    );
    let found = sentence(&with(4.0));
    assert!(!found.contains("meanwhile"), "{found}");
}

#[test]
fn threads_created_beside_cause_are_counted() {
    let with = |threads| Facts {
        short_lived: ShortLived {
            created: Some(Created {
                processes: 0,
                threads,
            }),
            ..ShortLived::default()
        },
        samples: sampled(vec![Stack {
            kernel: Vec::new(),
            ..in_call("", 90)
        }]),
        ..facts(vec![thread(1, [9.0, 0.5, 0.0])])
    };
    let found = sentence(&with(3000));
    assert!(
        found.contains("; it creates 300 threads a second"),
        "{found}"
    );
    let found = sentence(&with(50));
    assert!(!found.contains("threads a second"), "{found}");
}

#[test]
fn programs_of_idle_program_are_counted() {
    let with = |count: u64, program: &str, span: f64| Facts {
        waits: vec![wait("clock_nanosleep", "hrtimer_nanosleep", 9.0)],
        short_lived: ShortLived {
            created: Some(Created {
                processes: count,
                threads: 0,
            }),
            ..ShortLived::default()
        },
        started: vec![Started {
            program: program.into(),
            command: "ps -ax".into(),
            count,
            span,
            ..Started::default()
        }],
        ..facts(vec![thread(1, [0.5, 0.5, 0.0])])
    };
    let found = sentence(&with(80, "ps", 0.9));
    assert!(
        found.contains("; it starts ps again and again, 8 times a second, such as ps -ax"),
        "{found}"
    );
    let found = sentence(&with(80, "", 0.9));
    assert!(
        found.contains("; it creates 8 processes a second"),
        "{found}"
    );
    for few in [with(20, "ps", 0.9), with(80, "ps", 0.1), with(80, "", 0.1)] {
        let found = sentence(&few);
        assert!(!found.contains("programs a second"), "{found}");
        assert!(!found.contains("processes a second"), "{found}");
    }
}
