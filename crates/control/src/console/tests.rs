//! Consoles that break, come back and are recorded meanwhile.

use std::cell::Cell;
use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use model::{BootOnce, ConsoleSettings, ServerSettings};

use super::{Console, Recorder, console_folder, is_recorded, lines_since};

fn server(console: ConsoleSettings) -> ServerSettings {
    ServerSettings {
        name: "testbox".into(),
        host: "root@testbox".into(),
        ssh_config: None,
        boot: BootOnce::Kexec,
        cpus: None,
        boot_s: 30,
        idle_off_s: None,
        collector: None,
        power: None,
        console: Some(console),
        slurm_node: None,
    }
}

fn recorded(home: &Path) -> String {
    let lines = lines_since(&console_folder(home, "testbox"), 0).unwrap();
    let line = |line: super::ConsoleLine| {
        format!("{}{}", if line.is_note { "-- " } else { "" }, String::from_utf8_lossy(&line.bytes))
    };
    lines.into_iter().map(line).collect()
}

/// Records until so many connections were tried.
fn record(recorder: Recorder, connections: u32) {
    let left = Cell::new(connections);
    let goes_on = || left.replace(left.get().saturating_sub(1)) > 0;
    recorder.record_with(&|| 1000, Duration::from_millis(10), goes_on).unwrap();
}

#[test]
fn console_that_breaks_is_opened_again() {
    let home = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = server(ConsoleSettings::Tcp(address.clone()));
    let recorder = Recorder::open(&server, home.path()).unwrap().unwrap();
    assert!(Recorder::open(&server, home.path()).unwrap().is_none(), "one process records it");
    let printer = std::thread::spawn(move || {
        for text in ["boot\n", "half a line", "", "", "again\n"] {
            listener.accept().unwrap().0.write_all(text.as_bytes()).unwrap();
        }
        // Nothing listens any more.
    });
    record(recorder, 7);
    printer.join().unwrap();
    let told = recorded(home.path()).replace(&address, "ADDRESS");
    insta::assert_snapshot!(told);
}

#[test]
fn who_measures_reads_the_record_or_the_console() {
    let home = tempfile::tempdir().unwrap();
    let folder = console_folder(home.path(), "testbox");
    let words = |script: &str| ConsoleSettings::Command(["sh", "-c", script].map(str::to_owned).to_vec());
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
    let own = server(words("echo hello; exec sleep 60"));
    assert!(!is_recorded(&folder));
    let console = Console::open(&own, home.path());
    wait_for(&console, "hello\n");
    drop(console);
    let recorder = Recorder::open(&server(words("sleep 0.3; echo oops")), home.path()).unwrap().unwrap();
    assert!(is_recorded(&folder));
    let console = Console::open(&own, home.path());
    std::thread::scope(|scope| {
        scope.spawn(|| record(recorder, 2));
        wait_for(&console, "oops\n");
    });
    assert!(!is_recorded(&folder), "it has ended");
    let none = ServerSettings { console: None, ..own };
    assert!(Console::open(&none, home.path()).take().is_empty());
}
