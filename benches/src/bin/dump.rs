//! Prints figures of `marvin-dump` beside makedumpfile's, in processor seconds: the same dumps, one
//! program after the other.
//!
//! Environment variables: `MAKEDUMPFILE` is another makedumpfile than the one in PATH; `VMCORE` is
//! a real dump instead of that of a guest, which the bench boots. Dumps of larger machines are made
//! in a temporary directory. Like the other benches it fails only if it cannot measure.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::Context;
use crash_guests::capture;
use figures::cpu;
use figures::figure::{Against, Figure, Figures};
use figures::memory::peak_during;
use synthetic_dumps::large::{Large, Mix};

/// Memory of the large machine, in bytes.
const MEMORY: u64 = 2 << 40;
/// Sections of it with separate records: 1 GiB of records, more than any cache holds.
const DISTINCT: u64 = 512;
/// Bytes of a page, of the kernel's record of one, and pages of the largest free block
/// (`MAX_ORDER`, 4 MiB).
const PAGE: u64 = 4096;
const RECORD: u64 = 64;
const BLOCK: u64 = 1024;
/// The most that --io auto may take, relative to the better of its two choices.
const AUTO: f64 = 1.1;
/// Repetitions; the minimum counts, as other processes can only add.
const TIMES: usize = 3;
/// The guest whose dump stands for real ones, and its memory in MiB.
const GUEST: &str = "deb:6.12";
const GUEST_MIB: u32 = 4096;
/// The default of --memory, and 16 MiB.
const MEMORY_GOAL_MIB: f64 = 80.0;

fn main() -> anyhow::Result<()> {
    let mut bench = Bench::new()?;
    bench.figures.doubt_load(cpu::load()?)?;
    bench.filter()?;
    let made = bench.folder.path().join("vmcore");
    let path = match std::env::var_os("VMCORE") {
        Some(path) => PathBuf::from(path),
        None => {
            capture(&bench.folder.path().join("home"), GUEST, GUEST_MIB, &made)
                .context("cannot make a real dump")?;
            made
        }
    };
    bench.real(&path)?;
    bench.threads(&path)?;
    bench.memory(&path)?;
    Ok(())
}

struct Bench {
    folder: tempfile::TempDir,
    ours: PathBuf,
    /// `None` if it is not installed.
    theirs: Option<PathBuf>,
    figures: Figures,
}

impl Bench {
    fn new() -> anyhow::Result<Self> {
        let own = std::env::current_exe()?;
        let ours = own.with_file_name("marvin-dump");
        anyhow::ensure!(
            ours.exists(),
            "no {}: run `cargo build --release -p marvin-dump`",
            ours.display()
        );
        let theirs = PathBuf::from(
            std::env::var_os("MAKEDUMPFILE").unwrap_or_else(|| "makedumpfile".into()),
        );
        let known = Command::new(&theirs)
            .arg("-v")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok();
        if !known {
            let name = theirs.display();
            writeln!(
                std::io::stderr(),
                "benches: no {name} to stand against: install makedumpfile, or name it with MAKEDUMPFILE=FILE"
            )?;
        }
        Ok(Self {
            folder: tempfile::tempdir()?,
            ours,
            theirs: known.then_some(theirs),
            figures: Figures,
        })
    }

    /// The filter on machines of 2 TB.
    fn filter(&mut self) -> anyhow::Result<()> {
        for (mix, name, goal) in [(Mix::Busy, "busy", 2.5), (Mix::Free, "mostly free", 0.3)] {
            let path = self.folder.path().join("large");
            Large {
                memory: MEMORY,
                distinct: DISTINCT,
                mix,
            }
            .write(&path)?;
            let out = self.folder.path().join("out");
            let mut better = f64::MAX;
            for io in ["mmap", "read"] {
                let own =
                    least(|| self.ours(&["-d", "31", "--threads", "1", "--io", io], &path, &out))?;
                let name = format!("filter 2 TB, {name}, one thread, {io}");
                self.print(name, own, Against::Goal(goal))?;
                better = better.min(own);
            }
            let own = least(|| self.ours(&["-d", "31", "--threads", "1"], &path, &out))?;
            let title = format!("filter 2 TB, {name}, one thread, --io auto");
            self.print(
                title,
                own,
                Against::Goal((better * AUTO * 100.0).round() / 100.0),
            )?;
            if let Some(theirs) = self.theirs(&["-l", "-d", "31"], &path, &out)? {
                self.print(
                    format!("filter 2 TB, {name}, against the default"),
                    own,
                    Against::Peer("makedumpfile", theirs),
                )?;
            }
            // One of two passes: their buffer holds all bits, and still they count before they
            // write.
            let bits = (MEMORY >> 12 >> 13).to_string();
            if let Some(theirs) =
                self.theirs(&["-l", "-d", "31", "--cyclic-buffer", &bits], &path, &out)?
            {
                let name = format!("filter 2 TB, {name}, against half of two passes");
                self.print(name, own, Against::Peer("makedumpfile", theirs / 2.0))?;
            }
            let both = ["1", "2"]
                .map(|threads| self.wall_s(&["-d", "31", "--threads", threads], &path, &out));
            let [one, two] = both;
            let title = format!("filter 2 TB, {name}, two threads, wall");
            let against = Against::Peer("one thread", one?);
            self.figures.print(&Figure {
                name: title,
                value: two?,
                unit: "s",
                against,
            })?;
            if mix == Mix::Free {
                let name = "limit of mostly free: one read for each free block".to_owned();
                self.print(name, least(|| one_by_one(&path))?, Against::Nothing)?;
            }
            std::fs::remove_file(&path)?;
        }
        let bandwidth = read_bandwidth()?;
        self.print_unit("reading memory, one thread", bandwidth, "GB/s")?;
        let records = (MEMORY / PAGE * RECORD) as f64;
        let name = "limit of busy: reading as many records, one thread".to_owned();
        self.print(name, records / 1e9 / bandwidth, Against::Nothing)
    }

    /// Filter, compression and writing of a real dump.
    fn real(&mut self, path: &Path) -> anyhow::Result<()> {
        let out = self.folder.path().join("out");
        let other = self.folder.path().join("other");
        for level in ["31", "0"] {
            let taken = |io: &str| {
                let arguments = [
                    "-d",
                    level,
                    "--compress",
                    "none",
                    "--threads",
                    "1",
                    "--io",
                    io,
                ];
                least(|| self.ours(&arguments, path, &out))
            };
            let better = taken("mmap")?.min(taken("read")?);
            let own = taken("auto")?;
            let name = format!("-d {level}, not compressed, one thread, --io auto");
            self.print(
                name,
                own,
                Against::Goal((better * AUTO * 100.0).round() / 100.0),
            )?;
        }
        for (level, codec, flag) in [
            ("31", "lzo", "-l"),
            ("31", "zstd", "-z"),
            ("31", "snappy", "-p"),
            ("31", "zlib", "-c"),
            ("0", "lzo", "-l"),
            ("0", "zstd", "-z"),
            ("0", "zlib", "-c"),
        ] {
            let mut own = f64::MAX;
            let mut theirs = None::<f64>;
            // In turns: what else the host does meets both.
            for _ in 0..TIMES {
                own = own.min(self.ours(&["-d", level, flag, "--threads", "1"], path, &out)?);
                let once = self.theirs_once(&[flag, "-d", level], path, &other)?;
                theirs = once.map(|seconds| theirs.map_or(seconds, |least| least.min(seconds)));
            }
            let against = |theirs: Option<f64>| {
                theirs.map_or(Against::Nothing, |it| Against::Peer("makedumpfile", it))
            };
            let name = format!("-d {level}, {codec}, one thread");
            self.print(name.clone(), own, against(theirs))?;
            let size =
                |path: &Path| Ok::<_, anyhow::Error>(std::fs::metadata(path)?.len() as f64 / 1e6);
            let value = size(&out)?;
            let against = against(theirs.and_then(|_| size(&other).ok()));
            self.figures.print(&Figure {
                name: format!("{name}: size"),
                value,
                unit: "MB",
                against,
            })?;
        }
        Ok(())
    }

    /// Two threads beside one, in wall time; then the same with two busy processors.
    fn threads(&mut self, path: &Path) -> anyhow::Result<()> {
        let out = self.folder.path().join("out");
        for busy in [false, true] {
            let stop = AtomicBool::new(false);
            let (one, two) = std::thread::scope(|scope| {
                for _ in 0..if busy { 2 } else { 0 } {
                    scope.spawn(|| {
                        while !stop.load(Ordering::Relaxed) {
                            std::hint::spin_loop();
                        }
                    });
                }
                let arguments = |threads| ["-d", "31", "--compress", "zstd", "--threads", threads];
                let both = ["1", "2"].map(|threads| self.wall_s(&arguments(threads), path, &out));
                stop.store(true, Ordering::Relaxed);
                both.into()
            });
            let beside = if busy { ", processors busy" } else { "" };
            let name = format!("-d 31, zstd, two threads, wall{beside}");
            let against = Against::Peer("one thread", one?);
            self.figures.print(&Figure {
                name,
                value: two?,
                unit: "s",
                against,
            })?;
        }
        Ok(())
    }

    /// The peak memory with the default limit.
    fn memory(&mut self, path: &Path) -> anyhow::Result<()> {
        let out = self.folder.path().join("out");
        for level in ["31", "0"] {
            let (done, peak) = peak_during("marvin-dump", || self.ours(&["-d", level], path, &out));
            done?;
            let value =
                peak.context("it ended before its memory was seen")? as f64 / f64::from(1 << 20);
            let name = format!("-d {level}, zstd: peak memory");
            self.figures.print(&Figure {
                name,
                value,
                unit: "MiB",
                against: Against::Goal(MEMORY_GOAL_MIB),
            })?;
        }
        Ok(())
    }

    fn ours(&self, arguments: &[&str], path: &Path, out: &Path) -> anyhow::Result<f64> {
        let mut command = Command::new(&self.ours);
        command
            .args(arguments)
            .args(["--message-level", "0", "--force"])
            .arg(path)
            .arg(out);
        cpu_s(&mut command)
    }

    /// The least wall time of several runs.
    fn wall_s(&self, arguments: &[&str], path: &Path, out: &Path) -> anyhow::Result<f64> {
        least(|| {
            let start = Instant::now();
            self.ours(arguments, path, out)?;
            Ok(start.elapsed().as_secs_f64())
        })
    }

    /// The least processor time of several runs.
    fn theirs(&self, arguments: &[&str], path: &Path, out: &Path) -> anyhow::Result<Option<f64>> {
        let mut best: Option<f64> = None;
        for _ in 0..TIMES {
            let Some(seconds) = self.theirs_once(arguments, path, out)? else {
                return Ok(None);
            };
            best = Some(best.map_or(seconds, |least| least.min(seconds)));
        }
        Ok(best)
    }

    fn theirs_once(
        &self,
        arguments: &[&str],
        path: &Path,
        out: &Path,
    ) -> anyhow::Result<Option<f64>> {
        let Some(program) = &self.theirs else {
            return Ok(None);
        };
        let mut command = Command::new(program);
        command
            .args(arguments)
            .args(["--message-level", "4", "-f"])
            .arg(path)
            .arg(out);
        match cpu_s(&mut command) {
            Ok(seconds) => Ok(Some(seconds)),
            Err(error) => {
                // Older ones lack codecs.
                writeln!(
                    std::io::stderr(),
                    "benches: nothing to stand against: {error:#}"
                )?;
                Ok(None)
            }
        }
    }

    fn print(&mut self, name: String, value: f64, against: Against) -> anyhow::Result<()> {
        Ok(self.figures.print(&Figure {
            name,
            value,
            unit: "s CPU",
            against,
        })?)
    }

    fn print_unit(&mut self, name: &str, value: f64, unit: &'static str) -> anyhow::Result<()> {
        Ok(self.figures.print(&Figure {
            name: name.to_owned(),
            value,
            unit,
            against: Against::Nothing,
        })?)
    }
}

fn least(mut measure: impl FnMut() -> anyhow::Result<f64>) -> anyhow::Result<f64> {
    (0..TIMES).try_fold(f64::MAX, |least, _| Ok(measure()?.min(least)))
}

/// Runs a program and returns its processor seconds.
fn cpu_s(command: &mut Command) -> anyhow::Result<f64> {
    let before = cpu::children_s()?;
    let program = command.get_program().display().to_string();
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("{program} cannot be run"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(
        output.status.success(),
        "{program} ended with {}: {}",
        output.status,
        said.trim()
    );
    Ok(cpu::children_s()? - before)
}

/// Returns how fast one thread reads memory, one word per cache line, in GB per processor second;
/// the best of some.
fn read_bandwidth() -> anyhow::Result<f64> {
    let words = vec![1_u64; 64 << 20];
    let mut best = f64::MAX;
    for _ in 0..5 {
        let start = cpu::own_s()?;
        let sum: u64 = words
            .iter()
            .step_by(8)
            .fold(0, |sum, word| sum.wrapping_add(*word));
        std::hint::black_box(sum);
        best = best.min(cpu::own_s()? - start);
    }
    Ok((words.len() * 8) as f64 / best / 1e9)
}

/// Reads one record per free block of a memory of this size, and returns the processor seconds.
fn one_by_one(path: &Path) -> anyhow::Result<f64> {
    let file = File::open(path)?;
    let places = file.metadata()?.len() / (BLOCK * RECORD);
    anyhow::ensure!(places > 0, "{} is too short", path.display());
    let mut record = [0; RECORD as usize];
    let start = cpu::own_s()?;
    for block in 0..MEMORY / PAGE / BLOCK {
        file.read_exact_at(&mut record, block % places * BLOCK * RECORD)?;
        std::hint::black_box(&record);
    }
    Ok(cpu::own_s()? - start)
}
