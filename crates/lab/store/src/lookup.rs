//! Finding an id by its first digits.

use std::fmt::Display;

use rusqlite::types::FromSql;

use crate::columns::Id;
use crate::{LookupError, Store, StoreError};

/// Most candidates in an error.
const SHOWN: usize = 8;

/// The table to search, and its noun in errors.
pub(crate) struct IdTable {
    pub(crate) noun: &'static str,
    /// Selects at most `?3` ids in the range from `?1` to before `?2`, in order.
    pub(crate) select: &'static str,
}

/// The parts of an id for the search.
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
    /// Returns the only id that begins with `prefix`; an exact match wins.
    pub(crate) fn find<T: Named>(&self, place: &IdTable, prefix: &T) -> Result<T, StoreError>
    where
        Id<T>: FromSql,
    {
        let digits = prefix.digits();
        // `g` follows every hexadecimal digit; one more than is shown reveals whether there are
        // more.
        let mut found: Vec<T> = self.with(|database| {
            database.rows(
                place.select,
                &[&digits, &format!("{digits}g"), &(SHOWN + 1)],
                |row| Ok(row.get::<Id<T>>(0)?.0),
            )
        })?;
        if found.len() > 1 && found[0].digits() != digits {
            return Err(StoreError::Lookup(LookupError::Ambiguous {
                text: prefix.to_string(),
                candidates: candidates(&found),
            }));
        }
        if found.is_empty() {
            return Err(unknown(place, prefix));
        }
        Ok(found.swap_remove(0))
    }
}

/// Makes the error for a missing entry.
pub(crate) fn unknown(place: &IdTable, id: &impl Display) -> StoreError {
    StoreError::Lookup(LookupError::Unknown {
        noun: place.noun,
        text: id.to_string(),
    })
}

/// Lists ids, abbreviated if that keeps them distinct.
fn candidates<T: Named>(found: &[T]) -> String {
    let shown = &found[..found.len().min(SHOWN)];
    let mut names: Vec<String> = shown.iter().map(Named::abbreviated).collect();
    // They are sorted, so equal ones are neighbours.
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        names = shown.iter().map(ToString::to_string).collect();
    }
    if found.len() > SHOWN {
        names.push("…".to_owned());
    }
    names.join(", ")
}
