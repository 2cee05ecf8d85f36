//! Profiles from files of other programs, several of each side: each function's share of its file's
//! samples, and what differs by more than the files of one side do.

use std::collections::BTreeMap;

use document::number::count;
use document::{
    Block, Column, ColumnKind, Document, Fact, RenderError, Table, TableRow, Weight, Width,
    schema_of, write_json,
};
use model::{Share, sanitize_line};
use schemars::JsonSchema;
use serde::Serialize;
use stats::Exposures;

use super::{Lines, Merged, SampledLine};

/// Version of this document's shape.
const SCHEMA_VERSION: u32 = 1;

const LEGEND: &str = "Percent of the samples of a side; points +: new minus base, more of the time. ±: half the interval of \
95%, by how the files of a side differ. A function has a line of its own if it differs by more than the files do (at most 5% \
of such lines are expected to be chance). Shares of one side add up to 100%: a function can gain because another one loses.";
const UNTESTED: &str = "One file of a side has no error bars: whether a difference is more than chance takes two or more files \
of each side. The largest differences are first.";

/// One side: its name, and the samples of each function in each file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSide {
    /// Its name for people.
    pub title: String,
    /// Samples by function, one map for each file.
    pub files: Vec<BTreeMap<String, u64>>,
    /// Samples of idle processors, which are no part.
    pub idle: u64,
}

/// Profiles of files, compared.
#[derive(Debug, Clone, PartialEq)]
pub struct FileDifference {
    titles: [String; 2],
    event: String,
    files: [usize; 2],
    idle: [u64; 2],
    lines: Lines,
    notes: Vec<String>,
    command: String,
}

impl FileDifference {
    /// Compares two sides. `notes` say what was not read.
    ///
    /// # Errors
    /// If a side has no file with samples.
    pub fn new(
        base: &FileSide,
        new: &FileSide,
        event: String,
        notes: Vec<String>,
        command: String,
    ) -> Result<Self, String> {
        let sides = [base, new];
        // Rates are percent of a file's samples.
        let exposures = sides.map(|side| {
            let totals = side.files.iter().map(|file| file.values().sum::<u64>());
            totals.map(|total| total as f64 / 100.0).collect()
        });
        let exposures = Exposures::new(exposures).ok_or("a side has no file with samples")?;
        let mut merged = Merged::new();
        for (place, side) in sides.iter().enumerate() {
            for (file, functions) in side.files.iter().enumerate() {
                for (function, samples) in functions {
                    let counts = merged
                        .entry((Share::Kernel, sanitize_line(function)))
                        .or_insert_with(|| sides.map(|side| vec![0; side.files.len()]));
                    counts[place][file] += samples;
                }
            }
        }
        let common = exposures.common_scatter(&merged.values().cloned().collect::<Vec<_>>());
        let mut lines = Lines::compute(merged, &exposures, &common);
        let files = sides.map(|side| side.files.len());
        if files.iter().any(|files| *files < 2) {
            let size = |line: &SampledLine| line.cost.difference().abs();
            lines
                .all
                .sort_by(|one, other| size(other).total_cmp(&size(one)));
        }
        Ok(Self {
            titles: sides.map(|side| side.title.clone()),
            event,
            files,
            idle: sides.map(|side| side.idle),
            lines,
            notes,
            command,
        })
    }

    /// Returns whether there are enough files to tell differences from noise.
    #[must_use]
    pub fn is_tested(&self) -> bool {
        self.files.iter().all(|files| *files > 1)
    }

    /// Returns the functions, those that differ for sure first.
    #[must_use]
    pub fn lines(&self) -> &[SampledLine] {
        &self.lines.all
    }

    /// Returns one sentence on what differs.
    #[must_use]
    pub fn sentence(&self) -> String {
        let tested = self
            .lines
            .all
            .iter()
            .filter(|line| line.q.is_some())
            .count();
        let sure = self.lines.significant();
        if !self.is_tested() {
            return UNTESTED.to_owned();
        }
        if sure.is_empty() {
            return format!("None of {tested} functions differs by more than the files do.");
        }
        let named: Vec<String> = sure
            .iter()
            .take(3)
            .map(|line| format!("{} {:+.2}", line.function, line.cost.difference()))
            .collect();
        format!(
            "{} of {tested} functions differ by more than the files do; most surely {}.",
            sure.len(),
            named.join(", ")
        )
    }

    /// Returns the document, with at most `lines_max` functions.
    #[must_use]
    pub fn document(&self, lines_max: usize) -> Document {
        let [base, new] = &self.titles;
        let mut blocks = vec![
            Block::Paragraph(self.sentence()),
            Block::Table(self.table(lines_max)),
            Block::Note(LEGEND.to_owned()),
        ];
        if !self.notes.is_empty() {
            blocks.push(Block::Paragraph("Not read:".to_owned()));
            blocks.push(Block::List(self.notes.clone()));
        }
        let mut facts = vec![Fact::new("Counted", sanitize_line(&self.event))];
        for ((title, files), idle) in self.titles.iter().zip(self.files).zip(self.idle) {
            let idle = match idle {
                0 => String::new(),
                idle => format!(", without {} of idle processors", count_samples(idle)),
            };
            facts.push(Fact::new(
                "Side",
                format!("{title}, {}{idle}", count(files, "file")),
            ));
        }
        blocks.extend([Block::Facts(facts), Block::Command(self.command.clone())]);
        Document {
            title: format!("Profiles: {new} against {base}"),
            blocks,
            ..Document::default()
        }
    }

    fn table(&self, lines_max: usize) -> Table {
        let numbers = [("base %", 9), ("new %", 9), ("points +", 10), ("±", 7)]
            .map(|(head, width)| Column::new(head, ColumnKind::Number, Width::Fixed(width)));
        let columns = std::iter::once(Column::new("function", ColumnKind::Name, Width::Fixed(36)))
            .chain(numbers)
            .collect();
        let named = if self.is_tested() {
            self.lines.significant()
        } else {
            &self.lines.all
        };
        let (shown, hidden) = named.split_at(named.len().min(lines_max));
        let mut rows: Vec<TableRow> = shown.iter().map(row).collect();
        let others = self.lines.all.len() - shown.len();
        if others > 0 {
            let shares = [0, 1].map(|side| {
                let of_shown: f64 = shown.iter().map(|line| line.cost.rates[side]).sum();
                self.lines.total.rates[side] - of_shown
            });
            let why = if hidden.is_empty() {
                "no difference shown"
            } else {
                "see --lines"
            };
            let name = format!("{} ({why})", count(others, "other"));
            let difference = shares[1] - shares[0];
            let cells = [
                name,
                two(shares[0]),
                two(shares[1]),
                format!("{difference:+.2}"),
            ];
            rows.push(TableRow::new(
                Weight::Normal,
                cells.into_iter().chain([String::new()]),
            ));
        }
        Table {
            columns,
            rows,
            ..Table::default()
        }
    }

    /// Returns it as JSON, with all functions.
    ///
    /// # Errors
    /// Never in practice: everything is in memory.
    pub fn json(&self) -> Result<String, RenderError> {
        let line = |line: &SampledLine| Line {
            function: line.function.clone(),
            samples: line.samples,
            percent: line.cost.rates,
            added_points: line.cost.difference(),
            half_interval: line.cost.half.filter(|_| self.is_tested()),
            q: line.q,
            significant: line.is_significant(),
        };
        write_json(&FilesDocument {
            schema_version: SCHEMA_VERSION,
            kind: "profiles",
            sides: self.titles.clone(),
            event: self.event.clone(),
            files: self.files,
            idle: self.idle,
            tested: self.is_tested(),
            functions: self.lines.all.iter().map(line).collect(),
            not_read: self.notes.clone(),
            command: self.command.clone(),
        })
    }
}

fn count_samples(samples: u64) -> String {
    count(usize::try_from(samples).unwrap_or(usize::MAX), "sample")
}

fn two(number: f64) -> String {
    format!("{number:.2}")
}

fn row(line: &SampledLine) -> TableRow {
    let half = line.cost.half.filter(|half| half.is_finite());
    let cells = [
        line.function.clone(),
        two(line.cost.rates[0]),
        two(line.cost.rates[1]),
        format!("{:+.2}", line.cost.difference()),
        half.map(two).unwrap_or_default(),
    ];
    TableRow::new(Weight::Normal, cells)
}

/// Profiles of files of other programs. Arrays of two have the base first.
#[derive(Serialize, JsonSchema)]
struct FilesDocument {
    schema_version: u32,
    kind: &'static str,
    sides: [String; 2],
    /// What was counted.
    event: String,
    files: [usize; 2],
    /// Samples of idle processors, which are in no function.
    idle: [u64; 2],
    /// Whether each side has two or more files, so that there are error bars.
    tested: bool,
    functions: Vec<Line>,
    not_read: Vec<String>,
    command: String,
}

#[derive(Serialize, JsonSchema)]
struct Line {
    function: String,
    samples: [u64; 2],
    /// Of all samples of the side.
    percent: [f64; 2],
    /// New minus base.
    added_points: f64,
    /// Half the interval of 95 % of the difference; null without error bars.
    half_interval: Option<f64>,
    /// The false discovery rate among the functions; null if not tested.
    q: Option<f64>,
    significant: bool,
}

/// Returns the schema of the JSON.
#[must_use]
pub fn files_schema() -> schemars::Schema {
    schema_of::<FilesDocument>("marvin profile, of files")
}

#[cfg(test)]
mod tests {
    use document::Styles;

    use super::{FileDifference, FileSide};

    fn side(title: &str, files: &[[u64; 3]]) -> FileSide {
        let names = ["read", "write", "spin"];
        let of_file = |counts: &[u64; 3]| {
            let pairs = names.iter().zip(counts);
            pairs
                .map(|(name, count)| ((*name).to_owned(), *count))
                .collect()
        };
        FileSide {
            title: title.to_owned(),
            files: files.iter().map(of_file).collect(),
            idle: 0,
        }
    }

    fn compared(base: &[[u64; 3]], new: &[[u64; 3]]) -> FileDifference {
        let sides = [side("before", base), side("after", new)];
        FileDifference::new(
            &sides[0],
            &sides[1],
            "cycles".to_owned(),
            Vec::new(),
            String::new(),
        )
        .unwrap()
    }

    const BASE: [[u64; 3]; 3] = [[500, 400, 100], [510, 395, 95], [495, 400, 105]];
    const NEW: [[u64; 3]; 3] = [[400, 310, 290], [395, 300, 305], [405, 305, 290]];

    #[test]
    fn several_files_show_which_function_differs() {
        let found = compared(&BASE, &NEW);
        assert!(found.is_tested());
        let first = &found.lines()[0];
        assert_eq!(first.function, "spin");
        assert!(first.is_significant(), "{first:?}");
        assert!((first.cost.difference() - 19.5).abs() < 0.1, "{first:?}");
        assert!(
            found.sentence().contains("most surely spin +19.50"),
            "{}",
            found.sentence()
        );
    }

    #[test]
    fn files_of_one_program_differ_in_nothing() {
        let found = compared(&BASE, &BASE);
        assert!(found.lines().iter().all(|line| !line.is_significant()));
        assert!(found.sentence().starts_with("None of 3 functions"));
    }

    #[test]
    fn one_file_of_side_has_no_error_bars() {
        let found = compared(&BASE[..1], &NEW[..1]);
        assert!(!found.is_tested());
        let text = found.document(20).text(&Styles::plain());
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            words.contains("One file of a side has no error bars"),
            "{text}"
        );
        assert_eq!(found.lines()[0].function, "spin");
        let json = found.json().unwrap();
        assert!(json.contains("\"tested\": false") && json.contains("\"half_interval\": null"));
    }

    #[test]
    fn sides_of_unequal_length_compare_by_shares() {
        let twice = BASE.map(|file| file.map(|count| 2 * count));
        let found = compared(&BASE, &twice);
        assert!(
            found
                .lines()
                .iter()
                .all(|line| line.cost.difference().abs() < 1e-9)
        );
    }
}
