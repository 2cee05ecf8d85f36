//! Why a host has no walls: the cause and the fix behind what bubblewrap printed. Where walls are
//! made and tried is in `walls.rs`.

use std::path::Path;

/// Why programs run without walls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoWalls {
    /// The cause, with bubblewrap's own words.
    pub why: String,
    /// What gives this host walls.
    pub fix: String,
}

/// The namespaces that walls are made of, by the names of their limits.
const NAMESPACES: [&str; 7] = ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup"];

impl NoWalls {
    /// Returns the cause behind what bubblewrap printed. `sysctls` is /proc/sys.
    pub(crate) fn explain(printed: &str, sysctls: &Path) -> Self {
        let cause = Cause::find(printed, sysctls);
        Self {
            why: format!("{} ({printed})", cause.why),
            fix: cause.fix,
        }
    }

    /// Returns the cause if bubblewrap is missing.
    pub(crate) fn without_program() -> Self {
        Self {
            why: "there is no program `bwrap`".to_owned(),
            fix: "install bubblewrap".to_owned(),
        }
    }
}

/// A cause without what was printed.
struct Cause {
    why: String,
    fix: String,
}

impl Cause {
    fn new(why: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            fix: fix.into(),
        }
    }

    fn find(printed: &str, sysctls: &Path) -> Self {
        let number = |name: &str| {
            let text = std::fs::read_to_string(sysctls.join(name)).ok()?;
            text.trim().parse::<u64>().ok()
        };
        let has = |words: &[&str]| words.iter().any(|word| printed.contains(word));
        if has(&["ENOSPC", "No space left", "max_*_namespaces"]) {
            let zero = NAMESPACES
                .into_iter()
                .find(|kind| number(&format!("user/max_{kind}_namespaces")) == Some(0));
            return match zero {
                Some(kind) => Self::new(
                    format!("user.max_{kind}_namespaces is 0"),
                    format!("sudo sysctl user.max_{kind}_namespaces=10000"),
                ),
                None => Self::new(
                    "the limit of namespaces is reached",
                    "raise user.max_user_namespaces and the others of /proc/sys/user, also outside of this container",
                ),
            };
        }
        if has(&["mount proc"]) {
            return Self::new(
                "this container hides parts of /proc, so the kernel refuses a new one",
                "podman: --security-opt unmask=ALL; docker: --security-opt systempaths=unconfined",
            );
        }
        if has(&["loopback", "RTM_NEW", "NETLINK"]) {
            return Self::new(
                "this container does not let a new network namespace be set up",
                "allow sockets of AF_NETLINK in its seccomp filter, or --security-opt seccomp=unconfined",
            );
        }
        if has(&["execvp"]) {
            return Self::new("walls show no directory of PATH", "put /usr/bin into PATH");
        }
        if number("kernel/unprivileged_userns_clone") == Some(0) {
            return Self::new(
                "kernel.unprivileged_userns_clone is 0",
                "sudo sysctl kernel.unprivileged_userns_clone=1",
            );
        }
        if number("kernel/apparmor_restrict_unprivileged_userns") == Some(1) {
            return Self::new(
                "AppArmor restricts user namespaces (kernel.apparmor_restrict_unprivileged_userns is 1)",
                "an AppArmor profile for bwrap with `userns,`: see /etc/apparmor.d/bwrap-userns-restrict, or \
                 sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0",
            );
        }
        if has(&["uid map", "gid map", "setgroups"]) {
            return Self::new(
                "this host makes user namespaces but does not let users be mapped in them",
                "mount /proc writable, or allow it in AppArmor or SELinux",
            );
        }
        if has(&["mount", "slave", "pivot_root", "tmpfs"]) {
            return Self::new(
                "this host makes namespaces but refuses mounts in them",
                "allow mounts for bwrap in AppArmor, SELinux or the container's seccomp filter (dmesg names the denial)",
            );
        }
        Self::new(
            "this host refuses user namespaces",
            "allow them in the container's seccomp filter, AppArmor or SELinux (dmesg names the denial)",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::NoWalls;

    /// Explains a message on a host with these files in /proc/sys.
    fn explain(printed: &str, files: &[(&str, &str)]) -> NoWalls {
        let sysctls = tempfile::tempdir().unwrap();
        for (name, value) in files {
            let path = sysctls.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, value).unwrap();
        }
        NoWalls::explain(printed, sysctls.path())
    }

    #[test]
    fn reached_limit_is_no_full_disk() {
        let printed = "bwrap: Creating new namespace failed: No space left on device";
        let named = explain(
            printed,
            &[
                ("user/max_user_namespaces", "100\n"),
                ("user/max_net_namespaces", "0\n"),
            ],
        );
        assert_eq!(
            named.why,
            format!("user.max_net_namespaces is 0 ({printed})")
        );
        assert_eq!(named.fix, "sudo sysctl user.max_net_namespaces=10000");
        let unnamed = explain(printed, &[]);
        assert!(
            unnamed
                .why
                .starts_with("the limit of namespaces is reached"),
            "{unnamed:?}"
        );
    }

    #[test]
    fn causes_are_distinguished() {
        for (printed, files, why) in [
            (
                "bwrap: Can't mount proc on /newroot/proc: Operation not permitted",
                &[][..],
                "this container hides parts of /proc",
            ),
            (
                "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted",
                &[],
                "this container does not let a new network namespace be set up",
            ),
            (
                "bwrap: No permissions to create new namespace",
                &[("kernel/unprivileged_userns_clone", "0\n")],
                "kernel.unprivileged_userns_clone is 0",
            ),
            (
                "bwrap: setting up uid map: Permission denied",
                &[("kernel/apparmor_restrict_unprivileged_userns", "1\n")],
                "AppArmor restricts user namespaces",
            ),
            (
                "bwrap: setting up uid map: Read-only file system",
                &[],
                "this host makes user namespaces but does not let users be mapped",
            ),
            (
                "bwrap: Failed to make / slave: Permission denied",
                &[],
                "this host makes namespaces but refuses mounts",
            ),
            (
                "bwrap: No permissions to create new namespace",
                &[("kernel/unprivileged_userns_clone", "1\n")],
                "this host refuses user namespaces",
            ),
        ] {
            let explained = explain(printed, files);
            assert!(explained.why.starts_with(why), "{explained:?}");
            assert!(explained.why.ends_with(&format!("({printed})")));
        }
    }
}
