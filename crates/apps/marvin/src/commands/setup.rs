//! `marvin setup`: puts the reference QEMU into the data directory, without root.

use clap::Args;
use machine::qemu::{Qemu, SetupEvent, set_up, setup_packages};

use crate::exit::Exit;
use crate::say;
use crate::session::Session;

/// `marvin setup`.
#[derive(Debug, Args)]
pub(crate) struct SetupArguments {
    /// Do it also where this host's own QEMU gives the reference numbers
    #[arg(long)]
    force: bool,
}

pub(crate) fn setup(session: &Session, command: &SetupArguments) -> anyhow::Result<Exit> {
    let home = session.home()?;
    let answer = session.answer(None)?;
    let here = Qemu::find(None, home);
    if let Ok(qemu) = &here
        && qemu.is_known()
        && !command.force
    {
        answer.write(describe(qemu))?;
        return Ok(Exit::Fine);
    }
    let (count, bytes) = setup_packages();
    if !session.is_quiet() {
        let megabytes = bytes as f64 / 1e6;
        say(&format!(
            "reference QEMU: {count} packages of Debian 12, {megabytes:.1} MB, into {}",
            home.join("qemu").display()
        ));
    }
    let qemu = set_up(home, &session.debian()?, &|event| {
        if !session.is_quiet()
            && let Some(text) = progress_line(&event)
        {
            say(&text);
        }
    })?;
    answer.write(describe(&qemu))?;
    Ok(Exit::Fine)
}

fn describe(qemu: &Qemu) -> String {
    format!(
        "{} gives the reference numbers: QEMU {}\n",
        qemu.program.display(),
        qemu.version
    )
}

/// Returns a line of progress: one for every ten packages.
fn progress_line(event: &SetupEvent) -> Option<String> {
    match event {
        SetupEvent::Present => Some("it is there".to_owned()),
        SetupEvent::Fetching { number, of } if number % 10 == 0 => {
            Some(format!("fetching package {number} of {of}"))
        }
        SetupEvent::Fetching { .. } => None,
        SetupEvent::Unpacking => Some("unpacking".to_owned()),
    }
}
