//! Work that moved: below one function some calls cost less and others more, with a small total
//! change. Inlining, splitting and renaming have this effect.

use model::Share;

use super::{CallDifference, CallNode};

/// Most functions named on one side of a shift.
const NAMED: usize = 3;
/// A listed function has at least this share of its side's loss or gain.
const NAMED_MIN: f64 = 0.02;
/// A shift moves at least this share of all instructions.
const SHARE_MIN: f64 = 0.002;
/// The remainder is at most this share of the smaller of loss and gain.
const REST_MAX: f64 = 0.5;

/// Work that moved within one function.
#[derive(Debug, Clone, PartialEq)]
pub struct Shift {
    /// The function whose callees changed.
    pub within: String,
    /// Cheaper calls, in instructions per operation, largest first.
    pub less: Vec<(String, f64)>,
    /// Callees that cost more, with what they add per operation.
    pub more: Vec<(String, f64)>,
    /// The totals of both, including unlisted calls.
    pub net: f64,
}

impl Shift {
    /// Returns it as a sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        format!(
            "moved inside {}: {} -> {}, net {:+.1}",
            self.within,
            list(&self.less),
            list(&self.more),
            self.net
        )
    }

    fn size(&self) -> f64 {
        self.less.iter().map(|(_, added)| -added).sum()
    }
}

impl CallDifference {
    /// Returns the shifts, largest first.
    #[must_use]
    pub fn shifts(&self) -> Vec<Shift> {
        let mut shifts = Vec::new();
        self.below(&self.root, &mut shifts);
        shifts.sort_by(|a, b| {
            b.size()
                .total_cmp(&a.size())
                .then_with(|| a.within.cmp(&b.within))
        });
        shifts
    }

    fn below(&self, node: &CallNode, shifts: &mut Vec<Shift>) {
        let own = ("its own code".to_owned(), self.added(node.own));
        let children = node
            .children
            .iter()
            .map(|child| (child.function.clone(), self.added(child.all)));
        let (mut less, mut more): (Vec<_>, Vec<_>) = children
            .chain([own])
            .filter(|(_, added)| *added != 0.0)
            .partition(|(_, added)| *added < 0.0);
        let lost: f64 = less.iter().map(|(_, added)| added.abs()).sum();
        let gained: f64 = more.iter().map(|(_, added)| added.abs()).sum();
        let net = gained - lost;
        let all = self.per_operation(self.root.all)[0].max(1.0);
        // The root and its groups are no functions inside which work could move.
        let groups = [Share::Interrupt, Share::Other].map(crate::ledger::share_words);
        let is_function =
            !std::ptr::eq(node, &raw const self.root) && !groups.contains(&node.function.as_str());
        if is_function
            && lost.min(gained) >= SHARE_MIN * all
            && net.abs() <= REST_MAX * lost.min(gained)
        {
            less.sort_by(|a, b| a.1.total_cmp(&b.1));
            more.sort_by(|a, b| b.1.total_cmp(&a.1));
            less.retain(|(_, added)| -added >= NAMED_MIN * lost);
            more.retain(|(_, added)| *added >= NAMED_MIN * gained);
            less.truncate(NAMED);
            more.truncate(NAMED);
            shifts.push(Shift {
                within: node.function.clone(),
                less,
                more,
                net,
            });
        }
        node.children
            .iter()
            .for_each(|child| self.below(child, shifts));
    }
}

/// Lists functions with what they add per operation.
fn list(functions: &[(String, f64)]) -> String {
    let texts = functions
        .iter()
        .map(|(name, added)| format!("{name} {added:+.1}"));
    texts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use crate::calls::CallDifference;
    use crate::calls::tests::tree;
    use model::Share;

    #[test]
    fn moved_calls_differ_from_changed_ones() {
        let base = tree(&[
            (Share::Kernel, "fault;lock_vma;mtree_range_walk", 170, 1),
            (Share::Kernel, "fault;handle;clear", 500, 1),
        ]);
        let new = tree(&[
            (Share::Kernel, "fault;lock_vma;mas_walk", 196, 1),
            (Share::Kernel, "fault;handle;clear", 600, 1),
        ]);
        let difference = CallDifference::new("w", &[base], &[new]).unwrap();
        let said: Vec<String> = difference
            .shifts()
            .iter()
            .map(super::Shift::sentence)
            .collect();
        assert_eq!(
            said,
            ["moved inside lock_vma: mtree_range_walk -170.0 -> mas_walk +196.0, net +26.0"]
        );
    }
}
