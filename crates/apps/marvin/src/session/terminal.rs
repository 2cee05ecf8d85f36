//! The user's terminal while a guest has it: every key goes to the guest. However Marvin ends, the
//! terminal is as before: a script that outlives a killed Marvin sets it back.

use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use subprocess::{AtEnd, Program};

use crate::exit::WrongInput;

/// Sets a terminal back to what $1 says.
const SET_BACK: &str = "exec stty \"$1\" <&1";
/// Ctrl-A, which begins a command to Marvin, as at QEMU's own console.
const ESCAPE: u8 = 1;
/// Rows and columns of a terminal that does not say its size.
const USUAL_SIZE: (u16, u16) = (24, 80);

/// A terminal that passes keys as they are, until this is dropped.
#[derive(Debug)]
pub(crate) struct RawTerminal {
    _set_back: AtEnd,
}

impl RawTerminal {
    /// Returns whether a person is at both ends of this program.
    ///
    /// # Errors
    /// If only the input is a terminal.
    pub(crate) fn is_there() -> Result<bool, WrongInput> {
        match (io::stdin().is_terminal(), io::stdout().is_terminal()) {
            (true, false) => Err(WrongInput(
                "cannot open a shell: standard input is a terminal, and standard output is none\nhint: leave the output at \
                 the terminal, or pipe the lines in: echo 'uname -r' | marvin shell KERNEL"
                    .to_owned(),
            )),
            (input, _) => Ok(input),
        }
    }

    /// Returns the terminal's rows and columns.
    pub(crate) fn size() -> (u16, u16) {
        let size = stty(&["size"]).unwrap_or_default();
        let mut numbers = size.split_whitespace().map(str::parse::<u16>);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(rows @ 1..)), Some(Ok(columns @ 1..))) => (rows, columns),
            _ => USUAL_SIZE,
        }
    }

    /// Makes the terminal pass all keys.
    ///
    /// # Errors
    /// If stty(1) cannot set it, or nothing could set it back.
    pub(crate) fn set() -> anyhow::Result<Self> {
        let before = stty(&["-g"])?;
        let terminal = io::stdin().as_fd().try_clone_to_owned()?;
        let set_back = AtEnd::arm(SET_BACK, &[before.trim()], Stdio::from(terminal))?;
        stty(&["raw", "-echo"])?;
        Ok(Self {
            _set_back: set_back,
        })
    }
}

/// Runs stty(1) on the terminal, and returns what it prints.
fn stty(arguments: &[&str]) -> io::Result<String> {
    let mut running = Program::new("stty").args(arguments).deadline_s(10).start(
        Stdio::inherit(),
        Stdio::piped(),
        Stdio::null(),
    )?;
    let mut text = String::new();
    if let Some(mut output) = running.take_output() {
        output.read_to_string(&mut text)?;
    }
    match running.wait()? {
        (status, false) if status.success() => Ok(text),
        _ => Err(io::Error::other(format!(
            "cannot set the terminal: `stty {}` failed; it is a program of coreutils and of busybox",
            arguments.join(" ")
        ))),
    }
}

/// Sends keys to a guest until the user leaves, which the flag then says. The thread waits for keys
/// and ends with Marvin.
///
/// # Errors
/// If the host makes no thread.
pub(crate) fn send_keys(mut guest: UnixStream, has_left: Arc<AtomicBool>) -> io::Result<()> {
    let send = move || {
        let mut keys = Keys::default();
        let mut typed = [0; 1024];
        loop {
            let count = match io::stdin().lock().read(&mut typed) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Ok(count @ 1..) => count,
                // The terminal is gone.
                _ => break,
            };
            let (keys, leaves) = keys.take(&typed[..count]);
            // A guest that has ended takes no more, and the main thread knows.
            if leaves || guest.write_all(&keys).is_err() {
                break;
            }
        }
        has_left.store(true, Ordering::SeqCst);
    };
    thread::Builder::new()
        .name("keys".to_owned())
        .spawn(send)
        .map(drop)
}

/// What was typed so far.
#[derive(Debug, Default)]
struct Keys {
    is_escaped: bool,
}

impl Keys {
    /// Returns what goes to the guest, and whether the user leaves: Ctrl-A x. Ctrl-A twice is
    /// Ctrl-A for the guest.
    fn take(&mut self, typed: &[u8]) -> (Vec<u8>, bool) {
        let mut passed = Vec::with_capacity(typed.len());
        for key in typed {
            match (self.is_escaped, *key) {
                (false, ESCAPE) => {
                    self.is_escaped = true;
                    continue;
                }
                (true, b'x' | b'X') => return (passed, true),
                (true, ESCAPE) | (false, _) => passed.push(*key),
                // No command of ours: both were for the guest.
                (true, _) => passed.extend([ESCAPE, *key]),
            }
            self.is_escaped = false;
        }
        (passed, false)
    }
}

#[cfg(test)]
mod tests {
    use super::Keys;

    #[test]
    fn keys_pass_until_user_leaves() {
        let mut keys = Keys::default();
        assert_eq!(keys.take(b"ls\x03\x01"), (b"ls\x03".to_vec(), false));
        assert_eq!(keys.take(b"\x01a\x01b"), (b"\x01a\x01b".to_vec(), false));
        assert_eq!(keys.take(b"\x01xls"), (Vec::new(), true));
    }
}
