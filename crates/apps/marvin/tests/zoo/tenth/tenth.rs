//! Five small programs from public reports, written anew. Usage: tenth CASE SECONDS FOLDER
use std::collections::HashSet;
use std::fs::{self, File};
use std::hash::{BuildHasherDefault, Hasher};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

static THINGS: AtomicU64 = AtomicU64::new(0);

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

fn exit_at(stop: Instant, name: &'static str, things: &'static str) {
    thread::spawn(move || {
        thread::sleep(stop.saturating_duration_since(Instant::now()));
        println!("{name}: {} {things}", THINGS.load(Ordering::Relaxed));
        process::exit(0);
    });
}

// ---- page-reader ----

struct FileSource<R: Read + Seek> {
    reader: R,
    start: u64,
}

impl<R: Read + Seek> Read for FileSource<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader.seek(SeekFrom::Start(self.start))?;
        let n = self.reader.read(buffer)?;
        self.start += n as u64;
        Ok(n)
    }
}

fn read_varint(source: &mut impl Read) -> io::Result<u64> {
    let mut value = 0;
    let mut shift = 0;
    loop {
        let mut byte = [0];
        source.read_exact(&mut byte)?;
        value |= u64::from(byte[0] & 0x7f) << shift;
        if byte[0] & 0x80 == 0 {
            return Ok(value);
        }
        shift += 7;
    }
}

fn page_reader(folder: &Path, stop: Instant) -> u64 {
    let path = folder.join("columns.parquet");
    let mut random = Random(77);
    let mut data = Vec::new();
    while data.len() < 16 << 20 {
        let mut value = random.next() >> 40;
        while value >= 0x80 {
            data.push(value as u8 | 0x80);
            value >>= 7;
        }
        data.push(value as u8);
    }
    fs::write(&path, &data).expect("write");
    let mut headers = 0;
    let mut sum = 0u64;
    while Instant::now() < stop {
        let file = File::open(&path).expect("open");
        let mut source = FileSource { reader: BufReader::new(file), start: 0 };
        while let Ok(value) = read_varint(&mut source) {
            sum = sum.wrapping_add(value);
            headers += 1;
            if headers % 64 == 0 && Instant::now() >= stop {
                break;
            }
        }
    }
    headers + (sum & 1)
}

// ---- key-list ----

struct Version {
    major: u32,
    minor: u32,
    label: u64,
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "v{}.{}-{:x}", self.major, self.minor, self.label)
    }
}

fn key_list(stop: Instant) -> u64 {
    let mut random = Random(5);
    let mut sorted = 0;
    while Instant::now() < stop {
        let mut keys: Vec<Version> = (0..20000)
            .map(|_| {
                let r = random.next();
                Version { major: r as u32 % 9, minor: (r >> 20) as u32 % 50, label: r >> 30 }
            })
            .collect();
        keys.sort_by_key(ToString::to_string);
        sorted += keys.len() as u64;
    }
    sorted
}

// ---- set-rebuild ----

#[derive(Default)]
struct FastHasher(u64);

impl Hasher for FastHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

type IdSet = HashSet<u64, BuildHasherDefault<FastHasher>>;

fn copy_kept(ids: &IdSet) -> IdSet {
    let mut kept = IdSet::default();
    for &id in ids {
        if id % 1000 != 0 {
            kept.insert(id);
        }
    }
    kept
}

fn set_rebuild(stop: Instant) -> u64 {
    let mut random = Random(9);
    let mut ids = IdSet::default();
    for _ in 0..1_600_000 {
        ids.insert(random.next());
    }
    let mut copied = 0;
    while Instant::now() < stop {
        copied += copy_kept(&ids).len() as u64;
    }
    copied
}

// ---- filter-child ----

fn run_filter(lines: &[String]) -> u64 {
    let mut child = Command::new("sort")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("spawn");
    let mut input = child.stdin.take().expect("stdin");
    for line in lines {
        writeln!(input, "{line}").expect("write");
    }
    input.flush().expect("flush");
    let status = child.wait().expect("wait");
    u64::from(status.success())
}

fn filter_child() -> u64 {
    let lines: Vec<String> = (0..500).rev().map(|i| format!("line {i}")).collect();
    loop {
        THINGS.fetch_add(run_filter(&lines), Ordering::Relaxed);
    }
}

// ---- wait-group ----

#[derive(Clone)]
struct WaitGroup(Arc<(Mutex<usize>, Condvar)>);

impl WaitGroup {
    fn new() -> Self {
        WaitGroup(Arc::new((Mutex::new(0), Condvar::new())))
    }

    fn add(&self, delta: usize) {
        *self.0.0.lock().unwrap() += delta;
    }

    fn done(&self) {
        let mut count = self.0.0.lock().unwrap();
        *count -= 1;
        if *count == 0 {
            self.0.1.notify_one();
        }
    }

    fn wait(&self) {
        let mut count = self.0.0.lock().unwrap();
        while *count > 0 {
            count = self.0.1.wait(count).unwrap();
        }
    }
}

fn wait_group() -> u64 {
    loop {
        let group = WaitGroup::new();
        group.add(10);
        let waiters: Vec<_> = (0..4)
            .map(|_| {
                let group = group.clone();
                thread::spawn(move || {
                    group.wait();
                    THINGS.fetch_add(1, Ordering::Relaxed);
                })
            })
            .collect();
        for _ in 0..10 {
            thread::sleep(Duration::from_millis(10));
            group.done();
        }
        for waiter in waiters {
            waiter.join().unwrap();
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let name = arguments[1].as_str();
    let seconds: f64 = arguments[2].parse().expect("seconds");
    let folder = PathBuf::from(&arguments[3]).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("folder");
    let stop = Instant::now() + Duration::from_secs_f64(seconds);
    let (count, things) = match name {
        "page-reader" => (page_reader(&folder, stop), "headers"),
        "key-list" => (key_list(stop), "keys"),
        "set-rebuild" => (set_rebuild(stop), "ids"),
        "filter-child" => {
            exit_at(stop, "filter-child", "filters");
            (filter_child(), "filters")
        }
        "wait-group" => {
            exit_at(stop, "wait-group", "waiters");
            (wait_group(), "waiters")
        }
        _ => process::exit(2),
    };
    println!("{name}: {count} {things}");
}
