//! A series for systems that check patches: patchwork, GitHub, GitLab.
//!
//! Subjects and paths are of others: each format escapes what it would read as its own.

use document::{RenderError, write_json};
use model::sanitize_line;
use serde::Serialize;

use crate::commit_formats::SeriesAnswer;
use crate::commit_table::{CommitRow, CommitVerdict, workloads};

/// Characters of a description: as many as patchwork allows a check's context
/// (patchwork/models.py, `Check`).
const DESCRIPTION: usize = 255;
/// Rows of a comment: GitHub refuses more than 65,536 characters.
const COMMENT_ROWS: usize = 100;
/// First line of a comment, by which the next one finds it.
pub const COMMENT_MARK: &str = "<!-- marvin series -->";

/// Where a commit or patch comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommitSource {
    /// Message id of its mail, without the angle brackets.
    pub message_id: Option<String>,
    /// The file that it changes first, code before all else, and the first changed line.
    pub place: Option<(String, u32)>,
}

/// A check, as patchwork's API takes it (`POST /api/patches/ID/checks/`), with the patch that it is
/// of.
#[derive(Debug, Serialize)]
struct PatchworkCheck<'a> {
    /// The abbreviated hash, or the number of the patch; patchwork ignores it.
    patch: &'a str,
    /// By which patchwork finds the patch (`?msgid=`).
    msgid: Option<&'a str>,
    state: &'static str,
    context: &'static str,
    description: String,
    target_url: Option<&'a str>,
}

/// A finding in GitLab's report of code quality.
#[derive(Debug, Serialize)]
struct CodeQuality {
    description: String,
    check_name: &'static str,
    fingerprint: String,
    severity: &'static str,
    location: Location,
}

#[derive(Debug, Serialize)]
struct Location {
    path: String,
    lines: Lines,
}

#[derive(Debug, Serialize)]
struct Lines {
    begin: u32,
}

impl SeriesAnswer<'_> {
    fn with_sources<'a>(
        &'a self,
        sources: &'a [CommitSource],
    ) -> impl Iterator<Item = (&'a CommitRow, Option<&'a CommitSource>)> {
        let places = (0..).map(|number| sources.get(number));
        self.commits().zip(places)
    }

    /// Returns a check of patchwork for each patch, as an array of JSON. `sources` are of the
    /// commits in their order; `target` is where the whole answer is.
    ///
    /// # Errors
    /// Never in practice: everything is in memory.
    pub fn patchwork(
        &self,
        sources: &[CommitSource],
        target: Option<&str>,
    ) -> Result<String, RenderError> {
        let checks: Vec<PatchworkCheck<'_>> = self
            .with_sources(sources)
            .map(|(row, source)| PatchworkCheck {
                patch: &row.commit,
                msgid: source.and_then(|source| source.message_id.as_deref()),
                state: match row.verdict() {
                    CommitVerdict::Worse | CommitVerdict::Failed => "fail",
                    CommitVerdict::Unclear | CommitVerdict::NotMeasured => "warning",
                    _ => "success",
                },
                context: "marvin",
                description: cut(&sanitize_line(&self.describe(row)), DESCRIPTION),
                target_url: target,
            })
            .collect();
        write_json(&checks)
    }

    /// Returns annotations for GitHub Actions, a workflow command for each commit with news, and one
    /// notice if there are none.
    #[must_use]
    pub fn github(&self, sources: &[CommitSource]) -> String {
        let mut text = String::new();
        for (row, source) in self.with_sources(sources) {
            let level = match row.verdict() {
                CommitVerdict::Worse | CommitVerdict::Failed => "error",
                CommitVerdict::Unclear | CommitVerdict::NotMeasured => "warning",
                CommitVerdict::Better => "notice",
                _ => continue,
            };
            let place = source
                .and_then(|source| source.place.as_ref())
                .map(|(file, line)| format!("file={},line={line},", escape_property(file)));
            let title = format!("marvin: {}", row.verdict().word());
            let words = format!("{} {}: {}", row.commit, row.subject, self.describe(row));
            let place = place.unwrap_or_default();
            let title = escape_property(&title);
            let words = escape_data(&sanitize_line(&words));
            let line = format!("::{level} {place}title={title}::{words}\n");
            text.push_str(&line);
        }
        if text.is_empty() {
            let words = escape_data(&sanitize_line(&self.nothing_moved()));
            return format!("::notice title=marvin::{words}\n");
        }
        text
    }

    /// Returns a report of code quality for GitLab: a finding for each commit that is not as good
    /// as the one before it.
    ///
    /// # Errors
    /// Never in practice: everything is in memory.
    pub fn gitlab(&self, sources: &[CommitSource]) -> Result<String, RenderError> {
        let mut findings = Vec::new();
        for (row, source) in self.with_sources(sources) {
            let verdict = row.verdict();
            let severity = match verdict {
                CommitVerdict::Failed => "blocker",
                CommitVerdict::Worse => "major",
                CommitVerdict::Unclear | CommitVerdict::NotMeasured => "minor",
                _ => continue,
            };
            let place = source.and_then(|source| source.place.clone());
            // GitLab drops a finding without a file.
            let (path, begin) = place.unwrap_or_else(|| ("Makefile".to_owned(), 1));
            let words = format!("{} {}: {}", row.commit, row.subject, self.describe(row));
            findings.push(CodeQuality {
                description: sanitize_line(&words),
                check_name: "marvin series",
                // Not the hash of the commit: a rebase keeps the finding.
                fingerprint: fingerprint(&[&path, &row.subject, verdict.word()]),
                severity,
                location: Location {
                    path,
                    lines: Lines { begin },
                },
            });
        }
        write_json(&findings)
    }

    /// Returns markdown for one comment that is edited in place, with a mark by which the next one
    /// finds it: one line if nothing moved.
    #[must_use]
    pub fn comment(&self) -> String {
        if !self.has_news() {
            let line = self.nothing_moved();
            return format!("{COMMENT_MARK}\n{}\n", document::escaped(&line));
        }
        let shown = self.rows.len().min(COMMENT_ROWS + 1);
        let part = SeriesAnswer {
            rows: &self.rows[..shown],
            ..self.clone()
        };
        let left_out = self.rows.len() - shown;
        let more = if left_out > 0 {
            format!("\n{left_out} more are not shown.\n")
        } else {
            String::new()
        };
        format!(
            "{COMMENT_MARK}\n**Marvin: {}**\n\n{}{more}",
            self.count_verdicts(),
            part.markdown()
        )
    }

    /// Returns whether a commit is anything but as good as the one before it.
    fn has_news(&self) -> bool {
        self.commits()
            .any(|row| !matches!(row.verdict(), CommitVerdict::Same | CommitVerdict::Equal))
    }

    /// Says in a line that nothing moved.
    fn nothing_moved(&self) -> String {
        format!(
            "Marvin: no change in {} ({})",
            workloads(self.workloads.len()),
            self.title
        )
    }
}

fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

/// Escapes the message of a workflow command (actions/toolkit, `packages/core/src/command.ts`).
fn escape_data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// Escapes a property of a workflow command.
fn escape_property(text: &str) -> String {
    escape_data(text).replace(':', "%3A").replace(',', "%2C")
}

/// Returns what stays the same as long as these words do: FNV-1a with 64 bits.
fn fingerprint(words: &[&str]) -> String {
    let bytes = words.iter().flat_map(|word| word.bytes().chain([0]));
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::{COMMENT_MARK, CommitSource, DESCRIPTION};
    use crate::commit_formats::tests::{answer, rows};
    use crate::commit_table::State;

    fn sources() -> Vec<CommitSource> {
        (1..=6)
            .map(|number| CommitSource {
                message_id: Some(format!("{number}@example.org")),
                place: Some((format!("mm/a,{number}:x.c"), number * 10)),
            })
            .collect()
    }

    #[test]
    fn each_system_gets_its_format() {
        let rows = rows();
        let answer = answer(&rows);
        let patchwork = answer
            .patchwork(&sources(), Some("https://ci.example.org/1"))
            .unwrap();
        insta::assert_snapshot!("patchwork", patchwork);
        insta::assert_snapshot!("github", answer.github(&sources()));
        insta::assert_snapshot!("gitlab", answer.gitlab(&sources()).unwrap());
        insta::assert_snapshot!("comment", answer.comment());
    }

    #[test]
    fn nothing_moved_is_one_line() {
        let rows = rows();
        let quiet = answer(&rows[..3]);
        assert_eq!(quiet.comment().lines().count(), 2, "with its mark");
        assert!(quiet.comment().starts_with(COMMENT_MARK));
        assert_eq!(quiet.github(&[]).lines().count(), 1);
        assert_eq!(quiet.gitlab(&[]).unwrap().trim(), "[]");
    }

    #[test]
    fn words_of_others_stay_words() {
        let mut rows = rows();
        rows[4].subject = "evil\n::error::x --> <!-- %0A".to_owned();
        rows[4].state = State::NotApplied("y".repeat(900));
        let answer = answer(&rows);
        assert_eq!(answer.github(&sources()).lines().count(), 4);
        let checks = answer.patchwork(&[], None).unwrap();
        let checks = checks
            .lines()
            .filter(|line| line.contains("\"description\""));
        assert!(
            checks
                .clone()
                .all(|line| line.chars().count() < DESCRIPTION + 30)
        );
        assert!(
            !answer.comment().contains("--> <!--"),
            "{}",
            answer.comment()
        );
    }
}
