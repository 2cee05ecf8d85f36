//! Converts a workload's frames to its outcome and samples.

use std::collections::BTreeMap;

use model::{FailureReason, Outcome, Stage, SubjectFailure};
use wire::{Frame, Stream};

const SAMPLES_MAX: usize = 100_000;

/// A complete stream with invalid content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IngestError {
    /// No frame says how the workload ended.
    #[error("the agent said nothing of how the workload ended")]
    NoResult,
    /// The number of iterations differs from the requested one.
    #[error("{found} iterations came, {expected} were asked for")]
    Iterations { found: usize, expected: usize },
}

/// Returns how a workload ended and its samples: ticks per operation, one per iteration.
///
/// # Errors
/// If the stream has no result, or another number of iterations than requested.
pub fn outcome(
    stream: &Stream,
    operations: u64,
    iterations: u32,
) -> Result<(Outcome, Vec<f64>), IngestError> {
    let failed = |reason| {
        let failure = SubjectFailure {
            stage: Stage::Workload,
            reason,
            console_tail: String::new(),
        };
        Ok((Outcome::Failed(failure), Vec::new()))
    };
    for frame in &stream.frames {
        match frame {
            Frame::Samples(ticks) => {
                let expected = usize::try_from(iterations)
                    .unwrap_or(SAMPLES_MAX)
                    .min(SAMPLES_MAX);
                if ticks.len() != expected {
                    return Err(IngestError::Iterations {
                        found: ticks.len(),
                        expected,
                    });
                }
                return Ok((
                    Outcome::Completed,
                    ticks
                        .iter()
                        .map(|&t| t as f64 / operations.max(1) as f64)
                        .collect(),
                ));
            }
            Frame::Unsupported(why) => return Ok((Outcome::Unsupported(why.clone()), Vec::new())),
            Frame::Failed(what) => return failed(FailureReason::WorkloadFailed(what.clone())),
            Frame::Died(how) => return failed(FailureReason::AgentDied(how.clone())),
            Frame::Hello { .. } | Frame::File { .. } | Frame::End => {}
        }
    }
    Err(IngestError::NoResult)
}

/// The prefix of files with a row's numbers.
const ROW: &str = "row ";

/// Returns the additional measurements of a workload: a number for each iteration, by row name.
/// Skips files that are no list of numbers.
#[must_use]
pub fn rows(stream: &Stream) -> BTreeMap<String, Vec<u64>> {
    let mut texts: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for frame in &stream.frames {
        if let Frame::File { name, bytes } = frame
            && let Some(name) = name.strip_prefix(ROW)
        {
            texts.entry(name.to_owned()).or_default().extend(bytes);
        }
    }
    texts
        .into_iter()
        .filter_map(|(name, bytes)| Some((name, parse_numbers(&bytes)?)))
        .collect()
}

fn parse_numbers(bytes: &[u8]) -> Option<Vec<u64>> {
    let text = std::str::from_utf8(bytes).ok()?;
    text.split(',')
        .map(|number| number.parse().ok())
        .collect::<Option<Vec<u64>>>()
}

#[cfg(test)]
mod tests {
    use super::{IngestError, outcome, rows};
    use model::Outcome;
    use wire::{Frame, Stream};

    fn stream(frame: Frame) -> Stream {
        Stream {
            frames: vec![Frame::Hello { agent: "0".into() }, frame],
        }
    }

    #[test]
    fn ticks_become_costs_per_operation() {
        let end = outcome(
            &stream(Frame::Samples(vec![6_540_000, 6_520_000])),
            20_000,
            2,
        );
        assert_eq!(end, Ok((Outcome::Completed, vec![327.0, 326.0])));
    }

    #[test]
    fn wrong_count_or_missing_result_is_an_error() {
        let few = outcome(&stream(Frame::Samples(vec![1])), 1, 16);
        assert_eq!(
            few,
            Err(IngestError::Iterations {
                found: 1,
                expected: 16
            })
        );
        assert_eq!(
            outcome(&Stream::default(), 1, 16),
            Err(IngestError::NoResult)
        );
    }

    #[test]
    fn sample_rows_are_joined_and_nonsense_is_skipped() {
        let file = |name: &str, text: &str| Frame::File {
            name: name.into(),
            bytes: text.into(),
        };
        let frames = vec![
            file("row swapin", "1,2"),
            file("row swapin", "3"),
            file("row odd", "x"),
            file("other", "4"),
        ];
        let found = rows(&Stream { frames });
        assert_eq!(
            found.into_iter().collect::<Vec<_>>(),
            [("swapin".to_owned(), vec![1, 23])]
        );
    }

    #[test]
    fn agent_messages_are_kept() {
        let (unsupported, _) = outcome(&stream(Frame::Unsupported("no THP".into())), 1, 1).unwrap();
        assert_eq!(unsupported, Outcome::Unsupported("no THP".into()));
        for (frame, reason) in [
            (
                Frame::Failed("open: ENOENT".into()),
                "workload failed: open: ENOENT",
            ),
            (
                Frame::Died("killed by signal 11".into()),
                "agent died: killed by signal 11",
            ),
        ] {
            let (outcome, samples) = outcome(&stream(frame), 1, 1).unwrap();
            assert!(
                matches!(outcome, Outcome::Failed(failure) if failure.reason.to_string() == reason)
            );
            assert!(samples.is_empty());
        }
    }
}
