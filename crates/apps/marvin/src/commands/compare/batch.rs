//! `marvin compare --via`: each kernel and seed of a comparison is a job of the batch system. The
//! results come home through the store, where the comparison then finds them, as those of this
//! host.

use std::ffi::OsString;

use config::ConfigFile;
use lab::{Lab, Plan};
use service::DirectJob;

use super::CompareArguments;
use crate::exit::WrongInput;
use crate::options::OWN_MACHINES;
use crate::queue::BatchTarget;
use crate::session::{Progress, Session};

/// The batch system that measures a comparison.
pub(crate) struct BatchMeasurement<'a> {
    via: BatchTarget<'a>,
}

impl<'a> BatchMeasurement<'a> {
    /// Opens the batch system that a comparison names; `None` if it names none.
    pub(crate) fn open(
        session: &Session,
        command: &CompareArguments,
        site: Option<&'a ConfigFile>,
    ) -> anyhow::Result<Option<Self>> {
        if command.spread.via.is_some()
            && (command.on.names() != [OWN_MACHINES[0].0]
                || command.measure.force
                || command.measure.keep_dump)
        {
            let text = "--via needs the machine exact, whose numbers are the same on each host, without --force and \
                        --keep-dump";
            return Err(WrongInput(text.to_owned()).into());
        }
        Ok(BatchTarget::open_direct(session, command.spread.via, site)?.map(|via| Self { via }))
    }

    /// Has other hosts measure what a plan lacks, and waits for them. What they do not bring stays
    /// missing.
    pub(crate) fn measure(
        &self,
        lab: &Lab,
        plan: &Plan<'_>,
        command: &CompareArguments,
        progress: &Progress,
    ) -> anyhow::Result<()> {
        let missing = lab.missing(plan)?;
        let mut jobs = Vec::new();
        for &(side, seed) in &missing {
            let build = plan.sides[side];
            lab.share(build)?;
            let about = format!("{}, seed {seed}", build.version);
            jobs.push(DirectJob {
                about,
                arguments: arguments(plan, command, side, seed),
            });
        }
        if let Some(last) = jobs.len().checked_sub(1) {
            let direct = self.via.direct("marvin-run-".to_owned());
            let sent = direct.send(&jobs)?;
            let count = sent.len();
            let system = self.via.system.name();
            progress.say(&format!(
                "{count} jobs are in {system}: {} to {}",
                sent[0].id, sent[last].id
            ));
            direct.wait(&sent, &|ended, runs| {
                progress.say(&format!("{ended} of {count} jobs ended, {runs} run"));
            })?;
        }
        let left = lab.missing(plan)?.len();
        if left > 0 {
            progress.say(&format!(
                "{left} of {} jobs brought no result: this host measures those",
                missing.len()
            ));
        }
        Ok(())
    }
}

/// Returns the words of the command that measures one kernel with one seed.
fn arguments(plan: &Plan<'_>, command: &CompareArguments, side: usize, seed: u64) -> Vec<OsString> {
    let build = plan.sides[side];
    let mut arguments: Vec<OsString> =
        vec!["--quiet".into(), "run".into(), build.exact_name().into()];
    let mut add = |name: &str, value: OsString| arguments.extend([OsString::from(name), value]);
    add("--build", build.id.hex().into());
    add("--seed", seed.to_string().into());
    add("--suite", command.measure.suite().into());
    if !command.measure.workload.is_empty() {
        add("--workload", command.measure.workload.join(",").into());
    }
    for manifest in &command.measure.manifest {
        add(
            "--manifest",
            std::path::absolute(manifest)
                .unwrap_or_else(|_| manifest.clone())
                .into(),
        );
    }
    arguments
}
