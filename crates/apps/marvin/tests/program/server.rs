//! Servers by ssh: real Debian servers of the rack boot real kernels by kexec, once, and come back;
//! with kernels that die, hang and lose the network, cut connections, full disks and killed
//! Marvins.

mod deployed;
mod faults;
mod idle;
mod overhead;
mod programs;
mod unfit;

use std::fmt::Write;
use std::fs;
use std::process::Child;
use std::time::{Duration, Instant};

use rack::{Rack, Server};

use crate::fresh::{Fresh, fresh};
use crate::{images, is_left_to_full, marvin, output_of};

/// How long a server may take for anything, on a busy host.
const PATIENCE: Duration = Duration::from_secs(900);

/// Workloads that take long enough to be interrupted.
const LONG: &str = "fault,fork,syscall";

/// A lab with one server.
pub(crate) struct Lab {
    pub(crate) home: Fresh,
    pub(crate) server: Server,
}

impl Lab {
    pub(crate) fn new(name: &str, memory_mib: Option<u32>) -> Self {
        let rack = Rack::open().unwrap();
        let server = match memory_mib {
            None => rack.server("testbox").unwrap(),
            Some(memory_mib) => {
                let server = rack.cold_server("testbox", memory_mib).unwrap();
                server.wait_for_ssh(PATIENCE).unwrap();
                server
            }
        };
        Self::on_server(name, server)
    }

    fn on_server(name: &str, server: Server) -> Self {
        let home = fresh(name);
        fs::create_dir_all(&home).unwrap();
        // The kernels that other tests have fetched.
        std::os::unix::fs::symlink(images().0.join("builds"), home.join("builds")).unwrap();
        let lab = Self { home, server };
        lab.settings("");
        lab
    }

    /// Writes marvin.toml with further keys.
    fn settings(&self, more: &str) {
        let config = self.server.ssh().config.display();
        let power = self.server.power_command();
        let (host, port) = self.server.console_address();
        let mut text = format!(
            "[[machine]]\nname = \"testbox\"\nhost = \"testbox\"\nssh_config = \"{config}\"\n"
        );
        if !more.contains("boot_deadline") {
            text.push_str("boot_deadline = \"6m\"\n");
        }
        writeln!(text, "power = {{ command = [\"{}\"] }}", power.display()).unwrap();
        writeln!(text, "console = {{ tcp = \"{host}:{port}\" }}\n{more}").unwrap();
        fs::write(self.home.join("marvin.toml"), text).unwrap();
    }

    pub(crate) fn marvin(&self, arguments: &[&str]) -> String {
        output_of(&self.home, arguments)
    }

    /// Starts a measurement of a short workload on 6.12.
    pub(crate) fn start(&self) -> Child {
        self.start_with("syscall")
    }

    /// Starts a measurement on 6.12.
    fn start_with(&self, workloads: &str) -> Child {
        let arguments = [
            "run",
            "deb:6.12",
            "--on",
            "testbox",
            "--boots",
            "1",
            "--workload",
            workloads,
        ];
        let file = |name: &str| fs::File::create(self.home.join(name)).unwrap();
        marvin(&self.home)
            .args(arguments)
            .stdout(file("out"))
            .stderr(file("err"))
            .spawn()
            .unwrap()
    }

    /// Returns the exit code and what a started measurement printed.
    pub(crate) fn end(&self, mut child: Child) -> (Option<i32>, String) {
        let code = child.wait().unwrap().code();
        let read = |name: &str| fs::read_to_string(self.home.join(name)).unwrap();
        (code, format!("{}{}", read("out"), read("err")))
    }

    /// Waits until the kernel under test runs on the server.
    fn wait_for_test_kernel(&self) {
        self.wait(&|| {
            self.server
                .run("cat /proc/cmdline")
                .is_ok_and(|line| line.contains("marvin.build="))
        });
    }

    /// Waits until a command succeeds on the server.
    fn wait_for(&self, command: &str) {
        self.wait(&|| self.server.run(command).is_ok());
    }

    /// Waits until something is so.
    #[track_caller]
    pub(crate) fn wait(&self, is_so: &dyn Fn() -> bool) {
        let begun = Instant::now();
        while !is_so() {
            assert!(begun.elapsed() < PATIENCE, "{}", self.server.console());
            std::thread::sleep(Duration::from_secs(1));
        }
    }

    /// Has the kernel panic.
    fn panic(&self) {
        let panic = "echo 1 > /proc/sys/kernel/sysrq; (sleep 1; echo c > /proc/sysrq-trigger) >/dev/null 2>&1 &";
        drop(self.server.run(panic));
    }

    pub(crate) fn assert_own_kernel(&self) {
        self.server.wait_for_ssh(PATIENCE).unwrap();
        let line = self
            .server
            .run("cat /proc/cmdline; ls /var/lib/marvin")
            .unwrap();
        assert!(
            !line.contains("marvin.build=") && !line.contains("held"),
            "{line}"
        );
    }
}

#[test]
fn server_compares_two_kernels_side_by_side() {
    if is_left_to_full("each boot of a server takes minutes") {
        return;
    }
    let lab = Lab::new("server-compare-home", None);
    let arguments = [
        "compare",
        "deb:6.1",
        "deb:6.12",
        "--boots",
        "2",
        "--workload",
        "getppid",
        "--on",
        "exact,testbox",
    ];
    let printed = lab.marvin(&arguments);
    assert!(
        printed.contains("-- out") && printed.contains("testbox") && printed.contains("getppid"),
        "{printed}"
    );
    println!("{printed}");
    lab.assert_own_kernel();
}

#[test]
fn server_samples_functions_of_two_kernels() {
    if is_left_to_full("each boot of a server takes minutes") {
        return;
    }
    let lab = Lab::new("server-samples-home", None);
    let arguments = [
        "profile",
        "deb:6.1",
        "deb:6.12",
        "--boots",
        "1",
        "--workload",
        "fault-anon",
        "--on",
        "testbox",
    ];
    let printed = lab.marvin(&arguments);
    println!("{printed}");
    // By function, and by entry point.
    assert!(
        printed.starts_with("exit 0")
            && printed.contains("clear_page")
            && printed.contains("\npage fault "),
        "{printed}"
    );
    lab.assert_own_kernel();
}

#[test]
fn server_boots_by_the_sites_program() {
    if is_left_to_full("each boot of a server takes minutes") {
        return;
    }
    let lab = Lab::new("server-command-home", None);
    let script = "#!/bin/sh\nset -e\nkexec -a -l $MARVIN_KERNEL --initrd=$MARVIN_INITRD --command-line=\"$MARVIN_COMMAND_LINE site.$1\"\n\
        systemd-run --quiet --on-active=1 systemctl kexec\n";
    lab.server
        .run(&format!("cat >/usr/local/sbin/boot-once <<'EOF'\n{script}EOF\nchmod 755 /usr/local/sbin/boot-once"))
        .unwrap();
    lab.settings("boot = \"command\"\nboot_command = [\"/usr/local/sbin/boot-once\", \"a word\"]");
    let child = lab.start_with(LONG);
    lab.wait_for_test_kernel();
    assert!(
        lab.server
            .run("cat /proc/cmdline")
            .unwrap()
            .contains("site.a word")
    );
    // The time of day jumps while Marvin measures: no cost is a day long, or none.
    let jumps = "for n in $(seq 40); do date -s '+1 day'; sleep 3; date -s '-1 day'; sleep 3; done >/dev/null 2>&1 &";
    lab.server.run(jumps).unwrap();
    let (code, printed) = lab.end(child);
    assert_eq!(code, Some(0), "{printed}");
    let rows = printed
        .lines()
        .skip_while(|line| !line.starts_with("ns/op"))
        .skip(1);
    let rows = rows.take_while(|line| !line.starts_with("iterations:"));
    let costs: Vec<f64> = rows
        .flat_map(|row| row.split_whitespace().skip(1).take(3))
        .flat_map(str::parse)
        .collect();
    assert!(
        costs.len() > 20 && costs.iter().all(|cost| (10.0..60e9).contains(cost)),
        "{printed}"
    );
    lab.assert_own_kernel();
}

#[test]
fn server_boots_by_grub_once() {
    if is_left_to_full("each boot of a server takes minutes") {
        return;
    }
    let lab = Lab::new("server-grub-home", None);
    lab.settings("boot = \"grub-once\"");
    lab.server
        .run("echo \"# The site's\" >/boot/grub/custom.cfg")
        .unwrap();
    let (code, printed) = lab.end(lab.start());
    assert_eq!(code, Some(0), "{printed}");
    assert!(
        printed.contains("getppid") && printed.contains("boots by grub-once"),
        "{printed}"
    );
    lab.assert_own_kernel();
    // The site's own entry is still there, and the build's is not.
    assert_eq!(
        lab.server
            .run("cat /boot/grub/custom.cfg; ls /boot/marvin* || :")
            .unwrap(),
        "# The site's\n"
    );
}

#[test]
fn server_boots_by_systemd_boot_once() {
    if is_left_to_full("each boot of a server takes minutes") {
        return;
    }
    let Some(server) = Rack::open().unwrap().efi_server("testbox", 1024).unwrap() else {
        println!(
            "skipped: without ovmf, mtools, dosfstools and fdisk there is no server with UEFI"
        );
        return;
    };
    let lab = Lab::on_server("server-systemd-boot-home", server);
    lab.settings("boot = \"systemd-boot-once\"");
    // Without a default the build's entry might be it.
    let refuse = |change: &str| {
        lab.server.run(change).unwrap();
        let (code, printed) = lab.end(lab.start());
        assert_eq!(code, Some(5), "{printed}");
        assert!(
            printed.contains("cannot boot by systemd-boot: it has "),
            "{printed}"
        );
    };
    refuse("sed -i '/default/d' /efi/loader/loader.conf");
    refuse("echo 'default *' >>/efi/loader/loader.conf");
    lab.server
        .run("sed -i 's/^default.*/default own.conf/' /efi/loader/loader.conf")
        .unwrap();
    let (code, printed) = lab.end(lab.start());
    assert_eq!(code, Some(0), "{printed}");
    assert!(
        printed.contains("getppid") && printed.contains("boots by systemd-boot-once"),
        "{printed}"
    );
    lab.assert_own_kernel();
    assert_eq!(
        lab.server.run("ls /efi/loader/entries; ls /efi").unwrap(),
        "own.conf\nEFI\nloader\nown\n"
    );
}

#[test]
fn kernel_that_dies_in_a_job_fails_it() {
    if is_left_to_full("each boot of a server takes minutes") {
        return;
    }
    let lab = Lab::new("server-panic-home", None);
    let child = lab.start_with(LONG);
    lab.wait_for_test_kernel();
    lab.panic();
    let (code, printed) = lab.end(child);
    assert_eq!(code, Some(4), "{printed}");
    assert!(
        printed.contains("panicked") || printed.contains("oopsed"),
        "{printed}"
    );
    lab.assert_own_kernel();
}

#[test]
fn memory_of_a_dead_kernel_comes_home() {
    if is_left_to_full("each boot of a server takes minutes") {
        return;
    }
    let Some(collector) = std::env::var_os("MARVIN_DUMP").map(std::path::PathBuf::from) else {
        println!("skipped: MARVIN_DUMP names no static marvin-dump (make dump)");
        return;
    };
    let lab = Lab::new("server-dump-home", None);
    let arguments = [
        "run",
        "deb:6.12",
        "--on",
        "testbox",
        "--boots",
        "1",
        "--workload",
        LONG,
        "--keep-dump",
    ];
    let file = |name: &str| fs::File::create(lab.home.join(name)).unwrap();
    let path = format!(
        "{}:{}",
        collector.parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    let mut command = marvin(&lab.home);
    let child = command
        .args(arguments)
        .env("PATH", path)
        .stdout(file("out"))
        .stderr(file("err"))
        .spawn()
        .unwrap();
    lab.wait_for_test_kernel();
    let loaded = "[ $(cat /sys/kernel/kexec_crash_loaded) = 1 ]";
    lab.wait_for(loaded);
    lab.wait_for("pidof -q marvin-agent || ls /proc/*/exe -l 2>/dev/null | grep -q marvin/agent");
    lab.panic();
    let (code, printed) = lab.end(child);
    assert_eq!(code, Some(4), "{printed}\n{}", lab.server.console());
    println!("{printed}");
    let shown = lab.marvin(&["runs"]);
    let run = shown
        .split_whitespace()
        .find(|word| word.starts_with("run_"))
        .unwrap();
    let shown = lab.marvin(&["show", run]);
    assert!(shown.contains(".vmcore"), "{shown}");
    lab.assert_own_kernel();
}

#[test]
fn hung_kernel_is_ended_by_the_power_switch() {
    if is_left_to_full("each boot of a server takes minutes") {
        return;
    }
    let lab = Lab::new("server-hang-home", None);
    lab.settings("");
    let child = lab.start_with(LONG);
    lab.wait_for_test_kernel();
    // To Marvin a kernel without network is one that hangs.
    lab.server.unplug_network().unwrap();
    let begun = Instant::now();
    let firmware = |console: &str| console.matches("Booting `").count();
    let before = firmware(&lab.server.console());
    while firmware(&lab.server.console()) == before {
        assert!(begun.elapsed() < PATIENCE, "the power was not switched");
        std::thread::sleep(Duration::from_millis(500));
    }
    lab.server.plug_network().unwrap();
    let (code, printed) = lab.end(child);
    assert_eq!(code, Some(4), "{printed}");
    assert!(printed.contains("hung"), "{printed}");
    lab.assert_own_kernel();
}

#[test]
fn cut_connection_is_repeated() {
    if is_left_to_full("each boot of a server takes minutes") {
        return;
    }
    let lab = Lab::new("server-cut-home", None);
    let child = lab.start_with(LONG);
    lab.wait_for_test_kernel();
    lab.server.unplug_network().unwrap();
    std::thread::sleep(Duration::from_secs(30));
    lab.server.plug_network().unwrap();
    let (code, printed) = lab.end(child);
    assert_eq!(code, Some(0), "{printed}");
    lab.assert_own_kernel();
}

#[test]
fn full_disk_of_a_server_changes_nothing() {
    if is_left_to_full("each boot of a server takes minutes") {
        return;
    }
    let lab = Lab::new("server-full-home", None);
    lab.server.fill_disk().unwrap();
    let boot = lab.server.boot_id().unwrap();
    let (code, printed) = lab.end(lab.start());
    assert_eq!(code, Some(5), "{printed}");
    assert!(printed.contains("testbox"), "{printed}");
    assert_eq!(lab.server.boot_id().unwrap(), boot);
    lab.server.empty_disk().unwrap();
    let (code, printed) = lab.end(lab.start());
    assert_eq!(code, Some(0), "{printed}");
}

#[test]
fn killed_marvins_server_comes_back_with_the_next() {
    if is_left_to_full("each boot of a server takes minutes") {
        return;
    }
    let lab = Lab::new("server-killed-home", None);
    let mut child = lab.start();
    lab.wait_for_test_kernel();
    child.kill().unwrap();
    child.wait().unwrap();
    let listed = lab.marvin(&["machines"]);
    assert!(listed.contains("away"), "{listed}");
    // As NTP may, on a server whose battery is empty: the hold is none the shorter.
    lab.server.run("date -s '+1 day' >&2").unwrap();
    let other = fresh("server-killed-other-home");
    fs::create_dir_all(&other).unwrap();
    fs::copy(lab.home.join("marvin.toml"), other.join("marvin.toml")).unwrap();
    let refused = output_of(
        &other,
        &[
            "run",
            "deb:6.12",
            "--on",
            "testbox",
            "--boots",
            "1",
            "--workload",
            "getppid",
        ],
    );
    assert!(
        refused.starts_with("exit 5") && refused.contains("testbox is held by "),
        "{refused}"
    );
    let (code, printed) = lab.end(lab.start());
    assert_eq!(code, Some(0), "{printed}");
    lab.assert_own_kernel();
}

#[test]
fn server_that_lost_memory_is_refused() {
    if is_left_to_full("each boot of a server takes minutes") {
        return;
    }
    let lab = Lab::new("server-drift-home", Some(1024));
    let (code, printed) = lab.end(lab.start());
    assert_eq!(code, Some(0), "{printed}");
    let Lab { home, server } = lab;
    drop(server);
    let server = Rack::open().unwrap().cold_server("testbox", 768).unwrap();
    server.wait_for_ssh(PATIENCE).unwrap();
    let lab = Lab { home, server };
    lab.settings("");
    let (code, printed) = lab.end(lab.start());
    assert_eq!(code, Some(5), "{printed}");
    assert!(
        printed.contains("machine testbox changed: ")
            && printed.contains("host.memory 1023 MiB -> 767"),
        "{printed}"
    );
}

#[test]
fn unusable_servers_fail_clearly() {
    let home = fresh("server-mistakes-home");
    fs::create_dir_all(&home).unwrap();
    let config = home.join("ssh_config");
    fs::write(&config, "Host silent\n  HostName 127.0.0.1\n  Port 1\n").unwrap();
    let machine = |name: &str, host: &str| {
        format!("[[machine]]\nname = \"{name}\"\nhost = \"{host}\"\nssh_config = \"ssh_config\"\n")
    };
    fs::write(home.join("marvin.toml"), machine("silent", "silent")).unwrap();
    let answer = ["silent", "slient"].map(|name| {
        output_of(
            &home,
            &[
                "run",
                "deb:6.12",
                "--on",
                name,
                "--boots",
                "1",
                "--workload",
                "getppid",
            ],
        )
    });
    insta::assert_snapshot!(answer.join("\n"));
    for (wrong, what) in [
        ("name = \"vm\"\nhost = \"x\"", "`vm` is a machine of Marvin"),
        (
            "name = \"a\"\nhost = \"-oProxyCommand=x\"",
            "expected a host for ssh",
        ),
        (
            "name = \"a\"\nhost = \"x\"\ncpus = \"; reboot\"",
            "expected processors such as 2-7",
        ),
        (
            "name = \"a\"\nhost = \"x\"\nboot = \"command\"",
            "without `boot_command`",
        ),
        (
            "name = \"a\"\nhost = \"x\"\nboot_command = [\"x\"]",
            "without boot = ",
        ),
    ] {
        fs::write(home.join("marvin.toml"), format!("[[machine]]\n{wrong}\n")).unwrap();
        let output = output_of(&home, &["config", "check"]);
        assert!(
            output.starts_with("exit 2") && output.contains(what),
            "{output}"
        );
    }
}
