//! What goes wrong at a server, in words that name the server and say what to do.

use machine::{BackendFault, MachineError};
use subprocess::ProgramError;

use crate::power::PowerError;

/// A failure of the lab at a server.
#[derive(Debug, thiserror::Error)]
pub enum ServerProblem {
    /// ssh does not let Marvin in.
    #[error(transparent)]
    Login(#[from] LoginProblem),
    /// It cannot boot builds.
    #[error(transparent)]
    Unfit(#[from] UnfitServer),
    /// It runs another system than the step needs.
    #[error(transparent)]
    WrongSystem(#[from] WrongSystem),
    #[error("{name} does not answer: {answer}")]
    Unreachable { name: String, answer: String },
    /// Its disk is full.
    #[error(
        "{name} has {free_mib} MiB left in /var/lib/marvin; the kernel needs {needed_mib} MiB: free some there"
    )]
    NoSpace {
        name: String,
        /// The space left (MiB).
        free_mib: u64,
        /// The space needed (MiB).
        needed_mib: u64,
    },
    /// Another lab uses the server.
    #[error(
        "{name} is held by {holder}: wait until it is free, or remove /var/lib/marvin/held there"
    )]
    Held {
        name: String,
        /// Who, and for how long.
        holder: String,
    },
    /// Another user has it by now, or may have: it is left as it is.
    #[error("{0}")]
    NotOurs(String),
    /// A step failed there.
    #[error("{name} cannot {step}: {answer}")]
    Step {
        name: String,
        step: &'static str,
        answer: String,
    },
    /// A step took too long.
    #[error("{name} did not {step} within {seconds} s")]
    Overdue {
        name: String,
        step: &'static str,
        seconds: u64,
    },
    /// The connection was cut; the server still runs the kernel under test.
    #[error("the connection to {name} was cut while the kernel ran on")]
    Cut { name: String },
    /// It did not come back.
    #[error(
        "{name} is lost: after {stage} it did not answer for {seconds} s{power}; its own kernel is the default of the next start"
    )]
    Lost {
        name: String,
        /// What was last done to it.
        stage: String,
        /// How long Marvin waited (s).
        seconds: u64,
        /// What its power control did.
        power: &'static str,
    },
    #[error(
        "{changes}\nhint: its results would mix two machines; if the change is on purpose: marvin machines check {name} --accept"
    )]
    Drifted {
        name: String,
        /// What changed, with the server's name.
        changes: String,
    },
    /// The power was not switched.
    #[error(transparent)]
    Power(#[from] PowerError),
    /// A program on this host failed.
    #[error(transparent)]
    Program(#[from] ProgramError),
}

/// ssh does not let Marvin in.
#[derive(Debug, thiserror::Error)]
pub enum LoginProblem {
    /// ssh does not know the server's key, or it is another one.
    #[error(
        "ssh does not trust {name}: {answer}\nhint: compare the key with the server's, then: ssh-keyscan HOST >> {known_hosts}"
    )]
    HostKey {
        name: String,
        answer: String,
        /// The file of keys in the lab's data directory.
        known_hosts: String,
    },
    /// The server refuses the login.
    #[error(
        "{name} refuses the login: {answer}\nhint: ssh asks for no password here: put a key into ssh-agent or the ssh configuration, and try: ssh -o BatchMode=yes {host} true"
    )]
    Refused {
        name: String,
        host: String,
        answer: String,
    },
}

/// Why Marvin cannot boot builds on a server, found before anything is changed there.
#[derive(Debug, thiserror::Error)]
pub enum UnfitServer {
    /// The login may not boot kernels.
    #[error(
        "{name} boots kernels only for root, not for user {user}: set host = \"root@...\" in its [[machine]]"
    )]
    NotRoot { name: String, user: String },
    /// A program is missing.
    #[error("{name} has no {tool}: install it there")]
    NoTool { name: String, tool: String },
    /// Its own kernel's initramfs is not where distributions put it.
    #[error(
        "{name} has no initramfs of its own kernel {release} in /boot: Marvin needs it to find the root disk"
    )]
    NoInitramfs { name: String, release: String },
    /// The server boots signed kernels only.
    #[error("{name} boots only signed kernels ({why}): switch secure boot off in its firmware")]
    Locked {
        name: String,
        /// Secure boot, or the kernel's lockdown.
        why: String,
    },
    /// It cannot boot kernels once, or not go back.
    #[error("{name} {why}\nhint: {hint}")]
    Setup {
        name: String,
        why: String,
        hint: &'static str,
    },
}

/// A server runs another system than the step needs.
#[derive(Debug, thiserror::Error)]
pub enum WrongSystem {
    /// It came back with a third kernel.
    #[error(
        "{name} came back with kernel {runs} and not with its own, {own}: its default has changed\nhint: if {runs} is its own kernel now, start again; if not, set the default there and restart it"
    )]
    OtherKernel {
        name: String,
        /// The release of the kernel that runs.
        runs: String,
        /// The release of its own kernel.
        own: String,
    },
    /// A kernel is not measured on its image, by the site's rule.
    #[error(
        "{name} runs image {image}, which is for kernels {range}, not for {release}\nhint: marvin deploy {name} IMAGE, with an [[image]] for it"
    )]
    OtherImage {
        name: String,
        image: String,
        range: String,
        release: String,
    },
    /// It runs a kernel under test, and so cannot say what it is.
    #[error("{name} runs a kernel under test: restart it, or measure on it, and accept it then")]
    UnderTest { name: String },
}

impl ServerProblem {
    /// Returns whether the server may just not be reachable now, as while it boots.
    #[must_use]
    pub const fn is_silence(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Overdue { .. })
    }

    /// Returns whether an immediate retry may succeed.
    pub(crate) const fn is_passing(&self) -> bool {
        matches!(self, Self::Cut { .. })
    }
}

impl From<ServerProblem> for MachineError {
    fn from(problem: ServerProblem) -> Self {
        let is_passing = problem.is_passing();
        Self::Backend(BackendFault::new(problem, is_passing))
    }
}

/// Returns the problem of a server that an error of a machine carries, if it does.
#[must_use]
pub fn server_problem(error: &MachineError) -> Option<&ServerProblem> {
    match error {
        MachineError::Backend(fault) => fault.downcast_ref(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::ServerProblem;

    #[test]
    fn late_step_is_named() {
        let late = ServerProblem::Overdue {
            name: "testbox".into(),
            step: "install the kernel",
            seconds: 900,
        };
        assert_eq!(
            late.to_string(),
            "testbox did not install the kernel within 900 s"
        );
        assert!(late.is_silence(), "it may have died");
    }
}
