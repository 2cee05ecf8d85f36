//! Servers that cannot boot builds, and builds that cannot boot there: one message, and nothing is
//! changed.

use std::fmt::Write;
use std::fs;

use super::Lab;
use crate::{images, is_left_to_full, output_of};

/// A key that no server has.
const OTHER_KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl";

fn measure(lab: &Lab, kernel: &str) -> String {
    output_of(
        &lab.home,
        &[
            "run",
            kernel,
            "--on",
            "testbox",
            "--boots",
            "1",
            "--workload",
            "getppid",
        ],
    )
}

/// Returns how a refused measurement of a kernel ends, without paths and times of this host.
fn refused(lab: &Lab, kernel: &str) -> String {
    let output = measure(lab, kernel);
    assert!(output.starts_with("exit 5"), "{output}");
    let text = output.replace(&lab.server.ssh().port.to_string(), "PORT");
    let config = lab
        .server
        .ssh()
        .config
        .parent()
        .unwrap()
        .display()
        .to_string();
    text.replace(&config, "RACK")
}

/// Changes the ssh configuration for Marvin.
fn change_ssh(lab: &Lab, from: &str, to: &str) {
    let text = fs::read_to_string(&lab.server.ssh().config).unwrap();
    assert!(text.contains(from), "{text}");
    let path = lab.home.join("ssh_config");
    fs::write(&path, text.replace(from, to)).unwrap();
    let settings = fs::read_to_string(lab.home.join("marvin.toml")).unwrap();
    let settings = settings.replace(
        &lab.server.ssh().config.display().to_string(),
        &path.display().to_string(),
    );
    fs::write(lab.home.join("marvin.toml"), settings).unwrap();
}

#[test]
fn unfit_servers_are_refused_before_any_change() {
    if is_left_to_full("each boot of a server takes minutes") {
        return;
    }
    let lab = Lab::new("server-unfit-home", None);
    let boot = lab.server.boot_id().unwrap();
    let mut output = String::new();
    let mut tell = |what: &str, text: String| writeln!(output, "## {what}\n{text}").unwrap();

    let known_hosts = lab.home.join("other_hosts");
    fs::write(&known_hosts, format!("testbox {OTHER_KEY}\n")).unwrap();
    let own = lab.server.ssh().known_hosts.display().to_string();
    change_ssh(&lab, &own, &known_hosts.display().to_string());
    tell("another host key", refused(&lab, "deb:6.12"));
    lab.settings("");
    change_ssh(&lab, "User root", "User lab");
    tell("no privileges", refused(&lab, "deb:6.12"));
    let grub = "boot = \"grub-once\"";
    let read_only =
        |place: &str| format!("mount --bind {place} {place} && mount -o remount,ro,bind {place}");
    for (what, settings, begin, end) in [
        (
            "no kexec",
            "",
            "chmod -x /sbin/kexec".to_owned(),
            "chmod +x /sbin/kexec",
        ),
        (
            "read-only /var/lib",
            "",
            read_only("/var/lib"),
            "umount /var/lib",
        ),
        ("read-only /boot", grub, read_only("/boot"), "umount /boot"),
        (
            "GRUB that boots not once",
            grub,
            "sed -i.kept 's/saved_entry/x/' /boot/grub/grub.cfg".to_owned(),
            "mv /boot/grub/grub.cfg.kept /boot/grub/grub.cfg",
        ),
        (
            "another loader",
            "boot = \"systemd-boot-once\"",
            "true".to_owned(),
            "true",
        ),
    ] {
        lab.settings(settings);
        lab.server.run(&begin).unwrap();
        tell(what, refused(&lab, "deb:6.12"));
        lab.server.run(end).unwrap();
    }
    lab.settings("");
    // An image without its modules and its config.
    let bare = lab.home.join("vmlinuz-bare");
    fs::copy(&images().1[1], &bare).unwrap();
    let printed = measure(&lab, &format!("path:{}", bare.display()));
    assert!(
        printed.contains("? getppid: not supported: the build may have no driver ext4"),
        "{printed}"
    );
    // Only a restart sets these back.
    lab.server
        .run("sysctl -w kernel.kexec_load_disabled=1")
        .unwrap();
    tell("kexec switched off", refused(&lab, "deb:6.12"));
    if lab
        .server
        .run("mount -t securityfs s /sys/kernel/security; echo integrity > /sys/kernel/security/lockdown")
        .is_ok()
    {
        tell("lockdown", refused(&lab, "deb:6.12"));
    }
    assert_eq!(lab.server.boot_id().unwrap(), boot);
    assert_eq!(
        lab.server.run("ls /var/lib/marvin/kernels").unwrap(),
        "",
        "no kernel was installed"
    );
    insta::assert_snapshot!(output);
}
