//! Selects kernels of a tree and their order. Pure.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use model::{KernelName, Points, Release, ReleaseLine, UnixTime};
use regex_lite::Regex;

/// A kernel of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreeKernel {
    pub(crate) kernel: KernelName,
    pub(crate) release: Release,
}

/// Sorts tags into releases and tags that are not versions. Drops versions that the pattern
/// excludes, such as candidates.
pub(crate) fn read_tags(tags: &[String], pattern: &Regex) -> (Vec<TreeKernel>, Vec<String>) {
    let mut found = Vec::new();
    let mut others = Vec::new();
    for tag in tags {
        let version = pattern
            .captures(tag)
            .and_then(|groups| Some(groups.get(1)?.as_str()));
        let version = version.filter(|version| version.starts_with(|c: char| c.is_ascii_digit()));
        match (version, format!("git:{tag}").parse()) {
            (Some(version), Ok(kernel)) => found.push(TreeKernel {
                kernel,
                release: Release::parse(version),
            }),
            _ if looks_like_version(tag) => {}
            _ => others.push(tag.clone()),
        }
    }
    (found, others)
}

/// Returns whether a tag looks like a version of Linux: `v6.12-rc3`, `v2.6.12.1`.
fn looks_like_version(tag: &str) -> bool {
    let Some(version) = tag.strip_prefix('v') else {
        return false;
    };
    let (numbers, rest) = version.split_once('-').unwrap_or((version, "rc1"));
    numbers.contains('.')
        && numbers.split('.').all(is_number)
        && rest.strip_prefix("rc").is_some_and(is_number)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns whether a kernel is a stable update, and not a release of mainline.
fn is_point(kernel: &TreeKernel) -> bool {
    !ReleaseLine::Mainline.has(&kernel.release)
}

/// The selection rule of a tree.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule<'a> {
    pub(crate) since: Option<&'a Release>,
    pub(crate) points: Points,
    pub(crate) now_unix: UnixTime,
}

/// Returns the selected kernels, newest first. `known` has those selected earlier, with the time.
pub(crate) fn select_kernels(
    mut found: Vec<TreeKernel>,
    known: &BTreeMap<String, UnixTime>,
    rule: Rule<'_>,
) -> Vec<TreeKernel> {
    found.retain(|one| rule.since.is_none_or(|since| one.release >= *since));
    found.sort_by(|a, b| {
        b.release
            .cmp(&a.release)
            .then_with(|| a.kernel.to_string().cmp(&b.kernel.to_string()))
    });
    found.dedup_by(|a, b| a.kernel == b.kernel);
    match rule.points {
        Points::Every => {}
        Points::Never => found.retain(|one| !is_point(one)),
        Points::Monthly => {
            // Per series: whether a point release was selected this month, and the newest ever
            // selected.
            let mut closed: BTreeMap<(u64, u64), bool> = BTreeMap::new();
            for one in found.iter().filter(|one| is_point(one)) {
                let this_month = known
                    .get(&one.kernel.to_string())
                    .is_some_and(|selected| month(*selected) == month(rule.now_unix));
                *closed.entry(one.release.series()).or_default() |= this_month;
            }
            found.retain(|one| {
                if !is_point(one) || known.contains_key(&one.kernel.to_string()) {
                    closed
                        .entry(one.release.series())
                        .and_modify(|closed| *closed |= is_point(one));
                    return true;
                }
                // The first one met is the newest; a release older than a selected one is not new.
                closed
                    .get_mut(&one.release.series())
                    .is_some_and(|closed| !std::mem::replace(closed, true))
            });
        }
    }
    found
}

/// Returns the calendar month (UTC) of a time, counted from some month on.
fn month(time: UnixTime) -> i64 {
    // Days to years and months in the Gregorian calendar, with years that begin in March: the leap
    // day is their last.
    let days = time.days() + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    (era * 400 + year) * 12 + (5 * of_year + 2) / 153
}

/// Returns the order for filling in `count` kernels, sorted newest first: the newest, the oldest,
/// then always the middle of the widest gap, so that early results narrow a change down.
pub(crate) fn coarsest_first(count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = [0, count.saturating_sub(1)]
        .into_iter()
        .take(count.min(2))
        .collect();
    let mut gaps = BinaryHeap::from([(count.saturating_sub(1), Reverse(0))]);
    while let Some((width, Reverse(from))) = gaps.pop() {
        if width > 1 {
            let middle = width / 2;
            order.push(from + middle);
            gaps.push((middle, Reverse(from)));
            gaps.push((width - middle, Reverse(from + middle)));
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use model::{Points, Release, UnixTime};
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
    use regex_lite::Regex;

    use super::{Rule, TreeKernel, coarsest_first, month, read_tags, select_kernels};

    fn found(tags: &[&str]) -> Vec<TreeKernel> {
        let tags: Vec<String> = tags.iter().map(|&tag| tag.to_owned()).collect();
        read_tags(&tags, &Regex::new(r"^v(\d+\.\d+(?:\.\d+)?)$").unwrap()).0
    }

    fn names(found: &[TreeKernel]) -> Vec<String> {
        found.iter().map(|one| one.kernel.to_string()).collect()
    }

    const DAY: i64 = 86_400;

    fn month_of(seconds: i64) -> i64 {
        month(UnixTime::new(seconds))
    }

    #[test]
    fn tags_are_sorted_into_releases_and_others() {
        let tags = [
            "v6.1",
            "v6.1-rc3",
            "v6.1.2",
            "v2.6.12.1",
            "next-20260801",
            "v6.1-dontuse",
            "x",
            "-v",
            "",
        ]
        .map(str::to_owned);
        let (found, others) = read_tags(&tags, &Regex::new(r"^v(\d+\.\d+(?:\.\d+)?)$").unwrap());
        assert_eq!(names(&found), ["git:v6.1", "git:v6.1.2"]);
        assert_eq!(others, ["next-20260801", "v6.1-dontuse", "x", "-v", ""]);
        let (found, others) = read_tags(
            &["rpm-5.14.21-7".into(), "rpm-x".into()],
            &Regex::new(r"^rpm-(\w+\.\d+\.\d+)|x").unwrap(),
        );
        assert_eq!(
            (found[0].release.as_str(), others.as_slice()),
            ("5.14.21", &["rpm-x".to_owned()][..])
        );
    }

    #[test]
    fn stable_updates_are_monthly_by_default() {
        let all = [
            "v6.1", "v6.2", "v6.1.1", "v6.1.2", "v6.1.9", "v6.2.3", "v5.10.1",
        ];
        let since = Release::parse("6.0");
        let with = |points, known: &[(&str, i64)], now| {
            let known: BTreeMap<String, UnixTime> = known
                .iter()
                .map(|(name, at)| ((*name).to_owned(), UnixTime::new(*at)))
                .collect();
            names(&select_kernels(
                found(&all),
                &known,
                Rule {
                    since: Some(&since),
                    points,
                    now_unix: UnixTime::new(now),
                },
            ))
        };
        let none: &[(&str, i64)] = &[];
        assert_eq!(with(Points::Never, none, 0), ["git:v6.2", "git:v6.1"]);
        assert_eq!(with(Points::Every, none, 0).len(), 6);
        assert_eq!(
            with(Points::Monthly, none, 0),
            ["git:v6.2.3", "git:v6.2", "git:v6.1.9", "git:v6.1"]
        );
        // A selection stays; in the same month no release is added, in the next month the newest
        // one is.
        let known = [("git:v6.1.2", 0)];
        assert_eq!(
            with(Points::Monthly, &known, 30 * DAY),
            ["git:v6.2.3", "git:v6.2", "git:v6.1.2", "git:v6.1"]
        );
        assert_eq!(
            with(Points::Monthly, &known, 31 * DAY),
            [
                "git:v6.2.3",
                "git:v6.2",
                "git:v6.1.9",
                "git:v6.1.2",
                "git:v6.1"
            ]
        );
        let newest = [("git:v6.1.9", 0)];
        assert_eq!(
            with(Points::Monthly, &newest, 62 * DAY),
            ["git:v6.2.3", "git:v6.2", "git:v6.1.9", "git:v6.1"]
        );
    }

    #[test]
    fn months_begin_on_the_first_day() {
        // date -u -d 2024-03-01 +%s and its neighbours, leap day and turn of the year included.
        let march = 1_709_251_200;
        assert_eq!(month_of(march) - month_of(march - 1), 1);
        assert_eq!(month_of(march - 1), month_of(march - 29 * DAY));
        assert_eq!(
            month_of(march - 29 * DAY) - month_of(march - 29 * DAY - 1),
            1
        );
        let january = 1_767_225_600;
        assert_eq!(month_of(january) - month_of(january - 1), 1);
        assert_eq!(month_of(january) - month_of(march), 22);
    }

    #[test]
    fn order_is_newest_oldest_then_middle() {
        assert_eq!(coarsest_first(9), [0, 8, 4, 2, 6, 1, 3, 5, 7]);
        assert_eq!([0, 1, 2, 3].map(|n| coarsest_first(n).len()), [0, 1, 2, 3]);
    }

    proptest! {
        #[test]
        fn each_kernel_appears_once_closing_gaps_evenly(count in 0..500_usize) {
            let order = coarsest_first(count);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            prop_assert_eq!(sorted, (0..count).collect::<Vec<_>>());
            for some in 2..=count {
                let mut begun = order[..some].to_vec();
                begun.sort_unstable();
                let widest = begun
                    .windows(2)
                    .map(|pair| pair[1] - pair[0])
                    .max()
                    .unwrap_or(0);
                prop_assert!(
                    widest <= 2 * count.div_ceil(some - 1),
                    "{some} of {count}: {widest}"
                );
            }
        }

        #[test]
        fn any_tag_is_sorted(
            tags in proptest::collection::vec(any::<String>(), 0..8),
            at in any::<i32>(),
        ) {
            let (found, others) = read_tags(&tags, &Regex::new("(.*)").unwrap());
            prop_assert!(found.len() + others.len() <= tags.len());
            month_of(i64::from(at) * 1_000);
        }
    }
}
