//! What the arguments of system calls add to sentences, and kinds of the kernel's work that they
//! tell.

use crate::answer;
use crate::facts::{
    Behind, Called, Counters, Created, Doing, Facts, Object, Samples, ShortLived, Stack, Thread,
    Wait,
};
use crate::finding::Certainty;
use crate::tests::{at_word, facts, rule, stack, thread, wait};
use crate::waits::{Kind, kind};

fn called(call: &str, file: &str, arguments: [u64; 4], result: Option<i64>) -> Called {
    Called {
        call: call.into(),
        file: file.into(),
        arguments,
        result,
        samples: 30,
    }
}

/// A thread that is in the kernel nearly always, with what its calls were asked for.
fn in_calls(stacks: Vec<Stack>, calls: Vec<Called>) -> Facts {
    Facts {
        samples: Some(Samples {
            stacks,
            calls,
            ..Samples::default()
        }),
        ..facts(vec![thread(1, [1.0, 8.9, 0.0])])
    }
}

fn cause(facts: &Facts) -> String {
    answer(facts).cause.unwrap().cause
}

#[test]
fn failing_call_has_path_and_error() {
    let open = ["do_sys_openat2", "__x64_sys_openat", "do_syscall_64"];
    let calls = vec![
        called("openat", "/srv/missing", [0; 4], None),
        called("openat", "", [0; 4], Some(-2)),
    ];
    let facts = in_calls(vec![stack(&open, 90)], calls);
    assert_eq!(
        cause(&facts),
        "it is in the system call openat (/srv/missing), which mostly fails (ENOENT: no such file), in work"
    );
}

#[test]
fn place_with_little_time_is_hypothesis() {
    let certainty = |samples| {
        let lseek = stack(&["ext4_llseek", "__x64_sys_lseek"], samples);
        let others = (0..10).map(|number| Stack {
            user: vec![format!("work{number}")],
            ..stack(&[], (100 - samples) / 10)
        });
        let stacks = others.chain([lseek]).collect();
        let facts = Facts {
            samples: in_calls(stacks, Vec::new()).samples,
            ..facts(vec![thread(
                1,
                [0.1 * (100 - samples) as f64, 0.1 * samples as f64, 0.0],
            )])
        };
        assert_eq!(rule(&facts), "one-call");
        answer(&facts).cause.unwrap().certainty
    };
    assert_eq!(certainty(30), Certainty::Hypothesis);
    assert_eq!(certainty(60), Certainty::Likely);
}

#[test]
fn busy_loop_has_options_of_call() {
    // The call's own function ends with a jump to this one.
    let wait = Stack {
        user: vec!["wait4 (libc.so.6)".into(), "reap".into(), "main".into()],
        ..stack(
            &[
                "kernel_wait4",
                "do_syscall_64",
                "entry_SYSCALL_64_after_hwframe",
            ],
            90,
        )
    };
    let calls = vec![called("wait4", "", [u64::from(u32::MAX), 0, 1, 0], None)];
    let facts = in_calls(vec![wait], calls);
    assert_eq!(rule(&facts), "busy-polling");
    assert!(cause(&facts).contains("with WNOHANG"), "{}", cause(&facts));
}

#[test]
fn handled_signal_is_named() {
    let deliver = ["get_signal", "arch_do_signal_or_restart", "do_syscall_64"];
    let calls = vec![called("rt_sigreturn", "", [14, 0, 0, 0], None)];
    let facts = in_calls(vec![stack(&deliver, 90)], calls);
    assert_eq!(rule(&facts), "signal-handler");
    assert!(cause(&facts).starts_with("it handles SIGALRM"));
}

#[test]
fn signal_of_own_timer_is_told() {
    let deliver = ["get_signal", "arch_do_signal_or_restart", "do_syscall_64"];
    let set = Stack {
        user: vec!["setitimer (libc.so.6)".into(), "set_timer".into()],
        ..stack(&deliver, 90)
    };
    let facts = in_calls(vec![set], Vec::new());
    assert!(cause(&facts).starts_with("it handles a signal of its own timer (setitimer)"));
}

#[test]
fn pages_shared_since_fork_are_copied() {
    let copy = [
        "copy_mc_to_kernel",
        "wp_page_copy",
        "do_wp_page",
        "exc_page_fault",
    ];
    let facts = Facts {
        counters: Counters {
            minor_faults: 100_000,
            touched_pages: 90_000,
            ..Counters::default()
        },
        short_lived: ShortLived {
            created: Some(Created {
                processes: 20,
                threads: 0,
            }),
            ..ShortLived::default()
        },
        ..in_calls(vec![stack(&copy, 90)], Vec::new())
    };
    assert_eq!(rule(&facts), "page-faults");
    assert!(cause(&facts).contains("copy on write"), "{}", cause(&facts));
}

#[test]
fn stacks_of_threads_belong_to_threads() {
    let of_thread = |kernel: &[&str], user: &str, samples| Stack {
        user: vec![user.into(), "run_all".into()],
        ..stack(kernel, samples)
    };
    let stacks = vec![
        of_thread(&["__x64_sys_clone3"], "clone3 (libc.so.6)", 20),
        of_thread(&["__x64_sys_mprotect"], "pthread_create (libc.so.6)", 40),
        of_thread(&["__x64_sys_munmap"], "libc.so.6+0x86000", 30),
    ];
    let facts = Facts {
        short_lived: ShortLived {
            created: Some(Created {
                processes: 0,
                threads: 50_000,
            }),
            ..ShortLived::default()
        },
        ..in_calls(stacks, Vec::new())
    };
    assert!(cause(&facts).starts_with("it creates 5000 threads a second"));
}

#[test]
fn spread_script_is_told_by_its_function() {
    let user = |function: &str, samples| Stack {
        user: vec![
            function.into(),
            "_PyEval_EvalFrameDefault (libpython3.11.so)".into(),
        ],
        samples,
        ..Stack::default()
    };
    let libpython = ["PyDict_SetItem", "PyList_New", "PyTuple_New", "PyLong_Add"];
    let stacks = libpython.map(|name| user(&format!("{name} (libpython3.11.so)"), 25));
    let script = Stack {
        program: "Python".into(),
        user: vec!["insert store.py".into(), "load store.py".into()],
        samples: 40,
        ..Stack::default()
    };
    let facts = Facts {
        samples: in_calls(stacks.into(), Vec::new()).samples,
        scripts: vec![script],
        ..facts(vec![thread(1, [9.8, 0.1, 0.0])])
    };
    assert_eq!(
        cause(&facts),
        "it computes, spread over many functions (PyDict_SetItem (libpython3.11.so) 25 %, PyList_New (libpython3.11.so) 25 %, PyLong_Add (libpython3.11.so) 25 %); in Python that is in insert store.py (called by load store.py)"
    );
}

#[test]
fn sleeper_that_holds_a_lock_is_told() {
    let sleeper = Thread {
        process: 2,
        ..thread(2, [0.0; 3])
    };
    let sleep = Wait {
        threads: vec![2],
        ..wait("clock_nanosleep", "hrtimer_nanosleep", 9.8)
    };
    let lock = Wait {
        object: Object::File("/srv/deploy.lock".into()),
        threads: vec![1],
        behind: vec![Behind {
            process: 2,
            thread: 2,
            is_own: true,
            doing: vec![Doing {
                looks: 9,
                wait: Some(Box::new(sleep.clone())),
                ..Doing::default()
            }],
            ..Behind::default()
        }],
        ..wait("flock", "flock_lock_inode_wait", 9.8)
    };
    let facts = Facts {
        waits: vec![sleep, lock],
        ..facts(vec![thread(1, [0.0; 3]), sleeper])
    };
    let sentence = cause(&facts);
    assert!(
        sentence.contains("lock of a file (/srv/deploy.lock)"),
        "{sentence}"
    );
}

#[test]
fn threads_woken_singly_are_no_herd() {
    let mut waiting = at_word(0x10, 70.0, &[1, 2, 3, 4, 5, 6]);
    waiting.stack = vec!["pthread_cond_wait (libc.so.6)".into(), "work".into()];
    let woken = (1..=6).map(|id| Thread {
        voluntary: 20_000,
        ..thread(id, [0.2, 0.8, 0.5])
    });
    let wake = ["futex_wake", "__x64_sys_futex"];
    let calls = vec![called("futex", "", [0, 129, 1, 0], None)];
    let facts = Facts {
        waits: vec![waiting],
        samples: in_calls(vec![stack(&wake, 90)], calls).samples,
        ..facts(woken.collect())
    };
    assert_eq!(rule(&facts), "false-wakeups");
    assert!(
        cause(&facts).contains("woken one at a time"),
        "{}",
        cause(&facts)
    );
}

#[test]
fn meaning_comes_before_spread_script() {
    let user = |function: &str, samples| Stack {
        user: vec![
            format!("{function} (libsqlite3.so.0)"),
            "sqlite3VdbeExec (libsqlite3.so.0)".into(),
            "_PyEval_EvalFrameDefault (libpython3.11.so)".into(),
        ],
        samples,
        ..Stack::default()
    };
    let stacks = ["a", "b", "c", "d"].map(|name| user(name, 25));
    let script = Stack {
        program: "Python".into(),
        user: vec!["search store.py".into()],
        samples: 40,
        ..Stack::default()
    };
    let facts = Facts {
        samples: in_calls(stacks.into(), Vec::new()).samples,
        scripts: vec![script],
        ..facts(vec![thread(1, [9.8, 0.1, 0.0])])
    };
    assert_eq!(rule(&facts), "known-function");
}

#[test]
fn caretaker_of_go_is_idle() {
    let of = |stack: &[&str]| Wait {
        stack: stack.iter().map(|one| (*one).to_owned()).collect(),
        ..wait("nanosleep", "hrtimer_nanosleep", 9.0)
    };
    let facts = facts(vec![thread(1, [0.0; 3])]);
    let caretaker = of(&["runtime.usleep.abi0", "threadentry", "libc.so.6+0x891f0"]);
    assert_eq!(kind(&facts, &caretaker), Kind::Idle);
    let own = of(&["usleep (libc.so.6)", "wait_for_card", "threadentry"]);
    assert_eq!(kind(&facts, &own), Kind::Sleep);
}
