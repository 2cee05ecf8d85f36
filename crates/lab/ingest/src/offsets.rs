//! How often each instruction of the kernel was executed, by function and offset within it. Stored
//! beside the profile: text, a line for each function, and below it one for each instruction.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use model::{Executions, Offsets};

use crate::Symbols;

const HEAD: &str = "marvin-offsets 1";

/// Reads the tracer's counts, which `profile` has found whole. User code has no functions.
#[must_use]
pub fn offsets(counts: &[u8], symbols: &Symbols, operations: u64) -> Offsets {
    let functions: Vec<(u64, u64, &str)> = symbols.functions().collect();
    let mut names = BTreeSet::new();
    let several: BTreeSet<&str> = functions
        .iter()
        .filter_map(|(.., name)| (!names.insert(*name)).then_some(*name))
        .collect();
    let mut found = Offsets {
        operations,
        ..Offsets::default()
    };
    for line in String::from_utf8_lossy(counts).lines() {
        let mut words = line.split(' ');
        let is_repeated = match words.next() {
            Some("at") => false,
            Some("repeated") => true,
            _ => continue,
        };
        let Some(address) = words.next().and_then(|a| u64::from_str_radix(a, 16).ok()) else {
            continue;
        };
        let times = words.filter_map(|word| word.parse::<u64>().ok());
        let times = times.fold(0, u64::saturating_add);
        let after = functions.partition_point(|(start, ..)| *start <= address);
        let Some((start, end, name)) = after.checked_sub(1).map(|at| functions[at]) else {
            continue;
        };
        if address < end && times > 0 && !several.contains(name) {
            let executions = Executions { times, is_repeated };
            let of_function = found.functions.entry(name.to_owned()).or_default();
            of_function.insert(address - start, executions);
        }
    }
    found
}

/// Returns them as text.
#[must_use]
pub fn offsets_to_text(offsets: &Offsets) -> String {
    let mut text = format!("{HEAD}\noperations\t{}\n", offsets.operations);
    for (function, executed) in &offsets.functions {
        writeln!(text, "function\t{function}").unwrap_or_default();
        for (offset, Executions { times, is_repeated }) in executed {
            let kind = if *is_repeated { "\trepeated" } else { "" };
            writeln!(text, "{offset:x}\t{times}{kind}").unwrap_or_default();
        }
    }
    text
}

/// Parses that text; `None` if it is anything else.
#[must_use]
pub fn offsets_from_text(text: &str) -> Option<Offsets> {
    let mut lines = text.lines();
    (lines.next()? == HEAD).then_some(())?;
    let operations = lines.next()?.strip_prefix("operations\t")?.parse().ok()?;
    let mut found = Offsets {
        operations,
        ..Offsets::default()
    };
    let mut function = None;
    for line in lines {
        if let Some(name) = line.strip_prefix("function\t") {
            function = Some(found.functions.entry(name.to_owned()).or_default());
            continue;
        }
        let (offset, rest) = line.split_once('\t')?;
        let (times, is_repeated) = match rest.strip_suffix("\trepeated") {
            Some(times) => (times, true),
            None => (rest, false),
        };
        let executions = Executions {
            times: times.parse().ok()?,
            is_repeated,
        };
        let offset = u64::from_str_radix(offset, 16).ok()?;
        function.as_mut()?.insert(offset, executions);
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::{offsets, offsets_from_text, offsets_to_text};
    use crate::Symbols;

    #[test]
    fn counts_become_offsets_of_functions() {
        let symbols = "T1000 clear_page\nT100 walk (a.c)\nT100 twice\nT100 twice\nT100 end\n";
        let symbols = Symbols::parse(symbols).unwrap();
        let counts = b"region 0 10 540 20 0\nat 0 10 0 0\nat 1000 4 1 0\nrepeated 1003 512 0 0\nat 1104 20 0 20\n\
                       at 1204 1 0 0\nat 1304 1 0 0\nat 1400 1 0 0\nend 0 0\n";
        let found = offsets(counts, &symbols, 8);
        insta::assert_snapshot!(offsets_to_text(&found), @r"
        marvin-offsets 1
        operations	8
        function	clear_page
        0	5
        3	512	repeated
        function	walk (a.c)
        4	40
        ");
        assert_eq!(offsets_from_text(&offsets_to_text(&found)), Some(found));
        assert_eq!(
            offsets_from_text("marvin-offsets 1\noperations\t1\n0\t1"),
            None
        );
        assert_eq!(offsets_from_text("marvin-offsets 2\n"), None);
    }

    proptest::proptest! {
        #[test]
        fn garbage_never_panics(bytes: Vec<u8>, text in "(at|repeated|function|[0-9a-f]{1,20})[ \t][0-9a-f \t]{0,40}\n") {
            let symbols = Symbols::parse("T1000 clear_page\nT100 walk\nT1 end\n").unwrap();
            let _offsets = offsets(&bytes, &symbols, 1);
            let _offsets = offsets(text.as_bytes(), &symbols, 1);
            let _offsets = offsets_from_text(&format!("marvin-offsets 1\noperations\t1\n{text}"));
        }
    }
}
