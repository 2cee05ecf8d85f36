//! The agent as an ordinary process, here or on a server: what its end says about a job.

use model::{FailureReason, Stage, SubjectFailure};
use process::Ended;
use wire::Stream;

/// Reads the end of an agent: its frames, or how it died; and its standard error.
pub(crate) fn read_end(ended: &Ended, job: u64) -> (Result<Stream, SubjectFailure>, Vec<u8>) {
    let stream = wire::decode(&ended.output, job).map_err(|error| {
        let text = ended.text();
        let agent = text.lines().rfind(|line| line.starts_with("agent: ")).map(str::to_owned);
        let why = agent.unwrap_or_else(|| format!("{error}; {}", ended.reason()));
        let reason = FailureReason::AgentDied(model::plain(&why));
        SubjectFailure { stage: Stage::Workload, reason, console_tail: String::new() }
    });
    (stream, ended.said.clone().into_bytes())
}
