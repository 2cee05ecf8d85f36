//! The way from a source to a build of the cache: what is there already is not built again.
//!
//! `builds/by-recipe/KEY` remembers which build came of a tree of files, a configuration and a compiler, and beside it
//! `KEY.compiled` which files it was made from.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use model::{Build, BuildId, KernelName};

use crate::cache::{Found, build};
use crate::folder::{self, Folder, sha256};
use crate::source::{
    Compiled, Headline, History, Objects, Repository, SourceError, SourceSettings, Workshop, compiler, import,
};
use crate::{BuildCache, KernelError, Step};

/// Told apart from recipes of other versions of these rules.
const RULES: &str = "marvin recipe 1";

/// A tree of files that is to be built, and what it is called.
struct Source {
    tree: String,
    what: String,
    /// What its version is told apart by.
    mark: String,
}

impl BuildCache {
    /// Returns the build of a source, building it where it is not there.
    pub(crate) fn built(&self, name: &KernelName, notify: &dyn Fn(Step)) -> Result<Build, KernelError> {
        let workshop = Workshop::open(&self.home)?;
        let source = self.source(name, &workshop, notify)?;
        self.made(name, (&source, &workshop), notify)
    }

    fn source(&self, name: &KernelName, workshop: &Workshop, notify: &dyn Fn(Step)) -> Result<Source, KernelError> {
        let committed = |repository: &Repository, revision: &str, mark: Option<String>| {
            workshop.borrow(repository)?;
            let commit = repository.commit(revision)?;
            let short: String = commit.chars().take(12).collect();
            let tree = repository.tree(&commit)?;
            let what = format!("commit {short} of {}", repository.folder().display());
            Ok(Source { tree, what, mark: mark.unwrap_or_else(|| format!("-g{short}")) })
        };
        match name {
            KernelName::Git(revision) => {
                let folder = self.settings.tree.as_ref().ok_or_else(|| SourceError::NoTree(revision.clone()))?;
                committed(&Repository::open(folder)?, revision, None)
            }
            KernelName::Tree(folder) => {
                let refuse =
                    |error: std::io::Error| SourceError::NotLinux { what: format!("{} ({error})", folder.display()) };
                let folder = fs::canonicalize(folder).map_err(refuse)?;
                if !folder.join("Kbuild").is_file() {
                    return Err(SourceError::NotLinux { what: folder.display().to_string() }.into());
                }
                let tree = workshop.snapshot(&folder)?;
                let mark = format!("-t{}", &tree[..tree.len().min(12)]);
                Ok(Source { what: format!("{} as it stands", folder.display()), tree, mark })
            }
            KernelName::DebSrc(version) => {
                let places =
                    crate::source::Places { repository: self.home.join("workshop/debian"), downloads: &self.downloads };
                let imported = import(version, &places, notify)?;
                let tag = format!("refs/tags/{}", imported.tag);
                let source = committed(&imported.repository, &tag, Some("-deb".to_owned()))?;
                Ok(Source { what: format!("linux-source {}", imported.tag), ..source })
            }
            KernelName::Deb(_) | KernelName::Path(_) => Err(SourceError::NotLinux { what: name.to_string() }.into()),
        }
    }

    /// Returns the build of a tree of files.
    fn made(
        &self,
        name: &KernelName,
        (source, workshop): (&Source, &Workshop),
        notify: &dyn Fn(Step),
    ) -> Result<Build, KernelError> {
        let compiler = compiler()?;
        let configuration = self.settings.configuration.name();
        let recipe = self.recipe(&source.tree, &compiler);
        let origin = format!("{}, {configuration}, {compiler}", source.what);
        if let Some((id, folder, version)) = self.of_recipe(&recipe)? {
            notify(Step::Cached { what: source.what.clone() });
            return build(id, name, (version, origin), &folder);
        }
        let objects = Objects::open(workshop, &self.settings, &compiler)?;
        let what = format!("{}, {configuration}", source.what);
        notify(Step::Building { what: what.clone(), estimate_s: objects.estimate_s() });
        workshop.check_out(&source.tree, &source.what)?;
        let made = objects.make(&source.tree, &source.what)?;
        if !made.not_kept.is_empty() {
            notify(Step::NotKept { what, options: made.not_kept });
        }
        let found = Found { name, file: &made.vmlinux, origin, version: None, ours: false };
        let mut build = self.keep(found, &|_| {})?;
        let release = build.version.split(['-', ' ']).next().unwrap_or_default().to_owned();
        build.version = format!("{release}{}", source.mark);
        self.remember_recipe(&recipe, (&build, &made.compiled))?;
        self.sweep_recipes(&recipe)?;
        Ok(build)
    }

    fn recipe(&self, tree: &str, compiler: &str) -> PathBuf {
        let identity = self.settings.configuration.identity();
        let key = sha256(format!("{RULES}\n{tree}\n{identity}\n{compiler}").as_bytes());
        self.builds.join("by-recipe").join(key)
    }

    /// Returns the build of a recipe, where it is still there; used now, it stays longer.
    fn of_recipe(&self, recipe: &Path) -> Result<Option<(BuildId, Folder, String)>, KernelError> {
        let Some(facts) = folder::read_facts(recipe)? else { return Ok(None) };
        let (Some(Ok(id)), Some(version)) =
            (facts.get("build").map(|hex| BuildId::from_hex(hex)), facts.get("version"))
        else {
            return Ok(None);
        };
        let Some(found) = Folder::open(self.builds.join(id.hex()))? else { return Ok(None) };
        folder::write_facts(recipe, &facts)?;
        Ok(Some((id, found, version.clone())))
    }

    fn remember_recipe(&self, recipe: &Path, (build, compiled): (&Build, &Compiled)) -> Result<(), KernelError> {
        folder::write(&recipe.with_extension("compiled"), compiled.to_text().as_bytes())?;
        let facts = [("build", build.id.hex()), ("version", &build.version)];
        let facts = facts.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned()));
        folder::write_facts(recipe, &facts.collect::<BTreeMap<_, _>>())
    }

    /// Removes builds of recipes that were used longest ago, until the rest is small enough; the given one stays.
    fn sweep_recipes(&self, but: &Path) -> Result<(), KernelError> {
        let recipes = self.builds.join("by-recipe");
        let mut found: Vec<(SystemTime, PathBuf)> = Vec::new();
        for entry in fs::read_dir(&recipes).map_err(KernelError::at(&recipes))? {
            let path = entry.map_err(KernelError::at(&recipes))?.path();
            if path.extension().is_none() {
                let used = fs::metadata(&path).and_then(|found| found.modified()).map_err(KernelError::at(&path))?;
                found.push((used, path));
            }
        }
        found.sort_by(|a, b| b.cmp(a));
        let mut left = self.settings.bytes_max;
        for (_, recipe) in found {
            let facts = folder::read_facts(&recipe)?.unwrap_or_default();
            let Some(folder) = facts.get("build").map(|id| self.builds.join(id)) else { continue };
            let size = bytes(&folder);
            if recipe == but || size <= left {
                left = left.saturating_sub(size);
                continue;
            }
            for file in [recipe.clone(), recipe.with_extension("compiled")] {
                drop(fs::remove_file(file));
            }
            if folder.exists() {
                fs::remove_dir_all(&folder).map_err(KernelError::at(&folder))?;
            }
        }
        Ok(())
    }
}

/// Returns the bytes of the files of a build.
fn bytes(folder: &Path) -> u64 {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).filter(fs::Metadata::is_file).map(|file| file.len()).sum()
}

/// The sources of a tree, as bisections need them beside builds.
#[derive(Debug, Clone)]
pub struct Sources {
    cache: BuildCache,
    repository: Repository,
}

impl Sources {
    /// Opens the tree that the cache's settings name.
    ///
    /// # Errors
    /// When there is none, or it is no git repository.
    pub fn open(cache: &BuildCache) -> Result<Self, KernelError> {
        let folder = cache.settings.tree.clone().ok_or_else(|| SourceError::NoTree("REVISION".into()))?;
        Ok(Self { cache: cache.clone(), repository: Repository::open(&folder)? })
    }

    /// Returns the tree's repository.
    #[must_use]
    pub fn repository(&self) -> &Repository {
        &self.repository
    }

    /// Returns how sources are built.
    #[must_use]
    pub fn settings(&self) -> &SourceSettings {
        &self.cache.settings
    }

    /// Returns the files that each commit of a range changed.
    ///
    /// # Errors
    /// When git fails.
    pub fn changed_files(&self, history: &History) -> Result<BTreeMap<String, Vec<String>>, KernelError> {
        self.repository.changed_files(history)
    }

    /// Returns what a commit says of itself.
    ///
    /// # Errors
    /// When there is no such commit.
    pub fn headline(&self, commit: &str) -> Result<Headline, KernelError> {
        self.repository.headline(commit)
    }

    /// Returns the files that a commit's build was made from; nothing where it was not built here.
    ///
    /// # Errors
    /// When there is no such commit, or the cache cannot be read.
    pub fn compiled(&self, commit: &str) -> Result<Option<Compiled>, KernelError> {
        let file = self.cache.recipe(&self.tree_of(commit)?, &compiler()?).with_extension("compiled");
        match fs::read(&file) {
            Ok(text) => Ok(Some(Compiled::from_text(&String::from_utf8_lossy(&text)))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(KernelError::at(&file)(error)),
        }
    }

    fn tree_of(&self, commit: &str) -> Result<String, KernelError> {
        let workshop = Workshop::open(&self.cache.home)?;
        workshop.borrow(&self.repository)?;
        workshop.tree_of(commit)
    }

    /// Returns the commit of merging two, which only the workshop has; nothing where they conflict.
    ///
    /// # Errors
    /// When git fails.
    pub fn merge(&self, ours: &str, theirs: &str) -> Result<Option<String>, KernelError> {
        let workshop = Workshop::open(&self.cache.home)?;
        workshop.borrow(&self.repository)?;
        workshop.merge(ours, theirs)
    }

    /// Returns the build of a commit, which may be one that only the workshop has.
    ///
    /// # Errors
    /// When it cannot be built; [`SourceError::DoesNotBuild`] is a result, the others are not.
    pub fn build(&self, commit: &str, notify: &dyn Fn(Step)) -> Result<Build, KernelError> {
        let workshop = Workshop::open(&self.cache.home)?;
        workshop.borrow(&self.repository)?;
        let short: String = commit.chars().take(12).collect();
        let what = format!("commit {short} of {}", self.repository.folder().display());
        let source = Source { tree: workshop.tree_of(commit)?, what, mark: format!("-g{short}") };
        self.cache.made(&KernelName::Git(commit.to_owned()), (&source, &workshop), notify)
    }
}
