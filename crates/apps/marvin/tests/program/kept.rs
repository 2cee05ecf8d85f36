//! Stored results: in the data directory or on a server, mailed, exported, deleted.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use store::cluster::{Cluster, Durability, PASSWORD};
use store::{Location, Store};

use crate::fresh::{Fresh, fresh};
use crate::history::fill;
use crate::served::Server;
use crate::{format_output, marvin, output_of};

/// Two of the lab's runs.
const RUNS: [&str; 2] = ["run_0000000000000001", "run_0000000000000002"];

/// Runs commands and returns their output, without what depends on the day.
fn story(home: &Path, commands: &[&[&str]]) -> String {
    let mut story = String::new();
    for arguments in commands {
        let output = output_of(home, arguments);
        story.extend(["$ marvin ", &arguments.join(" "), "\n", &output, "\n"]);
    }
    story
}

fn home(name: &str) -> Fresh {
    let home = fresh(name);
    std::fs::create_dir_all(&home).unwrap();
    fill(&Store::open(&*home).unwrap());
    home
}

#[test]
fn reports_and_alerts_become_mails() {
    let home = home("kept-mail");
    let report = [&["report"][..], &RUNS, &["--mail"]].concat();
    let commands: [&[&str]; 6] = [
        &report,
        &["alerts", "6.12.100", "--mail"],
        &["alerts", "--mail", "6.13"],
        &["report", "--mail", "--format", "html", "run_0"],
        &["report", "--mail", "run_0", "run_1"],
        &["alerts", "--mail"],
    ];
    insta::assert_snapshot!(story(&home, &commands));
}

#[test]
fn tables_are_exported() {
    let home = home("kept-export");
    let file = home.join("samples.parquet");
    let commands: [&[&str]; 4] = [
        &["export", "--rows", "runs"],
        &[
            "export",
            "--workload",
            "fault",
            "--kernel",
            "6.12",
            "--format",
            "jsonl",
        ],
        &[
            "export",
            "--format",
            "parquet",
            "--output",
            file.to_str().unwrap(),
        ],
        &["export", "--suite", "macro"],
    ];
    insta::assert_snapshot!(story(&home, &commands).replace(home.to_str().unwrap(), "HOME"));
    assert!(std::fs::read(file).unwrap().starts_with(b"PAR1"));
}

#[test]
fn gc_keeps_runs_referenced_by_reports() {
    let home = home("kept-gc");
    let report = [&["report"][..], &RUNS].concat();
    output_of(&home, &report);
    let list = story(
        &home,
        &[
            &["show", RUNS[0], "--artifact", "list"],
            &["show", RUNS[0], "--artifact", "mentioned"],
        ],
    );
    insta::assert_snapshot!("artifacts-of-referenced-run", list);
    let gone = output_of(
        &home,
        &["gc", "--older-than", "0", "--artifacts-older-than", "0"],
    );
    assert!(
        gone.contains("kept because they are referenced: 2\n"),
        "{gone}"
    );
    assert!(output_of(&home, &["show", RUNS[0], "--artifact", "list"]).contains("mentioned"));
    insta::assert_snapshot!(
        "gc-of-referenced-runs",
        output_of(&home, &["gc", "--dry-run"])
    );
}

#[test]
fn gc_deletes_jobs_and_logs_by_age() {
    let home = home("kept-old");
    for kernel in ["deb:6.1", "deb:6.12"] {
        output_of(&home, &["queue", "add", kernel, "--workload", "getppid"]);
    }
    output_of(&home, &["queue", "cancel", "1"]);
    fs::create_dir_all(home.join("jobs")).unwrap();
    fs::write(home.join("jobs/1.log"), vec![b'x'; 1 << 20]).unwrap();
    // Ages are of whole seconds.
    std::thread::sleep(Duration::from_millis(2100));
    let old = [
        "--jobs-older-than",
        "0",
        "--logs-older-than",
        "0",
        "--notices-older-than",
        "0",
    ];
    let dry = output_of(&home, &[&["gc", "--dry-run"], &old[..]].concat());
    let counts = "jobs: 1\nnotices: 0\nlogs: 1, 1.0 MiB\n";
    assert!(dry.contains(counts), "{dry}");
    assert!(home.join("jobs/1.log").exists());
    let runs = output_of(&home, &["runs"]);
    let done = output_of(&home, &[&["gc"], &old[..]].concat());
    assert!(done.contains(counts), "{done}");
    assert!(!home.join("jobs/1.log").exists());
    assert_eq!(output_of(&home, &["runs"]), runs, "results stay");
    let gone = output_of(&home, &["queue", "why", "1"]);
    assert!(gone.contains("`marvin gc` deleted it"), "{gone}");
    assert!(output_of(&home, &["queue", "list"]).contains("deb:6.12"));
    // A day later than anything here: nothing is that old.
    let young = output_of(&home, &["gc", "--dry-run", "--jobs-older-than", "1"]);
    assert!(young.contains("jobs: 0\n"), "{young}");
}

#[test]
fn gc_deletes_images_that_no_server_runs() {
    let home = home("kept-images");
    let [used, unused] = ["52b2f0261c00063f", "0123456789abcdef"];
    for name in [used, unused, "making-x1"] {
        fs::create_dir_all(home.join("distributions").join(name)).unwrap();
        fs::write(
            home.join("distributions").join(name).join("root"),
            vec![0; 3 << 20],
        )
        .unwrap();
    }
    fs::create_dir(home.join("machines")).unwrap();
    fs::write(
        home.join("machines/testbox.image"),
        format!("{used} debian-12 4.0..\n"),
    )
    .unwrap();
    insta::assert_snapshot!(output_of(&home, &["gc", "--dry-run"]));
    assert!(home.join("distributions").join(unused).exists());
    assert!(output_of(&home, &["gc", "--format", "json"]).contains("\"making-x1\": 3145728"));
    let left: Vec<_> = fs::read_dir(home.join("distributions"))
        .unwrap()
        .map(|one| one.unwrap().file_name())
        .collect();
    assert_eq!(left, [used]);
}

#[test]
fn server_results_are_listed_without_its_password() {
    let home = fresh("kept-server");
    let wrong = [
        &["--store", "postgres://me:secret@/x?y=secret", "runs"][..],
        &["--store", "mysql://me:secret@host/x", "runs"],
    ];
    let answer = story(&home, &wrong).replace("me:secret@", "");
    assert!(
        !answer.split("-- out").skip(1).any(|part| part
            .split("$ marvin")
            .next()
            .unwrap()
            .contains("secret")),
        "{answer}"
    );
    let Some(cluster) = Cluster::start(Durability::Hasty).unwrap() else {
        println!("not tested with PostgreSQL, which is not installed: scripts/needs.sh test");
        return;
    };
    let address = cluster.place().unwrap();
    fill(&Store::open(Location::server(&address, None).unwrap()).unwrap());
    let bare = address.replace(&format!(":{PASSWORD}"), "");
    let home = &*home;
    let output = marvin(home)
        .env("MARVIN_STORE", &bare)
        .env("PGPASSWORD", PASSWORD)
        .arg("runs")
        .output()
        .unwrap();
    insta::assert_snapshot!(format_output(&output, home));
    assert!(
        !home.exists(),
        "who lists results on a server needs no home"
    );
    let output = marvin(home)
        .env("MARVIN_STORE", &address)
        .arg("--help")
        .output()
        .unwrap();
    assert!(!format_output(&output, home).contains(PASSWORD));
    drop(cluster);
    let output = marvin(home)
        .env("MARVIN_STORE", &address)
        .arg("runs")
        .output()
        .unwrap();
    let answer = format_output(&output, home);
    assert!(
        answer.starts_with("exit 5")
            && answer.contains("cannot reach")
            && !answer.contains(PASSWORD),
        "{answer}"
    );
}

/// Makes a certificate for `localhost` with its issuer; returns the file of the issuer, the
/// certificate, and its key.
fn certificate(folder: &Path) -> (PathBuf, Vec<u8>, Vec<u8>) {
    fs::create_dir_all(folder).unwrap();
    let script = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -keyout ca.key -out ca.pem -subj /CN=test &&
        openssl req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=localhost &&
        printf 'subjectAltName=DNS:localhost' > names &&
        openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out server.pem";
    let made = Command::new("sh")
        .args(["-c", script])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let read = |name: &str| fs::read(folder.join(name)).unwrap();
    (
        folder.join("ca.pem"),
        read("server.pem"),
        read("server.key"),
    )
}

#[test]
fn server_certificates_are_checked() {
    let Some(mut cluster) = Cluster::start(Durability::Hasty).unwrap() else {
        println!("not tested with PostgreSQL, which is not installed: scripts/needs.sh test");
        return;
    };
    let home = fresh("kept-tls");
    let (issuer, certificate, key) = certificate(&home.join("certificates"));
    let address = format!(
        "{}?sslmode=require",
        cluster.serve_tls(&certificate, &key).unwrap()
    );
    fill(
        &Store::open(Location::server(&address.replace("require", "disable"), None).unwrap())
            .unwrap(),
    );
    let runs = |trusted: &Path, address: &str| {
        let output = marvin(&home)
            .env("MARVIN_STORE", address)
            .env("SSL_CERT_FILE", trusted)
            .arg("runs")
            .output();
        let answer = format_output(&output.unwrap(), &home);
        let port = address
            .split(':')
            .nth(3)
            .unwrap()
            .split('/')
            .next()
            .unwrap();
        answer.replace(port, "PORT")
    };
    assert!(
        runs(&issuer, &address).starts_with("exit 0"),
        "{}",
        runs(&issuer, &address)
    );
    insta::assert_snapshot!(
        "certificate-of-unknown-issuer",
        runs(Path::new("/dev/null"), &address)
    );
    // The certificate is for localhost.
    insta::assert_snapshot!(
        "certificate-of-other-host",
        runs(&issuer, &address.replace("@localhost", "@127.0.0.1"))
    );
}

/// Polls a page of a server until it contains a text; `None` after half a minute.
fn poll_page(server: &Server, path: &str, until: &str) -> Option<String> {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(30) {
        let answer = server.ask(path);
        if answer.contains(until) {
            return Some(answer);
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    None
}

#[test]
fn dashboard_survives_a_lost_store_server() {
    let Some(mut cluster) = Cluster::start(Durability::Hasty).unwrap() else {
        println!("not tested with PostgreSQL, which is not installed: scripts/needs.sh test");
        return;
    };
    let home = fresh("kept-gone");
    let place = cluster.place().unwrap();
    fill(&Store::open(Location::server(&place, None).unwrap()).unwrap());
    let mut program = marvin(&home);
    program.env("MARVIN_STORE", &place);
    // Both begin while it is down.
    cluster.pause().unwrap();
    let server = std::thread::scope(|scope| {
        let starting = scope.spawn(|| Server::start(program));
        std::thread::sleep(std::time::Duration::from_secs(4));
        cluster.resume().unwrap();
        starting.join().unwrap()
    });
    assert!(poll_page(&server, "/metrics", "marvin_store_unreadable 0\n").is_some());
    cluster.pause().unwrap();
    assert!(
        poll_page(&server, "/metrics", "marvin_store_unreadable 1\n").is_some(),
        "the failure is reported"
    );
    assert!(
        poll_page(&server, "/", "First seen in 6.12.100").is_some(),
        "what was read is still shown"
    );
    let failed = poll_page(&server, "/runs.html", "cannot read the store").unwrap();
    assert!(
        failed.starts_with("HTTP/1.1 500") && !failed.contains(PASSWORD),
        "{failed}"
    );
    cluster.resume().unwrap();
    assert!(
        poll_page(&server, "/metrics", "marvin_store_unreadable 0\n").is_some(),
        "and that it is back"
    );
    assert!(
        poll_page(&server, "/runs.html", "HTTP/1.1 200").is_some(),
        "nothing is lost"
    );
    let output = server.end();
    assert!(!output.contains(PASSWORD), "{output}");
}
