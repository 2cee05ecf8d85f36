//! A break or a sysrq for a console, from another process than the one with the connection.
//!
//! A BMC gives its console to one client, the recorder. A sender writes `ask.ID` into the console's
//! directory; the recorder claims it by renaming it to `taken.ID`, so that each request is sent
//! once, and answers in `answer.ID`. A sender that waits no longer removes its file, and the
//! recorder ignores a file that is too old: a sysrq must not come an hour late.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use subprocess::replace_file;

/// How long an asker waits until its file is taken, and after which the recorder does not obey it.
pub(super) const TAKEN: Duration = Duration::from_secs(5);
/// How much longer it waits for the answer: each key takes a second.
const ANSWERED: Duration = Duration::from_secs(60);
/// Time between two polls for files.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The most keys of one request.
const KEYS_MAX: usize = 16;
/// Limit on a name in a request (characters).
const WHO_MAX: usize = 80;

/// What is sent to a console.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signal {
    Break,
    /// For each key a break and the key: the kernel's magic sysrq
    /// (Documentation/admin-guide/sysrq.rst).
    Sysrq(String),
}

impl Signal {
    /// Returns the sysrq of these keys; `None` unless they are letters and digits, from one to 16.
    #[must_use]
    pub fn sysrq(keys: &str) -> Option<Self> {
        let fits = (1..=KEYS_MAX).contains(&keys.len())
            && keys.bytes().all(|key| key.is_ascii_alphanumeric());
        fits.then(|| Self::Sysrq(keys.to_owned()))
    }

    /// Returns the breaks to send, each with the key that follows it.
    pub(super) fn keys(&self) -> Vec<Option<char>> {
        match self {
            Self::Break => vec![None],
            Self::Sysrq(keys) => keys.chars().map(Some).collect(),
        }
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Break => f.write_str("break"),
            Self::Sysrq(keys) => write!(f, "sysrq {keys}"),
        }
    }
}

/// A request that the recorder has taken.
#[derive(Debug)]
pub(super) struct Request {
    folder: PathBuf,
    id: String,
    pub(super) signal: Signal,
    pub(super) who: String,
}

impl Request {
    /// Takes the next request in a directory; `None` if there is none that may still be obeyed. The
    /// time is in milliseconds since 1970-01-01 UTC.
    pub(super) fn take(folder: &Path, now_ms: i64) -> Option<Self> {
        for entry in fs::read_dir(folder).ok()?.flatten() {
            let name = entry.file_name();
            let Some(id) = name
                .to_str()
                .and_then(|name| name.strip_prefix("ask."))
                .map(str::to_owned)
            else {
                continue;
            };
            let age_ms = entry
                .metadata()
                .ok()
                .and_then(|meta| age_ms(&meta, now_ms))
                .unwrap_or(i64::MAX);
            let taken = folder.join(format!("taken.{id}"));
            if fs::rename(entry.path(), &taken).is_err() {
                // Its asker waits no longer.
                continue;
            }
            let text = fs::read_to_string(&taken).unwrap_or_default();
            drop(fs::remove_file(&taken));
            let (who, signal) = text.split_once('\n').unwrap_or_default();
            let signal = match signal.trim_end().split_once(' ') {
                Some(("sysrq", keys)) => Signal::sysrq(keys),
                _ => (signal.trim_end() == "break").then_some(Signal::Break),
            };
            let is_late = age_ms > i64::try_from(TAKEN.as_millis()).unwrap_or(i64::MAX);
            if let (Some(signal), false) = (signal, is_late) {
                let who = who.chars().take(WHO_MAX).collect::<String>();
                return Some(Self {
                    folder: folder.to_owned(),
                    id,
                    signal,
                    who: model::sanitize_line(&who),
                });
            }
        }
        None
    }

    /// Answers whether it was sent, or why not.
    pub(super) fn answer(&self, sent: Result<(), String>) {
        let text = sent.map_or_else(
            |why| format!("failed {}\n", model::sanitize_line(&why)),
            |()| "sent\n".to_owned(),
        );
        // An asker without an answer says so.
        drop(write_whole(
            &self.folder,
            &format!("answer.{}", self.id),
            &text,
        ));
    }
}

fn age_ms(meta: &fs::Metadata, now_ms: i64) -> Option<i64> {
    let written = meta
        .modified()
        .ok()?
        .duration_since(std::time::UNIX_EPOCH)
        .ok()?;
    Some(now_ms.saturating_sub(i64::try_from(written.as_millis()).ok()?))
}

/// How a request to a recorder failed.
#[derive(Debug)]
pub(super) enum Unanswered {
    /// Why it was not sent.
    Failed(String),
    /// Whether it was sent is not known.
    Unknown,
}

/// Asks the recorder of a directory to send something, and waits until it has.
pub(super) fn ask(folder: &Path, who: &str, signal: &Signal) -> Result<(), Unanswered> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let id = format!(
        "{}-{}",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    );
    let ask = folder.join(format!("ask.{id}"));
    let answer = folder.join(format!("answer.{id}"));
    // Of a process of the same number that was killed.
    drop(fs::remove_file(&answer));
    write_whole(
        folder,
        &format!("ask.{id}"),
        &format!("{}\n{signal}\n", model::sanitize_line(who)),
    )
    .map_err(|error: io::Error| Unanswered::Failed(format!("{}: {error}", folder.display())))?;
    let begun = Instant::now();
    while begun.elapsed() < TAKEN + ANSWERED {
        if let Ok(text) = fs::read_to_string(&answer) {
            drop(fs::remove_file(&answer));
            return match text.trim_end().split_once(' ') {
                None => Ok(()),
                Some((_, why)) => Err(Unanswered::Failed(why.to_owned())),
            };
        }
        // Only one of the two gets the file: what is removed here is not sent.
        if begun.elapsed() >= TAKEN && fs::remove_file(&ask).is_ok() {
            return Err(Unanswered::Failed(
                "its recorder does not answer".to_owned(),
            ));
        }
        sleep(POLL_INTERVAL);
    }
    Err(Unanswered::Unknown)
}

fn write_whole(folder: &Path, name: &str, text: &str) -> io::Result<()> {
    let part = folder.join(format!("part.{name}"));
    replace_file(&folder.join(name), &part, text)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::{Duration, SystemTime};

    use super::{Request, Signal, Unanswered, ask};

    #[test]
    fn keys_are_letters_and_digits() {
        assert_eq!(
            Signal::sysrq("8wt").map(|signal| signal.keys().len()),
            Some(3)
        );
        for wrong in ["", "w t", "w\n", "~.", "wwwwwwwwwwwwwwwww"] {
            assert_eq!(Signal::sysrq(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn request_is_taken_once_and_answered() {
        let folder = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            let requested =
                scope.spawn(|| ask(folder.path(), "anna@lab", &Signal::Sysrq("wt".into())));
            let request = loop {
                if let Some(request) = Request::take(folder.path(), 0) {
                    break request;
                }
            };
            assert_eq!(
                (request.who.as_str(), request.signal.to_string().as_str()),
                ("anna@lab", "sysrq wt")
            );
            assert!(Request::take(folder.path(), 0).is_none());
            request.answer(Ok(()));
            assert!(requested.join().unwrap().is_ok());
        });
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            0,
            "no file is left"
        );
    }

    #[test]
    fn old_request_is_not_obeyed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ask.1-0");
        let now = SystemTime::now();
        fs::write(&file, "anna@lab\nsysrq b\n").unwrap();
        fs::File::options()
            .write(true)
            .open(&file)
            .unwrap()
            .set_modified(now - Duration::from_secs(60))
            .unwrap();
        let now_ms = now
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap()
            .as_millis();
        assert!(Request::take(folder.path(), i64::try_from(now_ms).unwrap()).is_none());
        assert!(!file.exists(), "and is gone");
    }

    #[test]
    fn request_without_recorder_is_withdrawn() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(
            ask(folder.path(), "anna@lab", &Signal::Break),
            Err(Unanswered::Failed(_))
        ));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
