//! Opening a home, for writing or only for reading, and clearing away what a killed process left in it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use model::RunId;
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};

use crate::StoreError;
use crate::home::Home;
use crate::schema;

/// Longer than any one saving keeps the database for itself.
const BUSY_LIMIT: Duration = Duration::from_secs(30);

/// Statements kept prepared: more than there are different ones.
const PREPARED: usize = 32;

/// A home, opened. What can be done with it is grouped by noun: builds, machines, runs, artefacts, kernels.
#[derive(Debug)]
pub struct Store {
    pub(crate) connection: Connection,
    pub(crate) home: Home,
}

impl Store {
    /// Opens a home for writing; makes it, or brings it up to date, where needed.
    ///
    /// Others may read meanwhile. Commands that measure hold the [`HomeLock`](crate::HomeLock) as well.
    ///
    /// # Errors
    /// When the home cannot be used, is damaged, or was written by a newer Marvin.
    pub fn open(home: &Path) -> Result<Self, StoreError> {
        let home = Home::at(home);
        home.create()?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let connection = connect(&home, flags)?;
        // First of all, so that a database from the future is left as it is.
        schema::version(&connection, &home)?;
        prepare(&connection).map_err(|error| home.sql(error))?;
        schema::upgrade(&connection, &home)?;
        let store = Self { connection, home };
        store.sweep()?;
        Ok(store)
    }

    /// Opens a home for reading, also while another process measures in it. Saving through it is an error.
    ///
    /// # Errors
    /// When nothing was ever saved there, or as for [`Store::open`].
    pub fn open_read_only(home: &Path) -> Result<Self, StoreError> {
        let home = Home::at(home);
        let there = home.database().try_exists();
        if !there.map_err(|error| home.io(home.root(), error))? {
            return Err(StoreError::Empty { home: home.root().to_owned() });
        }
        let connection = connect(&home, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        if schema::is_current(schema::version(&connection, &home)?) {
            return Ok(Self { connection, home });
        }
        // Statements are only written for the newest schema, so an older home is brought up to date first.
        drop(connection);
        drop(Self::open(home.root())?);
        let connection = connect(&home, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        Ok(Self { connection, home })
    }

    /// Does a piece of work with the database, and says what its error means.
    pub(crate) fn ask<'a, T>(
        &'a self,
        work: impl FnOnce(&'a Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        work(&self.connection).map_err(|error| self.home.sql(error))
    }

    /// Removes what processes left behind that were killed while they saved a run.
    ///
    /// Who saves a run keeps other writers out all the while, so whatever a writing transaction finds there has
    /// nobody left who would finish it.
    pub(crate) fn sweep(&self) -> Result<(), StoreError> {
        if self.incoming_runs()?.is_empty() {
            return Ok(());
        }
        let transaction = self.ask(write)?;
        for run in self.incoming_runs()? {
            if self.ask(|connection| run_exists(connection, &run))? {
                self.home.remove(&self.home.incoming_of(&run))?;
            } else {
                self.discard(&run)?;
            }
        }
        self.ask(|_| transaction.commit())
    }

    /// Removes the files of a run that was not saved to the end. The mark that they are to be removed goes last.
    pub(crate) fn discard(&self, run: &RunId) -> Result<(), StoreError> {
        self.home.remove(&self.home.artefacts_of(run))?;
        self.home.remove(&self.home.incoming_of(run))
    }

    fn incoming_runs(&self) -> Result<Vec<RunId>, StoreError> {
        let folder = self.home.incoming();
        let entries = fs::read_dir(&folder).map_err(|error| self.home.io(&folder, error))?;
        // What is not called as a run is not ours, and stays.
        Ok(entries.filter_map(|entry| RunId::from_hex(entry.ok()?.file_name().to_str()?).ok()).collect())
    }
}

/// Begins a transaction that keeps other writers out from its first moment. It is undone unless committed.
pub(crate) fn write(connection: &Connection) -> rusqlite::Result<Transaction<'_>> {
    Transaction::new_unchecked(connection, TransactionBehavior::Immediate)
}

/// Says whether a run is saved.
pub(crate) fn run_exists(connection: &Connection, run: &RunId) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT 1 FROM runs WHERE id = ?1")?.exists([run.hex()])
}

fn connect(home: &Home, flags: OpenFlags) -> Result<Connection, StoreError> {
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(home.database(), flags).map_err(|error| home.sql(error))?;
    connection.busy_timeout(BUSY_LIMIT).map_err(|error| home.sql(error))?;
    connection.set_prepared_statement_cache_capacity(PREPARED);
    Ok(connection)
}

/// Sets what a writing connection needs. The journal is the kind that lets others read meanwhile.
fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    journal(connection)?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "foreign_keys", true)
}

/// How often the journal is asked for, and how long is waited in between, while others open the same new home.
const JOURNAL_TRIES: u32 = 500;
const JOURNAL_WAIT: Duration = Duration::from_millis(20);

/// Chooses the journal. SQLite waits for other locks by itself, but not always for the one that this needs.
fn journal(connection: &Connection) -> rusqlite::Result<()> {
    let choose = || connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()));
    for _ in 1..JOURNAL_TRIES {
        match choose() {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                std::thread::sleep(JOURNAL_WAIT);
            }
            chosen => return chosen,
        }
    }
    choose()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use rusqlite::Connection;

    use super::Store;
    use crate::testing::{build, run, saved, store};
    use crate::{Guilt, StoreError};

    fn told(error: &StoreError, home: &Path) -> String {
        format!("{:?}: {error}", error.guilt()).replace(&home.display().to_string(), "HOME")
    }

    #[test]
    fn reading_does_not_wait_for_writing() {
        let (home, writer) = store();
        saved(&writer, &run("aa", "01", 1));
        let transaction = writer.ask(super::write).unwrap();
        let reader = Store::open_read_only(home.path()).unwrap();
        assert_eq!(reader.runs(10).unwrap().len(), 1);
        assert!(reader.save_build(&build("bb")).is_err());
        drop(transaction);
    }

    #[test]
    fn a_home_that_is_not_there_is_empty_for_readers_and_stays_away() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        let error = Store::open_read_only(&home).unwrap_err();
        insta::assert_snapshot!(told(&error, &home), @"User: HOME holds no results: measure something first, or give --home the folder that has them");
        assert!(!home.exists());
    }

    #[test]
    fn a_home_below_a_file_or_a_file_as_home_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let below = file.join("home");
        insta::assert_snapshot!(told(&Store::open(&below).unwrap_err(), &below), @"User: cannot use HOME: a file is in the way; give --home a folder that you can write to");
        for home in [&below, &file] {
            for error in [Store::open(home).unwrap_err(), Store::open_read_only(home).unwrap_err()] {
                assert!(matches!(error, StoreError::Unusable { .. }), "{error}");
            }
        }
    }

    #[test]
    fn a_file_that_is_no_database_is_said_to_be_none_and_left_alone() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("marvin.db");
        let text = "these are not the bytes you are looking for ".repeat(100);
        fs::write(&file, &text).unwrap();
        let error = Store::open(home.path()).unwrap_err();
        insta::assert_snapshot!(told(&error, home.path()), @"Infra: HOME/marvin.db is damaged: file is not a database; restore the home from a copy, or give --home a new folder");
        let error = Store::open_read_only(home.path()).unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }));
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }

    #[test]
    fn a_database_damaged_in_the_middle_is_an_error_and_no_panic() {
        let (home, store) = store();
        for seed in 0..20 {
            saved(&store, &run("aa", &format!("{seed:02x}"), seed));
        }
        drop(store);
        let file = home.path().join("marvin.db");
        let mut bytes = fs::read(&file).unwrap();
        let middle = bytes.len() - 4096 * 4;
        bytes[4096..middle].fill(0xa5);
        fs::write(&file, bytes).unwrap();
        let error = Store::open_read_only(home.path()).and_then(|store| store.runs(10)).unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
    }

    #[test]
    fn a_schema_from_the_future_is_refused_and_left_alone() {
        let home = tempfile::tempdir().unwrap();
        drop(Store::open(home.path()).unwrap());
        let file = home.path().join("marvin.db");
        Connection::open(&file).unwrap().pragma_update(None, "user_version", 99).unwrap();
        for error in [Store::open(home.path()).unwrap_err(), Store::open_read_only(home.path()).unwrap_err()] {
            insta::allow_duplicates! {
                insta::assert_snapshot!(told(&error, home.path()), @"User: HOME/marvin.db was written by a newer Marvin (schema 99, this one knows 4): use the newer one, or give --home another folder");
            }
        }
    }

    #[test]
    fn a_reader_brings_an_older_home_up_to_date() {
        let home = tempfile::tempdir().unwrap();
        // What a process leaves that is killed before its first step.
        fs::write(home.path().join("marvin.db"), "").unwrap();
        let store = Store::open_read_only(home.path()).unwrap();
        assert!(store.runs(10).unwrap().is_empty());
    }

    #[test]
    fn several_may_open_a_new_home_at_once() {
        let home = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for number in 0..8_u8 {
                let home = home.path();
                scope.spawn(move || {
                    let store = Store::open(home).unwrap();
                    store.save_build(&build(&format!("{number:02x}"))).unwrap();
                });
            }
        });
        assert!(Store::open(home.path()).unwrap().find_build("07").is_ok());
    }

    #[test]
    fn a_full_disk_is_said_to_be_full() {
        let (home, store) = store();
        store.connection.pragma_update(None, "max_page_count", 1).unwrap();
        let mut large = build("aa");
        large.origin = "x".repeat(1 << 20);
        let error = store.save_build(&large).unwrap_err();
        assert_eq!(error.guilt(), Guilt::Infra);
        insta::assert_snapshot!(told(&error, home.path()), @"Infra: no space left in HOME: make room and repeat the command; what was saved before is whole");
    }
}
