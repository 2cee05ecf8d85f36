//! Two kernels that a host ran before and after reboots, from runs in a store: `marvin report`
//! compares them, and the check of the machine says what was suspicious.

use model::{
    Build, BuildFile, BuildId, Environment, KernelName, Machine, MachineId, Origin, Run, UnixTime,
};
use store::Store;

use crate::fresh::fresh;
use crate::{output_of, stored};

/// Boots of each kernel.
const BOOTS: u64 = 6;

fn machine() -> Machine {
    Machine {
        id: MachineId::from_hex(&"bb".repeat(8)).unwrap(),
        kind: "local".parse().unwrap(),
        summary: "this host, Fast, agent on processor 1".into(),
        fingerprint: vec![("host.id".into(), "1".into())],
    }
}

/// Saves the runs of a kernel, one for each boot: `getppid` costs about this much.
fn save(store: &Store, number: u64, version: &str, cost: f64) -> Vec<String> {
    let id = BuildId::from_hex(&format!("{number:016x}")).unwrap();
    let build = Build {
        id: id.clone(),
        name: KernelName::Running,
        version: version.into(),
        origin: Origin::Described(format!("Linux version {version}")),
        image: BuildFile {
            path: std::path::PathBuf::new(),
            sha256: String::new(),
        },
        vmlinux: None,
        config: None,
        symbols: None,
        modules: None,
    };
    store.save_build(&build).unwrap();
    let boots = (0..BOOTS).map(|boot| {
        let value = cost + boot as f64 / 10.0;
        let results = vec![stored::completed(
            "getppid",
            vec![value * 2.0, value, value, value],
        )];
        // A boot of its own has a number of its own.
        let plain = stored::run(
            &format!("{number:08x}{boot:08x}"),
            number,
            number * 100 + boot,
            results,
        );
        let environment: Environment = [
            ("kernel release", version),
            (
                "knob governor",
                "powersave (refused: Permission denied (os error 13))",
            ),
            (
                "lab cost",
                &format!("0.0{boot}% of a processor in 2.0 s of jobs"),
            ),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec();
        let run = Run {
            machine: machine().id,
            started_unix: UnixTime::new(stored::STARTED_UNIX + boot as i64),
            environment,
            ..plain
        };
        store.save_run(&run, &[]).unwrap();
        format!("run_{}", run.id)
    });
    boots.map(|id| id.replace("run_run_", "run_")).collect()
}

#[test]
fn kernels_before_and_after_reboots_are_compared() {
    let home = fresh("rebooted-home");
    std::fs::create_dir_all(&home).unwrap();
    let ids = {
        let store = Store::open(&*home).unwrap();
        store.save_machine(&machine()).unwrap();
        [
            save(&store, 1, "6.1.192-amd64", 100.0),
            save(&store, 2, "6.12.117-amd64", 120.0),
        ]
        .concat()
    };
    let arguments: Vec<&str> = ["report"]
        .into_iter()
        .chain(ids.iter().map(String::as_str))
        .collect();
    let output = output_of(&home, &arguments);
    let lines: Vec<&str> = output
        .lines()
        .filter(|line| !line.starts_with("Compared:"))
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
    // What the lab took is of each run, and no difference between the kernels.
    assert!(!output.contains("lab cost"), "{output}");
}
