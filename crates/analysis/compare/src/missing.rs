//! Why a row lacks values for some seeds: each reason once.

use document::number::seed_list;

/// The reasons why a row lacks values for some seeds.
#[derive(Debug, Default)]
pub(crate) struct Missing {
    reasons: Vec<(String, Vec<u64>)>,
}

impl Missing {
    pub(crate) fn add(&mut self, reason: String, seed: Option<u64>) {
        // Few reasons: kernels times ways to fail.
        let known = self.reasons.iter().position(|(known, _)| *known == reason);
        match known {
            Some(place) => self.reasons[place].1.extend(seed),
            None => self.reasons.push((reason, seed.into_iter().collect())),
        }
    }

    /// Returns the reasons as one text; names seeds unless all are affected.
    pub(crate) fn text(&self, all_seeds: usize) -> Option<String> {
        let texts: Vec<String> = self
            .reasons
            .iter()
            .map(|(reason, seeds)| {
                if seeds.is_empty() || seeds.len() == all_seeds {
                    reason.clone()
                } else {
                    format!("{reason} for {}", seed_list(seeds))
                }
            })
            .collect();
        (!texts.is_empty()).then(|| texts.join("; "))
    }
}
