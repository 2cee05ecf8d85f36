//! Which code that a change touches a build did not compile, files and the lines that `#if` leaves
//! out of others: no measurement of its kernel says anything about it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use model::KernelName;

use crate::folder;
use crate::source::{
    CodeLine, Compiled, LeftOutLines, LineNeeds, WorkTree, code_lines, config_options, left_out,
    options_of,
};
use crate::{BuildCache, ChangedLines, KernelError, Sources};

/// Changes of more files than this are not looked at line by line: they are no patch.
const FILES_MAX: usize = 256;

/// What builds compiled of the code that a change touches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    /// What neither compiled.
    pub not_compiled: Vec<NotCompiled>,
    /// Whether there is other code that one of them compiled.
    pub has_compiled: bool,
}

/// Changed code that a build did not compile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotCompiled {
    /// The file's path in the source.
    pub file: String,
    /// The lines of it; `None` if nothing is compiled that is changed there.
    pub lines: Option<LinesLeftOut>,
    pub why: WhyNot,
}

/// Changed lines that `#if` leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinesLeftOut {
    /// The number of the first one.
    pub first: u32,
    pub count: usize,
    /// Whether the change removes them: the number is that before it.
    pub are_removed: bool,
}

/// Why a build did not compile code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WhyNot {
    /// What its `#if` needs, or the first option that a file hangs on and that is off.
    Needs(LineNeeds),
    /// A header that no compiled file includes.
    NotIncluded,
    /// The Makefiles above it name no option that is off.
    NotListed,
    /// What the build compiled is not recorded.
    NoRecord,
}

impl fmt::Display for NotCompiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(lines) = self.lines {
            let LinesLeftOut { first, count, .. } = lines;
            let removed = if lines.are_removed { "removed " } else { "" };
            match count {
                1 => write!(f, " {removed}line {first}")?,
                count => write!(f, " {count} {removed}lines from {first} on")?,
            }
        }
        match &self.why {
            WhyNot::Needs(needs) => write!(f, " ({needs})"),
            WhyNot::NotIncluded => f.write_str(" (no compiled file includes it)"),
            WhyNot::NotListed => f.write_str(" (in no list of objects for this config)"),
            WhyNot::NoRecord => f.write_str(" (no record of what the build compiled)"),
        }
    }
}

/// A source tree, and the recipe of its build.
struct BuiltTree {
    tree: String,
    recipe: PathBuf,
}

impl BuildCache {
    /// Returns the code that differs between two built sources and that the build of neither
    /// compiled; empty for kernels that Marvin did not build.
    ///
    /// # Errors
    /// If git fails, or the cache cannot be read.
    pub fn not_compiled(
        &self,
        base: &KernelName,
        new: &KernelName,
    ) -> Result<Vec<NotCompiled>, KernelError> {
        if !base.is_built() || !new.is_built() {
            return Ok(Vec::new());
        }
        let workshop = WorkTree::open(&self.home)?;
        let base = self.built_tree(base, &workshop)?;
        let new = self.built_tree(new, &workshop)?;
        let coverage = self.coverage_between(&workshop, &base, &new)?;
        Ok(coverage.not_compiled)
    }

    /// Returns the tree of a kernel's source, and the recipe of its build.
    fn built_tree(&self, name: &KernelName, workshop: &WorkTree) -> Result<BuiltTree, KernelError> {
        let cache = self.for_kernel(name)?;
        let tree = cache.source(name.source(), workshop, &|_| {})?.tree;
        let recipe = cache.recipe(&tree, &cache.toolchain()?.identity());
        Ok(BuiltTree { tree, recipe })
    }

    fn coverage_between(
        &self,
        workshop: &WorkTree,
        base: &BuiltTree,
        new: &BuiltTree,
    ) -> Result<Coverage, KernelError> {
        let changed: Vec<String> = workshop
            .changed_between(&base.tree, &new.tree)?
            .into_iter()
            .filter(|f| Compiled::is_code(f))
            .collect();
        let mut compiled = Compiled::default();
        let mut is_recorded = true;
        for built in [base, new] {
            let file = built.recipe.with_extension("compiled");
            match fs::read(&file) {
                Ok(text) => compiled.join(Compiled::from_text(&String::from_utf8_lossy(&text))),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => is_recorded = false,
                Err(error) => return Err(KernelError::io(&file)(error)),
            }
        }
        if !is_recorded {
            let not_compiled = changed.into_iter().map(|file| NotCompiled {
                file,
                lines: None,
                why: WhyNot::NoRecord,
            });
            return Ok(Coverage {
                not_compiled: not_compiled.collect(),
                has_compiled: false,
            });
        }
        let configs = [self.config_of(&base.recipe)?, self.config_of(&new.recipe)?];
        let sides = Sides {
            workshop,
            trees: [base.tree.clone(), new.tree.clone()],
            options: configs.map(|config| config_options(&config)),
            makefiles: RefCell::default(),
        };
        let lines = if changed.len() > FILES_MAX {
            BTreeMap::new()
        } else {
            workshop.changed_lines(&sides.trees)?
        };
        let mut coverage = Coverage::default();
        let found = &mut coverage.not_compiled;
        for file in changed {
            let lines = lines.get(&file);
            if compiled.may_use(&file) {
                let of_file = lines.map(|lines| sides.lines_left_out(&file, lines));
                let (left_out, has_compiled) = of_file.unwrap_or((Vec::new(), true));
                found.extend(left_out);
                coverage.has_compiled |= has_compiled;
            } else if lines.is_none_or(|lines| sides.has_code(&file, lines)) {
                found.push(NotCompiled {
                    why: sides.why_not(&file),
                    file,
                    lines: None,
                });
            }
        }
        Ok(coverage)
    }

    /// Returns the kernel config of the build of a recipe; empty if there is no such build.
    fn config_of(&self, recipe: &Path) -> Result<String, KernelError> {
        let facts = folder::read_facts(recipe)?.unwrap_or_default();
        let Some(build) = facts.get("build") else {
            return Ok(String::new());
        };
        Ok(fs::read_to_string(self.builds.join(build).join("config")).unwrap_or_default())
    }
}

/// Two built sources, the older one first.
struct Sides<'a> {
    workshop: &'a WorkTree,
    trees: [String; 2],
    /// The options of each build; empty if its config is not known.
    options: [BTreeMap<String, String>; 2],
    /// Those of the newer source that were read.
    makefiles: RefCell<BTreeMap<String, Option<String>>>,
}

impl Sides<'_> {
    /// Says why the newer source's build did not compile a file.
    fn why_not(&self, file: &str) -> WhyNot {
        let is_on = |option: &str| self.options[1].get(option).map(String::as_str) == Some("y");
        let read = |path: &str| -> Option<String> {
            let mut known = self.makefiles.borrow_mut();
            known
                .entry(path.to_owned())
                .or_insert_with(|| self.workshop.file(&self.trees[1], path))
                .clone()
        };
        let hangs_on = options_of(file, &read, &is_on).unwrap_or_default();
        match hangs_on.into_iter().find(|option| !is_on(option)) {
            Some(option) => WhyNot::Needs(LineNeeds::Option(option)),
            None if file.ends_with(".h") => WhyNot::NotIncluded,
            None => self
                .include_needs(file)
                .map_or(WhyNot::NotListed, WhyNot::Needs),
        }
    }

    /// Returns what a C file needs that another one of its directory includes, such as
    /// kernel/sched/ext.c; `None` if there is none, or if a condition of it does not leave it out.
    fn include_needs(&self, file: &str) -> Option<LineNeeds> {
        let [_, tree] = &self.trees;
        let (folder, name) = file.rsplit_once('/')?;
        let quoted = format!("\"{name}\"");
        let beside = format!(":(glob){folder}/*.c");
        let found = self
            .workshop
            .git(&self.workshop.source())
            .args(["grep", "-l", "-F", "-e", &quoted, tree, "--", &beside])
            .end()
            .ok()?
            .text();
        let paths = found.lines().filter_map(|line| line.split_once(':'));
        paths.take(FILES_MAX).find_map(|(_, path)| {
            let text = self.workshop.file(tree, path)?;
            let mut code = code_lines(&text, &self.options[1]);
            let mut lines = (1_u32..).zip(text.lines());
            let (number, _) = lines.find(|(_, line)| {
                let directive = line.trim_start().strip_prefix('#').map(str::trim_start);
                directive.is_some_and(|rest| rest.starts_with("include") && rest.contains(&quoted))
            })?;
            let (_, needs) = code.remove(&number)?.left_out?;
            Some(needs)
        })
    }

    /// Returns the lines of a file with code, before or after.
    fn code_lines(&self, side: usize, file: &str) -> BTreeMap<u32, CodeLine> {
        let text = self.workshop.file(&self.trees[side], file);
        code_lines(&text.unwrap_or_default(), &self.options[side])
    }

    /// Returns whether one of the changed lines has code: of words nothing is to be compiled.
    fn has_code(&self, file: &str, changed: &ChangedLines) -> bool {
        [&changed.removed, &changed.added]
            .into_iter()
            .enumerate()
            .any(|(side, changed)| {
                let code = self.code_lines(side, file);
                changed.iter().any(|line| code.contains_key(line))
            })
    }

    /// Returns the changed lines of a compiled file that `#if` leaves out, and whether others have
    /// code.
    fn lines_left_out(&self, file: &str, changed: &ChangedLines) -> (Vec<NotCompiled>, bool) {
        if self.options.iter().any(BTreeMap::is_empty) {
            return (Vec::new(), true);
        }
        let [removed, added] = [(0, &changed.removed), (1, &changed.added)]
            .map(|(side, lines)| left_out(&self.code_lines(side, file), lines));
        let has_compiled = removed.1 || added.1;
        let not_compiled = |lines: LeftOutLines, are_removed| {
            let lines = lines.into_iter();
            lines.filter_map(move |(needs, numbers)| {
                Some(NotCompiled {
                    file: file.to_owned(),
                    lines: Some(LinesLeftOut {
                        first: *numbers.first()?,
                        count: numbers.len(),
                        are_removed,
                    }),
                    why: WhyNot::Needs(needs),
                })
            })
        };
        let mut found: Vec<NotCompiled> = not_compiled(added.0, false)
            .chain(not_compiled(removed.0, true))
            .collect();
        let is_alike = found.windows(2).all(|pair| pair[0].why == pair[1].why);
        if !has_compiled && is_alike {
            found.truncate(1);
            found.iter_mut().for_each(|all| all.lines = None);
        }
        (found, has_compiled)
    }
}

impl Sources {
    /// Says which of the code that differs between two commits their builds compiled.
    ///
    /// # Errors
    /// If there is no such commit, git fails, or the cache cannot be read.
    pub fn coverage(&self, older: &str, newer: &str) -> Result<Coverage, KernelError> {
        let workshop = WorkTree::open(&self.cache().home)?;
        workshop.borrow(self.repository())?;
        let [base, new] = [workshop.tree_of(older)?, workshop.tree_of(newer)?].map(|tree| {
            let recipe = self.cache().recipe(&tree, self.compiler());
            BuiltTree { tree, recipe }
        });
        self.cache().coverage_between(&workshop, &base, &new)
    }
}
