//! The file of a proof: a `tar.zst` with a document, and patches, kernel configs and images that
//! the document names by their hashes.
//!
//! What the document says, `history` knows. A file from anywhere is unpacked into a directory of its
//! own: only names of this form, each content below its own hash, within limits.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use archives::{EntryKind, PackedFile, open_zstd, pack_zstd, sha256};

/// The name of the document, which is the first file.
const DOCUMENT: &str = "proof.json";
/// Directories of the other files.
const FOLDERS: [&str; 3] = ["patches", "configs", "images"];
/// Largest document: thousands of kernels with their counts.
const DOCUMENT_MAX: usize = 64 << 20;
/// Largest file: kernels with debug information are larger, and are built by who replays.
const FILE_MAX: u64 = 256 << 20;
/// Most bytes of all files, unpacked.
const UNPACKED_MAX: u64 = 2 << 30;
/// Most files: more than a series of 500 commits has.
const FILES_MAX: usize = 2000;

/// Why a file is no proof.
#[derive(Debug, thiserror::Error)]
pub enum ProofFileError {
    /// It is no archive of this kind, or damaged.
    #[error("it is no proof, damaged or cut short: {0}")]
    Damaged(String),
    /// It has what a proof has not.
    #[error("it is no proof: {0}")]
    Foreign(String),
    /// A file is not what its name says.
    #[error("its file {0} has another content than its hash says")]
    OtherContent(String),
    /// The directory for its files cannot be written.
    #[error("cannot unpack it into {}: {error}", folder.display())]
    Folder {
        /// The directory.
        folder: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// An unpacked proof.
#[derive(Debug)]
pub struct UnpackedProof {
    /// Its document.
    pub document: Vec<u8>,
    /// Where its files are, by their names in the archive, and the SHA-256 of each.
    pub files: BTreeMap<String, (PathBuf, String)>,
}

/// A proof that is written.
#[derive(Debug, Default)]
pub struct ProofWriter {
    files: BTreeMap<String, Vec<u8>>,
}

impl ProofWriter {
    /// Adds a patch with its number, and returns its name and its hash.
    pub fn add_patch(&mut self, number: usize, mail: Vec<u8>) -> (String, String) {
        let hash = sha256(&mail);
        let name = format!("patches/{number:04}.patch");
        self.files.insert(name.clone(), mail);
        (name, hash)
    }

    /// Adds a kernel config, and returns its hash.
    pub fn add_config(&mut self, config: Vec<u8>) -> String {
        let hash = sha256(&config);
        self.files.insert(format!("configs/{hash}"), config);
        hash
    }

    /// Adds an image. Returns whether it is small enough.
    pub fn add_image(&mut self, image: Vec<u8>) -> bool {
        let fits = image.len() as u64 <= FILE_MAX;
        if fits {
            self.files
                .insert(format!("images/{}", sha256(&image)), image);
        }
        fits
    }

    /// Returns the file, with its document first.
    ///
    /// # Errors
    /// If zstd fails.
    pub fn pack(&self, document: &[u8]) -> io::Result<Vec<u8>> {
        let file = |path, content| PackedFile {
            path,
            is_program: false,
            content,
        };
        let others = self
            .files
            .iter()
            .map(|(name, content)| file(name.as_str(), content.as_slice()));
        pack_zstd(
            Vec::new(),
            std::iter::once(file(DOCUMENT, document)).chain(others),
        )
    }
}

/// Unpacks a proof into an empty directory.
///
/// # Errors
/// If it is none, damaged, too large, or the directory cannot be written.
pub fn unpack_proof(file: &Path, into: &Path) -> Result<UnpackedProof, ProofFileError> {
    let damaged = |error: &dyn std::fmt::Display| {
        ProofFileError::Damaged(model::sanitize_line(&error.to_string()))
    };
    let failed = |error| ProofFileError::Folder {
        folder: into.to_owned(),
        error,
    };
    let mut archive = open_zstd(file, UNPACKED_MAX)
        .map_err(|error| damaged(&error))?
        .with_file_max(FILE_MAX);
    for folder in FOLDERS {
        fs::create_dir_all(into.join(folder)).map_err(failed)?;
    }
    let mut document = None;
    let mut files = BTreeMap::new();
    while let Some(entry) = archive.next_entry().map_err(|error| damaged(&error))? {
        let shown = || model::sanitize_line(&entry.path.chars().take(100).collect::<String>());
        if entry.kind != EntryKind::File {
            return Err(ProofFileError::Foreign(format!(
                "{} in it is no plain file",
                shown()
            )));
        }
        if document.is_none() {
            if entry.path != DOCUMENT || entry.content.len() > DOCUMENT_MAX {
                return Err(ProofFileError::Foreign(format!(
                    "its first file is not {DOCUMENT} of at most {} MiB",
                    DOCUMENT_MAX >> 20
                )));
            }
            document = Some(entry.content);
            continue;
        }
        let hash = sha256(&entry.content);
        match stated_hash(&entry.path) {
            None => {
                return Err(ProofFileError::Foreign(format!(
                    "it has a file {}",
                    shown()
                )));
            }
            Some(Some(stated)) if stated != hash => {
                return Err(ProofFileError::OtherContent(shown()));
            }
            Some(_) => {}
        }
        let place = into.join(&entry.path);
        fs::write(&place, &entry.content).map_err(failed)?;
        if files.len() >= FILES_MAX || files.insert(entry.path.clone(), (place, hash)).is_some() {
            return Err(ProofFileError::Foreign(format!(
                "it has {} twice, or more than {FILES_MAX} files",
                shown()
            )));
        }
    }
    let document = document.ok_or_else(|| ProofFileError::Foreign("it is empty".to_owned()))?;
    // The sum of zstd is behind the last file.
    let behind = io::copy(&mut archive.into_inner().by_ref(), &mut io::sink());
    behind.map_err(|error| damaged(&error))?;
    Ok(UnpackedProof { document, files })
}

/// Returns the hash that a name states; `None` in it if that name states none, `None` if a proof has
/// no such name.
fn stated_hash(path: &str) -> Option<Option<&str>> {
    let (folder, name) = path.split_once('/')?;
    if !FOLDERS.contains(&folder) {
        return None;
    }
    if folder == FOLDERS[0] {
        let number = name.strip_suffix(".patch")?;
        let is_number = number.len() == 4 && number.bytes().all(|byte| byte.is_ascii_digit());
        return is_number.then_some(None);
    }
    let is_hash = name.len() == 64
        && name
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_hash.then_some(Some(name))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::{ProofFileError, ProofWriter, stated_hash, unpack_proof};
    use archives::{PackedFile, pack_zstd};

    fn packed() -> Vec<u8> {
        let mut writer = ProofWriter::default();
        writer.add_patch(1, b"a mail".to_vec());
        writer.add_config(b"CONFIG_A=y\n".to_vec());
        assert!(writer.add_image(vec![7; 5000]));
        writer.pack(b"{}").unwrap()
    }

    fn unpack(bytes: &[u8]) -> Result<super::UnpackedProof, ProofFileError> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.proof");
        std::fs::write(&file, bytes).unwrap();
        unpack_proof(&file, &folder.path().join("into"))
    }

    fn with_file(path: &str, content: &[u8]) -> Vec<u8> {
        let file = |path, content| PackedFile {
            path,
            is_program: false,
            content,
        };
        pack_zstd(
            Vec::new(),
            [file("proof.json", &b"{}"[..]), file(path, content)],
        )
        .unwrap()
    }

    #[test]
    fn proofs_are_unpacked_as_they_were_packed() {
        let unpacked = unpack(&packed()).unwrap();
        assert_eq!(unpacked.document, b"{}");
        assert_eq!(unpacked.files.len(), 3);
        assert!(unpacked.files.contains_key("patches/0001.patch"));
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("x.tar.zst"), packed()).unwrap();
        let listed = Command::new("sh")
            .args(["-c", "zstd -dc x.tar.zst | tar t"])
            .current_dir(&folder)
            .output()
            .unwrap();
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        assert!(listed.starts_with("proof.json\nconfigs/"), "{listed}");
    }

    #[test]
    fn damaged_proofs_are_refused() {
        let whole = packed();
        for length in 0..whole.len() {
            assert!(unpack(&whole[..length]).is_err(), "{length}");
        }
        for place in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[place] ^= 0x55;
            assert!(unpack(&damaged).is_err(), "{place}");
        }
    }

    #[test]
    fn other_names_and_contents_are_refused() {
        let hash = "a".repeat(64);
        let paths = [
            "../../outside".to_owned(),
            "patches/../../outside".to_owned(),
            "/etc/passwd".to_owned(),
            "patches/1.patch".to_owned(),
            "images/x".to_owned(),
            "proof.json".to_owned(),
            format!("images/{hash}"),
            format!("images/{hash}/x"),
            format!("images/{}", hash.to_uppercase()),
        ];
        for path in paths {
            assert!(unpack(&with_file(&path, b"x")).is_err(), "{path}");
        }
        assert_eq!(stated_hash("patches/0001.patch"), Some(None));
        let bomb = with_file("patches/0001.patch", &vec![0; 300 << 20]);
        assert!(bomb.len() < 100_000);
        assert!(matches!(unpack(&bomb), Err(ProofFileError::Damaged(_))));
        let folder = tempfile::tempdir().unwrap();
        let into = folder.path().join("into");
        assert!(unpack_proof(&folder.path().join("absent"), &into).is_err());
        assert!(!into.exists(), "a file that is absent leaves nothing");
    }

    #[test]
    fn links_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let made = Command::new("sh")
            .args([
                "-c",
                "echo {} >proof.json; mkdir images; ln -s /etc/passwd images/x; tar c proof.json images/x | zstd -q >x",
            ])
            .current_dir(&folder)
            .status();
        assert!(made.unwrap().success());
        let refused = unpack_proof(&folder.path().join("x"), &folder.path().join("into"));
        assert!(
            refused.is_err_and(|error| error.to_string().contains("no plain file")),
            "links lead elsewhere"
        );
    }
}
