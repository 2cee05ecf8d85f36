//! `marvin setup`: puts the reference QEMU into the data directory, without root, or packs it for a
//! release.

use std::path::{Path, PathBuf};

use clap::Args;
use machine::qemu::{Origin, Qemu, SetupEvent, pack_setup, set_up, setup_packages};

use crate::exit::Exit;
use crate::say;
use crate::session::{Session, named_qemu};

/// `marvin setup`.
#[derive(Debug, Args)]
pub(crate) struct SetupArguments {
    /// Do it also where this host's own QEMU gives the reference numbers
    #[arg(long)]
    force: bool,
    /// Take it from a release, not from Debian's archive: the folder or the address that has
    /// machine-*.tar.xz
    #[arg(long, value_name = "FOLDER|URL")]
    from: Option<String>,
    /// Also pack it into a file in this folder, as a release has it
    #[arg(long, value_name = "FOLDER")]
    pack: Option<PathBuf>,
}

pub(crate) fn setup(session: &Session, command: &SetupArguments) -> anyhow::Result<Exit> {
    let home = session.home()?;
    let answer = session.answer(None)?;
    let is_wanted = command.force || command.from.is_some() || command.pack.is_some();
    if let Ok(qemu) = &Qemu::find(None, home)
        && qemu.is_known()
        && !is_wanted
    {
        answer.write(format!("{}{}", describe(qemu), describe_instead(qemu)))?;
        return Ok(Exit::Fine);
    }
    let notify = |event: SetupEvent| {
        if !session.is_quiet()
            && let Some(text) = progress_line(&event)
        {
            say(&text);
        }
    };
    let qemu = match &command.from {
        Some(release) => set_up(home, &Origin::Release(release), &notify)?,
        None => {
            if !session.is_quiet() {
                announce(home);
            }
            set_up(home, &Origin::Debian(&session.debian()?), &notify)?
        }
    };
    let mut text = describe(&qemu);
    if let Some(folder) = &command.pack {
        let file = pack_setup(home, folder)?;
        text = format!("{text}packed: {}\n", file.display());
    }
    text.push_str(&describe_instead(&qemu));
    answer.write(text)?;
    Ok(Exit::Fine)
}

/// Says which QEMU is used in place of the one that was set up; empty if that is used.
fn describe_instead(qemu: &Qemu) -> String {
    let other = named_qemu().filter(|named| *named != qemu.program);
    other.map_or_else(String::new, |named| {
        format!(
            "it is not used: MARVIN_QEMU names {}, which Marvin uses instead\n",
            named.display()
        )
    })
}

/// Says what is fetched from Debian.
fn announce(home: &Path) {
    let (count, bytes) = setup_packages();
    let megabytes = bytes as f64 / 1e6;
    say(&format!(
        "reference QEMU: {count} packages of Debian 12, {megabytes:.1} MB, into {}",
        home.join("qemu").display()
    ));
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
        SetupEvent::Damaged { detail } => Some(format!("making it again: {detail}")),
        SetupEvent::Taking => Some("taking it from the release".to_owned()),
        SetupEvent::Fetching { number, of } if number % 10 == 0 => {
            Some(format!("fetching package {number} of {of}"))
        }
        SetupEvent::Fetching { .. } => None,
        SetupEvent::Unpacking => Some("unpacking".to_owned()),
    }
}
