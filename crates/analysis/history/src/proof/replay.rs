//! Compares a proof with what was built and measured here, and says what differs first.
//!
//! The parts are in the order in which one causes the next: machine, source, kernel config,
//! compiler, image, operations, counts. A compiler is compared only where the image differs: equal
//! images are equal kernels.

use std::fmt::Write as _;

use document::{RenderError, SCHEMA_VERSION, schema_of, write_json};
use schemars::{JsonSchema, Schema};
use serde::Serialize;

use super::{COMPLETED, FAILED, Proof, ProofCounts, ProofKernel, ProofMachine, UNSUPPORTED, short};

/// Rows of the table.
const ROWS_MAX: usize = 20;
/// Reasons that are named.
const REASONS_MAX: usize = 5;
/// Whose instructions, in the order of the counts.
const SHARES: [&str; 4] = ["the kernel", "user code", "interrupts", "other tasks"];

/// A kernel of the proof, as it is here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KernelHere {
    /// The tree object of its source; `None` if its image comes from the file.
    pub source: Option<String>,
    /// The SHA-256 of its kernel config; `None` if its image comes from the file.
    pub config: Option<String>,
    /// Compiler, linker and variables of make; `None` if its image comes from the file.
    pub compiler: Option<String>,
    /// The SHA-256 of its image; `None` if there is none.
    pub image: Option<String>,
    /// Why there is no image here.
    pub failure: Option<String>,
}

/// What was measured here: an image of the proof, by its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The place of the image in the proof.
    pub image: usize,
    /// What was counted.
    pub counts: Vec<ProofCounts>,
}

/// A part of the proof that was not compared, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotCompared {
    /// The workload.
    pub workload: String,
    /// Why not.
    pub why: String,
}

/// A proof, and what was measured to compare it.
#[derive(Debug, Clone)]
pub struct Replay<'a> {
    /// The proof.
    pub proof: &'a Proof,
    /// The workloads that were measured, by their place in the proof.
    pub workloads: Vec<usize>,
    /// Their machines here, with the place of each in the proof.
    pub machines: Vec<(usize, ProofMachine)>,
    /// The kernels of the proof, in its order.
    pub kernels: Vec<KernelHere>,
    /// What was counted.
    pub measured: Vec<Measured>,
    /// Workloads of other operations here, with the number here.
    pub other_operations: Vec<(usize, u64)>,
    /// What was not compared.
    pub not_compared: Vec<NotCompared>,
}

/// What a replay ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayConclusion {
    /// All that was asked for is equal.
    Equal,
    /// Something differs, or could not be compared.
    Differs,
    /// A kernel of the proof does not build or boot here.
    Failed,
}

/// A part of the proof.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
struct Part {
    /// machine, source, kernel config, compiler, image, operations, or counts.
    part: &'static str,
    /// Whether it is equal; null if it was not compared.
    equal: Option<bool>,
    /// What was compared, or what differs first.
    detail: String,
}

/// A count that is stated and was measured.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct CountDocument {
    /// The abbreviated hash, or the number of the patch.
    kernel: String,
    /// The workload.
    workload: String,
    /// The seed.
    seed: u64,
    /// Instructions per operation as the file states them.
    stated: f64,
    /// Instructions per operation here; null if it did not complete.
    measured: Option<f64>,
    /// The first count that differs; null if all are equal.
    differs: Option<String>,
}

/// A replay of a proof.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct ReplayDocument {
    /// Version of the schema.
    schema_version: u32,
    /// Kind of the document.
    kind: &'static str,
    /// What the proof is of, in a line.
    title: String,
    /// equal, differs, or failed.
    conclusion: &'static str,
    /// What differs first, or was not compared; null if all is equal.
    first: Option<String>,
    /// The parts of the proof.
    parts: Vec<Part>,
    /// The counts.
    counts: Vec<CountDocument>,
}

/// Returns the schema of the JSON document.
#[must_use]
pub fn replay_schema() -> Schema {
    schema_of::<ReplayDocument>("marvin replay")
}

impl Replay<'_> {
    /// Takes workloads out of the counts that lack something here, such as modules, which are not in
    /// a file with images.
    pub fn set_aside_unsupported(&mut self) {
        let mut missing: Vec<NotCompared> = Vec::new();
        for counts in self.measured.iter().flat_map(|measured| &measured.counts) {
            let is_known = missing
                .iter()
                .any(|known| known.workload == counts.workload);
            let stated = self.proof.images.iter().flat_map(|image| &image.counts);
            let was_completed = stated
                .filter(|stated| stated.workload == counts.workload)
                .any(|stated| stated.outcome == COMPLETED);
            if counts.outcome.starts_with(UNSUPPORTED) && was_completed && !is_known {
                missing.push(NotCompared {
                    workload: counts.workload.clone(),
                    why: counts.outcome.clone(),
                });
            }
        }
        let is_missing = |name: &str| missing.iter().any(|missing| missing.workload == name);
        self.workloads.retain(|place| {
            let workload = self.proof.workloads.get(*place);
            workload.is_some_and(|workload| !is_missing(&workload.name))
        });
        self.not_compared.extend(missing);
    }

    /// Returns what the replay ends with.
    #[must_use]
    pub fn conclusion(&self) -> ReplayConclusion {
        let failed = |(kernel, here): (&ProofKernel, &KernelHere)| {
            kernel.image.is_some() && here.failure.is_some()
        };
        let counts = self.counts();
        let parts = self.parts(&counts);
        let some_ended = self.some_failed_here();
        if some_ended || self.proof.kernels.iter().zip(&self.kernels).any(failed) {
            ReplayConclusion::Failed
        } else if parts.iter().any(|part| part.equal != Some(true)) {
            ReplayConclusion::Differs
        } else {
            ReplayConclusion::Equal
        }
    }

    /// Returns whether a workload failed here that completed there.
    fn some_failed_here(&self) -> bool {
        self.pairs().any(|(stated, measured, _)| {
            measured.is_some_and(|measured| {
                measured.outcome.starts_with(FAILED) && stated.outcome == COMPLETED
            })
        })
    }

    /// Returns the replay as text.
    #[must_use]
    pub fn text(&self) -> String {
        let counts = self.counts();
        let parts = self.parts(&counts);
        let mut text = format!("proof: {}\n", self.proof.title);
        let built = self.proof.kernels.iter();
        let built = built.filter(|kernel| kernel.image.is_some()).count();
        push(
            &mut text,
            format_args!(
                "{} of {}, {}, {}\n\n",
                self.workloads.len(),
                count(self.proof.workloads.len(), "workload"),
                count(built, "kernel"),
                count(self.proof.seeds.len(), "seed"),
            ),
        );
        for part in &parts {
            let word = match part.equal {
                Some(true) => "equal",
                Some(false) => "differs",
                None => "not compared",
            };
            let line = format!("{:<15}{word:<14}{}", part.part, part.detail);
            push(&mut text, format_args!("{}\n", line.trim_end()));
        }
        text.push_str(&self.table(&counts));
        push(&mut text, format_args!("\n{}\n", self.sentence(&parts)));
        text
    }

    /// Returns the JSON document.
    ///
    /// # Errors
    /// Never in practice: everything is in memory.
    pub fn json(&self) -> Result<String, RenderError> {
        let counts = self.counts();
        let parts = self.parts(&counts);
        let first = parts.iter().find(|part| part.equal == Some(false));
        let first = first.or_else(|| parts.iter().find(|part| part.equal.is_none()));
        write_json(&ReplayDocument {
            schema_version: SCHEMA_VERSION,
            kind: "replay",
            title: self.proof.title.clone(),
            conclusion: match self.conclusion() {
                ReplayConclusion::Equal => "equal",
                ReplayConclusion::Differs => "differs",
                ReplayConclusion::Failed => "failed",
            },
            first: first.map(|part| format!("{}: {}", part.part, part.detail)),
            parts,
            counts,
        })
    }

    /// Says in a sentence what the replay shows.
    fn sentence(&self, parts: &[Part]) -> String {
        let first = parts.iter().find(|part| part.equal == Some(false));
        let missing = parts.iter().find(|part| part.equal.is_none());
        match (first, missing) {
            (None, None) => "equal to the last instruction".to_owned(),
            (None, Some(part)) => format!(
                "equal as far as it was compared; not compared: {}",
                part.part
            ),
            (Some(part), _) => {
                let counts = parts.iter().find(|part| part.part == "counts");
                let but = counts
                    .filter(|counts| counts.equal == Some(true) && !self.measured.is_empty())
                    .map_or("", |_| "; the counts are equal to the last instruction");
                format!("differs first in: {}{but}", part.part)
            }
        }
    }

    /// Returns what is stated with what was measured, and the kernel's label.
    fn pairs(&self) -> impl Iterator<Item = (&ProofCounts, Option<&ProofCounts>, &str)> {
        self.measured.iter().flat_map(move |measured| {
            let stated = self.proof.images.get(measured.image);
            let stated = stated.map_or(&[][..], |image| &image.counts);
            let mut kernels = self.proof.kernels.iter();
            let label = kernels
                .find(|kernel| kernel.image == Some(measured.image))
                .map_or("", |kernel| &kernel.label);
            let names: Vec<&str> = self.names().collect();
            let stated = stated
                .iter()
                .filter(move |stated| names.contains(&&*stated.workload));
            stated.map(move |stated| {
                let here = measured
                    .counts
                    .iter()
                    .find(|here| here.workload == stated.workload && here.seed == stated.seed);
                (stated, here, label)
            })
        })
    }

    /// Returns the names of the workloads that were measured.
    fn names(&self) -> impl Iterator<Item = &str> {
        let places = self.workloads.iter();
        places.filter_map(|place| Some(&*self.proof.workloads.get(*place)?.name))
    }

    /// Counts the results that the proof states of these workloads.
    fn count_stated(&self) -> usize {
        let names: Vec<&str> = self.names().collect();
        let stated = self.proof.images.iter().flat_map(|image| &image.counts);
        stated
            .filter(|stated| names.contains(&&*stated.workload))
            .count()
    }

    fn counts(&self) -> Vec<CountDocument> {
        let document = |(stated, here, label): (&ProofCounts, Option<&ProofCounts>, &str)| {
            let operations = self.operations_of(stated);
            CountDocument {
                kernel: label.to_owned(),
                workload: stated.workload.clone(),
                seed: stated.seed,
                stated: stated.size() / operations,
                measured: here
                    .filter(|here| here.outcome == COMPLETED)
                    .map(|here| here.size() / operations),
                differs: first_difference(stated, here),
            }
        };
        self.pairs().map(document).collect()
    }

    /// Returns the operations of all iterations of a result.
    fn operations_of(&self, counts: &ProofCounts) -> f64 {
        let iterations = counts.counted.len().max(counts.guest_time.len()).max(1);
        let mut workloads = self.proof.workloads.iter();
        let workload = workloads.find(|workload| workload.name == counts.workload);
        let operations = workload.map_or(1, |workload| workload.operations.max(1));
        // Guest time is per operation already.
        if counts.counted.is_empty() {
            iterations as f64
        } else {
            operations as f64 * iterations as f64
        }
    }

    fn parts(&self, counts: &[CountDocument]) -> Vec<Part> {
        let mut parts = vec![self.machine_part()];
        parts.extend(self.source_part());
        parts.extend(self.config_part());
        let image = self.image_part();
        if image.equal == Some(false) {
            parts.extend(self.compiler_part());
        }
        parts.push(image);
        parts.extend(self.operations_part());
        parts.push(self.counts_part(counts));
        parts
    }

    fn machine_part(&self) -> Part {
        let differing = self.machines.iter().find_map(|(place, here)| {
            let stated = self.proof.machines.get(*place)?;
            (stated.fingerprint != here.fingerprint).then(|| describe_machine(stated, here))
        });
        let here = self.machines.first();
        match differing {
            Some(detail) => part("machine", Some(false), detail),
            None => part(
                "machine",
                here.map(|_| true),
                here.map_or("", |(_, here)| &here.summary).to_owned(),
            ),
        }
    }

    /// Compares what kernels were built from, if one was built here.
    fn compare_builds(
        &self,
        name: &'static str,
        stated: impl Fn(&ProofKernel) -> Option<&String>,
        here: impl Fn(&KernelHere) -> Option<&String>,
    ) -> Option<Part> {
        let mut compared = 0;
        for (kernel, built) in self.proof.kernels.iter().zip(&self.kernels) {
            let (Some(stated), Some(here)) = (stated(kernel), here(built)) else {
                continue;
            };
            compared += 1;
            if stated != here {
                let [stated, here] = [stated, here].map(|text| shorten_hash(text));
                let detail = format!("{}: {stated} in the file, {here} here", kernel.label);
                return Some(part(name, Some(false), detail));
            }
        }
        (compared > 0).then(|| {
            part(
                name,
                Some(true),
                format!("of {}", count(compared, "kernel")),
            )
        })
    }

    fn source_part(&self) -> Option<Part> {
        self.compare_builds(
            "source",
            |kernel| kernel.source.as_ref(),
            |here| here.source.as_ref(),
        )
    }

    fn config_part(&self) -> Option<Part> {
        self.compare_builds(
            "kernel config",
            |kernel| kernel.config.as_ref(),
            |here| here.config.as_ref(),
        )
    }

    fn compiler_part(&self) -> Option<Part> {
        self.compare_builds(
            "compiler",
            |kernel| kernel.compiler.as_ref(),
            |here| here.compiler.as_ref(),
        )
    }

    fn image_part(&self) -> Part {
        let mut equal = 0;
        let mut from_file = 0;
        for (kernel, here) in self.proof.kernels.iter().zip(&self.kernels) {
            let Some(image) = kernel.image.and_then(|image| self.proof.images.get(image)) else {
                if kernel.failure.is_some() && here.image.is_some() {
                    let detail = format!("{}: not built there, built here", kernel.label);
                    return part("image", Some(false), detail);
                }
                continue;
            };
            match (&here.image, &here.failure) {
                (Some(found), _) if *found == image.sha256 => {
                    equal += 1;
                    from_file += usize::from(here.source.is_none());
                }
                (Some(found), _) => {
                    let [stated, found] = [&*image.sha256, found].map(short);
                    let detail = format!("{}: {stated} in the file, {found} here", kernel.label);
                    return part("image", Some(false), detail);
                }
                (None, Some(why)) => {
                    let detail = format!("{}: {why}", kernel.label);
                    return part("image", Some(false), detail);
                }
                (None, None) => {}
            }
        }
        let origin = match from_file {
            0 => "built here".to_owned(),
            all if all == equal => "from the file".to_owned(),
            some => format!("{some} from the file, the others built here"),
        };
        part(
            "image",
            Some(true),
            format!("of {}, {origin}", count(equal, "kernel")),
        )
    }

    fn operations_part(&self) -> Option<Part> {
        let (place, here) = self.other_operations.first()?;
        let workload = self.proof.workloads.get(*place)?;
        let detail = format!(
            "{}: {} in the file, {here} here",
            workload.name, workload.operations
        );
        Some(part("operations", Some(false), detail))
    }

    fn counts_part(&self, counts: &[CountDocument]) -> Part {
        let equal = counts.iter().filter(|row| row.differs.is_none()).count();
        let first = counts.iter().find(|row| row.differs.is_some());
        if let Some(row) = first {
            let what = row.differs.as_deref().unwrap_or_default();
            let detail = format!(
                "{equal} of {} equal; {} on {} with seed {}: {what}",
                counts.len(),
                row.workload,
                row.kernel,
                row.seed,
            );
            return part("counts", Some(false), detail);
        }
        let reasons: Vec<String> = self
            .not_compared
            .iter()
            .take(REASONS_MAX)
            .map(|missing| format!("{}: {}", missing.workload, missing.why))
            .collect();
        if !reasons.is_empty() {
            let more = self.not_compared.len() - reasons.len();
            let more = if more > 0 {
                format!("; {more} more")
            } else {
                String::new()
            };
            let detail = format!("{} equal; {}{more}", counts.len(), reasons.join("; "));
            return part("counts", None, detail);
        }
        let stated = self.count_stated();
        if counts.len() < stated {
            let detail = format!("{equal} of {stated} equal; the others have no kernel here");
            return part("counts", None, detail);
        }
        if counts.is_empty() {
            let detail = "the file states none: all its kernels have one image".to_owned();
            return part("counts", Some(true), detail);
        }
        part(
            "counts",
            Some(true),
            format!("{} of {}", equal, counts.len()),
        )
    }

    /// Shows the counts: all if they are few, else those that differ.
    fn table(&self, counts: &[CountDocument]) -> String {
        let all = counts.len() <= ROWS_MAX;
        let shown: Vec<&CountDocument> = counts
            .iter()
            .filter(|row| all || row.differs.is_some())
            .take(ROWS_MAX)
            .collect();
        if shown.is_empty() {
            return String::new();
        }
        let mut text = format!(
            "\n{:<18} {:<12} {:>4} {:>16} {:>16}\n",
            "instructions/op", "kernel", "seed", "in the file", "here"
        );
        for row in shown {
            let measured = row
                .measured
                .map_or("-".to_owned(), |value| format!("{value:.2}"));
            let mark = if row.differs.is_some() { " *" } else { "" };
            push(
                &mut text,
                format_args!(
                    "{:<18} {:<12} {:>4} {:>16.2} {measured:>16}{mark}\n",
                    row.workload, row.kernel, row.seed, row.stated
                ),
            );
        }
        text
    }
}

/// Says what differs first between two machines, and what that is: emulator, guest programs or
/// settings.
fn describe_machine(stated: &ProofMachine, here: &ProofMachine) -> String {
    let facts = stated.fingerprint.iter().chain(&here.fingerprint);
    let mut keys: Vec<&str> = facts.map(|fact| &*fact.name).collect();
    // The emulator first, with its version before its files.
    keys.sort_by_key(|key| (class(key), key.starts_with("sha256."), *key));
    let Some(key) = keys
        .into_iter()
        .find(|key| stated.value(key) != here.value(key))
    else {
        return "settings: their order".to_owned();
    };
    let value = |machine: &ProofMachine| {
        let value = machine.value(key);
        value.map_or("absent".to_owned(), shorten_hash)
    };
    let what = ["emulator", "guest programs", "settings"][class(key)];
    format!(
        "{what}: {key} is {} in the file, {} here",
        value(stated),
        value(here)
    )
}

/// Returns what an entry of a fingerprint belongs to: emulator, guest programs, settings.
fn class(key: &str) -> usize {
    if key.starts_with("qemu") || key.starts_with("sha256.") {
        0
    } else if key.ends_with(".sha256") {
        1
    } else {
        2
    }
}

/// Says what differs first between two results; `None` if they are equal.
fn first_difference(stated: &ProofCounts, here: Option<&ProofCounts>) -> Option<String> {
    let Some(here) = here else {
        return Some("no result here".to_owned());
    };
    if stated.outcome != here.outcome {
        return Some(format!(
            "{} in the file, {} here",
            stated.outcome, here.outcome
        ));
    }
    if stated.counted.len() != here.counted.len() {
        return Some(format!(
            "{} counted in the file, {} here",
            count(stated.counted.len(), "iteration"),
            here.counted.len()
        ));
    }
    for (iteration, (one, other)) in stated.counted.iter().zip(&here.counted).enumerate() {
        for (share, (one, other)) in SHARES.iter().zip(one.iter().zip(other)) {
            if one != other {
                return Some(format!(
                    "iteration {}, instructions of {share}: {one} in the file, {other} here",
                    iteration + 1
                ));
            }
        }
    }
    let times = stated.guest_time.iter().zip(&here.guest_time);
    let is_equal = stated.guest_time.len() == here.guest_time.len()
        && times
            .clone()
            .all(|(one, other)| one.to_bits() == other.to_bits());
    (!is_equal).then(|| "guest time".to_owned())
}

fn part(name: &'static str, equal: Option<bool>, detail: String) -> Part {
    Part {
        part: name,
        equal,
        detail,
    }
}

/// Shortens what is a hash and nothing else.
fn shorten_hash(text: &str) -> String {
    let is_hash = text.len() >= 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hash { short(text) } else { text }.to_owned()
}

fn count(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

/// Appends to a text.
fn push(text: &mut String, more: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    text.write_fmt(more).ok();
}
