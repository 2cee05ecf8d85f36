//! Eleventh half, letters AI: five Rust programs after public reports. Arguments: CASE SECONDS FOLDER.
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

struct Run {
    folder: PathBuf,
    deadline: Instant,
}

impl Run {
    fn running(&self) -> bool {
        Instant::now() < self.deadline
    }
    fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}

// stage-pair
fn finish_stages(run: &Run) -> String {
    let (first_in, first_out) = mpsc::channel::<JoinHandle<()>>();
    let (second_in, second_out) = mpsc::channel::<JoinHandle<()>>();
    let (done_in, done_out) = mpsc::channel::<()>();
    let loader = thread::spawn(move || {
        let other = first_out.recv().expect("handle");
        let _ = other.join();
    });
    let writer = thread::spawn(move || {
        let other = second_out.recv().expect("handle");
        let _ = other.join();
        let _ = done_in.send(());
    });
    let _ = first_in.send(writer);
    let _ = second_in.send(loader);
    let n = usize::from(done_out.recv_timeout(run.left()).is_ok());
    format!("{n} stages")
}

// source-format
#[inline(never)]
fn rustfmt(path: &Path) -> usize {
    let out = Command::new("sed").arg("s/\t/    /g").arg(path).output().expect("sed");
    out.stdout.len()
}

fn format_tree(run: &Run) -> String {
    let mut files = Vec::new();
    for i in 0..40 {
        let path = run.folder.join(format!("m{i}.rs"));
        fs::write(&path, "fn main() {\n\tprintln!();\n}\n").expect("write");
        files.push(path);
    }
    let mut n = 0;
    while run.running() {
        for path in &files {
            if !run.running() {
                break;
            }
            if rustfmt(path) > 0 {
                n += 1;
            }
        }
    }
    format!("{n} files")
}

// storage-proof
#[inline(never)]
fn decode_keys(keys: &[[u8; 32]]) -> Result<Vec<[u8; 32]>, usize> {
    let mut seen: Vec<[u8; 32]> = Vec::with_capacity(keys.len());
    for (i, key) in keys.iter().enumerate() {
        if seen.contains(key) {
            return Err(i);
        }
        seen.push(*key);
    }
    Ok(seen)
}

fn serve_proofs(run: &Run) -> String {
    let mut keys = vec![[7u8; 32]; 6000];
    for (i, key) in keys.iter_mut().enumerate() {
        key[28..].copy_from_slice(&(i as u32).to_be_bytes());
    }
    let mut n = 0;
    while run.running() {
        if decode_keys(&keys).is_ok() {
            n += 1;
        }
    }
    format!("{n} requests")
}

// chunk-backup
fn chunk_path(root: &Path, digest: u32) -> PathBuf {
    let hex = format!("{digest:08x}");
    root.join("chunk").join(&hex[0..2]).join(&hex[2..4]).join(hex)
}

#[inline(never)]
fn write_chunk(root: &Path, digest: u32) -> bool {
    let path = chunk_path(root, digest);
    let parent = path.parent().expect("parent");
    fs::create_dir_all(parent).expect("mkdir");
    fs::create_dir_all(parent).expect("mkdir");
    if path.exists() {
        return false;
    }
    fs::write(&path, b"chunk").expect("write");
    true
}

fn store_backup(run: &Run) -> String {
    let mut n = 0u64;
    let mut fresh = 0;
    while run.running() {
        for i in 0..300u32 {
            if write_chunk(&run.folder, i.wrapping_mul(2_654_435_761)) {
                fresh += 1;
            }
            n += 1;
        }
    }
    format!("{n} chunks ({fresh} new)")
}

// sandbox-run
fn sandbox_run(run: &Run) -> String {
    let mut child = Command::new("seq")
        .arg("1")
        .arg("60000")
        .stdout(Stdio::piped())
        .spawn()
        .expect("seq");
    let pid = child.id().to_string();
    let (tx, rx) = mpsc::channel();
    thread::spawn(move || {
        let status = child.wait();
        let mut text = String::new();
        if let Some(out) = child.stdout.as_mut() {
            let _ = out.read_to_string(&mut text);
        }
        let _ = tx.send((status.is_ok(), text.len()));
    });
    match rx.recv_timeout(run.left()) {
        Ok((_, bytes)) => format!("{bytes} bytes"),
        Err(_) => {
            let _ = Command::new("sh").arg("-c").arg(format!("kill {pid}")).status();
            "0 bytes".to_string()
        }
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if args.len() < 4 {
        std::process::exit(2);
    }
    let name = args[1].as_str();
    let folder = Path::new(&args[3]).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("folder");
    let seconds: f64 = args[2].parse().expect("seconds");
    let deadline = Instant::now() + Duration::from_secs_f64(seconds);
    let run = Run { folder, deadline };
    let text = match name {
        "stage-pair" => finish_stages(&run),
        "source-format" => format_tree(&run),
        "storage-proof" => serve_proofs(&run),
        "chunk-backup" => store_backup(&run),
        "sandbox-run" => sandbox_run(&run),
        _ => std::process::exit(2),
    };
    println!("{name}: {text}");
}
