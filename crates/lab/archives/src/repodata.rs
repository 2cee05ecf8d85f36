//! The lists of an rpm repository: `repomd.xml`, which names the others with their hashes, and
//! `primary.xml`, which has the packages.
//!
//! Not a parser of XML: it finds elements and attributes in the form in which createrepo writes
//! them.

use std::fmt::Write as _;
use std::io::{self, BufRead};

use crate::release::{ListedFile, is_sha256};

/// Longest description of one package.
const PACKAGE_MAX: usize = 32 << 20;

/// The list of packages that `repomd.xml` names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Primary {
    pub(crate) file: ListedFile,
    /// SHA-256 of what it unpacks to, hexadecimal.
    pub(crate) unpacked_sha256: Option<String>,
}

impl Primary {
    /// Reads `repomd.xml`; the error says which lists it has instead.
    pub(crate) fn parse(repomd: &str) -> Result<Self, String> {
        let lists: Vec<(String, &str)> = repomd
            .split("<data ")
            .skip(1)
            .filter_map(|data| {
                let kind = attribute(&format!("<data {data}"), "data", "type")?;
                Some((kind, data))
            })
            .collect();
        let Some((_, data)) = lists.iter().find(|(kind, _)| kind == "primary") else {
            let kinds: Vec<&str> = lists.iter().map(|(kind, _)| kind.as_str()).collect();
            return Err(match kinds.as_slice() {
                [] => "it names no list of packages".to_owned(),
                kinds => format!(
                    "it names no list `primary`, which Marvin reads, but {}",
                    model::sanitize_line(&kinds.join(", "))
                ),
            });
        };
        let kind = attribute(data, "checksum", "type").unwrap_or_default();
        if kind != "sha256" {
            return Err(format!(
                "it has the checksum `{}` of its list of packages, and Marvin takes sha256",
                model::sanitize_line(&kind)
            ));
        }
        Self::parse_data(data)
            .ok_or_else(|| "what it says of its list of packages is not whole".to_owned())
    }

    fn parse_data(data: &str) -> Option<Self> {
        Some(Self {
            file: ListedFile {
                path: attribute(data, "location", "href")?,
                bytes: element(data, "size")?.parse().ok()?,
                sha256: element(data, "checksum").filter(|hash| is_sha256(hash))?,
            },
            unpacked_sha256: element(data, "open-checksum").filter(|hash| is_sha256(hash)),
        })
    }
}

/// Reads `primary.xml`, and returns the packages for amd64 whose names begin so as stanzas in
/// Debian's form. A list without its end is an error: it would be one without packages.
pub(crate) fn stanzas(mut list: impl BufRead, start: &str) -> io::Result<String> {
    let mut stanzas = String::new();
    let mut text = Vec::new();
    let mut has_ended = false;
    loop {
        let before = text.len();
        if list.read_until(b'>', &mut text)? == 0 {
            let text = String::from_utf8_lossy(&text);
            return if has_ended && text.trim().is_empty() {
                Ok(stanzas)
            } else {
                Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "it is no list of packages of createrepo, or cut short",
                ))
            };
        }
        if text.len() > PACKAGE_MAX {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a package's description is too long",
            ));
        }
        let tag = &text[before..];
        if tag.ends_with(b"</package>") || tag.ends_with(b"package>") {
            let package = String::from_utf8_lossy(&text);
            stanzas.push_str(&stanza(&package, start).unwrap_or_default());
            text.clear();
        } else if tag.ends_with(b"</metadata>") {
            has_ended = true;
            text.clear();
        }
    }
}

fn stanza(package: &str, start: &str) -> Option<String> {
    let name = element(package, "name").filter(|name| name.starts_with(start))?;
    let architecture = element(package, "arch").filter(|arch| arch == "x86_64")?;
    let version = attribute(package, "version", "ver")?;
    let release = attribute(package, "version", "rel")?;
    let path = attribute(package, "location", "href")?;
    let bytes = attribute(package, "size", "package")?;
    let sha256 = element(package, "checksum")?;
    let fields = [
        &name,
        &architecture,
        &version,
        &release,
        &path,
        &bytes,
        &sha256,
    ];
    if fields.iter().any(|field| field.contains(['\n', ' '])) {
        return None;
    }
    let mut stanza = String::new();
    writeln!(
        stanza,
        "Package: {name}\nVersion: {version}-{release}\nArchitecture: {architecture}\nFilename: {path}\nSize: {bytes}\nSHA256: {sha256}\n"
    )
    .ok()?;
    Some(stanza)
}

/// Returns the text of the first element of a name.
fn element(text: &str, name: &str) -> Option<String> {
    let (_, rest) = find(text, name)?;
    let (content, _) = rest.split_once("</")?;
    Some(unescape(content.trim()))
}

/// Returns an attribute of the first element of a name.
fn attribute(text: &str, name: &str, attribute: &str) -> Option<String> {
    let (tag, _) = find(text, name)?;
    let at = tag.find(&format!(" {attribute}="))? + attribute.len() + 2;
    let quote = tag
        .get(at..)?
        .chars()
        .next()
        .filter(|c| "\"'".contains(*c))?;
    let (value, _) = tag.get(at + 1..)?.split_once(quote)?;
    Some(unescape(value))
}

/// Returns the tag of the first element of a name, and what follows it.
fn find<'a>(text: &'a str, name: &str) -> Option<(&'a str, &'a str)> {
    let mut rest = text;
    loop {
        let (_, after) = rest.split_once(&format!("<{name}"))?;
        if after.starts_with(|c: char| c.is_whitespace() || c == '>' || c == '/') {
            return after.split_once('>');
        }
        rest = after;
    }
}

fn unescape(text: &str) -> String {
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&apos;", "'")
        .replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Primary, stanzas};

    const PRIMARY: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<metadata xmlns="http://linux.duke.edu/metadata/common" packages="2">
<package type="rpm">
  <name>kernel-core</name>
  <arch>x86_64</arch>
  <version epoch="0" ver="6.11.4" rel="301.fc41"/>
  <checksum type="sha256" pkgid="YES">HASH</checksum>
  <summary>The Linux kernel &amp; more</summary>
  <size package="18" installed="2" archive='3'/>
<location href='Packages/k/kernel-core-6.11.4-301.fc41.x86_64.rpm'/>
  <format><rpm:name>other</rpm:name></format>
</package>
<package type="rpm"><name>bash</name><arch>x86_64</arch></package>
<package type="rpm"><name>kernel-core</name><arch>aarch64</arch></package>
</metadata>"#;

    #[test]
    fn packages_and_their_list_are_read() {
        let hash = "b".repeat(64);
        let list = PRIMARY.replace("HASH", &hash);
        let expected = format!(
            "Package: kernel-core\nVersion: 6.11.4-301.fc41\nArchitecture: x86_64\nFilename: Packages/k/kernel-core-6.11.4-301.fc41.x86_64.rpm\nSize: 18\nSHA256: {hash}\n\n"
        );
        assert_eq!(stanzas(list.as_bytes(), "kernel").unwrap(), expected);
        let repomd = format!(
            r#"<repomd><data type="filelists"><checksum type="sha256">x</checksum></data>
<data type="primary"><checksum type="sha256">{hash}</checksum><open-checksum type="sha256">y</open-checksum>
<location href="repodata/{hash}-primary.xml.zst"/><size>77</size></data></repomd>"#
        );
        let repomd = repomd.replace(">y<", &format!(">{hash}<"));
        let found = Primary::parse(&repomd).unwrap();
        assert_eq!((found.file.bytes, &found.file.sha256), (77, &hash));
        assert_eq!(found.unpacked_sha256.as_ref(), Some(&hash));
        assert!(found.file.path.ends_with("-primary.xml.zst"));
        for (other, expected) in [
            ("<repomd/>".to_owned(), "names no list of packages"),
            (
                repomd.replace("primary\"", "primary_zck\""),
                "but filelists, primary_zck",
            ),
            (repomd.replace("sha256", "sha512"), "the checksum `sha512`"),
            (repomd.replace("<size>77", "<size>x"), "is not whole"),
        ] {
            let error = Primary::parse(&other).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn list_without_its_end_is_no_list() {
        for list in [
            "",
            "\0ZCK1 packed",
            &PRIMARY[..PRIMARY.len() - 5],
            "<metadata>",
        ] {
            let error = stanzas(list.as_bytes(), "kernel").unwrap_err().to_string();
            assert!(error.contains("no list of packages"), "{error}");
        }
        let empty = "<metadata packages=\"0\">\n</metadata>\n";
        assert_eq!(stanzas(empty.as_bytes(), "kernel").unwrap(), "");
    }

    proptest! {
        #[test]
        fn any_text_can_be_read(text in any::<String>(), at in 0..400_usize) {
            drop(Primary::parse(&text));
            let mut list = PRIMARY.to_owned();
            list.insert_str(at, &text);
            drop(stanzas(list.as_bytes(), "k"));
        }
    }
}
