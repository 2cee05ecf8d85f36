//! Assigns the events of the tracer's cost model to functions.

use std::collections::BTreeMap;

use model::{CostEvent, CostEvents, Modelled, ModelledLine, Profile, Share};

use crate::Symbols;
use crate::profile::{NAMELESS, USER};

/// Returns the events in a line of the tracer's counts, if it has some.
pub(crate) fn event(word: &str) -> Option<CostEvent> {
    CostEvent::ALL
        .into_iter()
        .find(|event| event.name() == word)
}

/// Returns the cost model's results for a workload, from the same counts as its profile; `None` if
/// a line of them is invalid.
#[must_use]
pub fn modelled(counts: &[u8], symbols: &Symbols, profile: &Profile) -> Option<Modelled> {
    let text = String::from_utf8_lossy(counts);
    let mut happened: BTreeMap<(Share, String), CostEvents> = BTreeMap::new();
    for line in text.lines() {
        let (word, rest) = line.split_once(' ')?;
        let Some(event) = event(word) else { continue };
        let mut numbers = rest.split(' ');
        let address = u64::from_str_radix(numbers.next()?, 16).ok()?;
        let symbol = match address {
            0 => USER,
            address => symbols
                .symbol_at(address)
                .map_or(NAMELESS, |(symbol, _)| symbol),
        };
        let own = if address == 0 {
            Share::User
        } else {
            Share::Kernel
        };
        for share in [own, Share::Interrupt, Share::Other] {
            let count = numbers
                .next()?
                .parse::<u64>()
                .ok()
                .filter(|count| *count < 1 << 48)?;
            if count > 0 {
                happened.entry((share, symbol.to_owned())).or_default()[event as usize] += count;
            }
        }
    }
    let mut line = |share, symbol: &str, instructions| ModelledLine {
        share,
        symbol: symbol.to_owned(),
        instructions,
        events: happened
            .remove(&(share, symbol.to_owned()))
            .unwrap_or_default(),
    };
    let mut lines: Vec<_> = profile
        .lines
        .iter()
        .map(|counted| line(counted.share, &counted.symbol, counted.total()))
        .collect();
    // An instruction was fetched before the region began and executed within it, or the other way
    // round.
    let rest = happened.into_iter();
    lines.extend(rest.map(|((share, symbol), events)| ModelledLine {
        share,
        symbol,
        instructions: 0,
        events,
    }));
    Some(Modelled {
        operations: profile.operations,
        lines,
    })
}

#[cfg(test)]
mod tests {
    use super::modelled;
    use crate::{Symbols, profile};

    fn symbols() -> Symbols {
        Symbols::parse("T1000 clear_page\nT100 handle_mm_fault\n").unwrap()
    }

    #[test]
    fn events_go_to_functions_without_changing_profile() {
        let counts =
            b"region 0 10 20 0 0\nat 0 10 0 0\nat 1000 20 0 0\nl1i 1000 3 0 0\nl1i 1004 1 2 0\nbranch 0 5 0 0\n\
                       walk 1100 0 0 7\nend 0 0\n";
        let profile = profile(counts, &symbols(), 4).unwrap();
        assert_eq!(profile.total(), 30);
        let lines: Vec<_> = modelled(counts, &symbols(), &profile)
            .unwrap()
            .lines
            .into_iter()
            .map(|line| {
                format!(
                    "{} {} {} {:?}",
                    line.share.name(),
                    line.symbol,
                    line.instructions,
                    line.events
                )
            })
            .collect();
        assert_eq!(
            lines,
            [
                "user [user] 10 [0, 0, 0, 0, 0, 0, 0, 5]",
                "kernel clear_page 20 [4, 0, 0, 0, 0, 0, 0, 0]",
                "interrupt clear_page 0 [2, 0, 0, 0, 0, 0, 0, 0]",
                "other handle_mm_fault 0 [0, 0, 0, 0, 0, 0, 7, 0]",
            ]
        );
    }

    proptest::proptest! {
        #[test]
        fn garbage_never_panics(bytes: Vec<u8>, line in "(l1i|walk|branch) [0-9a-f ]{0,40}\n") {
            let profile = model::Profile::default();
            let _modelled = modelled(&bytes, &symbols(), &profile);
            let _modelled = modelled(line.as_bytes(), &symbols(), &profile);
        }
    }
}
