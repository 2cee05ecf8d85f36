//! Reads a console: finds out why the kernel stopped.
//!
//! The phrases are the kernel's own: kernel/panic.c, kernel/exit.c, init/main.c, init/do_mounts.c,
//! mm/oom_kill.c.

use model::{FailureReason, Outcome, SubjectFailure, sanitize_line};

use crate::MachineError;

/// Limit on lines of a tail.
const TAIL_LINES: usize = 40;
/// Phrases of lines that say why the kernel stopped.
const HEADLINES: [&str; 3] = ["Kernel panic - not syncing", "BUG: ", "Oops: "];
/// Limit on characters of a line in a tail.
const LINE_CHARACTERS: usize = 160;
/// How a kernel begins (`linux_banner` in init/version.c of the kernel).
const STARTS: &[u8] = b"Linux version ";
/// What a kernel prints that meets a breakpoint that is not its own.
const BREAKPOINT: &[u8] = b"int3: 0000";
/// How much of a console's end is searched (bytes): the cause of death is near the end.
const SEARCHED: usize = 1 << 20;

/// Returns why the kernel stopped, if the console says so.
#[must_use]
pub fn reason_in(console: &[u8]) -> Option<FailureReason> {
    let text = String::from_utf8_lossy(&console[console.len().saturating_sub(SEARCHED)..]);
    let has = |phrase: &str| text.contains(phrase);
    if has("Unable to mount root fs") {
        return Some(FailureReason::Lacks(
            "support for an initramfs (CONFIG_BLK_DEV_INITRD)".into(),
        ));
    }
    if has("No working init found")
        || has("Requested init /init failed")
        || has("Failed to execute /init")
    {
        return Some(FailureReason::Lacks(
            "support for static ELF programs (CONFIG_BINFMT_ELF, x86-64)".into(),
        ));
    }
    if has("Out of memory") || has("deadlocked on memory") {
        return Some(FailureReason::OutOfMemory);
    }
    if has("Attempted to kill init") {
        return Some(FailureReason::AgentDied("PID 1 ended".into()));
    }
    // An oops also panics (oops=panic), so check for the oops first.
    if has("Oops: ")
        || has("kernel BUG at ")
        || has("BUG: unable to handle")
        || has("general protection fault")
    {
        return Some(FailureReason::Oopsed);
    }
    has("Kernel panic - not syncing").then_some(FailureReason::Panicked)
}

/// Returns a console without the kernel that started after one had died.
#[must_use]
pub fn until_next_kernel(console: &[u8]) -> &[u8] {
    let find = |phrase: &[u8], from: usize| {
        console[from..]
            .windows(phrase.len())
            .position(|at| at == phrase)
    };
    let death = HEADLINES
        .iter()
        .filter_map(|phrase| find(phrase.as_bytes(), 0))
        .min();
    let next = death.and_then(|death| Some(death + find(STARTS, death)?));
    &console[..next.unwrap_or(console.len())]
}

/// Fails the lab, not the kernel, if an emulator has executed a breakpoint that the kernel had set
/// for an instant while it patched itself: QEMU's TCG with several threads does so once in some
/// twenty boots on a loaded host (QEMU 7.2; the kernel has no other way to an int3, see
/// `smp_text_poke_int3_handler` in arch/x86/kernel/alternative.c).
///
/// # Errors
/// If the console shows such a breakpoint.
pub fn check_emulator(is_emulated: bool, console: &[u8]) -> Result<(), MachineError> {
    if is_emulated
        && console
            .windows(BREAKPOINT.len())
            .any(|headline| headline == BREAKPOINT)
    {
        Err(MachineError::Breakpoint)
    } else {
        Ok(())
    }
}

/// Bits of EFLAGS that are 0 on every processor: 3, 5, 15 and 22 to 31; bit 1 is 1 (Intel SDM,
/// volume 1, 3.4.3).
const NEVER_SET: u64 = 0xffc0_8028;
const ALWAYS_SET: u64 = 2;

/// Returns the outcome of a job whose guest ended early. A kernel that died with flags that no
/// processor has is not at fault.
///
/// QEMU before 8 computes the flags of CMPXCHG16B from an old `cc_op`
/// (`helper_cmpxchg16b_unlocked` in target/i386/tcg/mem_helper.c); they are seen if an interrupt
/// comes right behind it, and what follows may run step by step, or move strings backwards.
#[must_use]
pub fn outcome_of(failure: SubjectFailure) -> Outcome {
    match impossible_flags(&failure.console_tail) {
        Some(flags) => Outcome::Unsupported(format!(
            "the emulator is at fault, as no processor has the flags that the kernel died with (EFLAGS {flags})"
        )),
        None => Outcome::Failed(failure),
    }
}

/// Returns flags of a trace that no processor has.
fn impossible_flags(console: &str) -> Option<&str> {
    let traces = console.split("EFLAGS: ").skip(1);
    let mut flags = traces.map(|rest| rest.split_whitespace().next().unwrap_or(""));
    flags.find(|flags| {
        let value = u64::from_str_radix(flags, 16);
        value.is_ok_and(|value| value & NEVER_SET != 0 || value & ALWAYS_SET == 0)
    })
}

/// Returns the last lines in printable form, for people.
#[must_use]
pub fn readable_tail(console: &[u8]) -> String {
    let text = String::from_utf8_lossy(&console[console.len().saturating_sub(SEARCHED)..]);
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty() && !line.starts_with(wire::MARK))
        .collect();
    let tail = lines.len().saturating_sub(TAIL_LINES);
    // A long trace must not hide its headline.
    let headline = lines[..tail]
        .iter()
        .rposition(|line| HEADLINES.iter().any(|headline| line.contains(headline)));
    let is_there = lines[tail..].iter().any(|line| line.contains(HEADLINES[0]));
    let headline = headline.filter(|_| !is_there).map(|at| lines[at]);
    let rest = tail + usize::from(headline.is_some());
    let chosen = headline.into_iter().chain(lines[rest..].iter().copied());
    chosen
        .map(|line| sanitize_line(&line.chars().take(LINE_CHARACTERS).collect::<String>()))
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::{outcome_of, readable_tail, reason_in, until_next_kernel};
    use model::{FailureReason, Outcome, Stage, SubjectFailure};

    #[test]
    fn real_consoles_give_reasons() {
        let cases = [
            (
                "Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)",
                "lacks support for an initramfs (CONFIG_BLK_DEV_INITRD)",
            ),
            (
                "Kernel panic - not syncing: Attempted to kill init! exitcode=0x0000000b",
                "agent died: PID 1 ended",
            ),
            (
                "BUG: unable to handle page fault for address: 00\nOops: 0002 [#1]\nKernel panic - not syncing: Fatal exception",
                "oopsed",
            ),
            (
                "Kernel panic - not syncing: sysrq triggered crash",
                "panicked",
            ),
            (
                "Out of memory: Killed process 77 (init) total-vm:1kB",
                "ran out of memory",
            ),
        ];
        for (console, reason) in cases {
            assert_eq!(
                reason_in(console.as_bytes())
                    .map(|r| r.to_string())
                    .as_deref(),
                Some(reason)
            );
        }
        assert_eq!(reason_in(b"[    0.07] all is well"), None::<FailureReason>);
    }

    #[test]
    fn impossible_flags_are_the_emulators_fault() {
        let died = |flags: &str| {
            outcome_of(SubjectFailure {
                stage: Stage::Workload,
                reason: FailureReason::Oopsed,
                console_tail: format!(
                    "[ 6.1] Oops: 0000 [#1]\n[ 6.2] RSP: 0018:ffffc9000056bca0 EFLAGS: {flags}\n\
                     [ 6.3] RSP: 002b:00007fffffffc7f8 EFLAGS: 00000246 ORIG_RAX: 38"
                ),
            })
        };
        // As Linux 6.12 died on QEMU 7.2.
        for flags in ["02be9662", "00ec264e", "00148686", "008c9646", "00000000"] {
            let Outcome::Unsupported(why) = died(flags) else {
                panic!("{flags}");
            };
            assert!(why.contains(flags), "{why}");
        }
        for flags in ["00010246", "00250fd7", "(garbled)", ""] {
            assert!(matches!(died(flags), Outcome::Failed(_)), "{flags}");
        }
    }

    #[test]
    fn long_trace_keeps_its_headline() {
        let mut console = "[ 1] Kernel panic - not syncing: sysrq triggered crash\n".to_owned();
        console.push_str(&"[ 1]  ? vfs_write+0x1/0x2\n".repeat(60));
        let tail = readable_tail(console.as_bytes());
        assert_eq!(tail.lines().count(), 40);
        assert!(tail.starts_with("[ 1] Kernel panic"), "{tail}");
    }

    #[test]
    fn next_kernel_is_no_part_of_a_death() {
        let death = "Linux version 6.12\nBUG: bad\nKernel panic - not syncing: x\n";
        let console = format!("{death}Linux version 6.1\nwelcome\n");
        assert_eq!(until_next_kernel(console.as_bytes()), death.as_bytes());
        assert_eq!(until_next_kernel(death.as_bytes()), death.as_bytes());
        let alive = b"Linux version 6.12\nLinux version 6.1\n";
        assert_eq!(until_next_kernel(alive), alive);
    }

    #[test]
    fn tail_is_short_and_printable() {
        let mut console = b"first\n".repeat(100);
        console.extend(b"\x1b[2Jlast \xff\r\n\n#M1 0 hello 0 x\n");
        let tail = readable_tail(&console);
        assert_eq!(tail.lines().count(), 40);
        assert!(tail.ends_with("\u{fffd}[2Jlast \u{fffd}"), "{tail}");
    }
}
