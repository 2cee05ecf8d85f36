//! Runs in the store: saved once, whole or not at all, then only read.

use std::time::Duration;

use model::{BuildId, Declared, KernelName, MachineId, Run, RunId, UnixTime, WorkloadResult};
use rusqlite::types::{FromSqlError, ToSqlOutput};

use crate::artifacts::{self, Packed};
use crate::builds::Name;
use crate::checksum::{Mismatch, checksum};
use crate::codes::{self, Code, OutcomeColumns};
use crate::columns::{self, Id, PairTable, Time, Unsigned, text, whole};
use crate::database::{Database, Failure, Row};
use crate::lookup::{IdTable, unknown};
use crate::samples::{self, Samples};
use crate::store::run_exists;
use crate::{Artifact, Store, StoreError};

pub(crate) const PLACE: IdTable = IdTable {
    noun: "run",
    select: "SELECT id FROM runs WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT ?3",
};

const ENVIRONMENTS: PairTable = PairTable {
    table: "environments",
    select: "SELECT name, value FROM environments WHERE run = ?1 ORDER BY position",
};

const SELECT_RESULTS: &str = "\
    SELECT workload, operations, outcome, stage, reason, detail, console_tail, samples, counted, declared, checksum
    FROM results WHERE run = ?1 ORDER BY position";

const SELECT_SUMMARIES: &str = "\
    SELECT runs.id, build, machine, suite, seed, started_unix, builds.name, builds.version,
        (SELECT count(*) FROM results WHERE run = number AND outcome = 'completed'),
        (SELECT count(*) FROM results WHERE run = number AND outcome = 'unsupported'),
        (SELECT count(*) FROM results WHERE run = number AND outcome = 'failed')
    FROM runs JOIN builds ON builds.id = build";
const NEWEST_FIRST: &str = "ORDER BY started_unix DESC, number DESC";

/// How often to retry saving a run on a server that is down, and the pause in between.
const RETURN_TRIES: u32 = 30;
const RETURN_WAIT: Duration = Duration::from_secs(2);

/// A summary of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSummary {
    pub id: RunId,
    pub build: BuildId,
    /// The name by which the build was last selected.
    pub kernel: KernelName,
    pub version: String,
    pub machine: MachineId,
    pub suite: String,
    pub seed: u64,
    /// When it began.
    pub started_unix: UnixTime,
    pub completed: usize,
    /// Workloads that the kernel does not support.
    pub unsupported: usize,
    /// Workloads that the kernel failed.
    pub failed: usize,
}

impl Store {
    /// Saves a run with its artifacts, completely or not at all. Its build and its machine are
    /// saved before it. Waits up to a minute for a server that is down.
    ///
    /// # Errors
    /// If a run of that id is there already, or the store cannot be written.
    pub fn save_run(&self, run: &Run, artifacts: &[Artifact<'_>]) -> Result<(), StoreError> {
        let packed = artifacts::pack(artifacts)?;
        let mut saved = self.save_packed(run, &packed);
        for _ in 0..RETURN_TRIES {
            if !matches!(saved, Err(StoreError::Gone { .. })) {
                break;
            }
            std::thread::sleep(RETURN_WAIT);
            saved = match self.save_packed(run, &packed) {
                // It may be saved already, with only the server's answer lost.
                Err(StoreError::RunExists(_))
                    if self.run(&run.id).is_ok_and(|found| found == *run) =>
                {
                    Ok(())
                }
                again => again,
            };
        }
        if saved.is_err() {
            // That error matters more than one from cleaning up, and the next process to open the
            // store sweeps again.
            self.sweep().ok();
        }
        saved
    }

    fn save_packed(&self, run: &Run, packed: &[Packed<'_>]) -> Result<(), StoreError> {
        let transaction = self.with(Database::write)?;
        if self.with(|database| run_exists(database, &run.id))? {
            return Err(StoreError::RunExists(run.id.clone()));
        }
        insert(&self.database, run, packed)
            .map_err(|error| self.home.to_error_of(error, || run.id.to_string()))?;
        self.place(&run.id, packed)?;
        self.with(|_| transaction.commit())?;
        // The run is saved; a mark that cannot be removed now is swept later.
        self.unmark(&run.id);
        Ok(())
    }

    /// Returns a run.
    ///
    /// # Errors
    /// If there is none of that id, or the store cannot be read.
    pub fn run(&self, id: &RunId) -> Result<Run, StoreError> {
        let select =
            "SELECT number, id, build, machine, suite, seed, started_unix FROM runs WHERE id = ?1";
        self.with(|database| {
            let _whole = database.read()?;
            database
                .row(select, &[&id.hex()], head)?
                .map(|(number, run)| complete(database, number, run))
                .transpose()
        })?
        .ok_or_else(|| unknown(&PLACE, id))
    }

    /// Returns the id of the one run whose id begins with `prefix`: digits, with or without `run_`.
    ///
    /// # Errors
    /// If it is no beginning of an id, or that of none or of several.
    pub fn find_run(&self, prefix: &str) -> Result<RunId, StoreError> {
        self.find(&PLACE, &prefix.parse::<RunId>()?)
    }

    /// Lists at most `limit` runs, the newest first.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn runs(&self, limit: usize) -> Result<Vec<RunSummary>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let select = format!("{SELECT_SUMMARIES} {NEWEST_FIRST} LIMIT ?1");
        self.with(|database| database.rows(&select, &[&limit], summary))
    }

    /// Lists all runs of a build, on any machine and for any suite, the newest first.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn runs_of_build(&self, build: &BuildId) -> Result<Vec<RunSummary>, StoreError> {
        let select = format!("{SELECT_SUMMARIES} WHERE build = ?1 {NEWEST_FIRST}");
        self.with(|database| database.rows(&select, &[&build.hex()], summary))
    }

    /// Returns all runs of a build on a machine for a suite, the oldest first.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn runs_of(
        &self,
        build: &BuildId,
        machine: &MachineId,
        suite: &str,
    ) -> Result<Vec<Run>, StoreError> {
        let select = "SELECT number, id, build, machine, suite, seed, started_unix FROM runs
                      WHERE build = ?1 AND machine = ?2 AND suite = ?3 ORDER BY started_unix, number";
        self.with(|database| {
            let _whole = database.read()?;
            let heads = database.rows(select, &[&build.hex(), &machine.hex(), &suite], head)?;
            heads
                .into_iter()
                .map(|(number, run)| complete(database, number, run))
                .collect()
        })
    }
}

fn insert(database: &Database, run: &Run, packed: &[Packed<'_>]) -> Result<(), Failure> {
    let number: i64 = database
        .row(
            "INSERT INTO runs (id, build, machine, suite, seed, started_unix)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6) RETURNING number",
            &[
                &run.id.hex(),
                &run.build.hex(),
                &run.machine.hex(),
                &run.suite,
                &Unsigned(run.seed),
                &Time(run.started_unix),
            ],
            |row| row.get(0),
        )?
        // Inserts return the row; only a foreign trigger could suppress it.
        .ok_or(Failure::Sqlite(rusqlite::Error::QueryReturnedNoRows))?;
    ENVIRONMENTS.save(database, &number, &run.environment)?;
    let rows: Vec<_> = run
        .results
        .iter()
        .enumerate()
        .map(|(n, result)| columns_of(number, n, result))
        .collect();
    database.insert("results", &rows)?;
    artifacts::insert(database, number, packed)
}

/// Returns the columns of a result, in the table's order.
fn columns_of(run: i64, position: usize, result: &WorkloadResult) -> [ToSqlOutput<'_>; 13] {
    let columns = OutcomeColumns::from_outcome(&result.outcome);
    [
        run.into(),
        whole(position),
        text(result.workload.as_str()),
        Unsigned(result.operations).into(),
        text(columns.outcome),
        text(columns.stage),
        text(columns.reason),
        text(columns.detail),
        text(columns.console_tail),
        samples::packed(&result.samples),
        samples::packed(&samples::of_regions(&result.counted)),
        codes::declared(result.declared.as_ref()),
        i64::from(checksum(result)).into(),
    ]
}

/// Reads a run's own row, and the number that the other tables refer to.
pub(crate) fn head(row: &Row<'_>) -> Result<(i64, Run), Failure> {
    let run = Run {
        id: row.get::<Id<RunId>>(1)?.0,
        build: row.get::<Id<BuildId>>(2)?.0,
        machine: row.get::<Id<MachineId>>(3)?.0,
        suite: row.get(4)?,
        seed: row.get::<Unsigned>(5)?.0,
        started_unix: columns::time(row, 6)?,
        environment: Vec::new(),
        results: Vec::new(),
    };
    Ok((row.get(0)?, run))
}

pub(crate) fn complete(database: &Database, number: i64, run: Run) -> Result<Run, Failure> {
    Ok(Run {
        environment: ENVIRONMENTS.load(database, &number)?,
        results: database.rows(SELECT_RESULTS, &[&number], result)?,
        ..run
    })
}

fn result(row: &Row<'_>) -> Result<WorkloadResult, Failure> {
    let result = WorkloadResult {
        workload: row.get(0)?,
        operations: row.get::<Unsigned>(1)?.0,
        declared: row.get::<Option<Code<Declared>>>(9)?.map(|code| code.0),
        outcome: codes::outcome(row, 2)?,
        samples: row.get::<Samples>(7)?.0,
        counted: samples::to_regions(&row.get::<Samples>(8)?.0),
    };
    match row.get::<Option<i64>>(10)? {
        Some(stored) if stored != i64::from(checksum(&result)) => {
            Err(FromSqlError::Other(Box::new(Mismatch(result.workload))).into())
        }
        _ => Ok(result),
    }
}

fn summary(row: &Row<'_>) -> Result<RunSummary, Failure> {
    Ok(RunSummary {
        id: row.get::<Id<RunId>>(0)?.0,
        build: row.get::<Id<BuildId>>(1)?.0,
        machine: row.get::<Id<MachineId>>(2)?.0,
        suite: row.get(3)?,
        seed: row.get::<Unsigned>(4)?.0,
        started_unix: columns::time(row, 5)?,
        kernel: row.get::<Name>(6)?.0,
        version: row.get(7)?,
        completed: row.get(8)?,
        unsupported: row.get(9)?,
        failed: row.get(10)?,
    })
}

#[cfg(test)]
mod tests;
