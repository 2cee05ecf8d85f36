//! The image of all servers: a Debian 12 with a kernel, sshd and kexec, and the saved state of one
//! that has booted. Made once for a recipe, in minutes, and kept in the target directory.
//!
//! The first boot is a server like the others: `server` starts it, and this file saves it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};
use subprocess::{NETWORK, Program, ProgramError};

use crate::server::{ARGUMENTS, MEMORY_MIB, Start};
use crate::{RackError, Server, disk};

/// The packages of a server, beside Debian's required ones.
const PACKAGES: &str = "systemd-sysv,udev,dbus,openssh-server,kexec-tools,kmod,linux-image-cloud-amd64,initramfs-tools,\
    makedumpfile,grub2-common,grub-pc-bin,systemd-boot,iproute2,procps,zstd,e2fsprogs,pciutils";
const SETUP: &str = include_str!("setup.sh");
const FIRST_BOOT: &str = include_str!("first_boot.sh");
/// Raise it if the same recipe gives another image.
const VERSION: u32 = 1;

/// Files of an image.
pub(crate) const DISK: &str = "disk.raw";
pub(crate) const STATE: &str = "state";
pub(crate) const KEY: &str = "key";
const HOST_KEY: &str = "host_key.pub";
/// The first boot is on an emulated processor, of which other programs may want a part.
const FIRST_BOOT_S: u64 = 900;

#[derive(Debug, Clone)]
pub(crate) struct Image {
    pub(crate) folder: PathBuf,
}

impl Image {
    /// Finds the image below a cache directory, or makes it; one process makes it, others wait.
    pub(crate) fn find_or_make(cache: &Path) -> Result<Self, RackError> {
        fs::create_dir_all(cache).map_err(RackError::io("create", cache))?;
        check_programs()?;
        let folder = cache.join(format!("debian-12-{}", key()?));
        if folder.exists() {
            return Ok(Self { folder });
        }
        let path = cache.join("lock");
        let lock = File::create(&path)
            .and_then(|file| file.lock().map(|()| file))
            .map_err(RackError::io("lock", &path))?;
        if !folder.exists() {
            let scratch = tempfile::Builder::new().prefix("making-").tempdir_in(cache);
            let scratch = scratch.map_err(RackError::io("create a directory in", cache))?;
            make(scratch.path())?;
            fs::rename(scratch.path(), &folder).map_err(RackError::io("create", &folder))?;
        }
        drop(lock);
        Ok(Self { folder })
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Returns the public key of all servers, without a name.
    pub(crate) fn host_key(&self) -> Result<String, RackError> {
        let path = self.file(HOST_KEY);
        let text = fs::read_to_string(&path).map_err(RackError::io("read", &path))?;
        Ok(text
            .split_whitespace()
            .take(2)
            .collect::<Vec<_>>()
            .join(" "))
    }
}

/// Returns the hash of what the image is made of.
fn key() -> Result<String, RackError> {
    let qemu = done(&Program::new("qemu-system-x86_64").args(["--version"]))?;
    let disk = include_str!("disk.rs");
    let mut hash = Sha256::new();
    for part in [
        PACKAGES,
        SETUP,
        FIRST_BOOT,
        disk,
        ARGUMENTS,
        &qemu,
        &MEMORY_MIB.to_string(),
        &VERSION.to_string(),
    ] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    Ok(hash
        .finalize()
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

fn check_programs() -> Result<(), RackError> {
    let needed = [
        ("qemu-system-x86_64", "qemu-system-x86"),
        ("qemu-img", "qemu-utils"),
        ("mmdebstrap", "mmdebstrap"),
        ("fakeroot", "fakeroot"),
        ("ssh", "openssh-client"),
        ("python3", "python3"),
    ];
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there =
        |name: &str| std::env::split_paths(&path).any(|folder| folder.join(name).exists());
    match needed.into_iter().find(|(program, _)| !is_there(program)) {
        Some((program, package)) => Err(RackError::Missing { program, package }),
        None => Ok(()),
    }
}

/// Makes an image in an empty directory.
fn make(folder: &Path) -> Result<(), RackError> {
    done(
        &Program::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-C", "rack", "-f", KEY])
            .folder(folder),
    )?;
    let public = folder.join("key.pub");
    let public = fs::read_to_string(&public).map_err(RackError::io("read", &public))?;
    let setup = SETUP.replace("@KEY@", public.trim());
    let hook = format!("--customize-hook={setup}");
    let include = format!("--include={PACKAGES}");
    // As root it uses chroot, else namespaces or fakechroot, whichever the host allows.
    let words = [
        "--quiet",
        "--variant=minbase",
        "--format=tar",
        "--aptopt=APT::Install-Recommends \"false\"",
    ];
    let excluded = ["man", "locale", "doc", "info"]
        .map(|name| format!("--dpkgopt=path-exclude=/usr/share/{name}/*"));
    let program = Program::new("mmdebstrap")
        .args(words)
        .args(excluded)
        .args([&*hook, &include, "bookworm", "root.tar"]);
    done(&program.inherit(&NETWORK).folder(folder).deadline_s(1800))?;
    disk::write(folder, "root.tar", DISK)?;
    let host_key = folder.join("root/etc/ssh/ssh_host_ed25519_key.pub");
    fs::copy(&host_key, folder.join(HOST_KEY)).map_err(RackError::io("copy", &host_key))?;
    fs::remove_file(folder.join("root.tar")).map_err(RackError::io("remove", folder))?;
    fs::remove_dir_all(folder.join("root")).map_err(RackError::io("remove", folder))?;
    let image = Image {
        folder: folder.to_owned(),
    };
    let server = Server::start("rack", &image, Start::First, MEMORY_MIB, None)?;
    server.wait_for_ssh(Duration::from_secs(FIRST_BOOT_S))?;
    server.run(FIRST_BOOT)?;
    server.save(&image.file(STATE))
}

/// Runs a program that must succeed, and returns its output.
pub(crate) fn done(program: &Program) -> Result<String, RackError> {
    let ended = program.run().map_err(|error| match error {
        ProgramError::Missing(name) => RackError::Failed {
            command: name,
            reason: "it is not installed".to_owned(),
        },
        other => RackError::Program(other),
    })?;
    if ended.code == Some(0) {
        return Ok(ended.text());
    }
    let command: String = program.command().chars().take(120).collect();
    let tail = ended.stderr.lines().rev().take(12).collect::<Vec<_>>();
    Err(RackError::Failed {
        command,
        reason: tail.into_iter().rev().collect::<Vec<_>>().join("\n"),
    })
}
