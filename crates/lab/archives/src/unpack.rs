//! Unpacks the files of a package below a directory, as `dpkg-deb -x` does, but within that directory
//! whatever links the package has, and without owners, special files and set-user-id bits.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::Path;

use liblzma::read::XzDecoder;
use liblzma::stream::Stream;

use crate::error::damaged;
use crate::tar::{Archive, Entry, EntryKind, Paths};
use crate::{ArchiveError, Root, ar, rpm};

/// Most memory of the decoder: xz -9 needs 65 MiB.
const XZ_MEMORY: u64 = 128 << 20;
/// Largest file that packages compress to nothing: more than any package of a kernel has.
pub(crate) const UNPACKED_MAX: u64 = 8 << 30;

/// Unpacks a package of any distribution below a directory, by what the package is.
///
/// # Errors
/// If it is none, it is damaged, or a file cannot be written.
pub fn unpack(package: &Path, into: &Path) -> Result<(), ArchiveError> {
    let mut magic = Vec::new();
    File::open(package)
        .and_then(|file| file.take(8).read_to_end(&mut magic))
        .map_err(ArchiveError::io(package))?;
    if magic.starts_with(b"!<arch>\n") {
        return unpack_deb(package, into);
    }
    if rpm::is_rpm(&magic) {
        return rpm::unpack(package, into);
    }
    let file = File::open(package).map_err(ArchiveError::io(package))?;
    let unpacked = decoder_of(BufReader::new(file)).map_err(|error| damaged(package, &error))?;
    unpack_tar(package, unpacked, into)
}

/// Unpacks a Debian package below a directory, which is made if it is not there.
///
/// # Errors
/// If the package is damaged, or a file cannot be written.
pub fn unpack_deb(deb: &Path, into: &Path) -> Result<(), ArchiveError> {
    let mut package = File::open(deb).map_err(ArchiveError::io(deb))?;
    let content = ar::find_data(&mut package).map_err(|error| damaged(deb, &error))?;
    let content = content.ok_or_else(|| damaged(deb, &io::Error::other("it has no data.tar")))?;
    package
        .seek(SeekFrom::Start(content.offset))
        .map_err(ArchiveError::io(deb))?;
    let packed = BufReader::new(package.take(content.bytes));
    let unpacked = decoder(&content.name, packed).map_err(|error| damaged(deb, &error))?;
    unpack_tar(deb, unpacked, into)
}

fn unpack_tar(package: &Path, unpacked: impl Read, into: &Path) -> Result<(), ArchiveError> {
    fs::create_dir_all(into).map_err(ArchiveError::io(into))?;
    let mut entries = Archive::new(unpacked.take(UNPACKED_MAX), Paths::FromRoot);
    while let Some(entry) = entries
        .next_entry()
        .map_err(|error| damaged(package, &error))?
    {
        write(&Root(into), &entry).map_err(ArchiveError::io(&into.join(&entry.path)))?;
    }
    Ok(())
}

/// Returns the reader that the first bytes ask for, whatever the file is called.
pub(crate) fn decoder_of<'a>(mut packed: impl BufRead + 'a) -> io::Result<Box<dyn Read + 'a>> {
    const MAGICS: [(&[u8], &str); 3] = [
        (&[0x1f, 0x8b], "x.gz"),
        (b"\xfd7zXZ", "x.xz"),
        (&[0x28, 0xb5, 0x2f, 0xfd], "x.zst"),
    ];
    const UNKNOWN: [(&[u8], &str); 6] = [
        (b"BZh", "bzip2"),
        (b"\0ZCK1", "zchunk"),
        (&[0x04, 0x22, 0x4d, 0x18], "lz4"),
        (b"LZIP", "lzip"),
        (&[0x5d, 0, 0], "lzma"),
        (b"SQLite format 3", "SQLite"),
    ];
    let start = packed.fill_buf()?;
    if let Some((_, name)) = UNKNOWN.iter().find(|(magic, _)| start.starts_with(magic)) {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            format!("it is packed by {name}, which Marvin does not read"),
        ));
    }
    let found = MAGICS.iter().find(|(magic, _)| start.starts_with(magic));
    let name = found.map_or("x.tar", |(_, name)| name);
    decoder(name, packed)
}

/// Returns the reader that the end of a member's name asks for.
pub(crate) fn decoder<'a>(name: &str, packed: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    Ok(match ending {
        "tar" | "plain" => Box::new(packed),
        "gz" => Box::new(flate2::read::MultiGzDecoder::new(packed)),
        "xz" => Box::new(XzDecoder::new_stream(
            packed,
            Stream::new_stream_decoder(XZ_MEMORY, liblzma::stream::CONCATENATED)?,
        )),
        "zst" => Box::new(zstd::stream::read::Decoder::new(packed)?),
        _ => {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                format!("{name}: unknown compression"),
            ));
        }
    })
}

/// Writes an entry below a root.
pub(crate) fn write(root: &Root<'_>, entry: &Entry) -> io::Result<()> {
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

    /// Makes a package by hand, with this content and compression.
    fn by_hand(data: &[u8], name: &str, deb: &Path) {
        let mut package = b"!<arch>\n".to_vec();
        for (name, content) in [
            ("debian-binary", &b"2.0\n"[..]),
            ("control.tar", b""),
            (name, data),
        ] {
            let size = content.len();
            let head = format!(
                "{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n",
                0, 0, 0, 100_644
            );
            package.extend(head.bytes());
            package.extend(content);
            package.resize(package.len().next_multiple_of(2), b'\n');
        }
        fs::write(deb, package).unwrap();
    }

    fn tar(folder: &Path, arguments: &[&str]) -> Vec<u8> {
        let output = Command::new("tar")
            .args(arguments)
            .arg("-c")
            .arg(".")
            .current_dir(folder)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        output.stdout
    }

    #[test]
    fn several_frames_and_long_names_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let content = folder.path().join("content");
        let module = format!("usr/lib/modules/6.8.0-31-generic/{}/x.ko", "m".repeat(120));
        let file = content.join(&module);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "module").unwrap();
        for format in ["--format=gnu", "--format=pax"] {
            let data = tar(&content, &[format]);
            let (first, second) = data.split_at(700);
            let frames = [first, second]
                .map(|part| zstd::stream::encode_all(part, 19).unwrap())
                .concat();
            let deb = folder.path().join("x.deb");
            by_hand(&frames, "data.tar.zst", &deb);
            let root = folder.path().join(format);
            super::unpack(&deb, &root).unwrap();
            assert_eq!(fs::read(root.join(&module)).unwrap(), b"module");
        }
    }

    #[test]
    fn modules_below_either_path_come_to_one_directory() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        fs::create_dir_all(root.join("usr/lib")).unwrap();
        symlink("usr/lib", root.join("lib")).unwrap();
        for place in ["lib", "usr/lib"] {
            let content = folder.path().join(place.replace('/', "-"));
            let modules = content.join(place).join("modules/6.1");
            fs::create_dir_all(&modules).unwrap();
            fs::write(modules.join("both.ko"), place).unwrap();
            fs::write(modules.join(format!("{}.ko", place.len())), place).unwrap();
            let deb = folder.path().join("x.deb");
            by_hand(&tar(&content, &[]), "data.tar", &deb);
            unpack_deb(&deb, &root).unwrap();
        }
        let modules = root.join("usr/lib/modules/6.1");
        assert_eq!(fs::read_dir(&modules).unwrap().count(), 3);
        let both = fs::read_to_string(modules.join("both.ko")).unwrap();
        assert_eq!(both, "usr/lib", "the later package's");
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
