//! ninth.rs: five small programs in Rust, chosen by the first argument; each runs for SECONDS
//! below FOLDER/CASE and then prints one line.

use std::collections::HashMap;
use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

struct Run {
    name: String,
    end: Instant,
    dir: PathBuf,
}

impl Run {
    fn over(&self) -> bool {
        Instant::now() >= self.end
    }

    fn print(&self, n: u64) {
        println!("{}: {n} things", self.name);
    }

    fn exit_at_end(&self, count: &Arc<AtomicU64>) {
        let (name, end, count) = (self.name.clone(), self.end, Arc::clone(count));
        thread::Builder::new()
            .name("deadline".into())
            .spawn(move || {
                thread::sleep(end.saturating_duration_since(Instant::now()));
                println!("{name}: {} things", count.load(Ordering::Relaxed));
                std::process::exit(0);
            })
            .unwrap();
    }
}

// ---- work-drain ----

struct Job {
    id: u64,
    tries: u32,
}

struct WorkList {
    pending: Mutex<Vec<Job>>,
}

impl WorkList {
    fn add(&self, job: Job) {
        self.pending.lock().unwrap().push(job);
    }

    fn drain_all(&self, done: &AtomicU64) {
        while let Some(job) = self.pending.lock().unwrap().pop() {
            if job.id % 8 == 0 && job.tries == 0 {
                self.add(Job { id: job.id, tries: 1 });
            }
            done.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn work_drain(run: &Run) {
    let done = Arc::new(AtomicU64::new(0));
    run.exit_at_end(&done);
    let list = WorkList { pending: Mutex::new(Vec::new()) };
    for id in 0..100 {
        list.add(Job { id, tries: 0 });
    }
    list.drain_all(&done);
    run.print(done.load(Ordering::Relaxed));
}

// ---- event-stream ----

enum Event {
    Key(u64),
    Tick,
}

fn spawn_source(tx: mpsc::Sender<Event>, n: u64) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        for i in 0..n {
            let event = if i % 10 == 0 { Event::Tick } else { Event::Key(i) };
            tx.send(event).unwrap();
        }
    })
}

fn collect_events(rx: mpsc::Receiver<Event>, seen: &AtomicU64) -> u64 {
    let mut sum = 0;
    for event in rx {
        if let Event::Key(k) = event {
            sum += k;
        }
        seen.fetch_add(1, Ordering::Relaxed);
    }
    sum
}

fn event_stream(run: &Run) {
    let seen = Arc::new(AtomicU64::new(0));
    run.exit_at_end(&seen);
    let (tx, rx) = mpsc::channel();
    let sources: Vec<_> = (0..2).map(|_| spawn_source(tx.clone(), 5000)).collect();
    let sum = collect_events(rx, &seen);
    drop(tx);
    for s in sources {
        s.join().unwrap();
    }
    run.print(seen.load(Ordering::Relaxed) + u64::from(sum == 1));
}

// ---- packet-sender ----

#[derive(Clone)]
struct Packet {
    data: [u8; 256],
    size: usize,
    addr: SocketAddr,
}

fn new_packets(n: usize, addr: SocketAddr) -> Vec<Packet> {
    (0..n).map(|i| Packet { data: [i as u8; 256], size: 128 + i % 64, addr }).collect()
}

fn send_mmsg(sock: &UdpSocket, packets: &[Packet]) -> usize {
    let mut count = 0;
    for p in packets {
        if sock.send_to(&p.data[..p.size], p.addr).is_ok() {
            count += 1;
        }
    }
    count
}

fn packet_sender(run: &Run) {
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    let sock = UdpSocket::bind("127.0.0.1:0").unwrap();
    let packets = new_packets(128, receiver.local_addr().unwrap());
    let mut sent = 0;
    while !run.over() {
        sent += send_mmsg(&sock, &packets) as u64;
    }
    run.print(sent);
}

// ---- glob-walk ----

struct Glob {
    suffix: String,
    found: u64,
}

impl Glob {
    fn is_dir(path: &Path) -> bool {
        fs::metadata(path).map(|m| m.is_dir()).unwrap_or(false)
    }

    fn fill_todo(&mut self, dir: &Path) {
        let Ok(entries) = fs::read_dir(dir) else { return };
        let children: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
        for path in children {
            if Self::is_dir(&path) {
                self.fill_todo(&path);
            }
            if path.to_string_lossy().ends_with(&self.suffix) && !Self::is_dir(&path) {
                self.found += 1;
            }
        }
    }
}

fn glob_walk(run: &Run) {
    for d in 0..10 {
        let dir = run.dir.join(format!("src/module-{d}/lib"));
        fs::create_dir_all(&dir).unwrap();
        for f in 0..150 {
            fs::write(dir.join(format!("unit-{f}.rs")), b"x").unwrap();
        }
    }
    let mut glob = Glob { suffix: ".rs".into(), found: 0 };
    while !run.over() {
        glob.fill_todo(&run.dir);
    }
    run.print(glob.found);
}

// ---- script-lexer ----

#[derive(PartialEq, Eq, Hash, Clone, Copy)]
enum Token {
    Ident,
    Int,
    Symbol,
    Eof,
}

struct Lexer {
    input: String,
    pos: usize,
    read_pos: usize,
    ch: Option<char>,
}

impl Lexer {
    fn new(input: String) -> Self {
        let mut lexer = Lexer { input, pos: 0, read_pos: 0, ch: None };
        lexer.read_char();
        lexer
    }

    fn read_char(&mut self) {
        self.ch = self.input.chars().nth(self.read_pos);
        self.pos = self.read_pos;
        self.read_pos += 1;
    }

    fn read_while(&mut self, f: fn(char) -> bool) {
        while self.ch.is_some_and(f) {
            self.read_char();
        }
    }

    fn next_token(&mut self) -> Token {
        self.read_while(char::is_whitespace);
        match self.ch {
            None => Token::Eof,
            Some(c) if c.is_alphabetic() => {
                self.read_while(char::is_alphanumeric);
                Token::Ident
            }
            Some(c) if c.is_ascii_digit() => {
                self.read_while(|c| c.is_ascii_digit());
                Token::Int
            }
            Some(_) => {
                self.read_char();
                Token::Symbol
            }
        }
    }
}

fn script_lexer(run: &Run) {
    let source: String = (0..1500).map(|i| format!("let länge{i} = {i} + wert;\n")).collect();
    let mut counts: HashMap<Token, u64> = HashMap::new();
    while !run.over() {
        let mut lexer = Lexer::new(source.clone());
        loop {
            let token = lexer.next_token();
            *counts.entry(token).or_default() += 1;
            if token == Token::Eof || (lexer.pos % 16 == 0 && run.over()) {
                break;
            }
        }
    }
    run.print(counts.values().sum());
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if args.len() < 4 {
        std::process::exit(2);
    }
    let seconds: f64 = args[2].parse().unwrap();
    let dir = Path::new(&args[3]).join(&args[1]);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let run = Run { name: args[1].clone(), end, dir };
    match args[1].as_str() {
        "work-drain" => work_drain(&run),
        "event-stream" => event_stream(&run),
        "packet-sender" => packet_sender(&run),
        "glob-walk" => glob_walk(&run),
        "script-lexer" => script_lexer(&run),
        _ => std::process::exit(2),
    }
}
