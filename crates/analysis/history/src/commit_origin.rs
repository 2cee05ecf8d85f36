//! Where the difference of a workload on a commit comes from, in words. `profile` adds it up.

/// Differences below this have no place in a sentence (instructions per operation).
const SMALL: f64 = 0.005;
/// Functions that are named.
const FUNCTIONS_SHOWN: usize = 3;

/// Additional instructions per operation of a workload by where they come from.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RowOrigin {
    /// The workload.
    pub workload: String,
    /// In functions that the commit changes, itself or what is inlined into them.
    pub changed: f64,
    /// In others that do more or less with the same code.
    pub others: f64,
    /// In functions of the same source that the compiler made other code of.
    pub compiler: f64,
    /// In functions of which that is not known.
    pub unknown: f64,
    /// The functions of `compiler` with their parts, the largest first.
    pub compiled: Vec<(String, f64)>,
}

/// The workloads that execute the same code on a commit as before it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SameCode {
    /// How many.
    pub workloads: usize,
    /// Those of them with other values: other addresses or data have an effect.
    pub differing: usize,
    /// The largest difference of one of them, in percent, without its sign.
    pub largest_percent: f64,
    /// Each of them with its difference in percent, positive is better; `None` if it has no value.
    pub rows: Vec<(String, Option<f64>)>,
}

impl SameCode {
    /// Returns whether a workload is one of them.
    pub(crate) fn has(&self, workload: &str) -> bool {
        self.rows.iter().any(|(name, _)| name == workload)
    }

    /// Says it in a line, if there are any.
    #[must_use]
    pub fn sentence(&self, measured: usize) -> Option<String> {
        let Self {
            workloads,
            differing,
            largest_percent,
            ..
        } = self;
        let differing = match differing {
            0 => "none of them differs".to_owned(),
            1 => format!("1 of them differs, by {largest_percent:.2} %"),
            many => format!("{many} of them differ, by up to {largest_percent:.2} %"),
        };
        (*workloads > 0).then(|| {
            format!("the same code in {workloads} of {measured} workloads, so expected equal; {differing}")
        })
    }
}

impl RowOrigin {
    /// Returns the sum.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.changed + self.others + self.compiler + self.unknown
    }

    /// Returns whether most of it is attributed.
    #[must_use]
    pub fn is_known(&self) -> bool {
        let known = self.changed.abs() + self.others.abs() + self.compiler.abs();
        self.unknown.abs() < known
    }

    /// Says it in a line; the parts add up to the sum.
    #[must_use]
    pub fn sentence(&self) -> String {
        let mut parts = Vec::new();
        let named = [
            (self.changed, "in functions that it changes"),
            (self.others, "in others with the same code"),
            (self.unknown, "not attributed"),
        ];
        for (part, what) in named {
            if part.abs() >= SMALL {
                parts.push(format!("{part:+.2} {what}"));
            }
        }
        if self.compiler.abs() >= SMALL {
            let functions: Vec<String> = self
                .compiled
                .iter()
                .take(FUNCTIONS_SHOWN)
                .map(|(function, part)| format!("{function} {part:+.2}"))
                .collect();
            let functions = functions.join(", ");
            parts.push(format!(
                "{:+.2} compiled differently ({functions})",
                self.compiler
            ));
        }
        format!(
            "{}: {:+.2} instructions an operation: {}",
            self.workload,
            self.total(),
            parts.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::{RowOrigin, SameCode};

    #[test]
    fn rows_of_the_same_code_are_counted() {
        assert_eq!(SameCode::default().sentence(3), None);
        let same = SameCode {
            workloads: 2,
            differing: 1,
            largest_percent: 0.04,
            rows: Vec::new(),
        };
        assert_eq!(
            same.sentence(3).unwrap(),
            "the same code in 2 of 3 workloads, so expected equal; 1 of them differs, by 0.04 %"
        );
    }

    #[test]
    fn parts_are_said_and_add_up() {
        let mut origin = RowOrigin {
            workload: "fork-exit".into(),
            changed: 36.0,
            others: 5.0,
            ..RowOrigin::default()
        };
        assert_eq!(
            origin.sentence(),
            "fork-exit: +41.00 instructions an operation: +36.00 in functions that it changes, \
             +5.00 in others with the same code"
        );
        assert!(origin.is_known());
        origin.unknown = 41.5;
        assert!(!origin.is_known());
        origin.unknown = 0.0;
        origin.compiler = -2.0;
        origin.compiled = vec![("copy_mm".into(), -2.0)];
        assert!(
            origin.sentence().contains("+39.00")
                && origin
                    .sentence()
                    .ends_with("-2.00 compiled differently (copy_mm -2.00)")
        );
    }
}
