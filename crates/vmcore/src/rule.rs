//! The exclusion rule: what one `struct page` says its page is, and whether the level drops that.

use crate::bytes::u64_at;
use crate::layout::{HugeRule, Layout, OrderRule, RECORD};

/// What is dropped, as makedumpfile's `-d` numbers it: a sum of 1, 2, 4, 8 and 16.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

    /// Whether the memory map is looked at: anything but 0 and 1.
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

/// The rule for one kernel and level.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    layout: Layout,
    /// Masks that are empty where the level keeps what they find.
    cache: u8,
    private_cache: u8,
    user: u8,
    free: u8,
}

impl Rule {
    pub(crate) fn new(layout: Layout, level: Level) -> Self {
        Self {
            layout,
            cache: u8::from(level.cache()),
            private_cache: u8::from(level.private_cache()),
            user: u8::from(level.user()),
            free: u8::from(level.free()),
        }
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    #[inline]
    fn long(record: &Record, at: usize) -> u64 {
        // Offsets are multiples of eight within the record, which the mask tells the compiler.
        let at = at & (RECORD - 8);
        let bytes: [u8; 8] = [
            record[at],
            record[at + 1],
            record[at + 2],
            record[at + 3],
            record[at + 4],
            record[at + 5],
            record[at + 6],
            record[at + 7],
        ];
        u64::from_le_bytes(bytes)
    }

    #[inline]
    fn page_type(&self, record: &Record) -> u32 {
        let at = self.layout.page_type;
        // The half of eight bytes that the offset means.
        (Self::long(record, at) >> (at % 8 * 8)) as u32
    }

    /// Whether a page is a tail: its compound page was decided by the head.
    #[inline]
    pub(crate) fn is_tail(&self, record: &Record) -> bool {
        self.layout.head_pointer.is_some_and(|at| Self::long(record, at) & 1 == 1)
    }

    /// Returns the address of a tail's head.
    pub(crate) fn head_address(&self, record: &Record) -> Option<u64> {
        let pointer = Self::long(record, self.layout.head_pointer?);
        (pointer & 1 == 1).then(|| pointer - 1)
    }

    /// Whether the page speaks for pages behind it too: it needs a closer look.
    #[inline]
    pub(crate) fn is_special(&self, record: &Record) -> bool {
        let layout = &self.layout;
        let page_type = self.page_type(record);
        let head = Self::long(record, layout.flags) & layout.head != 0;
        let block =
            self.free & u8::from(layout.buddy.holds(page_type)) & u8::from(Self::long(record, layout.private) != 0);
        let unaccepted = self.free & u8::from(layout.unaccepted.holds(page_type));
        (u8::from(head) | block | unaccepted) & u8::from(!self.is_tail(record)) != 0
    }

    /// Says what a page is by its record alone; `huge` says that it is a hugetlb page. Written without branches: in
    /// mixed memory none of them could be foreseen.
    #[inline]
    pub(crate) fn class(&self, record: &Record, huge: u8) -> Class {
        let layout = &self.layout;
        let flags = Self::long(record, layout.flags);
        let page_type = self.page_type(record);
        let slab = u8::from(flags & layout.slab.flag != 0) | u8::from(layout.slab.kind.holds(page_type));
        let anon = (Self::long(record, layout.mapping) & 1) as u8 & !slab;
        let cache = u8::from(flags & layout.lru != 0) | u8::from(flags & layout.swap_cache == layout.swap_cache);
        let private = u8::from(flags & layout.private_data != 0);
        let select = |condition: u8, yes: u8, no: u8| if condition & 1 != 0 { yes } else { no };
        let class = select(u8::from(layout.offline.holds(page_type)) & !slab, Class::Offline as u8, 0);
        let class = select(u8::from(flags & layout.poison != 0), Class::Poisoned as u8, class);
        let class = select(self.user & (anon | huge), Class::User as u8, class);
        let class = select(self.private_cache & cache & !anon, Class::PrivateCache as u8, class);
        let class = select(self.cache & cache & !private & !anon, Class::Cache as u8, class);
        let free = u8::from(layout.buddy.holds(page_type)) & !slab | u8::from(layout.unaccepted.holds(page_type));
        let class = select(self.free & free, Class::Free as u8, class);
        let kept = u8::from(self.is_tail(record)) | u8::from(flags & layout.reserved != 0);
        Class::ALL[usize::from(select(kept, 0, class)).min(Class::COUNT - 1)]
    }

    /// Says what a page is, and for how many pages: `tail` is the record behind it, `pages_left` how many pages there
    /// are from here to the end of what can hold a block.
    pub(crate) fn block(&self, record: &Record, page: u64, behind: &[u8]) -> (Class, u64) {
        let layout = &self.layout;
        if self.is_tail(record) {
            return (Class::Kept, 1);
        }
        let class = self.class(record, 0);
        if class == Class::Free {
            let unaccepted = layout.unaccepted.holds(self.page_type(record));
            let order = if unaccepted { layout.orders - 1 } else { Self::long(record, layout.private) };
            // An order that cannot be is a broken record: it says nothing of any page.
            return if order < layout.orders { (Class::Free, 1 << order) } else { (Class::Kept, 1) };
        }
        if Self::long(record, layout.flags) & layout.head == 0 {
            return (class, 1);
        }
        let Some(order) = self.order(behind).filter(|order| *order < 40 && page.is_multiple_of(1 << order)) else {
            return (class, 1);
        };
        let huge = u8::from(self.is_huge(record, behind));
        (self.class(record, huge), 1 << order)
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
            HugeRule::Type(test) => test.holds(self.page_type(record)),
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
        let given = layout.reserved != 0 && Self::long(record, layout.flags) & layout.reserved == 0;
        let owned = Self::long(record, layout.mapping) != 0;
        if class == Class::Free || given && owned { Evidence::Strong } else { Evidence::Weak }
    }
}
