//! `marvin power`: asks for and switches the power of a server.

use clap::{Args, ValueEnum};
use model::BootDevice;
use server::{Power, PowerState};

use crate::completion;
use crate::exit::{Exit, WrongInput};
use crate::servers::{check_ours, find_server};
use crate::session::Session;

/// `marvin power`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  marvin power testbox
  marvin power testbox cycle
  marvin power testbox boot pxe && marvin power testbox cycle")]
pub(crate) struct PowerArguments {
    /// Server: the name of a [[machine]] with [machine.power] in marvin.toml
    #[arg(add = completion::server())]
    pub(crate) name: String,

    /// Action
    #[arg(value_enum, default_value_t = Turn::Status)]
    pub(crate) turn: Turn,

    /// Device for the action boot: pxe, disk, or bios for the firmware's setup
    #[arg(required_if_eq("turn", "boot"), value_parser = boot_device)]
    pub(crate) device: Option<BootDevice>,

    /// Act even if another user has reserved the server
    #[arg(long)]
    pub(crate) force: bool,
}

/// An action on the power.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Turn {
    /// Print the state: on or off
    Status,
    /// Switch the server on
    On,
    /// Switch the server off at once, without shutting its kernel down
    Off,
    /// Switch the server off, and on again after 5 s
    Cycle,
    /// Set the device of the next boot, without switching the power
    Boot,
}

fn boot_device(text: &str) -> Result<BootDevice, String> {
    let known = BootDevice::ALL
        .into_iter()
        .find(|device| device.name() == text);
    known.ok_or_else(|| "expected pxe, disk or bios".to_owned())
}

pub(crate) fn power(session: &Session, command: &PowerArguments) -> anyhow::Result<Exit> {
    let server = find_server(session, &command.name)?;
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
        check_ours(session, &server.name)?;
    }
    let answer = session.answer(None)?;
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
