//! A program of a user's own on a server: Marvin brings its files, runs it among them, and leaves
//! none of them behind.

use std::fs;

use super::Lab;
use crate::{is_left_to_full, marvin};

/// Counts the lines of a file that is nowhere on the server, by a program that it may not have.
const SCRIPT: &str = "#!/bin/sh\n[ ! -e /var/lib/dpkg ] || exit 9\n\
    echo \"kernel $(uname -r), $(wc -l </srv/data) lines\"\nexit ${STATUS:-0}\n";

#[test]
fn own_program_goes_to_the_server_and_leaves() {
    if is_left_to_full("each boot of a server takes minutes") {
        return;
    }
    let lab = Lab::new("server-program-home", None);
    let work = lab.home.join("work");
    fs::create_dir_all(&work).unwrap();
    fs::write(work.join("data"), "1\n2\n3\n").unwrap();
    fs::write(work.join("bench.sh"), SCRIPT).unwrap();
    let run = |status: &str| {
        let variable = format!("STATUS={status}");
        let output = marvin(&lab.home)
            .current_dir(&work)
            .args(["run", "deb:6.12", "--on", "testbox", "--boots", "1"])
            .args(["--with", "data=/srv/data", "--value", r"(\d+) lines"])
            .args(["--env", &variable, "--", "sh", "./bench.sh"])
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let printed = format!("{}{}", text(&output.stdout), text(&output.stderr));
        (output.status.code(), printed)
    };
    let (code, printed) = run("0");
    println!("{printed}");
    assert_eq!(code, Some(0), "{printed}\n{}", lab.server.console());
    assert!(printed.contains("sh.value"), "{printed}");
    let id = printed
        .split_whitespace()
        .find(|word| word.starts_with("run_"))
        .unwrap();
    let kept = lab.marvin(&["show", id, "--artifact", "sh.output"]);
    assert!(
        kept.contains("kernel 6.12.") && kept.contains(", 3 lines"),
        "{kept}"
    );
    let (code, printed) = run("3");
    println!("{printed}");
    assert_eq!(code, Some(4), "{printed}");
    assert!(printed.contains("exit status 3"), "{printed}");
    lab.assert_own_kernel();
    let left = lab.server.run("ls /var/lib/marvin").unwrap();
    assert!(
        !left.contains("programs") && !left.contains("root"),
        "{left}"
    );
}
