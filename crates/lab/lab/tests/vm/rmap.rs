//! The experiment on reverse mappings: costs follow the stressed parameter, memory agrees with
//! arithmetic.

use std::sync::Arc;

use lab::Lab;
use model::{
    Build, ENTRIES_PER_TABLE, RMAP, RmapCase, RmapCell, RmapCost, RmapMeasured, RmapOperation,
    RmapOutcome, Workload,
};

use crate::{build, full, kernels, lab};

const MEMORY_MIB: u32 = 256;

fn cell(case: RmapCase, processes: u32, mappings: u32) -> RmapCell {
    RmapCell {
        case,
        processes,
        mappings,
    }
}

fn measured(lab: &Lab, build: &Build, cell: RmapCell) -> RmapMeasured {
    match lab.rmap(build, 1, MEMORY_MIB, cell).unwrap() {
        RmapOutcome::Measured(measured) => measured,
        outcome => panic!("{cell:?}: {outcome:?}"),
    }
}

fn cost(measured: &RmapMeasured, operation: RmapOperation) -> RmapCost {
    let (_, cost) = measured
        .costs
        .iter()
        .find(|(known, _)| *known == operation)
        .unwrap();
    cost.clone().unwrap()
}

#[test]
fn costs_follow_processes_and_mappings() {
    let build = build("deb:6.12");
    // One kind of object in every gate, all of them in `make test-full`.
    for case in RmapCase::ALL
        .into_iter()
        .step_by(if full() { 1 } else { 2 })
    {
        let few = measured(lab(), &build, cell(case, 2, 32));
        let many = measured(lab(), &build, cell(case, 2, 512));
        let wide = measured(lab(), &build, cell(case, 16, 32));
        for (operation, least, most) in [
            (RmapOperation::Unmap, 8.0, 32.0),
            (RmapOperation::Fork, 1.3, 16.0),
        ] {
            let ratio = cost(&many, operation).ticks as f64 / cost(&few, operation).ticks as f64;
            println!("{case:<10} {operation:<12} 16 times the mappings: {ratio:.2} times the time");
            assert!(
                (least..most).contains(&ratio),
                "{case} {operation}: {ratio}"
            );
        }
        let each = |measured| cost(measured, RmapOperation::Unmap).each().unwrap();
        let ratio = each(&wide) / each(&few);
        println!("{case:<10} unmap        8 times the processes: {ratio:.2} times as much each");
        assert!((0.4..1.6).contains(&ratio), "{case}: {ratio}");
        if case == RmapCase::Sparse {
            // The page belongs to one mapping; the kernel walks all the others in vain.
            let one = |measured| cost(measured, RmapOperation::PageoutOne).ticks as f64;
            let ratio = one(&many) / one(&few);
            println!("{case:<10} pageout-one  16 times the mappings: {ratio:.2} times the time");
            assert!(ratio > 4.0, "{case}: {ratio}");
        }
        if case.has_object() {
            let one = |measured| cost(measured, RmapOperation::DropOne).ticks as f64;
            // The kernel must find each process with the page: eight times as many.
            let ratio = one(&wide) / one(&few);
            println!("{case:<10} drop-one     8 times the processes: {ratio:.2} times the time");
            assert!(ratio > 1.5, "{case}: {ratio}");
        }
    }
}

#[test]
fn page_tables_use_the_computed_memory() {
    for kernel in kernels() {
        let build = build(kernel);
        let mappings = 2 * u32::try_from(ENTRIES_PER_TABLE).unwrap();
        for (case, percent) in [
            (RmapCase::Sparse, 100.0 / ENTRIES_PER_TABLE as f64),
            (RmapCase::File, 100.0),
            (RmapCase::Shared, 100.0),
            (RmapCase::Remapped, 100.0),
            (RmapCase::Inherited, 100.0),
            (RmapCase::Chain, 100.0),
        ] {
            // Two kinds are enough for every gate: each needs a guest of its own.
            if !full() && !matches!(case, RmapCase::Sparse | RmapCase::Inherited) {
                continue;
            }
            let measured = measured(lab(), &build, cell(case, 2, mappings));
            assert_eq!(
                measured.space.entries,
                2 * u64::from(mappings),
                "{kernel} {case}"
            );
            assert_eq!(
                measured.space.utilisation_percent(),
                Some(percent),
                "{kernel} {case}: {:?}",
                measured.space
            );
            let mapped = |slab: &&model::RmapSlab| slab.name == "vm_area_struct";
            let slab = measured.space.slabs.iter().find(mapped).unwrap();
            let each = slab.objects as f64 / f64::from(2 * mappings);
            println!("{kernel} {case:<10} vm_area_struct for each mapping: {each:.2}");
            assert!((0.9..1.1).contains(&each), "{kernel} {case}: {slab:?}");
        }
    }
}

#[test]
fn equal_cells_give_equal_answers() {
    let build = build("deb:6.12");
    for case in [RmapCase::Shared, RmapCase::Chain] {
        let both = [(); 2].map(|()| measured(lab(), &build, cell(case, 3, 100)));
        assert_eq!(both[0], both[1], "{case}");
    }
}

#[test]
fn cells_beyond_memory_are_reported() {
    let build = build("deb:6.12");
    let outcome = lab()
        .rmap(&build, 1, MEMORY_MIB, cell(RmapCase::Sparse, 1000, 1000))
        .unwrap();
    let RmapOutcome::DoesNotFit {
        needed_kib,
        available_kib,
    } = outcome
    else {
        panic!("{outcome:?}")
    };
    // Each mapping has a page table of its own.
    assert!(
        needed_kib > 39 * 1000 * 100 && needed_kib < 8 * 1000 * 1000,
        "{needed_kib}"
    );
    let all_kib = u64::from(MEMORY_MIB) * 1024;
    assert!(
        available_kib > 16 * 1024 && available_kib < all_kib,
        "{available_kib}"
    );
}

/// A part of the suite; with `MARVIN_FULL`, which `make test-full` sets, all of it.
fn some() -> Vec<Arc<Workload>> {
    let few = ["rmap-sparse-map", "rmap-anon-fork"];
    RMAP.workloads
        .iter()
        .filter(|workload| full() || few.contains(&&*workload.name))
        .cloned()
        .collect()
}

#[test]
fn doubled_rmap_operations_double_the_time() {
    crate::truthful::double_operations(some());
}

#[test]
fn rmap_workloads_enter_declared_functions() {
    crate::probes::probe_functions(some());
}

/// For any reclaimable memory, a page costs more the more processes have it mapped.
#[test]
fn reclaim_cost_grows_with_mapping_processes() {
    for kernel in kernels() {
        let build = build(kernel);
        let each = |processes| {
            cost(
                &measured(lab(), &build, cell(RmapCase::Shared, processes, 64)),
                RmapOperation::Reclaim,
            )
        };
        let few = each(2);
        let many = each(32);
        let ratio = many.each().unwrap() / few.each().unwrap();
        println!(
            "{kernel} reclaim for 16 times the processes: {ratio:.2} times as much a page, {} pages",
            many.count
        );
        assert!(ratio > 2.0, "{kernel}: {few:?} {many:?}");
    }
}
