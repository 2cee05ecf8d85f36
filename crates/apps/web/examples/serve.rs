//! Serves a data directory, to view pages without building the whole program: `cargo run -p web
//! --example serve HOME ADDRESS`.
#![expect(clippy::expect_used, reason = "an example that cannot go on ends")]

use std::path::PathBuf;
use std::sync::Arc;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let home = PathBuf::from(arguments.next().expect("a home"));
    let listener =
        std::net::TcpListener::bind(arguments.next().expect("an address")).expect("a free port");
    let mut source = results::HistoryReader::open(&home).expect("a home with runs");
    source.refresh().expect("a readable store");
    let site = Arc::new(web::Site::new(&home, source.snapshot(1)));
    let limits = web::Limits::default();
    web::serve(listener, site, source, limits, &[], || false).expect("a socket");
}
