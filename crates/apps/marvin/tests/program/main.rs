//! The program as users see it: real kernels, a real QEMU, and every wrong input.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stdout, reason = "a skipped check says why")]

mod a_server;
mod attacked;
mod beside_others;
mod bisected;
mod busy;
mod chained;
mod compiled;
mod completion;
mod cut_off;
mod documents;
mod exact;
mod explains;
mod foreign;
#[path = "../../../../lab/lab/tests/vm/fresh.rs"]
mod fresh;
mod gated;
mod guest_shell;
mod history;
mod hostile;
mod hosts;
mod imported;
mod imported_files;
mod imported_repeats;
mod interrupted;
mod kept;
mod killed;
mod mistakes;
mod observed;
mod one_value;
mod operated;
mod others_files;
mod own_program;
mod parted_paths;
mod patch_series;
mod planted_sharing;
mod prepared;
mod priced;
mod real_build;
mod real_programs;
mod real_source;
mod rebooted;
mod released;
mod replayed;
mod reported;
mod reserved;
mod scripted;
mod series_output;
mod served;
mod server;
mod setup;
mod shared_queue;
mod slurm;
mod soak;
mod sources;
mod stabilised;
mod stored;
mod tools;
mod tree_benchmarks;
mod upstream;
mod walls;
mod watched;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use subprocess::Shared;

/// Whether to test everything, as `make test-full` does.
fn is_full() -> bool {
    std::env::var_os("MARVIN_FULL").is_some()
}

/// Says that a test is left to `make test-full`, unless that runs.
fn is_left_to_full(why: &str) -> bool {
    if !is_full() {
        println!("skipped: {why}: make test-full runs it");
    }
    !is_full()
}

/// A directory that stays from one time to the next.
fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// The program with a data directory, without this machine's settings.
fn marvin(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_marvin"));
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("MARVIN_HOME", home);
    command
}

/// Runs it and returns exit code, standard output and standard error as one text, without the paths
/// of this machine.
fn output_of(home: &Path, arguments: &[&str]) -> String {
    format_output(&marvin(home).args(arguments).output().unwrap(), home)
}

fn format_output(output: &Output, home: &Path) -> String {
    let text =
        |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(&home.display().to_string(), "HOME");
    let answer = text(&output.stdout);
    let complaint = text(&output.stderr);
    format!(
        "exit {}\n-- out\n{answer}-- err\n{complaint}",
        output.status.code().unwrap_or(-1)
    )
}

/// Images of real kernels, fetched once: their data directory, and their files.
fn images() -> (PathBuf, Vec<PathBuf>) {
    let home = folder("kernels");
    let lab = lab_home_with_kernels(&home);
    (home, lab)
}

fn lab_home_with_kernels(home: &Path) -> Vec<PathBuf> {
    // One at a time: only one process may measure in a data directory.
    static ONE: Shared<()> = Shared::new(());
    let _one = ONE.lock();
    fn now() -> model::UnixTime {
        model::UnixTime::from(std::time::SystemTime::now())
    }
    let archives = archives::Archives::new(home, model::ArchiveSettings::default(), now);
    let cache = kernel::BuildCache::open(home, archives).unwrap();
    ["deb:6.1", "deb:6.12"]
        .map(|name| {
            cache
                .resolve(&name.parse().unwrap(), &|_| {})
                .unwrap()
                .boot_file()
                .path
                .clone()
        })
        .to_vec()
}

/// `path:` names of the two kernels.
fn names() -> [String; 2] {
    let (_, files) = images();
    [0, 1].map(|n| format!("path:{}", files[n].display()))
}
