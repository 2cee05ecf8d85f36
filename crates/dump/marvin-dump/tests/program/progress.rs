//! Progress while a dump is filtered and written.

use std::error::Error;
use std::io::{self, Cursor, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use clap::Parser;
use marvin_dump::{Arguments, Host, Screen, run};
use synthetic_dumps::Synthetic;

/// A stream with a slow reader: it accepts data only after the clock was read a few times.
struct Slow<'s> {
    begun: &'s AtomicBool,
    wait: Option<Receiver<()>>,
}

impl Write for Slow<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.begun.store(true, Ordering::Relaxed);
        if let Some(wait) = self.wait.take() {
            wait.recv_timeout(Duration::from_secs(60))
                .map_err(io::Error::other)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes a dump to a slow stream, with a clock that advances by `step` at each reading; returns
/// the messages.
fn filter_messages(screen: Screen, level: u8, step: u64) -> Result<String, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("vmcore");
    Synthetic {
        groups: "0x010+40 anon".to_owned(),
        ..Synthetic::default()
    }
    .write(&path)?;
    let line = format!("marvin-dump -d 31 -F --io read --message-level {level}");
    let arguments = Arguments::try_parse_from(
        line.split(' ')
            .map(Into::into)
            .chain([path.into_os_string()]),
    )?;
    let begun = AtomicBool::new(false);
    let calls = AtomicU64::new(0);
    let (wake, wait) = channel();
    let clock = || {
        if begun.load(Ordering::Relaxed) && calls.fetch_add(1, Ordering::Relaxed) == 3 {
            // The receiver is gone only after the test has failed.
            wake.send(()).ok();
        }
        Duration::from_secs(step * calls.load(Ordering::Relaxed))
    };
    // Without progress messages the program does not read the clock.
    let wait = (level & 1 == 1).then_some(wait);
    let mut input = Cursor::new(Vec::new());
    let mut answers = Slow {
        begun: &begun,
        wait,
    };
    let mut messages = Vec::new();
    let mut host = Host {
        input: &mut input,
        answers: &mut answers,
        messages: &mut messages,
        clock: &clock,
    };
    assert_eq!(run(&arguments, screen, &mut host).code(), 0);
    Ok(String::from_utf8(messages)?)
}

#[test]
fn terminal_shows_progress() -> Result<(), Box<dyn Error>> {
    let transcript = filter_messages(Screen::Terminal, 1, 1)?;
    assert!(
        transcript.contains("\rwriting   0 %, 0 MB/s\x1b[K\r"),
        "{transcript:?}"
    );
    assert!(
        transcript.ends_with("\r\x1b[K") && !transcript.contains('\n'),
        "{transcript:?}"
    );
    Ok(())
}

#[test]
fn plain_output_shows_occasional_lines() -> Result<(), Box<dyn Error>> {
    assert_eq!(filter_messages(Screen::Plain, 1, 0)?, "");
    let transcript = filter_messages(Screen::Plain, 1, 11)?;
    assert!(
        transcript.starts_with("writing   0 %, 0 MB/s\n") && !transcript.contains(['\r', '\x1b']),
        "{transcript:?}"
    );
    Ok(())
}

#[test]
fn message_level_silences_progress() -> Result<(), Box<dyn Error>> {
    assert_eq!(filter_messages(Screen::Terminal, 4, 11)?, "");
    assert_eq!(filter_messages(Screen::Terminal, 2, 11)?.lines().count(), 1);
    Ok(())
}
