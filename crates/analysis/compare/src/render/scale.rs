//! The position of a ratio on a bar: a logarithmic scale around 1, with half and twice at equal
//! distances.
//!
//! Only coordinates; the template draws.

use crate::comparison::{Comparison, ComparisonCell};
use crate::difference::ratio_of_percent;
use document::number;

/// Half of a bar's width in the drawing's units, which are precise enough as integers.
const HALF: i32 = 1000;
/// Units in one percent of a bar's width.
pub(crate) const WIDTH_PERCENT: f64 = 20.0;
/// Narrower intervals are not drawn.
const VISIBLE: i32 = 10;
/// The ends of scales: the smallest one that shows nearly all rows is used, so that bars of two
/// reports look alike.
const ENDS: [f64; 9] = [1.05, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 100.0];
/// One in this many rows may exceed the end, so that one outlier does not hide all others.
const BEYOND: usize = 10;

/// A scale for all rows of a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scale {
    end: f64,
}

/// The drawing of one cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bar {
    /// The bar's left edge.
    pub(crate) x: i32,
    pub(crate) width: i32,
    /// The ends of the interval, over the seeds or of 95 % confidence, if it is wide enough.
    pub(crate) whisker: Option<(i32, i32)>,
    /// The margin's left edge.
    pub(crate) band: i32,
    pub(crate) band_width: i32,
    /// The side on which the bar leaves the scale, if it does.
    pub(crate) beyond: Option<Beyond>,
}

/// The side on which a bar leaves the scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beyond {
    /// Worse than the scale's end.
    Worse,
    /// Better than the scale's end.
    Better,
}

impl Scale {
    /// Returns the scale for the rows.
    pub(crate) fn new(comparison: &Comparison) -> Self {
        Self::for_comparisons([comparison])
    }

    /// Returns the scale for the rows of all comparisons.
    pub(crate) fn for_comparisons<'a>(
        comparisons: impl IntoIterator<Item = &'a Comparison>,
    ) -> Self {
        let mut sizes: Vec<f64> = comparisons
            .into_iter()
            .flat_map(|comparison| &comparison.rows)
            .flat_map(|row| &row.cells)
            .filter_map(|cell| cell.compared.ratio)
            .map(|ratio| ratio.ln().abs())
            .collect();
        sizes.sort_by(f64::total_cmp);
        let within = sizes.len().saturating_sub(sizes.len() / BEYOND);
        let largest = within
            .checked_sub(1)
            .and_then(|last| sizes.get(last))
            .copied()
            .unwrap_or(0.0);
        let last = ENDS[ENDS.len() - 1];
        Self {
            end: ENDS
                .into_iter()
                .find(|end| end.ln() >= largest)
                .unwrap_or(last),
        }
    }

    /// Returns the ratios at the left end, in the middle and at the right end, as text.
    pub(crate) fn ticks(&self) -> [String; 3] {
        [1.0 / self.end, 1.0, self.end].map(|ratio| {
            let text = number::ratio(ratio, 5);
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        })
    }

    /// Returns the drawing of a cell; `None` if it has no ratio.
    pub(crate) fn bar(
        &self,
        cell: &ComparisonCell,
        direction: model::Direction,
        margin_percent: f64,
    ) -> Option<Bar> {
        let ratio = cell.compared.ratio?;
        let end = self.x(ratio);
        let ratios: Vec<f64> = cell
            .compared
            .differences
            .iter()
            .filter_map(|d| d.ratio)
            .collect();
        let rated = cell.rated.and_then(|rated| rated.rating.interval());
        let rated = rated.map(|ends| stats::Spread {
            min: ends.low,
            max: ends.high,
        });
        let whisker = stats::spread(&ratios)
            .or(rated)
            .map(|ends| (self.x(ends.min), self.x(ends.max)))
            .filter(|(from, to)| to - from >= VISIBLE);
        let band = self.x(ratio_of_percent(direction, -margin_percent));
        Some(Bar {
            x: end.min(HALF),
            width: (end - HALF).abs(),
            whisker,
            band,
            band_width: self.x(ratio_of_percent(direction, margin_percent)) - band,
            beyond: if ratio > self.end {
                Some(Beyond::Better)
            } else if ratio < 1.0 / self.end {
                Some(Beyond::Worse)
            } else {
                None
            },
        })
    }

    fn x(&self, ratio: f64) -> i32 {
        let half = f64::from(HALF);
        let offset = (ratio.ln() / self.end.ln()).clamp(-1.0, 1.0) * half;
        // Within -1000 and 1000, so the conversion is exact enough.
        HALF + offset.round() as i32
    }
}

#[cfg(test)]
mod tests {
    use model::Direction::LowerIsBetter;

    use super::{Beyond, Scale};
    use crate::compare::compare;
    use crate::fixtures::{new, old, question, seeds};

    fn scale_and_comparison() -> (Scale, crate::Comparison) {
        let seeds = seeds(5);
        let old = old(&seeds);
        let new = new(&seeds);
        let comparison = compare(&old.side(), &[new.side()], &question(&seeds)).unwrap();
        (Scale::new(&comparison), comparison)
    }

    #[test]
    fn half_and_twice_are_equally_far() {
        let scale = Scale { end: 2.0 };
        assert_eq!(
            [0.5, 1.0, 2.0, 9.0].map(|r| scale.x(r)),
            [0, 1000, 2000, 2000]
        );
        assert_eq!(scale.ticks(), ["0.5", "1", "2"]);
    }

    #[test]
    fn regressions_are_drawn_left_and_improvements_right() {
        let (scale, comparison) = scale_and_comparison();
        let bar = |row: usize| {
            scale
                .bar(&comparison.rows[row].cells[0], LowerIsBetter, 1.0)
                .unwrap()
        };
        let worse = bar(0);
        assert_eq!(worse.x + worse.width, 1000);
        let better = bar(1);
        assert_eq!(better.x, 1000);
        assert!(better.width > 0);
        assert!(better.band < 1000 && better.band + better.band_width > 1000);
        assert_eq!(better.whisker, None, "one hundredth of a percent");
        let wide = bar(4);
        let (from, to) = wide.whisker.unwrap();
        assert!(from <= wide.x && 1000 < to);
    }

    #[test]
    fn row_beyond_the_scale_is_marked() {
        let (_, comparison) = scale_and_comparison();
        let mut cell = comparison.rows[0].cells[0].clone();
        let scale = Scale { end: 1.1 };
        for (ratio, beyond) in [
            (0.01, Some(Beyond::Worse)),
            (1.05, None),
            (7.0, Some(Beyond::Better)),
        ] {
            cell.compared.ratio = Some(ratio);
            assert_eq!(scale.bar(&cell, LowerIsBetter, 1.0).unwrap().beyond, beyond);
        }
        cell.compared.ratio = None;
        assert_eq!(scale.bar(&cell, LowerIsBetter, 1.0), None);
    }

    #[test]
    fn noisy_bar_has_its_confidence_interval() {
        let comparison = crate::fixtures::on_noisy(5, 1.0);
        let cell = &comparison.rows[7].cells[0];
        let scale = Scale { end: 1.25 };
        let (from, to) = scale
            .bar(cell, LowerIsBetter, 1.0)
            .unwrap()
            .whisker
            .unwrap();
        let ends = cell.rated.unwrap().rating.interval().unwrap();
        assert_eq!((from, to), (scale.x(ends.low), scale.x(ends.high)));
        assert!(from < 1000 && 1000 < to);
    }

    #[test]
    fn rows_without_ratios_get_the_narrowest_scale() {
        let (_, mut comparison) = scale_and_comparison();
        comparison.rows.clear();
        assert_eq!(Scale::new(&comparison), Scale { end: 1.05 });
    }
}
