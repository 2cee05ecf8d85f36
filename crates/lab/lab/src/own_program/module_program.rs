//! A module of the kernel as a program: the agent's `marvin-module` loads it, unloads it, and prints
//! the kernel's messages of that time.

use std::collections::BTreeMap;
use std::path::Path;

use kernel::USERLAND_FACTS;
use model::{
    Direction, Find, GuestConfig, OwnProgram, Pick, Reader, Source, Steadiness, Tool, ToolMetric,
    ToolWorkload, TreeBenchmark,
};

use super::{MEMORY_MIB, OwnProgramError, PATH, cost, write_files};

/// The agent's name for loading modules.
const LOADER: &str = "/usr/bin/marvin-module";
/// Differences of a printed number up to this count as same (%): modules print few digits.
const MARGIN_PERCENT: f64 = 1.0;

/// A module to measure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleRequest {
    /// The name of its row.
    pub name: String,
    /// What it is, in one line.
    pub about: String,
    /// The module's name, with `_`.
    pub module: String,
    /// Its parameters, as for modprobe.
    pub parameters: Vec<String>,
    /// How long it is left loaded, if it measures in threads (s of the guest); else 0.
    pub seconds: u32,
    /// What it adds to the kernel config.
    pub options: Vec<String>,
    /// How often it is loaded; the first time is not reported.
    pub runs: u32,
    /// The time limit for everything, in seconds of guest time.
    pub limit_s: u32,
    /// The guest's memory (MiB); `None` for the usual.
    pub memory_mib: Option<u32>,
}

/// Returns a module as a tool.
///
/// # Errors
/// If its image cannot be written into the data directory.
pub fn prepare_module(request: &ModuleRequest, home: &Path) -> Result<Tool, OwnProgramError> {
    let facts = USERLAND_FACTS.iter();
    let files: BTreeMap<String, Vec<u8>> = facts
        .map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()))
        .collect();
    let (image, _) = write_files(files, home)?;
    let mut command = vec![LOADER.to_owned()];
    if request.seconds > 0 {
        command.extend(["--seconds".to_owned(), request.seconds.to_string()]);
    }
    command.push(format!(
        "{}/{}.ko",
        GuestConfig::MODULE_FOLDER,
        request.module
    ));
    command.extend(request.parameters.iter().cloned());
    let workload = ToolWorkload {
        name: request.name.clone(),
        stresses: request.about.clone(),
        memory_mib: request
            .memory_mib
            .unwrap_or(u32::try_from(MEMORY_MIB).unwrap_or(u32::MAX)),
        setup: Vec::new(),
        server: None,
        prepare: Vec::new(),
        command,
        runs: request.runs,
        limit_s: request.limit_s,
        // Whatever it does, only differences in all seeds count.
        steadiness: Steadiness::Chaotic,
        known: Vec::new(),
        refuse: Vec::new(),
        metrics: vec![cost(), printed_metric()],
    };
    Ok(Tool {
        name: request.name.clone(),
        about: format!(
            "a benchmark of the kernel's source: module {}",
            request.module
        ),
        packages: Vec::new(),
        files: Vec::new(),
        environment: vec![
            ("HOME".to_owned(), "/root".to_owned()),
            ("PATH".to_owned(), PATH.to_owned()),
        ],
        workloads: vec![workload],
        own: Some(OwnProgram {
            image,
            directory: "/root".to_owned(),
            stdin: None,
            accepted: Vec::new(),
            marks: false,
            benchmark: Some(TreeBenchmark {
                module: Some(request.module.clone()),
                options: request.options.clone(),
            }),
        }),
    })
}

/// Returns the metric that stands for all numbers with a unit that a program prints.
#[must_use]
pub fn printed_metric() -> ToolMetric {
    ToolMetric {
        name: "printed".to_owned(),
        unit: String::new(),
        direction: Direction::LowerIsBetter,
        margin_percent: MARGIN_PERCENT,
        reader: Some(Reader {
            source: Source::Stdout,
            after: None,
            find: Find::Printed,
            pick: Pick::All,
            factor: 1.0,
        }),
    }
}
