//! `marvin explain` on programs that are slow for one known reason each (`tests/zoo/zoo.c`), and on
//! some with nothing wrong.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use subprocess::Shared;

use serde_json::Value;

use crate::busy::while_busy;
use crate::compiled::compile_file;
use crate::fresh::fresh;
use crate::{folder, format_output, is_full, is_left_to_full, marvin};

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
    Animal {
        name,
        environment: &[],
        rules,
        is_quick: false,
    }
}

const fn quick(name: &'static str, rules: &'static [&'static str]) -> Animal {
    Animal {
        name,
        environment: &[],
        rules,
        is_quick: true,
    }
}

const DEBUG: &[(&str, &str)] = &[
    ("LD_PRELOAD", "libc_malloc_debug.so.0"),
    ("MALLOC_CHECK_", "3"),
];
const TRIM: &[(&str, &str)] = &[("MALLOC_TRIM_THRESHOLD_", "0")];

const ZOO: [Animal; 32] = [
    Animal {
        environment: DEBUG,
        ..animal("debug-allocator", &["debug-allocator"])
    },
    Animal {
        environment: DEBUG,
        ..animal("debug-allocator-small", &["debug-allocator"])
    },
    Animal {
        environment: TRIM,
        ..quick("trimming", &["allocator-trimming"])
    },
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
    animal("swapping", &["swap"]),
    animal("dirty", &["dirty-throttling"]),
    quick("no-files", &["open-files"]),
];
const NOTHING_WRONG: [Animal; 5] = [
    animal("balanced", &[]),
    animal("balanced-threads", &[]),
    animal("mixed", &[]),
    animal("large-copies", &[]),
    animal("idle-pool", &[]),
];

/// One at a time: they are neighbours of each other.
static ONE: Shared<()> = Shared::new(());

/// Returns the programs, compiled.
fn zoo() -> PathBuf {
    let program = folder("zoo-program");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/zoo/zoo.c");
    compile_file(&source, &program, &["-O1", "-g"]);
    program
}

/// Explains a program of the zoo and returns the document.
fn explain(program: &Path, animal: &Animal, home: &Path) -> Value {
    let seconds = "2";
    let folder = home.to_str().unwrap();
    let arguments = [program.to_str().unwrap(), animal.name, seconds, folder];
    let mut command = marvin(home);
    command
        .args(["explain", "--format", "json", "--seconds", "20", "--"])
        .envs(animal.environment.iter().copied());
    let _place = Place::new(animal.name, home);
    if let Some(cgroup) = cgroup(animal.name) {
        command.args([
            "sh",
            "-c",
            "echo $$ > \"$0/cgroup.procs\"; exec \"$@\"",
            cgroup,
        ]);
    }
    let output = command.args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", format_output(&output, home));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The cgroup of an animal that needs one: a third of a processor, or 64 MiB.
fn cgroup(animal: &str) -> Option<&'static str> {
    match animal {
        "quota" => Some("/sys/fs/cgroup/cpu/marvin-zoo"),
        "swapping" => Some("/sys/fs/cgroup/memory/marvin-zoo"),
        _ => None,
    }
}

/// What of this host an animal needs changed, until it is dropped.
struct Place {
    undo: Vec<Box<dyn Fn()>>,
}

impl Place {
    fn new(animal: &'static str, home: &Path) -> Self {
        let mut undo: Vec<Box<dyn Fn()>> = Vec::new();
        if let Some(folder) = cgroup(animal) {
            std::fs::create_dir_all(folder).unwrap();
            let (file, value) = if animal == "quota" {
                ("cpu.cfs_quota_us", "30000")
            } else {
                ("memory.limit_in_bytes", "64M")
            };
            std::fs::write(format!("{folder}/{file}"), value).unwrap();
            // The program may still be leaving it.
            undo.push(Box::new(move || drop(std::fs::remove_dir(folder))));
        }
        if animal == "swapping" {
            let file = home.join("swap");
            let size = std::ffi::OsStr::new("512M");
            assert!(succeeds("fallocate", &["-l".as_ref(), size, file.as_ref()]));
            std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600))
                .unwrap();
            assert!(succeeds("mkswap", &[file.as_ref()]));
            assert!(succeeds("swapon", &[file.as_ref()]));
            undo.push(Box::new(move || {
                drop(Command::new("swapoff").arg(&file).output());
            }));
        }
        if let ("dirty", Some(device)) = (animal, device(home)) {
            let write = |device: &Path, name: &str, value: &str| {
                drop(std::fs::write(device.join(name), value));
            };
            write(&device, "strict_limit", "1");
            write(&device, "max_bytes", "4194304");
            undo.push(Box::new(move || {
                write(&device, "strict_limit", "0");
                write(&device, "max_ratio", "100");
            }));
        }
        Self { undo }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.undo.iter().rev().for_each(|undo| undo());
    }
}

/// Returns where the kernel has the limits of the device below a directory, if it has limits in
/// bytes.
fn device(home: &Path) -> Option<PathBuf> {
    let number = std::os::unix::fs::MetadataExt::dev(&std::fs::metadata(home).ok()?);
    let major = number >> 8 & 0xfff;
    let minor = number & 0xff;
    let device = PathBuf::from(format!("/sys/class/bdi/{major}:{minor}"));
    device.join("max_bytes").exists().then_some(device)
}

/// Why a program cannot be tried here.
fn impossible(animal: &Animal, home: &Path) -> Option<&'static str> {
    let is_there = |path: &str| Path::new(path).exists();
    match animal.name {
        "quota"
            if !is_there("/sys/fs/cgroup/cpu/cpu.cfs_period_us")
                && !is_there("/sys/fs/cgroup/cpu/cgroup.procs") =>
        {
            Some("no cgroup hierarchy of version 1 with cpu")
        }
        "swapping" if !is_there("/sys/fs/cgroup/memory/memory.limit_in_bytes") => {
            Some("no cgroup hierarchy of version 1 with memory")
        }
        "dirty" if device(home).is_none() => {
            Some("the kernel has no limit of dirty bytes for the device")
        }
        _ => None,
    }
}

/// Rules that need no samples of what runs.
const WITHOUT_SAMPLES: [&str; 14] = [
    "affinity",
    "dirty-throttling",
    "false-wakeups",
    "hot-lock",
    "many-locks",
    "network",
    "oversubscription",
    "pipe",
    "poll",
    "quota",
    "rcu",
    "sleep",
    "swap",
    "sync",
];

/// Why this host gives no samples with the kernel's functions; `None` if it does.
fn missing_samples(document: &Value) -> Option<String> {
    let gaps = document["not_observed"].as_array().unwrap();
    gaps.iter()
        .find(|gap| {
            let what = gap["what"].as_str().unwrap_or_default();
            what.starts_with("samples") || what.starts_with("functions")
        })
        .map(|gap| format!("{}: {}", gap["what"], gap["why"]))
}

fn succeeds(program: &str, options: &[&std::ffi::OsStr]) -> bool {
    let output = Command::new(program).args(options).output().unwrap();
    output.status.success()
}

/// Explains animals and returns those with another cause.
fn visit(animals: &[&Animal], home: &Path) -> BTreeMap<&'static str, String> {
    let _one = ONE.lock();
    std::fs::create_dir_all(home).unwrap();
    let program = zoo();
    let mut wrong = BTreeMap::new();
    for animal in animals {
        if let Some(why) = impossible(animal, home) {
            println!("skipped: {}: {why}", animal.name);
            continue;
        }
        let document = explain(&program, animal, home);
        let sentence = document["sentence"].as_str().unwrap().to_owned();
        println!("{:<22} {sentence}", animal.name);
        if let Some(gap) = missing_samples(&document)
            && !animal
                .rules
                .iter()
                .all(|rule| WITHOUT_SAMPLES.contains(rule))
        {
            println!("skipped: {}: {gap}", animal.name);
            continue;
        }
        let rule = document["cause"]["rule"].as_str();
        // With neighbours, nothing else may be wrong.
        let is_right = match rule {
            None | Some("neighbours" | "steal") => animal.rules.is_empty(),
            Some(rule) => animal.rules.contains(&rule),
        };
        if !is_right {
            wrong.insert(animal.name, sentence);
        }
        assert_ne!(
            document["cause"]["certainty"], "shown",
            "{}: nothing was verified",
            animal.name
        );
        assert_budget(&document);
    }
    wrong
}

/// Each budget closes, of every thread and of all.
fn assert_budget(document: &Value) {
    let budgets = document["threads"]
        .as_array()
        .unwrap()
        .iter()
        .map(|thread| &thread["budget"]);
    for budget in budgets.chain([&document["budget"]]) {
        let parts =
            ["user", "system", "waiting", "blocked"].map(|part| budget[part].as_f64().unwrap());
        let sum: f64 = parts.iter().sum();
        assert!((0.98..=1.02).contains(&sum), "{budget}");
    }
}

#[test]
fn slow_programs_get_their_cause() {
    let animals: Vec<&Animal> = ZOO
        .iter()
        .filter(|animal| is_full() || animal.is_quick)
        .collect();
    let wrong = visit(&animals, &fresh("zoo-home"));
    // Other tests are neighbours: of the whole zoo two may be wrong, of the small one none.
    let allowed = if is_full() { 2 } else { 0 };
    assert!(wrong.len() <= allowed, "{wrong:#?}");
}

#[test]
fn healthy_programs_get_no_cause() {
    let animals: Vec<&Animal> = NOTHING_WRONG
        .iter()
        .take(if is_full() { 5 } else { 1 })
        .collect();
    let wrong = visit(&animals, &fresh("healthy-home"));
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn neighbours_do_not_hide_causes() {
    if is_left_to_full("one workload beside busy neighbours") {
        return;
    }
    let wrong = while_busy(2, || {
        visit(&ZOO.iter().collect::<Vec<_>>(), &fresh("noisy-home"))
    });
    assert!(wrong.len() <= 4, "{wrong:#?}");
}

/// Verifies the cause of an animal and returns its certainty.
fn verified(animal: &'static str, environment: &[(&str, &str)]) -> String {
    let home = fresh(&format!("verified-{animal}-home"));
    std::fs::create_dir_all(&home).unwrap();
    let _one = ONE.lock();
    let program = zoo();
    let _place = Place::new(animal, &home);
    let mut command = marvin(&home);
    command.args([
        "explain", "--verify", "--rate", "rec/s", "--format", "json", "--",
    ]);
    if let Some(cgroup) = cgroup(animal) {
        command.args([
            "sh",
            "-c",
            "echo $$ > \"$0/cgroup.procs\"; exec \"$@\"",
            cgroup,
        ]);
    }
    command
        .arg(&program)
        .args([animal, "1", home.to_str().unwrap()])
        .envs(environment.iter().copied());
    let output = command.output().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    println!("{}", document["sentence"]);
    if let Some(gap) = missing_samples(&document) {
        println!("skipped: {animal}: {gap}");
        return "shown".into();
    }
    document["cause"]["certainty"].as_str().unwrap().to_owned()
}

#[test]
fn verified_cause_is_shown() {
    assert_eq!(verified("trimming", TRIM), "shown");
    if is_full() && impossible(&animal("quota", &[]), Path::new("/")).is_none() {
        assert_eq!(verified("quota", &[]), "shown");
    }
    if is_full() {
        assert_eq!(verified("thp-splitting", &[]), "shown");
        for name in ["swapping", "dirty"] {
            match impossible(&animal(name, &[]), &zoo()) {
                None => assert_eq!(verified(name, &[]), "shown"),
                Some(why) => println!("skipped: {name}: {why}"),
            }
        }
    }
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
        &["explain", "deb:6.12", "--model", "--on", "vm"],
        &["explain", "deb:6.12", "--pid", "1"],
    ] {
        all.extend([
            "$ marvin ",
            &arguments.join(" "),
            "\n",
            &crate::output_of(&home, arguments),
            "\n",
        ]);
    }
    insta::assert_snapshot!(all);
}

#[test]
fn process_is_observed_and_left_alone() {
    let home = fresh("pid-home");
    let mut sleeper = Command::new("sleep").arg("60").spawn().unwrap();
    let id = sleeper.id().to_string();
    let output = marvin(&home)
        .args([
            "explain",
            "--pid",
            &id,
            "--seconds",
            "1",
            "--format",
            "json",
        ])
        .output()
        .unwrap();
    let is_alive = sleeper.try_wait().unwrap().is_none();
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["cause"]["rule"], "sleep", "{document}");
    assert!(is_alive);
}

#[test]
fn interrupted_observation_gives_its_answer() {
    let home = fresh("interrupted-explain-home");
    let started = marvin(&home)
        .args(["explain", "--format", "json", "--", "sleep", "60"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_secs(3));
    let id = started.id().to_string();
    assert!(succeeds("kill", &["-INT".as_ref(), id.as_ref()]));
    let output = started.wait_with_output().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["end"]["state"], "interrupted", "{document}");
    assert_eq!(document["cause"]["rule"], "sleep", "{document}");
}

#[test]
fn ends_and_commands_are_in_the_document() {
    let home = fresh("ended-explain-home");
    let explain = |options: &[&str], script: &str| {
        let output = marvin(&home)
            .args(["explain", "--format", "json"])
            .args(options)
            .args(["--", "sh", "-c", script])
            .output()
            .unwrap();
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let cut = explain(&["--seconds", "1"], "sleep 60");
    assert_eq!(cut["end"]["state"], "cut-short");
    let failed = explain(&[], "sleep 1; exit 7");
    assert_eq!(
        (&failed["end"]["state"], &failed["end"]["exit_code"]),
        (&"failed".into(), &7.into())
    );
    // A shell reads it back as it was given.
    assert_eq!(
        failed["command"],
        "marvin explain -- sh -c 'sleep 1; exit 7'"
    );
    let killed = explain(&[], "sleep 1; kill -9 $$");
    assert_eq!(
        (&killed["end"]["state"], &killed["end"]["signal"]),
        (&"killed".into(), &9.into())
    );
}

#[test]
fn kernels_are_explained_by_settings() {
    let home = folder("explain-kernels");
    let explain = |own: &[&str]| {
        let output = marvin(&home)
            .args(["-q", "explain"])
            .args(own)
            .args(["--format", "json"])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", format_output(&output, &home));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let document = explain(&["deb:6.1", "deb:6.12", "--workload", "fault-anon"]);
    let workload = &document["workloads"][0];
    let hypotheses = workload["hypotheses"].to_string();
    // 6.4 brought per-VMA locks (mm/memory.c: lock_vma_under_rcu).
    assert!(
        hypotheses.contains("CONFIG_PER_VMA_LOCK") && hypotheses.contains("lock_vma_under_rcu"),
        "{workload}"
    );
    // Each part that is whole adds up to the same difference.
    let sum = |part: usize, side: &str| -> f64 {
        let rows = workload["parts"][part]["rows"].as_array().unwrap();
        rows.iter().map(|row| row[side].as_f64().unwrap()).sum()
    };
    for side in ["base", "new"] {
        assert!((sum(0, side) - sum(1, side)).abs() < 1e-6, "{workload}");
    }
    let folder = home.join("pages");
    assert!(
        marvin(&home)
            .arg("publish")
            .arg(&folder)
            .status()
            .unwrap()
            .success()
    );
    let page = find_page(&folder, "fault-anon.html");
    assert!(
        page.contains("hypothesis: CONFIG_PER_VMA_LOCK") && page.contains("in the ledger"),
        "{page}"
    );
    let same = explain(&["deb:6.12", "deb:6.12", "--workload", "getppid"]);
    assert_eq!(
        same["workloads"][0]["sentence"],
        "getppid: not one instruction more or less"
    );
    assert_eq!(
        (
            same["settings"].as_array().unwrap().len(),
            &same["other_options"]
        ),
        (0, &Value::from(0))
    );
}

/// Returns the page of a name below a folder.
fn find_page(folder: &Path, name: &str) -> String {
    let mut left = vec![folder.to_owned()];
    while let Some(folder) = left.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                left.push(path);
            } else if path.ends_with(name) {
                return std::fs::read_to_string(path).unwrap();
            }
        }
    }
    panic!("no page {name}");
}
