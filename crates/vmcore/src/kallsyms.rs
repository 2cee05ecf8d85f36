//! The kernel's symbol table (kallsyms), read from a dump: addresses of symbols that the note does not have.
//!
//! The note has the tables' addresses since Linux kernel commit 5fd8fea935a1 ("vmcoreinfo: include kallsyms symbols")
//! (in v6.0). A name is a sequence of tokens after its length in a byte, or two for long names; each token stands for a
//! text (`scripts/kallsyms.c`).

use crate::bytes::{u16_at, u32_at};
use crate::note::Info;
use crate::paging::Walker;
use crate::reader::Reader;

/// Limit of the names' bytes: five times those of a distribution's kernel.
const NAMES_MAX: u64 = 16 << 20;
/// Most bytes of the tokens' texts.
const TOKENS_MAX: u64 = 1 << 16;

/// The tables, as far as a search needs them.
struct Tables {
    names: Vec<u8>,
    tokens: Vec<u8>,
    index: Vec<u8>,
    count: u32,
}

/// Returns the addresses of symbols by name; empty if the dump lacks the tables.
pub(crate) fn addresses<const N: usize>(
    reader: &mut Reader<'_>,
    walker: &mut Walker<'_>,
    names: [&str; N],
) -> [Option<u64>; N] {
    find(reader, walker, names).unwrap_or([None; N])
}

fn find<const N: usize>(
    reader: &mut Reader<'_>,
    walker: &mut Walker<'_>,
    names: [&str; N],
) -> Option<[Option<u64>; N]> {
    let info = reader.dump().info();
    let tables = Tables::read(reader, walker, info)?;
    // A symbol in the note shows how addresses are encoded.
    let (known, address) = ["_stext", "init_uts_ns"].into_iter().find_map(|name| Some((name, info.symbol(name)?)))?;
    let mut wanted = vec![known];
    wanted.extend(names);
    let places = tables.places(&wanted);
    let base = walker.u64(reader, info.symbol("kallsyms_relative_base")?).ok()?;
    let offsets = info.symbol("kallsyms_offsets")?;
    let mut offset = |place: &Option<u32>| {
        let bytes = walker.read(reader, offsets.wrapping_add(u64::from((*place)?) * 4), 4).ok()?;
        u32_at(&bytes, 0)
    };
    let first = offset(places.first()?)?;
    let rule = [relative, per_cpu].into_iter().find(|rule| rule(base, first) == address)?;
    let mut found = [None; N];
    for (found, place) in found.iter_mut().zip(&places[1..]) {
        *found = offset(place).map(|offset| rule(base, offset));
    }
    Some(found)
}

/// Offsets are distances from a base.
fn relative(base: u64, offset: u32) -> u64 {
    base.wrapping_add(u64::from(offset))
}

/// If per-processor variables have small addresses, non-negative offsets are addresses
/// (`CONFIG_KALLSYMS_ABSOLUTE_PERCPU`, `kernel/kallsyms.c`).
fn per_cpu(base: u64, offset: u32) -> u64 {
    match offset.cast_signed() {
        address @ 0.. => address.unsigned_abs().into(),
        distance => base.wrapping_sub(1).wrapping_add(u64::from(distance.unsigned_abs())),
    }
}

impl Tables {
    fn read(reader: &mut Reader<'_>, walker: &mut Walker<'_>, info: &Info) -> Option<Self> {
        let [names, tokens, index] =
            ["kallsyms_names", "kallsyms_token_table", "kallsyms_token_index"].map(|name| info.symbol(name));
        let (names, tokens, index) = (names?, tokens?, index?);
        let count = walker.read(reader, info.symbol("kallsyms_num_syms")?, 4).ok()?;
        // The tables follow each other in this order.
        let size =
            |from: u64, to: u64, most| to.checked_sub(from).filter(|size| *size <= most).map(|size| size as usize);
        Some(Self {
            names: walker.read(reader, names, size(names, tokens, NAMES_MAX)?).ok()?,
            tokens: walker.read(reader, tokens, size(tokens, index, TOKENS_MAX)?).ok()?,
            index: walker.read(reader, index, 512).ok()?,
            count: u32_at(&count, 0)?,
        })
    }

    /// Returns the numbers of symbols, by name.
    fn places(&self, wanted: &[&str]) -> Vec<Option<u32>> {
        let mut places = vec![None; wanted.len()];
        let mut at = 0;
        for number in 0..self.count {
            let Some(name) = self.next(&mut at) else { break };
            for (place, wanted) in places.iter_mut().zip(wanted) {
                if place.is_none() && self.is(name, wanted) {
                    *place = Some(number);
                }
            }
        }
        places
    }

    /// Returns the tokens of the name at `at`, and advances past it.
    fn next(&self, at: &mut usize) -> Option<&[u8]> {
        let first = usize::from(*self.names.get(*at)?);
        *at += 1;
        let length = if first & 0x80 == 0 {
            first
        } else {
            // Linux kernel commit 73bbb94466fd ("kallsyms: support \"big\" kernel symbols") (in v6.1).
            let second = usize::from(*self.names.get(*at)?);
            *at += 1;
            first & 0x7f | second << 7
        };
        let tokens = self.names.get(*at..*at + length)?;
        *at += length;
        Some(tokens)
    }

    /// Returns whether tokens spell a letter for the kind and then the name.
    fn is(&self, tokens: &[u8], name: &str) -> bool {
        let mut rest = name.as_bytes();
        let mut skip = 1;
        for token in tokens {
            let start = u16_at(&self.index, usize::from(*token) * 2).map(usize::from);
            let Some(text) = start.and_then(|start| self.tokens.get(start..)) else { return false };
            // Stop at a longer name: corrupt tables may be endless.
            let most = text.len().min(rest.len() + skip + 1);
            let text = &text[..text[..most].iter().position(|byte| *byte == 0).unwrap_or(most)];
            let text = &text[skip.min(text.len())..];
            skip = 0;
            match rest.strip_prefix(text) {
                Some(behind) => rest = behind,
                None => return false,
            }
        }
        rest.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::{Tables, per_cpu, relative};

    #[test]
    fn names_are_spelled_by_tokens() {
        // Tokens: 0 "Tstart", 1 "_", 2 "kernel", 3 "D".
        let tokens = b"Tstart\0_\0kernel\0D\0".to_vec();
        let index: Vec<u8> = [0_u16, 7, 9, 16].iter().flat_map(|at| at.to_le_bytes()).collect();
        // start, kernel, start_kernel with its length in two bytes.
        let names = vec![1, 0, 2, 3, 2, 0x83, 0, 0, 1, 2];
        let tables = Tables { names, tokens, index, count: 3 };
        assert_eq!(tables.places(&["start_kernel", "start", "kernel", "sta"]), [Some(2), Some(0), Some(1), None]);
        let cut = Tables { count: u32::MAX, ..tables };
        assert_eq!(cut.places(&["other"]), [None]);
    }

    #[test]
    fn texts_without_an_end_are_no_names() {
        let (names, index) = (vec![1, 0, 1, 1], [0_u16, 4].iter().flat_map(|at| at.to_le_bytes()).collect());
        let tables = Tables { names, tokens: b"Tend".repeat(1 << 14), index, count: 2 };
        assert_eq!(tables.places(&["end", "endT", "endTend"]), [None; 3]);
        assert_eq!(Tables { tokens: b"Tend".to_vec(), ..tables }.places(&["end"]), [Some(0)]);
    }

    #[test]
    fn offsets_are_read_in_two_ways() {
        let base = 0xffff_ffff_8100_0000;
        assert_eq!(relative(base, 0x10), base + 0x10);
        assert_eq!(per_cpu(base, 0x10), 0x10);
        assert_eq!(per_cpu(base, -17_i32 as u32), base + 16);
    }
}
