//! The state of a stopped guest's devices, between QEMU and a file: over a socket in the scratch
//! directory, as QEMU's filter lets it start no program. QEMU before 8.2 has no migration to
//! `file:`, and `fd:` needs a descriptor that was passed over a socket of the monitor.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use serde_json::json;

use super::{Process, Scratch};
use crate::MachineError;

/// The devices' state within a scratch directory.
pub const STATE: &str = "state";
/// The socket beside it.
const SOCKET: &str = "state.socket";
/// Longest wait for a part of the state.
const PATIENCE: Duration = Duration::from_secs(60);
/// Limit on a state (bytes): its memory stays elsewhere, the devices' own takes some hundred
/// kilobytes.
const BYTES_MAX: u64 = 64 << 20;

/// Writes the state of a stopped guest's devices into the scratch directory.
///
/// # Errors
/// If QEMU refuses or dies, or the file cannot be written.
pub fn save(process: &mut Process, scratch: &Scratch) -> Result<(), MachineError> {
    leave_memory(process)?;
    let listener = scratch.at_socket(SOCKET, UnixListener::bind)?;
    process.command("migrate", json!({ "uri": format!("unix:{SOCKET}") }))?;
    // From then on QEMU is connected, or has failed.
    let status = process.until_not("query-migrate", &["none", "setup"])?;
    let path = scratch.path(STATE);
    if ["active", "device", "completed"].contains(&status.as_str()) {
        receive(&listener, &path).map_err(MachineError::io("write", &path))?;
    }
    match process
        .until_not("query-migrate", &["active", "device"])?
        .as_str()
    {
        "completed" => Ok(()),
        status => Err(MachineError::Refused {
            command: "migrate".into(),
            answer: status.to_owned(),
        }),
    }
}

/// Gives a waiting QEMU the state in the scratch directory.
///
/// # Errors
/// If QEMU refuses or dies, or the file cannot be read.
pub fn restore(process: &mut Process, scratch: &Scratch) -> Result<(), MachineError> {
    leave_memory(process)?;
    process.command(
        "migrate-incoming",
        json!({ "uri": format!("unix:{SOCKET}") }),
    )?;
    let stream = scratch.at_socket(SOCKET, UnixStream::connect)?;
    let path = scratch.path(STATE);
    send(&path, stream).map_err(MachineError::io("read", &path))?;
    let status = process.until_not("query-status", &["inmigrate"])?;
    // It was saved in the state in which the watchdog stopped it.
    match status.as_str() {
        "watchdog" | "paused" => Ok(()),
        _ => Err(MachineError::Refused {
            command: "migrate-incoming".into(),
            answer: status,
        }),
    }
}

/// Makes QEMU migrate only the devices' state: memory stays in its file.
fn leave_memory(process: &mut Process) -> Result<(), MachineError> {
    let capabilities =
        json!({ "capabilities": [{ "capability": "x-ignore-shared", "state": true }] });
    process
        .command("migrate-set-capabilities", capabilities)
        .map(|_| ())
}

fn receive(listener: &UnixListener, path: &Path) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let (stream, _) = listener.accept()?;
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let read = io::copy(
        &mut stream.take(BYTES_MAX + 1),
        &mut File::create_new(path)?,
    )?;
    if read > BYTES_MAX {
        return Err(io::Error::new(
            ErrorKind::FileTooLarge,
            format!("state of more than {BYTES_MAX} bytes"),
        ));
    }
    Ok(())
}

fn send(path: &Path, mut stream: UnixStream) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    io::copy(&mut File::open(path)?, &mut stream)?;
    stream.shutdown(Shutdown::Write)
}
