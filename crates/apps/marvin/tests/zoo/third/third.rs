//! Programs from public reports (tests/outside/49-third-aside-compiled.md), in Rust: each does
//! steadily what its report describes, for some seconds: `third NAME SECONDS DIR`. A fourth argument
//! asks for the repaired form, to compare with.
//! rustc -O -g --edition 2024 third.rs
use std::collections::{HashMap, VecDeque};
use std::fs::OpenOptions;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::hint::black_box;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, RwLock};
use std::thread;
use std::time::{Duration, Instant};

struct Run {
    end: Instant,
    dir: PathBuf,
    is_repaired: bool,
}

impl Run {
    fn is_over(&self) -> bool {
        Instant::now() >= self.end
    }
}

// T13: tests of an accounts database make a cache, use it and drop it.

struct ReadOnlyAccountsCache {
    cache: Arc<RwLock<HashMap<u64, Vec<u8>>>>,
    control: Arc<(Mutex<bool>, Condvar)>,
    evictor_exit: Arc<AtomicBool>,
    evictor: Option<thread::JoinHandle<()>>,
}

fn evict(cache: &RwLock<HashMap<u64, Vec<u8>>>) {
    let mut cache = cache.write().unwrap();
    if cache.len() > 10_000 {
        cache.clear();
    }
}

impl ReadOnlyAccountsCache {
    fn new(is_repaired: bool) -> Self {
        let cache = Arc::new(RwLock::new(HashMap::new()));
        let evictor_exit = Arc::new(AtomicBool::new(false));
        let control = Arc::new((Mutex::new(false), Condvar::new()));
        let (shared, exit, stop) = (cache.clone(), evictor_exit.clone(), control.clone());
        let evictor = thread::Builder::new()
            .name("solAcctReadLru".into())
            .spawn(move || {
                loop {
                    if is_repaired {
                        let is_stopped = stop.0.lock().unwrap();
                        let wait = Duration::from_millis(100);
                        if *stop
                            .1
                            .wait_timeout_while(is_stopped, wait, |s| !*s)
                            .unwrap()
                            .0
                        {
                            break;
                        }
                    } else {
                        if exit.load(Ordering::Relaxed) {
                            break;
                        }
                        thread::sleep(Duration::from_millis(100));
                    }
                    evict(&shared);
                }
            });
        ReadOnlyAccountsCache {
            cache,
            control,
            evictor_exit,
            evictor: evictor.ok(),
        }
    }

    fn store(&self, key: u64, account: Vec<u8>) {
        self.cache.write().unwrap().insert(key, account);
    }
}

impl Drop for ReadOnlyAccountsCache {
    #[inline(never)]
    fn drop(&mut self) {
        self.evictor_exit.store(true, Ordering::Relaxed);
        *self.control.0.lock().unwrap() = true;
        self.control.1.notify_one();
        self.evictor.take().unwrap().join().unwrap();
    }
}

#[inline(never)]
fn test_accounts(run: &Run) {
    let cache = ReadOnlyAccountsCache::new(run.is_repaired);
    for key in 0..150_000 {
        cache.store(key % 9000, vec![key as u8; 64]);
    }
}

fn accounts_tests(run: Run) {
    let mut tests = 0;
    while !run.is_over() {
        test_accounts(&run);
        tests += 1;
    }
    eprintln!("{tests} tests");
}

// T14: mutated modules go through a worklist to a thread that writes them.

type Worklist = Arc<Mutex<Vec<Vec<u8>>>>;

#[inline(never)]
fn mutate(seed: u64) -> Vec<u8> {
    let mut wasm = vec![0u8; 200_000];
    let mut state = seed | 1;
    for byte in wasm.iter_mut().step_by(4) {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        *byte = (state >> 56) as u8;
    }
    wasm
}

// Stands for the disk of the report: it takes 64 KB in 20 ms.
fn slow_disk(run: Run) {
    let path = run.dir.join("mutated.wasm");
    let _ = std::fs::remove_file(&path);
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.is_ok_and(|made| made.success()));
    let mut pipe = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    println!("ready");
    let mut buffer = vec![0; 65536];
    thread::spawn(move || {
        while pipe.read(&mut buffer).is_ok() {
            thread::sleep(Duration::from_millis(20));
        }
    });
    thread::sleep(run.end - Instant::now());
}

#[inline(never)]
fn write_mutated(run: &Run, worklist: &Worklist) -> bool {
    let name = run.dir.join("mutated.wasm");
    if run.is_repaired {
        let next = worklist.lock().unwrap().pop();
        let Some(wasm) = next else { return false };
        return std::fs::write(name, &wasm).is_ok();
    }
    if let Some(wasm) = worklist.lock().unwrap().pop() {
        return std::fs::write(name, &wasm).is_ok();
    } else {
        false
    }
}

fn mutate_stats(run: Run) {
    let run = Arc::new(run);
    let worklist: Worklist = Arc::new(Mutex::new((0..8).map(mutate).collect()));
    let mutated = Arc::new(AtomicU64::new(0));
    for seed in 0..3 {
        let (worklist, mutated) = (worklist.clone(), mutated.clone());
        thread::Builder::new()
            .name(format!("mutator-{seed}"))
            .spawn(move || {
                loop {
                    let wasm = mutate(seed);
                    let mut list = worklist.lock().unwrap();
                    if list.len() < 16 {
                        list.push(wasm);
                    }
                    drop(list);
                    mutated.fetch_add(1, Ordering::Relaxed);
                }
            })
            .unwrap();
    }
    let mut counter = 0;
    while !run.is_over() {
        counter += write_mutated(&run, &worklist) as u64;
    }
    eprintln!(
        "{} mutated, {counter} written",
        mutated.load(Ordering::Relaxed)
    );
}

// T15: a server of pages looks under which name a template is to be found.

struct RealFs;

impl RealFs {
    #[inline(never)]
    fn is_file(&self, path: &Path) -> bool {
        path.is_file()
    }
}

struct Vm {
    fs: RealFs,
    exists_cached: HashMap<PathBuf, bool>,
    keep_negative: bool,
}

impl Vm {
    #[inline(never)]
    fn file_exists(&mut self, path: &Path) -> bool {
        if let Some(&known) = self.exists_cached.get(path) {
            return known;
        }
        let exists = self.fs.is_file(path);
        if exists || self.keep_negative {
            self.exists_cached.insert(path.to_path_buf(), exists);
        }
        exists
    }

    #[inline(never)]
    fn resolve_component_template(
        &mut self,
        roots: &[PathBuf],
        names: &[String],
    ) -> Option<PathBuf> {
        for root in roots {
            for name in names {
                let path = root.join(name);
                if self.file_exists(&path) {
                    return Some(path);
                }
            }
        }
        None
    }
}

#[inline(never)]
fn render_viewlet(template: &str, viewlet: usize) -> String {
    let mut html = String::with_capacity(512);
    for line in template.lines() {
        html.push_str("<div class=\"v\">");
        html.push_str(line);
        html.push_str("</div>\n");
    }
    html.push((b'a' + (viewlet % 26) as u8) as char);
    html
}

fn serve_pages(run: Run) {
    let roots: Vec<PathBuf> = [
        "app/views",
        "app/extensions/site/views",
        "preside/system/views",
    ]
    .iter()
    .map(|r| run.dir.join(r))
    .collect();
    for root in &roots {
        std::fs::create_dir_all(root).unwrap();
    }
    let names: Vec<Vec<String>> = (0..30)
        .map(|i| {
            vec![
                format!("page/layout/viewlet_{i}.cfm"),
                format!("page/layout/viewlet_{i}.cfm.cfc"),
                format!("page/layout/viewlet_{i}/index.cfm"),
                format!("viewlet_{i}.cfm"),
            ]
        })
        .collect();
    for group in &names {
        std::fs::write(roots[2].join(&group[3]), "title\nbody of the viewlet\n").unwrap();
    }
    let mut vm = Vm {
        fs: RealFs,
        exists_cached: HashMap::new(),
        keep_negative: run.is_repaired,
    };
    let (mut requests, mut bytes) = (0u64, 0);
    while !run.is_over() {
        for (i, group) in names.iter().enumerate() {
            if vm.resolve_component_template(&roots, group).is_some() {
                bytes += render_viewlet("title\nbody of the viewlet\n", i).len();
            }
        }
        requests += 1;
    }
    eprintln!("{requests} requests, {bytes} bytes");
}

// T16: a parser of SQL lists the nodes of a query.

#[derive(Clone, Copy)]
#[allow(dead_code)]
struct Node {
    kind: u32,
    depth: u32,
    location: u64,
    context: u64,
    has_filter: bool,
}

#[inline(never)]
fn flatten(mut remaining: Vec<Node>) -> Vec<Node> {
    let mut nodes = Vec::new();
    while !remaining.is_empty() {
        let node = remaining.remove(0);
        if node.kind != 3 {
            nodes.push(node);
        }
    }
    nodes
}

#[inline(never)]
fn flatten_deque(remaining: Vec<Node>) -> Vec<Node> {
    let mut remaining = VecDeque::from(remaining);
    let mut nodes = Vec::new();
    while let Some(node) = remaining.pop_front() {
        if node.kind != 3 {
            nodes.push(node);
        }
    }
    nodes
}

fn parse_result(run: Run) {
    let (mut parsed, mut count) = (0, 0);
    while !run.is_over() {
        let list: Vec<Node> = (0..20_000u64)
            .map(|i| Node {
                kind: 1 + (i % 2) as u32,
                depth: 4,
                location: i,
                context: 0,
                has_filter: false,
            })
            .collect();
        let nodes = if run.is_repaired {
            flatten_deque(list)
        } else {
            flatten(list)
        };
        count += nodes.len() + black_box(&nodes[0]).depth as usize + nodes[1].has_filter as usize;
        count ^= nodes[2].context as usize;
        parsed += 1;
    }
    eprintln!("{parsed} queries, {count}");
}

// T17: a receiver of statistics keeps counters by their metric.

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Metric {
    Ok(u16),
    Error(u16),
    Processed,
}

#[derive(Default)]
struct FnvHasher(u64);

impl Hasher for FnvHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ *byte as u64).wrapping_mul(0x100000001b3);
        }
    }
}

#[derive(Clone, Copy)]
struct Sample {
    metric: Metric,
    start: u64,
    stop: u64,
}

struct Counters<S> {
    data: HashMap<Metric, u64, S>,
}

impl<S: std::hash::BuildHasher> Counters<S> {
    #[inline(never)]
    fn increment(&mut self, metric: Metric, count: u64) {
        *self.data.entry(metric).or_insert(0) += count;
    }
    #[inline(never)]
    fn count(&self, metric: &Metric) -> u64 {
        self.data.get(metric).copied().unwrap_or(0)
    }
}

#[inline(never)]
fn receive_batch<S: std::hash::BuildHasher>(counters: &mut Counters<S>, batch: &[Sample]) -> u64 {
    let mut sum = 0;
    for sample in batch {
        counters.increment(sample.metric, 1);
        counters.increment(Metric::Processed, sample.stop - sample.start);
        sum += counters.count(&sample.metric);
    }
    sum
}

fn receive_stats(run: Run) {
    let batch: Vec<Sample> = (0..1024u64)
        .map(|i| {
            let metric = if i % 9 == 0 {
                Metric::Error(i as u16 % 40)
            } else {
                Metric::Ok(i as u16 % 60)
            };
            Sample {
                metric,
                start: i,
                stop: i + 3,
            }
        })
        .collect();
    let (mut samples, mut sum) = (0u64, 0u64);
    let mut counters = Counters {
        data: HashMap::new(),
    };
    let mut fnv: Counters<BuildHasherDefault<FnvHasher>> = Counters {
        data: HashMap::default(),
    };
    while !run.is_over() {
        for _ in 0..20 {
            let count = if run.is_repaired {
                receive_batch(&mut fnv, &batch)
            } else {
                receive_batch(&mut counters, &batch)
            };
            sum = sum.wrapping_add(count);
            samples += 1024;
        }
    }
    eprintln!("{samples} samples {sum}");
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.len() < 4 {
        std::process::exit(2);
    }
    let seconds: f64 = arguments[2].parse().unwrap();
    let run = Run {
        end: Instant::now() + Duration::from_secs_f64(seconds),
        dir: arguments[3].clone().into(),
        is_repaired: arguments.len() > 4,
    };
    match arguments[1].as_str() {
        "accounts-tests" => accounts_tests(run),
        "slow-disk" => slow_disk(run),
        "mutate-stats" => mutate_stats(run),
        "serve-pages" => serve_pages(run),
        "parse-result" => parse_result(run),
        "receive-stats" => receive_stats(run),
        _ => std::process::exit(2),
    }
}
