//! The experiment on reverse mappings: one cell of its grid, from an empty guest to what came out.
//!
//! Copied out are lines of what was measured (`result`), and files of the kernel while the mappings
//! are there (`with`) and when they are gone (`without`). What it all means is the host's business.

use std::fs;
use std::io;
use std::time::Duration;

use guest::in_child;
use wire::{Clock, Frame};

use crate::workloads::Failure;
use crate::workloads::rmap::{Answer, Cell, DoesNotFit, Pool, Populated, World};

/// What is asked for.
pub(crate) struct Question<'a> {
    pub(crate) case: &'a str,
    pub(crate) processes: u32,
    pub(crate) mappings: u32,
    pub(crate) clock: Clock,
    /// How long is waited before the first measurement: the seed's part, in microseconds.
    pub(crate) delay_us: u64,
    /// And how many rounds are executed then.
    pub(crate) spins: u64,
}

/// Files of the kernel, to say what the mappings take.
const FILES: [&str; 2] = ["/proc/slabinfo", "/proc/meminfo"];
const CACHES: &str = "/sys/kernel/slab";
/// How long the guest rests before it counts, so that RCU has freed what was given back.
const REST: Duration = Duration::from_millis(500);

/// Runs a cell in a process of its own, so that its death is a result.
pub(crate) fn frames(question: &Question<'_>) -> io::Result<Vec<Frame>> {
    let report = in_child(|| {
        let mut report = Report::default();
        let end = match carry_out(question, &mut report) {
            Ok(()) => String::new(),
            Err(Failure::Unsupported(why)) => format!("u{why}"),
            Err(Failure::Error(error)) => format!("f{error}"),
        };
        let mut bytes = format!("{end}\n").into_bytes();
        report
            .files
            .insert(0, ("result".to_owned(), report.lines.into_bytes()));
        for (name, content) in report.files {
            bytes.extend(format!("{name} {}\n", content.len()).into_bytes());
            bytes.extend(content);
        }
        Ok(bytes)
    });
    let bytes = match report {
        Ok(bytes) => bytes,
        Err(error) => return Ok(vec![Frame::Died(error.to_string())]),
    };
    let line = bytes
        .iter()
        .position(|byte| *byte == b'\n')
        .unwrap_or(bytes.len());
    let (end, rest) = bytes.split_at(line);
    let end = String::from_utf8_lossy(end).into_owned();
    Ok(match end.split_at_checked(1) {
        Some(("u", why)) => vec![Frame::Unsupported(why.to_owned())],
        Some(("f", what)) => vec![Frame::Failed(what.to_owned())],
        _ => {
            let files = crate::monitors::read_back(rest.strip_prefix(b"\n").unwrap_or(rest));
            files
                .into_iter()
                .map(|(name, bytes)| Frame::File { name, bytes })
                .collect()
        }
    })
}

/// What is copied out.
#[derive(Default)]
struct Report {
    lines: String,
    files: Vec<(String, Vec<u8>)>,
}

impl Report {
    fn line(&mut self, name: &str, value: impl std::fmt::Display) {
        self.lines.extend([name, " ", &value.to_string(), "\n"]);
    }

    /// Says what an operation took and for how many pages, or why there is no such number.
    fn cost(&mut self, name: &str, cost: Result<(u64, u64), Failure>) -> io::Result<()> {
        match cost {
            Ok((ticks, pages)) => self.line(name, format_args!("{ticks} {pages}")),
            Err(Failure::Unsupported(why)) => self.line(name, format_args!("unsupported {why}")),
            Err(Failure::Error(error)) => return Err(error),
        }
        Ok(())
    }

    fn copy(&mut self, phase: &str) {
        // A file that this kernel does not have says something too: it is absent.
        let copies = FILES
            .iter()
            .filter_map(|path| Some((format!("{phase} {path}"), fs::read(path).ok()?)));
        self.files.extend(copies);
    }
}

fn carry_out(question: &Question<'_>, report: &mut Report) -> Result<(), Failure> {
    let case = Cell::case(question.case).ok_or_else(|| {
        Failure::Unsupported(format!("this agent has no case `{}`", question.case))
    })?;
    let (processes, mappings, clock) = (
        question.processes as usize,
        question.mappings as usize,
        question.clock,
    );
    if processes == 0 || mappings == 0 {
        return Err(Failure::Unsupported("no process or no mapping".to_owned()));
    }
    guest::clock::sleep_to_round_point(question.delay_us, question.spins)?;
    let (pool, no_pool) = match Pool::new() {
        Ok(pool) => (Some(pool), None),
        Err(Failure::Unsupported(why)) => (None, Some(why)),
        Err(error) => return Err(error),
    };
    let mut world = World::new(
        Cell {
            case,
            processes,
            mappings,
            clock,
        },
        pool,
    )?;
    let all = processes as u64 * mappings as u64;
    match world.populate()? {
        Populated::All(answer) => report.cost("map", Ok((answer.ticks, all)))?,
        Populated::Not(DoesNotFit {
            needed_kib,
            available_kib,
        }) => {
            report.line("does-not-fit", format_args!("{needed_kib} {available_kib}"));
            return Ok(());
        }
    }
    let with = counted(&world, report, "with")?;
    report.cost("fork", Ok((world.fork_and_exit()?.ticks, all)))?;
    report.cost(
        "reclaim",
        no_pool.map_or_else(
            || world.reclaim(clock),
            |why| Err(Failure::Unsupported(why)),
        ),
    )?;
    world.touch()?;
    from_the_object(&world, clock, report)?;
    world.touch()?;
    report.cost("unmap", Ok((world.unmap()?.ticks, all)))?;
    let without = counted(&world, report, "without")?;
    report.line("entries", with.entries.saturating_sub(without.entries));
    report.line(
        "tables_kib",
        with.tables_kib.saturating_sub(without.tables_kib),
    );
    Ok(())
}

/// Lets the guest come to rest, has it give back what its slab caches do not use, so that they
/// count what is in use, and copies what is there.
fn counted(world: &World, report: &mut Report, phase: &str) -> io::Result<Answer> {
    std::thread::sleep(REST);
    let answer = world.count()?;
    // A link is another name of a cache that is there itself. One that cannot be shrunk counts a
    // little too much.
    let caches = fs::read_dir(CACHES).into_iter().flatten().flatten();
    for cache in caches.filter(|cache| cache.file_type().is_ok_and(|kind| kind.is_dir())) {
        drop(fs::write(cache.path().join("shrink"), "1"));
    }
    report.copy(phase);
    Ok(answer)
}

/// Takes pages away from the other end, by what they are of: the kernel has to find who has them
/// mapped.
fn from_the_object(world: &World, clock: Clock, report: &mut Report) -> io::Result<()> {
    if world.has_object() {
        report.cost("drop-one", world.drop_one(clock).map(|ticks| (ticks, 1)))?;
        world.touch()?;
        report.cost("drop-all", world.drop_all(clock))?;
    }
    // Now the mappings of an object are there, and no page is: one process alone takes some, and
    // one of them is asked back.
    let answer = match world.page_out() {
        Ok(answer) if answer.entries == 0 => Ok((answer.ticks, 1)),
        Ok(_) => Err(Failure::Unsupported(
            "MADV_PAGEOUT leaves the page where it is".to_owned(),
        )),
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Err(Failure::Unsupported(
            "no MADV_PAGEOUT (Linux 5.4)".to_owned(),
        )),
        Err(error) => Err(error.into()),
    };
    report.cost("pageout-one", answer)
}
