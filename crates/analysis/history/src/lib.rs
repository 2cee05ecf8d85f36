//! The history of many kernels: series over their releases, changes of level, alerts, and an
//! overview of two kernels.
//!
//! [`History::add_run`] adds runs one by one, and [`History::recompute`] recomputes only the series
//! that they touched. Of a build, machine, workload and seed the newest run counts.
//!
//! A change is a verdict. Values of the exact machine have no noise, so a kernel is compared with
//! the first one of the current level, seed by seed, by [`verdict()`](compare::verdict()); if all
//! seeds agree, the level ends. If they do not, because the memory layout matters more than the
//! kernel or because the machine is noisy, `stats::changes` finds the levels of the medians over
//! the seeds. Both kinds of changes are in one list, each with its evidence. The `store`
//! keeps triage decisions.
//!
//! Pure, like `compare`: runs and dates come in as values, texts and documents go out. `web`
//! renders pages.

#![warn(missing_docs)]

#[cfg(test)]
mod alert_tests;
mod alerts;
mod bisect_hint;
mod bisection_record;
mod budget_fit;
mod changes;
pub mod commit_checks;
pub mod commit_formats;
pub mod commit_lines;
pub mod commit_mail;
mod commit_origin;
mod commit_page;
pub mod commit_table;
#[cfg(test)]
mod commit_tests;
mod digest;
mod doubts;
mod floor;
mod frequency;
pub mod gate;
pub mod gate_rows;
mod gather;
pub mod hunks_alone;
mod index;
mod kernels;
mod noise;
#[cfg(test)]
mod noisy_labs;
#[cfg(test)]
mod noisy_tests;
pub mod not_executed;
mod overview;
mod pair;
pub mod proof;
mod render;
mod series;
#[cfg(test)]
mod tests;
mod track_pairs;
mod triaged;
mod twins;

use model::UnixTime;

pub use alerts::{Alert, Member, alerts};
pub use bisect_hint::{BisectHint, bisect_hint, bisection_anywhere, chain_arguments};
pub use bisection_record::{BisectionRecord, RecordedCulprit, records_of_alert};
pub use changes::{Basis, Change};
pub use digest::{ResultDigest, RunDigest, Shape, ShapeIx};
pub use doubts::{Doubt, MailableAlert};
pub use floor::{BOOTS, NoiseFloor};
pub use frequency::describe_frequency;
pub use gather::{History, NotKnown, Repeats, RunMark, RunPosition};
pub use index::{KernelIx, KernelPair, MachineIx};
pub use kernels::Kernel;
pub use noise::{TRUST_DAYS, Trust};
pub use overview::{
    Card, Column, Counts, Group, Mean, Overview, OverviewCell, OverviewRow, overview,
};
pub use pair::{Pair, State};
pub use render::{
    AbsentDocument, Addresses, AlertDocument, AlertsDocument, ChangeDocument, HistoryDocument,
    KernelNameDocument, MemberDocument, RegressionText, RunListDocument, SeriesDocument,
    ToldDocument, TriageDocument, alert_document, alert_mail, alerts_document, alerts_text,
    aside_words, basis_words, change_size, digest_text, history_document, history_json,
    history_text, measured_by, mixed_words, no_change, range, regression_text, schemas, sparkline,
    told_words, why_none,
};
pub use series::{
    Absent, EstimatedCycles, Key, MissingKind, Point, SeedResult, SeedValue, Series, WithinMean,
};
pub use track_pairs::TrackPair;
pub use triaged::{Triaged, triage_alerts};

/// Returns a day in UTC: `2026-11-22`.
#[must_use]
pub fn day(time: UnixTime) -> String {
    let date = time.date();
    date.split_once('T')
        .map_or(date.clone(), |(day, _)| day.to_owned())
}
