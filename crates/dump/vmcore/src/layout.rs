//! The layout of `struct page` in this kernel: offsets and values from the note, and from BTF if
//! the note lacks them. No kernel version is asked for; the note's content decides.

use crate::completion::Shortfall;
use crate::error::DumpError;
use crate::note::Info;

/// Bytes of a record that matter: all fields are within them.
pub(crate) const RECORD: usize = 64;

/// A test of `page_type`, which shares its memory with `_mapcount`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TypeTest {
    mask: u32,
    value: u32,
}

impl TypeTest {
    /// A type that no page has: masked values have no bits outside the mask.
    const NEVER: Self = Self { mask: 0, value: 1 };

    /// Since Linux kernel commit 4ffca5a96678 ("mm: support only one page_type per page") (in
    /// v6.12) the type is the top byte and the rest may have any value; before, the whole
    /// number counts. The value shows which it is.
    fn new(value: Option<i64>) -> Self {
        let Some(value) = value else {
            return Self::NEVER;
        };
        // Printed as a signed or an unsigned number of 32 bits.
        let value = value as u32;
        if value & 0x00ff_ffff == 0 && value != 0 {
            Self {
                mask: 0xff00_0000,
                value,
            }
        } else {
            Self {
                mask: u32::MAX,
                value,
            }
        }
    }

    #[inline]
    pub(crate) fn holds(self, page_type: u32) -> bool {
        page_type & self.mask == self.value
    }
}

/// How to recognize a slab page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlabTest {
    /// By this flag, before 6.10.
    pub(crate) flag: u64,
    pub(crate) kind: TypeTest,
}

/// Where the order of a compound page is; offsets are from the head's record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OrderRule {
    /// In a byte.
    Byte(usize),
    /// The low byte of the first tail's flags (since 6.6).
    TailFlags(usize),
}

/// How to recognize a hugetlb page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HugeRule {
    /// By its type (since 6.9).
    Type(TypeTest),
    /// By a flag of the first tail (since 6.6).
    TailFlag(usize, u64),
    /// By the number of its destructor, a byte of the first tail.
    Destructor(usize, u8),
    /// The note does not say.
    Unknown,
}

/// Layout of `struct page`.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub(crate) flags: usize,
    /// `None` if the note has none, in kernels before 4.4.
    pub(crate) head_pointer: Option<usize>,
    /// Whether that field may be a mask of the tail's address instead of a pointer: the field has
    /// the name that came with masks, and records have a size for which the kernel uses them
    /// (`compound_info_has_mask`, `include/linux/page-flags.h`).
    pub(crate) may_have_mask: bool,
    pub(crate) mapping: usize,
    pub(crate) private: usize,
    pub(crate) page_type: usize,

    pub(crate) lru: u64,
    /// The flags of a page in the swap cache, all of them; zero if one is not known.
    pub(crate) swap_cache: u64,
    pub(crate) private_data: u64,
    pub(crate) head: u64,
    pub(crate) poison: u64,
    /// Zero if neither note nor BTF has it.
    pub(crate) reserved: u64,

    pub(crate) slab: SlabTest,
    pub(crate) buddy: TypeTest,
    pub(crate) unaccepted: TypeTest,
    pub(crate) offline: TypeTest,
    pub(crate) order: Option<OrderRule>,
    pub(crate) huge: HugeRule,
    /// Free blocks have orders below this.
    pub(crate) orders: u64,
}

/// Reads the layout line by line, and collects what is missing.
struct Search<'i> {
    info: &'i Info,
    shortfalls: Vec<Shortfall>,
}

/// Classes that a line decides, by their numbers in levels.
const CACHE: u8 = 2 | 4;
const USER: u8 = 8;
const FREE: u8 = 16;

impl Search<'_> {
    /// Records that a line is missing, without which some classes are not told from others.
    fn lacks(&mut self, key: String, level: u8, kept: &'static str) {
        self.shortfalls.push(Shortfall {
            lacks: key,
            kept,
            level,
        });
    }

    /// Returns the offset of a field of `struct page` with this many bytes.
    fn field(&self, name: &str, size: usize) -> Result<usize, DumpError> {
        let key = format!("page.{name}");
        let offset = self.info.need_size("OFFSET", &key)?;
        let record = self.info.need_size("SIZE", "page")?;
        // Fields are read as words of the record's first bytes, so each lies within one of them.
        if offset % size != 0 || offset + size > RECORD.min(record) {
            return Err(self.info.lies(
                format!("OFFSET({key})"),
                "the field would lie outside of struct page",
            ));
        }
        Ok(offset)
    }

    /// Returns the offset of a field, or any other if it is missing: the classes that need it are
    /// then not excluded.
    fn field_of(
        &mut self,
        name: &str,
        size: usize,
        level: u8,
        kept: &'static str,
    ) -> Result<usize, DumpError> {
        match self.field(name, size) {
            Err(DumpError::NoteLacks(key)) => {
                self.lacks(key, level, kept);
                Ok(0)
            }
            found => found,
        }
    }

    /// Returns the mask of a flag, or none if it is missing.
    fn flag_of(&mut self, name: &str, level: u8, kept: &'static str) -> Result<u64, DumpError> {
        let found = flag(self.info, name)?;
        if found.is_none() {
            self.lacks(format!("NUMBER({name})"), level, kept);
        }
        Ok(found.unwrap_or(0))
    }
}

impl Layout {
    /// Returns whether types are in the top byte.
    pub(crate) fn types_are_top_bytes(&self) -> bool {
        let tests = [self.buddy, self.unaccepted, self.offline, self.slab.kind];
        tests
            .iter()
            .all(|test| *test == TypeTest::NEVER || test.mask == 0xff00_0000)
    }

    /// Reads the layout; returns also what it does not tell. `has_types` says whether BTF completed
    /// the note, so that what is missing does not exist.
    pub(crate) fn new(info: &Info, has_types: bool) -> Result<(Self, Vec<Shortfall>), DumpError> {
        let record = info.need_size("SIZE", "page")?;
        let mut search = Search {
            info,
            shortfalls: Vec::new(),
        };
        // Without these nothing is known of any page.
        let flags = search.field("flags", 8)?;
        let names = ["compound_info", "compound_head"];
        let head_pointer = names
            .into_iter()
            .find(|name| info.size("OFFSET", &format!("page.{name}")).is_some());
        let may_have_mask = head_pointer == Some("compound_info") && record.is_power_of_two();
        let head_pointer = head_pointer.map(|name| search.field(name, 8)).transpose()?;
        if head_pointer.is_none() {
            // Fields of tails have other meanings.
            search.lacks("OFFSET(page.compound_head)".to_owned(), USER, "user pages");
        }
        let mapping = search.field_of("mapping", 8, CACHE | USER, "page cache and user pages")?;
        let page_type = search.field_of("_mapcount", 4, USER | FREE, "user and free pages")?;
        let private = search.field_of("private", 8, FREE, "free pages")?;
        let buddy = info.number("PAGE_BUDDY_MAPCOUNT_VALUE");
        if buddy.is_none() {
            let key = "NUMBER(PAGE_BUDDY_MAPCOUNT_VALUE)";
            search.lacks(key.to_owned(), FREE, "free pages");
        }
        let slab = slab(info)?;
        if slab.flag == 0 && slab.kind == TypeTest::NEVER {
            // A slab's record has other data where others have `mapping`.
            let key = "NUMBER(PAGE_SLAB_MAPCOUNT_VALUE) or NUMBER(PG_slab)";
            search.lacks(key.to_owned(), USER, "user pages");
        }
        let lru = search.flag_of("PG_lru", CACHE, "page cache")?;
        let private_data = search.flag_of("PG_private", 2, "page cache without private data")?;
        let head = info.number("PG_head_mask").map_or(0, i64::cast_unsigned);
        if head == 0 {
            let key = "NUMBER(PG_head_mask)".to_owned();
            search.lacks(key, 0, "all but the first page of larger pages");
        }
        // File systems use the bit of one of them, so both are needed.
        let swap_cache = search.flag_of("PG_swapcache", 0, "pages of the swap cache alone")?;
        let swap_backed = search.flag_of("PG_swapbacked", 0, "pages of the swap cache alone")?;
        let poison = flag(info, "PG_hwpoison")?;
        if poison.is_none() && !has_types {
            search.lacks("NUMBER(PG_hwpoison)".to_owned(), 0, "broken pages");
        }
        let mut layout = Self {
            flags,
            head_pointer,
            may_have_mask,
            mapping,
            private,
            page_type,
            lru,
            swap_cache: if swap_cache == 0 || swap_backed == 0 {
                0
            } else {
                swap_cache | swap_backed
            },
            private_data,
            head,
            poison: poison.unwrap_or(0),
            reserved: flag(info, "PG_reserved")?.unwrap_or(0),
            slab,
            buddy: TypeTest::new(buddy),
            unaccepted: TypeTest::new(info.number("PAGE_UNACCEPTED_MAPCOUNT_VALUE")),
            offline: TypeTest::new(info.number("PAGE_OFFLINE_MAPCOUNT_VALUE")),
            order: order(info, record, flags, head),
            huge: huge(info, record, flags),
            orders: info.size("LENGTH", "zone.free_area").unwrap_or(11).min(32) as u64,
        };
        if info.size("OFFSET", "page._mapcount").is_none() {
            // No page has a type where none is known.
            layout.slab.kind = TypeTest::NEVER;
            layout.buddy = TypeTest::NEVER;
            layout.unaccepted = TypeTest::NEVER;
            layout.offline = TypeTest::NEVER;
            layout.huge = HugeRule::Unknown;
        }
        Ok((layout, search.shortfalls))
    }
}

/// Returns the mask of a flag in the note.
fn flag(info: &Info, name: &str) -> Result<Option<u64>, DumpError> {
    let Some(bit) = info.number(name) else {
        return Ok(None);
    };
    match u32::try_from(bit).ok().filter(|bit| *bit < 64) {
        Some(bit) => Ok(Some(1 << bit)),
        None => Err(info.lies(format!("NUMBER({name})"), "flags have 64 bits")),
    }
}

fn slab(info: &Info) -> Result<SlabTest, DumpError> {
    Ok(match info.number("PAGE_SLAB_MAPCOUNT_VALUE") {
        Some(value) => SlabTest {
            flag: 0,
            kind: TypeTest::new(Some(value)),
        },
        None => SlabTest {
            flag: flag(info, "PG_slab")?.unwrap_or(0),
            kind: TypeTest::NEVER,
        },
    })
}

/// Two bytes until 4.15 and one since: on little-endian machines the first byte is the order in
/// both.
fn order(info: &Info, record: usize, flags: usize, head: u64) -> Option<OrderRule> {
    if let Some(offset) = info.size("OFFSET", "folio._folio_order") {
        return Some(OrderRule::Byte(offset));
    }
    if let Some(offset) = info.size("OFFSET", "page.compound_order") {
        return Some(OrderRule::Byte(record + offset));
    }
    (head != 0).then_some(OrderRule::TailFlags(record + flags))
}

fn huge(info: &Info, record: usize, flags: usize) -> HugeRule {
    if let Some(value) = info.number("PAGE_HUGETLB_MAPCOUNT_VALUE") {
        return HugeRule::Type(TypeTest::new(Some(value)));
    }
    if let Some(bit) = info
        .number("PG_hugetlb")
        .and_then(|bit| u32::try_from(bit).ok())
        .filter(|bit| *bit < 64)
    {
        return HugeRule::TailFlag(record + flags, 1 << bit);
    }
    let offset = info.size("OFFSET", "folio._folio_dtor").or_else(|| {
        info.size("OFFSET", "page.compound_dtor")
            .map(|offset| record + offset)
    });
    match (
        offset,
        info.number("HUGETLB_PAGE_DTOR")
            .and_then(|number| u8::try_from(number).ok()),
    ) {
        (Some(offset), Some(number)) => HugeRule::Destructor(offset, number),
        _ => HugeRule::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::TypeTest;

    #[test]
    fn types_are_compared_as_their_kernel_does() {
        // 6.12: 0xf0 in the top byte, the rest is free.
        let new = TypeTest::new(Some(-268_435_456));
        assert!(new.holds(0xf000_0000) && new.holds(0xf000_1234) && !new.holds(0xf100_0000));
        // Before: the whole number.
        let old = TypeTest::new(Some(-129));
        assert!(old.holds(0xffff_ff7f) && !old.holds(0xffff_ff7e) && !old.holds(u32::MAX));
        let never = TypeTest::new(None);
        assert!(
            [0, 1, u32::MAX, 0xf000_0000]
                .into_iter()
                .all(|value| !never.holds(value))
        );
    }
}
