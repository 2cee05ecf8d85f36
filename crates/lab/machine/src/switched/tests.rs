//! Settings of a real cgroup that are switched and set back, and records that are not believed.
#![expect(clippy::print_stdout, reason = "a skipped check says why")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{BYTES_MAX, RECORD, Switching, boot_id, check_value, chosen, kind};

/// The variables that make a test process switch a setting until it is killed: the folder and the
/// cgroup.
const FOLDER: &str = "MARVIN_TEST_SWITCH_FOLDER";
const CGROUP: &str = "MARVIN_TEST_SWITCH_CGROUP";
const WITHOUT: [(&str, &str, &str); 2] = [
    ("cpu.cfs_quota_us", "30000", "-1"),
    ("memory.high", "67108864", "max"),
];

/// A cgroup of a test with a limit.
struct Cgroup {
    folder: PathBuf,
    limit: PathBuf,
    value: &'static str,
    without: &'static str,
}

impl Cgroup {
    /// Makes one where this host allows it.
    fn new(name: &str) -> Option<Self> {
        let name = format!("marvin-switched-{name}-{}", std::process::id());
        for top in ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup"] {
            let folder = Path::new(top).join(&name);
            if fs::create_dir(&folder).is_err() {
                continue;
            }
            for (file, value, without) in WITHOUT {
                let limit = folder.join(file);
                if limit.exists() && fs::write(&limit, value).is_ok() {
                    return Some(Self {
                        folder,
                        limit,
                        value,
                        without,
                    });
                }
            }
            fs::remove_dir(&folder).unwrap();
        }
        println!("skipped: this host allows no cgroup with a limit");
        None
    }

    fn now(&self) -> String {
        fs::read_to_string(&self.limit).unwrap().trim().to_owned()
    }

    fn is_within(&self, limit: Duration, value: &str) -> bool {
        let begun = Instant::now();
        while self.now() != value && begun.elapsed() < limit {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.now() == value
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        drop(fs::remove_dir(&self.folder));
    }
}

fn switching(folder: &Path) -> Switching {
    Switching {
        folder: folder.join("run"),
        lock: folder.to_owned(),
    }
}

#[test]
fn setting_is_switched_and_set_back() {
    let folder = tempfile::tempdir().unwrap();
    let Some(cgroup) = Cgroup::new("back") else {
        return;
    };
    let switching = switching(folder.path());
    let lock = switching.try_lock().unwrap().unwrap();
    let record = folder.path().join("run").join(RECORD);
    for _ in 0..2 {
        let switched = lock.switch(&cgroup.limit, cgroup.without).unwrap();
        assert!(cgroup.now() == cgroup.without && record.exists());
        assert!(switching.try_lock().unwrap().is_none(), "one at a time");
        switched.set_back().unwrap();
        assert!(cgroup.now() == cgroup.value && !record.exists());
    }
    drop(lock.switch(&cgroup.limit, cgroup.without).unwrap());
    assert_eq!(cgroup.now(), cgroup.value);
    // A cgroup that is deleted meanwhile needs nothing.
    let switched = lock.switch(&cgroup.limit, cgroup.without).unwrap();
    fs::remove_dir(&cgroup.folder).unwrap();
    switched.set_back().unwrap();
    assert!(!record.exists());
}

/// Not a test by itself: the process that the next test kills.
#[test]
fn process_that_switches_until_killed() {
    let (Some(folder), Some(limit)) = (std::env::var_os(FOLDER), std::env::var_os(CGROUP)) else {
        return;
    };
    let lock = switching(Path::new(&folder)).try_lock().unwrap().unwrap();
    let without = WITHOUT
        .iter()
        .find(|(file, ..)| Path::new(&limit).ends_with(file))
        .unwrap()
        .2;
    let _switched = lock.switch(Path::new(&limit), without).unwrap();
    std::thread::sleep(Duration::from_secs(60));
}

#[test]
fn setting_is_set_back_however_marvin_ends() {
    let folder = tempfile::tempdir().unwrap();
    let Some(cgroup) = Cgroup::new("killed") else {
        return;
    };
    for signal in ["INT", "TERM", "HUP", "KILL"] {
        let mut marvin = Command::new(std::env::current_exe().unwrap())
            .args(["process_that_switches_until_killed", "--test-threads", "1"])
            .env(FOLDER, folder.path())
            .env(CGROUP, &cgroup.limit)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        assert!(
            cgroup.is_within(Duration::from_secs(20), cgroup.without),
            "{signal}: it was never switched"
        );
        let sent = Command::new("kill")
            .args(["-s", signal, &marvin.id().to_string()])
            .status()
            .unwrap();
        assert!(sent.success());
        marvin.wait().unwrap();
        assert!(
            cgroup.is_within(Duration::from_secs(5), cgroup.value),
            "{signal}: {}",
            cgroup.now()
        );
        // The guard has the lock until it is done.
        let begun = Instant::now();
        while switching(folder.path()).try_lock().unwrap().is_none()
            && begun.elapsed() < Duration::from_secs(5)
        {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(
            switching(folder.path()).set_back_left().unwrap(),
            None,
            "{signal}: nothing is left"
        );
    }
}

/// Writes a record as a Marvin leaves that was killed with its guard.
fn leave(folder: &Path, path: &Path, value: &str) -> PathBuf {
    let run = folder.join("run");
    fs::create_dir_all(&run).unwrap();
    fs::set_permissions(&run, fs::Permissions::from_mode(0o700)).unwrap();
    let record = run.join(RECORD);
    fs::write(
        &record,
        format!("{}\n{}\n{value}\n", boot_id(), path.display()),
    )
    .unwrap();
    fs::set_permissions(&record, fs::Permissions::from_mode(0o600)).unwrap();
    record
}

#[test]
fn next_marvin_sets_back_what_was_left() {
    let folder = tempfile::tempdir().unwrap();
    let Some(cgroup) = Cgroup::new("left") else {
        return;
    };
    let record = leave(folder.path(), &cgroup.limit, cgroup.value);
    fs::write(&cgroup.limit, cgroup.without).unwrap();
    let measuring = fs::File::open(folder.path()).unwrap();
    measuring.lock().unwrap();
    assert_eq!(switching(folder.path()).set_back_left().unwrap(), None);
    assert_eq!(
        cgroup.now(),
        cgroup.without,
        "the one that has the lock sets back"
    );
    drop(measuring);
    let answer = switching(folder.path()).set_back_left().unwrap().unwrap();
    assert!(
        answer.contains("a Marvin that was killed had changed it"),
        "{answer}"
    );
    assert!(cgroup.now() == cgroup.value && !record.exists());
    // Of an earlier boot nothing is left.
    fs::write(
        &record,
        format!("other\n{}\n{}\n", cgroup.limit.display(), cgroup.without),
    )
    .unwrap();
    assert_eq!(switching(folder.path()).set_back_left().unwrap(), None);
    assert!(cgroup.now() == cgroup.value && !record.exists());
}

#[test]
fn record_of_others_is_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let victim = folder.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    let refusal = || {
        switching(folder.path())
            .set_back_left()
            .unwrap_err()
            .to_string()
    };
    let record = leave(folder.path(), &victim, "0");
    assert!(
        refusal().ends_with("it is no setting that Marvin switches"),
        "{}",
        refusal()
    );
    fs::remove_file(&record).unwrap();
    let record = leave(
        folder.path(),
        Path::new("/sys/kernel/mm/transparent_hugepage/enabled"),
        "never",
    );
    for (mode, answer) in [
        (0o622, "other users may write it"),
        (0o602, "other users may write it"),
    ] {
        fs::set_permissions(&record, fs::Permissions::from_mode(mode)).unwrap();
        assert!(refusal().ends_with(answer), "{}", refusal());
    }
    fs::set_permissions(&record, fs::Permissions::from_mode(0o600)).unwrap();
    fs::hard_link(&record, folder.path().join("other-name")).unwrap();
    assert!(refusal().ends_with("it is no record"), "{}", refusal());
    fs::remove_file(folder.path().join("other-name")).unwrap();
    fs::rename(&record, folder.path().join("record")).unwrap();
    symlink(folder.path().join("record"), &record).unwrap();
    assert!(refusal().contains("it is a link"), "{}", refusal());
    fs::remove_file(&record).unwrap();
    fs::write(&record, vec![b'x'; 2 * usize::try_from(BYTES_MAX).unwrap()]).unwrap();
    assert!(refusal().ends_with("it is no record"), "{}", refusal());
    if std::os::unix::fs::chown(&record, Some(65534), None).is_ok() {
        assert!(
            refusal().contains("it belongs to user 65534"),
            "{}",
            refusal()
        );
    }
    fs::set_permissions(folder.path().join("run"), fs::Permissions::from_mode(0o777)).unwrap();
    assert!(
        refusal().ends_with("other users may write it"),
        "{}",
        refusal()
    );
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
}

#[test]
fn only_settings_that_marvin_switches_are_allowed() {
    let refused = [
        "/etc/passwd",
        "/proc/sys/kernel/core_pattern",
        "/sys/fs/cgroup/../../../etc/cpu.max",
        "/sys/fs/cgroup/a/./../cpu.max",
        "cpu.max",
        "/sys/class/bdi/../x/strict_limit",
        "/sys/class/bdi/8:0/x/strict_limit",
        "/sys/fs/cgroup/cgroup.procs",
    ];
    assert!(refused.iter().all(|path| kind(Path::new(path)).is_none()));
    assert!(
        is_allowed("/sys/fs/cgroup/a/cpu.max", "30000 100000")
            && is_allowed("/sys/fs/cgroup/a/cpu.max", "max")
    );
    assert!(
        is_allowed("/proc/sys/vm/dirty_bytes", "1099511627776")
            && is_allowed("/sys/class/bdi/254:0/strict_limit", "0")
    );
    assert!(
        !is_allowed("/sys/fs/cgroup/a/cpu.max", "max; reboot")
            && !is_allowed("/proc/sys/vm/dirty_bytes", "")
    );
    // The right name in another file system is no setting.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cpu.max");
    fs::write(&file, "1 2\n").unwrap();
    let error = switching(folder.path())
        .try_lock()
        .unwrap()
        .unwrap()
        .switch(&file, "max")
        .unwrap_err()
        .to_string();
    assert!(
        error.ends_with("the kernel's setting is not there"),
        "{error}"
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), "1 2\n");
}

fn is_allowed(path: &str, value: &str) -> bool {
    check_value(Path::new(path), value).is_ok()
}

#[test]
fn chosen_word_is_the_value() {
    assert_eq!(chosen("always [madvise] never\n"), "madvise");
    assert_eq!(chosen("30000\n"), "30000");
}
