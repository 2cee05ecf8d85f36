//! The program that saves the memory of kernels that die on servers: a static `marvin-dump`, beside
//! Marvin or in PATH.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use model::ServerSettings;

use crate::exit::WrongInput;

const NAME: &str = "marvin-dump";

/// Where the name of a program's loader is, if it has one: its first page.
const PAGE: u64 = 4096;

const LOADER: &[u8] = b"/ld-linux";

/// Returns a server that saves the memory of kernels that die.
pub(crate) fn with_kdump_program(server: ServerSettings) -> anyhow::Result<ServerSettings> {
    let beside = std::env::current_exe()
        .ok()
        .and_then(|marvin| Some(marvin.parent()?.to_owned()));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = beside
        .into_iter()
        .chain(std::env::split_paths(&path))
        .collect();
    let found = folders
        .iter()
        .map(|folder| folder.join(NAME))
        .find(|file| is_static(file));
    let missing = "--keep-dump on a server needs a static `marvin-dump` beside marvin or in PATH\nhint: make dump";
    Ok(ServerSettings {
        collector: Some(found.ok_or_else(|| WrongInput(missing.to_owned()))?),
        ..server
    })
}

/// Returns whether a file is a program that needs no library: a capture kernel's server may have
/// others.
fn is_static(file: &Path) -> bool {
    let mut page = Vec::new();
    // Opening a pipe waits for a writer.
    let is_file = std::fs::metadata(file).is_ok_and(|found| found.is_file());
    let is_read = is_file
        && File::open(file)
            .and_then(|file| file.take(PAGE).read_to_end(&mut page))
            .is_ok();
    is_read
        && page.starts_with(b"\x7fELF")
        && !page.windows(LOADER.len()).any(|part| part == LOADER)
}

#[cfg(test)]
mod tests {
    use super::is_static;

    #[test]
    fn only_static_programs_are_taken() {
        let folder = tempfile::tempdir().unwrap();
        let is_taken = |bytes: &[u8]| {
            let file = folder.path().join("marvin-dump");
            std::fs::write(&file, bytes).unwrap();
            is_static(&file)
        };
        assert!(is_taken(b"\x7fELF and code"));
        assert!(!is_taken(b"\x7fELF\0/lib64/ld-linux-x86-64.so.2\0"));
        assert!(!is_taken(b"#!/bin/sh\n") && !is_static(&folder.path().join("none")));
        let pipe = folder.path().join("pipe");
        assert!(
            std::process::Command::new("mkfifo")
                .arg(&pipe)
                .status()
                .unwrap()
                .success()
        );
        assert!(!is_static(&pipe));
    }
}
