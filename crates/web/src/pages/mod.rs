//! Pages: values of `report` put into words and templates. Where a page lies is `site.rs`' business.

mod alerts;
mod draw;
mod overview;
mod rows;
mod runs;
mod series;
mod trust;

use askama::Template;
use history::{History, Key};
use model::{Line, Verdict};

use crate::address::slug;

pub(crate) use alerts::alerts;
pub(crate) use overview::overview;
pub(crate) use rows::{Asked, Show};
pub(crate) use runs::{RUNS_MAX, Shown, run, runs};
pub(crate) use series::series;

/// What all pages have.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    /// What the page is about.
    pub(crate) title: String,
    /// The way to the top: `../` for each folder.
    pub(crate) root: String,
    /// Whether it stands alone: with its styles in it, and no way to other pages.
    pub(crate) is_alone: bool,
}

impl Frame {
    /// A page that lies so many folders below the top.
    pub(crate) fn at(depth: usize, title: impl Into<String>) -> Self {
        Self { title: title.into(), root: "../".repeat(depth), is_alone: false }
    }
}

/// A page that could not be filled in: a bug of ours, as everything is in memory.
pub(crate) type Rendered = Result<String, askama::Error>;

/// Fills a page in. What came from guests and packages is escaped by the template; what a terminal would obey, for there are
/// browsers in terminals, is taken out here, once for all pages.
fn finished(page: &impl Template) -> Rendered {
    Ok(report::plain::printable(&page.render()?))
}

#[derive(Template)]
#[template(path = "message.html")]
struct Message {
    frame: Frame,
    text: String,
}

/// Renders a page that says one thing.
pub(crate) fn message(frame: Frame, text: &str) -> Rendered {
    finished(&Message { frame, text: text.to_owned() })
}

/// Renders all series that fit as one page with nothing outside of it.
///
/// # Errors
/// Never in practice: everything is in memory.
pub fn history_page(history: &History, line: Line, fits: impl Fn(&Key) -> bool) -> Result<String, askama::Error> {
    let frame = Frame { title: "History".to_owned(), root: String::new(), is_alone: true };
    let keys: Vec<Key> = history.series().map(|(key, _)| key.clone()).filter(|key| fits(key)).collect();
    series(frame, history, &[], line, &keys)
}

/// Twelve digits of a machine's id: what addresses and heads say.
pub(crate) fn machine_digits(history: &History, machine: usize) -> String {
    history.machines()[machine].id.hex().chars().take(12).collect()
}

/// Where a series' page lies.
pub(crate) fn series_path(history: &History, key: &Key) -> String {
    format!("s/{}/{}/{}.html", machine_digits(history, key.machine), slug(&key.track), slug(&key.workload))
}

/// Where a comparison's page lies.
pub(crate) fn compare_path(history: &History, base: usize, new: usize, machine: usize) -> String {
    let name = |kernel: usize| slug(&history.kernel(kernel).title);
    format!("c/{}/{}/{}.html", machine_digits(history, machine), name(base), name(new))
}

/// The command that says which functions a change comes from.
pub(crate) fn profile_command(history: &History, base: usize, new: usize, workload: &str) -> String {
    let of = |kernel: usize| history.kernel(kernel).build.exact_name();
    let declares = |suite: &&std::sync::Arc<model::Suite>| suite.workloads.iter().any(|known| known.name == workload);
    let suite = model::SUITES.iter().find(declares).filter(|suite| suite.name != model::MICRO.name);
    let suite = suite.map_or_else(String::new, |suite| format!(" --suite {}", suite.name));
    format!("marvin profile {} {}{suite} --workload {workload}", of(base), of(new))
}

/// The sign of a verdict that a change can have: nothing is said by colour alone.
pub(crate) fn verdict_glyph(verdict: &Verdict) -> &'static str {
    if *verdict == Verdict::Worse { "▼" } else { "▲" }
}

/// Its class.
pub(crate) fn verdict_class(verdict: &Verdict) -> &'static str {
    if *verdict == Verdict::Worse { "worse" } else { "better" }
}

/// Writes a difference with its sign.
pub(crate) fn percent(number: f64) -> String {
    if number.abs() < 0.005 { "0.00%".to_owned() } else { format!("{number:+.2}%") }
}

/// Writes a count with its noun.
pub(crate) fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}
