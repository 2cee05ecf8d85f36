//! What the scripts find out on servers of other shapes than the rack's, in a make-believe tree of
//! files.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use tempfile::TempDir;

use crate::remote::Facts;

const FACTS: &str = include_str!("../remote/scripts/facts.sh");
const DRIVERS: &str = include_str!("../remote/scripts/drivers.sh");
const OWN: &str = include_str!("../remote/scripts/own.sh");
const TO_DISK: &str = include_str!("../remote/scripts/to_disk.sh");
const LEAVE: &str = include_str!("../remote/scripts/leave.sh");

struct Tree(TempDir);

impl Tree {
    /// A server with one disk, whose partition is `8:1`, behind a controller.
    fn new() -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        tree.file("/proc/cmdline", "root=/dev/sda1\n");
        tree.file("/proc/uptime", "100.00 90.00\n");
        tree.file(
            "/proc/modules",
            "ahci 4096 2 - Live 0x0\nloop 4096 0 - Live 0x0\n",
        );
        tree.file("/proc/sys/kernel/random/boot_id", "1\n");
        tree.file("/etc/machine-id", "2\n");
        tree.disk("sda", "8:1", "ahci");
        tree
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().join(path.trim_start_matches('/'))
    }

    fn file(&self, path: &str, text: &str) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        fs::write(self.at(path), text).unwrap();
    }

    fn link(&self, path: &str, to: &str) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        symlink(self.at(to), self.at(path)).unwrap();
    }

    /// Adds a disk with a partition, behind a controller whose driver is a loaded module.
    fn disk(&self, name: &str, number: &str, driver: &str) {
        let controller = format!("/sys/devices/pci0/of-{name}");
        let part = format!("{controller}/block/{name}/{name}1");
        self.file(&format!("{part}/partition"), "1\n");
        self.link(&format!("/sys/dev/block/{number}"), &part);
        self.file(&format!("/sys/module/{driver}/initstate"), "live\n");
        self.file(&format!("/sys/bus/{driver}/uevent"), "");
        if !self.at(&format!("/sys/bus/{driver}/module")).exists() {
            self.link(
                &format!("/sys/bus/{driver}/module"),
                &format!("/sys/module/{driver}"),
            );
        }
        self.link(
            &format!("{controller}/driver"),
            &format!("/sys/bus/{driver}"),
        );
    }

    fn mount(&self, number: &str, kind: &str, source: &str) {
        let line = format!("24 1 {number} / / rw,relatime shared:1 - {kind} {source} rw\n");
        self.file(
            "/proc/self/mountinfo",
            &format!(
                "1 1 0:2 / / rw - rootfs rootfs rw\n{line}25 24 0:5 / /proc rw - proc proc rw\n"
            ),
        );
    }

    /// Runs a script with these files as those of the server, and some programs.
    fn run(&self, script: &str, arguments: &[&str]) -> String {
        let root = fs::canonicalize(self.0.path())
            .unwrap()
            .display()
            .to_string();
        let places = [
            "/sys/",
            "/proc/",
            "/lib/modules/",
            "/var/lib",
            "/boot",
            "/etc/",
        ];
        let script = places.iter().fold(script.to_owned(), |script, place| {
            script.replace(place, &format!("{root}{place}"))
        });
        let programs =
            "id() { echo 0; }; uname() { echo 6.1; }; grub-probe() { echo \"$GRUB\"; }\n";
        let programs = programs.replace("grub-probe()", "grub_probe()");
        let script = script
            .replace("grub-probe", "grub_probe")
            .replace("bootctl", "boot_ctl");
        let loader = format!("boot_ctl() {{ case $1 in --print-*) echo {root}/efi ;; esac; }}\n");
        let script = format!("{programs}{loader}{script}");
        let ended = subprocess::Program::new("sh")
            .args(["-c", &script, "marvin"])
            .args(arguments.iter().copied())
            .run()
            .unwrap();
        assert_eq!(ended.stderr, "", "{script}");
        ended.text()
    }

    /// Returns the drivers that a build needs.
    fn needed(&self) -> String {
        let text = self.run(&[FACTS, DRIVERS].concat(), &["token", "", "kexec"]);
        let facts = Facts::read(&text);
        let mut needed: Vec<String> = facts
            .drivers()
            .iter()
            .filter(|driver| !driver.needed_by.is_empty())
            .map(|driver| format!("{}: {}", driver.name, driver.needed_by))
            .collect();
        needed.sort();
        needed.dedup();
        needed.join(", ")
    }

    /// Returns what the facts say about the boot loader.
    fn loader(&self, boot: &str) -> String {
        let text = self.run(&[FACTS, OWN].concat(), &["token", "", boot]);
        let lines = text
            .lines()
            .filter(|line| line.starts_with("loader.") || line.starts_with("grub."));
        lines.collect::<Vec<_>>().join(", ")
    }
}

#[test]
fn root_file_system_is_always_named() {
    let tree = Tree::new();
    for (kind, expected) in [
        ("ext4", "ahci: the root disk, ext4: the root file system"),
        ("ext3", "ahci: the root disk, ext4: the root file system"),
        ("xfs", "ahci: the root disk, xfs: the root file system"),
    ] {
        tree.mount("8:1", kind, "/dev/sda1");
        assert_eq!(tree.needed(), expected, "{kind}");
    }
    tree.file("/proc/cmdline", "root=/dev/sda1 marvin.build=0123\n");
    assert_eq!(tree.needed(), "", "the own kernel is asked");
}

#[test]
fn drivers_built_into_the_own_kernel_count() {
    let tree = Tree::new();
    tree.mount("8:1", "ext4", "/dev/sda1");
    fs::remove_file(tree.at("/sys/module/ahci/initstate")).unwrap();
    assert_eq!(
        tree.needed(),
        "ext4: the root file system",
        "it may be no module anywhere"
    );
    tree.file(
        "/lib/modules/6.1/modules.builtin",
        "kernel/drivers/ata/ahci.ko\n",
    );
    assert_eq!(
        tree.needed(),
        "ahci: the root disk, ext4: the root file system"
    );
}

#[test]
fn disks_below_lvm_and_raid_are_found() {
    let tree = Tree::new();
    tree.disk("nvme0n1", "259:1", "nvme");
    // LVM on a RAID of two disks.
    tree.file("/sys/devices/virtual/block/dm-0/dm/name", "root\n");
    tree.link("/sys/dev/block/253:0", "/sys/devices/virtual/block/dm-0");
    tree.link(
        "/sys/devices/virtual/block/dm-0/slaves/md0",
        "/sys/devices/virtual/block/md0",
    );
    tree.file("/sys/devices/virtual/block/md0/md/level", "raid5\n");
    tree.link(
        "/sys/devices/virtual/block/md0/slaves/sda1",
        "/sys/devices/pci0/of-sda/block/sda/sda1",
    );
    tree.link(
        "/sys/devices/virtual/block/md0/slaves/nvme",
        "/sys/devices/pci0/of-nvme0n1/block/nvme0n1/nvme0n11",
    );
    for module in ["dm_mod", "md_mod"] {
        tree.file(&format!("/sys/module/{module}/initstate"), "live\n");
    }
    tree.file(
        "/lib/modules/6.1/modules.builtin",
        "kernel/drivers/md/raid456.ko\n",
    );
    tree.mount("253:0", "xfs", "/dev/mapper/root");
    assert_eq!(
        tree.needed(),
        "ahci: the root disk, dm_mod: the root disk, md_mod: the root disk, nvme: the root disk, \
         raid456: the root disk, xfs: the root file system"
    );
}

#[test]
fn disks_of_btrfs_are_found() {
    let tree = Tree::new();
    tree.disk("vda", "254:1", "virtio_blk");
    for (name, disk) in [
        ("sda1", "of-sda/block/sda/sda1"),
        ("vda1", "of-vda/block/vda/vda1"),
    ] {
        tree.link(
            &format!("/sys/fs/btrfs/0123/devices/{name}"),
            &format!("/sys/devices/pci0/{disk}"),
        );
    }
    tree.mount("0:30", "btrfs", "/dev/sda1");
    assert_eq!(
        tree.needed(),
        "ahci: the root disk, btrfs: the root file system, virtio_blk: the root disk"
    );
}

#[test]
fn network_without_a_link_is_not_needed() {
    let tree = Tree::new();
    tree.mount("8:1", "ext4", "/dev/sda1");
    for (card, driver, state) in [("eth0", "e1000e", "up"), ("eth1", "tg3", "down")] {
        tree.disk(card, &format!("9:{card}"), driver);
        tree.file(
            &format!("/sys/class/net/{card}/operstate"),
            &format!("{state}\n"),
        );
        tree.link(
            &format!("/sys/class/net/{card}/device"),
            &format!("/sys/devices/pci0/of-{card}"),
        );
    }
    assert_eq!(
        tree.needed(),
        "ahci: the root disk, e1000e: the network, ext4: the root file system"
    );
}

#[test]
fn grub_is_judged_by_its_configuration() {
    let tree = Tree::new();
    let good =
        "set default=\"${saved_entry}\"\nif [ \"${next_entry}\" ]\nsource ${prefix}/custom.cfg\n";
    for (config, expected) in [
        (good, "loader.writable=yes"),
        (
            &good.replace("saved_entry", "0"),
            "loader.writable=yes, grub.lacks=default=\"${saved_entry}\"",
        ),
        (
            &good.replace("custom", "x"),
            "loader.writable=yes, grub.lacks=custom.cfg",
        ),
    ] {
        tree.file("/boot/grub/grub.cfg", config);
        assert_eq!(tree.loader("grub-once"), expected);
    }
}

#[test]
fn default_of_systemd_boot_must_be_certain() {
    let tree = Tree::new();
    let vars = "/sys/firmware/efi/efivars";
    let id = "4a67b082-0a4c-41cf-b6c7-440b29bb8c4f";
    tree.file(&format!("{vars}/LoaderInfo-{id}"), "");
    tree.file("/efi/loader/entries/debian-6.1.conf", "");
    let sure = "loader.runs=yes, loader.writable=yes, loader.default=debian-6.1.conf";
    let unsure = "loader.runs=yes, loader.writable=yes";
    for (config, expected) in [
        ("timeout 3\n", unsure.to_owned()),
        ("timeout 3\ndefault debian-*\n", sure.to_owned()),
        ("default Debian-6.1.conf\n", sure.to_owned()),
        ("default fedora-*\n", unsure.to_owned()),
        ("default @saved\n", unsure.to_owned()),
        (
            "default *\n",
            format!("{unsure}, loader.default=marvin.conf"),
        ),
    ] {
        tree.file("/efi/loader/loader.conf", config);
        assert_eq!(tree.loader("systemd-boot-once"), expected, "{config}");
    }
    // The variable of bootctl set-default: four bytes, then UTF-16.
    let names: String = "debian-6.1.conf\0"
        .chars()
        .flat_map(|c| [c, '\0'])
        .collect();
    tree.file(
        &format!("{vars}/LoaderEntryDefault-{id}"),
        &format!("\u{7}\0\0\0{names}"),
    );
    assert_eq!(tree.loader("systemd-boot-once"), sure);
}

#[test]
fn leaving_removes_what_builds_need() {
    let tree = Tree::new();
    let site = "menuentry 'site' {\n}\n";
    let ours = "### BEGIN marvin\nmenuentry 'marvin' {\n}\n### END marvin\n";
    for (before, after) in [
        (format!("{site}{ours}"), Some(site)),
        (ours.to_owned(), None),
        (site.to_owned(), Some(site)),
    ] {
        tree.file("/boot/grub/custom.cfg", &before);
        tree.file("/boot/marvin-initrd", "");
        tree.file("/var/lib/marvin/held", "token 1 2 ann@lab\n");
        tree.file("/var/lib/marvin/held.410", "killed 1 2 ann@lab\n");
        tree.file("/var/lib/marvin/undo", "");
        tree.run(LEAVE, &["token", "grub-once"]);
        assert_eq!(
            fs::read_to_string(tree.at("/boot/grub/custom.cfg"))
                .ok()
                .as_deref(),
            after
        );
        for gone in [
            "/boot/marvin-initrd",
            "/var/lib/marvin/held",
            "/var/lib/marvin/held.410",
            "/var/lib/marvin/undo",
        ] {
            assert!(!tree.at(gone).exists(), "{gone}");
        }
    }
    tree.file("/efi/loader/entries/marvin.conf", "");
    tree.file("/efi/loader/entries/debian.conf", "");
    tree.file("/var/lib/marvin/held", "token 1 2 ann@lab\n");
    tree.run(LEAVE, &["other", "systemd-boot-once"]);
    assert!(
        tree.at("/efi/loader/entries/marvin.conf").exists(),
        "another lab holds it"
    );
    tree.run(LEAVE, &["token", "systemd-boot-once"]);
    assert!(
        !tree.at("/efi/loader/entries/marvin.conf").exists()
            && tree.at("/efi/loader/entries/debian.conf").exists()
    );
}

#[test]
fn nothing_is_installed_on_what_is_no_disk() {
    let install = |disk: &str| {
        let arguments = [
            "-c",
            TO_DISK,
            "marvin",
            disk,
            "console=ttyS0",
            "0123456789abcdef",
        ];
        let ended = subprocess::Program::new("sh")
            .args(arguments)
            .run()
            .unwrap();
        (ended.code, ended.reason())
    };
    for path in ["/dev/disk/by-id/none", "/dev/null", "/etc/passwd"] {
        let (code, message) = install(path);
        assert!(
            code == Some(1) && message.contains(&format!("there is no disk {path}, only: ")),
            "{message}"
        );
    }
}
