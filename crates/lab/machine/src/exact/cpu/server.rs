//! A CPU nearer to a server of today: AMD's EPYC of the third generation (Milan), as far as TCG of
//! QEMU 7.2 has it.
//!
//! QEMU's own `EPYC-Milan` has features that TCG has not, such as invpcid and rdpid, and those that
//! icount counts byte by byte. Kernels take it for family 25, so it has the mitigations of that
//! family (SRSO, TSA), and no 3DNow!, five-level page tables and MPX.

use super::{Answer, Cpu, Ignored, answer};

pub(super) const SERVER: Cpu = Cpu {
    // `enforce`: QEMU does not start if it lacks one of the features.
    model: "base,vendor=AuthenticAMD,family=25,model=1,stepping=1,model-id=AMD EPYC-Milan (QEMU TCG),\
            min-level=13,min-xlevel=2147483679,enforce=on",
    features: FEATURES,
    summary: "CPU server (family 25 model 1), without erms and fsrm",
    answers: ANSWERS,
    // How the last cache finds its sets: QEMU 10 says it otherwise. Kernels read the other registers
    // only (`cpuid4_cache_lookup_regs` in arch/x86/kernel/cpu/cacheinfo.c), and this leaf only of
    // CPUs with topoext.
    ignored: &[Ignored {
        leaf: 0x8000_001d,
        subleaf: 3,
        register: 3,
        bits: 1 << 2,
    }],
};

/// What EPYC-Milan of QEMU 7.2 has and TCG offers, less cx16, erms and fsrm.
const FEATURES: &str = "abm adx aes apic arat avx avx2 bmi1 bmi2 clflush clflushopt clwb cmov cr8legacy cx8 de f16c fma \
                        fpu fsgsbase fxsr hypervisor lahf-lm lm mca mce mmx mmxext movbe msr mtrr npt nx pae pat \
                        pclmulqdq pdpe1gb pge pku pni popcnt pse pse36 rdrand rdtscp sep smap smep sse sse2 sse4.1 \
                        sse4.2 sse4a ssse3 svm svme-addr-chk syscall tsc umip vaes vgif xgetbv1 xsave xsaveopt";

/// All leaves that this CPU has, for a guest with one.
const ANSWERS: &[Answer] = &[
    answer(0x0, 0, [0xd, 0x6874_7541, 0x444d_4163, 0x6974_6e65]),
    answer(0x1, 0, [0x00a0_0f11, 0x800, 0xf6d8_1203, 0x078b_fbfd]),
    answer(0x2, 0, [0; 4]),
    answer(0x3, 0, [0; 4]),
    answer(0x4, 0, [0; 4]),
    answer(0x4, 1, [0; 4]),
    answer(0x4, 2, [0; 4]),
    answer(0x4, 3, [0; 4]),
    answer(0x5, 0, [0, 0, 0x3, 0]),
    answer(0x6, 0, [0x4, 0, 0, 0]),
    answer(0x7, 0, [0, 0x0198_01a9, 0x20c, 0]),
    answer(0x7, 1, [0; 4]),
    answer(0x7, 2, [0; 4]),
    answer(0x8, 0, [0; 4]),
    answer(0x9, 0, [0; 4]),
    answer(0xa, 0, [0; 4]),
    answer(0xb, 0, [0, 0x1, 0x100, 0]),
    answer(0xb, 1, [0, 0x1, 0x201, 0]),
    answer(0xb, 2, [0, 0, 0x2, 0]),
    answer(0xc, 0, [0; 4]),
    answer(0xd, 0, [0x207, 0x240, 0xa88, 0]),
    answer(0xd, 1, [0x5, 0x348, 0, 0]),
    answer(0xd, 2, [0x100, 0x240, 0, 0]),
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
        [0x8000_001f, 0x6874_7541, 0x444d_4163, 0x6974_6e65],
    ),
    answer(0x8000_0001, 0, [0x00a0_0f11, 0, 0x75, 0x2dd3_fbfd]),
    answer(
        0x8000_0002,
        0,
        [0x2044_4d41, 0x4359_5045, 0x6c69_4d2d, 0x2820_6e61],
    ),
    answer(0x8000_0003, 0, [0x554d_4551, 0x4743_5420, 0x29, 0]),
    answer(0x8000_0004, 0, [0; 4]),
    answer(
        0x8000_0005,
        0,
        [0x01ff_01ff, 0x01ff_01ff, 0x4002_0140, 0x4002_0140],
    ),
    answer(0x8000_0006, 0, [0, 0x4200_4200, 0x0200_8140, 0x0080_8140]),
    answer(0x8000_0007, 0, [0; 4]),
    answer(0x8000_0008, 0, [0x3028, 0, 0, 0]),
    answer(0x8000_0009, 0, [0; 4]),
    answer(0x8000_000a, 0, [0x1, 0x10, 0, 0x1001_0001]),
    answer(0x8000_000b, 0, [0; 4]),
    answer(0x8000_000c, 0, [0; 4]),
    answer(0x8000_000d, 0, [0; 4]),
    answer(0x8000_000e, 0, [0; 4]),
    answer(0x8000_000f, 0, [0; 4]),
    answer(0x8000_0010, 0, [0; 4]),
    answer(0x8000_0011, 0, [0; 4]),
    answer(0x8000_0012, 0, [0; 4]),
    answer(0x8000_0013, 0, [0; 4]),
    answer(0x8000_0014, 0, [0; 4]),
    answer(0x8000_0015, 0, [0; 4]),
    answer(0x8000_0016, 0, [0; 4]),
    answer(0x8000_0017, 0, [0; 4]),
    answer(0x8000_0018, 0, [0; 4]),
    answer(0x8000_0019, 0, [0; 4]),
    answer(0x8000_001a, 0, [0; 4]),
    answer(0x8000_001b, 0, [0; 4]),
    answer(0x8000_001c, 0, [0; 4]),
    answer(0x8000_001d, 0, [0x121, 0x0040_003f, 0x1ff, 0x1]),
    answer(0x8000_001d, 1, [0x122, 0x0040_003f, 0x1ff, 0x1]),
    answer(0x8000_001d, 2, [0x43, 0x03c0_003f, 0x1ff, 0]),
    answer(0x8000_001d, 3, [0x163, 0x03c0_003f, 0x3fff, 0x6]),
    answer(0x8000_001d, 4, [0; 4]),
    answer(0x8000_001e, 0, [0; 4]),
    answer(0x8000_001f, 0, [0; 4]),
];
