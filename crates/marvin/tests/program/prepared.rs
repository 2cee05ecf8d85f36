//! This host set for measuring, with make-believe knobs in a mount namespace of its own: a killed Marvin's settings are set
//! back by the next one.

use std::process::Command;

use crate::fresh::fresh;
use crate::output_of;

/// Puts knobs over this host's, kills Marvin while it measures, and has the next one measure.
const SCRIPT: &str = r#"
set -e
cpu=/sys/devices/system/cpu
mount -t tmpfs none $cpu/cpufreq
if [ -d $cpu/intel_pstate ]; then mount -t tmpfs none $cpu/intel_pstate; fi
mkdir $cpu/cpufreq/policy0
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
echo "killed: $(cat $governor) $(cat $cpu/cpufreq/boost), undo file: $(ls "$MARVIN_HOME/host")"
"$1" run running: --on local --workload getppid -q >/dev/null
echo "after the next: $(cat $governor) $(cat $cpu/cpufreq/boost), undo file: $(ls "$MARVIN_HOME/host")"
"#;

#[test]
fn killed_marvin_is_undone_by_the_next() {
    let own = ["--user", "--map-root-user", "--mount"];
    if !Command::new("unshare").args(own).args(["mount", "-t", "tmpfs", "none", "/mnt"]).status().unwrap().success() {
        println!("skipped: this host allows no mount namespace");
        return;
    }
    let home = fresh("prepared-home");
    let mut script = Command::new("unshare");
    script.args(own).args(["sh", "-c", SCRIPT, "sh", env!("CARGO_BIN_EXE_marvin")]).env("MARVIN_HOME", &home);
    let output = script.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    insta::assert_snapshot!(said, @r"
    killed: performance 0, undo file: undo
    after the next: powersave 1, undo file: 
    ");
    let runs = output_of(&home, &["runs"]);
    let run = runs.split_whitespace().find(|word| word.starts_with("run_")).unwrap();
    let shown = output_of(&home, &["show", run]);
    let knobs: Vec<&str> = shown.lines().map(str::trim).filter(|line| line.starts_with("knob ")).collect();
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let has = |text: &str| knobs.iter().any(|line| words(line).starts_with(text));
    assert!(has("knob governor powersave -> performance") && has("knob boost 1 -> 0"), "{shown}");
}
