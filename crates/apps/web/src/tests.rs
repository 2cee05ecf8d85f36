//! The dashboard as seen by a browser, a mirror, a program and an attacker.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use model::{Build, ClientLimits, Decision, KernelName, NewJob, Reservation, Triage};
use proptest::prelude::{any, prop_assert, proptest};
use serde_json::Value;

use crate::address::slug;
use crate::openapi::{DOCUMENTS, document, schema_of};
use crate::testing::{HOSTILE, Lab, NOW, build, result};
use crate::{Kind, Limits, Reply, Site, publish};

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
        if reply.kind == Kind::Html {
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
        Kind::Html,
        Kind::Css,
        Kind::Script,
        Kind::Json,
        Kind::Text,
        Kind::Bytes,
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
    for (path, reply) in found.iter().filter(|(_, reply)| reply.kind == Kind::Html) {
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
    for (name, _, _) in DOCUMENTS {
        let reply = site.answer(&format!("/api/v1/{name}"), "");
        assert_eq!((reply.status, reply.kind), (200, Kind::Json), "{name}");
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
    let of = |question: &str| -> Value {
        serde_json::from_slice(&site.answer("/api/v1/series.json", question).body).unwrap()
    };
    assert_eq!(of("")["series"].as_array().unwrap().len(), 6);
    assert_eq!(
        of("workload=getppid")["series"].as_array().unwrap().len(),
        2
    );
    assert_eq!(
        of("workload=getppid&line=6.1")["series"][0]["medians"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
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
    let reserve = |name: &str, by_lab| {
        let (machines, holder, why) = (
            vec![name.to_owned()],
            "anna@lab".to_owned(),
            "tuning".to_owned(),
        );
        let new = Reservation {
            machines,
            holder,
            why,
            by_lab,
            ..Reservation::default()
        };
        lab.store.reserve(&new, 600, NOW - 60).unwrap();
    };
    reserve("killed", true);
    reserve("mine", false);
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
fn lab_page_of_many_jobs_stays_small() {
    let lab = Lab::usual();
    let new = |n: u64| NewJob {
        rank: n,
        ..Lab::new_job(&format!("git:v6.{n}"), "testbox")
    };
    for n in 0..120 {
        lab.store.queue_job(&new(n), NOW - 600).unwrap();
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
        decided_unix: 1_795_180_320,
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
        calm.contains("No regression between these kernels"),
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
    let asked = body(&lab.site().answer("/", "target=6.18.1"));
    assert!(
        asked.contains("No workload was measured on both kernels")
            && !asked.contains("No regression"),
        "{asked}"
    );
}

#[test]
fn pages_need_no_suffix_in_their_address() {
    let lab = Lab::usual();
    let site = lab.site();
    for page in ["alerts", "runs"] {
        let (short, whole) = (
            site.answer(&format!("/{page}"), ""),
            site.answer(&format!("/{page}.html"), ""),
        );
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

fn sent(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    // The other side may close before it has read everything: that counts as an answer.
    drop(stream.write_all(request));
    let mut answer = Vec::new();
    drop(stream.read_to_end(&mut answer));
    String::from_utf8_lossy(&answer).into_owned()
}

fn first_line(answer: &str) -> &str {
    answer.lines().next().unwrap_or("closed")
}

#[test]
fn server_answers_only_get_and_head() {
    let lab = Lab::usual();
    let address = lab.serve(Limits::default());
    let with = |first: &str, rest: &str| {
        sent(
            address,
            format!("{first} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{rest}\r\n")
                .as_bytes(),
        )
    };
    let page = with("GET /?base=6.1.170", "");
    assert_eq!(first_line(&page), "HTTP/1.1 200 OK");
    for header in [
        "content-security-policy: default-src 'none'",
        "x-content-type-options: nosniff",
        "text/html; charset=utf-8",
    ] {
        assert!(page.contains(header), "{header}");
    }
    assert!(page.contains("6.12.117 against 6.1.170"));
    let head = with("HEAD /", "");
    assert!(
        head.starts_with("HTTP/1.1 200 OK") && head.ends_with("\r\n\r\n"),
        "{head}"
    );
    for (line, rest, expected) in [
        (
            "POST /",
            "Content-Length: 0\r\n",
            "HTTP/1.1 405 Method Not Allowed",
        ),
        ("DELETE /alerts.html", "", "HTTP/1.1 405 Method Not Allowed"),
        (
            "GET /",
            "Content-Length: 1000000000\r\n",
            "HTTP/1.1 413 Payload Too Large",
        ),
        (
            "GET /",
            "Transfer-Encoding: chunked\r\n",
            "HTTP/1.1 413 Payload Too Large",
        ),
        ("GET /?token=s3cr3t", "", "HTTP/1.1 400 Bad Request"),
        (
            "GET /alerts.html?x=1&Access%5Ftoken=s3cr3t",
            "",
            "HTTP/1.1 400 Bad Request",
        ),
        ("GET /marvin.db", "", "HTTP/1.1 404 Not Found"),
        ("GET /../../../../etc/passwd", "", "HTTP/1.1 404 Not Found"),
    ] {
        assert_eq!(first_line(&with(line, rest)), expected, "{line} {rest}");
    }
    let told = with("GET /?token=s3cr3t", "");
    assert!(
        told.contains("do not put a token there") && !told.contains("s3cr3t"),
        "{told}"
    );
    assert_eq!(
        first_line(&with(&format!("GET /?{}", "a".repeat(3000)), "")),
        "HTTP/1.1 414 URI Too Long"
    );
    let large = with("GET /", &format!("X: {}\r\n", "a".repeat(1 << 20)));
    assert!(!large.contains("200 OK"), "{}", first_line(&large));
    let many = with("GET /", &"X: a\r\n".repeat(1000));
    assert!(!many.contains("200 OK"), "{}", first_line(&many));
    let elsewhere = sent(
        address,
        b"GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
    );
    assert_eq!(first_line(&elsewhere), "HTTP/1.1 421 Misdirected Request");
    for (hosts, expected) in [
        ("", "HTTP/1.1 400 Bad Request"),
        (
            "Host: localhost\r\nHost: localhost\r\n",
            "HTTP/1.1 400 Bad Request",
        ),
        (
            "Host: localhost\r\nHost: evil.example\r\n",
            "HTTP/1.1 400 Bad Request",
        ),
        ("Host:\r\n", "HTTP/1.1 421 Misdirected Request"),
        ("Host: 192.0.2.7\r\n", "HTTP/1.1 421 Misdirected Request"),
        (
            "Host: localhost.evil.example\r\n",
            "HTTP/1.1 421 Misdirected Request",
        ),
        ("Host: LOCALHOST:8080\r\n", "HTTP/1.1 200 OK"),
        ("Host: [::1]:8080\r\n", "HTTP/1.1 200 OK"),
        ("Host: lab.example\r\n", "HTTP/1.1 200 OK"),
    ] {
        let answer = sent(
            address,
            format!("GET / HTTP/1.1\r\n{hosts}Connection: close\r\n\r\n").as_bytes(),
        );
        assert_eq!(first_line(&answer), expected, "{hosts:?}");
    }
    let absolute =
        b"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    assert_eq!(
        first_line(&sent(address, absolute)),
        "HTTP/1.1 421 Misdirected Request"
    );
    assert!(!sent(address, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03").contains("200 OK"));
}

#[test]
fn slow_client_is_cut_off_without_blocking() {
    let lab = Lab::usual();
    let limits = Limits {
        clients: ClientLimits {
            all: 3,
            of_one: 3,
            of_others: 3,
        },
        head_time: Duration::from_millis(300),
        connection_time: Duration::from_millis(900),
        ..Limits::default()
    };
    let address = lab.serve(limits);
    let mut slow: Vec<TcpStream> = (0..2)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    slow.iter_mut()
        .for_each(|stream| stream.write_all(b"GET / HTT").unwrap());
    let answer = sent(
        address,
        b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    );
    assert_eq!(first_line(&answer), "HTTP/1.1 200 OK");
    for stream in &mut slow {
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
        assert!(!String::from_utf8_lossy(&rest).contains("200 OK"));
    }
}

#[test]
fn client_with_many_connections_leaves_room_for_others() {
    let lab = Lab::usual();
    let clients = ClientLimits {
        all: 6,
        of_one: 3,
        of_others: 6,
    };
    let limits = Limits {
        clients,
        head_time: Duration::from_secs(3),
        ..Limits::default()
    };
    let address = lab.serve(limits);
    let mut slow: Vec<TcpStream> = (0..20)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    // All but three are refused at once.
    let mut refused = 0;
    for stream in &mut slow {
        stream
            .set_read_timeout(Some(Duration::from_secs(1)))
            .unwrap();
        let mut said = [0; 100];
        refused += usize::from(
            stream
                .read(&mut said)
                .is_ok_and(|count| said[..count].starts_with(b"HTTP/1.1 503")),
        );
        if refused == 17 {
            break;
        }
    }
    assert_eq!(refused, 17);
    let curl = |from: &str, path: &str| {
        let url = format!("http://{address}{path}");
        let mut curl = std::process::Command::new("curl");
        curl.args(["-si", "-m", "5", "--interface", from, &url]);
        String::from_utf8_lossy(&curl.output().unwrap().stdout).into_owned()
    };
    for path in ["/", "/metrics"] {
        assert_eq!(first_line(&curl("127.0.0.2", path)), "HTTP/1.1 200 OK");
    }
    // Silent ones are cut off.
    std::thread::sleep(limits.head_time);
    assert_eq!(first_line(&curl("127.0.0.1", "/")), "HTTP/1.1 200 OK");
}

const LARGE: &str =
    "GET /r/00000000000000ff/large.vmcore HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/// Saves a run with an artifact of so many bytes, which do not shrink.
fn save_large(lab: &Lab, bytes: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let random = std::iter::repeat_with(|| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        state.to_be_bytes()
    });
    let bytes: Vec<u8> = random.flatten().take(bytes).collect();
    let mut run = lab
        .store
        .runs(1)
        .map(|runs| lab.store.run(&runs[0].id).unwrap())
        .unwrap();
    run.id = model::RunId::from_hex("00000000000000ff").unwrap();
    lab.store
        .save_run(
            &run,
            &[store::Artefact {
                name: "large.vmcore",
                bytes: &bytes,
            }],
        )
        .unwrap();
    bytes
}

fn sent_bytes(address: SocketAddr, request: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    drop(stream.read_to_end(&mut answer));
    answer
}

#[test]
fn artifact_arrives_whole_in_pieces() {
    let lab = Lab::usual();
    let bytes = save_large(&lab, 3_000_001);
    let address = lab.serve(Limits::default());
    let answer = sent_bytes(address, LARGE);
    let head = String::from_utf8_lossy(&answer[..600]).into_owned();
    assert!(
        head.contains("content-length: 3000001") && head.contains("attachment"),
        "{head}"
    );
    assert!(answer.ends_with(&bytes));
    let head = String::from_utf8(sent_bytes(address, &LARGE.replace("GET", "HEAD"))).unwrap();
    assert!(
        head.contains("content-length: 3000001") && head.ends_with("\r\n\r\n"),
        "{head}"
    );
}

#[test]
fn damaged_artifact_never_arrives_whole() {
    let lab = Lab::usual();
    let bytes = save_large(&lab, 1_000_000);
    let file = lab
        .home()
        .join("artefacts/00000000000000ff/large.vmcore.zst");
    let mut packed = fs::read(&file).unwrap();
    // The checksum: everything before it is right.
    *packed.last_mut().unwrap() ^= 1;
    fs::write(&file, packed).unwrap();
    let answer = sent_bytes(lab.serve(Limits::default()), LARGE);
    let body = answer
        .windows(4)
        .position(|end| end == b"\r\n\r\n")
        .unwrap()
        + 4;
    assert!(
        answer[body..].len() < bytes.len(),
        "{} of {} bytes",
        answer[body..].len(),
        bytes.len()
    );
}

#[test]
fn answers_beyond_the_memory_are_refused() {
    let lab = Lab::usual();
    save_large(&lab, 30_000_000);
    let limits = Limits {
        answer_bytes: 4 << 20,
        write_time: Duration::from_secs(4),
        ..Limits::default()
    };
    let address = lab.serve(limits);
    let mut idle = TcpStream::connect(address).unwrap();
    idle.write_all(LARGE.as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let refused = String::from_utf8_lossy(&sent_bytes(address, LARGE)).into_owned();
    assert!(
        first_line(&refused) == "HTTP/1.1 503 Service Unavailable"
            && refused.contains("retry-after: 10"),
        "{refused}"
    );
    let page = sent(
        address,
        b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    );
    assert_eq!(
        first_line(&page),
        "HTTP/1.1 200 OK",
        "pages have room beside an artifact"
    );
    // The reader that takes nothing is cut off, and its room is free.
    std::thread::sleep(Duration::from_secs(5));
    assert!(sent_bytes(address, LARGE).len() > 30_000_000);
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
    let large = store::Artefact {
        name: "large.vmcore",
        bytes: &bytes,
    };
    lab.store
        .save_run(
            &run,
            &[
                large,
                store::Artefact {
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
