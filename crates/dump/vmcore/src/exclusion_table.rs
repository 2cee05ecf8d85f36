//! The rule as a lookup table, for speed: the decisive bits of a record are gathered into a small
//! number, the table's index. Branches would be unpredictable in mixed memory, so there are none
//! for single pages.

use crate::exclusion::{Class, Facts, Kind, Record, Rule, long};
use crate::layout::RECORD;

/// A bit of a verdict: the page stands for pages after it too. The bits below are its class.
const SPEAKS: u8 = 0x80;

const FLAGS: u32 = 8;
const TAIL: u32 = FLAGS;
const ANON: u32 = FLAGS + 1;
const KIND: u32 = FLAGS + 2;
const ORDER: u32 = FLAGS + 5;
const KEYS: usize = 1 << (FLAGS + 6);

#[derive(Debug)]
pub(crate) struct Table {
    verdicts: Box<[u8; KEYS]>,
    /// The kind for each top byte of a type, shifted into place; `None` if whole types are
    /// compared.
    tops: Option<Box<[u16; 256]>>,
    rule: Rule,
    mask: u64,
    /// Offsets of the fields. If records have no head pointer, the tail's mark is masked out.
    flags: usize,
    head: usize,
    head_mark: u64,
    mapping: usize,
    private: usize,
    page_type: usize,
    #[cfg(target_arch = "x86_64")]
    fast: bool,
}

/// The result for a row of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Batch {
    /// How many were judged: up to the first that stands for others.
    pub(crate) done: usize,
    pub(crate) drop: u64,
    /// How many of each class, in eight bits each.
    pub(crate) counts: u64,
}

impl Table {
    pub(crate) fn new(rule: &Rule) -> Self {
        let layout = rule.layout();
        let mask = rule.flags();
        let mut verdicts = Box::new([0; KEYS]);
        for (key, verdict) in verdicts.iter_mut().enumerate() {
            let kind = Kind::ALL
                .get(key >> KIND & 7)
                .copied()
                .unwrap_or(Kind::Other);
            let facts = Facts {
                flags: spread(key as u64, mask),
                tail: key >> TAIL & 1 == 1,
                anon: key >> ANON & 1 == 1,
                kind,
                order: key >> ORDER & 1 == 1,
            };
            let speaks = if rule.speaks_for_others(&facts) {
                SPEAKS
            } else {
                0
            };
            *verdict = rule.decide(&facts, false) as u8 | speaks;
        }
        // One look instead of four comparisons for each record.
        let tops = layout.types_are_top_bytes().then(|| {
            let mut tops = Box::new([0; 256]);
            for (top, kind) in tops.iter_mut().enumerate() {
                *kind = (rule.kind((top as u32) << 24) as u16) << KIND;
            }
            tops
        });
        Self {
            verdicts,
            tops,
            rule: rule.clone(),
            mask,
            flags: layout.flags,
            head: layout.head_pointer.unwrap_or_default(),
            head_mark: u64::from(layout.head_pointer.is_some()),
            mapping: layout.mapping,
            private: layout.private,
            page_type: layout.page_type,
            #[cfg(target_arch = "x86_64")]
            fast: mask.count_ones() <= FLAGS && fast(),
        }
    }

    /// Judges at most 64 records, up to the first that stands for others.
    pub(crate) fn scan(&self, records: &[Record]) -> Batch {
        match &self.tops {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the processor was asked for what the function needs.
            Some(tops) if self.fast => unsafe { self.scan_fast(records, tops) },
            Some(tops) => self.row::<false>(records, |page_type| tops[(page_type >> 24) as usize]),
            None => self.row::<false>(records, |page_type| {
                (self.rule.kind(page_type) as u16) << KIND
            }),
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "bmi1,bmi2")]
    fn scan_fast(&self, records: &[Record], tops: &[u16; 256]) -> Batch {
        self.row::<true>(records, |page_type| tops[(page_type >> 24) as usize])
    }

    #[inline(always)]
    fn row<const FAST: bool>(&self, records: &[Record], kind: impl Fn(u32) -> u16 + Copy) -> Batch {
        let mut batch = Batch::default();
        for record in records {
            let verdict = self.look_up::<FAST>(record, kind);
            if verdict & SPEAKS != 0 {
                // Seldom, so the processor predicts it well.
                break;
            }
            // No branch on the class, which is as good as random in mixed memory. Of 64 records no
            // count overflows its eight bits.
            batch.drop |= u64::from(verdict != 0) << batch.done;
            batch.counts += 1 << (verdict * 8);
            batch.done += 1;
        }
        batch
    }

    #[inline(always)]
    fn look_up<const FAST: bool>(&self, record: &Record, kind: impl Fn(u32) -> u16) -> u8 {
        let flags = gather::<FAST>(long(record, self.flags), self.mask);
        let tail = (long(record, self.head) & self.head_mark) << TAIL;
        let anon = (long(record, self.mapping) & 1) << ANON;
        let page_type = (long(record, self.page_type) >> (self.page_type % 8 * 8)) as u32;
        let order = u64::from(long(record, self.private) != 0) << ORDER;
        let key = flags | tail | anon | order | u64::from(kind(page_type));
        self.verdicts[key as usize % KEYS]
    }
}

/// Returns whether the processor gathers bits in one instruction.
#[cfg(target_arch = "x86_64")]
fn fast() -> bool {
    std::arch::is_x86_feature_detected!("bmi1") && std::arch::is_x86_feature_detected!("bmi2")
}

/// Gathers the bits of `value` that `mask` has, the lowest first.
#[inline(always)]
fn gather<const FAST: bool>(value: u64, mask: u64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if FAST {
        // SAFETY: `FAST` is true only in functions that ask for BMI2, which are called only where
        // it is.
        return unsafe { std::arch::x86_64::_pext_u64(value, mask) };
    }
    let mut gathered = 0;
    let mut rest = mask;
    let mut at = 0;
    while rest != 0 {
        gathered |= (value >> rest.trailing_zeros() & 1) << at;
        rest &= rest - 1;
        at += 1;
    }
    gathered
}

/// The reverse of `gather`.
fn spread(gathered: u64, mask: u64) -> u64 {
    let mut value = 0;
    let mut rest = mask;
    let mut at = 0;
    while rest != 0 {
        value |= (gathered >> at & 1) << rest.trailing_zeros();
        rest &= rest - 1;
        at += 1;
    }
    value
}

const _: () = assert!(RECORD == 64 && Class::COUNT <= 8);

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, proptest};

    use super::{gather, spread};

    proptest! {
        #[test]
        fn gathered_bits_are_spread_again(value in any::<u64>(), mask in any::<u64>()) {
            assert_eq!(spread(gather::<false>(value, mask), mask), value & mask);
            #[cfg(target_arch = "x86_64")]
            if super::fast() {
                assert_eq!(gather::<true>(value, mask), gather::<false>(value, mask));
            }
        }
    }
}
