//! The rack itself: a server is reachable, has a power switch, a network that can be pulled and a
//! recorded console.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stdout, reason = "figures for --nocapture")]

mod boots;
mod slurm;

use std::process::Command;
use std::time::Instant;

use rack::{Power, Rack};

#[test]
fn server_answers_and_obeys_its_switches() {
    if std::env::var_os("MARVIN_FULL").is_none() {
        println!(
            "skipped: the rack by itself; the story of a server uses most of it: MARVIN_FULL=1 or make test-full"
        );
        return;
    }
    let begun = Instant::now();
    let rack = Rack::open().unwrap();
    println!("image after {:.1} s", begun.elapsed().as_secs_f64());
    let begun = Instant::now();
    let server = rack.server("testbox").unwrap();
    println!("server after {:.1} s", begun.elapsed().as_secs_f64());
    assert_eq!(server.run("hostname").unwrap(), "testbox\n");
    assert_eq!(server.boot_id().unwrap().len(), 36);
    let now: i64 = server.run("date +%s").unwrap().trim().parse().unwrap();
    let host: i64 = String::from_utf8(Command::new("date").arg("+%s").output().unwrap().stdout)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    assert!((now - host).abs() < 30, "{now} {host}");
    let config = &server.ssh().config;
    let ssh = Command::new("ssh")
        .arg("-F")
        .arg(config)
        .args(["testbox", "id -un"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(ssh.stdout).unwrap(), "root\n");
    server
        .run("echo a word on the console >/dev/ttyS0")
        .unwrap();
    assert!(server.console().contains("a word on the console"));

    let full = Instant::now();
    server.fill_disk().unwrap();
    println!("full disk: {:.1} s", full.elapsed().as_secs_f64());
    assert!(server.run("head -c 1000000 /dev/zero >/var/more").is_err());
    server.empty_disk().unwrap();
    server.run("head -c 1000000 /dev/zero >/var/more").unwrap();

    server.unplug_network().unwrap();
    let refused = server
        .wait_for_ssh(std::time::Duration::from_secs(1))
        .unwrap_err();
    assert!(
        refused
            .to_string()
            .starts_with("testbox has no ssh after 1 s")
    );
    server.plug_network().unwrap();
    server.wait_for_ssh(rack::BOOT).unwrap();

    let power = |word: &str| {
        let output = Command::new(server.power_command())
            .arg(word)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(power("status"), "on\n");
    power("off");
    assert!(!server.is_on().unwrap());
    assert_eq!(power("status"), "off\n");
    server.power(Power::On).unwrap();
    assert_eq!(power("status"), "on\n");
    println!("done after {:.1} s", begun.elapsed().as_secs_f64());
}
