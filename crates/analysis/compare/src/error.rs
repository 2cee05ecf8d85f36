//! Why two kernels cannot be compared. Each message says what, where and what to do.

use crate::environment::Difference;
use model::sanitize_line;

/// A question without a valid answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CompareError {
    /// The runs are of different machines, which the user did not allow.
    #[error(
        "{base} ran on {base_machine}, {other} on {other_machine}: results of different machines are never compared \
         silently; they differ in {}; run both kernels on one machine, or allow it with --mixed-machines",
        list_differences(.differences)
    )]
    DifferentMachines {
        /// The base kernel's title.
        base: String,
        /// The id of its machine, shortened.
        base_machine: String,
        /// The other kernel's title.
        other: String,
        /// The id of its machine, shortened.
        other_machine: String,
        /// The differences between the fingerprints.
        differences: Vec<Difference>,
    },
    /// A run is on the wrong side.
    #[error(
        "{run} is of {found}, not of {expected} that {kernel} was to be compared by: the runs of one kernel were mixed \
         up with another's; this is a bug in what chose the runs"
    )]
    ForeignRun {
        /// The id of the run, shortened.
        run: String,
        /// The kernel of that side.
        kernel: String,
        /// The run's build or machine.
        found: String,
        /// The expected build or machine.
        expected: String,
    },
    /// Runs of one workload have different declarations.
    #[error(
        "{workload} has different metrics in these runs: {one}, and {other}; Marvin does not compare values of different units or \
         directions. Name runs that agree, or measure the others again (`marvin run KERNEL --force`; import results of \
         other suites again into another data directory)"
    )]
    MetricChanged {
        /// The workload's name, printable.
        workload: String,
        /// The declaration in one run, and which run.
        one: String,
        /// The declaration in another run, or in this program.
        other: String,
    },
    /// There is only one kernel.
    #[error("no kernel to compare {base} with: name at least one more")]
    NoOther {
        /// The base kernel's title.
        base: String,
    },
    /// There are no rows.
    #[error("no workload of suite `{suite}` to compare: name at least one, or none for all")]
    NoWorkload {
        /// The suite that was asked for.
        suite: String,
    },
    /// The margin is no percentage.
    #[error("margin {percent}% is out of range: give 0 to less than 100, for example 1")]
    Margin {
        /// The given margin.
        percent: f64,
    },
}

fn list_differences(differences: &[Difference]) -> String {
    let texts: Vec<String> = differences
        .iter()
        .map(|d| {
            let values: Vec<String> = d
                .short_values(40)
                .iter()
                .map(|v| sanitize_line(v))
                .collect();
            format!("{} ({})", sanitize_line(&d.name), values.join(" | "))
        })
        .collect();
    if texts.is_empty() {
        return "something that their fingerprints do not name".to_owned();
    }
    texts.join(", ")
}

#[cfg(test)]
mod tests {
    use crate::compare::compare;
    use crate::fixtures::{Subject, build, dead, new, old, other_machine, question, seeds};
    use crate::question::Side;

    fn refusal(base: &Side<'_>, others: &[Side<'_>], question: &crate::Question) -> String {
        compare(base, others, question).unwrap_err().to_string()
    }

    #[test]
    fn different_machines_are_refused_with_their_differences() {
        let seeds = seeds(2);
        let old = old(&seeds);
        let new = new(&seeds).on(other_machine());
        insta::assert_snapshot!(refusal(&old.side(), &[new.side()], &question(&seeds)));
    }

    #[test]
    fn runs_of_another_build_are_refused() {
        let seeds = seeds(1);
        let old = old(&seeds);
        let mut new = new(&seeds);
        new.runs.extend(dead(&seeds).runs);
        insta::assert_snapshot!(refusal(&old.side(), &[new.side()], &question(&seeds)));
    }

    #[test]
    fn runs_of_another_machine_are_refused() {
        let seeds = seeds(1);
        let old = old(&seeds);
        let mut new = new(&seeds);
        new.runs[0].machine = other_machine().id;
        insta::assert_snapshot!(refusal(&old.side(), &[new.side()], &question(&seeds)));
    }

    #[test]
    fn one_kernel_is_no_comparison() {
        let old = Subject::new(build("deb:6.1", "6.1.192\x1b[2J"), &[1], &[]);
        insta::assert_snapshot!(refusal(&old.side(), &[], &question(&[1])));
    }

    #[test]
    fn no_workload_and_no_margin_are_no_question() {
        let seeds = seeds(1);
        let old = old(&seeds);
        let new = new(&seeds);
        let mut nothing = question(&seeds);
        nothing.workloads.clear();
        insta::assert_snapshot!("no_workload", refusal(&old.side(), &[new.side()], &nothing));
        let mut narrow = question(&seeds);
        narrow.margin_percent = Some(-0.5);
        insta::assert_snapshot!(
            "negative_margin",
            refusal(&old.side(), &[new.side()], &narrow)
        );
        narrow.margin_percent = Some(f64::NAN);
        assert!(compare(&old.side(), &[new.side()], &narrow).is_err());
        narrow.margin_percent = Some(100.0);
        assert!(compare(&old.side(), &[new.side()], &narrow).is_err());
    }
}
