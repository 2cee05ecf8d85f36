//! Five programs after public reports, one of them per run: CASE SECONDS FOLDER [fixed].

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::env;
use std::fs::{self, File};
use std::hash::{Hash, Hasher};
use std::io::{BufReader, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

struct Run {
    deadline: Instant,
    seconds: f64,
    folder: PathBuf,
    fixed: bool,
}

impl Run {
    fn time_left(&self) -> bool {
        Instant::now() < self.deadline
    }
}

// ---- query-server: a database that speaks a wire protocol; query-shell is its client ----

const ROWS: usize = 24;

fn send_row_description(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut out = vec![b'T', 0, 0, 0, 29];
    out.extend_from_slice(b"count(*)\0............bigint");
    out.resize(30, 0);
    stream.write_all(&out)
}

fn send_data_rows(stream: &mut TcpStream, n: u64) -> std::io::Result<()> {
    let mut out = Vec::new();
    for row in 0..ROWS as u64 {
        out.push(b'D');
        out.extend_from_slice(&(n * 7 + row).to_be_bytes());
    }
    out.push(b'Z');
    stream.write_all(&out)
}

fn handle_connection(run: &Run, mut stream: TcpStream) -> u64 {
    if run.fixed {
        stream.set_nodelay(true).expect("nodelay");
    }
    let mut answered = 0;
    let mut query = [0u8; 32];
    while run.time_left() {
        if stream.read_exact(&mut query).is_err() {
            break;
        }
        if send_row_description(&mut stream).is_err() {
            break;
        }
        if send_data_rows(&mut stream, answered).is_err() {
            break;
        }
        answered += 1;
    }
    answered
}

fn query_server(run: &Run) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let port = listener.local_addr().expect("address").port();
    let file = run.folder.join("port");
    fs::write(run.folder.join("port.new"), format!("{port}\n")).expect("port file");
    fs::rename(run.folder.join("port.new"), &file).expect("port file");
    let (stream, _) = listener.accept().expect("accept");
    let answered = handle_connection(run, stream);
    let _ = fs::remove_file(&file);
    println!("query-server: {answered} queries answered");
}

fn query_shell(run: &Run) {
    let file = run.folder.parent().expect("folder").join("query-server/port");
    let _ = fs::remove_file(&file);
    println!("ready");
    std::io::stdout().flush().expect("stdout");
    while run.time_left() {
        let port = fs::read_to_string(&file).ok().and_then(|t| t.trim().parse::<u16>().ok());
        let stream = port.and_then(|p| TcpStream::connect(("127.0.0.1", p)).ok());
        let Some(mut stream) = stream else {
            thread::sleep(Duration::from_millis(20));
            continue;
        };
        let query = *b"SELECT count(*) FROM orders;....";
        let mut reply = [0u8; 30 + ROWS * 9 + 1];
        while run.time_left() {
            if stream.write_all(&query).is_err() || stream.read_exact(&mut reply).is_err() {
                break;
            }
        }
    }
}

// ---- model-check: states of a protocol are visited; each has a fingerprint ----

#[derive(Clone, Hash)]
enum Value {
    Int(i64),
    Text(String),
    Seq(Vec<Value>),
    Dict(BTreeMap<i64, Value>),
}

struct WordHasher(u64);

impl Hasher for WordHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0u8; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }
    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
    fn write_i64(&mut self, word: i64) {
        self.write_u64(word as u64);
    }
    fn write_u8(&mut self, byte: u8) {
        self.write_u64(u64::from(byte));
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

#[inline(never)]
fn hash_var(fixed: bool, index: usize, value: &Value) -> u64 {
    if fixed {
        let mut h = WordHasher(index as u64);
        value.hash(&mut h);
        return h.finish();
    }
    let mut h = DefaultHasher::new();
    index.hash(&mut h);
    value.hash(&mut h);
    h.finish()
}

fn next_state(vars: &mut [Value], step: i64) {
    let index = (step as usize).wrapping_mul(7) % vars.len();
    match &mut vars[index] {
        Value::Int(n) => *n += step,
        Value::Text(t) => {
            t.truncate(12);
            t.push((b'a' + (step % 26) as u8) as char);
        }
        Value::Seq(list) => {
            if let Some(v) = list.first_mut() {
                *v = Value::Int(step);
            }
        }
        Value::Dict(map) => {
            map.insert(step % 5, Value::Int(step));
        }
    }
}

fn model_check(run: &Run) {
    let log = |n: i64| Value::Seq((0..12).map(|i| Value::Int(i * n)).collect());
    let mut vars = Vec::new();
    for i in 0..17 {
        vars.push(match i % 4 {
            0 => Value::Int(i),
            1 => Value::Text(format!("follower-{i}")),
            2 => log(i),
            _ => Value::Dict((0..5).map(|k| (k, log(k + i))).collect()),
        });
    }
    let mut seen = HashSet::new();
    let mut states = 0;
    while run.time_left() {
        next_state(&mut vars, states);
        let mut fingerprint = 0u64;
        for (i, v) in vars.iter().enumerate() {
            fingerprint ^= hash_var(run.fixed, i, v);
        }
        if seen.len() < 50_000 {
            seen.insert(fingerprint);
        }
        states += 1;
    }
    println!("model-check: {states} states, {} of them kept", seen.len());
}

// ---- raft-node: a node reads its state from a file of JSON ----

struct JsonReader<R: Read> {
    bytes: std::io::Bytes<R>,
    peeked: Option<u8>,
}

impl<R: Read> JsonReader<R> {
    fn from_reader(reader: R) -> Self {
        JsonReader { bytes: reader.bytes(), peeked: None }
    }
    fn next(&mut self) -> Option<u8> {
        self.peeked.take().or_else(|| self.bytes.next().and_then(Result::ok))
    }
    fn parse_value(&mut self, depth: usize) -> usize {
        let mut values = 0;
        while let Some(b) = self.next() {
            match b {
                b'{' | b'[' => values += self.parse_value(depth + 1),
                b'}' | b']' => return values + depth,
                b'"' => {
                    while self.next().is_some_and(|c| c != b'"') {}
                    values += 1;
                }
                _ => {}
            }
        }
        values
    }
}

fn load_json(path: &Path, fixed: bool) -> usize {
    let file = File::open(path).expect("state file");
    if fixed {
        JsonReader::from_reader(BufReader::new(file)).parse_value(0)
    } else {
        JsonReader::from_reader(file).parse_value(0)
    }
}

fn raft_node(run: &Run) {
    let path = run.folder.join("raft_state.json");
    let mut text = String::from("{\"peer_address_by_id\":{");
    for i in 0..200 {
        text.push_str(&format!("\"{i}\":\"http://10.0.0.{i}:6335/\","));
    }
    text.push_str("\"end\":\"\"}}");
    fs::write(&path, text).expect("state file");
    let (mut loads, mut values) = (0u64, 0);
    while run.time_left() {
        values += load_json(&path, run.fixed);
        loads += 1;
    }
    println!("raft-node: {loads} loads, {values} values");
}

// ---- history-filter: which commits of a history still have to be filtered ----

type Oid = [u8; 20];

struct Transaction {
    missing: Vec<Oid>,
}

impl Transaction {
    #[inline(never)]
    fn add_missing(&mut self, oid: Oid, fixed: bool) {
        if fixed {
            self.missing.push(oid);
            return;
        }
        if self.missing.contains(&oid) {
            return;
        }
        self.missing.insert(0, oid);
    }
}

fn oid_of(n: u64) -> Oid {
    let mut oid = [0u8; 20];
    oid[..8].copy_from_slice(&n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    oid[12..].copy_from_slice(&n.to_be_bytes());
    oid
}

fn history_filter(run: &Run) {
    let (mut walks, mut last) = (0u64, 0u8);
    let mut commits = 0u64;
    while run.time_left() {
        let mut t = Transaction { missing: Vec::new() };
        for n in 0..30_000 {
            t.add_missing(oid_of(n + walks * 100_000), run.fixed);
            commits += 1;
            if n % 256 == 0 && !run.time_left() {
                break;
            }
        }
        if run.fixed {
            t.missing.reverse();
        }
        last ^= t.missing[0][3];
        walks += 1;
    }
    println!("history-filter: {commits} commits in {walks} walks ({last})");
}

// ---- game-lobby: players send packets to a socket that a thread polls ----

struct Socket {
    socket: UdpSocket,
    outgoing: mpsc::Receiver<Vec<u8>>,
    events: VecDeque<usize>,
    polls: u64,
}

impl Socket {
    fn manual_poll(&mut self) {
        let mut buffer = [0u8; 1500];
        loop {
            match self.socket.recv_from(&mut buffer) {
                Ok((n, _)) => self.events.push_back(n),
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(_) => break,
            }
        }
        while let Ok(packet) = self.outgoing.try_recv() {
            let _ = self.socket.send(&packet);
        }
        self.polls += 1;
    }
    fn start_polling(&mut self, run: &Run) {
        while run.time_left() {
            self.manual_poll();
            if run.fixed {
                thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

fn game_lobby(run: &Arc<Run>) {
    let server = UdpSocket::bind("127.0.0.1:0").expect("bind");
    server.set_nonblocking(true).expect("nonblocking");
    let address = server.local_addr().expect("address");
    let (_sender, outgoing) = mpsc::channel();
    let mut socket = Socket { socket: server, outgoing, events: VecDeque::new(), polls: 0 };
    let player_run = Arc::clone(run);
    let player = thread::spawn(move || {
        let s = UdpSocket::bind("127.0.0.1:0").expect("bind");
        while player_run.time_left() {
            let _ = s.send_to(b"position 12 40 7", address);
            thread::sleep(Duration::from_millis(50));
        }
    });
    socket.start_polling(run);
    player.join().expect("player");
    println!("game-lobby: {} packets, {} polls", socket.events.len(), socket.polls);
}

fn main() {
    let args: Vec<String> = env::args().collect();
    if args.len() < 4 {
        eprintln!("usage: case seconds folder [fixed]");
        std::process::exit(2);
    }
    let seconds: f64 = args[2].parse().expect("seconds");
    let run = Arc::new(Run {
        deadline: Instant::now() + Duration::from_secs_f64(seconds),
        seconds,
        folder: Path::new(&args[3]).join(&args[1]),
        fixed: args.get(4).is_some_and(|a| a == "fixed"),
    });
    fs::create_dir_all(&run.folder).expect("folder");
    match args[1].as_str() {
        "query-server" => query_server(&run),
        "query-shell" => query_shell(&run),
        "model-check" => model_check(&run),
        "raft-node" => raft_node(&run),
        "history-filter" => history_filter(&run),
        "game-lobby" => game_lobby(&run),
        other => {
            eprintln!("no case {other} ({} s)", run.seconds);
            std::process::exit(2);
        }
    }
}
