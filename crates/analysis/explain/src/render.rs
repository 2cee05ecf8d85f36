//! The answer as a document.

use std::collections::BTreeMap;

use document::{Block, Column, ColumnKind, Document, Fact, Table, TableRow, Weight, Width};

use document::RenderError;

use crate::answer::Answer;
use crate::budget::{Budget, View};
use crate::callers::is_library;
use crate::drawings::{blocked, running, timeline};
use crate::facts::{AFTERWARDS, Facts, Object, Thread};
use crate::finding::{Evidence, Finding, percent};

/// Functions and places that their tables have at most.
const PLACES: usize = 6;
/// Threads that the table has at most.
const THREADS: usize = 8;

/// An answer and what it is about.
#[derive(Debug)]
pub struct Explained {
    /// What was observed of the program and its host.
    pub facts: Facts,
    /// The cause, and what else takes time.
    pub answer: Answer,
    /// How the program ended.
    pub end: End,
    /// The command that repeats it.
    pub command: String,
}

/// How a program ended, or that it did not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct End {
    /// A sentence for the reader; empty for a process that runs on.
    pub text: String,
    /// The same as a word.
    pub state: EndState,
    /// The exit code of a command that ended by itself.
    pub exit_code: Option<i32>,
    /// The signal that ended a command.
    pub signal: Option<i32>,
}

/// How a program ended, or why it was not observed to its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EndState {
    /// A process that runs on.
    #[default]
    RunsOn,
    /// A command that ended with 0.
    Succeeded,
    /// A command that ended with another code.
    Failed,
    /// A signal ended the command.
    Killed,
    /// Marvin ended the command when its time was over.
    CutShort,
    /// The user ended the observation.
    Interrupted,
    /// The process ended while it was observed.
    Gone,
}

impl EndState {
    /// Returns the name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::RunsOn => "runs-on",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Killed => "killed",
            Self::CutShort => "cut-short",
            Self::Interrupted => "interrupted",
            Self::Gone => "gone",
        }
    }
}

/// Returns the document: the answer, where the time went, evidence and advice.
///
/// # Errors
/// Never in practice: everything is in memory.
pub fn document(explained: &Explained) -> Result<Document, RenderError> {
    let Explained {
        facts,
        answer,
        end,
        command,
    } = explained;
    let mut blocks = vec![
        Block::Heading("Where the time went".into()),
        Block::Table(budget(facts)),
    ];
    let view = View::new(facts);
    blocks.extend(timeline(facts)?);
    for (table, drawing) in [
        (functions(&view), running(facts)?),
        (places(&view), blocked(&view)?),
    ] {
        if !table.rows.is_empty() {
            blocks.push(Block::Table(table));
            blocks.extend(drawing);
        }
    }
    if let Some(finding) = &answer.cause {
        blocks.push(Block::Heading("Evidence".into()));
        blocks.push(Block::List(finding.evidence.iter().map(evidence).collect()));
        blocks.push(Block::Heading("What to try".into()));
        blocks.push(Block::List(finding.advice.clone()));
        if !finding.deeper.is_empty() {
            blocks.push(Block::Facts(vec![Fact::new(
                "Look deeper",
                finding.deeper.clone(),
            )]));
        }
    }
    let others: Vec<&Finding> = answer.outside.iter().chain(&answer.others).collect();
    if !others.is_empty() {
        blocks.push(Block::Heading("Also".into()));
        let also = others.iter().map(|finding| {
            format!(
                "{}: {} ({})",
                finding.cause,
                percent(finding.share),
                finding.certainty.name()
            )
        });
        blocks.push(Block::List(also.collect()));
    }
    if !facts.gaps.is_empty() {
        blocks.push(Block::Heading("Not observed".into()));
        let gaps = facts.gaps.iter();
        let gaps = gaps.map(|gap| format!("{}: {}; {}", gap.what, gap.why, gap.remedy));
        blocks.push(Block::List(gaps.collect()));
    }
    let mut facts_about = about(facts);
    facts_about.extend(settings(facts));
    if !end.text.is_empty() {
        facts_about.push(Fact::new("End", end.text.clone()));
    }
    blocks.push(Block::Facts(facts_about));
    blocks.push(Block::Command(command.clone()));
    Ok(Document {
        title: answer.sentence(facts),
        blocks,
        ..Document::default()
    })
}

fn about(facts: &Facts) -> Vec<Fact> {
    let during: Vec<_> = facts
        .costs
        .iter()
        .filter(|(name, _)| *name != AFTERWARDS)
        .collect();
    let costs: f64 = during.iter().map(|(_, seconds)| seconds).sum();
    let parts: Vec<String> = during
        .iter()
        .map(|(name, seconds)| format!("{name} {seconds:.3} s"))
        .collect();
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
            format!(
                "{} of a processor: {}",
                tenths(costs / facts.seconds.max(f64::MIN_POSITIVE)),
                parts.join(", ")
            ),
        ),
    ]
}

/// What was set, whether or not it is the cause.
fn settings(facts: &Facts) -> Vec<Fact> {
    let Facts { host, settings, .. } = facts;
    let environment: Vec<String> = settings
        .environment
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let mitigations = host.mitigations.iter();
    let mitigations: Vec<&str> = mitigations
        .map(|text| text.split([':', ';']).next().unwrap_or_default())
        .collect();
    let pressure = host.pressure.map(|pressure| {
        format!(
            "{} of the time some task waited for memory, {} for I/O",
            percent(pressure.memory),
            percent(pressure.io)
        )
    });
    let library = settings
        .glibc
        .map(|(major, minor)| format!("glibc {major}.{minor}"));
    let lost = facts.samples.as_ref().map_or(0, |samples| samples.lost);
    let named = [
        ("C library", library.unwrap_or_default()),
        (
            "Lost samples",
            if lost > 0 {
                lost.to_string()
            } else {
                String::new()
            },
        ),
        ("Variables", environment.join(" ")),
        ("Kernel debugging", host.debugging.join(" ")),
        ("Governor", host.governor.clone()),
        ("Mitigations", mitigations.join(" ")),
        ("Pressure", pressure.unwrap_or_default()),
    ];
    named
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| Fact::new(name, value))
        .collect()
}

fn tenths(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn budget(facts: &Facts) -> Table {
    let heads = ["user", "kernel", "waiting", "blocked", "seconds"];
    let columns = std::iter::once(Column::new("thread", ColumnKind::Name, Width::Fixed(30)))
        .chain(heads.map(|head| Column::new(head, ColumnKind::Number, Width::Fixed(9))));
    let view = View::new(facts);
    let mut threads: Vec<&Thread> = facts.threads.iter().collect();
    threads.sort_by(|one, other| other.running_s().total_cmp(&one.running_s()));
    let (shown, rest) = threads.split_at(THREADS.min(threads.len()));
    let mut rows: Vec<TableRow> = shown
        .iter()
        .map(|thread| {
            row(
                format!("{} {}", thread.id, thread.name),
                Budget::sum([*thread]),
                thread.total_s,
                Weight::Normal,
            )
        })
        .collect();
    if !rest.is_empty() {
        let total = rest.iter().map(|thread| thread.total_s).sum();
        rows.push(row(
            format!("{} others", rest.len()),
            Budget::sum(rest.iter().copied()),
            total,
            Weight::Faint,
        ));
    }
    let name = format!("{} that take part", view.active.len());
    rows.push(row(name, view.budget, view.total_s, Weight::Total));
    let notes = vec![
        "user, kernel: running. waiting: runnable without a processor. blocked: neither. Threads that only wait for others of \
         the program take no part."
            .into(),
    ];
    Table {
        columns: columns.collect(),
        rows,
        notes,
        ..Table::default()
    }
}

/// Tabulates the functions that ran most.
fn functions(view: &View) -> Table {
    let Some(samples) = &view.facts.samples else {
        return Table::default();
    };
    let mut by_function: BTreeMap<(String, String), u64> = BTreeMap::new();
    let mut all = 0;
    for stack in &samples.stacks {
        let function = stack
            .kernel
            .first()
            .or(stack.user.first())
            .cloned()
            .unwrap_or_default();
        let caller = if stack.kernel.is_empty() {
            stack.user.get(1)
        } else {
            stack.user.first()
        };
        *by_function
            .entry((function, caller.cloned().unwrap_or_default()))
            .or_default() += stack.samples;
        all += stack.samples;
    }
    let mut rows: Vec<_> = by_function.into_iter().collect();
    rows.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let rows = rows
        .into_iter()
        .take(PLACES)
        .map(|((function, caller), count)| {
            let share = view.budget.running() * count as f64 / all as f64;
            TableRow::new(Weight::Normal, [function, caller, tenths(share)])
        });
    let columns = vec![
        Column::new("ran in", ColumnKind::Name, Width::Fixed(36)),
        Column::new("called by", ColumnKind::Name, Width::Fixed(30)),
        Column::new("time", ColumnKind::Number, Width::Fixed(9)),
    ];
    Table {
        columns,
        rows: rows.collect(),
        ..Table::default()
    }
}

/// Tabulates where threads were blocked longest.
fn places(view: &View) -> Table {
    let all: f64 = view.waits.iter().map(|wait| wait.seconds).sum();
    let rows = view.waits.iter().take(PLACES).map(|wait| {
        let call = match (&*wait.call, &*wait.function) {
            ("", "") => "(unknown)".to_owned(),
            ("", function) => function.to_owned(),
            (call, _) => call.to_owned(),
        };
        let object = match &wait.object {
            Object::Futex(futex) if !futex.mapping.is_empty() => format!(" {}", futex.mapping),
            Object::Futex(futex) => format!(" {:#x}", futex.word.1),
            Object::File(file) => format!(" {file}"),
            Object::Unknown | Object::Child | Object::Stop | Object::Timer => String::new(),
        };
        let share = view.budget.blocked * wait.seconds / all.max(f64::MIN_POSITIVE);
        let caller = wait
            .stack
            .iter()
            .find(|function| !is_library(function))
            .cloned()
            .unwrap_or_default();
        TableRow::new(
            Weight::Normal,
            [format!("{call}{object}"), caller, tenths(share)],
        )
    });
    let columns = vec![
        Column::new("blocked in", ColumnKind::Name, Width::Fixed(36)),
        Column::new("called by", ColumnKind::Name, Width::Fixed(30)),
        Column::new("time", ColumnKind::Number, Width::Fixed(9)),
    ];
    Table {
        columns,
        rows: rows.collect(),
        ..Table::default()
    }
}

fn row(name: String, budget: Budget, seconds: f64, weight: Weight) -> TableRow {
    let shares = [budget.user, budget.system, budget.waiting, budget.blocked].map(tenths);
    let [user, system, waiting, blocked] = shares;
    TableRow::new(
        weight,
        [
            name,
            user,
            system,
            waiting,
            blocked,
            format!("{seconds:.2}"),
        ],
    )
}

/// Writes a quantity with what it means.
fn evidence(evidence: &Evidence) -> String {
    let Evidence {
        quantity,
        source,
        threshold,
        rules_out,
    } = evidence;
    let from = if threshold.is_empty() {
        String::new()
    } else {
        format!("; counts from: {threshold}")
    };
    let out = if rules_out.is_empty() {
        String::new()
    } else {
        format!("; rules out: {rules_out}")
    };
    format!("{quantity} ({source}{from}){out}")
}
