//! What is done with results as they are kept: in a home or on a server, mailed, exported, let go of.

use std::path::Path;

use store::cluster::{Cluster, Durability, PASSWORD};
use store::{Location, Store};

use crate::fresh::{Fresh, fresh};
use crate::history::fill;
use crate::{marvin, shown, told};

/// Two of the lab's runs.
const RUNS: [&str; 2] = ["run_0000000000000001", "run_0000000000000002"];

/// Tells a story, without what depends on the day.
fn story(home: &Path, commands: &[&[&str]]) -> String {
    let mut story = String::new();
    for arguments in commands {
        let told = told(home, arguments);
        story.extend(["$ marvin ", &arguments.join(" "), "\n", &told, "\n"]);
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
fn a_mail_is_written_of_a_report_and_of_an_alert() {
    let home = home("kept-mail");
    let report = [&["report", "--mail"][..], &RUNS].concat();
    let commands: [&[&str]; 4] = [
        &report,
        &["alerts", "--mail", "6.12.100"],
        &["alerts", "--mail", "6.13"],
        &["report", "--mail", "--format", "html", "run_0"],
    ];
    insta::assert_snapshot!(story(&home, &commands));
}

#[test]
fn tables_are_exported() {
    let home = home("kept-export");
    let file = home.join("samples.parquet");
    let commands: [&[&str]; 4] = [
        &["export", "--rows", "runs"],
        &["export", "--workload", "fault", "--kernel", "6.12", "--format", "jsonl"],
        &["export", "--format", "parquet", "--output", file.to_str().unwrap()],
        &["export", "--suite", "macro"],
    ];
    insta::assert_snapshot!(story(&home, &commands).replace(home.to_str().unwrap(), "HOME"));
    assert!(std::fs::read(file).unwrap().starts_with(b"PAR1"));
}

#[test]
fn what_a_report_refers_to_is_not_let_go_of() {
    let home = home("kept-gc");
    let report = [&["report"][..], &RUNS].concat();
    told(&home, &report);
    let list = story(&home, &[&["show", RUNS[0], "--artefact", "list"], &["show", RUNS[0], "--artefact", "mentioned"]]);
    insta::assert_snapshot!(list);
    let gone = told(&home, &["gc", "--older-than", "0", "--artefacts-older-than", "0"]);
    assert!(gone.contains("kept because somebody refers to them: 2\n"), "{gone}");
    assert!(told(&home, &["show", RUNS[0], "--artefact", "list"]).contains("mentioned"));
    insta::assert_snapshot!(told(&home, &["gc", "--dry-run"]));
}

#[test]
fn results_on_a_server_are_listed_and_its_password_is_not_told() {
    let home = fresh("kept-server");
    let wrong = [
        &["--store", "postgres://me:secret@/x?y=secret", "runs"][..],
        &["--store", "mysql://me:secret@host/x", "runs"],
    ];
    let told = story(&home, &wrong).replace("me:secret@", "");
    assert!(
        !told.split("-- out").skip(1).any(|part| part.split("$ marvin").next().unwrap().contains("secret")),
        "{told}"
    );
    let Some(cluster) = Cluster::start(Durability::Hasty).unwrap() else {
        println!("not tested with PostgreSQL, which is not installed: scripts/needs.sh test");
        return;
    };
    let address = cluster.place().unwrap();
    fill(&Store::open(Location::server(&address, None).unwrap()).unwrap());
    let (bare, home) = (address.replace(&format!(":{PASSWORD}"), ""), &*home);
    let output = marvin(home).env("MARVIN_STORE", &bare).env("PGPASSWORD", PASSWORD).arg("runs").output().unwrap();
    insta::assert_snapshot!(shown(&output, home));
    assert!(!home.exists(), "who lists results on a server needs no home");
    let output = marvin(home).env("MARVIN_STORE", &address).arg("--help").output().unwrap();
    assert!(!shown(&output, home).contains(PASSWORD));
    drop(cluster);
    let output = marvin(home).env("MARVIN_STORE", &address).arg("runs").output().unwrap();
    let told = shown(&output, home);
    assert!(told.starts_with("exit 5") && told.contains("cannot be reached") && !told.contains(PASSWORD), "{told}");
}
