//! `marvin`: the command line. Answers go to standard output, progress and hints to standard error,
//! and the exit code sums up the result. The libraries measure and judge.

mod cli;
mod commands;
mod completion;
mod exit;
mod measure;
mod options;
mod queue;
mod select;
mod servers;
mod session;
mod views;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::exit::Exit;
use crate::options::is_bisect_run;
use crate::session::{About, LogLevel, Session, write_event};

fn main() -> ExitCode {
    completion::answer(cli::Arguments::command);
    let is_bisect_run = is_bisect_run(std::env::args_os());
    let exit = run();
    ExitCode::from(if is_bisect_run {
        exit.bisect_code()
    } else {
        exit.code()
    })
}

/// Runs the command that the words ask for.
fn run() -> Exit {
    let arguments = match cli::Arguments::try_parse().map_err(cli::without_variables) {
        Ok(arguments) => arguments,
        Err(error) => {
            // A closed output is no error.
            drop(error.print());
            return if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::Fine
            };
        }
    };
    if is_program_forgotten(std::env::args_os()) {
        say("error: no program follows `--`: marvin compare A B -- ./my-bench --args");
        return Exit::Usage;
    }
    if let Err(error) = can_have_threads() {
        say(&error);
        return Exit::Lab;
    }
    let session = Session::new(arguments.global);
    // A panic is always a bug in Marvin and has its own exit code.
    let end = std::panic::catch_unwind(|| arguments.command.run(&session));
    match end {
        Ok(Ok(exit)) => exit,
        Ok(Err(error)) => exit::explain(&error),
        Err(_) => {
            say("marvin: this is a bug in marvin, please report it with the lines above");
            Exit::Bug
        }
    }
}

/// Returns whether the words end with the `--` that a program follows: all workloads would run
/// instead of a program that a script's variable has lost.
fn is_program_forgotten(words: impl Iterator<Item = OsString>) -> bool {
    let mut rest = words.skip_while(|word| word != "--");
    rest.next().is_some() && rest.next().is_none()
}

/// Checks that this host lets threads be made: the seccomp filters of old container runtimes refuse
/// a system call that they do not know, where libc asks for the error of a missing one.
fn can_have_threads() -> Result<(), String> {
    match std::thread::Builder::new().spawn(|| ()) {
        Ok(thread) => {
            drop(thread.join());
            Ok(())
        }
        Err(error) => Err(format!(
            "error: this host lets Marvin make no threads (clone3: {error})\nhint: a container's seccomp filter that is \
             older than the C library refuses it: update the container runtime, or use --security-opt seccomp=unconfined; \
             or raise the limits of processes (ulimit -u, pids.max)"
        )),
    }
}

/// Prints text on standard error, or logs it if this process is a service.
fn say(text: &str) {
    write_event(LogLevel::Info, About::default(), text);
}

#[cfg(test)]
mod tests {
    use super::is_program_forgotten;

    #[test]
    fn only_an_empty_tail_is_a_mistake() {
        let is_forgotten = |line: &str| {
            let words: Vec<std::ffi::OsString> = line.split(' ').map(Into::into).collect();
            is_program_forgotten(words.into_iter())
        };
        assert!(is_forgotten("run deb:6.12 --"));
        for line in ["run deb:6.12", "run -- a", "run -- echo --"] {
            assert!(!is_forgotten(line), "{line}");
        }
    }
}
