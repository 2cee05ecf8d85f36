//! Backups of a data directory, as a directory of plain files: the database as of one moment, the
//! artifacts of its runs, and small files that cannot be made again. A server of PostgreSQL has
//! tools of its own for this.
//!
//! `SHA256SUMS` lists every file, in the format of sha256sum(1), so that a backup can be verified
//! without Marvin; its first line says what the backup has.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use model::{UnixTime, hexadecimal};
use rusqlite::{Connection, OpenFlags};
use sha2::{Digest, Sha256};

use crate::home::Home;
use crate::{BackupError, Location, Store, StoreError, schema};

/// The list of files, without which a directory is no backup.
const SUMS: &str = "SHA256SUMS";
/// The database.
const DATABASE: &str = "marvin.db";
/// The directory of a data directory that has what is being restored.
const RESTORED: &str = "restore.part";
/// What a data directory knows of its last backup.
const LAST: &str = "backup.last";
/// The version of the layout.
const FORMAT: u32 = 1;
/// Size of a piece that is copied (bytes).
const PIECE: usize = 64 << 10;

/// A backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backup {
    pub made_unix: UnixTime,
    /// The number of steps of its database's schema.
    pub schema: usize,
    pub runs: u64,
    pub files: usize,
    pub bytes: u64,
    /// Artifacts that the store has lost: they are in no backup.
    pub missing: Vec<PathBuf>,
}

/// A file of a backup: its path in it, and its checksum.
type Sum = (PathBuf, String);

impl Store {
    /// Writes a backup of a data directory, also while others save results in it. The directory
    /// `to` appears when everything in it is on the disk. `others` are files and directories of the
    /// data directory to take along.
    ///
    /// # Errors
    /// If `to` exists, the data directory has no results, or a file cannot be read or written.
    pub fn back_up(
        location: &Location,
        to: &Path,
        others: &[&str],
        now_unix: UnixTime,
    ) -> Result<Backup, StoreError> {
        let folder = match location {
            Location::Home(folder) => folder,
            Location::Server(address) => {
                return Err(BackupError::OnServer {
                    store: address.to_string(),
                }
                .into());
            }
        };
        let mut part = to.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        for place in [to, &part] {
            if place.symlink_metadata().is_ok() {
                let place = place.to_owned();
                return Err(BackupError::InTheWay { place }.into());
            }
        }
        let target = Home::new(&part);
        DirBuilder::new()
            .mode(0o700)
            .create(&part)
            .map_err(|error| target.io(&part, error))?;
        let written = write(&Home::new(folder), &target, others, now_unix).and_then(|backup| {
            let named = fs::rename(&part, to).and_then(|()| sync_parent(to));
            named.map_err(|error| target.io(to, error))?;
            Ok(backup)
        });
        if written.is_err() {
            // The first error matters more; the hint of the next try names what is left.
            fs::remove_dir_all(&part).ok();
            return written;
        }
        // Only the metric of the last backup needs it. A full disk leaves the one before.
        let last = folder.join(LAST);
        let new = last.with_extension("new");
        let noted = fs::write(&new, format!("{}\n", now_unix.seconds()))
            .and_then(|()| fs::rename(&new, &last));
        if noted.is_err() {
            fs::remove_file(&new).ok();
        }
        written
    }
}

impl Store {
    /// Returns when the last backup of a data directory was made.
    #[must_use]
    pub fn last_backup(&self) -> Option<UnixTime> {
        let text = fs::read_to_string(self.home.root().join(LAST)).ok()?;
        text.trim().parse().ok().map(UnixTime::new)
    }

    /// Returns how much room is left where a data directory is (bytes); `None` of a server.
    #[must_use]
    pub fn free_bytes(&self) -> Option<u64> {
        let room = rustix::fs::statvfs(self.home.root()).ok()?;
        Some(room.f_bavail.saturating_mul(room.f_frsize))
    }
}

/// Restores a backup into a data directory that is missing or empty, after verifying all of it. The
/// database appears last, when all else is on the disk; what a killed restore left is replaced.
///
/// # Errors
/// If the backup is incomplete or damaged, the data directory has anything else in it, or a newer
/// Marvin made the backup. Nothing is left in the data directory then.
pub fn restore(from: &Path, to: &Path) -> Result<Backup, StoreError> {
    let (backup, sums) = read_sums(from)?;
    let home = Home::new(to);
    if !schema::is_known(backup.schema) {
        return Err(schema::newer(from.join(DATABASE), backup.schema));
    }
    let names = top_names(&sums);
    let part = to.join(RESTORED);
    let is_usable = match fs::read_dir(to) {
        Ok(mut entries) => {
            let is_ours = |entry: &OsString| entry == RESTORED || names.contains(entry);
            match part.exists() && !home.database().exists() {
                true => entries.all(|entry| entry.is_ok_and(|entry| is_ours(&entry.file_name()))),
                false => entries.next().is_none(),
            }
        }
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    };
    let not_empty = || BackupError::NotEmpty {
        home: to.to_owned(),
    };
    if !is_usable {
        return Err(not_empty().into());
    }
    for (path, sum) in &sums {
        verify(
            from,
            path,
            sum,
            hash(&from.join(path)).map_err(|error| home.io(path, error))?,
        )?;
    }
    let is_new = !to.exists();
    let begun = fs::create_dir_all(&part).and_then(|()| File::open(&part));
    let lock = begun.map_err(|error| home.io(&part, error))?;
    // Another process restores into it.
    lock.try_lock().map_err(|_| not_empty())?;
    let restored = copy_all(from, &home, &sums).and_then(|()| {
        let renamed = rename_all(to, &names).and_then(|()| sync_parent(&home.database()));
        renamed.map_err(|error| home.io(to, error))?;
        fs::remove_dir(&part).map_err(|error| home.io(&part, error))?;
        home.create()
    });
    if restored.is_err() {
        // Only what this restore made: the directory was missing or empty.
        for name in names.iter().map(OsStr::new).chain([OsStr::new(RESTORED)]) {
            remove(&to.join(name)).ok();
        }
        if is_new {
            fs::remove_dir(to).ok();
        }
    }
    restored.map(|()| backup)
}

/// Returns the names of files and directories at the top of a backup, the database last.
fn top_names(sums: &[Sum]) -> Vec<OsString> {
    let of = |path: &Path| path.components().next().map(|name| name.as_os_str().into());
    let mut names: Vec<OsString> = sums.iter().filter_map(|(path, _)| of(path)).collect();
    names.sort_by_key(|name| (name == DATABASE, name.clone()));
    names.dedup();
    names
}

/// Copies all files into a directory that is no data directory yet.
fn copy_all(from: &Path, home: &Home, sums: &[Sum]) -> Result<(), StoreError> {
    let part = home.root().join(RESTORED);
    for (path, sum) in sums {
        let target = part.join(path);
        // A killed restore left a part of it.
        let copied = remove(&target)
            .and_then(|()| make_parent(&target))
            .and_then(|()| copy_file(&from.join(path), &target));
        let copy = copied.map_err(|error| home.io(&target, error))?;
        verify(from, path, sum, copy.0)?;
    }
    Ok(())
}

/// Moves what was copied to its place.
fn rename_all(to: &Path, names: &[OsString]) -> std::io::Result<()> {
    let part = to.join(RESTORED);
    for name in names {
        let place = to.join(name);
        // A killed restore moved it.
        remove(&place)?;
        fs::rename(part.join(name), place)?;
    }
    Ok(())
}

/// Removes a file or a directory, which may be missing.
fn remove(path: &Path) -> std::io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Writes all files of a backup, `SHA256SUMS` last.
fn write(
    source: &Home,
    target: &Home,
    others: &[&str],
    now_unix: UnixTime,
) -> Result<Backup, StoreError> {
    let connection = Store::connect_home(source)?;
    let schema = schema::version(&connection, source)?;
    // As of one moment, with what is in the journal, and writers go on.
    copy_database(&connection, target)?;
    let copy = Connection::open_with_flags(target.database(), OpenFlags::SQLITE_OPEN_READ_ONLY)
        .map_err(|error| target.sql(error))?;
    let mut backup = Backup {
        made_unix: now_unix,
        schema,
        runs: 0,
        files: 0,
        bytes: 0,
        missing: Vec::new(),
    };
    backup.runs = copy
        .query_row("SELECT count(*) FROM runs", [], |row| row.get::<_, i64>(0))
        .map_err(|error| target.sql(error))?
        .unsigned_abs();
    let mut paths = artifacts(&copy, target)?;
    drop(copy);
    for other in others {
        collect(source.root(), Path::new(other), &mut paths).map_err(|error| {
            let path = source.root().join(other);
            source.io(&path, error)
        })?;
    }
    let database =
        hash(&target.database()).map_err(|error| target.io(&target.database(), error))?;
    let mut sums = vec![(PathBuf::from(DATABASE), database)];
    backup.bytes = fs::metadata(target.database()).map_or(0, |found| found.len());
    for path in paths {
        let from = source.root().join(&path);
        let to = target.root().join(&path);
        if !from.is_file() {
            if !is_still_there(&connection, &path).map_err(|error| source.sql(error))? {
                return Err(BackupError::Changed.into());
            }
            backup.missing.push(path);
            continue;
        }
        if path.to_string_lossy().contains(['\n', '\\', '\u{fffd}']) {
            return Err(BackupError::BadName { path: from }.into());
        }
        let copied = make_parent(&to).and_then(|()| copy_file(&from, &to));
        let (sum, bytes) = copied.map_err(|error| target.io(&to, error))?;
        backup.bytes += bytes;
        sums.push((path, sum));
    }
    backup.files = sums.len();
    write_sums(target.root(), &backup, &sums)
        .map_err(|error| target.io(&target.root().join(SUMS), error))?;
    Ok(backup)
}

/// Copies a database of a data directory as of now, with what is only in its journal, to a new file.
pub(crate) fn copy_database(connection: &Connection, target: &Home) -> Result<(), StoreError> {
    let file = target.database();
    connection
        .execute("VACUUM INTO ?1", [file.to_string_lossy()])
        .map_err(|error| target.sql(error))?;
    let synced = File::open(&file).and_then(|copy| {
        copy.set_permissions(Permissions::from_mode(0o600))?;
        copy.sync_all()
    });
    synced.map_err(|error| target.io(&file, error))
}

/// Copies the database of a data directory beside it, before its schema changes; returns the copy.
pub(crate) fn copy_before_upgrade(
    connection: &Connection,
    home: &Home,
    steps: usize,
) -> Result<PathBuf, StoreError> {
    let copy = home.root().join(format!("{DATABASE}.schema-{steps}"));
    // An upgrade that was killed left it; the database is still the same.
    let scratch = home.root().join(format!("{DATABASE}.copy"));
    let made = fs::remove_dir_all(&scratch).or_else(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    });
    made.and_then(|()| fs::create_dir(&scratch))
        .map_err(|error| home.io(&scratch, error))?;
    let part = Home::new(&scratch);
    let copied = copy_database(connection, &part).and_then(|()| {
        fs::rename(part.database(), &copy)
            .and_then(|()| sync_parent(&copy))
            .map_err(|error| home.io(&copy, error))
    });
    fs::remove_dir_all(&scratch).ok();
    copied.map(|()| copy)
}

/// Returns the paths of all artifacts that a database names.
fn artifacts(copy: &Connection, target: &Home) -> Result<Vec<PathBuf>, StoreError> {
    let select =
        "SELECT runs.id, artefacts.name FROM artefacts JOIN runs ON runs.number = artefacts.run
                  ORDER BY runs.number, artefacts.name";
    let read = || {
        copy.prepare(select)?
            .query_map([], |row| {
                let name = format!("{}.zst", row.get::<_, String>(1)?);
                Ok(Path::new("artefacts")
                    .join(row.get::<_, String>(0)?)
                    .join(name))
            })?
            .collect::<rusqlite::Result<Vec<_>>>()
    };
    read().map_err(|error| target.sql(error))
}

/// Returns whether an artifact's run is still in the store that is backed up.
fn is_still_there(connection: &Connection, path: &Path) -> rusqlite::Result<bool> {
    let run = path.parent().and_then(Path::file_name).unwrap_or_default();
    let select = "SELECT count(*) FROM artefacts JOIN runs ON runs.number = artefacts.run WHERE runs.id = ?1";
    let count: i64 = connection.query_row(select, [run.to_string_lossy()], |row| row.get(0))?;
    Ok(count > 0)
}

/// Adds the files at or below a path, if there is something.
fn collect(root: &Path, path: &Path, paths: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let place = root.join(path);
    match fs::symlink_metadata(&place) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(found) if found.is_dir() => {
            let mut names = fs::read_dir(&place)?
                .map(|entry| Ok(entry?.file_name()))
                .collect::<std::io::Result<Vec<_>>>()?;
            names.sort();
            for name in names {
                collect(root, &path.join(name), paths)?;
            }
            Ok(())
        }
        Ok(_) => {
            // A link to a file is copied as that file; pipes and sockets are left.
            if place.is_file() {
                paths.push(path.to_owned());
            }
            Ok(())
        }
    }
}

fn write_sums(root: &Path, backup: &Backup, sums: &[Sum]) -> std::io::Result<()> {
    let mut text = format!(
        "# marvin backup: format {FORMAT} schema {} runs {} files {} bytes {} unix {}\n",
        backup.schema,
        backup.runs,
        backup.files,
        backup.bytes,
        backup.made_unix.seconds()
    );
    for (path, sum) in sums {
        text.push_str(sum);
        text.push_str("  ");
        text.push_str(&path.to_string_lossy());
        text.push('\n');
    }
    let mut file = File::create(root.join(SUMS))?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    File::open(root)?.sync_all()
}

/// Reads what a backup has. The list is whole if it has as many files as its first line says.
fn read_sums(from: &Path) -> Result<(Backup, Vec<Sum>), StoreError> {
    let damaged = |detail: &str| {
        StoreError::from(BackupError::Damaged {
            place: from.to_owned(),
            file: SUMS.into(),
            detail: detail.to_owned(),
        })
    };
    let text = fs::read_to_string(from.join(SUMS)).map_err(|_| BackupError::None {
        place: from.to_owned(),
    })?;
    let mut lines = text.lines();
    let words: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    let number = |name: &str| -> Option<u64> {
        let at = words.iter().position(|word| *word == name)?;
        words.get(at + 1)?.parse().ok()
    };
    let numbers = ["format", "schema", "runs", "files", "bytes", "unix"].map(number);
    let [
        Some(format),
        Some(schema),
        Some(runs),
        Some(files),
        Some(bytes),
        Some(made),
    ] = numbers
    else {
        return Err(damaged("its first line is not that of a backup"));
    };
    if format != u64::from(FORMAT) {
        return Err(damaged("a newer Marvin wrote it: restore with that one"));
    }
    let mut sums = Vec::new();
    for line in lines {
        let Some((sum, path)) = line.split_once("  ") else {
            return Err(damaged("a line is cut off"));
        };
        // A path of a backup stays in it.
        let is_inside = Path::new(path)
            .components()
            .all(|part| matches!(part, std::path::Component::Normal(_)));
        if !is_inside || path.is_empty() {
            return Err(damaged("it names a file outside of the backup"));
        }
        sums.push((PathBuf::from(path), sum.to_owned()));
    }
    let usize_of = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    if sums.len() != usize_of(files) || !text.ends_with('\n') {
        return Err(damaged("it is cut off"));
    }
    let backup = Backup {
        made_unix: UnixTime::new(i64::try_from(made).unwrap_or(i64::MAX)),
        schema: usize_of(schema),
        runs,
        files: usize_of(files),
        bytes,
        missing: Vec::new(),
    };
    Ok((backup, sums))
}

fn verify(from: &Path, path: &Path, expected: &str, found: String) -> Result<(), StoreError> {
    if found == expected {
        return Ok(());
    }
    let detail = if from.join(path).exists() {
        "it does not match its checksum"
    } else {
        "the file is missing"
    };
    Err(BackupError::Damaged {
        place: from.to_owned(),
        file: path.to_owned(),
        detail: detail.to_owned(),
    }
    .into())
}

/// Returns the SHA-256 of a file; an empty text for a missing one.
fn hash(path: &Path) -> std::io::Result<String> {
    match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        file => Ok(read_all(&mut file?, &mut std::io::sink())?.0),
    }
}

/// Copies a file with its rights, and syncs it; returns its SHA-256 and its size.
fn copy_file(from: &Path, to: &Path) -> std::io::Result<(String, u64)> {
    let mut source = File::open(from)?;
    let mode = source.metadata()?.permissions().mode() & 0o777;
    let mut target = File::create_new(to)?;
    target.set_permissions(Permissions::from_mode(mode))?;
    let read = read_all(&mut source, &mut target)?;
    target.sync_all()?;
    Ok(read)
}

fn read_all(source: &mut File, target: &mut dyn Write) -> std::io::Result<(String, u64)> {
    let mut sum = Sha256::new();
    let mut piece = vec![0; PIECE];
    let mut size = 0;
    loop {
        let count = source.read(&mut piece)?;
        if count == 0 {
            return Ok((hexadecimal(&sum.finalize()), size));
        }
        sum.update(&piece[..count]);
        target.write_all(&piece[..count])?;
        size += count as u64;
    }
}

fn make_parent(path: &Path) -> std::io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)
}

fn sync_parent(path: &Path) -> std::io::Result<()> {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use model::UnixTime;

    use super::{Backup, SUMS, restore};
    use crate::testing::{parents, run, store};
    use crate::{Artifact, Damage, Location, Store, StoreError};

    const NOW: UnixTime = UnixTime::new(1_764_000_000);

    fn save(store: &Store, id: &str) {
        let run = run("aa", id, 1);
        parents(store, &run);
        let console = Artifact {
            name: "getppid.console",
            bytes: id.as_bytes(),
        };
        store.save_run(&run, &[console]).unwrap();
    }

    fn back_up(home: &Path, to: &Path) -> Result<Backup, StoreError> {
        Store::back_up(&Location::from(home), to, &["marvin.toml", "machines"], NOW)
    }

    /// Returns the runs that a store has, after checking all of it.
    fn checked(home: &Path) -> usize {
        let store = Store::open_read_only(home).unwrap();
        let mut all: Vec<Damage> = Vec::new();
        let checked = store.check(&mut |damage| all.push(damage)).unwrap();
        assert_eq!(all, []);
        checked.runs
    }

    #[test]
    fn backup_beside_a_writer_restores_whole() {
        let (home, store) = store();
        save(&store, "01");
        fs::create_dir(home.path().join("machines")).unwrap();
        fs::write(home.path().join("machines/testbox.key"), "secret").unwrap();
        let place = tempfile::tempdir().unwrap();
        let to = place.path().join("backup");
        // What this open transaction writes is not in the backup.
        let writer = Store::open(home.path()).unwrap();
        let transaction = writer.with(crate::database::Database::write).unwrap();
        let backup = back_up(home.path(), &to).unwrap();
        drop(transaction);
        save(&store, "02");
        assert_eq!((backup.runs, backup.files, backup.missing.len()), (1, 3, 0));
        assert_eq!(store.last_backup(), Some(NOW));
        assert!(store.free_bytes().unwrap() > 0);
        let again = place.path().join("restored");
        assert_eq!(restore(&to, &again).unwrap(), backup);
        assert_eq!(checked(&again), 1);
        assert_eq!(
            fs::read_to_string(again.join("machines/testbox.key")).unwrap(),
            "secret"
        );
        save(&Store::open(&again).unwrap(), "03");
        assert_eq!(checked(&again), 2);
    }

    #[test]
    fn damaged_backup_leaves_no_store() {
        let (home, store) = store();
        save(&store, "01");
        let place = tempfile::tempdir().unwrap();
        let to = place.path().join("backup");
        back_up(home.path(), &to).unwrap();
        let artifact = to.join("artefacts/01/getppid.console.zst");
        let again = place.path().join("restored");
        let error_after = |file: &Path, change: &dyn Fn(&mut Vec<u8>)| {
            let before = fs::read(file).unwrap();
            let mut after = before.clone();
            change(&mut after);
            if after.is_empty() {
                fs::remove_file(file).unwrap();
            } else {
                fs::write(file, after).unwrap();
            }
            let error = restore(&to, &again).unwrap_err().to_string();
            assert!(!again.exists(), "{error}");
            fs::write(file, before).unwrap();
            error.replace(&place.path().display().to_string(), "PLACE")
        };
        let errors = [
            error_after(&artifact, &|bytes| bytes[3] ^= 1),
            error_after(&artifact, &Vec::clear),
            error_after(&to.join("marvin.db"), &|bytes| bytes.truncate(5_000)),
            error_after(&to.join(SUMS), &|bytes| bytes.truncate(bytes.len() - 70)),
            error_after(&to.join(SUMS), &Vec::clear),
        ];
        insta::assert_snapshot!(errors.join("\n"), @"
        the backup in PLACE/backup is damaged: artefacts/01/getppid.console.zst: it does not match its checksum
        hint: nothing was restored; take another backup
        the backup in PLACE/backup is damaged: artefacts/01/getppid.console.zst: the file is missing
        hint: nothing was restored; take another backup
        the backup in PLACE/backup is damaged: marvin.db: it does not match its checksum
        hint: nothing was restored; take another backup
        the backup in PLACE/backup is damaged: SHA256SUMS: a line is cut off
        hint: nothing was restored; take another backup
        no backup in PLACE/backup: it has no file SHA256SUMS of marvin backup
        ");
        restore(&to, &again).unwrap();
        assert_eq!(checked(&again), 1);
    }

    #[test]
    fn used_places_are_refused_unchanged() {
        let (home, store) = store();
        save(&store, "01");
        let place = tempfile::tempdir().unwrap();
        let to = place.path().join("backup");
        back_up(home.path(), &to).unwrap();
        let errors = [
            back_up(home.path(), &to).unwrap_err(),
            restore(&to, home.path()).unwrap_err(),
            restore(place.path(), &place.path().join("new")).unwrap_err(),
        ];
        let shown = errors.map(|error| {
            error
                .to_string()
                .replace(&place.path().display().to_string(), "PLACE")
                .replace(&home.path().display().to_string(), "HOME")
        });
        insta::assert_snapshot!(shown.join("\n"), @"
        cannot write a backup to PLACE/backup: it exists
        hint: name a new directory, or remove it
        cannot restore into HOME: it is not empty
        hint: name a new directory with --home
        no backup in PLACE: it has no file SHA256SUMS of marvin backup
        ");
        assert_eq!(checked(home.path()), 1);
    }

    #[test]
    fn lost_artifact_does_not_prevent_a_backup() {
        let (home, store) = store();
        save(&store, "01");
        fs::remove_file(home.path().join("artefacts/01/getppid.console.zst")).unwrap();
        let place = tempfile::tempdir().unwrap();
        let backup = back_up(home.path(), &place.path().join("backup")).unwrap();
        assert_eq!(
            backup.missing,
            [Path::new("artefacts/01/getppid.console.zst")]
        );
    }
}
