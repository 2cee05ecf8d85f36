//! A synthetic experiment with every outcome of a cell.

use std::collections::BTreeMap;

use model::{
    RmapCase, RmapCell, RmapCost, RmapMeasured, RmapOperation, RmapOutcome, RmapSlab, RmapSpace,
};

use super::Rmap;

/// Two kernels, two cases, up to 1,000 by 1,000.
pub(crate) fn two_kernels() -> Rmap {
    let mut rmap = Rmap {
        kernels: vec!["6.1.192".into(), "6.12.117".into()],
        machine: "QEMU 7.2, microvm, 1024 MiB".into(),
        seed: 1,
        command: "marvin experiment rmap deb:6.1 deb:6.12 --case sparse,chain".into(),
        cases: vec![RmapCase::Sparse, RmapCase::Chain],
        processes: vec![1, 10, 100, 1000],
        mappings: vec![1, 10, 100, 1000],
        outcomes: BTreeMap::new(),
    };
    for kernel in 0..rmap.kernels.len() {
        for case in rmap.cases.clone() {
            for cell in rmap.cells(case).collect::<Vec<_>>() {
                rmap.outcomes.insert((kernel, cell), outcome(kernel, cell));
            }
        }
    }
    rmap
}

fn outcome(kernel: usize, cell: RmapCell) -> RmapOutcome {
    let all = u64::from(cell.processes) * u64::from(cell.mappings);
    match (cell.case, cell.processes, cell.mappings) {
        (RmapCase::Sparse, 1000, 1000) => RmapOutcome::DoesNotFit {
            needed_kib: 4_406_250,
            available_kib: 961_000,
        },
        (RmapCase::Chain, 1000, 100 | 1000) => RmapOutcome::DoesNotFit {
            needed_kib: 3_200_000,
            available_kib: 961_000,
        },
        (RmapCase::Chain, 100, 100) if kernel == 1 => {
            RmapOutcome::Failed("ran out of memory".into())
        }
        _ => RmapOutcome::Measured(measured(kernel, cell, all)),
    }
}

fn measured(kernel: usize, cell: RmapCell, all: u64) -> RmapMeasured {
    // Each process has a fixed cost, and the newer kernel costs a tenth more.
    let tenth = 10 + kernel as u64;
    let processes = u64::from(cell.processes);
    let walked = |each: u64, count| {
        Ok(RmapCost {
            ticks: all * each * tenth / 10,
            count,
        })
    };
    let by_process = |once: u64, each: u64| {
        Ok(RmapCost {
            ticks: processes * once + all * each * tenth / 10,
            count: all,
        })
    };
    let mut costs = vec![
        (RmapOperation::Map, by_process(30_000, 6_000)),
        (RmapOperation::Fork, by_process(90_000, 1_200)),
    ];
    costs.push((
        RmapOperation::Reclaim,
        match cell.case.has_object() {
            true => walked(900, u64::from(cell.mappings.min(512))),
            false => Err("memory.reclaim reclaims none of these pages".into()),
        },
    ));
    if cell.case.has_object() {
        costs.push((RmapOperation::DropOne, walked(310, 1)));
        costs.push((
            RmapOperation::DropAll,
            walked(400, u64::from(cell.mappings.min(512))),
        ));
        costs.push((RmapOperation::PageoutOne, walked(120, 1)));
    } else {
        costs.push((
            RmapOperation::PageoutOne,
            Err("MADV_PAGEOUT leaves the page where it is".into()),
        ));
    }
    costs.push((RmapOperation::Unmap, by_process(4_000, 700)));
    let mut slabs = vec![
        slab("vm_area_struct", all, 184 + 8 * kernel as u64),
        slab("maple_node", all / 8 + 1, 256),
    ];
    let tables = if cell.case == RmapCase::Sparse {
        all
    } else {
        processes * u64::from(cell.mappings).div_ceil(512)
    };
    if cell.case == RmapCase::Chain {
        slabs.insert(0, slab("anon_vma_chain", all * (processes + 1) / 2, 64));
        slabs.push(slab("anon_vma", all, 104));
    }
    RmapMeasured {
        costs,
        space: RmapSpace {
            slabs,
            tables_kib: 4 * tables,
            entries: all,
        },
    }
}

fn slab(name: &str, objects: u64, object_bytes: u64) -> RmapSlab {
    RmapSlab {
        name: name.into(),
        objects: i64::try_from(objects).unwrap(),
        object_bytes,
    }
}
