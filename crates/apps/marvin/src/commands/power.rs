//! `marvin power`: asks for and switches the power of a server.

use model::ServerSettings;
use server::{Power, PowerState};

use super::config::site;
use super::measure::did_you_mean;
use super::reserve::check_ours;
use crate::answer::Answer;
use crate::cli::{Arguments, Turn};
use crate::exit::{Exit, WrongInput};

pub(crate) fn power(arguments: &Arguments, command: &crate::cli::Power) -> anyhow::Result<Exit> {
    let server = named(arguments, &command.name)?;
    let Some(settings) = &server.power else {
        let text = format!(
            "{} has no power control: give its [[machine]] a [machine.power] (docs/machines.md)",
            server.name
        );
        return Err(WrongInput(text).into());
    };
    if let Some(device) = command.device.filter(|_| command.turn != Turn::Boot) {
        return Err(WrongInput(format!(
            "`{device}` belongs to: marvin power {} boot {device}",
            server.name
        ))
        .into());
    }
    if command.turn != Turn::Status && !command.force {
        check_ours(arguments, &server.name)?;
    }
    let answer = Answer::open(None)?;
    let power = Power::new(&server.name, settings);
    if let Some(device) = command.device {
        let is_verified = power.boot_next(device)?;
        let how = if is_verified {
            ""
        } else {
            ": requested; what switches its power cannot verify it"
        };
        answer.write(format!("{}: next boot from {device}{how}\n", server.name))?;
        return Ok(Exit::Fine);
    }
    let state = match command.turn {
        Turn::Status | Turn::Boot => power.state(),
        Turn::On => power.turn(true),
        Turn::Off => power.turn(false),
        Turn::Cycle => power.cycle(),
    }?;
    let why = match (state, command.turn) {
        (PowerState::Unknown, Turn::Status) => ": the command of [machine.power] has no `status`",
        (PowerState::Unknown, _) => {
            ": switched, but the command of [machine.power] has no `status` to verify it"
        }
        _ => "",
    };
    answer.write(format!("{}: {state}{why}\n", server.name))?;
    Ok(Exit::Fine)
}

/// Returns a server of marvin.toml.
pub(crate) fn named(arguments: &Arguments, name: &str) -> anyhow::Result<ServerSettings> {
    let servers = site(arguments)?.settings.servers;
    let guess = did_you_mean(servers.iter().map(|server| &*server.name), name);
    let unknown = || {
        WrongInput(format!(
            "no server `{}`{guess}: it needs a [[machine]] in marvin.toml",
            name.escape_debug()
        ))
    };
    Ok(servers
        .iter()
        .find(|server| server.name == name)
        .cloned()
        .ok_or_else(unknown)?)
}
