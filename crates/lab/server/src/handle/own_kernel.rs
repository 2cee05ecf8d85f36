//! The way back to the server's own kernel.

use std::sync::PoisonError;

use super::ServerHandle;
use crate::problem::ServerProblem;
use crate::remote::{Facts, MARK};

/// How often Marvin asks a server to restart if the connection is cut meanwhile.
const RESTARTS: u32 = 3;

impl ServerHandle {
    /// Has the server boot its own kernel if it runs another one.
    pub(crate) fn return_to_own_kernel(&self) -> Result<(), ServerProblem> {
        if !self.may_run_test_kernel() {
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
            if let Some(tag) = facts.running() {
                let (name, step) = (self.server.name.clone(), "return to its own kernel");
                return Err(ServerProblem::Step {
                    name,
                    step,
                    said: format!("it boots {MARK}{tag} again"),
                });
            }
        }
        self.verify_own_kernel(&self.run_image(facts)?)
    }

    /// Checks that a server which left the kernel under test runs its own one: its boot loader may
    /// have another default by now.
    pub(crate) fn verify_own_kernel(&self, facts: &Facts) -> Result<(), ServerProblem> {
        if facts.running().is_some() {
            return Ok(());
        }
        if let Some(loader) = &self.image {
            // Its reset ends an image, which is started again before the next step.
            self.set_may_run_test_kernel(facts.image() != Some(&loader.image().id));
            return Ok(());
        }
        self.set_may_run_test_kernel(false);
        let own = self
            .own
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let runs = facts.get("release").to_owned();
        if own.is_empty() || own == runs {
            return Ok(());
        }
        Err(ServerProblem::OtherKernel {
            name: self.server.name.clone(),
            runs,
            own,
        })
    }
}
