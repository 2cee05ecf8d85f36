//! `marvin store`: changes what other commands leave alone, because other hosts use it.

use clap::Subcommand;
use store::Store;

use crate::exit::Exit;
use crate::session::Session;

/// `marvin store`.
#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Upgrade a store on a server to this Marvin's schema; older programs cannot use it any more
    /// then
    Upgrade,
}

pub(crate) fn store(session: &Session, command: &StoreCommand) -> anyhow::Result<Exit> {
    let StoreCommand::Upgrade = command;
    let location = session.store_location()?;
    let (before, now) = Store::upgrade(&location)?;
    let text = if before == now {
        format!("{location} has schema {now} already, which this marvin needs\n")
    } else {
        format!("upgraded {location} from schema {before} to {now}\n")
    };
    session.answer(None)?.write(text)?;
    Ok(Exit::Fine)
}
