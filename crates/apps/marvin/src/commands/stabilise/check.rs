//! `marvin stabilise --check`: what each new candidate of a queue brings alone, as a mail.

use std::time::Instant;

use lab::{CheckedBefore, StabiliseEvent, TreeWorld};
use model::Availability;
use stabilise::Checked;
use stabilise::render::{Check, CheckMail, CheckedPatch, NamedCommit, check_mail};

use super::{Trial, describe};
use crate::exit::Exit;
use crate::session::{Answer, Progress};

/// Checks the candidates that no earlier check has seen.
pub(super) fn check(
    trial: &Trial<'_>,
    progress: &Progress,
    answer: Answer,
    mail: Option<Answer>,
) -> anyhow::Result<Exit> {
    let subject = &trial.found.subject;
    let question = format!("{} {}", trial.command_line(), subject.new_commit());
    let before = CheckedBefore::open(trial.home, &question)?;
    let mut new = Vec::new();
    for (number, candidate) in subject.candidates.iter().enumerate() {
        if trial.command.search.force || !before.has(candidate) {
            new.push(number);
        }
    }
    let notify = |event: StabiliseEvent<'_>| progress.say(&describe(&event));
    let measuring = trial.measuring(Instant::now());
    let mut world = TreeWorld::open(
        measuring,
        subject,
        trial.home,
        |step| progress.step("kernel", &step),
        |event| progress.event(&event),
        &notify,
    )?;
    let checked = stabilise::check(&trial.question(), &new, &mut world)?;
    progress.end();
    let checked = match checked {
        Checked::Candidates(checked) => checked,
        Checked::NoEnd(failure) => {
            crate::say(&format!(
                "error: NEW cannot be measured: {}",
                stabilise::render::describe_failure(&failure)
            ));
            return Ok(Exit::Subject);
        }
    };
    let not_compiled = world.not_compiled().len();
    let numbers: Vec<usize> = checked.iter().map(|(number, _)| *number).collect();
    let is_done =
        |number: &usize| numbers.contains(number) || world.not_compiled().contains(number);
    let done: Vec<usize> = new.iter().copied().filter(is_done).collect();
    let mut patches = Vec::new();
    let mut is_worse = false;
    let mut has_failed = false;
    for (number, result) in checked {
        let candidate = &subject.candidates[number];
        let commit = candidate.facts.commit.clone().unwrap_or_default();
        match &result {
            Availability::Available(effects) => {
                is_worse |= effects.iter().any(|effect| effect.percent < 0.0);
            }
            Availability::Unavailable(_) => has_failed = true,
        }
        patches.push(CheckedPatch {
            named: NamedCommit {
                commit,
                subject: candidate.subject.clone(),
            },
            result,
        });
    }
    let check = Check {
        queue: trial.command.candidates.join(", "),
        on: trial.new_end(),
        rows: trial.row_names(),
        patches,
        not_compiled,
        measuring: trial.measured(),
        command: trial.command_line(),
    };
    let CheckMail { subject, text } = check_mail(&check);
    let mail_text = format!("Subject: {subject}\n\n{text}");
    if let Some(file) = mail
        && !new.is_empty()
    {
        file.write(&mail_text)?;
    }
    if trial.command.mail.is_answer() {
        answer.write(mail_text)?;
    } else {
        answer.write(format!("{subject}\n\n{text}"))?;
    }
    before.keep(
        done.iter()
            .map(|number| &trial.found.subject.candidates[*number]),
    )?;
    if done.len() < new.len() {
        crate::say(&format!(
            "the budget ended the check: {} candidates are left for the next one",
            new.len() - done.len()
        ));
    }
    Ok(match (is_worse, has_failed) {
        (true, _) => Exit::Worse,
        (false, true) => Exit::Subject,
        (false, false) if done.len() < new.len() => Exit::Unclear,
        (false, false) => Exit::Fine,
    })
}
