//! A soak: watch, work, serve and compare share a data directory while they are killed, stopped and
//! started again at random moments, cannot write, and the tree gets releases. At the end the
//! accounts are closed: each job is done once, each process is gone, no file is left over, and the
//! server's memory has not grown.
//!
//! `MARVIN_SOAK_MINUTES` sets its length, `MARVIN_SOAK_SEED` repeats a sequence.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::bisected::Tree;
use crate::fresh::{Fresh, fresh};
use crate::killed::processes_of;
use crate::served::Server;
use crate::{images, marvin, output_of};

/// Kernels are images that the tree has, each with the release behind it, so that no two are equal.
const MAKEFILE: &str = "tinyconfig olddefconfig:\n\t@touch $(O)/.config\n\
    vmlinux:\n\t@cat \"$$(cat choice)\" stamp >$(O)/vmlinux\n\t@echo $(CURDIR)/mm/memory.c >$(O)/.memory.o.cmd\n";
/// What may happen; the first ones more often.
const EVENTS: [&str; 10] = [
    "worker killed",
    "worker killed",
    "worker stopped",
    "process stopped",
    "machine killed",
    "server restarted",
    "server stopped",
    "comparison killed",
    "release",
    "disk full",
];
/// Most bytes of a file while the disk is full.
const FULL: [u64; 4] = [0, 64 << 10, 4 << 20, 64 << 20];
/// How much the memory of the server may grow, and its limit (kB).
const GROWTH_KB_MAX: u64 = 8 << 10;
const MEMORY_KB_MAX: u64 = 64 << 10;

struct Soak {
    home: Fresh,
    tree: Tree,
    log: Fresh,
    choices: Vec<String>,
    random: u64,
    releases: usize,
    counts: BTreeMap<&'static str, u32>,
    worker: Option<Child>,
    server: Server,
}

impl Soak {
    fn new(seed: u64) -> Self {
        let (_, images) = images();
        let home = fresh("soak-home");
        let tree = Tree::new("soak-tree");
        fs::create_dir_all(&home).unwrap();
        tree.file("Makefile", MAKEFILE);
        ["Kbuild", "mm/memory.c"]
            .iter()
            .for_each(|file| tree.file(file, ""));
        let choices: Vec<String> = images.iter().map(|image| tree.image(image)).collect();
        let text = format!(
            "[work]\nattempts = 20\n\n[[tree]]\nname = \"linux\"\ngit = \"{}\"\n\n\
             [[plan]]\nname = \"quick\"\nworkloads = [\"getppid\"]\nseeds = 1\n",
            tree.name()
        );
        fs::write(home.join("marvin.toml"), text).unwrap();
        // There is a server when there are results.
        let first = format!("path:{}", tree.folder.join(&choices[0]).display());
        let output = output_of(
            &home,
            &["run", &first, "--workload", "signal", "--seeds", "1", "-q"],
        );
        assert!(output.starts_with("exit 0"), "{output}");
        let server = Server::start(marvin(&home));
        let log = fresh("soak-log");
        let counts = BTreeMap::new();
        fs::write(&log, "").unwrap();
        Self {
            home,
            tree,
            log,
            choices,
            random: seed | 1,
            releases: 0,
            counts,
            worker: None,
            server,
        }
    }

    /// Returns a random number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % end.max(1)
    }

    fn pause(&mut self, most_ms: u64) {
        let wait_ms = self.below(most_ms);
        std::thread::sleep(Duration::from_millis(wait_ms));
    }

    /// Starts a command whose complaints go to the log; no file of it may be larger than this.
    fn start(&self, arguments: &[&str], largest: Option<u64>) -> Child {
        let log = File::options().append(true).open(&self.log).unwrap();
        let mut command = marvin(&self.home);
        if let Some(largest) = largest {
            let ignore = "trap '' XFSZ; exec \"$@\"";
            let program = command.get_program().to_owned();
            command = Command::new("prlimit");
            command
                .env_clear()
                .env("PATH", std::env::var_os("PATH").unwrap())
                .env("MARVIN_HOME", &*self.home);
            command
                .arg(format!("--fsize={largest}"))
                .args(["sh", "-c", ignore, "sh"])
                .arg(program);
        }
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap()
    }

    fn work(&mut self, largest: Option<u64>) {
        self.end_worker();
        self.worker = Some(self.start(&["work"], largest));
    }

    fn end_worker(&mut self) {
        if let Some(mut worker) = self.worker.take() {
            drop(worker.kill());
            worker.wait().unwrap();
        }
    }

    /// Adds a release, whose first watcher is killed.
    fn release(&mut self) {
        let number = self.releases + 12;
        let choice = self.choices[self.releases % 2].clone();
        self.releases += 1;
        self.tree.file("stamp", &format!("\nrelease {number}\n"));
        self.tree.commit("choice", &choice);
        self.tree.git(&["tag", &format!("v6.{number}")]);
        let mut watch = self.start(&["watch"], None);
        self.pause(400);
        drop(watch.kill());
        watch.wait().unwrap();
        let output = output_of(&self.home, &["watch", "-q"]);
        assert!(output.starts_with("exit 0"), "{output}");
    }

    fn happen(&mut self) {
        // A worker that ended by itself was refused or could not write.
        if self
            .worker
            .as_mut()
            .is_none_or(|worker| worker.try_wait().unwrap().is_some())
        {
            *self.counts.entry("worker ended by itself").or_default() += 1;
            self.work(None);
        }
        let what = EVENTS[self.below(EVENTS.len() as u64) as usize];
        *self.counts.entry(what).or_default() += 1;
        match what {
            "worker killed" => self.work(None),
            "worker stopped" => self.stop(self.worker.as_ref().unwrap().id()),
            "server stopped" => self.stop(self.server.id()),
            "process stopped" => self.with_process(|_| true, Self::stop),
            "machine killed" => self.with_process(
                |name| name.starts_with("qemu-system"),
                |_, id| signal("KILL", id),
            ),
            "server restarted" => self.server = Server::start(marvin(&self.home)),
            "comparison killed" => {
                let pair = self.pair();
                let mut compare = self.start(&compare(&pair), None);
                self.pause(5000);
                drop(compare.kill());
                compare.wait().unwrap();
            }
            "release" => self.release(),
            _ => {
                let largest = FULL[self.below(FULL.len() as u64) as usize];
                self.work(Some(largest));
                self.pause(8000);
                self.work(None);
            }
        }
    }

    fn stop(&mut self, id: u32) {
        signal("STOP", id);
        self.pause(3000);
        signal("CONT", id);
    }

    /// Does something to one of the processes that work in the data directory.
    fn with_process(
        &mut self,
        wanted: impl Fn(&str) -> bool,
        mut what: impl FnMut(&mut Self, u32),
    ) {
        let processes = fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .map(|entry| entry.path());
        let ids: Vec<u32> = processes
            .filter(|process| {
                let name = fs::read_to_string(process.join("comm")).unwrap_or_default();
                let cwd = fs::read_link(process.join("cwd"));
                cwd.is_ok_and(|cwd| cwd.starts_with(&self.home)) && wanted(name.trim())
            })
            .filter_map(|process| process.file_name()?.to_str()?.parse().ok())
            .collect();
        if !ids.is_empty() {
            let id = ids[self.below(ids.len() as u64) as usize];
            what(self, id);
        }
    }

    fn pair(&self) -> [String; 2] {
        [0, 1].map(|n| format!("path:{}", self.tree.folder.join(&self.choices[n]).display()))
    }
}

fn compare(pair: &[String; 2]) -> [&str; 7] {
    [
        "compare",
        &pair[0],
        &pair[1],
        "--workload",
        "getppid",
        "--seeds",
        "1",
    ]
}

/// Sends a signal to a process, which may have ended.
fn signal(name: &str, id: u32) {
    Command::new("kill")
        .args([&format!("-{name}"), &id.to_string()])
        .stderr(Stdio::null())
        .status()
        .unwrap();
}

#[test]
fn soak_ends_with_closed_accounts() {
    let minutes = std::env::var("MARVIN_SOAK_MINUTES")
        .ok()
        .map(|text| text.parse::<f64>().unwrap());
    let Some(minutes) = minutes.or_else(|| std::env::var_os("MARVIN_FULL").map(|_| 60.0)) else {
        println!(
            "skipped: an hour of kills, stops and full disks is in `make test-full`; MARVIN_SOAK_MINUTES=10 is shorter"
        );
        return;
    };
    let seed = std::env::var("MARVIN_SOAK_SEED")
        .ok()
        .map_or_else(|| u64::from(std::process::id()), |s| s.parse().unwrap());
    println!("MARVIN_SOAK_SEED={seed}");
    let mut soak = Soak::new(seed);
    let steady = Server::start(marvin(&soak.home));
    let begun = Instant::now();
    let mut memory = Vec::new();
    for _ in 0..3 {
        soak.release();
    }
    soak.work(None);
    while begun.elapsed().as_secs_f64() < minutes * 60.0 {
        soak.happen();
        for path in ["/", "/runs.html", "/kernels.html", "/metrics"] {
            for answer in [steady.ask(path), soak.server.ask(path)] {
                assert!(
                    answer.starts_with("HTTP/1.1 200") || answer.starts_with("HTTP/1.1 404"),
                    "{path}: {answer}"
                );
            }
        }
        memory.push(steady.memory_kb("VmRSS"));
        soak.pause(4000);
    }
    println!(
        "{:.1} minutes: {:#?}",
        begun.elapsed().as_secs_f64() / 60.0,
        soak.counts
    );
    let early = memory[memory.len() / 4..memory.len() / 2]
        .iter()
        .max()
        .copied()
        .unwrap_or_default();
    let late = memory[memory.len() * 3 / 4..]
        .iter()
        .max()
        .copied()
        .unwrap_or_default();
    let most = steady.memory_kb("VmHWM");
    let [Some(first), Some(last)] = [memory.first(), memory.last()] else {
        panic!("nothing happened in {minutes} minutes");
    };
    println!(
        "memory of serve: {first} kB at the start, {early} kB in the second quarter, {late} kB in the last, {last} kB at \
         the end, at most {most} kB"
    );
    assert!(
        late <= early + GROWTH_KB_MAX && most <= MEMORY_KB_MAX,
        "{memory:?}"
    );
    let output = steady.end();
    assert!(!output.contains("panicked"), "{output}");
    close(soak);
}

/// Ends everything, completes the work undisturbed, and checks what is there.
fn close(mut soak: Soak) {
    soak.end_worker();
    let Soak {
        home,
        tree,
        log,
        releases,
        server,
        ..
    } = &soak;
    signal("KILL", server.id());
    let folders: [&Path; 2] = [home, &tree.folder];
    let begun = Instant::now();
    while !processes_of(&folders).is_empty() {
        assert!(
            begun.elapsed() < Duration::from_secs(2),
            "left: {:#?}",
            processes_of(&folders)
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    let log = fs::read_to_string(log).unwrap();
    assert!(!log.contains("panicked"), "{log}");
    assert!(output_of(home, &["watch", "-q"]).starts_with("exit 0"));
    let mut jobs = String::new();
    for _ in 0..5 {
        // What has just failed would wait for its next attempt.
        (1..=*releases).for_each(|job| {
            drop(output_of(
                home,
                &["queue", "move", &job.to_string(), "first"],
            ));
        });
        output_of(home, &["work", "--once"]);
        jobs = output_of(home, &["queue", "list", "--all"]);
        if !jobs.contains(" waiting ") {
            break;
        }
    }
    let pair = soak.pair();
    let end = output_of(home, &compare(&pair));
    assert!(
        ["exit 0", "exit 1", "exit 3"]
            .iter()
            .any(|code| end.starts_with(code)),
        "{end}"
    );
    assert_eq!(
        (
            jobs.matches(" done ").count(),
            jobs.matches("git:v6.").count()
        ),
        (*releases, *releases),
        "{jobs}\n{log}"
    );
    let runs = output_of(home, &["runs", "--limit", "100000"]);
    println!(
        "{releases} jobs done, {} runs",
        runs.matches("run_").count()
    );
    // One for each release, two of `compare`, and the first.
    assert_eq!(
        (runs.matches("run_").count(), runs.matches(" 1/1").count()),
        (releases + 3, releases + 3),
        "{runs}"
    );
    let left = leftovers(home);
    assert!(left.is_empty(), "{left:#?}");
}

/// Returns what only a running process needs.
fn leftovers(home: &Path) -> Vec<PathBuf> {
    let inside = |name: &str| {
        fs::read_dir(home.join(name))
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
    };
    let expected = ["initrd", "tracer.so", "lock"];
    let of_processes = ["scratch", "incoming", "downloads", "jobs"]
        .into_iter()
        .flat_map(inside);
    let hidden = ["builds", "artefacts", "snapshots", "symbols"]
        .into_iter()
        .flat_map(inside);
    let hidden = hidden.filter(|path| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with('.'))
    });
    of_processes
        .filter(|path| !expected.iter().any(|name| path.ends_with(name)))
        .chain(hidden)
        .collect()
}
