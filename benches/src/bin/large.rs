//! Prints what users of a lab wait for after years: 20,000 runs of 40 workloads, and 100,000 jobs.
//!
//! The lab is made up from a printed seed: three tracks of kernels, one of commits of a tree; an
//! exact machine with five seeds a kernel and two servers with ten and five boots; workloads that
//! change level, fail or lack support; triage decisions. `large DIRECTORY` writes it into a
//! directory, or measures the one that is there.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::Context;
use figures::figure::{Against, Figures, print};
use figures::{cpu, lab_of_years};

/// Limits of issue 46.
const READY_S: f64 = 3.0;
const COMMAND_S: f64 = 1.0;
const PAGE_MS: f64 = 50.0;
const MEMORY_MB: f64 = 150.0;
const PUBLISH_MS: f64 = 5.0;
/// Runs of the published lab; its pages grow with the runs.
const PUBLISHED: usize = 1500;

fn main() -> anyhow::Result<()> {
    let mut figures = Figures;
    figures.doubt_load(cpu::load()?)?;
    let marvin = marvin()?;
    let scratch = tempfile::tempdir()?;
    let named = std::env::args_os().nth(1).map(PathBuf::from);
    let home = named.unwrap_or_else(|| scratch.path().join("large"));
    if !home.join("marvin.db").exists() {
        lab_of_years::write(&home, lab_of_years::RUNS, lab_of_years::JOBS)?;
    }
    let bytes = std::fs::metadata(home.join("marvin.db"))?.len();
    print(
        &mut figures,
        "seed of the lab",
        lab_of_years::SEED as f64,
        "",
        Against::Nothing,
    )?;
    let name = format!(
        "database of {} runs x {} workloads, {} jobs",
        lab_of_years::RUNS,
        lab_of_years::WORKLOADS,
        lab_of_years::JOBS
    );
    print(
        &mut figures,
        &name,
        bytes as f64 / 1e6,
        "MB",
        Against::Nothing,
    )?;
    let name = "alerts, after each run was read anew";
    remove_summary(&home)?;
    let anew = time(&marvin, &home, &["alerts"])?;
    print(&mut figures, name, anew, "s", Against::Nothing)?;
    for (name, words) in [
        ("history of a workload", &["history", "getppid"][..]),
        ("alerts", &["alerts"][..]),
    ] {
        let seconds = time(&marvin, &home, words)?;
        print(&mut figures, name, seconds, "s", Against::Goal(COMMAND_S))?;
    }
    serve(&mut figures, &marvin, &home)?;
    let small = scratch.path().join("small");
    lab_of_years::write(&small, PUBLISHED, 0)?;
    let pages = scratch.path().join("pages");
    let seconds = time(&marvin, &small, &["publish", &pages.display().to_string()])?;
    let name = format!("publish, a run of {PUBLISHED}");
    let value = seconds * 1e3 / PUBLISHED as f64;
    print(&mut figures, &name, value, "ms", Against::Goal(PUBLISH_MS))
}

/// Returns the program: it lies beside this one.
fn marvin() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let marvin = own.with_file_name("marvin");
    anyhow::ensure!(
        marvin.exists(),
        "{} is missing: cargo build --release -p marvin",
        marvin.display()
    );
    Ok(marvin)
}

/// Deletes what commands keep of runs that they have read.
fn remove_summary(home: &Path) -> anyhow::Result<()> {
    match std::fs::remove_file(home.join("history.summary")) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// Returns how many seconds a command takes.
fn time(marvin: &Path, home: &Path, words: &[&str]) -> anyhow::Result<f64> {
    let start = Instant::now();
    let ended = Command::new(marvin)
        .arg("--home")
        .arg(home)
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()?;
    // 1 and 3: alerts report regressions, or results that do not compare.
    let is_answer = matches!(ended.code(), Some(0 | 1 | 3));
    anyhow::ensure!(is_answer, "marvin {} ended with {ended}", words.join(" "));
    Ok(start.elapsed().as_secs_f64())
}

/// A server that ends with this value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn serve(figures: &mut Figures, marvin: &Path, home: &Path) -> anyhow::Result<()> {
    let start = Instant::now();
    let child = Command::new(marvin)
        .arg("--home")
        .arg(home)
        .args(["serve", "--listen", "127.0.0.1:0"])
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut running = Running(child);
    let stderr = running.0.stderr.take().context("no output of the server")?;
    let mut line = String::new();
    BufReader::new(stderr).read_line(&mut line)?;
    let address = line
        .split("http://")
        .nth(1)
        .and_then(|rest| rest.split('/').next())
        .with_context(|| format!("no address in {line:?}"))?
        .to_owned();
    get(&address, "/healthz")?;
    let ready = start.elapsed().as_secs_f64();
    print(
        figures,
        "serve is ready",
        ready,
        "s",
        Against::Goal(READY_S),
    )?;
    for name in ["first page", "first page, again"] {
        let ms = get(&address, "/")? * 1e3;
        print(figures, name, ms, "ms", Against::Goal(PAGE_MS))?;
    }
    for path in ["/alerts.html", "/runs.html", "/lab.html", "/metrics"] {
        let ms = get(&address, path)? * 1e3;
        print(
            figures,
            &format!("{path}, anew"),
            ms,
            "ms",
            Against::Nothing,
        )?;
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", running.0.id()))?;
    for (name, field) in [("memory of serve", "VmRSS:"), ("the same, peak", "VmHWM:")] {
        let kib: f64 = status
            .lines()
            .find_map(|line| line.strip_prefix(field))
            .and_then(|rest| rest.trim().strip_suffix(" kB"))
            .context("no memory of the server")?
            .trim()
            .parse()?;
        let mb = kib * 1024.0 / 1e6;
        print(figures, name, mb, "MB", Against::Goal(MEMORY_MB))?;
    }
    Ok(())
}

/// Returns how many seconds an answer takes.
fn get(address: &str, path: &str) -> anyhow::Result<f64> {
    let start = Instant::now();
    let mut stream = TcpStream::connect(address)?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    anyhow::ensure!(answer.starts_with(b"HTTP/1.1 200"), "{path} has no answer");
    Ok(start.elapsed().as_secs_f64())
}
