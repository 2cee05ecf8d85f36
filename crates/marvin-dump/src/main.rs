//! `marvin-dump`: executes its commands, and reports panics.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use marvin_dump::{Arguments, run_here};

/// A panic is always a bug in marvin-dump and has its own exit code.
const BUG: u8 = 70;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match std::panic::catch_unwind(|| run_here(&arguments)) {
        Ok(exit) => ExitCode::from(exit.code()),
        Err(_) => {
            // If standard error is closed, the exit code remains.
            drop(writeln!(std::io::stderr(), "marvin-dump: this is a bug, please report it with the lines above"));
            ExitCode::from(BUG)
        }
    }
}
