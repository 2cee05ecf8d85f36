//! What Marvin adds to a boot of a server, beside a boot by hand on the same server: a figure,
//! printed by `make test-full`.

use std::time::Instant;

use super::{Lab, PATIENCE};
use crate::is_left_to_full;

/// Boots of each kind.
const BOOTS: usize = 3;

#[test]
fn overhead_beyond_a_boot_is_printed() {
    if is_left_to_full("each boot of a server takes minutes") {
        return;
    }
    let lab = Lab::new("server-overhead-home", None);
    // The server's own kernel is of the same package as deb:6.1.
    let by_hand = || {
        let before = lab.server.boot_id().unwrap();
        let begun = Instant::now();
        let load = "kexec -a -l /vmlinuz --initrd=/initrd.img --reuse-cmdline && sync";
        lab.server
            .run(&format!(
                "{load}; (sleep 1; systemctl kexec) >/dev/null 2>&1 &"
            ))
            .unwrap();
        lab.server.wait_for_reboot(&before, PATIENCE).unwrap();
        begun.elapsed().as_secs_f64()
    };
    // A boot of a run is from the installed kernel to the first job, and the first one installs it.
    let by_marvin = || {
        let arguments = [
            "run",
            "deb:6.1",
            "--on",
            "testbox",
            "--boots",
            "1",
            "--workload",
            "getppid",
            "--force",
        ];
        let printed = lab.marvin(&arguments);
        let run = printed
            .split_whitespace()
            .find(|word| word.starts_with("run_"))
            .expect("a run")
            .to_owned();
        let times = lab.marvin(&["show", &run, "--artifact", "times"]);
        let boot = times
            .lines()
            .find_map(|line| line.strip_prefix("boot\t"))
            .expect("the boot");
        boot.split('\t').next().unwrap().parse::<f64>().unwrap()
    };
    let first = by_marvin();
    let (mut hand, mut marvin): (Vec<f64>, Vec<f64>) =
        (0..BOOTS).map(|_| (by_hand(), by_marvin())).unzip();
    let median = |seconds: &mut Vec<f64>| {
        seconds.sort_by(f64::total_cmp);
        seconds[seconds.len() / 2]
    };
    let hand = median(&mut hand);
    let marvin = median(&mut marvin);
    println!(
        "a server's boot by kexec until ssh answers: by hand {hand:.0} s, by Marvin until the first job {marvin:.0} s"
    );
    println!(
        "Marvin adds {:.0} s (goal: 15); the first boot, which installs, took {first:.0} s",
        marvin - hand
    );
    assert!(hand > 1.0 && marvin > 1.0, "a boot takes time");
    lab.assert_own_kernel();
}
