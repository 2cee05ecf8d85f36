//! Consoles that break, come back and are recorded meanwhile.

use std::cell::Cell;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use model::{ConsoleSettings, ServerSettings};

use super::log::{Log, names};
use super::{
    Console, KEPT_MAX, Kind, LEFT_OUT, MISSING, RECORDS, Recorder, Signal, Tail, console_folder,
    is_recorded, keep, lock, send_signal,
};

fn server(console: ConsoleSettings) -> ServerSettings {
    ServerSettings {
        boot_s: 30,
        console: Some(console),
        ..ServerSettings::of_host("testbox", "root@testbox")
    }
}

fn tcp(address: String, is_telnet: bool) -> ConsoleSettings {
    ConsoleSettings::Tcp { address, is_telnet }
}

/// A console that a shell prints; another one sends its breaks.
fn command(prints: &str, sends: &str) -> ConsoleSettings {
    let shell = |script: &str| ["sh", "-c", script].map(str::to_owned).to_vec();
    let sends_break = if sends.is_empty() {
        Vec::new()
    } else {
        [shell(sends), vec!["break".to_owned()]].concat()
    };
    ConsoleSettings::Command {
        command: shell(prints),
        sends_break,
    }
}

fn recorded(home: &Path) -> String {
    let mut tail = Tail::since(&console_folder(home, "testbox"), 0).unwrap();
    let mut lines: Vec<_> =
        std::iter::from_fn(|| Some(tail.new_lines()).filter(|lines| !lines.is_empty()))
            .flatten()
            .collect();
    lines.extend(tail.unfinished());
    lines
        .into_iter()
        .map(|line: super::ConsoleLine| {
            format!(
                "{}{}",
                if line.is_note { "-- " } else { "" },
                String::from_utf8_lossy(&line.bytes)
            )
        })
        .collect()
}

/// Records until so many connections were tried.
fn record(recorder: Recorder, connections: u32) {
    let left = Cell::new(connections);
    recorder
        .record_with(&|| 1000, Duration::from_millis(10), || {
            left.replace(left.get().saturating_sub(1)) > 0
        })
        .unwrap();
}

/// Waits until nothing records a console. A child that another test starts just now has the lock,
/// too, until it executes its program.
fn wait_until_free(folder: &Path) {
    for _ in 0..50 {
        if !is_recorded(folder) {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("{} is still recorded", folder.display());
}

#[test]
fn console_that_breaks_is_opened_again() {
    let home = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = server(tcp(address.clone(), false));
    let recorder = Recorder::open(&server, home.path()).unwrap().unwrap();
    assert!(
        Recorder::open(&server, home.path()).unwrap().is_none(),
        "one process records it"
    );
    let printer = std::thread::spawn(move || {
        for text in ["boot\n", "half a line", "", "", "again\n"] {
            listener
                .accept()
                .unwrap()
                .0
                .write_all(text.as_bytes())
                .unwrap();
        }
        // Nothing listens any more.
    });
    record(recorder, 7);
    printer.join().unwrap();
    let message = recorded(home.path()).replace(&address, "ADDRESS");
    insta::assert_snapshot!(message);
}

#[test]
fn who_measures_reads_the_record_or_the_console() {
    let home = tempfile::tempdir().unwrap();
    let folder = console_folder(home.path(), "testbox");
    let by_script = |script: &str| command(script, "");
    let wait_for = |console: &Console, text: &str| {
        let mut seen = Vec::new();
        for _ in 0..500 {
            seen.extend(console.take());
            if String::from_utf8_lossy(&seen).contains(text) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("{text}: {}", String::from_utf8_lossy(&seen));
    };
    let own = server(by_script("echo hello; exec sleep 60"));
    assert!(!is_recorded(&folder));
    let console = Console::open(&own, home.path());
    wait_for(&console, "hello\n");
    drop(console);
    let recorder = Recorder::open(&server(by_script("sleep 0.3; echo oops")), home.path())
        .unwrap()
        .unwrap();
    assert!(is_recorded(&folder));
    let console = Console::open(&own, home.path());
    std::thread::scope(|scope| {
        scope.spawn(|| record(recorder, 2));
        wait_for(&console, "oops\n");
    });
    wait_until_free(&folder);
    let none = ServerSettings {
        console: None,
        ..own
    };
    assert!(Console::open(&none, home.path()).take().is_empty());
}

/// Reads a connection until it has sent so many bytes.
fn read(from: &mut TcpStream, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    from.read_exact(&mut bytes).unwrap();
    bytes
}

#[test]
fn recorder_sends_what_others_ask_for() {
    let home = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = server(tcp(listener.local_addr().unwrap().to_string(), true));
    let recorder = Recorder::open(&server, home.path()).unwrap().unwrap();
    let line = std::thread::spawn(move || {
        let mut line = listener.accept().unwrap().0;
        line.write_all(b"\xff\xfb\x01login: ").unwrap();
        let keys = read(&mut line, 6);
        line.write_all(b"\nsysrq: Show Blocked State\n").unwrap();
        (keys, read(&mut line, 2))
    });
    std::thread::scope(|scope| {
        scope.spawn(|| record(recorder, 1));
        while !recorded(home.path()).contains("login") {
            std::thread::sleep(Duration::from_millis(10));
        }
        let send =
            |signal: &Signal| send_signal(&server, home.path(), signal, "anna@lab", &|| 1000);
        send(&Signal::sysrq("8w").unwrap()).unwrap();
        send(&Signal::Break).unwrap();
    });
    assert_eq!(
        line.join().unwrap(),
        (b"\xff\xf38\xff\xf3w".to_vec(), b"\xff\xf3".to_vec())
    );
    let message = recorded(home.path());
    let notes: Vec<&str> = message
        .lines()
        .filter(|line| line.starts_with("-- sends"))
        .collect();
    assert_eq!(
        notes,
        [
            "-- sends sysrq 8w for anna@lab",
            "-- sends break for anna@lab"
        ],
        "{message}"
    );
    assert!(
        message.contains("login: \n") && message.contains("sysrq: Show Blocked State\n"),
        "{message}"
    );
}

#[test]
fn break_without_recorder_is_sent_and_recorded() {
    let home = tempfile::tempdir().unwrap();
    let sent = home.path().join("sent");
    let sends = format!("echo \"$0 $1\" >> {}", sent.display());
    let server = server(command("echo hello; exec sleep 60", &sends));
    let send = |keys: &str| {
        send_signal(
            &server,
            home.path(),
            &Signal::sysrq(keys).unwrap(),
            "anna@lab",
            &|| 1000,
        )
    };
    send("wt").unwrap();
    assert_eq!(std::fs::read_to_string(sent).unwrap(), "break w\nbreak t\n");
    let message = recorded(home.path());
    assert!(
        message.contains("hello\n") && message.contains("-- sends sysrq wt for anna@lab\n"),
        "{message}"
    );
    wait_until_free(&console_folder(home.path(), "testbox"));
    // A measurement that reads the console itself keeps its connection.
    let measures = Console::open(&server, home.path());
    let refused = send("w").unwrap_err().to_string();
    assert!(refused.contains("a measurement reads it now"), "{refused}");
    assert!(measures.send(&server, home.path(), &Signal::Break, "anna@lab"));
}

#[test]
fn break_that_cannot_be_sent_is_explained() {
    let home = tempfile::tempdir().unwrap();
    let send = |console| {
        let signal = Signal::sysrq("w").unwrap();
        send_signal(&server(console), home.path(), &signal, "anna@lab", &|| 1000)
            .unwrap_err()
            .to_string()
    };
    let silent = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string();
    let message = [
        send(tcp("terminals.lab:7003".into(), false)),
        send(command("sleep 60", "")),
        send(command("sleep 60", "echo no such port >&2; false")),
        send(tcp(silent.clone(), true)).replace(&silent, "ADDRESS"),
    ];
    insta::assert_snapshot!(message.join("\n"));
}

#[test]
fn more_than_is_kept_is_told_once() {
    // Pieces that fill it exactly, and one that does not.
    for piece in [KEPT_MAX / 4, KEPT_MAX / 4 + 1] {
        let mut stored = Vec::new();
        for _ in 0..4 {
            keep(&mut stored, &vec![b'x'; piece]);
        }
        keep(&mut stored, b"more");
        keep(&mut stored, b"and more");
        assert_eq!(stored.len(), KEPT_MAX + LEFT_OUT.len());
        assert!(stored.ends_with(LEFT_OUT));
    }
}

#[test]
fn measurement_is_told_of_missing_lines() {
    let home = tempfile::tempdir().unwrap();
    let mut log = Log::open(home.path()).unwrap();
    let console = Console(Kind::Recorded(subprocess::Shared::new(Tail::at_end(
        home.path(),
    ))));
    let line = format!("{}\n", "x".repeat(1000));
    (0..12_000).for_each(|_| log.write(line.as_bytes(), 5).unwrap());
    for name in names(home.path()) {
        std::fs::remove_file(home.path().join(format!("{name}.gz"))).unwrap();
    }
    let stored = console.take();
    assert!(stored.windows(MISSING.len()).any(|part| part == MISSING));
    assert!(stored.ends_with(line.as_bytes()));
}

#[test]
fn link_for_a_console_lock_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let target = home.path().join("target");
    std::os::unix::fs::symlink(&target, home.path().join(RECORDS)).unwrap();
    let error = lock(home.path(), RECORDS).unwrap_err().to_string();
    assert!(
        error.contains("it is a link") && !target.exists(),
        "{error}"
    );
}
