//! A server and a client of NFS in one guest: the kernel's server exports a file system in memory to
//! the address of loopback, where the kernel's client mounts it. No program of user space takes
//! part: the server gets what mountd(8) would answer before it asks.

use std::fs;
use std::io;
use std::path::Path;

use super::Failure;
use super::disk_mount::{InMemory, Mount};
use crate::sys::{c, check};
use guest::mount;

/// Where the server is controlled: fs/nfsd/nfsctl.c.
const CONTROL: &str = "/proc/fs/nfsd";
/// Whether files have leases, which delegations are (fs/locks.c).
const LEASES: &str = "/proc/sys/fs/leases-enable";
/// Where the client mounts it.
const TARGET: &str = "/tmp/nfs";
/// The name of all clients.
const CLIENTS: &str = "loopback";
/// An answer that holds for ever, in seconds since 1970.
const NEVER: u64 = 2_147_483_647;
/// `NFSEXP_INSECURE_PORT`, `NFSEXP_NOSUBTREECHECK` and `NFSEXP_FSID` of
/// include/uapi/linux/nfsd/export.h.
const FLAGS: u32 = 0x2 | 0x400 | 0x2000;
/// The user that others are mapped to (anonuid of exports(5)).
const ANONYMOUS: u32 = 65_534;
/// Versions of the protocol, the newest first.
const VERSIONS: [&str; 3] = ["4.2", "4.1", "4.0"];

fn control(file: &str, text: &str) -> io::Result<()> {
    fs::write(Path::new(CONTROL).join(file), format!("{text}\n"))
        .map_err(|error| io::Error::new(error.kind(), format!("{CONTROL}/{file}: {error}")))
}

/// Answers a question of the server's before it is asked (`net/sunrpc/cache.c`).
fn answer(cache: &str, line: &str) -> io::Result<()> {
    let file = format!("/proc/net/rpc/{cache}/channel");
    fs::write(&file, format!("{line}\n"))
        .map_err(|error| io::Error::new(error.kind(), format!("{file}: {error}")))
}

/// Starts the server, of a folder that is mounted.
fn serve(folder: &str) -> io::Result<()> {
    // Version 3 needs programs of user space.
    control("versions", "-3 +4")?;
    answer("auth.unix.ip", &format!("nfsd 127.0.0.1 {NEVER} {CLIENTS}"))?;
    answer(
        "nfsd.export",
        &format!("{CLIENTS} {folder} {NEVER} {FLAGS} {ANONYMOUS} {ANONYMOUS} 0"),
    )?;
    // File handles of the kind `FSID_NUM`, of number 0, are those of the folder.
    answer(
        "nfsd.fh",
        &format!("{CLIENTS} 1 \\x00000000 {NEVER} {folder}"),
    )?;
    // Whether a client gets a delegation depends on when its callback channel is there.
    fs::write(LEASES, "0")?;
    control("threads", "1")?;
    // No client has state of an earlier server to claim.
    control("v4_end_grace", "Y").ok();
    Ok(())
}

/// Serves a file system in memory and mounts it as a client does.
pub(super) fn mounted() -> Result<Mount, Failure> {
    if !Path::new(CONTROL).exists() {
        return Err(Failure::Unsupported(
            "the kernel has no server of NFS (CONFIG_NFSD)".to_owned(),
        ));
    }
    let below = Mount::in_memory(InMemory::Tmpfs)?;
    mount("nfsd", CONTROL)?;
    let folder = below.path("");
    serve(folder.to_string_lossy().trim_end_matches('/'))?;
    // Where client and server are one machine, newer kernels go around the protocol.
    fs::write("/sys/module/nfs/parameters/localio_enabled", "N").ok();
    fs::create_dir_all(TARGET)?;
    let mut refused = None;
    for version in VERSIONS {
        match mount_client(version) {
            Ok(()) => return Ok(Mount::over(TARGET, below)),
            Err(error) => refused = Some(error),
        }
    }
    let why = refused.map_or_else(String::new, |error| error.to_string());
    Err(Failure::Error(io::Error::other(format!(
        "mount of NFS: {why}"
    ))))
}

fn mount_client(version: &str) -> io::Result<()> {
    let source = c("127.0.0.1:/")?;
    let target = c(TARGET)?;
    let kind = c("nfs4")?;
    let options = c(&format!(
        "addr=127.0.0.1,clientaddr=127.0.0.1,vers={version},sec=sys"
    ))?;
    // SAFETY: the strings are valid and outlive the call.
    check(unsafe {
        libc::mount(
            source.as_ptr(),
            target.as_ptr(),
            kind.as_ptr(),
            0,
            options.as_ptr().cast(),
        )
    })
    .map(drop)
}
