//! Progress on standard error: a bar on a terminal, lines elsewhere, nothing when told to be quiet.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use kernel::Step;
use lab::Event;

use crate::say;

/// Shows what happens.
#[derive(Debug)]
pub(crate) enum Progress {
    /// On a terminal.
    Bar(ProgressBar),
    /// In a pipe or a log.
    Lines,
    /// Not at all.
    Quiet,
}

impl Progress {
    pub(crate) fn new(quiet: bool) -> Self {
        if quiet {
            Self::Quiet
        } else if std::io::stderr().is_terminal() {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.enable_steady_tick(Duration::from_millis(200));
            Self::Bar(bar)
        } else {
            Self::Lines
        }
    }

    /// Shows a step on the way to a build.
    pub(crate) fn step(&self, name: &str, step: &Step) {
        match step {
            Step::Resolving => self.message(&format!("{name}: looking it up")),
            Step::Downloading { package, bytes } => {
                self.line(&format!("{name}: downloading {package}, {:.1} MB", *bytes as f64 / 1e6));
            }
            Step::Unpacking { what } => self.message(&format!("{name}: unpacking {what}")),
            Step::Building { what, estimate_s } => {
                let last = estimate_s.map_or_else(String::new, |seconds| format!(", the last one took {seconds} s"));
                self.line(&format!("{name}: building {what}{last}"));
            }
            Step::NotKept { what, options } => {
                self.line(&format!("{name}: {what} has otherwise: {}", options.join(" ")));
            }
            Step::Cached { what } => self.message(&format!("{name}: {what} is there already")),
        }
    }

    /// Shows an event of the lab.
    pub(crate) fn event(&self, event: &Event) {
        match event {
            Event::Planned { jobs, reused } => self.planned(*jobs, *reused),
            Event::Booting { version, seed } => self.line(&format!("booting {version}, seed {seed}")),
            Event::Ready { without_snapshot: None, .. } | Event::Stored(_) => {}
            Event::Ready { version, seed, without_snapshot: Some(why) } => {
                self.line(&format!("{version}, seed {seed}: no snapshot ({why}): each job boots"));
            }
            Event::BootFailed { version, seed, failure } => {
                self.line(&format!("{version}, seed {seed}: {} ({} stage)", failure.reason, failure.stage));
            }
            Event::Done { version, seed, workload } => self.done(&format!("{version} seed {seed} {workload}")),
            Event::NoProfile { version, workload, why } => {
                let what = workload.as_ref().map_or_else(String::new, |workload| format!(" {workload}"));
                self.line(&format!("{version}{what}: no profile: {why}"));
            }
            Event::Dumped { version, of, bytes: Ok(bytes) } => {
                self.line(&format!("{version} {of}: its memory is kept, {:.1} MB", *bytes as f64 / 1e6));
            }
            Event::Dumped { version, of, bytes: Err(why) } => {
                self.line(&format!("{version} {of}: no memory dump: {why}"));
            }
            Event::LeftOut => self.done("left out"),
            Event::Retrying { error } => self.line(&format!("trying again: {error}")),
        }
    }

    /// Says something that is worth a line of its own.
    pub(crate) fn say(&self, text: &str) {
        self.line(text);
    }

    /// Shows that so many jobs are done again, and what for.
    pub(crate) fn again(&self, what: &str, jobs: usize) {
        self.message(&format!("{what} {jobs} jobs"));
        if let Self::Bar(bar) = self {
            bar.reset();
            bar.set_length(jobs as u64);
        }
    }

    /// Shows that one of these is done.
    pub(crate) fn one_more(&self, what: &str) {
        self.done(what);
    }

    /// Clears the bar.
    pub(crate) fn end(&self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }

    fn planned(&self, jobs: usize, reused: usize) {
        match (jobs, reused) {
            (0, reused) => self.message(&format!("all {reused} results are there already")),
            (jobs, 0) => self.message(&format!("{jobs} jobs")),
            (jobs, reused) => self.message(&format!("{jobs} jobs; {reused} results are there already")),
        }
        if let Self::Bar(bar) = self {
            let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} (about {eta} left) {msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.set_length(jobs as u64);
        }
    }

    fn done(&self, what: &str) {
        if let Self::Bar(bar) = self {
            bar.set_message(what.to_owned());
            bar.inc(1);
        }
    }

    /// Worth a line of its own.
    fn line(&self, text: &str) {
        match self {
            Self::Bar(bar) => bar.println(text),
            Self::Lines => say(text),
            Self::Quiet => {}
        }
    }

    /// Worth showing until the next one comes.
    fn message(&self, text: &str) {
        match self {
            Self::Bar(bar) => bar.set_message(text.to_owned()),
            Self::Lines => say(text),
            Self::Quiet => {}
        }
    }
}
