//! The result of a check: the place, the rule, and what to do about it.

use std::fmt;

/// A rule of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    pub name: &'static str,
    pub remedy: &'static str,
}

impl Rule {
    /// Makes a finding at a line of a file.
    pub(crate) fn at(&self, file: &str, line: usize, what: impl Into<String>) -> Finding {
        Finding {
            file: file.to_owned(),
            line,
            rule: *self,
            what: what.into(),
        }
    }
}

/// A violation of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Path from the root of the tree.
    pub file: String,
    pub line: usize,
    pub rule: Rule,
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rule { name, remedy } = self.rule;
        write!(
            f,
            "{}:{}: {}\n    rule: {name}\n    do:   {remedy}",
            self.file, self.line, self.what
        )
    }
}

/// Ends a test: returns if there are no findings, else panics with all of them.
///
/// # Panics
/// If there are findings.
pub fn none(findings: &[Finding]) {
    let list: Vec<String> = findings.iter().map(Finding::to_string).collect();
    assert!(
        findings.is_empty(),
        "{} found\n\n{}\n",
        findings.len(),
        list.join("\n")
    );
}

#[cfg(test)]
mod tests {
    use super::{Rule, none};

    const RULE: Rule = Rule {
        name: "nothing is red",
        remedy: "paint it",
    };

    #[test]
    fn finding_prints_place_reason_and_remedy() {
        let text = RULE.at("a/b.rs", 7, "a red line").to_string();
        assert_eq!(
            text,
            "a/b.rs:7: a red line\n    rule: nothing is red\n    do:   paint it"
        );
    }

    #[test]
    #[should_panic(expected = "1 found\n\na/b.rs:7: a red line")]
    fn one_finding_fails_a_test() {
        none(&[RULE.at("a/b.rs", 7, "a red line")]);
    }
}
