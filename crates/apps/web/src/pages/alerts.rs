//! All alerts; open ones first.

use askama::Template;
use document::mail::CLONE;
use history::{
    Addresses, Alert, BisectHint, History, Triaged, bisect_hint, bisection_anywhere, change_size,
    mixed_words, records_of_alert, told_words,
};
use model::Verdict;

use super::{
    Frame, Rendered, compare_path, count, machine_name, profile_command, render, series_path,
    title, verdict_class, verdict_glyph,
};
use crate::address::slug;
use results::HistorySnapshot;

/// Limit on alerts of the page, and on series of one alert: keeps the page below 100 kB.
const ALERTS_MAX: usize = 40;
const MEMBERS_MAX: usize = 12;

#[derive(Template)]
#[template(path = "alerts.html")]
struct Page {
    frame: Frame,
    headline: String,
    alerts: Vec<Shown>,
    rest: Option<String>,
    /// Series whose unit or direction changed.
    mixed: Option<String>,
}

struct Shown {
    anchor: String,
    is_open: bool,
    title: String,
    words: String,
    decided: Option<(String, String)>,
    /// On which channels it was reported.
    told: Option<String>,
    members: Vec<Member>,
    /// How many members are not shown, and the page that has all.
    more: Option<(String, String)>,
    links: Vec<(&'static str, String)>,
    /// The command that attributes it to functions; `None` for failures, which have no profile.
    command: Option<String>,
    /// The findings of bisections.
    found: Vec<String>,
    /// How to bisect it: a text and commands.
    hunt: Option<(String, Vec<String>)>,
}

struct Member {
    class: &'static str,
    glyph: &'static str,
    name: String,
    href: String,
    size: String,
    machine: String,
    note: String,
}

/// Renders the page of all alerts.
pub(crate) fn alerts(frame: Frame, snapshot: &HistorySnapshot) -> Rendered {
    let mut ordered: Vec<&Triaged> = snapshot.alerts.iter().collect();
    ordered.sort_by_key(|triaged| !triaged.is_open());
    let open = ordered.iter().filter(|triaged| triaged.is_open()).count();
    let rest = ordered.len().saturating_sub(ALERTS_MAX);
    let page = Page {
        headline: format!("{}, {open} open", count(ordered.len(), "alert")),
        alerts: ordered
            .into_iter()
            .take(ALERTS_MAX)
            .map(|triaged| shown(snapshot, triaged))
            .collect(),
        mixed: mixed_words(&snapshot.history),
        rest: (rest > 0).then(|| {
            format!(
                "{} not shown here; marvin alerts lists all.",
                count(rest, "more alert")
            )
        }),
        frame,
    };
    render(&page)
}

fn member(history: &History, alert: &Alert, member: &history::Member) -> Member {
    Member {
        class: if member.gone.is_some() {
            "faint"
        } else {
            verdict_class(&member.verdict)
        },
        glyph: verdict_glyph(&member.verdict),
        name: member.key.workload.to_string(),
        href: series_path(history, &member.key),
        size: change_size(member.difference_percent, member.basis),
        machine: machine_name(history, &history.machine(member.key.machine).id),
        note: {
            let gone = member
                .gone
                .map(|at| format!("gone again since {}", title(history, at)));
            let doubt = if let Verdict::Unclear(why) = &member.verdict {
                Some(why.to_string())
            } else {
                None
            };
            alert
                .own_range(member, history)
                .into_iter()
                .chain(gone)
                .chain(doubt)
                .collect::<Vec<_>>()
                .join(", ")
        },
    }
}

fn shown(snapshot: &HistorySnapshot, triaged: &Triaged) -> Shown {
    let history = &snapshot.history;
    let alert = &triaged.alert;
    let (worse, better, gone) = alert.counts();
    let first = &alert.members[0].key;
    let more = alert.members.len().saturating_sub(MEMBERS_MAX);
    let all = compare_path(history, alert.after, alert.at, first.machine);
    Shown {
        anchor: slug(&alert.name),
        is_open: triaged.is_open(),
        title: alert.name.clone(),
        words: format!(
            "Between {} and {}{}: {worse} worse, {better} better, {gone} gone again.",
            title(history, alert.after),
            title(history, alert.at),
            if alert.is_boot() {
                ", which does not boot"
            } else {
                ""
            }
        ),
        decided: triaged.decided.as_ref().map(|decided| {
            let since = match triaged.more_since() {
                0 => String::new(),
                more => format!(" ({more} more are worse since)"),
            };
            (
                decided.triage.to_string(),
                format!("{}{since}", decided.note),
            )
        }),
        told: told_words(triaged, Addresses::Counted),
        members: alert
            .members
            .iter()
            .take(MEMBERS_MAX)
            .map(|one| member(history, alert, one))
            .collect(),
        more: (more > 0).then(|| (format!("and {more} more"), all.clone())),
        links: vec![("Compare both kernels", all)],
        command: alert
            .members
            .iter()
            .find(|member| member.difference_percent.is_some())
            .map(|member| profile_command(history, alert.after, alert.at, &member.key.workload)),
        found: records_of_alert(history, alert, &snapshot.found)
            .iter()
            .map(|found| found.describe())
            .collect(),
        hunt: triaged
            .needs_commit()
            .then(|| find_commit(history, alert))
            .flatten(),
    }
}

/// Returns how a reader finds the commit: in a clone of the public tree, since paths of this host
/// must not leak.
fn find_commit(history: &History, alert: &Alert) -> Option<(String, Vec<String>)> {
    if let Some(command) = bisection_anywhere(history, alert) {
        return Some((
            "To find the commit:".to_owned(),
            vec![CLONE.to_owned(), command],
        ));
    }
    match bisect_hint(history, alert, "")? {
        BisectHint::Impossible(why) => Some((format!("The commit: {why}."), Vec::new())),
        BisectHint::Command(_) | BisectHint::First { .. } => None,
    }
}
