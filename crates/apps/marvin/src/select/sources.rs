//! Selects the tree for `git:` and `patch:` names and its kernel config: a directory, or a tree of
//! marvin.toml by name.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kernel::{Configuration, MakeOptions, SourceSettings};
use lab::Tools;
use model::{MakeArgument, Need, TreeOrigin, WatchedTree, Workload};

use super::{describe_missing, did_you_mean};
use crate::exit::WrongInput;
use crate::options::{MeasureOptions, SourceOptions};
use crate::session::Session;

/// The default kernel config.
const CONFIGURATION: &str = "default";

/// Returns how to build sources. The default tree is the only one of marvin.toml that is a
/// directory; the default kernel config is that of the named tree.
pub(crate) fn source_settings(
    session: &Session,
    chosen: &SourceOptions,
) -> anyhow::Result<SourceSettings> {
    let (tree, of_tree) = match &chosen.tree {
        Some(tree) if tree.exists() => (Some(tree.clone()), config_of_tree(session, tree)),
        Some(name) => {
            let tree = named_tree(session, name)?;
            (Some(tree_directory(tree)?), Some(tree.config.clone()))
        }
        None => {
            let tree = enclosing_tree()
                .or_else(|| chosen.build_dir.as_deref().and_then(built_tree))
                .or_else(|| only_tree(session));
            let config = tree
                .as_deref()
                .and_then(|tree| config_of_tree(session, tree));
            (tree, config)
        }
    };
    if let Some(missing) = chosen.build_dir.as_deref().and_then(describe_missing) {
        return Err(WrongInput(format!("cannot use --build-dir: {missing}")).into());
    }
    if let Some(file) = chosen.config.as_deref().filter(|name| is_one_path(name))
        && let Some(missing) = describe_missing(Path::new(file))
    {
        return Err(WrongInput(format!("cannot use --config {file}: {missing}")).into());
    }
    let configuration = match &chosen.build_dir {
        Some(folder) => Configuration::of_build_dir(folder)?,
        None => configuration(chosen.config.as_deref(), of_tree.as_deref())?,
    };
    // `marvin config check` reports an unreadable file.
    let site = session.config().ok().map(|site| &site.settings);
    let mut arguments = site.map_or_else(Vec::new, |settings| settings.make_args.clone());
    for words in &chosen.make_args {
        let words = MakeArgument::parse_words(words);
        arguments.extend(words.map_err(|error| WrongInput(error.to_string()))?);
    }
    let settings = SourceSettings {
        tree,
        configuration,
        make: MakeOptions {
            cc: chosen.cc.clone(),
            arguments,
        },
        shared: site.and_then(|settings| settings.builds.clone()),
        ..SourceSettings::default()
    };
    if let Some(folder) = &chosen.build_dir {
        say_compilers(session, folder, &settings)?;
    }
    Ok(settings)
}

/// Returns how to build the kernels of a measurement: the default config gets what the named
/// workloads need, and with --keep-dump what describes its memory, so that Marvin can filter it.
pub(crate) fn measured_sources(
    session: &Session,
    measure: &MeasureOptions,
    tools: &Tools,
) -> anyhow::Result<SourceSettings> {
    let mut settings = settings_with_tools(session, &measure.sources, tools)?;
    if !measure.workload.is_empty() || measure.suite.is_some() {
        // The selection itself reports mistakes in the words.
        let chosen = model::choose(&tools.rows(), measure.suite(), &measure.workload);
        let workloads = chosen.map_or_else(|_| Vec::new(), |chosen| chosen.workloads);
        settings.configuration = with_modules(settings.configuration, &workloads)?;
    }
    if measure.keep_dump {
        settings.configuration = settings.configuration.with_memory_description()?;
    }
    Ok(settings)
}

/// Builds in the modules that workloads cannot do without. Those whose parameters are no options
/// stay out: built in, they would be other devices.
pub(crate) fn with_modules(
    configuration: Configuration,
    workloads: &[Arc<Workload>],
) -> anyhow::Result<Configuration> {
    let mut configuration = configuration;
    for workload in workloads {
        let needed = workload.guest_config.modules.iter();
        let needed: Vec<_> = needed.filter(|module| module.need == Need::Must).collect();
        if needed.iter().all(|module| module.has_options()) {
            for module in needed {
                configuration = configuration.with_module(module)?;
            }
        }
    }
    Ok(configuration)
}

/// Returns the tree of marvin.toml with this name.
fn named_tree<'a>(session: &'a Session, name: &Path) -> anyhow::Result<&'a WatchedTree> {
    if name.components().count() > 1
        && let Some(missing) = describe_missing(name)
    {
        let text = format!("cannot use --tree {}: {missing}", name.display());
        return Err(WrongInput(text).into());
    }
    let name = name.display().to_string();
    let trees = &session.config()?.settings.trees;
    let tree = find_tree(trees, &name);
    tree.map_err(|why| WrongInput(format!("{name} is not a directory, and {why}")).into())
}

/// Returns the directory of `--tree`: itself, or that of a tree of marvin.toml.
pub(crate) fn find_tree_folder(session: &Session, named: &Path) -> anyhow::Result<PathBuf> {
    if named.exists() {
        return Ok(named.to_owned());
    }
    tree_directory(named_tree(session, named)?)
}

/// Returns how to build sources for these tools: benchmarks of the kernel's source need options of
/// the kernel config.
pub(crate) fn settings_with_tools(
    session: &Session,
    chosen: &SourceOptions,
    tools: &Tools,
) -> anyhow::Result<SourceSettings> {
    let mut settings = source_settings(session, chosen)?;
    for option in tools.kernel_options() {
        settings.configuration = settings.configuration.with(&option)?;
    }
    Ok(settings)
}

/// Returns whether a kernel config is named by one path, without parts on top.
fn is_one_path(name: &str) -> bool {
    name.contains('/') && !name.contains(['+', '='])
}

/// Returns the kernel config; single options are on top of the tree's.
fn configuration(named: Option<&str>, of_tree: Option<&str>) -> anyhow::Result<Configuration> {
    let usual = of_tree.unwrap_or(CONFIGURATION);
    Ok(match named {
        Some(named) if Configuration::is_option(named) => {
            let base = Configuration::named(usual)?;
            named
                .split('+')
                .try_fold(base, |base, part| base.with(part))?
        }
        named => Configuration::named(named.unwrap_or(usual))?,
    })
}

/// Says which compiler made a build directory, if Marvin builds with another.
fn say_compilers(
    session: &Session,
    folder: &Path,
    settings: &SourceSettings,
) -> anyhow::Result<()> {
    let ours = settings.compiler()?;
    let theirs = settings.configuration.compiler();
    let line = match theirs {
        Some(theirs) if ours.starts_with(&theirs) => return Ok(()),
        Some(theirs) => format!("was made by {theirs}; this build is by {ours}"),
        None => format!("does not say which compiler made it; this build is by {ours}"),
    };
    session
        .progress()
        .say(&format!("{} {line}", folder.display()));
    Ok(())
}

/// Returns the source of a build directory: itself, or what make's link in it names.
fn built_tree(folder: &Path) -> Option<PathBuf> {
    let folder = std::fs::canonicalize(folder).ok()?;
    let source = std::fs::canonicalize(folder.join("source")).ok();
    [Some(folder), source]
        .into_iter()
        .flatten()
        .find(|tree| kernel_tree(tree) == Some(tree))
}

/// Returns the kernel tree that contains the current directory.
pub(crate) fn enclosing_tree() -> Option<PathBuf> {
    kernel_tree(&std::env::current_dir().ok()?).map(Path::to_path_buf)
}

/// Returns the kernel clone that contains a directory.
fn kernel_tree(directory: &Path) -> Option<&Path> {
    directory
        .ancestors()
        .find(|top| is_kernel_source(top) && top.join(".git").exists())
}

/// Returns whether a directory is the top of a kernel's source. It has had both files since the
/// first commit of its git history (1da177e4c3f4, `Kbuild` since 2.6.15).
pub(crate) fn is_kernel_source(top: &Path) -> bool {
    ["Kbuild", "Makefile"]
        .iter()
        .all(|name| top.join(name).is_file())
}

/// Finds a tree of marvin.toml.
pub(crate) fn find_tree<'a>(
    trees: &'a [WatchedTree],
    name: &str,
) -> Result<&'a WatchedTree, String> {
    trees.iter().find(|tree| tree.name == name).ok_or_else(|| {
        let guess = did_you_mean(trees.iter().map(|tree| tree.name.as_str()), name);
        format!("marvin.toml has no [[tree]] `{name}`{guess}; `marvin config show` lists them")
    })
}

fn tree_directory(tree: &WatchedTree) -> anyhow::Result<PathBuf> {
    let why = match &tree.origin {
        TreeOrigin::Git { place, .. } if Path::new(place).is_dir() => {
            return Ok(PathBuf::from(place));
        }
        TreeOrigin::Git { place, .. } => {
            format!("is at {place}, but this command needs its history: clone it")
        }
        TreeOrigin::Debian { .. } => {
            "has packages and no commits: import sources (`marvin build deb-src:6.12`)".to_owned()
        }
    };
    Err(WrongInput(format!(
        "the [[tree]] {} of marvin.toml {why}, and name its directory with --tree",
        tree.name
    ))
    .into())
}

/// Returns the kernel config that marvin.toml gives the tree in a directory, if it has that tree.
fn config_of_tree(session: &Session, directory: &Path) -> Option<String> {
    let directory = directory.canonicalize().ok()?;
    let trees = &session.config().ok()?.settings.trees;
    let is_there = |tree: &&WatchedTree| {
        let known = tree_directory(tree)
            .ok()
            .and_then(|known| known.canonicalize().ok());
        known.is_some_and(|known| known == directory)
    };
    trees.iter().find(is_there).map(|tree| tree.config.clone())
}

/// Returns the only directory among the trees of marvin.toml; `marvin config check` reports an
/// unreadable file.
fn only_tree(session: &Session) -> Option<PathBuf> {
    let trees = &session.config().ok()?.settings.trees;
    let mut folders = trees.iter().filter_map(|tree| tree_directory(tree).ok());
    folders.next().filter(|_| folders.next().is_none())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{kernel_tree, with_modules};

    #[test]
    fn kernel_trees_are_found_from_below() {
        let top = tempfile::tempdir().unwrap();
        let below = top.path().join("mm/damon");
        fs::create_dir_all(&below).unwrap();
        fs::create_dir(top.path().join(".git")).unwrap();
        assert_eq!(kernel_tree(&below), None);
        for name in ["Kbuild", "Makefile"] {
            fs::write(top.path().join(name), "").unwrap();
        }
        assert_eq!(kernel_tree(&below), Some(top.path()));
    }

    fn config_of(suite: &str) -> String {
        let rows = &model::suite(suite).unwrap().workloads;
        let config = with_modules(kernel::Configuration::default(), rows).unwrap();
        config.name().to_owned()
    }

    #[test]
    fn default_config_grows_by_what_rows_need() {
        let on_disks = "default+BLK_DEV_RAM_SIZE=524288+XFS_FS=y+BTRFS_FS=y";
        let nfs = "NFSD=y+NFSD_V4=y+NFS_FS=y+NFS_V4=y+NFS_V4_1=y+NFS_V4_2=y";
        assert_eq!(config_of("fs"), format!("{on_disks}+{nfs}"));
        // Some of its rows share a file system.
        assert_eq!(config_of("contention"), on_disks);
        let of_sockets = "default+IP_SCTP=y+CRYPTO_USER_API_HASH=y";
        assert_eq!(config_of("reports"), of_sockets);
        // Disks that are slow by a parameter of their module have no option for it.
        for usual in ["micro", "paths", "scale", "reclaim"] {
            assert_eq!(config_of(usual), "default");
        }
    }
}
