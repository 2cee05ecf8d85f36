//! Prints what recording a console costs: a make-believe server prints 115,200 baud, as fast as a
//! serial line can, to the recorder of the `marvin` beside this program. The start of the program
//! does not count.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use figures::cpu;
use figures::figure::{Against, Figure, Figures};

/// Bytes of a tenth of a second at 115,200 baud: ten bits on the line for each.
const PIECE: usize = 1_152;
const SHORT: Duration = Duration::from_secs(5);
const LONG: Duration = Duration::from_secs(65);
const GOAL_PERCENT: f64 = 0.2;

fn main() -> anyhow::Result<()> {
    let mut figures = Figures;
    figures.doubt_load(cpu::load()?)?;
    let marvin = std::env::current_exe()?.with_file_name("marvin");
    anyhow::ensure!(
        marvin.is_file(),
        "{} is not there: cargo build --release -p marvin",
        marvin.display()
    );
    let short = record(&marvin, SHORT)?;
    let long = record(&marvin, LONG)?;
    let value = (long - short).max(0.0) / (LONG - SHORT).as_secs_f64() * 100.0;
    let name = "recording a console at 115,200 baud, of a processor".to_owned();
    figures.print(&Figure {
        name,
        value,
        unit: "%",
        against: Against::Goal(GOAL_PERCENT),
    })?;
    Ok(())
}

/// Records for a while, and returns the recorder's processor seconds.
fn record(marvin: &Path, time: Duration) -> anyhow::Result<f64> {
    let home = tempfile::tempdir()?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let text = format!(
        "[[machine]]\nname = \"testbox\"\nhost = \"testbox\"\nconsole = {{ tcp = \"{}\" }}\n",
        listener.local_addr()?
    );
    std::fs::write(home.path().join("marvin.toml"), text)?;
    let before_s = cpu::children_s()?;
    let mut command = Command::new(marvin);
    command
        .arg("--home")
        .arg(home.path())
        .args(["console", "--record"])
        .stderr(Stdio::null())
        .stdout(Stdio::null());
    let mut recorder = command.spawn().context("cannot run marvin")?;
    let sent = listener
        .accept()
        .map_err(anyhow::Error::from)
        .and_then(|(stream, _)| print_lines(stream, time));
    recorder.kill()?;
    recorder.wait()?;
    let sent = sent?;
    let kept: u64 = walk(&home.path().join("consoles"))?;
    anyhow::ensure!(kept > 0, "nothing was recorded of {sent} bytes");
    Ok(cpu::children_s()? - before_s)
}

/// Prints lines such as a kernel's, and returns their bytes.
fn print_lines(mut stream: TcpStream, time: Duration) -> anyhow::Result<usize> {
    let line = format!("[ 1234.567890] {}\r\n", "x".repeat(53));
    let start = Instant::now();
    let mut sent = 0;
    let text = line.repeat(PIECE / line.len() + 1);
    while start.elapsed() < time {
        stream.write_all(&text.as_bytes()[..PIECE])?;
        sent += PIECE;
        let due = Duration::from_secs_f64(sent as f64 / (PIECE * 10) as f64);
        std::thread::sleep(due.saturating_sub(start.elapsed()));
    }
    Ok(sent)
}

/// Returns the bytes of all files below a directory.
fn walk(folder: &Path) -> anyhow::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        bytes += if entry.file_type()?.is_dir() {
            walk(&entry.path())?
        } else {
            entry.metadata()?.len()
        };
    }
    Ok(bytes)
}
