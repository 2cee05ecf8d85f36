//! The server under clients that ask for much and read nothing: its memory stays bounded.

use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use store::{Artifact, Store};

use crate::fresh::fresh;
use crate::served::Server;
use crate::{marvin, stored};

/// What clients may add to the memory of a server (kB): half of what README and docs promise of the
/// release program. The pages of this program's own code are many, and not what is tested.
const ADDED_KB_MAX: u64 = 32 << 10;
const LARGE: usize = 100 << 20;

/// Saves a run with an artifact that does not shrink.
fn fill(home: &Path) {
    std::fs::create_dir_all(home).unwrap();
    let store = Store::open(home).unwrap();
    store.save_machine(&stored::machine()).unwrap();
    stored::save_build(&store, 0, "6.1.1");
    let mut state = 1_u64;
    let random = std::iter::repeat_with(|| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        state.to_be_bytes()
    });
    let bytes: Vec<u8> = random.flatten().take(LARGE).collect();
    let result = stored::completed("getppid", vec![2.0, 1.0, 1.0]);
    let artifact = Artifact {
        name: "large.vmcore",
        bytes: &bytes,
    };
    store
        .save_run(
            &stored::run("00000000000000ff", 0, 1, vec![result]),
            &[artifact],
        )
        .unwrap();
}

#[test]
fn idle_readers_of_large_artifacts_take_no_memory() {
    let home = fresh("attacked-home");
    fill(&home);
    let server = Server::start(marvin(&home));
    let before = server.memory_kb("VmHWM");
    for count in [24, 200] {
        let request = "GET /r/00000000000000ff/large.vmcore HTTP/1.1\r\nHost: localhost\r\n\r\n";
        let idle: Vec<TcpStream> = (0..count)
            .map(|_| {
                let mut stream = server.connect();
                // Beyond the limit of a client the server closes the connection.
                drop(stream.write_all(request.as_bytes()));
                stream
            })
            .collect();
        std::thread::sleep(Duration::from_secs(4));
        let memory = server.memory_kb("VmHWM");
        println!("{count} idle readers: {memory} kB, {before} kB before");
        assert!(
            memory <= before + ADDED_KB_MAX,
            "{count} idle readers: {memory} kB, {before} kB before"
        );
        drop(idle);
    }
    // Until the server has noticed that they are gone, it refuses more clients.
    let begun = Instant::now();
    let answer = loop {
        match server.try_to_ask("/") {
            Err(_) if begun.elapsed() < Duration::from_secs(20) => {
                std::thread::sleep(Duration::from_millis(100));
            }
            ended => break ended.unwrap(),
        }
    };
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
}
