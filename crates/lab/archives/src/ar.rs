//! Reads the ar archive that a Debian package is (deb(5)): names and places of its members.

use std::io::{self, Read, Seek, SeekFrom};

const MAGIC: &[u8; 8] = b"!<arch>\n";
/// Bytes before a member: name, time, owner, group, mode, size, and two that never change.
const HEADER: usize = 60;

/// A member of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) name: String,
    /// The place of its content in the archive.
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

/// Returns the first member whose name begins so.
pub(crate) fn find(archive: &mut (impl Read + Seek), start: &str) -> io::Result<Option<Member>> {
    let mut magic = [0; MAGIC.len()];
    archive.read_exact(&mut magic)?;
    if magic != *MAGIC {
        return Err(damaged("it is no ar archive"));
    }
    let mut offset = MAGIC.len() as u64;
    loop {
        let mut header = [0; HEADER];
        archive.seek(SeekFrom::Start(offset))?;
        match archive.read_exact(&mut header) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            result => result?,
        }
        if header[58..] != *b"`\n" {
            return Err(damaged("the header of a member is none"));
        }
        let text = |range: std::ops::Range<usize>| {
            String::from_utf8_lossy(&header[range]).trim().to_owned()
        };
        let name = text(0..16).trim_end_matches('/').to_owned();
        let bytes: u64 = text(48..58)
            .parse()
            .map_err(|_| damaged("the size of a member is none"))?;
        offset += HEADER as u64;
        if name.starts_with(start) {
            return Ok(Some(Member {
                name,
                offset,
                bytes,
            }));
        }
        // Members begin at even places.
        offset += bytes + bytes % 2;
    }
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::{MAGIC, Member, find};

    #[test]
    fn members_are_found_behind_odd_ones() {
        let mut archive = MAGIC.to_vec();
        for (name, content) in [("debian-binary", "2.0"), ("data.tar.xz", "xz")] {
            let size = content.len();
            archive.extend(
                format!(
                    "{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n",
                    0, 0, 0, 100_644
                )
                .bytes(),
            );
            archive.extend(content.bytes());
            if size % 2 == 1 {
                archive.push(b'\n');
            }
        }
        let found = find(&mut Cursor::new(&archive), "data.tar").unwrap();
        let expected = Member {
            name: "data.tar.xz".to_owned(),
            offset: 132,
            bytes: 2,
        };
        assert_eq!(found, Some(expected));
        assert_eq!(find(&mut Cursor::new(&archive), "control").unwrap(), None);
        assert!(find(&mut Cursor::new(b"no archive"), "x").is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_to_an_end(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let archive = [MAGIC.as_slice(), &bytes].concat();
            drop(find(&mut Cursor::new(archive), "data"));
        }
    }
}
