//! Shared lines: the tracer's text (`crates/guest/tracer/src/smp/sharing.rs`), and the form in
//! which results are stored.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use model::{Entered, Held, LockKind, Move, Movement, Sharing};

use crate::Symbols;
use crate::places::{self, FieldAt, Place};

/// First line of the stored form, with its version.
const HEAD: &str = "marvin-sharing 5";
/// Of which locks there is one, and of which there may be many.
const GLOBAL: &str = "global";
const OBJECT: &str = "object";
/// What stands for user code.
const USER: &str = "[user]";

/// Why shared lines cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SharingError {
    /// A line is something else.
    #[error("line {0} of the shared lines makes no sense")]
    Malformed(usize),
    /// The tracer left something out, or a region has no end.
    #[error("the shared lines are not complete")]
    Incomplete,
    /// The lines do not add up to the iterations.
    #[error("the shared lines are {lines} transfers, the iterations {regions}")]
    Differs {
        /// Transfers of all lines.
        lines: u64,
        /// Transfers of all iterations.
        regions: u64,
    },
}

/// Reads the tracer's text, names functions and lines, and checks that they add up to the
/// iterations without the first, which comparisons leave out as well. An iteration has so many
/// operations; `field` knows the fields of structures.
///
/// # Errors
/// If the text is damaged or not complete.
pub fn sharing(
    text: &[u8],
    symbols: &Symbols,
    field: FieldAt<'_>,
    operations: u64,
) -> Result<Sharing, SharingError> {
    let text = String::from_utf8_lossy(text);
    let mut iterations = 0_u64;
    let mut regions = 0_u64;
    let mut is_complete = false;
    let mut moves: BTreeMap<(Movement, bool, String, Place), u64> = BTreeMap::new();
    let mut entered = Vec::new();
    let mut held: BTreeMap<HeldKey, [u64; 3]> = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        let malformed = SharingError::Malformed(number + 1);
        let fields: Vec<&str> = line.split(' ').collect();
        match fields.as_slice() {
            ["region", _, numbers @ .., _] => {
                iterations += 1;
                for number in numbers {
                    let number: u64 = number.parse().map_err(|_| malformed.clone())?;
                    regions = regions.saturating_add(if iterations > 1 { number } else { 0 });
                }
            }
            ["moved", word, is_false, site, number, place, transfers] => {
                let parsed = || {
                    let movement = Movement::ALL
                        .into_iter()
                        .find(|movement| movement.name() == *word)?;
                    let site = u64::from_str_radix(site, 16).ok()?;
                    let place =
                        places::name(place, u64::from_str_radix(number, 16).ok()?, symbols, field)?;
                    let key = (
                        movement,
                        *is_false == "true",
                        name_function(symbols, site),
                        place,
                    );
                    Some((key, transfers.parse::<u64>().ok()?))
                };
                // In the tracer's text the word says whether it is false sharing.
                let ((movement, is_true, function, place), transfers) =
                    parsed().ok_or(malformed)?;
                *moves
                    .entry((movement, !is_true, function, place))
                    .or_default() += transfers;
            }
            ["entered", address, times, instructions, ns] => {
                let parsed = || {
                    let function = name_function(symbols, u64::from_str_radix(address, 16).ok()?);
                    let [times, instructions, ns] =
                        [times, instructions, ns].map(|number| number.parse().ok());
                    Some(Entered {
                        function,
                        times: times?,
                        instructions: instructions?,
                        ns: ns?,
                    })
                };
                entered.push(parsed().ok_or(malformed)?);
            }
            ["held", kind, number, place, times, ns, processors] => {
                let (key, numbers) = read_held(
                    [*kind, *number, *place],
                    [*times, *ns, *processors],
                    symbols,
                    field,
                )
                .ok_or(malformed)?;
                add_held(held.entry(key).or_default(), numbers);
            }
            ["end", left_out, open] => is_complete = *left_out == "0" && *open == "0",
            _ => return Err(malformed),
        }
    }
    if !is_complete {
        return Err(SharingError::Incomplete);
    }
    let sharing = Sharing {
        operations: operations * iterations.saturating_sub(1),
        moves: moves
            .into_iter()
            .map(
                |((movement, is_false, function, Place { line, word }), transfers)| Move {
                    movement,
                    is_false,
                    function,
                    line,
                    word,
                    transfers,
                },
            )
            .collect(),
        entered,
        held: held.into_iter().map(held_of).collect(),
    };
    match sharing.total() {
        lines if lines == regions => Ok(sharing),
        lines => Err(SharingError::Differs { lines, regions }),
    }
}

/// What is counted together of locks.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct HeldKey {
    kind: LockKind,
    lock: String,
    is_global: bool,
    /// Whether several processors had it: for those of one no other waits.
    is_shared: bool,
}

/// How places of the kernel's variables begin in the tracer's text.
const SYMBOL: &str = "symbol:";

/// Reads a lock that was held, by its kind, number and place: times, nanoseconds, processors.
fn read_held(
    [kind, number, place]: [&str; 3],
    numbers: [&str; 3],
    symbols: &Symbols,
    field: FieldAt<'_>,
) -> Option<(HeldKey, [u64; 3])> {
    let kind = lock_kind(kind)?;
    let number = u64::from_str_radix(number, 16).ok()?;
    let lock = places::name(place, number, symbols, field)?.word;
    let [times, ns, processors] = numbers.map(|number| number.parse::<u64>().ok());
    let numbers = [times?, ns?, processors?];
    let key = HeldKey {
        kind,
        lock,
        is_global: place.starts_with(SYMBOL),
        is_shared: numbers[2] > 1,
    };
    Some((key, numbers))
}

fn held_of((key, [times, ns, processors]): (HeldKey, [u64; 3])) -> Held {
    Held {
        kind: key.kind,
        lock: key.lock,
        is_global: key.is_global,
        times,
        ns,
        processors: u32::try_from(processors).unwrap_or(u32::MAX),
    }
}

fn add_held(sums: &mut [u64; 3], [times, ns, processors]: [u64; 3]) {
    sums[0] = sums[0].saturating_add(times);
    sums[1] = sums[1].saturating_add(ns);
    sums[2] = sums[2].max(processors);
}

fn lock_kind(name: &str) -> Option<LockKind> {
    LockKind::ALL.into_iter().find(|kind| kind.name() == name)
}

fn name_function(symbols: &Symbols, address: u64) -> String {
    let found = (address != 0).then(|| symbols.symbol_at(address).map(|(name, _)| name.to_owned()));
    found.map_or_else(
        || USER.to_owned(),
        |name| name.unwrap_or_else(|| format!("{address:#x}")),
    )
}

/// Returns the stored form.
#[must_use]
pub fn sharing_to_text(sharing: &Sharing) -> String {
    let mut text = format!("{HEAD}\noperations\t{}\n", sharing.operations);
    for Move {
        movement,
        is_false,
        function,
        line,
        word,
        transfers,
    } in &sharing.moves
    {
        let is_false = if *is_false { "false" } else { "true" };
        writeln!(
            text,
            "{}\t{is_false}\t{function}\t{line}\t{word}\t{transfers}",
            movement.name()
        )
        .unwrap_or_default();
    }
    for Entered {
        function,
        times,
        instructions,
        ns,
    } in &sharing.entered
    {
        writeln!(text, "entered\t{function}\t{times}\t{instructions}\t{ns}").unwrap_or_default();
    }
    for Held {
        kind,
        lock,
        is_global,
        times,
        ns,
        processors,
    } in &sharing.held
    {
        let kind = kind.name();
        let place = if *is_global { GLOBAL } else { OBJECT };
        writeln!(
            text,
            "held\t{kind}\t{lock}\t{place}\t{times}\t{ns}\t{processors}"
        )
        .unwrap_or_default();
    }
    text
}

/// Reads the stored form; `None` if it is damaged or of another version.
#[must_use]
pub fn sharing_from_text(text: &str) -> Option<Sharing> {
    let mut lines = text.strip_prefix(HEAD)?.strip_prefix('\n')?.lines();
    let operations = lines.next()?.strip_prefix("operations\t")?.parse().ok()?;
    let mut sharing = Sharing {
        operations,
        ..Sharing::default()
    };
    for line in lines {
        let fields: Vec<&str> = line.split('\t').collect();
        match fields[..] {
            ["entered", function, times, instructions, ns] => sharing.entered.push(Entered {
                function: function.to_owned(),
                times: times.parse().ok()?,
                instructions: instructions.parse().ok()?,
                ns: ns.parse().ok()?,
            }),
            [
                "held",
                kind,
                lock,
                place @ (GLOBAL | OBJECT),
                times,
                ns,
                processors,
            ] => sharing.held.push(Held {
                kind: lock_kind(kind)?,
                lock: lock.to_owned(),
                is_global: place == GLOBAL,
                times: times.parse().ok()?,
                ns: ns.parse().ok()?,
                processors: processors.parse().ok()?,
            }),
            [
                movement,
                kind @ ("true" | "false"),
                function,
                line,
                word,
                transfers,
            ] => sharing.moves.push(Move {
                movement: Movement::ALL
                    .into_iter()
                    .find(|known| known.name() == movement)?,
                is_false: kind == "false",
                function: function.to_owned(),
                line: line.to_owned(),
                word: word.to_owned(),
                transfers: transfers.parse().ok()?,
            }),
            _ => return None,
        }
    }
    Some(sharing)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{SharingError, sharing, sharing_from_text, sharing_to_text};
    use crate::Symbols;

    const TEXT: &str = "region 1 90 90 90 9\nregion 1 2 1 0 1\nregion 1 0 0 4 0\n\
        moved load true ffffffff81000010 209 symbol:ffffffff82000048 1\n\
        moved load true ffffffff81000018 209 symbol:ffffffff82000048 1\nmoved store false 0 52 user:7f001040 1\n\
        moved upgrade true ffffffff81000100 308 cache:40:mm_struct 4\nentered ffffffff81000000 9 70 400\n\
        held spin 208 symbol:ffffffff82000040 3 90 2\nheld spin 309 cache:48:mm_struct 2 60 1\n\
        held spin 409 cache:48:mm_struct 1 5 2\nend 0 0\n";

    fn symbols() -> Symbols {
        Symbols::parse("Tffffffff81000000 up_read\nT100 open\nDffff00 init_task\nD40 jiffies\nR30 end\nR90 last\n")
            .unwrap()
    }

    #[test]
    fn functions_and_lines_get_their_names() {
        let sharing = sharing(TEXT.as_bytes(), &symbols(), &|_, _| None, 10).unwrap();
        assert_eq!((sharing.operations, sharing.total()), (20, 7));
        let text = sharing_to_text(&sharing);
        insta::assert_snapshot!(text.replace('\t', " | "), @"
        marvin-sharing 5
        operations | 20
        load | true | up_read | jiffies, end | jiffies+0x8 | 2
        store | false | [user] | user 0x7f001040 | user 0x7f001040 | 1
        upgrade | true | open | mm_struct+0x40 | mm_struct+0x40 | 4
        entered | up_read | 9 | 70 | 400
        held | spin | jiffies | global | 3 | 90 | 2
        held | spin | mm_struct+0x48 | object | 2 | 60 | 1
        held | spin | mm_struct+0x48 | object | 1 | 5 | 2
        ");
        assert_eq!(sharing_from_text(&text), Some(sharing));
    }

    #[test]
    fn what_does_not_add_up_is_refused() {
        let refused = |from: &str, to: &str| {
            sharing(
                TEXT.replace(from, to).as_bytes(),
                &symbols(),
                &|_, _| None,
                1,
            )
            .unwrap_err()
        };
        assert_eq!(
            refused("mm_struct 4", "mm_struct 5"),
            SharingError::Differs {
                lines: 8,
                regions: 7
            }
        );
        assert_eq!(refused("end 0 0\n", ""), SharingError::Incomplete);
        assert_eq!(refused("end 0 0", "end 3 0"), SharingError::Incomplete);
        assert_eq!(
            refused("moved store", "moved stone"),
            SharingError::Malformed(6)
        );
    }

    proptest! {
        #[test]
        fn no_text_is_a_panic(text in "[a-z0-9 \n]{0,200}") {
            drop(sharing(text.as_bytes(), &symbols(), &|_, _| None, 1));
            drop(sharing_from_text(&text));
        }
    }
}
