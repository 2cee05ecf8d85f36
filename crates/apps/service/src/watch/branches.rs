//! Heads of branches: which of them a pass takes, and why it takes none.
//!
//! A notice that no channel gets keeps, for each branch of a tree, the head that was taken last and
//! when.

use std::collections::{BTreeMap, BTreeSet};

use model::{KernelName, Release, UnixTime, WatchedTree, format_left};
use store::Notice;

use super::Pass;
use super::select::TreeKernel;
use crate::ServiceError;
use crate::notify::raise_notice;

/// A branch and its head, a full hash.
pub type Heads = Vec<(String, String)>;

/// What a pass found of a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchCheck {
    /// The branch's name.
    pub branch: String,
    /// Its head; empty if it has none.
    pub head: String,
    /// What became of the head.
    pub result: HeadResult,
}

/// What became of the head of a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeadResult {
    /// It is new, and taken.
    Taken {
        /// Whether the last head that was taken is no ancestor of it; `None` if that is not known.
        was_rewritten: Option<bool>,
    },
    /// It was taken before, by this branch or another.
    Known,
    /// The rule of thinning leaves it out, for so many seconds.
    Thinned(u64),
    /// The tree has no such branch.
    Missing {
        /// Whether it had one.
        had: bool,
    },
}

/// The heads that were taken last, by branch, each with its time.
type Taken = BTreeMap<String, (String, UnixTime)>;

impl Pass<'_> {
    /// Returns the heads to measure, the new ones first, and what became of each branch.
    pub(super) fn heads_of(
        &self,
        tree: &WatchedTree,
        heads: &Heads,
        place: &str,
        known: &BTreeMap<String, UnixTime>,
    ) -> Result<(Vec<TreeKernel>, Vec<BranchCheck>), ServiceError> {
        let subject = format!("heads:{}", tree.name);
        let before = self.store.standing(&subject)?;
        let mut taken = before
            .as_ref()
            .map(|notice| read_taken(&notice.body))
            .unwrap_or_default();
        let mut kernels = Vec::new();
        let mut checks = Vec::new();
        for branch in &tree.branches {
            let head = heads.iter().find(|(name, _)| name == branch);
            let head = head.map(|(_, head)| head.as_str()).unwrap_or_default();
            let last = taken.get(branch);
            let result = self.check_head(tree, head, last, known);
            let result = match result {
                HeadResult::Taken { .. } => HeadResult::Taken {
                    was_rewritten: last
                        .and_then(|(last, _)| self.source.is_rewritten(place, last, head)),
                },
                other => other,
            };
            if matches!(result, HeadResult::Taken { .. }) {
                kernels.extend(kernel_of(head));
                taken.insert(branch.clone(), (head.to_owned(), self.now_unix));
            }
            self.report_missing(tree, branch, &result)?;
            checks.push(BranchCheck {
                branch: branch.clone(),
                head: head.to_owned(),
                result,
            });
        }
        // Heads that were taken before are still asked for: by plans that are new, too.
        let earlier: BTreeSet<&String> = known.keys().filter(|name| is_head(name)).collect();
        kernels.extend(
            earlier
                .into_iter()
                .filter_map(|name| kernel_of(name.strip_prefix("git:")?)),
        );
        let body = format_taken(&taken);
        if before.is_none_or(|before| before.body != body) {
            self.store.settle(&subject, self.now_unix)?;
            let headline = format!("heads of {} that were taken", tree.name);
            let notice = Notice {
                subject,
                headline,
                body,
                raised_unix: self.now_unix,
            };
            self.store.raise(&notice, &[])?;
        }
        Ok((kernels, checks))
    }

    fn check_head(
        &self,
        tree: &WatchedTree,
        head: &str,
        last: Option<&(String, UnixTime)>,
        known: &BTreeMap<String, UnixTime>,
    ) -> HeadResult {
        if head.is_empty() {
            return HeadResult::Missing {
                had: last.is_some(),
            };
        }
        let is_last = last.is_some_and(|(last, _)| last == head);
        if is_last || known.contains_key(&format!("git:{head}")) {
            return HeadResult::Known;
        }
        let passed_s =
            last.map(|(_, taken_unix)| self.now_unix.seconds_since(*taken_unix).unwrap_or(0));
        match passed_s.map(|passed_s| tree.every_s.saturating_sub(passed_s)) {
            Some(left_s) if left_s > 0 => HeadResult::Thinned(left_s),
            _ => HeadResult::Taken {
                was_rewritten: None,
            },
        }
    }

    /// Reports a branch that is there no more, once until it is back.
    fn report_missing(
        &self,
        tree: &WatchedTree,
        branch: &str,
        result: &HeadResult,
    ) -> Result<(), ServiceError> {
        let subject = format!("branch:{}:{branch}", tree.name);
        if !matches!(result, HeadResult::Missing { .. }) {
            self.store.settle(&subject, self.now_unix)?;
            return Ok(());
        }
        let headline = format!("the tree {} has no branch {branch}", tree.name);
        let body = "Marvin goes on with the other branches; what was measured of this one stays.\n";
        let notice = Notice {
            subject,
            headline,
            body: body.to_owned(),
            raised_unix: self.now_unix,
        };
        raise_notice(self.store, &self.settings.channels, &notice)
    }
}

impl BranchCheck {
    /// Describes it in one line.
    #[must_use]
    pub fn describe(&self) -> String {
        let short: String = self.head.chars().take(12).collect();
        let branch = self.branch.escape_debug();
        match self.result {
            HeadResult::Taken {
                was_rewritten: Some(true),
            } => format!("{branch} {short}: new; the branch was rewritten (forced push)"),
            HeadResult::Taken { .. } => format!("{branch} {short}: new"),
            HeadResult::Known => format!("{branch} {short}: head already queued or measured"),
            HeadResult::Thinned(left_s) => format!(
                "{branch} {short}: left out by `every`, the next head is taken in {}",
                format_left(left_s)
            ),
            HeadResult::Missing { had: true } => {
                format!("{branch}: the branch is gone; what was measured of it stays")
            }
            HeadResult::Missing { had: false } => format!("{branch}: the tree has no such branch"),
        }
    }
}

/// Returns the kernel of a head; `None` for what is no full hash.
fn kernel_of(head: &str) -> Option<TreeKernel> {
    let kernel: KernelName = format!("git:{head}").parse().ok()?;
    is_head(&kernel.to_string()).then(|| TreeKernel {
        kernel,
        release: Release::parse(head),
    })
}

/// Returns whether a kernel's name is that of a commit by its full hash.
fn is_head(name: &str) -> bool {
    name.strip_prefix("git:")
        .is_some_and(kernel::is_commit_hash)
}

/// Parses lines of branch, head and time; skips invalid ones.
fn read_taken(text: &str) -> Taken {
    let line = |line: &str| {
        let mut words = line.rsplitn(3, ' ');
        let taken_unix = UnixTime::new(words.next()?.parse().ok()?);
        let head = words.next()?.to_owned();
        Some((words.next()?.to_owned(), (head, taken_unix)))
    };
    text.lines().filter_map(line).collect()
}

fn format_taken(taken: &Taken) -> String {
    let mut text = String::new();
    for (branch, (head, taken_unix)) in taken {
        text.extend([
            branch,
            " ",
            head,
            " ",
            &taken_unix.seconds().to_string(),
            "\n",
        ]);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use model::UnixTime;
    use store::Store;

    use super::Heads;
    use crate::watch::{KernelSource, Packages, WatchEvent, watch};

    /// A tree whose heads can change.
    struct Tree {
        heads: RefCell<Heads>,
        rewritten: RefCell<Option<bool>>,
    }

    impl KernelSource for Tree {
        fn tags(&self, _: &str) -> Result<Vec<String>, String> {
            Err("a tree with branches alone is not asked for tags".to_owned())
        }

        fn packages(&self, _: &str, _: &str) -> Result<Packages, String> {
            Err("no packages".to_owned())
        }

        fn heads(&self, _: &str, _: &[String]) -> Result<Heads, String> {
            Ok(self.heads.borrow().clone())
        }

        fn is_rewritten(&self, _: &str, _: &str, _: &str) -> Option<bool> {
            *self.rewritten.borrow()
        }
    }

    fn hash(digit: char) -> String {
        digit.to_string().repeat(40)
    }

    #[test]
    fn heads_are_taken_thinned_and_explained() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path()).unwrap();
        let text = "[[tree]]\nname = \"next\"\ngit = \"x\"\nbranches = [\"master\", \"mm-unstable\"]\nevery = \"1d\"\n\
                    [[plan]]\nname = \"p\"\nworkloads = [\"getppid\"]\n\
                    [[notify]]\nname = \"us\"\ncommand = [\"true\"]\n";
        let settings = config::settings(text, &model::ToolRows::default()).unwrap();
        let tree = Tree {
            heads: RefCell::default(),
            rewritten: RefCell::new(Some(false)),
        };
        let pass = |heads: &[(&str, char)], hours: i64| {
            let heads = heads.iter();
            *tree.heads.borrow_mut() = heads
                .map(|(branch, digit)| ((*branch).to_owned(), hash(*digit)))
                .collect();
            let said = RefCell::new(Vec::new());
            let now = UnixTime::new(1_000_000 + hours * 3600);
            let watched = watch(&settings, &store, &tree, now, &|event| {
                if let WatchEvent::Checked(check) = event {
                    let branches = check.branches.iter().map(super::BranchCheck::describe);
                    said.borrow_mut().extend(branches);
                }
            });
            format!(
                "queued {}\n{}",
                watched.unwrap().queued,
                said.take().join("\n")
            )
        };
        let both = |digit| [("master", digit), ("mm-unstable", 'b')];
        insta::assert_snapshot!(pass(&both('a'), 0), @"
        queued 2
        master aaaaaaaaaaaa: new
        mm-unstable bbbbbbbbbbbb: new
        ");
        insta::assert_snapshot!(pass(&both('c'), 1), @"
        queued 0
        master cccccccccccc: left out by `every`, the next head is taken in 23 h
        mm-unstable bbbbbbbbbbbb: head already queued or measured
        ");
        *tree.rewritten.borrow_mut() = Some(true);
        insta::assert_snapshot!(pass(&both('d'), 25), @"
        queued 1
        master dddddddddddd: new; the branch was rewritten (forced push)
        mm-unstable bbbbbbbbbbbb: head already queued or measured
        ");
        // Moved back to a known commit, and one branch without a head.
        insta::assert_snapshot!(pass(&[("master", 'a')], 50), @"
        queued 0
        master aaaaaaaaaaaa: head already queued or measured
        mm-unstable: the branch is gone; what was measured of it stays
        ");
        let gone = store.standing("branch:next:mm-unstable").unwrap();
        assert!(gone.is_some() && store.list_undelivered().unwrap().len() == 1);
        pass(&both('a'), 51);
        assert_eq!(store.standing("branch:next:mm-unstable").unwrap(), None);
    }
}
