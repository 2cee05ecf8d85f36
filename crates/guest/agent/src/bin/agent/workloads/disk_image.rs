//! File systems that mkfs made, for disks in memory: guests have no mkfs. Carried is only what is
//! not zero, some kilobytes of 512 MiB: pieces, each with its place and its length before it.
//!
//! `UPDATE=1 cargo test -p agent --bin marvin-agent disk_image` makes them again, with `mkfs.xfs`
//! and `mkfs.btrfs` of Debian 12 (xfsprogs 6.1.0, btrfs-progs 6.2) and their defaults. Programs put
//! times and random numbers into what they make, so another image is another file system.

use std::io;
use std::os::unix::fs::FileExt;

pub(super) const XFS: &[u8] = include_bytes!("images/xfs.pieces");
pub(super) const BTRFS: &[u8] = include_bytes!("images/btrfs.pieces");
/// Bytes of the disk that each was made for.
pub(super) const DISK_BYTES: u64 = 512 << 20;

/// A piece's head: its place and its length, four bytes each, the lowest first.
const HEAD: usize = 8;

/// Writes the pieces of a file system to a disk that is zero everywhere else.
pub(super) fn write(mut pieces: &[u8], disk: &impl FileExt) -> io::Result<()> {
    let broken = || io::Error::other("the carried file system ends within a piece");
    while !pieces.is_empty() {
        let (head, rest) = pieces.split_at_checked(HEAD).ok_or_else(broken)?;
        let number =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let length = number(4) as usize;
        let (piece, behind) = rest.split_at_checked(length).ok_or_else(broken)?;
        disk.write_all_at(piece, u64::from(number(0)))?;
        pieces = behind;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use super::{BTRFS, DISK_BYTES, HEAD, XFS, write};

    /// So many zeroes end a piece: as many as the next one's head takes.
    const GAP: usize = HEAD;
    const XFS_ID: &str = "6d617276-696e-4078-8673-000000000001";
    const BTRFS_ID: &str = "6d617276-696e-4462-8472-667300000001";

    fn empty_disk(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("marvin-{name}-{}", std::process::id()));
        File::create(&path).unwrap().set_len(DISK_BYTES).unwrap();
        path
    }

    /// Returns the pieces of a disk, a window of it at a time.
    fn pieces(disk: &Path) -> Vec<u8> {
        let bytes = fs::read(disk).unwrap();
        let mut pieces = Vec::new();
        let mut at = 0;
        while let Some(start) = bytes[at..].iter().position(|byte| *byte != 0) {
            let start = at + start;
            let gap = bytes[start..]
                .windows(GAP)
                .position(|window| window.iter().all(|byte| *byte == 0));
            at = gap.map_or(bytes.len(), |gap| start + gap);
            pieces.extend(u32::try_from(start).unwrap().to_le_bytes());
            pieces.extend(u32::try_from(at - start).unwrap().to_le_bytes());
            pieces.extend(&bytes[start..at]);
        }
        pieces
    }

    fn make(mkfs: &str, arguments: &[&str], file: &str) {
        let disk = empty_disk(mkfs);
        let made = Command::new(mkfs).args(arguments).arg(&disk).status();
        assert!(made.unwrap().success(), "{mkfs}");
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bin/agent/workloads/images");
        fs::write(folder.join(file), pieces(&disk)).unwrap();
        fs::remove_file(disk).unwrap();
    }

    /// Checks a carried file system by its authors' own program.
    #[expect(clippy::print_stdout, reason = "a skipped check says why")]
    fn check(image: &[u8], program: &str, arguments: &[&str]) {
        let path = empty_disk(program);
        write(image, &File::options().write(true).open(&path).unwrap()).unwrap();
        assert_eq!(pieces(&path), image);
        let checked = Command::new(program).args(arguments).arg(&path).output();
        fs::remove_file(&path).unwrap();
        match checked {
            Ok(checked) => {
                let text = String::from_utf8_lossy(&checked.stderr);
                assert!(checked.status.success(), "{program}: {text}");
            }
            Err(error) => println!("not checked: {program}: {error}"),
        }
    }

    #[test]
    fn carried_file_systems_are_clean() {
        if std::env::var_os("UPDATE").is_some() {
            make(
                "mkfs.xfs",
                &["-q", "-m", &format!("uuid={XFS_ID}")],
                "xfs.pieces",
            );
            make("mkfs.btrfs", &["-q", "-U", BTRFS_ID], "btrfs.pieces");
            return;
        }
        check(XFS, "xfs_repair", &["-n"]);
        check(BTRFS, "btrfs", &["check"]);
    }

    #[test]
    fn broken_image_is_an_error() {
        let path = empty_disk("broken");
        let disk = File::options().write(true).open(&path).unwrap();
        assert!(write(&XFS[..XFS.len() - 1], &disk).is_err());
        assert!(write(&[0; HEAD - 1], &disk).is_err());
        fs::remove_file(&path).unwrap();
    }
}
