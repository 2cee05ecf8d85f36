//! Estimates the processor seconds of a plan, from earlier runs or from defaults. Pure:
//! `forecast.rs` has the clock and measures; the lab stores the durations with each run.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::forecast::Took;

/// The artifact with a run's durations: lines of name, wall seconds and processor seconds,
/// separated by tabs. Older runs lack the last field.
pub(crate) const TIMES: &str = "times";
/// Name of a boot in that artifact.
pub(crate) const BOOT: &str = "boot";

/// Default duration of a boot (seconds).
const BOOT_DEFAULT_S: f64 = 10.0;
/// Default duration of a job (seconds).
const JOB_DEFAULT_S: f64 = 3.0;
/// Larger values in a stored file are ignored (seconds).
const LONGEST_S: f64 = 86_400.0;

/// Lower limit of the rate (processor seconds per second), so that no estimate is endless.
const RATE_MIN: f64 = 0.001;

/// How long a plan will take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    pub seconds: f64,
    /// Jobs and boots with a duration from earlier runs.
    pub known: usize,
    /// Jobs and boots with a default duration.
    pub guessed: usize,
}

/// Durations of earlier runs by name (seconds).
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Times(BTreeMap<String, Seconds>);

#[derive(Debug, Clone, PartialEq, Default)]
struct Seconds {
    processor: Vec<f64>,
    /// From older runs, which lack processor seconds.
    wall: Vec<f64>,
}

/// The sum of boots and jobs.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Work {
    pub(crate) processor_s: f64,
    /// Jobs and boots with a duration from earlier runs.
    known: usize,
    /// Jobs and boots with a default duration.
    guessed: usize,
}

impl Times {
    /// Adds the durations of a run; skips invalid lines.
    pub(crate) fn add(&mut self, text: &str) {
        for line in text.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            match fields[..] {
                [name, wall] => {
                    self.0
                        .entry(name.to_owned())
                        .or_default()
                        .wall
                        .extend(parse_seconds(wall));
                }
                [name, _, processor] => {
                    self.0
                        .entry(name.to_owned())
                        .or_default()
                        .processor
                        .extend(parse_seconds(processor));
                }
                _ => {}
            }
        }
    }

    /// Returns the median duration of a boot or job.
    fn median_s(&self, name: &str) -> Option<f64> {
        let Seconds { processor, wall } = self.0.get(name)?;
        let mut seconds = if processor.is_empty() {
            wall.clone()
        } else {
            processor.clone()
        };
        seconds.sort_by(f64::total_cmp);
        seconds.get(seconds.len() / 2).copied()
    }

    /// Returns the expected processor seconds of a boot or job.
    pub(crate) fn expected_s(&self, name: &str) -> f64 {
        self.median_s(name).unwrap_or(if name == BOOT {
            BOOT_DEFAULT_S
        } else {
            JOB_DEFAULT_S
        })
    }

    /// Sums up these boots and jobs.
    pub(crate) fn work<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Work {
        let mut work = Work::default();
        for name in names {
            work.processor_s += self.expected_s(name);
            *(if self.median_s(name).is_some() {
                &mut work.known
            } else {
                &mut work.guessed
            }) += 1;
        }
        work
    }
}

fn parse_seconds(text: &str) -> Option<f64> {
    text.parse::<f64>()
        .ok()
        .filter(|s| (0.0..LONGEST_S).contains(s))
}

impl Work {
    /// Returns how many of the machines can work in parallel.
    pub(crate) fn machines(&self, most: usize) -> usize {
        most.clamp(1, (self.known + self.guessed).max(1))
    }

    /// Estimates the duration if the host delivers `rate` processor seconds per second, which it
    /// does only while its load stays as it is: progress does not print it.
    pub(crate) fn estimate_at(&self, rate: f64) -> Estimate {
        let seconds = self.processor_s / rate.max(RATE_MIN);
        Estimate {
            seconds,
            known: self.known,
            guessed: self.guessed,
        }
    }
}

/// Formats durations as they are stored.
pub(crate) fn to_text(times: &[Took]) -> String {
    let mut text = String::new();
    for Took {
        name,
        wall_s,
        processor_s,
    } in times
    {
        // Writing into a string cannot fail.
        writeln!(text, "{name}\t{wall_s:.3}\t{processor_s:.3}").ok();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{BOOT, Estimate, Times, to_text};
    use crate::forecast::Took;

    fn took(name: &str, wall_s: f64, processor_s: f64) -> Took {
        Took {
            name: name.to_owned(),
            wall_s,
            processor_s,
        }
    }

    #[test]
    fn times_come_back_from_their_text() {
        let mut times = Times::default();
        times.add(&to_text(&[
            took(BOOT, 40.0, 4.0),
            took("getppid", 9.0, 0.5),
        ]));
        times.add("getppid\t7\t1.5\ngetppid\t7\t0.75\nfork\t-1\nfork\tNaN\nfork\t1\t1e300\nfork\nnonsense\n\t\t\t");
        assert_eq!(
            (
                times.median_s("getppid"),
                times.median_s(BOOT),
                times.median_s("fork")
            ),
            (Some(0.75), Some(4.0), None)
        );
    }

    #[test]
    fn older_times_count_until_there_are_newer() {
        let mut times = Times::default();
        times.add("getppid\t9\n");
        assert_eq!(times.median_s("getppid"), Some(9.0));
        times.add("getppid\t9\t2\n");
        assert_eq!(times.median_s("getppid"), Some(2.0));
    }

    #[test]
    fn work_tells_known_from_guessed() {
        let mut times = Times::default();
        let names = [BOOT, "getppid", "getppid"];
        let estimate = |times: &Times, rate| times.work(names).estimate_at(rate);
        assert_eq!(
            estimate(&times, 1.0),
            Estimate {
                seconds: 16.0,
                known: 0,
                guessed: 3
            }
        );
        times.add("boot\t8\t4\ngetppid\t2\t1\n");
        assert_eq!(
            estimate(&times, 1.0),
            Estimate {
                seconds: 6.0,
                known: 3,
                guessed: 0
            }
        );
        assert_eq!(
            estimate(&times, 2.0),
            Estimate {
                seconds: 3.0,
                known: 3,
                guessed: 0
            }
        );
        assert_eq!(times.work(names).machines(64), 3);
        assert_eq!(
            times.work([]).estimate_at(2.0),
            Estimate {
                seconds: 0.0,
                known: 0,
                guessed: 0
            }
        );
    }
}
