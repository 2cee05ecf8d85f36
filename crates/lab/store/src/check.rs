//! Verifies a whole store: every result and every artifact against its checksum. It changes nothing;
//! what to do about damage is for the caller to say.

use model::RunId;

use crate::columns::Id;
use crate::database::Database;
use crate::queue::Listed;
use crate::{Store, StoreError};

/// What a check has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Checked {
    pub runs: usize,
    pub artifacts: usize,
    pub damaged: usize,
}

/// Something in a store that is not as it was saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Damage {
    /// The file of the database itself: pages, indexes or references.
    Database { detail: String },
    /// A run whose numbers cannot be read or do not match their checksums.
    Run { run: RunId, detail: String },
    /// An artifact that is missing or does not match its checksum; the run's numbers are whole.
    Artifact {
        run: RunId,
        name: String,
        detail: String,
    },
    /// Decisions, queue or notices cannot be read.
    List { name: &'static str, detail: String },
}

impl Store {
    /// Reads everything, and hands over each damage as it is found.
    ///
    /// # Errors
    /// If the store cannot be read for another reason than damage.
    pub fn check(&self, found: &mut dyn FnMut(Damage)) -> Result<Checked, StoreError> {
        let mut checked = Checked::default();
        let mut damage = |damage: Damage| {
            checked.damaged += 1;
            found(damage);
        };
        if let Database::Sqlite(_) = &self.database {
            for pragma in ["PRAGMA integrity_check", "PRAGMA foreign_key_check"] {
                let lines = self.with(|database| {
                    database.rows(pragma, &[], |row| row.get::<Option<String>>(0))
                });
                match detail_of(lines)? {
                    Ok(lines) => lines
                        .into_iter()
                        .flatten()
                        .filter(|line| line != "ok")
                        .for_each(|detail| damage(Damage::Database { detail })),
                    Err(detail) => damage(Damage::Database { detail }),
                }
            }
        }
        let ids = self.with(|database| {
            database.rows("SELECT id FROM runs ORDER BY number", &[], |row| {
                Ok(row.get::<Id<RunId>>(0)?.0)
            })
        });
        let ids = match detail_of(ids)? {
            Ok(ids) => ids,
            Err(detail) => {
                damage(Damage::Database { detail });
                Vec::new()
            }
        };
        let runs = ids.len();
        let mut artifacts = 0;
        for run in ids {
            artifacts += self.check_run(run, &mut damage)?;
        }
        let lists = [
            ("triage decisions", self.decisions().map(drop)),
            ("queue", self.queued_jobs(Listed::All).map(drop)),
            ("notices", self.list_undelivered().map(drop)),
        ];
        for (name, read) in lists {
            if let Err(detail) = detail_of(read)? {
                damage(Damage::List { name, detail });
            }
        }
        Ok(Checked {
            runs,
            artifacts,
            ..checked
        })
    }

    /// Checks a run; returns the number of its artifacts.
    fn check_run(&self, run: RunId, damage: &mut dyn FnMut(Damage)) -> Result<usize, StoreError> {
        let stored = match self.run(&run) {
            // Garbage collection deleted it meanwhile.
            Err(StoreError::Lookup(_)) => return Ok(0),
            stored => stored,
        };
        let whole = stored.and_then(|stored| {
            self.build(&stored.build)?;
            self.machine(&stored.machine)
        });
        if let Err(detail) = detail_of(whole)? {
            let run = run.clone();
            damage(Damage::Run { run, detail });
        }
        let names = match self.artifact_names(&run) {
            Err(StoreError::Lookup(_)) => return Ok(0),
            names => names?,
        };
        for name in &names {
            let read = match self.copy_artifact(&run, name, &mut |_| true) {
                Err(StoreError::Lookup(_)) => continue,
                read => read,
            };
            if let Err(detail) = detail_of(read)? {
                let (run, name) = (run.clone(), name.clone());
                damage(Damage::Artifact { run, name, detail });
            }
        }
        Ok(names.len())
    }
}

/// Separates damage, which the check goes on after, from errors that end it.
fn detail_of<T>(read: Result<T, StoreError>) -> Result<Result<T, String>, StoreError> {
    match read {
        Ok(value) => Ok(Ok(value)),
        Err(StoreError::Damaged { detail, .. }) => Ok(Err(detail)),
        Err(StoreError::Lookup(error)) => Ok(Err(error.to_string())),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{Checked, Damage};
    use crate::testing::{New, contract, parents, run, sqlite, store};
    use crate::{Artifact, Store};

    contract!(whole_store_has_no_damage,);

    const CONSOLE: Artifact<'_> = Artifact {
        name: "getppid.console",
        bytes: b"Linux version 6.12\n",
    };

    fn filled(store: &Store) {
        for id in ["01", "02"] {
            let run = run("aa", id, 1);
            parents(store, &run);
            store.save_run(&run, &[CONSOLE]).unwrap();
        }
    }

    fn check(store: &Store) -> (Checked, Vec<Damage>) {
        let mut all = Vec::new();
        let checked = store.check(&mut |damage| all.push(damage)).unwrap();
        (checked, all)
    }

    fn whole_store_has_no_damage(new: New<'_>) {
        let (_home, store) = new();
        filled(&store);
        let expected = Checked {
            runs: 2,
            artifacts: 2,
            damaged: 0,
        };
        assert_eq!(check(&store), (expected, vec![]));
    }

    #[test]
    fn each_damage_is_found_and_named() {
        let (home, store) = store();
        filled(&store);
        let file = home.path().join("artefacts/01/getppid.console.zst");
        let mut bytes = fs::read(&file).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(&file, bytes).unwrap();
        fs::remove_file(home.path().join("artefacts/02/getppid.console.zst")).unwrap();
        let change = "DROP TRIGGER results_are_never_changed;
             UPDATE results SET operations = operations + 1
             WHERE run = (SELECT number FROM runs WHERE id = '02') AND position = 0";
        sqlite(&store).execute_batch(change).unwrap();
        let damaged = check(&store);
        let names: Vec<String> = damaged
            .1
            .iter()
            .map(|damage| match damage {
                Damage::Run { run, .. } => format!("run {run}"),
                Damage::Artifact { run, name, .. } => format!("artifact {run} {name}"),
                other => format!("{other:?}"),
            })
            .collect();
        insta::assert_snapshot!(names.join("\n"), @"
        artifact run_01 getppid.console
        run run_02
        artifact run_02 getppid.console
        ");
        assert_eq!(damaged.0.damaged, 3);
    }
}
