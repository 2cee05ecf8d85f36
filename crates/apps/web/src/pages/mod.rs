//! Pages: fills templates with values of `compare` and `history`. `site.rs` decides on their
//! addresses.

mod alerts;
mod lab;
mod overview;
mod plots;
mod rows;
mod runs;
mod series;
mod tracks;
mod trust;

use askama::Template;
use document::{SCRIPT_STYLES, page_head, page_script};
use history::{History, KernelIx, Key, MachineIx};
use model::{MachineId, ReleaseLine, Verdict};

use crate::address::slug;

pub(crate) use alerts::alerts;
pub(crate) use lab::lab;
pub(crate) use overview::overview;
pub(crate) use rows::{RowRequest, Show};
pub(crate) use runs::{RUNS_MAX, Shown, get_artifact, run, runs};
pub(crate) use series::series;
pub(crate) use tracks::{TRACKS_MAX, TrackSeen, Tracks};

/// The parts of every page.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    /// What the page is about.
    pub(crate) title: String,
    /// The path to the top: `../` for each directory.
    pub(crate) root: String,
    /// Whether the page is self-contained: with its styles in it, and without links to other
    /// pages.
    pub(crate) is_alone: bool,
}

impl Frame {
    /// A page this many directories below the top.
    pub(crate) fn at(depth: usize, title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            root: "../".repeat(depth),
            is_alone: false,
        }
    }

    fn site(&self) -> Option<&str> {
        (!self.is_alone).then_some(&*self.root)
    }

    fn head(&self) -> String {
        page_head(self.site())
    }

    fn script(&self) -> String {
        page_script(self.site())
    }

    fn styles(&self) -> String {
        styles()
    }
}

/// Returns the styles of all pages but comparisons, which have their own.
pub(crate) fn styles() -> String {
    [include_str!("../../templates/style.css"), SCRIPT_STYLES].concat()
}

/// An error is a bug in Marvin, as everything is in memory.
pub(crate) type Rendered = Result<String, askama::Error>;

/// Renders a page. The template escapes text from guests and packages; this function replaces
/// control characters, as browsers in terminals exist, and those that change the writing direction.
fn render(page: &impl Template) -> Rendered {
    Ok(model::sanitize_text(&page.render()?))
}

#[derive(Template)]
#[template(path = "message.html")]
struct Message {
    frame: Frame,
    text: String,
}

/// Renders a page with a single message.
pub(crate) fn message(frame: Frame, text: &str) -> Rendered {
    render(&Message {
        frame,
        text: text.to_owned(),
    })
}

/// Renders all matching series as one self-contained page.
///
/// # Errors
/// Never in practice: everything is in memory.
pub fn history_page(
    history: &History,
    line: ReleaseLine,
    fits: impl Fn(&Key) -> bool,
) -> Result<String, askama::Error> {
    let frame = Frame {
        title: "History".to_owned(),
        root: String::new(),
        is_alone: true,
    };
    let keys: Vec<Key> = history
        .series()
        .map(|(key, _)| key.clone())
        .filter(|key| fits(key))
        .collect();
    series(frame, history, &[], line, &keys, &|_, _, _| Vec::new())
}

/// Returns twelve digits of a machine's id, for addresses and headings.
pub(crate) fn machine_digits(history: &History, machine: MachineIx) -> String {
    history.machine(machine).id.hex().chars().take(12).collect()
}

/// Returns the name of a machine for readers: its kind, and digits of its id only where the history
/// has others of this kind.
pub(crate) fn machine_name(history: &History, id: &MachineId) -> String {
    let digits: String = id.hex().chars().take(6).collect();
    let machines = history.machines();
    let Some(machine) = machines.iter().find(|machine| machine.id == *id) else {
        return digits;
    };
    let alike = machines.iter().filter(|one| one.kind == machine.kind);
    match alike.count() {
        1 => machine.kind.to_string(),
        _ => format!("{} {digits}", machine.kind),
    }
}

/// Returns the path of a series' page.
pub(crate) fn series_path(history: &History, key: &Key) -> String {
    format!(
        "s/{}/{}/{}.html",
        machine_digits(history, key.machine),
        slug(&key.track),
        slug(&key.workload)
    )
}

/// Returns the title of a kernel of a history.
pub(crate) fn title(history: &History, kernel: KernelIx) -> &str {
    &history.kernel(kernel).title
}

/// Returns the path of a comparison's page.
pub(crate) fn compare_path(
    history: &History,
    base: KernelIx,
    new: KernelIx,
    machine: MachineIx,
) -> String {
    format!(
        "c/{}/{}/{}.html",
        machine_digits(history, machine),
        slug(title(history, base)),
        slug(title(history, new))
    )
}

/// Returns the command that attributes a change to functions.
pub(crate) fn profile_command(
    history: &History,
    base: KernelIx,
    new: KernelIx,
    workload: &str,
) -> String {
    let [base, new] = [base, new].map(|kernel| history.kernel(kernel).build.exact_name());
    let suite = model::suite_of(workload).filter(|suite| suite.name != model::MICRO.name);
    let suite = suite.map_or_else(String::new, |suite| format!(" --suite {}", suite.name));
    format!("marvin profile {base} {new}{suite} --workload {workload}")
}

/// Returns the sign of a verdict: colour alone must not carry information.
pub(crate) fn verdict_glyph(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Worse => "▼",
        Verdict::Unclear(_) => "?",
        Verdict::Better | Verdict::Same => "▲",
    }
}

/// Returns the CSS class of a verdict.
pub(crate) fn verdict_class(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Worse => "worse",
        Verdict::Unclear(_) => "unclear",
        Verdict::Better | Verdict::Same => "better",
    }
}

/// Formats a difference with its sign.
pub(crate) fn percent(number: f64) -> String {
    if number.abs() < 0.005 {
        "0.00%".to_owned()
    } else {
        format!("{number:+.2}%")
    }
}

/// Formats a count with its noun.
pub(crate) fn count(number: usize, noun: &str) -> String {
    if number == 1 {
        format!("1 {noun}")
    } else {
        format!("{number} {noun}s")
    }
}
