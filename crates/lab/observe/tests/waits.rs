//! Whom blocked threads wait for, and what that does: holders of locks, the other ends of pipes and
//! sockets, tracers.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stdout, reason = "a skipped check says why")]

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use explain::facts::{Facts, Object, Role, Wait, WatchedKind};
use observe::{Observation, Subject, observe};

const HEAD: &str = "#define _GNU_SOURCE\n#include <fcntl.h>\n#include <poll.h>\n#include <pthread.h>\n#include <signal.h>\n\
    #include <stdio.h>\n#include <stdlib.h>\n#include <sys/file.h>\n#include <unistd.h>\n\
    static void *in(void *(*body)(void *), void *x) { pthread_t t; pthread_create(&t, 0, body, x); return 0; }\n";

fn compile(folder: &Path, name: &str, source: &str) -> PathBuf {
    let program = folder.join(name);
    let file = folder.join(format!("{name}.c"));
    std::fs::write(&file, format!("{HEAD}{source}")).unwrap();
    let ended = Command::new("cc")
        .args(["-O0", "-g", "-w", "-o"])
        .args([&program, &file])
        .arg("-lpthread")
        .output()
        .unwrap();
    assert!(
        ended.status.success(),
        "{}",
        String::from_utf8_lossy(&ended.stderr)
    );
    program
}

/// A process that ends with the test.
struct Neighbour(Child);

impl Neighbour {
    /// Starts it and waits for its first line.
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        Self(child)
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn facts(process: u32, seconds: f64) -> Facts {
    let observation = Observation {
        subject: Subject::Process(process),
        seconds: Some(seconds),
        stop: Arc::default(),
    };
    observe(&observation).unwrap().facts
}

/// Returns the longest wait for which a test holds.
fn longest(facts: &Facts, is_wanted: impl Fn(&Wait) -> bool) -> Wait {
    let wanted = facts.waits.iter().filter(|wait| is_wanted(wait));
    let longest = wanted.max_by(|one, other| one.seconds.total_cmp(&other.seconds));
    longest
        .cloned()
        .unwrap_or_else(|| panic!("{:#?}", facts.waits))
}

#[test]
fn holder_of_a_mutex_is_followed() {
    let home = tempfile::tempdir().unwrap();
    let source = "static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;\n\
        void *waits(void *x) { pthread_mutex_lock(&lock); return x; }\n\
        void holds(void) { pthread_mutex_lock(&lock); in(waits, 0); in(waits, 0); puts(\"x\"); fflush(stdout); sleep(60); }\n\
        int main(void) { holds(); }\n";
    let program = Neighbour::start(&mut Command::new(compile(home.path(), "holder", source)));
    let found = facts(program.0.id(), 1.5);
    let lock = longest(&found, |wait| matches!(wait.object, Object::Futex(_)));
    let holder = &lock.behind[0];
    assert_eq!(
        (holder.role, holder.thread, holder.is_own),
        (Role::Holder, program.0.id(), true)
    );
    let doing = holder.doing[0].wait.as_ref().unwrap();
    assert_eq!(doing.call, "clock_nanosleep");
    assert!(
        doing.stack.iter().any(|function| function == "holds"),
        "{doing:?}"
    );
}

/// The interpreter whose coroutines are read, by its path: what is called so may be a script that starts it.
fn python() -> Option<String> {
    let ended = Command::new("python3")
        .args([
            "-c",
            "import sys; print(sys.version_info[:2] == (3, 11) and sys.executable or '')",
        ])
        .output();
    let text = String::from_utf8(ended.ok()?.stdout).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

#[test]
fn coroutines_of_python_are_read() {
    let Some(python) = python() else {
        println!("skipped: no CPython 3.11 as python3");
        return;
    };
    let source = "import asyncio\n\
        async def take(lock):\n    async with lock: pass\n\
        async def hold(lock):\n    async with lock: await asyncio.sleep(60)\n\
        async def main():\n    lock = asyncio.Lock(); held = asyncio.create_task(hold(lock)); await asyncio.sleep(0)\n\
        \x20   print('x', flush=True); await asyncio.gather(held, take(lock), take(lock))\n\
        asyncio.run(main())\n";
    let home = tempfile::tempdir().unwrap();
    let script = home.path().join("app.py");
    std::fs::write(&script, source).unwrap();
    let program = Neighbour::start(Command::new(python).arg(script));
    let found = facts(program.0.id(), 2.0).coroutines;
    let ends = |stack: &[String]| (stack.first().cloned(), stack.last().cloned());
    let wanted = ["Python's asyncio.Lock.acquire", "take app.py"].map(|one| Some(one.to_owned()));
    let taker = found
        .iter()
        .find(|one| ends(&one.stack) == wanted.clone().into());
    assert_eq!(taker.map(|one| one.number), Some(2.0), "{found:#?}");
}

#[test]
fn pair_within_a_process_is_its_own() {
    let home = tempfile::tempdir().unwrap();
    let source = "#include <sys/socket.h>\n\
        int main(void) { int pair[2]; socketpair(AF_UNIX, SOCK_STREAM, 0, pair); puts(\"x\"); fflush(stdout); \
        if (fork() == 0) { sleep(60); _exit(0); } \
        struct pollfd file = {pair[0], POLLIN}; for (;;) poll(&file, 1, 60000); }\n";
    let shared = compile(home.path(), "shared", source);
    let alone = compile(home.path(), "alone", &source.replace("fork() == 0", "0"));
    for (program, kind) in [(alone, WatchedKind::Own), (shared, WatchedKind::Socket)] {
        let program = Neighbour::start(&mut Command::new(program));
        let found = facts(program.0.id(), 1.5);
        let wait = longest(&found, |wait| wait.call == "poll");
        assert_eq!(wait.watched[0].kind, kind, "{wait:?}");
    }
}

#[test]
fn times_of_timed_waits_are_read() {
    let home = tempfile::tempdir().unwrap();
    let source = "#include <time.h>\n\
        static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;\n\
        int main(void) { puts(\"x\"); fflush(stdout); pthread_mutex_lock(&lock); for (;;) { struct timespec t; \
        clock_gettime(CLOCK_REALTIME, &t); t.tv_sec += 7; pthread_cond_timedwait(&cond, &lock, &t); } }\n";
    let program = Neighbour::start(&mut Command::new(compile(home.path(), "timed", source)));
    let found = facts(program.0.id(), 1.0);
    let wait = longest(&found, |wait| matches!(wait.object, Object::Futex(_)));
    assert!(
        (5000..=7000).contains(&wait.timeout_ms.unwrap()),
        "{wait:?}"
    );
    let forever = "int main(void) { puts(\"x\"); fflush(stdout); for (;;) ppoll(0, 0, 0, 0); }\n";
    let program = Neighbour::start(&mut Command::new(compile(home.path(), "forever", forever)));
    let found = facts(program.0.id(), 1.0);
    let wait = longest(&found, |wait| wait.call == "ppoll");
    assert_eq!((wait.object, wait.timeout_ms), (Object::Timer, None));
}

#[test]
fn holder_of_a_file_lock_is_found() {
    let home = tempfile::tempdir().unwrap();
    let source = "int main(int n, char **w) { int f = open(w[1], O_CREAT | O_RDWR, 0600); puts(\"x\"); fflush(stdout); flock(f, LOCK_EX); for (;;); }\n";
    let program = compile(home.path(), "locks", source);
    let file = home.path().join("lock");
    let holder = Neighbour::start(Command::new(&program).arg(&file));
    std::thread::sleep(Duration::from_millis(300));
    let waiter = Neighbour::start(Command::new(&program).arg(&file));
    let found = facts(waiter.0.id(), 1.5);
    let lock = longest(&found, |wait| wait.call == "flock");
    assert_eq!(
        lock.object,
        Object::File(file.to_string_lossy().into_owned())
    );
    let behind = &lock.behind[0];
    assert_eq!(
        (behind.role, behind.process, behind.is_own, &*behind.name),
        (Role::Holder, holder.0.id(), false, "locks")
    );
    assert_eq!(behind.doing[0].wait, None, "it runs");
}

#[test]
fn stopped_reader_of_a_pipe_is_found() {
    let home = tempfile::tempdir().unwrap();
    let pipe = home.path().join("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let source = "int main(int n, char **w) { char text[4096] = {}; int f;\n\
        if (n > 2) { puts(\"x\"); fflush(stdout); open(w[1], O_RDONLY); raise(SIGSTOP); }\n\
        puts(\"x\"); fflush(stdout); f = open(w[1], O_WRONLY); for (;;) write(f, text, sizeof text); }\n";
    let program = compile(home.path(), "ends", source);
    let reader = Neighbour::start(Command::new(&program).arg(&pipe).arg("reads"));
    let writer = Neighbour::start(Command::new(&program).arg(&pipe));
    std::thread::sleep(Duration::from_millis(300));
    let found = facts(writer.0.id(), 1.5);
    let full = longest(&found, |wait| wait.call == "write");
    let behind = &full.behind[0];
    assert_eq!((behind.role, behind.process), (Role::Peer, reader.0.id()));
    let doing = behind.doing[0].wait.as_ref().unwrap();
    assert_eq!(doing.object, Object::Stop);
}

#[test]
fn polled_socket_leads_to_its_peer() {
    let home = tempfile::tempdir().unwrap();
    let source = "int main(void) { struct pollfd p = { 0, POLLIN }; puts(\"x\"); fflush(stdout); poll(&p, 1, -1); }\n";
    let program = compile(home.path(), "polls", source);
    let (mut own, theirs) = UnixStream::pair().unwrap();
    let client = Neighbour::start(
        Command::new(program).stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs))),
    );
    let found = facts(client.0.id(), 1.5);
    own.write_all(b"x").unwrap();
    let poll = longest(&found, |wait| wait.call == "poll" || wait.call == "ppoll");
    assert_eq!(poll.watched[0].kind, WatchedKind::Socket);
    // A kernel without CONFIG_UNIX_DIAG names no peer.
    if let Some(peer) = poll.behind.first() {
        assert_eq!((peer.role, peer.process), (Role::Peer, std::process::id()));
    }
}

#[test]
fn thousand_threads_on_pipes_are_seen() {
    let home = tempfile::tempdir().unwrap();
    let source = "void *reads(void *x) { char c; int p[2]; pipe(p); read(p[0], &c, 1); return x; }\n\
        int main(void) { pthread_attr_t a; pthread_t t; pthread_attr_init(&a); pthread_attr_setstacksize(&a, 65536);\n\
        for (int i = 0; i < 1000; i++) pthread_create(&t, &a, reads, 0); puts(\"x\"); fflush(stdout); pause(); }\n";
    let program = compile(home.path(), "pipes", source);
    let mut command = Command::new("sh");
    command
        .args(["-c", "ulimit -n 4096; exec \"$0\""])
        .arg(program);
    let many = Neighbour::start(&mut command);
    let found = facts(many.0.id(), 8.0);
    assert!(found.threads.len() > 990, "{}", found.threads.len());
    let on_pipes = found.waits.iter().filter(|wait| wait.call == "read");
    assert!(on_pipes.count() > 900);
}

#[test]
fn stopped_observation_keeps_what_was_seen() {
    let observation = Observation {
        subject: Subject::Command(["sleep", "60"].map(Into::into).into()),
        seconds: None,
        stop: Arc::default(),
    };
    let stop = Arc::clone(&observation.stop);
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(1));
        stop.store(true, Ordering::Relaxed);
    });
    let observed = observe(&observation).unwrap();
    assert!(observed.status.is_none(), "Marvin ended it");
    assert!(
        (0.5..20.0).contains(&observed.facts.seconds),
        "{}",
        observed.facts.seconds
    );
    assert_eq!(longest(&observed.facts, |_| true).call, "clock_nanosleep");
}
