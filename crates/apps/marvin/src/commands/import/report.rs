//! `marvin import lkp-mail`: what a mail of the kernel test robot says, and whether Marvin's
//! workload on its path agrees.

use std::path::Path;

use ::compare::Comparison;
use document::layout::{Page, WIDTH, command_lines};
use kernel::PatchesError;
use model::{Uncertainty, Verdict, declared_transfers};
use results::published::{PublishedReport, workloads_on_path};

use crate::commands::compare::{CompareArguments, measure};
use crate::exit::{Exit, WrongInput};
use crate::options::quote;
use crate::session::Session;

/// Smaller changes of a function's share are not named, in points.
const POINTS_LEAST: f64 = 0.3;
/// Most stats that are listed.
const VALUES: usize = 5;
/// Most functions that are named.
const FUNCTIONS: usize = 6;

/// Whether Marvin's row agrees with a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Agreement {
    Agrees,
    Disagrees,
    /// No difference beyond the margin.
    NotSeen,
    /// Unclear or mixed.
    Undecided,
}

impl Agreement {
    fn of(report: &PublishedReport, verdict: &Verdict) -> Self {
        // What transfers do not show, the time of a lock may: of many processors it is the report.
        if let Verdict::Unclear(Uncertainty::Held {
            held_percent,
            is_alone: true,
            ..
        }) = verdict
        {
            let is_worse = held_percent[1] < 0.0;
            return if is_worse == report.is_regression {
                Self::Agrees
            } else {
                Self::Disagrees
            };
        }
        match (verdict, report.is_regression) {
            (Verdict::Worse, true) | (Verdict::Better, false) => Self::Agrees,
            (Verdict::Worse, false) | (Verdict::Better, true) => Self::Disagrees,
            (Verdict::Same, _) => Self::NotSeen,
            (Verdict::Unclear(_), _) => Self::Undecided,
        }
    }

    fn exit(self) -> Exit {
        match self {
            Self::Agrees => Exit::Fine,
            Self::Disagrees | Self::NotSeen | Self::Undecided => Exit::Unclear,
        }
    }
}

/// The option for more seeds than one.
pub(super) const SEEDS: &str = "--seeds";

/// What is to be measured.
pub(super) struct Wanted<'a> {
    /// One kernel before the commit and one with it; none to measure nothing.
    pub(super) kernels: &'a [String],
    /// The workload, instead of the nearest.
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
    let nearest = workloads.first().map(String::as_str);
    let Some(workload) = wanted.workload.or(nearest) else {
        page.line("Nothing to measure: no workload is on this path.");
        answer.write(page.finish())?;
        return Ok(Exit::Unclear);
    };
    let arguments = arguments(base, new, workload, &wanted.options)?;
    let comparison = measure(session, &arguments)?;
    let exit = judge(&report, &comparison, &mut page);
    answer.write(page.finish())?;
    Ok(exit)
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
    let functions = functions(report);
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

/// Returns the functions that a check looks for, with their points.
fn functions(report: &PublishedReport) -> Vec<(&str, f64)> {
    let all = report.functions().into_iter();
    all.filter(|(_, points)| points.abs() >= POINTS_LEAST)
        .take(FUNCTIONS)
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

/// Says what Marvin measured, and whether it agrees.
fn judge(report: &PublishedReport, comparison: &Comparison, page: &mut Page) -> Exit {
    let row = comparison.rows.first();
    let cell = row.and_then(|row| row.cells.first());
    let (Some(row), Some(cell)) = (row, cell) else {
        page.line("Nothing was measured.");
        return Exit::Unclear;
    };
    if comparison.others[0].kernel.build.id == comparison.base.build.id {
        let text = comparison.not_compiled_text().unwrap_or_else(|| {
            "not measured: both kernels are equal, so the commit is in both or in none".to_owned()
        });
        page.hanging("Verdict:   ", &text);
        return Exit::Unclear;
    }
    let verdict = &cell.compared.verdict;
    let mut measured = format!("{} {}", row.workload.name, verdict.name());
    let counts_transfers = declared_transfers(&row.workload.name).is_some();
    if let Some(percent) = cell.compared.difference_percent {
        let what = if counts_transfers {
            "transfers of lines"
        } else {
            "instructions"
        };
        measured = format!("{measured}, {percent:+.2}% by {what}");
    }
    if let Some(ends) = cell.compared.cycles_percent {
        let cycles = format!("{:+.1} to {:+.1}% by estimated cycles", ends.min, ends.max);
        measured = format!("{measured}, {cycles}");
    }
    page.hanging("Measured:  ", &measured);
    let origin = comparison.origins.join(" ");
    if !origin.is_empty() {
        page.hanging("Because:   ", &origin);
    }
    let agreement = Agreement::of(report, verdict);
    let functions = functions(report);
    let named = functions
        .iter()
        .map(|(function, _)| *function)
        .find(|function| names(&origin, function));
    let of_function = match named {
        Some(function) => format!("; both name {function}"),
        None if functions.is_empty() || origin.is_empty() => String::new(),
        // Where an operation becomes shorter, the shares of all others grow.
        None if !functions
            .iter()
            .any(|(_, points)| (*points > 0.0) == report.is_regression) =>
        {
            let change = if report.is_regression { "more" } else { "less" };
            format!("; the report names no function that does {change}")
        }
        None => "; no function of the report is named".to_owned(),
    };
    let text = match (agreement, verdict) {
        (Agreement::Agrees, Verdict::Unclear(why)) => format!("agrees by a lock; {why}"),
        (Agreement::Agrees, _) => "agrees".to_owned(),
        (Agreement::Disagrees, Verdict::Unclear(why)) => {
            format!("disagrees by a lock: the other direction; {why}")
        }
        (Agreement::Disagrees, _) => "disagrees: the other direction".to_owned(),
        (Agreement::NotSeen, _)
            if cell.compared.difference_percent == Some(0.0) && !counts_transfers =>
        {
            "not seen: the same to the instruction, so the row does not execute what changed; choose another with --workload".to_owned()
        }
        (Agreement::NotSeen, _) => "not seen: within the margin".to_owned(),
        (Agreement::Undecided, Verdict::Unclear(why)) => format!("undecided: {why}"),
        (Agreement::Undecided, _) => "undecided".to_owned(),
    };
    page.hanging("Verdict:   ", &format!("{text}{of_function}"));
    agreement.exit()
}

/// Tells whether a sentence has a function as a word of its own.
fn names(sentence: &str, function: &str) -> bool {
    let is_word = |character: char| character.is_alphanumeric() || "_.".contains(character);
    let mut words = sentence.split(|character| !is_word(character));
    words.any(|word| word == function || word.split('.').next() == Some(function))
}

#[cfg(test)]
mod tests {
    use ::compare::fixtures::{Ending, Subject, build, question};
    use ::compare::{Comparison, Warning};
    use document::layout::Page;
    use model::Build;
    use results::published::PublishedReport;

    use super::{judge, names};
    use crate::exit::Exit;

    /// Compares two builds whose page faults cost so much.
    fn comparison(builds: [Build; 2], costs: [f64; 2]) -> Comparison {
        let [base, new] = [0, 1].map(|side| {
            let ending = Ending::Cost(costs[side], 0.0);
            Subject::new(builds[side].clone(), &[1], &[("fault-anon", ending)])
        });
        let mut question = question(&[1]);
        question.workloads.retain(|row| &*row.name == "fault-anon");
        ::compare::compare(&base.side(), &[new.side()], &question).unwrap()
    }

    /// What the command says to a regression of which the mail names two functions.
    fn answer(comparison: &Comparison) -> (String, bool) {
        let report = PublishedReport::read(
            "noticed a -7.7% regression of will-it-scale.per_thread_ops on:\n\n\
             commit: a96ef5848cb0 (\"mm: a change\")\n\ntestcase: will-it-scale\n\
             parameters:\n\n\ttest: page_fault1\n\n\
             %stddev     %change         %stddev\n\n\
             10.00   +4.0   14.00   perf-profile.self.cycles-pp.mas_walk\n\
             10.00   -4.0    6.00   perf-profile.self.cycles-pp.clear_page\n",
        )
        .unwrap();
        let mut page = Page::default();
        let exit = judge(&report, comparison, &mut page);
        (page.finish(), exit == Exit::Fine)
    }

    #[test]
    fn reports_are_answered_by_verdict_and_functions() {
        let two = || [build("deb:6.1", "6.1.192"), build("deb:6.12", "6.12.100")];
        let mut worse = comparison(two(), [100.0, 110.0]);
        worse.origins = vec!["fault-anon: most in mas_walk +9.0".to_owned()];
        let same = comparison(two(), [100.0, 100.0]);
        let better = comparison(two(), [100.0, 80.0]);
        let one = build("deb:6.1", "6.1.192");
        let equal = comparison([one.clone(), one.clone()], [100.0, 100.0]);
        let mut not_compiled = equal.clone();
        not_compiled.warnings.push(Warning::NotCompiled {
            kernel: "git:HEAD".to_owned(),
            files: vec!["fs/xfs/xfs_inode.c (needs CONFIG_XFS_FS)".to_owned()],
        });
        let mut all = String::new();
        for comparison in [&worse, &same, &better, &equal, &not_compiled] {
            let (text, is_fine) = answer(comparison);
            all.extend([text, format!("fine: {is_fine}\n\n")]);
        }
        insta::assert_snapshot!(all);
    }

    #[test]
    fn function_is_named_as_whole_word() {
        let sentence = "most in do_pollfd.isra.0 +4.0, fget -2.0";
        assert!(names(sentence, "do_pollfd") && names(sentence, "fget"));
        assert!(!names(sentence, "do_poll") && !names(sentence, "get"));
    }
}
