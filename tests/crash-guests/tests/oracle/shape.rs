//! The shapes of guests: how much memory they have, and of what kind.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;

/// The name of the socket by which a balloon is inflated.
pub(crate) const SOCKET: &str = "balloon";

pub(crate) struct Shape {
    pub(crate) name: &'static str,
    pub(crate) memory_mib: u64,
    /// More words of the kernel's command line.
    pub(crate) command_line: &'static str,
    /// More modules.
    pub(crate) modules: &'static [&'static str],
    /// More words for QEMU.
    pub(crate) devices: &'static str,
    /// What a balloon takes.
    pub(crate) balloon_mib: Option<u64>,
    /// Memory that is added later, from 4 GiB on.
    pub(crate) added_mib: u64,
    /// The part of the memory that a second node has.
    pub(crate) other_node_mib: u64,
    /// The part from 1 GiB on that is a device with a file system.
    pub(crate) device_mib: u64,
}

pub(crate) const PLAIN: Shape = Shape {
    name: "plain",
    memory_mib: 1024,
    command_line: "",
    modules: &[],
    devices: "",
    balloon_mib: None,
    added_mib: 0,
    other_node_mib: 0,
    device_mib: 0,
};

/// With a page of 1 GiB.
pub(crate) const GIANT: Shape = Shape {
    name: "giant",
    memory_mib: 4096,
    command_line: "hugepagesz=1G hugepages=1 giant=1",
    ..PLAIN
};

/// All of them.
pub(crate) const SHAPES: [Shape; 9] = [
    PLAIN,
    GIANT,
    Shape {
        name: "nodes",
        devices: "-numa node,cpus=0,memdev=ram -object memory-backend-ram,id=other,size=512M \
            -numa node,memdev=other",
        other_node_mib: 512,
        ..PLAIN
    },
    Shape {
        name: "balloon",
        command_line: "balloon=16384",
        devices: "-device virtio-balloon-pci -chardev \
            socket,id=balloon,path=balloon,server=on,wait=off -mon chardev=balloon,mode=control",
        balloon_mib: Some(64),
        ..PLAIN
    },
    Shape {
        name: "added",
        command_line: "memhp_default_state=online_movable added=4",
        devices: "-object memory-backend-ram,id=added,size=512M -device pc-dimm,memdev=added",
        added_mib: 512,
        ..PLAIN
    },
    // Nothing initialises the records of these blocks.
    Shape {
        name: "never-online",
        command_line: "memhp_default_state=offline",
        devices: "-object memory-backend-ram,id=added,size=512M -device pc-dimm,memdev=added",
        added_mib: 512,
        ..PLAIN
    },
    // The last of three blocks has a half that is not there.
    Shape {
        name: "virtio-mem",
        command_line: "memhp_default_state=online_movable added=3",
        modules: &["virtio_mem"],
        devices: "-object memory-backend-ram,id=added,size=512M \
            -device virtio-mem-pci,memdev=added,requested-size=320M",
        added_mib: 512,
        ..PLAIN
    },
    // Records of huge pages share pages, those of 1 GiB since the kernel's start.
    Shape {
        name: "hvo",
        command_line: "hugepagesz=1G hugepages=1 giant=1 hugetlb_free_vmemmap=on hvo=1",
        ..GIANT
    },
    Shape {
        name: "dax",
        memory_mib: 2048,
        command_line: "memmap=256M!1G dax=1",
        modules: &["nd_e820", "nd_pmem", "ext4"],
        device_mib: 256,
        ..PLAIN
    },
];

impl Shape {
    /// Returns the number after the last frame.
    pub(crate) fn frames(&self) -> u64 {
        let mib = match self.memory_mib {
            _ if self.added_mib > 0 => 4096 + self.added_mib,
            // Behind the hole below 4 GiB.
            2049.. => self.memory_mib + 2048,
            mib => mib,
        };
        mib << 8
    }

    /// Returns whether a block, by its number as a word, was added and never online.
    pub(crate) fn was_never_online(&self, block: &str) -> bool {
        self.name == "never-online" && block.parse().is_ok_and(|block: u64| block >= 32)
    }

    /// Returns whether memory is in more than one object of QEMU: then the file of the first lacks
    /// some, and QEMU writes the dump.
    pub(crate) fn is_written_by_qemu(&self) -> bool {
        self.added_mib > 0 || self.other_node_mib > 0
    }

    /// Returns the options of QEMU's machine with the first object of memory.
    pub(crate) fn machine(&self) -> String {
        let place = match self.other_node_mib {
            0 => ",memory-backend=ram",
            _ => "",
        };
        format!(
            "-M q35{place} -m {} -object memory-backend-file,id=ram,size={}M,mem-path=ram,share=on",
            self.size(),
            self.memory_mib - self.other_node_mib
        )
    }

    /// Returns QEMU's size of memory.
    fn size(&self) -> String {
        let mib = self.memory_mib;
        match self.added_mib {
            0 => mib.to_string(),
            _ => format!("{mib},slots=1,maxmem=8192M"),
        }
    }

    /// Makes a file system in the memory that is a device, before the guest starts.
    pub(crate) fn format_device(&self, memory: &Path) {
        if self.device_mib == 0 {
            return;
        }
        let file = std::fs::File::create(memory).unwrap();
        file.set_len(self.memory_mib << 20).unwrap();
        // Without a journal, so that it is in no need of a thread of the kernel.
        let status = Command::new("mkfs.ext4")
            .args(["-q", "-F", "-b", "4096", "-O", "^has_journal"])
            .args(["-E", "offset=1073741824,lazy_itable_init=0"])
            .arg(memory)
            .arg((self.device_mib << 8).to_string())
            .env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin")
            .status()
            .unwrap();
        assert!(status.success());
    }

    /// Asks the balloon to take its memory, by a monitor of its own: the guest's driver does so as
    /// soon as it runs.
    pub(crate) fn inflate(&self, folder: &Path) {
        let Some(balloon_mib) = self.balloon_mib else {
            return;
        };
        let left = (self.memory_mib - balloon_mib) << 20;
        let mut socket = UnixStream::connect(folder.join(SOCKET)).unwrap();
        let mut answers = BufReader::new(socket.try_clone().unwrap()).lines();
        answers.next().unwrap().unwrap();
        for command in [
            r#"{"execute":"qmp_capabilities"}"#.to_owned(),
            format!(r#"{{"execute":"balloon","arguments":{{"value":{left}}}}}"#),
        ] {
            socket.write_all(command.as_bytes()).unwrap();
            let answer = answers
                .by_ref()
                .map(Result::unwrap)
                .find(|line| line.contains("\"return\"") || line.contains("\"error\""));
            let answer = answer.unwrap();
            assert!(answer.contains("\"return\""), "{answer}");
        }
    }
}
