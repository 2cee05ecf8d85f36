//! The right to touch a server. Marvin renews it before each step that changes something there:
//! after a stall, another user may have the server, and this Marvin must not touch it any more.

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

use machine::Limits;
use subprocess::Ended;

use crate::power_and_console::Control;
use crate::problem::ServerProblem;
use crate::remote::{AgentBoot, Capture, Facts, Kernel, RemoteHost};

/// How long the right has to last beyond a step's own deadline, and for steps without one (s).
const STEP_S: u64 = 900;

/// The right to touch a server.
pub trait Permit: Debug + Send + Sync {
    /// Makes the right last for at least so many seconds from now on.
    ///
    /// # Errors
    /// If the right is lost, or cannot be proved: why, in words that name the server.
    fn renew(&self, for_s: u64) -> Result<(), String>;
}

/// What a lab uses a server with.
#[derive(Debug, Clone)]
pub struct ServerAccess {
    /// The lab's data directory.
    pub home: PathBuf,
    /// The agent, a static program.
    pub agent: Vec<u8>,
    /// The deadline of jobs, and the share of time that disturbs one.
    pub limits: Limits,
    /// The right to touch the server; `None` if no other user can have it.
    pub permit: Option<Arc<dyn Permit>>,
}

/// A server that is touched only with the right to.
#[derive(Debug)]
pub(crate) struct Permitted<T> {
    server: T,
    permit: Option<Arc<dyn Permit>>,
}

impl<T> Permitted<T> {
    /// Guards a server; without a permit all is allowed.
    pub(crate) fn new(server: T, permit: Option<Arc<dyn Permit>>) -> Self {
        Self { server, permit }
    }

    fn permitted(&self, more_s: u64) -> Result<&T, ServerProblem> {
        match self
            .permit
            .as_ref()
            .map_or(Ok(()), |permit| permit.renew(STEP_S + more_s))
        {
            Ok(()) => Ok(&self.server),
            Err(why) => Err(ServerProblem::NotOurs(why)),
        }
    }
}

impl<T: RemoteHost> RemoteHost for Permitted<T> {
    fn facts(&self) -> Result<Facts, ServerProblem> {
        self.permitted(0)?.facts()
    }

    fn install(&self, kernel: &Kernel<'_>) -> Result<(), ServerProblem> {
        // Copying alone may take as long as the right of a short step lasts.
        self.permitted(STEP_S)?.install(kernel)
    }

    fn boot_once(&self, kernel: &Kernel<'_>) -> Result<(), ServerProblem> {
        self.permitted(0)?.boot_once(kernel)
    }

    fn reboot(&self) -> Result<(), ServerProblem> {
        self.permitted(0)?.reboot()
    }

    fn shut_down(&self) -> Result<(), ServerProblem> {
        self.permitted(0)?.shut_down()
    }

    fn run_agent(
        &self,
        on: &AgentBoot<'_>,
        arguments: &[&str],
        input: &[u8],
    ) -> Result<Ended, ServerProblem> {
        // Copying a program's files may take as long as the right of a short step lasts.
        let copy_s = on.files.map_or(0, |_| STEP_S);
        self.permitted(on.deadline_s + copy_s)?
            .run_agent(on, arguments, input)
    }

    fn leave(&self) -> Result<(), ServerProblem> {
        self.permitted(0)?.leave()
    }
}

impl<T: Capture> Capture for Permitted<T> {
    fn load(&self) -> Result<(), ServerProblem> {
        self.permitted(0)?.load()
    }

    fn take(&self) -> Result<Vec<u8>, ServerProblem> {
        self.permitted(STEP_S)?.take()
    }
}

impl<T: Control> Control for Permitted<T> {
    fn cycle_power(&self) -> Result<bool, ServerProblem> {
        self.permitted(0)?.cycle_power()
    }

    // A look at the power or the console changes nothing there and needs no right.
    fn has_power(&self) -> bool {
        self.server.has_power()
    }

    fn is_off(&self) -> Result<bool, ServerProblem> {
        self.server.is_off()
    }

    fn switch_power(&self, is_on: bool) -> Result<(), ServerProblem> {
        self.permitted(0)?.switch_power(is_on)
    }

    fn new_console(&self) -> Vec<u8> {
        self.server.new_console()
    }

    fn send_sysrq(&self, keys: &str) -> bool {
        self.permitted(0)
            .is_ok_and(|server| server.send_sysrq(keys))
    }
}
