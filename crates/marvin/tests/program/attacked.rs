//! The server under clients that ask for much and read nothing: its memory stays bounded.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use store::{Artefact, Store};

use crate::fresh::fresh;
use crate::{marvin, stored};

/// The limit that README and docs promise (kB).
const MEMORY_KB_MAX: u64 = 64 << 10;
const LARGE: usize = 100 << 20;

/// Saves a run with an artifact that does not shrink.
fn fill(home: &Path) {
    std::fs::create_dir_all(home).unwrap();
    let store = Store::open(home).unwrap();
    store.save_machine(&stored::machine()).unwrap();
    stored::save_build(&store, 0, "6.1.1");
    let mut state = 1_u64;
    let random = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state.to_be_bytes()
    });
    let bytes: Vec<u8> = random.flatten().take(LARGE).collect();
    let result = stored::completed("getppid", vec![2.0, 1.0, 1.0]);
    let artefact = Artefact { name: "large.vmcore", bytes: &bytes };
    store.save_run(&stored::run("00000000000000ff", 0, 1, vec![result]), &[artefact]).unwrap();
}

/// Returns the largest memory that a process has taken (kB).
fn largest_memory_kb(server: &Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn idle_readers_of_large_artifacts_take_no_memory() {
    let home = fresh("attacked-home");
    fill(&home);
    let mut server = marvin(&home).args(["serve", "--listen", "127.0.0.1:0"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next()).unwrap().to_owned();
    let before = largest_memory_kb(&server);
    for count in [24, 200] {
        let request = "GET /r/00000000000000ff/large.vmcore HTTP/1.1\r\nHost: localhost\r\n\r\n";
        let idle: Vec<TcpStream> = (0..count)
            .map(|_| {
                let mut stream = TcpStream::connect(&address).unwrap();
                stream.write_all(request.as_bytes()).unwrap();
                stream
            })
            .collect();
        std::thread::sleep(Duration::from_secs(4));
        let memory = largest_memory_kb(&server);
        println!("{count} idle readers: {memory} kB, {before} kB before");
        assert!(memory <= MEMORY_KB_MAX, "{count} idle readers: {memory} kB");
        drop(idle);
    }
    let mut stream = TcpStream::connect(&address).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
}
