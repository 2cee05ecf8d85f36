//! Debian's kdump-tools with the package `marvin-dump` in makedumpfile's place: a server's kernel
//! crashes, and its scripts save the dump, on its disk and over ssh. It takes minutes: `make
//! test-full` runs it, `cargo test` alone does not.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stdout, reason = "says what was seen")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rack::{BOOT, Rack, Server};
use vmcore::{Dump, Filter, Io, Level, LogPart, Reader};

/// What kdump-tools needs beside the packages of a server.
const PACKAGES: [&str; 11] = [
    "kdump-tools",
    "ucf",
    "busybox",
    "bsdextrautils",
    "libmagic1",
    "libmagic-mgc",
    "file",
    "lsb-base",
    "linux-base",
    "sysvinit-utils",
    "debconf",
];
/// Memory of the capture kernel: Debian's own choice is too little for its initrd on a machine of
/// this size.
const CRASHKERNEL: &str = "crashkernel=256M";
/// How long capture and reboot may take.
const CRASH: Duration = Duration::from_secs(900);

/// Returns a directory with the packages: Debian's, and `marvin-dump` of this tree.
fn packages() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    assert!(
        tree.join("target/release/marvin-dump").exists(),
        "run `make dump` first"
    );
    let built = Command::new(tree.join("scripts/deb.sh")).output().unwrap();
    assert!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
    let package = tree.join(String::from_utf8_lossy(&built.stdout).trim());
    std::fs::copy(&package, folder.path().join("marvin-dump.deb")).unwrap();
    let ended = Command::new("apt-get")
        .arg("download")
        .args(PACKAGES)
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(
        ended.status.success(),
        "{}",
        String::from_utf8_lossy(&ended.stderr)
    );
    folder
}

fn run(server: &Server, command: &str) -> String {
    server.run(command).unwrap()
}

/// Installs kdump-tools and marvin-dump as `docs/dump.debian` says, and boots with room for a
/// capture kernel.
fn install(server: &Server, packages: &Path) {
    run(server, "mkdir -p packages");
    for entry in std::fs::read_dir(packages).unwrap().flatten() {
        let to = format!(
            "packages/{}",
            entry.file_name().to_string_lossy().replace('%', "_")
        );
        server.copy(&entry.path(), &to).unwrap();
    }
    run(
        server,
        "DEBIAN_FRONTEND=noninteractive dpkg -i packages/*.deb 2>&1",
    );
    run(
        server,
        "dpkg-divert --local --rename --add /usr/bin/makedumpfile && ln -s marvin-dump /usr/bin/makedumpfile",
    );
    run(
        server,
        "sed -i 's/^#\\?USE_KDUMP=.*/USE_KDUMP=1/' /etc/default/kdump-tools",
    );
    let command = format!(
        "sed -i 's/crashkernel=[^ \"]*/{CRASHKERNEL}/' /etc/default/grub.d/kdump-tools.cfg && update-grub 2>&1"
    );
    run(server, &command);
    let former = server.boot_id().unwrap();
    run(server, "sync; (sleep 1; reboot) > /dev/null 2>&1 &");
    server.wait_for_reboot(&former, BOOT).unwrap();
    wait_for(server, "kdump-config show | grep -q 'ready to kdump'");
}

/// Waits until a command succeeds.
fn wait_for(server: &Server, command: &str) {
    let asked = format!(
        "for n in $(seq 60); do {command} && exit 0; sleep 2; done; kdump-config show; exit 1"
    );
    run(server, &asked);
}

/// Crashes the kernel and waits for the next boot.
fn crash(server: &Server) {
    let former = server.boot_id().unwrap();
    run(
        server,
        "sync; (sleep 1; echo c > /proc/sysrq-trigger) > /dev/null 2>&1 &",
    );
    server.wait_for_reboot(&former, CRASH).unwrap();
}

/// Fetches the only dump of a server, and reads it.
fn check(server: &Server, release: &str, folder: &Path) {
    let names = run(server, "ls /var/crash/*/dump.* /var/crash/*/dmesg.*");
    println!("{}", names.trim().replace('\n', ", "));
    let name = |kind: &str| {
        names
            .lines()
            .find(|line| line.contains(kind))
            .unwrap()
            .to_owned()
    };
    let log = run(server, &format!("tail -n 40 {}", name("/dmesg.")));
    assert!(log.contains("sysrq: Trigger a crash"), "{log}");
    let dump: PathBuf = folder.join("dump");
    let ssh = server.ssh();
    let from = format!("{}:{}", ssh.name, name("/dump."));
    let copied = Command::new("scp")
        .args(["-q", "-F"])
        .arg(&ssh.config)
        .arg(from)
        .arg(&dump)
        .status()
        .unwrap();
    assert!(copied.success());
    let dump = Dump::open(&[dump]).unwrap();
    assert!(dump.flattened() && !dump.incomplete() && dump.level() == Some(31));
    assert_eq!(dump.info().text("OSRELEASE"), Some(release));
    let mut reader = Reader::new(&dump, Io::Read);
    assert!(
        vmcore::log(&mut reader, LogPart::All)
            .unwrap()
            .contains("sysrq: Trigger a crash")
    );
    // Page tables, memory map and types are in it.
    Filter::new(&mut reader, Level::new(31).unwrap()).unwrap();
}

#[test]
fn kdump_tools_saves_crashes_with_marvin_dump() {
    let packages = packages();
    let rack = Rack::open().unwrap();
    let crasher = rack.server("crasher").unwrap();
    let keeper = rack.server("keeper").unwrap();
    let folder = tempfile::tempdir().unwrap();
    install(&crasher, packages.path());
    let release = run(&crasher, "uname -r").trim().to_owned();
    crash(&crasher);
    check(&crasher, &release, folder.path());

    // The same over ssh: from the capture kernel to another server. Its network is systemd's, which
    // nothing starts there by itself.
    let ssh = keeper.ssh();
    crasher.copy(&ssh.key, ".ssh/kdump_id_rsa").unwrap();
    let host = format!(
        "Host keeper\\n HostName 10.0.2.2\\n Port {}\\n User root\\n StrictHostKeyChecking no\\n",
        ssh.port
    );
    run(
        &crasher,
        &format!("chmod 600 .ssh/kdump_id_rsa; printf '{host}' > .ssh/config"),
    );
    run(
        &crasher,
        "rm -r /var/crash/*; echo 'SSH=\"root@keeper\"' >> /etc/default/kdump-tools",
    );
    let unit = "[Unit]\\nWants=systemd-networkd.service systemd-networkd-wait-online.service\\n\
                After=systemd-networkd-wait-online.service\\n";
    let place = "/etc/systemd/system/kdump-tools-dump.service.d";
    run(
        &crasher,
        &format!("mkdir -p {place}; printf '{unit}' > {place}/network.conf"),
    );
    wait_for(&crasher, "kdump-config show | grep -q 'ready to kdump'");
    crash(&crasher);
    check(&keeper, &release, folder.path());
}
