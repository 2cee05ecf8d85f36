//! The kernel's log, from its ring buffer (`kernel/printk/printk_ringbuffer.h`): since 5.10 a ring
//! of descriptors, each with the position of its text in a ring of bytes.

use std::collections::BTreeMap;

use crate::bytes::{u16_at, u32_at, u64_at};
use crate::error::{DumpError, MemoryError};
use crate::note::Info;
use crate::paging::{Walker, architecture};
use crate::reader::Reader;

/// Most bits of the number of descriptors: a log buffer has at most 2^31 bytes, and 32 of them for
/// each record.
const COUNT_BITS_MAX: u64 = 26;
/// Most bits of the size of the ring of bytes (`LOG_BUF_LEN_MAX`).
const SIZE_BITS_MAX: u64 = 31;
/// Largest returned log; kernels seldom have a larger one.
const LOG_MAX: usize = 128 << 20;
/// Marks a truncated log.
const CUT: &str =
    "... the rest is left out: it is more than the ring of the log can hold, or than 128 MiB\n";
/// States of a descriptor with a complete record: committed and finalized, in the topmost two bits.
const WHOLE: [u64; 2] = [1, 2];
const RESERVED: u64 = 0;
/// Descriptors that are read at once.
const STEP: u64 = 64;
/// Most records whose text is lost.
const TEXTS_MAX: u64 = 1 << 16;
const STATE_SHIFT: u32 = 62;
/// The bits of an id.
const ID: u64 = (1 << STATE_SHIFT) - 1;

/// Reads structures by their virtual addresses.
struct Memory<'r, 'd, 'w> {
    reader: &'r mut Reader<'d>,
    walker: Walker<'w>,
}

impl Memory<'_, '_, '_> {
    fn read(
        &mut self,
        what: &'static str,
        address: u64,
        length: usize,
    ) -> Result<Vec<u8>, DumpError> {
        let mut bytes = Vec::with_capacity(length);
        while bytes.len() < length {
            let at = address.wrapping_add(bytes.len() as u64);
            let rest = length - bytes.len();
            let piece = self.piece(at, rest).map_err(|cause| DumpError::Structure {
                what,
                address: at,
                cause,
            })?;
            bytes.extend_from_slice(piece);
        }
        Ok(bytes)
    }

    /// Returns at most `length` bytes from a virtual address, up to the end of its mapping.
    fn piece(&mut self, address: u64, length: usize) -> Result<&[u8], MemoryError> {
        let mapping = self.walker.walk(self.reader, address)?;
        let length = length.min(usize::try_from(mapping.length).unwrap_or(length));
        self.reader.bytes(mapping.physical, length)
    }

    fn number(&mut self, what: &'static str, address: u64) -> Result<u64, DumpError> {
        Ok(u64_at(&self.read(what, address, 8)?, 0).unwrap_or_default())
    }
}

/// The ring with its layout.
struct Ring {
    descriptors: u64,
    infos: u64,
    data: u64,
    count: u64,
    size: u64,
    tail: u64,
    head: u64,
    descriptor_size: u64,
    info_size: u64,
}

const WHAT: &str = "the log's ring buffer";

/// The wanted part of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogPart {
    /// All records that the ring still has.
    All,
    /// What was logged since it was cleared last (`dmesg -C`); all of it if the note does not tell.
    SinceClear,
}

/// A kernel's log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Log {
    /// As `dmesg` prints it: time, caller where the kernel keeps it (`CONFIG_PRINTK_CALLER`: T and
    /// a thread, or C and a processor), text. Records that were just being written are left out.
    pub text: String,
    /// What is missing in it, or contradicts the rest; empty if the ring is whole.
    pub missing: Vec<String>,
}

/// Returns the text of the log. Its last line says where an inconsistent log, or one larger than
/// 128 MiB, was cut off.
///
/// # Errors
/// As for [`Log::read`].
pub fn log(reader: &mut Reader<'_>, part: LogPart) -> Result<String, DumpError> {
    Log::read(reader, part).map(|log| log.text)
}

impl Log {
    /// Reads the log: from all descriptors, whatever the ring says about its beginning and end, as
    /// these may be damaged.
    ///
    /// # Errors
    /// If the note does not have its address, or the dump lacks the ring itself.
    pub fn read(reader: &mut Reader<'_>, part: LogPart) -> Result<Self, DumpError> {
        let dump = reader.dump();
        let info = dump.info();
        if info.is_empty() {
            return Err(DumpError::NoNote);
        }
        let architecture = architecture(dump.machine(), info)?;
        let mut memory = Memory {
            reader,
            walker: Walker::new(&*architecture),
        };
        let stored_pages: u64 = dump.in_file().map(|range| range.end - range.start).sum();
        let ring = Ring::find(
            info,
            &mut memory,
            stored_pages.saturating_mul(dump.page_size()),
        )?;
        let fields = Fields::new(info)?;
        let mut losses = Losses::default();
        let first = match part {
            LogPart::All => 0,
            LogPart::SinceClear => cleared(info, &mut memory).unwrap_or_else(|_| {
                losses.clearing = true;
                0
            }),
        };
        let records = ring.records(&mut memory, &fields, &mut losses);
        let mut text = String::new();
        let mut room = ring.size;
        let mut distances: BTreeMap<u64, u64> = BTreeMap::new();
        for id in &records {
            // Garbage is no log, however much there is of it.
            if losses.texts > TEXTS_MAX || losses.unreadable > TEXTS_MAX {
                losses.cut = true;
                break;
            }
            let Ok(record) = ring.record(&mut memory, &fields, *id) else {
                losses.unreadable += 1;
                continue;
            };
            if record.number.is_some_and(|number| number < first) {
                continue;
            }
            // Each byte of the ring belongs to one record only.
            room = room.saturating_sub(record.message.len() as u64);
            if room == 0 || text.len() > LOG_MAX {
                text.push_str(CUT);
                losses.cut = true;
                break;
            }
            losses.texts += u64::from(record.is_damaged);
            // Numbers and ids are counted together (`prb_reserve`), so their distance is constant.
            if let Some(number) = record.number {
                *distances.entry(number.wrapping_sub(*id) & ID).or_default() += 1;
            }
            append(&mut text, record.time, record.caller, &record.message);
        }
        let usual = distances.values().copied().max().unwrap_or_default();
        losses.numbers = distances.values().sum::<u64>() - usual;
        losses.is_empty = records.is_empty();
        let mut missing = losses.lines();
        if reader.dump().are_notes_damaged() {
            let what = "the notes, which say where it is, are damaged: their checksum is wrong";
            missing.push(what.to_owned());
        }
        Ok(Self { text, missing })
    }
}

/// Offsets of the fields of a record.
struct Fields {
    state: u64,
    begin: u64,
    next: u64,
    time: u64,
    length: u64,
    caller: Option<u64>,
    number: Option<u64>,
}

impl Fields {
    fn new(info: &Info) -> Result<Self, DumpError> {
        let block = offset(info, "prb_desc.text_blk_lpos")?;
        let caller = info.size("OFFSET", "printk_info.caller_id");
        Ok(Self {
            state: offset(info, "prb_desc.state_var")?,
            begin: block + offset(info, "prb_data_blk_lpos.begin")?,
            next: block + offset(info, "prb_data_blk_lpos.next")?,
            time: offset(info, "printk_info.ts_nsec")?,
            length: offset(info, "printk_info.text_len")?,
            caller: caller.map(|at| at as u64),
            number: offset(info, "printk_info.seq").ok(),
        })
    }
}

/// What is missing in a log, in records.
#[derive(Debug, Default)]
struct Losses {
    /// The dump lacks their memory.
    unreadable: u64,
    /// Between the ring's beginning and end, and without a record.
    lost: u64,
    /// Their places or the ring's ends contradict the others.
    strange: u64,
    /// Their text is another record's.
    texts: u64,
    /// Their number is not in the order of the others.
    numbers: u64,
    /// The ring's ends are further apart than it is long.
    ends: bool,
    clearing: bool,
    cut: bool,
    is_empty: bool,
}

impl Losses {
    fn lines(&self) -> Vec<String> {
        let counts = [
            (self.unreadable, "records cannot be read"),
            (
                self.lost,
                "records are missing between the beginning and the end of the ring",
            ),
            (
                self.strange,
                "records contradict the place, the beginning or the end of the ring",
            ),
            (self.texts, "records have no text, or that of another one"),
            (self.numbers, "records have numbers out of order"),
        ];
        let mut lines: Vec<String> = counts
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        let facts = [
            (self.ends, "the ring's beginning and end are damaged"),
            (
                self.clearing,
                "it is unknown when the log was cleared last: all records are here",
            ),
            (
                self.cut,
                "the rest is left out: the ring is damaged, or too large",
            ),
            (
                self.is_empty,
                "no descriptor has a record, though each kernel logs",
            ),
        ];
        let facts = facts.into_iter().filter(|(is_so, _)| *is_so);
        lines.extend(facts.map(|(_, what)| what.to_owned()));
        lines
    }
}

/// A record.
struct Record {
    time: u64,
    caller: Option<u32>,
    number: Option<u64>,
    message: Vec<u8>,
    is_damaged: bool,
}

/// Returns the number of the first record after the log was cleared: of two values, the one that no
/// writer changes (`struct latched_seq`, `kernel/printk/printk.c`), or a plain number if the note
/// has no such structure.
fn cleared(info: &Info, memory: &mut Memory<'_, '_, '_>) -> Result<u64, DumpError> {
    let Some(at) = info.symbol("clear_seq") else {
        return Ok(0);
    };
    let first = memory.number(WHAT, at)?;
    match info.size("OFFSET", "latched_seq.val") {
        Some(values) => memory.number(WHAT, at.wrapping_add(values as u64 + (first & 1) * 8)),
        None => Ok(first),
    }
}

impl Ring {
    /// Finds the ring in `size` bytes of memory.
    fn find(info: &Info, memory: &mut Memory<'_, '_, '_>, size: u64) -> Result<Self, DumpError> {
        let pointer = info.need_symbol("prb")?;
        let ring = memory.number(WHAT, pointer)?;
        let descriptors = ring.wrapping_add(offset(info, "printk_ringbuffer.desc_ring")?);
        let data = ring.wrapping_add(offset(info, "printk_ringbuffer.text_data_ring")?);
        let counter = offset(info, "atomic_long_t.counter")?;
        let mut at = |base: u64, name: &str, more: u64| {
            memory.number(WHAT, base.wrapping_add(offset(info, name)? + more))
        };
        let count_bits = at(descriptors, "prb_desc_ring.count_bits", 0)? & 0xffff_ffff;
        let size_bits = at(data, "prb_data_ring.size_bits", 0)? & 0xffff_ffff;
        let sane = count_bits <= COUNT_BITS_MAX && size_bits <= SIZE_BITS_MAX;
        // There is a descriptor for 32 bytes (`PRB_AVGBITS`), and all of them are in memory.
        if !sane || count_bits + 5 > size_bits || 1 << size_bits > size {
            return Err(info.lies(
                "SYMBOL(prb)".to_owned(),
                "there is no ring buffer of a sane size there",
            ));
        }
        Ok(Self {
            descriptors: at(descriptors, "prb_desc_ring.descs", 0)?,
            infos: at(descriptors, "prb_desc_ring.infos", 0)?,
            data: at(data, "prb_data_ring.data", 0)?,
            count: 1 << count_bits,
            size: 1 << size_bits,
            tail: at(descriptors, "prb_desc_ring.tail_id", counter)?,
            head: at(descriptors, "prb_desc_ring.head_id", counter)?,
            descriptor_size: info.need_size("SIZE", "prb_desc")?.min(4096) as u64,
            info_size: info.need_size("SIZE", "printk_info")?.min(4096) as u64,
        })
    }

    /// Returns the ids of all whole records, in their order.
    fn records(
        &self,
        memory: &mut Memory<'_, '_, '_>,
        fields: &Fields,
        losses: &mut Losses,
    ) -> Vec<u64> {
        let mut whole = Vec::new();
        let mut unfinished = Vec::new();
        let mut states = Vec::new();
        let size = usize::try_from(self.descriptor_size).unwrap_or_default();
        let state_at = usize::try_from(fields.state).unwrap_or_default();
        for first in (0..self.count).step_by(STEP as usize) {
            let count = STEP.min(self.count - first) as usize;
            let at = self.descriptors.wrapping_add(first * self.descriptor_size);
            match memory.read(WHAT, at, count * size) {
                Ok(bytes) => {
                    let descriptors = bytes.chunks_exact(size.max(1)).zip(first..);
                    states.extend(
                        descriptors
                            .filter_map(|(bytes, slot)| Some((slot, u64_at(bytes, state_at)?))),
                    );
                }
                Err(_) => losses.unreadable += count as u64,
            }
        }
        for (slot, held) in states {
            let id = held & ID;
            match held >> STATE_SHIFT {
                // A descriptor that was never used is zero, as is its id.
                _ if held == 0 && slot != 0 => {}
                _ if id % self.count != slot => losses.strange += 1,
                state if WHOLE.contains(&state) => whole.push(id),
                // Reserved, or the first descriptor, which no record has (`DESC0_ID`); others
                // that can be reused are not between the ring's ends.
                state if state == RESERVED || id == ID - self.count => unfinished.push(id),
                _ => {}
            }
        }
        // Ids are consecutive, so those of all slots are within two rounds of the ring: the rounds
        // with the most records.
        let mut rounds: BTreeMap<u64, usize> = BTreeMap::new();
        for id in &whole {
            *rounds.entry(id / self.count).or_default() += 1;
        }
        let last_round = ID / self.count;
        let pairs = rounds.iter().map(|(round, count)| {
            let next = if *round == last_round { 0 } else { round + 1 };
            (count + rounds.get(&next).copied().unwrap_or(0), *round)
        });
        // The earliest of equal ones.
        let (_, round) = pairs
            .rev()
            .max_by_key(|(count, _)| *count)
            .unwrap_or_default();
        let start = round * self.count;
        let before = whole.len();
        whole.retain(|id| id.wrapping_sub(start) & ID < 2 * self.count);
        losses.strange += (before - whole.len()) as u64;
        whole.sort_unstable_by_key(|id| id.wrapping_sub(start) & ID);
        self.compare_ends(&whole, &unfinished, losses);
        whole
    }

    /// Compares the records with the ring's beginning and end.
    fn compare_ends(&self, whole: &[u64], unfinished: &[u64], losses: &mut Losses) {
        let used = self.head.wrapping_sub(self.tail) & ID;
        if used >= self.count {
            losses.ends = true;
            return;
        }
        let outside = whole
            .iter()
            .filter(|id| id.wrapping_sub(self.tail) & ID > used);
        losses.strange += outside.count() as u64;
        let known = whole.iter().chain(unfinished);
        let inside = known.filter(|id| id.wrapping_sub(self.tail) & ID <= used);
        losses.lost += (used + 1).saturating_sub(inside.count() as u64);
    }

    /// Reads the record of an id.
    fn record(
        &self,
        memory: &mut Memory<'_, '_, '_>,
        fields: &Fields,
        id: u64,
    ) -> Result<Record, DumpError> {
        let slot = id % self.count;
        let descriptor = self.descriptors.wrapping_add(slot * self.descriptor_size);
        let begin = memory.number(WHAT, descriptor.wrapping_add(fields.begin))?;
        let next = memory.number(WHAT, descriptor.wrapping_add(fields.next))?;
        let info = self.infos.wrapping_add(slot * self.info_size);
        let time = memory.number(WHAT, info.wrapping_add(fields.time))?;
        let number = match fields.number {
            Some(at) => Some(memory.number(WHAT, info.wrapping_add(at))?),
            None => None,
        };
        let caller = match fields.caller {
            Some(at) => u32_at(&memory.read(WHAT, info.wrapping_add(at), 4)?, 0),
            None => None,
        };
        let length = memory.read(WHAT, info.wrapping_add(fields.length), 2)?;
        let length = usize::from(u16_at(&length, 0).unwrap_or_default());
        // Odd positions, equal ones, mean no text: none was written, or there was no room for it
        // (`NO_LPOS`, `FAILED_LPOS`).
        if begin & 1 == 1 && begin == next {
            return Ok(Record {
                time,
                caller,
                number,
                message: Vec::new(),
                is_damaged: false,
            });
        }
        // The record stays if its text cannot be read.
        let text = self.text(memory, id, [begin, next], length);
        let is_damaged = !matches!(&text, Ok(Some(_)));
        Ok(Record {
            time,
            caller,
            number,
            message: text
                .ok()
                .flatten()
                .unwrap_or_else(|| b"(text lost)".to_vec()),
            is_damaged,
        })
    }

    /// Reads a text from its block, which begins with the id of its record (`struct
    /// prb_data_block`); `None` if it is another record's. A block that would cross the ring's end
    /// is stored at its start as a whole.
    fn text(
        &self,
        memory: &mut Memory<'_, '_, '_>,
        id: u64,
        [begin, next]: [u64; 2],
        length: usize,
    ) -> Result<Option<Vec<u8>>, DumpError> {
        let wraps = begin / self.size != next.wrapping_sub(1) / self.size;
        let start = if wraps { 0 } else { begin % self.size };
        let room = (self.size - start).saturating_sub(8);
        let length = length.min(usize::try_from(room).unwrap_or(length));
        if memory.number(WHAT, self.data.wrapping_add(start))? & ID != id {
            return Ok(None);
        }
        memory
            .read(WHAT, self.data.wrapping_add(start + 8), length)
            .map(Some)
    }
}

fn offset(info: &Info, name: &str) -> Result<u64, DumpError> {
    // No structure of the log is larger.
    Ok(info.need_size("OFFSET", name)?.min(1 << 20) as u64)
}

/// The bit of a caller that is a processor and not a thread (`printk_caller_id`,
/// `kernel/printk/printk.c`).
const PROCESSOR: u32 = 1 << 31;

/// Appends the lines of a record, each with its time and caller; escapes unprintable bytes.
fn append(text: &mut String, time: u64, caller: Option<u32>, message: &[u8]) {
    let caller = caller.map_or_else(String::new, |caller| {
        let kind = if caller & PROCESSOR == 0 { 'T' } else { 'C' };
        format!("[{:>8}] ", format!("{kind}{}", caller & !PROCESSOR))
    });
    for line in message.split(|byte| *byte == b'\n') {
        let line: String = String::from_utf8_lossy(line)
            .chars()
            .flat_map(|c| {
                if c.is_control() && c != '\t' {
                    c.escape_default().collect::<Vec<_>>()
                } else {
                    vec![c]
                }
            })
            .collect();
        text.extend([format!(
            "[{:>5}.{:06}] {caller}{line}\n",
            time / 1_000_000_000,
            time / 1000 % 1_000_000
        )]);
    }
}
