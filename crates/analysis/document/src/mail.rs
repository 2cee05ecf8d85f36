//! The head of a mail, and texts that mails about regressions share.
//!
//! Their form follows Documentation/admin-guide/reporting-regressions.rst and regzbot's commands.

use model::{Direction, Unit};

use crate::layout::{WIDTH, command_lines, wrap};

/// Mailing lists for regressions.
pub const REGRESSIONS: &str = "regressions@lists.linux.dev, linux-kernel@vger.kernel.org";

/// The git tree with the source of every release of Linux: mainline and stable updates, with tags.
pub const CLONE: &str =
    "git clone https://git.kernel.org/pub/scm/linux/kernel/git/stable/linux.git";

/// The note above a mail about one seed.
const DRAFT: &str = "This is a draft that addresses no list: one seed only, so the layout of memory may be the cause. Measure \
                     more seeds first; the command is below.";

/// Returns the head of a mail about a regression; a draft, which rests on one seed, has a note and
/// no mailing list.
#[must_use]
pub fn regression_head(is_draft: bool, addresses: &[(&str, &str)], subject: &str) -> String {
    if is_draft {
        return format!("{}\n{}\n", head(&[("Subject", subject)]), paragraph(DRAFT));
    }
    let subject = format!("[REGRESSION] {subject}");
    let fields: Vec<(&str, &str)> = addresses
        .iter()
        .copied()
        .chain([("Subject", &*subject)])
        .collect();
    head(&fields) + "\n"
}

/// Returns the head of a mail: fields with their values, folded according to RFC 5322 (2.2.3).
#[must_use]
pub fn head(fields: &[(&str, &str)]) -> String {
    let mut lines = Vec::new();
    for (name, content) in fields {
        // One less: continuation lines begin with a space.
        let room = WIDTH - name.len() - 2;
        for (number, line) in wrap(content, room).into_iter().enumerate() {
            lines.push(if number == 0 {
                format!("{name}: {line}")
            } else {
                format!(" {line}")
            });
        }
    }
    lines.push(String::new());
    lines.join("\n")
}

/// Returns words as a paragraph of a mail.
#[must_use]
pub fn paragraph(text: &str) -> String {
    wrap(text, WIDTH).join("\n") + "\n"
}

/// Returns a command for a mail: indented, and continued in further lines if long.
#[must_use]
pub fn command(command: &str) -> String {
    command_lines(command, WIDTH - 2)
        .iter()
        .map(|line| format!("  {line}\n"))
        .collect()
}

/// Returns words after a label, continued below the first word if long.
#[must_use]
pub fn labelled(label: &str, text: &str) -> String {
    behind(
        label,
        &wrap(text, WIDTH.saturating_sub(label.chars().count())),
    )
}

/// Returns a command after a label, likewise, with a shell's continuation lines.
#[must_use]
pub fn labelled_command(label: &str, command: &str) -> String {
    behind(
        label,
        &command_lines(command, WIDTH.saturating_sub(label.chars().count())),
    )
}

fn behind(label: &str, lines: &[String]) -> String {
    let width = label.chars().count();
    let lines = lines.iter().enumerate().map(|(number, line)| {
        let label = if number == 0 { label } else { "" };
        format!("{label:width$}{line}\n")
    });
    lines.collect()
}

/// Names what increased if a metric became worse, such as `more instructions per operation`.
#[must_use]
pub fn more(direction: Direction, unit: &Unit) -> String {
    match direction {
        Direction::LowerIsBetter => {
            format!("more {}", unit.name().replace("/op", " per operation"))
        }
        Direction::HigherIsBetter => "less".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{head, labelled, labelled_command};

    #[test]
    fn long_words_go_on_below_the_first() {
        let text = labelled("machine: ", &"word ".repeat(30))
            + &labelled_command("again: ", &"word ".repeat(30));
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        assert!(
            text.starts_with("machine: word word ") && text.contains("\n         word word"),
            "{text}"
        );
        assert!(
            text.contains("\nagain: word ") && text.contains(" \\\n           word"),
            "{text}"
        );
    }

    #[test]
    fn long_fields_are_folded() {
        let subject = "word ".repeat(30);
        let text = head(&[("To", "a@example.org"), ("Subject", &subject)]);
        assert!(text.lines().all(|line| line.len() <= 80));
        assert!(text.starts_with("To: a@example.org\nSubject: word word "));
        assert_eq!(
            text.lines().nth(2).map(|line| line.starts_with(" word")),
            Some(true)
        );
    }
}
