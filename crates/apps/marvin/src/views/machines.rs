//! The list of machines: `marvin machines`.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Listing, SCHEMA_VERSION};
use document::Styles;
use document::mail::labelled;
use document::number::count;

/// Widths of the columns but the last.
const WIDTHS: [usize; 4] = [10, 9, 11, 22];

/// Columns of a terminal.
const COLUMNS: usize = 80;
/// Before what a machine is, where that stands below it.
const INDENT: &str = "    ";

/// Machines to measure on.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct MachinesDocument {
    /// Version of the schema.
    schema_version: u32,
    /// Kind of the document.
    kind: &'static str,
    /// The machines.
    machines: Vec<ListedMachine>,
}

/// A machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct ListedMachine {
    /// Name for --on.
    pub(crate) name: String,
    /// `exact`, `exact-smp`, `vm`, `local` or `ssh`.
    pub(crate) kind: &'static str,
    /// State.
    pub(crate) state: MachineState,
    /// Release of the kernel that runs; null if the machine boots a build when it is asked to, or
    /// does not answer.
    pub(crate) kernel: Option<String>,
    /// Minutes until the hold or the reservation ends, unless it is renewed; absent if no user has
    /// it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) held_minutes: Option<u64>,
    /// Jobs of the queue that wait for it.
    pub(crate) waiting: usize,
    /// What it is, who holds it, or what is wrong.
    pub(crate) about: String,
}

/// The state of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum MachineState {
    /// It can be measured on.
    Ready,
    /// A lab uses it.
    Held,
    /// A user has it reserved.
    Reserved,
    /// It runs a kernel under test, and no lab uses it: a Marvin was killed. The next contact
    /// brings it back.
    Away,
    /// It answers, but cannot be measured on.
    Unfit,
    /// Its power is off, as its power control says. A measurement switches it on.
    Off,
    /// It does not answer.
    Silent,
    /// It did not come back from a boot, and has not answered since.
    Lost,
    /// It is another machine than its record says, until that is accepted or undone; or the lab
    /// failed on it several times in a row, and the queue gives it no jobs until one that it
    /// tries ends well.
    Quarantined,
}

impl MachineState {
    const fn name(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Held => "held",
            Self::Reserved => "reserved",
            Self::Away => "away",
            Self::Unfit => "unfit",
            Self::Off => "off",
            Self::Silent => "silent",
            Self::Lost => "lost",
            Self::Quarantined => "quarantined",
        }
    }
}

impl MachinesDocument {
    /// Returns the document of machines.
    pub(crate) fn new(machines: Vec<ListedMachine>) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            kind: "machines",
            machines,
        }
    }
}

impl Listing for MachinesDocument {
    fn text(&self, _: &Styles) -> String {
        let row = |cells: [&str; 5]| {
            let padded = cells
                .iter()
                .zip(WIDTHS)
                .map(|(cell, width)| format!("{cell:<width$} "));
            let line: String = padded.collect();
            let about = cells[4];
            if line.chars().count() + about.chars().count() <= COLUMNS {
                return format!("{}\n", format!("{line}{about}").trim_end());
            }
            // What it is has no room there: it stands below.
            format!("{}\n{}", line.trim_end(), labelled(INDENT, about))
        };
        let heads = row(["NAME", "KIND", "STATE", "KERNEL", "ABOUT"]);
        let rows = self.machines.iter().map(|machine| {
            let kernel = machine.kernel.as_deref().unwrap_or("-");
            let about = match machine.waiting {
                0 => machine.about.clone(),
                waiting => format!("{}; {} in the queue", machine.about, count(waiting, "job")),
            };
            row([
                &machine.name,
                machine.kind,
                machine.state.name(),
                kernel,
                &about,
            ])
        });
        std::iter::once(heads).chain(rows).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{ListedMachine, MachineState, MachinesDocument};
    use crate::views::Listing;
    use document::Styles;

    #[test]
    fn table_fits_terminal() {
        let machine = |name: &str, kind, state, kernel: Option<&str>, about: &str| ListedMachine {
            name: name.into(),
            kind,
            state,
            kernel: kernel.map(str::to_owned),
            held_minutes: None,
            waiting: usize::from(state == MachineState::Off),
            about: about.into(),
        };
        let document = MachinesDocument::new(vec![
            machine("exact", "exact", MachineState::Ready, None, "QEMU 7.2.22"),
            machine(
                "testbox",
                "ssh",
                MachineState::Held,
                Some("6.1.0-44-amd64"),
                "by anna@laptop, 87 min more",
            ),
            machine(
                "client",
                "ssh",
                MachineState::Reserved,
                Some("6.1.0-44-amd64"),
                "anna@laptop has it for 2 h (tuning)",
            ),
            machine(
                "bigbox",
                "ssh",
                MachineState::Silent,
                None,
                "Connection timed out",
            ),
            machine(
                "sleeper",
                "ssh",
                MachineState::Off,
                None,
                "a measurement switches it on, or: marvin power sleeper on",
            ),
            machine(
                "oldbox",
                "ssh",
                MachineState::Quarantined,
                Some("6.1.0-44-amd64"),
                "host.memory 1 MiB -> 2 MiB",
            ),
            machine(
                "farbox",
                "ssh",
                MachineState::Lost,
                None,
                "after the boot it did not answer for 600 s",
            ),
        ]);
        let text = document.text(&Styles::plain());
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        insta::assert_snapshot!(text);
    }
}
