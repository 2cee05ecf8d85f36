//! What goes wrong with a server while Marvin uses it: kernels that panic, hang or get no network,
//! and at each stage of a measurement a cut connection and a killed Marvin. A boot of a server
//! takes a minute or more, so only `make test-full` has these stories.

use std::process::Child;
use std::time::{Duration, Instant};

use super::{LONG, Lab, PATIENCE};
use crate::is_left_to_full;

/// How long a connection is cut: until ssh has noticed, which takes it 15 s.
const CUT: Duration = Duration::from_secs(30);

/// The stages of a measurement on a server, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Install,
    Boot,
    Prepare,
    Job,
    Return,
}

impl Stage {
    const ALL: [Self; 5] = [
        Self::Install,
        Self::Boot,
        Self::Prepare,
        Self::Job,
        Self::Return,
    ];

    /// Returns a command that succeeds on a server in this stage, or after it.
    fn sign(self) -> &'static str {
        match self {
            Self::Install => "ls -d /var/lib/marvin/kernels/*",
            Self::Boot => {
                "[ $(cat /sys/kernel/kexec_loaded) = 1 ] || grep -q marvin.build= /proc/cmdline"
            }
            Self::Prepare => "grep -q marvin.build= /proc/cmdline && ls /var/lib/marvin/undo",
            Self::Job | Self::Return => "pgrep -f '^/var/lib/marvin/agent-[0-9a-f]* job'",
        }
    }
}

/// Waits until a measurement is in a stage; false if it has ended before.
fn wait_for_stage(lab: &Lab, stage: Stage, child: &mut Child) -> bool {
    let begun = Instant::now();
    let mut wait = |what: &mut dyn FnMut() -> bool| {
        while !what() {
            if child.try_wait().unwrap().is_some() {
                return false;
            }
            assert!(
                begun.elapsed() < PATIENCE,
                "{stage:?}: {}",
                lab.server.console()
            );
            std::thread::sleep(Duration::from_millis(100));
        }
        println!("{stage:?} after {:.0} s", begun.elapsed().as_secs_f64());
        true
    };
    let is_there = wait(&mut || lab.server.run(stage.sign()).is_ok());
    if stage != Stage::Return {
        return is_there;
    }
    // After the last job it goes down, which a boot by kexec says in other words.
    let restarts = || {
        lab.server
            .console()
            .matches("reboot: Restarting system")
            .count()
    };
    let before = restarts();
    is_there && wait(&mut || restarts() > before)
}

/// Has the server boot builds by kexec with more words on their command line. A panic takes two
/// boots on a busy host, so it gets as long as kernels get by default; hangs are waited for whole.
fn boot_with(lab: &Lab, option: &str) {
    let script = "#!/bin/sh\nset -e\n\
        kexec -a -l $MARVIN_KERNEL --initrd=$MARVIN_INITRD --command-line=\"$MARVIN_COMMAND_LINE $*\"\n\
        systemd-run --quiet --on-active=1 systemctl kexec\n";
    let place = "/usr/local/sbin/boot-once";
    lab.server
        .run(&format!(
            "cat >{place} <<'EOF'\n{script}EOF\nchmod 755 {place}"
        ))
        .unwrap();
    let deadline = if option.starts_with("init=") {
        ""
    } else {
        "boot_deadline = \"4m\"\n"
    };
    lab.settings(&format!(
        "{deadline}boot = \"command\"\nboot_command = [\"/usr/local/sbin/boot-once\", \"{option}\"]"
    ));
}

/// Runs a measurement of a kernel that does not come up, and returns what it printed.
fn run_of_bad_kernel(lab: &Lab) -> String {
    let begun = Instant::now();
    let (code, printed) = lab.end(lab.start());
    println!(
        "{:.0} s: {printed}\n{}",
        begun.elapsed().as_secs_f64(),
        lab.server.console()
    );
    assert_eq!(code, Some(4), "{printed}");
    lab.assert_own_kernel();
    printed
}

#[test]
fn kernel_that_panics_at_boot_fails() {
    if is_left_to_full("each boot of a server takes minutes") {
        return;
    }
    let lab = Lab::new("server-boot-panic-home", None);
    boot_with(&lab, "init=/bin/false");
    let printed = run_of_bad_kernel(&lab);
    assert!(printed.contains("panicked"), "{printed}");
    // Its console is kept.
    let runs = lab.marvin(&["runs"]);
    let run = runs
        .split_whitespace()
        .find(|word| word.starts_with("run_"))
        .unwrap();
    let console = lab.marvin(&["show", run, "--artifact", "boot.console"]);
    assert!(console.contains("Attempted to kill init"), "{console}");
}

#[test]
fn kernel_that_gets_no_network_hangs() {
    if is_left_to_full("each boot of a server takes minutes") {
        return;
    }
    let lab = Lab::new("server-no-network-home", None);
    boot_with(&lab, "systemd.mask=ssh.service");
    let printed = run_of_bad_kernel(&lab);
    assert!(printed.contains("hung"), "{printed}");
}

#[test]
fn kernel_that_stops_at_boot_is_ended() {
    if is_left_to_full("each boot of a server takes minutes") {
        return;
    }
    let lab = Lab::new("server-boot-hang-home", None);
    boot_with(&lab, "site=1");
    let begun = Instant::now();
    let child = lab.start();
    while !lab.server.console().contains(" site=1") {
        assert!(begun.elapsed() < PATIENCE, "{}", lab.server.console());
        std::thread::sleep(Duration::from_millis(50));
    }
    lab.server.freeze().unwrap();
    let (code, printed) = lab.end(child);
    println!("{:.0} s: {printed}", begun.elapsed().as_secs_f64());
    assert_eq!(code, Some(4), "{printed}");
    assert!(printed.contains("hung"), "{printed}");
    lab.assert_own_kernel();
}

#[test]
fn connection_cut_at_each_stage_is_mended() {
    if is_left_to_full("each boot of a server takes minutes") {
        return;
    }
    let lab = Lab::new("server-cuts-home", None);
    let mut child = lab.start_with(LONG);
    for stage in Stage::ALL {
        assert!(
            wait_for_stage(&lab, stage, &mut child),
            "{stage:?}: {}",
            lab.end(child).1
        );
        lab.server.unplug_network().unwrap();
        std::thread::sleep(CUT);
        lab.server.plug_network().unwrap();
    }
    let (code, printed) = lab.end(child);
    println!("{printed}");
    assert_eq!(code, Some(0), "{printed}");
    lab.assert_own_kernel();
}

#[test]
fn marvin_killed_at_each_stage_goes_on() {
    if is_left_to_full("each boot of a server takes minutes") {
        return;
    }
    let lab = Lab::new("server-kills-home", None);
    let undo = "/var/lib/marvin/undo";
    for stage in Stage::ALL {
        let boot = lab.server.boot_id().unwrap();
        let mut child = lab.start_with(LONG);
        // The next Marvin has the server run its own kernel first.
        lab.wait_for("! grep -q marvin.build= /proc/cmdline");
        assert!(
            wait_for_stage(&lab, stage, &mut child),
            "{stage:?}: {}",
            lab.end(child).1
        );
        child.kill().unwrap();
        child.wait().unwrap();
        match stage {
            Stage::Job => {
                // It says what the knobs were in this boot: no other one needs them set back.
                let text = lab.server.run(&format!("cat {undo}")).unwrap();
                assert!(text.contains(&lab.server.boot_id().unwrap()), "{text}");
            }
            // A server that restarts does not answer.
            Stage::Boot => lab.server.wait_for_reboot(&boot, PATIENCE).unwrap(),
            Stage::Return => lab.server.wait_for_ssh(PATIENCE).unwrap(),
            Stage::Install | Stage::Prepare => {}
        }
    }
    let (code, printed) = lab.end(lab.start_with(LONG));
    println!("{printed}");
    assert_eq!(code, Some(0), "{printed}");
    lab.assert_own_kernel();
    assert!(
        lab.server.run(&format!("ls {undo}")).is_err(),
        "the reboot has set it back"
    );
    let listed = lab.marvin(&["machines"]);
    assert!(listed.contains("testbox    ssh       ready"), "{listed}");
}
