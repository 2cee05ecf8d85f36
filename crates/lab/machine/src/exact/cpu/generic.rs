//! The CPU that machines have if no other is named: all that TCG of QEMU 7.2 offers, less what
//! icount counts byte by byte.

use super::{Answer, Cpu, Ignored, answer};

pub(super) const GENERIC: Cpu = Cpu {
    // An early Athlon 64, for which Linux sets `rep_good` (`arch/x86/kernel/cpu/amd.c`,
    // `early_init_amd` and `init_amd_k8`).
    model: "base,vendor=AuthenticAMD,family=15,model=107,stepping=1,model-id=QEMU TCG CPU version 2.5+,\
            min-level=13,min-xlevel=2147483658",
    features: FEATURES,
    summary: "CPU family 15 model 107, without erms and fsrm",
    answers: ANSWERS,
    // pcommit: no processor has it, QEMU 10 has dropped it, and kernels of the last ten years do
    // not ask for it (Linux kernel commit fd1d961dd681 ("x86/insn: remove pcommit") (in v4.8)).
    ignored: &[Ignored {
        leaf: 0x7,
        subleaf: 0,
        register: 1,
        bits: 1 << 22,
    }],
};

/// What TCG of QEMU 7.2 offers, less cx16, see [`Cpu`], and two: with erms and fsrm, kernels copy
/// and clear by `rep movsb` and `rep stosb`, which icount counts byte by byte, and others word by
/// word.
const FEATURES: &str = "3dnow 3dnowext abm acpi adx aes apic arat avx avx2 bmi1 bmi2 clflush clflushopt clwb cmov \
                        cr8legacy cx8 de f16c fma fpu fsgsbase fxsr hypervisor la57 lahf-lm lm mca mce mmx mmxext \
                        monitor movbe mpx msr mtrr npt nx pae pat pclmulqdq pcommit pdpe1gb pge pks pku pni popcnt pse pse36 \
                        rdrand rdtscp sep smap smep ss sse sse2 sse4.1 sse4.2 sse4a ssse3 svm svme-addr-chk syscall tsc \
                        umip vaes vgif xgetbv1 xsave xsaveopt";

/// All leaves that this processor has, for a guest with one. Of leaf 13 the components of XSAVE
/// that it has: the places of others differ between QEMUs, and no kernel uses them.
const ANSWERS: &[Answer] = &[
    answer(0x0, 0, [0xd, 0x6874_7541, 0x444d_4163, 0x6974_6e65]),
    answer(0x1, 0, [0x0006_0fb1, 0x800, 0xf6d8_120b, 0x0fcb_fbfd]),
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
