//! A server gets an image as its own system, or its former system back; then its record is made
//! anew.

use machine::MachineError;
use model::{BootOnce, ServerSettings};

use super::loader::{DeployedImage, ImageLoader, deployed_image, write_deployed_image};
use super::{Image, seal};
use crate::handle::{Life, Reboot, ServerHandle};
use crate::look;
use crate::permit::ServerAccess;
use crate::problem::{ServerProblem, UnfitServer};
use crate::record::Record;

/// Has a server run an image as its own system from now on, and makes its record anew. Returns the
/// release of its kernel.
///
/// # Errors
/// If the server cannot be used, or does not come up with the image.
pub fn deploy(
    server: &ServerSettings,
    image: &Image,
    access: &ServerAccess,
) -> Result<String, MachineError> {
    if server.collector.is_some() {
        let why =
            "has a root in memory: the memory of a dead kernel would be lost with it".to_owned();
        let hint = "leave --keep-dump out, or give it a system on a disk";
        return Err(ServerProblem::from(UnfitServer::Setup {
            name: server.name.clone(),
            why,
            hint,
        })
        .into());
    }
    // Before the way to the server is prepared: ssh has to know the key that the server will have.
    seal::seal(server, &access.home)?;
    // First: a Marvin that is killed meanwhile leaves a server whose next contact goes on.
    write_deployed_image(&access.home, &server.name, Some(image))?;
    let loader = DeployedImage::new(image.clone(), server, &access.home, access.permit.clone());
    pin(
        &ServerHandle::new(server, Some(Box::new(loader)), access)?,
        access,
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
    access: &ServerAccess,
) -> Result<String, MachineError> {
    let Some(disk) = &server.deploy.disk else {
        let why = "names no disk that may be erased".to_owned();
        let hint = "set disk = \"/dev/disk/by-id/NAME\" in its [machine.deploy]";
        return Err(ServerProblem::from(UnfitServer::Setup {
            name: server.name.clone(),
            why,
            hint,
        })
        .into());
    };
    // The capture of dead kernels' memory, and the loader, are for the system on the disk: one in
    // memory has neither.
    let in_memory = ServerSettings {
        collector: None,
        boot: BootOnce::Kexec,
        ..server.clone()
    };
    deploy(&in_memory, image, access)?;
    DeployedImage::new(image.clone(), server, &access.home, access.permit.clone()).install(disk)?;
    return_to(server, Some(image), access)
}

/// Has a server run the system that it starts by itself, and makes its record anew. Returns the
/// release of its kernel.
///
/// # Errors
/// If the server cannot be used, or does not come back.
pub fn undeploy(server: &ServerSettings, access: &ServerAccess) -> Result<String, MachineError> {
    return_to(server, None, access)
}

/// Has a server run the system on its disk, which is that of an image if one was installed just
/// now.
fn return_to(
    server: &ServerSettings,
    image: Option<&Image>,
    access: &ServerAccess,
) -> Result<String, MachineError> {
    write_deployed_image(&access.home, &server.name, None)?;
    let handle = ServerHandle::new(server, None, access)?;
    let facts = handle.remote.facts()?;
    handle.change(Life::hold);
    if facts.image().is_some() {
        handle.remote.reboot()?;
        if !matches!(
            handle
                .wait_for_boot(facts.boot_id(), "the return to its own system", Vec::new())?
                .0,
            Reboot::Rebooted(_)
        ) {
            handle.remote.facts()?;
        }
    }
    if let Some(image) = image {
        let facts = handle.remote.facts()?;
        if facts.on_disk() != Some(&image.id) {
            let name = server.name.clone();
            let step = "boot from its disk";
            let answer = format!("it booted {} instead", facts.get("release"));
            return Err(ServerProblem::Step { name, step, answer }.into());
        }
    }
    let release = pin(&handle, access)?;
    seal::forget_boot_key(server, &access.home)?;
    Ok(release)
}

/// Makes the record of a server that runs what it should, and lets others use it.
fn pin(handle: &ServerHandle, access: &ServerAccess) -> Result<String, MachineError> {
    let facts = handle.acquire()?;
    let report = look::describe(&*handle.remote, &handle.server.name, facts.boot_id())?;
    Record::from_facts(&facts, &report).accept(&Record::file(&access.home, &handle.server.name))?;
    handle.close()?;
    Ok(facts.get("release").to_owned())
}

/// Returns what has a server start its image, if one was deployed on it.
pub(crate) fn image_loader(
    server: &ServerSettings,
    access: &ServerAccess,
) -> Result<Option<Box<dyn ImageLoader>>, ServerProblem> {
    let image = deployed_image(&access.home, &server.name)?;
    Ok(image.map(|image| {
        Box::new(DeployedImage::new(
            image,
            server,
            &access.home,
            access.permit.clone(),
        )) as Box<dyn ImageLoader>
    }))
}
