//! The source files that a build used, and the changes that therefore cannot affect it.
//!
//! make lists for each object the files that it was made from (`scripts/basic/fixdep.c`, files
//! `.NAME.cmd`).

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use crate::KernelError;

/// Directories that no image of Marvin uses.
const NEVER: [&str; 5] = [
    "Documentation/",
    "LICENSES/",
    "samples/",
    "tools/testing/",
    "tools/perf/",
];
/// Suffixes of files whose use make always records; others, such as scripts and tables, are used
/// unrecorded.
const WRITTEN_DOWN: [&str; 4] = [".c", ".h", ".S", ".rs"];
/// Files that no build reads.
const NOT_COMPILED: [&str; 4] = [".rst", ".yaml", ".md", ".dts"];
/// Directories of programs that take part in the build; how they are built is not always recorded.
const TOOLS: [&str; 2] = ["scripts/", "tools/"];
/// Deepest directory level to search.
const DEPTH_MAX: usize = 24;

/// The source files that a build used, by path from its top, each with the number of objects made
/// from it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Compiled {
    files: BTreeMap<String, usize>,
}

impl Compiled {
    /// Reads the records of a build in the directory `out`, of the source in the directory
    /// `source`.
    ///
    /// # Errors
    /// If a directory or a file cannot be read.
    pub fn of_build(out: &Path, source: &Path) -> Result<Self, KernelError> {
        let mut uses = Uses {
            prefix: format!("{}/", source.display()),
            ..Uses::default()
        };
        uses.folder(out, DEPTH_MAX)?;
        let files = uses.files.into_iter();
        Ok(Self {
            files: files.map(|(file, (objects, _))| (file, objects)).collect(),
        })
    }

    /// Returns one line per file: its path, a tab, and the number of objects made from it.
    pub(crate) fn to_text(&self) -> String {
        self.files
            .iter()
            .map(|(file, objects)| format!("{file}\t{objects}\n"))
            .collect()
    }

    /// Parses the output of [`to_text`](Self::to_text); a line without a number means one object.
    pub(crate) fn from_text(text: &str) -> Self {
        Self {
            files: text
                .lines()
                .map(|line: &str| match line.split_once('\t') {
                    Some((file, objects)) => (file.to_owned(), objects.parse().unwrap_or(1)),
                    None => (line.to_owned(), 1),
                })
                .collect(),
        }
    }

    /// Returns how many files there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.files.len()
    }

    /// Returns how many objects are made from a file.
    #[must_use]
    pub fn uses(&self, file: &str) -> usize {
        self.files.get(file).copied().unwrap_or(0)
    }

    /// Returns the number of objects: the largest number of any file, as all objects include one
    /// file.
    #[must_use]
    pub fn objects(&self) -> usize {
        self.files.values().copied().max().unwrap_or(0)
    }

    /// Adds the files of another build.
    pub fn join(&mut self, other: Self) {
        for (file, objects) in other.files {
            let known = self.files.entry(file).or_default();
            *known = objects.max(*known);
        }
    }

    /// Returns whether a file is code of the kernel: no documentation, no program beside it.
    pub(crate) fn is_code(file: &str) -> bool {
        let is_beside = NEVER
            .iter()
            .chain(&TOOLS)
            .any(|folder| file.starts_with(folder));
        !is_beside && WRITTEN_DOWN.iter().any(|end| file.ends_with(end))
    }

    /// Returns whether a change of a file may affect the build: it cannot if make would have
    /// recorded its use and did not.
    #[must_use]
    pub fn may_use(&self, file: &str) -> bool {
        if self.files.contains_key(file) {
            return true;
        }
        if NEVER.iter().any(|folder| file.starts_with(folder))
            || NOT_COMPILED.iter().any(|end| file.ends_with(end))
        {
            return false;
        }
        // Directories of other architectures are not entered.
        let foreign = file
            .strip_prefix("arch/")
            .is_some_and(|rest| rest.contains('/') && !rest.starts_with("x86/"));
        let tool = TOOLS.iter().any(|folder| file.starts_with(folder));
        !foreign && (tool || !WRITTEN_DOWN.iter().any(|end| file.ends_with(end)))
    }
}

/// The source files that records of make name: a kernel's have a million names.
#[derive(Debug, Default)]
struct Uses {
    /// What the names of source files begin with.
    prefix: String,
    /// How many objects are made from each file, and the last one of them.
    files: HashMap<String, (usize, usize)>,
    /// How many objects were read.
    objects: usize,
}

impl Uses {
    fn folder(&mut self, folder: &Path, depth: usize) -> Result<(), KernelError> {
        for entry in fs::read_dir(folder).map_err(KernelError::io(folder))? {
            let entry = entry.map_err(KernelError::io(folder))?;
            let path = entry.path();
            let kind = entry.file_type().map_err(KernelError::io(folder))?;
            if kind.is_dir() && depth > 0 {
                self.folder(&path, depth - 1)?;
            } else if kind.is_file() && path.extension().is_some_and(|end| end == "cmd") {
                let text = fs::read(&path).map_err(KernelError::io(&path))?;
                self.add(&String::from_utf8_lossy(&text));
            }
        }
        Ok(())
    }

    /// Reads the record of an object.
    fn add(&mut self, text: &str) {
        self.objects += 1;
        for word in text.split_ascii_whitespace() {
            let file = match word.strip_prefix(&self.prefix) {
                None | Some("") => continue,
                Some(file)
                    if file.starts_with('.') || file.contains("/.") || file.contains("//") =>
                {
                    Cow::Owned(plain(file))
                }
                Some(file) => Cow::Borrowed(file),
            };
            match self.files.get_mut(&*file) {
                Some((objects, last)) => {
                    *objects += usize::from(*last != self.objects);
                    *last = self.objects;
                }
                None => {
                    self.files.insert(file.into_owned(), (1, self.objects));
                }
            }
        }
    }
}

/// Resolves `..` in a path: `a/b/../c` is `a/c`.
pub(super) fn plain(file: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in file.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." | "" => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::Compiled;

    #[test]
    fn files_of_make_are_read() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(home.path().join("mm")).unwrap();
        let text = "savedcmd_mm/memory.o := gcc -I/src/include -c -o mm/memory.o /src/mm/memory.c\n\n\
                    source_mm/memory.o := /src/mm/memory.c\n\ndeps_mm/memory.o := \\\n    $(wildcard include/config/NUMA) \\\n  \
                    /src/include/linux/mm.h \\\n  /src/arch/x86/include/../lib/x.h \\\n  /usr/include/elf.h \\\n";
        std::fs::write(home.path().join("mm/.memory.o.cmd"), text).unwrap();
        std::fs::write(home.path().join("mm/other"), "/src/mm/slab.c").unwrap();
        let compiled = Compiled::of_build(home.path(), "/src".as_ref()).unwrap();
        assert_eq!(
            compiled.to_text(),
            "arch/x86/lib/x.h\t1\ninclude/linux/mm.h\t1\nmm/memory.c\t1\n"
        );
        std::fs::write(
            home.path().join("mm/.slab.o.cmd"),
            "/src/mm/slab.c /src/include/linux/mm.h",
        )
        .unwrap();
        let more = Compiled::of_build(home.path(), "/src".as_ref()).unwrap();
        assert_eq!(
            (
                more.uses("include/linux/mm.h"),
                more.uses("mm/memory.c"),
                more.uses("mm/none.c")
            ),
            (2, 1, 0)
        );
        assert_eq!(more.objects(), 2);
        let mut joined = compiled.clone();
        joined.join(more.clone());
        assert_eq!(joined, more);
        assert_eq!(Compiled::from_text(&compiled.to_text()), compiled);
    }

    #[test]
    fn only_listed_sources_are_ruled_out() {
        let compiled = Compiled::from_text("mm/memory.c\ninclude/linux/mm.h\n");
        for used in [
            "mm/memory.c",
            "include/linux/mm.h",
            "mm/Makefile",
            "mm/Kconfig",
            "Makefile",
            "arch/Kconfig",
            "arch/x86/entry/syscalls/syscall_64.tbl",
            "scripts/link-vmlinux.sh",
            "usr/gen_init_cpio.pl",
            "tools/objtool/check.c",
            "arch/x86/lib/x86-opcode-map.txt",
        ] {
            assert!(compiled.may_use(used), "{used}");
        }
        for unused in [
            "mm/slab.c",
            "include/linux/fs.h",
            "drivers/net/x.S",
            "Documentation/Makefile",
            "tools/perf/Makefile",
            "arch/arm64/Kconfig",
            "arch/arm64/mm/fault.c",
            "lib/readme.rst",
        ] {
            assert!(!compiled.may_use(unused), "{unused}");
        }
    }
}
