//! The command line as a user sees it: messages, files, and the exit code.

use std::error::Error;
use std::path::Path;

use synthetic_dumps::Synthetic;
use vmcore::{Dump, Io, Reader};

use crate::Outcome;
use crate::command_line::CommandResult;

/// Runs a command line in a directory; returns all output, and the bytes of standard output.
fn seen(folder: &Path, line: &str, input: &[u8]) -> Result<(String, Vec<u8>), Box<dyn Error>> {
    let result = CommandResult::run(folder, line, input)?;
    Ok((result.transcript(), result.answer))
}

fn folder() -> Result<tempfile::TempDir, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let groups = "0x010+40 anon\n 0x080+3 cache 4\n 0x100 free 8\n 0x400+100 slab\n 0x600 poisoned"
        .to_owned();
    let memory = vec![0..0x9f, 0x100..0x2000];
    Synthetic {
        groups,
        memory,
        ..Synthetic::default()
    }
    .write(&folder.path().join("vmcore"))?;
    Ok(folder)
}

/// Compares two dumps: every page is equal, or missing, in both.
fn assert_same(one: &Path, other: &[&Path]) -> Outcome {
    let one = Dump::open(&[one.to_owned()])?;
    let other = Dump::open(
        &other
            .iter()
            .map(|path| (*path).to_owned())
            .collect::<Vec<_>>(),
    )?;
    let mut first = Reader::new(&one, Io::Map);
    let mut second = Reader::new(&other, Io::Read);
    for page in 0..one.pages() {
        let both = [&mut first, &mut second]
            .map(|reader| reader.bytes(page * 4096, 4096).map(<[u8]>::to_vec).ok());
        assert_eq!(both[0], both[1], "page {page:#x}");
    }
    assert_eq!(one.notes(), other.notes());
    Ok(())
}

#[test]
fn written_dump_is_summarized() -> Outcome {
    let folder = folder()?;
    let mut all = String::new();
    for line in [
        "-d 31 --compress none --threads 1 --verify @vmcore @out",
        "-d 31 @vmcore @out",
        "-d 31 -f --compress none --threads 1 --show-stats @vmcore @out",
        "-d 0 -L 100K @vmcore @small",
        "-d 0 -L 600K --compress none --threads 1 @vmcore @part",
        "-d 31 --dry-run @vmcore",
        "-d 31 -l --threads 1 @vmcore @lzo",
        "-d 31 -f @vmcore @vmcore",
        "-d 31 --effort 77 -c @vmcore @effort",
        "-d 31 @vmcore",
        "-d 31 @nothing @out",
        "-d 31 @vmcore /dev/full",
        "-d 17,31 @vmcore /dev/full",
        "--dump-dmesg @vmcore @log",
        "-d 31 @vmcore @nowhere/out",
        "info @part",
        "dmesg @vmcore",
    ] {
        all += &seen(folder.path(), line, b"")?.0;
    }
    insta::assert_snapshot!(all);
    Ok(())
}

#[test]
fn answers_are_documents() -> Outcome {
    let folder = folder()?;
    let mut all = String::new();
    for line in [
        "-d 31 --compress none --threads 1 --message-level 0 --json @vmcore @out",
        "info @out",
        "info --json @out",
        "estimate @vmcore",
        "estimate --json @out",
    ] {
        let (transcript, answer) = seen(folder.path(), line, b"")?;
        all.push_str(&transcript);
        all.push_str(&String::from_utf8(answer)?);
    }
    insta::assert_snapshot!(all);
    Ok(())
}

#[test]
fn all_formats_hold_the_same_pages() -> Outcome {
    let folder = folder()?;
    let path = |name: &str| folder.path().join(name);
    let fine = |line: &str, input: &[u8]| -> Result<Vec<u8>, Box<dyn Error>> {
        let (transcript, answer) = seen(folder.path(), line, input)?;
        assert!(transcript.ends_with("exit code 0\n"), "{transcript}");
        Ok(answer)
    };
    fine("-d 31 -z --verify @vmcore @out", b"")?;
    fine("-d 31 -p --split --verify @vmcore @s1 @s2 @s3", b"")?;
    assert_same(&path("out"), &[&path("s2"), &path("s3"), &path("s1")])?;
    fine("--reassemble -c @s1 @s2 @s3 @whole", b"")?;
    assert_same(&path("out"), &[&path("whole")])?;
    let stream = fine("-d 31 -F --threads 2 @vmcore", b"")?;
    fine("-R @straight", &stream)?;
    assert_same(&path("out"), &[&path("straight")])?;
    fine("-d 31 -E @vmcore @elf", b"")?;
    fine("-d 31 @elf @again", b"")?;
    assert_same(&path("out"), &[&path("again")])?;
    fine("-d 31 --io read @out @third", b"")?;
    assert_same(&path("out"), &[&path("third")])?;
    fine("-d 0 -E @vmcore @all", b"")?;
    fine("-d 0 @vmcore @direct", b"")?;
    fine("-d 0 @all @around", b"")?;
    assert_same(&path("direct"), &[&path("around")])
}

#[test]
fn truncated_stream_is_reported() -> Outcome {
    let folder = folder()?;
    let stream = seen(
        folder.path(),
        "-d 31 -F --compress none --threads 1 --message-level 0 @vmcore",
        b"",
    )?
    .1;
    let mut all = seen(folder.path(), "-R @cut", &stream[..stream.len() - 20])?.0;
    all += &seen(folder.path(), "-R @text", &[b'a'; 5000])?.0;
    all += &seen(folder.path(), "-R @empty", b"")?.0;
    insta::assert_snapshot!(all);
    Ok(())
}

#[test]
fn pages_missing_in_input_are_missing_in_elf() -> Outcome {
    let folder = folder()?;
    seen(
        folder.path(),
        "-d 0 --compress none --threads 1 @vmcore @whole",
        b"",
    )?;
    let path = folder.path().join("whole");
    let file = std::fs::File::options()
        .read(true)
        .write(true)
        .open(&path)?;
    let mut head = [0; 464];
    std::os::unix::fs::FileExt::read_exact_at(&file, &mut head, 0)?;
    let sub_blocks = u32::from_le_bytes(head[432..436].try_into()?);
    let bitmap_blocks = u32::from_le_bytes(head[436..440].try_into()?);
    // The descriptor of the tenth page, which the writer did not reach.
    let tenth = u64::from(1 + sub_blocks + bitmap_blocks) * 4096 + 10 * 24;
    std::os::unix::fs::FileExt::write_all_at(&file, &[0; 24], tenth)?;
    let transcript = seen(folder.path(), "-d 0 -E @whole @elf", b"")?.0;
    assert!(
        transcript.contains("1 pages cannot be read and are missing"),
        "{transcript}"
    );
    assert!(transcript.ends_with("exit code 3\n"), "{transcript}");
    assert!(Dump::open(&[folder.path().join("elf")])?.incomplete());
    Ok(())
}

#[test]
fn flattened_file_without_end_is_incomplete() -> Outcome {
    let folder = folder()?;
    let stream = seen(folder.path(), "-d 31 -F --message-level 0 @vmcore", b"")?.1;
    for (length, incomplete) in [
        (stream.len(), false),
        (stream.len() - 16, true),
        (stream.len() - 100, true),
    ] {
        let path = folder.path().join("flat");
        std::fs::write(&path, &stream[..length])?;
        assert_eq!(Dump::open(&[path])?.incomplete(), incomplete, "{length}");
    }
    Ok(())
}

#[test]
fn split_set_lacking_a_file_is_incomplete() -> Outcome {
    let folder = folder()?;
    seen(folder.path(), "-d 31 --split @vmcore @s1 @s2 @s3", b"")?;
    for (names, incomplete) in [
        ("s1 s2 s3", false),
        ("s1 s3", true),
        ("s1 s2", true),
        ("s2 s3", true),
        ("s1", true),
    ] {
        let paths: Vec<_> = names
            .split(' ')
            .map(|name| folder.path().join(name))
            .collect();
        assert_eq!(Dump::open(&paths)?.incomplete(), incomplete, "{names}");
    }
    let transcript = seen(folder.path(), "-d 0 @s1 @s3 @whole", b"")?.0;
    assert!(transcript.ends_with("exit code 3\n"), "{transcript}");
    assert!(Dump::open(&[folder.path().join("whole")])?.incomplete());
    let answer = String::from_utf8(seen(folder.path(), "-d 0 --json @whole @again", b"")?.1)?;
    assert!(answer.contains("\"complete\": false"), "{answer}");
    let answer = String::from_utf8(seen(folder.path(), "info --json @again", b"")?.1)?;
    assert!(answer.contains("\"level\": 31"), "{answer}");
    Ok(())
}

#[test]
fn checked_options_touch_no_file() -> Outcome {
    let folder = folder()?;
    let transcript = seen(
        folder.path(),
        "--check-params -l -d 31 --splitblock-size 1024 -b 4 @none @out",
        b"",
    )?
    .0;
    assert!(transcript.ends_with("exit code 0\n"), "{transcript}");
    assert!(!folder.path().join("out").exists());
    assert!(
        seen(folder.path(), "--check-params -d 32 @none @out", b"").is_err(),
        "there is no such level"
    );
    Ok(())
}

#[test]
fn unrecognised_lists_are_reported() -> Outcome {
    let folder = folder()?;
    let path = folder.path().join("vmcore");
    let mut bytes = std::fs::read(&path)?;
    let name = b"SYMBOL(kallsyms_offsets)";
    let at = bytes
        .windows(name.len())
        .position(|window| window == name)
        .ok_or("the note has no such symbol")?;
    bytes[at + 7] = b'K';
    std::fs::write(&path, bytes)?;
    let (transcript, answer) = seen(folder.path(), "-d 31 --json @vmcore @out", b"")?;
    let line = "free pages on per-CPU lists are not recognised, and kept: the kernel's symbol table (kallsyms) cannot be read";
    assert!(transcript.contains(line), "{transcript}");
    assert!(String::from_utf8(answer)?.contains(line), "{transcript}");
    let (transcript, _) = seen(folder.path(), "-d 1 @vmcore @kept", b"")?;
    assert!(
        !transcript.contains("per-CPU"),
        "free pages are kept anyway: {transcript}"
    );
    Ok(())
}

#[test]
fn a_dump_without_memory_is_an_error() -> Outcome {
    let folder = folder()?;
    let path = folder.path().join("vmcore");
    let mut bytes = std::fs::read(&path)?;
    // One program header: that of the notes.
    bytes[56] = 1;
    std::fs::write(&path, bytes)?;
    let transcript = seen(folder.path(), "-d 0 @vmcore @out", b"")?.0;
    assert!(
        transcript.contains("it has no memory") && transcript.ends_with("exit code 2\n"),
        "{transcript}"
    );
    assert!(!folder.path().join("out").exists());
    Ok(())
}

#[test]
fn limited_dump_is_incomplete_and_not_different() -> Outcome {
    let folder = folder()?;
    let line = "-d 0 -L 600K --compress none --threads 1 --verify @vmcore @part";
    let transcript = seen(folder.path(), line, b"")?.0;
    assert!(transcript.contains("not verified"), "{transcript}");
    assert!(transcript.ends_with("exit code 3\n"), "{transcript}");
    Ok(())
}

#[test]
fn differing_copy_is_found() -> Outcome {
    let folder = folder()?;
    seen(folder.path(), "-d 0 -E @vmcore @copy", b"")?;
    let one = folder.path().join("vmcore");
    let copy = folder.path().join("copy");
    let file = std::fs::File::options().write(true).open(&copy)?;
    let end = file.metadata()?.len();
    std::os::unix::fs::FileExt::write_all_at(&file, b"x", end - 4096)?;
    let dump = Dump::open(&[one])?;
    let copy = Dump::open(&[copy])?;
    let work = vmcore::Work {
        threads: 1,
        io: Io::Map,
        memory: 1 << 20,
        folder: None,
    };
    let filter = vmcore::Filter::for_level(
        &mut Reader::new(&dump, Io::Map),
        vmcore::Level::new(0).ok_or("no level")?,
    )?;
    let plan = vmcore::Plan::make(&dump, filter.as_ref(), &work)?;
    let found = vmcore::verify(&plan, &copy, &work)?;
    assert_eq!(
        found,
        vmcore::Differences {
            pages: 1,
            first: Some(0x1fff)
        }
    );
    Ok(())
}

#[test]
fn unconnected_pipes_are_not_waited_for() -> Outcome {
    let folder = folder()?;
    assert!(
        std::process::Command::new("mkfifo")
            .arg(folder.path().join("pipe"))
            .status()?
            .success()
    );
    for line in [
        "info @pipe",
        "info --ram @pipe",
        "usage @pipe",
        "-d 31 @pipe @out",
        "-d 31 @vmcore @pipe",
        "-f -R @pipe",
    ] {
        let transcript = seen(folder.path(), line, b"")?.0;
        assert!(
            transcript.contains("FOLDER/pipe")
                && transcript.contains("is a pipe")
                && transcript.ends_with("exit code 2\n"),
            "{transcript}"
        );
    }
    Ok(())
}

#[test]
fn file_size_limit_acts_like_full_disk() -> Outcome {
    let folder = folder()?;
    // As a separate process: a signal would end it.
    let line = format!(
        "ulimit -f 1000 && exec {} --threads 1 -d 0,31 --compress none vmcore out",
        env!("CARGO_BIN_EXE_marvin-dump")
    );
    let output = std::process::Command::new("sh")
        .args(["-c", &line])
        .current_dir(folder.path())
        .output()?;
    let transcript = String::from_utf8(output.stderr)?;
    assert!(transcript.contains("trying the next level"), "{transcript}");
    assert!(
        transcript.contains("error: no space is left for out") && output.status.code() == Some(5),
        "{transcript}"
    );
    assert!(Dump::open(&[folder.path().join("out")])?.incomplete());
    Ok(())
}

#[test]
fn directory_as_a_dump_is_refused() -> Outcome {
    let folder = folder()?;
    for line in [
        "info @",
        "-d 31 @ @out",
        "-d 31 -f @vmcore @",
        "-d 31 @vmcore/in @out",
    ] {
        let transcript = seen(folder.path(), line, b"")?.0;
        assert!(
            transcript.contains("irectory (os error") && transcript.ends_with("exit code 2\n"),
            "{transcript}"
        );
    }
    Ok(())
}
