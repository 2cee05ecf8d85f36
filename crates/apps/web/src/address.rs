//! Addresses: encodes names from outside as parts of a path for servers and files alike, and parses
//! query strings.

/// Length limit of a path or query.
pub(crate) const LENGTH_MAX: usize = 2048;

/// Limit on names in a query.
const NAMES_MAX: usize = 16;

/// Encodes a name as a part of a path: ASCII letters, digits, `.`, `_` and `-` stay, each byte of
/// others becomes `~` and two digits. A dot at the beginning is encoded too, so that `..` never
/// appears.
pub(crate) fn slug(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for (place, byte) in name.bytes().enumerate() {
        if byte.is_ascii_alphanumeric() || b"_-".contains(&byte) || (byte == b'.' && place > 0) {
            text.push(char::from(byte));
        } else {
            text.extend(['~', lower_digit(byte >> 4), lower_digit(byte & 15)]);
        }
    }
    if text.is_empty() {
        "~".to_owned()
    } else {
        text
    }
}

fn lower_digit(half: u8) -> char {
    char::from(b"0123456789abcdef"[usize::from(half)])
}

/// Decodes the output of [`slug`]; `None` for anything else.
pub(crate) fn unslug(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        if *first == b'~' && part != "~" {
            let digits = std::str::from_utf8(behind.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &behind[2..];
        } else {
            bytes.extend((*first != b'~').then_some(*first));
            rest = behind;
        }
    }
    String::from_utf8(bytes)
        .ok()
        .filter(|name| slug(name) == part)
}

/// A query: names and values, decoded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Parses a query; drops what is not UTF-8, too long or too much.
    pub(crate) fn read(text: &str) -> Self {
        if text.len() > LENGTH_MAX {
            return Self::default();
        }
        Self(
            text.split('&')
                .filter(|pair| !pair.is_empty())
                .take(NAMES_MAX)
                .filter_map(|pair| {
                    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                    Some((decode(name)?, decode(value)?))
                })
                .collect(),
        )
    }

    /// Returns whether a query asks for this value, or for any.
    pub(crate) fn allows(&self, name: &str, value: &str) -> bool {
        self.get(name).is_none_or(|wanted| wanted == value)
    }

    /// Returns a value that is not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }
}

/// Returns whether a query contains a secret. Proxies log addresses, browsers keep them, and people
/// paste them into mails.
pub(crate) fn has_secret(question: &str) -> bool {
    const SECRETS: [&str; 7] = [
        "token",
        "secret",
        "password",
        "passwd",
        "api_key",
        "apikey",
        "authorization",
    ];
    question
        .split('&')
        .filter_map(|pair| decode(pair.split('=').next()?))
        .map(|name| name.to_ascii_lowercase())
        .any(|name| SECRETS.iter().any(|word| name.contains(word)))
}

/// Encodes a value for a query.
pub(crate) fn encode(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"._-~".contains(&byte) {
            written.push(char::from(byte));
        } else {
            let digits = [byte >> 4, byte & 15].map(lower_digit);
            written.push('%');
            written.extend(digits.map(|digit| digit.to_ascii_uppercase()));
        }
    }
    written
}

fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        match first {
            b'+' => bytes.push(b' '),
            b'%' => {
                let digits = std::str::from_utf8(behind.get(..2)?)
                    .ok()
                    .filter(|two| !two.starts_with('+'))?;
                bytes.push(u8::from_str_radix(digits, 16).ok()?);
                rest = &behind[2..];
            }
            other => bytes.push(*other),
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::{Query, encode, slug, unslug};

    #[test]
    fn names_never_become_paths() {
        for (name, part) in [
            ("fault-anon", "fault-anon"),
            ("6.12.117", "6.12.117"),
            ("..", "~2e."),
            ("../etc", "~2e.~2fetc"),
            ("a/b", "a~2fb"),
            ("6.1 (rt)", "6.1~20~28rt~29"),
            ("", "~"),
            ("~", "~7e"),
            ("ö", "~c3~b6"),
        ] {
            assert_eq!(slug(name), part);
            assert_eq!(unslug(part).as_deref(), Some(name));
        }
        for wrong in [
            "..", ".hidden", "a/b", "~2", "~zz", "~61", "a%2fb", "~+1", "~C3~B6", "a~", "~~",
        ] {
            assert_eq!(unslug(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn queries_are_decoded_like_browsers_encode() {
        let question = Query::read("base=6.1.9&target=6.12+%28rt%29&filter=&x&&bad=%ff&base=no");
        assert_eq!(question.get("base"), Some("6.1.9"));
        assert_eq!(question.get("target"), Some("6.12 (rt)"));
        assert_eq!(
            (
                question.get("filter"),
                question.get("bad"),
                question.get("x")
            ),
            (None, None, None)
        );
        assert_eq!(Query::read(&"a=b&".repeat(10_000)), Query::default());
    }

    proptest! {
        #[test]
        fn any_name_survives_encoding(name in any::<String>()) {
            prop_assert_eq!(unslug(&slug(&name)), Some(name.clone()));
            prop_assert!(!slug(&name).starts_with('.') && !slug(&name).contains('/'));
            let question = format!("a={}", encode(&name));
            if question.len() < 2000 && !name.is_empty() {
                prop_assert_eq!(
                    Query::read(&question).get("a").map(str::to_owned),
                    Some(name)
                );
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(text in any::<String>()) {
            let _ = Query::read(&text);
            if let Some(name) = unslug(&text) {
                prop_assert_eq!(slug(&name), text);
            }
        }
    }
}
