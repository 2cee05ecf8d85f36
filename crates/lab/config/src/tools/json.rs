//! Paths into a JSON document: `end.sum."a.b"`, `jobs[0].read`, `jobs[*].read`, `thread.*.max`,
//! `**.testcase[*]`.

use serde_json::Value;

/// Most steps of a path.
const STEPS_MAX: usize = 32;

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// A member of an object.
    Member(String),
    /// An element of a list, from 0.
    Element(usize),
    /// Every element of a list.
    Every,
    /// Every member of an object.
    EveryMember,
    /// The value itself and all below it.
    Below,
}

/// Parses a path; the error says what is wrong with it.
pub(crate) fn steps(path: &str) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    let mut rest = path;
    loop {
        // A document may be a list.
        if !steps.is_empty() || !rest.starts_with('[') {
            let (name, behind) = name(rest).ok_or_else(|| format!("bad JSON path at `{rest}`"))?;
            steps.push(match name {
                "*" => Step::EveryMember,
                "**" => Step::Below,
                name => Step::Member(name.to_owned()),
            });
            rest = behind;
        }
        while let Some(behind) = rest.strip_prefix('[') {
            let (index, behind) = behind
                .split_once(']')
                .ok_or("bad JSON path: `[` without `]`")?;
            steps.push(match index {
                "*" => Step::Every,
                number => Step::Element(
                    number
                        .parse()
                        .map_err(|_| format!("bad JSON path: `[{number}]`"))?,
                ),
            });
            rest = behind;
        }
        if steps.len() > STEPS_MAX {
            return Err(format!("a JSON path has at most {STEPS_MAX} steps"));
        }
        if rest.is_empty() {
            return Ok(steps);
        }
        rest = rest
            .strip_prefix('.')
            .ok_or_else(|| format!("bad JSON path at `{rest}`"))?;
    }
}

/// Splits off a member's name, quoted if it contains a dot.
fn name(rest: &str) -> Option<(&str, &str)> {
    let (name, behind) = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"')?,
        None => rest.split_at(rest.find(['.', '[', '"']).unwrap_or(rest.len())),
    };
    (!name.is_empty()).then_some((name, behind))
}

/// Returns all values that a path selects.
pub(crate) fn select<'a>(document: &'a Value, steps: &[Step]) -> Vec<&'a Value> {
    let found = select_named(document, steps).into_iter();
    found.map(|selected| selected.value).collect()
}

/// A value that a path selects.
#[derive(Debug, Clone)]
pub(crate) struct Selected<'a> {
    pub(crate) value: &'a Value,
    /// The names that the steps `*` of the path went through.
    pub(crate) names: Vec<&'a str>,
}

/// Returns all values that a path selects, with the names on the way.
pub(crate) fn select_named<'a>(document: &'a Value, steps: &[Step]) -> Vec<Selected<'a>> {
    let mut found = vec![Selected {
        value: document,
        names: Vec::new(),
    }];
    for step in steps {
        let mut next = Vec::new();
        for Selected { value, names } in found {
            let same = |value| Selected {
                value,
                names: names.clone(),
            };
            match step {
                Step::Member(name) => next.extend(value.get(name).map(same)),
                Step::Element(index) => next.extend(value.get(index).map(same)),
                Step::Every => next.extend(value.as_array().into_iter().flatten().map(same)),
                Step::EveryMember => {
                    next.extend(
                        value
                            .as_object()
                            .into_iter()
                            .flatten()
                            .map(|(name, value)| {
                                let mut names = names.clone();
                                names.push(name.as_str());
                                Selected { value, names }
                            }),
                    );
                }
                Step::Below => {
                    let mut all = Vec::new();
                    collect_below(value, &mut all);
                    next.extend(all.into_iter().map(same));
                }
            }
        }
        found = next;
    }
    found
}

/// Collects a value and all below it. The depth of a document is limited by its parser.
fn collect_below<'a>(value: &'a Value, all: &mut Vec<&'a Value>) {
    all.push(value);
    match value {
        Value::Array(list) => list.iter().for_each(|value| collect_below(value, all)),
        Value::Object(members) => members.values().for_each(|value| collect_below(value, all)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::{Step, select, select_named, steps};

    #[test]
    fn paths_lead_somewhere_or_nowhere() {
        let document: serde_json::Value =
            serde_json::from_str(r#"{"jobs":[{"p":{"99.5":1}},{"p":{"99.5":2}}],"x":[[7]]}"#)
                .unwrap();
        let found = |path: &str| format!("{:?}", select(&document, &steps(path).unwrap()));
        assert_eq!(found("jobs[*].p.\"99.5\""), "[Number(1), Number(2)]");
        assert_eq!(found("jobs[1].p.\"99.5\""), "[Number(2)]");
        assert_eq!(found("x[0][0]"), "[Number(7)]");
        assert_eq!(found("x[3].y"), "[]");
        assert_eq!(found("jobs.p"), "[]");
        assert_eq!(found("jobs[*].*.*"), "[Number(1), Number(2)]");
        assert_eq!(found("**.p.\"99.5\""), "[Number(1), Number(2)]");
        let list: serde_json::Value = serde_json::from_str("[[1],{\"a\":{\"b\":2}}]").unwrap();
        let of_list = |path: &str| select_named(&list, &steps(path).unwrap());
        assert_eq!(of_list("[0][0]")[0].value, 1);
        assert_eq!(of_list("[1].*.*")[0].names, ["a", "b"]);
    }

    #[test]
    fn bad_paths_are_refused() {
        for path in [
            "", ".a", "a.", "a..b", "a[", "a[x]", "a[-1]", "\"a", "a\"b\"", "a[0]b",
        ] {
            assert!(steps(path).is_err(), "{path}");
        }
        assert!(steps(&"a.".repeat(40)).is_err());
        assert_eq!(
            steps("a[*]").unwrap(),
            [Step::Member("a".into()), Step::Every]
        );
    }
}
