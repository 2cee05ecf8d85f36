//! How often looks after each further group are wrong, measured on seeded noise: all together no
//! more often than one.
#![expect(
    clippy::print_stdout,
    reason = "readers of the test's output read the table"
)]

use stats::Sequential;
use stats::synthetic::{Between, Course, Ends, Rule};

const SEED: u64 = 4;
/// Looks of all trials of one cell: plans of few looks get more trials.
const LOOKS: usize = 6000;
/// A margin that nothing lies within.
const NONE: f64 = 1e-9;

#[test]
fn many_looks_alarm_no_more_than_one() {
    println!("noise           groups  false alarms  beyond  false same  most");
    let mut faults = Vec::new();
    for groups in [2, 5, 10, 30] {
        let plan = Rule::Looks(Sequential::new(groups));
        let trials = LOOKS / groups;
        for noise in Between::ALL
            .into_iter()
            .filter(|noise| !matches!(noise, Between::MemoryApart(_)))
        {
            let equal = Course {
                noise,
                shift: 0.0,
                margin: NONE,
            }
            .play(&plan, trials, SEED);
            let edge = Course {
                noise,
                shift: 1.0,
                margin: 1.0,
            }
            .play(&plan, trials, SEED);
            let seen = [
                equal.share(equal.better + equal.worse),
                edge.share(edge.better),
                edge.share(edge.same),
            ];
            let [alarms, beyond, same] = seen;
            let most = equal.most();
            let line = format!(
                "{:<15} {groups:>6} {alarms:>13.4} {beyond:>7.4} {same:>11.4} {most:>5.3}",
                noise.name()
            );
            println!("{line}");
            // Small numbers of groups and a side three times as noisy: a fault of each single
            // rating too (docs/noise.md).
            let known = if noise == Between::Unequal {
                0.015
            } else {
                0.0
            };
            if seen.iter().any(|share| *share > most + known) {
                faults.push(line);
            }
        }
    }
    assert!(
        faults.is_empty(),
        "wrong more often than claimed:\n{}",
        faults.join("\n")
    );
}

fn show(ends: &Ends) -> String {
    format!(
        "{:.3} found with {:.1} groups",
        ends.share(ends.better),
        ends.groups_mean()
    )
}

#[test]
fn looks_find_as_much_with_fewer_groups() {
    for (shift, groups_most) in [(2.0, 7.0), (3.0, 5.6), (5.0, 4.7)] {
        let course = Course {
            noise: Between::Normal,
            shift,
            margin: NONE,
        };
        let looks = course.play(&Rule::Looks(Sequential::new(10)), 500, SEED);
        let once = course.play(&Rule::Once(10), 500, SEED);
        println!("step of {shift}: {}, {} at once", show(&looks), show(&once));
        assert!(
            looks.share(looks.better) >= once.share(once.better) - 0.03
                && looks.groups_mean() <= groups_most
        );
    }
}

#[test]
fn forecasts_of_plan_keep_their_promise() {
    let course = Course {
        noise: Between::Normal,
        shift: 0.0,
        margin: 2.0,
    };
    let Ends {
        expected,
        fulfilled,
        ..
    } = course.play(&Rule::Looks(Sequential::new(30)), 500, SEED);
    println!("{fulfilled} of {expected} as forecast");
    assert!(
        expected > 400 && fulfilled * 100 >= expected * 78,
        "{fulfilled} of {expected}"
    );
}
