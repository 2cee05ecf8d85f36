//! A running guest: the commands that it gets, and its state after the program ends or is killed.

use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixListener;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::JoinHandle;

use synthetic_dumps::Synthetic;
use vmcore::{Dump, Io, Reader};

use crate::Outcome;

/// Writes a guest's memory and its VMCOREINFO.
fn guest(folder: &Path) -> Outcome {
    let groups = "0x010+40 anon\n 0x100 free 8\n 0x400+100 slab".to_owned();
    Synthetic {
        groups,
        ..Synthetic::default()
    }
    .write(&folder.join("vmcore"))?;
    let dump = Dump::open(&[folder.join("vmcore")])?;
    let mut reader = Reader::new(&dump, Io::Read);
    let file = File::create(folder.join("ram"))?;
    for page in 0..dump.pages() {
        file.write_all_at(reader.bytes(page * 4096, 4096)?, page * 4096)?;
    }
    let text: String = dump
        .info()
        .lines()
        .map(|(key, value)| format!("{key}={value}\n"))
        .collect();
    std::fs::write(folder.join("info"), text)?;
    Ok(())
}

/// The reaction to `stop`.
enum Stop {
    Answered,
    /// No answer; call this function instead.
    Unanswered(Box<dyn FnOnce() + Send>),
}

/// A fake QEMU; returns its commands after the program has disconnected.
fn qemu(folder: &Path, running: bool, stop: Stop) -> std::io::Result<JoinHandle<Vec<String>>> {
    let listener = UnixListener::bind(folder.join("qmp"))?;
    Ok(std::thread::spawn(move || {
        serve(&listener, running, stop).unwrap_or_else(|error| vec![error.to_string()])
    }))
}

fn serve(
    listener: &UnixListener,
    running: bool,
    mut stop: Stop,
) -> Result<Vec<String>, Box<dyn Error>> {
    let (mut stream, _) = listener.accept()?;
    stream.write_all(b"{\"QMP\": {}}\n")?;
    let mut commands = Vec::new();
    for line in BufReader::new(stream.try_clone()?).lines() {
        let Ok(line) = line else { break };
        let command: serde_json::Value = serde_json::from_str(&line)?;
        let name = command["execute"].as_str().unwrap_or_default().to_owned();
        let answer = match name.as_str() {
            "query-status" => serde_json::json!({ "running": running }),
            "query-memdev" => serde_json::json!([{ "share": true }]),
            _ => serde_json::json!({}),
        };
        commands.push(name.clone());
        if name == "stop"
            && let Stop::Unanswered(instead) = std::mem::replace(&mut stop, Stop::Answered)
        {
            instead();
            continue;
        }
        let answer = serde_json::json!({ "return": answer, "id": command["id"] });
        if writeln!(stream, "{answer}").is_err() {
            break;
        }
    }
    Ok(commands)
}

fn start(folder: &Path, words: &[&str]) -> std::io::Result<Child> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_marvin-dump"));
    command
        .current_dir(folder)
        .args(["--qmp", "qmp", "--ram", "ram", "-i", "info", "-d", "31"])
        .args(words);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
}

fn stable_messages(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    // The number of milliseconds varies; the rest of the line does not.
    let words = text.split_inclusive(' ').collect::<Vec<_>>();
    let time = |n: usize| words.get(n + 1).is_some_and(|next| next.trim() == "ms");
    let shown = words
        .iter()
        .enumerate()
        .map(|(n, word)| if time(n) { "N " } else { word });
    shown.collect::<String>() + &format!("exit code {:?}\n", output.status.code())
}

const ALL: [&str; 5] = [
    "qmp_capabilities",
    "query-memdev",
    "query-status",
    "stop",
    "cont",
];

#[test]
fn running_guest_pauses_for_the_scan() -> Outcome {
    let folder = tempfile::tempdir()?;
    guest(folder.path())?;
    let qemu = qemu(folder.path(), true, Stop::Answered)?;
    let output = start(
        folder.path(),
        &["--compress", "none", "--threads", "1", "--json", "out"],
    )?
    .wait_with_output()?;
    assert_eq!(qemu.join().unwrap_or_default(), ALL);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    assert!(report["stood_still_ms"].is_u64(), "{report}");
    let info = Command::new(env!("CARGO_BIN_EXE_marvin-dump"))
        .arg("info")
        .arg(folder.path().join("out"))
        .output()?;
    insta::assert_snapshot!(stable_messages(&output) + &String::from_utf8_lossy(&info.stdout));
    Ok(())
}

#[test]
fn paused_guest_stays_paused() -> Outcome {
    let folder = tempfile::tempdir()?;
    guest(folder.path())?;
    let qemu = qemu(folder.path(), false, Stop::Answered)?;
    let output = start(
        folder.path(),
        &["--compress", "none", "--threads", "1", "out"],
    )?
    .wait_with_output()?;
    assert_eq!(qemu.join().unwrap_or_default(), ALL[..3]);
    insta::assert_snapshot!(stable_messages(&output));
    Ok(())
}

#[test]
fn guest_continues_when_the_scan_fails() -> Outcome {
    let folder = tempfile::tempdir()?;
    guest(folder.path())?;
    // An invalid note: noticed while the guest is paused.
    let info = folder.path().join("info");
    let text = std::fs::read_to_string(&info)?.replace("SIZE(page)=64", "SIZE(page)=7");
    std::fs::write(&info, text)?;
    let qemu = qemu(folder.path(), true, Stop::Answered)?;
    let output = start(folder.path(), &["out"])?.wait_with_output()?;
    assert_eq!(qemu.join().unwrap_or_default(), ALL);
    insta::assert_snapshot!(stable_messages(&output));
    Ok(())
}

#[test]
fn guest_continues_when_a_signal_kills() -> Outcome {
    let folder = tempfile::tempdir()?;
    guest(folder.path())?;
    let (sender, receiver) = std::sync::mpsc::channel();
    let instead = move || {
        // While the program waits for the answer.
        let process: u32 = receiver.recv().unwrap_or_default();
        drop(
            Command::new("kill")
                .args(["-TERM", &process.to_string()])
                .status(),
        );
    };
    let qemu = qemu(folder.path(), true, Stop::Unanswered(Box::new(instead)))?;
    let mut program = start(folder.path(), &["out"])?;
    sender.send(program.id())?;
    let status = program.wait()?;
    assert_eq!(status.signal(), Some(15), "it ends as the signal has it");
    assert_eq!(qemu.join().unwrap_or_default(), ALL);
    assert!(!folder.path().join("out").exists());
    Ok(())
}

#[test]
fn erasing_from_a_running_guest_is_refused() -> Outcome {
    let folder = tempfile::tempdir()?;
    guest(folder.path())?;
    let qemu = qemu(folder.path(), true, Stop::Answered)?;
    let output = start(
        folder.path(),
        &["--erase", "secrets", "-x", "vmlinux", "out"],
    )?
    .wait_with_output()?;
    assert_eq!(qemu.join().unwrap_or_default(), ALL[..3]);
    assert!(
        stable_messages(&output).contains("pause the guest first")
            && output.status.code() == Some(2)
    );
    assert!(!folder.path().join("out").exists());
    Ok(())
}
