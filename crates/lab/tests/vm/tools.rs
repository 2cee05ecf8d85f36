//! External tools in real guests: two cheap ones, twice, and what becomes of those that cannot be run.

use std::sync::LazyLock;

use lab::{Dumps, Plan, Reuse, Tools};
use model::{Outcome, Run};

use crate::{build, kernels, lab, samples};

/// A tool that goes wrong in each way.
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
about = "a package that apt does not have"
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

/// The tools of the lab that the stories share.
pub(crate) static TOOLS: LazyLock<Tools> = LazyLock::new(|| {
    let manifests = [("wrong.toml", WRONG), ("absent.toml", ABSENT)];
    Tools::read(&manifests.map(|(file, text)| (file.to_owned(), text.to_owned()))).unwrap()
});

/// Runs the workloads of these words on a kernel.
fn run(kernel: &str, words: &[&str]) -> Vec<Run> {
    let workloads: Vec<_> = words.iter().flat_map(|word| TOOLS.select(word)).collect();
    let build = build(kernel);
    lab().prepare(&workloads, &|_| {}).unwrap();
    let (seeds, reuse, dumps) = (vec![1], Reuse::Nothing, Dumps::Drop);
    let plan = Plan { sides: vec![&build], suite: TOOLS.suite(), workloads, seeds, machines: 2, reuse, dumps };
    lab().carry_out(&plan, &|_| {}).unwrap().remove(0)
}

/// What a row became.
fn outcome(runs: &[Run], row: &str) -> (String, Vec<f64>) {
    let result = runs.iter().flat_map(|run| &run.results).find(|result| result.workload == row).unwrap();
    let said = match &result.outcome {
        Outcome::Completed => {
            samples(result);
            "completed".to_owned()
        }
        Outcome::Unsupported(why) => format!("not supported: {why}"),
        Outcome::Failed(failure) => failure.reason.to_string(),
    };
    (said, result.samples.clone())
}

#[test]
fn tools_run_and_say_the_same_twice() {
    for kernel in kernels() {
        let words = ["sysbench-cpu", "hackbench"];
        let first = run(kernel, &words);
        let second = run(kernel, &words);
        for row in ["sysbench-cpu", "sysbench-cpu.latency-max", "hackbench"] {
            let (said, samples) = outcome(&first, row);
            assert_eq!((said.as_str(), samples.len()), ("completed", 4), "{kernel} {row}");
            assert!(samples.iter().all(|sample| *sample > 0.0), "{kernel} {row}: {samples:?}");
            assert_eq!(outcome(&second, row), (said, samples), "{kernel} {row}");
        }
        let run = first.iter().find(|run| run.results.iter().any(|r| r.workload == "hackbench")).unwrap();
        let printed = String::from_utf8(lab().artefact(&run.id, "hackbench.output").unwrap()).unwrap();
        assert!(printed.starts_with("==> 0/stdout <==") && printed.contains("Running in process mode"), "{printed}");
    }
}

#[test]
fn tools_that_cannot_be_run_are_named_and_the_others_kept() {
    let runs = run("deb:6.12", &["wrong", "no-package", "hackbench"]);
    let said = |row: &str| outcome(&runs, row).0;
    assert_eq!(said("hackbench"), "completed");
    assert_eq!(said("wrong-absent"), "not supported: /usr/bin/nonesuch is not in the guest image");
    let option = said("wrong-option");
    assert!(option.starts_with("workload failed: /usr/bin/hackbench: exit status 1"), "{option}");
    let output = said("wrong-output");
    assert!(output.starts_with("workload failed: run 1: unknown output: line 1, `Running in process"), "{output}");
    let time = said("wrong-time");
    assert!(time.starts_with("workload failed: /usr/bin/cyclictest: no end within 1 s of the guest"), "{time}");
    let package = said("no-package");
    assert!(package.contains("Unable to locate package marvin-nonesuch"), "{package}");
}
