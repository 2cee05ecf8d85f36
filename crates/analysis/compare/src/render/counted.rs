//! The parts of counted values: kernel, user code, and instructions outside the value. The guest's
//! clock is the cross-check.

use document::Block;
use document::number::signed_percent;
use model::Verdict;

use crate::comparison::{Comparison, ComparisonRow, Counted, Measured};

/// The parts of a changed row: base and new kernel, instructions per operation.
pub(crate) struct Apart {
    /// The workload; with the kernel if there are several.
    pub(crate) name: String,
    /// Instructions of the kernel for the workload.
    pub(crate) kernel: [f64; 2],
    /// Of its user code.
    pub(crate) user: [f64; 2],
    /// Of interrupts and other tasks.
    pub(crate) deferred: [f64; 2],
}

/// The caption of such rows.
pub(crate) const HEAD: &str = "What changed, taken apart (instructions/op, base and new)";

/// Returns the parts of the changed rows that were counted.
pub(crate) fn apart(comparison: &Comparison) -> Vec<Apart> {
    let mut rows = Vec::new();
    for (place, other) in comparison.others.iter().enumerate() {
        for row in &comparison.rows {
            let cell = &row.cells[place];
            let has_changed = matches!(cell.compared.verdict, Verdict::Better | Verdict::Worse);
            let sides = [median(&row.base), median(&cell.measured)];
            if let ([Some(base), Some(new)], true) = (sides, has_changed) {
                let of = if comparison.others.len() > 1 {
                    format!(", {}", other.kernel.title)
                } else {
                    String::new()
                };
                rows.push(Apart {
                    name: format!("{}{of}", row.workload.name),
                    kernel: [base.kernel, new.kernel],
                    user: [base.user, new.user],
                    deferred: [base.deferred, new.deferred],
                });
            }
        }
    }
    rows
}

/// Lists the rows whose difference with deferred work is more than the margin away from that of the
/// row, and that are not mixed: these give the same numbers as their reason.
pub(crate) fn deferred(comparison: &Comparison) -> Vec<Block> {
    let mut items = Vec::new();
    for (place, other) in comparison.others.iter().enumerate() {
        for row in &comparison.rows {
            let cell = &row.cells[place];
            let compared = &cell.compared;
            let sides = [median(&row.base), median(&cell.measured)];
            let percents = compared
                .difference_percent
                .zip(compared.with_deferred_percent);
            let (Some((percent, with_deferred)), [Some(base), Some(new)]) = (percents, sides)
            else {
                continue;
            };
            let is_decided = !matches!(compared.verdict, Verdict::Unclear(_));
            if is_decided && (with_deferred - percent).abs() > row.margin_percent {
                let of = if comparison.others.len() > 1 {
                    format!(", {}", other.kernel.title)
                } else {
                    String::new()
                };
                items.push(format!(
                    "{}{of}: {} in the row, {} with the work it defers, {:.1} -> {:.1}",
                    row.workload.name,
                    signed_percent(percent),
                    signed_percent(with_deferred),
                    base.deferred,
                    new.deferred
                ));
            }
        }
    }
    if items.is_empty() {
        return Vec::new();
    }
    let head = "With deferred work (instructions/op of interrupts and other tasks):";
    vec![Block::Paragraph(head.to_owned()), Block::List(items)]
}

/// Returns the medians over the seeds.
fn median(measured: &Measured) -> Option<Counted> {
    let all: Vec<Counted> = measured
        .seeds
        .iter()
        .filter_map(|seed| seed.value.as_ref().ok()?.counted)
        .collect();
    let median_of =
        |part: fn(&Counted) -> f64| stats::median(&all.iter().map(part).collect::<Vec<_>>());
    Some(Counted {
        kernel: median_of(|c| c.kernel)?,
        user: median_of(|c| c.user)?,
        deferred: median_of(|c| c.deferred)?,
        time: median_of(|c| c.time)?,
        costly: Default::default(),
        cycles: None,
    })
}

/// Describes counted values, and their distance to the guest's clock.
pub(crate) fn cross_check(comparison: &Comparison) -> Option<String> {
    let rows = comparison
        .rows
        .iter()
        .filter_map(|row| Some((&*row.workload.name, points_from_time(row)?)));
    let (name, points) = rows.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let of_time: Vec<&str> = comparison
        .rows
        .iter()
        .filter(|row| {
            row.cells
                .iter()
                .any(|c| c.compared.difference_percent.is_some() && c.time_percent.is_none())
        })
        .map(|row| &*row.workload.name)
        .collect();
    let exception = if of_time.is_empty() {
        String::new()
    } else {
        format!(" Of guest time, not counted: {}.", of_time.join(", "))
    };
    Some(format!(
        "Counted: instructions of the kernel and of user code for the workload; interrupts and other tasks are not in \
         the values. By the guest's clock, which has all of it, the differences are {} ({name}).{exception}",
        if points < 0.005 {
            "the same".to_owned()
        } else {
            format!("at most {points:.2} points away")
        },
    ))
}

/// Returns how far a row's differences by the guest's clock are from those by counts, at most, in
/// percentage points.
fn points_from_time(row: &ComparisonRow) -> Option<f64> {
    row.cells
        .iter()
        .filter_map(|cell| Some((cell.time_percent? - cell.compared.difference_percent?).abs()))
        .reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use crate::comparison::Warning;
    use crate::fixtures::{Ending, Subject, build, question};
    use crate::render::json;
    use crate::{Comparison, compare};
    use document::{Styles, View};
    use model::{Region, Verdict};

    /// Two kernels whose instructions were counted: kernel, user, deferred, per operation.
    fn counted(base: [u64; 3], new: [u64; 3]) -> Comparison {
        compared([
            counted_subject("6.1", base, 0),
            counted_subject("6.12", new, 0),
        ])
    }

    fn compared([old, new]: [Subject; 2]) -> Comparison {
        let mut question = question(&[1]);
        question.workloads.truncate(1);
        compare(&old.side(), &[new.side()], &question).unwrap()
    }

    /// Returns a kernel with these instructions per operation of the kernel, user code and others, and
    /// with this idle time.
    fn counted_subject(version: &str, counts: [u64; 3], idle: u64) -> Subject {
        let [kernel, user, deferred] = counts;
        let time = (kernel + user + deferred + idle) as f64;
        let mut subject = Subject::new(
            build(&format!("deb:{version}"), version),
            &[1],
            &[("getppid", Ending::Cost(time, 0.0))],
        );
        for result in subject.runs.iter_mut().flat_map(|run| &mut run.results) {
            let region = Region {
                user: user * result.operations,
                kernel: kernel * result.operations,
                interrupt: 0,
                other: deferred * result.operations,
                ..Region::default()
            };
            result.counted = vec![region; result.samples.len()];
        }
        subject
    }

    #[test]
    fn value_is_split_into_kernel_and_user() {
        let comparison = counted([300, 20, 5], [330, 20, 6]);
        assert_eq!(comparison.rows[0].base.value, Some(320.0));
        assert_eq!(comparison.rows[0].cells[0].measured.value, Some(350.0));
        assert_eq!(comparison.rows[0].cells[0].compared.verdict, Verdict::Worse);
        assert!(comparison.warnings.is_empty());
        let document = crate::render::comparison(
            &comparison,
            &View {
                verbose: true,
                ..View::default()
            },
        );
        insta::assert_snapshot!("text", document.text(&Styles::plain()));
        insta::assert_snapshot!("json", json(&comparison).unwrap());
    }

    #[test]
    fn a_clock_that_says_otherwise_is_a_warning() {
        let comparison = compared([
            counted_subject("6.1", [300, 20, 5], 0),
            counted_subject("6.12", [300, 20, 5], 100),
        ]);
        assert_eq!(comparison.rows[0].cells[0].compared.verdict, Verdict::Same);
        assert!(
            matches!(&comparison.warnings[..], [Warning::ClockDisagrees { workload, .. }] if workload == "getppid")
        );
        let text = crate::render::comparison(&comparison, &View::default()).text(&Styles::plain());
        insta::assert_snapshot!(text.lines().take(8).collect::<Vec<_>>().join("\n"));
    }

    #[test]
    fn deferred_work_beyond_the_margin_is_mixed() {
        let comparison = counted([300, 20, 5], [300, 20, 105]);
        let compared = &comparison.rows[0].cells[0].compared;
        assert_eq!(compared.verdict.letter(), 'M');
        let Verdict::Unclear(why) = &compared.verdict else {
            panic!("{:?}", compared.verdict);
        };
        insta::assert_snapshot!(
            why.to_string(),
            @"mixed: +0.00% in the row, -30.77% with the work it defers: 5.0 -> 105.0 instructions of interrupts and other tasks"
        );
        assert!(comparison.warnings.is_empty());
        assert!(super::deferred(&comparison).is_empty());
    }

    #[test]
    fn deferred_work_that_agrees_is_listed() {
        let comparison = counted([300, 20, 5], [330, 20, 105]);
        let compared = &comparison.rows[0].cells[0].compared;
        assert_eq!(compared.verdict, Verdict::Worse);
        let [_, document::Block::List(items)] = &super::deferred(&comparison)[..] else {
            panic!("no list");
        };
        insta::assert_snapshot!(
            items.join("\n"),
            @"getppid: -9.38% in the row, -40.00% with the work it defers, 5.0 -> 105.0"
        );
    }

    #[test]
    fn deferred_work_undoes_a_gain() {
        let comparison = counted([300, 20, 5], [290, 20, 25]);
        let compared = &comparison.rows[0].cells[0].compared;
        assert_eq!(compared.verdict.name(), "mixed");
    }
}
