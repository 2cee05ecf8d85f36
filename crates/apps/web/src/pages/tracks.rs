//! The newest comparable kernels of each track, tree and machine, as rows of the first page.

use history::{Counts, History, MachineIx, Overview, State, TrackPair};

use super::rows::{self, Show};
use super::{count, machine_digits, title};

/// Limit on rows; overviews of so many kernels are made for a page.
pub(crate) const TRACKS_MAX: usize = 12;

/// The newest comparable kernels of a track, and what was found.
pub(crate) struct TrackSeen {
    pub(crate) pair: TrackPair,
    /// On the pair's machines only.
    pub(crate) counts: Counts,
}

/// All tracks of a page.
pub(crate) struct Tracks {
    /// The newest of them.
    pub(crate) seen: Vec<TrackSeen>,
    /// How many there are.
    pub(crate) all: usize,
}

/// A row of the table.
pub(super) struct TrackRow {
    pub(super) track: String,
    /// The kinds and short ids of its machines.
    pub(super) machines: String,
    pub(super) target: String,
    pub(super) base: String,
    pub(super) href: String,
    /// Whether the page is about these kernels.
    pub(super) is_here: bool,
    /// Classes with numbers and words, none of them zero.
    pub(super) counts: Vec<(&'static str, String)>,
}

impl Tracks {
    /// Returns the rows, unless the page has all there is.
    pub(super) fn rows(
        &self,
        history: &History,
        here: &Overview,
        is_static: bool,
    ) -> Vec<TrackRow> {
        let rows = self
            .seen
            .iter()
            .map(|seen| row(history, here, seen, is_static));
        let rows: Vec<TrackRow> = rows.collect();
        if rows.iter().all(|row| row.is_here) {
            Vec::new()
        } else {
            rows
        }
    }

    /// Says how many tracks have no row.
    pub(super) fn more(&self) -> Option<String> {
        let more = self.all - self.seen.len();
        (more > 0).then(|| {
            format!(
                "{} not shown; marvin history lists them.",
                count(more, "older track")
            )
        })
    }

    /// Counts the results of other kernels than those of the page that are worse or failed, and
    /// those without a verdict.
    pub(super) fn elsewhere(&self, here: &Overview) -> (usize, usize) {
        let others = self.seen.iter().filter(|seen| !is_here(here, seen));
        others.fold((0, 0), |(worse, unknown), seen| {
            let counts = seen.counts;
            (
                worse + counts.worse + counts.failed,
                unknown + counts.unclear + counts.unrated,
            )
        })
    }
}

fn is_here(here: &Overview, seen: &TrackSeen) -> bool {
    let kernels = seen.pair.kernels;
    (here.base, here.target) == (kernels.base, kernels.target)
}

fn row(history: &History, here: &Overview, seen: &TrackSeen, is_static: bool) -> TrackRow {
    let TrackSeen { pair, counts } = seen;
    let kernels = pair.kernels;
    let href = if is_static {
        rows::all_path(history, kernels, 1)
    } else {
        rows::address_of(history, kernels, Show::All)
    };
    let tree = pair.tree.as_ref();
    TrackRow {
        track: tree.map_or_else(
            || pair.track.clone(),
            |tree| format!("{} {tree}", pair.track),
        ),
        machines: machines(history, &pair.machines),
        target: title(history, kernels.target).to_owned(),
        base: title(history, kernels.base).to_owned(),
        href,
        is_here: is_here(here, seen),
        counts: words(*counts),
    }
}

fn machines(history: &History, machines: &[MachineIx]) -> String {
    let named = machines.iter().map(|machine| {
        let kind = history.machine(*machine).kind;
        format!("{kind} {}", &machine_digits(history, *machine)[..6])
    });
    named.collect::<Vec<_>>().join(", ")
}

fn words(counts: Counts) -> Vec<(&'static str, String)> {
    let numbers = [
        (State::Worse, counts.worse, "worse"),
        (State::Failed, counts.failed, "failed"),
        (State::Unclear, counts.unclear, "unclear"),
        (State::Unrated, counts.unrated, "unrated"),
        (State::Missing, counts.missing, "not measured"),
        (State::Same, counts.same, "same"),
        (State::Better, counts.better, "better"),
    ];
    let there = numbers.into_iter().filter(|(_, number, _)| *number > 0);
    there
        .map(|(state, number, word)| (state.name(), format!("{number} {word}")))
        .collect()
}
