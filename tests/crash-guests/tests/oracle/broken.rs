//! Filters that are broken on purpose. The judge has to find something wrong with each: one that
//! finds nothing proves nothing of the filter as it is.
//!
//! A wrong line of the note breaks the filter itself. What no line can break, such as the end of a
//! block, is broken in its result. The filter follows a page to its head only where a page begins
//! in an earlier section, as one of 1 GiB does: without one, that fault changes nothing. So it is
//! with PG_private, which only the page cache of a disk has.

use std::collections::BTreeSet;

/// How a filter is broken.
enum Fault {
    /// A line of the note has another number: it differs by so much.
    Differs(&'static str, i64),
    /// A line of the note has the number of another line.
    Copies(&'static str, &'static str),
    /// Each run of dropped pages is a page longer.
    Longer,
    /// Each run of dropped pages is a page shorter.
    Shorter,
    /// Each page has the answer of the one before it.
    Shifted,
}

/// A filter that is broken on purpose, and the level that shows it.
pub(crate) struct Broken {
    pub(crate) name: &'static str,
    /// The mark of memory without which the fault changes nothing.
    pub(crate) needs: Option<&'static str>,
    pub(crate) level: u8,
    fault: Fault,
}

const fn broken(name: &'static str, level: u8, fault: Fault) -> Broken {
    Broken {
        name,
        needs: None,
        level,
        fault,
    }
}

pub(crate) const BROKEN: [Broken; 14] = [
    broken(
        "PG_lru is the next bit",
        2,
        Fault::Differs("NUMBER(PG_lru)", 1),
    ),
    Broken {
        name: "PG_private is the next bit",
        needs: Some("disk"),
        level: 2,
        fault: Fault::Differs("NUMBER(PG_private)", 1),
    },
    broken(
        "PG_hwpoison is the bit before",
        1,
        Fault::Differs("NUMBER(PG_hwpoison)", -1),
    ),
    broken(
        "free pages have the type of offline ones",
        16,
        Fault::Copies(
            "NUMBER(PAGE_BUDDY_MAPCOUNT_VALUE)",
            "NUMBER(PAGE_OFFLINE_MAPCOUNT_VALUE)",
        ),
    ),
    broken(
        "flags are a word late",
        2,
        Fault::Differs("OFFSET(page.flags)", 8),
    ),
    broken(
        "mapping is a word late",
        8,
        Fault::Differs("OFFSET(page.mapping)", 8),
    ),
    Broken {
        name: "compound_head is a word late",
        needs: Some("giant"),
        level: 8,
        fault: Fault::Differs("OFFSET(page.compound_head)", 8),
    },
    // Its name since v7.1.
    Broken {
        name: "compound_info is a word late",
        needs: Some("giant"),
        level: 8,
        fault: Fault::Differs("OFFSET(page.compound_info)", 8),
    },
    broken(
        "_mapcount is four bytes late",
        16,
        Fault::Differs("OFFSET(page._mapcount)", 4),
    ),
    broken(
        "orders of free blocks are a word early",
        16,
        Fault::Differs("OFFSET(page.private)", -8),
    ),
    broken(
        "records are a word shorter",
        16,
        Fault::Differs("SIZE(page)", -8),
    ),
    broken("blocks end a page late", 31, Fault::Longer),
    broken("blocks end a page early", 31, Fault::Shorter),
    broken("each page is taken for the next", 31, Fault::Shifted),
];

impl Broken {
    /// Returns the note that breaks the filter; `None` if the kernel's note lacks the line.
    pub(crate) fn note(&self, text: &str) -> Option<String> {
        let (key, number) = match self.fault {
            Fault::Differs(key, by) => (key, number(text, key)? + by),
            Fault::Copies(key, other) => (key, number(text, other)?),
            Fault::Longer | Fault::Shorter | Fault::Shifted => return Some(text.to_owned()),
        };
        let old = line(text, key)?;
        Some(text.replace(old, &format!("{key}={number}")))
    }

    /// Returns the pages that the broken filter keeps of `memory`.
    pub(crate) fn pages(&self, kept: &BTreeSet<u64>, memory: &BTreeSet<u64>) -> BTreeSet<u64> {
        let is_kept = |page: u64| match self.fault {
            Fault::Differs(..) | Fault::Copies(..) => kept.contains(&page),
            Fault::Longer => kept.contains(&page) && kept.contains(&page.saturating_sub(1)),
            Fault::Shorter => kept.contains(&page) || kept.contains(&(page + 1)),
            Fault::Shifted => kept.contains(&page.saturating_sub(1)),
        };
        memory
            .iter()
            .copied()
            .filter(|page| is_kept(*page))
            .collect()
    }
}

fn line<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    let of_key = |line: &&str| line.split_once('=').is_some_and(|(name, _)| name == key);
    text.lines().find(of_key)
}

fn number(text: &str, key: &str) -> Option<i64> {
    line(text, key)?.split_once('=')?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_line_replaces_that_line_only() {
        let text = "SIZE(page)=64\nNUMBER(PG_lru)=5\nNUMBER(PG_lru_gen)=7\n";
        let lru = broken("", 2, Fault::Differs("NUMBER(PG_lru)", 1));
        let changed = "SIZE(page)=64\nNUMBER(PG_lru)=6\nNUMBER(PG_lru_gen)=7\n";
        assert_eq!(lru.note(text).as_deref(), Some(changed));
        let absent = broken("", 2, Fault::Differs("NUMBER(PG_slab)", 1));
        assert_eq!(absent.note(text), None);
    }

    #[test]
    fn runs_of_dropped_pages_change_their_ends() {
        let memory: BTreeSet<u64> = (0..8).collect();
        let kept = BTreeSet::from([0, 1, 4, 5, 6]);
        let result = |fault| broken("", 31, fault).pages(&kept, &memory);
        assert_eq!(result(Fault::Longer), BTreeSet::from([0, 1, 5, 6]));
        assert_eq!(result(Fault::Shorter), BTreeSet::from([0, 1, 3, 4, 5, 6]));
        assert_eq!(result(Fault::Shifted), BTreeSet::from([0, 1, 2, 5, 6, 7]));
    }
}
