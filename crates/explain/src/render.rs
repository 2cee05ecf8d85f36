//! The answer as a document.

use document::{Block, Column, Document, Fact, Kind, Row, Table, Weight, Width};

use crate::answer::Answer;
use crate::budget::{Budget, View};
use crate::facts::{Facts, Thread};
use crate::finding::{Finding, percent};

/// Threads that the table has at most.
const THREADS: usize = 8;

/// An answer and what it is about.
#[derive(Debug)]
pub struct Explained {
    /// What was observed.
    pub facts: Facts,
    /// The answer.
    pub answer: Answer,
    /// What verification printed; empty if there was none.
    pub verified: Vec<String>,
    /// The command that repeats it.
    pub command: String,
}

/// Returns the document.
#[must_use]
pub fn document(explained: &Explained) -> Document {
    let Explained { facts, answer, verified, command } = explained;
    let mut blocks = vec![Block::Heading("Where the time went".into()), Block::Table(budget(facts))];
    if let Some(finding) = &answer.cause {
        blocks.push(Block::Heading("Evidence".into()));
        blocks.push(Block::Table(evidence(finding)));
        if !verified.is_empty() {
            blocks.push(Block::List(verified.clone()));
        }
        blocks.push(Block::Heading("What to try".into()));
        blocks.push(Block::List(finding.advice.clone()));
        if !finding.deeper.is_empty() {
            blocks.push(Block::Paragraph("To look deeper:".into()));
            blocks.push(Block::Command(finding.deeper.clone()));
        }
    }
    if !answer.others.is_empty() {
        blocks.push(Block::Heading("Also".into()));
        let also =
            |finding: &Finding| format!("{}: {} ({})", finding.cause, percent(finding.share), finding.certainty.word());
        blocks.push(Block::List(answer.others.iter().map(also).collect()));
    }
    if !facts.gaps.is_empty() {
        blocks.push(Block::Heading("Not observed".into()));
        let gap = |gap: &crate::facts::Gap| format!("{}: {}; {}", gap.what, gap.why, gap.remedy);
        blocks.push(Block::List(facts.gaps.iter().map(gap).collect()));
    }
    blocks.push(Block::Facts(about(facts)));
    blocks.push(Block::Command(command.clone()));
    Document { title: answer.sentence(facts), blocks, ..Document::default() }
}

fn about(facts: &Facts) -> Vec<Fact> {
    let costs: f64 = facts.costs.iter().map(|(_, seconds)| seconds).sum();
    let parts: Vec<String> = facts.costs.iter().map(|(name, seconds)| format!("{name} {seconds:.3} s")).collect();
    vec![
        Fact::new("Subject", facts.subject.clone()),
        Fact::new("Observed", format!("{:.1} s", facts.seconds)),
        Fact::new(
            "Host",
            format!(
                "Linux {}, {} processors, {} idle",
                facts.host.kernel,
                facts.host.processors,
                percent(facts.host.idle)
            ),
        ),
        Fact::new(
            "Cost",
            format!("{} of a processor: {}", tenths(costs / facts.seconds.max(f64::MIN_POSITIVE)), parts.join(", ")),
        ),
    ]
}

fn tenths(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn budget(facts: &Facts) -> Table {
    let heads = ["user", "kernel", "waiting", "blocked", "seconds"];
    let columns = std::iter::once(Column::new("thread", Kind::Name, Width::Fixed(30)))
        .chain(heads.map(|head| Column::new(head, Kind::Number, Width::Fixed(9))));
    let view = View::new(facts);
    let mut threads: Vec<&Thread> = facts.threads.iter().collect();
    threads.sort_by(|one, other| other.running_s().total_cmp(&one.running_s()));
    let (shown, rest) = threads.split_at(THREADS.min(threads.len()));
    let mut rows: Vec<Row> = shown
        .iter()
        .map(|thread| {
            row(format!("{} {}", thread.id, thread.name), Budget::of([*thread]), thread.total_s, Weight::Normal)
        })
        .collect();
    if !rest.is_empty() {
        let total = rest.iter().map(|thread| thread.total_s).sum();
        rows.push(row(format!("{} others", rest.len()), Budget::of(rest.iter().copied()), total, Weight::Faint));
    }
    let name = format!("{} that take part", view.active.len());
    rows.push(row(name, view.budget, view.total_s, Weight::Total));
    let notes = vec![
        "user, kernel: running. waiting: runnable without a processor. blocked: neither. Threads that only wait for others of \
         the program take no part."
            .into(),
    ];
    Table { columns: columns.collect(), rows, notes, ..Table::default() }
}

fn row(name: String, budget: Budget, seconds: f64, weight: Weight) -> Row {
    let shares = [budget.user, budget.system, budget.waiting, budget.blocked].map(tenths);
    let [user, system, waiting, blocked] = shares;
    Row::new(weight, [name, user, system, waiting, blocked, format!("{seconds:.2}")])
}

fn evidence(finding: &Finding) -> Table {
    let columns = vec![
        Column::new("quantity", Kind::Words, Width::Fit(60)),
        Column::new("from", Kind::Words, Width::Fit(40)),
        Column::new("counts from", Kind::Words, Width::Fit(20)),
        Column::new("rules out", Kind::Words, Width::Fit(40)),
    ];
    let rows = finding.evidence.iter().map(|evidence| {
        let cells =
            [evidence.quantity.clone(), evidence.source.into(), evidence.threshold.clone(), evidence.rules_out.into()];
        Row::new(Weight::Normal, cells)
    });
    Table { columns, rows: rows.collect(), ..Table::default() }
}
