//! Paths into a JSON document: `end.sum."a.b"`, `jobs[0].read`, `jobs[*].read`.

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
}

/// Parses a path; the error says what is wrong with it.
pub(crate) fn steps(path: &str) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    let mut rest = path;
    loop {
        let (name, behind) = name(rest).ok_or_else(|| format!("bad JSON path at `{rest}`"))?;
        steps.push(Step::Member(name.to_owned()));
        rest = behind;
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
    let mut values = vec![document];
    for step in steps {
        values = match step {
            Step::Member(name) => values
                .into_iter()
                .filter_map(|value| value.get(name))
                .collect(),
            Step::Element(index) => values
                .into_iter()
                .filter_map(|value| value.get(index))
                .collect(),
            Step::Every => values
                .into_iter()
                .filter_map(Value::as_array)
                .flatten()
                .collect(),
        };
    }
    values
}

#[cfg(test)]
mod tests {
    use super::{Step, select, steps};

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
    }

    #[test]
    fn bad_paths_are_refused() {
        for path in [
            "", ".a", "a.", "a..b", "a[", "a[x]", "a[-1]", "\"a", "a\"b\"", "[0]", "a[0]b",
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
