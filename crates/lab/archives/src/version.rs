//! The order of Debian versions and their parts, as in deb-version(7), without running `dpkg`.

/// A sort key in which numbers count as numbers: `6.9` is before `6.12`, and `6.12~rc1` before
/// `6.12`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(Vec<(Vec<u16>, usize, String)>);

/// Makes the sort key of a text: stretches without digits and the numbers after them, in turn.
#[must_use]
pub fn key(mut text: &str) -> Key {
    let mut parts = Vec::new();
    loop {
        let (word, rest) = text.split_at(text.find(digit).unwrap_or(text.len()));
        let (number, rest) = rest.split_at(rest.find(|c| !digit(c)).unwrap_or(rest.len()));
        let is_end = word.is_empty() && number.is_empty();
        // Digits without leading zeros, preceded by their count: sorts as a number of any length.
        let number = number.trim_start_matches('0');
        let weights = word.bytes().map(weight).chain([END]).collect();
        parts.push((weights, number.len(), number.to_owned()));
        if is_end {
            return Key(parts);
        }
        text = rest;
    }
}

/// The end of a word: after a tilde, before everything else.
const END: u16 = 1;

fn weight(byte: u8) -> u16 {
    match byte {
        b'~' => 0,
        letter if letter.is_ascii_alphabetic() => u16::from(letter),
        other => u16::from(other) + 256,
    }
}

fn digit(c: char) -> bool {
    c.is_ascii_digit()
}

/// Makes the sort key of a whole Debian version: epoch, upstream version, revision.
#[must_use]
pub fn debian_version(version: &str) -> [Key; 3] {
    let (epoch, rest) = version.split_once(':').unwrap_or(("0", version));
    let (upstream, revision) = rest.rsplit_once('-').unwrap_or((rest, "0"));
    [key(epoch), key(upstream), key(revision)]
}

/// Returns the upstream version within a Debian version: `6.12.117` of `6.12.117-1~deb12u1`.
#[must_use]
pub fn upstream(version: &str) -> &str {
    let rest = version.split_once(':').map_or(version, |(_, rest)| rest);
    rest.rsplit_once('-').map_or(rest, |(upstream, _)| upstream)
}

/// Returns the first numbers of a version, without leading zeros: `6`, `12` of `6.12~rc1`.
#[must_use]
pub fn numbers(version: &str) -> Vec<&str> {
    let end = version
        .find(|c| !digit(c) && c != '.')
        .unwrap_or(version.len());
    version[..end]
        .split('.')
        .map(|number| number.trim_start_matches('0'))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;
    use std::process::Command;

    use proptest::prelude::*;

    use super::{debian_version, key, numbers, upstream};

    #[test]
    fn versions_are_ordered_as_dpkg_orders_them() {
        let versions = [
            "6.1.192-2",
            "6.1.192-10",
            "6.12.117-1~deb12u1",
            "6.12.117-1",
            "6.12.9-1~bpo12+1",
            "6.12~rc1-1~exp1",
            "6.12-1",
            "1:4.0-1",
            "6.1.0+b1-1",
            "6.01.192-2",
            "0-1",
            "0~rc1-1",
            "00-1",
            "6.12-0~1",
            "6.12-0",
        ];
        for (i, a) in versions.iter().enumerate() {
            for b in &versions[i + 1..] {
                let holds = |operator| {
                    Command::new("dpkg")
                        .args(["--compare-versions", a, operator, b])
                        .status()
                        .unwrap()
                        .success()
                };
                let order = match (holds("lt"), holds("eq")) {
                    (true, _) => Ordering::Less,
                    (_, true) => Ordering::Equal,
                    _ => Ordering::Greater,
                };
                assert_eq!(debian_version(a).cmp(&debian_version(b)), order, "{a} {b}");
            }
        }
    }

    #[test]
    fn upstream_version_excludes_epoch_and_revision() {
        assert_eq!(upstream("6.12.117-1~deb12u1"), "6.12.117");
        assert_eq!(upstream("6.1.192-2"), "6.1.192");
        assert_eq!(upstream("1:6.1~rc1-0.1"), "6.1~rc1");
        assert_eq!(upstream("6.1"), "6.1");
    }

    #[test]
    fn numbers_end_at_the_first_word() {
        assert_eq!(numbers("6.12~rc1"), ["6", "12"]);
        assert_eq!(numbers("6.012.117"), ["6", "12", "117"]);
    }

    proptest! {
        #[test]
        fn any_version_text_has_a_unique_key(text in any::<String>()) {
            prop_assert_eq!(key(&text), key(&text));
            prop_assert!(key(&text) < key(&(text.clone() + "z")));
            prop_assert!(key(&(text.clone() + "~")) < key(&text));
            prop_assert!(numbers(&text).len() <= text.len() + 1);
            prop_assert!(text.contains(upstream(&text)));
        }
    }
}
