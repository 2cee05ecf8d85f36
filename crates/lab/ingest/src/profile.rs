//! Builds profiles of functions from the tracer's instruction counts.

use std::collections::BTreeMap;

use model::{Costly, CostlyCounts, Profile, ProfileLine, Region, Share};

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
    /// Functions and regions have different numbers of a kind of costly instruction.
    #[error("the functions and the regions have different numbers of costly instructions: {0}")]
    Costly(&'static str),
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
        let (numbers, kind) = numbers_and_kind(rest).ok_or(malformed.clone())?;
        match (word, numbers.as_slice()) {
            ("region", [user, kernel, interrupt, other, costly @ ..]) => {
                profile.regions.push(Region {
                    user: *user,
                    kernel: *kernel,
                    interrupt: *interrupt,
                    other: *other,
                    costly: match costly {
                        [] => CostlyCounts::default(),
                        all => all.try_into().map_err(|_| malformed)?,
                    },
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
                    let counted = Counted {
                        count,
                        is_repeated: word == "repeated",
                        is_first,
                        kind,
                    };
                    add(&mut lines, share, symbol, counted);
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
    if sum != regions {
        return Err(ProfileError::Sum {
            lines: sum,
            regions,
        });
    }
    match differing_kind(&profile) {
        None => Ok(profile),
        Some(kind) => Err(ProfileError::Costly(kind.name())),
    }
}

/// Returns a kind of costly instruction of which lines and regions have different numbers. Lines
/// have its word and regions its place, so that the tracer's order is checked against ours.
fn differing_kind(profile: &Profile) -> Option<Costly> {
    let own = profile
        .lines
        .iter()
        .filter(|line| matches!(line.share, Share::Kernel | Share::User));
    let mut lines = CostlyCounts::default();
    for line in own {
        for (sum, count) in lines.iter_mut().zip(line.costly) {
            *sum += count;
        }
    }
    let mut regions = CostlyCounts::default();
    for region in &profile.regions {
        for (sum, count) in regions.iter_mut().zip(region.costly) {
            *sum += count;
        }
    }
    Costly::ALL
        .into_iter()
        .find(|kind| lines[*kind as usize] != regions[*kind as usize])
}

/// Returns the numbers of a line, and the kind of instruction that may follow them.
fn numbers_and_kind(rest: &str) -> Option<(Vec<u64>, Option<Costly>)> {
    let mut words: Vec<&str> = rest.split(' ').collect();
    let last = *words.last()?;
    let kind = Costly::ALL.into_iter().find(|kind| kind.name() == last);
    if kind.is_some() {
        words.pop();
    }
    let numbers = words
        .into_iter()
        .map(|word| word.parse().ok().filter(|number| *number < 1 << 48))
        .collect::<Option<Vec<u64>>>()?;
    Some((numbers, kind))
}

/// Executions of one instruction.
#[derive(Clone, Copy)]
struct Counted {
    count: u64,
    is_repeated: bool,
    is_first: bool,
    kind: Option<Costly>,
}

fn add(
    lines: &mut BTreeMap<(Share, String), ProfileLine>,
    share: Share,
    symbol: &str,
    counted: Counted,
) {
    let Counted {
        count,
        is_repeated,
        is_first,
        kind,
    } = counted;
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
            costly: CostlyCounts::default(),
        });
    if let Some(kind) = kind {
        line.costly[kind as usize] += count;
    }
    *if is_repeated {
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
    use model::{Costly, CostlyCounts};

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
        marvin-profile 2
        operations	4
        region	10	540	20	0	-
        user	10	0	0	-	[user]
        kernel	4	512	4	-	clear_page
        kernel	24	0	4	-	handle_mm_fault
        interrupt	20	0	0	-	handle_mm_fault
        ");
    }

    #[test]
    fn costly_instructions_are_counted_by_region_and_function() {
        let mut regions = CostlyCounts::default();
        regions[Costly::Locked as usize] = 5;
        regions[Costly::Clock as usize] = 3;
        regions[Costly::Words as usize] = 2;
        let costly = regions.map(|count| format!(" {count}")).concat();
        let counts = format!(
            "region 0 0 10 0 0{costly}\nat 1100 4 0 0 locked\nat 1104 3 0 0 clock\nat 1108 1 0 0 locked\n\
             repeated 110c 2 0 0 words\nend 0 0\n"
        );
        let profile = profile(counts.as_bytes(), &symbols(), 1).unwrap();
        assert_eq!(profile.regions[0].costly, regions);
        let text = crate::profile_to_text(&profile);
        let line = "kernel\t8\t2\t4\tlocked=5,clock=3,words=2\thandle_mm_fault\n";
        assert!(text.ends_with(line), "{text}");
        assert_eq!(crate::profile_from_text(&text), Some(profile));
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
        assert_eq!(
            refused("region 0 0 1 0 0\nat 1100 1 0 0 clock\nend 0 0\n"),
            ProfileError::Costly("clock")
        );
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
