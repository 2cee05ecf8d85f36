//! Stanzas of Debian's control files: fields of one line each, and lists below a field.

/// Returns the content of a one-line field.
#[must_use]
pub fn field<'a>(stanza: &'a str, name: &str) -> Option<&'a str> {
    stanza
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
        .map(str::trim)
}

/// Returns the lines below a field, without their indent.
pub(crate) fn lines_below<'a>(stanza: &'a str, name: &str) -> Vec<&'a str> {
    let mut lines = stanza.lines();
    let found = lines.find(|line| {
        line.strip_prefix(name)
            .is_some_and(|rest| rest.trim_end() == ":")
    });
    if found.is_none() {
        return Vec::new();
    }
    lines
        .take_while(|line| line.starts_with(' '))
        .map(str::trim)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{field, lines_below};

    #[test]
    fn fields_and_lists_are_read() {
        let stanza = "Package: x\nSHA256:\n a 1 main/x\n b 2 y\nDate: z\n";
        assert_eq!(field(stanza, "Package"), Some("x"));
        assert_eq!(field(stanza, "Pack"), None);
        assert_eq!(lines_below(stanza, "SHA256"), ["a 1 main/x", "b 2 y"]);
        assert!(lines_below(stanza, "MD5Sum").is_empty());
        assert_eq!(lines_below("SHA256: \n a 1 x\n", "SHA256"), ["a 1 x"]);
    }
}
