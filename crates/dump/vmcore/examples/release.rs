//! Prints what kernel a dump is of, read from its memory: `cargo run -p vmcore --example release --
//! VMCORE`.

use std::io::Write;
use std::path::PathBuf;

use vmcore::{Dump, Io, Reader, VirtualMemory};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let paths: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let dump = Dump::open(&paths)?;
    let mut reader = Reader::new(&dump, Io::Map);
    let memory = VirtualMemory::new(&dump)?;
    let info = dump.info();
    let names = info.symbol("init_uts_ns").ok_or("no init_uts_ns")?;
    let offset = info
        .size("OFFSET", "uts_namespace.name")
        .ok_or("no uts_namespace.name")?;
    // Six texts of 65 bytes (include/uapi/linux/utsname.h): the third is the release.
    let bytes = memory.read(&mut reader, names + offset as u64, 3 * 65)?;
    let release = String::from_utf8_lossy(&bytes[2 * 65..]);
    writeln!(std::io::stdout(), "{}", release.trim_end_matches('\0'))?;
    Ok(())
}
