//! Prints figures of the statistics: speed and accuracy of change point detection, beside other
//! rules, and error rates of ratings.
//!
//! `OTAVA` names a Python with the package apache-otava; by default the one in PATH. All noise is
//! seeded: except for the seconds, each run prints the same. Like the other benches it fails only
//! if it cannot measure.

#[path = "stats/sequence.rs"]
mod sequence;

use std::hint::black_box;
use std::io::Write;
use std::process::{Command, Stdio};

use anyhow::Context;
use figures::figure::{Against, Figures, print};
use figures::{cpu, perfherder};
use stats::synthetic::{
    Calibration, Chance, Design, Disturbed, Kind, Layouts, Noise, PairRule, Past, Peer, Quality,
    Short, Trials,
};
use stats::{Better, Criteria, Exposures, History, Scores, changes, estimate_ratio, families};

const SEED: u64 = 20_261_121;
/// Repetitions; the minimum counts, as other processes can only add.
const TIMES: usize = 7;
/// Series per cell of the detection table; Otava gets the first of them.
const SERIES: usize = 2000;
const SERIES_OTAVA: usize = 100;
/// Steps of the table, in deviations of the noise.
const STEPS: [f64; 4] = [1.0, 2.0, 3.0, 5.0];
const TRIALS: usize = 4000;
/// Groups of the base and of the new side.
const GROUPS: [(usize, usize); 6] = [(1, 1), (2, 2), (3, 3), (5, 5), (10, 10), (10, 3)];
/// Pairs of the table of layouts.
const PAIRS: [usize; 6] = [1, 2, 3, 5, 10, 20];
/// Kernels after a step.
const AFTER: [usize; 9] = [28, 26, 20, 15, 10, 5, 3, 2, 1];

fn main() -> anyhow::Result<()> {
    let mut figures = Figures;
    figures.doubt_load(cpu::load()?)?;
    let otava = Otava::find()?;
    speed(&mut figures, otava.as_ref())?;
    growth(&mut figures)?;
    ratings(&mut figures)?;
    counts(&mut figures)?;
    sampled_profiles(&mut figures)?;
    everything(&mut figures)?;
    detection(otava.as_ref())?;
    newest(otava.as_ref())?;
    calibration()?;
    pasts()?;
    layouts()?;
    disturbed()?;
    sequence::print()
}

/// Series at 100 with a deviation of 1 and three steps of 5.
fn stepped(count: usize, points: usize, chance: &mut Chance) -> Vec<Vec<f64>> {
    (0..count)
        .map(|_| {
            let noise = Noise::Normal.values(points, chance).into_iter().enumerate();
            noise
                .map(|(at, value)| 100.0 + value + 5.0 * (4 * at / points) as f64)
                .collect()
        })
        .collect()
}

fn places(points: &[f64]) -> Vec<usize> {
    // All values here are finite.
    let found = changes(points, &Criteria::default()).unwrap_or_default();
    found.into_iter().map(|change| change.at).collect()
}

fn speed(figures: &mut Figures, otava: Option<&Otava>) -> anyhow::Result<()> {
    let mut chance = Chance::new(SEED);
    let long = stepped(100, 500, &mut chance);
    let own = least(10, || {
        long.iter()
            .for_each(|points| drop(black_box(places(points))));
    })? * 1e3;
    print(
        figures,
        "change points, 100 series × 500 points",
        own,
        "ms CPU",
        Against::Goal(15.0),
    )?;
    if let Some(otava) = otava {
        let (seconds, _) = otava.places(&long)?;
        print(
            figures,
            "the same beside Otava",
            own,
            "ms CPU",
            Against::Peer("Otava", seconds * 1e3),
        )?;
    }
    let short = stepped(5000, 60, &mut chance);
    let own = least(1, || {
        short
            .iter()
            .for_each(|points| drop(black_box(places(points))));
    })? * 1e3;
    print(
        figures,
        "change points, 5,000 series × 60 points",
        own,
        "ms CPU",
        Against::Goal(500.0),
    )
}

/// Time over n log2 n, which is constant if the time grows like that.
fn growth(figures: &mut Figures) -> anyhow::Result<()> {
    let mut chance = Chance::new(SEED);
    let mut first: Option<f64> = None;
    for points in [1000_usize, 10_000, 100_000] {
        for (steps, name) in [(0, "no change"), (points / 200, "a change in 200")] {
            let mut series = Noise::Normal.values(points, &mut chance);
            let length = points / (steps + 1);
            series
                .iter_mut()
                .enumerate()
                .for_each(|(at, v)| *v += if at / length % 2 == 1 { 5.0 } else { 0.0 });
            let seconds = least(100_000 / points, || drop(black_box(places(&series))))?;
            let share = seconds * 1e9 / (points as f64 * (points as f64).log2());
            let against = first.map_or(Against::Nothing, |first| Against::Peer("n = 1000", first));
            first = first.or(Some(share));
            let name = format!("n = {points}, {name}: time over n log n");
            print(figures, &name, share, "ns CPU", against)?;
        }
    }
    Ok(())
}

/// A comparison of many rows, with q over all.
fn ratings(figures: &mut Figures) -> anyhow::Result<()> {
    let mut chance = Chance::new(SEED);
    let mut side = || -> Vec<Vec<f64>> {
        (0..5)
            .map(|_| (0..10).map(|_| 100.0 + chance.normal()).collect())
            .collect()
    };
    let rows: Vec<_> = (0..1000).map(|_| (side(), side())).collect();
    let seconds = least(10, || {
        let rated = rows.iter().filter_map(|(base, new)| {
            let base = Scores::new(base, Better::Lower).ok()?;
            let new = Scores::new(new, Better::Lower).ok()?;
            Some(estimate_ratio(&base, &new, &History::default(), 0.02))
        });
        let rated: Vec<_> = rated.collect();
        let p: Vec<[f64; 1]> = rated.iter().map(|rating| [rating.p()]).collect();
        let q = families(&p, 0.05).unwrap_or_default();
        let verdicts = rated.iter().zip(&q);
        black_box(
            verdicts
                .map(|(rating, family)| rating.verdict(family.q))
                .collect::<Vec<_>>(),
        );
    })?;
    let name = "1,000 rows of 2 × 5 groups of 10 values, rated";
    print(figures, name, seconds * 1e3, "ms CPU", Against::Goal(20.0))
}

/// The differences of a sampled profile's functions, with q over all.
fn counts(figures: &mut Figures) -> anyhow::Result<()> {
    let mut chance = Chance::new(SEED);
    let mut side =
        |mean: usize| -> Vec<u64> { (0..5).map(|_| (mean + chance.below(mean)) as u64).collect() };
    let things: Vec<[Vec<u64>; 2]> = (1..=1000).map(|n| [side(n), side(n)]).collect();
    let exposures = Exposures::new([vec![1e4; 5], vec![1e4; 5]])
        .context("exposures of ten thousand are none")?;
    let seconds = least(10, || {
        let p: Vec<f64> = exposures
            .differences(&things, &exposures.common_scatter(&things))
            .iter()
            .map(|one| one.p)
            .collect();
        black_box(stats::benjamini_hochberg(&p));
    })?;
    print(
        figures,
        "1,000 functions sampled in 2 × 5 boots, compared",
        seconds * 1e3,
        "ms CPU",
        Against::Goal(5.0),
    )
}

/// How often sampled profiles of 5 boots a side show a function of equal kernels, and put a slower
/// function first.
fn sampled_profiles(figures: &mut Figures) -> anyhow::Result<()> {
    const PAIRS: u64 = 200;
    let percent = |count: u64| 100.0 * count as f64 / PAIRS as f64;
    let shown = percent(profile::sampled::synthetic::equal_pairs_that_differ(PAIRS));
    let name = "sampled profile of a kernel against itself shows a function";
    print(figures, name, shown, "% of pairs", Against::Goal(5.0))?;
    for which in [0, 2, 5] {
        let later =
            percent(PAIRS - profile::sampled::synthetic::pairs_with_slower_first(which, PAIRS));
        let share = profile::sampled::synthetic::share_percent(which);
        let name = format!("function of {share:.0} % that takes 20 % longer is not first");
        print(figures, &name, later, "% of pairs", Against::Nothing)?;
    }
    Ok(())
}

/// The full analysis of a comparison of many rows: ratings with q over all, ranks, the noise of
/// both sides, and the geometric mean over the rows with its interval, group by group.
fn everything(figures: &mut Figures) -> anyhow::Result<()> {
    let mut chance = Chance::new(SEED);
    let mut side = || -> Vec<Vec<f64>> {
        (0..6)
            .map(|_| (0..10).map(|_| 100.0 + chance.normal()).collect())
            .collect()
    };
    let rows: Vec<_> = (0..1000).map(|_| (side(), side())).collect();
    let noise = |groups: &[Vec<f64>]| {
        let medians: Vec<f64> = groups
            .iter()
            .filter_map(|group| stats::median(group))
            .collect();
        stats::noise_profile(&medians)
    };
    let seconds = least(3, || {
        let sides: Vec<(Scores, Scores)> = rows
            .iter()
            .filter_map(|(base, new)| {
                let base = Scores::new(base, Better::Lower).ok()?;
                Some((base, Scores::new(new, Better::Lower).ok()?))
            })
            .collect();
        let rated: Vec<_> = sides
            .iter()
            .map(|(base, new)| estimate_ratio(base, new, &History::default(), 0.02))
            .collect();
        let pairs = sides.iter().zip(&rated);
        black_box(
            pairs
                .map(|((base, new), rating)| stats::cross_check(base, new, rating))
                .collect::<Vec<_>>(),
        );
        black_box(
            rows.iter()
                .map(|(base, new)| (noise(base), noise(new)))
                .collect::<Vec<_>>(),
        );
        let p: Vec<[f64; 1]> = rated.iter().map(|rating| [rating.p()]).collect();
        let q = families(&p, 0.05).unwrap_or_default();
        black_box(
            rated
                .iter()
                .zip(&q)
                .map(|(rating, of)| rating.verdict(of.q))
                .collect::<Vec<_>>(),
        );
        let (base, new): (Vec<Scores>, Vec<Scores>) = sides.into_iter().unzip();
        let means = Scores::together(&base)
            .ok()
            .zip(Scores::together(&new).ok());
        black_box(means.and_then(|(base, new)| {
            estimate_ratio(&base, &new, &History::default(), 0.0).interval()
        }));
    })?;
    let name = "the same of 2 × 6, with ranks, noise and mean";
    print(figures, name, seconds * 1e3, "ms CPU", Against::Goal(20.0))
}

/// Returns the places of change points in each series.
type FindChanges<'a> = dyn Fn(&[Vec<f64>]) -> anyhow::Result<Vec<Vec<usize>>> + 'a;

/// A rule that finds change points in many series.
struct Rule<'a> {
    name: &'static str,
    /// The number of series that it gets.
    series: usize,
    find: &'a FindChanges<'a>,
}

impl<'a> Rule<'a> {
    fn marvin(find: &'a FindChanges<'a>) -> Self {
        Self {
            name: "marvin",
            series: SERIES,
            find,
        }
    }

    fn otava(find: &'a FindChanges<'a>) -> Self {
        Self {
            name: "Otava",
            series: SERIES_OTAVA,
            find,
        }
    }
}

fn detection(otava: Option<&Otava>) -> anyhow::Result<()> {
    let ours = |series: &[Vec<f64>]| Ok(series.iter().map(|points| places(points)).collect());
    let theirs = |series: &[Vec<f64>]| {
        Ok(series
            .iter()
            .map(|points| perfherder::changes(points))
            .collect())
    };
    let from_otava = |series: &[Vec<f64>]| {
        Ok(otava
            .map(|otava| otava.places(series))
            .transpose()?
            .unwrap_or_default()
            .1)
    };
    let mut rules: Vec<Rule<'_>> = vec![
        Rule::marvin(&ours),
        Rule {
            name: "Perfherder rule",
            series: SERIES,
            find: &theirs,
        },
    ];
    if otava.is_some() {
        rules.push(Rule::otava(&from_otava));
    }
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "\nChange points in series of 200 points: false alarms without a step; recall / precision (within 3 points)"
    )?;
    write!(
        out,
        "{:<15} {:<16} {:>6} {:>8}",
        "noise", "rule", "series", "alarms"
    )?;
    STEPS
        .iter()
        .try_for_each(|step| write!(out, " {:>13}", format!("step of {step}")))?;
    writeln!(out)?;
    for noise in Noise::ALL {
        for Rule { name, series, find } in &rules {
            let measure = |step| {
                let trials = Trials::generate(noise, step, *series, SEED);
                Ok::<_, anyhow::Error>(Quality::judge(&trials, &find(&trials.series)?))
            };
            write!(
                out,
                "{:<15} {name:<16} {series:>6} {:>8.4}",
                noise.name(),
                measure(0.0)?.found
            )?;
            for step in STEPS {
                let Quality {
                    recall, precision, ..
                } = measure(step)?;
                write!(out, " {:>13}", format!("{recall:.3} / {precision:.3}"))?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}

/// Steps that came with one of the newest kernels, and no steps.
fn newest(otava: Option<&Otava>) -> anyhow::Result<()> {
    let ours = |series: &[Vec<f64>]| Ok(series.iter().map(|points| places(points)).collect());
    let from_otava = |series: &[Vec<f64>]| {
        Ok(otava
            .map(|otava| otava.places(series))
            .transpose()?
            .unwrap_or_default()
            .1)
    };
    let mut rules: Vec<Rule<'_>> = vec![Rule::marvin(&ours)];
    if otava.is_some() {
        rules.push(Rule::otava(&from_otava));
    }
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "\n30 kernels of 3 boots, 1 % of noise, a step of -5 %: found within 1 kernel, by kernels after it; false alarms"
    )?;
    write!(
        out,
        "{:<15} {:<8} {:>6} {:>8}",
        "noise", "rule", "series", "alarms"
    )?;
    AFTER
        .iter()
        .try_for_each(|after| write!(out, " {after:>6}"))?;
    writeln!(out)?;
    for noise in Short::ALL {
        for Rule { name, series, find } in &rules {
            let measure = |after: usize| {
                let trials = Trials::short(noise, after, *series, SEED);
                Ok::<_, anyhow::Error>(Quality::within(&trials, &find(&trials.series)?, 1))
            };
            write!(
                out,
                "{:<15} {name:<8} {series:>6} {:>8.4}",
                noise.name(),
                measure(0)?.found
            )?;
            for after in AFTER {
                write!(out, " {:>6.3}", measure(after)?.recall)?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}

fn calibration() -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "\nRatings, {TRIALS} trials each: shares that should be at most 5 % (false alarms, beyond the margin, false same), 95 % \
         (coverage) and 80 % (forecast)"
    )?;
    writeln!(
        out,
        "{:<15} {:<11} {:>12} {:>7} {:>9} {:>6} {:>11} {:>9}",
        "noise", "design", "false alarms", "beyond", "coverage", "power", "false same", "forecast"
    )?;
    for (kind, design) in Kind::ALL
        .into_iter()
        .flat_map(|kind| Design::ALL.map(|design| (kind, design)))
    {
        let Calibration {
            false_alarms,
            beyond,
            coverage,
            power,
            false_same,
            forecast,
            ..
        } = Calibration::measure(kind, design, TRIALS, SEED);
        let forecast = forecast.map_or_else(|| "-".to_owned(), |share| format!("{share:.3}"));
        writeln!(
            out,
            "{:<15} {:<11} {false_alarms:>12.4} {beyond:>7.4} {coverage:>9.4} {power:>6.3} {false_same:>11.4} {forecast:>9}",
            kind.name(),
            design.name(),
        )?;
    }
    Ok(())
}

/// What histories are worth that are right, and what those cost that are wrong.
fn pasts() -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "\nHistories of 30 kernels of two boots, {TRIALS} trials each: false alarms, and differences of 3 deviations found"
    )?;
    write!(out, "{:<20}", "history")?;
    for (base, new) in GROUPS {
        write!(out, " {:>13}", format!("{base} v {new}"))?;
    }
    writeln!(out, " {:>13}", "boots, 80 %")?;
    for past in Past::ALL {
        write!(out, "{:<20}", past.name())?;
        for groups in GROUPS {
            let seen = past.measure(groups, TRIALS, SEED);
            let cell = format!("{:.3} / {:.3}", seen.false_alarms, seen.power);
            write!(out, " {cell:>13}")?;
        }
        let boots = past.groups_to_find(TRIALS, SEED);
        let boots = boots.map_or_else(|| "-".to_owned(), |boots| format!("{boots:.1}"));
        writeln!(out, " {boots:>13}")?;
    }
    Ok(())
}

/// Rows of chaotic workloads: what chance alone calls different, and what is found.
fn layouts() -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "\nPairs of values that chance arranges, floor 5 % from five values, {TRIALS} trials each: false alarms without a \
         margin, beyond the margin, false same, +5 % found beyond 1 %"
    )?;
    write!(out, "{:<12} {:<9}", "layouts", "rule")?;
    for pairs in PAIRS {
        write!(out, " {:>23}", format!("{pairs} pairs"))?;
    }
    writeln!(out)?;
    let rules = [2.0, 2.5, 3.0, 4.0, 30.0].map(PairRule::Moderated);
    for layouts in Layouts::ALL {
        for rule in std::iter::once(PairRule::Unanimous).chain(rules) {
            write!(out, "{:<12} {:<9}", layouts.name(), rule.name())?;
            for pairs in PAIRS {
                let seen = layouts.measure(pairs, rule, TRIALS, SEED);
                write!(
                    out,
                    " {:>5.3} {:>5.3} {:>5.3} {:>5.3}",
                    seen.false_alarms, seen.beyond, seen.false_same, seen.found
                )?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}

/// Noise kinds beside what other tools make of them.
fn disturbed() -> anyhow::Result<()> {
    const TRIALS: usize = 600;
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "\nBoots that take turns, {TRIALS} trials each: false alarms, and +1 % found at 1 % of noise; * kept back from tuning"
    )?;
    write!(out, "{:<19} {:>6}", "noise", "boots")?;
    for peer in Peer::ALL {
        write!(out, " {:>16}", peer.name())?;
    }
    writeln!(out)?;
    for kind in Disturbed::ALL {
        for groups in [3, 5, 10] {
            let mark = if kind.is_kept_back() { " *" } else { "" };
            write!(out, "{:<19} {groups:>6}", format!("{}{mark}", kind.name()))?;
            for peer in Peer::ALL {
                let alarms = kind.measure(peer, groups, 0.0, TRIALS, SEED);
                let found = kind.measure(peer, groups, 1.0, TRIALS, SEED);
                write!(out, " {:>16}", format!("{alarms:.3} / {found:.2}"))?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}

/// Returns the minimal processor seconds of a piece of work, repeated to make the clock's
/// resolution negligible.
fn least(repeat: usize, mut work: impl FnMut()) -> anyhow::Result<f64> {
    let mut best = f64::MAX;
    for _ in 0..TIMES {
        let start = cpu::own_s()?;
        (0..repeat).for_each(|_| work());
        best = best.min((cpu::own_s()? - start) / repeat as f64);
    }
    Ok(best)
}

/// Apache Otava, in a separate Python process.
struct Otava {
    python: std::ffi::OsString,
}

impl Otava {
    /// `None` if it is not installed; prints a message then.
    fn find() -> anyhow::Result<Option<Self>> {
        let python = std::env::var_os("OTAVA").unwrap_or_else(|| "python3".into());
        let mut command = Command::new(&python);
        command
            .args(["-c", "import otava"])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if command.status().is_ok_and(|status| status.success()) {
            return Ok(Some(Self { python }));
        }
        writeln!(
            std::io::stderr(),
            "benches: no Otava to stand against: {} has no module otava; `pip install apache-otava` in a venv and name \
             its python with OTAVA=FILE",
            python.display()
        )?;
        Ok(None)
    }

    /// Returns the processor seconds of the search alone, and the changes of each series.
    fn places(&self, series: &[Vec<f64>]) -> anyhow::Result<(f64, Vec<Vec<usize>>)> {
        let mut child = Command::new(&self.python)
            .args(["-c", include_str!("otava.py")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        // It reads all input before it prints, so neither side blocks the other.
        let mut input = child
            .stdin
            .take()
            .context("no way to tell Otava the series")?;
        for points in series {
            let line: Vec<String> = points.iter().map(f64::to_string).collect();
            writeln!(input, "{}", line.join(" "))?;
        }
        drop(input);
        let output = child.wait_with_output()?;
        anyhow::ensure!(
            output.status.success(),
            "Otava ended with {}",
            output.status
        );
        let said = String::from_utf8(output.stdout)?;
        let mut lines = said.lines();
        let seconds = lines.next().context("Otava said nothing")?.parse()?;
        let places = lines.map(|line| {
            line.split(' ')
                .filter(|at| !at.is_empty())
                .map(str::parse)
                .collect()
        });
        Ok((seconds, places.collect::<Result<_, _>>()?))
    }
}
