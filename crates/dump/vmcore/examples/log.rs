//! Prints the kernel's log, and reads every page: `cargo run -p vmcore --example log -- VMCORE`.

use std::io::Write;
use std::path::PathBuf;

use vmcore::{Dump, Io, LogPart, Reader, Work, check, log};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let paths: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let dump = Dump::open(&paths)?;
    let text = log(&mut Reader::new(&dump, Io::Read), LogPart::All)?;
    let damage = check(
        &dump,
        &Work {
            threads: 2,
            io: Io::Read,
            memory: 64 << 20,
            folder: None,
        },
    )?;
    let mut out = std::io::stdout();
    out.write_all(text.as_bytes())?;
    writeln!(
        out,
        "{} of {} pages cannot be read",
        damage.pages, damage.read
    )?;
    Ok(())
}
