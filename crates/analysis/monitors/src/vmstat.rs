//! The block of /proc/vmstat: the rows of MMTests in the order of its tables of 2013, then newer
//! counters.
//!
//! Formulas: `bin/lib/MMTests/MonitorMmtestsvmstat.pm` of MMTests, without its defects; each has a
//! test.

use crate::{Comparability, CounterMeaning, DICTIONARY, find_meaning};
use model::{Counters, MonitorFile, Observation, Reading};

use super::block::{Block, BlockRow, Form, MonitorValue};

/// The source of a row.
enum Of {
    /// A concept with the row's name.
    Concept,
    /// One concept in percent of another.
    Percent(&'static str, &'static str),
    /// A concept per second.
    Velocity(&'static str),
    /// Scans of a zone per second, for kernels with page lists per zone.
    Zone(&'static str),
    /// Direct scans in percent of all.
    DirectScans,
    /// Scans other than kswapd's in percent of all.
    OutsideScans,
    /// Page writes of non-anonymous pages.
    WritesFile,
    /// The cost of compaction, by MMTests' model.
    Compaction,
    /// The cost of NUMA balancing, by MMTests' model.
    Numa,
}

use Of::{Compaction, DirectScans, Numa, OutsideScans, Percent, Velocity, WritesFile, Zone};

const DIRECT: &str = "Direct pages scanned";
const KSWAPD: &str = "Kswapd pages scanned";
const OUTSIDE: &str = "Pages scanned outside kswapd";

/// The rows of 2013.
const ORIGINAL: &[(&str, Form, Of)] = &[
    ("Minor Faults", Form::Count, Of::Concept),
    ("Major Faults", Form::Count, Of::Concept),
    ("Swap Ins", Form::Count, Of::Concept),
    ("Swap Outs", Form::Count, Of::Concept),
    ("Direct pages scanned", Form::Count, Of::Concept),
    ("Kswapd pages scanned", Form::Count, Of::Concept),
    ("Kswapd pages reclaimed", Form::Count, Of::Concept),
    ("Direct pages reclaimed", Form::Count, Of::Concept),
    (
        "Kswapd efficiency",
        Form::Percent,
        Percent("Kswapd pages reclaimed", "Kswapd pages scanned"),
    ),
    (
        "Kswapd velocity",
        Form::PerSecond,
        Velocity("Kswapd pages scanned"),
    ),
    (
        "Direct efficiency",
        Form::Percent,
        Percent("Direct pages reclaimed", "Direct pages scanned"),
    ),
    (
        "Direct velocity",
        Form::PerSecond,
        Velocity("Direct pages scanned"),
    ),
    ("Percentage direct scans", Form::Percent, DirectScans),
    ("Zone normal velocity", Form::PerSecond, Zone("normal")),
    ("Zone dma32 velocity", Form::PerSecond, Zone("dma32")),
    ("Zone dma velocity", Form::PerSecond, Zone("dma")),
    ("Page writes by reclaim", Form::Count, Of::Concept),
    ("Page writes file", Form::Count, WritesFile),
    ("Page writes anon", Form::Count, Of::Concept),
    ("Page reclaim immediate", Form::Count, Of::Concept),
    ("Sector Reads", Form::Kib, Of::Concept),
    ("Sector Writes", Form::Kib, Of::Concept),
    ("Page rescued immediate", Form::Count, Of::Concept),
    ("Slabs scanned", Form::Count, Of::Concept),
    ("Direct inode steals", Form::Count, Of::Concept),
    ("Kswapd inode steals", Form::Count, Of::Concept),
    ("Kswapd skipped wait", Form::Count, Of::Concept),
];
/// Rows with a formula that replace rows that cannot be compared.
const COARSER: &[(&str, Form, Of)] = &[
    (
        "Efficiency outside kswapd",
        Form::Percent,
        Percent("Pages reclaimed outside kswapd", OUTSIDE),
    ),
    (
        "Velocity outside kswapd",
        Form::PerSecond,
        Velocity(OUTSIDE),
    ),
    (
        "Percentage scans outside kswapd",
        Form::Percent,
        OutsideScans,
    ),
];
/// Rows with a formula that were added later.
const LATER: &[(&str, Form, Of)] = &[
    ("Compaction cost", Form::Mean, Compaction),
    (
        "NUMA hint local percent",
        Form::Percent,
        Percent("NUMA hint local faults", "NUMA hint faults"),
    ),
    ("AutoNUMA cost", Form::Mean, Numa),
];

impl Of {
    /// Returns whether a row with this name shows a concept.
    fn is_of(&self, name: &str, concept: &str) -> bool {
        match self {
            Of::Concept => name == concept,
            Percent(part, whole) => [*part, *whole].contains(&concept),
            Velocity(of) => *of == concept,
            DirectScans => [DIRECT, KSWAPD].contains(&concept),
            OutsideScans => [OUTSIDE, KSWAPD].contains(&concept),
            WritesFile => ["Page writes by reclaim", "Page writes anon"].contains(&concept),
            Zone(_) => false,
            Compaction => COMPACTION.iter().any(|(_, of)| *of == concept),
            Numa => NUMA.iter().any(|(_, of)| *of == concept),
        }
    }
}

/// Growth of /proc/vmstat from start to end.
#[derive(Debug, Default)]
struct Side {
    grew: Counters,
    /// The counters at the end, which show what the kernel has.
    end: Counters,
    seconds: Option<f64>,
}

impl Side {
    fn count(&self, name: &str) -> Option<f64> {
        Some(find_meaning(name)?.value(&self.grew)? as f64)
    }

    fn value(&self, name: &str, of: &Of) -> MonitorValue {
        match of {
            Of::Concept => MonitorValue::from_count(
                find_meaning(name).and_then(|concept| concept.value(&self.grew)),
            ),
            Percent(part, whole) => {
                MonitorValue::quotient(100.0, self.count(part), self.count(whole))
            }
            Velocity(name) => MonitorValue::quotient(1.0, self.count(name), self.seconds),
            Zone(zone) => MonitorValue::quotient(1.0, self.zone(zone), self.seconds),
            DirectScans => self.part_of_scans(DIRECT),
            OutsideScans => self.part_of_scans(OUTSIDE),
            WritesFile => {
                let writes = self
                    .count("Page writes by reclaim")
                    .zip(self.count("Page writes anon"));
                // Writing compressed pages back counts them twice: the difference would be
                // negative.
                let rest = writes
                    .map(|(all, anon)| all - anon)
                    .filter(|rest| *rest >= 0.0);
                rest.map_or(MonitorValue::Absent, MonitorValue::Number)
            }
            Compaction => self.cost(&COMPACTION),
            Numa => self.cost(&NUMA),
        }
    }

    fn part_of_scans(&self, name: &str) -> MonitorValue {
        let part = self.count(name);
        let kswapd = self.count(KSWAPD);
        MonitorValue::quotient(
            100.0,
            part,
            part.zip(kswapd).map(|(part, kswapd)| part + kswapd),
        )
    }

    fn zone(&self, zone: &str) -> Option<f64> {
        let scanned = |scanner: &str| self.grew.get(&format!("pgscan_{scanner}_{zone}"));
        Some((scanned("kswapd")? + scanned("direct")?) as f64)
    }

    fn cost(&self, model: &[(f64, &str)]) -> MonitorValue {
        let parts = model
            .iter()
            .map(|(weight, name)| Some(weight * self.count(name)?));
        parts
            .sum::<Option<f64>>()
            .map_or(MonitorValue::Absent, |cost| {
                MonitorValue::Number(cost / 1e6)
            })
    }
}

/// MMTests' model of x86-64: an access costs 7, reading or writing a page 7 + 512, isolating one
/// 7 + 12, migrating one twice a page. MMTests asks for `compact_migrate_free`, which no kernel
/// has, so that its free scanner costs nothing.
const COMPACTION: [(f64, &str); 5] = [
    (7.0, "Compaction migrate scanned"),
    (7.0, "Compaction free scanned"),
    (19.0, "Compaction pages isolated"),
    (1038.0, "Page migrate success"),
    (14.0, "Page migrate failure"),
];
/// The same for NUMA balancing: a hint fault costs 5000. A stray semicolon in MMTests drops the
/// last line, the copying.
const NUMA: [(f64, &str); 4] = [
    (7.0, "NUMA base-page range updates"),
    (5000.0, "NUMA hint faults"),
    (19.0, "NUMA pages migrated"),
    (1038.0, "NUMA pages migrated"),
];

pub(super) fn block(seen: &[&Observation], names: &[String]) -> Block {
    let sides: Vec<Side> = seen.iter().map(|observation| side(observation)).collect();
    let differing = comparability(&sides, names);
    let row = |(name, form, of): &(&'static str, Form, Of)| {
        let values: Vec<MonitorValue> = sides.iter().map(|side| side.value(name, of)).collect();
        let of_nothing = match of {
            Percent(..) => Some(100.0),
            DirectScans | OutsideScans => Some(0.0),
            _ => None,
        };
        let comparable = !differing
            .iter()
            .any(|differing| of.is_of(name, differing.concept.name));
        BlockRow {
            of_nothing,
            comparable,
            ..BlockRow::new(*name, *form, values)
        }
    };
    let mut rows: Vec<BlockRow> = ORIGINAL.iter().map(row).collect();
    if !rows.iter().any(BlockRow::is_counted) {
        return Block::new("Memory management", "Ops", Vec::new());
    }
    let instead = |name: &str| {
        differing
            .iter()
            .any(|differing| differing.concept.coarser == Some(name))
    };
    for concept in DICTIONARY
        .iter()
        .filter(|concept| ORIGINAL.iter().all(|(name, ..)| *name != concept.name))
    {
        let original = instead(concept.name);
        // A coarser concept is shown only if the finer ones cannot be compared.
        let coarser = DICTIONARY
            .iter()
            .any(|finer| finer.coarser == Some(concept.name));
        let row = BlockRow {
            original,
            ..row(&(concept.name, Form::Count, Of::Concept))
        };
        if original || (row.has_news() && !coarser) {
            rows.push(row);
        }
    }
    if instead(OUTSIDE) {
        rows.extend(COARSER.iter().map(row));
    }
    rows.extend(
        LATER
            .iter()
            .map(row)
            .filter(BlockRow::has_news)
            .map(|row| BlockRow {
                original: false,
                ..row
            }),
    );
    let notes = differing
        .into_iter()
        .map(|differing| differing.note)
        .collect();
    Block {
        notes,
        ..Block::new("Memory management", "Ops", rows)
    }
}

fn side(observation: &Observation) -> Side {
    let end = observation
        .ends(MonitorFile::Vmstat)
        .and_then(|(_, last)| last.reading.whole().cloned());
    let grew = observation
        .growth(MonitorFile::Vmstat, Reading::WHOLE)
        .unwrap_or_default();
    Side {
        grew,
        end: end.unwrap_or_default(),
        seconds: observation.seconds(MonitorFile::Vmstat),
    }
}

/// A concept that kernels count differently.
struct Differing {
    concept: &'static CounterMeaning,
    /// Which kernel counts what, and what can be compared instead.
    note: String,
}

/// Returns the concepts with a count that not all kernels count like the base.
fn comparability(sides: &[Side], names: &[String]) -> Vec<Differing> {
    let Some((base, others)) = sides.split_first() else {
        return Vec::new();
    };
    let differing = |concept: &&'static CounterMeaning| {
        let with = others
            .iter()
            .zip(names.iter().skip(1))
            .find_map(
                |(other, name)| match concept.comparability(&base.end, &other.end) {
                    Comparability::Differs { apart, .. } => Some((name, apart)),
                    Comparability::Same | Comparability::Lacking => None,
                },
            );
        let (name, apart) = with.filter(|_| counts(sides, concept))?;
        let reason = match apart {
            Some(key) if base.end.get(key).is_none() => within(key, name, &names[0]),
            Some(key) => within(key, &names[0], name),
            None => format!("{} and {name} count different things.", names[0]),
        };
        let made_of =
            |(row, _, of): &&(&str, Form, Of)| *row != concept.name && of.is_of(row, concept.name);
        let made: Vec<&str> = ORIGINAL
            .iter()
            .chain(LATER)
            .filter(made_of)
            .map(|(row, ..)| *row)
            .collect();
        let made = if made.is_empty() {
            String::new()
        } else {
            format!(", and so {},", made.join(", "))
        };
        let instead = concept
            .coarser
            .map_or_else(String::new, |coarser| format!(" {coarser} can."));
        Some(Differing {
            concept,
            note: format!(
                "{}{made} cannot be compared: {reason}{instead}",
                concept.name
            ),
        })
    };
    DICTIONARY
        .iter()
        .filter_map(|concept| differing(&concept))
        .collect()
}

fn within(key: &str, with: &str, without: &str) -> String {
    format!("{with} keeps {key} apart, {without} counts that within or not at all.")
}

/// Returns whether any kernel has a count, including separately counted parts.
fn counts(sides: &[Side], concept: &CounterMeaning) -> bool {
    sides.iter().any(|side| {
        let apart = concept.apart.iter().filter_map(|key| side.grew.get(key));
        concept
            .value(&side.grew)
            .into_iter()
            .chain(apart)
            .any(|value| value > 0)
    })
}
