//! The checksum of a result: without it a flipped bit in a database would change a number
//! unnoticed.

use model::WorkloadResult;

use crate::codes::{OutcomeColumns, declared_text};

/// A result that differs from the saved one.
#[derive(Debug, thiserror::Error)]
#[error(
    "the result of `{0}` does not match its checksum: restore the database from a copy, or measure again with --force"
)]
pub(crate) struct Mismatch(pub(crate) String);

/// Returns the CRC-32 of every field of a result that numbers or verdicts depend on, in a fixed
/// order and width.
pub(crate) fn checksum(result: &WorkloadResult) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    let outcome = OutcomeColumns::from_outcome(&result.outcome);
    let declared = result.declared.as_ref().map(declared_text);
    let texts = [
        Some(&*result.workload),
        Some(outcome.outcome),
        outcome.stage,
        outcome.reason,
        declared.as_deref(),
    ];
    for text in texts {
        let text = text.unwrap_or_default();
        crc.update(&(text.len() as u64).to_le_bytes());
        crc.update(text.as_bytes());
    }
    crc.update(&result.operations.to_le_bytes());
    crc.update(&(result.samples.len() as u64).to_le_bytes());
    for sample in &result.samples {
        crc.update(&sample.to_bits().to_le_bytes());
    }
    for region in &result.counted {
        for count in [region.user, region.kernel, region.interrupt, region.other] {
            crc.update(&count.to_le_bytes());
        }
        // Results from before they were counted have none.
        if region.costly.iter().any(|count| *count > 0) {
            for count in region.costly {
                crc.update(&count.to_le_bytes());
            }
        }
    }
    crc.finalize()
}

#[cfg(test)]
mod tests {
    use model::{Clock, Declared, Metric, Outcome, Region};

    use super::checksum;
    use crate::database::Database;
    use crate::testing::{New, contract, run, saved};

    contract!(result_with_flipped_bit_is_refused,);

    fn result_with_flipped_bit_is_refused(new: New<'_>) {
        let (_home, store) = new();
        let stored = run("aa", "01", 1);
        saved(&store, &stored);
        assert_eq!(store.run(&stored.id).unwrap(), stored);
        let update = "UPDATE results SET operations = operations + 1 WHERE position = 0";
        let of_table = if matches!(store.database, Database::Server(_)) {
            " ON results"
        } else {
            ""
        };
        let unguard = format!("DROP TRIGGER results_are_never_changed{of_table}");
        store
            .with(|database| database.execute(&unguard, &[]))
            .unwrap();
        store
            .with(|database| database.execute(update, &[]))
            .unwrap();
        let error = store.run(&stored.id).unwrap_err().to_string();
        assert!(error.contains("does not match its checksum"), "{error}");
    }

    #[test]
    fn checksum_covers_samples_counts_and_outcome() {
        let mut one = run("aa", "01", 1).results.swap_remove(0);
        (one.samples, one.counted, one.outcome) =
            (vec![1.5, 2.5], vec![Region::default()], Outcome::Completed);
        one.declared = Some(Declared::from_metric(&Metric::COST, Clock::Instructions));
        let mut others = vec![one.clone(); 6];
        others[0].samples[0] = f64::from_bits(one.samples[0].to_bits() ^ 1);
        others[1].counted[0].kernel ^= 1;
        others[2].outcome = Outcome::Unsupported(String::new());
        others[3].workload.push('x');
        others[4].declared = None;
        others[5].counted[0].costly[3] = 1;
        for other in others {
            assert_ne!(checksum(&one), checksum(&other), "{other:?}");
        }
    }
}
