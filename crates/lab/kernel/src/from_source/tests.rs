//! Builds of small trees by a fake `make`.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};

use model::{Build, Fault};

use super::Sources;
use crate::cache::without_network;
use crate::source::SourceSettings;
use crate::{BuildCache, BuildEvent, KernelError, SourceError, elf};

/// A fake make for a fake kernel source. `image` is the vmlinux; `fails`, if present, an error.
const MAKEFILE: &str = "tinyconfig:\n\t@echo CONFIG_64BIT=y >$(O)/.config\n\
    olddefconfig:\n\t@sed -i /CONFIG_PVH/d $(O)/.config\n\
    vmlinux:\n\t@test ! -e fails || { cat fails >&2; exit 1; }\n\
    \t@cp image $(O)/vmlinux\n\t@echo $(CURDIR)/mm/memory.c $(CURDIR)/include/linux/mm.h >$(O)/.memory.o.cmd\n";

pub(super) struct Tree {
    pub(super) folder: tempfile::TempDir,
    pub(super) home: tempfile::TempDir,
}

impl Tree {
    pub(super) fn new() -> Self {
        let tree = Self {
            folder: tempfile::tempdir().unwrap(),
            home: tempfile::tempdir().unwrap(),
        };
        tree.git(&["init", "-q", "-b", "main"]);
        tree.write("Makefile", MAKEFILE);
        tree.write("Kbuild", "");
        tree.image("one");
        tree
    }

    fn git(&self, arguments: &[&str]) -> String {
        let own = [
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.com",
            "-c",
            "commit.gpgsign=false",
        ];
        crate::source::program(self.folder.path())
            .args(own)
            .args(arguments)
            .run()
            .unwrap()
    }

    pub(super) fn write(&self, file: &str, content: impl AsRef<[u8]>) {
        let path = self.folder.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(super) fn image(&self, what: &str) {
        self.write(
            "image",
            elf::tests::write(18, &format!("Linux version 6.9.1-test {what}")),
        );
    }

    pub(super) fn commit(&self, tag: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-qm", tag]);
        self.git(&["tag", tag]);
    }

    pub(super) fn cache(&self) -> BuildCache {
        let mut cache =
            BuildCache::open(self.home.path(), without_network(self.home.path())).unwrap();
        let tree = Some(self.folder.path().to_owned());
        cache.set_sources(SourceSettings {
            tree,
            jobs: 1,
            ..SourceSettings::default()
        });
        cache
    }

    pub(super) fn resolve(&self, name: &str) -> (Result<Build, KernelError>, Vec<BuildEvent>) {
        let steps = RefCell::new(vec![]);
        let build = self.cache().resolve(&name.parse().unwrap(), &|step| {
            steps.borrow_mut().push(step);
        });
        (build, steps.into_inner())
    }

    fn objects(&self) -> PathBuf {
        let mut found = fs::read_dir(self.home.path().join("workshop"))
            .unwrap()
            .map(|entry| entry.unwrap().path());
        found
            .find(|path| path.to_string_lossy().contains("objects-"))
            .unwrap()
    }
}

pub(super) fn is_building(steps: &[BuildEvent]) -> bool {
    steps
        .iter()
        .any(|step| matches!(step, BuildEvent::Building { .. }))
}

#[test]
fn commits_with_equal_images_are_one_build() {
    let tree = Tree::new();
    tree.commit("v1");
    tree.write("Documentation/x.rst", "words");
    tree.commit("v2");
    tree.image("three");
    tree.commit("v3");
    let (first, steps) = tree.resolve("git:v1");
    let first = first.unwrap();
    assert!(is_building(&steps));
    assert!(steps.iter().any(|step: &BuildEvent| matches!(step, BuildEvent::NotKept { options, .. } if options == &["CONFIG_PVH=y"])), "{steps:?}");
    assert!(first.version.starts_with("6.9.1-g"), "{}", first.version);
    assert!(
        first.origin.to_string().starts_with("commit ")
            && first.origin.to_string().contains(", default, gcc"),
        "{}",
        first.origin
    );
    assert!(first.config.is_some());
    let (second, steps) = tree.resolve("git:v2");
    assert!(is_building(&steps));
    assert_eq!(second.unwrap().id, first.id);
    let (third, _) = tree.resolve("git:v3");
    assert_ne!(third.unwrap().id, first.id);
    let (again, steps) = tree.resolve("git:v1");
    assert!(!is_building(&steps));
    let again = again.unwrap();
    assert_eq!((again.id, again.version), (first.id, first.version));
    let sources = Sources::open(&tree.cache()).unwrap();
    let compiled = sources
        .compiled(&sources.repository().commit("v1").unwrap())
        .unwrap()
        .unwrap();
    assert!(
        compiled.may_use("mm/memory.c") && !compiled.may_use("mm/slab.c") && compiled.count() == 2
    );
}

#[test]
fn working_tree_is_built_and_left_unchanged() {
    let tree = Tree::new();
    tree.write(".gitignore", "*.o\n");
    tree.commit("v1");
    tree.image("dirty");
    tree.write("new.c", "not committed");
    tree.write("old.o", "ignored");
    let status = tree.git(&["status", "--porcelain"]);
    let name = format!("tree:{}", tree.folder.path().display());
    let (build, steps) = tree.resolve(&name);
    let build = build.unwrap();
    assert!(
        is_building(&steps) && build.version.starts_with("6.9.1-t"),
        "{build:?}"
    );
    assert_ne!(build.id, tree.resolve("git:v1").0.unwrap().id);
    assert_eq!(tree.git(&["status", "--porcelain"]), status);
    let linux = tree.home.path().join("workshop/linux");
    assert!(!linux.join("new.c").exists(), "v1 has none");
    assert!(!is_building(&tree.resolve(&name).1));
    // A directory without a repository is built as well, even if git would ignore all of it.
    fs::remove_dir_all(tree.folder.path().join(".git")).unwrap();
    tree.write(".gitignore", "/*\n");
    let (other, _) = tree.resolve(&name);
    assert_eq!(other.unwrap().id, build.id);
    assert!(linux.join("new.c").exists() && !linux.join("old.o").exists());
    assert!(
        tree.resolve("tree:/nonesuch")
            .0
            .unwrap_err()
            .to_string()
            .contains("is not a Linux source tree")
    );
}

#[test]
fn build_failure_is_reported_with_first_error() {
    let tree = Tree::new();
    tree.commit("v1");
    tree.write(
        "fails",
        "mm/memory.c:7:1: error: expected ';'\nmm/memory.c:9:1: error: other\n",
    );
    tree.commit("v2");
    let error = tree.resolve("git:v2").0.unwrap_err();
    let KernelError::Source(SourceError::DoesNotBuild {
        first_error, log, ..
    }) = &error
    else {
        panic!("{error}")
    };
    assert_eq!(first_error, "mm/memory.c:7:1: error: expected ';'");
    assert!(fs::read_to_string(log).unwrap().contains("error: other"));
    assert_eq!(error.fault(), Fault::User);
    assert!(tree.resolve("git:v1").0.is_ok());
    // A failure of the host is no result.
    tree.write(
        "fails",
        "cp: error writing 'vmlinux': No space left on device\n",
    );
    tree.commit("v3");
    assert!(matches!(
        tree.resolve("git:v3").0.unwrap_err(),
        KernelError::NoSpace { .. }
    ));
}

#[test]
fn patch_and_revert_are_built_on_a_commit() {
    let tree = Tree::new();
    tree.write("mm/a.c", "1\n");
    tree.commit("v1");
    tree.image("two");
    tree.commit("v2");
    let patch = tree.home.path().join("fix.patch");
    fs::write(&patch, tree.git(&["diff", "--binary", "v1", "v2"])).unwrap();
    tree.write("mm/a.c", "3\n");
    tree.commit("v3");
    let [first, second, third] =
        ["v1", "v2", "v3"].map(|tag| tree.resolve(&format!("git:{tag}")).0.unwrap().id);
    assert_eq!((first == second, second == third), (false, true));
    let patched = |revision: &str| tree.resolve(&format!("patch:{}@{revision}", patch.display()));
    let build = patched("v1").0.unwrap();
    assert_eq!(build.id, second);
    assert!(!is_building(&patched("v1").1), "its files are those of v2");
    let error = patched("v2").0.unwrap_err().to_string();
    assert!(
        error.contains("fix.patch does not apply to commit "),
        "{error}"
    );
    let sources = Sources::open(&tree.cache()).unwrap();
    let commit = |tag: &str| sources.repository().commit(tag).unwrap();
    let without = sources
        .revert(&commit("v3"), &commit("v2"))
        .unwrap()
        .unwrap();
    assert_eq!(sources.build(&without, &|_| {}).unwrap().id, first);
    tree.image("four");
    tree.commit("v4");
    assert_eq!(
        sources.revert(&commit("v4"), &commit("v2")).unwrap(),
        None,
        "v4 has built on it"
    );
    let gone = sources
        .build(&"7".repeat(40), &|_| {})
        .unwrap_err()
        .to_string();
    assert!(gone.starts_with("777777777777 is no longer in "), "{gone}");
}

#[test]
fn ranges_are_two_commits() {
    let tree = Tree::new();
    ["v1", "v2", "v3"].into_iter().for_each(|tag| {
        tree.write("mm/a.c", tag);
        tree.commit(tag);
    });
    let sources = Sources::open(&tree.cache()).unwrap();
    let range_of = |text: &str| sources.repository().range(text);
    let commit = |tag: &str| sources.repository().commit(tag).unwrap();
    assert_eq!(range_of("v1..v3").unwrap(), (commit("v1"), commit("v3")));
    assert_eq!(range_of("v2^..").unwrap(), (commit("v1"), commit("v3")));
    for none in ["v1", "..v3", "v1...v3", ""] {
        let error = range_of(none).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("`{none}` is not a range of commits")),
            "{error}"
        );
    }
    assert!(
        range_of("v1..v9")
            .unwrap_err()
            .to_string()
            .starts_with("`v9` is no commit")
    );
}

#[test]
fn names_without_a_commit_are_errors() {
    let tree = Tree::new();
    tree.commit("v1");
    let error_of = |name: &str| {
        let text = tree.resolve(name).0.unwrap_err().to_string();
        let folder = fs::canonicalize(tree.folder.path()).unwrap();
        text.replace(&folder.display().to_string(), "TREE")
    };
    insta::assert_snapshot!(error_of("git:v9"), @"`v9` is no commit of TREE: see `git -C TREE log --oneline --all`");
    fs::remove_file(tree.folder.path().join("Kbuild")).unwrap();
    tree.commit("empty");
    assert!(
        error_of("git:empty")
            .ends_with("is not a Linux source tree: no Kbuild at its top; name a kernel tree")
    );
    let bare = BuildCache::open(tree.home.path(), without_network(tree.home.path())).unwrap();
    let error = bare
        .resolve(&"git:v1".parse().unwrap(), &|_| {})
        .unwrap_err();
    insta::assert_snapshot!(error, @"git:v1 needs a tree: name its directory with --tree FOLDER");
}

#[test]
fn interrupted_checkout_is_repeated() {
    let tree = Tree::new();
    tree.commit("v1");
    tree.image("two");
    tree.commit("v2");
    let first = tree.resolve("git:v1").0.unwrap();
    let workshop = tree.home.path().join("workshop");
    // The state after a kill in the middle: files of another tree that are not in the index.
    fs::write(workshop.join("checking-out"), "").unwrap();
    fs::write(workshop.join("linux/Makefile"), "vmlinux:\n\tfalse\n").unwrap();
    fs::write(workshop.join("repository/index.lock"), "").unwrap();
    let second = tree.resolve("git:v2").0.unwrap();
    assert_ne!(second.id, first.id);
    assert!(!workshop.join("checking-out").exists());
    assert!(tree.objects().join("out/vmlinux").exists());
}

#[test]
fn builds_that_were_used_longest_ago_go() {
    let tree = Tree::new();
    let mut cache = tree.cache();
    let mut settings = cache.settings.clone();
    settings.bytes_max = 1;
    cache.set_sources(settings);
    let mut ids = Vec::new();
    for n in 0..3 {
        tree.image(&format!("number {n}"));
        tree.commit(&format!("v{n}"));
        ids.push(
            cache
                .resolve(&format!("git:v{n}").parse().unwrap(), &|_| {})
                .unwrap()
                .id,
        );
    }
    assert_eq!(
        ids.iter()
            .map(|id: &model::BuildId| Path::new(&cache.builds).join(id.hex()).exists())
            .collect::<Vec<_>>(),
        [false, false, true]
    );
    assert!(cache.resolve(&"git:v0".parse().unwrap(), &|_| {}).is_ok());
}
