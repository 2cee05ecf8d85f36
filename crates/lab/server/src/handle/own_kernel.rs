//! The way back to the server's own kernel.

use super::{Life, ServerHandle};
use crate::problem::{ServerProblem, WrongSystem};
use crate::remote::{Facts, MARK};

/// How often Marvin asks a server to restart if the connection is cut meanwhile.
const RESTARTS: u32 = 3;

impl ServerHandle {
    /// Has the server boot its own kernel if it runs another one.
    pub(crate) fn return_to_own_kernel(&self) -> Result<(), ServerProblem> {
        if !matches!(*self.life(), Life::UnderTest(_)) {
            return Ok(());
        }
        let mut facts = self.recover_if_silent()?;
        if let Some(restarted) = facts
            .running()
            .and_then(|_| self.restart_image(facts.boot_id()))
        {
            facts = restarted?;
        }
        for tried in 1.. {
            if facts.running().is_none() {
                break;
            }
            match self.remote.reboot() {
                // The connection was cut before or after the server took the command.
                Err(problem) if problem.is_silence() && tried < RESTARTS => {
                    let now = self.recover_if_silent()?;
                    // The command did not arrive.
                    if now.boot_id() == facts.boot_id() {
                        continue;
                    }
                    facts = now;
                }
                begun => {
                    begun?;
                    let (reboot, _) = self.wait_for_boot(
                        facts.boot_id(),
                        "the return to its own kernel",
                        Vec::new(),
                    )?;
                    facts = reboot.facts().map_or_else(|| self.remote.facts(), Ok)?;
                }
            }
            // Its boot loader has the kernel under test as its default: further restarts would lead
            // there again.
            if let Some(tag) = facts.running() {
                let name = self.server.name.clone();
                let step = "return to its own kernel";
                return Err(ServerProblem::Step {
                    name,
                    step,
                    answer: format!("it boots {MARK}{tag} again"),
                });
            }
        }
        self.verify_own_kernel(&self.run_image(facts)?)
    }

    /// Checks that a server runs its own kernel again. Its boot loader may have another default by
    /// now: then the server is back, but as another machine than the one that was recorded.
    pub(crate) fn verify_own_kernel(&self, facts: &Facts) -> Result<(), ServerProblem> {
        if facts.running().is_some() {
            return Ok(());
        }
        if let Some(loader) = &self.image {
            // Its reset ends an image, which is started again before the next step.
            let runs_image = facts.image() == Some(&loader.image().id);
            self.change(if runs_image {
                Life::end_test
            } else {
                Life::begin_test
            });
            return Ok(());
        }
        self.change(Life::end_test);
        let own = self.life().own_kernel().clone();
        let runs = facts.get("release");
        match own.release() {
            Some(own) if own != runs => Err(WrongSystem::OtherKernel {
                name: self.server.name.clone(),
                runs: runs.to_owned(),
                own: own.to_owned(),
            }
            .into()),
            _ => Ok(()),
        }
    }
}
