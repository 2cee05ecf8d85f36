//! The undo file: what knobs said before `marvin-agent prepare` turned them, written down before
//! the first is turned.
//!
//! A file replaces another one whole, and its last line guards it: it is read undamaged or not at
//! all. What it holds is true for one boot; after a reboot the kernel has forgotten every knob.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use wire::crc32;

const HEAD: &str = "marvin-undo 1";

/// What is to be set back.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Undo {
    /// The boot in which the knobs were read.
    pub(crate) boot: String,
    /// Paths and what they said, in the order in which they are turned.
    pub(crate) values: Vec<(String, String)>,
}

impl Undo {
    pub(crate) fn to_text(&self) -> String {
        let lines: String = self
            .values
            .iter()
            .map(|(path, value)| format!("knob {path} {value}\n"))
            .collect();
        let body = format!("{HEAD}\nboot {}\n{lines}", self.boot);
        format!("{body}end {:08x}\n", crc32(&[body.as_bytes()]))
    }

    pub(crate) fn from_text(text: &str) -> Option<Self> {
        let (body, end) = text.split_at_checked(text.rfind("end ")?)?;
        if end != format!("end {:08x}\n", crc32(&[body.as_bytes()])) {
            return None;
        }
        let mut lines = body.lines();
        let (HEAD, boot) = (lines.next()?, lines.next()?.strip_prefix("boot ")?) else {
            return None;
        };
        let knob = |line: &str| {
            let (path, value) = line.strip_prefix("knob ")?.split_once(' ')?;
            Some((path.to_owned(), value.to_owned()))
        };
        Some(Self {
            boot: boot.to_owned(),
            values: lines.map(knob).collect::<Option<_>>()?,
        })
    }

    /// Reads a file; nothing if there is none.
    pub(crate) fn read(file: &Path) -> io::Result<Option<Self>> {
        let text = match fs::read(file) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(at(file)(error)),
        };
        let damaged = || {
            io::Error::other(format!(
                "{}: the undo file is damaged; no knob was turned",
                file.display()
            ))
        };
        Self::from_text(&text).map(Some).ok_or_else(damaged)
    }

    /// Writes the file beside its place and on the disk; [`put`] puts it there.
    pub(crate) fn write_beside(&self, file: &Path) -> io::Result<()> {
        let beside = beside(file);
        let write = || {
            let mut new = File::create(&beside)?;
            new.write_all(self.to_text().as_bytes())?;
            new.sync_all()
        };
        write().map_err(at(&beside))
    }
}

/// Puts a file that is written in its place, on the disk as well.
pub(crate) fn put(file: &Path) -> io::Result<()> {
    fs::rename(beside(file), file)
        .and_then(|()| sync_folder(file))
        .map_err(at(file))
}

/// Removes the file, on the disk as well.
pub(crate) fn remove(file: &Path) -> io::Result<()> {
    fs::remove_file(file)
        .and_then(|()| sync_folder(file))
        .map_err(at(file))
}

fn beside(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".new");
    name.into()
}

fn sync_folder(file: &Path) -> io::Result<()> {
    let folder = file
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::Undo;

    fn undo() -> Undo {
        let value = |path: &str, value: &str| (path.to_owned(), value.to_owned());
        Undo {
            boot: "1f2e".into(),
            values: vec![value("/sys/a", "powersave"), value("/sys/b", "end 0 1 2")],
        }
    }

    #[test]
    fn a_file_is_read_as_written() {
        assert_eq!(Undo::from_text(&undo().to_text()), Some(undo()));
        assert_eq!(
            Undo::from_text(&Undo::default().to_text()),
            Some(Undo::default())
        );
    }

    #[test]
    fn every_damage_is_noticed() {
        let text = undo().to_text();
        for end in 0..text.len() {
            assert_eq!(Undo::from_text(&text[..end]), None, "cut at {end}");
            let mut bytes = text.clone().into_bytes();
            bytes[end] ^= 1;
            assert_eq!(
                Undo::from_text(&String::from_utf8(bytes).unwrap()),
                None,
                "damaged at {end}"
            );
        }
    }
}
