//! Where a patch changes a file first, for annotations.

use super::Patch;

/// Endings of files with code of the kernel, which goes before all else.
const CODE: [&str; 4] = [".c", ".h", ".S", ".rs"];

impl Patch {
    /// Returns the file that it changes first, code before all else, with the number of the first
    /// changed line afterwards; `None` if it changes no line, or a path is unusual.
    #[must_use]
    pub fn first_change(&self) -> Option<(String, u32)> {
        let places = first_changes(&self.diff);
        let is_code = |file: &str| CODE.iter().any(|ending| file.ends_with(ending));
        let code = places.iter().find(|(file, _)| is_code(file));
        code.or(places.first()).cloned()
    }
}

/// Lines that a hunk still has.
#[derive(Debug, Clone, Copy, Default)]
struct Rest {
    old: u32,
    new: u32,
}

/// Returns the first changed line of each file, in their order.
fn first_changes(diff: &[u8]) -> Vec<(String, u32)> {
    let mut places: Vec<(String, u32)> = Vec::new();
    let mut file: Option<String> = None;
    let mut rest = Rest::default();
    let mut number = 0_u32;
    for line in diff.split(|byte| *byte == b'\n') {
        if rest.old == 0 && rest.new == 0 {
            if line.starts_with(b"+++ ") {
                file = path(&line[4..]);
            } else if let Some((at, counts)) = hunk(line) {
                number = at;
                rest = counts;
            }
            continue;
        }
        match line.first() {
            Some(b'+') => rest.new = rest.new.saturating_sub(1),
            Some(b'-') => rest.old = rest.old.saturating_sub(1),
            Some(b'\\') => continue,
            _ => {
                rest.old = rest.old.saturating_sub(1);
                rest.new = rest.new.saturating_sub(1);
                number = number.saturating_add(1);
                continue;
            }
        }
        if let Some(file) = file.take() {
            places.push((file, number.max(1)));
        }
    }
    places
}

/// Returns the line at which a hunk begins afterwards, and how many lines it has.
fn hunk(line: &[u8]) -> Option<(u32, Rest)> {
    let line = std::str::from_utf8(line.get(..line.len().min(80))?).ok()?;
    let (ranges, _) = line.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    let count = |range: &str| match range.split_once(',') {
        Some((_, count)) => count.parse::<u32>(),
        None => Ok(1),
    };
    let at = new.split(',').next()?.parse().ok()?;
    let rest = Rest {
        old: count(old).ok()?,
        new: count(new).ok()?,
    };
    Some((at, rest))
}

/// Returns a path below the tree; `None` of one that git quotes, or that leads out of it.
fn path(named: &[u8]) -> Option<String> {
    let named = std::str::from_utf8(named).ok()?;
    let named = named.split('\t').next()?.trim_end();
    // The first folder is `b`, as `git apply` strips it.
    let (_, path) = named.split_once('/')?;
    let is_plain = !path.is_empty()
        && !path.starts_with('/')
        && !named.starts_with(['"', '/'])
        && path.split('/').all(|part| part != "..")
        && !path.chars().any(model::is_hostile);
    is_plain.then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::first_changes;

    #[test]
    fn first_changed_line_is_counted_afterwards() {
        let diff = "diff --git a/Documentation/x b/Documentation/x\n--- a/Documentation/x\n+++ b/Documentation/x\n\
                    @@ -1,2 +1,2 @@\n a\n--- b\n+++ b/evil.c\n\
                    diff --git a/mm/x.c b/mm/x.c\n--- a/mm/x.c\n+++ b/mm/x.c\n\
                    @@ -10,4 +12,5 @@ int f(void)\n a\n b\n+c\n d\n e\n@@ -40 +43 @@\n-x\n+y\n";
        assert_eq!(
            first_changes(diff.as_bytes()),
            [("Documentation/x".to_owned(), 2), ("mm/x.c".to_owned(), 14)]
        );
    }

    #[test]
    fn paths_out_of_the_tree_are_none() {
        for path in ["b/../x", "\"b/\\303\"", "/dev/null", "b//x", "b/a\x1b[31m"] {
            let diff = format!("--- a/x\n+++ {path}\n@@ -1 +1 @@\n-a\n+b\n");
            assert_eq!(first_changes(diff.as_bytes()), [], "{path}");
        }
    }
}
