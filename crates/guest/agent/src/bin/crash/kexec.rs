//! Loading a crash kernel into the memory that `crashkernel=` reserved, to be started by a panic.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;

use guest::sys::{c, check};

/// The crash kernel, as an image with its setup header: kexec_file_load(2) takes no bare vmlinux.
const KERNEL: &str = "/capture/kernel";
const INITRD: &str = "/capture/initrd";
/// KEXEC_FILE_ON_CRASH (include/uapi/linux/kexec.h).
const ON_CRASH: u64 = 2;
/// One processor, devices that were left as they were, no interrupt to be relied upon:
/// Documentation/admin-guide/kdump.
const COMMAND_LINE: &str = "console=ttyS0 nr_cpus=1 reset_devices irqpoll panic=-1 reboot=t";

/// Loads the crash kernel with our own words behind its command line, and removes its files, which
/// only take room.
pub(crate) fn load_crash_kernel() -> io::Result<()> {
    let said = fs::read_to_string("/proc/cmdline")?;
    let ours = said
        .split_whitespace()
        .filter(|word| word.starts_with("marvin."));
    let line = ours.fold(COMMAND_LINE.to_owned(), |line, word| line + " " + word);
    load(&line).map_err(|error| {
        io::Error::other(format!(
            "crash kernel (crashkernel=, CONFIG_KEXEC_FILE): {error}"
        ))
    })?;
    fs::remove_file(KERNEL)?;
    fs::remove_file(INITRD)
}

fn load(line: &str) -> io::Result<()> {
    let (kernel_file, initrd_file, line) = (File::open(KERNEL)?, File::open(INITRD)?, c(line)?);
    let length = line.as_bytes_with_nul().len();
    let (kernel, initrd) = (kernel_file.as_raw_fd(), initrd_file.as_raw_fd());
    // SAFETY: both files are open and the command line is valid for the call, with its length and
    // final zero.
    check(unsafe {
        libc::syscall(
            libc::SYS_kexec_file_load,
            kernel,
            initrd,
            length,
            line.as_ptr(),
            ON_CRASH,
        )
    })
    .map(|_| ())
}
