//! The exclusion rule: the class of a page by its `struct page`, and whether the level drops it.

use crate::bytes::u64_at;
use crate::layout::{HugeRule, Layout, OrderRule, RECORD};

/// The classes to drop, numbered like makedumpfile's `-d`: a sum of 1, 2, 4, 8 and 16.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Level(u8);

impl Level {
    /// Level 31: all five classes are dropped.
    pub const MAX: Self = Self(31);
    /// Zero pages, which needs nothing of the kernel.
    pub const ZERO_PAGES: Self = Self(1);

    /// Makes a level; `None` above 31.
    #[must_use]
    pub fn new(number: u8) -> Option<Self> {
        (number <= 31).then_some(Self(number))
    }

    /// Returns the level without the classes that records of pages tell: zero pages at most.
    #[must_use]
    pub fn without_records(self) -> Self {
        Self(self.0 & Self::ZERO_PAGES.0)
    }

    /// Returns the level without some of the classes.
    pub(crate) fn without(self, classes: u8) -> Self {
        Self(self.0 & !classes)
    }

    /// Returns its number.
    #[must_use]
    pub fn number(self) -> u8 {
        self.0
    }

    /// Returns whether zero pages are stored once (1).
    #[must_use]
    pub fn zero(self) -> bool {
        self.0 & 1 != 0
    }

    /// Returns whether it needs the memory map: all but 0 and 1, which only drop memory that must
    /// not be touched.
    #[must_use]
    pub fn filters(self) -> bool {
        self.0 > 1
    }

    fn cache(self) -> bool {
        self.0 & 2 != 0
    }

    fn private_cache(self) -> bool {
        self.0 & 4 != 0
    }

    fn user(self) -> bool {
        self.0 & 8 != 0
    }

    pub(crate) fn free(self) -> bool {
        self.0 & 16 != 0
    }
}

/// The class of a page; in brackets the number of makedumpfile's level that drops it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Class {
    /// Not dropped at the filter's level: the kernel's own memory, and classes that it keeps.
    Kept = 0,
    /// Page cache without private data (2).
    Cache = 1,
    /// Page cache with private data (4).
    PrivateCache = 2,
    /// Data of processes (8).
    User = 3,
    /// Free or not yet accepted from the host (16).
    Free = 4,
    /// Memory with hardware errors (PG_hwpoison), dropped at every level.
    Poisoned = 5,
    /// Taken offline, as by a balloon; dropped at every level.
    Offline = 6,
}

impl Class {
    /// The number of classes.
    pub const COUNT: usize = 7;
    /// All of them, by number.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Kept,
        Self::Cache,
        Self::PrivateCache,
        Self::User,
        Self::Free,
        Self::Poisoned,
        Self::Offline,
    ];

    /// Returns its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Cache => "cache",
            Self::PrivateCache => "private cache",
            Self::User => "user",
            Self::Free => "free",
            Self::Poisoned => "poisoned",
            Self::Offline => "offline",
        }
    }
}

/// The certainty of a page's class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Evidence {
    /// Enough for any page.
    Strong,
    /// Not enough for a page of the kernel's image.
    Weak,
}

/// The relevant part of a record.
pub(crate) type Record = [u8; RECORD];

/// The relevant meaning of a page's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Other = 0,
    Buddy = 1,
    Unaccepted = 2,
    Offline = 3,
    Slab = 4,
}

impl Kind {
    /// All of them, by number.
    pub(crate) const ALL: [Self; 5] = [
        Self::Other,
        Self::Buddy,
        Self::Unaccepted,
        Self::Offline,
        Self::Slab,
    ];
}

/// The decisive fields of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) flags: u64,
    pub(crate) tail: bool,
    /// The lowest bit of `mapping`.
    pub(crate) anon: bool,
    pub(crate) kind: Kind,
    /// `private` is not zero: in a free block, its order.
    pub(crate) order: bool,
}

impl Facts {
    fn has(&self, flag: u64) -> bool {
        self.flags & flag != 0
    }
}

/// The rule for one kernel and level.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    layout: Layout,
    level: Level,
}

impl Rule {
    pub(crate) fn new(layout: Layout, level: Level) -> Self {
        Self { layout, level }
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(crate) fn level(&self) -> Level {
        self.level
    }

    /// Returns the decisive flags.
    pub(crate) fn flags(&self) -> u64 {
        let layout = &self.layout;
        layout.lru
            | layout.swap_cache
            | layout.private_data
            | layout.head
            | layout.poison
            | layout.reserved
            | layout.slab.flag
    }

    /// Returns the meaning of a type.
    pub(crate) fn kind(&self, page_type: u32) -> Kind {
        let layout = &self.layout;
        let tests = [
            (layout.slab.kind, Kind::Slab),
            (layout.buddy, Kind::Buddy),
            (layout.unaccepted, Kind::Unaccepted),
            (layout.offline, Kind::Offline),
        ];
        tests
            .into_iter()
            .find(|(test, _)| test.holds(page_type))
            .map_or(Kind::Other, |(_, kind)| kind)
    }

    fn facts(&self, record: &Record) -> Facts {
        let layout = &self.layout;
        let page_type = (long(record, layout.page_type) >> (layout.page_type % 8 * 8)) as u32;
        Facts {
            flags: long(record, layout.flags),
            tail: layout
                .head_pointer
                .is_some_and(|at| long(record, at) & 1 == 1),
            anon: long(record, layout.mapping) & 1 == 1,
            kind: self.kind(page_type),
            order: long(record, layout.private) != 0,
        }
    }

    /// Returns whether a record allows its page to be free: no decisive flag, no type, no owner.
    pub(crate) fn may_be_free(&self, record: &Record) -> bool {
        let facts = self.facts(record);
        let page_type =
            (long(record, self.layout.page_type) >> (self.layout.page_type % 8 * 8)) as u32;
        facts.flags & self.flags() == 0
            && !facts.tail
            && long(record, self.layout.mapping) == 0
            && page_type == u32::MAX
    }

    /// Returns the address of a tail's head, by the record at an address.
    ///
    /// The field is a pointer with its lowest bit set. Since Linux kernel commit "mm: rework
    /// compound_head() for power-of-2 sizeof(struct page)" (in v7.1), in kernels that give the
    /// records of huge pages back, it is a mask of the tail's own address (`_compound_head`,
    /// `include/linux/page-flags.h`). The note does not tell about that option; but the records of
    /// the largest page have less than a gigabyte, which no memory map has at the end of all
    /// addresses, so that a value which ends there in one bit is a mask.
    pub(crate) fn head_address(&self, record: &Record, address: u64) -> Option<u64> {
        /// Largest records of one page: those of 16 GiB in pages of 4 KiB have a quarter of it.
        const RECORDS_MAX: u64 = 1 << 30;
        let value = long(record, self.layout.head_pointer?);
        if value & 1 == 0 {
            return None;
        }
        let records = (value - 1).wrapping_neg();
        let is_mask =
            self.layout.may_have_mask && records.is_power_of_two() && records <= RECORDS_MAX;
        Some(if is_mask {
            address & (value - 1)
        } else {
            value - 1
        })
    }

    /// Returns whether a page stands for pages after it too.
    pub(crate) fn speaks_for_others(&self, facts: &Facts) -> bool {
        let head = facts.flags & self.layout.head != 0;
        let block = self.level.free()
            && (facts.kind == Kind::Buddy && facts.order || facts.kind == Kind::Unaccepted);
        !facts.tail && (head || block)
    }

    /// Returns a page's class by its own record.
    pub(crate) fn class(&self, record: &Record) -> Class {
        self.decide(&self.facts(record), false)
    }

    /// Returns a page's class; `huge` marks a hugetlb page, which its own record may not show.
    pub(crate) fn decide(&self, facts: &Facts, huge: bool) -> Class {
        let layout = &self.layout;
        let level = self.level;
        let slab = facts.kind == Kind::Slab || facts.has(layout.slab.flag);
        // First, regardless of their owner: reading them can end the capture.
        if facts.has(layout.poison) {
            return Class::Poisoned;
        }
        if facts.kind == Kind::Offline && !slab && !facts.tail {
            return Class::Offline;
        }
        // A tail's class is its head's; reserved pages hold what no allocator gave out.
        if facts.tail || facts.has(layout.reserved) {
            return Class::Kept;
        }
        // Since 6.2 `struct slab` has other data where `struct page` has `mapping`.
        let anon = facts.anon && !slab;
        // PG_swapcache shares its bit with a flag of file systems (PG_owner_priv_1), so both bits
        // of a page in the swap cache are wanted.
        let swap = layout.swap_cache;
        let cache = facts.has(layout.lru) || swap != 0 && facts.flags & swap == swap;
        match facts.kind {
            Kind::Buddy if level.free() && !slab => Class::Free,
            Kind::Unaccepted if level.free() => Class::Free,
            _ if level.cache() && cache && !facts.has(layout.private_data) && !anon => Class::Cache,
            _ if level.private_cache() && cache && !anon => Class::PrivateCache,
            _ if level.user() && (anon || huge) => Class::User,
            _ => Class::Kept,
        }
    }

    /// Returns the class of the block that begins with page number `page`, and its number of pages:
    /// `behind` are the bytes from its record on. The first page may be broken and the others not:
    /// see [`Rule::class`].
    pub(crate) fn block(&self, record: &Record, page: u64, behind: &[u8]) -> (Class, u64) {
        let layout = &self.layout;
        let facts = self.facts(record);
        let class = self.decide(&facts, false);
        // A broken first page says nothing about the others.
        let unbroken = Facts {
            flags: facts.flags & !layout.poison,
            ..facts
        };
        if self.decide(&unbroken, false) == Class::Free {
            let whole = layout.orders.saturating_sub(1);
            let order = if facts.kind == Kind::Unaccepted {
                whole
            } else {
                long(record, layout.private)
            };
            // An impossible order is a broken record, which says nothing about any page.
            return if order < layout.orders {
                (Class::Free, 1 << order)
            } else {
                (Class::Kept, 1)
            };
        }
        if facts.tail || facts.flags & layout.head == 0 {
            return (class, 1);
        }
        // A head that is not aligned to its order, or has more pages than any machine, is a broken
        // record: it speaks for its own page at most.
        let Some(order) = self
            .order(behind)
            .filter(|order| *order < 40 && page.is_multiple_of(1 << order))
        else {
            return (class, 1);
        };
        // Of a hugetlb page the head is marked for each of its pages
        // (`folio_set_hugetlb_hwpoison`, mm/memory-failure.c).
        let huge = self.is_huge(record, behind);
        let facts = if huge { facts } else { unbroken };
        (self.decide(&facts, huge), 1 << order)
    }

    /// Returns the order of a compound page: `bytes` are the head's record and the bytes after it.
    fn order(&self, bytes: &[u8]) -> Option<u64> {
        match self.layout.order? {
            OrderRule::Byte(at) => bytes.get(at).map(|order| u64::from(*order)),
            OrderRule::TailFlags(at) => u64_at(bytes, at).map(|flags| flags & 0xff),
        }
    }

    fn is_huge(&self, record: &Record, bytes: &[u8]) -> bool {
        match self.layout.huge {
            HugeRule::Type(test) => {
                let at = self.layout.page_type;
                test.holds((long(record, at) >> (at % 8 * 8)) as u32)
            }
            HugeRule::TailFlag(at, mask) => {
                u64_at(bytes, at).is_some_and(|flags| flags & mask != 0)
            }
            HugeRule::Destructor(at, number) => bytes.get(at) == Some(&number),
            HugeRule::Unknown => false,
        }
    }

    /// Returns how far to trust the record of a page in the kernel's image. Freed memory of the
    /// image is not reserved any more, and either free or owned. Any other record there may
    /// never have been initialised.
    pub(crate) fn evidence(&self, record: &Record, class: Class) -> Evidence {
        let layout = &self.layout;
        let given = layout.reserved != 0 && long(record, layout.flags) & layout.reserved == 0;
        let owned = long(record, layout.mapping) != 0;
        let must_go = matches!(class, Class::Free | Class::Poisoned | Class::Offline);
        if must_go || given && owned {
            Evidence::Strong
        } else {
            Evidence::Weak
        }
    }
}

/// Returns the eight bytes of a record around `at`.
#[inline(always)]
pub(crate) fn long(record: &Record, at: usize) -> u64 {
    // The mask shows the compiler that they are within the record.
    let (words, _) = record.as_chunks::<8>();
    u64::from_le_bytes(words[at / 8 % (RECORD / 8)])
}

#[cfg(test)]
mod tests {
    use super::{Level, Rule};
    use crate::layout::{Layout, RECORD};
    use crate::note::Info;

    /// Returns the rule of a kernel with this field and size of records.
    fn rule(field: &str, size: usize) -> Rule {
        let text = format!(
            "SIZE(page)={size}\nOFFSET(page.{field})=8\nOFFSET(page.flags)=0\n\
            OFFSET(page.mapping)=24\nOFFSET(page.private)=40\nOFFSET(page._mapcount)=48\n\
            NUMBER(PG_lru)=5\nNUMBER(PG_private)=14\nNUMBER(PG_swapcache)=10\n\
            NUMBER(PAGE_BUDDY_MAPCOUNT_VALUE)=-268435456\n"
        );
        let layout = Layout::new(&Info::parse(text.as_bytes()), true).unwrap().0;
        Rule::new(layout, Level::MAX)
    }

    #[test]
    fn masks_are_told_from_pointers() {
        const GIGABYTE: u32 = 18;
        let tail = 0xffff_ea00_0123_4540;
        let head = |rule: &Rule, value: u64| {
            let mut record = [0; RECORD];
            record[8..16].copy_from_slice(&value.to_le_bytes());
            rule.head_address(&record, tail)
        };
        let new = rule("compound_info", 64);
        let mask = u64::MAX << (GIGABYTE + 6);
        // The whole of a gigabyte's records has one head, not 128 MiB of them.
        assert_eq!(head(&new, mask | 1), Some(0xffff_ea00_0100_0000));
        assert_eq!(
            head(&new, 0xffff_ea00_0123_0001),
            Some(0xffff_ea00_0123_0000)
        );
        assert_eq!(head(&new, mask), None, "no tail");
        // The first record of a memory map at such an address (64-bit Arm) is no mask.
        let first = u64::MAX << 42;
        assert_eq!(head(&new, first | 1), Some(first));
        // Before masks, and with records of a size that has none, it is a pointer.
        for old in [rule("compound_head", 64), rule("compound_info", 72)] {
            assert_eq!(head(&old, mask | 1), Some(mask));
        }
    }
}
