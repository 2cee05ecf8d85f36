//! `marvin replay`: measures again what a proof of a series states, and says whether it is equal.
//!
//! `kernels` gets the kernels of the file: its images, or builds of its patches. `history` compares.

mod kernels;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use history::proof::{
    Measured, NotCompared, Proof, ProofCounts, ProofMachine, Replay, ReplayConclusion,
};
use kernel::Scratch;
use lab::{
    Dumps, Lab, LabOptions, Plan, ProofFileError, Reuse, Sampled, UnpackedProof, unpack_proof,
};
use model::{ExactCpu, Suite, Workload, group_of, sanitize_line};

use self::kernels::FoundKernels;
use crate::completion;
use crate::exit::{Exit, WrongInput};
use crate::measure::parallel_machines;
use crate::options::{SourceOptions, whole};
use crate::select::{did_you_mean, source_settings};
use crate::session::{ListFormat, Output, Progress, Session};

const REPLAY_EXAMPLES: &str = "Examples:
  marvin replay v2.proof --tree linux --workload fork-exit
  marvin replay v2.proof                  # a file with images needs neither tree nor compiler";

/// `marvin replay`.
#[derive(Debug, Args)]
#[command(after_help = REPLAY_EXAMPLES)]
pub(crate) struct ReplayArguments {
    /// Proof that `marvin series --proof` wrote
    file: PathBuf,

    /// Replay only these workloads or groups of the file, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',', add = completion::workload())]
    workload: Vec<String>,

    #[command(flatten)]
    sources: SourceOptions,

    /// Run up to N machines in parallel [default: 2, or 1 on a host with one processor]
    #[arg(long, value_name = "N", value_parser = whole::<u16>(1, 64))]
    jobs: Option<u16>,

    /// Write the answer to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    format: Output,
}

/// Largest file: more than its unpacked content may have.
const FILE_MAX: u64 = 2 << 30;

pub(crate) fn replay(session: &Session, command: &ReplayArguments) -> anyhow::Result<Exit> {
    // Not where machines work: a lab empties that when it opens.
    let within = session.home()?.join("downloads");
    fs::create_dir_all(&within).with_context(|| format!("cannot make {}", within.display()))?;
    let scratch = Scratch::new(&within)?;
    let (proof, unpacked) = open(&command.file, scratch.path())?;
    let chosen = choose(&proof, &command.workload)?;
    let answer = session.answer(command.output.as_deref())?;
    let settings = source_settings(session, &command.sources)?;
    let request = kernels::Request {
        file: &command.file,
        proof: &proof,
        unpacked: &unpacked,
        settings: &settings,
        has_named_config: command.sources.named_config().is_some(),
        has_named_tree: command.sources.tree.is_some(),
    };
    request.check()?;
    let lab = session.open_lab_of(
        cpu_of(&proof),
        LabOptions {
            store: Some(session.store_location()?),
            sources: settings.clone(),
            ..LabOptions::default()
        },
    )?;
    let progress = session.progress();
    let found = request.find(session, &progress)?;
    let replayed = measure(&lab, &proof, &chosen, &found, command, &progress)?;
    progress.end();
    answer.write(match command.format.format {
        ListFormat::Text => replayed.text(),
        ListFormat::Json => replayed.json()?,
    })?;
    Ok(match replayed.conclusion() {
        ReplayConclusion::Equal => Exit::Fine,
        ReplayConclusion::Differs => Exit::Unclear,
        ReplayConclusion::Failed => Exit::Subject,
    })
}

/// Reads a proof from anywhere.
fn open(file: &Path, into: &Path) -> anyhow::Result<(Proof, UnpackedProof)> {
    let refuse = |why: &dyn std::fmt::Display| {
        WrongInput(format!("cannot replay {}: {why}", file.display()))
    };
    let found = fs::metadata(file).map_err(|error| refuse(&error))?;
    if !found.is_file() || found.len() > FILE_MAX {
        let why = format!("it is no file of at most {} GiB", FILE_MAX >> 30);
        return Err(refuse(&why).into());
    }
    let unpacked = match unpack_proof(file, into) {
        Ok(unpacked) => unpacked,
        Err(error @ ProofFileError::Folder { .. }) => return Err(error.into()),
        Err(error) => return Err(refuse(&error).into()),
    };
    let proof = Proof::parse(&unpacked.document).map_err(|error| refuse(&error))?;
    kernels::check_files(&proof, &unpacked).map_err(|why| refuse(&why))?;
    Ok((proof, unpacked))
}

/// Returns the CPU of the proof's machines.
fn cpu_of(proof: &Proof) -> ExactCpu {
    let machine = proof.machines.first();
    let name = machine.and_then(|machine| machine.value(ExactCpu::KEY));
    name.and_then(|name| name.parse().ok()).unwrap_or_default()
}

/// The workloads to replay.
#[derive(Debug, Default)]
struct Chosen {
    suite: Option<Arc<Suite>>,
    /// Those that this Marvin has, with their places in the proof.
    workloads: Vec<(usize, Arc<Workload>)>,
    other_operations: Vec<(usize, u64)>,
    not_compared: Vec<NotCompared>,
}

/// Chooses workloads of a proof by name or group; all if none is named.
fn choose(proof: &Proof, words: &[String]) -> anyhow::Result<Chosen> {
    let suite = model::suite(&proof.suite).cloned();
    let mut chosen = Chosen::default();
    let mut found = vec![false; words.len()];
    for (place, stated) in proof.workloads.iter().enumerate() {
        let known = suite.as_ref().and_then(|suite| {
            let mut workloads = suite.workloads.iter();
            workloads.find(|workload| workload.name == stated.name)
        });
        let mut is_chosen = words.is_empty();
        for (word, found) in words.iter().zip(&mut found) {
            let is_meant = *word == stated.name
                || known.is_some_and(|workload| {
                    group_of(workload) == word || workload.series() == word
                });
            is_chosen |= is_meant;
            *found |= is_meant;
        }
        match known {
            _ if !is_chosen => {}
            None => chosen.not_compared.push(NotCompared {
                workload: sanitize_line(&stated.name),
                why: "this Marvin has no such workload".to_owned(),
            }),
            Some(known) if known.operations != stated.operations => {
                chosen.other_operations.push((place, known.operations));
            }
            Some(known) => chosen.workloads.push((place, Arc::clone(known))),
        }
    }
    if let Some((word, _)) = words.iter().zip(&found).find(|(_, found)| !**found) {
        let names = proof.workloads.iter().map(|workload| &*workload.name);
        let guess = did_you_mean(names, word);
        let text = format!("no workload `{word}` in the proof{guess}");
        return Err(WrongInput(text).into());
    }
    chosen.suite = suite;
    Ok(chosen)
}

/// Measures the images of the proof that there are here. Stored results would prove nothing.
fn measure<'a>(
    lab: &Lab,
    proof: &'a Proof,
    chosen: &Chosen,
    found: &FoundKernels,
    command: &ReplayArguments,
    progress: &Progress,
) -> anyhow::Result<Replay<'a>> {
    let mut replayed = Replay {
        proof,
        workloads: chosen.workloads.iter().map(|(place, _)| *place).collect(),
        machines: Vec::new(),
        kernels: found.kernels.clone(),
        measured: Vec::new(),
        other_operations: chosen.other_operations.clone(),
        not_compared: chosen.not_compared.clone(),
    };
    for (place, workload) in &chosen.workloads {
        let machine = proof.workloads[*place].machine;
        if replayed.machines.iter().all(|(known, _)| *known != machine) {
            let here = lab.machines(std::slice::from_ref(workload))?;
            let here = here.first().map(ProofMachine::of);
            replayed.machines.extend(here.map(|here| (machine, here)));
        }
    }
    let stated: Vec<usize> = (0..proof.images.len())
        .filter(|image| !proof.images[*image].counts.is_empty())
        .filter(|image| found.builds.contains_key(image))
        .collect();
    let (Some(suite), false) = (
        &chosen.suite,
        stated.is_empty() || chosen.workloads.is_empty(),
    ) else {
        return Ok(replayed);
    };
    let plan = Plan {
        sides: stated.iter().map(|image| &found.builds[image]).collect(),
        suite,
        workloads: chosen
            .workloads
            .iter()
            .map(|(_, workload)| Arc::clone(workload))
            .collect(),
        replicates: proof.seeds.clone(),
        machines: parallel_machines(command.jobs),
        reuse: Reuse::Nothing,
        dumps: Dumps::Drop,
        sampled: Sampled::No,
    };
    let runs = lab.execute(&plan, &|event| progress.event(&event))?;
    for (image, runs) in stated.into_iter().zip(&runs) {
        let mut counts = Vec::new();
        for run in runs {
            let of_run = run.results.iter();
            counts.extend(of_run.map(|result| ProofCounts::of(result, run.seed)));
        }
        replayed.measured.push(Measured { image, counts });
    }
    replayed.set_aside_unsupported();
    Ok(replayed)
}
