//! A cache, or a translation buffer: so many sets of so many ways, the least recently used way is
//! replaced.

/// No line has this number.
const EMPTY: u64 = u64::MAX;

/// Its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Geometry {
    /// Sets, a power of two.
    pub(crate) sets: usize,
    /// Ways of each.
    pub(crate) ways: usize,
}

impl Geometry {
    /// Reads `SETS/WAYS`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (sets, ways) = text.split_once('/')?;
        let (sets, ways) = (sets.parse::<usize>().ok()?, ways.parse::<usize>().ok()?);
        let is_sound = sets.is_power_of_two() && sets <= 1 << 20 && (1..=64).contains(&ways);
        is_sound.then_some(Self { sets, ways })
    }
}

/// What it holds.
pub(crate) struct Cache {
    mask: u64,
    ways: usize,
    /// The lines of each set, the one that was used last first.
    lines: Vec<u64>,
}

impl Cache {
    /// Makes an empty one.
    pub(crate) fn new(Geometry { sets, ways }: Geometry) -> Self {
        Self {
            mask: sets as u64 - 1,
            ways,
            lines: vec![EMPTY; sets * ways],
        }
    }

    /// Uses a line, which it holds afterwards; tells whether it held it before.
    #[inline]
    pub(crate) fn touch(&mut self, line: u64) -> bool {
        let first = (line & self.mask) as usize * self.ways;
        self.lines[first] == line || self.search(first, line)
    }

    /// Looks for a line behind the first place of its set, and brings it there.
    #[inline(never)]
    fn search(&mut self, first: usize, line: u64) -> bool {
        // Each line moves to the place after its own, up to where the line is found.
        let mut moved = line;
        for held in &mut self.lines[first..first + self.ways] {
            std::mem::swap(held, &mut moved);
            if moved == line {
                return true;
            }
        }
        false
    }

    /// Forgets all lines for which `gone` is true.
    pub(crate) fn forget(&mut self, gone: impl Fn(u64) -> bool) {
        self.lines
            .iter_mut()
            .filter(|line| gone(**line))
            .for_each(|line| *line = EMPTY);
    }
}

#[cfg(test)]
mod tests {
    use super::{Cache, Geometry};

    #[test]
    fn the_line_that_was_not_used_for_longest_goes() {
        let mut cache = Cache::new(Geometry::parse("2/2").unwrap());
        assert!(!cache.touch(0) && !cache.touch(2) && cache.touch(0));
        // A third line of the same set takes the place of 2; 1 is of the other set.
        assert!(!cache.touch(4) && !cache.touch(1));
        assert!(cache.touch(0) && cache.touch(1) && !cache.touch(2));
        cache.forget(|line| line == 1);
        assert!(!cache.touch(1) && cache.touch(2));
    }

    #[test]
    fn sizes_are_sets_and_ways() {
        assert_eq!(
            Geometry::parse("64/8"),
            Some(Geometry { sets: 64, ways: 8 })
        );
        for wrong in ["", "64", "63/8", "64/0", "64/65", "0/1", "4194304/1", "x/1"] {
            assert_eq!(Geometry::parse(wrong), None, "{wrong}");
        }
    }

    proptest::proptest! {
        /// A fully associative one holds exactly the last lines that were used.
        #[test]
        fn one_set_holds_the_last_lines(used in proptest::collection::vec(0_u64..12, 1..200)) {
            let mut cache = Cache::new(Geometry { sets: 1, ways: 5 });
            let mut last: Vec<u64> = Vec::new();
            for line in used {
                let was = last.iter().position(|held| *held == line);
                proptest::prop_assert_eq!(cache.touch(line), was.is_some());
                last.retain(|held| *held != line);
                last.insert(0, line);
                last.truncate(5);
            }
        }
    }
}
