//! Results of LKP-tests: a directory `TEST/PARAMETERS/HOST/ROOTFS/CONFIG/COMPILER/COMMIT/N` with `stats.json`, one
//! number per stat; above it `matrix.json`, one number per stat and run, whose row `stats_source` names the run of each
//! column (`lib/matrix.rb` of intel/lkp-tests).
//!
//! Stats of the test itself (`will-it-scale.per_process_ops` of `will-it-scale`) are its results. The others come from
//! monitors, already aggregated; they are counted by monitor and skipped.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Foreign, LeftOut, Rows, is_name, shown};

/// The row of a matrix that names the run of each column.
const SOURCES: &str = "stats_source";

/// The origin of a result.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LkpResultPath {
    /// The test.
    pub test: String,
    /// Its parameters, as one word.
    pub parameters: String,
    /// The machine, or the group of equal machines.
    pub host: String,
    /// The file system it ran on.
    pub rootfs: String,
    /// The kernel config.
    pub config: String,
    /// The compiler of the kernel.
    pub compiler: String,
    /// The kernel.
    pub commit: String,
}

impl LkpResultPath {
    /// Parses the last seven parts of a path, which ends with the commit; `None` if there are fewer, or one is no name.
    #[must_use]
    pub fn of(path: &str) -> Option<Self> {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let last = parts.get(parts.len().checked_sub(7)?..)?;
        let [test, parameters, host, rootfs, config, compiler, commit] = <[&str; 7]>::try_from(last).ok()?;
        let fit = last.iter().all(|part| is_name(part));
        let own = str::to_owned;
        fit.then(|| Self {
            test: own(test),
            parameters: own(parameters),
            host: own(host),
            rootfs: own(rootfs),
            config: own(config),
            compiler: own(compiler),
            commit: own(commit),
        })
    }
}

/// Reads the stats of one run, a JSON object of numbers or of lists of numbers.
///
/// # Errors
/// If the document is invalid; the text says why.
pub fn lkp_run(place: &LkpResultPath, json: &[u8]) -> Result<Foreign, String> {
    let mut taken = Taken::new(place);
    for (stat, value) in object(json)? {
        match &value {
            _ if stat == SOURCES => {}
            Value::Array(values) => values.iter().for_each(|value| taken.take(&stat, value)),
            value => taken.take(&stat, value),
        }
    }
    Ok(taken.done())
}

/// Reads the matrix of several runs: the number and content of each run.
///
/// Rows shorter than the list of runs have no value for the last ones. A run in which a stat is missing has 0 there,
/// which looks like a measured 0.
///
/// # Errors
/// If the document is invalid, or does not name the runs of its columns.
pub fn lkp_columns(place: &LkpResultPath, json: &[u8]) -> Result<Vec<(u64, Foreign)>, String> {
    let object = object(json)?;
    let Some(Value::Array(sources)) = object.get(SOURCES) else {
        return Err(format!("it has no row {SOURCES}: nothing says which runs its columns are"));
    };
    let run_of = |source: &Value| {
        let path = source.as_str()?;
        path.rsplit('/').nth(1)?.parse::<u64>().ok()
    };
    let mut runs = Vec::new();
    for (column, source) in sources.iter().enumerate() {
        let Some(number) = run_of(source) else {
            return Err(format!("{SOURCES} names no run in column {column}: expected …/NUMBER/stats.json"));
        };
        let mut taken = Taken::new(place);
        for (stat, values) in object.iter().filter(|(stat, _)| *stat != SOURCES) {
            if let Some(value) = values.get(column) {
                taken.take(stat, value);
            }
        }
        runs.push((number, taken.done()));
    }
    Ok(runs)
}

fn object(json: &[u8]) -> Result<serde_json::Map<String, Value>, String> {
    match serde_json::from_slice(json) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err("it is no JSON object of stats".to_owned()),
        Err(error) => Err(format!("it is no JSON: {error}")),
    }
}

/// Stats while they are collected.
struct Taken<'a> {
    place: &'a LkpResultPath,
    rows: Rows,
    /// Stats of monitors, by monitor.
    others: BTreeMap<String, usize>,
}

impl<'a> Taken<'a> {
    fn new(place: &'a LkpResultPath) -> Self {
        let rows = Rows::new(&format!("{}/{}", place.test, place.parameters));
        Self { place, rows, others: BTreeMap::new() }
    }

    fn take(&mut self, stat: &str, value: &Value) {
        match stat.strip_prefix(self.place.test.as_str()).and_then(|rest| rest.strip_prefix('.')) {
            Some(row) => match value.as_f64() {
                Some(number) => self.rows.put(row, &number.to_string(), "stats"),
                None => self.rows.put(row, &value.to_string(), "stats"),
            },
            None => {
                let monitor = stat.split('.').next().unwrap_or_default();
                *self.others.entry(shown(monitor)).or_default() += 1;
            }
        }
    }

    fn done(self) -> Foreign {
        let mut foreign = Foreign::default();
        let LkpResultPath { host, rootfs, config, compiler, commit, .. } = self.place;
        for (name, value) in
            [("host", host), ("rootfs", rootfs), ("config", config), ("compiler", compiler), ("kernel", commit)]
        {
            foreign.environment.push((name.to_owned(), value.clone()));
        }
        self.rows.into(&mut foreign);
        for (monitor, count) in self.others {
            let why = format!("{count} stats of a monitor and not of {}", self.place.test);
            foreign.left_out.push(LeftOut { what: monitor, why });
        }
        foreign
    }
}
