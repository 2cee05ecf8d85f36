//! What this host has: the processors that Marvin may use, and their name.

use std::fs;
use std::path::Path;

use crate::hash;

/// Returns the host processors that Marvin may use.
pub(crate) fn allowed_processors() -> Vec<usize> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))
        .unwrap_or("0");
    processors(list)
}

/// Returns how many host processors Marvin may use.
#[must_use]
pub fn processor_count() -> u32 {
    u32::try_from(allowed_processors().len().max(1)).unwrap_or(u32::MAX)
}

/// Returns the name of the host's processors.
pub(crate) fn processor_name() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    name.map_or_else(
        || "an unknown processor".to_owned(),
        |(_, name)| name.trim().to_owned(),
    )
}

/// Returns who uses this host, for people who see what is held: `anna@build`. The kernel knows the
/// user, and variables of the environment, which anyone may set, are not asked.
#[must_use]
pub fn person() -> String {
    let uid = rustix::process::getuid().as_raw();
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    // Users of a directory service have no line there.
    let user = name_of(uid, &users).map_or_else(|| format!("uid-{uid}"), str::to_owned);
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    model::sanitize_line(&format!("{user}@{}", host.trim()))
}

/// Returns the name of a user in the text of passwd(5).
fn name_of(uid: u32, users: &str) -> Option<&str> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        let number: u32 = fields.nth(1)?.parse().ok()?;
        (number == uid && !name.is_empty()).then_some(name)
    })
}

/// Digits of a host's mark.
const MARK_DIGITS: usize = 8;

/// Returns what tells this host from others of its name: digits of a hash of its machine id, which
/// is confidential, or of its boot where it has none.
#[must_use]
pub fn host_mark() -> String {
    mark_of(
        [
            "/etc/machine-id",
            "/var/lib/dbus/machine-id",
            "/proc/sys/kernel/random/boot_id",
        ]
        .map(Path::new),
    )
}

fn mark_of<'a>(files: impl IntoIterator<Item = &'a Path>) -> String {
    // An image for many hosts has an empty file, or the word that systemd replaces at the first
    // boot.
    let is_id = |id: &String| !id.is_empty() && id != "uninitialized";
    let ids = files.into_iter().map(|file| {
        fs::read_to_string(file)
            .unwrap_or_default()
            .trim()
            .to_owned()
    });
    let mark = hash(&[
        b"marvin",
        ids.into_iter().find(is_id).unwrap_or_default().as_bytes(),
    ]);
    mark.chars().take(MARK_DIGITS).collect()
}

/// Returns how many processors a list has; without a list, one.
#[must_use]
pub fn count_processors(list: Option<&str>) -> u32 {
    list.map_or(1, |list| {
        u32::try_from(processors(list).len().max(1)).unwrap_or(u32::MAX)
    })
}

/// Parses a list such as `0-1,4`.
pub(crate) fn processors(list: &str) -> Vec<usize> {
    list.split(',')
        .filter_map(|part| {
            let (first, last) = part
                .trim()
                .split_once('-')
                .unwrap_or((part.trim(), part.trim()));
            Some(first.parse::<usize>().ok()?..=last.parse::<usize>().ok()?.min(4096))
        })
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{count_processors, mark_of, name_of, processors};

    #[test]
    fn lists_are_read() {
        assert_eq!(processors("\t0-2,5"), [0, 1, 2, 5]);
        assert_eq!(processors("x"), Vec::<usize>::new());
        assert_eq!(
            [Some("2-7"), Some("x"), None].map(count_processors),
            [6, 1, 1]
        );
    }

    #[test]
    fn users_are_found_by_their_number() {
        let users =
            "root:x:0:0:root:/root:/bin/bash\nbroken\nanna:x:1000:1000::/home/anna:/bin/sh\n";
        assert_eq!(name_of(1000, users), Some("anna"));
        assert_eq!(name_of(1001, users), None);
    }

    #[test]
    fn hosts_of_one_name_have_different_marks() {
        let folder = tempfile::tempdir().unwrap();
        let [id, boot] = ["machine-id", "boot_id"].map(|name| folder.path().join(name));
        let mark = |text: &str| {
            std::fs::write(&id, text).unwrap();
            mark_of([id.as_path(), &boot])
        };
        std::fs::write(&boot, "a\n").unwrap();
        let first = mark("0123456789abcdef0123456789abcdef\n");
        assert_eq!(
            (first.len(), &first),
            (8, &mark("0123456789abcdef0123456789abcdef\n"))
        );
        assert!(
            !"0123456789abcdef".contains(&first),
            "the id is confidential"
        );
        assert_ne!(first, mark("1123456789abcdef0123456789abcdef\n"));
        // Without an id, the boot tells them apart.
        let boots = ["", "uninitialized\n"].map(&mark);
        assert_eq!(boots[0], boots[1]);
        std::fs::write(&boot, "b\n").unwrap();
        assert_ne!(boots[0], mark(""));
    }
}
