//! A synthetic upstream on the source of a Debian release: 40 commits, of which 5 make rows of the micro suite slower
//! and 6 repair that. A seed chooses places, sizes and order. The search for repairs is elsewhere and not known here.

mod innocent;
mod pad;
mod places;
mod plan;

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::bisected::Tree;
use crate::folder;
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
    /// The right series: all repairs and the prerequisite, in the order of the history. No revert belongs to it, because
    /// the repair of each cause repays more than half; only the partial one leaves a rest.
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

/// Makes the upstream of a seed on the newest release of Linux 6.12 in a repository of imported sources.
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
    Upstream { tree, baseline, new, tip, truth }
}

/// Makes a sparse tree that has the files of the plan and borrows the objects of the imported source.
fn checkout(name: &str, debian: &Path, plan: &Plan) -> Tree {
    let tree = Tree::new(name);
    fs::write(tree.folder.join(".git/objects/info/alternates"), format!("{}/objects\n", debian.display())).unwrap();
    tree.git(&["fetch", "-q", &debian.display().to_string(), "6.12"]);
    let edits = plan.steps.iter().flat_map(|step| &step.edits);
    let mut files: Vec<String> = edits.map(|edit| format!("/{}", edit.file)).collect();
    files.sort();
    files.dedup();
    let set = ["sparse-checkout", "set", "--no-cone"];
    tree.git(&set.into_iter().chain(files.iter().map(String::as_str)).collect::<Vec<_>>());
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
        assert_eq!(found, 1, "{}: {:?} is in {} {found} times", step.subject, edit.old, edit.file);
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
    tree.git(&["add", "-A", "."]);
    let date = format!("{} +0000", 1_700_000_000 + 40_000 * n);
    tree.git(&["commit", "-q", "--author", &author, "--date", &date, "-m", &message]);
    tree.git(&["rev-parse", "HEAD"])
}

fn truth(plan: &Plan, commits: &[(Key, String)]) -> Truth {
    let of = |key: Key| find(commits, key);
    let cause = |(n, cause): (usize, &plan::PlannedCause)| Cause {
        commit: of(Key::Cause(n)),
        function: cause.function,
        worse: cause.worse.to_vec(),
        better: cause.better.to_vec(),
        shows_with: cause.shows_with.map(|other| of(Key::Cause(other))),
    };
    let causes: Vec<Cause> = plan.causes.iter().enumerate().map(cause).collect();
    let mut repairs = vec![];
    let mut minimal = vec![];
    for step in &plan.steps {
        match step.key {
            Key::Prepare => minimal.push(of(Key::Prepare)),
            Key::Repair(n) => {
                let planned = &plan.repairs[n];
                let needs = if planned.kind == Kind::Needs { vec![of(Key::Prepare)] } else { vec![] };
                let commit = of(step.key);
                minimal.push(commit.clone());
                repairs.push(Repair {
                    commit,
                    kind: planned.kind,
                    of: of(Key::Cause(planned.cause)),
                    tagged: step.fixes.is_some(),
                    needs,
                    rows: plan.causes[planned.cause].worse.to_vec(),
                });
            }
            _ => {}
        }
    }
    let (prerequisite, cosmetic, misleading) = (of(Key::Prepare), of(Key::Cosmetic), of(Key::Misleading));
    Truth { causes, repairs, prerequisite, cosmetic, misleading, minimal }
}

/// Errors of git are expected here.
fn picks(tree: &Tree, commits: &[&str]) -> bool {
    tree.git(&["checkout", "-q", "--detach", "new"]);
    let pick = [&["cherry-pick"][..], commits].concat();
    let output = Command::new("git")
        .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false"])
        .args(pick)
        .current_dir(&tree.folder)
        .output()
        .unwrap();
    tree.git(&["reset", "-q", "--hard"]);
    output.status.success()
}

fn check(seed: u64, upstream: &Upstream) {
    let Upstream { tree, baseline, new, tip, truth } = upstream;
    let git = |arguments: &[&str]| tree.git(arguments);
    let count = |range: &str| git(&["rev-list", "--count", range]).parse::<usize>().unwrap();
    assert_eq!(count("baseline..main"), 40);
    assert_eq!(
        [baseline, new, tip],
        [&git(&["rev-parse", "baseline"]), &git(&["rev-parse", "new"]), &git(&["rev-parse", "main"])]
    );
    let of = |range: &str| git(&["rev-list", range]);
    let (older, newer) = (of("baseline..new"), of("new..main"));
    assert_eq!((truth.causes.len(), truth.repairs.len(), truth.minimal.len()), (5, 6, 7));
    assert!(truth.causes.iter().all(|cause| older.contains(&cause.commit)), "seed {seed}: {truth:?}");
    assert!(truth.repairs.iter().all(|repair| newer.contains(&repair.commit)), "seed {seed}: {truth:?}");
    for repair in &truth.repairs {
        let alone = picks(tree, &[&repair.commit]);
        let clean = !matches!(repair.kind, Kind::Needs | Kind::Conflicts);
        assert_eq!(alone, clean, "seed {seed}: {repair:?}");
    }
    let all: Vec<&str> = truth.minimal.iter().map(String::as_str).collect();
    let conflicting = truth.repairs.iter().find(|repair| repair.kind == Kind::Conflicts).unwrap();
    let clean: Vec<&str> = all.iter().copied().filter(|commit| *commit != conflicting.commit).collect();
    assert!(picks(tree, &clean) && picks(tree, &[&truth.cosmetic, &conflicting.commit]), "seed {seed}");
    for cause in &truth.causes {
        tree.git(&["checkout", "-q", "--detach", "new"]);
        tree.git(&["revert", "--no-edit", &cause.commit]);
    }
    tree.git(&["checkout", "-q", "main"]);
}

#[test]
fn upstreams_of_five_seeds_are_consistent() {
    if std::env::var_os("MARVIN_FULL").is_none() {
        println!("skipped: the source of a kernel is fetched only with MARVIN_FULL=1");
        return;
    }
    let debian = folder("real-source-home").join("workshop/debian");
    for seed in 1..=5 {
        check(seed, &upstream(seed, &debian));
    }
}
