//! `marvin-dump`: the command line of the library `vmcore`, and nothing more.

use std::io::{IsTerminal, Write};
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use vmcore::Screen;
use vmcore::command::{Arguments, Host, guard, run_on, tell_of_bus_errors};

/// A panic is a bug of ours and nothing else; it has its own exit code.
const BUG: u8 = 70;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    tell_of_bus_errors();
    let start = Instant::now();
    let mut input = std::io::stdin();
    let (mut answers, mut messages) = (std::io::stdout(), std::io::stderr());
    let clock = || start.elapsed();
    let mut host = Host { input: &mut input, answers: &mut answers, messages: &mut messages, clock: &clock };
    let screen = if std::io::stderr().is_terminal() { Screen::Terminal } else { Screen::Plain };
    match guard(AssertUnwindSafe(|| run_on(screen, &arguments, &mut host))) {
        Some(exit) => ExitCode::from(exit.code()),
        None => {
            // With nobody to tell, the exit code still does.
            drop(writeln!(std::io::stderr(), "marvin-dump: this is a bug, please report it with the lines above"));
            ExitCode::from(BUG)
        }
    }
}
