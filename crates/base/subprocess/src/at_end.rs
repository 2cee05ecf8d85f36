//! A script that is executed when Marvin ends, however it ends: by itself, by Ctrl-C, or by a
//! SIGKILL.
//!
//! It waits in a session of its own, where no signal of a terminal reaches it, for the end of a
//! pipe of which only Marvin has the other end: that end comes with every death.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};

/// Waits for the end of standard input; a line there means that there is nothing to do any more.
/// Its messages are dropped, because Marvin, which would read them, may be gone.
const WAITING: &str = "trap '' HUP INT TERM\necho ready >&2\nexec 2>/dev/null\nIFS= read -r line && exit 0\nexec </dev/null\n";

/// A waiting script. It is executed when this is dropped.
#[derive(Debug)]
pub struct AtEnd {
    guard: Child,
    pipe: Option<ChildStdin>,
}

impl AtEnd {
    /// Starts it, and returns when it waits. The script has the arguments from `$1` on, and prints
    /// to `output`.
    ///
    /// # Errors
    /// If the host cannot start it.
    pub fn arm(script: &str, arguments: &[&str], output: Stdio) -> io::Result<Self> {
        let mut command = Command::new("setsid");
        command
            .args(["sh", "-c", &format!("{WAITING}{script}"), "at-end"])
            .args(arguments);
        command
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        let mut guard = command
            .stdin(Stdio::piped())
            .stdout(output)
            .stderr(Stdio::piped())
            .spawn()?;
        let pipe = guard.stdin.take();
        let mut line = String::new();
        if let Some(errors) = guard.stderr.take() {
            BufReader::new(errors).read_line(&mut line)?;
        }
        let mut armed = Self { guard, pipe };
        if line == "ready\n" {
            return Ok(armed);
        }
        armed.end()?;
        Err(io::Error::other(format!(
            "the guard did not start: {}",
            line.trim()
        )))
    }

    /// Executes it now and waits for its end.
    ///
    /// # Errors
    /// If the host fails.
    pub fn execute(mut self) -> io::Result<ExitStatus> {
        self.end()
    }

    /// Ends it without executing it.
    ///
    /// # Errors
    /// If the host fails.
    pub fn cancel(mut self) -> io::Result<()> {
        if let Some(mut pipe) = self.pipe.take() {
            // One that was killed executes nothing either.
            pipe.write_all(b"nothing to do\n").ok();
        }
        self.guard.wait().map(drop)
    }

    fn end(&mut self) -> io::Result<ExitStatus> {
        drop(self.pipe.take());
        self.guard.wait()
    }
}

impl Drop for AtEnd {
    fn drop(&mut self) {
        // Its status is of no use any more.
        self.end().ok();
    }
}
