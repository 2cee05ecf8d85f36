//! Debian's kernels for 64-bit Arm, by apt with directories of its own; also for `tests/oracle`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the kernels come from.
const SOURCE: &str = "deb [arch=arm64 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian trixie main\n";

/// A kernel's package.
pub(crate) struct Unpacked {
    /// Its release and flavour.
    pub(crate) name: String,
    /// The directory with its files.
    pub(crate) root: PathBuf,
}

/// Runs a program, and returns its output.
pub(crate) fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Gets the kernel that a package of Debian's stands for.
pub(crate) fn fetch(home: &Path, package: &str) -> Unpacked {
    let apt = home.join("apt");
    let settings = apt.join("settings");
    if !settings.exists() {
        for name in ["lists/partial", "archives/partial"] {
            fs::create_dir_all(apt.join(name)).unwrap();
        }
        fs::write(apt.join("sources.list"), SOURCE).unwrap();
        let at = apt.display();
        let text = format!(
            "Dir::State::lists \"{at}/lists\";\nDir::State::status \"/dev/null\";\nDir::Cache \"{at}\";\n\
            Dir::Etc::sourcelist \"{at}/sources.list\";\nDir::Etc::sourceparts \"-\";\nAPT::Architecture \"arm64\";\n\
            APT::Architectures {{ \"arm64\"; }};\nAPT::Sandbox::User \"\";\n"
        );
        fs::write(&settings, text).unwrap();
    }
    let run = |program: &str, words: &[&str]| {
        output(
            Command::new(program)
                .args(words)
                .env("APT_CONFIG", &settings)
                .current_dir(&apt),
        )
    };
    run("apt-get", &["-qq", "update"]);
    let depends = run("apt-cache", &["depends", "--important", package]);
    let name = depends
        .lines()
        .find_map(|line| line.trim().strip_prefix("Depends: linux-image-"))
        .unwrap()
        .to_owned();
    let root = home.join(&name);
    if !root.exists() {
        run(
            "apt-get",
            &["-qq", "download", &format!("linux-image-{name}")],
        );
        let unpack = format!(
            "dpkg-deb -x linux-image-{name}_*.deb unpacked && mv unpacked {}",
            root.display()
        );
        run("sh", &["-c", &unpack]);
    }
    Unpacked { name, root }
}
