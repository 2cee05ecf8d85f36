//! Programs after public reports, Y13 to Y18: see REPORTS.md.

use std::backtrace::Backtrace;
use std::fs::{File, OpenOptions};
use std::hint::spin_loop;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// What the command line says.
#[derive(Clone)]
struct Run {
    end_at: Instant,
    scratch: String,
    repaired: bool,
}

impl Run {
    fn running(&self) -> bool {
        Instant::now() < self.end_at
    }
}

// ---- Y13 format-tex: a formatter of LaTeX looks for comments ----

#[inline(never)]
fn find_comment_index(line: &str, repaired: bool) -> Option<usize> {
    if repaired {
        let mut previous = ' ';
        for (i, c) in line.chars().enumerate() {
            if c == '%' && (i == 0 || previous != '\\') {
                return Some(i);
            }
            previous = c;
        }
        return None;
    }
    let n = line.chars().count();
    for i in 0..n {
        let c = line.chars().nth(i).unwrap();
        if c == '%' && (i == 0 || line.chars().nth(i - 1).unwrap() != '\\') {
            return Some(i);
        }
    }
    None
}

#[inline(never)]
fn apply_indent(line: &str, indent: usize, out: &mut String) {
    out.clear();
    for _ in 0..indent {
        out.push(' ');
    }
    out.push_str(line.trim_start());
}

fn format_tex(run: &Run) {
    let paragraph = "Die Größe \\(x_i\\) wächst um 5\\% je Jahr (Müller). ".repeat(70);
    let lines: Vec<String> = (0..40)
        .map(|i| {
            if i % 3 == 0 {
                format!("  \\section{{Nr. {}}}% a comment", i)
            } else {
                format!("  {} {}", paragraph, i)
            }
        })
        .collect();
    let (mut files, mut comments) = (0u64, 0u64);
    let mut out = String::new();
    while run.running() {
        for line in &lines {
            if find_comment_index(line, run.repaired).is_some() {
                comments += 1;
            }
            apply_indent(line, 4, &mut out);
        }
        files += 1;
    }
    println!("files {}, comments {}", files, comments);
}

// ---- Y14 settings-check: an error type that remembers where it was made ----

#[derive(Debug)]
enum ErrorKind {
    NotANumber(String),
    OutOfRange(i64),
}

#[derive(Debug)]
struct Error {
    kind: ErrorKind,
    backtrace: Option<String>,
}

#[inline(never)]
fn make_backtrace(repaired: bool) -> Option<String> {
    if repaired {
        return None;
    }
    Some(Backtrace::force_capture().to_string())
}

impl Error {
    #[inline(never)]
    fn from_kind(kind: ErrorKind, repaired: bool) -> Error {
        Error { kind, backtrace: make_backtrace(repaired) }
    }
}

#[inline(never)]
fn parse_setting(text: &str, repaired: bool) -> Result<i64, Error> {
    let n: i64 = text
        .parse()
        .map_err(|_| Error::from_kind(ErrorKind::NotANumber(text.to_string()), repaired))?;
    if n < 0 {
        return Err(Error::from_kind(ErrorKind::OutOfRange(n), repaired));
    }
    Ok(n)
}

fn settings_check(run: &Run) {
    let texts: Vec<String> = (0..200)
        .map(|i| if i % 10 == 0 { format!("{}ms", i) } else { (i - 3).to_string() })
        .collect();
    let (mut checked, mut errors, mut bytes) = (0u64, 0u64, 0usize);
    while run.running() {
        for t in &texts {
            checked += 1;
            if let Err(e) = parse_setting(t, run.repaired) {
                errors += 1;
                bytes += e.backtrace.map_or(0, |b| b.len());
                bytes += match e.kind {
                    ErrorKind::NotANumber(s) => s.len(),
                    ErrorKind::OutOfRange(n) => n as usize & 1,
                };
            }
            if !run.running() {
                break;
            }
        }
    }
    println!("checked {}, errors {}, bytes {}", checked, errors, bytes);
}

// ---- Y15 raft-append: the log of a consensus group ----

struct WalFile {
    file: File,
    written: u64,
    fsyncs: u64,
}

impl WalFile {
    fn write_record(&mut self, record: &[u8]) {
        let mut frame = Vec::with_capacity(record.len() + 8);
        frame.extend_from_slice(&(record.len() as u32).to_le_bytes());
        let crc = record.iter().fold(0u32, |a, b| a.rotate_left(5) ^ *b as u32);
        frame.extend_from_slice(&crc.to_le_bytes());
        frame.extend_from_slice(record);
        self.file.write_all(&frame).unwrap();
        self.written += 1;
        if self.written % 100_000 == 0 {
            self.file.set_len(0).unwrap();
        }
    }

    fn sync(&mut self) {
        self.file.sync_data().unwrap();
        self.fsyncs += 1;
    }

    fn append(&mut self, record: &[u8]) {
        self.write_record(record);
        self.sync();
    }

    fn append_batch(&mut self, records: &[&[u8]]) {
        for r in records {
            self.write_record(r);
        }
        self.sync();
    }
}

fn raft_append(run: &Run) {
    let path = format!("{}/raft.wal", run.scratch);
    let file = OpenOptions::new().create(true).append(true).open(&path).unwrap();
    let mut wal = WalFile { file, written: 0, fsyncs: 0 };
    let record = [7u8; 256];
    let batch: Vec<&[u8]> = (0..128).map(|_| &record[..]).collect();
    while run.running() {
        if run.repaired {
            wal.append_batch(&batch);
        } else {
            wal.append(&record);
        }
    }
    println!("appends {}, fsyncs {}", wal.written, wal.fsyncs);
    std::fs::remove_file(path).unwrap();
}

// ---- Y16 result-queue: a bounded channel between two threads ----

struct Backoff {
    step: u32,
}

impl Backoff {
    fn spin(&mut self) {
        for _ in 0..1u32 << self.step.min(6) {
            spin_loop();
        }
        if self.step < 6 {
            self.step += 1;
        }
    }
}

struct Channel<T> {
    head: AtomicUsize,
    tail: AtomicUsize,
    cap: usize,
    buffer: Vec<Mutex<Option<T>>>,
}

impl<T> Channel<T> {
    fn new(cap: usize) -> Channel<T> {
        let buffer = (0..cap).map(|_| Mutex::new(None)).collect();
        Channel { head: AtomicUsize::new(0), tail: AtomicUsize::new(0), cap, buffer }
    }

    fn try_recv(&self) -> Option<T> {
        let head = self.head.load(Ordering::Relaxed);
        if head == self.tail.load(Ordering::Acquire) {
            return None;
        }
        let item = self.buffer[head % self.cap].lock().unwrap().take();
        self.head.store(head + 1, Ordering::Release);
        item
    }

    #[inline(never)]
    fn send(&self, msg: T, stop: &AtomicBool) -> bool {
        let mut backoff = Backoff { step: 0 };
        let tail = self.tail.load(Ordering::Relaxed);
        while tail - self.head.load(Ordering::Acquire) == self.cap {
            if stop.load(Ordering::Relaxed) {
                return false;
            }
            backoff.spin();
        }
        *self.buffer[tail % self.cap].lock().unwrap() = Some(msg);
        self.tail.store(tail + 1, Ordering::Release);
        true
    }
}

fn write_result(result: &[u8]) -> usize {
    thread::sleep(Duration::from_millis(20));
    result.len()
}

fn result_queue(run: &Run) {
    let mut bytes = 0;
    let mut results = 0u64;
    if run.repaired {
        let (tx, rx) = sync_channel::<Vec<u8>>(4);
        let producer = thread::spawn(move || while tx.send(vec![1; 512]).is_ok() {});
        while run.running() {
            bytes += write_result(&rx.recv().unwrap());
            results += 1;
        }
        drop(rx);
        producer.join().unwrap();
    } else {
        let channel = Arc::new(Channel::<Vec<u8>>::new(4));
        let stop = Arc::new(AtomicBool::new(false));
        let (ch, st) = (channel.clone(), stop.clone());
        let producer = thread::spawn(move || while ch.send(vec![1; 512], &st) {});
        while run.running() {
            if let Some(r) = channel.try_recv() {
                bytes += write_result(&r);
                results += 1;
            } else {
                thread::sleep(Duration::from_millis(1));
            }
        }
        stop.store(true, Ordering::Relaxed);
        producer.join().unwrap();
    }
    println!("results {}, bytes {}", results, bytes);
}

// ---- Y17 copy-blocks: dd with a large block from a pipe ----

const BUF_INIT_BYTE: u8 = 0xDD;

struct Input {
    src: std::io::PipeReader,
    bsize: usize,
}

#[inline(never)]
fn read_helper(i: &mut Input, buf: &mut Vec<u8>, repaired: bool) -> usize {
    if !repaired {
        buf.resize(i.bsize, BUF_INIT_BYTE);
    }
    let rlen = i.src.read(&mut buf[..]).unwrap();
    if !repaired {
        buf.truncate(rlen);
    }
    rlen
}

fn copy_blocks(run: &Run) {
    let (src, mut feed) = std::io::pipe().unwrap();
    let feeder = thread::spawn(move || {
        let data = vec![42u8; 65536];
        while feed.write_all(&data).is_ok() {}
    });
    let mut out = File::create("/dev/null").unwrap();
    let mut input = Input { src, bsize: 32 << 20 };
    let mut buf = vec![BUF_INIT_BYTE; input.bsize];
    let (mut blocks, mut bytes) = (0u64, 0usize);
    while run.running() {
        let rlen = read_helper(&mut input, &mut buf, run.repaired);
        out.write_all(&buf[..rlen]).unwrap();
        bytes += rlen;
        blocks += 1;
    }
    drop(input);
    feeder.join().unwrap();
    println!("blocks {}, bytes {}", blocks, bytes);
}

// ---- Y18 ledger-poll: the clock of a ledger and the stages that look at it ----

#[derive(Clone)]
struct Bank {
    slot: u64,
}

struct PohRecorder {
    tick_height: u64,
    working_bank: Option<Bank>,
}

impl PohRecorder {
    fn bank(&self) -> Option<Bank> {
        self.working_bank.clone()
    }

    fn tick(&mut self) {
        self.tick_height += 1;
        self.working_bank = Some(Bank { slot: self.tick_height / 64 });
    }
}

fn reset_poh_recorder(bank: &Bank) -> u64 {
    let mut hash = bank.slot.wrapping_add(1);
    let until = Instant::now() + Duration::from_millis(6);
    while Instant::now() < until {
        for _ in 0..1000 {
            hash = hash.wrapping_mul(6364136223846793005).rotate_left(17) ^ bank.slot;
        }
    }
    hash
}

fn replay_stage(run: &Run, poh: &Mutex<PohRecorder>) -> u64 {
    let mut replayed = 0;
    while run.running() {
        if run.repaired {
            let bank = poh.lock().unwrap().bank();
            if let Some(bank) = bank {
                replayed += reset_poh_recorder(&bank) % 2;
            }
        } else if let Some(bank) = poh.lock().unwrap().bank() {
            replayed += reset_poh_recorder(&bank) % 2;
        }
        thread::sleep(Duration::from_micros(200));
    }
    replayed
}

fn ledger_poll(run: &Run) {
    let poh = Arc::new(Mutex::new(PohRecorder {
        tick_height: 0,
        working_bank: Some(Bank { slot: 0 }),
    }));
    let records = Arc::new(AtomicU64::new(0));
    let mut threads = Vec::new();
    let (r, p) = (run.clone(), poh.clone());
    threads.push(thread::spawn(move || {
        replay_stage(&r, &p);
    }));
    for _ in 0..3 {
        let (r, p, n) = (run.clone(), poh.clone(), records.clone());
        threads.push(thread::spawn(move || {
            while r.running() {
                p.lock().unwrap().tick();
                n.fetch_add(1, Ordering::Relaxed);
                thread::sleep(Duration::from_micros(300));
            }
        }));
    }
    for t in threads {
        t.join().unwrap();
    }
    println!("ticks {}", records.load(Ordering::Relaxed));
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if args.len() < 4 {
        std::process::exit(2);
    }
    let seconds: f64 = args[2].parse().unwrap();
    let run = Run {
        end_at: Instant::now() + Duration::from_secs_f64(seconds),
        scratch: args[3].clone(),
        repaired: args.get(4).map_or(false, |a| a == "fixed"),
    };
    match args[1].as_str() {
        "format-tex" => format_tex(&run),
        "settings-check" => settings_check(&run),
        "raft-append" => raft_append(&run),
        "result-queue" => result_queue(&run),
        "copy-blocks" => copy_blocks(&run),
        "ledger-poll" => ledger_poll(&run),
        _ => std::process::exit(2),
    }
}
