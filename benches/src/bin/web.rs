//! Prints figures of the dashboard over a synthetic lab: how long its first screen takes with many
//! readers and one writer.
//!
//! The lab is seeded: 500 workloads on 10 machines over 60 kernels, 7 iterations each, changes of
//! level, and a little layout noise. `web HOME` only writes it into a directory.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use figures::cpu;
use figures::figure::{Against, Figure, Figures, print};
use model::{
    Build, BuildFile, BuildId, Machine, MachineId, MachineKind, Outcome, Run, RunId, UnixTime,
    WorkloadResult,
};
use results::HistoryReader;
use stats::synthetic::Chance;
use store::Store;
use web::{Limits, Site};

const SEED: u64 = 20_261_122;
const WORKLOADS: usize = 500;
const MACHINES: usize = 10;
const KERNELS: usize = 60;
const ITERATIONS: usize = 7;
/// Number of concurrent readers, and the duration.
const CLIENTS: usize = 16;
const READING: Duration = Duration::from_secs(15);
/// Pairs of kernels in the readers' requests.
const PAIRS: usize = 6;

fn main() -> anyhow::Result<()> {
    if let Some(home) = std::env::args_os().nth(1) {
        return write(Path::new(&home)).map(drop);
    }
    let mut figures = Figures;
    let load = cpu::load()?;
    if load > 1.0 {
        figures.doubt(&format!(
            "{load} processes want to run: waiting readers wait longer than on a quiet host"
        ))?;
    }
    let home = tempfile::tempdir()?;
    let mut lab = write(home.path())?;
    let start = cpu::own_s()?;
    let mut source = HistoryReader::open(home.path())?;
    source.refresh()?;
    let samples = WORKLOADS * MACHINES * KERNELS * ITERATIONS;
    let name = format!("reading a lab of {samples} samples");
    let seconds = cpu::own_s()? - start;
    print(&mut figures, &name, seconds, "s CPU", Against::Nothing)?;
    let site = first_screens(&mut figures, home.path(), &source)?;
    one_run_more(&mut figures, &mut lab, &site, &mut source)?;
    print_load(&mut figures, &mut lab, site, source)
}

/// Prints the processor time since a start in milliseconds.
fn print_cpu_ms(
    figures: &mut Figures,
    name: &str,
    start_s: f64,
    against: Against,
) -> anyhow::Result<()> {
    let value = (cpu::own_s()? - start_s) * 1e3;
    print(figures, name, value, "ms CPU", against)
}

/// Prints what the first screen takes, new and from the cache.
fn first_screens(
    figures: &mut Figures,
    home: &Path,
    source: &HistoryReader,
) -> anyhow::Result<Arc<Site>> {
    let start = cpu::own_s()?;
    let site = Arc::new(Site::new(home, source.snapshot(1)));
    print_cpu_ms(
        figures,
        "a snapshot with all alerts",
        start,
        Against::Nothing,
    )?;
    let start = cpu::own_s()?;
    let first = site.answer("/", "");
    let name = "first screen, worked out anew";
    print_cpu_ms(figures, name, start, Against::Goal(100.0))?;
    let start = cpu::own_s()?;
    let again = site.answer("/", "");
    print_cpu_ms(figures, "first screen, again", start, Against::Nothing)?;
    anyhow::ensure!(
        first == again && first.status == 200,
        "the first screen is {}",
        first.status
    );
    let size = first.body.len() as f64 / 1e3;
    print(
        figures,
        "first screen, size",
        size,
        "kB",
        Against::Goal(100.0),
    )?;
    sizes(figures, home, source)?;
    Ok(site)
}

/// Prints what one more run costs: reading it, and making pages again that were cached.
fn one_run_more(
    figures: &mut Figures,
    lab: &mut Lab,
    site: &Site,
    source: &mut HistoryReader,
) -> anyhow::Result<()> {
    for pair in 0..PAIRS {
        let shown = site.answer("/", &format!("base={}", version(pair)));
        anyhow::ensure!(shown.status == 200, "a first screen is {}", shown.status);
    }
    lab.run(KERNELS, 0)?;
    let start = cpu::own_s()?;
    source.refresh()?;
    print_cpu_ms(figures, "a run more is read", start, Against::Nothing)?;
    let start = cpu::own_s()?;
    site.renew(source.snapshot(2));
    let name = format!("and {} first screens are made anew", PAIRS + 1);
    print_cpu_ms(figures, &name, start, Against::Nothing)
}

/// Prints how long readers wait while one writes.
fn print_load(
    figures: &mut Figures,
    lab: &mut Lab,
    site: Arc<Site>,
    source: HistoryReader,
) -> anyhow::Result<()> {
    let (times, written) = under_load(lab, site, source)?;
    let (mut served, mut waited): (Vec<f64>, Vec<f64>) = times.into_iter().unzip();
    served.sort_unstable_by(f64::total_cmp);
    waited.sort_unstable_by(f64::total_cmp);
    let name = format!("first screen, {CLIENTS} read and one writes, 99 %");
    let goal = Against::Goal(100.0);
    print(
        figures,
        &name,
        quantile(&served, 0.99),
        "ms in the server",
        goal,
    )?;
    let name = "the same, 50 %";
    let nothing = Against::Nothing;
    print(
        figures,
        name,
        quantile(&served, 0.5),
        "ms in the server",
        nothing,
    )?;
    let name = "the same as readers see it, 99 %";
    print(
        figures,
        name,
        quantile(&waited, 0.99),
        "ms",
        Against::Goal(100.0),
    )?;
    let name = "the same as readers see it, 50 %";
    print(
        figures,
        name,
        quantile(&waited, 0.5),
        "ms",
        Against::Nothing,
    )?;
    let answers = served.len() as f64;
    print(figures, "answers meanwhile", answers, "", Against::Nothing)?;
    let written = written as f64;
    print(
        figures,
        "runs written meanwhile",
        written,
        "",
        Against::Nothing,
    )
}

/// Returns the value below which this part of sorted times lies.
fn quantile(sorted: &[f64], part: f64) -> f64 {
    sorted[((sorted.len() as f64 * part) as usize).min(sorted.len() - 1)]
}

/// Prints the sizes of the document of all series and of the largest page.
fn sizes(figures: &mut Figures, home: &Path, source: &HistoryReader) -> anyhow::Result<()> {
    let site = Site::of_files(home, source.snapshot(1));
    let size = |path: &str| {
        let reply = site.answer(path, "");
        anyhow::ensure!(reply.status == 200, "{path} is {}", reply.status);
        Ok(reply.body.len() as f64)
    };
    let values = (WORKLOADS * MACHINES * KERNELS) as f64;
    let all = size("/api/v1/series.json")?;
    let rows = model::workloads().len();
    let page = size(&format!(
        "/c/{:012}/{}/{}.html",
        0,
        version(KERNELS - 2),
        version(KERNELS - 1)
    ))?;
    for (name, value, unit) in [
        (format!("series.json of {values} values"), all / 1e6, "MB"),
        ("the same, a value".to_owned(), all / values, "bytes"),
        (
            format!("comparison of {rows} workloads as a page"),
            page / 1e3,
            "kB",
        ),
    ] {
        figures.print(&Figure {
            name,
            value,
            unit,
            against: Against::Nothing,
        })?;
    }
    Ok(())
}

/// Serves the lab while readers send requests and a worker saves runs; returns for each answer the
/// server's time and the reader's time in ms, and the number of runs.
fn under_load(
    lab: &mut Lab,
    site: Arc<Site>,
    source: HistoryReader,
) -> anyhow::Result<(Vec<(f64, f64)>, usize)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        drop(web::serve(
            listener,
            site,
            source,
            Limits::default(),
            &[],
            || false,
        ));
    });
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let stop = &stop;
        let readers: Vec<_> = (0..CLIENTS)
            .map(|n| scope.spawn(move || read(address, n, stop)))
            .collect();
        let start = Instant::now();
        let mut written = 0;
        while start.elapsed() < READING {
            lab.run(KERNELS + (written + 1) / MACHINES, (written + 1) % MACHINES)?;
            written += 1;
            std::thread::sleep(Duration::from_millis(500));
        }
        stop.store(true, Ordering::Relaxed);
        let mut times = Vec::new();
        for reader in readers {
            times.extend(
                reader
                    .join()
                    .map_err(|_| anyhow::anyhow!("a reader panicked"))??,
            );
        }
        anyhow::ensure!(!times.is_empty(), "no reader got an answer");
        Ok((times, written))
    })
}

/// Requests first screens over one connection, with short pauses like those between a person's
/// clicks.
fn read(address: SocketAddr, reader: usize, stop: &AtomicBool) -> anyhow::Result<Vec<(f64, f64)>> {
    let mut times = Vec::new();
    let mut turn = reader;
    while !stop.load(Ordering::Relaxed) {
        let base = version(turn % PAIRS);
        turn += 1;
        let start = Instant::now();
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        write!(
            stream,
            "GET /?base={base} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        )?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        anyhow::ensure!(answer.starts_with(b"HTTP/1.1 200"), "no answer");
        let waited = start.elapsed().as_secs_f64() * 1e3;
        let head = String::from_utf8_lossy(&answer[..answer.len().min(2048)]).into_owned();
        let served = head
            .split_once("answer;dur=")
            .and_then(|(_, rest)| rest.lines().next()?.trim().parse().ok());
        times.push((
            served.context("an answer that does not say how long it took")?,
            waited,
        ));
        std::thread::sleep(Duration::from_millis(250));
    }
    Ok(times)
}

struct Lab {
    store: Store,
    chance: Chance,
    runs: usize,
}

fn write(home: &Path) -> anyhow::Result<Lab> {
    let store = Store::open(home)?;
    let mut lab = Lab {
        store,
        chance: Chance::new(SEED),
        runs: 0,
    };
    for machine in 0..MACHINES {
        lab.store.save_machine(&self::machine(machine)?)?;
    }
    for kernel in 0..KERNELS {
        for machine in 0..MACHINES {
            lab.run(kernel, machine)?;
        }
    }
    Ok(lab)
}

impl Lab {
    /// Saves a run of all workloads.
    fn run(&mut self, kernel: usize, machine: usize) -> anyhow::Result<()> {
        let build = build(kernel)?;
        let of = self::machine(machine)?;
        self.store.save_build(&build)?;
        self.runs += 1;
        let run = Run {
            id: RunId::from_hex(&format!("{:016x}", self.runs)).context("an id")?,
            build: build.id,
            machine: of.id,
            suite: "synthetic".to_owned(),
            seed: 1,
            started_unix: UnixTime::new(1_790_000_000 + self.runs as i64 * 60),
            environment: Vec::new(),
            results: (0..WORKLOADS)
                .map(|workload| self.result(workload, kernel, machine))
                .collect(),
        };
        Ok(self.store.save_run(&run, &[])?)
    }

    fn result(&mut self, workload: usize, kernel: usize, machine: usize) -> WorkloadResult {
        // Layout moves a value by some thousandths, and its iterations by less.
        let value = level(workload, kernel, machine) * (1.0 + 0.002 * self.chance.normal());
        let samples = (0..ITERATIONS)
            .map(|_| value * (1.0 + 1e-5 * self.chance.normal()))
            .collect();
        WorkloadResult {
            workload: name(workload),
            operations: 1000,
            declared: None,
            outcome: Outcome::Completed,
            samples,
            counted: Vec::new(),
        }
    }
}

/// The cost of a workload: every seventh changes once, on all machines with an odd number, at one
/// of five kernels.
fn level(workload: usize, kernel: usize, machine: usize) -> f64 {
    let cost = 100.0 + workload as f64 * 3.0 + machine as f64 * 40.0;
    let changes = workload % 7 == 3 && machine % 2 == 1 && kernel >= 10 * (1 + workload % 5);
    let size = if workload.is_multiple_of(2) {
        1.07
    } else {
        0.95
    };
    if changes { cost * size } else { cost }
}

/// The first workloads are Marvin's, as only these are compared.
fn name(workload: usize) -> String {
    if let Some(known) = model::workloads().get(workload) {
        return known.name.to_string();
    }
    let groups = [
        "fault", "file", "fork", "futex", "pipe", "tcp", "udp", "mem", "signal", "event",
    ];
    format!("{}-{:03}", groups[workload % groups.len()], workload)
}

fn version(kernel: usize) -> String {
    format!("6.{}.{}", 1 + kernel / 15, kernel % 15)
}

fn build(kernel: usize) -> anyhow::Result<Build> {
    let version = version(kernel);
    Ok(Build {
        id: BuildId::from_hex(&format!("{kernel:016x}"))?,
        name: "deb:6.12".parse()?,
        origin: model::Origin::Package {
            name: format!("linux-image-{version}-cloud-amd64"),
            version: format!("{version}-1"),
        },
        version,
        image: BuildFile {
            path: "/nowhere/vmlinuz".into(),
            sha256: "00".into(),
        },
        vmlinux: None,
        config: None,
        symbols: None,
        modules: None,
    })
}

fn machine(machine: usize) -> anyhow::Result<Machine> {
    Ok(Machine {
        id: MachineId::from_hex(&format!("{machine:x}{:015x}", 0))?,
        kind: MachineKind::Exact,
        summary: format!("synthetic machine {machine}"),
        fingerprint: vec![("synthetic".to_owned(), machine.to_string())],
    })
}
