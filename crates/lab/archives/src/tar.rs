//! Reads a tar archive as a stream: files, programs, links and directories, by path.
//!
//! ustar with the long names of GNU and of pax. The archive is untrusted: paths that lead elsewhere
//! are refused. `unpack` writes the entries below a directory.

use std::io::{self, Read};

/// Bytes of a block.
const BLOCK: usize = 512;
/// Longest name and extended header.
const NAME_MAX: u64 = 1 << 16;
/// Largest file of a source or a package: the largest library of Debian 12 has a quarter of it.
const FILE_MAX: u64 = 512 << 20;

/// How an archive names its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paths {
    /// Below one top directory, which is taken off: a source. It has files and links only.
    BelowTop,
    /// From the root of a file system: a package.
    FromRoot,
}

/// One file of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its path, without `/` at either end.
    pub path: String,
    pub kind: EntryKind,
    /// Its content; for a link, its target.
    pub content: Vec<u8>,
}

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    File,
    Program,
    /// A symbolic link.
    Link,
    /// Another name of a file before it; only from a root.
    HardLink,
    /// Only from a root.
    Folder,
}

/// An archive while it is read.
#[derive(Debug)]
pub struct Archive<R> {
    input: R,
    paths: Paths,
    /// Bytes of the largest file that it may have.
    file_max: u64,
}

fn damage_error(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

fn neither_file_nor_link() -> io::Error {
    damage_error("it holds something that is neither file nor link")
}

impl<R: Read> Archive<R> {
    pub fn new(input: R, paths: Paths) -> Self {
        Self {
            input,
            paths,
            file_max: FILE_MAX,
        }
    }

    /// Returns it with another limit on the bytes of a file.
    #[must_use]
    pub fn with_file_max(self, file_max: u64) -> Self {
        Self { file_max, ..self }
    }

    /// Returns what is behind the end of the archive.
    pub fn into_inner(self) -> R {
        self.input
    }

    /// Returns the next entry; `None` at the end.
    ///
    /// # Errors
    /// If the archive is damaged, cut short, or has a path that leads elsewhere.
    pub fn next_entry(&mut self) -> io::Result<Option<Entry>> {
        let mut path = None;
        let mut link = None;
        // A file that is larger than a header can say.
        let mut real_size = None;
        loop {
            let mut header = [0; BLOCK];
            self.input.read_exact(&mut header)?;
            if header.iter().all(|byte| *byte == 0) {
                return Ok(None);
            }
            check(&header)?;
            let size = number(&header[124..136])?;
            match header[156] {
                // What size means then, readers do not agree about.
                b'L' | b'K' if real_size.is_some() => {
                    return Err(damage_error("it mixes the headers of GNU and of pax"));
                }
                b'L' => path = Some(text(&self.body(size, NAME_MAX)?)),
                b'K' => link = Some(text(&self.body(size, NAME_MAX)?)),
                b'x' => {
                    let records = self.body(size, NAME_MAX)?;
                    path = pax(&records, "path").or(path);
                    link = pax(&records, "linkpath").or(link);
                    real_size = match pax(&records, "size") {
                        Some(size) => Some(whole_number(&size, 10)?),
                        None => real_size,
                    };
                }
                b'g' => drop(self.body(size, NAME_MAX)?),
                b'5' if self.paths == Paths::BelowTop => {
                    drop(self.body(size, NAME_MAX)?);
                    (path, link) = (None, None);
                }
                b'1' if self.paths == Paths::BelowTop => return Err(neither_file_nor_link()),
                kind @ (b'0' | 0 | b'1' | b'2' | b'5') => {
                    let content = self.body(real_size.unwrap_or(size), self.file_max)?;
                    let path = path.unwrap_or_else(|| name(&header));
                    // The oldest archives have no kind for directories.
                    let is_old_folder = kind == 0 && path.ends_with('/');
                    let path = match self.paths {
                        Paths::BelowTop => below_top(&path)?,
                        Paths::FromRoot => from_root(&path)?,
                    };
                    let is_program = number(&header[100..108])? & 0o100 != 0;
                    let kind = match kind {
                        b'1' => EntryKind::HardLink,
                        b'2' => EntryKind::Link,
                        b'5' => EntryKind::Folder,
                        _ if is_old_folder && self.paths == Paths::FromRoot => EntryKind::Folder,
                        _ if is_program => EntryKind::Program,
                        _ => EntryKind::File,
                    };
                    let content = if matches!(kind, EntryKind::Link | EntryKind::HardLink) {
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
                _ => return Err(neither_file_nor_link()),
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
    // GNU's form of numbers with too many digits: a bit, and the number itself.
    if let [0x80, zeros @ .., _, _, _, _, _, _, _, _] = field
        && zeros.iter().all(|byte| *byte == 0)
    {
        let bytes = field.iter().skip(1 + zeros.len());
        return Ok(bytes.fold(0, |sum, byte| sum << 8 | u64::from(*byte)));
    }
    whole_number(text(field).trim(), 8)
}

/// Reads digits and nothing else: no sign.
fn whole_number(digits: &str, radix: u32) -> io::Result<u64> {
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = u64::from_str_radix(digits, radix)
        .ok()
        .filter(|_| is_number);
    number.ok_or_else(|| damage_error("a number in it is none"))
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

/// Returns a path from the root, without `/` at either end, and refuses paths that lead elsewhere.
pub(crate) fn from_root(path: &str) -> io::Result<String> {
    let path = path.strip_prefix("./").unwrap_or(path);
    let path = if path == "." { "" } else { path };
    let path = path.trim_start_matches('/').trim_end_matches('/');
    let leads_elsewhere = path.split('/').any(|part| part == "." || part == "..");
    if leads_elsewhere || path.contains(['\n', '\0']) {
        return Err(damage_error("a path in it leads elsewhere"));
    }
    Ok(path.to_owned())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::{any, prop, proptest};

    use super::{Archive, Entry, EntryKind, Paths, below_top, from_root};

    /// An archive of a source `top`, made by the host's tar.
    fn archive(files: &[(&str, &str)], arguments: &[&str]) -> Vec<u8> {
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
        let mut archive = Archive::new(bytes, Paths::BelowTop);
        let mut entries = Vec::new();
        while let Some(entry) = archive.next_entry()? {
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
                kind: EntryKind::File,
                content: b"obj-y\n".to_vec()
            }));
            assert!(entries.contains(&Entry {
                path: "x/link".into(),
                kind: EntryKind::Link,
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

    /// A header with its sum.
    fn header(name: &str, kind: u8, size: &[u8]) -> Vec<u8> {
        let mut header = vec![0; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[100..108].copy_from_slice(b"0000644\0");
        header[124..124 + size.len()].copy_from_slice(size);
        header[148..156].fill(b' ');
        header[156] = kind;
        let sum: u64 = header.iter().map(|byte| u64::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        header
    }

    fn block(content: &[u8]) -> Vec<u8> {
        let mut block = content.to_vec();
        block.resize(512, 0);
        block
    }

    #[test]
    fn sizes_of_every_dialect_are_read() {
        let end = vec![0; 1024];
        let content = |archive: &[Vec<u8>]| {
            let entries = read(&archive.concat())?;
            std::io::Result::Ok(entries[0].content.clone())
        };
        let pax = [
            header("x", b'x', b"11"),
            block(b"9 size=3\n"),
            header("top/a", b'0', b"0"),
            block(b"abc"),
            end.clone(),
        ];
        assert_eq!(content(&pax).unwrap(), b"abc");
        let mut large = [0; 12];
        large[0] = 0x80;
        large[11] = 3;
        let gnu = [header("top/a", b'0', &large), block(b"abc"), end.clone()];
        assert_eq!(content(&gnu).unwrap(), b"abc");
        let mixed = [
            pax[0].clone(),
            pax[1].clone(),
            header("x", b'L', b"5"),
            block(b"top/b"),
            pax[2].clone(),
            pax[3].clone(),
            end.clone(),
        ];
        assert!(content(&mixed).is_err());
        for size in [&b"+3"[..], b"-3", b"x", b""] {
            let odd = [header("top/a", b'0', size), block(b"abc"), end.clone()];
            assert!(content(&odd).is_err(), "{size:?}");
        }
    }

    #[test]
    fn directory_without_a_kind_is_one() {
        let bytes = [header("lib/", 0, b"0"), vec![0; 1024]].concat();
        let mut archive = Archive::new(&*bytes, Paths::FromRoot);
        let entry = archive.next_entry().unwrap().unwrap();
        assert_eq!((&*entry.path, entry.kind), ("lib", EntryKind::Folder));
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
        assert_eq!(from_root("./usr/bin/").unwrap(), "usr/bin");
        assert_eq!(from_root("./").unwrap(), "");
        assert_eq!(from_root(".").unwrap(), "");
        assert_eq!(from_root("./.pam").unwrap(), ".pam");
        assert_eq!(from_root(".PKGINFO").unwrap(), ".PKGINFO");
        assert!(from_root("./usr/../../etc/passwd").is_err());
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
