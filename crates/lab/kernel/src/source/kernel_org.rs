//! Tarballs of kernel.org in a git repository: one commit for each version, with its tag `vVERSION`.
//!
//! The repository's tree identifies a source, whatever its tarball was packed by.

use std::fs;
use std::path::PathBuf;

use super::deb_src::{Imported, SourceFolders, set_date, store};
use super::git::{Repository, git};
use crate::scratch::Scratch;
use crate::{BuildEvent, KernelError};

/// Imports the newest version that begins with these numbers, unless it is imported.
pub(crate) fn import_tarball(
    version: &str,
    archive: &archives::KernelOrg,
    places: &SourceFolders<'_>,
    notify: &dyn Fn(BuildEvent),
) -> Result<Imported, KernelError> {
    let source = archive.find(version)?;
    let tag = format!("v{}", source.version);
    let repository = open(&places.repository)?;
    if repository.commit(&format!("refs/tags/{tag}")).is_err() {
        let scratch = Scratch::new(places.downloads)?;
        let what = format!("linux-{}.tar.xz", source.version);
        notify(BuildEvent::Downloading {
            package: what.clone(),
            bytes: 0,
        });
        let tarball = archive.download(&source, scratch.path())?;
        notify(BuildEvent::Unpacking {
            what: format!("{what}, verified by {}", tarball.proof),
        });
        store(&repository, &tarball.file, &what)?;
        commit(&repository, &source.version, &tag)?;
    }
    Ok(Imported { repository, tag })
}

fn open(folder: &PathBuf) -> Result<Repository, KernelError> {
    // git makes this directory last.
    if !folder.join("objects/info").is_dir() {
        fs::create_dir_all(folder).map_err(KernelError::io(folder))?;
        git(folder).args(["init", "--quiet", "--bare"]).run()?;
    }
    Repository::open(folder)
}

/// Tags the imported tree.
fn commit(repository: &Repository, version: &str, tag: &str) -> Result<(), KernelError> {
    let folder = repository.folder();
    let tree = repository.tree("refs/marvin/imported")?;
    let message = format!("Linux {version}\n\nlinux-{version}.tar.xz of kernel.org");
    let commit = set_date(git(folder), 0)
        .args(["commit-tree", &tree, "-m", &message])
        .run()?;
    let reference = format!("refs/tags/{tag}");
    git(folder)
        .args(["update-ref", &reference, commit.trim()])
        .run()?;
    git(folder)
        .args(["update-ref", "-d", "refs/marvin/imported"])
        .run()
        .map(drop)
}
