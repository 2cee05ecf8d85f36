//! The lines that differ between two sources, and the code that the compiler made of them.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::WorkTree;
use crate::{KernelError, Sources};

/// Most bytes of a diff that are read.
const DIFF_MAX: u64 = 64 << 20;

/// The lines of a file that differ.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangedLines {
    /// Lines that only the newer file has.
    pub added: BTreeSet<u32>,
    /// Lines that only the older file has, and in whose place nothing new stands.
    pub removed: BTreeSet<u32>,
}

impl Sources {
    /// Returns the lines of C files that differ between two commits, by file.
    ///
    /// # Errors
    /// If there is no such commit, or git fails.
    pub fn changed_lines(
        &self,
        older: &str,
        newer: &str,
    ) -> Result<BTreeMap<String, ChangedLines>, KernelError> {
        let workshop = WorkTree::open(&self.cache().home)?;
        workshop.borrow(self.repository())?;
        let trees = [workshop.tree_of(older)?, workshop.tree_of(newer)?];
        workshop.changed_lines(&trees)
    }
}

impl WorkTree {
    /// Returns the lines of source files that differ between two trees, by file.
    pub(crate) fn changed_lines(
        &self,
        trees: &[String; 2],
    ) -> Result<BTreeMap<String, ChangedLines>, KernelError> {
        // No attribute and no setting of the tree changes what is printed.
        let words = [
            "diff-tree",
            "-r",
            "-p",
            "-U0",
            "--no-renames",
            "--no-textconv",
            "--no-ext-diff",
            "--no-color",
            "--text",
            "--src-prefix=a/",
            "--dst-prefix=b/",
        ];
        let diff = self
            .git(&self.source())
            .args(words)
            .args(trees)
            .args(["--", "*.c", "*.h", "*.S"])
            .output_max(DIFF_MAX)
            .run()?;
        Ok(parse(&diff))
    }
}

/// Reads a diff without context. Files with names that git quotes are left out.
fn parse(diff: &str) -> BTreeMap<String, ChangedLines> {
    let mut found: BTreeMap<String, ChangedLines> = BTreeMap::new();
    let mut file: Option<String> = None;
    // Lines of a hunk may look like a header.
    let mut left = 0_u64;
    for line in diff.lines() {
        if left > 0 && line.starts_with(['+', '-']) {
            left -= 1;
        } else if line.starts_with("diff --git ") {
            file = None;
        } else if let Some(name) = line
            .strip_prefix("--- a/")
            .or_else(|| line.strip_prefix("+++ b/"))
        {
            // git ends a name with blanks by a tab.
            file = Some(name.trim_end_matches('\t').to_owned());
        } else if let (Some(file), Some([old, new])) = (&file, hunk(line)) {
            left = u64::from(old.1) + u64::from(new.1);
            let lines = found.entry(file.clone()).or_default();
            lines.added.extend(new.0..new.0.saturating_add(new.1));
            if new.1 == 0 {
                lines.removed.extend(old.0..old.0.saturating_add(old.1));
            }
        }
    }
    found
}

/// Reads the first lines and the numbers of lines of `@@ -OLD[,COUNT] +NEW[,COUNT] @@`.
fn hunk(line: &str) -> Option<[(u32, u32); 2]> {
    let (ranges, _) = line.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    let range = |text: &str| match text.split_once(',') {
        Some((first, count)) => Some((first.parse().ok()?, count.parse().ok()?)),
        None => Some((text.parse().ok()?, 1)),
    };
    Some([range(old)?, range(new)?])
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn hunks_name_lines_of_both_sides() {
        let diff = "diff --git a/mm/a.c b/mm/a.c\nindex 1..2 100644\n--- a/mm/a.c\n+++ b/mm/a.c\n\
                    @@ -3 +3,2 @@ int f(void)\n-old\n+new\n+++ b/evil.c\n@@ -9,2 +9,0 @@\n-gone\n--- a/gone.c\n\
                    diff --git a/mm/b.h b/mm/b.h\n--- a/mm/b.h\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-x\n-y\n\
                    diff --git \"a/q\\\"\" \"b/q\\\"\"\n--- \"a/q\\\"\"\n+++ \"b/q\\\"\"\n@@ -1 +1 @@\n-x\n+y\n";
        let found = parse(diff);
        assert_eq!(found.keys().collect::<Vec<_>>(), ["mm/a.c", "mm/b.h"]);
        let a = &found["mm/a.c"];
        assert_eq!(a.added, [3, 4].into());
        assert_eq!(a.removed, [9, 10].into());
        assert_eq!(found["mm/b.h"].removed, [1, 2].into());
    }

    proptest::proptest! {
        #[test]
        fn any_diff_is_read(text in "((diff --git |--- a/|\\+\\+\\+ b/|@@ -|[+-])[0-9,@ +]{0,12}\n){0,9}") {
            let _found = parse(&text);
        }
    }
}
