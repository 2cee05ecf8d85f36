//! Splits a patch into its hunks, each a patch of its own.
//!
//! A file that is added, deleted, moved, copied or binary stays whole, and so does a change of its
//! mode: git applies these in one piece.

use super::Patch;
use super::diff::{self, hunk_header, is_hunk};

/// Lines of git's header that concern a file as a whole.
const WHOLE: [&[u8]; 8] = [
    b"new file mode",
    b"deleted file mode",
    b"old mode",
    b"rename ",
    b"copy ",
    b"similarity index",
    b"GIT binary patch",
    b"Binary files",
];

impl Patch {
    /// Returns its hunks in order, each with the header of its file; their subjects say where.
    /// Applied one after the other, they make the whole.
    #[must_use]
    pub fn hunks(&self) -> Vec<Self> {
        let lines: Vec<&[u8]> = self.diff.split_inclusive(|byte| *byte == b'\n').collect();
        let mut pieces = Vec::new();
        let mut at = 0;
        while at < lines.len() {
            if begins_file(&lines, at) {
                let file = File::read(&lines, at);
                at = file.end;
                pieces.extend(file.pieces());
            } else {
                at += 1;
            }
        }
        pieces.into_iter().map(|piece| self.piece(piece)).collect()
    }

    fn piece(&self, diff: Vec<u8>) -> Self {
        let read = diff::read(&diff);
        let place = read.files.first().map_or_else(String::new, |file| {
            let function = file.functions.first();
            let function = function.map_or_else(String::new, |of| format!(" {}()", of.name));
            format!("{}{function}{}", file.name(), first_line(&diff))
        });
        Self {
            subject: model::sanitize_line(&place),
            files: read.files,
            fault: read.fault,
            cover: None,
            diff,
            ..self.clone()
        }
    }
}

/// Returns the line of the old file at which the first hunk begins, as `:LINE`.
fn first_line(diff: &[u8]) -> String {
    let mut lines = diff.split(|byte| *byte == b'\n');
    let hunk = lines.find(|line| is_hunk(line)).unwrap_or_default();
    let text = String::from_utf8_lossy(hunk);
    let from = text.strip_prefix("@@ -").unwrap_or_default();
    let digits: String = from.chars().take_while(char::is_ascii_digit).collect();
    if digits.is_empty() {
        digits
    } else {
        format!(":{digits}")
    }
}

fn begins_file(lines: &[&[u8]], at: usize) -> bool {
    let next = lines.get(at + 1).copied().unwrap_or_default();
    lines[at].starts_with(b"diff --git ")
        || (lines[at].starts_with(b"--- ") && next.starts_with(b"+++ "))
}

/// The lines of a file in a diff.
struct File<'a> {
    header: Vec<&'a [u8]>,
    hunks: Vec<Vec<&'a [u8]>>,
    is_whole: bool,
    /// Where the next file may begin.
    end: usize,
}

impl<'a> File<'a> {
    fn read(lines: &[&'a [u8]], start: usize) -> Self {
        let mut file = Self {
            header: vec![lines[start]],
            hunks: Vec::new(),
            is_whole: false,
            end: start + 1,
        };
        while file.end < lines.len() && !is_hunk(lines[file.end]) {
            let line = lines[file.end];
            if line.starts_with(b"diff --git ") {
                break;
            }
            file.is_whole |= WHOLE.iter().any(|word| line.starts_with(word));
            file.header.push(line);
            file.end += 1;
        }
        while file.end < lines.len() && is_hunk(lines[file.end]) {
            let hunk = hunk_of(&lines[file.end..]);
            file.end += hunk.len();
            file.hunks.push(hunk);
        }
        file.is_whole |= file.hunks.is_empty();
        file
    }

    fn pieces(self) -> Vec<Vec<u8>> {
        let header = self.header.concat();
        if self.is_whole {
            let hunks: Vec<&[u8]> = self.hunks.into_iter().flatten().collect();
            return vec![[header, hunks.concat()].concat()];
        }
        let hunks = self.hunks.into_iter();
        hunks
            .map(|hunk| [header.clone(), hunk.concat()].concat())
            .collect()
    }
}

/// Returns the lines of the hunk that begins here: as many as its header says, as far as they are
/// there.
fn hunk_of<'a>(lines: &[&'a [u8]]) -> Vec<&'a [u8]> {
    let text = String::from_utf8_lossy(lines[0]);
    let (mut old, mut new) =
        hunk_header(text.trim_end()).map_or((0, 0), |(old, new, _)| (old, new));
    let mut hunk = vec![lines[0]];
    for line in &lines[1..] {
        let is_note = line.starts_with(b"\\");
        if old == 0 && new == 0 && !is_note {
            break;
        }
        match line.first() {
            Some(b'-') => old = old.saturating_sub(1),
            Some(b'+') => new = new.saturating_sub(1),
            _ if is_note => {}
            _ => {
                old = old.saturating_sub(1);
                new = new.saturating_sub(1);
            }
        }
        hunk.push(line);
    }
    hunk
}

#[cfg(test)]
mod tests {
    use crate::patches::{Patch, RawMessage};

    const DIFF: &str = "\
diff --git a/mm/x.c b/mm/x.c
index 1111111..2222222 100644
--- a/mm/x.c
+++ b/mm/x.c
@@ -1,3 +1,3 @@ int one(void)
 {
-\told();
+\tnew();
 }
@@ -20 +20,2 @@ int two(void)
-\ta();
+\tb();
+--- a/no/file
\\ No newline at end of file
diff --git a/new.c b/new.c
new file mode 100644
index 0000000..3333333
--- /dev/null
+++ b/new.c
@@ -0,0 +1 @@
+int a;
diff --git a/old b/moved
similarity index 100%
rename from old
rename to moved
-- 
2.40.1
";

    #[test]
    fn patch_is_split_into_what_git_applies_alone() {
        let patch = Patch::new(RawMessage::default(), DIFF.as_bytes().to_vec());
        let hunks = patch.hunks();
        let subjects: Vec<&str> = hunks.iter().map(|hunk| &*hunk.subject).collect();
        assert_eq!(
            subjects,
            ["mm/x.c one():1", "mm/x.c two():20", "new.c:0", "moved"]
        );
        assert!(hunks.iter().all(|hunk| hunk.fault.is_none()));
        let second = String::from_utf8(hunks[1].diff.clone()).unwrap();
        assert!(second.starts_with("diff --git a/mm/x.c"), "{second}");
        assert!(
            second.ends_with("+--- a/no/file\n\\ No newline at end of file\n"),
            "{second}"
        );
    }
}
