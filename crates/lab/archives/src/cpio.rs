//! Reads the cpio archive of an rpm package as a stream: files, programs, links and directories, by
//! path.
//!
//! The formats are `070701` and `070702` of cpio(5), and `07070X` of rpm for packages with large
//! files, whose entries name a place in the list of the package's header. The archive is untrusted:
//! paths that lead elsewhere are refused.

use std::collections::{HashMap, VecDeque};
use std::io::{self, Read};

use crate::tar::{Entry, EntryKind, from_root};

/// Longest name.
const NAME_MAX: u64 = 1 << 16;
/// Largest file, as in other packages.
const FILE_MAX: u64 = 512 << 20;
const TRAILER: &str = "TRAILER!!!";
/// Kinds of files in a mode.
const KIND: u64 = 0o170_000;
const FOLDER: u64 = 0o040_000;
const REGULAR: u64 = 0o100_000;
const LINK: u64 = 0o120_000;

/// A file as the package's header lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListedFile {
    pub(crate) path: String,
    pub(crate) mode: u64,
    pub(crate) bytes: u64,
}

/// An archive while it is read.
pub(crate) struct Archive<'a, R> {
    input: R,
    /// Bytes read.
    offset: u64,
    listed: &'a [ListedFile],
    /// Names of a file whose content comes with the last of them, by its inode.
    names: HashMap<u64, Vec<String>>,
    ready: VecDeque<Entry>,
}

/// What stands in front of a file.
struct Header {
    path: String,
    mode: u64,
    bytes: u64,
    inode: u64,
    links: u64,
}

impl<'a, R: Read> Archive<'a, R> {
    pub(crate) fn new(input: R, listed: &'a [ListedFile]) -> Self {
        Self {
            input,
            offset: 0,
            listed,
            names: HashMap::new(),
            ready: VecDeque::new(),
        }
    }

    /// Returns the next entry; `None` at the end.
    pub(crate) fn next_entry(&mut self) -> io::Result<Option<Entry>> {
        loop {
            if let Some(entry) = self.ready.pop_front() {
                return Ok(Some(entry));
            }
            let header = self.header()?;
            if header.path == TRAILER {
                return Ok(None);
            }
            let path = from_root(&header.path)?;
            let content = self.body(header.bytes, FILE_MAX)?;
            let kind = match header.mode & KIND {
                FOLDER => EntryKind::Folder,
                LINK => EntryKind::Link,
                REGULAR if header.mode & 0o100 != 0 => EntryKind::Program,
                REGULAR => EntryKind::File,
                _ => return Err(damaged("it holds something that is neither file nor link")),
            };
            let is_file = matches!(kind, EntryKind::File | EntryKind::Program);
            if is_file && header.links > 1 {
                let names = self.names.entry(header.inode).or_default();
                if header.bytes == 0 && (names.len() as u64) < header.links - 1 {
                    names.push(path);
                    continue;
                }
                for name in names.drain(..) {
                    self.ready.push_back(Entry {
                        path: name,
                        kind: EntryKind::HardLink,
                        content: path.clone().into_bytes(),
                    });
                }
            }
            return Ok(Some(Entry {
                path,
                kind,
                content,
            }));
        }
    }

    fn header(&mut self) -> io::Result<Header> {
        let magic = self.exactly(6)?;
        match &*magic {
            b"070701" | b"070702" => self.whole_header(),
            b"07070X" => {
                let number = self.exactly(8)?;
                let index = hexadecimal(&number)?;
                self.skip_padding()?;
                let listed = usize::try_from(index)
                    .ok()
                    .and_then(|index| self.listed.get(index))
                    .ok_or_else(|| damaged("an entry is not in the package's list of files"))?;
                Ok(Header {
                    path: listed.path.clone(),
                    mode: listed.mode,
                    bytes: listed.bytes,
                    inode: 0,
                    links: 1,
                })
            }
            _ => Err(damaged("it is no cpio archive of a known format")),
        }
    }

    fn whole_header(&mut self) -> io::Result<Header> {
        let fields = self.exactly(104)?;
        let field = |number: usize| hexadecimal(&fields[8 * number..8 * number + 8]);
        let name = self.body_unpadded(field(11)?, NAME_MAX)?;
        self.skip_padding()?;
        let end = name.iter().position(|byte| *byte == 0);
        let end = end.unwrap_or(name.len());
        Ok(Header {
            path: String::from_utf8_lossy(&name[..end]).into_owned(),
            mode: field(1)?,
            bytes: field(6)?,
            inode: field(0)?,
            links: field(4)?,
        })
    }

    fn exactly(&mut self, bytes: usize) -> io::Result<Vec<u8>> {
        let mut read = vec![0; bytes];
        self.input.read_exact(&mut read)?;
        self.offset += bytes as u64;
        Ok(read)
    }

    fn body(&mut self, bytes: u64, most: u64) -> io::Result<Vec<u8>> {
        let content = self.body_unpadded(bytes, most)?;
        self.skip_padding()?;
        Ok(content)
    }

    fn body_unpadded(&mut self, bytes: u64, most: u64) -> io::Result<Vec<u8>> {
        if bytes > most {
            return Err(damaged("a file in it is too large"));
        }
        let mut content = Vec::new();
        (&mut self.input).take(bytes).read_to_end(&mut content)?;
        if content.len() as u64 != bytes {
            return Err(damaged("it is cut short"));
        }
        self.offset += bytes;
        Ok(content)
    }

    /// Entries and contents begin at multiples of four.
    fn skip_padding(&mut self) -> io::Result<()> {
        let padding = (4 - self.offset % 4) % 4;
        self.exactly(usize::try_from(padding).unwrap_or_default())
            .map(drop)
    }
}

fn hexadecimal(digits: &[u8]) -> io::Result<u64> {
    std::str::from_utf8(digits)
        .ok()
        .and_then(|text| u64::from_str_radix(text, 16).ok())
        .ok_or_else(|| damaged("a number in it is none"))
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fmt::Write as _;

    use proptest::prelude::*;

    use super::{Archive, ListedFile};
    use crate::tar::{Entry, EntryKind};

    /// A file to write: path, mode, links, inode, content.
    pub(crate) struct File<'a> {
        pub(crate) path: &'a str,
        pub(crate) mode: u32,
        pub(crate) links: u32,
        pub(crate) inode: u32,
        pub(crate) content: &'a [u8],
    }

    pub(crate) fn file<'a>(path: &'a str, mode: u32, content: &'a [u8]) -> File<'a> {
        File {
            path,
            mode,
            links: 1,
            inode: 1,
            content,
        }
    }

    pub(crate) fn write(magic: &str, files: &[File<'_>]) -> Vec<u8> {
        let trailer = file(super::TRAILER, 0, b"");
        let mut archive = Vec::new();
        for one in files.iter().chain([&trailer]) {
            let mut header = magic.to_owned();
            let fields = [
                one.inode,
                one.mode,
                0,
                0,
                one.links,
                0,
                u32::try_from(one.content.len()).unwrap(),
                0,
                0,
                0,
                0,
                u32::try_from(one.path.len()).unwrap() + 1,
                0,
            ];
            for field in fields {
                write!(header, "{field:08x}").unwrap();
            }
            archive.extend(header.bytes());
            archive.extend(one.path.bytes());
            archive.push(0);
            archive.resize(archive.len().next_multiple_of(4), 0);
            archive.extend(one.content);
            archive.resize(archive.len().next_multiple_of(4), 0);
        }
        archive
    }

    fn read(bytes: &[u8], listed: &[ListedFile]) -> std::io::Result<Vec<Entry>> {
        let mut archive = Archive::new(bytes, listed);
        let mut entries = Vec::new();
        while let Some(entry) = archive.next_entry()? {
            entries.push(entry);
        }
        Ok(entries)
    }

    fn paths(entries: &[Entry]) -> Vec<(&str, EntryKind, &[u8])> {
        entries
            .iter()
            .map(|entry| (&*entry.path, entry.kind, &*entry.content))
            .collect()
    }

    #[test]
    fn files_links_and_twins_are_read() {
        let twin = |path, content| File {
            links: 2,
            inode: 7,
            ..file(path, 0o100_644, content)
        };
        let files = [
            file("./lib", 0o040_755, b""),
            file("./lib/a", 0o100_755, b"odd"),
            file("./lib/b", 0o120_777, b"a"),
            twin("./lib/c", b""),
            twin("./lib/d", b"twins"),
        ];
        for magic in ["070701", "070702"] {
            let entries = read(&write(magic, &files), &[]).unwrap();
            assert_eq!(
                paths(&entries),
                [
                    ("lib", EntryKind::Folder, &b""[..]),
                    ("lib/a", EntryKind::Program, b"odd"),
                    ("lib/b", EntryKind::Link, b"a"),
                    ("lib/d", EntryKind::File, b"twins"),
                    ("lib/c", EntryKind::HardLink, b"lib/d"),
                ]
            );
        }
        read(&write("070707", &files), &[]).unwrap_err();
        read(&write("070701", &[file("../x", 0o100_644, b"")]), &[]).unwrap_err();
    }

    #[test]
    fn entries_without_names_are_those_of_the_header() {
        let listed = [ListedFile {
            path: "/boot/vmlinuz".to_owned(),
            mode: 0o100_644,
            bytes: 5,
        }];
        let mut archive = b"07070X00000000\0\0image\0\0\0".to_vec();
        archive.extend(write("070701", &[]));
        let entries = read(&archive, &listed).unwrap();
        assert_eq!(
            paths(&entries),
            [("boot/vmlinuz", EntryKind::File, &b"image"[..])]
        );
        let error = read(&archive, &[]).unwrap_err();
        assert!(error.to_string().contains("not in the package's list"));
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_read(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            drop(read(&bytes, &[]));
            drop(read(&[b"070701", &*bytes].concat(), &[]));
        }
    }
}
