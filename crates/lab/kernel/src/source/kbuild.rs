//! The options of the kernel config that a source file hangs on, as the Makefiles above it say
//! (`Documentation/kbuild/makefiles.rst`).
//!
//! Pure: the caller reads the files. What a Makefile computes by other means than conditions and
//! lists is not followed.

use std::collections::{BTreeMap, BTreeSet};

/// What begins an option in a Makefile.
const OPTION: &str = "CONFIG_";

/// An assignment of a Makefile, with the options around it.
struct Assignment {
    name: String,
    /// Objects, directories and variables.
    words: Vec<String>,
    /// Options of the conditions around it.
    conditions: Vec<String>,
}

/// Returns the options that a source file hangs on, from the top of the tree down; `None` if no
/// Makefile above it names it. `read` returns a file of the tree by its path, and `is_on` says
/// whether an option is: of several ways that lead to an object, the one with the fewest that are
/// off counts.
pub(crate) fn options_of(
    file: &str,
    read: &dyn Fn(&str) -> Option<String>,
    is_on: &dyn Fn(&str) -> bool,
) -> Option<Vec<String>> {
    let (folder, name) = file.rsplit_once('/').unwrap_or(("", file));
    let object = format!("{}.o", name.rsplit_once('.')?.0);
    let mut folder = folder.to_owned();
    let mut target = object;
    let mut chain: Vec<Vec<String>> = Vec::new();
    let mut is_named = false;
    // A Makefile may include those below it, whose lists then name objects by their path from here.
    let mut lists = Lists {
        assignments: Vec::new(),
        is_on,
    };
    loop {
        lists.assignments.extend(makefile(&folder, read));
        if let Some(options) = lists.options(&target, &mut BTreeMap::new()) {
            is_named = true;
            chain.push(options);
            target = String::new();
            lists.assignments.clear();
        }
        if folder.is_empty() {
            break;
        }
        // Makefiles name directories, also several levels down: `obj-$(CONFIG_DRM) += drm/radeon/`.
        let (above, last) = folder.rsplit_once('/').unwrap_or(("", &folder));
        target = if target.is_empty() {
            format!("{last}/")
        } else {
            format!("{last}/{target}")
        };
        folder = above.to_owned();
    }
    // The top names directories in ways of its own, and arch/x86 by its place; a file must be named
    // by its own directory.
    is_named.then(|| {
        let mut options: Vec<String> = Vec::new();
        for option in chain.into_iter().rev().flatten() {
            if !options.contains(&option) {
                options.push(option);
            }
        }
        options
    })
}

/// Returns the name of the module that a source file is part of, without its ending; `None` if its
/// own directory's Makefile makes none of it.
pub(crate) fn module_of(file: &str, read: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let (folder, name) = file.rsplit_once('/').unwrap_or(("", file));
    let object = format!("{}.o", name.rsplit_once('.')?.0);
    let lists = makefile(folder, read);
    let mut seen = BTreeSet::new();
    let module = module_in(&lists, &object, &mut seen)?;
    module.strip_suffix(".o").map(str::to_owned)
}

/// Returns the object of a list `obj-…` that an object is, or is part of.
fn module_in(lists: &[Assignment], target: &str, seen: &mut BTreeSet<String>) -> Option<String> {
    if !seen.insert(target.to_owned()) {
        return None;
    }
    let naming = lists
        .iter()
        .filter(|of| of.words.iter().any(|word| word == target));
    for assignment in naming {
        let (stem, _) =
            split_option(&assignment.name).or_else(|| assignment.name.rsplit_once('-'))?;
        if stem == "obj" {
            return target.ends_with(".o").then(|| target.to_owned());
        }
        let above = module_in(lists, &format!("{stem}.o"), seen)
            .or_else(|| module_in(lists, &format!("$({})", list_of(stem)), seen));
        if above.is_some() {
            return above;
        }
    }
    None
}

/// Reads the Makefile of a directory: `Kbuild` takes precedence.
fn makefile(folder: &str, read: &dyn Fn(&str) -> Option<String>) -> Vec<Assignment> {
    let [kbuild, makefile] = ["Kbuild", "Makefile"].map(|name| {
        if folder.is_empty() {
            name.to_owned()
        } else {
            format!("{folder}/{name}")
        }
    });
    let text = read(&kbuild).or_else(|| read(&makefile));
    text.map_or_else(Vec::new, |text| assignments(&text))
}

/// Parses the assignments of a Makefile.
fn assignments(text: &str) -> Vec<Assignment> {
    let mut found = Vec::new();
    let mut conditions: Vec<Condition> = Vec::new();
    // Marvin builds for 64 bits.
    let joined = text.replace("\\\n", " ").replace("$(BITS)", "64");
    for line in joined.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let first = line.split_whitespace().next().unwrap_or_default();
        match first {
            "ifdef" | "ifndef" | "ifeq" | "ifneq" => conditions.push(Condition::read(line)),
            "else" => {
                if let Some(last) = conditions.last_mut() {
                    let rest = line["else".len()..].trim();
                    *last = if rest.is_empty() {
                        last.otherwise()
                    } else {
                        Condition::read(rest)
                    };
                }
            }
            "endif" => drop(conditions.pop()),
            _ => {
                let Some((name, value)) = line.split_once('=') else {
                    continue;
                };
                let name = name.trim_end_matches(['+', ':', '?', ' ', '\t']).trim();
                let conditions = conditions
                    .iter()
                    .flat_map(|condition| condition.needs.clone())
                    .collect();
                found.push(Assignment {
                    name: name.to_owned(),
                    words: words(value),
                    conditions,
                });
            }
        }
    }
    found
}

/// A condition of a Makefile: the options that its lines need, and those that the lines after
/// `else` need.
#[derive(Debug, Default)]
struct Condition {
    needs: Vec<String>,
    else_needs: Vec<String>,
}

impl Condition {
    /// Reads `ifdef CONFIG_X`, `ifeq ($(CONFIG_X),y)` and the like.
    fn read(line: &str) -> Self {
        let options = options_named(line);
        let of_nothing = [",)", ",n)", ", )", ", n)"]
            .iter()
            .any(|end| line.ends_with(end));
        let needs_them = match line.split_whitespace().next() {
            Some("ifdef") => true,
            Some("ifeq") => !of_nothing,
            Some("ifneq") => of_nothing,
            _ => false,
        };
        if needs_them {
            Self {
                needs: options,
                else_needs: Vec::new(),
            }
        } else {
            Self {
                needs: Vec::new(),
                else_needs: options,
            }
        }
    }

    fn otherwise(&mut self) -> Self {
        Self {
            needs: std::mem::take(&mut self.else_needs),
            else_needs: std::mem::take(&mut self.needs),
        }
    }
}

/// Returns the options that a text names, in their order.
fn options_named(text: &str) -> Vec<String> {
    let mut names = BTreeSet::new();
    let mut options = Vec::new();
    for rest in text.split(OPTION).skip(1) {
        let name: String = rest
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
            .collect();
        if !name.is_empty() && names.insert(name.clone()) {
            options.push(format!("{OPTION}{name}"));
        }
    }
    options
}

/// Returns the objects, directories and variables of a list; `$(addprefix DIR/, a.o b.o)` is
/// `DIR/a.o DIR/b.o`.
fn words(value: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut prefix: Option<String> = None;
    let mut words = value.split_whitespace();
    while let Some(word) = words.next() {
        if word == "$(addprefix" {
            prefix = words
                .next()
                .map(|prefix| prefix.trim_end_matches(',').to_owned());
            continue;
        }
        let Some(start) = &prefix else {
            found.push(word.to_owned());
            continue;
        };
        found.push(format!("{start}{}", word.trim_end_matches(')')));
        if word.ends_with(')') {
            prefix = None;
        }
    }
    found
}

/// The lists of a Makefile and of those that it includes.
struct Lists<'a> {
    assignments: Vec<Assignment>,
    is_on: &'a dyn Fn(&str) -> bool,
}

impl Lists<'_> {
    /// Returns the options that an object or a directory hangs on; `None` if it is not named.
    /// `known` has what was asked before: a list that names itself leads nowhere.
    fn options(
        &self,
        target: &str,
        known: &mut BTreeMap<String, Option<Vec<String>>>,
    ) -> Option<Vec<String>> {
        if target.is_empty() {
            return None;
        }
        if let Some(known) = known.get(target) {
            return known.clone();
        }
        known.insert(target.to_owned(), None);
        let mut best: Option<Vec<String>> = None;
        for assignment in self
            .assignments
            .iter()
            .filter(|of| of.words.iter().any(|word| word == target))
        {
            let Some((stem, _)) = assignment
                .name
                .rsplit_once('-')
                .or_else(|| split_option(&assignment.name))
            else {
                continue;
            };
            let mut options = assignment.conditions.clone();
            options.extend(options_named(&assignment.name));
            if !is_list(stem) {
                // A composite object, or a variable in another list.
                let composite = self.options(&format!("{stem}.o"), known);
                let above =
                    composite.or_else(|| self.options(&format!("$({})", list_of(stem)), known));
                let Some(above) = above else { continue };
                options = [above, options].concat();
            }
            if best
                .as_ref()
                .is_none_or(|best| self.cost(&options) < self.cost(best))
            {
                best = Some(options);
            }
        }
        known.insert(target.to_owned(), best.clone());
        best
    }

    /// Returns how many options are off, then how many there are.
    fn cost(&self, options: &[String]) -> (usize, usize) {
        (
            options
                .iter()
                .filter(|option| !(self.is_on)(option))
                .count(),
            options.len(),
        )
    }
}

/// Splits `obj-$(CONFIG_X)`, whose option may have a `-`.
fn split_option(name: &str) -> Option<(&str, &str)> {
    name.split_once("-$(")
}

/// Returns whether a name is a list that make builds.
fn is_list(stem: &str) -> bool {
    matches!(
        stem,
        "obj"
            | "lib"
            | "core"
            | "drivers"
            | "libs"
            | "net"
            | "virt"
            | "subdir"
            | "always"
            | "extra"
    )
}

/// Returns the variable that collects what is on: `mmu-$(CONFIG_MMU)` adds to `$(mmu-y)`.
fn list_of(stem: &str) -> String {
    format!("{stem}-y")
}

#[cfg(test)]
mod tests {
    use super::options_of;

    fn options(file: &str) -> Option<String> {
        let read = |path: &str| {
            let text = match path {
                "Kbuild" => "obj-y += mm/ fs/\nobj-$(CONFIG_NET) += net/\nobj-y += drivers/\n",
                "mm/Makefile" => {
                    "mmu-y := nommu.o\nmmu-$(CONFIG_MMU) := highmem.o memory.o \\\n\t\tmremap.o\n\
                     obj-y := filemap.o $(mmu-y)\nobj-$(CONFIG_MEMCG) += memcontrol.o vmpressure.o # both\n\
                     ifdef CONFIG_CROSS_MEMORY_ATTACH\nmmu-$(CONFIG_MMU) += process_vm_access.o\nendif\n\
                     ifeq ($(CONFIG_KASAN),y)\nobj-y += a.o\nelse\nobj-y += b.o\nendif\nobj-$(CONFIG_DAMON) += damon/\n"
                }
                "neg/Makefile" => {
                    "ifeq ($(CONFIG_X),)\nobj-$(CONFIG_Y) += a.o\nelse\nobj-y += b.o\nendif\n\
                     ifneq ($(CONFIG_X),y)\nobj-y += c.o\nelse ifdef CONFIG_Z\nobj-y += d.o\nendif\nloop-y += loop.o\n"
                }
                "mm/damon/Makefile" => "obj-y := core.o\nobj-$(CONFIG_DAMON_VADDR) += vaddr.o\n",
                "fs/Makefile" => "obj-$(CONFIG_EXT4_FS) += ext4/\n",
                "fs/ext4/Makefile" => {
                    "obj-$(CONFIG_EXT4_FS) += ext4.o\next4-y := balloc.o \\\n  inode.o\n\
                     ext4-$(CONFIG_FS_VERITY) += verity.o\next4-inode-test-objs += inode-test.o\n\
                     obj-$(CONFIG_EXT4_KUNIT_TESTS) += ext4-inode-test.o\n"
                }
                "net/Makefile" => {
                    "obj-$(CONFIG_NET) += core/\nobj-$(CONFIG_NETFILTER) += netfilter/\n"
                }
                "net/core/Makefile" => "obj-y := sock.o\n",
                "lib/Makefile" => "obj-$(CONFIG_A) += zstd/\nobj-$(CONFIG_B) += zstd/\n",
                "lib/zstd/Makefile" => "obj-y += zstd.o part_$(BITS).o\n",
                "fs/xfs/Makefile" => {
                    "obj-$(CONFIG_XFS_FS) += xfs.o\nxfs-y += $(addprefix libxfs/, \\\n\txfs_ag.o \\\n\txfs_b.o)\n"
                }
                "gpu/Makefile" => {
                    "obj-$(CONFIG_NOUVEAU) += nouveau.o\ninclude $(src)/nvkm/Kbuild\nnouveau-y += $(nvkm-y)\n"
                }
                "gpu/nvkm/Kbuild" => "nvkm-y += nvkm/base.o\n",
                "drivers/Makefile" => "obj-$(CONFIG_DRM) += gpu/drm/\n",
                "drivers/gpu/drm/Makefile" => "obj-y += drm_file.o\n",
                _ => return None,
            };
            Some(text.to_owned())
        };
        options_of(file, &read, &|option| option == "CONFIG_B").map(|options| options.join(" "))
    }

    #[test]
    fn objects_hang_on_their_list() {
        assert_eq!(options("mm/memcontrol.c").as_deref(), Some("CONFIG_MEMCG"));
        assert_eq!(options("mm/filemap.c").as_deref(), Some(""));
        assert_eq!(
            options("mm/memory.c").as_deref(),
            Some("CONFIG_MMU"),
            "by a variable"
        );
        assert_eq!(options("mm/none.c"), None);
    }

    #[test]
    fn conditions_and_directories_count() {
        assert_eq!(
            options("mm/process_vm_access.c").as_deref(),
            Some("CONFIG_CROSS_MEMORY_ATTACH CONFIG_MMU")
        );
        assert_eq!(options("mm/a.c").as_deref(), Some("CONFIG_KASAN"));
        assert_eq!(options("mm/b.c").as_deref(), Some(""));
        assert_eq!(
            options("mm/damon/vaddr.c").as_deref(),
            Some("CONFIG_DAMON CONFIG_DAMON_VADDR")
        );
        assert_eq!(options("net/core/sock.c").as_deref(), Some("CONFIG_NET"));
        assert_eq!(
            options("drivers/gpu/drm/drm_file.c").as_deref(),
            Some("CONFIG_DRM"),
            "a directory two levels down"
        );
    }

    #[test]
    fn negated_conditions_need_their_other_half() {
        let options_of_path =
            |name: &str| options(&format!("neg/{name}.c")).unwrap_or_else(|| "none".to_owned());
        assert_eq!(
            ["a", "b", "c", "d", "loop"].map(options_of_path),
            ["CONFIG_Y", "CONFIG_X", "", "CONFIG_Z", "none"]
        );
    }

    #[test]
    fn lists_of_makefiles_are_followed() {
        assert_eq!(
            options("lib/zstd/zstd.c").as_deref(),
            Some("CONFIG_B"),
            "the way that is on"
        );
        assert_eq!(options("lib/zstd/part_64.c").as_deref(), Some("CONFIG_B"));
        assert_eq!(
            options("fs/xfs/libxfs/xfs_b.c").as_deref(),
            Some("CONFIG_XFS_FS"),
            "by its path from above"
        );
        assert_eq!(
            options("gpu/nvkm/base.c").as_deref(),
            Some("CONFIG_NOUVEAU"),
            "by an included Makefile"
        );
    }

    #[test]
    fn parts_hang_on_the_whole_object() {
        assert_eq!(
            options("fs/ext4/inode.c").as_deref(),
            Some("CONFIG_EXT4_FS")
        );
        assert_eq!(
            options("fs/ext4/verity.c").as_deref(),
            Some("CONFIG_EXT4_FS CONFIG_FS_VERITY")
        );
        assert_eq!(
            options("fs/ext4/inode-test.c").as_deref(),
            Some("CONFIG_EXT4_FS CONFIG_EXT4_KUNIT_TESTS")
        );
    }
}
