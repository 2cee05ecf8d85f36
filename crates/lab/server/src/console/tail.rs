//! Reads the record of a console, from a time or from its end on, and as it grows.
//!
//! A record has more than fits in memory, and its files are replaced while they are read: `current`
//! is renamed when it is full, then compressed, and the oldest files are removed. So it is read
//! piece by piece, and file after file.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;

use super::log::{ConsoleLine, current, first_of, names};

/// How much is read at once (bytes).
const PIECE: usize = 256 << 10;
/// Limit on a line (bytes), which the recorder keeps, but not the ones of an earlier Marvin.
const LINE_MAX: usize = 1 << 20;
/// The note in place of lines that are gone.
const GAP: &[u8] = b"lines are missing here: their file was removed before it was read\n";
/// How often the end of a record is looked for while its recorder goes on to the next file.
const LOOKS_MAX: usize = 100;

#[derive(Debug)]
pub struct Tail {
    folder: PathBuf,
    since_ms: i64,
    /// Full files to read before `file`, oldest first.
    waiting: VecDeque<i64>,
    /// The full file that is read now.
    full: Option<Full>,
    /// The last file, which may have become a full one meanwhile.
    file: Option<File>,
    /// The newest full file that was read, is waiting, or was too old: later ones came after
    /// `file` was opened.
    newest: Option<i64>,
    /// Whether `file` is a full one now, and is read to its end.
    is_renamed: bool,
    /// What was read of a line that is not complete.
    rest: Vec<u8>,
    /// Whether that goes on a line that was too long.
    is_cut: bool,
    /// The time of the last line.
    at_ms: i64,
}

/// A full file, compressed or not yet.
enum Full {
    Packed(Box<GzDecoder<File>>),
    Plain(File),
}

impl std::fmt::Debug for Full {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Full")
    }
}

impl Read for Full {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Packed(file) => file.read(into),
            Self::Plain(file) => file.read(into),
        }
    }
}

impl Tail {
    /// Begins with the first line from a time on, in milliseconds since 1970-01-01 UTC.
    ///
    /// # Errors
    /// If the record cannot be read; none is an empty one.
    pub fn since(folder: &Path, since_ms: i64) -> io::Result<Self> {
        match File::open(current(folder)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut tail = Self::new(folder, since_ms);
        let all = tail.turn();
        // A file ends where the next one begins.
        let ends = all.iter().skip(1).copied().chain([i64::MAX]);
        tail.waiting = all
            .iter()
            .zip(ends)
            .filter(|(_, end_ms)| *end_ms >= since_ms)
            .map(|(name, _)| *name)
            .collect();
        Ok(tail)
    }

    /// Begins at the end of the record in a directory.
    #[must_use]
    pub fn at_end(folder: &Path) -> Self {
        let mut tail = Self::new(folder, i64::MIN);
        tail.turn();
        drop(tail.skip());
        tail
    }

    fn new(folder: &Path, since_ms: i64) -> Self {
        Self {
            folder: folder.to_owned(),
            since_ms,
            waiting: VecDeque::new(),
            full: None,
            file: None,
            newest: None,
            is_renamed: false,
            rest: Vec::new(),
            is_cut: false,
            at_ms: since_ms,
        }
    }

    /// Skips the last file. Of a line that is not complete, what follows is read.
    fn skip(&mut self) -> io::Result<()> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let size = file.seek(SeekFrom::End(0))?;
        let from = size.saturating_sub(LINE_MAX as u64);
        let mut end = vec![0; usize::try_from(size - from).unwrap_or(0)];
        file.read_exact_at(&mut end, from)?;
        let begun = end
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        if let Some(line) = ConsoleLine::read(&end[begun..]) {
            (self.is_cut, self.at_ms) = (true, line.at_ms);
        }
        Ok(())
    }

    /// Returns further lines that are complete, of a bounded size; none at the end of the record.
    pub fn new_lines(&mut self) -> Vec<ConsoleLine> {
        let mut lines = Vec::new();
        let mut piece = vec![0; PIECE];
        while lines.is_empty() {
            match self.read(&mut piece) {
                0 if !self.go_on(&mut lines) => break,
                0 => {}
                count => self.split(&piece[..count], &mut lines),
            }
        }
        lines
    }

    /// Returns the line that is not complete at the end of the record.
    #[must_use]
    pub fn unfinished(&self) -> Option<ConsoleLine> {
        self.line(&self.rest)
            .filter(|line| line.at_ms >= self.since_ms)
    }

    /// Reads on in the file at hand; 0 at its end. What cannot be read ends it: a compressed file
    /// that was cut.
    fn read(&mut self, piece: &mut [u8]) -> usize {
        match (&mut self.full, &mut self.file) {
            (Some(full), _) => full.read(piece).unwrap_or(0),
            (None, Some(file)) if self.waiting.is_empty() => file.read(piece).unwrap_or(0),
            _ => 0,
        }
    }

    /// Goes on to the next file, or in the one at hand; returns whether there may be more.
    fn go_on(&mut self, lines: &mut Vec<ConsoleLine>) -> bool {
        if self.full.take().is_some() {
            self.finish(lines);
            return true;
        }
        if let Some(name) = self.waiting.pop_front() {
            self.full = self.open_full(name);
            if self.full.is_none() {
                self.note_gap(lines);
            }
            return true;
        }
        if self.is_last() {
            return false;
        }
        // What was written after it was read to its end, and before it was renamed.
        if !std::mem::replace(&mut self.is_renamed, true) {
            return true;
        }
        self.is_renamed = false;
        let Some(file) = self.file.take() else {
            self.waiting = self.turn().into();
            return self.file.is_some();
        };
        // The name that it has now: see `Log::append`.
        let name = first_of(&file).max(self.newest.map(|newest| newest + 1));
        self.waiting = self.turn().into();
        self.finish(lines);
        if self.waiting.front().copied() == name {
            self.waiting.pop_front();
        } else {
            self.note_gap(lines);
        }
        true
    }

    /// Opens the last file, and returns the full ones that are newer than the newest known one,
    /// oldest first.
    fn turn(&mut self) -> Vec<i64> {
        let path = current(&self.folder);
        let mut all = Vec::new();
        for _ in 0..LOOKS_MAX {
            self.file = File::open(&path).ok();
            all = names(&self.folder);
            // Otherwise it became a full one between these looks, or is not there yet.
            let own = self.file.as_ref().and_then(|file| inode(file.metadata()));
            if own.is_some() && own == inode(fs::metadata(&path)) {
                break;
            }
        }
        all.retain(|name| self.newest.is_none_or(|newest| *name > newest));
        self.newest = all.last().copied().or(self.newest);
        all
    }

    /// Returns whether no newer file was begun.
    fn is_last(&self) -> bool {
        let now = inode(fs::metadata(current(&self.folder)));
        now.is_none() || now == self.file.as_ref().and_then(|file| inode(file.metadata()))
    }

    /// Opens a full file, which may be compressed at this moment; `None` if it was removed.
    fn open_full(&self, name: i64) -> Option<Full> {
        let path = |ending: &str| self.folder.join(format!("{name}.{ending}"));
        let packed = || {
            File::open(path("gz"))
                .ok()
                .map(|file| Full::Packed(Box::new(GzDecoder::new(file))))
        };
        packed()
            .or_else(|| File::open(path("log")).ok().map(Full::Plain))
            .or_else(packed)
    }

    fn split(&mut self, piece: &[u8], lines: &mut Vec<ConsoleLine>) {
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            self.rest.extend_from_slice(part);
            if part.ends_with(b"\n") || self.rest.len() >= LINE_MAX {
                self.take_line(lines);
            }
        }
    }

    /// Ends the line of a file that has ended.
    fn finish(&mut self, lines: &mut Vec<ConsoleLine>) {
        if !self.rest.is_empty() {
            self.take_line(lines);
        }
        self.is_cut = false;
    }

    fn take_line(&mut self, lines: &mut Vec<ConsoleLine>) {
        let bytes = std::mem::take(&mut self.rest);
        if let Some(line) = self.line(&bytes) {
            self.at_ms = line.at_ms;
            lines.extend(Some(line).filter(|line| line.at_ms >= self.since_ms));
        }
        self.is_cut = !bytes.ends_with(b"\n");
    }

    fn line(&self, bytes: &[u8]) -> Option<ConsoleLine> {
        match bytes {
            [] => None,
            bytes if self.is_cut => Some(ConsoleLine {
                at_ms: self.at_ms,
                is_note: false,
                bytes: bytes.to_vec(),
            }),
            bytes => ConsoleLine::read(bytes),
        }
    }

    fn note_gap(&self, lines: &mut Vec<ConsoleLine>) {
        lines.push(ConsoleLine {
            at_ms: self.at_ms,
            is_note: true,
            bytes: GAP.to_vec(),
        });
    }
}

fn inode(meta: io::Result<fs::Metadata>) -> Option<u64> {
    meta.ok().map(|meta| meta.ino())
}

/// Returns whether a line stands for lines that are gone.
pub(super) fn is_gap(line: &ConsoleLine) -> bool {
    line.is_note && line.bytes == GAP
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::log::{Log, names};
    use super::{PIECE, Tail};

    fn drain(tail: &mut Tail) -> String {
        let mut text = String::new();
        loop {
            let lines = tail.new_lines();
            if lines.is_empty() {
                return text;
            }
            assert!(lines.iter().map(|line| line.bytes.len()).sum::<usize>() <= 2 * PIECE);
            for line in lines {
                text += if line.is_note { "!" } else { "" };
                text += &String::from_utf8_lossy(&line.bytes);
            }
        }
    }

    /// Writes numbered lines of a kilobyte.
    fn fill(log: &mut Log, numbers: std::ops::Range<usize>, now_ms: i64) {
        let filler = "x".repeat(1000);
        for number in numbers {
            log.write(format!("{number} {filler}\n").as_bytes(), now_ms)
                .unwrap();
        }
    }

    /// Checks that a text has all of the numbered lines, each once and in order.
    fn check(text: &str, numbers: std::ops::Range<usize>) {
        let mut found = text
            .lines()
            .map(|line| line.split(' ').next().unwrap().parse::<usize>().unwrap());
        numbers.for_each(|number| assert_eq!(found.next(), Some(number)));
        assert_eq!(found.next(), None);
    }

    #[test]
    fn several_rotations_between_looks_lose_no_line() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::open(folder.path()).unwrap();
        let mut tail = Tail::at_end(folder.path());
        fill(&mut log, 0..10, 5);
        check(&drain(&mut tail), 0..10);
        // All at one moment: names stay distinct.
        fill(&mut log, 10..20_000, 5);
        assert!(
            names(folder.path()).len() >= 3,
            "{:?}",
            names(folder.path())
        );
        check(&drain(&mut tail), 10..20_000);
        fill(&mut log, 20_000..30_000, 4);
        check(&drain(&mut tail), 20_000..30_000);
        let mut all = Tail::since(folder.path(), 0).unwrap();
        check(&drain(&mut all), 0..30_000);
        fill(&mut log, 30_000..40_000, 9);
        check(&drain(&mut all), 30_000..40_000);
    }

    #[test]
    fn removed_files_are_noted() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::open(folder.path()).unwrap();
        let mut tail = Tail::at_end(folder.path());
        fill(&mut log, 0..12_000, 5);
        for name in names(folder.path()) {
            fs::remove_file(folder.path().join(format!("{name}.gz"))).unwrap();
        }
        let text = drain(&mut tail);
        assert!(text.contains("!lines are missing here"), "{}", &text[..200]);
        assert!(
            text.trim_end()
                .lines()
                .last()
                .unwrap()
                .starts_with("11999 ")
        );
    }

    #[test]
    fn line_without_end_is_cut_and_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::open(folder.path()).unwrap();
        let mut tail = Tail::at_end(folder.path());
        let mut seen = 0;
        for _ in 0..200 {
            log.write(&[b'x'; 100_000], 7).unwrap();
            let text = drain(&mut tail);
            assert!(
                text.lines()
                    .all(|line| line.len() < 70_000 && line.ends_with(" [cut: the line goes on]"))
            );
            seen += text.bytes().filter(|byte| *byte == b'x').count();
            assert!(tail.rest.len() < 70_000);
        }
        log.write(b"\n", 7).unwrap();
        seen += drain(&mut tail)
            .bytes()
            .filter(|byte| *byte == b'x')
            .count();
        assert_eq!(seen, 200 * 100_000);
    }

    #[test]
    fn line_of_older_record_comes_in_pieces() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(
            folder.path().join("current"),
            format!("5 {}\n6 next\n", "y".repeat(5 << 20)),
        )
        .unwrap();
        let mut tail = Tail::since(folder.path(), 0).unwrap();
        let mut count = 0;
        loop {
            let lines = tail.new_lines();
            if lines.is_empty() {
                break;
            }
            assert!(
                lines
                    .iter()
                    .all(|line| line.at_ms >= 5 && line.bytes.len() <= 2 << 20)
            );
            count += lines
                .iter()
                .flat_map(|line| &line.bytes)
                .filter(|byte| **byte == b'y')
                .count();
        }
        assert_eq!(count, 5 << 20);
    }

    #[test]
    fn begun_line_goes_on_after_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::open(folder.path()).unwrap();
        log.write(b"old\n12 log", 5).unwrap();
        let mut tail = Tail::at_end(folder.path());
        log.write(b"12 in:\nnew\n", 8).unwrap();
        let lines = tail.new_lines();
        assert_eq!((lines[0].at_ms, &*lines[0].bytes), (5, &b"12 in:\n"[..]));
        assert_eq!((lines[1].at_ms, &*lines[1].bytes), (8, &b"new\n"[..]));
    }
}
