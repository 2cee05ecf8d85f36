//! How single values lie in columns: ids, paths, whole numbers, lists of pairs. Codes are in `codes.rs`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use model::{BuildId, IdError, MachineId, RunId};
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, params};

/// A word in the database that this program gives no meaning to.
#[derive(Debug, thiserror::Error)]
#[error("unknown {noun} `{code}`")]
pub(crate) struct UnknownCode {
    pub(crate) noun: &'static str,
    pub(crate) code: String,
}

impl UnknownCode {
    pub(crate) fn error(noun: &'static str, code: &str) -> FromSqlError {
        FromSqlError::Other(Box::new(Self { noun, code: code.to_owned() }))
    }
}

/// An id, kept as its digits.
pub(crate) struct Id<T>(pub(crate) T);

fn id<T>(value: ValueRef<'_>, from_hex: fn(&str) -> Result<T, IdError>) -> FromSqlResult<Id<T>> {
    from_hex(value.as_str()?).map(Id).map_err(|error| FromSqlError::Other(Box::new(error)))
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

/// A path: text where it is UTF-8, so that people can read it, and a blob where it is not, so that nothing is lost.
pub(crate) struct PathColumn(pub(crate) PathBuf);

impl PathColumn {
    pub(crate) fn of(path: &Path) -> Self {
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

/// Keeps bytes as text where they are UTF-8.
pub(crate) fn text_or_blob(bytes: &[u8]) -> ToSqlOutput<'_> {
    ToSqlOutput::Borrowed(match std::str::from_utf8(bytes) {
        Ok(text) => ValueRef::Text(text.as_bytes()),
        Err(_) => ValueRef::Blob(bytes),
    })
}

/// A number of 64 bits without sign. SQLite has only signed ones, so the bits are kept and the top one looks like a
/// sign.
pub(crate) struct Unsigned(pub(crate) u64);

impl ToSql for Unsigned {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.0.cast_signed().into())
    }
}

impl FromSql for Unsigned {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Ok(Self(value.as_i64()?.cast_unsigned()))
    }
}

/// A table of name and value pairs in order, each list belonging to one owner.
pub(crate) struct PairTable {
    pub(crate) insert: &'static str,
    pub(crate) select: &'static str,
}

impl PairTable {
    pub(crate) fn save(
        &self,
        connection: &Connection,
        owner: &dyn ToSql,
        pairs: &[(String, String)],
    ) -> rusqlite::Result<()> {
        let mut insert = connection.prepare_cached(self.insert)?;
        for (position, (name, value)) in pairs.iter().enumerate() {
            insert.execute(params![owner, position, name, value])?;
        }
        Ok(())
    }

    pub(crate) fn load(&self, connection: &Connection, owner: &dyn ToSql) -> rusqlite::Result<Vec<(String, String)>> {
        connection.prepare_cached(self.select)?.query_map([owner], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
    }
}
