//! Result files of other programs: two commands from a directory of files to a verdict, and the
//! same rows in the history and on the dashboard.

use std::fs;
use std::path::Path;

use crate::fresh::fresh;
use crate::output_of;

fn put(folder: &Path, name: &str, seconds: &[f64]) {
    fs::create_dir_all(folder).unwrap();
    let text = format!(
        "{{\"results\": [{{\"command\": \"make -j4\", \"mean\": 1, \"times\": {seconds:?}}}]}}"
    );
    fs::write(folder.join(name), text).unwrap();
}

/// Three runs of each of three kernels, the last one slower.
fn results(folder: &Path) {
    for (kernel, mean) in [("6.1", 10.0), ("6.6", 10.05), ("6.12", 12.0)] {
        for run in 1..=3_u8 {
            let more = f64::from(run) * 0.02;
            let times = [mean + more, mean + more + 0.01, mean + more + 0.02];
            put(folder, &format!("{kernel}-run{run}.json"), &times);
        }
    }
    fs::write(folder.join("notes.txt"), "a word\n").unwrap();
    fs::write(
        folder.join("cut.json"),
        "{\"results\": [{\"command\": 1, \"mean\": 2",
    )
    .unwrap();
}

fn without_dates(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("Compared:"));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn directory_of_files_takes_two_commands() {
    let home = fresh("files-home");
    let folder = fresh("files-results");
    results(&folder);
    let given = folder.display().to_string();
    let output = output_of(&home, &["import", &given, "--as", "lab3"]);
    insta::assert_snapshot!("files-import", output);
    assert!(
        output.lines().all(|line| line.chars().count() <= 80),
        "{output}"
    );
    let again = output_of(&home, &["import", &given, "--as", "lab3"]);
    assert_eq!(again.matches("already imported").count(), 9);
    let report = output_of(&home, &["report", "6.6", "6.12"]);
    assert!(report.starts_with("exit 1"), "{report}");
    insta::assert_snapshot!("files-report", without_dates(&report));
    let history = output_of(&home, &["history", "hyperfine/make--j4"]);
    insta::assert_snapshot!("files-history", history);
    let site = home.join("site");
    let published = output_of(&home, &["publish", site.to_str().unwrap()]);
    assert!(published.starts_with("exit 0"), "{published}");
    let page = fs::read_to_string(site.join("index.html")).unwrap();
    assert!(page.contains("hyperfine/make--j4"), "{page}");
}

#[test]
fn given_directions_stay_with_the_results() {
    let home = fresh("files-direction-home");
    let folder = fresh("files-direction");
    fs::create_dir_all(&folder).unwrap();
    for (kernel, points) in [("6.1", [50.0, 50.1]), ("6.12", [70.0, 70.1])] {
        for (run, points) in points.into_iter().enumerate() {
            let text = format!("benchmark,value,unit\nx,{points},points\n");
            fs::write(folder.join(format!("{kernel}_{run}.csv")), text).unwrap();
        }
    }
    let given = folder.display().to_string();
    output_of(&home, &["import", &given]);
    let unknown = output_of(&home, &["report", "6.1", "6.12"]);
    assert!(
        unknown.starts_with("exit 2") && unknown.contains("metric direction unknown"),
        "{unknown}"
    );
    let output = output_of(&home, &["import", &given, "--higher", "table/x"]);
    assert_eq!(output.matches(", imported").count(), 4, "{output}");
    let report = output_of(&home, &["report", "6.1", "6.12"]);
    assert!(report.contains("table/x"), "{report}");
    assert!(report.starts_with("exit 0"), "{report}");
}

#[test]
fn machines_have_a_command_each() {
    let home = fresh("files-machines-home");
    let folder = fresh("files-machines");
    for host in ["lab3", "lab4"] {
        for kernel in ["6.1", "6.12"] {
            let text = format!("kernel,host,benchmark,value,unit\n{kernel},{host},x,5,ms\n");
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(format!("{host}-{kernel}.csv")), text).unwrap();
        }
    }
    let output = output_of(&home, &["import", folder.to_str().unwrap()]);
    assert_eq!(output.matches("marvin report run_").count(), 2, "{output}");
    assert!(
        output.contains("on lab3") && output.contains("on lab4"),
        "{output}"
    );
    assert!(output.contains("--as MACHINE"), "{output}");
}

#[test]
fn unrecognised_files_import_nothing_and_are_named() {
    let home = fresh("files-none-home");
    let folder = fresh("files-none");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("a.txt"), "words\n").unwrap();
    fs::write(folder.join("b.bin"), [0, 1, 2]).unwrap();
    fs::write(folder.join("c"), "").unwrap();
    insta::assert_snapshot!(
        "files-none",
        output_of(&home, &["import", folder.to_str().unwrap()])
    );
    let missing = output_of(&home, &["import", "/no/such/file.json"]);
    insta::assert_snapshot!("files-missing", missing);
    let manifest = folder.join("bad.toml");
    fs::write(&manifest, "name = 'x'\n").unwrap();
    let bad = output_of(
        &home,
        &[
            "import",
            folder.to_str().unwrap(),
            "--manifest",
            manifest.to_str().unwrap(),
        ],
    );
    assert!(
        bad.starts_with("exit 2") && bad.contains("without `layout`"),
        "{bad}"
    );
}
