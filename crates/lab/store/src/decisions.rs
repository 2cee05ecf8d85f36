//! Triage decisions about alerts: added, never changed. The caller matches them with alerts:
//! kernels that are measured later make the range of a change narrower, so a decision keeps the
//! range known at its time.

use model::{Decision, Triage};

use crate::codes::{self, Code};
use crate::columns::{self, Time};
use crate::{Store, StoreError};

impl Store {
    /// Saves a decision.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn decide(&self, decision: &Decision) -> Result<(), StoreError> {
        let Decision {
            track,
            after,
            at,
            triage,
            note,
            worse,
            decided_unix,
        } = decision;
        self.with(|database| {
            let transaction = database.write()?;
            database.execute(
                "INSERT INTO decisions (track, after, at, triage, note, worse, decided_unix)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                &[
                    track,
                    after,
                    at,
                    &codes::triage(*triage),
                    note,
                    worse,
                    &Time(*decided_unix),
                ],
            )?;
            transaction.commit()
        })
    }

    /// Lists all decisions, oldest first.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn decisions(&self) -> Result<Vec<Decision>, StoreError> {
        let select = "SELECT track, after, at, triage, note, worse, decided_unix FROM decisions ORDER BY number";
        self.with(|database| {
            database.rows(select, &[], |row| {
                Ok(Decision {
                    track: row.get(0)?,
                    after: row.get(1)?,
                    at: row.get(2)?,
                    triage: row.get::<Code<Triage>>(3)?.0,
                    note: row.get(4)?,
                    worse: row.get(5)?,
                    decided_unix: columns::time(row, 6)?,
                })
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use model::{Fault, Triage};

    use crate::testing::{New, contract, decision, sqlite, store};

    contract!(decisions_come_back_in_the_order_they_were_made,);

    fn decisions_come_back_in_the_order_they_were_made(new: New<'_>) {
        let (_home, store) = new();
        let all: Vec<_> = Triage::ALL
            .into_iter()
            .map(|triage| decision("6.12.117", triage))
            .collect();
        all.iter()
            .for_each(|decision| store.decide(decision).unwrap());
        assert_eq!(store.decisions().unwrap(), all);
    }

    #[test]
    fn an_outcome_from_the_future_is_an_error() {
        let (home, store) = store();
        sqlite(&store)
            .execute_batch("INSERT INTO decisions VALUES (1, 't', 'a', 'b', 'pondered', '', 0, 0)")
            .unwrap();
        let error = store.decisions().unwrap_err();
        assert_eq!(error.fault(), Fault::User);
        insta::assert_snapshot!(
            error.to_string().replace(home.path().to_str().unwrap(), "HOME"),
            @"HOME/marvin.db was written by a newer Marvin (it has the outcome of a triage `pondered`, which this one does not know): use the newer one"
        );
    }
}
