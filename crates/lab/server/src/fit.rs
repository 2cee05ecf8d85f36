//! Why Marvin cannot boot kernels on a server, found before anything is changed, and whether the
//! kernel that booted is the one that was meant.

use model::{BootOnce, ServerSettings, described};

use crate::problem::{ServerProblem, UnfitServer};
use crate::remote::{Facts, Kernel};

/// What to do about a file system that cannot be written.
const READ_ONLY: &str =
    "remount it there: mount -o remount,rw PLACE; the reason is in the server's log";

/// Returns why Marvin cannot boot kernels there.
pub(crate) fn problems(server: &ServerSettings, facts: &Facts) -> Vec<UnfitServer> {
    let name = || server.name.clone();
    let mut problems = Vec::new();
    if facts.get("user") != "root" {
        problems.push(UnfitServer::NotRoot {
            name: name(),
            user: facts.get("user").to_owned(),
        });
    }
    if !facts.get("unwritable").is_empty() {
        let why = format!("cannot keep kernels: {}", facts.get("unwritable"));
        problems.push(UnfitServer::Setup {
            name: name(),
            why,
            hint: "/var/lib/marvin needs a writable file system with some space",
        });
    }
    let of_boot: &[&str] = match &server.boot {
        BootOnce::Kexec => &["kexec"],
        BootOnce::Grub => &["grub-reboot", "grub-probe"],
        BootOnce::SystemdBoot => &["bootctl"],
        BootOnce::Command(_) => &[],
    };
    for tool in of_boot
        .iter()
        .copied()
        .chain(["cpio", "depmod", "taskset", "timeout"])
    {
        if facts.get(&format!("tool.{tool}")) != "yes" {
            problems.push(UnfitServer::NoTool {
                name: name(),
                tool: tool.to_owned(),
            });
        }
    }
    let is_own = facts.running().is_none();
    if is_own && facts.get("own_initrd").is_empty() {
        problems.push(UnfitServer::NoInitramfs {
            name: name(),
            release: facts.get("release").to_owned(),
        });
    }
    if facts.get("secure_boot") == "1" {
        problems.push(UnfitServer::Locked {
            name: name(),
            why: "secure boot is on".into(),
        });
    }
    let lockdown = facts.get("lockdown");
    if lockdown.contains("[integrity]") || lockdown.contains("[confidentiality]") {
        problems.push(UnfitServer::Locked {
            name: name(),
            why: format!("lockdown: {lockdown}"),
        });
    }
    // The own kernel's: a kernel under test starts no other one.
    let of_loader = match &server.boot {
        _ if !is_own || !problems.is_empty() => Vec::new(),
        BootOnce::Kexec => kexec(facts),
        BootOnce::Grub => grub(facts),
        BootOnce::SystemdBoot => systemd_boot(facts),
        BootOnce::Command(_) => Vec::new(),
    };
    problems.extend(of_loader.into_iter().map(|(why, hint)| UnfitServer::Setup {
        name: name(),
        why,
        hint,
    }));
    problems
}

fn kexec(facts: &Facts) -> Vec<(String, &'static str)> {
    let mut problems = Vec::new();
    if facts.get("has_kexec") != "yes" {
        problems.push((
            format!(
                "cannot boot by kexec: its kernel {} has none (CONFIG_KEXEC)",
                facts.get("release")
            ),
            "run a kernel with CONFIG_KEXEC, or set boot = \"grub-once\" in its [[machine]]",
        ));
    }
    if facts.get("kexec_disabled") == "1" {
        problems.push((
            "cannot boot by kexec: kexec_load_disabled is 1 until it restarts".to_owned(),
            "find what sets kernel.kexec_load_disabled there (/etc/sysctl.d, /etc/sysctl.conf), remove it and restart the server",
        ));
    }
    problems
}

fn grub(facts: &Facts) -> Vec<(String, &'static str)> {
    let mut problems = Vec::new();
    if facts.get("loader.writable") != "yes" {
        problems.push((
            "cannot boot by GRUB: /boot/grub cannot be written".to_owned(),
            READ_ONLY,
        ));
    }
    match facts.get("grub.lacks") {
        "" => {}
        "custom.cfg" => problems.push((
            "cannot boot by GRUB: its grub.cfg reads no custom.cfg".to_owned(),
            "make /etc/grub.d/41_custom executable there, then: update-grub",
        )),
        _ => problems.push((
            "cannot boot by GRUB: its grub.cfg boots no entry once only".to_owned(),
            "set GRUB_DEFAULT=saved in /etc/default/grub there, then: update-grub",
        )),
    }
    let on = facts.get("grub.unwritable");
    if !on.is_empty() {
        problems.push((
            format!(
                "cannot boot by GRUB: GRUB cannot write its environment on {on}, and would boot each build for ever"
            ),
            "put /boot on a plain partition with ext4, or set boot = \"kexec\" in its [[machine]]",
        ));
    }
    problems
}

fn systemd_boot(facts: &Facts) -> Vec<(String, &'static str)> {
    let mut problems = Vec::new();
    if facts.get("loader.runs") != "yes" {
        problems.push((
            "cannot boot by systemd-boot: another loader started it".to_owned(),
            "set boot in its [[machine]] to kexec, grub-once or command",
        ));
    }
    if facts.get("loader.writable") != "yes" {
        problems.push((
            "cannot boot by systemd-boot: its boot partition or its EFI variables cannot be written".to_owned(),
            READ_ONLY,
        ));
    }
    let uncertain = match facts.get("loader.default") {
        "" => Some("has no entry that is its default"),
        "marvin.conf" => Some("has a default that also means the build's entry, marvin.conf"),
        _ => None,
    };
    if let Some(uncertain) = uncertain {
        problems.push((
            format!("cannot boot by systemd-boot: it {uncertain}"),
            "name the own kernel's entry there: bootctl set-default ENTRY.conf",
        ));
    }
    problems
}

/// Checks the release of the kernel that runs, beside its mark.
pub(crate) fn check_release(
    server: &ServerSettings,
    kernel: &Kernel<'_>,
    facts: &Facts,
) -> Result<(), ServerProblem> {
    let runs = facts.get("release");
    if kernel.release.is_empty() || runs == kernel.release {
        return Ok(());
    }
    let answer = format!("it runs {runs} and not {}", kernel.release);
    Err(ServerProblem::Step {
        name: server.name.clone(),
        step: "boot the kernel",
        answer,
    })
}

/// Checks the build id of the kernel that runs, which tells two builds of one release, if the agent
/// and the image have it.
pub(crate) fn check_build_id(
    server: &ServerSettings,
    kernel: &Kernel<'_>,
    report: &str,
) -> Result<(), ServerProblem> {
    let pairs = described(report);
    let runs = pairs
        .iter()
        .find(|(name, _)| name == "boot.build_id")
        .map(|(_, id)| id.trim());
    match (runs, kernel.build_id) {
        (Some(runs), Some(meant)) if runs != meant => {
            let answer = format!(
                "it runs the build with id {} and not {meant}",
                model::sanitize_line(runs)
            );
            Err(ServerProblem::Step {
                name: server.name.clone(),
                step: "boot the kernel",
                answer,
            })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use model::{BootOnce, ServerSettings};

    use super::{Facts, problems};
    use crate::tests::settings_of;

    /// The facts of a server without fault, whatever boots it.
    const FIT: &str = "user=root\nrelease=6.1\ncmdline=root=/dev/sda1\nown_initrd=/boot/initrd.img-6.1\nhas_kexec=yes\n\
        kexec_disabled=0\nsecure_boot=0\nlockdown=[none] integrity confidentiality\ntool.kexec=yes\ntool.grub-reboot=yes\n\
        tool.grub-probe=yes\ntool.bootctl=yes\ntool.cpio=yes\ntool.depmod=yes\ntool.taskset=yes\ntool.timeout=yes\n\
        loader.writable=yes\nloader.runs=yes\nloader.default=debian.conf\n";

    fn server(boot: BootOnce) -> ServerSettings {
        ServerSettings {
            boot,
            ..settings_of("testbox")
        }
    }

    /// Returns what is wrong with a server of which some lines of facts differ.
    fn wrong(boot: BootOnce, lines: &str) -> String {
        let facts = Facts::read(&format!("{FIT}{lines}"));
        let problems = problems(&server(boot), &facts);
        problems.iter().fold(String::new(), |mut text, problem| {
            writeln!(text, "{problem}").unwrap();
            text
        })
    }

    #[test]
    fn fit_servers_have_no_problems() {
        for boot in [
            BootOnce::Kexec,
            BootOnce::Grub,
            BootOnce::SystemdBoot,
            BootOnce::Command(Vec::new()),
        ] {
            assert_eq!(wrong(boot, ""), "");
        }
        let away = "cmdline=marvin.build=0123\nown_initrd=\nhas_kexec=\nloader.writable=\n";
        assert_eq!(wrong(BootOnce::Kexec, away), "", "the own kernel is asked");
        assert_eq!(wrong(BootOnce::Grub, away), "");
    }

    #[test]
    fn unfit_servers_say_what_to_mend() {
        let faults = [
            "user=lab\n",
            "unwritable=/var/lib is on a read-only file system\n",
            "unwritable=no space left in /var/lib/marvin\n",
            "tool.kexec=\n",
            "has_kexec=\n",
            "kexec_disabled=1\n",
            "own_initrd=\n",
            "secure_boot=1\n",
            "lockdown=none [integrity] confidentiality\n",
        ];
        insta::assert_snapshot!(faults.map(|lines| wrong(BootOnce::Kexec, lines)).concat());
    }

    #[test]
    fn loaders_that_boot_not_once_are_refused() {
        let grub = [
            "loader.writable=\n",
            "grub.lacks=default=\"${saved_entry}\"\n",
            "grub.lacks=custom.cfg\n",
            "grub.unwritable=btrfs\n",
        ];
        let systemd_boot = [
            "loader.runs=\n",
            "loader.writable=\n",
            "loader.default=\n",
            "loader.default=marvin.conf\n",
        ];
        let grub = grub.map(|lines| wrong(BootOnce::Grub, lines)).concat();
        insta::assert_snapshot!(format!(
            "{grub}{}",
            systemd_boot
                .map(|lines| wrong(BootOnce::SystemdBoot, lines))
                .concat()
        ));
    }
}
