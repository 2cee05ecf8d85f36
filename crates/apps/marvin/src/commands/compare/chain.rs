//! `marvin compare --chain`: the releases between two, bisected by results. Results are stored as
//! they come, so that a chain that was interrupted goes on where it was.

use std::collections::BTreeMap;
use std::sync::Arc;

use compare::chain::{Chain, Link, document, json};
use compare::{Comparison, Question, Side};
use kernel::releases_between;
use lab::{Lab, LabError, Wanted};
use model::{Availability, Build, KernelName, Machine, PackageQuery, Release, Run, Workload};

use super::{CompareArguments, SEEDS, side, sides};
use crate::exit::{Exit, WrongInput};
use crate::measure::{
    choose_for_machine, find_build, open_lab_on, plan_runs, prepare_tools, read_ledger,
};
use crate::select::{ChosenWorkloads, choose_machines, choose_workloads, kernel_name};
use crate::session::{Format, Progress, Session, now};

/// What was measured of a release.
struct MeasuredRelease {
    build: Build,
    runs: Vec<Run>,
}

/// A chain while it is measured.
struct Walk<'a> {
    lab: &'a Lab,
    progress: &'a Progress,
    command: &'a CompareArguments,
    chosen: &'a ChosenWorkloads,
    machines: Vec<Machine>,
    releases: BTreeMap<usize, MeasuredRelease>,
    chain: Chain,
}

pub(super) fn chain(session: &Session, command: &CompareArguments) -> anyhow::Result<Exit> {
    let names = sides(command)?;
    let chosen = choose_workloads(session, &command.measure, &names)?;
    let wanted = match choose_machines(session, &command.on)?.as_slice() {
        [(_, wanted @ Wanted::Exact)] => wanted.clone(),
        _ => {
            let text = "--chain needs --on exact, where a release does not differ from itself";
            return Err(WrongInput(text.to_owned()).into());
        }
    };
    let chosen = choose_for_machine(&command.tasks, &command.measure, &chosen, &wanted);
    let answer = session.answer(command.write.output.as_deref())?;
    let links = links(session, &names)?;
    let lab = open_lab_on(wanted, session, &command.measure, chosen.tools.clone())?;
    let progress = session.progress();
    prepare_tools(&lab, &chosen.workloads, &progress)?;
    let machines = lab.machines(&chosen.workloads)?;
    let repeat = lab
        .machine()
        .exact_cpu()
        .repeat(reproducer(command, &names));
    let mut walk = Walk {
        lab: &lab,
        progress: &progress,
        command,
        chosen: &chosen,
        chain: Chain {
            links,
            machine: machines[0].summary.clone(),
            seeds: (1..=command.seeds.count(SEEDS)).collect(),
            command: repeat,
            ..Chain::default()
        },
        machines,
        releases: BTreeMap::new(),
    };
    let walked = walk.measure_all();
    let chain = walk.chain;
    lab.close()?;
    let ends = walked?;
    let document = document(&chain);
    let text = match command.write.format {
        Format::Text => document.text(&answer.styles()),
        Format::Markdown => document.markdown(),
        Format::Html => document.html()?,
        Format::Json => json(&chain)?,
    };
    answer.write(&text)?;
    Ok(ends.conclusion().into())
}

/// Says that a chain would tell more, where both kernels are packages of one distribution and of
/// two series, and something changed.
pub(super) fn hint(
    command: &CompareArguments,
    names: &[KernelName],
    comparison: &Comparison,
) -> Option<String> {
    let [KernelName::Package(base), KernelName::Package(new)] = names else {
        return None;
    };
    let other = comparison.others.first()?;
    let series = |version: &str| Release::parse(version).series();
    let is_distant = series(&comparison.base.build.version) != series(&other.kernel.build.version);
    let is_exact = command.on.names() == [crate::options::EXACT] && !command.until_clear;
    let is_offered = base.distribution == new.distribution && is_distant && is_exact;
    (is_offered && !comparison.changed(0).is_empty()).then(|| {
        format!(
            "hint: {} names the releases between that the differences came with",
            reproducer(command, names)
        )
    })
}

/// Returns what the names of packages of one distribution ask for.
fn queries(names: &[KernelName]) -> Result<Vec<PackageQuery>, WrongInput> {
    let mut queries: Vec<PackageQuery> = Vec::new();
    for name in names {
        let KernelName::Package(query) = name else {
            return Err(WrongInput(format!(
                "--chain needs packages, such as deb:6.1 and deb:6.12, not {name}\n\
                 hint: marvin series and marvin bisect take commits"
            )));
        };
        queries.push(query.clone());
    }
    let is_one = |query: &PackageQuery| query.distribution == queries[0].distribution;
    if !queries.iter().all(is_one) {
        let text = "--chain needs packages of one distribution";
        return Err(WrongInput(text.to_owned()));
    }
    Ok(queries)
}

/// Returns the releases from the first of these kernels to the last.
fn links(session: &Session, names: &[KernelName]) -> anyhow::Result<Vec<Link>> {
    let queries = queries(names)?;
    let archives = session.archives()?;
    let found = releases_between(&archives, &queries);
    session.say_notices(&archives);
    let found = found?;
    let [first, .., last] = found.as_slice() else {
        return Err(WrongInput("no kernel to compare with: name one after it".to_owned()).into());
    };
    if Release::parse(&first.version) >= Release::parse(&last.version) {
        let text = format!(
            "{} is no older than {}: --chain goes from an old kernel to a new one",
            first.version, last.version
        );
        return Err(WrongInput(text).into());
    }
    let links = found.into_iter().map(|release| Link {
        version: release.version,
        name: release.name.to_string(),
        missing: release.missing,
    });
    Ok(links.collect())
}

impl Walk<'_> {
    /// Measures both ends, then what the chain asks for; returns the comparison of the ends.
    fn measure_all(&mut self) -> anyhow::Result<Comparison> {
        let last = self.chain.links.len() - 1;
        let all = self.chosen.workloads.clone();
        for place in [0, last] {
            if !self.measure(place, &all)? {
                let link = &self.chain.links[place];
                let why = link.missing.clone().unwrap_or_default();
                anyhow::bail!("cannot get the kernel {}: {why}", link.name);
            }
        }
        let ends = self.compare(last, &all)?;
        self.chain.record(&[0, last], &ends);
        while let Some((place, names)) = self.chain.next() {
            let asked = all
                .iter()
                .filter(|one| names.iter().any(|name| **name == *one.name));
            let asked: Vec<Arc<Workload>> = asked.map(Arc::clone).collect();
            if self.measure(place, &asked)? {
                let comparison = self.compare(place, &asked)?;
                self.chain.record(&[0, place], &comparison);
            }
        }
        self.progress.end();
        self.chain.find_steps();
        self.name_functions()?;
        Ok(ends)
    }

    /// Measures what is missing of a release; false if it cannot be had, which the chain keeps.
    fn measure(&mut self, place: usize, workloads: &[Arc<Workload>]) -> anyhow::Result<bool> {
        let name = kernel_name(&self.chain.links[place].name)?;
        let build = match find_build(self.lab, &name, self.progress) {
            Ok(build) => build,
            Err(error) if is_of_kernel(&error) => {
                let why = error.root_cause().to_string();
                self.chain.links[place].missing = why.lines().next().map(str::to_owned);
                return Ok(false);
            }
            Err(error) => return Err(error),
        };
        let builds = [build];
        let plan = plan_runs(
            &self.command.measure,
            &builds,
            &self.chosen.suite,
            workloads,
            &self.chain.seeds,
        );
        let runs = self
            .lab
            .execute(&plan, &|event| self.progress.event(&event))?;
        let [build] = builds;
        let known = self
            .releases
            .entry(place)
            .or_insert_with(|| MeasuredRelease {
                build,
                runs: Vec::new(),
            });
        for run in runs.into_iter().flatten() {
            if known.runs.iter().all(|one| one.id != run.id) {
                known.runs.push(run);
            }
        }
        Ok(true)
    }

    /// Compares a release with the base.
    fn compare(&self, place: usize, workloads: &[Arc<Workload>]) -> anyhow::Result<Comparison> {
        let question = Question {
            margin_percent: self.command.write.margin,
            command: self.chain.command.clone(),
            created_unix: Some(now()),
            ..Question::about(
                self.chosen.suite.name,
                workloads.to_vec(),
                self.chain.seeds.clone(),
            )
        };
        Ok(compare::compare(
            &self.side(0),
            &[self.side(place)],
            &question,
        )?)
    }

    fn side(&self, place: usize) -> Side<'_> {
        let release = &self.releases[&place];
        side(&release.build, &release.runs, &self.machines)
    }

    /// Names the function of each step.
    fn name_functions(&mut self) -> anyhow::Result<()> {
        for (row, steps) in self.chain.rows.iter().zip(&mut self.chain.steps) {
            for step in steps {
                let [base, new] = step.ends.map(|place| &self.releases[&place]);
                let runs = [base.runs.clone(), new.runs.clone()];
                let builds = [&base.build, &new.build];
                if let Availability::Available(ledger) =
                    read_ledger(self.lab, builds, &runs, &row.workload)?
                {
                    step.function = ledger.leading_cause();
                }
            }
        }
        Ok(())
    }
}

/// Returns whether a kernel itself cannot be had: not in the archive, or not whole.
fn is_of_kernel(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(LabError::Kernel(_)))
}

/// Returns the command that continues or repeats a chain.
fn reproducer(command: &CompareArguments, names: &[KernelName]) -> String {
    let mut arguments = vec![
        "marvin".to_owned(),
        "compare".to_owned(),
        "--chain".to_owned(),
    ];
    arguments.extend(names.iter().map(ToString::to_string));
    arguments.extend(command.measure.choice_arguments());
    arguments.extend(command.seeds.arguments(SEEDS));
    if let Some(margin) = command.write.margin {
        arguments.extend(["--margin".to_owned(), margin.to_string()]);
    }
    arguments.join(" ")
}

#[cfg(test)]
mod tests {
    use model::KernelName;

    use super::queries;

    fn refusal(names: [&str; 2]) -> String {
        let names: Vec<KernelName> = names.iter().map(|name| name.parse().unwrap()).collect();
        queries(&names).unwrap_err().0
    }

    #[test]
    fn chain_refuses_names_without_lists() {
        assert_eq!(
            refusal(["deb:6.1", "git:HEAD"]),
            "--chain needs packages, such as deb:6.1 and deb:6.12, not git:HEAD\n\
             hint: marvin series and marvin bisect take commits"
        );
        assert_eq!(
            refusal(["deb:6.1", "ubuntu:noble/6.8"]),
            "--chain needs packages of one distribution"
        );
    }
}
