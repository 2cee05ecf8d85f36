//! The layout of `struct page` in this kernel: offsets and values from the note, and from BTF if
//! the note lacks them. No kernel version is asked for; the note's content decides.

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
    /// The flags of a page in the swap cache, all of them.
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

/// Returns the offset of a field of `struct page` with this many bytes.
fn field(info: &Info, name: &str, size: usize) -> Result<usize, DumpError> {
    let key = format!("page.{name}");
    let offset = info.need_size("OFFSET", &key)?;
    let record = info.need_size("SIZE", "page")?;
    // Fields are read as words of the record's first bytes, so each lies within one of them.
    if offset % size != 0 || offset + size > RECORD.min(record) {
        return Err(info.lies(
            format!("OFFSET({key})"),
            "the field would lie outside of struct page",
        ));
    }
    Ok(offset)
}

impl Layout {
    /// Returns whether types are in the top byte.
    pub(crate) fn types_are_top_bytes(&self) -> bool {
        let tests = [self.buddy, self.unaccepted, self.offline, self.slab.kind];
        tests
            .iter()
            .all(|test| *test == TypeTest::NEVER || test.mask == 0xff00_0000)
    }

    /// Reads the layout; `reserved` is the number of PG_reserved, if BTF has it.
    pub(crate) fn new(info: &Info, reserved: Option<u32>) -> Result<Self, DumpError> {
        let record = info.need_size("SIZE", "page")?;
        let names = ["compound_head", "compound_info"];
        let head_pointer = names
            .into_iter()
            .find(|name| info.size("OFFSET", &format!("page.{name}")).is_some());
        let may_have_mask = head_pointer == Some("compound_info") && record.is_power_of_two();
        let head_pointer = head_pointer.map(|name| field(info, name, 8)).transpose()?;
        let head = info.number("PG_head_mask").map_or(0, i64::cast_unsigned);
        let flags = field(info, "flags", 8)?;
        let buddy = info.need_number("PAGE_BUDDY_MAPCOUNT_VALUE")?;
        let swap_backed = flag(info, "PG_swapbacked")?.unwrap_or(0);
        Ok(Self {
            flags,
            head_pointer,
            may_have_mask,
            mapping: field(info, "mapping", 8)?,
            private: field(info, "private", 8)?,
            page_type: field(info, "_mapcount", 4)?,
            lru: need_flag(info, "PG_lru")?,
            swap_cache: need_flag(info, "PG_swapcache")? | swap_backed,
            private_data: need_flag(info, "PG_private")?,
            head,
            poison: flag(info, "PG_hwpoison")?.unwrap_or(0),
            reserved: match flag(info, "PG_reserved")? {
                Some(mask) => mask,
                None => reserved.filter(|bit| *bit < 64).map_or(0, |bit| 1 << bit),
            },
            slab: slab(info)?,
            buddy: TypeTest::new(Some(buddy)),
            unaccepted: TypeTest::new(info.number("PAGE_UNACCEPTED_MAPCOUNT_VALUE")),
            offline: TypeTest::new(info.number("PAGE_OFFLINE_MAPCOUNT_VALUE")),
            order: order(info, record, flags, head),
            huge: huge(info, record, flags),
            orders: info.size("LENGTH", "zone.free_area").unwrap_or(11).min(32) as u64,
        })
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

fn need_flag(info: &Info, name: &str) -> Result<u64, DumpError> {
    flag(info, name)?.ok_or_else(|| DumpError::NoteLacks(format!("NUMBER({name})")))
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
