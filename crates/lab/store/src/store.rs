//! Opening a store for writing or reading, and cleaning up after killed processes.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::RunId;
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};

use crate::database::{Access, Database, Failure, Server};
use crate::home::Home;
use crate::location::{Address, Location};
use crate::{StoreError, backup, schema};

/// Longer than any saving keeps the database locked.
const BUSY_LIMIT: Duration = Duration::from_secs(30);

/// Statement cache size: more than there are different statements.
const PREPARED: usize = 32;

/// An open store. Its methods are grouped by noun: builds, machines, runs, artifacts, kernels.
#[derive(Debug)]
pub struct Store {
    pub(crate) database: Database,
    pub(crate) home: Home,
    location: Location,
    access: Access,
}

/// What an upgrade of a store did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upgraded {
    /// The number of its steps before and after.
    pub before: usize,
    pub now: usize,
    /// The copy of the database before the upgrade; `None` if there was nothing to do, and on a
    /// server.
    pub copy: Option<PathBuf>,
}

impl Store {
    /// Opens a store for writing; creates it if necessary.
    ///
    /// Readers are not blocked. Commands that measure hold the [`HomeLock`](crate::HomeLock) as
    /// well.
    ///
    /// # Errors
    /// If the store cannot be used, is damaged, or has the schema of a newer or an older Marvin:
    /// [`Store::upgrade`].
    pub fn open(location: impl Into<Location>) -> Result<Self, StoreError> {
        match location.into() {
            Location::Home(folder) => Self::open_home(&folder),
            Location::Server(address) => Self::connect(&address, Access::Write),
        }
    }

    /// Opens a store for reading, also while another process writes. Saving through it is an error.
    ///
    /// # Errors
    /// If it has no stored results, or as for [`Store::open`].
    pub fn open_read_only(location: impl Into<Location>) -> Result<Self, StoreError> {
        match location.into() {
            Location::Home(folder) => Self::read_home(&folder),
            Location::Server(address) => Self::connect(&address, Access::Read),
        }
    }

    /// Returns whether it was opened for reading.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.access == Access::Read
    }

    #[must_use]
    pub fn location(&self) -> &Location {
        &self.location
    }

    fn open_home(folder: &Path) -> Result<Self, StoreError> {
        let home = Home::new(folder);
        home.create()?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let connection = connect(&home, flags)?;
        // First, so that a database of another Marvin stays unchanged.
        let steps = schema::version(&connection, &home)?;
        if !schema::is_current(steps) && steps > 0 {
            return Err(schema::older_home(&home, steps));
        }
        prepare(&connection).map_err(|error| home.sql(error))?;
        schema::upgrade(&connection, &home)?;
        let store = Self {
            database: Database::Sqlite(connection),
            home,
            location: folder.into(),
            access: Access::Write,
        };
        store.sweep()?;
        Ok(store)
    }

    pub(crate) fn connect_home(home: &Home) -> Result<Connection, StoreError> {
        let exists = home.database().try_exists();
        if !exists.map_err(|error| home.io(home.root(), error))? {
            return Err(StoreError::Empty {
                home: home.root().to_owned(),
            });
        }
        connect(home, OpenFlags::SQLITE_OPEN_READ_ONLY)
    }

    fn read_home(folder: &Path) -> Result<Self, StoreError> {
        let home = Home::new(folder);
        let connection = Self::connect_home(&home)?;
        let steps = schema::version(&connection, &home)?;
        if steps == 0 {
            // Another process is making it, or was killed while it did.
            return Err(StoreError::Empty {
                home: home.root().to_owned(),
            });
        }
        // Statements are written for the newest schema only.
        if !schema::is_current(steps) {
            return Err(schema::older_home(&home, steps));
        }
        Ok(Self {
            database: Database::Sqlite(connection),
            home,
            location: folder.into(),
            access: Access::Read,
        })
    }

    fn log_in(address: &Address, access: Access) -> Result<Self, StoreError> {
        let home = Home::on_server(&address.to_string());
        let server = Server::connect(address, access).map_err(|error| home.to_error(error))?;
        let location = Location::Server(address.clone());
        Ok(Self {
            database: Database::Server(Box::new(server)),
            home,
            location,
            access,
        })
    }

    fn connect(address: &Address, access: Access) -> Result<Self, StoreError> {
        let store = Self::log_in(address, access)?;
        let Some(steps) = schema::steps_of_server(&store)? else {
            return if access == Access::Write {
                schema::upgrade_server(&store)?;
                Ok(store)
            } else {
                Err(StoreError::Empty {
                    home: store.home.root().to_owned(),
                })
            };
        };
        if schema::is_current_on_server(steps) {
            return Ok(store);
        }
        // Others use it, perhaps with an older program, which could not read it any more: one of
        // them decides.
        Err(schema::older(&store, steps))
    }

    /// Upgrades a store to the schema of this program. Only this upgrades one, as programs that are
    /// older cannot use it any more then. Of a data directory it first makes a copy of the database;
    /// the caller holds its locks.
    ///
    /// # Errors
    /// If it has no stored results, or as for [`Store::open`].
    pub fn upgrade(location: impl Into<Location>) -> Result<Upgraded, StoreError> {
        match location.into() {
            Location::Home(folder) => Self::upgrade_home(&Home::new(&folder)),
            Location::Server(address) => {
                let store = Self::log_in(&address, Access::Write)?;
                let empty = || StoreError::Empty {
                    home: store.home.root().to_owned(),
                };
                let before = schema::steps_of_server(&store)?.ok_or_else(empty)?;
                schema::upgrade_server(&store)?;
                let now = schema::steps_of_server(&store)?.ok_or_else(empty)?;
                Ok(Upgraded {
                    before,
                    now,
                    copy: None,
                })
            }
        }
    }

    fn upgrade_home(home: &Home) -> Result<Upgraded, StoreError> {
        let reader = Self::connect_home(home)?;
        let before = schema::version(&reader, home)?;
        let mut upgraded = Upgraded {
            before,
            now: before,
            copy: None,
        };
        if schema::is_current(before) {
            return Ok(upgraded);
        }
        let copy = backup::copy_before_upgrade(&reader, home, before)?;
        drop(reader);
        let connection = connect(home, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        prepare(&connection).map_err(|error| home.sql(error))?;
        schema::upgrade(&connection, home)?;
        upgraded.now = schema::version(&connection, home)?;
        upgraded.copy = Some(copy);
        Ok(upgraded)
    }

    /// Makes the server store of an older Marvin that knew only this many steps.
    #[cfg(test)]
    pub(crate) fn make_older(location: &Location, steps: usize) -> Result<(), StoreError> {
        let Location::Server(address) = location else {
            return Ok(());
        };
        schema::take_some_on_server(&Self::log_in(address, Access::Write)?, steps)
    }

    /// Makes a schema in a server's database: a separate store.
    ///
    /// # Errors
    /// If the server refuses.
    #[cfg(any(test, feature = "cluster"))]
    pub(crate) fn make_schema(location: &Location, schema: &str) -> Result<(), StoreError> {
        Self::on_server(location, &format!("CREATE SCHEMA {schema}"))
    }

    /// Checks that a server answers.
    ///
    /// # Errors
    /// If it does not.
    #[cfg(any(test, feature = "cluster"))]
    pub(crate) fn greet(location: &Location) -> Result<(), StoreError> {
        Self::on_server(location, "SELECT 1")
    }

    #[cfg(any(test, feature = "cluster"))]
    pub(crate) fn on_server(location: &Location, sql: &str) -> Result<(), StoreError> {
        let Location::Server(address) = location else {
            return Ok(());
        };
        let home = Home::on_server(&address.to_string());
        let done = Server::connect(address, Access::Write).and_then(|server| server.batch(sql));
        done.map_err(|error| home.to_error(error))
    }

    /// Runs a closure with the database and converts its error.
    pub(crate) fn with<'a, T>(
        &'a self,
        work: impl FnOnce(&'a Database) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        work(&self.database).map_err(|error| self.home.to_error(error))
    }

    /// Removes leftovers of processes that were killed while they saved a run.
    ///
    /// A saving process excludes other writers all the time, so leftovers that a write transaction
    /// finds have no living owner. A server rolls back unfinished work by itself.
    pub(crate) fn sweep(&self) -> Result<(), StoreError> {
        if matches!(self.database, Database::Server(_)) || self.incoming_runs()?.is_empty() {
            return Ok(());
        }
        let transaction = self.with(Database::write)?;
        for run in self.incoming_runs()? {
            if self.with(|database| run_exists(database, &run))? {
                self.home.remove(&self.home.incoming_of(&run))?;
            } else {
                self.discard(&run)?;
            }
        }
        self.with(|_| transaction.commit())
    }

    /// Removes the files of a partly saved run. Its mark goes last.
    pub(crate) fn discard(&self, run: &RunId) -> Result<(), StoreError> {
        self.home.remove(&self.home.artifacts_of(run))?;
        self.home.remove(&self.home.incoming_of(run))
    }

    fn incoming_runs(&self) -> Result<Vec<RunId>, StoreError> {
        let folder = self.home.incoming();
        let entries = fs::read_dir(&folder).map_err(|error| self.home.io(&folder, error))?;
        // Entries that are not named like a run are not Marvin's, and stay.
        Ok(entries
            .filter_map(|entry| RunId::from_hex(entry.ok()?.file_name().to_str()?).ok())
            .collect())
    }
}

/// Begins a transaction of SQLite that excludes other writers from the start. It is rolled back
/// unless committed.
pub(crate) fn write(connection: &Connection) -> rusqlite::Result<Transaction<'_>> {
    Transaction::new_unchecked(connection, TransactionBehavior::Immediate)
}

/// Returns whether a run is saved.
pub(crate) fn run_exists(database: &Database, run: &RunId) -> Result<bool, Failure> {
    Ok(database
        .row(
            "SELECT 1 FROM runs WHERE id = ?1",
            &[&run.hex()],
            |_| Ok(()),
        )?
        .is_some())
}

fn connect(home: &Home, flags: OpenFlags) -> Result<Connection, StoreError> {
    home.check_database()?;
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let immutable = home
        .immutable_database()
        .filter(|_| flags.contains(OpenFlags::SQLITE_OPEN_READ_ONLY));
    let connection = match immutable {
        Some(address) => Connection::open_with_flags(address, flags | OpenFlags::SQLITE_OPEN_URI),
        None => Connection::open_with_flags(home.database(), flags),
    };
    let connection = connection.map_err(|error| home.sql(error))?;
    connection
        .busy_timeout(BUSY_LIMIT)
        .map_err(|error| home.sql(error))?;
    connection.set_prepared_statement_cache_capacity(PREPARED);
    Ok(connection)
}

/// Configures a writing connection. The journal mode does not block readers.
fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    journal(connection)?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "foreign_keys", true)
}

/// How often to retry setting the journal mode, and the pause in between, while others open the
/// same new store.
const JOURNAL_TRIES: u32 = 500;
const JOURNAL_WAIT: Duration = Duration::from_millis(20);

/// Sets the journal mode. SQLite waits for other locks by itself, but not always for this one.
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
    use std::os::fd::AsRawFd;
    use std::path::Path;

    use rusqlite::Connection;

    use super::Store;
    use crate::StoreError;
    use crate::database::Database;
    use crate::testing::{build, run, saved, sqlite, store};
    use model::Fault;

    fn describe(error: &StoreError, home: &Path) -> String {
        format!("{:?}: {error}", error.fault()).replace(&home.display().to_string(), "HOME")
    }

    #[test]
    fn reading_does_not_wait_for_writing() {
        let (home, writer) = store();
        saved(&writer, &run("aa", "01", 1));
        let transaction = writer.with(Database::write).unwrap();
        let reader = Store::open_read_only(home.path()).unwrap();
        assert_eq!(reader.runs(10).unwrap().len(), 1);
        assert!(reader.save_build(&build("bb")).is_err());
        drop(transaction);
    }

    #[test]
    fn missing_data_directory_reads_empty_and_stays_absent() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        let error = Store::open_read_only(&home).unwrap_err();
        insta::assert_snapshot!(describe(&error, &home), @"User: no results in HOME: measure a kernel first, or give --home the folder that has them");
        assert!(!home.exists());
    }

    #[test]
    fn data_directory_at_or_below_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let below = file.join("home");
        insta::assert_snapshot!(describe(&Store::open(&below).unwrap_err(), &below), @"User: cannot use HOME: a file is in the way; name a writable directory with --home");
        for home in [&below, &file] {
            for error in [
                Store::open(home).unwrap_err(),
                Store::open_read_only(home).unwrap_err(),
            ] {
                assert!(matches!(error, StoreError::Unusable { .. }), "{error}");
            }
        }
    }

    #[test]
    fn file_that_is_no_database_is_left_unchanged() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("marvin.db");
        let text = "these are not the bytes you are looking for ".repeat(100);
        fs::write(&file, &text).unwrap();
        let error = Store::open(home.path()).unwrap_err();
        insta::assert_snapshot!(describe(&error, home.path()), @"Lab: HOME/marvin.db is damaged: file is not a database; restore the data directory from a backup, or name a new one with --home");
        let error = Store::open_read_only(home.path()).unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }));
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }

    #[test]
    fn database_that_is_no_file_is_refused() {
        let error_of = |name: &str, make: &dyn Fn(&Path)| {
            let home = tempfile::tempdir().unwrap();
            drop(Store::open(home.path()).unwrap());
            let place = home.path().join(name);
            if place.exists() {
                fs::remove_file(&place).unwrap();
            }
            make(&place);
            let errors = [
                Store::open(home.path()).unwrap_err(),
                Store::open_read_only(home.path()).unwrap_err(),
            ];
            let [write, read] = errors.map(|error| describe(&error, home.path()));
            assert_eq!(write, read);
            write
        };
        let link = |target: &str, place: &Path| std::os::unix::fs::symlink(target, place).unwrap();
        // A child process such as mkfifo would hold the locks of other tests for a moment.
        let (_reader, writer) = std::io::pipe().unwrap();
        let pipe = |place: &Path| link(&format!("/proc/self/fd/{}", writer.as_raw_fd()), place);
        let device = |place: &Path| link("/dev/zero", place);
        insta::assert_snapshot!(error_of("marvin.db", &pipe), @"User: cannot use HOME/marvin.db: it is a pipe, not a file; name a writable directory with --home");
        insta::assert_snapshot!(error_of("marvin.db-wal", &pipe), @"User: cannot use HOME/marvin.db-wal: it is a pipe, not a file; name a writable directory with --home");
        insta::assert_snapshot!(error_of("marvin.db", &device), @"User: cannot use HOME/marvin.db: it is a device, not a file; name a writable directory with --home");
        insta::assert_snapshot!(error_of("marvin.db", &|place| fs::create_dir(place).unwrap()), @"User: cannot use HOME/marvin.db: it is a directory, not a file; name a writable directory with --home");
    }

    #[test]
    fn damaged_database_is_an_error() {
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
        let error = Store::open_read_only(home.path())
            .and_then(|store| store.runs(10))
            .unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
    }

    #[test]
    fn newer_schema_is_refused_and_left_unchanged() {
        let home = tempfile::tempdir().unwrap();
        drop(Store::open(home.path()).unwrap());
        let file = home.path().join("marvin.db");
        Connection::open(&file)
            .unwrap()
            .pragma_update(None, "user_version", 99)
            .unwrap();
        for error in [
            Store::open(home.path()).unwrap_err(),
            Store::open_read_only(home.path()).unwrap_err(),
        ] {
            insta::allow_duplicates! {
                insta::assert_snapshot!(describe(&error, home.path()), @"User: HOME/marvin.db was written by a newer Marvin (schema 99, this one knows 10): use the newer one, or name another data directory with --home");
            }
        }
    }

    #[test]
    fn unfinished_data_directory_reads_empty_and_unchanged() {
        let home = tempfile::tempdir().unwrap();
        // A leftover of a process that was killed before its first step.
        let file = home.path().join("marvin.db");
        fs::write(&file, "").unwrap();
        let error = Store::open_read_only(home.path()).unwrap_err();
        assert!(matches!(error, StoreError::Empty { .. }), "{error}");
        assert_eq!(fs::read(&file).unwrap(), b"");
        assert!(
            Store::open(home.path())
                .unwrap()
                .runs(10)
                .unwrap()
                .is_empty()
        );
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
    fn full_disk_is_reported_full() {
        let (home, store) = store();
        sqlite(&store)
            .pragma_update(None, "max_page_count", 1)
            .unwrap();
        let mut large = build("aa");
        large.origin = model::Origin::Described("x".repeat(1 << 20));
        let error = store.save_build(&large).unwrap_err();
        assert_eq!(error.fault(), Fault::Lab);
        insta::assert_snapshot!(describe(&error, home.path()), @"Lab: no space left in HOME: make room and repeat the command; builds and snapshots there are made again if deleted, and stored results are intact");
    }
}
