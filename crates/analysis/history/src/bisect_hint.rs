//! The bisection that finds the commit of an alert, or the steps before it.

use model::{Build, Distribution, KernelName, Origin, Release, SourceOrigin, sanitize_line};

use super::alerts::{Alert, Member};
use super::changes::{Basis, Change};
use super::gather::History;
use super::index::KernelIx;
use super::series::{Key, Series};

/// Most seeds that a hint requests: the kernels of a series may have more than a bisection needs.
const SEEDS_MAX: usize = 5;

/// How to find the commit of an alert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BisectHint {
    /// This command searches the whole range.
    Command(String),
    /// With other commands first.
    First {
        /// The obstacle, as a sentence without its period.
        why: String,
        /// The commands, in order.
        commands: Vec<String>,
    },
    /// Not possible, with the reason.
    Impossible(String),
}

/// The source of a kernel: tree, revision and kernel config.
struct TreeRevision {
    tree: String,
    revision: String,
    config: String,
    /// The option for compiler and variables of make, with a space before it.
    make: String,
}

/// Returns how to find the commit of an alert's worst regression; `None` if there is no regression.
/// `debian` is the tree of Debian's sources in the data directory.
#[must_use]
pub fn bisect_hint(history: &History, alert: &Alert, debian: &str) -> Option<BisectHint> {
    alert.worse().next()?;
    let Some(worst) = worst_measured(alert) else {
        let why =
            "what fails has no value to search by: its console, in its run, says where it ended";
        return Some(BisectHint::Impossible(why.to_owned()));
    };
    if history.machine(worst.key.machine).capabilities().foreign {
        let why = "another suite measured this: build both kernels, compare them here, and bisect with a workload that shows it";
        return Some(BisectHint::Impossible(why.to_owned()));
    }
    let Some(options) = options(worst) else {
        let why = format!(
            "{} is no workload of a suite, and only these are bisected",
            sanitize_line(&worst.key.workload)
        );
        return Some(BisectHint::Impossible(why));
    };
    let good = &history.kernel(alert.after).build;
    let bad = &history.kernel(alert.at).build;
    Some(
        match (tree_revision(good, debian), tree_revision(bad, debian)) {
            (Some(good), Some(bad)) if good.revision == bad.revision && good.tree == bad.tree => {
                BisectHint::Impossible(
                    "the two kernels are one commit, built otherwise: the config or the compiler makes the difference"
                        .to_owned(),
                )
            }
            (Some(good), Some(bad)) if good.make != bad.make => BisectHint::Impossible(
                "the two kernels were built by different compilers: build both by one".to_owned(),
            ),
            (Some(good), Some(bad)) if good.tree == bad.tree => {
                BisectHint::Command(command(&good, &bad, &options))
            }
            (Some(_), Some(_)) => BisectHint::Impossible(
                "the two kernels were built from different trees: build both from one".to_owned(),
            ),
            _ => {
                let is_exact = takes_chain(history, &worst.key);
                let chain = chain(good, bad, &options).filter(|_| is_exact);
                packages(good, bad, debian, &options, chain)
            }
        },
    )
}

/// Returns the command that repeats the worst regression of an alert in any data directory: with
/// the kernel of the old level and the first one with the change, and with more seeds if there was
/// one. `None` if other hosts lack the kernels or the workload.
pub(crate) fn reproducer(history: &History, alert: &Alert) -> Option<String> {
    let worst = alert.worse().next()?;
    if history.machine(worst.key.machine).capabilities().foreign {
        return None;
    }
    let options = options_anywhere(worst)?;
    let (old, new) = worst.between;
    let [old, new] = [old, new].map(|kernel| &history.kernel(kernel).build);
    let old_name = name_anywhere(old)?;
    let new_name = name_anywhere(new)?;
    let tree = if [&old_name, &new_name]
        .iter()
        .any(|name| name.starts_with("git:"))
    {
        " --tree TREE"
    } else {
        ""
    };
    let config = [new, old]
        .into_iter()
        .find_map(|build| tree_revision(build, ""));
    let config = config.map_or_else(String::new, |built| {
        format!(" --config {}{}", built.config, built.make)
    });
    Some(sanitize_line(&format!(
        "marvin compare {old_name} {new_name}{tree}{config} {options}"
    )))
}

/// Returns the command that finds the commit in a clone of the public tree: between commits, or
/// between the tags of releases. `None` if the kernels have neither, or no common ancestor among
/// the releases.
#[must_use]
pub fn bisection_anywhere(history: &History, alert: &Alert) -> Option<String> {
    let worst = worst_measured(alert)?;
    if history.machine(worst.key.machine).capabilities().foreign {
        return None;
    }
    let options = options_anywhere(worst)?;
    let [good, bad] = [alert.after, alert.at].map(|kernel| &history.kernel(kernel).build);
    let (old, new) = built_commit(good)
        .zip(built_commit(bad))
        .or_else(|| tags(history, alert))?;
    // A config file exists only on the sender's host.
    let config = tree_revision(bad, "").map(|place| {
        let config = if place.config.contains('/') {
            "CONFIG".into()
        } else {
            place.config
        };
        format!("{config}{}", place.make)
    });
    let config = config.map_or_else(String::new, |config| format!(" --config {config}"));
    Some(sanitize_line(&format!(
        "marvin bisect {old} {new} --tree linux{config} {options}"
    )))
}

/// Returns the worst member that has values to search by.
fn worst_measured(alert: &Alert) -> Option<&Member> {
    alert
        .worse()
        .find(|member| !matches!(member.basis, Basis::NoBoot | Basis::Fails))
}

/// Returns the commit that a build was made from, if its origin names one.
fn built_commit(build: &Build) -> Option<String> {
    let revision = tree_revision(build, "")?.revision;
    is_commit(&revision).then_some(revision)
}

fn is_commit(revision: &str) -> bool {
    revision.len() >= 12 && revision.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns the range for regzbot if one version is an ancestor of the other: releases, or stable
/// updates of one release.
pub(crate) fn introduced(history: &History, alert: &Alert) -> Option<String> {
    let (after, at) = releases(history, alert)?;
    is_line(&after, &at).then(|| format!("v{after}..v{at}"))
}

/// Returns the tags to search between. For two stable lines these are the releases that they
/// branched off from, since stable updates of an older line are no ancestors of a newer one.
fn tags(history: &History, alert: &Alert) -> Option<(String, String)> {
    let (after, at) = releases(history, alert)?;
    Some(match is_line(&after, &at) {
        true => (format!("v{after}"), format!("v{at}")),
        false => (
            format!("v{}", branch_point(&after)),
            format!("v{}", branch_point(&at)),
        ),
    })
}

/// Returns the versions of both kernels if they have tags.
fn releases(history: &History, alert: &Alert) -> Option<(String, String)> {
    Some((
        plain_release(history, alert.after)?,
        plain_release(history, alert.at)?,
    ))
}

/// Returns the version of a kernel if it consists of two or three numbers, as those of releases.
fn plain_release(history: &History, kernel: KernelIx) -> Option<String> {
    let version = history.kernel(kernel).release.as_str();
    let is_plain = version.split('.').all(|part| {
        !part.is_empty() && part.len() <= 5 && part.bytes().all(|b| b.is_ascii_digit())
    });
    (is_plain && (2..=3).contains(&version.split('.').count())).then(|| version.to_owned())
}

fn branch_point(version: &str) -> String {
    version.split('.').take(2).collect::<Vec<_>>().join(".")
}

fn is_line(after: &str, at: &str) -> bool {
    branch_point(after) == branch_point(at)
        || [after, at]
            .iter()
            .all(|version| version.split('.').count() == 2)
}

/// Returns a name that selects this build on every host: a whole package, a commit, a source
/// package.
fn name_anywhere(build: &Build) -> Option<String> {
    match (build.name.source(), &build.origin) {
        (KernelName::Package(_), Origin::Package { .. }) | (KernelName::DebSrc(_), _) => {
            Some(build.exact_name())
        }
        (KernelName::Git(_), _) => Some(format!("git:{}", tree_revision(build, "")?.revision)),
        _ => None,
    }
}

fn command(good: &TreeRevision, bad: &TreeRevision, options: &str) -> String {
    let TreeRevision {
        tree, config, make, ..
    } = bad;
    let tree = if tree.contains([' ', '\'', '"']) {
        format!("'{}'", tree.replace('\'', "'\\''"))
    } else {
        tree.clone()
    };
    sanitize_line(&format!(
        "marvin bisect {} {} --tree {tree} --config {config}{make} {options}",
        good.revision, bad.revision
    ))
}

/// Returns the same options for readers elsewhere: one seed is not enough for them.
fn options_anywhere(worst: &Member) -> Option<String> {
    let basis = match worst.basis {
        Basis::EverySeed { seeds: 1 } => Basis::EverySeed { seeds: SEEDS_MAX },
        basis => basis,
    };
    options(&Member {
        basis,
        ..worst.clone()
    })
}

/// Returns the options that select the measurement; `None` for undeclared workloads.
fn options(worst: &Member) -> Option<String> {
    let name: &str = &worst.key.workload;
    let suite = model::suite_of(name)?;
    let suite = if suite.name == model::MICRO.name {
        String::new()
    } else {
        format!(" --suite {}", suite.name)
    };
    let seeds = match worst.basis {
        Basis::EverySeed { seeds } => format!(" --seeds {}", seeds.clamp(1, SEEDS_MAX)),
        Basis::Levels { .. } | Basis::Creep { .. } | Basis::NoBoot | Basis::Fails => String::new(),
    };
    Some(format!("--workload {name}{suite}{seeds}"))
}

/// Returns a build's source; `None` if Marvin did not build it.
fn tree_revision(build: &Build, debian: &str) -> Option<TreeRevision> {
    let Origin::Built {
        source,
        configuration,
        compiler,
        ..
    } = &build.origin
    else {
        return None;
    };
    let (revision, tree) = match (build.name.source(), source) {
        // A patch on a commit is no commit.
        (KernelName::Git(_), SourceOrigin::Commit { commit, tree }) => (commit, tree.as_str()),
        (KernelName::DebSrc(_), SourceOrigin::DebianSource { tag }) => (tag, debian),
        _ => return None,
    };
    Some(TreeRevision {
        tree: tree.to_owned(),
        revision: revision.clone(),
        config: configuration.clone(),
        make: make_options(compiler),
    })
}

/// Returns the option that builds with the same compiler and variables, which are at the end of a
/// compiler's text; empty if the build had none.
fn make_options(compiler: &str) -> String {
    compiler
        .rsplit_once(", make ")
        .map_or_else(String::new, |(_, words)| format!(" --make-args '{words}'"))
}

/// Returns the revision of a build in its source tree.
pub(super) fn revision(build: &Build) -> Option<String> {
    tree_revision(build, "").map(|place| place.revision)
}

/// Returns whether a kernel is a package of Debian, whose sources Marvin imports.
fn is_of_debian(name: &KernelName) -> bool {
    matches!(name, KernelName::Package(query) if query.distribution == Distribution::Debian)
}

/// Returns the command that names the release between two packages with which a change came;
/// `None` if they are of one series, or not of one distribution.
fn chain(good: &Build, bad: &Build, options: &str) -> Option<String> {
    let [old, new] = chain_ends(good, bad)?;
    Some(sanitize_line(&format!(
        "marvin compare --chain {old} {new} {options}"
    )))
}

/// Returns the names of two packages with releases between them.
fn chain_ends(good: &Build, bad: &Build) -> Option<[String; 2]> {
    let (KernelName::Package(old), KernelName::Package(new)) = (&good.name, &bad.name) else {
        return None;
    };
    let series = |build: &Build| Release::parse(&build.version).series();
    let is_offered = old.distribution == new.distribution && series(good) != series(bad);
    is_offered.then(|| [good.exact_name(), bad.exact_name()])
}

/// Returns the arguments of `marvin compare` that measure the releases between the kernels of a
/// change; `None` where there are none to measure, or where a chain cannot tell.
#[must_use]
pub fn chain_arguments(
    history: &History,
    key: &Key,
    series: &Series,
    change: &Change,
) -> Option<Vec<String>> {
    if !takes_chain(history, key) || change.went_away.is_some() {
        return None;
    }
    let ends = [series.before(change), &series.points[change.at]];
    let [old, new] = ends.map(|point| &history.kernel(point.kernel).build);
    let [old, new] = chain_ends(old, new)?;
    let suite = model::suite_of(&key.workload)?;
    let seeds = match change.basis {
        Basis::EverySeed { seeds } => seeds.clamp(1, SEEDS_MAX),
        Basis::Levels { .. } | Basis::Creep { .. } => SEEDS_MAX,
        Basis::NoBoot | Basis::Fails => return None,
    };
    let seeds = seeds.to_string();
    let words = [
        "--chain",
        &old,
        &new,
        "--workload",
        &key.workload,
        "--suite",
        suite.name,
        "--seeds",
        &seeds,
    ];
    Some(words.map(str::to_owned).to_vec())
}

/// Returns whether a release does not differ from itself there: on the exact machine with one
/// processor.
fn takes_chain(history: &History, key: &Key) -> bool {
    let capabilities = history.machine(key.machine).capabilities();
    capabilities.deterministic && capabilities.processors == 1
}

/// Returns the hint for kernels that Marvin did not build.
fn packages(
    good: &Build,
    bad: &Build,
    debian: &str,
    options: &str,
    chain: Option<String>,
) -> BisectHint {
    let built = [good, bad];
    let other = built.iter().find(|build| !is_of_debian(&build.name));
    if let Some(other) = other {
        let why = format!(
            "Marvin does not import the source of {}: build both ends from one tree (git:REVISION, deb-src:VERSION)",
            sanitize_line(&other.name.to_string())
        );
        return match chain {
            Some(chain) => BisectHint::First {
                why: format!("this names the release that it came with; {why}"),
                commands: vec![chain],
            },
            None => BisectHint::Impossible(why),
        };
    }
    let [good, bad] = [good, bad].map(|build| sanitize_line(&build.version));
    let why = "both are packages that Debian built: have their sources, see that the difference is in them, and search there \
               (git -C TREE tag lists the releases that are imported)";
    let why = match chain {
        Some(_) => format!(
            "the first command names the release that it came with, so that the search may begin there; {why}"
        ),
        None => why.to_owned(),
    };
    let mut commands = Vec::from_iter(chain);
    commands.extend([
        format!("marvin compare deb-src:{good} deb-src:{bad} {options}"),
        format!("marvin bisect TAG-OF-{good} TAG-OF-{bad} --tree {debian} {options}"),
    ]);
    BisectHint::First { why, commands }
}

#[cfg(test)]
mod tests {
    use super::{BisectHint, bisect_hint, chain_arguments};
    use crate::{History, alerts};
    use compare::fixtures::{Ending, Subject, build};
    use model::{Build, FailureReason, Origin, ReleaseLine, Stage};

    const DEBIAN: &str = "HOME/workshop/debian";

    fn built(name: &str, version: &str, origin: &str) -> Build {
        let build = build(name, version);
        Build {
            origin: Origin::of_line(origin, &build.name),
            ..build
        }
    }

    /// Two kernels, of which the newer is worse.
    fn history_of(builds: [Build; 2], workload: &'static str, kind: &str) -> History {
        let mut history = History::default();
        for (build, cost) in builds.into_iter().zip([100.0, 130.0]) {
            let mut subject = Subject::new(build, &[1, 2], &[(workload, Ending::Cost(cost, 0.0))]);
            subject.machine.kind = kind.parse().unwrap();
            history.add_build(&subject.build);
            history.know_machine(&subject.machine);
            subject
                .runs
                .iter()
                .for_each(|run| history.add_run(run).unwrap());
        }
        history.recompute();
        history
    }

    fn exact(builds: [Build; 2], workload: &'static str) -> Option<BisectHint> {
        let history = history_of(builds, workload, "exact");
        bisect_hint(&history, &alerts(&history, ReleaseLine::All)[0], DEBIAN)
    }

    #[test]
    fn commits_of_one_tree_give_one_bisect_command() {
        let pair = ["6.12.115-g111111111111", "6.12.117-g222222222222"].map(|version| {
            let commit = &version[version.len() - 12..];
            let origin = format!("commit {commit} of /src/linux, micro, gcc 12.2");
            built("git:HEAD", version, &origin)
        });
        let command = "marvin bisect 111111111111 222222222222 --tree /src/linux --config micro --workload fault-anon --seeds 2";
        assert_eq!(
            exact(pair.clone(), "fault-anon"),
            Some(BisectHint::Command(command.to_owned()))
        );
        let Some(BisectHint::Impossible(why)) = exact(pair.clone(), "of-a-tool") else {
            panic!("a hint for an undeclared workload")
        };
        assert!(why.contains("of-a-tool is no workload of a suite"), "{why}");
        let [old, mut new] = pair;
        let elsewhere = new
            .origin
            .to_string()
            .replace("/src/linux", "/home/ada/linux");
        new.origin = Origin::of_line(&elsewhere, &new.name);
        assert!(
            matches!(exact([old, new], "fault-anon"), Some(BisectHint::Impossible(why)) if why.contains("different trees"))
        );
    }

    #[test]
    fn debian_releases_are_bisected_in_the_stored_tree() {
        let pair = ["6.12.115-1", "6.12.117-1_deb12"].map(|tag| {
            let origin = format!("linux-source {tag}, small, gcc 12.2");
            built("deb-src:6.12", tag, &origin)
        });
        let Some(BisectHint::Command(command)) = exact(pair, "getppid") else {
            panic!("no command")
        };
        let expected = "marvin bisect 6.12.115-1 6.12.117-1_deb12 --tree HOME/workshop/debian --config small --workload getppid --seeds 2";
        assert_eq!(command, expected);
    }

    #[test]
    fn packages_are_built_from_their_sources_first() {
        let Some(BisectHint::First { why, commands }) = exact(
            [build("deb:6.12", "6.12.115"), build("deb:6.12", "6.12.117")],
            "fault-anon",
        ) else {
            panic!("no way")
        };
        assert!(why.contains("packages that Debian built"));
        assert_eq!(
            commands[0],
            "marvin compare deb-src:6.12.115 deb-src:6.12.117 --workload fault-anon --seeds 2"
        );
        assert!(
            commands[1].contains("--tree HOME/workshop/debian --workload fault-anon --seeds 2"),
            "{commands:?}"
        );
        let images = [build("path:/a", "6.12.115"), build("path:/a", "6.12.117")];
        assert!(
            matches!(exact(images, "fault-anon"), Some(BisectHint::Impossible(why)) if why.contains("path:/a"))
        );
    }

    #[test]
    fn packages_of_two_series_have_a_chain_first() {
        let first = |name: &str, versions: [&str; 2]| match exact(
            versions.map(|version| build(name, version)),
            "fault-anon",
        ) {
            Some(BisectHint::First { commands, .. }) => commands.into_iter().next(),
            _ => None,
        };
        let chain = first("deb:6.12", ["6.1.192", "6.12.100"]).unwrap();
        assert!(
            chain.starts_with("marvin compare --chain deb:linux-image-6.1.192")
                && chain.ends_with("--workload fault-anon --seeds 2"),
            "{chain}"
        );
        // Its sources are in no tree that Marvin imports.
        let chain = first("ubuntu:6.8", ["6.5.1", "6.8.2"]).unwrap();
        assert!(
            chain.starts_with("marvin compare --chain ubuntu:"),
            "{chain}"
        );
        assert_eq!(first("ubuntu:6.8", ["6.8.1", "6.8.2"]), None);
    }

    #[test]
    fn chain_lies_between_packages_of_two_series() {
        let words = |builds: [Build; 2], workload: &'static str, kind: &str| {
            let history = history_of(builds, workload, kind);
            let (key, series) = history.series().next().unwrap();
            let words = chain_arguments(&history, key, series, &series.changes[0])?;
            Some(words.join(" "))
        };
        let packages = || ["6.1.192", "6.12.100"].map(|version| build("deb:6.12", version));
        let chain = words(packages(), "fault-anon", "exact").unwrap();
        assert!(
            chain.starts_with("--chain deb:linux-image-6.1.192")
                && chain.ends_with("--workload fault-anon --suite micro --seeds 2"),
            "{chain}"
        );
        // Several processors are no chain's, and commits have no releases between them.
        assert_eq!(words(packages(), "share-open", "exact-smp"), None);
        let commits = ["6.1-g111111111111", "6.12-g222222222222"].map(|version| {
            let origin = "commit 111111111111 of /src/linux, micro, gcc 12.2";
            built("git:HEAD", version, origin)
        });
        assert_eq!(words(commits, "fault-anon", "exact"), None);
    }

    #[test]
    fn a_mails_command_works_in_a_public_clone() {
        assert_eq!(
            command_anywhere(["6.12.115", "6.12.117"].map(|v| build("deb:6.12", v))),
            Some(
                "marvin bisect v6.12.115 v6.12.117 --tree linux --workload getppid --seeds 2"
                    .into()
            )
        );
        assert_eq!(
            command_anywhere(["6.1.192", "6.12.100"].map(|v| build("deb:6.12", v))),
            Some("marvin bisect v6.1 v6.12 --tree linux --workload getppid --seeds 2".into())
        );
        let commits = ["111111111111", "222222222222"].map(|commit| {
            let origin = format!("commit {commit} of /home/ada/linux, micro, gcc 12.2");
            built("git:HEAD", &format!("6.12.115-g{commit}"), &origin)
        });
        assert_eq!(
            command_anywhere(commits),
            Some(
                "marvin bisect 111111111111 222222222222 --tree linux --config micro --workload getppid --seeds 2".into()
            )
        );
        assert_eq!(
            command_anywhere([build("path:/a", "6.12.1-x"), build("path:/b", "6.12.2-x")]),
            None
        );
    }

    /// Returns the command of the only alert of two builds.
    fn command_anywhere(builds: [Build; 2]) -> Option<String> {
        let history = history_of(builds, "getppid", "exact");
        super::bisection_anywhere(&history, &alerts(&history, ReleaseLine::All)[0])
    }

    #[test]
    fn failing_workload_is_not_bisected() {
        let mut history = History::default();
        let hung = Ending::Failed(Stage::Workload, FailureReason::Hung, "");
        for (version, ending) in [("6.12.115", Ending::Cost(1.0, 0.0)), ("6.12.117", hung)] {
            let subject = Subject::new(build("deb:6.12", version), &[1], &[("getppid", ending)]);
            history.add_build(&subject.build);
            history.know_machine(&subject.machine);
            subject
                .runs
                .iter()
                .for_each(|run| history.add_run(run).unwrap());
        }
        history.recompute();
        let found = bisect_hint(&history, &alerts(&history, ReleaseLine::All)[0], DEBIAN);
        assert!(
            matches!(found, Some(BisectHint::Impossible(why)) if why.contains("no value to search by"))
        );
    }
}
