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

/// Returns the member `data.tar` of a Debian package. As deb(5) says, members whose names begin with
/// an underscore are skipped, others must stand in order, and what follows is ignored.
pub(crate) fn find_data(archive: &mut (impl Read + Seek)) -> io::Result<Option<Member>> {
    let mut magic = [0; MAGIC.len()];
    archive.read_exact(&mut magic)?;
    if magic != *MAGIC {
        return Err(damaged("it is no ar archive"));
    }
    let mut offset = MAGIC.len() as u64;
    let mut expected = ["debian-binary", "control.tar", "data.tar"].into_iter();
    let mut next = expected.next();
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
        let size = text(48..58);
        let digits = Some(&size).filter(|size| size.bytes().all(|byte| byte.is_ascii_digit()));
        let bytes: u64 = digits
            .and_then(|size| size.parse().ok())
            .ok_or_else(|| damaged("the size of a member is none"))?;
        offset += HEADER as u64;
        if !name.starts_with('_') {
            if !next.is_some_and(|start| name.starts_with(start)) {
                let name = name.escape_debug();
                return Err(damaged(&format!(
                    "it has a member `{name}` before its data.tar"
                )));
            }
            if next == Some("debian-binary") {
                check_format(archive, bytes)?;
            }
            next = expected.next();
            if next.is_none() {
                return Ok(Some(Member {
                    name,
                    offset,
                    bytes,
                }));
            }
        }
        // Members begin at even places.
        offset += bytes + bytes % 2;
    }
}

/// Refuses packages of another format than 2: their members may mean something else.
fn check_format(archive: &mut impl Read, bytes: u64) -> io::Result<()> {
    let mut format = String::new();
    archive.take(bytes.min(16)).read_to_string(&mut format)?;
    if format.starts_with("2.") {
        return Ok(());
    }
    let format = format.trim().escape_debug();
    Err(damaged(&format!(
        "its debian-binary says format `{format}`, and Marvin reads 2"
    )))
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::{MAGIC, Member, find_data};

    fn archive(members: &[(&str, &str)]) -> Cursor<Vec<u8>> {
        let mut archive = MAGIC.to_vec();
        for (name, content) in members {
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
        Cursor::new(archive)
    }

    #[test]
    fn data_is_found_behind_odd_and_extra_members() {
        let plain = [
            ("debian-binary", "2.0"),
            ("control.tar.xz", "c"),
            ("data.tar.xz", "xz"),
        ];
        let expected = Member {
            name: "data.tar.xz".to_owned(),
            offset: 194,
            bytes: 2,
        };
        assert_eq!(find_data(&mut archive(&plain)).unwrap(), Some(expected));
        assert_eq!(find_data(&mut archive(&plain[..2])).unwrap(), None);
        assert!(find_data(&mut Cursor::new(b"no archive")).is_err());
        for format in ["3.0", "", "hello"] {
            let mut other = plain.to_vec();
            other[0].1 = format;
            let error = find_data(&mut archive(&other)).unwrap_err().to_string();
            assert!(error.contains(&format!("format `{format}`")), "{error}");
        }
        for place in 1..=3 {
            let mut signed = plain.to_vec();
            signed.insert(place, ("_gpgorigin/", "odd"));
            let found = find_data(&mut archive(&signed)).unwrap().unwrap();
            assert_eq!((&*found.name, found.bytes), ("data.tar.xz", 2), "{place}");
            let mut strange = plain.to_vec();
            strange.insert(place, ("foo", "odd"));
            let found = find_data(&mut archive(&strange));
            assert_eq!(found.is_ok(), place == 3, "{place}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_to_an_end(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let archive = [MAGIC.as_slice(), &bytes].concat();
            drop(find_data(&mut Cursor::new(archive)));
        }
    }
}
