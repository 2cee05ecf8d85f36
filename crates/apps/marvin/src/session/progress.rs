//! Progress on standard error: a bar on a terminal, lines elsewhere, neither with `--quiet`.

use std::io::IsTerminal;
use std::sync::Once;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use kernel::{BuildEvent, BuildProgress};
use lab::Event;
use model::{sanitize_line, sanitize_text};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use subprocess::Shared;

use crate::say;

#[derive(Debug)]
pub(crate) enum Progress {
    Bar(ProgressBar),
    /// In a pipe or a log.
    Lines(Shared<Share>),
    Quiet,
}

/// The share of completed jobs, for logs.
#[derive(Debug)]
pub(crate) struct Share {
    jobs: usize,
    done: usize,
    begun: Instant,
    printed: Instant,
    left_s: Option<f64>,
    /// How long the build had taken at its last line (s).
    build_s: u64,
}

/// How long storing may take at the end.
const PATIENCE: Duration = Duration::from_secs(10);
/// 128 plus the number of SIGINT, as in shells.
pub(crate) const INTERRUPTED: i32 = 130;
/// Most options of a kernel config in a line: a distribution's config has thousands.
const OPTIONS_SHOWN: usize = 40;
/// Interval between lines of a log.
const PERIOD: Duration = Duration::from_secs(10);
/// Interval between lines about a build in a log (s).
const BUILD_PERIOD_S: u64 = 30;

impl Default for Share {
    fn default() -> Self {
        let now = Instant::now();
        Self {
            jobs: 0,
            done: 0,
            begun: now,
            printed: now,
            left_s: None,
            build_s: 0,
        }
    }
}

impl Share {
    /// Returns whether a build that takes this long is due for a line.
    fn is_due(&mut self, seconds: u64) -> bool {
        if seconds < self.build_s {
            // Another build.
            self.build_s = 0;
        }
        let is_due = seconds >= self.build_s + BUILD_PERIOD_S;
        if is_due {
            self.build_s = seconds;
        }
        is_due
    }

    /// Counts one more job; returns a line if the last one is older than the interval. It says how
    /// long the jobs took, and how long the rest takes only if the lab knows.
    fn count(&mut self, now: Instant) -> Option<String> {
        self.done += 1;
        if now.duration_since(self.printed) < PERIOD || self.jobs == 0 {
            return None;
        }
        self.printed = now;
        let done = self.done as u64;
        let jobs = self.jobs as u64;
        let left = self.left_s.filter(|_| done < jobs);
        let left = left.map_or_else(String::new, |left| format!(", about {} left", span(left)));
        let elapsed = span(now.duration_since(self.begun).as_secs_f64());
        Some(format!(
            "{} % ({done} of {jobs} jobs) after {elapsed}{left}",
            100 * done / jobs
        ))
    }
}

impl Progress {
    pub(super) fn new(quiet: bool) -> Self {
        static INTERRUPTIBLE: Once = Once::new();
        INTERRUPTIBLE.call_once(say_when_interrupted);
        if quiet {
            Self::Quiet
        } else if std::io::stderr().is_terminal() {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.enable_steady_tick(Duration::from_millis(200));
            Self::Bar(bar)
        } else {
            Self::Lines(Shared::default())
        }
    }

    /// Prints a step of a build.
    pub(crate) fn step(&self, name: &str, step: &BuildEvent) {
        let name = name.trim_end_matches(':');
        match step {
            BuildEvent::Resolving => self.message(&format!("{name}: looking up")),
            BuildEvent::Downloading { package, bytes } => {
                self.line(&format!("{name}: downloading {package}, {:.1} MB", *bytes as f64 / 1e6));
            }
            BuildEvent::Incomplete { package, missing } => {
                let missing = missing.join(" and ");
                self.line(&format!("{name}: {package} without {missing}, which the archive lacks"));
            }
            BuildEvent::Lists(notice) => self.warn(&format!("{name}: {notice}")),
            BuildEvent::NoModules { kernel } => {
                self.line(&format!("{name}: {kernel} has no folder of modules: guests have what is built in"));
            }
            BuildEvent::Unpacking { what } => self.message(&format!("{name}: unpacking {what}")),
            BuildEvent::Waiting => {
                self.line(&format!("{name}: waits for another build in this data directory"));
            }
            BuildEvent::Building { what, estimate_s } => {
                let last = estimate_s.map_or_else(String::new, |seconds| format!(", the last one took {seconds} s"));
                self.line(&format!("{name}: building {what}{last}"));
            }
            BuildEvent::Compiling(progress) => self.compiling(name, progress),
            BuildEvent::NoWalls { why } => self.line(&format!(
                "{name}: its Makefile runs without walls, as you: {why}; `marvin doctor` says how to install bubblewrap"
            )),
            BuildEvent::NotKept { what, options, lacks } => {
                let shown = options.iter().take(OPTIONS_SHOWN).cloned().collect::<Vec<_>>();
                let more = options.len().saturating_sub(OPTIONS_SHOWN);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                let hint = lacks.as_ref().map_or_else(String::new, |lacks| {
                    format!("; this host lacks {}: {}", lacks.what, lacks.install)
                });
                self.line(&format!("{name}: {what} differs in {}{more}{hint}", shown.join(" ")));
            }
            BuildEvent::Cached { what } => self.message(&format!("{name}: {what} is built already")),
        }
    }

    /// Shows how far a build is: on a terminal in one line that is rewritten, in a log twice a
    /// minute.
    fn compiling(&self, name: &str, progress: &BuildProgress) {
        let text = format!("{name}: {}", compiling_text(progress));
        match self {
            Self::Bar(bar) => bar.set_message(sanitize_line(&text)),
            Self::Lines(share) => {
                if share.lock().is_due(progress.seconds) {
                    say(&text);
                }
            }
            Self::Quiet => {}
        }
    }

    /// Prints an event of the lab.
    pub(crate) fn event(&self, event: &Event) {
        match event {
            Event::Planned { jobs, reused } => self.planned(*jobs, *reused),
            Event::RemainingTime { seconds } => self.left(*seconds),
            Event::NoWalls { why } => self.line(&format!(
                "QEMU runs without walls, as you: {why}; `marvin doctor` has the fix, --no-sandbox says that you know"
            )),
            Event::UnknownBootParameters { version, parameters } => self.line(&format!(
                "{version} does not know {parameters}: with or without, it boots alike"
            )),
            Event::Booting { version, replicate } => {
                self.line(&format!("booting {version}, {replicate}"));
            }
            // An estimate before the first job is a guess: no word of it.
            Event::Estimated(_) | Event::Ready { remark: None, .. } | Event::Stored(_) => {}
            Event::Ready {
                version,
                replicate,
                remark: Some(remark),
            } => {
                self.line(&format!("{version}, {replicate}: {remark}"));
            }
            Event::BootFailed {
                version,
                replicate,
                failure,
            } => {
                self.line(&format!(
                    "{version}, {replicate}: {} ({} stage)",
                    failure.reason, failure.stage
                ));
            }
            Event::Done {
                version,
                replicate,
                workload,
                ..
            } => {
                self.done(&format!("{version} {replicate} {workload}"));
            }
            Event::NoProfile {
                version,
                workload,
                why,
            } => {
                let what = workload
                    .as_ref()
                    .map_or_else(String::new, |workload| format!(" {workload}"));
                self.line(&format!("{version}{what}: no profile: {why}"));
            }
            Event::Dumped {
                version,
                of,
                bytes: Ok(bytes),
                unfiltered,
            } => {
                let why = unfiltered
                    .as_ref()
                    .map_or_else(String::new, |why| format!(", not filtered: {why}"));
                self.line(&format!(
                    "{version} {of}: stored a memory dump, {:.1} MB{why}",
                    *bytes as f64 / 1e6
                ));
            }
            Event::Dumped {
                version,
                of,
                bytes: Err(why),
                ..
            } => {
                self.line(&format!("{version} {of}: no memory dump: {why}"));
            }
            Event::JobSkipped => self.done("left out"),
            Event::Disturbed {
                version,
                replicate,
                workload,
                text,
            } => {
                self.line(&format!(
                    "{version} {replicate} {workload}: {text}; measuring it again"
                ));
            }
            Event::Retrying { error } => self.line(&format!("trying again: {error}")),
        }
    }

    /// Prints a message that needs a line of its own.
    pub(crate) fn say(&self, text: &str) {
        self.line(text);
    }

    /// Prints the number of repeated jobs, and their purpose.
    pub(crate) fn again(&self, what: &str, jobs: usize) {
        self.message(&format!("{what} {jobs} jobs"));
        if let Self::Bar(bar) = self {
            // The estimate was for the measurement.
            bar.set_prefix("");
            bar.reset();
            bar.set_length(jobs as u64);
        }
        self.count_from_zero(jobs);
    }

    /// Counts other jobs from now on.
    fn count_from_zero(&self, jobs: usize) {
        if let Self::Lines(share) = self {
            *share.lock() = Share {
                jobs,
                ..Share::default()
            };
        }
    }

    /// Counts one more repeated job.
    pub(crate) fn one_more(&self, what: &str) {
        self.done(what);
    }

    pub(crate) fn end(&self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }

    fn planned(&self, jobs: usize, reused: usize) {
        match (jobs, reused) {
            (0, reused) => self.message(&format!("all {reused} results exist already")),
            (jobs, 0) => self.message(&format!("{jobs} jobs")),
            (jobs, reused) => self.message(&format!("{jobs} jobs; {reused} results exist already")),
        }
        if let Self::Bar(bar) = self {
            let style =
                ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} {prefix}{wide_msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.set_length(jobs as u64);
        }
        self.count_from_zero(jobs);
    }

    /// Shows how many seconds are left from now on, if the lab knows.
    fn left(&self, seconds: Option<f64>) {
        match self {
            Self::Bar(bar) => {
                bar.set_prefix(
                    seconds
                        .map_or_else(String::new, |left| format!("(about {} left) ", span(left))),
                );
            }
            Self::Lines(share) => {
                share.lock().left_s = seconds;
            }
            Self::Quiet => {}
        }
    }

    fn done(&self, what: &str) {
        if let Self::Lines(share) = self
            && let Some(line) = share.lock().count(Instant::now())
        {
            say(&line);
        }
        if let Self::Bar(bar) = self {
            bar.set_message(sanitize_line(what));
            bar.inc(1);
        }
    }

    /// Prints a line that stays.
    pub(crate) fn line(&self, text: &str) {
        match self {
            Self::Bar(bar) => bar.println(sanitize_text(text)),
            Self::Lines(_) => say(text),
            Self::Quiet => {}
        }
    }

    /// Prints what a result may depend on, with `--quiet` too: it is no progress.
    fn warn(&self, text: &str) {
        match self {
            Self::Quiet => say(text),
            Self::Bar(_) | Self::Lines(_) => self.line(text),
        }
    }

    /// Prints a message that the next one replaces.
    pub(crate) fn message(&self, text: &str) {
        match self {
            Self::Bar(bar) => bar.set_message(sanitize_line(text)),
            Self::Lines(_) => say(text),
            Self::Quiet => {}
        }
    }
}

/// Describes how far a build is.
fn compiling_text(progress: &BuildProgress) -> String {
    let BuildProgress {
        objects,
        whole,
        is_partial,
        seconds,
    } = progress;
    let of = match whole {
        Some(whole) if *is_partial => format!(" (a whole build has {whole})"),
        Some(whole) => format!(" of about {whole}"),
        None => String::new(),
    };
    format!(
        "{objects} objects{of} compiled after {}",
        span(*seconds as f64)
    )
}

/// On Ctrl-C, SIGTERM or the end of the terminal, has the lab store what was measured, prints what
/// to do next and ends. Child processes die with Marvin.
fn say_when_interrupted() {
    let mut ends = vec![SIGINT, SIGTERM];
    if !ignores_hangup() {
        ends.push(SIGHUP);
    }
    // Without a handler, Ctrl-C ends the program silently.
    let Ok(mut signals) = Signals::new(ends) else {
        return;
    };
    std::thread::spawn(move || {
        let Some(signal) = signals.forever().next() else {
            return;
        };
        lab::interrupt(PATIENCE);
        say("\ninterrupted; repeat the command to continue");
        if signal != SIGINT {
            // Who sent it sees that it was obeyed.
            drop(emulate_default_handler(signal));
        }
        std::process::exit(INTERRUPTED);
    });
}

/// Returns whether Marvin was started by nohup(1) or the like: SIGHUP is the lowest bit of
/// proc(5)'s SigIgn.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & 1 == 1)
}

/// Formats a duration: `40 s`, `3 min`, `2 h 5 min`.
pub(crate) fn span(seconds: f64) -> String {
    // `as` saturates at a duration that has no practical meaning.
    let seconds = seconds.max(1.0).round() as u64;
    match (seconds / 3600, seconds / 60, seconds) {
        (0, _, ..=90) => format!("{seconds} s"),
        (0, ..) => format!("{} min", (seconds + 30) / 60),
        (hours, ..) => format!("{hours} h {} min", seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use kernel::BuildProgress;

    use super::{Share, compiling_text, span};

    #[test]
    fn log_prints_progress_every_ten_seconds() {
        let start = Instant::now();
        let mut share = Share {
            jobs: 40,
            done: 0,
            begun: start,
            printed: start,
            left_s: None,
            build_s: 0,
        };
        let mut line_after = |seconds, left_s| {
            share.left_s = left_s;
            share.count(start + Duration::from_secs(seconds))
        };
        assert_eq!([line_after(1, None), line_after(9, None)], [None, None]);
        insta::assert_snapshot!(line_after(10, None).unwrap(), @"7 % (3 of 40 jobs) after 10 s");
        assert_eq!(line_after(19, None), None);
        insta::assert_snapshot!(line_after(120, Some(93.0)).unwrap(), @"12 % (5 of 40 jobs) after 2 min, about 2 min left");
    }

    #[test]
    fn builds_have_a_line_each_half_minute() {
        let mut share = Share::default();
        let due = [1, 29, 30, 31, 59, 61, 3, 33].map(|seconds| share.is_due(seconds));
        assert_eq!(due, [false, false, true, false, false, true, false, true]);
        let text = |whole, is_partial| {
            compiling_text(&BuildProgress {
                objects: 312,
                whole,
                is_partial,
                seconds: 80,
            })
        };
        let texts = [
            text(None, false),
            text(Some(1743), false),
            text(Some(1743), true),
        ];
        insta::assert_snapshot!(texts.join("\n"), @"
        312 objects compiled after 80 s
        312 objects of about 1743 compiled after 80 s
        312 objects (a whole build has 1743) compiled after 80 s
        ");
    }

    #[test]
    fn durations_are_formatted_for_people() {
        assert_eq!(
            [0.0, 40.4, 100.0, 3599.0, 7500.0].map(span),
            ["1 s", "40 s", "2 min", "60 min", "2 h 5 min"]
        );
    }
}
