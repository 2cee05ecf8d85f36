//! What a user should know of an archive although its packages can be used.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use model::Distribution;
use subprocess::Shared;

/// A notice about an archive's lists.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ListNotice {
    /// A suite's name, such as `stable`, stands for another release than in the last list.
    Renamed {
        distribution: Distribution,
        suite: String,
        before: String,
        now: String,
    },
    /// A suite beside the main one is not read: its list is no longer valid.
    LeftOut {
        suite: String,
        url: String,
        /// When it was valid last.
        ended: String,
        /// The setting with its address.
        setting: String,
    },
}

impl ListNotice {
    /// Returns whether the list at an address is left out.
    fn is_left_out(&self, list: &str) -> bool {
        match self {
            Self::LeftOut { url, .. } => url == list,
            Self::Renamed { .. } => false,
        }
    }
}

impl fmt::Display for ListNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Renamed {
                distribution,
                suite,
                before,
                now,
            } => write!(
                f,
                "{distribution}'s {suite} is {now} now; at the last list it was {before}"
            ),
            Self::LeftOut {
                suite,
                url,
                ended,
                setting,
            } => write!(
                f,
                "{suite} is left out, and newer packages may exist there: {url} was valid until {ended}; {setting} in marvin.toml has its address; is this host's date right?"
            ),
        }
    }
}

/// The notices of an archive, of all that share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Notices(Arc<Shared<Noticed>>);

#[derive(Debug, Default)]
struct Noticed {
    /// Those that were not taken yet, in order.
    new: Vec<ListNotice>,
    all: BTreeSet<ListNotice>,
}

impl Notices {
    /// Adds a notice, unless it was added before.
    pub(crate) fn add(&self, notice: ListNotice) {
        let mut noticed = self.0.lock();
        if noticed.all.insert(notice.clone()) {
            noticed.new.push(notice);
        }
    }

    /// Forgets that a list was left out: it is valid.
    pub(crate) fn list_is_valid(&self, url: &str) {
        let mut noticed = self.0.lock();
        noticed.all.retain(|notice| !notice.is_left_out(url));
        noticed.new.retain(|notice| !notice.is_left_out(url));
    }

    /// Returns the new notices, once.
    pub(crate) fn take(&self) -> Vec<ListNotice> {
        std::mem::take(&mut self.0.lock().new)
    }

    /// Returns the lists that are left out.
    pub(crate) fn left_out(&self) -> Vec<ListNotice> {
        let noticed = self.0.lock();
        let left_out = noticed
            .all
            .iter()
            .filter(|notice| matches!(notice, ListNotice::LeftOut { .. }));
        left_out.cloned().collect()
    }
}
