//! `marvin explain` on programs that are slow for one known reason each (`tests/zoo/zoo.c`), and on some with nothing wrong.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use crate::fresh::fresh;
use crate::{folder, format_output, marvin};

/// A program of the zoo.
struct Animal {
    name: &'static str,
    /// Variables of its environment.
    environment: &'static [(&'static str, &'static str)],
    /// Rules of which one has to name the cause; none for nothing wrong.
    rules: &'static [&'static str],
    /// Whether it stands in `make test`.
    is_quick: bool,
}

const fn animal(name: &'static str, rules: &'static [&'static str]) -> Animal {
    Animal { name, environment: &[], rules, is_quick: false }
}

const fn quick(name: &'static str, rules: &'static [&'static str]) -> Animal {
    Animal { name, environment: &[], rules, is_quick: true }
}

const DEBUG: &[(&str, &str)] = &[("LD_PRELOAD", "libc_malloc_debug.so.0"), ("MALLOC_CHECK_", "3")];
const TRIM: &[(&str, &str)] = &[("MALLOC_TRIM_THRESHOLD_", "0")];

const ZOO: [Animal; 29] = [
    Animal { environment: DEBUG, ..animal("debug-allocator", &["debug-allocator"]) },
    Animal { environment: DEBUG, ..animal("debug-allocator-small", &["debug-allocator"]) },
    Animal { environment: TRIM, ..quick("trimming", &["allocator-trimming"]) },
    animal("hot-mutex", &["hot-lock"]),
    quick("sleeping-holder", &["hot-lock"]),
    animal("many-locks", &["many-locks"]),
    animal("oversubscription", &["oversubscription"]),
    animal("quota", &["quota"]),
    animal("affinity", &["affinity"]),
    quick("sleep", &["sleep"]),
    quick("tiny-writes", &["tiny-calls"]),
    animal("tiny-reads", &["tiny-calls"]),
    quick("eagain", &["failing-calls"]),
    animal("fsync", &["sync"]),
    animal("random-reads", &["storage-reads"]),
    animal("fault-storm", &["page-faults"]),
    quick("refaulting", &["refaults"]),
    animal("thp-splitting", &["huge-pages"]),
    // Without a PMU nothing tells false sharing from work: the function is the answer.
    animal("false-sharing", &["one-function"]),
    animal("false-wakeups", &["false-wakeups"]),
    quick("slow-reader", &["pipe"]),
    quick("name-server", &["network"]),
    animal("fork-storm", &["new-processes"]),
    animal("exec-storm", &["new-processes"]),
    animal("mmap-writers", &["lock-spinning", "kernel-lock"]),
    quick("rcu", &["rcu"]),
    quick("user-loop", &["one-function"]),
    animal("poll", &["poll"]),
    animal("one-call", &["one-call"]),
];
const NOTHING_WRONG: [Animal; 5] = [
    animal("balanced", &[]),
    animal("balanced-threads", &[]),
    animal("mixed", &[]),
    animal("large-copies", &[]),
    animal("idle-pool", &[]),
];

/// One at a time: they are neighbours of each other.
static ONE: Mutex<()> = Mutex::new(());

/// Returns the programs, compiled.
fn zoo() -> PathBuf {
    let program = folder("zoo-program");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/zoo/zoo.c");
    let ended =
        Command::new("cc").args(["-O1", "-g", "-o"]).args([&program, &source]).arg("-lpthread").output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    program
}

/// Explains a program of the zoo and returns the document.
fn explain(program: &Path, animal: &Animal, home: &Path) -> Value {
    let seconds = "2";
    let folder = home.to_str().unwrap();
    let words = [program.to_str().unwrap(), animal.name, seconds, folder];
    let mut command = marvin(home);
    command.args(["explain", "--format", "json", "--seconds", "20", "--"]).envs(animal.environment.iter().copied());
    let _quota = (animal.name == "quota").then(|| {
        command.args(["sh", "-c", "echo $$ > \"$0/cgroup.procs\"; exec \"$@\"", CGROUP]);
        Quota::new()
    });
    let output = command.args(words).output().unwrap();
    assert!(output.status.success(), "{}", format_output(&output, home));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A cgroup that may use a third of a processor.
struct Quota;
const CGROUP: &str = "/sys/fs/cgroup/cpu/marvin-zoo";

impl Quota {
    fn new() -> Self {
        std::fs::create_dir_all(CGROUP).unwrap();
        std::fs::write(format!("{CGROUP}/cpu.cfs_quota_us"), "30000").unwrap();
        Self
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        // The program may still be leaving it.
        drop(std::fs::remove_dir(CGROUP));
    }
}

/// Why a program cannot be tried here.
fn impossible(animal: &Animal) -> Option<&'static str> {
    let is_there = |path: &str| Path::new(path).exists();
    match animal.name {
        "quota"
            if !is_there("/sys/fs/cgroup/cpu/cpu.cfs_period_us") && !is_there("/sys/fs/cgroup/cpu/cgroup.procs") =>
        {
            Some("no cgroup hierarchy of version 1 with cpu")
        }
        _ => None,
    }
}

/// Explains animals and returns those with another cause.
fn visit(animals: &[&Animal], home: &Path) -> BTreeMap<&'static str, String> {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    std::fs::create_dir_all(home).unwrap();
    let program = zoo();
    let mut wrong = BTreeMap::new();
    for animal in animals {
        if let Some(why) = impossible(animal) {
            println!("skipped: {}: {why}", animal.name);
            continue;
        }
        let document = explain(&program, animal, home);
        let sentence = document["sentence"].as_str().unwrap().to_owned();
        println!("{:<22} {sentence}", animal.name);
        let rule = document["cause"]["rule"].as_str();
        // With neighbours, nothing else may be wrong.
        let is_right = match rule {
            None | Some("neighbours" | "steal") => animal.rules.is_empty(),
            Some(rule) => animal.rules.contains(&rule),
        };
        if !is_right {
            wrong.insert(animal.name, sentence);
        }
        assert_ne!(document["cause"]["certainty"], "shown", "{}: nothing was verified", animal.name);
        assert_budget(&document);
    }
    wrong
}

/// Each budget closes, of every thread and of all.
fn assert_budget(document: &Value) {
    let budgets = document["threads"].as_array().unwrap().iter().map(|thread| &thread["budget"]);
    for budget in budgets.chain([&document["budget"]]) {
        let parts = ["user", "system", "waiting", "blocked"].map(|part| budget[part].as_f64().unwrap());
        let sum: f64 = parts.iter().sum();
        assert!((0.98..=1.02).contains(&sum), "{budget}");
    }
}

fn is_full() -> bool {
    std::env::var_os("MARVIN_FULL").is_some()
}

#[test]
fn slow_programs_get_their_cause() {
    let animals: Vec<&Animal> = ZOO.iter().filter(|animal| is_full() || animal.is_quick).collect();
    let wrong = visit(&animals, &fresh("zoo-home"));
    // Other tests are neighbours: of the whole zoo two may be wrong, of the small one none.
    let allowed = if is_full() { 2 } else { 0 };
    assert!(wrong.len() <= allowed, "{wrong:#?}");
}

#[test]
fn healthy_programs_get_no_cause() {
    let animals: Vec<&Animal> = NOTHING_WRONG.iter().take(if is_full() { 5 } else { 1 }).collect();
    let wrong = visit(&animals, &fresh("healthy-home"));
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Ends the neighbours, also when a test fails.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn neighbours_do_not_hide_causes() {
    if !is_full() {
        println!("skipped: make test-full runs it");
        return;
    }
    let is_ended = AtomicBool::new(false);
    let wrong = std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_ended.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let _ending = Ending(&is_ended);
        visit(&ZOO.iter().collect::<Vec<_>>(), &fresh("noisy-home"))
    });
    assert!(wrong.len() <= 4, "{wrong:#?}");
}

#[test]
fn verified_cause_is_shown() {
    let home = fresh("verified-home");
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let program = zoo();
    let words = ["explain", "--verify", "--rate", "rec/s", "--format", "json", "--"];
    let mut command = marvin(&home);
    command.args(words).arg(&program).args(["trimming", "1", home.to_str().unwrap()]).envs(TRIM.iter().copied());
    let output = command.output().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["cause"]["certainty"], "shown", "{}", format_output(&output, &home));
}

#[test]
fn mistakes_of_explain_fail_clearly() {
    let home = fresh("explain-mistakes-home");
    let mut all = String::new();
    for arguments in [
        &["explain"][..],
        &["explain", "--", "no-such-program"],
        &["explain", "--pid", "4194304"],
        &["explain", "--", "false"],
        &["explain", "--verify", "deb:6.12"],
        &["explain", "deb:6.12", "--on", "vm"],
        &["explain", "deb:6.12", "--pid", "1"],
    ] {
        all.extend(["$ marvin ", &arguments.join(" "), "\n", &crate::output_of(&home, arguments), "\n"]);
    }
    insta::assert_snapshot!(all);
}

#[test]
fn process_is_observed_and_left_alone() {
    let home = fresh("pid-home");
    let mut sleeper = Command::new("sleep").arg("60").spawn().unwrap();
    let id = sleeper.id().to_string();
    let output = marvin(&home).args(["explain", "--pid", &id, "--seconds", "1", "--format", "json"]).output().unwrap();
    let is_alive = sleeper.try_wait().unwrap().is_none();
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["cause"]["rule"], "sleep", "{document}");
    assert!(is_alive);
}
