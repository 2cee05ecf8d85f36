//! Checks that runs measured the same metrics: results with different units or directions never
//! share a row.

use std::collections::HashMap;
use std::sync::Arc;

use model::{Capabilities, Declared, Run, Workload};

use crate::error::CompareError;
use crate::question::Side;
use document::label::Label;
use model::sanitize_line;

/// A metric as a result declares it.
#[derive(Debug, Clone, Copy)]
struct Declaration<'a> {
    metric: &'a Declared,
    run: &'a Run,
    /// The index of the run's side.
    side: usize,
}

/// Refuses rows with two results, or a result and the row, of different units or directions.
pub(crate) fn check_metrics(
    sides: &[&Side<'_>],
    labels: &[Label],
    workloads: &[Arc<Workload>],
) -> Result<(), CompareError> {
    let rows: HashMap<&str, &Workload> = workloads
        .iter()
        .map(|workload| (&*workload.name, &**workload))
        .collect();
    let mut first: HashMap<&str, Declaration<'_>> = HashMap::new();
    for (index, side) in sides.iter().enumerate() {
        for run in &side.runs {
            for result in &run.results {
                let Some((workload, metric)) = rows
                    .get(result.workload.as_str())
                    .zip(result.declared.as_ref())
                else {
                    continue;
                };
                let declaration = Declaration {
                    metric,
                    run,
                    side: index,
                };
                let first = *first.entry(&workload.name).or_insert(declaration);
                check(
                    workload,
                    side.machine.capabilities(),
                    labels,
                    first,
                    declaration,
                )?;
            }
        }
    }
    Ok(())
}

/// Refuses a declaration that contradicts the first one of its workload, or the current one.
fn check(
    workload: &Workload,
    machine: Capabilities,
    labels: &[Label],
    first: Declaration<'_>,
    later: Declaration<'_>,
) -> Result<(), CompareError> {
    let one = describe(later, labels);
    if !first.metric.agrees(later.metric) {
        return Err(CompareError::MetricChanged {
            workload: sanitize_line(&workload.name),
            one: describe(first, labels),
            other: one,
        });
    }
    let declared = Declared::from_metric(&workload.metric, machine.clock);
    // For metrics of other suites, users may set the direction.
    let here = if machine.foreign {
        Declared {
            direction: None,
            ..declared
        }
    } else {
        declared
    };
    if here.agrees(later.metric) {
        return Ok(());
    }
    Err(CompareError::MetricChanged {
        workload: sanitize_line(&workload.name),
        one,
        other: format!(
            "this Marvin declares it in {}",
            sanitize_line(&here.to_string())
        ),
    })
}

fn describe(declaration: Declaration<'_>, labels: &[Label]) -> String {
    format!(
        "{} of {} has it in {}",
        declaration.run.id.short(),
        labels[declaration.side].title,
        sanitize_line(&declaration.metric.to_string())
    )
}

#[cfg(test)]
mod tests {
    use model::{Declared, Direction};

    use crate::compare::compare;
    use crate::fixtures::{Ending, Subject, build, machine, question};

    /// Checks two kernels with a declaration each.
    fn check_units(kind: &str, [old, new]: [Option<Declared>; 2]) -> Result<(), String> {
        let old = side(kind, build("deb:6.1", "6.1.192"), old);
        let new = side(kind, build("deb:6.12", "6.12.117"), new);
        let mut question = question(&[1, 2]);
        question.workloads.truncate(1);
        compare(&old.side(), &[new.side()], &question)
            .map(drop)
            .map_err(|error| error.to_string())
    }

    /// Returns a kernel whose runs have this declaration of the metric.
    fn side(kind: &str, build: model::Build, declared: Option<Declared>) -> Subject {
        let samples = Ending::Samples(vec![9.0, 8.0, 8.0]);
        let mut subject = Subject::new(build, &[1, 2], &[("getppid", samples)]);
        for run in &mut subject.runs {
            run.results[0].declared.clone_from(&declared);
        }
        let mut machine = machine();
        machine.kind = kind.parse().unwrap();
        subject.on(machine)
    }

    fn declared(unit: &'static str, direction: Option<Direction>) -> Option<Declared> {
        Some(Declared {
            unit: unit.into(),
            direction,
            margin_percent: 1.0,
        })
    }

    #[test]
    fn metric_with_changed_unit_or_direction_is_refused() {
        let lower = Some(Direction::LowerIsBetter);
        let higher = Some(Direction::HigherIsBetter);
        let cost = declared("instructions/op", lower);
        insta::assert_snapshot!(
            "unit",
            check_units("exact", [cost.clone(), declared("us\u{1b}[2J", lower)]).unwrap_err()
        );
        insta::assert_snapshot!(
            "direction",
            check_units("exact", [None, declared("instructions/op", higher)]).unwrap_err()
        );
        assert!(check_units("exact", [cost.clone(), declared("instructions/op", higher)]).is_err());
        assert_eq!(
            check_units("exact", [cost.clone(), None]),
            Ok(()),
            "what was not said speaks against nothing"
        );
        assert_eq!(check_units("exact", [cost.clone(), cost]), Ok(()));
    }

    #[test]
    fn direction_of_imported_metric_is_asked_for() {
        let seconds = |direction| declared("ns/op", direction);
        let lower = Some(Direction::LowerIsBetter);
        let higher = Some(Direction::HigherIsBetter);
        assert_eq!(
            check_units("imported", [seconds(higher), seconds(None)]),
            Ok(())
        );
        assert!(check_units("imported", [seconds(higher), seconds(lower)]).is_err());
        assert!(check_units("imported", [seconds(None), declared("ms", None)]).is_err());
    }
}
