//! `marvin-dump`: its commands, and what a panic of theirs becomes.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use marvin_dump::{Arguments, run_here};

/// A panic is a bug of ours and nothing else; it has its own exit code.
const BUG: u8 = 70;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match std::panic::catch_unwind(|| run_here(&arguments)) {
        Ok(exit) => ExitCode::from(exit.code()),
        Err(_) => {
            // With nobody to tell, the exit code still does.
            drop(writeln!(std::io::stderr(), "marvin-dump: this is a bug, please report it with the lines above"));
            ExitCode::from(BUG)
        }
    }
}
