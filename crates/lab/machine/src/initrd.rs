//! Initrds: `newc` cpio archives with the programs of a guest and what they need.
//!
//! Format: Documentation/driver-api/early-userspace/buffer-format.rst of the kernel.

use std::collections::BTreeSet;

/// The programs that a guest runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Programs {
    /// PID 1 from boot to the snapshot.
    pub init: Vec<u8>,
    /// The program that it executes at the snapshot; has the workloads.
    pub agent: Vec<u8>,
}

/// The agent's file is padded to this size. The guest's memory layout then does not depend on the
/// agent's size, and a new workload does not change the numbers of others.
const AGENT_SIZE: usize = 3 << 20;

enum Kind<'a> {
    Folder,
    Program(&'a [u8]),
    /// A file with these permissions.
    File(&'a [u8], u32),
    CharacterDevice(u32, u32),
    Trailer,
}

/// Returns the archive, uncompressed: the guest unpacks it with the least work.
pub(crate) fn initrd(programs: &Programs) -> Vec<u8> {
    let mut agent = programs.agent.clone();
    agent.resize(agent.len().next_multiple_of(AGENT_SIZE), 0);
    let mut archive = Archive::with_capacity(agent.len() + programs.init.len() + 2048);
    archive.add("init", Kind::Program(&programs.init));
    archive.add("agent", Kind::Program(&agent));
    archive.add("TRAILER!!!", Kind::Trailer);
    archive.bytes
}

/// Returns the archive of a guest that loads modules before it settles: PID 1 is the loader, which
/// then executes `marvin-init`.
pub(crate) fn initrd_with_modules(
    programs: &Programs,
    loader: &[u8],
    files: &[InitrdFile],
) -> Vec<u8> {
    let mut agent = programs.agent.clone();
    agent.resize(agent.len().next_multiple_of(AGENT_SIZE), 0);
    let own = [
        ("init", loader.to_vec()),
        ("marvin-init", programs.init.clone()),
        ("agent", agent),
    ];
    let own = own.into_iter().map(|(path, bytes)| InitrdFile {
        path: path.to_owned(),
        bytes,
    });
    initrd_of(&own.chain(files.iter().cloned()).collect::<Vec<_>>())
}

/// A file of an initrd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InitrdFile {
    /// Its path without a leading slash: `modules/a.ko`.
    pub path: String,
    pub bytes: Vec<u8>,
}

/// Returns an archive with these files, all executable, and their directories.
#[must_use]
pub fn initrd_of(files: &[InitrdFile]) -> Vec<u8> {
    let bytes = files.iter().map(|file| file.bytes.len() + 512).sum();
    Archive::with_capacity(bytes).with_files(files)
}

/// Returns an archive with these files, and nothing that a guest would need.
#[must_use]
pub fn archive_of(files: &[InitrdFile]) -> Vec<u8> {
    Archive {
        bytes: Vec::new(),
        inode: 0,
    }
    .with_files(files)
}

/// Returns an archive with these files, of which only root can read the secret ones. Their
/// directories are there.
#[must_use]
pub fn archive_of_settings(public: &[InitrdFile], secret: &[InitrdFile]) -> Vec<u8> {
    let mut archive = Archive {
        bytes: Vec::new(),
        inode: 0,
    };
    for (files, mode) in [(public, 0o644), (secret, 0o600)] {
        for file in files {
            archive.add(&file.path, Kind::File(&file.bytes, mode));
        }
    }
    archive.add("TRAILER!!!", Kind::Trailer);
    archive.bytes
}

impl Archive {
    /// Adds files with their directories, and ends.
    fn with_files(mut self, files: &[InitrdFile]) -> Vec<u8> {
        let mut made = BTreeSet::new();
        for file in files {
            for (at, _) in file.path.match_indices('/') {
                if made.insert(&file.path[..at]) {
                    self.add(&file.path[..at], Kind::Folder);
                }
            }
            self.add(&file.path, Kind::Program(&file.bytes));
        }
        self.add("TRAILER!!!", Kind::Trailer);
        self.bytes
    }
}

struct Archive {
    bytes: Vec<u8>,
    inode: u32,
}

impl Archive {
    /// Starts an archive with what every guest needs.
    fn with_capacity(bytes: usize) -> Self {
        let mut archive = Self {
            bytes: Vec::with_capacity(bytes),
            inode: 0,
        };
        for name in ["dev", "proc", "sys", "tmp"] {
            archive.add(name, Kind::Folder);
        }
        // The kernel opens /dev/console for PID 1 before anything is mounted.
        archive.add("dev/console", Kind::CharacterDevice(5, 1));
        archive
    }

    fn add(&mut self, name: &str, kind: Kind<'_>) {
        let (mode, device, content) = match kind {
            Kind::Folder => (0o040_755, (0, 0), &[][..]),
            Kind::Program(content) => (0o100_755, (0, 0), content),
            Kind::File(content, mode) => (0o100_000 | mode, (0, 0), content),
            Kind::CharacterDevice(major, minor) => (0o020_600, (major, minor), &[][..]),
            Kind::Trailer => (0, (0, 0), &[][..]),
        };
        self.inode += 1;
        // All times and owners are 0: the same agent gives the same archive.
        let fields = [
            self.inode,
            mode,
            0,
            0,
            1,
            0,
            u32::try_from(content.len()).unwrap_or(u32::MAX),
            0,
            0,
            device.0,
            device.1,
            u32::try_from(name.len() + 1).unwrap_or(u32::MAX),
            0,
        ];
        self.bytes.extend(b"070701");
        for field in fields {
            self.bytes.extend(format!("{field:08x}").bytes());
        }
        self.bytes.extend(name.bytes().chain([0]));
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::{AGENT_SIZE, InitrdFile, Programs, initrd, initrd_of};

    fn with_agent(agent: &[u8]) -> Vec<u8> {
        initrd(&Programs {
            init: b"first".to_vec(),
            agent: agent.to_vec(),
        })
    }

    #[test]
    fn archive_size_ignores_the_agents_size() {
        let archive = with_agent(&[1; 1000]);
        assert_eq!(archive.len(), with_agent(&[1; 500_000]).len());
        assert_eq!(archive, with_agent(&[1; 1000]));
        assert!(archive.starts_with(b"070701") && archive.len() > AGENT_SIZE);
    }

    fn listed(archive: &[u8]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.cpio");
        std::fs::write(&path, archive).unwrap();
        let list = std::process::Command::new("cpio")
            .args(["-t", "--quiet", "-F"])
            .arg(&path)
            .output()
            .expect("the test needs cpio (apt-get install cpio)");
        String::from_utf8_lossy(&list.stdout).into_owned()
    }

    #[test]
    fn cpio_reads_our_archives() {
        assert_eq!(
            listed(&with_agent(b"hello")),
            "dev\nproc\nsys\ntmp\ndev/console\ninit\nagent\n"
        );
    }

    #[test]
    fn directories_precede_their_files_once() {
        let file = |path: &str| InitrdFile {
            path: path.to_owned(),
            bytes: b"x".to_vec(),
        };
        let archive = initrd_of(&[file("init"), file("a/b/c"), file("a/b/d")]);
        assert_eq!(
            listed(&archive),
            "dev\nproc\nsys\ntmp\ndev/console\ninit\na\na/b\na/b/c\na/b/d\n"
        );
    }
}
