//! From a source to a cached build: an existing build is reused.
//!
//! `builds/by-recipe/KEY` records the build of a source tree, a configuration and a compiler, and
//! `KEY.compiled` beside it the files that were compiled, `KEY.functions` the functions of files that a
//! series changes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use model::{Build, BuildId, KernelName, Origin, SourceOrigin, UnixTime};

use crate::cache::{LocatedImage, build};
use crate::folder::{self, Folder, sha256};
use crate::source::{
    BuildSeconds, CommitGraph, Compiled, Configuration, Headline, MakeStep, Objects, Repository,
    SourceError, SourceFolders, SourceSettings, Toolchain, TreeError, WorkTree, X86, import,
    import_tarball, missing_for_options,
};
use crate::{BuildCache, BuildEvent, KernelError};

/// Distinguishes recipes from those of other versions of these rules.
const RULES: &str = "marvin recipe 1";

/// A source tree to build, and its name.
pub(crate) struct Source {
    pub(crate) tree: String,
    origin: SourceOrigin,
    /// The identifying part of its version.
    mark: String,
    /// When it was committed, if it is a commit of a user's tree.
    committed_unix: Option<UnixTime>,
}

impl Source {
    /// Returns the source with another origin; the date of the import is none of the source.
    fn imported(self, origin: SourceOrigin) -> Self {
        Self {
            origin,
            committed_unix: None,
            ..self
        }
    }
}

/// Returns the source of a commit.
fn commit_source(
    repository: &Repository,
    revision: &str,
    mark: Option<String>,
) -> Result<Source, KernelError> {
    let commit = repository.commit(revision)?;
    let short: String = commit.chars().take(12).collect();
    let tree = repository.tree(&commit)?;
    let mark = mark.unwrap_or_else(|| format!("-g{short}"));
    let committed_unix = repository.committed_unix(&commit);
    let origin = SourceOrigin::Commit {
        commit: short,
        tree: repository.folder().display().to_string(),
    };
    Ok(Source {
        tree,
        origin,
        mark,
        committed_unix,
    })
}

impl BuildCache {
    /// Returns where sources are imported to, into a repository of the workshop.
    fn folders(&self, repository: &str) -> SourceFolders<'_> {
        SourceFolders {
            debian: &self.archives.debian,
            repository: self.home.join("workshop").join(repository),
            downloads: &self.downloads,
        }
    }

    /// Returns the build of a source; builds it if necessary.
    pub(crate) fn built(
        &self,
        name: &KernelName,
        notify: &dyn Fn(BuildEvent),
    ) -> Result<Build, KernelError> {
        let cache = self.for_kernel(name)?;
        let toolchain = cache.toolchain()?;
        if cache.is_reading {
            let source = cache.source_at_hand(name, notify)?;
            let recipe = cache.recipe(&source.tree, &toolchain.identity());
            let made = cache.made_before(name, &source, &toolchain, &recipe)?;
            let made = made.ok_or_else(|| KernelError::NotMade(name.to_string()))?;
            let what = source.origin.to_string();
            notify(BuildEvent::Cached { what });
            return Ok(made);
        }
        // What was made needs no workshop: another process may build in it for long.
        if matches!(name.source(), KernelName::Git(_)) {
            let source = cache.source_at_hand(name, notify)?;
            let recipe = cache.recipe(&source.tree, &toolchain.identity());
            if let Some(made) = cache.made_before(name, &source, &toolchain, &recipe)? {
                let what = source.origin.to_string();
                notify(BuildEvent::Cached { what });
                return Ok(made);
            }
        }
        let workshop = WorkTree::open_telling(&self.home, &|| notify(BuildEvent::Waiting))?;
        let source = cache.source(name.source(), &workshop, notify)?;
        cache.build_tree(name, &source, &toolchain, &workshop, notify)
    }

    /// Returns the source of a kernel without waiting for the workshop, which another process may
    /// use for hours.
    fn source_at_hand(
        &self,
        name: &KernelName,
        notify: &dyn Fn(BuildEvent),
    ) -> Result<Source, KernelError> {
        match name.source() {
            // A commit needs no workshop.
            KernelName::Git(revision) => commit_source(&self.tree_of(revision)?, revision, None),
            KernelName::Tree(_) | KernelName::Patch { .. } => {
                let workshop = WorkTree::open_if_free(&self.home)?;
                let workshop = workshop.ok_or_else(|| KernelError::NotMade(name.to_string()))?;
                self.source(name.source(), &workshop, notify)
            }
            // Its archive may have to be fetched.
            _ => Err(KernelError::NotMade(name.to_string())),
        }
    }

    /// Returns the repository that a revision is of.
    fn tree_of(&self, revision: &str) -> Result<Repository, KernelError> {
        let folder = self.settings.tree.as_ref();
        let folder =
            folder.ok_or_else(|| SourceError::Tree(TreeError::NoTree(revision.to_owned())))?;
        Repository::open(folder)
    }

    /// Returns the cache with the settings of a kernel, which its name may change.
    pub(crate) fn for_kernel(&self, name: &KernelName) -> Result<Self, KernelError> {
        let mut cache = self.clone();
        if let KernelName::Changed { changes, .. } = name {
            let mut configuration = cache.settings.configuration;
            for part in &changes.config {
                configuration = configuration.with(part)?;
            }
            cache.settings.configuration = configuration;
            let make = &mut cache.settings.make;
            make.arguments.extend(changes.make_args.iter().cloned());
            if let Some(cc) = &changes.cc {
                make.cc = Some(cc.clone());
            }
        }
        Ok(cache)
    }

    /// Returns the toolchain of the settings, which must fit the kernel config and, unless the
    /// kernel is only built, the machines.
    pub(crate) fn toolchain(&self) -> Result<Toolchain, KernelError> {
        let toolchain = Toolchain::find(&self.settings.make, &self.settings.configuration)?;
        let architecture = &toolchain.architecture;
        self.settings
            .configuration
            .check_architecture(architecture)?;
        if architecture != X86 && !self.settings.is_only_built {
            return Err(SourceError::NoMachine(architecture.clone()).into());
        }
        Ok(toolchain)
    }

    /// Checks that the configured tree has a revision.
    pub(crate) fn check_revision(&self, revision: &str) -> Result<(), KernelError> {
        self.tree_of(revision)?.commit(revision).map(drop)
    }

    /// Imports the sources of a release of Debian, unless they are imported; returns the repository
    /// of all releases of its series, one commit each in version order, and the release's tag.
    ///
    /// # Errors
    /// If there is no such package, or it cannot be imported.
    pub fn import_release(
        &self,
        version: &str,
        notify: &dyn Fn(BuildEvent),
    ) -> Result<(PathBuf, String), KernelError> {
        let _workshop = WorkTree::open(&self.home)?;
        let imported = import(version, &self.folders("debian"), notify)?;
        Ok((imported.repository.folder().to_owned(), imported.tag))
    }

    pub(crate) fn source(
        &self,
        name: &KernelName,
        workshop: &WorkTree,
        notify: &dyn Fn(BuildEvent),
    ) -> Result<Source, KernelError> {
        let committed = |repository: &Repository, revision: &str, mark: Option<String>| {
            workshop.borrow(repository)?;
            commit_source(repository, revision, mark)
        };
        match name {
            KernelName::Git(revision) => committed(&self.tree_of(revision)?, revision, None),
            KernelName::Patch { file, revision } => {
                let base = committed(&self.tree_of(revision)?, revision, None)?;
                let tree = workshop.apply_patch(&base.tree, file, &base.origin.to_string())?;
                let mark = format!("-p{}", &tree[..tree.len().min(12)]);
                let origin =
                    SourceOrigin::Described(format!("{} on {}", file.display(), base.origin));
                Ok(Source {
                    tree,
                    origin,
                    mark,
                    committed_unix: None,
                })
            }
            KernelName::Tree(folder) => {
                let folder = fs::canonicalize(folder).map_err(|error| {
                    SourceError::Tree(TreeError::NotLinux {
                        what: format!("{} ({error})", folder.display()),
                    })
                })?;
                if !folder.join("Kbuild").is_file() {
                    return Err(SourceError::Tree(TreeError::NotLinux {
                        what: folder.display().to_string(),
                    })
                    .into());
                }
                let tree = workshop.snapshot(&folder)?;
                let mark = format!("-t{}", &tree[..tree.len().min(12)]);
                let origin = SourceOrigin::Described(format!("{} as it stands", folder.display()));
                Ok(Source {
                    tree,
                    origin,
                    mark,
                    committed_unix: None,
                })
            }
            KernelName::DebSrc(version) => {
                let imported = import(version, &self.folders("debian"), notify)?;
                let tag = format!("refs/tags/{}", imported.tag);
                let source = committed(&imported.repository, &tag, Some("-deb".to_owned()))?;
                let origin = SourceOrigin::DebianSource { tag: imported.tag };
                Ok(source.imported(origin))
            }
            KernelName::KernelOrg(version) => {
                let archive = &self.archives.kernel_org;
                let folders = self.folders("kernel.org");
                let imported = import_tarball(version, archive, &folders, notify)?;
                let tag = format!("refs/tags/{}", imported.tag);
                let source = committed(&imported.repository, &tag, Some("-org".to_owned()))?;
                let origin = format!("linux {} of kernel.org", imported.tag);
                Ok(source.imported(SourceOrigin::Described(origin)))
            }
            KernelName::Package(_)
            | KernelName::Installed(_)
            | KernelName::Path(_)
            | KernelName::Running
            | KernelName::Changed { .. }
            | KernelName::Imported(_) => Err(SourceError::Tree(TreeError::NotLinux {
                what: name.to_string(),
            })
            .into()),
        }
    }

    /// Returns the build of a source tree.
    fn build_tree(
        &self,
        name: &KernelName,
        source: &Source,
        toolchain: &Toolchain,
        workshop: &WorkTree,
        notify: &dyn Fn(BuildEvent),
    ) -> Result<Build, KernelError> {
        let configuration = self.settings.configuration.name();
        let recipe = self.recipe(&source.tree, &toolchain.identity());
        let from = source.origin.to_string();
        if !recipe.exists() {
            self.take_recipe(&recipe, notify)?;
        }
        if let Some(made) = self.made_before(name, source, toolchain, &recipe)? {
            notify(BuildEvent::Cached { what: from });
            return Ok(made);
        }
        let objects = Objects::open(workshop, &self.settings, toolchain)?;
        let what = format!("{from}, {configuration}");
        notify(BuildEvent::Building {
            what: what.clone(),
            estimate_s: objects.seconds().map(|seconds| seconds.last),
        });
        if let Some(none) = subprocess::no_walls().filter(|_| subprocess::wants_walls()) {
            notify(BuildEvent::NoWalls { why: &none.why });
        }
        workshop.check_out(&source.tree, &from)?;
        let report = |step| match step {
            MakeStep::Compiling(progress) => notify(BuildEvent::Compiling(progress)),
            MakeStep::NotKept(options) => notify(BuildEvent::NotKept {
                what: what.clone(),
                lacks: missing_for_options(&options),
                options,
            }),
        };
        let made = objects.make(&source.tree, &from, &report)?;
        let origin = self.origin_of(source, toolchain);
        let mut build = if toolchain.architecture == X86 {
            let found = LocatedImage {
                name,
                file: &made.image,
                origin,
                version: None,
                ours: false,
            };
            self.keep_built(found, made.modules.as_deref())?
        } else {
            self.keep_foreign(name, &made.image, origin)?
        };
        let release = build
            .version
            .split(['-', ' '])
            .next()
            .unwrap_or_default()
            .to_owned();
        build.version = format!("{release}{}", source.mark);
        self.remember_recipe(&recipe, &build, &made.compiled)?;
        self.share_recipe(&recipe, &build)?;
        self.sweep_recipes(&recipe)?;
        Ok(build)
    }

    /// Returns the origin of a build of a source.
    fn origin_of(&self, source: &Source, toolchain: &Toolchain) -> Origin {
        Origin::Built {
            source: source.origin.clone(),
            configuration: self.settings.configuration.name().to_owned(),
            compiler: toolchain.description.clone(),
            committed_unix: source.committed_unix,
        }
    }

    /// Returns the build of a source that was made earlier.
    fn made_before(
        &self,
        name: &KernelName,
        source: &Source,
        toolchain: &Toolchain,
        recipe: &Path,
    ) -> Result<Option<Build>, KernelError> {
        let Some((id, folder, version)) = self.of_recipe(recipe)? else {
            return Ok(None);
        };
        let origin = self.origin_of(source, toolchain);
        build(id, name, version, origin, &folder).map(Some)
    }

    pub(crate) fn recipe(&self, tree: &str, compiler: &str) -> PathBuf {
        let identity = self.settings.configuration.identity();
        let key = sha256(format!("{RULES}\n{tree}\n{identity}\n{compiler}").as_bytes());
        self.builds.join("by-recipe").join(key)
    }

    /// Returns the cached build of a recipe, if it still exists; marks it as recently used.
    fn of_recipe(&self, recipe: &Path) -> Result<Option<(BuildId, Folder, String)>, KernelError> {
        let Some(facts) = folder::read_facts(recipe)? else {
            return Ok(None);
        };
        let (Some(Ok(id)), Some(version)) = (
            facts.get("build").map(|hex| BuildId::from_hex(hex)),
            facts.get("version"),
        ) else {
            return Ok(None);
        };
        let Some(found) = Folder::open(self.builds.join(id.hex()))? else {
            return Ok(None);
        };
        if !self.is_reading {
            folder::write_facts(recipe, &facts)?;
        }
        Ok(Some((id, found, version.clone())))
    }

    fn remember_recipe(
        &self,
        recipe: &Path,
        build: &Build,
        compiled: &Compiled,
    ) -> Result<(), KernelError> {
        folder::write(
            &recipe.with_extension("compiled"),
            compiled.to_text().as_bytes(),
        )?;
        let facts = [("build", build.id.hex()), ("version", &build.version)];
        let facts = facts
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value.to_owned()));
        folder::write_facts(recipe, &facts.collect::<BTreeMap<_, _>>())
    }

    /// Deletes the least recently used builds until the rest fits the limit; keeps the given one.
    fn sweep_recipes(&self, but: &Path) -> Result<(), KernelError> {
        let recipes = self.builds.join("by-recipe");
        let mut found: Vec<(SystemTime, PathBuf)> = Vec::new();
        let mut beside: Vec<PathBuf> = Vec::new();
        for entry in fs::read_dir(&recipes).map_err(KernelError::io(&recipes))? {
            let path = entry.map_err(KernelError::io(&recipes))?.path();
            if path.extension().is_none() {
                let used = fs::metadata(&path)
                    .and_then(|found| found.modified())
                    .map_err(KernelError::io(&path))?;
                found.push((used, path));
            } else {
                beside.push(path);
            }
        }
        found.sort_by(|a, b| b.cmp(a));
        let mut left = self.settings.bytes_max;
        for (_, recipe) in found {
            let facts = folder::read_facts(&recipe)?.unwrap_or_default();
            let Some(folder) = facts.get("build").map(|id| self.builds.join(id)) else {
                continue;
            };
            let size = bytes(&folder);
            if recipe == but || size <= left {
                left = left.saturating_sub(size);
                continue;
            }
            drop(fs::remove_file(&recipe));
            for file in beside.iter().filter(|file| is_beside(file, &recipe)) {
                drop(fs::remove_file(file));
            }
            if folder.exists() {
                fs::remove_dir_all(&folder).map_err(KernelError::io(&folder))?;
            }
        }
        Ok(())
    }
}

/// Returns whether a file belongs to a recipe: `KEY.compiled`.
fn is_beside(file: &Path, recipe: &Path) -> bool {
    let [file, recipe] = [file, recipe].map(|path| path.as_os_str().as_encoded_bytes());
    let behind = file.strip_prefix(recipe);
    behind.is_some_and(|behind| behind.starts_with(b"."))
}

/// Returns the bytes of the files of a build.
fn bytes(folder: &Path) -> u64 {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    files
        .filter_map(|file| file.metadata().ok())
        .filter(fs::Metadata::is_file)
        .map(|file| file.len())
        .sum()
}

/// The sources of a tree, as bisections need them.
#[derive(Debug, Clone)]
pub struct Sources {
    cache: BuildCache,
    repository: Repository,
    /// What identifies the compiler.
    compiler: String,
}

impl Sources {
    /// Opens the tree in the cache's settings.
    ///
    /// # Errors
    /// If there is none, it is no git repository, or a build tool is missing.
    pub fn open(cache: &BuildCache) -> Result<Self, KernelError> {
        let folder = cache
            .settings
            .tree
            .clone()
            .ok_or_else(|| SourceError::Tree(TreeError::NoTree("REVISION".into())))?;
        Ok(Self {
            cache: cache.clone(),
            repository: Repository::open(&folder)?,
            compiler: cache.toolchain()?.identity(),
        })
    }

    pub(crate) fn set_configuration(&mut self, configuration: Configuration) {
        self.cache.settings.configuration = configuration;
    }

    /// Returns the cache of its builds.
    pub(crate) fn cache(&self) -> &BuildCache {
        &self.cache
    }

    /// Returns a text that identifies the compiler.
    #[must_use]
    pub fn compiler(&self) -> &str {
        &self.compiler
    }

    /// Returns the tree's repository.
    #[must_use]
    pub fn repository(&self) -> &Repository {
        &self.repository
    }

    /// Returns the build settings.
    #[must_use]
    pub fn settings(&self) -> &SourceSettings {
        &self.cache.settings
    }

    /// Returns the durations of builds with these settings on this host; `None` if there was none.
    #[must_use]
    pub fn seconds(&self) -> Option<BuildSeconds> {
        BuildSeconds::of_workshop(
            &self.cache.home.join("workshop"),
            &self.cache.settings,
            &self.compiler,
        )
    }

    /// Returns the files that each commit of a range changed.
    ///
    /// # Errors
    /// If git fails.
    pub fn changed_files(
        &self,
        history: &CommitGraph,
    ) -> Result<BTreeMap<String, Vec<String>>, KernelError> {
        self.repository.changed_files(history)
    }

    /// Returns the headline of a commit.
    ///
    /// # Errors
    /// If there is no such commit.
    pub fn headline(&self, commit: &str) -> Result<Headline, KernelError> {
        self.repository.headline(commit)
    }

    /// Returns the files that a commit's build compiled; `None` if Marvin did not build it.
    ///
    /// # Errors
    /// If there is no such commit, or the cache cannot be read.
    pub fn compiled(&self, commit: &str) -> Result<Option<Compiled>, KernelError> {
        let file = self
            .cache
            .recipe(&self.tree_of(commit)?, &self.compiler)
            .with_extension("compiled");
        match fs::read(&file) {
            Ok(text) => Ok(Some(Compiled::from_text(&String::from_utf8_lossy(&text)))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(KernelError::io(&file)(error)),
        }
    }

    fn tree_of(&self, commit: &str) -> Result<String, KernelError> {
        let workshop = WorkTree::open(&self.cache.home)?;
        workshop.borrow(&self.repository)?;
        workshop.tree_of(commit)
    }

    /// Returns the merge of two commits, which exists only in the workshop; `None` if they
    /// conflict.
    ///
    /// # Errors
    /// If git fails.
    pub fn merge(&self, ours: &str, theirs: &str) -> Result<Option<String>, KernelError> {
        let workshop = WorkTree::open(&self.cache.home)?;
        workshop.borrow(&self.repository)?;
        workshop.merge(ours, theirs)
    }

    /// Returns a commit with another one reverted, which exists only in the workshop; `None` if
    /// later commits conflict.
    ///
    /// # Errors
    /// If git fails.
    pub fn revert(&self, tip: &str, commit: &str) -> Result<Option<String>, KernelError> {
        let workshop = WorkTree::open(&self.cache.home)?;
        workshop.borrow(&self.repository)?;
        workshop.revert(tip, commit)
    }

    /// Returns the build of a commit, which may exist only in the workshop.
    ///
    /// # Errors
    /// If it cannot be built; only [`SourceError::DoesNotBuild`] is a result.
    pub fn build(&self, commit: &str, notify: &dyn Fn(BuildEvent)) -> Result<Build, KernelError> {
        let workshop = WorkTree::open(&self.cache.home)?;
        workshop.borrow(&self.repository)?;
        let toolchain = self.cache.toolchain()?;
        let after = toolchain.identity();
        if after != self.compiler {
            // Otherwise one compiler would build half of the commits and another one the rest.
            return Err(SourceError::CompilerChanged {
                before: self.compiler.clone(),
                after,
            }
            .into());
        }
        let short: String = commit.chars().take(12).collect();
        let mark = format!("-g{short}");
        let origin = SourceOrigin::Commit {
            commit: short,
            tree: self.repository.folder().display().to_string(),
        };
        // What exists only in the workshop has no date in the tree.
        let committed_unix = self.repository.committed_unix(commit);
        let source = Source {
            tree: workshop.tree_of(commit)?,
            origin,
            mark,
            committed_unix,
        };
        self.cache.build_tree(
            &KernelName::Git(commit.to_owned()),
            &source,
            &toolchain,
            &workshop,
            notify,
        )
    }
}

#[cfg(test)]
mod chosen_builds_tests;
#[cfg(test)]
mod function_changes_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod widened_tests;
