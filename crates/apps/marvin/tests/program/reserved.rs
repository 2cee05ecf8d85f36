//! Reservations as users see them: reserving, extending, releasing, and what others are refused
//! meanwhile.

use std::path::Path;
use std::process::Command;

use crate::fresh::fresh;
use crate::{format_output, marvin};

const TOML: &str = r#"
[[machine]]
name = "client"
kind = "ssh"
host = "root@192.0.2.1"
power = { command = ["true"] }

[[machine]]
name = "server"
kind = "ssh"
host = "root@192.0.2.2"
"#;

/// The users, and the numbers that they have in namespaces of their own: no user of this host.
const USERS: [(&str, u32); 2] = [("anna", 60_001), ("ben", 60_002)];

/// Marvin of a user, who reads the settings in the data directory and says in `USER` that it is
/// another one.
fn marvin_of(user: &str, home: &Path) -> Command {
    let number = USERS.iter().find(|known| known.0 == user).unwrap().1;
    let own = marvin(home);
    let mut command = Command::new("unshare");
    command
        .args(["--user", &format!("--map-user={number}")])
        .arg(own.get_program());
    command.env_clear();
    for (name, value) in own.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command
        .env("USER", "anna")
        .arg("--config-file")
        .arg(home.join("marvin.toml"));
    command
}

#[test]
fn reserved_servers_are_refused_to_others() {
    let home = fresh("reserved-home");
    std::fs::create_dir_all(&home).unwrap();
    std::fs::write(home.join("marvin.toml"), TOML).unwrap();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let mut story = String::new();
    for (user, arguments) in [
        ("ben", &["release", "server"][..]),
        (
            "anna",
            &[
                "reserve",
                "server",
                "client",
                "server",
                "--for",
                "2h",
                "--why",
                "perf hunt",
            ],
        ),
        (
            "ben",
            &["reserve", "server", "--for", "30m", "--why", "tuning"],
        ),
        ("ben", &["extend", "client", "--for", "1d"]),
        ("ben", &["release", "client"]),
        ("ben", &["power", "client", "off"]),
        ("ben", &["power", "client", "off", "--force"]),
        ("ben", &["compare", "deb:6.1", "deb:6.12", "--on", "server"]),
        ("anna", &["extend", "client", "--for", "3h"]),
        ("anna", &["extend", "testbox", "--for", "3h"]),
        ("anna", &["reserve", "server", "--for", "2", "--why", "x"]),
        ("anna", &["reserve", "exact", "--for", "2h", "--why", "x"]),
        ("ben", &["release", "server", "--force"]),
        ("anna", &["release", "server"]),
    ] {
        let output = format_output(
            &marvin_of(user, &home).args(arguments).output().unwrap(),
            &home,
        );
        // The end depends on the time of day.
        let output = output
            .split_inclusive('\n')
            .map(|line| match line.split_once(", until ") {
                Some((before, _)) => format!("{before}, until DATE UTC\n"),
                None => line.to_owned(),
            });
        let output = output
            .collect::<String>()
            .replace(&format!("@{}", host.trim()), "@HOST");
        let output = USERS.iter().fold(output, |output, (name, number)| {
            output.replace(&format!("uid-{number}"), name)
        });
        story.extend([user, "$ marvin ", &arguments.join(" "), "\n", &output, "\n"]);
    }
    insta::assert_snapshot!(story);
}
