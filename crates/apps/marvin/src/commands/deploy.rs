//! `marvin deploy`: puts a distribution on a server.

use clap::Args;
use lab::OwnSystem;
use server::{Image, make};

use crate::completion;
use crate::exit::{Exit, WrongInput};
use crate::say;
use crate::select::did_you_mean;
use crate::servers::{check_ours, find_server};
use crate::session::Session;

/// `marvin deploy`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  marvin deploy testbox debian-13
  marvin deploy testbox own        # back to the system of its disk")]
pub(crate) struct DeployArguments {
    /// Server: the name of a [[machine]] in marvin.toml
    #[arg(add = completion::server())]
    pub(crate) name: String,

    /// Image: the name of an [[image]] in marvin.toml, or own for the server's installed system
    pub(crate) image: String,

    /// Build the image from today's packages, even if one of this recipe exists
    #[arg(long)]
    pub(crate) rebuild: bool,

    /// Erase the disk named in [machine.deploy] and install the image there
    #[arg(long)]
    pub(crate) disk: bool,
}

/// What stands for no image.
const OWN: &str = "own";

pub(crate) fn deploy(session: &Session, command: &DeployArguments) -> anyhow::Result<Exit> {
    let server = find_server(session, &command.name)?;
    let answer = session.answer(None)?;
    let home = session.home()?;
    check_ours(session, &server.name)?;
    if command.disk && (command.image == OWN || server.deploy.disk.is_none()) {
        return Err(WrongInput(
            "--disk needs an image, and `disk` in the server's [machine.deploy]".into(),
        )
        .into());
    }
    let image = if command.image == OWN {
        None
    } else {
        Some(image(session, command, home)?)
    };
    let system = OwnSystem::new(image.as_ref(), command.disk);
    say(&format!(
        "starting it on {}, which may take up to {} s",
        server.name, server.boot_s
    ));
    let lock = session.lock_home()?;
    let release = lab::deploy(session.store_location()?, &server, system, home, &lock)?;
    let what = image.map_or_else(
        || "its own system".to_owned(),
        |image| format!("{} ({})", image.name, image.id),
    );
    answer.write(format!("{} runs {what}, kernel {release}\n", server.name))?;
    Ok(Exit::Fine)
}

fn image(
    session: &Session,
    command: &DeployArguments,
    home: &std::path::Path,
) -> anyhow::Result<Image> {
    let images = &session.config()?.settings.images;
    let Some(settings) = images.iter().find(|image| image.name == command.image) else {
        let guess = did_you_mean(images.iter().map(|image| &*image.name), &command.image);
        let text = format!(
            "no image `{}`{guess}: it needs an [[image]] in marvin.toml",
            command.image.escape_debug()
        );
        return Err(WrongInput(text).into());
    };
    say(&format!(
        "image {}: made of packages unless it is there",
        settings.name
    ));
    let settings = if command.disk {
        settings.for_disk()
    } else {
        settings.clone()
    };
    let image = make(&settings, home, command.rebuild)?;
    say(&format!(
        "image {} is {}, kernel {}",
        image.name, image.id, image.release
    ));
    Ok(image)
}
