//! The kernel's log, from its ring buffer (`kernel/printk/printk_ringbuffer.h`): since 5.10 a ring
//! of descriptors, each with the position of its text in a ring of bytes.

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
const STATE_SHIFT: u32 = 62;

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

/// Returns the log as `dmesg` prints it, without incomplete records: time, caller where the kernel
/// keeps it (`CONFIG_PRINTK_CALLER`: T and a thread, or C and a processor), text. The last line
/// says where an inconsistent log, or one larger than 128 MiB, was cut off.
///
/// # Errors
/// If the note does not have its address, or the dump lacks it.
pub fn log(reader: &mut Reader<'_>, part: LogPart) -> Result<String, DumpError> {
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
    let stored_pages: u64 = dump
        .in_file()
        .iter()
        .map(|range| range.end - range.start)
        .sum();
    let ring = Ring::find(
        info,
        &mut memory,
        stored_pages.saturating_mul(dump.page_size()),
    )?;
    let state = offset(info, "prb_desc.state_var")?;
    let block = offset(info, "prb_desc.text_blk_lpos")?;
    let begin_at = offset(info, "prb_data_blk_lpos.begin")?;
    let next_at = offset(info, "prb_data_blk_lpos.next")?;
    let time_at = offset(info, "printk_info.ts_nsec")?;
    let length_at = offset(info, "printk_info.text_len")?;
    let caller_at = info.size("OFFSET", "printk_info.caller_id");
    let first = if part == LogPart::SinceClear {
        cleared(info, &mut memory)?
    } else {
        0
    };
    let number_at = offset(info, "printk_info.seq").unwrap_or_default();
    let mut text = String::new();
    let mut room = ring.size;
    // Ids wrap; there are no more than the ring holds.
    let used = (ring.head.wrapping_sub(ring.tail) & ((1 << STATE_SHIFT) - 1)).min(ring.count - 1);
    for n in 0..=used {
        let id = ring.tail.wrapping_add(n) & ((1 << STATE_SHIFT) - 1);
        let slot = id % ring.count;
        let descriptor = ring.descriptors.wrapping_add(slot * ring.descriptor_size);
        let held = memory.number(WHAT, descriptor.wrapping_add(state))?;
        if !WHOLE.contains(&(held >> STATE_SHIFT)) || held & ((1 << STATE_SHIFT) - 1) != id {
            continue;
        }
        let begin = memory.number(WHAT, descriptor.wrapping_add(block + begin_at))?;
        let next = memory.number(WHAT, descriptor.wrapping_add(block + next_at))?;
        let record = ring.infos.wrapping_add(slot * ring.info_size);
        if first > 0 && memory.number(WHAT, record.wrapping_add(number_at))? < first {
            continue;
        }
        let time = memory.number(WHAT, record.wrapping_add(time_at))?;
        let caller = match caller_at {
            Some(at) => u32_at(&memory.read(WHAT, record.wrapping_add(at as u64), 4)?, 0),
            None => None,
        };
        let length = memory.read(WHAT, record.wrapping_add(length_at), 2)?;
        let length = usize::from(u16_at(&length, 0).unwrap_or_default());
        // An odd position means no text.
        let message = if begin & 1 == 1 {
            Vec::new()
        } else {
            ring.text(&mut memory, begin, next, length)?
        };
        // Each byte of the ring belongs to one record only.
        room = room.saturating_sub(message.len() as u64);
        if room == 0 || text.len() > LOG_MAX {
            text.push_str(CUT);
            break;
        }
        append(&mut text, time, caller, &message);
    }
    Ok(text)
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
        // A record has more than one byte, and all of them are in memory.
        if !sane || count_bits > size_bits || 1 << size_bits > size {
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

    /// Reads a text; a block that would cross the ring's end is stored at its start as a whole.
    fn text(
        &self,
        memory: &mut Memory<'_, '_, '_>,
        begin: u64,
        next: u64,
        length: usize,
    ) -> Result<Vec<u8>, DumpError> {
        let wraps = begin / self.size != next.wrapping_sub(1) / self.size;
        let start = if wraps { 0 } else { begin % self.size };
        // The id of its descriptor precedes the text.
        let room = (self.size - start).saturating_sub(8);
        let length = length.min(usize::try_from(room).unwrap_or(length));
        memory.read(WHAT, self.data.wrapping_add(start + 8), length)
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
