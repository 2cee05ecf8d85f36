//! Many questions at once: how sure an answer still is when it was picked from many.

/// Returns one p for a family of questions: the chance of an answer as surprising as the best of
/// them if none of them has anything to find, `min over i of m p(i) / i` (Simes 1986; holds for
/// independent and for positively dependent answers).
///
/// `None` for no questions and for what is no chance from 0 to 1.
#[must_use]
pub fn simes(p: &[f64]) -> Option<f64> {
    let q = benjamini_hochberg(p)?;
    q.into_iter().min_by(f64::total_cmp)
}

/// Returns a q for each p: the least share of false finds at which it is found, `min over j >= i of
/// m p(j) / j` (Benjamini and Hochberg 1995, as adjusted values), in the order given.
///
/// `None` for what is no chance from 0 to 1.
#[must_use]
pub fn benjamini_hochberg(p: &[f64]) -> Option<Vec<f64>> {
    if !p.iter().all(|p| (0.0..=1.0).contains(p)) {
        return None;
    }
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*b].total_cmp(&p[*a]));
    let mut q = vec![1.0; p.len()];
    let mut least: f64 = 1.0;
    for (above, n) in order.into_iter().enumerate() {
        let rank = (p.len() - above) as f64;
        // In this order: the last factor is exactly 1 for the largest p.
        least = least.min(p[n] * (p.len() as f64 / rank));
        q[n] = least;
    }
    Some(q)
}

/// A family among others.
#[derive(Debug, Clone, PartialEq)]
pub struct Family {
    /// Simes' p of its members.
    pub p: f64,
    /// Benjamini and Hochberg's q of the family among all.
    pub q: f64,
    /// A q for each member, never less than the family's: to be held against the same level.
    pub members: Vec<f64>,
}

/// Returns the q of families and of their members, in the order given.
///
/// A family is selected when its q is at most `level`; inside selected ones the level is lowered to
/// the share of families that are selected (Benjamini and Bogomolov 2014, "Selective inference on
/// multiple families of hypotheses"), here by raising the members' q as much.
///
/// `None` for a family without members and for what is no chance from 0 to 1, the level included.
#[must_use]
pub fn families<F: AsRef<[f64]>>(p: &[F], level: f64) -> Option<Vec<Family>> {
    let whole = p
        .iter()
        .map(|p| simes(p.as_ref()))
        .collect::<Option<Vec<f64>>>()?;
    let q = benjamini_hochberg(&whole)?;
    if !(0.0..=1.0).contains(&level) {
        return None;
    }
    let selected = q.iter().filter(|q| **q <= level).count().max(1);
    let raise = p.len() as f64 / selected as f64;
    let mut families = Vec::new();
    for (n, p) in p.iter().enumerate() {
        let inside = benjamini_hochberg(p.as_ref())?;
        let members = inside
            .into_iter()
            .map(|own| (own * raise).clamp(q[n], 1.0))
            .collect();
        families.push(Family {
            p: whole[n],
            q: q[n],
            members,
        });
    }
    Some(families)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop, prop_assert, proptest};

    use super::{benjamini_hochberg, families, simes};

    fn near(one: &[f64], other: &[f64]) -> bool {
        one.len() == other.len() && one.iter().zip(other).all(|(a, b)| (a - b).abs() < 1e-12)
    }

    #[test]
    fn known_values_are_adjusted() {
        let q = benjamini_hochberg(&[0.01, 0.04, 0.03, 0.005]).unwrap();
        assert!(near(&q, &[0.02, 0.04, 0.04, 0.02]), "{q:?}");
        assert!((simes(&[0.01, 0.04, 0.03, 0.005]).unwrap() - 0.02).abs() < 1e-12);
        assert_eq!(benjamini_hochberg(&[]), Some(Vec::new()));
    }

    #[test]
    fn what_is_no_chance_gets_no_answer() {
        for bad in [f64::NAN, -0.1, 1.1] {
            assert_eq!(benjamini_hochberg(&[0.5, bad]), None);
            assert_eq!(simes(&[bad]), None);
            assert_eq!(families(&[[0.5]], bad), None);
        }
        assert_eq!(simes(&[]), None);
        assert_eq!(families(&[vec![0.5], Vec::new()], 0.05), None);
    }

    #[test]
    fn members_pay_for_families_not_selected() {
        let found = families(&[vec![0.001, 0.9], vec![0.5], vec![0.6], vec![0.7]], 0.05).unwrap();
        assert!((found[0].p - 0.002).abs() < 1e-12 && (found[0].q - 0.008).abs() < 1e-12);
        // One of four is selected: four times 0.002.
        assert!(near(&found[0].members, &[0.008, 1.0]), "{found:?}");
        assert!(found[1].members[0] >= found[1].q);
    }

    proptest! {
        #[test]
        fn q_is_at_least_p_in_order(p in prop::collection::vec(0.0..=1.0, 1..40)) {
            let q = benjamini_hochberg(&p).unwrap();
            for (a, b) in p.iter().zip(&q) {
                prop_assert!(b >= a && *b <= 1.0);
            }
            for i in 0..p.len() {
                for j in 0..p.len() {
                    prop_assert!(p[i] > p[j] || q[i] <= q[j]);
                }
            }
        }
    }
}
