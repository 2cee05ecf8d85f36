//! The numbers that a program prints of its own accord: `NAME: 123 ns`, `12.5 GB/sec`, `time: 42`.
//! For benchmarks that have no manifest: each number with a unit is a row, named by its line.
//!
//! Pure, and the same for the same text: two kernels print the same lines and get the same rows.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use model::Direction;
use regex_lite::Regex;

/// Most numbers of one program.
pub const PRINTED_MAX: usize = 128;
/// Longest name of a row, behind that of its workload.
const NAME_MAX: usize = 26;
/// Digits of a hash that tell a name that is cut from others.
const HASH_DIGITS: usize = 6;
/// Longest tag of a heading in front of a name.
const TAG_MAX: usize = 6;
/// Most lines that are looked at.
const LINES_MAX: usize = 20_000;
/// Longest line that is looked at (bytes).
const LINE_MAX: usize = 4096;
/// The unit of a number that has none.
const UNITLESS: &str = "as printed";

/// A number, perhaps in brackets with its unit.
static NUMBER: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(^|[^A-Za-z0-9_.\-])(\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)").ok()
});
/// A unit behind a number: time, work for each operation, or a rate.
static UNIT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)^ ?[(\[]?((?:ns|nsecs?|nanosec(?:ond)?s?|us|usecs?|microsec(?:ond)?s?|ms|msecs?|millisec(?:ond)?s?|secs?|seconds?|s|cycles?|clocks)(?:/[a-z]+| per [a-z]+)?|(?:[kmgt]i?)?(?:b|bytes|bits?|ops?|operations|iters?|iterations|events|calls|packets|pkts|msgs|messages|req|requests|transactions|loops|records|lookups|forks|execs)(?:/s|/secs?|/seconds?| per sec(?:ond)?s?)|iops|pps|dmips)(?:$|[^A-Za-z0-9_/])",
    )
    .ok()
});
/// The end of a text in front of a number that says what it is.
static ANNOUNCED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)(?:\((ns|nsec|us|usec|ms|msec|s|sec|cycles)\)|(per sec(?:ond)?|/s|/sec)|(?:time|latency|duration|elapsed))[ \t]*[:=][ \t]*$").ok()
});
/// What the kernel and KUnit put in front of a message.
static PREFIX: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^(?:<\d+>)?(?:\[ *\d+\.\d+\](?:\[[^\]]*\])? ?)?( *)(?:# ?)?").ok()
});

/// A number that a program printed.
#[derive(Debug, Clone, PartialEq)]
pub struct PrintedValue {
    /// Its name: letters, digits, `_`, `.`, `=` and `-`.
    pub name: String,
    /// Its unit, as printed.
    pub unit: String,
    pub direction: Direction,
    /// The value; the mean of those that have the same name.
    pub value: f64,
}

/// A number with what stands before it.
struct Mention {
    heading: String,
    label: String,
    unit: String,
    value: f64,
}

/// Returns the numbers with units in a text, in their order. `program` is left out of the names.
#[must_use]
pub fn printed_values(text: &str, program: &str) -> Vec<PrintedValue> {
    let mut mentions = Vec::new();
    let mut heading = String::new();
    for line in text.lines().take(LINES_MAX) {
        if line.len() > LINE_MAX {
            continue;
        }
        let (line, is_indented) = without_prefix(line);
        let before = mentions.len();
        read_line(line, &heading, &mut mentions);
        let is_heading = before == mentions.len() && !is_indented && !line.trim().is_empty();
        if is_heading {
            heading = line.trim().to_owned();
        }
    }
    name_mentions(&mentions, program)
}

fn without_prefix(line: &str) -> (&str, bool) {
    let found = PREFIX.as_ref().and_then(|prefix| prefix.captures(line));
    let Some(found) = found else {
        return (line, false);
    };
    let end = found.get(0).map_or(0, |all| all.end());
    let spaces = found.get(1).map_or(0, |spaces| spaces.len());
    let rest = &line[end..];
    (rest, spaces > 0 || rest.starts_with("->"))
}

/// Adds the numbers of a line.
fn read_line(line: &str, heading: &str, mentions: &mut Vec<Mention>) {
    let (Some(number), Some(unit), Some(announced)) =
        (NUMBER.as_ref(), UNIT.as_ref(), ANNOUNCED.as_ref())
    else {
        return;
    };
    // What stands before the first number up to its last colon stands before the others, too.
    let mut head: Option<&str> = None;
    let mut from = 0;
    for found in number.captures_iter(line) {
        let Some(digits) = found.get(2) else { continue };
        let behind = &line[digits.end()..];
        let before = &line[from..digits.start()];
        let (unit, end) = if let Some(unit) = unit.captures(behind).and_then(|of| of.get(1)) {
            (unit.as_str().to_owned(), digits.end() + unit.end())
        } else if let Some(said) = announced.captures(before) {
            let named = said.get(1).or(said.get(2));
            let unit = named.map_or(UNITLESS, |unit| unit.as_str());
            (unit.to_owned(), digits.end())
        } else {
            continue;
        };
        let Ok(value) = digits.as_str().replace(',', "").parse::<f64>() else {
            continue;
        };
        let label = match head {
            None => before.to_owned(),
            Some(head) if before.chars().any(char::is_alphabetic) => format!("{head} {before}"),
            Some(head) => format!("{head} {unit}"),
        };
        if head.is_none() {
            let stem = before.trim_end_matches([' ', '\t', ':', '=', '(', '[']);
            head = Some(stem.rfind(": ").map_or("", |colon| &stem[..colon]));
        }
        mentions.push(Mention {
            heading: heading.to_owned(),
            label: without_addresses(&label),
            unit,
            value,
        });
        from = end;
    }
}

/// Returns a text without its addresses: they differ from run to run, and a row's name must not.
fn without_addresses(text: &str) -> String {
    let is_address = |word: &&str| {
        let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        word.strip_prefix("0x").is_some_and(|digits| {
            digits.len() >= 6 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
        })
    };
    let words = text.split(' ').filter(|word| !is_address(word));
    words.collect::<Vec<_>>().join(" ")
}

/// What numbers have in common that only their headings tell apart.
type Likeness = (String, String);

/// Returns what stands beside a number itself: its words, or without any its unit.
fn likeness(mention: &Mention, program: &str) -> Likeness {
    let words = slug(&mention.label, program);
    let unit = if words.is_empty() {
        slug(&mention.unit, "")
    } else {
        String::new()
    };
    (words, unit)
}

/// Names the numbers, and joins those of one name.
fn name_mentions(mentions: &[Mention], program: &str) -> Vec<PrintedValue> {
    let mut headings: BTreeMap<Likeness, Vec<&str>> = BTreeMap::new();
    for mention in mentions {
        let of = headings.entry(likeness(mention, program)).or_default();
        if !of.contains(&mention.heading.as_str()) {
            of.push(&mention.heading);
        }
    }
    let mut found: Vec<(PrintedValue, usize)> = Vec::new();
    for mention in mentions {
        let alike = likeness(mention, program);
        let of = headings.get(&alike).map_or(&[][..], Vec::as_slice);
        let own = if alike.0.is_empty() { alike.1 } else { alike.0 };
        let name = shorten(&tag(&mention.heading, of), &own);
        let is_full = found.len() >= PRINTED_MAX;
        match found.iter_mut().find(|(known, _)| known.name == name) {
            Some((known, count)) if known.unit == mention.unit => {
                *count += 1;
                known.value += (mention.value - known.value) / *count as f64;
            }
            // The same words with another unit are another number.
            Some(_) => {}
            None if !is_full => {
                let value = PrintedValue {
                    name,
                    direction: direction_of(&mention.unit),
                    unit: mention.unit.clone(),
                    value: mention.value,
                };
                found.push((value, 1));
            }
            None => {}
        }
    }
    found.into_iter().map(|(value, _)| value).collect()
}

/// Returns the words of a heading without those that all headings begin and end with; empty for the
/// only one.
fn difference(heading: &str, all: &[&str]) -> String {
    if all.len() < 2 {
        return String::new();
    }
    let all: Vec<Vec<&str>> = all
        .iter()
        .map(|heading| heading.split_whitespace().collect())
        .collect();
    let words: Vec<&str> = heading.split_whitespace().collect();
    let is_common = |at: usize| all.iter().all(|other| other.get(at) == words.get(at));
    let first = (0..words.len())
        .find(|at| !is_common(*at))
        .unwrap_or(words.len());
    let is_common_end = |back: usize| {
        all.iter().all(|other| {
            let at = other.len().checked_sub(back);
            at.and_then(|at| other.get(at)) == words.get(words.len() - back)
        })
    };
    let common_end = (1..=words.len() - first)
        .take_while(|back| is_common_end(*back))
        .count();
    words[first..words.len() - common_end].join(" ")
}

/// Returns which way a unit is better: more of a rate, less of all else.
fn direction_of(unit: &str) -> Direction {
    let unit = unit.to_ascii_lowercase();
    let is_time = [
        "ns", "us", "ms", "sec", "nano", "micro", "milli", "cycle", "clock",
    ]
    .iter()
    .any(|time| unit.starts_with(time));
    let is_rate = !is_time
        && (unit.contains("/s")
            || unit.contains("per sec")
            || ["iops", "pps", "dmips"].contains(&unit.as_str()));
    if is_rate {
        Direction::HigherIsBetter
    } else {
        Direction::LowerIsBetter
    }
}

/// Returns the letters and digits of a text, joined by `-`, without the program's name in front.
fn slug(text: &str, program: &str) -> String {
    let mut slug = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() || "_.=".contains(c) {
            slug.push(c);
        } else if !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let ends = ['-', '.', '=', '_'];
    let whole = slug.trim_matches(ends);
    let rest = whole
        .strip_prefix(program)
        .filter(|rest| !program.is_empty() && rest.starts_with('-'))
        .unwrap_or(whole);
    rest.trim_matches(ends).to_owned()
}

/// Returns a few letters of a heading that tell it from the others; empty for the only one.
fn tag(heading: &str, all: &[&str]) -> String {
    let cut = |heading: &str| -> String {
        let slug = slug(&difference(heading, all), "");
        let short: String = slug.chars().take(TAG_MAX).collect();
        short.trim_end_matches(['-', '.', '=', '_']).to_owned()
    };
    let own = cut(heading);
    let is_shared = all
        .iter()
        .any(|other| *other != heading && cut(other) == own);
    if is_shared && !own.is_empty() {
        return digits(heading);
    }
    own
}

/// Joins a name with the tag of its heading. A long one is cut, and digits of its hash tell it from
/// others with the same beginning.
fn shorten(tag: &str, own: &str) -> String {
    let dot = if tag.is_empty() { "" } else { "." };
    let whole = format!("{tag}{dot}{own}");
    if whole.len() <= NAME_MAX {
        return whole;
    }
    let left = NAME_MAX - HASH_DIGITS - 1;
    let cut = whole[..left].trim_end_matches(['-', '.', '=', '_']);
    format!("{cut}-{}", digits(&whole))
}

/// Returns digits of a hash.
pub(crate) fn digits(text: &str) -> String {
    // FNV-1a: the same in every version, as names of rows have to be.
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{:06x}", hash & 0xff_ffff)
}

#[cfg(test)]
mod tests {
    use model::Direction;
    use proptest::prelude::*;

    use super::{PRINTED_MAX, printed_values};

    fn shown(text: &str, program: &str) -> Vec<String> {
        let values = printed_values(text, program).into_iter();
        values
            .map(|of| {
                let better = match of.direction {
                    Direction::HigherIsBetter => "more",
                    _ => "less",
                };
                format!("{} = {} {} {better}", of.name, of.value, of.unit)
            })
            .collect()
    }

    #[test]
    fn lines_of_modules_are_rows() {
        // As lib/find_bit_benchmark.c, lib/test_vmalloc.c and lib/raid6/algos.c print.
        let text = "Start testing find_bit() with random-filled bitmap\n\
            find_next_bit:               731488 ns, 163834 iterations\n\
            find_next_zero_bit:          720000 ns, 163847 iterations\n\
            Start testing find_bit() with sparse bitmap\n\
            find_next_bit:                 5000 ns,    656 iterations\n\
            raid6: avx2x4   gen() 21530 MB/s\n";
        insta::assert_snapshot!(shown(text, "find_bit_benchmark").join("\n"), @"
        random.find_next_bit = 731488 ns less
        find_next_zero_bit = 720000 ns less
        sparse.find_next_bit = 5000 ns less
        raid6-avx2x4-gen = 21530 MB/s more
        ");
    }

    #[test]
    fn headings_tell_equal_lines_apart() {
        // As lib/rbtree_test.c and lib/interval_tree_test.c print.
        let text = "rbtree testing\n -> test 1 (latency of nnodes insert+delete): 1200 cycles\n\
            augmented rbtree testing\n -> test 1 (latency of nnodes insert+delete): 1500 cycles\n\
            interval tree insert/remove\n -> 300 cycles\ninterval tree search\n -> 70 cycles (12 results)\n";
        insta::assert_snapshot!(shown(text, "rbtree_test").join("\n"), @"
        test-1-latency-of-n-774528 = 1200 cycles less
        augmen.test-1-laten-aba883 = 1500 cycles less
        insert.cycles = 300 cycles less
        search.cycles = 70 cycles less
        ");
    }

    #[test]
    fn kunit_and_perf_print_rates() {
        // As lib/tests/crc_kunit.c, crypto/tcrypt.c and tools/perf/bench print.
        let text = "    # crc32_benchmark: len=64: 4810 MB/s\n    # crc32_benchmark: len=512: 9000 MB/s\n\
            test 0 (128 bit key, 16 byte blocks): 1 operation in 188 cycles (16 bytes)\n\
            # Executed 10,000,000 getppid() calls\n     Total time: 1.353 [sec]\n\n       0.135331 usecs/op\n      7389258 ops/sec\n\
            Average test time: 4321\nCPU0: Dhrystones per Second: 123456 (70 DMIPS)\n";
        insta::assert_snapshot!(shown(text, "x").join("\n"), @"
        crc32_benchmark-len=64 = 4810 MB/s more
        crc32_benchmark-len=512 = 9000 MB/s more
        test-0-128-bit-key-3e5348 = 188 cycles less
        Total-time = 1.353 sec less
        usecs-op = 0.135331 usecs/op less
        ops-sec = 7389258 ops/sec more
        Average-test-time = 4321 as printed less
        CPU0-Dhrystones-per-Second = 123456 per Second more
        CPU0-DMIPS = 70 DMIPS more
        ");
    }

    #[test]
    fn addresses_name_no_row() {
        // As tools/perf/bench/futex-hash.c prints.
        let text = "[thread  0] futexes: 0x55d0c0de1000 ... 0x55d0c0de1ffc [ 1377280 ops/sec ]\n\
            Averaged 1377280 operations/sec (+- 0.00%), total secs = 10\n";
        insta::assert_snapshot!(shown(text, "x").join("\n"), @"
        thread-0-futexes = 1377280 ops/sec more
        Averaged = 1377280 operations/sec more
        ");
    }

    #[test]
    fn equal_names_are_averaged() {
        assert_eq!(shown("a: 1 ns\na: 3 ns\na: 5 us\n", ""), ["a = 2 ns less"]);
        assert_eq!(
            shown("took 5 tries\nversion 1.2.3\n0x12 ns\n", ""),
            Vec::<String>::new()
        );
    }

    proptest! {
        #[test]
        fn any_text_has_numbered_rows(text in "\\PC{0,200}", program in "[a-z_]{0,8}") {
            let values = printed_values(&text, &program);
            prop_assert!(values.len() <= PRINTED_MAX);
            for value in values {
                prop_assert!(value.name.len() <= 26 && value.value >= 0.0);
            }
        }
    }
}
