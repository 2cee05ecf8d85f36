//! What a guest said of its frames, and the judgement of a level by that: only the kernel's own
//! words count (`include/uapi/linux/kernel-page-flags.h`, `stable_page_flags` of `fs/proc/page.c`),
//! and nothing that the filter computes.

use std::collections::{BTreeMap, BTreeSet};

use vmcore::{Dump, Io, Reader};

/// How the pages begin that have the report, and those that have the flags of frames.
const REPORT: &[u8] = b"marvin-report-1\0";
const FRAMES: &[u8] = b"marvin-frames-1\0";
/// How a marked page begins, before its kind.
const MARK: &[u8] = b"marvin-mark ";
/// Bytes before the flags of a page of the report.
const HEAD: usize = 32;
/// Flags in one page of the report.
pub(crate) const WORDS: u64 = 508;

const LRU: u64 = 1 << 5;
const SLAB: u64 = 1 << 7;
const BUDDY: u64 = 1 << 10;
const MMAP: u64 = 1 << 11;
const ANON: u64 = 1 << 12;
const SWAPCACHE: u64 = 1 << 13;
const COMPOUND_HEAD: u64 = 1 << 15;
const COMPOUND_TAIL: u64 = 1 << 16;
const HUGE: u64 = 1 << 17;
const HWPOISON: u64 = 1 << 19;
const NOPAGE: u64 = 1 << 20;
const OFFLINE: u64 = 1 << 23;
const PGTABLE: u64 = 1 << 26;
const RESERVED: u64 = 1 << 32;
const PRIVATE: u64 = 1 << 35;
/// Set by the guest: it read two different values.
const CHANGED: u64 = 1 << 63;

/// What the kernel says a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Reserved,
    Slab,
    PageTable,
    /// Given out, by no flag: stacks, buffers, the image; or free on a processor's list.
    Unnamed,
    Cache,
    PrivateCache,
    Anonymous,
    HugePage,
    Free,
    Poisoned,
    Balloon,
    /// In a block that is offline.
    OfflineBlock,
    /// The kernel has no record of it.
    NoRecord,
    /// It changed while it was read.
    Changed,
}

impl Kind {
    /// Returns the levels of which any one drops the page; `None` if each does, 0 if none does.
    fn dropped_by(self) -> Option<u8> {
        match self {
            Self::Reserved | Self::Slab | Self::PageTable | Self::Unnamed | Self::NoRecord => {
                Some(0)
            }
            Self::Cache => Some(2 | 4),
            Self::PrivateCache => Some(4),
            Self::Anonymous | Self::HugePage => Some(8),
            Self::Free => Some(16),
            Self::Poisoned | Self::Balloon | Self::OfflineBlock => None,
            Self::Changed => Some(0),
        }
    }

    /// Returns whether a level is to drop the page.
    pub(crate) fn is_dropped_at(self, level: u8) -> bool {
        self.dropped_by().is_none_or(|levels| levels & level != 0)
    }
}

/// The testimony of a guest.
pub(crate) struct Testimony {
    /// The kind of each frame.
    pub(crate) kinds: Vec<Kind>,
    /// The marked frames of each kind of memory, found by their content.
    pub(crate) marks: BTreeMap<String, BTreeSet<u64>>,
    /// Lines of the report: a word and the rest.
    pub(crate) report: Vec<(String, String)>,
}

impl Testimony {
    /// Finds it in the guest's memory.
    pub(crate) fn find(dump: &Dump) -> Self {
        let mut reader = Reader::new(dump, Io::Map);
        let mut flags = BTreeMap::new();
        let mut marks: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
        let mut report = Vec::new();
        for page in 0..dump.pages() {
            let Ok(bytes) = reader.bytes(page * dump.page_size(), 4096) else {
                continue;
            };
            if bytes.starts_with(FRAMES) {
                let [_, _, count, index] = words(&bytes[..HEAD]);
                flags.insert(index, words_of(&bytes[HEAD..], count));
            } else if bytes.starts_with(REPORT) {
                report = lines(&bytes[HEAD..]);
            } else if let Some(rest) = bytes.strip_prefix(MARK) {
                let word = rest.split(|byte| *byte == b' ').next().unwrap_or_default();
                let kind = String::from_utf8_lossy(word).into_owned();
                marks.entry(kind).or_default().insert(page);
            }
        }
        assert!(
            flags.keys().copied().eq(0..flags.len() as u64),
            "each page of flags is there once"
        );
        let flags: Vec<u64> = flags.into_values().flatten().collect();
        let kinds = kinds(&flags, &offline_pages(&report));
        Self {
            kinds,
            marks,
            report,
        }
    }

    /// Returns the number behind a line's first words.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.report
            .iter()
            .find_map(|(word, rest)| (word == name).then(|| rest.parse().ok())?)
    }
}

fn words(bytes: &[u8]) -> [u64; 4] {
    let all = words_of(bytes, 4);
    [all[0], all[1], all[2], all[3]]
}

fn words_of(bytes: &[u8], count: u64) -> Vec<u64> {
    let (words, _) = bytes.as_chunks::<8>();
    let count = usize::try_from(count.min(WORDS)).unwrap();
    words[..count]
        .iter()
        .map(|word| u64::from_le_bytes(*word))
        .collect()
}

fn lines(text: &[u8]) -> Vec<(String, String)> {
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(0);
    String::from_utf8_lossy(&text[..end])
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(word, rest)| (word.to_owned(), rest.to_owned()))
        .collect()
}

/// Returns the frames of blocks that are offline.
fn offline_pages(report: &[(String, String)]) -> BTreeSet<u64> {
    let numbers = |name: &str| {
        report
            .iter()
            .filter(|(word, _)| word == name)
            .filter_map(|(_, rest)| rest.parse::<u64>().ok())
            .collect::<Vec<u64>>()
    };
    let pages = numbers("block").first().copied().unwrap_or_default() / 4096;
    numbers("offline")
        .into_iter()
        .flat_map(|block| block * pages..(block + 1) * pages)
        .collect()
}

fn kinds(flags: &[u64], offline: &BTreeSet<u64>) -> Vec<Kind> {
    let mut head = 0;
    flags
        .iter()
        .enumerate()
        .map(|(page, flags)| {
            if flags & COMPOUND_HEAD != 0 {
                head = *flags;
            }
            // Until v6.9 a tail's own flags are shown, which are none (Linux kernel commit "proc:
            // rewrite stable_page_flags()").
            let inherited = if flags & COMPOUND_TAIL != 0 {
                head & !(HWPOISON | COMPOUND_HEAD)
            } else {
                0
            };
            let poisoned_huge = flags & HUGE != 0 && head & HWPOISON != 0;
            if offline.contains(&(page as u64)) {
                Kind::OfflineBlock
            } else if poisoned_huge {
                Kind::Poisoned
            } else {
                kind(flags | inherited)
            }
        })
        .collect()
}

fn kind(flags: u64) -> Kind {
    let has = |flag: u64| flags & flag != 0;
    let tests = [
        (CHANGED, Kind::Changed),
        (NOPAGE, Kind::NoRecord),
        (HWPOISON, Kind::Poisoned),
        (OFFLINE, Kind::Balloon),
        (RESERVED, Kind::Reserved),
        (SLAB, Kind::Slab),
        (PGTABLE, Kind::PageTable),
        (BUDDY, Kind::Free),
        (HUGE, Kind::HugePage),
        (ANON, Kind::Anonymous),
    ];
    if let Some((_, kind)) = tests.into_iter().find(|(flag, _)| has(*flag)) {
        return kind;
    }
    match has(LRU | SWAPCACHE) {
        true if has(PRIVATE) => Kind::PrivateCache,
        true => Kind::Cache,
        false => Kind::Unnamed,
    }
}

/// The judgement of a level.
#[derive(Debug, Default)]
pub(crate) struct Judgement {
    /// Dropped pages that the level keeps, by kind: each is a loss.
    pub(crate) lost: BTreeMap<Kind, BTreeSet<u64>>,
    /// Kept pages that the level drops, by kind.
    pub(crate) stayed: BTreeMap<Kind, BTreeSet<u64>>,
    /// Pages that the level drops, by kind, all of them.
    pub(crate) all: BTreeMap<Kind, u64>,
    /// Dropped pages of which the kernel names no owner: those on lists of processors.
    pub(crate) listed: BTreeSet<u64>,
}

/// Judges the pages that a level keeps; `memory` are those that there are.
pub(crate) fn judge(
    testimony: &Testimony,
    level: u8,
    memory: &BTreeSet<u64>,
    kept: &BTreeSet<u64>,
) -> Judgement {
    let mut judgement = Judgement::default();
    for (page, kind) in (0..).zip(&testimony.kinds) {
        if !memory.contains(&page) || *kind == Kind::Changed {
            continue;
        }
        let is_kept = kept.contains(&page);
        let is_dropped = kind.is_dropped_at(level);
        *judgement.all.entry(*kind).or_default() += u64::from(is_dropped);
        match kind {
            Kind::Unnamed if !is_kept && level & 16 != 0 => {
                judgement.listed.insert(page);
            }
            _ if is_dropped && is_kept => {
                judgement.stayed.entry(*kind).or_default().insert(page);
            }
            _ if !is_dropped && !is_kept => {
                judgement.lost.entry(*kind).or_default().insert(page);
            }
            _ => {}
        }
    }
    judgement.all.retain(|_, count| *count > 0);
    judgement
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needed_page_that_is_dropped_is_lost() {
        let flags = [
            RESERVED,
            LRU | COMPOUND_HEAD,
            COMPOUND_TAIL,
            COMPOUND_TAIL | HWPOISON,
            BUDDY,
            0,
            MMAP,
            ANON | LRU,
        ];
        let testimony = Testimony {
            kinds: kinds(&flags, &BTreeSet::from([4])),
            marks: BTreeMap::new(),
            report: Vec::new(),
        };
        let memory: BTreeSet<u64> = (0..8).collect();
        let judged = judge(&testimony, 2, &memory, &BTreeSet::from([2, 3, 7]));
        let needed = BTreeMap::from([
            (Kind::Reserved, BTreeSet::from([0])),
            (Kind::Unnamed, BTreeSet::from([5, 6])),
        ]);
        assert_eq!(judged.lost, needed);
        let superfluous = BTreeMap::from([
            (Kind::Cache, BTreeSet::from([2])),
            (Kind::Poisoned, BTreeSet::from([3])),
        ]);
        assert_eq!(judged.stayed, superfluous);
        assert_eq!(judged.all[&Kind::Cache], 2);
        // Free pages on lists have no name, and only a level that drops free pages may drop them.
        let free = judge(&testimony, 16, &memory, &(0..5).chain(6..8).collect());
        assert_eq!(free.listed, BTreeSet::from([5]));
        assert!(free.lost.is_empty());
    }
}
