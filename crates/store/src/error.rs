//! What can go wrong with a home, said so that the reader knows what to do; and whose fault it is.
//!
//! Which of these an operating-system or SQLite error becomes is decided in `home.rs`.

use std::io;
use std::path::{Path, PathBuf};

use model::{Guilt, IdError, RunId};

/// An error of the store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A reading command met a home in which nothing was ever saved.
    #[error("no results in {home}: measure a kernel first, or give {option}", home = .home.display(), option = other(.home))]
    Empty {
        /// The home.
        home: PathBuf,
    },
    /// The home cannot be a home: a file, below a file, forbidden, read-only.
    #[error("cannot use {path}: {detail}; name a writable directory with --home", path = .path.display())]
    Unusable {
        /// The home or what could not be used in it.
        path: PathBuf,
        /// What the system said.
        detail: String,
    },
    /// Another process measures in this home.
    #[error("another marvin{holder} is measuring in {home}: wait for it, or name another directory with --home", holder = holder(*.pid), home = .home.display())]
    Locked {
        /// The home.
        home: PathBuf,
        /// The other process, where it had time to say.
        pid: Option<u32>,
    },
    /// Another process takes the jobs of this home.
    #[error("another worker{holder} already runs the jobs of {home}, and one per host is allowed: `marvin queue list` shows its job", holder = holder(*.pid), home = .home.display())]
    Working {
        /// The home.
        home: PathBuf,
        /// The other process, where it had time to say.
        pid: Option<u32>,
    },
    /// No space is left.
    #[error("no space left in {home}: make room and repeat the command; stored results are intact", home = .home.display())]
    Full {
        /// The home.
        home: PathBuf,
    },
    /// Something in the home is not what was written there.
    #[error("{file} is damaged: {detail}; restore the data directory from a backup, or name a new one with --home", file = .file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
    /// The database has a schema from the future.
    #[error("{file} was written by a newer Marvin (schema {found}, this one knows {known}): use the newer one, or name another data directory with --home", file = .file.display())]
    NewerSchema {
        /// The database.
        file: PathBuf,
        /// Its schema.
        found: u32,
        /// The newest schema this program knows.
        known: u32,
    },
    /// The database holds a word from the future.
    #[error("{file} was written by a newer Marvin (it has the {noun} `{code}`, which this one does not know): use the newer one", file = .file.display())]
    UnknownCode {
        /// The database.
        file: PathBuf,
        /// What kind of word.
        noun: &'static str,
        /// The word.
        code: String,
    },
    /// Another process kept the database for itself longer than one saving takes.
    #[error("another process holds {file} open: find it with `fuser {file}`, then repeat the command", file = .file.display())]
    Busy {
        /// The database.
        file: PathBuf,
    },
    /// No address of a database.
    #[error("cannot read the address of the store: {reason}; expected postgres://USER@HOST/DATABASE")]
    BadAddress {
        /// What is wrong with it; never the address, for it may hold a password.
        reason: String,
    },
    /// A server does not let us in, or not do what we must.
    #[error(
        "{store} refuses: {detail}; check user, password, database and rights (test them with psql and the same address)"
    )]
    Refused {
        /// The store.
        store: String,
        /// What the server said.
        detail: String,
    },
    /// A server cannot be reached, or is no longer there.
    #[error("cannot reach {store}: {detail}; stored results are intact, repeat the command when the server is back")]
    Gone {
        /// The store.
        store: String,
        /// What was met.
        detail: String,
    },
    /// Another process writes into the same database and does not end.
    #[error("another process keeps {store} locked: find it in pg_stat_activity, then repeat the command")]
    Occupied {
        /// The store.
        store: String,
    },
    /// What is one machine's only was asked of a server.
    #[error("this command works in the data directory only, not in {store}: omit --store and MARVIN_STORE")]
    HomeOnly {
        /// The store.
        store: String,
    },
    /// A server failed in another way.
    #[error("{store}: {detail}")]
    Server {
        /// The store.
        store: String,
        /// What it said.
        detail: String,
        /// The same, with where it was said.
        source: Box<postgres::Error>,
    },
    /// Not an id at all.
    #[error(transparent)]
    BadId(#[from] IdError),
    /// Nothing of that name.
    #[error("no {noun} `{text}`: `marvin runs` lists stored runs")]
    Unknown {
        /// What was looked for.
        noun: &'static str,
        /// The name.
        text: String,
    },
    /// More than one id begins so.
    #[error("`{text}` matches several ids, add digits: {candidates}")]
    Ambiguous {
        /// What was given.
        text: String,
        /// Some of the ids that begin so.
        candidates: String,
    },
    /// A run of this id is there already.
    #[error("{0} is stored already, and runs never change")]
    RunExists(RunId),
    /// Something refers to a build or a machine that was not saved before it.
    #[error("{what} refers to a build or machine that was not saved before it (a bug in the caller)")]
    Dangling {
        /// What was to be saved.
        what: String,
    },
    /// An artefact that cannot be kept.
    #[error("cannot store artifact `{name}`: {reason}")]
    BadArtefact {
        /// Its name.
        name: String,
        /// Why.
        reason: String,
    },
    /// A run has no such artefact.
    #[error("{run} has no artifact `{name}`; it has: {present}")]
    NoArtefact {
        /// The run.
        run: RunId,
        /// What was asked for.
        name: String,
        /// What there is.
        present: String,
    },
    /// The system failed in another way.
    #[error("{path}: {source}", path = .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// SQLite failed in another way.
    #[error("{file}: {source}", file = .file.display())]
    Database {
        /// The database.
        file: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
}

impl StoreError {
    /// Returns whose fault it is.
    #[must_use]
    pub fn guilt(&self) -> Guilt {
        match self {
            Self::Empty { .. }
            | Self::Unusable { .. }
            | Self::NewerSchema { .. }
            | Self::UnknownCode { .. }
            | Self::BadId(_)
            | Self::BadAddress { .. }
            | Self::Refused { .. }
            | Self::HomeOnly { .. }
            | Self::Unknown { .. }
            | Self::Ambiguous { .. }
            | Self::NoArtefact { .. } => Guilt::User,
            // Waiting helps against `Locked`, so it counts as the lab's.
            Self::Locked { .. }
            | Self::Working { .. }
            | Self::Full { .. }
            | Self::Damaged { .. }
            | Self::Busy { .. }
            | Self::Gone { .. }
            | Self::Occupied { .. }
            | Self::Server { .. }
            | Self::RunExists(_)
            | Self::Dangling { .. }
            | Self::BadArtefact { .. }
            | Self::Io { .. }
            | Self::Database { .. } => Guilt::Infra,
        }
    }
}

/// Says which option names another store.
fn other(home: &Path) -> &'static str {
    if home.starts_with("postgres:") { "--store the database that has them" } else { "--home the folder that has them" }
}

fn holder(pid: Option<u32>) -> String {
    pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default()
}
