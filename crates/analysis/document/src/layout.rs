//! Lines of at most 80 columns: wrapping, indenting, and shell commands broken where a shell allows
//! it.

use model::sanitize_line;

/// The width of a mail.
pub const WIDTH: usize = 80;

/// A text while it is built, line by line.
#[derive(Debug, Default)]
pub struct Page {
    lines: Vec<String>,
}

impl Page {
    /// Adds a line unchanged: the caller made it plain and measured it.
    pub fn line(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    /// Returns whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Adds an empty line, but never two in a row and none at the top.
    pub fn blank(&mut self) {
        if self.lines.last().is_some_and(|line| !line.is_empty()) {
            self.lines.push(String::new());
        }
    }

    /// Adds a paragraph, made plain and wrapped, each line indented.
    pub fn paragraph(&mut self, indent: usize, text: &str) {
        self.hanging(&" ".repeat(indent), text);
    }

    /// Adds text after a label; further lines are indented by its width.
    pub fn hanging(&mut self, mark: &str, text: &str) {
        let indent = mark.chars().count();
        for (number, line) in wrap(text, WIDTH.saturating_sub(indent))
            .into_iter()
            .enumerate()
        {
            let lead = if number == 0 {
                mark.to_owned()
            } else {
                " ".repeat(indent)
            };
            self.lines.push(format!("{lead}{line}"));
        }
    }

    /// Returns all lines, each with its end.
    #[must_use]
    pub fn finish(mut self) -> String {
        while self.lines.last().is_some_and(String::is_empty) {
            self.lines.pop();
        }
        self.lines.push(String::new());
        self.lines.join("\n")
    }
}

/// Returns the words, made sanitize_line, in lines of at most `width` characters. Longer words are broken.
pub fn wrap(words: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    let words = sanitize_line(words);
    let pieces = words
        .split_whitespace()
        .flat_map(|word| break_line(word, width.max(1)));
    for piece in pieces {
        let length = piece.chars().count();
        let gap = usize::from(used > 0);
        if used > 0 && used + gap + length > width {
            lines.push(String::new());
            used = 0;
        }
        if let Some(line) = lines.last_mut() {
            if used > 0 {
                line.push(' ');
                used += 1;
            }
            line.push_str(&piece);
            used += length;
        }
    }
    lines
}

/// Splits a console line into pieces of at most `width` characters; keeps its spaces.
pub fn break_line(line: &str, width: usize) -> Vec<String> {
    let characters: Vec<char> = line.chars().collect();
    if characters.is_empty() {
        return vec![String::new()];
    }
    characters
        .chunks(width.max(1))
        .map(|piece| piece.iter().collect())
        .collect()
}

/// Splits a shell command into lines that a shell reads as one: at spaces outside quotes only, each
/// line but the last with a final backslash. An argument that is wider than a line stays whole, so
/// that it can be pasted.
#[must_use]
pub fn command_lines(command: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in shell_words(&sanitize_line(command)) {
        match lines.last_mut() {
            Some(line) if line.chars().count() + word.chars().count() + 3 <= width => {
                line.push(' ');
                line.push_str(&word);
            }
            Some(_) => lines.push(format!("    {word}")),
            None => lines.push(word),
        }
    }
    let last = lines.len().saturating_sub(1);
    for line in lines.iter_mut().take(last) {
        line.push_str(" \\");
    }
    lines
}

/// Splits at the spaces where a shell would; keeps quotes and backslashes.
fn shell_words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote: Option<char> = None;
    let mut escaped = false;
    for c in command.trim().chars() {
        let splits = c == ' ' && quote.is_none() && !escaped;
        if splits {
            words.push(String::new());
            continue;
        }
        match quote {
            _ if escaped => escaped = false,
            None if c == '\'' || c == '"' => quote = Some(c),
            Some(open) if c == open => quote = None,
            Some('\'') => {}
            _ => escaped = c == '\\',
        }
        if let Some(word) = words.last_mut() {
            word.push(c);
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, proptest};

    use super::{Page, command_lines, wrap};

    #[test]
    fn words_are_wrapped_and_long_ones_broken() {
        assert_eq!(wrap("aa bb  cc", 5), ["aa bb", "cc"]);
        assert_eq!(wrap("abcdefgh i", 3), ["abc", "def", "gh", "i"]);
        assert_eq!(wrap("", 5), [""]);
    }

    #[test]
    fn page_has_single_blanks_and_one_final_newline() {
        let mut page = Page::default();
        page.blank();
        page.line("a");
        page.blank();
        page.blank();
        page.hanging("- ", &"word ".repeat(20));
        page.blank();
        assert_eq!(
            page.finish(),
            format!(
                "a\n\n- {}\n  {}\n",
                "word ".repeat(15).trim(),
                "word ".repeat(5).trim()
            )
        );
    }

    #[test]
    fn commands_are_broken_outside_quotes_only() {
        assert_eq!(
            command_lines("marvin compare 'a b c d e' x\\ y --seeds 5", 24),
            [
                "marvin compare \\",
                "    'a b c d e' x\\ y \\",
                "    --seeds 5"
            ]
        );
        assert_eq!(
            command_lines(r#"echo "a \" b" c"#, 12),
            ["echo \\", r#"    "a \" b" \"#, "    c"]
        );
        assert!(command_lines("", 12).is_empty());
    }

    proptest! {
        #[test]
        fn no_line_is_too_long(words in ".{0,300}", width in 1_usize..90) {
            for line in wrap(&words, width) {
                prop_assert!(line.chars().count() <= width);
            }
        }
    }
}
