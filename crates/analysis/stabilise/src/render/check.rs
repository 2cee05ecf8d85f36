//! The mail about the patches of a queue, such as stable's: what each of them brings alone.

use document::layout::wrap;
use document::number::{count, seed_list};
use document::{Block, Column, ColumnKind, Document, Fact, Styles, Table, TableRow, Weight, Width};
use model::Availability;

use super::words::{amount, count_patches, cut, failure_words, join, signed, title_of};
use super::{End, Measuring, NamedCommit, RowName};
use crate::outcome::Effect;
use crate::world::Failure;

/// Columns of the names, and of the percentages beside them.
const NAME: usize = 69;
const NUMBER: usize = 11;
/// Columns of a mail.
const WIDTH: usize = 80;
/// Columns of the indentation below a patch.
const INDENT: usize = 4;
/// Rows that a subject names; the others are counted.
const ROWS_MAX: usize = 1;

/// The patches of a queue, each measured alone.
#[derive(Debug, Clone)]
pub struct Check {
    /// The name of the queue, such as `stable queue 6.12`.
    pub queue: String,
    /// The kernel that each patch was applied to.
    pub on: End,
    /// The rows, by their number.
    pub rows: Vec<RowName>,
    /// The patches, in the order of the queue.
    pub patches: Vec<CheckedPatch>,
    /// Other patches of the queue: the kernel config compiles nothing that they change.
    pub not_compiled: usize,
    /// Machine, suite and seeds of the measurements.
    pub measuring: Measuring,
    /// The command that repeats it.
    pub command: String,
}

/// A patch of a queue.
#[derive(Debug, Clone)]
pub struct CheckedPatch {
    /// Its commit and subject.
    pub named: NamedCommit,
    /// The rows that it changes; `Err` if that is no kernel to measure.
    pub result: Availability<Vec<Effect>, Failure>,
}

/// A mail about a queue of patches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckMail {
    /// The subject line.
    pub subject: String,
    /// The body, at most 80 columns wide.
    pub text: String,
}

/// Writes the mail about the patches of a queue; its subject has the worst.
#[must_use]
pub fn check_mail(check: &Check) -> CheckMail {
    let mut blocks = vec![Block::Paragraph(format!("{}.", check.result()))];
    let mut order: Vec<&CheckedPatch> = check
        .patches
        .iter()
        .filter(|patch| !patch.has_no_effect())
        .collect();
    order.sort_by(|a, b| a.rank().total_cmp(&b.rank()));
    if !order.is_empty() {
        blocks.push(Block::Table(check.table(&order)));
    }
    blocks.extend(check.notes(order.len()));
    let facts = vec![
        Fact::new("Queue", check.queue.clone()),
        Fact::new("On", check.on.to_string()),
        Fact::new(
            "Suite",
            format!(
                "{}, {}",
                check.measuring.suite,
                count(check.rows.len(), "row")
            ),
        ),
        Fact::new("Machine", check.measuring.machine.clone()),
        Fact::new("Config", check.measuring.config.clone()),
        Fact::new("Measured", seed_list(&check.measuring.seeds)),
    ];
    blocks.extend([Block::Facts(facts), Block::Command(check.command.clone())]);
    let document = Document {
        blocks,
        ..Document::default()
    };
    let subject = wrap(&format!("{}: {}", check.queue, check.result()), usize::MAX).concat();
    CheckMail {
        subject,
        text: document
            .text(&Styles::plain())
            .trim_start_matches('\n')
            .to_owned(),
    }
}

impl CheckedPatch {
    fn effects(&self) -> &[Effect] {
        self.result.value().map_or(&[], Vec::as_slice)
    }

    fn is_worse(&self) -> bool {
        self.effects().iter().any(|effect| effect.percent < 0.0)
    }

    fn has_no_effect(&self) -> bool {
        self.result.value().is_some_and(Vec::is_empty)
    }

    /// Returns the place in the mail: the worst patch first, then failures, then those that only
    /// better rows.
    fn rank(&self) -> f64 {
        let worst = self
            .effects()
            .iter()
            .map(|effect| effect.percent)
            .fold(f64::INFINITY, f64::min);
        match self.result {
            Availability::Available(_) => worst,
            Availability::Unavailable(_) => 0.0,
        }
    }
}

impl Check {
    fn row(&self, row: usize) -> String {
        self.rows
            .get(row)
            .map_or_else(|| format!("row {row}"), |named| named.name.clone())
    }

    /// Returns the result in one sentence, without its final period: the worst first.
    fn result(&self) -> String {
        let all = count_patches(self.patches.len());
        let mut parts = Vec::new();
        let worse: Vec<&CheckedPatch> = self
            .patches
            .iter()
            .filter(|patch| patch.is_worse())
            .collect();
        if !worse.is_empty() {
            let makes = if worse.len() == 1 { "makes" } else { "make" };
            parts.push(format!(
                "{} of {all} {makes} {} worse",
                worse.len(),
                self.worst_rows(&worse)
            ));
        }
        let kinds = [
            (
                "apply",
                self.count(|failure| matches!(failure, Failure::Conflict { .. })),
            ),
            (
                "build",
                self.count(|failure| matches!(failure, Failure::DoesNotBuild(_))),
            ),
            (
                "run",
                self.count(|failure| matches!(failure, Failure::DoesNotRun(_))),
            ),
        ];
        for (verb, failed) in kinds.into_iter().filter(|(_, failed)| *failed > 0) {
            let of = if parts.is_empty() {
                format!(" of {all}")
            } else {
                String::new()
            };
            let does = if failed == 1 { "does" } else { "do" };
            parts.push(format!("{failed}{of} {does} not {verb}"));
        }
        match parts.is_empty() {
            true => format!("none of {all} makes a row worse"),
            false => parts.join("; "),
        }
    }

    fn count(&self, is_like: impl Fn(&Failure) -> bool) -> usize {
        self.patches
            .iter()
            .filter(|patch| match &patch.result {
                Availability::Available(_) => false,
                Availability::Unavailable(failure) => is_like(failure),
            })
            .count()
    }

    /// Names the rows that became worse, the worst first: `fault-anon 3.10%`.
    fn worst_rows(&self, patches: &[&CheckedPatch]) -> String {
        let mut worst: Vec<Effect> = Vec::new();
        for effect in patches
            .iter()
            .flat_map(|patch| patch.effects())
            .filter(|effect| effect.percent < 0.0)
        {
            match worst.iter_mut().find(|known| known.row == effect.row) {
                Some(known) => known.percent = known.percent.min(effect.percent),
                None => worst.push(*effect),
            }
        }
        worst.sort_by(|a, b| a.percent.total_cmp(&b.percent));
        let (shown, more) = worst.split_at(worst.len().min(ROWS_MAX));
        let mut names: Vec<String> = Vec::new();
        for effect in shown {
            names.push(format!(
                "{} {}",
                self.row(effect.row),
                amount(effect.percent)
            ));
        }
        if !more.is_empty() {
            names.push(count(more.len(), "other row"));
        }
        join(&names)
    }

    fn table(&self, patches: &[&CheckedPatch]) -> Table {
        let columns = vec![
            Column::new("patch, row", ColumnKind::Name, Width::Fixed(NAME)),
            Column::new("alone %", ColumnKind::Number, Width::Fixed(NUMBER)),
        ];
        let mut rows = Vec::new();
        for patch in patches {
            rows.push(TableRow::new(
                Weight::Normal,
                [cut(&title_of(&patch.named), WIDTH), String::new()],
            ));
            if let Availability::Unavailable(failure) = &patch.result {
                for line in wrap(&failure_words(failure), WIDTH - INDENT) {
                    rows.push(TableRow::new(
                        Weight::Faint,
                        [format!("{:INDENT$}{line}", ""), String::new()],
                    ));
                }
            }
            let mut effects = patch.effects().to_vec();
            effects.sort_by(|a, b| a.percent.total_cmp(&b.percent));
            for effect in effects {
                let name = format!(
                    "{:INDENT$}{}",
                    "",
                    cut(&self.row(effect.row), NAME - INDENT)
                );
                rows.push(TableRow::new(
                    Weight::Normal,
                    [name, signed(effect.percent)],
                ));
            }
        }
        Table {
            columns,
            rows,
            ..Table::default()
        }
    }

    /// Returns what is in no line of the table.
    fn notes(&self, shown: usize) -> Vec<Block> {
        let mut notes = Vec::new();
        match self.patches.len() - shown {
            0 => {}
            1 => notes.push("1 patch moves no row.".to_owned()),
            many => notes.push(format!("{many} patches move no row.")),
        }
        match self.not_compiled {
            0 => {}
            1 => notes.push("1 other changes nothing that the kernel config compiles.".to_owned()),
            many => notes.push(format!(
                "{many} others change nothing that the kernel config compiles."
            )),
        }
        notes.push(format!(
            "Each patch was applied to {} alone; positive is better.",
            self.on.name
        ));
        vec![Block::Note(notes.join(" "))]
    }
}
