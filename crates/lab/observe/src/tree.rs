//! Which processes belong to a program: its first one and all that descend from it.

use std::collections::BTreeSet;
use std::fs;
use std::io;

use rustix::io::Errno;

use crate::proc;

/// Returns a process and its descendants.
pub(crate) fn find_processes(root: u32) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    let mut left = vec![root];
    while let Some(process) = left.pop() {
        if !is_there(process) || !found.insert(process) {
            continue;
        }
        for thread in entries(&format!("/proc/{process}/task")) {
            let text = fs::read_to_string(format!("/proc/{process}/task/{thread}/children"))
                .unwrap_or_default();
            left.extend(
                text.split_whitespace()
                    .filter_map(|id| id.parse::<u32>().ok()),
            );
        }
    }
    found
}

/// Whether a process is there. That it is gone is what the kernel says, and no error of Marvin's
/// own, such as too many open files.
pub(crate) fn is_there(process: u32) -> bool {
    let folder = format!("/proc/{process}");
    match state(&folder) {
        // The main thread may leave before the others (pthread_exit): then it stays a zombie until
        // they have left.
        Ok(Some('Z')) => match fs::read_dir(format!("{folder}/task")) {
            Ok(threads) => {
                threads
                    .flatten()
                    .any(|thread| match state(&thread.path().to_string_lossy()) {
                        Ok(state) => !matches!(state, Some('Z' | 'X')),
                        Err(error) => !is_gone(&error),
                    })
            }
            Err(error) => !is_gone(&error),
        },
        Ok(state) => state != Some('X'),
        Err(error) => !is_gone(&error),
    }
}

/// Returns the state of a process or a thread.
fn state(folder: &str) -> io::Result<Option<char>> {
    Ok(proc::stat(&read(&format!("{folder}/stat"))?).map(|stat| stat.state))
}

/// Whether an error of a file in /proc says that its process is gone.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || error.raw_os_error() == Some(Errno::SRCH.raw_os_error())
}

/// Reads a file of /proc. Names and paths may have any bytes.
pub(crate) fn read(file: &str) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&fs::read(file)?).into_owned())
}

/// Returns the numbers that are names in a directory of /proc.
pub(crate) fn entries(folder: &str) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_that_is_marvins_own_ends_no_process() {
        let ends = |error: Errno| is_gone(&error.into());
        assert!(ends(Errno::NOENT) && ends(Errno::SRCH));
        assert!(
            ![Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::ACCESS]
                .into_iter()
                .any(ends)
        );
        assert!(is_there(std::process::id()) && !is_there(u32::MAX));
    }
}
