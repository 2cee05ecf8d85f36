//! Which build a kernel name selected, and when: a name like `deb:6.12` moves on, builds do not.

use model::{BuildId, UnixTime};

use crate::columns::{self, Id, Time};
use crate::{Store, StoreError};

/// A name and a build that it selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenKernel {
    pub name: String,
    pub build: BuildId,
    /// The last time.
    pub seen_unix: UnixTime,
}

impl Store {
    /// Records that a name selected a (saved) build.
    ///
    /// # Errors
    /// If the build was not saved before, or the database cannot be written.
    pub fn remember_kernel(
        &self,
        name: &str,
        build: &BuildId,
        seen_unix: UnixTime,
    ) -> Result<(), StoreError> {
        let save = || {
            let transaction = self.database.write()?;
            self.database.execute(
                "INSERT INTO kernels VALUES (?1, ?2, ?3)
                 ON CONFLICT (name, build) DO UPDATE SET seen_unix = excluded.seen_unix
                 WHERE kernels.seen_unix < excluded.seen_unix",
                &[&name, &build.hex(), &Time(seen_unix)],
            )?;
            transaction.commit()
        };
        save().map_err(|error| {
            self.home
                .to_error_of(error, || format!("the kernel name `{name}`"))
        })
    }

    /// Lists names and their builds, by name, newest first.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn kernels(&self) -> Result<Vec<SeenKernel>, StoreError> {
        let select =
            "SELECT name, build, seen_unix FROM kernels ORDER BY name, seen_unix DESC, build";
        self.with(|database| {
            database.rows(select, &[], |row| {
                Ok(SeenKernel {
                    name: row.get(0)?,
                    build: row.get::<Id<BuildId>>(1)?.0,
                    seen_unix: columns::time(row, 2)?,
                })
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use model::UnixTime;

    use crate::testing::{New, build, contract};

    contract!(
        names_move_on_from_build_to_build,
        a_name_of_a_build_that_was_not_saved_is_refused,
    );

    fn names_move_on_from_build_to_build(new: New<'_>) {
        let (_home, store) = new();
        let old = build("0a");
        let new = build("0b");
        store.save_build(&old).unwrap();
        store.save_build(&new).unwrap();
        for (name, build, seen) in [
            ("deb:6.12", &old, 100),
            ("deb:6.12", &new, 200),
            ("deb:6.1", &old, 50),
            // A clock that was set back must not lose the record.
            ("deb:6.12", &new, 150),
        ] {
            store
                .remember_kernel(name, &build.id, UnixTime::new(seen))
                .unwrap();
        }
        let listed: Vec<_> = store
            .kernels()
            .unwrap()
            .into_iter()
            .map(|seen| {
                (
                    seen.name,
                    seen.build.hex().to_owned(),
                    seen.seen_unix.seconds(),
                )
            })
            .collect();
        assert_eq!(
            listed,
            [
                ("deb:6.1".to_owned(), "0a".to_owned(), 50),
                ("deb:6.12".to_owned(), "0b".to_owned(), 200),
                ("deb:6.12".to_owned(), "0a".to_owned(), 100),
            ]
        );
    }

    fn a_name_of_a_build_that_was_not_saved_is_refused(new: New<'_>) {
        let (_home, store) = new();
        let error = store
            .remember_kernel("deb:6.12", &build("aa").id, UnixTime::new(1))
            .unwrap_err();
        insta::assert_snapshot!(error, @"the kernel name `deb:6.12` refers to a build or machine that was not saved before it (a bug in the caller)");
    }
}
