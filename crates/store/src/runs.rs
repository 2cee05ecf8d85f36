//! Runs in the store: saved once, whole or not at all, then only read.

use model::{BuildId, KernelName, MachineId, Run, RunId, WorkloadResult};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::artefacts::{self, Packed};
use crate::builds::Name;
use crate::codes::{self, OutcomeColumns};
use crate::columns::{Id, PairTable, Unsigned};
use crate::lookup::{Place, unknown};
use crate::samples::{self, Samples};
use crate::store::{run_exists, write};
use crate::{Artefact, Store, StoreError};

pub(crate) const PLACE: Place =
    Place { noun: "run", select: "SELECT id FROM runs WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT ?3" };

const ENVIRONMENTS: PairTable = PairTable {
    insert: "INSERT INTO environments VALUES (?1, ?2, ?3, ?4)",
    select: "SELECT name, value FROM environments WHERE run = ?1 ORDER BY position",
};

const SELECT_RESULTS: &str = "\
    SELECT workload, operations, outcome, stage, reason, detail, console_tail, samples, counted
    FROM results WHERE run = ?1 ORDER BY position";

const SELECT_SUMMARIES: &str = "\
    SELECT runs.id, build, machine, suite, seed, started_unix, builds.name, builds.version,
        (SELECT count(*) FROM results WHERE run = number AND outcome = 'completed'),
        (SELECT count(*) FROM results WHERE run = number AND outcome = 'unsupported'),
        (SELECT count(*) FROM results WHERE run = number AND outcome = 'failed')
    FROM runs JOIN builds ON builds.id = build
    ORDER BY started_unix DESC, number DESC LIMIT ?1";

/// A run in a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSummary {
    /// Its id.
    pub id: RunId,
    /// What was booted.
    pub build: BuildId,
    /// The name the build was last asked for by.
    pub kernel: KernelName,
    /// The build's version.
    pub version: String,
    /// Where.
    pub machine: MachineId,
    /// The suite's name.
    pub suite: String,
    /// The seed.
    pub seed: u64,
    /// When it began, in seconds since 1970-01-01 UTC.
    pub started_unix: i64,
    /// Workloads that completed.
    pub completed: usize,
    /// Workloads that the kernel does not support.
    pub unsupported: usize,
    /// Workloads that the kernel failed.
    pub failed: usize,
}

impl Store {
    /// Saves a run with its artefacts: all of it or, whatever happens meanwhile, nothing. Its build and its machine
    /// are saved before it.
    ///
    /// # Errors
    /// When a run of that id is there already, or the home cannot be written.
    pub fn save_run(&self, run: &Run, artefacts: &[Artefact<'_>]) -> Result<(), StoreError> {
        let packed = artefacts::pack(artefacts)?;
        let saved = self.save_packed(run, &packed);
        if saved.is_err() {
            // That error says more than one met while clearing away could, and the next one to open sweeps again.
            self.sweep().ok();
        }
        saved
    }

    fn save_packed(&self, run: &Run, packed: &[Packed<'_>]) -> Result<(), StoreError> {
        let transaction = self.ask(write)?;
        if self.ask(|connection| run_exists(connection, &run.id))? {
            return Err(StoreError::RunExists(run.id.clone()));
        }
        insert(&transaction, run, packed).map_err(|error| self.home.sql_of(error, || run.id.to_string()))?;
        self.place(&run.id, packed)?;
        self.ask(|_| transaction.commit())?;
        // It is saved; a mark that cannot be removed now is swept later.
        self.home.remove(&self.home.incoming_of(&run.id)).ok();
        Ok(())
    }

    /// Returns a run.
    ///
    /// # Errors
    /// When there is none of that id, or the database cannot be read.
    pub fn run(&self, id: &RunId) -> Result<Run, StoreError> {
        self.ask(|connection| {
            let head = connection
                .prepare_cached("SELECT number, id, build, machine, suite, seed, started_unix FROM runs WHERE id = ?1")?
                .query_row([id.hex()], head)
                .optional()?;
            head.map(|head| complete(connection, head)).transpose()
        })?
        .ok_or_else(|| unknown(&PLACE, id))
    }

    /// Returns the id of the one run whose id begins with `prefix`: digits, with or without `run_`.
    ///
    /// # Errors
    /// When it is no beginning of an id, or that of none or of several.
    pub fn find_run(&self, prefix: &str) -> Result<RunId, StoreError> {
        self.find(&PLACE, &prefix.parse::<RunId>()?)
    }

    /// Lists at most `limit` runs, the newest first.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn runs(&self, limit: usize) -> Result<Vec<RunSummary>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.ask(|connection| connection.prepare_cached(SELECT_SUMMARIES)?.query_map([limit], summary)?.collect())
    }

    /// Returns all runs of a build on a machine for a suite, the oldest first.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn runs_of(&self, build: &BuildId, machine: &MachineId, suite: &str) -> Result<Vec<Run>, StoreError> {
        self.ask(|connection| {
            connection
                .prepare_cached(
                    "SELECT number, id, build, machine, suite, seed, started_unix FROM runs
                     WHERE build = ?1 AND machine = ?2 AND suite = ?3 ORDER BY started_unix, number",
                )?
                .query_map(params![build.hex(), machine.hex(), suite], head)?
                .map(|head| complete(connection, head?))
                .collect()
        })
    }
}

fn insert(connection: &Connection, run: &Run, packed: &[Packed<'_>]) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO runs (id, build, machine, suite, seed, started_unix)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            run.id.hex(),
            run.build.hex(),
            run.machine.hex(),
            run.suite,
            Unsigned(run.seed),
            run.started_unix
        ])?;
    let number = connection.last_insert_rowid();
    ENVIRONMENTS.save(connection, &number, &run.environment)?;
    let mut statement =
        connection.prepare_cached("INSERT INTO results VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)")?;
    for (position, result) in run.results.iter().enumerate() {
        let columns = OutcomeColumns::of(&result.outcome);
        statement.execute(params![
            number,
            position,
            result.workload,
            Unsigned(result.operations),
            columns.outcome,
            columns.stage,
            columns.reason,
            columns.detail,
            columns.console_tail,
            samples::Packed(&result.samples),
            samples::Packed(&samples::of_regions(&result.counted)),
        ])?;
    }
    let mut statement = connection.prepare_cached("INSERT INTO artefacts VALUES (?1, ?2, ?3)")?;
    for artefact in packed {
        statement.execute(params![number, artefact.name, artefact.size])?;
    }
    Ok(())
}

/// Reads a run's own row, and the number by which the rest of it is found.
pub(crate) fn head(row: &Row<'_>) -> rusqlite::Result<(i64, Run)> {
    let run = Run {
        id: row.get::<_, Id<RunId>>(1)?.0,
        build: row.get::<_, Id<BuildId>>(2)?.0,
        machine: row.get::<_, Id<MachineId>>(3)?.0,
        suite: row.get(4)?,
        seed: row.get::<_, Unsigned>(5)?.0,
        started_unix: row.get(6)?,
        environment: Vec::new(),
        results: Vec::new(),
    };
    Ok((row.get(0)?, run))
}

pub(crate) fn complete(connection: &Connection, head: (i64, Run)) -> rusqlite::Result<Run> {
    let (number, run) = head;
    Ok(Run {
        environment: ENVIRONMENTS.load(connection, &number)?,
        results: connection.prepare_cached(SELECT_RESULTS)?.query_map([number], result)?.collect::<Result<_, _>>()?,
        ..run
    })
}

fn result(row: &Row<'_>) -> rusqlite::Result<WorkloadResult> {
    Ok(WorkloadResult {
        workload: row.get(0)?,
        operations: row.get::<_, Unsigned>(1)?.0,
        outcome: codes::outcome(row, 2)?,
        samples: row.get::<_, Samples>(7)?.0,
        counted: samples::to_regions(&row.get::<_, Samples>(8)?.0),
    })
}

fn summary(row: &Row<'_>) -> rusqlite::Result<RunSummary> {
    Ok(RunSummary {
        id: row.get::<_, Id<RunId>>(0)?.0,
        build: row.get::<_, Id<BuildId>>(1)?.0,
        machine: row.get::<_, Id<MachineId>>(2)?.0,
        suite: row.get(3)?,
        seed: row.get::<_, Unsigned>(4)?.0,
        started_unix: row.get(5)?,
        kernel: row.get::<_, Name>(6)?.0,
        version: row.get(7)?,
        completed: row.get(8)?,
        unsupported: row.get(9)?,
        failed: row.get(10)?,
    })
}

#[cfg(test)]
mod tests;
