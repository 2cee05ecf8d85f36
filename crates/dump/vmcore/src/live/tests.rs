//! A fake QEMU with scripted answers, which records its commands.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;

use super::Guest;
use crate::error::DumpError;

const SOON: Duration = Duration::from_millis(300);
const LONG: Duration = Duration::from_secs(60);
const GREETING: &str = "{\"QMP\": {\"version\": {}}}\n";

/// The fake clock: time stands still, deadlines are those of the socket.
fn clock() -> Duration {
    Duration::from_secs(7)
}

struct Fake {
    folder: tempfile::TempDir,
    commands: JoinHandle<Vec<String>>,
}

impl Fake {
    /// Greets, and answers each command with the lines of `answer`; `ID` in them is the command's
    /// id.
    fn new(
        greeting: &'static str,
        answer: impl Fn(&str) -> Option<String> + Send + 'static,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("qmp")).unwrap();
        let commands = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(greeting.as_bytes()).unwrap();
            serve(&stream, &answer)
        });
        Self { folder, commands }
    }

    fn connect(&self, patience: Duration) -> Result<Guest, DumpError> {
        Guest::connect(&self.folder.path().join("qmp"), patience, &clock)
    }

    fn describe(&self, error: &DumpError) -> String {
        error
            .to_string()
            .replace(&self.folder.path().display().to_string(), "FOLDER")
    }
}

fn serve(mut stream: &UnixStream, answer: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let mut commands = Vec::new();
    let mut lines = BufReader::new(stream);
    let mut line = String::new();
    while lines.read_line(&mut line).is_ok_and(|count| count > 0) {
        let command: Value = serde_json::from_str(&line).unwrap();
        let name = command["execute"].as_str().unwrap().to_owned();
        commands.push(name.clone());
        let Some(answer) = answer(&name) else { break };
        if stream
            .write_all(answer.replace("ID", &command["id"].to_string()).as_bytes())
            .is_err()
        {
            break;
        }
        line.clear();
    }
    commands
}

fn fine(name: &str) -> Option<String> {
    Some(match name {
        "query-status" => "{\"return\": {\"running\": true}, \"id\": ID}\n".to_owned(),
        "stop" => "{\"event\": \"STOP\"}\n{\"return\": {}, \"id\": ID}\n".to_owned(),
        _ => "{\"return\": {}, \"id\": ID}\n".to_owned(),
    })
}

#[test]
fn a_guest_is_stopped_and_goes_on() {
    let fake = Fake::new(GREETING, fine);
    let mut guest = fake.connect(LONG).unwrap();
    assert!(guest.runs(&clock).unwrap());
    assert_eq!(guest.stop(&clock).unwrap().go_on().unwrap(), Duration::ZERO);
    drop(guest.stop(&clock).unwrap());
    drop(guest);
    assert_eq!(
        fake.commands.join().unwrap(),
        [
            "qmp_capabilities",
            "query-status",
            "stop",
            "cont",
            "stop",
            "cont"
        ]
    );
}

#[test]
fn guest_that_does_not_answer_is_resumed() {
    let fake = Fake::new(GREETING, |name| {
        if name == "stop" {
            Some(String::new())
        } else {
            fine(name)
        }
    });
    let mut guest = fake.connect(LONG).unwrap();
    guest.patience = SOON;
    let error = guest.stop(&clock).unwrap_err();
    insta::assert_snapshot!(fake.describe(&error), @"the guest at FOLDER/qmp did not stop: no answer within 0.3 s; if it stands still now, tell it `cont`");
    drop(guest);
    assert_eq!(
        fake.commands.join().unwrap(),
        ["qmp_capabilities", "stop", "cont"]
    );
}

/// Errors while connecting, or at `stop`.
fn wrong(
    greeting: &'static str,
    answer: impl Fn(&str) -> Option<String> + Send + 'static,
) -> String {
    let fake = Fake::new(greeting, answer);
    // Without an answer, the wait is short.
    let error = match fake.connect(if greeting.is_empty() { SOON } else { LONG }) {
        Ok(mut guest) => guest.stop(&clock).unwrap_err(),
        Err(error) => error,
    };
    fake.describe(&error)
}

/// Returns an answer to `stop`, none if it is empty, and good ones to all other commands.
fn stop(answer: &'static str) -> impl Fn(&str) -> Option<String> + Send + 'static {
    move |name| match name {
        "stop" if answer.is_empty() => None,
        "stop" => Some(answer.to_owned()),
        name => fine(name),
    }
}

#[test]
fn live_errors_are_reported() {
    let all = [
        wrong("", fine),
        wrong("SSH-2.0\n", fine),
        wrong("{}\n", fine),
        wrong(GREETING, stop("")),
        wrong(
            GREETING,
            stop("{\"error\": {\"desc\": \"not \\u001bnow\"}, \"id\": ID}\n"),
        ),
        wrong(GREETING, stop("{\"error\": 7, \"id\": ID}\n")),
        wrong(GREETING, |name| match name {
            "stop" => Some("x".repeat(3 << 20)),
            name => fine(name),
        }),
        wrong(GREETING, |name| match name {
            "stop" => Some("{\"event\": \"RESUME\"}\n".repeat(20_000)),
            name => fine(name),
        }),
    ];
    insta::assert_snapshot!(all.join("\n"));
    let folder = tempfile::tempdir().unwrap();
    let error = Guest::connect(&folder.path().join("none"), SOON, &clock)
        .unwrap_err()
        .to_string();
    let error = error.replace(&folder.path().display().to_string(), "FOLDER");
    insta::assert_snapshot!(error, @"no QEMU is reached at FOLDER/none: No such file or directory (os error 2); it listens there with -qmp unix:FOLDER/none,server=on,wait=off");
}

#[test]
fn guest_memory_without_file_is_an_error() {
    for (share, fine_so) in [("true", true), ("false", false)] {
        let fake = Fake::new(GREETING, move |name| match name {
            "query-memdev" => Some(format!(
                "{{\"return\": [{{\"share\": {share}}}], \"id\": ID}}\n"
            )),
            name => fine(name),
        });
        assert_eq!(
            fake.connect(LONG).unwrap().check_memory(&clock).is_ok(),
            fine_so
        );
    }
}
