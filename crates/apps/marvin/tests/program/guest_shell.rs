//! `marvin shell`: lines of a pipe and a terminal in a guest of a real kernel, and how it fails.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use crate::fresh::fresh;
use crate::{format_output, marvin, names};

/// Runs Marvin in a directory with these lines as its input.
fn feed(folder: &Path, home: &Path, arguments: &[&str], lines: &[u8]) -> String {
    let mut running = marvin(home)
        .current_dir(folder)
        .arg("shell")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // One that refuses its arguments reads nothing.
    running.stdin.take().unwrap().write_all(lines).ok();
    let output = running.wait_with_output().unwrap();
    format_output(&output, home).replace(&folder.display().to_string(), "DIR")
}

fn script(folder: &Path, name: &str, text: &str) {
    let file = folder.join(name);
    std::fs::write(&file, text).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn lines_run_where_own_program_would() {
    let folder = tempfile::tempdir().unwrap();
    let home = fresh("guest-shell");
    script(
        folder.path(),
        "my bench",
        "#!/bin/sh\necho \"args $*\"\ncat data\n",
    );
    std::fs::write(folder.path().join("data"), "brought\n").unwrap();
    let [_, newer] = names();
    let brought = [
        &newer,
        "-q",
        "--with",
        "data",
        "--env",
        "A=b c",
        "--",
        "./my bench",
        "-t",
        "1",
    ];
    let lines = "uname -r\nif true; then\n  './my bench' -t 1\nfi\npwd\necho \"$A\"\n\
                 ulimit -n\nls -d /dev/shm /sys/kernel/debug\ncat\nprintf 'a\\r\\nb\\n'\nnonesuch\n";
    let text = feed(folder.path(), &home, &brought, lines.as_bytes());
    let expected = "args -t 1\nbrought\nDIR\nb c\n1024\n/dev/shm\n/sys/kernel/debug\na\r\nb\n\
                    /run/lines: 11: nonesuch: not found\n";
    assert!(
        text.starts_with("exit 4\n-- out\n6.12.") && text.contains(expected),
        "{text}"
    );
    assert!(
        text.ends_with("error: the shell in the guest ended with exit status 127\n"),
        "{text}"
    );
    // More than one block of lines, from the same snapshot.
    let many = format!("{}echo last\n", "true and more words\n".repeat(300));
    let text = feed(folder.path(), &home, &brought, many.as_bytes());
    assert_eq!(text, "exit 0\n-- out\nlast\n-- err\n");
    // No run is stored.
    let runs = marvin(&home).arg("runs").output().unwrap();
    assert!(!String::from_utf8_lossy(&runs.stdout).contains("6.12"));
}

#[test]
fn end_of_guest_ends_lines() {
    let folder = tempfile::tempdir().unwrap();
    let home = fresh("guest-shell-ends");
    let [older, _] = names();
    let ends = |more: &[&str], lines: &str| {
        let arguments = [&[&*older, "-q"][..], more].concat();
        feed(folder.path(), &home, &arguments, lines.as_bytes())
    };
    let text = ends(&[], "echo c >/proc/sysrq-trigger\nsleep 60\n");
    assert!(
        text.starts_with("exit 4") && text.contains("failed in stage workload: panicked"),
        "{text}"
    );
    let text = ends(&[], "echo b >/proc/sysrq-trigger\nsleep 60\n");
    let switched_off = "-- err\nerror: the guest switched off before its shell ended\n";
    assert!(
        text.starts_with("exit 4") && text.ends_with(switched_off),
        "{text}"
    );
    let text = ends(&[], "kill -9 -1\n");
    let killed = "error: the shell in the guest was killed: /usr/bin/setsid: killed by signal 9\n";
    assert!(
        text.starts_with("exit 4") && text.ends_with(killed),
        "{text}"
    );
    let text = ends(&["--timeout", "5s"], "while :; do :; done\n");
    assert_eq!(
        text,
        "exit 4\n-- out\n-- err\nerror: the session did not end within 5 s\n\
         hint: --timeout gives it more time\n"
    );
}

#[test]
fn terminal_is_as_before_after_session() {
    let folder = tempfile::tempdir().unwrap();
    let home = fresh("guest-shell-terminal");
    let [_, newer] = names();
    script(folder.path(), "mine", "#!/bin/sh\necho \"typed $1\"\n");
    let program = env!("CARGO_BIN_EXE_marvin");
    // script(1) gives its command a terminal. Marvin has the number of the shell that says it.
    let command = format!(
        "stty -g; sh -c 'echo pid $$; exec \"$@\"' - {program} shell {newer} -- ./mine 'a b'; \
         sleep 1; stty -g"
    );
    let session = |keys: Option<&[u8]>| {
        let mut running = Command::new("script")
            .args(["-qec", &command, "/dev/null"])
            .current_dir(folder.path())
            .env("MARVIN_HOME", &*home)
            .env("TERM", "dumb")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = running.stdin.take().unwrap();
        let mut output = running.stdout.take().unwrap();
        let (over, is_over) = std::sync::mpsc::channel::<()>();
        let mut typist = keys.map(|keys| {
            let keys = keys.to_vec();
            move || {
                // On a host with much else to do, an idle guest may miss keys: a person types again.
                for _ in 0..10 {
                    input.write_all(&keys).ok();
                    let ended = is_over.recv_timeout(Duration::from_secs(20));
                    if ended == Err(RecvTimeoutError::Disconnected) {
                        break;
                    }
                }
            }
        });
        let mut text = String::new();
        let mut part = [0; 4096];
        let mut is_done = false;
        loop {
            let count = output.read(&mut part).unwrap();
            if count == 0 {
                break;
            }
            text.push_str(&String::from_utf8_lossy(&part[..count]));
            if is_done || !text.contains("# ./mine 'a b'") {
                continue;
            }
            is_done = true;
            match typist.take() {
                Some(typist) => drop(std::thread::spawn(typist)),
                None => {
                    let id = text.split("pid ").nth(1).unwrap();
                    let id = id.split_whitespace().next().unwrap();
                    let killed = Command::new("kill").args(["-9", id]).status().unwrap();
                    assert!(killed.success());
                }
            }
        }
        drop(over);
        running.wait().unwrap();
        text
    };
    let exits = (Some(&b"\rexit\r"[..]), "typed a b");
    let leaves = (Some(&b"\x01x"[..]), "# ./mine 'a b'");
    let is_killed = (None, "# ./mine 'a b'");
    for (keys, printed) in [exits, leaves, is_killed] {
        let text = session(keys);
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        assert!(text.contains(printed), "{text}");
        assert!(text.contains("nothing is measured or stored"), "{text}");
        assert_eq!(lines.first(), lines.last(), "{text}");
    }
}

#[test]
fn mistakes_at_shells_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let home = fresh("guest-shell-mistakes");
    let refused = |words: &[&str], lines: &[u8]| feed(folder.path(), &home, words, lines);
    insta::assert_snapshot!(
        "shell-program-not-there",
        refused(&["deb:6.12", "-q", "--", "./none"], b"true\n")
    );
    insta::assert_snapshot!(
        "shell-file-not-there",
        refused(&["deb:6.12", "-q", "--with", "none"], b"true\n")
    );
    let on = ["vm", "exact-smp", "local", "testbox\u{1b}[2J"]
        .map(|machine| refused(&["deb:6.12", "--on", machine], b"true\n"));
    insta::assert_snapshot!("shell-on-others", on.join("\n"));
    insta::assert_snapshot!("shell-no-lines", refused(&["deb:6.12", "-q"], b""));
    insta::assert_snapshot!(
        "shell-too-many-lines",
        refused(&["deb:6.12", "-q"], &b"true\n".repeat(20_000))
    );
    std::fs::write(folder.path().join("image"), "no kernel").unwrap();
    insta::assert_snapshot!("shell-no-kernel", refused(&["path:image", "-q"], b"true\n"));
}
