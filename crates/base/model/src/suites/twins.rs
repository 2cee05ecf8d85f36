//! Twins: workloads of several suites that do the same operation. Their code lies elsewhere in the
//! guest's memory, so what one shows and its twin does not is more likely a state of the layout
//! than the kernel.

/// Workloads that do the same operation, in one task.
const TWINS: [&[&str]; 5] = [
    &["fault-anon", "fault-thr-1", "fault-proc-1", "pft-proc-1"],
    &["mem-mmap", "mmap-thr-1", "mmap-proc-1"],
    &["pipe-pingpong", "switch-pair-1"],
    &["file-open", "open-own-1", "open-shared-1"],
    &["file-create", "unlink-own-1", "unlink-shared-1"],
];

/// Workloads whose cost depends on how their mappings lie among those of the process, without the
/// number of tasks: a mapping over two nodes of the kernel's tree makes each change dear.
const AMONG_MAPPINGS: [&str; 5] = [
    "mem-mmap",
    "mem-mprotect",
    "mem-brk",
    "mmap-thr",
    "mmap-proc",
];

/// Workloads that take a free descriptor: a process's table grows, and is searched by words of 64
/// (`alloc_fd` of fs/file.c).
const AMONG_DESCRIPTORS: [&str; 6] = [
    "file-open",
    "open-own",
    "open-shared",
    "call-dup",
    "sock-fd",
    "sock-connect",
];

/// What decides a state of a workload's layout, which seeds vary beside the place in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayoutState {
    /// How many mappings its process has beside its own.
    Mappings,
    /// How many descriptors its process has open.
    Descriptors,
}

impl LayoutState {
    /// Returns what is varied, in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Mappings => "how many mappings lie beside its own",
            Self::Descriptors => "how many descriptors are open already",
        }
    }
}

/// Returns what decides a state of a workload's layout; `None` if nothing is known that does.
#[must_use]
pub fn layout_state(workload: &str) -> Option<LayoutState> {
    let series = workload.trim_end_matches(|last: char| last == '-' || last.is_ascii_digit());
    if AMONG_MAPPINGS.contains(&series) {
        Some(LayoutState::Mappings)
    } else if AMONG_DESCRIPTORS.contains(&series) {
        Some(LayoutState::Descriptors)
    } else {
        None
    }
}

/// Returns the other workloads that do the same operation as this one.
pub fn twins(workload: &str) -> impl Iterator<Item = &'static str> {
    let group = TWINS
        .into_iter()
        .find(|group| group.contains(&workload))
        .unwrap_or_default();
    group.iter().copied().filter(move |twin| *twin != workload)
}

#[cfg(test)]
mod tests {
    use super::{LayoutState, TWINS, layout_state, twins};
    use crate::{find_workload, workloads};

    #[test]
    fn every_layout_state_has_its_workloads() {
        use LayoutState::{Descriptors, Mappings};
        for (state, count) in [(Mappings, 5), (Descriptors, 6)] {
            let all = workloads();
            let of = all
                .iter()
                .filter(|workload| layout_state(&workload.name) == Some(state));
            assert!(of.count() >= count, "{state:?}");
        }
        assert_eq!(layout_state("mmap-thr-4"), Some(Mappings));
        assert_eq!(layout_state("xfs-ram-rename"), None);
    }

    #[test]
    fn twins_enter_the_same_functions() {
        for group in TWINS {
            let declared: Vec<_> = group
                .iter()
                .map(|name| find_workload(name).unwrap())
                .collect();
            for twin in &declared {
                for functions in declared[1].exercises {
                    let mut own = twin.exercises.iter().flat_map(|own| own.iter());
                    assert!(own.any(|name| functions.contains(name)), "{}", twin.name);
                }
                assert_eq!(twin.metric, declared[0].metric, "{}", twin.name);
            }
        }
    }

    #[test]
    fn twins_do_not_include_the_workload() {
        assert_eq!(
            twins("mem-mmap").collect::<Vec<_>>(),
            ["mmap-thr-1", "mmap-proc-1"]
        );
        assert_eq!(
            twins("open-own-1").collect::<Vec<_>>(),
            ["file-open", "open-shared-1"]
        );
        assert_eq!(twins("getppid").count(), 0);
    }
}
