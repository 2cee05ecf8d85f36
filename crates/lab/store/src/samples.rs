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

/// Numbers of an iteration before costly instructions were counted.
const SHARES: usize = 4;

/// Returns counts as numbers: how many an iteration has, negative, and the iterations, four shares
/// and the costly instructions by kind. They are far below 2^53, up to which floats are exact.
pub(crate) fn of_regions(regions: &[Region]) -> Vec<f64> {
    if regions.is_empty() {
        return Vec::new();
    }
    let width = SHARES + regions[0].costly.len();
    let mut numbers = vec![-(width as f64)];
    for region in regions {
        let shares = [region.user, region.kernel, region.interrupt, region.other];
        numbers.extend(
            shares
                .iter()
                .chain(&region.costly)
                .map(|count| *count as f64),
        );
    }
    numbers
}

/// Returns the counts of such numbers; without the negative one there are four for each iteration,
/// as before costly instructions were counted.
pub(crate) fn to_regions(numbers: &[f64]) -> Vec<Region> {
    let (width, numbers) = match numbers {
        [width, rest @ ..] if *width < 0.0 => (-*width as usize, rest),
        all => (SHARES, all),
    };
    let mut regions = Vec::new();
    for iteration in numbers.chunks_exact(width.max(SHARES)) {
        let mut region = Region {
            user: iteration[0] as u64,
            kernel: iteration[1] as u64,
            interrupt: iteration[2] as u64,
            other: iteration[3] as u64,
            ..Region::default()
        };
        for (count, number) in region.costly.iter_mut().zip(&iteration[SHARES..]) {
            *count = *number as u64;
        }
        regions.push(region);
    }
    regions
}

#[cfg(test)]
mod tests {
    use rusqlite::types::{FromSql, ToSqlOutput, Value, ValueRef};

    use super::{Region, Samples, of_regions, to_regions};

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
    fn counts_round_trip_with_costly_instructions() {
        let mut regions = vec![Region::default(); 3];
        regions[1].kernel = 7;
        regions[2].costly[27] = 9;
        assert_eq!(to_regions(&of_regions(&regions)), regions);
        assert_eq!(of_regions(&[]), Vec::<f64>::new());
    }

    #[test]
    fn counts_of_earlier_versions_are_read() {
        let regions = to_regions(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        assert_eq!((regions.len(), regions[1].kernel), (2, 6));
        assert_eq!(regions[0].costly.iter().sum::<u64>(), 0);
    }

    #[test]
    fn a_torn_blob_is_refused() {
        assert!(Samples::column_result(ValueRef::Blob(&[0; 9])).is_err());
    }
}
