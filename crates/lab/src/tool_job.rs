//! The job of an external tool: from its declaration to the agent, and from what it printed to samples.

use std::collections::BTreeMap;

use ingest::{ToolOutput, tool_samples};
use machine::{Exact, MachineError, Start, Trace};
use model::{FailureReason, Outcome, Source, Stage, SubjectFailure, Tool, ToolWorkload, Workload, WorkloadResult};
use wire::{Clock, Frame, Job, Stream, Task, ToolTask};

use crate::job::explained;
use crate::perturb::perturbation;
use crate::tools::row_name;

/// What running a tool brought.
pub(crate) struct Printed {
    pub(crate) outcome: Outcome,
    /// Samples by row; empty unless completed.
    pub(crate) rows: BTreeMap<String, Vec<f64>>,
    pub(crate) console: Vec<u8>,
    /// What the runs printed and wrote, as it was, each part with its name above.
    pub(crate) output: Vec<u8>,
}

impl Printed {
    /// Returns the result of one of the workload's rows.
    pub(crate) fn result_of(&self, row: &Workload) -> WorkloadResult {
        WorkloadResult {
            workload: row.name.to_owned(),
            operations: row.operations,
            outcome: self.outcome.clone(),
            samples: self.rows.get(row.name).cloned().unwrap_or_default(),
            counted: Vec::new(),
        }
    }
}

/// Returns what the agent is told.
pub(crate) fn task(tool: &Tool, workload: &ToolWorkload) -> Task {
    let mut files: Vec<String> = Vec::new();
    for metric in &workload.metrics {
        if let Source::File(path) = &metric.reader.source
            && !files.contains(path)
        {
            files.push(path.clone());
        }
    }
    Task::Tool(ToolTask {
        environment: tool.environment.clone(),
        setup: workload.setup.clone(),
        server: workload.server.as_ref().map(|server| (server.command.clone(), server.port)),
        prepare: workload.prepare.clone(),
        command: workload.command.clone(),
        runs: workload.runs,
        files,
        limit_s: workload.limit_s,
    })
}

/// Runs a tool and reads what it printed.
pub(crate) fn run(
    exact: &Exact,
    start: &Start,
    (id, tool, workload): (u64, &Tool, &ToolWorkload),
) -> Result<Printed, MachineError> {
    let job = Job { id, clock: Clock::Tsc, perturbation: perturbation(start.seed), task: task(tool, workload) };
    let end = exact.run(start, &job, Trace::Nothing)?;
    let (outcome, rows, output) = match end.stream {
        Err(failure) => (Outcome::Failed(failure), BTreeMap::new(), Vec::new()),
        Ok(stream) => {
            let files = files(&stream);
            let (outcome, rows) = read(workload, (&stream, &files));
            (outcome, rows, listed(&files))
        }
    };
    Ok(Printed { outcome: explained(outcome, &end.console), rows, console: end.console, output })
}

/// Returns how a tool ended, and its samples by row.
fn read(workload: &ToolWorkload, (stream, files): (&Stream, &Files)) -> (Outcome, BTreeMap<String, Vec<f64>>) {
    let outcome = match ingest::outcome(stream, 1, workload.runs) {
        Ok((Outcome::Completed, _)) => match samples(workload, files) {
            Ok(rows) => return (Outcome::Completed, rows),
            Err(why) => failed(FailureReason::WorkloadFailed(why)),
        },
        Ok((other, _)) => other,
        Err(error) => failed(FailureReason::BadStream(error.to_string())),
    };
    (outcome, BTreeMap::new())
}

fn failed(reason: FailureReason) -> Outcome {
    Outcome::Failed(SubjectFailure { stage: Stage::Results, reason, console_tail: String::new() })
}

/// Files by their names: pieces of one name belong together.
type Files = BTreeMap<String, Vec<u8>>;

fn files(stream: &Stream) -> Files {
    let mut files = Files::new();
    for frame in &stream.frames {
        if let Frame::File { name, bytes } = frame {
            files.entry(name.clone()).or_default().extend(bytes);
        }
    }
    files
}

fn listed(files: &Files) -> Vec<u8> {
    let mut listed = Vec::new();
    for (name, bytes) in files {
        listed.extend(format!("==> {} <==\n", name.escape_debug()).into_bytes());
        listed.extend(bytes);
        listed.push(b'\n');
    }
    listed
}

/// Returns the samples of each row, of one run after the other; or in which run something is wrong, and what.
fn samples(workload: &ToolWorkload, files: &Files) -> Result<BTreeMap<String, Vec<f64>>, String> {
    let mut rows: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for run in 0..workload.runs {
        let part = |name: &str| files.get(&format!("{run}/{name}")).map_or(&[][..], Vec::as_slice);
        let prefix = run.to_string();
        let written: Vec<(String, Vec<u8>)> = files
            .iter()
            .filter_map(|(name, bytes)| Some((name.strip_prefix(&prefix)?.to_owned(), bytes.clone())))
            .filter(|(name, _)| name.starts_with('/'))
            .collect();
        let output = ToolOutput { stdout: part("stdout"), stderr: part("stderr"), files: &written };
        let read = tool_samples(workload, &output).map_err(|error| format!("run {}: {error}", run + 1))?;
        for (at, samples) in read.into_iter().enumerate() {
            rows.entry(row_name(workload, at)).or_default().extend(samples);
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::{Files, listed, samples, task};
    use crate::tools::Tools;

    fn files(parts: &[(&str, &str)]) -> Files {
        parts.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect()
    }

    #[test]
    fn samples_of_runs_follow_one_another() {
        let tools = Tools::read(&[]).unwrap();
        let (tool, workload) = tools.workload("hackbench").unwrap();
        let text = |time: &str| format!("Running in process mode with 1 groups\nTime: {time}\n");
        let texts = ["0.4", "0.2", "0.1", "0.3"].map(text);
        let mut printed: Vec<(String, &str)> =
            texts.iter().enumerate().map(|(run, text)| (format!("{run}/stdout"), text.as_str())).collect();
        printed.push(("0/stderr".to_owned(), ""));
        let all: Vec<(&str, &str)> = printed.iter().map(|(name, text)| (name.as_str(), *text)).collect();
        let rows = samples(workload, &files(&all)).unwrap();
        assert_eq!(rows["hackbench"], [0.4, 0.2, 0.1, 0.3]);
        assert!(listed(&files(&all[..1])).starts_with(b"==> 0/stdout <==\nRunning"));
        let said = samples(workload, &files(&all[..1])).unwrap_err();
        insta::assert_snapshot!(said, @"run 2: unknown output: nothing was printed");
        assert!(matches!(task(tool, workload), wire::Task::Tool(task) if task.runs == 4 && task.files.is_empty()));
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
                assert_eq!(wire::Job::decode(&job.encode().unwrap()).unwrap(), job, "{}", workload.name);
            }
        }
    }
}
