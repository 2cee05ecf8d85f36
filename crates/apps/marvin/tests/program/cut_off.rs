//! Backups, restores and published pages that are killed at any moment: nothing half-written passes
//! for whole, and the next run succeeds or says what to do.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use store::Store;

use crate::fresh::fresh;
use crate::history::fill;
use crate::{marvin, output_of};

/// Moments at which a command is killed, evenly over its time.
const MOMENTS: u32 = 8;
/// Files that take time to copy, and their size (bytes).
const FILES: usize = 6;
const SIZE: usize = 4 << 20;
/// SIGKILL.
const KILL: i32 = 9;

/// Makes a data directory with results and with files that take time to copy.
fn fill_home(home: &Path) {
    fs::create_dir_all(home.join("machines")).unwrap();
    fill(&Store::open(home).unwrap());
    for number in 0..FILES {
        fs::write(big(home, number), vec![number as u8; SIZE]).unwrap();
    }
}

fn big(home: &Path, number: usize) -> std::path::PathBuf {
    home.join(format!("machines/big-{number}"))
}

/// Runs a command, and returns how long it took.
fn time_of(home: &Path, arguments: &[&str]) -> Duration {
    let begun = Instant::now();
    let output = output_of(home, arguments);
    // A report says that something is worse.
    assert!(
        output.starts_with("exit 0") || output.starts_with("exit 1"),
        "{output}"
    );
    begun.elapsed()
}

/// Kills a command after a time; returns whether it was killed before it ended.
fn is_killed(home: &Path, arguments: &[&str], after: Duration) -> bool {
    let mut command = marvin(home);
    command.args(arguments).stdout(Stdio::null());
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(after);
    drop(child.kill());
    child.wait().unwrap().signal() == Some(KILL)
}

fn is_whole(backup: &Path) -> bool {
    let mut sums = Command::new("sha256sum");
    sums.args(["--check", "--quiet", "SHA256SUMS"]);
    sums.current_dir(backup).status().unwrap().success()
}

#[test]
fn killed_backup_and_restore_pass_for_nothing() {
    let home = fresh("cut-off-home");
    fill_home(&home);
    let place = fresh("cut-off-backups");
    fs::create_dir_all(&place).unwrap();
    let backup = place.join("whole");
    let name = backup.display().to_string();
    let whole = time_of(&home, &["backup", &name]);
    let mut killed = 0;
    for moment in 0..MOMENTS {
        let to = place.join(format!("backup-{moment}"));
        let words = ["backup", &to.display().to_string()];
        killed += u32::from(is_killed(&home, &words, whole * moment / MOMENTS));
        let part = to.with_added_extension("part");
        if to.exists() {
            assert!(is_whole(&to), "{moment}");
            continue;
        }
        let mut next = output_of(&home, &words);
        if part.exists() {
            assert!(
                next.starts_with("exit 2") && next.contains(".part: it exists\nhint: "),
                "{next}"
            );
            fs::remove_dir_all(&part).unwrap();
            next = output_of(&home, &words);
        }
        assert!(next.starts_with("exit 0") && is_whole(&to), "{next}");
    }
    let timed = fresh("cut-off-timed");
    let whole = time_of(&timed, &["restore", &name]);
    for moment in 0..MOMENTS {
        let restored = fresh(&format!("cut-off-restored-{moment}"));
        let words = ["restore", &name];
        killed += u32::from(is_killed(&restored, &words, whole * moment / MOMENTS));
        if !restored.join("marvin.db").exists() {
            let next = output_of(&restored, &words);
            assert!(next.starts_with("exit 0"), "{moment}: {next}");
        }
        let checked = output_of(&restored, &["store", "check"]);
        assert!(checked.contains("damaged 0"), "{moment}: {checked}");
        for number in 0..FILES {
            assert_eq!(
                fs::read(big(&restored, number)).unwrap(),
                fs::read(big(&home, number)).unwrap()
            );
        }
    }
    assert!(killed > MOMENTS / 2, "the moments come too late: {killed}");
}

#[test]
fn killed_report_and_publish_leave_whole_pages() {
    let home = fresh("cut-off-published");
    fill_home(&home);
    let place = fresh("cut-off-pages");
    fs::create_dir_all(&place).unwrap();
    let pages = place.join("pages");
    let report = place.join("report.html");
    let publish = ["publish", &pages.display().to_string()];
    let write = [
        "report",
        "6.1.170",
        "6.12.100",
        "--format",
        "html",
        "--output",
        &report.display().to_string(),
    ];
    for words in [&publish[..], &write] {
        let whole = time_of(&home, words);
        let mut killed = 0;
        for moment in 0..MOMENTS {
            fs::remove_file(&report).ok();
            killed += u32::from(is_killed(&home, words, whole * moment / MOMENTS));
            if pages.exists() {
                assert!(pages.join(".marvin").exists() && pages.join("index.html").exists());
            }
            if let Ok(page) = fs::read_to_string(&report) {
                assert!(page.trim_end().ends_with("</html>"), "{moment}");
            }
        }
        assert!(killed > 0, "the moments come too late");
        time_of(&home, words);
    }
    let left: Vec<_> = fs::read_dir(&place)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .filter(|name| name.to_string_lossy().starts_with(".pages."))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}
