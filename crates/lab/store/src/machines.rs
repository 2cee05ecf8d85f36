//! Machines in the store.

use model::{Machine, MachineId, MachineKind};

use crate::codes::Code;
use crate::columns::PairTable;
use crate::{LookupError, Store, StoreError};

const FINGERPRINTS: PairTable = PairTable {
    table: "fingerprints",
    select: "SELECT name, value FROM fingerprints WHERE machine = ?1 ORDER BY position",
};

impl Store {
    /// Saves a machine, unless it is stored, since its id covers all of it.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn save_machine(&self, machine: &Machine) -> Result<(), StoreError> {
        self.with(|database| {
            let transaction = database.write()?;
            let new = database.execute(
                "INSERT INTO machines VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
                &[&machine.id.hex(), &machine.kind.name(), &machine.summary],
            )?;
            if new > 0 {
                FINGERPRINTS.save(database, &machine.id.hex(), &machine.fingerprint)?;
            }
            transaction.commit()
        })
    }

    /// Returns a machine.
    ///
    /// # Errors
    /// If there is none of that id, or the database cannot be read.
    pub fn machine(&self, id: &MachineId) -> Result<Machine, StoreError> {
        self.with(|database| {
            let found = database.row(
                "SELECT kind, summary FROM machines WHERE id = ?1",
                &[&id.hex()],
                |row| Ok((row.get::<Code<MachineKind>>(0)?.0, row.get(1)?)),
            )?;
            found
                .map(|(kind, summary)| {
                    Ok(Machine {
                        id: id.clone(),
                        kind,
                        summary,
                        fingerprint: FINGERPRINTS.load(database, &id.hex())?,
                    })
                })
                .transpose()
        })?
        .ok_or_else(|| {
            StoreError::Lookup(LookupError::Unknown {
                noun: "machine",
                text: id.to_string(),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use model::{Fault, MachineId};

    use crate::testing::{New, contract, machine, sqlite, store};

    contract!(
        a_machine_comes_back_as_it_was_however_often_it_is_saved,
        unknown_machine_is_reported_unknown,
    );

    fn a_machine_comes_back_as_it_was_however_often_it_is_saved(new: New<'_>) {
        let (_home, store) = new();
        let machine = machine("ab");
        store.save_machine(&machine).unwrap();
        store.save_machine(&machine).unwrap();
        assert_eq!(store.machine(&machine.id).unwrap(), machine);
    }

    fn unknown_machine_is_reported_unknown(new: New<'_>) {
        let (_home, store) = new();
        let error = store
            .machine(&MachineId::from_hex("00").unwrap())
            .unwrap_err();
        assert_eq!(error.fault(), Fault::User);
        insta::assert_snapshot!(error, @"no machine `machine_00`: `marvin runs` lists stored runs");
    }

    #[test]
    fn unknown_machine_kind_is_an_error() {
        let (home, store) = store();
        store.save_machine(&machine("ab")).unwrap();
        sqlite(&store)
            .execute("UPDATE machines SET kind = 'quantum'", [])
            .unwrap();
        let error = store.machine(&machine("ab").id).unwrap_err();
        insta::assert_snapshot!(
            error.to_string().replace(home.path().to_str().unwrap(), "HOME"),
            @"HOME/marvin.db was written by a newer Marvin (it has the kind of machine `quantum`, which this one does not know): use the newer one"
        );
    }
}
