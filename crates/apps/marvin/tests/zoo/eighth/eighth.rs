//! Five programs after public reports, Rust. Usage: eighth CASE SECONDS FOLDER

use std::collections::HashMap;
use std::fs::{self, File};
use std::hint::black_box;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::sync::{Arc, RwLock};
use std::thread;
use std::time::{Duration, Instant};

// type-infer

struct JsonReader<R: Read> {
    input: R,
    peeked: Option<u8>,
}

impl<R: Read> JsonReader<R> {
    #[inline(never)]
    fn next_byte(&mut self) -> Option<u8> {
        if let Some(b) = self.peeked.take() {
            return Some(b);
        }
        let mut b = [0u8; 1];
        match self.input.read(&mut b) {
            Ok(1) => Some(b[0]),
            _ => None,
        }
    }

    #[inline(never)]
    fn parse_numbers(&mut self) -> Vec<u64> {
        let mut numbers = Vec::new();
        let mut current: Option<u64> = None;
        while let Some(b) = self.next_byte() {
            if b.is_ascii_digit() {
                current = Some(current.unwrap_or(0) * 10 + u64::from(b - b'0'));
            } else if let Some(n) = current.take() {
                numbers.push(n);
            }
        }
        numbers
    }
}

#[inline(never)]
fn parse_collection_from_file(path: &Path) -> io::Result<Vec<u64>> {
    let input = File::open(path)?;
    Ok(JsonReader { input, peeked: None }.parse_numbers())
}

fn type_infer(deadline: Instant, folder: &Path) -> u64 {
    let path = folder.join("interesting_tids.json");
    let tids: Vec<String> = (0..4000).map(|i| (i * 17 + 100_000).to_string()).collect();
    fs::write(&path, format!("[{}]", tids.join(","))).expect("write");
    let mut files = 0;
    while Instant::now() < deadline {
        black_box(parse_collection_from_file(&path).expect("read"));
        files += 1;
    }
    files
}

// channel-manager

struct ChannelManager {
    total_consistency: RwLock<u64>,
    events: AtomicU64,
}

impl ChannelManager {
    #[inline(never)]
    fn channel_monitor_updated(&self) {
        let height = self.total_consistency.read().expect("lock");
        self.events.fetch_add(*height, Ordering::Relaxed);
    }

    #[inline(never)]
    fn get_and_clear_pending_msg_events(&self) {
        let _consistency = self.total_consistency.read().expect("lock");
        thread::sleep(Duration::from_millis(20));
        self.channel_monitor_updated();
    }

    #[inline(never)]
    fn best_block_updated(&self) {
        let mut height = self.total_consistency.write().expect("lock");
        *height += 1;
    }
}

fn channel_manager(deadline: Instant, _folder: &Path) -> u64 {
    let manager = Arc::new(ChannelManager {
        total_consistency: RwLock::new(1),
        events: AtomicU64::new(0),
    });
    let (stopped, wait) = channel::<()>();
    let (peers, peers_stopped) = (manager.clone(), stopped.clone());
    thread::spawn(move || {
        while Instant::now() < deadline {
            peers.get_and_clear_pending_msg_events();
        }
        let _ = peers_stopped.send(());
    });
    let chain = manager.clone();
    thread::spawn(move || {
        while Instant::now() < deadline {
            chain.best_block_updated();
            thread::sleep(Duration::from_millis(7));
        }
        let _ = stopped.send(());
    });
    let _ = wait.recv_timeout(deadline.saturating_duration_since(Instant::now()));
    manager.events.load(Ordering::Relaxed)
}

// batch-table

struct BatchTable {
    rows: HashMap<u64, (u64, u64)>,
}

impl BatchTable {
    #[inline(never)]
    fn add(&mut self, key: u64) {
        let row = self.rows.entry(key).or_insert((0, 0));
        row.0 += 1;
        row.1 ^= key;
    }

    #[inline(never)]
    fn flush(&mut self) -> u64 {
        let mut sum = 0;
        for (_, row) in self.rows.iter() {
            sum += row.0;
        }
        self.rows.clear();
        sum
    }
}

fn batch_table(deadline: Instant, _folder: &Path) -> u64 {
    let mut table = BatchTable { rows: HashMap::new() };
    for key in 0..1_500_000u64 {
        table.add(key);
    }
    table.flush();
    let mut batches = 0;
    while Instant::now() < deadline {
        for i in 0..20 {
            table.add(batches * 7 + i);
        }
        black_box(table.flush());
        batches += 1;
    }
    batches
}

// amqp-client

enum Frame {
    Deliver(u64),
    QosOk,
}

struct Connection {
    channel: SyncSender<Frame>,
    requests: Receiver<u64>,
}

impl Connection {
    #[inline(never)]
    fn reading_loop(self) {
        let mut tag = 0;
        loop {
            if self.requests.try_recv().is_ok() && self.channel.send(Frame::QosOk).is_err() {
                return;
            }
            tag += 1;
            if self.channel.send(Frame::Deliver(tag)).is_err() {
                return;
            }
        }
    }
}

#[inline(never)]
fn basic_qos(requests: &SyncSender<u64>, prefetch: u64) {
    requests.send(prefetch).expect("connection");
    requests.send(prefetch).expect("connection");
}

fn amqp_client(deadline: Instant, _folder: &Path) -> u64 {
    let (deliver, frames) = sync_channel(64);
    let (ask, requests) = sync_channel(0);
    let (stopped, wait) = channel::<()>();
    let handled = Arc::new(AtomicU64::new(0));
    thread::spawn(move || Connection { channel: deliver, requests }.reading_loop());
    let count = handled.clone();
    thread::spawn(move || {
        while Instant::now() < deadline {
            match frames.recv_timeout(Duration::from_secs(1)) {
                Ok(Frame::Deliver(tag)) => {
                    count.fetch_add(1, Ordering::Relaxed);
                    if tag % 5000 == 0 {
                        basic_qos(&ask, tag);
                    }
                }
                Ok(Frame::QosOk) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let _ = stopped.send(());
    });
    let _ = wait.recv_timeout(deadline.saturating_duration_since(Instant::now()));
    handled.load(Ordering::Relaxed)
}

// site-build

#[derive(Clone)]
struct Post {
    title: String,
    path: PathBuf,
    attributes: Vec<(String, String)>,
}

struct Document {
    post: Post,
    posts: Vec<Post>,
}

impl Document {
    #[inline(never)]
    fn create(post: &Post, posts: &[Post]) -> Document {
        Document { post: post.clone(), posts: posts.to_vec() }
    }

    #[inline(never)]
    fn render(&self) -> String {
        let last = self.posts.last().map_or("", |p| p.title.as_str());
        let parts = self.post.attributes.len();
        format!("<h1>{}</h1><a>{last}</a>{parts}{}", self.post.title, self.post.path.display())
    }
}

fn site_build(deadline: Instant, _folder: &Path) -> u64 {
    let posts: Vec<Post> = (0..1500)
        .map(|i| Post {
            title: format!("Post number {i}"),
            path: PathBuf::from(format!("posts/2016/post-{i}.md")),
            attributes: (0..4).map(|a| (format!("key{a}"), format!("value {a} of {i}"))).collect(),
        })
        .collect();
    let mut pages = 0;
    while Instant::now() < deadline {
        for post in &posts {
            black_box(Document::create(post, &posts).render());
            pages += 1;
            if Instant::now() >= deadline {
                break;
            }
        }
    }
    pages
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let seconds: f64 = args[2].parse().expect("seconds");
    let folder = Path::new(&args[3]).join(&args[1]);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("folder");
    let deadline = Instant::now() + Duration::from_secs_f64(seconds);
    let (run, things): (fn(Instant, &Path) -> u64, &str) = match args[1].as_str() {
        "type-infer" => (type_infer, "files"),
        "channel-manager" => (channel_manager, "events"),
        "batch-table" => (batch_table, "batches"),
        "amqp-client" => (amqp_client, "messages"),
        "site-build" => (site_build, "pages"),
        _ => std::process::exit(2),
    };
    println!("{}: {} {things}", args[1], run(deadline, &folder));
}
