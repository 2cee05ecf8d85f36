//! Tests of failures that only servers have: absent, lost, restored, refusing, older or newer.

use crate::cluster::{Cluster, Durability, PASSWORD};
use crate::database::{Access, Server};
use crate::testing::{build, cluster, decision, parents, run, saved, store_in};
use crate::{Artifact, Location, Store, StoreError, VersionError};
use model::Fault;

const CONSOLE: Artifact<'_> = Artifact {
    name: "console",
    bytes: b"Linux version 6.12",
};

/// Executes SQL on a server without a store.
fn raw(location: &Location, sql: &str) {
    let Location::Server(address) = location else {
        panic!("a home")
    };
    Server::connect(address, Access::Write)
        .unwrap()
        .batch(sql)
        .unwrap();
}

/// Returns an error with its fault, without text that differs from run to run.
fn describe(error: &StoreError, cluster: &Cluster) -> String {
    assert!(
        !error.to_string().contains(PASSWORD) && !format!("{error:?}").contains(PASSWORD),
        "{error:?}"
    );
    format!("{:?}: {error}", error.fault())
        .replace(&cluster.folder().display().to_string(), "FOLDER")
}

#[test]
fn server_that_refuses_login_is_reported() {
    let Some(cluster) = cluster() else { return };
    let refused = |address: &str| {
        let location = Location::server(address, None).unwrap();
        let errors = [
            Store::open(&location).unwrap_err(),
            Store::open_read_only(&location).unwrap_err(),
        ];
        assert_eq!(errors[0].to_string(), errors[1].to_string());
        assert!(!errors[0].to_string().contains("of-a-test"));
        describe(&errors[0], cluster)
    };
    let address = cluster.address("public");
    insta::assert_snapshot!(
        "wrong_password",
        refused(&address.replace(PASSWORD, "wrong-of-a-test"))
    );
    insta::assert_snapshot!(
        "unknown_user",
        refused(&address.replace("marvin:", "nobody:"))
    );
    insta::assert_snapshot!(
        "unknown_database",
        refused(&address.replace("/postgres?", "/nowhere?"))
    );
    insta::assert_snapshot!(
        "server_without_tls",
        refused(&address.replace("?options", "?sslmode=require&options"))
    );
    insta::assert_snapshot!(
        "missing_password",
        refused(&address.replace(&format!(":{PASSWORD}"), ""))
    );
}

#[test]
fn a_password_may_come_apart_from_the_address() {
    let Some(cluster) = cluster() else { return };
    let address = cluster
        .place()
        .unwrap()
        .replace(&format!(":{PASSWORD}"), "");
    let store = Store::open(Location::server(&address, Some(PASSWORD)).unwrap()).unwrap();
    assert!(store.runs(1).unwrap().is_empty());
}

#[test]
fn empty_server_reads_empty_and_stays_empty() {
    let Some(cluster) = cluster() else { return };
    let location = Location::server(&cluster.place().unwrap(), None).unwrap();
    let errors = [0, 1].map(|_| describe(&Store::open_read_only(&location).unwrap_err(), cluster));
    assert_eq!(errors[0], errors[1]);
    insta::assert_snapshot!(errors[0]);
}

#[test]
fn foreign_tables_are_left_unchanged() {
    let Some(cluster) = cluster() else { return };
    let location = Location::server(&cluster.place().unwrap(), None).unwrap();
    raw(&location, "CREATE TABLE runs (owner TEXT)");
    let error = Store::open(&location).unwrap_err();
    insta::assert_snapshot!(describe(&error, cluster));
    raw(&location, "INSERT INTO runs VALUES ('still here')");
}

#[test]
fn newer_schema_is_refused_and_left_unchanged() {
    let Some(cluster) = cluster() else { return };
    let (_home, store) = store_in(cluster);
    raw(store.location(), "UPDATE marvin_schema SET steps = 99");
    for error in [
        Store::open(store.location()).unwrap_err(),
        Store::open_read_only(store.location()).unwrap_err(),
    ] {
        assert!(
            matches!(
                error,
                StoreError::Version(VersionError::NewerSchema { found: 99, .. })
            ),
            "{error}"
        );
        assert_eq!(error.fault(), Fault::User);
    }
}

#[test]
fn server_store_of_each_schema_step_is_upgraded() {
    let Some(cluster) = cluster() else { return };
    for steps in 1..crate::schema::server_steps() {
        let location = Location::server(&cluster.place().unwrap(), None).unwrap();
        Store::make_older(&location, steps).unwrap();
        raw(
            &location,
            "INSERT INTO builds VALUES ('aa', 'deb:6.12+cloud-amd64', '6.12', 'x', '/v', '00');
             INSERT INTO machines VALUES ('ee', 'exact', 'QEMU');
             INSERT INTO runs (id, build, machine, suite, seed, started_unix) VALUES ('01', 'aa', 'ee', 'micro', 1, 5);
             INSERT INTO results (run, position, workload, operations, outcome, samples)
                 VALUES (1, 0, 'getppid', 20000, 'completed', '\\x000000000000f03f')",
        );
        let id = run("aa", "01", 1).id;
        let upgraded = Store::upgrade(&location).unwrap();
        assert_eq!(
            (upgraded.before, upgraded.now),
            (steps, crate::schema::server_steps())
        );
        let reader = Store::open_read_only(&location).unwrap();
        assert_eq!(
            reader.run(&id).unwrap().results[0].samples,
            [1.0],
            "step {steps}"
        );
        assert!(reader.decisions().unwrap().is_empty());
        let writer = Store::open(&location).unwrap();
        writer
            .decide(&decision("6.12.117", model::Triage::Real))
            .unwrap();
        assert!(writer.add_artifact(&id, CONSOLE).unwrap());
        assert_eq!(reader.artifact(&id, "console").unwrap(), CONSOLE.bytes);
    }
}

#[test]
fn older_schema_is_refused_and_left_unchanged() {
    let Some(cluster) = cluster() else { return };
    let location = Location::server(&cluster.place().unwrap(), None).unwrap();
    let steps = crate::schema::server_steps() - 1;
    Store::make_older(&location, steps).unwrap();
    for error in [
        Store::open_read_only(&location).unwrap_err(),
        Store::open(&location).unwrap_err(),
    ] {
        assert!(
            matches!(error, StoreError::Version(VersionError::OlderSchema { .. })),
            "{error}"
        );
        insta::allow_duplicates! { insta::assert_snapshot!(describe(&error, cluster)) }
    }
    assert_eq!(
        Store::upgrade(&location).unwrap().before,
        steps,
        "no opening upgraded it"
    );
    assert_eq!(
        Store::upgrade(&location).unwrap().before,
        crate::schema::server_steps()
    );
    drop(Store::open(&location).unwrap());
}

#[test]
fn several_may_open_a_new_place_at_once() {
    let Some(cluster) = cluster() else { return };
    let location = Location::server(&cluster.place().unwrap(), None).unwrap();
    std::thread::scope(|scope| {
        for number in 0..6_u8 {
            let location = &location;
            scope.spawn(move || {
                Store::open(location)
                    .unwrap()
                    .save_build(&build(&format!("{number:02x}")))
                    .unwrap();
            });
        }
    });
    assert!(
        Store::open_read_only(&location)
            .unwrap()
            .find_build("05")
            .is_ok()
    );
}

/// Ends all connections to a server but this one.
fn hang_up(location: &Location) {
    raw(
        location,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE application_name = 'marvin' AND pid <> pg_backend_pid()",
    );
}

#[test]
fn connection_lost_between_calls_is_reopened() {
    let Some(cluster) = Cluster::start(Durability::Hasty).unwrap() else {
        return;
    };
    let (_home, store) = store_in(&cluster);
    saved(&store, &run("aa", "01", 1));
    hang_up(store.location());
    assert_eq!(
        store.run(&run("aa", "01", 1).id).unwrap(),
        run("aa", "01", 1)
    );
    hang_up(store.location());
    store.save_run(&run("aa", "02", 2), &[CONSOLE]).unwrap();
    assert_eq!(store.runs(10).unwrap().len(), 2);
}

#[test]
fn connection_lost_in_transaction_rolls_back() {
    let Some(cluster) = Cluster::start(Durability::Hasty).unwrap() else {
        return;
    };
    let (_home, store) = store_in(&cluster);
    parents(&store, &run("aa", "01", 1));
    let transaction = store.with(crate::database::Database::write).unwrap();
    let changed = "UPDATE builds SET version = 'changed'";
    store
        .with(|database| database.execute(changed, &[]))
        .unwrap();
    hang_up(store.location());
    let error = store
        .with(|database| database.execute(changed, &[]))
        .unwrap_err();
    assert!(matches!(error, StoreError::Gone { .. }), "{error:?}");
    assert_eq!(error.fault(), Fault::Lab);
    drop(transaction);
    assert_eq!(store.build(&build("aa").id).unwrap(), build("aa"));
}

#[test]
fn restarting_server_is_waited_for() {
    let Some(mut cluster) = Cluster::start(Durability::Hasty).unwrap() else {
        return;
    };
    let (_home, store) = store_in(&cluster);
    saved(&store, &run("aa", "01", 1));
    for _ in 0..3 {
        cluster.pause().unwrap();
        std::thread::scope(|scope| {
            let location = store.location().clone();
            let opening = scope.spawn(move || Store::open_read_only(location));
            std::thread::sleep(std::time::Duration::from_millis(700));
            cluster.resume().unwrap();
            let opened = opening.join().unwrap().unwrap();
            assert_eq!(opened.runs(10).unwrap().len(), 1);
        });
    }
}

#[test]
fn server_outage_is_reported_and_saving_waits() {
    let Some(mut cluster) = Cluster::start(Durability::Hasty).unwrap() else {
        return;
    };
    let (_home, store) = store_in(&cluster);
    saved(&store, &run("aa", "01", 1));
    cluster.pause().unwrap();
    let error = store.runs(10).unwrap_err();
    insta::assert_snapshot!(describe(&error, &cluster));
    assert!(matches!(
        Store::open(store.location()).unwrap_err(),
        StoreError::Gone { .. }
    ));
    std::thread::scope(|scope| {
        let saving = scope.spawn(|| {
            let other = store;
            other.save_run(&run("aa", "02", 2), &[CONSOLE]).unwrap();
            other
        });
        cluster.resume().unwrap();
        let store = saving.join().unwrap();
        assert_eq!(store.runs(10).unwrap().len(), 2);
        assert_eq!(
            store.artifact(&run("aa", "02", 2).id, "console").unwrap(),
            CONSOLE.bytes
        );
    });
}

#[test]
fn server_dies_with_the_test_process() {
    let Some(cluster) = Cluster::start(Durability::Hasty).unwrap() else {
        return;
    };
    let folder = cluster.folder().to_owned();
    assert!(folder.join("data").exists());
    drop(cluster);
    assert!(!folder.exists());
}

#[test]
fn connections_are_named_on_the_server() {
    let Some(cluster) = cluster() else { return };
    let (_home, store) = store_in(cluster);
    let named = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'marvin'";
    let count = store
        .with(|database| database.row(named, &[], |row| row.get::<i64>(0)))
        .unwrap();
    assert!(count >= Some(1), "{count:?}");
}

#[test]
fn stopped_server_is_given_up() {
    let Some(cluster) = Cluster::start(Durability::Hasty).unwrap() else {
        return;
    };
    let address = format!("{}&connect_timeout=1", cluster.place().unwrap());
    let store = Store::open(Location::server(&address, None).unwrap()).unwrap();
    saved(&store, &run("aa", "01", 1));
    cluster.signal("STOP").unwrap();
    insta::assert_snapshot!(
        "stopped_server_reading",
        describe(&store.runs(10).unwrap_err(), &cluster)
    );
    insta::assert_snapshot!(
        "stopped_server_opening",
        describe(
            &Store::open_read_only(store.location()).unwrap_err(),
            &cluster
        )
    );
    cluster.signal("CONT").unwrap();
    assert_eq!(store.runs(10).unwrap().len(), 1);
}
