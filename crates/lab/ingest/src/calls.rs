//! Builds call trees of function names from the tracer's nodes.

use std::collections::BTreeMap;

use model::{CallPath, CallTree, Profile, Region, Share};

use crate::Symbols;
use crate::profile::{NAMELESS, USER};

/// The root of chains with an unknown beginning.
const UNKNOWN: &str = "[unknown caller]";
/// Most functions of a chain. The tracer follows 512 calls (`FRAMES_MAX` there).
const DEPTH_MAX: usize = 1000;
/// Most functions of all chains, so that they take some 200 MiB. A suite's workloads have some
/// thousands.
const FUNCTIONS_MAX: usize = 4 << 20;

/// Invalid nodes of a call tree.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallsError {
    /// The tracer wrote no output, or not to the end.
    #[error("the tracer's call tree is cut: QEMU ended before it was written")]
    Cut,
    /// A line is not in the tracer's format.
    #[error("line {0} of the tracer's call tree makes no sense")]
    Malformed(usize),
    /// A chain has too many functions.
    #[error(
        "line {0} of the tracer's call tree is {DEPTH_MAX} calls deep, where Marvin reads no further"
    )]
    Deep(usize),
    /// All chains together have too many functions.
    #[error(
        "the tracer's call tree has more than {FUNCTIONS_MAX} functions in its chains: measure less at a time"
    )]
    Large,
    /// The tree differs from the profile.
    #[error(
        "the call tree has {tree} instructions in {share}, the profile {profile}: they must be the same"
    )]
    Sum {
        /// Who executed these instructions.
        share: &'static str,
        /// Sum of the tree.
        tree: u64,
        /// Sum of the profile.
        profile: u64,
    },
}

struct Node<'a> {
    parent: usize,
    /// Functions of its chain.
    depth: usize,
    symbol: &'a str,
    calls: [u64; 3],
    executed: [u64; 3],
}

/// Returns the call tree that matches a profile of the same job.
///
/// # Errors
/// If the nodes are cut, garbled, or do not add up to the profile in each share.
pub fn call_tree(
    nodes: &[u8],
    symbols: &Symbols,
    profile: &Profile,
) -> Result<CallTree, CallsError> {
    let nodes = parse(&String::from_utf8_lossy(nodes), symbols)?;
    let mut paths: BTreeMap<(Share, Vec<String>), (u64, u64)> = BTreeMap::new();
    let mut path_functions = 0;
    for (index, node) in nodes.iter().enumerate() {
        if node.executed == [0; 3] && node.calls == [0; 3] {
            continue;
        }
        let own = if index == 1 {
            Share::User
        } else {
            Share::Kernel
        };
        let functions = chain(&nodes, index);
        for (place, share) in [own, Share::Interrupt, Share::Other]
            .into_iter()
            .enumerate()
        {
            let executed = node.executed[place];
            let calls = node.calls[place];
            if executed + calls > 0 {
                path_functions += node.depth;
                if path_functions > FUNCTIONS_MAX {
                    return Err(CallsError::Large);
                }
                let sums = paths.entry((share, functions.clone())).or_default();
                *sums = (sums.0 + executed, sums.1 + calls);
            }
        }
    }
    let path = |((share, functions), (instructions, calls))| CallPath {
        share,
        functions,
        instructions,
        calls,
    };
    let tree = CallTree {
        operations: profile.operations,
        paths: paths.into_iter().map(path).collect(),
    };
    for share in Share::ALL {
        let of_tree = tree
            .paths
            .iter()
            .filter(|path| path.share == share)
            .map(|path| path.instructions)
            .sum();
        let of_profile = profile
            .regions
            .iter()
            .map(|region: &Region| match share {
                Share::Kernel => region.kernel,
                Share::User => region.user,
                Share::Interrupt => region.interrupt,
                Share::Other => region.other,
            })
            .sum();
        if of_tree != of_profile {
            return Err(CallsError::Sum {
                share: share.name(),
                tree: of_tree,
                profile: of_profile,
            });
        }
    }
    Ok(tree)
}

fn parse<'a>(text: &str, symbols: &'a Symbols) -> Result<Vec<Node<'a>>, CallsError> {
    let mut nodes = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line == "end" {
            return Ok(nodes);
        }
        let malformed = CallsError::Malformed(number + 1);
        let mut fields = line
            .strip_prefix("node ")
            .ok_or(malformed.clone())?
            .split(' ');
        let mut word = || fields.next().ok_or(malformed.clone());
        let parent = word()?.parse().map_err(|_| malformed.clone())?;
        let address = u64::from_str_radix(word()?, 16).map_err(|_| malformed.clone())?;
        let mut numbers = [0; 6];
        for number in &mut numbers {
            *number = word()?
                .parse::<u64>()
                .ok()
                .filter(|n| *n < 1 << 48)
                .ok_or(malformed.clone())?;
        }
        // A caller comes before its callees; only the first two, which are roots, are their own
        // callers.
        if parent >= nodes.len().max(1) {
            return Err(malformed);
        }
        let symbol = match nodes.len() {
            0 => UNKNOWN,
            1 => USER,
            _ => symbols
                .symbol_at(address)
                .map_or(NAMELESS, |(symbol, _)| symbol),
        };
        let depth = if parent > 1 {
            nodes.get(parent).map_or(0, |node: &Node<'_>| node.depth) + 1
        } else {
            1
        };
        if depth > DEPTH_MAX {
            return Err(CallsError::Deep(number + 1));
        }
        let [a, b, c, d, e, f] = numbers;
        nodes.push(Node {
            parent,
            depth,
            symbol,
            calls: [a, b, c],
            executed: [d, e, f],
        });
    }
    Err(CallsError::Cut)
}

/// Returns the functions from the outermost to a node.
fn chain(nodes: &[Node<'_>], mut index: usize) -> Vec<String> {
    let mut functions = vec![nodes[index].symbol.to_owned()];
    while index > 1 && nodes[index].parent > 1 {
        index = nodes[index].parent;
        functions.push(nodes[index].symbol.to_owned());
    }
    functions.reverse();
    functions
}

#[cfg(test)]
mod tests {
    use super::{CallsError, call_tree};
    use crate::Symbols;
    use model::{Profile, Region, Share};

    const NODES: &str = "node 0 0 0 0 0 1 0 0\nnode 0 0 0 0 0 10 0 0\nnode 0 1000 2 0 0 20 0 0\n\
                         node 2 1100 4 1 0 40 7 0\nend\n";

    fn symbols() -> Symbols {
        Symbols::parse("T1000 entry_SYSCALL_64\nT100 do_syscall_64\n").unwrap()
    }

    fn profile() -> Profile {
        let region = Region {
            user: 10,
            kernel: 61,
            interrupt: 7,
            other: 0,
            ..Region::default()
        };
        Profile {
            operations: 2,
            regions: vec![region],
            lines: vec![],
        }
    }

    #[test]
    fn nodes_become_chains_that_add_up() {
        let tree = call_tree(NODES.as_bytes(), &symbols(), &profile()).unwrap();
        let paths: Vec<_> = tree
            .paths
            .iter()
            .map(|p| (p.share, p.functions.join(";"), p.instructions, p.calls))
            .collect();
        assert_eq!(
            paths,
            [
                (Share::User, "[user]".to_owned(), 10, 0),
                (Share::Kernel, "[unknown caller]".to_owned(), 1, 0),
                (Share::Kernel, "entry_SYSCALL_64".to_owned(), 20, 2),
                (
                    Share::Kernel,
                    "entry_SYSCALL_64;do_syscall_64".to_owned(),
                    40,
                    4
                ),
                (
                    Share::Interrupt,
                    "entry_SYSCALL_64;do_syscall_64".to_owned(),
                    7,
                    1
                ),
            ]
        );
    }

    #[test]
    fn inconsistent_counts_are_refused() {
        let refused = |text: &str| call_tree(text.as_bytes(), &symbols(), &profile()).unwrap_err();
        let short = CallsError::Sum {
            share: "kernel",
            tree: 60,
            profile: 61,
        };
        assert_eq!(
            refused(&NODES.replace("0 0 0 0 0 1 0 0", "0 0 0 0 0 0 0 0")),
            short
        );
        assert_eq!(refused("node 0 0 0 0 0 1 0 0\n"), CallsError::Cut);
        assert_eq!(refused("node 5 0 0 0 0 1 0 0\n"), CallsError::Malformed(1));
        assert_eq!(refused("nonsense\n"), CallsError::Malformed(1));
    }

    #[test]
    fn deep_and_large_trees_are_refused() {
        let chain = |depth: usize, executed: u64| {
            let below: String = (2..=depth)
                .map(|n| format!("node {n} 1100 0 0 0 {executed} 0 0\n"))
                .collect();
            format!("node 0 0 0 0 0 0 0 0\nnode 0 0 0 0 0 10 0 0\nnode 0 1000 0 0 0 0 7 0\n{below}")
        };
        let region = Region {
            user: 10,
            kernel: 999,
            interrupt: 7,
            other: 0,
            ..Region::default()
        };
        let profile = Profile {
            regions: vec![region],
            ..profile()
        };
        let read = |text: String| call_tree(text.as_bytes(), &symbols(), &profile);
        let deepest = read(chain(super::DEPTH_MAX, 1) + "end\n").unwrap();
        assert_eq!(
            deepest.paths.iter().map(|path| path.functions.len()).max(),
            Some(super::DEPTH_MAX)
        );
        assert_eq!(
            read(chain(super::DEPTH_MAX + 1, 1) + "end\n").unwrap_err(),
            CallsError::Deep(super::DEPTH_MAX + 3)
        );
        // Many leaves of a long chain.
        let leaves = format!("node {} 1100 0 0 0 1 0 0\n", super::DEPTH_MAX).repeat(5000);
        assert_eq!(
            read(chain(super::DEPTH_MAX - 1, 0) + &leaves + "end\n").unwrap_err(),
            CallsError::Large
        );
    }

    proptest::proptest! {
        #[test]
        fn garbage_never_panics(bytes: Vec<u8>, lines in "(node( [0-9a-f]{0,4}){0,9}\n){0,4}end\n") {
            let _tree = call_tree(&bytes, &symbols(), &profile());
            let _tree = call_tree(lines.as_bytes(), &symbols(), &profile());
        }
    }
}
