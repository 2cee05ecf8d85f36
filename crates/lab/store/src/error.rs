//! Errors of a store, worded so that the reader knows what to do, and who has to act on them.
//!
//! `home.rs` converts errors of the operating system and of SQLite to these.

use std::io;
use std::path::{Path, PathBuf};

use model::{Fault, IdError, RunId};

/// An error of the store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A reading command found a data directory without stored results.
    #[error("no results in {home}: measure a kernel first, or give {option}", home = .home.display(), option = other(.home))]
    Empty { home: PathBuf },
    /// The path cannot be a data directory: a file, below a file, forbidden, read-only.
    #[error("cannot use {path}: {detail}; name a writable directory with --home", path = .path.display())]
    Unusable {
        /// The data directory or the unusable path in it.
        path: PathBuf,
        detail: String,
    },
    /// Another process uses the store.
    #[error(transparent)]
    InUse(#[from] InUse),
    #[error("no space left in {home}: make room and repeat the command; builds and snapshots there are made again if deleted, and stored results are intact", home = .home.display())]
    Full { home: PathBuf },
    /// A stored file or row is damaged.
    #[error("{file} is damaged: {detail}; restore the data directory from a backup, or name a new one with --home", file = .file.display())]
    Damaged { file: PathBuf, detail: String },
    /// This program and the store are of different versions.
    #[error(transparent)]
    Version(#[from] VersionError),
    /// The address or the login of a server is wrong.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// A backup cannot be made or restored.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// A server cannot be reached, or is no longer there.
    #[error(
        "cannot reach {store}: {detail}; stored results are intact, repeat the command when the server is back"
    )]
    Gone { store: String, detail: String },
    /// Another error of a server.
    #[error("{store}: {detail}")]
    Server {
        store: String,
        detail: String,
        /// The same, with its position.
        source: Box<tokio_postgres::Error>,
    },
    /// No entry is meant, or several are.
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// A run with this id is stored already.
    #[error("{0} is stored already, and runs never change")]
    RunExists(RunId),
    /// The build or machine of a run was not saved before it.
    #[error(
        "{what} refers to a build or machine that was not saved before it (a bug in the caller)"
    )]
    Dangling {
        /// The entry to save.
        what: String,
    },
    #[error("cannot store artifact `{name}`: {reason}")]
    BadArtifact { name: String, reason: String },
    /// Another error of the system.
    #[error("{path}: {source}", path = .path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        source: io::Error,
    },
    /// Another error of SQLite.
    #[error("{file}: {source}", file = .file.display())]
    Database {
        file: PathBuf,
        source: rusqlite::Error,
    },
}

/// The use of a store by another process, which this one has to wait for.
#[derive(Debug, thiserror::Error)]
pub enum InUse {
    /// Another process measures in this data directory.
    #[error("another marvin{holder} is measuring in {home}: wait for it with --wait, or name another directory with --home", holder = holder(*.pid), home = .home.display())]
    Locked {
        home: PathBuf,
        /// The other process, if it has written its id.
        pid: Option<u32>,
    },
    /// Another worker takes the jobs of this data directory.
    #[error("another worker{holder} already runs the jobs of {home}, and one per host is allowed: `marvin queue list` shows its job", holder = holder(*.pid), home = .home.display())]
    Working {
        home: PathBuf,
        /// The other process, if it has written its id.
        pid: Option<u32>,
    },
    /// Another process kept the database locked for too long.
    #[error("another process holds {file} open: find it with `fuser {file}`, then repeat the command", file = .file.display())]
    Busy { file: PathBuf },
    /// Another process holds a write transaction on the same database for too long.
    #[error(
        "another process keeps {store} locked: find it in pg_stat_activity, then repeat the command"
    )]
    Occupied { store: String },
}

/// A backup that cannot be made or restored.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error(
        "cannot back up {store}: PostgreSQL has its own tools for this\n\
         hint: pg_dump -Fc to a file, pg_restore into a new database, then marvin store check"
    )]
    OnServer { store: String },
    #[error("cannot write a backup to {place}: it exists\nhint: name a new directory, or remove it", place = .place.display())]
    InTheWay { place: PathBuf },
    /// Runs were deleted after the database was copied.
    #[error("cannot back up: marvin gc deleted runs meanwhile\nhint: repeat the command")]
    Changed,
    #[error("cannot back up {path}: its name has a line break, a backslash or no valid UTF-8\nhint: rename it", path = .path.display())]
    BadName { path: PathBuf },
    #[error("no backup in {place}: it has no file SHA256SUMS of marvin backup", place = .place.display())]
    None { place: PathBuf },
    #[error("the backup in {place} is damaged: {file}: {detail}\nhint: nothing was restored; take another backup", place = .place.display(), file = .file.display())]
    Damaged {
        place: PathBuf,
        file: PathBuf,
        detail: String,
    },
    #[error("cannot restore into {home}: it is not empty\nhint: name a new directory with --home", home = .home.display())]
    NotEmpty { home: PathBuf },
}

impl BackupError {
    fn fault(&self) -> Fault {
        match self {
            Self::Changed | Self::Damaged { .. } => Fault::Lab,
            _ => Fault::User,
        }
    }
}

/// A store of another version of Marvin.
#[derive(Debug, thiserror::Error)]
pub enum VersionError {
    /// The database has a newer schema.
    #[error("{file} was written by a newer Marvin (schema {found}, this one knows {known}): use the newer one, or name another data directory with --home", file = .file.display())]
    NewerSchema {
        file: PathBuf,
        found: u32,
        /// The newest schema this program knows.
        known: u32,
    },
    /// The store has an older schema.
    #[error(
        "cannot use {store}: an older Marvin made it (schema {found}, this one needs {known})\n\
         hint: marvin store upgrade; older programs cannot use it any more then, so stop their workers and dashboards first"
    )]
    OlderSchema {
        store: String,
        found: usize,
        /// The schema that this program needs.
        known: usize,
    },
    /// The database contains an unknown word, written by a newer Marvin.
    #[error("{file} was written by a newer Marvin (it has the {noun} `{code}`, which this one does not know): use the newer one", file = .file.display())]
    UnknownCode {
        file: PathBuf,
        /// The kind of word.
        noun: &'static str,
        code: String,
    },
}

/// A database server that cannot be used with this address and login.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// An invalid database address.
    #[error(
        "cannot read the address of the store: {reason}; expected postgres://USER@HOST/DATABASE"
    )]
    BadAddress {
        /// The fault; never the address, which may contain a password.
        reason: String,
    },
    /// A server refuses the connection or a needed operation.
    #[error(
        "{store} refuses: {detail}; check user, password, database and rights (test them with psql and the same address)"
    )]
    Refused { store: String, detail: String },
    /// No issuer that this host trusts vouches for the server's certificate.
    #[error(
        "{store} cannot prove who it is: {detail}; set SSL_CERT_FILE to a file with the issuer of its certificate, or add \
         ?sslmode=disable to the address if you trust the network"
    )]
    Untrusted {
        store: String,
        /// The fault of the certificate.
        detail: String,
    },
    /// Others on the way to a server could read the password.
    #[error(
        "cannot log in to {store}: others could read the password: {detail}\n\
         hint: turn on TLS and scram-sha-256 there, or add ?sslmode=disable to the address if you trust the network"
    )]
    Unprotected {
        store: String,
        /// What the server says.
        detail: String,
    },
}

/// A name in the store that means no entry, or several.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    /// A text that is no id.
    #[error(transparent)]
    BadId(#[from] IdError),
    /// There is no entry with this name.
    #[error("no {noun} `{text}`: `marvin runs` lists stored runs")]
    Unknown {
        /// The kind of entry.
        noun: &'static str,
        text: String,
    },
    /// Several ids begin like this.
    #[error("`{text}` matches several ids, add digits: {candidates}")]
    Ambiguous {
        text: String,
        /// Some of the matching ids.
        candidates: String,
    },
    /// The run has no such artifact.
    #[error("{run} has no artifact `{name}`; it has: {present}")]
    NoArtifact {
        run: RunId,
        name: String,
        present: String,
    },
}

impl From<IdError> for StoreError {
    fn from(error: IdError) -> Self {
        LookupError::from(error).into()
    }
}

impl StoreError {
    /// Returns who has to act on it.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::Backup(error) => error.fault(),
            Self::Empty { .. }
            | Self::Unusable { .. }
            | Self::Version(_)
            | Self::Access(_)
            | Self::Lookup(_) => Fault::User,
            // Retrying helps against `InUse`, so the lab has to act.
            Self::InUse(_)
            | Self::Full { .. }
            | Self::Damaged { .. }
            | Self::Gone { .. }
            | Self::Server { .. }
            | Self::RunExists(_)
            | Self::Dangling { .. }
            | Self::BadArtifact { .. }
            | Self::Io { .. }
            | Self::Database { .. } => Fault::Lab,
        }
    }
}

/// Names the option that selects another store.
fn other(home: &Path) -> &'static str {
    if home.starts_with("postgres:") {
        "--store the database that has them"
    } else {
        "--home the folder that has them"
    }
}

fn holder(pid: Option<u32>) -> String {
    pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default()
}
