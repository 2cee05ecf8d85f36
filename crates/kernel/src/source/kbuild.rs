//! The options of the kernel config that a source file hangs on, as the Makefiles above it say
//! (`Documentation/kbuild/makefiles.rst`).
//!
//! Pure: the caller reads the files. What a Makefile computes by other means than conditions and lists is not followed.

use std::collections::BTreeSet;

/// Longest chain of composite objects and variables within one Makefile.
const DEPTH: usize = 6;
/// What begins an option in a Makefile.
const OPTION: &str = "CONFIG_";

/// An assignment of a Makefile, with the options around it.
struct Assignment {
    /// `obj-y`, `obj-$(CONFIG_X)`, `foo-objs`.
    name: String,
    /// Objects, directories and variables.
    words: Vec<String>,
    /// Options of the conditions around it.
    conditions: Vec<String>,
}

/// Returns the options that a source file hangs on, from the top of the tree down; `None` if no Makefile above it names it.
/// `read` returns a file of the tree by its path.
pub(crate) fn options_of(file: &str, read: &dyn Fn(&str) -> Option<String>) -> Option<Vec<String>> {
    let (folder, name) = file.rsplit_once('/').unwrap_or(("", file));
    let object = format!("{}.o", name.rsplit_once('.')?.0);
    let (mut folder, mut target) = (folder.to_owned(), object);
    let mut chain: Vec<Vec<String>> = Vec::new();
    let mut is_named = false;
    loop {
        let found = makefile(&folder, read).and_then(|assignments| options_in(&assignments, &target, DEPTH));
        if let Some(options) = found {
            is_named = true;
            chain.push(options);
            target = String::new();
        }
        if folder.is_empty() {
            break;
        }
        // Makefiles name directories, also several levels down: `obj-$(CONFIG_DRM) += drm/radeon/`.
        let (above, last) = folder.rsplit_once('/').unwrap_or(("", &folder));
        target = if target.is_empty() { format!("{last}/") } else { format!("{last}/{target}") };
        folder = above.to_owned();
    }
    // The top names directories in ways of its own, and arch/x86 by its place; a file must be named by its own directory.
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

/// Reads the Makefile of a directory: `Kbuild` takes precedence.
fn makefile(folder: &str, read: &dyn Fn(&str) -> Option<String>) -> Option<Vec<Assignment>> {
    let path = |name: &str| if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
    let text = read(&path("Kbuild")).or_else(|| read(&path("Makefile")))?;
    Some(assignments(&text))
}

/// Parses the assignments of a Makefile.
fn assignments(text: &str) -> Vec<Assignment> {
    let mut found = Vec::new();
    let mut conditions: Vec<Vec<String>> = Vec::new();
    let joined = text.replace("\\\n", " ");
    for line in joined.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let first = line.split_whitespace().next().unwrap_or_default();
        match first {
            "ifdef" | "ifeq" => conditions.push(options_named(line)),
            // What a missing option brings hangs on none that could be switched on.
            "ifndef" | "ifneq" => conditions.push(if line.contains(",)") { options_named(line) } else { Vec::new() }),
            "else" => {
                if let Some(last) = conditions.last_mut() {
                    *last = if line.contains("if") { options_named(line) } else { Vec::new() };
                }
            }
            "endif" => drop(conditions.pop()),
            _ => {
                let Some((name, value)) = line.split_once('=') else { continue };
                let name = name.trim_end_matches(['+', ':', '?', ' ', '\t']).trim();
                found.push(Assignment {
                    name: name.to_owned(),
                    words: value.split_whitespace().map(str::to_owned).collect(),
                    conditions: conditions.concat(),
                });
            }
        }
    }
    found
}

/// Returns the options that a text names, in their order.
fn options_named(text: &str) -> Vec<String> {
    let mut names = BTreeSet::new();
    let mut options = Vec::new();
    for rest in text.split(OPTION).skip(1) {
        let name: String = rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        if !name.is_empty() && names.insert(name.clone()) {
            options.push(format!("{OPTION}{name}"));
        }
    }
    options
}

/// Returns the options within a Makefile that an object or a directory hangs on; `None` if it is not named.
fn options_in(assignments: &[Assignment], target: &str, depth: usize) -> Option<Vec<String>> {
    if depth == 0 {
        return None;
    }
    let mut nearest: Option<Vec<String>> = None;
    for assignment in assignments.iter().filter(|assignment| assignment.words.iter().any(|word| word == target)) {
        let Some((stem, _)) = assignment.name.rsplit_once('-').or_else(|| split_option(&assignment.name)) else {
            continue;
        };
        let mut options = assignment.conditions.clone();
        options.extend(options_named(&assignment.name));
        if !is_list(stem) {
            // A composite object, or a variable in another list.
            let composite = options_in(assignments, &format!("{stem}.o"), depth - 1);
            let variable = || options_in(assignments, &format!("$({})", list_of(stem)), depth - 1);
            let Some(above) = composite.or_else(variable) else { continue };
            options = [above, options].concat();
        }
        // Named twice, it is compiled with either: the shorter way.
        if nearest.as_ref().is_none_or(|known| options.len() < known.len()) {
            nearest = Some(options);
        }
    }
    nearest
}

/// Splits `obj-$(CONFIG_X)`, whose option may have a `-`.
fn split_option(name: &str) -> Option<(&str, &str)> {
    name.split_once("-$(")
}

/// Returns whether a name is a list that make builds.
fn is_list(stem: &str) -> bool {
    matches!(stem, "obj" | "lib" | "core" | "drivers" | "libs" | "net" | "virt" | "subdir" | "always" | "extra")
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
                "mm/damon/Makefile" => "obj-y := core.o\nobj-$(CONFIG_DAMON_VADDR) += vaddr.o\n",
                "fs/Makefile" => "obj-$(CONFIG_EXT4_FS) += ext4/\n",
                "fs/ext4/Makefile" => {
                    "obj-$(CONFIG_EXT4_FS) += ext4.o\next4-y := balloc.o \\\n  inode.o\n\
                     ext4-$(CONFIG_FS_VERITY) += verity.o\next4-inode-test-objs += inode-test.o\n\
                     obj-$(CONFIG_EXT4_KUNIT_TESTS) += ext4-inode-test.o\n"
                }
                "net/Makefile" => "obj-$(CONFIG_NET) += core/\nobj-$(CONFIG_NETFILTER) += netfilter/\n",
                "net/core/Makefile" => "obj-y := sock.o\n",
                "drivers/Makefile" => "obj-$(CONFIG_DRM) += gpu/drm/\n",
                "drivers/gpu/drm/Makefile" => "obj-y += drm_file.o\n",
                _ => return None,
            };
            Some(text.to_owned())
        };
        options_of(file, &read).map(|options| options.join(" "))
    }

    #[test]
    fn objects_hang_on_their_list() {
        assert_eq!(options("mm/memcontrol.c").as_deref(), Some("CONFIG_MEMCG"));
        assert_eq!(options("mm/filemap.c").as_deref(), Some(""));
        assert_eq!(options("mm/memory.c").as_deref(), Some("CONFIG_MMU"), "by a variable");
        assert_eq!(options("mm/none.c"), None);
    }

    #[test]
    fn conditions_and_directories_count() {
        assert_eq!(options("mm/process_vm_access.c").as_deref(), Some("CONFIG_CROSS_MEMORY_ATTACH CONFIG_MMU"));
        assert_eq!(options("mm/a.c").as_deref(), Some("CONFIG_KASAN"));
        assert_eq!(options("mm/b.c").as_deref(), Some(""));
        assert_eq!(options("mm/damon/vaddr.c").as_deref(), Some("CONFIG_DAMON CONFIG_DAMON_VADDR"));
        assert_eq!(options("net/core/sock.c").as_deref(), Some("CONFIG_NET"));
        assert_eq!(options("drivers/gpu/drm/drm_file.c").as_deref(), Some("CONFIG_DRM"), "a directory two levels down");
    }

    #[test]
    fn parts_hang_on_the_whole_object() {
        assert_eq!(options("fs/ext4/inode.c").as_deref(), Some("CONFIG_EXT4_FS"));
        assert_eq!(options("fs/ext4/verity.c").as_deref(), Some("CONFIG_EXT4_FS CONFIG_FS_VERITY"));
        assert_eq!(options("fs/ext4/inode-test.c").as_deref(), Some("CONFIG_EXT4_FS CONFIG_EXT4_KUNIT_TESTS"));
    }
}
