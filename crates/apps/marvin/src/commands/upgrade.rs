//! `marvin store`: changes what other commands leave alone, because other hosts use it.

use store::Store;

use crate::answer::Answer;
use crate::cli::{Arguments, Stored};
use crate::exit::Exit;

pub(crate) fn store(arguments: &Arguments, command: &Stored) -> anyhow::Result<Exit> {
    let Stored::Upgrade = command;
    let location = crate::home::store(arguments)?;
    let (before, now) = Store::upgrade(&location)?;
    let text = if before == now {
        format!("{location} has schema {now} already, which this marvin needs\n")
    } else {
        format!("upgraded {location} from schema {before} to {now}\n")
    };
    Answer::open(None)?.write(text)?;
    Ok(Exit::Fine)
}
