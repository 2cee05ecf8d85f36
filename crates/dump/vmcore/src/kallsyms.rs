//! The kernel's symbol table (kallsyms), read from a dump: addresses of symbols that the note does
//! not have.
//!
//! The note has the tables' addresses since Linux kernel commit 5fd8fea935a1 ("vmcoreinfo: include
//! kallsyms symbols") (in v6.0). A name is a sequence of tokens after its length in a byte, or two
//! for long names; each token stands for a text (`scripts/kallsyms.c`).

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
    // Symbols in the note show how addresses are encoded.
    let known: Vec<(&str, u64)> = KNOWN
        .into_iter()
        .filter_map(|name| Some((name, info.symbol(name)?)))
        .collect();
    let wanted: Vec<&str> = known.iter().map(|(name, _)| *name).chain(names).collect();
    let places = tables.places(&wanted);
    let table = info.symbol("kallsyms_offsets")?;
    let base = info
        .symbol("kallsyms_relative_base")
        .and_then(|at| walker.u64(reader, at).ok());
    let mut entry = |place: &Option<u32>| {
        let at = table.wrapping_add(u64::from((*place)?) * 4);
        Some(Entry {
            at,
            offset: u32_at(&walker.read(reader, at, 4).ok()?, 0)?,
        })
    };
    let pairs: Vec<(Entry, u64)> = places
        .iter()
        .zip(&known)
        .filter_map(|(place, (_, address))| Some((entry(place)?, *address)))
        .collect();
    let encoding = Encoding::find(base, &pairs)?;
    let mut found = [None; N];
    for (found, place) in found.iter_mut().zip(&places[known.len()..]) {
        *found = entry(place).map(|entry| encoding.address(entry));
    }
    Some(found)
}

/// Symbols that notes have and tables may have.
const KNOWN: [&str; 4] = ["_stext", "init_uts_ns", "swapper_pg_dir", "init_top_pgt"];

/// An entry of the table of offsets, and where it is.
#[derive(Debug, Clone, Copy)]
struct Entry {
    at: u64,
    offset: u32,
}

/// How entries become addresses (`kallsyms_sym_address`, `kernel/kallsyms.c`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    /// Offsets are distances from a base.
    Relative(u64),
    /// Non-negative offsets are addresses, as variables of processors have small ones
    /// (`CONFIG_KALLSYMS_ABSOLUTE_PERCPU`); the others are distances from a base.
    PerCpu(u64),
    /// Offsets are distances from their own places (`offset_to_ptr`): kernels without
    /// `kallsyms_relative_base`.
    Place,
}

impl Encoding {
    /// Returns the encoding that gives known entries their addresses.
    fn find(base: Option<u64>, known: &[(Entry, u64)]) -> Option<Self> {
        let (first, address) = known.first()?;
        let with_base = base.map(|base| [Self::Relative(base), Self::PerCpu(base)]);
        // Without its symbol, a base has to fit a second entry.
        let derived = Self::Relative(address.wrapping_sub(u64::from(first.offset)));
        let derived = (known.len() > 1).then_some(derived);
        with_base
            .into_iter()
            .flatten()
            .chain([Self::Place])
            .chain(derived)
            .find(|encoding| {
                known
                    .iter()
                    .all(|(entry, address)| encoding.address(*entry) == *address)
            })
    }

    fn address(self, Entry { at, offset }: Entry) -> u64 {
        match self {
            Self::Relative(base) => base.wrapping_add(u64::from(offset)),
            Self::PerCpu(base) => match offset.cast_signed() {
                address @ 0.. => address.unsigned_abs().into(),
                distance => base
                    .wrapping_sub(1)
                    .wrapping_add(u64::from(distance.unsigned_abs())),
            },
            Self::Place => at.wrapping_add_signed(offset.cast_signed().into()),
        }
    }
}

/// Returns the size of a table that ends where the next one begins; `None` if it is larger than
/// `most`, as in a damaged dump.
fn table_size(start: u64, next: u64, most: u64) -> Option<usize> {
    let size = next.checked_sub(start).filter(|size| *size <= most)?;
    usize::try_from(size).ok()
}

/// Tokens by what they can be the beginning of.
struct Prefixes {
    known: [bool; 256],
    /// Tokens without a letter of the name.
    bare: [bool; 256],
}

impl Prefixes {
    fn has(&self, token: u8) -> bool {
        self.known[usize::from(token)]
    }

    fn is_bare(&self, token: u8) -> bool {
        self.bare[usize::from(token)]
    }
}

impl Tables {
    fn read(reader: &mut Reader<'_>, walker: &mut Walker<'_>, info: &Info) -> Option<Self> {
        let [names, tokens, index] = [
            "kallsyms_names",
            "kallsyms_token_table",
            "kallsyms_token_index",
        ]
        .map(|name| info.symbol(name));
        let names = names?;
        let tokens = tokens?;
        let index = index?;
        let count = walker
            .read(reader, info.symbol("kallsyms_num_syms")?, 4)
            .ok()?;
        // The tables follow each other in this order.
        Some(Self {
            names: walker
                .read(reader, names, table_size(names, tokens, NAMES_MAX)?)
                .ok()?,
            tokens: walker
                .read(reader, tokens, table_size(tokens, index, TOKENS_MAX)?)
                .ok()?,
            index: walker.read(reader, index, 512).ok()?,
            count: u32_at(&count, 0)?,
        })
    }

    /// Returns the numbers of symbols, by name.
    fn places(&self, wanted: &[&str]) -> Vec<Option<u32>> {
        let mut places = vec![None; wanted.len()];
        let firsts = self.prefixes(wanted, 1);
        let seconds = self.prefixes(wanted, 0);
        let mut at = 0;
        for number in 0..self.count {
            let Some(name) = self.next(&mut at) else {
                break;
            };
            // Most names need no other look than at their first tokens.
            let may_be = match name {
                [first, second, ..] if firsts.is_bare(*first) => seconds.has(*second),
                [first, ..] => firsts.has(*first),
                [] => false,
            };
            if !may_be {
                continue;
            }
            for (place, wanted) in places.iter_mut().zip(wanted) {
                if place.is_none() && self.is(name, wanted) {
                    *place = Some(number);
                }
            }
        }
        places
    }

    /// Returns the tokens that one of these names can begin with, if `skip` letters for the kind
    /// come before the name.
    fn prefixes(&self, wanted: &[&str], skip: usize) -> Prefixes {
        let mut prefixes = Prefixes {
            known: [false; 256],
            bare: [false; 256],
        };
        for token in 0..256 {
            let start = u16_at(&self.index, token * 2).map(usize::from);
            let Some(text) = start.and_then(|start| self.tokens.get(start..)) else {
                continue;
            };
            // The text ends with a zero.
            let text = text.iter().skip(skip).take_while(|byte| **byte != 0);
            prefixes.bare[token] = text.clone().next().is_none();
            prefixes.known[token] = wanted.iter().any(|name| {
                text.clone()
                    .zip(name.as_bytes())
                    .all(|(one, other)| one == other)
            });
        }
        prefixes
    }

    /// Returns the tokens of the name at `at`, and advances past it.
    fn next(&self, at: &mut usize) -> Option<&[u8]> {
        let first = usize::from(*self.names.get(*at)?);
        *at += 1;
        let length = if first & 0x80 == 0 {
            first
        } else {
            // Linux kernel commit 73bbb94466fd ("kallsyms: support \"big\" kernel symbols") (in
            // v6.1).
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
            let Some(text) = start.and_then(|start| self.tokens.get(start..)) else {
                return false;
            };
            // Stop at a longer name: corrupt tables may be endless.
            let most = text.len().min(rest.len() + skip + 1);
            let text = &text[..text[..most]
                .iter()
                .position(|byte| *byte == 0)
                .unwrap_or(most)];
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
    use super::{Encoding, Entry, Tables};

    #[test]
    fn names_are_spelled_by_tokens() {
        // Tokens: 0 "Tstart", 1 "_", 2 "kernel", 3 "D".
        let tokens = b"Tstart\0_\0kernel\0D\0".to_vec();
        let index: Vec<u8> = [0_u16, 7, 9, 16]
            .iter()
            .flat_map(|at| at.to_le_bytes())
            .collect();
        // start, kernel, start_kernel with its length in two bytes.
        let names = vec![1, 0, 2, 3, 2, 0x83, 0, 0, 1, 2];
        let tables = Tables {
            names,
            tokens,
            index,
            count: 3,
        };
        assert_eq!(
            tables.places(&["start_kernel", "start", "kernel", "sta"]),
            [Some(2), Some(0), Some(1), None]
        );
        let cut = Tables {
            count: u32::MAX,
            ..tables
        };
        assert_eq!(cut.places(&["other"]), [None]);
    }

    #[test]
    fn texts_without_an_end_are_no_names() {
        let names = vec![1, 0, 1, 1];
        let index = [0_u16, 4].iter().flat_map(|at| at.to_le_bytes()).collect();
        let tables = Tables {
            names,
            tokens: b"Tend".repeat(1 << 14),
            index,
            count: 2,
        };
        assert_eq!(tables.places(&["end", "endT", "endTend"]), [None; 3]);
        assert_eq!(
            Tables {
                tokens: b"Tend".to_vec(),
                ..tables
            }
            .places(&["end"]),
            [Some(0)]
        );
    }

    #[test]
    fn offsets_are_read_as_known_symbols_show() {
        let base = 0xffff_ffff_8100_0000;
        let at = |number: u64, offset: i32| Entry {
            at: base + 0x80_0000 + 4 * number,
            offset: offset as u32,
        };
        let known = [(at(0, 0), base), (at(1, 0x10), base + 0x10)];
        assert_eq!(
            Encoding::find(Some(base), &known),
            Some(Encoding::Relative(base))
        );
        assert_eq!(Encoding::find(None, &known), Some(Encoding::Relative(base)));
        assert_eq!(
            Encoding::find(None, &known[..1]),
            None,
            "one entry fits any base"
        );
        let known = [
            (at(0, -0x80_0000), base),
            (at(1, 0x10 - 0x80_0004), base + 0x10),
        ];
        assert_eq!(Encoding::find(None, &known), Some(Encoding::Place));
        assert_eq!(
            Encoding::find(Some(base), &[(at(0, -1), base)]),
            Some(Encoding::PerCpu(base))
        );
        assert_eq!(Encoding::PerCpu(base).address(at(0, 0x10)), 0x10);
        assert_eq!(Encoding::PerCpu(base).address(at(0, -17)), base + 16);
        assert_eq!(Encoding::find(Some(base), &[(at(0, 7), base)]), None);
    }
}
