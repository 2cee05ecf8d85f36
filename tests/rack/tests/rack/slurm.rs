//! A Slurm of two nodes: what a killed node leaves.

use std::time::{Duration, Instant};

use rack::Slurm;

#[test]
fn killed_node_takes_its_job_along() {
    let Some(mut slurm) = Slurm::start(&["bm1", "bm2"]).unwrap() else {
        println!("not tested: Slurm is not installed: scripts/needs.sh test");
        return;
    };
    let state = |slurm: &Slurm| {
        slurm
            .run("squeue", &["-h", "--states=all", "-o", "%T %N"])
            .unwrap()
    };
    // Of this test alone, in the list of processes.
    let seconds = format!("{}", 1_000_000 + std::process::id());
    slurm
        .run(
            "sbatch",
            &[
                "--nodelist=bm1",
                "--chdir=/",
                "--output=/dev/null",
                "--wrap",
                &format!("exec sleep {seconds}"),
            ],
        )
        .unwrap();
    let wait_for = |what: &str, is_so: &dyn Fn() -> bool| {
        let begun = Instant::now();
        while !is_so() {
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "{what}: {}",
                state(&slurm)
            );
            std::thread::sleep(Duration::from_millis(200));
        }
    };
    let sleeps = || {
        let found = std::process::Command::new("pgrep")
            .args(["-fx", &format!("sleep {seconds}")])
            .output()
            .unwrap();
        found.status.success()
    };
    wait_for("the job runs", &sleeps);
    slurm.kill_node("bm1").unwrap();
    assert!(!sleeps());
    assert!(
        slurm
            .run("sinfo", &["-h", "-N", "-o", "%N"])
            .unwrap()
            .contains("bm2")
    );
}
