//! Rows of a result file while they are collected: names that fit tables and commands, values that
//! are numbers, and a list of what was left out and why.

use std::collections::{BTreeMap, BTreeSet};

use model::{Direction, Pick};

use super::number::{Sign, parse_number_as};
use crate::tools::printed::digits;

/// Most rows of a file.
const ROWS_MAX: usize = 20_000;
/// Most values of a file.
const VALUES_MAX: usize = 2_000_000;
/// Longest name of a row, in bytes.
const NAME_MAX: usize = 120;
/// Most kinds of skipped data that are named.
const LEFT_OUT_MAX: usize = 200;

/// A row of a result file.
#[derive(Debug, Clone, PartialEq)]
pub struct FileRow {
    /// The kernel, if the file has several.
    pub kernel: Option<String>,
    /// The run, if the file has several.
    pub run: Option<String>,
    /// Printable ASCII without spaces.
    pub name: String,
    /// Empty if not known.
    pub unit: String,
    /// `None` if not known.
    pub direction: Option<Direction>,
    pub samples: Vec<f64>,
    /// Whether values of several files of one run add up.
    pub is_sum: bool,
    /// Of how many values the sample is the mean; 0 if samples are values.
    pub mean_of: usize,
}

/// The content of a result file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FileContent {
    /// What it says of host and kernel: `kernel`, `host`, `started`.
    pub facts: BTreeMap<String, String>,
    pub rows: Vec<FileRow>,
    /// What was left out, and why.
    pub left_out: Vec<(String, String)>,
}

/// The row that a value belongs to.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RowHead {
    pub(super) kernel: Option<String>,
    pub(super) run: Option<String>,
    /// As the file has it.
    pub(super) name: String,
    pub(super) unit: String,
    pub(super) direction: Option<Direction>,
    /// Whether its name with another unit is another row, and not a mistake.
    pub(super) are_units_rows: bool,
    /// A part of the file: the last value of each part is a sample.
    pub(super) part: Option<String>,
}

/// How values become samples.
#[derive(Debug, Clone, Copy)]
pub(super) struct Conversion {
    pub(super) factor: f64,
    pub(super) is_zero_unmeasured: bool,
    pub(super) pick: Pick,
    pub(super) is_mean: bool,
}

impl Conversion {
    /// Each value as it is.
    pub(super) const PLAIN: Self = Self {
        factor: 1.0,
        is_zero_unmeasured: false,
        pick: Pick::All,
        is_mean: false,
    };
}

/// A row while its values come.
#[derive(Debug)]
struct GrowingRow {
    head: RowHead,
    pick: Pick,
    samples: Vec<f64>,
    mean_of: usize,
}

#[derive(Debug, Default)]
pub(super) struct Collector {
    /// The decimal sign of the file.
    pub(super) sign: Sign,
    rows: Vec<GrowingRow>,
    /// Positions of rows by kernel, run, and name as the file has it.
    places: BTreeMap<(Option<String>, Option<String>, String), usize>,
    values: usize,
    beyond: usize,
    left_out: BTreeMap<(String, String), usize>,
}

impl Collector {
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Adds a value; one that is no number is left out by itself, for the others of the row are
    /// what they are.
    pub(super) fn put(&mut self, head: &RowHead, text: &str, conversion: Conversion) {
        let Conversion {
            factor,
            is_zero_unmeasured,
            ..
        } = conversion;
        let value = parse_number_as(text, self.sign).and_then(|value| match value {
            0.0 if is_zero_unmeasured => Err("0: not measured".to_owned()),
            value if value < 0.0 => Err(format!("{value} is negative")),
            value => Ok(value * factor),
        });
        match value {
            Ok(value) => self.add(head, value, conversion),
            Err(why) => self.leave_out(&head.name, why),
        }
    }

    fn add(&mut self, head: &RowHead, value: f64, conversion: Conversion) {
        let Conversion { pick, is_mean, .. } = conversion;
        let mut name = head.name.clone();
        if head.are_units_rows {
            // No name has a line end.
            name.extend(["\n", &head.unit]);
        }
        let key = (head.kernel.clone(), head.run.clone(), name);
        if self.values >= VALUES_MAX {
            self.beyond += 1;
            return;
        }
        let place = match self.places.get(&key) {
            Some(place) => *place,
            None if self.rows.len() >= ROWS_MAX => {
                self.beyond += 1;
                return;
            }
            None => {
                self.rows.push(GrowingRow {
                    head: head.clone(),
                    pick,
                    samples: Vec::new(),
                    mean_of: 0,
                });
                self.places.insert(key, self.rows.len() - 1);
                self.rows.len() - 1
            }
        };
        let row = &mut self.rows[place];
        let (known, samples) = (&mut row.head, &mut row.samples);
        let is_same_part = known.part == head.part;
        known.part.clone_from(&head.part);
        if known.unit != head.unit {
            let why = format!("its unit is {} here, {} before", head.unit, known.unit);
            self.leave_out(&head.name, why);
            return;
        }
        self.values += 1;
        row.mean_of += usize::from(is_mean);
        match (pick, samples.as_mut_slice()) {
            (_, [mean]) if is_mean => *mean += (value - *mean) / as_number(row.mean_of),
            (Pick::Sum, [.., sum]) if is_same_part => *sum += value,
            (Pick::Last, [.., last]) if is_same_part => *last = value,
            (Pick::First | Pick::Only, [_]) => {}
            _ => samples.push(value),
        }
    }

    /// Adds the rows of another collector whose names this one has not, and all that it left out.
    pub(super) fn add_missing(&mut self, other: Self) {
        let mut unused = BTreeSet::new();
        for (key, place) in other.places {
            let Some(row) = other.rows.get(place) else {
                continue;
            };
            if self.places.contains_key(&key) {
                unused.insert(printable(&row.head.name));
            } else {
                for value in &row.samples {
                    self.add(&row.head, *value, Conversion::PLAIN);
                }
            }
        }
        let known = self.rows.iter().map(|row| printable(&row.head.name));
        let known: BTreeSet<String> = known.collect();
        for ((what, why), count) in other.left_out {
            // What is said of values that are not used is of no use either.
            if !unused.contains(&what) || !known.contains(&what) {
                *self.left_out.entry((what, why)).or_default() += count;
            }
        }
    }

    pub(super) fn leave_out(&mut self, what: &str, why: impl Into<String>) {
        let key = (printable(what), why.into());
        if self.left_out.len() < LEFT_OUT_MAX || self.left_out.contains_key(&key) {
            *self.left_out.entry(key).or_default() += 1;
        } else {
            self.beyond += 1;
        }
    }

    /// Returns the names of rows as they are shown, by those that the file has. Of several that would
    /// be shown alike each gets digits of its hash: their order in the file must not matter, as
    /// another file may have another.
    fn shown_names(&self) -> BTreeMap<String, String> {
        let mut alike: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
        for GrowingRow { head, .. } in &self.rows {
            let known = alike.entry(row_name(&head.name)).or_default();
            known.insert(&head.name);
        }
        let mut shown = BTreeMap::new();
        for (name, written) in alike {
            for one in &written {
                let name = match written.len() {
                    1 => name.clone(),
                    _ => format!("{name}-{}", digits(one)),
                };
                shown.insert((*one).to_owned(), name);
            }
        }
        shown
    }

    /// Returns rows in the order of their first values.
    pub(super) fn finish(self, facts: BTreeMap<String, String>) -> FileContent {
        let shown = self.shown_names();
        let mut left_out: Vec<(String, String)> = self
            .left_out
            .into_iter()
            .map(|((what, why), count)| match count {
                1 => (what, why),
                count => (what, format!("{why} ({count} times)")),
            })
            .collect();
        if self.beyond > 0 {
            let why = format!(
                "{} values or remarks beyond the limits ({ROWS_MAX} rows and {VALUES_MAX} values of a file)",
                self.beyond
            );
            left_out.push(("values".to_owned(), why));
        }
        let mut units: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let heads = self.rows.iter().map(|row| &row.head);
        for head in heads.filter(|head| head.are_units_rows) {
            let known = units.entry(head.name.clone()).or_default();
            known.insert(head.unit.clone());
        }
        let rows = self.rows.into_iter().map(
            |GrowingRow {
                 head,
                 pick,
                 samples,
                 mean_of,
             }| FileRow {
                name: match (shown.get(&head.name), units.get(&head.name)) {
                    (Some(name), Some(units)) if units.len() > 1 => {
                        row_name(&format!("{name}/{}", head.unit))
                    }
                    (Some(name), _) => name.clone(),
                    (None, _) => row_name(&head.name),
                },
                kernel: head.kernel,
                run: head.run,
                unit: printable(&head.unit),
                direction: head.direction,
                samples,
                is_sum: pick == Pick::Sum,
                mean_of,
            },
        );
        FileContent {
            facts,
            rows: rows.collect(),
            left_out,
        }
    }
}

/// Returns a count as a divisor.
fn as_number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// Returns foreign text in printable form: escaped, and of at most 80 characters. Of a long one the
/// middle is left out, as names of events stand behind those of programs.
pub(super) fn printable(text: &str) -> String {
    let count = text.chars().count();
    if count <= 80 {
        return text.chars().flat_map(escape_control).collect();
    }
    let begin = text.chars().take(40).flat_map(escape_control);
    let end = text.chars().skip(count - 39).flat_map(escape_control);
    begin.chain(['…']).chain(end).collect()
}

fn escape_control(letter: char) -> Vec<char> {
    if letter.is_control() {
        letter.escape_default().collect()
    } else {
        vec![letter]
    }
}

/// Returns a name that fits tables, file names and commands: ASCII without spaces, quotes and `..`.
/// A long one is cut, and digits of its hash tell it from others with the same beginning.
fn row_name(written: &str) -> String {
    let mut name = String::new();
    for letter in written.chars() {
        let is_fit = letter.is_ascii_graphic() && !"\"'`\\<>&,;".contains(letter);
        match letter {
            letter if is_fit => name.push(letter),
            'µ' | 'μ' => name.push('u'),
            _ if name.ends_with(['-', '/']) => {}
            _ => name.push('-'),
        }
    }
    let parts = name
        .split('/')
        .map(|part| part.trim_matches('-'))
        .filter(|part| !part.is_empty());
    let parts: Vec<&str> = parts
        .map(|part| {
            if [".", ".."].contains(&part) {
                "_"
            } else {
                part
            }
        })
        .collect();
    let name = parts.join("/");
    if name.is_empty() {
        return format!("row-{}", digits(written));
    }
    if name.len() <= NAME_MAX {
        return name;
    }
    let cut = name[..NAME_MAX - 7].trim_end_matches(['-', '/', '.']);
    format!("{cut}-{}", digits(written))
}

#[cfg(test)]
mod tests {
    use model::Pick;
    use proptest::prelude::*;

    use super::{Collector, Conversion, RowHead, row_name};

    fn head(name: &str) -> RowHead {
        RowHead {
            kernel: None,
            run: None,
            name: name.to_owned(),
            unit: "s".to_owned(),
            direction: None,
            are_units_rows: false,
            part: None,
        }
    }

    #[test]
    fn names_fit_tables_and_stay_different() {
        let long = "x".repeat(200);
        for (written, name) in [
            ("cargo run --release 'a b'", "cargo-run---release-a-b"),
            ("First<double>/N:64", "First-double/N:64"),
            ("../../etc", "_/_/etc"),
            ("a//b, c", "a/b-c"),
        ] {
            assert_eq!(row_name(written), name);
        }
        assert_eq!(row_name(&long).len(), 120);
        assert_ne!(row_name(&long), row_name(&format!("{long}y")));
        let mut rows = Collector::default();
        for name in ["a b", "a,b", "a b"] {
            rows.put(&head(name), "1", Conversion::PLAIN);
        }
        let rows = rows.finish(std::collections::BTreeMap::new()).rows;
        let counts: Vec<usize> = rows.iter().map(|row| row.samples.len()).collect();
        assert_eq!(counts, [2, 1]);
        assert_ne!(rows[0].name, rows[1].name);
    }

    #[test]
    fn order_of_alike_rows_does_not_matter() {
        let names = |written: &[&str]| {
            let mut rows = Collector::default();
            for name in written {
                rows.put(&head(name), "1", Conversion::PLAIN);
            }
            let content = rows.finish(std::collections::BTreeMap::new());
            let mut names: Vec<String> = content.rows.into_iter().map(|row| row.name).collect();
            names.sort();
            names
        };
        let one = names(&["a b", "a-b", "c"]);
        assert_eq!(one, names(&["a-b", "c", "a b"]));
        assert!(!one.contains(&"a-b".to_owned()), "{one:?}");
        assert_eq!(names(&["a b"]), ["a-b"]);
    }

    #[test]
    fn bad_value_leaves_the_others() {
        let mut rows = Collector::default();
        for value in ["1", "-nan", "inf", "-2", "3"] {
            rows.put(&head("a"), value, Conversion::PLAIN);
        }
        let content = rows.finish(std::collections::BTreeMap::new());
        assert_eq!(content.rows[0].samples, [1.0, 3.0]);
        let left: Vec<&str> = content.left_out.iter().map(|(_, why)| &**why).collect();
        assert_eq!(
            left,
            ["-2 is negative", "`inf` is not a number", "not measured"]
        );
    }

    #[test]
    fn picks_choose_among_values() {
        for (pick, expected) in [
            (Pick::Sum, vec![6.0]),
            (Pick::Last, vec![3.0]),
            (Pick::First, vec![1.0]),
            (Pick::All, vec![1.0, 2.0, 3.0]),
        ] {
            let mut rows = Collector::default();
            let conversion = Conversion {
                pick,
                ..Conversion::PLAIN
            };
            for value in ["1", "2", "3"] {
                rows.put(&head("a"), value, conversion);
            }
            let content = rows.finish(std::collections::BTreeMap::new());
            assert_eq!(content.rows[0].samples, expected);
        }
    }

    proptest! {
        #[test]
        fn any_text_becomes_a_fit_name(written in "\\PC{0,150}") {
            let name = row_name(&written);
            prop_assert!((1..=120).contains(&name.len()));
            prop_assert!(name.bytes().all(|byte| byte.is_ascii_graphic()));
            prop_assert!(name.split('/').all(|part| !["", ".", ".."].contains(&part)));
        }
    }
}
