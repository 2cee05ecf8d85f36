//! Guest configs: other memory, modules loaded before the guest settles, and modules that cannot be
//! loaded.

use std::sync::{Arc, LazyLock};

use lab::{Dumps, Plan, Reuse, Sampled};
use model::{GuestConfig, GuestModule, MICRO, Outcome, Run, Workload};

use crate::{build, declared, kernels, lab, measure, samples};

const ZRAM: &[GuestModule] = &[
    GuestModule::may("lzo"),
    GuestModule::may("lzo_rle"),
    GuestModule::must("zram", ""),
];
const ABSENT: &[GuestModule] = &[GuestModule::must("no_such_module", "")];
const REFUSED: &[GuestModule] = &[GuestModule::must("zram", "num_devices=many")];

static ON: LazyLock<[Arc<Workload>; 4]> = LazyLock::new(|| {
    let on = |memory_mib, modules| {
        let guest_config = GuestConfig {
            modules,
            ..GuestConfig::with_memory(memory_mib)
        };
        Arc::new(Workload {
            guest_config,
            ..(**declared("getppid")).clone()
        })
    };
    [
        on(128, &[]),
        on(512, ZRAM),
        on(256, ABSENT),
        on(256, REFUSED),
    ]
});

fn run(kernel: &str, workloads: &[Arc<Workload>]) -> Vec<Run> {
    let build = build(kernel);
    let suite = &MICRO;
    let workloads = workloads.to_vec();
    let replicates = vec![1];
    let reuse = Reuse::Nothing;
    let dumps = Dumps::Drop;
    let sampled = Sampled::No;
    let plan = Plan {
        sides: vec![&build],
        suite,
        workloads,
        replicates,
        machines: 2,
        reuse,
        dumps,
        sampled,
    };
    lab().execute(&plan, &|_| {}).unwrap().remove(0)
}

#[test]
fn each_guest_config_has_its_own_machine() {
    for kernel in kernels() {
        let plain = Arc::clone(declared("getppid"));
        let [small, zram, absent, refused] = ON.clone();
        let requested = [plain, small, Arc::clone(&zram), absent, refused];
        let machines = lab().machines(&requested).unwrap();
        assert!(machines.iter().all(|machine| machine.is_kin(&machines[0])));
        let runs = run(kernel, &requested);
        let outcome = |at: usize| {
            let run = runs
                .iter()
                .find(|run| run.machine == machines[at].id)
                .unwrap();
            (&run.results[0], &run.environment)
        };
        // Results of other guest configs stay the same.
        assert_eq!(
            samples(outcome(0).0),
            samples(&measure(lab(), &build(kernel), &requested[..1])[0]),
            "{kernel}"
        );
        assert_eq!(outcome(1).0.outcome, Outcome::Completed, "{kernel}");
        assert_eq!(outcome(2).0.outcome, Outcome::Completed, "{kernel}");
        let has_modules = |at: usize| {
            outcome(at)
                .1
                .iter()
                .any(|(name, _)| name == "modules sha256")
        };
        assert!(
            has_modules(2) && !has_modules(0) && !has_modules(1),
            "{kernel}"
        );
        assert_eq!(
            outcome(3).0.outcome,
            unsupported("module no_such_module not in the build"),
            "{kernel}"
        );
        let why = "module zram cannot be loaded: Invalid argument (os error 22)";
        assert_eq!(outcome(4).0.outcome, unsupported(why), "{kernel}");
        let again = run(kernel, &[zram]);
        assert_eq!(
            samples(&again[0].results[0]),
            samples(outcome(2).0),
            "{kernel}"
        );
    }
}

fn unsupported(text: &str) -> Outcome {
    Outcome::Unsupported(text.to_owned())
}
