//! Forbidden code: `unsafe`, clock and randomness, leaked memory, locks in pure crates, loose
//! serde, leftovers.

use crate::source::{code, code_and_comments, line_at, occurrences, production};
use crate::{Finding, Rule};

const UNSAFE: Rule = Rule {
    name: "`unsafe` stands only in crates/guest/agent, crates/dump/vmcore, crates/dump/marvin-dump, crates/guest/tracer and crates/guest/path-recorder",
    remedy: "do it with safe code, or move it into one of these crates",
};
const CLOCK: Rule = Rule {
    name: "nothing below `lab` reads the clock or draws a random number",
    remedy: "take the time or the number as an argument; `lab` or the program fetches it",
};
const LEAK: Rule = Rule {
    name: "nothing is leaked",
    remedy: "own it: an `Arc` for what is shared, a `Cow<'static, str>` for a text that may be compiled in",
};
const LOCK: Rule = Rule {
    name: "pure crates have no `Mutex`",
    remedy: "take the value as an argument and return it; a table that never changes is a `LazyLock`",
};
const SERDE: Rule = Rule {
    name: "no `flatten` and no `untagged` in documents",
    remedy: "name the fields, and tag the variants: unknown keys and wrong variants must be errors",
};
const LEFTOVER: Rule = Rule {
    name: "nothing unfinished and no test that is passed over",
    remedy: "finish it or take it out; what is to be done later is an issue",
};

/// Crates whose work is system calls and bytes of memory.
const UNSAFE_CRATES: &[&str] = &[
    "crates/guest/agent/",
    "crates/dump/vmcore/",
    "crates/dump/marvin-dump/",
    "crates/guest/tracer/",
    "crates/guest/path-recorder/",
];
const CLOCK_WORDS: &[&str] = &[
    "SystemTime::now",
    "Instant::now",
    "UNIX_EPOCH.elapsed",
    "rand::",
    "fastrand::",
    "getrandom",
    "RandomState",
];
/// Crates that give memory to another program for its lifetime: counters that QEMU increments.
const LEAK_CRATES: &[&str] = &["crates/guest/tracer/"];
const LEAK_WORDS: &[&str] = &["Box::leak", "Vec::leak", "String::leak", ".leak()"];
const LOCK_WORDS: &[&str] = &["Mutex"];
const SERDE_WORDS: &[&str] = &["flatten", "untagged"];
const LEFTOVER_CODE: &[&str] = &["todo!(", "unimplemented!(", "dbg!(", "#[ignore"];
const LEFTOVER_WORDS: &[&str] = &["TODO", "FIXME", "XXX"];

/// Finds `unsafe` outside the crates that may have it.
#[must_use]
pub fn unsafe_code(file: &str, text: &str) -> Vec<Finding> {
    if UNSAFE_CRATES.iter().any(|folder| file.starts_with(folder)) {
        return Vec::new();
    }
    find(UNSAFE, file, &code(text), &["unsafe"])
}

/// Finds production code that reads the clock or draws random numbers.
#[must_use]
pub fn clock_and_chance(file: &str, text: &str) -> Vec<Finding> {
    find(CLOCK, file, &production(text), CLOCK_WORDS)
}

/// Finds production code that leaks memory.
#[must_use]
pub fn leaked(file: &str, text: &str) -> Vec<Finding> {
    if LEAK_CRATES.iter().any(|folder| file.starts_with(folder)) {
        return Vec::new();
    }
    find(LEAK, file, &production(text), LEAK_WORDS)
}

/// Finds production code with a lock, which global state needs.
#[must_use]
pub fn locks(file: &str, text: &str) -> Vec<Finding> {
    find(LOCK, file, &production(text), LOCK_WORDS)
}

/// Finds attributes of serde that accept unintended input.
#[must_use]
pub fn loose_serde(file: &str, text: &str) -> Vec<Finding> {
    let code = code(text);
    let attribute = |start: usize| {
        let end = code[start..]
            .find(']')
            .map_or(code.len(), |length| start + length);
        find(SERDE, file, &code[start..end], SERDE_WORDS)
            .into_iter()
            .map(move |found| (start, found))
    };
    let at_line = |(start, found): (usize, Finding)| Finding {
        line: line_at(&code, start) + found.line - 1,
        ..found
    };
    occurrences(&code, "serde(")
        .into_iter()
        .flat_map(attribute)
        .map(at_line)
        .collect()
}

/// Finds unfinished code, ignored tests, and notes to oneself.
#[must_use]
pub fn leftovers(file: &str, text: &str) -> Vec<Finding> {
    let mut found = find(LEFTOVER, file, &code(text), LEFTOVER_CODE);
    found.extend(find(
        LEFTOVER,
        file,
        &code_and_comments(text),
        LEFTOVER_WORDS,
    ));
    found
}

fn find(rule: Rule, file: &str, view: &str, wanted: &[&str]) -> Vec<Finding> {
    let of = |word: &&str| {
        let word = (*word).to_owned();
        occurrences(view, &word)
            .into_iter()
            .map(move |at| rule.at(file, line_at(view, at), format!("`{word}`")))
    };
    wanted.iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::{clock_and_chance, leaked, leftovers, locks, loose_serde, unsafe_code};
    use crate::Finding;

    fn describe(findings: &[Finding]) -> Vec<String> {
        findings
            .iter()
            .map(|found| format!("{} {}", found.line, found.what))
            .collect()
    }

    #[test]
    fn forbidden_unsafe_code_is_found() {
        let text = "//! unsafe\n#![deny(unsafe_code)]\nfn a() { unsafe { b() } }\n\"unsafe\";\n";
        assert_eq!(
            describe(&unsafe_code("crates/lab/store/src/a.rs", text)),
            ["3 `unsafe`"]
        );
        assert!(unsafe_code("crates/guest/agent/src/a.rs", text).is_empty());
    }

    #[test]
    fn clocks_and_dice_are_found_outside_tests() {
        let text = "use std::time::Instant;\nfn a() { Instant::now(); operand::b(); rand::c(); }\n\
            #[cfg(test)]\nmod tests { fn d() { SystemTime::now(); } }\n";
        assert_eq!(
            describe(&clock_and_chance("a.rs", text)),
            ["2 `Instant::now`", "2 `rand::`"]
        );
    }

    #[test]
    fn leaked_memory_outside_tests_and_tracer_is_found() {
        let text = "fn a() { Box::leak(b); c.leak(); d.leaked(); }\nfn e() { Vec::leak(f) }\n\
            #[cfg(test)]\nmod tests { fn g() { String::leak(h); } }\n";
        assert_eq!(
            describe(&leaked("crates/lab/lab/src/a.rs", text)),
            ["1 `Box::leak`", "2 `Vec::leak`", "1 `.leak()`"]
        );
        assert!(leaked("crates/guest/tracer/src/a.rs", text).is_empty());
    }

    #[test]
    fn locks_are_found_outside_tests() {
        let text = "use std::sync::{LazyLock, Mutex};\n// Mutex\nstatic A: Mutex<B> = c(\"Mutex\");\n\
            #[cfg(test)]\nmod tests { static D: Mutex<E> = f(); }\n";
        assert_eq!(describe(&locks("a.rs", text)), ["1 `Mutex`", "3 `Mutex`"]);
    }

    #[test]
    fn loose_serde_is_found_beside_other_words() {
        let text = "#[serde(default, flatten)]\na: B,\n#[serde(untagged)]\n#[serde(rename = \"flatten\")]\nc.flatten();";
        assert_eq!(
            describe(&loose_serde("a.rs", text)),
            ["1 `flatten`", "3 `untagged`"]
        );
    }

    #[test]
    fn leftovers_outside_strings_are_found() {
        let text = "todo!()\nunimplemented!(\"a\")\ndbg!(b)\n#[ignore = \"slow\"]\n// FIXME: c\n/* XXX */\n\
            \"FIXME\";\nmktemp(\"XXXXXX\");\n// todo!() in words\n";
        let all = [
            "1 `todo!(`",
            "2 `unimplemented!(`",
            "3 `dbg!(`",
            "4 `#[ignore`",
            "5 `FIXME`",
            "6 `XXX`",
        ];
        assert_eq!(describe(&leftovers("a.rs", text)), all);
    }
}
