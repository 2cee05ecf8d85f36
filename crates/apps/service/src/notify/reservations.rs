//! Reminds people of reservations that end soon.

use model::{Channel, Reservation, UnixTime, format_left};
use store::{Notice, Store};

use super::raise_notice;
use crate::ServiceError;

/// How long before its end a reservation is named (s).
const BEFORE_S: u64 = 15 * 60;
/// Shorter reservations end while people still know of them (s).
const LENGTH_S: u64 = 30 * 60;

/// Queues a notice for each reservation of a person that ends soon; each end is named once.
///
/// # Errors
/// If the store fails.
pub fn remind(
    store: &Store,
    channels: &[Channel],
    reservations: &[Reservation],
    now_unix: UnixTime,
) -> Result<(), ServiceError> {
    for one in reservations {
        let is_long = one.until_unix.seconds_since(one.since_unix) > Some(LENGTH_S);
        if !one.by_lab && is_long && one.is_active(now_unix) && one.left_s(now_unix) <= BEFORE_S {
            raise_notice(store, channels, &notice(one, now_unix))?;
        }
    }
    Ok(())
}

fn notice(one: &Reservation, now_unix: UnixTime) -> Notice {
    let machines = one.machines.join(", ");
    let left = format_left(one.left_s(now_unix));
    let Reservation {
        holder,
        why,
        number,
        ..
    } = one;
    let first = &one.machines[0];
    Notice {
        subject: format!("reservation:{number}:{}", one.until_unix.seconds()),
        headline: format!("{machines}: the reservation of {holder} ends in {left}"),
        body: format!(
            "For: {why}\n\nTo keep it: marvin extend {first} --for 2h\nTo end it now: marvin release {first}\n"
        ),
        raised_unix: now_unix,
    }
}

#[cfg(test)]
mod tests {
    use model::{Reservation, UnixTime};
    use store::Store;

    use super::remind;

    #[test]
    fn ends_are_named_once_before_they_come() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path()).unwrap();
        let hour = Reservation {
            number: 7,
            machines: vec!["client".into(), "server".into()],
            holder: "anna@lab".into(),
            why: "perf hunt".into(),
            by_lab: false,
            since_unix: UnixTime::new(0),
            until_unix: UnixTime::new(3600),
            ended_unix: None,
        };
        let short = Reservation {
            number: 8,
            until_unix: UnixTime::new(1800),
            ..hour.clone()
        };
        let by_lab = Reservation {
            number: 9,
            by_lab: true,
            ..hour.clone()
        };
        let remind =
            |all: &[Reservation], now| remind(&store, &[], all, UnixTime::new(now)).unwrap();
        let standing = |subject: &str| store.standing(subject).unwrap();
        remind(&[hour.clone(), short, by_lab], 2699);
        assert_eq!(standing("reservation:7:3600"), None);
        remind(std::slice::from_ref(&hour), 2760);
        let notice = standing("reservation:7:3600").unwrap();
        insta::assert_snapshot!(format!("{}\n\n{}", notice.headline, notice.body));
        remind(std::slice::from_ref(&hour), 3000);
        assert_eq!(
            standing("reservation:7:3600").unwrap().raised_unix,
            UnixTime::new(2760),
            "once"
        );
        let extended = Reservation {
            until_unix: UnixTime::new(7200),
            ..hour
        };
        remind(std::slice::from_ref(&extended), 7000);
        assert!(
            standing("reservation:7:7200").is_some(),
            "an extended one has another end"
        );
        for other in ["reservation:8:1800", "reservation:9:3600"] {
            assert_eq!(standing(other), None, "{other}");
        }
    }
}
