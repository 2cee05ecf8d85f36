//! Suites that choose from the others. A name that is not there does not compile.

use super::{IO, MM, NET, RECLAIM, RMAP, SCHED};
use crate::{MICRO, Suite, Workload};

/// A few workloads of each suite, for an answer within two minutes on two processors.
pub const SMOKE: Suite = Suite {
    name: "smoke",
    purpose: "a few workloads of each suite, in at most two minutes on two processors",
    workloads: &[
        of(&MICRO, "getppid"),
        of(&MICRO, "pipe-pingpong"),
        of(&MICRO, "fork-exec"),
        of(&MICRO, "fault-anon"),
        of(&MM, "aim9-page"),
        of(&MM, "pft-proc-4"),
        of(&SCHED, "hackbench-pipe"),
        of(&SCHED, "build-like-2"),
        of(&NET, "tcp-stream-4096"),
        of(&NET, "tbench-like-1"),
        of(&IO, "tio-like-rndrd-4"),
    ],
};

/// Everything of these suites but the four of hackbench, which the source documents do not show.
const SEED_COUNT: usize = MM.workloads.len()
    + SCHED.workloads.len()
    + NET.workloads.len()
    + IO.workloads.len()
    + RMAP.workloads.len()
    + RECLAIM.workloads.len()
    - 4;

static SEED_WORKLOADS: [Workload; SEED_COUNT] = {
    let suites = [&MM, &SCHED, &NET, &IO, &RMAP, &RECLAIM];
    let mut chosen = [MM.workloads[0]; SEED_COUNT];
    let (mut suite, mut n) = (0, 0);
    while suite < suites.len() {
        let mut at = 0;
        while at < suites[suite].workloads.len() {
            let workload = suites[suite].workloads[at];
            if !begins(workload.name.as_bytes(), b"hackbench-") {
                chosen[n] = workload;
                n += 1;
            }
            at += 1;
        }
        suite += 1;
    }
    assert!(n == chosen.len(), "as many as there are");
    chosen
};

/// What the source documents of the lab show.
pub const SEEDS: Suite = Suite {
    name: "seeds",
    purpose: "the tests of the documents that the lab was made after",
    workloads: &SEED_WORKLOADS,
};

/// Returns the workload of that name.
const fn of(suite: &Suite, name: &str) -> Workload {
    let mut at = 0;
    while at < suite.workloads.len() {
        let known = suite.workloads[at].name.as_bytes();
        if known.len() == name.len() && begins(known, name.as_bytes()) {
            return suite.workloads[at];
        }
        at += 1;
    }
    panic!("no workload of that name in that suite")
}

const fn begins(name: &[u8], with: &[u8]) -> bool {
    if name.len() < with.len() {
        return false;
    }
    let mut at = 0;
    while at < with.len() {
        if name[at] != with[at] {
            return false;
        }
        at += 1;
    }
    true
}
