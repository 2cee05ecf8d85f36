//! What scripts, databases and make do, as sentences say it.

use crate::answer;
use crate::facts::{
    Behind, Doing, Facts, Object, Parked, Role, ShortLived, Stack, Thread, Wait, Watched,
    WatchedKind,
};
use crate::tests::{at_word, facts, sampled, thread, wait};
use crate::waits::{Kind, kind};

fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn cause(facts: &Facts) -> String {
    answer(facts).cause.unwrap().cause
}

fn ran(program: &str, user: &[&str], samples: u64) -> Stack {
    Stack {
        program: program.into(),
        user: strings(user),
        samples,
        ..Stack::default()
    }
}

/// A thread that computes in an interpreter, of a script of which these stacks are known.
fn computing(scripts: Vec<Stack>) -> Facts {
    Facts {
        samples: sampled(vec![ran("interpreter", &["evaluate"], 90)]),
        scripts,
        ..facts(vec![thread(1, [9.0, 0.2, 0.0])])
    }
}

#[test]
fn script_and_its_statement_stand_side_by_side() {
    let script = ["filter_stream search.py", "<module> search.py"];
    let statement = "SQL: SELECT raw FROM events OFFSET ?";
    let found = cause(&computing(vec![
        ran("Python", &script, 20),
        ran("SQL", &[statement], 9),
        ran("SQL", &[], 4),
    ]));
    assert!(
        found.ends_with(
            "; in Python that is in filter_stream search.py; the statement is SELECT raw FROM events OFFSET ?"
        ),
        "{found}"
    );
    // Where most samples have none it is none.
    let found = cause(&computing(vec![
        ran("SQL", &[statement], 9),
        ran("SQL", &[], 20),
    ]));
    assert!(!found.contains("statement"), "{found}");
}

#[test]
fn perl_library_is_named_with_its_caller() {
    let script = [
        "Perl's JSON::PP::value_to_json",
        "Perl's JSON::PP::encode",
        "export report.pl",
    ];
    let found = cause(&computing(vec![ran("Perl", &script, 20)]));
    let named = "in Perl that is in JSON::PP::encode for export report.pl";
    assert!(found.contains(named), "{found}");
}

#[test]
fn sessions_at_a_servers_lock_are_no_events() {
    let session = Wait {
        object: Object::File("anon_inode:[eventpoll]".into()),
        stack: strings(&[
            "epoll_wait (libc.so.6)",
            "WaitEventSetWait",
            "WaitLatch",
            "ProcSleep",
            "LockAcquireExtended",
            "SQL: UPDATE orders SET total = ?",
        ]),
        // The postmaster's pipe.
        watched: vec![Watched {
            kind: WatchedKind::Pipe,
            file: "own pipe:[7]".into(),
        }],
        threads: vec![2],
        ..wait("epoll_wait", "ep_poll", 9.0)
    };
    let found = answer(&Facts {
        waits: vec![session],
        ..facts(vec![thread(2, [0.1, 0.1, 0.0])])
    });
    let found = found.cause.unwrap();
    assert_eq!(found.rule, "server-lock");
    assert!(
        found.cause.contains("which another session holds"),
        "{}",
        found.cause
    );
    assert!(
        found.cause.ends_with(", for UPDATE orders SET total = ?"),
        "{}",
        found.cause
    );
}

#[test]
fn full_queue_names_what_its_consumer_waits_for() {
    let put = Wait {
        stack: strings(&[
            "PyThread_acquire_lock_timed",
            "Python's threading.Condition.wait",
        ]),
        ..at_word(0x40, 27.0, &[1, 3, 4])
    };
    let write = |file: &str| Wait {
        object: Object::File(file.into()),
        threads: vec![2],
        ..wait("fsync", "folio_wait_bit", 1.6)
    };
    // Producers that are woken for each.
    let producer = |id: u32| Thread {
        voluntary: 20_000,
        ..thread(id, [0.5, 0.3, 0.0])
    };
    let found = cause(&Facts {
        waits: vec![put, write("/srv/a"), write("/srv/b")],
        ..facts(vec![
            producer(1),
            thread(2, [4.0, 0.3, 0.0]),
            producer(3),
            producer(4),
        ])
    });
    assert!(
        found.contains("; meanwhile a thread of it waits for storage in fsync"),
        "{found}"
    );
}

#[test]
fn serial_make_is_said() {
    let make = |commands: u32| {
        let named = |id: u32, name: &str, times: [f64; 3]| Thread {
            process: id,
            name: name.into(),
            ..thread(id, times)
        };
        let mut threads = vec![named(1, "make", [0.1, 0.1, 0.0])];
        threads.extend((0..commands).map(|number| named(2 + number, "cc1", [9.0, 0.5, 0.0])));
        let children = Wait {
            object: Object::Child,
            ..wait("wait4", "do_wait", 9.8)
        };
        let facts = Facts {
            root: 1,
            waits: vec![children],
            samples: sampled(vec![ran("cc1", &["parse"], 90)]),
            ..facts(threads)
        };
        cause(&facts).contains("make runs one command at a time")
    };
    assert!(make(1));
    assert!(!make(3));
}

#[test]
fn pool_that_waits_for_itself_is_said() {
    let worker = |id: u32, inner: &str| Wait {
        stack: strings(&[
            "jdk.internal.misc.Unsafe.park",
            inner,
            "Loader.load",
            "java.util.concurrent.ThreadPoolExecutor$Worker.run",
        ]),
        ..at_word(0x40 * u64::from(id), 9.0, &[id])
    };
    let result = "java.util.concurrent.FutureTask.get";
    let rule = |second: &str| {
        let waits = vec![worker(1, result), worker(2, second)];
        let facts = Facts {
            waits,
            ..facts(vec![thread(1, [0.1, 0.1, 0.0]), thread(2, [0.1, 0.1, 0.0])])
        };
        answer(&facts).cause.map(|cause| cause.rule)
    };
    assert_eq!(rule(result), Some("pool-for-itself"));
    // One without a task would execute it.
    let queue = "java.util.concurrent.LinkedBlockingQueue.take";
    assert_ne!(rule(queue), Some("pool-for-itself"));
}

#[test]
fn language_that_ran_most_is_named() {
    let found = cause(&computing(vec![
        ran("Perl", &["print_line writer.pl"], 5),
        ran("Python", &["readline terminal.py"], 40),
    ]));
    assert!(
        found.ends_with("in Python that is in readline terminal.py"),
        "{found}"
    );
}

#[test]
fn frequent_sleeps_are_counted() {
    let facts = Facts {
        waits: vec![wait("clock_nanosleep", "hrtimer_nanosleep", 9.0)],
        ..facts(vec![Thread {
            voluntary: 70_000,
            ..thread(1, [0.2, 0.2, 0.0])
        }])
    };
    let found = cause(&facts);
    assert!(
        found.starts_with("it sleeps by its own choice, 7000 times a second, in work"),
        "{found}"
    );
}

#[test]
fn timers_of_goroutines_are_no_sleep() {
    let poll = |function: &str| Wait {
        object: Object::File("anon_inode:[eventpoll]".into()),
        stack: strings(&["epoll_wait", function]),
        watched: vec![Watched {
            kind: WatchedKind::Own,
            file: "anon_inode:[eventfd]".into(),
        }],
        timeout_ms: Some(3),
        ..wait("epoll_pwait", "ep_poll", 9.0)
    };
    let facts = facts(vec![thread(1, [0.2, 0.2, 0.0])]);
    assert_eq!(kind(&facts, &poll("runtime.netpoll")), Kind::Idle);
    assert_eq!(kind(&facts, &poll("uv_run")), Kind::Sleep);
    // What wakes up more often is woken by its pool.
    let mut woken = facts.clone();
    woken.threads[0].voluntary = 100_000;
    assert_eq!(kind(&woken, &poll("uv_run")), Kind::Idle);
}

#[test]
fn child_that_is_not_read_is_named() {
    let events = Wait {
        object: Object::File("anon_inode:[eventpoll]".into()),
        watched: vec![Watched {
            kind: WatchedKind::Own,
            file: "anon_inode:[eventfd]".into(),
        }],
        ..wait("epoll_wait", "ep_poll", 9.5)
    };
    let peer = Behind {
        role: Role::Peer,
        process: 1,
        thread: 1,
        is_own: true,
        doing: vec![Doing {
            wait: Some(Box::new(events.clone())),
            looks: 9,
            ..Doing::default()
        }],
        ..Behind::default()
    };
    let write = Wait {
        object: Object::File("own socket, unix".into()),
        threads: vec![2],
        behind: vec![peer],
        ..wait("write", "sock_alloc_send_pskb", 9.0)
    };
    let child = Thread {
        process: 2,
        name: "node".into(),
        ..thread(2, [0.1, 0.0, 0.0])
    };
    let found = cause(&Facts {
        root: 1,
        waits: vec![events, write],
        ..facts(vec![thread(1, [0.1, 0.0, 0.0]), child])
    });
    assert!(
        found.contains(
            "its child, process 2 node, waits to write, because the other end does not read (own socket, unix)"
        ),
        "{found}"
    );
}

#[test]
fn module_that_a_script_mostly_calls_is_named() {
    let call = |function: &str| {
        let function = format!("Python's {function}");
        ran(
            "Python",
            &[&*function, "find_app apps.py", "<module> apps.py"],
            5,
        )
    };
    let spread = vec![
        call("pathlib.PurePath.with_name"),
        call("pathlib.PurePath.with_suffix"),
        call("pathlib.PurePath.relative_to"),
        call("os.fspath"),
    ];
    let found = cause(&computing(spread));
    assert!(
        found.ends_with("; in Python that is in find_app apps.py, 75 % of it in pathlib"),
        "{found}"
    );
    // What the runtime does by itself is called by none of the script's functions.
    let loops = ran("JavaScript", &["Node's timers.listOnTimeout"], 9);
    let script = ran("JavaScript", &["route app.js:3"], 11);
    let found = cause(&computing(vec![loops, script]));
    assert!(!found.contains("timers"), "{found}");
}

#[test]
fn loop_that_microtasks_hold_up_is_said() {
    let with = |waited: f64| {
        let stack = [
            "run queue.js:9",
            "Node's task_queues.processTicksAndRejections",
        ];
        Facts {
            root: 1,
            waits: vec![wait("epoll_wait", "do_epoll_wait", waited)],
            ..computing(vec![ran("JavaScript", &stack, 20)])
        }
    };
    assert!(cause(&with(0.1)).contains("its loop of events does not go on"));
    assert!(!cause(&with(2.0)).contains("does not go on"));
}

/// A loop of events of Python that has nothing to do, with its coroutines.
fn with_coroutines(coroutines: &[(&[&str], f64)]) -> Facts {
    let parked = coroutines.iter().map(|(stack, number)| Parked {
        process: 1,
        stack: strings(stack),
        number: *number,
        ..Parked::default()
    });
    Facts {
        waits: vec![Wait {
            stack: strings(&["Python's selectors.EpollSelector.select"]),
            ..wait("epoll_wait", "ep_poll", 9.9)
        }],
        coroutines: parked.collect(),
        ..facts(vec![thread(1, [0.05, 0.0, 0.0])])
    }
}

#[test]
fn coroutines_say_what_they_wait_for() {
    let lock: &[&str] = &[
        "Python's asyncio.Lock.acquire",
        "save app.py",
        "serve app.py",
    ];
    let sleep: &[&str] = &["Python's asyncio.sleep", "refresh app.py"];
    let found = cause(&with_coroutines(&[(sleep, 1.0), (lock, 12.0)]));
    assert_eq!(
        found,
        "12 coroutines wait for an asyncio.Lock in save app.py (called by serve app.py); 1 coroutine \
         sleeps by choice (asyncio.sleep) in refresh app.py"
    );
    let found = cause(&with_coroutines(&[(lock, 2.0)]));
    assert!(
        found.ends_with("(a deadlock), or one that has ended had it"),
        "{found}"
    );
    let put: &[&str] = &["Python's asyncio.Queue.put", "produce app.py"];
    let found = cause(&with_coroutines(&[(put, 1.0)]));
    assert!(
        found.ends_with("; no other coroutine is left to do that"),
        "{found}"
    );
}

#[test]
fn coroutines_without_work_are_idle() {
    let get: &[&str] = &["Python's asyncio.Queue.get", "consume app.py"];
    let of_library: &[&str] = &["Python's asyncio.Event.wait"];
    for idle in [&[(get, 4.0)][..], &[(of_library, 1.0)], &[]] {
        let found = cause(&with_coroutines(idle));
        assert!(!found.contains("coroutine"), "{found}");
    }
}

#[test]
fn taken_executor_is_said_beside_coroutines() {
    let job: &[&str] = &["job app.py"];
    let mut facts = with_coroutines(&[(job, 30.0)]);
    facts.threads.push(thread(2, [0.0; 3]));
    facts.waits.push(Wait {
        stack: strings(&[
            "clock_nanosleep (libc.so.6)",
            "fetch app.py",
            "Python's thread._worker",
        ]),
        threads: vec![2],
        ..wait("clock_nanosleep", "hrtimer_nanosleep", 9.9)
    });
    let found = cause(&facts);
    assert!(
        found.starts_with("30 coroutines wait for a result")
            && found.contains("; all 1 threads of its executor"),
        "{found}"
    );
}

#[test]
fn start_of_idle_program_is_not_its_work() {
    let own = Watched {
        kind: WatchedKind::Socket,
        file: "own socket, of process 1".into(),
    };
    let lock: &[&str] = &["Python's asyncio.Lock.acquire", "save app.py"];
    let mut facts = with_coroutines(&[(lock, 2.0)]);
    facts.waits[0].watched = vec![own];
    facts.short_lived = ShortLived {
        user_s: 0.1,
        system_s: 0.05,
        ..ShortLived::default()
    };
    let found = answer(&facts).cause.unwrap();
    assert!(found.share > 0.9, "{found:?}");
}
