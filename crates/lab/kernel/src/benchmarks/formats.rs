//! What a source file prints: the formats of its messages that end in a number with a unit of time,
//! rate or work.
//!
//! Pure. Only what reaches the kernel's log counts: `trace_printk` writes elsewhere.

/// Functions and macros that print to the kernel's log.
const PRINTERS: [&str; 24] = [
    "printk",
    "pr_emerg",
    "pr_alert",
    "pr_crit",
    "pr_err",
    "pr_warn",
    "pr_warning",
    "pr_notice",
    "pr_info",
    "pr_cont",
    "pr_debug",
    "dev_info",
    "dev_err",
    "dev_warn",
    "kunit_info",
    "kunit_log",
    "kunit_warn",
    "kunit_err",
    "netdev_info",
    "SCALEOUT",
    "TOROUT_STRING",
    "SCALEOUT_STRING",
    "ntb_info",
    "pr_info_once",
];
/// Units of a number, in lower case, as they follow it.
pub(super) const UNITS: [&str; 31] = [
    "ns",
    "nsec",
    "nsecs",
    "nanosecs",
    "nanoseconds",
    "us",
    "usec",
    "usecs",
    "microseconds",
    "ms",
    "msec",
    "msecs",
    "milliseconds",
    "cycle",
    "cycles",
    "clocks",
    "mb/s",
    "mb/sec",
    "mib/s",
    "kb/s",
    "kib/s",
    "kb/sec",
    "gb/s",
    "ops/s",
    "ops/sec",
    "iters/s",
    "ns/op",
    "cycles/op",
    "iops",
    "dmips",
    "ops",
];
/// Longest format that is kept (characters).
const FORMAT_MAX: usize = 160;

/// Returns the formats of a C file that print a number with a unit, each once.
pub(super) fn timed_formats(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('(') {
        let name: &str = {
            let before = rest[..at].trim_end();
            let start = before
                .rfind(|c: char| !(c.is_alphanumeric() || c == '_'))
                .map_or(0, |start| start + 1);
            // `start` follows a character that may have several bytes.
            before.get(start..).unwrap_or_default()
        };
        rest = &rest[at + 1..];
        if !PRINTERS.contains(&name) {
            continue;
        }
        let format = literals(rest);
        if prints_measure(&format) && !found.contains(&format) {
            found.push(format);
        }
    }
    found
}

/// Returns the string literals that begin the arguments of a call, joined.
fn literals(arguments: &str) -> String {
    let mut joined = String::new();
    let mut rest = arguments;
    loop {
        rest = rest.trim_start();
        // KERN_INFO, PREFIX and `test,` come before and between.
        let word = rest
            .find(|c: char| !(c.is_alphanumeric() || c == '_'))
            .unwrap_or(rest.len());
        let after_word = rest[word..].trim_start();
        if let Some(literal) = rest.strip_prefix('"') {
            let end = closing_quote(literal);
            joined.push_str(&literal[..end]);
            rest = literal.get(end + 1..).unwrap_or_default();
        } else if word > 0 && (after_word.starts_with('"') || joined.is_empty()) {
            rest = after_word.strip_prefix(',').unwrap_or(after_word);
            if !rest.trim_start().starts_with('"') {
                break;
            }
        } else {
            break;
        }
    }
    joined
        .replace("\\n", "")
        .replace("\\t", " ")
        .chars()
        .take(FORMAT_MAX)
        .collect()
}

fn closing_quote(literal: &str) -> usize {
    let bytes = literal.as_bytes();
    let mut at = 0;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    let mut end = at.min(literal.len());
    while !literal.is_char_boundary(end) {
        end -= 1;
    }
    end
}

/// Returns whether a format prints a number with a unit.
fn prints_measure(format: &str) -> bool {
    format.match_indices('%').any(|(at, _)| {
        let conversion = &format[at + 1..];
        let flags = conversion
            .find(|c: char| !"-+ 0123456789.*lhzt#".contains(c))
            .unwrap_or(conversion.len());
        let mut rest = conversion[flags..].chars();
        matches!(rest.next(), Some('d' | 'u' | 'i' | 'f')) && begins_with_unit(rest.as_str())
    })
}

/// Returns whether a text begins with a unit: ` ns`, `(usecs)`, `ns/op`, ` MB/s`.
fn begins_with_unit(text: &str) -> bool {
    let text = text.trim_start_matches([' ', '(', '[']);
    let word: String = text
        .chars()
        .take_while(|c| c.is_ascii_alphabetic() || *c == '/')
        .collect();
    let word = word.to_ascii_lowercase();
    UNITS.contains(&word.as_str()) || text.to_ascii_lowercase().starts_with("per sec")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::timed_formats;

    #[test]
    fn formats_with_units_are_found() {
        // As in lib/find_bit_benchmark.c, lib/rbtree_test.c, lib/test_vmalloc.c and lib/raid6/algos.c.
        let text = "pr_err(\"find_next_bit: %18llu ns, %6ld iterations\\n\", t, n);\n\
            printk(KERN_ALERT \" -> test 1 (latency): %llu cycles\\n\", x);\n\
            pr_info(\n\"Summary: %s passed: \"\n\"%d avg: %llu usec\\n\", a);\n\
            pr_info(\"raid6: %-8s gen() %5ld MB/s\\n\", name);\n\
            kunit_info(test, \"len=%zu: %llu MB/s\\n\", len, speed);\n\
            trace_printk(\"%ld ns per entry\\n\", avg);\n\
            pr_info(\"took %d tries\\n\", n); seq_printf(m, \"%llu ns\", x);\n";
        assert_eq!(
            timed_formats(text),
            [
                "find_next_bit: %18llu ns, %6ld iterations",
                " -> test 1 (latency): %llu cycles",
                "Summary: %s passed: %d avg: %llu usec",
                "raid6: %-8s gen() %5ld MB/s",
                "len=%zu: %llu MB/s",
            ]
        );
    }

    proptest! {
        #[test]
        fn any_text_has_formats(text in "\\PC{0,80}", call in "\\PC{0,20}") {
            drop(timed_formats(&text));
            drop(timed_formats(&format!("pr_info({call}")));
        }
    }
}
