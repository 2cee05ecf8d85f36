//! Samples in a blob: consecutive little-endian float64. One row per sample would make loading
//! slow.

use model::Region;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSqlOutput, ValueRef};

const SIZE: usize = size_of::<f64>();

/// Samples from a column.
pub(crate) struct Samples(pub(crate) Vec<f64>);

/// A blob that is no list of numbers.
#[derive(Debug, thiserror::Error)]
#[error("samples of {0} bytes, which is no multiple of {SIZE}")]
struct Torn(usize);

/// Returns samples for a column.
pub(crate) fn packed(samples: &[f64]) -> ToSqlOutput<'static> {
    let bytes: Vec<u8> = samples.iter().flat_map(|x| x.to_le_bytes()).collect();
    bytes.into()
}

impl FromSql for Samples {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let bytes = value.as_blob()?;
        let (numbers, rest) = bytes.as_chunks::<SIZE>();
        if !rest.is_empty() {
            return Err(FromSqlError::Other(Box::new(Torn(bytes.len()))));
        }
        Ok(Self(
            numbers.iter().map(|n| f64::from_le_bytes(*n)).collect(),
        ))
    }
}

/// Returns counts as numbers, four for each iteration. They are far below 2^53, up to which floats
/// are exact.
pub(crate) fn of_regions(regions: &[Region]) -> Vec<f64> {
    regions
        .iter()
        .flat_map(|region: &Region| {
            [region.user, region.kernel, region.interrupt, region.other].map(|count| count as f64)
        })
        .collect()
}

/// Returns the counts of such numbers.
pub(crate) fn to_regions(numbers: &[f64]) -> Vec<Region> {
    let (fours, _) = numbers.as_chunks::<4>();
    fours
        .iter()
        .map(|four: &[f64; 4]| {
            let [user, kernel, interrupt, other] = four.map(|number| number as u64);
            Region {
                user,
                kernel,
                interrupt,
                other,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use rusqlite::types::{FromSql, ToSqlOutput, Value, ValueRef};

    use super::Samples;

    fn packed(numbers: &[f64]) -> Vec<u8> {
        match super::packed(numbers) {
            ToSqlOutput::Owned(Value::Blob(bytes)) => bytes,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn samples_round_trip_bit_by_bit() {
        let numbers = [
            0.0,
            -0.0,
            1.5,
            f64::MIN_POSITIVE / 2.0,
            f64::INFINITY,
            -f64::NAN,
        ];
        let back = Samples::column_result(ValueRef::Blob(&packed(&numbers))).unwrap();
        let bits = |list: &[f64]| list.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&back.0), bits(&numbers));
    }

    #[test]
    fn the_bytes_are_those_of_the_format() {
        assert_eq!(packed(&[1.0]), [0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
    }

    #[test]
    fn a_torn_blob_is_refused() {
        assert!(Samples::column_result(ValueRef::Blob(&[0; 9])).is_err());
    }
}
