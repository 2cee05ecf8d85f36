//! The job of an external tool: from its declaration to the agent's task, and from the tool's
//! output to samples.

use std::collections::BTreeMap;

use config::{ToolOutput, printed_values, tool_samples};
use machine::{Disturbance, MachineError};
use model::{
    Clock, Declared, Environment, FailureReason, Find, Outcome, Quantity, Reader, Region, Source,
    Stage, SubjectFailure, Tool, ToolMetric, ToolWorkload, Workload, WorkloadResult, sanitize_line,
};
use wire::{Frame, NOT_INSTALLED, OWN_COST, PROGRAMS, Stream, SystemTask, Task, ToolTask};

use crate::job::{BootedBuild, explain_by_console, lines_text, marks_of_lines, observe_measured};
use crate::own_cost::{self, OwnCost};
use crate::printed_margin::margin_percent;
use crate::symbols::Named;
use crate::tools::{ROW_MAX, row_name};

/// Limit on a quoted cause (characters).
const CAUSE_MAX: usize = 200;
/// Words of lines that say why a program failed.
const CAUSES: [&str; 8] = [
    "error",
    "fatal",
    "not found",
    "no such",
    "no space left",
    "not permitted",
    "permission denied",
    "invalid argument",
];
/// Most programs of a tool that a run names.
const PROGRAMS_MAX: usize = 64;

/// How a stream without an answer reads.
const NO_FRAME: &str = "it holds no frame";
/// How the agent says in which time a program did not end.
const OF_GUEST: &str = " s of the guest";
/// What it means that a kernel does not start a program.
const FOREIGN: &str =
    ": this kernel cannot start such a file; programs of 32 bits need CONFIG_IA32_EMULATION";
/// What it means that a program of an earlier run is not there.
const GONE: &str = ": an earlier run removed the program or its directory";

type Rows = BTreeMap<String, Vec<f64>>;

/// The result of running a tool.
pub(crate) struct Printed {
    pub(crate) outcome: Outcome,
    pub(crate) rows: Rows,
    pub(crate) console: Vec<u8>,
    clock: Clock,
    /// What disturbed it on the host, if known.
    pub(crate) disturbance: Option<Disturbance>,
    /// What the lab itself took of a processor, if known.
    pub(crate) own_cost: Option<OwnCost>,
    /// The raw output and files of the runs, each part below its name.
    pub(crate) output: Vec<u8>,
    /// The programs that a host had installed, for the environment.
    pub(crate) programs: Environment,
    /// Its profile as stored, or why there is none; `None` if not requested.
    pub(crate) profile: Option<Result<String, String>>,
    /// The lines that moved between processors, likewise.
    pub(crate) sharing: Option<Result<String, String>>,
    /// Instructions of each run, by the profile.
    counted: Vec<Region>,
    /// The rows that are known only now, in the order of the output.
    found: Vec<FoundRow>,
    /// Whether it is a user's own program: its author has declared no margin.
    is_own: bool,
}

/// A row that was found in the output.
struct FoundRow {
    name: String,
    declared: Declared,
    samples: Vec<f64>,
}

/// Returns whether a metric stands for all numbers that a program prints.
pub(crate) fn is_printed(metric: &ToolMetric) -> bool {
    let reader = metric.reader.as_ref();
    reader.is_some_and(|reader| reader.find == Find::Printed)
}

/// Returns whether a row is one that was found in the output of a workload.
pub(crate) fn is_row_of(row: &str, workload: &str) -> bool {
    row.strip_prefix(workload)
        .is_some_and(|rest| rest.starts_with('.'))
}

impl Printed {
    /// Returns the results of rows that were found in the output.
    pub(crate) fn found_results(&self) -> Vec<WorkloadResult> {
        let found = self.found.iter();
        found
            .map(|row| WorkloadResult {
                workload: row.name.clone(),
                operations: 1,
                declared: Some(row.declared.clone()),
                outcome: self.outcome.clone(),
                samples: row.samples.clone(),
                counted: Vec::new(),
            })
            .collect()
    }

    /// Returns the result of one of the workload's rows.
    pub(crate) fn result_of(&self, row: &Workload) -> WorkloadResult {
        let samples = self.rows.get(&*row.name).cloned().unwrap_or_default();
        let mut declared = Declared::from_metric(&row.metric, self.clock);
        if self.is_own && row.metric.quantity != Quantity::Cost {
            declared.margin_percent = margin_percent(declared.margin_percent, &samples);
        }
        WorkloadResult {
            workload: row.name.to_string(),
            operations: row.operations,
            declared: Some(declared),
            outcome: self.outcome.clone(),
            samples,
            // Only costs are counted.
            counted: if row.metric.quantity == Quantity::Cost {
                self.counted.clone()
            } else {
                Vec::new()
            },
        }
    }
}

/// Returns the agent's task.
pub(crate) fn task(tool: &Tool, workload: &ToolWorkload) -> Task {
    let mut files: Vec<String> = Vec::new();
    for metric in &workload.metrics {
        if let Some(Reader {
            source: Source::File(path),
            ..
        }) = &metric.reader
            && !files.contains(path)
        {
            files.push(path.clone());
        }
    }
    Task::Tool(ToolTask {
        environment: tool.environment.clone(),
        setup: workload.setup.clone(),
        server: workload
            .server
            .as_ref()
            .map(|server| (server.command.clone(), server.port)),
        prepare: workload.prepare.clone(),
        command: workload.command.clone(),
        runs: workload.runs,
        files,
        limit_s: workload.limit_s,
        system: tool.own.as_ref().map(|own| SystemTask {
            directory: own.directory.clone(),
            stdin: own.stdin.clone(),
            accepted: own.accepted.clone(),
            marks: own.marks,
        }),
    })
}

/// Runs a tool and parses its output; counts the instructions of each function, or follows the
/// lines that processors share, if the functions are known.
pub(crate) fn run(
    on: BootedBuild<'_>,
    tool: &Tool,
    workload: &ToolWorkload,
    named: Option<&Named>,
) -> Result<Printed, MachineError> {
    let job = on.job(&workload.name, task(tool, workload));
    let can = on.machine.capabilities();
    let marks = marks_of_lines(on, named);
    let observe = observe_measured(on, named, marks.as_deref());
    let (end, own_cost) = own_cost::run(on, &job, observe)?;
    let mut files = Files::new();
    let (outcome, rows) = match end.stream {
        Err(failure) => (machine::outcome_of(failure), BTreeMap::new()),
        Ok(stream) => {
            files = collect_files(&stream);
            read(workload, &stream, &files)
        }
    };
    let programs = describe_programs(&files.remove(PROGRAMS).unwrap_or_default());
    files.remove(OWN_COST);
    let output = list_files(&files);
    let (outcome, rows) = fail_if_killed(outcome, rows, &end.console);
    let outcome = name_packages(explain_by_console(outcome, &end.console), tool);
    let outcome = if tool.own.is_some() {
        explain_own(outcome, &files, can.installed_tools)
    } else {
        outcome
    };
    let sharing = named
        .filter(|_| can.sharing && outcome == Outcome::Completed)
        .map(|named| lines_text(end.shared, named, 1));
    let profile = named
        .filter(|_| can.counts && outcome == Outcome::Completed)
        .map(|named| {
            let counts = end.counts.unwrap_or_default();
            ingest::profile(&counts, &named.symbols, 1).map_err(|error| error.to_string())
        });
    let regions = match &profile {
        Some(Ok(profile)) => profile.regions.clone(),
        _ => Vec::new(),
    };
    let found = if outcome == Outcome::Completed {
        find_rows(workload, &files)
    } else {
        Vec::new()
    };
    let is_marked = tool.own.as_ref().is_some_and(|own| own.marks);
    let (outcome, rows) = if is_marked {
        use_marks(outcome, rows, workload, &regions)
    } else {
        (outcome, rows)
    };
    // The plugin records one region per run; another number means that they do not match.
    let is_one_each = regions.len() == workload.runs as usize;
    let counted = if is_one_each { regions } else { Vec::new() };
    let disturbance = end.disturbance;
    Ok(Printed {
        outcome,
        rows,
        console: end.console,
        clock: on.clock(),
        disturbance,
        own_cost,
        output,
        programs,
        profile: profile.map(|profile| profile.map(|profile| ingest::profile_to_text(&profile))),
        sharing,
        counted,
        found,
        is_own: tool.own.is_some(),
    })
}

/// Returns the rows of the numbers with units in the output of all runs. A number that not every
/// run printed is no row.
fn find_rows(workload: &ToolWorkload, files: &Files) -> Vec<FoundRow> {
    let Some(metric) = workload.metrics.iter().find(|metric| is_printed(metric)) else {
        return Vec::new();
    };
    let mut rows: Vec<FoundRow> = Vec::new();
    for run in 0..workload.runs {
        let text = files
            .get(&format!("{run}/stdout"))
            .map_or_else(String::new, |bytes| {
                String::from_utf8_lossy(bytes).into_owned()
            });
        for printed in printed_values(&text, &workload.name) {
            let name: String = format!("{}.{}", workload.name, printed.name)
                .chars()
                .take(ROW_MAX)
                .collect();
            let declared = Declared {
                unit: printed.unit.into(),
                direction: Some(printed.direction),
                margin_percent: metric.margin_percent,
            };
            match rows.iter_mut().find(|row| row.name == name) {
                Some(row) if row.declared == declared => row.samples.push(printed.value),
                Some(_) => {}
                None if run == 0 => rows.push(FoundRow {
                    name,
                    declared,
                    samples: vec![printed.value],
                }),
                None => {}
            }
        }
    }
    rows.retain(|row| row.samples.len() == workload.runs as usize);
    for row in &mut rows {
        let declared = &mut row.declared;
        declared.margin_percent = margin_percent(declared.margin_percent, &row.samples);
    }
    rows
}

/// Replaces the cost of whole runs by that of what the program marked.
fn use_marks(
    outcome: Outcome,
    mut rows: Rows,
    workload: &ToolWorkload,
    regions: &[Region],
) -> (Outcome, Rows) {
    if outcome != Outcome::Completed {
        return (outcome, rows);
    }
    let runs = workload.runs as usize;
    if regions.is_empty() || !regions.len().is_multiple_of(runs) {
        let why = format!(
            "{} regions were marked in {runs} runs: each run must mark the same number with marvin-mark begin and end, on \
             a machine that counts instructions",
            regions.len()
        );
        return (failed(FailureReason::WorkloadFailed(why)), Rows::new());
    }
    let each = regions.len() / runs;
    let sums = regions
        .chunks(each)
        .map(|marked| marked.iter().map(Region::total).sum::<u64>() as f64);
    rows.insert(workload.name.clone(), sums.collect());
    (outcome, rows)
}

/// Adds to the outcome of a tool that is not installed how to install it.
fn name_packages(outcome: Outcome, tool: &Tool) -> Outcome {
    match outcome {
        Outcome::Unsupported(why) if why.starts_with(NOT_INSTALLED) => {
            let how = if tool.own.is_some() {
                "copy it to the same place there".to_owned()
            } else {
                format!("apt-get install {}", tool.packages.join(" "))
            };
            Outcome::Unsupported(format!("{why}; {how}"))
        }
        outcome => outcome,
    }
}

/// Adds to the failure of a user's own program what the answer of a guest means. On a server the
/// agent speaks as in a guest, though there is none.
fn explain_own(outcome: Outcome, files: &Files, is_host: bool) -> Outcome {
    let mut outcome = outcome;
    let Outcome::Failed(SubjectFailure { reason, .. }) = &mut outcome else {
        return outcome;
    };
    match reason {
        // The guest answers after each program, whatever becomes of it.
        FailureReason::BadStream(why) if why.contains(NO_FRAME) => {
            let ended = "the guest powered off or restarted while the program ran";
            *reason = FailureReason::WorkloadFailed(ended.to_owned());
        }
        FailureReason::WorkloadFailed(why) if is_host && why.contains(OF_GUEST) => {
            *why = why.replacen(OF_GUEST, " s", 1);
        }
        FailureReason::WorkloadFailed(why) if why.contains("Exec format error") => {
            why.push_str(FOREIGN);
        }
        // The libc of the agent passes files that the kernel refuses to a shell, which may be
        // missing; Marvin brings the program and its interpreter.
        FailureReason::WorkloadFailed(why)
            if why.contains("(os error 2)") && !why.contains("exit status") =>
        {
            let is_first = !files.keys().any(|name| name.starts_with("0/"));
            why.push_str(if is_first { FOREIGN } else { GONE });
        }
        _ => {}
    }
    outcome
}

/// Returns the lines of an agent on a host about its programs, for the environment of a run.
fn describe_programs(bytes: &[u8]) -> Environment {
    let text = String::from_utf8_lossy(bytes);
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    pairs
        .take(PROGRAMS_MAX)
        .map(|(name, about)| {
            (
                format!("tool {}", sanitize_line(name)),
                sanitize_line(about),
            )
        })
        .collect()
}

/// Returns the tool's outcome, and its samples by row.
fn read(workload: &ToolWorkload, stream: &Stream, files: &Files) -> (Outcome, Rows) {
    let outcome = match ingest::outcome(stream, 1, workload.runs) {
        Ok((Outcome::Completed, ticks)) => match samples(workload, files, &ticks) {
            Ok(rows) => return (Outcome::Completed, rows),
            Err(why) => failed(FailureReason::WorkloadFailed(why)),
        },
        Ok((other, _)) => with_cause(other, &stream.frames),
        Err(error) => failed(FailureReason::BadStream(error.to_string())),
    };
    (outcome, BTreeMap::new())
}

/// Adds the error line of the failed program to a failure, unless the agent quoted it already as
/// the last line.
fn with_cause(outcome: Outcome, frames: &[Frame]) -> Outcome {
    let mut outcome = outcome;
    if let Outcome::Failed(SubjectFailure {
        reason: FailureReason::WorkloadFailed(answer),
        ..
    }) = &mut outcome
        && let Some(cause) = cause(frames).filter(|cause| !answer.contains(cause))
    {
        *answer = format!("{answer}; before that: {cause}");
    }
    outcome
}

/// Returns the first line with an error of the last program's standard error.
fn cause(frames: &[Frame]) -> Option<String> {
    let errors = frames.iter().filter_map(|frame| match frame {
        Frame::File { name, bytes } if name.ends_with("/stderr") => Some((name, bytes)),
        _ => None,
    });
    let (last, _) = errors.clone().next_back()?;
    let bytes: Vec<u8> = errors
        .filter(|(name, _)| *name == last)
        .flat_map(|(_, bytes)| bytes.iter().copied())
        .collect();
    let text = String::from_utf8_lossy(&bytes);
    let lines = text.lines().map(str::trim);
    let mut causes = lines.filter(|line| {
        let line = line.to_ascii_lowercase();
        CAUSES.iter().any(|word| line.contains(word))
    });
    causes
        .next()
        .map(|line| line.chars().take(CAUSE_MAX).collect())
}

/// Fails a tool that continued after the kernel killed a part of it for lack of memory: its output
/// is then meaningless.
fn fail_if_killed(outcome: Outcome, rows: Rows, console: &[u8]) -> (Outcome, Rows) {
    let killed = machine::reason_in(console).filter(|reason| *reason == FailureReason::OutOfMemory);
    match (outcome, killed) {
        (Outcome::Completed, Some(reason)) => (failed(reason), Rows::new()),
        (outcome, _) => (outcome, rows),
    }
}

fn failed(reason: FailureReason) -> Outcome {
    Outcome::Failed(SubjectFailure {
        stage: Stage::Results,
        reason,
        console_tail: String::new(),
    })
}

/// Files by name: pieces of the same name belong together.
type Files = BTreeMap<String, Vec<u8>>;

fn collect_files(stream: &Stream) -> Files {
    let mut files = Files::new();
    for frame in &stream.frames {
        if let Frame::File { name, bytes } = frame {
            files.entry(name.clone()).or_default().extend(bytes);
        }
    }
    files
}

fn list_files(files: &Files) -> Vec<u8> {
    let mut listed = Vec::new();
    for (name, bytes) in files {
        listed.extend(format!("==> {} <==\n", name.escape_debug()).into_bytes());
        listed.extend(bytes);
        listed.push(b'\n');
    }
    listed
}

/// Returns the samples of each row, run after run; the error says in which run the output is wrong,
/// and why. `ticks` is what the machine measured of each run.
fn samples(workload: &ToolWorkload, files: &Files, ticks: &[f64]) -> Result<Rows, String> {
    let mut rows = Rows::new();
    for run in 0..workload.runs {
        let part = |name: &str| {
            files
                .get(&format!("{run}/{name}"))
                .map_or(&[][..], Vec::as_slice)
        };
        let prefix = run.to_string();
        let written: Vec<(String, Vec<u8>)> = files
            .iter()
            .filter_map(|(name, bytes)| {
                Some((name.strip_prefix(&prefix)?.to_owned(), bytes.clone()))
            })
            .filter(|(name, _)| name.starts_with('/'))
            .collect();
        let output = ToolOutput {
            stdout: part("stdout"),
            stderr: part("stderr"),
            files: &written,
        };
        let read =
            tool_samples(workload, &output).map_err(|error| format!("run {}: {error}", run + 1))?;
        for (at, samples) in read.into_iter().enumerate() {
            if is_printed(&workload.metrics[at]) {
                continue;
            }
            rows.entry(row_name(workload, at))
                .or_default()
                .extend(samples);
        }
    }
    for (at, metric) in workload.metrics.iter().enumerate() {
        if metric.reader.is_none() {
            rows.insert(row_name(workload, at), ticks.to_vec());
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use model::{FailureReason, Outcome};
    use wire::Frame;

    use super::{
        Files, Rows, explain_own, fail_if_killed, failed, list_files, samples, task, with_cause,
    };
    use crate::tools::Tools;

    fn files(parts: &[(&str, &str)]) -> Files {
        parts
            .iter()
            .map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec()))
            .collect()
    }

    #[test]
    fn samples_of_runs_are_concatenated() {
        let tools = Tools::read(&[]).unwrap();
        let (tool, workload) = tools.workload("hackbench").unwrap();
        let texts = ["0.4", "0.2", "0.1", "0.3"].map(hackbench_output);
        let mut printed: Vec<(String, &str)> = texts
            .iter()
            .enumerate()
            .map(|(run, hackbench_output)| (format!("{run}/stdout"), hackbench_output.as_str()))
            .collect();
        printed.push(("0/stderr".to_owned(), ""));
        let all: Vec<(&str, &str)> = printed
            .iter()
            .map(|(name, hackbench_output)| (name.as_str(), *hackbench_output))
            .collect();
        let rows = samples(workload, &files(&all), &[]).unwrap();
        assert_eq!(rows["hackbench"], [0.4, 0.2, 0.1, 0.3]);
        assert!(list_files(&files(&all[..1])).starts_with(b"==> 0/stdout <==\nRunning"));
        let answer = samples(workload, &files(&all[..1]), &[]).unwrap_err();
        insta::assert_snapshot!(answer, @"run 2: unknown output: nothing was printed");
        assert!(matches!(
            task(tool, workload),
            wire::Task::Tool(task) if task.runs == 4 && task.files.is_empty()
        ));
    }

    fn hackbench_output(time: &str) -> String {
        format!("Running in process mode with 1 groups\nTime: {time}\n")
    }

    #[test]
    fn failure_names_cause_beside_last_line() {
        let file = |name: &str, text: &str| Frame::File {
            name: name.to_owned(),
            bytes: text.as_bytes().to_vec(),
        };
        let answer = "/bin/bash: exit status 2: 2.2 2.0 0.1";
        let of = |frames: &[Frame]| match with_cause(
            failed(FailureReason::WorkloadFailed(answer.to_owned())),
            frames,
        ) {
            Outcome::Failed(failure) => failure.reason.to_string(),
            other => format!("{other:?}"),
        };
        let compiler = [
            file("setup0/stderr", "error: not it"),
            file("0/stdout", "x"),
            file("0/stderr", "cc: Fatal "),
            file("0/stderr", "error: no ld\n2.2 2.0 0.1\n"),
        ];
        insta::assert_snapshot!(of(&compiler), @"workload failed: /bin/bash: exit status 2: 2.2 2.0 0.1; before that: cc: Fatal error: no ld");
        assert_eq!(of(&compiler[..1]).matches("not it").count(), 1);
        let make = "make: cc: No such file or directory\nmake: *** [main.o] Error 127\n";
        insta::assert_snapshot!(of(&[file("0/stderr", make)]), @"workload failed: /bin/bash: exit status 2: 2.2 2.0 0.1; before that: make: cc: No such file or directory");
        assert_eq!(
            of(&[file("0/stderr", "2.2 2.0 0.1 error")])
                .matches("before that")
                .count(),
            1
        );
        let plain = format!("workload failed: {answer}");
        assert_eq!(of(&[]), plain);
        assert_eq!(of(&[file("0/stderr", "nothing wrong")]), plain);
        assert_eq!(
            with_cause(Outcome::Completed, &compiler),
            Outcome::Completed
        );
    }

    #[test]
    fn own_failures_say_what_they_mean() {
        let explained = |reason: FailureReason, done: &[(&str, &str)]| match explain_own(
            failed(reason),
            &files(done),
            true,
        ) {
            Outcome::Failed(failure) => failure.reason.to_string(),
            other => format!("{other:?}"),
        };
        let absent = || {
            FailureReason::WorkloadFailed("/a: No such file or directory (os error 2)".to_owned())
        };
        let format = "/a: exit status 126: ./b: Exec format error";
        insta::assert_snapshot!(explained(absent(), &[]), @"workload failed: /a: No such file or directory (os error 2): this kernel cannot start such a file; programs of 32 bits need CONFIG_IA32_EMULATION");
        insta::assert_snapshot!(explained(absent(), &[("0/stdout", "x")]), @"workload failed: /a: No such file or directory (os error 2): an earlier run removed the program or its directory");
        insta::assert_snapshot!(explained(FailureReason::WorkloadFailed(format.to_owned()), &[]), @"workload failed: /a: exit status 126: ./b: Exec format error: this kernel cannot start such a file; programs of 32 bits need CONFIG_IA32_EMULATION");
        let late = "/a: no end within 60 s of the guest: x";
        insta::assert_snapshot!(explained(FailureReason::WorkloadFailed(late.to_owned()), &[]), @"workload failed: /a: no end within 60 s: x");
        insta::assert_snapshot!(explained(FailureReason::BadStream(super::NO_FRAME.to_owned()), &[]), @"workload failed: the guest powered off or restarted while the program ran");
        assert_eq!(
            explained(FailureReason::OutOfMemory, &[]),
            "ran out of memory"
        );
    }

    #[test]
    fn output_after_out_of_memory_is_dropped() {
        let rows = || Rows::from([("x".to_owned(), vec![1.0])]);
        let (outcome, stored) = fail_if_killed(
            Outcome::Completed,
            rows(),
            b"Out of memory: Killed process 9 (stress-ng)\n",
        );
        assert!(matches!(
            outcome,
            Outcome::Failed(failure) if failure.reason == FailureReason::OutOfMemory
        ));
        assert!(stored.is_empty());
        let completed = (Outcome::Completed, rows());
        assert_eq!(
            fail_if_killed(Outcome::Completed, rows(), b"all is well\n"),
            completed
        );
    }

    #[test]
    fn every_shipped_tool_fits_into_a_job() {
        let tools = Tools::read(&[]).unwrap();
        for tool in tools.all() {
            for workload in &tool.workloads {
                let job = wire::Job {
                    id: u64::MAX,
                    clock: wire::Clock::Tsc,
                    perturbation: wire::Perturbation::default(),
                    task: task(tool, workload),
                };
                assert_eq!(
                    wire::Job::decode(&job.encode().unwrap()).unwrap(),
                    job,
                    "{}",
                    workload.name
                );
            }
        }
    }
}
