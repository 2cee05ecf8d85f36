//! Reads the commits of a repository as patches.

use super::{Patch, PatchesError, RawMessage};
use crate::KernelError;
use crate::source::{Repository, SourceError, program};

/// Most commits of a range: three times those of a release of the kernel.
const COMMITS_MAX: usize = 50_000;

/// How long git may take: a release of the kernel takes it a minute.
const DEADLINE_S: u64 = 1800;

/// In front of each commit. No line of a diff begins with NUL, and no message has one.
const MARK: &[u8] = b"\0\x01";

impl Repository {
    /// Returns the commits after `older` up to `newer` with their patches, the oldest first. Merges
    /// have no diff.
    ///
    /// # Errors
    /// If git fails, or there are too many commits.
    pub fn patches(&self, older: &str, newer: &str) -> Result<Vec<(String, Patch)>, PatchesError> {
        let older = self.commit(older)?;
        let newer = self.commit(newer)?;
        let range = [newer, format!("^{older}"), "--".to_owned()];
        let count = program(self.folder())
            .args(["rev-list", "--count"])
            .args(&range)
            .run()?;
        if count
            .trim()
            .parse::<usize>()
            .is_ok_and(|count| count > COMMITS_MAX)
        {
            let limit = format!(
                "the range has {} commits, more than {COMMITS_MAX}",
                count.trim()
            );
            return Err(PatchesError::TooMuch {
                place: self.folder().to_owned(),
                limit,
            });
        }
        // Settings of the user and of the repository that change how a diff looks.
        let fixed = [
            "diff.suppressBlankEmpty=false",
            "diff.orderFile=/dev/null",
            "diff.context=3",
            "diff.submodule=short",
        ];
        let program = program(self.folder())
            .args(fixed.iter().flat_map(|setting| ["-c", setting]))
            .args([
                "log",
                "--reverse",
                "--topo-order",
                "--no-color",
                "--no-notes",
                "--encoding=UTF-8",
                "--patch",
            ])
            .args([
                "--find-renames",
                "--no-ext-diff",
                "--no-textconv",
                "--no-relative",
            ])
            .args([
                "--src-prefix=a/",
                "--dst-prefix=b/",
                "--unified=3",
                "--inter-hunk-context=0",
                "--full-index",
            ])
            .args(["--format=%x00%x01%H%x00%an <%ae>%x00%aD%x00%B%x00"])
            .args(&range)
            .deadline_s(DEADLINE_S);
        let command = program.command();
        let ended = program.end()?;
        if ended.code != Some(0) {
            let error = SourceError::Program {
                command,
                detail: ended.reason(),
            };
            return Err(KernelError::from(error).into());
        }
        Ok(parse_log(&ended.output))
    }
}

/// Parses the output of `git log --patch`.
fn parse_log(output: &[u8]) -> Vec<(String, Patch)> {
    let mut found = Vec::new();
    let mut rest = output.strip_prefix(MARK);
    while let Some(text) = rest {
        let mut fields = text.splitn(5, |byte| *byte == 0);
        let mut field = || String::from_utf8_lossy(fields.next().unwrap_or_default()).into_owned();
        let commit = field();
        let author = field();
        let date = field();
        let message = field();
        let behind = fields.next().unwrap_or_default();
        let next = next_mark(behind);
        let diff = &behind[..next.unwrap_or(behind.len())];
        rest = next.map(|at| &behind[at + MARK.len()..]);
        let (subject, body) = message.split_once("\n\n").unwrap_or((&message, ""));
        let raw = RawMessage {
            // A hash in the message would be that of another commit.
            commit: Some(commit.clone()),
            subject: subject.to_owned(),
            author,
            date,
            body: body.trim_end().to_owned(),
            ..RawMessage::default()
        };
        found.push((commit, Patch::new(raw, diff.trim_ascii_start().to_vec())));
    }
    found
}

/// Returns where the next commit begins: in the first column.
fn next_mark(text: &[u8]) -> Option<usize> {
    if text
        .strip_prefix(b"\n")
        .is_some_and(|rest| rest.starts_with(MARK))
    {
        return Some(1);
    }
    text.iter()
        .enumerate()
        .filter(|(_, byte)| **byte == 0)
        .map(|(at, _)| at)
        .find(|at: &usize| text[..*at].ends_with(b"\n") && text[*at..].starts_with(MARK))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{any, proptest};

    use super::parse_log;
    use crate::source::{Repository, run_git};

    #[test]
    fn commits_are_read_oldest_first() {
        let folder = tempfile::tempdir().unwrap();
        let run = |arguments: &[&str]| run_git(folder.path(), arguments);
        let write =
            |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        run(&["init", "--quiet", "-b", "main", "."]);
        write("walk.c", "int walk(void)\n{\n\treturn 0;\n}\n");
        run(&["add", "."]);
        run(&["commit", "--quiet", "-m", "first"]);
        run(&["checkout", "--quiet", "-b", "topic"]);
        write("walk.c", "int walk(void)\n{\n\treturn 1;\n}\n");
        run(&[
            "commit",
            "--quiet",
            "-am",
            "mm: walk\n\nFixes: 0123456789ab (\"mm: a\")\n",
        ]);
        run(&["checkout", "--quiet", "main"]);
        // Bytes that a hostile tree may have: NUL and the mark in a text file, and another charset.
        let hostile = [&vec![b'a'; 9000][..], b"\n\0\x01commit\n\xe4\n"].concat();
        std::fs::write(folder.path().join("hostile.c"), hostile).unwrap();
        run(&["add", "."]);
        run(&["commit", "--quiet", "--allow-empty-message", "-m", ""]);
        run(&["merge", "--quiet", "--no-ff", "-m", "merge", "topic"]);
        run(&["config", "diff.noprefix", "true"]);
        let patches = Repository::open(folder.path())
            .unwrap()
            .patches("HEAD^^", "HEAD")
            .unwrap();
        let mut subjects: Vec<&str> = patches
            .iter()
            .map(|(_, patch)| patch.subject.as_str())
            .collect();
        assert_eq!(subjects.pop(), Some("merge"));
        subjects.sort_unstable();
        assert_eq!(subjects, ["", "mm: walk"]);
        let walk = &patches
            .iter()
            .find(|(_, patch)| patch.subject == "mm: walk")
            .unwrap()
            .1;
        assert_eq!(walk.functions().collect::<Vec<_>>(), ["walk"]);
        assert_eq!((walk.files[0].name(), walk.fixes.len()), ("walk.c", 1));
        assert!(patches.last().unwrap().1.files.is_empty());
        let hostile = &patches
            .iter()
            .find(|(_, patch)| patch.subject.is_empty())
            .unwrap()
            .1;
        assert!(
            hostile.files[0].added == 3 && hostile.diff.contains(&0xe4),
            "{:?}",
            hostile.files
        );
    }

    proptest! {
        #[test]
        fn any_output_is_accepted(
            bytes in vec(any::<u8>(), 0..200),
            marked in "(\n?\u{0}\u{1}[a\u{0}\n]{0,9}){0,5}",
        ) {
            parse_log(&bytes);
            parse_log(marked.as_bytes());
        }
    }
}
