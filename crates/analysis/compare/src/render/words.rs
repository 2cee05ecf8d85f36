//! Sentences for every renderer, so that mail, page and terminal agree.

use std::collections::HashSet;

use model::{Build, Direction, Uncertainty, Unit, Verdict, WithinRun};

use crate::comparison::{Against, Comparison, ComparisonRow, Images, Warning};
use crate::value::Estimator;
use document::Style;
use document::number::{count, margin, seed_list};
use model::sanitize_line;

/// Returns the headline, one for each of the other kernels.
#[must_use]
pub fn headlines(comparison: &Comparison) -> Vec<String> {
    comparison
        .others
        .iter()
        .enumerate()
        .map(|(position, other)| headline(comparison, position + 1, other))
        .collect()
}

fn headline(comparison: &Comparison, kernel: usize, other: &Against) -> String {
    let sides = format!("{} against {}", other.kernel.title, comparison.base.title);
    format!("{sides}: {}", tally(comparison, kernel, other))
}

/// Returns the number of rows with each verdict, in words.
pub(crate) fn tally(comparison: &Comparison, kernel: usize, other: &Against) -> String {
    if other.images == Images::EqualWithoutRuns {
        return "equal images, no run needed".to_owned();
    }
    let counts = other.counts;
    let failed: HashSet<&str> = comparison
        .failures
        .iter()
        .filter(|f| f.kernel == kernel || f.kernel == 0)
        .flat_map(|f| f.occurrences.iter().map(|o| &*o.workload))
        .collect();
    let within = |kind| {
        let verdict = Verdict::Unclear(Uncertainty::WithinRun(kind));
        let rows = comparison.rows.iter();
        rows.filter(|row| row.cells[kernel - 1].compared.verdict == verdict)
            .count()
    };
    let parts = [
        (failed.len(), "failed"),
        (within(WithinRun::Better), WithinRun::Better.name()),
        (within(WithinRun::Worse), WithinRun::Worse.name()),
        (within(WithinRun::Same), WithinRun::Same.name()),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, name)| format!("{count} {name}"))
        .collect();
    let of_these = if parts.is_empty() {
        String::new()
    } else {
        format!(" ({})", parts.join(", "))
    };
    format!(
        "{} better, {} worse, {} same, {} unclear{of_these}",
        counts.better, counts.worse, counts.same, counts.unclear
    )
}

pub(crate) fn warning(warning: &Warning) -> String {
    match warning {
        Warning::MixedMachines(differences) => {
            let names: Vec<String> = differences.iter().map(|d| sanitize_line(&d.name)).collect();
            let differing = if names.is_empty() {
                "an unknown part of their fingerprints".to_owned()
            } else {
                names.join(", ")
            };
            format!(
                "WARNING: these kernels ran on different machines, which differ in {differing}. A difference below may \
                 come from the machine and not from the kernel."
            )
        }
        Warning::NotCompiled { kernel, files } => {
            format!(
                "Not measured: {kernel} changes code that its config does not compile: {}.",
                shorten(files)
            )
        }
        Warning::BuiltDifferently {
            kernel,
            compiler,
            base,
        } => format!(
            "{kernel} was built by {}, the baseline by {}. A difference below may come from the compiler and not from the \
             source.",
            sanitize_line(compiler),
            sanitize_line(base)
        ),
        Warning::AnotherQemu(versions) => format!(
            "Numbers of another QEMU ({}): exact among themselves, but not those of the reference machine. `marvin doctor` \
             names the QEMU that gives these.",
            versions.join(", ")
        ),
        Warning::ClockDisagrees {
            kernel,
            workload,
            counted_percent,
            time_percent,
        } => format!(
            "{workload} on {kernel}: {counted_percent:+.2}% by the instructions of kernel and user code, \
             {time_percent:+.2}% by guest time. The rest is idle time."
        ),
        Warning::SeedsLeftOut { kernel, seeds } => {
            format!(
                "Left out: {}: {kernel} and the baseline were not both measured with them.",
                seed_list(seeds)
            )
        }
        Warning::Disturbed {
            kernel,
            workloads,
            boots,
        } => format!(
            "Other work on the host disturbed {} on {kernel} in {}, however often Marvin measured; `marvin show RUN` says \
             how much.",
            shorten(workloads),
            count(*boots, "boot")
        ),
        Warning::Superseded { kernel, runs } => format!(
            "{} of {kernel} not shown where a newer run has the same number; `marvin runs` lists them.",
            count(*runs, "older run")
        ),
        Warning::NotRated { workloads } => format!(
            "{} not shown, metric direction unknown: {}. Set it with --lower NAMES or --higher NAMES.",
            count(workloads.len(), "workload"),
            shorten(workloads)
        ),
        Warning::NotRepeated {
            kernel,
            workload,
            seed,
        } => format!(
            "WARNING: two runs of {workload}, seed {seed}, on {kernel} gave different values, which cannot happen on an \
             exact machine. Marvin uses the newer one; trust neither before you find the cause."
        ),
    }
}

/// Returns the text that comes first: warnings before the headline if it cannot be trusted.
pub(crate) fn alarms(comparison: &Comparison) -> Vec<String> {
    let alarms = comparison
        .warnings
        .iter()
        .filter(|warning| !is_note(warning));
    alarms.map(warning).collect()
}

/// Returns the notes on the headline.
pub(crate) fn notes(comparison: &Comparison) -> Vec<String> {
    let ranks = super::noise::ranks_that_agree(comparison);
    warnings(comparison)
        .chain(ranks)
        .chain(super::noise::doubts(comparison))
        .collect()
}

/// Returns the notes on the headline that raise doubts.
pub(crate) fn doubts(comparison: &Comparison) -> Vec<String> {
    warnings(comparison)
        .chain(super::noise::doubts(comparison))
        .collect()
}

fn warnings(comparison: &Comparison) -> impl Iterator<Item = String> {
    let notes = comparison
        .warnings
        .iter()
        .filter(|warning| is_note(warning))
        .map(warning);
    measured_again(comparison).into_iter().chain(notes)
}

fn is_note(warning: &Warning) -> bool {
    matches!(
        warning,
        Warning::ClockDisagrees { .. }
            | Warning::Disturbed { .. }
            | Warning::NotRated { .. }
            | Warning::SeedsLeftOut { .. }
            | Warning::Superseded { .. }
    )
}

/// Returns names; of many, only the first ones.
fn shorten(names: &[String]) -> String {
    const MOST: usize = 8;
    let shown: Vec<String> = names
        .iter()
        .take(MOST)
        .map(|name| sanitize_line(name))
        .collect();
    let more = names.len().saturating_sub(MOST);
    if more > 0 {
        format!("{} and {more} more", shown.join(", "))
    } else {
        shown.join(", ")
    }
}

/// Returns a sentence for each kernel that is the base's image, measured again.
fn measured_again(comparison: &Comparison) -> Vec<String> {
    let doing = if one_machine(comparison) {
        "the lab"
    } else {
        "the machines"
    };
    comparison
        .others
        .iter()
        .filter(|other| other.images == Images::Equal)
        .map(|other| {
            let title = &other.kernel.title;
            format!("{title} is the same image as the baseline: any difference comes from {doing}, not from a kernel.")
        })
        .collect()
}

/// Rows of one experiment, unit and direction, which fit one table.
#[derive(Debug)]
pub(crate) struct Section<'a> {
    /// The table's name: the experiment, or the suite if its workloads have none.
    pub(crate) title: &'a str,
    pub(crate) unit: Unit,
    pub(crate) direction: Direction,
    /// The rows, in the suite's order.
    pub(crate) rows: Vec<&'a ComparisonRow>,
}

/// Returns the rows in tables: one per experiment, or more if units or directions differ. Empty if
/// no run is needed at all.
pub(crate) fn sections(comparison: &Comparison) -> Vec<Section<'_>> {
    let mut sections: Vec<Section<'_>> = Vec::new();
    if no_run_needed(comparison) {
        return sections;
    }
    for row in &comparison.rows {
        let title = comparison.block(row);
        let direction = row.workload.metric.direction;
        // Few sections: experiments times units times directions.
        match sections
            .iter_mut()
            .find(|s| s.title == title && s.unit == row.unit && s.direction == direction)
        {
            Some(section) => section.rows.push(row),
            None => sections.push(Section {
                title,
                unit: row.unit.clone(),
                direction,
                rows: vec![row],
            }),
        }
    }
    let mut titles: Vec<&str> = Vec::new();
    for section in &sections {
        if !titles.contains(&section.title) {
            titles.push(section.title);
        }
    }
    // Stable: an experiment's tables stay in the order of their first rows.
    sections.sort_by_key(|section| titles.iter().position(|title| *title == section.title));
    sections
}

/// Returns whether all kernels are the base's image without a measurement.
pub(crate) fn no_run_needed(comparison: &Comparison) -> bool {
    comparison
        .others
        .iter()
        .all(|o| o.images == Images::EqualWithoutRuns)
}

/// Returns the caption of a table: `micro: median instructions/op of 15 iterations, lower is
/// better`. Of noisy runs, the values are geometric means (`stats::Scores::centre`).
pub(crate) fn caption(comparison: &Comparison, section: &Section<'_>) -> String {
    let Section {
        title,
        unit,
        direction,
        ..
    } = section;
    if comparison.is_noisy() {
        return format!("{title}: {unit}, {direction}");
    }
    let values = match iterations(&section.rows) {
        Some((fewest, most)) if fewest == most => {
            format!("median {unit} of {}, {direction}", count(most, "iteration"))
        }
        Some((fewest, most)) => {
            format!("median {unit} of {fewest} to {most} iterations, {direction}")
        }
        None => format!("median {unit}, {direction}"),
    };
    format!("{title}: {values}")
}

/// Returns the smallest and largest number of iterations, without the first.
fn iterations(rows: &[&ComparisonRow]) -> Option<(usize, usize)> {
    let counts = rows
        .iter()
        .flat_map(|row| std::iter::once(&row.base).chain(row.cells.iter().map(|c| &c.measured)))
        .flat_map(|measured| &measured.seeds)
        .filter_map(|seed| seed.value.as_ref().ok())
        .map(|sampled| sampled.samples.len().saturating_sub(sampled.left_out));
    let counts: Vec<usize> = counts.collect();
    Some((*counts.iter().min()?, *counts.iter().max()?))
}

/// Returns the replicates: what they are called, and which.
pub(crate) fn replicates(comparison: &Comparison) -> (&'static str, String) {
    let list = seed_list(&comparison.seeds);
    let numbers = list
        .strip_prefix("seeds ")
        .or_else(|| list.strip_prefix("seed "))
        .unwrap_or(&list);
    match (replicate(comparison), comparison.seeds.len()) {
        ("run", _) => ("Runs", format!("{numbers} as their suite counts them")),
        ("boot", many) => ("Boots", many.to_string()),
        (_, 0) => ("Seeds", "none".to_owned()),
        (seed, many) => ("Seeds", format!("{numbers} ({})", count(many, seed))),
    }
}

/// Returns what a replicate is called; two kernels of one comparison have machines of one kind.
pub(crate) fn replicate(comparison: &Comparison) -> &'static str {
    comparison
        .kernels()
        .next()
        .map_or("seed", |kernel| kernel.machine.capabilities().replicate())
}

/// Returns what the values of noisy runs are: see [`crate::value::Estimator`] for that of one run,
/// which leaves samples out where there are enough.
pub(crate) fn means(comparison: &Comparison) -> String {
    let cells = comparison.rows.iter().flat_map(|row| {
        let others = row.cells.iter().map(|cell| &cell.measured);
        std::iter::once(&row.base).chain(others)
    });
    let is_trimmed = cells
        .flat_map(|measured| &measured.seeds)
        .filter_map(|seed| seed.value.as_ref().ok())
        .any(|sampled| Estimator::TrimmedMean.is_trimmed(sampled.samples.len()));
    let trimmed = if is_trimmed {
        ", each of its samples without a fifth at each end"
    } else {
        ""
    };
    format!(
        "geometric means over the {}s{trimmed}",
        replicate(comparison)
    )
}

/// Returns the legend of the stars in tables without letters, with the margins.
pub(crate) fn legend_of_stars(comparison: &Comparison) -> String {
    let text = margins(comparison);
    let rest = "Rows without a star are the same or unclear: see the observations.";
    if comparison.is_noisy() {
        return format!(
            "Stars: surely better or worse (at most 5% of them by chance), and by more than {text}. {rest}"
        );
    }
    let seeds = if comparison.seeds.len() > 1 {
        " for every seed"
    } else {
        ""
    };
    format!("Stars: better or worse by more than {text}{seeds}. {rest}")
}

/// Returns the margins of the rows, in words.
fn margins(comparison: &Comparison) -> String {
    let margins: Vec<f64> = comparison.rows.iter().map(|r| r.margin_percent).collect();
    match stats::spread(&margins) {
        Some(ends) if ends.min < ends.max => {
            format!(
                "its metric's margin ({} to {})",
                margin(ends.min),
                margin(ends.max)
            )
        }
        Some(ends) => format!("the margin of {}", margin(ends.max)),
        None => "the margin".to_owned(),
    }
}

/// Returns the legend of a comparison's table: its letters, and its intervals.
pub(crate) fn legend(comparison: &Comparison, style: Style) -> String {
    let has_intervals = style == Style::Marvin && comparison.is_imported();
    let intervals = has_intervals.then(|| "min..max: confidence interval of 95%.".to_owned());
    let letters = Some(legend_of_letters(comparison, style)).filter(|letters| !letters.is_empty());
    letters
        .into_iter()
        .chain(intervals)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Returns the legend of a comparison's letters, with the margins; only letters in tables of this
/// style.
pub(crate) fn legend_of_letters(comparison: &Comparison, style: Style) -> String {
    let text = margins(comparison);
    let has = |letter: char| {
        comparison
            .rows
            .iter()
            .flat_map(|row| &row.cells)
            .any(|cell| cell.compared.verdict.letter() == letter)
    };
    let changed: Vec<&str> = [('B', "B better"), ('W', "W worse")]
        .iter()
        .filter(|(letter, _)| has(*letter))
        .map(|(_, words)| *words)
        .collect();
    let is_noisy = comparison.is_noisy();
    let seeds = if comparison.seeds.len() > 1 {
        " for every seed"
    } else {
        ""
    };
    let mut parts = Vec::new();
    if !changed.is_empty() {
        let changed = changed.join(", ");
        parts.push(match is_noisy {
            true => format!(
                "{changed}: significant (at most 5% of them by chance) and by more than {text}."
            ),
            false => format!("{changed}: by more than {text}{seeds}."),
        });
    }
    // Tables of MMTests have no column of letters: B and W are listed below them.
    if style == Style::Marvin {
        let within = if parts.is_empty() { &*text } else { "it" };
        parts.extend(has('=').then(|| match is_noisy {
            true => format!("= same: within {within}, with a confidence of 90%."),
            false => format!("= same: within {within}{seeds}."),
        }));
        parts.extend(
            has('M')
                .then(|| "M mixed: another measure of the row disagrees, see below.".to_owned()),
        );
        let within: Vec<&str> = [('b', "b better"), ('w', "w worse"), ('~', "~ same")]
            .iter()
            .filter(|(letter, _)| has(*letter))
            .map(|(_, words)| *words)
            .collect();
        parts.extend((!within.is_empty()).then(|| {
            format!(
                "{}: within one run of each, and counted as unclear, see below.",
                within.join(", ")
            )
        }));
        parts.extend(has('?').then(|| "? unclear: the reason is below.".to_owned()));
    }
    parts.join(" ")
}

/// States why there is no run, if so.
pub(crate) fn why_no_run(comparison: &Comparison) -> &'static str {
    if comparison.is_not_measured() {
        "The images are equal because changed code is in neither: no run would measure it. `--config FILE` names another \
         kernel config."
    } else {
        "Equal images on the same machine give equal numbers: no run is needed."
    }
}

/// Names the machine of the kernels, in a sentence.
pub(crate) fn machine(comparison: &Comparison) -> String {
    let machine = &comparison.base.machine;
    if !one_machine(comparison) {
        return "different ones: see the kernels below".to_owned();
    }
    let known: HashSet<&str> = machine.summary.split(", ").collect();
    let mut also: Vec<String> = Vec::new();
    for other in &comparison.base.also {
        // Only the differences: the rest was printed. Machines that differ only in extra files look
        // the same here.
        let own: Vec<&str> = other
            .summary
            .split(", ")
            .filter(|part| !known.contains(part))
            .collect();
        let own = sanitize_line(&own.join(", "));
        if !own.is_empty() && !also.contains(&own) {
            also.push(own);
        }
    }
    let also: String = also
        .iter()
        .map(|own| format!("; also with {own}"))
        .collect();
    format!(
        "{}; {}{also}",
        machine.kind,
        sanitize_line(&machine.summary)
    )
}

/// Returns whether all kernels ran on the same machine.
pub(crate) fn one_machine(comparison: &Comparison) -> bool {
    let base = &comparison.base.machine.id;
    comparison.kernels().all(|k| k.machine.id == *base)
}

/// Returns the requested name of a kernel and, if that does not include it, its origin.
pub(crate) fn source(build: &Build) -> String {
    let name = build.name.to_string();
    let origin = build.origin.to_string();
    if name.ends_with(&origin) {
        sanitize_line(&name)
    } else {
        sanitize_line(&format!("{name} from {origin}"))
    }
}

/// Returns the first digits of an image's hash; kernels of other suites have no image.
pub(crate) fn image(build: &Build, digits: usize) -> String {
    match build.image.sha256.as_str() {
        "" => "none".to_owned(),
        sha256 => sanitize_line(&sha256.chars().take(digits).collect::<String>()),
    }
}

/// Returns a geometric mean of ratios in a sentence.
pub(crate) fn geometric_mean(comparison: &Comparison, other: &Against) -> Option<String> {
    let mean = other.geometric_mean?;
    let several = comparison.others.len() > 1;
    let of = if several {
        format!("{}: ", other.kernel.title)
    } else {
        String::new()
    };
    let place = comparison
        .others
        .iter()
        .position(|one| one.kernel.title == other.kernel.title)?;
    let own = comparison
        .rows
        .iter()
        .filter(|row| row.cells[place].compared.ratio.is_some())
        .count();
    let common = if mean.rows < own {
        ", those that all kernels have"
    } else {
        ""
    };
    let shown = |number: f64| document::number::ratio(number, 10);
    let ends = mean.ends.map_or_else(String::new, |ends| {
        format!(" (95%: {} to {})", shown(ends.min), shown(ends.max))
    });
    Some(format!(
        "{of}{}{ends} over {} of {}{common} (above 1 is better)",
        shown(mean.ratio),
        mean.rows,
        count(comparison.rows.len(), "row")
    ))
}
