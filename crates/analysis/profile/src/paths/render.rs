//! Where executions part, as documents.

use document::{Block, Column, ColumnKind, Document, Fact, Table, TableRow, Weight, Width};
use model::{PathInstruction, SourceLocation};

use super::{Divergence, Next, PathDifference, Point};

/// Returns the source line of an instruction of the baseline (0) or the new kernel (1), if it is
/// known.
pub type LineOf<'a> = dyn Fn(usize, &PathInstruction) -> Option<SourceLocation> + 'a;

/// Width of the places in text.
const PLACES: usize = 36;

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
    let parting = match (divergences.len(), times) {
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
    // Other registers cost nothing: the first place that costs something as well.
    let costs = difference.divergences.iter().find(|one| one.more() != 0);
    if let Some(costs) = costs.filter(|costs| *costs != first) {
        blocks.push(Block::Subheading(format!(
            "The first that costs, in {}",
            costs.function
        )));
        blocks.push(Block::Console(detail(costs, line_of)));
    }
    blocks
}

/// Returns the instructions around a place.
fn detail(divergence: &Divergence, line_of: &LineOf<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(Point { sides }) = &divergence.behind {
        let both = sides.iter().enumerate().rev();
        if let Some((side, instruction)) = both
            .filter_map(|(side, found)| Some((side, found.as_ref()?)))
            .next()
        {
            lines.push(instruction_line("both", side, instruction, line_of));
        }
    }
    for (side, word) in ["base", "new"].into_iter().enumerate() {
        lines.push(next_line(word, side, &divergence.next[side], line_of));
        let calls = &divergence.calls[side];
        if !calls.is_empty() {
            lines.push(format!("{:6}calls {}", "", calls.join(", ")));
        }
    }
    if let Some(meet) = &divergence.meet {
        lines.push(next_line("meet", 1, meet, line_of));
    }
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
    let bytes: Vec<String> = instruction
        .bytes
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let mut about = bytes.join(" ");
    if let Some(target) = &instruction.target {
        about = format!("{about} to {target}");
    }
    let place = place(instruction);
    let line = line_of(side, instruction).map(|line| format!("{}:{}", line.file, line.line));
    format!("{word:6}{place:30} {about:24} {}", line.unwrap_or_default())
        .trim_end()
        .to_owned()
}

/// Returns a place as the kernel writes it: `handle_mm_fault+0x2c`.
fn place(instruction: &PathInstruction) -> String {
    format!("{}+{:#x}", instruction.symbol, instruction.offset)
}

/// Returns how a place of a divergence is called.
pub(super) fn name(divergence: &Divergence) -> String {
    let behind = divergence.behind.as_ref();
    let known = behind.and_then(|point| point.sides[1].as_ref().or(point.sides[0].as_ref()));
    known.map_or_else(|| format!("{}, at its start", divergence.function), place)
}

fn places(difference: &PathDifference, max: usize, line_of: &LineOf<'_>) -> Table {
    let mut sorted: Vec<&Divergence> = difference.divergences.iter().collect();
    sorted.sort_by_key(|divergence| std::cmp::Reverse(divergence.more().unsigned_abs()));
    let costing = sorted.iter().filter(|one| one.more() != 0).count();
    let (shown, others) = sorted.split_at(costing.min(max));
    let mut rows: Vec<TableRow> = shown
        .iter()
        .map(|divergence| {
            let behind = divergence.behind.as_ref();
            let line = behind.and_then(|point| {
                let side = usize::from(point.sides[1].is_some());
                line_of(side, point.sides[side].as_ref()?)
            });
            let name = match line {
                Some(line) => format!("{} {}:{}", name(divergence), line.file, line.line),
                None => name(divergence),
            };
            row(name, Some(divergence.times), divergence.instructions)
        })
        .collect();
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
            number("more work +", 11),
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
