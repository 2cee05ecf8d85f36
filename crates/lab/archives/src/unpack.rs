//! Unpacks the files of a Debian package below a directory, as `dpkg-deb -x` does, but within that
//! directory whatever links the package has, and without owners, special files and set-user-id bits.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::Path;

use liblzma::read::XzDecoder;
use liblzma::stream::Stream;

use crate::tar::{Archive, Entry, EntryKind, Paths};
use crate::{ArchiveError, Root, ar};

/// Most memory of the decoder: xz -9 needs 65 MiB.
const XZ_MEMORY: u64 = 128 << 20;
/// Largest file that packages compress to nothing: more than any package of a kernel has.
const UNPACKED_MAX: u64 = 8 << 30;

/// Unpacks a package below a directory, which is made if it is not there.
///
/// # Errors
/// If the package is damaged, or a file cannot be written.
pub fn unpack_deb(deb: &Path, into: &Path) -> Result<(), ArchiveError> {
    let damaged = |error: &io::Error| ArchiveError::Damaged {
        what: deb.display().to_string(),
        detail: error.to_string(),
    };
    let mut package = File::open(deb).map_err(ArchiveError::io(deb))?;
    let content = ar::find_data(&mut package).map_err(|error| damaged(&error))?;
    let content = content.ok_or_else(|| damaged(&io::Error::other("it has no data.tar")))?;
    package
        .seek(SeekFrom::Start(content.offset))
        .map_err(ArchiveError::io(deb))?;
    let packed = BufReader::new(package.take(content.bytes));
    let unpacked = decoder(&content.name, packed).map_err(|error| damaged(&error))?;
    fs::create_dir_all(into).map_err(ArchiveError::io(into))?;
    let mut entries = Archive::new(unpacked.take(UNPACKED_MAX), Paths::FromRoot);
    while let Some(entry) = entries.next_entry().map_err(|error| damaged(&error))? {
        write(&Root(into), &entry).map_err(ArchiveError::io(&into.join(&entry.path)))?;
    }
    Ok(())
}

/// Returns the reader that the end of a member's name asks for.
pub(crate) fn decoder<'a>(name: &str, packed: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    Ok(match ending {
        "tar" => Box::new(packed),
        "gz" => Box::new(flate2::read::MultiGzDecoder::new(packed)),
        "xz" => Box::new(XzDecoder::new_stream(
            packed,
            Stream::new_stream_decoder(XZ_MEMORY, liblzma::stream::CONCATENATED)?,
        )),
        "zst" => Box::new(zstd::stream::read::Decoder::new(packed)?),
        _ => return Err(io::Error::other(format!("{name}: unknown compression"))),
    })
}

fn write(root: &Root<'_>, entry: &Entry) -> io::Result<()> {
    if entry.path.is_empty() {
        return Ok(());
    }
    if entry.kind == EntryKind::Folder && root.find(&entry.path).is_some_and(|place| place.is_dir())
    {
        return Ok(());
    }
    let place = root.make_place(&entry.path)?;
    // A later package replaces files of an earlier one, never what a link of it leads to.
    match fs::symlink_metadata(&place) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => fs::remove_file(&place)?,
        Err(_) => {}
    }
    let mode = match entry.kind {
        EntryKind::Program => 0o755,
        _ => 0o644,
    };
    let target = String::from_utf8_lossy(&entry.content);
    match entry.kind {
        EntryKind::Folder => fs::create_dir(&place),
        EntryKind::Link => symlink(&*target, &place),
        EntryKind::HardLink => {
            let target = target.strip_prefix('.').unwrap_or(&target);
            match root.find(target) {
                Some(file) => fs::hard_link(file, &place),
                None => Err(io::Error::other(format!(
                    "it links to {target}, which it has not"
                ))),
            }
        }
        EntryKind::File | EntryKind::Program => {
            let mut options = OpenOptions::new();
            let mut file = options
                .write(true)
                .create_new(true)
                .mode(mode)
                .open(&place)?;
            file.write_all(&entry.content)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;
    use std::process::Command;

    use super::unpack_deb;

    /// Makes a package of a folder's content, by the host's dpkg-deb.
    fn package(content: &Path, compression: &str, deb: &Path) {
        fs::create_dir_all(content.join("DEBIAN")).unwrap();
        let control = "Package: x\nVersion: 1\nArchitecture: all\nMaintainer: x <x@localhost>\nDescription: x\n";
        fs::write(content.join("DEBIAN/control"), control).unwrap();
        let made = Command::new("dpkg-deb")
            .arg(format!("-Z{compression}"))
            .arg("--build")
            .args([content, deb])
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
    }

    fn list(root: &Path) -> Vec<String> {
        let listed = Command::new("find")
            .args([".", "-printf", "%y %P %l %s %n\n"])
            .current_dir(root)
            .output()
            .unwrap();
        let text = String::from_utf8(listed.stdout).unwrap();
        let mut lines: Vec<String> = text
            .lines()
            .filter(|line| !line.starts_with('d'))
            .map(str::to_owned)
            .collect();
        lines.sort();
        lines
    }

    #[test]
    fn files_are_those_of_dpkg_deb() {
        let folder = tempfile::tempdir().unwrap();
        let content = folder.path().join("content");
        fs::create_dir_all(content.join("usr/bin")).unwrap();
        fs::write(content.join("usr/bin/tool"), "#!").unwrap();
        fs::set_permissions(
            content.join("usr/bin/tool"),
            fs::Permissions::from_mode(0o4755),
        )
        .unwrap();
        fs::hard_link(content.join("usr/bin/tool"), content.join("usr/bin/twin")).unwrap();
        symlink("tool", content.join("usr/bin/link")).unwrap();
        symlink("usr/bin", content.join("bin")).unwrap();
        let long = "n".repeat(120);
        fs::write(content.join(&long), "long").unwrap();
        for compression in ["xz", "gzip", "zstd", "none"] {
            let deb = folder.path().join(format!("{compression}.deb"));
            package(&content, compression, &deb);
            let ours = folder.path().join(format!("{compression}-ours"));
            unpack_deb(&deb, &ours).unwrap();
            let theirs = folder.path().join(format!("{compression}-theirs"));
            let unpacked = Command::new("dpkg-deb")
                .arg("-x")
                .args([&deb, &theirs])
                .status()
                .unwrap();
            assert!(unpacked.success());
            assert_eq!(list(&ours), list(&theirs), "{compression}");
            let mode = fs::metadata(ours.join("usr/bin/tool"))
                .unwrap()
                .permissions()
                .mode();
            assert_eq!(mode & 0o7777, 0o755, "no set-user-id bit");
        }
    }

    #[test]
    fn links_of_a_package_lead_nowhere_else() {
        let folder = tempfile::tempdir().unwrap();
        let outside = folder.path().join("outside");
        fs::create_dir(&outside).unwrap();
        let into = folder.path().join("root");
        fs::create_dir(&into).unwrap();
        symlink(&outside, into.join("usr")).unwrap();
        symlink("/etc/passwd", into.join("file")).unwrap();
        let content = folder.path().join("content");
        fs::create_dir_all(content.join("usr")).unwrap();
        fs::write(content.join("usr/evil"), "x").unwrap();
        fs::write(content.join("file"), "ours").unwrap();
        let deb = folder.path().join("x.deb");
        package(&content, "gzip", &deb);
        drop(unpack_deb(&deb, &into));
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    }

    #[test]
    fn damaged_packages_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let deb = folder.path().join("x.deb");
        fs::write(&deb, "!<arch>\n").unwrap();
        let error = unpack_deb(&deb, &folder.path().join("root"))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("x.deb is damaged: it has no data.tar"),
            "{error}"
        );
    }
}
