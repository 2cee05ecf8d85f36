//! Histories and alerts as text, mails and JSON documents. `web` renders pages.

mod documents;
mod mail;
mod regression;
mod text;
mod told;

pub use documents::{
    AbsentDocument, AlertDocument, AlertsDocument, ChangeDocument, HistoryDocument,
    KernelNameDocument, MemberDocument, RunListDocument, SeriesDocument, ToldDocument,
    TriageDocument, alert_document, alerts_document, history_document, history_json, schemas,
};
pub use mail::alert_mail;
pub use regression::{RegressionText, digest_text, regression_text};
pub use text::{
    alerts_text, aside_words, basis_words, change_size, history_text, measured_by, mixed_words,
    no_change, range, sparkline, why_none,
};
pub use told::{Addresses, told_words};
