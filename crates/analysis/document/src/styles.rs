//! Colours of a terminal as one value: empty without a terminal. The caller detects the terminal.

use model::Verdict;

/// The escape sequences around coloured words. Letters carry the same information without colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Styles {
    strong: &'static str,
    faint: &'static str,
    better: &'static str,
    worse: &'static str,
    unclear: &'static str,
    reset: &'static str,
}

impl Styles {
    /// No colours: mails, files, pipes.
    #[must_use]
    pub const fn plain() -> Self {
        Self {
            strong: "",
            faint: "",
            better: "",
            worse: "",
            unclear: "",
            reset: "",
        }
    }

    /// The sixteen colours of any terminal, in its own palette. Cyan and yellow rather than green
    /// and red, which many colour-blind people cannot distinguish.
    #[must_use]
    pub const fn ansi() -> Self {
        Self {
            strong: "\x1b[1m",
            faint: "\x1b[2m",
            better: "\x1b[36m",
            worse: "\x1b[1;33m",
            unclear: "\x1b[35m",
            reset: "\x1b[0m",
        }
    }

    /// Returns the escape sequences that it writes.
    #[must_use]
    pub fn sequences(&self) -> Vec<&'static str> {
        let all = [
            self.strong,
            self.faint,
            self.better,
            self.worse,
            self.unclear,
            self.reset,
        ];
        all.into_iter()
            .filter(|sequence| !sequence.is_empty())
            .collect()
    }

    /// Returns a heading in bold, if there are colours.
    #[must_use]
    pub fn strong(&self, text: &str) -> String {
        self.around(self.strong, text)
    }

    /// Returns a minor detail, dimmed if there are colours.
    #[must_use]
    pub fn faint(&self, text: &str) -> String {
        self.around(self.faint, text)
    }

    /// Returns a warning, set off by a colour if there are colours.
    #[must_use]
    pub fn alarm(&self, text: &str) -> String {
        self.around(self.worse, text)
    }

    /// Returns a text in the colour of a verdict.
    #[must_use]
    pub fn verdict(&self, verdict: &Verdict, text: &str) -> String {
        self.tone(verdict.tone(), text)
    }

    /// Colours text that belongs to a verdict.
    pub fn tone(&self, word: &str, text: &str) -> String {
        let start = match word {
            "better" => self.better,
            "worse" => self.worse,
            "unclear" | "mixed" => self.unclear,
            _ => "",
        };
        self.around(start, text)
    }

    fn around(&self, start: &str, text: &str) -> String {
        if start.is_empty() || text.is_empty() {
            return text.to_owned();
        }
        format!("{start}{text}{}", self.reset)
    }
}

impl Default for Styles {
    fn default() -> Self {
        Self::plain()
    }
}
