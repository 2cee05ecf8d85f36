//! Living as PID 1: mounts, children, the console, the end.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};

use wire::Frame;

use crate::stream::Sender;
use crate::sys::{self, Fork, c, check};

const DEBUG: &str = "/sys/kernel/debug";

/// The version that both programs say hello with.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Says on the console why the guest cannot go on, outside any job, and switches off.
pub fn die_with_message(why: &str) -> ! {
    // There is nobody to return an error to: a console that cannot be written to stays silent.
    if let Ok(console) = console() {
        let mut sender = Sender::new(console, 0);
        drop(
            sender
                .send(&Frame::Failed(why.to_owned()))
                .and_then(|()| sender.drain()),
        );
    }
    power_off()
}

/// Does something in a child process and returns the bytes that it made there.
pub fn in_child(action: impl FnOnce() -> io::Result<Vec<u8>>) -> io::Result<Vec<u8>> {
    let (mut receiver, mut sender) = io::pipe()?;
    match sys::fork()? {
        Fork::Child => {
            drop(receiver);
            let code = match action().and_then(|bytes| sender.write_all(&bytes)) {
                Ok(()) => 0,
                Err(error) => error
                    .raw_os_error()
                    .filter(|code| (1..=255).contains(code))
                    .unwrap_or(255),
            };
            sys::exit_now(code)
        }
        Fork::Parent(pid) => {
            drop(sender);
            let mut bytes = Vec::new();
            receiver.read_to_end(&mut bytes)?;
            match sys::bad_end(sys::wait_for(pid)?) {
                None => Ok(bytes),
                Some(how) => Err(io::Error::other(how)),
            }
        }
    }
}

/// Mounts a file system without a device; one that is there already is fine.
pub fn mount(kind: &str, target: &str) -> io::Result<()> {
    fs::create_dir_all(target)?;
    let (kind, target) = (c(kind)?, c(target)?);
    // SAFETY: the strings are valid and outlive the call; no data is passed.
    let result = unsafe {
        libc::mount(
            kind.as_ptr(),
            target.as_ptr(),
            kind.as_ptr(),
            0,
            std::ptr::null(),
        )
    };
    match check(result) {
        Err(error) if error.raw_os_error() != Some(libc::EBUSY) => Err(io::Error::new(
            error.kind(),
            format!("mount {target:?}: {error}"),
        )),
        _ => Ok(()),
    }
}

/// Writes the files that the kernel's command line names, before anything else runs.
pub fn write_settings() -> io::Result<()> {
    let line = fs::read_to_string("/proc/cmdline")?;
    let settings = line
        .split_whitespace()
        .filter_map(|word| word.strip_prefix(wire::WRITE_PARAMETER)?.split_once('='));
    for (file, value) in settings {
        if file.starts_with(DEBUG) {
            // A kernel without it has no such file, which the next error says.
            drop(mount("debugfs", DEBUG));
        }
        let written = OpenOptions::new()
            .write(true)
            .open(file)
            .and_then(|mut open| open.write_all(value.as_bytes()));
        written.map_err(|error| {
            io::Error::new(error.kind(), format!("write {value} to {file}: {error}"))
        })?;
    }
    Ok(())
}

/// Opens the console for writing.
pub fn console() -> io::Result<File> {
    let open = |path| OpenOptions::new().write(true).open(path);
    open("/dev/ttyS0").or_else(|_| open("/dev/console"))
}

/// Switches on the loopback interface. A kernel without a network has none: workloads that need it
/// will say so.
pub fn loopback_up() -> io::Result<()> {
    // SAFETY: socket takes no memory of ours.
    let socket = match check(unsafe {
        libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0)
    }) {
        Ok(socket) => socket as i32,
        Err(error)
            if matches!(
                error.raw_os_error(),
                Some(libc::ENOSYS | libc::EAFNOSUPPORT)
            ) =>
        {
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    // SAFETY: an ifreq of zeroes is a valid value of the C struct.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as i16;
    // SAFETY: SIOCSIFFLAGS reads an ifreq, which outlives the call; the socket is open.
    let result = check(unsafe { libc::ioctl(socket, libc::SIOCSIFFLAGS, &raw const request) });
    // SAFETY: the socket is ours and not used again.
    unsafe { libc::close(socket) };
    result.map(|_| ())
}

/// Ends the machine: `reboot=t` and `-no-reboot` make a reboot the end of QEMU.
pub fn power_off() -> ! {
    // SAFETY: reboot takes no memory of ours; PID 1 is allowed to.
    unsafe { libc::reboot(libc::RB_AUTOBOOT) };
    // A kernel that refuses to reboot ends by the death of PID 1.
    sys::exit_now(0)
}
