//! `marvin store`, `marvin backup` and `marvin restore`: the care of stored results.

use std::fmt::Write;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Subcommand};
use lab::bisection::add;
use store::{Backup, Damage, HomeLock, Location, Store, WorkerLock};

use crate::exit::{Exit, WrongInput};
use crate::session::{Session, now};

/// Files and directories of a data directory, beside the store, that Marvin cannot make again.
const KEPT: [&str; 7] = [
    "marvin.toml",
    "manifests",
    "formats",
    "machines",
    "bisections",
    "stabilisations",
    "calibration",
];

/// Limit on damages listed; the number is that of all.
const DAMAGES_MAX: usize = 100;

/// `marvin store`.
#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Verify the checksum of every stored result and artifact
    Check,
    /// Upgrade the store to this Marvin's schema, after copying the database; older programs cannot
    /// use it any more then
    Upgrade,
}

/// `marvin backup`.
#[derive(Debug, Args)]
pub(crate) struct BackupArguments {
    /// New directory for the backup
    #[arg(value_name = "DIRECTORY")]
    to: PathBuf,
}

/// `marvin restore`.
#[derive(Debug, Args)]
pub(crate) struct RestoreArguments {
    /// Directory that `marvin backup` wrote
    #[arg(value_name = "DIRECTORY")]
    from: PathBuf,
}

pub(crate) fn store(session: &Session, command: &StoreCommand) -> anyhow::Result<Exit> {
    match command {
        StoreCommand::Check => check(session),
        StoreCommand::Upgrade => upgrade(session),
    }
}

fn upgrade(session: &Session) -> anyhow::Result<Exit> {
    let location = session.store_location()?;
    // A worker or a measurement of an older program would fail half-way.
    let _locks = match &location {
        Location::Home(home) if home.join("marvin.db").exists() => {
            Some((WorkerLock::acquire(home)?, HomeLock::acquire(home)?))
        }
        _ => None,
    };
    let upgraded = Store::upgrade(&location)?;
    let store::Upgraded { before, now, copy } = upgraded;
    let mut text = if before == now {
        format!("{location} has schema {now} already, which this marvin needs\n")
    } else {
        format!("upgraded {location} from schema {before} to {now}\n")
    };
    if let Some(copy) = copy {
        add(
            &mut text,
            format_args!("the database before it: {}\n", copy.display()),
        );
    }
    session.answer(None)?.write(text)?;
    Ok(Exit::Fine)
}

fn check(session: &Session) -> anyhow::Result<Exit> {
    let store = session.open_store_read_only()?;
    check_store(session, &store)
}

fn check_store(session: &Session, store: &Store) -> anyhow::Result<Exit> {
    let mut text = String::new();
    let mut count = 0;
    let checked = store.check(&mut |damage| {
        count += 1;
        if count <= DAMAGES_MAX {
            add(&mut text, format_args!("{}\n", describe(&damage)));
        }
    })?;
    if count > DAMAGES_MAX {
        add(
            &mut text,
            format_args!("and {} more\n", count - DAMAGES_MAX),
        );
    }
    let runs = checked.runs;
    let artifacts = checked.artifacts;
    let mut damaged = checked.damaged;
    // Damage of the runs is listed already.
    if damaged == 0
        && let Some(wrong) = results::check_summary(store, session.home()?)?
    {
        let what = "delete the file: it is written again from the runs";
        add(
            &mut text,
            format_args!("history.summary: {wrong}; {what}\n"),
        );
        damaged = 1;
    }
    add(
        &mut text,
        format_args!("runs {runs}, artifacts {artifacts}, damaged {damaged}\n"),
    );
    if checked.damaged > 0 {
        add(
            &mut text,
            format_args!(
                "Stop the services, and restore the last backup into a new directory (docs/operate.md).\n"
            ),
        );
    }
    session.answer(None)?.write(text)?;
    Ok(if damaged > 0 { Exit::Lab } else { Exit::Fine })
}

fn describe(damage: &Damage) -> String {
    match damage {
        Damage::Database { detail } => format!("database: {detail}"),
        Damage::Run { run, detail } => {
            format!("{run}: {detail}; `compare --force` measures it again")
        }
        Damage::Artifact { run, name, detail } => {
            format!("{run}, artifact {name}: {detail}; the run's results are whole")
        }
        Damage::List { name, detail } => format!("{name}: {detail}"),
    }
}

pub(crate) fn backup(session: &Session, command: &BackupArguments) -> anyhow::Result<Exit> {
    let location = session.store_location()?;
    let to = std::path::absolute(&command.to).context("cannot find the current directory")?;
    if let Location::Home(home) = &location
        && to.starts_with(home)
    {
        let text = format!(
            "cannot write a backup to {}: it is in the data directory, and would be lost with it\n\
             hint: name a directory on another disk",
            to.display()
        );
        return Err(WrongInput(text).into());
    }
    let backup = Store::back_up(&location, &to, &KEPT, now())?;
    let mut text = format!("wrote {}: {}\n", to.display(), contents(&backup));
    for path in backup.missing.iter().take(DAMAGES_MAX) {
        add(
            &mut text,
            format_args!("not in the backup: {} is missing\n", path.display()),
        );
    }
    session.answer(None)?.write(text)?;
    Ok(if backup.missing.is_empty() {
        Exit::Fine
    } else {
        Exit::Lab
    })
}

pub(crate) fn restore(session: &Session, command: &RestoreArguments) -> anyhow::Result<Exit> {
    let location = session.store_location()?;
    let Location::Home(home) = &location else {
        let text = "cannot restore into PostgreSQL: a backup is of a data directory\n\
                    hint: pg_restore for a dump of PostgreSQL, or --home DIRECTORY without --store";
        return Err(WrongInput(text.to_owned()).into());
    };
    let backup = store::restore(&command.from, home)?;
    let text = format!("restored {}: {}\n", home.display(), contents(&backup));
    session.answer(None)?.write(text)?;
    let store = Store::open_read_only(&location);
    match store {
        // It is a backup of before an upgrade, and says so.
        Err(error) => Err(error.into()),
        Ok(store) => check_store(session, &store),
    }
}

fn contents(backup: &Backup) -> String {
    let mut text = String::new();
    let Backup {
        runs, files, bytes, ..
    } = backup;
    let mib = bytes.div_ceil(1 << 20);
    // Writing to a text cannot fail.
    write!(text, "runs {runs}, files {files}, {mib} MiB").ok();
    text
}
