//! Changes files at positions of a fixed pseudorandom sequence; and the smallest dump to start
//! from.

/// A fixed pseudorandom sequence (xorshift64*).
#[derive(Debug)]
pub struct Numbers(u64);

impl Numbers {
    /// Starts the sequence of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        // Neighbouring seeds begin far apart, and none with 0, which would stay 0.
        let mixed = (seed ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        Self((mixed ^ mixed >> 31).max(1))
    }

    /// Returns the next number.
    #[expect(clippy::should_implement_trait, reason = "a sequence without end")]
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns the next number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

pub const ODD: [u64; 10] = [
    0,
    1,
    0x7f,
    0xffff,
    0x1_0000,
    0x7fff_ffff,
    0xffff_ffff,
    1 << 52,
    i64::MAX as u64,
    u64::MAX,
];

/// Changes a few positions; half of them among bytes that are not zero.
#[must_use]
pub fn changed(seed: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    let full: Vec<usize> = (0..seed.len()).filter(|at| seed[*at] != 0).collect();
    for _ in 0..1 + numbers.below(4) {
        let any = numbers.below(bytes.len());
        let at = if numbers.below(2) == 0 {
            any
        } else {
            full.get(numbers.below(full.len())).copied().unwrap_or(any)
        };
        match numbers.below(6) {
            0 => bytes.truncate(at),
            1 => {
                let number = ODD[numbers.below(ODD.len())];
                let both = [number.to_le_bytes(), number.to_be_bytes()][numbers.below(2)];
                let start = at - at % 8;
                let length = [1, 2, 4, 8][numbers.below(4)];
                let from = if numbers.below(2) == 0 { 0 } else { 8 - length };
                bytes
                    .iter_mut()
                    .skip(start)
                    .zip(&both[from..from + length])
                    .for_each(|(byte, new)| *byte = *new);
            }
            2 => {
                let from = numbers.below(bytes.len());
                let length = numbers.below(64);
                let part: Vec<u8> = bytes.iter().skip(from).take(length).copied().collect();
                bytes
                    .iter_mut()
                    .skip(at)
                    .zip(part)
                    .for_each(|(byte, new)| *byte = new);
            }
            kind => {
                let new = numbers.next();
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = if kind == 3 {
                        *byte ^ 1 << (new % 8)
                    } else {
                        new as u8
                    };
                }
            }
        }
    }
    bytes
}

/// Returns an ELF vmcore of five pages in two segments, with a note.
#[must_use]
pub fn tiny() -> Vec<u8> {
    let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
    bytes.resize(64, 0);
    bytes[16..20].copy_from_slice(&[4, 0, 62, 0]);
    bytes[32] = 64;
    bytes[54..58].copy_from_slice(&[56, 0, 3, 0]);
    let note = [
        &[11, 0, 0, 0, 29, 0, 0, 0, 0, 0, 0, 0][..],
        b"VMCOREINFO\0\0OSRELEASE=6.12\nPAGESIZE=4096\n\0\0\0",
    ]
    .concat();
    let places = [
        (4, 232, 0, note.len() as u64),
        (1, 4096, 4096, 3 * 4096),
        (1, 4 * 4096, 6 * 4096, 2 * 4096),
    ];
    for (kind, offset, start, size) in places {
        let direct = 0xffff_8880_0000_0000_u64;
        for number in [kind, offset, direct + start, start, size, size, 0] {
            bytes.extend(number.to_le_bytes());
        }
    }
    bytes.extend(note);
    bytes.resize(4096, 0);
    for page in 0..5_u32 {
        bytes.extend((0..1024_u32).flat_map(|n| (n / 7 * (page + 1)).to_le_bytes()));
    }
    bytes
}
