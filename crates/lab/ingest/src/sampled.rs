//! Sampled profiles: from the agent's stacks of addresses to stacks of functions, and their stored
//! form: text with a head, then a line for each stack, `SHARE SAMPLES FUNCTION;FUNCTION;…`, fields
//! separated by tabs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use model::{SampledProfile, SampledStack, Sampling, SamplingEvent, SamplingScope, Share};
use wire::{Frame, Stream};

use crate::Symbols;
use crate::profile::{NAMELESS, USER};

const FROM_AGENT: &str = "marvin-samples 1";
const STORED: &str = "marvin-sampled 1";
/// Most different functions and stacks, frames of a stack, and samples.
const FUNCTIONS_MAX: usize = 200_000;
const STACKS_MAX: usize = 100_000;
const FRAMES_MAX: usize = 256;
const SAMPLES_MAX: u64 = 1 << 48;

/// Entries of interrupts: the code before them was interrupted, and is not the cause. The last ones
/// are those before Linux 5.8.
const INTERRUPTS: [&str; 6] = [
    "asm_sysvec_",
    "asm_common_interrupt",
    "asm_spurious_interrupt",
    "apic_timer_interrupt",
    "reschedule_interrupt",
    "common_interrupt",
];
/// What kernel threads begin with.
const KERNEL_THREAD: &str = "kthread";
/// The sampler itself, as it switches events on and off: no work of the workload.
const SAMPLER: &str = "perf_ioctl";
/// Parts of names by which the loop of an idle processor is known, within its task.
const IDLE: [&str; 3] = ["idle", "safe_halt", "mwait"];

/// Why there is no sampled profile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SampledError {
    /// The agent sent no samples.
    #[error("the agent sent no samples")]
    Missing,
    /// A line makes no sense, or exceeds a limit.
    #[error("line {0} of the agent's samples makes no sense")]
    Malformed(usize),
    /// Nothing but idle processors.
    #[error("no sample hit the workload: it is too short")]
    Nothing,
}

/// Returns a file that the agent sent, its pieces together; `None` if there is none of that name.
#[must_use]
pub fn sent_file(stream: &Stream, wanted: &str) -> Option<String> {
    let pieces = stream.frames.iter().filter_map(|frame| match frame {
        Frame::File { name, bytes } if name == wanted => Some(bytes.as_slice()),
        _ => None,
    });
    let pieces: Vec<&[u8]> = pieces.collect();
    (!pieces.is_empty()).then(|| String::from_utf8_lossy(&pieces.concat()).into_owned())
}

/// Returns the sampled profile of so many operations from the agent's file `samples`.
///
/// # Errors
/// If the file is damaged, or nothing was hit.
pub fn sampled(
    text: &str,
    symbols: &Symbols,
    operations: u64,
) -> Result<SampledProfile, SampledError> {
    let mut lines = text.lines().enumerate();
    if lines.next().is_none_or(|(_, line)| line != FROM_AGENT) {
        return Err(SampledError::Missing);
    }
    let mut head = Head::default();
    let mut names: Vec<String> = Vec::new();
    let mut stacks: BTreeMap<(Share, Vec<String>), u64> = BTreeMap::new();
    let mut idle = 0;
    let mut before = Vec::new();
    let mut count = 0;
    for (number, line) in lines {
        let malformed = SampledError::Malformed(number + 1);
        let (word, rest) = line.split_once(' ').ok_or(malformed.clone())?;
        match word {
            "at" if names.len() < FUNCTIONS_MAX => {
                let address = u64::from_str_radix(rest, 16).map_err(|_| malformed)?;
                names.push(
                    symbols
                        .symbol_at(address)
                        .map_or(NAMELESS, |(name, _)| name)
                        .replace(';', ","),
                );
            }
            "user" | "idle" | "process" | "any" if count < STACKS_MAX => {
                count += 1;
                let samples = stack(rest, &names, &mut before).ok_or(malformed)?;
                if before.iter().any(|place| names[*place] == SAMPLER) {
                    continue;
                }
                match key(
                    word,
                    before.iter().map(|place| names[*place].as_str()).collect(),
                ) {
                    Some(key) => *stacks.entry(key).or_default() += samples,
                    None => idle += samples,
                }
            }
            _ => head.read(word, rest).ok_or(malformed)?,
        }
    }
    let stacks = stacks.into_iter();
    let stacks = stacks
        .map(|((share, functions), samples)| SampledStack {
            share,
            functions,
            samples,
        })
        .collect();
    let profile = head
        .profile(operations, idle, stacks)
        .ok_or(SampledError::Malformed(1))?;
    if profile.samples() == 0 {
        Err(SampledError::Nothing)
    } else {
        Ok(profile)
    }
}

/// Reads `COUNT SHARED NUMBER…` into `before`, the stack of the line before; returns the count.
fn stack(text: &str, names: &[String], before: &mut Vec<usize>) -> Option<u64> {
    let mut fields = text.split(' ');
    let count = fields
        .next()?
        .parse()
        .ok()
        .filter(|count| *count < SAMPLES_MAX)?;
    let shared: usize = fields.next()?.parse().ok()?;
    (shared <= before.len()).then(|| before.truncate(shared))?;
    for word in fields {
        let place = word
            .parse()
            .ok()
            .filter(|place| *place < names.len() && before.len() < FRAMES_MAX)?;
        before.push(place);
    }
    Some(count)
}

/// Returns who ran and the stack from there, outermost first; `None` for an idle processor.
fn key(task: &str, stack: Vec<&str>) -> Option<(Share, Vec<String>)> {
    if task == "user" || stack.is_empty() {
        return Some((Share::User, vec![USER.to_owned()]));
    }
    if let Some(entry) = stack
        .iter()
        .position(|name| INTERRUPTS.iter().any(|start| name.starts_with(start)))
    {
        return Some((Share::Interrupt, owned_names(&stack[entry..])));
    }
    let is_idle = |name: &&str| IDLE.iter().any(|part| name.contains(part));
    match task {
        "idle" => {
            return (!stack.last().is_some_and(is_idle))
                .then(|| (Share::Other, owned_names(&stack)));
        }
        // A timer tick does not say whom it found (/proc/profile).
        "any" if stack.last().is_some_and(is_idle) => return None,
        _ => {}
    }
    let share = if stack.iter().take(3).any(|name| *name == KERNEL_THREAD) {
        Share::Other
    } else {
        Share::Kernel
    };
    Some((share, owned_names(&stack)))
}

fn owned_names(stack: &[&str]) -> Vec<String> {
    stack.iter().map(|&name| name.to_owned()).collect()
}

/// The head of either form.
#[derive(Default)]
struct Head {
    event: Option<SamplingEvent>,
    scope: Option<SamplingScope>,
    numbers: BTreeMap<String, u64>,
}

/// The numbers of a head.
const NUMBERS: [&str; 7] = [
    "period",
    "processors",
    "operations",
    "idle",
    "lost",
    "throttled",
    "unkept",
];

impl Head {
    fn read(&mut self, word: &str, rest: &str) -> Option<()> {
        match word {
            "event" => self.event = Some(SamplingEvent::of_word(rest)?),
            "scope" => self.scope = Some(SamplingScope::of_word(rest)?),
            word if NUMBERS.contains(&word) => {
                let number = rest.parse().ok().filter(|number| *number < SAMPLES_MAX)?;
                self.numbers.insert(word.to_owned(), number);
            }
            _ => return None,
        }
        Some(())
    }

    fn profile(
        self,
        operations: u64,
        idle: u64,
        stacks: Vec<SampledStack>,
    ) -> Option<SampledProfile> {
        let number = |name: &str| self.numbers.get(name).copied();
        let sampling = Sampling {
            event: self.event?,
            scope: self.scope?,
            period: number("period").filter(|p| *p > 0)?,
        };
        Some(SampledProfile {
            sampling,
            processors: number("processors")?,
            operations,
            idle,
            lost: number("lost")?,
            throttled: number("throttled")?,
            unkept: number("unkept")?,
            stacks,
        })
    }
}

/// Returns a sampled profile in its stored form.
#[must_use]
pub fn sampled_to_text(profile: &SampledProfile) -> String {
    let SampledProfile {
        sampling,
        processors,
        operations,
        idle,
        lost,
        throttled,
        unkept,
        stacks,
    } = profile;
    let event = sampling.event.name();
    let scope = sampling.scope.name();
    let period = sampling.period;
    let mut text = format!(
        "{STORED}\nevent\t{event}\nscope\t{scope}\nperiod\t{period}\nprocessors\t{processors}\noperations\t{operations}\n\
         idle\t{idle}\nlost\t{lost}\nthrottled\t{throttled}\nunkept\t{unkept}\n"
    );
    for SampledStack {
        share,
        functions,
        samples,
    } in stacks
    {
        writeln!(text, "{}\t{samples}\t{}", share.name(), functions.join(";")).unwrap_or_default();
    }
    text
}

/// Parses the stored form; `None` if it is anything else.
#[must_use]
pub fn sampled_from_text(text: &str) -> Option<SampledProfile> {
    // `lines` would also take a carriage return from a function's name.
    let mut lines = text.split_terminator('\n');
    (lines.next()? == STORED).then_some(())?;
    let mut head = Head::default();
    let mut stacks = Vec::new();
    for line in lines {
        let (word, rest) = line.split_once('\t')?;
        match Share::ALL.into_iter().find(|share| share.name() == word) {
            Some(share) => {
                let (samples, functions) = rest.split_once('\t')?;
                let samples = samples
                    .parse()
                    .ok()
                    .filter(|samples| *samples < SAMPLES_MAX)?;
                let functions: Vec<String> = functions
                    .split(';')
                    .take(FRAMES_MAX)
                    .map(str::to_owned)
                    .collect();
                (stacks.len() < STACKS_MAX).then_some(())?;
                stacks.push(SampledStack {
                    share,
                    functions,
                    samples,
                });
            }
            None => head.read(word, rest)?,
        }
    }
    let number = |name: &str| head.numbers.get(name).copied();
    let operations = number("operations")?;
    let idle = number("idle")?;
    head.profile(operations, idle, stacks)
}

#[cfg(test)]
mod tests {
    use super::{SampledError, sampled, sampled_from_text, sampled_to_text};
    use crate::Symbols;

    const HEAD: &str = "marvin-samples 1\nevent cpu-clock\nscope system\nperiod 1000\nprocessors 2\nlost 1\nthrottled 0\n\
                        unkept 0\n";

    fn symbols() -> Symbols {
        let names = [
            "entry_SYSCALL_64",
            "vfs_read",
            "asm_sysvec_x",
            "kthread",
            "default_idle",
            "do_idle;x",
            "perf_ioctl",
        ];
        Symbols::parse(&names.map(|name| format!("T1000 {name}\n")).concat()).unwrap()
    }

    #[test]
    fn name_that_ends_oddly_is_read_as_kept() {
        let text = "marvin-sampled 1\nevent\tcycles\nscope\tprocesses\nperiod\t7\nprocessors\t2\noperations\t9\nidle\t0\n\
                    lost\t0\nthrottled\t0\nunkept\t0\nkernel\t4\tvfs_read\r\r\n";
        let profile = sampled_from_text(text).unwrap();
        assert_eq!(sampled_from_text(&sampled_to_text(&profile)), Some(profile));
    }

    #[test]
    fn stacks_get_names_and_shares() {
        let table = "at 1000\nat 2000\nat 3000\nat 4000\nat 5000\nat 6000\nat 7000\nat 10\n";
        let stacks = "user 5 0\nprocess 4 0 0 1\nprocess 3 2 7\nprocess 99 1 6 1\nprocess 2 1 2\nprocess 1 0 3 1\nidle 9 0 5 4\nidle 1 1\nany 7 0 1\nany 6 0 4\n";
        let profile = sampled(&format!("{HEAD}{table}{stacks}"), &symbols(), 8).unwrap();
        insta::assert_snapshot!(sampled_to_text(&profile), @r"
        marvin-sampled 1
        event	cpu-clock
        scope	system
        period	1000
        processors	2
        operations	8
        idle	16
        lost	1
        throttled	0
        unkept	0
        user	5	[user]
        kernel	4	entry_SYSCALL_64;vfs_read
        kernel	3	entry_SYSCALL_64;vfs_read;[no symbol]
        kernel	7	vfs_read
        interrupt	2	asm_sysvec_x
        other	1	kthread;vfs_read
        ");
        assert_eq!(sampled_from_text(&sampled_to_text(&profile)), Some(profile));
    }

    #[test]
    fn damaged_samples_are_refused() {
        let refused = |text: &str| sampled(text, &symbols(), 1).unwrap_err();
        assert_eq!(refused(""), SampledError::Missing);
        assert_eq!(refused(HEAD), SampledError::Nothing);
        assert_eq!(
            refused(&format!("{HEAD}process 1 0 0\n")),
            SampledError::Malformed(9),
            "no such function"
        );
        assert_eq!(
            refused(&format!("{HEAD}user 1 3\n")),
            SampledError::Malformed(9),
            "no such stack before"
        );
        assert_eq!(
            refused("marvin-samples 1\nperiod 5\nuser 1 0\n"),
            SampledError::Malformed(1)
        );
        assert_eq!(sampled_from_text("marvin-profile 1\n"), None);
    }

    proptest::proptest! {
        #[test]
        fn garbage_never_panics(
            text: String,
            lines in "((at|user|idle|process|any|lost|period) [0-9 ]{0,12}\n){0,8}",
            stored in "((kernel|idle|user)\t[0-9]{0,20}(\t[a-z;]{0,9})?\n){0,8}",
        ) {
            let _profile = sampled(&format!("{HEAD}{text}"), &symbols(), 1);
            let _profile = sampled(&format!("{HEAD}{lines}"), &symbols(), 1);
            let _profile = sampled_from_text(&format!("marvin-sampled 1\n{text}"));
            let _profile = sampled_from_text(&format!("marvin-sampled 1\n{stored}"));
        }
    }
}
