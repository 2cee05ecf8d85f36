//! A server gets an image as its own system, or its former system back; then its record is made
//! anew.

use deploy::Image;
use model::{BootOnce, ServerSettings};

use super::image::{Carried, Carrier, RUN, deployed, note};
use super::problem::ServerProblem;
use super::reach::Facts;
use super::record::Record;
use super::{At, Waited, look, seal, set};
use crate::MachineError;
use crate::settings::Settings;

/// Has a server run an image as its own system from now on, and makes its record anew. Returns the
/// release of its kernel.
///
/// # Errors
/// If the server cannot be used, or does not come up with the image.
pub fn deploy(
    server: &ServerSettings,
    image: &Image,
    settings: &Settings,
) -> Result<String, MachineError> {
    if server.collector.is_some() {
        let why =
            "has a root in memory: the memory of a dead kernel would be lost with it".to_owned();
        let hint = "leave --keep-dump out, or give it a system on a disk";
        return Err(ServerProblem::Unfit {
            name: server.name.clone(),
            why,
            hint,
        }
        .into());
    }
    // Before the way to the server is prepared: ssh has to know the key that the server will have.
    seal::seal(server, &settings.home)?;
    // First: a Marvin that is killed meanwhile leaves a server whose next contact goes on.
    note(&settings.home, &server.name, Some(image))?;
    let carrier = Carried::new(
        image.clone(),
        server,
        &settings.home,
        settings.permit.clone(),
    );
    pin(
        &At::of(server, Some(Box::new(carrier)), settings)?,
        settings,
    )
}

/// Installs an image on the disk that a server's settings name, and has the server boot that. What
/// the disk has is lost. Returns the release of the image's kernel.
///
/// # Errors
/// If the server cannot be used, has no such disk, or does not come up from it.
pub fn install(
    server: &ServerSettings,
    image: &Image,
    settings: &Settings,
) -> Result<String, MachineError> {
    let Some(disk) = &server.deploy.disk else {
        let why = "names no disk that may be erased".to_owned();
        let hint = "set disk = \"/dev/disk/by-id/NAME\" in its [machine.deploy]";
        return Err(ServerProblem::Unfit {
            name: server.name.clone(),
            why,
            hint,
        }
        .into());
    };
    // The capture of dead kernels' memory, and the loader, are for the system on the disk: one in
    // memory has neither.
    let in_memory = ServerSettings {
        collector: None,
        boot: BootOnce::Kexec,
        ..server.clone()
    };
    deploy(&in_memory, image, settings)?;
    Carried::new(
        image.clone(),
        server,
        &settings.home,
        settings.permit.clone(),
    )
    .install(disk)?;
    return_to(server, Some(image), settings)
}

/// Has a server run the system that it starts by itself, and makes its record anew. Returns the
/// release of its kernel.
///
/// # Errors
/// If the server cannot be used, or does not come back.
pub fn undeploy(server: &ServerSettings, settings: &Settings) -> Result<String, MachineError> {
    return_to(server, None, settings)
}

/// Has a server run the system on its disk, which is that of an image if one was installed just
/// now.
fn return_to(
    server: &ServerSettings,
    image: Option<&Image>,
    settings: &Settings,
) -> Result<String, MachineError> {
    note(&settings.home, &server.name, None)?;
    let at = At::of(server, None, settings)?;
    let facts = at.reach.facts()?;
    set(&at.is_held, true);
    if facts.image().is_some() {
        at.reach.reboot()?;
        if !matches!(
            at.wait_for_boot(facts.boot_id(), "the return to its own system", Vec::new())?
                .0,
            Waited::Back(_)
        ) {
            at.reach.facts()?;
        }
    }
    if let Some(image) = image {
        let facts = at.reach.facts()?;
        if facts.on_disk() != Some(&image.id) {
            let (name, step) = (server.name.clone(), "boot from its disk");
            let said = format!("it booted {} instead", facts.get("release"));
            return Err(ServerProblem::Step { name, step, said }.into());
        }
    }
    let release = pin(&at, settings)?;
    seal::forget_boot_key(server, &settings.home)?;
    Ok(release)
}

/// Makes the record of a server that runs what it should, and lets others use it.
fn pin(at: &At, settings: &Settings) -> Result<String, MachineError> {
    let facts = at.contact()?;
    let report = look::describe(&*at.reach, &at.server.name, facts.boot_id())?;
    Record::of(&facts, &report).accept(&Record::file(&settings.home, &at.server.name))?;
    at.close()?;
    Ok(facts.get("release").to_owned())
}

/// Returns what has a server start its image, if one was deployed on it.
pub(super) fn carrier(
    server: &ServerSettings,
    settings: &Settings,
) -> Result<Option<Box<dyn Carrier>>, ServerProblem> {
    let image = deployed(&settings.home, &server.name)?;
    Ok(image.map(|image| {
        Box::new(Carried::new(
            image,
            server,
            &settings.home,
            settings.permit.clone(),
        )) as Box<dyn Carrier>
    }))
}

impl At {
    /// Has the server run its image, if it has one, and returns its facts.
    pub(super) fn run_image(&self, facts: Facts) -> Result<Facts, ServerProblem> {
        let Some(carrier) = &self.image else {
            return Ok(facts);
        };
        let runs = facts.image() == Some(&carrier.image().id) && facts.running().is_none();
        let facts = if runs {
            facts
        } else {
            self.start_image(&**carrier, facts.boot_id())?
        };
        if !facts.get("own_initrd").is_empty() {
            return Ok(facts);
        }
        carrier.complete()?;
        self.reach.facts()
    }

    /// Has a server start its image whatever it runs, if no system of it is needed for that.
    pub(super) fn restart_image(&self, before: &str) -> Option<Result<Facts, ServerProblem>> {
        let carrier = self
            .image
            .as_ref()
            .filter(|carrier| !carrier.needs_system())?;
        Some(
            self.start_image(&**carrier, before)
                .and_then(|facts| self.run_image(facts)),
        )
    }

    /// Has the server start its image. Firmware may miss its network and boot the disk: then it is
    /// tried again.
    fn start_image(&self, carrier: &dyn Carrier, before: &str) -> Result<Facts, ServerProblem> {
        match self.try_image(carrier, before) {
            Err(problem)
                if !carrier.needs_system()
                    && matches!(problem, ServerProblem::Step { step: RUN, .. }) =>
            {
                let now = self.reach.facts().map(|facts| facts.boot_id().to_owned());
                self.try_image(carrier, &now.unwrap_or_default())
            }
            tried => tried,
        }
    }

    fn try_image(&self, carrier: &dyn Carrier, before: &str) -> Result<Facts, ServerProblem> {
        drop(self.control.new_console());
        match carrier.start() {
            // The connection was cut before or after it was started.
            Err(problem) if problem.is_silence() => {}
            begun => begun?,
        }
        let name = || self.server.name.clone();
        let step = RUN;
        let mut console = Vec::new();
        match self.look_for(before, &mut console, 0)? {
            Waited::Back(facts)
                if facts.image() == Some(&carrier.image().id) && facts.running().is_none() =>
            {
                carrier.reached()?;
                Ok(facts)
            }
            Waited::Back(facts) => {
                let said = format!("it booted {} instead", facts.get("release"));
                Err(ServerProblem::Step {
                    name: name(),
                    step,
                    said,
                })
            }
            Waited::Stayed => Err(self.stayed()),
            Waited::Silent => {
                let printed = crate::console::readable_tail(&console);
                let last = printed
                    .lines()
                    .rfind(|line| !line.trim().is_empty())
                    .map(model::plain);
                let last =
                    last.map_or_else(String::new, |line| format!("; its console ends: {line}"));
                let said = format!("it did not answer within {} s{last}", self.server.boot_s);
                Err(ServerProblem::Step {
                    name: name(),
                    step,
                    said,
                })
            }
        }
    }

    /// Returns the facts of a server that is ready to get a build: one with an image runs it, as
    /// builds get its root.
    pub(super) fn ready(&self) -> Result<Facts, ServerProblem> {
        let facts = self.home_if_lost()?;
        if self.image.is_none() {
            return Ok(facts);
        }
        if facts.running().is_some() {
            self.set_away(true);
            self.go_home()?;
            return self.reach.facts();
        }
        self.run_image(facts)
    }

    /// Fails for a kernel that is not measured on the server's image.
    pub(super) fn check_kernel(&self, release: &str) -> Result<(), ServerProblem> {
        let Some(image) = self.image.as_ref().map(|carrier| carrier.image()) else {
            return Ok(());
        };
        match &image.kernels {
            Some(range) if !release.is_empty() && !range.contains(release) => {
                let (name, image, range) = (
                    self.server.name.clone(),
                    image.name.clone(),
                    range.to_string(),
                );
                Err(ServerProblem::OtherImage {
                    name,
                    image,
                    range,
                    release: release.to_owned(),
                })
            }
            _ => Ok(()),
        }
    }
}
