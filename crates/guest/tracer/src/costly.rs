//! Tells instructions that take many times as long as others by their bytes, as the guest executes
//! them. What each costs on a processor is `model::Costly`'s, which has the same kinds in the same
//! order.
//!
//! A kernel with one processor writes a DS prefix over each LOCK prefix (`alternatives_smp_unlock`
//! in arch/x86/kernel/alternative.c): such an instruction counts as locked, as it is elsewhere.

/// A kind of instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Costly {
    Locked,
    Exchange,
    Fence,
    LoadFence,
    Clock,
    Random,
    Identify,
    Msr,
    Entry,
    Base,
    Invalidate,
    AddressSpace,
    Control,
    Flags,
    Interrupts,
    Division,
    LongDivision,
    Indirect,
    Thunk,
    Words,
    Bytes,
    Scan,
    Pause,
    State,
    Buffers,
    Segment,
    Return,
    /// The first instruction that an exception executes: the processor delivered it.
    Exception,
}

/// Number of kinds.
pub(crate) const COSTLY: usize = WORDS.len();

/// Their words in the counts, in the order of their numbers.
const WORDS: [&str; 28] = [
    "locked",
    "exchange",
    "fence",
    "load-fence",
    "clock",
    "random",
    "identify",
    "msr",
    "entry",
    "base",
    "invalidate",
    "address-space",
    "control",
    "flags",
    "interrupts",
    "division",
    "long-division",
    "indirect",
    "thunk",
    "words",
    "bytes",
    "scan",
    "pause",
    "state",
    "buffers",
    "segment",
    "return",
    "exception",
];

/// Bits of an instruction that say what it is.
struct Parts<'a> {
    has_lock: bool,
    has_ds: bool,
    has_operand_prefix: bool,
    repeats: bool,
    is_64_bit: bool,
    code: &'a [u8],
}

impl<'a> Parts<'a> {
    /// Takes the prefixes off (Intel SDM, volume 2, 2.1.1 and 2.2.1).
    fn of(bytes: &'a [u8]) -> Self {
        let mut parts = Self {
            has_lock: false,
            has_ds: false,
            has_operand_prefix: false,
            repeats: false,
            is_64_bit: false,
            code: bytes,
        };
        while let [first, rest @ ..] = parts.code {
            match first {
                0xf0 => parts.has_lock = true,
                0x3e => parts.has_ds = true,
                0x66 => parts.has_operand_prefix = true,
                0xf2 | 0xf3 => parts.repeats = true,
                0x26 | 0x2e | 0x36 | 0x64 | 0x65 | 0x67 => {}
                0x40..=0x4f => parts.is_64_bit = first & 8 != 0,
                _ => break,
            }
            parts.code = rest;
        }
        parts
    }

    /// Tells whether a LOCK prefix may stand before it: it changes memory in one of these ways
    /// (Intel SDM, volume 2, LOCK).
    fn may_be_locked(&self) -> bool {
        let (operand, is_lockable) = match *self.code {
            [first @ 0x00..=0x31, modrm, ..] if first & 7 <= 1 => (modrm, true),
            [0x80 | 0x81 | 0x83, modrm, ..] => (modrm, digit(modrm) != 7),
            [0xf6 | 0xf7, modrm, ..] => (modrm, matches!(digit(modrm), 2 | 3)),
            [0xfe | 0xff, modrm, ..] => (modrm, digit(modrm) <= 1),
            [
                0x0f,
                0xb0 | 0xb1 | 0xc0 | 0xc1 | 0xab | 0xb3 | 0xbb,
                modrm,
                ..,
            ] => (modrm, true),
            [0x0f, 0xba, modrm, ..] => (modrm, digit(modrm) >= 5),
            [0x0f, 0xc7, modrm, ..] => (modrm, digit(modrm) == 1),
            _ => return false,
        };
        is_lockable && is_memory(operand)
    }
}

/// Returns the digit of an opcode with one: the register field of its operand byte.
fn digit(modrm: u8) -> u8 {
    modrm >> 3 & 7
}

fn is_memory(modrm: u8) -> bool {
    modrm < 0xc0
}

impl Costly {
    /// Returns the kind of an instruction, if it is a costly one. `before` is the one that the guest
    /// executed before it in the same block.
    pub(crate) fn of(bytes: &[u8], before: &[u8]) -> Option<Self> {
        let parts = Parts::of(bytes);
        if parts.has_lock || parts.has_ds && parts.may_be_locked() {
            return Some(Self::Locked);
        }
        match *parts.code {
            [0x86 | 0x87, modrm, ..] if is_memory(modrm) => Some(Self::Locked),
            [0x90, ..] if parts.repeats => Some(Self::Pause),
            [0x9d, ..] => Some(Self::Flags),
            [0xfa | 0xfb, ..] => Some(Self::Interrupts),
            [0xcf, ..] => Some(Self::Return),
            [0xc3, ..] if is_store_of_return_address(before) => Some(Self::Thunk),
            [0xa4 | 0xaa, ..] if parts.repeats => Some(Self::Bytes),
            [0xa5 | 0xab, ..] if parts.repeats => Some(Self::Words),
            [0xa6 | 0xa7 | 0xac..=0xaf, ..] if parts.repeats => Some(Self::Scan),
            [0x8e, ..] => Some(Self::Segment),
            [0xf6, modrm, ..] if digit(modrm) >= 6 => Some(Self::Division),
            [0xf7, modrm, ..] if digit(modrm) >= 6 && parts.is_64_bit => Some(Self::LongDivision),
            [0xf7, modrm, ..] if digit(modrm) >= 6 => Some(Self::Division),
            [0xff, modrm, ..] if matches!(digit(modrm), 2 | 4) => Some(Self::Indirect),
            [0x0f, ref rest @ ..] => Self::of_two_bytes(&parts, rest),
            _ => None,
        }
    }

    /// Returns its word.
    pub(crate) fn word(self) -> &'static str {
        WORDS[self as usize]
    }

    fn of_two_bytes(parts: &Parts<'_>, code: &[u8]) -> Option<Self> {
        match *code {
            [0x05 | 0x07, ..] => Some(Self::Entry),
            [0x00, modrm, ..] if matches!(digit(modrm), 4 | 5) => Some(Self::Buffers),
            [0x00, modrm, ..] if matches!(digit(modrm), 2 | 3) => Some(Self::Control),
            [0x01, modrm, ..] => Self::of_system(modrm),
            [0x02 | 0x03, ..] => Some(Self::Segment),
            [0x06 | 0x09, ..] => Some(Self::Control),
            [0x22, modrm, ..] if digit(modrm) == 3 => Some(Self::AddressSpace),
            [0x22, ..] => Some(Self::Control),
            [0x30 | 0x32 | 0x33, ..] => Some(Self::Msr),
            [0x31, ..] => Some(Self::Clock),
            [0xa2, ..] => Some(Self::Identify),
            [0x38, 0x82, ..] if parts.has_operand_prefix => Some(Self::Invalidate),
            [0xae, modrm, ..] if !is_memory(modrm) && parts.repeats => Some(Self::Base),
            [0xae, modrm, ..] if !is_memory(modrm) => match digit(modrm) {
                5 => Some(Self::LoadFence),
                6 | 7 => Some(Self::Fence),
                _ => None,
            },
            [0xae, modrm, ..] if !parts.has_operand_prefix => {
                matches!(digit(modrm), 0 | 1 | 4 | 5 | 6).then_some(Self::State)
            }
            [0xb0 | 0xb1, modrm, ..] if is_memory(modrm) => Some(Self::Exchange),
            [0xc7, modrm, ..] if is_memory(modrm) => match digit(modrm) {
                1 => Some(Self::Exchange),
                3..=5 => Some(Self::State),
                _ => None,
            },
            [0xc7, modrm, ..] if digit(modrm) >= 6 => Some(Self::Random),
            _ => None,
        }
    }

    /// Of 0F 01, by its operand byte.
    fn of_system(modrm: u8) -> Option<Self> {
        match modrm {
            0xca | 0xcb => Some(Self::Interrupts),
            0xf8 => Some(Self::Base),
            0xf9 => Some(Self::Clock),
            _ if is_memory(modrm) && digit(modrm) == 7 => Some(Self::Invalidate),
            _ if is_memory(modrm) && matches!(digit(modrm), 2 | 3) => Some(Self::Control),
            _ => None,
        }
    }
}

/// Tells whether an instruction is MOV of a register to where RSP points: before a RET, that is how
/// a retpoline jumps (`RETPOLINE` in arch/x86/lib/retpoline.S).
fn is_store_of_return_address(bytes: &[u8]) -> bool {
    matches!(*bytes, [0x48 | 0x4c, 0x89, modrm, 0x24] if modrm & 0xc7 == 0x04)
}

#[cfg(test)]
mod tests {
    use super::{COSTLY, Costly};

    #[track_caller]
    fn is(bytes: &[u8], kind: Option<Costly>) {
        assert_eq!(Costly::of(bytes, &[]), kind, "{bytes:02x?}");
    }

    #[test]
    fn last_kind_has_the_last_word() {
        assert_eq!(Costly::Exception as usize + 1, COSTLY);
        assert_eq!(Costly::Exception.word(), "exception");
        assert_eq!(Costly::Thunk.word(), "thunk");
    }

    #[test]
    fn locked_instructions_are_locked_on_one_processor_too() {
        let locked = Some(Costly::Locked);
        is(&[0xf0, 0x48, 0x0f, 0xb1, 0x17], locked);
        is(&[0x3e, 0x48, 0x0f, 0xb1, 0x17], locked);
        is(&[0x3e, 0xff, 0x4f, 0x08], locked);
        is(&[0x3e, 0x83, 0x44, 0x24, 0xfc, 0x00], locked);
        is(&[0x48, 0x87, 0x07], locked);
        is(&[0x3e, 0xff, 0xe0], Some(Costly::Indirect));
        is(&[0x3e, 0x48, 0x8b, 0x07], None);
        is(&[0x48, 0x87, 0xc3], None);
        is(&[0x65, 0x48, 0x0f, 0xb1, 0x17], Some(Costly::Exchange));
        is(&[0x65, 0x48, 0x0f, 0xc7, 0x0f], Some(Costly::Exchange));
    }

    #[test]
    fn system_instructions_have_kinds() {
        is(&[0x0f, 0x05], Some(Costly::Entry));
        is(&[0x48, 0x0f, 0x07], Some(Costly::Entry));
        is(&[0x48, 0xcf], Some(Costly::Return));
        is(&[0x0f, 0x01, 0xf8], Some(Costly::Base));
        is(&[0xf3, 0x48, 0x0f, 0xae, 0xd8], Some(Costly::Base));
        is(&[0x0f, 0x01, 0xf9], Some(Costly::Clock));
        is(&[0x0f, 0x31], Some(Costly::Clock));
        is(&[0x0f, 0x01, 0x38], Some(Costly::Invalidate));
        is(
            &[0x66, 0x0f, 0x38, 0x82, 0x04, 0x24],
            Some(Costly::Invalidate),
        );
        is(&[0x0f, 0x22, 0xd8], Some(Costly::AddressSpace));
        is(&[0x0f, 0x22, 0xe0], Some(Costly::Control));
        is(&[0x0f, 0x30], Some(Costly::Msr));
        is(&[0x0f, 0xa2], Some(Costly::Identify));
        is(&[0x48, 0x0f, 0xc7, 0xf0], Some(Costly::Random));
        is(&[0x9d], Some(Costly::Flags));
        is(&[0xfa], Some(Costly::Interrupts));
        is(&[0x0f, 0x01, 0xcb], Some(Costly::Interrupts));
        is(&[0x0f, 0x00, 0x2d, 0, 0, 0, 0], Some(Costly::Buffers));
        is(&[0x48, 0x0f, 0xae, 0x27], Some(Costly::State));
        is(&[0x48, 0x0f, 0xc7, 0x2f], Some(Costly::State));
        is(&[0x8e, 0xe0], Some(Costly::Segment));
    }

    #[test]
    fn arithmetic_and_strings_have_kinds() {
        is(&[0x48, 0xf7, 0xf1], Some(Costly::LongDivision));
        is(&[0xf7, 0xf9], Some(Costly::Division));
        is(&[0x48, 0xf7, 0xe1], None);
        is(&[0xf3, 0x48, 0xab], Some(Costly::Words));
        is(&[0xf3, 0xa4], Some(Costly::Bytes));
        is(&[0xf2, 0xae], Some(Costly::Scan));
        is(&[0x48, 0xab], None);
        is(&[0xf3, 0x90], Some(Costly::Pause));
        is(&[0x90], None);
        is(&[0x0f, 0xae, 0xe8], Some(Costly::LoadFence));
        is(&[0x0f, 0xae, 0xf0], Some(Costly::Fence));
        is(&[0xff, 0xd0], Some(Costly::Indirect));
        is(&[0xff, 0x75, 0x08], None);
    }

    #[test]
    fn return_of_retpoline_is_a_thunk() {
        let store = [0x48, 0x89, 0x04, 0x24];
        assert_eq!(Costly::of(&[0xc3], &store), Some(Costly::Thunk));
        assert_eq!(Costly::of(&[0xc3], &[0x48, 0x89, 0x44, 0x24, 8]), None);
    }

    #[test]
    fn every_byte_string_has_an_answer() {
        for first in 0..=u8::MAX {
            for second in 0..=u8::MAX {
                let _kind = Costly::of(&[first, second], &[]);
                let _kind = Costly::of(&[0x0f, first, second], &[]);
            }
        }
        is(&[], None);
    }
}
