//! A series as a mail: an answer to the thread of the patches, in plain text.
//!
//! The file is one that `mutt -H` and `git send-email` read. Fields of the thread's mails are of
//! others: they come in as safe lines.

use std::fmt::Write;

use document::layout::wrap;
use document::mail::{command, paragraph};
use document::number::count;
use model::sanitize_line;

use crate::commit_formats::SeriesAnswer;
use crate::commit_table::{CommitRow, CommitVerdict, split_machine, workloads};

/// Characters of a line: answers quote it behind `> > >`.
const LINE: usize = 72;

/// Characters of a line of the head (RFC 5322, 2.1.1).
const FIELD: usize = 78;

/// Commits that are described: a mail with more is read by few.
const COMMITS_SHOWN: usize = 40;

/// Above a mail about one seed.
const DRAFT: &str = "This is a draft without recipients: one seed only, so the layout of memory may be the cause. Measure \
                     more seeds first: the command below without --quick.";

/// The mail that is answered. Fields are as they were sent; each is one safe line, and empty if the
/// mail lacks it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnsweredMail {
    /// Without the angle brackets.
    pub message_id: String,
    /// Its subject.
    pub subject: String,
    /// Its author, who becomes the recipient.
    pub from: String,
    /// Its recipients, who get a copy.
    pub to: String,
    /// Those with a copy of it.
    pub cc: String,
}

impl SeriesAnswer<'_> {
    /// Returns a mail: an answer to a mail, or one without recipients. A draft, which rests on one
    /// seed, has none either.
    #[must_use]
    pub fn mail(&self, answered: Option<&AnsweredMail>, is_draft: bool) -> String {
        let mut text = match answered {
            Some(mail) => head_of_answer(mail, is_draft),
            None => field("Subject", &format!("performance of {}", self.title)),
        };
        text.push_str("MIME-Version: 1.0\n");
        text.push_str("Content-Type: text/plain; charset=UTF-8\n");
        text.push_str("Content-Transfer-Encoding: 8bit\n\n");
        if is_draft {
            text.push_str(&paragraph(DRAFT));
            text.push('\n');
        }
        let has_others = self
            .workloads
            .iter()
            .any(|name| split_machine(name).1.is_some());
        let also = if has_others {
            ", on exact-smp the lines that processors share,"
        } else {
            ""
        };
        add_lines(
            &mut text,
            "",
            &format!(
                "Marvin counted the instructions of {}{also} in QEMU for each commit and compared it with the one before: positive is better.",
                workloads(self.workloads.len())
            ),
        );
        add_lines(&mut text, "", &format!("Measured: {}", self.title));
        let commits = count(self.commits().count(), "commit");
        add_lines(
            &mut text,
            "",
            &format!("{commits}: {}", self.count_verdicts()),
        );
        let has_news =
            |row: &&CommitRow| !matches!(row.verdict(), CommitVerdict::Equal | CommitVerdict::Same);
        let news: Vec<&CommitRow> = self.commits().filter(has_news).collect();
        for row in news.iter().take(COMMITS_SHOWN) {
            text.push('\n');
            add_lines(&mut text, "", &format!("{} {}", row.commit, row.subject));
            add_lines(&mut text, "  ", &self.describe(row));
            for line in row.describe_functions() {
                add_lines(&mut text, "  ", &line);
            }
        }
        if let Some(more) = news.len().checked_sub(COMMITS_SHOWN + 1) {
            let more = count(more + 1, "commit");
            add_lines(&mut text, "", &format!("\n{more} more not shown."));
        }
        text.push_str("\nReproduce:\n\n");
        text + &command(&self.reproduce)
    }
}

fn head_of_answer(mail: &AnsweredMail, is_draft: bool) -> String {
    let mut text = String::new();
    if !is_draft {
        text.push_str(&field("To", &mail.from));
        let copies = [&*mail.to, &*mail.cc];
        let copies: Vec<&str> = copies.into_iter().filter(|list| !list.is_empty()).collect();
        text.push_str(&field("Cc", &copies.join(", ")));
    }
    let is_answer = mail
        .subject
        .get(..3)
        .is_some_and(|start| start.eq_ignore_ascii_case("re:"));
    let prefix = if is_answer { "" } else { "Re: " };
    text.push_str(&field("Subject", &format!("{prefix}{}", mail.subject)));
    for name in ["In-Reply-To", "References"] {
        text.push_str(&field(name, &format!("<{}>", mail.message_id)));
    }
    text
}

/// Returns a field, folded at spaces only (RFC 5322, 2.2.3): a message id or an encoded word that
/// is broken is another one. An empty field is left out.
fn field(name: &str, value: &str) -> String {
    let value = sanitize_line(value);
    let mut words = value.split_whitespace();
    let Some(first) = words.next() else {
        return String::new();
    };
    let mut line = format!("{name}: {first}");
    let mut lines = Vec::new();
    for word in words {
        if line.chars().count() + 1 + word.chars().count() > FIELD {
            lines.push(std::mem::take(&mut line));
        }
        line.push(' ');
        line.push_str(word);
    }
    lines.push(line);
    lines.join("\n") + "\n"
}

/// Adds words in lines behind an indent.
fn add_lines(text: &mut String, indent: &str, words: &str) {
    for line in wrap(words, LINE - indent.len()) {
        // Writing to a string cannot fail.
        writeln!(text, "{indent}{line}").ok();
    }
}

#[cfg(test)]
mod tests {
    use super::{AnsweredMail, LINE, field};
    use crate::commit_formats::tests::{answer, rows};

    fn mail() -> AnsweredMail {
        AnsweredMail {
            message_id: format!("{}@example.org", "20260101.12345-1-".repeat(6)),
            subject: "[PATCH v2 0/6] mm: faults".to_owned(),
            from: "A <a@example.org>".to_owned(),
            to: "linux-mm@example.org".to_owned(),
            cc: "B <b@example.org>, ".repeat(9) + "c@example.org",
        }
    }

    #[test]
    fn mail_answers_the_cover_letter() {
        let rows = rows();
        let text = answer(&rows).mail(Some(&mail()), false);
        insta::assert_snapshot!("mail", text);
        let (_, body) = text.split_once("\n\n").unwrap();
        assert!(body.lines().all(|line| line.chars().count() <= LINE + 8));
        // A draft addresses none.
        let draft = answer(&rows).mail(Some(&mail()), true);
        assert!(
            !draft.contains("\nCc:") && !draft.starts_with("To:"),
            "{draft}"
        );
        assert!(draft.contains("\nIn-Reply-To: <20260101"), "{draft}");
        let alone = answer(&rows).mail(None, false);
        assert!(
            alone.starts_with("Subject: performance of 6 patches"),
            "{alone}"
        );
    }

    #[test]
    fn fields_are_folded_between_words_only() {
        let long = "x".repeat(200);
        assert_eq!(field("References", &long), format!("References: {long}\n"));
        assert_eq!(field("Cc", " "), "");
        let hostile = field("Subject", "a\nBcc: x@y\r\n\r\nbody");
        assert_eq!(hostile.lines().count(), 1, "{hostile}");
    }
}
