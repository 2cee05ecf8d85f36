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

fn answer(home: &Path, arguments: &[&str]) -> String {
    let output = output_of(home, arguments);
    let text = output.split_once("-- out\n").unwrap().1;
    text.split("-- err\n").next().unwrap().to_owned()
}

fn json(home: &Path, arguments: &[&str]) -> serde_json::Value {
    serde_json::from_str(&answer(home, arguments)).unwrap()
}

#[test]
fn value_is_what_heading_docs_and_json_say() {
    let home = fresh("files-value-home");
    let folder = fresh("files-value");
    // A cold first sample and one outlier: median 100, mean 150, trimmed geometric mean 100.66.
    let samples = [400.0, 100.0, 99.0, 102.0, 100.0, 99.0];
    put(&folder, "6.1.json", &samples);
    put(&folder, "6.12.json", &samples.map(|value| value * 3.0));
    output_of(&home, &["import", folder.to_str().unwrap(), "--as", "lab3"]);
    let mut sorted = samples.map(f64::ln);
    sorted.sort_by(f64::total_cmp);
    // A fifth of six at each end is one sample.
    let expected = (sorted[1..5].iter().sum::<f64>() / 4.0).exp();
    let docs = include_str!("../../../../../docs/import.md");
    let docs = docs.split_whitespace().collect::<Vec<_>>().join(" ");
    for promise in [
        "The value of a row in a run is the geometric mean of all its samples, the first among them, of five or more without a fifth at each end",
        "`marvin show RUN` prints it under *mean*",
    ] {
        assert!(docs.contains(promise), "{promise}");
    }
    let report = json(&home, &["report", "6.1", "6.12", "--format", "json"]);
    let value = report["rows"][0]["base"]["value"].as_f64().unwrap();
    assert!(
        (value - expected).abs() < 1e-9,
        "{value} and not {expected}"
    );
    let shown = format!("{expected:.2}");
    let table = answer(&home, &["report", "6.1", "6.12"]);
    assert!(table.contains(&shown), "{table}");
    let words = table.split_whitespace().collect::<Vec<_>>().join(" ");
    let trimmed = "geometric means over the runs, each of its samples without a fifth at each end";
    assert!(words.contains(trimmed), "{table}");
    let run = report["base"]["runs"][0]["id"]
        .as_str()
        .map_or_else(|| first_run(&home), str::to_owned);
    let show = answer(&home, &["show", &run]);
    let heading = show.lines().find(|line| line.contains("mean")).unwrap();
    assert!(!heading.contains("median"), "{show}");
    let at = heading.find("mean").unwrap() + "mean".len();
    let row = show
        .lines()
        .find(|line| line.contains("hyperfine/make"))
        .unwrap();
    let column: String = row.chars().take(at).collect();
    assert!(column.ends_with(&shown), "under the heading: {show}");
    let exported = answer(&home, &["export", "--rows", "results", "--format", "jsonl"]);
    let first: serde_json::Value = serde_json::from_str(exported.lines().next().unwrap()).unwrap();
    let value = first["value"].as_f64().unwrap();
    assert!((value - expected).abs() < 1e-9, "{exported}");
}

/// Returns the run of the first kernel.
fn first_run(home: &Path) -> String {
    let runs = json(home, &["runs", "--format", "json"]);
    let mut runs = runs["runs"].as_array().unwrap().iter();
    let run = runs.find(|run| run["version"] == "6.1").unwrap();
    run["id"].as_str().unwrap().to_owned()
}

#[test]
fn printed_command_has_versions_in_order() {
    let home = fresh("files-order-home");
    let folder = fresh("files-order");
    for (kernel, seconds) in [
        ("6.10-vanilla", 20.0),
        ("6.9-vanilla", 10.0),
        ("6.10-rc2", 15.0),
    ] {
        put(
            &folder.join(kernel),
            "a.json",
            &[seconds, seconds + 0.1, seconds + 0.2],
        );
    }
    let output = answer(&home, &["import", folder.to_str().unwrap()]);
    let command = "marvin report 6.9-vanilla 6.10-rc2 6.10-vanilla";
    assert!(output.contains(command), "{output}");
    assert!(
        output.contains("To compare the kernels with 6.9-vanilla (lowest version)"),
        "{output}"
    );
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    let report = json(&home, &[&words[..], &["--format", "json"]].concat());
    let slower = &report["rows"][0]["others"][1];
    let percent = slower["difference_percent"].as_f64().unwrap();
    assert!(percent < -90.0, "twice the time is worse: {percent}");
    assert_eq!(slower["verdict"], "worse within one run");
}

#[test]
fn one_run_of_each_has_its_own_letter() {
    let home = fresh("files-within-home");
    let folder = fresh("files-within");
    put(&folder, "6.1.json", &[10.0, 10.1, 10.05, 10.02]);
    put(&folder, "6.12.json", &[20.0, 20.2, 20.1, 20.05]);
    output_of(&home, &["import", folder.to_str().unwrap()]);
    let report = output_of(&home, &["report", "6.1", "6.12"]);
    assert!(report.starts_with("exit 3"), "{report}");
    let words = report.split_whitespace().collect::<Vec<_>>().join(" ");
    for text in [
        "0 better, 0 worse, 0 same, 1 unclear (1 worse within one run)",
        " w w worse: within one run of each, and counted as unclear",
        "worse within one run: its samples decide if boots differ no more than samples do, which one run does not show",
    ] {
        assert!(words.contains(text), "{text}\n{report}");
    }
}

#[test]
fn track_gives_kernels_their_own_history() {
    let home = fresh("files-track-home");
    let folder = fresh("files-track");
    put(&folder, "6.1.json", &[10.0, 10.1, 10.2]);
    let given = folder.to_str().unwrap();
    output_of(&home, &["import", given]);
    let output = output_of(&home, &["import", given, "--track", "lts"]);
    assert_eq!(output.matches(", imported").count(), 1, "{output}");
    let history = json(
        &home,
        &["history", "hyperfine/make--j4", "--format", "json"],
    );
    let series = history["series"].as_array().unwrap().iter();
    let mut tracks: Vec<&str> = series.map(|one| one["track"].as_str().unwrap()).collect();
    tracks.sort_unstable();
    assert_eq!(tracks, ["imported", "lts"]);
    // An unset variable of a script is no name.
    for [option, value] in [["--track", "a,b"], ["--kernel", ""], ["--as", ""]] {
        let wrong = output_of(&home, &["import", given, option, value]);
        assert!(wrong.starts_with("exit 2"), "{wrong}");
    }
}

/// Writes folded stacks: samples of `read` and of `spin` per file.
fn put_stacks(folder: &Path, files: &[[u32; 2]]) {
    fs::create_dir_all(folder).unwrap();
    for (number, [read, spin]) in files.iter().enumerate() {
        let text = format!("# dd\nswapper;halt 500\ndd;vfs;read {read}\ndd;vfs;spin {spin}\n");
        fs::write(folder.join(format!("{number}.folded")), text).unwrap();
    }
}

#[test]
fn profiles_of_files_are_compared() {
    let home = fresh("profiles-home");
    let folder = fresh("profiles");
    let [before, after] = ["before/", "after/"].map(|name| folder.join(name));
    put_stacks(&before, &[[900, 100], [905, 95], [895, 105]]);
    put_stacks(&after, &[[700, 300], [705, 295], [690, 310]]);
    let [base, new] = [&before, &after].map(|path| path.to_str().unwrap().to_owned());
    let text = output_of(&home, &["profile", &base, &new]);
    assert!(text.starts_with("exit 0"), "{text}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "2 of 2 functions differ",
        "spin",
        "+20.",
        "without 1500 samples of idle",
    ] {
        assert!(words.contains(part), "{part}\n{text}");
    }
    let found = json(&home, &["profile", &base, &new, "--format", "json"]);
    assert_eq!(found["tested"], true);
    let [one, other] = [&before, &after].map(|path| path.join("0.folded"));
    let files = [one.to_str().unwrap(), other.to_str().unwrap()];
    let text = output_of(&home, &["profile", files[0], files[1]]);
    assert!(
        text.contains("One file of a side has no error bars"),
        "{text}"
    );
    for (arguments, why) in [
        (
            vec![files[0], "deb:6.1"],
            "name two profiles, or two kernels",
        ),
        (
            vec![files[0], files[1], "--model"],
            "--model is for kernels",
        ),
    ] {
        let wrong = output_of(&home, &[&["profile"], &arguments[..]].concat());
        assert!(
            wrong.starts_with("exit 2") && wrong.contains(why),
            "{wrong}"
        );
    }
    fs::write(folder.join("words"), "no profile\n").unwrap();
    let words = folder.join("words");
    let wrong = output_of(&home, &["profile", words.to_str().unwrap(), files[1]]);
    assert!(
        wrong.starts_with("exit 2") && wrong.contains("words"),
        "{wrong}"
    );
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

#[test]
fn many_kernels_get_a_short_command() {
    let home = fresh("many-home");
    let files = fresh("many-files");
    fs::create_dir_all(&files).unwrap();
    let mut table = "kernel,test,value,unit\n".to_owned();
    for minor in 1..=9 {
        table.extend([format!("6.{minor},copy,10{minor},MB/s\n")]);
    }
    let file = files.join("all.csv");
    fs::write(&file, table).unwrap();
    let output = output_of(&home, &["import", file.to_str().unwrap(), "--as", "lab"]);
    assert!(
        output.contains(
            "To compare the last of 9 kernels with 6.1 (lowest version):\n  marvin report 6.1 6.9\n"
        ),
        "{output}"
    );
}
