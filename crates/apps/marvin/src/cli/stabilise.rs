//! `marvin stabilise`.

use std::path::PathBuf;

use clap::Args;

use super::{EXACT_SMP, Format, SourceWords, margin, whole};
use crate::completion;

const EXAMPLES: &str = "Examples:
  marvin stabilise v6.12.107 v6.12.117 --tree linux --candidates v6.16..v6.18
  marvin stabilise sle15-sp3 v5.14 --tree linux --candidates queue/ --candidates fixes.mbox --budget 8h
  marvin stabilise deb-src:6.12.107 deb-src:6.12.113 --candidates deb-src:6.12.113..deb-src:6.12.117
  marvin stabilise v6.12.117 stable/linux-6.12.y --tree linux --candidates queue-6.12/ --check --mail queue.txt";

/// `marvin stabilise`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Stabilise {
    /// Kernel with the performance to return to: a commit, or deb-src:VERSION
    pub(crate) baseline: String,

    /// Kernel to repair
    pub(crate) new: String,

    /// Patches that may repair it: commits OLDER..NEWER, a mailbox, or a folder of patches; may be
    /// given several times
    #[arg(long, value_name = "SOURCE", required = true)]
    pub(crate) candidates: Vec<String>,

    #[command(flatten)]
    pub(crate) sources: SourceWords,

    /// Suite to measure
    #[arg(long, value_name = "SUITE", default_value = "micro", add = completion::suite())]
    pub(crate) suite: String,

    /// Workloads of the suite, by name or group, with commas [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', add = completion::workload())]
    pub(crate) workload: Vec<String>,

    /// Machine on which one run is proof: exact, or exact-smp for the suite contention
    #[arg(long, value_name = "MACHINE", default_value = "exact")]
    pub(crate) on: String,

    /// Processors of exact-smp [default: 2]
    #[arg(long, value_name = "N", value_parser = whole::<u32>(2, 4))]
    pub(crate) cpus: Option<u32>,

    /// Number of seeds per kernel; a difference counts only if all seeds show it
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = whole::<u64>(1, 100))]
    pub(crate) seeds: u64,

    /// Threshold in percent: smaller differences count as same [default: that of the metric; 1 for
    /// suite micro]
    #[arg(long, value_name = "PERCENT", value_parser = margin, allow_negative_numbers = true)]
    pub(crate) margin: Option<f64>,

    /// Stop the search after this time, such as 8h or 30m, with the series by then; the same
    /// command continues
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) budget: Option<u64>,

    /// Try each new candidate alone on NEW, and report what it brings; candidates of earlier
    /// checks are left out
    #[arg(long, conflicts_with = "format")]
    pub(crate) check: bool,

    /// Print the size of the search and its estimated cost, and measure nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Measure again, even if results exist
    #[arg(long)]
    pub(crate) force: bool,

    /// Run up to N machines in parallel [default: 2, or 1 on a host with one processor]
    #[arg(long, value_name = "N", value_parser = whole::<u16>(1, 64))]
    pub(crate) jobs: Option<u16>,

    /// Also write the series with its cover letter into a new or empty folder, as mails for git
    /// send-email
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["check", "dry_run"])]
    pub(crate) patches: Option<PathBuf>,

    /// With --check: also write the report as a mail
    #[arg(long, value_name = "FILE", requires = "check")]
    pub(crate) mail: Option<PathBuf>,

    /// Format
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    /// Write the report to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Longest budget (s).
const YEAR_S: u64 = 366 * 86_400;

/// The machines on which a stabilisation can run.
pub(crate) const STABILISE_ON: [&str; 2] = ["exact", EXACT_SMP];

/// Parses a time such as `8h`, `30m` or `90s`; in seconds.
fn time(text: &str) -> Result<u64, String> {
    let wrong = || "expected a time such as 8h, 30m or 90s".to_owned();
    let (number, factor) = match text.char_indices().last() {
        Some((at, 'h')) => (&text[..at], 3600),
        Some((at, 'm')) => (&text[..at], 60),
        Some((at, 's')) => (&text[..at], 1),
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let seconds = number.checked_mul(factor).ok_or_else(wrong)?;
    if (1..=YEAR_S).contains(&seconds) {
        Ok(seconds)
    } else {
        Err("expected a time from 1s to a year".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::time;

    #[test]
    fn times_have_a_unit() {
        assert_eq!(
            [time("8h"), time("30m"), time("90s")],
            [Ok(28_800), Ok(1800), Ok(90)]
        );
        for wrong in [
            "",
            "8",
            "h",
            "-1h",
            "0m",
            "1d",
            "1.5h",
            "99999999999999999999h",
            "9000h",
            "ü",
        ] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
