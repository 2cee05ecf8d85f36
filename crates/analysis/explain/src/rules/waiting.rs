//! Rules of threads that are runnable without a processor.

use crate::budget::View;
use crate::finding::{Finding, percent};

use super::settings::runnable;

/// The least share of the time (reference: 20 %).
const WAITING: f64 = 0.2;

/// The share of the processors' time from which on others are the reason, however many threads the
/// program has.
const THEIRS: f64 = 0.5;

fn waiting(view: &View, cause: String) -> Finding {
    let share = view.budget.waiting;
    Finding::new(cause, share).with(
        format!("{} runnable without a processor", percent(share)),
        "/proc/TID/schedstat",
        "20 %",
        "locks and I/O",
    )
}

pub(super) fn steal(view: &View) -> Option<Finding> {
    let host = &view.facts.host;
    (view.budget.waiting >= WAITING && host.steal > 0.05 && host.steal > others(view) / 2.0).then(
        || {
            waiting(
                view,
                "the hypervisor gives the host's processors to others".into(),
            )
            .with(
                format!("{} steal", percent(host.steal)),
                "/proc/stat",
                "5 %",
                "other processes of this host",
            )
            .advise("Measure on a host of its own.")
            .look("mpstat 1")
        },
    )
}

pub(super) fn neighbours(view: &View) -> Option<Finding> {
    let processors = view.facts.host.processors as f64;
    let own = view.budget.running() * view.total_s / view.facts.seconds.max(f64::MIN_POSITIVE);
    // With its own threads alone, the host would have had a processor for each; or they block
    // often, and had less than others.
    let blocks = view.budget.blocked >= 0.1 && own < processors * others(view);
    let is_theirs = others(view) >= THEIRS;
    let fits = runnable(view) <= processors + 0.2 || blocks || is_theirs;
    (view.budget.waiting >= WAITING && fits && others(view) >= 0.1).then(|| {
        waiting(view, "other processes use the processors".into())
            .with(
                format!(
                    "others used {} of the processors' time",
                    percent(others(view))
                ),
                "/proc/stat, /proc/TID/schedstat",
                "10 %",
                "its own threads: they would fit",
            )
            .advise("Stop the others, or give the program processors of its own (cpuset).")
            .look("top -H")
    })
}

pub(super) fn oversubscription(view: &View) -> Option<Finding> {
    let processors = view.facts.host.processors;
    let runnable = runnable(view);
    (view.budget.waiting >= WAITING
        && runnable > processors as f64 + 0.2
        && neighbours(view).is_none())
    .then(|| {
        waiting(
            view,
            format!("it has {runnable:.1} runnable threads on {processors} processors"),
        )
        .with(
            format!("{} idle", percent(view.facts.host.idle)),
            "/proc/stat",
            "",
            "affinity and quota",
        )
        .advise("Use as many threads as processors.")
        .look("cat /proc/PID/task/*/schedstat")
    })
}

/// Returns the processor time of other processes as a share of the host's.
fn others(view: &View) -> f64 {
    let host = &view.facts.host;
    host.others_s / (host.processors.max(1) as f64 * view.facts.seconds.max(f64::MIN_POSITIVE))
}
