//! What a running dashboard shows after its store was restored from a backup.
#![expect(clippy::print_stdout, reason = "a skipped check says why")]

use std::fs;
use std::path::Path;
use std::process::Command;

use store::Location;
use store::cluster::{Cluster, Durability};

use crate::testing::{Lab, result};
use results::HistoryReader;

/// Copies a directory, with owners and permissions.
fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status();
    assert!(copied.unwrap().success());
}

fn kernels(source: &HistoryReader) -> Vec<String> {
    let history = source.snapshot(1).history;
    let order = history.order();
    let titles = order
        .iter()
        .map(|build| history.kernel(*build).title.clone());
    titles.collect()
}

#[test]
fn restored_store_shows_its_own_runs_only() {
    let Some(mut cluster) = Cluster::start(Durability::Hasty).unwrap() else {
        println!("skipped: PostgreSQL is not installed");
        return;
    };
    let location = Location::server(&cluster.place().unwrap(), None).unwrap();
    let mut lab = Lab::on(&location);
    let mut run = |version: &str| lab.run(version, "aa", 1, vec![result("getppid", 100.0)]);
    run("6.12.100");
    let data = cluster.folder().join("data");
    let backup = cluster.folder().join("backup");
    cluster.pause().unwrap();
    copy(&data, &backup);
    cluster.resume().unwrap();
    run("6.12.101");
    let mut source = HistoryReader::open(&location).unwrap();
    source.refresh().unwrap();
    assert_eq!(kernels(&source).len(), 2);
    cluster.pause().unwrap();
    fs::remove_dir_all(&data).unwrap();
    copy(&backup, &data);
    cluster.resume().unwrap();
    // It gets the number of the lost one.
    run("6.12.102");
    assert!(source.refresh().unwrap());
    let shown = kernels(&source);
    assert!(
        shown.len() == 2 && shown.iter().all(|title| !title.contains("6.12.101")),
        "{shown:?}"
    );
    assert!(!source.refresh().unwrap(), "all is read");
}
