//! Roll-up by source directory, from debug information.

use std::collections::BTreeMap;

use model::{Share, SourceLocation};

use super::{Ledger, LedgerLine, names};

/// Source locations of the functions of two kernels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources {
    /// By name without suffixes: the new kernel's location, or else the base's.
    places: BTreeMap<String, SourceLocation>,
}

/// All lines of one directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderSum {
    /// The directory, relative to the source tree.
    pub folder: String,
    /// Instructions of the base and of the new kernel.
    pub all: [u64; 2],
}

impl Sources {
    /// Takes the locations of both kernels' symbols.
    #[must_use]
    pub fn new(
        base: &BTreeMap<String, SourceLocation>,
        new: &BTreeMap<String, SourceLocation>,
    ) -> Self {
        let both = base
            .iter()
            .chain(new)
            .map(|(symbol, place)| (names::key(symbol), place.clone()));
        Self {
            places: both.collect(),
        }
    }

    /// Returns whether no location is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns the location of a line's function.
    #[must_use]
    pub fn place(&self, line: &LedgerLine) -> Option<&SourceLocation> {
        self.places.get(&line.function)
    }
}

impl Ledger {
    /// Returns the lines by source directory, largest difference first. They add up to the total.
    #[must_use]
    pub fn folders(&self, sources: &Sources) -> Vec<FolderSum> {
        let mut sums: BTreeMap<String, [u64; 2]> = BTreeMap::new();
        for line in &self.lines {
            let folder = match sources.place(line) {
                Some(place) => place.folder(),
                None if line.share == Share::User => "user code",
                None => "unknown",
            };
            let sum = sums.entry(folder.to_owned()).or_default();
            *sum = [
                sum[0] + line.base.instructions,
                sum[1] + line.new.instructions,
            ];
        }
        let mut folders: Vec<FolderSum> = sums
            .into_iter()
            .map(|(folder, all)| FolderSum { folder, all })
            .collect();
        let added =
            |sum: &FolderSum| super::scaled(self.operations, sum.all[0], sum.all[1]).unsigned_abs();
        folders.sort_by_key(|sum| std::cmp::Reverse(added(sum)));
        folders
    }
}

#[cfg(test)]
mod tests {
    use super::Sources;
    use crate::ledger::Ledger;
    use crate::ledger::tests::profile;
    use model::SourceLocation;
    use std::collections::BTreeMap;

    #[test]
    fn lines_are_summed_by_folder() {
        let base = profile(
            1,
            &[
                ("[user]", 5, 0),
                ("f.isra.0", 10, 1),
                ("g", 20, 1),
                ("strange", 1, 1),
            ],
        );
        let new = profile(1, &[("[user]", 5, 0), ("f", 40, 1), ("g", 25, 1)]);
        let ledger = Ledger::new("w", &[base], &[new]).unwrap();
        let places = [("f", "mm/a.c"), ("g", "kernel/sched/b.c")].map(|(function, file)| {
            let file = file.to_owned();
            (function.to_owned(), SourceLocation { file, line: 7 })
        });
        let sources = Sources::new(&BTreeMap::new(), &BTreeMap::from(places));
        let sums: Vec<_> = ledger
            .folders(&sources)
            .into_iter()
            .map(|sum| (sum.folder, sum.all))
            .collect();
        let expected = [
            ("mm", [10, 40]),
            ("kernel/sched", [20, 25]),
            ("unknown", [1, 0]),
            ("user code", [5, 5]),
        ];
        assert_eq!(sums, expected.map(|(folder, all)| (folder.to_owned(), all)));
    }
}
