//! Manifests and golden outputs, and the errors of wrong ones.

use std::fs;
use std::path::Path;

use model::{Steadiness, Tool, ToolWorkload};
use proptest::prelude::*;

use super::{OUTPUT_MAX, SHIPPED, ToolOutput, tool, tool_samples};

fn shipped() -> Vec<Tool> {
    SHIPPED
        .iter()
        .map(|(name, text)| tool(text).unwrap_or_else(|error| panic!("{name}: {error}")))
        .collect()
}

fn workload(name: &str) -> ToolWorkload {
    let mut all = shipped().into_iter().flat_map(|tool| tool.workloads);
    all.find(|workload| workload.name == name)
        .unwrap_or_else(|| panic!("no workload {name}"))
}

/// The samples of a golden output, a line for each metric; or the error.
fn read(workload: &ToolWorkload, folder: &Path) -> String {
    let file = |name: &str| fs::read(folder.join(name)).unwrap_or_default();
    let stdout = file("output");
    let stderr = file("stderr");
    let files = [("/run/stress-ng.yaml".to_owned(), file("written"))];
    match tool_samples(
        workload,
        &ToolOutput {
            stdout: &stdout,
            stderr: &stderr,
            files: &files,
        },
    ) {
        Err(error) => format!("{error}\n"),
        Ok(samples) => workload
            .metrics
            .iter()
            .zip(&samples)
            .map(|(metric, samples): (&model::ToolMetric, &Vec<f64>)| {
                let samples: Vec<String> = samples.iter().map(f64::to_string).collect();
                format!(
                    "{} = {} {}, {}\n",
                    metric.name,
                    samples.join(" "),
                    metric.unit,
                    metric.direction
                )
            })
            .collect(),
    }
}

#[test]
fn golden_outputs_give_the_samples_beside_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/tools");
    let mut read_by = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let folder = entry.unwrap().path();
        let origin = fs::read_to_string(folder.join("origin")).unwrap();
        let name = origin.lines().next().unwrap();
        let found = read(&workload(name), &folder);
        if std::env::var("INSTA_UPDATE").is_ok_and(|word| word == "always") {
            fs::write(folder.join("expected"), &found).unwrap();
        }
        let expected = fs::read_to_string(folder.join("expected")).unwrap_or_default();
        assert_eq!(found, expected, "{}", folder.display());
        read_by.push(name.to_owned());
    }
    for tool in shipped() {
        let count = read_by
            .iter()
            .filter(|name| tool.workloads.iter().any(|w| w.name == **name))
            .count();
        assert!(count >= 2, "{} has {count} golden outputs", tool.name);
        for workload in &tool.workloads {
            assert!(
                read_by.contains(&workload.name),
                "{} has no golden output",
                workload.name
            );
        }
    }
}

#[test]
fn shipped_manifests_have_unique_tool_names() {
    let tools = shipped();
    for ((file, _), tool) in SHIPPED.iter().zip(&tools) {
        assert_eq!(*file, tool.name);
    }
    let mut names: Vec<&str> = tools
        .iter()
        .flat_map(|tool| &tool.workloads)
        .map(|w| w.name.as_str())
        .collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all, "a name twice");
}

const SMALL: &str = r#"name = "small"
about = "what tests need"
packages = ["small"]

[[workload]]
name = "small"
stresses = "nothing"
command = ["/bin/small", "{n}"]
parameters = { n = 1 }

[[workload.metric]]
name = "rate"
unit = "1/s"
better = "higher"
line = 'rate (?<value>\S+)'
"#;

/// Returns the error of a manifest with one text replaced.
fn error_of(old: &str, new: &str) -> String {
    assert!(SMALL.contains(old), "{old}");
    tool(&SMALL.replacen(old, new, 1)).map_or_else(|error| error.to_string(), |_| "fine".to_owned())
}

#[test]
fn errors_of_manifests_name_place_and_remedy() {
    let changes = [
        ("stresses", "streses"),
        ("about", "abuot"),
        ("better = \"higher\"", "better = \"more\""),
        ("better = \"higher\"\n", ""),
        ("{n}", "{m}"),
        ("{n}", "x"),
        ("/bin/small", "small"),
        ("(?<value>\\S+)", "(\\S+)"),
        ("(?<value>\\S+)", "(?<value>"),
        ("line = ", "json = 'a..b'\n#"),
        ("line = ", "key = \"rate\"\nline = "),
        ("[\"small\"]", "[\"small; rm\"]"),
        ("[\"small\"]", "[]"),
        ("[\"small\"]", "\"small\""),
        ("name = \"small\"", "name = \"Small\""),
        ("{ n = 1 }", "{ n = 1"),
        ("unit = \"1/s\"", "unit = \"1/s\"\nfactor = -1"),
        ("unit = \"1/s\"", "unit = \"1/s\"\nfile = \"/a/../b\""),
        ("unit = \"1/s\"", "unit = \"1/s\"\nmargin_percent = nan"),
        (
            "stresses = \"nothing\"",
            "stresses = \"a\\u0007b\"\nruns = 1",
        ),
        ("stresses = \"nothing\"", "stresses = \"nothing\"\nruns = 1"),
        (
            "stresses = \"nothing\"",
            "stresses = \"nothing\"\nsteadiness = \"wild\"",
        ),
        ("[[workload.metric]]", "[[workload.metrics]]"),
    ];
    let messages: Vec<String> = changes
        .iter()
        .map(|(old, new)| {
            format!(
                "{} -> {}: {}",
                old.trim(),
                new.escape_debug(),
                error_of(old, new)
            )
        })
        .collect();
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn omitted_settings_have_defaults() {
    let tool = tool(SMALL).unwrap();
    insta::assert_debug_snapshot!(tool.workloads[0]);
    let chaotic = SMALL.replacen("stresses", "steadiness = \"chaotic\"\nstresses", 1);
    assert_eq!(
        super::tool(&chaotic).unwrap().workloads[0].steadiness,
        Steadiness::Chaotic
    );
}

/// Returns the error of an output of a shipped workload.
fn output_error_of(name: &str, stdout: &str) -> String {
    let output = ToolOutput {
        stdout: stdout.as_bytes(),
        ..ToolOutput::default()
    };
    tool_samples(&workload(name), &output)
        .map_or_else(|error| error.to_string(), |samples| format!("{samples:?}"))
}

#[test]
fn unknown_outputs_are_named_with_their_line() {
    let cases = [
        (
            "sysbench-cpu",
            "sysbench 0.4.12:  multi-threaded system evaluation benchmark\n",
        ),
        ("sysbench-cpu", ""),
        ("sysbench-cpu", "sysbench 1.0.20\n\n"),
        (
            "sysbench-cpu",
            "sysbench 1.0.20\n events per second: many\n",
        ),
        (
            "sysbench-cpu",
            "sysbench 1.0.20\n events per second: 1\n events per second: 2\n",
        ),
        (
            "sysbench-cpu",
            "sysbench 1.0.20\nFATAL: invalid option: --cpu\n",
        ),
        (
            "iperf3-tcp",
            "{\n\"version\":\t\"iperf 3.12\",\n\"error\":\t\"unable to connect to server\"\n}",
        ),
        (
            "iperf3-tcp",
            "iperf3: warning\n{\n\"version\":\t\"iperf 3.12\",\n\"end\": {]}",
        ),
        ("iperf3-tcp", "{\"version\":\t\"iperf 3.12\", \"end\": {}}"),
        ("redis", "\"SET\",\"44444.44\"\n"),
        ("redis", "\"test\",\"rps\",\"x\"\n\"GET\",\"1\",\"2\"\n"),
        (
            "dbench",
            "dbench version 4.00 - x\nThroughput 0 MB/sec  1 clients  1 procs\n",
        ),
    ];
    let messages: Vec<String> = cases
        .iter()
        .map(|(name, text)| format!("{name}: {}", output_error_of(name, text)))
        .collect();
    insta::assert_snapshot!("unknown_outputs", messages.join("\n"));
    let long = vec![b'x'; OUTPUT_MAX + 1];
    let output = ToolOutput {
        stdout: &long,
        ..ToolOutput::default()
    };
    insta::assert_snapshot!(
        "too_long_output",
        tool_samples(&workload("hackbench"), &output).unwrap_err()
    );
}

#[test]
fn examples_of_the_document_can_be_read() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/tools.md");
    let document = fs::read_to_string(path).unwrap();
    let blocks: Vec<&str> = document
        .split("```toml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .collect();
    assert!(blocks.len() >= 2);
    for block in &blocks {
        tool(block).unwrap_or_else(|error| panic!("{error}\n{block}"));
    }
    for key in super::manifest::keys() {
        assert!(
            document.contains(&format!("`{key}`")),
            "docs/tools.md does not speak of `{key}`"
        );
    }
}

proptest! {
    #[test]
    fn any_manifest_is_read_or_refused(
        text in any::<String>(),
        at in 0..SMALL.len(),
        with in any::<String>(),
    ) {
        let _refused = tool(&text).is_err();
        let mut damaged = SMALL.to_owned();
        damaged.insert_str(at, &with);
        let _either = tool(&damaged).is_ok();
    }

    #[test]
    fn any_output_is_read_or_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        at in 0_usize..2000,
        golden in prop::sample::select(vec!["fio-3.33-json", "redis-benchmark-7.0.15-csv", "sysbench-1.0.20-cpu", "fio-3.33-terse"]),
    ) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("golden/tools")
            .join(golden);
        let mut damaged = fs::read(folder.join("output")).unwrap();
        let at = at.min(damaged.len());
        damaged.splice(at..at, bytes.iter().copied());
        for tool in shipped() {
            for workload in &tool.workloads {
                for stdout in [&bytes, &damaged] {
                    let output = ToolOutput {
                        stdout,
                        stderr: &bytes,
                        files: &[],
                    };
                    if let Ok(samples) = tool_samples(workload, &output) {
                        prop_assert_eq!(samples.len(), workload.metrics.len());
                        prop_assert!(
                            samples
                                .iter()
                                .all(|s| !s.is_empty() && s.iter().all(|value| value.is_finite()))
                        );
                    }
                }
            }
        }
    }
}
