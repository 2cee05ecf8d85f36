//! What goes out about an alert by itself: for people of the lab, and for those in charge of the code
//! if nothing speaks against it.

use document::layout::Page;
use document::number::signed_percent;

use super::mail::{subject, write_body};
use crate::bisect_hint::introduced;
use crate::{BisectionRecord, Doubt, History, MailableAlert, Triaged};

/// What the kernel's developers call a regression of performance.
const DEFINITION: &str = "The kernel's rules for regressions \
(Documentation/admin-guide/reporting-regressions.rst) count a slower kernel as one if the difference is \
significant; 5 % in a micro-benchmark hardly are, unless a broad benchmark loses more than 1 %, too.";

/// A regression as a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegressionText {
    /// One line.
    pub subject: String,
    /// What was measured, without a greeting of its own; private notes are not in it.
    pub body: String,
    /// Why no list may get it by itself; empty if one may.
    pub doubts: Vec<Doubt>,
}

/// Returns the text about an alert; `None` if there is no regression. `found` are the results of
/// bisections.
#[must_use]
pub fn regression_text(
    history: &History,
    triaged: &Triaged,
    found: &[BisectionRecord],
) -> Option<RegressionText> {
    let MailableAlert { alert, doubts, .. } = triaged.alert.mailable(history);
    let subject = subject(history, &alert)?;
    let mut page = Page::default();
    let shown = Triaged {
        alert,
        decided: triaged.decided.clone(),
        told: Vec::new(),
    };
    write_body(&mut page, history, &shown, found, &[]);
    page.blank();
    page.paragraph(0, DEFINITION);
    if let Some(range) = introduced(history, &shown.alert).filter(|_| doubts.is_empty()) {
        page.blank();
        page.line(format!("#regzbot introduced: {range}"));
    }
    Some(RegressionText {
        subject,
        body: page.finish(),
        doubts,
    })
}

/// Returns the open alerts, each in a line, worst first; `None` if there is none.
#[must_use]
pub fn digest_text(history: &History, alerts: &[Triaged]) -> Option<String> {
    let mut open: Vec<&Triaged> = alerts.iter().filter(|one| one.is_open()).collect();
    open.sort_by(|a, b| b.alert.weight().total_cmp(&a.alert.weight()));
    let mut text = String::new();
    for one in &open {
        let alert = one.alert.of_regressions(history);
        let Some(worst) = alert.worse().next() else {
            continue;
        };
        let size = worst
            .difference_percent
            .map_or_else(|| "it fails".to_owned(), signed_percent);
        text.extend([
            &*one.alert.name,
            ": ",
            &subject(history, &alert).unwrap_or_default(),
            " (",
            &size,
            ")\n",
        ]);
    }
    (!text.is_empty()).then_some(text)
}
