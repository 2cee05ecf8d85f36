//! Builds in little memory, after multibuild and kernbench: compilations without what a compiler
//! computes, and a link in much memory at the end of each build.

use std::io::{self, PipeReader, PipeWriter, Read, Write};

use guest::clock::now;
use wire::Clock;

use super::server::scribble;
use super::swap;
use crate::sys::check;
use crate::workloads::partner::together;
use crate::workloads::region::{PAGE, Region};
use crate::workloads::scripts::{ScriptSetup, compile, new_setup};
use crate::workloads::{Between, Made, Row, Workload};

/// What a link takes.
const LINK: usize = 40 * 1024 * 1024;
/// multibuild: builds in all, at a time, and compilations in each.
const BUILDS: usize = 12;
const AT_A_TIME: usize = 2;
const COMPILATIONS: usize = 6;
/// kernbench: compilations of the one build.
const ALL_COMPILATIONS: usize = 32;

/// What a build took, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Took {
    user: u64,
    system: u64,
    wall: u64,
}

const TOOK: usize = 24;

impl Took {
    fn bytes(self) -> [u8; TOOK] {
        let mut bytes = [0; TOOK];
        for (piece, number) in bytes
            .chunks_exact_mut(8)
            .zip([self.user, self.system, self.wall])
        {
            piece.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    fn read(from: &mut impl Read) -> io::Result<Self> {
        let mut number = || {
            let mut bytes = [0; 8];
            from.read_exact(&mut bytes)
                .map(|()| u64::from_le_bytes(bytes))
        };
        Ok(Self {
            user: number()?,
            system: number()?,
            wall: number()?,
        })
    }

    /// Returns the share of a processor, in thousandths of a percent.
    fn share(self) -> u64 {
        (self.user + self.system).saturating_mul(100_000) / self.wall.max(1)
    }
}

/// Returns what the children of this process took that have ended.
fn children() -> io::Result<(u64, u64)> {
    // SAFETY: an rusage of zeroes is a valid value of the C struct.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the struct is valid for the call.
    check(unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) })?;
    let ns =
        |time: libc::timeval| (time.tv_sec as u64) * 1_000_000_000 + (time.tv_usec as u64) * 1000;
    Ok((ns(usage.ru_utime), ns(usage.ru_stime)))
}

/// Builds once: so many compilations, some at a time, and a link.
fn build(
    place: &ScriptSetup,
    number: usize,
    (compilations, jobs): (usize, usize),
) -> io::Result<()> {
    let mut done = 0;
    while done < compilations {
        let batch = jobs.min(compilations - done);
        together(batch, |one| {
            compile(place, number * ALL_COMPILATIONS + done + one)
        })?;
        done += batch;
    }
    together(1, |_| {
        let (pages, mut state) = (LINK / PAGE, 1);
        let region = Region::small_pages(pages as u64, PAGE)?;
        // Written and read again, as a linker does with what it links.
        for round in 0..2 {
            for page in 0..pages {
                // SAFETY: the page lies within the region, which is ours, and nobody else has a
                // reference to it.
                let page = unsafe {
                    std::slice::from_raw_parts_mut(region.start().add(page * PAGE), PAGE)
                };
                if round == 0 {
                    scribble(page, &mut state);
                } else {
                    page[0] ^= page[PAGE / 2];
                }
            }
        }
        Ok(())
    })
}

/// Does something in a process of its own, whose children do the work, and says what it took.
fn timed(to: &PipeWriter, action: impl Fn() -> io::Result<()>) -> io::Result<()> {
    together(1, |_| {
        let start = now(Clock::Monotonic);
        action()?;
        let wall = now(Clock::Monotonic) - start;
        let (user, system) = children()?;
        let mut to = to;
        to.write_all(&Took { user, system, wall }.bytes())
    })
}

struct Builds {
    place: ScriptSetup,
    kind: BuildKind,
    from: PipeReader,
    to: PipeWriter,
}

/// What is built.
#[derive(Debug, Clone, Copy)]
enum BuildKind {
    /// Builds side by side.
    Multibuild,
    /// One build with so many jobs.
    Kernbench(usize),
}

impl Workload for Builds {
    /// What it frees, RCU frees later.
    fn between(&self) -> Between {
        Between::GoOn
    }

    fn run(&mut self, operations: u64) -> io::Result<()> {
        (0..operations).try_for_each(|_| match self.kind {
            BuildKind::Kernbench(jobs) => {
                timed(&self.to, || build(&self.place, 0, (ALL_COMPILATIONS, jobs)))
            }
            // Each lane begins with its next build when it has ended the one before.
            BuildKind::Multibuild => together(AT_A_TIME, |lane| {
                (lane..BUILDS).step_by(AT_A_TIME).try_for_each(|number| {
                    timed(&self.to, || build(&self.place, number, (COMPILATIONS, 1)))
                })
            }),
        })
    }

    fn rows(&mut self) -> Vec<Row> {
        let count = if let BuildKind::Multibuild = self.kind {
            BUILDS
        } else {
            1
        };
        // As many as one operation made; there is one in an iteration.
        let took: Option<Vec<Took>> = (0..count)
            .map(|_| Took::read(&mut self.from).ok())
            .collect();
        let Some(took) = took else { return Vec::new() };
        match self.kind {
            BuildKind::Multibuild => many(&took),
            BuildKind::Kernbench(jobs) => one(took[0], jobs),
        }
    }
}

fn one(took: Took, jobs: usize) -> Vec<Row> {
    let row = |name: &str, value| (format!("kbuild-{name}-{jobs}"), value);
    vec![
        row("user", took.user),
        row("sys", took.system),
        row("cpu", took.share()),
    ]
}

fn many(took: &[Took]) -> Vec<Row> {
    let of = |name: &str, number: fn(&Took) -> u64| {
        let numbers: Vec<u64> = took.iter().map(number).collect();
        spread(&numbers).map(|(word, value)| (format!("mbuild-{name}-{word}"), value))
    };
    [
        of("user", |took| took.user),
        of("sys", |took| took.system),
        of("wall", |took| took.wall),
        of("cpu", |took| took.share()),
    ]
    .concat()
}

/// Returns the rows of MMTests for some numbers; the standard deviation is that of a sample.
fn spread(numbers: &[u64]) -> [(&'static str, u64); 5] {
    let count = numbers.len().max(1) as f64;
    let mean = numbers.iter().map(|number| *number as f64).sum::<f64>() / count;
    let squares: f64 = numbers
        .iter()
        .map(|number| (*number as f64 - mean).powi(2))
        .sum();
    let deviation = (squares / (count - 1.0).max(1.0)).sqrt();
    let least = numbers.iter().copied().min().unwrap_or(0);
    let most = numbers.iter().copied().max().unwrap_or(0);
    [
        ("min", least),
        ("mean", mean.round() as u64),
        ("stddev", deviation.round() as u64),
        ("max", most),
        ("range", most - least),
    ]
}

fn builds(kind: BuildKind) -> Made {
    swap::ours_alone()?;
    swap::on_zram()?;
    let (from, to) = io::pipe()?;
    Ok(Box::new(Builds {
        place: new_setup()?,
        kind,
        from,
        to,
    }))
}

/// mbuild-all: 12 builds, 2 at a time.
pub(in crate::workloads) fn multibuild() -> Made {
    builds(BuildKind::Multibuild)
}

/// kbuild-wall-N: one build with so many jobs.
pub(in crate::workloads) fn kernbench(jobs: usize) -> Made {
    builds(BuildKind::Kernbench(jobs))
}

#[cfg(test)]
mod tests {
    use super::{Took, spread};

    #[test]
    fn what_a_build_took_comes_back_and_has_a_share() {
        let took = Took {
            user: 1_000,
            system: 2_000,
            wall: 6_000,
        };
        assert_eq!(Took::read(&mut &took.bytes()[..]).unwrap(), took);
        assert_eq!(took.share(), 50_000);
        assert!(Took::read(&mut &[0; 23][..]).is_err());
    }

    #[test]
    fn spreads_are_those_of_mmtests() {
        let words = [
            ("min", 2),
            ("mean", 5),
            ("stddev", 2),
            ("max", 9),
            ("range", 7),
        ];
        assert_eq!(spread(&[2, 4, 4, 4, 5, 5, 7, 9]), words);
        assert_eq!(spread(&[3]).map(|(_, value)| value), [3, 3, 0, 3, 0]);
    }
}
