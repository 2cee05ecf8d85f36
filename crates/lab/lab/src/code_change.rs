//! Which functions of two kernels have other machine code.
//!
//! A function that only lies elsewhere is the same: its bytes differ where it names addresses, and
//! there both kernels name the same function or data.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use ingest::Symbols;
use kernel::CodeBytes;
use model::Build;
use profile::ledger::{CodeChange, names};

use crate::Lab;

/// An address this far behind a symbol is of something that has none (bytes).
const FAR: u64 = 64 << 10;
/// Bytes of an address in an instruction.
const ADDRESS: usize = 4;

/// A kernel's functions, and their bytes.
#[derive(Debug)]
struct Side {
    code: CodeBytes,
    symbols: Symbols,
}

impl Side {
    /// Returns a function's parts by their whole names: where they begin and end.
    fn parts(&self) -> BTreeMap<String, BTreeMap<&str, (u64, u64)>> {
        let mut found: BTreeMap<String, BTreeMap<&str, (u64, u64)>> = BTreeMap::new();
        for (start, end, name) in self.symbols.functions() {
            let parts = found.entry(names::key(name)).or_default();
            parts.insert(name, (start, end));
        }
        found
    }
}

impl Lab {
    /// Returns for functions, by their names in ledgers, whether their code differs between two
    /// kernels; nothing of those that neither has, such as a module's.
    #[must_use]
    pub fn code_changes(
        &self,
        before: &Build,
        after: &Build,
        functions: &BTreeSet<&str>,
    ) -> BTreeMap<String, CodeChange> {
        let side = |build: &Build| {
            Some(Side {
                code: CodeBytes::open(&build.boot_file().path)?,
                symbols: self.stored_symbols(build)?,
            })
        };
        let (Some(old), Some(new)) = (side(before), side(after)) else {
            return BTreeMap::new();
        };
        let [of_old, of_new] = [old.parts(), new.parts()];
        let mut found = BTreeMap::new();
        for function in functions {
            let change = match (of_old.get(*function), of_new.get(*function)) {
                (None, None) => continue,
                (Some(one), Some(other)) if one.keys().eq(other.keys()) => {
                    let pairs = one.values().zip(other.values());
                    let changes = pairs.map(|(one, other)| compare([&old, &new], [*one, *other]));
                    changes.fold(CodeChange::Same, worst)
                }
                _ => CodeChange::Differs,
            };
            found.insert((*function).to_owned(), change);
        }
        found
    }
}

fn worst(one: CodeChange, other: CodeChange) -> CodeChange {
    match (one, other) {
        (CodeChange::Same, other) => other,
        (CodeChange::Differs, _) | (_, CodeChange::Differs) => CodeChange::Differs,
        _ => CodeChange::Unknown,
    }
}

/// Compares a function of two kernels.
fn compare(sides: [&Side; 2], extents: [(u64, u64); 2]) -> CodeChange {
    let [(old_at, _), (new_at, _)] = extents;
    let bytes = |side: usize| sides[side].code.between(extents[side].0, extents[side].1);
    let (Some(old), Some(new)) = (bytes(0), bytes(1)) else {
        return CodeChange::Unknown;
    };
    let layouts = sides.map(|side| Layout {
        symbols: &side.symbols,
        loaded: side.code.loaded(),
    });
    compare_bytes([(old, old_at), (new, new_at)], layouts)
}

/// What is where in a kernel.
#[derive(Debug, Clone, Copy)]
struct Layout<'a> {
    symbols: &'a Symbols,
    loaded: &'a [Range<u64>],
}

impl Layout<'_> {
    fn is_loaded(&self, address: u64) -> bool {
        self.loaded.iter().any(|range| range.contains(&address))
    }
}

/// Compares the bytes of a function at its addresses in two kernels.
fn compare_bytes(functions: [(&[u8], u64); 2], layouts: [Layout<'_>; 2]) -> CodeChange {
    let [(old, old_at), (new, new_at)] = functions;
    let both = old.len().min(new.len());
    if !is_padding(&old[both..]) || !is_padding(&new[both..]) {
        return CodeChange::Differs;
    }
    let mut at = 0;
    // An address begins behind the last one.
    let mut from = 0;
    while at < both {
        if old[at] == new[at] {
            at += 1;
            continue;
        }
        let starts = from.max((at + 1).saturating_sub(ADDRESS))..=at;
        let found = starts
            .filter(|start| start + ADDRESS <= both)
            .find(|start| {
                let named = |bytes: &[u8], base: u64| addresses(bytes, *start, base);
                let pairs = named(old, old_at).into_iter().zip(named(new, new_at));
                pairs
                    .into_iter()
                    .any(|(one, other)| is_same_place(layouts, one, other))
            });
        let Some(start) = found else {
            return CodeChange::Differs;
        };
        at = start + ADDRESS;
        from = at;
    }
    CodeChange::Same
}

/// Returns the addresses that four bytes may name: relative to what is behind them, and as such.
fn addresses(bytes: &[u8], start: usize, base: u64) -> [u64; 2] {
    let mut number = [0; ADDRESS];
    number.copy_from_slice(&bytes[start..start + ADDRESS]);
    let signed = i64::from(i32::from_le_bytes(number));
    let behind = base.wrapping_add((start + ADDRESS) as u64);
    [behind.wrapping_add_signed(signed), signed.cast_unsigned()]
}

/// Returns whether two addresses in images are the same function or data.
fn is_same_place([old, new]: [Layout<'_>; 2], one: u64, other: u64) -> bool {
    if !old.is_loaded(one) || !new.is_loaded(other) {
        return false;
    }
    let places = [old.symbols.place_of(one), new.symbols.place_of(other)];
    let near = places.map(|place| place.filter(|place| place.distance < FAR));
    match near {
        [Some(one), Some(other)] if one == other => true,
        // Texts have no symbols, and lie in another order.
        _ => near.iter().flatten().all(|place| !place.is_function),
    }
}

/// Returns whether bytes are what compilers and linkers fill gaps with: `nop` of any length (Intel
/// SDM, NOP) and `int3`.
fn is_padding(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    loop {
        while let [0x66 | 0x2e, behind @ ..] = rest {
            rest = behind;
        }
        rest = match rest {
            [] => return true,
            [0x90 | 0xcc, behind @ ..]
            | [0x0f, 0x1f, 0x00, behind @ ..]
            | [0x0f, 0x1f, 0x40, _, behind @ ..]
            | [0x0f, 0x1f, 0x44, _, _, behind @ ..]
            | [0x0f, 0x1f, 0x80, _, _, _, _, behind @ ..]
            | [0x0f, 0x1f, 0x84, _, _, _, _, _, behind @ ..] => behind,
            _ => return false,
        };
    }
}

#[cfg(test)]
mod tests {
    use ingest::Symbols;
    use profile::ledger::CodeChange;

    use super::{Layout, compare_bytes};

    const OLD: &str = "Tffffffff81000000 first\nT100 second\nT100 third\nDffffffff data\n";
    const NEW: &str = "Tffffffff81000000 first\nT140 second\nT100 third\nDffffffff data\n";

    /// A call of a function from the beginning of another one, behind a constant.
    fn call(constant: u8, from: u64, to: u64) -> Vec<u8> {
        let distance = u32::try_from(to.wrapping_sub(from + 7) & 0xffff_ffff).unwrap();
        let mut bytes = vec![0xb0, constant, 0xe8];
        bytes.extend(distance.to_le_bytes());
        bytes.push(0xc3);
        bytes
    }

    #[test]
    fn moved_functions_are_the_same() {
        let [old, new] = [OLD, NEW].map(|text| Symbols::parse(text).unwrap());
        let first = 0xffff_ffff_8100_0000;
        let before = call(1, first, first + 0x100);
        let loaded = vec![first..first + 0x800, first + 0x800..first + 0x1000];
        let layouts = [&old, &new].map(|symbols| Layout {
            symbols,
            loaded: &loaded,
        });
        let change = |bytes: &[u8]| compare_bytes([(&before, first), (bytes, first)], layouts);
        assert_eq!(change(&call(1, first, first + 0x140)), CodeChange::Same);
        assert_eq!(change(&call(2, first, first + 0x140)), CodeChange::Differs);
        // It calls `third`.
        assert_eq!(change(&call(1, first, first + 0x240)), CodeChange::Differs);
        let padded = [
            &call(1, first, first + 0x140)[..],
            &[0x0f, 0x1f, 0x40, 0, 0x90, 0xcc],
        ];
        assert_eq!(change(&padded.concat()), CodeChange::Same);
        let longer = [&call(1, first, first + 0x140)[..], &[0x48, 0x90]];
        assert_eq!(change(&longer.concat()), CodeChange::Differs);
    }
}
