//! A worker that is asked to stop.

use std::cell::Cell;

use model::UnixTime;
use store::Store;

use super::tests::{no_power, queued_on, settings};
use super::{Attempt, Executor, Until, Worked, Worker};
use crate::ServiceError;

/// Is asked to stop during its job, whose process dies of the same signal.
struct Cut<'a>(&'a Cell<bool>);

impl Executor for Cut<'_> {
    fn attempt(
        &self,
        _: &model::QueuedJob,
        goes_on: &dyn Fn() -> Result<bool, ServiceError>,
    ) -> Result<Attempt, ServiceError> {
        assert!(goes_on()?);
        self.0.set(true);
        Ok(no_power())
    }
}

#[test]
fn stopped_worker_gives_its_job_back() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let one = queued_on(&store, "git:v6.1", "testbox");
    let settings = settings("");
    // More often than a job may be attempted, or its workers killed at once.
    for second in 10..15 {
        let stops = Cell::new(false);
        let worker = Worker {
            name: "here",
            machines: &["testbox".to_owned()],
            store: &store,
            settings: &settings,
            executor: &Cut(&stops),
            clock: &|| UnixTime::new(second),
            notify: &|_| {},
            is_stopping: &|| stops.get(),
        };
        assert_eq!(worker.work(Until::Killed).unwrap(), Worked::default());
        let job = store.queued_job(one).unwrap();
        assert!(job.is_free(UnixTime::new(second)), "{job:?}");
        assert_eq!(
            (job.attempts, job.kills, job.reason.as_str()),
            (0, 0, "its worker was stopped")
        );
    }
    assert_eq!(store.health().unwrap(), []);
}
