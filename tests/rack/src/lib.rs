//! A rack of Debian servers for tests: QEMU guests with sshd, kexec, a boot loader on their disks,
//! a power switch and a recorded console. For tests only.
//!
//! ```no_run
//! # fn main() -> Result<(), rack::RackError> {
//! let rack = rack::Rack::open()?;
//! let server = rack.server("testbox")?;
//! assert!(server.run("uname -r")?.starts_with("6.1"));
//! server.power(rack::Power::Cycle)?;
//! server.wait_for_ssh(rack::BOOT)?;
//! # Ok(())
//! # }
//! ```
//!
//! A server is a copy of one that has booted, with its processes: it answers within seconds. All
//! copies have the boot_id, the machine-id and the host key of the first; a reboot makes a new
//! boot_id. `image` makes that first server, from Debian's packages and without root. A server runs
//! under emulation: a boot takes a minute of processor time.
//!
//! The kernel's command line has `panic=10`, a reboot goes through the firmware and never through
//! kexec, and GRUB's default stays the first kernel when others are installed. As with a firewall
//! that drops, connections to a server that is off are accepted and get no answer.
//! `MARVIN_TEST_CACHE` names another directory than cargo's for the image, which several
//! trees may share.

mod control;
mod disk;
mod error;
mod image;
mod server;
mod slurm;
mod ssh;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

pub use error::RackError;
use image::Image;
use server::Start;
pub use server::{HOST_SEEN, MAC, MEMORY_MIB, Power, Server};
pub use slurm::Slurm;
pub use ssh::Ssh;

/// How long a server may take to boot until it answers, on a host that has other work.
pub const BOOT: Duration = Duration::from_secs(600);
/// Servers that run at once on this host, whichever test started them.
const PLACES: usize = 3;
/// Longest wait for a place.
const PLACE_WAIT: Duration = Duration::from_secs(1200);
/// How long a copy of a booted server may take to answer.
const ANSWER: Duration = Duration::from_secs(120);
/// Names the directory that keeps the image; otherwise it is in the target directory.
const CACHE: &str = "MARVIN_TEST_CACHE";

#[derive(Debug)]
pub struct Rack {
    cache: PathBuf,
    image: Image,
}

impl Rack {
    /// Finds the servers' image or makes it, which takes minutes and downloads packages.
    ///
    /// # Errors
    /// If the host lacks a program, or the image cannot be made.
    pub fn open() -> Result<Self, RackError> {
        let cache = std::env::var_os(CACHE)
            .map_or_else(|| target().join("tmp"), PathBuf::from)
            .join("rack");
        let image = Image::find_or_make(&cache)?;
        Ok(Self { cache, image })
    }

    /// Starts a copy of a booted server and waits until it answers. It ends when it is dropped.
    ///
    /// # Errors
    /// If QEMU fails, or the server does not answer.
    pub fn server(&self, name: &str) -> Result<Server, RackError> {
        let server = Server::start(
            name,
            &self.image,
            Start::Copy,
            MEMORY_MIB,
            Some(self.place()?),
        )?;
        server.wait_for_ssh(ANSWER)?;
        server.settle()?;
        Ok(server)
    }

    /// Switches a server on that is off so far, with this much memory, and returns at once.
    ///
    /// # Errors
    /// If QEMU fails.
    pub fn cold_server(&self, name: &str, memory_mib: u32) -> Result<Server, RackError> {
        Server::start(
            name,
            &self.image,
            Start::Boot,
            memory_mib,
            Some(self.place()?),
        )
    }

    /// Switches a server on that boots by UEFI and systemd-boot, with this much memory, waits until
    /// it answers, and mounts its EFI system partition. `None` if the host has no OVMF, mtools,
    /// dosfstools or fdisk.
    ///
    /// # Errors
    /// If the partition cannot be made, QEMU fails, or the server does not answer.
    pub fn efi_server(&self, name: &str, memory_mib: u32) -> Result<Option<Server>, RackError> {
        let needed = [
            "/usr/share/OVMF/OVMF_CODE_4M.fd",
            "/usr/bin/mcopy",
            "/usr/sbin/mkfs.vfat",
            "/usr/sbin/sfdisk",
        ];
        if !needed.iter().all(|path| Path::new(path).exists()) {
            return Ok(None);
        }
        let server = Server::start(
            name,
            &self.image,
            Start::Efi,
            memory_mib,
            Some(self.place()?),
        )?;
        server.wait_for_ssh(BOOT)?;
        server.run(
            "mkdir -p /efi && echo '/dev/vdb1 /efi vfat umask=0077 0 0' >>/etc/fstab && mount /efi",
        )?;
        Ok(Some(server))
    }

    /// Returns a server that is off, with this much memory; its power switch can have it boot from
    /// its network.
    ///
    /// # Errors
    /// If QEMU fails.
    pub fn network_server(&self, name: &str, memory_mib: u32) -> Result<Server, RackError> {
        Server::start(
            name,
            &self.image,
            Start::Network,
            memory_mib,
            Some(self.place()?),
        )
    }

    /// Waits for one of the rack's places.
    fn place(&self) -> Result<File, RackError> {
        let begun = Instant::now();
        while begun.elapsed() < PLACE_WAIT {
            for place in 0..PLACES {
                let path = self.cache.join(format!("place-{place}"));
                let file = File::create(&path).map_err(RackError::io("create", &path))?;
                if file.try_lock().is_ok() {
                    return Ok(file);
                }
            }
            sleep(Duration::from_millis(200));
        }
        Err(RackError::Full(PLACES))
    }
}

/// Returns cargo's target directory: that of the running test, `TARGET/PROFILE/deps/TEST`, or
/// example, `TARGET/PROFILE/examples/NAME`.
fn target() -> PathBuf {
    let test = std::env::current_exe().unwrap_or_default();
    let deps = test
        .ancestors()
        .find(|folder| folder.ends_with("deps") || folder.ends_with("examples"));
    deps.and_then(|deps| deps.ancestors().nth(2))
        .map_or_else(|| PathBuf::from("target"), Path::to_owned)
}
