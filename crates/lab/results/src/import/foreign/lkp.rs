//! Results of LKP-tests: a directory `TEST/PARAMETERS/HOST/ROOTFS/CONFIG/COMPILER/COMMIT/N` with
//! `stats.json`, one number per stat; above it `matrix.json`, one number per stat and run, whose
//! row `stats_source` names the run of each column (`lib/matrix.rb` of intel/lkp-tests).
//!
//! Stats of the test itself (`will-it-scale.per_process_ops` of `will-it-scale`) are its results.
//! The others come from monitors, already aggregated; they are kept beside the results, without a
//! direction.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use model::UnixTime;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;

use super::{COLUMNS_MAX, Foreign, LeftOut, RUN_VALUES_MAX, Rows, is_name, shown};

/// The row of a matrix that names the run of each column.
const SOURCES: &str = "stats_source";

/// Most values of a matrix: its runs repeat the name of each row.
const MATRIX_VALUES_MAX: usize = 200_000;
/// The year 2100: a run that began later would be the newest one for ever.
const START_MAX: i64 = 4_102_444_800;
/// Largest value of a monitor's stat: means and variances of more could be infinite.
const STAT_MAX: f64 = 1e100;
/// Most stats of monitors of a run, and of all runs of a matrix.
const MONITOR_STATS_MAX: usize = 50_000;
const MATRIX_STATS_MAX: usize = 500_000;

/// Longest name of a monitor's stat, in bytes.
const STAT_NAME_MAX: usize = 300;

/// Most values that are named because they are no numbers.
const SKIPPED_MAX: usize = 200;

/// The origin of a result.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LkpResultPath {
    pub test: String,
    /// Its parameters, as one word.
    pub parameters: String,
    /// The machine, or the group of equal machines.
    pub host: String,
    /// The file system it ran on.
    pub rootfs: String,
    pub config: String,
    /// The compiler of the kernel.
    pub compiler: String,
    pub commit: String,
}

impl LkpResultPath {
    /// Parses the last seven parts of a path, which ends with the commit; `None` if there are
    /// fewer, or one is no name.
    #[must_use]
    pub fn parse(path: &str) -> Option<Self> {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let last = parts.get(parts.len().checked_sub(7)?..)?;
        let [test, parameters, host, rootfs, config, compiler, commit] =
            <[&str; 7]>::try_from(last).ok()?;
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

/// Returns the start of a run according to its `job.yaml`.
///
/// `bin/run-lkp` of LKP-tests appends `start_time` and `end_time`, which may be quoted. The end
/// stands in for the start, as in `rt_create_time_from_job` of its `lib/result_root.rb`.
#[must_use]
pub fn lkp_started(job: &[u8]) -> Option<UnixTime> {
    let text = String::from_utf8_lossy(job);
    let seconds = |name: &str| {
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        let value = value.trim().trim_matches(|c| c == '\'' || c == '"');
        let seconds = value.parse().ok();
        let seconds = seconds.filter(|seconds| (1..START_MAX).contains(seconds))?;
        Some(UnixTime::new(seconds))
    };
    seconds("start_time").or_else(|| seconds("end_time"))
}

/// Reads the stats of one run, a JSON object of numbers or of lists of numbers.
///
/// # Errors
/// If the document is invalid; the text says why.
pub fn lkp_run(place: &LkpResultPath, json: &[u8]) -> Result<Foreign, String> {
    let mut taken = Taken::new(place, RUN_VALUES_MAX);
    read(json, &mut |stat, _, value| {
        if taken.row(stat).is_some() {
            taken.take(stat, &value);
        } else if stat != SOURCES {
            taken.take_monitor(stat, &value, MONITOR_STATS_MAX);
        }
        Ok(())
    })?;
    Ok(taken.done())
}

/// Reads the matrix of several runs: the number and content of each run.
///
/// Rows shorter than the list of runs have no value for the last ones. A run in which a stat is
/// missing has 0 there, which looks like a measured 0.
///
/// # Errors
/// If the document is invalid, has more runs or values of the test than their limits, or does not
/// name the runs of its columns.
pub fn lkp_columns(place: &LkpResultPath, json: &[u8]) -> Result<Vec<(u64, Foreign)>, String> {
    let mut columns: Vec<Taken<'_>> = Vec::new();
    let mut sources: Option<Vec<Option<u64>>> = None;
    let mut values = 0;
    let mut stats_left = MATRIX_STATS_MAX;
    read(json, &mut |stat, index, value| {
        let Some(column) = index else { return Ok(()) };
        if column >= COLUMNS_MAX {
            return Err(format!(
                "the row {} has more than {COLUMNS_MAX} runs",
                shown(stat)
            ));
        }
        if stat == SOURCES {
            sources.get_or_insert_default().push(match value {
                Cell::Text(source) => run_of(&source),
                Cell::Number(_) | Cell::Other => None,
            });
            return Ok(());
        }
        while columns.len() <= column {
            columns.push(Taken::new(place, MATRIX_VALUES_MAX));
        }
        if columns[column].row(stat).is_some() {
            columns[column].take(stat, &value);
            values += 1;
        } else {
            let most = MONITOR_STATS_MAX.min(stats_left);
            columns[column].take_monitor(stat, &value, most);
            stats_left = stats_left.saturating_sub(1);
        }
        if values > MATRIX_VALUES_MAX {
            return Err(format!(
                "it has more than {MATRIX_VALUES_MAX} values of {}",
                place.test
            ));
        }
        Ok(())
    })?;
    let Some(sources) = sources else {
        return Err(format!(
            "it has no row {SOURCES}, which names the run of each column"
        ));
    };
    let mut columns = columns.into_iter();
    let mut runs = Vec::new();
    for (column, number) in sources.into_iter().enumerate() {
        let Some(number) = number else {
            return Err(format!(
                "{SOURCES} names no run in column {column}: expected …/NUMBER/stats.json"
            ));
        };
        let taken = columns.next().unwrap_or_else(|| Taken::new(place, 0));
        runs.push((number, taken.done()));
    }
    Ok(runs)
}

/// Returns the number of a run from the path of its stats.
fn run_of(source: &str) -> Option<u64> {
    source.rsplit('/').nth(1)?.parse().ok()
}

/// A value of a document.
enum Cell<'a> {
    Number(f64),
    Text(Cow<'a, str>),
    /// A list in a list, an object, or nothing.
    Other,
}

/// Receives a stat, its position in a list, and the value there.
type Take<'a> = dyn FnMut(&str, Option<usize>, Cell<'_>) -> Result<(), String> + 'a;

/// Reads an object of stats value by value: a tree of a document in memory would be many times its
/// size.
fn read(json: &[u8], take: &mut Take<'_>) -> Result<(), String> {
    let mut document = serde_json::Deserializer::from_slice(json);
    let read = Object { take }
        .deserialize(&mut document)
        .and_then(|()| document.end());
    read.map_err(|error| match (error.classify(), error.to_string()) {
        (Category::Data, text) if text.starts_with("invalid type") => {
            "it is no JSON object of stats".to_owned()
        }
        // An error of `take`, to which serde_json appends ` at line 1 column 2`.
        (Category::Data, text) => text
            .rsplit_once(" at line ")
            .map_or(text.clone(), |(why, _)| why.to_owned()),
        (_, text) => format!("it is no JSON: {text}"),
    })
}

struct Object<'a, 'b> {
    take: &'a mut Take<'b>,
}

impl<'de> DeserializeSeed<'de> for Object<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Object<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of stats")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(stat) = map.next_key::<String>()? {
            map.next_value_seed(Values {
                stat: &stat,
                index: None,
                take: self.take,
            })?;
        }
        Ok(())
    }
}

/// The value or the values of a stat.
struct Values<'a, 'b> {
    stat: &'a str,
    index: Option<usize>,
    take: &'a mut Take<'b>,
}

impl Values<'_, '_> {
    fn put<E: serde::de::Error>(self, cell: Cell<'_>) -> Result<(), E> {
        (self.take)(self.stat, self.index, cell).map_err(E::custom)
    }
}

impl<'de> DeserializeSeed<'de> for Values<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Values<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number or a list of numbers")
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<(), E> {
        self.put(Cell::Number(value))
    }

    #[expect(clippy::cast_precision_loss, reason = "JSON numbers are doubles")]
    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<(), E> {
        self.put(Cell::Number(value as f64))
    }

    #[expect(clippy::cast_precision_loss, reason = "JSON numbers are doubles")]
    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<(), E> {
        self.put(Cell::Number(value as f64))
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<(), E> {
        self.put(Cell::Text(Cow::Borrowed(value)))
    }

    fn visit_bool<E: serde::de::Error>(self, _: bool) -> Result<(), E> {
        self.put(Cell::Other)
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        self.put(Cell::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        if self.index.is_some() {
            while list.next_element::<IgnoredAny>()?.is_some() {}
            return self.put(Cell::Other);
        }
        let mut index = 0;
        while list
            .next_element_seed(Values {
                stat: self.stat,
                index: Some(index),
                take: self.take,
            })?
            .is_some()
        {
            index += 1;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        self.put(Cell::Other)
    }
}

/// Stats while they are collected.
struct Taken<'a> {
    place: &'a LkpResultPath,
    rows: Rows,
    /// Means of stats of monitors, and of how many values.
    stats: BTreeMap<String, (f64, f64)>,
    /// Stats of monitors with a value that could not be read.
    damaged: BTreeSet<String>,
    /// Stats of monitors beyond their limit.
    beyond: usize,
    /// Values that are no numbers.
    skipped: Vec<LeftOut>,
}

impl<'a> Taken<'a> {
    fn new(place: &'a LkpResultPath, most: usize) -> Self {
        let rows = Rows::new(&format!("{}/{}", place.test, place.parameters), most);
        Self {
            place,
            rows,
            stats: BTreeMap::new(),
            damaged: BTreeSet::new(),
            beyond: 0,
            skipped: Vec::new(),
        }
    }

    /// Returns the name of a row if the stat is one of the test. A test that is one way to run a
    /// program has the program's stats: `fio.read_iops` of `fio-basic`, `iozone.write` of `nfsiozone`.
    fn row<'b>(&self, stat: &'b str) -> Option<&'b str> {
        let test = self.place.test.as_str();
        let (program, row) = stat.split_once('.')?;
        let is_way = |rest: &str| rest.is_empty() || rest.starts_with('-');
        let is_program = test.strip_prefix(program).is_some_and(is_way)
            || test.strip_prefix("nfs") == Some(program);
        if is_program && !row.is_empty() {
            return Some(row);
        }
        // The test's name may have a dot.
        stat.strip_prefix(test)?.strip_prefix('.')
    }

    /// Takes a stat of a monitor: the mean of its values, if it has several.
    fn take_monitor(&mut self, stat: &str, value: &Cell<'_>, most: usize) {
        let number = match value {
            Cell::Number(number) => Some(*number),
            Cell::Text(text) => super::number(text).ok(),
            Cell::Other => None,
        };
        let is_fit = stat.len() <= STAT_NAME_MAX && !stat.contains(char::is_control);
        let Some(number) = number.filter(|number| number.abs() <= STAT_MAX) else {
            let text = match value {
                Cell::Number(number) => format!("{number:e}"),
                Cell::Text(text) => text.to_string(),
                Cell::Other => "no number".to_owned(),
            };
            self.skip(stat, &text);
            if is_fit && self.damaged.len() < most {
                self.damaged.insert(stat.to_owned());
            }
            return;
        };
        if let Some((mean, count)) = self.stats.get_mut(stat) {
            *count += 1.0;
            *mean += (number - *mean) / *count;
        } else if is_fit && self.stats.len() < most {
            self.stats.insert(stat.to_owned(), (number, 1.0));
        } else {
            self.beyond += 1;
        }
    }

    fn take(&mut self, stat: &str, value: &Cell<'_>) {
        let row = self.row(stat).unwrap_or_default();
        match value {
            Cell::Number(number) if *number >= 0.0 => self.rows.put_number(row, *number),
            Cell::Number(number) => self.skip(stat, &number.to_string()),
            Cell::Text(text) => match super::number(text) {
                Ok(number) => self.rows.put_number(row, number),
                Err(_) => self.skip(stat, text),
            },
            Cell::Other => self.skip(stat, "no number"),
        }
    }

    /// Leaves one value out, by itself: the others of the row are what they are.
    fn skip(&mut self, stat: &str, text: &str) {
        if self.skipped.len() < SKIPPED_MAX {
            let why = format!("a value that is no number, or negative: {}", shown(text));
            self.skipped.push(LeftOut::new(stat, why));
        }
    }

    fn done(self) -> Foreign {
        let mut foreign = Foreign::default();
        foreign.left_out.extend(self.skipped);
        let LkpResultPath {
            host,
            rootfs,
            config,
            compiler,
            commit,
            ..
        } = self.place;
        for (name, value) in [
            ("host", host),
            ("rootfs", rootfs),
            ("config", config),
            ("compiler", compiler),
            ("kernel", commit),
        ] {
            foreign.environment.push((name.to_owned(), value.clone()));
        }
        self.rows.into(&mut foreign);
        for (stat, (mean, _)) in self.stats {
            foreign.stats.insert(stat, Some(mean));
        }
        // Without a value it would be taken for zero, as these lists leave zeros out.
        for stat in self.damaged {
            foreign.stats.insert(stat, None);
        }
        if self.beyond > 0 {
            let why = format!("stats of monitors beyond their limit ({})", self.beyond);
            foreign.left_out.push(LeftOut::new("monitors", why));
        }
        foreign
    }
}
