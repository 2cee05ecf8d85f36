//! Words of the domain, for a crate that must know none of them.

use crate::{Finding, Rule};

const DOMAIN: Rule = Rule {
    name: "`stats` knows no word of the domain",
    remedy: "say it in the words of statistics, or move it to the crate whose word it is",
};
const WORDS: &[&str] = &["kernel", "workload", "machine", "guest", "boot"];

/// Finds words of the domain in code, comments and names: `KernelName` and `guest_pages` contain
/// one each.
#[must_use]
pub fn domain_words(file: &str, text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let known = |word: &String| {
            WORDS.contains(&word.as_str()) || WORDS.iter().any(|w| *word == format!("{w}s"))
        };
        found.extend(
            words(line)
                .into_iter()
                .filter(known)
                .map(|w| DOMAIN.at(file, number + 1, format!("`{w}`"))),
        );
    }
    found
}

/// Returns the words of a line in lower case; a capital letter after a small one begins a word.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut small = false;
    for c in line.chars() {
        if !c.is_alphabetic() || c.is_uppercase() && small {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphabetic()) {
            word.extend(c.to_lowercase());
        }
        small = c.is_lowercase();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::domain_words;

    #[test]
    fn words_are_found_in_comments_and_in_names() {
        let text = "//! Of kernels.\nfn guest_pages(m: &MachineId) {}\nconst BOOT_S: u8;\nfn bootstrap() {}\n";
        let found: Vec<_> = domain_words("a.rs", text)
            .into_iter()
            .map(|f| format!("{} {}", f.line, f.what))
            .collect();
        assert_eq!(
            found,
            ["1 `kernels`", "2 `guest`", "2 `machine`", "3 `boot`"]
        );
    }
}
