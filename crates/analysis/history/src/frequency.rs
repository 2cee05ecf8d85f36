//! Whether the processors' frequency may have changed while a machine measured: what the
//! environments of its runs say about the governor and turbo, which the agent could not set for
//! want of privileges.

use model::Environment;

/// Knobs of a run's environment, what they say if the frequency is steady, and what it means if
/// they do not.
const KNOBS: [(&str, &str, &str); 3] = [
    ("knob governor", "performance", "governor"),
    ("knob no_turbo", "1", "turbo"),
    ("knob boost", "0", "turbo"),
];

/// Says in how many of these runs the frequency may have changed; `None` if it was steady in all,
/// or if none of them says.
#[must_use]
pub fn describe_frequency<'a>(
    environments: impl IntoIterator<Item = &'a Environment>,
) -> Option<String> {
    let (mut runs, mut governors, mut turbo): (usize, Vec<(String, usize)>, usize) =
        (0, Vec::new(), 0);
    for environment in environments {
        runs += 1;
        let mut unsteady: Vec<(&str, &str)> = environment
            .iter()
            .filter_map(|(name, value)| knob(name, value))
            .collect();
        unsteady.sort_unstable();
        unsteady.dedup();
        for (kind, value) in unsteady {
            match governors.iter_mut().find(|(known, _)| known == value) {
                _ if kind == "turbo" => turbo += 1,
                Some((_, count)) => *count += 1,
                None => governors.push((value.to_owned(), 1)),
            }
        }
    }
    let of_governors = governors
        .iter()
        .map(|(value, count)| format!("governor {value} in {count} of {runs} runs"));
    let of_turbo = (turbo > 0).then(|| format!("turbo in {turbo} of {runs} runs"));
    let found: Vec<String> = of_governors.chain(of_turbo).collect();
    (!found.is_empty()).then(|| format!("frequency scaling: {}", found.join(", ")))
}

/// Returns the kind of a knob and what it said during the run; `None` if the frequency is steady
/// with it.
fn knob<'a>(name: &str, value: &'a str) -> Option<(&'static str, &'a str)> {
    // Where policies differ, the knob's name has them.
    let is_of = |knob: &str| {
        let rest = name.strip_prefix(knob);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let (_, steady, kind) = KNOBS.into_iter().find(|(knob, _, _)| is_of(knob))?;
    // `BEFORE -> AFTER`, or `BEFORE (refused: WHY)`, or what it said all the time.
    let during = value.split_once(" -> ").map_or(value, |(_, after)| after);
    let during = during.split_once(" (").map_or(during, |(before, _)| before);
    (during != steady).then_some((kind, during))
}

#[cfg(test)]
mod tests {
    use model::Environment;

    use super::describe_frequency;

    fn environment(pairs: &[(&str, &str)]) -> Environment {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn steady_frequency_is_no_suspicion() {
        let set = environment(&[
            ("knob governor", "powersave -> performance"),
            ("knob boost", "1 -> 0"),
        ]);
        let was = environment(&[
            ("knob governor", "performance"),
            ("knob no_turbo", "1"),
            ("memory", "1 kB"),
        ]);
        assert_eq!(describe_frequency([&set, &was, &Environment::new()]), None);
        assert_eq!(describe_frequency([]), None);
    }

    #[test]
    fn refused_knobs_are_a_suspicion() {
        let refused = environment(&[
            (
                "knob governor.policy0",
                "powersave (refused: Permission denied (os error 13))",
            ),
            (
                "knob governor.policy1",
                "powersave (refused: Permission denied (os error 13))",
            ),
            (
                "knob no_turbo",
                "0 (refused: Permission denied (os error 13))",
            ),
        ]);
        let other = environment(&[("knob governor", "schedutil"), ("knob boost", "1")]);
        let set = environment(&[("knob governor", "powersave -> performance")]);
        insta::assert_snapshot!(describe_frequency([&refused, &other, &set, &refused]).unwrap(), @"frequency scaling: governor powersave in 2 of 4 runs, governor schedutil in 1 of 4 runs, turbo in 3 of 4 runs");
    }
}
