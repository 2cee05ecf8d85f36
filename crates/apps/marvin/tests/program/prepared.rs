//! This host set for measuring, with make-believe knobs in a mount namespace of its own: a killed
//! Marvin's settings are set back by the next one, which has another data directory.

use std::os::unix::fs::{MetadataExt, chown};
use std::process::Command;

use crate::fresh::fresh;
use crate::{format_output, output_of};

/// Puts knobs over this host's, kills Marvin while it measures, and has the next one measure.
const SCRIPT: &str = r#"
set -e
cpu=/sys/devices/system/cpu
mount -t tmpfs none $cpu/cpufreq
if [ -d $cpu/intel_pstate ]; then mount -t tmpfs none $cpu/intel_pstate; fi
mkdir $cpu/cpufreq/policy0
mount -t tmpfs none /run
governor=$cpu/cpufreq/policy0/scaling_governor
echo powersave >$governor
echo 1 >$cpu/cpufreq/boost
"$1" run running: --on local --suite micro -q >/dev/null 2>&1 &
marvin=$!
tries=0
while [ "$(cat $governor)" != performance ]; do
    tries=$((tries + 1)); [ $tries -lt 600 ] || { echo "never prepared"; exit 1; }
    sleep 0.05
done
kill -9 $marvin
wait $marvin 2>/dev/null || true
echo "killed: $(cat $governor) $(cat $cpu/cpufreq/boost), undo file: $(ls /run/marvin)"
"$1" --home "$2" run running: --on local --workload getppid -q >/dev/null
echo "after the next: $(cat $governor) $(cat $cpu/cpufreq/boost), undo file: $(ls /run/marvin)"
"#;

#[test]
fn killed_marvin_is_undone_by_the_next() {
    let own = ["--user", "--map-root-user", "--mount"];
    if !Command::new("unshare")
        .args(own)
        .args(["mount", "-t", "tmpfs", "none", "/mnt"])
        .status()
        .unwrap()
        .success()
    {
        println!("skipped: this host allows no mount namespace");
        return;
    }
    let killed = fresh("killed-home");
    let home = fresh("prepared-home");
    let mut script = Command::new("unshare");
    script
        .args(own)
        .args(["sh", "-c", SCRIPT, "sh", env!("CARGO_BIN_EXE_marvin")]);
    script.arg(&home).env("MARVIN_HOME", &killed);
    let output = script.output().unwrap();
    let answer = String::from_utf8_lossy(&output.stdout).into_owned();
    insta::assert_snapshot!(answer, @r"
    killed: performance 0, undo file: undo
    after the next: powersave 1, undo file: 
    ");
    let shown = show_first(&output_of(&home, &["runs"]), &|id| {
        output_of(&home, &["show", id])
    });
    let knobs: Vec<&str> = shown
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("knob "))
        .collect();
    let squeeze = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let has = |text: &str| knobs.iter().any(|line| squeeze(line).starts_with(text));
    // What the killed one had set would be `performance` before.
    assert!(
        has("knob governor powersave -> performance") && has("knob boost 1 -> 0"),
        "{shown}"
    );
}

#[test]
fn user_without_privileges_measures_this_host() {
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        println!(
            "skipped: only root becomes another user; the other tests run without privileges then"
        );
        return;
    }
    // Where another user may write.
    let folder = tempfile::Builder::new()
        .prefix("marvin-user")
        .tempdir_in("/tmp")
        .unwrap();
    let home = folder.path().join("home");
    let program = folder.path().join("marvin");
    std::fs::create_dir(&home).unwrap();
    std::fs::copy(env!("CARGO_BIN_EXE_marvin"), &program).unwrap();
    for path in [folder.path(), &home] {
        chown(path, Some(65534), Some(65534)).unwrap();
    }
    let run = |arguments: &[&str]| {
        let mut user = Command::new("setpriv");
        user.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
            .arg(&program)
            .args(arguments);
        let user = user
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("MARVIN_HOME", &home);
        format_output(&user.output().unwrap(), &home)
    };
    let output = run(&[
        "run",
        "running:",
        "--on",
        "local",
        "--workload",
        "getppid,fork-exit",
    ]);
    assert!(
        output.starts_with("exit 0")
            && output.contains("stays as it is for want of privileges: caches"),
        "{output}"
    );
    assert!(
        !std::path::Path::new("/run/marvin/undo").exists(),
        "only root's undo file is the host's"
    );
    let shown = show_first(&run(&["runs"]), &|id| run(&["show", id]));
    assert!(
        shown.contains("kept (refused: Permission denied"),
        "{shown}"
    );
}

fn show_first(runs: &str, show: &dyn Fn(&str) -> String) -> String {
    show(
        runs.split_whitespace()
            .find(|word| word.starts_with("run_"))
            .unwrap(),
    )
}
