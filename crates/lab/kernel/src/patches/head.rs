//! The head of a mail, as far as an answer to it needs it.

use super::message::header;

/// Longest message id and header (bytes): RFC 5322 (2.1.1) ends lines before that.
const HEADER_BYTES_MAX: usize = 998;
/// Most bytes of a list of recipients, which is folded.
const RECIPIENTS_BYTES_MAX: usize = 16 << 10;

/// The head of a mail. Its fields are as they were sent, so non-ASCII words are encoded (RFC 2047);
/// each is one safe line, and empty if the mail lacks it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailHead {
    /// Without the angle brackets.
    pub message_id: String,
    /// With all prefixes.
    pub subject: String,
    pub from: String,
    pub to: String,
    pub cc: String,
}

/// Returns the head of a mail with this message id; `None` if no mail can answer that id.
pub(super) fn mail_head(id: &str, headers: &[(String, String)]) -> Option<MailHead> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"<>,;\"\\".contains(&byte);
    if id.len() > HEADER_BYTES_MAX || !id.contains('@') || !id.bytes().all(is_plain) {
        return None;
    }
    let field = |name: &str, most: usize| {
        let value = header(headers, name).unwrap_or_default();
        let words: Vec<&str> = value.split_whitespace().collect();
        let line = model::sanitize_line(&words.join(" "));
        // A field that is cut may end within an address: none is better.
        if line.len() > most {
            String::new()
        } else {
            line
        }
    };
    Some(MailHead {
        message_id: id.to_owned(),
        subject: field("subject", HEADER_BYTES_MAX),
        from: field("from", HEADER_BYTES_MAX),
        to: field("to", RECIPIENTS_BYTES_MAX),
        cc: field("cc", RECIPIENTS_BYTES_MAX),
    })
}

#[cfg(test)]
mod tests {
    use super::mail_head;

    fn headers(fields: &[(&str, &str)]) -> Vec<(String, String)> {
        let owned = fields.iter().map(|(name, value)| (*name, *value));
        owned
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }

    #[test]
    fn heads_are_safe_lines() {
        let fields = headers(&[
            ("Subject", "[PATCH v2 0/3] mm:\n  fast\x1b[31m\r\nBcc: x@y"),
            ("From", "=?UTF-8?q?J=C3=B6?= <a@example.org>"),
            ("CC", &"b@example.org, ".repeat(2000)),
        ]);
        let head = mail_head("1@example.org", &fields).unwrap();
        assert!(!head.subject.contains(['\n', '\r', '\x1b']));
        assert!(head.subject.starts_with("[PATCH v2 0/3] mm: fast"));
        assert_eq!(head.from, "=?UTF-8?q?J=C3=B6?= <a@example.org>");
        assert_eq!(
            [&*head.to, &*head.cc],
            ["", ""],
            "too long is as good as none"
        );
    }

    #[test]
    fn ids_that_break_headers_are_refused() {
        for id in [
            "",
            "noat",
            "a@b c",
            "a@b>",
            "a\n@b",
            &format!("{}@b", "a".repeat(2000)),
        ] {
            assert_eq!(mail_head(id, &[]), None, "{id}");
        }
    }
}
