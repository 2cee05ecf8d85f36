//! Words of the tree for its readers: no private dialect in comments, texts and documents, and
//! short names of tests.
//!
//! Only phrases that have no other use are listed; the rest of the rules for prose is for
//! reviewers.

use crate::source::{code, line_at, occurrences};
use crate::{Finding, Rule};

const DIALECT: Rule = Rule {
    name: "comments, texts and documents name who acts, and call an absent value `None`, zero or \"no X\"",
    remedy: "name the actor or the value: \"no worker runs it\", \"Marvin reports it once\", \"`None` if it is unknown\"",
};
const TEST_NAME: Rule = Rule {
    name: "a test's name has at most eight words",
    remedy: "write `subject_condition_result`; the rest of the story is a comment",
};

/// Phrases of the former dialect, in lower case.
const PHRASES: &[&str] = &[
    "nobody",
    "somebody",
    "whoever",
    "anybody",
    "let go of",
    "lets go of",
    "letting go of",
    "is told",
    "are told",
    "was told",
    "were told",
    "be told",
    "are said",
    "were said",
    "what nothing",
    "nothing for",
    "no news",
];

/// Most words in the name of a test.
const WORDS_MAX: usize = 8;

/// Finds phrases of the dialect in a Rust file's comments and literals, or in the whole of another
/// file.
#[must_use]
pub fn dialect(file: &str, text: &str) -> Vec<Finding> {
    let lower = text.to_ascii_lowercase();
    let code = if file.ends_with(".rs") {
        code(text)
    } else {
        String::new()
    };
    let is_code = |at: usize| code.as_bytes().get(at).is_some_and(|byte| *byte != b' ');
    let of = |phrase: &&str| {
        let phrase = (*phrase).to_owned();
        let at = occurrences(&lower, &phrase)
            .into_iter()
            .filter(|at| !is_code(*at) && !is_name(&lower, *at, phrase.len()));
        at.map(|at| DIALECT.at(file, line_at(&lower, at), format!("\"{phrase}\"")))
            .collect::<Vec<_>>()
    };
    PHRASES.iter().flat_map(of).collect()
}

/// Returns whether a phrase is a name: the user `nobody`, also in `nobody:x:65534`.
fn is_name(text: &str, at: usize, length: usize) -> bool {
    let around = (
        text[..at].chars().next_back(),
        text[at + length..].chars().next(),
    );
    matches!(
        around,
        (Some('`'), Some('`')) | (Some('"'), Some('"')) | (Some('"' | ':'), Some(':'))
    )
}

/// Finds tests whose names have too many words.
#[must_use]
pub fn test_names(file: &str, text: &str) -> Vec<Finding> {
    let code = code(text);
    let named = |at: usize| {
        let (_, behind) = code[at..].split_once("fn ")?;
        let name: String = behind
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        let words = name.split('_').count();
        (words > WORDS_MAX)
            .then(|| TEST_NAME.at(file, line_at(&code, at), format!("`{name}` has {words}")))
    };
    occurrences(&code, "#[test]")
        .into_iter()
        .filter_map(named)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{dialect, test_names};
    use crate::Finding;

    fn describe(findings: &[Finding]) -> Vec<String> {
        findings
            .iter()
            .map(|found| format!("{} {}", found.line, found.what))
            .collect()
    }

    #[test]
    fn dialect_is_found_in_comments_and_texts() {
        let text = "//! Nobody knows.\nfn nobody_knows() { print(\"it is told\") }\n// Bananas are told apart.\n";
        assert_eq!(
            describe(&dialect("a.rs", text)),
            ["1 \"nobody\"", "2 \"is told\"", "3 \"are told\""]
        );
        assert!(dialect("a.md", "The user `nobody`, and no worker.").is_empty());
        assert!(dialect("a.rs", "const NOBODY: &str = \":nobody:\";").is_empty());
    }

    #[test]
    fn long_test_names_are_found() {
        let text = "#[test]\nfn a_b_c_d_e_f_g_h() {}\n#[test]\n#[should_panic]\nfn a_b_c_d_e_f_g_h_i() {}\nfn a_b_c_d_e_f_g_h_i() {}\n";
        assert_eq!(
            describe(&test_names("a.rs", text)),
            ["3 `a_b_c_d_e_f_g_h_i` has 9"]
        );
    }
}
