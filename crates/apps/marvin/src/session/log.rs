//! The log of services: each event with its time, level, job and machine, as text or as JSON.
//! Without a log, as for a command that a person types, the same texts are plain lines.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{Args, ValueEnum};
use model::{sanitize_line, sanitize_text};
use tracing::dispatcher::{self, Dispatch};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;

/// Options of commands that can run as services.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct LogOptions {
    /// Log each event with time, level, job and machine, as text or as JSON [default: text if the
    /// command runs until it is stopped, else plain lines]
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub(crate) log: Option<LogFormat>,

    /// Log only events of this level or a more severe one [default: info, or warn with --quiet]
    #[arg(long, value_name = "LEVEL", value_enum)]
    pub(crate) log_level: Option<LogLevel>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// How much an event matters, the least last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevel {
    Error,
    Warn,
    Info,
}

/// What an event is about.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct About<'a> {
    pub(crate) job: Option<u64>,
    pub(crate) machine: Option<&'a str>,
}

impl<'a> About<'a> {
    pub(crate) fn machine(name: &'a str) -> Self {
        Self {
            job: None,
            machine: Some(name),
        }
    }
}

/// Whether this process has a log.
static IS_ON: AtomicBool = AtomicBool::new(false);

/// Starts the log of this process, if its command is a service or the options ask for a log.
pub(crate) fn start_log(options: &LogOptions, is_service: bool, is_quiet: bool) {
    if !is_service && options.log.is_none() && options.log_level.is_none() {
        return;
    }
    let least = match options.log_level {
        Some(LogLevel::Error) => LevelFilter::ERROR,
        Some(LogLevel::Warn) => LevelFilter::WARN,
        None if is_quiet => LevelFilter::WARN,
        Some(LogLevel::Info) | None => LevelFilter::INFO,
    };
    let format = options.log.unwrap_or(LogFormat::Text);
    // A process has one log, so that an error means that it is on.
    dispatcher::set_global_default(make_log(format, least, std::io::stderr)).ok();
    IS_ON.store(true, Ordering::Relaxed);
}

pub(crate) fn is_log_on() -> bool {
    IS_ON.load(Ordering::Relaxed)
}

/// Writes an event to the log, or a plain line to standard error if there is no log; made safe, and
/// a closed output is ignored.
pub(crate) fn write_event(level: LogLevel, about: About<'_>, text: &str) {
    if is_log_on() {
        log_event(level, about, text);
    } else {
        drop(writeln!(std::io::stderr(), "{}", sanitize_text(text)));
    }
}

fn make_log<W>(format: LogFormat, least: LevelFilter, writer: W) -> Dispatch
where
    W: for<'writer> MakeWriter<'writer> + Send + Sync + 'static,
{
    let log = tracing_subscriber::fmt()
        .with_max_level(least)
        .with_target(false)
        .with_ansi(false)
        // It would panic where standard error is closed, or its disk is full.
        .log_internal_errors(false)
        .with_writer(writer);
    match format {
        LogFormat::Text => log.into(),
        LogFormat::Json => log
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .with_span_list(false)
            .into(),
    }
}

fn log_event(level: LogLevel, about: About<'_>, text: &str) {
    let line = in_one_line(text);
    let job = about.job;
    let machine = about.machine.map(sanitize_line);
    let machine = machine.as_deref();
    match level {
        LogLevel::Error => tracing::error!(job, machine, "{line}"),
        LogLevel::Warn => tracing::warn!(job, machine, "{line}"),
        LogLevel::Info => tracing::info!(job, machine, "{line}"),
    }
}

/// Returns a text of several lines as one: each line of a log is an event.
fn in_one_line(text: &str) -> String {
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let lines: Vec<String> = text
        .lines()
        .map(|line| sanitize_line(line.trim()))
        .filter(|line| !line.is_empty())
        .collect();
    lines.join("; ")
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use subprocess::Shared;
    use tracing::level_filters::LevelFilter;

    use super::{About, LogFormat, LogLevel, log_event, make_log};

    #[derive(Clone, Default)]
    struct Written(Arc<Shared<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Logs three events, and returns the lines with their times checked and masked.
    fn log(format: LogFormat, least: LevelFilter) -> String {
        let written = Written::default();
        let writer = written.clone();
        let log = make_log(format, least, move || writer.clone());
        tracing::dispatcher::with_default(&log, || {
            let job = About {
                job: Some(3),
                machine: Some("testbox"),
            };
            log_event(LogLevel::Info, job, "deb:6.12, micro");
            log_event(LogLevel::Warn, About::machine("testbox"), "is \"off\"");
            let text =
                "error: cannot write\x1b[2J: disk full\n  because: no room\nhint: marvin gc\n";
            log_event(LogLevel::Error, About::default(), text);
        });
        let bytes = written.0.lock().clone();
        let text = String::from_utf8(bytes).unwrap();
        let masked = text.lines().map(|line| {
            let at = line.find("20").unwrap();
            let (time, rest) = line[at..].split_at(27);
            let is_digit = |at: usize| time.as_bytes()[at].is_ascii_digit();
            assert!(
                (0..27).all(|at| is_digit(at) != [4, 7, 10, 13, 16, 19, 26].contains(&at))
                    && time.ends_with('Z'),
                "{time}"
            );
            format!("{}TIME{rest}\n", &line[..at])
        });
        masked.collect()
    }

    #[test]
    fn text_has_time_level_job_and_machine() {
        insta::assert_snapshot!(log(LogFormat::Text, LevelFilter::INFO), @r#"
        TIME  INFO deb:6.12, micro job=3 machine="testbox"
        TIME  WARN is "off" machine="testbox"
        TIME ERROR cannot write�[2J: disk full; because: no room; hint: marvin gc
        "#);
    }

    #[test]
    fn json_has_an_event_in_each_line() {
        insta::assert_snapshot!(log(LogFormat::Json, LevelFilter::INFO), @r#"
        {"timestamp":"TIME","level":"INFO","message":"deb:6.12, micro","job":3,"machine":"testbox"}
        {"timestamp":"TIME","level":"WARN","message":"is \"off\"","machine":"testbox"}
        {"timestamp":"TIME","level":"ERROR","message":"cannot write�[2J: disk full; because: no room; hint: marvin gc"}
        "#);
    }

    #[test]
    fn level_leaves_out_what_matters_less() {
        let text = log(LogFormat::Text, LevelFilter::ERROR);
        assert!(
            text.lines().count() == 1 && text.contains("ERROR"),
            "{text}"
        );
    }
}
