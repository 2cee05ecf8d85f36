//! How runtimes wait: the functions of their own that say what a blocked thread is for.
//!
//! A thread of a pool that waits for work is blocked at a futex as one that waits for a lock is;
//! only the functions on its stack tell one from the other.

use crate::waits::Kind;

/// A function on the stack of a blocked thread, and what the thread waits for.
pub(crate) struct Known {
    /// A part of the function's name, as `observe` writes it.
    pub(crate) function: &'static str,
    pub(crate) kind: Kind,
    /// What it is in sentences, such as `a monitor of Java`; empty where the kind says all.
    pub(crate) what: &'static str,
}

const fn known(function: &'static str, kind: Kind) -> Known {
    Known {
        function,
        kind,
        what: "",
    }
}

const fn named(function: &'static str, kind: Kind, what: &'static str) -> Known {
    Known {
        function,
        kind,
        what,
    }
}

/// Where threads of CPython wait for a lock of `threading`, whatever that is for: of a script whose
/// functions are known it is what it says.
pub(crate) const PYTHON_LOCK: &str = "PyThread_acquire_lock";

/// All of them, the more special ones first: a runtime's functions call those of the C library.
pub(crate) const KNOWN: &[Known] = &[
    // CPython: Python/ceval_gil.h, Python/thread_pthread.h, Modules/timemodule.c.
    named("take_gil", Kind::Gil, "the GIL of CPython"),
    known("PyMutex_Lock", Kind::Lock),
    // Lib/threading.py, Lib/queue.py, Lib/concurrent/futures/thread.py, Modules/_queuemodule.c: these
    // wait at locks, too.
    known("Python's thread._worker", Kind::Idle),
    known("simplequeue_get", Kind::Idle),
    named(
        "Python's queue.Queue.join",
        Kind::Condition,
        "all items of a queue to be marked done (Queue.join, task_done)",
    ),
    // Lib/multiprocessing/{process,popen_fork}.py.
    named(
        "Python's process.BaseProcess.join",
        Kind::Join,
        "join of a multiprocessing.Process",
    ),
    known("Python's queue.Queue.get", Kind::Idle),
    // Before 3.11 functions have no names of their classes.
    known("Python's queue.get", Kind::Idle),
    known("Python's threading.wait", Kind::Condition),
    known("Python's threading._wait_for_tstate_lock", Kind::Join),
    known(
        "Python's threading.Thread._wait_for_tstate_lock",
        Kind::Join,
    ),
    known("Python's threading.Condition.wait", Kind::Condition),
    known("Python's threading.Event.wait", Kind::Condition),
    named(
        PYTHON_LOCK,
        Kind::Condition,
        "a lock of Python (threading.Lock)",
    ),
    known("PyParkingLot_Park", Kind::Condition),
    // The JVM: src/hotspot/share/runtime/{objectMonitor,synchronizer,vmThread,watcherThread}.cpp,
    // gc/shared/workerThread.cpp (workgroup.cpp), compiler/compileBroker.cpp, prims/unsafe.cpp.
    named("ObjectMonitor::enter", Kind::Lock, "a monitor of Java"),
    named("ObjectMonitor::EnterI", Kind::Lock, "a monitor of Java"),
    known("java.lang.Thread.sleep", Kind::Sleep),
    known("java.lang.Thread.join", Kind::Join),
    named(
        "java.util.concurrent.Semaphore.acquire",
        Kind::Lock,
        "a permit of a Semaphore of Java",
    ),
    known("JVM_Sleep", Kind::Sleep),
    // src/hotspot/share/oops/instanceKlass.cpp.
    named(
        "InstanceKlass::initialize_impl",
        Kind::Lock,
        "the initialization of a class (static initializer), which another thread executes",
    ),
    known("java.lang.ProcessImpl.waitFor", Kind::Join),
    known("ObjectMonitor::wait", Kind::Condition),
    // java.util.concurrent.
    known("ThreadPoolExecutor.getTask", Kind::Idle),
    known("DelayedWorkQueue.take", Kind::Idle),
    known("ForkJoinPool.awaitWork", Kind::Idle),
    known("java.util.TimerThread.mainLoop", Kind::Idle),
    known("java.lang.ref.ReferenceQueue", Kind::Idle),
    named(
        "locks.ReentrantLock.lock",
        Kind::Lock,
        "a ReentrantLock of Java",
    ),
    named(
        "ReentrantLock$Sync.lock",
        Kind::Lock,
        "a ReentrantLock of Java",
    ),
    named(
        "ReentrantReadWriteLock$",
        Kind::Lock,
        "a ReentrantReadWriteLock of Java",
    ),
    named("locks.StampedLock.", Kind::Lock, "a StampedLock of Java"),
    known("GangWorker", Kind::Idle),
    known("WorkerThread::run", Kind::Idle),
    known("CompileQueue::get", Kind::Idle),
    known("VMThread::wait_for_vm_op", Kind::Idle),
    known("VMThread::inner_execute", Kind::Condition),
    known("VMThread::wait_until_executed", Kind::Condition),
    known("WorkGang::run_task", Kind::Condition),
    known("SuspendibleThreadSet", Kind::Condition),
    known("LinuxWaitBarrier::wait", Kind::Condition),
    known("VMThread::loop", Kind::Idle),
    known("WatcherThread::sleep", Kind::Idle),
    known("ConcurrentGCThread::run", Kind::Idle),
    known("ServiceThread::", Kind::Idle),
    known("MonitorDeflationThread::", Kind::Idle),
    known("signal_thread_entry", Kind::Idle),
    known("SafepointSynchronize::block", Kind::Condition),
    // A thread of a ForkJoinPool without a task waits there itself, before Java 17.
    known("ForkJoinTask.doExec", Kind::Condition),
    known("ForkJoinPool.runWorker", Kind::Idle),
    known("Parker::park", Kind::Condition),
    known("CallJavaMainInNewThread", Kind::Join),
    // Node and libuv: src/node_platform.cc, src/inspector_agent.cc, deps/uv/src/threadpool.c.
    known("node::WorkerThreadsTaskRunner", Kind::Idle),
    known("node::TaskQueue", Kind::Idle),
    known(
        "node::(anonymous namespace)::PlatformWorkerThread",
        Kind::Idle,
    ),
    known("PlatformWorkerThread", Kind::Idle),
    known("StartIoThreadMain", Kind::Idle),
    // spawnSync and its kin (src/spawn_sync.cc).
    named(
        "Node's child_process.spawnSync",
        Kind::Join,
        "spawnSync or execSync, while its event loop stands still",
    ),
    named(
        "node::SyncProcessRunner",
        Kind::Join,
        "spawnSync or execSync, while its event loop stands still",
    ),
    known("uv_cond_wait", Kind::Idle),
    known("uv_sem_wait", Kind::Idle),
    known("uv__io_poll", Kind::Events),
    // Go: src/runtime/{proc,lock_futex,netpoll_epoll}.go.
    known("runtime.stopm", Kind::Idle),
    known("runtime.stoplockedm", Kind::Idle),
    known("runtime.mPark", Kind::Idle),
    known("runtime.sysmon", Kind::Idle),
    known("runtime.templateThread", Kind::Idle),
    known("runtime.notetsleepg", Kind::Idle),
    known("runtime.netpoll", Kind::Events),
    named("runtime.lock2", Kind::Lock, "a lock of Go's runtime"),
    known("runtime.futexsleep", Kind::Idle),
    known("runtime.usleep", Kind::Idle),
    // PostgreSQL: src/backend/storage/lmgr/{lwlock,proc}.c, storage/ipc/latch.c.
    named("LWLock", Kind::Lock, "a lock in shared memory (LWLock)"),
    // commands/async.c: commits that notify take one lock until they are done.
    named(
        "PreCommit_Notify",
        Kind::Lock,
        "the lock under which commits with NOTIFY are made, one after the other",
    ),
    named(
        "ProcSleep",
        Kind::Lock,
        "a lock of a row or a table, or an advisory lock",
    ),
    named("LockBufferForCleanup", Kind::Lock, "a pin of a buffer"),
    known("WaitEventSetWait", Kind::Events),
    // GNU make: src/posixos.c.
    named(
        "jobserver_acquire",
        Kind::Join,
        "a token of its job server (a job slot)",
    ),
    // SQLite: src/main.c, src/os_unix.c.
    named(
        "sqliteDefaultBusyCallback",
        Kind::FileLock,
        "a lock of SQLite",
    ),
    // src/os.c: who waits for a lock of a database sleeps.
    named("sqlite3OsSleep", Kind::FileLock, "a lock of SQLite"),
    // OpenMP: libgomp/config/linux/bar.c, LLVM openmp/runtime/src/kmp_barrier.cpp.
    known("gomp_team_barrier_wait", Kind::Barrier),
    known("gomp_barrier_wait", Kind::Barrier),
    known("gomp_thread_start", Kind::Idle),
    known("__kmp_", Kind::Barrier),
    // Rust: library/std/src/{sync,sys/sync}; tokio/src/runtime; rayon-core/src/sleep.
    // A receiver whose senders are all gone does not wait.
    named(
        "std::sync::mpmc::",
        Kind::Condition,
        "a message of a channel (mpsc), of which a sender is still alive",
    ),
    known("tokio::runtime::blocking", Kind::Idle),
    known("multi_thread::worker::Context::park", Kind::Idle),
    known("rayon_core::sleep", Kind::Idle),
    named(
        "rwlock::futex::RwLock",
        Kind::Lock,
        "one lock (an RwLock of Rust)",
    ),
    named("lock_contended", Kind::Lock, "one lock (a Mutex of Rust)"),
    known("Condvar::wait", Kind::Condition),
    known("thread::park", Kind::Condition),
    known("Parker::park", Kind::Condition),
    // C++: libstdc++-v3/src/c++11.
    known("std::barrier<", Kind::Barrier),
    known("std::latch::", Kind::Condition),
    known("std::counting_semaphore<", Kind::Condition),
    known("std::condition_variable", Kind::Condition),
    known("std::__atomic_futex", Kind::Condition),
    known("std::thread::join", Kind::Join),
    // glibc: malloc/arena.c, elf/dl-iteratephdr.c, elf/dl-open.c, libio, time/tzset.c,
    // stdlib/random.c.
    named(
        "malloc (libc.so",
        Kind::Lock,
        "a lock of glibc's malloc (an arena)",
    ),
    named(
        "calloc (libc.so",
        Kind::Lock,
        "a lock of glibc's malloc (an arena)",
    ),
    named(
        "realloc (libc.so",
        Kind::Lock,
        "a lock of glibc's malloc (an arena)",
    ),
    named(
        "free (libc.so",
        Kind::Lock,
        "a lock of glibc's malloc (an arena), to free",
    ),
    named(
        "dl_iterate_phdr",
        Kind::Lock,
        "the lock of the loader's list (dl_iterate_phdr)",
    ),
    named("dlopen", Kind::Lock, "the lock of the loader (dlopen)"),
    named("dlsym", Kind::Lock, "the lock of the loader (dlsym)"),
    named(
        "localtime",
        Kind::Lock,
        "the lock of the time zone (localtime)",
    ),
    named(
        "mktime (libc.so",
        Kind::Lock,
        "the lock of the time zone (mktime)",
    ),
    named(
        "strftime (libc.so",
        Kind::Lock,
        "the lock of the time zone (strftime)",
    ),
    named("random (libc.so", Kind::Lock, "the lock of random"),
    named("rand (libc.so", Kind::Lock, "the lock of rand"),
    named(
        "printf (libc.so",
        Kind::Lock,
        "the lock of a stream of stdio",
    ),
    named(
        "fwrite (libc.so",
        Kind::Lock,
        "the lock of a stream of stdio",
    ),
    named(
        "fputs (libc.so",
        Kind::Lock,
        "the lock of a stream of stdio",
    ),
    named("puts (libc.so", Kind::Lock, "the lock of a stream of stdio"),
    named("putc (libc.so", Kind::Lock, "the lock of a stream of stdio"),
    named("getc (libc.so", Kind::Lock, "the lock of a stream of stdio"),
    named("syslog (libc.so", Kind::Lock, "the lock of syslog"),
    // glibc: nptl.
    known("cond_wait", Kind::Condition),
    known("cond_timedwait", Kind::Condition),
    known("cond_clockwait", Kind::Condition),
    known("barrier_wait", Kind::Barrier),
    known("pthread_join", Kind::Join),
    known("pthread_timedjoin", Kind::Join),
    known("pthread_clockjoin", Kind::Join),
    named(
        "pthread_rwlock",
        Kind::Lock,
        "one lock (pthread_rwlock, for reading or writing)",
    ),
    named("pthread_mutex", Kind::Lock, "one lock (pthread_mutex)"),
    known("lll_lock", Kind::Lock),
    known("sem_wait", Kind::Condition),
    known("sem_timedwait", Kind::Condition),
    known("sem_clockwait", Kind::Condition),
    known("do_futex_wait", Kind::Condition),
];

/// How the names of the JVM's own threads begin (the kernel keeps 15 letters).
const JVM_THREADS: [&str; 17] = [
    "GC Thread#",
    "G1 ",
    "C1 Compiler",
    "C2 Compiler",
    "VM Thread",
    "VM Periodic",
    "Reference Handl",
    "Finalizer",
    "Signal Dispatch",
    "Service Thread",
    "Monitor Deflati",
    "Common-Cleaner",
    "Notification Th",
    "Attach Listener",
    "Sweeper thread",
    "ZWorker",
    "Shenandoah",
];
/// Those that collect garbage.
const JVM_COLLECTORS: [&str; 9] = [
    "GC Thread#",
    // The serial collector runs there.
    "VM Thread",
    "G1 Conc#",
    "G1 Main",
    "G1 Refine#",
    "ParGC Thread",
    "ZWorker",
    "ZDriver",
    "Shenandoah",
];
/// Functions that collect garbage: of Go (src/runtime/{mgc,mgcmark,mgcsweep}.go), V8 (src/heap),
/// CPython (Modules/gcmodule.c, Python/gc.c) and the JVM (gc/g1, gc/parallel, gc/serial).
const COLLECTORS: [&str; 31] = [
    "runtime.gcmarknewobject",
    "runtime.greyobject",
    "runtime.scanobject",
    "runtime.sweepone",
    "runtime.(*sweepLocked)",
    "runtime.freeSomeWbufs",
    "runtime.wbBufFlush",
    "runtime.gcStart",
    "runtime.markroot",
    "runtime.bgscavenge",
    "runtime.gcBgMarkWorker",
    "runtime.gcDrain",
    "runtime.gcAssistAlloc",
    "runtime.bgsweep",
    "v8::internal::Heap::CollectGarbage",
    "v8::internal::MarkCompactCollector",
    "v8::internal::Scavenge",
    "v8::internal::ConcurrentMarking",
    "gc_collect_main",
    "G1ParScanThreadState",
    "G1ConcurrentMark",
    "PSScavenge",
    "GenCollectedHeap::",
    "GCTaskThread",
    "OopOopIterate",
    "CompactibleSpace::",
    "ContiguousSpace::prepare_for_compaction",
    "MarkSweep::",
    "DefNewGeneration::",
    "PSParallelCompact",
    "PSPromotionManager::",
];

/// Pools of runtimes: a function on the stack of their threads, and what they are. What waits in
/// them keeps all else from them.
pub(crate) const POOLS: [(&str, &str); 4] = [
    // deps/uv/src/threadpool.c: UV_THREADPOOL_SIZE, 4 without it.
    ("uv__fs_work", "libuv's thread pool"),
    ("uv__work", "libuv's thread pool"),
    ("uv__getaddrinfo_work", "libuv's thread pool"),
    (
        "java.util.concurrent.ThreadPoolExecutor",
        "a thread pool of Java",
    ),
];

/// Whether a thread's name is one of the JVM's own.
pub(crate) fn is_jvm_thread(name: &str) -> bool {
    JVM_THREADS.iter().any(|begin| name.starts_with(begin))
}

/// Whether a thread's name is that of a collector of garbage of the JVM.
pub(crate) fn is_jvm_collector(name: &str) -> bool {
    JVM_COLLECTORS.iter().any(|begin| name.starts_with(begin))
}

/// Whether a function collects garbage.
pub(crate) fn is_collector(function: &str) -> bool {
    COLLECTORS.iter().any(|part| function.contains(part))
}
