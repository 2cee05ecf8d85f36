//! The dashboard as seen by a browser, a mirror, a program and an attacker.

mod server;
mod tracks;

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

use model::{Build, Decision, KernelName, LEASE_S, NewJob, Reservation, Triage, UnixTime};
use proptest::prelude::{any, prop_assert, proptest};
use serde_json::Value;
use store::Notice;

use crate::address::slug;
use crate::openapi::{DOCUMENTS, document, schema_of};
use crate::testing::{HOSTILE, Lab, NOW, build, result};
use crate::{ContentKind, Reply, Site, publish};

/// Size limit of a page.
const PAGE_BYTES_MAX: usize = 100_000;

fn body(reply: &Reply) -> String {
    String::from_utf8(reply.body.clone()).unwrap()
}

/// Returns all pages linked from the first one, with their paths.
fn pages(site: &Site) -> Vec<(String, Arc<Reply>)> {
    let mut left = vec!["index.html".to_owned()];
    let mut known = BTreeSet::new();
    let mut found = Vec::new();
    while let Some(path) = left.pop() {
        let (file, question) = path.split_once('?').unwrap_or((&path, ""));
        if !known.insert(path.clone()) {
            continue;
        }
        let reply = site.answer(&format!("/{file}"), question);
        if reply.kind == ContentKind::Html {
            left.extend(crate::publish::links(file, &body(&reply)));
        }
        found.push((path, reply));
    }
    found
}

#[test]
fn links_resolve_and_pages_are_small() {
    let lab = Lab::usual();
    let found = pages(&lab.site());
    assert!(found.len() > 30, "{}", found.len());
    for (path, reply) in &found {
        assert_eq!(reply.status, 200, "{path}");
        assert!(
            reply.body.len() <= PAGE_BYTES_MAX,
            "{path}: {}",
            reply.body.len()
        );
    }
    for kind in [
        ContentKind::Html,
        ContentKind::Css,
        ContentKind::Script,
        ContentKind::Json,
        ContentKind::Text,
        ContentKind::Bytes,
    ] {
        assert!(
            found.iter().any(|(_, reply)| reply.kind == kind),
            "{kind:?}"
        );
    }
}

#[test]
fn first_page_lists_regressions() {
    let lab = Lab::usual();
    let page = body(&lab.site().answer("/", ""));
    for text in [
        "<h1>6.12.117 <span class=\"faint\">against</span> 6.1.192</h1>",
        "▼ 2 worse",
        "= 2 same",
        "✖ 2 failed",
        "First seen in 6.12.100",
        "1 workload worse; not in 6.1.192.",
        "-4.55%",
        "2 of 2 machines",
        ">0.96 ▼</a>",
        "First seen in 6.12.117",
        "1 workload now failing; not in 6.12.107.",
        ">fails</span>",
    ] {
        assert!(page.contains(text), "{text}\n{page}");
    }
    let other = body(&lab.site().answer("/", "base=6.1.170&target=6.1.192"));
    assert!(
        other.contains("<h1>6.1.192 <span class=\"faint\">against</span> 6.1.170</h1>")
            && other.contains("▼ 0 worse")
    );
    let filtered = body(&lab.site().answer("/", "filter=FAULT"));
    assert!(filtered.contains("1 of 3 workloads match") && !filtered.contains(">getppid</th>"));
    let news = body(&lab.site().answer("/", "show=changed"));
    assert!(news.contains("2 of 3 workloads changed") && !news.contains(">getppid</th>"));
    assert_eq!(lab.site().answer("/", "base=nonsense").status, 404);
    let failed = body(&lab.site().answer("/", "show=failed"));
    assert!(
        failed.contains("1 of 3 workloads are failed on a machine")
            && !failed.contains(">getppid</th>")
    );
    let mistyped = body(&lab.site().answer("/", "filter=fualt-anno"));
    assert!(
        mistyped.contains("0 of 3 workloads match; did you mean fault-anon?"),
        "{mistyped}"
    );
}

#[test]
fn series_shows_change_and_related_changes() {
    let lab = Lab::usual();
    let machine = "aa0000000000";
    let page = body(
        &lab.site()
            .answer(&format!("/s/{machine}/cloud-amd64/fault-anon.html"), ""),
    );
    for text in [
        "-4.55% since 6.12.100",
        "; not in 6.1.192 (all 2 seeds agree).",
        "href=\"../../../alerts.html#",
        "<svg",
    ] {
        assert!(page.contains(text), "{text}\n{page}");
    }
    let stable = body(&lab.site().answer(
        &format!("/s/{machine}/cloud-amd64/fault-anon.html"),
        "line=6.12",
    ));
    assert!(stable.contains("No change beyond the margin.") && !stable.contains("6.1.192"));
}

#[test]
fn series_explains_its_change() {
    let lab = Lab::usual();
    let site = lab.site().with_explain(|_, [base, new], workload| {
        vec![format!(
            "{workload}: <b> of {} and {}",
            base.version, new.version
        )]
    });
    let page = body(&site.answer("/s/aa0000000000/cloud-amd64/fault-anon.html", ""));
    assert!(
        page.contains("&#60;b&#62; of 6.1.192 and 6.12.100</p>"),
        "{page}"
    );
}

#[test]
fn series_of_one_kernel_claims_no_change() {
    let mut lab = Lab::new();
    lab.run("6.12.100", "aa", 1, vec![result("getppid", 100.0)]);
    let (path, page) = pages(&lab.site())
        .into_iter()
        .find(|(path, _)| path.starts_with("s/"))
        .unwrap();
    assert!(
        body(&page).contains("Too few kernels to tell: 1 has a value"),
        "{path}: {}",
        body(&page)
    );
}

#[test]
fn comparison_equals_the_command_lines() {
    let lab = Lab::usual();
    let page = body(
        &lab.site()
            .answer("/c/aa0000000000/6.1.192/6.12.117.html", ""),
    );
    assert!(page.contains(
        "marvin compare deb:linux-image-6.1.192-cloud-amd64 deb:linux-image-6.12.117-cloud-amd64"
    ));
    assert!(page.contains("fault-anon") && page.contains("-4.55"));
}

#[test]
fn hostile_names_stay_escaped() {
    let lab = Lab::hostile();
    let found = pages(&lab.site());
    assert!(found.len() > 20);
    for (path, reply) in found
        .iter()
        .filter(|(_, reply)| reply.kind == ContentKind::Html)
    {
        let page = body(reply);
        assert_eq!(reply.status, 200, "{path}");
        assert!(!page.contains('\u{1b}'), "{path}");
        for harm in ["<script>alert", "<img", "\" onmouseover", "'><"] {
            assert!(!page.contains(harm), "{path}: {harm}");
        }
        for link in page.split("href=\"").skip(1) {
            assert!(!link.starts_with("javascript:"), "{path}");
        }
    }
    let aside = found
        .iter()
        .any(|(_, reply)| String::from_utf8_lossy(&reply.body).contains("Not one metric."));
    assert!(aside, "hostile units are shown");
    let path = format!("/s/aa0000000000/cloud-amd64/{}.html", slug(HOSTILE[3]));
    let odd = lab.site().answer(&path, "");
    assert_eq!(
        odd.status, 200,
        "it is the name of a workload, and of nothing else"
    );
}

#[test]
fn paths_stay_within_the_site() {
    let lab = Lab::usual();
    let site = lab.site();
    for path in [
        "/marvin.db",
        "/../marvin.db",
        "/r/0000000000000001/../../marvin.db",
        "/r/0000000000000001/..",
        "/r/0000000000000001/getppid.console.zst",
        "/r/../index.html",
        "/r/%2e%2e/index.html",
        "//etc/passwd",
        "/c/aa0000000000/6.1.192/6.12.117",
        "/c/../../../../etc/passwd.html",
        "/s/aa0000000000/cloud-amd64/../../../index.html",
        "/api/v1/../../marvin.db",
        "/api/v2/alerts.json",
        "/all-x.html",
        "/index.html/",
        "/\0",
    ] {
        assert_eq!(site.answer(path, "").status, 404, "{path}");
    }
    assert_eq!(site.answer(&"/a".repeat(5000), "").status, 404);
    let home = lab.home().display().to_string();
    drop(lab.store);
    fs::remove_file(lab.home.path().join("marvin.db")).unwrap();
    let failed = Site::answer(&site, "/runs.html", "");
    assert!(
        !body(&failed).contains(&home),
        "paths of the host must not leak"
    );
}

proptest! {
    #[test]
    fn any_address_gets_an_answer(path in any::<String>(), question in any::<String>()) {
        thread_local!(static SITE: (Lab, Site) = {
            let lab = Lab::usual();
            let site = lab.site();
            (lab, site)
        });
        SITE.with(|(_, site)| {
            let reply = site.answer(&path, &question);
            prop_assert!(matches!(reply.status, 200 | 404));
            Ok(())
        })?;
    }
}

/// Checks a value against a schema of the generated kind.
fn fits(value: &Value, schema: &Value, at: &str) {
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        other => panic!("{at}: {other}"),
    };
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(items) => {
            items
                .iter()
                .for_each(|item| fits(item, &schema["items"], at));
            "array"
        }
        Value::Object(fields) => {
            let known = schema["properties"]
                .as_object()
                .unwrap_or_else(|| panic!("{at}: no object"));
            assert_eq!(
                fields.keys().collect::<BTreeSet<_>>(),
                known.keys().collect::<BTreeSet<_>>(),
                "{at}"
            );
            fields
                .iter()
                .for_each(|(name, field)| fits(field, &known[name], &format!("{at}.{name}")));
            "object"
        }
    };
    assert!(kinds.contains(&kind), "{at}: {kind} is none of {kinds:?}");
}

#[test]
fn documents_match_their_schemas() {
    let lab = Lab::usual();
    decide(&lab, "6.12.100", Triage::TradeOff);
    let site = lab.site();
    let described = document();
    for name in DOCUMENTS.map(|document| document.name) {
        let reply = site.answer(&format!("/api/v1/{name}"), "");
        assert_eq!(
            (reply.status, reply.kind),
            (200, ContentKind::Json),
            "{name}"
        );
        fits(
            &serde_json::from_slice(&reply.body).unwrap(),
            &schema_of(name),
            name,
        );
        let get = &described["paths"][format!("/api/v1/{name}")]["get"];
        assert_eq!(
            get["responses"]["200"]["content"]["application/json"]["schema"],
            schema_of(name)
        );
    }
    for (question, list, count) in [
        ("", "/series", 6),
        ("workload=getppid", "/series", 2),
        ("workload=getppid&line=6.1", "/series/0/medians", 2),
    ] {
        let reply = site.answer("/api/v1/series.json", question);
        let document: Value = serde_json::from_slice(&reply.body).unwrap();
        let list = document.pointer(list).unwrap().as_array().unwrap();
        assert_eq!(list.len(), count, "{question}");
    }
    insta::assert_snapshot!(serde_json::to_string_pretty(&described).unwrap());
}

#[test]
fn prometheus_finds_numbers() {
    let lab = Lab::usual();
    let text = body(&lab.site().answer("/metrics", ""));
    for line in [
        "marvin_runs_total 20\n",
        "marvin_alerts_open 2\n",
        "marvin_store_unreadable 0\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        let name = name.split('{').next().unwrap();
        assert!(
            name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
                && value.parse::<u64>().is_ok(),
            "{line}"
        );
    }
}

#[test]
fn lab_page_and_metrics_show_machines_and_jobs() {
    let lab = Lab::usual();
    lab.queue_jobs();
    let site = lab
        .site()
        .with_servers(vec!["client".into()])
        .with_clock(|| NOW);
    let page = body(&site.answer("/lab.html", ""));
    let row = |name: &str| {
        let rows = page
            .lines()
            .find(|line| line.starts_with(&format!("<tr><td><code>{name}</code>")));
        rows.unwrap_or_else(|| panic!("{page}")).to_owned()
    };
    assert!(
        row("exact").contains("measuring") && row("exact").contains("job 3 by farm"),
        "{page}"
    );
    assert!(
        row("client").contains("ready") && row("testbox").contains("class=\"worse\">quarantined"),
        "{page}"
    );
    assert!(page.contains("<td>2h05m</td>"), "{page}");
    let metrics = body(&site.answer("/metrics", ""));
    let of_lab: Vec<&str> = metrics
        .lines()
        .skip_while(|line| !line.contains("marvin_machine_state"))
        // Different on each host.
        .filter(|line| !line.starts_with("marvin_disk_free_bytes "))
        .collect();
    insta::assert_snapshot!(of_lab.join("\n"));
    let document: Value =
        serde_json::from_slice(&site.answer("/api/v1/lab.json", "").body).unwrap();
    assert_eq!(document["machines"][1]["name"], "client");
    assert_eq!(document["jobs"].as_array().unwrap().len(), 4);
}

#[test]
fn lab_page_shows_servers_that_are_off() {
    let lab = Lab::usual();
    let names = ["idle", "killed", "mine", "on"].map(str::to_owned);
    for (name, by_lab) in [("killed", true), ("mine", false)] {
        let new = Reservation {
            machines: vec![name.to_owned()],
            holder: "anna@lab".to_owned(),
            why: "tuning".to_owned(),
            by_lab,
            ..Reservation::default()
        };
        lab.store.reserve(&new, 600, NOW.minus_seconds(60)).unwrap();
    }
    let site = lab.site().with_servers(names.to_vec()).with_clock(|| NOW);
    site.note_off(names[..3].iter().cloned().collect());
    let document: Value =
        serde_json::from_slice(&site.answer("/api/v1/lab.json", "").body).unwrap();
    let machines = document["machines"].as_array().unwrap().iter().skip(1);
    let lines = machines
        .map(|one| format!("{} {}: {}", one["name"], one["state"], one["about"]).replace('"', ""));
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"), @r"
    idle off: a measurement switches it on, or: marvin power idle on
    killed off: a measurement switches it on, or: marvin power killed on
    mine reserved: anna@lab: tuning; it is off
    on ready:
    ");
}

#[test]
fn lab_page_shows_killed_workers_and_waiting_messages() {
    let lab = Lab::usual();
    lab.queue_jobs();
    let notice = Notice {
        subject: "tree:a".into(),
        headline: "it is gone".into(),
        body: String::new(),
        raised_unix: NOW,
    };
    lab.store.raise(&notice, &["us"]).unwrap();
    let page = |clock: fn() -> UnixTime| {
        let site = lab.site().with_clock(clock);
        body(&site.answer("/lab.html", ""))
    };
    let now = page(|| NOW);
    assert!(
        now.contains("not delivered yet: 1.") && !now.contains("lost"),
        "{now}"
    );
    let later = page(|| NOW.plus_seconds(LEASE_S));
    assert!(
        later.contains("lost") && later.contains("job 3 by farm, which has not been heard of"),
        "{later}"
    );
}

#[test]
fn lab_page_of_many_jobs_stays_small() {
    let lab = Lab::usual();
    let new = |n: u64| NewJob {
        rank: n,
        ..Lab::new_job(&format!("git:v6.{n}"), "testbox")
    };
    for n in 0..120 {
        lab.store
            .queue_job(&new(n), NOW.minus_seconds(600))
            .unwrap();
    }
    let site = lab.site().with_clock(|| NOW);
    let page = body(&site.answer("/lab.html", ""));
    assert!(
        page.contains("not listed: 20.") && page.contains("<td class=\"num\">120</td>"),
        "{page}"
    );
    assert!(
        page.contains("git:v6.99,") && !page.contains("git:v6.100,"),
        "{page}"
    );
}

fn decide(lab: &Lab, at: &str, triage: Triage) {
    let decision = Decision {
        track: "cloud-amd64".into(),
        after: "6.1.192".into(),
        at: at.into(),
        triage,
        note: HOSTILE[0].into(),
        worse: 2,
        decided_unix: UnixTime::new(1_795_180_320),
    };
    lab.store.decide(&decision).unwrap();
}

#[test]
fn new_results_are_shown() {
    let mut lab = Lab::usual();
    let mut source = lab.source();
    let site = Site::new(lab.home(), source.snapshot(1));
    assert!(!source.refresh().unwrap());
    lab.run("6.12.119", "aa", 1, vec![result("fault-anon", 330.0)]);
    assert!(source.refresh().unwrap());
    site.renew(source.snapshot(2));
    assert!(
        body(&site.answer("/", ""))
            .contains("6.12.119 <span class=\"faint\">against</span> 6.1.192")
    );
    let open = |site: &Site| body(&site.answer("/metrics", "")).contains("marvin_alerts_open 2\n");
    assert!(open(&site));
    decide(&lab, "6.12.100", Triage::Apparent);
    assert!(source.refresh().unwrap());
    site.renew(source.snapshot(3));
    assert!(!open(&site));
    let page = body(&site.answer("/alerts.html", ""));
    assert!(
        page.contains("<strong>apparent</strong>") && page.contains("&#60;script&#62;alert(1)"),
        "{page}"
    );
}

#[test]
fn triaged_regressions_are_still_called_worse() {
    let lab = Lab::usual();
    decide(&lab, "6.12.100", Triage::Real);
    decide(&lab, "6.12.117", Triage::Real);
    let page = body(&lab.site().answer("/", ""));
    for text in ["2 worse", "First seen in 6.12.100", "Triage: real."] {
        assert!(page.contains(text), "{text}\n{page}");
    }
    assert!(!page.contains("No regression"), "{page}");
    decide(&lab, "6.12.100", Triage::Ignored);
    decide(&lab, "6.12.117", Triage::Ignored);
    let page = body(&lab.site().answer("/", ""));
    assert!(
        page.contains("2 worse, 2 failed: no open alert is about these."),
        "{page}"
    );
    assert!(
        !page.contains("No regression") && page.contains("All alerts, triaged ones too"),
        "{page}"
    );
    let calm = body(&lab.site().answer("/", "base=6.1.170&target=6.1.192"));
    assert!(
        calm.contains("Nothing is worse between these kernels. In the table above: 4 results"),
        "{calm}"
    );
}

#[test]
fn kernel_without_comparison_hides_no_pair() {
    let mut lab = Lab::usual();
    lab.run("6.18.1", "cc", 1, vec![result("getppid", 90.0)]);
    let running = Build {
        name: KernelName::Running,
        ..build("6.18.1")
    };
    lab.store.save_build(&running).unwrap();
    let page = body(&lab.site().answer("/", ""));
    assert!(
        page.contains("<h1>6.12.117 <span class=\"faint\">against</span> 6.1.192</h1>"),
        "{page}"
    );
    let page = body(&lab.site().answer("/", "target=6.18.1"));
    assert!(
        page.contains("No workload was measured on both kernels")
            && !page.contains("No regression"),
        "{page}"
    );
}

#[test]
fn pages_need_no_suffix_in_their_address() {
    let lab = Lab::usual();
    let site = lab.site();
    for page in ["alerts", "runs"] {
        let short = site.answer(&format!("/{page}"), "");
        let whole = site.answer(&format!("/{page}.html"), "");
        assert_eq!((short.status, body(&short)), (200, body(&whole)));
    }
}

#[test]
fn each_alert_command_has_its_own_line() {
    let page = body(&Lab::usual().site().answer("/alerts.html", ""));
    let commands = page
        .lines()
        .filter(|line| line.starts_with("<pre>") && line.ends_with("</pre>"));
    assert!(commands.count() >= 2, "{page}");
    assert!(
        page.contains("<pre>marvin bisect v6.1 v6.12 --tree linux --workload fault-anon"),
        "{page}"
    );
    assert!(
        !page.contains("</pre><pre>") && !page.contains("</code> <code>marvin"),
        "{page}"
    );
}

#[test]
fn recently_viewed_pages_come_from_cache() {
    let mut lab = Lab::usual();
    let mut source = lab.source();
    let site = Site::new(lab.home(), source.snapshot(1));
    assert!(site.cached("/", "").is_none(), "not requested yet");
    let first = site.answer("/", "");
    assert!(
        Arc::ptr_eq(&first, &site.answer("/", ""))
            && Arc::ptr_eq(&first, &site.cached("/", "").unwrap())
    );
    for never in [
        "/runs.html",
        "/metrics",
        "/r/0000000000000001/index.html",
        "/nowhere",
    ] {
        let made = site.answer(never, "");
        assert!(site.cached(never, "").is_none(), "{never}: {}", made.status);
    }
    lab.run("6.12.119", "aa", 1, vec![result("fault-anon", 330.0)]);
    source.refresh().unwrap();
    site.renew(source.snapshot(2));
    let renewed = site.cached("/", "").expect("made before the first request");
    assert!(body(&renewed).contains("6.12.119") && !body(&first).contains("6.12.119"));
}

#[test]
fn empty_store_explains_how_to_fill_it() {
    let lab = Lab::new();
    assert!(body(&lab.site().answer("/", "")).contains("No results yet"));
    assert_eq!(lab.site().answer("/api/v1/overview.json", "").status, 404);
    assert_eq!(lab.site().answer("/alerts.html", "").status, 200);
}

#[test]
fn files_equal_pages_and_link_each_other() {
    let lab = Lab::usual();
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("site");
    let site = Site::of_files(lab.home(), lab.source().snapshot(1));
    let published = publish(&site, &target).unwrap();
    let series =
        fs::read_to_string(target.join("s/aa0000000000/cloud-amd64/fault-anon.html")).unwrap();
    assert_eq!(
        series,
        body(
            &lab.site()
                .answer("/s/aa0000000000/cloud-amd64/fault-anon.html", "")
        )
    );
    let index = fs::read_to_string(target.join("index.html")).unwrap();
    assert!(!index.contains("<form"));
    for link in crate::publish::links("index.html", &index) {
        assert!(target.join(&link).is_file(), "{link}");
    }
    // A second time, in place of the first.
    assert_eq!(publish(&site, &target).unwrap(), published);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let foreign = folder.path().join("photographs");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("cat.jpg"), "").unwrap();
    let error = publish(&site, &foreign).unwrap_err().to_string();
    assert!(
        error.contains("holds files that marvin did not write"),
        "{error}"
    );
    assert!(foreign.join("cat.jpg").is_file());
}

#[test]
fn published_site_says_which_artifact_it_lacks() {
    let lab = Lab::usual();
    let mut run = lab
        .store
        .runs(1)
        .map(|runs| lab.store.run(&runs[0].id).unwrap())
        .unwrap();
    run.id = model::RunId::from_hex("00000000000000ff").unwrap();
    let bytes = vec![0; (64 << 20) + 1];
    let large = store::Artifact {
        name: "large.vmcore",
        bytes: &bytes,
    };
    lab.store
        .save_run(
            &run,
            &[
                large,
                store::Artifact {
                    name: "small",
                    bytes: &bytes[..9],
                },
            ],
        )
        .unwrap();
    let target = lab.home().join("site");
    publish(
        &Site::of_files(lab.home(), lab.source().snapshot(1)),
        &target,
    )
    .unwrap();
    let folder = target.join("r/00000000000000ff");
    let page = fs::read_to_string(folder.join("index.html")).unwrap();
    let list = page
        .split("id=\"artifacts\"")
        .nth(1)
        .unwrap()
        .split("</ul>")
        .next()
        .unwrap();
    insta::assert_snapshot!(list);
    assert!(
        folder.join("small").exists() && !folder.join("large.vmcore").exists(),
        "no page under its name"
    );
    // A server sends it.
    let page = body(&lab.site().answer("/r/00000000000000ff/index.html", ""));
    assert!(page.contains("large.vmcore</a>"), "{page}");
}
