//! The queue of jobs: its machines, batch system and notices, those of regressions among them.

mod batch;
mod journal;
mod notices;
mod regressions;

pub(crate) use batch::{BatchTarget, configured_batch, sent_machines};
pub(crate) use journal::Journal;
use model::MarvinConfig;
use model::USUAL_MACHINE;
pub(crate) use notices::{Courier, deliver};
pub(crate) use regressions::RegressionReporter;

use crate::exit::WrongInput;
use crate::select::did_you_mean;

/// Checks the name of a machine that has jobs in the queue.
pub(crate) fn queue_machine(settings: &MarvinConfig, name: &str) -> anyhow::Result<String> {
    let known = queue_machines(settings);
    if known.iter().any(|known| known == name) {
        return Ok(name.to_owned());
    }
    let guess = did_you_mean(known.iter().map(String::as_str), name);
    let text = format!(
        "no machine `{name}`{guess}: the queue has jobs of exact, and of each [[machine]] in marvin.toml"
    );
    Err(WrongInput(text).into())
}

/// Returns the machines that have jobs in the queue.
pub(crate) fn queue_machines(settings: &MarvinConfig) -> Vec<String> {
    let servers = settings.servers.iter().map(|server| server.name.clone());
    [USUAL_MACHINE.to_owned()]
        .into_iter()
        .chain(servers)
        .collect()
}

/// Returns the machines whose jobs a worker takes: the named ones, or all.
pub(crate) fn worker_machines(
    settings: &MarvinConfig,
    named: &[String],
) -> anyhow::Result<Vec<String>> {
    if named.is_empty() {
        return Ok(queue_machines(settings));
    }
    named
        .iter()
        .map(|name| queue_machine(settings, name))
        .collect()
}
