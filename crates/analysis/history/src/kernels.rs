//! The kernels of a history, in the one order that all pages, lists and alerts use: that of their
//! releases, and of commits by ancestry and date, or else by their first measurement.

use std::collections::{BTreeSet, HashMap};

use super::index::KernelIx;
use document::label::labels;
use model::{
    Build, BuildId, KernelName, Machine, Origin, Release, ReleaseLine, Run, SourceOrigin, UnixTime,
    track_of,
};

/// A kernel with results, and its position in the history.
#[derive(Debug, Clone, PartialEq)]
pub struct Kernel {
    /// The build that was measured.
    pub build: Build,
    /// Its position in release order, with the date of a commit.
    pub release: Release,
    /// Its track: the kernels of one configuration and tree.
    pub track: String,
    /// Its title: the version, and more if that is not unique.
    pub title: String,
}

/// What orders a kernel whose version ends with a hash.
#[derive(Debug, Clone, Copy, Default)]
struct Dates {
    /// When its commit was made, if the build says so.
    committed: Option<UnixTime>,
    /// When it was first measured.
    measured: Option<UnixTime>,
}

/// Kernels, numbered in order of arrival, and their release order.
#[derive(Debug, Clone, Default)]
pub(super) struct Kernels {
    all: Vec<Kernel>,
    numbers: HashMap<BuildId, KernelIx>,
    /// The dates of each.
    dates: Vec<Dates>,
    /// Numbers in release order.
    order: Vec<KernelIx>,
    /// Each number's position in that order.
    rank: Vec<usize>,
    /// Of each configuration, the name of the first tree: its track has no other name.
    first_trees: HashMap<String, String>,
}

impl Kernels {
    /// Adds builds that are not known, and sorts once. Returns whether others have another order
    /// now.
    pub(super) fn add(&mut self, builds: &[Build]) -> bool {
        let before = self.order.clone();
        let count = self.all.len();
        for build in builds {
            self.push(build);
        }
        if self.all.len() == count {
            return false;
        }
        self.sort();
        !self.order.iter().filter(|n| n.0 < count).eq(&before)
    }

    fn push(&mut self, build: &Build) {
        if self.find(&build.id).is_some() {
            return;
        }
        let committed = match &build.origin {
            Origin::Built { committed_unix, .. } => *committed_unix,
            Origin::Package { .. } | Origin::Described(_) => None,
        };
        let release = Release::parse(&build.version);
        let track = self.track(build);
        self.numbers
            .insert(build.id.clone(), KernelIx(self.all.len()));
        self.all.push(Kernel {
            build: build.clone(),
            release,
            track,
            title: String::new(),
        });
        self.dates.push(Dates {
            committed,
            measured: None,
        });
    }

    /// Returns the track of a build. Commits of another tree than the first one have a track of
    /// their own: two trees side by side are no history. Clones of one tree, as on several hosts,
    /// have folders of one name.
    fn track(&mut self, build: &Build) -> String {
        let track = track_of(&build.name);
        let Some(tree) = tree_of(build).map(tree_name) else {
            return track;
        };
        let first = self
            .first_trees
            .entry(track.clone())
            .or_insert_with(|| tree.to_owned());
        if first == tree {
            track
        } else {
            format!("{track}:{}", plain_word(tree))
        }
    }

    /// Takes the starts of runs of kernels, and sorts once. Returns whether kernels that had runs
    /// before have another order now.
    pub(super) fn measured(&mut self, starts: impl Iterator<Item = (KernelIx, UnixTime)>) -> bool {
        let mut is_earlier = false;
        let mut fresh = BTreeSet::new();
        for (kernel, started_unix) in starts {
            let started = Run::known_start(started_unix).unwrap_or(UnixTime::MAX);
            let first = &mut self.dates[kernel.0].measured;
            if self.all[kernel.0].release.is_hashed() && first.is_none_or(|first| started < first) {
                if first.is_none() {
                    fresh.insert(kernel);
                }
                *first = Some(started);
                is_earlier = true;
            }
        }
        if !is_earlier {
            return false;
        }
        let before = self.order.clone();
        self.sort();
        let is_old = |n: &&KernelIx| !fresh.contains(n);
        !self
            .order
            .iter()
            .filter(is_old)
            .eq(before.iter().filter(is_old))
    }

    /// Sorts by release. Dates of commits and of measurements do not compare: commits of one track
    /// and version have the first only if all have, as those built before builds kept them have
    /// none.
    fn sort(&mut self) {
        let mut undated = BTreeSet::new();
        for (kernel, dates) in self.all.iter().zip(&self.dates) {
            if matches!(kernel.build.name, KernelName::Git(_))
                && kernel.release.is_hashed()
                && dates.committed.is_none()
            {
                undated.insert(track_and_stem(kernel));
            }
        }
        for (kernel, dates) in self.all.iter_mut().zip(&self.dates) {
            let committed = dates
                .committed
                .filter(|_| !undated.contains(&track_and_stem(kernel)));
            kernel.release = kernel.release.clone().dated(committed.or(dates.measured));
        }
        self.order = (0..self.all.len()).map(KernelIx).collect();
        let all = &self.all;
        self.order.sort_by_key(|n| {
            let kernel = &all[n.0];
            (&kernel.release, &kernel.track, &kernel.build.id)
        });
        self.rank = vec![0; self.all.len()];
        for (place, number) in self.order.iter().enumerate() {
            self.rank[number.0] = place;
        }
    }

    /// Sets the titles; what distinguishes two of one version may be the machine.
    pub(super) fn name(&mut self, machine: &Machine) {
        let pairs: Vec<_> = self
            .all
            .iter()
            .map(|kernel| (&kernel.build, machine))
            .collect();
        let titles: Vec<String> = labels(&pairs)
            .into_iter()
            .map(|label| label.title)
            .collect();
        for (kernel, title) in self.all.iter_mut().zip(titles) {
            kernel.title = title;
        }
    }

    pub(super) fn find(&self, build: &BuildId) -> Option<KernelIx> {
        self.numbers.get(build).copied()
    }

    pub(super) fn get(&self, kernel: KernelIx) -> &Kernel {
        &self.all[kernel.0]
    }

    pub(super) fn order(&self) -> &[KernelIx] {
        &self.order
    }

    /// Returns the first and the last position of the kernels of a track and version: of several
    /// builds, a decision names one.
    pub(super) fn ranks_of(&self, track: &str, version: &str) -> Option<(usize, usize)> {
        let mut found = self
            .order
            .iter()
            .filter(|number| {
                let kernel = &self.all[number.0];
                kernel.track == track && kernel.release.as_str() == version
            })
            .map(|number| self.rank[number.0]);
        let first = found.next()?;
        Some((first, found.next_back().unwrap_or(first)))
    }

    pub(super) fn rank(&self, kernel: KernelIx) -> usize {
        self.rank[kernel.0]
    }

    /// Returns the kernels of a track and line, in order.
    pub(super) fn of_track(&self, track: &str, line: ReleaseLine) -> Vec<KernelIx> {
        self.order
            .iter()
            .copied()
            .filter(|n| self.all[n.0].track == track && line.has(&self.all[n.0].release))
            .collect()
    }

    /// Returns the tracks, each once.
    pub(super) fn tracks(&self) -> Vec<&str> {
        let mut tracks: Vec<&str> = self
            .all
            .iter()
            .map(|kernel| kernel.track.as_str())
            .collect();
        tracks.sort_unstable();
        tracks.dedup();
        tracks
    }

    /// Returns the kernel with this title, beginning of its build's id, or version; of several of
    /// that version, the last in order.
    pub(super) fn named(&self, text: &str) -> Option<KernelIx> {
        self.newest(|kernel| kernel.title == text)
            .or_else(|| self.newest(|kernel| kernel.release.as_str() == text))
            .or_else(|| {
                self.newest(|kernel| {
                    text.len() > 6 && kernel.build.id.to_string().starts_with(text)
                })
            })
    }

    /// Returns the newest kernel that fulfills a condition.
    fn newest(&self, condition: impl Fn(&Kernel) -> bool) -> Option<KernelIx> {
        let mut newest_first = self.order.iter().rev().copied();
        newest_first.find(|n| condition(&self.all[n.0]))
    }
}

/// Returns the directory of the git tree that a build is a commit of.
pub(super) fn tree_of(build: &Build) -> Option<&str> {
    match &build.origin {
        Origin::Built {
            source: SourceOrigin::Commit { tree, .. },
            ..
        } => Some(tree),
        _ => None,
    }
}

/// Returns the last part of a tree's directory, without `.git`.
fn tree_name(folder: &str) -> &str {
    let folder = folder.trim_end_matches('/');
    let folder = folder.strip_suffix("/.git").unwrap_or(folder);
    let name = folder.rsplit('/').next().unwrap_or(folder);
    name.strip_suffix(".git").unwrap_or(name)
}

/// Returns a name without what a shell, a mail or a terminal would read as more than a letter.
fn plain_word(name: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.+".contains(letter);
    name.chars()
        .map(|letter| if is_plain(letter) { letter } else { '-' })
        .collect()
}

/// Returns the track and the version without the commit: the kernels that dates have to order.
fn track_and_stem(kernel: &Kernel) -> (String, String) {
    (kernel.track.clone(), kernel.release.stem().to_owned())
}

#[cfg(test)]
mod tests {
    use compare::fixtures::{Ending, Subject, build};
    use model::{Build, Origin, ReleaseLine, UnixTime};

    use super::super::tests::taken;
    use super::tree_name;
    use crate::alerts;

    fn commit(tree: &str, number: u32, cost: f64) -> Subject {
        let hash = format!("{number:012x}");
        let built = build("git:HEAD", &format!("6.12.0-g{hash}"));
        let line = format!("commit {hash} of {tree}, micro, gcc 12.2");
        let built = Build {
            origin: Origin::of_line(&line, &built.name),
            ..built
        };
        let mut subject = Subject::new(built, &[1], &[("fault-anon", Ending::Cost(cost, 0.0))]);
        for run in &mut subject.runs {
            run.started_unix = UnixTime::new(1_780_000_000 + i64::from(number) * 86_400);
        }
        subject
    }

    #[test]
    fn trees_side_by_side_have_tracks() {
        // Another tree is slower, and is measured in between.
        let subjects = [
            commit("/src/linux", 1, 100.0),
            commit("/home/ada/linux-next.git", 2, 130.0),
            commit("/home/ada/linux/", 3, 100.0),
            commit("/home/ada/linux-next/.git", 4, 130.0),
        ];
        let history = taken(&subjects);
        assert_eq!(history.tracks(), ["git", "git:linux-next"]);
        assert_eq!(alerts(&history, ReleaseLine::All), []);
    }

    #[test]
    fn hostile_folder_makes_a_plain_track() {
        let subjects = [
            commit("/src/linux", 1, 100.0),
            commit("/src/my tree\u{1b}[2J$(x)", 2, 100.0),
        ];
        assert_eq!(taken(&subjects).tracks(), ["git", "git:my-tree--2J--x-"]);
    }

    #[test]
    fn tree_is_named_by_its_folder() {
        for (folder, name) in [
            ("/src/linux", "linux"),
            ("/src/linux/.git/", "linux"),
            ("linux.git", "linux"),
            ("/", ""),
        ] {
            assert_eq!(tree_name(folder), name);
        }
    }
}
