//! Machines that measure time: a virtual machine with two processors, and this host.

use std::path::Path;
use std::sync::Arc;

use lab::Wanted;
use lab::{Dumps, Event, Lab, LabError, LabOptions, Plan, Reuse, Sampled, Tools};
use machine::{Limits, VmShape};
use model::{
    Build, DISKS, Environment, Fault, LAB_COST, MICRO, Outcome, SCALE, SampledProfile, Share,
    Workload, WorkloadResult,
};

use crate::failing::{misbehaving, outcomes};
use crate::fresh::fresh;
use crate::{build, declared, full, measure, measured_run, same_build};

const SHAPE: VmShape = VmShape {
    cpus: 2,
    memory_mib: 512,
};

fn open(home: &Path, wanted: Wanted) -> Lab {
    let limits = Limits {
        job_s: 60,
        console_bytes: 1 << 20,
        ..Limits::default()
    };
    Lab::open(
        home,
        LabOptions {
            wanted,
            limits,
            ..LabOptions::default()
        },
    )
    .unwrap()
}

fn workloads(names: &[&str]) -> Vec<Arc<Workload>> {
    names
        .iter()
        .map(|name| Arc::clone(declared(name)))
        .collect()
}

#[test]
fn virtual_machine_measures_time_with_two_processors() {
    let home = fresh("two-processors-home");
    let lab = open(&home, Wanted::Vm(SHAPE));
    assert!(
        lab.machine().summary.contains("2 processors"),
        "{}",
        lab.machine().summary
    );
    let build = same_build(&lab, &build("deb:6.12"));
    let run = measured_run(
        &lab,
        &build,
        &workloads(&["getppid", "pipe-pingpong", "fault-anon"]),
        &|_| {},
    )
    .unwrap();
    for result in &run.results {
        assert_eq!(result.outcome, Outcome::Completed, "{}", result.workload);
        // From a nanosecond to ten milliseconds for each operation.
        assert!(
            result.samples.iter().all(|ns| (1.0..1e7).contains(ns)),
            "{result:?}"
        );
    }
    let message = |name: &str| of_name(&run.environment, name);
    assert_eq!(message("processors"), "2");
    // What the kernel says of QEMU's threads: on a host with two processors each has one.
    let allowed = std::thread::available_parallelism().unwrap().get();
    let each = message("host processors");
    let kept_off = message("others kept off");
    println!(
        "host processors {each}; others kept off {kept_off}; lab cost {}",
        message(LAB_COST)
    );
    assert_eq!(each.starts_with("any ("), allowed < 2, "{each}");
    assert!(allowed < 2 || each.split(", ").count() == 2, "{each}");
    assert_eq!(kept_off, "no (no cpuset of ours)");
    let console =
        String::from_utf8_lossy(&lab.artifact(&run.id, "boot.console").unwrap()).into_owned();
    assert!(
        !console.is_empty(),
        "what the guest printed until it waited for jobs"
    );
    let larger = VmShape {
        memory_mib: SHAPE.memory_mib + 128,
        ..SHAPE
    };
    drop(lab);
    let other = open(&home, Wanted::Vm(larger));
    assert!(
        other.machine().summary.contains("640 MiB") && other.machine().id != run.machine,
        "{:?}",
        other.machine()
    );
}

/// Returns the value of a name; fails without one.
fn of_name(environment: &Environment, name: &str) -> String {
    let pair = environment.iter().find(|(known, _)| known == name);
    pair.unwrap_or_else(|| panic!("{name}: {environment:?}"))
        .1
        .clone()
}

/// A short version of each workload that scales, with so many tasks.
fn in_tasks(tasks: u32) -> Vec<Arc<Workload>> {
    SCALE
        .workloads
        .iter()
        .map(|workload: &Arc<Workload>| {
            let all = workload.with_tasks(tasks).unwrap();
            Arc::new(Workload {
                operations: all.operations / 4,
                iterations: 3,
                warm_up: 1,
                ..all
            })
        })
        .collect()
}

#[test]
fn workloads_scale_over_two_processors() {
    if !crate::full() {
        println!(
            "skipped, make test-full runs it: measures each workload with one task and with two"
        );
        return;
    }
    let home = fresh("scaling-home");
    let lab = open(&home, Wanted::Vm(SHAPE));
    let build = same_build(&lab, &build("deb:6.12"));
    let both = [in_tasks(1), in_tasks(2)].concat();
    let run = measured_run(&lab, &build, &both, &|_| {}).unwrap();
    // Whether two do more than one depends on the host, which does other work meanwhile.
    for result in &run.results {
        assert_eq!(result.outcome, Outcome::Completed, "{}", result.workload);
        println!("{:<16} {:>10.0} ns", result.workload, result.samples[1]);
    }
    assert_eq!(run.results.len(), both.len());
}

#[test]
fn guests_have_a_scratch_disk() {
    let home = fresh("disk-home");
    let lab = open(&home, Wanted::Vm(SHAPE));
    // With its modules, which the same image by its path does not have.
    let build = build("deb:6.12");
    // Every Debian has mke2fs; the full tests need xfsprogs and btrfs-progs as well.
    let workloads: Vec<Arc<Workload>> = DISKS
        .workloads
        .iter()
        .filter(|workload: &&Arc<Workload>| full() || model::group_of(workload) == "ext4")
        .map(|workload: &Arc<Workload>| {
            Arc::new(Workload {
                operations: workload.operations / 4,
                iterations: 3,
                warm_up: 1,
                ..(**workload).clone()
            })
        })
        .collect();
    let plan = Plan {
        sides: vec![&build],
        suite: &DISKS,
        workloads: workloads.clone(),
        replicates: vec![1],
        machines: 1,
        reuse: Reuse::Nothing,
        dumps: Dumps::Drop,
        sampled: Sampled::No,
    };
    let runs = lab.execute(&plan, &|_| {}).unwrap().remove(0);
    let results: Vec<&WorkloadResult> = runs.iter().flat_map(|run| &run.results).collect();
    for result in &results {
        assert_eq!(result.outcome, Outcome::Completed, "{}", result.workload);
        println!("{:<14} {:>10.0} ns", result.workload, result.samples[1]);
    }
    assert_eq!(results.len(), workloads.len());
    // Each opened machine has a folder of its own, and each guest one in it.
    let opened: Vec<_> = std::fs::read_dir(home.join("scratch")).unwrap().collect();
    assert!(!opened.is_empty());
    for machine in opened {
        let folders = std::fs::read_dir(machine.unwrap().path())
            .into_iter()
            .flatten();
        let disks = folders
            .flatten()
            .filter(|folder| folder.path().join("disk").exists());
        assert_eq!(disks.count(), 0, "the disks are gone with their guests");
    }
}

#[test]
fn dead_guest_boots_again_for_the_next_job() {
    let home = fresh("dead-guest-home");
    let lab = open(&home, Wanted::Vm(SHAPE));
    let build = same_build(&lab, &build("deb:6.12"));
    let expected = [
        ("misbehave-panic", "panicked (workload)"),
        (
            "misbehave-exit",
            "agent died: the workload left without a word (workload)",
        ),
        ("getppid", "completed"),
    ];
    let results = measure(&lab, &build, &expected.map(|(name, _)| misbehaving(name)));
    let found = outcomes(&results);
    assert_eq!(
        found,
        expected.map(|(_, outcome)| outcome.to_owned()),
        "{results:#?}"
    );
}

#[test]
fn this_host_measures_the_kernel_it_runs() {
    let home = fresh("local-home");
    let lab = open(&home, Wanted::Local);
    let running = lab.build(&"running:".parse().unwrap(), &|_| {}).unwrap();
    let results = measure(&lab, &running, &workloads(&["getppid", "fork-exit"]));
    assert_eq!(outcomes(&results), ["completed", "completed"]);
    let again = measure(&lab, &running, &workloads(&["getppid"]));
    assert_eq!(
        operations_of(&again),
        operations_of(&results),
        "calibrated once"
    );
    assert!(
        operations_of(&results) > 20_000,
        "an iteration takes longer than on the exact machine: {results:?}"
    );
    let needy = measure(&lab, &running, &workloads(&["reclaim-file"]));
    let Outcome::Unsupported(why) = &needy[0].outcome else {
        panic!("{:?}", needy[0].outcome)
    };
    assert!(why.contains("exact or vm"), "{why}");
}

fn operations_of(results: &[WorkloadResult]) -> u64 {
    results[0].operations
}

const INSTALLED: &str = r#"
name = "shell"
about = "what every host has, under another path than the manifest's, and what none has"
packages = ["dash"]

[[workload]]
name = "shell-time"
stresses = "nothing"
command = ["/opt/nonesuch/sh", "-c", "echo Time: 0.5; echo 7 >/run/own; (setsid sleep 1000 &)"]
runs = 3
[[workload.metric]]
name = "time"
unit = "s"
better = "lower"
key = "Time"

[[workload]]
name = "shell-absent"
stresses = "nothing"
command = ["/opt/nonesuch/marvin-nonesuch"]
[[workload.metric]]
name = "time"
unit = "s"
better = "lower"
key = "Time"
"#;

#[test]
fn installed_tools_run_on_this_host() {
    let home = fresh("local-tools-home");
    let tools = Tools::read(&[("shell.toml".to_owned(), INSTALLED.to_owned())]).unwrap();
    let options = LabOptions {
        wanted: Wanted::Local,
        tools: tools.clone(),
        ..LabOptions::default()
    };
    let lab = Lab::open(&home, options).unwrap();
    let running = lab.build(&"running:".parse().unwrap(), &|_| {}).unwrap();
    let rows = tools.select("shell");
    // No package is fetched.
    lab.prepare(&rows, &|_| {}).unwrap();
    let run = measured_run(&lab, &running, &rows[..1], &|_| {}).unwrap();
    if let Outcome::Unsupported(why) = &run.results[0].outcome
        && why.contains("mount namespace")
    {
        println!("skipped: {why}");
        return;
    }
    assert_eq!(
        (&run.results[0].outcome, &*run.results[0].samples),
        (&Outcome::Completed, &[0.5; 3][..])
    );
    assert!(
        !Path::new("/run/own").exists(),
        "the tool has a /run of its own"
    );
    let shell = of_name(&run.environment, "tool sh");
    println!(
        "tool sh {shell}; lab cost {}",
        of_name(&run.environment, LAB_COST)
    );
    assert!(
        shell.contains("/bin/sh, ") && shell.contains("crc32 "),
        "{shell}"
    );
    let absent = measure(&lab, &running, &rows[1..]);
    let Outcome::Unsupported(why) = &absent[0].outcome else {
        panic!("{:?}", absent[0].outcome)
    };
    insta::assert_snapshot!(why, @"not installed: /opt/nonesuch/marvin-nonesuch; apt-get install dash");
    assert_ne!(
        run.machine,
        lab.machine().id,
        "another manifest is another machine"
    );
    assert!(lab.machines(&rows).unwrap()[0].is_kin(lab.machine()));
}

#[test]
fn other_kernels_are_refused_with_a_hint() {
    let home = fresh("refusing-home");
    let refused = |wanted, name: &str| {
        let lab = open(&home, wanted);
        let error: LabError = lab.check(&name.parse().unwrap()).unwrap_err();
        assert_eq!(error.fault(), Fault::User);
        error.to_string()
    };
    insta::assert_snapshot!(refused(Wanted::Local, "deb:6.1"), @"local cannot measure `deb:6.1`; it measures only the kernel that it runs, whose name is `running:`");
    insta::assert_snapshot!(refused(Wanted::Exact, "running:"), @"exact cannot measure `running:`; it boots builds, and this kernel has no image: measure it with --on local");
}

/// Measures and samples a workload of some builds in some boots; returns the profiles of each side.
fn sample(lab: &Lab, builds: &[&Build], name: &str, boots: u64) -> Vec<Vec<SampledProfile>> {
    let workload = declared(name);
    let plan = Plan {
        sides: builds.to_vec(),
        suite: &MICRO,
        workloads: vec![Arc::clone(workload)],
        replicates: (1..=boots).collect(),
        machines: 1,
        reuse: Reuse::Nothing,
        dumps: Dumps::Drop,
        sampled: Sampled::Yes,
    };
    let refused = std::sync::Mutex::new(None);
    let notify = |event: Event| {
        if let Event::NoProfile { why, .. } = event {
            refused.lock().unwrap().replace(why);
        }
    };
    let runs = lab.execute(&plan, &notify).unwrap();
    let profiles: Vec<Vec<SampledProfile>> = runs
        .iter()
        .map(|runs: &Vec<model::Run>| {
            runs.iter()
                .filter_map(|run| lab.sampled(&run.id, workload).unwrap())
                .collect()
        })
        .collect();
    println!(
        "{name}: sampled {:?}; refused: {:?}",
        profiles.iter().map(Vec::len).collect::<Vec<_>>(),
        refused.lock().unwrap()
    );
    profiles
}

#[test]
fn guest_samples_where_its_kernel_is() {
    let home = fresh("sampling-home");
    let lab = open(&home, Wanted::Vm(SHAPE));
    let build = same_build(&lab, &build("deb:6.12"));
    let sides = sample(&lab, &[&build], "fault-anon", 1);
    let profile = &sides[0][0];
    let of = |part: &dyn Fn(&model::SampledStack) -> bool| -> u64 {
        profile
            .stacks
            .iter()
            .filter(|stack| part(stack))
            .map(|stack| stack.samples)
            .sum()
    };
    let all = profile.samples();
    let faults = of(&|stack| {
        stack
            .functions
            .first()
            .is_some_and(|name| name.contains("asm_exc_page_fault"))
    });
    let nameless = of(&|stack| stack.functions.iter().any(|name| name == "[no symbol]"));
    let other = of(&|stack| matches!(stack.share, Share::Other | Share::Interrupt));
    println!(
        "samples {all}, below page faults {faults}, nameless {nameless}, other {other}, idle {}",
        profile.idle
    );
    let SampledProfile {
        lost,
        throttled,
        unkept,
        ..
    } = profile;
    println!(
        "lost {lost}, throttled {throttled}, unkept {unkept}, stacks {}",
        profile.stacks.len()
    );
    assert!(
        all > 1000 && faults * 2 > all && nameless * 50 < all,
        "{all} {faults} {nameless}"
    );
}

#[test]
fn this_host_samples_its_kernel_if_allowed() {
    let home = fresh("sampling-local-home");
    let lab = open(&home, Wanted::Local);
    let running = lab.build(&"running:".parse().unwrap(), &|_| {}).unwrap();
    // Its process lives on: a child that ends before its first period has no sample.
    for profile in sample(&lab, &[&running], "fault-anon", 1).concat() {
        println!("{} samples", profile.samples());
        assert!(profile.samples() > 100, "{profile:?}");
        assert_eq!(profile.idle, 0, "only processes are sampled");
    }
}
