//! Builds profiles of functions from the tracer's instruction counts.

use std::collections::BTreeMap;

use model::{Profile, ProfileLine, Region, Share};

use crate::{Symbols, modelled};

/// The name of user code: it belongs to the agent or a program, not to the kernel.
pub(crate) const USER: &str = "[user]";
/// The name of kernel code without a symbol.
pub(crate) const NAMELESS: &str = "[no symbol]";

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// The tracer wrote no output, or not to the end.
    #[error("the tracer's counts are cut: QEMU ended before they were written")]
    Cut,
    /// A line is not in the tracer's format.
    #[error("line {0} of the tracer's counts makes no sense")]
    Malformed(usize),
    /// Regions that began and did not end, or exceeded the limit.
    #[error("{unclosed} regions were not closed and {left_out} were too many to be kept")]
    Regions {
        /// Regions that did not end.
        unclosed: u64,
        /// Regions beyond the limit.
        left_out: u64,
    },
    /// There is no region.
    #[error("no region was measured")]
    Nothing,
    /// The functions do not add up to the regions.
    #[error(
        "the functions have {lines} instructions, the regions {regions}: they must be the same"
    )]
    Sum {
        /// Sum of all functions.
        lines: u64,
        /// Sum of all regions.
        regions: u64,
    },
}

/// Returns the profile of a workload with this many operations in each region.
///
/// # Errors
/// If the counts are cut, garbled, or do not add up.
pub fn profile(counts: &[u8], symbols: &Symbols, operations: u64) -> Result<Profile, ProfileError> {
    profile_by(counts, symbols, operations, &|_| None)
}

/// Returns the profile with code under the names that `function` gives instead of the symbols',
/// such as that of the function into which it was inlined.
///
/// # Errors
/// If the counts are cut, garbled, or do not add up.
pub fn profile_by(
    counts: &[u8],
    symbols: &Symbols,
    operations: u64,
    function: &dyn Fn(u64) -> Option<String>,
) -> Result<Profile, ProfileError> {
    let text = String::from_utf8_lossy(counts);
    let mut profile = Profile::default();
    let mut lines: BTreeMap<(Share, String), ProfileLine> = BTreeMap::new();
    let mut end = None;
    for (number, line) in text.lines().enumerate() {
        let malformed = ProfileError::Malformed(number + 1);
        let (word, rest) = line.split_once(' ').ok_or(malformed.clone())?;
        if modelled::event(word).is_some() {
            continue;
        }
        let radix = if matches!(word, "at" | "repeated") {
            16
        } else {
            10
        };
        let (first, rest) = rest.split_once(' ').ok_or(malformed.clone())?;
        let first = u64::from_str_radix(first, radix).map_err(|_| malformed.clone())?;
        let numbers = rest
            .split(' ')
            .map(|n| n.parse::<u64>().ok().filter(|n| *n < 1 << 48));
        let numbers = numbers
            .collect::<Option<Vec<_>>>()
            .ok_or(malformed.clone())?;
        match (word, numbers.as_slice()) {
            ("region", &[user, kernel, interrupt, other]) => {
                profile.regions.push(Region {
                    user,
                    kernel,
                    interrupt,
                    other,
                });
            }
            ("at" | "repeated", &[process, interrupt, other]) => {
                let (symbol, is_first) = match first {
                    0 => (USER, false),
                    address => symbols.symbol_at(address).unwrap_or((NAMELESS, false)),
                };
                let inlined = if first == 0 { None } else { function(first) };
                // A function that begins with inlined code would lose its calls to it, so inlined
                // code has no calls.
                let is_first = is_first && inlined.is_none();
                let symbol = inlined.as_deref().unwrap_or(symbol);
                let own = if first == 0 {
                    Share::User
                } else {
                    Share::Kernel
                };
                for (share, count) in [
                    (own, process),
                    (Share::Interrupt, interrupt),
                    (Share::Other, other),
                ] {
                    add(
                        &mut lines,
                        share,
                        symbol,
                        count,
                        word == "repeated",
                        is_first,
                    );
                }
            }
            ("end", &[unclosed]) => end = Some((first, unclosed)),
            _ => return Err(malformed),
        }
    }
    match end {
        None => return Err(ProfileError::Cut),
        Some((0, 0)) => {}
        Some((left_out, unclosed)) => return Err(ProfileError::Regions { unclosed, left_out }),
    }
    if profile.regions.is_empty() {
        return Err(ProfileError::Nothing);
    }
    profile.operations = operations * profile.regions.len() as u64;
    profile.lines = lines.into_values().collect();
    let sum = profile.total();
    let regions = profile.regions.iter().map(Region::total).sum();
    if sum == regions {
        Ok(profile)
    } else {
        Err(ProfileError::Sum {
            lines: sum,
            regions,
        })
    }
}

fn add(
    lines: &mut BTreeMap<(Share, String), ProfileLine>,
    share: Share,
    symbol: &str,
    count: u64,
    repeated: bool,
    is_first: bool,
) {
    if count == 0 {
        return;
    }
    let line = lines
        .entry((share, symbol.to_owned()))
        .or_insert_with(|| ProfileLine {
            share,
            symbol: symbol.to_owned(),
            instructions: 0,
            repeated: 0,
            calls: 0,
        });
    *if repeated {
        &mut line.repeated
    } else {
        &mut line.instructions
    } += count;
    if is_first {
        line.calls += count;
    }
}

#[cfg(test)]
mod tests {
    use super::{ProfileError, profile, profile_by};
    use crate::Symbols;

    fn symbols() -> Symbols {
        Symbols::parse("T1000 clear_page\nT100 handle_mm_fault\n").unwrap()
    }

    #[test]
    fn counts_become_functions_that_add_up() {
        let counts = b"region 0 10 540 20 0\nat 0 10 0 0\nat 1000 4 0 0\nrepeated 1003 512 0 0\nat 1100 4 0 0\n\
                       at 1104 20 20 0\nend 0 0\n";
        let profile = profile(counts, &symbols(), 4).unwrap();
        insta::assert_snapshot!(crate::profile_to_text(&profile), @r"
        marvin-profile 1
        operations	4
        region	10	540	20	0
        user	10	0	0	[user]
        kernel	4	512	4	clear_page
        kernel	24	0	4	handle_mm_fault
        interrupt	20	0	0	handle_mm_fault
        ");
    }

    #[test]
    fn code_takes_the_given_name() {
        let counts = b"region 0 0 10 0 0\nat 1100 4 0 0\nat 1104 6 0 0\nend 0 0\n";
        let inlined = |address| (address == 0x1104).then(|| "pte_offset".to_owned());
        let profile = profile_by(counts, &symbols(), 1, &inlined).unwrap();
        let lines: Vec<_> = profile
            .lines
            .iter()
            .map(|l| (l.symbol.as_str(), l.instructions, l.calls))
            .collect();
        assert_eq!(lines, [("handle_mm_fault", 4, 4), ("pte_offset", 6, 0)]);
    }

    #[test]
    fn inconsistent_counts_are_refused() {
        let refused = |counts: &str| profile(counts.as_bytes(), &symbols(), 1).unwrap_err();
        assert_eq!(
            refused("region 0 1 0 0 0\nat 0 2 0 0\nend 0 0\n"),
            ProfileError::Sum {
                lines: 2,
                regions: 1
            }
        );
        assert_eq!(refused("region 0 1 0 0 0\nat 0 1 0 0\n"), ProfileError::Cut);
        assert_eq!(
            refused("end 0 1\n"),
            ProfileError::Regions {
                unclosed: 1,
                left_out: 0
            }
        );
        assert_eq!(refused("end 0 0\n"), ProfileError::Nothing);
        assert_eq!(refused("region 0 1 2\n"), ProfileError::Malformed(1));
    }

    proptest::proptest! {
        #[test]
        fn garbage_never_panics(bytes: Vec<u8>, line in "(at|region|end|repeated) [0-9a-f ]{0,40}\n") {
            let _profile = profile(&bytes, &symbols(), 1);
            let _profile = profile(line.as_bytes(), &symbols(), 1);
        }
    }
}
