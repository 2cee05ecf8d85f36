//! The order of imported kernels: the baseline first.

use model::{BuildId, Release, Run, UnixTime};

use super::ImportedRun;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernels {
    /// The builds that stand for them, each once, the baseline first.
    pub builds: Vec<BuildId>,
    /// What makes the first one the baseline.
    pub by: BaselineBy,
}

/// What makes a kernel the baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BaselineBy {
    /// It has the lowest version; of equal ones it was measured first.
    Version,
    /// It was measured first: not all names have a version.
    Start,
}

impl std::fmt::Display for BaselineBy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Version => "lowest version",
            Self::Start => "measured first",
        })
    }
}

/// Puts the kernels of runs in order.
#[must_use]
pub fn order_kernels<'a>(runs: impl IntoIterator<Item = &'a ImportedRun>) -> Kernels {
    let mut kernels: Vec<(Option<Release>, UnixTime, &ImportedRun)> = Vec::new();
    for run in runs {
        // A run without a start comes last.
        let start = Run::known_start(run.started_unix).unwrap_or(UnixTime::MAX);
        match kernels
            .iter_mut()
            .find(|(_, _, known)| known.build == run.build)
        {
            Some((_, first, _)) => *first = start.min(*first),
            None => kernels.push((version(&run.kernel), start, run)),
        }
    }
    let by = if kernels.iter().all(|(version, ..)| version.is_some()) {
        BaselineBy::Version
    } else {
        BaselineBy::Start
    };
    // Stable: kernels of one version and start stay in the order of their suite.
    kernels.sort_by(|(one, at, _), (other, then, _)| match by {
        BaselineBy::Version => one.cmp(other).then(at.cmp(then)),
        BaselineBy::Start => at.cmp(then),
    });
    Kernels {
        builds: kernels
            .into_iter()
            .map(|(_, _, run)| run.build.clone())
            .collect(),
        by,
    }
}

/// Returns the version in a name: 6.10 of `6.10-vanilla`, 5.3-rc1 of `linux-5.3-rc1+patched`. What
/// follows it is a variant of that version, and says nothing of the order.
fn version(name: &str) -> Option<Release> {
    let starts = name.char_indices().filter(|(at, c)| {
        c.is_ascii_digit() && !name[..*at].ends_with(|c: char| c.is_ascii_digit())
    });
    let text = starts
        .map(|(at, _)| &name[at..])
        .find(|text| is_version(text))?;
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let candidate = text[end..].strip_prefix("-rc").map_or(0, |text: &str| {
        text.bytes().take_while(u8::is_ascii_digit).count()
    });
    let end = if candidate > 0 {
        end + "-rc".len() + candidate
    } else {
        end
    };
    Some(Release::parse(&text[..end]))
}

fn is_version(text: &str) -> bool {
    let (head, rest) = text.split_once('.').unwrap_or_default();
    !head.is_empty()
        && head.bytes().all(|byte| byte.is_ascii_digit())
        && rest.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use model::{BuildId, MachineId, RunId, UnixTime};

    use super::super::ImportedRun;
    use super::{BaselineBy, order_kernels};

    /// Orders kernels, each with the start of a run.
    fn order(kernels: &[(&str, i64)]) -> (Vec<String>, BaselineBy) {
        let runs: Vec<ImportedRun> = (1..)
            .zip(kernels)
            .map(|(n, (kernel, started_unix))| ImportedRun {
                id: RunId::from_hex(&format!("{n:02x}")).unwrap(),
                build: BuildId::from_hex(
                    &kernel
                        .bytes()
                        .map(|byte| format!("{byte:02x}"))
                        .collect::<String>(),
                )
                .unwrap(),
                machine: MachineId::from_hex("aa").unwrap(),
                machine_summary: String::new(),
                config: None,
                kernel: (*kernel).to_owned(),
                name: String::new(),
                started_unix: UnixTime::new(*started_unix),
                rows: 1,
                known: false,
                added: Vec::new(),
            })
            .collect();
        let ordered = order_kernels(&runs);
        (
            ordered
                .builds
                .iter()
                .map(|build: &BuildId| {
                    runs.iter()
                        .find(|run| run.build == *build)
                        .unwrap()
                        .kernel
                        .clone()
                })
                .collect(),
            ordered.by,
        )
    }

    #[test]
    fn kernels_come_in_version_order_baseline_first() {
        let (names, by) = order(&[
            ("6.10-vanilla", 1),
            ("6.9-vanilla", 2),
            ("v6.10-rc2", 3),
            ("linux-5.14.0+x", 4),
        ]);
        assert_eq!(
            names,
            ["linux-5.14.0+x", "6.9-vanilla", "v6.10-rc2", "6.10-vanilla"]
        );
        assert_eq!(by, BaselineBy::Version);
    }

    #[test]
    fn kernels_without_versions_come_by_start() {
        let (names, by) = order(&[
            ("sle15sp4", 30),
            ("after", 0),
            ("baseline", 20),
            ("baseline", 10),
            ("6.1", 15),
        ]);
        assert_eq!(names, ["baseline", "6.1", "sle15sp4", "after"]);
        assert_eq!(by, BaselineBy::Start);
    }

    #[test]
    fn patched_kernel_of_one_version_follows_first_measured() {
        let (names, _) = order(&[("6.9-a-patched", 20), ("6.9-vanilla", 10)]);
        assert_eq!(names, ["6.9-vanilla", "6.9-a-patched"]);
    }
}
