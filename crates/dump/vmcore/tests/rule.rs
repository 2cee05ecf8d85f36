//! The exclusion rule on synthetic dumps: every kind of page, in every layout of records, at every
//! level.

use std::collections::BTreeSet;
use std::error::Error;
use std::ops::Range;

use synthetic_dumps::{HURT, KERNELS, Machine, Synthetic};
use vmcore::{Dump, Filter, Io, Level, Plan, Reader, Work};

type Outcome = Result<(), Box<dyn Error>>;

/// One of each kind, in several orders; between them unclassified pages, which are kept.
const ALL: &str = "
    0x010     anon
    0x011     ksm
    0x012     cache
    0x013     private
    0x014     swap
    0x015     halfswap
    0x016     slab
    0x017     poisoned
    0x018     offline
    0x019     reserved
    0x01a     kernel
    0x01b     badorder
    0x01c     free
    0x01d+3   listed
    0x030+2   listed   1
    0x020+4   anon     2
    0x040+2   cache    3
    0x060     private  4
    0x080     free     5
    0x0c0     slab     5
    0x100+2   free     6
    0x200     huge     9
    0x400     anon     9
    0x600     cache    9
    0x980+4   listed   3
    0x9a0     anon     5
    0x9f0+16  cache
    0xa00+65  anon
    0xe00     listed   9
";

/// The levels that drop a kind: one of these bits is enough.
fn dropped_by(kind: &str) -> u8 {
    match kind {
        "anon" | "ksm" | "huge" => 8,
        "cache" => 2 | 4,
        // Pages of the swap cache with anonymous data are marked in their mapping; these are not.
        "swap" => 2 | 4,
        "private" => 4,
        "free" | "unaccepted" | "listed" => 16,
        "poisoned" | "offline" => 2 | 4 | 8 | 16,
        _ => 0,
    }
}

fn work(io: Io, threads: usize) -> Work {
    Work {
        threads,
        io,
        memory: 64 << 20,
        folder: None,
    }
}

/// Returns the pages that a level drops.
fn dropped(dump: &Dump, level: u8, work: &Work) -> Result<BTreeSet<u64>, Box<dyn Error>> {
    let level = Level::new(level).ok_or("no level")?;
    let filter = Filter::new(&mut Reader::new(dump, work.io), level)?;
    let plan = Plan::make(dump, Some(&filter), work)?;
    let all: u64 = plan.counts().dropped.iter().sum();
    let memory: BTreeSet<u64> = Plan::make(dump, None, work)?
        .kept_pages()?
        .into_iter()
        .collect();
    let pages: BTreeSet<u64> = plan.kept_pages()?.into_iter().collect();
    assert_eq!(
        memory.len() - pages.len(),
        usize::try_from(all)?,
        "what was counted is what was dropped"
    );
    assert_eq!(plan.counts().unknown, 0);
    Ok(memory.difference(&pages).copied().collect())
}

fn expected(synthetic: &Synthetic, level: u8) -> Result<BTreeSet<u64>, Box<dyn Error>> {
    let groups = synthetic.groups().ok_or("a wrong group")?;
    let gone = groups
        .iter()
        .filter(|group| dropped_by(&group.kind) & level != 0);
    let pages: BTreeSet<u64> = gone.flat_map(|group| group.pages.clone()).collect();
    Ok(pages
        .into_iter()
        .filter(|page| synthetic.memory.iter().any(|range| range.contains(page)))
        .collect())
}

fn check(synthetic: &Synthetic, levels: Range<u8>) -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("vmcore");
    synthetic.write(&path)?;
    let dump = Dump::open(&[path])?;
    for level in levels {
        let found = dropped(&dump, level, &work(Io::Map, 1))?;
        let wanted = expected(synthetic, level)?;
        let more: Vec<_> = found
            .difference(&wanted)
            .map(|page| format!("{page:#x}"))
            .collect();
        let less: Vec<_> = wanted
            .difference(&found)
            .map(|page| format!("{page:#x}"))
            .collect();
        let kernel = synthetic.kernel.release;
        assert!(
            more.is_empty() && less.is_empty(),
            "{kernel} level {level}: dropped {more:?}, did not drop {less:?}"
        );
        assert_eq!(
            found,
            dropped(&dump, level, &work(Io::Read, 2))?,
            "by reading, with threads"
        );
    }
    Ok(())
}

#[test]
fn page_kinds_are_dropped_at_levels_per_layout() -> Outcome {
    for kernel in KERNELS {
        let unaccepted = if kernel.has_unaccepted() {
            "\n 0xc00 unaccepted 9\n"
        } else {
            ""
        };
        let groups = format!("{ALL}{unaccepted}");
        check(
            &Synthetic {
                kernel,
                groups,
                ..Synthetic::default()
            },
            2..32,
        )?;
    }
    Ok(())
}

#[test]
fn page_table_depth_and_record_layout_change_nothing() -> Outcome {
    for levels in [4, 5] {
        for scattered in [false, true] {
            let groups = ALL.to_owned();
            check(
                &Synthetic {
                    levels,
                    scattered,
                    groups,
                    ..Synthetic::default()
                },
                31..32,
            )?;
        }
    }
    Ok(())
}

#[test]
fn memory_of_arm_is_filtered_too() -> Outcome {
    for scattered in [false, true] {
        let groups = ALL.to_owned();
        check(
            &Synthetic {
                machine: Machine::Aarch64,
                scattered,
                groups,
                ..Synthetic::default()
            },
            2..32,
        )?;
    }
    // The first two pages of the image; the third is mapped among it, but is no part of it.
    let groups = "0x13e8 garbage\n 0x13e9 garbage\n 0x1ff0 garbage".to_owned();
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("vmcore");
    Synthetic {
        machine: Machine::Aarch64,
        groups,
        ..Synthetic::default()
    }
    .write(&path)?;
    let dump = Dump::open(&[path])?;
    assert_eq!(
        dropped(&dump, 31, &work(Io::Map, 1))?
            .into_iter()
            .collect::<Vec<_>>(),
        [0x1ff0]
    );
    Ok(())
}

#[test]
fn memory_with_holes_is_filtered_around_them() -> Outcome {
    // A hole inside a section, one of several sections, and an end inside a section and inside a
    // word.
    let memory = vec![0..0x12, 0x18..0x210, 0x700..0x9f5, 0x1000..0x1fe1];
    let groups = ALL.to_owned();
    check(
        &Synthetic {
            memory,
            groups,
            ..Synthetic::default()
        },
        2..32,
    )
}

#[test]
fn compound_pages_reach_over_sections() -> Outcome {
    // Sections of 0x200 pages: one of 0x800 pages begins in a section and fills three more.
    let groups = "0x800 huge 11\n 0x400 anon 10\n".to_owned();
    for kernel in KERNELS {
        for scattered in [false, true] {
            check(
                &Synthetic {
                    kernel,
                    groups: groups.clone(),
                    scattered,
                    ..Synthetic::default()
                },
                8..9,
            )?;
        }
    }
    Ok(())
}

#[test]
fn broken_pages_of_kept_blocks_are_dropped() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("vmcore");
    for kernel in KERNELS {
        // One within a section, and one that begins in a section and whose broken page is found
        // from its head.
        Synthetic {
            kernel,
            groups: "0x100 hurt 5\n 0x400 hurt 10".to_owned(),
            ..Synthetic::default()
        }
        .write(&path)?;
        let dump = Dump::open(std::slice::from_ref(&path))?;
        for level in [0, 1, 2, 8, 16, 31] {
            // Filters of the levels 0 and 1 drop what may not be read, too.
            let found: Vec<u64> = dropped(&dump, level, &work(Io::Map, 1))?
                .into_iter()
                .collect();
            assert_eq!(
                found,
                [0x100 + HURT, 0x400 + HURT],
                "{} level {level}",
                kernel.release
            );
        }
    }
    Ok(())
}

#[test]
fn broken_first_page_condemns_no_other_page() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("vmcore");
    for kernel in KERNELS {
        // In the kernel's own memory, in that of a process, free, and over the end of a section.
        Synthetic {
            kernel,
            groups:
                "0x100 hurthead 5\n 0x120 hurtanonhead 5\n 0x140 hurtfree 5\n 0x400 hurtanonhead 10"
                    .to_owned(),
            ..Synthetic::default()
        }
        .write(&path)?;
        let dump = Dump::open(std::slice::from_ref(&path))?;
        let broken = [0x100, 0x120, 0x140, 0x400];
        for level in [0, 8, 16, 31] {
            let mut wanted: BTreeSet<u64> = broken.into_iter().collect();
            if level & 8 != 0 {
                wanted.extend((0x120..0x140).chain(0x400..0x800));
            }
            if level & 16 != 0 {
                wanted.extend(0x140..0x160);
            }
            let found = dropped(&dump, level, &work(Io::Map, 1))?;
            assert_eq!(found, wanted, "{} level {level}", kernel.release);
        }
    }
    Ok(())
}

#[test]
fn sections_taken_offline_are_dropped() -> Outcome {
    // Sections of 0x200 pages. Records of offline sections may say anything.
    let groups = "0x400 anon 5\n 0x440 slab\n 0x600 anon".to_owned();
    let synthetic = Synthetic {
        groups,
        offline: vec![2, 4],
        ..Synthetic::default()
    };
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("vmcore");
    synthetic.write(&path)?;
    let dump = Dump::open(&[path])?;
    for level in [0, 1, 16, 31] {
        let mut wanted: BTreeSet<u64> = (0x400..0x600).chain(0x800..0xa00).collect();
        if level & 8 != 0 {
            wanted.insert(0x600);
        }
        assert_eq!(
            dropped(&dump, level, &work(Io::Map, 2))?,
            wanted,
            "level {level}"
        );
    }
    Ok(())
}

#[test]
fn records_within_offline_sections_are_kept() -> Outcome {
    // The records of all sections are in pages from 0x1000 on, those of section 8 among them.
    let synthetic = Synthetic {
        offline: vec![8],
        ..Synthetic::default()
    };
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("vmcore");
    let records = synthetic.write(&path)? / 4096;
    let dump = Dump::open(&[path])?;
    let gone = dropped(&dump, 0, &work(Io::Map, 1))?;
    assert!(!gone.is_empty() && gone.iter().all(|page| (0x1000..0x1200).contains(page)));
    // Eight pages of records for each section, one after the other; the file has a page before.
    let own = records - 1 + 8 * 8;
    assert!(
        (own..own + 8).all(|page| !gone.contains(&page)),
        "{records:#x}"
    );
    Ok(())
}

#[test]
fn kernel_without_online_flag_keeps_sections() -> Outcome {
    let synthetic = Synthetic {
        offline: (0..16).collect(),
        groups: "0x400 anon 5".to_owned(),
        ..Synthetic::default()
    };
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("vmcore");
    synthetic.write(&path)?;
    let dump = Dump::open(&[path])?;
    let found = dropped(&dump, 31, &work(Io::Map, 1))?;
    assert_eq!(found, (0x400..0x420).collect());
    Ok(())
}

#[test]
fn kernel_image_is_kept_despite_its_records() -> Outcome {
    // 0x1000 + 1000 and the next two are mapped as the image, the topmost page table among them.
    let groups = "0x13e8 garbage\n 0x13e9 anon\n 0x13ea free\n 0x1000 garbage\n 0x1ff0 garbage";
    for (btf, gone) in [
        (true, vec![0x13e9, 0x13ea, 0x1ff0]),
        (false, vec![0x13ea, 0x1ff0]),
    ] {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("vmcore");
        Synthetic {
            groups: groups.to_owned(),
            btf,
            ..Synthetic::default()
        }
        .write(&path)?;
        let dump = Dump::open(&[path])?;
        // If BTF shows that a page is not reserved any more, the kernel freed it, and it has a new
        // owner.
        let found: Vec<u64> = dropped(&dump, 31, &work(Io::Map, 1))?.into_iter().collect();
        assert_eq!(found, gone, "BTF {btf}");
    }
    Ok(())
}

#[test]
fn reserved_pages_are_known_by_btf_only() -> Outcome {
    for (btf, pages) in [(true, true), (false, false)] {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("vmcore");
        Synthetic {
            groups: "0x19 reserved".to_owned(),
            btf,
            ..Synthetic::default()
        }
        .write(&path)?;
        let dump = Dump::open(&[path])?;
        assert_eq!(dropped(&dump, 31, &work(Io::Map, 1))?.is_empty(), pages);
    }
    Ok(())
}

#[test]
fn processor_lists_are_trusted_while_links_hold() -> Outcome {
    // Two processors and three kinds of each order: every sixth page is on the same list. The
    // seventh is just being taken.
    let groups = "0x100+6 listed\n 0x106 taken\n 0x107+24 listed".to_owned();
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("vmcore");
    for (btf, gone) in [
        (
            true,
            (0x100..0x11f)
                .filter(|page| *page < 0x106 || *page > 0x106 && (page - 0x107) % 6 != 0)
                .collect(),
        ),
        (false, Vec::new()),
    ] {
        Synthetic {
            groups: groups.clone(),
            btf,
            ..Synthetic::default()
        }
        .write(&path)?;
        let dump = Dump::open(std::slice::from_ref(&path))?;
        let found: Vec<u64> = dropped(&dump, 16, &work(Io::Map, 1))?.into_iter().collect();
        assert_eq!(found, gone, "without types nothing leads to the lists");
        assert!(dropped(&dump, 15, &work(Io::Map, 1))?.is_empty());
    }
    Ok(())
}

#[test]
fn misaligned_blocks_on_lists_are_not_trusted() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("vmcore");
    for (start, gone) in [(0x108, 0x108..0x110), (0x10c, 0..0)] {
        Synthetic {
            groups: format!("{start:#x} listed 3"),
            ..Synthetic::default()
        }
        .write(&path)?;
        let dump = Dump::open(std::slice::from_ref(&path))?;
        assert!(
            dropped(&dump, 16, &work(Io::Map, 1))?.into_iter().eq(gone),
            "{start:#x}"
        );
    }
    Ok(())
}

/// The lines of a note about the records of pages, but for those about types.
const LINES: [&str; 16] = [
    "SIZE(page)",
    "SIZE(mem_section)",
    "OFFSET(mem_section.section_mem_map)",
    "OFFSET(page.flags)",
    "OFFSET(page.mapping)",
    "OFFSET(page.private)",
    "OFFSET(page._mapcount)",
    "OFFSET(page.lru)",
    "LENGTH(zone.free_area)",
    "NUMBER(PG_lru)",
    "NUMBER(PG_private)",
    "NUMBER(PG_swapcache)",
    "NUMBER(PG_swapbacked)",
    "NUMBER(PG_slab)",
    "NUMBER(PG_hwpoison)",
    "NUMBER(PG_head_mask)",
];
/// Those about types, which BTF has since 6.12.
const TYPES: [&str; 5] = [
    "NUMBER(PAGE_BUDDY_MAPCOUNT_VALUE)",
    "NUMBER(PAGE_OFFLINE_MAPCOUNT_VALUE)",
    "NUMBER(PAGE_SLAB_MAPCOUNT_VALUE)",
    "NUMBER(PAGE_HUGETLB_MAPCOUNT_VALUE)",
    "NUMBER(PAGE_UNACCEPTED_MAPCOUNT_VALUE)",
];

#[test]
fn lines_that_notes_lack_come_from_btf() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("vmcore");
    for kernel in [KERNELS[0], KERNELS[7]] {
        let has_types = kernel.has_unaccepted();
        let head = ["OFFSET(page.compound_head)", "OFFSET(page.compound_info)"];
        let lines = LINES.into_iter().chain(head);
        let lines = lines.chain(TYPES.into_iter().filter(|_| has_types));
        // One at a time, and all of them.
        let mut lacking: Vec<Vec<String>> = lines.map(|line| vec![line.to_owned()]).collect();
        lacking.push(lacking.concat());
        for lacks in lacking {
            let synthetic = Synthetic {
                kernel,
                groups: ALL.to_owned(),
                page_types: true,
                lacks,
                ..Synthetic::default()
            };
            synthetic.write(&path)?;
            let dump = Dump::open(std::slice::from_ref(&path))?;
            let found = dropped(&dump, 31, &work(Io::Map, 1))?;
            let lacks = &synthetic.lacks;
            assert_eq!(found, expected(&synthetic, 31)?, "without {lacks:?}");
        }
    }
    Ok(())
}

#[test]
fn lines_that_nothing_has_exclude_less() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("vmcore");
    let mut report = Vec::new();
    for kernel in [KERNELS[0], KERNELS[7]] {
        let head = format!(
            "OFFSET(page.{})",
            if kernel.release.starts_with('7') {
                "compound_info"
            } else {
                "compound_head"
            }
        );
        for line in LINES.into_iter().chain(TYPES).chain([head.as_str()]) {
            let synthetic = Synthetic {
                kernel,
                groups: ALL.to_owned(),
                btf: false,
                lacks: vec![line.to_owned()],
                ..Synthetic::default()
            };
            synthetic.write(&path)?;
            let dump = Dump::open(std::slice::from_ref(&path))?;
            let Ok(filter) = Filter::new(&mut Reader::new(&dump, Io::Map), Level::MAX) else {
                report.push(format!("{} without {line}: no filter", kernel.release));
                continue;
            };
            let wanted = expected(&synthetic, 31)?;
            let found = dropped(&dump, 31, &work(Io::Map, 1))?;
            // Without BTF reserved pages are not known to be any, in any note.
            let lost: Vec<&u64> = found
                .difference(&wanted)
                .filter(|page| **page != 0x19)
                .collect();
            assert!(
                lost.is_empty(),
                "{} without {line}: lost {lost:x?}",
                kernel.release
            );
            for shortfall in filter.shortfalls() {
                report.push(format!("{} without {line}: {shortfall}", kernel.release));
            }
        }
    }
    let newest = report.iter().filter(|line| line.starts_with("7.1.1 "));
    insta::assert_snapshot!(
        "lines_that_nothing_has",
        newest.cloned().collect::<Vec<_>>().join("\n")
    );
    Ok(())
}
