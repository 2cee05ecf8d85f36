//! Wrong input: each mistake ends with one clear message and its exit code, and leaves no
//! half-written file.

use std::path::Path;

use crate::fresh::fresh;
use crate::{format_output, images, marvin, names, output_of};

/// Runs it with a file's path in an argument, and removes the path from the output.
fn with_file(content: &[u8], arguments: &dyn Fn(&str) -> Vec<String>) -> String {
    let home = fresh("file-home");
    let file = fresh("file.img");
    std::fs::write(&file, content).unwrap();
    let path = file.display().to_string();
    let output = marvin(&home).args(arguments(&path)).output().unwrap();
    format_output(&output, &home).replace(&path, "FILE")
}

fn as_kernel(content: &[u8]) -> String {
    with_file(content, &|path| {
        ["run", &format!("path:{path}"), "--quiet"]
            .map(str::to_owned)
            .to_vec()
    })
}

#[test]
fn impossible_kernels_fail_clearly() {
    let home = fresh("kernel-home");
    insta::assert_snapshot!("kernel-without-source", output_of(&home, &["run", "6.12"]));
    insta::assert_snapshot!(
        "package-without-version",
        output_of(&home, &["run", "deb:six"])
    );
    insta::assert_snapshot!("path-is-empty", output_of(&home, &["run", "path:"]));
    insta::assert_snapshot!(
        "path-does-not-exist",
        output_of(&home, &["run", "path:/no/such/vmlinuz", "--quiet"])
    );
    insta::assert_snapshot!(
        "path-is-misspelled",
        output_of(&home, &["run", "path:/etc/passwdd", "--quiet"])
    );
    insta::assert_snapshot!(
        "bare-path-does-not-exist",
        output_of(&home, &["compare", "/boott/vmlinuz", "deb:6.12", "-q"])
    );
    insta::assert_snapshot!(
        "directory-without-kernel",
        output_of(&home, &["compare", "deb:6.12", "/proc/self/fdinfo", "-q"])
    );
    insta::assert_snapshot!(
        "release-without-tree",
        output_of(&home, &["compare", "v6.12", "v6.13", "-q"])
    );
    for option in ["--tree", "--build-dir", "--config"] {
        let name = format!("missing-path-of{option}");
        let run = ["run", "git:HEAD", option, "/etc/none-such/linux", "-q"];
        insta::assert_snapshot!(name, output_of(&home, &run));
    }
    insta::assert_snapshot!(
        "path-is-a-directory",
        output_of(&home, &["run", "path:/proc", "--quiet"])
    );
    insta::assert_snapshot!(
        "kernels-of-a-path",
        output_of(&home, &["kernels", "path:/boot/vmlinuz"])
    );
    let unknown = output_of(&home, &["run", "deb:6.13", "--quiet"]);
    assert!(
        unknown.starts_with("exit 2")
            && unknown.contains("deb:6.1")
            && unknown.contains("deb:6.12"),
        "{unknown}"
    );
}

#[test]
fn invalid_images_fail_clearly() {
    insta::assert_snapshot!("image-is-empty", as_kernel(b""));
    insta::assert_snapshot!("image-is-no-kernel", as_kernel(&[7; 100_000]));
    let (_, files) = images();
    let image = std::fs::read(files[1].parent().unwrap().join("image")).unwrap();
    let cut = as_kernel(&image[..image.len() / 2]);
    assert!(
        cut.starts_with("exit 2") && cut.contains("it is cut short"),
        "{cut}"
    );
}

#[test]
fn unknown_workloads_and_flags_fail_clearly() {
    let home = fresh("words-home");
    insta::assert_snapshot!(
        "misspelled-workload",
        output_of(
            &home,
            &["compare", "deb:6.1", "deb:6.12", "--workload", "foult"]
        )
    );
    insta::assert_snapshot!(
        "unknown-workload",
        output_of(
            &home,
            &["compare", "deb:6.1", "deb:6.12", "--workload", "xyzzy"]
        )
    );
    insta::assert_snapshot!(
        "unknown-suite",
        output_of(&home, &["run", "deb:6.1", "--suite", "macro"])
    );
    insta::assert_snapshot!(
        "misspelled-flag",
        output_of(&home, &["compare", "deb:6.1", "deb:6.12", "--sedes", "3"])
    );
    insta::assert_snapshot!(
        "negative-margin",
        output_of(&home, &["compare", "deb:6.1", "deb:6.12", "--margin", "-1"])
    );
    insta::assert_snapshot!(
        "seeds-and-quick",
        output_of(
            &home,
            &["compare", "deb:6.1", "deb:6.12", "--seeds", "2", "--quick"]
        )
    );
    insta::assert_snapshot!(
        "misspelled-command",
        output_of(&home, &["compair", "deb:6.1", "deb:6.12"])
    );
    assert!(!home.exists(), "nothing was worth making a home for");
}

#[test]
fn unfit_machines_fail_clearly() {
    let home = fresh("unfit-home");
    insta::assert_snapshot!(
        "unknown-machine",
        output_of(&home, &["compare", "deb:6.1", "deb:6.12", "--on", "moon"])
    );
    insta::assert_snapshot!(
        "mail-about-two-machines",
        output_of(
            &home,
            &[
                "compare", "deb:6.1", "deb:6.12", "--on", "exact,vm", "--mail"
            ]
        )
    );
    insta::assert_snapshot!(
        "package-on-local",
        output_of(&home, &["run", "deb:6.12", "--on", "local", "-q"])
    );
    insta::assert_snapshot!(
        "running-kernel-on-exact",
        output_of(&home, &["run", "running:", "-q"])
    );
    insta::assert_snapshot!(
        "kernels-of-running",
        output_of(&home, &["kernels", "running:"])
    );
    insta::assert_snapshot!(
        "until-clear-on-exact",
        output_of(&home, &["compare", "deb:6.1", "deb:6.12", "--until-clear"])
    );
    let budget = [
        "compare",
        "deb:6.1",
        "deb:6.12",
        "--on",
        "vm",
        "--until-clear",
        "--budget",
        "2",
    ];
    insta::assert_snapshot!("budget-without-unit", output_of(&home, &budget));
}

#[test]
fn this_host_measures_its_own_kernel() {
    let home = fresh("own-kernel-home");
    let run = [
        "run",
        "running:",
        "--on",
        "local",
        "--workload",
        "getppid,fork-exit",
        "-q",
    ];
    let output = output_of(&home, &run);
    assert!(
        output.starts_with("exit 0") && output.contains("2 of 2 workloads completed"),
        "{output}"
    );
    assert!(
        output.contains("Machine: local; this host") && output.contains("iterations: x operations"),
        "{output}"
    );
    // The same boot is the same replicate.
    assert_eq!(output_of(&home, &run).lines().nth(1), output.lines().nth(1));
    assert_eq!(output_of(&home, &["runs"]).matches("run_").count(), 1);
}

#[test]
fn misleading_words_get_their_own_error() {
    let home = fresh("misled-home");
    std::fs::create_dir_all(&home).unwrap();
    crate::history::fill(&store::Store::open(&*home).unwrap());
    let mut story = String::new();
    for arguments in [
        &["runs", "--limit", "0"][..],
        &["run", "deb:6.1", "--workload", "fault,"],
        &["run", "deb:6.1", "--workload", "nope"],
        &["show", "zzz"],
        &["report", "zzz", "yyy"],
        &["history"],
    ] {
        story.extend([
            "$ marvin ",
            &arguments.join(" "),
            "\n",
            &output_of(&home, arguments),
            "\n",
        ]);
    }
    assert!(
        !story.contains("--home"),
        "an option that a variable sets is not required: {story}"
    );
    insta::assert_snapshot!(story);
}

#[test]
fn unusable_directories_and_files_fail_clearly() {
    let place = fresh("place");
    let home = place.join("a file");
    std::fs::create_dir_all(&place).unwrap();
    std::fs::write(&home, "not a folder").unwrap();
    insta::assert_snapshot!(
        "home-is-a-file",
        output_of(&home, &["run", "deb:6.1", "--quiet"])
    );
    insta::assert_snapshot!(
        "home-is-below-a-file",
        output_of(&home.join("below"), &["run", "deb:6.1", "--quiet"])
    );
    let output = home.join("report.html").display().to_string();
    let answer = output_of(
        &fresh("output-home"),
        &["compare", "deb:6.1", "deb:6.12", "-o", &output],
    );
    insta::assert_snapshot!("output-is-below-a-file", answer.replace(&output, "OUTPUT"));
    let equal = names()[0].clone();
    let special = marvin(&fresh("special-home"))
        .args(["compare", &equal, &equal, "-q", "-o", "/dev/null"])
        .output()
        .unwrap();
    assert!(
        special.status.success() && !Path::new("/dev/null").is_file(),
        "{}",
        format_output(&special, &home)
    );
    insta::assert_snapshot!(
        "runs-of-empty-home",
        output_of(&fresh("empty-home"), &["runs"])
    );
    insta::assert_snapshot!(
        "unknown-run",
        output_of(&fresh("empty-home"), &["show", "7f3a"])
    );
    insta::assert_snapshot!(
        "artifact-outside-of-home",
        output_of(
            &fresh("empty-home"),
            &["show", "7f3a", "--artifact", "../x"]
        )
    );
}

#[test]
fn absent_or_old_qemu_fails_clearly() {
    let home = fresh("qemu-home");
    let absent = marvin(&home)
        .env("MARVIN_QEMU", "/no/qemu")
        .args(["run", "deb:6.1", "-q"])
        .output()
        .unwrap();
    insta::assert_snapshot!("qemu-absent", format_output(&absent, &home));
    let old = fresh("qemu.sh");
    write_program(
        &old,
        "#!/bin/sh\necho 'QEMU emulator version 5.2.0 (Debian)'\n",
    );
    let old = marvin(&home)
        .env("MARVIN_QEMU", &old)
        .args(["run", "deb:6.1", "-q"])
        .output()
        .unwrap();
    insta::assert_snapshot!("qemu-too-old", format_output(&old, &home));
    let doctor = marvin(&home)
        .env("MARVIN_QEMU", "/no/qemu")
        .arg("doctor")
        .output()
        .unwrap();
    let doctor = format_output(&doctor, &home);
    assert!(
        doctor.starts_with("exit 5") && doctor.contains("fix: marvin setup"),
        "{doctor}"
    );
}

#[test]
fn qemu_with_another_cpu_is_refused() {
    let home = fresh("other-cpu-home");
    let qemu = fresh("other-cpu/bin").join("qemu-system-x86_64");
    let script = "#!/bin/sh\nfor word; do shift; case $word in base,*) word=$word,family=6;; esac; set -- \"$@\" \"$word\"; \
                  done\nexec /usr/bin/qemu-system-x86_64 \"$@\"\n";
    std::fs::create_dir_all(qemu.parent().unwrap()).unwrap();
    write_program(&qemu, script);
    let names = names();
    let compare = [
        "compare",
        &names[0],
        &names[1],
        "--quick",
        "--workload",
        "getppid",
        "-q",
    ];
    let refused = marvin(&home)
        .env("MARVIN_QEMU", &qemu)
        .args(compare)
        .output()
        .unwrap();
    let refused = format_output(&refused, &home);
    assert!(
        refused.starts_with("exit 5") && refused.contains("CPUID 0x1.0 EAX"),
        "{refused}"
    );
    let doctor = marvin(&home)
        .env("MARVIN_QEMU", &qemu)
        .arg("doctor")
        .output()
        .unwrap();
    let doctor = format_output(&doctor, &home);
    assert!(
        doctor.starts_with("exit 5")
            && doctor.contains("WRONG numbers     cannot measure with QEMU 7.2"),
        "{doctor}"
    );
    // The same program by another hash shows the processor, and its numbers are its own.
    write_program(
        &qemu,
        "#!/bin/sh\nexec /usr/bin/qemu-system-x86_64 \"$@\"\n",
    );
    let marked = marvin(&home)
        .env("MARVIN_QEMU", &qemu)
        .args(compare)
        .output()
        .unwrap();
    let marked = format_output(&marked, &home);
    assert!(marked.contains("Numbers of another QEMU (7.2"), "{marked}");
    let known = format_output(&marvin(&home).args(compare).output().unwrap(), &home);
    assert!(
        !known.contains("another QEMU") && known.contains("getppid"),
        "{known}"
    );
    let doctor = format_output(&marvin(&home).arg("doctor").output().unwrap(), &home);
    assert!(
        doctor.contains("ok    job         getppid on 6.")
            && doctor.contains("this host gives the reference numbers: yes (sample 1250589"),
        "{doctor}"
    );
}

#[test]
fn full_disk_leaves_no_partial_file() {
    let home = fresh("full-home");
    std::fs::create_dir_all(&home).unwrap();
    // A file system in a mount namespace of its own, which ends with the test.
    let script = format!(
        "mount -t tmpfs -o size=64m,mode=700 none '{0}' && exec '{1}' --home '{0}' run '{2}' --quiet",
        home.display(),
        env!("CARGO_BIN_EXE_marvin"),
        names()[1]
    );
    let unshare: &[&str] = if is_root() {
        &["--mount"]
    } else {
        &["--user", "--map-root-user", "--mount"]
    };
    let output = std::process::Command::new("unshare")
        .args(unshare)
        .args(["sh", "-c", &script])
        .output()
        .unwrap();
    let answer = format_output(&output, &home);
    if answer.contains("unshare failed") || answer.contains("permission denied") {
        println!("skipped: this machine allows no mount namespace: {answer}");
        return;
    }
    assert!(
        answer.starts_with("exit 5") && answer.contains("no space"),
        "{answer}"
    );
}

#[test]
fn runs_of_different_machines_are_not_compared_silently() {
    let home = fresh("machines-home");
    let name = &names()[1];
    let run = [
        "--quiet",
        "run",
        name,
        "--workload",
        "getppid",
        "--quick",
        "--force",
    ];
    assert!(marvin(&home).args(run).output().unwrap().status.success());
    // A copy: a script would be another program to Marvin, even if it only starts QEMU.
    let copy = home.join("qemu");
    write_program(&copy, "#!/bin/sh\nexec qemu-system-x86_64 \"$@\"\n");
    let other = marvin(&home)
        .env("MARVIN_QEMU", &copy)
        .args(run)
        .output()
        .unwrap();
    assert!(other.status.success(), "{}", format_output(&other, &home));
    let list = output_of(&home, &["runs"]);
    let ids: Vec<&str> = list
        .lines()
        .filter_map(|line| line.split_whitespace().find(|w| w.starts_with("run_")))
        .collect();
    assert_eq!(ids.len(), 2, "{list}");
    let refused = output_of(&home, &["report", ids[0], ids[1]]);
    assert!(
        refused.starts_with("exit 2") && refused.contains("qemu"),
        "{refused}"
    );
    let mixed = output_of(&home, &["report", ids[0], ids[1], "--mixed-machines"]);
    assert!(
        mixed.contains("different machines") || mixed.to_lowercase().contains("warning"),
        "{mixed}"
    );
}

fn write_program(path: &Path, content: impl AsRef<[u8]>) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, content).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

pub(crate) fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").unwrap().uid() == 0
}
