//! Notices for users: each is sent once while it stands, and each delivery is kept until it
//! succeeds.

use model::{Told, UnixTime};

use crate::columns::{self, Time, Unsigned};
use crate::database::{Database, Failure, Locked, Row, Values};
use crate::{Store, StoreError};

/// A notice for users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Its subject: `tree:stable`, `boot:stable:git:v6.12`. While it stands, no other notice with
    /// this subject is raised.
    pub subject: String,
    /// Its summary, one line.
    pub headline: String,
    pub body: String,
    /// When it began.
    pub raised_unix: UnixTime,
}

/// A pending delivery of a notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Number of the notice.
    pub number: u64,
    pub notice: Notice,
    pub channel: String,
    /// The number of failed attempts.
    pub tries: u32,
    /// The reason of the last failure.
    pub failure: String,
}

const DELIVERIES: &str = "SELECT subject, headline, body, raised_unix, number, channel, tries, said
     FROM deliveries JOIN notices ON notice = number WHERE delivered_unix IS NULL";

/// Every notice about a regression, a row for each of its channels.
const TOLD: &str = "SELECT subject, raised_unix, channel, delivered_unix, said
     FROM notices LEFT JOIN deliveries ON notice = number
     WHERE subject LIKE 'regression:%' OR subject LIKE 'report:%' ORDER BY number, channel";

fn notice(row: &Row<'_>) -> Result<Notice, Failure> {
    Ok(Notice {
        subject: row.get(0)?,
        headline: row.get(1)?,
        body: row.get(2)?,
        raised_unix: columns::time(row, 3)?,
    })
}

fn delivery(row: &Row<'_>) -> Result<Delivery, Failure> {
    let number = row.get::<Unsigned>(4)?.0;
    Ok(Delivery {
        number,
        notice: notice(row)?,
        channel: row.get(5)?,
        tries: row.get(6)?,
        failure: row.get(7)?,
    })
}

fn notice_of_regression(row: &Row<'_>) -> Result<Option<Told>, Failure> {
    let Some(mut told) = Told::of_subject(&row.get::<String>(0)?, columns::time(row, 1)?) else {
        return Ok(None);
    };
    if let Some(channel) = row.get::<Option<String>>(2)? {
        told.set_channel(&channel);
        told.delivered_unix = columns::optional_time(row, 3)?;
        // What a delivery says that was made is of an attempt before.
        if told.delivered_unix.is_none() {
            told.failure = row.get(4)?;
        }
    }
    Ok(Some(told))
}

impl Store {
    /// Raises a notice on these channels. Returns whether it is new: one with a standing subject is
    /// not.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn raise(&self, notice: &Notice, channels: &[&str]) -> Result<bool, StoreError> {
        let Notice {
            subject,
            headline,
            body,
            raised_unix,
        } = notice;
        self.with(|database| {
            let transaction = database.change()?;
            let insert = "INSERT INTO notices (subject, headline, body, raised_unix) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT DO NOTHING RETURNING number";
            let raised = Time(*raised_unix);
            let given: Values<'_> = &[subject, headline, body, &raised];
            let Some(number) = database.row(insert, given, |row| row.get::<Unsigned>(0))? else {
                return Ok(false);
            };
            for channel in channels {
                let insert = "INSERT INTO deliveries VALUES (?1, ?2, 0, ?3, NULL, '') ON CONFLICT DO NOTHING";
                database.execute(insert, &[&number, channel, &raised])?;
            }
            transaction.commit()?;
            Ok(true)
        })
    }

    /// Clears a notice, so that its next occurrence is new. Returns whether there was one.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn settle(&self, subject: &str, now_unix: UnixTime) -> Result<bool, StoreError> {
        let settle =
            "UPDATE notices SET settled_unix = ?2 WHERE subject = ?1 AND settled_unix IS NULL";
        self.with(|database| Ok(database.execute(settle, &[&subject, &Time(now_unix)])? > 0))
    }

    /// Returns the standing notice of a subject.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn standing(&self, subject: &str) -> Result<Option<Notice>, StoreError> {
        let select = "SELECT subject, headline, body, raised_unix FROM notices WHERE subject = ?1 AND settled_unix IS NULL";
        self.with(|database| database.row(select, &[&subject], notice))
    }

    /// Lists the standing notices whose subjects begin with this, oldest first.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn list_standing(&self, begin: &str) -> Result<Vec<Notice>, StoreError> {
        let select = "SELECT subject, headline, body, raised_unix FROM notices
                      WHERE settled_unix IS NULL ORDER BY number";
        let all = self.with(|database| database.rows(select, &[], notice))?;
        let are_meant = all.into_iter().filter(|one| one.subject.starts_with(begin));
        Ok(are_meant.collect())
    }

    /// Lists the notices about regressions, a row for each channel, oldest first.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn list_told(&self) -> Result<Vec<Told>, StoreError> {
        let all = self.with(|database| database.rows(TOLD, &[], notice_of_regression))?;
        Ok(all.into_iter().flatten().collect())
    }

    /// Lists undelivered notices, oldest first.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn list_undelivered(&self) -> Result<Vec<Delivery>, StoreError> {
        self.with(|database| {
            database.rows(
                &format!("{DELIVERIES} ORDER BY number, channel"),
                &[],
                delivery,
            )
        })
    }

    /// Claims the oldest due delivery until a time; skips the named channels. Workers on other
    /// hosts pass over it.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn take_delivery(
        &self,
        now_unix: UnixTime,
        until_unix: UnixTime,
        except: &[String],
    ) -> Result<Option<Delivery>, StoreError> {
        self.with(|database| {
            let due = format!("{DELIVERIES} AND next_unix <= ?1 ORDER BY number, channel");
            let is_due =
                |all: Vec<Delivery>| all.into_iter().find(|one| !except.contains(&one.channel));
            // Asked without a lock first: there is rarely anything to deliver.
            if is_due(database.rows(&due, &[&Time(now_unix)], delivery)?).is_none() {
                return Ok(None);
            }
            let transaction = database.change()?;
            let due = format!("{due}{}", database.lock(Locked::Skip));
            let found = is_due(database.rows(&due, &[&Time(now_unix)], delivery)?);
            if let Some(found) = &found {
                fail(
                    database,
                    found,
                    "its delivery is uncertain: the sending process was killed",
                    until_unix,
                )?;
            }
            transaction.commit()?;
            Ok(found)
        })
    }

    /// Records a successful delivery.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn record_delivery(
        &self,
        delivery: &Delivery,
        now_unix: UnixTime,
    ) -> Result<(), StoreError> {
        let update = "UPDATE deliveries SET delivered_unix = ?3 WHERE notice = ?1 AND channel = ?2";
        let given: Values<'_> = &[
            &Unsigned(delivery.number),
            &delivery.channel,
            &Time(now_unix),
        ];
        self.with(|database| database.execute(update, given).map(drop))
    }

    /// Records a failed delivery, its reason, and the time of the next attempt.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn record_failure(
        &self,
        delivery: &Delivery,
        failure: &str,
        next_unix: UnixTime,
    ) -> Result<(), StoreError> {
        self.with(|database| fail(database, delivery, failure, next_unix))
    }
}

fn fail(
    database: &Database,
    delivery: &Delivery,
    failure: &str,
    next_unix: UnixTime,
) -> Result<(), Failure> {
    let update = "UPDATE deliveries SET tries = ?5, said = ?3, next_unix = ?4 WHERE notice = ?1 AND channel = ?2";
    let tries = delivery.tries + 1;
    database
        .execute(
            update,
            &[
                &Unsigned(delivery.number),
                &delivery.channel,
                &failure,
                &Time(next_unix),
                &tries,
            ],
        )
        .map(drop)
}

#[cfg(test)]
mod tests {
    use model::UnixTime;

    use super::Notice;
    use crate::testing::{New, contract};

    contract!(
        notice_is_sent_once_per_occurrence,
        undelivered_notice_is_kept_and_retried,
        delivery_of_a_killed_process_is_repeated,
        told_regressions_have_channels_and_times,
    );

    fn notice(subject: &str) -> Notice {
        Notice {
            subject: subject.into(),
            headline: "it is gone".into(),
            body: "all of it\n".into(),
            raised_unix: UnixTime::new(100),
        }
    }

    fn notice_is_sent_once_per_occurrence(make: New<'_>) {
        let (_home, store) = make();
        assert!(store.raise(&notice("tree:a"), &["mail", "chat"]).unwrap());
        assert!(!store.raise(&notice("tree:a"), &["mail", "chat"]).unwrap());
        assert!(
            store.raise(&notice("tree:b"), &[]).unwrap(),
            "without channels, but it stands"
        );
        assert_eq!(store.list_undelivered().unwrap().len(), 2);
        let standing = store.list_standing("tree:").unwrap();
        assert_eq!(standing, [notice("tree:a"), notice("tree:b")]);
        assert!(store.list_standing("a").unwrap().is_empty());
        assert_eq!(store.standing("tree:a").unwrap(), Some(notice("tree:a")));
        assert!(
            store.settle("tree:a", UnixTime::new(200)).unwrap()
                && !store.settle("tree:a", UnixTime::new(200)).unwrap()
        );
        assert_eq!(store.standing("tree:a").unwrap(), None);
        assert!(store.raise(&notice("tree:a"), &["mail"]).unwrap());
        assert_eq!(
            store.list_undelivered().unwrap().len(),
            3,
            "what was not told yet is still told"
        );
    }

    fn undelivered_notice_is_kept_and_retried(make: New<'_>) {
        let (_home, store) = make();
        store.raise(&notice("tree:a"), &["mail"]).unwrap();
        let take = |now: i64| {
            let now = UnixTime::new(now);
            store.take_delivery(now, now.plus_seconds(60), &[]).unwrap()
        };
        assert_eq!(take(99), None);
        assert_eq!(
            store
                .take_delivery(UnixTime::new(100), UnixTime::new(160), &["mail".into()])
                .unwrap(),
            None
        );
        let due = take(100).unwrap();
        assert_eq!(
            (&due.notice, due.channel.as_str(), due.tries),
            (&notice("tree:a"), "mail", 0)
        );
        assert_eq!(take(100), None, "one at a time has it");
        store
            .record_failure(&due, "connection refused", UnixTime::new(160))
            .unwrap();
        assert_eq!(take(159), None);
        let due = take(160).unwrap();
        assert_eq!((due.tries, due.failure.as_str()), (1, "connection refused"));
        store.record_delivery(&due, UnixTime::new(161)).unwrap();
        assert!(store.list_undelivered().unwrap().is_empty());
    }

    fn delivery_of_a_killed_process_is_repeated(make: New<'_>) {
        let (_home, store) = make();
        store.raise(&notice("tree:a"), &["mail"]).unwrap();
        store
            .take_delivery(UnixTime::new(100), UnixTime::new(160), &[])
            .unwrap()
            .unwrap();
        let again = store
            .take_delivery(UnixTime::new(160), UnixTime::new(220), &[])
            .unwrap()
            .unwrap();
        assert_eq!(
            (again.tries, again.failure.as_str()),
            (
                1,
                "its delivery is uncertain: the sending process was killed"
            )
        );
    }

    fn told_regressions_have_channels_and_times(make: New<'_>) {
        let (_home, store) = make();
        assert!(store.list_told().unwrap().is_empty());
        for subject in [
            "tree:a",
            "regression:cloud 6.1..6.2",
            "report:cloud 6.1..6.2",
        ] {
            let channels: &[&str] = match subject {
                "tree:a" => &["mail"],
                "regression:cloud 6.1..6.2" => &["chat", "mail"],
                _ => &["mail to a@x.org"],
            };
            store.raise(&notice(subject), channels).unwrap();
        }
        store
            .raise(&notice("regression:cloud 6.2..6.3"), &[])
            .unwrap();
        let take = |except: &[String]| {
            let now = UnixTime::new(100);
            let taken = store.take_delivery(now, now.plus_seconds(60), except);
            taken.unwrap().unwrap()
        };
        let chat = take(&["mail".to_owned()]);
        store.record_delivery(&chat, UnixTime::new(110)).unwrap();
        let mail = take(&["mail".to_owned()]);
        store
            .record_failure(&mail, "no route", UnixTime::new(200))
            .unwrap();
        let all = store.list_told().unwrap();
        let shown: Vec<_> = all
            .iter()
            .map(|told| {
                let delivered = told.delivered_unix.map(UnixTime::seconds);
                (told.channel.as_deref(), delivered, &*told.failure)
            })
            .collect();
        let expected = [
            (Some("chat"), Some(110), ""),
            (Some("mail"), None, ""),
            (Some("mail"), None, "no route"),
            (None, None, ""),
        ];
        assert_eq!(shown, expected);
        assert_eq!(all[2].addresses, ["a@x.org"]);
        assert_eq!((&*all[3].after, &*all[3].at), ("6.2", "6.3"));
    }
}
