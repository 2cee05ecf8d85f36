//! `marvin`: the command line. Answers go to standard output, progress and hints to standard error, and the exit code
//! says what came out. What is measured and how it is judged is the libraries' business.

mod answer;
mod bisection;
mod cli;
mod commands;
mod exit;
mod export;
mod home;
mod progress;
mod rows;
mod series;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use crate::exit::Exit;

fn main() -> ExitCode {
    let arguments = cli::Arguments::try_parse().unwrap_or_else(|error| cli::without_variables(error).exit());
    // A panic is a bug of ours and nothing else; it has its own exit code.
    let end = std::panic::catch_unwind(|| commands::run(&arguments));
    let exit = match end {
        Ok(Ok(exit)) => exit,
        Ok(Err(error)) => exit::explain(&error),
        Err(_) => {
            say("marvin: this is a bug in marvin, please report it with the lines above");
            Exit::Bug
        }
    };
    ExitCode::from(exit.code())
}

/// Says something on standard error; if that is closed, nobody is there to hear it.
fn say(text: &str) {
    drop(writeln!(std::io::stderr(), "{text}"));
}
