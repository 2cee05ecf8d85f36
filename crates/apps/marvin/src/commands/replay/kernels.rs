//! Gets the kernels of a proof: its images, or builds of its patches on its base.
//!
//! The file is from anywhere. Its patches are built as those of any mailbox, within the same walls;
//! of its texts none becomes a word of a command.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Context;
use history::proof::{KernelHere, Proof};
use kernel::{
    BuildCache, Configuration, KernelError, Picked, Repository, SourceError, SourceSettings,
    Sources, read_patches,
};
use lab::UnpackedProof;
use model::{Build, KernelName};

use crate::exit::WrongInput;
use crate::session::{Progress, Session};

/// Largest kernel config.
const CONFIG_MAX: u64 = 4 << 20;

/// What is to be found.
pub(super) struct Request<'a> {
    pub(super) file: &'a Path,
    pub(super) proof: &'a Proof,
    pub(super) unpacked: &'a UnpackedProof,
    pub(super) settings: &'a SourceSettings,
    /// Whether the user named a kernel config, which takes the place of the file's.
    pub(super) has_named_config: bool,
    /// Whether the user named a tree: images of the file are built there all the same.
    pub(super) has_named_tree: bool,
}

/// The kernels of a proof as they are here.
#[derive(Debug, Default)]
pub(super) struct FoundKernels {
    /// One for each kernel of the proof.
    pub(super) kernels: Vec<KernelHere>,
    /// Builds, by the place of their image in the proof.
    pub(super) builds: BTreeMap<usize, Build>,
}

/// Checks that the archive has what the document names.
pub(super) fn check_files(proof: &Proof, unpacked: &UnpackedProof) -> Result<(), String> {
    let has = |name: &str| unpacked.files.contains_key(name);
    for kernel in &proof.kernels {
        if let Some(patch) = &kernel.patch {
            let found = unpacked.files.get(&patch.file);
            if found.is_none_or(|(_, sha256)| *sha256 != patch.sha256) {
                return Err(format!(
                    "the patch of {} is not in it, or has another content than its hash says",
                    kernel.label
                ));
            }
        }
        if let Some(config) = &kernel.config
            && !has(&format!("configs/{config}"))
        {
            return Err(format!(
                "the kernel config of {} is not in it",
                kernel.label
            ));
        }
    }
    for image in &proof.images {
        if image.in_file && !has(&format!("images/{}", image.sha256)) {
            return Err(format!(
                "it says that it has image {} and has not",
                image.sha256
            ));
        }
    }
    Ok(())
}

impl Request<'_> {
    /// Returns whether the images of the file are measured: it has all, and none is to be built.
    fn takes_images(&self) -> bool {
        !self.has_named_tree && self.proof.images.iter().all(|image| image.in_file)
    }

    /// Checks that the kernels can be built, if they have to be.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        if self.takes_images() {
            return Ok(());
        }
        let base = &self.proof.base;
        let Some(tree) = &self.settings.tree else {
            let text = format!(
                "{} has no images (--proof-images), so its kernels are built: name a tree that has {base} with --tree FOLDER",
                self.file.display()
            );
            return Err(WrongInput(text).into());
        };
        let repository = Repository::open(tree)?;
        if repository.commit(base).is_err() {
            let text = format!(
                "{} lacks {base}, on which the patches of {} are: fetch it there, or name another tree with --tree",
                repository.folder().display(),
                self.file.display()
            );
            return Err(WrongInput(text).into());
        }
        Ok(())
    }

    /// Takes the kernels from the file, or builds them.
    pub(super) fn find(
        &self,
        session: &Session,
        progress: &Progress,
    ) -> anyhow::Result<FoundKernels> {
        let mut cache = BuildCache::open(session.home()?, session.archives()?)?;
        if self.takes_images() {
            return self.take(&cache, progress);
        }
        cache.set_sources(self.settings.clone());
        self.build(session, &cache, progress)
    }

    /// Makes builds of the images of the file.
    fn take(&self, cache: &BuildCache, progress: &Progress) -> anyhow::Result<FoundKernels> {
        let mut found = FoundKernels::default();
        let mut failures: BTreeMap<usize, String> = BTreeMap::new();
        for (place, image) in self.proof.images.iter().enumerate() {
            let Some((file, _)) = self.unpacked.files.get(&format!("images/{}", image.sha256))
            else {
                continue;
            };
            let name = KernelName::Path(file.clone());
            match cache.resolve(&name, &|step| progress.step("image of the proof", &step)) {
                Ok(mut build) => {
                    // The file beside it is gone at the end.
                    build.name = KernelName::Path(build.image.path.clone());
                    found.builds.insert(place, build);
                }
                Err(KernelError::Image { fault, .. }) => {
                    failures.insert(place, fault.to_string());
                }
                Err(error) => return Err(error).context("cannot take an image of the proof"),
            }
        }
        for kernel in &self.proof.kernels {
            let build = kernel.image.and_then(|image| found.builds.get(&image));
            found.kernels.push(KernelHere {
                image: build.map(|build| build.image.sha256.clone()),
                failure: kernel.image.and_then(|image| failures.remove(&image)),
                ..KernelHere::default()
            });
        }
        Ok(found)
    }

    /// Applies the patches, and builds each.
    fn build(
        &self,
        session: &Session,
        cache: &BuildCache,
        progress: &Progress,
    ) -> anyhow::Result<FoundKernels> {
        let mut found = FoundKernels::default();
        let mut cache = cache.clone();
        let sources = Sources::open(&cache)?;
        let commits = self.apply(session, &sources)?;
        for (kernel, commit) in self.proof.kernels.iter().zip(commits) {
            let commit = match commit {
                None => {
                    found.kernels.push(KernelHere::default());
                    continue;
                }
                Some(Err(failure)) => {
                    found.kernels.push(KernelHere {
                        failure: Some(failure),
                        ..KernelHere::default()
                    });
                    continue;
                }
                Some(Ok(commit)) => commit,
            };
            cache.set_sources(SourceSettings {
                configuration: self.configuration(kernel.config.as_deref())?,
                ..self.settings.clone()
            });
            let sources = Sources::open(&cache)?;
            let mut here = KernelHere {
                source: Some(sources.source_id(&commit)?),
                ..KernelHere::default()
            };
            match sources.build(&commit, &|step| progress.step(&kernel.label, &step)) {
                Ok(build) => {
                    here.image = Some(build.image.sha256.clone());
                    here.config = build.config.as_ref().map(|config| config.sha256.clone());
                    here.compiler = build.origin.compiler().map(str::to_owned);
                    if let Some(image) = kernel.image {
                        found.builds.entry(image).or_insert(build);
                    }
                }
                Err(KernelError::Source(SourceError::DoesNotBuild { first_error, .. })) => {
                    here.failure = Some(format!("does not build: {first_error}"));
                }
                Err(KernelError::Image { fault, .. }) => here.failure = Some(fault.to_string()),
                Err(error) => {
                    return Err(error)
                        .with_context(|| format!("cannot build {} of the proof", kernel.label));
                }
            }
            found.kernels.push(here);
        }
        Ok(found)
    }

    /// Returns the commit of each kernel, or why it has none; `None` where the proof has none.
    fn apply(
        &self,
        session: &Session,
        sources: &Sources,
    ) -> anyhow::Result<Vec<Option<Result<String, String>>>> {
        let scratch = session.home()?.join("downloads");
        let mut onto = self.proof.base.clone();
        let mut commits = Vec::new();
        for (place, kernel) in self.proof.kernels.iter().enumerate() {
            let patch = kernel.patch.as_ref();
            let Some((file, _)) = patch.and_then(|patch| self.unpacked.files.get(&patch.file))
            else {
                commits.push((place == 0).then(|| Ok(onto.clone())));
                continue;
            };
            let patches = read_patches(file, &scratch).map_err(|error| {
                WrongInput(format!(
                    "cannot replay {}: the patch of {} cannot be read: {error}",
                    self.file.display(),
                    kernel.label
                ))
            })?;
            let picked = match &patches[..] {
                [patch] => sources.apply_series(&onto, std::slice::from_ref(patch), false)?,
                _ => Vec::new(),
            };
            commits.push(Some(match picked.into_iter().next() {
                Some(Picked::Commit(commit)) => {
                    onto.clone_from(&commit);
                    Ok(commit)
                }
                Some(Picked::Nothing) => Ok(onto.clone()),
                Some(Picked::Conflict(files)) => {
                    Err(format!("does not apply: {}", files.join(", ")))
                }
                None => Err("is not one patch".to_owned()),
            }));
        }
        Ok(commits)
    }

    /// Returns the kernel config of the file, unless the user named one or it is empty.
    fn configuration(&self, config: Option<&str>) -> anyhow::Result<Configuration> {
        let usual = || self.settings.configuration.clone();
        let file = config
            .filter(|_| !self.has_named_config)
            .and_then(|config| self.unpacked.files.get(&format!("configs/{config}")));
        let Some((file, _)) = file else {
            return Ok(usual());
        };
        let cannot = || format!("cannot read {}", file.display());
        if fs::metadata(file).with_context(cannot)?.len() > CONFIG_MAX {
            let text = format!(
                "cannot replay {}: a kernel config in it is larger than {} MiB",
                self.file.display(),
                CONFIG_MAX >> 20
            );
            return Err(WrongInput(text).into());
        }
        let text = String::from_utf8_lossy(&fs::read(file).with_context(cannot)?).into_owned();
        if !text.contains("CONFIG_") {
            return Ok(usual());
        }
        Ok(Configuration::named(&file.display().to_string())?)
    }
}
