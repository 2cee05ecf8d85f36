//! The data directory: its paths, and the conversion of errors.

use std::error::Error;
use std::fmt::Write as _;
use std::fs::{self, FileType};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use model::RunId;
use rusqlite::ErrorCode;
use tokio_postgres::error::SqlState;

use crate::columns::UnknownCode;
use crate::database::{Failure, is_lost, is_unprotected, is_untrusted};
use crate::lock::explain_busy;
use crate::{AccessError, InUse, StoreError, VersionError};

/// Returns whether this user may write to a directory: not if its file system is read-only.
#[must_use]
pub fn is_writable(folder: &Path) -> bool {
    rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok()
}

/// Paths in a data directory.
#[derive(Debug, Clone)]
pub(crate) struct Home {
    root: PathBuf,
    database: PathBuf,
}

impl Home {
    pub(crate) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            database: root.join("marvin.db"),
        }
    }

    /// Returns the stand-in for a server store: no directory, only a name for errors.
    pub(crate) fn on_server(shown: &str) -> Self {
        Self {
            root: shown.into(),
            database: shown.into(),
        }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.database.clone()
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.root.join("lock")
    }

    pub(crate) fn worker(&self) -> PathBuf {
        self.root.join("worker")
    }

    /// The directory of artifacts of saved runs.
    pub(crate) fn artifacts(&self) -> PathBuf {
        self.root.join("artefacts")
    }

    pub(crate) fn artifacts_of(&self, run: &RunId) -> PathBuf {
        self.artifacts().join(run.hex())
    }

    /// The directory of runs that are being saved; leftovers there are from killed processes.
    pub(crate) fn incoming(&self) -> PathBuf {
        self.root.join("incoming")
    }

    pub(crate) fn incoming_of(&self, run: &RunId) -> PathBuf {
        self.incoming().join(run.hex())
    }

    /// Returns the address for SQLite of a database that no process writes to while it is read, nor
    /// could be locked here; `None` if the directory can be written, or has the file of a writer.
    ///
    /// Of a database with a write-ahead log SQLite otherwise needs a file for memory that its
    /// processes share, which it cannot make here (sqlite.org/wal.html, section 8).
    pub(crate) fn immutable_database(&self) -> Option<String> {
        let mut log = self.database.clone().into_os_string();
        log.push("-wal");
        if is_writable(&self.root) || Path::new(&log).exists() {
            return None;
        }
        let mut address = "file:".to_owned();
        for byte in self.database.as_os_str().as_bytes() {
            match byte {
                b'/' | b'.' | b'-' | b'_' => address.push(char::from(*byte)),
                byte if byte.is_ascii_alphanumeric() => address.push(char::from(*byte)),
                byte => {
                    write!(address, "%{byte:02x}").ok();
                }
            }
        }
        Some(address + "?immutable=1")
    }

    /// Checks that the database and the files that SQLite keeps beside it are files: opening a pipe
    /// waits for a writer, and a device has no end. Missing ones are made later.
    pub(crate) fn check_database(&self) -> Result<(), StoreError> {
        for suffix in ["", "-wal", "-shm", "-journal"] {
            let mut path = self.database.clone().into_os_string();
            path.push(suffix);
            self.check_file(Path::new(&path))?;
        }
        Ok(())
    }

    /// Checks that a path is a file, or does not exist yet.
    pub(crate) fn check_file(&self, path: &Path) -> Result<(), StoreError> {
        match fs::metadata(path) {
            Ok(found) if !found.is_file() => {
                let kind = kind(found.file_type());
                Err(StoreError::Unusable {
                    path: path.to_owned(),
                    detail: format!("it is {kind}, not a file"),
                })
            }
            Err(error) if error.kind() != ErrorKind::NotFound => Err(self.io(path, error)),
            _ => Ok(()),
        }
    }

    pub(crate) fn create(&self) -> Result<(), StoreError> {
        for folder in [self.root.clone(), self.artifacts(), self.incoming()] {
            fs::create_dir_all(&folder).map_err(|error| self.io(&folder, error))?;
        }
        Ok(())
    }

    /// Removes a directory, which may be missing.
    pub(crate) fn remove(&self, folder: &Path) -> Result<(), StoreError> {
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(self.io(folder, error)),
            _ => Ok(()),
        }
    }

    /// Converts an error of the system.
    pub(crate) fn io(&self, path: &Path, error: io::Error) -> StoreError {
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => self.full(),
            ErrorKind::NotADirectory
            | ErrorKind::AlreadyExists
            | ErrorKind::IsADirectory
            | ErrorKind::PermissionDenied
            | ErrorKind::ReadOnlyFilesystem => StoreError::Unusable {
                path: path.to_owned(),
                detail: plain(&error),
            },
            _ => StoreError::Io {
                path: path.to_owned(),
                source: error,
            },
        }
    }

    /// Converts a database error that occurred while saving `what`.
    pub(crate) fn to_error_of(&self, error: Failure, what: impl FnOnce() -> String) -> StoreError {
        let is_dangling = match &error {
            Failure::Sqlite(error) => error
                .sqlite_error()
                .is_some_and(|f| f.extended_code == rusqlite::ffi::SQLITE_CONSTRAINT_FOREIGNKEY),
            Failure::Server(error) => error.code() == Some(&SqlState::FOREIGN_KEY_VIOLATION),
            Failure::Silent(_) => false,
        };
        if is_dangling {
            StoreError::Dangling { what: what() }
        } else {
            self.to_error(error)
        }
    }

    /// Converts a database error.
    pub(crate) fn to_error(&self, error: Failure) -> StoreError {
        match error {
            Failure::Sqlite(error) => self.sql(error),
            Failure::Server(error) => self.server(error),
            Failure::Silent(detail) => StoreError::Gone {
                store: self.root.display().to_string(),
                detail,
            },
        }
    }

    /// Converts an error of PostgreSQL. The codes and their classes are in appendix A of its
    /// manual.
    fn server(&self, error: tokio_postgres::Error) -> StoreError {
        let store = self.root.display().to_string();
        let detail = reason(&error);
        if is_lost(&error) {
            return StoreError::Gone { store, detail };
        }
        if is_unprotected(&error) {
            return StoreError::Access(AccessError::Unprotected { store, detail });
        }
        if is_untrusted(&error) {
            return StoreError::Access(AccessError::Untrusted { store, detail });
        }
        let Some(code) = error.code() else {
            // Errors from the client library that are not about the connection are about the login.
            return StoreError::Access(AccessError::Refused { store, detail });
        };
        match code.code() {
            "55P03" => StoreError::InUse(InUse::Occupied { store }),
            "53100" => StoreError::Full {
                home: self.root.clone(),
            },
            "53300" => StoreError::Gone { store, detail },
            "XX001" | "XX002" => self.damaged(&detail),
            // Read-only permission; tables or functions with our names but another owner.
            "42501" | "25006" | "42P07" | "42723" => {
                StoreError::Access(AccessError::Refused { store, detail })
            }
            // User and database.
            code if code.starts_with("28") || code.starts_with("3D") => {
                StoreError::Access(AccessError::Refused { store, detail })
            }
            _ => StoreError::Server {
                store,
                detail,
                source: Box::new(error),
            },
        }
    }

    /// Converts an error of SQLite.
    pub(crate) fn sql(&self, error: rusqlite::Error) -> StoreError {
        use rusqlite::Error as E;
        match &error {
            E::FromSqlConversionFailure(_, _, cause) => self.conversion(cause.as_ref()),
            E::InvalidColumnType(..) | E::IntegralValueOutOfRange(..) | E::Utf8Error(..) => {
                self.damaged(&error.to_string())
            }
            E::SqliteFailure(failure, _) => match failure.code {
                ErrorCode::DiskFull => self.full(),
                // The memory shared by the database's processes could not grow
                // (sqlite.org/rescode.html).
                _ if failure.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE => self.full(),
                ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt => {
                    self.damaged(&error.to_string())
                }
                ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
                    explain_busy(self.database())
                }
                ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::ReadOnly => {
                    StoreError::Unusable {
                        path: self.database(),
                        detail: error.to_string(),
                    }
                }
                _ => self.other(error),
            },
            _ => self.other(error),
        }
    }

    pub(crate) fn damaged(&self, detail: &str) -> StoreError {
        StoreError::Damaged {
            file: self.database(),
            detail: detail.to_owned(),
        }
    }

    fn conversion(&self, cause: &(dyn Error + Send + Sync + 'static)) -> StoreError {
        match cause.downcast_ref::<UnknownCode>() {
            Some(unknown) => StoreError::Version(VersionError::UnknownCode {
                file: self.database(),
                noun: unknown.noun,
                code: unknown.code.clone(),
            }),
            None => self.damaged(&cause.to_string()),
        }
    }

    fn full(&self) -> StoreError {
        StoreError::Full {
            home: self.root.clone(),
        }
    }

    fn other(&self, source: rusqlite::Error) -> StoreError {
        StoreError::Database {
            file: self.database(),
            source,
        }
    }
}

/// Returns the server's message, or the connection's error.
fn reason(error: &tokio_postgres::Error) -> String {
    if let Some(server_error) = error.as_db_error() {
        return server_error.message().to_owned();
    }
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let further = error.to_string();
        if !text.contains(&further) {
            text = format!("{text}: {further}");
        }
        cause = error.source();
    }
    text
}

/// Names what a path is instead of a file.
fn kind(found: FileType) -> &'static str {
    if found.is_dir() {
        "a directory"
    } else if found.is_fifo() {
        "a pipe"
    } else if found.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

/// Returns the system's message without its error number.
fn plain(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory => "a file is in the way".to_owned(),
        ErrorKind::PermissionDenied => "permission denied".to_owned(),
        ErrorKind::ReadOnlyFilesystem => "the file system is read-only".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Error, ErrorKind};
    use std::path::Path;

    use super::Home;
    use model::Fault;

    #[test]
    fn errors_of_the_system_say_what_to_do() {
        let home = Home::new(Path::new("/h"));
        let to_error = |kind: ErrorKind| {
            let error = home.io(Path::new("/h/artefacts"), Error::from(kind));
            format!("{:?}: {error}", error.fault())
        };
        insta::assert_snapshot!(to_error(ErrorKind::StorageFull), @"Lab: no space left in /h: make room and repeat the command; builds and snapshots there are made again if deleted, and stored results are intact");
        insta::assert_snapshot!(to_error(ErrorKind::PermissionDenied), @"User: cannot use /h/artefacts: permission denied; name a writable directory with --home");
        insta::assert_snapshot!(to_error(ErrorKind::ReadOnlyFilesystem), @"User: cannot use /h/artefacts: the file system is read-only; name a writable directory with --home");
        insta::assert_snapshot!(to_error(ErrorKind::Interrupted), @"Lab: /h/artefacts: operation interrupted");
    }

    #[test]
    fn sqlite_full_error_is_a_full_disk() {
        let home = Home::new(Path::new("/h"));
        for code in [
            rusqlite::ffi::SQLITE_FULL,
            rusqlite::ffi::SQLITE_IOERR_SHMSIZE,
        ] {
            let failure = rusqlite::ffi::Error::new(code);
            let error = home.sql(rusqlite::Error::SqliteFailure(failure, None));
            assert_eq!(error.fault(), Fault::Lab);
            assert!(
                error.to_string().starts_with("no space left in /h"),
                "{error}"
            );
        }
    }
}
