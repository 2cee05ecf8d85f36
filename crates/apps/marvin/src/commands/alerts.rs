//! `marvin alerts` and `marvin triage`: lists performance changes, and records decisions on them.

use history::{
    History, Triaged, alert_mail, alerts_document, alerts_text, history_json, mixed_words,
};
use model::{Decision, plain};
use store::Store;

use super::compare::now;
use super::history::read;
use crate::answer::Answer;
use crate::cli::{self, Arguments, ListFormat};
use crate::exit::{Exit, WrongInput};
use crate::home::store;
use crate::say;

/// What senders of a mail about one seed should know.
pub(crate) const ONE_SEED: &str =
    "note: one seed only: the mail addresses no list; measure more seeds before you send it";

/// Regressions of an alert that a mail explains.
const EXPLAINED_MAX: usize = 3;

pub(crate) fn alerts(arguments: &Arguments, command: &cli::Alerts) -> anyhow::Result<Exit> {
    let answer = Answer::open(None)?;
    let snapshot = read(arguments)?;
    let history = &snapshot.history;
    if history
        .tracks()
        .iter()
        .all(|track| history.of_track(track, command.line).is_empty())
    {
        let why = format!(
            "cannot list alerts of line {}: no kernel of it was measured\nhint: marvin history",
            command.line
        );
        return Err(WrongInput(why).into());
    }
    let mut found = snapshot.alerts_of(command.line);
    if command.open {
        found.retain(Triaged::is_open);
    }
    if let Some(name) = &command.mail {
        let one = find_alert(&found, name)?;
        let origins = origins(arguments, &snapshot.history, one)?;
        let Some(mail) = alert_mail(&snapshot.history, one, &snapshot.found, &origins) else {
            return Err(WrongInput(format!(
                "cannot write a mail: {} has no regression",
                one.alert.name
            ))
            .into());
        };
        answer.write(&mail)?;
        if one.alert.rests_on_one_seed() {
            say(ONE_SEED);
        }
        let names: Vec<&str> = one
            .alert
            .of_one_seed()
            .map(|member| &*member.key.workload)
            .collect();
        if !names.is_empty() {
            let names = plain(&names.join(","));
            say(&format!(
                "note: one seed only, so the mail leaves it out: {names}\nhint: measure it with more seeds: marvin compare \
                 OLD NEW --seeds 5 --workload {names}"
            ));
        }
        return Ok(if one.is_open() {
            Exit::Worse
        } else {
            Exit::Fine
        });
    }
    let is_open = found.iter().any(Triaged::is_open);
    let text = match command.output.format {
        ListFormat::Text => {
            let debian = crate::home::home(arguments.home.as_deref())?
                .join("workshop/debian")
                .display()
                .to_string();
            alerts_text(
                &snapshot.history,
                &found,
                &debian,
                &snapshot.found,
                &answer.styles(arguments.color),
            )
        }
        ListFormat::Json => history_json(&alerts_document(&snapshot.history, &found))?,
    };
    answer.write(&text)?;
    let is_mixed = mixed_words(&snapshot.history).is_some();
    Ok(match (is_open, is_mixed) {
        (true, _) => Exit::Worse,
        (false, true) => Exit::Unclear,
        (false, false) => Exit::Fine,
    })
}

/// Says which functions the worst regressions of an alert are in, as far as the exact machine
/// counted both kernels.
fn origins(arguments: &Arguments, history: &History, one: &Triaged) -> anyhow::Result<Vec<String>> {
    let store = Store::open_read_only(store(arguments)?)?;
    let builds = [one.alert.after, one.alert.at].map(|kernel| history.kernel(kernel).build.clone());
    let left_out: Vec<_> = one.alert.of_one_seed().map(|member| &member.key).collect();
    let mut all = Vec::new();
    for member in one
        .alert
        .worse()
        .filter(|member| !left_out.contains(&&member.key))
        .take(EXPLAINED_MAX)
    {
        all.extend(super::explain_kernels::stored(
            &store,
            &builds,
            &member.key.workload,
        )?);
    }
    Ok(all)
}

pub(crate) fn triage(arguments: &Arguments, command: &cli::Triage) -> anyhow::Result<Exit> {
    let snapshot = read(arguments)?;
    let one = find_alert(&snapshot.alerts, &command.alert)?;
    let version = |kernel: usize| snapshot.history.kernel(kernel).release.as_str().to_owned();
    let decision = Decision {
        track: one.alert.decision_track(),
        after: version(one.alert.after),
        at: version(one.alert.at),
        triage: command.outcome,
        note: command.note.clone(),
        worse: one.alert.worse().count(),
        decided_unix: now(),
    };
    Store::open(store(arguments)?)?.decide(&decision)?;
    say(&format!("{} is {} now", one.alert.name, command.outcome));
    Ok(Exit::Fine)
}

/// Finds an alert by its name or the end of its name.
fn find_alert<'a>(found: &'a [Triaged], text: &str) -> anyhow::Result<&'a Triaged> {
    let is_meant = |one: &&Triaged| {
        let name = &one.alert.name;
        *name == text
            || name
                .rsplit_once('@')
                .is_some_and(|(_, kernel)| kernel == text)
    };
    let meant: Vec<&Triaged> = found.iter().filter(is_meant).collect();
    let [one] = meant.as_slice() else {
        let names: Vec<&str> = meant.iter().map(|one| one.alert.name.as_str()).collect();
        return Err(WrongInput(if names.is_empty() {
            format!("no alert `{text}`: `marvin alerts` lists them")
        } else {
            format!("several alerts end with `{text}`: {}", names.join(", "))
        })
        .into());
    };
    Ok(one)
}
