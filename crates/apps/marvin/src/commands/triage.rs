//! `marvin triage`: records the decision on an alert.

use clap::Args;
use model::Decision;

use crate::exit::Exit;
use crate::select::find_alert;
use crate::session::{Session, now};
use crate::{completion, say};

/// `marvin triage`.
#[derive(Debug, Args)]
#[command(after_help = "Outcomes:
  real        real regression without a benefit
  apparent    the older kernel did too little, or the measurement misleads
  trade-off   another improvement is worth it
  fixed       a later kernel fixes it
  ignored     no further action

Marvin reopens an alert when more workloads regress with the same kernels.")]
pub(crate) struct TriageArguments {
    /// Alert name or the end of it: cloud-amd64@6.12.100, 6.12.100
    #[arg(add = completion::alert())]
    pub(crate) alert: String,

    /// Decision: real, apparent, trade-off, fixed, ignored
    pub(crate) outcome: model::Triage,

    /// Reason
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) note: String,
}

pub(crate) fn triage(session: &Session, command: &TriageArguments) -> anyhow::Result<Exit> {
    let snapshot = session.read_history()?;
    let one = find_alert(&snapshot.alerts, &command.alert)?;
    let version = |kernel| snapshot.history.kernel(kernel).release.as_str().to_owned();
    let decision = Decision {
        track: one.alert.decision_track(),
        after: version(one.alert.after),
        at: version(one.alert.at),
        triage: command.outcome,
        note: command.note.clone(),
        worse: one.alert.worse().count(),
        decided_unix: now(),
    };
    session.open_store()?.decide(&decision)?;
    say(&format!("{} is {} now", one.alert.name, command.outcome));
    Ok(Exit::Fine)
}
