//! The second late half of the programs from public reports (tests/outside/49-second-aside.md), in
//! Rust: each does steadily what its report describes, for some seconds: `second NAME SECONDS DIR`.
//! rustc -O -g second.rs

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{BufReader, BufWriter, Read, Write};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};

/// Whether a fourth argument asks for the repaired form, to compare with.
static IS_REPAIRED: LazyLock<bool> = LazyLock::new(|| std::env::args().count() > 4);

// S15: the results of benchmarks are read and written value by value.
#[inline(never)]
fn write_measurements(out: &mut impl Write, values: &[u64]) -> std::io::Result<()> {
    out.write_all(b"[")?;
    for value in values {
        write!(out, "{value}")?;
        out.write_all(b",")?;
    }
    out.write_all(b"0]")
}

#[inline(never)]
fn read_measurements(from: &mut impl Read) -> std::io::Result<Vec<u64>> {
    let mut values = Vec::new();
    let mut value = 0;
    for byte in from.bytes() {
        match byte? {
            digit @ b'0'..=b'9' => value = value * 10 + u64::from(digit - b'0'),
            b'[' => {}
            _ => {
                values.push(value);
                value = 0;
            }
        }
    }
    Ok(values)
}

fn benchmark_files(end: Instant) {
    let values: Vec<u64> = (0..2000).map(|n| n * 7919 % 1_000_003).collect();
    let mut rounds = 0;
    while Instant::now() < end {
        let file = File::create("benchmark.json").unwrap();
        if *IS_REPAIRED {
            write_measurements(&mut BufWriter::new(file), &values).unwrap();
        } else {
            write_measurements(&mut &file, &values).unwrap();
        }
        let file = File::open("benchmark.json").unwrap();
        let read = if *IS_REPAIRED {
            read_measurements(&mut BufReader::new(file))
        } else {
            read_measurements(&mut &file)
        };
        assert_eq!(read.unwrap().len(), 2001);
        rounds += 1;
    }
    eprintln!("{rounds} rounds");
}

// S29: an outline is printed line by line.
#[inline(never)]
fn print_outline(lines: &[String]) {
    if *IS_REPAIRED {
        println!("{}", lines.join("\n"));
        return;
    }
    for line in lines {
        println!("{line}");
    }
}

fn outline(end: Instant) {
    let lines: Vec<String> = (0..20_000)
        .map(|n| format!("  method    Widget.render_{n}                     L20-24"))
        .collect();
    let mut rounds = 0;
    while Instant::now() < end {
        print_outline(&lines);
        rounds += 1;
    }
    eprintln!("{rounds} outlines");
}

// S49: threads take chunks from a queue, and turn round while it is empty; the one that fills it
// reads a slow file.
static IS_READ: AtomicBool = AtomicBool::new(false);
static MAPPED: AtomicU64 = AtomicU64::new(0);

#[inline(never)]
fn consume_chunks(queue: &Mutex<VecDeque<Vec<u8>>>) {
    let mut sum = 0;
    loop {
        let chunk = queue
            .try_lock()
            .ok()
            .and_then(|mut queue| queue.pop_front());
        if let Some(chunk) = chunk {
            sum += chunk.iter().map(|byte| u64::from(*byte)).sum::<u64>();
            MAPPED.fetch_add(1, Ordering::Relaxed);
        } else if IS_READ.load(Ordering::Acquire) {
            break;
        } else if *IS_REPAIRED {
            std::thread::sleep(Duration::from_millis(1));
        } else {
            std::hint::spin_loop();
        }
    }
    std::hint::black_box(sum);
}

fn quantify(end: Instant) {
    // A disk that gives 64 KB each 30 ms.
    let mut disk = Command::new("sh")
        .args(["-c", "while sleep 0.03; do head -c 65536 /dev/zero; done"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut file = disk.stdout.take().unwrap();
    let queue = Mutex::new(VecDeque::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| consume_chunks(&queue));
        }
        while Instant::now() < end {
            let mut chunk = vec![0; 65536];
            file.read_exact(&mut chunk).unwrap();
            queue.lock().unwrap().push_back(chunk);
        }
        IS_READ.store(true, Ordering::Release);
    });
    disk.kill().unwrap();
    disk.wait().unwrap();
    eprintln!("{} chunks", MAPPED.load(Ordering::Relaxed));
}

// S9: builds that share a target directory.
fn lock_build_directory() -> File {
    fs::create_dir_all("target").unwrap();
    let file = OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(false)
        .open("target/.build-lock")
        .unwrap();
    file.lock().unwrap();
    file
}

#[inline(never)]
fn compile_crate(took: Duration) -> u64 {
    let end = Instant::now() + took;
    let mut state = 1_u64;
    while Instant::now() < end {
        for _ in 0..1000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
        }
    }
    state
}

/// Another agent builds most of the time.
fn build_crates(end: Instant) {
    fs::create_dir_all("target").unwrap();
    let mut is_told = false;
    while Instant::now() < end {
        let file = lock_build_directory();
        if !is_told {
            println!("ready");
            is_told = true;
        }
        std::hint::black_box(compile_crate(Duration::from_millis(30)));
        std::thread::sleep(Duration::from_millis(800));
        drop(file);
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn check_crate(end: Instant) {
    let mut checks = 0;
    let mut waited = Duration::ZERO;
    while Instant::now() < end {
        let asked = Instant::now();
        let file = lock_build_directory();
        waited += asked.elapsed();
        std::hint::black_box(compile_crate(Duration::from_millis(20)));
        drop(file);
        checks += 1;
    }
    eprintln!("{checks} checks, waited {waited:?}");
}

// S43: a command is timed again and again.
#[inline(never)]
fn run_benchmark() -> Duration {
    let start = Instant::now();
    let status = Command::new("sleep").arg("0.3").status().unwrap();
    assert!(status.success());
    start.elapsed()
}

fn time_command(end: Instant) {
    let mut times = Vec::new();
    while Instant::now() < end {
        times.push(run_benchmark());
        println!("{}: {:?}", times.len(), times.last());
    }
    let all: Duration = times.iter().sum();
    eprintln!("{} runs, {:?} each", times.len(), all / times.len() as u32);
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let seconds: f64 = arguments[2].parse().unwrap();
    std::env::set_current_dir(&arguments[3]).unwrap();
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    match &*arguments[1] {
        "benchmark-files" => benchmark_files(end),
        "outline" => outline(end),
        "quantify" => quantify(end),
        "build-crates" => build_crates(end),
        "check-crate" => check_crate(end),
        "time-command" => time_command(end),
        other => panic!("{other}"),
    }
}
