//! Parses `.marvin.toml` of a kernel tree into budgets. The tree is not trusted: it can name files of
//! itself and workloads, and nothing that is run, read or written elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use model::{Budget, Limit, PATHS, SelectionError, USUAL_LIMIT_PERCENT, Workload, group_of};
use toml::de::{DeTable, DeValue};

use crate::ManifestError;
use crate::toml_document::{Mistake, Section, Shape, Value, did_you_mean, expected, text};

/// The name of the file, in the root of a kernel tree.
pub const BUDGETS_FILE: &str = ".marvin.toml";
/// Largest file, in bytes.
pub const BUDGETS_MAX: usize = 64 << 10;
/// Most budgets of a file.
const COUNT_MAX: usize = 64;
/// Longest name of a budget.
const NAME_MAX: usize = 40;
/// Longest path, in bytes.
const PATH_MAX: usize = 256;
/// Largest limit in percent: more is no limit.
const PERCENT_MAX: f64 = 1000.0;

const FILE: Shape<'_> = Shape {
    what: BUDGETS_FILE,
    keys: &["budget"],
};
const BUDGET: Shape<'_> = Shape {
    what: "a budget",
    keys: &["name", "paths", "rows", "limit", "limits", "owners"],
};

/// Parses budgets.
///
/// # Errors
/// If it is no TOML, has an unknown key, lacks one, or a value is invalid; with line and column.
pub fn budgets(text: &str) -> Result<Vec<Budget>, ManifestError> {
    parse(text).map_err(|fault| fault.in_text(text))
}

fn parse(text: &str) -> Result<Vec<Budget>, Mistake> {
    if text.len() > BUDGETS_MAX {
        let what = format!("{BUDGETS_FILE} has at most {BUDGETS_MAX} bytes");
        return Err(Mistake::new(&(0..0), what));
    }
    let document = DeTable::parse(text).map_err(|error| {
        let words: Vec<&str> = error.message().split_whitespace().collect();
        let what = format!("not TOML: {}", words.join(" "));
        Mistake::new(&error.span().unwrap_or_default(), what)
    })?;
    let file = Section::new(document.get_ref(), 0..0, FILE)?;
    let listed = file.list("budget")?;
    if listed.len() > COUNT_MAX {
        let what = format!("at most {COUNT_MAX} budgets");
        return Err(Mistake::new(file.span(), what));
    }
    let mut all: Vec<Budget> = Vec::new();
    for value in listed {
        let read = budget(value)?;
        if all.iter().any(|known| known.name == read.name) {
            let what = format!("two budgets have the name `{}`", read.name);
            return Err(Mistake::new(&value.span(), what));
        }
        all.push(read);
    }
    Ok(all)
}

fn budget(value: &Value<'_>) -> Result<Budget, Mistake> {
    let section = Section::from_value(value, BUDGET)?;
    let name = section.text("name")?;
    let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_/".contains(c);
    if name.len() > NAME_MAX || !name.chars().all(is_letter) {
        let what = format!(
            "`name` must be small letters, digits, `-`, `_` and `/`, at most {NAME_MAX} of them"
        );
        return Err(Mistake::new(section.span(), what));
    }
    let paths = section.list("paths")?;
    let paths: Vec<String> = paths.into_iter().map(path).collect::<Result<_, _>>()?;
    if paths.is_empty() {
        let what = format!("the budget `{name}` needs `paths`, such as [\"mm/\"]");
        return Err(Mistake::new(section.span(), what));
    }
    let rows = rows(&section, name)?;
    let limit = match section.get("limit") {
        None => Limit::Percent(USUAL_LIMIT_PERCENT),
        Some(value) => match limit(value)? {
            Limit::Count(_) => {
                let what =
                    "a percentage such as \"1 %\": rows have counts of their own, in `limits`";
                return Err(expected(value, what));
            }
            percent @ Limit::Percent(_) => percent,
        },
    };
    let owners = section.list("owners")?;
    let owners = owners.into_iter().map(|value| Ok(text(value)?.to_owned()));
    Ok(Budget {
        name: name.to_owned(),
        paths,
        limits: limits(&section, &rows)?,
        rows,
        limit,
        owners: owners.collect::<Result<_, Mistake>>()?,
    })
}

/// Reads a path of the tree.
fn path(value: &Value<'_>) -> Result<String, Mistake> {
    let path = text(value)?;
    let mut parts = path.strip_suffix('/').unwrap_or(path).split('/');
    let is_outside = |part: &str| part.is_empty() || part == "." || part == "..";
    if path.len() > PATH_MAX || path.contains('\\') || parts.any(is_outside) {
        let what = format!(
            "a path in the tree such as \"mm/\" or \"include/linux/mm*.h\", at most {PATH_MAX} bytes"
        );
        return Err(expected(value, &what));
    }
    Ok(path.to_owned())
}

/// Reads the rows: workloads and groups of the suite paths.
fn rows(section: &Section<'_>, budget: &str) -> Result<Vec<String>, Mistake> {
    let listed = section.list("rows")?;
    if listed.is_empty() {
        let what = format!("the budget `{budget}` needs `rows`, such as [\"fault-anon\"]");
        return Err(Mistake::new(section.span(), what));
    }
    let mut chosen: BTreeSet<String> = BTreeSet::new();
    for value in listed {
        let word = text(value)?;
        match model::select(&PATHS, &[word.to_owned()]) {
            Ok(found) => chosen.extend(found.iter().map(|row| row.name.to_string())),
            Err(SelectionError::UnknownWorkload(_)) => {
                return Err(Mistake::new(&value.span(), unknown_row(word)));
            }
            Err(error) => return Err(Mistake::new(&value.span(), error.to_string())),
        }
    }
    let all = PATHS.workloads.iter().map(|row| row.name.to_string());
    Ok(all.filter(|row| chosen.contains(row)).collect())
}

fn unknown_row(word: &str) -> String {
    let of_row = |row: &'static Workload| [&*row.name, group_of(row)];
    let known: Vec<&str> = PATHS.workloads.iter().flat_map(|row| of_row(row)).collect();
    let guess = did_you_mean(&known, word);
    // A name may be long.
    let word: String = word.chars().take(NAME_MAX).collect();
    format!(
        "no workload `{}` in the suite paths{guess}; `marvin workloads --suite paths` lists them",
        word.escape_debug()
    )
}

/// Reads the limits of single rows.
fn limits(section: &Section<'_>, rows: &[String]) -> Result<BTreeMap<String, Limit>, Mistake> {
    let mut found = BTreeMap::new();
    let Some(value) = section.get("limits") else {
        return Ok(found);
    };
    let Some(table) = value.get_ref().as_table() else {
        return Err(expected(
            value,
            "a table of rows, such as {fault-anon = 2150}",
        ));
    };
    for (row, span, value) in Section::all(table) {
        if !rows.iter().any(|known| known == row) {
            let known: Vec<&str> = rows.iter().map(String::as_str).collect();
            let guess = did_you_mean(&known, row);
            let row: String = row.chars().take(NAME_MAX).collect();
            let what = format!(
                "`{}` is none of the budget's rows{guess}",
                row.escape_debug()
            );
            return Err(Mistake::new(&span, what));
        }
        found.insert(row.to_owned(), limit(value)?);
    }
    Ok(found)
}

/// Reads a limit: a number is a count, `"1 %"` a percentage.
fn limit(value: &Value<'_>) -> Result<Limit, Mistake> {
    let what = "a count such as 2150 or a percentage such as \"0.5 %\"";
    let (digits, is_percent) = match value.get_ref() {
        DeValue::Integer(integer) if integer.radix() == 10 => (integer.as_str(), false),
        DeValue::Float(float) => (float.as_str(), false),
        DeValue::String(text) => {
            let number = text.strip_suffix('%').map(str::trim_end);
            (number.ok_or_else(|| expected(value, what))?, true)
        }
        _ => return Err(expected(value, what)),
    };
    let is_plain = digits
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number = digits.parse::<f64>().ok();
    let number = number.filter(|number| is_plain && number.is_finite());
    match number {
        Some(percent) if is_percent && percent <= PERCENT_MAX => Ok(Limit::Percent(percent)),
        Some(count) if !is_percent && count > 0.0 => Ok(Limit::Count(count)),
        _ => Err(expected(value, what)),
    }
}

/// Writes budgets as a file.
#[must_use]
pub fn write_budgets(budgets: &[Budget]) -> String {
    let texts: Vec<String> = budgets.iter().map(write_budget).collect();
    texts.join("\n")
}

/// Returns a text of one line as TOML.
fn quote(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{text}\"")
}

fn write_budget(budget: &Budget) -> String {
    let list = |words: &[String]| {
        let quoted: String = words
            .iter()
            .map(|word| format!("    {},\n", quote(word)))
            .collect();
        format!("[\n{quoted}]")
    };
    let limit = |limit: &Limit| match limit {
        Limit::Percent(_) => format!("\"{limit}\""),
        Limit::Count(_) => limit.to_string(),
    };
    let mut lines = vec![
        "[[budget]]".to_owned(),
        format!("name = {}", quote(&budget.name)),
        format!("paths = {}", list(&budget.paths)),
        format!("rows = {}", list(&budget.rows)),
        format!("limit = {}", limit(&budget.limit)),
    ];
    if !budget.owners.is_empty() {
        lines.push(format!("owners = {}", list(&budget.owners)));
    }
    if !budget.limits.is_empty() {
        lines.push("\n[budget.limits]".to_owned());
    }
    let limits = budget.limits.iter();
    lines.extend(limits.map(|(row, of_row)| format!("{row} = {}", limit(of_row))));
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use model::{KERNEL_PARTS, KernelPart, Limit};
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::{BUDGETS_MAX, budgets, write_budgets};

    const GOOD: &str = r#"
[[budget]]
name = "mm"
paths = ["mm/", "include/linux/mm*.h"]
rows = ["fault", "mem-mmap"]
limit = "0.5 %"
owners = ["Ada \u200b\"\u00e9\\ <ada@example.org>"]

[budget.limits]
fault-anon = 2150
mem-mmap = "2%"
"#;

    #[test]
    fn budgets_have_rows_limits_and_owners() {
        let found = budgets(GOOD).unwrap();
        let mm = &found[0];
        assert_eq!((found.len(), &*mm.name), (1, "mm"));
        assert!(mm.is_about("mm/memory.c") && !mm.is_about("fs/inode.c"));
        assert!(mm.rows.contains(&"fault-cow".to_owned()), "{:?}", mm.rows);
        assert_eq!(mm.limit_of("fault-anon"), Limit::Count(2150.0));
        assert_eq!(mm.limit_of("mem-mmap"), Limit::Percent(2.0));
        assert_eq!(mm.limit_of("fault-cow"), Limit::Percent(0.5));
        assert_eq!(mm.owners, ["Ada \u{200b}\"é\\ <ada@example.org>"]);
        assert_eq!(budgets("").unwrap(), []);
        assert_eq!(budgets(&write_budgets(&found)).unwrap(), found);
    }

    #[test]
    fn proposed_budgets_are_read_as_written() {
        let proposed: Vec<_> = KERNEL_PARTS.iter().map(KernelPart::budget).collect();
        assert_eq!(budgets(&write_budgets(&proposed)).unwrap(), proposed);
    }

    fn changed(old: &str, new: &str) -> String {
        assert!(GOOD.contains(old), "{old}");
        let text = GOOD.replacen(old, new, 1);
        budgets(&text).unwrap_err().to_string()
    }

    #[test]
    fn every_mistake_has_its_position() {
        let many = "x".repeat(BUDGETS_MAX + 1);
        let errors = [
            budgets("[[budget]").unwrap_err().to_string(),
            budgets("[[suite]]\n").unwrap_err().to_string(),
            budgets("run = 'rm -rf /'\n").unwrap_err().to_string(),
            budgets(&many).unwrap_err().to_string(),
            budgets(&[GOOD, GOOD].concat()).unwrap_err().to_string(),
            changed("owners", "notify"),
            changed("name = \"mm\"", "name = \"\\u001b[31m\""),
            changed("name = \"mm\"", ""),
            changed("\"mm/\"", "\"/etc/\""),
            changed("\"mm/\"", "\"mm/../../etc/\""),
            changed("\"mm/\", \"include/linux/mm*.h\"", ""),
            changed("\"fault\"", "\"foult\""),
            changed("\"fault\"", "\"tool:fio\""),
            changed("\"fault\"", "\"pft-proc-1\""),
            changed("\"0.5 %\"", "5"),
            changed("\"0.5 %\"", "\"nan %\""),
            changed("2150", "-1"),
            changed("2150", "inf"),
            changed("2150", "0xff"),
            changed("2150", "\"2000 % \""),
            changed("fault-anon =", "getppid ="),
        ]
        .join("\n");
        insta::assert_snapshot!("budget_mistakes", errors);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in any::<String>()) {
            if let Err(error) = budgets(&text) {
                prop_assert!(!error.what.is_empty());
                prop_assert!(!error.what.contains(|c: char| c.is_control()), "{}", error.what);
            }
        }

        #[test]
        fn damaged_file_is_read_or_refused(at in 0..GOOD.len(), with in "[ -~\n]{0,8}", cut in 0..9_usize) {
            let end = (at + cut).min(GOOD.len());
            let text = [&GOOD[..at], &with, &GOOD[end..]].concat();
            match budgets(&text) {
                Ok(found) => prop_assert_eq!(budgets(&write_budgets(&found)).unwrap(), found),
                Err(error) => prop_assert!(error.line <= text.lines().count() + 1),
            }
        }
    }
}
