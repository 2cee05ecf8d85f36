//! On which processors jobs run outside of a guest: on the last ones that the agent may use, as
//! many as the job has tasks; workloads of several processes use all.
#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::io::Write;
use std::process::{Command, Stdio};

use wire::{Clock, Frame, Job, OWN_COST, Perturbation, Task};

/// Runs a workload and returns what the agent sent of a name.
fn sent(workload: &str, tasks: u32, all_processors: bool, wanted: &str) -> String {
    let task = Task::Workload {
        name: workload.to_owned(),
        operations: 100,
        warm_up: 0,
        iterations: 2,
        tasks,
        all_processors,
        probes: Vec::new(),
        monitors: None,
        sampling: None,
    };
    let job = Job {
        id: 7,
        clock: Clock::Monotonic,
        perturbation: Perturbation::default(),
        task,
    };
    let mut agent = Command::new(env!("CARGO_BIN_EXE_marvin-agent"));
    let mut child = agent
        .arg("job")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(&job.encode().unwrap())
        .unwrap();
    let stream = wire::decode(&child.wait_with_output().unwrap().stdout, 7).unwrap();
    let file = |frame: &Frame| match frame {
        Frame::File { name, bytes } if name == wanted => {
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
        _ => None,
    };
    stream.frames.iter().find_map(file).unwrap()
}

fn allowed(text: &str) -> String {
    let list = text
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    list.unwrap().trim().to_owned()
}

#[test]
fn jobs_keep_to_their_processors() {
    let here = allowed(&std::fs::read_to_string("/proc/self/status").unwrap());
    let last = here.rsplit([',', '-']).next().unwrap();
    let of =
        |tasks, all_processors| allowed(&sent("getppid", tasks, all_processors, "load before"));
    assert_eq!(of(1, false), last);
    assert_eq!(of(1, true), here);
    // Two tasks get two; a host with one has none to give, and the workload says so.
    assert_eq!(of(2, false) == last, here == last);
}

#[test]
fn agent_takes_little_beside_its_workload() {
    let said = sent("getppid", 1, false, OWN_COST);
    let numbers: Vec<u64> = said
        .split_whitespace()
        .map(|number| number.parse().unwrap())
        .collect();
    assert!(
        numbers.len() == 2 && numbers[1] > 0 && numbers[0] < 1_000_000_000,
        "{said}"
    );
}
