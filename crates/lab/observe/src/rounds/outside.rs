//! Processes of other programs for which the observed one waits: where they are, with their stacks,
//! and what their scripts do.

use std::collections::BTreeMap;

use super::Rounds;
use super::waits::{Place, Stack, rank};
use super::{Process, SELDOM};
use crate::creations::shorten;
use crate::ends::name_of;
use crate::memory;
use crate::proc;
use crate::tree::{entries, read};

/// Threads of a process that are looked at, and processes.
const THREADS_MAX: usize = 64;
const PROCESSES_MAX: usize = 256;
/// Stacks of a process that are kept, and how often that of a place is tried to be read.
const STACKS_MAX: usize = 32;
const TRIES: u32 = 4;

/// What is known of such a process.
#[derive(Debug, Default)]
struct Known {
    process: Process,
    /// Titles that it gave itself, with looks.
    titles: BTreeMap<String, u64>,
    /// The functions of its script while it ran, with looks.
    ran: BTreeMap<Vec<String>, u64>,
    /// Its stacks where it was blocked.
    stacks: BTreeMap<Place, (u32, Option<Stack>)>,
    named: BTreeMap<Place, Vec<String>>,
}

/// The processes of other programs.
#[derive(Debug, Default)]
pub(super) struct Outside(BTreeMap<u32, Known>);

impl Outside {
    /// Returns the functions of a process at a place, or of its script while it ran.
    pub(super) fn stack(&self, process: u32, place: Option<&Place>) -> Vec<String> {
        let known = self.0.get(&process);
        let stack = known.and_then(|known| match place {
            Some(place) => known.named.get(place),
            None => {
                let most = known.ran.iter().max_by_key(|(_, looks)| **looks);
                most.map(|(stack, _)| stack)
            }
        });
        stack.cloned().unwrap_or_default()
    }

    /// Returns the title of a process, or its name.
    pub(super) fn name(&self, process: u32) -> String {
        let titles = self.0.get(&process).map(|known| &known.titles);
        let title = titles.and_then(|titles| titles.iter().max_by_key(|(_, looks)| **looks));
        title.map_or_else(|| name_of(process), |(title, _)| title.clone())
    }
}

impl Rounds {
    /// Returns where a process of another program is now: within, `None` if it runs; `None` if it is
    /// gone.
    pub(super) fn place_outside(&mut self, id: u32) -> Option<Option<Place>> {
        self.look_outside(id);
        let mut found: Vec<Option<Place>> = Vec::new();
        let threads = entries(&format!("/proc/{id}/task"));
        for thread in threads.into_iter().take(THREADS_MAX) {
            let folder = format!("/proc/{id}/task/{thread}");
            let stat = read(&format!("{folder}/stat")).ok();
            let Some(stat) = stat.and_then(|text| proc::stat(&text)) else {
                continue;
            };
            let call = read(&format!("{folder}/syscall")).unwrap_or_default();
            match (stat.state, proc::syscall(&call)) {
                ('S' | 'D' | 't' | 'T', Some(call)) => {
                    let mut place = self.place(id, thread, stat.state, call);
                    place.who = 0;
                    self.capture_outside(&place, id, thread, &call);
                    found.push(Some(place));
                }
                ('R', _) => {
                    let script = self.scripts.stack(id, thread).cloned();
                    if let (Some(known), Some(script)) = (self.outside.0.get_mut(&id), script)
                        && known.ran.len() < STACKS_MAX
                    {
                        *known.ran.entry(script).or_default() += 1;
                    }
                    found.push(None);
                }
                _ => {}
            }
        }
        found.sort_by_key(|place| rank(place.as_ref()));
        found.into_iter().next()
    }

    /// Reads what a process is, at times, and what its script does.
    fn look_outside(&mut self, id: u32) {
        let is_new = !self.outside.0.contains_key(&id);
        if is_new && self.outside.0.len() >= PROCESSES_MAX {
            return;
        }
        let known = self.outside.0.entry(id).or_default();
        if is_new || self.number.is_multiple_of(SELDOM) {
            known.process.read_identity(id, &mut self.modules);
        }
        if let Some(title) = title(id) {
            *known.titles.entry(title).or_default() += 1;
        }
        self.scripts.look(id, &known.process, &mut self.modules);
    }

    fn capture_outside(&mut self, place: &Place, id: u32, thread: u32, call: &proc::Call) {
        let Some(known) = self.outside.0.get_mut(&id) else {
            return;
        };
        let is_known = known.stacks.contains_key(place);
        if !is_known && known.stacks.len() >= STACKS_MAX || !cfg!(target_arch = "x86_64") {
            return;
        }
        let (tries, stack) = known.stacks.entry(place.clone()).or_default();
        if stack.is_some() || *tries >= TRIES {
            return;
        }
        *tries += 1;
        if let Some(memory) = memory::open(id) {
            *stack = Stack::read(id, thread, &known.process, &memory, call, &mut self.scripts);
        }
    }

    /// Names the functions of the stacks that were kept.
    pub(super) fn name_stacks_outside(&mut self) {
        for known in self.outside.0.values_mut() {
            for (place, (_, stack)) in std::mem::take(&mut known.stacks) {
                let Some(stack) = stack else { continue };
                let functions = stack.name(Some(&known.process), &mut self.modules);
                known.named.insert(place, functions);
            }
        }
    }
}

/// Returns the title that a process gave itself, as servers do (setproctitle): one argument with a
/// colon, `postgres: app orders [local] SELECT waiting`.
fn title(process: u32) -> Option<String> {
    let text = read(&format!("/proc/{process}/cmdline")).ok()?;
    let title = text.trim_end_matches('\0').trim();
    let has_title = title
        .split_once(": ")
        .is_some_and(|(name, _)| !name.contains([' ', '\0']));
    let is_plain = has_title && !title.chars().any(char::is_control);
    is_plain.then(|| shorten(title))
}
