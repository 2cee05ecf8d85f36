//! Which functions differ between the sources of two builds, after preprocessing and with what is
//! inlined into them; `source/described.rs` asks the compiler.
//!
//! `builds/by-recipe/KEY.FILES.functions` records what it said of some files of a source, and
//! `KEY.FILES.lines` their code by source lines.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use crate::folder;
use crate::source::{Description, LineTable, Objects, SourceError, WorkTree};
use crate::{BuildEvent, ChangedLines, KernelError, Sources};

/// The functions of the files that differ between two sources.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FunctionChanges {
    before: Description,
    after: Description,
    /// Whether files differ of which the functions are not known, such as a Makefile's.
    is_partial: bool,
    lines: [LineTable; 2],
    changed: BTreeMap<String, ChangedLines>,
}

impl FunctionChanges {
    /// Returns the lines of C files that differ, by file.
    #[must_use]
    pub fn changed_lines(&self) -> &BTreeMap<String, ChangedLines> {
        &self.changed
    }

    /// Returns the code of the objects of changed files by source lines, before and after.
    #[must_use]
    pub fn lines(&self) -> &[LineTable; 2] {
        &self.lines
    }

    /// Returns whether the source of a function with code of its own differs, itself or what is
    /// inlined into it; `None` if that is not known. Functions are named without what compilers
    /// append.
    #[must_use]
    pub fn differs(&self, function: &str) -> Option<bool> {
        let sides = [&self.before, &self.after];
        let described = sides.map(|side| side.function(function));
        if described == [None, None] {
            return if self.is_partial { None } else { Some(false) };
        }
        let inlined = described.iter().flatten();
        let inlined = inlined.filter_map(|function| function.inlined.as_ref());
        let names: BTreeSet<&str> = inlined
            .flatten()
            .map(String::as_str)
            .chain([function])
            .collect();
        let text = |side: &Description, name: &str| -> Option<String> {
            side.function(name).map(|function| function.text.clone())
        };
        Some(
            names
                .into_iter()
                .any(|name| text(&self.before, name) != text(&self.after, name)),
        )
    }

    /// Returns those of the functions that a diff names that it may change: not those whose
    /// preprocessed text is the same, as a hunk's first line names what stands above a comment.
    #[must_use]
    pub fn changed(&self, named: &[String]) -> Vec<String> {
        let is_same = |name: &String| {
            let [before, after] = self.texts(name);
            !before.is_empty() && before == after
        };
        named
            .iter()
            .filter(|&name| !is_same(name))
            .cloned()
            .collect()
    }

    /// Returns the hashes of a function's text in each source: several if objects differ in it.
    fn texts(&self, name: &str) -> [BTreeSet<&str>; 2] {
        [&self.before, &self.after].map(|side| side.texts(name).collect())
    }

    /// Returns the functions of the newer source into which a function is inlined, else those of
    /// the older one.
    #[must_use]
    pub fn hosts(&self, inlined: &str) -> Vec<String> {
        let of = |side: &Description| side.hosts(inlined).map(str::to_owned).collect::<Vec<_>>();
        let newer = of(&self.after);
        if newer.is_empty() {
            of(&self.before)
        } else {
            newer
        }
    }

    /// Returns whether a function is in the source that the compiler saw; `None` if that is not
    /// known.
    #[must_use]
    pub fn is_compiled(&self, function: &str) -> Option<bool> {
        let sides = [&self.before, &self.after];
        if sides.iter().any(|side| side.function(function).is_some()) {
            return Some(true);
        }
        let is_known = !self.is_partial && sides.iter().any(|side| !side.is_empty());
        is_known.then_some(false)
    }
}

impl Sources {
    /// Compares the functions of two commits that are built, one after the other; asks the compiler
    /// about each file once.
    ///
    /// # Errors
    /// If there is no such commit, or git or the cache fails.
    pub fn function_changes(
        &self,
        older: &str,
        newer: &str,
        notify: &dyn Fn(BuildEvent),
    ) -> Result<FunctionChanges, KernelError> {
        let (c, others) = self.differing_code(older, newer)?;
        // The newer one first: its objects are there if it was built last.
        let (after, lines_after) = self.describe(newer, &c, notify)?;
        let (before, lines_before) = self.describe(older, &c, notify)?;
        let is_unknown = |side: &Description| c.iter().any(|file| side.is_unknown(file));
        let is_partial = !others.is_empty() || is_unknown(&before) || is_unknown(&after);
        Ok(FunctionChanges {
            before,
            after,
            is_partial,
            lines: [lines_before, lines_after],
            changed: self.changed_lines(older, newer)?,
        })
    }

    /// Asks the compiler about a commit that was built last, for a comparison with a later one: then
    /// its objects need not be made again.
    ///
    /// # Errors
    /// If there is no such commit, or git or the cache fails.
    pub fn describe_ahead(
        &self,
        commit: &str,
        later: &str,
        notify: &dyn Fn(BuildEvent),
    ) -> Result<(), KernelError> {
        let (c, _) = self.differing_code(commit, later)?;
        self.describe(commit, &c, notify).map(drop)
    }

    /// Describes the functions of what is compiled from C files.
    fn describe(
        &self,
        commit: &str,
        files: &[String],
        notify: &dyn Fn(BuildEvent),
    ) -> Result<(Description, LineTable), KernelError> {
        if files.is_empty() {
            return Ok(Default::default());
        }
        let cache = self.cache();
        // It opens the work tree itself, which one opens at a time.
        let compiled = self.compiled(commit)?.unwrap_or_default();
        let workshop = WorkTree::open(&cache.home)?;
        workshop.borrow(self.repository())?;
        let tree = workshop.tree_of(commit)?;
        let recipe = cache.recipe(&tree, self.compiler());
        // Of exactly these files: what other series asked for changes no answer.
        let asked = &folder::sha256(files.join("\n").as_bytes())[..12];
        let [file, kept_lines] =
            ["functions", "lines"].map(|kind| recipe.with_extension(format!("{asked}.{kind}")));
        let read = |file: &Path| match fs::read(file) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(KernelError::io(file)(error)),
        };
        if let (Some(text), Some(lines)) = (read(&file)?, read(&kept_lines)?)
            && let Some(lines) = LineTable::from_bytes(&lines)
        {
            let described = Description::from_text(&String::from_utf8_lossy(&text));
            return Ok((described, lines));
        }
        let toolchain = cache.toolchain()?;
        let objects = Objects::open(&workshop, &cache.settings, &toolchain)?;
        if !objects.is_of(&tree) {
            notify(BuildEvent::Building {
                what: format!("{commit:.12} again, to see what is inlined where"),
                estimate_s: objects.seconds().map(|seconds| seconds.last),
            });
            workshop.check_out(&tree, commit)?;
            match objects.make(&tree, commit, &|_| {}) {
                Ok(_) => {}
                // The series has an answer without it.
                Err(KernelError::Source(SourceError::DoesNotBuild { first_error, .. })) => {
                    let mut unknown = Description::default();
                    unknown.give_up(files, &first_error);
                    return Ok((unknown, LineTable::default()));
                }
                Err(error) => return Err(error),
            }
        }
        let (described, lines) = objects.describe(files, &compiled)?;
        let bytes = lines.to_bytes().map_err(KernelError::io(&kept_lines))?;
        folder::write(&kept_lines, &bytes)?;
        folder::write(&file, described.to_text().as_bytes())?;
        Ok((described, lines))
    }

    /// Returns the files that differ and may matter to the build of the older commit: those of C,
    /// and others.
    fn differing_code(
        &self,
        older: &str,
        newer: &str,
    ) -> Result<(Vec<String>, Vec<String>), KernelError> {
        let compiled = self.compiled(older)?.unwrap_or_default();
        let workshop = WorkTree::open(&self.cache().home)?;
        workshop.borrow(self.repository())?;
        let trees = [workshop.tree_of(older)?, workshop.tree_of(newer)?];
        let files = workshop.changed_between(&trees[0], &trees[1])?;
        let may_matter = files
            .into_iter()
            .filter(|file| is_c(file) || compiled.may_use(file));
        Ok(may_matter.partition(|file| is_c(file)))
    }
}

/// Returns whether a file is C.
fn is_c(file: &str) -> bool {
    [".c", ".h"].iter().any(|end| file.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::FunctionChanges;
    use crate::source::Description;

    fn described(text: &str) -> Description {
        Description::from_text(&text.replace('|', "\t"))
    }

    #[test]
    fn changes_of_inlined_functions_are_their_hosts() {
        let before = "function|outer|11|inner\nfunction|inner|22\nfunction|beside|33|\n";
        let changes = FunctionChanges {
            before: described(before),
            after: described(&before.replace("22", "23")),
            ..FunctionChanges::default()
        };
        assert_eq!(changes.differs("outer"), Some(true));
        assert_eq!(changes.differs("beside"), Some(false));
        assert_eq!(changes.differs("elsewhere"), Some(false));
        assert_eq!(changes.hosts("inner"), ["outer"]);
        assert_eq!(changes.is_compiled("inner"), Some(true));
        assert_eq!(changes.is_compiled("left_out"), Some(false));
    }

    #[test]
    fn named_functions_of_the_same_text_are_unchanged() {
        let text = |hash: &str| hash.repeat(8);
        let side = |changed: &str| {
            described(&format!(
                "function|above|{}|\nfunction|user|{}|\nfunction|shared|{}{}|\n",
                text("11"),
                text(changed),
                text("22"),
                // Another object that only one side describes: not known to be the same.
                if changed == "33" {
                    text("44")
                } else {
                    String::new()
                },
            ))
        };
        let changes = FunctionChanges {
            before: side("33"),
            after: side("55"),
            ..FunctionChanges::default()
        };
        let named = ["above", "user", "shared", "left_out"].map(str::to_owned);
        assert_eq!(changes.changed(&named), ["user", "shared", "left_out"]);
        assert_eq!(FunctionChanges::default().changed(&named), named);
    }

    #[test]
    fn unknown_files_leave_other_functions_unknown() {
        let changes = FunctionChanges {
            is_partial: true,
            ..FunctionChanges::default()
        };
        assert_eq!(changes.differs("elsewhere"), None);
        assert_eq!(changes.is_compiled("elsewhere"), None);
    }
}
