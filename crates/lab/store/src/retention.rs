//! Garbage collection: runs that newer ones replace, and artifacts of old runs. Pinned runs are
//! kept, and each run is deleted completely.
//!
//! A run is pinned by the artifact [`PINNED`], which reports leave with the runs that they show,
//! and by any triage decision about its kernel.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use model::{BuildId, Declared, MachineId, MachineKind, Release, Run, RunId, UnixTime};

use crate::codes::Code;
use crate::columns::{self, Id};
use crate::database::{Database, Row};
use crate::{Artifact, Store, StoreError};

/// The artifact that pins a run and names its user: both are kept for ever.
pub const PINNED: &str = "mentioned";

/// The garbage of a store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Garbage {
    /// Replaced runs, oldest first.
    pub runs: Vec<RunId>,
    /// Runs whose artifacts are garbage, oldest first; the runs themselves stay.
    pub artifacts_of: Vec<RunId>,
    /// Stored bytes of all these artifacts.
    pub bytes: u64,
    /// Runs that would be garbage if they were not pinned.
    pub referred: usize,
}

/// The limits of garbage collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Replaced runs that began before this.
    pub runs_before_unix: UnixTime,
    /// Artifacts of runs that began before this; `None` for none.
    pub artifacts_before_unix: Option<UnixTime>,
    /// Artifacts of the oldest runs until all are of no more bytes than this; `None` for no limit.
    pub artifacts_bytes_max: Option<u64>,
}

/// A run, as far as garbage collection needs to know it.
struct Known {
    id: RunId,
    build: BuildId,
    machine: MachineId,
    suite: String,
    seed: i64,
    started_unix: UnixTime,
    /// Workloads with their operations, and the declarations of their metrics.
    done: BTreeMap<(String, i64), Option<Declared>>,
    is_referred: bool,
    is_imported: bool,
}

impl Store {
    /// Pins runs, so that they are never garbage. An existing pin stays.
    ///
    /// # Errors
    /// If there is no such run, or the store cannot be written.
    pub fn pin(&self, runs: &[&RunId], by: &str) -> Result<(), StoreError> {
        for run in runs {
            if !self.artifact_names(run)?.iter().any(|name| name == PINNED) {
                self.add_artifact(
                    run,
                    Artifact {
                        name: PINNED,
                        bytes: by.as_bytes(),
                    },
                )?;
            }
        }
        Ok(())
    }

    /// Finds garbage.
    ///
    /// A run is replaced if a later one of the same build, machine, suite and seed has all its
    /// workloads, with as many operations and in the same units, since readers take the newest.
    /// Imported runs are never replaced: Marvin cannot measure them again, and another suite
    /// may give different results the same number.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn find_garbage(&self, retention: &Retention) -> Result<Garbage, StoreError> {
        let known = self.read_known()?;
        let mut garbage = Garbage::default();
        let is_old =
            |run: &Known| !run.is_imported && run.started_unix < retention.runs_before_unix;
        for (place, run) in known.iter().enumerate().filter(|(_, run)| is_old(run)) {
            if !known
                .iter()
                .enumerate()
                .any(|(saved, later): (usize, &Known)| {
                    // As readers choose: by the start, then by the order of saving.
                    (later.started_unix, saved) > (run.started_unix, place)
                        && (&later.build, &later.machine, &later.suite, later.seed)
                            == (&run.build, &run.machine, &run.suite, run.seed)
                        && run.done.iter().all(|(what, then)| {
                            later
                                .done
                                .get(what)
                                .is_some_and(|now| agree(then.as_ref(), now.as_ref()))
                        })
                })
            {
                continue;
            }
            if run.is_referred {
                garbage.referred += 1;
            } else {
                garbage.runs.push(run.id.clone());
            }
        }
        let gone: BTreeSet<RunId> = garbage.runs.iter().cloned().collect();
        let sizes = self.sizes()?;
        garbage.bytes = gone.iter().filter_map(|run| sizes.get(run)).sum();
        self.old_artifacts(&mut garbage, retention, &known, &sizes, &gone);
        Ok(garbage)
    }

    fn old_artifacts(
        &self,
        garbage: &mut Garbage,
        retention: &Retention,
        known: &[Known],
        sizes: &BTreeMap<RunId, u64>,
        gone: &BTreeSet<RunId>,
    ) {
        let mut left: u64 = sizes.values().sum::<u64>().saturating_sub(garbage.bytes);
        for run in known.iter().filter(|run| !gone.contains(&run.id)) {
            let size = sizes.get(&run.id).copied().unwrap_or(0);
            // A run without a known start has no age.
            let started = Run::known_start(run.started_unix);
            let is_old = retention
                .artifacts_before_unix
                .zip(started)
                .is_some_and(|(before, started)| started < before);
            let is_too_much = retention
                .artifacts_bytes_max
                .is_some_and(|most| left > most);
            if size == 0 || !(is_old || is_too_much) {
                continue;
            }
            if run.is_referred {
                garbage.referred += 1;
                continue;
            }
            garbage.artifacts_of.push(run.id.clone());
            garbage.bytes += size;
            left -= size;
        }
    }

    /// Deletes garbage run by run: a kill leaves each run whole or deleted. Keeps runs that were
    /// pinned in the meantime.
    ///
    /// # Errors
    /// If the store cannot be written. Runs deleted before the error stay deleted.
    pub fn remove(&self, garbage: &Garbage) -> Result<(), StoreError> {
        for run in &garbage.runs {
            self.remove_run(run)?;
        }
        for run in &garbage.artifacts_of {
            self.remove_artifacts(run)?;
        }
        Ok(())
    }

    fn remove_run(&self, run: &RunId) -> Result<(), StoreError> {
        let transaction = self.with(Database::write)?;
        if self.is_pinned(run)? {
            return Ok(());
        }
        // As during saving: the next process to open the store sweeps files with this mark whose
        // run is missing.
        let is_home = matches!(self.database, Database::Sqlite(_));
        if is_home {
            let mark = self.home.incoming_of(run);
            fs::create_dir_all(&mark).map_err(|error| self.home.io(&mark, error))?;
        }
        self.with(|database| {
            for table in ["artefacts", "results", "environments"] {
                let delete = format!(
                    "DELETE FROM {table} WHERE run = (SELECT number FROM runs WHERE id = ?1)"
                );
                database.execute(&delete, &[&run.hex()])?;
            }
            database.execute("DELETE FROM runs WHERE id = ?1", &[&run.hex()])
        })?;
        self.with(|_| transaction.commit())?;
        if is_home { self.discard(run) } else { Ok(()) }
    }

    fn remove_artifacts(&self, run: &RunId) -> Result<(), StoreError> {
        let transaction = self.with(Database::write)?;
        if self.is_pinned(run)? {
            return Ok(());
        }
        let delete = "DELETE FROM artefacts WHERE run = (SELECT number FROM runs WHERE id = ?1)";
        self.with(|database| database.execute(delete, &[&run.hex()]))?;
        self.with(|_| transaction.commit())?;
        // Unreferenced files only cost space; the next `clear_unknown` finds them.
        if matches!(self.database, Database::Sqlite(_)) {
            self.home.remove(&self.home.artifacts_of(run))
        } else {
            Ok(())
        }
    }

    fn is_pinned(&self, run: &RunId) -> Result<bool, StoreError> {
        let select = "SELECT 1 FROM artefacts WHERE run = (SELECT number FROM runs WHERE id = ?1) AND name = ?2";
        Ok(self
            .with(|database| database.row(select, &[&run.hex(), &PINNED], |_| Ok(())))?
            .is_some())
    }

    /// Returns free space to the system, and deletes unreferenced files.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn compact(&self) -> Result<(), StoreError> {
        match &self.database {
            Database::Sqlite(connection) => {
                self.clear_unknown()?;
                let vacuum = "VACUUM; PRAGMA wal_checkpoint(TRUNCATE)";
                connection
                    .execute_batch(vacuum)
                    .map_err(|error| self.home.sql(error))?;
            }
            Database::Server(server) => {
                // Readers wait meanwhile: without FULL the space would stay taken.
                for table in ["artefacts", "results", "environments", "runs"] {
                    server
                        .batch(&format!("VACUUM FULL {table}"))
                        .map_err(|error| self.home.to_error(error))?;
                }
            }
        }
        Ok(())
    }

    /// Removes artifact directories without a run.
    fn clear_unknown(&self) -> Result<(), StoreError> {
        let transaction = self.with(Database::write)?;
        let with: BTreeSet<RunId> = self.sizes()?.into_keys().collect();
        let folder = self.home.artifacts();
        let entries = fs::read_dir(&folder).map_err(|error| self.home.io(&folder, error))?;
        let runs =
            entries.filter_map(|entry| RunId::from_hex(entry.ok()?.file_name().to_str()?).ok());
        for run in runs.filter(|run| !with.contains(run)) {
            self.home.remove(&self.home.artifacts_of(&run))?;
        }
        self.with(|_| transaction.commit())
    }

    /// Returns the bytes that the store occupies, artifacts included.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn size(&self) -> Result<u64, StoreError> {
        match &self.database {
            Database::Sqlite(_) => {
                let database = self.home.database();
                let log = database.with_extension("db-wal");
                let files = file_bytes(&database) + file_bytes(&log);
                Ok(files + self.sizes()?.values().sum::<u64>())
            }
            Database::Server(_) => {
                let select = "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class
                              WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace";
                let size: Option<i64> = self
                    .with(|database| database.row(select, &[], |row| row.get(0)))?
                    .flatten();
                Ok(size.unwrap_or(0).try_into().unwrap_or(0))
            }
        }
    }

    /// Returns the stored bytes of each run's artifacts, for runs that have some.
    fn sizes(&self) -> Result<BTreeMap<RunId, u64>, StoreError> {
        let select = match &self.database {
            Database::Sqlite(_) => {
                "SELECT DISTINCT id, 0 FROM artefacts JOIN runs ON runs.number = artefacts.run"
            }
            Database::Server(_) => {
                "SELECT id, sum(length(content))::bigint FROM artefacts JOIN runs ON runs.number = artefacts.run GROUP BY id"
            }
        };
        let mut sizes: BTreeMap<RunId, u64> = self
            .with(|database| {
                database.rows(select, &[], |row| {
                    Ok((
                        row.get::<Id<RunId>>(0)?.0,
                        row.get::<i64>(1)?.unsigned_abs(),
                    ))
                })
            })?
            .into_iter()
            .collect();
        if matches!(self.database, Database::Sqlite(_)) {
            sizes
                .iter_mut()
                .for_each(|(run, size)| *size = folder_bytes(&self.home.artifacts_of(run)));
        }
        Ok(sizes)
    }

    /// Returns all runs in the order of saving.
    fn read_known(&self) -> Result<Vec<Known>, StoreError> {
        let decided: BTreeSet<String> = self
            .decisions()?
            .iter()
            .flat_map(|decision| {
                [
                    Release::parse(&decision.after),
                    Release::parse(&decision.at),
                ]
            })
            .map(|release| release.as_str().to_owned())
            .collect();
        let heads = "SELECT runs.number, runs.id, build, machine, suite, seed, started_unix, builds.version,
                        (SELECT count(*) FROM artefacts WHERE run = runs.number AND name = ?1), machines.kind
                     FROM runs JOIN builds ON builds.id = build JOIN machines ON machines.id = machine
                     ORDER BY runs.number";
        let results = "SELECT run, workload, operations, declared FROM results";
        self.with(|database| {
            let _whole = database.read()?;
            let mut done: BTreeMap<i64, BTreeMap<(String, i64), Option<Declared>>> =
                BTreeMap::new();
            for (run, what, declared) in database.rows(results, &[], |row: &Row<'_>| {
                let declared = row.get::<Option<Code<Declared>>>(3)?.map(|code| code.0);
                Ok((row.get(0)?, (row.get(1)?, row.get(2)?), declared))
            })? {
                done.entry(run).or_default().insert(what, declared);
            }
            database.rows(heads, &[&PINNED], |row| {
                let version: String = row.get(7)?;
                Ok(Known {
                    id: row.get::<Id<RunId>>(1)?.0,
                    build: row.get::<Id<BuildId>>(2)?.0,
                    machine: row.get::<Id<MachineId>>(3)?.0,
                    suite: row.get(4)?,
                    seed: row.get(5)?,
                    started_unix: columns::time(row, 6)?,
                    done: done.remove(&row.get(0)?).unwrap_or_default(),
                    is_referred: row.get::<i64>(8)? > 0
                        || decided.contains(Release::parse(&version).as_str()),
                    is_imported: row.get::<Code<MachineKind>>(9)?.0.capabilities().foreign,
                })
            })
        })
    }
}

/// Returns whether two results may have one metric: a declaration that an earlier Marvin omitted
/// agrees with any.
fn agree(one: Option<&Declared>, other: Option<&Declared>) -> bool {
    one.zip(other).is_none_or(|(one, other)| one.agrees(other))
}

/// Returns the bytes of a file; 0 if it is missing.
fn file_bytes(file: &Path) -> u64 {
    fs::metadata(file).map_or(0, |data| data.len())
}

fn folder_bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| file_bytes(&entry.path())).sum()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use model::{Decision, Declared, Machine, Run, RunId, Triage, UnixTime};

    use super::{Garbage, Retention};
    use crate::testing::{
        New, again, build, contract, decision, machine, parents, run, saved, store,
    };
    use crate::{Artifact, Store};

    contract!(
        only_what_is_replaced_and_old_is_waste,
        imported_runs_are_never_garbage,
        run_saved_later_but_measured_earlier_is_replaced,
        referenced_runs_are_never_deleted,
        artifacts_go_by_age_and_by_size,
        deleted_artifacts_free_space,
    );

    const ALL: Retention = Retention {
        runs_before_unix: UnixTime::MAX,
        artifacts_before_unix: None,
        artifacts_bytes_max: None,
    };

    fn at(hex: &str, seed: u64, started: i64) -> Run {
        Run {
            started_unix: UnixTime::new(started),
            ..run("aa", hex, seed)
        }
    }

    fn save(store: &Store, run: &Run) {
        let bytes: Vec<u8> = (0..20_000_u32)
            .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect();
        parents(store, run);
        store
            .save_run(
                run,
                &[Artifact {
                    name: "console",
                    bytes: &bytes,
                }],
            )
            .unwrap();
    }

    fn ids(runs: &[RunId]) -> Vec<&str> {
        runs.iter().map(RunId::hex).collect()
    }

    fn only_what_is_replaced_and_old_is_waste(new: New<'_>) {
        let (_home, store) = new();
        saved(&store, &at("01", 1, 100));
        saved(&store, &at("02", 2, 100));
        // The same as the first, but with one workload fewer, or with other operations: it replaces
        // no run.
        let mut less = at("03", 1, 200);
        less.results.truncate(1);
        saved(&store, &less);
        let mut other = at("04", 1, 200);
        other.results[0].operations = 7;
        saved(&store, &other);
        // And one in another unit.
        let mut unlike = at("06", 1, 250);
        unlike.results[0].declared = unlike.results[0].declared.take().map(|then| Declared {
            unit: "us".into(),
            ..then
        });
        saved(&store, &unlike);
        assert_eq!(store.find_garbage(&ALL).unwrap(), Garbage::default());
        saved(&store, &at("05", 1, 300));
        assert_eq!(ids(&store.find_garbage(&ALL).unwrap().runs), ["01", "03"]);
        let young = Retention {
            runs_before_unix: UnixTime::new(150),
            ..ALL
        };
        assert_eq!(ids(&store.find_garbage(&young).unwrap().runs), ["01"]);
    }

    fn imported_runs_are_never_garbage(new: New<'_>) {
        let (_home, store) = new();
        store.save_build(&build("aa")).unwrap();
        let imported = Machine::imported(machine("ee").id, "host (mmtests)".into(), vec![]);
        store.save_machine(&imported).unwrap();
        for (n, hex) in ["01", "02", "03"].into_iter().enumerate() {
            store.save_run(&at(hex, 0, 100 + n as i64), &[]).unwrap();
        }
        assert_eq!(store.find_garbage(&ALL).unwrap(), Garbage::default());
    }

    fn run_saved_later_but_measured_earlier_is_replaced(new: New<'_>) {
        let (_home, store) = new();
        saved(&store, &at("01", 1, 200));
        saved(&store, &at("02", 1, 100));
        assert_eq!(ids(&store.find_garbage(&ALL).unwrap().runs), ["02"]);
    }

    fn referenced_runs_are_never_deleted(new: New<'_>) {
        let (_home, store) = new();
        for (n, hex) in ["01", "02", "03"].into_iter().enumerate() {
            save(&store, &at(hex, 1, n as i64));
        }
        let before = store.find_garbage(&ALL).unwrap();
        assert_eq!(ids(&before.runs), ["01", "02"]);
        store
            .pin(&[&at("01", 1, 0).id], "marvin report run_01 run_03")
            .unwrap();
        store.pin(&[&at("01", 1, 0).id], "another user").unwrap();
        let garbage = store.find_garbage(&ALL).unwrap();
        assert_eq!((ids(&garbage.runs), garbage.referred), (vec!["02"], 1));
        // Also if it was pinned after it was found to be garbage.
        store.remove(&before).unwrap();
        assert_eq!(store.run(&at("01", 1, 0).id).unwrap(), at("01", 1, 0));
        assert_eq!(
            store.artifact(&at("01", 1, 0).id, "console").unwrap().len(),
            20_000
        );
        let by = store.artifact(&at("01", 1, 0).id, super::PINNED).unwrap();
        assert_eq!(by, b"marvin report run_01 run_03");
        assert!(store.run(&at("02", 1, 1).id).is_err());
        assert_eq!(store.runs(10).unwrap().len(), 2);
        let version = build("aa").version;
        let unknown = "9.9".to_owned();
        save(&store, &at("04", 1, 3));
        assert_eq!(ids(&store.find_garbage(&ALL).unwrap().runs), ["03"]);
        store
            .decide(&Decision {
                after: unknown,
                at: version,
                ..decision("x", Triage::Real)
            })
            .unwrap();
        assert!(store.find_garbage(&ALL).unwrap().runs.is_empty());
    }

    fn artifacts_go_by_age_and_by_size(new: New<'_>) {
        let (_home, store) = new();
        for n in 1..=4_u64 {
            save(&store, &at(&format!("{n:02x}"), n, n as i64 * 100));
        }
        save(&store, &at("05", 5, Run::NO_START.seconds()));
        let old = Retention {
            artifacts_before_unix: Some(UnixTime::new(250)),
            ..ALL
        };
        let garbage = store.find_garbage(&old).unwrap();
        assert_eq!(ids(&garbage.artifacts_of), ["01", "02"]);
        let each = garbage.bytes / 2;
        assert!(each > 0);
        let large = Retention {
            artifacts_bytes_max: Some(each),
            ..ALL
        };
        assert_eq!(
            ids(&store.find_garbage(&large).unwrap().artifacts_of),
            ["01", "02", "03", "04"]
        );
        store.remove(&garbage).unwrap();
        assert_eq!(store.run(&at("01", 1, 100).id).unwrap(), at("01", 1, 100));
        assert!(
            store
                .artifact_names(&at("01", 1, 100).id)
                .unwrap()
                .is_empty()
        );
        assert_eq!(
            store
                .artifact(&at("03", 3, 300).id, "console")
                .unwrap()
                .len(),
            20_000
        );
        assert!(store.find_garbage(&old).unwrap().artifacts_of.is_empty());
    }

    fn deleted_artifacts_free_space(new: New<'_>) {
        let (_home, store) = new();
        for n in 1..=40_u64 {
            save(&store, &at(&format!("{n:02x}"), 1, n as i64));
        }
        let before = store.size().unwrap();
        let follower = again(&store);
        let last = follower.runs_after(0, 100).unwrap().last().unwrap().0;
        let garbage = store.find_garbage(&ALL).unwrap();
        assert_eq!(garbage.runs.len(), 39);
        store.remove(&garbage).unwrap();
        store.compact().unwrap();
        assert!(store.size().unwrap() <= before);
        assert_eq!(store.runs(100).unwrap().len(), 1);
        // A reader of new runs misses none: numbers of deleted runs are not reused.
        save(&store, &at("ff", 1, 99));
        assert_eq!(follower.runs_after(last, 10).unwrap().len(), 1);
    }

    #[test]
    fn killed_garbage_collection_leaves_runs_whole_or_deleted() {
        let (home, store) = store();
        for (n, hex) in ["01", "02", "03"].into_iter().enumerate() {
            save(&store, &at(hex, 1, n as i64));
        }
        // Killed after the mark, before the commit.
        fs::create_dir_all(home.path().join("incoming/01")).unwrap();
        // Killed after the commit, before the files.
        fs::create_dir_all(home.path().join("incoming/02")).unwrap();
        store
            .remove(&Garbage {
                runs: vec![at("02", 1, 1).id],
                ..Garbage::default()
            })
            .unwrap();
        fs::create_dir_all(home.path().join("incoming/02")).unwrap();
        fs::create_dir_all(home.path().join("artefacts/02")).unwrap();
        fs::write(home.path().join("artefacts/02/console.zst"), "x").unwrap();
        // Killed after artifacts were deleted from the database, before their files.
        fs::create_dir_all(home.path().join("artefacts/0a")).unwrap();
        drop(store);
        let store = Store::open(home.path()).unwrap();
        assert_eq!(
            store.artifact(&at("01", 1, 0).id, "console").unwrap().len(),
            20_000
        );
        assert!(!home.path().join("artefacts/02").exists());
        store.compact().unwrap();
        assert!(!home.path().join("artefacts/0a").exists());
        assert!(
            home.path().join("artefacts/01").exists() && home.path().join("artefacts/03").exists()
        );
    }
}
