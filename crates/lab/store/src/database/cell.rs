//! Converts values between PostgreSQL and `rusqlite`'s types.
//!
//! PostgreSQL's text cannot hold NUL, but output of guests can. NUL is stored as SUBSTITUTE and
//! `0`, and SUBSTITUTE itself, an unusual control character, as SUBSTITUTE and `1`.

use std::borrow::Cow;
use std::error::Error;

use bytes::{BufMut, BytesMut};
use rusqlite::types::{ToSqlOutput, ValueRef};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

const NUL: char = '\0';
const SUBSTITUTE: char = '\u{1a}';

/// A value from a column.
pub(super) enum Cell<'a> {
    Null,
    Integer(i64),
    Text(Cow<'a, str>),
    Blob(&'a [u8]),
}

impl Cell<'_> {
    /// Returns it as a value of SQLite.
    pub(super) fn value(&self) -> ValueRef<'_> {
        match self {
            Self::Null => ValueRef::Null,
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
        }
    }
}

impl<'a> FromSql<'a> for Cell<'a> {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(match *ty {
            Type::INT8 => Self::Integer(i64::from_sql(ty, raw)?),
            Type::INT4 => Self::Integer(i32::from_sql(ty, raw)?.into()),
            Type::BYTEA => Self::Blob(raw),
            _ => Self::Text(unescape(<&str>::from_sql(ty, raw)?)),
        })
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self::Null)
    }

    fn accepts(ty: &Type) -> bool {
        [Type::INT8, Type::INT4, Type::BYTEA, Type::TEXT].contains(ty)
    }
}

/// A value for a column.
#[derive(Debug)]
pub(super) struct Given<'a>(pub(super) ValueRef<'a>);

/// Returns the value of an output.
pub(super) fn given<'a>(output: &'a ToSqlOutput<'_>) -> Given<'a> {
    Given(match output {
        ToSqlOutput::Borrowed(value) => *value,
        ToSqlOutput::Owned(value) => ValueRef::from(value),
        // rusqlite may add more of these; the store uses the two above.
        _ => ValueRef::Null,
    })
}

impl ToSql for Given<'_> {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self.0 {
            ValueRef::Null => return Ok(IsNull::Yes),
            ValueRef::Integer(number) if *ty == Type::INT4 => out.put_i32(number.try_into()?),
            ValueRef::Integer(number) if *ty == Type::INT8 => out.put_i64(number),
            // Paths and names are stored as bytes, text or not.
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) if *ty == Type::BYTEA => {
                out.put_slice(bytes);
            }
            ValueRef::Text(text) if *ty == Type::TEXT => {
                out.put_slice(escape(str::from_utf8(text)?).as_bytes());
            }
            other => return Err(format!("a {} for a column of {ty}", other.data_type()).into()),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

fn escape(text: &str) -> Cow<'_, str> {
    if !text.contains([NUL, SUBSTITUTE]) {
        return text.into();
    }
    text.replace(SUBSTITUTE, "\u{1a}1")
        .replace(NUL, "\u{1a}0")
        .into()
}

fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains(SUBSTITUTE) {
        return text.into();
    }
    text.replace("\u{1a}0", "\0")
        .replace("\u{1a}1", "\u{1a}")
        .into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop, proptest};

    use super::{escape, unescape};

    proptest! {
        #[test]
        fn any_text_round_trips(
            text in prop::collection::vec(
                prop::sample::select(vec!['\0', '\u{1a}', '0', '1', 'ä']),
                0..12,
            ),
            other in any::<String>(),
        ) {
            for text in [text.into_iter().collect(), other] {
                let escaped = escape(&text).into_owned();
                assert!(!escaped.contains('\0'));
                assert_eq!(unescape(&escaped), text);
            }
        }
    }
}
