//! Prints how a planted slow-down of 3 % is found under the noise of this host: by Marvin's looks,
//! by designs of fixed size, and by the t-test that users of perf stat and hyperfine do, all on the
//! same data.
//!
//! Each run is a process of its own, as for `perf stat -r`; Marvin takes them as it takes boots.
//! The slow-down is 3 % more of the workload's operations than are declared. Without it, two sides
//! of runs are equal, and any verdict is a false alarm.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;
use figures::cpu;
use figures::figure::Figures;
use lab::AGENT;
use stats::synthetic::{Chance, welch};
use stats::{
    Better, GroupMean, History, RatioEstimate, Scores, Sequential, Verdict, estimate_ratio,
    estimate_within,
};
use wire::{Clock, Frame, Job, Perturbation, Task};

/// The workload, and the operations of an iteration: about 3 ms.
const WORKLOAD: &str = "getppid";
const OPERATIONS: u64 = 20_000;
/// The same with the slow-down.
const SLOWED: u64 = OPERATIONS * 103 / 100;
const ITERATIONS: u32 = 5;
/// Comparisons of each kind, and the most runs of a side.
const PAIRS: usize = 200;
const RUNS: usize = 10;
const SEED: u64 = 20_261_123;

fn main() -> anyhow::Result<()> {
    let mut figures = Figures;
    figures.doubt_load(cpu::load()?)?;
    let declared = model::workloads()
        .into_iter()
        .find(|known| &*known.name == WORKLOAD);
    let margin = declared
        .map(|workload| workload.metric.margin_percent)
        .context("the workload is gone")?;
    let host = Host::open()?;
    let pairs = host.record()?;
    print(&pairs, margin / 100.0)
}

/// The agent on this host's last processor.
struct Host {
    folder: tempfile::TempDir,
    processor: usize,
}

/// The samples of one run, in nanoseconds per declared operation.
type Run = Vec<f64>;

/// The runs of one comparison: a kernel, itself, and the slowed one.
struct Pair {
    sides: [Vec<Run>; 3],
}

impl Host {
    fn open() -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let processor = std::thread::available_parallelism()?.get() - 1;
        let host = Self { folder, processor };
        fs::write(host.agent(), AGENT)?;
        fs::set_permissions(host.agent(), fs::Permissions::from_mode(0o755))?;
        Ok(host)
    }

    fn agent(&self) -> PathBuf {
        self.folder.path().join("marvin-agent")
    }

    fn job(&self, name: &str, operations: u64) -> anyhow::Result<PathBuf> {
        let task = Task::Workload {
            name: WORKLOAD.to_owned(),
            operations,
            warm_up: 1,
            iterations: ITERATIONS,
            tasks: 1,
            all_processors: false,
            probes: Vec::new(),
            monitors: None,
            sampling: None,
        };
        let job = Job {
            id: 1,
            clock: Clock::Monotonic,
            perturbation: Perturbation::default(),
            task,
        };
        let file = self.folder.path().join(name);
        fs::write(&file, job.encode()?)?;
        Ok(file)
    }

    /// Records all runs. The three sides take turns in an order drawn for each turn, so that no
    /// side is always the first.
    fn record(&self) -> anyhow::Result<Vec<Pair>> {
        let plain = self.job("plain", OPERATIONS)?;
        let slowed = self.job("slowed", SLOWED)?;
        let jobs = [&plain, &plain, &slowed];
        let mut chance = Chance::new(SEED);
        let mut pairs = Vec::new();
        for _ in 0..PAIRS {
            let mut pair = Pair {
                sides: [Vec::new(), Vec::new(), Vec::new()],
            };
            for _ in 0..RUNS {
                let first = chance.below(3);
                let step = 1 + chance.below(2);
                for side in (0..3).map(|place| (first + place * step) % 3) {
                    pair.sides[side].push(self.run(jobs[side])?);
                }
            }
            pairs.push(pair);
        }
        Ok(pairs)
    }

    fn run(&self, job: &Path) -> anyhow::Result<Run> {
        let mut command = Command::new("taskset");
        command
            .args(["--cpu-list", &self.processor.to_string()])
            .arg(self.agent())
            .arg("job");
        let output = command
            .stdin(File::open(job)?)
            .stderr(Stdio::null())
            .output()?;
        let stream = wire::decode(&output.stdout, 1)?;
        let samples = stream.frames.into_iter().find_map(|frame| match frame {
            Frame::Samples(ticks) => Some(ticks),
            _ => None,
        });
        let samples = samples.context("the agent sent no samples")?;
        Ok(samples
            .into_iter()
            .map(|ns| ns as f64 / OPERATIONS as f64)
            .collect())
    }
}

/// A difference that a rule claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Claim {
    Faster,
    Slower,
}

/// What a rule says about a comparison.
struct Judgement {
    claim: Option<Claim>,
    /// The runs of each side that it took.
    runs: usize,
}

/// A rule for a comparison.
struct Rule<'a> {
    name: &'static str,
    judge: &'a Judge<'a>,
}

impl<'a> Rule<'a> {
    fn new(name: &'static str, judge: &'a Judge<'a>) -> Self {
        Self { name, judge }
    }
}

type Judge<'a> = dyn Fn(&[Run], &[Run]) -> anyhow::Result<Judgement> + 'a;

fn print(pairs: &[Pair], margin: f64) -> anyhow::Result<()> {
    let plan = Sequential::new(RUNS);
    let looks = |base: &[Run], new: &[Run]| {
        for runs in 2..=RUNS {
            let rating = plan
                .look(&scores(&base[..runs])?, &scores(&new[..runs])?, margin)
                .rating;
            if !matches!(rating.verdict(rating.p()), None | Some(Verdict::Unclear(_)))
                || runs == RUNS
            {
                return Ok(Judgement {
                    claim: claimed(&rating),
                    runs,
                });
            }
        }
        unreachable!("the last look returns")
    };
    let fixed = |runs: usize| {
        move |base: &[Run], new: &[Run]| {
            let rating = estimate_ratio(
                &scores(&base[..runs])?,
                &scores(&new[..runs])?,
                &History::default(),
                margin,
            );
            Ok(Judgement {
                claim: claimed(&rating),
                runs,
            })
        }
    };
    let t_test = |runs: usize| {
        move |base: &[Run], new: &[Run]| {
            let means =
                |side: &[Run]| -> Vec<f64> { side[..runs].iter().map(|run| mean(run)).collect() };
            let base = means(base);
            let new = means(new);
            let direction = if mean(&new) > mean(&base) {
                Claim::Slower
            } else {
                Claim::Faster
            };
            let claim = (welch(&base, &new) < 0.05).then_some(direction);
            Ok(Judgement { claim, runs })
        }
    };
    let within = |base: &[Run], new: &[Run]| judge_within(&base[0], &new[0], margin);
    let mut out = std::io::stdout().lock();
    let most = 0.05 + 2.0 * (0.05 * 0.95 / PAIRS as f64).sqrt();
    writeln!(
        out,
        "3 % planted on this host: {WORKLOAD}, {PAIRS} comparisons of equal sides and {PAIRS} with the slow-down; margin {} % \
         (most false alarms of a test at 5 %: {:.1} %)",
        margin * 100.0,
        most * 100.0
    )?;
    writeln!(
        out,
        "{:<36} {:>12} {:>9} {:>18}",
        "rule", "false alarms", "found", "runs of each side"
    )?;
    let five = fixed(5);
    let ten = fixed(RUNS);
    let t_test_of_five = t_test(5);
    let t_test_of_ten = t_test(RUNS);
    let rules = [
        Rule::new("marvin, looks up to 10 runs", &looks),
        Rule::new("marvin, 5 runs", &five),
        Rule::new("marvin, 10 runs", &ten),
        Rule::new("marvin, within one run", &within),
        Rule::new("perf stat -r 5, hyperfine: t-test", &t_test_of_five),
        Rule::new("perf stat -r 10, hyperfine: t-test", &t_test_of_ten),
    ];
    for Rule { name, judge } in rules {
        let mut alarms = 0;
        let mut found = 0;
        let mut runs = 0;
        for Pair {
            sides: [base, same, slowed],
        } in pairs
        {
            alarms += usize::from(judge(base, same)?.claim.is_some());
            let judgement = judge(base, slowed)?;
            found += usize::from(judgement.claim == Some(Claim::Slower));
            runs += judgement.runs;
        }
        let share = |count: usize| format!("{:.1} %", count as f64 / PAIRS as f64 * 100.0);
        writeln!(
            out,
            "{name:<36} {:>12} {:>9} {:>18.1}",
            share(alarms),
            share(found),
            runs as f64 / PAIRS as f64
        )?;
    }
    Ok(())
}

/// Judges by the samples of one run of each side, as of an import that has one run of each kernel.
fn judge_within(base: &Run, new: &Run, margin: f64) -> anyhow::Result<Judgement> {
    let rating = estimate_ratio(
        &scores(std::slice::from_ref(base))?,
        &scores(std::slice::from_ref(new))?,
        &History::default(),
        margin,
    );
    let means = GroupMean::compute(base).zip(GroupMean::compute(new));
    let found = means.and_then(|(base, new)| estimate_within(&rating, &base, &new, margin));
    let verdict = found.and_then(|found| found.verdict(found.p_margin));
    Ok(Judgement {
        claim: verdict.and_then(|verdict| claimed_by(&verdict)),
        runs: 1,
    })
}

fn claimed(rating: &RatioEstimate) -> Option<Claim> {
    claimed_by(&rating.verdict(rating.p())?)
}

fn claimed_by(verdict: &Verdict) -> Option<Claim> {
    match verdict {
        Verdict::Better => Some(Claim::Faster),
        Verdict::Worse => Some(Claim::Slower),
        Verdict::Same | Verdict::Unclear(_) => None,
    }
}

fn scores(runs: &[Run]) -> anyhow::Result<Scores> {
    Scores::new(runs, Better::Lower)
        .map_err(|fault| anyhow::anyhow!("a run has no score: {fault:?}"))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
