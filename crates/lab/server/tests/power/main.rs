//! Power by real parts: OpenIPMI's `ipmi_sim` behind ipmitool, a Redfish BMC with the habits of
//! real ones behind curl, and sushy-emulator where it is installed.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "tests fail by panicking, and say what they skip"
)]

mod ipmi;
mod redfish;

use std::io;
use std::net::TcpListener;
use std::process::Child;
use std::time::{Duration, Instant};

/// A program that ends with its test.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Returns a port that is free now.
fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// Waits until a condition holds.
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Returns whether a program is in the PATH.
fn has(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|folder| folder.join(program).is_file())
}
