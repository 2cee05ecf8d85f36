//! The control socket of a server's QEMU, which is waited for.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::json;
use subprocess::{Qmp, QmpError};

/// Longest wait for QEMU, also on a busy host.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(20);

/// Connects as soon as QEMU listens.
pub(crate) fn connect(socket: &Path) -> Result<Qmp, QmpError> {
    let begun = Instant::now();
    loop {
        match Qmp::over_socket(socket, PATIENCE) {
            Err(_) if begun.elapsed() < PATIENCE => sleep(LOOK),
            ended => return ended,
        }
    }
}

/// Waits until the status that a command reports is none of these, and returns it.
pub(crate) fn wait_while(qmp: &mut Qmp, query: &str, passing: &[&str]) -> Result<String, QmpError> {
    let begun = Instant::now();
    loop {
        let answer = qmp.command(query, json!({}), PATIENCE)?;
        let status = answer["status"].as_str().unwrap_or_default().to_owned();
        if !passing.contains(&&*status) {
            return Ok(status);
        }
        if begun.elapsed() > PATIENCE {
            let waited_s = PATIENCE.as_secs();
            return Err(QmpError::Gone(format!(
                "{query} reports {status} for {waited_s} s"
            )));
        }
        sleep(LOOK);
    }
}
