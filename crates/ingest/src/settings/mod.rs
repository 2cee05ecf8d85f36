//! `marvin.toml` to what a site asks of its lab. Strict: what is not known is an error with its place, and a suggestion.

mod check;
mod keys;
mod schema;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use model::{
    Channel, ChannelKind, LabSettings, Points, Release, SUITES, SelectionError, StandingPlan, TreeOrigin, WatchedTree,
    WorkSettings, Workload,
};
use toml::de::DeTable;

pub use check::seconds;
pub use schema::settings_schema;

use crate::ManifestError;
use crate::tools::{Fault, did_you_mean};
use check::Record;

/// Largest file that is read, in bytes.
const BYTES_MAX: usize = 256 << 10;
/// Tags that are releases, without a word: those of Linux.
const RELEASES: &str = r"^v(\d+\.\d+(?:\.\d+)?)$";
/// The same with release candidates.
const CANDIDATES: &str = r"^v(\d+\.\d+(?:\.\d+)?(?:-rc\d+)?)$";

/// Reads what a site asks of its lab.
///
/// # Errors
/// When it is no TOML, has an unknown key, lacks one, or a value makes no sense; with its line and column.
pub fn settings(text: &str) -> Result<LabSettings, ManifestError> {
    let read = || {
        if text.len() > BYTES_MAX {
            return Err(Fault::new(&(0..0), format!("marvin.toml has at most {BYTES_MAX} bytes")));
        }
        let document = DeTable::parse(text).map_err(|error| {
            let message = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
            Fault::new(&error.span().unwrap_or_default(), format!("not TOML: {message}"))
        })?;
        whole(&Record::of(document.get_ref(), 0..0, &keys::FILE)?)
    };
    read().map_err(|fault| fault.in_text(text))
}

fn whole(file: &Record) -> Result<LabSettings, Fault> {
    let trees = file.records("tree").iter().map(tree).collect::<Result<Vec<_>, _>>()?;
    let names: Vec<&str> = trees.iter().map(|tree| tree.name.as_str()).collect();
    let plans = file.records("plan").iter().map(|record| plan(record, &names)).collect::<Result<_, _>>()?;
    let channels = file.records("notify").iter().map(channel).collect::<Result<_, _>>()?;
    for key in ["tree", "plan", "notify"] {
        no_name_twice(file.records(key))?;
    }
    Ok(LabSettings { plans, channels, work: work(file), listen: listen(file)?, trees })
}

fn no_name_twice(records: &[Record]) -> Result<(), Fault> {
    let mut seen = BTreeSet::new();
    match records.iter().find(|record| !seen.insert(record.text("name"))) {
        None => Ok(()),
        Some(twice) => {
            let name = twice.text("name").unwrap_or_default();
            Err(Fault::new(twice.span_of("name"), format!("there is another one of the name `{name}`")))
        }
    }
}

fn owned(record: &Record, key: &str) -> String {
    record.text(key).unwrap_or_default().to_owned()
}

fn tree(record: &Record) -> Result<WatchedTree, Fault> {
    let origin = match (record.text("git"), record.texts("debian")) {
        (Some(place), None) => TreeOrigin::Git { place: place.to_owned(), tags: tags(record)? },
        (None, Some(series)) => {
            let is_number =
                |text: &str| text.split('.').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
            if let Some((span, wrong)) = series.iter().find(|(_, text)| !is_number(text)) {
                return Err(Fault::new(
                    span,
                    format!("expected a version such as 6.12, not `{}`", wrong.escape_debug()),
                ));
            }
            TreeOrigin::Debian { series: record.words("debian"), flavour: owned(record, "flavour") }
        }
        _ => return Err(Fault::new(&record.span, "a [[tree]] has either `git` or `debian`")),
    };
    let points = match record.text("points") {
        Some("every") => Points::Every,
        Some("never") => Points::Never,
        _ => Points::Monthly,
    };
    let since = record.text("since");
    if let Some(since) = since.filter(|text| !text.starts_with(|c: char| c.is_ascii_digit())) {
        let what = format!("expected a version such as 6.1, not `{}`", since.escape_debug());
        return Err(Fault::new(record.span_of("since"), what));
    }
    let since = since.map(Release::of);
    Ok(WatchedTree { name: owned(record, "name"), origin, since, points, config: owned(record, "config") })
}

/// Returns the pattern of the tags that are releases.
fn tags(record: &Record) -> Result<String, Fault> {
    let Some(written) = record.text("tags") else {
        return Ok(if record.flag("candidates") { CANDIDATES } else { RELEASES }.to_owned());
    };
    let span = record.span_of("tags");
    let pattern = regex_lite::RegexBuilder::new(written).size_limit(1 << 20).build();
    match pattern.map_err(|error| Fault::new(span, format!("not a regular expression: {error}")))?.captures_len() {
        1 => Err(Fault::new(span, r"a pattern of tags has a group for the version: ^v(\d+\.\d+)$")),
        _ if record.flag("candidates") => Err(Fault::new(
            record.span_of("candidates"),
            "`tags` says already which tags are taken: leave `candidates` out",
        )),
        _ => Ok(written.to_owned()),
    }
}

fn plan(record: &Record, trees: &[&str]) -> Result<StandingPlan, Fault> {
    if let Some((span, unknown)) =
        record.texts("trees").unwrap_or_default().iter().find(|(_, t)| !trees.contains(&t.as_str()))
    {
        let what = format!("no [[tree]] has the name `{}`{}", unknown.escape_debug(), did_you_mean(trees, unknown));
        return Err(Fault::new(span, what));
    }
    let name = record.text("suite").unwrap_or_default();
    let suite = model::suite(name).ok_or_else(|| {
        let names: Vec<&str> = SUITES.iter().map(|suite| suite.name).collect();
        let what = format!("no suite `{name}`{}; there are {}", did_you_mean(&names, name), names.join(", "));
        Fault::new(record.span_of("suite"), what)
    })?;
    let mut workloads: Vec<&'static Workload> = Vec::new();
    for (span, word) in record.texts("workloads").unwrap_or_default() {
        let known = || suite.workloads.iter().flat_map(|workload| [workload.name, model::group_of(workload)]);
        let chosen = model::select(suite, std::slice::from_ref(word)).map_err(|error: SelectionError| {
            Fault::new(span, format!("{error}{}", did_you_mean(&known().collect::<Vec<_>>(), word)))
        })?;
        workloads.extend(
            chosen.into_iter().filter(|new| workloads.iter().all(|old| old.name != new.name)).collect::<Vec<_>>(),
        );
    }
    // In the suite's order, whatever the order of the words: equal plans are equal work.
    let of_plan =
        |workload: &&'static Workload| workloads.is_empty() || workloads.iter().any(|w| w.name == workload.name);
    let in_order = suite.workloads.iter().filter(of_plan).collect();
    let named = record.words("trees");
    Ok(StandingPlan {
        name: owned(record, "name"),
        trees: if named.is_empty() { trees.iter().map(|&tree| tree.to_owned()).collect() } else { named },
        suite,
        workloads: in_order,
        seeds: record.whole("seeds"),
        priority: i64::try_from(record.whole("priority")).unwrap_or(i64::MAX),
    })
}

fn work(file: &Record) -> WorkSettings {
    let work = file.one("work");
    WorkSettings {
        deadline_s: work.whole("deadline"),
        attempts_max: u32::try_from(work.whole("attempts")).unwrap_or(u32::MAX),
    }
}

fn channel(record: &Record) -> Result<Channel, Fault> {
    let kind = match (record.texts("mail"), record.text("webhook"), record.texts("command")) {
        (Some(to), None, None) => {
            if let Some((span, wrong)) = to.iter().find(|(_, address)| !is_address(address)) {
                return Err(Fault::new(span, format!("expected an address of mail, not `{}`", wrong.escape_debug())));
            }
            let from = owned(record, "from");
            ChannelKind::Mail { to: record.words("mail"), from, sendmail: record.words("sendmail") }
        }
        (None, Some(url), None) => {
            if !["http://", "https://"].iter().any(|scheme| url.starts_with(scheme)) {
                return Err(Fault::new(
                    record.span_of("webhook"),
                    "expected an address that begins with http:// or https://",
                ));
            }
            ChannelKind::Webhook { url: url.to_owned() }
        }
        (None, None, Some(_)) => ChannelKind::Command { command: record.words("command") },
        _ => return Err(Fault::new(&record.span, "a [[notify]] has exactly one of `mail`, `webhook` and `command`")),
    };
    Ok(Channel { name: owned(record, "name"), kind })
}

/// Tells whether a text can stand in a header of a mail as an address.
fn is_address(text: &str) -> bool {
    !text.starts_with('-') && text.chars().all(|c| c.is_ascii_graphic() && !",;<>\"".contains(c))
}

fn listen(file: &Record) -> Result<Option<std::net::SocketAddr>, Fault> {
    let record = file.one("serve");
    let fault = |_| Fault::new(record.span_of("listen"), "expected an address with a port such as 127.0.0.1:8080");
    record.text("listen").map(str::parse).transpose().map_err(fault)
}
