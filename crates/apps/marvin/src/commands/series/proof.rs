//! Writes the proof of a series: all that `marvin replay` needs to measure it again elsewhere, and
//! the counts that must come out.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use history::commit_table::{CommitRow, State};
use history::proof::{Proof, ProofFile, ProofImage, ProofKernel, ProofMachine, ProofWorkload};
use kernel::Sources;
use lab::{Lab, Plan, ProofWriter, Reuse};
use model::{Build, Origin};

use super::input::{Entry, Made};
use super::{SEEDS, SeriesArguments, commit_of};
use crate::exit::WrongInput;
use crate::measure::plan_runs;
use crate::select::ChosenWorkloads;
use crate::session::Answer;

/// Options for a proof.
#[derive(Debug, Args)]
pub(crate) struct ProofOptions {
    /// Also write a proof, with which `marvin replay` measures the series again elsewhere: patches,
    /// base, kernel config, compiler, machine, workloads, seeds and counts
    #[arg(long, value_name = "FILE")]
    proof: Option<PathBuf>,

    /// Put the kernel images into the proof, so that a replay needs neither tree nor compiler
    #[arg(long, requires = "proof")]
    proof_images: bool,
}

/// A proof that is to be written.
pub(super) struct NewProof {
    answer: Answer,
    with_images: bool,
}

/// A measured series.
pub(super) struct Series<'a> {
    pub(super) title: &'a str,
    pub(super) lab: &'a Lab,
    pub(super) sources: &'a Sources,
    /// The base, and each commit or patch.
    pub(super) rows: &'a [CommitRow],
    /// Those of the rows that are built.
    pub(super) builds: &'a [Build],
    /// Those of all rows.
    pub(super) entries: Vec<&'a Entry>,
    /// The mails of all rows; none of the base, and of those without a commit.
    pub(super) patches: Vec<Option<Vec<u8>>>,
    pub(super) chosen: &'a ChosenWorkloads,
    pub(super) command: &'a SeriesArguments,
}

/// Returns each entry as a mail; none of the base, of those that are no commit, and of those that
/// are left out.
pub(super) fn patches(
    sources: &Sources,
    base: &Entry,
    entries: &[Entry],
) -> anyhow::Result<Vec<Option<Vec<u8>>>> {
    let mut mails = vec![None];
    let mut before = commit_of(base);
    for entry in entries {
        let commit = match &entry.made {
            Made::Commit(commit) if !entry.is_left_out => commit,
            _ => {
                mails.push(None);
                continue;
            }
        };
        let mail = before.map(|before| sources.patch_mail(before, commit));
        let mail = mail.transpose()?.flatten().ok_or_else(|| {
            WrongInput(format!(
                "--proof writes patches, and {} is a merge: name the commits of one branch",
                entry.label
            ))
        })?;
        mails.push(Some(mail));
        before = Some(commit);
    }
    Ok(mails)
}

impl NewProof {
    /// Checks that a proof can be written, before anything is measured.
    pub(super) fn open(
        options: &ProofOptions,
        chosen: &ChosenWorkloads,
    ) -> anyhow::Result<Option<Self>> {
        let Some(file) = &options.proof else {
            return Ok(None);
        };
        let known = model::suite(chosen.suite.name);
        let foreign = chosen.workloads.iter().find(|workload| {
            known.is_none_or(|suite| suite.workloads.iter().all(|one| one.name != workload.name))
        });
        if let Some(foreign) = foreign {
            let text = format!(
                "--proof has workloads of suites only, which every Marvin has; {} is a tool, a program or a benchmark of the tree",
                foreign.name
            );
            return Err(WrongInput(text).into());
        }
        Ok(Some(Self {
            answer: Answer::file("--proof", file)?,
            with_images: options.proof_images,
        }))
    }

    /// Writes the proof.
    pub(super) fn write(self, series: &Series<'_>) -> anyhow::Result<()> {
        let mut writer = ProofWriter::default();
        let Some(proof) = series.prove(&mut writer, self.with_images)? else {
            crate::say("no proof is written: the base does not build");
            return Ok(());
        };
        let packed = writer.pack(proof.json()?.as_bytes());
        self.answer
            .write_bytes(&packed.context("cannot pack the proof")?)
    }
}

impl Series<'_> {
    /// Returns the document, and adds the files that it names to the archive.
    fn prove(&self, writer: &mut ProofWriter, with_images: bool) -> anyhow::Result<Option<Proof>> {
        let base = self.entries.first().and_then(|base| commit_of(base));
        let base = base.filter(|_| self.rows.first().is_some_and(CommitRow::is_built));
        let Some(base) = base else {
            return Ok(None);
        };
        let mut proof = Proof::new(env!("CARGO_PKG_VERSION"), self.title, base);
        self.chosen.suite.name.clone_into(&mut proof.suite);
        proof.seeds = (1..=self.command.seeds.count(SEEDS)).collect();
        let mut builds = self.builds.iter();
        let mut images: Vec<&Build> = Vec::new();
        for (place, (row, entry)) in self.rows.iter().zip(&self.entries).enumerate() {
            let mut kernel = self.kernel(row, entry)?;
            if let Some(mail) = self.patches.get(place).cloned().flatten() {
                let (file, sha256) = writer.add_patch(place, mail);
                kernel.patch = Some(ProofFile { file, sha256 });
            }
            let build = if row.is_built() { builds.next() } else { None };
            if let Some(build) = build {
                describe_build(&mut kernel, build, writer)?;
                let known = images.iter().position(|known| known.id == build.id);
                kernel.image = Some(known.unwrap_or(images.len()));
                if known.is_none() {
                    images.push(build);
                }
            }
            proof.kernels.push(kernel);
        }
        self.add_workloads(&mut proof)?;
        for build in &images {
            proof.images.push(image(build, writer, with_images)?);
        }
        self.add_counts(&mut proof, &images)?;
        Ok(Some(proof))
    }

    fn kernel(&self, row: &CommitRow, entry: &Entry) -> anyhow::Result<ProofKernel> {
        let commit = commit_of(entry).filter(|_| !entry.is_left_out);
        let source = commit.map(|commit| self.sources.source_id(commit));
        Ok(ProofKernel {
            label: row.commit.clone(),
            subject: row.subject.clone(),
            failure: match &row.state {
                State::Failed(why) => Some(format!("does not build: {why}")),
                State::NotApplied(why) => Some(format!("does not apply: {why}")),
                State::AppliedBefore => Some("the tree has it already".to_owned()),
                State::Base | State::Equal | State::Compared(_) => None,
            },
            patch: None,
            source: source.transpose()?,
            configuration: None,
            config: None,
            compiler: None,
            image: None,
        })
    }

    /// Adds the workloads with their machines.
    fn add_workloads(&self, proof: &mut Proof) -> anyhow::Result<()> {
        for workload in &self.chosen.workloads {
            let machines = self.lab.machines(std::slice::from_ref(workload))?;
            let machine = machines.first().map(ProofMachine::of);
            let machine = machine.context("a workload has no machine")?;
            let known = proof.machines.iter().position(|known| *known == machine);
            proof.workloads.push(ProofWorkload {
                name: workload.name.to_string(),
                operations: workload.operations,
                machine: known.unwrap_or(proof.machines.len()),
            });
            if known.is_none() {
                proof.machines.push(machine);
            }
        }
        Ok(())
    }

    /// Adds the counts, which are stored by now. One image alone was not measured.
    fn add_counts(&self, proof: &mut Proof, images: &[&Build]) -> anyhow::Result<()> {
        if images.len() < 2 {
            return Ok(());
        }
        let ChosenWorkloads {
            suite, workloads, ..
        } = self.chosen;
        let measured = plan_runs(&self.command.measure, &[], suite, workloads, &proof.seeds);
        let plan = Plan {
            sides: images.to_vec(),
            reuse: Reuse::Stored,
            ..measured
        };
        let runs = self.lab.execute(&plan, &|_| {})?;
        for (image, runs) in proof.images.iter_mut().zip(&runs) {
            image.add_runs(runs, &proof.workloads);
        }
        Ok(())
    }
}

/// Says what a kernel was built with, and adds its kernel config to the archive.
fn describe_build(
    kernel: &mut ProofKernel,
    build: &Build,
    writer: &mut ProofWriter,
) -> anyhow::Result<()> {
    if let Origin::Built {
        configuration,
        compiler,
        ..
    } = &build.origin
    {
        kernel.configuration = Some(configuration.clone());
        kernel.compiler = Some(compiler.clone());
    }
    if let Some(config) = &build.config {
        let bytes = fs::read(&config.path)
            .with_context(|| format!("cannot read {}", config.path.display()))?;
        kernel.config = Some(writer.add_config(bytes));
    }
    Ok(())
}

/// Describes an image, and adds it to the archive if asked to.
fn image(build: &Build, writer: &mut ProofWriter, with_images: bool) -> anyhow::Result<ProofImage> {
    let file = &build.image;
    let cannot = || format!("cannot read {}", file.path.display());
    let bytes = fs::metadata(&file.path).with_context(cannot)?.len();
    let in_file = with_images && {
        let content = fs::read(&file.path).with_context(cannot)?;
        writer.add_image(content)
    };
    if with_images && !in_file {
        let text = format!(
            "no proof is written: an image of {} MB is too large for it; --config without debug information makes smaller ones",
            bytes / 1_000_000
        );
        return Err(WrongInput(text).into());
    }
    Ok(ProofImage {
        sha256: file.sha256.clone(),
        bytes,
        in_file,
        counts: Vec::new(),
    })
}
