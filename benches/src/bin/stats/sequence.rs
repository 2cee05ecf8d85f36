//! Figures of looks after each further group: error rates, and what they find beside designs of
//! fixed size.

use std::io::Write;

use stats::Sequential;
use stats::synthetic::{Between, Course, Disturbed, Ends, Rule};

const SEED: u64 = 20_261_123;
const TRIALS: usize = 4000;
/// Groups of each side that looks are planned for.
const PLANS: [usize; 5] = [2, 5, 10, 20, 30];
/// A margin that nothing lies within.
const NONE: f64 = 1e-9;
const SHIFTS: [f64; 7] = [0.0, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0];

pub(crate) fn print() -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    errors(&mut out)?;
    disturbed(&mut out)?;
    found(&mut out)?;
    spending(&mut out)
}

fn looks(groups: usize) -> Rule {
    Rule::Looks(Sequential::new(groups))
}

fn normal(shift: f64, margin: f64, rule: &Rule) -> Ends {
    Course {
        noise: Between::Normal,
        shift,
        margin,
    }
    .play(rule, TRIALS, SEED)
}

fn errors(out: &mut impl Write) -> anyhow::Result<()> {
    let most = Ends {
        trials: TRIALS,
        ..Ends::default()
    }
    .most();
    writeln!(
        out,
        "\nLooks after each further boot, {TRIALS} trials: shares of plans with a wrong verdict at any look (most: {most:.4}); \
         forecasts at 3 boots that held (80 %), by margin in deviations"
    )?;
    writeln!(
        out,
        "{:<15} {:>5} {:>12} {:>7} {:>11} {:>12} {:>12}",
        "noise", "boots", "false alarms", "beyond", "false same", "forecast 1.5", "forecast 2.5"
    )?;
    for (noise, groups) in Between::ALL
        .into_iter()
        .flat_map(|noise| PLANS.map(|groups| (noise, groups)))
    {
        let play = |shift, margin| {
            Course {
                noise,
                shift,
                margin,
            }
            .play(&looks(groups), TRIALS, SEED)
        };
        let equal = play(0.0, NONE);
        let edge = play(1.0, 1.0);
        let forecast = |margin| {
            let Ends {
                expected,
                fulfilled,
                ..
            } = play(0.0, margin);
            if expected * 100 < TRIALS {
                "-".to_owned()
            } else {
                format!("{:.3}", fulfilled as f64 / expected as f64)
            }
        };
        writeln!(
            out,
            "{:<15} {groups:>5} {:>12.4} {:>7.4} {:>11.4} {:>12} {:>12}",
            noise.name(),
            equal.share(equal.better + equal.worse),
            edge.share(edge.better),
            edge.share(edge.same),
            forecast(1.5),
            forecast(2.5),
        )?;
    }
    Ok(())
}

/// Noise kinds that disturb boots that take turns.
fn disturbed(out: &mut impl Write) -> anyhow::Result<()> {
    const TRIALS: usize = 600;
    writeln!(
        out,
        "\nLooks at boots that take turns, {TRIALS} trials each: false alarms, and +1 % found at 1 % of noise"
    )?;
    writeln!(
        out,
        "{:<17} {:>5} {:>14} {:>14}",
        "noise", "boots", "all boots", "neighbours"
    )?;
    for kind in Disturbed::ALL {
        for groups in [10, 30] {
            let plan = Sequential::new(groups);
            write!(out, "{:<17} {groups:>5}", kind.name())?;
            for by_neighbours in [false, true] {
                let share = |shift| kind.measure_looks(&plan, by_neighbours, shift, TRIALS, SEED);
                let cell = format!("{:.3} / {:.2}", share(0.0), share(1.0));
                write!(out, " {cell:>14}")?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}

fn found(out: &mut impl Write) -> anyhow::Result<()> {
    for (margin, title) in [
        (NONE, "no margin: found"),
        (1.0, "a margin of 1 deviation: found, same for 0"),
    ] {
        writeln!(
            out,
            "\nNormal noise, {title} (mean boots of each side), by difference in deviations"
        )?;
        write!(out, "{:<16}", "design")?;
        SHIFTS
            .iter()
            .try_for_each(|shift| write!(out, " {shift:>12}"))?;
        writeln!(out)?;
        let fixed = [5, 10, 20].map(|groups| (format!("{groups} boots"), Rule::Once(groups)));
        let sequences = PLANS[1..]
            .iter()
            .map(|groups| (format!("looks up to {groups}"), looks(*groups)));
        for (name, rule) in fixed.into_iter().chain(sequences) {
            write!(out, "{name:<16}")?;
            for shift in SHIFTS {
                let ends = normal(shift, margin, &rule);
                let is_same = shift <= 0.0 && margin >= 1.0;
                let seen = ends.share(if is_same { ends.same } else { ends.better });
                write!(
                    out,
                    " {:>12}",
                    format!("{seen:.3} ({:.1})", ends.groups_mean())
                )?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}

/// What the choice of the spending was made by.
fn spending(out: &mut impl Write) -> anyhow::Result<()> {
    writeln!(
        out,
        "\nNormal noise: found (mean boots of each side), by rule, most boots, and difference in deviations"
    )?;
    write!(out, "{:<22} {:>5}", "rule", "boots")?;
    SHIFTS[1..]
        .iter()
        .try_for_each(|shift| write!(out, " {shift:>12}"))?;
    writeln!(out)?;
    for groups in [5, 10, 20] {
        let rules = [
            ("marvin: t³", looks(groups)),
            ("like O'Brien-Fleming", Rule::fleming(groups)),
            ("like Pocock", Rule::pocock(groups)),
            ("mixture, always valid", Rule::mixture(groups)),
        ];
        for (name, rule) in rules {
            write!(out, "{name:<22} {groups:>5}")?;
            for shift in &SHIFTS[1..] {
                let ends = normal(*shift, NONE, &rule);
                write!(
                    out,
                    " {:>12}",
                    format!("{:.3} ({:.1})", ends.share(ends.better), ends.groups_mean())
                )?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}
