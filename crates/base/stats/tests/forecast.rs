//! Whether forecasts keep their promise where there is a difference, too.
#![expect(
    clippy::print_stdout,
    reason = "readers of the test's output read the table"
)]

use stats::synthetic::Chance;
use stats::{Better, History, Scores, Unclear, Verdict, estimate_ratio};

const TRIALS: usize = 1000;
const SEED: u64 = 45;
const DEVIATION: f64 = 0.01;
const MARGIN: f64 = 0.02;

fn scores(logs: &[f64]) -> Option<Scores> {
    let groups: Vec<[f64; 1]> = logs.iter().map(|log| [log.exp()]).collect();
    Scores::new(&groups, Better::Higher).ok()
}

/// Shares of trials of three groups a side that differ by so much.
#[derive(Debug)]
struct Forecasts {
    /// Unclear rows.
    unclear: usize,
    /// Those that name a number of groups.
    named: usize,
    /// Those of them that are clear with as many.
    kept: usize,
    /// Those that say that the difference is near the margin.
    near: usize,
}

fn measure(difference: f64) -> Forecasts {
    let mut chance = Chance::new(SEED);
    let mut found = Forecasts {
        unclear: 0,
        named: 0,
        kept: 0,
        near: 0,
    };
    for _ in 0..TRIALS {
        let base: Vec<f64> = (0..60).map(|_| DEVIATION * chance.normal()).collect();
        let new: Vec<f64> = (0..60)
            .map(|_| difference + DEVIATION * chance.normal())
            .collect();
        let judge = |groups: usize| {
            let base = scores(&base[..groups])?;
            let new = scores(&new[..groups])?;
            let rating = estimate_ratio(&base, &new, &History::default(), MARGIN);
            rating.verdict(rating.p())
        };
        let Some(Verdict::Unclear(why)) = judge(3) else {
            continue;
        };
        found.unclear += 1;
        match why {
            Unclear::MoreGroups(more) => {
                found.named += 1;
                let then = judge(3 + more);
                found.kept += usize::from(matches!(
                    then,
                    Some(Verdict::Better | Verdict::Worse | Verdict::Same)
                ));
            }
            Unclear::NearMargin => found.near += 1,
            _ => {}
        }
    }
    println!("{:>4.1} %: {found:?}", difference * 100.0);
    found
}

#[test]
fn forecasts_hold_for_equal_and_far_sides() {
    for difference in [0.0, 0.06, 0.08] {
        let found = measure(difference);
        assert!(found.named * 10 > found.unclear * 8, "{found:?}");
        assert!(found.kept * 100 > found.named * 78, "{found:?}");
    }
}

#[test]
fn differences_near_the_margin_rarely_name_number() {
    let found = measure(MARGIN);
    assert!(found.near * 10 > found.unclear * 5, "{found:?}");
}
