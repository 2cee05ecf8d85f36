//! A synthetic upstream on the source of a Debian release: 40 commits, of which 5 make rows of the
//! micro suite slower and 6 repair that. A seed chooses places, sizes and order. The search for
//! repairs is elsewhere and not known here.

mod innocent;
mod pad;
mod places;
mod plan;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use subprocess::Shared;

use crate::bisected::Tree;
use crate::{folder, output_of};
use plan::{Key, Plan, Step, plan};

/// The commits of all roles.
#[derive(Debug, Clone)]
pub(crate) struct Truth {
    pub(crate) causes: Vec<Cause>,
    /// In the order of the history.
    pub(crate) repairs: Vec<Repair>,
    /// Renames lines that a repair removes, and costs and saves no instruction.
    pub(crate) prerequisite: String,
    /// Adds a comment right above a line that a repair removes. A series may have it or not.
    pub(crate) cosmetic: String,
    /// An innocent candidate that claims to fix the first cause.
    pub(crate) misleading: String,
    /// The right series: all repairs and the prerequisite, in the order of the history. No revert
    /// belongs to it: the repairs of each cause repay more than half, and only the partial one
    /// leaves a rest.
    pub(crate) minimal: Vec<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct Cause {
    pub(crate) commit: String,
    pub(crate) function: &'static str,
    /// Rows that it makes slower by 1 % or more, in the tree `new`.
    pub(crate) worse: Vec<&'static str>,
    /// Rows that it makes faster by 1 % or more: the trade.
    pub(crate) better: Vec<&'static str>,
    /// The cause without which it costs nothing. A revert of that one repays both.
    pub(crate) shows_with: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Plain,
    /// One of two that repay a cause together.
    Half,
    /// Repays a part only, but more than half.
    Partly,
    /// Does not apply without the prerequisite.
    Needs,
    /// Conflicts on `new` because the comment above the removed line differs.
    Conflicts,
}

#[derive(Debug, Clone)]
pub(crate) struct Repair {
    pub(crate) commit: String,
    pub(crate) kind: Kind,
    /// The commit of its cause.
    pub(crate) of: String,
    /// Whether it has a Fixes tag that names its cause.
    pub(crate) tagged: bool,
    pub(crate) needs: Vec<String>,
    /// Rows that it makes faster.
    pub(crate) rows: Vec<&'static str>,
}

pub(crate) struct Upstream {
    pub(crate) tree: Tree,
    pub(crate) baseline: String,
    pub(crate) new: String,
    pub(crate) tip: String,
    pub(crate) truth: Truth,
}

/// Makes the upstream of a seed on the newest release of Linux 6.12 in a repository of imported
/// sources.
pub(crate) fn upstream(seed: u64, debian: &Path) -> Upstream {
    let plan = plan(seed);
    let tree = checkout(&format!("upstream-tree-{seed}"), debian, &plan);
    let baseline = tree.git(&["rev-parse", "HEAD"]);
    tree.git(&["tag", "baseline"]);
    let mut commits: Vec<(Key, String)> = vec![];
    let mut new = baseline.clone();
    for (n, step) in plan.steps.iter().enumerate() {
        let commit = commit(&tree, step, n, &commits);
        if n + 1 == plan.old {
            tree.git(&["tag", "new"]);
            new = commit.clone();
        }
        commits.push((step.key, commit));
    }
    let tip = tree.git(&["rev-parse", "HEAD"]);
    let truth = truth(&plan, &commits);
    Upstream {
        tree,
        baseline,
        new,
        tip,
        truth,
    }
}

/// Makes a sparse tree that has the files of the plan and borrows the objects of the imported
/// source.
fn checkout(name: &str, debian: &Path, plan: &Plan) -> Tree {
    let tree = Tree::new(name);
    fs::write(
        tree.folder.join(".git/objects/info/alternates"),
        format!("{}/objects\n", debian.display()),
    )
    .unwrap();
    tree.git(&["fetch", "-q", &debian.display().to_string(), "6.12"]);
    let edits = plan.steps.iter().flat_map(|step| &step.edits);
    let mut files: Vec<String> = edits.map(|edit| format!("/{}", edit.file)).collect();
    files.sort();
    files.dedup();
    let set = ["sparse-checkout", "set", "--no-cone"];
    tree.git(
        &set.into_iter()
            .chain(files.iter().map(String::as_str))
            .collect::<Vec<_>>(),
    );
    tree.git(&["reset", "-q", "--hard", "FETCH_HEAD"]);
    tree
}

fn find(commits: &[(Key, String)], key: Key) -> String {
    commits.iter().find(|(of, _)| *of == key).unwrap().1.clone()
}

/// Replaces the texts, each of which must be in its file once, and commits.
fn commit(tree: &Tree, step: &Step, n: usize, before: &[(Key, String)]) -> String {
    for edit in &step.edits {
        let path = tree.folder.join(edit.file);
        let text = fs::read_to_string(&path).unwrap();
        let found = text.matches(&edit.old).count();
        assert_eq!(
            found, 1,
            "{}: {:?} is in {} {found} times",
            step.subject, edit.old, edit.file
        );
        fs::write(&path, text.replacen(&edit.old, &edit.new, 1)).unwrap();
    }
    let mut message = step.subject.clone();
    if !step.body.is_empty() {
        message = format!("{message}\n\n{}", step.body);
    }
    let mut trailers = String::new();
    if let Some(fixed) = step.fixes {
        let fixed = find(before, fixed);
        let subject = tree.git(&["show", "-s", "--format=%s", &fixed]);
        trailers = format!("Fixes: {} (\"{subject}\")\n", &fixed[..12]);
    }
    let author = format!("{} <{}>", step.author, step.address());
    message = format!("{message}\n\n{trailers}Signed-off-by: {author}");
    let date = format!("{} +0000", 1_700_000_000 + 40_000 * n);
    tree.git(&[
        "commit", "-qa", "--author", &author, "--date", &date, "-m", &message,
    ]);
    tree.git(&["rev-parse", "HEAD"])
}

fn truth(plan: &Plan, commits: &[(Key, String)]) -> Truth {
    let mut causes = vec![];
    for (n, cause) in plan.causes.iter().enumerate() {
        causes.push(Cause {
            commit: find(commits, Key::Cause(n)),
            function: cause.function,
            worse: cause.worse.to_vec(),
            better: cause.better.to_vec(),
            shows_with: cause
                .shows_with
                .map(|other| find(commits, Key::Cause(other))),
        });
    }
    let mut repairs = vec![];
    let mut minimal = vec![];
    for step in &plan.steps {
        match step.key {
            Key::Prepare => minimal.push(find(commits, Key::Prepare)),
            Key::Repair(n) => {
                let planned = &plan.repairs[n];
                let needs = if planned.kind == Kind::Needs {
                    vec![find(commits, Key::Prepare)]
                } else {
                    vec![]
                };
                let commit = find(commits, step.key);
                minimal.push(commit.clone());
                repairs.push(Repair {
                    commit,
                    kind: planned.kind,
                    of: find(commits, Key::Cause(planned.cause)),
                    tagged: step.fixes.is_some(),
                    needs,
                    rows: plan.causes[planned.cause].worse.to_vec(),
                });
            }
            _ => {}
        }
    }
    Truth {
        causes,
        repairs,
        prerequisite: find(commits, Key::Prepare),
        cosmetic: find(commits, Key::Cosmetic),
        misleading: find(commits, Key::Misleading),
        minimal,
    }
}

/// Returns a data directory that has the source of Linux 6.12, and the repository of imported
/// sources in it.
pub(crate) fn imported() -> (PathBuf, PathBuf) {
    // One at a time: only one process may build in a data directory.
    static ONE: Shared<()> = Shared::new(());
    let _one = ONE.lock();
    let home = folder("upstream-home");
    let output = output_of(&home, &["build", "deb-src:6.12"]);
    assert!(output.starts_with("exit 0"), "{output}");
    let debian = home.join("workshop/debian");
    (home, debian)
}

/// Returns whether commits can be picked onto `new`; if not, git must have found a conflict.
fn can_pick(tree: &Tree, commits: &[&str]) -> bool {
    tree.git(&["checkout", "-q", "--detach", "new"]);
    let output = Command::new("git")
        .args([
            "-c",
            "user.name=Ada",
            "-c",
            "user.email=ada@example.org",
            "-c",
            "commit.gpgsign=false",
            "cherry-pick",
        ])
        .args(commits)
        .current_dir(&tree.folder)
        .output()
        .unwrap();
    let conflicts = String::from_utf8_lossy(&output.stdout).contains("CONFLICT (content)");
    assert_eq!(
        output.status.success(),
        !conflicts,
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    tree.git(&["reset", "-q", "--hard"]);
    !conflicts
}

/// Returns the tags of a commit that say what it fixes.
fn fixed(tree: &Tree, commit: &str) -> String {
    tree.git(&[
        "show",
        "-s",
        "--format=%(trailers:key=Fixes,valueonly)",
        commit,
    ])
}

fn check_causes(upstream: &Upstream) {
    let Upstream { tree, truth, .. } = upstream;
    let older = tree.git(&["rev-list", "baseline..new"]);
    let [first, second, defining, multiplying, trade] = &truth.causes[..] else {
        panic!("{truth:?}")
    };
    assert_eq!(first.function, second.function);
    assert_ne!(defining.function, multiplying.function);
    assert_eq!(multiplying.shows_with.as_ref(), Some(&defining.commit));
    assert!(!trade.better.is_empty());
    for cause in &truth.causes {
        assert!(
            older.contains(&cause.commit) && !cause.worse.is_empty(),
            "{cause:?}"
        );
        // A revert must be possible on top of `new`.
        tree.git(&["checkout", "-q", "--detach", "new"]);
        tree.git(&["revert", "--no-edit", &cause.commit]);
    }
}

fn check_repairs(upstream: &Upstream) {
    let Upstream { tree, truth, .. } = upstream;
    let newer = tree.git(&["rev-list", "new..main"]);
    for repair in &truth.repairs {
        let cause = truth
            .causes
            .iter()
            .find(|cause| cause.commit == repair.of)
            .unwrap();
        assert!(
            newer.contains(&repair.commit) && repair.rows == cause.worse,
            "{repair:?}"
        );
        let tag = if repair.tagged { &repair.of[..12] } else { "" };
        assert_eq!(
            fixed(tree, &repair.commit).split(' ').next(),
            Some(tag),
            "{repair:?}"
        );
        let clean = !matches!(repair.kind, Kind::Needs | Kind::Conflicts);
        assert_eq!(can_pick(tree, &[&repair.commit]), clean, "{repair:?}");
    }
    let of_kind = |kind: Kind| {
        truth
            .repairs
            .iter()
            .filter(|repair| repair.kind == kind)
            .collect::<Vec<_>>()
    };
    let alone = [Kind::Plain, Kind::Partly, Kind::Needs, Kind::Conflicts];
    assert!(
        alone.iter().all(|kind| of_kind(*kind).len() == 1) && of_kind(Kind::Half).len() == 2,
        "{truth:?}"
    );
    assert_eq!(of_kind(Kind::Needs)[0].needs.join(" "), truth.prerequisite);
    let conflicting = &of_kind(Kind::Conflicts)[0].commit;
    let others = truth
        .minimal
        .iter()
        .filter(|commit| *commit != conflicting)
        .map(String::as_str);
    assert!(
        can_pick(tree, &others.collect::<Vec<_>>())
            && can_pick(tree, &[&truth.cosmetic, conflicting]),
        "{truth:?}"
    );
}

#[test]
fn upstreams_of_five_seeds_are_consistent() {
    if std::env::var_os("MARVIN_FULL").is_none() {
        println!("skipped: the source of a kernel is fetched only with MARVIN_FULL=1");
        return;
    }
    let (_, debian) = imported();
    for seed in 1..=5 {
        let upstream = upstream(seed, &debian);
        let Upstream {
            tree,
            baseline,
            new,
            tip,
            truth,
        } = &upstream;
        assert_eq!(
            tree.git(&["rev-list", "--count", "baseline..main"]),
            plan::COMMITS.to_string()
        );
        let revisions = tree.git(&["rev-parse", "baseline", "new", "main"]);
        assert_eq!(revisions, format!("{baseline}\n{new}\n{tip}"));
        check_causes(&upstream);
        check_repairs(&upstream);
        assert!(fixed(tree, &truth.misleading).starts_with(&truth.causes[0].commit[..12]));
        let newer: Vec<String> = tree
            .git(&["rev-list", "--reverse", "new..main"])
            .lines()
            .map(str::to_owned)
            .collect();
        assert!(
            truth
                .minimal
                .is_sorted_by_key(|commit| newer.iter().position(|of| of == commit)),
            "{truth:?}"
        );
        tree.git(&["checkout", "-q", "main"]);
    }
}
