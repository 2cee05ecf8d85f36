//! Programs of this host, and scripts that a test writes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::files::Host;
use super::{ProgramRequest, choose_memory, name_row, prepare_program};
use crate::tools::Tools;

fn request(words: &[&str]) -> ProgramRequest {
    ProgramRequest {
        command: words.iter().map(|word| (*word).to_owned()).collect(),
        runs: 4,
        limit_s: 60,
        ..ProgramRequest::default()
    }
}

/// The paths of all files of a program that is started in a directory.
fn paths(directory: &Path, words: &[&str]) -> Vec<String> {
    let host = Host::new(directory, &[]).unwrap();
    let found = host.find_files(&request(words)).unwrap();
    found.files.into_keys().collect()
}

fn script(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn has(paths: &[String], end: &str) -> bool {
    paths.iter().any(|path| path.ends_with(end))
}

#[test]
fn program_brings_its_libraries_and_arguments() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("data"), "x").unwrap();
    let found = paths(folder.path(), &["cat", "data", "/proc/self/maps", "none"]);
    for end in ["/cat", "/libc.so.6", "/data"] {
        assert!(has(&found, end), "{end}: {found:?}");
    }
    assert!(!has(&found, "/maps"));
}

#[test]
fn script_brings_its_interpreter_and_tools() {
    let folder = tempfile::tempdir().unwrap();
    script(
        folder.path(),
        "bench",
        "#!/usr/bin/env bash\nseq 5 | sort -n >out; ./helper\n",
    );
    script(folder.path(), "helper", "#!/bin/sh\nwc -l out\n");
    let found = paths(folder.path(), &["./bench"]);
    for end in [
        "/env", "/bash", "/seq", "/sort", "/helper", "/wc", "/bin/sh",
    ] {
        assert!(has(&found, end), "{end}: {found:?}");
    }
}

#[test]
fn shell_text_and_started_programs_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let found = paths(
        folder.path(),
        &["timeout", "9", "sh", "-c", "dd if=/dev/zero of=x | md5sum"],
    );
    for end in ["/timeout", "/sh", "/dd", "/md5sum"] {
        assert!(has(&found, end), "{end}: {found:?}");
    }
}

#[test]
fn script_of_a_named_shell_is_searched() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("run"), "md5sum data\n").unwrap();
    fs::write(folder.path().join("data"), "x").unwrap();
    let found = paths(folder.path(), &["sh", "-e", "run"]);
    for end in ["/sh", "/run", "/md5sum", "/data"] {
        assert!(has(&found, end), "{end}: {found:?}");
    }
}

#[test]
fn interpreter_brings_its_library() {
    let folder = tempfile::tempdir().unwrap();
    script(
        folder.path(),
        "bench.pl",
        "#!/usr/bin/perl\nuse strict;\nprint 1;\n",
    );
    let found = paths(folder.path(), &["./bench.pl"]);
    assert!(has(&found, "/strict.pm"), "{found:?}");
}

#[test]
fn named_files_get_their_place() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("data/deep")).unwrap();
    fs::write(folder.path().join("data/deep/file"), "x").unwrap();
    let host = Host::new(folder.path(), &[]).unwrap();
    let with = |place: Option<&str>| ProgramRequest {
        with: vec![("data".into(), place.map(str::to_owned))],
        ..request(&["true"])
    };
    let found = host.find_files(&with(Some("/srv"))).unwrap();
    assert!(found.files.contains_key("/srv/deep/file"));
    let found = host.find_files(&with(None)).unwrap();
    assert!(
        found
            .files
            .keys()
            .any(|path| path.ends_with("data/deep/file"))
    );
    let nothing = ProgramRequest {
        with: vec![("".into(), Some("/srv".to_owned()))],
        ..request(&["true"])
    };
    insta::assert_snapshot!(host.find_files(&nothing).unwrap_err(), @"--with =/srv: there is no path before the sign");
    assert!(host.find_files(&with(Some("srv"))).is_err());
    assert!(host.find_files(&with(Some("/srv/../etc"))).is_err());
}

#[test]
fn mistakes_say_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("text"), "x").unwrap();
    script(folder.path(), "odd", "#!/nonesuch/interpreter\n");
    script(folder.path(), "dos", "#!/bin/sh\r\necho\r\n");
    script(folder.path(), "plain", "echo\n");
    script(folder.path(), "blank", "#! \n");
    script(folder.path(), "empty", "");
    std::os::unix::fs::symlink("nowhere", folder.path().join("link")).unwrap();
    let host = Host::new(folder.path(), &[]).unwrap();
    let refused = |words: &[&str]| {
        let error = host.find_files(&request(words)).unwrap_err().to_string();
        error.replace(&folder.path().display().to_string(), "DIR")
    };
    insta::assert_snapshot!(refused(&[]), @"no program: give it after `--`: marvin compare A B -- ./my-bench --args");
    insta::assert_snapshot!(refused(&["nonesuch"]), @"there is no program `nonesuch` in PATH");
    insta::assert_snapshot!(refused(&["odd"]), @"there is no program `odd` in PATH; it is in this directory: write ./ in front of it");
    insta::assert_snapshot!(refused(&["cd", "/"]), @"there is no program `cd` in PATH; it is a word of the shell: write sh -c '…'");
    insta::assert_snapshot!(refused(&["./text"]), @"DIR/text is not executable: chmod +x DIR/text");
    insta::assert_snapshot!(refused(&["./nonesuch"]), @"there is no DIR/nonesuch");
    insta::assert_snapshot!(refused(&["./odd"]), @"DIR/odd needs /nonesuch/interpreter, which this host has not");
    insta::assert_snapshot!(refused(&["/dev"]), @"/dev is a directory: name a file in it");
    insta::assert_snapshot!(refused(&["/dev/null"]), @"/dev/null is no regular file: its content cannot be taken into a guest");
    insta::assert_snapshot!(refused(&["./dos"]), @r"the first line of DIR/dos ends with a carriage return, which the kernel takes for a part of the interpreter's name: sed -i 's/\r$//' DIR/dos");
    insta::assert_snapshot!(refused(&["./plain"]), @"DIR/plain is a text without `#!`, which the kernel cannot start: write #!/bin/sh into its first line, or give -- sh DIR/plain");
    insta::assert_snapshot!(refused(&["./blank"]), @"DIR/blank names no interpreter behind `#!` in its first line");
    insta::assert_snapshot!(refused(&["./empty"]), @"DIR/empty is empty: it cannot be started");
    insta::assert_snapshot!(refused(&["./link"]), @"DIR/link is a link to nowhere, which is not there");
}

#[test]
fn script_may_name_files_that_never_start() {
    let folder = tempfile::tempdir().unwrap();
    script(folder.path(), "bench", "#!/bin/sh\necho ./odd ./dos\n");
    script(folder.path(), "odd", "#!/nonesuch/interpreter\n");
    script(folder.path(), "dos", "#!/bin/nonesuch\r\n");
    let host = Host::new(folder.path(), &[]).unwrap();
    let found = host.find_files(&request(&["./bench"])).unwrap();
    assert_eq!(found.missing, ["/bin/nonesuch", "/nonesuch/interpreter"]);
}

#[test]
fn compiler_brings_its_parts() {
    let folder = tempfile::tempdir().unwrap();
    let found = paths(folder.path(), &["cc", "-o", "a", "a.c"]);
    for end in ["/cc1", "crt1.o", "/stdio.h", "/stddef.h", "/as", "/ld"] {
        assert!(has(&found, end), "{end}: {}", found.len());
    }
}

#[test]
fn same_program_has_the_same_image() {
    let home = tempfile::tempdir().unwrap();
    let tools = Tools::default();
    let prepare = |words: &[&str]| prepare_program(&request(words), &tools, home.path()).unwrap();
    let one = prepare(&["true"]);
    assert_eq!(one, prepare(&["true"]));
    let own = one.tool.own.clone().unwrap();
    assert!(
        home.path()
            .join(format!("images/{}.cpio", own.image))
            .is_file()
    );
    assert_ne!(one.tool, prepare(&["false"]).tool);
    assert_eq!(one.tool.workloads[0].memory_mib, 512);
    assert_eq!(one.missing, Vec::<String>::new());
}

#[test]
fn names_of_rows_are_free() {
    let tools = Tools::read(&[]).unwrap();
    let name = |word: &str| name_row(&[word.to_owned()], &tools);
    assert_eq!(name("./my-bench"), "my-bench");
    assert_eq!(name("/usr/bin/hackbench"), "own-hackbench");
    assert_eq!(name("./ä"), "program");
}

#[test]
fn large_files_get_more_memory() {
    assert_eq!(choose_memory(1 << 20, None), 512);
    assert_eq!(choose_memory(500 << 20, None), 1408);
    assert_eq!(choose_memory(500 << 20, Some(700)), 700);
}

#[test]
fn arguments_that_never_end_are_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    let made = subprocess::Program::new("mkfifo").args([&fifo]).run();
    assert_eq!(made.unwrap().code, Some(0));
    for words in [["sh", "./fifo"], ["sh", "/dev/zero"]] {
        assert!(has(&paths(folder.path(), &words), "/sh"), "{words:?}");
    }
}

#[test]
fn long_command_is_refused_before_a_boot() {
    let home = tempfile::tempdir().unwrap();
    let long = "a".repeat(10_000);
    let tools = Tools::read(&[]).unwrap();
    let prepared = prepare_program(&request(&["true", &long]), &tools, home.path());
    let error = prepared.unwrap_err().to_string();
    assert!(
        error.contains(" and a guest gets 4096: write them into a script"),
        "{error}"
    );
}

#[test]
fn damaged_image_is_written_again() {
    let home = tempfile::tempdir().unwrap();
    let tools = Tools::read(&[]).unwrap();
    let prepare = || prepare_program(&request(&["true"]), &tools, home.path()).unwrap();
    let image = prepare().tool.own.unwrap().image;
    let file = super::image_file(home.path(), &image);
    let whole = fs::read(&file).unwrap();
    fs::write(&file, "").unwrap();
    let unfinished = file.with_file_name("new-4194305");
    fs::write(&unfinished, "x").unwrap();
    prepare();
    assert!(fs::read(&file).unwrap() == whole);
    assert!(!unfinished.exists(), "no process has that number");
}
