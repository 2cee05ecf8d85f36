//! The dashboard while the store's server accepts connections and answers none.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use store::Location;
use store::cluster::{Cluster, Durability};

use crate::testing::{Lab, result};
use crate::{Limits, Site, serve};
use results::HistoryReader;

fn send(address: SocketAddr, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    stream
}

/// Returns an answer, and how long it took.
fn ask(address: SocketAddr, path: &str) -> (String, Duration) {
    let begun = Instant::now();
    let mut answer = Vec::new();
    send(address, path).read_to_end(&mut answer).unwrap();
    (
        String::from_utf8_lossy(&answer).into_owned(),
        begun.elapsed(),
    )
}

fn wait_for(address: SocketAddr, path: &str, text: &str) {
    let begun = Instant::now();
    while !ask(address, path).0.contains(text) {
        assert!(
            begun.elapsed() < Duration::from_secs(40),
            "{path}: {}",
            ask(address, path).0
        );
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn metrics_come_while_the_store_is_silent() {
    let Some(cluster) = Cluster::start(Durability::Hasty).unwrap() else {
        return;
    };
    let location = Location::server(&cluster.place().unwrap(), None)
        .unwrap()
        .impatient();
    let mut lab = Lab::on(&location);
    lab.run("6.12.100", "aa", 1, vec![result("getppid", 100.0)]);
    let mut source = HistoryReader::open(&location).unwrap();
    source.refresh().unwrap();
    let site = Arc::new(Site::new(&location, source.snapshot(1)));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        drop(serve(
            listener,
            site,
            source,
            Limits::default(),
            &[],
            || false,
        ));
    });
    wait_for(address, "/metrics", "marvin_queue_depth");
    let (health, _) = ask(address, "/healthz");
    assert!(
        health.starts_with("HTTP/1.1 200") && health.ends_with("ok\n"),
        "{health}"
    );
    cluster.signal("STOP").unwrap();
    let (health, _) = ask(address, "/healthz");
    assert!(
        health.starts_with("HTTP/1.1 503") && health.ends_with("the store does not answer\n"),
        "{health}"
    );
    // These need the store, and keep the threads that make pages.
    let waiting: Vec<TcpStream> = (0..12).map(|_| send(address, "/runs.html")).collect();
    for _ in 0..6 {
        let (metrics, time) = ask(address, "/metrics");
        assert!(time < Duration::from_millis(2500), "{time:?}");
        assert!(
            metrics.contains("marvin_store_unreadable 1\n")
                && metrics.contains("marvin_runs_total 1\n"),
            "{metrics}"
        );
        std::thread::sleep(Duration::from_millis(300));
    }
    drop(waiting);
    let (alerts, time) = ask(address, "/alerts.html");
    assert!(
        alerts.starts_with("HTTP/1.1 200") && time < Duration::from_secs(12),
        "{time:?} {alerts}"
    );
    cluster.signal("CONT").unwrap();
    wait_for(address, "/metrics", "marvin_store_unreadable 0\n");
    wait_for(address, "/runs.html", "HTTP/1.1 200");
}
