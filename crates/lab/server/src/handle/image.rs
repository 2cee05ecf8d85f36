//! The image that is a server's own system: the handle has it started before each build.

use machine::readable_tail;

use super::{Life, Reboot, ServerHandle};
use crate::deploy::{ImageLoader, RUN_IMAGE};
use crate::problem::{ServerProblem, WrongSystem};
use crate::remote::Facts;

impl ServerHandle {
    /// Has the server run its image, if it has one, and returns its facts.
    pub(super) fn run_image(&self, facts: Facts) -> Result<Facts, ServerProblem> {
        let Some(loader) = &self.image else {
            return Ok(facts);
        };
        let runs = facts.image() == Some(&loader.image().id) && facts.running().is_none();
        let facts = if runs {
            facts
        } else {
            self.start_image(&**loader, facts.boot_id())?
        };
        if !facts.get("own_initrd").is_empty() {
            return Ok(facts);
        }
        loader.add_root()?;
        self.remote.facts()
    }

    /// Has a server start its image whatever it runs, if no system of it is needed for that.
    pub(super) fn restart_image(&self, before: &str) -> Option<Result<Facts, ServerProblem>> {
        let loader = self
            .image
            .as_ref()
            .filter(|loader| !loader.needs_system())?;
        Some(
            self.start_image(&**loader, before)
                .and_then(|facts| self.run_image(facts)),
        )
    }

    /// Has the server start its image. Firmware may miss its network and boot the disk: then it is
    /// tried again.
    fn start_image(&self, loader: &dyn ImageLoader, before: &str) -> Result<Facts, ServerProblem> {
        match self.try_image(loader, before) {
            Err(problem)
                if !loader.needs_system()
                    && matches!(
                        problem,
                        ServerProblem::Step {
                            step: RUN_IMAGE,
                            ..
                        }
                    ) =>
            {
                let now = self.remote.facts().map(|facts| facts.boot_id().to_owned());
                self.try_image(loader, &now.unwrap_or_default())
            }
            tried => tried,
        }
    }

    fn try_image(&self, loader: &dyn ImageLoader, before: &str) -> Result<Facts, ServerProblem> {
        // What was printed before belongs to the system before.
        drop(self.control.new_console());
        match loader.start() {
            // The connection was cut before or after it was started.
            Err(problem) if problem.is_silence() => {}
            begun => begun?,
        }
        let name = || self.server.name.clone();
        let step = RUN_IMAGE;
        let mut console = Vec::new();
        match self.wait_for_new_boot(before, &mut console, 0)? {
            Reboot::Rebooted(facts)
                if facts.image() == Some(&loader.image().id) && facts.running().is_none() =>
            {
                // Only an image that proved itself by its id may make the key of the boot before
                // invalid.
                loader.confirm_started()?;
                Ok(facts)
            }
            Reboot::Rebooted(facts) => {
                let answer = format!("it booted {} instead", facts.get("release"));
                Err(ServerProblem::Step {
                    name: name(),
                    step,
                    answer,
                })
            }
            Reboot::NeverLeft => Err(self.never_left()),
            Reboot::NoAnswer => {
                let printed = readable_tail(&console);
                let last = printed
                    .lines()
                    .rfind(|line| !line.trim().is_empty())
                    .map(model::sanitize_line);
                let last =
                    last.map_or_else(String::new, |line| format!("; its console ends: {line}"));
                let answer = format!("it did not answer within {} s{last}", self.server.boot_s);
                Err(ServerProblem::Step {
                    name: name(),
                    step,
                    answer,
                })
            }
        }
    }

    /// Returns the facts of a server that is ready to get a build: one with an image runs it, as
    /// builds get its root.
    pub(crate) fn ready(&self) -> Result<Facts, ServerProblem> {
        let facts = self.recover_if_silent()?;
        if self.image.is_none() {
            return Ok(facts);
        }
        if facts.running().is_some() {
            self.change(Life::begin_test);
            self.return_to_own_kernel()?;
            return self.remote.facts();
        }
        self.run_image(facts)
    }

    /// Fails for a kernel that is not measured on the server's image.
    pub(crate) fn check_kernel(&self, release: &str) -> Result<(), ServerProblem> {
        let Some(image) = self.image.as_ref().map(|loader| loader.image()) else {
            return Ok(());
        };
        match &image.kernels {
            Some(range) if !release.is_empty() && !range.contains(release) => {
                Err(WrongSystem::OtherImage {
                    name: self.server.name.clone(),
                    image: image.name.clone(),
                    range: range.to_string(),
                    release: release.to_owned(),
                }
                .into())
            }
            _ => Ok(()),
        }
    }
}
