//! Selects the rows of the overview by filter and page.

use history::{Group, History, KernelPair, Overview, OverviewCell, State};

use super::{count, title};
use crate::address::{encode, slug};

/// Limit on cells of a page: keeps it below 100 kB.
const CELLS_MAX: usize = 300;
/// Limit on rows: with a single machine, rows are longer.
const ROWS_MAX: usize = 150;

/// A filter by state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Show {
    All,
    /// Rows with any difference.
    Changed,
    /// Rows with a cell in this state.
    Only(State),
}

impl Show {
    pub(crate) const CHOICES: [Self; 6] = [
        Self::All,
        Self::Changed,
        Self::Only(State::Worse),
        Self::Only(State::Better),
        Self::Only(State::Unclear),
        Self::Only(State::Failed),
    ];

    /// Parses its name in an address.
    pub(crate) fn read(word: &str) -> Option<Self> {
        Self::CHOICES.into_iter().find(|show| show.name() == word)
    }

    /// Returns its name in an address.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Changed => "changed",
            Self::Only(state) => state.name(),
        }
    }

    /// Returns its name for people.
    pub(crate) fn title(self) -> &'static str {
        if self == Self::Changed {
            "changed"
        } else {
            self.name()
        }
    }

    fn has(self, cells: &[OverviewCell]) -> bool {
        let mut states = cells.iter().map(|cell| cell.pair.state);
        match self {
            Self::All => true,
            Self::Changed => states.any(|state| !matches!(state, State::Same | State::Missing)),
            Self::Only(wanted) => states.any(|state| state.tone() == wanted.tone()),
        }
    }
}

/// The requested part of the overview.
#[derive(Debug, Clone, Default)]
pub(crate) struct RowRequest {
    /// The filter; `None` for the page's default.
    pub(crate) show: Option<Show>,
    /// Shows only rows with this text in their name or subsystem.
    pub(crate) filter: String,
    /// Page number, from 0.
    pub(crate) page: usize,
    /// Whether the page is a file, without a form for filters.
    pub(crate) is_static: bool,
    /// Directories between the page and the top.
    pub(crate) depth: usize,
}

/// The rows of a filter and a page.
pub(crate) struct Chosen {
    pub(crate) groups: Vec<Group>,
    pub(crate) show: Show,
    shown: usize,
    found: usize,
    all: usize,
    pages: usize,
}

/// Returns whether a workload or its group has a text in its name; `filter` is in lower case.
fn matches(group: &Group, workload: &str, filter: &str) -> bool {
    filter.is_empty() || workload.to_lowercase().contains(filter) || group.name.contains(filter)
}

impl Chosen {
    pub(crate) fn choose(seen: &Overview, request: &RowRequest) -> Self {
        let all: usize = seen.groups.iter().map(|group| group.rows.len()).sum();
        let per_page = (CELLS_MAX / seen.columns.len().max(1)).clamp(1, ROWS_MAX);
        let show = request.show.unwrap_or(if all > per_page {
            Show::Changed
        } else {
            Show::All
        });
        let filter = request.filter.to_lowercase();
        let mut found = 0;
        let mut groups: Vec<Group> = Vec::new();
        let first = request.page.saturating_mul(per_page);
        for group in &seen.groups {
            let mut rows = Vec::new();
            for row in group
                .rows
                .iter()
                .filter(|row| show.has(&row.cells) && matches(group, &row.workload, &filter))
            {
                if (first..first.saturating_add(per_page)).contains(&found) {
                    rows.push(row.clone());
                }
                found += 1;
            }
            if !rows.is_empty() {
                groups.push(Group {
                    name: group.name.clone(),
                    rows,
                });
            }
        }
        let shown = groups.iter().map(|group| group.rows.len()).sum();
        Self {
            groups,
            show,
            shown,
            found,
            all,
            pages: found.div_ceil(per_page),
        }
    }

    /// Says how many rows are shown.
    pub(crate) fn summary(&self, seen: &Overview, request: &RowRequest) -> String {
        let rest = if self.shown == self.found {
            String::new()
        } else {
            format!(
                ", page {} of {}",
                request.page.saturating_add(1),
                self.pages
            )
        };
        let all = count(self.all, "workload");
        match (self.show, request.filter.is_empty()) {
            (Show::All, true) => format!("{all} in all{rest}."),
            (Show::Changed, true) => format!("{} of {all} changed{rest}.", self.found),
            (Show::Only(state), true) => format!(
                "{} of {all} are {} on a machine{rest}.",
                self.found,
                state.name()
            ),
            (_, false) if self.found == 0 => {
                format!("0 of {all} match{}", nearest(seen, &request.filter))
            }
            _ => format!("{} of {all} match{rest}.", self.found),
        }
    }

    /// Links to the previous and the next page; of a first page that is a file, to all rows.
    pub(crate) fn steps(
        &self,
        history: &History,
        seen: &Overview,
        request: &RowRequest,
    ) -> Vec<(String, String)> {
        let rows_path = |page: usize| all_path(history, pair_of(seen), page);
        if request.is_static && request.depth == 0 {
            return if self.shown < self.all {
                vec![("all rows".to_owned(), rows_path(1))]
            } else {
                Vec::new()
            };
        }
        let same_rows = format!(
            "{}&filter={}",
            address(history, seen, self.show),
            encode(&request.filter)
        );
        let before = request
            .page
            .checked_sub(1)
            .map(|page| page.min(self.pages.saturating_sub(1)));
        let path = |page: usize| {
            if request.is_static {
                rows_path(page)
            } else {
                format!("{same_rows}&page={page}")
            }
        };
        let before = before.map(|page| ("previous rows".to_owned(), path(page + 1)));
        let after = (request.page < self.pages.saturating_sub(1))
            .then(|| ("next rows".to_owned(), path(request.page + 2)));
        before.into_iter().chain(after).collect()
    }
}

/// The address of the same two kernels with other rows.
pub(crate) fn address(history: &History, seen: &Overview, show: Show) -> String {
    address_of(history, pair_of(seen), show)
}

fn pair_of(seen: &Overview) -> KernelPair {
    KernelPair {
        base: seen.base,
        target: seen.target,
    }
}

/// Returns the path of a page of all rows of two kernels, from 1, for files: they have no questions.
pub(crate) fn all_path(history: &History, kernels: KernelPair, page: usize) -> String {
    format!(
        "k/{}/{}/all-{page}.html",
        slug(title(history, kernels.base)),
        slug(title(history, kernels.target))
    )
}

/// Returns the address of the first page for two kernels.
pub(crate) fn address_of(history: &History, kernels: KernelPair, show: Show) -> String {
    format!(
        "index.html?base={}&target={}&show={}",
        encode(title(history, kernels.base)),
        encode(title(history, kernels.target)),
        show.name()
    )
}

/// Returns a question that suggests a similar name: of a workload, a group, or a subsystem.
fn nearest(seen: &Overview, filter: &str) -> String {
    let rows = seen
        .groups
        .iter()
        .flat_map(|group| &group.rows)
        .map(|row| &*row.workload);
    let groups = rows
        .clone()
        .filter_map(|name| Some(name.split_once('-')?.0));
    let subsystems = seen.groups.iter().map(|group| group.name.as_str());
    let filter = filter.to_lowercase();
    let nearest = rows
        .chain(groups)
        .chain(subsystems)
        .map(|name| (strsim::damerau_levenshtein(name, &filter), name))
        .min()
        .filter(|(distance, name)| distance * 3 <= name.len().max(filter.len()) + 2);
    nearest.map_or_else(
        || ".".to_owned(),
        |(_, name)| format!("; did you mean {name}?"),
    )
}
