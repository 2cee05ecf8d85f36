//! Tests of the command line: arguments, messages, files, and the exit code.

mod as_makedumpfile;
mod command;
mod command_line;
mod erase;
mod incomplete_notes;
mod limits;
mod live;
mod losses;
mod progress;
mod ram;
mod thin;
mod usage;
mod vmcoreinfo;

/// What a test returns.
type Outcome = Result<(), Box<dyn std::error::Error>>;
