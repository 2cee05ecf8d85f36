//! Records the consoles of servers in the background.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use model::ServerSettings;
use server::Recorder;
use subprocess::Shared;

use crate::session::{About, LastingState, LogLevel, now_ms};

/// Wait after a record could not be written, such as on a full disk.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(60);

/// Interval between looks whether a recorder has ended.
const GLANCE: Duration = Duration::from_millis(100);

/// Records the consoles of these servers in threads that end with the process.
pub(crate) fn record_consoles(
    home: &Path,
    servers: Vec<ServerSettings>,
) -> Vec<std::thread::JoinHandle<()>> {
    let with_console = servers
        .into_iter()
        .filter(|server| server.console.is_some());
    let record = |server: ServerSettings| {
        let home = home.to_owned();
        std::thread::spawn(move || record_console(&server, &home))
    };
    with_console.map(record).collect()
}

/// Records the console of a server until the process ends.
fn record_console(server: &ServerSettings, home: &Path) {
    let name = &server.name;
    let about = About::machine(name);
    let trouble = Shared::new(LastingState::default());
    loop {
        let has_ended = AtomicBool::new(false);
        let recorded = std::thread::scope(|scope| {
            scope.spawn(|| {
                // On a full disk a record begins and fails with its first line.
                if is_still_recording(&has_ended) {
                    trouble
                        .lock()
                        .end(about, &format!("{name}: its console is recorded again"));
                }
            });
            let recorded = record_once(server, home);
            has_ended.store(true, Ordering::Relaxed);
            recorded
        });
        if let Err(error) = recorded {
            let text = format!("cannot record the console of {name}: {error}; Marvin will retry");
            trouble.lock().hold(LogLevel::Warn, about, &text);
        }
        std::thread::sleep(RETRY_AFTER);
    }
}

fn record_once(server: &ServerSettings, home: &Path) -> std::io::Result<()> {
    match Recorder::open(server, home)? {
        Some(recorder) => recorder.record(&now_ms),
        // Another process records it, and may end.
        None => Ok(()),
    }
}

/// Waits; returns whether the recorder has not ended.
fn is_still_recording(has_ended: &AtomicBool) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < RETRY_AFTER {
        if has_ended.load(Ordering::Relaxed) {
            return false;
        }
        std::thread::sleep(GLANCE);
    }
    true
}
