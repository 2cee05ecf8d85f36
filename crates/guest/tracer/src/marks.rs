//! Instructions that mean something: the agent's marks around a region, and entries to the kernel.

use std::collections::BTreeMap;

/// What an instruction means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A region of this number begins.
    Open(u16),
    /// The region ends.
    Close,
    /// An interrupt begins.
    Interrupt,
    /// An exception begins.
    Exception,
    /// A system call begins.
    SystemCall,
    /// An interrupt or exception ends.
    Return,
    /// The stack of another task is loaded.
    Switch,
    /// SYSRET: a system call ends.
    SystemReturn,
    /// A new task begins.
    Fork,
    /// A function begins.
    Function,
}

/// `nopl disp32(%rax,%rax,1)`, whose displacement holds a number and `KM`: does nothing on any
/// processor, and no compiler writes it.
const REGION: [u8; 4] = [0x0f, 0x1f, 0x84, 0x00];
const SIGNATURE: [u8; 2] = *b"KM";
/// The number that ends a region.
const CLOSE: u16 = u16::MAX;
/// IRETQ.
const RETURN: [u8; 2] = [0x48, 0xcf];
/// SYSRETQ.
const SYSTEM_RETURN: [u8; 3] = [0x48, 0x0f, 0x07];
/// `mov disp32(%rsi),%rsp`: what loads the stack of the task that is switched to, in
/// `__switch_to_asm` (arch/x86/entry/entry_64.S).
const LOAD_STACK: [u8; 3] = [0x48, 0x8b, 0xa6];
/// How far into that function it is at most, in bytes.
const LOAD_WITHIN: u64 = 64;

/// The kinds of locks, and which are of one class: words that several kinds share.
pub(crate) const LOCK_KINDS: [(&str, u8); 6] = [
    ("spin", 0),
    ("read", 1),
    ("write", 1),
    ("mutex", 2),
    ("down_read", 3),
    ("down_write", 3),
];

/// Returns the number of a kind.
fn lock_kind(name: &str) -> Option<u8> {
    let place = LOCK_KINDS.iter().position(|(known, _)| *known == name)?;
    u8::try_from(place).ok()
}

/// Entries to the kernel by address.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    entries: BTreeMap<u64, Mark>,
    switch: Option<u64>,
    /// Functions that are watched: where each begins and ends.
    watched: BTreeMap<u64, u64>,
    /// Functions that take locks: where each begins and ends, and the kind of locks.
    takes: BTreeMap<u64, (u64, u8)>,
    /// Addresses and offsets of the kernel's records, by their names.
    places: BTreeMap<String, u64>,
}

impl Marks {
    /// Reads them from a file.
    pub(crate) fn read(path: &str) -> Result<Self, String> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("failed to read {path}: {error}"))?;
        Self::parse(&text).map_err(|line| format!("{path} holds `{line}`, which is no mark"))
    }

    fn parse(text: &str) -> Result<Self, &str> {
        let mut marks = Self::default();
        for line in text.lines() {
            let (word, address) = line.split_once(' ').ok_or(line)?;
            let number = |text: &str| u64::from_str_radix(text, 16).map_err(|_| line);
            if word == "watched" {
                let (start, end) = address.split_once(' ').ok_or(line)?;
                marks.watched.insert(number(start)?, number(end)?);
                continue;
            }
            if word == "takes" {
                let (kind, range) = address.split_once(' ').ok_or(line)?;
                let (start, end) = range.split_once(' ').ok_or(line)?;
                let kind = lock_kind(kind).ok_or(line)?;
                marks.takes.insert(number(start)?, (number(end)?, kind));
                continue;
            }
            if word == "place" {
                let (name, place) = address.split_once(' ').ok_or(line)?;
                marks.places.insert(name.to_owned(), number(place)?);
                continue;
            }
            let address = number(address)?;
            let mark = match word {
                "interrupt" => Mark::Interrupt,
                "exception" => Mark::Exception,
                "syscall" => Mark::SystemCall,
                "fork" => Mark::Fork,
                "function" => Mark::Function,
                "switch" => {
                    marks.switch = Some(address);
                    continue;
                }
                _ => return Err(line),
            };
            marks.entries.insert(address, mark);
        }
        Ok(marks)
    }

    /// Returns addresses and offsets of the kernel's records, which are gone from here then.
    pub(crate) fn take_places(&mut self) -> BTreeMap<String, u64> {
        std::mem::take(&mut self.places)
    }

    /// Returns the beginning of the watched function that an address is in.
    pub(crate) fn watched(&self, address: u64) -> Option<u64> {
        let (start, end) = self.watched.range(..=address).next_back()?;
        (address < *end).then_some(*start)
    }

    /// Returns the kind of locks that the function takes which an address is in.
    pub(crate) fn takes(&self, address: u64) -> Option<u8> {
        let (_, (end, kind)) = self.takes.range(..=address).next_back()?;
        (address < *end).then_some(*kind)
    }

    /// Returns what an instruction means, if anything.
    pub(crate) fn at(&self, address: u64, bytes: &[u8]) -> Option<Mark> {
        if let [a, b, c, d, low, high, e, f] = *bytes
            && [a, b, c, d] == REGION
            && [e, f] == SIGNATURE
        {
            let number = u16::from_le_bytes([low, high]);
            return Some(if number == CLOSE {
                Mark::Close
            } else {
                Mark::Open(number)
            });
        }
        if bytes == RETURN {
            return Some(Mark::Return);
        }
        if bytes == SYSTEM_RETURN {
            return Some(Mark::SystemReturn);
        }
        if bytes.starts_with(&LOAD_STACK)
            && self
                .switch
                .is_some_and(|at| (at..at + LOAD_WITHIN).contains(&address))
        {
            return Some(Mark::Switch);
        }
        self.entries.get(&address).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::{Mark, Marks};

    #[test]
    fn marks_are_found_by_their_bytes_and_their_addresses() {
        let marks = Marks::parse("interrupt ffffffff81000010\nswitch ffffffff81000100\n").unwrap();
        assert_eq!(
            marks.at(0x40_1000, &[0x0f, 0x1f, 0x84, 0x00, 0x05, 0x00, b'K', b'M']),
            Some(Mark::Open(5))
        );
        assert_eq!(
            marks.at(0x40_1000, &[0x0f, 0x1f, 0x84, 0x00, 0xff, 0xff, b'K', b'M']),
            Some(Mark::Close)
        );
        assert_eq!(
            marks.at(0x40_1000, &[0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00]),
            None
        );
        assert_eq!(
            marks.at(0xffff_ffff_8100_0010, &[0x0f, 0x01, 0xca]),
            Some(Mark::Interrupt)
        );
        let load = [0x48, 0x8b, 0xa6, 0x18, 0x14, 0x00, 0x00];
        assert_eq!(marks.at(0xffff_ffff_8100_0110, &load), Some(Mark::Switch));
        assert_eq!(marks.at(0xffff_ffff_8100_0180, &load), None);
    }

    #[test]
    fn functions_that_take_locks_have_a_kind() {
        let marks = Marks::parse("takes spin 10 20\ntakes mutex 20 28\n").unwrap();
        assert_eq!(
            [0x0f, 0x10, 0x1f, 0x20, 0x28].map(|at| marks.takes(at)),
            [None, Some(0), Some(0), Some(3), None]
        );
        let unknown = Marks::parse("takes bit 10 20\n").unwrap_err();
        assert_eq!(unknown, "takes bit 10 20");
    }

    #[test]
    fn what_is_no_mark_is_said() {
        assert_eq!(Marks::parse("interrupt x\n").unwrap_err(), "interrupt x");
        assert_eq!(
            Marks::parse("place slab_caches\n").unwrap_err(),
            "place slab_caches"
        );
        let mut marks = Marks::parse("place slab_caches 10\n").unwrap();
        assert_eq!(marks.take_places(), [("slab_caches".to_owned(), 16)].into());
        let marks = Marks::parse("watched 10 20\n").unwrap();
        assert_eq!(
            [0x0f, 0x10, 0x1f, 0x20].map(|at| marks.watched(at)),
            [None, Some(0x10), Some(0x10), None]
        );
        assert_eq!(Marks::parse("nonsense 10\n").unwrap_err(), "nonsense 10");
    }
}
