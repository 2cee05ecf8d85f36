//! The exclusion rule: what one `struct page` says its page is, and whether the level drops that.

use crate::bytes::u64_at;
use crate::layout::{HugeRule, Layout, OrderRule, RECORD};

/// What is dropped, as makedumpfile's `-d` numbers it: a sum of 1, 2, 4, 8 and 16.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Level(u8);

impl Level {
    /// Everything there is a level for.
    pub const MAX: Self = Self(31);

    /// Makes a level; nothing above 31.
    #[must_use]
    pub fn new(number: u8) -> Option<Self> {
        (number <= 31).then_some(Self(number))
    }

    /// Returns its number.
    #[must_use]
    pub fn number(self) -> u8 {
        self.0
    }

    /// Whether zero pages are stored once (1).
    #[must_use]
    pub fn zero(self) -> bool {
        self.0 & 1 != 0
    }

    /// Whether a dump must be understood for it: anything but 0 and 1, where only memory that must not be touched is left
    /// out.
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

/// What became of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Class {
    /// Kept.
    Kept = 0,
    /// Page cache without private data (2).
    Cache = 1,
    /// Page cache with private data (4).
    PrivateCache = 2,
    /// Data of processes (8).
    User = 3,
    /// Free or not yet accepted from the host (16).
    Free = 4,
    /// Broken memory.
    Poisoned = 5,
    /// Taken offline, as by a balloon.
    Offline = 6,
}

impl Class {
    /// How many there are.
    pub const COUNT: usize = 7;
    /// All of them, in order of their numbers.
    pub const ALL: [Self; Self::COUNT] =
        [Self::Kept, Self::Cache, Self::PrivateCache, Self::User, Self::Free, Self::Poisoned, Self::Offline];

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

/// How certain it is what a page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Evidence {
    /// Enough, wherever the page is.
    Strong,
    /// Not enough for a page of the kernel's image.
    Weak,
}

/// A record, as far as it is looked at.
pub(crate) type Record = [u8; RECORD];

/// What the type of a page says, as far as it matters.
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
    /// All of them, in order of their numbers.
    pub(crate) const ALL: [Self; 5] = [Self::Other, Self::Buddy, Self::Unaccepted, Self::Offline, Self::Slab];
}

/// What of a record decides.
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

    /// Returns the flags that decide.
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

    /// Returns what a type says.
    pub(crate) fn kind(&self, page_type: u32) -> Kind {
        let layout = &self.layout;
        let tests = [
            (layout.slab.kind, Kind::Slab),
            (layout.buddy, Kind::Buddy),
            (layout.unaccepted, Kind::Unaccepted),
            (layout.offline, Kind::Offline),
        ];
        tests.into_iter().find(|(test, _)| test.holds(page_type)).map_or(Kind::Other, |(_, kind)| kind)
    }

    fn facts(&self, record: &Record) -> Facts {
        let layout = &self.layout;
        let page_type = (long(record, layout.page_type) >> (layout.page_type % 8 * 8)) as u32;
        Facts {
            flags: long(record, layout.flags),
            tail: layout.head_pointer.is_some_and(|at| long(record, at) & 1 == 1),
            anon: long(record, layout.mapping) & 1 == 1,
            kind: self.kind(page_type),
            order: long(record, layout.private) != 0,
        }
    }

    /// Whether nothing in a record speaks against its page being free: no flag that decides, no type, no owner.
    pub(crate) fn may_be_free(&self, record: &Record) -> bool {
        let facts = self.facts(record);
        let page_type = (long(record, self.layout.page_type) >> (self.layout.page_type % 8 * 8)) as u32;
        facts.flags & self.flags() == 0
            && !facts.tail
            && long(record, self.layout.mapping) == 0
            && page_type == u32::MAX
    }

    /// Returns the address of a tail's head.
    pub(crate) fn head_address(&self, record: &Record) -> Option<u64> {
        let pointer = long(record, self.layout.head_pointer?);
        (pointer & 1 == 1).then(|| pointer - 1)
    }

    /// Whether a page speaks for pages behind it too.
    pub(crate) fn speaks_for_others(&self, facts: &Facts) -> bool {
        let head = facts.flags & self.layout.head != 0;
        let block = self.level.free() && (facts.kind == Kind::Buddy && facts.order || facts.kind == Kind::Unaccepted);
        !facts.tail && (head || block)
    }

    /// Says what a page is by its own record.
    pub(crate) fn class(&self, record: &Record) -> Class {
        self.decide(&self.facts(record), false)
    }

    /// Says what a page is; `huge` says that it is a hugetlb page, which its own record may not tell.
    pub(crate) fn decide(&self, facts: &Facts, huge: bool) -> Class {
        let (layout, level) = (&self.layout, self.level);
        let has = |flag: u64| facts.flags & flag != 0;
        let slab = facts.kind == Kind::Slab || has(layout.slab.flag);
        // First of all, whoever has them: to read them can end the capture.
        if has(layout.poison) {
            return Class::Poisoned;
        }
        if facts.kind == Kind::Offline && !slab && !facts.tail {
            return Class::Offline;
        }
        if facts.tail || has(layout.reserved) {
            return Class::Kept;
        }
        let anon = facts.anon && !slab;
        let cache = has(layout.lru) || facts.flags & layout.swap_cache == layout.swap_cache;
        match facts.kind {
            Kind::Buddy if level.free() && !slab => Class::Free,
            Kind::Unaccepted if level.free() => Class::Free,
            _ if level.cache() && cache && !has(layout.private_data) && !anon => Class::Cache,
            _ if level.private_cache() && cache && !anon => Class::PrivateCache,
            _ if level.user() && (anon || huge) => Class::User,
            _ => Class::Kept,
        }
    }

    /// Says what page number `page` is, and for how many pages that holds: `behind` are the bytes from its record on.
    pub(crate) fn block(&self, record: &Record, page: u64, behind: &[u8]) -> (Class, u64) {
        let layout = &self.layout;
        let facts = self.facts(record);
        let class = self.decide(&facts, false);
        if class == Class::Free {
            let whole = layout.orders.saturating_sub(1);
            let order = if facts.kind == Kind::Unaccepted { whole } else { long(record, layout.private) };
            // An order that cannot be is a broken record: it says nothing of any page.
            return if order < layout.orders { (Class::Free, 1 << order) } else { (Class::Kept, 1) };
        }
        if facts.tail || facts.flags & layout.head == 0 {
            return (class, 1);
        }
        let Some(order) = self.order(behind).filter(|order| *order < 40 && page.is_multiple_of(1 << order)) else {
            return (class, 1);
        };
        (self.decide(&facts, self.is_huge(record, behind)), 1 << order)
    }

    /// Returns the order of a compound page: `bytes` are the head's record and what is behind it.
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
            HugeRule::TailFlag(at, mask) => u64_at(bytes, at).is_some_and(|flags| flags & mask != 0),
            HugeRule::Destructor(at, number) => bytes.get(at) == Some(&number),
            HugeRule::Unknown => false,
        }
    }

    /// Says how far the record of a page in the kernel's image can be believed. Memory of the image that the kernel has
    /// given free is not reserved any more, and either free or of some owner. Anything else there may be a record that
    /// was never written properly.
    pub(crate) fn evidence(&self, record: &Record, class: Class) -> Evidence {
        let layout = &self.layout;
        let given = layout.reserved != 0 && long(record, layout.flags) & layout.reserved == 0;
        let owned = long(record, layout.mapping) != 0;
        let must_go = matches!(class, Class::Free | Class::Poisoned | Class::Offline);
        if must_go || given && owned { Evidence::Strong } else { Evidence::Weak }
    }
}

/// Returns the eight bytes of a record that `at` is in.
#[inline(always)]
pub(crate) fn long(record: &Record, at: usize) -> u64 {
    // The mask tells the compiler that they are within the record.
    let (words, _) = record.as_chunks::<8>();
    u64::from_le_bytes(words[at / 8 % (RECORD / 8)])
}
