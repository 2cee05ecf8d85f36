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

/// A file that docker puts into its containers, and one of podman's.
const CONTAINER_FILES: [(&str, &str); 2] = [
    (".dockerenv", "docker run --security-opt seccomp=unconfined"),
    (
        "run/.containerenv",
        "podman run --security-opt seccomp=unconfined",
    ),
];

impl NoWalls {
    /// Returns the cause behind what bubblewrap printed. `root` is `/`.
    pub(crate) fn explain(printed: &str, root: &Path) -> Self {
        let cause = Host { root }.find_cause(printed);
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
}

/// What distinguishes causes that bubblewrap prints alike.
struct Host<'a> {
    root: &'a Path,
}

impl Host<'_> {
    fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.root.join(file)).unwrap_or_default()
    }

    fn sysctl(&self, name: &str) -> Option<u64> {
        self.read(&format!("proc/sys/{name}")).trim().parse().ok()
    }

    /// Returns whether the root directory is no mount of its own: the kernel lists only mounts
    /// below the root directory (`show_mountinfo` of fs/proc_namespace.c).
    fn is_chroot(&self) -> bool {
        let mounts = self.read("proc/self/mountinfo");
        let is_root = |line: &str| line.split(' ').nth(4) == Some("/");
        !mounts.is_empty() && !mounts.lines().any(is_root)
    }

    /// Returns whether this process is in a user namespace that a sandbox or container made.
    fn is_nested(&self) -> bool {
        let map = self.read("proc/self/uid_map");
        let all = ["0", "0", "4294967295"];
        !map.is_empty() && !map.split_whitespace().eq(all)
    }

    /// Returns whether a filter of system calls is in force.
    fn is_filtered(&self) -> bool {
        let status = self.read("proc/self/status");
        status
            .lines()
            .filter_map(|line| line.strip_prefix("Seccomp:"))
            .any(|mode| mode.trim() == "2")
    }

    /// A kernel without user namespaces has no such file (`ns_entries` of fs/proc/namespaces.c).
    fn has_user_namespaces(&self) -> bool {
        let folder = self.root.join("proc/self/ns");
        !folder.exists() || folder.join("user").symlink_metadata().is_ok()
    }

    fn find_cause(&self, printed: &str) -> Cause {
        let has = |words: &[&str]| words.iter().any(|word| printed.contains(word));
        if has(&["ENOSPC", "No space left", "max_*_namespaces"]) {
            return self.find_limit();
        }
        if has(&["mount proc"]) {
            return Cause::new(
                "this container hides parts of /proc, so the kernel refuses a new one",
                "podman: --security-opt unmask=ALL; docker: --security-opt systempaths=unconfined",
            );
        }
        if has(&["loopback", "RTM_NEW", "NETLINK"]) {
            return Cause::new(
                "this container does not let a new network namespace be set up",
                "allow sockets of AF_NETLINK in its seccomp filter, or --security-opt seccomp=unconfined",
            );
        }
        if has(&["execvp"]) {
            return Cause::new("walls show no directory of PATH", "put /usr/bin into PATH");
        }
        if self.sysctl("kernel/unprivileged_userns_clone") == Some(0) {
            return Cause::new(
                "kernel.unprivileged_userns_clone is 0",
                "sudo sysctl kernel.unprivileged_userns_clone=1",
            );
        }
        if !self.has_user_namespaces() {
            return Cause::new(
                "this kernel has no user namespaces",
                "a kernel with CONFIG_USER_NS=y, or bwrap with the set-user-id bit of root",
            );
        }
        // `current_chrooted` in kernel/user_namespace.c; pivot_root(2) for root.
        if self.is_chroot() {
            return Cause::new(
                "this is a chroot, in which the kernel makes no user namespaces",
                "enter it by systemd-nspawn, or by bwrap --bind ROOT / --dev /dev --proc /proc, in place of chroot",
            );
        }
        if self.sysctl("kernel/apparmor_restrict_unprivileged_userns") == Some(1) {
            return Cause::new(
                "AppArmor restricts user namespaces (kernel.apparmor_restrict_unprivileged_userns is 1)",
                "an AppArmor profile for bwrap with `userns,`: see /etc/apparmor.d/bwrap-userns-restrict, or \
                 sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0",
            );
        }
        if has(&["uid map", "gid map", "setgroups"]) {
            return Cause::new(
                "this host makes user namespaces but does not let users be mapped in them",
                "mount /proc writable, or allow it in AppArmor or SELinux",
            );
        }
        if has(&["mount", "slave", "pivot_root", "tmpfs"]) {
            return Cause::new(
                "this host makes namespaces but refuses mounts in them",
                "allow mounts for bwrap in AppArmor, SELinux or the container's seccomp filter (dmesg names the denial)",
            );
        }
        self.find_refusal()
    }

    /// Returns why no more namespaces can be made.
    fn find_limit(&self) -> Cause {
        let zero = NAMESPACES
            .into_iter()
            .find(|kind| self.sysctl(&format!("user/max_{kind}_namespaces")) == Some(0));
        if let Some(kind) = zero {
            return Cause::new(
                format!("user.max_{kind}_namespaces is 0"),
                format!("sudo sysctl user.max_{kind}_namespaces=10000"),
            );
        }
        if self.is_nested() {
            return Cause::new(
                "this sandbox or container lets no more namespaces be made in it",
                "run Marvin outside of it, start it without --disable-userns (bwrap, Flatpak), or raise                  user.max_user_namespaces outside of it",
            );
        }
        Cause::new(
            "the limit of namespaces is reached",
            "raise user.max_user_namespaces and the others of /proc/sys/user",
        )
    }

    /// Returns what refuses user namespaces, as far as the host shows it.
    fn find_refusal(&self) -> Cause {
        if !self.is_filtered() {
            return Cause::new(
                "this host refuses user namespaces",
                "allow them in AppArmor or SELinux (dmesg names the denial)",
            );
        }
        let container = CONTAINER_FILES
            .into_iter()
            .find(|(file, _)| self.root.join(file).exists());
        let fix = container.map_or(
            "allow clone, unshare and mount in the filter: docker and podman: --security-opt seccomp=unconfined; \
             systemd: RestrictNamespaces=no and no SystemCallFilter of @mount",
            |(_, fix)| fix,
        );
        Cause::new(
            "a filter of system calls (seccomp) refuses user namespaces",
            fix,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::NoWalls;

    /// Explains a message on a host with these files.
    fn explain(printed: &str, files: &[(&str, &str)]) -> NoWalls {
        let root = tempfile::tempdir().unwrap();
        for (name, value) in files {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, value).unwrap();
        }
        NoWalls::explain(printed, root.path())
    }

    #[test]
    fn reached_limit_is_no_full_disk() {
        let printed = "bwrap: Creating new namespace failed: No space left on device";
        let named = explain(
            printed,
            &[
                ("proc/sys/user/max_user_namespaces", "100\n"),
                ("proc/sys/user/max_net_namespaces", "0\n"),
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
                &[("proc/sys/kernel/unprivileged_userns_clone", "0\n")],
                "kernel.unprivileged_userns_clone is 0",
            ),
            (
                "bwrap: setting up uid map: Permission denied",
                &[(
                    "proc/sys/kernel/apparmor_restrict_unprivileged_userns",
                    "1\n",
                )],
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
                &[("proc/sys/kernel/unprivileged_userns_clone", "1\n")],
                "this host refuses user namespaces",
            ),
            (
                "bwrap: Creating new namespace failed: Invalid argument",
                &[("proc/self/ns/mnt", "")],
                "this kernel has no user namespaces",
            ),
            (
                "bwrap: No permissions to create new namespace",
                &[(
                    "proc/self/mountinfo",
                    "30 24 0:5 / /proc rw - proc proc rw\n",
                )],
                "this is a chroot",
            ),
            (
                "bwrap: pivot_root: Invalid argument",
                &[("proc/self/mountinfo", "")],
                "this host makes namespaces but refuses mounts",
            ),
            (
                "bwrap: Creating new namespace failed: No space left on device",
                &[("proc/self/uid_map", "         0       1000          1\n")],
                "this sandbox or container lets no more namespaces be made",
            ),
            (
                "bwrap: No permissions to create new namespace",
                &[
                    ("proc/self/status", "Name:\tmarvin\nSeccomp:\t2\n"),
                    (".dockerenv", ""),
                ],
                "a filter of system calls (seccomp) refuses user namespaces",
            ),
        ] {
            let explained = explain(printed, files);
            assert!(explained.why.starts_with(why), "{explained:?}");
            assert!(explained.why.ends_with(&format!("({printed})")));
        }
    }
}
