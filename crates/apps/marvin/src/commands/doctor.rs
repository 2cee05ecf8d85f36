//! `marvin doctor`: checks this host and prints a command that fixes each problem.

use std::path::{Path, PathBuf};

use clap::Args;
use kernel::{HostNeeds, find_missing_needs};
use lab::{Lab, LabError, LabOptions, Measurement, execute_reference_job};
use machine::ReferenceNumbers;
use machine::qemu::Qemu;
use model::{Build, Distribution, KernelName, KnownQemu, PackageQuery, PackageSelection};
use store::{InUse, StoreError};

use crate::exit::Exit;
use crate::select::{find_suite, select_workload};
use crate::session::{Output, Session, named_qemu};
use crate::views::{Check, DoctorDocument, Problem};

/// `marvin doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    #[command(flatten)]
    pub(crate) output: Output,
}

/// The workload that is tried: the shortest.
const TRIED: &str = "getppid";

/// A kernel that is always offered.
const KERNEL: &str = "deb:6.12";

/// Most known kernels that are tried: files may be gone.
const KERNELS_MAX: usize = 5;

/// Free disk space for a comparison with the default number of seeds (MB).
const DISK_MB: u64 = 4000;

/// Memory for two machines and Marvin (MB).
const MEMORY_MB: u64 = 1200;

pub(crate) fn doctor(session: &Session, command: &DoctorArguments) -> anyhow::Result<Exit> {
    let home = session.home()?;
    let qemu = Check::new("QEMU", qemu(home));
    // One cause is one line: what depends on a failed check is not tried.
    let numbers = match &qemu.problem {
        None => numbers(session),
        Some(_) => Ok("not tried: no QEMU can be used".to_owned()),
    };
    let job = match (&qemu.problem, &numbers) {
        (None, Ok(_)) => job(session),
        _ => Ok("not tried: see above".to_owned()),
    };
    let checks = vec![
        qemu,
        program("setsid", "util-linux"),
        Check::new("walls", Ok(walls())),
        Check::new("kernels", kernels(session)),
        Check::new("builds", Ok(builds())),
        Check::new("home", usable(home)),
        Check::new("disk", disk(home)),
        Check::new("memory", memory()),
        Check::new("processors", processors()),
        Check::new("numbers", numbers),
        Check::new("job", job),
    ];
    let document = DoctorDocument::new("this host", checks);
    session.answer(None)?.list(&document, command.output)?;
    Ok(if document.is_fit() {
        Exit::Fine
    } else {
        Exit::Lab
    })
}

fn trouble<T>(wrong: impl ToString, fix: impl ToString) -> Result<T, Problem> {
    Err(Problem {
        wrong: wrong.to_string(),
        fix: fix.to_string(),
    })
}

fn qemu(home: &Path) -> Result<String, Problem> {
    match Qemu::find(named_qemu().as_deref(), home) {
        Ok(qemu) if !qemu.plugins => trouble(
            format!(
                "{} was built without plugins: no profiles, and results are not always exact",
                qemu.version
            ),
            "marvin setup, or name another QEMU with MARVIN_QEMU",
        ),
        Ok(qemu) => {
            let filter = if qemu.seccomp {
                ""
            } else {
                "; without a filter of system calls (seccomp)"
            };
            let other = if qemu.is_known() {
                String::new()
            } else {
                format!("; another than {}", known_qemus())
            };
            Ok(format!(
                "{} ({}){other}{filter}",
                qemu.version,
                qemu.program.display()
            ))
        }
        Err(error) => failed_with(&error.to_string(), "marvin setup"),
    }
}

/// Returns the problem of an error: its hint is the fix, if it has one.
fn failed_with<T>(error: &str, fix: &str) -> Result<T, Problem> {
    match error.split_once("\nhint: ") {
        Some((wrong, hint)) => trouble(wrong.replace('\n', "; "), hint),
        None => trouble(error.replace('\n', "; "), fix),
    }
}

/// Returns the builds of QEMU that give the reference numbers.
fn known_qemus() -> String {
    let versions: Vec<&str> = KnownQemu::ALL.iter().map(|known| known.version).collect();
    format!(
        "{}, which gives the reference numbers",
        versions.join(" or ")
    )
}

/// Executes the reference job as measurements do: behind the walls, with the plugin, from a
/// snapshot. It needs no kernel and no network.
fn numbers(session: &Session) -> Result<String, Problem> {
    let found = session
        .home()
        .and_then(|home| Ok((home, session.exact_cpu()?)))
        .and_then(|(home, cpu)| Ok(execute_reference_job(home, named_qemu(), cpu)?));
    let found = match found {
        Ok(found) => found,
        Err(error) if is_measuring(&error) => {
            return Ok("not tried: another Marvin measures here now".to_owned());
        }
        Err(error) => {
            let fix = "mend what it names; for the reference QEMU: marvin setup";
            return failed_with(&format!("{error:#}"), fix);
        }
    };
    let given = named_qemu();
    let qemu = Qemu::find(given.as_deref(), session.home().unwrap_or(Path::new("/")));
    judge(found, qemu.is_ok_and(|qemu| qemu.is_known()))
}

/// Says whether these are the reference numbers.
fn judge(found: ReferenceNumbers, is_known: bool) -> Result<String, Problem> {
    const QUESTION: &str = "this host gives the reference numbers:";
    match (found == ReferenceNumbers::RECORDED, is_known) {
        (true, true) => Ok(format!("{QUESTION} yes ({found})")),
        (false, true) => trouble(
            format!(
                "{QUESTION} no: {found}, recorded {}",
                ReferenceNumbers::RECORDED
            ),
            "report it with the output of marvin doctor; until then trust no result of this host",
        ),
        (_, false) => Ok(format!(
            "{QUESTION} no, as its QEMU is another one: its results are those of a machine of its own ({found})"
        )),
    }
}

/// Runs a workload on a kernel that is there; fetches none.
fn job(session: &Session) -> Result<String, Problem> {
    let lab = match session.store_location().and_then(|store| {
        let options = LabOptions {
            store: Some(store),
            ..LabOptions::default()
        };
        session.open_lab(options)
    }) {
        Ok(lab) => lab,
        Err(error) if is_measuring(&error) => {
            return Ok("not tried: another Marvin measures here now".to_owned());
        }
        Err(error) => {
            let fix = "name another QEMU with MARVIN_QEMU, or mend what is wrong above";
            return failed_with(&format!("{error:#}"), fix);
        }
    };
    match try_out(&lab, session) {
        Ok(Some(found)) => Ok(found),
        Ok(None) => Ok(format!(
            "not tried: no kernel is there yet; marvin run {KERNEL} --workload {TRIED} fetches one"
        )),
        Err(error) => failed_with(
            &format!("{error:#}"),
            "try it: marvin run deb:6.12 --workload getppid",
        ),
    }
}

fn one_line(error: &anyhow::Error) -> String {
    format!("{error:#}").replace('\n', "; ")
}

fn is_measuring(error: &anyhow::Error) -> bool {
    matches!(
        error.downcast_ref(),
        Some(LabError::Store(StoreError::InUse(InUse::Locked { .. })))
    )
}

fn try_out(lab: &Lab, session: &Session) -> anyhow::Result<Option<String>> {
    let Some(build) = kernel_to_try(lab, session)? else {
        return Ok(None);
    };
    let workload = select_workload(find_suite("micro")?, TRIED)?;
    let measurement = Measurement {
        build: &build,
        workload: &workload,
        replicate: 1,
    };
    let result = lab
        .try_out(measurement)?
        .into_result()
        .map_err(anyhow::Error::msg)?;
    let value = compare::run_value(&result, lab.machine().capabilities());
    let value = value.map_err(|why| anyhow::anyhow!("{TRIED} on {}: {why}", build.version))?;
    let unit =
        compare::value_unit(&result, value.scale, model::Clock::Instructions).unwrap_or_default();
    Ok(Some(format!(
        "{TRIED} on {}: {:.2} {unit}",
        build.version, value.value
    )))
}

/// Returns the kernel that was used last and is still there.
fn kernel_to_try(lab: &Lab, session: &Session) -> anyhow::Result<Option<Build>> {
    let mut seen = session.open_store()?.kernels()?;
    seen.sort_by_key(|kernel| std::cmp::Reverse(kernel.seen_unix));
    let names = seen
        .iter()
        .filter_map(|kernel| kernel.name.parse::<KernelName>().ok());
    let boots = |name: &KernelName| matches!(name, KernelName::Package(_) | KernelName::Path(_));
    for name in names.filter(boots).take(KERNELS_MAX) {
        if let Ok(build) = lab.build(&name, &|_| {}) {
            return Ok(Some(build));
        }
    }
    Ok(None)
}

fn walls() -> String {
    match subprocess::no_walls() {
        None => "bubblewrap separates QEMU and builds from this host".to_owned(),
        Some(none) => format!(
            "none: {}; QEMU and builds run as you, the numbers are the same; for walls: {}",
            none.why, none.fix
        ),
    }
}

/// Says whether kernels can be built here, with one command for all that is missing. Nothing else
/// needs a compiler, so that is no problem of the host.
fn builds() -> String {
    let HostNeeds { needed, by_config } = find_missing_needs();
    match (needed, by_config) {
        (None, None) => "everything that building kernels needs is there".to_owned(),
        (None, Some(some)) => format!(
            "everything that most kernels need is there; some configs need {}: {}",
            some.what, some.install
        ),
        (Some(needed), _) => format!(
            "not possible: git:, patch:, tree: and deb-src: kernels, series and bisect need {}: {}; all else works",
            needed.what, needed.install
        ),
    }
}

fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

fn program(name: &'static str, package: &str) -> Check {
    let found = match find_program(name) {
        Some(file) => Ok(file.display().to_string()),
        None => trouble("not found", format!("install the package {package}")),
    };
    Check::new(name, found)
}

fn kernels(session: &Session) -> Result<String, Problem> {
    let archives = match session.archives() {
        Ok(archives) => archives,
        Err(error) => return trouble(one_line(&error), "correct marvin.toml"),
    };
    let query = PackageQuery {
        distribution: Distribution::Debian,
        suite: None,
        selection: PackageSelection::Version {
            version: "6".into(),
            flavour: "cloud-amd64".into(),
        },
    };
    match kernel::offers(&archives, &query) {
        Ok(offers) => {
            let notices = archives.take_notices().into_iter();
            let notices: String = notices.map(|notice| format!("; {notice}")).collect();
            Ok(format!(
                "Debian's {} has {} cloud kernels of series 6{notices}",
                archives.debian.suite(None),
                offers.len()
            ))
        }
        // Kernels of files and sources need no archive.
        Err(error) => Ok(format!("no deb: kernels now: {}", one_line(&error.into()))),
    }
}

fn usable(home: &Path) -> Result<String, Problem> {
    match std::fs::create_dir_all(home).and_then(|()| std::fs::metadata(home)) {
        Ok(folder) if !folder.permissions().readonly() => Ok(home.display().to_string()),
        Ok(_) => trouble(
            format!("{} cannot be written", home.display()),
            format!("chmod u+w {}", home.display()),
        ),
        Err(error) => trouble(
            format!("{}: {error}", home.display()),
            "name another directory with --home FOLDER",
        ),
    }
}

fn disk(home: &Path) -> Result<String, Problem> {
    match machine::free_mib(home).map(|mib| (mib << 20) / 1_000_000) {
        Some(free) if free >= DISK_MB => Ok(format!("{free} MB free")),
        Some(free) => trouble(
            format!("{free} MB free, {DISK_MB} MB needed"),
            format!(
                "free disk space in {}, or name another directory with --home",
                home.display()
            ),
        ),
        None => trouble(
            "free disk space is unknown",
            "name another directory with --home",
        ),
    }
}

fn memory() -> Result<String, Problem> {
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line
        .and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok())
        .unwrap_or(0);
    let available = kib * 1024 / 1_000_000;
    if available >= MEMORY_MB {
        Ok(format!("{available} MB available"))
    } else {
        trouble(
            format!("{available} MB available, {MEMORY_MB} MB needed"),
            "stop other programs, or use --jobs 1",
        )
    }
}

fn processors() -> Result<String, Problem> {
    match std::thread::available_parallelism() {
        Ok(count) => Ok(format!(
            "{count}; their speed and load do not change any number"
        )),
        Err(error) => trouble(error, "use --jobs 1"),
    }
}
