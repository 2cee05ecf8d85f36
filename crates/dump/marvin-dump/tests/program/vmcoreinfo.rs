//! VMCOREINFO from a vmlinux, and from a dump.

use std::error::Error;
use std::path::Path;

use synthetic_dumps::Synthetic;
use synthetic_dumps::vmlinux::{Btf, Vmlinux};
use vmcore::Dump;

use crate::command_line::CommandResult;

/// Runs a command line in a directory; returns all output.
fn seen(folder: &Path, line: &str) -> Result<String, Box<dyn Error>> {
    Ok(CommandResult::run(folder, line, &[])?.transcript())
}

fn vmlinux(types: &[u8]) -> Vmlinux {
    let symbol = |name: &str, address: u64, size: u64| (name.to_owned(), address, size);
    let base = 0xffff_ffff_8100_0000;
    let mut note = Vec::new();
    for number in [4_u32, 4, 3] {
        note.extend(number.to_le_bytes());
    }
    note.extend(b"GNU\0\x01\x02\x03\xff");
    let mut vmlinux = Vmlinux {
        sections: vec![
            (
                ".rodata".to_owned(),
                base,
                b"Linux version 6.12.7-rc1+ (someone) #1\n\0".to_vec(),
            ),
            (".notes".to_owned(), 0, note),
        ],
        symbols: vec![
            symbol("linux_banner", base, 40),
            symbol("_stext", base, 0),
            symbol("init_top_pgt", base + 0x1000, 8192),
            symbol("node_data", base + 0x4000, 512),
            symbol("node_states", base + 0x5000, 640),
        ],
    };
    if !types.is_empty() {
        vmlinux
            .sections
            .push((".BTF".to_owned(), 0, types.to_vec()));
    }
    vmlinux
}

fn types() -> Vec<u8> {
    let mut btf = Btf::default();
    let long = btf.int("unsigned long", 8);
    let int = btf.int("int", 4);
    let words = btf.array(long, 16);
    let set = btf.record("", 128, &[("bits", words, 0)]);
    btf.typedef("nodemask_t", set);
    let count = btf.record("", 4, &[("_mapcount", int, 0)]);
    let inner = btf.record(
        "",
        40,
        &[
            ("compound_head", long, 0),
            ("mapping", long, 16),
            ("private", long, 32),
        ],
    );
    btf.record(
        "page",
        64,
        &[
            ("flags", long, 0),
            ("", inner, 8),
            ("", count, 48),
            ("_refcount", int, 52),
        ],
    );
    let areas = btf.array(long, 11);
    btf.record("zone", 200, &[("free_area", areas, 96)]);
    btf.enumeration(
        "pageflags",
        &[("PG_locked", 0), ("PG_lru", 5), ("PG_head", 6)],
    );
    btf.enumeration("pagetype", &[("PGTY_buddy", 240), ("PGTY_slab", 245)]);
    btf.enumeration("node_states", &[("N_POSSIBLE", 0), ("N_ONLINE", 1)]);
    btf.bytes()
}

#[test]
fn vmlinux_yields_vmcoreinfo() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name);
    vmlinux(&types()).write(&path("vmlinux"))?;
    vmlinux(&[]).write(&path("bare"))?;
    std::fs::write(path("text"), "text")?;
    let mut all = seen(folder.path(), "-g @info -x @vmlinux")?;
    all += &std::fs::read_to_string(path("info"))?;
    for line in [
        "-g @info -x @vmlinux",
        "-g @vmlinux -x @vmlinux",
        "-g @other -x @bare",
        "-g @other -x @text",
        "-g @other -x @nothing",
        "-g @other",
        "-g @other -x @vmlinux @vmcore",
    ] {
        all += &seen(folder.path(), line)?;
    }
    assert!(!path("other").exists());
    insta::assert_snapshot!(all);
    Ok(())
}

#[test]
fn dump_note_is_written_unchanged() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("vmcore");
    Synthetic::default().write(&path)?;
    assert!(seen(folder.path(), "-g @info @vmcore")?.ends_with("exit code 0\n"));
    let text = std::fs::read(folder.path().join("info"))?;
    let dump = Dump::open(&[path])?;
    assert_eq!(
        dump.with_info(&text).info(),
        Dump::open(&[folder.path().join("vmcore")])?.info()
    );
    assert!(text.starts_with(b"OSRELEASE="));
    Ok(())
}

#[test]
fn text_of_a_vmlinux_adds_to_the_note() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("vmcore");
    Synthetic::default().write(&path)?;
    vmlinux(&types()).write(&folder.path().join("vmlinux"))?;
    let transcript = seen(folder.path(), "-g @info -x @vmlinux")?
        + &seen(folder.path(), "-i @info -d 31 @vmcore @out")?
        + &seen(folder.path(), "-d 31 @vmcore @without")?;
    assert_eq!(
        transcript.matches("exit code 0\n").count(),
        3,
        "{transcript}"
    );
    let own = Dump::open(&[path])?;
    let joined = Dump::open(&[folder.path().join("out")])?;
    let symbol = "SYMBOL(init_top_pgt)";
    let more = "SYMBOL(node_data)";
    assert_eq!(
        joined.info().text(symbol),
        own.info().text(symbol),
        "the dump knows where its kernel is"
    );
    assert!(own.info().text(more).is_none() && joined.info().text(more).is_some());
    Ok(())
}
