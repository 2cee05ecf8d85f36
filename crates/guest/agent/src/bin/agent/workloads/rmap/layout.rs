//! Where mappings lie: addresses, pages, offsets. Arithmetic only; the system calls are in
//! `mappings.rs`.
//!
//! Mappings lie in slots, each what one page table covers. The first slot of each GiB holds a page
//! of its own, so that all upper page tables are there before and after: the page tables that come
//! and go are those of the lowest level.

use super::super::region::{HUGE, PAGE};

/// Where all begins: far from the program, the heap, the stack and what the kernel places by
/// itself.
const BASE: usize = 64 << 30;
const GIB: usize = 1 << 30;
/// Slots of a GiB that mappings may take.
const SLOTS: usize = GIB / HUGE - 1;
/// Entries of a page table.
pub(super) const ENTRIES: usize = HUGE / PAGE;

/// What is mapped, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Case {
    /// Each process maps each page of a file by itself.
    File,
    /// The same with shared anonymous memory.
    Shared,
    /// Shared anonymous memory, each mapping of all of it with one page in use.
    Sparse,
    /// Shared anonymous memory in one mapping, whose pages are then put into another order one by
    /// one.
    Remapped,
    /// Private anonymous memory of a process that all others are forked from.
    Inherited,
    /// The same, but each process forked from the one before.
    Chain,
}

/// All cases by the words that jobs have for them.
pub(super) const CASES: [(&str, Case); 6] = [
    ("file", Case::File),
    ("shared", Case::Shared),
    ("sparse", Case::Sparse),
    ("remapped", Case::Remapped),
    ("inherited", Case::Inherited),
    ("chain", Case::Chain),
];

impl Case {
    /// Says whether there is an object, such as a file, that mappings are of.
    pub(super) fn has_object(self) -> bool {
        !matches!(self, Self::Inherited | Self::Chain)
    }
}

/// One mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mapping {
    /// Where it begins.
    pub(super) address: usize,
    /// Its pages.
    pub(super) pages: usize,
    /// The page of the object that it begins with.
    pub(super) offset: usize,
    /// Which of its pages is in use.
    pub(super) used: usize,
}

/// The mappings of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) case: Case,
    pub(super) mappings: usize,
}

impl Layout {
    /// Returns a mapping.
    pub(super) fn place(self, number: usize) -> Mapping {
        let dense = slot(number / ENTRIES) + number % ENTRIES * PAGE;
        // Neighbours must not become one mapping: what follows on in memory does not follow on in
        // the object.
        match self.case {
            Case::Sparse => Mapping {
                address: slot(number),
                pages: ENTRIES,
                offset: 0,
                used: number % ENTRIES,
            },
            Case::Remapped => Mapping {
                address: dense,
                pages: 1,
                offset: number * self.stride() % self.mappings,
                used: 0,
            },
            _ => Mapping {
                address: dense,
                pages: 1,
                offset: self.mappings - 1 - number,
                used: 0,
            },
        }
    }

    /// Returns the mapping that was made last.
    pub(super) fn last(self) -> Mapping {
        self.place(self.mappings - 1)
    }

    /// Returns all mappings.
    pub(super) fn places(self) -> impl Iterator<Item = Mapping> {
        (0..self.mappings).map(move |number| self.place(number))
    }

    /// Returns the pages of the object.
    pub(super) fn object_pages(self) -> usize {
        if self.case == Case::Sparse {
            ENTRIES
        } else {
            self.mappings
        }
    }

    /// Returns the pages of the object that any process uses.
    pub(super) fn used_pages(self) -> usize {
        self.mappings.min(self.object_pages())
    }

    /// Returns the slots in use: what page tables of the lowest level there must be.
    pub(super) fn slots(self) -> impl Iterator<Item = usize> {
        let count = if self.case == Case::Sparse {
            self.mappings
        } else {
            self.mappings.div_ceil(ENTRIES)
        };
        (0..count).map(slot)
    }

    /// Returns where slots lie without a gap, as begin and length.
    pub(super) fn windows(self) -> impl Iterator<Item = (usize, usize)> {
        let count = self.slots().count();
        (0..count.div_ceil(SLOTS))
            .map(move |gib| (slot(gib * SLOTS), (count - gib * SLOTS).min(SLOTS) * HUGE))
    }

    /// Returns the page of each GiB that keeps the upper page tables.
    pub(super) fn keepers(self) -> impl Iterator<Item = usize> {
        self.windows().map(|(start, _)| start - HUGE)
    }

    /// Returns a number without a common divisor with the number of pages, not far from the golden
    /// section of it.
    fn stride(self) -> usize {
        let coprime = |number: &usize| divisor(*number, self.mappings) == 1;
        (self.mappings * 618 / 1000 + 1..)
            .find(coprime)
            .unwrap_or(1)
    }
}

fn slot(number: usize) -> usize {
    BASE + number / SLOTS * GIB + (1 + number % SLOTS) * HUGE
}

fn divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{CASES, Case, ENTRIES, HUGE, Layout, PAGE};

    #[test]
    fn places_lie_in_the_windows_and_do_not_overlap() {
        for (_, case) in CASES {
            for mappings in [1, 2, 511, 512, 513, 1500] {
                let layout = Layout { case, mappings };
                let windows: Vec<_> = layout.windows().collect();
                let mut end = 0;
                for place in layout.places() {
                    let length = place.pages * PAGE;
                    assert!(place.address >= end, "{case:?} {mappings}: in order");
                    end = place.address + length;
                    let within = |(start, bytes): &(usize, usize)| {
                        place.address >= *start && end <= start + bytes
                    };
                    assert!(windows.iter().any(within), "{case:?} {mappings}");
                    assert!(
                        place.used < place.pages
                            && place.offset + place.pages <= layout.object_pages()
                    );
                }
                assert!(layout.keepers().all(|keeper| keeper % (1 << 30) == 0));
            }
        }
    }

    #[test]
    fn each_page_of_a_dense_object_is_mapped_once_and_neighbours_stay_apart() {
        for (_, case) in CASES.into_iter().filter(|(_, case)| *case != Case::Sparse) {
            let layout = Layout {
                case,
                mappings: 1000,
            };
            let offsets: Vec<_> = layout.places().map(|place| place.offset).collect();
            assert_eq!(
                offsets.iter().collect::<BTreeSet<_>>().len(),
                1000,
                "{case:?}"
            );
            assert!(
                offsets.windows(2).all(|pair| pair[1] != pair[0] + 1),
                "{case:?}"
            );
        }
    }

    #[test]
    fn page_tables_are_as_many_as_arithmetic_says() {
        assert_eq!(
            Layout {
                case: Case::File,
                mappings: 2 * ENTRIES
            }
            .slots()
            .count(),
            2
        );
        let sparse = Layout {
            case: Case::Sparse,
            mappings: 700,
        };
        assert_eq!((sparse.slots().count(), sparse.keepers().count()), (700, 2));
        assert!(sparse.slots().all(|slot| slot % HUGE == 0));
    }
}
