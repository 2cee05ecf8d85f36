//! Single instructions of x86-64: what they do to the order of instructions, and their bytes
//! without what depends on where code and data lie (Intel SDM, volume 2, chapter 2 and appendix A).

use model::PathKind;

/// The kernel's image, as the low half of an address that is sign-extended
/// (Documentation/arch/x86/x86_64/mm.rst: `__START_KERNEL_map`, 1 GiB).
const IMAGE: std::ops::Range<u32> = 0x8000_0000..0xc000_0000;

/// An instruction's opcode and where its operands begin.
#[derive(Debug, Clone, Copy)]
struct Opcode {
    /// 0 for the opcodes of one byte, 0x0f for those behind it.
    map: u8,
    byte: u8,
    /// Index of what follows.
    behind: usize,
}

/// Finds the opcode behind the prefixes.
fn opcode(bytes: &[u8]) -> Option<Opcode> {
    let is_prefix = |byte: &&u8| {
        matches!(
            byte,
            0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3
        )
    };
    let mut at = bytes.iter().take_while(is_prefix).count();
    // REX.
    at += usize::from(matches!(bytes.get(at)?, 0x40..=0x4f));
    let byte = *bytes.get(at)?;
    if byte != 0x0f {
        return Some(Opcode {
            map: 0,
            byte,
            behind: at + 1,
        });
    }
    let second = *bytes.get(at + 1)?;
    let longer = usize::from(matches!(second, 0x38 | 0x3a));
    Some(Opcode {
        map: 0x0f,
        byte: second,
        behind: at + 2 + longer,
    })
}

/// Returns what an instruction does to the order.
pub(crate) fn kind(bytes: &[u8]) -> PathKind {
    let Some(opcode) = opcode(bytes) else {
        return PathKind::Plain;
    };
    let operation = bytes.get(opcode.behind).map(|modrm| modrm >> 3 & 7);
    match (opcode.map, opcode.byte) {
        (0, 0xe8) => PathKind::Call,
        (0, 0xff) if operation == Some(2) => PathKind::Call,
        (0, 0xc2 | 0xc3) => PathKind::Return,
        (0, 0xcf) => PathKind::InterruptReturn,
        (0x0f, 0x07) => PathKind::SystemReturn,
        _ => PathKind::Plain,
    }
}

/// Returns how far behind an instruction the code is that it calls or jumps to.
pub(crate) fn distance(bytes: &[u8]) -> Option<i64> {
    let opcode = opcode(bytes)?;
    match (opcode.map, opcode.byte) {
        (0, 0xe8 | 0xe9) | (0x0f, 0x80..=0x8f) => {
            let last: [u8; 4] = bytes.get(opcode.behind..)?.try_into().ok()?;
            Some(i64::from(i32::from_le_bytes(last)))
        }
        (0, 0xeb | 0x70..=0x7f | 0xe0..=0xe3) => {
            let last: [u8; 1] = bytes.get(opcode.behind..)?.try_into().ok()?;
            Some(i64::from(i8::from_le_bytes(last)))
        }
        _ => None,
    }
}

/// Returns the bytes without distances and addresses. Near and short jumps are the same.
pub(crate) fn shape(bytes: &[u8]) -> Vec<u8> {
    let Some(opcode) = opcode(bytes) else {
        return bytes.to_vec();
    };
    if distance(bytes).is_some() {
        let byte = match (opcode.map, opcode.byte) {
            (0x0f, byte) => byte - 0x10,
            (_, 0xe9) => 0xeb,
            (_, byte) => byte,
        };
        return vec![byte];
    }
    let mut shape = bytes.to_vec();
    // A mod of 0 with 5 is an address relative to the next instruction.
    if has_modrm(opcode)
        && bytes
            .get(opcode.behind)
            .is_some_and(|modrm| modrm & 0xc7 == 5)
        && let Some(address) = shape.get_mut(opcode.behind + 1..opcode.behind + 5)
    {
        address.fill(0);
        return shape;
    }
    for at in opcode.behind..bytes.len().saturating_sub(3) {
        if let Ok(four) = bytes[at..at + 4].try_into()
            && IMAGE.contains(&u32::from_le_bytes(four))
        {
            shape[at..at + 4].fill(0);
            break;
        }
    }
    shape
}

fn has_modrm(opcode: Opcode) -> bool {
    let without = match opcode.map {
        0 => {
            matches!(
                opcode.byte,
                0x50..=0x5f | 0x68 | 0x6a | 0x6c..=0x7f | 0x90..=0xbf | 0xc2 | 0xc3 | 0xc8..=0xcf
                    | 0xd4..=0xd7
                    | 0xe0..=0xef | 0xf1 | 0xf4 | 0xf5 | 0xf8..=0xfd
            ) || opcode.byte < 0x40 && opcode.byte & 7 > 3
        }
        _ => matches!(
            opcode.byte,
            0x05..=0x0b | 0x30..=0x37 | 0x77 | 0x80..=0x8f | 0xa0..=0xa2 | 0xa8..=0xaa | 0xc8..=0xcf
        ),
    };
    !without
}

#[cfg(test)]
mod tests {
    use model::PathKind;
    use proptest::prelude::{any, proptest};

    use super::{distance, kind, shape};

    #[test]
    fn calls_and_returns_are_recognised() {
        assert_eq!(kind(&[0xe8, 1, 0, 0, 0]), PathKind::Call);
        assert_eq!(kind(&[0xff, 0xd0]), PathKind::Call);
        assert_eq!(kind(&[0x2e, 0xff, 0x15, 0, 0, 0, 0]), PathKind::Call);
        assert_eq!(kind(&[0xff, 0xe0]), PathKind::Plain, "a jump");
        assert_eq!(kind(&[0xf3, 0xc3]), PathKind::Return);
        assert_eq!(kind(&[0x48, 0xcf]), PathKind::InterruptReturn);
        assert_eq!(kind(&[0x48, 0x0f, 0x07]), PathKind::SystemReturn);
    }

    #[test]
    fn places_are_no_part_of_a_shape() {
        // Two calls, a short and a near jump, and data by its distance and by its address.
        assert_eq!(shape(&[0xe8, 1, 0, 0, 0]), shape(&[0xe8, 0, 0, 7, 0]));
        assert_eq!(shape(&[0x74, 5]), shape(&[0x0f, 0x84, 5, 1, 0, 0]));
        assert_eq!(
            shape(&[0x48, 0x8b, 0x05, 1, 2, 3, 0]),
            shape(&[0x48, 0x8b, 0x05, 9, 9, 9, 0])
        );
        assert_eq!(
            shape(&[0x48, 0xc7, 0xc7, 0x10, 0x20, 0x30, 0x82]),
            shape(&[0x48, 0xc7, 0xc7, 0x50, 0x60, 0x70, 0x81])
        );
        assert_ne!(
            shape(&[0xb9, 0x64, 0, 0, 0]),
            shape(&[0xb9, 0x63, 0, 0, 0]),
            "a constant"
        );
        assert_eq!(distance(&[0xeb, 0xfe]), Some(-2));
    }

    proptest! {
        #[test]
        fn any_bytes_have_a_shape(bytes in proptest::collection::vec(any::<u8>(), 0..16)) {
            assert!(shape(&bytes).len() <= bytes.len().max(1));
            kind(&bytes);
            distance(&bytes);
        }
    }
}
