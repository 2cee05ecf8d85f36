//! External tools: their manifests, their workloads, and the guest images with their files.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::{ManifestError, SHIPPED};
use kernel::{BuildCache, BuildEvent, KernelError, Wanted};
use machine::InitrdFile;
use model::{
    ExtraFiles, Fault, GuestConfig, Metric, Processors, Quantity, Run, Suite, Tool, ToolRows,
    ToolWorkload, Workload,
};
use sha2::{Digest, Sha256};
use subprocess::replace_file;

use crate::LabError;
use crate::own_program;
use crate::tool_job;
use crate::turn::Turn;

/// Limit on a row's name: names of artifacts contain it.
pub(crate) const ROW_MAX: usize = 48;

/// Memory of a guest beside its files (MiB): for the kernel and a small tool.
pub(crate) const BESIDE_FILES_MIB: u64 = 64;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolsError {
    /// A manifest is invalid.
    #[error("{file}: {error}")]
    Manifest {
        file: String,
        /// The place and the reason.
        error: ManifestError,
    },
    /// Two things have the same name.
    #[error("{file}: there is a workload `{name}` already: choose another name")]
    Taken { file: String, name: String },
}

/// Marvin's own tools, and the user's.
#[derive(Debug, Clone)]
pub struct Tools {
    all: Vec<Declared>,
    suite: Arc<Suite>,
}

/// A tool with its rows.
#[derive(Debug, Clone)]
struct Declared {
    tool: Tool,
    /// One row for each metric of each workload, with the index of the workload in the tool.
    rows: Vec<(usize, Arc<Workload>)>,
}

impl Default for Tools {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            suite: ToolRows::default().suite,
        }
    }
}

impl Tools {
    /// Reads Marvin's manifests and others, given as file names and contents. A tool with the name
    /// of one of Marvin's replaces it.
    ///
    /// # Errors
    /// If a manifest is invalid, or a name is taken.
    pub fn read(manifests: &[(String, String)]) -> Result<Self, ToolsError> {
        let shipped = SHIPPED
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        let mut tools: Vec<(String, Tool)> = Vec::new();
        for (file, text) in shipped.chain(manifests.iter().cloned()) {
            let tool = config::tool(&text).map_err(|error| ToolsError::Manifest {
                file: file.clone(),
                error,
            })?;
            tools.retain(|(_, known)| known.name != tool.name);
            tools.push((file, tool));
        }
        let mut taken: BTreeSet<String> = model::workloads()
            .iter()
            .map(|workload| workload.name.to_string())
            .collect();
        let mut all = Vec::new();
        for (file, tool) in tools {
            let declared = declared(tool);
            for (_, row) in &declared.rows {
                if !taken.insert(row.name.to_string()) {
                    return Err(ToolsError::Taken {
                        file,
                        name: row.name.to_string(),
                    });
                }
            }
            all.push(declared);
        }
        Ok(Self::with_rows(all))
    }

    /// Returns these tools and a user's own program.
    #[must_use]
    pub fn with_program(self, program: Tool) -> Self {
        let mut all = self.all;
        all.push(declared(program));
        Self::with_rows(all)
    }

    /// Returns whether a row of this name is there already.
    #[must_use]
    pub fn is_taken(&self, row: &str) -> bool {
        let builtin = model::workloads();
        builtin.iter().any(|workload| workload.name == row)
            || self.suite.workloads.iter().any(|known| known.name == row)
    }

    fn with_rows(all: Vec<Declared>) -> Self {
        let workloads = all
            .iter()
            .flat_map(|declared| &declared.rows)
            .map(|(_, row)| Arc::clone(row))
            .collect();
        let Suite { name, purpose, .. } = *ToolRows::default().suite;
        Self {
            all,
            suite: Arc::new(Suite {
                name,
                purpose,
                workloads,
            }),
        }
    }

    pub fn all(&self) -> impl Iterator<Item = &Tool> {
        self.all.iter().map(|declared| &declared.tool)
    }

    /// Returns the rows of all tools, as a suite.
    #[must_use]
    pub fn suite(&self) -> &Arc<Suite> {
        &self.suite
    }

    /// Returns the rows of a word: a tool, a workload of one, or one metric of a workload. `None`
    /// for an unknown word.
    #[must_use]
    pub fn select(&self, word: &str) -> Vec<Arc<Workload>> {
        let rows = self
            .all
            .iter()
            .flat_map(|declared| declared.rows.iter().map(|(_, row)| (&declared.tool, row)));
        let is_meant = |tool: &Tool, row: &Workload| {
            tool.name == word || row.name == word || row.row_of.as_deref() == Some(word)
        };
        // A tool may share its name with one of its workloads: the workload takes precedence.
        let exact: Vec<_> = rows
            .clone()
            .filter(|(_, row)| row.name == word || row.row_of.as_deref() == Some(word))
            .collect();
        let meant = if exact.is_empty() {
            rows.filter(|(tool, row)| is_meant(tool, row)).collect()
        } else {
            exact
        };
        meant.into_iter().map(|(_, row)| Arc::clone(row)).collect()
    }

    /// Returns the rows of each word that [`Tools::select`] knows, and all rows.
    #[must_use]
    pub fn rows(&self) -> ToolRows {
        let rows = self.suite.workloads.iter().map(|row| &*row.name);
        let terms = rows
            .chain(self.terms())
            .map(|word| (word.to_owned(), self.select(word)))
            .collect();
        ToolRows {
            suite: Arc::clone(&self.suite),
            terms,
        }
    }

    /// Returns the words that [`Tools::select`] knows, without metrics.
    #[must_use]
    pub fn terms(&self) -> Vec<&str> {
        let workloads = self
            .all()
            .flat_map(|tool| &tool.workloads)
            .map(|workload| workload.name.as_str());
        self.all()
            .map(|tool| tool.name.as_str())
            .chain(workloads)
            .collect()
    }

    /// Returns the options that benchmarks of the kernel's source add to a kernel config, each once.
    #[must_use]
    pub fn kernel_options(&self) -> Vec<String> {
        let mut options = Vec::new();
        let benchmarks = self
            .all()
            .filter_map(|tool| tool.own.as_ref()?.benchmark.as_ref());
        for option in benchmarks.flat_map(|benchmark| &benchmark.options) {
            if !options.contains(option) {
                options.push(option.clone());
            }
        }
        options
    }

    /// Returns whether a workload finds its numbers by itself.
    pub(crate) fn prints_rows(&self, workload: &str) -> bool {
        self.workload(workload)
            .is_some_and(|(_, of)| of.metrics.iter().any(tool_job::is_printed))
    }

    /// Returns these workloads and, behind each that finds its numbers by itself, a row for each
    /// number that it printed in these runs.
    #[must_use]
    pub fn with_printed_rows(
        &self,
        workloads: &[Arc<Workload>],
        runs: &[Vec<Run>],
    ) -> Vec<Arc<Workload>> {
        let mut all = Vec::new();
        for workload in workloads {
            all.push(self.with_printed_margin(workload, runs));
            if self.prints_rows(&workload.name) && workload.row_of.is_none() {
                all.extend(printed_rows(workload, runs));
            }
        }
        all
    }

    /// Returns a row of a user's own program with the margin that the numbers which it printed have.
    fn with_printed_margin(&self, row: &Arc<Workload>, runs: &[Vec<Run>]) -> Arc<Workload> {
        if row.metric.quantity == Quantity::Cost || !self.is_own(&row.name) {
            return Arc::clone(row);
        }
        let results = runs.iter().flatten().flat_map(|run| &run.results);
        let margins = results
            .filter(|result| result.workload == row.name)
            .filter_map(|result| Some(result.declared.as_ref()?.margin_percent));
        let mut workload = Workload::clone(row);
        let metric = &mut workload.metric;
        metric.margin_percent = margins.fold(metric.margin_percent, f64::max);
        Arc::new(workload)
    }

    /// Returns the tool and workload of a row, if it is one of a tool.
    pub(crate) fn workload(&self, row: &str) -> Option<(&Tool, &ToolWorkload)> {
        self.all.iter().find_map(|declared| {
            let (place, _) = declared.rows.iter().find(|(_, known)| known.name == row)?;
            Some((&declared.tool, &declared.tool.workloads[*place]))
        })
    }

    /// Returns whether a row is one of a user's own program.
    pub(crate) fn is_own(&self, row: &str) -> bool {
        self.workload(row)
            .is_some_and(|(tool, _)| tool.own.is_some())
    }

    fn of_image(&self, image: &str) -> Option<&Tool> {
        let carries = |row: &Workload| match &row.guest_config.files {
            ExtraFiles::Image(known) => known == image,
            _ => false,
        };
        self.all
            .iter()
            .find(|declared: &&Declared| declared.rows.iter().any(|(_, row)| carries(row)))
            .map(|declared| &declared.tool)
    }
}

/// Returns the name of a metric's row: the first metric has the workload's name.
pub(crate) fn row_name(workload: &ToolWorkload, metric: usize) -> String {
    match workload.metrics.get(metric) {
        Some(metric) if workload.metrics[0].name != metric.name => {
            format!("{}.{}", workload.name, metric.name)
                .chars()
                .take(ROW_MAX)
                .collect()
        }
        _ => workload.name.clone(),
    }
}

/// Returns a row for each number that a workload printed in any of these runs. Rows whose unit
/// differs between the runs are left out: they are not the same number.
fn printed_rows(workload: &Arc<Workload>, runs: &[Vec<Run>]) -> Vec<Arc<Workload>> {
    let mut rows: Vec<(Arc<Workload>, model::Declared)> = Vec::new();
    let mut contradicted = BTreeSet::new();
    let results = runs.iter().flatten().flat_map(|run| &run.results);
    for result in results.filter(|result| tool_job::is_row_of(&result.workload, &workload.name)) {
        let Some(declared) = &result.declared else {
            continue;
        };
        let known = rows.iter_mut().find(|(row, _)| row.name == result.workload);
        match (known, declared.metric()) {
            (Some((_, first)), _) if !first.agrees(declared) => {
                contradicted.insert(result.workload.clone());
            }
            (Some((row, _)), _) => {
                let metric = &mut Arc::make_mut(row).metric;
                metric.margin_percent = metric.margin_percent.max(declared.margin_percent);
            }
            (None, Some(metric)) => {
                let row = Workload {
                    name: Cow::Owned(result.workload.clone()),
                    metric,
                    row_of: Some(workload.name.clone()),
                    ..Workload::clone(workload)
                };
                rows.push((Arc::new(row), declared.clone()));
            }
            _ => {}
        }
    }
    let rows = rows.into_iter().map(|(row, _)| row);
    rows.filter(|row| !contradicted.contains(&*row.name))
        .collect()
}

fn declared(tool: Tool) -> Declared {
    // Any part of a tool's manifest may change what it measures or how Marvin parses it.
    let digest = Sha256::digest(format!("{tool:?}"));
    let short = model::hexadecimal(&digest[..6]);
    let image = format!("{} {short}", tool.name);
    let benchmark = tool.own.as_ref().and_then(|own| own.benchmark.as_ref());
    let own_module = || benchmark.and_then(|benchmark| benchmark.module.clone());
    let mut rows = Vec::new();
    for (place, workload) in tool.workloads.iter().enumerate() {
        let known = workload.metrics.iter().enumerate();
        for (at, metric) in known.filter(|(_, metric)| !tool_job::is_printed(metric)) {
            let row = Workload {
                name: Cow::Owned(row_name(workload, at)),
                stresses: Cow::Owned(workload.stresses.clone()),
                operation: Cow::Borrowed("one run of the program"),
                operations: 1,
                iterations: workload.runs,
                warm_up: 0,
                exercises: &[],
                metric: Metric {
                    name: Cow::Owned(metric.name.clone()),
                    quantity: match metric.reader {
                        Some(_) => Quantity::Of(Cow::Owned(metric.unit.clone())),
                        None => Quantity::Cost,
                    },
                    direction: metric.direction,
                    margin_percent: metric.margin_percent,
                },
                guest_config: GuestConfig {
                    own_module: own_module().map(Cow::Owned),
                    files: ExtraFiles::Image(Cow::Owned(image.clone())),
                    ..GuestConfig::with_memory(workload.memory_mib)
                },
                steadiness: workload.steadiness,
                tasks: None,
                processors: Processors::All,
                row_of: (at > 0).then(|| Cow::Owned(workload.name.clone())),
                source: Cow::Owned(tool.about.clone()),
            };
            rows.push((place, Arc::new(row)));
        }
    }
    Declared { tool, rows }
}

/// The images of workloads: the archive, or why there is none.
pub(crate) type Images = BTreeMap<String, Result<PathBuf, String>>;

/// Where guest images are made, and what they are made of.
pub(crate) struct Workshop<'a> {
    /// The data directory.
    pub(crate) home: &'a Path,
    pub(crate) cache: &'a BuildCache,
    pub(crate) turn: &'a Turn,
}

/// Makes the images of workloads, or finds them in the data directory.
///
/// # Errors
/// If the lab fails. A manifest that names an unknown package is no failure of the lab.
pub(crate) fn images(
    tools: &Tools,
    workloads: &[Arc<Workload>],
    workshop: &Workshop<'_>,
    notify: &dyn Fn(BuildEvent),
) -> Result<Images, LabError> {
    let mut images = Images::new();
    for workload in workloads {
        let ExtraFiles::Image(name) = &workload.guest_config.files else {
            continue;
        };
        if images.contains_key(&**name) {
            continue;
        }
        let Some(tool) = tools.of_image(name) else {
            continue;
        };
        let made = match image(tool, workshop, notify) {
            Ok(path) => Ok(path),
            Err(LabError::Kernel(error)) if error.fault() == Fault::User => Err(error.to_string()),
            Err(error) => return Err(error),
        };
        images.insert(name.to_string(), made);
    }
    Ok(images)
}

/// Returns a tool's image: `images/KEY.cpio` in the data directory, where KEY is the hash of its
/// contents' description.
fn image(
    tool: &Tool,
    workshop: &Workshop<'_>,
    notify: &dyn Fn(BuildEvent),
) -> Result<PathBuf, LabError> {
    let Workshop { home, cache, turn } = workshop;
    if let Some(own) = &tool.own {
        return Ok(own_program::image_file(home, &own.image));
    }
    let mut paths: Vec<String> = tool.workloads.iter().flat_map(programs).cloned().collect();
    paths.extend(tool.files.iter().cloned());
    paths.sort();
    paths.dedup();
    let wanted = Wanted {
        packages: tool.packages.clone(),
        paths,
    };
    let resolved = cache.resolve_userland(&wanted)?;
    let folder = home.join("images");
    let path = folder.join(format!("{}.cpio", resolved.key()));
    if path.is_file() {
        notify(BuildEvent::Cached {
            what: format!("image of {}", tool.name),
        });
        return Ok(path);
    }
    turn.take()?;
    let userland = cache.userland(&resolved, notify)?;
    let files: Vec<InitrdFile> = userland
        .files
        .into_iter()
        .map(|file| InitrdFile {
            path: file.path.trim_start_matches('/').to_owned(),
            bytes: file.bytes,
        })
        .collect();
    let at = |path: &Path| {
        let path = path.to_owned();
        move |source| LabError::Kernel(KernelError::Io { path, source })
    };
    fs::create_dir_all(&folder).map_err(at(&folder))?;
    // The data directory is locked: there is one writer, and readers see only whole images.
    let new = folder.join("new");
    replace_file(&path, &new, machine::initrd_of(&files)).map_err(at(&path))?;
    Ok(path)
}

/// Checks that a guest's memory can hold an archive of files.
///
/// # Errors
/// If it cannot; the text says how much it needs.
pub(crate) fn fits(bytes: u64, memory_mib: u32) -> Result<(), String> {
    // While the kernel unpacks the archive it holds both copies. The root filesystem takes at most
    // half of the memory: shmem_default_max_blocks() of mm/shmem.c.
    let files_mib = bytes.div_ceil(1 << 20);
    let needed_mib = 2 * files_mib + BESIDE_FILES_MIB;
    if needed_mib <= u64::from(memory_mib) {
        return Ok(());
    }
    Err(format!(
        "its files have {files_mib} MiB, which a guest of {memory_mib} MiB cannot hold: `memory_mib` of its manifest has \
         to be {needed_mib} or more"
    ))
}

/// The programs of a workload.
fn programs(workload: &ToolWorkload) -> impl Iterator<Item = &String> {
    let server = workload.server.iter().map(|server| &server.command);
    let all = workload
        .setup
        .iter()
        .chain(server)
        .chain(&workload.prepare)
        .chain([&workload.command]);
    all.filter_map(|command| command.first())
}

#[cfg(test)]
mod tests {
    use super::{Tools, fits};

    #[test]
    fn files_too_large_for_memory_are_named() {
        assert_eq!(fits(0, 64), Ok(()));
        assert_eq!(fits(mib(224), 512), Ok(()));
        insta::assert_snapshot!(fits(mib(224) + 1, 512).unwrap_err(), @"its files have 225 MiB, which a guest of 512 MiB cannot hold: `memory_mib` of its manifest has to be 514 or more");
        assert!(fits(u64::MAX, u32::MAX).is_err());
    }

    fn mib(count: u64) -> u64 {
        count << 20
    }

    const MINE: &str = "name = 'mine'\nabout = 'a tool'\npackages = ['mine']\n[[workload]]\nname = 'NAME'\nstresses = 'x'\n\
        command = ['/bin/mine']\n[[workload.metric]]\nname = 'a'\nunit = 's'\nbetter = 'lower'\nkey = 'a'\n\
        [[workload.metric]]\nname = 'b'\nunit = 's'\nbetter = 'lower'\nkey = 'b'\n";

    fn read(manifest: &str) -> Result<Tools, String> {
        Tools::read(&[("mine.toml".to_owned(), manifest.to_owned())])
            .map_err(|error| error.to_string())
    }

    #[test]
    fn words_stand_for_tools_workloads_and_metrics() {
        let tools = read(&MINE.replace("NAME", "mine-fast")).unwrap();
        let names = |word: &str| {
            tools
                .select(word)
                .iter()
                .map(|row| row.name.to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(names("mine"), ["mine-fast", "mine-fast.b"]);
        assert_eq!(names("mine-fast"), ["mine-fast", "mine-fast.b"]);
        assert_eq!(names("mine-fast.b"), ["mine-fast.b"]);
        assert!(names("nothing").is_empty());
        assert!(names("sysbench").len() > names("sysbench-cpu").len());
        assert!(tools.terms().contains(&"fio") && tools.terms().contains(&"mine-fast"));
        assert_eq!(
            tools
                .suite()
                .workloads
                .iter()
                .filter(|row| row.name.starts_with("mine"))
                .count(),
            2
        );
    }

    #[test]
    fn manifest_is_part_of_the_machine_identity() {
        let guest_config = |text: &str| read(text).unwrap().select("mine")[0].guest_config.clone();
        let one = MINE.replace("NAME", "mine");
        assert_eq!(guest_config(&one), guest_config(&one));
        assert_ne!(
            guest_config(&one),
            guest_config(&one.replace("/bin/mine", "/bin/other"))
        );
    }

    #[test]
    fn taken_names_and_wrong_manifests_are_refused() {
        let answer = |text: &str| read(text).err().unwrap_or_default();
        insta::assert_snapshot!(answer(&MINE.replace("NAME", "getppid")), @"mine.toml: there is a workload `getppid` already: choose another name");
        insta::assert_snapshot!(answer(&MINE.replace("NAME", "sysbench-cpu")), @"mine.toml: there is a workload `sysbench-cpu` already: choose another name");
        insta::assert_snapshot!(answer(&MINE.replace("stresses", "streses")), @"mine.toml: line 6, column 1: unknown key `streses` in workload (did you mean `stresses`?)");
        let own = MINE.replace("'mine'", "'sysbench'").replace("NAME", "mine");
        let tools = read(&own).unwrap();
        assert!(
            tools.select("sysbench-cpu").is_empty(),
            "a tool of the same name takes the place of Marvin's"
        );
    }
}
