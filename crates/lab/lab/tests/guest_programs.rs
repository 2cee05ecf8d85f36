//! The carried guest programs are those of the tree's sources. `UPDATE=1` builds and writes them.
#![expect(clippy::expect_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stdout, reason = "a skipped check says why")]

use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest as _, Sha256};

#[path = "../build/carried.rs"]
#[expect(dead_code, reason = "the build script names its inputs")]
mod carried;
#[path = "../build/compile.rs"]
mod compile;

/// The static libc that the programs get on Debian; elsewhere their bytes are others anyway.
const LIBC: &str = "/usr/lib/x86_64-linux-gnu/libc.a";

fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.join("../../..").canonicalize().expect("the workspace")
}

fn cargo() -> PathBuf {
    PathBuf::from(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// What compiles here: `rustc --version` without its name.
fn rustc_version() -> String {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc)
        .arg("--version")
        .output()
        .expect("rustc");
    let text = String::from_utf8(output.stdout).expect("a version");
    text.trim().trim_start_matches("rustc ").to_owned()
}

fn libc_hash() -> Option<String> {
    let libc = std::fs::read(LIBC).ok()?;
    Some(carried::hexadecimal(&Sha256::digest(libc)))
}

/// Builds the programs from nothing, in a directory of its own.
fn build_programs() -> Vec<Vec<u8>> {
    let out = tempfile::tempdir().expect("a directory");
    let files = compile::compile(&cargo(), &root(), out.path()).expect("the programs build");
    let read = |file: &PathBuf| std::fs::read(file).expect("a program");
    files.iter().map(read).collect()
}

#[test]
fn carried_programs_are_those_of_the_sources() {
    if std::env::var_os("UPDATE").is_some() {
        let libc = libc_hash().expect("a static libc");
        carried::write(&root(), &build_programs(), &rustc_version(), &libc).expect("written");
    }
    let manifest = carried::read_manifest(&root()).expect("a manifest");
    assert_eq!(
        manifest.sources,
        carried::sources_hash(&root()).expect("sources"),
        "the guest programs' sources were changed; a new machine epoch is made by: \
         UPDATE=1 cargo test -p lab --test guest_programs"
    );
    let programs = carried::unpack(&root(), &manifest).expect("whole");
    assert_eq!(programs.first().map(Vec::as_slice), Some(lab::AGENT));
    let [.., tracer, recorder] = programs.as_slice() else {
        panic!("two plugins");
    };
    assert_eq!(tracer, lab::TRACER);
    assert_eq!(recorder, lab::PATH_RECORDER);
}

#[test]
fn programs_built_here_are_the_carried_ones() {
    if std::env::var_os("MARVIN_FULL").is_none() {
        println!("skipped: building the guest programs again: make test-full does");
        return;
    }
    let manifest = carried::read_manifest(&root()).expect("a manifest");
    if manifest.rustc != rustc_version() || Some(&manifest.libc) != libc_hash().as_ref() {
        println!(
            "skipped: the carried programs were built by {} with another libc than {}",
            manifest.rustc, LIBC
        );
        return;
    }
    let carried = carried::unpack(&root(), &manifest).expect("whole");
    for ((name, built), carried) in carried::PROGRAMS.iter().zip(build_programs()).zip(carried) {
        assert!(built == carried, "{name} built here has other bytes");
    }
}

#[test]
fn host_and_guest_name_one_write_parameter() {
    assert_eq!(model::WRITE_PARAMETER, wire::WRITE_PARAMETER);
}
