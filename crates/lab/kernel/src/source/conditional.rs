//! The `#if` around each line of a C file, and which lines a kernel config leaves out.
//!
//! Pure. Conditions are decided by options of the kernel config alone (`include/linux/kconfig.h`);
//! what hangs on anything else, such as `MODULE` or a macro of a header, counts as compiled.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::condition::{Cause, Decided, decide};

/// Most levels of `#if` that are followed.
const DEPTH_MAX: usize = 200;

/// What would have a line compiled.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum LineNeeds {
    /// An option.
    Option(String),
    /// That an option is off.
    Without(String),
    /// Another value of an option.
    AnotherValue(String),
    /// `#if 0`.
    Nothing,
}

impl fmt::Display for LineNeeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Option(option) => write!(f, "needs {option}"),
            Self::Without(option) => write!(f, "needs {option} off"),
            Self::AnotherValue(option) => write!(f, "needs another {option}"),
            Self::Nothing => f.write_str("below #if 0"),
        }
    }
}

/// A line with code: no comment, no blank one, and no condition itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CodeLine {
    /// The conditions around it, by the lines where they begin.
    pub(crate) within: Vec<u32>,
    /// The condition that leaves it out, and what would have it compiled.
    pub(crate) left_out: Option<(u32, LineNeeds)>,
}

/// An open `#if`, with its branches so far.
struct Conditional {
    /// The line where it begins.
    begins: u32,
    /// What is known of the branches before this one: `No` if none was taken.
    before: Decided,
    /// Whether this branch is taken.
    now: Decided,
}

impl Conditional {
    fn new(begins: u32, condition: Decided) -> Self {
        Self {
            begins,
            before: Decided::No(None),
            now: condition,
        }
    }

    /// Begins the next branch.
    fn branch(&mut self, condition: Decided) {
        self.before = self.before.clone().or(self.now.clone());
        self.now = self.before.clone().not().and(condition);
    }

    fn left_out(&self) -> Option<(u32, LineNeeds)> {
        let Decided::No(cause) = &self.now else {
            return None;
        };
        let needs = match cause.clone() {
            None => LineNeeds::Nothing,
            Some(Cause::IsOff(option)) => LineNeeds::Option(option),
            Some(Cause::IsOn(option)) => LineNeeds::Without(option),
            Some(Cause::HasValue(option)) => LineNeeds::AnotherValue(option),
        };
        Some((self.begins, needs))
    }
}

/// Returns the lines of a file that have code, by number from 1, with a config's options, which are
/// named as in `.config`.
pub(crate) fn code_lines(
    text: &str,
    options: &BTreeMap<String, String>,
) -> BTreeMap<u32, CodeLine> {
    let mut found = BTreeMap::new();
    let mut open: Vec<Conditional> = Vec::new();
    // Levels beyond the limit, so that their ends are not those of others.
    let mut deeper = 0_usize;
    let mut is_comment = false;
    let mut number = 0_u32;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        number = number.saturating_add(1);
        let first = number;
        let mut code = without_comments(line, &mut is_comment);
        if code.trim_start().starts_with('#') {
            while code.ends_with('\\') {
                code.pop();
                let Some(more) = lines.next() else { break };
                number = number.saturating_add(1);
                code.push_str(&without_comments(more, &mut is_comment));
            }
        }
        if let Some((word, rest)) = directive(&code) {
            match word {
                "if" | "ifdef" | "ifndef" if open.len() == DEPTH_MAX => deeper += 1,
                "if" => open.push(Conditional::new(first, decide(rest, options))),
                "ifdef" => open.push(Conditional::new(first, defined(rest, options))),
                "ifndef" => open.push(Conditional::new(first, defined(rest, options).not())),
                "endif" if deeper > 0 => deeper -= 1,
                "endif" => drop(open.pop()),
                _ if deeper > 0 => {}
                "elif" => branch(&mut open, decide(rest, options)),
                "elifdef" => branch(&mut open, defined(rest, options)),
                "elifndef" => branch(&mut open, defined(rest, options).not()),
                _ => branch(&mut open, Decided::Yes(None)),
            }
            continue;
        }
        if code.trim().is_empty() {
            continue;
        }
        let line = CodeLine {
            within: open.iter().map(|conditional| conditional.begins).collect(),
            left_out: open.iter().find_map(Conditional::left_out),
        };
        for number in first..=number {
            found.insert(number, line.clone());
        }
    }
    found
}

fn branch(open: &mut [Conditional], condition: Decided) {
    if let Some(innermost) = open.last_mut() {
        innermost.branch(condition);
    }
}

fn defined(name: &str, options: &BTreeMap<String, String>) -> Decided {
    let name = name.split_whitespace().next().unwrap_or("");
    decide(&format!("defined({name})"), options)
}

/// Returns the word and the rest of a line that decides what is compiled.
fn directive(code: &str) -> Option<(&str, &str)> {
    let text = code.trim_start().strip_prefix('#')?.trim_start();
    let end = text.find(|c: char| !c.is_ascii_alphanumeric());
    let (word, rest) = text.split_at(end.unwrap_or(text.len()));
    let words = [
        "if", "ifdef", "ifndef", "elif", "elifdef", "elifndef", "else", "endif",
    ];
    words.contains(&word).then_some((word, rest))
}

/// Returns a line without comments, and whether one goes on behind it.
fn without_comments(line: &str, is_comment: &mut bool) -> String {
    let mut code = String::new();
    let mut rest = line;
    while !rest.is_empty() {
        if *is_comment {
            let Some((_, behind)) = rest.split_once("*/") else {
                return code;
            };
            *is_comment = false;
            // A comment separates words.
            code.push(' ');
            rest = behind;
            continue;
        }
        let length = match rest.chars().next() {
            Some('"' | '\'') => quoted(rest),
            Some('/') if rest.starts_with("//") => return code,
            Some('/') if rest.starts_with("/*") => {
                *is_comment = true;
                rest = &rest[2..];
                continue;
            }
            Some(c) => c.len_utf8(),
            None => break,
        };
        code.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    code
}

/// Returns the bytes of the string or character that a text begins with.
fn quoted(text: &str) -> usize {
    let mut chars = text.char_indices();
    let Some((_, quote)) = chars.next() else {
        return 0;
    };
    while let Some((at, c)) = chars.next() {
        if c == quote {
            return at + c.len_utf8();
        }
        if c == '\\' {
            chars.next();
        }
    }
    text.len()
}

/// The changed lines of a file that a config leaves out, by what would have them compiled.
pub(crate) type LeftOutLines = BTreeMap<LineNeeds, BTreeSet<u32>>;

/// Returns which of these lines the config leaves out, and whether others of them have code. Lines
/// of a branch that is not taken do not count where another branch of the same condition is changed
/// too: one config has one of them.
pub(crate) fn left_out(
    lines: &BTreeMap<u32, CodeLine>,
    changed: &BTreeSet<u32>,
) -> (LeftOutLines, bool) {
    let changed = changed.iter();
    let changed: Vec<(u32, &CodeLine)> = changed
        .filter_map(|number| Some((*number, lines.get(number)?)))
        .collect();
    let compiled = changed.iter().filter(|(_, line)| line.left_out.is_none());
    let mut taken: BTreeSet<u32> = BTreeSet::new();
    let mut has_compiled = false;
    for (_, line) in compiled {
        has_compiled = true;
        taken.extend(&line.within);
    }
    let mut found = LeftOutLines::new();
    for (number, line) in changed {
        if let Some((conditional, needs)) = &line.left_out
            && !taken.contains(conditional)
        {
            found.entry(needs.clone()).or_default().insert(number);
        }
    }
    (found, has_compiled)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::{LineNeeds, code_lines, left_out};

    fn options() -> BTreeMap<String, String> {
        let on = [("CONFIG_SMP", "y"), ("CONFIG_PGTABLE_LEVELS", "4")];
        on.map(|(option, value)| (option.to_owned(), value.to_owned()))
            .into()
    }

    /// Names each line of a text that is left out, and what it needs.
    fn needs(text: &str) -> Vec<String> {
        let lines = code_lines(text, &options());
        let left_out = lines.iter().filter_map(|(number, line)| {
            let (_, needs) = line.left_out.as_ref()?;
            Some(format!("{number} {needs}"))
        });
        left_out.collect()
    }

    #[test]
    fn branches_not_taken_name_their_option() {
        let text = "int a;\n#ifdef CONFIG_NUMA /* nodes */\nint b;\n/* words\n   only */\n\n#else\n\
                    int c;\n#endif\n#ifndef CONFIG_SMP\nint d;\n#elif defined(CONFIG_PSI) && \\\n\
                    defined(MODULE)\nint e;\n#else // both\nint f;\n#endif\n#if 0\nint g;\n#endif\n";
        assert_eq!(
            needs(text),
            [
                "3 needs CONFIG_NUMA",
                "11 needs CONFIG_SMP off",
                "14 needs CONFIG_PSI",
                "19 below #if 0"
            ]
        );
        let lines = code_lines(text, &options());
        assert_eq!(
            lines.keys().copied().collect::<Vec<_>>(),
            [1, 3, 8, 11, 14, 16, 19]
        );
        assert_eq!(lines[&14].within, [10]);
    }

    #[test]
    fn outer_conditions_leave_inner_lines_out() {
        let text = "#ifdef CONFIG_NUMA\n#ifdef CONFIG_SMP\nint a;\n#endif\n#else\n#if X\nint b;\n#endif\n#endif\n";
        assert_eq!(needs(text), ["3 needs CONFIG_NUMA"]);
    }

    #[test]
    fn comments_and_strings_hide_directives() {
        let text = "char *a = \"/*\";\n/*\n#if 0\n*/ int b;\nchar c = '\\'';\n#define LONG(x) \\\n\
                    \tdo_it(x) /* more */ \\\n\tand_on\nint d;\n";
        let lines = code_lines(text, &options());
        assert_eq!(
            lines.keys().copied().collect::<Vec<_>>(),
            [1, 4, 5, 6, 7, 8, 9]
        );
        assert!(needs(text).is_empty());
    }

    #[test]
    fn a_stub_is_excused_by_its_other_branch() {
        let text = "#ifdef CONFIG_NUMA\nint a;\nint b;\n#else\nint c;\n#endif\nint d;\n";
        let lines = code_lines(text, &options());
        let of = |changed: &[u32]| left_out(&lines, &changed.iter().copied().collect());
        assert_eq!(of(&[2, 3, 5]), (BTreeMap::new(), true));
        let numa = LineNeeds::Option("CONFIG_NUMA".to_owned());
        assert_eq!(
            of(&[1, 2, 3]),
            (BTreeMap::from([(numa.clone(), [2, 3].into())]), false)
        );
        assert_eq!(
            of(&[2, 7]),
            (BTreeMap::from([(numa, BTreeSet::from([2]))]), true)
        );
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read(text in "(#(if|ifdef|else|elif|endif)( |/\\*|CONFIG_SMP|defined|[(!&|0)]){0,6}\n|[\"'\\\\/*x]{0,8}\n){0,20}") {
            let lines = code_lines(&text, &options());
            let last = text.lines().count();
            proptest::prop_assert!(lines.keys().all(|line| (1..=last).contains(&(*line as usize))));
        }

        #[test]
        fn one_branch_of_each_option_is_taken(names in proptest::collection::vec("CONFIG_(SMP|NUMA|PSI)", 1..4)) {
            let mut text = String::new();
            let mut words = "#if";
            for name in &names {
                text.push_str(&[words, " defined(", name, ")\nint a;\n"].concat());
                words = "#elif";
            }
            text.push_str("#else\nint a;\n#endif\n");
            let lines = code_lines(&text, &options());
            let taken = lines.values().filter(|line| line.left_out.is_none()).count();
            proptest::prop_assert_eq!(taken, 1);
        }
    }
}
