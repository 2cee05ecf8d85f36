//! The description of the JSON documents (OpenAPI 3.1), derived from the documents themselves: one
//! value with every optional field and one without any, whose serialised forms give the schema. So
//! the description cannot contradict the code.

use document::SCHEMA_VERSION;
use history::{
    AbsentDocument, AlertDocument, AlertsDocument, ChangeDocument, HistoryDocument,
    KernelNameDocument, MemberDocument, RunListDocument, SeriesDocument, ToldDocument,
    TriageDocument,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::api::{
    CellDocument, CountsDocument, KernelDocument, KernelsDocument, MachineDocument,
    MachinesDocument, OverviewDocument, RunDocument, RunsDocument,
};
use crate::jobs::{LabDocument, LabJob, STATES, WorkingMachine};

/// A document that the dashboard serves.
pub(crate) struct DocumentEntry {
    pub(crate) name: &'static str,
    summary: &'static str,
    /// Query parameters with their meaning.
    parameters: &'static [(&'static str, &'static str)],
}

pub(crate) const DOCUMENTS: [DocumentEntry; 7] = [
    DocumentEntry {
        name: "overview.json",
        summary: "Two kernels compared in all workloads",
        parameters: &[
            (
                "base",
                "Baseline kernel: title, version or beginning of the build's id",
            ),
            ("target", "Kernel to compare with it, in the same forms"),
        ],
    },
    DocumentEntry {
        name: "alerts.json",
        summary: "Performance changes, grouped by the kernel that introduced them",
        parameters: &[],
    },
    DocumentEntry {
        name: "series.json",
        summary: "Series of a workload on a machine over kernels, with their changes",
        parameters: &[
            ("workload", "Only this workload"),
            ("machine", "Only the machine with this id"),
            ("track", "Only kernels of this track"),
            (
                "line",
                "Only kernels of this line: all, mainline, or a stable series such as 6.12",
            ),
        ],
    },
    DocumentEntry {
        name: "kernels.json",
        summary: "Kernels in the order of their releases",
        parameters: &[],
    },
    DocumentEntry {
        name: "machines.json",
        summary: "Machines, with the number of repeated and of equal results",
        parameters: &[],
    },
    DocumentEntry {
        name: "runs.json",
        summary: "The newest runs",
        parameters: &[],
    },
    DocumentEntry {
        name: "lab.json",
        summary: "The lab at work: machines and jobs",
        parameters: &[],
    },
];

pub(crate) fn document() -> Value {
    let mut paths = Map::new();
    for DocumentEntry {
        name,
        summary,
        parameters,
    } in DOCUMENTS
    {
        let parameters: Vec<Value> = parameters.iter().map(|(name, text)| {
            json!({"name": name, "in": "query", "required": false, "description": text, "schema": {"type": "string"}})
        }).collect();
        let answer = json!({"description": summary, "content": {"application/json": {"schema": schema_of(name)}}});
        let get = json!({
            "summary": summary,
            "parameters": parameters,
            "responses": {"200": answer, "404": {"description": "No result matches the query"}},
        });
        paths.insert(format!("/api/v1/{name}"), json!({ "get": get }));
    }
    let health = json!({
        "summary": "Whether the store answers; published pages do not have it",
        "responses": {
            "200": {"description": "ok", "content": {"text/plain": {"schema": {"type": "string"}}}},
            "503": {"description": "The store did not answer the last reading: why", "content": {"text/plain": {"schema": {"type": "string"}}}},
        },
    });
    paths.insert("/healthz".to_owned(), json!({ "get": health }));
    json!({
        "openapi": "3.1.0",
        "info": {"title": "Marvin", "version": SCHEMA_VERSION.to_string(), "description": "Read only. Positive differences and ratios above one are better, for every metric."},
        "paths": paths,
    })
}

/// Returns the schema of a document.
pub(crate) fn schema_of(name: &str) -> Value {
    schema(&sample(name, true), &sample(name, false))
}

/// Returns a document with every optional field, or without any.
fn sample(name: &str, full: bool) -> Value {
    match name {
        "overview.json" => value(&overview(full)),
        "alerts.json" => value(&AlertsDocument {
            schema_version: SCHEMA_VERSION,
            alerts: vec![alert(full)],
        }),
        "series.json" => value(&series_list(full)),
        "kernels.json" => value(&kernels()),
        "machines.json" => value(&machines()),
        "lab.json" => value(&lab(full)),
        _ => value(&runs()),
    }
}

fn value(document: &impl Serialize) -> Value {
    serde_json::to_value(document).unwrap_or_default()
}

/// Returns the schema of two values, one with every optional field and one without any.
fn schema(full: &Value, sparse: &Value) -> Value {
    let kind = match full {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(items) => {
            let first = items.first().unwrap_or(&Value::Null);
            let other = sparse.get(0).unwrap_or(first);
            return json!({"type": "array", "items": schema(first, other)});
        }
        Value::Object(fields) => {
            let mut properties = Map::new();
            for (name, field) in fields {
                let other = sparse.get(name).unwrap_or(field);
                properties.insert(name.clone(), schema(field, other));
            }
            let required: Vec<&String> = fields.keys().collect();
            let kind = if sparse.is_null() {
                json!(["object", "null"])
            } else {
                json!("object")
            };
            return json!({"type": kind, "properties": properties, "required": required});
        }
    };
    if sparse.is_null() {
        json!({"type": [kind, "null"]})
    } else {
        json!({ "type": kind })
    }
}

fn overview(full: bool) -> OverviewDocument {
    OverviewDocument {
        schema_version: SCHEMA_VERSION,
        base: "6.1.190".to_owned(),
        target: "6.12.117".to_owned(),
        counts: CountsDocument {
            worse: 1,
            better: 0,
            same: 0,
            unclear: 0,
            unrated: 0,
            failed: 0,
            missing: 0,
        },
        geometric_mean: full.then_some(0.957),
        cells: vec![CellDocument {
            workload: "fault-anon".to_owned(),
            subsystem: "mm".to_owned(),
            machine: "machine_00".to_owned(),
            state: "worse".to_owned(),
            ratio: full.then_some(0.957),
            difference_percent: full.then_some(-4.3),
            seeds: 3,
        }],
    }
}

fn alert(full: bool) -> AlertDocument {
    AlertDocument {
        name: "cloud-amd64@6.12.100".to_owned(),
        track: "cloud-amd64".to_owned(),
        after: "6.1.190".to_owned(),
        at: "6.12.100".to_owned(),
        open: true,
        worse: 1,
        better: 0,
        gone: 0,
        bisection: vec![
            "marvin bisect 111111111111 222222222222 --tree linux --workload fault-anon".to_owned(),
        ],
        members: vec![MemberDocument {
            after: "6.1.190".to_owned(),
            at: "6.12.100".to_owned(),
            workload: "fault-anon".to_owned(),
            machine: "machine_00".to_owned(),
            verdict: "worse".to_owned(),
            difference_percent: full.then_some(-4.3),
            basis: "every-seed".to_owned(),
            went_away: full.then(|| "6.12.117".to_owned()),
        }],
        triage: full.then(|| TriageDocument {
            outcome: "trade-off".to_owned(),
            note: "zeroes pages that were not zeroed".to_owned(),
            decided_unix: 1_795_180_320,
            worse_since: 0,
        }),
        told: vec![ToldDocument {
            channel: full.then(|| "us".to_owned()),
            is_report: false,
            raised_unix: 1_795_180_320,
            delivered_unix: full.then_some(1_795_180_330),
        }],
    }
}

fn series_list(full: bool) -> HistoryDocument {
    HistoryDocument {
        schema_version: SCHEMA_VERSION,
        complete: true,
        kernels: vec![KernelNameDocument {
            title: "6.12.117".to_owned(),
            build: "build_00".to_owned(),
        }],
        runs: vec![RunListDocument {
            kernels: vec![0],
            seeds: vec![1],
            ids: vec!["run_00".to_owned()],
        }],
        series: vec![series(full)],
    }
}

fn series(full: bool) -> SeriesDocument {
    SeriesDocument {
        workload: "fault-anon".to_owned(),
        metric: "cost".to_owned(),
        unit: "instructions/op".to_owned(),
        direction: "lower is better".to_owned(),
        margin_percent: 1.5,
        machine: "machine_00".to_owned(),
        track: "cloud-amd64".to_owned(),
        counted: true,
        runs: 0,
        values: vec![full.then_some(345.6)],
        medians: vec![full.then_some(345.6)],
        absent: vec![AbsentDocument {
            kernel: "6.12.117".to_owned(),
            why: "failed: hung".to_owned(),
        }],
        changes: vec![ChangeDocument {
            after: "6.1.190".to_owned(),
            at: "6.12.100".to_owned(),
            verdict: "worse".to_owned(),
            difference_percent: full.then_some(-4.3),
            basis: "every-seed".to_owned(),
            seeds: full.then_some(3),
            p: full.then_some(0.0001),
            went_away: full.then(|| "6.12.117".to_owned()),
        }],
    }
}

fn kernels() -> KernelsDocument {
    let text = str::to_owned;
    let kernel = KernelDocument {
        title: text("6.12.117"),
        build: text("build_00"),
        version: text("6.12.117"),
        track: text("cloud-amd64"),
        origin: text("linux-image-6.12.117+deb12-cloud-amd64 6.12.117-1"),
    };
    KernelsDocument {
        schema_version: SCHEMA_VERSION,
        kernels: vec![kernel],
    }
}

fn machines() -> MachinesDocument {
    let text = str::to_owned;
    let machine = MachineDocument {
        id: text("machine_00"),
        kind: text("exact"),
        summary: text("QEMU 7.2"),
        results_again: 2,
        results_agree: 2,
        results_apart: 0,
        self_comparisons: 0,
        false_alarms: 0,
        same_as: text("machine_00"),
    };
    MachinesDocument {
        schema_version: SCHEMA_VERSION,
        machines: vec![machine],
    }
}

fn lab(full: bool) -> LabDocument {
    let machine = WorkingMachine {
        name: String::new(),
        state: "ready",
        about: String::new(),
        until_unix: full.then_some(0),
        waiting: 0,
        done: 0,
        failed: 0,
        failures: 0,
        waits_s: 0,
    };
    let job = LabJob {
        number: 0,
        machine: String::new(),
        state: "waiting",
        work: String::new(),
        worker: full.then(String::new),
        started_unix: full.then_some(0),
        ended_unix: full.then_some(0),
        reason: String::new(),
    };
    LabDocument {
        schema_version: SCHEMA_VERSION,
        now_unix: 0,
        machines: vec![machine],
        jobs: vec![job],
        undelivered: 0,
        states: STATES.map(|state| (state, 0)).into(),
        done_seconds: 0,
    }
}

fn runs() -> RunsDocument {
    let text = str::to_owned;
    let run = RunDocument {
        id: text("run_00"),
        build: text("build_00"),
        version: text("6.12.117"),
        machine: text("machine_00"),
        suite: text("micro"),
        seed: 1,
        started_unix: Some(1_795_180_320),
        completed: 40,
        unsupported: 1,
        failed: 0,
    };
    RunsDocument {
        schema_version: SCHEMA_VERSION,
        runs: vec![run],
    }
}
