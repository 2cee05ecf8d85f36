//! The parts of counted values: kernel, user code, and instructions outside the value. The guest's
//! clock is the cross-check.

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
    pub(crate) elsewhere: [f64; 2],
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
                    elsewhere: [base.elsewhere, new.elsewhere],
                });
            }
        }
    }
    rows
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
        elsewhere: median_of(|c| c.elsewhere)?,
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

    /// Two kernels whose instructions were counted: kernel, user, elsewhere, per operation.
    fn counted(base: [u64; 3], new: [u64; 3]) -> Comparison {
        let old = counted_subject("6.1", base);
        let new = counted_subject("6.12", new);
        let mut question = question(&[1]);
        question.workloads.truncate(1);
        compare(&old.side(), &[new.side()], &question).unwrap()
    }

    /// Returns a kernel with these instructions per operation of the kernel, user code and others.
    fn counted_subject(version: &str, [kernel, user, elsewhere]: [u64; 3]) -> Subject {
        let time = (kernel + user + elsewhere) as f64;
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
                other: elsewhere * result.operations,
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
        let comparison = counted([300, 20, 5], [300, 20, 105]);
        assert_eq!(comparison.rows[0].cells[0].compared.verdict, Verdict::Same);
        assert!(
            matches!(&comparison.warnings[..], [Warning::ClockDisagrees { workload, .. }] if workload == "getppid")
        );
        let text = crate::render::comparison(&comparison, &View::default()).text(&Styles::plain());
        insta::assert_snapshot!(text.lines().take(8).collect::<Vec<_>>().join("\n"));
    }
}
