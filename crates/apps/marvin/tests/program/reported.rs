//! Regressions that reach people: once, with what speaks against them, and to lists only if asked.

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use model::{
    Ending, FailureReason, NewJob, Outcome, QueuedJob, Refusal, Stage, SubjectFailure,
    USUAL_MACHINE, UnixTime, Work,
};
use store::Store;

use crate::fresh::fresh;
use crate::history::fill;
use crate::{marvin, output_of, stored};

/// Writes a marvin.toml whose channels append to files of the data directory.
fn configure(home: &Path, more: &str) {
    let append = |name: &str| {
        let file = home.join(name);
        format!("[\"sh\", \"-c\", \"cat >>{}\"]", file.display())
    };
    let text = format!(
        "[[notify]]\nname = \"us\"\ncommand = {}\n\
         [[notify]]\nname = \"post\"\nmail = [\"lab@example.org\"]\nfrom = \"marvin@example.org\"\nsendmail = {}\n{more}",
        append("told"),
        append("mails")
    );
    fs::write(home.join("marvin.toml"), text).unwrap();
}

/// Returns how many lines of what a channel got contain a text.
fn count(home: &Path, file: &str, text: &str) -> usize {
    let all = fs::read_to_string(home.join(file)).unwrap_or_default();
    all.lines().filter(|line| line.contains(text)).count()
}

#[test]
fn regression_goes_out_once_as_a_draft() {
    let home = fresh("reported-draft");
    fs::create_dir_all(&home).unwrap();
    let store = Store::open(&*home).unwrap();
    configure(&home, "");
    let archives = home.join("archives");
    fs::create_dir_all(&archives).unwrap();
    let stanza = "Package: linux-image-6.12.100-cloud-amd64\nVersion: 6.12.100-1\nMaintainer: Kernel Team <kernel@example.org>\n\n";
    fs::write(archives.join("00.linux"), stanza).unwrap();
    // Reports begin before anything was measured.
    let send = || output_of(&home, &["notify", "send"]);
    assert!(send().contains("new regressions 0, messages sent 0"));
    fill(&store);
    // Two processes at once, and one after them.
    let others = [0, 1].map(|_| marvin(&home).args(["notify", "send"]).spawn().unwrap());
    for mut other in others {
        assert!(other.wait().unwrap().success());
    }
    assert!(send().contains("new regressions 0"), "{}", send());
    let subject = "\"subject\":\"regression:cloud-amd64 6.1.192..6.12.100\"";
    assert_eq!(count(&home, "told", subject), 1);
    // What has just gone out is in no list of the same week.
    assert_eq!(count(&home, "told", "\"subject\":\"digest:"), 0);
    for text in [
        "This is a draft for you",
        "To: kernel@example.org",
        "one seed only",
        "instructions were counted",
        "less than 5 %, which",
        "reporting-regressions.rst",
    ] {
        assert_eq!(count(&home, "told", text), 1, "{text}");
    }
    assert_eq!(count(&home, "mails", "Subject: [marvin] regression: "), 1);
    assert_eq!(count(&home, "mails", "Subject: [REGRESSION]"), 0);
    let alerts = output_of(&home, &["alerts"]);
    assert_eq!(
        alerts.matches("reported: post on 20").count(),
        1,
        "{alerts}"
    );
    assert!(alerts.contains("; us on 20"), "{alerts}");
}

#[test]
fn regression_waits_for_the_end_of_its_job() {
    let home = fresh("reported-job");
    fs::create_dir_all(&home).unwrap();
    let store = Store::open(&*home).unwrap();
    configure(&home, "");
    let send = || output_of(&home, &["notify", "send"]);
    send();
    let job = NewJob {
        work: Work {
            kernel: "deb:6.12".parse().unwrap(),
            tree: String::new(),
            config: "default".to_owned(),
            suite: "micro".to_owned(),
            workloads: Vec::new(),
            seeds: 2,
            machine: USUAL_MACHINE.to_owned(),
        },
        plan: String::new(),
        priority: 0,
        rank: 0,
        attempts_max: 3,
        deadline_s: 3_600,
    };
    store.queue_job(&job, UnixTime::new(0)).unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let now = UnixTime::new(i64::try_from(now.as_secs()).unwrap());
    // It began before the runs, and its worker lives.
    let job = store
        .claim_job("here", &[USUAL_MACHINE.to_owned()], UnixTime::new(1))
        .unwrap()
        .unwrap();
    let change = |change: &dyn Fn(&mut QueuedJob) -> Result<(), Refusal>| {
        store.change_job(job.number, change).unwrap();
    };
    change(&|running| running.renew(job.fence, now));
    fill(&store);
    assert!(send().contains("new regressions 0"), "{}", send());
    change(&|running| running.end(job.fence, Ending::Done(String::new()), now));
    assert!(send().contains("new regressions 1"));
}

#[test]
fn only_what_has_no_doubts_goes_to_lists() {
    let home = fresh("reported-sent");
    fs::create_dir_all(&home).unwrap();
    let store = Store::open(&*home).unwrap();
    configure(
        &home,
        "[regressions]\nsend = true\n[[track]]\nname = \"cloud-amd64\"\nmail = [\"list@example.org\"]\n",
    );
    output_of(&home, &["notify", "send"]);
    fill(&store);
    output_of(&home, &["notify", "send"]);
    assert_eq!(count(&home, "mails", "list@example.org"), 1, "in the draft");
    assert_eq!(count(&home, "mails", "Subject: [REGRESSION]"), 0);
    // What fails is none of counting.
    stored::save_build(&store, 3, "6.13.1");
    let results = ["fault-anon", "getppid"].map(|workload| {
        let mut failed = stored::completed(workload, Vec::new());
        failed.outcome = Outcome::Failed(SubjectFailure {
            stage: Stage::Workload,
            reason: FailureReason::Hung,
            console_tail: String::new(),
        });
        failed
    });
    let run = stored::run("0000000000000003", 3, 1, results.to_vec());
    store.save_run(&run, &[]).unwrap();
    for _ in 0..2 {
        output_of(&home, &["notify", "send"]);
    }
    assert_eq!(count(&home, "mails", "Subject: [REGRESSION]"), 1);
    assert_eq!(count(&home, "mails", "To: list@example.org"), 2);
}

#[test]
fn what_was_open_before_comes_as_one_list() {
    let home = fresh("reported-first");
    fs::create_dir_all(&home).unwrap();
    fill(&Store::open(&*home).unwrap());
    configure(&home, "");
    for _ in 0..2 {
        let output = output_of(&home, &["notify", "send"]);
        assert!(output.contains("new regressions 0"), "{output}");
    }
    assert_eq!(count(&home, "told", "regression:"), 0);
    assert_eq!(count(&home, "told", "cloud-amd64@6.12.100"), 1);
}
