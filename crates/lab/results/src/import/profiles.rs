//! Files of profiles for `marvin profile`: one file, or the files of a directory.

use std::path::{Path, PathBuf};

use config::{LeafProfile, read_leaves};

use super::tree::{FILE_MAX, unpack, unpack_from};

/// Most files of a side.
const FILES_MAX: usize = 100;
/// How gzip begins: pprof's files have it, whatever they are called.
const GZIP: [u8; 2] = [0x1f, 0x8b];

fn wrong(path: &Path, why: impl std::fmt::Display) -> String {
    format!("cannot read {}: {why}", path.display())
}

/// Reads the profiles of a file or of a directory's files, in the order of their names.
///
/// # Errors
/// If one cannot be read, or is no profile; the text says which.
pub fn read_profiles(path: &Path) -> Result<Vec<LeafProfile>, String> {
    let mut files: Vec<PathBuf> = Vec::new();
    if path.is_dir() {
        let entries = path
            .read_dir()
            .map_err(|error| wrong(path, error.to_string()))?;
        for entry in entries {
            let entry = entry.map_err(|error| wrong(path, error.to_string()))?;
            // Also one that a link names.
            if entry.path().is_file() {
                files.push(entry.path());
            }
        }
        files.sort();
    } else {
        files.push(path.to_owned());
    }
    if files.is_empty() {
        return Err(wrong(
            path,
            "no file in it: name a profile, or a directory of profiles",
        ));
    }
    if files.len() > FILES_MAX {
        let text = format!("it has more than {FILES_MAX} files: name a directory of profiles");
        return Err(wrong(path, text));
    }
    let read = |file: &PathBuf| {
        // `unpack` opens no links.
        let target = file.canonicalize().map_err(|error| error.to_string())?;
        let mut bytes = unpack(&target, FILE_MAX)?;
        if bytes.starts_with(&GZIP) {
            bytes = unpack_from(&bytes[..], Some("gz"), FILE_MAX)?;
        }
        read_leaves(&bytes)
    };
    let mut profiles: Vec<LeafProfile> = Vec::new();
    for file in &files {
        let profile = read(file).map_err(|why| wrong(file, why))?;
        // Two copies of one recording would agree perfectly, and hide how recordings differ.
        if let Some(place) = profiles.iter().position(|earlier| *earlier == profile) {
            let earlier = files[place].display();
            let text = format!("it has the same samples as {earlier}: name each recording once");
            return Err(wrong(file, text));
        }
        profiles.push(profile);
    }
    Ok(profiles)
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use config::LeafProfile;

    use super::read_profiles;

    fn golden(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("golden/profiles")
            .join(name)
    }

    fn read(name: &str) -> LeafProfile {
        read_profiles(&golden(name)).unwrap().remove(0)
    }

    #[test]
    fn published_stacks_are_equal_in_four_encodings() {
        let plain = read("simple.txt");
        assert_eq!((plain.total(), plain.functions["c"]), (14, 5));
        for name in [
            "simple-crlf.txt",
            "simple-utf16-le.txt",
            "simple-utf16-be.txt",
        ] {
            assert_eq!(read(name), plain, "{name}");
        }
        let marred = read("simple-with-invalids.txt");
        assert_eq!(marred.functions, plain.functions);
        assert_eq!(marred.left_out.len(), 2, "{:?}", marred.left_out);
    }

    #[test]
    fn published_samples_of_perf_are_read() {
        let one = read("one-sample.linux-perf.txt");
        assert_eq!((one.event.as_str(), one.total()), ("cpu-clock", 1));
        assert_eq!(one.functions["_Z4betav"], 1);
    }

    #[test]
    fn published_profile_of_go_has_its_samples() {
        let found = read("simple.prof");
        assert_eq!(found.event, "samples (count)");
        // As a decoder of its own in Python has them.
        assert_eq!(found.total(), 150);
        assert_eq!(found.functions["main.alpha"], 48);
    }

    #[test]
    fn directories_are_read_whole_or_refused() {
        let all = read_profiles(&golden("")).unwrap_err();
        assert!(all.contains("LICENSE-speedscope"), "{all}");
        let missing = read_profiles(&golden("none")).unwrap_err();
        assert!(missing.contains("none"), "{missing}");
    }

    #[test]
    fn links_to_recordings_are_read() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(golden("simple.txt"), folder.path().join("one")).unwrap();
        let one = read_profiles(folder.path()).unwrap().remove(0);
        assert_eq!(one, read("simple.txt"));
    }

    #[test]
    fn copy_of_a_recording_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["one.folded", "two.folded"] {
            std::fs::write(folder.path().join(name), "a;b 3\na;c 4\n").unwrap();
        }
        let why = read_profiles(folder.path()).unwrap_err();
        assert!(
            why.contains("two.folded") && why.contains("name each recording once"),
            "{why}"
        );
    }
}
