//! Branch prediction: a textbook's gshare for conditional branches, the last target by history for
//! indirect ones, a stack of return addresses. No processor's own predictor is known well enough to
//! be copied.

/// How a block of instructions ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum End {
    /// In nothing that is predicted: the next block follows, or the target is fixed.
    Plain,
    /// A conditional branch to this address.
    Conditional(u64),
    /// A jump to an address in a register or in memory.
    Jump,
    /// A call of a fixed address.
    Call,
    /// A call of an address in a register or in memory.
    IndirectCall,
    /// A return.
    Return,
}

impl End {
    /// Reads the last instruction of a block; `next` is the address after it.
    pub(crate) fn of(bytes: &[u8], next: u64) -> Self {
        let prefixes = bytes
            .iter()
            .take_while(|byte| matches!(byte, 0x40..=0x4f | 0x2e | 0x3e | 0xf2 | 0xf3))
            .count();
        let relative = |offset: i64| next.wrapping_add_signed(offset);
        match bytes[prefixes..] {
            // Jcc, LOOP and JRCXZ (Intel SDM, volume 2).
            [0x70..=0x7f | 0xe0..=0xe3, offset] => {
                Self::Conditional(relative(i64::from(offset.cast_signed())))
            }
            [0x0f, 0x80..=0x8f, a, b, c, d] => {
                Self::Conditional(relative(i64::from(i32::from_le_bytes([a, b, c, d]))))
            }
            [0xe8, ..] => Self::Call,
            [0xff, modrm, ..] if modrm >> 3 & 7 == 2 => Self::IndirectCall,
            [0xff, modrm, ..] if modrm >> 3 & 7 == 4 => Self::Jump,
            [0xc3] | [0xc2, ..] => Self::Return,
            _ => Self::Plain,
        }
    }
}

/// Return addresses that are remembered.
const RETURNS: usize = 16;

/// The predictor's memory.
pub(crate) struct Predictor {
    /// Two-bit counters of conditional branches; 2 and 3 mean taken.
    taken: Vec<u8>,
    /// Targets of indirect branches.
    targets: Vec<u64>,
    returns: [u64; RETURNS],
    top: usize,
    /// The last outcomes, the newest in the lowest bit.
    history: u64,
    mask: u64,
    /// Decides which branches share an entry, so that what comes of that differs from seed to
    /// seed.
    salt: u64,
}

impl Predictor {
    /// Makes one that has 2 to the power of `bits` entries for each kind of branch, and as many
    /// outcomes of history as make the index.
    pub(crate) fn new(bits: u32, seed: u64) -> Self {
        let entries = 1_usize << bits;
        let (taken, targets) = (vec![1; entries], vec![0; entries]);
        Self {
            taken,
            targets,
            returns: [0; RETURNS],
            top: 0,
            history: 0,
            mask: entries as u64 - 1,
            salt: spread(seed),
        }
    }

    /// A block that ended at `at`, before `next`, was followed by code at `to`; tells whether that
    /// was predicted.
    #[inline]
    pub(crate) fn follow(&mut self, (end, at, next): (End, u64, u64), to: u64) -> bool {
        match end {
            End::Plain => true,
            End::Conditional(target) => {
                // Something came between that the branch has nothing to do with.
                to != next && to != target || self.conditional(at, to == target)
            }
            End::Jump => self.indirect(at, to),
            End::Call => {
                self.call(next);
                true
            }
            End::IndirectCall => {
                self.call(next);
                self.indirect(at, to)
            }
            End::Return => {
                let predicted = self.returns[self.top];
                self.top = (self.top + RETURNS - 1) % RETURNS;
                predicted == to
            }
        }
    }

    /// A block was followed by something that it has nothing to do with: calls and returns count,
    /// nothing is predicted.
    pub(crate) fn interrupt(&mut self, end: End, next: u64) {
        match end {
            End::Call | End::IndirectCall => self.call(next),
            End::Return => self.top = (self.top + RETURNS - 1) % RETURNS,
            End::Plain | End::Conditional(_) | End::Jump => {}
        }
    }

    fn index(&self, at: u64) -> usize {
        // The upper half of the product depends on all bits of the address.
        let place = at.wrapping_mul(self.salt) >> 32;
        ((place ^ self.history) & self.mask) as usize
    }

    fn conditional(&mut self, at: u64, is_taken: bool) -> bool {
        let index = self.index(at);
        let counter = &mut self.taken[index];
        let predicted = *counter >= 2;
        *counter = if is_taken {
            (*counter + 1).min(3)
        } else {
            counter.saturating_sub(1)
        };
        self.history = (self.history << 1 | u64::from(is_taken)) & self.mask;
        predicted == is_taken
    }

    fn indirect(&mut self, at: u64, to: u64) -> bool {
        let index = self.index(at);
        let target = &mut self.targets[index];
        let predicted = std::mem::replace(target, to);
        predicted == to
    }

    fn call(&mut self, next: u64) {
        self.top = (self.top + 1) % RETURNS;
        self.returns[self.top] = next;
    }
}

/// Returns an odd number whose bits are unlike those of other seeds (the finaliser of SplitMix64).
fn spread(seed: u64) -> u64 {
    let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ mixed >> 31) | 1
}

#[cfg(test)]
mod tests {
    use super::{End, Predictor};

    #[test]
    fn the_last_instruction_tells_how_a_block_ends() {
        assert_eq!(End::of(&[0x74, 0xfe], 0x1002), End::Conditional(0x1000));
        assert_eq!(
            End::of(&[0x0f, 0x85, 0x10, 0, 0, 0], 0x1006),
            End::Conditional(0x1016)
        );
        assert_eq!(
            End::of(&[0x2e, 0x75, 0x01], 0x1003),
            End::Conditional(0x1004)
        );
        assert_eq!(End::of(&[0xe8, 0, 0, 0, 0], 5), End::Call);
        assert_eq!(End::of(&[0x41, 0xff, 0xd3], 3), End::IndirectCall);
        assert_eq!(End::of(&[0xff, 0xe0], 2), End::Jump);
        assert_eq!(End::of(&[0xff, 0x30], 2), End::Plain, "PUSH");
        assert_eq!(End::of(&[0xc3], 1), End::Return);
        assert_eq!(End::of(&[0xeb, 0x10], 2), End::Plain);
        assert_eq!(End::of(&[], 0), End::Plain);
    }

    #[test]
    fn a_loop_is_learned_and_its_end_is_a_surprise() {
        let mut predictor = Predictor::new(4, 1);
        let branch = (End::Conditional(0x100), 0x110, 0x112);
        let mut surprises = 0;
        for round in 0..40 {
            surprises +=
                u32::from(!predictor.follow(branch, if round < 39 { 0x100 } else { 0x112 }));
        }
        // Until the history is full of outcomes, each of them indexes a counter that has not
        // learned yet.
        assert_eq!(surprises, 5 + 1);
        assert!(
            predictor.follow(branch, 0x5000),
            "an interrupt says nothing about the branch"
        );
    }

    #[test]
    fn returns_go_back_to_the_calls_and_retpolines_do_not() {
        let mut predictor = Predictor::new(4, 1);
        assert!(predictor.follow((End::Call, 0x100, 0x105), 0x900));
        assert!(predictor.follow((End::Call, 0x900, 0x905), 0xa00));
        assert!(predictor.follow((End::Return, 0xa10, 0xa11), 0x905));
        assert!(predictor.follow((End::Return, 0x910, 0x911), 0x105));
        // A thunk writes another address over the one that its call left.
        assert!(predictor.follow((End::Call, 0x200, 0x205), 0x300));
        assert!(!predictor.follow((End::Return, 0x304, 0x305), 0x7000));
    }

    #[test]
    fn an_interrupt_leaves_calls_and_returns_paired() {
        let mut predictor = Predictor::new(4, 1);
        assert!(predictor.follow((End::Call, 0x100, 0x105), 0x900));
        predictor.interrupt(End::Call, 0x905);
        predictor.interrupt(End::Return, 0xa11);
        assert!(predictor.follow((End::Return, 0x910, 0x911), 0x105));
    }

    #[test]
    fn which_branches_share_an_entry_depends_on_the_seed() {
        let places = |seed| {
            (0..64)
                .map(|n| Predictor::new(4, seed).index(0x1000 + n))
                .collect::<Vec<_>>()
        };
        assert_eq!(places(1), places(1));
        assert_ne!(places(1), places(2));
    }

    #[test]
    fn an_indirect_call_is_predicted_to_go_where_it_went() {
        let mut predictor = Predictor::new(4, 1);
        let call = (End::IndirectCall, 0x100, 0x102);
        assert!(
            !predictor.follow(call, 0x900)
                && predictor.follow(call, 0x900)
                && !predictor.follow(call, 0xa00)
        );
    }
}
