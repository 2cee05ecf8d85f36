//! A soak: watch, work, serve and compare share a data directory while they are killed, stopped and
//! started again at random moments, cannot write, and the tree gets releases. At the end the
//! accounts are closed: each job is done once, each process is gone, no file is left over, and the
//! server's memory has not grown. Once with the store in the data directory, once in PostgreSQL,
//! which is then cut off too.
//!
//! `MARVIN_SOAK_MINUTES` sets the length of both, `MARVIN_SOAK_SEED` repeats a sequence.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use store::cluster::{Cluster, Durability};

use crate::bisected::Tree;
use crate::fresh::{Fresh, fresh};
use crate::killed::processes_of;
use crate::served::Server;
use crate::{format_output, images, marvin};

/// Kernels are images that the tree has, each with the release behind it, so that no two are equal.
const MAKEFILE: &str = "tinyconfig olddefconfig:\n\t@touch $(O)/.config\n\
    vmlinux:\n\t@cat \"$$(cat choice)\" stamp >$(O)/vmlinux\n\t@echo $(CURDIR)/mm/memory.c >$(O)/.memory.o.cmd\n";
/// What may happen; the first ones more often. The last two only where there is a PostgreSQL.
const EVENTS: [&str; 12] = [
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
    "database down",
    "database silent",
];
const EVENTS_OF_DATABASE: usize = 2;
/// Most jobs that wait while another release comes.
const WAITING_MAX: usize = 5;
/// Most bytes of a file while the disk is full.
const FULL: [u64; 4] = [0, 64 << 10, 4 << 20, 64 << 20];
/// What is asked of the servers again and again.
const PAGES: [&str; 4] = ["/", "/runs.html", "/kernels.html", "/metrics"];
/// How long a page may fail after the store is back.
const RECOVERY: Duration = Duration::from_secs(60);
/// How much the memory of the server may grow, and its limit (kB).
const GROWTH_KB_MAX: u64 = 8 << 10;
const MEMORY_KB_MAX: u64 = 64 << 10;

struct Soak {
    home: Fresh,
    /// The server of the store, and its address.
    database: Option<(Cluster, String)>,
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
    fn new(name: &str, seed: u64, cluster: Option<Cluster>) -> Self {
        let (_, images) = images();
        let home = fresh(&format!("{name}-home"));
        let tree = Tree::new(&format!("{name}-tree"));
        let log = fresh(&format!("{name}-log"));
        fs::write(&log, "").unwrap();
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
        let database = cluster.map(|cluster| {
            let address = cluster.place().unwrap();
            (cluster, address)
        });
        // There is a server when there are results.
        let first = format!("path:{}", tree.folder.join(&choices[0]).display());
        let output = program_with(&home, database.as_ref())
            .args(["run", &first, "--workload", "signal", "--seeds", "1", "-q"])
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let server = Server::start(program_with(&home, database.as_ref()));
        Self {
            home,
            database,
            tree,
            log,
            choices,
            random: seed | 1,
            releases: 0,
            counts: BTreeMap::new(),
            worker: None,
            server,
        }
    }

    fn program(&self) -> Command {
        program_with(&self.home, self.database.as_ref())
    }

    fn output_of(&self, arguments: &[&str]) -> String {
        let output = self.program().args(arguments).output().unwrap();
        format_output(&output, &self.home)
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
        let mut command = self.program();
        if let Some(largest) = largest {
            let ignore = "trap '' XFSZ; exec \"$@\"";
            let program = command.get_program().to_owned();
            command = Command::new("prlimit");
            command
                .env_clear()
                .env("PATH", std::env::var_os("PATH").unwrap())
                .env("MARVIN_HOME", &*self.home);
            if let Some((_, address)) = &self.database {
                command.env("MARVIN_STORE", address);
            }
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

    /// Adds a release, whose first watcher is killed; none while jobs of earlier ones wait, as all
    /// must be done in the end.
    fn release(&mut self) {
        let waiting = self.output_of(&["queue", "list"]);
        if waiting.matches(" waiting ").count() > WAITING_MAX {
            return;
        }
        *self.counts.entry("tree got a release").or_default() += 1;
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
        let output = self.output_of(&["watch", "-q"]);
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
        let possible = match self.database {
            Some(_) => EVENTS.len(),
            None => EVENTS.len() - EVENTS_OF_DATABASE,
        };
        let what = EVENTS[self.below(possible as u64) as usize];
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
            "server restarted" => self.server = Server::start(self.program()),
            "database down" => self.cut_database(),
            "database silent" => self.silence_database(),
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

    /// Ends the server of the store for some time, in which commands begin and the dashboard is
    /// asked.
    fn cut_database(&mut self) {
        self.database.as_mut().unwrap().0.pause().unwrap();
        self.ask_beside_cut();
        self.database.as_mut().unwrap().0.resume().unwrap();
    }

    /// The same with a server that accepts connections and does not answer.
    fn silence_database(&mut self) {
        self.database.as_ref().unwrap().0.signal("STOP").unwrap();
        self.ask_beside_cut();
        self.database.as_ref().unwrap().0.signal("CONT").unwrap();
    }

    fn ask_beside_cut(&mut self) {
        let mut watch = self.start(&["watch", "-q"], None);
        if self.below(2) == 0 {
            self.work(None);
        }
        self.pause(8000);
        for path in PAGES {
            self.server.ask(path);
        }
        drop(watch.kill());
        watch.wait().unwrap();
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

/// Returns Marvin with this data directory, and its store in a database if there is one.
fn program_with(home: &Path, database: Option<&(Cluster, String)>) -> Command {
    let mut program = marvin(home);
    if let Some((_, address)) = database {
        program.env("MARVIN_STORE", address);
    }
    program
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

/// Returns how long a soak lasts and what its random numbers begin with; `None` if none is wanted.
fn length_and_seed() -> Option<(f64, u64)> {
    let minutes = std::env::var("MARVIN_SOAK_MINUTES")
        .ok()
        .map(|text| text.parse::<f64>().unwrap());
    let Some(minutes) = minutes.or_else(|| std::env::var_os("MARVIN_FULL").map(|_| 60.0)) else {
        println!(
            "skipped: an hour of kills, stops and full disks is in `make test-full`; MARVIN_SOAK_MINUTES=10 is shorter"
        );
        return None;
    };
    let seed = std::env::var("MARVIN_SOAK_SEED")
        .ok()
        .map_or_else(|| u64::from(std::process::id()), |s| s.parse().unwrap());
    println!("MARVIN_SOAK_SEED={seed}");
    Some((minutes, seed))
}

#[test]
fn soak_ends_with_closed_accounts() {
    if let Some((minutes, seed)) = length_and_seed() {
        endure(Soak::new("soak", seed, None), minutes);
    }
}

#[test]
fn soak_with_postgres_ends_with_closed_accounts() {
    let Some((minutes, seed)) = length_and_seed() else {
        return;
    };
    let Some(cluster) = Cluster::start(Durability::Durable).unwrap() else {
        println!("not tested with PostgreSQL, which is not installed: scripts/needs.sh test");
        return;
    };
    endure(Soak::new("soak-postgres", seed, Some(cluster)), minutes);
}

/// Asks until a page is there or is said to be none, and panics with the answer after a while.
fn ask(server: &Server, path: &str) {
    let begun = Instant::now();
    loop {
        let answer = server.ask(path);
        if answer.starts_with("HTTP/1.1 200") || answer.starts_with("HTTP/1.1 404") {
            return;
        }
        assert!(begun.elapsed() < RECOVERY, "{path}: {answer}");
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn endure(mut soak: Soak, minutes: f64) {
    let steady = Server::start(soak.program());
    let begun = Instant::now();
    let mut memory = Vec::new();
    for _ in 0..3 {
        soak.release();
    }
    soak.work(None);
    while begun.elapsed().as_secs_f64() < minutes * 60.0 {
        soak.happen();
        for path in PAGES {
            ask(&steady, path);
            ask(&soak.server, path);
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
    let (home, log, releases) = (&soak.home, &soak.log, soak.releases);
    signal("KILL", soak.server.id());
    let folders: [&Path; 2] = [home, &soak.tree.folder];
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
    assert!(soak.output_of(&["watch", "-q"]).starts_with("exit 0"));
    let mut jobs = soak.output_of(&["queue", "list", "--all"]);
    for _ in 0..5 {
        // What has just failed would wait for its next attempt.
        for line in jobs.lines().filter(|line| line.contains(" waiting ")) {
            let job = line.split_whitespace().next().unwrap();
            soak.output_of(&["queue", "move", job, "first"]);
        }
        soak.output_of(&["work", "--once"]);
        jobs = soak.output_of(&["queue", "list", "--all"]);
        if !jobs.contains(" waiting ") {
            break;
        }
    }
    let pair = soak.pair();
    let end = soak.output_of(&compare(&pair));
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
        (releases, releases),
        "{jobs}\n{log}"
    );
    let runs = soak.output_of(&["runs", "--limit", "100000"]);
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
