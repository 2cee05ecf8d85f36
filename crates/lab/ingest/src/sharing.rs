//! Shared lines: the tracer's text (`crates/guest/tracer/src/smp/sharing.rs`), and the form in
//! which results are stored.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use model::{Entered, Held, HeldWord, LockKind, Move, Movement, Sharing, Within};

use crate::Symbols;
use crate::places::{self, FieldAt, Place};

/// First line of the stored form, with its version.
const HEAD: &str = "marvin-sharing 6";
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
    let mut held: BTreeMap<HeldKey, Vec<HeldWord>> = BTreeMap::new();
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
                let counts = [*times, *instructions, *ns];
                entered.push(read_entered(address, counts, symbols).ok_or(malformed)?);
            }
            [
                "held",
                kind,
                number,
                place,
                times,
                ns,
                processors,
                passed,
                takers,
            ] => {
                let (key, word) = read_held(
                    [*kind, *number, *place, *takers],
                    [*times, *ns, *processors, *passed],
                    symbols,
                    field,
                )
                .ok_or(malformed)?;
                held.entry(key).or_default().push(word);
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
        held: held
            .into_iter()
            .map(|(key, words)| held_of(key, words))
            .collect(),
    };
    match sharing.total() {
        lines if lines == regions => Ok(sharing),
        lines => Err(SharingError::Differs { lines, regions }),
    }
}

/// Reads how often a function was entered, with instructions and nanoseconds.
fn read_entered(address: &str, counts: [&str; 3], symbols: &Symbols) -> Option<Entered> {
    let [times, instructions, ns] = counts.map(|number| number.parse().ok());
    Some(Entered {
        function: name_function(symbols, u64::from_str_radix(address, 16).ok()?),
        times: times?,
        instructions: instructions?,
        ns: ns?,
    })
}

/// What is counted together of locks.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct HeldKey {
    kind: LockKind,
    lock: String,
    within: Within,
    /// Whether several processors had it: for those of one no other waits.
    is_shared: bool,
}

/// Returns what a lock is in, by its place in the tracer's text.
fn within(place: &str) -> Within {
    match place.split_once(':') {
        Some(("symbol", _)) => Within::Kernel,
        Some(("cpu", _)) => Within::Processor,
        _ => Within::Object,
    }
}

/// Reads a lock that was held, by its kind, number, place and takers: times, nanoseconds,
/// processors, and how often it went to another one.
fn read_held(
    [kind, number, place, takers]: [&str; 4],
    numbers: [&str; 4],
    symbols: &Symbols,
    field: FieldAt<'_>,
) -> Option<(HeldKey, HeldWord)> {
    let kind = lock_kind(kind)?;
    let number = u64::from_str_radix(number, 16).ok()?;
    let named = places::name(place, number, symbols, field)?;
    let [times, ns, processors, passed] = numbers.map(|number| number.parse::<u64>().ok());
    let word = HeldWord {
        times: times?,
        ns: ns?,
        processors: u32::try_from(processors?).ok()?,
        passed: passed?,
    };
    let taker = leading_taker(takers, symbols)?;
    let is_shared = word.processors > 1;
    let lock = match taker {
        Some(function) if is_shared && !places::is_named(place, &named) => {
            model::taken_in(&function)
        }
        _ => named.word,
    };
    let key = HeldKey {
        kind,
        lock,
        within: within(place),
        is_shared,
    };
    Some((key, word))
}

/// Reads the instructions that took a lock, and returns the function that did most often, if one is
/// known. Of those with nearly as many takes it is the first by name: two that take a lock in turn
/// do so as often, and its name is to be one for all words, seeds and kernels.
fn leading_taker(takers: &str, symbols: &Symbols) -> Option<Option<String>> {
    let mut functions: BTreeMap<String, u64> = BTreeMap::new();
    for taker in takers.split(',').filter(|taker| !taker.is_empty()) {
        let (address, times) = taker.split_once(':')?;
        let address = u64::from_str_radix(address, 16).ok()?;
        let times: u64 = times.parse().ok()?;
        if address != 0 {
            let sum = functions
                .entry(name_function(symbols, address))
                .or_default();
            *sum = sum.saturating_add(times);
        }
    }
    let most = functions.values().copied().max().unwrap_or(0);
    let mut leading = functions
        .into_iter()
        .filter(|(_, times)| times.saturating_mul(10) >= most.saturating_mul(9));
    Some(leading.next().map(|(function, _)| function))
}

fn held_of(key: HeldKey, words: Vec<HeldWord>) -> Held {
    let sum = |value: fn(&HeldWord) -> u64| {
        words
            .iter()
            .fold(0, |sum: u64, word| sum.saturating_add(value(word)))
    };
    Held {
        kind: key.kind,
        lock: key.lock,
        within: key.within,
        times: sum(|word| word.times),
        ns: sum(|word| word.ns),
        processors: words.iter().map(|word| word.processors).max().unwrap_or(0),
        longest: words.into_iter().max().unwrap_or_default(),
    }
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
        within,
        times,
        ns,
        processors,
        longest,
    } in &sharing.held
    {
        let kind = kind.name();
        let place = within.name();
        writeln!(
            text,
            "held\t{kind}\t{lock}\t{place}\t{times}\t{ns}\t{processors}\t{}\t{}\t{}\t{}",
            longest.ns, longest.times, longest.processors, longest.passed
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
                place,
                times,
                ns,
                processors,
                ref longest @ ..,
            ] => sharing.held.push(Held {
                kind: lock_kind(kind)?,
                lock: lock.to_owned(),
                within: Within::ALL
                    .into_iter()
                    .find(|known| known.name() == place)?,
                times: times.parse().ok()?,
                ns: ns.parse().ok()?,
                processors: processors.parse().ok()?,
                longest: read_word(longest)?,
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

fn read_word(fields: &[&str]) -> Option<HeldWord> {
    let [ns, times, processors, passed] = fields else {
        return None;
    };
    Some(HeldWord {
        ns: ns.parse().ok()?,
        times: times.parse().ok()?,
        processors: processors.parse().ok()?,
        passed: passed.parse().ok()?,
    })
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
        held spin 208 symbol:ffffffff82000040 3 90 2 1 ffffffff81000004:90\n\
        held spin 309 cache:48:mm_struct 2 60 1 0 0:60\n\
        held spin 409 cache:48:mm_struct 1 5 2 1 ffffffff81000104:2,ffffffff81000004:1,ffffffff81000108:1\n\
        held spin 509 other 4 9 2 3 ffffffff81000004:9\nend 0 0\n";

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
        marvin-sharing 6
        operations | 20
        load | true | up_read | jiffies, end | jiffies+0x8 | 2
        store | false | [user] | user 0x7f001040 | user 0x7f001040 | 1
        upgrade | true | open | mm_struct+0x40 | mm_struct+0x40 | 4
        entered | up_read | 9 | 70 | 400
        held | spin | jiffies | global | 3 | 90 | 2 | 90 | 3 | 2 | 1
        held | spin | mm_struct+0x48 | object | 2 | 60 | 1 | 60 | 2 | 1 | 0
        held | spin | taken in open | object | 1 | 5 | 2 | 5 | 1 | 2 | 1
        held | spin | taken in up_read | object | 4 | 9 | 2 | 9 | 4 | 2 | 3
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
