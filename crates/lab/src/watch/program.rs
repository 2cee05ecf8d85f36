//! Programs of others that are fed something and waited for, not for ever.

use std::io::{self, Read, Write};
use std::process::{Command, Stdio};

/// The status by which timeout(1) says that it ended the program, and the one after its SIGKILL.
const TIMED_OUT: [i32; 2] = [124, 137];
/// The status by which it says that there is no such program.
const NOT_FOUND: i32 = 127;
/// What a program says is kept to so many bytes.
const SAID_MAX: u64 = 4096;

/// Whether a program took what it was fed; if not, why.
pub(crate) type Fed = Result<(), String>;

/// Runs a program, feeds it, and waits for its end.
pub(crate) fn feed(words: &[String], input: &[u8], deadline_s: u64) -> Fed {
    let Some(name) = words.first() else { return Err("no program is named".into()) };
    let mut command = Command::new("setpriv");
    // It does not outlive a Marvin that is killed: timeout(1) hands the signal on.
    command.args(["--pdeathsig", "TERM", "timeout", "--kill-after=5", &deadline_s.to_string()]).args(words);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("{name}: {error}"))?;
    // A program that reads nothing, or ends early, is judged by how it ends. Inputs are small: this does not block for long.
    let written = child.stdin.take().map_or(Ok(()), |mut pipe| pipe.write_all(input));
    let mut said = Vec::new();
    if let Some(mut errors) = child.stderr.take() {
        let kept: io::Result<_> = errors.by_ref().take(SAID_MAX).read_to_end(&mut said);
        // The rest is read and dropped, so that the program can end.
        drop(kept.and_then(|_| io::copy(&mut errors, &mut io::sink())));
    }
    let status = child.wait().map_err(|error| format!("{name}: {error}"))?;
    let said = String::from_utf8_lossy(&said);
    let line = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    match status.code() {
        Some(0) => written
            .or_else(|error| if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error.to_string()) }),
        Some(NOT_FOUND) => Err(format!("there is no program `{name}`")),
        Some(code) if TIMED_OUT.contains(&code) => Err(format!("{name} did not end within {deadline_s} s")),
        code => {
            Err(format!("{name} ended with {}: {line}", code.map_or("a signal".to_owned(), |code| code.to_string())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::feed;

    #[test]
    fn programs_are_fed_and_judged_by_their_end() {
        let run =
            |script: &str, deadline_s: u64| feed(&["sh".into(), "-c".into(), script.into()], b"some\n", deadline_s);
        assert_eq!(run("read a && test \"$a\" = some", 10), Ok(()));
        assert_eq!(run("exit 0", 10), Ok(()), "who does not read may end well");
        assert_eq!(run("echo why >&2; exit 3", 10), Err("sh ended with 3: why".into()));
        assert_eq!(run("sleep 60", 1), Err("sh did not end within 1 s".into()));
        assert_eq!(feed(&["nonesuch".into()], b"", 10), Err("there is no program `nonesuch`".into()));
        assert!(feed(&[], b"", 10).is_err());
    }
}
