//! Columns of single values: ids, paths, whole numbers, times, lists of pairs. Codes are in
//! `codes.rs`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use model::{BuildId, IdError, MachineId, RunId, UnixTime};
use rusqlite::types::{
    FromSql, FromSqlError, FromSqlResult, Null, ToSql, ToSqlOutput, Value, ValueRef,
};

use crate::database::{Database, Failure, Row};

/// An unknown word in the database.
#[derive(Debug, thiserror::Error)]
#[error("unknown {noun} `{code}`")]
pub(crate) struct UnknownCode {
    pub(crate) noun: &'static str,
    pub(crate) code: String,
}

impl UnknownCode {
    pub(crate) fn error(noun: &'static str, code: &str) -> FromSqlError {
        FromSqlError::Other(Box::new(Self {
            noun,
            code: code.to_owned(),
        }))
    }
}

/// An id, kept as its digits.
pub(crate) struct Id<T>(pub(crate) T);

fn id<T>(value: ValueRef<'_>, from_hex: fn(&str) -> Result<T, IdError>) -> FromSqlResult<Id<T>> {
    from_hex(value.as_str()?)
        .map(Id)
        .map_err(|error| FromSqlError::Other(Box::new(error)))
}

impl FromSql for Id<BuildId> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        id(value, BuildId::from_hex)
    }
}

impl FromSql for Id<MachineId> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        id(value, MachineId::from_hex)
    }
}

impl FromSql for Id<RunId> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        id(value, RunId::from_hex)
    }
}

/// A path: text if it is UTF-8, so that people can read it, else a blob, so that it is complete.
pub(crate) struct PathColumn(pub(crate) PathBuf);

impl PathColumn {
    pub(crate) fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }
}

impl ToSql for PathColumn {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(text_or_blob(self.0.as_os_str().as_bytes()))
    }
}

impl FromSql for PathColumn {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Ok(Self(PathBuf::from(OsStr::from_bytes(value.as_bytes()?))))
    }
}

/// Stores bytes as text if they are UTF-8.
pub(crate) fn text_or_blob(bytes: &[u8]) -> ToSqlOutput<'_> {
    ToSqlOutput::Borrowed(match std::str::from_utf8(bytes) {
        Ok(text) => ValueRef::Text(text.as_bytes()),
        Err(_) => ValueRef::Blob(bytes),
    })
}

/// An unsigned number of 64 bits. SQLite has only signed ones, so the bits are stored and the top
/// bit looks like a sign.
pub(crate) struct Unsigned(pub(crate) u64);

impl ToSql for Unsigned {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.0.cast_signed().into())
    }
}

impl From<Unsigned> for ToSqlOutput<'static> {
    fn from(number: Unsigned) -> Self {
        number.0.cast_signed().into()
    }
}

impl FromSql for Unsigned {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Ok(Self(value.as_i64()?.cast_unsigned()))
    }
}

/// A time, kept as its seconds.
pub(crate) struct Time(pub(crate) UnixTime);

impl ToSql for Time {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.0.seconds().into())
    }
}

impl From<Time> for Value {
    fn from(time: Time) -> Self {
        time.0.seconds().into()
    }
}

impl FromSql for Time {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Ok(Self(UnixTime::new(value.as_i64()?)))
    }
}

/// Returns the time in a column.
pub(crate) fn time(row: &Row<'_>, column: usize) -> Result<UnixTime, Failure> {
    Ok(row.get::<Time>(column)?.0)
}

/// Returns the time in a column that may be NULL.
pub(crate) fn optional_time(row: &Row<'_>, column: usize) -> Result<Option<UnixTime>, Failure> {
    Ok(row.get::<Option<Time>>(column)?.map(|time| time.0))
}

/// Returns a text or NULL.
pub(crate) fn text<'a>(text: impl Into<Option<&'a str>>) -> ToSqlOutput<'a> {
    text.into()
        .map_or(ToSqlOutput::from(Null), ToSqlOutput::from)
}

/// A table of name and value pairs in order, one list per owner.
pub(crate) struct PairTable {
    pub(crate) table: &'static str,
    pub(crate) select: &'static str,
}

impl PairTable {
    pub(crate) fn save(
        &self,
        database: &Database,
        owner: &dyn ToSql,
        pairs: &[(String, String)],
    ) -> Result<(), Failure> {
        let mut rows = Vec::with_capacity(pairs.len());
        for (position, (name, value)) in pairs.iter().enumerate() {
            rows.push([
                owner.to_sql()?,
                whole(position),
                text(name.as_str()),
                text(value.as_str()),
            ]);
        }
        database.insert(self.table, &rows)
    }

    pub(crate) fn load(
        &self,
        database: &Database,
        owner: &dyn ToSql,
    ) -> Result<Vec<(String, String)>, Failure> {
        database.rows(self.select, &[owner], |row| Ok((row.get(0)?, row.get(1)?)))
    }
}

/// Returns a position or a size: far below a column's maximum.
pub(crate) fn whole(number: usize) -> ToSqlOutput<'static> {
    i64::try_from(number).unwrap_or(i64::MAX).into()
}
