//! Chooses the cause among what the rules find.

use std::collections::BTreeMap;

use crate::beside;
use crate::budget::{View, is_for_own, waiting_for_children};
use crate::callers::{Hot, is_own, statement};
use crate::facts::{Facts, SHORT_LIVED, Stack};
use crate::finding::{Certainty, Finding, percent};
use crate::interpreted::{in_interpreter, in_library};
use crate::rules::{Branch, RULES, connecting, many_transfers, parts_of_work};
use crate::waits::{known, own_path};

/// The least share of the time that a cause explains.
const LEAST: f64 = 0.2;

/// What explains the time of a program.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The cause; `None` if nothing dominates.
    pub cause: Option<Finding>,
    /// Other rules that apply, largest share first.
    pub others: Vec<Finding>,
    /// Others use the processors: the shares of all causes are of the time that is left.
    pub outside: Option<Finding>,
}

/// The least share of what comes before a wait for work.
const BLOCKED: f64 = 0.25;
/// The share of sleeping from which on it comes before what is done between.
const SLEEPING: f64 = 0.6;
/// The least share of what is mentioned where nothing dominates.
const MENTIONED: f64 = 0.1;
/// Rules of what runs whose cause comes before that there are too many threads for it: they say
/// more than which function it is.
const BEFORE_THREADS: [&str; 4] = [
    "garbage-collection",
    "known-function",
    "locking",
    "shared-line",
];

/// Rules that name a place of the program or of the kernel, and the share of it from which on that is
/// likely to be the cause.
const PLACES: [&str; 4] = ["call-group", "one-call", "one-place", "one-function"];
const CERTAIN: f64 = 0.35;

/// How functions of a script are named.
const IN_SCRIPT: &str = " that is in ";
/// The least looks at a script that name its functions.
const SCRIPT_LOOKS: u64 = 4;

/// Applies all rules. A setting comes before what it causes; otherwise the largest share does.
///
/// Where others use the processors, the cause is looked for in the time that is left: neighbours
/// make every program slow, and say nothing of this one.
#[must_use]
pub fn answer(facts: &Facts) -> Answer {
    let mut answer = choose(facts);
    if let Some(cause) = &mut answer.cause {
        // A place says where some of the time is, and most of it is elsewhere.
        let is_place = PLACES.contains(&cause.rule);
        if is_place && cause.share < CERTAIN && cause.certainty == Certainty::Likely {
            cause.certainty = Certainty::Hypothesis;
        }
        complete(facts, cause, &answer.others);
    }
    answer
}

/// Adds to a cause what the program does beside it.
fn complete(facts: &Facts, cause: &mut Finding, others: &[Finding]) {
    if is_of_running(cause) {
        complete_running(facts, cause);
        cause.cause += &beside::at_locks(others);
        let monitors = beside::at_monitors(facts, &cause.cause);
        cause.cause += &monitors;
    }
    if !is_of_sleep(cause) {
        cause.cause += &beside::sleeping(others);
    }
    cause.cause += &beside::short_workers(others);
    cause.cause += &beside::at_barrier(facts);
    if is_asleep(cause) {
        let meanwhile = beside::waiting_meanwhile(facts, cause);
        cause.cause += &meanwhile;
    }
    let starting = beside::starting(facts, cause);
    cause.cause += &starting;
    cause.cause += &waiting_parent(facts);
    cause.cause += &one_at_a_time(facts);
}

/// Adds to a cause of what runs where in the program that is, and for what.
fn complete_running(facts: &Facts, cause: &mut Finding) {
    cause.cause += &in_script(facts);
    let called = in_interpreter(facts, &cause.cause);
    cause.cause += &called;
    if cause.cause.contains(IN_SCRIPT) {
        let library = in_library(facts, &cause.cause);
        cause.cause += &library;
    }
    cause.cause += &in_pool(facts);
    cause.cause += &busiest_program(facts);
    let reopening = beside::reopening(facts, &cause.cause);
    cause.cause += &reopening;
    let asking = beside::asking(facts, &cause.cause);
    cause.cause += &asking;
    let transferring = beside::transferring(facts, cause);
    cause.cause += &transferring;
    cause.cause += &beside::recursing(facts);
    cause.cause += &beside::standing_still(facts);
    // What a function means says more than that it calls back.
    if cause.rule != "known-function" {
        let called_back = beside::called_back(facts, &cause.cause);
        cause.cause += &called_back;
    }
    let parts = parts_of_work(&View::new(facts), &cause.cause);
    cause.cause += &parts;
    if cause.rule == "one-function" {
        cause.cause += &beside::walking(facts);
    }
}

/// Whether a cause is about what runs.
fn is_of_running(cause: &Finding) -> bool {
    // The thread that holds the lock of the interpreter runs.
    if cause.rule == "gil" {
        return true;
    }
    let rule = RULES.iter().find(|rule| rule.name == cause.rule);
    rule.is_some_and(|rule| matches!(rule.branch, Branch::System | Branch::User | Branch::Waiting))
}

/// Whether a cause says who sleeps.
fn is_of_sleep(cause: &Finding) -> bool {
    ["sleep", "full-pool", "lost-result", "coroutines"].contains(&cause.rule)
}

/// Whether a cause is that the program does nothing by itself.
fn is_asleep(cause: &Finding) -> bool {
    ["sleep", "idle", "poll"].contains(&cause.rule)
}

/// Returns the functions of a script that ran, as the end of a sentence: those of the interpreter or
/// of the kernel do not say which they execute. Empty without any.
pub(crate) fn in_script(facts: &Facts) -> String {
    let scripts = facts.scripts.iter();
    let (statements, scripts): (Vec<&Stack>, Vec<&Stack>) =
        scripts.partition(|stack| stack.program == SQL);
    in_function(&scripts) + &in_statement(&statements)
}

fn looks(stacks: &[&Stack]) -> u64 {
    stacks.iter().map(|stack| stack.samples).sum()
}

/// Returns the functions of the language that ran most.
fn in_function(scripts: &[&Stack]) -> String {
    let mut languages: BTreeMap<&str, Vec<&Stack>> = BTreeMap::new();
    for stack in scripts {
        languages.entry(&stack.program).or_default().push(stack);
    }
    let most = languages.into_values().max_by_key(|stacks| looks(stacks));
    let scripts = most.unwrap_or_default();
    let hot = Hot::of(scripts.iter().copied());
    let Some(first) = scripts.first().filter(|_| looks(&scripts) >= SCRIPT_LOOKS) else {
        return String::new();
    };
    let Some((path, _)) = hot.own_path() else {
        // A script that awaits is often seen in the functions of its runtime alone.
        let largest = hot.largest();
        return match &*largest {
            "" => String::new(),
            _ => format!("; in {} that is in {largest}", first.program),
        };
    };
    // What it calls of the standard library says more than what that is made of.
    let called = hot.entry().map(|entry| {
        let name = |function: &str| {
            let owners = ["Python's ", "Perl's ", "Node's "];
            let plain = owners.iter().find_map(|owner| function.strip_prefix(owner));
            plain.unwrap_or(function).to_owned()
        };
        match hot.deepest(|_| true) {
            Some(deepest) => format!("{} for {} for ", name(deepest), name(entry)),
            None => format!("{} for ", name(entry)),
        }
    });
    let modules = match called {
        None => in_module(&scripts),
        Some(_) => String::new(),
    };
    let called = called.unwrap_or_default();
    format!("; in {} that is in {called}{path}{modules}", first.program)
}

/// The least part of looks in a module of the standard library.
const IN_MODULE: f64 = 0.3;

/// Returns the module of a function of the standard library: `pathlib` of
/// `Python's pathlib.PurePath.with_name`, and the package of a class of Java.
fn module_of(function: &str) -> Option<String> {
    if function.starts_with("java") {
        let parts = function.split('.');
        let is_package = |part: &&str| part.starts_with(|letter: char| letter.is_lowercase());
        let package: Vec<&str> = parts.take_while(is_package).collect();
        return Some(package.join("."));
    }
    if let Some(function) = function.strip_prefix("Perl's ") {
        return function
            .rsplit_once("::")
            .map(|(package, _)| package.to_owned());
    }
    let function = ["Python's ", "Node's "]
        .iter()
        .find_map(|owner| function.strip_prefix(owner))?;
    let (module, _) = function.split_once('.')?;
    Some(module.to_owned())
}

/// Returns the module of the standard library whose functions a script's own ones mostly call, as the
/// end of a sentence: none of its functions alone has most.
fn in_module(scripts: &[&Stack]) -> String {
    let mut modules: BTreeMap<String, u64> = BTreeMap::new();
    for stack in scripts {
        let own = stack.user.iter().position(|function| is_own(function));
        let called = own.and_then(|own| stack.user[..own].last());
        if let Some(module) = called.and_then(|function| module_of(function)) {
            *modules.entry(module).or_default() += stack.samples;
        }
    }
    let all = looks(scripts);
    let most = modules.into_iter().max_by_key(|(_, samples)| *samples);
    let part = |samples: u64| samples as f64 / all.max(1) as f64;
    most.filter(|(_, samples)| part(*samples) >= IN_MODULE)
        .map_or_else(String::new, |(module, samples)| {
            format!(", {} of it in {module}", percent(part(samples)))
        })
}

/// The language of statements of a database, and the part of looks that makes one the statement.
const SQL: &str = "SQL";
const STATEMENT: f64 = 0.5;

/// Returns which statement a database executed in most looks, as the end of a sentence.
fn in_statement(statements: &[&Stack]) -> String {
    let all = looks(statements);
    let most = statements.iter().max_by_key(|stack| stack.samples);
    let most =
        most.filter(|stack| all >= SCRIPT_LOOKS && stack.samples as f64 >= STATEMENT * all as f64);
    let statement = most.and_then(|stack| statement(&stack.user));
    statement.map_or_else(String::new, |statement| {
        format!("; the statement is {statement}")
    })
}

/// Functions in which threads of libuv's pool do their work (src/threadpool-inl.h of Node,
/// src/threadpool.c of libuv).
const POOL: [&str; 4] = [
    "node::ThreadPoolWork",
    "uv__work",
    "uv__fs_work",
    "uv__queue_work",
];

/// Returns that most of what runs is in libuv's pool, as the end of a sentence; empty if it is not.
fn in_pool(facts: &Facts) -> String {
    let stacks = facts.samples.as_ref().map(|samples| &samples.stacks);
    let stacks = stacks.map_or(&[][..], Vec::as_slice);
    let is_pool = |function: &String| POOL.iter().any(|name| function.contains(name));
    let all: u64 = stacks.iter().map(|stack| stack.samples).sum();
    // A synchronous call does the same on the thread of the script.
    let is_script = |function: &String| function.starts_with("Builtins_");
    let pool = stacks
        .iter()
        .filter(|stack| stack.user.iter().any(is_pool) && !stack.user.iter().any(is_script));
    let part = pool.map(|stack| stack.samples).sum::<u64>() as f64 / all.max(1) as f64;
    if part < 0.5 {
        return String::new();
    }
    format!(
        "; {} of what runs is in libuv's thread pool, which has 4 threads by default",
        percent(part)
    )
}

/// Returns the program that most samples are of, with its part and one of its command lines, as the
/// end of a sentence; empty if it is the first program.
fn busiest_program(facts: &Facts) -> String {
    let Some(samples) = &facts.samples else {
        return String::new();
    };
    let programs = &samples.programs;
    let all: u64 = programs.iter().map(|(_, samples)| samples).sum();
    let mut threads = facts.threads.iter();
    let root = threads.find(|thread| thread.id == facts.root);
    let (Some((program, samples)), Some(root)) = (programs.first(), root) else {
        return String::new();
    };
    // The kernel keeps 15 letters of a name.
    let is_root = program.starts_with(&*root.name);
    let part = *samples as f64 / all.max(1) as f64;
    if program == SHORT_LIVED || is_root || programs.len() < 2 || part < 0.5 {
        return String::new();
    }
    let of_program = facts
        .started
        .iter()
        .filter(|one| one.program == *program && !one.command.is_empty());
    let command = of_program.max_by_key(|one| one.count);
    let command = command.map_or_else(String::new, |one| format!(" ({})", one.command));
    let asked = asked_for(program, &command);
    format!(
        "; {} of what runs is the program {program}{command}{asked}",
        percent(part)
    )
}

/// Options of programs that make them much slower, and what they ask for (Documentation of git:
/// diff-options, git-log).
const DEAR: [(&str, &str, &str); 7] = [
    ("git", "-M", RENAMES),
    ("git", "--find-renames", RENAMES),
    (
        "git",
        "-C",
        "copies of files (similarity of each changed file with each added one)",
    ),
    (
        "git",
        "--find-copies",
        "copies of files (similarity of each file with each added one)",
    ),
    ("git", "--follow", "renames of a file in each commit"),
    ("git", "-S", "changes of a text in each commit (pickaxe)"),
    (
        "git",
        "-G",
        "changes that match a pattern in each commit (pickaxe)",
    ),
];
const RENAMES: &str = "renames (similarity of each removed file with each added one)";

/// Returns what an option of a command asks for that takes long, as the end of a sentence.
fn asked_for(program: &str, command: &str) -> String {
    // `-C FOLDER` in front of a command of git is something else.
    let words = command
        .split([' ', '(', ')'])
        .filter(|word| !word.is_empty());
    let words: Vec<&str> = words.skip_while(|word| *word != program).skip(1).collect();
    let of_command = words.iter().skip_while(|word| word.starts_with('-'));
    let dear = DEAR.iter().find(|(of, option, _)| {
        *of == program && of_command.clone().any(|word| word.starts_with(option))
    });
    dear.map_or_else(String::new, |(_, option, what)| {
        format!(", whose option {option} looks for {what}")
    })
}

/// Returns what the program itself waits for, where a child of it is what the cause is about; empty
/// otherwise.
fn waiting_parent(facts: &Facts) -> String {
    let view = View::new(facts);
    let mut active = view.active.iter();
    if facts.root == 0 || active.any(|thread| thread.process == facts.root) {
        return String::new();
    }
    let of_root = facts
        .waits
        .iter()
        .filter(|wait| wait.threads.contains(&facts.root));
    let longest = of_root.max_by(|one, other| one.seconds.total_cmp(&other.seconds));
    let Some(wait) = longest.filter(|wait| is_for_own(facts, wait)) else {
        return String::new();
    };
    let name_of = |id: u32| {
        let thread = facts.threads.iter().find(|thread| thread.id == id);
        thread.map_or("", |thread| &thread.name)
    };
    let what = known(wait).map_or("", |known| known.what);
    let from = match (what, own_path(wait)) {
        ("", Some(function)) => format!(" in {function}"),
        ("", None) => String::new(),
        (what, _) => format!(" in {what}"),
    };
    let child = match view.active.first() {
        Some(thread) => format!("its child {}", name_of(thread.process)),
        None => "its children".into(),
    };
    format!(
        "; {} waits for {child} in {}{from}",
        name_of(facts.root),
        wait.call
    )
}

/// Programs that run commands side by side if they are asked to (`-j`).
const MAKES: [&str; 2] = ["make", "gmake"];
/// The most commands at a time, on average, that are one after the other.
const ONE: f64 = 1.2;

/// Returns that make runs its commands one after the other although there are processors for more, as
/// the end of a sentence; empty otherwise.
fn one_at_a_time(facts: &Facts) -> String {
    let waiting = waiting_for_children(facts);
    let mut processes = facts.threads.iter();
    let make = processes
        .find(|thread| MAKES.contains(&&*thread.name) && waiting.contains(&thread.process));
    let commands = facts
        .threads
        .iter()
        .filter(|thread| !waiting.contains(&thread.process) && !MAKES.contains(&&*thread.name));
    let at_a_time = commands.map(|thread| thread.total_s).sum::<f64>() / facts.seconds;
    if make.is_none() || facts.host.processors < 2 || at_a_time > ONE {
        return String::new();
    }
    "; make runs one command at a time (not -j, or a job server that a command does not get)".into()
}

fn choose(facts: &Facts) -> Answer {
    let view = View::new(facts);
    let mut found = apply(&view);
    let outside = found
        .iter()
        .position(|(branch, finding)| is_outside(*branch, finding));
    // These two make threads wait whatever the neighbours do.
    let is_stopped = found
        .iter()
        .any(|(_, finding)| ["quota", "affinity"].contains(&finding.rule));
    let Some(outside) = outside.filter(|_| !is_stopped) else {
        return with_work(facts, &view, ranked(found, None));
    };
    let (_, outside) = found.swap_remove(outside);
    let active = view.active.iter().map(|thread| thread.id).collect();
    let own = apply(&View::among(&without_waiting(facts), Some(&active)));
    if own.is_empty() {
        let [user, kernel, blocked] = crate::rules::largest(&view);
        let cause = outside.cause + &[user, kernel, blocked].concat();
        found.insert(0, (Branch::Waiting, Finding { cause, ..outside }));
        return ranked(found, None);
    }
    ranked(own, Some(outside))
}

/// Says what threads do that are too many for the processors: what they wait for is their own work.
fn with_work(facts: &Facts, view: &View, mut answer: Answer) -> Answer {
    let Some(cause) = answer.cause.as_mut() else {
        return answer;
    };
    if cause.rule != "oversubscription" {
        return answer;
    }
    let active = view.active.iter().map(|thread| thread.id).collect();
    let own = ranked(
        apply(&View::among(&without_waiting(facts), Some(&active))),
        None,
    );
    let Some(work) = own.cause else {
        let [user, kernel, blocked] = crate::rules::largest(view);
        let all = [user, kernel, blocked].concat();
        cause.cause.push_str(&all);
        return answer;
    };
    if BEFORE_THREADS.contains(&work.rule) {
        let threads = std::mem::replace(cause, work);
        cause.cause = format!("{}; {}", cause.cause, threads.cause);
        answer.others.retain(|other| other.rule != cause.rule);
        answer.others.insert(0, threads);
    } else {
        cause.cause = format!("{}; {}", cause.cause, work.cause);
    }
    answer
}

/// Whether a cause is outside of the program.
fn is_outside(branch: Branch, finding: &Finding) -> bool {
    branch == Branch::Waiting && ["neighbours", "steal"].contains(&finding.rule)
}

fn apply(view: &View) -> Vec<(Branch, Finding)> {
    let mut findings = Vec::new();
    for rule in RULES {
        if let Some(finding) = (rule.check)(view) {
            let finding = Finding {
                rule: rule.name,
                ..finding
            };
            findings.push((rule.branch, finding));
        }
    }
    findings
}

/// Returns the facts of threads that would not have waited for a processor.
fn without_waiting(facts: &Facts) -> Facts {
    let mut own = facts.clone();
    for thread in &mut own.threads {
        thread.total_s -= thread.waiting_s;
        thread.waiting_s = 0.0;
    }
    own
}

fn ranked(mut found: Vec<(Branch, Finding)>, outside: Option<Finding>) -> Answer {
    // Equal shares stay in the table's order, in which the more special rules come first.
    found.sort_by(|one, other| {
        is_setting(other)
            .cmp(&is_setting(one))
            .then_with(|| is_soft(&one.1).cmp(&is_soft(&other.1)))
            .then_with(|| rounded(other.1.share).cmp(&rounded(one.1.share)))
    });
    // What explains less dominates nothing.
    let is_cause = found
        .first()
        .is_some_and(|first| is_setting(first) || first.1.share >= LEAST);
    let mut found = found.into_iter().map(|(_, finding)| finding);
    let cause = if is_cause { found.next() } else { None };
    Answer {
        cause,
        others: found.collect(),
        outside,
    }
}

/// Returns whether a finding only says that threads wait for work or for others: what they do
/// otherwise comes first.
fn is_soft(finding: &Finding) -> bool {
    ["idle", "poll", "signals"].contains(&finding.rule)
        || finding.rule == "sleep" && finding.share < SLEEPING
        || finding.share < BLOCKED
}

/// Returns whether a setting explains the time at least likely: then it comes before all others.
fn is_setting((branch, finding): &(Branch, Finding)) -> bool {
    *branch == Branch::Settings && finding.certainty >= Certainty::Likely
}

/// Shares that differ by less than a percentage point are equal.
fn rounded(share: f64) -> i64 {
    (100.0 * share).round() as i64
}

impl Answer {
    /// Returns the answer as one sentence on one line: names of processes and files are as their owners
    /// chose them.
    #[must_use]
    pub fn sentence(&self, facts: &Facts) -> String {
        model::sanitize_line(&self.said(facts))
    }

    fn said(&self, facts: &Facts) -> String {
        let Some(finding) = &self.cause else {
            let view = View::new(facts);
            let budget = view.budget;
            let [user, kernel, blocked] = crate::rules::largest(&view);
            // What is spread over the interpreter is often one function of the script.
            let script = in_script(facts) + &in_interpreter(facts, &[&*user, &*kernel].concat());
            let program = in_pool(facts)
                + &busiest_program(facts)
                + &connecting(&view)
                + &beside::started(facts)
                + &parts_of_work(&view, "")
                + &many_transfers(&view);
            let next = match self.others.first() {
                Some(next) if next.share >= MENTIONED => {
                    format!("; {}: {}", next.cause, percent(next.share))
                }
                _ => String::new(),
            };
            return format!(
                "Nothing dominates: {} user{user}, {} kernel{kernel}, {} waiting for a processor, {} blocked{blocked}{script}{program}{next}.",
                percent(budget.user),
                percent(budget.system),
                percent(budget.waiting),
                percent(budget.blocked)
            );
        };
        let mut letters = finding.cause.chars();
        let first: String = letters
            .next()
            .map(|letter| letter.to_uppercase().collect())
            .unwrap_or_default();
        let share = percent(finding.share);
        let word = finding.certainty.name();
        let rest = letters.as_str();
        if let Some(gain) = finding.gain {
            return format!("{first}{rest}: {gain:.1} times as fast without it ({word}).");
        }
        match &self.outside {
            None => format!("{first}{rest}: {share} of its threads' time ({word})."),
            Some(outside) => format!(
                "{first}{rest}: {share} of its threads' time without waiting ({word}); {} ({} of all time).",
                outside.cause,
                percent(outside.share)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Answer, asked_for};
    use crate::facts::Facts;
    use crate::finding::Finding;

    #[test]
    fn hostile_name_stays_within_the_sentence() {
        let answer = Answer {
            cause: Some(Finding::new(
                "process 7 x\u{1b}[31m\nExit 0 waits".into(),
                0.9,
            )),
            others: Vec::new(),
            outside: None,
        };
        let said = answer.sentence(&Facts::default());
        assert!(!said.contains(char::is_control), "{said:?}");
        assert!(said.contains("x\u{fffd}[31m Exit 0 waits"), "{said:?}");
    }

    #[test]
    fn dear_options_are_explained() {
        let renames = asked_for("git", " (git diff -M90% --summary HEAD~1)");
        assert!(
            renames.starts_with(", whose option -M looks for renames"),
            "{renames}"
        );
        // The folder of a command is no option of it.
        assert_eq!(asked_for("git", " (git -C /srv/tree log -p)"), "");
        assert_eq!(asked_for("gcc", " (gcc -MD -c x.c)"), "");
        assert_eq!(asked_for("git", ""), "");
    }
}
