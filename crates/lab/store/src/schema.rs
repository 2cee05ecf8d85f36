//! The numbered steps of the schema, and upgrades to the last one.
//!
//! A released step is never edited: changes are further steps.

use std::path::PathBuf;

use rusqlite::{Connection, Transaction};

use crate::database::{Database, Server};
use crate::home::Home;
use crate::store::write;
use crate::{AccessError, Store, StoreError, VersionError};

const STEPS: &[&str] = &[
    include_str!("../schema/001.sql"),
    include_str!("../schema/002.sql"),
    include_str!("../schema/003.sql"),
    include_str!("../schema/004.sql"),
    include_str!("../schema/005.sql"),
    include_str!("../schema/006.sql"),
    include_str!("../schema/007.sql"),
    include_str!("../schema/008.sql"),
    include_str!("../schema/009.sql"),
    include_str!("../schema/010.sql"),
];

/// The steps of a database on a server.
const SERVER_STEPS: &[&str] = &[
    include_str!("../schema/postgres/001.sql"),
    include_str!("../schema/postgres/002.sql"),
    include_str!("../schema/postgres/003.sql"),
    include_str!("../schema/postgres/004.sql"),
    include_str!("../schema/postgres/005.sql"),
    include_str!("../schema/postgres/006.sql"),
    include_str!("../schema/postgres/007.sql"),
    include_str!("../schema/postgres/008.sql"),
];

/// The server's table of steps, and the lock that lets one process at a time take them. The number
/// is an arbitrary constant.
const SERVER_FIRST: &str = "BEGIN; SELECT pg_advisory_xact_lock(7882827325);
    CREATE TABLE IF NOT EXISTS marvin_schema (steps BIGINT NOT NULL)";

/// Returns the number of steps that a database has taken.
///
/// # Errors
/// If it has taken more than this program knows.
pub(crate) fn version(connection: &Connection, home: &Home) -> Result<usize, StoreError> {
    let found: u32 = connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(|error| home.sql(error))?;
    match usize::try_from(found) {
        Ok(steps) if steps <= STEPS.len() => Ok(steps),
        _ => Err(newer(home.database(), found as usize)),
    }
}

/// Returns whether this program knows all steps of a database of that version.
pub(crate) fn is_known(version: usize) -> bool {
    version <= STEPS.len()
}

/// Returns the refusal of a database of a newer program.
pub(crate) fn newer(file: PathBuf, found: usize) -> StoreError {
    StoreError::Version(VersionError::NewerSchema {
        file,
        found: u32::try_from(found).unwrap_or(u32::MAX),
        known: u32::try_from(STEPS.len()).unwrap_or(u32::MAX),
    })
}

/// Returns whether a database of that version is current.
pub(crate) fn is_current(version: usize) -> bool {
    version == STEPS.len()
}

/// Takes the missing steps of a database, all or none.
pub(crate) fn upgrade(connection: &Connection, home: &Home) -> Result<(), StoreError> {
    if is_current(version(connection, home)?) {
        return Ok(());
    }
    let transaction = write(connection).map_err(|error| home.sql(error))?;
    // Checked again: another process may have upgraded while this one waited.
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

/// Returns the number of steps of a server's database; `None` if it has none.
///
/// # Errors
/// If it has taken more than this program knows, or cannot store all texts.
pub(crate) fn steps_of_server(store: &Store) -> Result<Option<usize>, StoreError> {
    let has_table = "SELECT to_regclass('marvin_schema')::text";
    let encoding = "SELECT pg_encoding_to_char(encoding)::text FROM pg_database WHERE datname = current_database()";
    let ask =
        |sql| store.with(|database| database.row(sql, &[], |row| row.get::<Option<String>>(0)));
    if let Some(other) = ask(encoding)?
        .flatten()
        .filter(|encoding| encoding != "UTF8")
    {
        let detail = format!("the database is in {other}, and texts are in UTF8");
        return Err(StoreError::Access(AccessError::Refused {
            store: store.home.root().display().to_string(),
            detail,
        }));
    }
    if ask(has_table)?.flatten().is_none() {
        return Ok(None);
    }
    let steps: Option<u32> = store
        .with(|database| {
            database.row("SELECT max(steps) FROM marvin_schema", &[], |row| {
                row.get(0)
            })
        })?
        .flatten();
    match steps.map(|steps| usize::try_from(steps).unwrap_or(usize::MAX)) {
        Some(steps) if steps > SERVER_STEPS.len() => {
            Err(StoreError::Version(VersionError::NewerSchema {
                file: store.home.database(),
                found: u32::try_from(steps).unwrap_or(u32::MAX),
                known: u32::try_from(SERVER_STEPS.len()).unwrap_or(u32::MAX),
            }))
        }
        steps => Ok(steps),
    }
}

/// Returns whether a server's database with this number of steps is current.
pub(crate) fn is_current_on_server(steps: usize) -> bool {
    steps == SERVER_STEPS.len()
}

/// Returns the refusal of a server's database with too few steps.
pub(crate) fn older(store: &Store, steps: usize) -> StoreError {
    too_old(&store.home, steps, SERVER_STEPS.len())
}

/// Returns the refusal of a data directory with too few steps.
pub(crate) fn older_home(home: &Home, steps: usize) -> StoreError {
    too_old(home, steps, STEPS.len())
}

fn too_old(home: &Home, found: usize, known: usize) -> StoreError {
    StoreError::Version(VersionError::OlderSchema {
        store: home.root().display().to_string(),
        found,
        known,
    })
}

/// Returns how many steps there are on a server.
#[cfg(test)]
pub(crate) fn server_steps() -> usize {
    SERVER_STEPS.len()
}

/// Takes the first steps only, as an older program would.
#[cfg(test)]
pub(crate) fn take_some_on_server(store: &Store, steps: usize) -> Result<(), StoreError> {
    match &store.database {
        Database::Server(server) => take_on_server(store, server, steps),
        Database::Sqlite(_) => Ok(()),
    }
}

/// Takes the missing steps of a server's database, all or none.
pub(crate) fn upgrade_server(store: &Store) -> Result<(), StoreError> {
    let Database::Server(server) = &store.database else {
        return Ok(());
    };
    let taken = take_on_server(store, server, SERVER_STEPS.len());
    if taken.is_err() {
        // The transaction rolls back, or is lost with the connection.
        server.batch("ROLLBACK").ok();
    }
    taken
}

fn take_on_server(store: &Store, server: &Server, until: usize) -> Result<(), StoreError> {
    let batch = |sql: &str| {
        server
            .batch(sql)
            .map_err(|error| store.home.to_error(error))
    };
    batch(SERVER_FIRST)?;
    // Checked only now: another process may have upgraded while this one waited.
    let taken = steps_of_server(store)?.unwrap_or(0);
    for step in &SERVER_STEPS[taken.min(until)..until] {
        batch(step)?;
    }
    batch(&format!(
        "DELETE FROM marvin_schema; INSERT INTO marvin_schema VALUES ({until}); COMMIT"
    ))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use model::{Fault, Triage};
    use rusqlite::Connection;

    use super::STEPS;
    use crate::Store;
    use crate::testing::{decision, run, saved, store};

    /// Makes the data directory of an older Marvin: with one run, after only this many steps.
    fn home_of_step(steps: usize) -> tempfile::TempDir {
        let (home, new) = store();
        saved(&new, &run("aa", "01", 1));
        drop(new);
        let file = home.path().join("marvin.db");
        let old = home.path().join("old.db");
        let connection = Connection::open(&old).unwrap();
        STEPS[..steps]
            .iter()
            .for_each(|step| connection.execute_batch(step).unwrap());
        connection
            .pragma_update(None, "user_version", steps)
            .unwrap();
        connection
            .execute("ATTACH ?1 AS new", [file.to_str().unwrap()])
            .unwrap();
        for table in [
            "builds",
            "machines",
            "fingerprints",
            "runs",
            "environments",
            "results",
            "artefacts",
            "kernels",
        ] {
            let columns: Vec<String> = connection
                .prepare(&format!(
                    "SELECT name FROM pragma_table_info('{table}', 'main')"
                ))
                .unwrap()
                .query_map([], |row| row.get(0))
                .unwrap()
                .collect::<Result<_, _>>()
                .unwrap();
            let columns = columns.join(", ");
            connection
                .execute_batch(&format!(
                    "INSERT INTO main.{table} ({columns}) SELECT {columns} FROM new.{table}"
                ))
                .unwrap();
        }
        connection.execute_batch("DETACH new").unwrap();
        drop(connection);
        drop(fs::remove_file(home.path().join("marvin.db-wal")));
        drop(fs::remove_file(home.path().join("marvin.db-shm")));
        fs::rename(old, file).unwrap();
        home
    }

    #[test]
    fn data_directory_of_each_schema_step_is_upgraded() {
        for steps in 1..STEPS.len() {
            let home = home_of_step(steps);
            let mut expected = run("aa", "01", 1);
            let bytes = || fs::read(home.path().join("marvin.db")).unwrap();
            let old = bytes();
            for refused in [Store::open(home.path()), Store::open_read_only(home.path())] {
                let error = refused.unwrap_err();
                assert!(
                    error.to_string().contains("marvin store upgrade"),
                    "{error}"
                );
            }
            assert!(old == bytes(), "step {steps}: it was changed");
            let upgraded = Store::upgrade(home.path()).unwrap();
            assert_eq!((upgraded.before, upgraded.now), (steps, STEPS.len()));
            let copy = Connection::open(upgraded.copy.unwrap()).unwrap();
            let runs = "SELECT count(*), (SELECT user_version FROM pragma_user_version) FROM runs";
            let of_copy = copy
                .query_row(runs, [], |row| {
                    Ok((row.get::<_, usize>(0)?, row.get::<_, usize>(1)?))
                })
                .unwrap();
            assert_eq!(of_copy, (1, steps));
            let reader = Store::open_read_only(home.path()).unwrap();
            if steps < 2 {
                expected
                    .results
                    .iter_mut()
                    .for_each(|result| result.counted.clear());
            }
            if steps < 5 {
                expected
                    .results
                    .iter_mut()
                    .for_each(|result| result.declared = None);
            }
            assert_eq!(reader.run(&expected.id).unwrap(), expected, "step {steps}");
            assert!(reader.decisions().unwrap().is_empty());
            drop(reader);
            let writer = Store::open(home.path()).unwrap();
            writer.decide(&decision("6.12.117", Triage::Real)).unwrap();
            assert_eq!(writer.decisions().unwrap().len(), 1);
        }
    }

    #[test]
    fn decisions_are_never_changed() {
        let (_home, store) = store();
        store.decide(&decision("6.12.117", Triage::Real)).unwrap();
        let error = store
            .with(|database| database.execute("UPDATE decisions SET note = 'x'", &[]))
            .unwrap_err();
        assert_eq!(error.fault(), Fault::Lab);
        assert!(
            error.to_string().contains("a decision is never changed"),
            "{error}"
        );
    }
}
