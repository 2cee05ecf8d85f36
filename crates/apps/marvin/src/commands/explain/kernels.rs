//! `marvin explain` of one kernel or two: where a workload's instructions go, or why they became
//! more.

use ::explain::{
    KernelsExplained, Part, Sides, Touching, WorkloadExplained, kernels_document, kernels_json,
};
use kernel::{commits_touching, revision_of};
use lab::{Measurement, Wanted};
use model::{Availability, Build, KernelName, Movement, Run, Share};
use monitors::{Monitored, Watched, heads};
use profile::ledger::share_words;
use profile::sampled::{Lines, SampledDifference};

use super::ExplainArguments;
use crate::exit::{Exit, WrongInput};
use crate::measure::{
    CountOptions, CountedKernels, SampledKernels, count_kernels, find_differing_settings,
    follow_lines, kernel_titles, machine_summary, sample_kernels,
};
use crate::options::seeds_for;
use crate::select::{choose_machines, kernel_name_in, source_settings};
use crate::session::{Format, Session};

/// Functions of the ledger whose commits are looked for.
const FUNCTIONS: usize = 4;

/// Counters that differ by less than this part are noise of the guest's boot.
const MOVED: f64 = 0.1;

/// What a machine measured of two kernels.
struct Observations {
    builds: Vec<Build>,
    runs: Vec<Vec<Run>>,
    machine: String,
    workloads: Vec<WorkloadExplained>,
    missing: Vec<(String, String)>,
}

pub(crate) fn kernels(session: &Session, command: &ExplainArguments) -> anyhow::Result<Exit> {
    let is_one = command.kernels.len() == 1;
    let names = command
        .kernels
        .iter()
        .map(|name| kernel_name_in(name, command.measure.sources.tree.as_deref()))
        .collect::<Result<Vec<_>, _>>()?;
    let out = session.answer(command.output.as_deref())?;
    let mut observed = match choose_machines(session, &command.on)?.as_slice() {
        [(name, wanted)] if command.model.is_some() && *wanted != Wanted::Exact => {
            return Err(WrongInput(format!("--model needs the exact machine, not {name}")).into());
        }
        [(_, Wanted::Exact)] => explain_instructions(session, command, &names)?,
        [(_, wanted @ Wanted::ExactSmp(_))] => explain_lines(session, command, &names, wanted)?,
        [(_, wanted)] => explain_samples(session, command, &names, wanted)?,
        _ => return Err(WrongInput("one machine explains: give --on one name".into()).into()),
    };
    let without_commits = if is_one {
        String::new()
    } else {
        add_commits(session, command, &mut observed)?
    };
    let (settings, other_options) = find_differing_settings(&observed.builds, &observed.runs);
    observed
        .workloads
        .iter_mut()
        .for_each(|workload| workload.suspect(&settings));
    let [base, new] = kernel_titles(&observed.builds);
    let explained = KernelsExplained {
        kernels: if is_one { vec![base] } else { vec![base, new] },
        machine: observed.machine,
        workloads: observed.workloads,
        missing: observed.missing,
        settings,
        other_options,
        without_commits,
        command: session
            .exact_cpu()?
            .repeat(reproducer(command, &observed.builds)),
    };
    let document = kernels_document(&explained);
    let text = match command.format {
        Format::Text => document.text(&out.styles()),
        Format::Markdown => document.markdown(),
        Format::Html => document.html()?,
        Format::Json => kernels_json(&explained)?,
    };
    out.write(&text)?;
    Ok(if explained.workloads.is_empty() {
        Exit::Subject
    } else {
        Exit::Fine
    })
}

/// Counts instructions on the exact machine.
fn explain_instructions(
    session: &Session,
    command: &ExplainArguments,
    names: &[KernelName],
) -> anyhow::Result<Observations> {
    let is_one = command.kernels.len() == 1;
    let progress = session.progress();
    let model = command.model.as_ref();
    let wanting = CountOptions {
        seeds: seeds_for(model),
        calls: true,
        model,
    };
    let counted = count_kernels(session, &command.measure, names, &wanting, &progress)?;
    let mut workloads = Vec::new();
    for (ledger, workload) in counted.ledgers.iter().zip(&counted.workloads) {
        let calls = counted
            .followed
            .calls
            .iter()
            .find(|calls| *calls.workload == *workload.name);
        let mut explained = WorkloadExplained::new(ledger, calls, is_one);
        let modelled = counted
            .simulated
            .differences
            .iter()
            .find(|found| *found.workload == *workload.name);
        if let Some(modelled) = modelled {
            explained.add_model(modelled, is_one);
        }
        if !is_one {
            explained
                .counters
                .extend(counters(&counted, &workload.name)?);
        }
        workloads.push(explained);
    }
    progress.end();
    let machine = machine_summary(&counted.lab, &counted.workloads)?;
    Ok(Observations {
        builds: counted.builds,
        runs: counted.runs,
        machine,
        workloads,
        missing: counted.missing,
    })
}

fn named_sides(named: &[(String, [f64; 2])]) -> Vec<Sides> {
    named
        .iter()
        .map(|(name, [base, new])| Sides {
            name: name.clone(),
            base: *base,
            new: *new,
        })
        .collect()
}

/// Follows the lines of memory that processors share.
fn explain_lines(
    session: &Session,
    command: &ExplainArguments,
    names: &[KernelName],
    wanted: &Wanted,
) -> anyhow::Result<Observations> {
    let is_one = command.kernels.len() == 1;
    let followed = follow_lines(session, &command.measure, names, &[1], wanted)?;
    let explain = |difference: &profile::transfers::SharingDifference| {
        let how: Vec<(String, [f64; 2])> = Movement::ALL
            .iter()
            .zip(difference.by_movement)
            .map(|(movement, sides)| (movement.name().to_owned(), sides))
            .collect();
        let parts = [
            ("how", named_sides(&how)),
            ("word", named_sides(&difference.words)),
            ("function", named_sides(&difference.functions)),
        ];
        let explained = WorkloadExplained {
            workload: difference.workload.clone(),
            sentence: difference.sentence(),
            unit: "transfers".into(),
            parts: parts
                .into_iter()
                .map(|(by, rows)| Part { by, rows })
                .collect(),
            moved: Vec::new(),
            hypotheses: Vec::new(),
            counters: difference
                .events
                .iter()
                .filter(|(_, [base, new])| is_one || (new - base).abs() > MOVED * base.max(*new))
                .map(|(about, [base, new])| Sides {
                    name: format!("{about} per operation"),
                    base: *base,
                    new: *new,
                })
                .collect(),
            modelled: Vec::new(),
            commits: Vec::new(),
        };
        if is_one {
            explained.of_one()
        } else {
            explained
        }
    };
    let workloads = followed.differences.iter().map(explain).collect();
    let machine = followed.lab.machine().summary.clone();
    Ok(Observations {
        builds: followed.builds,
        runs: followed.runs,
        machine,
        workloads,
        missing: followed.missing,
    })
}

/// Samples kernels on a machine that measures time. Of two, only what differs by more than boots do
/// is observed.
fn explain_samples(
    session: &Session,
    command: &ExplainArguments,
    names: &[KernelName],
    wanted: &Wanted,
) -> anyhow::Result<Observations> {
    let SampledKernels {
        builds,
        machine,
        found,
        runs,
    } = sample_kernels(
        session,
        &command.measure,
        command.on.noisy.boots(),
        names,
        wanted,
    )?;
    let mut workloads = Vec::new();
    let mut missing = Vec::new();
    for (workload, found) in found {
        match found.and_then(|[base, new]| SampledDifference::new(&workload, &base, &new)) {
            Ok(difference) => {
                workloads.push(explain_sampled_difference(&difference, names.len() == 1));
            }
            Err(why) => missing.push((workload, why)),
        }
    }
    Ok(Observations {
        builds,
        runs,
        machine,
        workloads,
        missing,
    })
}

fn rate_of_share(difference: &SampledDifference, share: Share, side: usize) -> f64 {
    let lines = difference.functions.all.iter();
    lines
        .filter(|line| line.share == share)
        .map(|line| line.cost.rates[side])
        .sum()
}

/// Returns the lines of one kernel, or those that differ significantly between two.
fn line_sides(lines: &Lines, is_one: bool) -> Vec<Sides> {
    let shown = if is_one {
        &lines.all
    } else {
        lines.significant()
    };
    shown
        .iter()
        .map(|line| {
            let [base, new] = line.cost.rates;
            Sides {
                name: line.function.clone(),
                base,
                new,
            }
        })
        .collect()
}

fn explain_sampled_difference(difference: &SampledDifference, is_one: bool) -> WorkloadExplained {
    let shares = Share::ALL.into_iter().map(|share| {
        let [base, new] = [0, 1].map(|side| rate_of_share(difference, share, side));
        let name = share_words(share).to_owned();
        Sides { name, base, new }
    });
    let parts = [
        ("who", shares.collect()),
        ("entry point", line_sides(&difference.entries, is_one)),
        ("function", line_sides(&difference.functions, is_one)),
    ];
    let explained = WorkloadExplained {
        workload: difference.workload.clone(),
        sentence: difference.sentence(),
        unit: difference.sampling.event.unit().to_owned(),
        parts: parts
            .into_iter()
            .map(|(by, rows)| Part { by, rows })
            .collect(),
        moved: Vec::new(),
        hypotheses: Vec::new(),
        counters: Vec::new(),
        modelled: Vec::new(),
        commits: Vec::new(),
    };
    if is_one {
        explained.of_one()
    } else {
        explained
    }
}

/// Returns the kernel's counters that differ during a workload, and that both kernels count alike.
fn counters(counted: &CountedKernels, name: &str) -> anyhow::Result<Vec<Sides>> {
    let Some(workload) = counted
        .workloads
        .iter()
        .find(|workload| *workload.name == *name)
    else {
        return Ok(Vec::new());
    };
    let mut seen = Vec::new();
    for build in &counted.builds {
        let measurement = Measurement {
            build,
            workload,
            replicate: counted.seeds[0],
        };
        match counted.lab.observe(measurement, 0)? {
            Availability::Available(observation) => seen.push(observation),
            // The ledger stands without them.
            Availability::Unavailable(_) => return Ok(Vec::new()),
        }
    }
    let machine = counted.lab.machine();
    let kernels: Vec<_> = counted
        .builds
        .iter()
        .map(|build| (build, machine))
        .collect();
    let watched: Vec<Watched<'_>> = heads(&kernels)
        .into_iter()
        .zip(&seen)
        .map(|(head, observation)| Watched { head, observation })
        .collect();
    let blocks = Monitored::new(&watched, Vec::new()).blocks;
    // Slabs and zones are what boot left, more than what the workload did.
    let blocks = blocks
        .iter()
        .filter(|block| !["Slabs", "Zones"].contains(&block.title));
    let rows = blocks.flat_map(|block| block.rows.iter().map(|row| (block.title, row)));
    Ok(rows
        .filter(|(_, row)| row.comparable)
        .filter_map(|(title, row)| {
            let [base, new] = [row.values.first()?.number()?, row.values.get(1)?.number()?];
            let is_moved =
                (new - base).abs() > MOVED * base.abs().max(new.abs()) && base.max(new) >= 10.0;
            let unit = row.form.unit();
            let name = format!("{title}: {}", row.name);
            let name = if unit.is_empty() {
                name
            } else {
                format!("{name} [{unit}]")
            };
            is_moved.then_some(Sides { name, base, new })
        })
        .collect())
}

/// Adds the commits that touch the functions with the largest differences. Returns why there are
/// none.
fn add_commits(
    session: &Session,
    command: &ExplainArguments,
    observed: &mut Observations,
) -> anyhow::Result<String> {
    let Some(tree) = source_settings(session, &command.measure.sources)?.tree else {
        return Ok("No commits: name a git tree of the kernel with --tree.".into());
    };
    let mut revisions = Vec::new();
    for build in &observed.builds {
        match revision_of(&tree, build) {
            Some(revision) => revisions.push(revision),
            None => {
                return Ok(format!(
                    "No commits: {} has no tag of {}.",
                    tree.display(),
                    build.version
                ));
            }
        }
    }
    let [base, new] = revisions.as_slice() else {
        return Ok(String::new());
    };
    for workload in &mut observed.workloads {
        let names: Vec<String> = workload
            .functions()
            .iter()
            .map(|sides| sides.name.clone())
            .filter(|name| is_identifier(name))
            .take(FUNCTIONS)
            .collect();
        let mut of_functions = Vec::new();
        for name in names {
            let commits = commits_touching(&tree, base, new, &name);
            if !commits.is_empty() {
                of_functions.push(Touching {
                    functions: vec![name],
                    commits,
                });
            }
        }
        workload.commits = Touching::common_first(of_functions);
    }
    Ok(String::new())
}

fn is_identifier(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn reproducer(command: &ExplainArguments, builds: &[Build]) -> String {
    let mut arguments = vec!["marvin".to_owned(), "explain".into()];
    arguments.extend(
        builds
            .iter()
            .take(command.kernels.len())
            .map(Build::exact_name),
    );
    arguments.extend(command.measure.choice_arguments());
    arguments.extend(
        command
            .model
            .as_ref()
            .map(|model| format!("--model={}", model.name())),
    );
    arguments.extend(command.on.arguments(false));
    arguments.extend(command.measure.program.tail());
    arguments.join(" ")
}
