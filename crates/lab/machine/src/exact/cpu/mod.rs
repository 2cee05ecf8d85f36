//! The CPUs of the exact machine, feature by feature, and the check that a QEMU shows its guests
//! exactly the named one. The tables of each are in its file.
//!
//! Kernels choose string functions, ways to clear a page and mitigations by what CPUID says. `-cpu
//! max` is another processor in each QEMU: 10.0 shows guests fsrs, and 6.12 then fills memory byte
//! by byte (`rep stosb`), which counts one instruction for each. `docs/exact-machine.md` has the
//! figures.

mod generic;
mod server;

use std::path::Path;

use model::ExactCpu;
use serde_json::json;

use generic::GENERIC;
use server::SERVER;

use crate::MachineError;
use crate::qemu::{Budget, CONSOLE, Ended, Process, Qemu, QemuProblem, Scratch};

/// A CPU.
///
/// None has cx16: QEMU 7.2 computes its other flags from an old `cc_op`
/// (`helper_cmpxchg16b_unlocked`), so what follows runs with a wrong direction flag if an interrupt
/// or the end of a turn comes there.
#[derive(Debug)]
pub(super) struct Cpu {
    /// The model without features, then who it says it is.
    model: &'static str,
    /// Its features, by QEMU's names.
    features: &'static str,
    /// It for people; its features are in the machine's fingerprint.
    pub(super) summary: &'static str,
    /// What CPUID answers.
    answers: &'static [Answer],
    ignored: &'static [Ignored],
}

impl Cpu {
    /// Returns the CPU of this name.
    pub(super) const fn named(cpu: ExactCpu) -> &'static Self {
        match cpu {
            ExactCpu::Generic => &GENERIC,
            ExactCpu::Server => &SERVER,
        }
    }

    /// Returns the argument of `-cpu`.
    pub(super) fn argument(&self) -> String {
        let features = self
            .features
            .split_whitespace()
            .map(|feature| format!(",{feature}=on"));
        format!("{}{}", self.model, features.collect::<String>())
    }
}

/// What CPUID answers.
#[derive(Debug)]
struct Answer {
    leaf: u32,
    subleaf: u32,
    /// EAX, EBX, ECX and EDX.
    registers: [u32; 4],
}

const fn answer(leaf: u32, subleaf: u32, registers: [u32; 4]) -> Answer {
    Answer {
        leaf,
        subleaf,
        registers,
    }
}

/// Bits of a register that are not compared, as they differ between QEMUs and no kernel reads them.
#[derive(Debug)]
struct Ignored {
    leaf: u32,
    subleaf: u32,
    /// EAX is 0, EBX 1, ECX 2, EDX 3.
    register: usize,
    bits: u32,
}

/// The firmware's size: QEMU takes multiples of this (`x86_bios_rom_init` in hw/i386/x86.c).
const FIRMWARE_SIZE: usize = 64 << 10;
/// Where a processor begins in it.
const RESET: usize = FIRMWARE_SIZE - 16;
/// The firmware's file within a scratch directory.
const FIRMWARE: &str = "firmware";
/// Ends the list of leaves.
const NO_LEAF: u32 = u32::MAX;
/// More than 1000 times what QEMU takes on an idle host (s).
const WALL_S: u64 = 120;

/// Asks CPUID for each leaf of the list behind it, in real mode, and sends the four registers to the serial line. The
/// list begins with leaf 0, which is an interrupt table without entries too: an interrupt then resets the processor.
#[rustfmt::skip]
const ASK: [u8; 74] = [
    0xfc,                               //       cld
    0x31, 0xc0,                         //       xor   %ax, %ax
    0x8e, 0xd0,                         //       mov   %ax, %ss
    0xbc, 0x00, 0x70,                   //       mov   $0x7000, %sp
    0xbe, 0x4a, 0x00,                   //       mov   $list, %si
    0x2e, 0x66, 0x8b, 0x04,             // next: mov   %cs:(%si), %eax
    0x2e, 0x66, 0x8b, 0x4c, 0x04,       //       mov   %cs:4(%si), %ecx
    0x83, 0xc6, 0x08,                   //       add   $8, %si
    0x66, 0x83, 0xf8, 0xff,             //       cmp   $NO_LEAF, %eax
    0x74, 0x26,                         //       je    end
    0x0f, 0xa2,                         //       cpuid
    0x66, 0x52, 0x66, 0x51,             //       push  %edx; push %ecx
    0x66, 0x53, 0x66, 0x50,             //       push  %ebx; push %eax
    0xb9, 0x10, 0x00,                   //       mov   $16, %cx
    0x89, 0xe5,                         //       mov   %sp, %bp
    0xba, 0xfd, 0x03,                   // byte: mov   $0x3fd, %dx
    0xec, 0xa8, 0x20, 0x74, 0xfb,       // wait: in    %dx, %al; test $0x20, %al; jz wait
    0xba, 0xf8, 0x03,                   //       mov   $0x3f8, %dx
    0x8a, 0x46, 0x00,                   //       mov   (%bp), %al
    0xee, 0x45,                         //       out   %al, %dx; inc %bp
    0xe2, 0xee,                         //       loop  byte
    0x83, 0xc4, 0x10,                   //       add   $16, %sp
    0xeb, 0xc8,                         //       jmp   next
    0x2e, 0x0f, 0x01, 0x1e, 0x4a, 0x00, // end:  lidt  %cs:list
    0xcc,                               //       int3
];

/// Returns firmware that asks for these leaves.
fn firmware(leaves: &[Answer]) -> Vec<u8> {
    let mut bytes = ASK.to_vec();
    for Answer { leaf, subleaf, .. } in leaves {
        bytes.extend(leaf.to_le_bytes());
        bytes.extend(subleaf.to_le_bytes());
    }
    bytes.extend(NO_LEAF.to_le_bytes());
    bytes.extend(NO_LEAF.to_le_bytes());
    in_rom(&bytes)
}

/// Returns firmware that begins with this code.
pub(super) fn in_rom(code: &[u8]) -> Vec<u8> {
    let mut bytes = code.to_vec();
    bytes.resize(RESET, 0);
    // jmp to the beginning: the distance from behind these three bytes wraps at 64 KiB.
    bytes.extend([0xe9, 0x0d, 0x00]);
    bytes.resize(FIRMWARE_SIZE, 0);
    bytes
}

/// Checks that a QEMU starts with these arguments and the plugin, within its walls, and that its
/// guests see exactly this CPU.
pub(super) fn check(
    qemu: &Qemu,
    cpu: &Cpu,
    arguments: Vec<String>,
    tracer: &Path,
    parent: &Path,
) -> Result<(), MachineError> {
    // The firmware below is Marvin's: that of measurements is the QEMU's own.
    if let Some(missing) = qemu.missing_firmware() {
        return Err(MachineError::Qemu(QemuProblem::DoesNotStart {
            found: qemu.version.clone(),
            answer: format!("could not load PC BIOS: no {missing} in its folders"),
        }));
    }
    let mut scratch = Scratch::new(parent)?;
    scratch.write(FIRMWARE, &firmware(cpu.answers))?;
    scratch.link(super::TRACER, tracer)?;
    let mut arguments = arguments;
    // It waits until Marvin listens: the firmware ends sooner than QEMU would tell.
    arguments.extend(["-bios", FIRMWARE, "-m", "64", "-S"].map(str::to_owned));
    // The only device that a measurement adds.
    arguments.extend(["-device", "ib700"].map(str::to_owned));
    let found = || qemu.version.clone();
    let answer = answers(qemu, &arguments, &mut scratch).map_err(|error| match error {
        MachineError::QemuDied { how, stderr } if how.starts_with("exit status") => {
            MachineError::Qemu(QemuProblem::DoesNotStart {
                found: found(),
                answer: stderr,
            })
        }
        error => error,
    })?;
    if answer.is_empty() {
        return Err(QemuProblem::DoesNotStart {
            found: found(),
            answer: "its guest sends nothing over the serial line".to_owned(),
        }
        .into());
    }
    let differing = differing(cpu, &answer);
    if differing.is_empty() {
        Ok(())
    } else {
        Err(QemuProblem::OtherCpu {
            found: found(),
            differing,
        }
        .into())
    }
}

/// Returns what the firmware sent.
fn answers(
    qemu: &Qemu,
    arguments: &[String],
    scratch: &mut Scratch,
) -> Result<Vec<u8>, MachineError> {
    let mut process = Process::start(qemu, arguments, scratch)?;
    process.command("cont", json!({}))?;
    let console_bytes = FIRMWARE_SIZE as u64;
    let budget = Budget {
        until: None,
        is_fast: false,
        wall_s: WALL_S,
        console_bytes,
    };
    if process.wait_for_end(&budget)? == Ended::PoweredOff {
        process.end()?;
    }
    Ok(std::fs::read(scratch.path(CONSOLE)).unwrap_or_default())
}

/// Returns the registers that differ from the exact machine's, in words.
fn differing(cpu: &Cpu, answer: &[u8]) -> Vec<String> {
    let mut fields = answer
        .chunks_exact(4)
        .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
    let mut differing = Vec::new();
    for Answer {
        leaf,
        subleaf,
        registers,
    } in cpu.answers
    {
        for (number, (name, expected)) in ["EAX", "EBX", "ECX", "EDX"]
            .into_iter()
            .zip(registers)
            .enumerate()
        {
            let ignored = cpu.ignored.iter().find(|ignored| {
                [ignored.leaf, ignored.subleaf] == [*leaf, *subleaf] && ignored.register == number
            });
            let ignored = ignored.map_or(0, |ignored| ignored.bits);
            let found = fields.next();
            if found.is_none_or(|value| (value ^ expected) & !ignored != 0) {
                let found = found.map_or("none".to_owned(), |value| format!("{value:08x}"));
                differing.push(format!(
                    "CPUID {leaf:#x}.{subleaf} {name} {found}, not {expected:08x}"
                ));
            }
        }
    }
    differing
}

#[cfg(test)]
mod tests {
    use model::ExactCpu;

    use super::{Cpu, GENERIC, SERVER, check, differing, firmware};
    use crate::MachineError;
    use crate::exact::{AT_THE_END, machine_arguments};
    use crate::qemu::{Qemu, QemuProblem};

    fn answers() -> Vec<u8> {
        GENERIC
            .answers
            .iter()
            .flat_map(|answer| answer.registers)
            .flat_map(u32::to_le_bytes)
            .collect()
    }

    #[test]
    fn cpu_is_named_feature_by_feature() {
        let one = GENERIC.argument();
        assert!(one.starts_with("base,") && !one.contains("max"), "{one}");
        for absent in ["erms", "fsrm", "fsrs", "fzrm", "fsrc", "cx16"] {
            assert!(!one.contains(absent), "{absent}");
        }
        assert!(one.contains(",rdrand=on"));
    }

    #[test]
    fn differing_registers_are_named() {
        let mut answer = answers();
        assert_eq!(differing(&GENERIC, &answer), [""; 0]);
        // Leaf 1, EAX: family 6 model 6 stepping 3, as `-cpu max` of QEMU 10.
        answer[16..20].copy_from_slice(&0x663_u32.to_le_bytes());
        assert_eq!(
            differing(&GENERIC, &answer),
            ["CPUID 0x1.0 EAX 00000663, not 00060fb1"]
        );
        let place = 16
            * GENERIC
                .answers
                .iter()
                .position(|answer| answer.leaf == 7)
                .unwrap()
            + 4;
        answer = answers();
        answer[place + 2] ^= 0x40;
        assert_eq!(
            differing(&GENERIC, &answer),
            [""; 0],
            "pcommit is not compared"
        );
        assert_eq!(
            differing(&GENERIC, &answer[..8]).len(),
            GENERIC.answers.len() * 4 - 2,
            "a guest that stops early shows nothing"
        );
    }

    #[test]
    fn firmware_begins_at_the_reset_vector() {
        let firmware = firmware(GENERIC.answers);
        assert_eq!(firmware.len(), 0x10000);
        let distance = i32::from(u16::from_le_bytes([firmware[0xfff1], firmware[0xfff2]]));
        assert_eq!((0xfff3 + distance) & 0xffff, 0);
    }

    /// Checks the installed QEMU with another processor.
    fn checked(cpu: &Cpu, more: &str) -> Result<(), MachineError> {
        let qemu = Qemu::find(None, std::path::Path::new("/nonexistent")).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut arguments = machine_arguments(&qemu, cpu, None);
        let place = arguments
            .iter()
            .position(|argument| argument == "-cpu")
            .unwrap();
        arguments[place + 1] = cpu.argument() + more;
        arguments.extend(AT_THE_END.map(str::to_owned));
        let unused = folder.path().join("tracer");
        std::fs::write(&unused, "").unwrap();
        check(&qemu, cpu, arguments, &unused, folder.path())
    }

    #[test]
    fn installed_qemu_has_exactly_these_cpus() {
        for cpu in [ExactCpu::Generic, ExactCpu::Server] {
            checked(Cpu::named(cpu), "").unwrap();
        }
    }

    #[test]
    fn cpus_are_distinguished() {
        let generic_for_server = Cpu {
            answers: SERVER.answers,
            ..GENERIC
        };
        match checked(&generic_for_server, "") {
            Err(MachineError::Qemu(QemuProblem::OtherCpu { differing, .. })) => assert_eq!(
                differing[0], "CPUID 0x1.0 EAX 00060fb1, not 00a00f11",
                "{differing:?}"
            ),
            result => panic!("{result:?}"),
        }
    }

    #[test]
    fn qemu_with_another_cpu_is_refused() {
        for (other, register) in [
            (",family=6", "0x1.0 EAX"),
            (",erms=on", "0x7.0 EBX"),
            (",rdrand=off", "0x1.0 ECX"),
        ] {
            match checked(&GENERIC, other) {
                Err(MachineError::Qemu(QemuProblem::OtherCpu { differing, .. })) => {
                    assert!(
                        differing[0].starts_with(&format!("CPUID {register} ")),
                        "{differing:?}"
                    );
                }
                result => panic!("{other}: {result:?}"),
            }
        }
    }

    #[test]
    fn qemu_without_a_feature_is_refused() {
        let answer = match checked(&GENERIC, ",no-such-feature=on") {
            Err(MachineError::Qemu(problem)) => problem.to_string(),
            result => panic!("{result:?}"),
        };
        assert!(
            answer.contains("does not start the exact machine")
                && answer.contains("no-such-feature"),
            "{answer}"
        );
        assert!(answer.contains("`marvin setup`"), "{answer}");
    }
}
