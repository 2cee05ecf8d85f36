//! `marvin bisect --dry-run`: the commits to search and the estimated cost, without building.

use document::number::count;
use kernel::{BuildSeconds, CommitGraph, Sources};
use lab::bisection::{add, short};
use lab::{Estimate, Nodes, Pace, estimate_measurement};
use model::{Steadiness, Workload};
use store::{Location, Store};

use super::BisectArguments;
use crate::measure::parallel_machines;
use crate::session::span;

/// The limits of a bisection's cost.
pub(super) struct Plan {
    ends: [String; 2],
    commits: usize,
    merges: usize,
    trunk: usize,
    /// Number of ends with a build.
    built: usize,
    /// Durations of earlier builds here; `None` if there are none.
    seconds: Option<BuildSeconds>,
    /// Estimated duration of measuring a commit.
    pub(super) measuring: Estimate,
    /// Most runs of a noisy workload; they take longer than is known here.
    runs_max: Option<u16>,
}

pub(super) fn plan_bisection(
    command: &BisectArguments,
    history: &CommitGraph,
    sources: &Sources,
    workload: &Workload,
    location: Location,
) -> anyhow::Result<Plan> {
    let ends = [history.good(), history.bad()];
    let built = ends
        .iter()
        .map(|end| sources.compiled(end))
        .collect::<Result<Vec<_>, _>>()?;
    let machines = parallel_machines(command.search.jobs);
    // Without a store, there are no earlier measurements.
    let store = Store::open_read_only(location).ok();
    let measuring = estimate_measurement(store.as_ref(), workload, command.seed_count(), machines)?;
    Ok(Plan {
        ends: ends.map(short),
        commits: history.count(),
        merges: history.merges(),
        trunk: history.trunk().len(),
        built: built.iter().flatten().count(),
        seconds: sources.seconds(),
        measuring,
        runs_max: (workload.steadiness == Steadiness::Chaotic).then_some(command.runs),
    })
}

impl Plan {
    /// Describes it, with other hosts if it has some.
    pub(super) fn text(&self, nodes: Option<Nodes>) -> String {
        let pace = Pace {
            builds: self.seconds,
            measuring_s: self.measuring.seconds,
        };
        let decision = nodes.map(|nodes| nodes.decide(pace, self.trunk, &span).1 + "\n");
        text(self) + &decision.unwrap_or_default()
    }
}

fn text(plan: &Plan) -> String {
    let Plan {
        ends: [good, bad],
        commits,
        merges,
        trunk,
        built,
        seconds,
        measuring,
        runs_max,
    } = plan;
    let steps = (*trunk as f64).log2().ceil() as usize;
    let mut text = format!(
        "{good}..{bad}: {}, {merges} of them merges; {trunk} on the trunk\n",
        count(*commits, "commit")
    );
    add(
        &mut text,
        format_args!(
            "first the two ends, of which {built} {} built already; then at most {}\n",
            if *built == 1 { "is" } else { "are" },
            count(steps, "commit")
        ),
    );
    text.push_str(
        "of the trunk for one step; fewer if commits change no compiled file, which the\n",
    );
    text.push_str("builds of the ends show; if the step is a merge of n commits, log2(n) more\n\n");
    let builds = 2 - built + steps;
    let measured = (2 + steps) as f64 * measuring.seconds;
    let known = if measuring.guessed > 0 {
        ", a guess: no measurement here yet"
    } else {
        ""
    };
    let row = |what: String, took: String| format!("{what:<12}{took}\n");
    let measured_in = match runs_max {
        Some(runs) => format!("measured as often as it takes, in at most {runs} runs"),
        None => format!("measured in about {}{known}", span(measured)),
    };
    text.push_str(&row(count(2 + steps, "commit"), measured_in));
    let Some(BuildSeconds { last, longest }) = *seconds else {
        let took = "the first takes minutes; no build here yet";
        text.push_str(&row(count(builds, "build"), took.to_owned()));
        return text;
    };
    let took = format!(
        "{} for the last one here, {} for the longest",
        span(last as f64),
        span(longest as f64)
    );
    text.push_str(&row(count(builds, "build"), took));
    if runs_max.is_some() {
        return text;
    }
    let all = |of_build: u64| span(measured + (builds as u64 * of_build) as f64);
    text.push_str(&row(
        "in all".to_owned(),
        format!("{} to {}", all(last), all(longest)),
    ));
    text
}

#[cfg(test)]
mod tests {
    use kernel::BuildSeconds;
    use lab::{Estimate, Nodes};

    use super::{Plan, text};

    #[test]
    fn dry_run_estimates_from_earlier_builds() {
        let measuring = Estimate {
            seconds: 3.0,
            known: 4,
            guessed: 0,
        };
        let seconds = Some(BuildSeconds {
            last: 6,
            longest: 175,
        });
        let ends = ["48f0447246da", "1308d5271a18"].map(str::to_owned);
        let plan = Plan {
            ends,
            commits: 64,
            merges: 0,
            trunk: 64,
            built: 1,
            seconds,
            measuring,
            runs_max: None,
        };
        insta::assert_snapshot!("bisect_plan", text(&plan));
        let noisy = Plan {
            runs_max: Some(2000),
            ends: plan.ends.clone(),
            ..plan
        };
        assert!(text(&noisy).contains(
            "\n8 commits   measured as often as it takes, in at most 2000 runs\n7 builds"
        ));
        let plan = Plan {
            runs_max: None,
            ..noisy
        };
        let nodes = plan.text(Some(Nodes {
            count: 6,
            is_asked_for: false,
        }));
        assert!(nodes.ends_with(
            "\nwith 6 nodes: about 2 rounds instead of 6, but 3 min instead of 54 s: this host searches alone\n"
        ));
        let guessed = Estimate {
            seconds: 13.0,
            known: 0,
            guessed: 2,
        };
        insta::assert_snapshot!(
            "bisect_plan_of_a_new_home",
            text(&Plan {
                built: 0,
                seconds: None,
                measuring: guessed,
                ..plan
            })
        );
    }
}
