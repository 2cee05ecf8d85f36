//! A proof: what a series was measured with, and the counts that must come out again elsewhere.
//!
//! The document is the first file of a `tar.zst`; patches, kernel configs and images, which it names
//! by hash, are files beside it. It is read from anywhere: it is checked whole before any of it is
//! used, and all its texts are made safe. `replay` compares it with a measurement.

mod replay;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use document::{RenderError, SCHEMA_VERSION, schema_of, write_json};
use model::{Machine, Outcome, Run, WorkloadResult, sanitize_line};
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};

pub use replay::{KernelHere, Measured, NotCompared, Replay, ReplayConclusion, replay_schema};

/// Most kernels, images, workloads and machines; a series has at most 500 commits.
const LIST_MAX: usize = 1000;
/// Most seeds, and the largest.
const SEED_MAX: u64 = 1000;
/// Most results, and most iterations of one.
const RESULTS_MAX: usize = 200_000;
const ITERATIONS_MAX: usize = 10_000;
/// Characters of the longest text that is shown.
const TEXT_MAX: usize = 4096;
/// What the document says it is.
const KIND: &str = "proof";
/// The kind of machine whose counts are the same anywhere.
const REPLAYED: &str = "exact";
/// What the outcome of a workload begins with.
const COMPLETED: &str = "completed";
const UNSUPPORTED: &str = "not supported";
const FAILED: &str = "failed";

/// A proof.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    /// Version of the schema.
    pub schema_version: u32,
    /// Kind of the document: proof.
    pub kind: String,
    /// The Marvin that measured.
    pub marvin: String,
    /// What was measured, in a line.
    pub title: String,
    /// The commit that the patches are applied to.
    pub base: String,
    /// The suite of the workloads.
    pub suite: String,
    /// The seeds of each kernel.
    pub seeds: Vec<u64>,
    /// The machines: one for each guest config.
    pub machines: Vec<ProofMachine>,
    /// The workloads.
    pub workloads: Vec<ProofWorkload>,
    /// The base, and each commit or patch.
    pub kernels: Vec<ProofKernel>,
    /// The distinct images of these kernels, with what was counted.
    pub images: Vec<ProofImage>,
}

/// A machine: emulator, guest programs and settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProofMachine {
    /// The hash of its fingerprint.
    pub id: String,
    /// Kind of the machine: exact.
    pub kind: String,
    /// Its summary.
    pub summary: String,
    /// Everything but the kernel that counts depend on.
    pub fingerprint: Vec<ProofFact>,
}

/// An entry of a machine's fingerprint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProofFact {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// A workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProofWorkload {
    /// Its name in the suite.
    pub name: String,
    /// Operations of an iteration.
    pub operations: u64,
    /// The place of its machine in the list of machines.
    pub machine: usize,
}

/// A kernel of the series.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProofKernel {
    /// The abbreviated hash, or the number of the patch.
    pub label: String,
    /// The first line of its message.
    pub subject: String,
    /// Why it does not apply or build, or is not a kernel of its own; null if it is built.
    pub failure: Option<String>,
    /// The file with its patch, on the kernel before it; null for the base, and without a commit.
    pub patch: Option<ProofFile>,
    /// The hash of git's tree object with its source; null without a commit.
    pub source: Option<String>,
    /// How the kernel config was named.
    pub configuration: Option<String>,
    /// The SHA-256 of its kernel config, whose file is configs/SHA256.
    pub config: Option<String>,
    /// Compiler, linker and variables of make.
    pub compiler: Option<String>,
    /// The place of its image in the list of images; null if it is not built.
    pub image: Option<usize>,
}

/// A file of the proof.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProofFile {
    /// Its name in the archive.
    pub file: String,
    /// Its SHA-256.
    pub sha256: String,
}

/// An image.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProofImage {
    /// Its SHA-256.
    pub sha256: String,
    /// Its size.
    pub bytes: u64,
    /// Whether the archive has it, as images/SHA256.
    pub in_file: bool,
    /// What was counted: one for each workload and seed.
    pub counts: Vec<ProofCounts>,
}

/// What a workload executed on an image.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProofCounts {
    /// The workload.
    pub workload: String,
    /// The seed.
    pub seed: u64,
    /// How it ended: completed, or why not.
    pub outcome: String,
    /// Instructions of each measured iteration: kernel, user code, interrupts, other tasks.
    pub counted: Vec<[u64; 4]>,
    /// Guest time per operation of each measured iteration, in ns, where nothing was counted.
    pub guest_time: Vec<f64>,
}

/// Why a text is no proof.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// It is no JSON, or has other keys.
    #[error("it is no document of this kind: {0}")]
    NotDocument(String),
    /// It is of another version.
    #[error(
        "it has version {found} of the schema, and this Marvin knows {SCHEMA_VERSION}: take the Marvin that wrote it, {marvin}"
    )]
    Version {
        /// Its version.
        found: u32,
        /// The Marvin that wrote it.
        marvin: String,
    },
    /// What it says cannot be.
    #[error("{0}")]
    Invalid(String),
}

/// What every document of Marvin has.
#[derive(Deserialize)]
struct Head {
    schema_version: u32,
    kind: String,
    #[serde(default)]
    marvin: String,
}

/// Returns the schema of the JSON document.
#[must_use]
pub fn proof_schema() -> Schema {
    schema_of::<Proof>("proof.json of marvin series --proof")
}

impl Proof {
    /// Returns a proof of a series without kernels.
    #[must_use]
    pub fn new(marvin: &str, title: &str, base: &str) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            kind: KIND.to_owned(),
            marvin: marvin.to_owned(),
            title: title.to_owned(),
            base: base.to_owned(),
            suite: String::new(),
            seeds: Vec::new(),
            machines: Vec::new(),
            workloads: Vec::new(),
            kernels: Vec::new(),
            images: Vec::new(),
        }
    }

    /// Returns the JSON document.
    ///
    /// # Errors
    /// Never in practice: everything is in memory.
    pub fn json(&self) -> Result<String, RenderError> {
        write_json(self)
    }

    /// Reads a document from anywhere.
    ///
    /// # Errors
    /// If it is no proof, one of another version, or contradicts itself.
    pub fn parse(text: &[u8]) -> Result<Self, ProofError> {
        let describe = |error: serde_json::Error| {
            ProofError::NotDocument(sanitize_line(&cut(&error.to_string())))
        };
        let head: Head = serde_json::from_slice(text).map_err(describe)?;
        if head.kind != KIND {
            let kind = sanitize_line(&cut(&head.kind));
            return Err(ProofError::NotDocument(format!("its kind is {kind}")));
        }
        if head.schema_version != SCHEMA_VERSION {
            return Err(ProofError::Version {
                found: head.schema_version,
                marvin: sanitize_line(&cut(&head.marvin)),
            });
        }
        let mut proof: Self = serde_json::from_slice(text).map_err(describe)?;
        proof.make_safe();
        proof.check().map_err(ProofError::Invalid)?;
        Ok(proof)
    }

    /// Makes all that is shown safe, and short enough for a line.
    fn make_safe(&mut self) {
        let texts = [&mut self.marvin, &mut self.title, &mut self.suite];
        let of_kernels = self.kernels.iter_mut().flat_map(|kernel| {
            [&mut kernel.label, &mut kernel.subject].into_iter().chain(
                [
                    &mut kernel.failure,
                    &mut kernel.configuration,
                    &mut kernel.compiler,
                ]
                .into_iter()
                .flatten(),
            )
        });
        let of_counts = self
            .images
            .iter_mut()
            .flat_map(|image| &mut image.counts)
            .map(|counts| &mut counts.outcome);
        let of_machines = self.machines.iter_mut().map(|machine| &mut machine.summary);
        for text in texts
            .into_iter()
            .chain(of_kernels)
            .chain(of_counts)
            .chain(of_machines)
        {
            *text = sanitize_line(&cut(text));
        }
        for machine in &mut self.machines {
            for fact in &mut machine.fingerprint {
                fact.name = sanitize_line(&cut(&fact.name));
                fact.value = sanitize_line(&cut(&fact.value));
            }
        }
    }

    fn check(&self) -> Result<(), String> {
        let counts = self.images.iter().map(|image| image.counts.len()).sum();
        let facts = self.machines.iter().map(|one| one.fingerprint.len()).sum();
        for (what, count, most) in [
            ("kernels", self.kernels.len(), LIST_MAX),
            ("images", self.images.len(), LIST_MAX),
            ("workloads", self.workloads.len(), LIST_MAX),
            ("machines", self.machines.len(), LIST_MAX),
            ("results", counts, RESULTS_MAX),
            ("entries of fingerprints", facts, RESULTS_MAX),
        ] {
            if count > most {
                return Err(format!("it has {count} {what}; the limit is {most}"));
            }
        }
        let seeds: BTreeSet<u64> = self.seeds.iter().copied().collect();
        if seeds.len() != self.seeds.len() || seeds.iter().any(|seed| !is_seed(*seed)) {
            return Err(format!(
                "its seeds are not different numbers up to {SEED_MAX}"
            ));
        }
        check_hash("base", &self.base, &[40, 64])?;
        if let Some(machine) = self
            .machines
            .iter()
            .find(|machine| machine.kind != REPLAYED)
        {
            let kind = sanitize_line(&cut(&machine.kind));
            return Err(format!(
                "it is of the machine {kind}; only exact is replayed"
            ));
        }
        let mut names = BTreeSet::new();
        for workload in &self.workloads {
            if workload.machine >= self.machines.len() || !names.insert(&workload.name) {
                let name = sanitize_line(&cut(&workload.name));
                return Err(format!("workload {name} is there twice, or has no machine"));
            }
        }
        let mut hashes = BTreeSet::new();
        for image in &self.images {
            check_hash("image", &image.sha256, &[64])?;
            if !hashes.insert(&image.sha256) {
                return Err(format!("image {} is there twice", short(&image.sha256)));
            }
            image.check_counts(&names, &seeds)?;
        }
        for kernel in &self.kernels {
            kernel.check(self.images.len())?;
        }
        if self.kernels.first().is_none_or(|base| base.image.is_none()) {
            return Err("its first kernel, the base, has no image".to_owned());
        }
        Ok(())
    }

    /// Returns the machine of a workload.
    #[must_use]
    pub fn machine_of(&self, workload: &ProofWorkload) -> Option<&ProofMachine> {
        self.machines.get(workload.machine)
    }
}

fn is_seed(seed: u64) -> bool {
    (1..=SEED_MAX).contains(&seed)
}

/// Checks a hash: nothing else becomes a part of a path or a word of a command.
fn check_hash(what: &str, hash: &str, lengths: &[usize]) -> Result<(), String> {
    let is_hex = hash
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if is_hex && lengths.contains(&hash.len()) {
        return Ok(());
    }
    let shown = sanitize_line(&hash.chars().take(20).collect::<String>());
    Err(format!("`{shown}` is no hash of the {what}"))
}

/// Returns a text of a length that can be shown.
fn cut(text: &str) -> String {
    text.chars().take(TEXT_MAX).collect()
}

/// Abbreviates a hash, as git does.
fn short(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}

impl ProofMachine {
    /// Describes a machine.
    #[must_use]
    pub fn of(machine: &Machine) -> Self {
        Self {
            id: machine.id.hex().to_owned(),
            kind: machine.kind.name().to_owned(),
            summary: machine.summary.clone(),
            fingerprint: machine
                .fingerprint
                .iter()
                .map(|(name, value)| ProofFact {
                    name: name.clone(),
                    value: value.clone(),
                })
                .collect(),
        }
    }

    /// Returns the value of an entry of the fingerprint.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&str> {
        let mut facts = self.fingerprint.iter();
        let fact = facts.find(|fact| fact.name == name);
        fact.map(|fact| &*fact.value)
    }
}

impl ProofKernel {
    fn check(&self, images: usize) -> Result<(), String> {
        if self.image.is_some_and(|image| image >= images) {
            return Err(format!("kernel {} has no image", self.label));
        }
        if let Some(source) = &self.source {
            check_hash("source", source, &[40, 64])?;
        }
        if let Some(config) = &self.config {
            check_hash("kernel config", config, &[64])?;
        }
        if let Some(patch) = &self.patch {
            check_hash("patch", &patch.sha256, &[64])?;
        }
        Ok(())
    }
}

impl ProofImage {
    fn check_counts(&self, names: &BTreeSet<&String>, seeds: &BTreeSet<u64>) -> Result<(), String> {
        let mut known = BTreeSet::new();
        for counts in &self.counts {
            let is_known = names.contains(&counts.workload) && seeds.contains(&counts.seed);
            let iterations = counts.counted.len().max(counts.guest_time.len());
            if !is_known
                || !known.insert((&counts.workload, counts.seed))
                || iterations > ITERATIONS_MAX
            {
                return Err(format!(
                    "image {} has counts of an unknown workload or seed, twice, or too many",
                    short(&self.sha256)
                ));
            }
        }
        Ok(())
    }

    /// Adds the results of runs of these workloads.
    pub fn add_runs(&mut self, runs: &[Run], workloads: &[ProofWorkload]) {
        for run in runs {
            for workload in workloads {
                let mut results = run.results.iter();
                let result = results.rfind(|result| result.workload == workload.name);
                let is_known = self
                    .counts
                    .iter()
                    .any(|known| known.workload == workload.name && known.seed == run.seed);
                if let Some(result) = result.filter(|_| !is_known) {
                    self.counts.push(ProofCounts::of(result, run.seed));
                }
            }
        }
    }
}

impl ProofCounts {
    /// Describes a result.
    #[must_use]
    pub fn of(result: &WorkloadResult, seed: u64) -> Self {
        let counted: Vec<[u64; 4]> = result
            .counted
            .iter()
            .map(|region| [region.kernel, region.user, region.interrupt, region.other])
            .collect();
        Self {
            workload: result.workload.clone(),
            seed,
            outcome: match &result.outcome {
                Outcome::Completed => COMPLETED.to_owned(),
                Outcome::Unsupported(why) => format!("{UNSUPPORTED}: {why}"),
                Outcome::Failed(failure) => {
                    format!("{FAILED}: {} ({})", failure.reason, failure.stage)
                }
            },
            guest_time: if counted.is_empty() {
                result.samples.clone()
            } else {
                Vec::new()
            },
            counted,
        }
    }

    /// Returns the instructions of kernel and user code in all iterations, or the guest time.
    fn size(&self) -> f64 {
        if self.counted.is_empty() {
            return self.guest_time.iter().sum();
        }
        let own = self
            .counted
            .iter()
            .map(|[kernel, user, ..]| kernel.saturating_add(*user));
        own.fold(0, u64::saturating_add) as f64
    }
}
