//! Erasing data from a dump, and the messages about it.

use std::error::Error;
use std::os::unix::fs::FileExt;
use std::path::Path;

use clap::Parser;
use marvin_dump::Arguments;
use synthetic_dumps::Synthetic;
use synthetic_dumps::vmlinux::{Btf, Vmlinux};
use vmcore::{Dump, Io, Reader};

use crate::Outcome;
use crate::command_line::CommandResult;

/// The kernel's first page: in the dump, and at its link address.
const BASE: u64 = 0xffff_ffff_8100_0000;
const LINKED: u64 = 0xffff_ffff_8080_0000;

/// Runs a command line in a directory; returns all output.
fn seen(folder: &Path, line: &str) -> Result<String, Box<dyn Error>> {
    Ok(CommandResult::run(folder, line, &[])?.transcript())
}

fn vmlinux(release: &str) -> Vmlinux {
    let mut btf = Btf::default();
    let char = btf.int("char", 1);
    let int = btf.int("int", 4);
    let long = btf.int("long", 8);
    let name = btf.array(char, 65);
    let names = btf.record(
        "new_utsname",
        390,
        &[("sysname", name, 0), ("nodename", name, 65)],
    );
    let uts = btf.record(
        "uts_namespace",
        400,
        &[("count", int, 0), ("name", names, 4)],
    );
    let text = btf.pointer(char);
    let blob = btf.pointer(0);
    let secret = btf.array(char, 12);
    let head = btf.record("list_head", 16, &[("next", 9 + 2, 0), ("prev", 9 + 2, 8)]);
    let to_head = btf.pointer(head);
    assert_eq!(to_head, 11);
    let members = [
        ("text", text, 0),
        ("size", long, 8),
        ("links", head, 16),
        ("secret", secret, 32),
        ("blob", blob, 48),
        ("next", 13, 56),
    ];
    let thing = btf.record("thing", 64, &members);
    let to_thing = btf.pointer(thing);
    assert_eq!(to_thing, 13);
    let pair = btf.array(thing, 2);
    let mut symbols = vec![
        ("_stext".to_owned(), LINKED, 0),
        ("linux_banner".to_owned(), LINKED + 0x10_0000, 40),
    ];
    for (name, kind, at) in [
        ("init_uts_ns", uts, 0),
        ("things", head, 1024),
        ("first", to_thing, 1040),
        ("pair", pair, 1104),
        ("nothing", to_thing, 1048),
        ("lost", to_thing, 1056),
    ] {
        btf.variable(name, kind);
        symbols.push((name.to_owned(), LINKED + at, 8));
    }
    symbols.push(("untyped".to_owned(), LINKED, 8));
    let banner = format!("Linux version {release} (someone)\n\0").into_bytes();
    let sections = vec![
        (".rodata".to_owned(), LINKED + 0x10_0000, banner),
        (".BTF".to_owned(), 0, btf.bytes()),
    ];
    Vmlinux { sections, symbols }
}

/// The kernel's first page: names, and two objects in a list.
fn page() -> Vec<u8> {
    let mut page = vec![0; 4096];
    let mut put = |at: usize, bytes: &[u8]| page[at..at + bytes.len()].copy_from_slice(bytes);
    put(4, b"Linux\0");
    put(69, b"synthetic\0");
    put(4 + 2 * 65, b"6.12.0");
    put(4 + 4 * 65, b"x86_64");
    let at = |n: u64| (BASE + n).to_le_bytes();
    put(1024, &at(1104 + 16));
    put(1032, &at(1168 + 16));
    put(1040, &at(1104));
    put(1056, &0xffff_c000_0000_0000_u64.to_le_bytes());
    for (n, next) in [(1104, 1168), (1168, 0)] {
        put(n, &at(if n == 1104 { 1400 } else { 1500 }));
        put(n + 8, &8_u64.to_le_bytes());
        put(n + 16, &at(if next > 0 { next + 16 } else { 1024 }));
        put(n + 32, b"secret-word!");
        put(n + 48, &at(n as u64 + 500));
        put(n + 56, &if next > 0 { at(next) } else { [0; 8] });
        put(n + 500, b"key-bytes-and-more");
    }
    put(1400, b"password\0after");
    put(1500, b"hunter2\0after");
    page
}

fn folder() -> Result<tempfile::TempDir, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("vmcore");
    Synthetic {
        groups: "0x010+40 anon".to_owned(),
        ..Synthetic::default()
    }
    .write(&path)?;
    let bytes = std::fs::read(&path)?;
    let start = bytes
        .windows(10)
        .step_by(8)
        .position(|bytes| bytes == b"\0\0\0\0Linux\0")
        .ok_or("no page")? as u64
        * 8;
    std::fs::File::options()
        .write(true)
        .open(&path)?
        .write_all_at(&page(), start)?;
    vmlinux("6.12.0").write(&folder.path().join("vmlinux"))?;
    Ok(folder)
}

/// Returns the kernel's first page in a dump.
fn found(path: &Path) -> Result<Vec<u8>, Box<dyn Error>> {
    let dump = Dump::open(&[path.to_owned()])?;
    let mut reader = Reader::new(&dump, Io::Read);
    for page in 0..dump.pages() {
        let bytes = reader
            .bytes(page * 4096, 4096)
            .map(<[u8]>::to_vec)
            .unwrap_or_default();
        if bytes.starts_with(b"\0\0\0\0Linux\0") {
            return Ok(bytes);
        }
    }
    Err("no page".into())
}

const CONF: &str = "# secrets
erase init_uts_ns.name.nodename
[vmlinux]
for t in things within thing:links
    erase t.secret size 6
    erase t.text
endfor
for t in first via next
    erase t.blob size t.size
endfor
for t in pair
    erase t.next nullify
endfor
erase nothing.secret
";

fn expected() -> Vec<u8> {
    let mut page = page();
    page[69..134].fill(b'X');
    for at in [1104, 1168] {
        page[at + 32..at + 38].fill(b'X');
        page[at + 500..at + 508].fill(b'X');
        page[at + 56..at + 64].fill(0);
    }
    page[1400..1408].fill(b'X');
    page[1500..1507].fill(b'X');
    page
}

#[test]
fn named_data_is_erased_in_every_format() -> Outcome {
    let folder = folder()?;
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("conf"), CONF)?;
    let mut all = String::new();
    for line in [
        "-d 31 --threads 1 --compress none --verify --erase @conf -x @vmlinux @vmcore @out",
        "-d 31 --io read --config @conf -x @vmlinux -E @vmcore @elf",
        "-d 31 -z --threads 1 -f @out @again",
        "-d 31 --message-level 0 -f -E @out @elf2",
        "-d 0 --split --message-level 0 --config @conf -x @vmlinux @vmcore @s1 @s2",
        "--reassemble --message-level 0 @s1 @s2 @whole",
    ] {
        all += &seen(folder.path(), line)?;
    }
    for name in ["out", "elf", "again", "elf2", "whole"] {
        let page = found(&path(name))?;
        let expected = expected();
        let first = page
            .iter()
            .zip(&expected)
            .position(|(one, other)| one != other);
        assert_eq!(first, None, "{name}");
    }
    for name in ["out", "again", "whole"] {
        let bytes = std::fs::read(path(name))?;
        let number = |at: usize| {
            usize::from_le_bytes(bytes[4096 + at..4104 + at].try_into().unwrap_or_default())
        };
        let text = &bytes[number(64)..number(64) + number(72)];
        assert_eq!(
            number(64) + number(72),
            bytes.len(),
            "it is the last of the file"
        );
        all.extend([format!("{name}:\n{}", String::from_utf8_lossy(text))]);
    }
    for name in ["elf", "elf2"] {
        let dump = Dump::open(&[path(name)])?;
        assert!(
            dump.notes()
                .windows(10)
                .any(|bytes| bytes == b"ERASEINFO\0"),
            "{name}"
        );
    }
    insta::assert_snapshot!(all);
    Ok(())
}

#[test]
fn impossible_erasure_is_refused_before_writing() -> Outcome {
    let folder = folder()?;
    let path = |name: &str| folder.path().join(name);
    vmlinux("6.12.1").write(&path("newer"))?;
    let mut all = String::new();
    for conf in [
        "erase keys",
        "erase untyped",
        "erase init_uts_ns.name.secret",
        "erase pair.secret",
        "erase first.blob",
        "erase init_uts_ns nullify",
        "erase first.blob size first.text",
        "erase first size 2048M",
        "for t in things\n  erase t.secret\nendfor",
        "for t in things within thing:secret endfor",
        "for t in things within thong:links endfor",
        "for t in first via text\nendfor",
        "for t in init_uts_ns endfor",
        "for t in first within thing:links endfor",
        "erase first\n\n  wipe second",
        "[raid]\nerase key",
    ] {
        std::fs::write(path("conf"), conf)?;
        all.extend([format!("{conf}\n")]);
        let transcript = seen(
            folder.path(),
            "-d 31 --erase @conf -x @vmlinux @vmcore @out",
        )?;
        assert!(
            transcript.ends_with("exit code 2\n"),
            "{conf}: {transcript}"
        );
        all.extend(transcript.lines().skip(1).map(|line| format!("{line}\n")));
    }
    std::fs::write(path("conf"), "erase first")?;
    std::fs::write(path("binary"), [0xff, 0xfe])?;
    for line in [
        "-d 31 --erase @conf -x @newer @vmcore @out",
        "-d 31 --erase @nowhere -x @vmlinux @vmcore @out",
        "-d 31 --erase @binary -x @vmlinux @vmcore @out",
        "-d 31 -f --erase @conf -x @vmlinux @vmcore @conf",
    ] {
        all += &seen(folder.path(), line)?;
    }
    assert!(!path("out").exists());
    insta::assert_snapshot!(all);
    let alone = Arguments::try_parse_from(["marvin-dump", "--erase", "conf", "in", "out"]);
    assert!(
        alone.unwrap_err().to_string().contains("--vmlinux"),
        "it needs a vmlinux"
    );
    Ok(())
}

#[test]
fn missing_data_to_erase_is_a_warning() -> Outcome {
    let folder = folder()?;
    std::fs::write(
        folder.path().join("conf"),
        "erase lost\nerase lost.secret\nfor t in lost via next\nerase t.secret\nendfor",
    )?;
    let line = "-d 31 --threads 1 --compress none --erase @conf -x @vmlinux @vmcore @out";
    insta::assert_snapshot!(seen(folder.path(), line)?);
    Ok(())
}
