//! The merged call trees of two kernels: the instructions below each chain of calls on either side.
//!
//! A node stands for the same chain of names on both sides, so that removed and new code stay
//! visible. The tree adds up to the ledger's totals; `entries.rs` has entry points, `shifts.rs`
//! work that moved.

mod entries;
mod export;
mod firefox;
mod shifts;

use std::collections::BTreeMap;

use model::{CallTree, Share};

pub use entries::EntryPoint;
pub use export::{FoldedSide, folded, pprof};
pub use firefox::firefox;
pub use shifts::Shift;

use crate::ledger::{names, scaled, share_words};

/// Functions that only forward calls and that only one of the kernels has: chains omit them
/// (`x64_sys_call` came with Linux 6.9, commit 1e3ad78334a6).
const PASSING_ON: [&str; 1] = ["x64_sys_call"];

/// A chain of calls on both sides: 0 is the base, 1 the new kernel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallNode {
    /// The last function's name, without suffixes; at the top, the name of a share.
    pub function: String,
    /// Instructions of this function itself.
    pub own: [u64; 2],
    /// Instructions of it and its callees.
    pub all: [u64; 2],
    /// Calls in this chain.
    pub calls: [u64; 2],
    /// Its callees, by name.
    pub children: Vec<CallNode>,
}

/// A workload's calls on two kernels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallDifference {
    /// The workload that both kernels executed.
    pub workload: String,
    /// Operations of the base and of the new kernel.
    pub operations: [u64; 2],
    /// What is counted: instructions, or the unit of a sampled cost.
    pub unit: &'static str,
    /// The root of the tree.
    pub root: CallNode,
}

impl CallDifference {
    /// Merges the call trees of all seeds of both sides; `None` if a side has none.
    #[must_use]
    pub fn new(workload: &str, base: &[CallTree], new: &[CallTree]) -> Option<Self> {
        let operations =
            [base, new].map(|side| side.iter().map(|tree| tree.operations).sum::<u64>());
        if operations.contains(&0) {
            return None;
        }
        let mut root = Growing::default();
        for (side, trees) in [base, new].into_iter().enumerate() {
            for path in trees.iter().flat_map(|tree| &tree.paths) {
                let mut node = &mut root;
                for name in chain(path.share, &path.functions) {
                    node = node.children.entry(name).or_default();
                }
                node.own[side] += path.instructions;
                node.calls[side] += path.calls;
            }
        }
        let workload = workload.to_owned();
        let root = root.grown("all".to_owned());
        Some(Self {
            workload,
            operations,
            unit: "instructions",
            root,
        })
    }

    /// Returns the additional instructions per operation of the new kernel.
    #[must_use]
    pub fn added(&self, [base, new]: [u64; 2]) -> f64 {
        let [of_base, of_new] = self.operations;
        scaled(self.operations, base, new) as f64 / (of_base as f64 * of_new as f64)
    }

    /// Returns the counts of both sides per operation.
    #[must_use]
    pub fn per_operation(&self, counts: [u64; 2]) -> [f64; 2] {
        [
            counts[0] as f64 / self.operations[0] as f64,
            counts[1] as f64 / self.operations[1] as f64,
        ]
    }
}

/// Returns the names of a chain from the root: interrupts and other tasks have separate nodes
/// there.
fn chain(share: Share, functions: &[String]) -> Vec<String> {
    let top =
        matches!(share, Share::Interrupt | Share::Other).then(|| share_words(share).to_owned());
    let mut chain: Vec<String> = top.into_iter().collect();
    let last = functions.len().saturating_sub(1);
    for (place, symbol) in functions.iter().enumerate() {
        // One function calls no two of one name.
        let name = names::key(names::without_file(symbol));
        let is_split_off = chain.last() == Some(&name) && names::is_split_off(symbol);
        if !is_split_off && (place == last || !PASSING_ON.contains(&name.as_str())) {
            chain.push(name);
        }
    }
    chain
}

/// A node while chains are added.
#[derive(Default)]
struct Growing {
    own: [u64; 2],
    calls: [u64; 2],
    children: BTreeMap<String, Growing>,
}

impl Growing {
    fn grown(self, function: String) -> CallNode {
        let children: Vec<CallNode> = self
            .children
            .into_iter()
            .map(|(name, node)| node.grown(name))
            .collect();
        let all = [0, 1]
            .map(|side| self.own[side] + children.iter().map(|child| child.all[side]).sum::<u64>());
        CallNode {
            function,
            own: self.own,
            all,
            calls: self.calls,
            children,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::CallDifference;
    use model::{CallPath, CallTree, Share};

    /// A call tree of one operation: chains separated by `;`, instructions, calls.
    fn kernel_tree(chains: &[(String, u64)]) -> CallTree {
        let paths: Vec<_> = chains
            .iter()
            .map(|(chain, n)| (Share::Kernel, chain.as_str(), *n, 1))
            .collect();
        tree(&paths)
    }

    /// A kernel with one function dearer and another one new.
    pub(super) fn difference() -> CallDifference {
        let base = tree(&[
            (Share::Kernel, "entry;f", 10, 1),
            (Share::User, "[user]", 3, 0),
        ]);
        let new = tree(&[
            (Share::Kernel, "entry;f", 300, 1),
            (Share::Kernel, "entry;g", 1, 1),
        ]);
        CallDifference::new("w", &[base], &[new]).unwrap()
    }

    pub(crate) fn tree(paths: &[(Share, &str, u64, u64)]) -> CallTree {
        let paths = paths
            .iter()
            .map(|&(share, chain, instructions, calls)| CallPath {
                share,
                functions: chain.split(';').map(str::to_owned).collect(),
                instructions,
                calls,
            });
        CallTree {
            operations: 1,
            paths: paths.collect(),
        }
    }

    #[test]
    fn chains_of_both_sides_lie_on_one_another() {
        let base = tree(&[
            (Share::Kernel, "entry;do_syscall_64;f.isra.0", 10, 1),
            (Share::Kernel, "entry;do_syscall_64", 5, 1),
            (Share::User, "[user]", 3, 0),
        ]);
        let new = tree(&[
            (Share::Kernel, "entry;do_syscall_64;x64_sys_call;f", 12, 1),
            (Share::Kernel, "entry;do_syscall_64;x64_sys_call", 2, 1),
            (Share::Interrupt, "asm_sysvec_apic_timer_interrupt", 7, 1),
        ]);
        let difference = CallDifference::new("w", &[base], &[new]).unwrap();
        assert_eq!(difference.root.all, [18, 21]);
        let tops: Vec<&str> = difference
            .root
            .children
            .iter()
            .map(|node| node.function.as_str())
            .collect();
        assert_eq!(tops, ["[user]", "entry", "interrupts"]);
        let call = &difference.root.children[1].children[0];
        assert_eq!(
            (call.function.as_str(), call.own, call.all),
            ("do_syscall_64", [5, 0], [15, 14])
        );
        assert_eq!(
            (call.children[0].function.as_str(), call.children[0].own),
            ("f", [10, 12])
        );
        assert_eq!(CallDifference::new("w", &[], &[]), None);
    }

    proptest::proptest! {
        #[test]
        fn total_is_the_sum_of_its_chains(
            base in proptest::collection::vec(("[ab](;[abc]){0,3}", 0_u64..1 << 40), 0..20),
            new in proptest::collection::vec(("[ab](;[abc]){0,3}", 0_u64..1 << 40), 0..20),
        ) {
            let base = kernel_tree(&base);
            let new = kernel_tree(&new);
            let whole = [base.total(), new.total()];
            let difference = CallDifference::new("w", &[base], &[new]).unwrap();
            proptest::prop_assert_eq!(difference.root.all, whole);
            let entries = difference.entries();
            let sums = [0, 1].map(|side| entries.iter().map(|entry| entry.all[side]).sum::<u64>());
            proptest::prop_assert_eq!(sums, whole);
        }
    }
}
