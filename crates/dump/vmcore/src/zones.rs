//! The zone of a page, which its record has above the flags.

use crate::btf::Types;
use crate::bytes::u64_at;
use crate::note::Info;

/// Records of one section that are asked.
const SAMPLES: u64 = 16;

/// How records say that a page is memory of a device (`ZONE_DEVICE`), such as that of a file system
/// with DAX. Such sections are not online, like those that were taken offline, but have data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeviceZone {
    /// Offset of the flags in a record.
    flags: usize,
    /// Where the zone's number is in the flags, and its bits there.
    shift: u32,
    mask: u64,
    number: u64,
}

impl DeviceZone {
    /// Finds it by the kernel's constants; `None` if it has no such zone.
    pub(crate) fn find(info: &Info, types: &Types) -> Option<Self> {
        let number = u64::from(types.enumerator("ZONE_DEVICE")?);
        let zones = types.enumerator("__MAX_NR_ZONES")?;
        // A kernel without NUMA has no table of nodes.
        let nodes = info.size("LENGTH", "node_data").unwrap_or(1);
        // From the top: the node, the zone (`include/linux/page-flags-layout.h`, where vmemmap
        // needs no section).
        let width = zones.checked_next_power_of_two()?.trailing_zeros();
        let above = nodes.checked_next_power_of_two()?.trailing_zeros() + width;
        let shift = (1..64).contains(&above).then(|| 64 - above)?;
        let mask = (1_u64 << width) - 1;
        Some(Self {
            flags: info.size("OFFSET", "page.flags")?,
            shift,
            mask,
            number,
        })
    }

    /// Returns whether a record is of such a page.
    fn has(&self, record: &[u8]) -> bool {
        u64_at(record, self.flags)
            .is_some_and(|flags| flags >> self.shift & self.mask == self.number)
    }

    /// Returns whether a section of so many pages is memory of a device, by some of its records.
    /// All must say so: those of a block that was never online are not initialised. `read` reads
    /// the record of a page of it. The first half may be records themselves, which have none.
    pub(crate) fn has_section(
        &self,
        pages: u64,
        mut read: impl FnMut(u64) -> Option<Vec<u8>>,
    ) -> bool {
        let step = (pages / 2 / SAMPLES).max(1);
        (0..SAMPLES)
            .map(|n| (pages / 2 + n * step).min(pages - 1))
            .all(|page| read(page).is_some_and(|record| self.has(&record)))
    }
}

#[cfg(test)]
mod tests {
    use super::DeviceZone;

    #[test]
    fn all_sampled_records_name_the_zone() {
        let zone = DeviceZone {
            flags: 0,
            shift: 51,
            mask: 7,
            number: 4,
        };
        let record = |zone: u64| (0x3ff << 54 | zone << 51 | 1).to_le_bytes().to_vec();
        let has = |of: &dyn Fn(u64) -> Option<Vec<u8>>| zone.has_section(32_768, of);
        assert!(has(&|_| Some(record(4))));
        // The start of a device may hold records.
        assert!(has(&|page| Some(record(if page < 16_384 { 0 } else { 4 }))));
        assert!(!has(&|_| Some(record(3))));
        assert!(!has(&|page| Some(record(page % 5))));
        assert!(!has(&|page| (page < 31_000).then(|| record(4))));
    }
}
