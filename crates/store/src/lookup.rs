//! Finding an id by the digits it begins with.

use std::fmt::Display;

use rusqlite::types::FromSql;

use crate::columns::Id;
use crate::{Store, StoreError};

/// How many candidates an error names.
const SHOWN: usize = 8;

/// Where to look, and how the error calls it.
pub(crate) struct IdTable {
    pub(crate) noun: &'static str,
    /// Selects at most `?3` ids from `?1` up to before `?2`, in order.
    pub(crate) select: &'static str,
}

/// The parts of an id that finding one needs.
pub(crate) trait Named: Display {
    fn digits(&self) -> &str;
    fn abbreviated(&self) -> String;
}

macro_rules! named {
    ($($id:ty),*) => {$(
        impl Named for $id {
            fn digits(&self) -> &str {
                self.hex()
            }
            fn abbreviated(&self) -> String {
                self.short()
            }
        }
    )*};
}
named!(model::BuildId, model::RunId);

impl Store {
    /// Returns the one id that begins as `prefix`; an id that equals it wins over those that only begin so.
    pub(crate) fn find<T: Named>(&self, place: &IdTable, prefix: &T) -> Result<T, StoreError>
    where
        Id<T>: FromSql,
    {
        let digits = prefix.digits();
        // `g` follows every hexadecimal digit; one more than is shown tells whether there are more.
        let mut found: Vec<T> = self.with(|database| {
            database
                .rows(place.select, &[&digits, &format!("{digits}g"), &(SHOWN + 1)], |row| Ok(row.get::<Id<T>>(0)?.0))
        })?;
        if found.len() > 1 && found[0].digits() != digits {
            return Err(StoreError::Ambiguous { text: prefix.to_string(), candidates: candidates(&found) });
        }
        if found.is_empty() {
            return Err(unknown(place, prefix));
        }
        Ok(found.swap_remove(0))
    }
}

/// Says that there is no such thing.
pub(crate) fn unknown(place: &IdTable, id: &impl Display) -> StoreError {
    StoreError::Unknown { noun: place.noun, text: id.to_string() }
}

/// Lists ids, abbreviated as long as that tells them apart.
fn candidates<T: Named>(found: &[T]) -> String {
    let shown = &found[..found.len().min(SHOWN)];
    let mut names: Vec<String> = shown.iter().map(Named::abbreviated).collect();
    // They come in order, so equal ones are neighbours.
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        names = shown.iter().map(ToString::to_string).collect();
    }
    if found.len() > SHOWN {
        names.push("…".to_owned());
    }
    names.join(", ")
}
