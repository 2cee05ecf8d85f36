//! A server in use: the way to it, and what is known of its state.

mod image;
mod life;
mod own_kernel;
mod reboot;

use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use machine::{DeadMemory, MachineError, ScratchFolder, qemu::Scratch};
use model::ServerSettings;
use subprocess::Shared;

pub(crate) use self::life::Life;
pub(crate) use self::reboot::Reboot;
use crate::deploy::ImageLoader;
use crate::fit::problems;
use crate::permit::{Permitted, ServerAccess};
use crate::power_and_console::{Control, PowerAndConsole};
use crate::problem::ServerProblem;
use crate::remote::{AgentBoot, Capture, Facts, RemoteHost, ssh};
use crate::{POLL_INTERVAL, PREPARE_S, look};

/// The agent's undo file on the server.
const UNDO: &str = "/var/lib/marvin/undo";
/// The file with the memory of a kernel that died.
const MEMORY: &str = "memory";

/// A way to the server, and what is known of its state.
#[derive(Debug)]
pub(crate) struct ServerHandle {
    pub(crate) server: ServerSettings,
    pub(crate) remote: Arc<dyn RemoteHost>,
    pub(crate) control: Box<dyn Control>,
    /// The image that is its own system, if it runs one.
    pub(crate) image: Option<Box<dyn ImageLoader>>,
    /// Saves the memory of kernels that die, if that is asked for.
    pub(crate) capture: Option<Arc<dyn Capture>>,
    /// The directory for it.
    pub(crate) scratch: ScratchFolder,
    /// Time between two polls; none in tests.
    pub(crate) poll_interval: Duration,
    pub(crate) job_s: u64,
    pub(crate) disturbed_share: f64,
    pub(crate) life: Shared<Life>,
}

impl Drop for ServerHandle {
    fn drop(&mut self) {
        // After an error that was reported: the server should not wait for the next contact.
        drop(self.close());
    }
}

impl ServerHandle {
    /// Prepares the way to a server; connects to nothing yet.
    pub(crate) fn new(
        server: &ServerSettings,
        image: Option<Box<dyn ImageLoader>>,
        access: &ServerAccess,
    ) -> Result<Self, MachineError> {
        let scratch = ScratchFolder::new(&access.home)?;
        let ssh = ssh::Ssh::new(
            server.clone(),
            &access.home,
            Some(scratch.path()),
            &access.agent,
        );
        let remote = Arc::new(Permitted::new(ssh, access.permit.clone()));
        let capture = server
            .collector
            .is_some()
            .then(|| Arc::clone(&remote) as Arc<dyn Capture>);
        let control = Box::new(Permitted::new(
            PowerAndConsole::open(server, &access.home),
            access.permit.clone(),
        ));
        Ok(Self {
            server: server.clone(),
            remote,
            control,
            image,
            capture,
            scratch,
            poll_interval: POLL_INTERVAL,
            job_s: access.limits.job_s,
            disturbed_share: access.limits.disturbed_share,
            life: Shared::default(),
        })
    }

    /// Holds the server, has it run its own kernel, and returns its facts.
    pub(crate) fn acquire(&self) -> Result<Facts, ServerProblem> {
        let fit = |facts: Facts| {
            problems(&self.server, &facts)
                .into_iter()
                .next()
                .map_or(Ok(facts), |problem| Err(ServerProblem::from(problem)))
        };
        // A server that does not answer may have lost its image, which needs nothing of it to
        // start, or be switched off for being idle. All other silence is an error.
        let mut facts = match self.remote.facts() {
            Err(problem)
                if problem.is_silence()
                    && self
                        .image
                        .as_ref()
                        .is_some_and(|image| !image.needs_system()) =>
            {
                self.restart_image("").unwrap_or(Err(problem))?
            }
            Err(problem) if problem.is_silence() && self.control.is_off().unwrap_or(false) => {
                self.wake()?
            }
            facts => facts?,
        };
        if facts.running().is_none() {
            // Held before the image starts: if that fails, dropping this handle has to let others
            // in again.
            self.change(Life::hold);
            facts = self.run_image(facts)?;
        }
        let facts = fit(facts);
        // After an error too: other labs may use it then.
        self.change(Life::hold);
        let facts = facts?;
        // Learned on the first contact, before any test: later it is what the server has to run
        // again.
        self.change(|life| life.learn_own_kernel(facts.own_release()));
        if facts.running().is_none() {
            return Ok(facts);
        }
        // Another Marvin was killed: what the server is, its own kernel says.
        self.change(Life::begin_test);
        self.return_to_own_kernel()?;
        // The facts above are those of the kernel that was found running.
        fit(self.remote.facts()?)
    }

    /// Switches the server on, which is off, and waits until it answers.
    fn wake(&self) -> Result<Facts, ServerProblem> {
        self.control.switch_power(true)?;
        // Any boot will do: no boot has an empty id.
        if let Reboot::Rebooted(facts) = self.wait_for_new_boot("", &mut Vec::new(), 0)? {
            return Ok(facts);
        }
        let name = self.server.name.clone();
        let seconds = self.server.boot_s;
        Err(ServerProblem::Lost {
            name,
            stage: "it was switched on".to_owned(),
            seconds,
            power: "",
        })
    }

    pub(crate) fn change(&self, transition: impl FnOnce(Life) -> Life) {
        let mut life = self.life.lock();
        *life = transition(std::mem::take(&mut *life));
    }

    pub(crate) fn life(&self) -> MutexGuard<'_, Life> {
        self.life.lock()
    }

    /// Has the server run its own kernel and lets others use it, unless that is done.
    pub(crate) fn close(&self) -> Result<(), ServerProblem> {
        if matches!(*self.life(), Life::Released(_)) {
            return Ok(());
        }
        let returned = self.return_to_own_kernel();
        // After an error too: dropping the handle must not try the same for minutes again.
        self.change(Life::release);
        // A server that did not return stays marked as held: others would measure on a kernel under
        // test.
        returned?;
        self.remote.leave()
    }

    /// Sets the booted kernel for measuring. The next boot forgets it all: there is nothing to set
    /// back.
    pub(crate) fn prepare(&self, boot_id: &str) -> Result<String, ServerProblem> {
        let on = AgentBoot {
            id: boot_id,
            deadline_s: PREPARE_S,
            files: None,
        };
        let turn = |command: &str| {
            let ended = self.remote.run_agent(&on, &[command, UNDO], &[])?;
            look::text_of(&ended, &self.server.name, "be set for measuring")
        };
        // A file of an earlier boot would be in the way.
        turn("restore")?;
        Ok(format!(
            "{}{}",
            turn("prepare")?,
            look::describe(&*self.remote, &self.server.name, boot_id)?
        ))
    }

    /// Returns the memory of the kernel that died, or why it was not saved; `None` without
    /// --keep-dump.
    pub(crate) fn read_dead_memory(&self) -> Option<Result<DeadMemory, MachineError>> {
        let bytes = self.capture.as_ref()?.take();
        Some(
            bytes
                .map_err(MachineError::from)
                .and_then(|bytes: Vec<u8>| {
                    let scratch = Scratch::new(self.scratch.path())?;
                    scratch.write(MEMORY, &bytes)?;
                    Ok(DeadMemory::new(scratch.path(MEMORY), scratch))
                }),
        )
    }
}
