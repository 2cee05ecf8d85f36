//! Checks of the host: `marvin doctor`.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Listing, SCHEMA_VERSION};
use document::Styles;
use document::cut_middle;
use history::NoiseFloor;

/// The longest name of a workload that has a column.
const NAME: usize = 40;

/// Checks of the host.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct DoctorDocument {
    /// Version of the schema.
    schema_version: u32,
    /// Kind of the document.
    kind: &'static str,
    /// The machine that was checked: `this host`, or the name of a server.
    subject: String,
    /// Whether all checks passed.
    fit: bool,
    /// The checks.
    checks: Vec<Check>,
    /// How much the boots of one kernel scatter, for each workload; null if that was not asked.
    noise: Option<Vec<Noise>>,
}

/// How much the boots of one kernel scatter in a workload.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct Noise {
    /// The workload.
    workload: String,
    /// How many boots showed it.
    boots: usize,
    /// Coefficient of variation between boots of one kernel, in percent.
    variation_percent: f64,
    /// Smallest changes that comparisons show.
    shows: Vec<Shows>,
    /// What the order of the boots' values says against the machine; null if nothing, or if there
    /// are too few boots.
    suspicion: Option<String>,
}

/// The smallest change that a comparison shows four times of five.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct Shows {
    /// Boots of each kernel.
    boots: usize,
    /// The change in percent; null if no change can be shown.
    percent: Option<f64>,
}

/// One check.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Check {
    /// What is checked.
    pub(crate) what: &'static str,
    /// What Marvin found; null if the check failed.
    pub(crate) found: Option<String>,
    /// The problem; null if the check passed.
    pub(crate) problem: Option<Problem>,
}

/// A problem and its fix.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Problem {
    /// What is wrong.
    pub(crate) wrong: String,
    /// How to fix it.
    pub(crate) fix: String,
}

impl Check {
    /// Returns a check with its result.
    pub(crate) fn new(what: &'static str, result: Result<String, Problem>) -> Self {
        match result {
            Ok(found) => Self {
                what,
                found: Some(found),
                problem: None,
            },
            Err(problem) => Self {
                what,
                found: None,
                problem: Some(problem),
            },
        }
    }
}

impl DoctorDocument {
    /// Returns the document of checks.
    pub(crate) fn new(subject: &str, checks: Vec<Check>) -> Self {
        let subject = subject.to_owned();
        let fit = checks.iter().all(|check| check.problem.is_none());
        Self {
            schema_version: SCHEMA_VERSION,
            kind: "doctor",
            subject,
            fit,
            checks,
            noise: None,
        }
    }

    /// Adds how much the boots of the machine scatter.
    pub(crate) fn with_noise(self, floors: &[NoiseFloor]) -> Self {
        let noise = floors.iter().map(|floor| Noise {
            workload: floor.workload.to_string(),
            boots: floor.boots,
            variation_percent: floor.variation_percent,
            shows: floor
                .least_percent
                .map(|(boots, percent)| Shows { boots, percent })
                .to_vec(),
            suspicion: floor.suspicion.clone(),
        });
        Self {
            noise: Some(noise.collect()),
            ..self
        }
    }

    /// Tells whether all checks passed.
    pub(crate) fn is_fit(&self) -> bool {
        self.fit
    }
}

impl Listing for DoctorDocument {
    fn text(&self, _: &Styles) -> String {
        let lines = self.checks.iter().map(|check| match &check.problem {
            None => format!(
                "ok    {:<11} {}\n",
                check.what,
                check.found.as_deref().unwrap_or_default()
            ),
            Some(Problem { wrong, fix }) => {
                format!(
                    "WRONG {:<11} {wrong}\n      {:<11} fix: {fix}\n",
                    check.what, ""
                )
            }
        });
        let end = if self.fit { "is fit" } else { "is not fit yet" };
        let noise = self.noise.as_deref().map_or_else(String::new, noise);
        lines
            .chain([format!("{} {end}\n", self.subject), noise])
            .collect()
    }
}

fn noise_line(width: usize, [name, boots, variation, shows]: [&str; 4]) -> String {
    format!("{name:width$}  {boots:>5}  {variation:>9}{shows}\n")
}

/// Returns the table of workloads, then what is suspicious.
fn noise(rows: &[Noise]) -> String {
    let Some(first) = rows.first() else {
        return String::new();
    };
    let width = rows
        .iter()
        .map(|row| row.workload.chars().count())
        .max()
        .unwrap_or(0)
        .clamp(8, NAME);
    let heads: String = first
        .shows
        .iter()
        .map(|shows| format!("{:>10}", format!("{} BOOTS", shows.boots)))
        .collect();
    let lines = rows.iter().map(|row| {
        let shows = row.shows.iter().map(|shows| {
            shows
                .percent
                .map_or("-".to_owned(), |percent| format!("{percent:.1}%"))
        });
        let shows: String = shows.map(|text| format!("{text:>10}")).collect();
        let variation = format!("{:.1}%", row.variation_percent);
        noise_line(
            width,
            [
                &cut_middle(&row.workload, width),
                &row.boots.to_string(),
                &variation,
                &shows,
            ],
        )
    });
    let suspicions = rows.iter().filter_map(|row| {
        let suspicion = row.suspicion.as_ref()?;
        Some(format!("{}: {suspicion}\n", row.workload))
    });
    let shown_by = format!("{:>20}", "change shown by");
    let above = format!("\n{}", noise_line(width, ["", "", "", &shown_by]));
    let heads = noise_line(width, ["WORKLOAD", "BOOTS", "VARIATION", &heads]);
    [above, heads]
        .into_iter()
        .chain(lines)
        .chain(suspicions)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Check, DoctorDocument, NoiseFloor, Problem};
    use crate::views::Listing as _;
    use document::Styles;

    #[test]
    fn failed_checks_have_their_fix() {
        let problem = Problem {
            wrong: "not found".to_owned(),
            fix: "sudo apt-get install dpkg".to_owned(),
        };
        let checks = vec![
            Check::new("disk", Ok("9000 MB free".to_owned())),
            Check::new("dpkg-deb", Err(problem)),
        ];
        let document = DoctorDocument::new("this host", checks);
        assert!(!document.is_fit());
        insta::assert_snapshot!(document.text(&Styles::plain()));
    }

    #[test]
    fn noise_is_a_table_with_suspicions() {
        let floor = |name: &str, boots, suspicion: Option<&str>| NoiseFloor {
            workload: name.into(),
            boots,
            variation_percent: 1.25,
            least_percent: [(5, Some(4.449)), (20, (boots > 2).then_some(1.2))],
            suspicion: suspicion.map(str::to_owned),
        };
        let document = DoctorDocument::new(
            "vm",
            vec![Check::new("machine", Ok("QEMU 7.2.22, TCG".to_owned()))],
        );
        let noisy = [
            floor("fault-anon", 2, None),
            floor(
                "a-workload-of-another-suite-with-a-long-name",
                12,
                Some("two modes, 6.1 deviations apart"),
            ),
        ];
        let text = document.with_noise(&noisy).text(&Styles::plain());
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        insta::assert_snapshot!(text, @"
        ok    machine     QEMU 7.2.22, TCG
        vm is fit

                                                                       change shown by
        WORKLOAD                                  BOOTS  VARIATION   5 BOOTS  20 BOOTS
        fault-anon                                    2       1.2%      4.4%         -
        a-workload-of-anoth…ite-with-a-long-name     12       1.2%      4.4%      1.2%
        a-workload-of-another-suite-with-a-long-name: two modes, 6.1 deviations apart
        ");
    }
}
