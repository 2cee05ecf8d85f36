//! A lab that fails: QEMU dies, once or always. Marvin never blames the kernel for it.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use lab::{Dumps, Event, Lab, LabError, LabOptions, Plan, Reuse, Sampled};
use model::{Fault, MICRO, Outcome, Run};

use crate::fresh::fresh;
use crate::{build, declared, folder, measured_run, same_build};

/// A QEMU that prints the version of the real one, and otherwise executes the script.
fn qemu(name: &str, script: &str) -> PathBuf {
    let path = folder(name);
    let text = format!(
        "#!/bin/sh\ncase \"$1\" in --version|-L|-help|-sandbox) exec qemu-system-x86_64 \"$@\";; esac\n{script}\n"
    );
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn run_with(name: &str, script: &str) -> (Result<Vec<Vec<Run>>, LabError>, Vec<String>) {
    let home = fresh(&format!("{name}-home"));
    let lab = Lab::open(
        &home,
        LabOptions {
            qemu: Some(qemu(name, script)),
            ..LabOptions::default()
        },
    )
    .unwrap();
    let build = same_build(&lab, &build("deb:6.12"));
    let plan = Plan {
        sides: vec![&build],
        suite: &MICRO,
        workloads: vec![Arc::clone(declared("getppid"))],
        replicates: vec![1],
        machines: 1,
        reuse: Reuse::Nothing,
        dumps: Dumps::Drop,
        sampled: Sampled::No,
    };
    let retries = Mutex::new(Vec::new());
    let result = lab.execute(&plan, &|event| {
        if let Event::Retrying { error } = event {
            retries.lock().unwrap().push(error);
        }
    });
    (result, retries.into_inner().unwrap())
}

#[test]
fn always_dying_qemu_is_a_lab_failure() {
    // It shows its processor, and dies with a kernel.
    let script = "case \"$*\" in *-kernel*) echo 'cannot set up guest memory' >&2; exit 1;; esac\nexec qemu-system-x86_64 \"$@\"";
    let (result, retries) = run_with("dying-qemu", script);
    let error = result.unwrap_err();
    assert_eq!((retries.len(), error.fault()), (2, Fault::Lab));
    insta::assert_snapshot!(error, @"QEMU exited unexpectedly (exit status 1): cannot set up guest memory (tried 3 times)");
}

/// Runs a job and sends a signal to the first QEMU of the data directory.
fn run_with_signal(name: &str, signal: &str) -> (Result<Vec<Vec<Run>>, LabError>, Vec<String>) {
    let scratch = folder(&format!("{name}-home")).join("scratch");
    let qemu_in = |process: PathBuf| {
        let is_qemu = std::fs::read_to_string(process.join("comm"))
            .is_ok_and(|name| name.starts_with("qemu-system"));
        let works =
            std::fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(&scratch));
        // Not the one that only shows its processor.
        let boots = std::fs::read_to_string(process.join("cmdline"))
            .is_ok_and(|line| line.contains("-kernel"));
        (is_qemu && works && boots).then(|| process.file_name().unwrap().to_owned())
    };
    let signalled = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !signalled.load(std::sync::atomic::Ordering::Relaxed) {
                let processes = std::fs::read_dir("/proc").unwrap().flatten();
                if let Some(id) = processes.map(|entry| entry.path()).find_map(qemu_in) {
                    std::thread::sleep(std::time::Duration::from_millis(300));
                    drop(
                        std::process::Command::new("kill")
                            .arg(signal)
                            .arg(id)
                            .status(),
                    );
                    return;
                }
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
        });
        let ended = run_with(name, "exec qemu-system-x86_64 \"$@\"");
        signalled.store(true, std::sync::atomic::Ordering::Relaxed);
        ended
    })
}

#[test]
fn terminated_qemu_does_not_blame_the_kernel() {
    let (result, retries) = run_with_signal("ended-qemu", "-TERM");
    assert!(
        retries.len() == 1 && retries[0].starts_with("QEMU exited unexpectedly"),
        "{retries:?}"
    );
    assert_eq!(result.unwrap()[0][0].results[0].outcome, Outcome::Completed);
}

#[test]
fn qemu_killed_once_is_restarted() {
    let (result, retries) = run_with_signal("killed-qemu", "-KILL");
    assert_eq!(retries, ["QEMU exited unexpectedly (signal 9)"]);
    assert_eq!(result.unwrap()[0][0].results[0].outcome, Outcome::Completed);
}

#[test]
fn qemu_that_never_starts_is_refused() {
    let path = qemu("refusing-qemu", "echo 'no microvm here' >&2; exit 1");
    let home = fresh("refusing-qemu-home");
    let error = Lab::open(
        &home,
        LabOptions {
            qemu: Some(path),
            ..LabOptions::default()
        },
    )
    .unwrap_err();
    assert_eq!(error.fault(), Fault::Lab);
    assert!(
        error
            .to_string()
            .contains("it does not start the exact machine: no microvm here"),
        "{error}"
    );
}

#[test]
fn qemu_without_plugins_measures_without_counts() {
    // Marvin must follow the help text; with a plugin, this QEMU would fail.
    let script = "case \"$*\" in *-plugin*) echo 'no plugins here' >&2; exit 1;; esac\nexec qemu-system-x86_64 \"$@\"";
    let path = qemu("plain-qemu", script);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(
        &path,
        text.replacen("--version|-L|-help|", "-help) exit 0;; --version|-L|", 1),
    )
    .unwrap();
    let home = fresh("plain-qemu-home");
    let lab = Lab::open(
        &home,
        LabOptions {
            qemu: Some(path),
            ..LabOptions::default()
        },
    )
    .unwrap();
    let build = same_build(&lab, &build("deb:6.12"));
    let workloads = [Arc::clone(declared("getppid"))];
    let message = Mutex::new(Vec::new());
    let run = measured_run(&lab, &build, &workloads, &|event| {
        message.lock().unwrap().push(event);
    })
    .unwrap();
    assert!(lab.profile(&run.id, "getppid").unwrap().is_none());
    let why = message
        .into_inner()
        .unwrap()
        .into_iter()
        .find_map(|event| match event {
            Event::NoProfile { why, .. } => Some(why),
            _ => None,
        });
    assert!(why.unwrap().contains("without plugins"));
    let counted = crate::measure(crate::lab(), &crate::build("deb:6.12"), &workloads);
    assert_eq!(
        crate::samples(&run.results[0]),
        crate::samples(&counted[0]),
        "counting moves no sample"
    );
}
