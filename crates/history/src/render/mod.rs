//! Histories and alerts as text, mails and JSON documents. `web` renders pages.

mod documents;
mod mail;
mod text;

pub use documents::{
    AlertDocument, AlertsDocument, ChangeDocument, HistoryDocument, MemberDocument, PointDocument, SeedDocument,
    SeriesDocument, TriageDocument, alert_document, alerts_document, documents, history_json, schemas, series_document,
};
pub use mail::alert_mail;
pub use text::{
    alerts_text, aside_words, basis_words, change_size, history_text, measured_by, mixed_words, no_change, range,
    sparkline, why_none,
};
