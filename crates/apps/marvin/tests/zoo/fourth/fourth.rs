//! Programs from public reports, V14..V18 (see REPORTS.md). Build: rustc -O -g --edition 2024 fourth.rs
use std::collections::{HashMap, VecDeque};
use std::fs;
use std::hint::black_box;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, RwLock};
use std::thread;
use std::time::{Duration, Instant};

struct Run {
    end: Instant,
    secs: f64,
    dir: PathBuf,
    fixed: bool,
}

impl Run {
    fn going(&self) -> bool {
        Instant::now() < self.end
    }
}

// ---- V14: a client of a memory cache ----

fn cache_server(run: &Run) -> io::Result<()> {
    let l = TcpListener::bind("127.0.0.1:0")?;
    fs::write(run.dir.join("cache.port"), l.local_addr()?.port().to_string())?;
    println!("ready");
    let secs = run.secs;
    thread::spawn(move || {
        thread::sleep(Duration::from_secs_f64(secs));
        std::process::exit(0);
    });
    for s in l.incoming() {
        let mut s = s?;
        s.set_nodelay(true)?;
        thread::spawn(move || {
            let mut store: HashMap<Vec<u8>, Vec<u8>> = HashMap::new();
            let mut head = [0u8; 24];
            while s.read_exact(&mut head).is_ok() {
                let keylen = u16::from_be_bytes([head[2], head[3]]) as usize;
                let total = u32::from_be_bytes([head[8], head[9], head[10], head[11]]) as usize;
                let mut body = vec![0u8; total];
                if s.read_exact(&mut body).is_err() {
                    break;
                }
                store.insert(body[..keylen].to_vec(), body[keylen..].to_vec());
                let mut answer = [0u8; 24];
                answer[0] = 0x81;
                if s.write_all(&answer).is_err() {
                    break;
                }
            }
        });
    }
    Ok(())
}

#[inline(never)]
fn write_request(s: &mut TcpStream, key: &[u8], value: &[u8]) -> io::Result<()> {
    let mut head = [0u8; 24];
    head[0] = 0x80;
    head[1] = 1;
    head[2..4].copy_from_slice(&(key.len() as u16).to_be_bytes());
    head[8..12].copy_from_slice(&((key.len() + value.len()) as u32).to_be_bytes());
    s.write_all(&head)?;
    s.write_all(key)?;
    s.write_all(value)
}

#[inline(never)]
fn read_response(s: &mut TcpStream) -> io::Result<()> {
    let mut head = [0u8; 24];
    s.read_exact(&mut head)
}

fn cache_client(run: &Run) -> io::Result<()> {
    let port: u16 = fs::read_to_string(run.dir.join("cache.port"))?.trim().parse().unwrap();
    let mut s = TcpStream::connect(("127.0.0.1", port))?;
    if run.fixed {
        s.set_nodelay(true)?;
    }
    let mut n = 0u64;
    while run.going() {
        let key = format!("user:{}", n % 500);
        write_request(&mut s, key.as_bytes(), b"some value of a session")?;
        read_response(&mut s)?;
        n += 1;
    }
    println!("sets {n}");
    Ok(())
}

// ---- V15: a table of statistics with a writer and a reader ----

#[inline(never)]
fn update_statistics(table: &RwLock<u64>, fixed: bool) {
    if fixed {
        thread::sleep(Duration::from_millis(10)); // gathers first
        *table.write().unwrap() += 1;
    } else {
        let mut n = table.write().unwrap();
        *n += 1;
        thread::sleep(Duration::from_millis(10)); // gathers under the lock
    }
}

#[inline(never)]
fn report_statistics(table: &RwLock<u64>) -> u64 {
    *table.read().unwrap()
}

fn statistics(run: &Run) {
    let table = RwLock::new(0u64);
    let reads = AtomicU64::new(0);
    let longest = AtomicU64::new(0);
    thread::scope(|s| {
        s.spawn(|| {
            while run.going() {
                let t = Instant::now();
                black_box(report_statistics(&table));
                longest.fetch_max(t.elapsed().as_micros() as u64, Ordering::Relaxed);
                reads.fetch_add(1, Ordering::Relaxed);
                thread::sleep(Duration::from_millis(20));
            }
        });
        while run.going() {
            update_statistics(&table, run.fixed);
        }
    });
    println!("updates {}, reports {}, longest wait {} us", table.read().unwrap(), reads.load(Ordering::Relaxed), longest.load(Ordering::Relaxed));
}

// ---- V16: a tree listing that fills its rows with worker threads ----

struct Row {
    name: String,
    size: u64,
}

struct Pool {
    jobs: Arc<(Mutex<(VecDeque<PathBuf>, bool)>, Condvar)>,
    rows: Arc<(Mutex<Vec<Row>>, Condvar)>,
    threads: Vec<thread::JoinHandle<()>>,
}

fn make_row(p: &Path) -> Row {
    let size = fs::symlink_metadata(p).map(|m| m.len()).unwrap_or(0);
    Row { name: p.file_name().unwrap().to_string_lossy().into_owned(), size }
}

impl Pool {
    #[inline(never)]
    fn new(n: usize) -> Pool {
        let jobs = Arc::new((Mutex::new((VecDeque::<PathBuf>::new(), false)), Condvar::new()));
        let rows = Arc::new((Mutex::new(Vec::new()), Condvar::new()));
        let threads = (0..n)
            .map(|_| {
                let (jobs, rows) = (jobs.clone(), rows.clone());
                thread::spawn(move || {
                    loop {
                        let mut g = jobs.0.lock().unwrap();
                        while g.0.is_empty() && !g.1 {
                            g = jobs.1.wait(g).unwrap();
                        }
                        let Some(p) = g.0.pop_front() else { return };
                        drop(g);
                        let r = make_row(&p);
                        rows.0.lock().unwrap().push(r);
                        rows.1.notify_one();
                    }
                })
            })
            .collect();
        Pool { jobs, rows, threads }
    }
    fn execute(&self, p: PathBuf) {
        self.jobs.0.lock().unwrap().0.push_back(p);
        self.jobs.1.notify_one();
    }
    fn wait_rows(&self, n: usize) -> Vec<Row> {
        let mut r = self.rows.0.lock().unwrap();
        while r.len() < n {
            r = self.rows.1.wait(r).unwrap();
        }
        std::mem::take(&mut *r)
    }
    fn finish(mut self) {
        self.jobs.0.lock().unwrap().1 = true;
        self.jobs.1.notify_all();
        for t in self.threads.drain(..) {
            let _ = t.join();
        }
    }
}

#[inline(never)]
fn add_files_to_table(dir: &Path, shared: Option<&Pool>, total: &mut u64) {
    let own = if shared.is_none() { Some(Pool::new(8)) } else { None };
    let pool = shared.or(own.as_ref()).unwrap();
    let mut n = 0;
    let mut sub = Vec::new();
    for e in fs::read_dir(dir).unwrap().flatten() {
        if e.file_type().map(|t| t.is_dir()).unwrap_or(false) {
            sub.push(e.path());
        }
        pool.execute(e.path());
        n += 1;
    }
    for r in pool.wait_rows(n) {
        *total += r.size + r.name.len() as u64;
    }
    if let Some(p) = own {
        p.finish();
    }
    for d in sub {
        add_files_to_table(&d, shared, total);
    }
}

fn tree_listing(run: &Run) -> io::Result<()> {
    let root = run.dir.join("tree");
    for i in 0..5 {
        for j in 0..8 {
            let d = root.join(format!("d{i}")).join(format!("e{j}"));
            fs::create_dir_all(&d)?;
            for k in 0..5 {
                fs::write(d.join(format!("f{k}")), b"text")?;
            }
        }
    }
    let shared = if run.fixed { Some(Pool::new(8)) } else { None };
    let (mut n, mut total) = (0u64, 0u64);
    while run.going() {
        for i in 0..5 {
            add_files_to_table(&root.join(format!("d{i}")), shared.as_ref(), &mut total);
            n += 9;
            if !run.going() {
                break;
            }
        }
    }
    println!("directories {n} ({total})");
    Ok(())
}

// ---- V17: a resolver of module requests ----

struct Resolver {
    cache: HashMap<String, PathBuf>,
    fixed: bool,
}

impl Resolver {
    #[inline(never)]
    fn resolve_file(&mut self, base: &Path, request: &str) -> Option<PathBuf> {
        let joined = base.join(request);
        if self.fixed {
            let mut norm = PathBuf::new();
            for c in joined.components() {
                match c {
                    std::path::Component::ParentDir => {
                        norm.pop();
                    }
                    std::path::Component::CurDir => {}
                    c => norm.push(c),
                }
            }
            let key = norm.to_string_lossy().into_owned();
            if let Some(p) = self.cache.get(&key) {
                return Some(p.clone());
            }
            let p = self.resolve_symlink(&norm)?;
            self.cache.insert(key, p.clone());
            return Some(p);
        }
        self.resolve_symlink(&joined)
    }
    #[inline(never)]
    fn resolve_symlink(&self, p: &Path) -> Option<PathBuf> {
        if !fs::metadata(p).ok()?.is_file() {
            return None;
        }
        fs::canonicalize(p).ok()
    }
}

fn module_resolver(run: &Run) -> io::Result<()> {
    let src = run.dir.join("benchcases/three/src/copy1");
    let dirs = ["core", "extras/core", "helpers", "lights", "loaders", "materials", "renderers/shaders", "renderers/webgl", "math"];
    for d in dirs {
        fs::create_dir_all(src.join(d))?;
    }
    for f in ["Color", "Vector3", "Matrix4", "Box3"] {
        fs::write(src.join("math").join(format!("{f}.js")), b"export {}")?;
    }
    let mut r = Resolver { cache: HashMap::new(), fixed: run.fixed };
    let mut n = 0u64;
    while run.going() {
        for d in dirs {
            let up = "../".repeat(d.split('/').count());
            for f in ["Color", "Vector3", "Matrix4", "Box3"] {
                if r.resolve_file(&src.join(d), &format!("{up}math/{f}.js")).is_some() {
                    n += 1;
                }
            }
        }
    }
    println!("requests {n}");
    Ok(())
}

// ---- V18: an optimizer of images ----

#[inline(never)]
fn find_longest_match(data: &[u8], pos: usize, head: &[u32], prev: &[u32]) -> (usize, usize) {
    let h = (data[pos] as usize) << 8 | data[pos + 1] as usize;
    let (mut best, mut dist) = (0, 0);
    let mut at = head[h];
    let mut tries = 256;
    while at != u32::MAX && tries > 0 {
        let a = at as usize;
        let max = (data.len() - pos).min(258);
        let mut k = 0;
        while k < max && data[a + k] == data[pos + k] {
            k += 1;
        }
        if k > best {
            best = k;
            dist = pos - a;
        }
        at = prev[a];
        tries -= 1;
    }
    (best, dist)
}

#[inline(never)]
fn lz77_optimal(data: &[u8], costs: &mut [f32; 512]) -> f32 {
    let mut head = vec![u32::MAX; 65536];
    let mut prev = vec![u32::MAX; data.len()];
    let mut total = 0f32;
    let mut pos = 0;
    while pos + 2 < data.len() {
        let (len, dist) = find_longest_match(data, pos, &head, &prev);
        let step = if len >= 3 { len } else { 1 };
        total += if len >= 3 {
            costs[256 + len % 256] + (dist as f32).log2()
        } else {
            costs[data[pos] as usize]
        };
        for p in pos..(pos + step).min(data.len() - 1) {
            let h = (data[p] as usize) << 8 | data[p + 1] as usize;
            prev[p] = head[h];
            head[h] = p as u32;
        }
        pos += step;
    }
    for c in costs.iter_mut() {
        *c = *c * 0.99 + 0.08;
    }
    total
}

fn image_optimizer(run: &Run) {
    let iterations = AtomicU64::new(0);
    let best = Mutex::new(f32::MAX);
    let stop = AtomicBool::new(false);
    thread::scope(|s| {
        for t in 0..2u32 {
            let (iterations, best, stop) = (&iterations, &best, &stop);
            s.spawn(move || {
                let mut x = 12345 + t;
                let data: Vec<u8> = (0..60000)
                    .map(|i| {
                        x = x.wrapping_mul(1664525).wrapping_add(1013904223);
                        ((x >> 28) as u8) + ((i / 64) % 7) as u8
                    })
                    .collect();
                let mut costs = [8.0f32; 512];
                while !stop.load(Ordering::Relaxed) && run.going() {
                    let c = lz77_optimal(&data, &mut costs);
                    iterations.fetch_add(1, Ordering::Relaxed);
                    let mut b = best.lock().unwrap();
                    if c < *b {
                        *b = c;
                    }
                }
            });
        }
    });
    println!("iterations {} ({})", iterations.load(Ordering::Relaxed), best.lock().unwrap());
}

fn main() {
    let a: Vec<String> = std::env::args().collect();
    let secs: f64 = a.get(2).and_then(|s| s.parse().ok()).unwrap_or(4.0);
    let run = Run {
        end: Instant::now() + Duration::from_secs_f64(secs),
        secs,
        dir: PathBuf::from(a.get(3).map(String::as_str).unwrap_or("/tmp")),
        fixed: a.get(4).map(String::as_str) == Some("fixed"),
    };
    match a.get(1).map(String::as_str).unwrap_or("") {
        "cache-server" => cache_server(&run).unwrap(),
        "cache-client" => cache_client(&run).unwrap(),
        "statistics" => statistics(&run),
        "tree-listing" => tree_listing(&run).unwrap(),
        "module-resolver" => module_resolver(&run).unwrap(),
        "image-optimizer" => image_optimizer(&run),
        _ => std::process::exit(2),
    }
}
