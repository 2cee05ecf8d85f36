//! `marvin compare --via`: each kernel and seed of a comparison is a job of the batch system. The results come home through
//! the store, where the comparison then finds them, as those of this host.

use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use lab::{Lab, Plan};
use site::{BatchJob, BatchState, Site, Submission};

use super::via::Via;
use crate::cli::{Arguments, Compare, OWN};
use crate::exit::WrongInput;
use crate::progress::Progress;

/// Interval between two looks at the batch system.
const LOOK: Duration = Duration::from_secs(2);
/// How long a batch system may be silent.
const SILENT: Duration = Duration::from_secs(600);
/// How long all jobs may take: then this host measures what is missing.
const DEADLINE: Duration = Duration::from_secs(86_400);

/// The batch system that measures a comparison.
pub(crate) struct Spread<'a> {
    via: Via<'a>,
    /// How long one job may take (min).
    minutes: u64,
}

/// A job of the batch system for one kernel and seed.
struct Sent {
    name: String,
    id: String,
}

impl<'a> Spread<'a> {
    /// Opens the batch system that a comparison names; `None` if it names none.
    pub(crate) fn open(
        arguments: &Arguments,
        command: &Compare,
        site: Option<&'a Site>,
    ) -> anyhow::Result<Option<Self>> {
        let (Some(named), Some(site)) = (command.spread.via, site) else { return Ok(None) };
        if command.on.names() != [OWN[0].0] || command.measure.force || command.measure.keep_dump {
            let text = "--via needs the machine exact, whose numbers are the same on each host, without --force and \
                        --keep-dump";
            return Err(WrongInput(text.to_owned()).into());
        }
        if site.settings.builds.is_none() {
            let text = "cannot send kernels to other hosts: marvin.toml does not say where\nhint: `builds` below [work] \
                        names a folder that all hosts share";
            return Err(WrongInput(text.to_owned()).into());
        }
        let minutes = site.settings.work.deadline_s.div_ceil(60);
        Ok(Some(Self { via: Via::open(arguments, named, site, &[])?, minutes }))
    }

    /// Has other hosts measure what a plan lacks, and waits for them. What they do not bring stays missing.
    pub(crate) fn measure(
        &self,
        lab: &Lab,
        plan: &Plan<'_>,
        command: &Compare,
        progress: &Progress,
    ) -> anyhow::Result<()> {
        let missing = lab.missing(plan)?;
        let listed = self.via.system.list()?;
        let mut sent = Vec::new();
        for &(side, seed) in &missing {
            let build = plan.sides[side];
            lab.share(build)?;
            let words = words(plan, command, side, seed);
            let (name, own) = (name_of(&words), self.via.command.iter().cloned());
            let known = listed.iter().find(|job| job.name == name && job.state != BatchState::Ended);
            let id = match known {
                // An earlier command was interrupted.
                Some(job) => job.id.clone(),
                None => self.via.system.submit(&Submission {
                    name: &name,
                    about: &format!("{}, seed {seed}", build.version),
                    machine: OWN[0].0,
                    minutes: self.minutes,
                    command: &own.chain(words).collect::<Vec<_>>(),
                })?,
            };
            sent.push(Sent { name, id });
        }
        if !sent.is_empty() {
            let system = self.via.system.name();
            progress.say(&format!(
                "{} jobs are in {system}: {} to {}",
                sent.len(),
                sent[0].id,
                sent[sent.len() - 1].id
            ));
            self.wait(&sent, progress)?;
        }
        let left = lab.missing(plan)?.len();
        if left > 0 {
            progress.say(&format!("{left} of {} jobs brought no result: this host measures those", missing.len()));
        }
        Ok(())
    }

    /// Waits until all jobs have ended.
    fn wait(&self, sent: &[Sent], progress: &Progress) -> anyhow::Result<()> {
        let (begun, mut heard, mut last) = (Instant::now(), Instant::now(), (0, 0));
        loop {
            match self.via.system.list() {
                Ok(listed) => {
                    heard = Instant::now();
                    let count = |state| sent.iter().filter(|one| state_of(one, &listed) == state).count();
                    let now = (count(BatchState::Ended), count(BatchState::Runs));
                    if now != last {
                        let (ended, runs) = now;
                        progress.say(&format!("{ended} of {} jobs ended, {runs} run", sent.len()));
                        last = now;
                    }
                    if now.0 == sent.len() {
                        return Ok(());
                    }
                }
                Err(error) if heard.elapsed() > SILENT => return Err(error.into()),
                Err(_) => {}
            }
            if begun.elapsed() > DEADLINE {
                return Ok(());
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// Returns the state of a job; one that the system has forgotten has ended.
fn state_of(sent: &Sent, listed: &[BatchJob]) -> BatchState {
    let found = listed.iter().find(|job| job.id == sent.id && job.name == sent.name);
    found.map_or(BatchState::Ended, |job| job.state)
}

/// Returns the words of the command that measures one kernel with one seed.
fn words(plan: &Plan<'_>, command: &Compare, side: usize, seed: u64) -> Vec<OsString> {
    let build = plan.sides[side];
    let mut words: Vec<OsString> = vec!["--quiet".into(), "run".into(), build.exact_name().into()];
    let mut add = |name: &str, value: OsString| words.extend([OsString::from(name), value]);
    add("--build", build.id.hex().into());
    add("--seed", seed.to_string().into());
    add("--suite", command.measure.suite.clone().into());
    if !command.measure.workload.is_empty() {
        add("--workload", command.measure.workload.join(",").into());
    }
    for manifest in &command.measure.manifest {
        add("--manifest", std::path::absolute(manifest).unwrap_or_else(|_| manifest.clone()).into());
    }
    words
}

/// Returns a name that is the same for the same work, so that an interrupted command finds its jobs.
fn name_of(words: &[OsString]) -> String {
    let mut hasher = DefaultHasher::new();
    words.hash(&mut hasher);
    format!("marvin-run-{:016x}", hasher.finish())
}
