//! Records the consoles of servers in the background.

use std::path::Path;
use std::time::Duration;

use model::ServerSettings;
use server::Recorder;

use crate::say;
use crate::session::now_ms;

/// Wait after a record could not be written, such as on a full disk.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(60);

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
        std::thread::spawn(move || {
            loop {
                match Recorder::open(&server, &home) {
                    Ok(Some(recorder)) => {
                        let Err(error) = recorder.record(&now_ms) else {
                            continue;
                        };
                        say(&format!(
                            "cannot record the console of {}: {error}; Marvin will retry",
                            server.name
                        ));
                    }
                    // Another process records it, and may end.
                    Ok(None) => {}
                    Err(error) => say(&format!(
                        "cannot record the console of {}: {error}",
                        server.name
                    )),
                }
                std::thread::sleep(RETRY_AFTER);
            }
        })
    };
    with_console.map(record).collect()
}
