//! `marvin deploy`: puts a distribution on a server.

use lab::OwnSystem;
use server::{Image, make};

use super::config::site;
use super::measure::did_you_mean;
use super::power::named;
use super::reserve::check_ours;
use crate::answer::Answer;
use crate::cli::{Arguments, Deploy};
use crate::exit::{Exit, WrongInput};
use crate::home::{home, store};
use crate::say;

/// What stands for no image.
const OWN: &str = "own";

pub(crate) fn deploy(arguments: &Arguments, command: &Deploy) -> anyhow::Result<Exit> {
    let server = named(arguments, &command.name)?;
    let answer = Answer::open(None)?;
    let home = home(arguments.home.as_deref())?;
    check_ours(arguments, &server.name)?;
    if command.disk && (command.image == OWN || server.deploy.disk.is_none()) {
        return Err(WrongInput(
            "--disk needs an image, and `disk` in the server's [machine.deploy]".into(),
        )
        .into());
    }
    let image = if command.image == OWN {
        None
    } else {
        Some(image(arguments, command, &home)?)
    };
    let system = OwnSystem::of(image.as_ref(), command.disk);
    say(&format!(
        "starting it on {}, which may take up to {} s",
        server.name, server.boot_s
    ));
    let release = lab::deploy(store(arguments)?, &server, system, &home)?;
    let what = image.map_or_else(
        || "its own system".to_owned(),
        |image| format!("{} ({})", image.name, image.id),
    );
    answer.write(format!("{} runs {what}, kernel {release}\n", server.name))?;
    Ok(Exit::Fine)
}

fn image(arguments: &Arguments, command: &Deploy, home: &std::path::Path) -> anyhow::Result<Image> {
    let images = site(arguments)?.settings.images;
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
