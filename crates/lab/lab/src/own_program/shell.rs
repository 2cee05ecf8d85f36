//! The words of a shell script that may name programs and files. Not a shell: too many words are
//! harmless, as only those that name something count.

/// Longest text that is looked through, in bytes.
const TEXT_MAX: usize = 1 << 20;

/// Returns the words of a script, each once: what white space, quotes and operators separate.
pub(super) fn words(text: &str) -> Vec<&str> {
    let end = (0..=TEXT_MAX.min(text.len()))
        .rev()
        .find(|&end| text.is_char_boundary(end))
        .unwrap_or(0);
    let lines = text[..end].lines().map(str::trim_start);
    let code = lines.filter(|line| !line.starts_with('#'));
    let mut words: Vec<&str> = code.flat_map(|line| line.split(is_separator)).collect();
    words.retain(|word| !word.is_empty() && !word.starts_with('-'));
    words.sort_unstable();
    words.dedup();
    words
}

fn is_separator(c: char) -> bool {
    c.is_whitespace() || "'\"`;|&<>(){}$=,".contains(c)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::words;

    #[test]
    fn words_of_pipes_and_substitutions_are_found() {
        let text = "# awk is not meant\nfor i in $(seq 3); do ./netperf -H ::1 >>out; done | grep 5|sort\n";
        let found = words(text);
        for word in ["seq", "./netperf", "grep", "sort", "out"] {
            assert!(found.contains(&word), "{word}: {found:?}");
        }
        assert!(!found.contains(&"awk"), "{found:?}");
    }

    proptest! {
        #[test]
        fn any_text_has_words(text: String) {
            prop_assert!(words(&text).iter().all(|word| !word.is_empty()));
        }
    }
}
