//! Shared lines: the tracer's text (`crates/guest/tracer/src/smp/sharing.rs`), and the form in
//! which results are stored.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use model::{Entered, Move, Movement, Sharing};

use crate::Symbols;
use crate::places::{self, FieldAt, Place};

/// First line of the stored form, with its version.
const HEAD: &str = "marvin-sharing 4";
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
    };
    match sharing.total() {
        lines if lines == regions => Ok(sharing),
        lines => Err(SharingError::Differs { lines, regions }),
    }
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
        moved upgrade true ffffffff81000100 308 cache:40:mm_struct 4\nentered ffffffff81000000 9 70 400\nend 0 0\n";

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
        marvin-sharing 4
        operations | 20
        load | true | up_read | jiffies, end | jiffies+0x8 | 2
        store | false | [user] | user 0x7f001040 | user 0x7f001040 | 1
        upgrade | true | open | mm_struct+0x40 | mm_struct+0x40 | 4
        entered | up_read | 9 | 70 | 400
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
