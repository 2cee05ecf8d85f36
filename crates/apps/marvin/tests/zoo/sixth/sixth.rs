//! Six small programs after public reports: sixth NAME SECONDS FOLDER [fixed]

use std::collections::{HashMap, VecDeque};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

struct Run {
    end: Instant,
    folder: PathBuf,
    fixed: bool,
}

impl Run {
    fn running(&self) -> bool {
        Instant::now() < self.end
    }
}

fn next(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    *seed >> 33
}

// ---------------------------------------------------------------- peer-network

#[derive(Clone)]
struct NetworkBehaviourAction {
    peer: [u8; 40],
    protocol: u32,
    body: [u64; 16],
}

struct GenericProto {
    events: Vec<NetworkBehaviourAction>,
    queue: VecDeque<NetworkBehaviourAction>,
    fixed: bool,
}

impl GenericProto {
    fn push(&mut self, action: NetworkBehaviourAction) {
        if self.fixed {
            self.queue.push_back(action);
        } else {
            self.events.push(action);
        }
    }

    #[inline(never)]
    fn poll(&mut self) -> Option<NetworkBehaviourAction> {
        if self.fixed {
            return self.queue.pop_front();
        }
        if !self.events.is_empty() {
            return Some(self.events.remove(0));
        }
        None
    }
}

fn peer_network(run: &Run) {
    let mut behaviour =
        GenericProto { events: Vec::new(), queue: VecDeque::new(), fixed: run.fixed };
    let mut seed = 5;
    let mut handled = 0u64;
    let mut sum = 0u64;
    while run.running() {
        for _ in 0..4000 {
            let n = next(&mut seed);
            let action = NetworkBehaviourAction {
                peer: [n as u8; 40],
                protocol: (n & 3) as u32,
                body: [n; 16],
            };
            behaviour.push(action);
        }
        while let Some(action) = behaviour.poll() {
            sum = sum.wrapping_add(action.body[3] ^ u64::from(action.protocol));
            sum = sum.wrapping_add(u64::from(action.peer[7]));
            handled += 1;
        }
    }
    println!("events {handled} {}", sum & 1);
}

// ---------------------------------------------------------------- outliner

struct JsonlStorage {
    path: PathBuf,
}

impl JsonlStorage {
    fn append_op_inner(&self, op: &str) -> io::Result<()> {
        let mut file = OpenOptions::new().create(true).append(true).open(&self.path)?;
        file.write_all(op.as_bytes())?;
        file.sync_all()
    }

    fn append_ops(&self, ops: &[String]) -> io::Result<()> {
        let mut file = OpenOptions::new().create(true).append(true).open(&self.path)?;
        file.write_all(ops.concat().as_bytes())?;
        file.sync_all()
    }
}

fn upsert_page(storage: &JsonlStorage, page: u64, fixed: bool) -> io::Result<()> {
    let mut ops = Vec::new();
    for block in 0..18 {
        ops.push(format!("{{\"op\":\"create\",\"page\":{page},\"block\":{block}}}\n"));
    }
    if fixed {
        return storage.append_ops(&ops);
    }
    for op in &ops {
        storage.append_op_inner(op)?;
    }
    Ok(())
}

fn outliner(run: &Run) -> io::Result<()> {
    let storage = JsonlStorage { path: run.folder.join("ops.jsonl") };
    let mut pages = 0;
    while run.running() {
        upsert_page(&storage, pages, run.fixed)?;
        pages += 1;
    }
    println!("pages {pages}");
    Ok(())
}

// ---------------------------------------------------------------- sql-session

fn read_packet(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut header = [0u8; 8];
    stream.read_exact(&mut header)?;
    let length = u16::from_be_bytes([header[2], header[3]]) as usize;
    let mut body = vec![0u8; length - 8];
    stream.read_exact(&mut body)?;
    Ok(body)
}

fn header(kind: u8, length: usize) -> [u8; 8] {
    let l = ((length + 8) as u16).to_be_bytes();
    [kind, 1, l[0], l[1], 0, 0, 1, 0]
}

fn sql_server(run: &Run) -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    std::fs::write(run.folder.join("sql-server"), listener.local_addr()?.to_string())?;
    println!("ready");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || serve(stream));
        }
    });
    thread::sleep(run.end.saturating_duration_since(Instant::now()));
    Ok(())
}

fn serve(mut stream: TcpStream) -> io::Result<()> {
    loop {
        let body = read_packet(&mut stream)?;
        let mut reply = header(4, 24).to_vec();
        reply.extend_from_slice(&[body.len() as u8; 24]);
        stream.write_all(&reply)?;
    }
}

struct Connection {
    stream: TcpStream,
}

impl Connection {
    fn write_packet(&mut self, body: &[u8]) -> io::Result<()> {
        self.stream.write_all(&header(1, body.len()))?;
        self.stream.write_all(body)
    }

    fn simple_query(&mut self, query: &str) -> io::Result<usize> {
        self.write_packet(query.as_bytes())?;
        Ok(read_packet(&mut self.stream)?.len())
    }
}

fn sql_session(run: &Run) -> io::Result<()> {
    let address = std::fs::read_to_string(run.folder.join("sql-server"))?;
    let stream = TcpStream::connect(address)?;
    if run.fixed {
        stream.set_nodelay(true)?;
    }
    let mut connection = Connection { stream };
    let mut queries = 0;
    while run.running() {
        connection.simple_query("SELECT name FROM sys.tables WHERE object_id = 4711")?;
        queries += 1;
    }
    println!("queries {queries}");
    Ok(())
}

// ---------------------------------------------------------------- page-store

#[derive(Clone)]
struct Node {
    id: u64,
    data: Vec<(Vec<u8>, Vec<u8>)>,
}

struct PageCache {
    pages: HashMap<u64, Arc<Node>>,
}

impl PageCache {
    #[inline(never)]
    fn get(&self, pid: u64) -> Option<Node> {
        self.pages.get(&pid).map(|page| (**page).clone())
    }

    #[inline(never)]
    fn get_shared(&self, pid: u64) -> Option<Arc<Node>> {
        self.pages.get(&pid).cloned()
    }
}

fn find(node: &Node, key: &[u8]) -> usize {
    match node.data.binary_search_by(|(k, _)| k.as_slice().cmp(key)) {
        Ok(at) => node.data[at].1.len(),
        Err(_) => node.id as usize & 1,
    }
}

fn page_store(run: &Run) {
    let mut cache = PageCache { pages: HashMap::new() };
    for id in 0..300 {
        let row = |i: u64| (format!("key-{id:05}-{i:05}").into_bytes(), vec![i as u8; 48]);
        let data = (0..128).map(row).collect();
        cache.pages.insert(id, Arc::new(Node { id, data }));
    }
    let mut seed = 9;
    let (mut reads, mut found) = (0u64, 0usize);
    while run.running() {
        let pid = next(&mut seed) % 300;
        let key = format!("key-{pid:05}-{:05}", next(&mut seed) % 128).into_bytes();
        if run.fixed {
            if let Some(node) = cache.get_shared(pid) {
                found += find(&node, &key);
            }
        } else if let Some(node) = cache.get(pid) {
            found += find(&node, &key);
        }
        reads += 1;
    }
    println!("reads {reads} {}", found > 0);
}

// ---------------------------------------------------------------- task-runner

trait ChildExt {
    fn wait_or_timeout(&mut self, timeout: Duration, fixed: bool)
    -> io::Result<Option<ExitStatus>>;
}

impl ChildExt for Child {
    fn wait_or_timeout(
        &mut self,
        timeout: Duration,
        fixed: bool,
    ) -> io::Result<Option<ExitStatus>> {
        if fixed || timeout.is_zero() {
            return self.wait().map(Some);
        }
        drop(self.stdin.take());
        let start = Instant::now();
        loop {
            if let Some(status) = self.try_wait()? {
                return Ok(Some(status));
            }
            if start.elapsed() >= timeout {
                break;
            }
            thread::sleep(Duration::from_millis(100));
        }
        Ok(None)
    }
}

fn task_runner(run: &Run) -> io::Result<()> {
    let mut tasks = 0;
    while run.running() {
        let mut process = Command::new("/bin/true").stdin(Stdio::null()).spawn()?;
        if process.wait_or_timeout(Duration::from_secs(10), run.fixed)?.is_some() {
            tasks += 1;
        }
    }
    println!("tasks {tasks}");
    Ok(())
}

// ---------------------------------------------------------------- login-check

type Block = [u64; 128];

fn mix(mut a: u64, b: u64, c: u64) -> u64 {
    for round in 0..4 {
        a = a.wrapping_add(b).wrapping_add((a & 0xffff_ffff).wrapping_mul(b & 0xffff_ffff) << 1);
        a = (a ^ c).rotate_right(24 + round);
    }
    a
}

fn fill_block(previous: &Block, reference: &Block, target: &mut Block) {
    for i in 0..128 {
        let left = previous[i] ^ reference[(i * 17) & 127];
        target[i] ^= mix(left, reference[i], previous[(i + 1) & 127]);
    }
}

fn fill_memory_blocks(memory: &mut [Block], passes: u32) {
    let count = memory.len();
    for _ in 0..passes {
        for at in 0..count {
            let previous = memory[(at + count - 1) % count];
            let reference = memory[previous[0] as usize % count];
            fill_block(&previous, &reference, &mut memory[at]);
        }
    }
}

fn hash_password_into(password: &[u8], salt: u64) -> u64 {
    let mut memory = vec![[salt; 128]; 1024];
    for (i, byte) in password.iter().enumerate() {
        memory[0][i & 127] ^= u64::from(*byte) << (i & 31);
    }
    fill_memory_blocks(&mut memory, 13);
    memory[1023].iter().fold(0, |sum, word| sum ^ word)
}

fn login_check(run: &Run) {
    let users: Vec<u64> = (0..8).map(|i| hash_password_into(b"correct horse", i)).collect();
    let mut logins = 0usize;
    let mut accepted = 0;
    while run.running() {
        let user = logins % users.len();
        if hash_password_into(b"correct horse", user as u64) == users[user] {
            accepted += 1;
        }
        logins += 1;
    }
    println!("logins {logins} accepted {accepted}");
}

fn create(folder: &Path) -> io::Result<()> {
    File::create(folder.join("ops.jsonl")).map(|_| ())
}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.len() < 4 {
        std::process::exit(2);
    }
    let seconds: f64 = arguments[2].parse().unwrap_or(4.0);
    let run = Run {
        end: Instant::now() + Duration::from_secs_f64(seconds),
        folder: PathBuf::from(&arguments[3]),
        fixed: arguments.get(4).is_some_and(|word| word == "fixed"),
    };
    match arguments[1].as_str() {
        "peer-network" => peer_network(&run),
        "outliner" => create(&run.folder).and_then(|()| outliner(&run))?,
        "sql-server" => sql_server(&run)?,
        "sql-session" => sql_session(&run)?,
        "page-store" => page_store(&run),
        "task-runner" => task_runner(&run)?,
        "login-check" => login_check(&run),
        _ => std::process::exit(2),
    }
    Ok(())
}
