//! What each role of `schema/roles.sql` may do, with a real server.

use model::{Triage, UnixTime};

use crate::cluster::PASSWORD;
use crate::testing::{build, cluster, decision, parents, run, saved};
use crate::{Location, Store, StoreError};

const ROLES: &str = include_str!("../schema/roles.sql");

fn refused<T: std::fmt::Debug>(done: Result<T, StoreError>) -> String {
    let error = done.unwrap_err();
    assert!(matches!(error, StoreError::Access(_)), "{error}");
    error.to_string()
}

#[test]
fn each_role_may_do_only_its_work() {
    let Some(cluster) = cluster() else { return };
    let address = cluster.place().unwrap();
    let location = Location::server(&address, None).unwrap();
    let owner = Store::open(&location).unwrap();
    saved(&owner, &run("aa", "01", 1));
    // Twice: running it again changes nothing.
    for _ in 0..2 {
        Store::on_server(&location, ROLES).unwrap();
    }
    let login = |role: &str| {
        let make =
            format!("CREATE ROLE test_{role} LOGIN PASSWORD '{PASSWORD}' IN ROLE marvin_{role}");
        Store::on_server(&location, &make).unwrap();
        let address = address.replace("://marvin:", &format!("://test_{role}:"));
        Location::server(&address, None).unwrap()
    };
    let [reader, submitter, worker, owners] = ["reader", "submitter", "worker", "owner"].map(login);
    let job = crate::testing::new_job("deb:6.12");
    let now = UnixTime::new(10);

    let store = Store::open_read_only(&reader).unwrap();
    assert_eq!(store.runs(10).unwrap().len(), 1);
    let store = Store::open(&reader).unwrap();
    let said = refused(store.queue_job(&job, now));
    assert!(said.contains("permission denied for table queue"), "{said}");

    let store = Store::open(&submitter).unwrap();
    store.queue_job(&job, now).unwrap();
    store.change_job(1, |job| job.reprioritise(3)).unwrap();
    store.decide(&decision("6.12.117", Triage::Real)).unwrap();
    refused(store.save_build(&build("bb")));
    refused(store.save_run(&run("aa", "02", 1), &[]));

    let store = Store::open(&worker).unwrap();
    let machines = ["exact".to_owned()];
    store.claim_job("here", &machines, now).unwrap().unwrap();
    let second = run("aa", "02", 1);
    parents(&store, &second);
    store.save_run(&second, &[]).unwrap();
    store
        .change_health("exact", |health| health.fail("no power", now))
        .unwrap();
    let delete = store.with(|database| database.execute("DELETE FROM runs", &[]));
    refused(delete);
    let change = store.with(|database| database.execute("UPDATE runs SET seed = 2", &[]));
    assert!(change.unwrap_err().to_string().contains("never change"));
    refused(Store::on_server(
        &worker,
        "ALTER TABLE runs ADD COLUMN x INT",
    ));

    Store::on_server(&owners, "ALTER TABLE runs ADD COLUMN x INT").unwrap();
    let mut damaged = Vec::new();
    let checked = Store::open_read_only(&reader)
        .unwrap()
        .check(&mut |damage| damaged.push(damage))
        .unwrap();
    assert_eq!((checked.runs, damaged), (2, vec![]));
}
