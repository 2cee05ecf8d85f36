//! Where executions part, as documents.

use std::collections::BTreeMap;

use document::{Block, Column, ColumnKind, Document, Fact, Table, TableRow, Weight, Width};
use model::{PathInstruction, SourceLocation};

use super::{Divergence, EVERYTHING, Next, PathDifference, Point};

/// Returns the source line of an instruction of the baseline (0) or the new kernel (1), if it is
/// known.
pub type LineOf<'a> = dyn Fn(usize, &PathInstruction) -> Option<SourceLocation> + 'a;

/// Width of the places in text.
const PLACES: usize = 34;

/// The paths of two kernels, workload by workload.
#[derive(Debug, Clone)]
pub struct Parted {
    /// The base: its label and its origin.
    pub base: (String, String),
    /// The new kernel's title and origin.
    pub new: (String, String),
    /// The machine, described in words.
    pub machine: String,
    /// Each workload.
    pub differences: Vec<PathDifference>,
    /// Workloads without one, with the reason.
    pub missing: Vec<(String, String)>,
    /// The command that repeats it.
    pub command: String,
    /// Most places in the table of a workload.
    pub places_max: usize,
}

/// The note on the numbers, in every format.
const LEGEND: &str = "Instructions of one iteration, not per operation. More work +: new minus base, so + is worse. Executions \
part behind the instruction that is named and meet again where four instructions or a call are the same, at the latest where \
the function returns; what is called until then is in it. The lines add up to the total, to the last instruction. Instructions \
are the same at the same place of the same function, by their machine code but for addresses; so other registers are another \
path of the same length.";

/// Returns the document of the paths of two kernels.
#[must_use]
pub fn document(parted: &Parted, line_of: &LineOf<'_>) -> Document {
    let mut blocks = Vec::new();
    for difference in &parted.differences {
        blocks.push(Block::Heading(difference.workload.clone()));
        blocks.push(Block::Paragraph(sentence(difference)));
        blocks.extend(cut(difference).map(Block::Paragraph));
        blocks.extend(first(difference, line_of));
        blocks.push(Block::Table(places(difference, parted.places_max, line_of)));
    }
    if !parted.missing.is_empty() {
        blocks.push(Block::Paragraph("Without a path:".to_owned()));
        let missing = parted.missing.iter();
        let lines = missing.map(|(workload, why)| format!("{workload}: {why}"));
        blocks.push(Block::List(lines.collect()));
    }
    blocks.push(Block::Note(LEGEND.to_owned()));
    let mut facts: Vec<Fact> = [&parted.base, &parted.new]
        .map(|(title, origin)| Fact::new("Kernel", format!("{title}, {origin}")))
        .into_iter()
        .collect();
    facts.push(Fact::new("Machine", parted.machine.clone()));
    if let Some(difference) = parted.differences.first() {
        facts.push(Fact::new("Seeds", difference.seed.to_string()));
    }
    blocks.extend([Block::Facts(facts), Block::Command(parted.command.clone())]);
    Document {
        title: format!(
            "Where paths part: {} against {}",
            parted.new.0, parted.base.0
        ),
        blocks,
        ..Document::default()
    }
}

/// Returns the first sentence on a workload.
fn sentence(difference: &PathDifference) -> String {
    let PathDifference {
        workload,
        iteration: (number, iterations),
        operations,
        divergences,
        row,
        ..
    } = difference;
    let of_row = difference
        .counted
        .each_ref()
        .map(|region| region.kernel + region.user);
    let per_operation =
        (of_row[1].cast_signed() - of_row[0].cast_signed()) as f64 / (*operations).max(1) as f64;
    let times: u64 = divergences.iter().map(|divergence| divergence.times).sum();
    let parting = match (by_place(difference).len(), times) {
        (0, _) => "the kernel's instructions are the same, in the same order".to_owned(),
        (1, 1) => "paths part once".to_owned(),
        (1, times) => format!("paths part {times} times at one place"),
        (places, times) => format!("paths part {times} times at {places} places"),
    };
    format!(
        "{workload}: {} instructions per operation in iteration {number} of {iterations} ({} in the row, their median); {parting}",
        signed(per_operation),
        signed(row[1] - row[0]),
    )
}

/// Says what was not followed.
fn cut(difference: &PathDifference) -> Option<String> {
    (difference.cut != [0; 2]).then(|| {
        let [base, new] = difference.followed;
        format!(
            "The iteration is longer than what is followed: only its first {base} instructions on the baseline and {new} on the \
             new kernel are compared."
        )
    })
}

fn first(difference: &PathDifference, line_of: &LineOf<'_>) -> Vec<Block> {
    let Some(first) = difference.divergences.first() else {
        return Vec::new();
    };
    let mut blocks = vec![
        Block::Subheading(format!("They part first in {}", first.function)),
        Block::Console(detail(first, line_of)),
    ];
    // Other registers cost nothing: the first place that costs something as well, and the one that
    // costs most.
    let costs = difference.divergences.iter().find(|one| one.more() != 0);
    let most = by_place(difference).into_iter().next();
    let most = most.and_then(|place| place.divergences.first().copied());
    let most = most.filter(|most| most.more() != 0);
    let mut shown = vec![first];
    for (title, found) in [("The first that costs", costs), ("Most is", most)] {
        if let Some(found) = found.filter(|found| !shown.contains(found)) {
            blocks.push(Block::Subheading(format!("{title} in {}", found.function)));
            blocks.push(Block::Console(detail(found, line_of)));
            shown.push(found);
        }
    }
    blocks
}

/// What parts behind the same instruction.
struct Place<'a> {
    times: u64,
    instructions: [u64; 2],
    /// The one that costs most comes first.
    divergences: Vec<&'a Divergence>,
}

impl Place<'_> {
    fn more(&self) -> i64 {
        self.instructions[1].cast_signed() - self.instructions[0].cast_signed()
    }
}

/// Returns the places in the order of what they cost.
fn by_place(difference: &PathDifference) -> Vec<Place<'_>> {
    let mut places: BTreeMap<(&str, Option<u64>), Vec<&Divergence>> = BTreeMap::new();
    for divergence in &difference.divergences {
        let behind = divergence.behind.as_ref();
        let address = behind.and_then(|point| Some(known(point)?.address));
        let of_place = places.entry((&divergence.function, address)).or_default();
        of_place.push(divergence);
    }
    let mut places: Vec<Place<'_>> = places
        .into_values()
        .map(|mut divergences| {
            divergences.sort_by_key(|one| std::cmp::Reverse(one.more().unsigned_abs()));
            let sum = |side: usize| divergences.iter().map(|one| one.instructions[side]).sum();
            Place {
                times: divergences.iter().map(|one| one.times).sum(),
                instructions: [sum(0), sum(1)],
                divergences,
            }
        })
        .collect();
    places.sort_by_key(|place| std::cmp::Reverse(place.more().unsigned_abs()));
    places
}

/// Returns an instruction of both sides as the new kernel has it.
fn known(point: &Point) -> Option<&PathInstruction> {
    point.sides[1].as_ref().or(point.sides[0].as_ref())
}

/// Returns the instructions around a place.
fn detail(divergence: &Divergence, line_of: &LineOf<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(behind) = &divergence.behind {
        let side = usize::from(behind.sides[1].is_some());
        let instruction = known(behind);
        lines.extend(instruction.map(|found| instruction_line("both", side, found, line_of)));
    }
    for (side, word) in ["base", "new"].into_iter().enumerate() {
        lines.push(next_line(word, side, &divergence.next[side], line_of));
        let calls = &divergence.calls[side];
        if !calls.is_empty() {
            lines.push(format!("{:6}calls {}", "", calls.join(", ")));
        }
    }
    let mut meet = next_line("meet", 1, &divergence.meet[1], line_of);
    if let [Next::Instruction(base), Next::Instruction(new)] = &divergence.meet
        && base.offset != new.offset
    {
        meet = format!("{meet}, on base +{:#x}", base.offset);
    }
    lines.push(meet);
    lines
}

fn next_line(word: &str, side: usize, next: &Next, line_of: &LineOf<'_>) -> String {
    match next {
        Next::Instruction(instruction) => instruction_line(word, side, instruction, line_of),
        Next::Again => format!("{word:6}the same instruction again"),
        Next::Call(function) => format!("{word:6}enters {function}"),
        Next::End => format!("{word:6}the function ends"),
    }
}

fn instruction_line(
    word: &str,
    side: usize,
    instruction: &PathInstruction,
    line_of: &LineOf<'_>,
) -> String {
    let place = place(instruction);
    let about = match line_of(side, instruction) {
        Some(line) => format!("{}:{}", line.file, line.line),
        None => {
            let bytes = instruction.bytes.iter();
            let bytes: Vec<String> = bytes.map(|byte| format!("{byte:02x}")).collect();
            bytes.join(" ")
        }
    };
    let target = instruction.target.as_ref();
    let target = target.map_or_else(String::new, |target| format!(" to {target}"));
    format!("{word:6}{place:28} {about}{target}")
}

/// Returns a place as the kernel writes it: `handle_mm_fault+0x2c`.
fn place(instruction: &PathInstruction) -> String {
    format!("{}+{:#x}", instruction.symbol, instruction.offset)
}

/// Returns how a place of a divergence is called.
fn name(divergence: &Divergence) -> String {
    match divergence.behind.as_ref().and_then(known) {
        Some(instruction) => place(instruction),
        None if divergence.function == EVERYTHING => EVERYTHING.to_owned(),
        None => format!("{}, at its start", divergence.function),
    }
}

fn places(difference: &PathDifference, max: usize, line_of: &LineOf<'_>) -> Table {
    let sorted = by_place(difference);
    let costing = sorted.iter().filter(|one| one.more() != 0).count();
    let (shown, others) = sorted.split_at(costing.min(max));
    let mut rows: Vec<TableRow> = Vec::new();
    for place in shown {
        let Some(divergence) = place.divergences.first() else {
            continue;
        };
        let line = divergence.behind.as_ref().and_then(|behind| {
            let side = usize::from(behind.sides[1].is_some());
            line_of(side, known(behind)?)
        });
        let name = match line {
            Some(line) => format!("{} {}:{}", name(divergence), line.file, line.line),
            None => name(divergence),
        };
        rows.push(row(name, Some(place.times), place.instructions));
    }
    if !others.is_empty() {
        let sum = [0, 1].map(|side| others.iter().map(|one| one.instructions[side]).sum());
        let times = others.iter().map(|one| one.times).sum();
        let what = if others.iter().all(|one| one.more() == 0) {
            "others, as long"
        } else {
            "others"
        };
        rows.push(row(format!("{} {what}", others.len()), Some(times), sum));
    }
    let parted = [0, 1].map(|side| {
        let instructions = difference.divergences.iter();
        instructions.map(|one| one.instructions[side]).sum::<u64>()
    });
    let same = difference.followed[0] - parted[0];
    rows.push(row("the same on both".to_owned(), None, [same; 2]));
    for (part, sides) in difference.parts() {
        if sides != [0; 2] {
            let mut row = row(part.to_owned(), None, sides);
            row.weight = Weight::Total;
            rows.push(row);
        }
    }
    let total = difference.counted.each_ref().map(model::Region::total);
    let mut row = row(format!("iteration {}", difference.iteration.0), None, total);
    row.weight = Weight::Total;
    rows.push(row);
    let number = |head: &str, width| Column::new(head, ColumnKind::Number, Width::Fixed(width));
    Table {
        columns: vec![
            Column::new("they part behind", ColumnKind::Name, Width::Whole(PLACES)),
            number("times", 7),
            number("base", 10),
            number("new", 10),
            number("more work +", 12),
        ],
        rows,
        ..Table::default()
    }
}

fn row(name: String, times: Option<u64>, [base, new]: [u64; 2]) -> TableRow {
    let more = new.cast_signed() - base.cast_signed();
    let more = match more {
        0 => "0".to_owned(),
        more => format!("{more:+}"),
    };
    TableRow::new(
        Weight::Normal,
        [
            name,
            times.map(|times| times.to_string()).unwrap_or_default(),
            base.to_string(),
            new.to_string(),
            more,
        ],
    )
}

fn signed(number: f64) -> String {
    match format!("{number:+.2}") {
        text if text == "+0.00" || text == "-0.00" => "0.00".to_owned(),
        text => text,
    }
}
