//! The result stream: one frame per line, between other lines of the console.
//!
//! A line is `#M<protocol> <sequence> <kind> <crc> <payload>`; the checksum covers the job's id, so
//! that frames of other jobs are refused. Sequence numbers count up from 0; [`Frame::End`] is last.

use crate::PROTOCOL;
use crate::checksum::crc32;
use crate::escape::{escape, unescape};

/// The mark at the beginning of every frame's line.
pub const MARK: &str = "#M";

/// Most frames of a stream.
const FRAMES_MAX: usize = 65_536;
/// Longest parsed line, in bytes: the samples of a job with many iterations are one.
const LINE_MAX: usize = 64 << 10;

/// One message of the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// The agent runs; sent at start, outside any job (job id 0), and again at the start of a job.
    Hello {
        /// Version of the agent.
        agent: String,
    },
    /// A piece of a file of the guest, raw. Pieces of one name follow one another.
    File {
        /// Its path in the guest.
        name: String,
        /// The next bytes.
        bytes: Vec<u8>,
    },
    /// Measured iterations, in ticks of the job's clock, in order.
    Samples(Vec<u64>),
    /// The kernel lacks a feature that the workload needs.
    Unsupported(String),
    /// The workload failed; the text says what failed, and how.
    Failed(String),
    /// The process that ran the workload was killed or left early.
    Died(String),
    /// The end of the stream.
    End,
}

/// A decoded stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stream {
    /// The frames in order, without the final end.
    pub frames: Vec<Frame>,
}

/// An invalid stream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// It has no frame.
    #[error("it holds no frame")]
    Empty,
    /// It stops before its end frame.
    #[error("it is cut after frame {0}")]
    Cut(usize),
    /// A line begins like a frame but is none, or its checksum is wrong.
    #[error("frame {0} is garbled or belongs to another job")]
    Garbled(usize),
    /// A frame is missing or comes twice.
    #[error("frame {expected} is missing, frame {found} came instead")]
    Sequence {
        /// The expected sequence number.
        expected: usize,
        /// The received one.
        found: usize,
    },
    /// Frames of another protocol version.
    #[error("it speaks protocol {0}, this host speaks {PROTOCOL}")]
    Version(String),
    /// More frames than a job can send, or frames after the end.
    #[error("it goes on after its end or beyond {FRAMES_MAX} frames")]
    Endless,
}

/// Returns the frame as one line with its newline.
#[must_use]
pub fn encode(job: u64, sequence: usize, frame: &Frame) -> String {
    let (kind, payload) = match frame {
        Frame::Hello { agent } => ("hello", escape(agent.as_bytes())),
        Frame::File { name, bytes } => (
            "file",
            format!("{}:{}", escape(name.as_bytes()), escape(bytes)),
        ),
        Frame::Samples(ticks) => (
            "samples",
            ticks
                .iter()
                .map(u64::to_string)
                .collect::<Vec<_>>()
                .join(","),
        ),
        Frame::Unsupported(why) => ("unsupported", escape(why.as_bytes())),
        Frame::Failed(why) => ("failed", escape(why.as_bytes())),
        Frame::Died(how) => ("died", escape(how.as_bytes())),
        Frame::End => ("end", String::new()),
    };
    format!(
        "{MARK}{PROTOCOL} {sequence} {kind} {:08x} {payload}\n",
        seal(job, sequence, kind, &payload)
    )
}

fn seal(job: u64, sequence: usize, kind: &str, payload: &str) -> u32 {
    let head = format!("{job:016x} {sequence} {kind} ");
    crc32(&[head.as_bytes(), payload.as_bytes()])
}

/// Returns the frames of a job's stream; skips other lines of the console.
///
/// # Errors
/// If the stream is empty, cut, garbled, replayed, out of order, endless or of another version.
pub fn decode(bytes: &[u8], job: u64) -> Result<Stream, StreamError> {
    let mut frames = Vec::new();
    let mut ended = false;
    for line in marked_lines(bytes) {
        // If a guest boots and runs its job at once, the agent's hello comes before the job's
        // stream.
        if job != 0 && frames.is_empty() && matches!(parse(line, 0, 0), Ok(Frame::Hello { .. })) {
            continue;
        }
        if ended || frames.len() >= FRAMES_MAX {
            return Err(StreamError::Endless);
        }
        match parse(line, job, frames.len())? {
            Frame::End => ended = true,
            frame => frames.push(frame),
        }
    }
    match (ended, frames.len()) {
        (true, _) => Ok(Stream { frames }),
        (false, 0) => Err(StreamError::Empty),
        (false, count) => Err(StreamError::Cut(count - 1)),
    }
}

/// Returns the version of the agent that sent a hello outside any job, if one did.
#[must_use]
pub fn find_hello(bytes: &[u8]) -> Option<String> {
    marked_lines(bytes).find_map(|line| match parse(line, 0, 0) {
        Ok(Frame::Hello { agent }) => Some(agent),
        _ => None,
    })
}

/// Returns the guest's error outside any job, if it sent one.
#[must_use]
pub fn find_last_words(bytes: &[u8]) -> Option<String> {
    marked_lines(bytes)
        .flat_map(|line| (0..2).map(move |n| parse(line, 0, n)))
        .find_map(|frame| match frame {
            Ok(Frame::Failed(why)) => Some(why),
            _ => None,
        })
}

fn marked_lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes
        .split(|&b| b == b'\n')
        .filter(|line| line.starts_with(MARK.as_bytes()))
}

fn parse(line: &[u8], job: u64, expected: usize) -> Result<Frame, StreamError> {
    let garbled = StreamError::Garbled(expected);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let text = match std::str::from_utf8(line) {
        Ok(text) if line.len() <= LINE_MAX => text,
        _ => return Err(garbled),
    };
    let mut words = text[MARK.len()..].splitn(5, ' ');
    let mut word = || words.next().ok_or(garbled.clone());
    let (version, sequence, kind, crc, payload) = (word()?, word()?, word()?, word()?, word()?);
    if version != PROTOCOL.to_string() {
        return Err(StreamError::Version(version.chars().take(20).collect()));
    }
    let found: usize = sequence.parse().map_err(|_| garbled.clone())?;
    if u32::from_str_radix(crc, 16) != Ok(seal(job, found, kind, payload)) {
        return Err(garbled);
    }
    if found != expected {
        return Err(StreamError::Sequence { expected, found });
    }
    frame(kind, payload).ok_or(garbled)
}

fn frame(kind: &str, payload: &str) -> Option<Frame> {
    let text = |word: &str| String::from_utf8(unescape(word)?).ok();
    Some(match kind {
        "hello" => Frame::Hello {
            agent: text(payload)?,
        },
        "file" => {
            // A colon within the name is not escaped, but Marvin's paths have none.
            let (name, bytes) = payload.split_once(':')?;
            Frame::File {
                name: text(name)?,
                bytes: unescape(bytes)?,
            }
        }
        "samples" => Frame::Samples(
            payload
                .split(',')
                .map(|tick| tick.parse().ok())
                .collect::<Option<_>>()?,
        ),
        "unsupported" => Frame::Unsupported(text(payload)?),
        "failed" => Frame::Failed(text(payload)?),
        "died" => Frame::Died(text(payload)?),
        "end" => Frame::End,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::{Frame, StreamError, decode, encode, find_hello, find_last_words};

    const JOB: u64 = 42;

    fn frames() -> Vec<Frame> {
        vec![
            Frame::Hello {
                agent: "0.1.0".into(),
            },
            Frame::File {
                name: "/proc/version".into(),
                bytes: b"Linux: 100%\n".to_vec(),
            },
            Frame::Samples(vec![6_531_004, 6_530_001]),
            Frame::Unsupported("no huge pages".into()),
            Frame::Failed("open: ENOENT".into()),
            Frame::Died("signal 11".into()),
        ]
    }

    fn lines() -> Vec<String> {
        frames()
            .iter()
            .chain([&Frame::End])
            .enumerate()
            .map(|(n, frame)| encode(JOB, n, frame))
            .collect()
    }

    fn decoded(lines: &[String]) -> Result<Vec<Frame>, StreamError> {
        decode(lines.concat().as_bytes(), JOB).map(|stream| stream.frames)
    }

    #[test]
    fn stream_is_decoded_between_console_lines() {
        assert_eq!(decoded(&lines()), Ok(frames()));
        let noisy = format!(
            "[ 0.1] Linux\r\n{}[ 9.9] bye",
            lines().join("[ 1.0] noise\r\n").replace('\n', "\r\n")
        );
        assert_eq!(
            decode(noisy.as_bytes(), JOB).map(|s| s.frames),
            Ok(frames())
        );
    }

    #[test]
    fn a_cut_stream_says_where() {
        let lines = lines();
        assert_eq!(decoded(&[]), Err(StreamError::Empty));
        assert_eq!(decoded(&lines[..3]), Err(StreamError::Cut(2)));
        let mut half = lines.clone();
        half[6].truncate(12);
        assert_eq!(decoded(&half), Err(StreamError::Garbled(6)));
    }

    #[test]
    fn another_jobs_frames_and_repeated_frames_are_refused() {
        let replay = decode(lines().concat().as_bytes(), JOB + 1);
        assert_eq!(replay, Err(StreamError::Garbled(0)));
        let mut twice = lines();
        twice.insert(2, twice[1].clone());
        assert_eq!(
            decoded(&twice),
            Err(StreamError::Sequence {
                expected: 2,
                found: 1
            })
        );
        let mut after = lines();
        after.push(encode(JOB, 7, &Frame::End));
        assert_eq!(decoded(&after), Err(StreamError::Endless));
    }

    #[test]
    fn every_flipped_bit_of_a_frame_is_noticed() {
        let whole = lines().concat().into_bytes();
        for at in 0..whole.len() - 1 {
            let mut bad = whole.clone();
            bad[at] ^= 4;
            assert_ne!(
                decode(&bad, JOB).map(|s| s.frames),
                Ok(frames()),
                "byte {at}"
            );
        }
    }

    #[test]
    fn another_version_is_named() {
        let line = lines()[0].replace("#M1", "#M7");
        assert_eq!(
            decode(line.as_bytes(), JOB),
            Err(StreamError::Version("7".into()))
        );
    }

    #[test]
    fn hello_outside_a_job_is_accepted_first_only() {
        let hello = encode(
            0,
            0,
            &Frame::Hello {
                agent: "0.1.0".into(),
            },
        );
        let mut lines = lines();
        lines.insert(0, hello.clone());
        assert_eq!(decoded(&lines), Ok(frames()));
        lines.insert(3, hello);
        assert!(decoded(&lines).is_err());
    }

    #[test]
    fn hello_outside_a_job_is_found() {
        let console = format!(
            "noise\n{}",
            encode(
                0,
                0,
                &Frame::Hello {
                    agent: "0.1.0".into()
                }
            )
        );
        assert_eq!(find_hello(console.as_bytes()), Some("0.1.0".into()));
        assert_eq!(find_hello(b"#M1 garbage"), None);
        let failed = Frame::Failed("init: no ports".into());
        assert_eq!(find_last_words(console.as_bytes()), None);
        for sequence in 0..2 {
            let console = format!("{console}{}", encode(0, sequence, &failed));
            assert_eq!(
                find_last_words(console.as_bytes()),
                Some("init: no ports".into())
            );
        }
    }

    proptest::proptest! {
        #[test]
        fn garbage_never_panics(bytes: Vec<u8>, tail: Vec<u8>) {
            let mut line = b"#M1 0 ".to_vec();
            line.extend(&tail);
            assert!(decode(&bytes, 0).is_err());
            assert!(decode(&line, 0).is_err());
        }

        #[test]
        fn samples_and_files_come_back(
            ticks: Vec<u64>,
            bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..512),
        ) {
            proptest::prop_assume!(!ticks.is_empty() && ticks.len() <= 64);
            let frames = [Frame::Samples(ticks), Frame::File { name: "/x".into(), bytes }, Frame::End];
            let text: String = frames.iter().enumerate().map(|(n, f)| encode(7, n, f)).collect();
            proptest::prop_assert_eq!(decode(text.as_bytes(), 7).unwrap().frames, &frames[..2]);
        }
    }
}
