//! A row of the matrix in `docs/dump.md`, as it is printed.

use std::collections::BTreeSet;

use crate::judge::{Judgement, Kind, Testimony};
use crate::shape::Shape;

/// The table's head.
pub(crate) const HEAD: &str = "\
| kernel | memory | lost | stayed | on lists: filter, kernel | broken filters caught | besides | not had |
|---|---|---|---|---|---|---|---|";
/// What not every guest has: its word in the report, and its name in the table.
const SOME: [(&str, &str); 5] = [
    ("giant", "1 GiB page"),
    ("mthp", "mTHP"),
    ("disk", "block device"),
    ("swapped", "swap"),
    ("dax", "DAX"),
];

pub(crate) struct Row {
    kernel: String,
    memory_mib: u64,
    lost: u64,
    stayed: u64,
    /// On lists of processors, as the filter counts them at the last level.
    listed: u64,
    caught: u64,
    broken: u64,
    had: Vec<String>,
    lacking: BTreeSet<String>,
}

impl Row {
    pub(crate) fn new(name: &str, version: &str, shape: &Shape, testimony: &Testimony) -> Self {
        let mut had: Vec<String> = SOME
            .iter()
            .filter(|(word, _)| testimony.marks.contains_key(*word))
            .map(|(_, name)| (*name).to_owned())
            .collect();
        if testimony.number("zswap").is_some_and(|pages| pages > 0) {
            had.push("zswap".to_owned());
        }
        if testimony.number("hvo").is_some() {
            had.push("HVO".to_owned());
        }
        if testimony.kinds.contains(&Kind::Poisoned) {
            had.push("poison".to_owned());
        }
        if let Some(nodes) = testimony.number("nodes").filter(|nodes| *nodes > 1) {
            had.push(format!("{nodes} nodes"));
        }
        if testimony.kinds.contains(&Kind::Balloon) {
            had.push("balloon".to_owned());
        }
        if let Some(blocks) = testimony.number("added").filter(|blocks| *blocks > 0) {
            let by = if shape.modules.contains(&"virtio_mem") {
                "virtio-mem"
            } else {
                "ACPI"
            };
            had.push(format!("{blocks} added blocks ({by})"));
        }
        let mut offline = 0;
        let mut never = 0;
        let mut lacking = BTreeSet::new();
        for (word, rest) in &testimony.report {
            match word.as_str() {
                "offline" if shape.was_never_online(rest) => never += 1,
                "offline" => offline += 1,
                "missing" => {
                    let name = rest.split(':').next().unwrap_or_default();
                    lacking.insert(name.to_owned());
                }
                _ => {}
            }
        }
        if never > 0 {
            had.push(format!("{never} never online"));
        }
        had.push(format!("{offline} offline"));
        Self {
            kernel: format!("`{name}` {version}"),
            memory_mib: shape.memory_mib,
            lost: 0,
            stayed: 0,
            listed: 0,
            caught: 0,
            broken: 0,
            had,
            lacking,
        }
    }

    /// Adds the judgement of a level.
    pub(crate) fn add(&mut self, judged: &Judgement, listed: u64) {
        self.lost += judged.lost.values().map(count).sum::<u64>();
        self.stayed += judged.stayed.values().map(count).sum::<u64>();
        self.listed = listed;
    }

    /// Adds the judgement of a filter that is broken on purpose.
    pub(crate) fn add_broken(&mut self, is_caught: bool) {
        self.broken += 1;
        self.caught += u64::from(is_caught);
    }

    /// Returns the row as a line of Markdown.
    pub(crate) fn line(&self, listed_by_kernel: u64) -> String {
        let lacking: Vec<&str> = self.lacking.iter().map(String::as_str).collect();
        let lacking = if lacking.is_empty() {
            "–".to_owned()
        } else {
            lacking.join(", ")
        };
        format!(
            "| {} | {} GiB | {} | {} | {}, {listed_by_kernel} | {} of {} | {} | {lacking} |",
            self.kernel,
            self.memory_mib / 1024,
            self.lost,
            self.stayed,
            self.listed,
            self.caught,
            self.broken,
            self.had.join(", "),
        )
    }
}

fn count(pages: &BTreeSet<u64>) -> u64 {
    pages.len() as u64
}
