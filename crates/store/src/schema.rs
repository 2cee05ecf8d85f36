//! The numbered steps of the schema, and bringing a database up to the last one.
//!
//! A step that was once released is never edited: what comes later is a further step.

use rusqlite::{Connection, Transaction};

use crate::StoreError;
use crate::home::Home;
use crate::store::write;

const STEPS: &[&str] = &[
    include_str!("../schema/001.sql"),
    include_str!("../schema/002.sql"),
    include_str!("../schema/003.sql"),
    include_str!("../schema/004.sql"),
];

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

#[cfg(test)]
mod tests {
    use std::fs;

    use model::Triage;
    use rusqlite::Connection;

    use super::STEPS;
    use crate::testing::{decision, run, saved, store};
    use crate::{Guilt, Store};

    /// Writes what a Marvin that knew so many steps would have left: a home with a run, without what came later.
    fn home_of_step(steps: usize) -> tempfile::TempDir {
        let (home, new) = store();
        saved(&new, &run("aa", "01", 1));
        drop(new);
        let file = home.path().join("marvin.db");
        let old = home.path().join("old.db");
        let connection = Connection::open(&old).unwrap();
        STEPS[..steps].iter().for_each(|step| connection.execute_batch(step).unwrap());
        connection.pragma_update(None, "user_version", steps).unwrap();
        connection.execute("ATTACH ?1 AS new", [file.to_str().unwrap()]).unwrap();
        for table in ["builds", "machines", "fingerprints", "runs", "environments", "results", "artefacts", "kernels"] {
            let columns: Vec<String> = connection
                .prepare(&format!("SELECT name FROM pragma_table_info('{table}', 'main')"))
                .unwrap()
                .query_map([], |row| row.get(0))
                .unwrap()
                .collect::<Result<_, _>>()
                .unwrap();
            let columns = columns.join(", ");
            connection
                .execute_batch(&format!("INSERT INTO main.{table} ({columns}) SELECT {columns} FROM new.{table}"))
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
    fn a_home_of_each_earlier_step_is_brought_up_to_date_with_all_that_is_in_it() {
        for steps in 1..STEPS.len() {
            let home = home_of_step(steps);
            let mut expected = run("aa", "01", 1);
            let reader = Store::open_read_only(home.path()).unwrap();
            if steps < 2 {
                expected.results.iter_mut().for_each(|result| result.counted.clear());
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
        let error = store.ask(|connection| connection.execute("UPDATE decisions SET note = 'x'", [])).unwrap_err();
        assert_eq!(error.guilt(), Guilt::Infra);
        assert!(error.to_string().contains("a decision is never changed"), "{error}");
    }
}
