//! Runs external programs with input and a deadline.

use std::io;

use subprocess::{Program, ProgramError};

/// Whether a program accepted its input; if not, why.
pub(crate) type InputResult = Result<(), String>;

/// Runs a program, writes its input, and waits for its end.
pub(crate) fn feed(command: &[String], input: &[u8], deadline_s: u64) -> InputResult {
    let Some((name, arguments)) = command.split_first() else {
        return Err("no program given".into());
    };
    let program = Program::new(name)
        .args(arguments)
        .deadline_s(deadline_s)
        .inherit(&subprocess::NETWORK);
    let (ended, written) =
        program
            .fed(|pipe| pipe.write_all(input))
            .map_err(|error| match error {
                ProgramError::Deadline { .. } => {
                    format!("{name} did not end within {deadline_s} s")
                }
                ProgramError::Io { source, .. } => format!("{name}: {source}"),
                ProgramError::Missing(_) | ProgramError::NoLoader(_) => error.to_string(),
            })?;
    match (ended.code, written) {
        // A program that ignores its input, or ends early, is judged by its exit code.
        (Some(0), Some(Err(error))) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error.to_string())
        }
        (Some(0), _) => Ok(()),
        (Some(code), _) => Err(format!("{name} ended with {code}: {}", ended.reason())),
        (None, _) => Err(format!("{name} ended with a signal: {}", ended.reason())),
    }
}

#[cfg(test)]
mod tests {
    use super::feed;

    #[test]
    fn programs_are_judged_by_their_exit() {
        let run = |script: &str, deadline_s: u64| {
            feed(
                &["sh".into(), "-c".into(), script.into()],
                b"some\n",
                deadline_s,
            )
        };
        assert_eq!(run("read a && test \"$a\" = some", 10), Ok(()));
        assert_eq!(run("exit 0", 10), Ok(()), "who does not read may end well");
        assert_eq!(
            run("echo why >&2; exit 3", 10),
            Err("sh ended with 3: why".into())
        );
        assert_eq!(run("sleep 60", 1), Err("sh did not end within 1 s".into()));
        assert_eq!(
            feed(&["nonesuch".into()], b"", 10),
            Err("there is no program `nonesuch`".into())
        );
        assert!(feed(&[], b"", 10).is_err());
    }
}
