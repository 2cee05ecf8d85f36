//! What threads are for that do nothing, that live shortly, or that stop all others, as sentences
//! say it.

use crate::answer;
use crate::facts::{
    Called, Counters, Created, Facts, FaultingCode, Object, Parked, Samples, ShortLived, Stack,
    Thread, UnreadSockets, Wait,
};
use crate::tests::{at_word, facts, rule, sampled, thread, wait};

fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn cause(facts: &Facts) -> String {
    answer(facts).cause.unwrap().cause
}

fn at(user: &[&str], samples: u64) -> Stack {
    Stack {
        program: "program".into(),
        user: strings(user),
        samples,
        ..Stack::default()
    }
}

#[test]
fn statistics_that_stop_goroutines_are_named() {
    let stop = ["runtime.futex", "runtime.stopTheWorld.func1"];
    let statistics = ["runtime.ReadMemStats", "main.report", "main.main"];
    let of = |stacks: Vec<Stack>| Facts {
        samples: sampled(stacks),
        ..facts(vec![thread(1, [9.0, 0.5, 0.0])])
    };
    let spread = (0..60).map(|number| at(&[&*format!("main.f{number}")], 1));
    let mut stacks = vec![at(&stop, 30), at(&statistics, 10)];
    stacks.extend(spread.clone());
    let found = cause(&of(stacks));
    assert_eq!(
        found,
        "it stops all goroutines again and again, stop-the-world without a collection, by \
         runtime.ReadMemStats for main.report"
    );
    // The collector stops them, too.
    let collection = ["runtime.futex", "runtime.gcStart.func2"];
    let mut stacks = vec![at(&collection, 30)];
    stacks.extend(spread);
    assert_ne!(rule(&of(stacks)), "stopped-world");
}

#[test]
fn worker_for_each_piece_is_counted() {
    let with = |threads: u64, function: &str| Facts {
        short_lived: ShortLived {
            user_s: 8.0,
            system_s: 0.5,
            created: Some(Created {
                processes: 1,
                threads,
            }),
        },
        samples: sampled(vec![at(&["v8::internal::Parser", function], 9)]),
        ..facts(vec![thread(1, [0.3, 0.1, 0.0])])
    };
    let start = "node::worker::Worker::StartThread";
    let found = cause(&with(200, start));
    assert!(
        found.starts_with("it starts a new Worker")
            && found.contains("20 a second that run 42.5 ms"),
        "{found}"
    );
    assert_ne!(rule(&with(20, start)), "short-workers");
    // Threads alone are cheap.
    assert_ne!(rule(&with(200, "start_thread")), "short-workers");
}

/// Threads of a pool and a main function that sleeps.
fn waiting_for_result(other: &str) -> Facts {
    let of = |inner: &[&str], id: u32| Wait {
        stack: strings(inner),
        ..at_word(0x40 * u64::from(id), 9.5, &[id])
    };
    let sleeping = Wait {
        stack: strings(&["nanosleep", "java.lang.Thread.sleep", "Server.main"]),
        threads: vec![2],
        ..wait("clock_nanosleep", "hrtimer_nanosleep", 9.5)
    };
    let park = "jdk.internal.misc.Unsafe.park";
    let task = "java.util.concurrent.FutureTask.get";
    let result = of(&[park, task, "Server.handle"], 1);
    Facts {
        waits: vec![result, sleeping, of(&[park, other, "Pool.run"], 3)],
        ..facts((1..=3).map(|id| thread(id, [0.01, 0.0, 0.0])).collect())
    }
}

#[test]
fn result_without_a_worker_is_said() {
    let idle = waiting_for_result("ThreadPoolExecutor.getTask");
    assert_eq!(rule(&idle), "lost-result");
    assert!(cause(&idle).contains("no thread is left to execute it"));
    // Another one that waits for a monitor may have the task.
    let working = waiting_for_result("ObjectMonitor::enter");
    assert_ne!(rule(&working), "lost-result");
}

#[test]
fn executed_task_is_no_result() {
    let executed = Wait {
        stack: strings(&[
            "__recv (libc.so.6)",
            "resolve_hostname",
            "std::__future_base::_Async_state_impl<…>::_M_run",
        ]),
        ..wait("recvfrom", "skb_wait_for_more_packets", 9.5)
    };
    let facts = Facts {
        waits: vec![executed],
        ..facts(vec![thread(1, [0.01, 0.0, 0.0])])
    };
    assert_eq!(rule(&facts), "network");
}

#[test]
fn task_waiting_in_its_pool_is_a_deadlock() {
    let with = |around: &str| Facts {
        waits: vec![Wait {
            stack: strings(&[
                "jdk.internal.misc.Unsafe.park",
                "java.util.concurrent.CountDownLatch.await",
                "Loader.load",
                "java.util.concurrent.ForkJoinTask.doExec",
                "java.util.concurrent.ForkJoinPool.runWorker",
                around,
            ]),
            ..at_word(0x40, 9.5, &[1])
        }],
        ..facts(vec![thread(1, [0.01, 0.0, 0.0])])
    };
    let found = with("java.util.concurrent.ForkJoinWorkerThread.run");
    assert_eq!(rule(&found), "pool-for-itself");
    assert_ne!(rule(&with("java.lang.Thread.run")), "pool-for-itself");
}

#[test]
fn waits_that_end_at_once_are_counted() {
    let timed = Wait {
        stack: strings(&["pthread_cond_clockwait (libc.so.6)", "Awaiter::suspend"]),
        ..at_word(0x10, 8.0, &[1])
    };
    let of = |voluntary: u64| Facts {
        waits: vec![timed.clone()],
        ..facts(vec![Thread {
            voluntary,
            ..thread(1, [0.2, 1.2, 0.0])
        }])
    };
    let found = cause(&of(100_000));
    assert!(
        found.contains("; its timed waits end at once, 10000 times a second after 80 µs"),
        "{found}"
    );
    assert!(!cause(&of(100)).contains("at once"));
}

#[test]
fn sleep_of_an_idle_program_is_no_more() {
    let of = |running: f64| Facts {
        waits: vec![wait("clock_nanosleep", "hrtimer_nanosleep", 9.0)],
        ..facts(vec![thread(1, [running, 0.0, 0.0])])
    };
    let found = cause(&of(0.1));
    assert!(
        found.ends_with("; otherwise it is idle (1 % of a processor)"),
        "{found}"
    );
    assert!(!cause(&of(1.0)).contains("otherwise"));
}

#[test]
fn sockets_that_are_not_read_are_named() {
    let events = Wait {
        object: Object::File("anon_inode:[eventpoll]".into()),
        ..wait("epoll_wait", "ep_poll", 9.5)
    };
    let unread = UnreadSockets {
        sockets: 5,
        bytes: 64_000,
        file: "socket, tcp to 10.0.0.1:80".into(),
    };
    let found = cause(&Facts {
        waits: vec![events],
        unread: Some(unread),
        ..facts(vec![thread(1, [0.1, 0.0, 0.0])])
    });
    assert!(
        found.contains(
            "; it does not read 64000 bytes that lie in 5 sockets, such as socket, tcp to 10.0.0.1:80"
        ),
        "{found}"
    );
}

#[test]
fn loaded_library_of_a_script_is_named() {
    let stacks = vec![
        at(
            &["Perl_hv_common", "Storable.so+0x12", "Perl_pp_entersub"],
            70,
        ),
        at(&["Perl_pp_entersub"], 20),
        at(&["libc.so.6+0x7"], 10),
    ];
    let script = Stack {
        program: "Perl".into(),
        ..at(&["copy profile.pl"], 90)
    };
    let found = cause(&Facts {
        samples: sampled(stacks),
        scripts: vec![script],
        ..facts(vec![thread(1, [9.5, 0.1, 0.0])])
    });
    assert!(
        found.contains("; 70 % of that in the library Storable.so"),
        "{found}"
    );
}

#[test]
fn file_that_ends_each_wait_is_named() {
    let poll = Stack {
        kernel: strings(&["ep_poll", "__x64_sys_epoll_wait"]),
        ..at(&["epoll_wait (libc.so.6)", "serve"], 90)
    };
    let asked = Called {
        call: "epoll_wait".into(),
        file: "ready: socket, tcp to [::1]:80 (it can be written to: EPOLLOUT)".into(),
        arguments: [3, 0, 64, 0],
        result: None,
        samples: 20,
    };
    let found = cause(&Facts {
        samples: Some(Samples {
            stacks: vec![poll],
            calls: vec![asked],
            ..Samples::default()
        }),
        ..facts(vec![thread(1, [2.0, 7.5, 0.0])])
    });
    assert!(
        found.contains(
            "which returns at once: socket, tcp to [::1]:80 (it can be written to: EPOLLOUT) is \
             ready all the time"
        ),
        "{found}"
    );
}

#[test]
fn full_pool_names_its_tasks() {
    let of = |inner: &str, id: u32| Wait {
        stack: strings(&[
            inner,
            "Watcher.watch",
            "java.util.concurrent.ForkJoinWorkerThread.run",
        ]),
        threads: vec![id],
        ..wait("clock_nanosleep", "hrtimer_nanosleep", 9.5)
    };
    let with = |second: &str| {
        let result = Wait {
            stack: strings(&[
                "jdk.internal.misc.Unsafe.park",
                "java.util.concurrent.CompletableFuture.get",
                "Server.handle",
            ]),
            ..at_word(0x80, 9.5, &[1])
        };
        let waits = vec![result, of("java.lang.Thread.sleep", 2), of(second, 3)];
        Facts {
            waits,
            ..facts((1..=3).map(|id| thread(id, [0.01, 0.0, 0.0])).collect())
        }
    };
    let full = with("java.lang.Thread.sleep");
    assert_eq!(rule(&full), "full-pool");
    assert!(
        cause(&full).contains(
            "for the result of a task in java.util.concurrent.CompletableFuture.get for \
             Server.handle, which finds no thread: all 2 threads of the pool are in other tasks, where one sleeps in \
             Watcher.watch"
        ),
        "{}",
        cause(&full)
    );
    assert_ne!(rule(&with("ForkJoinPool.awaitWork")), "full-pool");
}

#[test]
fn idle_program_names_what_it_takes_from() {
    let queue = |own: &[&str]| {
        let mut stack = strings(&["Python's queue.Queue.get"]);
        stack.extend(strings(own));
        Wait {
            stack,
            ..at_word(0x10, 9.5, &[1])
        }
    };
    let of = |own: &[&str]| {
        cause(&Facts {
            waits: vec![queue(own)],
            ..facts(vec![thread(1, [0.01, 0.0, 0.0])])
        })
    };
    let pool = of(&["QueuePool.checkout db.py", "query db.py"]);
    let named = "its threads wait for work, in QueuePool.checkout db.py (called by query db.py)";
    assert!(pool.contains(named), "{pool}");
    // A worker waits in the function that it began with.
    let worker = of(&["work pool.py"]);
    assert!(worker.ends_with("its threads wait for work"), "{worker}");
}

#[test]
fn goroutines_that_connect_anew_are_said() {
    let connect = Stack {
        kernel: strings(&["tcp_v4_connect", "__x64_sys_connect"]),
        ..at(&["syscall.Connect", "main.call"], 30)
    };
    let poll = Wait {
        stack: strings(&["runtime.futexsleep", "runtime.stopm"]),
        ..at_word(0x10, 7.0, &[1])
    };
    let call = Parked {
        reason: "select".into(),
        stack: strings(&["net/http.(*Client).Get", "main.call", "main.run"]),
        number: 4.0,
        ..Parked::default()
    };
    let found = cause(&Facts {
        waits: vec![poll],
        parked: vec![call],
        samples: sampled(vec![connect, at(&["main.call"], 20)]),
        ..facts(vec![thread(1, [0.3, 0.5, 0.0])])
    });
    assert!(
        found.contains("; it opens new connections again and again (connect has 100 %"),
        "{found}"
    );
}

#[test]
fn locks_waiting_for_each_other_are_a_deadlock() {
    let at = |function: &str, id: u32| Wait {
        stack: strings(&["pthread_mutex_lock (libc.so.6)", function]),
        ..at_word(0x40 * u64::from(id), 9.5, &[id])
    };
    let with = |running: f64| Facts {
        waits: vec![at("Account::debit", 2), at("Account::credit", 3)],
        ..facts(vec![
            thread(2, [0.0, 0.0, 0.0]),
            thread(3, [0.0, 0.0, 0.0]),
            thread(4, [running, 0.0, 0.0]),
        ])
    };
    let found = cause(&with(0.1));
    assert!(
        found.contains("and in Account::credit; no thread of it works"),
        "{found}"
    );
    assert!(!cause(&with(9.0)).contains("a deadlock"));
}

#[test]
fn semaphore_and_joining_thread_are_named() {
    let waiting = Wait {
        stack: strings(&["sem_wait (libc.so.6)", "Queue::pop"]),
        ..at_word(0x40, 9.5, &[2])
    };
    let mut joining = Wait {
        stack: strings(&["pthread_join (libc.so.6)", "Runtime::stop"]),
        ..at_word(0x80, 9.5, &[1])
    };
    if let Object::Futex(futex) = &mut joining.object {
        futex.is_join = true;
    }
    let facts = Facts {
        waits: vec![waiting, joining],
        ..facts((1..=2).map(|id| thread(id, [0.01, 0.0, 0.0])).collect())
    };
    assert_eq!(
        cause(&facts),
        "1 thread waits for a semaphore (sem_wait), in Queue::pop, and no thread of it works; another \
         one waits for the end of a thread (join) in Runtime::stop"
    );
}

#[test]
fn function_that_calls_itself_is_named() {
    let with = |depth: usize| {
        let stack = [vec!["match_value"; depth], vec!["diff", "main"]].concat();
        Facts {
            samples: sampled(vec![at(&stack, 9)]),
            ..facts(vec![thread(1, [9.0, 0.1, 0.0])])
        }
    };
    let found = cause(&with(5));
    assert!(
        found.ends_with("; match_value calls itself, at least 5 deep (recursion)"),
        "{found}"
    );
    assert!(!cause(&with(2)).contains("calls itself"));
}

#[test]
fn dumps_of_threads_are_no_garbage_collection() {
    let dump = ["memcpy (libc.so.6)", "VM_ThreadDump::doit (libjvm.so)"];
    let mut vm = thread(2, [5.0, 0.0, 0.0]);
    vm.name = "VM Thread".into();
    let with = |samples: u64| Facts {
        samples: sampled(vec![at(&dump, samples), at(&["App.run"], 20)]),
        ..facts(vec![thread(1, [4.0, 0.1, 0.0]), vm.clone()])
    };
    assert_eq!(rule(&with(20)), "stack-dumps");
    assert_ne!(rule(&with(0)), "stack-dumps");
}

#[test]
fn idle_server_at_a_latch_lost_nothing() {
    // How main functions of servers wait for their end.
    let of = |inner: &[&str], id: u32| Wait {
        stack: strings(inner),
        ..at_word(0x40 * u64::from(id), 9.5, &[id])
    };
    let park = "jdk.internal.misc.Unsafe.park";
    let latch = "java.util.concurrent.CountDownLatch.await";
    let idle = "java.util.concurrent.ThreadPoolExecutor.getTask";
    let worker = "java.util.concurrent.ThreadPoolExecutor$Worker.run";
    let facts = Facts {
        waits: vec![
            of(&[park, latch, "Server.main"], 1),
            of(&[park, idle, worker], 2),
        ],
        ..facts((1..=2).map(|id| thread(id, [0.01, 0.0, 0.0])).collect())
    };
    assert!(!["lost-result", "full-pool", "pool-for-itself"].contains(&rule(&facts)));
}

#[test]
fn sleeping_main_thread_may_have_the_lock() {
    let at = |function: &str, id: u32| Wait {
        stack: strings(&["pthread_mutex_lock (libc.so.6)", function]),
        ..at_word(0x40, 9.5, &[id])
    };
    let sleeping = Wait {
        stack: strings(&["clock_nanosleep (libc.so.6)", "hold_for_long"]),
        threads: vec![1],
        ..wait("clock_nanosleep", "hrtimer_nanosleep", 9.5)
    };
    let facts = Facts {
        waits: vec![at("Account::debit", 2), at("Account::credit", 3), sleeping],
        ..facts((1..=3).map(|id| thread(id, [0.01, 0.0, 0.0])).collect())
    };
    let found = cause(&facts);
    assert!(
        found.contains("(a deadlock), by the main thread, which sleeps in hold_for_long"),
        "{found}"
    );
}

#[test]
fn goroutine_bound_to_its_thread_is_named() {
    let futex = |inner: &str, samples: u64| Stack {
        kernel: strings(&["futex_wait_queue", "__x64_sys_futex"]),
        ..at(&["runtime.futex", inner, "main.serve"], samples)
    };
    let with = |bound: u64| Facts {
        samples: sampled(vec![
            futex("runtime.startlockedm", bound),
            futex("runtime.stopm", 20),
        ]),
        ..facts(vec![thread(1, [1.0, 8.0, 0.0])])
    };
    assert!(cause(&with(20)).contains("runtime.LockOSThread"));
    assert!(!cause(&with(1)).contains("runtime.LockOSThread"));
}

#[test]
fn few_samples_of_equal_functions_name_none() {
    let of = |scale: u64| Facts {
        samples: sampled(
            [
                ("part_a", 36),
                ("part_b", 26),
                ("part_c", 19),
                ("part_d", 19),
            ]
            .map(|(function, samples)| at(&[function, "main"], scale * samples))
            .to_vec(),
        ),
        ..facts(vec![thread(1, [9.0, 0.1, 0.0])])
    };
    assert_eq!(answer(&of(1)).cause, None);
    assert!(cause(&of(10)).contains("part_a and part_b"));
}

#[test]
fn function_that_memory_is_filled_for_is_named() {
    let fault = |user: &[&str], samples| Stack {
        kernel: strings(&["exc_page_fault", "asm_exc_page_fault"]),
        ..at(user, samples)
    };
    let filled = [
        "runtime.memclrNoHeapPointers",
        "runtime.mallocgc",
        "compress/flate.NewWriter",
        "main.serve",
        "main.main",
    ];
    let found = cause(&Facts {
        counters: Counters {
            minor_faults: 100_000,
            touched_pages: 100_000,
            ..Counters::default()
        },
        samples: Some(Samples {
            faults: vec![FaultingCode {
                function: filled[0].into(),
                samples: 9,
            }],
            ..sampled(vec![fault(&filled, 90), at(&["main.main"], 10)]).unwrap()
        }),
        ..facts(vec![thread(1, [1.0, 8.0, 0.0])])
    });
    assert!(
        found.contains(", in runtime.memclrNoHeapPointers for compress/flate.NewWriter"),
        "{found}"
    );
}

#[test]
fn second_library_function_is_named_beside_first() {
    let of = |leaf: &str, inner: &str, own: &str, samples| {
        at(&[leaf, inner, own, "render", "main"], samples)
    };
    let found = |second| {
        cause(&Facts {
            samples: sampled(vec![
                of("a (libx.so)", "execute (libx.so)", "render", 28),
                of("b (libx.so)", "execute (libx.so)", "render", 28),
                of("c (libx.so)", "parse (libx.so)", "create", second),
                of("d (libx.so)", "other (libx.so)", "create", 44 - second),
            ]),
            ..facts(vec![thread(1, [9.0, 0.1, 0.0])])
        })
    };
    assert!(
        found(40).contains("and in parse (libx.so) (40 %)"),
        "{}",
        found(40)
    );
    assert!(!found(0).contains("parse"), "{}", found(0));
}

#[test]
fn waiting_thread_without_others_left_is_said() {
    let waiting = Wait {
        stack: strings(&[
            "syscall (libc.so.6)",
            "std::sync::mpmc::list::Channel<T>::recv",
            "collect",
        ]),
        ..at_word(0x10, 9.8, &[2])
    };
    let with = |lived| {
        let short = Thread {
            total_s: lived,
            ..thread(3, [0.0, 0.0, 0.0])
        };
        let threads = vec![
            thread(1, [0.5, 0.5, 0.0]),
            thread(2, [0.0, 0.0, 0.0]),
            short,
        ];
        cause(&Facts {
            waits: vec![
                waiting.clone(),
                wait("clock_nanosleep", "hrtimer_nanosleep", 9.8),
            ],
            ..facts(threads)
        })
    };
    let said = "; the other threads have ended, and no other thread is left to send it";
    assert!(with(1.0).contains(said), "{}", with(1.0));
    assert!(!with(10.0).contains(said), "{}", with(10.0));
}

#[test]
fn comparisons_are_not_who_sorts() {
    let found = cause(&Facts {
        samples: sampled(vec![at(
            &["compare", "std::__introsort_loop<…>", "load", "main"],
            90,
        )]),
        ..facts(vec![thread(1, [9.0, 0.1, 0.0])])
    });
    assert_eq!(found, "it sorts, called in load");
}

#[test]
fn parts_of_work_are_said_beside_it() {
    let with = |samples| {
        cause(&Facts {
            samples: sampled(vec![
                at(
                    &[
                        "libc.so.6+0x10",
                        "snprintf (libc.so.6)",
                        "log_it",
                        "serve",
                        "main",
                    ],
                    samples,
                ),
                at(&["parse", "serve", "main"], 90),
            ]),
            ..facts(vec![thread(1, [9.0, 0.1, 0.0])])
        })
    };
    let found = with(60);
    assert!(
        found.ends_with("; 40 % of what runs is where it formats text (printf and its kin)"),
        "{found}"
    );
    let found = with(10);
    assert!(!found.contains("formats text"), "{found}");
}

#[test]
fn memory_is_touched_for_what_functions_mean() {
    let fault = |function: &str| Stack {
        kernel: strings(&["exc_page_fault", "asm_exc_page_fault"]),
        ..at(&["append", function, "main"], 90)
    };
    let with = |function| {
        cause(&Facts {
            counters: Counters {
                minor_faults: 100_000,
                touched_pages: 100_000,
                ..Counters::default()
            },
            samples: sampled(vec![fault(function), at(&["main"], 10)]),
            ..facts(vec![thread(1, [1.0, 8.0, 0.0])])
        })
    };
    let found = with("do_variable_definition");
    assert!(
        found.contains("; 90 % of what runs is where make expands variables and sets them"),
        "{found}"
    );
    assert!(!with("work").contains("of what runs is where"));
}

#[test]
fn lock_of_a_lone_thread_is_its_own() {
    let lock = Wait {
        stack: strings(&[
            "std::sys::sync::mutex::futex::Mutex::lock_contended",
            "add",
            "drain",
        ]),
        ..at_word(0x10, 9.8, &[1])
    };
    let with = |others: Vec<Thread>| {
        let sleep = Wait {
            threads: vec![2],
            ..wait("clock_nanosleep", "hrtimer_nanosleep", 9.8)
        };
        cause(&Facts {
            waits: vec![lock.clone(), sleep],
            ..facts(
                [
                    vec![thread(1, [0.2, 0.0, 0.0]), thread(2, [0.0, 0.0, 0.0])],
                    others,
                ]
                .concat(),
            )
        })
    };
    let said = "; no other thread is left: it holds that lock itself, or the one that sleeps does";
    assert!(with(Vec::new()).contains(said), "{}", with(Vec::new()));
    // A thread of another process may have it, and so may one in a system call.
    let process = Thread {
        process: 3,
        ..thread(3, [0.0, 0.0, 0.0])
    };
    for other in [thread(3, [5.0, 0.0, 0.0]), process] {
        let found = with(vec![other]);
        assert!(!found.contains("holds that lock itself"), "{found}");
    }
}

#[test]
fn queue_whose_items_are_not_done_is_named() {
    let of = |functions: &[&str], id: u32| Wait {
        stack: strings(functions),
        ..at_word(u64::from(id), 9.8, &[id])
    };
    let get = [
        "Python's threading.Condition.wait",
        "Python's queue.Queue.get",
        "work app.py",
    ];
    let join = [
        "Python's threading.Condition.wait",
        "Python's queue.Queue.join",
        "close app.py",
    ];
    let found = cause(&Facts {
        waits: vec![of(&get, 1), of(&get, 2), of(&get, 3), of(&join, 4)],
        ..facts((1..=4).map(|id| thread(id, [0.02, 0.0, 0.0])).collect())
    });
    assert!(
        found.contains(
            "waits for all items of a queue to be marked done (Queue.join, task_done) in close"
        ),
        "{found}"
    );
}
