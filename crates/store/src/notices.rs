//! Notices for users: each is sent once while it stands, and each delivery is kept until it succeeds.

use rusqlite::{OptionalExtension, Row, params};

use crate::columns::Unsigned;
use crate::store::write;
use crate::{Store, StoreError};

/// A notice for users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Its subject: `tree:stable`, `boot:stable:git:v6.12`. While it stands, no other notice with this subject is
    /// raised.
    pub subject: String,
    /// Its summary, one line.
    pub headline: String,
    /// Its text.
    pub body: String,
    /// When it began, in seconds since 1970-01-01 UTC.
    pub raised_unix: i64,
}

/// A pending delivery of a notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Number of the notice.
    pub number: u64,
    /// The notice.
    pub notice: Notice,
    /// The channel.
    pub channel: String,
    /// The number of failed attempts.
    pub tries: u32,
    /// The reason of the last failure.
    pub said: String,
}

const DELIVERIES: &str = "SELECT subject, headline, body, raised_unix, number, channel, tries, said
     FROM deliveries JOIN notices ON notice = number WHERE delivered_unix IS NULL";

fn notice(row: &Row<'_>) -> rusqlite::Result<Notice> {
    Ok(Notice { subject: row.get(0)?, headline: row.get(1)?, body: row.get(2)?, raised_unix: row.get(3)? })
}

fn delivery(row: &Row<'_>) -> rusqlite::Result<Delivery> {
    let number = row.get::<_, Unsigned>(4)?.0;
    Ok(Delivery { number, notice: notice(row)?, channel: row.get(5)?, tries: row.get(6)?, said: row.get(7)? })
}

impl Store {
    /// Raises a notice on these channels. Returns whether it is new: one with a standing subject is not.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn raise(&self, notice: &Notice, channels: &[&str]) -> Result<bool, StoreError> {
        let Notice { subject, headline, body, raised_unix } = notice;
        let transaction = self.ask(write)?;
        let news = self.ask(|connection| {
            let added = connection
                .prepare_cached(
                    "INSERT INTO notices (subject, headline, body, raised_unix) VALUES (?1, ?2, ?3, ?4)
                     ON CONFLICT DO NOTHING",
                )?
                .execute(params![subject, headline, body, raised_unix])?;
            let number = connection.last_insert_rowid();
            for channel in channels.iter().filter(|_| added > 0) {
                connection
                    .prepare_cached("INSERT OR IGNORE INTO deliveries VALUES (?1, ?2, 0, ?3, NULL, '')")?
                    .execute(params![number, channel, raised_unix])?;
            }
            Ok(added > 0)
        })?;
        self.ask(|_| transaction.commit())?;
        Ok(news)
    }

    /// Clears a notice, so that its next occurrence is new. Returns whether there was one.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn settle(&self, subject: &str, now_unix: i64) -> Result<bool, StoreError> {
        self.ask(|connection| {
            connection
                .prepare_cached("UPDATE notices SET settled_unix = ?2 WHERE subject = ?1 AND settled_unix IS NULL")?
                .execute(params![subject, now_unix])
                .map(|settled| settled > 0)
        })
    }

    /// Returns the standing notice of a subject.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn standing(&self, subject: &str) -> Result<Option<Notice>, StoreError> {
        self.ask(|connection| {
            connection
                .prepare_cached(
                    "SELECT subject, headline, body, raised_unix FROM notices WHERE subject = ?1 AND settled_unix IS NULL",
                )?
                .query_row([subject], notice)
                .optional()
        })
    }

    /// Lists undelivered notices, oldest first.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn list_undelivered(&self) -> Result<Vec<Delivery>, StoreError> {
        self.ask(|connection| {
            connection
                .prepare_cached(&format!("{DELIVERIES} ORDER BY number, channel"))?
                .query_map([], delivery)?
                .collect()
        })
    }

    /// Claims the oldest due delivery until a time; skips the named channels.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn take_delivery(
        &self,
        now_unix: i64,
        until_unix: i64,
        except: &[String],
    ) -> Result<Option<Delivery>, StoreError> {
        let transaction = self.ask(write)?;
        let found = self.ask(|connection| {
            let mut due =
                connection.prepare_cached(&format!("{DELIVERIES} AND next_unix <= ?1 ORDER BY number, channel"))?;
            let all: Vec<Delivery> = due.query_map([now_unix], delivery)?.collect::<Result<_, _>>()?;
            Ok(all.into_iter().find(|one| !except.contains(&one.channel)))
        })?;
        if let Some(found) = &found {
            self.record_failure(found, "its delivery is uncertain: the sending process was killed", until_unix)?;
        }
        self.ask(|_| transaction.commit())?;
        Ok(found)
    }

    /// Records a successful delivery.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn record_delivery(&self, delivery: &Delivery, now_unix: i64) -> Result<(), StoreError> {
        self.ask(|connection| {
            connection
                .prepare_cached("UPDATE deliveries SET delivered_unix = ?3 WHERE notice = ?1 AND channel = ?2")?
                .execute(params![delivery.number.cast_signed(), delivery.channel, now_unix])
                .map(drop)
        })
    }

    /// Records a failed delivery, its reason, and the time of the next attempt.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn record_failure(&self, delivery: &Delivery, said: &str, next_unix: i64) -> Result<(), StoreError> {
        self.ask(|connection| {
            connection
                .prepare_cached(
                    "UPDATE deliveries SET tries = ?5, said = ?3, next_unix = ?4 WHERE notice = ?1 AND channel = ?2",
                )?
                .execute(params![delivery.number.cast_signed(), delivery.channel, said, next_unix, delivery.tries + 1])
                .map(drop)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Notice;
    use crate::testing::store;

    fn notice(subject: &str) -> Notice {
        Notice { subject: subject.into(), headline: "it is gone".into(), body: "all of it\n".into(), raised_unix: 100 }
    }

    #[test]
    fn notice_is_sent_once_per_occurrence() {
        let (_home, store) = store();
        assert!(store.raise(&notice("tree:a"), &["mail", "chat"]).unwrap());
        assert!(!store.raise(&notice("tree:a"), &["mail", "chat"]).unwrap());
        assert!(store.raise(&notice("tree:b"), &[]).unwrap(), "without channels, but it stands");
        assert_eq!(store.list_undelivered().unwrap().len(), 2);
        assert_eq!(store.standing("tree:a").unwrap(), Some(notice("tree:a")));
        assert!(store.settle("tree:a", 200).unwrap() && !store.settle("tree:a", 200).unwrap());
        assert_eq!(store.standing("tree:a").unwrap(), None);
        assert!(store.raise(&notice("tree:a"), &["mail"]).unwrap());
        assert_eq!(store.list_undelivered().unwrap().len(), 3, "what was not told yet is still told");
    }

    #[test]
    fn undelivered_notice_is_kept_and_retried() {
        let (_home, store) = store();
        store.raise(&notice("tree:a"), &["mail"]).unwrap();
        let take = |now: i64| store.take_delivery(now, now + 60, &[]).unwrap();
        assert_eq!(take(99), None);
        assert_eq!(store.take_delivery(100, 160, &["mail".into()]).unwrap(), None);
        let due = take(100).unwrap();
        assert_eq!((&due.notice, due.channel.as_str(), due.tries), (&notice("tree:a"), "mail", 0));
        assert_eq!(take(100), None, "one at a time has it");
        store.record_failure(&due, "connection refused", 160).unwrap();
        assert_eq!(take(159), None);
        let due = take(160).unwrap();
        assert_eq!((due.tries, due.said.as_str()), (1, "connection refused"));
        store.record_delivery(&due, 161).unwrap();
        assert!(store.list_undelivered().unwrap().is_empty());
    }

    #[test]
    fn delivery_of_a_killed_process_is_repeated() {
        let (_home, store) = store();
        store.raise(&notice("tree:a"), &["mail"]).unwrap();
        store.take_delivery(100, 160, &[]).unwrap().unwrap();
        let again = store.take_delivery(160, 220, &[]).unwrap().unwrap();
        assert_eq!(
            (again.tries, again.said.as_str()),
            (1, "its delivery is uncertain: the sending process was killed")
        );
    }
}
