//! Synthetic kernels, machines and runs for tests: better, worse, same, unclear, missing and failed rows.

use model::{
    Build, BuildFile, Direction, FailureReason, Machine, MachineKind, Metric, Origin, Outcome, Run, Stage,
    SubjectFailure, Workload, WorkloadResult,
};

use crate::compare::compare;
use crate::comparison::Comparison;
use crate::question::{Machines, Question, Side};

/// When everything in here happened.
pub(crate) const WHEN: i64 = 1_795_180_320;

const fn workload(name: &'static str, stresses: &'static str, operation: &'static str) -> Workload {
    Workload {
        name,
        stresses,
        operation,
        operations: 1000,
        iterations: 16,
        warm_up: 2,
        exercises: &[],
        equipment: model::Equipment::PLAIN,
        steadiness: model::Steadiness::Steady,
        row_of: None,
        metric: Metric::COST,
        source: "",
    }
}

/// Workloads as the micro suite has them, some in groups.
pub(crate) static WORKLOADS: [Workload; 12] = [
    workload("getppid", "system call entry and exit", "one getppid(2)"),
    workload("fork-wait", "creating and reaping processes", "one fork(2), exit(2) and wait(2)"),
    workload("fork-exec", "creating processes and starting programs", "one fork(2) and execve(2)"),
    workload("fault-anon", "first touches of anonymous memory", "one page touched"),
    workload("fault-file-private", "first touches of a private file mapping", "one page touched"),
    workload("fault-shared", "first touches of shared memory", "one page touched"),
    workload("mmap", "creating and removing mappings", "one mmap(2) and munmap(2)"),
    workload("pipe-pingpong", "pipes and waking another process", "one byte there and back"),
    workload("futex-wake", "fast user-space locks", "one wake and wait"),
    workload("io-uring-nop", "submission and completion rings", "one empty request"),
    workload("tcp-rr", "the loopback network", "one request and its answer"),
    workload("unix-stream", "local sockets", "one message of 64 bytes"),
];

/// A throughput, for tests of the other direction.
pub(crate) static THROUGHPUT: Workload = Workload {
    metric: Metric {
        name: "rate",
        quantity: model::Quantity::Cost,
        direction: Direction::HigherIsBetter,
        margin_percent: 5.0,
    },
    ..workload("copy-rate", "copying between processes", "one page copied")
};

/// Returns a name made to do harm.
pub(crate) const HOSTILE: &str = "<script>alert('x')</script>|`\x1b[31m*_&amp;";

/// Workloads with a hostile text.
pub(crate) static HOSTILE_WORKLOADS: [Workload; 1] =
    [workload("<b>|x", "<script>alert(1)</script>", "\" onmouseover=\"x")];

fn hex(text: &str) -> String {
    // FNV-1a, thrice: a stand-in for a hash that needs no dependency.
    let digits = |round: u64| {
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64 ^ round, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        format!("{hash:016x}")
    };
    (0..3).map(digits).collect()
}

/// Returns a build of a name and a version.
pub(crate) fn build(name: &str, version: &str) -> Build {
    let file = |part: &str| BuildFile {
        path: format!("/cache/{part}").into(),
        sha256: hex(&format!("{part}{name}{version}")),
    };
    let origin = match name.strip_prefix("path:") {
        Some(file) => file.to_owned(),
        None => format!("linux-image-{version}+deb12-cloud-amd64 {version}-1~bpo12+1 (bookworm)"),
    };
    Build {
        id: model::BuildId::from_hex(&hex(&format!("{name}{version}"))).unwrap(),
        name: name.parse().unwrap(),
        version: version.to_owned(),
        origin: Origin::of_line(&origin, &name.parse().unwrap()),
        image: file("bzImage"),
        vmlinux: Some(file("vmlinux")),
        config: Some(file("config")),
        symbols: None,
        modules: None,
    }
}

fn some_machine(summary: &str, fingerprint: &[(&str, &str)]) -> Machine {
    Machine {
        id: model::MachineId::from_hex(&hex(&format!("{fingerprint:?}"))).unwrap(),
        kind: MachineKind::Exact,
        summary: summary.to_owned(),
        fingerprint: fingerprint.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
    }
}

/// Returns the machine of most tests.
pub(crate) fn machine() -> Machine {
    some_machine(
        "QEMU 7.2.22 (Debian 1:7.2+dfsg-7), 1 CPU of model max, 512 MiB, icount shift 0",
        &[("agent", "0badcafe"), ("cpu", "max"), ("memory", "512 MiB"), ("qemu", "7.2.22")],
    )
}

/// Returns another machine.
pub(crate) fn other_machine() -> Machine {
    some_machine(
        "QEMU 9.1.0, 1 CPU of model qemu64, 512 MiB, icount shift 0",
        &[("agent", "0badcafe"), ("cpu", "qemu64"), ("memory", "512 MiB"), ("qemu", "9.1.0")],
    )
}

/// How a workload ends on a kernel.
#[derive(Debug, Clone)]
pub(crate) enum Ending {
    /// A cost, and what the seed adds to it: `cost + step * (seed - 1)`.
    Cost(f64, f64),
    Unsupported(&'static str),
    Failed(Stage, FailureReason, &'static str),
    Samples(Vec<f64>),
    Nothing,
}

/// A kernel of a test, owning what a [`Side`] borrows.
#[derive(Debug)]
pub(crate) struct Subject {
    pub(crate) build: Build,
    pub(crate) machine: Machine,
    pub(crate) runs: Vec<Run>,
}

impl Subject {
    /// Returns a kernel with a run for each seed.
    pub(crate) fn new(build: Build, seeds: &[u64], endings: &[(&'static str, Ending)]) -> Self {
        let mut subject = Self { machine: machine(), runs: Vec::new(), build };
        for seed in seeds {
            subject.add_run(*seed, endings);
        }
        subject
    }

    /// Adds one more run.
    pub(crate) fn add_run(&mut self, seed: u64, endings: &[(&'static str, Ending)]) {
        let id = hex(&format!("{}{seed}{}", self.build.id, self.runs.len()));
        self.runs.push(Run {
            id: model::RunId::from_hex(&id).unwrap(),
            build: self.build.id.clone(),
            machine: self.machine.id.clone(),
            suite: "micro".to_owned(),
            seed,
            started_unix: WHEN + i64::try_from(self.runs.len()).unwrap() * 7,
            environment: environment(&self.build),
            results: endings
                .iter()
                .filter(|(_, ending)| !matches!(ending, Ending::Nothing))
                .map(|(name, ending)| result(name, ending, seed))
                .collect(),
        });
    }

    /// Puts it on another machine.
    pub(crate) fn on(mut self, machine: Machine) -> Self {
        for run in &mut self.runs {
            run.machine = machine.id.clone();
        }
        self.machine = machine;
        self
    }

    /// Forgets what the guest said of itself.
    pub(crate) fn silent(mut self) -> Self {
        for run in &mut self.runs {
            run.environment.clear();
        }
        self
    }

    pub(crate) fn side(&self) -> Side<'_> {
        Side { build: &self.build, machine: &self.machine, also: Vec::new(), runs: self.runs.iter().collect() }
    }
}

fn environment(build: &Build) -> model::Environment {
    let options = if build.version.starts_with("6.1.") { "auto" } else { "auto,nosmt" };
    [
        ("release", format!("{}+deb12-cloud-amd64", build.version)),
        ("cpus", "1".to_owned()),
        (
            "command line",
            format!(
                "console=ttyS0 quiet panic=-1 rdinit=/agent nokaslr random.trust_cpu=off tsc=reliable clocksource=tsc \
                 mitigations={options}"
            ),
        ),
        ("config sha256", hex(&build.version)),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

fn result(name: &str, ending: &Ending, seed: u64) -> WorkloadResult {
    let (outcome, samples) = match ending {
        Ending::Cost(cost, step) => {
            let value = cost + step * f64::from(u32::try_from(seed - 1).unwrap());
            let mut samples = vec![value; 16];
            samples[0] = value * 3.0;
            samples[7] = value + 0.125;
            (Outcome::Completed, samples)
        }
        Ending::Samples(samples) => (Outcome::Completed, samples.clone()),
        Ending::Unsupported(what) => (Outcome::Unsupported((*what).to_owned()), vec![]),
        Ending::Failed(stage, reason, console) => (
            Outcome::Failed(SubjectFailure {
                stage: *stage,
                reason: reason.clone(),
                console_tail: (*console).to_owned(),
            }),
            vec![],
        ),
        Ending::Nothing => (Outcome::Completed, vec![]),
    };
    WorkloadResult { workload: name.to_owned(), operations: 1000, declared: None, outcome, samples, counted: vec![] }
}

pub(crate) const OOPS: &str = "\
[    4.211034] BUG: kernel NULL pointer dereference, address: 0000000000000018
[    4.211201] RIP: 0010:unix_stream_read_generic+0x1f4/0xa30 and a line that is longer than a mail is wide
[    4.211377] \x1b[31mKernel panic - not syncing: Fatal exception\x1b[0m
";

/// Returns the seeds 1 to `count`.
pub(crate) fn seeds(count: u64) -> Vec<u64> {
    (1..=count).collect()
}

/// Returns the base kernel of most tests.
pub(crate) fn old(seeds: &[u64]) -> Subject {
    Subject::new(
        build("deb:6.1", "6.1.192"),
        seeds,
        &[
            ("getppid", Ending::Cost(326.3, 0.0)),
            ("fork-wait", Ending::Cost(48_211.75, 12.5)),
            ("fork-exec", Ending::Cost(391_207.5, 31.0)),
            ("fault-anon", Ending::Cost(2211.5, 0.5)),
            ("fault-file-private", Ending::Cost(1833.25, 0.25)),
            ("fault-shared", Ending::Cost(2960.0, 1.0)),
            ("mmap", Ending::Cost(3402.125, 0.0)),
            ("pipe-pingpong", Ending::Cost(9120.0, 3.0)),
            ("futex-wake", Ending::Cost(5230.0, 0.0)),
            ("io-uring-nop", Ending::Unsupported("io_uring_setup(2): ENOSYS")),
            ("tcp-rr", Ending::Cost(29_801.0, 10.0)),
            ("unix-stream", Ending::Cost(7120.5, 0.0)),
        ],
    )
}

/// Returns the new kernel of most tests: every verdict, a panic and two kinds of missing values.
pub(crate) fn new(seeds: &[u64]) -> Subject {
    Subject::new(
        build("deb:6.12", "6.12.117"),
        seeds,
        &[
            ("getppid", Ending::Cost(340.8, 0.0)),
            ("fork-wait", Ending::Cost(44_012.25, 11.0)),
            ("fork-exec", Ending::Cost(391_907.5, 28.0)),
            ("fault-anon", Ending::Cost(2470.25, 1.25)),
            ("fault-file-private", Ending::Cost(1822.0, 12.0)),
            ("fault-shared", Ending::Cost(2958.5, 1.0)),
            ("mmap", Ending::Cost(2580.875, 0.25)),
            ("pipe-pingpong", Ending::Cost(9080.0, 70.0)),
            ("futex-wake", Ending::Cost(5230.0, 0.0)),
            ("io-uring-nop", Ending::Cost(812.0, 0.0)),
            ("tcp-rr", Ending::Nothing),
            ("unix-stream", Ending::Failed(Stage::Workload, FailureReason::Panicked, OOPS)),
        ],
    )
}

/// Returns a third kernel, which never boots.
pub(crate) fn dead(seeds: &[u64]) -> Subject {
    let ending = || {
        Ending::Failed(Stage::Boot, FailureReason::DidNotBoot, "VFS: Unable to mount root fs on unknown-block(0,0)\n")
    };
    let endings: Vec<_> = WORKLOADS.iter().map(|w| (w.name, ending())).collect();
    Subject::new(build("path:/boot/vmlinuz-6.18.3-dirty", "6.18.3-00012-g0123456789ab-dirty"), seeds, &endings).silent()
}

/// Returns the question of most tests.
pub(crate) fn question(seeds: &[u64]) -> Question {
    Question {
        scatters: std::collections::BTreeMap::new(),
        suite: "micro".to_owned(),
        workloads: WORKLOADS.iter().collect(),
        seeds: seeds.to_vec(),
        margin_percent: None,
        machines: Machines::Equal,
        command: format!("marvin compare deb:6.1 deb:6.12 --suite micro --seeds {}", seeds.len()),
        created_unix: Some(WHEN + 100),
    }
}

/// Returns the comparison of most tests.
pub(crate) fn two(seeds: &[u64]) -> Comparison {
    let (old, new) = (old(seeds), new(seeds));
    compare(&old.side(), &[new.side()], &question(seeds)).unwrap()
}

/// Returns a comparison of three kernels, one of which never boots.
pub(crate) fn three(seeds: &[u64]) -> Comparison {
    let (old, new, dead) = (old(seeds), new(seeds), dead(seeds));
    compare(&old.side(), &[new.side(), dead.side()], &question(seeds)).unwrap()
}

/// Returns a comparison with a kernel that is the base's image and was not run.
pub(crate) fn equal(seeds: &[u64]) -> Comparison {
    let old = old(seeds);
    let again = Subject::new(old.build.clone(), &[], &[]);
    compare(&old.side(), &[again.side()], &question(seeds)).unwrap()
}

/// Returns a comparison of different machines, with two runs that do not agree.
pub(crate) fn mixed(seeds: &[u64]) -> Comparison {
    let (old, mut new) = (old(seeds), new(seeds).on(other_machine()));
    new.add_run(1, &[("getppid", Ending::Cost(341.0, 0.0))]);
    let mut question = question(seeds);
    question.machines = Machines::Mixed;
    question.workloads.truncate(3);
    compare(&old.side(), &[new.side()], &question).unwrap()
}

/// Returns a comparison in which every word from outside is hostile.
pub(crate) fn hostile() -> Comparison {
    let cost = |c| [("<b>|x", Ending::Cost(c, 0.0))];
    let mut base = build("path:/srv/<script>", HOSTILE);
    base.origin = Origin::Described(HOSTILE.to_owned());
    let old = Subject::new(base, &[1], &cost(100.0));
    let mut new = Subject::new(build("deb:6.12", "6.12"), &[1], &[]);
    new.add_run(
        1,
        &[("<b>|x", Ending::Failed(Stage::Workload, FailureReason::WorkloadFailed(HOSTILE.to_owned()), HOSTILE))],
    );
    new.runs.remove(0);
    new.runs[0].environment[0] = (HOSTILE.to_owned(), HOSTILE.to_owned());
    let question =
        Question { workloads: HOSTILE_WORKLOADS.iter().collect(), command: HOSTILE.to_owned(), ..question(&[1]) };
    compare(&old.side(), &[new.side()], &question).unwrap()
}

/// Returns ten kernels with a thousand workloads of thirty samples each, and the question of their comparison.
pub(crate) fn large() -> (Vec<Subject>, Question) {
    let workloads: Vec<&'static Workload> = (0..1000)
        .map(|number| {
            // Left to the end of the tests: workloads are static.
            let name: &'static str = Box::leak(format!("group{}-{number}", number / 10).into_boxed_str());
            &*Box::leak(Box::new(workload(name, "something", "one thing")))
        })
        .collect();
    let subjects = (0..10_u32)
        .map(|kernel| {
            let endings: Vec<_> = workloads
                .iter()
                .zip(0_u32..)
                .map(|(w, number)| {
                    let cost = f64::from(1000 + number + kernel * (number % 7) * 5);
                    (w.name, Ending::Samples((0..30_u32).map(|i| cost + f64::from(i % 3)).collect()))
                })
                .collect();
            Subject::new(build("deb:6.1", &format!("6.1.{kernel}")), &[1], &endings)
        })
        .collect();
    let question = Question { workloads, ..question(&[1]) };
    (subjects, question)
}
