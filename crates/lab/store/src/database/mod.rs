//! SQLite in a data directory and PostgreSQL on a server behind one set of calls.
//!
//! Each statement is written once, in the common dialect with SQLite's placeholders (`?1`). The
//! conversion of values is written once too, with SQLite's traits (`columns.rs`, `codes.rs`,
//! `samples.rs`); `cell.rs` converts PostgreSQL's values for these. `home.rs` interprets errors.

mod cell;
mod guard;
mod server;
mod tls;

use rusqlite::types::{FromSql, FromSqlError, ToSql, ToSqlOutput, Type};
use rusqlite::{Connection, OptionalExtension};

use cell::Cell;
pub(crate) use server::{Access, Server, is_lost, is_unprotected, is_untrusted};

/// The parameters of a statement.
pub(crate) type Values<'a> = &'a [&'a dyn ToSql];

/// Rows per INSERT into PostgreSQL: enough to make the round trip negligible.
const ROWS_AT_ONCE: usize = 64;

#[derive(Debug)]
pub(crate) enum Database {
    /// A file in a data directory.
    Sqlite(Connection),
    /// A database on a server.
    Server(Box<Server>),
}

/// What to do about rows that others have locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Locked {
    Wait,
    Skip,
}

/// Why a statement failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// SQLite failed, or a value of either database is invalid.
    Sqlite(rusqlite::Error),
    Server(tokio_postgres::Error),
    /// PostgreSQL does not answer; the text says since when.
    Silent(String),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Server(error)
    }
}

impl From<FromSqlError> for Failure {
    fn from(error: FromSqlError) -> Self {
        misread(0, error)
    }
}

/// A row of an answer.
pub(crate) enum Row<'a> {
    Sqlite(&'a rusqlite::Row<'a>),
    Server(&'a tokio_postgres::Row),
}

impl Row<'_> {
    /// Returns the value of a column.
    pub(crate) fn get<T: FromSql>(&self, column: usize) -> Result<T, Failure> {
        match self {
            Self::Sqlite(row) => Ok(row.get(column)?),
            Self::Server(row) => {
                let cell: Cell<'_> = row.try_get(column)?;
                T::column_result(cell.value()).map_err(|error| misread(column, error))
            }
        }
    }
}

/// Adds the column to a value's error, as rusqlite does.
fn misread(column: usize, error: FromSqlError) -> Failure {
    Failure::Sqlite(match error {
        FromSqlError::Other(cause) => {
            rusqlite::Error::FromSqlConversionFailure(column, Type::Text, cause)
        }
        other => rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(other)),
    })
}

impl Database {
    /// Executes a statement; returns the number of changed rows.
    pub(crate) fn execute(&self, sql: &str, values: Values<'_>) -> Result<u64, Failure> {
        match self {
            Self::Sqlite(connection) => Ok(connection.prepare_cached(sql)?.execute(values)? as u64),
            Self::Server(server) => server.execute(sql, &outputs(values)?),
        }
    }

    /// Inserts rows into a table, each with a value for every column.
    pub(crate) fn insert<const N: usize>(
        &self,
        table: &str,
        rows: &[[ToSqlOutput<'_>; N]],
    ) -> Result<(), Failure> {
        match self {
            Self::Sqlite(connection) => {
                let mut statement = connection.prepare_cached(&insertion::<N>(table, 1))?;
                for row in rows {
                    statement.execute(rusqlite::params_from_iter(row))?;
                }
            }
            Self::Server(server) => {
                for rows in rows.chunks(ROWS_AT_ONCE) {
                    server.execute(&insertion::<N>(table, rows.len()), rows.as_flattened())?;
                }
            }
        }
        Ok(())
    }

    /// Applies `read` to each row of an answer.
    pub(crate) fn rows<T>(
        &self,
        sql: &str,
        values: Values<'_>,
        mut read: impl FnMut(&Row<'_>) -> Result<T, Failure>,
    ) -> Result<Vec<T>, Failure> {
        match self {
            Self::Sqlite(connection) => {
                let mut statement = connection.prepare_cached(sql)?;
                let mut rows = statement.query(values)?;
                let mut all = Vec::new();
                while let Some(row) = rows.next()? {
                    all.push(read(&Row::Sqlite(row))?);
                }
                Ok(all)
            }
            Self::Server(server) => server
                .query(sql, &outputs(values)?)?
                .iter()
                .map(|row| read(&Row::Server(row)))
                .collect(),
        }
    }

    /// Applies `read` to the first row of an answer.
    pub(crate) fn row<T>(
        &self,
        sql: &str,
        values: Values<'_>,
        read: impl FnOnce(&Row<'_>) -> Result<T, Failure>,
    ) -> Result<Option<T>, Failure> {
        match self {
            Self::Sqlite(connection) => {
                let mut statement = connection.prepare_cached(sql)?;
                // The error of `read` passes through rusqlite's error type as a value.
                statement
                    .query_row(values, |row| Ok(read(&Row::Sqlite(row))))
                    .optional()?
                    .transpose()
            }
            Self::Server(server) => server
                .query(sql, &outputs(values)?)?
                .first()
                .map(|row| read(&Row::Server(row)))
                .transpose(),
        }
    }

    /// Begins a transaction that excludes other writers from the start.
    pub(crate) fn write(&self) -> Result<Transaction<'_>, Failure> {
        match self {
            Self::Sqlite(connection) => connection.execute_batch("BEGIN IMMEDIATE")?,
            Self::Server(server) => server.begin(Access::Write)?,
        }
        Ok(Transaction {
            database: self,
            is_open: true,
        })
    }

    /// Begins a transaction that writes a few rows, and locks them as it reads them:
    /// [`Database::lock`]. A data directory has one writer at a time anyway; on a server it
    /// waits for no one who saves results.
    pub(crate) fn change(&self) -> Result<Transaction<'_>, Failure> {
        match self {
            Self::Sqlite(connection) => connection.execute_batch("BEGIN IMMEDIATE")?,
            Self::Server(server) => server.begin(Access::Change)?,
        }
        Ok(Transaction {
            database: self,
            is_open: true,
        })
    }

    /// Returns the end of a SELECT that locks what it finds until the transaction ends.
    pub(crate) fn lock(&self, locked: Locked) -> &'static str {
        match (self, locked) {
            (Self::Sqlite(_), _) => "",
            (Self::Server(_), Locked::Wait) => " FOR UPDATE",
            (Self::Server(_), Locked::Skip) => " FOR UPDATE SKIP LOCKED",
        }
    }

    /// Begins a transaction that sees the database as of now despite other writers; a nested one
    /// does nothing.
    pub(crate) fn read(&self) -> Result<Transaction<'_>, Failure> {
        let is_within = match self {
            Self::Sqlite(connection) => !connection.is_autocommit(),
            Self::Server(server) => server.is_in_transaction(),
        };
        if is_within {
            return Ok(Transaction {
                database: self,
                is_open: false,
            });
        }
        match self {
            Self::Sqlite(connection) => connection.execute_batch("BEGIN")?,
            Self::Server(server) => server.begin(Access::Read)?,
        }
        Ok(Transaction {
            database: self,
            is_open: true,
        })
    }

    fn end(&self, how: &str) -> Result<(), Failure> {
        match self {
            Self::Sqlite(connection) => Ok(connection.execute_batch(how)?),
            Self::Server(server) => server.end(how),
        }
    }
}

/// A transaction. It is rolled back unless committed.
#[must_use]
pub(crate) struct Transaction<'a> {
    database: &'a Database,
    is_open: bool,
}

impl Transaction<'_> {
    pub(crate) fn commit(mut self) -> Result<(), Failure> {
        self.database.end("COMMIT")?;
        self.is_open = false;
        Ok(())
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if self.is_open {
            // If even the rollback fails, the connection is lost, and the transaction with it.
            self.database.end("ROLLBACK").ok();
        }
    }
}

/// Returns the statement that inserts this many rows of N values.
fn insertion<const N: usize>(table: &str, rows: usize) -> String {
    let row = |first: usize| {
        let places: Vec<String> = (first..first + N).map(|n| format!("?{}", n + 1)).collect();
        format!("({})", places.join(", "))
    };
    let rows: Vec<String> = (0..rows).map(|n| row(n * N)).collect();
    format!("INSERT INTO {table} VALUES {}", rows.join(", "))
}

fn outputs<'a>(values: Values<'a>) -> Result<Vec<ToSqlOutput<'a>>, Failure> {
    values.iter().map(|value| Ok(value.to_sql()?)).collect()
}

#[cfg(test)]
mod tests {
    use super::insertion;

    #[test]
    fn a_statement_inserts_several_rows() {
        assert_eq!(insertion::<2>("t", 1), "INSERT INTO t VALUES (?1, ?2)");
        assert_eq!(
            insertion::<2>("t", 2),
            "INSERT INTO t VALUES (?1, ?2), (?3, ?4)"
        );
    }
}
