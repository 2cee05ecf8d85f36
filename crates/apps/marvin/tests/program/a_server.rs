//! A server of the rack boots a real kernel once, measures and returns, with power control,
//! recorded console and reservations. It takes longest, and its name has it begin first.

use std::fs;

use crate::server::Lab;
use crate::{is_left_to_full, marvin};

#[test]
fn server_boots_a_kernel_once_and_returns() {
    if is_left_to_full("each boot of a server takes minutes") {
        return;
    }
    let lab = Lab::new("server-home", None);
    let listed = lab.marvin(&["machines"]);
    assert!(
        listed.contains("testbox    ssh       ready       6.1."),
        "{listed}"
    );
    let checked = lab.marvin(&["machines", "check", "testbox"]);
    assert!(
        checked.starts_with("exit 0") && checked.contains("testbox is fit"),
        "{checked}"
    );
    assert_eq!(
        lab.marvin(&["power", "testbox"]),
        "exit 0\n-- out\ntestbox: on\n-- err\n"
    );
    let own = lab.server.run("uname -r").unwrap();
    let record = || {
        marvin(&lab.home)
            .args(["console", "--record"])
            .stderr(fs::File::create("/dev/null").unwrap())
            .spawn()
            .unwrap()
    };
    let mut recorder = record();
    let recorded = || lab.marvin(&["console", "testbox", "--since", "1h"]);
    lab.wait(&|| !recorded().contains("no process records"));

    let (code, printed) = lab.end(lab.start());
    assert_eq!(code, Some(0), "{printed}");
    assert!(
        printed.contains("getppid") && printed.contains("6.12."),
        "{printed}"
    );
    lab.assert_own_kernel();
    assert_eq!(lab.server.run("uname -r").unwrap(), own);
    // Who measures reads the record, which goes on without it.
    assert!(
        recorded().contains("marvin.build="),
        "it was booted by Marvin: {}",
        recorded()
    );
    let run = printed
        .split_whitespace()
        .find(|word| word.starts_with("run_"))
        .unwrap();
    let of_boot = lab.marvin(&["show", run, "--artifact", "boot.console"]);
    assert!(
        of_boot.contains("Linux version 6.12") && !of_boot.contains("connected to 127.0.0.1"),
        "{of_boot}"
    );
    let before = recorded();
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    assert!(recorded().contains("no process records the console of testbox now"));
    let mut recorder = record();
    lab.wait(&|| {
        lab.server
            .run("echo 'after the recorder was killed' >/dev/ttyS0")
            .unwrap();
        recorded().contains("after the recorder was killed")
    });
    assert!(
        recorded().contains(before.lines().nth(3).unwrap()),
        "the record goes on"
    );
    recorder.kill().unwrap();
    recorder.wait().unwrap();
}
