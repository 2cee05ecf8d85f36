//! `marvin-dump`: executes its commands, and reports panics. Called as `makedumpfile`, it behaves
//! as scripts expect of that.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use marvin_dump::{Allocator, Arguments, Exit, run_here};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// A panic is always a bug in marvin-dump and has its own exit code.
const BUG: u8 = 70;
/// The name by which scripts call the program, through a link, and the code of all its failures.
const MAKEDUMPFILE: &str = "makedumpfile";
const FAILED: u8 = 1;

fn main() -> ExitCode {
    let called = std::env::args_os().next().unwrap_or_default();
    let is_makedumpfile = Path::new(&called)
        .file_name()
        .is_some_and(|name| name == MAKEDUMPFILE);
    let mut arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // If the stream is closed, the exit code remains.
            drop(error.print());
            let code = u8::try_from(error.exit_code()).unwrap_or(FAILED);
            return ExitCode::from(if is_makedumpfile {
                code.min(FAILED)
            } else {
                code
            });
        }
    };
    arguments.save.is_raw = is_makedumpfile;
    match std::panic::catch_unwind(|| run_here(&arguments)) {
        Ok(exit) if is_makedumpfile && exit != Exit::Fine => ExitCode::from(FAILED),
        Ok(exit) => ExitCode::from(exit.code()),
        Err(_) => {
            // If standard error is closed, the exit code remains.
            drop(writeln!(
                std::io::stderr(),
                "marvin-dump: this is a bug, please report it with the lines above"
            ));
            ExitCode::from(BUG)
        }
    }
}
