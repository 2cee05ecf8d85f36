//! Names of functions across kernels and compilers.

use std::collections::BTreeSet;

/// Suffixes that compilers append to the name of a function that they changed or split.
const SUFFIXES: [&str; 6] = ["isra", "constprop", "part", "cold", "lto_priv", "llvm"];

/// Returns the name by which a symbol is matched: without suffixes and known renamings, with its
/// module.
#[must_use]
pub fn key(symbol: &str) -> String {
    let plain = without_suffix(symbol);
    let (name, module) = split(&plain);
    // Memory allocation profiling (Linux 6.10) renamed allocating functions: `x` is a macro around
    // `x_noprof` now (include/linux/alloc_tag.h).
    format!("{}{module}", name.strip_suffix("_noprof").unwrap_or(name))
}

/// Returns a symbol without the compiler's chain of suffixes, such as `.constprop.0.isra.0.cold`.
pub(crate) fn without_suffix(symbol: &str) -> String {
    let (mut name, module) = split(symbol);
    while let Some((head, tail)) = name.rsplit_once('.') {
        let is_number = !tail.is_empty() && tail.bytes().all(|byte| byte.is_ascii_digit());
        let is_known = SUFFIXES.contains(&tail);
        let follows = head.rsplit_once('.').is_some_and(|(_, before)| {
            SUFFIXES.contains(&before) || before.bytes().all(|byte| byte.is_ascii_digit())
        });
        if head.is_empty() || !(is_known || is_number && follows) {
            break;
        }
        name = head;
    }
    format!("{name}{module}")
}

/// Returns a symbol without the file that distinguishes it from others of its name.
pub(crate) fn without_file(symbol: &str) -> &str {
    symbol.split_once(" (").map_or(symbol, |(name, _)| name)
}

/// Names to match without files: one side has them without a file.
#[derive(Debug, Default)]
pub struct Plain(BTreeSet<String>);

impl Plain {
    /// Finds them among all symbols of both sides.
    pub fn new<'a>(symbols: impl Iterator<Item = &'a str>) -> Self {
        Self(
            symbols
                .filter(|symbol| !symbol.ends_with(')'))
                .map(key)
                .collect(),
        )
    }

    /// Returns a symbol in the form for matching.
    #[must_use]
    pub fn displayed_name<'a>(&self, symbol: &'a str) -> &'a str {
        let name = without_file(symbol);
        if name != symbol && self.0.contains(&key(name)) {
            name
        } else {
            symbol
        }
    }
}

/// Returns whether it is a split-off part of a function.
pub(crate) fn is_split_off(symbol: &str) -> bool {
    split(symbol)
        .0
        .split('.')
        .skip(1)
        .any(|part| part == "cold")
}

/// Splits a symbol into its name and its module, with the space before it.
fn split(symbol: &str) -> (&str, &str) {
    symbol
        .find(' ')
        .map_or((symbol, ""), |at| symbol.split_at(at))
}

#[cfg(test)]
mod tests {
    use super::{is_split_off, key, without_suffix};

    #[test]
    fn chains_of_suffixes_are_taken_off() {
        assert_eq!(without_suffix("f.constprop.0.isra.0"), "f");
        assert_eq!(without_suffix("f.isra.0.cold"), "f");
        assert_eq!(without_suffix("f.llvm.1234567 [mod]"), "f [mod]");
        assert_eq!(without_suffix("version.5"), "version.5");
        assert_eq!(without_suffix(".hidden"), ".hidden");
        assert_eq!(without_suffix("[user]"), "[user]");
    }

    #[test]
    fn known_renamings_share_a_key() {
        assert_eq!(key("__alloc_pages_noprof"), key("__alloc_pages"));
        assert_ne!(key("crypt [one]"), key("crypt [other]"));
        assert!(is_split_off("f.isra.0.cold") && !is_split_off("cold"));
    }
}
