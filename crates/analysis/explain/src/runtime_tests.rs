//! Waiting that threads do not show: goroutines, loops that ask, pipes within the program, and what
//! processes of other programs say of themselves.

use crate::answer;
use crate::facts::{
    Behind, Created, Doing, Facts, FaultingCode, GOROUTINES, Gap, Object, Parked, Role, Samples,
    ShortLived, Stack, Started, Thread, Wait, Watched, WatchedKind,
};
use crate::tests::{at_word, facts, rule, sampled, stack, thread, wait};
use crate::waits::{Kind, kind};

fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn cause(facts: &Facts) -> String {
    answer(facts).cause.unwrap().cause
}

fn parked(reason: &str, number: f64, stack: &[&str]) -> Parked {
    Parked {
        process: 1,
        reason: reason.into(),
        stack: strings(stack),
        number,
    }
}

/// A program of Go whose threads have nothing to run.
fn without_work(parked: Vec<Parked>) -> Facts {
    let idle = Wait {
        stack: strings(&["runtime.futex", "runtime.futexsleep", "runtime.mPark"]),
        ..at_word(0x40, 9.9, &[1])
    };
    Facts {
        waits: vec![idle],
        parked,
        ..facts(vec![thread(1, [0.1, 0.0, 0.0])])
    }
}

#[test]
fn goroutines_without_own_functions_are_idle() {
    let listening = ["runtime.gopark", "net.(*TCPListener).Accept", "main.serve"];
    let facts = without_work(vec![
        parked(
            "finalizer wait",
            1.0,
            &["runtime.gopark", "runtime.runfinq"],
        ),
        parked("IO wait", 1.0, &listening),
        parked(
            "chan receive",
            8.0,
            &[
                "runtime.gopark",
                "runtime.chanrecv",
                "main.worker",
                "runtime.goexit",
            ],
        ),
    ]);
    assert_eq!(rule(&facts), "idle");
}

#[test]
fn mutex_of_go_leads_before_its_holder() {
    let facts = without_work(vec![
        parked("sleep", 1.0, &["time.Sleep", "main.flush", "main.serve"]),
        parked(
            "sync.Mutex.Lock",
            4.0,
            &[
                "internal/sync.(*Mutex).lockSlow",
                "main.handle",
                "main.serve",
            ],
        ),
    ]);
    assert_eq!(rule(&facts), "goroutines");
    assert_eq!(
        cause(&facts),
        "4 goroutines wait for a mutex in main.handle (called by main.serve); \
         1 goroutine sleeps by choice (time.Sleep), and its process wakes up 100 times a second, in \
         main.flush (called by main.serve)"
    );
}

#[test]
fn mutexes_without_other_goroutines_are_a_deadlock() {
    // `WaitGroup.Go` starts both.
    let of = |function: &str, own: &str| {
        let begin = "sync.(*WaitGroup).Go.func1";
        parked(
            "sync.RWMutex.Lock",
            1.0,
            &[function, own, "main.run", begin],
        )
    };
    let write = of("sync.(*RWMutex).Lock", "main.store");
    let read = of("sync.(*RWMutex).RLock", "main.count");
    let end = parked(
        "sync.WaitGroup.Wait",
        1.0,
        &["sync.(*WaitGroup).Wait", "main.main", "runtime.main"],
    );
    let stuck = vec![write, read, end];
    let found = cause(&without_work(stuck.clone()));
    assert!(
        found.contains("in main.store") && found.contains("in main.count"),
        "{found}"
    );
    assert!(found.ends_with("another one holds (a deadlock)"), "{found}");
    let asleep = parked("sleep", 1.0, &["time.Sleep", "main.flush", "main.run"]);
    let work = ["main.take", "main.run"];
    let at_channel = parked("chan receive", 1.0, &work);
    for other in [asleep, at_channel] {
        let found = cause(&without_work([stuck.clone(), vec![other]].concat()));
        assert!(!found.contains("deadlock"), "{found}");
    }
}

#[test]
fn output_that_a_grandchild_keeps_open_is_said() {
    let exec = [
        "os/exec.(*Cmd).awaitGoroutines",
        "os/exec.(*Cmd).Wait",
        "main.build",
    ];
    let cause = cause(&without_work(vec![parked("chan receive", 1.0, &exec)]));
    assert!(
        cause.contains("still has the write end of the pipe open in os/exec"),
        "{cause}"
    );
}

#[test]
fn pool_of_connections_is_named_by_the_library() {
    let exec = [
        "database/sql.(*DB).conn",
        "database/sql.(*DB).Exec",
        "main.save",
        "main.serve",
    ];
    let facts = without_work(vec![parked("select", 7.0, &exec)]);
    assert_eq!(
        cause(&facts),
        "7 goroutines wait for others (select) in database/sql.(*DB).conn by \
         database/sql.(*DB).Exec for main.save (called by main.serve)"
    );
}

#[test]
fn name_lookup_of_go_leads_before_its_waiters() {
    let lookup = [
        "net.(*netFD).Read",
        "net.(*Resolver).LookupAddr",
        "main.peer",
        "main.serve",
    ];
    let facts = without_work(vec![
        parked(
            "IO wait",
            5.0,
            &["net.(*netFD).Read", "main.ask", "main.serve"],
        ),
        parked("IO wait", 1.0, &lookup),
    ]);
    assert!(
        cause(&facts).starts_with("1 goroutine waits for a name server"),
        "{}",
        cause(&facts)
    );
}

fn running(user: f64, system: f64, stacks: Vec<Stack>) -> Facts {
    Facts {
        samples: sampled(stacks),
        ..facts(vec![thread(1, [user, system, 0.0])])
    }
}

#[test]
fn poll_that_returns_at_once_is_busy() {
    let asking = Stack {
        user: strings(&["epoll_wait (libc.so.6)", "run_client"]),
        ..stack(&["do_epoll_wait", "__x64_sys_epoll_wait"], 90)
    };
    let reading = |samples| Stack {
        user: strings(&["read (libc.so.6)", "run_client"]),
        ..stack(&["vfs_read", "__x64_sys_read"], samples)
    };
    let idle = running(2.0, 7.5, vec![asking.clone(), reading(5)]);
    assert_eq!(rule(&idle), "busy-polling");
    let has_work = running(2.0, 7.5, vec![asking, reading(40)]);
    assert_ne!(rule(&has_work), "busy-polling");
}

#[test]
fn loop_with_pause_spins() {
    let spinning = |pauses| {
        let samples = sampled(vec![Stack {
            user: strings(&["take_chunk", "worker"]),
            ..stack(&[], 100)
        }]);
        let pauses = vec![FaultingCode {
            function: "take_chunk".into(),
            samples: pauses,
        }];
        Facts {
            samples: samples.map(|samples| Samples { pauses, ..samples }),
            ..facts(vec![thread(1, [9.5, 0.1, 0.0])])
        }
    };
    assert_eq!(rule(&spinning(80)), "spinning");
    assert_eq!(rule(&spinning(10)), "one-function");
}

fn at_other_end(role: Role, process: u32, name: &str, doing: Option<Wait>) -> Behind {
    Behind {
        role,
        process,
        thread: process,
        name: name.into(),
        is_own: name == "parent",
        doing: vec![Doing {
            wait: doing.map(Box::new),
            looks: 50,
            stack: Vec::new(),
        }],
    }
}

#[test]
fn unread_pipe_of_a_child_is_named() {
    let join = Wait {
        object: Object::Child,
        stack: strings(&["wait4 (libc.so.6)", "collect"]),
        ..wait("wait4", "do_wait", 9.8)
    };
    let write = Wait {
        object: Object::File("own pipe:[77]".into()),
        stack: strings(&["write (libc.so.6)", "print_report"]),
        threads: vec![2],
        behind: vec![at_other_end(Role::Peer, 1, "parent", Some(join.clone()))],
        ..wait("write", "pipe_write", 9.8)
    };
    let child = Thread {
        process: 2,
        ..thread(2, [0.1, 0.0, 0.0])
    };
    let facts = Facts {
        waits: vec![join, write],
        ..facts(vec![thread(1, [0.1, 0.0, 0.0]), child])
    };
    assert_eq!(rule(&facts), "unread-pipe");
    assert!(
        cause(&facts).contains("in print_report that process 1 parent does not read"),
        "{}",
        cause(&facts)
    );
}

#[test]
fn own_write_end_of_pipe_is_deadlock() {
    let join = Wait {
        object: Object::Child,
        stack: strings(&["wait4 (libc.so.6)", "close_filter"]),
        ..wait("wait4", "do_wait", 9.8)
    };
    let read = Wait {
        object: Object::File("own pipe:[77]".into()),
        stack: strings(&["read (libc.so.6)", "filter"]),
        threads: vec![2],
        behind: vec![at_other_end(Role::Peer, 1, "parent", Some(join.clone()))],
        ..wait("read", "pipe_read", 9.8)
    };
    let with = |others: &[Wait], running| {
        let child = Thread {
            process: 2,
            ..thread(2, [running, 0.0, 0.0])
        };
        Facts {
            waits: [&[join.clone(), read.clone()][..], others].concat(),
            ..facts(vec![thread(1, [0.1, 0.0, 0.0]), child])
        }
    };
    let found = cause(&with(&[], 0.1));
    assert!(
        found.contains("waits to read from a pipe without an end in filter that process 1 parent still has open")
            && found.ends_with("each waits for the other (a deadlock)"),
        "{found}"
    );
    // Another thread of the parent may still write, unless it sleeps all along.
    let asleep = Wait {
        threads: vec![3],
        ..wait("clock_nanosleep", "hrtimer_nanosleep", 9.8)
    };
    let with_sleeper = |voluntary| {
        let mut facts = with(std::slice::from_ref(&asleep), 0.1);
        facts.threads.push(Thread {
            voluntary,
            ..thread(3, [0.0; 3])
        });
        rule(&facts)
    };
    assert_ne!(with_sleeper(40), "unread-pipe");
    // A further process may be what the parent waits for.
    let mut facts = with(std::slice::from_ref(&asleep), 0.1);
    facts.threads.push(Thread {
        process: 3,
        voluntary: 1,
        ..thread(3, [0.0; 3])
    });
    assert_ne!(rule(&facts), "unread-pipe");
    assert_eq!(with_sleeper(1), "unread-pipe");
    assert_ne!(rule(&with(&[], 5.0)), "unread-pipe");
}

#[test]
fn reader_that_goes_on_is_slow() {
    let join = Wait {
        object: Object::Child,
        ..wait("wait4", "do_wait", 9.8)
    };
    let write = Wait {
        object: Object::File("own pipe:[77]".into()),
        threads: vec![2],
        behind: vec![at_other_end(Role::Peer, 1, "parent", Some(join.clone()))],
        ..wait("write", "pipe_write", 9.8)
    };
    let child = Thread {
        process: 2,
        ..thread(2, [0.1, 0.0, 0.0])
    };
    let created = Created {
        processes: 400,
        threads: 0,
    };
    let facts = Facts {
        waits: vec![join, write],
        short_lived: ShortLived {
            created: Some(created),
            ..ShortLived::default()
        },
        ..facts(vec![thread(1, [0.1, 0.0, 0.0]), child])
    };
    assert_ne!(rule(&facts), "unread-pipe");
}

fn at_socket(peer: &str, sockets: usize) -> Facts {
    let receive = Wait {
        object: Object::File("socket, tcp to 127.0.0.1:5432 of process 9 postgres".into()),
        stack: strings(&["recv (libc.so.6)", "read_answer"]),
        behind: vec![at_other_end(
            Role::Peer,
            9,
            peer,
            Some(wait("epoll_wait", "do_epoll_wait", 9.0)),
        )],
        ..wait("recvfrom", "sk_wait_data", 9.5)
    };
    let client = Thread {
        sockets,
        ..thread(1, [0.2, 0.1, 0.0])
    };
    Facts {
        waits: vec![receive],
        ..facts(vec![client])
    }
}

#[test]
fn title_of_a_server_says_that_it_waits() {
    let waiting = cause(&at_socket("postgres: app orders [local] SELECT waiting", 1));
    assert!(
        waiting.ends_with("SELECT waiting, waits for a lock that another session holds"),
        "{waiting}"
    );
    let idle = cause(&at_socket("postgres: app orders [local] idle", 1));
    assert!(!idle.contains("lock"), "{idle}");
}

#[test]
fn ever_new_sockets_are_new_connections() {
    let many = cause(&at_socket("postgres", 40));
    assert!(
        many.contains("makes a new connection each time (at least 40 in"),
        "{many}"
    );
    assert!(!cause(&at_socket("postgres", 3)).contains("new connection"));
}

#[test]
fn connect_without_an_answer_says_so() {
    let connect = Wait {
        object: Object::File("socket, tcp to 127.0.0.1:80".into()),
        ..wait("connect", "inet_wait_for_connect", 9.5)
    };
    let cause = cause(&Facts {
        waits: vec![connect],
        ..facts(vec![thread(1, [0.2, 0.1, 0.0])])
    });
    assert!(
        cause.contains("listen queue (its backlog) is full"),
        "{cause}"
    );
}

#[test]
fn work_in_a_pool_of_node_is_said() {
    let of_pool = Stack {
        user: strings(&["sha512_block", "node::ThreadPoolWork::ScheduleWork"]),
        ..stack(&[], 90)
    };
    let facts = running(9.0, 0.5, vec![of_pool, stack(&[], 10)]);
    let sentence = answer(&facts).sentence(&facts);
    assert!(
        sentence.contains("90 % of what runs is in libuv's thread pool"),
        "{sentence}"
    );
}

#[test]
fn busiest_program_of_a_pipeline_is_named() {
    let mut facts = running(9.0, 0.5, vec![stack(&[], 100)]);
    facts.root = 1;
    facts.started = vec![Started {
        program: "gzip".into(),
        command: "gzip -9 log".into(),
        count: 3,
        ..Started::default()
    }];
    if let Some(samples) = &mut facts.samples {
        samples.programs = vec![("gzip".into(), 90), ("tar".into(), 10)];
    }
    let sentence = answer(&facts).sentence(&facts);
    assert!(
        sentence.contains("90 % of what runs is the program gzip (gzip -9 log)"),
        "{sentence}"
    );
    // It lived too short for its command line.
    facts.started[0].command.clear();
    let sentence = answer(&facts).sentence(&facts);
    assert!(sentence.contains("the program gzip:"), "{sentence}");
}

#[test]
fn short_timer_of_event_loop_is_sleep() {
    let own = Watched {
        kind: WatchedKind::Own,
        file: "anon_inode:[eventfd]".into(),
    };
    let polling = |timeout_ms| {
        let wait = Wait {
            watched: vec![own.clone()],
            timeout_ms: Some(timeout_ms),
            ..wait("epoll_wait", "do_epoll_wait", 9.5)
        };
        Facts {
            waits: vec![wait],
            ..facts(vec![thread(1, [0.2, 0.1, 0.0])])
        }
    };
    assert_eq!(rule(&polling(1)), "sleep");
    assert_eq!(rule(&polling(30_000)), "idle");
}

#[test]
fn select_without_files_is_a_sleep() {
    let nothing = Wait {
        object: Object::Timer,
        ..wait("pselect6", "do_select", 9.5)
    };
    let facts = Facts {
        waits: vec![nothing],
        ..facts(vec![thread(1, [0.2, 0.1, 0.0])])
    };
    assert_eq!(rule(&facts), "sleep");
}

#[test]
fn locks_of_python_have_kinds() {
    let cases: &[(&[&str], Kind)] = &[
        (&["PyThread_acquire_lock_timed", "save app.py"], Kind::Lock),
        (
            &[
                "PyThread_acquire_lock_timed",
                "Python's threading.Condition.wait",
                "Python's queue.Queue.get",
                "work app.py",
            ],
            Kind::Idle,
        ),
        (
            &[
                "JVM_Sleep (libjvm.so)",
                "java.lang.Thread.sleep",
                "Poll.run",
            ],
            Kind::Sleep,
        ),
    ];
    for (stack, expected) in cases {
        let wait = Wait {
            stack: strings(stack),
            ..at_word(0x40, 1.0, &[1, 2])
        };
        let facts = facts(vec![thread(1, [0.1, 0.0, 0.0])]);
        assert_eq!(kind(&facts, &wait), *expected, "{stack:?}");
    }
}

#[test]
fn lock_names_what_another_thread_waits_for() {
    let at_lock = Wait {
        stack: strings(&["PyThread_acquire_lock_timed", "save app.py"]),
        ..at_word(0x40, 25.0, &[1, 2, 3])
    };
    let asleep = Wait {
        stack: strings(&["clock_nanosleep (libc.so.6)", "flush app.py"]),
        ..wait("clock_nanosleep", "hrtimer_nanosleep", 8.0)
    };
    let threads = [1, 2, 3].map(|id| thread(id, [0.1, 0.0, 0.0]));
    let facts = Facts {
        waits: vec![at_lock, asleep],
        ..facts(threads.into())
    };
    assert!(
        cause(&facts).contains("; meanwhile a thread of it sleeps in flush app.py"),
        "{}",
        cause(&facts)
    );
}

#[test]
fn goroutines_of_stripped_program_are_missed() {
    let idle = Wait {
        stack: vec!["runtime.futex".into(), "runtime.stopm".into()],
        ..at_word(0x10, 9.0, &[1])
    };
    let mut facts = facts(vec![thread(1, [0.1, 0.0, 0.0])]);
    facts.waits = vec![idle];
    assert!(!cause(&facts).contains("goroutines"));
    facts.gaps = vec![Gap {
        what: GOROUTINES,
        why: "the program is stripped".into(),
        remedy: "build it with its symbols",
    }];
    assert!(cause(&facts).contains("(what its goroutines wait for is not known)"));
}

#[test]
fn goroutine_waiting_for_nothing_left_is_named() {
    let idle = Wait {
        stack: vec!["runtime.futexsleep".into(), "runtime.stopm".into()],
        ..at_word(0x10, 10.0, &[1])
    };
    let end = parked(
        "sync.WaitGroup.Wait",
        1.0,
        &["sync.(*WaitGroup).Wait", "main.wait", "main.run"],
    );
    let first = parked("select", 1.0, &["main.serve", "main.main", "runtime.main"]);
    let with = |others: &[Parked]| {
        answer(&Facts {
            waits: vec![idle.clone()],
            parked: [&[end.clone(), first.clone()][..], others].concat(),
            ..facts(vec![thread(1, [0.0, 0.0, 0.0])])
        })
    };
    let found = with(&[]).cause.unwrap().cause;
    assert_eq!(
        found,
        "1 goroutine waits for the end of others (a WaitGroup) in main.wait (called by main.run), and no other \
         goroutine is left to end (a missing Done)"
    );
    let worker = parked("chan receive", 1.0, &["main.work", "main.wait.func1"]);
    let found = with(&[worker]).cause.unwrap().cause;
    assert!(!found.contains("missing Done"), "{found}");
}
