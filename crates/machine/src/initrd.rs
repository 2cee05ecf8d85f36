//! The initrd: a `newc` cpio archive with the two programs of the guest and nothing else.
//!
//! Format: Documentation/driver-api/early-userspace/buffer-format.rst of the kernel.

/// The programs that a guest runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Programs {
    /// PID 1 from boot to the snapshot.
    pub init: Vec<u8>,
    /// What takes its place afterwards, with the workloads in it.
    pub agent: Vec<u8>,
}

/// What the agent's file is padded to. The guest's memory layout then does not depend on how large the agent is, so
/// that a new workload does not move the numbers of the others.
const AGENT_SIZE: usize = 3 << 20;

enum Kind<'a> {
    Folder,
    Program(&'a [u8]),
    CharacterDevice(u32, u32),
    Trailer,
}

/// Returns the archive, uncompressed: unpacking it costs the guest least.
pub(crate) fn initrd(programs: &Programs) -> Vec<u8> {
    let mut agent = programs.agent.clone();
    agent.resize(agent.len().next_multiple_of(AGENT_SIZE), 0);
    let mut archive = Archive { bytes: Vec::with_capacity(agent.len() + programs.init.len() + 2048), inode: 0 };
    for name in ["dev", "proc", "sys", "tmp"] {
        archive.add(name, Kind::Folder);
    }
    // The kernel opens /dev/console for PID 1 before anything is mounted.
    archive.add("dev/console", Kind::CharacterDevice(5, 1));
    archive.add("init", Kind::Program(&programs.init));
    archive.add("agent", Kind::Program(&agent));
    archive.add("TRAILER!!!", Kind::Trailer);
    archive.bytes
}

struct Archive {
    bytes: Vec<u8>,
    inode: u32,
}

impl Archive {
    fn add(&mut self, name: &str, kind: Kind<'_>) {
        let (mode, device, content) = match kind {
            Kind::Folder => (0o040_755, (0, 0), &[][..]),
            Kind::Program(content) => (0o100_755, (0, 0), content),
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
    use super::{AGENT_SIZE, Programs, initrd};

    fn with_agent(agent: &[u8]) -> Vec<u8> {
        initrd(&Programs { init: b"first".to_vec(), agent: agent.to_vec() })
    }

    #[test]
    fn agents_of_different_sizes_give_archives_of_one_size() {
        let archive = with_agent(&[1; 1000]);
        assert_eq!(archive.len(), with_agent(&[1; 500_000]).len());
        assert_eq!(archive, with_agent(&[1; 1000]));
        assert!(archive.starts_with(b"070701") && archive.len() > AGENT_SIZE);
    }

    #[test]
    fn cpio_reads_what_we_write() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.cpio");
        std::fs::write(&path, with_agent(b"hello")).unwrap();
        let list = std::process::Command::new("cpio")
            .args(["-t", "--quiet", "-F"])
            .arg(&path)
            .output()
            .expect("the test needs cpio (apt-get install cpio)");
        assert_eq!(String::from_utf8_lossy(&list.stdout), "dev\nproc\nsys\ntmp\ndev/console\ninit\nagent\n");
    }
}
