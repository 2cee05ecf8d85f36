//! The processor of the exact machine, feature by feature, and the check that a QEMU shows its
//! guests exactly this one.
//!
//! Kernels choose string functions, ways to clear a page and mitigations by what CPUID says. `-cpu
//! max` is another processor in each QEMU: 10.0 shows guests fsrs, and 6.12 then fills memory byte
//! by byte (`rep stosb`), which counts one instruction for each. `docs/exact-machine.md` has the
//! figures.

use std::path::Path;

use serde_json::json;

use crate::MachineError;
use crate::qemu::{Budget, CONSOLE, Ended, Process, Qemu, QemuProblem, Scratch};

/// The model without features, then who it says it is: an early Athlon 64, for which Linux sets
/// `rep_good` (`arch/x86/kernel/cpu/amd.c`, `early_init_amd` and `init_amd_k8`).
const MODEL: &str = "base,vendor=AuthenticAMD,family=15,model=107,stepping=1,model-id=QEMU TCG CPU version 2.5+,\
                     min-level=13,min-xlevel=2147483658";

/// What TCG of QEMU 7.2 offers, less two. With erms and fsrm, kernels copy and clear by `rep movsb`
/// and `rep stosb`, which icount counts byte by byte, and others word by word.
const FEATURES: &str = "3dnow 3dnowext abm acpi adx aes apic arat avx avx2 bmi1 bmi2 clflush clflushopt clwb cmov \
                        cr8legacy cx8 de f16c fma fpu fsgsbase fxsr hypervisor la57 lahf-lm lm mca mce mmx mmxext \
                        monitor movbe mpx msr mtrr npt nx pae pat pclmulqdq pcommit pdpe1gb pge pks pku pni popcnt pse pse36 \
                        rdrand rdtscp sep smap smep ss sse sse2 sse4.1 sse4.2 sse4a ssse3 svm svme-addr-chk syscall tsc \
                        umip vaes vgif xgetbv1 xsave xsaveopt";

/// Of several processors none has this one: QEMU 7.2 computes its other flags from an old `cc_op`
/// (`helper_cmpxchg16b_unlocked`), so what follows runs with a wrong direction flag if a turn ends
/// there.
const OF_ONE: &str = "cx16";

/// The processor for people; its features are in the machine's fingerprint.
pub(super) const SUMMARY: &str = "CPU family 15 model 107, without erms and fsrm";

/// Returns the argument of `-cpu`.
pub(super) fn cpu(has_several: bool) -> String {
    let of_one = (!has_several).then_some(OF_ONE);
    let features = FEATURES
        .split_whitespace()
        .chain(of_one)
        .map(|feature| format!(",{feature}=on"));
    format!("{MODEL}{}", features.collect::<String>())
}

/// What CPUID answers.
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

/// All leaves that this processor has, for a guest with one. Of leaf 13 the components of XSAVE
/// that it has: the places of others differ between QEMUs, and no kernel uses them.
const ANSWERS: &[Answer] = &[
    answer(0x0, 0, [0xd, 0x6874_7541, 0x444d_4163, 0x6974_6e65]),
    answer(0x1, 0, [0x0006_0fb1, 0x800, 0xf6d8_320b, 0x0fcb_fbfd]),
    answer(0x2, 0, [0; 4]),
    answer(0x3, 0, [0; 4]),
    answer(0x4, 0, [0; 4]),
    answer(0x4, 1, [0; 4]),
    answer(0x4, 2, [0; 4]),
    answer(0x4, 3, [0; 4]),
    answer(0x5, 0, [0, 0, 0x3, 0]),
    answer(0x6, 0, [0x4, 0, 0, 0]),
    answer(0x7, 0, [0, 0x01d8_41a9, 0x8001_020c, 0]),
    answer(0x7, 1, [0; 4]),
    answer(0x7, 2, [0; 4]),
    answer(0x8, 0, [0; 4]),
    answer(0x9, 0, [0; 4]),
    answer(0xa, 0, [0; 4]),
    answer(0xb, 0, [0, 0x1, 0x100, 0]),
    answer(0xb, 1, [0, 0x1, 0x201, 0]),
    answer(0xb, 2, [0, 0, 0x2, 0]),
    answer(0xc, 0, [0; 4]),
    answer(0xd, 0, [0x21f, 0x240, 0xa88, 0]),
    answer(0xd, 1, [0x5, 0x3c8, 0, 0]),
    answer(0xd, 2, [0x100, 0x240, 0, 0]),
    answer(0xd, 3, [0x40, 0x3c0, 0, 0]),
    answer(0xd, 4, [0x40, 0x400, 0, 0]),
    answer(0xd, 9, [0x8, 0xa80, 0, 0]),
    answer(
        0x4000_0000,
        0,
        [0x4000_0001, 0x5447_4354, 0x4354_4743, 0x4743_5447],
    ),
    answer(0x4000_0001, 0, [0; 4]),
    answer(
        0x8000_0000,
        0,
        [0x8000_000a, 0x6874_7541, 0x444d_4163, 0x6974_6e65],
    ),
    answer(0x8000_0001, 0, [0x0006_0fb1, 0, 0x75, 0xedd3_fbfd]),
    answer(
        0x8000_0002,
        0,
        [0x554d_4551, 0x4743_5420, 0x5550_4320, 0x7265_7620],
    ),
    answer(0x8000_0003, 0, [0x6e6f_6973, 0x352e_3220, 0x2b, 0]),
    answer(0x8000_0004, 0, [0; 4]),
    answer(
        0x8000_0005,
        0,
        [0x01ff_01ff, 0x01ff_01ff, 0x4002_0140, 0x4002_0140],
    ),
    answer(0x8000_0006, 0, [0, 0x4200_4200, 0x0200_8140, 0x0080_8140]),
    answer(0x8000_0007, 0, [0; 4]),
    answer(0x8000_0008, 0, [0x3928, 0, 0, 0]),
    answer(0x8000_0009, 0, [0; 4]),
    answer(0x8000_000a, 0, [0x1, 0x10, 0, 0x1001_0001]),
];

/// pcommit, bit 22 of EBX: no processor has it, QEMU 10 has dropped it, and kernels of the last ten
/// years do not ask for it (Linux kernel commit fd1d961dd681 ("x86/insn: remove pcommit") (in
/// v4.8)).
const NOT_ASKED_FOR: (u32, usize, u32) = (0x7, 1, 1 << 22); // leaf, register, bits

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
    bytes.resize(RESET, 0);
    // jmp to the beginning: the distance from behind these three bytes wraps at 64 KiB.
    bytes.extend([0xe9, 0x0d, 0x00]);
    bytes.resize(FIRMWARE_SIZE, 0);
    bytes
}

/// Checks that a QEMU starts with these arguments and the plugin, within its walls, and that its
/// guests see exactly the processor of the exact machine.
pub(super) fn check(
    qemu: &Qemu,
    arguments: Vec<String>,
    tracer: &Path,
    parent: &Path,
) -> Result<(), MachineError> {
    let mut scratch = Scratch::new(parent)?;
    scratch.write(FIRMWARE, &firmware(ANSWERS))?;
    scratch.link(super::TRACER, tracer)?;
    let mut arguments = arguments;
    // It waits until Marvin listens: the firmware ends sooner than QEMU would tell.
    arguments.extend(["-bios", FIRMWARE, "-m", "64", "-S"].map(str::to_owned));
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
    let differing = differing(&answer);
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
fn differing(answer: &[u8]) -> Vec<String> {
    let mut fields = answer
        .chunks_exact(4)
        .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
    let mut differing = Vec::new();
    for Answer {
        leaf,
        subleaf,
        registers,
    } in ANSWERS
    {
        for (number, (name, expected)) in ["EAX", "EBX", "ECX", "EDX"]
            .into_iter()
            .zip(registers)
            .enumerate()
        {
            let ignored = if (*leaf, number) == (NOT_ASKED_FOR.0, NOT_ASKED_FOR.1) {
                NOT_ASKED_FOR.2
            } else {
                0
            };
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
    use super::{ANSWERS, check, cpu, differing, firmware};
    use crate::MachineError;
    use crate::exact::{AT_THE_END, machine_arguments};
    use crate::qemu::{Qemu, QemuProblem};

    fn answers() -> Vec<u8> {
        ANSWERS
            .iter()
            .flat_map(|answer| answer.registers)
            .flat_map(u32::to_le_bytes)
            .collect()
    }

    #[test]
    fn cpu_is_named_feature_by_feature() {
        let one = cpu(false);
        assert!(one.starts_with("base,") && !one.contains("max"), "{one}");
        for absent in ["erms", "fsrm", "fsrs", "fzrm", "fsrc"] {
            assert!(!one.contains(absent), "{absent}");
        }
        assert!(one.contains(",rdrand=on") && one.contains(",cx16=on"));
        assert!(!cpu(true).contains("cx16"));
    }

    #[test]
    fn differing_registers_are_named() {
        let mut answer = answers();
        assert_eq!(differing(&answer), [""; 0]);
        // Leaf 1, EAX: family 6 model 6 stepping 3, as `-cpu max` of QEMU 10.
        answer[16..20].copy_from_slice(&0x663_u32.to_le_bytes());
        assert_eq!(
            differing(&answer),
            ["CPUID 0x1.0 EAX 00000663, not 00060fb1"]
        );
        let place = 16 * ANSWERS.iter().position(|answer| answer.leaf == 7).unwrap() + 4;
        answer = answers();
        answer[place + 2] ^= 0x40;
        assert_eq!(differing(&answer), [""; 0], "pcommit is not compared");
        assert_eq!(
            differing(&answer[..8]).len(),
            ANSWERS.len() * 4 - 2,
            "a guest that stops early shows nothing"
        );
    }

    #[test]
    fn firmware_begins_at_the_reset_vector() {
        let firmware = firmware(ANSWERS);
        assert_eq!(firmware.len(), 0x10000);
        let distance = i32::from(u16::from_le_bytes([firmware[0xfff1], firmware[0xfff2]]));
        assert_eq!((0xfff3 + distance) & 0xffff, 0);
    }

    /// Checks the installed QEMU with another processor.
    fn checked(model: &str) -> Result<(), MachineError> {
        let qemu = Qemu::find(None, std::path::Path::new("/nonexistent")).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut arguments = machine_arguments(&qemu, None);
        let place = arguments
            .iter()
            .position(|argument| argument == "-cpu")
            .unwrap();
        arguments[place + 1] = model.to_owned();
        arguments.extend(AT_THE_END.map(str::to_owned));
        let unused = folder.path().join("tracer");
        std::fs::write(&unused, "").unwrap();
        check(&qemu, arguments, &unused, folder.path())
    }

    #[test]
    fn installed_qemu_has_exactly_this_cpu() {
        checked(&cpu(false)).unwrap();
    }

    #[test]
    fn qemu_with_another_cpu_is_refused() {
        for (other, register) in [
            (",family=6", "0x1.0 EAX"),
            (",erms=on", "0x7.0 EBX"),
            (",rdrand=off", "0x1.0 ECX"),
        ] {
            match checked(&(cpu(false) + other)) {
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
        let answer = match checked(&(cpu(false) + ",no-such-feature=on")) {
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
