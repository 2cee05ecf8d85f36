//! Debian's source packages as a git history: one commit per release, tagged with its version.
//!
//! The archive has a few releases of each series. Each requested one is imported once; the commits
//! of a series are in version order.

use std::fs::{self, File};
use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};

use archives::{Archive, Debian, Entry, EntryKind, Paths, debian_version, unpack_deb, upstream};
use liblzma::read::XzDecoder;
use liblzma::stream::Stream;

use super::SourceError;
use super::git::{Repository, git};
use super::program::Program;
use crate::catalogue::{self, Offer};
use crate::payload::XZ_MEMORY;
use crate::scratch::Scratch;
use crate::{BuildEvent, KernelError};

/// The prefix of kernel source packages.
const PREFIX: &str = "linux-source-";
/// The date of the oldest commit of a series; the others follow one day apart.
const FIRST_DAY: u64 = 1_577_836_800;

pub(crate) struct SourceFolders<'a> {
    /// Where packages come from.
    pub(crate) debian: &'a Debian,
    /// The repository, which may not exist yet.
    pub(crate) repository: PathBuf,
    /// For packages and their contents.
    pub(crate) downloads: &'a Path,
}

#[derive(Debug)]
pub(crate) struct Imported {
    pub(crate) repository: Repository,
    pub(crate) tag: String,
}

/// Imports the newest release of a version, unless it is imported.
pub(crate) fn import(
    version: &str,
    places: &SourceFolders<'_>,
    notify: &dyn Fn(BuildEvent),
) -> Result<Imported, KernelError> {
    let offer = newest(places.debian, version)?;
    let tag = tag(&offer.version);
    // git makes this directory last: without it an earlier process was killed, and git continues
    // there.
    if !places.repository.join("objects/info").is_dir() {
        fs::create_dir_all(&places.repository).map_err(KernelError::io(&places.repository))?;
        git(&places.repository)
            .args(["init", "--quiet", "--bare"])
            .run()?;
    }
    let repository = Repository::open(&places.repository)?;
    if repository.commit(&format!("refs/tags/{tag}")).is_err() {
        let scratch = Scratch::new(places.downloads)?;
        notify(BuildEvent::Downloading {
            package: offer.package.clone(),
            bytes: offer.bytes(),
        });
        let deb = places.debian.download(&offer.files[0], scratch.path())?;
        notify(BuildEvent::Unpacking {
            what: offer.origin().to_string(),
        });
        let root = scratch.path().join("root");
        unpack_deb(&deb, &root)?;
        fs::remove_file(&deb).map_err(KernelError::io(&deb))?;
        let archive = root
            .join("usr/src")
            .join(format!("{}.tar.xz", offer.package));
        store(&repository, &archive, &offer.origin().to_string())?;
        chain(&repository, &offer, &tag)?;
    }
    Ok(Imported { repository, tag })
}

/// Returns the newest source package of a version.
fn newest(debian: &Debian, version: &str) -> Result<Offer, KernelError> {
    let series: Vec<&str> = version.split('.').take(2).collect();
    let package = format!("{PREFIX}{}", series.join("."));
    let stanzas = debian.extract(debian.suite(None), "sources", &[PREFIX])?;
    let all = catalogue::sources(&stanzas, &package);
    let fitting = all
        .iter()
        .filter(|offer| offer.is_version(version))
        .max_by_key(|offer| debian_version(&offer.version));
    fitting.cloned().ok_or_else(|| {
        let instead = if all.is_empty() {
            format!("it has no package {package}")
        } else {
            let names: Vec<String> = all
                .iter()
                .map(|offer| format!("deb-src:{}", offer.upstream))
                .collect();
            format!("there are {}", names.join(", "))
        };
        SourceError::NoSourcePackage {
            requested: format!("deb-src:{version}"),
            instead,
        }
        .into()
    })
}

/// Returns the tag of a version: git allows no tilde and no colon, which are replaced like Debian
/// does.
fn tag(version: &str) -> String {
    version.replace('~', "_").replace(':', "%")
}

/// Imports a source archive into the repository, as a commit with a ref.
pub(crate) fn store(
    repository: &Repository,
    archive: &Path,
    what: &str,
) -> Result<(), KernelError> {
    let file = File::open(archive).map_err(KernelError::io(archive))?;
    let unpacked = unpacked(BufReader::new(file)).map_err(KernelError::io(archive))?;
    let mut files = Archive::new(unpacked, Paths::BelowTop);
    let pipe = KernelError::io;
    let import = git(repository.folder())
        .args(["fast-import", "--quiet", "--done", "--force"])
        .deadline_s(1800);
    let ended = import.fed(|input| {
        let mut input = std::io::BufWriter::with_capacity(1 << 16, input);
        let at = repository.folder();
        begin(&mut input).map_err(pipe(at))?;
        while let Some(entry) = files
            .next_entry()
            .map_err(|error| damaged(what, error.to_string()))?
        {
            add(&mut input, &entry).map_err(pipe(at))?;
        }
        input
            .write_all(b"done\n")
            .and_then(|()| input.flush())
            .map_err(pipe(at))
    })?;
    match ended.code {
        Some(0) => Ok(()),
        _ => Err(damaged(what, ended.reason()).into()),
    }
}

fn damaged(what: &str, detail: String) -> SourceError {
    SourceError::Archive {
        what: what.to_owned(),
        detail,
    }
}

/// Unpacks an archive of a source package in bounded memory.
pub(crate) fn unpacked<R: Read>(packed: R) -> std::io::Result<XzDecoder<R>> {
    Ok(XzDecoder::new_stream(
        packed,
        Stream::new_stream_decoder(XZ_MEMORY, 0)?,
    ))
}

fn begin(input: &mut impl Write) -> std::io::Result<()> {
    let head = format!(
        "commit refs/marvin/imported\ncommitter marvin <marvin@localhost> {FIRST_DAY} +0000\ndata 0\n\ndeleteall\n"
    );
    input.write_all(head.as_bytes())
}

fn add(input: &mut impl Write, entry: &Entry) -> std::io::Result<()> {
    let mode = match entry.kind {
        EntryKind::Program => "100755",
        EntryKind::Link => "120000",
        // A source has neither hard links nor directories of its own.
        EntryKind::File | EntryKind::HardLink | EntryKind::Folder => "100644",
    };
    write!(
        input,
        "M {mode} inline {}\ndata {}\n",
        entry.path,
        entry.content.len()
    )?;
    input.write_all(&entry.content)?;
    input.write_all(b"\n")
}

/// Makes the commits of the release's series again, in version order, with the one that was just
/// imported.
fn chain(repository: &Repository, offer: &Offer, new: &str) -> Result<(), KernelError> {
    let folder = repository.folder();
    let series = offer.package.trim_start_matches(PREFIX);
    let list = git(folder)
        .args(["tag", "--list", &format!("{series}.*")])
        .run()?;
    let mut releases: Vec<(String, String)> = Vec::new();
    for tag in list.lines().filter(|tag| is_release(tag)) {
        releases.push((
            tag.to_owned(),
            repository.tree(&format!("refs/tags/{tag}"))?,
        ));
    }
    releases.push((new.to_owned(), repository.tree("refs/marvin/imported")?));
    releases.sort_by_key(|(tag, _)| debian_version(&tag.replace('_', "~").replace('%', ":")));
    let mut parent: Option<String> = None;
    for (day, (tag, tree)) in (0_u64..).zip(&releases) {
        let message = format!(
            "Linux {}\n\nDebian's {} {tag}",
            upstream(&tag.replace('_', "~")),
            offer.package
        );
        let mut arguments = vec![
            "commit-tree".to_owned(),
            tree.clone(),
            "-m".to_owned(),
            message,
        ];
        arguments.extend(
            parent
                .iter()
                .flat_map(|parent| ["-p".to_owned(), parent.clone()]),
        );
        let commit = set_date(git(folder), day)
            .args(arguments)
            .run()?
            .trim()
            .to_owned();
        git(folder)
            .args(["update-ref", &format!("refs/tags/{tag}"), &commit])
            .run()?;
        parent = Some(commit);
    }
    if let Some(last) = parent {
        git(folder)
            .args(["update-ref", &format!("refs/heads/{series}"), &last])
            .run()?;
    }
    git(folder)
        .args(["update-ref", "-d", "refs/marvin/imported"])
        .run()
        .map(drop)
}

/// Returns whether [`tag`] makes this tag: tags of users are left alone.
fn is_release(tag: &str) -> bool {
    let version = tag.split(['-', '_', '+']).next().unwrap_or_default();
    tag.contains('-')
        && version
            .split('.')
            .all(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

pub(crate) fn set_date(mut git: Program, day: u64) -> Program {
    let date = format!("{} +0000", FIRST_DAY + day * 86_400);
    for who in ["AUTHOR", "COMMITTER"] {
        let [name, email, when] = match who {
            "AUTHOR" => ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE"],
            _ => [
                "GIT_COMMITTER_NAME",
                "GIT_COMMITTER_EMAIL",
                "GIT_COMMITTER_DATE",
            ],
        };
        git = git
            .variable(name, "marvin")
            .variable(email, "marvin@localhost")
            .variable(when, &date);
    }
    git
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use archives::Stanzas;

    use super::{chain, store, tag};
    use crate::catalogue::{Offer, sources};
    use crate::source::git::{Repository, git};

    /// An archive of a source `top`, made by the host's tar.
    fn archive(files: &[(&str, &str)]) -> Vec<u8> {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("top")).unwrap();
        for (path, content) in files {
            let file = home.path().join("top").join(path);
            match content.strip_prefix("-> ") {
                Some(target) => std::os::unix::fs::symlink(target, &file).unwrap(),
                None => fs::write(&file, content).unwrap(),
            }
        }
        let output = std::process::Command::new("tar")
            .args(["-c", "top"])
            .current_dir(home.path())
            .output()
            .unwrap();
        assert!(output.status.success());
        output.stdout
    }

    fn offer(version: &str) -> Offer {
        Offer {
            distribution: model::Distribution::Debian,
            package: "linux-source-6.12".to_owned(),
            version: version.to_owned(),
            upstream: version.split('-').next().unwrap().to_owned(),
            flavour: String::new(),
            files: Vec::new(),
            missing: Vec::new(),
        }
    }

    #[test]
    fn source_releases_become_commits_in_version_order() {
        let home = tempfile::tempdir().unwrap();
        git(home.path())
            .args(["init", "--quiet", "--bare"])
            .run()
            .unwrap();
        let repository = Repository::open(home.path()).unwrap();
        for (version, content) in [
            ("6.12.9-1", "nine"),
            ("6.12.117-1~deb12u1", "last"),
            ("6.12.10-2", "ten"),
        ] {
            let file = home.path().join("source.tar.xz");
            let mut xz = liblzma::write::XzEncoder::new(std::fs::File::create(&file).unwrap(), 0);
            xz.write_all(&archive(&[
                ("Kbuild", content),
                ("a link", "-> Kbuild"),
                ("only", version),
            ]))
            .unwrap();
            xz.finish().unwrap();
            let offer = offer(version);
            store(&repository, &file, &offer.origin().to_string()).unwrap();
            chain(&repository, &offer, &tag(version)).unwrap();
            // Tags that are no versions belong to the user.
            git(home.path())
                .args(["tag", "--force", "6.12.mine-1", &tag(version)])
                .run()
                .unwrap();
            git(home.path())
                .args(["tag", "--force", "6.12.9", &tag(version)])
                .run()
                .unwrap();
        }
        let log = git(home.path())
            .args(["log", "--format=%s|%ad", "--date=short", "6.12"])
            .run()
            .unwrap();
        assert_eq!(
            log,
            "Linux 6.12.117|2020-01-03\nLinux 6.12.10|2020-01-02\nLinux 6.12.9|2020-01-01\n"
        );
        let show = |what: &str| git(home.path()).args(["show", what]).run().unwrap();
        assert_eq!(show("6.12.10-2:Kbuild"), "ten");
        assert_eq!(show("6.12.117-1_deb12u1:a link"), "Kbuild");
        let history = repository
            .history("6.12.9-1", "6.12.117-1_deb12u1")
            .unwrap();
        assert_eq!(history.trunk().len(), 2);
    }

    #[test]
    fn damaged_archive_fails_and_leaves_no_release() {
        let home = tempfile::tempdir().unwrap();
        git(home.path())
            .args(["init", "--quiet", "--bare"])
            .run()
            .unwrap();
        let repository = Repository::open(home.path()).unwrap();
        let file = home.path().join("source.tar.xz");
        std::fs::write(&file, "no xz").unwrap();
        let error = store(&repository, &file, &offer("6.12.9-1").origin().to_string())
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("linux-source-6.12 6.12.9-1 is damaged: "),
            "{error}"
        );
        assert!(repository.commit("refs/marvin/imported").is_err());
    }

    #[test]
    fn stanzas_of_sources_are_read() {
        let sha256 = "a".repeat(64);
        let stanzas = Stanzas {
            archive: "http://archive".to_owned(),
            text: format!(
                "Package: linux-source-6.12\nVersion: 6.12.117-1~deb12u1\nArchitecture: all\nFilename: pool/x.deb\nSize: 153476148\nSHA256: {sha256}\n\nPackage: other\nVersion: 1\n\n"
            ),
        };
        let found = sources(&[stanzas], "linux-source-6.12");
        assert_eq!(found.len(), 1);
        assert_eq!(
            (&*found[0].upstream, found[0].bytes()),
            ("6.12.117", 153_476_148)
        );
        assert_eq!(found[0].files[0].url, "http://archive/pool/x.deb");
    }
}
