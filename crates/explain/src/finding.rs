//! What a rule finds: a cause with its share of the time, its certainty, the evidence, and what to do.

/// How certain a cause is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    /// It fits, and other causes would fit, too.
    Hypothesis,
    /// What was measured names it.
    Likely,
    /// The program was run with and without it.
    Shown,
}

impl Certainty {
    /// Returns its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Hypothesis => "hypothesis",
            Self::Likely => "likely",
            Self::Shown => "shown",
        }
    }
}

/// A cause that a rule found.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The name of the rule.
    pub rule: &'static str,
    /// The cause, as a sentence without its period.
    pub cause: String,
    /// The share of the active threads' time that it explains.
    pub share: f64,
    /// How certain it is.
    pub certainty: Certainty,
    /// What was measured.
    pub evidence: Vec<Evidence>,
    /// What to try.
    pub advice: Vec<String>,
    /// The command to look deeper; empty for none.
    pub deeper: String,
    /// What can be switched to verify it.
    pub switch: Option<Switch>,
    /// How many times as fast the program was without it, if that was shown.
    pub gain: Option<f64>,
}

/// A quantity that leads to a cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// The quantity with its value.
    pub quantity: String,
    /// Where it comes from.
    pub source: &'static str,
    /// From which value on it counts.
    pub threshold: String,
    /// What it rules out; empty for nothing.
    pub rules_out: &'static str,
}

/// Something that Marvin can run the program without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Switch {
    /// Variables of the environment.
    Environment(Vec<String>),
    /// A file of the kernel's settings, and what to write to it.
    File {
        /// The file.
        path: String,
        /// The value without the suspect.
        without: &'static str,
    },
}

impl Switch {
    /// Names what is switched.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Environment(variables) => variables.join(", "),
            Self::File { path, .. } => path.clone(),
        }
    }
}

impl Finding {
    /// Makes a likely finding without evidence.
    #[must_use]
    pub fn new(cause: String, share: f64) -> Self {
        Self {
            rule: "",
            cause,
            share,
            certainty: Certainty::Likely,
            evidence: Vec::new(),
            advice: Vec::new(),
            deeper: String::new(),
            switch: None,
            gain: None,
        }
    }

    /// Adds evidence.
    #[must_use]
    pub fn with(mut self, quantity: String, source: &'static str, threshold: &str, rules_out: &'static str) -> Self {
        self.evidence.push(Evidence { quantity, source, threshold: threshold.to_owned(), rules_out });
        self
    }

    /// Adds something to try.
    #[must_use]
    pub fn advise(mut self, advice: &str) -> Self {
        self.advice.push(advice.to_owned());
        self
    }

    /// Says which command looks deeper.
    #[must_use]
    pub fn look(mut self, command: &str) -> Self {
        self.deeper = command.to_owned();
        self
    }

    /// Makes it a hypothesis.
    #[must_use]
    pub fn doubt(mut self) -> Self {
        self.certainty = Certainty::Hypothesis;
        self
    }
}

/// Formats a share in percent.
#[must_use]
pub(crate) fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}
