//! Sampled profiles as documents.

use document::{Block, Column, ColumnKind, Document, Fact, Table, TableRow, Weight, Width};
use stats::RateDifference;

use document::{RenderError, number};

use crate::sampled::{Counted, Lines, SampledDifference, SampledLine, describe_sampling, label};

/// The head of the functions' table.
const FUNCTION: &str = "function";
const ENTRIES: usize = 8;
/// Lost samples and pauses, as a share of all samples, that need no word.
const LOST: f64 = 0.01;

/// The sampled profiles of two kernels, workload by workload.
#[derive(Debug, Clone)]
pub struct SampledProfiles {
    /// The base: its label and its origin.
    pub base: (String, String),
    /// The new kernel's title and origin.
    pub new: (String, String),
    /// The machine, described in words.
    pub machine: String,
    /// How each workload differs.
    pub differences: Vec<SampledDifference>,
    /// Workloads without one, with the reason.
    pub missing: Vec<(String, String)>,
    /// The command that repeats it.
    pub command: String,
    /// Most functions in the tables of a workload.
    pub lines_max: usize,
}

/// The note on the numbers, in every format.
const LEGEND: &str = "Costs per operation: samples times their period, over the operations of all boots; sampled apart from \
the measurement. More work +: new minus base, so + is worse here; percent and ratio (base / new) are a comparison's: -5% and 0.95 are worse. ±: half the interval of 95%, by how the boots differ. A \
function has a line of its own if it differs by more than the boots do (at most 5% of such lines are expected to be chance). \
All lines add up to the total; share is of the new kernel's.";
const OF_EXACT: &str = "exact +: instructions per operation that the new kernel executes more, counted on the exact machine.";
const OF_TIMERS: &str = "A timer cannot fire while interrupts are off: that time shows where they are switched on again.";

/// Returns the document of the sampled profiles of two kernels.
///
/// # Errors
/// Never in practice: everything is in memory.
pub fn document(profiles: &SampledProfiles) -> Result<Document, RenderError> {
    let mut blocks = Vec::new();
    for difference in &profiles.differences {
        blocks.push(Block::Heading(difference.workload.clone()));
        blocks.push(Block::Paragraph(difference.sentence()));
        blocks.extend(doubts(difference).map(Block::Paragraph));
        blocks.push(Block::Table(table(
            FUNCTION,
            difference,
            &difference.functions,
            profiles.lines_max,
        )));
        blocks.push(Block::Table(table(
            "entry point",
            difference,
            &difference.entries,
            ENTRIES,
        )));
        blocks.push(crate::render::draw_calls(
            &difference.workload,
            &difference.calls,
        )?);
    }
    if !profiles.missing.is_empty() {
        blocks.push(Block::Paragraph("Without a profile:".to_owned()));
        blocks.push(Block::List(
            profiles
                .missing
                .iter()
                .map(|(workload, why)| format!("{workload}: {why}"))
                .collect(),
        ));
    }
    blocks.push(Block::Note(LEGEND.to_owned()));
    let is_timer =
        |difference: &SampledDifference| difference.sampling.event == model::SamplingEvent::Timer;
    blocks.extend(
        profiles
            .differences
            .iter()
            .any(is_timer)
            .then(|| Block::Note(OF_TIMERS.to_owned())),
    );
    let has_counted = profiles
        .differences
        .iter()
        .any(|difference| difference.counted.is_some());
    blocks.extend(has_counted.then(|| Block::Note(OF_EXACT.to_owned())));
    let kernels = [&profiles.base, &profiles.new];
    let mut facts: Vec<Fact> = kernels
        .into_iter()
        .map(|(title, origin)| Fact::new("Kernel", format!("{title}, {origin}")))
        .collect();
    facts.push(Fact::new("Machine", profiles.machine.clone()));
    facts.extend(profiles.differences.first().map(|difference| {
        let [base, new] = difference.boots;
        Fact::new(
            "Sampled",
            format!(
                "{}, {base} boots against {new}",
                describe_sampling(difference.sampling)
            ),
        )
    }));
    blocks.extend([
        Block::Facts(facts),
        Block::Command(profiles.command.clone()),
    ]);
    let title = format!(
        "Sampled profile: {} against {}",
        profiles.new.0, profiles.base.0
    );
    Ok(Document {
        title,
        blocks,
        ..Document::default()
    })
}

/// Says what speaks against a profile.
fn doubts(difference: &SampledDifference) -> Option<String> {
    let [samples, lost, throttled] = [difference.samples, difference.lost, difference.throttled]
        .map(|sides| sides[0] + sides[1]);
    let allowed = LOST * samples as f64;
    let mut doubts = Vec::new();
    if lost as f64 > allowed {
        doubts.push(format!("the kernels lost {lost} samples beside {samples}"));
    }
    if throttled as f64 > allowed {
        doubts.push(format!(
            "they paused {throttled} times because samples took too long"
        ));
    }
    (!doubts.is_empty()).then(|| format!("Doubtful: {}.", doubts.join("; ")))
}

/// What the last column says.
#[derive(Clone, Copy)]
enum Last<'a> {
    /// The share of the new kernel's cost.
    Share(f64),
    /// Instructions that the exact machine counted more.
    Exact(&'a Counted),
}

fn table(head: &str, difference: &SampledDifference, lines: &Lines, max: usize) -> Table {
    let last = match &difference.counted {
        Some(counted) if head == FUNCTION => Last::Exact(counted),
        _ => Last::Share(difference.total.rates[1]),
    };
    let (name, last_head, width) = match last {
        Last::Share(_) => (26, "share", 7),
        Last::Exact(_) => (24, "exact +", 9),
    };
    let numbers = [
        ("base", 10),
        ("new", 10),
        ("more work +", 12),
        ("±", 8),
        ("ratio", 7),
        (last_head, width),
    ];
    let numbers =
        numbers.map(|(head, width)| Column::new(head, ColumnKind::Number, Width::Fixed(width)));
    let columns = std::iter::once(Column::new(head, ColumnKind::Name, Width::Fixed(name)))
        .chain(numbers)
        .collect();
    let row = |name: String, cost: &RateDifference, exact: Option<f64>, weight| {
        let end = match last {
            Last::Share(whole) => format!(
                "{:.1}%",
                100.0 * cost.rates[1] / whole.max(f64::MIN_POSITIVE)
            ),
            Last::Exact(_) => exact.map(signed).unwrap_or_default(),
        };
        TableRow::new(weight, cells(name, cost).into_iter().chain([end]))
    };
    let exact = |line: &SampledLine| match last {
        Last::Share(_) => None,
        Last::Exact(counted) => counted.added(line),
    };
    // Where nothing can be tested, the largest are shown.
    let named = if difference.is_tested() {
        lines.significant()
    } else {
        &lines.all
    };
    let (shown, hidden) = named.split_at(named.len().min(max));
    let mut rows: Vec<TableRow> = shown
        .iter()
        .map(|line| row(label(line), &line.cost, exact(line), Weight::Normal))
        .collect();
    let sum = |lines: &[SampledLine]| lines.iter().filter_map(exact).sum::<f64>();
    if !hidden.is_empty() {
        let rates = [0, 1].map(|side| hidden.iter().map(|line| line.cost.rates[side]).sum::<f64>());
        let cost = RateDifference {
            rates,
            half: None,
            p: 1.0,
            dispersion: 1.0,
        };
        let differ = if difference.is_tested() {
            " that differ"
        } else {
            ""
        };
        rows.push(row(
            format!("{} more{differ}", hidden.len()),
            &cost,
            Some(sum(hidden)),
            Weight::Normal,
        ));
    }
    let total = match last {
        Last::Share(_) => 0.0,
        Last::Exact(counted) => counted.total,
    };
    let rest = lines.all.len() - named.len();
    if rest > 0 {
        // With it, functions that were never sampled: the column adds up to the exact difference.
        let exact = total - sum(named);
        rows.push(row(
            format!("{rest} without difference"),
            &lines.rest,
            Some(exact),
            Weight::Normal,
        ));
    }
    rows.push(row(
        "total".to_owned(),
        &lines.total,
        Some(total),
        Weight::Total,
    ));
    Table {
        columns,
        rows,
        ..Table::default()
    }
}

fn signed(value: f64) -> String {
    if value.abs() < 100_000.0 {
        format!("{value:+.1}")
    } else {
        format!("{value:+.0}")
    }
}

fn cells(name: String, cost: &RateDifference) -> Vec<String> {
    let [base, new] = cost.rates;
    let value = |value: f64| {
        if value.abs() < 100_000.0 {
            format!("{value:.1}")
        } else {
            format!("{value:.0}")
        }
    };
    let ratio = if base > 0.0 && new > 0.0 {
        number::ratio(base / new, 6)
    } else {
        String::new()
    };
    let note = match (base > 0.0, new > 0.0) {
        (true, false) => "gone".to_owned(),
        (false, true) => "new".to_owned(),
        _ => ratio,
    };
    let half = cost.half.map(value).unwrap_or_default();
    vec![
        name,
        value(base),
        value(new),
        signed(cost.difference()),
        half,
        note,
    ]
}

#[cfg(test)]
mod tests {
    use super::{SampledProfiles, document};
    use crate::sampled::synthetic::boot;
    use crate::sampled::{Counted, SampledDifference, json, schema};
    use document::Styles;
    use model::{SampledProfile, Share};

    const FAULT: &str = "asm_exc_page_fault;exc_page_fault;handle_mm_fault";

    fn side(slow: u64, more: &[(&str, u64)]) -> Vec<SampledProfile> {
        (0..5)
            .map(|n| {
                let near = |count: u64| count + (n * 7 + count) % 11;
                let clear = format!("{FAULT};clear_page_rep");
                let alloc = format!("{FAULT};__alloc_pages");
                let rare = format!("{FAULT};rare");
                let call = "entry_SYSCALL_64;do_syscall_64;__x64_sys_munmap;zap_pte_range";
                let mut stacks = vec![
                    ("[user]", near(40)),
                    (FAULT, near(200)),
                    (call, near(300)),
                    (clear.as_str(), near(slow)),
                    (alloc.as_str(), near(150)),
                    (rare.as_str(), n % 2),
                ];
                stacks.extend(more);
                boot(&stacks)
            })
            .collect()
    }

    fn profiles() -> SampledProfiles {
        let base = side(
            800,
            &[(
                "entry_SYSCALL_64;a_function_with_a_very_long_name_that_does_not_fit",
                90,
            )],
        );
        let mut new = side(960, &[("entry_SYSCALL_64;<script>alert(1)</script>", 70)]);
        new[0].lost = 500;
        let other = SampledDifference::new("getppid", &base[..1], &new[..1]).unwrap();
        let added = [
            ("clear_page_rep", 0.5),
            ("never_sampled", -12.0),
            ("handle_mm_fault", 3.0),
        ];
        let added = added.map(|(function, added)| ((Share::Kernel, function.to_owned()), added));
        let counted = Some(Counted {
            added: added.into(),
            total: -8.5,
        });
        SampledProfiles {
            base: (
                "6.1.192".into(),
                "linux-image-6.1.0-56-cloud-amd64 6.1.192-2".into(),
            ),
            new: (
                "6.12.117".into(),
                "linux-image-6.12.117+deb12-cloud-amd64 6.12.117-1".into(),
            ),
            machine: "QEMU 7.2.22, q35, TCG, 2 processors, 1024 MiB".into(),
            differences: vec![
                SampledDifference {
                    counted,
                    ..SampledDifference::new("fault-anon", &base, &new).unwrap()
                },
                SampledDifference::new(
                    "same",
                    &base,
                    &side(
                        800,
                        &[(
                            "entry_SYSCALL_64;a_function_with_a_very_long_name_that_does_not_fit",
                            90,
                        )],
                    ),
                )
                .unwrap(),
                other,
            ],
            missing: vec![("fault-huge".into(), "unsupported: no huge pages".into())],
            command: "marvin profile deb:6.1 deb:6.12 --on vm --boots 5".into(),
            lines_max: 3,
        }
    }

    #[test]
    fn all_renderings() {
        let document = document(&profiles()).unwrap();
        let text = document.text(&Styles::plain());
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        insta::assert_snapshot!("text", text);
        insta::assert_snapshot!("json", json(&profiles()).unwrap());
        let json = serde_json::from_str(&json(&profiles()).unwrap()).unwrap();
        assert_eq!(
            document::fixtures::mistakes(schema().as_value(), &json),
            Vec::<String>::new()
        );
        let page = document.html().unwrap();
        assert!(
            !page.contains("<script>alert"),
            "names of a kernel are not to be trusted"
        );
        assert!(
            page.contains("ns per operation"),
            "the flame graph has the unit"
        );
    }
}
