//! Reads patches and mailboxes: mails, `git format-patch` files, diffs, folders with a quilt
//! series, commits.
//!
//! git decodes mails as for `git am` (`mailbox`). The rest is pure: `message` reads tags, `diff`
//! reads changes, with `functions` and `identifiers`; `thread` chooses among the mails of a thread.
//! `quilt` lists folders, `commits` reads history. Patches are of others: names in them are text
//! and open no file.

mod commits;
mod diff;
mod error;
mod functions;
mod head;
mod hunks;
mod identifiers;
mod mailbox;
mod message;
mod places;
mod quilt;
mod thread;

use std::fs;
use std::path::Path;

pub use diff::{ChangedFile, DiffFault, FileChange, TouchedFunction};
pub use error::PatchesError;
pub(crate) use functions::defined_function;
pub use head::MailHead;
pub use identifiers::Identifiers;
pub use message::{Fixes, Position};

use crate::KernelError;
use crate::scratch::Scratch;
use crate::source::Authorship;
use head::mail_head;

/// Largest file, unpacked, as for the patches of kernels.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// Most bytes of all files.
const BYTES_MAX: u64 = 256 << 20;
/// Most patches, files of a folder, and mails of a mailbox.
const PATCHES_MAX: usize = 10_000;

/// A patch with what it says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    /// Subject without prefixes; the name of the file if it has none. One safe line.
    pub subject: String,
    /// Author with address. One safe line; empty if unknown.
    pub author: String,
    /// Date as written. One safe line; empty if unknown.
    pub date: String,
    /// Message without the subject, as safe text.
    pub body: String,
    /// Text between the message and the diff, such as changes since the last version, as safe
    /// text.
    pub notes: String,
    /// What the prefix of the subject says; `None` without prefix.
    pub position: Option<Position>,
    /// Message-Id, without the angle brackets.
    pub message_id: Option<String>,
    /// Commit of which `git format-patch` or `git show` made the file.
    pub commit: Option<String>,
    /// Head of the mail that it came in; `None` without a message id.
    pub mail: Option<MailHead>,
    /// Cover letter of its series; of the first patch only.
    pub cover: Option<Cover>,
    /// Commit that its trailer `base-commit:`, or that of its cover letter, names.
    pub base: Option<String>,
    pub fixes: Vec<Fixes>,
    /// Commits that it says it reverts.
    pub reverts: Vec<String>,
    /// Commits of which it says it is a backport.
    pub upstream: Vec<String>,
    /// The comment of `Cc: stable@…`; `None` without that tag.
    pub stable: Option<String>,
    /// Words about performance in body, notes and cover letter.
    pub performance: Vec<String>,
    pub files: Vec<ChangedFile>,
    /// Where the diff is damaged.
    pub fault: Option<DiffFault>,
    /// The diff, byte by byte: files of a kernel may have any charset.
    pub diff: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cover {
    /// Subject without prefixes. One safe line.
    pub subject: String,
    /// Its text, as safe text.
    pub text: String,
    /// Head of its mail; `None` without a message id.
    pub mail: Option<MailHead>,
}

/// Words of a patch before they are read.
#[derive(Debug, Default)]
struct RawMessage {
    subject: String,
    author: String,
    date: String,
    body: String,
    notes: String,
    headers: Vec<(String, String)>,
    commit: Option<String>,
    base: Option<String>,
}

impl Patch {
    fn new(raw: RawMessage, diff: Vec<u8>) -> Self {
        let tags = message::parse_tags(&raw.headers, &raw.body);
        let read = diff::read(&diff);
        let id = message::header(&raw.headers, "message-id").map(identifier);
        let subject = message::parse_subject(&raw.subject);
        Self {
            performance: message::performance_words(&format!(
                "{}\n{}\n{}",
                subject.text, raw.body, raw.notes
            )),
            subject: subject.text,
            author: model::sanitize_line(&raw.author),
            date: model::sanitize_line(&raw.date),
            body: model::sanitize_text(&raw.body),
            notes: model::sanitize_text(&raw.notes),
            position: subject.position,
            mail: id.as_deref().and_then(|id| mail_head(id, &raw.headers)),
            message_id: id,
            commit: raw.commit,
            cover: None,
            base: raw.base,
            fixes: tags.fixes,
            reverts: tags.reverts,
            upstream: tags.upstream,
            stable: tags.stable,
            files: read.files,
            fault: read.fault,
            diff,
        }
    }

    /// Gives it a cover letter.
    fn covered(&mut self, cover: &Self) {
        let text = format!("{}\n{}", cover.body, cover.notes).trim().to_owned();
        for word in &cover.performance {
            if !self.performance.contains(word) {
                self.performance.push(word.clone());
            }
        }
        if self.base.is_none() {
            self.base.clone_from(&cover.base);
        }
        self.cover = Some(Cover {
            subject: cover.subject.clone(),
            text,
            mail: cover.mail.clone(),
        });
    }

    /// Returns author and message for a commit of it.
    #[must_use]
    pub fn authorship(&self) -> Authorship {
        let (name, address) = self
            .author
            .split_once('<')
            .unwrap_or((&self.author, "unknown@localhost"));
        Authorship {
            name: or_unknown(name.trim()),
            address: or_unknown(address.trim_end_matches('>').trim()),
            date: if self.date.is_empty() {
                "2020-01-01T00:00:00+0000".to_owned()
            } else {
                self.date.clone()
            },
            message: format!("{}\n\n{}", self.subject, self.body.trim()),
        }
    }

    /// Returns the names of all functions that it touches.
    pub fn functions(&self) -> impl Iterator<Item = &str> {
        self.files
            .iter()
            .flat_map(|file| &file.functions)
            .map(|function| function.name.as_str())
    }
}

fn or_unknown(text: &str) -> String {
    if text.is_empty() {
        "unknown".to_owned()
    } else {
        text.to_owned()
    }
}

fn identifier(value: &str) -> String {
    let inner = value
        .split_once('<')
        .and_then(|(_, rest)| rest.split_once('>'))
        .map_or(value, |(inner, _)| inner);
    model::sanitize_line(inner.trim())
}

/// Returns the text of a file that is one mail, decoded, or of one without headers. Works in a
/// directory below `scratch`.
///
/// # Errors
/// If it is unreadable, too large, or git cannot decode it.
pub fn read_mail_text(file: &Path, scratch: &Path) -> Result<String, PatchesError> {
    let scratch = scratch_in(scratch)?;
    mailbox::Reader::new(scratch.path(), file).read_text(file)
}

fn scratch_in(folder: &Path) -> Result<Scratch, KernelError> {
    fs::create_dir_all(folder).map_err(KernelError::io(folder))?;
    let folder = fs::canonicalize(folder).map_err(KernelError::io(folder))?;
    Scratch::new(&folder)
}

/// Reads the patches of a file or folder, in the order in which they apply.
///
/// A mailbox (`.gz` too) gives the newest version of each series, without replies. A folder gives
/// its quilt series, or else its patches by name. Works in a directory below `scratch`.
///
/// # Errors
/// If there is no patch, one is unreadable, or there are too many.
pub fn read_patches(path: &Path, scratch: &Path) -> Result<Vec<Patch>, PatchesError> {
    let scratch = scratch_in(scratch)?;
    let listing = quilt::list(path)?;
    if listing.files.len() > PATCHES_MAX {
        let limit = format!("it has more than {PATCHES_MAX} files");
        return Err(PatchesError::TooMuch {
            place: path.to_owned(),
            limit,
        });
    }
    let mut reader = mailbox::Reader::new(scratch.path(), path);
    let patches = if listing.is_maildir {
        reader.read_together(&listing.files)?
    } else {
        let mut patches = Vec::new();
        for file in &listing.files {
            patches.extend(reader.read(file)?);
        }
        patches
    };
    let patches = with_covers(patches);
    if patches.is_empty() {
        return Err(PatchesError::NoPatch {
            place: path.to_owned(),
            detail: listing.without_patches(),
        });
    }
    Ok(patches)
}

/// Gives cover letters, which are patches without a diff, to the patches behind them.
fn with_covers(patches: Vec<Patch>) -> Vec<Patch> {
    let mut cover: Option<Patch> = None;
    let mut with_diff = Vec::with_capacity(patches.len());
    for mut patch in patches {
        if patch.files.is_empty() {
            cover = Some(patch);
            continue;
        }
        if let Some(cover) = cover.take()
            && patch.cover.is_none()
        {
            patch.covered(&cover);
        }
        with_diff.push(patch);
    }
    with_diff
}

/// Reads bytes as each kind of text that comes with patches. Returns the number of files and where
/// the diff begins.
#[cfg(feature = "fuzzing")]
pub(crate) fn fuzz(bytes: &[u8]) -> (usize, usize) {
    let headers = message::headers(bytes);
    let (before, rest) = bytes.split_at(diff::start(bytes).unwrap_or(bytes.len()));
    let body = String::from_utf8_lossy(before).into_owned();
    assert!(body.lines().filter(|line| quilt::is_entry(line)).count() <= bytes.len());
    let subject = body.lines().next().unwrap_or_default().to_owned();
    let patch = Patch::new(
        RawMessage {
            subject,
            body,
            headers,
            ..RawMessage::default()
        },
        rest.to_vec(),
    );
    assert!(!patch.subject.chars().any(model::is_hostile));
    (patch.files.len(), before.len())
}
