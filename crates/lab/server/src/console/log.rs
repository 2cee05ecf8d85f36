//! The recorded console of a server: files of lines with time stamps, bounded in size.
//!
//! `current` is what is written now; full ones are compressed and named after the time of their
//! first line, in milliseconds since 1970-01-01 UTC: `1795516953123.gz`. A line is that time, a
//! space, and what the server printed; with `!` instead of the space it is a note of the recorder:
//! connected, or why not. `tail` reads them.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

/// A file is full at this size (bytes).
const FULL: u64 = 4 << 20;
/// Limit on all compressed files of a server (bytes); the oldest are removed.
const ALL_MAX: u64 = 64 << 20;
/// Limit on a line (bytes): what follows is recorded as further lines.
const LINE_MAX: usize = 64 << 10;
/// The end of a line that was cut.
const CUT: &[u8] = b" [cut: the line goes on]\n";

/// A line of a console.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsoleLine {
    /// When its first byte came, in milliseconds since 1970-01-01 UTC.
    pub at_ms: i64,
    /// Whether it is a note of the recorder.
    pub is_note: bool,
    /// Its bytes, with their end if that came.
    pub bytes: Vec<u8>,
}

impl ConsoleLine {
    pub(super) fn read(line: &[u8]) -> Option<Self> {
        let at = line.iter().position(|byte| !byte.is_ascii_digit())?;
        let at_ms = std::str::from_utf8(&line[..at]).ok()?.parse().ok()?;
        let is_note = match line[at] {
            b' ' => false,
            b'!' => true,
            _ => return None,
        };
        Some(Self {
            at_ms,
            is_note,
            bytes: line[at + 1..].to_vec(),
        })
    }
}

#[derive(Debug)]
pub(super) struct Log {
    folder: PathBuf,
    file: File,
    size: u64,
    /// When the first line of the file came.
    first_ms: Option<i64>,
    is_in_line: bool,
    /// What the line has so far (bytes).
    line: usize,
}

impl Log {
    /// Goes on with the record of a directory, or begins one.
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        // What a killed recorder has left.
        for (first_ms, path) in files(folder, "log") {
            compress(folder, &path, first_ms)?;
        }
        let path = current(folder);
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(&path)?;
        let size = file.metadata()?.len();
        let first_ms = first_of(&file);
        let mut last = [b'\n'];
        if size > 0 {
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
        }
        Ok(Self {
            folder: folder.to_owned(),
            file,
            size,
            first_ms,
            is_in_line: last != *b"\n",
            line: 0,
        })
    }

    /// Writes what a server printed.
    pub(super) fn write(&mut self, bytes: &[u8], now_ms: i64) -> io::Result<()> {
        let mut text = Vec::with_capacity(bytes.len() + 64);
        for mut part in bytes.split_inclusive(|byte| *byte == b'\n') {
            while !part.is_empty() {
                if !self.is_in_line {
                    text.extend(format!("{now_ms} ").bytes());
                    self.line = 0;
                }
                let (taken, rest) = part.split_at(part.len().min(LINE_MAX - self.line));
                text.extend_from_slice(taken);
                self.line += taken.len();
                self.is_in_line = !taken.ends_with(b"\n");
                if self.is_in_line && self.line >= LINE_MAX {
                    text.extend_from_slice(CUT);
                    self.is_in_line = false;
                }
                part = rest;
            }
        }
        self.append(&text, now_ms)
    }

    pub(super) fn note(&mut self, text: &str, now_ms: i64) -> io::Result<()> {
        let end = if std::mem::take(&mut self.is_in_line) {
            "\n"
        } else {
            ""
        };
        self.append(
            format!("{end}{now_ms}!{}\n", model::sanitize_line(text)).as_bytes(),
            now_ms,
        )
    }

    fn append(&mut self, text: &[u8], now_ms: i64) -> io::Result<()> {
        self.first_ms.get_or_insert(now_ms);
        self.file.write_all(text)?;
        self.size += text.len() as u64;
        // Lines have a limit, so one that goes on ends soon.
        if self.size < FULL || self.is_in_line {
            return Ok(());
        }
        let current = current(&self.folder);
        let mut first_ms = self.first_ms.unwrap_or(now_ms);
        // A name of its own, also if the clock was set back or stood still.
        if let Some(last_ms) = names(&self.folder).last() {
            first_ms = first_ms.max(last_ms + 1);
        }
        let full = self.folder.join(format!("{first_ms}.log"));
        fs::rename(&current, &full)?;
        self.file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(&current)?;
        (self.size, self.first_ms, self.is_in_line) = (0, None, false);
        compress(&self.folder, &full, first_ms)?;
        prune(&self.folder)
    }
}

pub(super) fn current(folder: &Path) -> PathBuf {
    folder.join("current")
}

/// Returns the time of the first line of a file.
pub(super) fn first_of(file: &File) -> Option<i64> {
    let mut head = [0; 32];
    let count = file.read_at(&mut head, 0).ok()?;
    ConsoleLine::read(&head[..count]).map(|line| line.at_ms)
}

/// Returns the names of the full files, compressed or not yet, oldest first.
pub(super) fn names(folder: &Path) -> Vec<i64> {
    let names: BTreeSet<i64> = ["gz", "log"]
        .iter()
        .flat_map(|ending| files(folder, ending))
        .map(|(name, _)| name)
        .collect();
    names.into_iter().collect()
}

/// Returns the files of a record with this ending, oldest first.
fn files(folder: &Path, ending: &str) -> Vec<(i64, PathBuf)> {
    let mut all: Vec<(i64, PathBuf)> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|found| found == ending))
        .filter_map(|path| Some((path.file_stem()?.to_str()?.parse().ok()?, path)))
        .collect();
    all.sort();
    all
}

/// Replaces a full file by a compressed one.
fn compress(folder: &Path, full: &Path, first_ms: i64) -> io::Result<()> {
    let part = folder.join("part");
    let mut encoder = GzEncoder::new(File::create(&part)?, Compression::default());
    io::copy(&mut File::open(full)?, &mut encoder)?;
    encoder.finish()?.sync_all()?;
    fs::rename(&part, folder.join(format!("{first_ms}.gz")))?;
    fs::remove_file(full)
}

/// Removes the oldest files beyond the limit.
fn prune(folder: &Path) -> io::Result<()> {
    let mut left = ALL_MAX;
    for (_, path) in files(folder, "gz").into_iter().rev() {
        let pruned = fs::metadata(&path).and_then(|found| match left.checked_sub(found.len()) {
            Some(rest) => {
                left = rest;
                Ok(())
            }
            None => fs::remove_file(&path),
        });
        match pruned {
            // `marvin gc` deleted it meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            pruned => pruned?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::tail::Tail;
    use super::{ConsoleLine, FULL, Log, files};

    fn text(lines: &[ConsoleLine]) -> String {
        lines
            .iter()
            .map(|line| {
                let mark = if line.is_note { '!' } else { ' ' };
                format!(
                    "{}{mark}{}",
                    line.at_ms,
                    String::from_utf8_lossy(&line.bytes)
                )
            })
            .collect()
    }

    /// Returns all lines, an unfinished one last.
    fn lines_since(folder: &Path, since_ms: i64) -> Vec<ConsoleLine> {
        let mut tail = Tail::since(folder, since_ms).unwrap();
        let mut all = new_lines(&mut tail);
        all.extend(tail.unfinished());
        all
    }

    fn new_lines(tail: &mut Tail) -> Vec<ConsoleLine> {
        std::iter::from_fn(|| Some(tail.new_lines()).filter(|lines| !lines.is_empty()))
            .flatten()
            .collect()
    }

    #[test]
    fn lines_have_the_time_of_their_first_byte() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::open(folder.path()).unwrap();
        let mut tail = Tail::at_end(folder.path());
        log.note("connected", 10).unwrap();
        log.write(b"[ 0.0] Linux\r\nlog", 20).unwrap();
        assert_eq!(text(&tail.new_lines()), "10!connected\n20 [ 0.0] Linux\r\n");
        log.write(b"in: \xff", 30).unwrap();
        log.note("lost", 40).unwrap();
        assert_eq!(text(&tail.new_lines()), "20 login: \u{fffd}\n40!lost\n");
        log.write(b"half", 50).unwrap();
        // It was killed, and goes on.
        drop(log);
        let mut log = Log::open(folder.path()).unwrap();
        log.write(b" a line\n2 3\n", 60).unwrap();
        assert_eq!(text(&tail.new_lines()), "50 half a line\n60 2 3\n");
        assert_eq!(
            text(&lines_since(folder.path(), 40)),
            "40!lost\n50 half a line\n60 2 3\n"
        );
    }

    #[test]
    fn full_files_are_compressed_and_old_ones_removed() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::open(folder.path()).unwrap();
        let mut tail = Tail::at_end(folder.path());
        let line = "x".repeat(1023) + "\n";
        let mut at = 0;
        let mut seen = 0;
        for _ in 0..3 * FULL / 1024 {
            at += 1;
            log.write(line.as_bytes(), at).unwrap();
            if at % 1000 == 0 {
                seen += new_lines(&mut tail).len();
            }
        }
        seen += new_lines(&mut tail).len();
        assert_eq!(seen as i64, at, "no line was missed between two files");
        assert!(files(folder.path(), "gz").len() >= 2 && files(folder.path(), "log").is_empty());
        assert_eq!(lines_since(folder.path(), 0).len() as i64, at);
        assert_eq!(lines_since(folder.path(), at).len(), 1);
        // As if there were too much.
        let oldest = files(folder.path(), "gz").remove(0).1;
        std::fs::File::options()
            .write(true)
            .open(&oldest)
            .unwrap()
            .set_len(super::ALL_MAX)
            .unwrap();
        super::prune(folder.path()).unwrap();
        assert!(!oldest.exists() && !files(folder.path(), "gz").is_empty());
    }

    #[test]
    fn killed_rotation_is_finished() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("5.log"), "5 old\n").unwrap();
        std::fs::write(folder.path().join("part"), "half of it").unwrap();
        assert_eq!(text(&lines_since(folder.path(), 0)), "5 old\n");
        let mut log = Log::open(folder.path()).unwrap();
        log.write(b"new\n", 9).unwrap();
        assert_eq!(text(&lines_since(folder.path(), 0)), "5 old\n9 new\n");
        assert_eq!(files(folder.path(), "gz").len(), 1);
    }
}
