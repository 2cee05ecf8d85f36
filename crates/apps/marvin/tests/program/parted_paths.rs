//! `marvin profile --path`: where the executions of two real kernels part.

use serde_json::Value;

use crate::fresh::fresh;
use crate::{marvin, names, output_of};

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap()
}

fn more(sides: &Value) -> i64 {
    number(&sides["new"]) - number(&sides["base"])
}

#[test]
fn places_add_up_to_the_last_instruction() {
    let home = fresh("parted-home");
    let [old, new] = names();
    let path = |base: &str, new: &str| -> Value {
        let arguments = [
            "profile",
            base,
            new,
            "--workload",
            "getppid,fault-anon",
            "--path",
        ];
        let output = marvin(&home)
            .args(arguments)
            .args(["--format", "json", "-q"])
            .output()
            .unwrap();
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|why| panic!("{why}: {}", String::from_utf8_lossy(&output.stderr)))
    };
    let differing = path(&old, &new);
    let schema = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../docs/schemas/path.json"
    );
    let schema = serde_json::from_str(&std::fs::read_to_string(schema).unwrap()).unwrap();
    assert_eq!(
        document::fixtures::mistakes(&schema, &differing),
        Vec::<String>::new()
    );
    let workloads = differing["workloads"].as_array().unwrap();
    assert_eq!(workloads.len(), 2, "{:#}", differing["missing"]);
    for workload in workloads {
        let places = workload["divergences"].as_array().unwrap();
        let of_places: i64 = places.iter().map(|place| number(&place["more"])).sum();
        let parts = workload["parts"].as_array().unwrap();
        assert_eq!(parts[0]["name"], "kernel, followed");
        assert_eq!(of_places, more(&parts[0]["instructions"]));
        let of_parts: i64 = parts.iter().map(|part| more(&part["instructions"])).sum();
        assert_eq!(of_parts, more(&workload["total"]));
        assert!(!places.is_empty() && of_parts != 0);
    }
    // The entry that every operation has begins with another instruction.
    let first = |workload: &Value| workload["divergences"][0]["function"].clone();
    assert_eq!(first(&workloads[0]), "entry_SYSCALL_64");
    assert_eq!(first(&workloads[1]), "asm_exc_page_fault");
    for workload in path(&new, &new)["workloads"].as_array().unwrap() {
        assert_eq!(workload["divergences"], Value::Array(Vec::new()));
    }
}

#[test]
fn paths_need_the_exact_machine() {
    let home = fresh("parted-refused-home");
    let refused = |more: &[&str]| {
        let arguments = ["profile", "deb:6.1", "deb:6.12", "--path"];
        output_of(&home, &[&arguments[..], more].concat())
    };
    let elsewhere = refused(&["--on", "local"]);
    assert!(
        elsewhere.starts_with("exit 2") && elsewhere.contains("--path needs --on exact"),
        "{elsewhere}"
    );
    let seeds = refused(&["--seeds", "3"]);
    assert!(
        seeds.starts_with("exit 2") && seeds.contains("leave out --seeds"),
        "{seeds}"
    );
}
