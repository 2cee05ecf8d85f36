//! Jobs that other work on the host disturbed: Marvin repeats them, and a run says which were
//! disturbed each time.

use machine::Disturbance;
use model::Outcome;

use crate::job::Measured;
use crate::own_cost::OwnCost;
use crate::tool_job::Printed;

/// How often a disturbed job is repeated: a host that is busy for three jobs in a row will be so
/// for more.
pub(crate) const REPEATS: u32 = 2;
/// Name of the artifact with each job's figures.
pub(crate) const LOAD: &str = "load";

/// A job's end that says what disturbed it.
pub(crate) trait Disturbed {
    /// Returns what disturbed it, if it completed and that is known: a failure needs no quiet host.
    fn disturbance(&self) -> Option<Disturbance>;

    /// Returns what the lab itself took of a processor, if known.
    fn own_cost(&self) -> Option<OwnCost>;
}

impl Disturbed for Measured {
    fn disturbance(&self) -> Option<Disturbance> {
        self.disturbance
            .filter(|_| self.value.outcome == Outcome::Completed)
    }

    fn own_cost(&self) -> Option<OwnCost> {
        self.own_cost
    }
}

impl Disturbed for Printed {
    fn disturbance(&self) -> Option<Disturbance> {
        self.disturbance
            .filter(|_| self.outcome == Outcome::Completed)
    }

    fn own_cost(&self) -> Option<OwnCost> {
        self.own_cost
    }
}

/// Describes a disturbance for people.
pub(crate) fn describe(disturbance: &Disturbance) -> String {
    let Disturbance { others, steal, .. } = disturbance;
    let others = others * 100.0;
    let steal = steal * 100.0;
    format!("others took {others:.0}% of the host's processors, its hypervisor {steal:.0}%")
}

/// Returns a line of the artifact: the job, the shares of others and of the hypervisor.
pub(crate) fn line(job: &str, disturbance: &Disturbance) -> String {
    format!("{job} {:.4} {:.4}\n", disturbance.others, disturbance.steal)
}

#[cfg(test)]
mod tests {
    use machine::Disturbance;

    #[test]
    fn disturbance_is_described() {
        let disturbance = Disturbance {
            others: 0.234,
            steal: 0.05,
            limit: 0.1,
        };
        insta::assert_snapshot!(super::describe(&disturbance), @"others took 23% of the host's processors, its hypervisor 5%");
        assert_eq!(
            super::line("getppid", &disturbance),
            "getppid 0.2340 0.0500\n"
        );
    }
}
