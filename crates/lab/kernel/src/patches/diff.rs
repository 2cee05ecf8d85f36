//! Reads a unified diff as `git apply` does: files, counted lines, the functions and identifiers
//! that it touches.
//!
//! Pure: paths are text and open no file. `functions` attributes lines.

use std::collections::HashMap;

use super::functions::{Language, enclosing};
use super::identifiers::{Collector, Identifiers};

/// Longest line with two names: twice PATH_MAX of Linux.
const NAMES_BYTES_MAX: usize = 8192;

/// What a patch does with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileChange {
    /// Changes its content or mode.
    Modified,
    Added,
    Deleted,
    /// Moves it, and may change it.
    Renamed,
    /// Copies another file, and may change the copy.
    Copied,
}

/// A function with changed lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TouchedFunction {
    /// Its name, for a system call that of the kernel's symbol `__do_sys_…`.
    pub name: String,
    pub added: usize,
    pub removed: usize,
}

/// A file that a patch changes. The names are what the patch says, and may be anything: never open
/// them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFile {
    /// Name before; `None` if the patch creates the file.
    pub old: Option<String>,
    /// Name afterwards; `None` if the patch deletes the file.
    pub new: Option<String>,
    /// What happens to it.
    pub change: FileChange,
    /// Whether git has no lines of it.
    pub is_binary: bool,
    pub added: usize,
    pub removed: usize,
    /// Functions in the order in which they are touched.
    pub functions: Vec<TouchedFunction>,
    /// Changed lines outside functions, or of a function that the diff does not show.
    pub outside: usize,
    /// Identifiers, of source code only.
    pub identifiers: Identifiers,
}

impl ChangedFile {
    /// Returns its name, afterwards if it has one.
    #[must_use]
    pub fn name(&self) -> &str {
        self.new
            .as_deref()
            .or(self.old.as_deref())
            .unwrap_or_default()
    }
}

/// Where a diff is damaged, such as by a mail program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffFault {
    /// Line of the diff, from 1.
    pub line: usize,
    pub what: &'static str,
}

/// The content of a diff.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Diff {
    pub(super) files: Vec<ChangedFile>,
    pub(super) fault: Option<DiffFault>,
}

/// Returns the position at which a line begins a diff, in a text that may have other words before.
pub(super) fn start(text: &[u8]) -> Option<usize> {
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    let mut at = 0;
    for (number, line) in lines.iter().enumerate() {
        let next = lines.get(number + 1).copied().unwrap_or_default();
        let is_traditional = line.starts_with(b"--- ") && next.starts_with(b"+++ ");
        let is_svn = line.starts_with(b"Index: ") && next.starts_with(b"=====");
        // Of a diff's command line, too: `diff -urN a b`.
        if line.starts_with(b"diff --git ") || is_traditional || is_svn {
            return Some(at);
        }
        at += line.len() + 1;
    }
    None
}

pub(super) fn read(text: &[u8]) -> Diff {
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    let mut reader = Reader {
        lines,
        at: 0,
        diff: Diff::default(),
    };
    while reader.at < reader.lines.len() {
        let line = reader.lines[reader.at];
        if line.starts_with(b"diff --git ") {
            reader.git_file();
        } else if line.starts_with(b"--- ")
            && reader.line(1).starts_with(b"+++ ")
            && reader.line(2).starts_with(b"@@ -")
        {
            reader.traditional_file();
        } else {
            if is_hunk(line) {
                reader.fault("a hunk that belongs to no file");
            }
            reader.at += 1;
        }
    }
    reader.diff
}

struct Reader<'a> {
    lines: Vec<&'a [u8]>,
    at: usize,
    diff: Diff,
}

/// The part of a file before its first hunk.
#[derive(Debug, Default)]
struct Header {
    old: Option<String>,
    new: Option<String>,
    change: Option<FileChange>,
    is_binary: bool,
}

impl<'a> Reader<'a> {
    /// Returns a line behind the present one; an empty one if there is none.
    fn line(&self, further: usize) -> &'a [u8] {
        self.lines
            .get(self.at + further)
            .copied()
            .unwrap_or_default()
    }

    fn fault(&mut self, what: &'static str) {
        let line = self.at + 1;
        self.diff.fault.get_or_insert(DiffFault { line, what });
    }

    /// Reads a file with git's header.
    fn git_file(&mut self) {
        let mut header = Header::default();
        let name = same_name(&self.line(0)["diff --git ".len()..]);
        self.at += 1;
        while self.at < self.lines.len() {
            let line = self.lines[self.at];
            if let Some(name) = line.strip_prefix(b"--- ") {
                header.old = path(name).or(header.old);
            } else if let Some(name) = line.strip_prefix(b"+++ ") {
                header.new = path(name).or(header.new);
            } else if !extended(&mut header, line) {
                break;
            }
            self.at += 1;
        }
        if self.line(0).starts_with(b"GIT binary patch") || is_binary_note(self.line(0)) {
            header.is_binary = true;
            self.at += 1;
        }
        header.old = header.old.or_else(|| name.clone());
        header.new = header.new.or(name);
        if header.old.is_none() && header.new.is_none() {
            self.fault("a file without a name");
        }
        self.hunks(header);
    }

    /// Reads a file with the header of `diff -u`.
    fn traditional_file(&mut self) {
        let old = &self.line(0)[4..];
        let new = &self.line(1)[4..];
        self.at += 2;
        let name = shorter_name(path(old), path(new));
        let change = if is_absent(old) {
            Some(FileChange::Added)
        } else if is_absent(new) {
            Some(FileChange::Deleted)
        } else {
            None
        };
        self.hunks(Header {
            old: name.clone(),
            new: name,
            change,
            is_binary: false,
        });
    }

    /// Reads the hunks of a file.
    fn hunks(&mut self, header: Header) {
        let change = header.change.unwrap_or(FileChange::Modified);
        let mut file = ChangedFile {
            old: header.old.filter(|_| change != FileChange::Added),
            new: header.new.filter(|_| change != FileChange::Deleted),
            change,
            is_binary: header.is_binary,
            added: 0,
            removed: 0,
            functions: Vec::new(),
            outside: 0,
            identifiers: Identifiers::default(),
        };
        let language = Language::from_path(file.name());
        let mut identifiers = Collector::new(language);
        let mut known = HashMap::new();
        while is_hunk(self.line(0)) {
            let hunk = self.hunk();
            identifiers.take_all(&hunk.lines);
            hunk.count(&mut file, language, &mut known);
        }
        file.identifiers = identifiers.finish();
        self.diff.files.push(file);
    }

    /// Reads a hunk, up to the end of the lines that it announces.
    fn hunk(&mut self) -> Hunk {
        let text = String::from_utf8_lossy(self.line(0)).into_owned();
        let Some((mut old, mut new, before)) = hunk_header(&text) else {
            self.fault("a hunk without line numbers");
            self.at += 1;
            return Hunk::default();
        };
        let mut hunk = Hunk {
            before: before.to_owned(),
            lines: Vec::new(),
        };
        self.at += 1;
        while old > 0 || new > 0 {
            // The last line of a file has no line break, so the text ends with an empty one.
            let is_last = self.at + 1 >= self.lines.len() && self.line(0).is_empty();
            let sign = self.line(0).first().copied().unwrap_or(b' ');
            // Editors and mail programs remove the space; `patch` forgives that, git does not.
            let sign = if sign == b'\r' || sign == b'\t' {
                self.fault("a line of context without its space");
                b' '
            } else {
                sign
            };
            match sign {
                b' ' if !is_last && old > 0 && new > 0 => (old, new) = (old - 1, new - 1),
                b'-' if old > 0 => old -= 1,
                b'+' if new > 0 => new -= 1,
                b'\\' => {
                    self.at += 1;
                    continue;
                }
                _ => {
                    self.fault("a hunk with other lines than its header says");
                    break;
                }
            }
            let content = self.line(0).get(1..).unwrap_or_default();
            hunk.lines
                .push((sign, String::from_utf8_lossy(content).into_owned()));
            self.at += 1;
        }
        if self.line(0).starts_with(b"\\") {
            self.at += 1;
        }
        hunk
    }
}

/// Lines of a hunk with their signs.
#[derive(Debug, Default)]
struct Hunk {
    before: String,
    lines: Vec<(u8, String)>,
}

impl Hunk {
    /// Adds the hunk to a file's counts. `known` has the places of its functions.
    fn count(
        &self,
        file: &mut ChangedFile,
        language: Option<Language>,
        known: &mut HashMap<String, usize>,
    ) {
        let old = self.functions(language, b'-');
        let new = self.functions(language, b'+');
        let mut old = old.into_iter();
        let mut new = new.into_iter();
        for (sign, _) in &self.lines {
            let function = match sign {
                b'-' => old.next(),
                b'+' => new.next(),
                _ => {
                    old.next();
                    new.next();
                    continue;
                }
            };
            let is_added = *sign == b'+';
            file.added += usize::from(is_added);
            file.removed += usize::from(!is_added);
            let Some(name) = function.flatten() else {
                file.outside += 1;
                continue;
            };
            let at = *known.entry(name.clone()).or_insert_with(|| {
                file.functions.push(TouchedFunction {
                    name,
                    added: 0,
                    removed: 0,
                });
                file.functions.len() - 1
            });
            file.functions[at].added += usize::from(is_added);
            file.functions[at].removed += usize::from(!is_added);
        }
    }

    /// Returns the functions of the lines of one side.
    fn functions(&self, language: Option<Language>, side: u8) -> Vec<Option<String>> {
        let of_side = self
            .lines
            .iter()
            .filter(|(sign, _)| *sign == b' ' || *sign == side);
        let lines: Vec<&str> = of_side.map(|(_, line)| line.as_str()).collect();
        match language {
            Some(language) => enclosing(language, &self.before, &lines),
            None => vec![None; lines.len()],
        }
    }
}

pub(super) fn is_hunk(line: &[u8]) -> bool {
    line.starts_with(b"@@ -")
}

fn is_binary_note(line: &[u8]) -> bool {
    (line.starts_with(b"Binary files ") || line.starts_with(b"Files "))
        && line.trim_ascii_end().ends_with(b" differ")
}

/// Reads a line between `diff --git` and the first hunk. Returns whether it is one.
fn extended(header: &mut Header, line: &[u8]) -> bool {
    let names = [
        (&b"rename from "[..], true, FileChange::Renamed),
        (b"rename to ", false, FileChange::Renamed),
        (b"copy from ", true, FileChange::Copied),
        (b"copy to ", false, FileChange::Copied),
    ];
    for (prefix, is_old, change) in names {
        if let Some(name) = line.strip_prefix(prefix) {
            let name = Some(unquoted(name));
            *(if is_old {
                &mut header.old
            } else {
                &mut header.new
            }) = name;
            header.change = Some(change);
            return true;
        }
    }
    if line.starts_with(b"new file mode ") {
        header.change = Some(FileChange::Added);
        return true;
    }
    if line.starts_with(b"deleted file mode ") {
        header.change = Some(FileChange::Deleted);
        return true;
    }
    let others: [&[u8]; 5] = [
        b"old mode ",
        b"new mode ",
        b"similarity index ",
        b"dissimilarity index ",
        b"index ",
    ];
    others.iter().any(|other| line.starts_with(other))
}

/// Parses `@@ -1,2 +3,4 @@ function`: counted lines of both sides, and the function.
pub(super) fn hunk_header(line: &str) -> Option<(usize, usize, &str)> {
    let (ranges, before) = line.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    Some((line_count(old)?, line_count(new)?, before.trim()))
}

/// Returns the number of lines of a range such as `12,3`; of one line where it names none.
fn line_count(range: &str) -> Option<usize> {
    match range.split_once(',') {
        Some((start, count)) => start.parse::<u64>().ok().and(count.parse().ok()),
        None => range.parse::<u64>().ok().map(|_| 1),
    }
}

/// Returns the name of a header's line, without the part before the first slash; `None` for
/// /dev/null.
fn path(text: &[u8]) -> Option<String> {
    let text = text.trim_ascii_end();
    let name = if text.starts_with(b"\"") {
        unquoted(text)
    } else {
        String::from_utf8_lossy(dateless(text)).into_owned()
    };
    (name != "/dev/null").then(|| without_first(&name).to_owned())
}

/// Returns a name without the date that `diff -u` prints behind it.
fn dateless(text: &[u8]) -> &[u8] {
    if let Some(tab) = text.iter().position(|byte| *byte == b'\t') {
        return &text[..tab];
    }
    // Some programs separate it by spaces.
    let mut spaces = text
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b' ')
        .map(|(at, _)| at);
    let end = spaces.find(|at| is_date(&text[at + 1..]));
    text[..end.unwrap_or(text.len())].trim_ascii_end()
}

/// Returns whether text begins with a date such as `2026-01-31 `.
fn is_date(text: &[u8]) -> bool {
    text.len() > 10
        && text[4] == b'-'
        && text[7] == b'-'
        && text[10] == b' '
        && text[0].is_ascii_digit()
        && text[9].is_ascii_digit()
}

fn without_first(name: &str) -> &str {
    let rest = name
        .split_once('/')
        .map_or(name, |(_, rest)| rest.trim_start_matches('/'));
    if rest.is_empty() { name } else { rest }
}

/// Returns a name that git may have quoted, as C does strings.
fn unquoted(text: &[u8]) -> String {
    let text = text.trim_ascii_end();
    let Some(inner) = text.strip_prefix(b"\"") else {
        return String::from_utf8_lossy(text).into_owned();
    };
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        match byte {
            b'"' => break,
            b'\\' => {
                let escaped = rest.next().unwrap_or(b'\\');
                let mut octal = 0_u32;
                if (b'0'..=b'3').contains(&escaped) {
                    octal = u32::from(escaped - b'0');
                    for _ in 0..2 {
                        let digit = rest
                            .next_if(|byte| (b'0'..=b'7').contains(byte))
                            .unwrap_or(b'0');
                        octal = octal * 8 + u32::from(digit - b'0');
                    }
                }
                bytes.push(match escaped {
                    b'n' => b'\n',
                    b't' => b'\t',
                    b'r' => b'\r',
                    b'a' => 7,
                    b'b' => 8,
                    b'f' => 12,
                    b'v' => 11,
                    b'0'..=b'3' => u8::try_from(octal).unwrap_or(b'?'),
                    other => other,
                });
            }
            other => bytes.push(other),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the name in `a/NAME b/NAME`, if both are the same.
fn same_name(text: &[u8]) -> Option<String> {
    let text = text.trim_ascii_end();
    if text.starts_with(b"\"") {
        let name = unquoted(text);
        return Some(without_first(&name).to_owned());
    }
    if text.len() > NAMES_BYTES_MAX {
        return None;
    }
    let text = String::from_utf8_lossy(text);
    let mut spaces = text.match_indices(' ').map(|(at, _)| at);
    let at = spaces.find(|at| without_first(&text[..*at]) == without_first(&text[at + 1..]))?;
    Some(without_first(&text[..at]).to_owned())
}

/// Returns the name that `diff -u` means: without `.orig` and the like.
fn shorter_name(old: Option<String>, new: Option<String>) -> Option<String> {
    match (old, new) {
        (Some(old), Some(new)) if old.len() < new.len() && new.starts_with(&old) => Some(old),
        (old, new) => new.or(old),
    }
}

/// Returns whether the file does not exist on this side: `diff -N` dates it to the beginning of
/// Unix time.
fn is_absent(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    let mut parts = text.trim_end().splitn(2, '\t');
    if parts
        .next()
        .is_some_and(|name| name.trim_end() == "/dev/null")
    {
        return true;
    }
    parts.next().is_some_and(|date| is_epoch(date.trim()))
}

/// Returns whether `1970-01-01 01:00:00.000000000 +0100` and the like are the beginning of Unix
/// time.
fn is_epoch(date: &str) -> bool {
    let mut fields = date.split_whitespace();
    let days = match fields.next() {
        Some("1970-01-01") => 0,
        Some("1969-12-31") => -1,
        _ => return false,
    };
    let Some((time, zone)) = fields.next().zip(fields.next()) else {
        return false;
    };
    let is_zero = time
        .get(5..)
        .is_some_and(|rest| rest.trim_matches(['0', ':', '.']).is_empty());
    let Some(local) = time.get(..5).and_then(minutes) else {
        return false;
    };
    let (sign, zone) = if let Some(zone) = zone.strip_prefix('-') {
        (-1, zone)
    } else {
        (1, zone.trim_start_matches('+'))
    };
    let Some(zone) = minutes(zone) else {
        return false;
    };
    is_zero && days * 24 * 60 + local == sign * zone
}

/// Returns the minutes of `01:30` or `0130`.
fn minutes(text: &str) -> Option<i32> {
    let hours: i32 = text.get(..2)?.parse().ok()?;
    let minutes: i32 = text.get(text.len() - 2..)?.parse().ok()?;
    Some(hours * 60 + minutes)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert, proptest};

    use super::{FileChange, is_epoch, read, start};

    const DIFF: &str = "\
diff --git a/mm/walk.c b/mm/walk.c
index 1..2 100644
--- a/mm/walk.c
+++ b/mm/walk.c
@@ -10,7 +10,8 @@ static int walk(struct mm *mm)
 \tint count = 0;
 
-\told_step(mm);
+\tnew_step(mm);
+\tcount++;
 \treturn count;
 }
 
 static int next(void)
@@ -40,2 +41,2 @@ static int last(void)
 {
-\ta();
+\tb();
\\ No newline at end of file
diff --git a/old.c b/new.c
similarity index 100%
rename from old.c
rename to new.c
diff --git a/logo.png b/logo.png
new file mode 100644
Binary files /dev/null and b/logo.png differ
";

    #[test]
    fn files_lines_and_functions_are_read() {
        let diff = read(DIFF.as_bytes());
        assert_eq!(diff.fault, None);
        let [walk, moved, logo] = &diff.files[..] else {
            panic!("{:?}", diff.files)
        };
        assert_eq!(
            (walk.name(), walk.added, walk.removed, walk.outside),
            ("mm/walk.c", 3, 2, 0)
        );
        let functions: Vec<(&str, usize, usize)> = walk
            .functions
            .iter()
            .map(|function| (&*function.name, function.added, function.removed))
            .collect();
        assert_eq!(functions, [("walk", 2, 1), ("last", 1, 1)]);
        assert!(
            walk.identifiers.added.contains("new_step")
                && walk.identifiers.removed.contains("old_step")
        );
        assert_eq!(
            (moved.old.as_deref(), moved.name(), moved.change),
            (Some("old.c"), "new.c", FileChange::Renamed)
        );
        assert_eq!(
            (logo.old.as_deref(), logo.change, logo.is_binary),
            (None, FileChange::Added, true)
        );
    }

    #[test]
    fn names_of_other_programs_are_read() {
        let names = [
            (
                "--- linux.orig/a.c\t2020-01-01 10:00:00\n+++ linux/a.c\t2021-01-01\n",
                "a.c",
            ),
            ("--- linux/a.c.orig\n+++ linux/a.c\n", "a.c"),
            ("--- a.c\n+++ a.c\n", "a.c"),
            (
                "--- a/a b.c 2020-01-01 10:00:00 +0100\n+++ b/a b.c 2020-01-01 10:00:00 +0100\n",
                "a b.c",
            ),
            ("diff --git \"a/\\303\\244.c\" \"b/\\303\\244.c\"\n", "ä.c"),
            ("diff --git a/a b.c b/a b.c\n", "a b.c"),
            (
                "--- a/../../etc/passwd\n+++ b/../../etc/passwd\n",
                "../../etc/passwd",
            ),
        ];
        for (header, name) in names {
            let diff = read(format!("{header}@@ -1 +1 @@\n-a\n+b\n").as_bytes());
            assert_eq!(diff.files[0].name(), name, "{header}");
        }
    }

    #[test]
    fn absent_files_have_the_first_date() {
        assert!(
            is_epoch("1970-01-01 01:00:00.000000000 +0100")
                && is_epoch("1969-12-31 19:00:00.000 -0500")
        );
        assert!(
            !is_epoch("1970-01-01 01:00:00.000000000 +0000")
                && !is_epoch("2020-01-01 00:00:00 +0000")
        );
    }

    #[test]
    fn damaged_hunks_are_reported_with_line() {
        let fault = read(b"--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a\nwrapped\n")
            .fault
            .unwrap();
        assert_eq!(
            (fault.line, fault.what),
            (5, "a hunk with other lines than its header says")
        );
        let spaceless = read(b"--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n\ta\n-b\n+c\n");
        assert_eq!(
            (spaceless.fault.unwrap().line, spaceless.files[0].added),
            (4, 1)
        );
        assert!(read(b"@@ -1 +1 @@\n-a\n+b\n").fault.is_some());
    }

    proptest! {
        #[test]
        fn any_bytes_are_accepted(
            bytes in vec(any::<u8>(), 0..300),
            lines in "([-+ @d]{1,3}[a-z/ (){};0-9,@+-]{0,20}\n){0,20}",
        ) {
            read(&bytes);
            let text = format!(
                "diff --git a/x.c b/x.c\n--- a/x.c\n+++ b/x.c\n@@ -1,9 +1,9 @@ int x(void)\n{lines}"
            );
            let diff = read(text.as_bytes());
            prop_assert!(diff.files[0].added <= 9 && diff.files[0].removed <= 9);
            prop_assert!(start(&bytes).is_none_or(|at| at <= bytes.len()));
        }
    }
}
