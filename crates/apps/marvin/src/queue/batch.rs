//! Jobs through the batch system of marvin.toml: what its hosts run, and what a dispatcher says.

use std::ffi::OsString;

use anyhow::Context;
use config::ConfigFile;
use model::{BatchKind, BatchSettings, MarvinConfig, USUAL_MACHINE, UnixTime};
use service::{
    BatchSystem, DirectJobs, Dispatcher, ServiceError, Until, Worked, batch_system, has_slurm_node,
};
use store::{Location, Store};

use crate::exit::WrongInput;
use crate::options::BatchName;
use crate::queue::Journal;
use crate::session::Session;

/// A batch system, and what is sent to it.
pub(crate) struct BatchTarget<'a> {
    pub(crate) system: Box<dyn BatchSystem>,
    settings: &'a MarvinConfig,
    batch: &'a BatchSettings,
    machines: &'a [String],
    /// Marvin on the system's hosts, with the options that all commands there get.
    pub(crate) command: Vec<OsString>,
}

impl<'a> BatchTarget<'a> {
    /// Opens the batch system of marvin.toml for jobs of these machines.
    pub(crate) fn open(
        session: &Session,
        named: BatchName,
        site: &'a ConfigFile,
        machines: &'a [String],
    ) -> anyhow::Result<Self> {
        let settings = &site.settings;
        let batch = settings
            .batch
            .as_ref()
            .filter(|batch| is_named(batch, named));
        let Some(((batch, file), system)) =
            batch.zip(site.file.as_ref()).zip(batch_system(settings))
        else {
            let table = if named == BatchName::Slurm {
                "slurm"
            } else {
                "batch"
            };
            let text =
                format!("marvin.toml has no [{table}], which --via {table} needs: docs/slurm.md");
            return Err(WrongInput(text).into());
        };
        if let Location::Home(home) = session.store_location()? {
            let home = home.display();
            let text = format!(
                "cannot send jobs to other hosts: the queue is in the data directory {home}\nhint: --store \
                 postgres://USER@HOST/DATABASE"
            );
            return Err(WrongInput(text).into());
        }
        if let Some(name) = machines
            .iter()
            .find(|name| named == BatchName::Slurm && !has_slurm_node(settings, name))
        {
            let text =
                format!("{name} has no `slurm_node` in marvin.toml, so Slurm cannot run its jobs");
            return Err(WrongInput(text).into());
        }
        let file = std::path::absolute(file).context("cannot find the path of marvin.toml")?;
        let own = std::env::current_exe().context("cannot find the path of this program")?;
        let own_home = session.home()?.to_owned().into_os_string();
        let mut command = vec![
            batch
                .program
                .as_ref()
                .map_or(own.into_os_string(), OsString::from),
            "--home".into(),
            batch.home.as_ref().map_or(own_home, OsString::from),
            "--config-file".into(),
            file.into_os_string(),
        ];
        command.extend(session.machine_and_store_arguments()?);
        Ok(Self {
            system,
            settings,
            batch,
            machines,
            command,
        })
    }

    /// Opens the batch system, if one is named, for a command whose jobs are on the machine exact
    /// and share builds.
    pub(crate) fn open_direct(
        session: &Session,
        named: Option<BatchName>,
        site: Option<&'a ConfigFile>,
    ) -> anyhow::Result<Option<Self>> {
        let Some((named, site)) = named.zip(site) else {
            return Ok(None);
        };
        if site.settings.builds.is_none() {
            let text = "cannot send kernels to other hosts: marvin.toml does not say where\nhint: `builds` below [work] \
                        names a folder that all hosts share";
            return Err(WrongInput(text.to_owned()).into());
        }
        Self::open(session, named, site, &[]).map(Some)
    }

    /// Returns how jobs of such a command are sent, under names that begin so.
    pub(crate) fn direct(&self, prefix: String) -> DirectJobs<'_> {
        let minutes = self.settings.work.deadline_s.div_ceil(60);
        DirectJobs {
            system: &*self.system,
            prefix,
            machine: USUAL_MACHINE,
            minutes,
            command: &self.command,
        }
    }

    /// Returns the most jobs in the batch system at once.
    pub(crate) fn jobs_max(&self) -> usize {
        self.batch.jobs_max
    }

    /// Sends jobs until there are none, or for ever.
    pub(crate) fn dispatch(
        &self,
        until: Until,
        store: &Store,
        clock: &dyn Fn() -> UnixTime,
        journal: &Journal,
    ) -> Result<Worked, ServiceError> {
        let command: Vec<OsString> = self
            .command
            .iter()
            .cloned()
            .chain(["work".into(), "--take".into()])
            .collect();
        let dispatcher = Dispatcher {
            store,
            system: &*self.system,
            machines: self.machines,
            command: &command,
            jobs_max: self.batch.jobs_max,
            settings: self.settings,
            clock,
            notify: &|event| journal.note_dispatch(&event, self.system.name()),
        };
        dispatcher.dispatch(until)
    }
}

fn is_named(batch: &BatchSettings, named: BatchName) -> bool {
    matches!(batch.system, BatchKind::Slurm(_)) == (named == BatchName::Slurm)
}

/// Returns the batch system of marvin.toml, if it has one.
pub(crate) fn configured_batch(session: &Session) -> anyhow::Result<Option<Box<dyn BatchSystem>>> {
    Ok(batch_system(&session.config()?.settings))
}

/// Returns the machines of marvin.toml that a batch system can run jobs of.
pub(crate) fn sent_machines(
    settings: &MarvinConfig,
    named: BatchName,
    machines: Vec<String>,
) -> Vec<String> {
    machines
        .into_iter()
        .filter(|name| named == BatchName::Batch || has_slurm_node(settings, name))
        .collect()
}
