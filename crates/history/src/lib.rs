//! What was measured of many kernels: series over their releases, the places where they change, the changes that may have one
//! cause, and a table of everything for two kernels.
//!
//! Runs are taken in one after the other ([`History::take`]), and [`History::settle`] works out anew what they touched: a
//! lab that grows is not read twice. Of a build, machine, workload and seed the newest run counts.
//!
//! A change is a verdict. On the exact machine values have no noise, so a kernel is held against the first one of the level
//! that it continues, seed by seed, by [`verdict()`](report::verdict()): where all seeds agree, the level ends. Where they do
//! not, because the layout of memory matters more than the kernel, or because a machine has noise, the medians over the
//! seeds are a noisy series, and `stats::changes` finds the levels of that. So both kinds of machines meet in one list of
//! changes, each saying what it rests on. What triage says of a change is kept by the `store`.
//!
//! Pure, as `report` is: runs and dates come in as values, texts and documents go out. Pages are the work of `web`.

mod alerts;
mod bisect_hint;
mod bisection_record;
mod changes;
mod gather;
mod kernels;
mod noise;
#[cfg(test)]
mod noisy_tests;
mod overview;
mod pair;
mod render;
mod series;
#[cfg(test)]
mod tests;
mod triaged;

pub use alerts::{Alert, Member, alerts};
pub use bisect_hint::{BisectHint, bisect_hint};
pub use bisection_record::{BisectionRecord, RecordedCulprit, records_of_alert};
pub use changes::{Basis, Change};
pub use gather::{History, NotKnown, Repeats, RunMark, RunPosition};
pub use kernels::Kernel;
pub use noise::{TRUST_DAYS, Trust};
pub use overview::{Card, Cell, Column, Counts, Group, Mean, Overview, Row, overview};
pub use pair::{Pair, State};
pub use render::{
    AlertDocument, ChangeDocument, HistoryDocument, MemberDocument, PointDocument, SeedDocument, SeriesDocument,
    TriageDocument, alert_document, alert_mail, alerts_text, aside_words, basis_words, change_size, documents,
    history_json, history_text, measured_by, mixed_words, no_change, range, series_document, sparkline, why_none,
};
pub use series::{Absent, Key, Lack, Point, Seen, Series, Value};
pub use triaged::{Triaged, triaged};

/// Returns a day in UTC: `2026-11-22`.
#[must_use]
pub fn day(unix: i64) -> String {
    let date = report::render::number::date(unix);
    date.split_once('T').map_or(date.clone(), |(day, _)| day.to_owned())
}
