//! What a rule finds: a cause with its share of the time, its certainty, the evidence, and what to
//! do.

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
    /// Returns the name in texts and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
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
    /// The measurements that it rests on.
    pub evidence: Vec<Evidence>,
    /// What to try, one sentence each.
    pub advice: Vec<String>,
    /// The command to look deeper; empty for none.
    pub deeper: String,
    /// What can be switched to verify it, each alone.
    pub switches: Vec<Switch>,
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
    /// A variable of the environment, or a part of its value.
    Variable(Variable),
    /// A file of the kernel's settings, and what to write to it.
    File {
        /// The path in `/proc` or `/sys`.
        path: String,
        /// The value without the suspect.
        without: &'static str,
    },
}

/// A variable of the environment that may be the cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// The variable's name.
    pub name: &'static str,
    /// What of its value is suspected.
    pub part: Suspect,
    /// The cause if it is this one.
    pub cause: String,
}

/// What of a value is suspected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Suspect {
    /// The whole value.
    Whole,
    /// A library of a list: the name of its file.
    Library(String),
    /// A tunable of glibc.
    Tunable(String),
}

impl Suspect {
    /// Returns whether an entry of the variable's list is suspected.
    fn is_entry(&self, entry: &str) -> bool {
        match self {
            Self::Whole => true,
            Self::Library(library) => stem(entry) == stem(library),
            Self::Tunable(name) => entry
                .split_once('=')
                .is_some_and(|(known, _)| known == name),
        }
    }
}

impl Variable {
    /// Returns the value without the suspect, empty if nothing is left; `None` if the suspect is
    /// not in it.
    #[must_use]
    pub fn without(&self, value: &str) -> Option<String> {
        let all: Vec<&str> = match &self.part {
            Suspect::Whole => return Some(String::new()),
            // Separated by colons or blanks (ld.so(8)).
            Suspect::Library(_) => value
                .split([':', ' '])
                .filter(|entry| !entry.is_empty())
                .collect(),
            Suspect::Tunable(_) => value.split(':').collect(),
        };
        let mut left = all.clone();
        left.retain(|entry| !self.part.is_entry(entry));
        (left.len() < all.len()).then(|| left.join(":"))
    }
}

/// Returns the name of a library without its path and its version.
fn stem(library: &str) -> &str {
    let name = library.rsplit('/').next().unwrap_or(library);
    name.split(".so").next().unwrap_or(name)
}

impl Switch {
    /// Names what is switched.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Variable(Variable {
                name,
                part: Suspect::Whole,
                ..
            }) => (*name).to_owned(),
            Self::Variable(Variable {
                name,
                part: Suspect::Library(part) | Suspect::Tunable(part),
                ..
            }) => {
                format!("{part} in {name}")
            }
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
            switches: Vec::new(),
            gain: None,
        }
    }

    /// Adds evidence: what was measured, where, beyond which limit, and what it excludes.
    #[must_use]
    pub fn with(
        mut self,
        quantity: String,
        source: &'static str,
        threshold: &str,
        rules_out: &'static str,
    ) -> Self {
        self.evidence.push(Evidence {
            quantity,
            source,
            threshold: threshold.to_owned(),
            rules_out,
        });
        self
    }

    /// Adds something that can be switched to verify it.
    #[must_use]
    pub fn switched(mut self, switch: Switch) -> Self {
        self.switches.push(switch);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn without(name: &'static str, part: Suspect, value: &str) -> Option<String> {
        Variable {
            name,
            part,
            cause: String::new(),
        }
        .without(value)
    }

    #[test]
    fn only_the_suspect_is_removed() {
        let library = Suspect::Library("libc_malloc_debug.so.0".into());
        let removed = |value| without("LD_PRELOAD", library.clone(), value);
        assert_eq!(removed("libc_malloc_debug.so.0").as_deref(), Some(""));
        assert_eq!(
            removed("/opt/libfast.so:/usr/lib/libc_malloc_debug.so libx.so").as_deref(),
            Some("/opt/libfast.so:libx.so")
        );
        assert_eq!(removed("/opt/libfast.so"), None);
        let tunable = Suspect::Tunable("glibc.malloc.top_pad".into());
        let removed = |value| without("GLIBC_TUNABLES", tunable.clone(), value);
        assert_eq!(
            removed("glibc.malloc.check=3:glibc.malloc.top_pad=0:glibc.rtld.nns=2").as_deref(),
            Some("glibc.malloc.check=3:glibc.rtld.nns=2")
        );
        assert_eq!(removed("glibc.malloc.check=3"), None);
        assert_eq!(
            without("MALLOC_TOP_PAD_", Suspect::Whole, "1").as_deref(),
            Some("")
        );
    }
}
