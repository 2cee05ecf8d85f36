//! Words for a POSIX shell: in scripts, and for programs that hand their arguments to one, as ssh
//! does.

/// Returns the words as a shell reads them back, unchanged and separated.
#[must_use]
pub fn quote_words<W: AsRef<str>>(words: impl IntoIterator<Item = W>) -> String {
    let mut quoted = Vec::new();
    for word in words {
        quoted.push(format!("'{}'", word.as_ref().replace('\'', r"'\''")));
    }
    quoted.join(" ")
}

#[cfg(test)]
mod tests {
    use super::quote_words;
    use crate::Program;

    #[test]
    fn shells_read_quoted_words_unchanged() {
        let words = ["it's $HOME; `x`\n\\ \"two\"", "", "-n *", "''"];
        let script = format!("printf '%s|' {}", quote_words(words));
        let ended = Program::new("sh").args(["-c", &script]).run().unwrap();
        assert_eq!(ended.text(), words.map(|word| format!("{word}|")).concat());
        assert_eq!(quote_words::<&str>([]), "");
    }
}
