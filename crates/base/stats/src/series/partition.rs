//! The best way to cut a series into pieces of constant level: least squares and a price for each
//! cut.
//!
//! The same optimum as PELT (Killick, Fearnhead and Eckley 2012), found by functional pruning
//! (Maidstone, Hocking, Rigaill and Fearnhead 2017, "On optimal multiple changepoint algorithms for
//! large data", FPOP): near n log n whether or not there are changes. Knows nothing of noise: scale
//! and price are the callers' work.

/// Where the level of the last segment may lie, and what the best cut before it costs as a function
/// of that level `m`: `constant - 2 sum m + count m²`.
#[derive(Debug, Clone, Copy)]
struct Piece {
    low: f64,
    high: f64,
    count: f64,
    sum: f64,
    constant: f64,
    mean: f64,
    /// First point of the last segment.
    since: usize,
}

impl Piece {
    fn cost(&self, level: f64) -> f64 {
        self.constant + level * (self.count * level - 2.0 * self.sum)
    }

    /// Returns the levels within the piece at which it costs at most `most`.
    fn within(&self, most: f64) -> Option<(f64, f64)> {
        // A parabola below a line at both ends is so between them: no root is needed, and that is
        // the usual case.
        if self.cost(self.low) <= most && self.cost(self.high) <= most {
            return Some((self.low, self.high));
        }
        let square = (most - self.constant + self.sum * self.mean) / self.count;
        if square < 0.0 {
            return None;
        }
        let half = square.sqrt();
        let low = (self.mean - half).max(self.low);
        let high = (self.mean + half).min(self.high);
        (low < high).then_some((low, high))
    }
}

/// What is known of the best cuts of the points so far.
#[derive(Debug)]
pub(crate) struct Partition {
    price: f64,
    pieces: Vec<Piece>,
    spare: Vec<Piece>,
    /// For each point: where the last segment begins if the series ends with it.
    since: Vec<usize>,
}

impl Partition {
    /// Begins without points. The price of a cut is in squares of the points' unit.
    pub(crate) fn new(price: f64) -> Self {
        let all = Piece {
            low: f64::NEG_INFINITY,
            high: f64::INFINITY,
            count: 0.0,
            sum: 0.0,
            constant: 0.0,
            mean: 0.0,
            since: 0,
        };
        Self {
            price,
            pieces: vec![all],
            spare: Vec::new(),
            since: Vec::new(),
        }
    }

    /// Takes the next point.
    pub(crate) fn push(&mut self, point: f64) {
        let mut best = (f64::INFINITY, 0);
        for piece in &mut self.pieces {
            piece.count += 1.0;
            piece.sum += point;
            piece.constant += point * point;
            piece.mean = piece.sum / piece.count;
            let least = piece.cost(piece.mean.clamp(piece.low, piece.high));
            if least < best.0 {
                best = (least, piece.since);
            }
        }
        self.since.push(best.1);
        self.cut(best.0 + self.price);
    }

    /// Lets a segment that begins with the next point take the place of all that cost more.
    fn cut(&mut self, most: f64) {
        let next = self.since.len();
        self.spare.clear();
        for piece in &self.pieces {
            let fresh = |low, high| Piece {
                low,
                high,
                count: 0.0,
                sum: 0.0,
                constant: most,
                mean: 0.0,
                since: next,
            };
            let Some((low, high)) = piece.within(most) else {
                add(&mut self.spare, fresh(piece.low, piece.high));
                continue;
            };
            if piece.low < low {
                add(&mut self.spare, fresh(piece.low, low));
            }
            self.spare.push(Piece {
                low,
                high,
                ..*piece
            });
            if high < piece.high {
                add(&mut self.spare, fresh(high, piece.high));
            }
        }
        std::mem::swap(&mut self.pieces, &mut self.spare);
    }

    /// Returns where segments begin, the first one left out, in order.
    pub(crate) fn cuts(&self) -> Vec<usize> {
        let mut cuts = Vec::new();
        let mut end = self.since.len();
        while let Some(&begin) = end.checked_sub(1).and_then(|last| self.since.get(last)) {
            if begin == 0 || begin >= end {
                break;
            }
            cuts.push(begin);
            end = begin;
        }
        cuts.reverse();
        cuts
    }
}

/// Adds a piece of the newest segment, or widens it where it is the last already.
fn add(pieces: &mut Vec<Piece>, fresh: Piece) {
    match pieces.last_mut() {
        Some(last) if last.since == fresh.since => last.high = fresh.high,
        _ => pieces.push(fresh),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop, prop_assert, proptest};

    use super::Partition;

    fn cost(points: &[f64]) -> f64 {
        let mean = points.iter().sum::<f64>() / points.len().max(1) as f64;
        points.iter().map(|p| (p - mean).powi(2)).sum()
    }

    fn total(points: &[f64], cuts: &[usize], price: f64) -> f64 {
        let ends: Vec<usize> = cuts.iter().copied().chain([points.len()]).collect();
        let mut begin = 0;
        let mut sum = price * cuts.len() as f64;
        for end in ends {
            sum += cost(&points[begin..end]);
            begin = end;
        }
        sum
    }

    /// The least cost by trying every last cut for every length: no pruning.
    fn plain(points: &[f64], price: f64) -> f64 {
        let mut least = vec![-price];
        for end in 1..=points.len() {
            let best = (0..end).map(|begin| least[begin] + price + cost(&points[begin..end]));
            least.push(best.fold(f64::INFINITY, f64::min));
        }
        least[points.len()]
    }

    fn cuts(points: &[f64], price: f64) -> Vec<usize> {
        let mut partition = Partition::new(price);
        points.iter().for_each(|point| partition.push(*point));
        partition.cuts()
    }

    #[test]
    fn steps_are_cut_where_they_are() {
        assert!(cuts(&[], 1.0).is_empty());
        assert!(cuts(&[5.0], 1.0).is_empty());
        assert!(cuts(&[3.0; 50], 1.0).is_empty());
        assert_eq!(cuts(&[0.0, 0.0, 0.0, 9.0, 9.0, 9.0, 4.0, 4.0], 1.0), [3, 6]);
    }

    proptest! {
        #[test]
        fn no_other_cuts_cost_less(
            points in prop::collection::vec(-10.0..10.0, 0..40),
            price in 0.1..300.0,
        ) {
            let found = total(&points, &cuts(&points, price), price);
            let least = plain(&points, price).max(0.0);
            prop_assert!(found <= least + 1e-6, "{found} {least}");
        }
    }
}
