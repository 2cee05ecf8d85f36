//! Other hosts, as roots of this one: the same table, the same samples. `make test-full` prints
//! the matrix of docs/hosts.md.

use std::path::{Path, PathBuf};
use std::process::Command;

use archives::{Debian, unpack_deb};
use model::{DebianSettings, UnixTime};

use crate::bisected::{Tree, regressed};
use crate::fresh::{fresh, remove};
use crate::setup::{Samples, archive_moved_on, read_samples};
use crate::{folder, format_output, images, is_left_to_full, marvin, names, output_of};

/// A host's root file system, and the program that starts on it.
struct Host {
    root: PathBuf,
    program: PathBuf,
    home: PathBuf,
    /// Directories of this host, where they are here: texts name them.
    shared: Vec<PathBuf>,
}

/// What a root is made of.
enum Recipe {
    /// Packages with all they depend on, unpacked: no package manager, no compiler.
    Unpacked {
        suite: &'static str,
        packages: &'static [&'static str],
    },
    /// A distribution as mmdebstrap installs it, with the walls' program and what builds kernels.
    Installed { suite: &'static str },
}

/// Makes a root, or takes the one of last time.
fn make_root(name: &str, recipe: &Recipe) -> Result<PathBuf, String> {
    let root = folder("hosts").join(name);
    let complete = folder("hosts").join(format!("{name}.complete"));
    if complete.exists() {
        return Ok(root);
    }
    drop(std::fs::remove_dir_all(&root));
    std::fs::create_dir_all(&root).unwrap();
    match recipe {
        Recipe::Unpacked { suite, packages } => unpack_root(suite, packages, &root)?,
        Recipe::Installed { suite } => install_root(suite, &root)?,
    }
    for directory in ["proc", "dev", "tmp", "data"] {
        std::fs::create_dir_all(root.join(directory)).unwrap();
    }
    std::fs::write(complete, "").unwrap();
    Ok(root)
}

fn unpack_root(suite: &str, packages: &[&str], root: &Path) -> Result<(), String> {
    fn now() -> UnixTime {
        UnixTime::from(std::time::SystemTime::now())
    }
    let home = folder("hosts").join("packages");
    let debian = Debian::new(&home, DebianSettings::default(), now);
    let packages: Vec<String> = packages.iter().map(|name| (*name).to_owned()).collect();
    let closure = debian.closure(suite, &packages);
    for needed in closure.map_err(|error| error.to_string())? {
        let file = debian.download(&needed.package, &home);
        unpack_deb(&file.map_err(|error| error.to_string())?, root).unwrap();
    }
    link_applets(root);
    Ok(())
}

/// Makes busybox's links, as a system that has nothing else does when it is installed.
fn link_applets(root: &Path) {
    let Some(busybox) = ["bin/busybox", "usr/bin/busybox"]
        .map(|path| root.join(path))
        .into_iter()
        .find(|path| path.is_file())
    else {
        return;
    };
    let listed = Command::new(&busybox).arg("--list").output().unwrap();
    assert!(listed.status.success());
    for applet in String::from_utf8(listed.stdout).unwrap().lines() {
        let link = busybox.with_file_name(applet);
        if link.symlink_metadata().is_err() {
            std::os::unix::fs::symlink("busybox", link).unwrap();
        }
    }
}

fn install_root(suite: &str, root: &Path) -> Result<(), String> {
    let output = Command::new("mmdebstrap")
        .args([
            "-q",
            "--variant=minbase",
            "--include=bubblewrap,git,make,gcc,flex,bison,bc,libelf-dev",
        ])
        // What is tested is Marvin's archive, not apt's: a mirror that lags behind serves a root.
        .args(["--aptopt=Acquire::Check-Valid-Until \"false\""])
        .args(["--dpkgopt=path-exclude=/usr/share/doc/*", suite])
        .arg(root)
        .arg("http://deb.debian.org/debian")
        .output()
        .map_err(|error| format!("mmdebstrap: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(format!("mmdebstrap {suite}: {}", text.trim()))
}

impl Host {
    fn new(name: &'static str, recipe: &Recipe, program: &Path) -> Result<Self, String> {
        let home = folder("hosts").join(format!("{name}-data"));
        // What was fetched stays from one time to the next, what was measured does not.
        for entry in std::fs::read_dir(&home).into_iter().flatten().flatten() {
            if !["qemu", "archives"].contains(&&*entry.file_name().to_string_lossy()) {
                remove(&entry.path());
            }
        }
        std::fs::create_dir_all(&home).unwrap();
        Ok(Self {
            root: make_root(name, recipe)?,
            program: program.to_owned(),
            home,
            shared: vec![images().0],
        })
    }

    /// The program on this host, with the network but nothing else of ours.
    fn command(&self) -> Command {
        let mut command = Command::new("bwrap");
        command.arg("--bind").arg(&self.root).arg("/");
        command.args(["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]);
        let names = "/etc/resolv.conf";
        command.args(["--dir", "/etc", "--ro-bind-try", names, names]);
        command.arg("--bind").arg(&self.home).arg("/data");
        for shared in &self.shared {
            command.arg("--ro-bind").arg(shared).arg(shared);
        }
        command.arg("--ro-bind").arg(&self.program).arg("/marvin");
        let path = "/usr/bin:/bin:/usr/sbin:/sbin";
        command.args(["--clearenv", "--setenv", "PATH", path]);
        command.args(["--setenv", "MARVIN_HOME", "/data", "--chdir", "/"]);
        command.arg("/marvin");
        command
    }

    fn run(&self, arguments: &[&str]) -> String {
        let output = self.command().args(arguments).output().unwrap();
        without_time(&format_output(&output, Path::new("/data")))
    }
}

/// What doctor finds wrong with a root. Disk and memory are this host's, which may be short of
/// either and passes the test with less.
fn wrong_lines(doctor: &str) -> Vec<&str> {
    assert!(doctor.contains("\nthis host is "), "{doctor}");
    let wrong = doctor.lines().filter(|line| line.starts_with("WRONG"));
    wrong
        .filter(|line| !["disk", "memory"].contains(&line[6..].split(' ').next().unwrap_or("")))
        .collect()
}

/// What `marvin series` says on a host without git, beside its exit code.
const NO_GIT: &str = "no `git` on this host";

/// Runs the program here.
fn run_here(home: &Path, arguments: &[&str]) -> String {
    without_time(&output_of(home, arguments))
}

/// A text without its one line that differs from run to run.
fn without_time(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("Compared:"));
    lines.collect::<Vec<_>>().join("\n")
}

/// What a host without apt, dpkg, a compiler and QEMU has: a shell, and what the walls need.
const WITHOUT_APT: Recipe = Recipe::Unpacked {
    suite: "trixie",
    packages: &[
        "base-files",
        "dash",
        "coreutils",
        "util-linux",
        "bubblewrap",
        "libgcc-s1",
    ],
};

#[test]
fn root_without_apt_gives_this_hosts_samples() {
    if is_left_to_full("a root of Debian 13 is fetched and set up") {
        return;
    }
    let program = Path::new(env!("CARGO_BIN_EXE_marvin"));
    let host = match Host::new("without-apt", &WITHOUT_APT, program) {
        Ok(host) => host,
        Err(reason) => {
            println!("skipped: no root of Debian 13: {reason}");
            return;
        }
    };
    let text = host.run(&["setup", "-q"]);
    if archive_moved_on(&text) {
        return;
    }
    assert!(text.starts_with("exit 0"), "{text}");
    let doctor = host.run(&["doctor"]);
    assert_eq!(wrong_lines(&doctor), Vec::<&str>::new(), "{doctor}");
    let [older, newer] = names();
    let compare = ["compare", &older, &newer, "--quick", "-q", "--force"];
    let compare = [&compare[..], &["--workload", "getppid,fork-exit"]].concat();
    let home = fresh("hosts-here");
    let here = run_here(&home, &compare);
    assert!(here.contains("fork-exit"), "{here}");
    assert_eq!(host.run(&compare), here);
    assert_eq!(
        read_samples(&mut host.command()),
        read_samples(&mut marvin(&home))
    );
}

/// The roots of the matrix in docs/hosts.md, and whether only a static program starts there.
const HOSTS: [(&str, Recipe, bool); 5] = [
    ("Debian 11", Recipe::Installed { suite: "bullseye" }, true),
    ("Debian 13", Recipe::Installed { suite: "trixie" }, false),
    ("Debian sid", Recipe::Installed { suite: "sid" }, false),
    ("Debian 13 without apt, dpkg, compiler", WITHOUT_APT, false),
    (
        "musl and busybox only",
        Recipe::Unpacked {
            suite: "bookworm",
            packages: &["musl", "busybox-static"],
        },
        true,
    ),
];

/// Commands whose text must be this host's, with their columns.
const COMMANDS: [(&str, &[&str]); 3] = [
    (
        "compare",
        &["compare", "deb:6.1", "deb:6.12", "--quick", "-q", "--force"],
    ),
    (
        "profile",
        &[
            "profile",
            "deb:6.1",
            "deb:6.12",
            "--workload",
            "fork-exit",
            "-q",
        ],
    ),
    (
        "exact-smp",
        &[
            "compare",
            "deb:6.1",
            "deb:6.12",
            "--quick",
            "-q",
            "--force",
            "--on",
            "exact-smp",
            "--workload",
            "share-mmap",
        ],
    ),
];

/// What this host gives.
struct Here {
    /// The texts of the commands.
    texts: Vec<String>,
    /// The samples after them.
    samples: Samples,
    /// A tree whose kernels are images that were built once.
    tree: Tree,
    /// The text of its series.
    series: String,
    /// All samples after it.
    all_samples: Samples,
}

impl Here {
    fn new(home: &Path) -> Self {
        let texts = COMMANDS.iter().map(|(_, command)| run_here(home, command));
        let texts = texts.collect();
        let samples = read_samples(&mut marvin(home));
        let (tree, _) = regressed("hosts-tree");
        let series = run_here(home, &series_of(&tree.name()));
        assert!(series.contains("1 of 2 workloads changed"), "{series}");
        Self {
            texts,
            samples,
            tree,
            series,
            all_samples: read_samples(&mut marvin(home)),
        }
    }
}

fn series_of(tree: &str) -> [&str; 9] {
    let range = "good..main";
    let few = "getppid,fork-exit";
    [
        "series",
        range,
        "--tree",
        tree,
        "--workload",
        few,
        "--quick",
        "-q",
        "--force",
    ]
}

/// What a series gave on one host, in a word.
fn try_series(host: &Host, here: &Here) -> String {
    let text = host.run(&series_of(&here.tree.name()));
    if text.contains(NO_GIT) {
        return "needs git".to_owned();
    }
    let is_equal = text == here.series && read_samples(&mut host.command()) == here.all_samples;
    if !is_equal {
        println!("series here:\n{}\nthere:\n{text}", here.series);
    }
    if is_equal { "equal" } else { "differs" }.to_owned()
}

/// What was seen of one host: a word for each column.
fn try_host(host: &Host, here: &Here) -> Vec<String> {
    let doctor = host.run(&["doctor"]);
    let mut cells = vec![if wrong_lines(&doctor).is_empty() {
        "fit".to_owned()
    } else {
        println!("{doctor}");
        "not fit".to_owned()
    }];
    for ((_, command), expected) in COMMANDS.iter().zip(&here.texts) {
        let text = host.run(command);
        if text == *expected {
            cells.push("equal".to_owned());
        } else {
            println!("{command:?} here:\n{expected}\nthere:\n{text}");
            cells.push("differs".to_owned());
        }
    }
    let equal = read_samples(&mut host.command()) == here.samples;
    cells.push(if equal { "equal" } else { "differ" }.to_owned());
    cells.push(try_series(host, here));
    cells
}

#[test]
fn every_root_gives_this_hosts_samples() {
    if is_left_to_full("five roots of other hosts are made") {
        return;
    }
    let home = fresh("hosts-all-here");
    let here = Here::new(&home);
    println!("| host | doctor | compare | profile | exact-smp | samples | series |");
    println!("|---|---|---|---|---|---|---|");
    let mut wrong = Vec::new();
    for (name, recipe, needs_static) in &HOSTS {
        let Some(program) = program_for(*needs_static) else {
            println!("| {name} | not tried: make test-full builds the static program | | | | | |");
            continue;
        };
        let mut host = match Host::new(name, recipe, &program) {
            Ok(host) => host,
            Err(reason) => {
                println!("| {name} | not tried: {reason} | | | | | |");
                continue;
            }
        };
        let text = host.run(&["setup", "-q"]);
        if archive_moved_on(&text) {
            return;
        }
        assert!(text.starts_with("exit 0"), "{name}: {text}");
        host.shared.push(here.tree.folder.to_path_buf());
        let cells = try_host(&host, &here);
        println!("| {name} | {} |", cells.join(" | "));
        // An unpacked root has no git, an installed one builds kernels.
        let is_installed = matches!(recipe, Recipe::Installed { .. });
        let lacks_git = is_installed && cells.iter().any(|cell| cell == "needs git");
        let differs = cells
            .iter()
            .any(|cell| cell.starts_with("not") || cell.starts_with("differ"));
        if differs || lacks_git {
            wrong.push(*name);
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// The program that starts on a host: the static one of `make release`, or this test's.
fn program_for(needs_static: bool) -> Option<PathBuf> {
    if !needs_static {
        return Some(PathBuf::from(env!("CARGO_BIN_EXE_marvin")));
    }
    let program = std::env::var_os("MARVIN_STATIC").map(PathBuf::from)?;
    program.exists().then_some(program)
}
