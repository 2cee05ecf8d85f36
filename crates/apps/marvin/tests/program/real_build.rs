//! A regression planted in Debian's kernel source, bisected with real builds if `MARVIN_FULL` is
//! set: from a tree to the confirmed culprit and its profile. Uses only the part of the source that
//! the smallest config may need; `real_source` uses all of it, and more commits.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::bisected::Tree;
use crate::fresh::fresh;
use crate::real_source::{FAULT, number_before};
use crate::{folder, format_output, is_left_to_full, marvin};

const PACKAGE: &str = "linux-source-6.12";
/// The smallest config that boots, and the fastest to build; passed as a user's file.
const CONFIGURATION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/program/smallest.config");
/// Directories whose sources the config `micro` does not use: half of the tree's disk space.
const NOT_NEEDED: &str = "drivers/gpu drivers/net/ethernet drivers/net/wireless drivers/media drivers/staging \
    drivers/infiniband drivers/scsi drivers/usb drivers/iio drivers/hwmon drivers/mfd drivers/clk drivers/pinctrl drivers/crypto \
    drivers/soc drivers/phy sound fs/xfs fs/btrfs fs/ocfs2 fs/bcachefs net/mac80211 tools/perf tools/testing samples \
    Documentation rust";
/// Suffixes of files left out there. Makefiles and Kconfig files stay.
const SOURCES: &str = "c h S rst yaml txt json rs dts dtsi";
/// Processors that Marvin builds no kernel for: each has a directory in `arch/`.
const ARCHITECTURES: &str = "alpha arc arm arm64 csky hexagon loongarch m68k microblaze mips nios2 openrisc parisc powerpc \
    riscv s390 sh sparc xtensa";
/// Unpacks Debian's source into a directory; keeps the package for the next time.
pub(crate) fn unpack(into: &Path) {
    let packages = folder("source-package");
    fs::create_dir_all(&packages).unwrap();
    let other = ARCHITECTURES
        .split_whitespace()
        .map(|name| format!("arch/{name}"));
    let excluded = NOT_NEEDED
        .split_whitespace()
        .map(str::to_owned)
        .chain(other)
        .flat_map(|folder| {
            SOURCES
                .split_whitespace()
                .map(move |ending| format!("--exclude=*/{folder}/*.{ending}"))
                .collect::<Vec<_>>()
        });
    let script = format!(
        "set -eu\n\
         ls {PACKAGE}_*.deb >/dev/null 2>&1 || apt-get -qq -o APT::Sandbox::User=root download {PACKAGE}\n\
         dpkg-deb --fsys-tarfile {PACKAGE}_*.deb | tar -xO ./usr/src/{PACKAGE}.tar.xz \
         | tar -xJ --strip-components=1 -C \"$into\" \"$@\"\n"
    );
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &script, "sh"])
        .args(excluded)
        .env("into", into)
        .current_dir(&packages);
    let output = shell.output().unwrap();
    assert!(
        into.join("Kbuild").exists(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn planted_regression_is_bisected_with_real_builds() {
    if is_left_to_full("builds kernels for four minutes") {
        return;
    }
    let tree = Tree::new("real-build-tree");
    unpack(&tree.folder);
    // Debian's .gitignore lists the upstream files.
    drop(fs::remove_file(tree.folder.join(".gitignore")));
    tree.git(&["add", "-A"]);
    tree.git(&["commit", "-qm", "Debian's source"]);
    tree.git(&["tag", "good"]);
    let read = |file: &str| fs::read_to_string(tree.folder.join(file)).unwrap();
    let pad = |n: usize| {
        format!("int marvin_pad_{n}(void);\nint marvin_pad_{n}(void) {{ return {n}; }}\n")
    };
    tree.commit(
        "lib/string.c",
        &format!("{}{}", read("lib/string.c"), pad(1)),
    );
    tree.commit(
        "drivers/net/tun.c",
        &format!("{}/* not compiled */\n", read("drivers/net/tun.c")),
    );
    let (_, file, before, count) = FAULT;
    let old = read(file);
    let at = old.find(before).unwrap();
    let slow = format!("asm volatile(\".rept {count}\\n\\tnop\\n\\t.endr\");\n\t");
    let guilty = tree.commit(file, &format!("{}{slow}{}", &old[..at], &old[at..]));
    tree.commit(
        "kernel/sys.c",
        &format!("{}{}", read("kernel/sys.c"), pad(2)),
    );
    tree.commit("Documentation/mm/index.rst", "not compiled\n");

    let home = fresh("real-build-home");
    let name = tree.name();
    let of_tree = ["--tree", &name, "--config", CONFIGURATION];
    let bisect = [
        "bisect",
        "good",
        "main",
        "--workload",
        "fault-anon",
        "--seeds",
        "1",
    ];
    let output = format_output(
        &marvin(&home).args(bisect).args(of_tree).output().unwrap(),
        &home,
    );
    assert!(output.starts_with("exit 0"), "{output}");
    assert!(
        output.contains(&format!(
            "worse   {} (\"{file}: change it\")",
            &guilty[..12]
        )),
        "{output}"
    );
    assert!(output.contains("confirmed: BAD without it"), "{output}");
    // The step equals the planted regression: the same number of instructions in each fault.
    assert!(
        (number_before(&output, " % of the whole difference") - 100.0).abs() < 1.0,
        "{output}"
    );
    assert!(
        output.contains(", function by function:") && output.contains("handle_mm_fault"),
        "{output}"
    );
    assert!(
        output.contains("5 commits, 3 of which can change the image"),
        "{output}"
    );
}
