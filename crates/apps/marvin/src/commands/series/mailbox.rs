//! Mailboxes that are no file of the user's: standard input, and threads of a public-inbox.
//!
//! What is in them is left to `kernel`.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context;
use subprocess::Program;

use crate::exit::WrongInput;
use crate::session::Session;

/// Largest mailbox that is fetched or read from standard input, as for files with patches.
const MAILBOX_BYTES_MAX: u64 = 64 << 20;

/// Where mailboxes of message ids come from.
const LORE: &str = "https://lore.kernel.org/all";

/// How long b4 may take.
const B4_DEADLINE_S: u64 = 120;

/// A mailbox in the data directory, for as long as it is read.
#[derive(Debug)]
pub(super) struct Mailbox {
    file: PathBuf,
}

impl Mailbox {
    fn new(session: &Session, name: &str) -> anyhow::Result<Self> {
        let folder = session.home()?.join("scratch");
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let file = folder.join(format!("{name}.{}", std::process::id()));
        Ok(Self { file })
    }

    pub(super) fn of_standard_input(session: &Session) -> anyhow::Result<Self> {
        let mailbox = Self::new(session, "standard-input.mbox")?;
        let mut bytes = Vec::new();
        std::io::stdin()
            .take(MAILBOX_BYTES_MAX + 1)
            .read_to_end(&mut bytes)
            .context("cannot read standard input")?;
        if bytes.len() as u64 > MAILBOX_BYTES_MAX {
            let text = format!(
                "standard input has more than {} MiB; name fewer patches",
                MAILBOX_BYTES_MAX >> 20
            );
            return Err(WrongInput(text).into());
        }
        fs::write(&mailbox.file, bytes)
            .with_context(|| format!("cannot write {}", mailbox.file.display()))?;
        Ok(mailbox)
    }

    /// Fetches a thread: by b4 if it is one of lore.kernel.org and b4 is installed, because b4 finds
    /// newer versions in other threads.
    pub(super) fn fetch(session: &Session, thread: &Thread) -> anyhow::Result<Self> {
        if thread.is_of_lore {
            match Self::from_b4(session, &thread.id)? {
                Ok(mailbox) => return Ok(mailbox),
                Err(Some(why)) => crate::say(&format!(
                    "b4 cannot fetch the thread ({why}): Marvin fetches it, without newer versions in other threads"
                )),
                Err(None) => {}
            }
        }
        let mailbox = Self::new(session, "thread.mbox.gz")?;
        archives::fetch_file(&thread.address, MAILBOX_BYTES_MAX, &mailbox.file)
            .context("cannot fetch the thread; save it as a mailbox and name the file")?;
        Ok(mailbox)
    }

    /// Returns what b4 fetches, or why it does not; `None` if there is no b4.
    fn from_b4(session: &Session, id: &str) -> anyhow::Result<Result<Self, Option<String>>> {
        let mailbox = Self::new(session, "thread.mbox")?;
        // Not in the tree: its .b4-config could name other servers.
        let program = Program::new("b4")
            .args(["mbox", "--check-newer-revisions", "-o", "-", "--"])
            .args([decode(id)])
            .folder(Path::new("/"))
            .inherit_all()
            .deadline_s(B4_DEADLINE_S)
            .output_max(MAILBOX_BYTES_MAX + 1);
        let ended = match program.run() {
            Ok(ended) => ended,
            Err(subprocess::ProgramError::Missing(_)) => return Ok(Err(None)),
            Err(error) => return Ok(Err(Some(error.to_string()))),
        };
        if ended.code != Some(0) || ended.output.is_empty() {
            return Ok(Err(Some(model::sanitize_line(&ended.reason()))));
        }
        if ended.output.len() as u64 > MAILBOX_BYTES_MAX {
            let text = format!("more than {} MiB", MAILBOX_BYTES_MAX >> 20);
            return Ok(Err(Some(text)));
        }
        fs::write(&mailbox.file, ended.output)
            .with_context(|| format!("cannot write {}", mailbox.file.display()))?;
        Ok(Ok(mailbox))
    }

    pub(super) fn file(&self) -> &Path {
        &self.file
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.file));
    }
}

/// A thread of a public-inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Thread {
    /// The message id, percent-encoded.
    id: String,
    /// The address of its mailbox, as public-inbox serves it.
    address: String,
    is_of_lore: bool,
}

impl Thread {
    /// Returns the thread that is named; `None` if it is none. `lore:ID` and links to a message are
    /// known, whatever follows the message id.
    pub(super) fn named(named: &str) -> Result<Option<Self>, WrongInput> {
        let (inbox, id) = if let Some(id) = named.strip_prefix("lore:") {
            let id = id.trim_start_matches('<').trim_end_matches('>');
            (LORE.to_owned(), encode(id))
        } else if named.starts_with("https://") || named.starts_with("http://") {
            let path = named.split(['#', '?']).next().unwrap_or_default();
            let parts: Vec<&str> = path.split('/').collect();
            match parts.as_slice() {
                [_, _, "patch.msgid.link", id, ..] => (LORE.to_owned(), (*id).to_owned()),
                [_, _, "lore.kernel.org", "r", id, ..] => (LORE.to_owned(), (*id).to_owned()),
                [scheme, _, host, inbox, id, ..] => {
                    (format!("{scheme}//{host}/{inbox}"), (*id).to_owned())
                }
                _ => (String::new(), String::new()),
            }
        } else {
            return Ok(None);
        };
        if id.is_empty() || !(id.contains('@') || id.contains("%40")) {
            let text = format!(
                "`{named}` names no message: expected lore:MESSAGE-ID or a link such as {LORE}/MESSAGE-ID/"
            );
            return Err(WrongInput(text));
        }
        Ok(Some(Self {
            address: format!("{inbox}/{id}/t.mbox.gz"),
            is_of_lore: inbox.starts_with("https://lore.kernel.org/"),
            id,
        }))
    }
}

/// Encodes a message id for a path, as public-inbox reads it.
fn encode(id: &str) -> String {
    id.bytes()
        .map(|byte| {
            if byte.is_ascii_alphanumeric() || b"-._~@+=$".contains(&byte) {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}

/// Takes that back: b4 wants the message id itself.
fn decode(id: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = id.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let digits = behind.get(..2).filter(|_| *first == b'%');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::{Thread, decode, encode};

    #[test]
    fn encoded_ids_are_decoded() {
        for id in ["1@x", "a/b@x", "%41 +=$\u{e4}@x", "%", "%4", ""] {
            assert_eq!(decode(&encode(id)), id);
        }
        assert_eq!(decode("1%40x%zz%4"), "1@x%zz%4");
    }

    #[test]
    fn threads_are_named_by_id_or_link() {
        for (named, expected) in [
            ("HEAD~4", None),
            (
                "lore:1@x",
                Some("https://lore.kernel.org/all/1@x/t.mbox.gz"),
            ),
            (
                "lore:<a/b@x>",
                Some("https://lore.kernel.org/all/a%2Fb@x/t.mbox.gz"),
            ),
            (
                "https://lore.kernel.org/linux-mm/1@x/T/#u",
                Some("https://lore.kernel.org/linux-mm/1@x/t.mbox.gz"),
            ),
            (
                "https://lore.kernel.org/r/1@x",
                Some("https://lore.kernel.org/all/1@x/t.mbox.gz"),
            ),
            (
                "https://patch.msgid.link/1@x",
                Some("https://lore.kernel.org/all/1@x/t.mbox.gz"),
            ),
            (
                "http://127.0.0.1:8000/inbox/1%40x/raw",
                Some("http://127.0.0.1:8000/inbox/1%40x/t.mbox.gz"),
            ),
        ] {
            let thread = Thread::named(named).unwrap();
            assert_eq!(thread.map(|thread| thread.address).as_deref(), expected);
        }
        for named in ["lore:", "lore:no-id", "https://lore.kernel.org/linux-mm/"] {
            assert!(Thread::named(named).is_err(), "{named}");
        }
    }
}
