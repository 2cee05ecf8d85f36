//! Reads a tar archive as a stream: regular files, programs and links, by path below the archive's
//! top directory.
//!
//! ustar with the long names of GNU and of pax, which source packages use. The archive is
//! untrusted: paths that lead elsewhere are refused.

use std::io::{self, Read};

/// Bytes of a block.
const BLOCK: usize = 512;
/// Longest name and extended header.
const NAME_MAX: u64 = 1 << 16;
/// Largest file of a source.
const FILE_MAX: u64 = 64 << 20;

/// One file of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Its path below the top directory.
    pub(crate) path: String,
    pub(crate) kind: Kind,
    /// Its content; for a link, its target.
    pub(crate) content: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Program,
    Link,
}

/// An archive while it is read.
pub(crate) struct Archive<R> {
    input: R,
}

fn damage_error(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

impl<R: Read> Archive<R> {
    pub(crate) fn new(input: R) -> Self {
        Self { input }
    }

    /// Returns the next file; `None` at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<Entry>> {
        let mut path = None;
        let mut link = None;
        loop {
            let mut header = [0; BLOCK];
            self.input.read_exact(&mut header)?;
            if header.iter().all(|byte| *byte == 0) {
                return Ok(None);
            }
            check(&header)?;
            let size = number(&header[124..136])?;
            match header[156] {
                b'L' => path = Some(text(&self.body(size, NAME_MAX)?)),
                b'K' => link = Some(text(&self.body(size, NAME_MAX)?)),
                b'x' => {
                    let records = self.body(size, NAME_MAX)?;
                    path = pax(&records, "path").or(path);
                    link = pax(&records, "linkpath").or(link);
                }
                b'g' => drop(self.body(size, NAME_MAX)?),
                b'5' => {
                    drop(self.body(size, NAME_MAX)?);
                    (path, link) = (None, None);
                }
                kind @ (b'0' | 0 | b'2') => {
                    let is_link = kind == b'2';
                    let content = self.body(size, FILE_MAX)?;
                    let path = below_top(&path.unwrap_or_else(|| name(&header)))?;
                    let program = number(&header[100..108])? & 0o100 != 0;
                    let kind = match (is_link, program) {
                        (true, _) => Kind::Link,
                        (false, true) => Kind::Program,
                        (false, false) => Kind::File,
                    };
                    let content = if is_link {
                        link.unwrap_or_else(|| text(&header[157..257])).into_bytes()
                    } else {
                        content
                    };
                    return Ok(Some(Entry {
                        path,
                        kind,
                        content,
                    }));
                }
                _ => {
                    return Err(damage_error(
                        "it holds something that is neither file nor link",
                    ));
                }
            }
        }
    }

    /// Reads the data after a header, with its padding.
    fn body(&mut self, size: u64, most: u64) -> io::Result<Vec<u8>> {
        if size > most {
            return Err(damage_error("a file in it is too large"));
        }
        let mut content = Vec::new();
        (&mut self.input).take(size).read_to_end(&mut content)?;
        if content.len() as u64 != size {
            return Err(damage_error("it is cut short"));
        }
        let padding = (BLOCK as u64 - size % BLOCK as u64) % BLOCK as u64;
        io::copy(&mut (&mut self.input).take(padding), &mut io::sink())?;
        Ok(content)
    }
}

/// The sum of a header's bytes, with its checksum field as spaces.
fn check(header: &[u8; BLOCK]) -> io::Result<()> {
    let sum: u64 = header.iter().map(|byte| u64::from(*byte)).sum();
    let own: u64 = header[148..156].iter().map(|byte| u64::from(*byte)).sum();
    if number(&header[148..156])? == sum - own + 8 * u64::from(b' ') {
        Ok(())
    } else {
        Err(damage_error("a header's sum is wrong"))
    }
}

fn number(field: &[u8]) -> io::Result<u64> {
    let digits = text(field);
    u64::from_str_radix(digits.trim(), 8).map_err(|_| damage_error("a number in it is none"))
}

fn text(field: &[u8]) -> String {
    let end = field
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(field.len());
    String::from_utf8_lossy(&field[..end]).into_owned()
}

fn name(header: &[u8; BLOCK]) -> String {
    let name = text(&header[..100]);
    let prefix = text(&header[345..500]);
    // GNU's headers have other fields in the place of the prefix.
    if prefix.is_empty() || &header[257..263] != b"ustar\0" {
        name
    } else {
        format!("{prefix}/{name}")
    }
}

/// Returns a value of pax's records, each `LENGTH KEY=VALUE\n`.
fn pax(records: &[u8], key: &str) -> Option<String> {
    let text = String::from_utf8_lossy(records);
    text.lines().find_map(|line: &str| {
        let (_, record) = line.split_once(' ')?;
        let (name, value) = record.split_once('=')?;
        (name == key).then(|| value.to_owned())
    })
}

/// Strips the top directory off a path, and refuses paths that lead elsewhere.
fn below_top(path: &str) -> io::Result<String> {
    let path = path.strip_prefix("./").unwrap_or(path);
    let below = path.split_once('/').map_or("", |(_, below)| below);
    if path.starts_with('/')
        || below.split('/').any(|part: &str| {
            part.is_empty() || part == "." || part == ".." || part.eq_ignore_ascii_case(".git")
        })
        || below.contains(['\n', '\0', '"'])
    {
        return Err(damage_error("a path in it leads elsewhere"));
    }
    Ok(below.to_owned())
}

#[cfg(test)]
pub(crate) mod tests {
    use std::process::Command;

    use proptest::prelude::{any, prop, proptest};

    use super::{Archive, Entry, Kind, below_top};

    /// An archive of a source `top`, made by the host's tar.
    pub(crate) fn archive(files: &[(&str, &str)], arguments: &[&str]) -> Vec<u8> {
        let home = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let file = home.path().join("top").join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            match content.strip_prefix("-> ") {
                Some(target) => std::os::unix::fs::symlink(target, &file).unwrap(),
                None => std::fs::write(&file, content).unwrap(),
            }
        }
        let output = Command::new("tar")
            .args(arguments)
            .args(["-c", "top"])
            .current_dir(home.path())
            .output()
            .unwrap();
        assert!(output.status.success());
        output.stdout
    }

    fn read(bytes: &[u8]) -> std::io::Result<Vec<Entry>> {
        let mut archive = Archive::new(bytes);
        let mut entries = Vec::new();
        while let Some(entry) = archive.next()? {
            entries.push(entry);
        }
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(entries)
    }

    #[test]
    fn long_names_are_read_in_every_format() {
        let long = format!("a/{}/{}", "b".repeat(90), "c".repeat(120));
        let files = [
            ("Kbuild", "obj-y\n"),
            ("x/link", "-> ../Kbuild"),
            (&*long, "long\n"),
            ("empty", ""),
        ];
        for format in ["gnu", "pax", "ustar"] {
            // ustar has no space for such a long name.
            let files = if format == "ustar" {
                &files[..2]
            } else {
                &files[..]
            };
            let entries = read(&archive(files, &["--format", format])).unwrap();
            assert_eq!(entries.len(), files.len());
            assert!(entries.contains(&Entry {
                path: "Kbuild".into(),
                kind: Kind::File,
                content: b"obj-y\n".to_vec()
            }));
            assert!(entries.contains(&Entry {
                path: "x/link".into(),
                kind: Kind::Link,
                content: b"../Kbuild".to_vec()
            }));
            assert_eq!(
                entries
                    .iter()
                    .any(|entry| entry.path == long && entry.content == b"long\n"),
                format != "ustar"
            );
        }
    }

    #[test]
    fn damage_and_paths_that_lead_elsewhere_are_refused() {
        let whole = archive(&[("Kbuild", "x")], &[]);
        assert!(read(&whole[..700]).is_err());
        let mut other = whole.clone();
        other[520] ^= 1;
        assert!(read(&other).is_err(), "a header's sum");
        assert!(read(&[]).is_err());
        for path in [
            "top/../x",
            "/top/x",
            "top/.git/config",
            "top",
            "top/a\nb",
            "top/",
        ] {
            assert!(below_top(path).is_err(), "{path}");
        }
        assert_eq!(below_top("./top/a/b").unwrap(), "a/b");
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_read(
            bytes in prop::collection::vec(any::<u8>(), 0..2000),
            at in 0..1500_usize,
            bit in 0..8_u8,
        ) {
            drop(read(&bytes));
            let mut whole = archive_of_one();
            let at = at % whole.len();
            whole[at] ^= 1 << bit;
            drop(read(&whole));
        }
    }

    fn archive_of_one() -> Vec<u8> {
        static ONE: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
        ONE.get_or_init(|| archive(&[("Kbuild", "x")], &["-b", "1"]))
            .clone()
    }
}
