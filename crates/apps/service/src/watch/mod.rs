//! One pass over the trees of a site: queues new kernels, and older ones that are missing.

mod branches;
mod remotes;
mod select;

use std::collections::{BTreeMap, BTreeSet};

use model::{
    CHECK_PLAN, JobState, KernelName, MarvinConfig, NewJob, QueuedJob, Release, StandingPlan,
    TreeOrigin, UnixTime, WatchedTree, Work,
};
use regex_lite::Regex;
use store::{Listed, Notice, Queued, Store};

use crate::ServiceError;
use crate::notify::raise_notice;
pub use branches::{BranchCheck, HeadResult, Heads};
pub use remotes::Remotes;
use select::{Rule, TreeKernel, coarsest_first, read_tags, select_kernels};

/// Packages of kernels: name and upstream version.
pub type Packages = Vec<(String, String)>;

/// Lists available kernels. The inner error says why there was no answer.
pub trait KernelSource {
    /// Returns the tags of a git repository.
    ///
    /// # Errors
    /// If it does not answer.
    fn tags(&self, place: &str) -> Result<Vec<String>, String>;

    /// Returns the packages of a series and flavour, newest first.
    ///
    /// # Errors
    /// If there is no answer.
    fn packages(&self, series: &str, flavour: &str) -> Result<Packages, String>;

    /// Returns those of these branches that a git repository has.
    ///
    /// # Errors
    /// If it does not answer.
    fn heads(&self, place: &str, branches: &[String]) -> Result<Heads, String>;

    /// Returns whether a former head of a branch is no ancestor of the new one; `None` if that is
    /// not known without fetching.
    fn is_rewritten(&self, place: &str, former: &str, head: &str) -> Option<bool>;
}

/// An event of a pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchEvent {
    /// Marvin queued this work under this number.
    Queued(u64, Work),
    /// Marvin dropped a waiting job that no plan asks for any more.
    Replaced(u64, Work),
    /// A tree does not answer.
    Silent { tree: String, why: String },
    /// A tree answers again.
    Answers(String),
    /// Tags of a tree that are not versions, seen for the first time.
    NoVersions(String, Vec<String>),
    /// What a tree gave in this pass.
    Checked(TreeCheck),
}

/// What a tree that answered gave in a pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeCheck {
    /// The tree's name in marvin.toml.
    pub tree: String,
    /// Releases or packages that it has.
    pub offered: usize,
    /// Those that its rules select.
    pub selected: usize,
    /// Jobs that were queued for them.
    pub queued: usize,
    /// Why no job was queued.
    pub why_none: Option<WhyNone>,
    /// What became of the heads of its branches.
    pub branches: Vec<BranchCheck>,
}

/// Why a pass queued nothing of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyNone {
    /// It has none; so many of its tags are not versions.
    NoRelease { other_tags: usize },
    /// `since` and `points` exclude them all.
    NoneSelected,
    /// No plan names the tree.
    NoPlan,
    /// All are queued or measured.
    AllKnown,
}

/// The result of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Watched {
    /// Kernels selected in all trees.
    pub kernels: usize,
    pub queued: usize,
    pub replaced: usize,
    /// Trees that did not answer.
    pub silent: usize,
}

/// What a pass needs.
struct Pass<'a> {
    settings: &'a MarvinConfig,
    store: &'a Store,
    source: &'a dyn KernelSource,
    now_unix: UnixTime,
    notify: &'a dyn Fn(WatchEvent),
}

/// Checks all trees once, and queues the missing jobs of their plans.
///
/// # Errors
/// If the store fails. A tree that does not answer is no error.
pub fn watch(
    settings: &MarvinConfig,
    store: &Store,
    source: &dyn KernelSource,
    now_unix: UnixTime,
    notify: &dyn Fn(WatchEvent),
) -> Result<Watched, ServiceError> {
    let pass = Pass {
        settings,
        store,
        source,
        now_unix,
        notify,
    };
    let mut watched = Watched::default();
    for tree in &settings.trees {
        pass.tree(tree, &mut watched)?;
    }
    Ok(watched)
}

impl Pass<'_> {
    fn tree(&self, tree: &WatchedTree, watched: &mut Watched) -> Result<(), ServiceError> {
        let subject = format!("tree:{}", tree.name);
        let answer = self
            .kernels_of(tree)
            .and_then(|found| Ok((found, self.asked_heads(tree)?)));
        let answer = match answer {
            Err(why) => {
                watched.silent += 1;
                let headline = format!("the tree {} does not answer", tree.name);
                let notice = Notice {
                    subject,
                    headline,
                    body: format!("{why}\n"),
                    raised_unix: self.now_unix,
                };
                raise_notice(self.store, &self.settings.channels, &notice)?;
                (self.notify)(WatchEvent::Silent {
                    tree: tree.name.clone(),
                    why,
                });
                return Ok(());
            }
            Ok(((found, others), heads)) => {
                if self.store.settle(&subject, self.now_unix)? {
                    (self.notify)(WatchEvent::Answers(tree.name.clone()));
                }
                let other_tags = others.len();
                self.no_versions(tree, others)?;
                (found, other_tags, heads)
            }
        };
        let (found, other_tags, heads) = answer;
        let offered = found.len();
        let jobs: Vec<QueuedJob> = self.store.queued_jobs(Listed::All)?;
        let jobs: Vec<QueuedJob> = jobs
            .into_iter()
            .filter(|job| job.new.work.tree == tree.name)
            .collect();
        let known = known_kernels(&jobs);
        let rule = Rule {
            since: tree.since.as_ref(),
            points: tree.points,
            now_unix: self.now_unix,
        };
        let mut kernels = select_kernels(found, &known, rule);
        let mut branches = Vec::new();
        if let Some((place, heads)) = heads {
            let (of_heads, checks) = self.heads_of(tree, &heads, place, &known)?;
            kernels.splice(0..0, of_heads);
            branches = checks;
        }
        let offered = offered + branches.iter().filter(|one| !one.head.is_empty()).count();
        watched.kernels += kernels.len();
        let mut wanted = BTreeSet::new();
        let mut queued = 0;
        let plans = self.settings.plans.iter();
        let plans = plans.filter(|plan| plan.trees.contains(&tree.name));
        for plan in plans.clone() {
            queued += self.plan(tree, plan, &kernels, &known, &mut wanted)?;
        }
        watched.queued += queued;
        watched.replaced += self.replace(&jobs, &wanted)?;
        let why_none = if queued > 0 {
            None
        } else if offered == 0 {
            Some(WhyNone::NoRelease { other_tags })
        } else if kernels.is_empty() {
            Some(WhyNone::NoneSelected)
        } else if plans.count() == 0 {
            Some(WhyNone::NoPlan)
        } else {
            Some(WhyNone::AllKnown)
        };
        (self.notify)(WatchEvent::Checked(TreeCheck {
            tree: tree.name.clone(),
            offered,
            selected: kernels.len(),
            queued,
            why_none,
            branches,
        }));
        Ok(())
    }

    /// Asks a tree for the heads of its branches, if some are watched.
    fn asked_heads<'t>(&self, tree: &'t WatchedTree) -> Result<Option<(&'t str, Heads)>, String> {
        match &tree.origin {
            TreeOrigin::Git { place, .. } if !tree.branches.is_empty() => {
                let heads = self.source.heads(place, &tree.branches)?;
                Ok(Some((place.as_str(), heads)))
            }
            _ => Ok(None),
        }
    }

    /// Returns the kernels of a tree, and its tags that are not versions.
    fn kernels_of(&self, tree: &WatchedTree) -> Result<(Vec<TreeKernel>, Vec<String>), String> {
        match &tree.origin {
            // It watches branches alone.
            TreeOrigin::Git { tags, .. } if tags.is_empty() => Ok((Vec::new(), Vec::new())),
            TreeOrigin::Git { place, tags } => {
                let pattern = Regex::new(tags).map_err(|error| error.to_string())?;
                Ok(read_tags(&self.source.tags(place)?, &pattern))
            }
            TreeOrigin::Debian { series, flavour } => {
                let mut found = Vec::new();
                for one in series {
                    let mut packages = self.source.packages(one, flavour)?;
                    // Of several revisions of a release take the newest, as `deb:` names do.
                    let mut seen = BTreeSet::new();
                    packages.retain(|(_, upstream)| seen.insert(upstream.clone()));
                    found.extend(packages.into_iter().filter_map(|(package, upstream)| {
                        let kernel: KernelName = format!("deb:{package}").parse().ok()?;
                        Some(TreeKernel {
                            kernel,
                            release: Release::parse(&upstream),
                        })
                    }));
                }
                Ok((found, Vec::new()))
            }
        }
    }

    /// Reports tags that are not versions, once.
    fn no_versions(&self, tree: &WatchedTree, tags: Vec<String>) -> Result<(), ServiceError> {
        let subject = format!("tags:{}", tree.name);
        let before = self.store.standing(&subject)?;
        let reported: BTreeSet<&str> = before
            .iter()
            .flat_map(|notice| notice.body.lines())
            .collect();
        let news: Vec<String> = tags
            .iter()
            .filter(|tag| !reported.contains(tag.as_str()))
            .cloned()
            .collect();
        if news.is_empty() {
            return Ok(());
        }
        self.store.settle(&subject, self.now_unix)?;
        let headline = format!("{} tags of {} are no versions", tags.len(), tree.name);
        let notice = Notice {
            subject,
            headline,
            body: tags.join("\n"),
            raised_unix: self.now_unix,
        };
        self.store.raise(&notice, &[])?;
        (self.notify)(WatchEvent::NoVersions(tree.name.clone(), news));
        Ok(())
    }

    /// Queues the jobs of a plan for the kernels of a tree; returns their number.
    fn plan(
        &self,
        tree: &WatchedTree,
        plan: &StandingPlan,
        kernels: &[TreeKernel],
        known: &BTreeMap<String, UnixTime>,
        wanted: &mut BTreeSet<String>,
    ) -> Result<usize, ServiceError> {
        let mut queued = 0;
        for (rank, place) in coarsest_first(kernels.len()).into_iter().enumerate() {
            let kernel = &kernels[place].kernel;
            // A kernel that appears in a tree watched before is new, and has priority over older
            // ones.
            let is_news = !known.is_empty() && !known.contains_key(&kernel.to_string());
            let new = NewJob {
                work: work(tree, plan, kernel),
                plan: plan.name.clone(),
                priority: plan.priority,
                rank: if is_news { 0 } else { rank as u64 },
                attempts_max: self.settings.work.attempts_max,
                deadline_s: self.settings.work.deadline_s,
            };
            wanted.insert(identity(&new.work));
            let number = match self.store.queue_job(&new, self.now_unix)? {
                Queued::New(number) => number,
                Queued::Known(job) if job.state == JobState::Replaced => {
                    self.store
                        .change_job(job.number, |job| job.again(new.clone(), self.now_unix))?;
                    job.number
                }
                Queued::Known(_) => continue,
            };
            queued += 1;
            (self.notify)(WatchEvent::Queued(number, new.work));
        }
        Ok(queued)
    }

    /// Replaces waiting jobs that no plan asks for any more; keeps those that a user queued.
    fn replace(
        &self,
        jobs: &[QueuedJob],
        wanted: &BTreeSet<String>,
    ) -> Result<usize, ServiceError> {
        let mut replaced = 0;
        for job in jobs
            .iter()
            .filter(|job| is_planned(job) && !wanted.contains(&identity(&job.new.work)))
        {
            let mut done = false;
            if matches!(job.state, JobState::Waiting { .. }) {
                self.store.change_job(job.number, |job| {
                    done = job.replace(self.now_unix);
                    Ok(())
                })?;
            }
            if done {
                replaced += 1;
                (self.notify)(WatchEvent::Replaced(job.number, job.new.work.clone()));
            }
        }
        Ok(replaced)
    }
}

/// Returns whether a plan of marvin.toml asked for a job: neither a user, nor the worker that
/// checks a server.
fn is_planned(job: &QueuedJob) -> bool {
    !["", CHECK_PLAN].contains(&job.new.plan.as_str())
}

/// Returns the kernels selected earlier, with the time of their first job.
fn known_kernels(jobs: &[QueuedJob]) -> BTreeMap<String, UnixTime> {
    let mut known = BTreeMap::new();
    for job in jobs.iter().filter(|job| is_planned(job)) {
        let first: &mut UnixTime = known
            .entry(job.new.work.kernel.to_string())
            .or_insert(job.queued_unix);
        *first = job.queued_unix.min(*first);
    }
    known
}

fn work(tree: &WatchedTree, plan: &StandingPlan, kernel: &KernelName) -> Work {
    Work {
        kernel: kernel.clone(),
        tree: tree.name.clone(),
        config: tree.config.clone(),
        suite: plan.suite.name.to_owned(),
        // By name: if a later Marvin has another workload, that is new work for old kernels.
        workloads: plan.workloads.clone(),
        seeds: plan.seeds,
        machine: plan.machine.clone(),
    }
}

/// Identifies work: equal texts are equal work.
fn identity(work: &Work) -> String {
    let Work {
        kernel,
        tree,
        config,
        suite,
        workloads,
        seeds,
        machine,
    } = work;
    format!(
        "{kernel}\n{tree}\n{config}\n{suite}\n{}\n{seeds}\n{machine}",
        workloads.join(",")
    )
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use model::{JobState, MarvinConfig, QueuedJob, UnixTime};
    use store::{Listed, Store};

    use super::{KernelSource, Packages, TreeCheck, WatchEvent, Watched, WhyNone, watch};

    /// A fake source with one repository, whose tags can change, and no packages.
    struct World(RefCell<Result<Vec<&'static str>, &'static str>>);

    impl KernelSource for World {
        fn tags(&self, _: &str) -> Result<Vec<String>, String> {
            let answer = self.0.borrow();
            answer
                .as_ref()
                .map(|tags| tags.iter().map(|&tag| tag.to_owned()).collect())
                .map_err(|&why| why.to_owned())
        }

        fn packages(&self, _: &str, flavour: &str) -> Result<Packages, String> {
            let names = ["6.1.0-56", "6.1.0-55"];
            Ok(names
                .map(|name| {
                    let package = format!("linux-image-{name}-{flavour}");
                    (package, "6.1.192".to_owned())
                })
                .to_vec())
        }

        fn heads(&self, _: &str, _: &[String]) -> Result<super::Heads, String> {
            Ok(Vec::new())
        }

        fn is_rewritten(&self, _: &str, _: &str, _: &str) -> Option<bool> {
            None
        }
    }

    const TREE: &str = "[[tree]]\nname = \"linux\"\ngit = \"x\"\n[[notify]]\nname = \"us\"\ncommand = [\"true\"]\n";

    struct Case {
        _home: tempfile::TempDir,
        store: Store,
        world: World,
        events: RefCell<Vec<WatchEvent>>,
    }

    impl Case {
        fn new(tags: &[&'static str]) -> Self {
            let home = tempfile::tempdir().unwrap();
            let store = Store::open(home.path()).unwrap();
            Self {
                _home: home,
                store,
                world: World(RefCell::new(Ok(tags.to_vec()))),
                events: RefCell::default(),
            }
        }

        fn pass(&self, plans: &str, now: i64) -> Watched {
            self.pass_of(&format!("{TREE}{plans}"), now)
        }

        fn pass_of(&self, text: &str, now: i64) -> Watched {
            let settings: MarvinConfig =
                config::settings(text, &model::ToolRows::default()).unwrap();
            watch(
                &settings,
                &self.store,
                &self.world,
                UnixTime::new(now),
                &|event| {
                    self.events.borrow_mut().push(event);
                },
            )
            .unwrap()
        }

        fn jobs(&self) -> Vec<QueuedJob> {
            self.store.queued_jobs(Listed::Open).unwrap()
        }

        fn order(&self) -> Vec<String> {
            self.jobs()
                .iter()
                .map(|job| job.new.work.kernel.to_string())
                .collect()
        }
    }

    const QUICK: &str = "[[plan]]\nname = \"quick\"\nworkloads = [\"getppid\"]\n";

    #[test]
    fn new_kernels_precede_older_ones() {
        let case = Case::new(&[
            "v6.1", "v6.2", "v6.3", "v6.4", "v6.5", "v6.5-rc1", "v6.5.1", "junk",
        ]);
        assert_eq!(
            case.pass(QUICK, 0),
            Watched {
                kernels: 6,
                queued: 6,
                replaced: 0,
                silent: 0
            }
        );
        assert_eq!(
            case.order(),
            [
                "git:v6.5.1",
                "git:v6.1",
                "git:v6.4",
                "git:v6.3",
                "git:v6.5",
                "git:v6.2"
            ]
        );
        // A second pass changes nothing.
        case.events.borrow_mut().clear();
        assert_eq!(
            case.pass(QUICK, 60),
            Watched {
                kernels: 6,
                ..Watched::default()
            }
        );
        assert_eq!(
            case.events.take(),
            [checked(6, 6, Some(WhyNone::AllKnown))],
            "tags that are not versions are reported once"
        );
        *case.world.0.borrow_mut() = Ok(vec![
            "v6.1", "v6.2", "v6.3", "v6.4", "v6.5", "v6.5.1", "v6.4.7", "v6.6", "junk", "more",
        ]);
        assert_eq!(case.pass(QUICK, 120).queued, 2);
        assert_eq!(
            case.order()[..3],
            ["git:v6.5.1", "git:v6.6", "git:v6.4.7"],
            "those that came are first but for one"
        );
        assert!(
            case.events
                .borrow()
                .contains(&WatchEvent::NoVersions("linux".into(), vec!["more".into()]))
        );
    }

    fn checked(offered: usize, selected: usize, why_none: Option<WhyNone>) -> WatchEvent {
        WatchEvent::Checked(TreeCheck {
            tree: "linux".into(),
            offered,
            selected,
            queued: 0,
            why_none,
            branches: Vec::new(),
        })
    }

    #[test]
    fn tree_that_gives_nothing_has_a_reason() {
        let last = |tags: &[&'static str], plans: &str| {
            let case = Case::new(tags);
            case.pass(plans, 0);
            case.events.take().pop().unwrap()
        };
        let other_tags = Some(WhyNone::NoRelease { other_tags: 2 });
        assert_eq!(last(&["next-1", "junk"], QUICK), checked(0, 0, other_tags));
        let no_tags = Some(WhyNone::NoRelease { other_tags: 0 });
        assert_eq!(last(&[], QUICK), checked(0, 0, no_tags));
        let no_plan = Some(WhyNone::NoPlan);
        assert_eq!(last(&["v6.1"], ""), checked(1, 1, no_plan));
        let late = TREE.replace("git = \"x\"", "git = \"x\"\nsince = \"6.2\"");
        let case = Case::new(&["v6.1"]);
        case.pass_of(&format!("{late}{QUICK}"), 0);
        let none = Some(WhyNone::NoneSelected);
        assert_eq!(case.events.take(), [checked(1, 0, none)]);
    }

    #[test]
    fn added_workload_is_queued_for_old_kernels() {
        let case = Case::new(&["v6.1", "v6.2", "v6.3"]);
        case.pass(QUICK, 0);
        let first = case
            .store
            .claim_job("w", &[model::USUAL_MACHINE.to_owned()], UnixTime::new(1))
            .unwrap()
            .unwrap();
        let fence = first.fence;
        case.store
            .change_job(first.number, |job| {
                job.end(fence, model::Ending::Done(String::new()), UnixTime::new(2))
            })
            .unwrap();
        let both = QUICK.replace("\"getppid\"", "\"getppid\", \"fork\"");
        assert_eq!(
            case.pass(&both, 10),
            Watched {
                kernels: 3,
                queued: 3,
                replaced: 2,
                silent: 0
            }
        );
        assert!(
            case.jobs()
                .iter()
                .all(|job| job.new.work.workloads.contains(&"fork-exit".to_owned()))
        );
        // And back: replaced jobs are queued again, completed ones are not.
        assert_eq!(
            case.pass(QUICK, 20),
            Watched {
                kernels: 3,
                queued: 2,
                replaced: 3,
                silent: 0
            }
        );
        // Cancelled jobs stay cancelled.
        let waiting = case.jobs().remove(0).number;
        case.store
            .change_job(waiting, |job| job.cancel(UnixTime::new(21)))
            .unwrap();
        assert_eq!(case.pass(QUICK, 30).queued, 0);
        assert_eq!(
            case.store.queued_job(waiting).unwrap().state,
            JobState::Cancelled
        );
    }

    #[test]
    fn gc_makes_watch_queue_nothing_again() {
        let case = Case::new(&["v6.1"]);
        assert_eq!(case.pass(QUICK, 0).queued, 1);
        case.store
            .change_job(case.jobs()[0].number, |job| job.cancel(UnixTime::new(1)))
            .unwrap();
        let trees = ["linux".to_owned()];
        let expiry = store::Expiry {
            jobs_before_unix: Some(UnixTime::new(1000)),
            trees: &trees,
            notices_before_unix: None,
        };
        assert_eq!(case.store.remove_expired(&expiry).unwrap().jobs, 0);
        assert_eq!(case.pass(QUICK, 2000).queued, 0);
        // Of a tree that marvin.toml no longer has, the job goes.
        let expiry = store::Expiry {
            trees: &[],
            ..expiry
        };
        assert_eq!(case.store.remove_expired(&expiry).unwrap().jobs, 1);
    }

    #[test]
    fn silent_tree_is_reported_once_per_outage() {
        let case = Case::new(&["v6.1"]);
        case.pass(QUICK, 0);
        for now in [10, 20] {
            *case.world.0.borrow_mut() = Err("no route to host");
            assert_eq!(case.pass(QUICK, now).silent, 1);
        }
        let due = case.store.list_undelivered().unwrap();
        assert_eq!(due.len(), 1, "{due:?}");
        assert_eq!(
            (due[0].channel.as_str(), due[0].notice.body.as_str()),
            ("us", "no route to host\n")
        );
        *case.world.0.borrow_mut() = Ok(vec!["v6.1"]);
        case.pass(QUICK, 30);
        assert!(
            case.events
                .borrow()
                .contains(&WatchEvent::Answers("linux".into()))
        );
        *case.world.0.borrow_mut() = Err("no route to host");
        case.pass(QUICK, 40);
        assert_eq!(case.store.list_undelivered().unwrap().len(), 2);
    }

    #[test]
    fn only_newest_package_revisions_are_queued() {
        let case = Case::new(&[]);
        let debian = "[[tree]]\nname = \"debian\"\ndebian = [\"6.1\"]\n[[plan]]\nname = \"d\"\ntrees = [\"debian\"]\n";
        assert_eq!(case.pass(debian, 0).queued, 1);
        assert_eq!(case.order(), ["deb:linux-image-6.1.0-56-cloud-amd64"]);
    }
}
