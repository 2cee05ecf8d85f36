//! Leaves out what a crash seldom needs (level 31) and writes a kdump-compressed file:
//! `cargo run -p vmcore --example filter -- VMCORE OUT`.

use std::io::Write;
use std::path::PathBuf;

use vmcore::{
    Codec, Dump, FileSink, Filter, Io, Level, Overwrite, Plan, Reader, Style, Work, names, verify,
    write_kdump,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let paths: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [input, output] = paths.as_slice() else {
        return Err("usage: filter VMCORE OUT".into());
    };
    let dump = Dump::open(std::slice::from_ref(input))?;
    let mut reader = Reader::new(&dump, Io::Map);
    let level = Level::new(31).ok_or("no such level")?;
    let filter = Filter::for_level(&mut reader, level)?;
    let work = Work {
        threads: 2,
        io: Io::Map,
        memory: 64 << 20,
        folder: None,
    };
    let plan = Plan::make(&dump, filter.as_ref(), &work)?;
    let style = Style {
        codec: Codec::Zstd,
        effort: None,
        level,
        part: None,
        limit: None,
        names: names(&mut reader),
    };
    let sink = FileSink::create(output, Overwrite::No)?;
    let written = write_kdump(&plan, &style, &work, &sink)?;
    let differences = verify(&plan, &Dump::open(std::slice::from_ref(output))?, &work)?;
    writeln!(
        std::io::stdout(),
        "{} of {} pages in {} bytes, {} differ",
        written.pages,
        plan.memory(),
        written.bytes,
        differences.pages
    )?;
    Ok(())
}
