//! `marvin stabilise --dry-run`: the size of the search and its estimated cost, without building.

use std::sync::Arc;

use document::number::count;
use kernel::Sources;
use lab::bisection::{add, short};
use lab::{FoundSubject, estimate_measurement};
use model::Workload;
use store::{Location, Store};

use super::StabiliseArguments;
use crate::measure::parallel_machines;
use crate::session::span;

/// Causes, and repairs, that an estimate assumes.
const ASSUMED: usize = 5;

/// Duration of a build before the first one (s).
const BUILD_S: f64 = 60.0;

pub(super) fn plan_stabilisation(
    command: &StabiliseArguments,
    found: &FoundSubject,
    sources: &Sources,
    rows: &[Arc<Workload>],
    location: Location,
) -> anyhow::Result<String> {
    let subject = &found.subject;
    let store = Store::open_read_only(location).ok();
    let mut measuring_s = 0.0;
    let mut is_guess = false;
    for workload in rows {
        let estimate = estimate_measurement(
            store.as_ref(),
            workload,
            command.seed_count(),
            parallel_machines(command.search.jobs),
        )?;
        measuring_s += estimate.seconds;
        is_guess |= estimate.guessed > 0;
    }
    let points = subject.trunk.len();
    let candidates = subject.candidates.len();
    let builds =
        2 + ASSUMED * (steps(points) + 1) + 1 + ASSUMED * (steps(candidates) + 1) + 1 + ASSUMED;
    let mut text = format!(
        "{}..{}: {}, {} on the trunk\n",
        short(subject.point(0)),
        short(subject.new_commit()),
        count(subject.history.count(), "commit"),
        points
    );
    if !found.is_ancestor {
        add(
            &mut text,
            format_args!(
                "NEW does not descend from BASELINE {}\n",
                short(&subject.baseline)
            ),
        );
    }
    add(
        &mut text,
        format_args!(
            "{}; NEW has {} more already\n",
            count(candidates, "candidate"),
            found.in_new
        ),
    );
    add(
        &mut text,
        format_args!(
            "{}, {} each\n\n",
            count(rows.len(), "row"),
            count(command.seed_count() as usize, "seed")
        ),
    );
    let seconds = sources.seconds();
    let build_s = seconds.map_or(BUILD_S, |seconds| seconds.last as f64);
    add(
        &mut text,
        format_args!(
            "{:<12}about {builds}, with {ASSUMED} causes and {ASSUMED} repairs\n",
            "builds"
        ),
    );
    match seconds {
        Some(seconds) => add(
            &mut text,
            format_args!(
                "{:<12}{} for the last one here, {} for the longest\n",
                "each",
                span(seconds.last as f64),
                span(seconds.longest as f64)
            ),
        ),
        None => add(
            &mut text,
            format_args!("{:<12}the first takes minutes; no build here yet\n", "each"),
        ),
    }
    let guess = if is_guess {
        ", a guess: not all rows were measured here"
    } else {
        ""
    };
    add(
        &mut text,
        format_args!(
            "{:<12}{} for all rows of a kernel{guess}\n",
            "measuring",
            span(measuring_s)
        ),
    );
    // Most kernels are measured on the debts only.
    let total = builds as f64 * (build_s + measuring_s / 3.0);
    add(
        &mut text,
        format_args!("{:<12}about {}\n", "together", span(total)),
    );
    Ok(text)
}

/// Returns how many steps halve a range down to one.
fn steps(count: usize) -> usize {
    (count.max(1) as f64).log2().ceil() as usize
}
