//! `marvin import lkp-mail`: what a mail of the kernel test robot says, and whether Marvin's
//! workloads on its path agree; `judgement.rs` decides that.

use std::path::Path;

use ::compare::Comparison;
use document::layout::{Page, WIDTH, command_lines};
use kernel::PatchesError;
use model::declared_transfers;
use results::published::{PublishedReport, workloads_on_path};

use super::judgement::{MeasuredRow, judge, names_of};
use crate::commands::compare::{CompareArguments, measure};
use crate::exit::{Exit, WrongInput};
use crate::options::quote;
use crate::session::Session;

/// Most stats that are listed.
const VALUES: usize = 5;

/// The option for more seeds than one.
pub(super) const SEEDS: &str = "--seeds";

/// What is to be measured.
pub(super) struct Wanted<'a> {
    /// One kernel before the commit and one with it; none to measure nothing.
    pub(super) kernels: &'a [String],
    /// The only workload, instead of those on the path.
    pub(super) workload: Option<&'a str>,
    /// Options of `marvin compare`: the tree and the kernel config.
    pub(super) options: Vec<String>,
}

/// Reads the mail, and measures if two kernels are given.
pub(super) fn check(session: &Session, file: &Path, wanted: &Wanted) -> anyhow::Result<Exit> {
    if !matches!(wanted.kernels, [] | [_, _]) {
        let text = "give two kernels behind the mail: one before the commit, and one with it";
        return Err(WrongInput(text.to_owned()).into());
    }
    let text = read(session, file)?;
    let report = PublishedReport::read(&text)
        .map_err(|why| WrongInput(format!("{}: {why}", file.display())))?;
    let workloads = workloads_on_path(&report);
    let answer = session.answer(None)?;
    let mut page = Page::default();
    describe(&report, &workloads, &mut page);
    let [base, new] = wanted.kernels else {
        next(file, &report, &workloads, &mut page);
        answer.write(page.finish())?;
        return Ok(Exit::Fine);
    };
    let chosen = match wanted.workload {
        Some(workload) => vec![workload.to_owned()],
        None => workloads,
    };
    if chosen.is_empty() {
        page.line("Nothing to measure: no workload is on this path.");
        answer.write(page.finish())?;
        return Ok(Exit::Unclear);
    }
    let mut rows = Vec::new();
    for workload in &chosen {
        let arguments = arguments(base, new, workload, &wanted.options)?;
        let (comparison, functions) = measure(session, &arguments)?;
        if let Some(why) = why_not_measured(&comparison) {
            page.hanging("Verdict:   ", &why);
            answer.write(page.finish())?;
            return Ok(Exit::Unclear);
        }
        rows.extend(MeasuredRow::of(&comparison, &functions));
    }
    let exit = judge(&report, &rows, &mut page);
    answer.write(page.finish())?;
    Ok(exit)
}

/// Says why two kernels cannot differ, if they are equal.
fn why_not_measured(comparison: &Comparison) -> Option<String> {
    if comparison.others[0].kernel.build.id != comparison.base.build.id {
        return None;
    }
    let equal =
        || "not measured: both kernels are equal, so the commit is in both or in none".to_owned();
    Some(comparison.not_compiled_text().unwrap_or_else(equal))
}

/// Returns the text of the mail.
fn read(session: &Session, file: &Path) -> anyhow::Result<String> {
    let scratch = session.home()?.join("scratch");
    kernel::read_mail_text(file, &scratch).map_err(|error| match error {
        PatchesError::Kernel(error) => error.into(),
        PatchesError::Unreadable { detail, .. } => {
            WrongInput(format!("cannot read {}: {detail}", file.display())).into()
        }
        PatchesError::TooMuch { limit, .. } => WrongInput(limit).into(),
        mistake => WrongInput(mistake.to_string()).into(),
    })
}

/// Returns the arguments of the comparison on the machine of the workload's suite, with one seed
/// unless the options say more; of several processors one interleaving proves nothing.
fn arguments(
    base: &str,
    new: &str,
    workload: &str,
    options: &[String],
) -> anyhow::Result<CompareArguments> {
    let mut words = vec![base, new, "--workload", workload, "--profile"];
    words.extend(options.iter().map(String::as_str));
    // Its suite has several processors.
    if declared_transfers(workload).is_some() {
        words.extend(["--on", "exact-smp"]);
    } else if !options.iter().any(|word| word == SEEDS) {
        words.push("--quick");
    }
    CompareArguments::of_words(words)
}

/// Says what the report says.
fn describe(report: &PublishedReport, workloads: &[String], page: &mut Page) {
    let kind = if report.is_regression {
        "regression"
    } else {
        "improvement"
    };
    page.hanging(
        "Published: ",
        &format!("{} {}% {kind}", report.metric, report.change_percent),
    );
    let values = values(report);
    if !values.is_empty() {
        page.hanging("Values:    ", &values.join(", "));
    }
    page.hanging(
        "Commit:    ",
        &format!("{} (\"{}\")", short(&report.commit), report.title),
    );
    if let Some(percent) = report.instructions_percent() {
        let cycles = report.cycles_percent().unwrap_or(percent);
        let text = format!("an operation has {percent:+.1}% instructions, {cycles:+.1}% cycles");
        page.hanging("Counters:  ", &text);
    }
    let functions = names_of(report);
    if !functions.is_empty() {
        let named: Vec<String> = functions
            .iter()
            .map(|(function, points)| format!("{function} {points:+.1}"))
            .collect();
        page.hanging("Functions: ", &format!("{} points", named.join(", ")));
    }
    let path = if workloads.is_empty() {
        let test = match report.parameter("test") {
            Some(test) => format!("{} {test}", report.testcase),
            None => format!("{}, and the mail names no test", report.testcase),
        };
        format!("no workload of Marvin is on that of {test}")
    } else {
        workloads.join(", ")
    };
    page.hanging("Path:      ", &path);
}

/// Returns the means of the published metric, of the test's other stats and of instructions for each
/// cycle, before the commit and with it.
fn values(report: &PublishedReport) -> Vec<String> {
    let own = format!("{}.", report.testcase);
    let (metric, others): (Vec<_>, Vec<_>) = report
        .stats
        .iter()
        .filter(|stat| stat.name.starts_with(&own) || stat.name.ends_with(".ipc"))
        .partition(|stat| stat.name == report.metric);
    let all = metric.into_iter().chain(others).take(VALUES);
    all.map(|stat| format!("{} {} to {}", stat.name, stat.base, stat.new))
        .collect()
}

fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}

/// Says how to check it.
fn next(file: &Path, report: &PublishedReport, workloads: &[String], page: &mut Page) {
    if workloads.is_empty() {
        return;
    }
    let parent = report.parent.as_deref().unwrap_or("PARENT");
    page.line("To measure it, with two releases around the commit, or in a tree:");
    for kernels in [
        "BASE NEW".to_owned(),
        format!("git:{parent} git:{}", short(&report.commit)),
    ] {
        let file = quote(&file.to_string_lossy());
        let command = format!("marvin import lkp-mail {file} {kernels}");
        page.line(format!(
            "  {}",
            command_lines(&command, WIDTH - 2).join("\n  ")
        ));
    }
}

#[cfg(test)]
mod tests {
    use ::compare::fixtures::{Ending, Subject, build, question};
    use ::compare::{Comparison, Warning};

    use super::why_not_measured;

    /// Compares two kernels, of one build or of two.
    fn comparison(releases: [&str; 2]) -> Comparison {
        let [base, new] = releases.map(|release| {
            let build = build(&format!("deb:{release}"), release);
            Subject::new(build, &[1], &[("fault-anon", Ending::Cost(100.0, 0.0))])
        });
        let mut question = question(&[1]);
        question.workloads.retain(|row| &*row.name == "fault-anon");
        ::compare::compare(&base.side(), &[new.side()], &question).unwrap()
    }

    #[test]
    fn equal_kernels_are_not_judged() {
        assert_eq!(why_not_measured(&comparison(["6.1", "6.12"])), None);
        let mut equal = comparison(["6.1", "6.1"]);
        let why = why_not_measured(&equal).unwrap();
        assert!(
            why.starts_with("not measured: both kernels are equal"),
            "{why}"
        );
        equal.warnings.push(Warning::NotCompiled {
            kernel: "git:HEAD".to_owned(),
            files: vec!["fs/xfs/xfs_inode.c (needs CONFIG_XFS_FS)".to_owned()],
        });
        let why = why_not_measured(&equal).unwrap();
        assert!(why.contains("needs CONFIG_XFS_FS"), "{why}");
    }
}
