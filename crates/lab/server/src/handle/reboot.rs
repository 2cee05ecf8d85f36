//! Waiting for a server that restarts, and what it means if it does not come back.

use machine::reason_in;
use model::FailureReason;

use super::{Life, ServerHandle};
use crate::problem::ServerProblem;
use crate::remote::Facts;

/// Average cost of a failed poll (s): half of ssh's ConnectTimeout.
const FAILED_POLL_S: u64 = 7;
/// A dead kernel restarts the server after ten seconds (`panic=10`), and firmware prints something
/// within two minutes; after that only its power helps.
const DEAD_QUIET_S: u64 = 120;
/// sysrq keys for a hung kernel: 8 logs everything (with `quiet` a kernel would print headlines
/// only), w its blocked tasks, l the backtraces of its processors.
const SYSRQ_KEYS: &str = "8wl";
/// Polls to wait for the sysrq output.
const SYSRQ_POLLS: u32 = 3;
/// How waiting for another boot ended.
#[derive(Debug)]
pub(crate) enum Reboot {
    /// The server came back by itself.
    Rebooted(Facts),
    /// It was silent until its power was switched.
    NoAnswer,
    /// It answered in the same boot until its power was switched: it never left it.
    NeverLeft,
}

impl Reboot {
    /// Returns the facts of a server that came back by itself.
    pub(crate) fn facts(self) -> Option<Facts> {
        match self {
            Self::Rebooted(facts) => Some(facts),
            Self::NoAnswer | Self::NeverLeft => None,
        }
    }
}

impl ServerHandle {
    /// Returns the server's facts; waits for it if it does not answer, and switches it off and on
    /// if that does not help.
    pub(crate) fn recover_if_silent(&self) -> Result<Facts, ServerProblem> {
        match self.remote.facts() {
            Err(problem) if problem.is_silence() => {
                // Any boot will do: no boot has an empty id.
                let (reboot, _) = self.wait_for_boot("", "the last contact", Vec::new())?;
                reboot.facts().map_or_else(|| self.remote.facts(), Ok)
            }
            facts => facts,
        }
    }

    /// Waits until the server runs another boot than this one, and switches its power off and on if
    /// it does not come by itself. Returns the console with what was printed meanwhile, too.
    ///
    /// The boot id is the only proof of a restart: a server that answers may still be in the boot
    /// that Marvin asked it to leave.
    pub(crate) fn wait_for_boot(
        &self,
        before: &str,
        stage: &str,
        mut console: Vec<u8>,
    ) -> Result<(Reboot, Vec<u8>), ServerProblem> {
        let first = self.wait_for_new_boot(before, &mut console, 0)?;
        if let Reboot::Rebooted(_) = first {
            return Ok((first, console));
        }
        if let Reboot::NoAnswer = first {
            self.log_state_by_sysrq(&mut console);
        }
        let power = if self.control.cycle_power()? {
            let printed = console.len();
            if let Reboot::Rebooted(facts) =
                self.wait_for_new_boot(before, &mut console, printed)?
            {
                self.verify_own_kernel(&facts)?;
                return Ok((first, console));
            }
            ", also after its power was switched off and on"
        } else {
            ", and its [[machine]] has no power control"
        };
        // It can still be reached, so it is not lost: it stays held, and closing the handle tries
        // to return it.
        if let Reboot::NeverLeft = first {
            return Err(self.never_left());
        }
        // Nothing more can be done about it now.
        self.change(Life::release);
        let name = self.server.name.clone();
        let seconds = self.server.boot_s;
        Err(ServerProblem::Lost {
            name,
            stage: stage.to_owned(),
            seconds,
            power,
        })
    }

    /// Has a kernel under test that hangs print its blocked tasks and what its processors do,
    /// before its power is switched: if the console can ask it, and does not say already how it
    /// died.
    fn log_state_by_sysrq(&self, console: &mut Vec<u8>) {
        if !matches!(*self.life(), Life::UnderTest(_))
            || !self.control.has_power()
            || reason_in(console).is_some()
        {
            return;
        }
        if self.control.send_sysrq(SYSRQ_KEYS) {
            std::thread::sleep(self.poll_interval * SYSRQ_POLLS);
            console.extend(self.control.new_console());
        }
    }

    pub(crate) fn never_left(&self) -> ServerProblem {
        let answer = format!(
            "it still answered in the same boot after {} s",
            self.server.boot_s
        );
        ServerProblem::Step {
            name: self.server.name.clone(),
            step: "restart",
            answer,
        }
    }

    /// Finds out why the server fell silent in this boot, and returns how its kernel died, and the
    /// console. If it lives, the connection was cut.
    pub(crate) fn find_death(
        &self,
        boot_id: &str,
        stage: &str,
    ) -> Result<(FailureReason, Vec<u8>), ServerProblem> {
        let mut console = self.control.new_console();
        let facts = match self.remote.facts() {
            Ok(facts) => Some(facts),
            Err(problem) if problem.is_silence() => {
                // A network that comes back brings the same boot back.
                let (reboot, whole) = self.wait_for_boot("", stage, console)?;
                console = whole;
                reboot.facts()
            }
            Err(problem) => return Err(problem),
        };
        let reason = match facts {
            Some(facts) if facts.boot_id() == boot_id => {
                return Err(ServerProblem::Cut {
                    name: self.server.name.clone(),
                });
            }
            Some(facts) => {
                self.verify_own_kernel(&facts)?;
                // Only the console or its memory tells a kernel that died from a reset of the
                // server.
                FailureReason::AgentDied("the server restarted".into())
            }
            None => FailureReason::Hung,
        };
        Ok((reason, console))
    }

    /// Looks for another boot until the deadline, or until its kernel has died by what the console
    /// has `from` here on, and the console has been quiet since then so long that no restart
    /// can be in progress.
    pub(super) fn wait_for_new_boot(
        &self,
        before: &str,
        console: &mut Vec<u8>,
        from: usize,
    ) -> Result<Reboot, ServerProblem> {
        let polls =
            |seconds: u64| (seconds / (FAILED_POLL_S + self.poll_interval.as_secs())).max(1);
        let mut reboot = Reboot::NoAnswer;
        let mut quiet_polls = 0;
        for _ in 0..polls(self.server.boot_s) {
            std::thread::sleep(self.poll_interval);
            let facts = self.remote.facts();
            // Read at each poll, also while the server is silent: that is when a dying kernel
            // prints.
            let new = self.control.new_console();
            quiet_polls = if new.is_empty() { quiet_polls + 1 } else { 0 };
            console.extend(new);
            match facts {
                Ok(facts) if facts.boot_id() != before => return Ok(Reboot::Rebooted(facts)),
                // It still runs the kernel before, shuts down, or does not answer yet.
                Ok(_) => {
                    // An answer comes at once and costs less than the failed poll by which the
                    // deadline is counted: wait once more for it.
                    reboot = Reboot::NeverLeft;
                    std::thread::sleep(self.poll_interval);
                }
                Err(problem) if problem.is_silence() => {
                    reboot = Reboot::NoAnswer;
                    let is_over = quiet_polls >= polls(DEAD_QUIET_S) && self.control.has_power();
                    if is_over && console.get(from..).and_then(reason_in).is_some() {
                        break;
                    }
                }
                // While services start and end, ssh says many things.
                Err(ServerProblem::Step { .. }) => {}
                Err(problem) => return Err(problem),
            }
        }
        Ok(reboot)
    }

    /// Finds out whether a server restarts whose connection was cut while Marvin asked for it. If
    /// it does not, the boot is tried again.
    pub(crate) fn check_restart(&self, before: &Facts) -> Result<(), ServerProblem> {
        // One that shuts down answers for some seconds.
        std::thread::sleep(self.poll_interval * 5);
        if self.recover_if_silent()?.boot_id() == before.boot_id() {
            return Err(ServerProblem::Cut {
                name: self.server.name.clone(),
            });
        }
        Ok(())
    }
}
