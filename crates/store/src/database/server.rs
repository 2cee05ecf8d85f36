//! A connection to PostgreSQL that is reopened if it was lost while no transaction was open.

use std::cell::RefCell;
use std::collections::HashMap;
use std::error::Error;
use std::{fmt, io};

use postgres::error::SqlState;
use postgres::types::ToSql;
use postgres::{Client, Config, NoTls, Statement};
use rusqlite::types::ToSqlOutput;

use super::Failure;
use super::cell::given;

/// Server-side timeouts: for waiting on another writer, and for any statement.
const LIMITS: &str = "SET lock_timeout = '30s'; SET statement_timeout = '10min'; SET client_min_messages = 'warning'";

/// Statement cache size: more than there are different statements.
const PREPARED: usize = 256;

/// The purpose of a connection or transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// A server, connected.
pub(crate) struct Server {
    config: Config,
    access: Access,
    session: RefCell<Session>,
}

struct Session {
    client: Client,
    prepared: HashMap<String, Statement>,
    is_in_transaction: bool,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The configuration contains the password.
        f.debug_struct("Server").field("access", &self.access).finish_non_exhaustive()
    }
}

impl Server {
    pub(crate) fn connect(config: &Config, access: Access) -> Result<Self, Failure> {
        let session = RefCell::new(Session::begin(config, access)?);
        Ok(Self { config: config.clone(), access, session })
    }

    /// Executes several statements without results.
    pub(crate) fn batch(&self, sql: &str) -> Result<(), Failure> {
        Ok(self.session.borrow_mut().client.batch_execute(sql)?)
    }

    /// Executes a statement. It is not retried: changes happen in transactions.
    pub(super) fn execute(&self, sql: &str, values: &[ToSqlOutput<'_>]) -> Result<u64, Failure> {
        let mut session = self.session.borrow_mut();
        let statement = session.prepare(sql)?;
        let values: Vec<_> = values.iter().map(given).collect();
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as _).collect();
        Ok(session.client.execute(&statement, &values)?)
    }

    /// Runs a query, on a new connection if the old one was lost.
    pub(super) fn query(&self, sql: &str, values: &[ToSqlOutput<'_>]) -> Result<Vec<postgres::Row>, Failure> {
        let values: Vec<_> = values.iter().map(given).collect();
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as _).collect();
        self.once_more(|session| {
            let statement = session.prepare(sql)?;
            session.client.query(&statement, &values)
        })
    }

    /// Begins a transaction, on a new connection if the old one was lost.
    pub(super) fn begin(&self, access: Access) -> Result<(), Failure> {
        let begin = match access {
            Access::Read => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            // This lock excludes other writers that take it, but no readers.
            Access::Write => "BEGIN; LOCK TABLE runs IN SHARE ROW EXCLUSIVE MODE",
        };
        self.once_more(|session| {
            let begun = session.client.batch_execute(begin);
            if begun.is_err() {
                session.client.batch_execute("ROLLBACK").ok();
            }
            begun
        })?;
        self.session.borrow_mut().is_in_transaction = true;
        Ok(())
    }

    /// Returns whether a transaction is open.
    pub(super) fn is_in_transaction(&self) -> bool {
        self.session.borrow().is_in_transaction
    }

    /// Ends a transaction.
    pub(super) fn end(&self, how: &str) -> Result<(), Failure> {
        let mut session = self.session.borrow_mut();
        session.is_in_transaction = false;
        Ok(session.client.batch_execute(how)?)
    }

    /// Retries on a new connection if the old one was lost outside a transaction.
    fn once_more<T>(&self, work: impl Fn(&mut Session) -> Result<T, postgres::Error>) -> Result<T, Failure> {
        let mut session = self.session.borrow_mut();
        match work(&mut session) {
            Err(error) if is_lost(&error) && !session.is_in_transaction => {
                *session = Session::begin(&self.config, self.access)?;
                Ok(work(&mut session)?)
            }
            done => Ok(done?),
        }
    }
}

/// Returns whether an error is about the connection or the server's shutdown. The codes are in appendix A of its
/// manual.
pub(crate) fn is_lost(error: &postgres::Error) -> bool {
    const ENDS: [SqlState; 3] = [SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN, SqlState::CANNOT_CONNECT_NOW];
    match error.code() {
        // Class 08: connection exceptions.
        Some(code) => code.code().starts_with("08") || ENDS.contains(code),
        None => error.is_closed() || error.source().is_some_and(|cause| cause.is::<io::Error>()),
    }
}

impl Session {
    fn begin(config: &Config, access: Access) -> Result<Self, postgres::Error> {
        let mut client = config.connect(NoTls)?;
        client.batch_execute(LIMITS)?;
        if access == Access::Read {
            client.batch_execute("SET default_transaction_read_only = on")?;
        }
        Ok(Self { client, prepared: HashMap::new(), is_in_transaction: false })
    }

    fn prepare(&mut self, sql: &str) -> Result<Statement, postgres::Error> {
        if let Some(statement) = self.prepared.get(sql) {
            return Ok(statement.clone());
        }
        // No statement of the store has a question mark other than placeholders.
        let statement = self.client.prepare(&sql.replace('?', "$"))?;
        if self.prepared.len() >= PREPARED {
            self.prepared.clear();
        }
        self.prepared.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }
}
