//! A server with an image runs it as its own system: each reset ends it, and it is started again.

use std::fs;

use machine::{Backend, BootOutcome, Guest, Observe};
use model::FailureReason;

use super::{Does, Fake, boot_and_run, boot_and_run_on, job, reason};
use crate::deploy::{Image, ImageLoader, images_in_use, write_deployed_image};
use crate::problem::ServerProblem;

const ID: &str = "0123456789abcdef";

/// How a make-believe server comes to run an image.
#[derive(Debug, Clone)]
pub(super) struct Starter {
    /// Whether a system has to run there.
    needs_system: bool,
    /// Whether the server boots something else.
    fails: bool,
    /// The kernels that are measured on it.
    kernels: &'static str,
}

#[derive(Debug)]
pub(super) struct FakeLoader {
    fake: Fake,
    starter: Starter,
    image: Image,
}

impl Fake {
    pub(super) fn loader(&self, starter: Starter) -> FakeLoader {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("distributions").join(ID);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("release"), "6.1-image\n").unwrap();
        let image =
            Image::find(home.path(), "debian-12", ID, starter.kernels.parse().ok()).unwrap();
        FakeLoader {
            fake: self.clone(),
            starter,
            image,
        }
    }

    /// Returns a server with an image.
    fn with_image(does: Does, needs_system: bool, kernels: &'static str) -> Self {
        let fake = Self::new(does);
        fake.state().starter = Some(Starter {
            needs_system,
            fails: false,
            kernels,
        });
        fake
    }
}

impl ImageLoader for FakeLoader {
    fn image(&self) -> &Image {
        &self.image
    }

    fn needs_system(&self) -> bool {
        self.starter.needs_system
    }

    fn start(&self) -> Result<(), ServerProblem> {
        let mut state = self.fake.state();
        state.log.push("image".into());
        (state.boots, state.running, state.answers, state.is_complete) =
            (state.boots + 1, None, true, false);
        state.installed.clear();
        state.image = Some(self.image.id.clone()).filter(|_| !self.starter.fails);
        Ok(())
    }

    fn confirm_started(&self) -> Result<(), ServerProblem> {
        Ok(())
    }

    fn add_root(&self) -> Result<(), ServerProblem> {
        let mut state = self.fake.state();
        state.log.push("complete".into());
        state.is_complete = true;
        Ok(())
    }
}

#[test]
fn image_is_started_and_started_again() {
    for (needs_system, back) in [(true, "reboot, image"), (false, "image")] {
        let fake = Fake::with_image(Does::Boots, needs_system, "");
        let (end, server) = boot_and_run(&fake);
        assert_eq!(
            reason(end),
            FailureReason::AgentDied("agent: no such workload".into())
        );
        server.close().unwrap();
        let measured = "describe, install, boot, restore, prepare, describe, job";
        assert_eq!(
            fake.log(),
            format!("image, complete, {measured}, {back}, complete, leave")
        );
        assert_eq!(fake.state().image.as_deref(), Some(ID));
    }
}

#[test]
fn next_boot_after_a_death_gets_the_image() {
    let fake = Fake::with_image(Does::DiesInJob, true, "");
    let home = tempfile::tempdir().unwrap();
    let server = fake.open(&home).unwrap();
    let build = super::build(&home);
    let BootOutcome::Ready(booted) = server
        .clone()
        .boot(
            &Guest {
                build: &build,
                modules: &[],
            },
            1,
        )
        .unwrap()
    else {
        panic!("it boots");
    };
    assert!(
        booted
            .run(&job(), Observe::Nothing)
            .unwrap()
            .stream
            .is_err()
    );
    assert_eq!(fake.state().image, None);
    fake.state().does = Does::Boots;
    booted
        .run(&job(), Observe::Nothing)
        .unwrap()
        .stream
        .unwrap_err();
    drop(booted);
    server.close().unwrap();
    let once = "install, boot, restore, prepare, describe, job";
    assert_eq!(
        fake.log(),
        format!(
            "image, complete, describe, {once}, image, complete, {once}, reboot, image, complete, leave"
        )
    );
}

#[test]
fn silent_server_gets_its_image_from_outside() {
    let fake = Fake::with_image(Does::Boots, false, "");
    fake.state().answers = false;
    let home = tempfile::tempdir().unwrap();
    drop(fake.open(&home).unwrap());
    assert_eq!(fake.log(), "image, complete, describe, leave");
    let by_kexec = Fake::with_image(Does::Boots, true, "");
    by_kexec.state().answers = false;
    assert!(
        by_kexec.open(&home).is_err(),
        "no system runs there that could start it"
    );
}

#[test]
fn other_system_than_the_image_is_refused() {
    let fake = Fake::with_image(Does::Boots, true, "");
    fake.state().starter.as_mut().unwrap().fails = true;
    let open = |fake: &Fake| {
        fake.open(&tempfile::tempdir().unwrap())
            .unwrap_err()
            .to_string()
    };
    let error = open(&fake);
    assert_eq!(
        error,
        "testbox cannot run its image: it booted 6.1-own instead"
    );
    assert_eq!(fake.log(), "image, leave");
    fake.state().starter.as_mut().unwrap().needs_system = false;
    open(&fake);
    assert_eq!(
        fake.log(),
        "image, leave, image, image, leave",
        "firmware may miss the network once"
    );
}

#[test]
fn kernels_of_other_images_are_refused() {
    let fake = Fake::with_image(Does::Boots, true, "..3.12");
    let home = tempfile::tempdir().unwrap();
    let (end, server) = boot_and_run_on(fake.open(&home).unwrap(), &home);
    server.close().unwrap();
    insta::assert_snapshot!(end.unwrap_err(), @r"
    testbox runs image debian-12, which is for kernels ..3.12, not for 6.1
    hint: marvin deploy testbox IMAGE, with an [[image]] for it
    ");
    assert_eq!(fake.log(), "image, complete, describe, leave");
}

#[test]
fn images_of_all_servers_are_in_use() {
    let home = tempfile::tempdir().unwrap();
    assert!(images_in_use(home.path()).unwrap().is_empty());
    let folder = home.path().join("distributions").join(ID);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("release"), "6.1-image\n").unwrap();
    let image = Image::find(home.path(), "debian-12", ID, "4.0..".parse().ok()).unwrap();
    for (name, image) in [
        ("testbox", Some(&image)),
        ("client", Some(&image)),
        ("client", None),
    ] {
        write_deployed_image(home.path(), name, image).unwrap();
    }
    fs::write(home.path().join("machines/testbox"), "a record").unwrap();
    assert_eq!(images_in_use(home.path()).unwrap(), [ID]);
}
