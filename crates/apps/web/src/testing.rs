//! Labs for the tests of this crate: data directories with runs of synthetic kernels.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;

use model::{
    Build, BuildFile, BuildId, Declared, Direction, Ending, FailureReason, Machine, MachineId,
    NewJob, Origin, Outcome, Run, RunId, Stage, SubjectFailure, UnixTime, Work, WorkloadResult,
    unit_named,
};
use store::{Artifact, Location, Store};
use tempfile::TempDir;

use crate::{Limits, Site, serve};
use results::HistoryReader;

/// Hostile names for every place.
pub(crate) const HOSTILE: [&str; 6] = [
    "<script>alert(1)</script>",
    "\" onmouseover=\"alert(1)",
    "'><img src=x onerror=alert(1)>",
    "../../../etc/passwd",
    "\u{1b}[2J\u{202e}{{7*7}}",
    "&lt;b&gt; javascript:alert(1) %3Cscript%3E",
];

/// When the lab's queue is looked at.
pub(crate) const NOW: UnixTime = UnixTime::new(1_795_180_320);

/// A data directory that is being filled.
pub(crate) struct Lab {
    pub(crate) home: TempDir,
    pub(crate) store: Store,
    runs: u64,
}

pub(crate) fn build(version: &str) -> Build {
    let hex: String = version.bytes().map(|byte| format!("{byte:02x}")).collect();
    Build {
        id: BuildId::from_hex(&format!("{hex:0<16}").chars().take(60).collect::<String>()).unwrap(),
        name: "deb:6.12".parse().unwrap(),
        version: version.to_owned(),
        origin: Origin::Package {
            name: format!("linux-image-{version}-cloud-amd64"),
            version: format!("{version}-1"),
        },
        image: BuildFile {
            path: "/cache/vmlinuz".into(),
            sha256: "00".into(),
        },
        vmlinux: None,
        config: None,
        symbols: None,
        modules: None,
    }
}

pub(crate) fn machine(hex: &str) -> Machine {
    Machine {
        id: MachineId::from_hex(&format!("{hex:0<16}")).unwrap(),
        kind: "exact".parse().unwrap(),
        summary: "QEMU 7.2, 1 CPU".to_owned(),
        fingerprint: vec![("cpu".to_owned(), hex.to_owned())],
    }
}

/// A result with this cost, or a failed one for a cost of 0.
pub(crate) fn result(workload: &str, cost: f64) -> WorkloadResult {
    let failure = SubjectFailure {
        stage: Stage::Workload,
        reason: FailureReason::WorkloadFailed(HOSTILE[0].to_owned()),
        console_tail: HOSTILE[2].to_owned(),
    };
    let completed = cost > 0.0;
    WorkloadResult {
        workload: workload.to_owned(),
        operations: 1000,
        declared: None,
        outcome: if completed {
            Outcome::Completed
        } else {
            Outcome::Failed(failure)
        },
        samples: if completed {
            vec![cost * 2.0, cost, cost]
        } else {
            Vec::new()
        },
        counted: Vec::new(),
    }
}

impl Lab {
    pub(crate) fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path()).unwrap();
        Self {
            home,
            store,
            runs: 0,
        }
    }

    /// A lab whose results are on a server; the data directory stays empty.
    pub(crate) fn on(location: &Location) -> Self {
        Self {
            home: tempfile::tempdir().unwrap(),
            store: Store::open(location).unwrap(),
            runs: 0,
        }
    }

    pub(crate) fn run(
        &mut self,
        version: &str,
        on: &str,
        seed: u64,
        results: Vec<WorkloadResult>,
    ) -> RunId {
        let build = build(version);
        let machine = machine(on);
        self.store.save_build(&build).unwrap();
        self.store.save_machine(&machine).unwrap();
        self.runs += 1;
        let id = RunId::from_hex(&format!("{:016x}", self.runs)).unwrap();
        let run = Run {
            id: id.clone(),
            build: build.id,
            machine: machine.id,
            suite: "micro".to_owned(),
            seed,
            started_unix: UnixTime::new(1_795_000_000).plus_seconds(self.runs),
            environment: vec![("release".to_owned(), version.to_owned())],
            results,
        };
        let console = format!("Linux version {version}\n{}\n", HOSTILE[2]);
        let artifacts = [
            Artifact {
                name: "getppid.console",
                bytes: console.as_bytes(),
            },
            Artifact {
                name: "getppid.vmcore",
                bytes: b"\x7fELF",
            },
        ];
        self.store.save_run(&run, &artifacts).unwrap();
        id
    }

    /// Returns a job to queue.
    pub(crate) fn new_job(kernel: &str, machine: &str) -> NewJob {
        let work = Work {
            kernel: kernel.parse().unwrap(),
            tree: String::new(),
            config: "micro".into(),
            suite: "micro".into(),
            workloads: vec!["getppid".into(), "fork".into()],
            seeds: 3,
            machine: machine.into(),
        };
        NewJob {
            work,
            plan: String::new(),
            priority: 0,
            rank: 0,
            attempts_max: 3,
            deadline_s: 3_600,
        }
    }

    /// Queues jobs: two for a server that is quarantined, one that runs, one that is done.
    pub(crate) fn queue_jobs(&self) {
        let store = &self.store;
        let exact = [model::USUAL_MACHINE.to_owned()];
        for kernel in ["deb:6.1", "deb:6.12"] {
            store
                .queue_job(&Self::new_job(kernel, "exact"), NOW.minus_seconds(9_000))
                .unwrap();
            store
                .queue_job(&Self::new_job(kernel, "testbox"), NOW.minus_seconds(600))
                .unwrap();
        }
        let first = store
            .claim_job("farm", &exact, NOW.minus_seconds(8_000))
            .unwrap()
            .unwrap();
        store
            .change_job(first.number, |job| {
                job.end(
                    first.fence,
                    Ending::Done(String::new()),
                    NOW.minus_seconds(500),
                )
            })
            .unwrap();
        store
            .claim_job("farm", &exact, NOW.minus_seconds(400))
            .unwrap();
        let second = store
            .queued_jobs(store::Listed::Open)
            .unwrap()
            .into_iter()
            .find(|job| job.number == 3)
            .unwrap();
        store
            .change_job(3, |job| job.renew(second.fence, NOW.minus_seconds(10)))
            .unwrap();
        for _ in 0..3 {
            store
                .change_health("testbox", |health| {
                    health.fail(HOSTILE[0], NOW.minus_seconds(300));
                })
                .unwrap();
        }
    }

    /// Two machines, five kernels, three workloads; faults are worse since 6.12.100, and switches
    /// fail at the end.
    pub(crate) fn usual() -> Self {
        let mut lab = Self::new();
        for version in ["6.1.170", "6.1.192", "6.12.100", "6.12.107", "6.12.117"] {
            for machine in ["aa", "bb"] {
                for seed in [1, 2] {
                    let fault = if version.starts_with("6.12") {
                        345.0
                    } else {
                        330.0
                    };
                    let switch = if version == "6.12.117" { 0.0 } else { 50.0 };
                    let results = vec![
                        result("getppid", 100.0),
                        result("fault-anon", fault),
                        result("switch-yield", switch),
                    ];
                    lab.run(version, machine, seed, results);
                }
            }
        }
        lab
    }

    /// A lab in which every name is hostile.
    pub(crate) fn hostile() -> Self {
        let mut lab = Self::new();
        for (n, name) in HOSTILE.iter().enumerate() {
            for version in ["6.1", "6.12"] {
                let cost = if version == "6.1" { 100.0 } else { 130.0 };
                let mut results: Vec<WorkloadResult> = HOSTILE
                    .iter()
                    .map(|workload| result(workload, cost))
                    .collect();
                // A changing unit: pages name both.
                let unit = if version == "6.1" {
                    HOSTILE[n]
                } else {
                    HOSTILE[(n + 1) % HOSTILE.len()]
                };
                let direction = Some(Direction::LowerIsBetter);
                let declared = Some(Declared {
                    unit: unit_named(unit),
                    direction,
                    margin_percent: 1.0,
                });
                results.push(WorkloadResult {
                    declared,
                    ..result("changing", cost)
                });
                lab.run(&format!("{version}.{n}{name}"), "aa", 1, results);
            }
        }
        lab
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn source(&self) -> HistoryReader {
        let mut source = HistoryReader::open(self.home()).unwrap();
        source.refresh().unwrap();
        source
    }

    pub(crate) fn site(&self) -> Site {
        Site::new(self.home(), self.source().snapshot(1))
    }

    /// Serves it until the tests end, with a server that is off.
    pub(crate) fn serve(&self, limits: Limits) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let site = Arc::new(self.site().with_servers(vec!["sleeper".into()]));
        let source = self.source();
        site.note_off(["sleeper".to_owned()].into());
        std::thread::spawn(move || {
            drop(serve(
                listener,
                site,
                source,
                limits,
                &["lab.example".to_owned()],
                || false,
            ));
        });
        address
    }
}
