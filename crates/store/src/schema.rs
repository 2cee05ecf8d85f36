//! The numbered steps of the schema, and bringing a database up to the last one.
//!
//! A step that was once released is never edited: what comes later is a further step.

use rusqlite::{Connection, Transaction};

use crate::StoreError;
use crate::home::Home;
use crate::store::write;

const STEPS: &[&str] = &[include_str!("../schema/001.sql"), include_str!("../schema/002.sql")];

/// Says how far a database is: the number of steps it has taken.
///
/// # Errors
/// When it went further than this program knows.
pub(crate) fn version(connection: &Connection, home: &Home) -> Result<usize, StoreError> {
    let found: u32 =
        connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(|error| home.sql(error))?;
    match usize::try_from(found) {
        Ok(steps) if steps <= STEPS.len() => Ok(steps),
        _ => Err(StoreError::NewerSchema {
            file: home.database(),
            found,
            known: u32::try_from(STEPS.len()).unwrap_or(u32::MAX),
        }),
    }
}

/// Says whether a database of that version is what this program reads.
pub(crate) fn is_current(version: usize) -> bool {
    version == STEPS.len()
}

/// Takes the steps that a database lacks, all or none.
pub(crate) fn upgrade(connection: &Connection, home: &Home) -> Result<(), StoreError> {
    if is_current(version(connection, home)?) {
        return Ok(());
    }
    let transaction = write(connection).map_err(|error| home.sql(error))?;
    // Asked again: another process may have taken the steps while this one waited.
    let taken = version(&transaction, home)?;
    take(&transaction, taken).map_err(|error| home.sql(error))?;
    transaction.commit().map_err(|error| home.sql(error))
}

fn take(transaction: &Transaction<'_>, taken: usize) -> rusqlite::Result<()> {
    for step in &STEPS[taken..] {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", STEPS.len())
}
