//! Artifacts: the raw files of a run (result stream, console, …), compressed with zstd. SQLite
//! stores have one file each. PostgreSQL stores have values in the database, since its users share
//! no directory, and one transaction then covers everything.
//!
//! The store does not interpret them: they are names and bytes.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use model::RunId;
use rusqlite::types::ToSqlOutput;

use crate::columns::{text, whole};
use crate::database::{Database, Failure};
use crate::lookup::unknown;
use crate::runs::PLACE;
use crate::store::run_exists;
use crate::{LookupError, Store, StoreError};

/// The largest artifact, for saving and unpacking.
const SIZE_LIMIT: usize = 1 << 30;

const NAME_LIMIT: usize = 100;

/// zstd's default: consoles and streams shrink to a tenth in little time.
const LEVEL: i32 = 3;

/// The largest piece (bytes).
const PIECE: usize = 64 << 10;

/// Limit on what a packed file may have a reader keep in memory, as a power of two: 4 MiB, twice
/// what [`LEVEL`] needs.
const WINDOW_LOG_MAX: u32 = 22;

/// An artifact to save with a run.
#[derive(Debug, Clone, Copy)]
pub struct Artifact<'a> {
    /// Its name within the run: ASCII letters, digits, `.`, `_` and `-`, not beginning with a dot.
    pub name: &'a str,
    pub bytes: &'a [u8],
}

pub(crate) struct Packed<'a> {
    pub(crate) name: &'a str,
    pub(crate) size: usize,
    bytes: Vec<u8>,
}

/// Checks and compresses artifacts, before any lock or write.
pub(crate) fn pack<'a>(artifacts: &[Artifact<'a>]) -> Result<Vec<Packed<'a>>, StoreError> {
    let mut packed: Vec<Packed<'a>> = Vec::with_capacity(artifacts.len());
    for artifact in artifacts {
        let bad = |reason: String| StoreError::BadArtifact {
            name: artifact.name.escape_debug().to_string(),
            reason,
        };
        if !is_name(artifact.name) {
            return Err(bad("its name is not fit for a file".to_owned()));
        }
        if artifact.bytes.len() > SIZE_LIMIT {
            return Err(bad(format!("more than {SIZE_LIMIT} bytes")));
        }
        if packed.iter().any(|other| other.name == artifact.name) {
            return Err(bad("two of that name".to_owned()));
        }
        packed.push(Packed {
            name: artifact.name,
            size: artifact.bytes.len(),
            bytes: compress(artifact.bytes).map_err(|error| bad(error.to_string()))?,
        });
    }
    Ok(packed)
}

fn compress(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut compressor = zstd::bulk::Compressor::new(LEVEL)?;
    compressor.include_checksum(true)?;
    compressor.compress(bytes)
}

fn is_name(name: &str) -> bool {
    (1..=NAME_LIMIT).contains(&name.len())
        && !name.starts_with('.')
        && name
            .bytes()
            .all(|b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}

impl Store {
    /// Returns an artifact of a run.
    ///
    /// # Errors
    /// If there is none, or its file is damaged.
    pub fn artifact(&self, run: &RunId, name: &str) -> Result<Vec<u8>, StoreError> {
        let mut bytes = Vec::new();
        self.copy_artifact(run, name, &mut |piece| {
            bytes.extend_from_slice(piece);
            true
        })?;
        Ok(bytes)
    }

    /// Unpacks an artifact in pieces of bounded size, until `take` returns false. The checksum is
    /// behind the last piece: after an error, none of the pieces may count.
    ///
    /// # Errors
    /// If there is none, or its file is damaged.
    pub fn copy_artifact(
        &self,
        run: &RunId,
        name: &str,
        take: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<(), StoreError> {
        let select = "SELECT size FROM artefacts WHERE run = (SELECT number FROM runs WHERE id = ?1) AND name = ?2";
        let size =
            self.with(|database| database.row(select, &[&run.hex(), &name], |row| row.get(0)))?;
        let Some(size) = size else {
            return Err(StoreError::Lookup(LookupError::NoArtifact {
                run: run.clone(),
                name: name.escape_debug().to_string(),
                present: self.artifact_names(run)?.join(", "),
            }));
        };
        match &self.database {
            Database::Sqlite(_) => self.unpack_file(
                &self.home.artifacts_of(run).join(file_name(name)),
                size,
                take,
            ),
            Database::Server(_) => {
                let content = Content {
                    store: self,
                    run: run.hex(),
                    name,
                    at: 0,
                    piece: io::Cursor::default(),
                };
                unpack(content, size, take)
                    .map_err(|detail| self.home.damaged(&format!("{run}, {name}: {detail}")))
            }
        }
    }

    /// Lists the names of a run's artifacts.
    ///
    /// # Errors
    /// If there is no such run, or the database cannot be read.
    pub fn artifact_names(&self, run: &RunId) -> Result<Vec<String>, StoreError> {
        Ok(self
            .artifact_sizes(run)?
            .into_iter()
            .map(|(name, _)| name)
            .collect())
    }

    /// Lists a run's artifacts by name, each with its bytes when unpacked.
    ///
    /// # Errors
    /// If there is no such run, or the store cannot be read.
    pub fn artifact_sizes(&self, run: &RunId) -> Result<Vec<(String, usize)>, StoreError> {
        if !self.with(|database| run_exists(database, run))? {
            return Err(unknown(&PLACE, run));
        }
        let select = "SELECT name, size FROM artefacts WHERE run = (SELECT number FROM runs WHERE id = ?1) ORDER BY name";
        self.with(|database| {
            database.rows(select, &[&run.hex()], |row| Ok((row.get(0)?, row.get(1)?)))
        })
    }

    /// Adds an artifact to a stored run, and returns whether it was new. Stored artifacts are never
    /// replaced: the run stays as it was measured, and only a repetition of the same job adds
    /// artifacts.
    ///
    /// # Errors
    /// If there is no such run, the name is invalid, or the store cannot be written.
    pub fn add_artifact(&self, run: &RunId, artifact: Artifact<'_>) -> Result<bool, StoreError> {
        let packed = pack(&[artifact])?;
        let transaction = self.with(Database::write)?;
        if self
            .artifact_names(run)?
            .iter()
            .any(|name| name == artifact.name)
        {
            return Ok(false);
        }
        self.add_files(run, &packed)?;
        self.with(|database| {
            let number: Option<i64> = database.row(
                "SELECT number FROM runs WHERE id = ?1",
                &[&run.hex()],
                |row| row.get(0),
            )?;
            // It was there within this transaction a moment ago.
            insert(database, number.unwrap_or_default(), &packed)
        })?;
        self.with(|_| transaction.commit())?;
        Ok(true)
    }

    fn add_files(&self, run: &RunId, packed: &[Packed<'_>]) -> Result<(), StoreError> {
        if matches!(self.database, Database::Server(_)) {
            return Ok(());
        }
        let folder = self.home.artifacts_of(run);
        for artifact in packed {
            // No artifact begins with a dot. The next process overwrites what a killed one leaves
            // under this name.
            let part = folder.join(".adding");
            let target = folder.join(file_name(artifact.name));
            let work = || -> io::Result<()> {
                fs::create_dir_all(&folder)?;
                let mut file = File::create(&part)?;
                file.write_all(&artifact.bytes)?;
                file.sync_all()?;
                fs::rename(&part, &target)?;
                sync(&folder)
            };
            work().map_err(|error| self.home.io(&target, error))?;
        }
        Ok(())
    }

    fn unpack_file(
        &self,
        path: &Path,
        size: usize,
        take: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<(), StoreError> {
        let damaged = |detail: String| StoreError::Damaged {
            file: path.to_owned(),
            detail,
        };
        let file = File::open(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => damaged("the file is missing".to_owned()),
            _ => self.home.io(path, error),
        })?;
        unpack(file, size, take).map_err(damaged)
    }

    /// Removes the mark of a saved run, if there is one and it can be removed.
    pub(crate) fn unmark(&self, run: &RunId) {
        if matches!(self.database, Database::Sqlite(_)) {
            self.home.remove(&self.home.incoming_of(run)).ok();
        }
    }

    /// Moves artifacts into place, whole. Call it within the transaction that saves the run.
    ///
    /// If the process is killed, `incoming/<run>` stays until the transaction is committed, so that
    /// a later process knows what to remove.
    pub(crate) fn place(&self, run: &RunId, packed: &[Packed<'_>]) -> Result<(), StoreError> {
        if matches!(self.database, Database::Server(_)) {
            return Ok(());
        }
        let mark = self.home.incoming_of(run);
        if mark.exists() {
            self.discard(run)?;
        }
        let target = self.home.artifacts_of(run);
        let work = || -> io::Result<()> {
            let folder = mark.join("files");
            fs::create_dir_all(&folder)?;
            sync(&self.home.incoming())?;
            for artifact in packed {
                let mut file = File::create_new(folder.join(file_name(artifact.name)))?;
                file.write_all(&artifact.bytes)?;
                file.sync_all()?;
            }
            sync(&folder)?;
            fs::rename(&folder, &target)?;
            sync(&self.home.artifacts())
        };
        work().map_err(|error| self.home.io(&target, error))
    }
}

/// Inserts what the database keeps of artifacts of the run of that number.
pub(crate) fn insert(database: &Database, run: i64, packed: &[Packed<'_>]) -> Result<(), Failure> {
    for Packed { name, size, bytes } in packed {
        let run = run.into();
        let name = text(*name);
        let size = whole(*size);
        match database {
            Database::Sqlite(_) => database.insert("artefacts", &[[run, name, size]])?,
            Database::Server(_) => database.insert(
                "artefacts",
                &[[run, name, size, ToSqlOutput::from(&bytes[..])]],
            )?,
        }
    }
    Ok(())
}

/// The packed bytes of an artifact in a server's database, read in pieces.
struct Content<'a> {
    store: &'a Store,
    run: &'a str,
    name: &'a str,
    at: i64,
    piece: io::Cursor<Vec<u8>>,
}

impl Read for Content<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.piece.position() == self.piece.get_ref().len() as u64 {
            // Positions begin at one.
            let select = "SELECT substring(content FROM ?3::bigint::int FOR ?4::bigint::int) FROM artefacts \
                          WHERE run = (SELECT number FROM runs WHERE id = ?1) AND name = ?2";
            let from = self.at + 1;
            let length = PIECE as i64;
            let read = self.store.with(|database| {
                database.row(select, &[&self.run, &self.name, &from, &length], |row| {
                    row.get::<Vec<u8>>(0)
                })
            });
            let bytes = read.map_err(io::Error::other)?.unwrap_or_default();
            self.at += bytes.len() as i64;
            self.piece = io::Cursor::new(bytes);
        }
        self.piece.read(into)
    }
}

/// Unpacks `size` bytes in pieces, until `take` returns false; errors if the size differs.
fn unpack(
    packed: impl Read,
    size: usize,
    take: &mut dyn FnMut(&[u8]) -> bool,
) -> Result<(), String> {
    // One byte more than was saved is enough to see that it differs.
    let limit = size.min(SIZE_LIMIT) as u64 + 1;
    let mut decoder = zstd::Decoder::new(packed).map_err(|error| error.to_string())?;
    decoder
        .window_log_max(WINDOW_LOG_MAX)
        .map_err(|error| error.to_string())?;
    let mut decoder = decoder.take(limit);
    let mut piece = vec![0; PIECE];
    let mut all = 0;
    loop {
        let count = decoder
            .read(&mut piece)
            .map_err(|error| error.to_string())?;
        all += count;
        if all > size || (count == 0 && all < size) {
            return Err(format!("it does not hold {size} bytes"));
        }
        if count == 0 || !take(&piece[..count]) {
            return Ok(());
        }
    }
}

/// Unpacks any bytes as an artifact of this size; returns how many came out.
#[cfg(feature = "fuzzing")]
pub(crate) fn unpacked(packed: &[u8], size: usize) -> usize {
    let mut all = 0;
    let whole = unpack(packed, size, &mut |piece| {
        assert!(piece.len() <= PIECE, "pieces are bounded");
        all += piece.len();
        true
    });
    assert!(
        all <= size && (whole.is_err() || all == size),
        "{all} of {size} bytes"
    );
    all
}

fn file_name(artifact: &str) -> String {
    format!("{artifact}.zst")
}

/// Syncs the names in a directory to disk before the database refers to them.
fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::Artifact;
    use crate::StoreError;
    use crate::testing::{New, contract, parents, run, store};
    use model::Fault;

    contract!(
        artifacts_come_back_as_they_were,
        an_artifact_that_is_added_is_there_and_is_never_replaced,
        large_artifact_is_copied_in_pieces,
        missing_artifact_is_reported_missing,
        names_that_are_not_fit_for_files_are_refused,
    );

    const STREAM: Artifact<'_> = Artifact {
        name: "stream.txt",
        bytes: b"sample 1\nsample 2\n",
    };

    fn artifacts_come_back_as_they_were(new: New<'_>) {
        let (home, store) = new();
        let run = run("aa", "01", 1);
        parents(&store, &run);
        let zeros = vec![0; 5_000_000];
        let console = Artifact {
            name: "console",
            bytes: &zeros,
        };
        store.save_run(&run, &[STREAM, console]).unwrap();
        assert_eq!(store.artifact(&run.id, "stream.txt").unwrap(), STREAM.bytes);
        assert_eq!(store.artifact(&run.id, "console").unwrap(), zeros);
        assert_eq!(
            store.artifact_names(&run.id).unwrap(),
            ["console", "stream.txt"]
        );
        let sizes = [
            ("console".to_owned(), zeros.len()),
            ("stream.txt".to_owned(), STREAM.bytes.len()),
        ];
        assert_eq!(store.artifact_sizes(&run.id).unwrap(), sizes);
        // Server stores have no such files.
        if home.path().join("artefacts").exists() {
            let file = home.path().join("artefacts/01/console.zst");
            assert!(fs::metadata(file).unwrap().len() < 10_000);
            assert_eq!(
                fs::read_dir(home.path().join("incoming")).unwrap().count(),
                0
            );
        }
    }

    fn an_artifact_that_is_added_is_there_and_is_never_replaced(new: New<'_>) {
        let (home, store) = new();
        let run = run("aa", "01", 1);
        parents(&store, &run);
        store.save_run(&run, &[STREAM]).unwrap();
        let added = Artifact {
            name: "getppid.monitors",
            bytes: b"copies",
        };
        assert!(store.add_artifact(&run.id, added).unwrap());
        assert!(
            !store
                .add_artifact(
                    &run.id,
                    Artifact {
                        bytes: b"others",
                        ..added
                    }
                )
                .unwrap()
        );
        assert!(!store.add_artifact(&run.id, STREAM).unwrap());
        assert_eq!(store.artifact(&run.id, added.name).unwrap(), b"copies");
        assert_eq!(
            store.artifact_names(&run.id).unwrap(),
            ["getppid.monitors", "stream.txt"]
        );
        if home.path().join("artefacts").exists() {
            assert_eq!(
                fs::read_dir(home.path().join("artefacts/01"))
                    .unwrap()
                    .count(),
                2
            );
        }
        let unknown = model::RunId::from_hex("02").unwrap();
        assert_eq!(
            store.add_artifact(&unknown, added).unwrap_err().fault(),
            Fault::User
        );
        assert_eq!(store.run(&run.id).unwrap(), run);
    }

    fn large_artifact_is_copied_in_pieces(new: New<'_>) {
        let (_home, store) = new();
        let run = run("aa", "01", 1);
        parents(&store, &run);
        // Bytes that do not shrink, so that the packed form has several pieces too.
        let mut state = 1_u64;
        let bytes: Vec<u8> = std::iter::repeat_with(|| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        })
        .take(5 * super::PIECE + 7)
        .collect();
        store
            .save_run(
                &run,
                &[Artifact {
                    name: "large",
                    bytes: &bytes,
                }],
            )
            .unwrap();
        assert_eq!(store.artifact(&run.id, "large").unwrap(), bytes);
        let mut sizes = Vec::new();
        store
            .copy_artifact(&run.id, "large", &mut |piece| {
                sizes.push(piece.len());
                sizes.len() < 3
            })
            .unwrap();
        assert_eq!(sizes.len(), 3, "a taker may stop");
        assert!(sizes.iter().all(|size| *size <= super::PIECE), "{sizes:?}");
    }

    fn missing_artifact_is_reported_missing(new: New<'_>) {
        let (_home, store) = new();
        let mut run = run("aa", "01", 1);
        parents(&store, &run);
        store.save_run(&run, &[STREAM]).unwrap();
        let error = store.artifact(&run.id, "../../lock").unwrap_err();
        assert_eq!(error.fault(), Fault::User);
        insta::assert_snapshot!(error, @"run_01 has no artifact `../../lock`; it has: stream.txt");
        run.id = model::RunId::from_hex("02").unwrap();
        insta::assert_snapshot!(store.artifact(&run.id, "console").unwrap_err(), @"no run `run_02`: `marvin runs` lists stored runs");
    }

    fn names_that_are_not_fit_for_files_are_refused(new: New<'_>) {
        let (_home, store) = new();
        let run = run("aa", "01", 1);
        parents(&store, &run);
        let long = "x".repeat(101);
        for name in ["", ".", "../x", "a/b", ".hidden", "a\0", "ö", &long] {
            let error = store
                .save_run(&run, &[Artifact { name, bytes: b"" }])
                .unwrap_err();
            assert!(matches!(error, StoreError::BadArtifact { .. }), "{name}");
        }
        assert!(store.save_run(&run, &[STREAM, STREAM]).is_err());
        store.save_run(&run, &[]).unwrap();
    }

    #[test]
    fn changed_lost_or_oversized_artifact_is_refused() {
        let (home, store) = store();
        let run = run("aa", "01", 1);
        parents(&store, &run);
        store.save_run(&run, &[STREAM]).unwrap();
        let file = home.path().join("artefacts/01/stream.txt.zst");
        let error_of = || {
            let error = store.artifact(&run.id, STREAM.name).unwrap_err();
            assert_eq!(error.fault(), Fault::Lab);
            error
                .to_string()
                .replace(home.path().to_str().unwrap(), "HOME")
        };
        let bomb = zstd::bulk::compress(&vec![0; 100_000_000], 3).unwrap();
        fs::write(&file, bomb).unwrap();
        insta::assert_snapshot!(error_of(), @"HOME/artefacts/01/stream.txt.zst is damaged: it does not hold 18 bytes; restore the data directory from a backup, or name a new one with --home");
        let mut flipped = super::compress(STREAM.bytes).unwrap();
        *flipped.last_mut().unwrap() ^= 1;
        fs::write(&file, flipped).unwrap();
        assert!(error_of().contains("checksum"), "{}", error_of());
        fs::write(&file, "plain").unwrap();
        assert!(error_of().contains("damaged"));
        fs::remove_file(&file).unwrap();
        insta::assert_snapshot!(error_of(), @"HOME/artefacts/01/stream.txt.zst is damaged: the file is missing; restore the data directory from a backup, or name a new one with --home");
    }
}
