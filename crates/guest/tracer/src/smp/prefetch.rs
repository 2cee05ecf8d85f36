//! PREFETCHW: takes its line as a write does (Intel SDM, volume 2), and QEMU executes it as nothing.
//! Its operand is read here from the instruction's bytes, and its address from the registers when it
//! executes. What becomes of the line is left to `sharing.rs`.

/// Registers of a processor, in the order of their numbers in instructions.
pub(super) type Registers = [u64; 16];

/// The operand of a prefetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Operand {
    base: Option<u8>,
    /// A register and the power of two that it is multiplied by.
    index: Option<(u8, u8)>,
    /// With the address of the next instruction where that is the base.
    distance: u64,
}

/// PREFETCHW, and PREFETCHWT1 (as above).
const FOR_WRITING: [u8; 2] = [1, 2];
/// What stands for another form of address, or for none, in three bits.
const SIB: u8 = 4;
const NO_BASE: u8 = 5;

impl Operand {
    /// Returns what an instruction prefetches in order to write; `None` if it is none of these, or
    /// its address needs a segment.
    pub(super) fn of(address: u64, bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        while let [0x2e | 0x3e | 0x66 | 0xf2 | 0xf3, after @ ..] = rest {
            rest = after;
        }
        let mut extension = 0;
        if let [rex @ 0x40..=0x4f, after @ ..] = rest {
            extension = *rex;
            rest = after;
        }
        let [0x0f, 0x0d, modes, after @ ..] = rest else {
            return None;
        };
        let (form, kind, register) = (modes >> 6, modes >> 3 & 7, modes & 7);
        if form == 3 || !FOR_WRITING.contains(&kind) {
            return None;
        }
        let [of_base, of_index] = [extension << 3 & 8, extension << 2 & 8];
        let next = address.wrapping_add(bytes.len() as u64);
        let mut operand = Self {
            base: Some(register | of_base),
            index: None,
            distance: 0,
        };
        let mut rest = after;
        let mut low = register;
        if register == SIB {
            let [sib, after @ ..] = rest else { return None };
            rest = after;
            low = sib & 7;
            operand.base = Some(low | of_base);
            let index = sib >> 3 & 7 | of_index;
            operand.index = (index != SIB).then_some((index, sib >> 6));
        }
        let is_far = form == 2 || form == 0 && low == NO_BASE;
        if form == 0 && low == NO_BASE {
            operand.base = None;
            operand.distance = if register == SIB { 0 } else { next };
        }
        let distance = match (form, is_far) {
            (_, true) => i64::from(i32::from_le_bytes(*rest.first_chunk()?)),
            (1, false) => i64::from(*rest.first()? as i8),
            _ => 0,
        };
        operand.distance = operand.distance.wrapping_add_signed(distance);
        Some(operand)
    }

    /// Returns the address.
    pub(super) fn address(&self, registers: &Registers) -> u64 {
        let of = |number: u8| registers[usize::from(number) % registers.len()];
        let base = self.base.map_or(0, of);
        let index = self.index.map_or(0, |(number, power)| of(number) << power);
        base.wrapping_add(index).wrapping_add(self.distance)
    }
}

#[cfg(test)]
mod tests {
    use super::{Operand, Registers};
    use proptest::prelude::*;

    fn registers() -> Registers {
        std::array::from_fn(|number| 0x1000 * (number as u64 + 1))
    }

    fn address_of(bytes: &[u8]) -> Option<u64> {
        Operand::of(0x400, bytes).map(|operand| operand.address(&registers()))
    }

    /// As the GNU assembler writes them.
    #[test]
    fn operands_are_those_of_the_assembler() {
        let cases: [(&[u8], u64); 9] = [
            // (%rdi)
            (&[0x0f, 0x0d, 0x0f], 0x8000),
            // 0x70(%rbx)
            (&[0x0f, 0x0d, 0x4b, 0x70], 0x4070),
            // -8(%r13)
            (&[0x41, 0x0f, 0x0d, 0x4d, 0xf8], 0xdff8),
            // 0x12345678(%rax)
            (
                &[0x0f, 0x0d, 0x88, 0x78, 0x56, 0x34, 0x12],
                0x1000 + 0x1234_5678,
            ),
            // (%rsp)
            (&[0x0f, 0x0d, 0x0c, 0x24], 0x5000),
            // (%r12)
            (&[0x41, 0x0f, 0x0d, 0x0c, 0x24], 0xd000),
            // 0x10(%rax,%r9,4)
            (
                &[0x42, 0x0f, 0x0d, 0x4c, 0x88, 0x10],
                0x1000 + 4 * 0xa000 + 0x10,
            ),
            // 0x100(%rip)
            (
                &[0x0f, 0x0d, 0x0d, 0x00, 0x01, 0x00, 0x00],
                0x400 + 7 + 0x100,
            ),
            // 0x100
            (&[0x0f, 0x0d, 0x0c, 0x25, 0x00, 0x01, 0x00, 0x00], 0x100),
        ];
        for (bytes, address) in cases {
            assert_eq!(address_of(bytes), Some(address), "{bytes:x?}");
        }
    }

    #[test]
    fn other_instructions_prefetch_nothing_for_writing() {
        // PREFETCH of AMD, PREFETCHT0, one with a segment, a long NOP, and one that is cut off.
        let others: [&[u8]; 5] = [
            &[0x0f, 0x0d, 0x07],
            &[0x0f, 0x18, 0x0f],
            &[0x65, 0x0f, 0x0d, 0x0f],
            &[0x0f, 0x1f, 0x40, 0x00],
            &[0x0f, 0x0d, 0x4b],
        ];
        for bytes in others {
            assert_eq!(address_of(bytes), None, "{bytes:x?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_operand_or_none(
            address: u64,
            bytes in proptest::collection::vec(any::<u8>(), 0..16),
            registers: [u64; 16],
        ) {
            if let Some(operand) = Operand::of(address, &bytes) {
                operand.address(&registers);
            }
        }
    }
}
