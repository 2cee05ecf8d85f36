//! The end of services: asked by SIGTERM, as by systemd, a service ends what it has in hand and
//! exits with 0. A second signal ends it at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::exit::Exit;
use crate::say;
use crate::session::is_log_on;

/// Interval between looks whether a pause is to end.
const GLANCE: Duration = Duration::from_millis(100);

/// Whether this process was asked to stop.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Notes these signals from now on. Ends the process with `exit` if it still runs after `limit`.
    pub(crate) fn on(signals: &[i32], limit: Duration, exit: Exit) -> Self {
        let stop = Self::default();
        // Without a handler the signals end the process, as they end any.
        if let Ok(mut signals) = Signals::new(signals) {
            let asked = stop.clone();
            std::thread::spawn(move || {
                for signal in signals.forever() {
                    if asked.0.swap(true, Ordering::Relaxed) {
                        drop(emulate_default_handler(signal));
                    }
                    std::thread::spawn(move || {
                        std::thread::sleep(limit);
                        std::process::exit(i32::from(exit.code()));
                    });
                }
            });
        }
        stop
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Waits, or until the process is asked to stop.
    pub(crate) fn sleep(&self, pause: Duration) {
        let begun = Instant::now();
        while !self.is_asked() && begun.elapsed() < pause {
            std::thread::sleep(GLANCE.min(pause));
        }
    }

    /// Says that a service ends as it was asked to, and returns the exit code for that.
    pub(crate) fn finish(&self, is_quiet: bool) -> Exit {
        if is_log_on() || !is_quiet {
            say("stopped, as asked by a signal");
        }
        Exit::Fine
    }
}
