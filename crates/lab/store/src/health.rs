//! The health of machines that have jobs. The model defines how it changes; here one process at a
//! time changes it.

use model::Health;

use crate::columns::{self, Time, Unsigned};
use crate::database::{Failure, Locked, Row, Values};
use crate::{Store, StoreError};

const SELECT: &str = "SELECT machine, failures, reason, quarantined_unix, next_unix FROM health";

impl Store {
    /// Returns the health of the machines in which the lab failed.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn health(&self) -> Result<Vec<Health>, StoreError> {
        self.with(|database| database.rows(&format!("{SELECT} ORDER BY machine"), &[], read))
    }

    /// Changes a machine's health, and returns it before and after.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn change_health(
        &self,
        machine: &str,
        step: impl FnOnce(&mut Health),
    ) -> Result<(Health, Health), StoreError> {
        self.with(|database| {
            let transaction = database.change()?;
            let insert = "INSERT INTO health VALUES (?1, 0, '', NULL, 0) ON CONFLICT DO NOTHING";
            database.execute(insert, &[&machine])?;
            let select = format!("{SELECT} WHERE machine = ?1{}", database.lock(Locked::Wait));
            let before = database.row(&select, &[&machine], read)?.unwrap_or_default();
            let mut after = before.clone();
            step(&mut after);
            let update = "UPDATE health SET failures = ?2, reason = ?3, quarantined_unix = ?4, next_unix = ?5
                 WHERE machine = ?1";
            let Health { failures, reason, quarantined_unix, next_unix, .. } = &after;
            let failures = Unsigned(u64::from(*failures));
            let quarantined = quarantined_unix.map(Time);
            let next = Time(*next_unix);
            let given: Values<'_> = &[&machine, &failures, reason, &quarantined, &next];
            database.execute(update, given)?;
            transaction.commit()?;
            Ok((before, after))
        })
    }
}

fn read(row: &Row<'_>) -> Result<Health, Failure> {
    Ok(Health {
        machine: row.get(0)?,
        failures: row.get(1)?,
        reason: row.get(2)?,
        quarantined_unix: columns::optional_time(row, 3)?,
        next_unix: columns::time(row, 4)?,
    })
}

#[cfg(test)]
mod tests {
    use model::UnixTime;

    use crate::testing::{New, again, contract};

    contract!(health_of_a_machine_is_kept,);

    fn health_of_a_machine_is_kept(make: New<'_>) {
        let (_home, store) = make();
        assert_eq!(store.health().unwrap(), []);
        for _ in 0..3 {
            again(&store)
                .change_health("testbox", |health| {
                    health.fail("no power", UnixTime::new(100));
                })
                .unwrap();
        }
        let all = store.health().unwrap();
        assert_eq!(
            (all.len(), all[0].failures, all[0].quarantined_unix),
            (1, 3, Some(UnixTime::new(100)))
        );
        let (before, after) = store
            .change_health("testbox", model::Health::recover)
            .unwrap();
        assert_eq!(
            (before, after.failures, after.quarantined_unix),
            (all[0].clone(), 0, None)
        );
    }
}
