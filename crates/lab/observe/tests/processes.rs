//! What is observed of processes that do not want it: idle ones, those that have mapped what cannot
//! be read, and those in other roots.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stdout, reason = "a skipped check says why")]

use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use explain::facts::Facts;
use observe::{Observation, ObserveError, Subject, observe};

/// Observes a process, and gives up on an observation that waits.
fn facts(process: u32, seconds: f64) -> Result<Facts, ObserveError> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let observed = observe(&Observation {
            subject: Subject::Process(process),
            seconds: Some(seconds),
            stop: Arc::default(),
        });
        // The test may have given up.
        sender.send(observed.map(|observed| observed.facts)).ok();
    });
    receiver.recv_timeout(Duration::from_secs(60)).unwrap()
}

/// Returns all functions that were named in a process, and what was not observed.
fn named(process: u32) -> (Vec<String>, Vec<&'static str>) {
    let facts = facts(process, 1.0).unwrap();
    let stacks = facts
        .samples
        .map(|samples| samples.stacks)
        .unwrap_or_default();
    (
        stacks.into_iter().flat_map(|stack| stack.user).collect(),
        facts.gaps.iter().map(|gap| gap.what).collect(),
    )
}

fn compile(folder: &Path, name: &str, source: &str) -> PathBuf {
    let program = folder.join(name);
    let file = folder.join(format!("{name}.c"));
    std::fs::write(&file, source).unwrap();
    let ended = Command::new("cc")
        .args(["-O0", "-g", "-o"])
        .args([&program, &file])
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
    /// Starts it and waits for its first byte.
    fn start(mut command: Command) -> Self {
        let mut neighbour = Self(command.stdout(Stdio::piped()).spawn().unwrap());
        let mut byte = [0];
        neighbour
            .0
            .stdout
            .take()
            .unwrap()
            .read_exact(&mut byte)
            .unwrap();
        neighbour
    }

    fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn idle_process_did_not_end() {
    let home = tempfile::tempdir().unwrap();
    // So many threads that a look is costly.
    let source = "#include <pthread.h>\n#include <unistd.h>\n\
        static void *wait(void *x) { pause(); return x; }\n\
        int main(void) { pthread_t t; for (int i = 0; i < 2000; i++) pthread_create(&t, 0, wait, 0); write(1, \"x\", 1); pause(); }\n";
    let idle = Neighbour::start(Command::new(compile(home.path(), "idle", source)));
    if let Err(error) = facts(idle.id(), 1.0) {
        assert!(
            error.to_string().contains("it runs on, and Marvin saw it"),
            "{error}"
        );
    }
    assert!(facts(idle.id(), 10.0).unwrap().threads.len() > 1900);
}

/// Maps a file as code, below all libraries, and waits.
const MAPS: &str = "#include <fcntl.h>\n#include <sys/mman.h>\n#include <unistd.h>\n\
    int main(int count, char **words) { int file = open(words[1], O_RDONLY);\n\
    char *code = mmap((void *)0x10000000, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0); close(file);\n\
    if (code == MAP_FAILED) return 1; write(1, \"x\", 1); for (;;) usleep(20000); }\n";

#[test]
fn mapped_pipe_and_device_stop_no_observation() {
    let home = tempfile::tempdir().unwrap();
    let program = compile(home.path(), "maps", MAPS);
    // The version of what has such a name is read.
    let library = home.path().join("libc.so.6");
    for kind in ["pipe", "device"] {
        std::fs::write(&library, "no library").unwrap();
        let mut command = Command::new(&program);
        command.arg(&library);
        let hostile = Neighbour::start(command);
        std::fs::remove_file(&library).unwrap();
        match kind {
            "pipe" => assert!(
                Command::new("mkfifo")
                    .arg(&library)
                    .status()
                    .unwrap()
                    .success()
            ),
            _ => symlink("/dev/zero", &library).unwrap(),
        }
        assert!(
            !facts(hostile.id(), 1.0).unwrap().threads.is_empty(),
            "{kind}"
        );
        std::fs::remove_file(&library).unwrap();
    }
}

/// Spins in a function of a name.
fn spins(function: &str) -> String {
    format!(
        "#include <unistd.h>\nstatic volatile unsigned long sink;\n\
        __attribute__((noinline)) void {function}(void) {{ for (;;) sink++; }}\n\
        int main(void) {{ write(1, \"x\", 1); {function}(); }}\n"
    )
}

#[test]
fn functions_are_those_of_the_mapped_file() {
    let home = tempfile::tempdir().unwrap();
    let host = compile(home.path(), "program", &spins("of_the_host"));
    let inner = compile(home.path(), "inner", &spins("of_the_container"));
    // Another root has another program at the same path.
    let own = ["--user", "--map-root-user", "--mount"];
    if !Command::new("unshare")
        .args(own)
        .arg("true")
        .status()
        .unwrap()
        .success()
    {
        println!("skipped: this host allows no mount namespace");
        return;
    }
    let mut command = Command::new("unshare");
    command
        .args(own)
        .args(["sh", "-c", "mount --bind \"$1\" \"$0\" && exec \"$0\""])
        .args([&host, &inner]);
    let container = Neighbour::start(command);
    let is_named = |(functions, gaps): &(Vec<String>, Vec<&str>), wanted: &str| {
        // Not even samples, or no names.
        functions.is_empty()
            || gaps.contains(&"names of functions")
            || functions.iter().any(|name| name == wanted)
    };
    let found = named(container.id());
    assert!(
        !found.0.contains(&"of_the_host".to_owned()) && is_named(&found, "of_the_container"),
        "{found:?}"
    );
    // The file of a process that runs is replaced, as by an update.
    let replaced = Neighbour::start(Command::new(&host));
    std::fs::remove_file(&host).unwrap();
    std::fs::copy(&inner, &host).unwrap();
    let found = named(replaced.id());
    assert!(
        !found.0.contains(&"of_the_container".to_owned()) && is_named(&found, "of_the_host"),
        "{found:?}"
    );
}

#[test]
fn command_without_main_thread_runs_to_its_end() {
    let home = tempfile::tempdir().unwrap();
    let source = "#include <pthread.h>\n#include <stdlib.h>\n#include <unistd.h>\n\
        static void *work(void *x) { for (int i = 0; i < 300; i++) usleep(10000); exit(7); return x; }\n\
        int main(void) { pthread_t t; pthread_create(&t, 0, work, 0); pthread_exit(0); }\n";
    let command = vec![compile(home.path(), "leaves", source).into_os_string()];
    let observed = observe(&Observation {
        subject: Subject::Command(command),
        seconds: None,
        stop: Arc::default(),
    })
    .unwrap();
    assert_eq!(observed.status.and_then(|status| status.code()), Some(7));
    assert!(observed.facts.seconds > 2.0, "{}", observed.facts.seconds);
}

#[test]
fn children_that_refuse_to_end_are_killed() {
    let own = format!("61.{}", std::process::id());
    let stubborn = format!("trap '' TERM; exec sleep {own}");
    let script = "sh -c \"$0\" & setsid sh -c \"$0\" & exec sleep 62";
    let command = ["sh", "-c", script, &stubborn].map(Into::into).to_vec();
    let observed = observe(&Observation {
        subject: Subject::Command(command),
        seconds: Some(1.0),
        stop: Arc::default(),
    })
    .unwrap();
    assert!(observed.status.is_none());
    // A killed process takes a moment to end.
    for _ in 0..100 {
        if !std::fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .any(|process: std::fs::DirEntry| {
                std::fs::read_to_string(process.path().join("cmdline"))
                    .is_ok_and(|command| command == format!("sleep\0{own}\0"))
            })
        {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("they are left");
}
