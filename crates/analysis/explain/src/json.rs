//! The answer as JSON.

use document::{RenderError, SCHEMA_VERSION, schema_of, write_json};
use schemars::{JsonSchema, Schema};
use serde::Serialize;

use crate::budget::{Budget, View};
use crate::facts::Thread;
use crate::finding::Finding;
use crate::render::Explained;

/// Shares of time, from 0 to 1; they add up to 1.
#[derive(Serialize, JsonSchema)]
struct BudgetDocument {
    /// Running in user mode.
    user: f64,
    /// Running in the kernel.
    system: f64,
    /// Runnable, without a processor.
    waiting: f64,
    /// Blocked.
    blocked: f64,
}

#[derive(Serialize, JsonSchema)]
struct ThreadDocument {
    process: u32,
    thread: u32,
    name: String,
    seconds: f64,
    budget: BudgetDocument,
}

#[derive(Serialize, JsonSchema)]
struct EvidenceDocument {
    quantity: String,
    source: String,
    /// From which value on it counts.
    threshold: String,
    rules_out: String,
}

#[derive(Serialize, JsonSchema)]
struct CauseDocument {
    /// The rule that found it.
    rule: String,
    cause: String,
    /// The share of the time of threads that take part, from 0 to 1.
    share: f64,
    /// hypothesis, likely or shown.
    certainty: String,
    evidence: Vec<EvidenceDocument>,
    advice: Vec<String>,
    /// A command to look deeper.
    deeper: String,
}

#[derive(Serialize, JsonSchema)]
struct GapDocument {
    what: String,
    why: String,
    remedy: String,
}

#[derive(Serialize, JsonSchema)]
struct CostDocument {
    collector: String,
    processor_seconds: f64,
}

#[derive(Serialize, JsonSchema)]
struct EndDocument {
    /// How the program ended, as a sentence; empty for a process that runs on.
    text: String,
    /// The same as a word: runs-on, succeeded, failed, killed, cut-short, interrupted or gone.
    state: String,
    /// The exit code of a command that ended by itself.
    exit_code: Option<i32>,
    /// The signal that ended the command.
    signal: Option<i32>,
}

#[derive(Serialize, JsonSchema)]
struct ExplainedDocument {
    schema_version: u32,
    subject: String,
    seconds: f64,
    /// The answer.
    sentence: String,
    /// Absent if nothing dominates.
    cause: Option<CauseDocument>,
    /// Other rules that apply.
    others: Vec<CauseDocument>,
    /// Others use the processors: the shares of causes are of the time without waiting for them.
    outside: Option<CauseDocument>,
    /// Of the threads that take part.
    budget: BudgetDocument,
    threads: Vec<ThreadDocument>,
    not_observed: Vec<GapDocument>,
    costs: Vec<CostDocument>,
    end: EndDocument,
    command: String,
}

/// Returns the JSON document of an answer.
///
/// # Errors
/// Never in practice: everything is in memory.
pub fn json(explained: &Explained) -> Result<String, RenderError> {
    let Explained {
        facts,
        answer,
        end,
        command,
    } = explained;
    let gaps = facts.gaps.iter().map(|gap| GapDocument {
        what: gap.what.into(),
        why: gap.why.clone(),
        remedy: gap.remedy.into(),
    });
    write_json(&ExplainedDocument {
        schema_version: SCHEMA_VERSION,
        subject: facts.subject.clone(),
        seconds: facts.seconds,
        sentence: answer.sentence(facts),
        cause: answer.cause.as_ref().map(cause),
        others: answer.others.iter().map(cause).collect(),
        outside: answer.outside.as_ref().map(cause),
        budget: budget(View::new(facts).budget),
        threads: facts.threads.iter().map(thread).collect(),
        not_observed: gaps.collect(),
        costs: facts
            .costs
            .iter()
            .map(|(collector, seconds)| CostDocument {
                collector: (*collector).into(),
                processor_seconds: *seconds,
            })
            .collect(),
        end: EndDocument {
            text: end.text.clone(),
            state: end.state.name().into(),
            exit_code: end.exit_code,
            signal: end.signal,
        },
        command: command.clone(),
    })
}

/// Returns the schema of that document.
#[must_use]
pub fn schema() -> Schema {
    schema_of::<ExplainedDocument>("marvin explain")
}

fn budget(budget: Budget) -> BudgetDocument {
    BudgetDocument {
        user: budget.user,
        system: budget.system,
        waiting: budget.waiting,
        blocked: budget.blocked,
    }
}

fn thread(thread: &Thread) -> ThreadDocument {
    ThreadDocument {
        process: thread.process,
        thread: thread.id,
        name: thread.name.clone(),
        seconds: thread.total_s,
        budget: budget(Budget::sum([thread])),
    }
}

fn cause(finding: &Finding) -> CauseDocument {
    let evidence = finding.evidence.iter().map(|evidence| EvidenceDocument {
        quantity: evidence.quantity.clone(),
        source: evidence.source.into(),
        threshold: evidence.threshold.clone(),
        rules_out: evidence.rules_out.into(),
    });
    CauseDocument {
        rule: finding.rule.into(),
        cause: finding.cause.clone(),
        share: finding.share,
        certainty: finding.certainty.name().into(),
        evidence: evidence.collect(),
        advice: finding.advice.clone(),
        deeper: finding.deeper.clone(),
    }
}
