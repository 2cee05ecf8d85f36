//! Reads a file with patches: git splits mailboxes and decodes mails, as for `git am`; other files
//! are a diff with words.
//!
//! `git mailsplit` and `git mailinfo` need no repository. They run in a scratch directory and read
//! no configuration, so that charsets, transfer encodings and attachments have the same result
//! everywhere.

use std::borrow::Cow;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::thread::{self, Mail};
use super::{
    BYTES_MAX, FILE_BYTES_MAX, PATCHES_MAX, Patch, PatchesError, RawMessage, diff, identifier,
    message,
};
use crate::source::Program;
use crate::source::program;
use crate::{KernelError, bounded};

/// How long git may take for a file.
const DEADLINE_S: u64 = 120;

/// Where a tar archive has its magic (POSIX.1-1988, ustar interchange format).
const TAR_MAGIC_AT: usize = 257;

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// One mail or several.
    Mails,
    /// A diff, perhaps with words before.
    Diff,
}

/// Reads files one after the other, up to the limits of all.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    scratch: &'a Path,
    /// What the user named.
    place: &'a Path,
    bytes: u64,
    patches: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(scratch: &'a Path, place: &'a Path) -> Self {
        Self {
            scratch,
            place,
            bytes: 0,
            patches: 0,
        }
    }

    /// Reads the patches of a file. A cover letter is a patch without files.
    pub(super) fn read(&mut self, file: &Path) -> Result<Vec<Patch>, PatchesError> {
        let bytes = self.content(file)?;
        let patches = match kind(&bytes) {
            Kind::Mails => thread::select(self.mails(file, &bytes)?),
            Kind::Diff => vec![plain_patch(file, &bytes)?],
        };
        if !patches
            .iter()
            .any(|patch| !patch.files.is_empty() || is_cover(patch))
        {
            let detail = "it has no diff; name a patch, a mailbox with patches, or remove the file"
                .to_owned();
            return Err(PatchesError::NoPatch {
                place: file.to_owned(),
                detail,
            });
        }
        Ok(patches
            .into_iter()
            .filter(|patch| !patch.files.is_empty() || is_cover(patch))
            .collect())
    }

    /// Returns the text of a file that is one mail, decoded, or of one without headers.
    pub(super) fn read_text(&mut self, file: &Path) -> Result<String, PatchesError> {
        let bytes = self.content(file)?;
        let text = match kind(&bytes) {
            Kind::Diff => bytes,
            Kind::Mails => match self.decode(file, &bytes, "--no-scissors")? {
                Some(decoded) => [decoded.body, decoded.rest].concat(),
                None => return Err(no_mail(file, 1)),
            },
        };
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Reads files that are the mails of one mailbox.
    pub(super) fn read_together(&mut self, files: &[PathBuf]) -> Result<Vec<Patch>, PatchesError> {
        let mut mails = Vec::new();
        for file in files {
            let bytes = self.content(file)?;
            mails.extend(self.mails(file, &bytes)?);
        }
        Ok(thread::select(mails))
    }

    /// Returns the unpacked content of a file.
    fn content(&mut self, file: &Path) -> Result<Vec<u8>, PatchesError> {
        let large = || {
            let limit = format!(
                "{} has more than {} MiB",
                file.display(),
                FILE_BYTES_MAX >> 20
            );
            PatchesError::TooMuch {
                place: self.place.to_owned(),
                limit,
            }
        };
        let unreadable = |detail: String| PatchesError::Unreadable {
            file: file.to_owned(),
            detail,
        };
        let opened = bounded::open(file, FILE_BYTES_MAX).and_then(bounded::Opened::read);
        let mut bytes = opened.map_err(|fault| match fault {
            bounded::ReadFault::Large => large(),
            other => unreadable(other.to_string()),
        })?;
        if bytes.starts_with(b"\x1f\x8b") {
            let mut unpacked = Vec::new();
            let most = FILE_BYTES_MAX + 1;
            // A mailbox of lore.kernel.org may have several members.
            let read = flate2::read::MultiGzDecoder::new(&*bytes)
                .take(most)
                .read_to_end(&mut unpacked);
            read.map_err(|error| unreadable(format!("gzip says `{error}`")))?;
            if unpacked.len() as u64 == most {
                return Err(large());
            }
            bytes = unpacked;
        }
        if bytes
            .get(TAR_MAGIC_AT..)
            .is_some_and(|rest| rest.starts_with(b"ustar"))
        {
            let what = "it is a tar archive: unpack it and name the folder";
            return Err(unreadable(what.to_owned()));
        }
        self.bytes += bytes.len() as u64;
        if self.bytes > BYTES_MAX {
            let limit = format!("they have more than {} MiB", BYTES_MAX >> 20);
            return Err(PatchesError::TooMuch {
                place: self.place.to_owned(),
                limit,
            });
        }
        // Of Windows' editors.
        Ok(bytes
            .strip_prefix(b"\xef\xbb\xbf")
            .map(<[u8]>::to_vec)
            .unwrap_or(bytes))
    }

    /// Has git split and decode mails.
    fn mails(&mut self, file: &Path, bytes: &[u8]) -> Result<Vec<Mail>, PatchesError> {
        let lines = bytes.split(|byte| *byte == b'\n');
        self.patches += lines
            .filter(|line| line.starts_with(b"From "))
            .count()
            .max(1);
        if self.patches > PATCHES_MAX {
            let limit = format!("they have more than {PATCHES_MAX} mails");
            return Err(PatchesError::TooMuch {
                place: self.place.to_owned(),
                limit,
            });
        }
        let bytes = &with_from_lines(bytes);
        let folder = self.scratch.join("mails");
        drop(fs::remove_dir_all(&folder));
        fs::create_dir(&folder).map_err(KernelError::io(&folder))?;
        // A mail that travelled with carriage returns has one in each line; a patch of a file that
        // has some keeps them.
        let crs = if has_crs(bytes) {
            &[][..]
        } else {
            &["--keep-cr"]
        };
        let program = self
            .git()
            .args(["mailsplit", "-d8", "-b", "--mboxrd", "-omails"])
            .args(crs);
        let ended = program.fed(|input| input.write_all(bytes).map_err(KernelError::io(file)))?;
        if ended.code != Some(0) {
            return Err(PatchesError::Mail {
                file: file.to_owned(),
                number: 1,
                detail: ended.reason(),
            });
        }
        let mut raw = Vec::new();
        for number in 1.. {
            let path = folder.join(format!("{number:08}"));
            match fs::read(&path) {
                Ok(bytes) => raw.push(bytes),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => break,
                Err(error) => return Err(KernelError::io(&path)(error).into()),
            }
        }
        // Replies are many in a thread, and are not wanted if there are patches.
        let first = self.decoded(file, &raw, |bytes| !is_reply(bytes))?;
        if first.iter().any(|mail| !mail.patch.files.is_empty()) {
            return Ok(first);
        }
        self.decoded(file, &raw, |_| true)
    }

    /// Decodes some of the mails.
    fn decoded(
        &self,
        file: &Path,
        raw: &[Vec<u8>],
        is_wanted: impl Fn(&Vec<u8>) -> bool,
    ) -> Result<Vec<Mail>, PatchesError> {
        let mut mails = Vec::new();
        for (number, bytes) in raw.iter().enumerate().filter(|(_, bytes)| is_wanted(bytes)) {
            mails.push(self.mail(file, number + 1, bytes)?);
        }
        Ok(mails)
    }

    /// Has git decode a mail.
    fn mail(&self, file: &Path, number: usize, bytes: &[u8]) -> Result<Mail, PatchesError> {
        let headers = message::headers(bytes);
        let is_reply = message::header(&headers, "subject")
            .is_some_and(|subject| message::parse_subject(subject).is_reply);
        // As for `git am`, except in a reply: its patch is behind the scissors.
        let scissors = if is_reply {
            "--scissors"
        } else {
            "--no-scissors"
        };
        let decoded = self.decode(file, bytes, scissors)?;
        let Decoded { head, body, rest } = decoded.ok_or_else(|| no_mail(file, number))?;
        let body = String::from_utf8_lossy(&body).replace('\r', "");
        let mut raw = RawMessage {
            commit: format_patch_commit(bytes),
            base: message::stated_base(body.as_bytes()).or_else(|| message::stated_base(&rest)),
            body,
            ..RawMessage::default()
        };
        fill(&mut raw, &head, headers);
        if message::parse_subject(&raw.subject).text.is_empty() {
            raw.subject = format!("{}{}", raw.subject, stem(file));
        }
        let start = diff::start(&rest).unwrap_or(rest.len());
        let (notes, diff) = rest.split_at(start);
        raw.notes = notes_without_statistics(&String::from_utf8_lossy(notes));
        let parents = parents(&raw.headers);
        let patch = Patch::new(raw, without_transport_crs(diff));
        Ok(Mail {
            parents,
            is_reply,
            patch,
        })
    }

    /// Has git decode a mail into its parts; `None` if it is none.
    fn decode(
        &self,
        file: &Path,
        bytes: &[u8],
        scissors: &str,
    ) -> Result<Option<Decoded>, PatchesError> {
        // Without `-n`, git fails for a charset that it does not know.
        for charset in ["-u", "-n"] {
            let program = self
                .git()
                .args(["mailinfo", "-k", scissors, charset, "message", "diff"]);
            let ended =
                program.fed(|input| input.write_all(bytes).map_err(KernelError::io(file)))?;
            if ended.code != Some(0) {
                continue;
            }
            let [body, rest] = ["message", "diff"].map(|name| self.scratch.join(name));
            return Ok(Some(Decoded {
                head: ended.text(),
                body: fs::read(&body).map_err(KernelError::io(&body))?,
                rest: fs::read(&rest).map_err(KernelError::io(&rest))?,
            }));
        }
        Ok(None)
    }

    /// Returns git without configuration, outside any repository.
    fn git(&self) -> Program {
        let ceiling = self.scratch.parent().unwrap_or(self.scratch);
        program(self.scratch)
            .args(["-c", "mailinfo.quotedCr=nowarn"])
            .variable("GIT_CEILING_DIRECTORIES", ceiling)
            .variable("GIT_CONFIG_GLOBAL", "/dev/null")
            .variable("GIT_CONFIG_NOSYSTEM", "1")
            .deadline_s(DEADLINE_S)
    }
}

/// A mail as `git mailinfo` decodes it.
struct Decoded {
    /// Author, subject and date, as it prints them.
    head: String,
    /// The words before a line `---` or a diff.
    body: Vec<u8>,
    /// All after them.
    rest: Vec<u8>,
}

fn no_mail(file: &Path, number: usize) -> PatchesError {
    PatchesError::Mail {
        file: file.to_owned(),
        number,
        detail: "it is no mail".to_owned(),
    }
}

/// Gives the lines that separate mails a date where they have none: git takes them for text then.
fn with_from_lines(bytes: &[u8]) -> Cow<'_, [u8]> {
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let is_separator = |at: usize| {
        let begins = at == 0 || lines[at - 1].trim_ascii().is_empty();
        let header = lines.get(at + 1).copied().unwrap_or_default();
        let name = header
            .split(|byte| *byte == b':')
            .next()
            .unwrap_or_default();
        let is_header = name.len() < header.len()
            && !name.is_empty()
            && name
                .iter()
                .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-');
        begins && is_header && lines[at].starts_with(b"From ") && !lines[at].contains(&b':')
    };
    if !(0..lines.len()).any(is_separator) {
        return Cow::Borrowed(bytes);
    }
    let mut text = Vec::with_capacity(bytes.len());
    for (at, line) in lines.iter().enumerate() {
        if is_separator(at) {
            text.extend_from_slice(b"From mailbox Mon Sep 17 00:00:00 2001\n");
        } else {
            text.extend_from_slice(line);
        }
    }
    Cow::Owned(text)
}

fn is_reply(bytes: &[u8]) -> bool {
    let headers = message::headers(bytes);
    message::header(&headers, "subject")
        .is_some_and(|subject| message::parse_subject(subject).is_reply)
}

fn is_cover(patch: &Patch) -> bool {
    patch.position.is_some_and(|position| position.number == 0)
}

/// Returns what a file is, as `git am` decides: a mail begins with `From ` or with headers.
fn kind(bytes: &[u8]) -> Kind {
    if bytes.trim_ascii_start().starts_with(b"From ") {
        return Kind::Mails;
    }
    let headers = message::headers(bytes);
    let is_mail = ["from", "subject", "message-id", "received"]
        .iter()
        .any(|name| message::header(&headers, name).is_some());
    if is_mail { Kind::Mails } else { Kind::Diff }
}

/// Returns whether lines end with carriage returns: the second one, for a program may have added
/// the first.
fn has_crs(bytes: &[u8]) -> bool {
    let mut lines = bytes.trim_ascii_start().split(|byte| *byte == b'\n');
    let first = lines.next().unwrap_or_default();
    lines.next().unwrap_or(first).ends_with(b"\r")
}

/// Fills in what `git mailinfo` prints.
fn fill(raw: &mut RawMessage, printed: &str, headers: Vec<(String, String)>) {
    let mut author = String::new();
    let mut address = String::new();
    for line in printed.lines() {
        match line.split_once(": ") {
            Some(("Author", value)) => value.clone_into(&mut author),
            Some(("Email", value)) => value.clone_into(&mut address),
            // One line for each of its own: an encoded subject may have several.
            Some(("Subject", value)) => {
                raw.subject = format!("{} {}", raw.subject, value.trim())
                    .trim()
                    .to_owned();
            }
            Some(("Date", value)) => value.clone_into(&mut raw.date),
            _ => {}
        }
    }
    raw.author = match (author.is_empty(), address.is_empty()) {
        (true, true) => header_or_empty(&headers, "author"),
        (false, true) => author,
        (true, false) => address,
        (false, false) => format!("{author} <{address}>"),
    };
    if raw.subject.trim().is_empty() {
        let description = header_or_empty(&headers, "description");
        raw.subject = description.lines().next().unwrap_or_default().to_owned();
    }
    raw.headers = headers;
}

fn header_or_empty(headers: &[(String, String)], name: &str) -> String {
    message::header(headers, name)
        .unwrap_or_default()
        .to_owned()
}

/// Returns the Message-Ids that a mail answers, the nearest first.
fn parents(headers: &[(String, String)]) -> Vec<String> {
    let [references, answered] = ["references", "in-reply-to"].map(|name| {
        let header = message::header(headers, name).unwrap_or_default();
        let identifiers = header.split('<').skip(1).map(identifier);
        identifiers.collect::<Vec<String>>()
    });
    let mut parents: Vec<String> = Vec::new();
    for id in answered.into_iter().chain(references.into_iter().rev()) {
        let id = id.trim_end_matches('>').to_owned();
        if !parents.contains(&id) {
            parents.push(id);
        }
    }
    parents
}

/// Returns the commit in the first line of a file of `git format-patch`.
fn format_patch_commit(bytes: &[u8]) -> Option<String> {
    let line = bytes.trim_ascii_start().strip_prefix(b"From ")?;
    let word = line.split(|byte| *byte == b' ').next()?;
    let is_hash = (40..=64).contains(&word.len()) && word.iter().all(u8::is_ascii_hexdigit);
    // `--zero-commit`, and what quilt writes.
    let is_real = is_hash && word.iter().any(|byte| *byte != b'0');
    is_real.then(|| String::from_utf8_lossy(word).to_ascii_lowercase())
}

/// Returns the text between message and diff, without the table of files.
fn notes_without_statistics(notes: &str) -> String {
    let lines: Vec<&str> = notes
        .lines()
        .map(str::trim_end)
        .filter(|line| !is_diffstat_line(line))
        .collect();
    lines.join("\n").trim().to_owned()
}

fn is_diffstat_line(line: &str) -> bool {
    let is_file = line.starts_with(' ') && line.contains(" | ");
    let is_sum =
        line.starts_with(' ') && (line.contains(" changed, ") || line.starts_with(" create mode "));
    is_file
        || is_sum
        || line == "---"
        || line.starts_with(" delete mode ")
        || line.starts_with(" rename ")
}

/// Removes the carriage returns of a mail program or of Windows: those at the end of the lines that
/// git itself writes.
fn without_transport_crs(diff: &[u8]) -> Vec<u8> {
    let first = diff.split(|byte| *byte == b'\n').next().unwrap_or_default();
    if !first.ends_with(b"\r") {
        return diff.to_vec();
    }
    let lines: Vec<&[u8]> = diff
        .split(|byte| *byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .collect();
    lines.join(&b'\n')
}

/// Returns the name of a file without its ending.
fn stem(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    model::sanitize_line(name.rsplit_once('.').map_or(name, |(stem, _)| stem))
}

/// Reads a diff with the words before it: those of `git show`, of Debian's headers, or free text.
fn plain_patch(file: &Path, bytes: &[u8]) -> Result<Patch, PatchesError> {
    let start = diff::start(bytes).unwrap_or(bytes.len());
    let (preface, diff) = bytes.split_at(start);
    let preface = String::from_utf8_lossy(preface).replace('\r', "");
    let preface = notes_without_statistics(preface.split("\ndiff ").next().unwrap_or_default());
    let lines: Vec<&str> = preface
        .lines()
        .filter(|line| !line.starts_with("diff "))
        .collect();
    let mut raw = if lines.first().and_then(|line| shown_commit(line)).is_some() {
        if diff
            .split(|byte| *byte == b'\n')
            .any(|line| shown_commit(&String::from_utf8_lossy(line)).is_some())
        {
            return Err(PatchesError::Log {
                file: file.to_owned(),
            });
        }
        shown(&lines)
    } else {
        preface_words(&lines)
    };
    raw.base = message::stated_base(bytes);
    if raw.subject.trim().is_empty() {
        raw.subject = stem(file);
    }
    Ok(Patch::new(raw, without_transport_crs(diff)))
}

/// Returns the commit of a line of `git show` and `git log`.
fn shown_commit(line: &str) -> Option<String> {
    let word = line.trim_end().strip_prefix("commit ")?.split(' ').next()?;
    let is_hash =
        (40..=64).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then(|| word.to_ascii_lowercase())
}

/// Reads what `git show` prints before the diff.
fn shown(lines: &[&str]) -> RawMessage {
    let mut raw = RawMessage {
        commit: lines.first().and_then(|line| shown_commit(line)),
        ..RawMessage::default()
    };
    let mut body: Vec<&str> = Vec::new();
    for line in lines.iter().skip(1) {
        if let Some(text) = line.strip_prefix("    ") {
            body.push(text);
        } else if let Some(author) = line.strip_prefix("Author:") {
            author.trim().clone_into(&mut raw.author);
        } else if let Some(date) = line
            .strip_prefix("Date:")
            .or_else(|| line.strip_prefix("AuthorDate:"))
        {
            date.trim().clone_into(&mut raw.date);
        } else if line.is_empty() && !body.is_empty() {
            body.push("");
        }
    }
    if let Some((subject, rest)) = body.split_first() {
        subject.trim().clone_into(&mut raw.subject);
        raw.body = rest.join("\n").trim().to_owned();
    }
    raw
}

/// Reads Debian's headers (DEP-3), Mercurial's, or free text, whose first line is the subject.
fn preface_words(lines: &[&str]) -> RawMessage {
    let text = lines.join("\n");
    let headers = message::headers(text.as_bytes());
    let known = |names: &[&str]| {
        names
            .iter()
            .find_map(|name| message::header(&headers, name))
            .map(str::to_owned)
    };
    let mut raw = RawMessage::default();
    let description = known(&["subject", "description"]);
    if let Some(description) = description {
        let (subject, rest) = description.split_once('\n').unwrap_or((&description, ""));
        subject.clone_into(&mut raw.subject);
        let behind = text.split_once("\n\n").map_or("", |(_, behind)| behind);
        raw.body = format!("{rest}\n{behind}").trim().to_owned();
    } else {
        let subject = lines
            .iter()
            .find(|line: &&&str| {
                !line.trim().is_empty()
                    && !line.starts_with(['#', '='])
                    && !line.starts_with("Index:")
            })
            .copied()
            .unwrap_or_default();
        subject.trim().clone_into(&mut raw.subject);
        raw.body = text.replacen(subject, "", 1).trim().to_owned();
    }
    let user = lines.iter().find_map(|line| line.strip_prefix("# User "));
    raw.author = known(&["author", "from"])
        .or_else(|| user.map(str::to_owned))
        .unwrap_or_default();
    raw.date = known(&["date", "last-update"]).unwrap_or_default();
    raw.headers = headers;
    raw
}

#[cfg(test)]
mod tests;
