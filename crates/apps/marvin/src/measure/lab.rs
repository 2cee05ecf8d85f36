//! Opens the lab on a machine, with the options of a measurement.

use kernel::Sources;
use lab::{Lab, LabOptions, Tools, Wanted};
use machine::SnapshotUse;
use model::Machine;

use super::with_kdump_program;
use crate::options::{MeasureOptions, NoisyOptions, own_machine};
use crate::select::measured_sources;
use crate::session::Session;

pub(crate) fn open_exact_lab(session: &Session, measure: &MeasureOptions) -> anyhow::Result<Lab> {
    open_exact_lab_with(session, measure, Tools::default())
}

/// Opens the lab, with tools.
pub(crate) fn open_exact_lab_with(
    session: &Session,
    measure: &MeasureOptions,
    tools: Tools,
) -> anyhow::Result<Lab> {
    open_lab_on(Wanted::Exact, session, measure, tools)
}

/// Opens the lab on a machine, with tools.
pub(crate) fn open_lab_on(
    wanted: Wanted,
    session: &Session,
    measure: &MeasureOptions,
    tools: Tools,
) -> anyhow::Result<Lab> {
    let wanted = match wanted {
        Wanted::Server(server) if measure.keep_dump => {
            Wanted::Server(Box::new(with_kdump_program(*server)?))
        }
        other => other,
    };
    let store = Some(session.store_location()?);
    let snapshots = if measure.no_snapshots {
        SnapshotUse::Never
    } else {
        SnapshotUse::Cached
    };
    let sources = measured_sources(session, measure, &tools)?;
    session.open_lab(LabOptions {
        store,
        wanted,
        snapshots,
        tools,
        sources,
        ..LabOptions::default()
    })
}

/// Returns the replicates to measure: seeds where they are exact, else boots, or the boot that this
/// host is in.
pub(crate) fn replicates(machine: &Machine, seeds: u64, boots: u64) -> Vec<u64> {
    let can = machine.capabilities();
    match (can.deterministic, can.boots) {
        (true, _) => (1..=seeds).collect(),
        (false, true) => (1..=boots).collect(),
        (false, false) => vec![machine::this_boot()],
    }
}

/// Opens the lab for a search over commits, on the exact machine of this name.
pub(crate) fn open_search_lab(
    session: &Session,
    on: &str,
    cpus: Option<u32>,
    sources: &Sources,
    tools: Tools,
) -> anyhow::Result<Lab> {
    let options = NoisyOptions {
        boots: None,
        cpus,
        memory: None,
    };
    session.open_lab(LabOptions {
        store: Some(session.store_location()?),
        wanted: own_machine(on, &options).unwrap_or(Wanted::Exact),
        sources: sources.settings().clone(),
        tools,
        ..LabOptions::default()
    })
}
