//! Boots of a server: kexec into another kernel, GRUB's choice for one boot, and the way back. Each
//! takes a minute, so only `make test-full` has them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rack::{BOOT, Power, Rack, Server};

/// Whether to boot; otherwise says what is left out.
fn full(what: &str) -> bool {
    let is_full = std::env::var_os("MARVIN_FULL").is_some();
    if !is_full {
        println!("left to MARVIN_FULL=1: {what}");
    }
    is_full
}

/// Runs what makes a server boot, waits for the next boot, and returns its command line.
fn rebooted(server: &Server, what: &str, act: impl FnOnce(&Server)) -> String {
    let begun = Instant::now();
    let former = server.boot_id().unwrap();
    act(server);
    server.wait_for_reboot(&former, BOOT).unwrap();
    println!("{what}: {:.1} s until ssh", begun.elapsed().as_secs_f64());
    server.run("cat /proc/cmdline").unwrap()
}

/// Leaves the server time to close the connection of the command that ends it.
fn later(server: &Server, command: &str) {
    server
        .run(&format!("systemd-run --quiet --on-active=1 {command}"))
        .unwrap();
}

#[test]
fn kexec_boots_once_and_reset_returns() {
    if !full("a kexec, a reboot and a power cycle") {
        return;
    }
    let server = Rack::open().unwrap().server("testbox").unwrap();
    let good = server.run("cat /proc/cmdline").unwrap();
    assert!(
        good.starts_with("BOOT_IMAGE=") && good.contains("panic=10"),
        "{good}"
    );
    let load = "k=/boot/vmlinuz-$(uname -r) && kexec -s -l $k --initrd=/boot/initrd.img-$(uname -r) --reuse-cmdline \
        --append=marvin.try=1 && cat /sys/kernel/kexec_loaded";
    let begun = Instant::now();
    assert_eq!(server.run(load).unwrap(), "1\n");
    println!("kexec -l: {:.1} s", begun.elapsed().as_secs_f64());
    let line = rebooted(&server, "systemctl kexec", |server| {
        later(server, "systemctl kexec");
    });
    assert!(line.contains("marvin.try=1"), "{line}");
    assert_eq!(
        server.run("findmnt -no SOURCE,FSTYPE /").unwrap().trim(),
        "/dev/vda1 ext4"
    );
    let line = rebooted(&server, "reboot", |server| {
        later(server, "systemctl reboot");
    });
    assert!(!line.contains("marvin.try=1"), "{line}");
    server.run(load).unwrap();
    let line = rebooted(&server, "kexec -e", |server| later(server, "kexec -e"));
    assert!(line.contains("marvin.try=1"), "{line}");
    let line = rebooted(&server, "power cycle", |server| {
        server.power(Power::Cycle).unwrap();
    });
    assert!(!line.contains("marvin.try=1"), "{line}");
    assert_eq!(server.run("hostname").unwrap(), "testbox\n");
}

/// Returns Debian's newest 6.12, as apt on this host fetches it.
fn newer_kernel() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rack-kernel");
    std::fs::create_dir_all(&folder).unwrap();
    let script = "set -e; p=$(apt-cache depends linux-image-6.12-cloud-amd64 | sed -n 's/.*Depends: //p' | head -n 1); \
        ls $p[_]*.deb 2>/dev/null || { apt-get -qq -o APT::Sandbox::User=root download $p; ls $p[_]*.deb; }";
    let output = Command::new("sh")
        .args(["-c", script])
        .current_dir(&folder)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    folder.join(String::from_utf8(output.stdout).unwrap().trim())
}

#[test]
fn installed_newer_kernel_boots_only_by_kexec() {
    if !full("a newer kernel, installed by dpkg") {
        return;
    }
    let server = Rack::open().unwrap().server("testbox").unwrap();
    let good = server.run("uname -r").unwrap();
    assert!(good.starts_with("6.1."), "{good}");
    server.copy(&newer_kernel(), "/var/kernel.deb").unwrap();
    let begun = Instant::now();
    server
        .run("dpkg -i /var/kernel.deb && rm /var/kernel.deb")
        .unwrap();
    println!(
        "dpkg -i with initramfs and update-grub: {:.1} s",
        begun.elapsed().as_secs_f64()
    );
    server
        .run(
            "k=$(basename /boot/vmlinuz-6.12*); r=${k#vmlinuz-}; \
        kexec -s -l /boot/$k --initrd=/boot/initrd.img-$r --reuse-cmdline",
        )
        .unwrap();
    rebooted(&server, "kexec into 6.12", |server| {
        later(server, "systemctl kexec");
    });
    let tried = server.run("uname -r").unwrap();
    assert!(tried.starts_with("6.12."), "{tried}");
    assert!(
        server
            .run("ip -4 route show default")
            .unwrap()
            .contains("10.0.2.2")
    );
    rebooted(&server, "power cycle", |server| {
        server.power(Power::Cycle).unwrap();
    });
    assert_eq!(server.run("uname -r").unwrap(), good);
}

#[test]
fn grub_boots_another_entry_once() {
    if !full("an entry of GRUB for one boot") {
        return;
    }
    let server = Rack::open().unwrap().server("testbox").unwrap();
    let add = "k=$(uname -r); u=$(findmnt -no UUID /); cat >/boot/grub/custom.cfg <<EOF
menuentry 'Marvin' --id marvin {
  linux /boot/vmlinuz-$k root=UUID=$u ro console=ttyS0 panic=10 marvin.try=2
  initrd /boot/initrd.img-$k
}
EOF
grub-reboot marvin";
    server.run(add).unwrap();
    let line = rebooted(&server, "grub-reboot", |server| {
        later(server, "systemctl reboot");
    });
    assert!(line.contains("marvin.try=2"), "{line}");
    let line = rebooted(&server, "reboot", |server| {
        later(server, "systemctl reboot");
    });
    assert!(!line.contains("marvin.try=2"), "{line}");
}

#[test]
fn panic_returns_to_the_good_kernel() {
    if !full("a panic") {
        return;
    }
    let server = Rack::open().unwrap().server("testbox").unwrap();
    let line = rebooted(&server, "panic", |server| {
        later(server, "sh -c 'echo c >/proc/sysrq-trigger'");
    });
    assert!(line.starts_with("BOOT_IMAGE="), "{line}");
    let console = server.console();
    assert!(
        console.contains("Kernel panic - not syncing: sysrq triggered crash"),
        "{console}"
    );
    assert!(console.contains("Rebooting in 10 seconds"));
}

#[test]
fn initramfs_is_made_on_the_server() {
    if !full("an initramfs made under emulation") {
        return;
    }
    let server = Rack::open().unwrap().server("testbox").unwrap();
    let begun = Instant::now();
    let made = server
        .run("mkinitramfs -o /boot/tried $(uname -r) && stat -c %s /boot/tried")
        .unwrap();
    println!(
        "mkinitramfs: {:.1} s, {} bytes",
        begun.elapsed().as_secs_f64(),
        made.trim()
    );
}

#[test]
fn cold_server_boots_with_its_memory() {
    if !full("a boot with other memory") {
        return;
    }
    let begun = Instant::now();
    let server = Rack::open().unwrap().cold_server("small", 512).unwrap();
    server.wait_for_ssh(BOOT).unwrap();
    println!("cold boot: {:.1} s", begun.elapsed().as_secs_f64());
    let kib: u32 = server
        .run("awk '/MemTotal/ {print $2}' /proc/meminfo")
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    assert!((400 << 10..512 << 10).contains(&kib), "{kib}");
    server
        .run("systemd-run --quiet --on-active=1 systemctl poweroff")
        .unwrap();
    let begun = Instant::now();
    while server.is_on().unwrap() {
        assert!(
            begun.elapsed() < Duration::from_secs(300),
            "{}",
            server.console()
        );
        std::thread::sleep(Duration::from_millis(200));
    }
}
