//! Files, folders and descriptors on tmpfs.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use super::{all_at_once, each, tasks};
use crate::workloads::Made;
use crate::workloads::file::{create_unlink_at, open_close_at};
use crate::workloads::scratch::Folder;
use crate::workloads::split_work::TaskKind;

/// What is read and written at a time.
const PIECE: usize = 512;

/// Returns the name of a task's own file or folder.
pub(super) fn own(number: usize) -> String {
    format!("own-{number:04}")
}

/// Makes a folder with something for each task in it.
fn folder_with(make: impl Fn(PathBuf) -> io::Result<()>) -> Result<Folder, super::Failure> {
    let folder = Folder::new()?;
    for number in 0..tasks()? {
        make(folder.path(&own(number)))?;
    }
    Ok(folder)
}

fn file(path: PathBuf) -> io::Result<()> {
    File::create(path).map(drop)
}

/// share-open: processes open and close one file.
pub(super) fn open() -> Made {
    let folder = Folder::new()?;
    folder.file("file")?;
    let path = folder.path("file");
    all_at_once(TaskKind::Process, Some(folder), move |_| {
        open_close_at(path.clone(), None)
    })
}

/// share-open-own: each has a file of its own, all in one folder.
pub(super) fn open_own() -> Made {
    let folder = folder_with(file)?;
    let files = folder.path("");
    all_at_once(TaskKind::Process, Some(folder), move |number| {
        open_close_at(files.join(own(number)), None)
    })
}

/// share-open-folder: each has a file in a folder of its own.
pub(super) fn open_folder() -> Made {
    let folder = folder_with(|path| fs::create_dir(&path).and_then(|()| file(path.join("file"))))?;
    let folders = folder.path("");
    all_at_once(TaskKind::Process, Some(folder), move |number| {
        open_close_at(folders.join(own(number)).join("file"), None)
    })
}

/// share-create: processes make and remove files of their own in one folder.
pub(super) fn create() -> Made {
    let folder = Folder::new()?;
    let files = folder.path("");
    all_at_once(TaskKind::Process, Some(folder), move |number| {
        create_unlink_at(files.join(own(number)), None)
    })
}

/// share-create-own: each in a folder of its own.
pub(super) fn create_own() -> Made {
    let folder = folder_with(fs::create_dir)?;
    let folders = folder.path("");
    all_at_once(TaskKind::Process, Some(folder), move |number| {
        create_unlink_at(folders.join(own(number)).join("file"), None)
    })
}

/// share-rename: processes rename files of their own in one folder, there and back.
pub(super) fn rename() -> Made {
    let folder = folder_with(file)?;
    let files = folder.path("");
    each(TaskKind::Process, Some(folder), move |number| {
        let (one, other) = (
            files.join(own(number)),
            files.join(format!("new-{number:04}")),
        );
        Ok(Box::new(move || {
            fs::rename(&one, &other)?;
            fs::rename(&other, &one)
        }))
    })
}

fn filled(folder: &Folder, name: &str) -> io::Result<File> {
    let file = folder.file(name)?;
    file.write_all_at(&[1; 4096], 0)?;
    Ok(file)
}

/// share-pread: threads read from one descriptor.
pub(super) fn pread() -> Made {
    let folder = Folder::new()?;
    let file = Arc::new(filled(&folder, "file")?);
    each(TaskKind::Thread, Some(folder), move |_| {
        let file = Arc::clone(&file);
        Ok(Box::new(move || file.read_exact_at(&mut [0; PIECE], 0)))
    })
}

/// share-pread-own: each thread has a file of its own.
pub(super) fn pread_own() -> Made {
    let folder = Folder::new()?;
    let files: Vec<File> = (0..tasks()?)
        .map(|number| filled(&folder, &own(number)))
        .collect::<io::Result<_>>()?;
    let files = Arc::new(files);
    each(TaskKind::Thread, Some(folder), move |number| {
        let files = Arc::clone(&files);
        Ok(Box::new(move || {
            files[number].read_exact_at(&mut [0; PIECE], 0)
        }))
    })
}

/// share-pwrite: threads write to one descriptor, each to a page of its own.
pub(super) fn pwrite() -> Made {
    let folder = Folder::new()?;
    let file = Arc::new(filled(&folder, "file")?);
    each(TaskKind::Thread, Some(folder), move |number| {
        let file = Arc::clone(&file);
        Ok(Box::new(move || {
            file.write_all_at(&[1; PIECE], number as u64 * 4096)
        }))
    })
}

/// share-cache: processes read the same page of one file, each by a descriptor of its own.
pub(super) fn cache() -> Made {
    let folder = Folder::new()?;
    filled(&folder, "file")?;
    let path = folder.path("file");
    each(TaskKind::Process, Some(folder), move |_| {
        let file = File::open(&path)?;
        Ok(Box::new(move || file.read_exact_at(&mut [0; PIECE], 0)))
    })
}

/// share-dup: threads duplicate and close descriptors in one table.
pub(super) fn dup() -> Made {
    let file = Arc::new(OwnedFd::from(File::open("/dev/null")?));
    each(TaskKind::Thread, None, move |_| {
        let file = Arc::clone(&file);
        Ok(Box::new(move || {
            // SAFETY: dup takes a number.
            super::channels::owned(unsafe { libc::dup(file.as_raw_fd()) }).map(drop)
        }))
    })
}
