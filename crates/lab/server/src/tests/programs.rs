//! Users' own programs on servers: their files go there, and the agent runs among these.
#![expect(clippy::print_stdout, reason = "a skipped check says why")]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use machine::{Backend, BootOutcome, Guest, InitrdFile, JobEnd, Observe, archive_of};
use model::{ExtraFiles, GuestConfig};
use subprocess::{Ended, Program};
use tempfile::TempDir;
use wire::Frame;

use super::fake_server::{Does, Fake};
use super::{build, job};
use crate::remote::ssh::{AGENT, PROGRAM};

/// What stands for the agent: it says where it is, and has a process that it leaves behind.
const SAYS: &str = "#!/bin/sh\necho \"$MARVIN_IN_GUEST $*\"; cd /; echo *; read -r line; echo \"$line\"\n\
    [ -r /proc/self/stat ] && [ -d /sys/kernel ] && [ -c /dev/null ] && echo mounted\n\
    [ $$ != 1 ] && echo 'not the first'; while :; do :; done & exit 7\n";

#[test]
fn files_of_a_program_go_to_the_server() {
    let (end, log) = run_program(Does::Boots);
    assert!(end.stream.is_err(), "the make-believe agent ran");
    assert!(log.contains("job among 0123"), "{log}");
}

#[test]
fn program_without_a_place_is_unsupported() {
    let (end, log) = run_program(Does::HasNoPlace);
    let frames = end.stream.unwrap().frames;
    assert_eq!(
        frames,
        [Frame::Unsupported("its files do not fit".to_owned())],
        "{log}"
    );
}

/// Runs a job of a user's own program; returns its end, and what the server did.
fn run_program(does: Does) -> (JobEnd, String) {
    let fake = Fake::new(does);
    let home = tempfile::tempdir().unwrap();
    let server = fake.open(&home).unwrap();
    let config = GuestConfig {
        files: ExtraFiles::Image("mine 1a".into()),
        ..GuestConfig::PLAIN
    };
    let installed = server.with_guest_config(&config, None).unwrap();
    let carried = server
        .with_guest_config(&config, Some(Path::new("images/0123.cpio")))
        .unwrap();
    assert_ne!(
        installed.identity().id,
        carried.identity().id,
        "one that lies there is another program"
    );
    let build = build(&home);
    let guest = Guest {
        build: &build,
        modules: &[],
    };
    let Ok(BootOutcome::Ready(booted)) = Arc::clone(&carried).boot(&guest, 1) else {
        panic!("it boots");
    };
    let end = booted.run(&job(), Observe::Nothing).unwrap();
    (end, fake.log())
}

/// A directory that stands for Marvin's on a server, with an agent.
struct Place {
    folder: TempDir,
    agent: String,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let agent = folder.path().join("agent-1").display().to_string();
        let cpio = archive_of(&[InitrdFile {
            path: agent.trim_start_matches('/').to_owned(),
            bytes: SAYS.into(),
        }]);
        fs::write(folder.path().join("only-agent.cpio"), cpio).unwrap();
        let unpack = "cd / && cpio -idmu --quiet";
        let unpacked = Program::new("sh")
            .args(["-c", unpack])
            .fed(|to| to.write_all(&fs::read(folder.path().join("only-agent.cpio"))?));
        assert_eq!(unpacked.unwrap().0.code, Some(0), "it makes it executable");
        Self { folder, agent }
    }

    /// Runs the agent among the files of an archive.
    fn run(&self, archive: &[u8]) -> Ended {
        let path = self.folder.path().join("0123").display().to_string();
        fs::write(&path, archive).unwrap();
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        let fixed = [boot.trim(), &self.agent, "60", "", &path, PROGRAM, "job"];
        let program = Program::new("sh")
            .args(["-c", AGENT, "marvin"])
            .args(fixed)
            .deadline_s(60);
        program.fed(|to| to.write_all(b"a job\n")).unwrap().0
    }
}

/// Returns an archive with a shell and its libraries, in a directory with a strange name, too.
fn archive_with_shell() -> Vec<u8> {
    let listed = Program::new("ldd").args(["/bin/sh"]).run().unwrap().text();
    let libraries = listed
        .split_whitespace()
        .filter(|word| word.starts_with('/'));
    let files: Vec<InitrdFile> = ["/bin/sh"]
        .into_iter()
        .chain(libraries)
        .map(|path| InitrdFile {
            path: path.trim_start_matches('/').to_owned(),
            bytes: fs::read(path).unwrap(),
        })
        .chain([InitrdFile {
            path: "home/a b'$(x)\"q\n\u{1b}[2J/data".to_owned(),
            bytes: b"1".to_vec(),
        }])
        .collect();
    archive_of(&files)
}

/// Returns whether this host lets a process have a root of its own; says why not.
fn has_namespaces() -> bool {
    let ended = Program::new("unshare")
        .args(["-m", "-p", "-f", "true"])
        .run();
    let has = ended.is_ok_and(|ended| ended.code == Some(0));
    if !has {
        println!("skipped: without root's rights and namespaces there is no system of its own");
    }
    has
}

#[test]
fn program_runs_in_a_system_of_its_own() {
    if !has_namespaces() {
        return;
    }
    let place = Place::new();
    let ended = place.run(&archive_with_shell());
    let top = place.agent.split('/').nth(1).unwrap_or_default();
    let mut folders = [
        "agent", "bin", "dev", "home", "lib", "lib64", "proc", "sys", top,
    ];
    folders.sort_unstable();
    let listed = folders.join(" ");
    assert_eq!(
        (ended.code, ended.text(), &*ended.stderr),
        (
            Some(7),
            format!("1 job\n{listed}\na job\nmounted\nnot the first\n"),
            ""
        )
    );
    let root = place.folder.path().join("root");
    assert_eq!(fs::read_dir(&root).unwrap().count(), 0, "it was in memory");
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(!mounts.contains(&root.display().to_string()), "{mounts}");
}

#[test]
fn cut_archive_is_named() {
    if !has_namespaces() {
        return;
    }
    let whole = archive_with_shell();
    let ended = Place::new().run(&whole[..whole.len() / 2]);
    assert_eq!(ended.code, Some(96));
    let expected =
        "its files do not fit into half of the server's memory: cpio: premature end of file\n";
    assert_eq!(ended.stderr, expected);
}
