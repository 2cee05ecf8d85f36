//! A connection to PostgreSQL that is reopened if it was lost while no transaction was open.

use std::cell::RefCell;
use std::collections::HashMap;
use std::error::Error;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;
use std::{fmt, io};

use rusqlite::types::ToSqlOutput;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, timeout};
use tokio_postgres::error::SqlState;
use tokio_postgres::tls::NoTlsStream;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, NoTls, Statement};

use super::Failure;
use super::cell::given;
use super::guard::{self, Guarded};
use super::tls::Tls;
use crate::location::{Address, Channel};

/// Server-side timeouts: for waiting on another writer, and for any statement.
const LIMITS: &str = "SET lock_timeout = '30s'; SET statement_timeout = '10min'; SET client_min_messages = 'warning'";

/// Between two tries to reach a server that restarts.
const RESTART_LOOK: Duration = Duration::from_millis(250);

/// How often a statement is waited for until it is over anyway: its server's own timeout comes
/// first.
const WAITS_MAX: u32 = 40;

/// The library's words for a server that answers that it has no TLS.
const NO_TLS: &str = "server does not support TLS";

/// Statement cache size: more than there are different statements.
const PREPARED: usize = 256;

/// The purpose of a connection or transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
    /// Of few rows, each locked when it is read.
    Change,
}

pub(crate) struct Server {
    address: Address,
    access: Access,
    session: RefCell<Session>,
}

struct Session {
    runtime: Runtime,
    client: Client,
    address: Address,
    /// Whether it was left waiting: what arrives now would answer an earlier question.
    is_silent: bool,
    prepared: HashMap<String, Statement>,
    is_in_transaction: bool,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address contains the password.
        f.debug_struct("Server")
            .field("access", &self.access)
            .finish_non_exhaustive()
    }
}

impl Server {
    pub(crate) fn connect(address: &Address, access: Access) -> Result<Self, Failure> {
        let session = RefCell::new(Session::begin(address, access)?);
        Ok(Self {
            address: address.clone(),
            access,
            session,
        })
    }

    /// Executes several statements without results.
    pub(crate) fn batch(&self, sql: &str) -> Result<(), Failure> {
        let mut session = self.session.borrow_mut();
        session.ask(async |client| client.batch_execute(sql).await)
    }

    /// Executes a statement. It is not retried: changes happen in transactions.
    pub(super) fn execute(&self, sql: &str, values: &[ToSqlOutput<'_>]) -> Result<u64, Failure> {
        let mut session = self.session.borrow_mut();
        let statement = session.prepare(sql)?;
        let values: Vec<_> = values.iter().map(given).collect();
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as _).collect();
        session.ask(async |client| client.execute(&statement, &values).await)
    }

    /// Runs a query, on a new connection if the old one was lost.
    pub(super) fn query(
        &self,
        sql: &str,
        values: &[ToSqlOutput<'_>],
    ) -> Result<Vec<tokio_postgres::Row>, Failure> {
        let values: Vec<_> = values.iter().map(given).collect();
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as _).collect();
        self.once_more(|session| {
            let statement = session.prepare(sql)?;
            session.ask(async |client| client.query(&statement, &values).await)
        })
    }

    /// Begins a transaction, on a new connection if the old one was lost.
    pub(super) fn begin(&self, access: Access) -> Result<(), Failure> {
        let begin = match access {
            Access::Read => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            // This lock excludes other writers that take it, but no readers.
            Access::Change => "BEGIN",
            Access::Write => "BEGIN; LOCK TABLE runs IN SHARE ROW EXCLUSIVE MODE",
        };
        self.once_more(|session| {
            let begun = session.ask(async |client| client.batch_execute(begin).await);
            if matches!(begun, Err(Failure::Server(_))) {
                session
                    .ask(async |client| client.batch_execute("ROLLBACK").await)
                    .ok();
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

    pub(super) fn end(&self, how: &str) -> Result<(), Failure> {
        let mut session = self.session.borrow_mut();
        session.is_in_transaction = false;
        session.ask(async |client| client.batch_execute(how).await)
    }

    /// Retries on a new connection if the old one was lost outside a transaction.
    fn once_more<T>(
        &self,
        work: impl Fn(&mut Session) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut session = self.session.borrow_mut();
        if session.is_silent && !session.is_in_transaction {
            *session = Session::begin(&self.address, self.access)?;
        }
        match work(&mut session) {
            Err(Failure::Server(error)) if is_lost(&error) && !session.is_in_transaction => {
                *session = Session::begin(&self.address, self.access)?;
                work(&mut session)
            }
            done => done,
        }
    }
}

/// Returns whether an error is about the connection or the server's shutdown. The codes are in
/// appendix A of its manual.
pub(crate) fn is_lost(error: &tokio_postgres::Error) -> bool {
    const ENDS: [SqlState; 3] = [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
    ];
    match error.code() {
        // Class 08: connection exceptions.
        Some(code) => code.code().starts_with("08") || ENDS.contains(code),
        None => {
            let is_refusal = is_untrusted(error) || is_unprotected(error);
            error.is_closed()
                || error
                    .source()
                    .is_some_and(|cause| cause.is::<io::Error>() && !is_refusal)
        }
    }
}

/// Returns whether an error is that others could read the password: the server, or a host on the
/// way to it, has no TLS or wants the password in clear without it.
pub(crate) fn is_unprotected(error: &tokio_postgres::Error) -> bool {
    let Some(cause) = error.source() else {
        return false;
    };
    let inner = cause
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref);
    inner.is_some_and(|inner| inner.is::<guard::InClear>()) || cause.to_string() == NO_TLS
}

/// Returns whether an error is that no issuer on the host's list vouches for the server's
/// certificate.
pub(crate) fn is_untrusted(error: &tokio_postgres::Error) -> bool {
    let cause = error
        .source()
        .and_then(|cause| cause.downcast_ref::<io::Error>()?.get_ref());
    cause.is_some_and(|cause| cause.is::<rustls::Error>())
}

impl Session {
    fn begin(address: &Address, access: Access) -> Result<Self, Failure> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime =
            runtime.map_err(|error| Failure::Silent(format!("cannot wait for it: {error}")))?;
        let client = runtime.block_on(async {
            let (client, connection) = connect(address).await?;
            // The next question sees its end.
            tokio::spawn(connection.run());
            Ok::<_, Failure>(client)
        })?;
        let address = address.clone();
        let prepared = HashMap::new();
        let mut session = Self {
            runtime,
            client,
            address,
            is_silent: false,
            prepared,
            is_in_transaction: false,
        };
        session.ask(async |client| client.batch_execute(LIMITS).await)?;
        if access == Access::Read {
            session.ask(async |client| {
                client
                    .batch_execute("SET default_transaction_read_only = on")
                    .await
            })?;
        }
        Ok(session)
    }

    /// Asks the server, and waits for its answer as long as the server answers others.
    fn ask<T>(
        &mut self,
        question: impl AsyncFnOnce(&Client) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, Failure> {
        let answer = self
            .runtime
            .block_on(wait_for(question(&self.client), &self.address));
        self.is_silent |= matches!(answer, Err(Failure::Silent(_)));
        answer
    }

    fn prepare(&mut self, sql: &str) -> Result<Statement, Failure> {
        if let Some(statement) = self.prepared.get(sql) {
            return Ok(statement.clone());
        }
        // No statement of the store has a question mark other than placeholders.
        let sql_of_server = sql.replace('?', "$");
        let statement = self.ask(async |client| client.prepare(&sql_of_server).await)?;
        if self.prepared.len() >= PREPARED {
            self.prepared.clear();
        }
        self.prepared.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }
}

/// A connection, which answers the client only while it runs.
enum Connection {
    AsAddressed(Box<tokio_postgres::Connection<tokio_postgres::Socket, super::tls::Stream>>),
    ThisHost(Box<tokio_postgres::Connection<Guarded, NoTlsStream>>),
}

impl Connection {
    async fn run(self) {
        match self {
            Self::AsAddressed(connection) => connection.await.ok(),
            Self::ThisHost(connection) => connection.await.ok(),
        };
    }
}

/// Connects and logs in, within twice the address' timeout for connecting. A stopped server accepts
/// connections all the same; one that restarts is waited for.
async fn connect(address: &Address) -> Result<(Client, Connection), Failure> {
    let limit = 2 * patience(&address.config);
    let mut waited = Duration::ZERO;
    let connected = async {
        loop {
            match connect_once(address).await {
                Err(failure) if waited < restart_limit(&failure, address) => {
                    sleep(RESTART_LOOK).await;
                    waited += RESTART_LOOK;
                }
                done => return done,
            }
        }
    };
    timeout(limit, connected).await.map_err(|_| silent(limit))?
}

async fn connect_once(address: &Address) -> Result<(Client, Connection), Failure> {
    let config = &address.config;
    Ok(match address.channel {
        Channel::AsAddressed => {
            let (client, connection) = config.connect(Tls).await?;
            (client, Connection::AsAddressed(Box::new(connection)))
        }
        Channel::ThisHost => {
            let stream = guard::reach(config).await?;
            let (client, connection) = config.connect_raw(stream, NoTls).await?;
            (client, Connection::ThisHost(Box::new(connection)))
        }
    })
}

/// Returns how long a server is waited for after a refusal: one that says that it starts or ends,
/// as long as one that says nothing; one that is not there, half of that.
fn restart_limit(refusal: &Failure, address: &Address) -> Duration {
    let limit = patience(&address.config);
    match refusal {
        Failure::Server(error) if is_lost(error) => match error.code() {
            Some(_) => limit,
            None => limit / 2,
        },
        // It refused the connection: see `guard::reach`.
        Failure::Silent(_) => limit / 2,
        _ => Duration::ZERO,
    }
}

/// Waits for an answer. Nothing tells a server that works from one that was stopped or whose host
/// is gone, so it is asked for another connection from time to time.
async fn wait_for<T>(
    answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
    address: &Address,
) -> Result<T, Failure> {
    let mut answer = pin!(answer);
    let limit = 2 * patience(&address.config);
    for _ in 0..WAITS_MAX {
        if let Ok(answered) = timeout(limit, &mut answer).await {
            return Ok(answered?);
        }
        match connect(address).await {
            Err(Failure::Server(error)) if !is_lost(&error) => {}
            Err(_) => return Err(silent(2 * limit)),
            Ok(_) => {}
        }
    }
    Err(silent(limit * WAITS_MAX))
}

fn patience(config: &Config) -> Duration {
    config
        .get_connect_timeout()
        .copied()
        .unwrap_or(crate::location::CONNECT_LIMIT)
}

fn silent(limit: Duration) -> Failure {
    Failure::Silent(format!("it has not answered for {} s", limit.as_secs()))
}
