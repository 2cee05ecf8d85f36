//! `marvin price`: what factors of a kernel's build and boot cost, one by one and in pairs.

use std::path::PathBuf;

use clap::Args;
use compare::{Comparison, Question, Side};
use model::{KernelName, Verdict};

use super::compare::{side, varied};
use crate::completion;
use crate::exit::{Exit, WrongInput};
use crate::measure::{find_builds, open_exact_lab_with, plan_runs, prepare_tools};
use crate::options::{MeasureOptions, SeedOptions, margin};
use crate::select::{choose_workloads, kernel_name_in};
use crate::session::{Session, now};

const PRICE_EXAMPLES: &str = "Examples:
  marvin price deb:6.12 sysfs:kernel/mm/transparent_hugepage/enabled=always \\
      sysctl:vm.overcommit_memory=2 --quick
  marvin price git:HEAD config:MEMCG=n config:NUMA=n --tree linux";

/// `marvin price`.
#[derive(Debug, Args)]
#[command(after_help = PRICE_EXAMPLES)]
pub(crate) struct PriceArguments {
    /// Kernel without the factors
    #[arg(add = completion::kernel())]
    pub(crate) base: String,

    /// What is built or booted otherwise: cmdline:PARAMETER, sysctl:NAME=VALUE, sysfs:FILE=VALUE,
    /// memory:SIZE, config:OPTION=VALUE, cc:COMPILER or make:VARIABLE=VALUE
    #[arg(value_name = "FACTOR", required = true)]
    pub(crate) factors: Vec<String>,

    /// Measure each factor alone, and no pairs
    #[arg(long)]
    pub(crate) no_pairs: bool,

    #[command(flatten)]
    pub(crate) measure: MeasureOptions,

    #[command(flatten)]
    pub(crate) seeds: SeedOptions,

    /// Threshold in percent: smaller differences count as same [default: that of the metric; 1 for
    /// suite micro]
    #[arg(long, value_name = "PERCENT", value_parser = margin, allow_negative_numbers = true)]
    pub(crate) margin: Option<f64>,

    /// Write the table to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Most factors: with their pairs 36 kernels.
const FACTORS_MAX: usize = 8;
/// Seeds of each kernel by default.
const SEEDS: u64 = 2;
/// Widths of a row's name and of a factor.
const NAME: usize = 20;
const CELL: usize = 10;

/// Two factors, by position.
type Pair = (usize, usize);

pub(crate) fn price(session: &Session, command: &PriceArguments) -> anyhow::Result<Exit> {
    let factors = &command.factors;
    if factors.len() > FACTORS_MAX {
        let text = format!(
            "{} factors: at most {FACTORS_MAX} can be priced at once",
            factors.len()
        );
        return Err(WrongInput(text).into());
    }
    let tree = command.measure.sources.tree.as_deref();
    let base = kernel_name_in(&command.base, tree)?;
    let pairs = pairs(factors.len(), command.no_pairs);
    let mut names = vec![base.clone()];
    for factor in factors {
        names.push(varied(&base, factor)?);
    }
    for (one, other) in &pairs {
        names.push(varied(&names[one + 1], &factors[*other])?);
    }
    let comparison = measure(session, command, &names)?;
    let answer = session.answer(command.output.as_deref())?;
    answer.write(table(&comparison, factors, &pairs))?;
    Ok(conclusion(&comparison))
}

fn pairs(factors: usize, none: bool) -> Vec<Pair> {
    if none {
        return Vec::new();
    }
    (0..factors)
        .flat_map(|one| (one + 1..factors).map(move |other| (one, other)))
        .collect()
}

/// Measures all kernels and compares them with the first.
fn measure(
    session: &Session,
    command: &PriceArguments,
    names: &[KernelName],
) -> anyhow::Result<Comparison> {
    let chosen = choose_workloads(session, &command.measure, names)?;
    let lab = open_exact_lab_with(session, &command.measure, chosen.tools.clone())?;
    let progress = session.progress();
    let builds = find_builds(&lab, names, &progress)?;
    prepare_tools(&lab, &chosen.workloads, &progress)?;
    let seeds: Vec<u64> = (1..=command.seeds.count(SEEDS)).collect();
    let plan = plan_runs(
        &command.measure,
        &builds,
        &chosen.suite,
        &chosen.workloads,
        &seeds,
    );
    let runs = lab.execute(&plan, &|event| progress.event(&event))?;
    progress.end();
    let machines = lab.machines(&chosen.workloads)?;
    let workloads = chosen.tools.with_printed_rows(&chosen.workloads, &runs);
    let question = Question {
        margin_percent: command.margin,
        created_unix: Some(now()),
        ..Question::about(chosen.suite.name, workloads, seeds)
    };
    let sides: Vec<Side<'_>> = builds
        .iter()
        .zip(&runs)
        .map(|(build, runs)| side(build, runs, &machines))
        .collect();
    Ok(compare::compare(&sides[0], &sides[1..], &question)?)
}

/// Returns by how many percent of the base a cell's value differs.
fn change(row: &compare::ComparisonRow, at: usize) -> Option<f64> {
    let base = row.base.value.filter(|value| *value != 0.0)?;
    Some(100.0 * (row.cells[at].measured.value? - base) / base)
}

/// Returns the letter of a verdict, as in tables of `marvin compare`.
fn letter(verdict: &Verdict) -> char {
    match verdict {
        Verdict::Better => 'B',
        Verdict::Worse => 'W',
        Verdict::Same => '=',
        Verdict::Unclear(_) => '?',
    }
}

/// Returns the name of a factor in the table: A, B, C.
fn mark(factor: usize) -> char {
    (b'A'..=b'Z').nth(factor).map_or('?', char::from)
}

fn table(comparison: &Comparison, factors: &[String], pairs: &[Pair]) -> String {
    let mut lines = vec![
        format!(
            "{}, suite {}: what each factor changes, in percent of the value without it",
            comparison.base.title, comparison.suite
        ),
        String::new(),
    ];
    for (at, factor) in factors.iter().enumerate() {
        lines.push(format!("  {}  {factor}", mark(at)));
    }
    lines.push(String::new());
    let marks: Vec<String> = (0..factors.len())
        .map(|at| format!("{:>CELL$}", mark(at)))
        .collect();
    lines.push(format!("{:<NAME$}{}", "", marks.join(" ")));
    for row in &comparison.rows {
        let cells: Vec<String> = (0..factors.len())
            .map(|at| match change(row, at) {
                None => format!("{:>CELL$}", "-"),
                Some(percent) => {
                    let letter = letter(&row.cells[at].compared.verdict);
                    format!("{:>CELL$}", format!("{percent:+.2}% {letter}"))
                }
            })
            .collect();
        lines.push(format!("{:<NAME$}{}", row.workload.name, cells.join(" ")));
    }
    lines.push(String::new());
    lines.push("B better, W worse: by more than the margin. = same, ? unclear.".to_owned());
    if !pairs.is_empty() {
        lines.push(String::new());
        lines.extend(interactions(comparison, factors.len(), pairs));
    }
    lines.join("\n") + "\n"
}

/// Returns the pairs whose change is not the sum of both, by more than the row's margin.
fn interactions(comparison: &Comparison, factors: usize, pairs: &[Pair]) -> Vec<String> {
    let mut lines = Vec::new();
    for row in &comparison.rows {
        for (at, (one, other)) in pairs.iter().enumerate() {
            let (Some(first), Some(second), Some(both)) = (
                change(row, *one),
                change(row, *other),
                change(row, factors + at),
            ) else {
                continue;
            };
            let more = both - first - second;
            if more.abs() > row.margin_percent {
                lines.push(format!(
                    "{:<NAME$} {}+{}: {both:+.2}% together, {:+.2}% as a sum",
                    row.workload.name,
                    mark(*one),
                    mark(*other),
                    first + second
                ));
            }
        }
    }
    let head = if lines.is_empty() {
        "In all pairs the whole is the sum of both, within the margin."
    } else {
        "Pairs whose whole is not the sum of both, by more than the margin:"
    };
    lines.insert(0, head.to_owned());
    lines
}

/// A price is no verdict: what could not be measured or is unclear decides.
fn conclusion(comparison: &Comparison) -> Exit {
    let mut cells = comparison.rows.iter().flat_map(|row| &row.cells);
    if !comparison.failures.is_empty() {
        Exit::Subject
    } else if cells.any(|cell| matches!(cell.compared.verdict, Verdict::Unclear(_))) {
        Exit::Unclear
    } else {
        Exit::Fine
    }
}
