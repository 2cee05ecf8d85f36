//! `marvin-module`: modules that measure and say so in the kernel's log. It loads them, waits if
//! asked to, unloads them, and prints what the kernel has said meanwhile.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use guest::sys::{c, check};

/// The name under which the agent does this.
pub(crate) const NAME: &str = "marvin-module";
const USAGE: &str =
    "usage: marvin-module [--seconds N] FILE.ko [PARAMETER=VALUE…] [FILE.ko [PARAMETER=VALUE…]]…";
/// Longest record of /dev/kmsg (`CONSOLE_EXT_LOG_MAX` in kernel/printk/internal.h).
const RECORD_MAX: usize = 8192;

/// A module to load.
struct Module<'a> {
    file: &'a str,
    parameters: Vec<&'a str>,
}

impl Module<'_> {
    fn name(&self) -> String {
        let name = Path::new(self.file).file_stem();
        name.map_or_else(String::new, |name| name.to_string_lossy().replace('-', "_"))
    }

    fn load(&self) -> io::Result<()> {
        let (file, parameters) = (File::open(self.file)?, c(&self.parameters.join(" "))?);
        // SAFETY: the parameters are a valid C string, and `file` is open for the call.
        check(unsafe {
            libc::syscall(
                libc::SYS_finit_module,
                file.as_raw_fd(),
                parameters.as_ptr(),
                0,
            )
        })
        .map(drop)
    }

    fn unload(&self) -> io::Result<()> {
        let name = CString::new(self.name())?;
        // SAFETY: the name is a valid C string.
        check(unsafe { libc::syscall(libc::SYS_delete_module, name.as_ptr(), 0) }).map(drop)
    }
}

/// Loads the modules of a command line, and prints what the kernel says.
pub(crate) fn main(arguments: &[String]) -> ExitCode {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let Some((seconds, modules)) = parse(&words) else {
        return fail(USAGE, 2);
    };
    match run(&modules, seconds) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&format!("{NAME}: {error}"), 1),
    }
}

fn fail(why: &str, status: u8) -> ExitCode {
    drop(writeln!(io::stderr(), "{why}"));
    ExitCode::from(status)
}

/// Returns the seconds and the modules; parameters belong to the module before them.
fn parse<'a>(words: &[&'a str]) -> Option<(u64, Vec<Module<'a>>)> {
    let (seconds, words) = match words {
        ["--seconds", seconds, rest @ ..] => (seconds.parse().ok()?, rest),
        _ => (0, words),
    };
    let mut modules: Vec<Module<'a>> = Vec::new();
    for word in words {
        if word.ends_with(".ko") && !word.contains('=') {
            modules.push(Module {
                file: word,
                parameters: Vec::new(),
            });
        } else {
            modules.last_mut()?.parameters.push(word);
        }
    }
    (!modules.is_empty()).then_some((seconds, modules))
}

fn run(modules: &[Module<'_>], seconds: u64) -> io::Result<()> {
    let mut log = Log::at_its_end()?;
    let mut staying = Vec::new();
    let mut failure = None;
    for module in modules {
        let loaded = module.load();
        let lines = log.print()?;
        match loaded {
            Ok(()) => staying.push(module),
            Err(error) if error.raw_os_error() == Some(libc::EEXIST) => {}
            // What measures when it is loaded refuses to stay (lib/test_vmalloc.c: EAGAIN).
            Err(_) if lines > 0 => {}
            Err(error) => {
                let why = format!("cannot load {}: {error}", module.file);
                failure = Some(io::Error::other(why));
                break;
            }
        }
    }
    if failure.is_none() {
        std::thread::sleep(Duration::from_secs(seconds));
        log.print()?;
    }
    for module in staying.iter().rev() {
        // One that cannot be unloaded stays until the guest ends.
        drop(module.unload());
    }
    log.print()?;
    failure.map_or(Ok(()), Err)
}

/// The kernel's log from now on.
struct Log(File);

impl Log {
    fn at_its_end() -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/kmsg")?;
        // SAFETY: takes no memory of ours.
        check(unsafe { libc::lseek(file.as_raw_fd(), 0, libc::SEEK_END) })?;
        Ok(Self(file))
    }

    /// Prints what has come, text only; returns how many records that were.
    fn print(&mut self) -> io::Result<usize> {
        let mut record = [0; RECORD_MAX];
        let mut records = 0;
        loop {
            let length = match self.0.read(&mut record) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(records),
                // Records were lost: the next read goes on with the oldest (EPIPE).
                Err(error) if error.raw_os_error() == Some(libc::EPIPE) => {
                    writeln!(io::stdout(), "[records of the kernel's log are lost]")?;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let text = String::from_utf8_lossy(&record[..length]).into_owned();
            writeln!(io::stdout(), "{}", message(&text))?;
            records += 1;
        }
    }
}

/// Returns the text of a record: behind the first semicolon, without the lines of what it is about
/// (Documentation/ABI/testing/dev-kmsg).
fn message(record: &str) -> &str {
    let (_, text) = record.split_once(';').unwrap_or(("", record));
    text.lines().next().unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::{message, parse};

    #[test]
    fn parameters_belong_to_the_module_before() {
        let words = ["--seconds", "3", "/m/torture.ko", "/m/rcuscale.ko", "n=1"];
        let (seconds, modules) = parse(&words).unwrap();
        assert_eq!((seconds, modules.len()), (3, 2));
        assert!(modules[0].parameters.is_empty());
        assert_eq!(modules[1].parameters, ["n=1"]);
        assert_eq!(modules[1].name(), "rcuscale");
        assert!(parse(&["n=1"]).is_none() && parse(&[]).is_none());
    }

    #[test]
    fn record_is_its_text() {
        let record = "6,339,5140900,-;crc32: 12 ns\n SUBSYSTEM=acpi\n";
        assert_eq!(message(record), "crc32: 12 ns");
    }
}
