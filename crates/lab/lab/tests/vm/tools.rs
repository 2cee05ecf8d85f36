//! External tools in real guests: a cheap one, twice, and tools that cannot run. The full tests run
//! all tools and measure how far their values spread over seeds.

use std::sync::LazyLock;

use lab::{Dumps, Plan, Reuse, Sampled, Tools};
use model::{FailureReason, Outcome, Run, Steadiness, Workload};

use crate::{build, is_left_to_full, kernels, lab, samples};

/// A tool with each kind of failure.
const WRONG: &str = r#"
name = "wrong"
about = "what goes wrong"
packages = ["rt-tests"]

[[workload]]
name = "wrong-absent"
stresses = "a program that is in none of the packages"
command = ["/usr/bin/nonesuch"]
[[workload.metric]]
name = "time"
unit = "s"
better = "lower"
key = "Time"

[[workload]]
name = "wrong-option"
stresses = "a program that ends with an error"
command = ["/usr/bin/hackbench", "--nonesuch"]
[[workload.metric]]
name = "time"
unit = "s"
better = "lower"
key = "Time"

[[workload]]
name = "wrong-output"
stresses = "a program of another version"
command = ["/usr/bin/hackbench", "-g", "1", "-l", "1"]
runs = 2
known = ['^hackbench of tomorrow']
[[workload.metric]]
name = "time"
unit = "s"
better = "lower"
key = "Time"

[[workload]]
name = "wrong-memory"
stresses = "a guest that has no room for the files"
memory_mib = 64
command = ["/usr/bin/hackbench", "-g", "1", "-l", "1"]
[[workload.metric]]
name = "time"
unit = "s"
better = "lower"
key = "Time"

[[workload]]
name = "wrong-time"
stresses = "a program that does not end in time"
command = ["/usr/bin/cyclictest", "-q", "-i", "1000", "-l", "100000"]
limit_s = 1
[[workload.metric]]
name = "time"
unit = "s"
better = "lower"
key = "Time"
"#;

const ABSENT: &str = r#"
name = "no-package"
about = "a package that Debian does not have"
packages = ["marvin-nonesuch"]

[[workload]]
name = "no-package"
stresses = "nothing"
command = ["/usr/bin/nonesuch"]
[[workload.metric]]
name = "time"
unit = "s"
better = "lower"
key = "Time"
"#;

/// A tool that continues when the kernel kills a part of it.
const HUNGRY: &str = r#"
name = "hungry"
about = "more memory than there is"
packages = ["stress-ng"]

[[workload]]
name = "hungry"
stresses = "memory, until there is none"
memory_mib = 192
command = ["/usr/bin/stress-ng", "--vm", "1", "--vm-bytes", "400M", "--vm-keep", "--vm-ops", "100000", "--metrics-brief"]
[[workload.metric]]
name = "rate"
unit = "operations/s"
better = "higher"
from = "stderr"
line = 'vm +(?<value>[0-9]+) '
"#;

/// The seeds for the spread of tools.
const SEEDS: [u64; 5] = [1, 2, 3, 4, 5];

/// The tools of the lab that the tests share.
pub(crate) static TOOLS: LazyLock<Tools> = LazyLock::new(|| {
    let manifests = [
        ("wrong.toml", WRONG),
        ("absent.toml", ABSENT),
        ("hungry.toml", HUNGRY),
    ];
    Tools::read(&manifests.map(|(file, text)| (file.to_owned(), text.to_owned()))).unwrap()
});

/// Runs the workloads of these words on a kernel.
fn run(kernel: &str, terms: &[&str], seeds: &[u64]) -> Vec<Run> {
    let workloads: Vec<_> = terms.iter().flat_map(|word| TOOLS.select(word)).collect();
    let build = build(kernel);
    lab().prepare(&workloads, &|_| {}).unwrap();
    let replicates = seeds.to_vec();
    let reuse = Reuse::Nothing;
    let dumps = Dumps::Drop;
    let sampled = Sampled::No;
    let plan = Plan {
        sides: vec![&build],
        suite: TOOLS.suite(),
        workloads,
        replicates,
        machines: 2,
        reuse,
        dumps,
        sampled,
    };
    lab().execute(&plan, &|_| {}).unwrap().remove(0)
}

/// The outcome of a row.
fn outcome(runs: &[Run], row: &str) -> (String, Vec<f64>) {
    let result = runs
        .iter()
        .flat_map(|run| &run.results)
        .find(|result| result.workload == row)
        .unwrap();
    let message = match &result.outcome {
        Outcome::Completed => {
            samples(result);
            "completed".to_owned()
        }
        Outcome::Unsupported(why) => format!("not supported: {why}"),
        Outcome::Failed(failure) => failure.reason.to_string(),
    };
    (message, result.samples.clone())
}

#[test]
fn tools_repeat_their_results() {
    for kernel in kernels() {
        let first = run(kernel, &["hackbench"], &[1]);
        let second = run(kernel, &["hackbench"], &[1]);
        let (message, samples) = outcome(&first, "hackbench");
        assert_eq!(
            (message.as_str(), samples.len()),
            ("completed", 4),
            "{kernel}"
        );
        assert!(
            samples.iter().all(|sample| *sample > 0.0),
            "{kernel}: {samples:?}"
        );
        assert_eq!(
            outcome(&second, "hackbench"),
            (message, samples),
            "{kernel}"
        );
        let run = first
            .iter()
            .find(|run| run.results.iter().any(|r| r.workload == "hackbench"))
            .unwrap();
        let printed =
            String::from_utf8(lab().artifact(&run.id, "hackbench.output").unwrap()).unwrap();
        assert!(
            printed.starts_with("==> 0/stdout <==") && printed.contains("Running in process mode"),
            "{printed}"
        );
    }
}

#[test]
fn every_shipped_tool_repeats_within_its_spread() {
    if is_left_to_full("all tools take long") {
        return;
    }
    let shipped = Tools::read(&[]).unwrap();
    for (tool, kernel) in shipped
        .all()
        .flat_map(|tool| kernels().iter().map(move |kernel| (tool, kernel)))
    {
        let terms: Vec<&str> = tool
            .workloads
            .iter()
            .map(|workload| workload.name.as_str())
            .collect();
        let again = run(kernel, &terms, &SEEDS[..1]);
        let runs = run(kernel, &terms, &SEEDS);
        for row in terms.iter().flat_map(|word| TOOLS.select(word)) {
            let found = SEEDS.map(|seed| {
                outcome(
                    &runs
                        .iter()
                        .filter(|run| run.seed == seed)
                        .cloned()
                        .collect::<Vec<_>>(),
                    &row.name,
                )
            });
            for (message, _) in &found {
                assert_eq!(message, "completed", "{kernel} {}", row.name);
            }
            assert_eq!(
                outcome(&again, &row.name),
                found[0],
                "{kernel} {}",
                row.name
            );
            println!(
                "{}",
                spread_of(kernel, &row, &found.map(|(_, samples)| samples))
            );
        }
    }
}

/// A row of the table in docs/tools.md.
fn spread_of(kernel: &str, row: &Workload, seeds: &[Vec<f64>]) -> String {
    let medians: Vec<f64> = seeds
        .iter()
        .filter_map(|samples| stats::median_without_first(samples))
        .collect();
    let median = stats::median(&medians).unwrap();
    let ends = stats::spread(&medians).unwrap();
    let percent = if median == 0.0 {
        0.0
    } else {
        100.0 * (ends.max - ends.min) / median
    };
    let chaotic = if row.steadiness == Steadiness::Chaotic {
        "chaotic"
    } else {
        "steady"
    };
    format!(
        "| {} | {kernel} | {median:.4} | {percent:.2} | {} | {chaotic} |",
        row.name, row.metric.margin_percent
    )
}

#[test]
fn partly_killed_tool_is_out_of_memory() {
    if is_left_to_full("another image") {
        return;
    }
    for kernel in kernels() {
        let runs = run(kernel, &["hungry"], &[1]);
        assert_eq!(
            outcome(&runs, "hungry").0,
            FailureReason::OutOfMemory.to_string(),
            "{kernel}"
        );
    }
}

#[test]
fn broken_tools_are_named_and_others_stored() {
    let runs = run("deb:6.12", &["wrong", "no-package", "hackbench"], &[1]);
    let message = |row: &str| outcome(&runs, row).0;
    assert_eq!(message("hackbench"), "completed");
    assert_eq!(
        message("wrong-absent"),
        "not supported: /usr/bin/nonesuch is not in the guest image"
    );
    let option = message("wrong-option");
    assert!(
        option.starts_with("workload failed: /usr/bin/hackbench: exit status 1"),
        "{option}"
    );
    let output = message("wrong-output");
    assert!(
        output.starts_with("workload failed: run 1: unknown output: line 1, `Running in process"),
        "{output}"
    );
    let memory = message("wrong-memory");
    assert!(
        memory.starts_with("not supported: its files have") && memory.contains("guest of 64 MiB"),
        "{memory}"
    );
    let time = message("wrong-time");
    assert!(
        time.starts_with("workload failed: /usr/bin/cyclictest: no end within 1 s of the guest"),
        "{time}"
    );
    let package = message("no-package");
    assert!(
        package.contains("no package marvin-nonesuch in Debian's bookworm"),
        "{package}"
    );
}
