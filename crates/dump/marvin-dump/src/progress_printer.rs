//! Prints the progress of long work, on a terminal or as lines. The caller provides the clock.

use std::io::Write;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use vmcore::Progress;

/// The destination of progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Screen {
    /// A terminal: one line, rewritten.
    Terminal,
    /// Another destination, such as a file or a console's log: occasional lines.
    #[default]
    Plain,
    Off,
}

/// Interval between updates on a terminal: a slow console must not slow the work down.
const TICK: Duration = Duration::from_millis(250);
/// Interval between lines elsewhere.
const SPARSE: Duration = Duration::from_secs(10);

pub(crate) struct ProgressPrinter<'w> {
    pub(crate) screen: Screen,
    pub(crate) messages: &'w mut (dyn Write + Send),
    pub(crate) clock: &'w dyn Fn() -> Duration,
}

impl ProgressPrinter<'_> {
    /// Executes work in another thread, and prints progress meanwhile; clears a terminal's line
    /// afterwards.
    pub(crate) fn during<T: Send>(
        &mut self,
        phase: &str,
        progress: &Progress,
        work: impl FnOnce() -> T + Send,
    ) -> T {
        if self.screen == Screen::Off {
            return work();
        }
        let start = (self.clock)();
        let mut shown = false;
        let mut last = start;
        let (done, wait) = channel::<()>();
        let work = Mutex::new(Some((work, done)));
        let result = std::thread::scope(|scope| {
            let Ok(worker) = std::thread::Builder::new().spawn_scoped(scope, || do_once(&work))
            else {
                // If the system has no more threads, work without progress.
                return Ok(do_once(&work));
            };
            while wait.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                let now = (self.clock)();
                if self.screen == Screen::Terminal {
                    self.say(&format!(
                        "\r{}\x1b[K",
                        line(progress, phase, now.saturating_sub(start))
                    ));
                    shown = true;
                } else if now.saturating_sub(last) >= SPARSE {
                    self.say(&format!(
                        "{}\n",
                        line(progress, phase, now.saturating_sub(start))
                    ));
                    last = now;
                }
            }
            worker.join()
        });
        if shown {
            self.say("\r\x1b[K");
        }
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// A failure to print progress is no reason to stop.
    fn say(&mut self, text: &str) {
        drop(
            self.messages
                .write_all(text.as_bytes())
                .and_then(|()| self.messages.flush()),
        );
    }
}

/// Takes work out and does it. The sender is dropped at the end, also after a panic, which wakes up
/// the receiver.
fn do_once<T, W: FnOnce() -> T>(slot: &Mutex<Option<(W, Sender<()>)>>) -> T {
    let Some((work, _done)) = locked(slot).take() else {
        unreachable!("the work is taken once");
    };
    work()
}

/// Formats the progress: share, speed, and remaining time at that speed.
fn line(progress: &Progress, phase: &str, spent: Duration) -> String {
    let done = progress.done();
    let total = progress.total().max(1);
    let part = (done as f64 / total as f64).min(1.0);
    let seconds = spent.as_secs_f64().max(0.001);
    let speed = done as f64 / 1e6 / seconds;
    let text = format!("{phase} {:>3.0} %, {speed:.0} MB/s", (part * 100.0).floor());
    if done == 0 {
        return text;
    }
    text + &format!(", {:.0} s remain", (seconds * (1.0 - part) / part).ceil())
}

/// Locks; a panic of the other thread is passed on elsewhere.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use vmcore::Progress;

    use super::{ProgressPrinter, Screen, line};

    #[test]
    fn line_shows_share_speed_and_remaining_time() {
        let progress = Progress::default();
        assert_eq!(
            line(&progress, "filtering", Duration::ZERO),
            "filtering   0 %, 0 MB/s"
        );
        progress.expect(8_000_000_000);
        progress.add(2_000_000_000);
        insta::assert_snapshot!(line(&progress, "filtering", Duration::from_secs(2)), @"filtering  25 %, 1000 MB/s, 6 s remain");
        progress.add(9_000_000_000);
        insta::assert_snapshot!(line(&progress, "writing", Duration::from_secs(4)), @"writing 100 %, 2750 MB/s, 0 s remain");
    }

    /// Runs work that ends when the clock has been read five times: once at the start, and for four
    /// lines.
    fn seen(screen: Screen, step: Duration) -> String {
        let (sender, receiver) = channel();
        let calls = Cell::new(0_u32);
        let clock = || {
            calls.set(calls.get() + 1);
            if calls.get() == 5 {
                sender.send(()).unwrap();
            }
            step * calls.get()
        };
        let mut messages = Vec::new();
        let progress = Progress::default();
        progress.expect(100);
        progress.add(50);
        let mut watch = ProgressPrinter {
            screen,
            messages: &mut messages,
            clock: &clock,
        };
        let answer = watch.during("writing", &progress, move || {
            receiver.recv_timeout(Duration::from_secs(60)).unwrap();
            7
        });
        assert_eq!(answer, 7);
        String::from_utf8(messages).unwrap()
    }

    #[test]
    fn terminal_line_is_rewritten() {
        let text = seen(Screen::Terminal, Duration::from_secs(1));
        assert!(
            text.starts_with("\rwriting  50 %, 0 MB/s, 1 s remain\x1b[K\rwriting"),
            "{text:?}"
        );
        assert!(
            text.ends_with("\x1b[K\r\x1b[K") && !text.contains('\n'),
            "{text:?}"
        );
    }

    #[test]
    fn plain_output_gets_sparse_lines() {
        let text = seen(Screen::Plain, Duration::from_secs(5));
        assert_eq!(
            text.lines().collect::<Vec<_>>()[0],
            "writing  50 %, 0 MB/s, 10 s remain"
        );
        assert!(text.lines().count() <= 3, "{text}");
        assert_eq!(seen(Screen::Plain, Duration::from_secs(1)), "");
    }

    #[test]
    #[should_panic(expected = "as it is")]
    fn panic_of_the_work_is_passed_on() {
        let clock = || Duration::ZERO;
        let mut watch = ProgressPrinter {
            screen: Screen::Plain,
            messages: &mut Vec::new(),
            clock: &clock,
        };
        watch.during("filtering", &Progress::default(), || {
            std::panic::panic_any("as it is".to_owned())
        });
    }
}
