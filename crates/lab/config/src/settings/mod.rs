//! Parses `marvin.toml` into settings. Strict: an unknown key is an error with its position and a
//! suggestion.

mod archives;
mod batch;
mod build;
mod channel;
mod check;
mod deploy;
mod keys;
mod login;
mod machine;
mod power;
mod schema;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use model::{
    CHECK_PLAN, ExactCpu, MarvinConfig, Points, Release, SUITES, SelectionError, StandingPlan,
    TOOL, ToolRows, TreeOrigin, USUAL_MACHINE, WatchedTree, WorkSettings,
};
use toml::de::DeTable;

pub use check::seconds;
pub use schema::settings_schema;

use crate::ManifestError;
use crate::toml_document::{Mistake, did_you_mean};
use check::Record;

/// Largest marvin.toml, in bytes.
pub const SETTINGS_MAX: usize = 256 << 10;
/// The default pattern of release tags: those of Linux.
const RELEASES: &str = r"^v(\d+\.\d+(?:\.\d+)?)$";
/// The same with release candidates.
const CANDIDATES: &str = r"^v(\d+\.\d+(?:\.\d+)?(?:-rc\d+)?)$";

/// Parses settings, with the external tools that plans may name.
///
/// # Errors
/// If it is no TOML, has an unknown key, lacks one, or a value is invalid; with line and column.
pub fn settings(text: &str, tools: &ToolRows) -> Result<MarvinConfig, ManifestError> {
    let read = || {
        if text.len() > SETTINGS_MAX {
            return Err(Mistake::new(
                &(0..0),
                format!("marvin.toml has at most {SETTINGS_MAX} bytes"),
            ));
        }
        let document = DeTable::parse(text).map_err(|error| {
            let message = error
                .message()
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ");
            Mistake::new(
                &error.span().unwrap_or_default(),
                format!("not TOML: {message}"),
            )
        })?;
        whole(&Record::read(document.get_ref(), 0..0, &keys::FILE)?, tools)
    };
    read().map_err(|fault| fault.in_text(text))
}

fn whole(file: &Record, tools: &ToolRows) -> Result<MarvinConfig, Mistake> {
    let trees = file
        .records("tree")
        .iter()
        .map(tree)
        .collect::<Result<Vec<_>, _>>()?;
    let names: Vec<&str> = trees.iter().map(|tree| tree.name.as_str()).collect();
    let channels = file
        .records("notify")
        .iter()
        .map(channel::channel)
        .collect::<Result<_, _>>()?;
    let servers = file
        .records("machine")
        .iter()
        .map(machine::server)
        .collect::<Result<Vec<_>, _>>()?;
    let images = file
        .records("image")
        .iter()
        .map(deploy::image)
        .collect::<Result<_, _>>()?;
    let machines: Vec<&str> = [USUAL_MACHINE]
        .into_iter()
        .chain(servers.iter().map(|one| one.name.as_str()))
        .collect();
    let known = Known {
        trees: &names,
        machines: &machines,
        tools,
    };
    let plans = file
        .records("plan")
        .iter()
        .map(|record| plan(record, &known))
        .collect::<Result<_, _>>()?;
    for key in ["tree", "plan", "notify", "track", "machine", "image"] {
        no_name_twice(file.records(key))?;
    }
    Ok(MarvinConfig {
        plans,
        channels,
        regressions: channel::regressions(file)?,
        servers,
        images,
        work: work(file),
        builds: file.one("work").text("builds").map(Into::into),
        make_args: build::make_args(file.one("build"))?,
        archives: archives::archives(file)?,
        cpu: exact_cpu(file),
        batch: batch::batch(file)?,
        listen: listen(file)?,
        trees,
    })
}

fn no_name_twice(records: &[Record]) -> Result<(), Mistake> {
    let mut seen = BTreeSet::new();
    match records
        .iter()
        .find(|record| !seen.insert(record.text("name")))
    {
        None => Ok(()),
        Some(twice) => {
            let name = twice.text("name").unwrap_or_default();
            Err(Mistake::new(
                twice.span_of("name"),
                format!("there is another one of the name `{name}`"),
            ))
        }
    }
}

fn owned(record: &Record, key: &str) -> String {
    record.text(key).unwrap_or_default().to_owned()
}

fn tree(record: &Record) -> Result<WatchedTree, Mistake> {
    let origin = match (record.text("git"), record.texts("debian")) {
        (Some(place), None) => TreeOrigin::Git {
            place: place.to_owned(),
            tags: if record.has("branches") && !record.has("tags") {
                String::new()
            } else {
                tags(record)?
            },
        },
        (None, Some(series)) => {
            if let Some((span, wrong)) = series.iter().find(|(_, text)| {
                !text
                    .split('.')
                    .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
            }) {
                return Err(Mistake::new(
                    span,
                    format!(
                        "expected a version such as 6.12, not `{}`",
                        wrong.escape_debug()
                    ),
                ));
            }
            TreeOrigin::Debian {
                series: record.strings("debian"),
                flavour: owned(record, "flavour"),
            }
        }
        _ => {
            return Err(Mistake::new(
                &record.span,
                "a [[tree]] has either `git` or `debian`",
            ));
        }
    };
    let points = match record.text("points") {
        Some("every") => Points::Every,
        Some("never") => Points::Never,
        _ => Points::Monthly,
    };
    let since = record.text("since");
    if let Some(since) = since.filter(|text| !text.starts_with(|c: char| c.is_ascii_digit())) {
        let what = format!(
            "expected a version such as 6.1, not `{}`",
            since.escape_debug()
        );
        return Err(Mistake::new(record.span_of("since"), what));
    }
    let since = since.map(Release::parse);
    if let Some((span, wrong)) = record
        .texts("branches")
        .unwrap_or_default()
        .iter()
        .find(|(_, branch)| !is_branch(branch))
    {
        let what = format!(
            "expected the name of a branch such as master, not `{}`",
            wrong.escape_debug()
        );
        return Err(Mistake::new(span, what));
    }
    if record.has("branches") && record.has("debian") {
        let what = "`branches` are those of a `git` tree";
        return Err(Mistake::new(record.span_of("branches"), what));
    }
    Ok(WatchedTree {
        branches: record.strings("branches"),
        every_s: record.whole("every"),
        name: owned(record, "name"),
        origin,
        since,
        points,
        config: owned(record, "config"),
    })
}

/// Returns whether git takes a text as the name of a branch, and as nothing else.
fn is_branch(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/+".contains(&byte);
    text.bytes().all(is_plain)
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && !text.contains("..")
}

/// Returns the pattern of release tags.
fn tags(record: &Record) -> Result<String, Mistake> {
    let Some(written) = record.text("tags") else {
        return Ok(if record.flag("candidates") {
            CANDIDATES
        } else {
            RELEASES
        }
        .to_owned());
    };
    let span = record.span_of("tags");
    let pattern = regex_lite::RegexBuilder::new(written)
        .size_limit(1 << 20)
        .build();
    match pattern
        .map_err(|error| Mistake::new(span, format!("not a regular expression: {error}")))?
        .captures_len()
    {
        1 => Err(Mistake::new(
            span,
            r"a pattern of tags has a group for the version: ^v(\d+\.\d+)$",
        )),
        _ if record.flag("candidates") => Err(Mistake::new(
            record.span_of("candidates"),
            "`tags` says already which tags are taken: leave `candidates` out",
        )),
        _ => Ok(written.to_owned()),
    }
}

/// What a plan may name.
struct Known<'a> {
    trees: &'a [&'a str],
    machines: &'a [&'a str],
    tools: &'a ToolRows,
}

fn plan(record: &Record, known: &Known<'_>) -> Result<StandingPlan, Mistake> {
    let Known {
        trees,
        machines,
        tools,
    } = known;
    if let Some((span, unknown)) = record
        .texts("trees")
        .unwrap_or_default()
        .iter()
        .find(|(_, t)| !trees.contains(&t.as_str()))
    {
        let what = format!(
            "no [[tree]] has the name `{}`{}",
            unknown.escape_debug(),
            did_you_mean(trees, unknown)
        );
        return Err(Mistake::new(span, what));
    }
    if record.text("name") == Some(CHECK_PLAN) {
        let what = format!(
            "`{CHECK_PLAN}` is the plan of jobs that check servers: give the plan another name"
        );
        return Err(Mistake::new(record.span_of("name"), what));
    }
    let machine = owned(record, "on");
    if !machines.contains(&machine.as_str()) {
        let what = format!(
            "no [[machine]] has the name `{}`{}; without one: {USUAL_MACHINE}",
            machine.escape_debug(),
            did_you_mean(machines, &machine)
        );
        return Err(Mistake::new(record.span_of("on"), what));
    }
    let choice = model::choose(
        tools,
        record.text("suite").unwrap_or_default(),
        &record.strings("workloads"),
    )
    .map_err(|error| wrong_choice(record, tools, &error))?;
    let named = record.strings("trees");
    Ok(StandingPlan {
        name: owned(record, "name"),
        trees: if named.is_empty() {
            trees.iter().map(|&tree| tree.to_owned()).collect()
        } else {
            named
        },
        workloads: choice.terms(tools),
        suite: choice.suite,
        seeds: record.whole("seeds"),
        machine,
        priority: i64::try_from(record.whole("priority")).unwrap_or(i64::MAX),
    })
}

/// Names the invalid word of a plan, and suggests a valid one.
fn wrong_choice(record: &Record, tools: &ToolRows, error: &SelectionError) -> Mistake {
    let at = |meant: &str| {
        let terms = record.texts("workloads").unwrap_or_default().iter();
        let mut found = terms.filter(|(_, word)| word.strip_prefix(TOOL).unwrap_or(word) == meant);
        found
            .next()
            .map_or_else(|| record.span_of("workloads"), |(span, _)| span)
    };
    match error {
        SelectionError::UnknownSuite(name) => {
            let names: Vec<&str> = SUITES.iter().map(|suite| suite.name).collect();
            let what = format!(
                "{error}{}; there are {}",
                did_you_mean(&names, name),
                names.join(", ")
            );
            Mistake::new(record.span_of("suite"), what)
        }
        SelectionError::UnknownTool(word) => {
            let known: Vec<&str> = tools.terms.keys().map(String::as_str).collect();
            let what = format!(
                "{error}{}; `marvin tools` lists them",
                did_you_mean(&known, word)
            );
            Mistake::new(at(word), what)
        }
        SelectionError::UnknownWorkload(word) => {
            let suite = record.text("suite").and_then(model::suite);
            let of_suite = suite.into_iter().flat_map(|suite| &suite.workloads);
            let known: Vec<&str> = of_suite
                .flat_map(|one| [&*one.name, model::group_of(one)])
                .collect();
            Mistake::new(at(word), format!("{error}{}", did_you_mean(&known, word)))
        }
        SelectionError::Nothing => Mistake::new(at(""), error.to_string()),
    }
}

fn work(file: &Record) -> WorkSettings {
    let work = file.one("work");
    WorkSettings {
        deadline_s: work.whole("deadline"),
        attempts_max: u32::try_from(work.whole("attempts")).unwrap_or(u32::MAX),
        is_of_named_trees: work.flag("only_named_trees"),
    }
}

fn exact_cpu(file: &Record) -> ExactCpu {
    let name = file.one("exact").text("cpu");
    // The key takes no other words than these names.
    name.and_then(|name| name.parse().ok()).unwrap_or_default()
}

fn listen(file: &Record) -> Result<Option<std::net::SocketAddr>, Mistake> {
    let record = file.one("serve");
    record
        .text("listen")
        .map(str::parse)
        .transpose()
        .map_err(|_| {
            Mistake::new(
                record.span_of("listen"),
                "expected an address with a port such as 127.0.0.1:8080",
            )
        })
}
