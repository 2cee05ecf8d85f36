//! `marvin alerts`: lists performance changes, grouped by the kernel that introduced them.

use std::path::Path;

use clap::Args;
use history::{
    Doubt, History, Triaged, alert_mail, alerts_document, alerts_text, history_json, mixed_words,
};
use model::{ReleaseLine, sanitize_line};
use results::HistorySnapshot;

use crate::exit::{Exit, WrongInput};
use crate::options::{LINE_HELP, MailOptions};
use crate::select::find_alert;
use crate::session::{Answer, ListFormat, Output, Session};
use crate::views::ONE_SEED;
use crate::{completion, say};

/// `marvin alerts`.
#[derive(Debug, Args)]
#[command(after_help = format!("{LINE_HELP}Exit codes: 1 if an open alert reports a regression; otherwise 3 if a metric changed unit or direction, because Marvin cannot compare such results."))]
pub(crate) struct AlertsArguments {
    /// Alert to list alone, or to mail about: its name or the end of it
    #[arg(add = completion::alert())]
    pub(crate) alert: Option<String>,

    /// Show only kernels of this line of releases
    #[arg(long, value_name = "LINE", default_value_t = ReleaseLine::All)]
    pub(crate) line: ReleaseLine,

    /// List only open alerts: regressions that no decision of `marvin triage` covers
    #[arg(long)]
    pub(crate) open: bool,

    /// Output format
    #[command(flatten)]
    pub(crate) output: Output,

    #[command(flatten)]
    pub(crate) mail: MailOptions,
}

/// Regressions of an alert that a mail explains.
const EXPLAINED_MAX: usize = 3;

pub(crate) fn alerts(session: &Session, command: &AlertsArguments) -> anyhow::Result<Exit> {
    let answer = session.answer(None)?;
    let snapshot = session.read_history()?;
    let history = &snapshot.history;
    if history
        .tracks()
        .iter()
        .all(|track| history.kernels_of_track(track, command.line).is_empty())
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
    let named = command.named_alert();
    if let Some(name) = named.alert {
        let name = find_alert(&found, name)?.alert.name.clone();
        found.retain(|one| one.alert.name == name);
    }
    if command.mail.is_wanted() {
        let [one] = found.as_slice() else {
            let text = "cannot write a mail: name one alert: marvin alerts ALERT --mail FILE";
            return Err(WrongInput(text.to_owned()).into());
        };
        let mail = mail_about(session, &snapshot, one)?;
        match named.file {
            Some(file) => Answer::file("--mail", file)?.write(mail)?,
            None => {
                answer.write(mail)?;
                return Ok(if one.is_open() {
                    Exit::Worse
                } else {
                    Exit::Fine
                });
            }
        }
    }
    let is_open = found.iter().any(Triaged::is_open);
    let text = match command.output.format {
        ListFormat::Text => {
            let debian = session
                .home()?
                .join("workshop/debian")
                .display()
                .to_string();
            alerts_text(
                &snapshot.history,
                &found,
                &debian,
                &snapshot.found,
                &answer.styles(),
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

/// The alert and the file that the words name.
struct NamedAlert<'a> {
    alert: Option<&'a str>,
    /// The file for the mail; `None` for standard output.
    file: Option<&'a Path>,
}

impl AlertsArguments {
    /// Returns what the words name. `--mail ALERT` without another alert is `ALERT --mail`, as it was
    /// called before.
    fn named_alert(&self) -> NamedAlert<'_> {
        let file = self.mail.file();
        match (self.alert.as_deref(), file.and_then(Path::to_str)) {
            (None, Some(word)) => NamedAlert {
                alert: Some(word),
                file: None,
            },
            (alert, _) => NamedAlert { alert, file },
        }
    }
}

/// Returns the mail about an alert, and says which workloads it leaves out.
fn mail_about(
    session: &Session,
    snapshot: &HistorySnapshot,
    one: &Triaged,
) -> anyhow::Result<String> {
    let origins = origins(session, &snapshot.history, one)?;
    let Some(mail) = alert_mail(&snapshot.history, one, &snapshot.found, &origins) else {
        return Err(WrongInput(format!(
            "cannot write a mail: {} has no regression",
            one.alert.name
        ))
        .into());
    };
    let mailable = one.alert.mailable(&snapshot.history);
    for doubt in &mailable.doubts {
        let why = match doubt {
            Doubt::OneSeed => ONE_SEED.to_owned(),
            other => format!("note: the mail addresses no list: {}", other.describe()),
        };
        say(&why);
    }
    for (workload, doubts) in &mailable.left_out {
        let name = sanitize_line(workload);
        let why: Vec<&str> = doubts.iter().map(|doubt| doubt.describe()).collect();
        say(&format!(
            "note: the mail leaves out {name}: {}",
            why.join("; ")
        ));
        if doubts.contains(&Doubt::OneSeed) {
            say(&format!(
                "hint: measure it with more seeds: marvin compare OLD NEW --seeds 5 --workload {name}"
            ));
        }
    }
    Ok(mail)
}

/// Says which functions the worst regressions of an alert are in, as far as the exact machine
/// counted both kernels.
fn origins(session: &Session, history: &History, one: &Triaged) -> anyhow::Result<Vec<String>> {
    let store = session.open_store_read_only()?;
    let builds = [one.alert.after, one.alert.at].map(|kernel| history.kernel(kernel).build.clone());
    let left_out = one.alert.mailable(history).left_out;
    let mut all = Vec::new();
    for member in one
        .alert
        .worse()
        .filter(|member| {
            left_out
                .iter()
                .all(|(name, _)| *name != *member.key.workload)
        })
        .take(EXPLAINED_MAX)
    {
        all.extend(crate::measure::explain_stored(
            &store,
            &builds,
            &member.key.workload,
        )?);
    }
    Ok(all)
}
