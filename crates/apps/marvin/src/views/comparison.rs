//! Prints a comparison, and pins its runs so that `marvin gc` keeps them.

use model::{Observation, RunId};
use monitors::{Monitored, Watched};
use store::{Location, Store};

use crate::options::ComparisonOptions;
use crate::session::{Answer, Format, Session};

/// Compares observations of all sides; the error says why one is missing.
pub(crate) fn compare_observations(
    subject: String,
    heads: &[[String; 2]],
    seen: &[Observation],
    without: Option<String>,
) -> Monitored {
    if let Some(why) = without {
        let empty = Monitored::new(&[], Vec::new());
        return Monitored {
            subject: format!("{subject}: nothing: {why}"),
            ..empty
        };
    }
    let watched: Vec<Watched<'_>> = heads
        .iter()
        .cloned()
        .zip(seen)
        .map(|(head, observation)| Watched { head, observation })
        .collect();
    Monitored {
        subject,
        ..Monitored::new(&watched, Vec::new())
    }
}

/// Renders a comparison as requested and writes it; the mail goes to its own file, if it has one.
pub(crate) fn write_comparison(
    comparison: &compare::Comparison,
    how: &ComparisonOptions,
    answer: Answer,
    mail: Option<Answer>,
) -> anyhow::Result<()> {
    if let Some(file) = mail {
        file.write(compare::render::mail::mail(comparison))?;
    }
    let document = compare::render::comparison(comparison, &how.view());
    let text = match how.format {
        _ if how.mail.is_answer() => compare::render::mail::mail(comparison),
        Format::Text => document.text(&answer.styles()),
        Format::Markdown => document.markdown(),
        Format::Html => document.html()?,
        Format::Json => compare::render::json(comparison)?,
    };
    answer.write(&text)
}

/// Marks runs as referenced by a report, so that `marvin gc` keeps them.
pub(crate) fn pin_runs(session: &Session, comparison: &compare::Comparison) {
    // Where nothing can be written, gc cannot remove them either.
    if matches!(session.store_location(), Ok(Location::Home(_)))
        && session.is_read_only().unwrap_or(false)
    {
        return;
    }
    let runs: Vec<&RunId> = comparison
        .kernels()
        .flat_map(|kernel| &kernel.runs)
        .map(|run| &run.id)
        .collect();
    let left = session
        .store_location()
        .and_then(|location| Ok(Store::open(location)?.pin(&runs, &comparison.command)?));
    if let Err(error) = left {
        // The report is written; without write access, Marvin cannot protect the runs from removal.
        crate::say(&format!(
            "note: cannot mark these runs as referenced: {error:#}"
        ));
    }
}
